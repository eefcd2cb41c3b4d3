/*
 * iter.h - reading a session: a path or everything, as it was when the
 * iterator was opened (SPEC.md 5.5).
 */
#ifndef WAL_SESSION_ITER_H
#define WAL_SESSION_ITER_H

#include "engine/session/session.h"

enum {
    WAL__ITER_BLOCK = 256
};

/* Where an entry is. */
struct wal__iter_item {
    uint64_t position;
    uint64_t sequence;
    uint64_t depth;
};

struct wal_iter {
    struct wal__core *core;
    uint32_t session;
    uint32_t stream;
    uint64_t limit;        /* durable position, or UINT64_MAX */
    struct wal__buf parts; /* struct wal__path_part, in reading order */
    uint32_t part;         /* being read */
    uint32_t part_at;      /* items of it that were taken */
    uint64_t remaining;
    bool all;       /* own entries in log order, not one path */
    uint64_t depth; /* of the next entry on the path */
    struct wal__iter_item block[WAL__ITER_BLOCK];
    uint32_t block_count;
    uint32_t block_at;
    /* The entry before, whose id is most often the parent's. */
    uint64_t last_sequence;
    struct wal__span last_id;
    uint8_t id_copy[2][WAL__ID_MAX]; /* with WAL_OPEN_PREAD */
    struct wal__buf scratch;
    struct wal__buf parent_scratch;
};

enum wal_status wal__iter_open(struct wal_session *session,
                               const struct wal_iter_options *options,
                               struct wal_iter **iter,
                               struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__iter_next(struct wal_iter *iter, struct wal_entry *entry,
                               struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__iter_get(struct wal_iter *iter, struct wal__span id,
                              struct wal_entry *entry,
                              struct wal_error *error) WAL_MUST_USE;
void wal__iter_close(struct wal_iter *iter);

#endif
