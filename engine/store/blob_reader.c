/*
 * blob_reader.c - decodes records of the blob stream, and reads content of any size from them, one
 * chunk in memory at a time (blob.h; SPEC.md 2.18, 5.12).
 *
 * A chunk may be a delta of another one, and that of a third: the chain ends at a chunk without a
 * base, and is decoded from there. A compaction may replace a segment between a look-up and the
 * read, or give a chunk another base: what looks damaged is looked up again before it is reported.
 *
 * Any thread; a reader belongs to one at a time. No lock is held while a record is read.
 *
 * Invariants: content is returned only if its digest is the one asked for; the last byte of a
 * sequential read is returned only if the digest of the whole content was verified too.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/blob_store.h"
#include "format/bytes/assert.h"

/* --- records ------------------------------------------------------------ */

enum { DELTA_CHAIN_MAX = WAL__CHUNK_DEPTH_MAX + 1 };

/* A record of the blob stream with verified checksums. The payload is in the segment's map or in
 * the caller's scratch buffer. */
struct blob_frame {
    uint64_t position;
    struct wal__frame frame;
    struct wal__span payload;
};

/* Fills *error with the file, the offset and the digest; returns WAL_ECORRUPT. */
static enum wal_status blob_report_corrupt(const struct wal__blob_store *blobs,
                                           const struct wal__digest *digest, uint64_t position,
                                           const char *why, struct wal_error *error)
{
    char text[WAL__DIGEST_HEX_SIZE];
    char path[WAL__PATH_MAX];

    wal__hex_write(digest->bytes, WAL__DIGEST_SIZE, text);
    wal__segment_path(blobs->env, blobs->log.directory, wal__position_segment(position), path);
    return wal__fail_at(error, WAL_ECORRUPT, 0, position == 0 ? NULL : path,
                        wal__position_offset(position),
                        "cannot read the content with SHA-256 %s: %s", text, why);
}

/* Reads the newest record with the digest. WAL_ENOTFOUND; WAL_ECORRUPT when its checksums or its
 * digest do not match. */
static enum wal_status blob_fetch(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                  struct wal__record_buf *scratch, struct blob_frame *found,
                                  struct wal_error *error)
{
    const char *damage;
    uint64_t looked = 0;
    enum wal_status status;

    /* A compaction may replace the segment after the look-up: the position then is that of another
     * record, or of none. */
    do {
        damage = NULL;
        status = wal__blob_find(blobs, digest, &found->position, error);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__log_read(&blobs->log, found->position, scratch, &found->frame,
                               &found->payload, error);
        if (status == WAL_ECORRUPT) {
            damage = "its record is damaged";
        } else if (status == WAL_OK &&
                   (found->payload.size < WAL__DIGEST_SIZE ||
                    memcmp(found->payload.data, digest->bytes, WAL__DIGEST_SIZE) != 0)) {
            damage = "the record has another digest";
        }
    } while (damage != NULL && wal__blob_store_look_again(blobs, &looked));
    if (damage != NULL) {
        return blob_report_corrupt(blobs, digest, found->position, damage, error);
    }
    WAL__ASSERT(status != WAL_OK || found->position != 0);
    return status;
}

/* A chunk followed by its base, the base of that, and so on, up to a chunk without a base. */
struct delta_chain {
    uint32_t count;
    uint64_t positions[DELTA_CHAIN_MAX];
    struct wal__chunk_record chunks[DELTA_CHAIN_MAX];
    struct wal__record_buf scratch[DELTA_CHAIN_MAX]; /* payloads read by pread */
};

static void delta_chain_init(struct delta_chain *delta_chain, const struct wal__blob_store *blobs)
{
    delta_chain->count = 0;
    for (int i = 0; i < DELTA_CHAIN_MAX; i++) {
        wal__record_buf_init(&delta_chain->scratch[i], blobs->env->heap);
    }
}

static void delta_chain_deinit(struct delta_chain *delta_chain)
{
    for (int i = 0; i < DELTA_CHAIN_MAX; i++) {
        wal__record_buf_deinit(&delta_chain->scratch[i]);
    }
}

