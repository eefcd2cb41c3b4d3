/*
 * request.h - a batch that is given to both sides (differential.h).
 */
#ifndef AGENTWAL_TESTS_SIM_DIFFERENTIAL_REQUEST_H
#define AGENTWAL_TESTS_SIM_DIFFERENTIAL_REQUEST_H

#include "tests/sim/differential/differential.h"

/* A batch and the arrays that it refers to. */
struct differential_request {
    uint32_t number;
    struct wal_session *session;
    struct wal_entry entries[DIFFERENTIAL_BATCH];
    struct wal_doc docs[DIFFERENTIAL_BATCH];
    struct wal_head heads[2];
    struct wal_session_change change;
    struct wal_batch batch;
    struct wal_append_options options;
};

/* A session, and nothing yet; false: there is no session. */
bool differential_request_init(struct differential *run,
                               struct differential_request *given);
/* The same, for this session; 0: there is none. */
bool differential_request_begin(struct differential *run, uint32_t number,
                                struct differential_request *given);
/* Entries that can be appended. */
void differential_fill_entries(struct differential *run,
                               struct differential_request *given);
/* Documents, heads and a change. */
void differential_fill_parts(struct differential *run,
                             struct differential_request *given);
/* The tail as it is, as what is expected. */
void differential_expect_tail(struct differential *run,
                              struct differential_request *given);
/* Hands the batch to the engine, in one of the ways that there are. */
enum wal_status differential_submit(struct differential *run,
                                    struct differential_request *given,
                                    struct wal_append_result *result);
/* Both sides take the batch. */
void differential_commit(struct differential *run,
                         struct differential_request *given);
void differential_compare_result(struct differential *run,
                                 const struct wal_append_result *result,
                                 const struct wal_append_result *wanted);

#endif
