/*
 * line_delta.h - lines of a copied session file, told by those of the original
 * (SPEC.md 5.17).
 *
 * A chunk tells some lines. It has four parts: steps, the text that they put
 * in, UUIDs in binary, and a byte that checks each line. The steps of a line
 * say which line of the original it is made of, and how.
 *
 * Invariant: any bytes may be read; what they ask for stays within the bounds
 * of the chunk, and the caller checks it against those of the original. No
 * allocation, no I/O.
 *
 * Threads: no shared state.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_COPY_LINE_DELTA_H
#define AGENTWAL_ENGINE_CONVERT_COPY_LINE_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/convert/copy/line_match.h"

enum {
    WAL__DELTA_LINES_MAX = 4096,     /* of a chunk at most */
    WAL__DELTA_PART_MAX = 64 * 1024, /* bytes of its steps, and of its text */
    WAL__DELTA_UUIDS_MAX = 4096,
    WAL__DELTA_RECENT_COUNT = 16, /* UUIDs that can be named again */
    WAL__DELTA_UUID_SIZE = 16,    /* bytes of one */
    WAL__DELTA_ID_MAX = 255       /* of an entry */
};

/* What a line is made of. */
enum wal__delta_line_kind {
    WAL__DELTA_LINE_NEXT = 0,  /* the next line of the original on the branch */
    WAL__DELTA_LINE_BY_ID = 1, /* the line of an entry that is named */
    WAL__DELTA_LINE_ADDED = 2  /* it is a line of the copy's own */
};

/* What is done next. */
enum wal__delta_opcode {
    WAL__DELTA_OP_END = 0,         /* the line is complete */
    WAL__DELTA_OP_COPY = 1,        /* bytes of the original */
    WAL__DELTA_OP_SKIP = 2,        /* bytes of the original are left out */
    WAL__DELTA_OP_INSERT = 3,      /* text of the chunk */
    WAL__DELTA_OP_UUID_NEW = 4,    /* the chunk's next UUID */
    WAL__DELTA_OP_UUID_RECENT = 5, /* one that was there before */
    WAL__DELTA_OP_UUID_NEARBY =
        6 /* one that stands elsewhere in the original */
};

struct wal__delta_recent {
    uint8_t items[WAL__DELTA_RECENT_COUNT]
                 [WAL__DELTA_UUID_SIZE]; /* newest first */
    size_t count;
};

/* What a byte that checks a line is the lowest one of: of more of it after
 * `check`, which is 0 at first. */
uint32_t wal__delta_crc(uint32_t check, const void *data, size_t size);

/* -------------------------------------------------------------- header --- */

enum {
    WAL__DELTA_HEADER_SIZE = 32 /* bytes, before the parts of a chunk */
};

/* The steps and the text are stored compressed; behind them are UUIDs and
 * checks. */
struct wal__delta_header {
    uint32_t number; /* of the chunk, from 0 */
    bool is_last;    /* the copy ends with it */
    uint32_t lines;
    uint32_t uuids;
    uint32_t ops; /* bytes */
    uint32_t ops_stored;
    uint32_t text;
    uint32_t text_stored;
};

void wal__delta_header_encode(const struct wal__delta_header *header,
                              uint8_t bytes[WAL__DELTA_HEADER_SIZE]);

/* False when these `size` bytes, of which the header is the beginning, are no
 * chunk, or one beyond the limits. */
bool wal__delta_header_decode(const void *bytes, uint64_t size,
                              struct wal__delta_header *header);

/* ------------------------------------------------------------- writing --- */

/* A line of the original, or the part of it that is in memory. */
struct wal__delta_source {
    const uint8_t *data;
    uint64_t at; /* offset of data in the line */
    size_t size; /* bytes of data */
    uint64_t total;
    /* Brings `offset` and what follows into data; null: all of it is there. */
    bool (*fill)(struct wal__delta_source *source, uint64_t offset);
};

/* A chunk that is being made. Zeroed: an empty one. */
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
    WAL__DELTA_FULL,     /* the chunk has no room for it */
    WAL__DELTA_DIFFERENT /* too little of it is the original's */
};

/* Tells a line by one of the original. `id`: of its entry, where that is not
 * the next one; else null. The chunk is as it was unless OK. */
enum wal__delta_status wal__delta_encode_line(struct wal__delta_chunk *chunk,
                                              const uint8_t *line, size_t size,
                                              struct wal__delta_source *source,
                                              const void *id, size_t id_size);

/* Says that the copy's next own line stands here. */
enum wal__delta_status wal__delta_encode_added(struct wal__delta_chunk *chunk);

/* ------------------------------------------------------------- reading --- */

struct wal__delta_span {
    const uint8_t *data;
    size_t size;
};

/* A chunk that is read: the parts are borrowed. */
struct wal__delta_reader {
    struct wal__delta_span ops;
    struct wal__delta_span text;
    struct wal__delta_span uuids;
    struct wal__delta_span checks; /* one for each line that is left */
    struct wal__delta_recent recent;
    uint8_t id[WAL__DELTA_ID_MAX]; /* of the entry that is named */
    size_t id_size;
    uint8_t check; /* of the line */
    uint8_t uuid[WAL__UUID_TEXT_SIZE];
};

struct wal__delta_op {
    enum wal__delta_opcode opcode; /* END, COPY, SKIP, TEXT or UUID_HERE */
    uint64_t size;                 /* COPY, SKIP */
    int64_t offset; /* UUID_HERE: from the place in the original */
    struct wal__delta_span text;
};

/* Begins the next line; false: the chunk is not valid. There must be one:
 * checks.size tells. */
bool wal__delta_decode_line(struct wal__delta_reader *reader,
                            enum wal__delta_line_kind *kind);

/* The next thing to do for a line that is not OWN, END being the last; false:
 * the chunk is not valid. The text holds until the next call. */
bool wal__delta_decode_op(struct wal__delta_reader *reader,
                          struct wal__delta_op *piece);

#endif
