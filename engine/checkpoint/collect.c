/*
 * collect.c - many files at once (collect.h): each worker takes the next few
 * paths, and prepared contents are written in groups by whichever worker has
 * filled one, while the others go on.
 *
 * Invariant: at most two groups and what every worker holds are in memory.
 */
#include "engine/checkpoint/collect.h"

#include <assert.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/checkpoint/collect_parts.h"
#include "engine/checkpoint/many.h"

enum {
    RUN = 8, /* paths that are taken at once: they mostly share a directory */
    GROUP_SIZE = 4 * 1024 * 1024,
    ITEM_SIZE = 128 /* counted for content that is in the store already */
};

/* --- groups -------------------------------------------------------------- */

static void add_cost(struct wal__blob_cost *to,
                     const struct wal__blob_cost *cost)
{
    to->end = cost->end > to->end ? cost->end : to->end;
    to->new_blobs += cost->new_blobs;
    to->new_bytes += cost->new_bytes;
}

static void empty(struct wal__collect_group *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        wal__blob_prepared_deinit(&group->items[i]);
    }
    group->count = 0;
    group->size = 0;
}

static bool is_full(const struct wal__collect_job *job)
{
    return job->filling.count == job->capacity ||
           job->filling.size >= GROUP_SIZE;
}

/* Writes the group that was filled. The mutex is held, but for the writing;
 * nobody else writes. */
static enum wal_status write_group(struct wal__collect_job *job,
                                   struct wal_error *error)
{
    struct wal__collect_group group = job->filling;
    struct wal__blob_cost cost = {0};
    enum wal_status status;

    job->filling = job->writing;
    job->writing = group;
    job->busy = true;
    pthread_mutex_unlock(&job->mutex);
    status = wal__blobs_write(job->collect->blobs, group.items, group.count,
                              &cost, error);
    empty(&group);
    pthread_mutex_lock(&job->mutex);
    job->writing = group;
    job->busy = false;
    add_cost(&job->collect->cost, &cost);
    pthread_cond_broadcast(&job->written);
    return status;
}

void wal__collect_add_cost(struct wal__collect_job *job,
                           const struct wal__blob_cost *cost)
{
    pthread_mutex_lock(&job->mutex);
    add_cost(&job->collect->cost, cost);
    pthread_mutex_unlock(&job->mutex);
}

enum wal_status wal__collect_put(struct wal__collect_job *job,
                                 struct wal__blob_prepared *prepared,
                                 struct wal_error *error)
{
    struct wal__collect_group *group = &job->filling;
    enum wal_status status = WAL_OK;

    pthread_mutex_lock(&job->mutex);
    while (status == WAL_OK && is_full(job)) {
        if (!job->busy) {
            status = write_group(job, error);
        } else {
            pthread_cond_wait(&job->written, &job->mutex);
        }
    }
    if (status == WAL_OK) {
        group->items[group->count++] = *prepared;
        group->size += prepared->frame.size + ITEM_SIZE;
    } else {
        wal__blob_prepared_deinit(prepared);
    }
    if (status == WAL_OK && is_full(job) && !job->busy) {
        status = write_group(job, error);
    }
    pthread_mutex_unlock(&job->mutex);
    return status;
}

/* What is left when all files were looked at. */
static enum wal_status write_rest(struct wal__collect_job *job,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (job->filling.count > 0) {
        pthread_mutex_lock(&job->mutex);
        status = write_group(job, error);
        pthread_mutex_unlock(&job->mutex);
    }
    return status;
}

/* --- workers ------------------------------------------------------------- */

static enum wal_status look(void *ctx, void *state, uint32_t item,
                            struct wal_error *error)
{
    struct wal__collect_job *job = ctx;
    struct wal__collect_worker *worker = state;

    worker->job = job;
    return wal__collect_file(worker, &job->files->items[item], error);
}

static void end_worker(void *ctx, void *state)
{
    struct wal__collect_job *job = ctx;
    struct wal__collect_worker *worker = state;

    if (worker->end != 0) {
        wal__collect_add_cost(job,
                              &(struct wal__blob_cost){.end = worker->end});
    }
    wal__digesting_deinit(&worker->digesting);
    wal__heap_free(job->collect->env->heap, worker->room);
}

static enum wal_status run(struct wal__collect_job *job,
                           struct wal_error *error)
{
    const struct wal__many many = {.env = job->collect->env,
                                   .ctx = job,
                                   .count = job->files->count,
                                   .run = RUN,
                                   .threads = job->collect->threads,
                                   .each = look,
                                   .end = end_worker};

    static_assert(sizeof(struct wal__collect_worker) <= WAL__MANY_STATE,
                  "what a worker has is in its room");
    return wal__many(&many, error);
}

/* --- all ----------------------------------------------------------------- */

static enum wal_status job_init(struct wal__collect_job *job,
                                struct wal__collect *collect,
                                struct wal__files *files)
{
    const struct wal__heap *heap = collect->env->heap;

    *job = (struct wal__collect_job){.collect = collect, .files = files};
    wal__digester_init(&job->digester);
    pthread_mutex_init(&job->mutex, NULL);
    pthread_cond_init(&job->written, NULL);
    job->capacity = files->count < WAL__COLLECT_PENDING ? files->count
                                                        : WAL__COLLECT_PENDING;
    if (collect->blobs == NULL) {
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

static void job_deinit(struct wal__collect_job *job)
{
    const struct wal__heap *heap = job->collect->env->heap;

    empty(&job->filling);
    wal__heap_free(heap, job->filling.items);
    wal__heap_free(heap, job->writing.items);
    wal__digester_deinit(&job->digester);
    pthread_cond_destroy(&job->written);
    pthread_mutex_destroy(&job->mutex);
}

enum wal_status wal__collect(struct wal__collect *collect,
                             struct wal__files *files, struct wal_error *error)
{
    struct wal__collect_job job;
    enum wal_status status;

    collect->cost = (struct wal__blob_cost){0};
    collect->read_count = 0;
    if (files->count == 0) {
        return WAL_OK;
    }
    status = job_init(&job, collect, files);
    if (status != WAL_OK) {
        wal__fail(error, status, 0, NULL, 0, "no memory");
    } else {
        status = run(&job, error);
    }
    if (status == WAL_OK && collect->blobs != NULL) {
        status = write_rest(&job, error);
    }
    collect->read_count = atomic_load(&job.read_count);
    job_deinit(&job);
    return status;
}
