/*
 * lookup.c - one entry or one document by its name (lookup.h, SPEC.md 5.5,
 * 5.8). The first lookup of a handle creates an empty cursor, whose buffers
 * every later lookup reuses.
 */
#include "engine/read/lookup.h"

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
static enum wal_status check_session(struct wal_session *session,
                                     struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(session->core, error);

    if (status == WAL_OK) {
        status =
            wal__session_find(session->core, session->number, &summary, error);
        wal__core_unlock(session->core);
    }
    return status;
}

enum wal_status wal__lookup_entry(struct wal_session *session,
                                  struct wal__span id, struct wal_entry *entry,
                                  struct wal_error *error)
{
    struct wal__lookup *lookup = &session->lookup;
    enum wal_status status = check_session(session, error);

    WAL__ASSERT(entry->struct_size != 0);
    if (status != WAL_OK) {
        return status;
    }
    pthread_mutex_lock(&lookup->mutex);
    if (lookup->entries == NULL) {
        status =
            wal__entry_cursor_create_empty(session, &lookup->entries, error);
    }
    if (status == WAL_OK) {
        status = wal__entry_cursor_get(lookup->entries, id, entry, error);
    }
    pthread_mutex_unlock(&lookup->mutex);
    return status;
}

enum wal_status wal__lookup_doc(struct wal__core *core,
                                struct wal__lookup *lookup, uint32_t number,
                                struct wal__span key, uint64_t version,
                                struct wal_doc *doc, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    WAL__ASSERT(doc->struct_size != 0);
    pthread_mutex_lock(&lookup->mutex);
    if (lookup->docs == NULL) {
        status =
            wal__doc_cursor_create_empty(core, number, &lookup->docs, error);
    }
    if (status == WAL_OK) {
        status = wal__doc_cursor_get(lookup->docs, key, version, doc, error);
    }
    pthread_mutex_unlock(&lookup->mutex);
    return status;
}
