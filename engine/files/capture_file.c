/*
 * capture_file.c - captures the state of one file (SPEC.md 5.13): recognises it
 * by its stat, or reads it.
 *
 * Invariant: content is recorded only when the file's stat was the same before
 * and after reading it. When the file is so new that a later write might leave
 * its times unchanged, the record is flagged, and the next checkpoint reads the
 * file again.
 */
#include "engine/files/capture_job.h"

#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

enum {
    READ_ATTEMPTS_MAX = 4,           /* the first read and three retries */
    CLOCK_GRANULARITY_NS = 20000000, /* two ticks of the slowest kernel clock */
    COARSE_GRANULARITY_NS = 2000000000
};

/* File systems persist times at once, but data only within half of this. */
static const int64_t writeback_window_ns = INT64_C(60000000000);

enum wal_status wal__worktree_fail(struct wal_error *error,
                                   enum wal_status status, int sys_errno,
                                   const char *path, const char *what)
{
    /* The caller prints the text of sys_errno, which is more precise. */
    if (sys_errno != 0) {
        return wal__fail_at(error, status, sys_errno, path, 0, "%s failed",
                            what);
    }
    return wal__fail_at(error, status, sys_errno, path, 0, "%s: %s", what,
                        wal_status_text(status));
}

/* Times in whole seconds indicate a file system with one-second timestamps. */
static uint8_t freshness_flags(const struct wal__worktree_stat *stat,
                               int64_t now)
{
    uint8_t flags = 0;
    int64_t newest =
        stat->mtime_ns > stat->ctime_ns ? stat->mtime_ns : stat->ctime_ns;
    bool coarse =
        stat->mtime_ns % 1000000000 == 0 && stat->ctime_ns % 1000000000 == 0;

    if (newest >=
        now - (coarse ? COARSE_GRANULARITY_NS : CLOCK_GRANULARITY_NS)) {
        flags |= WAL__FILE_RACY;
    }
    if (newest > now - writeback_window_ns) {
        flags |= WAL__FILE_FRESH;
    }
    return flags;
}

static bool stat_equal(const struct wal__worktree_stat *a,
                       const struct wal__worktree_stat *b)
{
    return a->kind == b->kind && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
           a->inode == b->inode && a->device == b->device;
}

static void set_stat(struct wal__file_record *file,
                     const struct wal__worktree_stat *stat)
{
    WAL__ASSERT(stat->kind == WAL__WORKTREE_REGULAR ||
                stat->kind == WAL__WORKTREE_SYMLINK);
    file->kind = stat->kind == WAL__WORKTREE_REGULAR ? WAL__FILE_REGULAR
                                                     : WAL__FILE_SYMLINK;
    file->mode = stat->mode;
    file->size = stat->size;
    file->mtime_ns = stat->mtime_ns;
    file->ctime_ns = stat->ctime_ns;
    file->inode = stat->inode;
    file->device = stat->device;
}

/* Whether the content of an earlier record is still the file's content. */
static bool matches_record(const struct wal__file_record *earlier,
                           const struct wal__file_record *file)
{
    return earlier->kind == file->kind &&
           (earlier->flags & WAL__FILE_RACY) == 0 &&
           earlier->size == file->size && earlier->mtime_ns == file->mtime_ns &&
           earlier->ctime_ns == file->ctime_ns &&
           earlier->inode == file->inode && earlier->device == file->device;
}

/* Sets *found if the store has the content, or need not have it. */
static enum wal_status find_content(struct wal__capture_worker *worker,
                                    const struct wal__digest *digest,
                                    bool *found, struct wal_error *error)
{
    struct wal__blob_store *blobs = worker->job->capture->blobs;
    uint64_t position = 0;
    enum wal_status status = WAL_OK;

    if (blobs != NULL) {
        status = wal__blob_find_end(blobs, digest, &position, error);
    }
    *found = blobs == NULL || position != 0;
    worker->end = position > worker->end ? position : worker->end;
    return status;
}

/* Finds the record of a path in a baseline, first where it is likely. */
static const struct wal__file_record *
find_earlier(struct wal__capture_worker *worker, uint32_t baseline,
             struct wal__span path)
{
    const struct wal__files *files = worker->job->capture->baselines[baseline];
    uint32_t *likely = &worker->likely[baseline];
    const struct wal__file_record *found;

