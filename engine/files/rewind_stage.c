/*
 * rewind_stage.c - reads and verifies the contents that a rewind restores, and
 * writes them to temporary files in the directories of their targets (SPEC.md
 * 5.15). Several threads read and write; on the simulated disk one thread does,
 * file by file.
 *
 * Small contents that were verified are kept in memory until they are written.
 *
 * Invariant: a temporary file has its content, then its permission bits, or the
 * call fails.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/rewind_job.h"
#include "format/bytes/assert.h"

enum {
    PIECE_SIZE = 1024 * 1024
};

/* A parallel run over the chosen files of a list. */
struct work {
    const struct wal__rewind_job *job;
    const struct wal__files *list;
    const uint8_t *chosen;
};

/* The state of a worker thread. */
struct worker {
    uint8_t *piece; /* PIECE_SIZE bytes, allocated on demand */
};

void wal__rewind_temp_name(const struct wal__rewind_job *job, uint32_t number,
                           char out[WAL__REWIND_TEMP_NAME_MAX])
{
    const char *path = wal__file_path(&job->before.items[number]);
    const char *slash = strrchr(path, '/');
    int size = slash == NULL ? 0 : (int)(slash + 1 - path);
    int written;

    WAL__ASSERT(number < job->before.count);
    written =
        snprintf(out, WAL__REWIND_TEMP_NAME_MAX, "%.*s.agentwal-%s-%" PRIu32,
                 size, path, job->temp_suffix, number);
    WAL__ASSERT(written > 0 && written < WAL__REWIND_TEMP_NAME_MAX);
}

static enum wal_status alloc_buffer(const struct wal__rewind_job *job,
                                    struct worker *worker,
                                    struct wal_error *error)
{
    if (worker->piece == NULL) {
        worker->piece =
            wal__heap_alloc(job->session->core->env.heap, PIECE_SIZE);
    }
    return worker->piece == NULL ? wal__no_memory(error) : WAL_OK;
}

static void worker_end(void *ctx, void *state)
{
    const struct work *work = ctx;

    wal__rewind_verify_worker_end(work->job, state);
}

static enum wal_status run(struct work *work,
                           enum wal_status (*body)(void *ctx, void *state,
                                                   uint32_t item,
                                                   struct wal_error *error),
                           struct wal_error *error)
{
    const struct wal__parallel_for loop = {.env =
                                               &work->job->session->core->env,
                                           .ctx = work,
                                           .count = work->list->count,
                                           .grain = WAL__REWIND_GRAIN,
                                           .body = body,
                                           .end = worker_end};

    static_assert(sizeof(struct worker) <= WAL__PARALLEL_STATE_SIZE,
                  "the worker state fits the per-thread space");
    return wal__parallel_for(&loop, error);
}

/* --- contents ------------------------------------------------------------ */

/* Fails because a content cannot be read; names the file that needs it. */
static enum wal_status content_fail(const struct wal__file_record *file,
                                    enum wal_status status,
                                    const struct wal_error *why,
                                    struct wal_error *error)
{
    char digest[2 * WAL__DIGEST_SIZE + 1];

    for (int i = 0; i < WAL__DIGEST_SIZE; i++) {
        (void)snprintf(digest + 2 * i, 3, "%02x", file->digest.bytes[i]);
    }
    if (status == WAL_ENOTFOUND) {
        status = WAL_ECORRUPT;
    }
    return wal__fail_at(error, status, why->sys_errno, wal__file_path(file), 0,
                        "its content %s cannot be read: %s", digest, why->text);
}

static enum wal_status write_piece(const struct wal__rewind_job *job,
                                   struct wal__worktree_file *out,
                                   const char *path, const uint8_t *data,
                                   size_t size, uint64_t offset,
                                   struct wal_error *error)
{
    size_t done = 0;

    while (done < size) {
        size_t put = 0;
        int err = 0;
        enum wal_status status =
            job->io->write(job->io->ctx, out, data + done, size - done,
                           offset + done, &put, &err);

        if (status == WAL_OK && put == 0) {
            status = WAL_EIO;
        }
        if (status != WAL_OK) {
            return wal__worktree_fail(error, status, err, path,
                                      "cannot write the file");
        }
        WAL__ASSERT(put <= size - done);
        done += put;
    }
    return WAL_OK;
}

