/*
 * record_blob.h - the payloads of CHUNK and BLOB, the records of the blob stream (SPEC.md 2.18,
 * 2.19), and the index of a pack segment (2.20).
 *
 * Content of at most 1 MiB is one CHUNK. Larger content is split into CHUNKs of 1 MiB, of which the
 * last may be shorter, and a BLOB that lists them. Both are looked up by the SHA-256 of their
 * content. Encoders write exactly ..._size() bytes; decoders check every size against the payload
 * before they use it. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_RECORD_BLOB_H
#define AGENTWAL_FORMAT_SEGMENT_RECORD_BLOB_H

#include <stdbool.h>

#include "format/bytes/bytes.h"

enum {
    WAL__DIGEST_SIZE = 32,
    WAL__CHUNK_MAX = 1024 * 1024,
    WAL__CHUNK_DEPTH_MAX = 7,    /* length of a chain of base chunks */
    WAL__CHUNK_BLOCK = 32768,    /* content bytes per WAL__CHUNK_DELTA block */
    WAL__CHUNK_HEAD_MAX = 72,    /* bytes before the data, of a delta */
    WAL__CHUNK_BLOCK_HEAD = 8,   /* header bytes of a block */
    WAL__CHUNK_WINDOW = 65536,   /* base bytes in the dictionary of a block */
    WAL__BLOB_CHUNKS_MAX = 65472 /* keeps a BLOB payload below 2 MiB */
};

/* A SHA-256. */
struct wal__digest {
    uint8_t bytes[WAL__DIGEST_SIZE];
};

enum wal__chunk_encoding {
    WAL__CHUNK_RAW = 0,
    WAL__CHUNK_LZ4 = 1,
    WAL__CHUNK_DELTA = 2 /* LZ4 blocks with the base chunk as dictionary */
};

struct wal__chunk_record {
    struct wal__digest digest; /* of the content */
    uint32_t size;             /* of the content */
    uint8_t encoding;          /* enum wal__chunk_encoding */
    uint8_t depth;             /* 0 without a base, else the base's + 1 */
    struct wal__digest base;   /* of WAL__CHUNK_DELTA's base; else zeros */
    struct wal__span data;     /* encoded */
};

size_t wal__chunk_record_size(const struct wal__chunk_record *chunk);

/* Writes the bytes before the data and returns their number. */
size_t wal__chunk_record_encode_head(const struct wal__chunk_record *chunk, uint8_t *out);

/* Reads at most WAL__CHUNK_HEAD_MAX bytes, and none of the data. */
enum wal__fmt wal__chunk_record_decode(struct wal__span payload, struct wal__chunk_record *chunk);

/* A block of WAL__CHUNK_DELTA: the next WAL__CHUNK_BLOCK bytes of the content; the last block may
 * be shorter. If stored_size equals the content's size, the content is stored uncompressed.
 * Otherwise it is LZ4 whose dictionary is the part of the base that wal__chunk_window returns. */
struct wal__chunk_block {
    uint32_t stored_size;
    int32_t window; /* offset in the base's content; may be negative */
    struct wal__span stored;
};

void wal__chunk_block_encode_head(const struct wal__chunk_block *block, uint8_t *out);

/* Decodes the first block of *data, which has `size` bytes of content, and removes it from
 * *data. */
enum wal__fmt wal__chunk_block_decode(struct wal__span *data, uint32_t size,
                                      struct wal__chunk_block *block);

/* Returns the dictionary of a block: WAL__CHUNK_WINDOW bytes from `begin` on, clipped to the
 * base. */
struct wal__span wal__chunk_window(struct wal__span base, int64_t begin);

/* Writes chunk->size bytes of content to out. `base` is the content of the base chunk; it is used
 * by WAL__CHUNK_DELTA only. Returns false if the data is not valid. The caller verifies the
 * digest. */
bool wal__chunk_decode_content(const struct wal__chunk_record *chunk, struct wal__span base,
                               uint8_t *out);

struct wal__blob_record {
    struct wal__digest digest; /* of the content */
    uint64_t size;             /* above WAL__CHUNK_MAX */
    uint32_t chunk_count;
    const uint8_t *chunks; /* digests, in order */
};

size_t wal__blob_record_size(const struct wal__blob_record *blob);
void wal__blob_record_encode(const struct wal__blob_record *blob, uint8_t *out);
enum wal__fmt wal__blob_record_decode(struct wal__span payload, struct wal__blob_record *blob);

/* Returns the id_hash of the frame of a CHUNK or BLOB. */
uint64_t wal__digest_hash(const struct wal__digest *digest);

#endif
