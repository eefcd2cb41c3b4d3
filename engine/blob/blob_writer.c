/*
 * blob_writer.c - puts content of any size: piece by piece, or whole from
 * memory (blob.h; SPEC.md 5.12). A writer belongs to one thread.
 *
 * Invariant: content above 1 MiB is written chunk by chunk and its chunk list
 * last, so that unfinished content is never found. Its chunks are reused when
 * the same bytes are put later.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blob_store.h"
#include "engine/blob/chunk.h"
#include "format/bytes/assert.h"

struct wal__blob_writer {
    struct wal__blob_store *blobs;
    enum wal__blob_owner owner;
    struct wal__sha256_ctx whole;
    struct wal__buf base_chunks; /* digests of the base's chunks */
    struct wal__buf chunks;      /* digests of the chunks written */
    struct wal__buf pending;     /* the last chunk, not written yet */
    uint64_t size;               /* of the content so far */
    struct wal__blob_put_result result;
    enum wal_status status; /* not WAL_OK: failed or finished */
};

enum wal_status wal__blob_writer_create(struct wal__blob_store *blobs,
                                        const struct wal__digest *base,
                                        enum wal__blob_owner owner,
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
    created->owner = owner;
    wal__buf_init(&created->base_chunks, heap);
    wal__buf_init(&created->chunks, heap);
    wal__buf_init(&created->pending, heap);
    status = wal__sha256_begin(&blobs->sha256_alg, &created->whole);
    if (status == WAL_OK && base != NULL) {
        /* A base that cannot be read counts as none. */
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

/* The digest of the base's chunk with this number, or null. */
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

/* Puts the next chunk; *digest is the chunk's. */
static enum wal_status put_chunk(struct wal__blob_writer *writer,
                                 struct wal__span content,
                                 enum wal__blob_owner owner,
                                 struct wal__digest *digest,
                                 struct wal_error *error)
{
    size_t number = writer->chunks.size / WAL__DIGEST_SIZE;
    struct wal__blob_prepared prepared;
    struct wal__digest base;
    enum wal_status status;

    WAL__ASSERT(content.size <= WAL__CHUNK_MAX);
    WAL__ASSERT(number <= WAL__BLOB_CHUNKS_MAX);
    if (number == WAL__BLOB_CHUNKS_MAX) {
        return wal__fail(error, WAL_ETOOBIG,
                         "the content is larger than %d chunks of 1 MiB",
                         (int)WAL__BLOB_CHUNKS_MAX);
    }
    status = wal__chunk_prepare(writer->blobs, content,
                                base_chunk(writer, number, &base), owner,
                                &prepared, error);
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
    enum wal_status status =
        put_chunk(writer, content, WAL__BLOB_OF_RECORDS, &digest, error);

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

        WAL__ASSERT(writer->pending.size <= WAL__CHUNK_MAX);
        if (part == 0) {
            /* The piece has more bytes, so that this chunk is not the only
             * one. */
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
        return wal__invalid(error, "the blob writer has failed or is finished; "
                                   "create another one");
    }
    writer->status = append(writer, piece, error);
    return writer->status;
}

/* Puts the list of the chunks, which are written. */
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
    enum wal_status status;

    WAL__ASSERT(writer->chunks.size % WAL__DIGEST_SIZE == 0);
    WAL__ASSERT(blob.chunk_count == (blob.size - 1) / WAL__CHUNK_MAX + 1);
    status = wal__blob_prepare_chunk_list(writer->blobs, &blob, writer->owner,
                                          &prepared, error);
    if (status != WAL_OK) {
        return status;
    }
    status =
        wal__pack_append(writer->blobs, &prepared, 1, &writer->result, error);
    wal__blob_prepared_deinit(&prepared);
    return status;
}

/* Adds the writer's result: its chunks do not count as contents, so new_blobs
 * before the chunk list is subtracted. */
static void add_result(const struct wal__blob_writer *writer,
                       uint64_t blobs_before,
                       struct wal__blob_put_result *result)
{
    WAL__ASSERT(writer->result.new_blobs >= blobs_before);
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
        status = put_chunk(writer, rest,
                           single ? writer->owner : WAL__BLOB_OF_RECORDS,
                           &whole, error);
    }
    if (status == WAL_OK && !single) {
        before = writer->result.new_blobs;
        if (wal__sha256_final(&writer->whole, &whole) != WAL_OK) {
            return wal__no_memory(error);
        }
        status = put_chunk_list(writer, &whole, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    add_result(writer, before, result);
    *digest = whole;
    return WAL_OK;
}

enum wal_status wal__blob_writer_finish(struct wal__blob_writer *writer,
                                        struct wal__digest *digest,
                                        uint64_t *size,
                                        struct wal__blob_put_result *result,
                                        struct wal_error *error)
{
    enum wal_status status;

    if (writer->status != WAL_OK) {
        return wal__invalid(error, "the blob writer has failed or is finished; "
                                   "create another one");
    }
    status = finish(writer, digest, result, error);
    writer->status = WAL_EINVAL;
    if (status == WAL_OK) {
        *size = writer->size;
    }
    return status;
}

/* Puts content of one chunk. */
static enum wal_status
put_one_chunk(struct wal__blob_store *blobs, struct wal__span content,
              const struct wal__digest *base, enum wal__blob_owner owner,
              struct wal__digest *digest, struct wal__blob_put_result *result,
              struct wal_error *error)
{
    struct wal__blob_prepared prepared;
    enum wal_status status =
        wal__blob_prepare(blobs, content, base, owner, &prepared, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__pack_append(blobs, &prepared, 1, result, error);
    if (status == WAL_OK) {
        *digest = prepared.digest;
    }
    wal__blob_prepared_deinit(&prepared);
    return status;
}

enum wal_status
wal__blob_put(struct wal__blob_store *blobs, struct wal__span content,
              const struct wal__digest *base, enum wal__blob_owner owner,
              struct wal__digest *digest, struct wal__blob_put_result *result,
              struct wal_error *error)
{
    struct wal__blob_writer *writer = NULL;
    enum wal_status status;
    uint64_t size = 0;

    if (content.size <= WAL__CHUNK_MAX) {
        return put_one_chunk(blobs, content, base, owner, digest, result,
                             error);
    }
    status = wal__blob_writer_create(blobs, base, owner, &writer, error);
    if (status == WAL_OK) {
        status = wal__blob_writer_append(writer, content, error);
    }
    if (status == WAL_OK) {
        status = wal__blob_writer_finish(writer, digest, &size, result, error);
        WAL__ASSERT(status != WAL_OK || size == content.size);
    }
    wal__blob_writer_destroy(writer);
    return status;
}
