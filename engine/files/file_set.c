/*
 * file_set.c - lists of files in memory (file_set.h). A list is two allocations, sized before they
 * are filled.
 */
#include "engine/files/file_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/blob_store.h"
#include "format/bytes/assert.h"

void wal__files_init(struct wal__files *files, const struct wal__heap *heap)
{
    *files = (struct wal__files){.heap = heap};
}

void wal__files_deinit(struct wal__files *files)
{
    if (files->heap != NULL) {
        wal__heap_free(files->heap, files->items);
        wal__heap_free(files->heap, files->texts);
        wal__files_init(files, files->heap);
    }
}

/* Allocates space for `count` files whose paths, without their NULs, have `size` bytes in total. */
static enum wal_status allocate(struct wal__files *files, uint64_t count, uint64_t size,
                                struct wal_error *error)
{
    if (count > WAL__FILES_MAX) {
        return wal__fail(error, WAL_ETOOBIG, "the list has %" PRIu64 " files; the maximum is %d",
                         count, WAL__FILES_MAX);
    }
    files->items = wal__heap_resize(files->heap, NULL, (size_t)count + 1, sizeof(files->items[0]));
    files->texts = wal__heap_alloc(files->heap, (size_t)(size + count + 1));
    if (files->items == NULL || files->texts == NULL) {
        return wal__no_memory(error);
    }
    return WAL_OK;
}

/* Appends a copy of the file; *end is the end of the texts. The caller allocated space for both. */
static void append_file(struct wal__files *files, const struct wal__file_record *file,
                        uint8_t **end)
{
    struct wal__file_record *item = &files->items[files->count++];

    *item = *file;
    item->path.data = *end;
    memcpy(*end, file->path.data, file->path.size);
    *end += file->path.size;
    *(*end)++ = 0;
}

/* --- paths --------------------------------------------------------------- */

static enum wal_status fail_path(struct wal_error *error, enum wal_status status,
                                 struct wal__span path, const char *text)
{
    char name[sizeof(error->file)];
    size_t size = path.size < sizeof(name) - 1 ? path.size : sizeof(name) - 1;

    if (size > 0) {
        memcpy(name, path.data, size);
    }
    name[size] = '\0';
    return wal__fail_at(error, status, 0, name, 0, "%s", text);
}

/* Strips the root from an absolute path, both without their first slash; the rest may be empty.
 * False if the path is not below the root. */
static bool strip_root_prefix(struct wal__span root, struct wal__span *path)
{
    if (root.size == 0) {
        return true;
    }
    if (path->size < root.size || memcmp(path->data, root.data, root.size) != 0 ||
        (path->size > root.size && path->data[root.size] != '/')) {
        return false;
    }
    root.size += path->size > root.size;
    path->data += root.size;
    path->size -= root.size;
    return true;
}

/* The next component of the path; false at the end. */
static bool next_component(struct wal__span *rest, struct wal__span *part)
{
    const uint8_t *slash;

    if (rest->size == 0) {
        return false;
    }
    slash = memchr(rest->data, '/', rest->size);
    part->data = rest->data;
    part->size = slash == NULL ? rest->size : (size_t)(slash - rest->data);
    rest->data += part->size + (slash != NULL);
    rest->size -= part->size + (slash != NULL);
    return true;
}

/* Copies the path to `out` without empty and "." components; false if it has a ".." component. */
static bool normalize_path(struct wal__span path, uint8_t *out, struct wal__span *normalized)
{
    struct wal__span rest = path;
    struct wal__span part;
    size_t end = 0;

    while (next_component(&rest, &part)) {
        if (part.size == 2 && memcmp(part.data, "..", 2) == 0) {
            return false;
        }
        if (part.size == 0 || (part.size == 1 && part.data[0] == '.')) {
            continue;
        }
        if (end > 0) {
            out[end++] = '/';
        }
        memcpy(out + end, part.data, part.size);
        end += part.size;
    }
    *normalized = (struct wal__span){out, end};
    return true;
}

/* Adds a caller's path; root is without its first slash. */
static enum wal_status add_path(struct wal__files *files, struct wal__span root,
                                const struct wal_slice *slice, uint8_t **end,
                                struct wal_error *error)
{
    struct wal__span path = {slice->data, (size_t)slice->size};
    struct wal__span normalized;

