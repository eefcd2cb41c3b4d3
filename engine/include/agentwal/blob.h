/*
 * agentwal/blob.h - blobs: content kept once under its SHA-256 (SPEC.md, Blobs). The conventions of
 * agentwal.h apply.
 */
#ifndef AGENTWAL_BLOB_H
#define AGENTWAL_BLOB_H

#include "../agentwal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wal_blob;
struct wal_blob_writer;

/* Keeps content in the store, durably and for good, and writes its SHA-256 to digest. What a caller
 * has stored already takes no space; what only entries and checkpoints had is stored again, since
 * it goes with them. Threads: any. Errors: those of wal_append. */
WAL_API WAL_MUST_USE enum wal_status wal_blob_put(struct wal_store *store, struct wal_slice content,
                                                  uint8_t digest[WAL_DIGEST_SIZE],
                                                  struct wal_error *error);

/* Starts a blob that is written in pieces, in a few MiB of memory whatever its size. Free *writer
 * with wal_blob_discard. Threads: any. Errors: those of wal_append. */
WAL_API WAL_MUST_USE enum wal_status
wal_blob_create(struct wal_store *store, struct wal_blob_writer **writer, struct wal_error *error);

/* The same, for content that an entry or a checkpoint is to name: it goes when nothing names it any
 * more. Until wal_blob_discard it stays in any case, and a compaction waits: name it, by
 * wal_checkpoint_import, before that, within seconds. Threads: any. Errors: those of wal_append. */
WAL_API WAL_MUST_USE enum wal_status wal_blob_create_named(struct wal_store *store,
                                                           struct wal_blob_writer **writer,
                                                           struct wal_error *error);

/* Adds a piece to the content. Threads: one at a time. Errors: those of wal_append; WAL_EINVAL
 * after wal_blob_finish. */
WAL_API WAL_MUST_USE enum wal_status
wal_blob_write(struct wal_blob_writer *writer, struct wal_slice piece, struct wal_error *error);

/* Makes the blob durable and returns its digest and its size in bytes; each may be null. The writer
 * remains to be freed. Threads: one at a time. Errors: those of wal_append; WAL_EINVAL when called
 * again. */
WAL_API WAL_MUST_USE enum wal_status wal_blob_finish(struct wal_blob_writer *writer,
                                                     uint8_t digest[WAL_DIGEST_SIZE],
                                                     uint64_t *size, struct wal_error *error);

/* Frees the writer; a blob that was not finished is dropped. writer may be null. */
WAL_API void wal_blob_discard(struct wal_blob_writer *writer);

/* Opens a blob by its digest. Close *blob with wal_blob_close. Threads: any. Errors: WAL_ENOTFOUND
 * when the store has no such content. */
WAL_API WAL_MUST_USE enum wal_status wal_blob_open(struct wal_store *store,
                                                   const uint8_t digest[WAL_DIGEST_SIZE],
                                                   struct wal_blob **blob, struct wal_error *error);

/* Returns the size of the content in bytes, also when the store is closed. */
WAL_API uint64_t wal_blob_size(const struct wal_blob *blob);

/*
 * Copies `size` bytes from `offset` on to data, fewer only at the end; *got is the number of bytes
 * copied.
 *
 * Each piece of 1 MiB that the range touches is verified against its digest; reads from the first
 * byte to the last also verify the digest of the whole.
 *
 * Threads: one at a time. Errors: WAL_ECORRUPT when it is damaged; WAL_ENOTFOUND when compaction
 * has removed it since, because nothing refers to it any more. Nothing was copied then.
 */
WAL_API WAL_MUST_USE enum wal_status wal_blob_read(struct wal_blob *blob, uint64_t offset,
                                                   void *data, uint64_t size, uint64_t *got,
                                                   struct wal_error *error);

/* Frees the handle. blob may be null. */
WAL_API void wal_blob_close(struct wal_blob *blob);

#ifdef __cplusplus
}
#endif

#endif
