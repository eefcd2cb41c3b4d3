/*
 * moved.h - the document that says where a session has moved to, and the error
 * of an append to one that has (agentwal/admin.h, docs/engine/remote.md).
 *
 * A session has moved while its newest SESSION record has the flag. The
 * document "\0moved" of the session says where to, and remains when it is back.
 * A fork sees that of its source, which names the source.
 */
#ifndef AGENTWAL_ENGINE_WRITE_MOVED_H
#define AGENTWAL_ENGINE_WRITE_MOVED_H

#include "engine/store/session.h"

enum {
    WAL__MOVED_JSON_MAX = 4096 /* bytes of the document's value */
};

/* The key of the document. */
struct wal__span wal__moved_key(void);

/* Appends the value of the document of the session with this id. */
enum wal_status wal__moved_encode(const struct wal_session_move *move,
                                  struct wal__span id,
                                  struct wal__buf *out) WAL_MUST_USE;
/* False: it is not well-formed, or of another session. */
bool wal__moved_decode(struct wal__span value, struct wal__span id,
                       struct wal_session_move *move);

/* Fills *error for a session that has moved; returns WAL_ECLAIMED. State lock
 * for writing. */
enum wal_status wal__moved_fail(struct wal__core *core,
                                const struct wal__summary *summary,
                                struct wal_error *error);

#endif
