/*
 * files.c - the files that a view is made of (SPEC.md 10.3).
 *
 * Threads: one thread at a time.
 */
#include "view/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "format/jsonl/model_table.h"
#include "view/arenas.h"

#define PENDING_SIZE ((size_t)64 << 10)

void wal__view_files_init(struct wal__view_files *files,
                          const struct wal__view_env *env)
{
    files->env = env;
    files->folder = -1;
    wal__map_init(&files->places, env->heap);
    wal__buf_init(&files->pending, env->heap);
}

static void free_file(struct wal__view_files *files,
                      struct wal__view_file *file)
{
    wal__line_file_end(&file->lines);
    wal__buf_deinit(&file->data);
    wal__heap_free(files->env->heap, file->lines.path);
    wal__heap_free(files->env->heap, file);
}

void wal__view_files_forget(struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        free_file(files, files->items[i]);
    }
    files->count = 0;
    files->chosen = NULL;
    files->settled = NULL;
    wal__map_deinit(&files->places);
    wal__map_init(&files->places, files->env->heap);
}

void wal__view_files_deinit(struct wal__view_files *files)
{
    if (files->env == NULL) {
        return;
    }
    wal__view_files_forget(files);
    wal__heap_free(files->env->heap, files->items);
    wal__map_deinit(&files->places);
    wal__buf_deinit(&files->pending);
}

static uint64_t hash_of(const char *path)
{
    return wal__model_hash(
        0, (struct wal__json_span){(const uint8_t *)path, strlen(path)});
}

static struct wal__view_file *find(const struct wal__view_files *files,
                                   const char *path)
{
    uint32_t cursor = 0;
    uint32_t index;

    while (wal__map_find(&files->places, hash_of(path), &cursor, &index)) {
        if (strcmp(files->items[index]->lines.path, path) == 0) {
            return files->items[index];
        }
    }
    return NULL;
}

struct wal__view_file *wal__view_files_add(struct wal__view_files *files,
                                           const char *path, bool is_document)
{
    const struct wal__heap *heap = files->env->heap;
    struct wal__view_file **items = wal__heap_room(
        heap, files->items, files->count, &files->capacity, sizeof(items[0]));
    struct wal__view_file *file;

    if (items == NULL) {
        return NULL;
    }
    files->items = items;
    file = wal__heap_zalloc(heap, sizeof(*file));
    if (file == NULL) {
        return NULL;
    }
    wal__buf_init(&file->data, heap);
    file->is_document = is_document;
    file->lines.env = files->env;
    file->lines.owner = &files->owner;
    file->lines.root = files->root;
    file->lines.temporary = file->temporary;
    wal__line_file_begin(&file->lines, false);
    file->lines.path = wal__heap_text(heap, path, strlen(path));
    if (file->lines.path == NULL ||
        wal__map_add(&files->places, hash_of(path), files->count) != WAL_OK) {
        free_file(files, file);
        return NULL;
    }
    snprintf(file->temporary, sizeof(file->temporary), "%s.%u.tmp", files->key,
             is_document ? 9 : (unsigned)files->count % 8);
    files->items[files->count++] = file;
    return file;
}

void wal__view_files_begin(struct wal__view_files *files, bool goes_on)
{
    for (uint32_t i = 0; i < files->count; i++) {
        struct wal__view_file *file = files->items[i];
        wal__line_file_begin(&file->lines, goes_on);
        file->lines.folder = files->folder;
        file->is_chosen = goes_on && !file->is_provisional;
        file->is_provisional = false;
        file->has_data = false;
    }
    files->chosen = goes_on ? files->settled : NULL;
    files->is_tail = false;
    files->is_told = false;
    files->status = WAL_OK;
    files->error = (struct wal_error){.struct_size = sizeof(files->error)};
    files->lines = 0;
    files->bytes = 0;
    files->has_replaced = false;
    files->pending.size = 0;
}

/* ------------------------------------------------------------- output --- */

static bool fail(struct wal__view_files *files, enum wal_status status)
{
    files->status = status;
    return false;
}

static bool no_memory(struct wal__view_files *files)
{
    return fail(files,
                wal__fail(&files->error, WAL_ENOMEM, 0, NULL, 0, "no memory"));
}

static bool choose(void *ctx, const char *path, bool is_document)
{
    struct wal__view_files *files = ctx;
    struct wal__view_file *file = find(files, path);

    if (file == NULL) {
        file = wal__view_files_add(files, path, is_document);
        if (file == NULL) {
            return no_memory(files);
        }
    }
    file->is_provisional = is_document && files->is_tail && !file->is_chosen;
    file->is_chosen = true;
    file->lines.folder = files->folder;
    files->chosen = file;
    file->data.size = 0;
    file->has_data = is_document;
    if (is_document || files->root == NULL) {
        return true;
    }
    files->status = wal__line_file_put(&file->lines, NULL, 0, &files->error);
    return files->status == WAL_OK;
}

