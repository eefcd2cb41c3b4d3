/*
 * adopt.c - takes what another program wrote behind a view's main file into
 * the session (SPEC.md 10.6).
 *
 * Lines are appended first, and then the state says that the file as it is now
 * is the view's own. What is cut short between the two is found again by the
 * mark that each entry has, and is not appended twice.
 *
 * Invariant: the file is only read.
 *
 * Threads: one thread at a time per view.
 */
#include "view/adopt.h"

#include <string.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "view/adopt_line.h"

#define READ_SIZE  ((size_t)1 << 20)
#define BATCH_SIZE ((size_t)4 << 20)

static enum wal_status no_memory(struct wal_error *error)
{
    return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
}

/* --------------------------------------------------------------- lines --- */

static enum wal_status send(struct wal__adopting *adopting,
                            struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    enum wal_status status = WAL_OK;

    if (adopting->keep.has_failed || adopting->scratch.has_failed) {
        return no_memory(error);
    }
    if (adopting->count > 0) {
        status = wal_append(adopting->view->session, adopting->entries,
                            adopting->count, &options, &result, error);
        adopting->report.appended += result.appended;
        adopting->report.duplicates += result.duplicates;
    }
    adopting->count = 0;
    adopting->size = 0;
    wal__heap_arena_reset(&adopting->scratch);
    return status;
}

static enum wal_status take_line(struct wal__adopting *adopting,
                                 const uint8_t *data, size_t size,
                                 struct wal_error *error)
{
    struct wal__taking taking = {.text = {data, size},
                                 .offset = adopting->digest.size};
    enum wal_status status = WAL_OK;

