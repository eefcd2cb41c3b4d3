/*
 * capture_job.h - what looking at one file and running many have between
 * them (collect.h).
 */
#ifndef AGENTWAL_ENGINE_CHECKPOINT_CAPTURE_JOB_H
#define AGENTWAL_ENGINE_CHECKPOINT_CAPTURE_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/sha256.h"
#include "engine/checkpoint/capture.h"

enum {
    WAL__CAPTURE_BATCH_MAX = 1024 /* contents of a group, at most */
};

/* Contents on their way to the stream. */
struct wal__capture_batch {
    struct wal__blob_prepared *items;
    uint32_t count;
    uint64_t size; /* of their frames */
};

struct wal__capture_job {
    struct wal__capture *capture;
    struct wal__files *files;
    struct wal__sha256_alg sha256_alg; /* of contents that are not kept */
    atomic_uint_fast64_t read_count;
    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t batch_written;
    struct wal__capture_batch filling;
    struct wal__capture_batch writing; /* by one worker, without the mutex */
    uint32_t capacity;                 /* of each group */
    bool is_writing;                   /* somebody writes */
};

/* What one thread has. */
struct wal__capture_worker {
    struct wal__capture_job *job;
    struct wal__sha256_ctx sha256_ctx; /* of large content that is not kept */
    uint8_t *buffer;                   /* of WAL__CHUNK_MAX, once needed */
    uint64_t end; /* of content that was there, as in cost */
};

/* collect_file.c: fills the record of one file. */
enum wal_status wal__capture_file(struct wal__capture_worker *worker,
                                  struct wal__file_record *file,
                                  struct wal_error *error) WAL_MUST_USE;

/* collect.c: takes prepared content, whatever it answers; writes a group when
 * enough has come together. */
enum wal_status wal__capture_add_content(struct wal__capture_job *job,
                                         struct wal__blob_prepared *prepared,
                                         struct wal_error *error) WAL_MUST_USE;
/* Adds what a writer of large content cost. */
void wal__capture_add_result(struct wal__capture_job *job,
                             const struct wal__blob_put_result *result);

#endif
