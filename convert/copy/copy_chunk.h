/*
 * copy_chunk.h - decodes the chunks of a copy (SPEC.md 5.17): how lines are
 * made from lines of the original.
 *
 * Invariant: any bytes may be decoded. What they refer to is within the chunk;
 * the caller checks it against the size of the original.
 *
 * Threads: no shared state.
 */
#ifndef AGENTWAL_CONVERT_COPY_COPY_CHUNK_H
#define AGENTWAL_CONVERT_COPY_COPY_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"

struct wal__heap;

enum {
    WAL__COPY_PART_MAX = 64 * 1024, /* bytes of the steps, and of the text */
    WAL__COPY_UUID_SIZE = 16,
    WAL__COPY_UUID_TEXT_SIZE = 36,
    WAL__COPY_RECENT_MAX = 16, /* UUIDs that a step can repeat */
    WAL__COPY_ID_MAX = 255     /* bytes of an entry's id */
};

enum wal__copy_line_kind {
    WAL__COPY_LINE_NEXT = 0,  /* from the next line of the branch */
    WAL__COPY_LINE_NAMED = 1, /* from the line of the entry with the given id */
    WAL__COPY_LINE_OWN = 2    /* the session's next own line */
};

enum wal__copy_opcode {
    WAL__COPY_END = 0, /* the line is complete */
    WAL__COPY_BYTES = 1,
    WAL__COPY_SKIP = 2,
    WAL__COPY_TEXT = 3,
    WAL__COPY_UUID_NEW = 4,
    WAL__COPY_UUID_RECENT = 5,
    WAL__COPY_UUID_NEARBY = 6
};

/* A position in a chunk; the parts are borrowed. */
struct wal__copy_reader {
    struct wal_slice steps;
    struct wal_slice text;
    struct wal_slice uuids;
    struct wal_slice checks; /* one byte per remaining line */
    uint8_t recent[WAL__COPY_RECENT_MAX]
                  [WAL__COPY_UUID_SIZE]; /* newest first */
    size_t recent_count;
    uint8_t id[WAL__COPY_ID_MAX]; /* of the entry that the line names */
    size_t id_size;
    uint8_t check; /* of the line: the lowest byte of its CRC-32 */
    char uuid[WAL__COPY_UUID_TEXT_SIZE + 1];
};

struct wal__copy_step {
    enum wal__copy_opcode opcode; /* END, BYTES, SKIP, TEXT or UUID_NEARBY */
    uint64_t size;                /* of BYTES and SKIP */
    int64_t offset;        /* UUID_NEARBY: from the position in the original */
    struct wal_slice text; /* valid until the next step */
};

/* A decoded chunk. Zeroed: none. */
struct wal__copy_chunk {
    uint32_t number;                /* index of the chunk, from 0 */
    bool is_last;                   /* the last chunk of the copy */
    struct wal__copy_reader reader; /* borrows the payload and `memory` */
    uint8_t *memory;
    const struct wal__heap *heap; /* NULL: the C library's */
};

/* Decodes a payload, which must outlive the chunk. WAL_ECORRUPT, WAL_ENOMEM. */
enum wal_status wal__copy_chunk_decode(struct wal__copy_chunk *chunk,
                                       struct wal_slice payload);
void wal__copy_chunk_deinit(struct wal__copy_chunk *chunk);

/* Whether all steps of a chunk are valid, as far as that can be checked without
 * the original. */
bool wal__copy_chunk_is_valid(struct wal_slice payload);

/* Starts the next line; checks.size must not be 0. False: the chunk is
 * invalid. */
bool wal__copy_read_line(struct wal__copy_reader *reader,
                         enum wal__copy_line_kind *kind);

/* Decodes the next step of a line that is not OWN; END is the last. False: the
 * chunk is invalid. */
bool wal__copy_read_step(struct wal__copy_reader *reader,
                         struct wal__copy_step *step);

#endif
