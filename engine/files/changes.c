/*
 * changes.c - the changes of files between two lists of states (changes.h, SPEC.md 5.13), and the
 * public functions that compute and read them.
 *
 * What is compared: two checkpoints; a checkpoint and the disk, which is captured without storing
 * contents; or the first and the last state of each path that any checkpoint of a session has. A
 * path counts when both lists name it and its states differ.
 *
 * Lines are counted as git does: a link's content is its target, and content that is large or has a
 * zero byte near its beginning is binary and not read further. Several threads count. In memory are
 * the two contents of one large file, which the mutex of struct wal__diffstat serialises, and of
 * one small file per thread.
 *
 * Threads: any; one at a time per cursor.
 */
#include "engine/files/changes.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/base/thread.h"
#include "engine/files/capture.h"
#include "engine/files/checkpoint.h"
#include "engine/files/numstat.h"
#include "engine/session/session.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

void wal__changes_init(struct wal__changes *changes, const struct wal__heap *heap)
{
    *changes = (struct wal__changes){.heap = heap};
}

void wal__changes_deinit(struct wal__changes *changes)
{
    if (changes->heap != NULL) {
        wal__heap_free(changes->heap, changes->items);
        wal__heap_free(changes->heap, changes->texts);
        wal__changes_init(changes, changes->heap);
    }
}

struct merge {
    const struct wal__files *before;
    const struct wal__files *after;
    uint32_t a;
    uint32_t b;
};

/* The next file that both lists name and that differs; false at the end. */
static bool next_pair(struct merge *merge, const struct wal__file_record **before,
                      const struct wal__file_record **after)
{
    while (merge->a < merge->before->count && merge->b < merge->after->count) {
        int order;

        *before = &merge->before->items[merge->a];
        *after = &merge->after->items[merge->b];
        order = wal__span_compare((*before)->path, (*after)->path);
        merge->a += order <= 0;
        merge->b += order >= 0;
        if (order == 0 && !wal__file_state_equal(*before, *after)) {
            return true;
        }
    }
    return false;
}

static uint32_t change_flags(const struct wal__file_record *before,
                             const struct wal__file_record *after)
{
    uint32_t flags = 0;

    if ((before->kind == WAL__FILE_ABSENT) != (after->kind == WAL__FILE_ABSENT) ||
        memcmp(&before->digest, &after->digest, sizeof(before->digest)) != 0) {
        flags |= WAL_FILE_CHANGE_CONTENT;
    }
    if (before->kind == WAL__FILE_REGULAR && after->kind == WAL__FILE_REGULAR &&
        before->mode != after->mode) {
        flags |= WAL_FILE_CHANGE_MODE;
    }
    return flags;
}

enum wal_status wal__changes_compute(const struct wal__files *before,
                                     const struct wal__files *after, struct wal__changes *changes,
                                     struct wal_error *error)
{
    struct merge merge = {.before = before, .after = after};
    const struct wal__file_record *a;
    const struct wal__file_record *b;
    uint32_t count = 0;
    size_t size = 0;
    uint8_t *end;

    WAL__ASSERT(changes->count == 0);
    while (next_pair(&merge, &a, &b)) {
        count++;
        size += a->path.size;
    }
    changes->items = wal__heap_resize(changes->heap, NULL, count, sizeof(changes->items[0]));
    changes->texts = wal__heap_alloc(changes->heap, size + count);
    if (changes->items == NULL || changes->texts == NULL) {
        wal__changes_deinit(changes);
        return wal__no_memory(error);
    }
    merge.a = 0;
    merge.b = 0;
    end = changes->texts;
    while (next_pair(&merge, &a, &b)) {
        struct wal__change *change = &changes->items[changes->count++];

        *change = (struct wal__change){.before = *a, .after = *b, .flags = change_flags(a, b)};
        memcpy(end, a->path.data, a->path.size);
        change->path = (struct wal__span){end, a->path.size};
        change->before.path = change->path;
        change->after.path = change->path;
        end += a->path.size;
        *end++ = 0;
    }
    WAL__ASSERT(changes->count == count);
    WAL__ASSERT(end == changes->texts + size + count);
    return WAL_OK;
}

