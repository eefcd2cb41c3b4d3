/*
 * moved.h - the refusal of appends to a session that goes on in another store
 * (SPEC.md 5.10).
 *
 * A session has moved while its newest SESSION record has the flag. The
 * document (moved_document.h) says where to, and remains when it is back. A
 * fork sees that of its source, which names the source.
 */
#ifndef AGENTWAL_ENGINE_WRITE_MOVED_H
#define AGENTWAL_ENGINE_WRITE_MOVED_H

#include "engine/store/core.h"

/* Fills *error for a session that has moved; returns WAL_ECLAIMED. State lock
 * for writing. */
enum wal_status wal__moved_fail(struct wal__core *core,
                                const struct wal__summary *summary,
                                struct wal_error *error);

#endif
