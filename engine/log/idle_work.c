/*
 * idle_work.c - when idle work is due (SPEC.md 3.3, 4.3).
 *
 * Invariant: what is written becomes durable after the idle time, though the
 * committer thread may sleep for longer, until the mark of an end that was
 * durable when it fell asleep.
 */
#include "engine/log/idle_work.h"

enum {
    RETAINED_NS = 1000000 /* that an idle process retains the append lock */
};

/* A mark makes durable what is not. Otherwise the next group names the durable
 * end as the mark would, and usually comes before it. */
static uint64_t mark_delay_ns(const struct wal__committer *committer)
{
    const struct wal__log *log = committer->log;

    return wal__log_is_durable(log, atomic_load(&log->end))
               ? committer->durable_mark_ns
               : committer->idle_mark_ns;
}

uint64_t wal__idle_work_due_ns(const struct wal__committer *committer)
{
    if (committer->log->append_lock_retained) {
        return committer->last_write_ns + RETAINED_NS;
    }
    return committer->needs_mark
               ? committer->last_write_ns + mark_delay_ns(committer)
               : UINT64_MAX;
}

bool wal__idle_work_is_overslept(const struct wal__committer *committer)
{
    return wal__idle_work_due_ns(committer) < committer->sleeps_until_ns;
}
