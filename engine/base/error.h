/*
 * error.h - fills the caller's struct wal_error. Any thread; the struct belongs to the caller, so
 * nothing is shared.
 */
#ifndef AGENTWAL_ENGINE_BASE_ERROR_H
#define AGENTWAL_ENGINE_BASE_ERROR_H

#include "agentwal.h"

/* As wal__fail_at, after io->open failed: names what is there instead of a regular file. */
enum wal_status wal__fail_open(struct wal_error *error, enum wal_status status, int sys_errno,
                               const char *file, const char *what);

/*
 * Each of these fills *error, which may be NULL, and returns the status, so that a failure is one
 * line: return wal__invalid(error, "cursor must not be NULL"). Arguments may point into *error.
 * Fields beyond error->struct_size are not written, and a size of 0 is that of version 0.2; holder
 * is set to 0, actual to empty.
 */
enum wal_status wal__fail(struct wal_error *error, enum wal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with the system's error and the location: an errno or 0, a path or NULL, an offset in
 * that file or 0. */
enum wal_status wal__fail_at(struct wal_error *error, enum wal_status status, int sys_errno,
                             const char *file, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* WAL_EINVAL. */
enum wal_status wal__invalid(struct wal_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* WAL_ECONFLICT: which expectation failed, and the present value, a terminated text. */
enum wal_status wal__conflict(struct wal_error *error, enum wal_expectation expectation,
                              const char *actual, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* WAL_ENOMEM. */
enum wal_status wal__no_memory(struct wal_error *error);

/* Sets the process that holds a lock; call it after wal__fail. */
void wal__error_set_holder(struct wal_error *error, int32_t process);

/* Sets the field `actual`, the value found instead of the expected one; call it after wal__fail.
 * Copies `size` bytes of text, at most 255, and terminates them. Does nothing when error is NULL or
 * its struct_size excludes the field. text may be NULL when size is 0, and may point into
 * *error. */
void wal__error_set_actual(struct wal_error *error, const void *text, size_t size);

/* Copies a whole struct of this version, which another thread may have filled, into the caller's
 * struct, which may be NULL. */
void wal__error_copy(struct wal_error *to, const struct wal_error *from);

#endif
