/*
 * frame.h - the frame: a 48-byte header and its payload (SPEC.md 2.3); and BLOCK: the records of a
 * rewritten segment, several compressed together (2.23).
 *
 * A record's offset in such a segment is that of its BLOCK plus its rank there, so that a position
 * names both.
 *
 * Invariant: a decoded header's sizes are inside the bytes it was given, so that no caller has to
 * bound them again. Whatever the bytes of a BLOCK are, only the payload is read and only raw_size
 * bytes are written. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_FRAME_H
#define AGENTWAL_FORMAT_SEGMENT_FRAME_H

#include <stdbool.h>

#include "format/bytes/bytes.h"

enum { WAL__FRAME_SIZE = 48, WAL__FRAME_ALIGN = 8 };

/* Limits of a payload's size, stored and decompressed (SPEC.md 2.3). */
enum {
    WAL__FRAME_PAYLOAD_MAX = 2 * 1024 * 1024,
    WAL__FRAME_ENTRY_MAX = 18 * 1024 * 1024, /* ENTRY and DOC: a payload and
                                              * its fields */
    WAL__FRAME_BLOCK_MAX = 19 * 1024 * 1024, /* a record and its BLOCK */
    WAL__FRAME_INDEX_MAX = 64 * 1024 * 1024, /* size of a segment */
    WAL__FRAME_LZ4_RATIO_MAX = 255,
    /* What encryption adds to a payload (SPEC.md 8.2). */
    WAL__FRAME_CIPHER_SIZE = 36
};

enum wal__frame_type {
    WAL__FRAME_NONE = 0,
    WAL__FRAME_OPEN = 1,
    WAL__FRAME_SESSION = 2,
    WAL__FRAME_ENTRY = 3,
    WAL__FRAME_FORK = 4,
    WAL__FRAME_HEAD = 5,
    WAL__FRAME_DOC = 6,
    WAL__FRAME_DOC_DELETE = 7,
    WAL__FRAME_REDACT = 8,
    WAL__FRAME_TOMBSTONE = 9,
    WAL__FRAME_CHUNK = 10,
    WAL__FRAME_BLOB = 11,
    WAL__FRAME_COMMIT = 12,
    WAL__FRAME_INDEX = 13,
    WAL__FRAME_SEAL = 14,
    WAL__FRAME_ACCEPT = 15,
    WAL__FRAME_BLOCK = 16,
    WAL__FRAME_RESTORE = 17
};

enum wal__frame_flag {
    WAL__FRAME_LZ4 = 1,
    WAL__FRAME_FIRST = 2,
    WAL__FRAME_LAST = 4,
    WAL__FRAME_REWRITTEN = 8,
    WAL__FRAME_IGNORABLE = 16,
    WAL__FRAME_MOVES_HEAD = 32, /* ENTRY: it became its stream's head */
    WAL__FRAME_PROVISIONAL = 64 /* ENTRY: a delta, which no record names */
};

struct wal__frame {
    uint32_t header_crc;
    uint32_t data_crc;
    uint32_t stored_size;
    uint32_t raw_size;
    uint8_t type; /* enum wal__frame_type, or an ignorable unknown */
    uint8_t flags;
    uint8_t stream;
    uint8_t kind;
    uint32_t session;
    uint64_t sequence;
    uint64_t parent;
    uint64_t id_hash;
};

/* Returns the bytes of a frame in its segment: header, payload, padding. */
static inline uint64_t wal__frame_total_size(uint32_t stored_size)
{
    return WAL__FRAME_SIZE + (((uint64_t)stored_size + 7) & ~(uint64_t)7);
}

/* Whether frames of the type have a sequence number. Unknown types do. */
bool wal__frame_is_sequenced(uint8_t type);

/* Whether frames of the type are encrypted where the segment is (SPEC.md 8.2). */
bool wal__frame_is_secret(uint8_t type);

/* Returns the name in SPEC.md, e.g. "ENTRY"; "UNKNOWN" for other types. */
const char *wal__frame_type_name(uint8_t type);

/* Writes WAL__FRAME_SIZE bytes to out and sets frame->header_crc. data_crc must be set. `offset` is
 * the frame's in its segment. */
void wal__frame_encode(struct wal__frame *frame, uint64_t salt, uint64_t offset, uint8_t *out);

/*
 * Decodes the header at `at`, which has WAL__FRAME_SIZE readable bytes if
 * `size`, the bytes up to the end of the segment, is at least that. Applies
 * rules 1 to 5 of SPEC.md 2.3 in that order; sets *frame only on WAL__FMT_OK.
 * WAL__FMT_TYPE: the header's checksum is valid, so a newer library wrote it.
 */
enum wal__fmt wal__frame_decode(const uint8_t *at, uint64_t size, uint64_t salt, uint64_t offset,
                                struct wal__frame *frame);

/* Applies rules 6 and 7: the stored payload and its padding. wal__frame_total_size bytes from the
 * frame's start must be readable. */
enum wal__fmt wal__frame_check_data(const struct wal__frame *frame, const uint8_t *payload);

/* Returns the chain CRC (SPEC.md 3.2) continued over one frame. */
uint32_t wal__frame_chain_crc(uint32_t chain, const struct wal__frame *frame);

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
enum wal__fmt wal__block_decode(const struct wal__frame *frame, const uint8_t *payload,
                                struct wal__block *block);

/* Decompresses a compressed block to block->raw_size bytes at out. WAL__FMT_FIELD when that is not
 * its size. */
enum wal__fmt wal__block_decompress(const struct wal__block *block, uint8_t *out);

/* Finds the bytes of the record with this rank by the sizes of those before it: from the first byte
 * of its frame to the end of the records. Its frame is not verified. WAL__FMT_SHORT when there is
 * none. */
enum wal__fmt wal__block_find(struct wal__span records, uint32_t rank, struct wal__span *found);

/* Finds the record at `offset`, and verifies its checksums. WAL__FMT_SHORT when there is none. */
enum wal__fmt wal__block_record(struct wal__span records, uint64_t salt, uint64_t offset,
                                struct wal__frame *frame, struct wal__span *payload);

/* Walks the records of a block. */
struct wal__block_cursor {
    struct wal__span left; /* records not read yet */
    uint64_t salt;         /* of the segment */
    uint64_t offset;       /* of the next record */
    uint32_t count;        /* of records left */
};

/* Begins at the first record; `records` are those of the BLOCK at `offset`. */
void wal__block_cursor_begin(struct wal__block_cursor *cursor, struct wal__span records,
                             uint32_t count, uint64_t salt, uint64_t offset);

/* The next record, with its checksums verified, and its payload.
 * WAL__FMT_ZERO after the last one; any other fault ends the walk. */
enum wal__fmt wal__block_cursor_next(struct wal__block_cursor *cursor, struct wal__frame *frame,
                                     struct wal__span *payload);

/* Bytes of a BLOCK's payload with data_size bytes of data: what fills its frame, with what
 * encryption adds to it (0: nothing), to a multiple of WAL__BLOCK_ALIGN. */
uint32_t wal__block_payload_size(uint32_t data_size, uint32_t cipher_size);

/* Compresses `raw` and writes the payload of a BLOCK to out, which has room for the payload of
 * raw.size bytes: raw where compression would not save a sixteenth, or when `level` is 0. Levels
 * above 1 are those of LZ4 HC. Sets stored_size, raw_size, flags and data_crc of *frame. */
void wal__block_encode(struct wal__span raw, uint32_t count, int level, uint32_t cipher_size,
                       struct wal__frame *frame, uint8_t *out);

#endif
