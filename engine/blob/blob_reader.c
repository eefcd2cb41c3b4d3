/*
 * blob_reader.c - reads content of any size, one chunk in memory at a time
 * (blob.h; SPEC.md 5.12). A reader belongs to one thread.
 *
 * Invariant: every byte returned is of a chunk whose digest was verified; the
 * last byte of a sequential read is returned only if the digest of the whole
 * content was verified too.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blob_store.h"
#include "engine/blob/chunk.h"
#include "format/bytes/assert.h"

#define NO_CHUNK UINT64_MAX

struct wal__blob_reader {
    struct wal__blob_store *blobs;
    struct wal__digest digest;
    uint64_t size;
    struct wal__buf chunks; /* digests */
    struct wal__buf content;
    uint64_t loaded_chunk; /* the chunk in `content`; NO_CHUNK: none */
    struct wal__sha256_ctx whole;
    /* Bytes from the start that were read sequentially and are in `whole`;
     * NO_CHUNK: the read was not sequential, or `whole` is finished. */
    uint64_t hashed_size;
};

enum wal_status wal__blob_reader_create(struct wal__blob_store *blobs,
                                        const struct wal__digest *digest,
                                        struct wal__blob_reader **reader,
                                        struct wal_error *error)
{
    struct wal__blob_reader *created =
        wal__heap_zalloc(blobs->env->heap, sizeof(*created));
    enum wal_status status;

    if (created == NULL) {
        return wal__no_memory(error);
    }
    created->blobs = blobs;
    created->digest = *digest;
    created->loaded_chunk = NO_CHUNK;
    wal__buf_init(&created->chunks, blobs->env->heap);
    wal__buf_init(&created->content, blobs->env->heap);
    status = wal__blob_list_chunks(blobs, digest, &created->chunks,
                                   &created->size, error);
    if (status != WAL_OK) {
        wal__blob_reader_destroy(created);
        return status;
    }
    *reader = created;
    return WAL_OK;
}

void wal__blob_reader_destroy(struct wal__blob_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    wal__sha256_deinit(&reader->whole);
    wal__buf_deinit(&reader->chunks);
    wal__buf_deinit(&reader->content);
    wal__heap_free(reader->blobs->env->heap, reader);
}

uint64_t wal__blob_reader_size(const struct wal__blob_reader *reader)
{
    return reader->size;
}

/* The size of a chunk: all but the last one are full. */
static uint64_t chunk_size(const struct wal__blob_reader *reader,
                           uint64_t number)
{
    WAL__ASSERT(number * WAL__CHUNK_MAX <= reader->size);

    uint64_t left = reader->size - number * WAL__CHUNK_MAX;

    return left < WAL__CHUNK_MAX ? left : WAL__CHUNK_MAX;
}

/* A chunk is missing: that is damage, unless the whole content was removed
 * since the reader was made. */
static enum wal_status fail_missing(const struct wal__blob_reader *reader,
                                    struct wal_error *error)
{
    uint64_t ignored;
    enum wal_status status =
        wal__blob_find(reader->blobs, &reader->digest, &ignored, error);

    return status == WAL_OK
               ? wal__blob_report_corrupt(reader->blobs, &reader->digest, 0,
                                          "a chunk of it is missing", error)
               : status;
}

static enum wal_status load_chunk(struct wal__blob_reader *reader,
                                  uint64_t number, struct wal_error *error)
{
    struct wal__digest digest;
    enum wal_status status;

    if (reader->loaded_chunk == number) {
        return WAL_OK;
    }
    WAL__ASSERT((number + 1) * WAL__DIGEST_SIZE <= reader->chunks.size);
    reader->loaded_chunk = NO_CHUNK;
    memcpy(digest.bytes, reader->chunks.data + number * WAL__DIGEST_SIZE,
           WAL__DIGEST_SIZE);
    status =
        wal__chunk_load(reader->blobs, &digest, &reader->content, NULL, error);
    if (status == WAL_ENOTFOUND) {
        return fail_missing(reader, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (reader->content.size != chunk_size(reader, number)) {
        return wal__blob_report_corrupt(reader->blobs, &reader->digest, 0,
                                        "a chunk of it has the wrong size",
                                        error);
    }
    reader->loaded_chunk = number;
    return WAL_OK;
}

/* Hashes a piece that continues a sequential read of several chunks, and
 * verifies the digest of the whole content at its end. */
static enum wal_status verify_content(struct wal__blob_reader *reader,
                                      uint64_t offset, struct wal__span piece,
                                      struct wal_error *error)
{
    struct wal__digest actual;
    enum wal_status status = WAL_OK;

    if (reader->size <= WAL__CHUNK_MAX || piece.size == 0) {
        return WAL_OK;
    }
    if (offset == 0) {
        status = wal__sha256_begin(&reader->blobs->sha256_alg, &reader->whole);
        reader->hashed_size = 0;
    } else if (offset != reader->hashed_size) {
        reader->hashed_size = NO_CHUNK;
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__sha256_update(&reader->whole, piece);
        reader->hashed_size += piece.size;
    }
    WAL__ASSERT(status != WAL_OK || reader->hashed_size <= reader->size);
    if (status == WAL_OK && reader->hashed_size == reader->size) {
        status = wal__sha256_final(&reader->whole, &actual);
        reader->hashed_size = NO_CHUNK;
        if (status == WAL_OK && !wal__digest_equal(&actual, &reader->digest)) {
            return wal__blob_report_corrupt(reader->blobs, &reader->digest, 0,
                                            "its SHA-256 does not match",
                                            error);
        }
    }
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
}

enum wal_status wal__blob_reader_read(struct wal__blob_reader *reader,
                                      uint64_t offset, void *data,
                                      uint64_t size, uint64_t *bytes_read,
                                      struct wal_error *error)
{
    struct wal__span piece = {data, 0};
    enum wal_status status;

    if (offset > reader->size) {
        size = 0;
    } else if (size > reader->size - offset) {
        size = reader->size - offset;
    }
    while (piece.size < size) {
        uint64_t position = offset + piece.size;
        uint64_t chunk_offset = position % WAL__CHUNK_MAX;
        uint64_t part = WAL__CHUNK_MAX - chunk_offset;

        if (part > size - piece.size) {
            part = size - piece.size;
        }
        status = load_chunk(reader, position / WAL__CHUNK_MAX, error);
        if (status != WAL_OK) {
            return status;
        }
        WAL__ASSERT(chunk_offset + part <= reader->content.size);
        memcpy((uint8_t *)data + piece.size,
               reader->content.data + chunk_offset, (size_t)part);
        piece.size += (size_t)part;
    }
    status = verify_content(reader, offset, piece, error);
    if (status != WAL_OK) {
        return status;
    }
    *bytes_read = piece.size;
    return WAL_OK;
}

enum wal_status wal__blob_load(struct wal__blob_store *blobs,
                               const struct wal__digest *digest,
                               struct wal__buf *out, struct wal_error *error)
{
    struct wal__blob_reader *reader = NULL;
    enum wal_status status;
    uint64_t bytes_read = 0;
    uint8_t *end;

    status = wal__blob_reader_create(blobs, digest, &reader, error);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__buf_reserve(out, (size_t)reader->size + 1, &end) != WAL_OK) {
        status = wal__no_memory(error);
        goto done;
    }
    status =
        wal__blob_reader_read(reader, 0, end, reader->size, &bytes_read, error);
    if (status != WAL_OK) {
        goto done;
    }
    WAL__ASSERT(bytes_read == reader->size);
    out->size += (size_t)bytes_read;
done:
    wal__blob_reader_destroy(reader);
    return status;
}
