/*
 * capture.c - captures the states of files (capture.h, SPEC.md 5.13): from the list of paths to
 * records whose contents are in the pack.
 *
 *   capture: workers in parallel, each takes the next few paths
 *     for each path
 *       read the stat
 *       a baseline with the same stat: its content is the file's
 *       otherwise read the file, or hash it only
 *         small: prepare the content, add it to the batch that is filling
 *         large: through a blob writer, chunk by chunk
 *       read the stat again; repeat if it differs
 *   write the last batch
 *
 * Batches. The worker that fills a batch of prepared contents writes it, while the others continue
 * with the second batch.
 *
 * Fresh files. When the file is so new that a later write might leave its times unchanged, the
 * record is flagged, and the next checkpoint reads the file again.
 *
 * Invariants: content is recorded only when the file's stat was the same before and after reading
 * it. At most two batches and the buffers of the workers are in memory. One worker at a time
 * writes.
 */
#include "engine/files/capture.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/thread.h"
#include "format/bytes/assert.h"

/* --- batches ------------------------------------------------------------- */

enum {
    BATCH_MAX = 1024, /* contents of one batch */
    BATCH_SIZE = 4 * 1024 * 1024,
    ITEM_OVERHEAD = 128 /* bytes counted for content that is already stored */
};

static void sum_result(struct wal__blob_put_result *to, const struct wal__blob_put_result *result)
{
    to->end = result->end > to->end ? result->end : to->end;
    to->new_blobs += result->new_blobs;
    to->new_bytes += result->new_bytes;
}

/* Frees the contents of a batch. */
static void clear_batch(struct wal__capture_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        wal__blob_prepared_deinit(&batch->items[i]);
    }
    batch->count = 0;
    batch->size = 0;
}

static bool is_full(const struct wal__capture_job *job)
{
    return job->filling.count == job->capacity || job->filling.size >= BATCH_SIZE;
}

/* Writes the filled batch. The mutex is held on entry and exit, and released during the write. */
static enum wal_status write_batch(struct wal__capture_job *job, struct wal_error *error)
{
    struct wal__capture_batch batch = job->filling;
    struct wal__blob_put_result result = {0};
    enum wal_status status;

    WAL__ASSERT(!job->is_writing);
    WAL__ASSERT(job->writing.count == 0);

    job->filling = job->writing;
    job->writing = batch;
    job->is_writing = true;
    pthread_mutex_unlock(&job->mutex);
    status = wal__pack_append(job->capture->blobs, batch.items, batch.count, &result, error);
    clear_batch(&batch);
    pthread_mutex_lock(&job->mutex);
    WAL__ASSERT(job->is_writing);
    job->writing = batch;
    job->is_writing = false;
    sum_result(&job->capture->result, &result);
    pthread_cond_broadcast(&job->batch_written);
    return status;
}

/* Adds the result of a writer of large content. */
static void add_result(struct wal__capture_job *job, const struct wal__blob_put_result *result)
{
    pthread_mutex_lock(&job->mutex);
    sum_result(&job->capture->result, result);
    pthread_mutex_unlock(&job->mutex);
}

enum wal_status wal__capture_add_content(struct wal__capture_job *job,
                                         struct wal__blob_prepared *prepared,
                                         struct wal_error *error)
{
    struct wal__capture_batch *batch = &job->filling;
    enum wal_status status = WAL_OK;

    pthread_mutex_lock(&job->mutex);
    while (status == WAL_OK && is_full(job)) {
        if (!job->is_writing) {
            status = write_batch(job, error);
        } else {
            pthread_cond_wait(&job->batch_written, &job->mutex);
        }
    }
    if (status == WAL_OK) {
        WAL__ASSERT(batch->count < job->capacity);
        batch->items[batch->count++] = *prepared;
        batch->size += prepared->frame.size + ITEM_OVERHEAD;
    } else {
        wal__blob_prepared_deinit(prepared);
    }
    if (status == WAL_OK && is_full(job) && !job->is_writing) {
        status = write_batch(job, error);
    }
    pthread_mutex_unlock(&job->mutex);
    return status;
}

