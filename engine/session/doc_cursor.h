/*
 * doc_cursor.h - reading documents, ordered by key (SPEC.md 5.8), and writing those of the engine.
 * A cursor is used by one thread at a time; the state lock is taken inside.
 */
#ifndef AGENTWAL_ENGINE_SESSION_DOC_CURSOR_H
#define AGENTWAL_ENGINE_SESSION_DOC_CURSOR_H

#include "engine/base/error.h"
#include "engine/session/session.h"
#include "engine/session/write_batch.h"

/* A version to return, and the rank of its document. */
struct wal__doc_cursor_item {
    uint32_t document;
    bool deleted;
    bool is_unreadable; /* the key */
    uint64_t sequence;
    uint64_t position;
};

struct wal_doc_cursor {
    struct wal__core *core;
    uint32_t number;       /* session, or WAL__STORE_NUMBER */
    uint32_t flags;        /* enum wal_doc_cursor_flag */
    struct wal__buf items; /* of struct wal__doc_cursor_item, in order */
    size_t next;
    struct wal__record_buf scratch;
    struct wal__buf copy; /* of what one lookup returned (lookup.c) */
    /* As in struct wal_entry_cursor, of wal__doc_cursor_get. */
    bool is_damaged;
};

/* Keys that start with a zero byte are reserved for the engine: public calls refuse them. */
static inline bool wal__doc_key_is_reserved(struct wal__span key)
{
    return key.size > 0 && key.data[0] == 0;
}

/* A document's key, or its beginning, is not one of the engine's own. */
static inline enum wal_status wal__check_key(struct wal_slice key, struct wal_error *error)
{
    const struct wal__span span = {key.data, (size_t)key.size};

    return span.data == NULL || !wal__doc_key_is_reserved(span)
               ? WAL_OK
               : wal__invalid(error, "keys of documents that begin with a zero byte are "
                                     "reserved");
}

/* Opens a cursor. Reserved keys are returned only when the prefix is reserved. */
enum wal_status wal__doc_cursor_open(struct wal__core *core, uint32_t number,
                                     const struct wal_doc_cursor_options *options,
                                     struct wal_doc_cursor **docs,
                                     struct wal_error *error) WAL_MUST_USE;
/* A cursor that returns no documents, for wal__doc_cursor_get. */
enum wal_status wal__doc_cursor_create_empty(struct wal__core *core, uint32_t number,
                                             struct wal_doc_cursor **docs,
                                             struct wal_error *error) WAL_MUST_USE;
/* The next version, or WAL_END; texts are valid until the next call. After a failure other than
 * WAL_ENOMEM the next call returns the version after it. */
enum wal_status wal__doc_cursor_next(struct wal_doc_cursor *docs, struct wal_doc *doc,
                                     struct wal_error *error) WAL_MUST_USE;
/* The document with the key, in the given version (0: the newest). WAL_ENOTFOUND when there is none
 * or it was deleted. */
enum wal_status wal__doc_cursor_get(struct wal_doc_cursor *docs, struct wal__span key,
                                    uint64_t version, struct wal_doc *doc,
                                    struct wal_error *error) WAL_MUST_USE;
void wal__doc_cursor_close(struct wal_doc_cursor *docs);

/* --- the engine's own documents ------------------------------------------ */

#define WAL__DOC_ANY_VERSION UINT64_MAX

/* Reads the newest version; *value is replaced by its JSON value. WAL_ENOTFOUND when there is none,
 * or it is deleted. version may be NULL. */
enum wal_status wal__reserved_doc_get(struct wal_session *session, struct wal__span key,
                                      struct wal__buf *value, uint64_t *version,
                                      struct wal_error *error) WAL_MUST_USE;
/* Writes the document durably. expected: the version that must be the newest, 0 for none, or
 * WAL__DOC_ANY_VERSION. WAL_ECONFLICT when another version is the newest. version may be NULL. */
enum wal_status wal__reserved_doc_put(struct wal_session *session, struct wal__span key,
                                      struct wal__span value, uint64_t expected, uint64_t *version,
                                      struct wal_error *error) WAL_MUST_USE;
/* Commits a batch that may have reserved documents. *version, unless it is NULL, is set to that of
 * the first document. */
enum wal_status wal__reserved_commit(struct wal_session *session, const struct wal_batch *batch,
                                     enum wal__batch_mode mode, enum wal_durability durability,
                                     uint64_t *version, struct wal_error *error) WAL_MUST_USE;

#endif
