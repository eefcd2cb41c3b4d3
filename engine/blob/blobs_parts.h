/*
 * blobs_parts.h - the blob stream as an open store holds it, for engine/blob
 * and for who embeds it.
 *
 * Locks, in this order: `writer`, the lease of the stream, `state`. `state` is
 * held for writing by whoever applies records or loads indexes, for reading by
 * who looks digests up; never while content is read, hashed or compressed.
 */
#ifndef WAL_BLOB_BLOBS_PARTS_H
#define WAL_BLOB_BLOBS_PARTS_H

#include "engine/blob/blobs.h"
#include "engine/blob/digest.h"
#include "engine/blob/pack_tail.h"
#include "engine/log/index_file.h"
#include "engine/log/turn.h"

/* The index of a segment before the tail. */
struct wal__pack_slot {
    uint64_t id;
    struct wal__pack_index index;
    struct wal__mapped_file mapped; /* of a file beside the segment */
    uint8_t *owned;                 /* in memory */
};

struct wal__blobs {
    const struct wal__env *env;
    struct wal__log log;
    struct wal__turn_client turn;
    pthread_mutex_t writer; /* of this process's threads: who writes */
    pthread_rwlock_t state;
    struct wal__digester digester;
    struct wal__pack_tail tail;
    struct wal__pack_tail *applied; /* the tail, or what is made an index of */
    struct wal__pack_slot *slots;   /* ascending by id */
    uint32_t slot_count;
    uint32_t slot_capacity;
    bool complete; /* every segment before the tail has its slot */
    bool opened;
};

/*
 * Opens the stream: finds its segments, recovers its end; `named` is the
 * highest durable end that the log names. What is missing or damaged below it
 * is no failure unless `strict`: who reads it is told. blobs is deinit-able
 * whatever happens. One thread.
 */
enum wal_status wal__blobs_init(struct wal__blobs *blobs,
                                const struct wal__env *env,
                                struct wal__control *control,
                                const uint8_t uuid[16], uint32_t group_align,
                                uint64_t named, bool strict,
                                struct wal_error *error) WAL_MUST_USE;
/* Syncs and marks the end. */
enum wal_status wal__blobs_finish(struct wal__blobs *blobs,
                                  struct wal_error *error) WAL_MUST_USE;
/* Of the last process: puts the tail's index beside it. */
enum wal_status wal__blobs_write_index(struct wal__blobs *blobs,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__blobs_deinit(struct wal__blobs *blobs);
/* Another control page: everything is loaded again. */
enum wal_status wal__blobs_meet(struct wal__blobs *blobs,
                                struct wal_error *error) WAL_MUST_USE;

/* The state lock for reading, all that others wrote being applied. */
enum wal_status wal__blobs_read_lock(struct wal__blobs *blobs,
                                     struct wal_error *error) WAL_MUST_USE;
void wal__blobs_unlock(struct wal__blobs *blobs);

/* Where the newest record with the digest is, as far as this process knows,
 * or 0. The state lock is held, and pack_index.c's completion done. */
uint64_t wal__blobs_locate(const struct wal__blobs *blobs,
                           const struct wal__digest *digest);
/* The same, after catching up with others: WAL_ENOTFOUND. */
enum wal_status wal__blobs_lookup(struct wal__blobs *blobs,
                                  const struct wal__digest *digest,
                                  uint64_t *position,
                                  struct wal_error *error) WAL_MUST_USE;
/* A place that only a durable end behind the record there has passed: durable
 * ends are ends of groups. */
uint64_t wal__blobs_behind(uint64_t position);

/* pack_slots.c: slots of all segments before the tail. State lock for
 * writing. */
enum wal_status wal__pack_slots_complete(struct wal__blobs *blobs,
                                         struct wal_error *error) WAL_MUST_USE;
void wal__pack_slots_drop(struct wal__blobs *blobs);
/* Takes an encoded index (copied) for a segment that has no other. */
enum wal_status wal__pack_slots_keep(struct wal__blobs *blobs, uint64_t id,
                                     struct wal__span bytes) WAL_MUST_USE;
/* Whether index/pack-ID.idx is there and valid; *slot is not in the set. */
enum wal_status wal__pack_file_open(const struct wal__blobs *blobs, uint64_t id,
                                    struct wal__pack_slot *slot) WAL_MUST_USE;
void wal__pack_slot_deinit(const struct wal__env *env,
                           struct wal__pack_slot *slot);

/* blob_read.c: a record by its digest, checksums verified, in the map or in
 * scratch. */
struct wal__blob_found {
    uint64_t position;
    struct wal__frame frame;
    struct wal__span payload;
};

enum wal_status wal__blob_fetch(struct wal__blobs *blobs,
                                const struct wal__digest *digest,
                                struct wal__buf *scratch,
                                struct wal__blob_found *found,
                                struct wal_error *error) WAL_MUST_USE;
/* WAL_ECORRUPT, naming file, offset and digest. */
enum wal_status wal__blob_damaged(const struct wal__blobs *blobs,
                                  const struct wal__digest *digest,
                                  uint64_t position, const char *why,
                                  struct wal_error *error);
/* Whether the newest record with the digest, and those that it is encoded with,
 * have their checksums: WAL_ENOTFOUND, WAL_ECORRUPT. *position is its place but
 * when there is none. */
enum wal_status wal__blob_check(struct wal__blobs *blobs,
                                const struct wal__digest *digest,
                                uint64_t *position,
                                struct wal_error *error) WAL_MUST_USE;
/* The content of a chunk in the place of what *out held, its digest verified;
 * *depth, if not null, is that of its record. */
enum wal_status wal__chunk_load(struct wal__blobs *blobs,
                                const struct wal__digest *digest,
                                struct wal__buf *out, uint8_t *depth,
                                struct wal_error *error) WAL_MUST_USE;
/* The chunks that some content consists of: appended to *chunks as digests. */
enum wal_status wal__blob_chunks(struct wal__blobs *blobs,
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
enum wal_status wal__chunk_prepare(struct wal__blobs *blobs,
                                   struct wal__span content,
                                   const struct wal__digest *base,
                                   struct wal__blob_prepared *out,
                                   struct wal_error *error) WAL_MUST_USE;
/* A BLOB of these chunks. */
enum wal_status wal__blob_prepare_list(struct wal__blobs *blobs,
                                       const struct wal__blob_record *blob,
                                       struct wal__blob_prepared *out,
                                       struct wal_error *error) WAL_MUST_USE;

#endif
