/*
 * diffstat.c - counts the lines that changes of files insert and delete
 * (file_changes.h), as git does: a link's content is its target, and content
 * that is large or has a zero byte near its beginning is binary and not read
 * further.
 *
 * Memory: the two contents of one large file, and of one small file per thread.
 *
 * Threads: any; the mutex of struct wal__diffstat serialises large files.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/thread.h"
#include "engine/files/capture.h"
#include "engine/files/file_changes.h"
#include "engine/files/numstat.h"
#include "format/bytes/assert.h"

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
    return status == WAL_ENOTFOUND || status == WAL_ENOTFILE ||
           status == WAL_EOUTSIDE;
}

static enum wal_status open_link(struct content_reader *content,
                                 struct wal_error *error)
{
    const struct wal__worktree_io *io = content->from->io;
    const char *path = wal__file_path(content->file);
    int sys_errno = 0;
    size_t got = 0;
    uint8_t *buffer;
    enum wal_status status =
        wal__buf_reserve(&content->bytes, WAL__PATH_MAX, &buffer);

    if (status != WAL_OK) {
        return status;
    }
    status = io->read_link(io->ctx, content->from->worktree, path, buffer,
                           WAL__PATH_MAX, &got, &sys_errno);
    if (status != WAL_OK) {
        return is_gone(status) ? WAL_OK
                               : wal__worktree_fail(error, status, sys_errno,
                                                    path, "reading the link");
    }
    content->bytes.size = got;
    content->size = got;
    return WAL_OK;
}

static enum wal_status open_file(struct content_reader *content,
                                 struct wal_error *error)
{
    const struct wal__worktree_io *io = content->from->io;
    const char *path = wal__file_path(content->file);
    struct wal__worktree_stat stat = {0};
    int sys_errno = 0;
    enum wal_status status;

    if (content->file->kind == WAL__FILE_SYMLINK) {
        return open_link(content, error);
    }
    status = io->open(io->ctx, content->from->worktree, path, &content->open,
                      &sys_errno);
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
static enum wal_status read_file(struct content_reader *content, size_t size,
                                 uint8_t *buffer, uint64_t *got,
                                 struct wal_error *error)
{
    const struct wal__worktree_io *io = content->from->io;
    int sys_errno = 0;
    size_t total = 0;
    size_t part = 1;

    while (total < size && part > 0) {
        enum wal_status status =
            io->read(io->ctx, content->open, buffer + total, size - total,
                     content->bytes.size + total, &part, &sys_errno);

        if (status != WAL_OK) {
            return wal__worktree_fail(error, status, sys_errno,
                                      wal__file_path(content->file), "reading");
        }
        WAL__ASSERT(part <= size - total);
        total += part;
    }
    *got = total;
    return WAL_OK;
}

/* --- blobs --------------------------------------------------------------- */

static enum wal_status open_blob(struct content_reader *content,
                                 struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};
    enum wal_status status = wal__blob_reader_create(
        content->from->blobs, &content->file->digest, &content->reader, &why);

    if (status != WAL_OK) {
        return wal__fail_content(error, status, &why,
                                 wal__file_path(content->file));
    }
    content->size = wal__blob_reader_size(content->reader);
    return WAL_OK;
}

static enum wal_status read_blob(struct content_reader *content, size_t size,
                                 uint8_t *buffer, uint64_t *got,
                                 struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};
    enum wal_status status = wal__blob_reader_read(
        content->reader, content->bytes.size, buffer, size, got, &why);

    return status == WAL_OK ? WAL_OK
                            : wal__fail_content(error, status, &why,
                                                wal__file_path(content->file));
}

/* --- either source ------------------------------------------------------- */

static enum wal_status content_open(struct content_reader *content,
                                    const struct wal__heap *heap,
                                    const struct wal__content_source *from,
                                    const struct wal__file_record *file,
                                    struct wal_error *error)
{
    *content = (struct content_reader){.from = from, .file = file};
    wal__buf_init(&content->bytes, heap);
    if (file->kind == WAL__FILE_ABSENT) {
        return WAL_OK;
    }
    return from->io == NULL ? open_blob(content, error)
                            : open_file(content, error);
}

