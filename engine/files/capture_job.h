/*
 * capture_job.h - the state that capture.c and capture_file.c share
 * (capture.h). Workers run in parallel; the mutex guards the batches.
 */
#ifndef AGENTWAL_ENGINE_FILES_CAPTURE_JOB_H
#define AGENTWAL_ENGINE_FILES_CAPTURE_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/sha256.h"
#include "engine/files/capture.h"

enum {
    WAL__CAPTURE_BATCH_MAX = 1024 /* contents of one batch */
};

/* Prepared contents that are written together. */
struct wal__capture_batch {
    struct wal__blob_prepared *items;
    uint32_t count;
    uint64_t size; /* bytes of their frames, with overhead */
};

struct wal__capture_job {
    struct wal__capture *capture;
    struct wal__files *files;
    struct wal__sha256_alg sha256_alg; /* for contents that are not stored */
    atomic_uint_fast64_t read_count;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t batch_written;
    struct wal__capture_batch filling;
    struct wal__capture_batch writing; /* of the writing worker */
    uint32_t capacity;                 /* items of each batch */
    bool is_writing;                   /* a worker writes a batch */
};

/* The state of one worker thread. */
struct wal__capture_worker {
    struct wal__capture_job *job;
    struct wal__sha256_ctx sha256_ctx; /* for large unstored content */
    uint8_t *buffer; /* WAL__CHUNK_MAX bytes, allocated on demand */
    uint64_t end;    /* sync end of content that was already stored */
    /* The record after the last one found in each baseline: lists of the same
     * files have it at the same place. */
    uint32_t likely[WAL__CAPTURE_BASELINES];
};

/* capture_file.c: fills the record of one file. */
enum wal_status wal__capture_file(struct wal__capture_worker *worker,
                                  struct wal__file_record *file,
                                  struct wal_error *error) WAL_MUST_USE;

/* capture_batch.c: frees the contents of a batch. */
void wal__capture_batch_clear(struct wal__capture_batch *batch);
/* Takes ownership of prepared content, also on failure; writes a
 * batch when it is full. Any worker; takes the mutex. */
enum wal_status wal__capture_add_content(struct wal__capture_job *job,
                                         struct wal__blob_prepared *prepared,
                                         struct wal_error *error) WAL_MUST_USE;
/* Adds the result of a writer of large content. Takes the mutex. */
void wal__capture_add_result(struct wal__capture_job *job,
                             const struct wal__blob_put_result *result);
/* Writes what the batches hold, once the workers have ended. */
enum wal_status wal__capture_write_last(struct wal__capture_job *job,
                                        struct wal_error *error) WAL_MUST_USE;

#endif
