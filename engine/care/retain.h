/*
 * retain.h - chooses the sessions that rules of retention let go (docs/keeping.md). A pure
 * function: it reads no store, and moves nothing. Any thread.
 */
#ifndef AGENTWAL_ENGINE_CARE_RETAIN_H
#define AGENTWAL_ENGINE_CARE_RETAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/heap.h"

/* No session, in place of a rank. */
#define WAL__RETAIN_NONE UINT32_MAX

enum wal__retain_rule {
    WAL__RETAIN_STAYS = 0,
    WAL__RETAIN_OLD = 1,    /* its last activity is too long ago */
    WAL__RETAIN_BEYOND = 2, /* it is not among the newest ones to keep */
    WAL__RETAIN_BYTES = 3   /* with it, all have too many bytes */
};

struct wal__retain_session {
    /* In. */
    int64_t updated_ms;
    uint64_t bytes;
    uint32_t parent;   /* rank of the session it descends from, or NONE */
    bool is_selected;  /* the rules apply to it; others stay */
    bool is_protected; /* it stays whatever the rules say */
    bool is_trashed;   /* it is neither here nor chosen; its parent counts */
    /* Out. */
    enum wal__retain_rule rule; /* that chose it */
    bool is_held;               /* a rule chose it, but a descendant of it stays */
};

struct wal__retain_rules {
    int64_t older_than_ms; /* last active before this time; INT64_MIN: none */
    uint64_t keep_last;    /* the newest ones that stay in any case */
    bool has_keep_last;    /* without another rule: all others go */
    uint64_t max_bytes;    /* of the selected ones that stay; UINT64_MAX: any */
};

/*
 * Chooses among `count` sessions, which are sorted newest first; sets their rule and is_held, and
 * *chosen to their number. A session in the trash has no rule. What is chosen has no descendant
 * that stays. Parents may form a circle. WAL_EINVAL when there is no rule; WAL_ENOMEM.
 */
enum wal_status wal__retain_choose(const struct wal__heap *heap,
                                   const struct wal__retain_rules *rules,
                                   struct wal__retain_session *sessions, uint32_t count,
                                   uint32_t *chosen) WAL_MUST_USE;

#endif
