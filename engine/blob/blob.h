/*
 * blob.h - content by its SHA-256 in the blob stream of a store (SPEC.md
 * 5.12): once per content in the whole store, in pack/, durable before the
 * record that refers to it.
 *
 * Who may call: any thread, but for open and close. A struct wal__blob_reader
 * or _writer belongs to one thread at a time. The lease of the blob stream is
 * taken inside, never while that of the log is held, and the reverse: nobody
 * calls a function of this header that writes under the log's lease.
 */
#ifndef AGENTWAL_ENGINE_BLOB_BLOB_H
#define AGENTWAL_ENGINE_BLOB_BLOB_H

#include <pthread.h>

#include "engine/base/buf.h"
#include "engine/log/log.h"
#include "format/segment/record_blob.h"

struct wal__blob_store; /* in blobs_parts.h; embedded in struct wal__core */

/* Content to be put. */
struct wal__blob_prepared {
    struct wal__digest digest; /* of the content */
    uint64_t size;             /* of the content */
    uint64_t end; /* position that must be durable; 0: not written yet */
    uint64_t
        damaged_position;  /* of a record of it that cannot be read; 0: none */
    struct wal__buf frame; /* a CHUNK, ready to be written: room for its
                            * header, payload, padding; empty when it is there
                            * already */
    struct wal__frame header; /* of that frame, but for its sequence */
};

/*
 * Digests, looks up and compresses content of WAL__CHUNK_MAX at most; base,
 * if not null, is the version before, which may serve as dictionary. Holds no
 * lock while it works: many threads may prepare at once. *out is deinited by
 * wal__blob_prepared_deinit.
 */
enum wal_status wal__blob_prepare(struct wal__blob_store *blobs,
                                  struct wal__span content,
                                  const struct wal__digest *base,
                                  struct wal__blob_prepared *out,
                                  struct wal_error *error) WAL_MUST_USE;
void wal__blob_prepared_deinit(struct wal__blob_prepared *prepared);

/* What putting did. */
struct wal__blob_put_result {
    uint64_t end;       /* position that must be durable before a record that
                         * refers to any of them is submitted */
    uint64_t new_blobs; /* contents that were not there */
    uint64_t new_bytes; /* of the stream that they take */
};

/* Writes what is not there yet as one group or several, not synced; costs are
 * added to *cost. WAL_ENOSPACE with nothing written of the group. */
enum wal_status wal__pack_append(struct wal__blob_store *blobs,
                                 struct wal__blob_prepared *prepared,
                                 uint32_t count,
                                 struct wal__blob_put_result *result,
                                 struct wal_error *error) WAL_MUST_USE;

/* Everything before `end` on stable storage. */
enum wal_status wal__blob_store_sync(struct wal__blob_store *blobs,
                                     uint64_t end,
                                     struct wal_error *error) WAL_MUST_USE;
/* The durable end, for COMMITs of the log; 0: there is no stream. */
uint64_t wal__blob_store_durable_end(const struct wal__blob_store *blobs);

/* Whole content of any size in memory (it may lie in a map): prepared and
 * written in pieces, not synced. base as above, also of larger content. */
enum wal_status wal__blob_put(struct wal__blob_store *blobs,
                              struct wal__span content,
                              const struct wal__digest *base,
                              struct wal__digest *digest,
                              struct wal__blob_put_result *result,
                              struct wal_error *error) WAL_MUST_USE;

/* Content that comes piece by piece; memory is bounded by a few MiB. */
struct wal__blob_writer;
enum wal_status wal__blob_writer_create(struct wal__blob_store *blobs,
                                        const struct wal__digest *base,
                                        struct wal__blob_writer **writer,
                                        struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__blob_writer_append(struct wal__blob_writer *writer,
                                        struct wal__span piece,
                                        struct wal_error *error) WAL_MUST_USE;
/* Not synced. Once; then only destroy. */
enum wal_status wal__blob_writer_finish(struct wal__blob_writer *writer,
                                        struct wal__digest *digest,
                                        uint64_t *size,
                                        struct wal__blob_put_result *result,
                                        struct wal_error *error) WAL_MUST_USE;
void wal__blob_writer_destroy(struct wal__blob_writer *writer);

/* Whether the content is in the store; *size of the content, *end: the
 * position that must be durable. WAL_ENOTFOUND. */
enum wal_status wal__blob_stat(struct wal__blob_store *blobs,
                               const struct wal__digest *digest, uint64_t *size,
                               uint64_t *end,
                               struct wal_error *error) WAL_MUST_USE;

/* The same, without looking at the record: *end is 0 when there is none. */
enum wal_status wal__blob_find_end(struct wal__blob_store *blobs,
                                   const struct wal__digest *digest,
                                   uint64_t *end,
                                   struct wal_error *error) WAL_MUST_USE;

/*
 * Reads content. Every chunk's frame and digest are verified when it is read;
 * a whole read from 0 to the end also verifies the digest of all. Memory: a
 * few chunks. WAL_ECORRUPT names the file of the pack and the offset, and the
 * digest in its text.
 */
struct wal__blob_reader;
enum wal_status wal__blob_reader_create(struct wal__blob_store *blobs,
                                        const struct wal__digest *digest,
                                        struct wal__blob_reader **reader,
                                        struct wal_error *error) WAL_MUST_USE;
uint64_t wal__blob_reader_size(const struct wal__blob_reader *reader);
/* *got is `size` but at the end. */
enum wal_status wal__blob_reader_read(struct wal__blob_reader *reader,
                                      uint64_t offset, void *data,
                                      uint64_t size, uint64_t *got,
                                      struct wal_error *error) WAL_MUST_USE;
void wal__blob_reader_destroy(struct wal__blob_reader *reader);

/* All of it appended to out, whose memory grows by its size. */
enum wal_status wal__blob_load(struct wal__blob_store *blobs,
                               const struct wal__digest *digest,
                               struct wal__buf *out,
                               struct wal_error *error) WAL_MUST_USE;

#endif
