/*
 * session_create.h - what creating sessions and forking them share (SPEC.md
 * 5.3, 5.4). Any thread; wal__new_session_resolve runs in the leader.
 */
#ifndef AGENTWAL_ENGINE_SESSION_SESSION_CREATE_H
#define AGENTWAL_ENGINE_SESSION_SESSION_CREATE_H

#include "engine/store/session.h"

/* A session that is being created, resolved under the append lock. */
struct wal__new_session {
    struct wal__core *core;
    uint32_t number; /* number of the new session */
    bool is_only;    /* no other session of its cwd may be listed */
    /* For a fork. */
    uint32_t depth; /* sessions it descends from; set when resolved */
    uint32_t source;
    struct wal__span fork_point; /* entry id; empty: the head */
    bool sees_none;              /* the fork is before the first entry */
    /* entry id, of a compaction in the fork, or empty */
    struct wal__span first_kept;
};

/* Checks the caller's options and converts them to a record, which borrows from
 * them. */
enum wal_status
wal__new_session_init_record(const struct wal_session_options *options,
                             struct wal__session_record *record,
                             struct wal_error *error) WAL_MUST_USE;

/* Sets the fields that the options left unset. WAL_ESCHEMA. */
enum wal_status
wal__new_session_set_defaults(const struct wal__core *core,
                              struct wal__session_record *record,
                              struct wal_error *error) WAL_MUST_USE;

/* Creates an operation whose first frame is the record; op->request is
 * new_session. */
enum wal_status wal__new_session_create_op(
    struct wal__core *core, const struct wal__session_record *record,
    struct wal__new_session *new_session, struct wal__op **op,
    struct wal_error *error) WAL_MUST_USE;

/* Under the append lock: checks that the id is free, and sets the session
 * number of all frames. */
enum wal_status wal__new_session_resolve(struct wal__core *core,
                                         struct wal__op *op,
                                         uint32_t *number) WAL_MUST_USE;

/* Commits the operation and returns a handle on the new session. */
enum wal_status
wal__new_session_commit(struct wal__core *core, struct wal__op *op,
                        const struct wal__new_session *new_session,
                        struct wal_session **session,
                        struct wal_error *error) WAL_MUST_USE;

#endif