    if (path.size == 0 || memchr(path.data, 0, path.size) != NULL) {
        return fail_path(error, WAL_EINVAL, path, "the path is empty or contains a zero byte");
    }
    if (!normalize_path(path, *end, &normalized)) {
        return fail_path(error, WAL_EOUTSIDE, path, "the path contains \"..\"");
    }
    *end += normalized.size;
    WAL__ASSERT(normalized.size <= path.size);
    if (path.data[0] == '/' && !strip_root_prefix(root, &normalized)) {
        return fail_path(error, WAL_EOUTSIDE, path, "the path is outside the root");
    }
    if (normalized.size == 0) {
        return fail_path(error, WAL_ENOTFILE, path, "the path is the root itself");
    }
    if (normalized.size > WAL__FILE_PATH_MAX) {
        return fail_path(error, WAL_ETOOBIG, path, "the path is longer than 4,096 bytes");
    }
    *(*end)++ = 0;
    files->items[files->count++] = (struct wal__file_record){.path = normalized};
    return WAL_OK;
}

static int compare_files(const void *a, const void *b)
{
    return wal__span_compare(((const struct wal__file_record *)a)->path,
                             ((const struct wal__file_record *)b)->path);
}

/* Sorts the files by path and removes repeated paths. */
static void sort(struct wal__files *files)
{
    uint32_t kept = 0;
    uint32_t i = 1;

    while (i < files->count && compare_files(&files->items[i - 1], &files->items[i]) < 0) {
        i++;
    }
    if (i >= files->count) {
        return; /* the common case: already sorted */
    }
    qsort(files->items, files->count, sizeof(files->items[0]), compare_files);
    for (i = 0; i < files->count; i++) {
        if (kept == 0 || compare_files(&files->items[kept - 1], &files->items[i]) != 0) {
            files->items[kept++] = files->items[i];
        }
    }
    files->count = kept;
}

/* The same; one that is no path of a file below the root becomes an issue. */
static enum wal_status add_path_or_issue(struct wal__files *files, struct wal__span root,
                                         const struct wal_slice *slice, uint8_t **end,
                                         struct wal__file_issues *issues, struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};
    enum wal_status status = add_path(files, root, slice, end, &why);

    if (status != WAL_OK && status != WAL_EINVAL) {
        status = wal__file_issues_add(issues, (struct wal__span){slice->data, (size_t)slice->size},
                                      &why);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &why);
    }
    return status;
}

/* Adds the paths in the caller's order. */
static enum wal_status add_paths(struct wal__files *files, const char *root,
                                 const struct wal_slice *paths, uint64_t count,
                                 struct wal__file_issues *issues, struct wal_error *error)
{
    const uint64_t path_max = 2 * WAL__FILE_PATH_MAX;
    const struct wal__span below = {(const uint8_t *)root + 1, strlen(root) - 1};
    enum wal_status status = WAL_OK;
    uint64_t size = 0;
    uint8_t *end;

    for (uint64_t i = 0; i < count && i < WAL__FILES_MAX; i++) {
        struct wal__span path = {paths[i].data, path_max};

        if (paths[i].data == NULL || paths[i].size > path_max) {
            path.size = paths[i].data == NULL ? 0 : path.size;
            return fail_path(error, path.size == 0 ? WAL_EINVAL : WAL_ETOOBIG, path,
                             "the path is NULL or longer than 4,096 bytes");
        }
        size += paths[i].size;
    }
    status = allocate(files, count, size, error);
    end = files->texts;
    for (uint64_t i = 0; i < count && status == WAL_OK; i++) {
        status = issues == NULL ? add_path(files, below, &paths[i], &end, error)
                                : add_path_or_issue(files, below, &paths[i], &end, issues, error);
    }
    WAL__ASSERT(status != WAL_OK || issues != NULL || files->count == count);
    if (status != WAL_OK) {
        wal__files_deinit(files);
    }
    return status;
}

enum wal_status wal__files_from_paths(struct wal__files *files, const char *root,
                                      const struct wal_slice *paths, uint64_t count,
                                      struct wal__file_issues *issues, struct wal_error *error)
{
    enum wal_status status = add_paths(files, root, paths, count, issues, error);

    if (status == WAL_OK) {
        sort(files);
    }
    if (issues != NULL) {
        wal__file_issues_sort(issues);
    }
    return status;
}

/* --- states given by the caller ------------------------------------------ */

