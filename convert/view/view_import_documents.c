/*
 * view_import_documents.c - imports changes of a view that is made of documents
 * (view_import_documents.h).
 *
 * Invariant: a message is imported only when the client is done with it, and
 * after all messages before it.
 *
 * Threads: one thread at a time per view.
 */
#include "convert/view/view_import_documents.h"

#include <string.h>

#include "convert/model/model_member.h"
#include "convert/view/view_documents.h"
#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/json/json_character.h"
#include "format/payload/timestamp.h"

/* Makes a document the view's own, as it was read. */
static enum wal_status adopt(struct wal__view_importer *importer,
                             const struct wal__view_document *document,
                             struct wal_error *error)
{
    struct wal__view_files *files = &importer->view->files;
    struct wal__view_file *file = wal__view_files_find(files, document->path);
    struct wal__saved_file saved = {.is_known = true, .stamp = document->stamp};

    if (file == NULL) {
        file = wal__view_files_add(files, document->path, true);
    }
    if (file == NULL) {
        return wal__no_memory(error);
    }
    wal__fingerprint_update(&saved.fingerprint, document->value.data,
                            document->value.size);
    saved.stable = saved.fingerprint;
    file->lines.saved = saved;
    file->is_current = false;
    return WAL_OK;
}

/* ---------------------------------------------------------------- title --- */

struct rename {
    struct wal_slice before;
    struct wal_slice title;
};

static int32_t set_title(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    const struct rename *rename = ctx;

    if (!wal__slice_equal(now->title, rename->before)) {
        return 1; /* the session got another title meanwhile */
    }
    change->fields = WAL_CHANGE_TITLE;
    change->title = rename->title;
    return 0;
}

static struct wal_slice text_of(struct wal__arena *arena,
                                struct wal__json_span string)
{
    struct wal__json_span text = {NULL, 0};

    if (string.size > 2) {
        text = wal__arena_unescape(arena, string);
    }
    return (struct wal_slice){text.data, text.size};
}

/* Takes a title over that the client gave, if the log has not changed its
 * own. */
static enum wal_status import_title(struct wal__view_importer *importer,
                                    const struct wal__view_document *document,
                                    struct wal_error *error)
{
    const struct wal__session_snapshot *snapshot = &importer->snapshot;
    struct wal__arena *arena = &importer->import_arena.arena;
    struct wal__json_member title = {.key = "title"};
    struct wal__json_span old = snapshot->session.title;
    struct rename rename;
    enum wal_status status;

    if (wal__model_members(document->value, &title, 1, NULL) != WAL__JSON_OK ||
        title.value.kind != WAL__JSON_STRING ||
        importer->view->position.session_hash !=
            wal__session_snapshot_hash(snapshot) ||
        (old.size > 0 ? wal__json_characters_equal(title.value.span, old)
                      : wal__model_text_is(title.value.span, "New session"))) {
        return WAL_OK;
    }
    rename.before = text_of(arena, old);
    rename.title = text_of(arena, title.value.span);
    if (importer->import_arena.has_failed) {
        return wal__no_memory(error);
    }
    status =
        wal_session_update(importer->view->session, set_title, &rename, error);
    return status == WAL_ECALLBACK ? WAL_OK : status;
}

static bool has_content(const struct wal__saved_file *saved,
                        const struct wal__view_document *document)
{
    struct wal__fingerprint fingerprint = {.size = 0};

    wal__fingerprint_update(&fingerprint, document->value.data,
                            document->value.size);
    return wal__fingerprint_equal(&fingerprint, &saved->fingerprint);
}

/* Imports the session's document. */
static enum wal_status import_session(struct wal__view_importer *importer,
                                      struct wal__view_documents *documents,
                                      bool *is_changed, struct wal_error *error)
{
    struct wal__view_document document;
    enum wal_status status = wal__view_document_read(
        documents, documents->session, &document, error);

    if (status != WAL_OK ||
        has_content(&importer->file->lines.saved, &document)) {
        return status;
    }
    status = import_title(importer, &document, error);
    if (status == WAL_OK) {
        *is_changed = true;
        status = adopt(importer, &document, error);
    }
    return status;
}

/* ------------------------------------------------------------- messages --- */

static bool set_time(struct wal__view_importer *importer, int64_t ms)
{
    struct wal__arena *arena = &importer->import_arena.arena;
    uint8_t text[WAL__MODEL_TIME_SIZE];
    struct wal__json_span time = wal__model_time_write(ms, text);

    time.data += 1; /* without quotes */
    time.size -= 2;
    time = wal__arena_copy(arena, time);
    importer->time = (struct wal_slice){time.data, time.size};
    return time.data != NULL;
}

/* Identifies the message in the marks of entries. */
static uint64_t offset_of(const struct wal__view_message *message)
{
    const char *path = message->documents[0].path;

    return wal__model_hash(
        0, (struct wal__json_span){(const uint8_t *)path, strlen(path)});
}

static enum wal_status import_message(
    struct wal__view_importer *importer,
    const struct wal__view_message *message,
    enum wal_status (*append)(struct wal__view_importer *importer,
                              struct wal__json_span line, uint64_t offset,
                              struct wal_error *error),
    struct wal_error *error)
{
    enum wal_status status;

    if (!set_time(importer, message->created_ms)) {
        return wal__no_memory(error);
    }
    status = append(importer, message->line, offset_of(message), error);
    for (size_t i = 0; i < message->count && status == WAL_OK; i++) {
        status = adopt(importer, &message->documents[i], error);
    }
    return status;
}

enum wal_status wal__view_import_documents(
    struct wal__view_importer *importer,
    enum wal_status (*append)(struct wal__view_importer *importer,
                              struct wal__json_span line, uint64_t offset,
                              struct wal_error *error),
    bool *is_changed, struct wal_error *error)
{
    struct wal__view_documents documents = {.files = &importer->view->files,
                                            .memory = &importer->import_arena,
                                            .session =
                                                importer->file->lines.path};
    struct wal__view_message message;
    enum wal_status status = wal__view_documents_list(&documents, error);

    /* Lines name no parents, and follow what the client showed. */
    importer->has_loaded_ids = true;
    importer->last_written =
        wal__slice_from_text(importer->view->position.head);
    while (status == WAL_OK) {
        status = wal__view_documents_next(&documents, &message, error);
        if (status == WAL_OK && !message.is_complete) {
            break;
        }
        if (status == WAL_OK) {
            *is_changed = true;
            status = import_message(importer, &message, append, error);
        }
    }
    status = status == WAL_END ? WAL_OK : status;
    return status == WAL_OK
               ? import_session(importer, &documents, is_changed, error)
               : status;
}
