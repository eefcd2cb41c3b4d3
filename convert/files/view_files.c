/*
 * view_files.c - the files of a view: lines as they are put, and documents,
 * which are replaced once they are complete (view_files.h, SPEC.md 10.3).
 *
 * Invariant: keys of documents in memory are in byte order.
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/files/view_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/files/shared_file.h"
#include "convert/model/model_table.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "format/bytes/assert.h"
#include "format/json/json_out.h"

/* --- documents in memory ------------------------------------------------- */

/* The owner sets `files`, which must not change meanwhile. */
struct joined_files {
    const struct wal__view_files *files;
    const struct wal__view_file **items; /* the documents, by path */
    uint32_t count;
};

static int compare_paths(const void *a, const void *b)
{
    const struct wal__view_file *const *one = a;
    const struct wal__view_file *const *two = b;

    return strcmp((*one)->lines.path, (*two)->lines.path);
}

/* Returns the index of the first document whose path is not before the key. */
static uint32_t lower_bound(const struct joined_files *joined, const char *key)
{
    uint32_t low = 0;
    uint32_t high = joined->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(joined->items[middle]->lines.path, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct wal__json_span value_of(const struct wal__view_file *file)
{
    return (struct wal__json_span){file->data.data, file->data.size};
}

static bool get_document(void *ctx, const char *key,
                         struct wal__json_span *value)
{
    const struct joined_files *joined = ctx;
    uint32_t at = lower_bound(joined, key);

    if (at == joined->count ||
        strcmp(joined->items[at]->lines.path, key) != 0) {
        return false;
    }
    *value = value_of(joined->items[at]);
    return true;
}

static bool scan_documents(void *ctx, const char *prefix,
                           bool (*each)(void *each_ctx, const char *key,
                                        struct wal__json_span value),
                           void *each_ctx)
{
    const struct joined_files *joined = ctx;
    size_t size = strlen(prefix);

    for (uint32_t i = lower_bound(joined, prefix); i < joined->count; i++) {
        const struct wal__view_file *file = joined->items[i];
        if (strncmp(file->lines.path, prefix, size) != 0) {
            break;
        }
        if (!each(each_ctx, file->lines.path, value_of(file))) {
            return false;
        }
    }
    return true;
}

/* Sets *documents, which borrows *joined. False: no memory. */
static bool joined_files_init(struct joined_files *joined,
                              struct wal__model_documents *documents)
{
    const struct wal__view_files *files = joined->files;

    joined->count = 0;
    joined->items = wal__heap_alloc(
        files->env->heap, (files->count + 1) * sizeof(joined->items[0]));
    if (joined->items == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->items[i]->is_document && files->items[i]->is_current) {
            joined->items[joined->count++] = files->items[i];
        }
    }
    qsort(joined->items, joined->count, sizeof(joined->items[0]),
          compare_paths);
    *documents = (struct wal__model_documents){
        .ctx = joined, .get = get_document, .scan = scan_documents};
    return true;
}

static void joined_files_deinit(struct joined_files *joined)
{
    wal__heap_free(joined->files->env->heap, joined->items);
    joined->items = NULL;
}

/* --- documents on disk --------------------------------------------------- */

/* Whether the file has the content of the document. */
static bool matches_file(struct wal__view_file *file, int directory,
                         const char *name, struct wal__file_stamp *stamp)
{
    size_t at = 0;
    char piece[4096];
    int fd;
    ssize_t got = 0;

    if (wal__view_fs_open(directory, name, &fd, stamp, NULL) != WAL_OK) {
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
    enum wal_status status = wal__view_fs_open_parent(
        env, files->root, file->lines.path, true, &directory, &name, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__view_fs_create(env, files->temporary_dir, file->temporary,
                                 &fd, error);

    if (status == WAL_OK) {
        status = wal__view_fs_write(env, fd, file->data.data, file->data.size,
                                    error);
        if (status == WAL_OK) {
            status = wal__view_fs_sync(env, fd, &file->lines.stamp, error);
        }
        close(fd);
        if (status == WAL_OK) {
            status =
                wal__view_fs_rename(env, files->temporary_dir, file->temporary,
                                    directory, name, false, error);
        }
        if (status != WAL_OK) {
            (void)wal__view_fs_remove(env, files->temporary_dir,
                                      file->temporary);
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

/* Determines whether the document must be written, and sets its saved state.
 * Fails if the file has what another program wrote. */
static enum wal_status check_document(struct wal__view_files *files,
                                      struct wal__view_file *file,
                                      struct wal_error *error)
{
    struct wal__saved_file *saved = &file->lines.saved;
    struct wal__file_stamp stamp = {.size = 0};
    const char *name = NULL;
    int directory = -1;
    bool is_own;
    enum wal_status status =
        wal__view_fs_open_parent(files->env, files->root, file->lines.path,
                                 true, &directory, &name, error);

    if (status != WAL_OK) {
        return status;
    }
    file->is_same = matches_file(file, directory, name, &stamp);
    /* Without a state, a document next to a file of lines is made again. */
    is_own = file->is_same ||
             (!saved->is_known && files->dialect->write_ops->join == NULL) ||
             wal__line_file_is_own(saved, directory, name, &stamp);
    close(directory);
    if (!is_own) {
        return wal__fail_at(error, WAL_ECHANGED, 0, file->lines.path, 0, "%s",
                            saved->is_known ? "another program wrote to it"
                                            : "exists with other content");
    }
    saved->has_old_stamp = saved->is_known;
    saved->old_stamp = saved->stamp;
    saved->is_known = true;
    saved->stamp = stamp;
    saved->fingerprint = (struct wal__fingerprint){.size = 0};
    wal__fingerprint_update(&saved->fingerprint, file->data.data,
                            file->data.size);
    saved->stable = saved->fingerprint;
    return WAL_OK;
}

static enum wal_status write_document(struct wal__view_files *files,
                                      struct wal__view_file *file,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (file->is_shared) {
        const struct wal__shared_file shared = {.env = files->env,
                                                .root = files->root,
                                                .path = file->lines.path,
                                                .temporary_dir =
                                                    files->temporary_dir,
                                                .temporary = file->temporary,
                                                .data = file->data.data,
                                                .size = file->data.size};
        status = file->kind == WAL__OUTPUT_SHARED_LINE
                     ? wal__shared_file_add_line(&shared, error)
                     : wal__shared_file_create(&shared, error);
    } else if (!file->is_same) {
        status = replace_document(files, file, error);
        file->lines.saved.stamp = file->lines.stamp;
        count_lines(files, file);
    }
    if (status == WAL_OK) {
        file->lines.saved.has_old_stamp = false;
        file->lines.saved.append_pending = false;
        wal__buf_deinit(&file->data);
        wal__buf_init(&file->data, files->env->heap);
        file->has_data = false;
    }
    return status;
}

/* Whether two paths have the same directory. */
static bool have_same_parent(const char *one, const char *two)
{
    const char *end = strrchr(one, '/');
    size_t size = end != NULL ? (size_t)(end - one) + 1 : 0;

    return strncmp(one, two, size) == 0 && strchr(two + size, '/') == NULL;
}

/* Makes the names of the documents durable that were renamed into place: the
 * next state does not have the stamps of those that they replaced. */
static enum wal_status sync_documents(struct wal__view_files *files,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    const char *synced = NULL;

    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];
        const char *path = file->lines.path;
        const char *name = NULL;
        int directory = -1;

        if (!file->is_replaced ||
            (synced != NULL && have_same_parent(synced, path))) {
            continue;
        }
        status = wal__view_fs_open_parent(files->env, files->root, path, false,
                                          &directory, &name, error);
        if (status == WAL_OK) {
            status =
                wal__view_fs_sync_names(files->env, directory, path, error);
            close(directory);
        }
        synced = path;
    }
    return status;
}

/*
 * Writes the documents whose content was put and differs from the file's; those
 * that are shared with the client are created or get a line. The saved state
 * has all new documents, durably, before the first is written; all names are
 * durable when it returns. WAL_ECHANGED: a document is not the view's; nothing
 * is written.
 */
static enum wal_status document_files_write(struct wal__view_files *files,
                                            struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool is_same = true;

    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];
        if (file->has_data && !file->is_shared) {
            status = check_document(files, file, error);
            is_same &= file->is_same;
        }
    }
    if (status == WAL_OK && !is_same) {
        status = files->owner.before_append(files->owner.ctx, error);
    }
    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];

        /* An interrupted flush may have replaced one that is the same. */
        file->is_replaced =
            file->has_data && !file->is_shared &&
            (!file->is_same || file->lines.saved.append_pending);
        if (file->has_data) {
            status = write_document(files, file, error);
        }
    }
    return status == WAL_OK ? sync_documents(files, error) : status;
}

/* --- the files ----------------------------------------------------------- */

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

/* --- output -------------------------------------------------------------- */

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

/* --- documents ----------------------------------------------------------- */

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
    struct joined_files joined = {.files = files};
    struct wal__model_documents documents;
    bool is_done;

    if (files->dialect->write_ops->join == NULL) {
        return true;
    }
    if (!joined_files_init(&joined, &documents)) {
        return no_memory(files);
    }
    is_done = files->dialect->write_ops->join(&documents, &out) &&
              !out.has_failed && put_joined(files, "\n", 1);
    joined_files_deinit(&joined);
    return is_done || (files->status == WAL_OK ? no_memory(files) : false);
}

/* --- commit -------------------------------------------------------------- */

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
    return status == WAL_OK ? document_files_write(files, error) : status;
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