/* --- sums ---------------------------------------------------------------- */

void wal__changes_info(const struct wal__changes *changes, struct wal_file_changes_info *info)
{
    *info = (struct wal_file_changes_info){.struct_size = sizeof(*info), .files = changes->count};
    for (uint32_t i = 0; i < changes->count; i++) {
        const struct wal__change *change = &changes->items[i];

        info->insertions += change->insertions;
        info->deletions += change->deletions;
        info->binary += (change->flags & WAL_FILE_CHANGE_BINARY) != 0;
    }
}

/* --- lines of a change --------------------------------------------------- */

/* One side's content of a file; `bytes` is the part that was read. */
struct content_reader {
    const struct wal__content_source *from;
    const struct wal__file_record *file;
    struct wal__buf bytes;
    uint64_t size; /* of the whole content */
    struct wal__blob_reader *reader;
    struct wal__worktree_file *open;
};

/* --- on disk ------------------------------------------------------------- */

/* A file that is gone, or was replaced by another kind, counts as empty. */
static bool is_gone(enum wal_status status)
{
    return status == WAL_ENOTFOUND || status == WAL_ENOTFILE || status == WAL_EOUTSIDE;
}

static enum wal_status open_link(struct content_reader *content, struct wal_error *error)
{
    const struct wal__worktree_io *io = content->from->io;
    const char *path = wal__file_path(content->file);
    int sys_errno = 0;
    size_t got = 0;
    uint8_t *buffer;
    enum wal_status status = wal__buf_reserve(&content->bytes, WAL__PATH_MAX, &buffer);

    if (status != WAL_OK) {
        return status;
    }
    status = io->read_link(io->ctx, content->from->worktree, path, buffer, WAL__PATH_MAX, &got,
                           &sys_errno);
    if (status != WAL_OK) {
        return is_gone(status)
                   ? WAL_OK
                   : wal__worktree_fail(error, status, sys_errno, path, "reading the link");
    }
    content->bytes.size = got;
    content->size = got;
    return WAL_OK;
}

static enum wal_status open_file(struct content_reader *content, struct wal_error *error)
{
    const struct wal__worktree_io *io = content->from->io;
    const char *path = wal__file_path(content->file);
    struct wal__worktree_stat stat = {0};
    int sys_errno = 0;
    enum wal_status status;

    if (content->file->kind == WAL__FILE_SYMLINK) {
        return open_link(content, error);
    }
    status = io->open(io->ctx, content->from->worktree, path, &content->open, &sys_errno);
    if (is_gone(status)) {
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = io->file_stat(io->ctx, content->open, &stat, &sys_errno);
    }
    if (status != WAL_OK) {
        return wal__worktree_fail(error, status, sys_errno, path, "opening");
    }
    content->size = stat.size;
    return WAL_OK;
}

/* Reads up to `size` bytes after those that were read. */
static enum wal_status read_file(struct content_reader *content, size_t size, uint8_t *buffer,
                                 uint64_t *got, struct wal_error *error)
{
    const struct wal__worktree_io *io = content->from->io;
    int sys_errno = 0;
    size_t total = 0;
    size_t part = 1;

    while (total < size && part > 0) {
        enum wal_status status = io->read(io->ctx, content->open, buffer + total, size - total,
                                          content->bytes.size + total, &part, &sys_errno);

        if (status != WAL_OK) {
            return wal__worktree_fail(error, status, sys_errno, wal__file_path(content->file),
                                      "reading");
        }
        WAL__ASSERT(part <= size - total);
        total += part;
    }
    *got = total;
    return WAL_OK;
}

/* --- blobs --------------------------------------------------------------- */

static enum wal_status open_blob(struct content_reader *content, struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};
    enum wal_status status = wal__blob_reader_create(content->from->blobs, &content->file->digest,
                                                     &content->reader, &why);

    if (status != WAL_OK) {
        return wal__fail_content(error, status, &why, wal__file_path(content->file));
    }
    content->size = wal__blob_reader_size(content->reader);
    return WAL_OK;
}

