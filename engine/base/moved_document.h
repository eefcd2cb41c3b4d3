/*
 * moved_document.h - the document of a session that says where it has moved to (agentwal/admin.h,
 * SPEC.md 5.10).
 *
 * Threads: any.
 */
#ifndef AGENTWAL_ENGINE_BASE_MOVED_DOCUMENT_H
#define AGENTWAL_ENGINE_BASE_MOVED_DOCUMENT_H

#include <stdbool.h>

#include "agentwal/admin.h"
#include "engine/base/heap.h"
#include "format/bytes/bytes.h"

/* The key of the document. */
struct wal__span wal__moved_key(void);

/* Appends the value of the document of the session with this id: WAL_OK or WAL_ENOMEM. */
enum wal_status wal__moved_encode(const struct wal_session_move *move, struct wal__span id,
                                  struct wal__buf *out) WAL_MUST_USE;
/* False: it is not well-formed, or of another session. */
bool wal__moved_decode(struct wal__span value, struct wal__span id, struct wal_session_move *move);

#endif
