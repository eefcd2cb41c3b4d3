/*
 * session_create.h - what making sessions and forking them share (SPEC.md 5.3,
 * 5.4).
 */
#ifndef AGENTWAL_ENGINE_SESSION_SESSION_CREATE_H
#define AGENTWAL_ENGINE_SESSION_SESSION_CREATE_H

#include "engine/store/session.h"

/* A new session on its way, decided under the lease. */
struct wal__new_session {
    struct wal__core *core;
    uint32_t number; /* given to the new session */
    /* Of a fork. */
    uint32_t depth; /* of its lineage, found when it is decided */
    uint32_t source;
    struct wal__span fork_point; /* empty: the head */
    struct wal__span first_kept; /* of a compaction in the fork, or empty */
};

/* The caller's options as a record, checked. */
enum wal_status
wal__new_session_init_record(const struct wal_session_options *options,
                             struct wal__session_record *record,
                             struct wal_error *error) WAL_MUST_USE;

/* What the options left open; WAL_ESCHEMA. */
enum wal_status
wal__new_session_set_defaults(const struct wal__core *core,
                              struct wal__session_record *record,
                              struct wal_error *error) WAL_MUST_USE;

/* An operation whose first frame is the record; `new_session` is its
 * subject. */
enum wal_status wal__new_session_create_op(
    struct wal__core *core, const struct wal__session_record *record,
    struct wal__new_session *new_session, struct wal__op **op,
    struct wal_error *error) WAL_MUST_USE;

/* Under the lease: the id must be free; numbers all frames. */
enum wal_status wal__new_session_resolve(struct wal__core *core,
                                         struct wal__op *op,
                                         uint32_t *number) WAL_MUST_USE;

/* Commits what makes the session, and gives a handle on it. */
enum wal_status
wal__new_session_commit(struct wal__core *core, struct wal__op *op,
                        const struct wal__new_session *new_session,
                        struct wal_session **session,
                        struct wal_error *error) WAL_MUST_USE;

#endif
