/*
 * capture_file.c - the state of one file (SPEC.md 5.13): recognised by its
 * stat, or read.
 *
 * Invariant: content that is recorded was read between two looks at the file
 * that agree. Where it was so new that a later write might leave its times as
 * they are, the record says so, and the next checkpoint reads it again.
 */
#include "engine/checkpoint/capture_job.h"

#include <string.h>

#include "engine/base/error.h"

enum {
    READ_ATTEMPTS_MAX = 4, /* once, and three times more while it changes */
    CLOCK_GRANULARITY_NS =
        20000000, /* two of the slowest clock of the kernel */
    COARSE_GRANULARITY_NS = 2000000000
};

/* A file system writes bytes back in half of it, its times at once. */
static const int64_t writeback_window_ns = INT64_C(60000000000);

enum wal_status wal__worktree_fail(struct wal_error *error,
                                   enum wal_status status, int sys_errno,
                                   const char *path, const char *what)
{
    return wal__fail_at(error, status, sys_errno, path, 0, "%s: %s", what,
                        wal_status_text(status));
}

/* Times that are all whole seconds come from a file system that keeps no
 * others. */
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
    file->kind = stat->kind == WAL__WORKTREE_REGULAR ? WAL__FILE_REGULAR
                                                     : WAL__FILE_SYMLINK;
    file->mode = stat->mode;
    file->size = stat->size;
    file->mtime_ns = stat->mtime_ns;
    file->ctime_ns = stat->ctime_ns;
    file->inode = stat->inode;
    file->device = stat->device;
}

/* Whether an earlier record tells the content of the file as it is now. */
static bool matches_record(const struct wal__file_record *earlier,
                           const struct wal__file_record *file)
{
    return earlier->kind == file->kind &&
           (earlier->flags & WAL__FILE_RACY) == 0 &&
           earlier->size == file->size && earlier->mtime_ns == file->mtime_ns &&
           earlier->ctime_ns == file->ctime_ns &&
           earlier->inode == file->inode && earlier->device == file->device;
}

/* Whether content that an earlier list tells is there, where it has to be. */
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

/* Takes the content from an earlier list; *base is else the version before,
 * or null. */
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
            wal__files_find(capture->baselines[i], file->path);

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

/* Content that is in memory. */
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
    status = wal__blob_prepare(blobs, content, base, &prepared, error);
    if (status != WAL_OK) {
        return status;
    }
    file->digest = prepared.digest;
    return wal__capture_add_content(worker->job, &prepared, error);
}

/* --- regular files ------------------------------------------------------- */

/* A file that is being read. */
struct reading {
    struct wal__capture_worker *worker;
    const struct wal__worktree_io *io;
    struct wal__worktree_file *from;
    struct wal__file_record *file;
    const struct wal__digest *base;
    uint64_t got;
    bool changed; /* it has not the size that it had */
};

/* `size` bytes, fewer at the end of the file, and where it should end: that it
 * does is told by the last look at it. */
static enum wal_status read_piece(struct reading *reading, size_t size,
                                  size_t *got, struct wal_error *error)
{
    const struct wal__worktree_io *io = reading->io;
    int sys_errno = 0;
    size_t total = 0;
    size_t part = 1;

    while (total < size && part > 0) {
        enum wal_status status =
            io->read(io->ctx, reading->from, reading->worker->buffer + total,
                     size - total, reading->got + total, &part, &sys_errno);

        if (status != WAL_OK) {
            return wal__worktree_fail(error, status, sys_errno,
                                      wal__file_path(reading->file), "reading");
        }
        total += part;
        if (reading->got + total == reading->file->size) {
            break;
        }
    }
    reading->got += total;
    *got = total;
    return WAL_OK;
}

static enum wal_status read_small(struct reading *reading,
                                  struct wal_error *error)
{
    struct wal__span content = {reading->worker->buffer, 0};
    enum wal_status status =
        read_piece(reading, (size_t)reading->file->size, &content.size, error);

    reading->changed = content.size != reading->file->size;
    return status != WAL_OK || reading->changed
               ? status
               : store_content(reading->worker, content, reading->base,
                               reading->file, error);
}

/* Content that is added to a writer of blobs, or digested alone. */
static enum wal_status add_piece(struct reading *reading,
                                 struct wal__blob_writer *writer, size_t size,
                                 struct wal_error *error)
{
    const struct wal__span piece = {reading->worker->buffer, size};

    return writer == NULL
               ? wal__sha256_update(&reading->worker->sha256_ctx, piece)
               : wal__blob_writer_append(writer, piece, error);
}

static enum wal_status finish_content(struct reading *reading,
                                      struct wal__blob_writer *writer,
                                      struct wal_error *error)
{
    struct wal__file_record *file = reading->file;
    struct wal__blob_put_result result = {0};
    enum wal_status status;
    uint64_t size;

