/*
 * blob_writer.c - putting content of any size: in pieces as it comes, or whole
 * from memory (SPEC.md 5.12). What is above 1 MiB is written chunk by chunk,
 * and its list last: content that was begun and not finished is found by
 * nobody, and its chunks serve whoever puts the same bytes later.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blobs_parts.h"

struct wal__blob_writer {
    struct wal__blobs *blobs;
    struct wal__digesting whole;
    struct wal__buf bases;   /* digests of the base's chunks */
    struct wal__buf chunks;  /* digests of those that were written */
    struct wal__buf pending; /* the chunk that grows */
    uint64_t size;
    struct wal__blob_cost cost;
    enum wal_status status; /* after a failure there is no going on */
};

static enum wal_status no_memory(struct wal_error *error)
{
    return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
}

enum wal_status wal__blob_writer_create(struct wal__blobs *blobs,
                                        const struct wal__digest *base,
                                        struct wal__blob_writer **writer,
                                        struct wal_error *error)
{
    const struct wal__heap *heap = blobs->env->heap;
    struct wal__blob_writer *made = wal__heap_zalloc(heap, sizeof(*made));
    enum wal_status status;
    uint64_t size;

    if (made == NULL) {
        return no_memory(error);
    }
    made->blobs = blobs;
    wal__buf_init(&made->bases, heap);
    wal__buf_init(&made->chunks, heap);
    wal__buf_init(&made->pending, heap);
    status = wal__digesting_begin(&blobs->digester, &made->whole);
    if (status == WAL_OK && base != NULL) {
        /* A base that cannot be had is none. */
        status = wal__blob_chunks(blobs, base, &made->bases, &size, NULL);
        status = status == WAL_ENOMEM ? status : WAL_OK;
    }
    if (status != WAL_OK) {
        wal__blob_writer_destroy(made);
        return no_memory(error);
    }
    *writer = made;
    return WAL_OK;
}

void wal__blob_writer_destroy(struct wal__blob_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    wal__digesting_deinit(&writer->whole);
    wal__buf_deinit(&writer->bases);
    wal__buf_deinit(&writer->chunks);
    wal__buf_deinit(&writer->pending);
    wal__heap_free(writer->blobs->env->heap, writer);
}

/* The base's chunk of this number, or null. */
static const struct wal__digest *base_of(const struct wal__blob_writer *writer,
                                         size_t number,
                                         struct wal__digest *digest)
{
    if ((number + 1) * WAL__DIGEST_SIZE > writer->bases.size) {
        return NULL;
    }
    memcpy(digest->bytes, writer->bases.data + number * WAL__DIGEST_SIZE,
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
        return wal__fail(error, WAL_ETOOBIG, 0, NULL, 0,
                         "content may have %d chunks of 1 MiB",
                         (int)WAL__BLOB_CHUNKS_MAX);
    }
    status =
        wal__chunk_prepare(writer->blobs, content,
                           base_of(writer, number, &base), &prepared, error);
    if (status != WAL_OK) {
        return status;
    }
    *digest = prepared.digest;
    status =
        wal__blobs_write(writer->blobs, &prepared, 1, &writer->cost, error);
    wal__blob_prepared_deinit(&prepared);
    if (status == WAL_OK && wal__buf_append(&writer->chunks, digest->bytes,
                                            WAL__DIGEST_SIZE) != WAL_OK) {
        status = no_memory(error);
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

static enum wal_status add(struct wal__blob_writer *writer,
                           struct wal__span piece, struct wal_error *error)
{
    enum wal_status status = wal__digesting_add(&writer->whole, piece);

    if (status != WAL_OK) {
        return no_memory(error);
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
            return no_memory(error);
        }
        piece.data += part;
        piece.size -= part;
    }
    return status;
}

enum wal_status wal__blob_writer_add(struct wal__blob_writer *writer,
                                     struct wal__span piece,
                                     struct wal_error *error)
{
    if (writer->status != WAL_OK) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the writer has failed, or was finished");
    }
    writer->status = add(writer, piece, error);
    return writer->status;
}

