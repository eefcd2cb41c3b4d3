/*
 * session.h - handles of sessions.
 */
#ifndef AGENTWAL_NODE_SESSION_H
#define AGENTWAL_NODE_SESSION_H

#include "bindings/node/native/interface.h"
#include "bindings/node/native/store/handle.h"

/* A session that was opened, until JavaScript has it. */
struct opened_session {
    struct wal_session *session; /* NULL: none */
    char id[WAL_ID_SIZE];
    size_t id_size; /* of an id, which may have NUL */
};

/* Fills the id once the session is there, in the thread that opened it: its
 * promise may be settled when the store is closed. `status` is that of opening
 * it, and returned if it is a failure. Any thread. */
enum wal_status session_identify(struct opened_session *opened,
                                 enum wal_status status,
                                 struct wal_error *error);

/* The array [session, id], or null without a session; takes the session. */
napi_value session_make(struct call *call, struct store *store,
                        struct opened_session *opened);

/* Closes a session that JavaScript did not get. */
void session_discard(struct opened_session *opened);

#endif
