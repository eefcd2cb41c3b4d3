/*
 * view_import_documents.c - imports what another program changed in a view that is made of
 * documents (SPEC.md 10.6).
 *
 * A message is a document storage/message/SESSION/ID.json, and its parts are the documents in
 * storage/part/ID. It is read as one line, {info, parts}: each message that the view did not write
 * becomes an entry. A new title becomes the session's.
 *
 * Invariant: a message is imported only when the client is done with it, and after all messages
 * before it. No document is changed; links are not followed.
 *
 * Threads: one thread at a time per view.
 */
#include "convert/view/view.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/clients/client.h"
#include "convert/files/view_files.h"
#include "convert/import/import.h"
#include "convert/model/model_member.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "format/bytes/assert.h"
#include "format/json/json_out.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- new documents ------------------------------------------------------- */

/* A document on disk. */
struct view_document {
    const char *path; /* below the root */
    struct wal__json_span value;
    struct wal__file_stamp stamp;
};

/* A message that the view did not write. */
struct view_message {
    struct wal__json_span line; /* {info, parts} */
    const struct view_document *documents;
    size_t count;
    bool is_complete; /* the client is done with it */
    int64_t created_ms;
};

/* The owner sets the first four fields and zeroes the others. */
struct view_documents {
    const struct wal__view_files *files;
    struct wal__heap_arena *memory; /* lives as long as this */
    const char *session;            /* path of the session's document */
    const struct wal__dialect_read_ops *read_ops;
    char **names; /* of new messages, in order */
    size_t count;
    size_t capacity;
    size_t next;
};

#define DOCUMENT_MAX  ((uint64_t)16 << 20)
#define PATH_SIZE     4096
#define DOCUMENT_SIZE 1024 /* of a document's path: two names of a file */
#define PARTS_MAX     4096 /* parts of a message */

/* --- files --------------------------------------------------------------- */

static enum wal_status read_fd(struct view_documents *documents, int fd,
                               struct view_document *document, struct wal_error *error)
{
    size_t size = (size_t)document->stamp.size;
    uint8_t *data = wal__arena_alloc(&documents->memory->arena, size + 1);
    size_t have = 0;
    ssize_t got = 1;

    if (data == NULL) {
        return wal__no_memory(error);
    }
    while (have < size && got > 0) {
        got = pread(fd, data + have, size - have, (off_t)have);
        have += got > 0 ? (size_t)got : 0;
    }
    document->value = (struct wal__json_span){data, have};
    return have == size
               ? WAL_OK
               : wal__fail_at(error, WAL_ECHANGED, 0, document->path, have, "became shorter");
}

/* Reads a document below the root. WAL_ENOTFOUND: there is none. */
static enum wal_status view_document_read(struct view_documents *documents, const char *path,
                                          struct view_document *document, struct wal_error *error)
{
    const struct wal__view_files *files = documents->files;
    const char *name = NULL;
    int directory = -1;
    int fd = -1;
    enum wal_status status =
        wal__view_fs_open_parent(files->env, files->root, path, false, &directory, &name, error);

    if (status != WAL_OK) {
        return status;
    }
    document->path = wal__arena_copy_text(&documents->memory->arena, path);
    if (document->path == NULL) {
        status = wal__no_memory(error);
    } else {
        status = wal__view_fs_open(directory, name, &fd, &document->stamp, error);
    }
    close(directory);
    if (status == WAL_OK) {
        status = document->stamp.size <= DOCUMENT_MAX
                     ? read_fd(documents, fd, document, error)
                     : wal__fail_at(error, WAL_ETOOBIG, 0, path, 0, "is larger than 16 MiB");
        close(fd);
    }
    return status;
}

/* --- names --------------------------------------------------------------- */

