/*
 * line_delta.h - lines of a copied session file, encoded as differences from
 * lines of the original (SPEC.md 5.17).
 *
 * A chunk encodes some lines. It has four parts: operations, the text that they
 * insert, UUIDs in binary, and one check byte per line. The operations of a
 * line say from which line of the original it is built, and how.
 *
 * Invariant: any bytes may be decoded. What they refer to is within the chunk;
 * the caller checks it against the size of the original. No allocation, no I/O.
 *
 * Threads: no shared state.
 */
#ifndef AGENTWAL_CONVERT_COPY_LINE_DELTA_H
#define AGENTWAL_CONVERT_COPY_LINE_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "convert/copy/line_match.h"

enum {
    WAL__DELTA_LINES_MAX = 4096, /* per chunk */
    WAL__DELTA_PART_MAX =
        64 * 1024, /* bytes of its operations, and of its text */
    WAL__DELTA_UUIDS_MAX = 4096,
    WAL__DELTA_RECENT_COUNT = 16, /* UUIDs that an operation can repeat */
    WAL__DELTA_UUID_SIZE = 16,    /* bytes */
    WAL__DELTA_ID_MAX = 255       /* bytes of an entry's id */
};

/* The line of the original that a line refers to. */
enum wal__delta_line_kind {
    WAL__DELTA_LINE_NEXT = 0,  /* the next line of the original on the branch */
    WAL__DELTA_LINE_BY_ID = 1, /* the line of the entry with the given id */
    WAL__DELTA_LINE_ADDED = 2  /* none: an own line of the copy */
};

/* The operations that build a line. */
enum wal__delta_opcode {
    WAL__DELTA_OP_END = 0,         /* the line is complete */
    WAL__DELTA_OP_COPY = 1,        /* copy bytes of the original */
    WAL__DELTA_OP_SKIP = 2,        /* skip bytes of the original */
    WAL__DELTA_OP_INSERT = 3,      /* insert text of the chunk */
    WAL__DELTA_OP_UUID_NEW = 4,    /* insert the chunk's next UUID */
    WAL__DELTA_OP_UUID_RECENT = 5, /* insert a recent UUID */
    WAL__DELTA_OP_UUID_NEARBY =
        6 /* insert a UUID found near this position in the original */
};

struct wal__delta_recent {
    uint8_t items[WAL__DELTA_RECENT_COUNT]
                 [WAL__DELTA_UUID_SIZE]; /* newest first */
    size_t count;
};

/* Extends the CRC-32 `check`, 0 at first, by the data. The check byte of a line
 * is the lowest byte of its CRC. */
uint32_t wal__delta_crc(uint32_t check, const void *data, size_t size);

/* --------------------------------------------------------------- header --- */

enum {
    WAL__DELTA_HEADER_SIZE = 32 /* bytes before the parts of a chunk */
};

/* Operations and text are compressed; UUIDs and check bytes follow. */
struct wal__delta_header {
    uint32_t number; /* index of the chunk, from 0 */
    bool is_last;    /* the last chunk of the copy */
    uint32_t lines;
    uint32_t uuids;
    uint32_t ops; /* bytes, uncompressed */
    uint32_t ops_stored;
    uint32_t text;
    uint32_t text_stored;
};

void wal__delta_header_encode(const struct wal__delta_header *header,
                              uint8_t bytes[WAL__DELTA_HEADER_SIZE]);

/* Decodes the header of a chunk of `size` bytes. False when they are no chunk,
 * or one beyond the limits. */
bool wal__delta_header_decode(const void *bytes, uint64_t size,
                              struct wal__delta_header *header);

/* -------------------------------------------------------------- writing --- */

/* A line of the original, or the part of it that is in memory. */
struct wal__delta_source {
    const uint8_t *data;
    uint64_t at; /* offset of `data` in the line */
    size_t size; /* bytes in `data` */
    uint64_t total;
    /* Loads the bytes from `offset` on into `data`; NULL: all are loaded. */
    bool (*fill)(struct wal__delta_source *source, uint64_t offset);
};

/* A chunk that is being encoded. Zeroed: empty. */
struct wal__delta_chunk {
    uint8_t ops[WAL__DELTA_PART_MAX];
    uint8_t text[WAL__DELTA_PART_MAX];
    uint8_t uuids[WAL__DELTA_UUIDS_MAX][WAL__DELTA_UUID_SIZE];
    uint8_t checks[WAL__DELTA_LINES_MAX];
    size_t ops_size;
    size_t text_size;
    size_t uuid_count;
    size_t line_count;
    struct wal__delta_recent recent;
};

enum wal__delta_status {
    WAL__DELTA_OK = 0,
    WAL__DELTA_FULL,     /* the line does not fit in the chunk */
    WAL__DELTA_DIFFERENT /* the line has too little in common */
};

/* Encodes a line as differences from a line of the original. `id`: of its
 * entry, or NULL if it is the next line. The chunk is unchanged unless
 * WAL__DELTA_OK. */
enum wal__delta_status wal__delta_encode_line(struct wal__delta_chunk *chunk,
                                              const uint8_t *line, size_t size,
                                              struct wal__delta_source *source,
                                              const void *id, size_t id_size);

/* Encodes that the copy's next own line comes here. */
enum wal__delta_status wal__delta_encode_added(struct wal__delta_chunk *chunk);

/* -------------------------------------------------------------- reading --- */

struct wal__delta_span {
    const uint8_t *data;
    size_t size;
};

/* A chunk that is being decoded; the parts are borrowed. */
struct wal__delta_reader {
    struct wal__delta_span ops;
    struct wal__delta_span text;
    struct wal__delta_span uuids;
    struct wal__delta_span checks; /* one per remaining line */
    struct wal__delta_recent recent;
    uint8_t id[WAL__DELTA_ID_MAX]; /* of the entry that the line refers to */
    size_t id_size;
    uint8_t check; /* check byte of the line */
    uint8_t uuid[WAL__UUID_TEXT_SIZE];
};

struct wal__delta_op {
    enum wal__delta_opcode opcode; /* END, COPY, SKIP, INSERT or UUID_NEARBY */
    uint64_t size;                 /* of COPY and SKIP */
    int64_t offset; /* UUID_NEARBY: relative to the position in the original */
    struct wal__delta_span text;
};

/* Starts the next line; checks.size must not be 0. False: the chunk is
 * invalid. */
bool wal__delta_decode_line(struct wal__delta_reader *reader,
                            enum wal__delta_line_kind *kind);

/* Decodes the next operation of a line that is not ADDED; END is the last.
 * False: the chunk is invalid. Its text is valid until the next call. */
bool wal__delta_decode_op(struct wal__delta_reader *reader,
                          struct wal__delta_op *op);

#endif