/* A content that the caller has. */
static enum wal_status content_copy(struct content_reader *content,
                                    const struct wal__heap *heap,
                                    struct wal__span bytes,
                                    struct wal_error *error)
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
static enum wal_status content_read(struct content_reader *content,
                                    uint64_t size, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    uint64_t got = 0;
    uint8_t *buffer;
    size_t more;

    WAL__ASSERT(content->reader == NULL || content->open == NULL);
    size = size < content->size ? size : content->size;
    if (size <= content->bytes.size ||
        (content->reader == NULL && content->open == NULL)) {
        return WAL_OK;
    }
    more = (size_t)size - content->bytes.size;
    if (wal__buf_reserve(&content->bytes, more, &buffer) != WAL_OK) {
        return wal__no_memory(error);
    }
    status = content->reader != NULL
                 ? read_blob(content, more, buffer, &got, error)
                 : read_file(content, more, buffer, &got, error);
    if (status == WAL_OK) {
        WAL__ASSERT(got <= more);
        content->bytes.size += (size_t)got;
    }
    return status;
}

/* Sets *is_binary by the size of the content or its first bytes. */
static enum wal_status detect_binary(struct content_reader *content,
                                     bool *is_binary, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    size_t size;

    if (content->size > WAL__DIFF_SIZE_MAX) {
        *is_binary = true;
        return WAL_OK;
    }
    status = content_read(content, WAL__BINARY_PROBE_SIZE, error);
    size = content->bytes.size < WAL__BINARY_PROBE_SIZE
               ? content->bytes.size
               : WAL__BINARY_PROBE_SIZE;
    if (status == WAL_OK && size > 0 &&
        memchr(content->bytes.data, 0, size) != NULL) {
        *is_binary = true;
    }
    return status;
}

static struct wal__span span_of(const struct content_reader *content)
{
    return (struct wal__span){content->bytes.data, content->bytes.size};
}

/* Counts the lines of a change whose two contents are open. */
static enum wal_status count_lines(struct wal__change *change,
                                   struct content_reader *before,
                                   struct content_reader *after,
                                   struct wal_error *error)
{
    struct wal__numstat counts = {0};
    enum wal_status status = detect_binary(before, &counts.is_binary, error);

    if (status == WAL_OK && !counts.is_binary) {
        status = detect_binary(after, &counts.is_binary, error);
    }
    if (status != WAL_OK || counts.is_binary ||
        (change->flags & WAL_FILE_CHANGE_CONTENT) == 0) {
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
    status = wal__numstat_diff(before->bytes.heap, span_of(before),
                               span_of(after), &counts);
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
    GRAIN = 2,
    LARGE_CONTENT_MIN = 1024 * 1024 /* bytes */
};

static enum wal_status count_limited(struct wal__diffstat *diffstat,
                                     struct wal__change *change,
                                     struct content_reader *a,
                                     struct content_reader *b,
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

enum wal_status wal__diffstat_file(struct wal__diffstat *diffstat,
                                   uint32_t item, struct wal__span after,
                                   struct wal_error *error)
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
                            : content_open(&b, heap, &diffstat->after,
                                           &change->after, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = count_limited(diffstat, change, &a, &b, error);
done:
    content_close(&a);
    content_close(&b);
    return status;
}

void wal__diffstat_init(struct wal__diffstat *diffstat,
                        struct wal__changes *changes,
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

static enum wal_status diffstat_item(void *ctx, void *state, uint32_t item,
                                     struct wal_error *error)
{
    (void)state;
    return wal__diffstat_file(ctx, item, (struct wal__span){NULL, 0}, error);
}

enum wal_status wal__changes_diffstat(const struct wal__env *env,
                                      struct wal__changes *changes,
                                      const struct wal__content_source *before,
                                      const struct wal__content_source *after,
                                      struct wal_error *error)
{
    struct wal__diffstat diffstat;
    const struct wal__parallel_for loop = {.env = env,
                                           .ctx = &diffstat,
                                           .count = changes->count,
                                           .grain = GRAIN,
                                           .body = diffstat_item};
    enum wal_status status;

    wal__diffstat_init(&diffstat, changes, before, after);
    status = wal__parallel_for(&loop, error);
    wal__diffstat_deinit(&diffstat);
    return status;
}