/* Reads all of a file's content, which verifies it, and writes it to `out`
 * unless that is NULL. */
static enum wal_status copy_content(const struct wal__rewind_job *job,
                                    const struct wal__file_record *file,
                                    struct wal__worktree_file *out,
                                    uint8_t *piece, struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    struct wal__blob_reader *reader = NULL;
    uint64_t offset = 0;
    uint64_t got = 1;
    enum wal_status status = wal__blob_reader_create(
        &job->session->core->blobs, &file->digest, &reader, &own);

    if (status == WAL_OK && wal__blob_reader_size(reader) != file->size) {
        status =
            wal__fail(&own, WAL_ECORRUPT,
                      "its size differs from the recorded size of the file");
    }
    while (status == WAL_OK && got > 0) {
        status = wal__blob_reader_read(reader, offset, piece, PIECE_SIZE, &got,
                                       &own);
        WAL__ASSERT(status != WAL_OK || got <= PIECE_SIZE);
        if (status != WAL_OK || out == NULL) {
            offset += got;
            continue;
        }
        status = write_piece(job, out, wal__file_path(file), piece, (size_t)got,
                             offset, error);
        if (status != WAL_OK) {
            goto done;
        }
        offset += got;
    }
    if (status != WAL_OK) {
        status = content_fail(file, status, &own, error);
    }
done:
    wal__blob_reader_destroy(reader);
    return status;
}

enum wal_status wal__rewind_keep_contents(struct wal__rewind_job *job,
                                          struct wal_error *error)
{
    const struct wal__heap *heap = job->session->core->env.heap;
    struct wal__rewind_contents *made = wal__heap_zalloc(
        heap, sizeof(*made) + job->after.count * sizeof(made->items[0]));

    WAL__ASSERT(job->contents == NULL);
    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->count = job->after.count;
    for (uint32_t i = 0; i < made->count; i++) {
        wal__buf_init(&made->items[i], heap);
    }
    job->contents = made;
    return WAL_OK;
}

void wal__rewind_contents_destroy(struct wal__rewind_contents *contents,
                                  const struct wal__heap *heap)
{
    for (uint32_t i = 0; contents != NULL && i < contents->count; i++) {
        wal__buf_deinit(&contents->items[i]);
    }
    wal__heap_free(heap, contents);
}

struct wal__span wal__rewind_kept_content(const struct wal__rewind_job *job,
                                          uint32_t number)
{
    struct wal__span none = {NULL, 0};

    if (job->contents == NULL) {
        return none;
    }
    WAL__ASSERT(number < job->contents->count);
    return (struct wal__span){job->contents->items[number].data,
                              job->contents->items[number].size};
}

/* Copies a content, unless there is too little space for it. */
static void keep_content(struct wal__rewind_contents *contents, uint32_t item,
                         const uint8_t *content, size_t size)
{
    static_assert((int)PIECE_SIZE <= (int)WAL__REWIND_KEPT_MAX,
                  "a piece may be kept");
    WAL__ASSERT(item < contents->count && contents->items[item].size == 0);
    if (atomic_fetch_add(&contents->size, size) <=
        WAL__REWIND_KEPT_MAX - size) {
        (void)!wal__buf_append(&contents->items[item], content, size);
    }
}

enum wal_status wal__rewind_verify_file(const struct wal__rewind_job *job,
                                        const struct wal__files *list,
                                        uint32_t item, void *state,
                                        struct wal_error *error)
{
    const struct wal__file_record *file = &list->items[item];
    struct worker *worker = state;
    enum wal_status status;

    if (file->kind == WAL__FILE_ABSENT) {
        return WAL_OK;
    }
    status = alloc_buffer(job, worker, error);
    if (status == WAL_OK) {
        status = copy_content(job, file, NULL, worker->piece, error);
    }
    if (status == WAL_OK && job->contents != NULL && list == &job->after &&
        file->size <= PIECE_SIZE) {
        keep_content(job->contents, item, worker->piece, (size_t)file->size);
    }
    return status;
}

