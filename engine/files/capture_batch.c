/*
 * capture_batch.c - the two batches of prepared contents of a capture
 * (capture_job.h): one is filled while the other one is written.
 *
 * Invariant: one worker at a time writes.
 */
#include "engine/files/capture_job.h"
#include "format/bytes/assert.h"

enum {
    BATCH_SIZE = 4 * 1024 * 1024,
    ITEM_OVERHEAD = 128 /* bytes counted for content that is already stored */
};

static void add_result(struct wal__blob_put_result *to,
                       const struct wal__blob_put_result *result)
{
    to->end = result->end > to->end ? result->end : to->end;
    to->new_blobs += result->new_blobs;
    to->new_bytes += result->new_bytes;
}

void wal__capture_batch_clear(struct wal__capture_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        wal__blob_prepared_deinit(&batch->items[i]);
    }
    batch->count = 0;
    batch->size = 0;
}

static bool is_full(const struct wal__capture_job *job)
{
    return job->filling.count == job->capacity ||
           job->filling.size >= BATCH_SIZE;
}

/* Writes the filled batch. The mutex is held on entry and exit, and released
 * during the write. */
static enum wal_status write_batch(struct wal__capture_job *job,
                                   struct wal_error *error)
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
    status = wal__pack_append(job->capture->blobs, batch.items, batch.count,
                              &result, error);
    wal__capture_batch_clear(&batch);
    pthread_mutex_lock(&job->mutex);
    WAL__ASSERT(job->is_writing);
    job->writing = batch;
    job->is_writing = false;
    add_result(&job->capture->result, &result);
    pthread_cond_broadcast(&job->batch_written);
    return status;
}

void wal__capture_add_result(struct wal__capture_job *job,
                             const struct wal__blob_put_result *result)
{
    pthread_mutex_lock(&job->mutex);
    add_result(&job->capture->result, result);
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

enum wal_status wal__capture_write_last(struct wal__capture_job *job,
                                        struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (job->filling.count > 0) {
        pthread_mutex_lock(&job->mutex);
        status = write_batch(job, error);
        pthread_mutex_unlock(&job->mutex);
    }
    return status;
}
