/*
 * blob_writer.c - putting content of any size: in pieces as it comes, or whole
 * from memory (SPEC.md 5.12). What is above 1 MiB is written chunk by chunk,
 * and its list last: content that was begun and not finished is found by
 * nobody, and its chunks serve whoever puts the same bytes later.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blob_store.h"

struct wal__blob_writer {
    struct wal__blob_store *blobs;
    struct wal__sha256_ctx whole;
    struct wal__buf base_chunks; /* digests of the base's chunks */
    struct wal__buf chunks;      /* digests of those that were written */
    struct wal__buf pending;     /* the chunk that grows */
    uint64_t size;
    struct wal__blob_put_result result;
    enum wal_status status; /* after a failure there is no going on */
};

enum wal_status wal__blob_writer_create(struct wal__blob_store *blobs,
                                        const struct wal__digest *base,
                                        struct wal__blob_writer **writer,
                                        struct wal_error *error)
{
    const struct wal__heap *heap = blobs->env->heap;
    struct wal__blob_writer *created = wal__heap_zalloc(heap, sizeof(*created));
    enum wal_status status;
    uint64_t size;

    if (created == NULL) {
        return wal__no_memory(error);
    }
    created->blobs = blobs;
    wal__buf_init(&created->base_chunks, heap);
    wal__buf_init(&created->chunks, heap);
    wal__buf_init(&created->pending, heap);
    status = wal__sha256_begin(&blobs->sha256_alg, &created->whole);
    if (status == WAL_OK && base != NULL) {
        /* A base that cannot be had is none. */
        status = wal__blob_list_chunks(blobs, base, &created->base_chunks,
                                       &size, NULL);
        status = status == WAL_ENOMEM ? status : WAL_OK;
    }
    if (status != WAL_OK) {
        wal__blob_writer_destroy(created);
        return wal__no_memory(error);
    }
    *writer = created;
    return WAL_OK;
}

void wal__blob_writer_destroy(struct wal__blob_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    wal__sha256_deinit(&writer->whole);
    wal__buf_deinit(&writer->base_chunks);
    wal__buf_deinit(&writer->chunks);
    wal__buf_deinit(&writer->pending);
    wal__heap_free(writer->blobs->env->heap, writer);
}

/* The base's chunk of this number, or null. */
static const struct wal__digest *
base_chunk(const struct wal__blob_writer *writer, size_t number,
           struct wal__digest *digest)
{
    if ((number + 1) * WAL__DIGEST_SIZE > writer->base_chunks.size) {
        return NULL;
    }
    memcpy(digest->bytes, writer->base_chunks.data + number * WAL__DIGEST_SIZE,
           WAL__DIGEST_SIZE);
    return digest;
}

/* Puts the next chunk; *digest is its own. */
static enum wal_status put_chunk(struct wal__blob_writer *writer,
                                 struct wal__span content,
                                 struct wal__digest *digest,
                                 struct wal_error *error)
{
    size_t number = writer->chunks.size / WAL__DIGEST_SIZE;
    struct wal__blob_prepared prepared;
    struct wal__digest base;
    enum wal_status status;

    if (number == WAL__BLOB_CHUNKS_MAX) {
        return wal__fail(error, WAL_ETOOBIG,
                         "content may have %d chunks of 1 MiB",
                         (int)WAL__BLOB_CHUNKS_MAX);
    }
    status =
        wal__chunk_prepare(writer->blobs, content,
                           base_chunk(writer, number, &base), &prepared, error);
    if (status != WAL_OK) {
        return status;
    }
    *digest = prepared.digest;
    status =
        wal__pack_append(writer->blobs, &prepared, 1, &writer->result, error);
    wal__blob_prepared_deinit(&prepared);
    if (status == WAL_OK && wal__buf_append(&writer->chunks, digest->bytes,
                                            WAL__DIGEST_SIZE) != WAL_OK) {
        status = wal__no_memory(error);
    }
    return status;
}

static enum wal_status flush(struct wal__blob_writer *writer,
                             struct wal_error *error)
{
    struct wal__span content = {writer->pending.data, writer->pending.size};
    struct wal__digest digest;
    enum wal_status status = put_chunk(writer, content, &digest, error);

    writer->pending.size = 0;
    return status;
}

static enum wal_status append(struct wal__blob_writer *writer,
                              struct wal__span piece, struct wal_error *error)
{
    enum wal_status status = wal__sha256_update(&writer->whole, piece);

    if (status != WAL_OK) {
        return wal__no_memory(error);
    }
    writer->size += piece.size;
    while (piece.size > 0 && status == WAL_OK) {
        size_t part = WAL__CHUNK_MAX - writer->pending.size;

        if (part == 0) {
            /* More comes, so that the content has more than one chunk. */
            status = flush(writer, error);
            continue;
        }
        part = part < piece.size ? part : piece.size;
        if (wal__buf_append(&writer->pending, piece.data, part) != WAL_OK) {
            return wal__no_memory(error);
        }
        piece.data += part;
        piece.size -= part;
    }
    return status;
}

enum wal_status wal__blob_writer_append(struct wal__blob_writer *writer,
                                        struct wal__span piece,
                                        struct wal_error *error)
{
    if (writer->status != WAL_OK) {
        return wal__invalid(error, "the writer has failed, or was finished");
    }
    writer->status = append(writer, piece, error);
    return writer->status;
}