    if (*likely < files->count &&
        wal__file_compare_paths(files->items[*likely].path, path) == 0) {
        found = &files->items[*likely];
    } else {
        found = wal__files_find(files, path);
    }
    if (found != NULL) {
        *likely = (uint32_t)(found - files->items) + 1;
    }
    return found;
}

/* Takes the digest from a baseline whose stat matches. Otherwise *base is the
 * digest of the newest earlier version, or NULL. */
static enum wal_status match_baselines(struct wal__capture_worker *worker,
                                       struct wal__file_record *file,
                                       const struct wal__digest **base,
                                       bool *found, struct wal_error *error)
{
    const struct wal__capture *capture = worker->job->capture;

    *found = false;
    *base = NULL;
    for (uint32_t i = 0; i < capture->baseline_count; i++) {
        const struct wal__file_record *earlier =
            find_earlier(worker, i, file->path);

        if (earlier == NULL || earlier->kind == WAL__FILE_ABSENT) {
            continue;
        }
        if (matches_record(earlier, file)) {
            file->digest = earlier->digest;
            return find_content(worker, &file->digest, found, error);
        }
        if (*base == NULL && earlier->kind == WAL__FILE_REGULAR) {
            *base = &earlier->digest;
        }
    }
    return WAL_OK;
}

/* Stores, or only hashes, content that is in memory. */
static enum wal_status store_content(struct wal__capture_worker *worker,
                                     struct wal__span content,
                                     const struct wal__digest *base,
                                     struct wal__file_record *file,
                                     struct wal_error *error)
{
    struct wal__blob_store *blobs = worker->job->capture->blobs;
    struct wal__blob_prepared prepared = {0};
    enum wal_status status;

    if (blobs == NULL) {
        return wal__sha256(&worker->job->sha256_alg, content, &file->digest);
    }
    status = wal__blob_prepare(blobs, content, base, WAL__BLOB_OF_RECORDS,
                               &prepared, error);
    if (status != WAL_OK) {
        return status;
    }
    file->digest = prepared.digest;
    return wal__capture_add_content(worker->job, &prepared, error);
}

/* --- regular files ------------------------------------------------------- */

struct file_reader {
    struct wal__capture_worker *worker;
    const struct wal__worktree_io *io;
    struct wal__worktree_file *from;
    struct wal__file_record *file;
    const struct wal__digest *base;
    uint64_t got;
    bool changed; /* the size differs from the record */
};

/* Reads `size` bytes at the current offset, fewer at the end of the file. Stops
 * at the recorded size: the stat after reading detects a longer file. */
static enum wal_status read_piece(struct file_reader *reader, size_t size,
                                  size_t *got, struct wal_error *error)
{
    const struct wal__worktree_io *io = reader->io;
    int sys_errno = 0;
    size_t total = 0;
    size_t part = 1;

    WAL__ASSERT(size <= WAL__CHUNK_MAX);
    while (total < size && part > 0) {
        enum wal_status status =
            io->read(io->ctx, reader->from, reader->worker->buffer + total,
                     size - total, reader->got + total, &part, &sys_errno);

        if (status != WAL_OK) {
            return wal__worktree_fail(error, status, sys_errno,
                                      wal__file_path(reader->file), "reading");
        }
        WAL__ASSERT(part <= size - total);
        total += part;
        if (reader->got + total == reader->file->size) {
            break;
        }
    }
    reader->got += total;
    *got = total;
    return WAL_OK;
}

static enum wal_status read_small(struct file_reader *reader,
                                  struct wal_error *error)
{
    struct wal__span content = {reader->worker->buffer, 0};
    enum wal_status status =
        read_piece(reader, (size_t)reader->file->size, &content.size, error);

    WAL__ASSERT(content.size <= WAL__CHUNK_MAX);
    reader->changed = content.size != reader->file->size;
    return status != WAL_OK || reader->changed
               ? status
               : store_content(reader->worker, content, reader->base,
                               reader->file, error);
}

