/*
 * backup_kit.h - what the tests of wal_store_backup share. Paths are below the directory of the
 * test.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_BACKUP_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_BACKUP_KIT_H

#include "agentwal/admin.h"
#include "tests/lib/kit/parts_kit.h"

/* Of the last backup. */
extern struct wal_store_backup_result kit_backup_result;
extern struct wal_error kit_backup_error;

enum wal_status kit_try_backup(struct wal_store *store, const char *path);
/* From a handle that only reads, as the command does: it succeeds, or is refused, and writes
 * nothing. */
void kit_back_up(const char *from, const char *to);
void kit_expect_refused(const char *from, const char *to, enum wal_status status, const char *text);
/* Appends entries first to first + count - 1 of `size` bytes to the session "s". The store is made
 * when it is not there. */
void kit_append_to(const char *path, uint32_t first, uint32_t count, size_t size);
void kit_compact_path(const char *path);
/* What the session "s" has is the same in both stores. */
void assert_same_store(const char *path, const char *other);
/* Runs a command of the shell, which succeeds. */
void kit_run(const char *command);

#endif