static enum wal_status set_state(struct wal__file_record *file, const struct wal_file *state,
                                 struct wal_error *error)
{
    if (state->kind > WAL_FILE_SYMLINK || state->mode > 07777) {
        return fail_path(error, WAL_EINVAL, file->path,
                         "the file has an unknown kind, or a mode with other bits than "
                         "permissions");
    }
    file->kind = (uint8_t)state->kind;
    if (file->kind == WAL__FILE_ABSENT) {
        return WAL_OK;
    }
    file->flags = WAL__FILE_RACY;
    file->mode = state->mode;
    if (file->kind == WAL__FILE_SYMLINK) {
        file->mode = 0777;
    } else if (file->mode == 0) {
        file->mode = 0644;
    }
    file->mtime_ns = state->mtime_ns;
    memcpy(file->digest.bytes, state->digest, sizeof(file->digest.bytes));
    return WAL_OK;
}

static enum wal_status set_states(struct wal__files *files, const struct wal_file *states,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        status = set_state(&files->items[i], &states[i], error);
    }
    if (status != WAL_OK || files->count == 0) {
        return status;
    }
    qsort(files->items, files->count, sizeof(files->items[0]), compare_files);
    for (uint32_t i = 1; i < files->count; i++) {
        if (compare_files(&files->items[i - 1], &files->items[i]) == 0 &&
            !wal__file_state_equal(&files->items[i - 1], &files->items[i])) {
            return fail_path(error, WAL_EINVAL, files->items[i].path,
                             "the path is given twice with different states");
        }
    }
    sort(files);
    return WAL_OK;
}

enum wal_status wal__files_from_states(struct wal__files *files, const char *root,
                                       const struct wal_file *states, uint64_t count,
                                       struct wal_error *error)
{
    struct wal_slice *paths = NULL;
    enum wal_status status;

    if (count > WAL__FILES_MAX) {
        return allocate(files, count, 0, error);
    }
    paths = wal__heap_resize(files->heap, NULL, (size_t)count + 1, sizeof(paths[0]));
    if (paths == NULL) {
        return wal__no_memory(error);
    }
    for (uint64_t i = 0; i < count; i++) {
        paths[i] = states[i].path;
    }
    status = add_paths(files, root, paths, count, NULL, error);
    if (status == WAL_OK) {
        status = set_states(files, states, error);
    }
    if (status != WAL_OK) {
        wal__files_deinit(files);
    }
    wal__heap_free(files->heap, paths);
    return status;
}

/* --- bytes --------------------------------------------------------------- */

static enum wal_status fail_corrupt(struct wal_error *error, enum wal__fmt fmt)
{
    return wal__fail(error, WAL_ECORRUPT, "the list of files of a checkpoint is damaged: %s",
                     wal__fmt_text(fmt));
}

static enum wal_status decode(struct wal__files *files, struct wal__span bytes,
                              struct wal_error *error)
{
    struct wal__file_list list;
    enum wal__fmt fmt = wal__file_list_decode(bytes, &list);
    struct wal__file_record file;
    enum wal_status status;
    uint8_t *end;

    if (fmt != WAL__FMT_OK) {
        return fail_corrupt(error, fmt);
    }
    /* The paths need less space than the encoded records. */
    status = allocate(files, list.count, list.rest.size, error);
    memcpy(files->boot, list.boot, sizeof(files->boot));
    end = files->texts;
    while (status == WAL_OK && list.remaining > 0) {
        fmt = wal__file_list_next(&list, &file);
        if (fmt != WAL__FMT_OK) {
            status = fail_corrupt(error, fmt);
            break;
        }
        WAL__ASSERT(files->count < list.count);
        append_file(files, &file, &end);
    }
    if (status != WAL_OK) {
        wal__files_deinit(files);
    }
    return status;
}

enum wal_status wal__fail_content(struct wal_error *error, enum wal_status status,
                                  const struct wal_error *why, const char *path)
{
    return wal__fail_at(error, status == WAL_ENOTFOUND ? WAL_ECORRUPT : status, why->sys_errno,
                        why->file, why->offset, "cannot read the content of \"%s\": %s", path,
                        why->text);
}