/* The list of the chunks, which are there. */
static enum wal_status put_chunk_list(struct wal__blob_writer *writer,
                                      const struct wal__digest *digest,
                                      struct wal_error *error)
{
    struct wal__blob_record blob = {
        .digest = *digest,
        .size = writer->size,
        .chunk_count = (uint32_t)(writer->chunks.size / WAL__DIGEST_SIZE),
        .chunks = writer->chunks.data};
    struct wal__blob_prepared prepared;
    enum wal_status status =
        wal__blob_prepare_chunk_list(writer->blobs, &blob, &prepared, error);

    if (status == WAL_OK) {
        status = wal__pack_append(writer->blobs, &prepared, 1, &writer->result,
                                  error);
        wal__blob_prepared_deinit(&prepared);
    }
    return status;
}

/* Adds what putting did: chunks are no contents of their own. */
static void add_result(const struct wal__blob_writer *writer,
                       uint64_t blobs_before,
                       struct wal__blob_put_result *result)
{
    result->new_blobs += writer->result.new_blobs - blobs_before;
    result->new_bytes += writer->result.new_bytes;
    if (writer->result.end > result->end) {
        result->end = writer->result.end;
    }
}

static enum wal_status finish(struct wal__blob_writer *writer,
                              struct wal__digest *digest,
                              struct wal__blob_put_result *result,
                              struct wal_error *error)
{
    struct wal__span rest = {writer->pending.data, writer->pending.size};
    bool single = writer->size <= WAL__CHUNK_MAX;
    struct wal__digest whole;
    enum wal_status status = WAL_OK;
    uint64_t before = 0;

    if (single || rest.size > 0) {
        status = put_chunk(writer, rest, &whole, error);
    }
    if (status == WAL_OK && !single) {
        before = writer->result.new_blobs;
        status = wal__sha256_final(&writer->whole, &whole);
        if (status != WAL_OK) {
            return wal__no_memory(error);
        }
        status = put_chunk_list(writer, &whole, error);
    }
    if (status == WAL_OK) {
        add_result(writer, before, result);
        *digest = whole;
    }
    return status;
}

enum wal_status wal__blob_writer_finish(struct wal__blob_writer *writer,
                                        struct wal__digest *digest,
                                        uint64_t *size,
                                        struct wal__blob_put_result *result,
                                        struct wal_error *error)
{
    enum wal_status status;

    if (writer->status != WAL_OK) {
        return wal__invalid(error, "the writer has failed, or was finished");
    }
    status = finish(writer, digest, result, error);
    writer->status = WAL_EINVAL;
    if (status == WAL_OK) {
        *size = writer->size;
    }
    return status;
}

/* Content of one chunk. */
static enum wal_status
put_one_chunk(struct wal__blob_store *blobs, struct wal__span content,
              const struct wal__digest *base, struct wal__digest *digest,
              struct wal__blob_put_result *result, struct wal_error *error)
{
    struct wal__blob_prepared prepared;
    enum wal_status status =
        wal__blob_prepare(blobs, content, base, &prepared, error);

    if (status == WAL_OK) {
        status = wal__pack_append(blobs, &prepared, 1, result, error);
        if (status == WAL_OK) {
            *digest = prepared.digest;
        }
        wal__blob_prepared_deinit(&prepared);
    }
    return status;
}

/* Whether the whole is there already: then nothing else is done. */
static enum wal_status find_content(struct wal__blob_store *blobs,
                                    struct wal__span content,
                                    struct wal__digest *digest,
                                    struct wal__blob_put_result *result,
                                    bool *there, struct wal_error *error)
{
    uint64_t position = 0;
    enum wal_status status;

    if (wal__sha256(&blobs->sha256_alg, content, digest) != WAL_OK) {
        return wal__no_memory(error);
    }
    status = wal__blob_find(blobs, digest, &position, error);
    *there = status == WAL_OK;
    if (*there && wal__blob_sync_end(position) > result->end) {
        result->end = wal__blob_sync_end(position);
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

enum wal_status
wal__blob_put(struct wal__blob_store *blobs, struct wal__span content,
              const struct wal__digest *base, struct wal__digest *digest,
              struct wal__blob_put_result *result, struct wal_error *error)
{
    struct wal__blob_writer *writer = NULL;
    struct wal__digest whole;
    enum wal_status status;
    uint64_t size = 0;
    bool there = false;

    if (content.size <= WAL__CHUNK_MAX) {
        return put_one_chunk(blobs, content, base, digest, result, error);
    }
    status = find_content(blobs, content, &whole, result, &there, error);
    if (status != WAL_OK) {
        return status;
    }
    if (!there) {
        status = wal__blob_writer_create(blobs, base, &writer, error);
        if (status == WAL_OK) {
            status = wal__blob_writer_append(writer, content, error);
        }
        if (status == WAL_OK) {
            status =
                wal__blob_writer_finish(writer, &whole, &size, result, error);
        }
        wal__blob_writer_destroy(writer);
    }
    if (status == WAL_OK) {
        *digest = whole;
    }
    return status;
}
