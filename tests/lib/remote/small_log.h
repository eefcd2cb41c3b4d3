/*
 * small_log.h - a log of numbers in memory with its own parts, in place of a store's and of a
 * replica's. One thread.
 */
#ifndef AGENTWAL_TESTS_LIB_REMOTE_SMALL_LOG_H
#define AGENTWAL_TESTS_LIB_REMOTE_SMALL_LOG_H

#include "remote/pull/pull.h"
#include "remote/ship/writer.h"
#include "tests/lib/remote/memory_driver.h"

enum {
    SMALL_LOG_MAX = 16384,
    SMALL_PART_MAX = 16384 /* entries of a part, of which tests have fewer */
};

struct small_log {
    uint64_t *entries;
    uint32_t *chain; /* before each entry, and after the last */
    uint64_t count;
    uint64_t per_part;  /* entries of a part; 0: all */
    uint64_t per_base;  /* of one that leads to an end; 0: all */
    uint64_t compacted; /* entries before which whole segments are to be had */
    uint64_t identity;  /* of the segment */
    uint8_t *part;      /* the one that was read last */
    uint64_t synced;    /* entries that a target was asked to make durable */
    uint32_t parallel;  /* of a writer */
    /* That its writer has kept. */
    struct wal_remote_mark marks[WAL_REMOTE_MARKS];
    uint64_t mark_count;
};

extern const uint8_t small_uuid[16];

void small_log_init(struct small_log *log);
void small_log_deinit(struct small_log *log);
void small_log_append(struct small_log *log, uint64_t entry);
/* Keeps the first entries. */
void small_log_cut(struct small_log *log, uint64_t count);
void assert_logs_equal(const struct small_log *a, const struct small_log *b);

/* In place of wal_part_verify. */
enum wal_status small_log_verify(struct wal_slice part, struct wal_part_info *info,
                                 struct wal_error *error);
struct wal__part_source small_log_source(struct small_log *log);
struct wal__part_target small_log_target(struct small_log *log);

/* Starts a writer of the log, without threads; `id` makes it another one. */
enum wal_status small_writer_start(struct wal_remote_writer *writer, struct memory_driver *memory,
                                   struct small_log *log, uint64_t id, bool takes_over,
                                   struct wal_error *error);

/* Pulls to the log, with the error; and one that must succeed. */
enum wal_status small_pull(struct memory_driver *memory, struct small_log *log,
                           struct wal_remote_pull_result *result, struct wal_error *error);

#endif