static enum wal_status read_blob(struct content_reader *content, size_t size, uint8_t *buffer,
                                 uint64_t *got, struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};
    enum wal_status status =
        wal__blob_reader_read(content->reader, content->bytes.size, buffer, size, got, &why);

    return status == WAL_OK ? WAL_OK
                            : wal__fail_content(error, status, &why, wal__file_path(content->file));
}

/* --- either source ------------------------------------------------------- */

static enum wal_status content_open(struct content_reader *content, const struct wal__heap *heap,
                                    const struct wal__content_source *from,
                                    const struct wal__file_record *file, struct wal_error *error)
{
    *content = (struct content_reader){.from = from, .file = file};
    wal__buf_init(&content->bytes, heap);
    if (file->kind == WAL__FILE_ABSENT) {
        return WAL_OK;
    }
    return from->io == NULL ? open_blob(content, error) : open_file(content, error);
}

/* A content that the caller has. */
static enum wal_status content_copy(struct content_reader *content, const struct wal__heap *heap,
                                    struct wal__span bytes, struct wal_error *error)
{
    *content = (struct content_reader){.size = bytes.size};
    wal__buf_init(&content->bytes, heap);
    return wal__buf_append(&content->bytes, bytes.data, bytes.size) == WAL_OK
               ? WAL_OK
               : wal__no_memory(error);
}

static void content_close(struct content_reader *content)
{
    wal__blob_reader_destroy(content->reader);
    if (content->open != NULL) {
        content->from->io->close(content->from->io->ctx, content->open);
    }
    wal__buf_deinit(&content->bytes);
}

/* Reads on until `bytes` has `size` bytes, or all of the content. */
static enum wal_status content_read(struct content_reader *content, uint64_t size,
                                    struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    uint64_t got = 0;
    uint8_t *buffer;
    size_t more;

    WAL__ASSERT(content->reader == NULL || content->open == NULL);
    size = size < content->size ? size : content->size;
    if (size <= content->bytes.size || (content->reader == NULL && content->open == NULL)) {
        return WAL_OK;
    }
    more = (size_t)size - content->bytes.size;
    if (wal__buf_reserve(&content->bytes, more, &buffer) != WAL_OK) {
        return wal__no_memory(error);
    }
    status = content->reader != NULL ? read_blob(content, more, buffer, &got, error)
                                     : read_file(content, more, buffer, &got, error);
    if (status == WAL_OK) {
        WAL__ASSERT(got <= more);
        content->bytes.size += (size_t)got;
    }
    return status;
}

/* Sets *is_binary by the size of the content or its first bytes. */
static enum wal_status detect_binary(struct content_reader *content, bool *is_binary,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    size_t size;

    if (content->size > WAL__DIFF_SIZE_MAX) {
        *is_binary = true;
        return WAL_OK;
    }
    status = content_read(content, WAL__BINARY_PROBE_SIZE, error);
    size =
        content->bytes.size < WAL__BINARY_PROBE_SIZE ? content->bytes.size : WAL__BINARY_PROBE_SIZE;
    if (status == WAL_OK && size > 0 && memchr(content->bytes.data, 0, size) != NULL) {
        *is_binary = true;
    }
    return status;
}

static struct wal__span span_of(const struct content_reader *content)
{
    return (struct wal__span){content->bytes.data, content->bytes.size};
}

/* Counts the lines of a change whose two contents are open. */
static enum wal_status count_lines(struct wal__change *change, struct content_reader *before,
                                   struct content_reader *after, struct wal_error *error)
{
    struct wal__numstat counts = {0};
    enum wal_status status = detect_binary(before, &counts.is_binary, error);

