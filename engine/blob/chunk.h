/*
 * chunk.h - records of the blob stream: reading them by digest, decoding
 * chunks, and encoding new ones (SPEC.md 2.18, 5.12). For engine/blob alone.
 * Any thread. No lock is held while content is read, hashed or compressed; the
 * calls take the index lock of blob_store.h briefly to look digests up.
 */
#ifndef AGENTWAL_ENGINE_BLOB_CHUNK_H
#define AGENTWAL_ENGINE_BLOB_CHUNK_H

#include "engine/blob/blob.h"

/* A record of the blob stream with verified checksums. The payload is in the
 * segment's map or in the caller's scratch buffer. */
struct wal__blob_frame {
    uint64_t position;
    struct wal__frame frame;
    struct wal__span payload;
};

/* --- blob_decode.c ------------------------------------------------------ */

/* Reads the newest record with the digest. WAL_ENOTFOUND; WAL_ECORRUPT when
 * its checksums or its digest do not match. */
enum wal_status wal__blob_fetch(struct wal__blob_store *blobs,
                                const struct wal__digest *digest,
                                struct wal__record_buf *scratch,
                                struct wal__blob_frame *found,
                                struct wal_error *error) WAL_MUST_USE;
/* Fills *error with the file, the offset and the digest; returns
 * WAL_ECORRUPT. */
enum wal_status wal__blob_report_corrupt(const struct wal__blob_store *blobs,
                                         const struct wal__digest *digest,
                                         uint64_t position, const char *why,
                                         struct wal_error *error);
/* Verifies the checksums of the newest record with the digest, and of the
 * chunks that it is encoded with: WAL_ENOTFOUND, WAL_ECORRUPT. *position is set
 * unless the digest is not found, *owner on success. */
enum wal_status wal__blob_verify(struct wal__blob_store *blobs,
                                 const struct wal__digest *digest,
                                 uint64_t *position,
                                 enum wal__blob_owner *owner,
                                 struct wal_error *error) WAL_MUST_USE;
/* Replaces the contents of out by the content of a chunk, whose digest is
 * verified. Sets *depth, if not NULL, to the depth of its record. out is
 * undefined on failure. */
enum wal_status wal__chunk_load(struct wal__blob_store *blobs,
                                const struct wal__digest *digest,
                                struct wal__buf *out, uint8_t *depth,
                                struct wal_error *error) WAL_MUST_USE;
/* Appends the digests of the chunks of some content to chunks; *size is the
 * size of the content. */
enum wal_status wal__blob_list_chunks(struct wal__blob_store *blobs,
                                      const struct wal__digest *digest,
                                      struct wal__buf *chunks, uint64_t *size,
                                      struct wal_error *error) WAL_MUST_USE;

/* --- blob_delta.c ------------------------------------------------------- */

/* Appends the blocks of content as a delta of base to out. WAL_END when they
 * would take more than `limit` bytes, or WAL_ENOMEM; out is then unchanged. */
enum wal_status wal__delta_encode(const struct wal__heap *heap,
                                  struct wal__span content,
                                  struct wal__span base, size_t limit,
                                  struct wal__buf *out) WAL_MUST_USE;

/* --- blob_encode.c ------------------------------------------------------ */

/* As wal__blob_prepare, but base is the digest of a chunk, or NULL. */
enum wal_status wal__chunk_prepare(struct wal__blob_store *blobs,
                                   struct wal__span content,
                                   const struct wal__digest *base,
                                   enum wal__blob_owner owner,
                                   struct wal__blob_prepared *out,
                                   struct wal_error *error) WAL_MUST_USE;
/* Encodes content whose digest is out->digest, without looking it up. The
 * encoding does not depend on anything else. WAL_ENOMEM. */
enum wal_status
wal__chunk_encode_plain(struct wal__blob_store *blobs, struct wal__span content,
                        enum wal__blob_owner owner,
                        struct wal__blob_prepared *out) WAL_MUST_USE;
/* Prepares the BLOB record that lists the chunks of larger content. */
enum wal_status wal__blob_prepare_chunk_list(
    struct wal__blob_store *blobs, const struct wal__blob_record *blob,
    enum wal__blob_owner owner, struct wal__blob_prepared *out,
    struct wal_error *error) WAL_MUST_USE;

#endif
