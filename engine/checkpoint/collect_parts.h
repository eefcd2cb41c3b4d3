/*
 * collect_parts.h - what looking at one file and running many have between
 * them (collect.h).
 */
#ifndef WAL_CHECKPOINT_COLLECT_PARTS_H
#define WAL_CHECKPOINT_COLLECT_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/blob/digest.h"
#include "engine/checkpoint/collect.h"

enum {
    WAL__COLLECT_PENDING = 1024 /* contents of a group, at most */
};

/* Contents on their way to the stream. */
struct wal__collect_group {
    struct wal__blob_prepared *items;
    uint32_t count;
    uint64_t size; /* of their frames */
};

struct wal__collect_job {
    struct wal__collect *collect;
    struct wal__files *files;
    struct wal__digester digester; /* of contents that are not kept */
    atomic_uint_fast64_t read_count;
    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t written;
    struct wal__collect_group filling;
    struct wal__collect_group writing; /* by one worker, without the mutex */
    uint32_t capacity;                 /* of each group */
    bool busy;                         /* somebody writes */
};

/* What one thread has. */
struct wal__collect_worker {
    struct wal__collect_job *job;
    struct wal__digesting digesting; /* of large content that is not kept */
    uint8_t *room;                   /* of WAL__CHUNK_MAX, once needed */
    uint64_t end;                    /* of content that was there, as in cost */
};

/* collect_file.c: fills the record of one file. */
enum wal_status wal__collect_file(struct wal__collect_worker *worker,
                                  struct wal__file_record *file,
                                  struct wal_error *error) WAL_MUST_USE;

/* collect.c: takes prepared content, whatever it answers; writes a group when
 * enough has come together. */
enum wal_status wal__collect_put(struct wal__collect_job *job,
                                 struct wal__blob_prepared *prepared,
                                 struct wal_error *error) WAL_MUST_USE;
/* Adds what a writer of large content cost. */
void wal__collect_add_cost(struct wal__collect_job *job,
                           const struct wal__blob_cost *cost);

#endif