static bool call_put(struct wal__view_files *files, const void *data,
                     size_t size)
{
    int32_t answer = size > 0 ? files->put(files->put_ctx, data, size) : 0;

    return answer == 0 ||
           fail(files, wal__fail(&files->error, WAL_ECALLBACK, answer, NULL, 0,
                                 "the caller's function answered %d", answer));
}

static bool put_pending(struct wal__view_files *files, const void *data,
                        size_t size)
{
    if (files->pending.size + size > PENDING_SIZE) {
        if (!call_put(files, files->pending.data, files->pending.size)) {
            return false;
        }
        files->pending.size = 0;
    }
    if (size >= PENDING_SIZE) {
        return call_put(files, data, size);
    }
    return wal__buf_append(&files->pending, data, size) == WAL_OK ||
           no_memory(files);
}

static bool put(void *ctx, const void *data, size_t size)
{
    struct wal__view_files *files = ctx;
    struct wal__view_file *file = files->chosen;

    if (files->status != WAL_OK || size == 0) {
        return files->status == WAL_OK;
    }
    if (files->root == NULL) {
        return file->is_document || put_pending(files, data, size);
    }
    if (file->is_document) {
        return wal__buf_append(&file->data, data, size) == WAL_OK ||
               no_memory(files);
    }
    if (files->is_tail && !files->is_told &&
        file->lines.mode == WAL__LINES_APPEND) {
        files->status =
            files->owner.before_append(files->owner.ctx, &files->error);
    }
    if (files->status == WAL_OK) {
        files->status =
            wal__line_file_put(&file->lines, data, size, &files->error);
    }
    return files->status == WAL_OK;
}

struct wal__model_output wal__view_files_output(struct wal__view_files *files)
{
    return (struct wal__model_output){.ctx = files, .file = choose, .put = put};
}

bool wal__view_files_append(const struct wal__view_files *files)
{
    return files->root != NULL && wal__line_file_appends(&files->chosen->lines);
}

void wal__view_files_settle(struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        wal__line_file_settle(&files->items[i]->lines);
    }
    files->settled = files->chosen;
    files->is_tail = true;
}

/* ---------------------------------------------------------- documents --- */

/* Whether what is there is what the document is to be. */
static bool is_there(struct wal__view_file *file, int directory,
                     const char *name, struct wal__stamp *stamp)
{
    size_t at = 0;
    char piece[4096];
    int fd;
    ssize_t got = 0;

    if (wal__place_open(directory, name, &fd, stamp, NULL) != WAL_OK) {
        return false;
    }
    while (stamp->size == file->data.size && at < file->data.size &&
           (got = pread(fd, piece, sizeof(piece), (off_t)at)) > 0 &&
           (size_t)got <= file->data.size - at &&
           memcmp(piece, file->data.data + at, (size_t)got) == 0) {
        at += (size_t)got;
    }
    close(fd);
    return stamp->size == file->data.size && at == file->data.size;
}

static enum wal_status replace_document(struct wal__view_files *files,
                                        struct wal__view_file *file,
                                        struct wal_error *error)
{
    const struct wal__view_env *env = files->env;
    const char *name = NULL;
    int directory = -1;
    int fd = -1;
    enum wal_status status = wal__place_directory(
        env, files->root, file->lines.path, true, &directory, &name, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__place_create(env, files->folder, file->temporary, &fd, error);

    if (status == WAL_OK) {
        status =
            wal__place_write(env, fd, file->data.data, file->data.size, error);
        if (status == WAL_OK) {
            status =
                wal__place_finish(env, fd, true, &file->lines.stamp, error);
        }
        close(fd);
        if (status == WAL_OK) {
            status = wal__place_rename(env, files->folder, file->temporary,
                                       directory, name, false, error);
        }
        if (status != WAL_OK) {
            wal__place_remove(env, files->folder, file->temporary);
        }
    }
    close(directory);
    files->bytes += file->data.size;
    files->has_replaced = true;
    return status;
}

static void count_lines(struct wal__view_files *files,
                        const struct wal__view_file *file)
{
    for (size_t i = 0; i < file->data.size; i++) {
        files->lines += file->data.data[i] == '\n' ? 1 : 0;
    }
}

/* Finds out whether a document has to be written. */
static enum wal_status look_at_document(struct wal__view_files *files,
                                        struct wal__view_file *file,
                                        struct wal_error *error)
{
    struct wal__left *left = &file->lines.left;
    struct wal__stamp stamp = {.size = 0};
    const char *name = NULL;
    int directory = -1;
    enum wal_status status =
        wal__place_directory(files->env, files->root, file->lines.path, true,
                             &directory, &name, error);

