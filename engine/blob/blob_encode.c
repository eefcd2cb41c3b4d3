/*
 * blob_encode.c - encodes content as records that are ready to be written:
 * digest, look-up, compression (chunk.h; SPEC.md 2.18, 5.12). Any thread; no
 * lock is held while it hashes and compresses.
 *
 * Invariant: content that is stored already is neither compressed nor copied.
 */
#include <lz4.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blob_store.h"
#include "engine/blob/chunk.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

enum {
    LZ4_SAVING_DIVISOR = 16, /* LZ4 must save 1/16 of the content */
    DELTA_SAVING_DIVISOR = 5 /* a delta must save 1/5 of the plain encoding */
};

/* Sets the frame's header and padding around a payload of `size` bytes that is
 * in place. */
static void finish_frame(struct wal__blob_prepared *out, uint8_t type,
                         enum wal__blob_owner owner, size_t size)
{
    uint64_t span = wal__frame_total_size((uint32_t)size);
    uint8_t *payload = out->frame.data + WAL__FRAME_SIZE;

    WAL__ASSERT(span >= WAL__FRAME_SIZE + size && span <= out->frame.capacity);
    memset(out->frame.data, 0, WAL__FRAME_SIZE);
    memset(payload + size, 0, (size_t)span - WAL__FRAME_SIZE - size);
    out->frame.size = (size_t)span;
    memset(&out->header, 0, sizeof(out->header));
    out->header.type = type;
    out->header.kind = (uint8_t)owner;
    out->header.stored_size = (uint32_t)size;
    out->header.raw_size = (uint32_t)size;
    out->header.id_hash = wal__digest_hash(&out->digest);
    out->header.data_crc = wal__crc32(0, payload, size);
}

/* Encodes content raw, or by LZ4 if that saves enough, after the chunk's head
 * in payload[]; sets encoding and data of the chunk. */
static void encode_plain(struct wal__span content,
                         struct wal__chunk_record *chunk, uint8_t *payload)
{
    int limit = (int)(content.size - content.size / LZ4_SAVING_DIVISOR) - 1;
    uint8_t *data;
    int compressed_size = 0;

    chunk->data = content;
    chunk->encoding = WAL__CHUNK_LZ4;
    data = payload + wal__chunk_record_size(chunk) - content.size;
    if (limit > 0) {
        compressed_size = LZ4_compress_default(
            (const char *)content.data, (char *)data, (int)content.size, limit);
    }
    if (compressed_size > 0) {
        WAL__ASSERT(compressed_size <= limit);
        chunk->data.data = data;
        chunk->data.size = (size_t)compressed_size;
        return;
    }
    chunk->encoding = WAL__CHUNK_RAW;
    if (content.size > 0) {
        memcpy(data, content.data, content.size);
    }
}

/* Replaces the plain encoding by a delta of the base if that saves enough. A
 * base that cannot be read, or may be dropped, counts as none. */
static enum wal_status encode_delta(struct wal__blob_store *blobs,
                                    struct wal__span content,
                                    const struct wal__digest *base,
                                    struct wal__chunk_record *chunk,
                                    uint8_t *payload)
{
    size_t limit =
        chunk->data.size -
        (chunk->data.size + DELTA_SAVING_DIVISOR - 1) / DELTA_SAVING_DIVISOR;
    struct wal__buf base_content;
    struct wal__buf delta;
    struct wal__span span;
    enum wal_status status;
    uint64_t end = 0;
    uint8_t depth = 0;

    wal__buf_init(&base_content, blobs->env->heap);
    wal__buf_init(&delta, blobs->env->heap);
    status = wal__blob_find_end(blobs, base, &end, NULL);
    if (status == WAL_OK && end != 0) {
        status = wal__chunk_load(blobs, base, &base_content, &depth, NULL);
    }
    if (status != WAL_OK || end == 0 || depth >= WAL__CHUNK_DEPTH_MAX) {
        goto done;
    }
    span.data = base_content.data;
    span.size = base_content.size;
    status = wal__delta_encode(blobs->env->heap, content, span, limit, &delta);
    if (status != WAL_OK || delta.size == 0) {
        goto done;
    }
    WAL__ASSERT(delta.size <= limit && limit <= chunk->data.size);
    chunk->encoding = WAL__CHUNK_DELTA;
    chunk->depth = (uint8_t)(depth + 1);
    chunk->base = *base;
    chunk->data.size = delta.size;
    memcpy(payload + wal__chunk_record_size(chunk) - delta.size, delta.data,
           delta.size);
done:
    wal__buf_deinit(&base_content);
    wal__buf_deinit(&delta);
    return status == WAL_ENOMEM ? status : WAL_OK;
}

static enum wal_status encode_chunk(struct wal__blob_store *blobs,
                                    struct wal__span content,
                                    const struct wal__digest *base,
                                    enum wal__blob_owner owner,
                                    struct wal__blob_prepared *out)
{
    struct wal__chunk_record chunk = {.digest = out->digest,
                                      .size = (uint32_t)content.size};
    enum wal_status status;
    uint8_t *payload;

