/*
 * shipping.h - how far the log is stored in another place too: one process
 * ships it, and reports that to all that wait (SPEC.md 4.1).
 *
 * Invariant: everything up to the number that was reported last is stored
 * there. The lock byte alone says whether a process ships. Any thread.
 */
#ifndef AGENTWAL_ENGINE_LOG_SHIPPING_H
#define AGENTWAL_ENGINE_LOG_SHIPPING_H

#include "engine/log/control.h"

/* What was reported, and the futex word that changes with the next report. */
struct wal__shipping_state {
    uint64_t sequence;      /* everything up to it is stored */
    uint32_t failures;      /* raised by each report of a failure */
    enum wal_status status; /* of the last failure */
    const uint32_t *word;
    uint32_t expected;
};

/* Becomes the process that ships: nothing is known to be stored. One thread of
 * the process at a time. WAL_ELOCKED: another process ships. */
enum wal_status wal__shipping_begin(struct wal__control *control,
                                    struct wal_error *error) WAL_MUST_USE;
void wal__shipping_end(struct wal__control *control);

/* Of the process that ships: status is WAL_OK, or why more could not be stored.
 * Wakes those that wait. */
void wal__shipping_report(struct wal__control *control, uint64_t sequence,
                          enum wal_status status);

/* Reads it, and announces that this thread may sleep on state->word. */
void wal__shipping_read(struct wal__control *control,
                        struct wal__shipping_state *state);

/* Whether another process, or another open of LOCK, ships. */
enum wal_status wal__shipping_test(struct wal__control *control, bool *ships,
                                   struct wal_error *error) WAL_MUST_USE;

#endif