    if (writer == NULL) {
        return wal__sha256_final(&reading->worker->sha256_ctx, &file->digest);
    }
    status =
        wal__blob_writer_finish(writer, &file->digest, &size, &result, error);
    wal__capture_add_result(reading->worker->job, &result);
    return status;
}

static enum wal_status read_large(struct reading *reading,
                                  struct wal_error *error)
{
    struct wal__capture_worker *worker = reading->worker;
    struct wal__blob_store *blobs = worker->job->capture->blobs;
    struct wal__blob_writer *writer = NULL;
    size_t got = 1;
    enum wal_status status =
        blobs == NULL
            ? wal__sha256_begin(&worker->job->sha256_alg, &worker->sha256_ctx)
            : wal__blob_writer_create(blobs, reading->base, &writer, error);

    while (status == WAL_OK && got > 0 && reading->got < reading->file->size) {
        status = read_piece(reading, WAL__CHUNK_MAX, &got, error);
        if (status == WAL_OK) {
            status = add_piece(reading, writer, got, error);
        }
    }
    reading->changed = reading->got != reading->file->size;
    if (status == WAL_OK && !reading->changed) {
        status = finish_content(reading, writer, error);
    }
    wal__blob_writer_destroy(writer);
    return status;
}

/* Reads the file as `stat` tells it; *changed: it is not so any more. */
static enum wal_status read_regular(struct wal__capture_worker *worker,
                                    struct wal__file_record *file,
                                    const struct wal__worktree_stat *stat,
                                    const struct wal__digest *base,
                                    bool *changed, struct wal_error *error)
{
    const struct wal__capture *capture = worker->job->capture;
    struct reading reading = {
        .worker = worker, .io = capture->io, .file = file, .base = base};
    const char *path = wal__file_path(file);
    struct wal__worktree_stat after = {0};
    int sys_errno = 0;
    enum wal_status status = reading.io->open(
        reading.io->ctx, capture->worktree, path, &reading.from, &sys_errno);

    /* Another kind of name took its place. */
    *changed = status == WAL_ENOTFOUND || status == WAL_ENOTFILE;
    if (status != WAL_OK) {
        return *changed ? WAL_OK
                        : wal__worktree_fail(error, status, sys_errno, path,
                                             "opening");
    }
    status = file->size <= WAL__CHUNK_MAX ? read_small(&reading, error)
                                          : read_large(&reading, error);
    if (status == WAL_OK && !reading.changed) {
        status = reading.io->file_stat(reading.io->ctx, reading.from, &after,
                                       &sys_errno);
        reading.changed = status == WAL_OK && !stat_equal(stat, &after);
        if (status != WAL_OK) {
            wal__worktree_fail(error, status, sys_errno, path, "looking at");
        }
    }
    *changed = reading.changed;
    reading.io->close(reading.io->ctx, reading.from);
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
    file->size = target.size;
    return store_content(worker, target, NULL, file, error);
}

/* --- any ----------------------------------------------------------------- */

static enum wal_status alloc_buffer(struct wal__capture_worker *worker,
                                    struct wal_error *error)
{
    if (worker->buffer == NULL) {
        worker->buffer =
            wal__heap_alloc(worker->job->capture->env->heap, WAL__CHUNK_MAX);
    }
    return worker->buffer != NULL ? WAL_OK : wal__no_memory(error);
}

/* The content of a file that is there. */
static enum wal_status capture_content(struct wal__capture_worker *worker,
                                       struct wal__file_record *file,
                                       const struct wal__worktree_stat *stat,
                                       bool *changed, struct wal_error *error)
{
    uint8_t *unread = worker->job->capture->needs_read;
    const struct wal__digest *base;
    bool found;
    enum wal_status status =
        match_baselines(worker, file, &base, &found, error);

    if (status != WAL_OK || found) {
        return status;
    }
    if (unread != NULL) {
        unread[file - worker->job->files->items] = 1;
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

static enum wal_status look(struct wal__capture_worker *worker,
                            struct wal__file_record *file, bool *changed,
                            struct wal_error *error)
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
        return wal__worktree_fail(error, status, sys_errno, path, "looking at");
    }
    *file = (struct wal__file_record){.path = file->path};
    if (stat.kind == WAL__WORKTREE_ABSENT) {
        return WAL_OK;
    }
    if (stat.kind != WAL__WORKTREE_REGULAR &&
        stat.kind != WAL__WORKTREE_SYMLINK) {
        return wal__worktree_fail(error, WAL_ENOTFILE, 0, path,
                                  stat.kind == WAL__WORKTREE_DIRECTORY
                                      ? "it is a directory"
                                      : "it is a device, socket or pipe");
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
        enum wal_status status = look(worker, file, &changed, error);

        if (status != WAL_OK) {
            return status;
        }
    }
    return changed
               ? wal__fail_at(error, WAL_ECHANGED, 0, wal__file_path(file), 0,
                              "the file changed each of the %d times that it "
                              "was read",
                              READ_ATTEMPTS_MAX)
               : WAL_OK;
}