/* The state of one worker thread. */
struct worker {
    struct wal__capture_job *job;
    struct wal__sha256_ctx sha256_ctx; /* for large unstored content */
    uint8_t *buffer;                   /* WAL__CHUNK_MAX bytes, allocated on demand */
    uint64_t end;                      /* sync end of content that was already stored */
    bool is_refused;                   /* the present file is why the capture of it failed */
    /* The record after the last one found in each baseline: lists of the same files have it at the
     * same place. */
    uint32_t likely[WAL__CAPTURE_BASELINES];
};

/* --- records ------------------------------------------------------------- */

enum {
    READ_ATTEMPTS_MAX = 4,           /* the first read and three retries */
    CLOCK_GRANULARITY_NS = 20000000, /* two ticks of the slowest kernel clock */
    COARSE_GRANULARITY_NS = 2000000000
};

/* File systems persist times at once, but data only within half of this. */
static const int64_t writeback_window_ns = INT64_C(60000000000);

enum wal_status wal__worktree_fail(struct wal_error *error, enum wal_status status, int sys_errno,
                                   const char *path, const char *what)
{
    /* The caller prints the text of sys_errno, which is more precise. */
    if (sys_errno != 0) {
        return wal__fail_at(error, status, sys_errno, path, 0, "%s failed", what);
    }
    return wal__fail_at(error, status, sys_errno, path, 0, "%s: %s", what, wal_status_text(status));
}

/* The same for a file that is captured; not for what the work tree is not the reason of. */
static enum wal_status refuse(struct worker *worker, const struct wal__file_record *file,
                              enum wal_status status, int sys_errno, const char *what,
                              struct wal_error *error)
{
    worker->is_refused = status != WAL_ENOMEM;
    return wal__worktree_fail(error, status, sys_errno, wal__file_path(file), what);
}

/* Times in whole seconds indicate a file system with one-second timestamps. */
static uint8_t freshness_flags(const struct wal__worktree_stat *stat, int64_t now)
{
    uint8_t flags = 0;
    int64_t newest = stat->mtime_ns > stat->ctime_ns ? stat->mtime_ns : stat->ctime_ns;
    bool coarse = stat->mtime_ns % 1000000000 == 0 && stat->ctime_ns % 1000000000 == 0;

    if (newest >= now - (coarse ? COARSE_GRANULARITY_NS : CLOCK_GRANULARITY_NS)) {
        flags |= WAL__FILE_RACY;
    }
    if (newest > now - writeback_window_ns) {
        flags |= WAL__FILE_FRESH;
    }
    return flags;
}

static bool stat_equal(const struct wal__worktree_stat *a, const struct wal__worktree_stat *b)
{
    return a->kind == b->kind && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns && a->inode == b->inode && a->device == b->device;
}

static void set_stat(struct wal__file_record *file, const struct wal__worktree_stat *stat)
{
    WAL__ASSERT(stat->kind == WAL__WORKTREE_REGULAR || stat->kind == WAL__WORKTREE_SYMLINK);
    file->kind = stat->kind == WAL__WORKTREE_REGULAR ? WAL__FILE_REGULAR : WAL__FILE_SYMLINK;
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
    return earlier->kind == file->kind && (earlier->flags & WAL__FILE_RACY) == 0 &&
           earlier->size == file->size && earlier->mtime_ns == file->mtime_ns &&
           earlier->ctime_ns == file->ctime_ns && earlier->inode == file->inode &&
           earlier->device == file->device;
}