/* Appends the piece to the blob writer, or to the hash when writer is NULL. */
static enum wal_status add_piece(struct file_reader *reader,
                                 struct wal__blob_writer *writer, size_t size,
                                 struct wal_error *error)
{
    const struct wal__span piece = {reader->worker->buffer, size};

    return writer == NULL
               ? wal__sha256_update(&reader->worker->sha256_ctx, piece)
               : wal__blob_writer_append(writer, piece, error);
}

static enum wal_status finish_content(struct file_reader *reader,
                                      struct wal__blob_writer *writer,
                                      struct wal_error *error)
{
    struct wal__file_record *file = reader->file;
    struct wal__blob_put_result result = {0};
    enum wal_status status;
    uint64_t size;

    if (writer == NULL) {
        return wal__sha256_final(&reader->worker->sha256_ctx, &file->digest);
    }
    status =
        wal__blob_writer_finish(writer, &file->digest, &size, &result, error);
    WAL__ASSERT(status != WAL_OK || size == file->size);
    wal__capture_add_result(reader->worker->job, &result);
    return status;
}

static enum wal_status read_large(struct file_reader *reader,
                                  struct wal_error *error)
{
    struct wal__capture_worker *worker = reader->worker;
    struct wal__blob_store *blobs = worker->job->capture->blobs;
    struct wal__blob_writer *writer = NULL;
    size_t got = 1;
    enum wal_status status =
        blobs == NULL
            ? wal__sha256_begin(&worker->job->sha256_alg, &worker->sha256_ctx)
            : wal__blob_writer_create(blobs, reader->base, WAL__BLOB_OF_RECORDS,
                                      &writer, error);

    while (status == WAL_OK && got > 0 && reader->got < reader->file->size) {
        status = read_piece(reader, WAL__CHUNK_MAX, &got, error);
        if (status == WAL_OK) {
            status = add_piece(reader, writer, got, error);
        }
    }
    reader->changed = reader->got != reader->file->size;
    if (status == WAL_OK && !reader->changed) {
        status = finish_content(reader, writer, error);
    }
    wal__blob_writer_destroy(writer);
    return status;
}

/* Reads the file. Sets *changed if it no longer has the state in `stat`. */
static enum wal_status read_regular(struct wal__capture_worker *worker,
                                    struct wal__file_record *file,
                                    const struct wal__worktree_stat *stat,
                                    const struct wal__digest *base,
                                    bool *changed, struct wal_error *error)
{
    const struct wal__capture *capture = worker->job->capture;
    struct file_reader reader = {
        .worker = worker, .io = capture->io, .file = file, .base = base};
    const char *path = wal__file_path(file);
    struct wal__worktree_stat after = {0};
    int sys_errno = 0;
    enum wal_status status = reader.io->open(reader.io->ctx, capture->worktree,
                                             path, &reader.from, &sys_errno);

    /* The path was replaced by nothing or by another kind of file. */
    *changed = status == WAL_ENOTFOUND || status == WAL_ENOTFILE;
    if (status != WAL_OK) {
        return *changed ? WAL_OK
                        : wal__worktree_fail(error, status, sys_errno, path,
                                             "opening");
    }
    status = file->size <= WAL__CHUNK_MAX ? read_small(&reader, error)
                                          : read_large(&reader, error);
    if (status == WAL_OK && !reader.changed) {
        status = reader.io->file_stat(reader.io->ctx, reader.from, &after,
                                      &sys_errno);
        reader.changed = status == WAL_OK && !stat_equal(stat, &after);
        if (status != WAL_OK) {
            wal__worktree_fail(error, status, sys_errno, path,
                               "reading its metadata");
        }
    }
    *changed = reader.changed;
    reader.io->close(reader.io->ctx, reader.from);
    return status;
}

/* --- links --------------------------------------------------------------- */

