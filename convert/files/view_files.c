/*
 * view_files.c - the files of a view (view_files.h, SPEC.md 10.3).
 *
 * Threads: one thread at a time.
 */
#include "convert/files/view_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "convert/files/document_files.h"
#include "convert/files/joined_files.h"
#include "convert/model/model_table.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "format/bytes/assert.h"
#include "format/json/json_out.h"

#define PENDING_SIZE ((size_t)64 << 10)

void wal__view_files_init(struct wal__view_files *files,
                          const struct wal__view_env *env)
{
    files->env = env;
    files->state_dir = -1;
    files->temporary_dir = -1;
    wal__hashmap_init(&files->index_by_path, env->heap);
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

void wal__view_files_clear(struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        free_file(files, files->items[i]);
    }
    files->count = 0;
    files->current = NULL;
    files->stable = NULL;
    wal__hashmap_deinit(&files->index_by_path);
    wal__hashmap_init(&files->index_by_path, files->env->heap);
}

void wal__view_files_deinit(struct wal__view_files *files)
{
    if (files->env == NULL) {
        return;
    }
    wal__view_files_clear(files);
    wal__heap_free(files->env->heap, files->items);
    wal__hashmap_deinit(&files->index_by_path);
    wal__buf_deinit(&files->pending);
}

static uint64_t path_hash(const char *path)
{
    return wal__model_hash(
        0, (struct wal__json_span){(const uint8_t *)path, strlen(path)});
}

struct wal__view_file *wal__view_files_find(const struct wal__view_files *files,
                                            const char *path)
{
    uint32_t cursor = 0;
    uint32_t index;

    while (wal__hashmap_find(&files->index_by_path, path_hash(path), &cursor,
                             &index)) {
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
    struct wal__view_file **items = wal__heap_grow_array(
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
    file->lines.path = wal__heap_copy_text(heap, path, strlen(path));
    if (file->lines.path == NULL ||
        wal__hashmap_add(&files->index_by_path, path_hash(path),
                         files->count) != WAL_OK) {
        free_file(files, file);
        return NULL;
    }
    snprintf(file->temporary, sizeof(file->temporary), "%s%s.%u.tmp",
             files->prefix != NULL ? files->prefix : "", files->key,
             is_document ? 9 : (unsigned)files->count % 8);
    WAL__ASSERT(files->count < files->capacity);
    files->items[files->count++] = file;
    return file;
}

void wal__view_files_begin(struct wal__view_files *files, bool is_incremental)
{
    for (uint32_t i = 0; i < files->count; i++) {
        struct wal__view_file *file = files->items[i];
        wal__line_file_begin(&file->lines, is_incremental);
        file->lines.state_dir = files->temporary_dir;
        file->is_current = is_incremental && !file->is_provisional;
        file->is_provisional = false;
        file->has_data = false;
    }
    files->current = is_incremental ? files->stable : NULL;
    files->is_past_stable = false;
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
    return fail(files, wal__no_memory(&files->error));
}

static bool select_file(void *ctx, const char *path, enum wal__output_kind kind)
{
    struct wal__view_files *files = ctx;
    bool is_document = kind != WAL__OUTPUT_LINES;
    struct wal__view_file *file = wal__view_files_find(files, path);

    if (file == NULL) {
        file = wal__view_files_add(files, path, is_document);
        if (file == NULL) {
            return no_memory(files);
        }
    }
    file->kind = kind;
    file->is_shared = is_document && kind != WAL__OUTPUT_DOCUMENT;
    file->is_provisional =
        is_document && files->is_past_stable && !file->is_current;
    file->is_current = true;
    file->lines.state_dir = files->temporary_dir;
    files->current = file;
    file->data.size = 0;
    file->has_data = is_document;
    if (is_document || files->root == NULL) {
        return true;
    }
    files->status = wal__line_file_put(&file->lines, NULL, 0, &files->error);
    return files->status == WAL_OK;
}

static bool call_callback(struct wal__view_files *files, const void *data,
                          size_t size)
{
    int32_t answer = size > 0 ? files->put(files->put_ctx, data, size) : 0;

    return answer == 0 ||
           fail(files,
                wal__fail_at(&files->error, WAL_ECALLBACK, answer, NULL, 0,
                             "the callback that receives lines returned %d",
                             answer));
}

static bool buffer_output(struct wal__view_files *files, const void *data,
                          size_t size)
{
    if (files->pending.size + size > PENDING_SIZE) {
        if (!call_callback(files, files->pending.data, files->pending.size)) {
            return false;
        }
        files->pending.size = 0;
    }
    WAL__ASSERT(files->pending.size <= PENDING_SIZE);
    if (size >= PENDING_SIZE) {
        return call_callback(files, data, size);
    }
    return wal__buf_append(&files->pending, data, size) == WAL_OK ||
           no_memory(files);
}

static bool put(void *ctx, const void *data, size_t size)
{
    struct wal__view_files *files = ctx;
    struct wal__view_file *file = files->current;

    if (files->status != WAL_OK || size == 0) {
        return files->status == WAL_OK;
    }
    WAL__ASSERT(file != NULL);
    if (files->root == NULL && !file->is_document) {
        return buffer_output(files, data, size);
    }
    if (files->root == NULL && files->dialect->write_ops->join == NULL) {
        return true;
    }
    if (file->is_document) {
        return wal__buf_append(&file->data, data, size) == WAL_OK ||
               no_memory(files);
    }
    files->status = wal__line_file_put(&file->lines, data, size, &files->error);
    return files->status == WAL_OK;
}

struct wal__model_output wal__view_files_output(struct wal__view_files *files)
{
    return (struct wal__model_output){
        .ctx = files, .file = select_file, .put = put};
}

bool wal__view_files_is_appending(const struct wal__view_files *files)
{
    return files->root != NULL &&
           wal__line_file_is_appending(&files->current->lines);
}

void wal__view_files_set_stable(struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        wal__line_file_set_stable(&files->items[i]->lines);
    }
    files->stable = files->current;
    files->is_past_stable = true;
}

/* ---------------------------------------------------------- documents --- */

static bool put_joined(void *ctx, const void *data, size_t size)
{
    struct wal__view_files *files = ctx;

    files->lines += size > 0 && ((const char *)data)[size - 1] == '\n' ? 1 : 0;
    return buffer_output(files, data, size);
}

/* Passes the documents to `put` as one file. */
static bool join_documents(struct wal__view_files *files)
{
    struct wal__json_out out = {.put = put_joined, .ctx = files};
    struct wal__joined_files joined = {.files = files};
    struct wal__model_documents documents;
    bool is_done;

    if (files->dialect->write_ops->join == NULL) {
        return true;
    }
    if (!wal__joined_files_init(&joined, &documents)) {
        return no_memory(files);
    }
    is_done = files->dialect->write_ops->join(&documents, &out) &&
              !out.has_failed && put_joined(files, "\n", 1);
    wal__joined_files_deinit(&joined);
    return is_done || (files->status == WAL_OK ? no_memory(files) : false);
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
        if (!join_documents(files) ||
            !call_callback(files, files->pending.data, files->pending.size)) {
            wal__error_copy(error, &files->error);
        }
        return files->status;
    }
    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];
        if (!file->is_document && file->is_current) {
            file->lines.state_dir = files->temporary_dir;
            file->lines.modified_ms = files->modified_ms;
            status = wal__line_file_finish(&file->lines, error);
        }
    }
    return status == WAL_OK ? wal__document_files_write(files, error) : status;
}