    if (status == WAL_OK && !counts.is_binary) {
        status = detect_binary(after, &counts.is_binary, error);
    }
    if (status != WAL_OK || counts.is_binary || (change->flags & WAL_FILE_CHANGE_CONTENT) == 0) {
        change->flags |= counts.is_binary ? WAL_FILE_CHANGE_BINARY : 0;
        return status;
    }
    status = content_read(before, WAL__DIFF_SIZE_MAX, error);
    if (status == WAL_OK) {
        status = content_read(after, WAL__DIFF_SIZE_MAX, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(before->bytes.size <= WAL__DIFF_SIZE_MAX);
    WAL__ASSERT(after->bytes.size <= WAL__DIFF_SIZE_MAX);
    status = wal__numstat_diff(before->bytes.heap, span_of(before), span_of(after), false, &counts);
    if (status != WAL_OK) {
        return wal__no_memory(error);
    }
    change->flags |= counts.is_binary ? WAL_FILE_CHANGE_BINARY : 0;
    change->insertions = counts.insertions;
    change->deletions = counts.deletions;
    return WAL_OK;
}

/* --- all changes --------------------------------------------------------- */

enum {
    GRAIN = 2,                      /* changes per step of a thread */
    LARGE_CONTENT_MIN = 1024 * 1024 /* bytes */
};

static enum wal_status count_limited(struct wal__diffstat *diffstat, struct wal__change *change,
                                     struct content_reader *a, struct content_reader *b,
                                     struct wal_error *error)
{
    bool is_large = a->size > LARGE_CONTENT_MIN || b->size > LARGE_CONTENT_MIN;
    enum wal_status status;

    if (is_large) {
        pthread_mutex_lock(&diffstat->mutex);
    }
    status = count_lines(change, a, b, error);
    if (is_large) {
        wal__buf_deinit(&a->bytes);
        wal__buf_deinit(&b->bytes);
        pthread_mutex_unlock(&diffstat->mutex);
    }
    return status;
}

enum wal_status wal__diffstat_file(struct wal__diffstat *diffstat, uint32_t item,
                                   struct wal__span after, struct wal_error *error)
{
    struct wal__change *change = &diffstat->changes->items[item];
    const struct wal__heap *heap = diffstat->changes->heap;
    struct content_reader a = {0};
    struct content_reader b = {0};
    enum wal_status status;

    WAL__ASSERT(item < diffstat->changes->count);
    status = content_open(&a, heap, &diffstat->before, &change->before, error);

    if (status != WAL_OK) {
        goto done;
    }
    status = after.size > 0 ? content_copy(&b, heap, after, error)
                            : content_open(&b, heap, &diffstat->after, &change->after, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = count_limited(diffstat, change, &a, &b, error);
done:
    content_close(&a);
    content_close(&b);
    return status;
}

void wal__diffstat_init(struct wal__diffstat *diffstat, struct wal__changes *changes,
                        const struct wal__content_source *before,
                        const struct wal__content_source *after)
{
    diffstat->changes = changes;
    diffstat->before = *before;
    diffstat->after = *after;
    pthread_mutex_init(&diffstat->mutex, NULL);
}

void wal__diffstat_deinit(struct wal__diffstat *diffstat)
{
    pthread_mutex_destroy(&diffstat->mutex);
}

static enum wal_status diffstat_item(void *ctx, void *state, uint32_t item, struct wal_error *error)
{
    (void)state;
    return wal__diffstat_file(ctx, item, (struct wal__span){NULL, 0}, error);
}

static enum wal_status count_changes(const struct wal__env *env, struct wal__changes *changes,
                                     const struct wal__content_source *before,
                                     const struct wal__content_source *after,
                                     struct wal_error *error)
{
    struct wal__diffstat count;
    const struct wal__parallel_for loop = {
        .env = env, .ctx = &count, .count = changes->count, .grain = GRAIN, .body = diffstat_item};
    enum wal_status status;

    wal__diffstat_init(&count, changes, before, after);
    status = wal__parallel_for(&loop, error);
    wal__diffstat_deinit(&count);
    return status;
}

/* --- two checkpoints, or one and the disk -------------------------------- */

struct diff {
    struct wal_session *session;
    struct wal__checkpoint checkpoint;
    struct wal__files before;
    struct wal__files after;
};

static enum wal_status diff_lists(struct diff *diff, struct wal__span id,
                                  struct wal__changes *changes, struct wal_error *error)
{
    const struct wal__content_source blobs = {.blobs = &diff->session->core->blobs};
    enum wal_status status =
        wal__checkpoint_load(diff->session, id, &diff->checkpoint, &diff->after, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__changes_compute(&diff->before, &diff->after, changes, error);
    if (status != WAL_OK) {
        return status;
    }
    return count_changes(&diff->session->core->env, changes, &blobs, &blobs, error);
}

/* Captures the current states of the files without storing contents. */
static enum wal_status scan_worktree(struct diff *diff, const struct wal__content_source *disk,
                                     struct wal_error *error)
{
    struct wal__capture capture = {.env = &diff->session->core->env,
                                   .io = disk->io,
                                   .worktree = disk->worktree,
                                   .baselines = {&diff->before},
                                   .baseline_count = 1};
    const struct wal__files none = {0};
    enum wal_status status = wal__files_filter(&diff->after, &diff->before, &none, false, error);

    return status == WAL_OK ? wal__capture(&capture, &diff->after, error) : status;
}

static enum wal_status diff_worktree(struct diff *diff, struct wal__changes *changes,
                                     struct wal_error *error)
{
    struct wal__core *core = diff->session->core;
    const struct wal__content_source blobs = {.blobs = &core->blobs};
    struct wal__content_source disk = {.io = core->env.io->worktree};
    const char *root = (const char *)diff->checkpoint.root.data;
    int sys_errno = 0;
    enum wal_status status;

    if (disk.io == NULL) {
        return wal__fail_at(error, WAL_EINVAL, 0, root, 0, "this environment has no file system");
    }
    status = disk.io->open_root(disk.io->ctx, root, &disk.worktree, &sys_errno);
    if (status != WAL_OK) {
        return wal__worktree_fail(error, status, sys_errno, root, "opening the root directory");
    }
    status = scan_worktree(diff, &disk, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__changes_compute(&diff->before, &diff->after, changes, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = count_changes(&diff->session->core->env, changes, &blobs, &disk, error);
done:
    disk.io->close_root(disk.io->ctx, disk.worktree);
    return status;
}

static enum wal_status diff_checkpoints(struct wal_session *session, struct wal__span before,
                                        struct wal__span after, struct wal__changes *changes,
                                        struct wal_error *error)
{
    const struct wal__heap *heap = session->core->env.heap;
    struct diff diff = {.session = session};
    enum wal_status status;

    WAL__ASSERT(changes->count == 0);
    wal__checkpoint_init(&diff.checkpoint, heap);
    wal__files_init(&diff.before, heap);
    wal__files_init(&diff.after, heap);
    status = wal__checkpoint_load(session, before, &diff.checkpoint, &diff.before, error);
    if (status == WAL_OK) {
        status = after.size > 0 ? diff_lists(&diff, after, changes, error)
                                : diff_worktree(&diff, changes, error);
    }
    if (status != WAL_OK) {
        wal__changes_deinit(changes);
    }
    wal__checkpoint_deinit(&diff.checkpoint);
    wal__files_deinit(&diff.before);
    wal__files_deinit(&diff.after);
    return status;
}

/* --- a whole session ----------------------------------------------------- */

/* The first and the last state of each path so far, under absolute paths, since roots may
 * differ. */
struct history {
    struct wal__files first;
    struct wal__files last;
};

/* Replaces *list by the merge of two lists. */
static enum wal_status merge_into(struct wal__files *list, const struct wal__files *over,
                                  const struct wal__files *under, struct wal_error *error)
{
    struct wal__files merged;
    enum wal_status status;

    wal__files_init(&merged, list->heap);
    status = wal__files_merge(&merged, over, under, error);
    if (status == WAL_OK) {
        WAL__ASSERT(merged.count >= over->count);
        WAL__ASSERT(merged.count >= under->count);
        wal__files_deinit(list);
        *list = merged;
    }
    return status;
}

static enum wal_status add_checkpoint(struct history *history, struct wal__blob_store *blobs,
                                      const struct wal__checkpoint *checkpoint,
                                      struct wal_error *error)
{
    struct wal__files files;
    struct wal__files absolute;
    enum wal_status status;

    wal__files_init(&files, history->first.heap);
    wal__files_init(&absolute, history->first.heap);
    status = wal__files_load(&files, blobs, &checkpoint->list, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__files_make_absolute(&absolute, &files, checkpoint->root, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = merge_into(&history->first, &history->first, &absolute, error);
    if (status == WAL_OK) {
        status = merge_into(&history->last, &absolute, &history->last, error);
    }
done:
    wal__files_deinit(&files);
    wal__files_deinit(&absolute);
    return status;
}

/* Adds all checkpoints, oldest first; *root becomes the root of the last one. */
static enum wal_status add_checkpoints(struct history *history, struct wal_session *session,
                                       struct wal__buf *root, struct wal_error *error)
{
    struct wal_checkpoint_cursor *checkpoints;
    const struct wal__checkpoint *checkpoint;
    enum wal_status status = wal__checkpoint_cursor_open(session, false, &checkpoints, error);

    if (status != WAL_OK) {
        return status;
    }
    do {
        status = wal__checkpoint_cursor_next(checkpoints, &checkpoint, error);
        if (status == WAL_OK) {
            status = add_checkpoint(history, &session->core->blobs, checkpoint, error);
        }
        if (status == WAL_OK) {
            root->size = 0;
            status = wal__buf_append(root, checkpoint->root.data, checkpoint->root.size);
        }
    } while (status == WAL_OK);
    wal_checkpoint_cursor_close(checkpoints);
    if (status == WAL_ENOMEM) {
        wal__fail(error, status, "no memory");
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Makes paths below the root relative to it. */
static void strip_root(struct wal__changes *changes, const struct wal__buf *root)
{
    size_t size = root->size - (root->size == 1); /* the root is "/" */

    WAL__ASSERT(root->size > 0 || changes->count == 0);
    for (uint32_t i = 0; i < changes->count; i++) {
        struct wal__span *path = &changes->items[i].path;

        if (path->size > size + 1 && path->data[size] == '/' &&
            memcmp(path->data, root->data, size) == 0) {
            path->data += size + 1;
            path->size -= size + 1;
            changes->items[i].before.path = *path;
            changes->items[i].after.path = *path;
        }
    }
}

static enum wal_status diff_session(struct wal_session *session, struct wal__changes *changes,
                                    struct wal_error *error)
{
    const struct wal__content_source blobs = {.blobs = &session->core->blobs};
    const struct wal__heap *heap = session->core->env.heap;
    struct history history;
    struct wal__buf root;
    enum wal_status status;

    WAL__ASSERT(changes->count == 0);
    wal__files_init(&history.first, heap);
    wal__files_init(&history.last, heap);
    wal__buf_init(&root, heap);
    status = add_checkpoints(&history, session, &root, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__changes_compute(&history.first, &history.last, changes, error);
    if (status != WAL_OK) {
        goto done;
    }
    strip_root(changes, &root);
    status = count_changes(&session->core->env, changes, &blobs, &blobs, error);
done:
    if (status != WAL_OK) {
        wal__changes_deinit(changes);
    }
    wal__files_deinit(&history.first);
    wal__files_deinit(&history.last);
    wal__buf_deinit(&root);
    return status;
}

/* --- the public functions ------------------------------------------------ */

enum wal_status wal__change_cursor_create(struct wal__core *core,
                                          struct wal_file_change_cursor **cursor,
                                          struct wal_error *error)
{
    const struct wal__heap *heap = core->env.heap;
    struct wal_file_change_cursor *made = wal__heap_zalloc(heap, sizeof(*made));

    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->core = core;
    wal__core_retain(core);
    wal__changes_init(&made->changes, heap);
    for (int i = 0; i < WAL__CHANGES_ELSEWHERE; i++) {
        wal__changes_init(&made->elsewhere[i], heap);
    }
    *cursor = made;
    return WAL_OK;
}

void wal_file_change_cursor_close(struct wal_file_change_cursor *changes)
{
    struct wal__core *core;

    if (changes == NULL) {
        return;
    }
    core = changes->core;
    wal__changes_deinit(&changes->changes);
    for (int i = 0; i < WAL__CHANGES_ELSEWHERE; i++) {
        wal__changes_deinit(&changes->elsewhere[i]);
    }
    wal__heap_free(core->env.heap, changes);
    wal__core_release(core);
}

static enum wal_status check_arguments(struct wal_session *session,
                                       struct wal_file_change_cursor **changes,
                                       struct wal_error *error)
{
    enum wal_status status = wal__check_session(session, error);

    return status == WAL_OK && changes == NULL
               ? wal__invalid(error, "the place for the cursor is null")
               : status;
}

/* Hands the reader over, unless it has failed. */
static enum wal_status return_changes(struct wal_file_change_cursor *made, enum wal_status status,
                                      struct wal_file_change_cursor **changes)
{
    if (status != WAL_OK) {
        wal_file_change_cursor_close(made);
        return status;
    }
    *changes = made;
    return WAL_OK;
}

enum wal_status wal_checkpoint_diff(struct wal_session *session, struct wal_slice before,
                                    struct wal_slice after, struct wal_file_change_cursor **changes,
                                    struct wal_error *error)
{
    struct wal_file_change_cursor *made = NULL;
    struct wal__span old;
    struct wal__span new;
    enum wal_status status = check_arguments(session, changes, error);

    if (status == WAL_OK) {
        status = wal__checkpoint_check_id(before, &old, error);
    }
    if (status == WAL_OK) {
        status = wal__text_check(after, WAL__ID_MAX, "checkpoint's id", &new, error);
    }
    if (status == WAL_OK) {
        status = wal__change_cursor_create(session->core, &made, error);
    }
    if (status == WAL_OK) {
        status = diff_checkpoints(session, old, new, &made->changes, error);
    }
    return return_changes(made, status, changes);
}

enum wal_status wal_session_diff(struct wal_session *session,
                                 struct wal_file_change_cursor **changes, struct wal_error *error)
{
    struct wal_file_change_cursor *made = NULL;
    enum wal_status status = check_arguments(session, changes, error);

    if (status == WAL_OK) {
        status = wal__change_cursor_create(session->core, &made, error);
    }
    if (status == WAL_OK) {
        status = diff_session(session, &made->changes, error);
    }
    return return_changes(made, status, changes);
}

enum wal_status wal_file_changes_get_info(const struct wal_file_change_cursor *changes,
                                          struct wal_file_changes_info *info,
                                          struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_file_changes_info);
    struct wal_file_changes_info own = WAL_INIT(wal_file_changes_info);
    enum wal_status status =
        wal__check_output(changes == NULL ? NULL : changes->core, type, info, error);

    if (status == WAL_OK) {
        wal__changes_info(&changes->changes, &own);
        wal__struct_store(type, info, &own);
    }
    return status;
}

/* The next change, or NULL. */
static const struct wal__change *next_change(struct wal_file_change_cursor *cursor)
{
    const struct wal__changes *parts[] = {&cursor->changes, &cursor->elsewhere[0],
                                          &cursor->elsewhere[1]};
    uint64_t number = cursor->next;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (number < parts[i]->count) {
            cursor->next++;
            return &parts[i]->items[number];
        }
        number -= parts[i]->count;
    }
    return NULL;
}

enum wal_status wal_file_change_cursor_next(struct wal_file_change_cursor *changes,
                                            struct wal_file_change *change, struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_file_change);
    const struct wal__change *next;
    struct wal_file_change own;
    enum wal_status status =
        wal__check_output(changes == NULL ? NULL : changes->core, type, change, error);

    if (status != WAL_OK) {
        return status;
    }
    next = next_change(changes);
    if (next == NULL) {
        return WAL_END;
    }
    own = (struct wal_file_change){
        .struct_size = sizeof(own),
        .flags = next->flags,
        .path = wal__text_slice(next->path),
        .kind_before = next->before.kind,
        .kind_after = next->after.kind,
        .mode_before = next->before.mode,
        .mode_after = next->after.mode,
        .insertions = next->insertions,
        .deletions = next->deletions,
    };
    wal__struct_store(type, change, &own);
    return WAL_OK;
}