    WAL__ASSERT(content.size <= WAL__CHUNK_MAX && out->frame.size == 0);
    /* Room for the longest head, that of a delta, and for padding. */
    chunk.encoding = WAL__CHUNK_DELTA;
    chunk.data = content;
    status = wal__buf_reserve(
        &out->frame, WAL__FRAME_SIZE + wal__chunk_record_size(&chunk) + 8,
        &payload);
    if (status != WAL_OK) {
        return status;
    }
    payload += WAL__FRAME_SIZE;
    encode_plain(content, &chunk, payload);
    if (base != NULL && content.size > 0) {
        status = encode_delta(blobs, content, base, &chunk, payload);
        if (status != WAL_OK) {
            return status;
        }
    }
    (void)wal__chunk_record_encode_head(&chunk, payload);
    finish_frame(out, WAL__FRAME_CHUNK, owner, wal__chunk_record_size(&chunk));
    return WAL_OK;
}

enum wal_status wal__chunk_encode_plain(struct wal__blob_store *blobs,
                                        struct wal__span content,
                                        enum wal__blob_owner owner,
                                        struct wal__blob_prepared *out)
{
    return encode_chunk(blobs, content, NULL, owner, out);
}

/* Sets out->end if the content is stored, can be read, and is kept as long as
 * the owner needs it; or out->unusable_position if it is stored otherwise. A
 * caller's content that is stored again stays the caller's. Where content is
 * written nowhere all of it passes for stored. */
static enum wal_status find_existing(struct wal__blob_store *blobs,
                                     enum wal__blob_owner *owner,
                                     struct wal__blob_prepared *out,
                                     struct wal_error *error)
{
    uint64_t condemned = wal__blob_condemned_end(blobs);
    enum wal__blob_owner found = WAL__BLOB_OF_CALLER;
    uint64_t position = 0;
    enum wal_status status;

    if (blobs->env->io->forgets) {
        out->end = 1;
        return WAL_OK;
    }
    status = wal__blob_verify(blobs, &out->digest, &position, &found, error);

    if (status == WAL_OK && position > condemned &&
        (found == *owner || found == WAL__BLOB_OF_CALLER)) {
        out->end = wal__blob_sync_end(position);
    } else if (status == WAL_OK || status == WAL_ECORRUPT ||
               status == WAL_EIO) {
        out->unusable_position = position;
        *owner = found == WAL__BLOB_OF_CALLER ? found : *owner;
        status = WAL_OK;
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

enum wal_status
wal__chunk_prepare(struct wal__blob_store *blobs, struct wal__span content,
                   const struct wal__digest *base, enum wal__blob_owner owner,
                   struct wal__blob_prepared *out, struct wal_error *error)
{
    struct wal__blob_prepared prepared = {.size = content.size};
    enum wal_status status;

    wal__buf_init(&prepared.frame, blobs->env->heap);
    if (wal__sha256(&blobs->sha256_alg, content, &prepared.digest) != WAL_OK) {
        return wal__no_memory(error);
    }
    status = find_existing(blobs, &owner, &prepared, error);
    if (status == WAL_OK && prepared.end == 0 &&
        encode_chunk(blobs, content, base, owner, &prepared) != WAL_OK) {
        status = wal__no_memory(error);
    }
    if (status != WAL_OK) {
        wal__blob_prepared_deinit(&prepared);
        return status;
    }
    WAL__ASSERT((prepared.end == 0) == (prepared.frame.size > 0));
    *out = prepared;
    return WAL_OK;
}

enum wal_status
wal__blob_prepare(struct wal__blob_store *blobs, struct wal__span content,
                  const struct wal__digest *base, enum wal__blob_owner owner,
                  struct wal__blob_prepared *out, struct wal_error *error)
{
    struct wal__digest first;
    struct wal__buf chunks;
    enum wal_status status;
    uint64_t size;

    if (base == NULL) {
        return wal__chunk_prepare(blobs, content, NULL, owner, out, error);
    }
    wal__buf_init(&chunks, blobs->env->heap);
    status = wal__blob_list_chunks(blobs, base, &chunks, &size, NULL);
    if (status == WAL_OK) {
        WAL__ASSERT(chunks.size >= WAL__DIGEST_SIZE);
        memcpy(first.bytes, chunks.data, WAL__DIGEST_SIZE);
    }
    wal__buf_deinit(&chunks);
    if (status == WAL_ENOMEM) {
        return wal__no_memory(error);
    }
    return wal__chunk_prepare(blobs, content, status == WAL_OK ? &first : NULL,
                              owner, out, error);
}

enum wal_status wal__blob_prepare_chunk_list(
    struct wal__blob_store *blobs, const struct wal__blob_record *blob,
    enum wal__blob_owner owner, struct wal__blob_prepared *out,
    struct wal_error *error)
{
    struct wal__blob_prepared prepared = {.digest = blob->digest,
                                          .size = blob->size};
    size_t size = wal__blob_record_size(blob);
    enum wal_status status = find_existing(blobs, &owner, &prepared, error);
    uint8_t *frame;

    WAL__ASSERT(blob->chunk_count > 1 &&
                blob->chunk_count <= WAL__BLOB_CHUNKS_MAX);
    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&prepared.frame, blobs->env->heap);
    if (prepared.end == 0) {
        if (wal__buf_reserve(&prepared.frame, WAL__FRAME_SIZE + size + 8,
                             &frame) != WAL_OK) {
            return wal__no_memory(error);
        }
        wal__blob_record_encode(blob, frame + WAL__FRAME_SIZE);
        finish_frame(&prepared, WAL__FRAME_BLOB, owner, size);
    }
    *out = prepared;
    return WAL_OK;
}

void wal__blob_prepared_deinit(struct wal__blob_prepared *prepared)
{
    if (prepared->frame.heap != NULL) {
        wal__buf_deinit(&prepared->frame);
    }
}
