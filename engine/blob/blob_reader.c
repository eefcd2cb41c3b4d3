/*
 * blob_reader.c - reading content of any size, a chunk in memory at a time
 * (SPEC.md 5.12).
 *
 * Invariant: every byte that is given is of a chunk whose digest held; the
 * last one of a whole reading also of a whole whose digest held.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blob_store.h"

#define NO_CHUNK UINT64_MAX

struct wal__blob_reader {
    struct wal__blob_store *blobs;
    struct wal__digest digest;
    uint64_t size;
    struct wal__buf chunks; /* digests */
    struct wal__buf content;
    uint64_t loaded_chunk; /* which chunk the content is; NO_CHUNK: none */
    struct wal__sha256_ctx whole;
    /* bytes from the beginning, read one after the other */
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

/* Bytes of the content in the chunk. */
static uint64_t chunk_size(const struct wal__blob_reader *reader,
                           uint64_t number)
{
    uint64_t left = reader->size - number * WAL__CHUNK_MAX;

    return left < WAL__CHUNK_MAX ? left : WAL__CHUNK_MAX;
}

static enum wal_status load_chunk(struct wal__blob_reader *reader,
                                  uint64_t number, struct wal_error *error)
{
    struct wal__digest digest;
    enum wal_status status;

    if (reader->loaded_chunk == number) {
        return WAL_OK;
    }
    reader->loaded_chunk = NO_CHUNK;
    memcpy(digest.bytes, reader->chunks.data + number * WAL__DIGEST_SIZE,
           WAL__DIGEST_SIZE);
    status =
        wal__chunk_load(reader->blobs, &digest, &reader->content, NULL, error);
    if (status == WAL_ENOTFOUND) {
        return wal__blob_report_corrupt(reader->blobs, &reader->digest, 0,
                                        "a chunk of it is missing", error);
    }
    if (status == WAL_OK &&
        reader->content.size != chunk_size(reader, number)) {
        return wal__blob_report_corrupt(reader->blobs, &reader->digest, 0,
                                        "a chunk of it has another size",
                                        error);
    }
    if (status == WAL_OK) {
        reader->loaded_chunk = number;
    }
    return status;
}

/* What was read goes on from what was read before: the digest of the whole is
 * created on the way, of content of several chunks. */
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
    if (status == WAL_OK && reader->hashed_size == reader->size) {
        status = wal__sha256_final(&reader->whole, &actual);
        reader->hashed_size = NO_CHUNK;
        if (status == WAL_OK && !wal__digest_equal(&actual, &reader->digest)) {
            return wal__blob_report_corrupt(reader->blobs, &reader->digest, 0,
                                            "its SHA-256 is another", error);
        }
    }
    return status == WAL_OK ? WAL_OK : wal__fail(error, status, "no memory");
}

enum wal_status wal__blob_reader_read(struct wal__blob_reader *reader,
                                      uint64_t offset, void *data,
                                      uint64_t size, uint64_t *got,
                                      struct wal_error *error)
{
    struct wal__span given = {data, 0};
    enum wal_status status = WAL_OK;

    if (offset > reader->size) {
        size = 0;
    } else if (size > reader->size - offset) {
        size = reader->size - offset;
    }
    while (given.size < size && status == WAL_OK) {
        uint64_t at = offset + given.size;
        uint64_t chunk_offset = at % WAL__CHUNK_MAX;
        uint64_t part = WAL__CHUNK_MAX - chunk_offset;

        if (part > size - given.size) {
            part = size - given.size;
        }
        status = load_chunk(reader, at / WAL__CHUNK_MAX, error);
        if (status == WAL_OK) {
            memcpy((uint8_t *)data + given.size,
                   reader->content.data + chunk_offset, (size_t)part);
            given.size += (size_t)part;
        }
    }
    if (status == WAL_OK) {
        status = verify_content(reader, offset, given, error);
    }
    if (status == WAL_OK) {
        *got = given.size;
    }
    return status;
}

enum wal_status wal__blob_load(struct wal__blob_store *blobs,
                               const struct wal__digest *digest,
                               struct wal__buf *out, struct wal_error *error)
{
    struct wal__blob_reader *reader = NULL;
    enum wal_status status;
    uint64_t got = 0;
    uint8_t *at;

    status = wal__blob_reader_create(blobs, digest, &reader, error);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__buf_reserve(out, (size_t)reader->size + 1, &at) != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        status =
            wal__blob_reader_read(reader, 0, at, reader->size, &got, error);
    }
    if (status == WAL_OK) {
        out->size += (size_t)got;
    }
    wal__blob_reader_destroy(reader);
    return status;
}
