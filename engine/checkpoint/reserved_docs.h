/*
 * reserved_docs.h - documents of a session whose keys begin with a zero byte
 * (SPEC.md 5.8): the engine's own. Public calls refuse them and leave them
 * out. Any thread.
 */
#ifndef AGENTWAL_ENGINE_CHECKPOINT_RESERVED_DOCS_H
#define AGENTWAL_ENGINE_CHECKPOINT_RESERVED_DOCS_H

#include "engine/base/buf.h"
#include "engine/store/session.h"

#define WAL__DOC_ANY_VERSION UINT64_MAX

/*
 * The newest version, its JSON value in *value (emptied first; may be null).
 * WAL_ENOTFOUND when there is none, or it was deleted. version may be null.
 */
enum wal_status wal__reserved_doc_get(struct wal_session *session,
                                      struct wal__span key,
                                      struct wal__buf *value, uint64_t *version,
                                      struct wal_error *error) WAL_MUST_USE;

/* Durably. expected: the version that must be the newest, 0: none,
 * WAL__DOC_ANY_VERSION; WAL_ECONFLICT where it is not. version may be null. */
enum wal_status wal__reserved_doc_put(struct wal_session *session,
                                      struct wal__span key,
                                      struct wal__span value, uint64_t expected,
                                      uint64_t *version,
                                      struct wal_error *error) WAL_MUST_USE;
/* WAL_ENOTFOUND when it is not there. */
enum wal_status wal__reserved_doc_delete(struct wal_session *session,
                                         struct wal__span key,
                                         struct wal_error *error) WAL_MUST_USE;

#endif
