/*
 * blob_store.h - the blob stream as an open store holds it, for engine/blob
 * and for who embeds it.
 *
 * Locks, in this order: `writer`, the lease of the stream, `state`. `state` is
 * held for writing by whoever applies records or loads indexes, for reading by
 * who looks digests up; never while content is read, hashed or compressed.
 */
#ifndef AGENTWAL_ENGINE_BLOB_BLOB_STORE_H
#define AGENTWAL_ENGINE_BLOB_BLOB_STORE_H

#include "engine/base/sha256.h"
#include "engine/blob/blob.h"
#include "engine/blob/pack_memtable.h"
#include "engine/commit/leader.h"
#include "engine/log/index_file.h"

/* The index of a segment before the tail. */
struct wal__pack_segment_index {
    uint64_t id;
    struct wal__pack_index index;
    struct wal__mapped_file mapped; /* of a file beside the segment */
    uint8_t *buffer;                /* in memory */
};

struct wal__blob_store {
    const struct wal__env *env;
    struct wal__log log;
    struct wal__leader_client leader_client;
    pthread_mutex_t write_mutex; /* of this process's threads: who writes */
    pthread_rwlock_t index_lock;
    struct wal__sha256_alg sha256_alg;
    struct wal__pack_memtable tail;
    /* the tail, or what is made an index of */
    struct wal__pack_memtable *apply_target;
    struct wal__pack_segment_index *indexes; /* ascending by id */
    uint32_t index_count;
    uint32_t index_capacity;
    /* every segment before the tail has its segment_index */
    bool indexes_loaded;
    bool is_open;
};

/*
 * Opens the stream: finds its segments, recovers its end; `referenced_end` is
 * the highest durable end that the log names. What is missing or damaged below
 * it is no failure unless `strict`: who reads it is told. blobs is deinit-able
 * whatever happens. One thread.
 */
enum wal_status
wal__blob_store_init(struct wal__blob_store *blobs, const struct wal__env *env,
                     struct wal__control *control, const uint8_t uuid[16],
                     uint32_t group_align, uint64_t referenced_end, bool strict,
                     struct wal_error *error) WAL_MUST_USE;
/* Syncs and marks the end. */
enum wal_status wal__blob_store_finish(struct wal__blob_store *blobs,
                                       struct wal_error *error) WAL_MUST_USE;
/* Of the last process: puts the tail's index beside it. */
enum wal_status
wal__blob_store_write_index(struct wal__blob_store *blobs,
                            struct wal_error *error) WAL_MUST_USE;
void wal__blob_store_deinit(struct wal__blob_store *blobs);
/* Another control page: everything is loaded again. */
enum wal_status wal__blob_store_rejoin(struct wal__blob_store *blobs,
                                       struct wal_error *error) WAL_MUST_USE;

/* The state lock for reading, all that others wrote being applied. */
enum wal_status wal__blob_store_read_lock(struct wal__blob_store *blobs,
                                          struct wal_error *error) WAL_MUST_USE;
void wal__blob_store_unlock(struct wal__blob_store *blobs);

/* Where the newest record with the digest is, as far as this process knows,
 * or 0. The state lock is held, and pack_index.c's completion done. */
uint64_t wal__blob_find_locked(const struct wal__blob_store *blobs,
                               const struct wal__digest *digest);
/* The same, after catching up with others: WAL_ENOTFOUND. */
enum wal_status wal__blob_find(struct wal__blob_store *blobs,
                               const struct wal__digest *digest,
                               uint64_t *position,
                               struct wal_error *error) WAL_MUST_USE;
/* A place that only a durable end behind the record there has passed: durable
 * ends are ends of groups. */
uint64_t wal__blob_sync_end(uint64_t position);

/* pack_slots.c: indexes of all segments before the tail. State lock for
 * writing. */
enum wal_status wal__pack_indexes_load(struct wal__blob_store *blobs,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__pack_indexes_discard(struct wal__blob_store *blobs);
/* Takes an encoded index (copied) for a segment that has no other. */
enum wal_status wal__pack_indexes_add_copy(struct wal__blob_store *blobs,
                                           uint64_t id,
                                           struct wal__span bytes) WAL_MUST_USE;
/* Whether index/pack-ID.idx is there and valid; *segment_index is not in the
 * set. */
enum wal_status wal__pack_index_file_open(
    const struct wal__blob_store *blobs, uint64_t id,
    struct wal__pack_segment_index *segment_index) WAL_MUST_USE;
void wal__pack_segment_index_deinit(
    const struct wal__env *env, struct wal__pack_segment_index *segment_index);

/* blob_read.c: a record by its digest, checksums verified, in the map or in
 * scratch. */
struct wal__blob_frame {
    uint64_t position;
    struct wal__frame frame;
    struct wal__span payload;
};

enum wal_status wal__blob_fetch(struct wal__blob_store *blobs,
                                const struct wal__digest *digest,
                                struct wal__buf *scratch,
                                struct wal__blob_frame *found,
                                struct wal_error *error) WAL_MUST_USE;
/* WAL_ECORRUPT, naming file, offset and digest. */
enum wal_status wal__blob_report_corrupt(const struct wal__blob_store *blobs,
                                         const struct wal__digest *digest,
                                         uint64_t position, const char *why,
                                         struct wal_error *error);
/* Whether the newest record with the digest, and those that it is encoded with,
 * have their checksums: WAL_ENOTFOUND, WAL_ECORRUPT. *position is its place but
 * when there is none. */
enum wal_status wal__blob_verify(struct wal__blob_store *blobs,
                                 const struct wal__digest *digest,
                                 uint64_t *position,
                                 struct wal_error *error) WAL_MUST_USE;
/* The content of a chunk in the place of what *out held, its digest verified;
 * *depth, if not null, is that of its record. */
enum wal_status wal__chunk_load(struct wal__blob_store *blobs,
                                const struct wal__digest *digest,
                                struct wal__buf *out, uint8_t *depth,
                                struct wal_error *error) WAL_MUST_USE;
/* The chunks that some content consists of: appended to *chunks as digests. */
enum wal_status wal__blob_list_chunks(struct wal__blob_store *blobs,
                                      const struct wal__digest *digest,
                                      struct wal__buf *chunks, uint64_t *size,
                                      struct wal_error *error) WAL_MUST_USE;

/* blob_delta.c: content by that of another chunk. */
/* Appends the blocks to out; WAL_END when they would take more than `limit`
 * bytes. */
enum wal_status wal__delta_encode(const struct wal__heap *heap,
                                  struct wal__span content,
                                  struct wal__span base, size_t limit,
                                  struct wal__buf *out) WAL_MUST_USE;

/* blob_encode.c: as wal__blob_prepare, with the chunk that serves as base, or
 * null. */
enum wal_status wal__chunk_prepare(struct wal__blob_store *blobs,
                                   struct wal__span content,
                                   const struct wal__digest *base,
                                   struct wal__blob_prepared *out,
                                   struct wal_error *error) WAL_MUST_USE;
/* A BLOB of these chunks. */
enum wal_status wal__blob_prepare_chunk_list(
    struct wal__blob_store *blobs, const struct wal__blob_record *blob,
    struct wal__blob_prepared *out, struct wal_error *error) WAL_MUST_USE;

#endif
