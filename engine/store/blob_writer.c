/*
 * blob_writer.c - encodes content as records, and puts content of any size: piece by piece, whole
 * from memory, or from what is stored already, here or in another store (blob.h; SPEC.md 2.18,
 * 5.12).
 *
 * A chunk is stored raw, compressed by LZ4, or as a delta of another one: LZ4 blocks whose
 * dictionary is a window of that, which format/segment/record_blob.c decodes. Content above 1 MiB
 * is written chunk by chunk and its chunk list last, so that unfinished content is never found. Its
 * chunks are reused when the same bytes are put later.
 *
 * Any thread; a writer belongs to one at a time. No lock is held while content is hashed and
 * compressed. The caller holds a content guard until a record names what it has put.
 *
 * Invariant: content that is stored already is neither compressed nor copied, unless a compaction
 * may drop it.
 */
#include <lz4.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/blob_store.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

/* --- deltas ------------------------------------------------------------- */

enum {
    /* Bytes of a window before the block's position: with a block of 32 KiB, 16 KiB on either side
     * are in reach of LZ4, which looks back 64 KiB. */
    WINDOW_LEAD = 16 * 1024
};

/* The working memory of one chunk; too large for the stack. */
struct delta {
    LZ4_stream_t stream;
    char compressed[2][LZ4_COMPRESSBOUND(WAL__CHUNK_BLOCK)];
};

/* The start of the window around a position of the base; WAL__CHUNK_MAX, an empty window, if the
 * base cannot have the position. */
static int32_t window_begin(int64_t position)
{
    int64_t begin = position - WINDOW_LEAD;

    if (begin <= -WAL__CHUNK_WINDOW || begin > WAL__CHUNK_MAX) {
        return WAL__CHUNK_MAX;
    }
    return (int32_t)begin;
}

/* Compresses a block with one window into compressed[to], and returns its size; 0 on failure. */
static uint32_t compress_block(struct delta *delta, struct wal__span block, struct wal__span base,
                               int32_t begin, int to)
{
    struct wal__span window = wal__chunk_window(base, begin);

    WAL__ASSERT(block.size > 0 && block.size <= WAL__CHUNK_BLOCK);
    WAL__ASSERT(window.size <= WAL__CHUNK_WINDOW);
    LZ4_resetStream_fast(&delta->stream);
    (void)LZ4_loadDict(&delta->stream, (const char *)window.data, (int)window.size);
    return (uint32_t)LZ4_compress_fast_continue(&delta->stream, (const char *)block.data,
                                                delta->compressed[to], (int)block.size,
                                                (int)sizeof(delta->compressed[to]), 1);
}

/* Appends a block, compressed or raw. */
static enum wal_status put_block(struct wal__buf *out, const uint8_t *bytes, uint32_t size,
                                 int32_t window)
{
    struct wal__chunk_block block = {.stored_size = size, .window = window};
    enum wal_status status;
    uint8_t *end;

    WAL__ASSERT(size <= WAL__CHUNK_BLOCK);
    status = wal__buf_reserve(out, WAL__CHUNK_BLOCK_HEAD + size, &end);
    if (status != WAL_OK) {
        return status;
    }
    wal__chunk_block_encode_head(&block, end);
    memcpy(end + WAL__CHUNK_BLOCK_HEAD, bytes, size);
    out->size += WAL__CHUNK_BLOCK_HEAD + size;
    return WAL_OK;
}

/* Tries two positions of the base: at the block's distance from the front, and at its distance from
 * the end, since an edit shifts all bytes after it. */
static enum wal_status encode_block(struct delta *delta, struct wal__span content, size_t offset,
                                    struct wal__span base, struct wal__buf *out)
{
    struct wal__span block = {content.data + offset, content.size - offset};
    int64_t shift = (int64_t)base.size - (int64_t)content.size;
    int32_t front = window_begin((int64_t)offset);
    int32_t back = window_begin((int64_t)offset + shift);
    int32_t window = front;
    uint32_t size;
    int best = 0;

    WAL__ASSERT(offset < content.size);
    if (block.size > WAL__CHUNK_BLOCK) {
        block.size = WAL__CHUNK_BLOCK;
    }
    size = compress_block(delta, block, base, front, 0);
    if (back != front) {
        uint32_t other = compress_block(delta, block, base, back, 1);

        if (other < size) {
            size = other;
            window = back;
            best = 1;
        }
    }
    if (size == 0 || size >= block.size) {
        return put_block(out, block.data, (uint32_t)block.size, 0);
    }
    return put_block(out, (const uint8_t *)delta->compressed[best], size, window);
}

