/*
 * view_import.c - imports lines that another program appended to a view's main
 * file (view_import.h, SPEC.md 10.6).
 *
 * Lines are appended to the session first; then the state records the whole
 * file as the view's own. After an interruption between the two, the position
 * hash in each entry's meta (JSON key "mark") prevents a second append.
 *
 * Invariant: the file is only read.
 *
 * Threads: one thread at a time per view.
 */
#include "convert/view/view_import.h"

#include <string.h>
#include <unistd.h>

#include "convert/view/view_import_documents.h"
#include "convert/view/view_import_line.h"
#include "engine/base/error.h"
#include "format/bytes/assert.h"

#define READ_SIZE  ((size_t)1 << 20)
#define BATCH_SIZE ((size_t)4 << 20)

/* -------------------------------------------------------------- lines --- */

static enum wal_status append_batch(struct wal__view_importer *importer,
                                    struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    enum wal_status status = WAL_OK;

    if (importer->import_arena.has_failed || importer->scratch.has_failed) {
        return wal__no_memory(error);
    }
    if (importer->count > 0) {
        status = wal_append(importer->view->session, importer->entries,
                            importer->count, &options, &result, error);
        importer->report.appended += result.appended;
        importer->report.duplicates += result.duplicates;
    }
    importer->count = 0;
    importer->size = 0;
    wal__heap_arena_reset(&importer->scratch);
    return status;
}

static enum wal_status import_line(struct wal__view_importer *importer,
                                   const uint8_t *data, size_t size,
                                   struct wal_error *error)
{
    struct wal__imported_line imported = {.text = {data, size},
                                          .offset = importer->fingerprint.size};
    enum wal_status status = WAL_OK;

    importer->report.lines++;
    if (wal__line_is_blank(data, size)) {
        return WAL_OK;
    }
    if (importer->count == WAL__IMPORT_BATCH_MAX ||
        (importer->count > 0 && importer->size + size > BATCH_SIZE)) {
        status = append_batch(importer, error);
    }
    if (status == WAL_OK) {
        status = wal__view_import_line(importer, &imported, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (imported.is_known) {
        importer->report.duplicates++;
        return WAL_OK;
    }
    WAL__ASSERT(importer->count < WAL__IMPORT_BATCH_MAX);
    importer->entries[importer->count++] = imported.entry;
    importer->size += size;
    return WAL_OK;
}

/* Imports a message of a view that is made of documents. */
static enum wal_status append_message(struct wal__view_importer *importer,
                                      struct wal__json_span line,
                                      uint64_t offset, struct wal_error *error)
{
    enum wal_status status;

    importer->fingerprint.size = offset;
    status = import_line(importer, line.data, line.size, error);
    return status == WAL_OK ? append_batch(importer, error) : status;
}

/* Imports the complete lines in the buffer and keeps the partial line. */
static enum wal_status import_buffer(struct wal__view_importer *importer,
                                     size_t *scanned, struct wal_error *error)
{
    struct wal__buf *buf = &importer->buf;
    const uint8_t *newline;
    enum wal_status status = WAL_OK;
    size_t at = 0;

    while (status == WAL_OK &&
           (newline = memchr(buf->data + *scanned, '\n',
                             buf->size - *scanned)) != NULL) {
        size_t size = (size_t)(newline - buf->data) - at;
        status = import_line(importer, buf->data + at, size, error);
        wal__fingerprint_update(&importer->fingerprint, buf->data + at,
                                size + 1);
        at += size + 1;
        *scanned = at;
    }
    if (status == WAL_OK && at > 0) {
        status = append_batch(importer, error);
    }
    WAL__ASSERT(at <= buf->size);
    memmove(buf->data, buf->data + at, buf->size - at);
    buf->size -= at;
    *scanned = buf->size;
    return status;
}

static enum wal_status import_lines(struct wal__view_importer *importer,
                                    struct wal_error *error)
{
    struct wal__buf *buf = &importer->buf;
    uint64_t at = importer->fingerprint.size;
    enum wal_status status = WAL_OK;
    size_t scanned = 0;

    while (status == WAL_OK && at < importer->stamp.size) {
        uint64_t remaining = importer->stamp.size - at;
        size_t want = remaining < READ_SIZE ? (size_t)remaining : READ_SIZE;
        uint8_t *to;
        ssize_t got;
        if (wal__buf_reserve(buf, want, &to) != WAL_OK) {
            return wal__no_memory(error);
        }
        got = pread(importer->fd, to, want, (off_t)at);
        if (got <= 0) {
            return wal__fail_at(
                error, WAL_ECHANGED, 0, importer->file->lines.path, at,
                "the file became shorter while it was read; flush the view");
        }
        at += (uint64_t)got;
        buf->size += (size_t)got;
        status = import_buffer(importer, &scanned, error);
    }
    return status == WAL_OK ? wal_sync(importer->view->store, error) : status;
}

/* --------------------------------------------------------------- file --- */

/* Finds the view's main file in the state. */
static enum wal_status find_file(struct wal__view_importer *importer,
                                 struct wal_error *error)
{
    struct wal_view *view = importer->view;
    const char *path;
    enum wal_status status = wal__session_snapshot_read(
        &importer->snapshot, view->env.heap, view->store, view->session, error);

    if (status != WAL_OK) {
        return status;
    }
    path = view->dialect->write_ops->path(&importer->snapshot.session, 0,
                                          &importer->snapshot.memory.arena);
    if (importer->snapshot.memory.has_failed) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; path != NULL && i < view->files.count; i++) {
        struct wal__view_file *file = view->files.items[i];
        /* Not current: the state keeps what `saved` says. */
        file->is_current = false;
        if ((!file->is_document || view->dialect->write_ops->join != NULL) &&
            strcmp(file->lines.path, path) == 0) {
            importer->file = file;
        }
    }
    if (!view->position.is_known || importer->file == NULL ||
        view->dialect->read_ops == NULL ||
        view->dialect->read_ops->line == NULL) {
        return wal__fail(
            error, WAL_ENOTFOUND,
            "the state of the view has no file of lines; flush the view first");
    }
    return view->position.append_pending
               ? wal__fail_at(
                     error, WAL_EBUSY, 0, importer->file->lines.path, 0,
                     "a flush of the view was interrupted; flush it first")
               : WAL_OK;
}

static enum wal_status open_file(struct wal__view_importer *importer,
                                 struct wal_error *error)
{
    struct wal_view *view = importer->view;
    const char *name = NULL;
    int directory = -1;
    enum wal_status status = wal__view_fs_open_parent(
        &view->env, view->root, importer->file->lines.path, false, &directory,
        &name, error);