static enum wal_status read_link(struct wal__capture_worker *worker,
                                 struct wal__file_record *file,
                                 const struct wal__worktree_stat *stat,
                                 bool *changed, struct wal_error *error)
{
    const struct wal__capture *capture = worker->job->capture;
    const struct wal__worktree_io *io = capture->io;
    const char *path = wal__file_path(file);
    struct wal__span target = {worker->buffer, 0};
    struct wal__worktree_stat after = {0};
    int sys_errno = 0;
    enum wal_status status =
        io->read_link(io->ctx, capture->worktree, path, worker->buffer,
                      WAL__PATH_MAX, &target.size, &sys_errno);

    if (status == WAL_OK) {
        status = io->stat(io->ctx, capture->worktree, path, &after, &sys_errno);
    }
    *changed = status == WAL_ENOTFOUND || status == WAL_ENOTFILE ||
               (status == WAL_OK && !stat_equal(stat, &after));
    if (*changed) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        return wal__worktree_fail(error, status, sys_errno, path,
                                  "reading the link");
    }
    WAL__ASSERT(target.size <= WAL__PATH_MAX);
    file->size = target.size;
    return store_content(worker, target, NULL, file, error);
}

/* --- any kind ------------------------------------------------------------ */

static enum wal_status alloc_buffer(struct wal__capture_worker *worker,
                                    struct wal_error *error)
{
    if (worker->buffer == NULL) {
        worker->buffer =
            wal__heap_alloc(worker->job->capture->env->heap, WAL__CHUNK_MAX);
    }
    return worker->buffer != NULL ? WAL_OK : wal__no_memory(error);
}

/* Captures the content of an existing file. */
static enum wal_status capture_content(struct wal__capture_worker *worker,
                                       struct wal__file_record *file,
                                       const struct wal__worktree_stat *stat,
                                       bool *changed, struct wal_error *error)
{
    uint8_t *unread = worker->job->capture->needs_read;
    size_t index = (size_t)(file - worker->job->files->items);
    const struct wal__digest *base;
    bool found;
    enum wal_status status =
        match_baselines(worker, file, &base, &found, error);

    WAL__ASSERT(index < worker->job->files->count);
    if (status != WAL_OK || found) {
        return status;
    }
    if (unread != NULL) {
        unread[index] = 1;
        return WAL_OK;
    }
    status = alloc_buffer(worker, error);
    if (status != WAL_OK) {
        return status;
    }
    atomic_fetch_add(&worker->job->read_count, 1);
    return file->kind == WAL__FILE_REGULAR
               ? read_regular(worker, file, stat, base, changed, error)
               : read_link(worker, file, stat, changed, error);
}

static enum wal_status capture_once(struct wal__capture_worker *worker,
                                    struct wal__file_record *file,
                                    bool *changed, struct wal_error *error)
{
    const struct wal__capture *capture = worker->job->capture;
    const struct wal__worktree_io *io = capture->io;
    const char *path = wal__file_path(file);
    int64_t now = io->now_ns(io->ctx);
    struct wal__worktree_stat stat = {0};
    int sys_errno = 0;
    enum wal_status status =
        io->stat(io->ctx, capture->worktree, path, &stat, &sys_errno);

    *changed = false;
    if (status != WAL_OK) {
        return wal__worktree_fail(error, status, sys_errno, path,
                                  "reading its metadata");
    }
    *file = (struct wal__file_record){.path = file->path};
    if (stat.kind == WAL__WORKTREE_ABSENT) {
        return WAL_OK;
    }
    if (stat.kind != WAL__WORKTREE_REGULAR &&
        stat.kind != WAL__WORKTREE_SYMLINK) {
        return wal__worktree_fail(error, WAL_ENOTFILE, 0, path,
                                  stat.kind == WAL__WORKTREE_DIRECTORY
                                      ? "is a directory"
                                      : "is a device, socket or pipe");
    }
    set_stat(file, &stat);
    file->flags = freshness_flags(&stat, now);
    return capture_content(worker, file, &stat, changed, error);
}

enum wal_status wal__capture_file(struct wal__capture_worker *worker,
                                  struct wal__file_record *file,
                                  struct wal_error *error)
{
    bool changed = true;

    for (int i = 0; i < READ_ATTEMPTS_MAX && changed; i++) {
        enum wal_status status = capture_once(worker, file, &changed, error);

        if (status != WAL_OK) {
            return status;
        }
    }
    return changed ? wal__fail_at(
                         error, WAL_ECHANGED, 0, wal__file_path(file), 0,
                         "the file changed during each of %d attempts to read "
                         "it; retry when no program writes it",
                         READ_ATTEMPTS_MAX)
                   : WAL_OK;
}
