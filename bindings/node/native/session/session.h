/*
 * session.h - handles of sessions.
 */
#ifndef AGENTWAL_NODE_SESSION_H
#define AGENTWAL_NODE_SESSION_H

#include "bindings/node/native/store/handle.h"

/* handle->object is a struct wal_session. */
extern const struct handle_type session_type;

/* The arguments of a session to be created, from `first` on: id, cwd, project,
 * title, parentId, source, metadata, schemaVersion, created. */
void session_read_options(struct call *call, size_t first,
                          struct wal_session_options *options);

/* The object of a session's state, with metadata as text. */
napi_value session_make_info(struct call *call,
                             const struct wal_session_info *info);

#endif