    if (status == WAL_OK) {
        status = wal__view_fs_open(directory, name, &importer->fd,
                                   &importer->stamp, error);
        close(directory);
    }
    return status;
}

/* Checks that the file begins with the content that the view left. */
static enum wal_status check_prefix(struct wal__view_importer *importer,
                                    struct wal_error *error)
{
    const struct wal__saved_file *saved = &importer->file->lines.saved;
    uint8_t *to;
    ssize_t got = 1;

    if (wal__buf_reserve(&importer->buf, READ_SIZE, &to) != WAL_OK) {
        return wal__no_memory(error);
    }
    while (got > 0 && importer->fingerprint.size < saved->fingerprint.size) {
        uint64_t more = saved->fingerprint.size - importer->fingerprint.size;
        got =
            pread(importer->fd, to, more < READ_SIZE ? (size_t)more : READ_SIZE,
                  (off_t)importer->fingerprint.size);
        wal__fingerprint_update(&importer->fingerprint, to,
                                got > 0 ? (size_t)got : 0);
    }
    return wal__fingerprint_equal(&importer->fingerprint, &saved->fingerprint)
               ? WAL_OK
               : wal__fail_at(error, WAL_ECHANGED, 0,
                              importer->file->lines.path, 0,
                              "was not only appended to");
}

/* The head follows the lines of the next import too. */
static void keep_head(struct wal__view_importer *importer)
{
    if (importer->is_following) {
        memcpy(importer->view->position.head, importer->head,
               sizeof(importer->head));
    }
}

/* Saves the current file as the view's own. */
static enum wal_status save_state(struct wal__view_importer *importer,
                                  struct wal_error *error)
{
    struct wal__saved_file *saved = &importer->file->lines.saved;

