/*
 * collect.h - removing what an older base has made needless (SPEC.md 11.3).
 *
 * Invariant: the newest base that is old enough, and all that came after it,
 * have everything that they need.
 *
 * Threads: any; several may collect at the same time.
 */
#ifndef AGENTWAL_REMOTE_BASE_COLLECT_H
#define AGENTWAL_REMOTE_BASE_COLLECT_H

#include "remote/base/base.h"

/* The age that a base must have: a day, in which pulls end that began before
 * it. */
#define WAL__COLLECT_AGE_MS (INT64_C(24) * 60 * 60 * 1000)

struct wal__collect_result {
    uint64_t parts;    /* removed */
    uint64_t segments; /* likewise */
    uint64_t bases;
    uint64_t bundles;
    uint64_t bytes; /* of parts, segments and bundles */
};

/*
 * Removes the parts that are below the newest base of at least age_ms, and the
 * segments and bases that only older ones name; and all bundles. Fences, epochs
 * and the last WAL__PART_WINDOW parts remain. After a failure the next call
 * goes on.
 */
enum wal_status wal__collect(struct wal_remote *remote, const uint8_t uuid[16],
                             int64_t now_ms, int64_t age_ms,
                             struct wal__collect_result *result,
                             struct wal_error *error) WAL_MUST_USE;

#endif
