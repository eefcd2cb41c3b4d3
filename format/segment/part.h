/*
 * part.h - a part of a store: its head and its table of ranges (SPEC.md 11.1).
 *
 *   head | ranges | bytes of the ranges | SHA-256 of everything before
 *
 * Threads: any.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_PART_H
#define AGENTWAL_FORMAT_SEGMENT_PART_H

#include "format/segment/segment_fmt.h"

enum {
    WAL__PART_VERSION = 1,
    WAL__PART_STREAMS = 2, /* log, content */
    WAL__PART_FIXED_SIZE = 264,
    WAL__PART_RANGE_SIZE = 32,
    WAL__PART_RANGES_MAX = 4,
    WAL__PART_DIGEST_SIZE = 32
};

#define WAL__PART_SEGMENT 1u /* a whole segment that has ended */

/* A place in a stream, between groups; all zero: the beginning. */
struct wal__part_place {
    uint64_t segment;
    uint64_t salt;
    uint64_t offset; /* 0: nothing of the segment, not even its header */
    uint64_t sequence;
    uint32_t chain;
};

/* Bytes [offset, offset + size) of a segment. */
struct wal__part_range {
    uint32_t stream; /* 0 log, 1 content */
    uint64_t segment;
    uint64_t offset;
    uint64_t size;
};

struct wal__part_head {
    uint32_t flags;
    struct wal__manifest manifest; /* of the store; generation is 0 */
    uint64_t size;                 /* of the part */
    struct wal__part_place before[WAL__PART_STREAMS];
    struct wal__part_place after[WAL__PART_STREAMS];
    uint32_t keys_size; /* bytes of KEYS, which are before the digest; 0: none */
    uint32_t range_count;
    struct wal__part_range ranges[WAL__PART_RANGES_MAX];
};

/* Bytes of the head with its table. */
static inline size_t wal__part_head_size(uint32_t range_count)
{
    return WAL__PART_FIXED_SIZE + (size_t)WAL__PART_RANGE_SIZE * range_count;
}

/* Bytes of a part with these ranges, and KEYS. */
uint64_t wal__part_size(const struct wal__part_head *head);

/* The offset of KEYS in the part. */
uint64_t wal__part_keys_offset(const struct wal__part_head *head);

/* Writes wal__part_head_size bytes. */
void wal__part_head_encode(const struct wal__part_head *head, uint8_t *out);

/* Decodes the head and its table, of at most `size` bytes. Ranges are within segments, of the
 * streams, in order, and add up to head->size. */
enum wal__fmt wal__part_head_decode(const uint8_t *at, size_t size, struct wal__part_head *head);

#endif