void wal__rewind_verify_worker_end(const struct wal__rewind_job *job,
                                   void *state)
{
    struct worker *worker = state;

    wal__heap_free(job->session->core->env.heap, worker->piece);
}

static enum wal_status verify_item(void *ctx, void *state, uint32_t item,
                                   struct wal_error *error)
{
    const struct work *work = ctx;

    return work->chosen[item] != 0
               ? wal__rewind_verify_file(work->job, work->list, item, state,
                                         error)
               : WAL_OK;
}

enum wal_status wal__rewind_verify(const struct wal__rewind_job *job,
                                   const struct wal__files *list,
                                   const uint8_t *chosen,
                                   struct wal_error *error)
{
    struct work work = {.job = job, .list = list, .chosen = chosen};

    WAL__ASSERT(list->count == job->before.count);
    return run(&work, verify_item, error);
}

/* --- temporary files ----------------------------------------------------- */

static enum wal_status stage_file(const struct wal__rewind_job *job,
                                  const struct wal__file_record *to,
                                  const char *name, struct wal__span kept,
                                  struct worker *worker,
                                  struct wal_error *error)
{
    const struct wal__worktree_io *io = job->io;
    struct wal__worktree_file *file;
    int err = 0;
    enum wal_status status =
        io->create(io->ctx, job->worktree, name, 0600, &file, &err);

    if (status != WAL_OK) {
        return wal__worktree_fail(
            error, status, err, wal__file_path(to),
            "cannot create a temporary file in its directory");
    }
    status = kept.size > 0 ? write_piece(job, file, wal__file_path(to),
                                         kept.data, kept.size, 0, error)
                           : alloc_buffer(job, worker, error);
    if (status == WAL_OK && kept.size == 0) {
        status = copy_content(job, to, file, worker->piece, error);
    }
    if (status == WAL_OK) {
        /* After the content: writing clears some of the bits. */
        status = io->set_mode(io->ctx, file, to->mode, &err);
        if (status != WAL_OK) {
            (void)!wal__worktree_fail(error, status, err, wal__file_path(to),
                                      "cannot set its permission bits");
        }
    }
    io->close(io->ctx, file);
    return status;
}

static enum wal_status make_link(const struct wal__rewind_job *job,
                                 const struct wal__file_record *to,
                                 const char *name, struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    struct wal__buf target;
    enum wal_status status;
    int err = 0;

    wal__buf_init(&target, job->session->core->env.heap);
    status =
        wal__blob_load(&job->session->core->blobs, &to->digest, &target, &own);
    if (status != WAL_OK) {
        status = content_fail(to, status, &own, error);
    } else if (wal__buf_append(&target, "", 1) != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        status = job->io->make_link(job->io->ctx, job->worktree, name,
                                    (const char *)target.data, &err);
        if (status != WAL_OK) {
            (void)!wal__worktree_fail(
                error, status, err, wal__file_path(to),
                "cannot create a temporary link in its directory");
        }
    }
    wal__buf_deinit(&target);
    return status;
}

static enum wal_status stage_item(void *ctx, void *state, uint32_t item,
                                  struct wal_error *error)
{
    const struct work *work = ctx;
    const struct wal__file_record *file = &work->list->items[item];
    struct wal__span kept = {NULL, 0};
    char name[WAL__REWIND_TEMP_NAME_MAX];

    if (work->chosen[item] == 0 || file->kind == WAL__FILE_ABSENT) {
        return WAL_OK;
    }
    wal__rewind_temp_name(work->job, item, name);
    if (file->kind == WAL__FILE_SYMLINK) {
        return make_link(work->job, file, name, error);
    }
    if (work->list == &work->job->after) {
        kept = wal__rewind_kept_content(work->job, item);
    }
    return stage_file(work->job, file, name, kept, state, error);
}

enum wal_status wal__rewind_stage(const struct wal__rewind_job *job,
                                  const struct wal__files *to,
                                  const uint8_t *chosen,
                                  struct wal_error *error)
{
    struct work work = {.job = job, .list = to, .chosen = chosen};

    WAL__ASSERT(to->count == job->before.count);
    return run(&work, stage_item, error);
}
