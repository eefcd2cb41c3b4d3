/*
 * internal.h - what the parts of a workload share: the random
 * numbers of a step, and recording in the ledger what calls returned.
 */
#ifndef AGENTWAL_TESTS_SIM_WORKLOAD_INTERNAL_H
#define AGENTWAL_TESTS_SIM_WORKLOAD_INTERNAL_H

#include "tests/sim/workload/workload.h"

/* The random numbers of one step. */
struct rng {
    uint64_t state;
};

uint32_t workload__random(struct rng *rng, uint32_t sides);

/* Of a payload or a document, by the options. */
uint32_t workload__size(const struct workload *workload, struct rng *rng);
/* An entry that was promised in this session and stream, or LEDGER_NONE. */
uint32_t workload__random_entry(const struct workload *workload, uint32_t session, uint32_t stream,
                                struct rng *rng);
/* Adds `count` new entries of every kind to a batch. */
void workload__add_entries(struct workload *workload, uint32_t batch, uint32_t count,
                           struct rng *rng);

/* The handle of a session, opened when it is needed; null when it cannot. */
struct wal_session *workload__session(struct workload *workload, uint32_t session);
/* Commits what this actor has queued; false when that fails. */
bool workload__sync(struct workload *workload);
/* What the status of a batch means. */
void workload__record_answer(struct workload *workload, uint32_t number, uint32_t durability,
                             enum wal_status status, const struct wal_error *error);

/* Steps (parts.c): a batch of everything, one that is refused, and the deletion of a session. */
void workload__step_parts(struct workload *workload, struct wal_session *session, uint32_t number,
                          struct rng *rng);
void workload__step_stale(struct workload *workload, struct wal_session *session, uint32_t number,
                          struct rng *rng);
void workload__step_delete(struct workload *workload, uint32_t number);

/* Whether any call may answer this when something was made to fail. */
bool workload__is_documented(enum wal_status status);

/* The result of a call of the current step. */
void workload__record_status(struct workload *workload, enum wal_status status);

#endif
