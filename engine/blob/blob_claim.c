/*
 * blob_claim.c - content that is stored already, here or in another store, and
 * that a record is to name (blob.h; SPEC.md 5.12). Any thread; the caller holds
 * a content guard.
 */
#include "engine/base/error.h"
#include "engine/blob/blob_store.h"
#include "engine/blob/chunk.h"

/* Copies content piece by piece from its reader to a writer. */
static enum wal_status copy_pieces(struct wal__blob_store *blobs,
                                   struct wal__blob_reader *reader,
                                   struct wal__blob_writer *writer,
                                   struct wal_error *error)
{
    const uint64_t size = wal__blob_reader_size(reader);
    uint8_t *piece = wal__heap_alloc(blobs->env->heap, WAL__CHUNK_MAX);
    enum wal_status status = WAL_OK;
    uint64_t at = 0;

    if (piece == NULL) {
        return wal__no_memory(error);
    }
    while (status == WAL_OK && at < size) {
        uint64_t got = 0;

        status = wal__blob_reader_read(reader, at, piece, WAL__CHUNK_MAX, &got,
                                       error);
        if (status == WAL_OK) {
            status = wal__blob_writer_append(
                writer, (struct wal__span){piece, (size_t)got}, error);
        }
        at += got;
    }
    wal__heap_free(blobs->env->heap, piece);
    return status;
}

enum wal_status wal__blob_copy(struct wal__blob_store *from,
                               struct wal__blob_store *to,
                               const struct wal__digest *digest,
                               struct wal__blob_put_result *result,
                               struct wal_error *error)
{
    struct wal__blob_reader *reader = NULL;
    struct wal__blob_writer *writer = NULL;
    struct wal__digest copied;
    uint64_t size;
    enum wal_status status =
        wal__blob_reader_create(from, digest, &reader, error);

    if (status == WAL_OK) {
        status = wal__blob_writer_create(to, NULL, WAL__BLOB_OF_RECORDS,
                                         &writer, error);
    }
    if (status == WAL_OK) {
        status = copy_pieces(to, reader, writer, error);
    }
    if (status == WAL_OK) {
        status = wal__blob_writer_finish(writer, &copied, &size, result, error);
    }
    if (status == WAL_OK && !wal__digest_equal(&copied, digest)) {
        status = wal__fail(error, WAL_ECORRUPT,
                           "content has another SHA-256 than its record says");
    }
    wal__blob_writer_destroy(writer);
    wal__blob_reader_destroy(reader);
    return status;
}

enum wal_status wal__blob_claim(struct wal__blob_store *blobs,
                                const struct wal__digest *digest,
                                uint64_t *size, uint64_t *end,
                                struct wal_error *error)
{
    struct wal__blob_put_result result = {0};
    uint64_t found = 0;
    enum wal_status status = wal__blob_find_end(blobs, digest, &found, error);

    if (status == WAL_OK) {
        status = wal__blob_stat(blobs, digest, size, end, error);
    }
    if (status == WAL_OK && found == 0) {
        status = wal__blob_copy(blobs, blobs, digest, &result, error);
        *end = result.end;
    }
    return status;
}