static bool is_document_name(const char *name)
{
    return name[0] != '.' && wal__is_json_name(name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of documents in a folder, sorted. */
struct names {
    char **items;
    size_t count;
    size_t capacity;
};

/* Lists the documents of a folder below the root; `is_new`: only those that the view's state does
 * not have. A missing folder has none. */
static enum wal_status list_folder(struct view_documents *documents, const char *folder,
                                   bool is_new, struct names *names, struct wal_error *error)
{
    const struct wal__view_files *files = documents->files;
    char path[PATH_SIZE];
    const struct dirent *entry;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/%s", files->root, folder);
    dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const struct wal__view_file *file;
        char **items;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        file = wal__view_files_find(files, path);
        if (!is_document_name(entry->d_name) ||
            (is_new && file != NULL && file->lines.saved.is_known)) {
            continue;
        }
        items = wal__arena_grow(&documents->memory->arena, names->items, names->count,
                                &names->capacity, sizeof(items[0]));
        if (items == NULL || (items[names->count] = wal__arena_copy_text(&documents->memory->arena,
                                                                         entry->d_name)) == NULL) {
            closedir(dir);
            return wal__no_memory(error);
        }
        names->items = items;
        names->count++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    if (names->count > 0) {
        qsort(names->items, names->count, sizeof(names->items[0]), compare_names);
    }
    return WAL_OK;
}

/* Returns the last component of a path without .json, in the arena. */
static const char *stem_of(struct view_documents *documents, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *stem = wal__arena_copy_text(&documents->memory->arena, slash != NULL ? slash + 1 : path);

    if (stem != NULL && is_document_name(stem)) {
        stem[strlen(stem) - 5] = '\0';
    }
    return stem;
}

/* Lists the messages that the view's state does not have. */
static enum wal_status view_documents_list(struct view_documents *documents,
                                           struct wal_error *error)
{
    const char *session = stem_of(documents, documents->session);
    struct names names = {.items = NULL};
    char folder[PATH_SIZE];
    enum wal_status status;

    if (session == NULL) {
        return wal__no_memory(error);
    }
    snprintf(folder, sizeof(folder), "storage/message/%s", session);
    status = list_folder(documents, folder, true, &names, error);
    documents->names = names.items;
    documents->count = names.count;
    documents->next = 0;
    return status;
}

/* --- message ------------------------------------------------------------- */

static bool is_object(struct wal__json_span json)
{
    struct wal__json_member none = {.key = ""};

    return json.size > 0 && json.data[0] == '{' &&
           wal__model_members(json, &none, 1, NULL) == WAL__JSON_OK;
}

/* Joins the documents to one line, in the arena. */
static bool join(struct view_documents *documents, struct view_message *message)
{
    struct wal__arena *arena = &documents->memory->arena;
    struct wal__json_span *values = wal__arena_alloc(arena, message->count * sizeof(values[0]));

    for (size_t i = 0; values != NULL && i < message->count; i++) {
        values[i] = message->documents[i].value;
    }
    message->line = (struct wal__json_span){NULL, 0};
    if (values != NULL) {
        message->line = documents->read_ops->join(arena, values, message->count);
    }
    return message->line.data != NULL;
}

/* Reads the parts of a message. A part that is no object is being written. */
static enum wal_status read_parts(struct view_documents *documents, const char *folder,
                                  const struct names *names, struct view_document *items,
                                  struct view_message *message, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    char path[PATH_SIZE];

    for (size_t i = 0; i < names->count && status == WAL_OK; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names->items[i]);
        status = view_document_read(documents, path, &items[message->count], error);
        if (status == WAL_OK) {
            message->is_complete &= is_object(items[message->count].value);
            message->count++;
        }
    }
    return status;
}

/* Reads the next message. WAL_END: there is none. */
static enum wal_status view_documents_next(struct view_documents *documents,
                                           struct view_message *message, struct wal_error *error)
{
    const char *session = stem_of(documents, documents->session);
    struct view_document *items;
    struct names parts = {.items = NULL};
    const char *id;
    char path[DOCUMENT_SIZE];
    enum wal_status status;

    *message = (struct view_message){.count = 0};
    if (documents->next == documents->count) {
        return WAL_END;
    }
    id = stem_of(documents, documents->names[documents->next]);
    if (session == NULL || id == NULL) {
        return wal__no_memory(error);
    }
    snprintf(path, sizeof(path), "storage/part/%s", id);
    status = list_folder(documents, path, false, &parts, error);
    if (status != WAL_OK) {
        return status;
    }
    items = wal__arena_calloc(&documents->memory->arena, (parts.count + 1) * sizeof(items[0]));
    if (items == NULL) {
        return wal__no_memory(error);
    }
    message->documents = items;
    snprintf(path, sizeof(path), "storage/message/%s/%s", session,
             documents->names[documents->next++]);
    status = view_document_read(documents, path, &items[0], error);
    if (status != WAL_OK) {
        return status;
    }
    message->count = 1;
    if (!is_object(items[0].value) || parts.count > PARTS_MAX) {
        return WAL_OK;
    }
    message->is_complete =
        documents->read_ops->progress(items[0].value, &message->created_ms) != WAL__PROGRESS_NONE;
    snprintf(path, sizeof(path), "storage/part/%s", id);
    status = read_parts(documents, path, &parts, items, message, error);
    if (status != WAL_OK || !message->is_complete) {
        return status;
    }
    return join(documents, message) ? WAL_OK : wal__no_memory(error);
}

/* --- the import ---------------------------------------------------------- */

/* Makes a document the view's own, as it was read. */
static enum wal_status adopt(struct wal__view_importer *importer,
                             const struct view_document *document, struct wal_error *error)
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
    wal__fingerprint_update(&saved.fingerprint, document->value.data, document->value.size);
    saved.stable = saved.fingerprint;
    file->lines.saved = saved;
    file->is_current = false;
    return WAL_OK;
}

