/*
 * lookup.c - one entry or one document by its name (SPEC.md 5.5, 5.8). The first lookup of a handle
 * creates an empty cursor, whose buffers every later lookup reuses.
 */
#include "engine/session/session.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/session/doc_cursor.h"
#include "engine/session/entry_cursor.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

void wal__lookup_init(struct wal__lookup *lookup)
{
    pthread_mutex_init(&lookup->mutex, NULL);
    lookup->entries = NULL;
    lookup->docs = NULL;
}

void wal__lookup_deinit(struct wal__lookup *lookup)
{
    wal__entry_cursor_close(lookup->entries);
    wal__doc_cursor_close(lookup->docs);
    pthread_mutex_destroy(&lookup->mutex);
}

/* A deleted session has no entries to be read. */
static enum wal_status check_exists(struct wal_session *session, struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(session->core, error);

    if (status == WAL_OK) {
        status = wal__session_find(session->core, session->number, &summary, error);
        wal__core_unlock(session->core);
    }
    return status;
}

/* Copies the texts out of the files: what a lookup returned may be kept for long, and must not keep
 * a file that compaction replaces. */
static enum wal_status copy_texts(struct wal__buf *copy, struct wal_slice *const *texts,
                                  size_t count, struct wal_error *error)
{
    size_t size = 0;
    uint8_t *at;

    for (size_t i = 0; i < count; i++) {
        size += (size_t)texts[i]->size;
    }
    copy->size = 0;
    if (wal__buf_reserve(copy, size, &at) != WAL_OK) {
        return wal__no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        if (texts[i]->size > 0) {
            memcpy(at, texts[i]->data, (size_t)texts[i]->size);
            texts[i]->data = at;
            at += texts[i]->size;
        }
    }
    return WAL_OK;
}

/* A payload that is a blob was read into memory. */
static enum wal_status copy_entry(struct wal_entry_cursor *cursor, struct wal_entry *entry,
                                  struct wal_error *error)
{
    struct wal_slice *const texts[] = {&entry->id,        &entry->parent_id, &entry->type,
                                       &entry->timestamp, &entry->run_id,    &entry->meta,
                                       &entry->payload};
    size_t count = sizeof(texts) / sizeof(texts[0]);
    bool is_loaded = cursor->payload_buf.size > 0;

    return copy_texts(&cursor->copy, texts, is_loaded ? count - 1 : count, error);
}

static enum wal_status copy_doc(struct wal_doc_cursor *cursor, struct wal_doc *doc,
                                struct wal_error *error)
{
    struct wal_slice *const texts[] = {&doc->key, &doc->value};

    return copy_texts(&cursor->copy, texts, 2, error);
}

/* As wal_entry_get, for an id that is valid text. *is_damaged after WAL_ECORRUPT: the record is,
 * and no index; so of the next. */
static enum wal_status lookup_entry(struct wal_session *session, struct wal__span id,
                                    struct wal_entry *entry, bool *is_damaged,
                                    struct wal_error *error)
{
    struct wal__lookup *lookup = &session->lookup;
    struct wal_entry found = {.struct_size = entry->struct_size};
    enum wal_status status = check_exists(session, error);

    WAL__ASSERT(entry->struct_size != 0);
    *is_damaged = false;
    if (status != WAL_OK) {
        return status;
    }
    pthread_mutex_lock(&lookup->mutex);
    if (lookup->entries == NULL) {
        status = wal__entry_cursor_create_empty(session, &lookup->entries, error);
    }
    if (status == WAL_OK) {
        status = wal__entry_cursor_get(lookup->entries, id, &found, error);
        *is_damaged = lookup->entries->is_damaged;
    }
    if (status == WAL_OK) {
        status = copy_entry(lookup->entries, &found, error);
    }
    if (status == WAL_OK) {
        *entry = found;
    }
    if (lookup->entries != NULL) {
        wal__record_buf_release(&lookup->entries->scratch);
        wal__record_buf_release(&lookup->entries->aux_scratch);
    }
    pthread_mutex_unlock(&lookup->mutex);
    return status;
}

