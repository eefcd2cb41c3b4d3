/*
 * eventcount.c - eventcounts of the control page (SPEC.md 4.1): how a process
 * waits until another raises the written or the durable end of a log.
 *
 * Invariant: a thread that prepared before it checked is woken by every later
 * rise, unless the notifying process is killed in between. Any thread.
 */
#include "engine/log/control.h"
#include "format/bytes/assert.h"

void wal__control_notify(struct wal__control *control, uint32_t log_id,
                         enum wal__log_event event)
{
    _Atomic uint32_t *word = &control->page->eventcounts[log_id][event];
    uint32_t seen = atomic_load(word);

    WAL__ASSERT(log_id < WAL__LOG_COUNT && event < WAL__LOG_EVENT_COUNT);
    if (seen % 2 == 1 &&
        atomic_compare_exchange_strong(word, &seen, seen + 1)) {
        control->env->io->futex_wake(control->env->io->ctx,
                                     (const uint32_t *)word, UINT32_MAX);
    }
}

uint32_t wal__control_prepare_wait(struct wal__control *control,
                                   uint32_t log_id, enum wal__log_event event,
                                   const uint32_t **word)
{
    _Atomic uint32_t *at = &control->page->eventcounts[log_id][event];

    WAL__ASSERT(log_id < WAL__LOG_COUNT && event < WAL__LOG_EVENT_COUNT);
    *word = (const uint32_t *)at;
    return atomic_fetch_or(at, 1) | 1;
}
