/*
 * base_make.h - making bases from the log of a store (base.h), and when.
 *
 * Threads: one at a time per source.
 */
#ifndef AGENTWAL_REMOTE_BASE_BASE_MAKE_H
#define AGENTWAL_REMOTE_BASE_BASE_MAKE_H

#include "remote/base/base.h"
#include "remote/history/log_parts.h"

enum {
    /* A base is due after this number of parts, however large they are: it has
     * the same bytes, in fewer objects. */
    WAL__BASE_PARTS = 1000,
    WAL__BASE_SEGMENT_SIZE = 64 * 1024 * 1024 /* of a segment, at most */
};

/* What a base is made of. */
enum wal__base_kind {
    WAL__BASE_NEXT = 0, /* the one before it, and what came after that */
    WAL__BASE_ANEW,     /* the whole store */
    WAL__BASE_ERASED    /* likewise, and replicas replace what they have */
};

/* The end of a base: a part that was acknowledged, and all before it. */
struct wal__base_end {
    uint64_t epoch;
    uint64_t part; /* 0: none */
    struct wal__position position;
};

/* What a call stored. */
struct wal__base_result {
    uint64_t number; /* of the base; 0: none was made */
    uint64_t segments;
    uint64_t bytes; /* of them */
};

/*
 * Makes a base that leads to the end, if the newest one does not.
 * WAL__BASE_NEXT reuses its segments, but for small ones at its end. Makes none
 * when compaction has replaced what is at the end, or another process makes
 * one.
 * WAL_ECONFLICT: the store has another past. WAL_EREMOTE: it may be repeated.
 */
enum wal_status
wal__base_make(struct wal_remote *remote, const struct wal__part_source *source,
               const uint8_t uuid[16], const struct wal__base_end *end,
               enum wal__base_kind kind, struct wal__base_result *result,
               struct wal_error *error) WAL_MUST_USE;

/* Counts the parts after the newest base, until one is due. */
enum wal_status wal__base_count_parts(struct wal_remote *remote,
                                      const uint8_t uuid[16],
                                      const struct wal__base_end *end,
                                      uint64_t *parts,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
