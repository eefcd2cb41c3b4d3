/*
 * store_bytes.h - all bytes that a store holds, for tests that search for what was erased: those of
 * its files, as they are and decompressed, and of files that were deleted and that a process still
 * has open or mapped.
 */
#ifndef AGENTWAL_TESTS_LIB_STORE_BYTES_H
#define AGENTWAL_TESTS_LIB_STORE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Called for the bytes of a file, and for each part that they hold compressed. */
typedef void store_bytes_fn(void *ctx, const char *file, const uint8_t *bytes, size_t size);

/* Of the bytes of one file. */
void store_bytes_visit(const char *file, const uint8_t *bytes, size_t size, store_bytes_fn *see,
                       void *ctx);
/* Of each regular file in a directory and below it; one that is removed meanwhile is left out. */
void store_bytes_visit_directory(const char *directory, store_bytes_fn *see, void *ctx);
/* Of the deleted files of the directory, an absolute path, that a process has open or mapped: this
 * one, or a child. Returns how many there are. */
uint32_t store_bytes_visit_deleted(pid_t process, const char *directory, store_bytes_fn *see,
                                   void *ctx);

#endif