/* Removes a file that is no longer part of the view. */
static enum wal_status remove_file(struct wal__view_files *files,
                                   struct wal__view_file *file,
                                   struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (file->lines.saved.is_known) {
        status = wal__line_file_remove(&file->lines, error);
    }
    free_file(files, file);
    return status;
}

static enum wal_status remove_unused_files(struct wal__view_files *files,
                                           struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < files->count; i++) {
        if (files->items[i]->is_current) {
            files->items[kept++] = files->items[i];
        } else if (status == WAL_OK) {
            status = remove_file(files, files->items[i], error);
        } else {
            free_file(files, files->items[i]);
        }
    }
    WAL__ASSERT(kept <= files->count);
    if (kept == files->count) {
        return WAL_OK;
    }
    files->count = kept;
    if (status != WAL_OK) {
        wal__view_files_clear(files);
        return status;
    }
    wal__hashmap_deinit(&files->index_by_path);
    wal__hashmap_init(&files->index_by_path, files->env->heap);
    for (uint32_t i = 0; i < kept && status == WAL_OK; i++) {
        status = wal__hashmap_add(&files->index_by_path,
                                  path_hash(files->items[i]->lines.path), i);
    }
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
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
        if (file->is_document || !file->is_current) {
            continue;
        }
        files->has_replaced |= file->lines.mode == WAL__LINES_REPLACE;
        status = wal__line_file_commit(&file->lines, error);
        files->lines += file->lines.lines;
        files->bytes += file->lines.bytes;
    }
    return status == WAL_OK ? remove_unused_files(files, error) : status;
}

void wal__view_files_end(struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        wal__line_file_end(&files->items[i]->lines);
    }
}

bool wal__view_files_are_unchanged(struct wal__view_files *files,
                                   bool include_documents)
{
    for (uint32_t i = 0; i < files->count; i++) {
        struct wal__view_file *file = files->items[i];
        if (!file->is_shared && (include_documents || !file->is_document) &&
            !wal__line_file_is_unchanged(&file->lines) &&
            (!file->is_document ||
             !wal__line_file_has_saved_content(&file->lines))) {
            return false;
        }
    }
    return true;
}

struct wal__saved_file wal__view_file_to_save(const struct wal__view_file *file)
{
    struct wal__saved_file saved = file->lines.saved;

    if (!file->is_document && file->is_current) {
        saved = (struct wal__saved_file){
            .is_known = true,
            .has_old_stamp =
                file->lines.mode == WAL__LINES_REPLACE && file->lines.exists,
            .stamp = file->lines.stamp,
            .old_stamp = file->lines.replaced,
            .fingerprint = file->lines.content,
            .stable = file->lines.stable,
        };
    }
    return saved;
}