/* Sets *found if the store has the content, or need not have it. */
static enum wal_status find_content(struct worker *worker, const struct wal__digest *digest,
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
static const struct wal__file_record *find_earlier(struct worker *worker, uint32_t baseline,
                                                   struct wal__span path)
{
    const struct wal__files *files = worker->job->capture->baselines[baseline];
    uint32_t *likely = &worker->likely[baseline];
    const struct wal__file_record *found;

    if (*likely < files->count && wal__span_compare(files->items[*likely].path, path) == 0) {
        found = &files->items[*likely];
    } else {
        found = wal__files_find(files, path);
    }
    if (found != NULL) {
        *likely = (uint32_t)(found - files->items) + 1;
    }
    return found;
}

/* Takes the digest from a baseline whose stat matches. Otherwise *base is the digest of the newest
 * earlier version, or NULL. */
static enum wal_status match_baselines(struct worker *worker, struct wal__file_record *file,
                                       const struct wal__digest **base, bool *found,
                                       struct wal_error *error)
{
    const struct wal__capture *capture = worker->job->capture;

    *found = false;
    *base = NULL;
    for (uint32_t i = 0; i < capture->baseline_count; i++) {
        const struct wal__file_record *earlier = find_earlier(worker, i, file->path);

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
static enum wal_status store_content(struct worker *worker, struct wal__span content,
                                     const struct wal__digest *base, struct wal__file_record *file,
                                     struct wal_error *error)
{
    struct wal__blob_store *blobs = worker->job->capture->blobs;
    struct wal__blob_prepared prepared = {0};
    enum wal_status status;

    if (blobs == NULL) {
        return wal__sha256(&worker->job->sha256_alg, content, &file->digest);
    }
    status = wal__blob_prepare(blobs, content, base, WAL__BLOB_OF_RECORDS, &prepared, error);
    if (status != WAL_OK) {
        return status;
    }
    file->digest = prepared.digest;
    return wal__capture_add_content(worker->job, &prepared, error);
}

/* --- regular files ------------------------------------------------------- */

struct file_reader {
    struct worker *worker;
    const struct wal__worktree_io *io;
    struct wal__worktree_file *from;
    struct wal__file_record *file;
    const struct wal__digest *base;
    uint64_t got;
    bool changed; /* the size differs from the record */
};

/* Reads `size` bytes at the current offset, fewer at the end of the file. Stops at the recorded
 * size: the stat after reading detects a longer file. */
static enum wal_status read_piece(struct file_reader *reader, size_t size, size_t *got,
                                  struct wal_error *error)
{
    const struct wal__worktree_io *io = reader->io;
    int sys_errno = 0;
    size_t total = 0;
    size_t part = 1;

    WAL__ASSERT(size <= WAL__CHUNK_MAX);
    while (total < size && part > 0) {
        enum wal_status status = io->read(io->ctx, reader->from, reader->worker->buffer + total,
                                          size - total, reader->got + total, &part, &sys_errno);

        if (status != WAL_OK) {
            return refuse(reader->worker, reader->file, status, sys_errno, "reading", error);
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

static enum wal_status read_small(struct file_reader *reader, struct wal_error *error)
{
    struct wal__span content = {reader->worker->buffer, 0};
    enum wal_status status = read_piece(reader, (size_t)reader->file->size, &content.size, error);

    WAL__ASSERT(content.size <= WAL__CHUNK_MAX);
    reader->changed = content.size != reader->file->size;
    return status != WAL_OK || reader->changed
               ? status
               : store_content(reader->worker, content, reader->base, reader->file, error);
}

/* Appends the piece to the blob writer, or to the hash when writer is NULL. */
static enum wal_status add_piece(struct file_reader *reader, struct wal__blob_writer *writer,
                                 size_t size, struct wal_error *error)
{
    const struct wal__span piece = {reader->worker->buffer, size};

    return writer == NULL ? wal__sha256_update(&reader->worker->sha256_ctx, piece)
                          : wal__blob_writer_append(writer, piece, error);
}

static enum wal_status finish_content(struct file_reader *reader, struct wal__blob_writer *writer,
                                      struct wal_error *error)
{
    struct wal__file_record *file = reader->file;
    struct wal__blob_put_result result = {0};
    enum wal_status status;
    uint64_t size;

    if (writer == NULL) {
        return wal__sha256_final(&reader->worker->sha256_ctx, &file->digest);
    }
    status = wal__blob_writer_finish(writer, &file->digest, &size, &result, error);
    WAL__ASSERT(status != WAL_OK || size == file->size);
    add_result(reader->worker->job, &result);
    return status;
}

static enum wal_status read_large(struct file_reader *reader, struct wal_error *error)
{
    struct worker *worker = reader->worker;
    struct wal__blob_store *blobs = worker->job->capture->blobs;
    struct wal__blob_writer *writer = NULL;
    size_t got = 1;
    enum wal_status status =
        blobs == NULL
            ? wal__sha256_begin(&worker->job->sha256_alg, &worker->sha256_ctx)
            : wal__blob_writer_create(blobs, reader->base, WAL__BLOB_OF_RECORDS, &writer, error);

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
static enum wal_status read_regular(struct worker *worker, struct wal__file_record *file,
                                    const struct wal__worktree_stat *stat,
                                    const struct wal__digest *base, bool *changed,
                                    struct wal_error *error)
{
    const struct wal__capture *capture = worker->job->capture;
    struct file_reader reader = {.worker = worker, .io = capture->io, .file = file, .base = base};
    const char *path = wal__file_path(file);
    struct wal__worktree_stat after = {0};
    int sys_errno = 0;
    enum wal_status status =
        reader.io->open(reader.io->ctx, capture->worktree, path, &reader.from, &sys_errno);

    /* The path was replaced by nothing or by another kind of file. */
    *changed = status == WAL_ENOTFOUND || status == WAL_ENOTFILE;
    if (status != WAL_OK) {
        return *changed ? WAL_OK : refuse(worker, file, status, sys_errno, "opening", error);
    }
    status = file->size <= WAL__CHUNK_MAX ? read_small(&reader, error) : read_large(&reader, error);
    if (status == WAL_OK && !reader.changed) {
        status = reader.io->file_stat(reader.io->ctx, reader.from, &after, &sys_errno);
        reader.changed = status == WAL_OK && !stat_equal(stat, &after);
        if (status != WAL_OK) {
            refuse(worker, file, status, sys_errno, "reading its metadata", error);
        }
    }
    *changed = reader.changed;
    reader.io->close(reader.io->ctx, reader.from);
    return status;
}

/* --- links --------------------------------------------------------------- */

static enum wal_status read_link(struct worker *worker, struct wal__file_record *file,
                                 const struct wal__worktree_stat *stat, bool *changed,
                                 struct wal_error *error)
{
    const struct wal__capture *capture = worker->job->capture;
    const struct wal__worktree_io *io = capture->io;
    const char *path = wal__file_path(file);
    struct wal__span target = {worker->buffer, 0};
    struct wal__worktree_stat after = {0};
    int sys_errno = 0;
    enum wal_status status = io->read_link(io->ctx, capture->worktree, path, worker->buffer,
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
        return refuse(worker, file, status, sys_errno, "reading the link", error);
    }
    WAL__ASSERT(target.size <= WAL__PATH_MAX);
    file->size = target.size;
    return store_content(worker, target, NULL, file, error);
}

/* --- any kind ------------------------------------------------------------ */

/* Captures the content of an existing file. */
static enum wal_status capture_content(struct worker *worker, struct wal__file_record *file,
                                       const struct wal__worktree_stat *stat, bool *changed,
                                       struct wal_error *error)
{
    uint8_t *unread = worker->job->capture->needs_read;
    size_t index = (size_t)(file - worker->job->files->items);
    const struct wal__digest *base;
    bool found;
    enum wal_status status = match_baselines(worker, file, &base, &found, error);

    WAL__ASSERT(index < worker->job->files->count);
    if (status != WAL_OK || found) {
        return status;
    }
    if (unread != NULL) {
        unread[index] = 1;
        return WAL_OK;
    }
    if (worker->buffer == NULL) {
        worker->buffer = wal__heap_alloc(worker->job->capture->env->heap, WAL__CHUNK_MAX);
    }
    if (worker->buffer == NULL) {
        return wal__no_memory(error);
    }
    atomic_fetch_add(&worker->job->read_count, 1);
    return file->kind == WAL__FILE_REGULAR ? read_regular(worker, file, stat, base, changed, error)
                                           : read_link(worker, file, stat, changed, error);
}

/* Whether the first link in the path is a file that the list names: the path leads nowhere then. */
static bool is_below_named_link(const struct wal__capture *capture, const struct wal__files *names,
                                const struct wal__file_record *file)
{
    char above[WAL__FILE_PATH_MAX + 1];
    struct wal__worktree_stat stat = {0};

    for (size_t i = 0; i < file->path.size; i++) {
        int ignored = 0;

        if (file->path.data[i] == '/') {
            above[i] = '\0';
            if (capture->io->stat(capture->io->ctx, capture->worktree, above, &stat, &ignored) ==
                    WAL_OK &&
                stat.kind == WAL__WORKTREE_SYMLINK) {
                return wal__files_find(names, (struct wal__span){file->path.data, i}) != NULL;
            }
        }
        above[i] = (char)file->path.data[i];
    }
    return false;
}

static enum wal_status capture_once(struct worker *worker, struct wal__file_record *file,
                                    bool *changed, struct wal_error *error)
{
    const struct wal__capture *capture = worker->job->capture;
    const struct wal__worktree_io *io = capture->io;
    const struct wal__files *names = capture->names != NULL ? capture->names : worker->job->files;
    const char *path = wal__file_path(file);
    int64_t now = io->now_ns(io->ctx);
    struct wal__worktree_stat stat = {0};
    int sys_errno = 0;
    enum wal_status status = io->stat(io->ctx, capture->worktree, path, &stat, &sys_errno);

    *changed = false;
    if (status == WAL_EOUTSIDE && is_below_named_link(capture, names, file)) {
        status = WAL_OK; /* the kind is that of an absent file */
    }
    if (status != WAL_OK) {
        return refuse(worker, file, status, sys_errno, "reading its metadata", error);
    }
    *file = (struct wal__file_record){.path = file->path};
    if (stat.kind == WAL__WORKTREE_ABSENT ||
        (stat.kind == WAL__WORKTREE_DIRECTORY && wal__files_has_below(names, file->path))) {
        return WAL_OK;
    }
    if (stat.kind != WAL__WORKTREE_REGULAR && stat.kind != WAL__WORKTREE_SYMLINK) {
        worker->is_refused = true;
        return wal__fail_at(error, WAL_ENOTFILE, 0, path, 0, "is a %s",
                            stat.kind == WAL__WORKTREE_DIRECTORY ? "directory"
                                                                 : "device, socket or pipe");
    }
    set_stat(file, &stat);
    file->flags = freshness_flags(&stat, now);
    return capture_content(worker, file, &stat, changed, error);
}

static enum wal_status capture_file(struct worker *worker, struct wal__file_record *file,
                                    struct wal_error *error)
{
    bool changed = true;

    worker->is_refused = false;
    for (int i = 0; i < READ_ATTEMPTS_MAX && changed; i++) {
        enum wal_status status = capture_once(worker, file, &changed, error);

        if (status != WAL_OK) {
            return status;
        }
    }
    worker->is_refused = changed;
    return changed ? wal__fail_at(error, WAL_ECHANGED, 0, wal__file_path(file), 0,
                                  "the file changed during each of %d attempts to read "
                                  "it; retry when no program writes it",
                                  READ_ATTEMPTS_MAX)
                   : WAL_OK;
}

/* --- workers ------------------------------------------------------------- */

enum {
    GRAIN = 8,        /* paths of a claim, at least; they mostly share a directory */
    UNRECORDED = 0xff /* kind of a file that became an issue */
};

static enum wal_status add_issue(struct wal__capture_job *job, struct wal__file_record *file,
                                 struct wal_error *error)
{
    enum wal_status status;

    file->kind = UNRECORDED;
    pthread_mutex_lock(&job->mutex);
    status = wal__file_issues_add(job->capture->issues, file->path, error);
    pthread_mutex_unlock(&job->mutex);
    return status;
}

/* Removes the files that became issues from the list. */
static void remove_unrecorded(struct wal__capture *capture, struct wal__files *files)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < files->count; i++) {
        if (files->items[i].kind != UNRECORDED) {
            files->items[kept++] = files->items[i];
        }
    }
    files->count = kept;
    wal__file_issues_sort(capture->issues);
}

static enum wal_status capture_item(void *ctx, void *state, uint32_t item, struct wal_error *error)
{
    struct wal__capture_job *job = ctx;
    struct worker *worker = state;
    struct wal__file_record *file = &job->files->items[item];
    enum wal_status status;

    WAL__ASSERT(item < job->files->count);
    worker->job = job;
    status = capture_file(worker, file, error);
    return status != WAL_OK && worker->is_refused && job->capture->issues != NULL
               ? add_issue(job, file, error)
               : status;
}

static void worker_end(void *ctx, void *state)
{
    struct wal__capture_job *job = ctx;
    struct worker *worker = state;

    if (worker->end != 0) {
        add_result(job, &(struct wal__blob_put_result){.end = worker->end});
    }
    wal__sha256_deinit(&worker->sha256_ctx);
    wal__heap_free(job->capture->env->heap, worker->buffer);
}

static enum wal_status run(struct wal__capture_job *job, struct wal_error *error)
{
    const struct wal__parallel_for loop = {.env = job->capture->env,
                                           .ctx = job,
                                           .count = job->files->count,
                                           .grain = GRAIN,
                                           .guided = true,
                                           .threads = job->capture->threads,
                                           .body = capture_item,
                                           .end = worker_end};

    static_assert(sizeof(struct worker) <= WAL__PARALLEL_STATE_SIZE,
                  "the worker state fits the per-thread space");
    return wal__parallel_for(&loop, error);
}

/* --- the job ------------------------------------------------------------- */

static enum wal_status job_init(struct wal__capture_job *job, struct wal__capture *capture,
                                struct wal__files *files)
{
    const struct wal__heap *heap = capture->env->heap;

    *job = (struct wal__capture_job){.capture = capture, .files = files};
    wal__sha256_alg_init(&job->sha256_alg);
    pthread_mutex_init(&job->mutex, NULL);
    pthread_cond_init(&job->batch_written, NULL);
    job->capacity = files->count < BATCH_MAX ? files->count : BATCH_MAX;
    WAL__ASSERT(job->capacity > 0);
    if (capture->blobs == NULL) {
        return WAL_OK;
    }
    job->filling.items = wal__heap_resize(heap, NULL, job->capacity, sizeof(job->filling.items[0]));
    job->writing.items = wal__heap_resize(heap, NULL, job->capacity, sizeof(job->writing.items[0]));
    return job->filling.items != NULL && job->writing.items != NULL ? WAL_OK : WAL_ENOMEM;
}

static void job_deinit(struct wal__capture_job *job)
{
    const struct wal__heap *heap = job->capture->env->heap;

    WAL__ASSERT(!job->is_writing);
    clear_batch(&job->filling);
    wal__heap_free(heap, job->filling.items);
    wal__heap_free(heap, job->writing.items);
    wal__sha256_alg_deinit(&job->sha256_alg);
    pthread_cond_destroy(&job->batch_written);
    pthread_mutex_destroy(&job->mutex);
}

enum wal_status wal__capture(struct wal__capture *capture, struct wal__files *files,
                             struct wal_error *error)
{
    struct wal__capture_job job;
    enum wal_status status;

    WAL__ASSERT(capture->baseline_count <= WAL__CAPTURE_BASELINES);
    capture->result = (struct wal__blob_put_result){0};
    capture->read_count = 0;
    if (files->count == 0) {
        return WAL_OK;
    }
    status = job_init(&job, capture, files);
    if (status != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        status = run(&job, error);
    }
    if (status == WAL_OK && job.filling.count > 0) {
        pthread_mutex_lock(&job.mutex);
        status = write_batch(&job, error);
        pthread_mutex_unlock(&job.mutex);
    }
    capture->read_count = atomic_load(&job.read_count);
    job_deinit(&job);
    if (status == WAL_OK && capture->issues != NULL) {
        remove_unrecorded(capture, files);
    }
    return status;
}
