/*
 * documents.c - reads the messages of a session that was imported as documents.
 *
 * Invariant: the slices of the items point into `text` and `texts`, which stay
 * as they are once all of the export is read.
 *
 * Threads: the tool has one thread.
 */
#include "tools/shown/documents.h"

#include <stdlib.h>
#include <string.h>

#include "agentwal/convert.h"
#include "convert/source/source_name.h"
#include "format/json/json_value.h"
#include "tools/cli/cli.h"

static int32_t add_text(void *ctx, const void *data, uint64_t size)
{
    struct shown_documents *documents = ctx;

    while (documents->text_capacity - documents->text_size < size) {
        documents->text = cli_reserve(documents->text, documents->text_capacity,
                                      &documents->text_capacity, sizeof(char));
    }
    memcpy(documents->text + documents->text_size, data, (size_t)size);
    documents->text_size += (size_t)size;
    return 0;
}

static enum wal_status read_text(struct shown_documents *documents,
                                 struct wal_store *store,
                                 struct wal_session *session,
                                 struct wal_error *error)
{
    const struct wal_view_options options = {
        .struct_size = sizeof(options),
        .dialect = cli_slice("entries"),
        .put = add_text,
        .ctx = documents,
    };
    struct wal_view *view = NULL;
    enum wal_status status =
        wal_view_open(store, session, &options, &view, error);

    if (status == WAL_OK) {
        status = wal_view_flush(view, NULL, error);
    }
    wal_view_close(view);
    return status;
}

/* Adds the lines of the export as entries: without the header, which is the
 * parent of roots, up to the first one that the log has. */
static void add_entries(struct shown_documents *documents,
                        struct wal_entry_cursor *cursor)
{
    const char *line = documents->text;
    const char *end = line + documents->text_size;
    struct wal_entry header = WAL_INIT(wal_entry);
    struct wal_entry known = WAL_INIT(wal_entry);
    struct wal_entry entry;
    const char *newline;
    char why[128];

    for (; line < end; line = newline + 1) {
        newline = memchr(line, '\n', (size_t)(end - line));
        entry = (struct wal_entry)WAL_INIT(wal_entry);
        if (newline == NULL ||
            !cli_entry_read(line, (size_t)(newline - line), &documents->texts,
                            &entry, why, sizeof(why))) {
            return;
        }
        if (line == documents->text) {
            header = entry;
            continue;
        }
        if (wal_entry_cursor_get(cursor, entry.id, &known, NULL) !=
            WAL_ENOTFOUND) {
            return;
        }
        if (cli_slice_equal(entry.type, cli_slice("session_info"))) {
            continue; /* the title, which is the session's */
        }
        if (cli_slice_equal(entry.parent_id, header.id)) {
            entry.parent_id = cli_slice(NULL);
        }
        documents->items =
            cli_reserve(documents->items, documents->count,
                        &documents->capacity, sizeof(documents->items[0]));
        documents->items[documents->count++] = entry;
    }
}

static bool has_document(struct wal_store *store, struct wal_session *session)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal_doc_cursor *cursor = NULL;
    bool is_found =
        wal_doc_cursor_open(store, session, NULL, &cursor, NULL) == WAL_OK &&
        wal_doc_cursor_next(cursor, &doc, NULL) != WAL_END;

    wal_doc_cursor_close(cursor);
    return is_found;
}

/* Whether messages may be in documents: of an import, or of its fork, which
 * has them too. */
static bool has_messages(struct wal_store *store, struct wal_session *session,
                         const struct wal_session_info *info)
{
    struct wal__source source;

    return (info->flags & WAL_SESSION_FORK) != 0
               ? has_document(store, session)
               : info->documents > 0 &&
                     wal__source_parse(info->source, &source) &&
                     strcmp(source.dialect, "opencode") == 0;
}

enum wal_status shown_documents_read(struct shown_documents *documents,
                                     struct wal_store *store,
                                     struct wal_session *session,
                                     struct wal_entry_cursor *cursor,
                                     struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status != WAL_OK || !has_messages(store, session, &info)) {
        return status;
    }
    status = read_text(documents, store, session, error);
    if (status == WAL_OK && documents->text_size > 0) {
        add_entries(documents, cursor);
    }
    return status;
}

void shown_documents_deinit(struct shown_documents *documents)
{
    free(documents->items);
    free(documents->text);
    cli_texts_deinit(&documents->texts);
    *documents = (struct shown_documents){.items = NULL};
}

size_t shown_documents_parent(const struct shown_documents *documents,
                              const struct wal_entry *entry)
{
    size_t count = documents->count;
    struct wal__json_token after = {.kind = WAL__JSON_NONE};

    if (entry->parent_id.size > 0 || entry->stream != 0 || count == 0) {
        return count;
    }
    if (entry->meta.size > 0 &&
        wal__json_find(entry->meta.data, (size_t)entry->meta.size, "after",
                       &after) == WAL__JSON_OK &&
        after.kind == WAL__JSON_STRING) {
        for (size_t i = 0; i < count; i++) {
            const struct wal_slice *id = &documents->items[i].id;
            if (wal__json_string_equals(after.span, id->data,
                                        (size_t)id->size)) {
                return i;
            }
        }
    }
    return count - 1;
}

size_t shown_documents_compaction(const struct shown_documents *documents)
{
    for (size_t i = documents->count; i > 0; i--) {
        if (cli_slice_equal(documents->items[i - 1].type,
                            cli_slice(WAL_TYPE_COMPACTION_SUMMARY))) {
            return i - 1;
        }
    }
    return 0;
}
