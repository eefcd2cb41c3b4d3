/*
 * record_blob.h - the payloads of CHUNK and BLOB, the records of the blob
 * stream (SPEC.md 2.18, 2.19), and the index of a pack segment (2.20).
 *
 * Content of 1 MiB at most is one CHUNK; larger content is cut into CHUNKs of
 * 1 MiB, the last one shorter, and a BLOB that lists them. Either is found by
 * the SHA-256 of its content. Encoders write exactly ..._size() bytes;
 * decoders bound every size by the payload before they use it.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_RECORD_BLOB_H
#define AGENTWAL_FORMAT_SEGMENT_RECORD_BLOB_H

#include <stdbool.h>

#include "format/bytes/fmt.h"

enum {
    WAL__DIGEST_SIZE = 32,
    WAL__CHUNK_MAX = 1024 * 1024,
    WAL__CHUNK_DEPTH_MAX = 7,    /* chunks to decode before this one */
    WAL__CHUNK_BLOCK = 32768,    /* content of a block of WAL__CHUNK_DELTA */
    WAL__CHUNK_BLOCK_HEAD = 8,   /* before each block's bytes */
    WAL__CHUNK_WINDOW = 65536,   /* of the base that serves one block */
    WAL__BLOB_CHUNKS_MAX = 65472 /* a BLOB payload stays below 2 MiB */
};

/* SHA-256 of some content. */
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
    uint8_t depth;             /* 0 without a base, else one more than its */
    struct wal__digest base;   /* WAL__CHUNK_DELTA: of a chunk; else zeros */
    struct wal__span data;     /* encoded */
};

size_t wal__chunk_record_size(const struct wal__chunk_record *chunk);
/* Everything but the data: the bytes before it, and how many. */
size_t wal__chunk_record_encode_head(const struct wal__chunk_record *chunk,
                                     uint8_t *out);
enum wal__fmt wal__chunk_record_decode(struct wal__span payload,
                                       struct wal__chunk_record *chunk);

/* A block of WAL__CHUNK_DELTA: the next WAL__CHUNK_BLOCK bytes of the content,
 * or what is left of it. As LZ4 with the base's WAL__CHUNK_WINDOW bytes from
 * `window` on, as far as there are any, for its dictionary; stored as they are
 * when stored_size is the content's. */
struct wal__chunk_block {
    uint32_t stored_size;
    int32_t window; /* offset in the base's content; may be before it */
    struct wal__span stored;
};

void wal__chunk_block_encode_head(const struct wal__chunk_block *block,
                                  uint8_t *out);
/* Takes the first block of *data, of `size` bytes of content, off it. */
enum wal__fmt wal__chunk_block_decode(struct wal__span *data, uint32_t size,
                                      struct wal__chunk_block *block);

/* The part of the base's content that is the dictionary of a block. */
struct wal__span wal__chunk_window(struct wal__span base, int64_t begin);

/* Exactly chunk->size bytes to out; `base` is the content of the chunk it is
 * based on, of others not looked at. False: the data is not valid. The digest
 * is the caller's business. chunk_content.c */
bool wal__chunk_decode_content(const struct wal__chunk_record *chunk,
                               struct wal__span base, uint8_t *out);

struct wal__blob_record {
    struct wal__digest digest; /* of the content */
    uint64_t size;             /* above WAL__CHUNK_MAX */
    uint32_t chunk_count;
    const uint8_t *chunks; /* digests, one behind the other */
};

size_t wal__blob_record_size(const struct wal__blob_record *blob);
void wal__blob_record_encode(const struct wal__blob_record *blob, uint8_t *out);
enum wal__fmt wal__blob_record_decode(struct wal__span payload,
                                      struct wal__blob_record *blob);

/* id_hash of the frame of a CHUNK or BLOB. */
uint64_t wal__digest_hash(const struct wal__digest *digest);

#endif
