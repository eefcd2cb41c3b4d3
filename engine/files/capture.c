/*
 * capture.c - captures many files in parallel (capture.h). Each worker takes
 * the next few paths. The worker that fills a batch of prepared contents writes
 * it, while the others continue with the second batch.
 *
 * Invariant: at most two batches and the buffers of the workers are in memory;
 * one worker at a time writes.
 */
#include "engine/files/capture.h"

#include <assert.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/thread.h"
#include "engine/files/capture_job.h"
#include "format/bytes/assert.h"

enum {
    GRAIN = 8 /* paths of a claim, at least; they mostly share a directory */
};

/* --- workers ------------------------------------------------------------- */

static enum wal_status capture_item(void *ctx, void *state, uint32_t item,
                                    struct wal_error *error)
{
    struct wal__capture_job *job = ctx;
    struct wal__capture_worker *worker = state;

    WAL__ASSERT(item < job->files->count);
    worker->job = job;
    return wal__capture_file(worker, &job->files->items[item], error);
}

static void worker_end(void *ctx, void *state)
{
    struct wal__capture_job *job = ctx;
    struct wal__capture_worker *worker = state;

    if (worker->end != 0) {
        wal__capture_add_result(
            job, &(struct wal__blob_put_result){.end = worker->end});
    }
    wal__sha256_deinit(&worker->sha256_ctx);
    wal__heap_free(job->capture->env->heap, worker->buffer);
}

static enum wal_status run(struct wal__capture_job *job,
                           struct wal_error *error)
{
    const struct wal__parallel_for loop = {.env = job->capture->env,
                                           .ctx = job,
                                           .count = job->files->count,
                                           .grain = GRAIN,
                                           .guided = true,
                                           .threads = job->capture->threads,
                                           .body = capture_item,
                                           .end = worker_end};

    static_assert(sizeof(struct wal__capture_worker) <=
                      WAL__PARALLEL_STATE_SIZE,
                  "the worker state fits the per-thread space");
    return wal__parallel_for(&loop, error);
}

/* --- the job ------------------------------------------------------------- */

static enum wal_status job_init(struct wal__capture_job *job,
                                struct wal__capture *capture,
                                struct wal__files *files)
{
    const struct wal__heap *heap = capture->env->heap;

    *job = (struct wal__capture_job){.capture = capture, .files = files};
    wal__sha256_alg_init(&job->sha256_alg);
    pthread_mutex_init(&job->mutex, NULL);
    pthread_cond_init(&job->batch_written, NULL);
    job->capacity = files->count < WAL__CAPTURE_BATCH_MAX
                        ? files->count
                        : WAL__CAPTURE_BATCH_MAX;
    WAL__ASSERT(job->capacity > 0);
    if (capture->blobs == NULL) {
        return WAL_OK;
    }
    job->filling.items = wal__heap_resize(heap, NULL, job->capacity,
                                          sizeof(job->filling.items[0]));
    job->writing.items = wal__heap_resize(heap, NULL, job->capacity,
                                          sizeof(job->writing.items[0]));
    return job->filling.items != NULL && job->writing.items != NULL
               ? WAL_OK
               : WAL_ENOMEM;
}

static void job_deinit(struct wal__capture_job *job)
{
    const struct wal__heap *heap = job->capture->env->heap;

    WAL__ASSERT(!job->is_writing);
    wal__capture_batch_clear(&job->filling);
    wal__heap_free(heap, job->filling.items);
    wal__heap_free(heap, job->writing.items);
    wal__sha256_alg_deinit(&job->sha256_alg);
    pthread_cond_destroy(&job->batch_written);
    pthread_mutex_destroy(&job->mutex);
}

enum wal_status wal__capture(struct wal__capture *capture,
                             struct wal__files *files, struct wal_error *error)
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
    if (status == WAL_OK && capture->blobs != NULL) {
        status = wal__capture_write_last(&job, error);
    }
    capture->read_count = atomic_load(&job.read_count);
    job_deinit(&job);
    return status;
}
