/*
 * blob_store.h - the blob stream of an open store (SPEC.md 5.12), for engine/blob and for struct
 * wal__core, which embeds it.
 *
 * Locks, in this order: write_mutex, the append lock of the stream, index_lock. index_lock is held
 * for writing while records are applied or indexes are loaded, and for reading while digests are
 * looked up; never while content is read, hashed or compressed.
 */
#ifndef AGENTWAL_ENGINE_STORE_BLOB_STORE_H
#define AGENTWAL_ENGINE_STORE_BLOB_STORE_H

#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "engine/base/sha256.h"
#include "engine/log/leader.h"
#include "engine/store/blob.h"
#include "format/index/index_fmt.h"

struct wal__pack_entry {
    struct wal__digest digest;
    uint32_t offset; /* of the frame in the segment */
};

/* The digests of a segment that has no index yet. The caller's lock: one writer, or any readers. */
struct wal__pack_memtable {
    struct wal__buf entries; /* of struct wal__pack_entry, in log order */
    struct wal__hashmap map; /* hash of the digest -> rank in entries */
    uint32_t count;
};

void wal__pack_memtable_init(struct wal__pack_memtable *memtable, const struct wal__heap *heap);
void wal__pack_memtable_deinit(struct wal__pack_memtable *memtable);

/* Adds the next record. WAL_ENOMEM leaves the memtable unchanged. */
enum wal_status wal__pack_memtable_add(struct wal__pack_memtable *memtable,
                                       const struct wal__digest *digest,
                                       uint32_t offset) WAL_MUST_USE;

/* Appends the index of the segment to out, after room for a frame's header. Sets
 * header->posting_count. */
enum wal_status wal__pack_memtable_encode(const struct wal__pack_memtable *memtable,
                                          struct wal__index_header *header,
                                          struct wal__buf *out) WAL_MUST_USE;

struct wal__pack_segment_index; /* blob_store.c */

struct wal__blob_store {
    const struct wal__env *env;
    struct wal__log log;
    struct wal__leader_client leader_client;
    pthread_mutex_t write_mutex; /* one writing thread per process */
    uint64_t condemned_end;      /* when that began to append */
    pthread_rwlock_t index_lock;
    struct wal__sha256_alg sha256_alg;
    struct wal__pack_memtable tail;
    /* Gets applied records: `tail`, or the memtable of a segment whose index is being rebuilt. */
    struct wal__pack_memtable *apply_target;
    struct wal__pack_segment_index *indexes; /* ascending by id */
    uint32_t index_count;
    uint32_t index_capacity;
    uint64_t generation; /* raised by each load of the indexes */
    bool indexes_loaded; /* every segment before the tail has an index */
    bool is_open;
};

/*
 * Opens the stream: finds its segments and recovers its end. referenced_end is the highest durable
 * end of the stream that the log records. Missing or damaged segments below it fail the call only
 * if `strict`; else readers of their content get an error. blobs may be deinited after a failure
 * too. One thread.
 */
enum wal_status wal__blob_store_init(struct wal__blob_store *blobs, const struct wal__env *env,
                                     struct wal__control *control, const uint8_t uuid[16],
                                     uint32_t group_align, uint64_t referenced_end, bool strict,
                                     struct wal_error *error) WAL_MUST_USE;
/* Syncs the stream and writes a commit mark. */
enum wal_status wal__blob_store_finish(struct wal__blob_store *blobs,
                                       struct wal_error *error) WAL_MUST_USE;
/* Writes the index file of the tail segment. The last process that closes the store calls it. */
enum wal_status wal__blob_store_write_index(struct wal__blob_store *blobs,
                                            struct wal_error *error) WAL_MUST_USE;
void wal__blob_store_deinit(struct wal__blob_store *blobs);
/* wal__core_look_again for content: after damage was found without the lock. */
bool wal__blob_store_look_again(struct wal__blob_store *blobs, uint64_t *looked);
/* Ends the tail segment, unless it holds no record. */
enum wal_status wal__blob_store_rotate(struct wal__blob_store *blobs,
                                       struct wal_error *error) WAL_MUST_USE;
/* The next look-up opens segments and indexes again. Does nothing before the store is
 * initialised. */
void wal__blob_store_invalidate(struct wal__blob_store *blobs);
/* Opens the segments that a compaction of this process has just made, and makes other processes do
 * the same. */
enum wal_status wal__blob_store_publish(struct wal__blob_store *blobs,
                                        struct wal_error *error) WAL_MUST_USE;