enum wal_status wal__delta_encode(const struct wal__heap *heap, struct wal__span content,
                                  struct wal__span base, size_t limit, struct wal__buf *out)
{
    struct delta *delta = wal__heap_alloc(heap, sizeof(*delta));
    size_t before = out->size;
    enum wal_status status = WAL_OK;

    WAL__ASSERT(content.size <= WAL__CHUNK_MAX && base.size <= WAL__CHUNK_MAX);
    if (delta == NULL) {
        return WAL_ENOMEM;
    }
    (void)LZ4_initStream(&delta->stream, sizeof(delta->stream));
    for (size_t at = 0; at < content.size && status == WAL_OK; at += WAL__CHUNK_BLOCK) {
        status = encode_block(delta, content, at, base, out);
        if (status == WAL_OK && out->size - before > limit) {
            status = WAL_END;
        }
    }
    wal__heap_free(heap, delta);
    if (status != WAL_OK) {
        out->size = before;
    }
    return status;
}

/* --- records ------------------------------------------------------------ */

enum {
    LZ4_SAVING_DIVISOR = 16, /* LZ4 must save 1/16 of the content */
    DELTA_SAVING_DIVISOR = 5 /* a delta must save 1/5 of the plain encoding */
};

/* Sets the frame's header and padding around a payload of `size` bytes that is in place. */
static void finish_frame(struct wal__blob_prepared *out, uint8_t type, enum wal__blob_owner owner,
                         size_t size)
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

/* Encodes content raw, or by LZ4 if that saves enough, after the chunk's head in payload[]; sets
 * encoding and data of the chunk. */
