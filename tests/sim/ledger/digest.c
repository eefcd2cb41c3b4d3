/*
 * digest.c - a digest of the records of a session other than its entries, in
 * a store that may be damaged (ledger.h).
 */
#include "tests/sim/ledger/ledger.h"

static void mix(uint64_t *digest, uint64_t value)
{
    *digest = (*digest ^ value) * 0x9e3779b97f4a7c15u;
    *digest ^= *digest >> 29;
}

static void mix_text(uint64_t *digest, struct wal_slice text)
{
    const uint8_t *bytes = text.data;

    mix(digest, text.size);
    for (uint64_t i = 0; i < text.size; i++) {
        mix(digest, bytes[i]);
    }
}

static void note_error(enum wal_status status, const struct wal_error *error,
                       uint32_t *errors)
{
    if (status == WAL_END) {
        return;
    }
    if (status != WAL_ECORRUPT) {
        ledger_fail("reading documents, heads or metadata answers %d: %s (%s)",
                    status, error->text, error->file);
    }
    (*errors)++;
}

static void add_documents(struct wal_store *store, struct wal_session *session,
                          uint64_t *digest, uint32_t *errors)
{
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_DOC_CURSOR_HISTORY};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status =
        wal_doc_cursor_open(store, session, &options, &docs, &error);

    while (status == WAL_OK) {
        status = wal_doc_cursor_next(docs, &doc, &error);
        if (status == WAL_OK) {
            mix(digest, doc.version);
            mix(digest, doc.flags);
            mix_text(digest, doc.key);
            mix_text(digest, doc.value);
        }
    }
    wal_doc_cursor_close(docs);
    note_error(status, &error, errors);
}

static void add_heads(struct wal_session *session, uint64_t *digest,
                      uint32_t *errors)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_head_cursor *heads = NULL;
    enum wal_status status = wal_head_cursor_open(session, &heads, &error);

    while (status == WAL_OK) {
        status = wal_head_cursor_next(heads, &head, &error);
        if (status == WAL_OK) {
            mix(digest, head.stream);
            mix(digest, head.version);
            mix_text(digest, head.name);
            mix_text(digest, head.entry_id);
            mix_text(digest, head.note);
        }
    }
    wal_head_cursor_close(heads);
    note_error(status, &error, errors);
}

uint64_t ledger_digest_parts(struct wal_store *store,
                             struct wal_session *session, uint32_t *errors)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    uint64_t digest = 0;
    enum wal_status status;

    add_documents(store, session, &digest, errors);
    if (session == NULL) {
        return digest;
    }
    add_heads(session, &digest, errors);
    status = wal_session_get_info(session, &info, &error);
    if (status != WAL_OK) {
        note_error(status, &error, errors);
        return digest;
    }
    mix_text(&digest, info.metadata);
    mix_text(&digest, info.title);
    mix_text(&digest, info.cwd);
    mix_text(&digest, info.first_text);
    mix(&digest, info.metadata_version);
    mix(&digest, (uint64_t)info.created_ms);
    return digest;
}
