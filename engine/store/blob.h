/*
 * blob.h - content by its SHA-256 in the blob stream of a store (SPEC.md 5.12): stored once in the
 * whole store, in pack/, and durable before a record that refers to it.
 *
 * Any thread, between init and deinit of the blob store. A struct wal__blob_reader or
 * wal__blob_writer belongs to one thread at a time. The calls that write acquire the append lock of
 * the blob stream; they must not be called under the append lock of the log, and never acquire that
 * one. Their caller holds a content guard (locks.h) until the record that names the content is in
 * the log: what they find or write may be dropped otherwise.
 */
#ifndef AGENTWAL_ENGINE_STORE_BLOB_H
#define AGENTWAL_ENGINE_STORE_BLOB_H

#include <pthread.h>

#include "engine/base/heap.h"
#include "engine/log/log.h"
#include "format/segment/record_blob.h"

struct wal__blob_store; /* blob_store.h; embedded in struct wal__core */

/* Who says how long content is kept (SPEC.md 2.18): the kind of its frame. */
enum wal__blob_owner {
    WAL__BLOB_OF_CALLER = 0, /* it is never dropped: names of it are unknown */
    WAL__BLOB_OF_RECORDS = 1 /* records of the log name it, or other content */
};

static inline enum wal__blob_owner wal__blob_frame_owner(const struct wal__frame *frame)
{
    return frame->kind == WAL__BLOB_OF_RECORDS ? WAL__BLOB_OF_RECORDS : WAL__BLOB_OF_CALLER;
}

/* Content that is ready to be written. */
struct wal__blob_prepared {
    struct wal__digest digest; /* of the content */
    uint64_t size;             /* of the content */
    uint64_t end;              /* position that must be durable; 0: not written yet */
    /* Of an existing record that must not be relied on; 0: none. */
    uint64_t unusable_position;
    struct wal__buf frame;    /* room for the frame's header, then payload and
                               * padding; empty if the content is stored */
    struct wal__frame header; /* of that frame, without its sequence */
};

/*
 * Hashes, looks up and compresses content of at most WAL__CHUNK_MAX bytes. base, if not NULL, is
 * the digest of an earlier version, which may serve as the dictionary. Holds no lock while it
 * works, so that several threads can prepare concurrently. The caller deinits *out.
 */
enum wal_status wal__blob_prepare(struct wal__blob_store *blobs, struct wal__span content,
                                  const struct wal__digest *base, enum wal__blob_owner owner,
                                  struct wal__blob_prepared *out,
                                  struct wal_error *error) WAL_MUST_USE;
void wal__blob_prepared_deinit(struct wal__blob_prepared *prepared);

/* The sum of what put calls wrote. */
struct wal__blob_put_result {
    uint64_t end;       /* position that must be durable before a record that
                         * refers to any of the contents is submitted */
    uint64_t new_blobs; /* contents that were not stored before */
    uint64_t new_bytes; /* bytes of the stream that they take */
};

/* Writes the contents that are not stored yet, as one or more groups, without a sync. Adds to
 * *result. WAL_ENOSPACE with nothing of the group written. */
enum wal_status wal__pack_append(struct wal__blob_store *blobs, struct wal__blob_prepared *prepared,
                                 uint32_t count, struct wal__blob_put_result *result,
                                 struct wal_error *error) WAL_MUST_USE;

/* Syncs the stream up to `end`; heals it if an earlier sync failed. */
enum wal_status wal__blob_store_sync(struct wal__blob_store *blobs, uint64_t end,
                                     struct wal_error *error) WAL_MUST_USE;
/* The durable end, for COMMITs of the log; 0: the stream is empty. */
uint64_t wal__blob_store_durable_end(const struct wal__blob_store *blobs);

/* Puts content of any size that is in memory or in a map, without a sync. Adds to *result. base as
 * above; it may be the digest of larger content. */
enum wal_status wal__blob_put(struct wal__blob_store *blobs, struct wal__span content,
                              const struct wal__digest *base, enum wal__blob_owner owner,
                              struct wal__digest *digest, struct wal__blob_put_result *result,
                              struct wal_error *error) WAL_MUST_USE;

/* Puts content piece by piece; memory is bounded by a few MiB. */
struct wal__blob_writer;
enum wal_status wal__blob_writer_create(struct wal__blob_store *blobs,
                                        const struct wal__digest *base, enum wal__blob_owner owner,
                                        struct wal__blob_writer **writer,
                                        struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__blob_writer_append(struct wal__blob_writer *writer, struct wal__span piece,
                                        struct wal_error *error) WAL_MUST_USE;
/* Completes the content, without a sync. Only destroy may follow. */
enum wal_status wal__blob_writer_finish(struct wal__blob_writer *writer, struct wal__digest *digest,
                                        uint64_t *size, struct wal__blob_put_result *result,
                                        struct wal_error *error) WAL_MUST_USE;
void wal__blob_writer_destroy(struct wal__blob_writer *writer);

/* Looks content up: *size is its size, *end the position that must be durable before a record
 * refers to it. WAL_ENOTFOUND. */
enum wal_status wal__blob_stat(struct wal__blob_store *blobs, const struct wal__digest *digest,
                               uint64_t *size, uint64_t *end, struct wal_error *error) WAL_MUST_USE;

/* The same for a record that is to name the content under the caller's guard:
 * *end is 0 if the content is not stored, or only where a compaction may drop
 * it, or not whole: a compaction may have left a record that nothing names
 * without its chunks, or a delta without its base. Reads the heads of records,
 * and no content. */
enum wal_status wal__blob_find_end(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                   uint64_t *end, struct wal_error *error) WAL_MUST_USE;

/* Copies content of a store to another one, or again to the same, as content of records; adds to
 * *result. WAL_ENOTFOUND. */
enum wal_status wal__blob_copy(struct wal__blob_store *from, struct wal__blob_store *to,
                               const struct wal__digest *digest,
                               struct wal__blob_put_result *result,
                               struct wal_error *error) WAL_MUST_USE;

/* Makes content that is stored safe to be named by a record, under the caller's guard: stores it
 * again where a compaction may drop it. As wal__blob_stat. */
enum wal_status wal__blob_claim(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                uint64_t *size, uint64_t *end,
                                struct wal_error *error) WAL_MUST_USE;

/*
 * Reads content. A chunk's checksums and digest are verified when it is read; reading sequentially
 * from 0 to the end also verifies the digest of the whole content. Memory: a few chunks. The error
 * of WAL_ECORRUPT names the pack file and the offset; its text contains the digest.
 */
struct wal__blob_reader;
enum wal_status wal__blob_reader_create(struct wal__blob_store *blobs,
                                        const struct wal__digest *digest,
                                        struct wal__blob_reader **reader,
                                        struct wal_error *error) WAL_MUST_USE;
uint64_t wal__blob_reader_size(const struct wal__blob_reader *reader);
/* *bytes_read is less than `size` only at the end. */
enum wal_status wal__blob_reader_read(struct wal__blob_reader *reader, uint64_t offset, void *data,
                                      uint64_t size, uint64_t *bytes_read,
                                      struct wal_error *error) WAL_MUST_USE;
void wal__blob_reader_destroy(struct wal__blob_reader *reader);

/* Appends the whole content to out. */
enum wal_status wal__blob_load(struct wal__blob_store *blobs, const struct wal__digest *digest,
                               struct wal__buf *out, struct wal_error *error) WAL_MUST_USE;

#endif
