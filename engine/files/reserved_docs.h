/*
 * reserved_docs.h - documents of a session whose keys begin with a zero byte
 * (SPEC.md 5.8). They belong to the engine: public calls refuse such keys and
 * do not return such documents. Any thread.
 */
#ifndef AGENTWAL_ENGINE_FILES_RESERVED_DOCS_H
#define AGENTWAL_ENGINE_FILES_RESERVED_DOCS_H

#include "engine/base/buf.h"
#include "engine/session/session.h"

#define WAL__DOC_ANY_VERSION UINT64_MAX

/*
 * Reads the newest version; *value, which may be NULL, is replaced by its JSON
 * value. WAL_ENOTFOUND when there is none, or it is deleted. version may be
 * NULL.
 */
enum wal_status wal__reserved_doc_get(struct wal_session *session,
                                      struct wal__span key,
                                      struct wal__buf *value, uint64_t *version,
                                      struct wal_error *error) WAL_MUST_USE;

/* Writes the document durably. expected: the version that must be the newest, 0
 * for none, or WAL__DOC_ANY_VERSION. WAL_ECONFLICT when another version is the
 * newest. version may be NULL. */
enum wal_status wal__reserved_doc_put(struct wal_session *session,
                                      struct wal__span key,
                                      struct wal__span value, uint64_t expected,
                                      uint64_t *version,
                                      struct wal_error *error) WAL_MUST_USE;
/* Deletes the document durably. WAL_ENOTFOUND when there is none. */
enum wal_status wal__reserved_doc_delete(struct wal_session *session,
                                         struct wal__span key,
                                         struct wal_error *error) WAL_MUST_USE;

#endif
