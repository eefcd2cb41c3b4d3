/*
 * block.h - BLOCK: the records of a rewritten segment, several compressed
 * together (SPEC.md 2.23).
 *
 * A record's offset in its segment is that of its BLOCK plus its rank there, so
 * that a position names both.
 *
 * Invariant: whatever the bytes are, only the payload is read and only raw_size
 * bytes are written. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_BLOCK_H
#define AGENTWAL_FORMAT_SEGMENT_BLOCK_H

#include "format/segment/frame.h"

enum {
    WAL__BLOCK_ALIGN = 512, /* of a BLOCK's offset, and of its size */
    WAL__BLOCK_RECORDS_MAX = 512,
    WAL__BLOCK_HEAD_SIZE = 8
};

/* The offset of the BLOCK that holds a record, and the record's rank there. */
static inline uint64_t wal__block_offset(uint64_t record_offset)
{
    return record_offset & ~(uint64_t)(WAL__BLOCK_ALIGN - 1);
}

static inline uint32_t wal__block_rank(uint64_t record_offset)
{
    return (uint32_t)(record_offset & (WAL__BLOCK_ALIGN - 1));
}

/* A decoded payload. */
struct wal__block {
    struct wal__span data; /* as stored */
    uint32_t count;        /* of records */
    uint32_t raw_size;     /* bytes of the records */
    bool is_compressed;
};

/* Decodes the payload of a BLOCK frame whose checksums were verified. */
enum wal__fmt wal__block_decode(const struct wal__frame *frame,
                                const uint8_t *payload,
                                struct wal__block *block);

/* Decompresses a compressed block to block->raw_size bytes at out.
 * WAL__FMT_FIELD when that is not its size. */
enum wal__fmt wal__block_decompress(const struct wal__block *block,
                                    uint8_t *out);

/* Finds the bytes of the record with this rank by the sizes of those before
 * it: from the first byte of its frame to the end of the records. Its frame is
 * not verified. WAL__FMT_SHORT when there is none. */
enum wal__fmt wal__block_find(struct wal__span records, uint32_t rank,
                              struct wal__span *found);

/* Finds the record at `offset`, and verifies its checksums. WAL__FMT_SHORT when
 * there is none. */
enum wal__fmt wal__block_record(struct wal__span records, uint64_t salt,
                                uint64_t offset, struct wal__frame *frame,
                                struct wal__span *payload);

/* Walks the records of a block. */
struct wal__block_cursor {
    struct wal__span left; /* records not read yet */
    uint64_t salt;         /* of the segment */
    uint64_t offset;       /* of the next record */
    uint32_t count;        /* of records left */
};

/* Begins at the first record; `records` are those of the BLOCK at `offset`. */
void wal__block_cursor_begin(struct wal__block_cursor *cursor,
                             struct wal__span records, uint32_t count,
                             uint64_t salt, uint64_t offset);
/* The next record, with its checksums verified, and its payload.
 * WAL__FMT_ZERO after the last one; any other fault ends the walk. */
enum wal__fmt wal__block_cursor_next(struct wal__block_cursor *cursor,
                                     struct wal__frame *frame,
                                     struct wal__span *payload);

/* Bytes of a BLOCK's payload with data_size bytes of data: what fills its frame
 * to a multiple of WAL__BLOCK_ALIGN. */
uint32_t wal__block_payload_size(uint32_t data_size);

/* Compresses `raw` and writes the payload of a BLOCK to out, which has room for
 * wal__block_payload_size(raw.size) bytes: raw where compression would not save
 * a sixteenth, or when `level` is 0. Levels above 1 are those of LZ4 HC. Sets
 * stored_size, raw_size, flags and data_crc of *frame. */
void wal__block_encode(struct wal__span raw, uint32_t count, int level,
                       struct wal__frame *frame, uint8_t *out);

#endif