/* As wal_doc_get: of the session with the number, or WAL__STORE_NUMBER. */
static enum wal_status lookup_doc(struct wal__core *core, struct wal__lookup *lookup,
                                  uint32_t number, struct wal__span key, uint64_t version,
                                  struct wal_doc *doc, bool *is_damaged, struct wal_error *error)
{
    struct wal_doc found = {.struct_size = doc->struct_size};
    enum wal_status status = WAL_OK;

    WAL__ASSERT(doc->struct_size != 0);
    *is_damaged = false;
    pthread_mutex_lock(&lookup->mutex);
    if (lookup->docs == NULL) {
        status = wal__doc_cursor_create_empty(core, number, &lookup->docs, error);
    }
    if (status == WAL_OK) {
        status = wal__doc_cursor_get(lookup->docs, key, version, &found, error);
        *is_damaged = lookup->docs->is_damaged;
    }
    if (status == WAL_OK) {
        status = copy_doc(lookup->docs, &found, error);
    }
    if (status == WAL_OK) {
        *doc = found;
    }
    if (lookup->docs != NULL) {
        wal__record_buf_release(&lookup->docs->scratch);
    }
    pthread_mutex_unlock(&lookup->mutex);
    return status;
}

enum wal_status wal_entry_get(struct wal_session *session, struct wal_slice id,
                              struct wal_entry *entry, struct wal_error *error)
{
    uint64_t looked = 0;
    bool is_damaged = false;
    struct wal__span span;
    struct wal_entry own;
    struct wal_entry *out = &own;
    enum wal_status status = wal__check_output(session == NULL ? NULL : session->core,
                                               WAL__STRUCT(wal_entry), entry, error);

    if (status == WAL_OK) {
        status = wal__text_check(id, WAL__ID_MAX, "entry's id", &span, error);
    }
    if (status == WAL_OK) {
        out = wal__struct_target(WAL__STRUCT(wal_entry), entry, &own);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_read_again(session->core, status, is_damaged, &looked)) {
        status = lookup_entry(session, span, out, &is_damaged, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_entry), entry, out);
    }
    return status;
}

/* Where the document is looked up: the lookup of the session, or with a null session of the
 * store. */
static enum wal_status check_lookup(struct wal_store *store, struct wal_session *session,
                                    const struct wal_doc *doc, struct wal__core **core,
                                    struct wal_error *error)
{
    *core = store == NULL ? NULL : &store->core;
    if (session != NULL && store != NULL && session->core != *core) {
        return wal__invalid(error, "the session is of another store");
    }
    *core = session != NULL ? session->core : *core;
    return wal__check_output(*core, WAL__STRUCT(wal_doc), doc, error);
}

enum wal_status wal_doc_get(struct wal_store *store, struct wal_session *session,
                            struct wal_slice key, uint64_t version, struct wal_doc *doc,
                            struct wal_error *error)
{
    uint64_t looked = 0;
    bool is_damaged = false;
    struct wal__core *core = NULL;
    struct wal__span span;
    struct wal_doc own;
    struct wal_doc *out = &own;
    enum wal_status status = check_lookup(store, session, doc, &core, error);

    if (status == WAL_OK) {
        status = wal__text_check(key, WAL__KEY_MAX, "document's key", &span, error);
    }
    if (status == WAL_OK) {
        status = wal__check_key(key, error);
    }
    if (status == WAL_OK) {
        out = wal__struct_target(WAL__STRUCT(wal_doc), doc, &own);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_read_again(core, status, is_damaged, &looked)) {
        status = lookup_doc(core, session != NULL ? &session->lookup : &store->lookup,
                            session != NULL ? session->number : WAL__STORE_NUMBER, span, version,
                            out, &is_damaged, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_doc), doc, out);
    }
    return status;
}