static enum wal_status delta_chain_fetch(struct wal__blob_store *blobs,
                                         const struct wal__digest *digest,
                                         struct delta_chain *delta_chain, struct wal_error *error)
{
    const struct wal__digest *wanted = digest;
    struct wal__chunk_record *chunk;

    do {
        struct blob_frame found;
        enum wal_status status;

        if (delta_chain->count == DELTA_CHAIN_MAX) {
            return blob_report_corrupt(blobs, digest, delta_chain->positions[0],
                                       "its delta chain is too long", error);
        }
        status =
            blob_fetch(blobs, wanted, &delta_chain->scratch[delta_chain->count], &found, error);
        if (status == WAL_ENOTFOUND && delta_chain->count > 0) {
            return blob_report_corrupt(blobs, digest, delta_chain->positions[0],
                                       "a base chunk of it is missing", error);
        }
        if (status != WAL_OK) {
            return status;
        }
        chunk = &delta_chain->chunks[delta_chain->count];
        delta_chain->positions[delta_chain->count] = found.position;
        if (found.frame.type != WAL__FRAME_CHUNK ||
            wal__chunk_record_decode(found.payload, chunk) != WAL__FMT_OK) {
            return blob_report_corrupt(blobs, digest, found.position,
                                       "its record is not a valid chunk", error);
        }
        delta_chain->count++;
        wanted = &chunk->base;
    } while (chunk->encoding == WAL__CHUNK_DELTA);
    WAL__ASSERT(delta_chain->count > 0 && delta_chain->count <= DELTA_CHAIN_MAX);
    return WAL_OK;
}

/* Decodes from the chunk without a base to chunk 0. Two buffers alternate as base and target; chunk
 * 0 is decoded into out. */
static enum wal_status delta_chain_decode(struct wal__blob_store *blobs,
                                          const struct delta_chain *delta_chain,
                                          struct wal__buf *out, struct wal_error *error)
{
    struct wal__span base = {NULL, 0};
    struct wal__buf other;
    enum wal_status status = WAL_OK;

    wal__buf_init(&other, blobs->env->heap);
    for (uint32_t i = delta_chain->count; i > 0 && status == WAL_OK; i--) {
        const struct wal__chunk_record *chunk = &delta_chain->chunks[i - 1];
        struct wal__buf *to = (i - 1) % 2 == 0 ? out : &other;
        uint8_t *content;

        to->size = 0;
        WAL__ASSERT(base.data == NULL || to->data != base.data);
        if (wal__buf_reserve(to, (size_t)chunk->size + 1, &content) != WAL_OK) {
            status = wal__no_memory(error);
        } else if (!wal__chunk_decode_content(chunk, base, content)) {
            status = blob_report_corrupt(blobs, &chunk->digest, delta_chain->positions[i - 1],
                                         "its compressed data is not valid", error);
        } else {
            to->size = chunk->size;
            base.data = to->data;
            base.size = to->size;
        }
    }
    wal__buf_deinit(&other);
    return status;
}

enum wal_status wal__blob_verify(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                 uint64_t *position, enum wal__blob_owner *owner,
                                 struct wal_error *error)
{
    struct blob_frame found;
    enum wal_status status;
    struct delta_chain delta_chain;

    status = wal__blob_find(blobs, digest, position, error);
    if (status != WAL_OK) {
        return status;
    }
    delta_chain_init(&delta_chain, blobs);
    status = blob_fetch(blobs, digest, &delta_chain.scratch[0], &found, error);
    if (status == WAL_OK) {
        *owner = wal__blob_frame_owner(&found.frame);
    }
    if (status == WAL_OK && found.frame.type == WAL__FRAME_CHUNK) {
        status = delta_chain_fetch(blobs, digest, &delta_chain, error);
    }
    delta_chain_deinit(&delta_chain);
    return status;
}

