/*
 * document_reader.h - reading documents in the order of their keys (SPEC.md
 * 5.8).
 */
#ifndef AGENTWAL_ENGINE_READ_DOCUMENT_READER_H
#define AGENTWAL_ENGINE_READ_DOCUMENT_READER_H

#include "engine/store/session.h"

/* A version that is given, and which document it is of. */
struct wal__docs_item {
    size_t key_offset; /* in `keys` */
    uint32_t key_size;
    bool deleted;
    uint64_t sequence;
    uint64_t position;
};

struct wal_doc_cursor {
    struct wal__core *core;
    uint32_t number;       /* of the session, or WAL__STORE_NUMBER */
    uint32_t flags;        /* enum wal_doc_cursor_flag */
    struct wal__buf items; /* of struct wal__docs_item, in order */
    struct wal__buf keys;
    size_t next;
    struct wal__buf scratch;
};

/* Keys that begin with a zero byte are the engine's own: public calls refuse
 * them. */
static inline bool wal__doc_key_is_reserved(struct wal__span key)
{
    return key.size > 0 && key.data[0] == 0;
}

/* Reserved keys are among those given only when the prefix is of them. */
enum wal_status wal__docs_open(struct wal__core *core, uint32_t number,
                               const struct wal_doc_cursor_options *options,
                               struct wal_doc_cursor **docs,
                               struct wal_error *error) WAL_MUST_USE;
/* A cursor that returns no documents, for wal__docs_get. */
enum wal_status wal__docs_create_empty(struct wal__core *core, uint32_t number,
                                       struct wal_doc_cursor **docs,
                                       struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__docs_next(struct wal_doc_cursor *docs, struct wal_doc *doc,
                               struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__docs_get(struct wal_doc_cursor *docs, struct wal__span key,
                              uint64_t version, struct wal_doc *doc,
                              struct wal_error *error) WAL_MUST_USE;
void wal__docs_close(struct wal_doc_cursor *docs);

#endif