enum wal_status wal__files_load(struct wal__files *files, struct wal__blob_store *blobs,
                                const struct wal__digest *digest, struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, files->heap);
    status = wal__blob_load(blobs, digest, &bytes, &why);
    if (status != WAL_OK) {
        status = wal__fail_content(error, status, &why, "list of files");
    } else {
        const struct wal__span span = {bytes.data, bytes.size};

        status = decode(files, span, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

void wal__files_invalidate_fresh(struct wal__files *files, const struct wal__io *io)
{
    static const uint8_t unknown[WAL__FILE_BOOT_SIZE];
    uint8_t boot[WAL__FILE_BOOT_SIZE] = {0};

    io->boot_id(io->ctx, boot);
    if (memcmp(boot, files->boot, sizeof(boot)) == 0 && memcmp(boot, unknown, sizeof(boot)) != 0) {
        return;
    }
    for (uint32_t i = 0; i < files->count; i++) {
        if ((files->items[i].flags & WAL__FILE_FRESH) != 0) {
            files->items[i].flags |= WAL__FILE_RACY;
        }
    }
}

/* Appends the list with the current boot id to out. WAL_ENOMEM. */
static enum wal_status encode(const struct wal__files *files, const struct wal__io *io,
                              struct wal__buf *out)
{
    size_t size = wal__file_list_head_size();
    uint8_t boot[WAL__FILE_BOOT_SIZE] = {0};
    enum wal_status status;
    uint8_t *at;

    for (uint32_t i = 0; i < files->count; i++) {
        size += wal__file_record_size(&files->items[i]);
    }
    status = wal__buf_reserve(out, size, &at);
    if (status != WAL_OK) {
        return status;
    }
    out->size += size;
    io->boot_id(io->ctx, boot);
    wal__file_list_encode_head(files->count, boot, at);
    at += wal__file_list_head_size();
    for (uint32_t i = 0; i < files->count; i++) {
        wal__file_record_encode(&files->items[i], at);
        at += wal__file_record_size(&files->items[i]);
    }
    WAL__ASSERT(at == out->data + out->size);
    return WAL_OK;
}

enum wal_status wal__files_store(const struct wal__files *files, struct wal__blob_store *blobs,
                                 const struct wal__digest *base, struct wal__digest *digest,
                                 struct wal__blob_put_result *result, struct wal_error *error)
{
    uint64_t end = result->end;
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, files->heap);
    status = encode(files, blobs->env->io, &bytes);
    if (status != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        status = wal__blob_put(blobs, (struct wal__span){bytes.data, bytes.size}, base,
                               WAL__BLOB_OF_RECORDS, digest, result, error);
    }
    if (status == WAL_OK) {
        /* The sync must cover the contents, not only the list. */
        WAL__ASSERT(result->end >= end);
        status = wal__blob_store_sync(blobs, result->end, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

/* --- lists --------------------------------------------------------------- */

struct wal__file_record *wal__files_find(const struct wal__files *files, struct wal__span path)
{
    uint32_t low = 0;
    uint32_t high = files->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = wal__span_compare(files->items[middle].path, path);

        if (order == 0) {
            return &files->items[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

struct wal__file_record *wal__files_find_above(const struct wal__files *files,
                                               struct wal__span path)
{
    struct wal__file_record *found = NULL;

    for (size_t i = 0; i < path.size && found == NULL; i++) {
        if (path.data[i] == '/') {
            found = wal__files_find(files, (struct wal__span){path.data, i});
        }
    }
    return found;
}

bool wal__files_has_below(const struct wal__files *files, struct wal__span path)
{
    uint32_t low = 0;
    uint32_t high = files->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct wal__span at = files->items[middle].path;
        int order = memcmp(at.data, path.data, at.size < path.size ? at.size : path.size);

        if (order == 0) {
            order = at.size <= path.size ? -1 : at.data[path.size] - '/';
        }
        if (order == 0) {
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

static uint64_t paths_size(const struct wal__files *files)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < files->count; i++) {
        size += files->items[i].path.size;
    }
    return size;
}

enum wal_status wal__files_merge(struct wal__files *out, const struct wal__files *first,
                                 const struct wal__files *second, struct wal_error *error)
{
    enum wal_status status = allocate(out, (uint64_t)first->count + second->count,
                                      paths_size(first) + paths_size(second), error);
    uint8_t *end = out->texts;
    uint32_t a = 0;
    uint32_t b = 0;

    if (status != WAL_OK) {
        wal__files_deinit(out);
        return status;
    }
    while (a < first->count || b < second->count) {
        int order = a == first->count    ? 1
                    : b == second->count ? -1
                                         : compare_files(&first->items[a], &second->items[b]);

        append_file(out, order <= 0 ? &first->items[a] : &second->items[b], &end);
        a += order <= 0;
        b += order >= 0;
    }
    WAL__ASSERT(out->count >= first->count && out->count >= second->count);
    return WAL_OK;
}

enum wal_status wal__files_filter(struct wal__files *out, const struct wal__files *files,
                                  const struct wal__files *other, bool has, struct wal_error *error)
{
    enum wal_status status = allocate(out, files->count, paths_size(files), error);
    uint8_t *end = out->texts;

    if (status != WAL_OK) {
        wal__files_deinit(out);
        return status;
    }
    for (uint32_t i = 0; i < files->count; i++) {
        if ((wal__files_find(other, files->items[i].path) != NULL) == has) {
            append_file(out, &files->items[i], &end);
        }
    }
    WAL__ASSERT(out->count <= files->count);
    return WAL_OK;
}

enum wal_status wal__files_make_absolute(struct wal__files *out, const struct wal__files *files,
                                         struct wal__span root, struct wal_error *error)
{
    size_t root_size = root.size - (root.size == 1); /* the root is "/" */
    uint64_t size = paths_size(files) + (uint64_t)files->count * (root_size + 1);
    enum wal_status status = allocate(out, files->count, size, error);
    uint8_t *end = out->texts;

    if (status != WAL_OK) {
        wal__files_deinit(out);
        return status;
    }
    for (uint32_t i = 0; i < files->count; i++) {
        uint8_t *begin = end;

        memcpy(end, root.data, root_size);
        end[root_size] = '/';
        end += root_size + 1;
        append_file(out, &files->items[i], &end);
        out->items[i].path.data = begin;
        out->items[i].path.size += root_size + 1;
    }
    WAL__ASSERT(end == out->texts + size + files->count);
    return WAL_OK;
}

uint64_t wal__files_total_size(const struct wal__files *files)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < files->count; i++) {
        bytes += files->items[i].size;
    }
    return bytes;
}

bool wal__file_state_equal(const struct wal__file_record *a, const struct wal__file_record *b)
{
    if (a->kind != b->kind) {
        return false;
    }
    if (a->kind == WAL__FILE_ABSENT) {
        return true;
    }
    return a->size == b->size && memcmp(&a->digest, &b->digest, sizeof(a->digest)) == 0 &&
           (a->kind == WAL__FILE_SYMLINK || a->mode == b->mode);
}

/* --- paths that could not be recorded ------------------------------------- */

/* The path and the reason of an item are one allocation, which the path begins. */
static void remove_last(struct wal__file_issues *issues)
{
    WAL__ASSERT(issues->count > 0);
    wal__heap_free(issues->heap, (void *)(uintptr_t)issues->items[--issues->count].path.data);
}

void wal__file_issues_deinit(struct wal__file_issues *issues)
{
    while (issues->count > 0) {
        remove_last(issues);
    }
    wal__heap_free(issues->heap, issues->items);
    *issues = (struct wal__file_issues){.heap = issues->heap};
}

enum wal_status wal__file_issues_add(struct wal__file_issues *issues, struct wal__span path,
                                     struct wal_error *error)
{
    const char *cause = error->sys_errno == 0 ? "" : strerror(error->sys_errno);
    size_t size = strlen(error->text) + strlen(cause) + sizeof(": ");
    char *text;

    if (!WAL__HEAP_GROW(issues->heap, issues->items, issues->count, issues->capacity)) {
        return wal__no_memory(error);
    }
    text = wal__heap_alloc(issues->heap, path.size + size);
    if (text == NULL) {
        return wal__no_memory(error);
    }
    memcpy(text, path.data, path.size);
    (void)snprintf(text + path.size, size, "%s%s%s", error->text, *cause == '\0' ? "" : ": ",
                   cause);
    issues->items[issues->count++] = (struct wal_checkpoint_issue){
        .struct_size = sizeof(issues->items[0]),
        .status = error->status,
        .path = {text, path.size},
        .reason = {text + path.size, strlen(text + path.size)},
    };
    error->status = WAL_OK;
    return WAL_OK;
}

static struct wal__span path_of(const struct wal_checkpoint_issue *issue)
{
    return (struct wal__span){issue->path.data, (size_t)issue->path.size};
}

static int compare_issues(const void *a, const void *b)
{
    return wal__span_compare(path_of(a), path_of(b));
}

void wal__file_issues_sort(struct wal__file_issues *issues)
{
    uint32_t kept = 0;

    if (issues->count > 1) {
        qsort(issues->items, issues->count, sizeof(issues->items[0]), compare_issues);
    }
    for (uint32_t i = 0; i < issues->count; i++) {
        if (kept > 0 && compare_issues(&issues->items[kept - 1], &issues->items[i]) == 0) {
            wal__heap_free(issues->heap, (void *)(uintptr_t)issues->items[i].path.data);
        } else {
            issues->items[kept++] = issues->items[i];
        }
    }
    issues->count = kept;
}