    WAL__ASSERT(importer->fingerprint.size >= saved->fingerprint.size);
    keep_head(importer);
    saved->has_old_stamp = false;
    saved->fingerprint = importer->fingerprint;
    saved->stamp = importer->stamp;
    saved->stamp.size = importer->fingerprint.size;
    return wal__view_lock_save_state(&importer->view_lock,
                                     &importer->view->position, true, error);
}

/* Imports a view that is made of documents. */
static enum wal_status import_documents(struct wal__view_importer *importer,
                                        struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED |
                 WAL_ENTRY_CURSOR_OUT_OF_LINE};
    struct wal_view *view = importer->view;
    bool is_changed = false;
    enum wal_status status = wal_entry_cursor_open(view->session, &options,
                                                   &importer->cursor, error);

    if (status == WAL_OK) {
        wal__view_import_find_head(importer);
        status = wal__view_import_documents(importer, append_message,
                                            &is_changed, error);
    }
    if (status == WAL_OK && is_changed) {
        status = wal_sync(view->store, error);
    }
    if (status == WAL_OK && is_changed) {
        keep_head(importer);
        status = wal__view_lock_save_state(&importer->view_lock,
                                           &view->position, true, error);
    }
    return status;
}

static enum wal_status import_changes(struct wal__view_importer *importer,
                                      struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED |
                 WAL_ENTRY_CURSOR_OUT_OF_LINE};
    enum wal_status status = find_file(importer, error);
    const struct wal__saved_file *saved;

    if (status == WAL_OK) {
        status = open_file(importer, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (importer->file->is_document) {
        return import_documents(importer, error);
    }
    saved = &importer->file->lines.saved;
    if (wal__file_stamp_equal(&importer->stamp, &saved->stamp) ||
        (saved->has_old_stamp &&
         wal__file_stamp_equal(&importer->stamp, &saved->old_stamp))) {
        return WAL_OK;
    }
    status = check_prefix(importer, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal_entry_cursor_open(importer->view->session, &options,
                                   &importer->cursor, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__view_import_find_head(importer);
    status = wal__view_import_find_last(importer, error);
    if (status != WAL_OK) {
        return status;
    }
    status = import_lines(importer, error);
    if (status != WAL_OK) {
        return status;
    }
    return importer->fingerprint.size > saved->fingerprint.size
               ? save_state(importer, error)
               : WAL_OK;
}

static void destroy_importer(struct wal__view_importer *importer)
{
    struct wal_view *view = importer->view;

    wal__written_ids_deinit(&importer->written_ids);
    wal_entry_cursor_close(importer->cursor);
    wal__heap_arena_deinit(&importer->import_arena);
    wal__heap_arena_deinit(&importer->scratch);
    wal__buf_deinit(&importer->buf);
    wal__session_snapshot_deinit(&importer->snapshot);
    if (importer->fd >= 0) {
        close(importer->fd);
    }
    wal__view_lock_release(&importer->view_lock);
    wal__view_invalidate(view);
    wal__heap_free(view->env.heap, importer);
}

enum wal_status wal__view_import(struct wal_view *view,
                                 struct wal_view_import_result *report,
                                 struct wal_error *error)
{
    struct wal__view_importer *importer =
        wal__heap_zalloc(view->env.heap, sizeof(*importer));
    enum wal_status status;

    if (importer == NULL) {
        return wal__no_memory(error);
    }
    view->issue_count = 0;
    importer->view = view;
    importer->view_lock = (struct wal__view_lock){.view = view, .lock_fd = -1};
    importer->fd = -1;
    importer->report.struct_size = sizeof(importer->report);
    wal__heap_arena_init(&importer->import_arena, view->env.heap);
    wal__heap_arena_init(&importer->scratch, view->env.heap);
    wal__buf_init(&importer->buf, view->env.heap);
    importer->imported_ids.arena = &importer->import_arena.arena;
    status = wal__view_lock_acquire(&importer->view_lock, error);
    if (status == WAL_OK) {
        status = import_changes(importer, error);
    }
    if (status == WAL_OK && report != NULL) {
        *report = importer->report;
    }
    destroy_importer(importer);
    return status;
}