/* --- title --------------------------------------------------------------- */

static struct wal_slice text_of(struct wal__arena *arena, struct wal__json_span string)
{
    struct wal__json_span text = {NULL, 0};

    if (string.size > 2) {
        text = wal__arena_unescape(arena, string);
    }
    return (struct wal_slice){text.data, text.size};
}

/* Takes a title over that the client gave, if the log has not changed its own. */
static enum wal_status import_title(struct wal__view_importer *importer,
                                    const struct view_document *document, struct wal_error *error)
{
    const struct wal__session_snapshot *snapshot = &importer->snapshot;
    struct wal__arena *arena = &importer->import_arena.arena;
    struct wal__json_span title = wal__model_string(document->value, "title");
    struct wal__json_span old = snapshot->session.title;
    struct wal_slice before;
    struct wal_slice after;

    if (title.size == 0 ||
        importer->view->position.session_hash != wal__session_snapshot_hash(snapshot) ||
        (old.size > 0 ? wal__json_characters_equal(title, old)
                      : wal__model_text_is(title, "New session"))) {
        return WAL_OK;
    }
    before = text_of(arena, old);
    after = text_of(arena, title);
    return importer->import_arena.has_failed
               ? wal__no_memory(error)
               : wal__import_title(importer->view->session, before, after, error);
}

static bool has_content(const struct wal__saved_file *saved, const struct view_document *document)
{
    struct wal__fingerprint fingerprint = {.size = 0};

    wal__fingerprint_update(&fingerprint, document->value.data, document->value.size);
    return wal__fingerprint_equal(&fingerprint, &saved->fingerprint);
}

/* Imports the session's document. */
static enum wal_status import_session(struct wal__view_importer *importer,
                                      struct view_documents *documents, bool *is_changed,
                                      struct wal_error *error)
{
    struct view_document document;
    enum wal_status status = view_document_read(documents, documents->session, &document, error);

    if (status != WAL_OK || has_content(&importer->file->lines.saved, &document)) {
        return status;
    }
    status = import_title(importer, &document, error);
    if (status == WAL_OK) {
        *is_changed = true;
        status = adopt(importer, &document, error);
    }
    return status;
}

/* --- messages ------------------------------------------------------------ */

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

static enum wal_status import_message(
    struct wal__view_importer *importer, const struct view_message *message,
    enum wal_status (*append)(struct wal__view_importer *importer, struct wal__json_span line,
                              uint64_t offset, struct wal_error *error),
    struct wal_error *error)
{
    enum wal_status status;

    if (!set_time(importer, message->created_ms)) {
        return wal__no_memory(error);
    }
    /* The first path identifies the message in the marks of entries. */
    status =
        append(importer, message->line, wal__model_text_hash(message->documents[0].path), error);
    for (size_t i = 0; i < message->count && status == WAL_OK; i++) {
        status = adopt(importer, &message->documents[i], error);
    }
    return status;
}

enum wal_status wal__view_import_documents(
    struct wal__view_importer *importer,
    enum wal_status (*append)(struct wal__view_importer *importer, struct wal__json_span line,
                              uint64_t offset, struct wal_error *error),
    bool *is_changed, struct wal_error *error)
{
    struct view_documents documents = {.files = &importer->view->files,
                                       .memory = &importer->import_arena,
                                       .session = importer->file->lines.path,
                                       .read_ops = importer->view->dialect->read_ops};
    struct view_message message;
    enum wal_status status = view_documents_list(&documents, error);

    /* Lines name no parents, and follow what the client showed. */
    importer->has_loaded_ids = true;
    importer->last_written = wal__slice_from_text(importer->view->position.head);
    while (status == WAL_OK) {
        status = view_documents_next(&documents, &message, error);
        if (status == WAL_OK && !message.is_complete) {
            break;
        }
        if (status == WAL_OK) {
            *is_changed = true;
            status = import_message(importer, &message, append, error);
        }
    }
    status = status == WAL_END ? WAL_OK : status;
    return status == WAL_OK ? import_session(importer, &documents, is_changed, error) : status;
}