static enum wal_status try_load_chunk(struct wal__blob_store *blobs,
                                      const struct wal__digest *digest, struct wal__buf *out,
                                      uint8_t *depth, struct wal_error *error)
{
    struct wal__digest actual;
    struct wal__span content;
    enum wal_status status;
    struct delta_chain delta_chain;

    delta_chain_init(&delta_chain, blobs);
    status = delta_chain_fetch(blobs, digest, &delta_chain, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = delta_chain_decode(blobs, &delta_chain, out, error);
    if (status != WAL_OK) {
        goto done;
    }
    WAL__ASSERT(out->size == delta_chain.chunks[0].size);
    content.data = out->data;
    content.size = out->size;
    if (wal__sha256(&blobs->sha256_alg, content, &actual) != WAL_OK) {
        status = wal__no_memory(error);
    } else if (!wal__digest_equal(digest, &actual)) {
        status = blob_report_corrupt(blobs, digest, delta_chain.positions[0],
                                     "its SHA-256 does not match", error);
    } else if (depth != NULL) {
        *depth = delta_chain.chunks[0].depth;
    }
done:
    delta_chain_deinit(&delta_chain);
    return status;
}

enum wal_status wal__chunk_load(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                struct wal__buf *out, uint8_t *depth, struct wal_error *error)
{
    uint64_t looked = 0;
    enum wal_status status;

    /* A compaction may give a chunk another base between two look-ups. */
    do {
        status = try_load_chunk(blobs, digest, out, depth, error);
    } while (status == WAL_ECORRUPT && wal__blob_store_look_again(blobs, &looked));
    return status;
}

enum wal_status wal__blob_list_chunks(struct wal__blob_store *blobs,
                                      const struct wal__digest *digest, struct wal__buf *chunks,
                                      uint64_t *size, struct wal_error *error)
{
    struct blob_frame found;
    struct wal__chunk_record chunk;
    struct wal__blob_record blob;
    struct wal__record_buf scratch;
    enum wal_status status;

    wal__record_buf_init(&scratch, blobs->env->heap);
    status = blob_fetch(blobs, digest, &scratch, &found, error);
    if (status == WAL_OK && found.frame.type == WAL__FRAME_CHUNK &&
        wal__chunk_record_decode(found.payload, &chunk) == WAL__FMT_OK) {
        *size = chunk.size;
        status = wal__buf_append(chunks, digest->bytes, WAL__DIGEST_SIZE);
    } else if (status == WAL_OK && found.frame.type == WAL__FRAME_BLOB &&
               wal__blob_record_decode(found.payload, &blob) == WAL__FMT_OK) {
        *size = blob.size;
        status = wal__buf_append(chunks, blob.chunks, (size_t)blob.chunk_count * WAL__DIGEST_SIZE);
    } else if (status == WAL_OK) {
        status =
            blob_report_corrupt(blobs, digest, found.position, "its record is not valid", error);
    }
    wal__record_buf_deinit(&scratch);
    WAL__ASSERT(status != WAL_OK ||
                (chunks->size >= WAL__DIGEST_SIZE && chunks->size % WAL__DIGEST_SIZE == 0));
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

enum wal_status wal__blob_stat(struct wal__blob_store *blobs, const struct wal__digest *digest,
                               uint64_t *size, uint64_t *end, struct wal_error *error)
{
    struct wal__buf chunks;
    uint64_t position = 0;
    uint64_t content_size = 0;
    enum wal_status status = wal__blob_find(blobs, digest, &position, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&chunks, blobs->env->heap);
    status = wal__blob_list_chunks(blobs, digest, &chunks, &content_size, error);
    wal__buf_deinit(&chunks);
    if (status != WAL_OK) {
        return status;
    }
    *size = content_size;
    *end = wal__blob_sync_end(position);
    return WAL_OK;
}

/* Finds the newest record with the digest, and reads of it what wal__chunk_record_decode does. */
static enum wal_status peek_record(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                   struct wal__record_buf *scratch, struct blob_frame *found,
                                   struct wal_error *error)
{
    enum wal_status status = wal__blob_find(blobs, digest, &found->position, error);

    if (status == WAL_OK) {
        status = wal__log_peek(&blobs->log, found->position, WAL__CHUNK_HEAD_MAX, scratch,
                               &found->frame, &found->payload, error);
    }
    if (status == WAL_OK && (found->payload.size < WAL__DIGEST_SIZE ||
                             memcmp(found->payload.data, digest->bytes, WAL__DIGEST_SIZE) != 0)) {
        status = WAL_ECORRUPT;
    }
    return status;
}

/* Finds a chunk and what it is based on: WAL_ENOTFOUND, WAL_ECORRUPT. */
static enum wal_status find_chunk(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                  struct wal__record_buf *scratch, struct wal_error *error)
{
    struct wal__digest wanted = *digest;

    for (int i = 0; i < DELTA_CHAIN_MAX; i++) {
        struct blob_frame found;
        struct wal__chunk_record chunk;
        enum wal_status status = peek_record(blobs, &wanted, scratch, &found, error);

        if (status != WAL_OK) {
            return status;
        }
        found.payload.size = found.frame.stored_size;
        if (found.frame.type != WAL__FRAME_CHUNK ||
            wal__chunk_record_decode(found.payload, &chunk) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        if (chunk.encoding != WAL__CHUNK_DELTA) {
            return WAL_OK;
        }
        wanted = chunk.base;
    }
    return WAL_ECORRUPT;
}

/* Finds content with all that it consists of: WAL_ENOTFOUND, WAL_ECORRUPT.
 * *position is that of its record. */
static enum wal_status find_whole(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                  struct wal__record_buf *scratch, uint64_t *position,
                                  struct wal_error *error)
{
    struct blob_frame found;
    struct wal__digest chunk;
    struct wal__buf chunks;
    uint64_t ignored;
    enum wal_status status = peek_record(blobs, digest, scratch, &found, error);

    if (status != WAL_OK) {
        return status;
    }
    *position = found.position;
    if (found.frame.type != WAL__FRAME_BLOB) {
        return find_chunk(blobs, digest, scratch, error);
    }
    wal__buf_init(&chunks, blobs->env->heap);
    status = wal__blob_list_chunks(blobs, digest, &chunks, &ignored, error);
    for (size_t at = 0; at < chunks.size && status == WAL_OK; at += WAL__DIGEST_SIZE) {
        memcpy(chunk.bytes, chunks.data + at, WAL__DIGEST_SIZE);
        status = find_chunk(blobs, &chunk, scratch, error);
    }
    wal__buf_deinit(&chunks);
    return status;
}

enum wal_status wal__blob_find_end(struct wal__blob_store *blobs, const struct wal__digest *digest,
                                   uint64_t *end, struct wal_error *error)
{
    const uint64_t condemned = wal__blob_condemned_end(blobs);
    struct wal__record_buf scratch;
    uint64_t position = 0;
    enum wal_status status;

    wal__record_buf_init(&scratch, blobs->env->heap);
    status = find_whole(blobs, digest, &scratch, &position, error);
    wal__record_buf_deinit(&scratch);
    if (status == WAL_ENOTFOUND || status == WAL_ECORRUPT || status == WAL_EIO) {
        position = 0; /* it is stored again */
        status = WAL_OK;
    }
    if (status == WAL_OK) {
        *end = position <= condemned ? 0 : wal__blob_sync_end(position);
    }
    return status;
}

/* --- readers ------------------------------------------------------------ */

#define NO_CHUNK UINT64_MAX

struct wal__blob_reader {
    struct wal__blob_store *blobs;
    struct wal__digest digest;
    uint64_t size;
    struct wal__buf chunks; /* digests */
    struct wal__buf content;
    uint64_t loaded_chunk; /* the chunk in `content`; NO_CHUNK: none */
    struct wal__sha256_ctx whole;
    /* Bytes from the start that were read sequentially and are in `whole`; NO_CHUNK: the read was
     * not sequential, or `whole` is finished. */
    uint64_t hashed_size;
};

enum wal_status wal__blob_reader_create(struct wal__blob_store *blobs,
                                        const struct wal__digest *digest,
                                        struct wal__blob_reader **reader, struct wal_error *error)
{
    struct wal__blob_reader *created = wal__heap_zalloc(blobs->env->heap, sizeof(*created));
    enum wal_status status;

    if (created == NULL) {
        return wal__no_memory(error);
    }
    created->blobs = blobs;
    created->digest = *digest;
    created->loaded_chunk = NO_CHUNK;
    wal__buf_init(&created->chunks, blobs->env->heap);
    wal__buf_init(&created->content, blobs->env->heap);
    status = wal__blob_list_chunks(blobs, digest, &created->chunks, &created->size, error);
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
static uint64_t chunk_size(const struct wal__blob_reader *reader, uint64_t number)
{
    WAL__ASSERT(number * WAL__CHUNK_MAX <= reader->size);

    uint64_t left = reader->size - number * WAL__CHUNK_MAX;

    return left < WAL__CHUNK_MAX ? left : WAL__CHUNK_MAX;
}

/* A chunk is missing: that is damage, unless the whole content was removed since the reader was
 * made. */
static enum wal_status fail_missing(const struct wal__blob_reader *reader, struct wal_error *error)
{
    uint64_t ignored;
    enum wal_status status = wal__blob_find(reader->blobs, &reader->digest, &ignored, error);

    return status == WAL_OK ? blob_report_corrupt(reader->blobs, &reader->digest, 0,
                                                  "a chunk of it is missing", error)
                            : status;
}

static enum wal_status load_chunk(struct wal__blob_reader *reader, uint64_t number,
                                  struct wal_error *error)
{
    struct wal__digest digest;
    enum wal_status status;

    if (reader->loaded_chunk == number) {
        return WAL_OK;
    }
    WAL__ASSERT((number + 1) * WAL__DIGEST_SIZE <= reader->chunks.size);
    reader->loaded_chunk = NO_CHUNK;
    memcpy(digest.bytes, reader->chunks.data + number * WAL__DIGEST_SIZE, WAL__DIGEST_SIZE);
    status = wal__chunk_load(reader->blobs, &digest, &reader->content, NULL, error);
    if (status == WAL_ENOTFOUND) {
        return fail_missing(reader, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (reader->content.size != chunk_size(reader, number)) {
        return blob_report_corrupt(reader->blobs, &reader->digest, 0,
                                   "a chunk of it has the wrong size", error);
    }
    reader->loaded_chunk = number;
    return WAL_OK;
}

/* Hashes a piece that continues a sequential read of several chunks, and verifies the digest of the
 * whole content at its end. */
static enum wal_status verify_content(struct wal__blob_reader *reader, uint64_t offset,
                                      struct wal__span piece, struct wal_error *error)
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
            return blob_report_corrupt(reader->blobs, &reader->digest, 0,
                                       "its SHA-256 does not match", error);
        }
    }
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
}

enum wal_status wal__blob_reader_read(struct wal__blob_reader *reader, uint64_t offset, void *data,
                                      uint64_t size, uint64_t *bytes_read, struct wal_error *error)
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
        memcpy((uint8_t *)data + piece.size, reader->content.data + chunk_offset, (size_t)part);
        piece.size += (size_t)part;
    }
    status = verify_content(reader, offset, piece, error);
    if (status != WAL_OK) {
        return status;
    }
    *bytes_read = piece.size;
    return WAL_OK;
}

enum wal_status wal__blob_load(struct wal__blob_store *blobs, const struct wal__digest *digest,
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
    status = wal__blob_reader_read(reader, 0, end, reader->size, &bytes_read, error);
    if (status != WAL_OK) {
        goto done;
    }
    WAL__ASSERT(bytes_read == reader->size);
    out->size += (size_t)bytes_read;
done:
    wal__blob_reader_destroy(reader);
    return status;
}
