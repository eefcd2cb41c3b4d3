/*
 * around.c - the entries around a hit (around.h).
 */
#include "tools/search/around.h"

#include "tools/shown/shown.h"

enum {
    HIDDEN_MAX = 256 /* entries that depth counts and a cursor leaves out */
};

struct around {
    struct wal_store *store;
    struct wal_session *session;
    uint64_t count;
    search_around_fn *each;
    void *ctx;
    struct wal_error *error;
};

/* The branch up to the entry. */
static enum wal_status visit_before(const struct around *around,
                                    struct wal_slice id, uint32_t stream)
{
    struct wal_entry_cursor_options options =
        WAL_INIT(wal_entry_cursor_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    options.stream = stream;
    options.up_to = id;
    options.last = around->count + 1;
    status = wal_entry_cursor_open(around->session, &options, &cursor,
                                   around->error);
    while (status == WAL_OK || (cli_is_damage(status) && cursor != NULL)) {
        status = wal_entry_cursor_next(cursor, &entry, around->error);
        if (status == WAL_OK) {
            around->each(around->ctx, &entry, cli_slice_equal(entry.id, id));
        }
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

/* The live branch after the entry, which is at most this deep in it. */
static enum wal_status visit_after(const struct around *around,
                                   struct wal_slice id, uint32_t stream,
                                   uint64_t depth)
{
    struct wal_entry_cursor_options options =
        WAL_INIT(wal_entry_cursor_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    uint64_t left = around->count;
    bool is_found = false;
    enum wal_status status;

    options.stream = stream;
    options.skip = depth > HIDDEN_MAX ? depth - HIDDEN_MAX : 0;
    status = wal_entry_cursor_open(around->session, &options, &cursor,
                                   around->error);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK; /* `main` has no entry */
    }
    while ((status == WAL_OK || (cli_is_damage(status) && cursor != NULL)) &&
           left > 0) {
        status = wal_entry_cursor_next(cursor, &entry, around->error);
        if (status != WAL_OK) {
            continue;
        }
        if (is_found) {
            around->each(around->ctx, &entry, false);
            left--;
        } else if (entry.depth > depth) {
            break; /* it is on another branch */
        }
        is_found = is_found || cli_slice_equal(entry.id, id);
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END || (cli_is_damage(status) && left == 0) ? WAL_OK
                                                                     : status;
}

/* The messages of documents. */
static enum wal_status visit_documents(const struct around *around,
                                       struct wal_slice id)
{
    struct shown_documents documents = {.items = NULL};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status =
        wal_entry_cursor_open(around->session, NULL, &cursor, around->error);

    if (status == WAL_OK) {
        status = shown_documents_read(&documents, around->store,
                                      around->session, cursor, around->error);
    }
    for (size_t i = 0; i < documents.count && status == WAL_OK; i++) {
        if (!cli_slice_equal(documents.items[i].id, id)) {
            continue;
        }
        for (size_t k = i > around->count ? i - (size_t)around->count : 0;
             k < documents.count && k <= i + around->count; k++) {
            around->each(around->ctx, &documents.items[k], k == i);
        }
        break;
    }
    shown_documents_deinit(&documents);
    wal_entry_cursor_close(cursor);
    return status;
}

enum wal_status search_visit_around(struct wal_store *store,
                                    struct wal_session *session,
                                    struct wal_slice entry_id, uint64_t count,
                                    search_around_fn *each, void *ctx,
                                    struct wal_error *error)
{
    const struct around around = {.store = store,
                                  .session = session,
                                  .count = count,
                                  .each = each,
                                  .ctx = ctx,
                                  .error = error};
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status;
    uint32_t stream;
    uint64_t depth;

    if (entry_id.size == 0) {
        return WAL_OK; /* a title */
    }
    status = wal_entry_get(session, entry_id, &entry, error);
    if (status == WAL_ENOTFOUND) {
        return visit_documents(&around, entry_id);
    }
    if (status != WAL_OK) {
        return status;
    }
    stream = entry.stream;
    depth = entry.depth;
    status = visit_before(&around, entry_id, stream);
    return status == WAL_OK ? visit_after(&around, entry_id, stream, depth)
                            : status;
}