static void encode_plain(struct wal__span content, struct wal__chunk_record *chunk,
                         uint8_t *payload)
{
    int limit = (int)(content.size - content.size / LZ4_SAVING_DIVISOR) - 1;
    uint8_t *data;
    int compressed_size = 0;

    chunk->data = content;
    chunk->encoding = WAL__CHUNK_LZ4;
    data = payload + wal__chunk_record_size(chunk) - content.size;
    if (limit > 0) {
        compressed_size = LZ4_compress_default((const char *)content.data, (char *)data,
                                               (int)content.size, limit);
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

/* Replaces the plain encoding by a delta of the base if that saves enough. A base that cannot be
 * read, or may be dropped, counts as none. */
static enum wal_status encode_delta(struct wal__blob_store *blobs, struct wal__span content,
                                    const struct wal__digest *base, struct wal__chunk_record *chunk,
                                    uint8_t *payload)
{
    size_t limit =
        chunk->data.size - (chunk->data.size + DELTA_SAVING_DIVISOR - 1) / DELTA_SAVING_DIVISOR;
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
    memcpy(payload + wal__chunk_record_size(chunk) - delta.size, delta.data, delta.size);
done:
    wal__buf_deinit(&base_content);
    wal__buf_deinit(&delta);
    return status == WAL_ENOMEM ? status : WAL_OK;
}

static enum wal_status encode_chunk(struct wal__blob_store *blobs, struct wal__span content,
                                    const struct wal__digest *base, enum wal__blob_owner owner,
                                    struct wal__blob_prepared *out)
{
    struct wal__chunk_record chunk = {.digest = out->digest, .size = (uint32_t)content.size};
    enum wal_status status;
    uint8_t *payload;

    WAL__ASSERT(content.size <= WAL__CHUNK_MAX && out->frame.size == 0);
    /* Room for the longest head, that of a delta, and for padding. */
    chunk.encoding = WAL__CHUNK_DELTA;
    chunk.data = content;
    status = wal__buf_reserve(&out->frame, WAL__FRAME_SIZE + wal__chunk_record_size(&chunk) + 8,
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

enum wal_status wal__chunk_encode_plain(struct wal__blob_store *blobs, struct wal__span content,
                                        enum wal__blob_owner owner, struct wal__blob_prepared *out)
{
    return encode_chunk(blobs, content, NULL, owner, out);
}

/* Sets out->end if the content is stored, can be read, and is kept as long as the owner needs it;
 * or out->unusable_position if it is stored otherwise. A caller's content that is stored again
 * stays the caller's. Where content is written nowhere all of it passes for stored. */
static enum wal_status find_existing(struct wal__blob_store *blobs, enum wal__blob_owner *owner,
                                     struct wal__blob_prepared *out, struct wal_error *error)
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
    } else if (status == WAL_OK || status == WAL_ECORRUPT || status == WAL_EIO) {
        out->unusable_position = position;
        *owner = found == WAL__BLOB_OF_CALLER ? found : *owner;
        status = WAL_OK;
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* As wal__blob_prepare, but base is the digest of a chunk, or NULL. */
static enum wal_status chunk_prepare(struct wal__blob_store *blobs, struct wal__span content,
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

enum wal_status wal__blob_prepare(struct wal__blob_store *blobs, struct wal__span content,
                                  const struct wal__digest *base, enum wal__blob_owner owner,
                                  struct wal__blob_prepared *out, struct wal_error *error)
{
    struct wal__digest first;
    struct wal__buf chunks;
    enum wal_status status;
    uint64_t size;

    if (base == NULL) {
        return chunk_prepare(blobs, content, NULL, owner, out, error);
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
    return chunk_prepare(blobs, content, status == WAL_OK ? &first : NULL, owner, out, error);
}

enum wal_status wal__blob_prepare_chunk_list(struct wal__blob_store *blobs,
                                             const struct wal__blob_record *blob,
                                             enum wal__blob_owner owner,
                                             struct wal__blob_prepared *out,
                                             struct wal_error *error)
{
    struct wal__blob_prepared prepared = {.digest = blob->digest, .size = blob->size};
    size_t size = wal__blob_record_size(blob);
    enum wal_status status = find_existing(blobs, &owner, &prepared, error);
    uint8_t *frame;

    WAL__ASSERT(blob->chunk_count > 1 && blob->chunk_count <= WAL__BLOB_CHUNKS_MAX);
    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&prepared.frame, blobs->env->heap);
    if (prepared.end == 0) {
        if (wal__buf_reserve(&prepared.frame, WAL__FRAME_SIZE + size + 8, &frame) != WAL_OK) {
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

/* --- writers ------------------------------------------------------------ */

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
                                        const struct wal__digest *base, enum wal__blob_owner owner,
                                        struct wal__blob_writer **writer, struct wal_error *error)
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
        status = wal__blob_list_chunks(blobs, base, &created->base_chunks, &size, NULL);
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
static const struct wal__digest *base_chunk(const struct wal__blob_writer *writer, size_t number,
                                            struct wal__digest *digest)
{
    if ((number + 1) * WAL__DIGEST_SIZE > writer->base_chunks.size) {
        return NULL;
    }
    memcpy(digest->bytes, writer->base_chunks.data + number * WAL__DIGEST_SIZE, WAL__DIGEST_SIZE);
    return digest;
}

/* Puts the next chunk; *digest is the chunk's. */
static enum wal_status put_chunk(struct wal__blob_writer *writer, struct wal__span content,
                                 enum wal__blob_owner owner, struct wal__digest *digest,
                                 struct wal_error *error)
{
    size_t number = writer->chunks.size / WAL__DIGEST_SIZE;
    struct wal__blob_prepared prepared;
    struct wal__digest base;
    enum wal_status status;

    WAL__ASSERT(content.size <= WAL__CHUNK_MAX);
    WAL__ASSERT(number <= WAL__BLOB_CHUNKS_MAX);
    if (number == WAL__BLOB_CHUNKS_MAX) {
        return wal__fail(error, WAL_ETOOBIG, "the content is larger than %d chunks of 1 MiB",
                         (int)WAL__BLOB_CHUNKS_MAX);
    }
    status = chunk_prepare(writer->blobs, content, base_chunk(writer, number, &base), owner,
                           &prepared, error);
    if (status != WAL_OK) {
        return status;
    }
    *digest = prepared.digest;
    status = wal__pack_append(writer->blobs, &prepared, 1, &writer->result, error);
    wal__blob_prepared_deinit(&prepared);
    if (status == WAL_OK &&
        wal__buf_append(&writer->chunks, digest->bytes, WAL__DIGEST_SIZE) != WAL_OK) {
        status = wal__no_memory(error);
    }
    return status;
}

static enum wal_status flush(struct wal__blob_writer *writer, struct wal_error *error)
{
    struct wal__span content = {writer->pending.data, writer->pending.size};
    struct wal__digest digest;
    enum wal_status status = put_chunk(writer, content, WAL__BLOB_OF_RECORDS, &digest, error);

    writer->pending.size = 0;
    return status;
}

static enum wal_status append(struct wal__blob_writer *writer, struct wal__span piece,
                              struct wal_error *error)
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
            /* The piece has more bytes, so that this chunk is not the only one. */
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

enum wal_status wal__blob_writer_append(struct wal__blob_writer *writer, struct wal__span piece,
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
                                      const struct wal__digest *digest, struct wal_error *error)
{
    struct wal__blob_record blob = {.digest = *digest,
                                    .size = writer->size,
                                    .chunk_count =
                                        (uint32_t)(writer->chunks.size / WAL__DIGEST_SIZE),
                                    .chunks = writer->chunks.data};
    struct wal__blob_prepared prepared;
    enum wal_status status;

    WAL__ASSERT(writer->chunks.size % WAL__DIGEST_SIZE == 0);
    WAL__ASSERT(blob.chunk_count == (blob.size - 1) / WAL__CHUNK_MAX + 1);
    status = wal__blob_prepare_chunk_list(writer->blobs, &blob, writer->owner, &prepared, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__pack_append(writer->blobs, &prepared, 1, &writer->result, error);
    wal__blob_prepared_deinit(&prepared);
    return status;
}

/* Adds the writer's result: its chunks do not count as contents, so new_blobs before the chunk list
 * is subtracted. */
static void add_result(const struct wal__blob_writer *writer, uint64_t blobs_before,
                       struct wal__blob_put_result *result)
{
    WAL__ASSERT(writer->result.new_blobs >= blobs_before);
    result->new_blobs += writer->result.new_blobs - blobs_before;
    result->new_bytes += writer->result.new_bytes;
    if (writer->result.end > result->end) {
        result->end = writer->result.end;
    }
}

static enum wal_status finish(struct wal__blob_writer *writer, struct wal__digest *digest,
                              struct wal__blob_put_result *result, struct wal_error *error)
{
    struct wal__span rest = {writer->pending.data, writer->pending.size};
    bool single = writer->size <= WAL__CHUNK_MAX;
    struct wal__digest whole;
    enum wal_status status = WAL_OK;
    uint64_t before = 0;

    if (single || rest.size > 0) {
        status =
            put_chunk(writer, rest, single ? writer->owner : WAL__BLOB_OF_RECORDS, &whole, error);
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

enum wal_status wal__blob_writer_finish(struct wal__blob_writer *writer, struct wal__digest *digest,
                                        uint64_t *size, struct wal__blob_put_result *result,
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
static enum wal_status put_one_chunk(struct wal__blob_store *blobs, struct wal__span content,
                                     const struct wal__digest *base, enum wal__blob_owner owner,
                                     struct wal__digest *digest,
                                     struct wal__blob_put_result *result, struct wal_error *error)
{
    struct wal__blob_prepared prepared;
    enum wal_status status = wal__blob_prepare(blobs, content, base, owner, &prepared, error);

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

enum wal_status wal__blob_put(struct wal__blob_store *blobs, struct wal__span content,
                              const struct wal__digest *base, enum wal__blob_owner owner,
                              struct wal__digest *digest, struct wal__blob_put_result *result,
                              struct wal_error *error)
{
    struct wal__blob_writer *writer = NULL;
    enum wal_status status;
    uint64_t size = 0;

    if (content.size <= WAL__CHUNK_MAX) {
        return put_one_chunk(blobs, content, base, owner, digest, result, error);
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

/* --- content that is stored already ------------------------------------- */

/* Copies content piece by piece from its reader to a writer. */
static enum wal_status copy_pieces(struct wal__blob_store *blobs, struct wal__blob_reader *reader,
                                   struct wal__blob_writer *writer, struct wal_error *error)
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

        status = wal__blob_reader_read(reader, at, piece, WAL__CHUNK_MAX, &got, error);
        if (status == WAL_OK) {
            status = wal__blob_writer_append(writer, (struct wal__span){piece, (size_t)got}, error);
        }
        at += got;
    }
    wal__heap_free(blobs->env->heap, piece);
    return status;
}

enum wal_status wal__blob_copy(struct wal__blob_store *from, struct wal__blob_store *to,
                               const struct wal__digest *digest,
                               struct wal__blob_put_result *result, struct wal_error *error)
{
    struct wal__blob_reader *reader = NULL;
    struct wal__blob_writer *writer = NULL;
    struct wal__digest copied;
    uint64_t size;
    enum wal_status status = wal__blob_reader_create(from, digest, &reader, error);

    if (status == WAL_OK) {
        status = wal__blob_writer_create(to, NULL, WAL__BLOB_OF_RECORDS, &writer, error);
    }
    if (status == WAL_OK) {
        status = copy_pieces(to, reader, writer, error);
    }
    if (status == WAL_OK) {
        status = wal__blob_writer_finish(writer, &copied, &size, result, error);
    }
    if (status == WAL_OK && !wal__digest_equal(&copied, digest)) {
        status = wal__fail(error, WAL_ECORRUPT, "content has another SHA-256 than its record says");
    }
    wal__blob_writer_destroy(writer);
    wal__blob_reader_destroy(reader);
    return status;
}

enum wal_status wal__blob_claim(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                uint64_t *size, uint64_t *end, struct wal_error *error)
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