/* Closes what compactions replaced and nobody of this process uses. Without a lock. */
void wal__blob_store_close_replaced(struct wal__blob_store *blobs);
/* Reloads everything after the control page was replaced. */
enum wal_status wal__blob_store_rejoin(struct wal__blob_store *blobs,
                                       struct wal_error *error) WAL_MUST_USE;

/* Catches up with other processes and returns with index_lock held, for reading or writing. Not
 * held on failure. */
enum wal_status wal__blob_store_read_lock(struct wal__blob_store *blobs,
                                          struct wal_error *error) WAL_MUST_USE;
/* The same, for writing. */
enum wal_status wal__blob_store_write_lock(struct wal__blob_store *blobs,
                                           struct wal_error *error) WAL_MUST_USE;
void wal__blob_store_unlock(struct wal__blob_store *blobs);

/* The same after catching up with other processes: WAL_ENOTFOUND. */
enum wal_status wal__blob_find(struct wal__blob_store *blobs, const struct wal__digest *digest,
                               uint64_t *position, struct wal_error *error) WAL_MUST_USE;
/* The position up to which a compaction may drop records of the stream, and which a record must not
 * come to depend on. It is read before digests are looked up: once it is 0 again, the look-up finds
 * what has replaced them. */
uint64_t wal__blob_condemned_end(const struct wal__blob_store *blobs);
/* A position that a durable end exceeds only if the record at `position` is durable: durable ends
 * are ends of groups. */
uint64_t wal__blob_sync_end(uint64_t position);

/* A record, by its index. */
struct wal__pack_place {
    struct wal__digest digest;
    uint64_t position;
};

/* Replaces the contents of *places, of struct wal__pack_place, by the records of a segment; also of
 * the tail, whose header is zeros. *header is that of its index. WAL_ENOTFOUND: there is no such
 * segment. */
enum wal_status wal__pack_list(struct wal__blob_store *blobs, uint64_t id,
                               struct wal__index_header *header, struct wal__buf *places,
                               struct wal_error *error) WAL_MUST_USE;

/* --- blob_reader.c ------------------------------------------------------ */

/*
 * Records by their digests, for compaction too. No lock is held while content is read, hashed or
 * compressed; index_lock is taken briefly to find digests.
 */

/* Verifies the checksums of the newest record with the digest, and of the chunks that it is encoded
 * with: WAL_ENOTFOUND, WAL_ECORRUPT. *position is set unless the digest is not found, *owner on
 * success. */
enum wal_status wal__blob_verify(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                 uint64_t *position, enum wal__blob_owner *owner,
                                 struct wal_error *error) WAL_MUST_USE;
/* Replaces the contents of out by the content of a chunk, whose digest is verified. Sets *depth, if
 * not NULL, to the depth of its record. out is undefined on failure. */
enum wal_status wal__chunk_load(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                struct wal__buf *out, uint8_t *depth,
                                struct wal_error *error) WAL_MUST_USE;
/* Appends the digests of the chunks of some content to chunks; *size is the size of the content. */
enum wal_status wal__blob_list_chunks(struct wal__blob_store *blobs,
                                      const struct wal__digest *digest, struct wal__buf *chunks,
                                      uint64_t *size, struct wal_error *error) WAL_MUST_USE;

/* --- blob_writer.c ------------------------------------------------------ */

/* Appends the blocks of content as a delta of base to out. WAL_END when they would take more than
 * `limit` bytes, or WAL_ENOMEM; out is then unchanged. */
enum wal_status wal__delta_encode(const struct wal__heap *heap, struct wal__span content,
                                  struct wal__span base, size_t limit,
                                  struct wal__buf *out) WAL_MUST_USE;

/* Encodes content whose digest is out->digest, without looking it up. The encoding does not depend
 * on anything else. WAL_ENOMEM. */
enum wal_status wal__chunk_encode_plain(struct wal__blob_store *blobs, struct wal__span content,
                                        enum wal__blob_owner owner,
                                        struct wal__blob_prepared *out) WAL_MUST_USE;
/* Prepares the BLOB record that lists the chunks of larger content. */
enum wal_status wal__blob_prepare_chunk_list(struct wal__blob_store *blobs,
                                             const struct wal__blob_record *blob,
                                             enum wal__blob_owner owner,
                                             struct wal__blob_prepared *out,
                                             struct wal_error *error) WAL_MUST_USE;

#endif
