/*
 * lookup.h - reading one entry or one document without a cursor of the caller
 * (SPEC.md 5.5, 5.8). A handle keeps the buffers that the slices of its last
 * lookup point to.
 *
 * Threads: any; the mutex is held during a lookup. The slices belong to the
 * thread whose turn it is with the handle.
 */
#ifndef AGENTWAL_ENGINE_READ_LOOKUP_H
#define AGENTWAL_ENGINE_READ_LOOKUP_H

#include "engine/read/document_reader.h"
#include "engine/read/entry_cursor.h"
#include "engine/store/session.h"

/* As wal_entry_get, for an id that is valid text. *is_damaged after
 * WAL_ECORRUPT: the record is, and no index; so of the next. */
enum wal_status wal__lookup_entry(struct wal_session *session,
                                  struct wal__span id, struct wal_entry *entry,
                                  bool *is_damaged,
                                  struct wal_error *error) WAL_MUST_USE;

/* As wal_doc_get: of the session with the number, or WAL__STORE_NUMBER. */
enum wal_status wal__lookup_doc(struct wal__core *core,
                                struct wal__lookup *lookup, uint32_t number,
                                struct wal__span key, uint64_t version,
                                struct wal_doc *doc, bool *is_damaged,
                                struct wal_error *error) WAL_MUST_USE;

void wal__lookup_init(struct wal__lookup *lookup);
void wal__lookup_deinit(struct wal__lookup *lookup);

#endif
