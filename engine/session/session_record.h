/*
 * session_record.h - writes the SESSION record of a session anew. Any thread,
 * without a lock.
 */
#ifndef AGENTWAL_ENGINE_SESSION_SESSION_RECORD_H
#define AGENTWAL_ENGINE_SESSION_SESSION_RECORD_H

#include "engine/store/session.h"
#include "engine/write/write_batch.h"

/* Commits an operation whose only frame is the record. `resolve` decides under
 * the append lock, with op->request, whether it is written, or skipped. */
enum wal_status wal__session_write_record(
    struct wal__core *core, uint32_t number,
    const struct wal__session_record *record,
    enum wal_status (*resolve)(void *ctx, struct wal__op *op), void *request,
    struct wal_error *error) WAL_MUST_USE;

#endif