    adopting->report.lines++;
    if (wal__line_is_blank(data, size)) {
        return WAL_OK;
    }
    if (adopting->count == WAL__ADOPT_ENTRIES ||
        (adopting->count > 0 && adopting->size + size > BATCH_SIZE)) {
        status = send(adopting, error);
    }
    if (status == WAL_OK) {
        status = wal__adopt_judge(adopting, &taking, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (taking.is_known) {
        adopting->report.duplicates++;
        return WAL_OK;
    }
    adopting->entries[adopting->count++] = taking.entry;
    adopting->size += size;
    return WAL_OK;
}

/* Takes the whole lines that the buffer has, and keeps the rest in it. */
static enum wal_status take_buffer(struct wal__adopting *adopting,
                                   size_t *scanned, struct wal_error *error)
{
    struct wal__buf *buf = &adopting->buf;
    const uint8_t *newline;
    enum wal_status status = WAL_OK;
    size_t at = 0;

    while (status == WAL_OK &&
           (newline = memchr(buf->data + *scanned, '\n',
                             buf->size - *scanned)) != NULL) {
        size_t size = (size_t)(newline - buf->data) - at;
        status = take_line(adopting, buf->data + at, size, error);
        wal__digest_add(&adopting->digest, buf->data + at, size + 1);
        at += size + 1;
        *scanned = at;
    }
    if (status == WAL_OK && at > 0) {
        status = send(adopting, error);
    }
    memmove(buf->data, buf->data + at, buf->size - at);
    buf->size -= at;
    *scanned = buf->size;
    return status;
}

static enum wal_status take_lines(struct wal__adopting *adopting,
                                  struct wal_error *error)
{
    struct wal__buf *buf = &adopting->buf;
    uint64_t at = adopting->digest.size;
    enum wal_status status = WAL_OK;
    size_t scanned = 0;

    while (status == WAL_OK && at < adopting->stamp.size) {
        uint64_t left = adopting->stamp.size - at;
        size_t want = left < READ_SIZE ? (size_t)left : READ_SIZE;
        uint8_t *to;
        ssize_t got;
        if (wal__buf_reserve(buf, want, &to) != WAL_OK) {
            return no_memory(error);
        }
        got = pread(adopting->fd, to, want, (off_t)at);
        if (got <= 0) {
            return wal__fail(error, WAL_ECHANGED, 0, adopting->file->lines.path,
                             at, "became shorter while it was read");
        }
        at += (uint64_t)got;
        buf->size += (size_t)got;
        status = take_buffer(adopting, &scanned, error);
    }
    return status == WAL_OK ? wal_sync(adopting->view->store, error) : status;
}

/* ---------------------------------------------------------------- file --- */

/* The view's main file, as the state has it. */
static enum wal_status find_file(struct wal__adopting *adopting,
                                 struct wal_error *error)
{
    struct wal_view *view = adopting->view;
    const char *path;
    enum wal_status status = wal__known_read(&adopting->known, view->env.heap,
                                             view->store, view->session, error);

    if (status != WAL_OK) {
        return status;
    }
    path = view->dialect->writing->path(&adopting->known.session, 0,
                                        &adopting->known.memory.arena);
    if (adopting->known.memory.has_failed) {
        return no_memory(error);
    }
    for (uint32_t i = 0; path != NULL && i < view->files.count; i++) {
        struct wal__view_file *file = view->files.items[i];
        /* How it is left is what the state will say of it. */
        file->is_chosen = false;
        if (!file->is_document && strcmp(file->lines.path, path) == 0) {
            adopting->file = file;
        }
    }
    if (!view->position.is_known || adopting->file == NULL ||
        view->dialect->reading == NULL ||
        view->dialect->reading->line == NULL) {
        return wal__fail(error, WAL_ENOTFOUND, 0, NULL, 0,
                         "the view has no file of lines that is known");
    }
    return view->position.is_open
               ? wal__fail(error, WAL_EBUSY, 0, adopting->file->lines.path, 0,
                           "a flush of the view was cut short; flush it first")
               : WAL_OK;
}

static enum wal_status open_file(struct wal__adopting *adopting,
                                 struct wal_error *error)
{
    struct wal_view *view = adopting->view;
    const char *name = NULL;
    int directory = -1;
    enum wal_status status =
        wal__place_directory(&view->env, view->root, adopting->file->lines.path,
                             false, &directory, &name, error);

    if (status == WAL_OK) {
        status = wal__place_open(directory, name, &adopting->fd,
                                 &adopting->stamp, error);
        close(directory);
    }
    return status;
}

/* Whether the file begins with what the view left. */
static enum wal_status check_beginning(struct wal__adopting *adopting,
                                       struct wal_error *error)
{
    const struct wal__left *left = &adopting->file->lines.left;
    uint8_t *to;
    ssize_t got = 1;

    if (wal__buf_reserve(&adopting->buf, READ_SIZE, &to) != WAL_OK) {
        return no_memory(error);
    }
    while (got > 0 && adopting->digest.size < left->digest.size) {
        uint64_t more = left->digest.size - adopting->digest.size;
        got =
            pread(adopting->fd, to, more < READ_SIZE ? (size_t)more : READ_SIZE,
                  (off_t)adopting->digest.size);
        wal__digest_add(&adopting->digest, to, got > 0 ? (size_t)got : 0);
    }
    return wal__digest_equal(&adopting->digest, &left->digest)
               ? WAL_OK
               : wal__fail(error, WAL_ECHANGED, 0, adopting->file->lines.path,
                           0, "was not only appended to");
}

/* The file as it is now is the view's own. */
static enum wal_status save(struct wal__adopting *adopting,
                            struct wal_error *error)
{
    struct wal__left *left = &adopting->file->lines.left;

    left->has_old = false;
    left->digest = adopting->digest;
    left->stamp = adopting->stamp;
    left->stamp.size = adopting->digest.size;
    return wal__hold_save(&adopting->hold, &adopting->view->position, true,
                          error);
}

static enum wal_status adopt(struct wal__adopting *adopting,
                             struct wal_error *error)
{
    const struct wal_iter_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_ITER_DELTAS | WAL_ITER_REDACTED | WAL_ITER_OUT_OF_LINE};
    enum wal_status status = find_file(adopting, error);
    const struct wal__left *left;

    if (status == WAL_OK) {
        status = open_file(adopting, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    left = &adopting->file->lines.left;
    if (wal__stamp_equal(&adopting->stamp, &left->stamp) ||
        (left->has_old && wal__stamp_equal(&adopting->stamp, &left->old))) {
        return WAL_OK;
    }
    status = check_beginning(adopting, error);
    if (status == WAL_OK) {
        status = wal_iter_open(adopting->view->session, &options,
                               &adopting->iter, error);
    }
    if (status == WAL_OK) {
        status = wal__adopt_written(adopting, error);
    }
    if (status == WAL_OK) {
        status = take_lines(adopting, error);
    }
    return status == WAL_OK && adopting->digest.size > left->digest.size
               ? save(adopting, error)
               : status;
}

static void end(struct wal__adopting *adopting)
{
    struct wal_view *view = adopting->view;

    wal__told_deinit(&adopting->told);
    wal_iter_close(adopting->iter);
    wal__heap_arena_deinit(&adopting->keep);
    wal__heap_arena_deinit(&adopting->scratch);
    wal__buf_deinit(&adopting->buf);
    wal__known_deinit(&adopting->known);
    if (adopting->fd >= 0) {
        close(adopting->fd);
    }
    wal__hold_end(&adopting->hold);
    wal__view_forget(view);
    wal__heap_free(view->env.heap, adopting);
}

enum wal_status wal__view_adopt(struct wal_view *view,
                                struct wal_view_import_report *report,
                                struct wal_error *error)
{
    struct wal__adopting *adopting =
        wal__heap_zalloc(view->env.heap, sizeof(*adopting));
    enum wal_status status;

    if (adopting == NULL) {
        return no_memory(error);
    }
    view->odd_count = 0;
    adopting->view = view;
    adopting->hold = (struct wal__hold){.view = view, .lock = -1};
    adopting->fd = -1;
    adopting->report.struct_size = sizeof(adopting->report);
    wal__heap_arena_init(&adopting->keep, view->env.heap);
    wal__heap_arena_init(&adopting->scratch, view->env.heap);
    wal__buf_init(&adopting->buf, view->env.heap);
    adopting->taken.arena = &adopting->keep.arena;
    status = wal__hold_take(&adopting->hold, error);
    if (status == WAL_OK) {
        status = adopt(adopting, error);
    }
    if (status == WAL_OK && report != NULL) {
        *report = adopting->report;
    }
    end(adopting);
    return status;
}
