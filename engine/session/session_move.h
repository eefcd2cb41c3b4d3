/*
 * session_move.h - marks a session that goes on in another store
 * (agentwal/admin.h). Any thread, without a lock.
 */
#ifndef AGENTWAL_ENGINE_SESSION_SESSION_MOVE_H
#define AGENTWAL_ENGINE_SESSION_SESSION_MOVE_H

#include "engine/store/session.h"

/* Records a move durably: the document, then the flag, so that a refused append
 * can say where to. */
enum wal_status wal__session_set_move(struct wal_session *session,
                                      const struct wal_session_move *move,
                                      struct wal_error *error) WAL_MUST_USE;
/* WAL_ENOTFOUND: there was none. */
enum wal_status wal__session_get_move(struct wal_session *session,
                                      struct wal_session_move *move,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