    if (status != WAL_OK) {
        return status;
    }
    file->is_same = is_there(file, directory, name, &stamp);
    close(directory);
    left->has_old = left->is_known;
    left->old = left->stamp;
    left->is_known = true;
    left->stamp = stamp;
    left->digest = (struct wal__digest){.size = 0};
    wal__digest_add(&left->digest, file->data.data, file->data.size);
    left->settled = left->digest;
    return WAL_OK;
}

static enum wal_status put_document(struct wal__view_files *files,
                                    struct wal__view_file *file,
                                    struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (!file->is_same) {
        status = replace_document(files, file, error);
        count_lines(files, file);
    }
    if (status == WAL_OK) {
        file->lines.left.has_old = false;
        wal__buf_deinit(&file->data);
        wal__buf_init(&file->data, files->env->heap);
        file->has_data = false;
    }
    return status;
}

/* What documents are to be is known before the first one is. */
static enum wal_status put_documents(struct wal__view_files *files,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool is_same = true;

    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];
        if (file->has_data) {
            status = look_at_document(files, file, error);
            is_same &= file->is_same;
        }
    }
    if (status == WAL_OK && !is_same) {
        status = files->owner.before_append(files->owner.ctx, error);
    }
    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        if (files->items[i]->has_data) {
            status = put_document(files, files->items[i], error);
        }
    }
    return status;
}

/* ------------------------------------------------------------- commit --- */

enum wal_status wal__view_files_finish(struct wal__view_files *files,
                                       struct wal_error *error)
{
    enum wal_status status = files->status;

    if (status != WAL_OK) {
        wal__error_copy(error, &files->error);
        return status;
    }
    if (files->root == NULL) {
        if (!call_put(files, files->pending.data, files->pending.size)) {
            wal__error_copy(error, &files->error);
        }
        return files->status;
    }
    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];
        if (!file->is_document && file->is_chosen) {
            file->lines.folder = files->folder;
            status = wal__line_file_finish(&file->lines, error);
        }
    }
    return status == WAL_OK ? put_documents(files, error) : status;
}

/* A file that was the view's and is so no more. */
static void drop(struct wal__view_files *files, struct wal__view_file *file)
{
    if (file->lines.left.is_known) {
        wal__line_file_remove(&file->lines);
    }
    free_file(files, file);
}

static enum wal_status drop_unchosen(struct wal__view_files *files,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < files->count; i++) {
        if (files->items[i]->is_chosen) {
            files->items[kept++] = files->items[i];
        } else {
            drop(files, files->items[i]);
        }
    }
    if (kept == files->count) {
        return WAL_OK;
    }
    files->count = kept;
    wal__map_deinit(&files->places);
    wal__map_init(&files->places, files->env->heap);
    for (uint32_t i = 0; i < kept && status == WAL_OK; i++) {
        status = wal__map_add(&files->places,
                              hash_of(files->items[i]->lines.path), i);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail(error, status, 0, NULL, 0, "no memory");
}

enum wal_status wal__view_files_commit(struct wal__view_files *files,
                                       struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (files->root == NULL) {
        return WAL_OK;
    }
    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];
        if (file->is_document || !file->is_chosen) {
            continue;
        }
        files->has_replaced |= file->lines.mode == WAL__LINES_REPLACE;
        status = wal__line_file_commit(&file->lines, error);
        files->lines += file->lines.lines;
        files->bytes += file->lines.bytes;
    }
    return status == WAL_OK ? drop_unchosen(files, error) : status;
}

void wal__view_files_end(struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        wal__line_file_end(&files->items[i]->lines);
    }
}

bool wal__view_files_are_left(struct wal__view_files *files, bool documents_too)
{
    for (uint32_t i = 0; i < files->count; i++) {
        if ((documents_too || !files->items[i]->is_document) &&
            !wal__line_file_is_left(&files->items[i]->lines)) {
            return false;
        }
    }
    return true;
}

struct wal__left wal__view_files_left(const struct wal__view_file *file)
{
    struct wal__left left = file->lines.left;

    if (!file->is_document && file->is_chosen) {
        left = (struct wal__left){
            .is_known = true,
            .has_old = file->lines.mode == WAL__LINES_REPLACE &&
                       file->lines.left.is_known,
            .stamp = file->lines.stamp,
            .old = file->lines.left.stamp,
            .digest = file->lines.at,
            .settled = file->lines.settled,
        };
    }
    return left;
}
