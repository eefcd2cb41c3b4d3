/*
 * mark.c - when a commit mark is due (SPEC.md 3.3).
 *
 * Invariant: what is written becomes durable after the idle time, though the
 * committer thread may sleep for longer, until the mark of an end that was
 * durable when it fell asleep.
 */
#include "engine/commit/mark.h"

/* The mark makes durable what is not. Otherwise the next group names the
 * durable end as the mark would, and usually comes before it. */
uint64_t wal__mark_due_ns(const struct wal__committer *committer)
{
    const struct wal__log *log = committer->log;

    return committer->last_write_ns +
           (wal__log_is_durable(log, atomic_load(&log->end))
                ? committer->durable_mark_ns
                : committer->idle_mark_ns);
}

bool wal__mark_is_overslept(const struct wal__committer *committer)
{
    return committer->needs_mark &&
           wal__mark_due_ns(committer) < committer->sleeps_until_ns;
}