/* The list of the chunks, which are there. */
static enum wal_status put_list(struct wal__blob_writer *writer,
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
        wal__blob_prepare_list(writer->blobs, &blob, &prepared, error);

    if (status == WAL_OK) {
        status =
            wal__blobs_write(writer->blobs, &prepared, 1, &writer->cost, error);
        wal__blob_prepared_deinit(&prepared);
    }
    return status;
}

/* Adds what putting did: chunks are no contents of their own. */
static void add_cost(const struct wal__blob_writer *writer,
                     uint64_t blobs_before, struct wal__blob_cost *cost)
{
    cost->new_blobs += writer->cost.new_blobs - blobs_before;
    cost->new_bytes += writer->cost.new_bytes;
    if (writer->cost.end > cost->end) {
        cost->end = writer->cost.end;
    }
}

static enum wal_status finish(struct wal__blob_writer *writer,
                              struct wal__digest *digest,
                              struct wal__blob_cost *cost,
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
        before = writer->cost.new_blobs;
        status = wal__digesting_end(&writer->whole, &whole);
        if (status != WAL_OK) {
            return no_memory(error);
        }
        status = put_list(writer, &whole, error);
    }
    if (status == WAL_OK) {
        add_cost(writer, before, cost);
        *digest = whole;
    }
    return status;
}

enum wal_status wal__blob_writer_finish(struct wal__blob_writer *writer,
                                        struct wal__digest *digest,
                                        uint64_t *size,
                                        struct wal__blob_cost *cost,
                                        struct wal_error *error)
{
    enum wal_status status;

    if (writer->status != WAL_OK) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the writer has failed, or was finished");
    }
    status = finish(writer, digest, cost, error);
    writer->status = WAL_EINVAL;
    if (status == WAL_OK) {
        *size = writer->size;
    }
    return status;
}

/* Content of one chunk. */
static enum wal_status
put_small(struct wal__blobs *blobs, struct wal__span content,
          const struct wal__digest *base, struct wal__digest *digest,
          struct wal__blob_cost *cost, struct wal_error *error)
{
    struct wal__blob_prepared prepared;
    enum wal_status status =
        wal__blob_prepare(blobs, content, base, &prepared, error);

    if (status == WAL_OK) {
        status = wal__blobs_write(blobs, &prepared, 1, cost, error);
        if (status == WAL_OK) {
            *digest = prepared.digest;
        }
        wal__blob_prepared_deinit(&prepared);
    }
    return status;
}

/* Whether the whole is there already: then nothing else is done. */
static enum wal_status find_whole(struct wal__blobs *blobs,
                                  struct wal__span content,
                                  struct wal__digest *digest,
                                  struct wal__blob_cost *cost, bool *there,
                                  struct wal_error *error)
{
    uint64_t position = 0;
    enum wal_status status;

    if (wal__digest_of(&blobs->digester, content, digest) != WAL_OK) {
        return no_memory(error);
    }
    status = wal__blobs_lookup(blobs, digest, &position, error);
    *there = status == WAL_OK;
    if (*there && wal__blobs_behind(position) > cost->end) {
        cost->end = wal__blobs_behind(position);
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

enum wal_status
wal__blobs_put(struct wal__blobs *blobs, struct wal__span content,
               const struct wal__digest *base, struct wal__digest *digest,
               struct wal__blob_cost *cost, struct wal_error *error)
{
    struct wal__blob_writer *writer = NULL;
    struct wal__digest whole;
    enum wal_status status;
    uint64_t size = 0;
    bool there = false;

    if (content.size <= WAL__CHUNK_MAX) {
        return put_small(blobs, content, base, digest, cost, error);
    }
    status = find_whole(blobs, content, &whole, cost, &there, error);
    if (status != WAL_OK) {
        return status;
    }
    if (!there) {
        status = wal__blob_writer_create(blobs, base, &writer, error);
        if (status == WAL_OK) {
            status = wal__blob_writer_add(writer, content, error);
        }
        if (status == WAL_OK) {
            status =
                wal__blob_writer_finish(writer, &whole, &size, cost, error);
        }
        wal__blob_writer_destroy(writer);
    }
    if (status == WAL_OK) {
        *digest = whole;
    }
    return status;
}
