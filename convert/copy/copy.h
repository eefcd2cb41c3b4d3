/*
 * copy.h - reads sessions that are stored as a copy of another session's file (SPEC.md 5.17).
 *
 * Such a session is a fork. It shares the entries of lines that are also in the original's file.
 * Chunks, which are entries of the stream WAL__COPY_STREAM, describe how each line of the copy is
 * made from a shared line. Lines without a counterpart in the original are own entries of the
 * session. No import writes chunks any more.
 *
 * Invariant: lines are returned in the order of the copy's file, as the bytes that were imported.
 * When the heap has no memory for a line, the call returns WAL_ENOMEM. Any bytes may be decoded as
 * a chunk; what they refer to is within the chunk, and the caller checks it against the size of the
 * original.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_COPY_COPY_H
#define AGENTWAL_CONVERT_COPY_COPY_H

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
    struct wal_slice checks;                                   /* one byte per remaining line */
    uint8_t recent[WAL__COPY_RECENT_MAX][WAL__COPY_UUID_SIZE]; /* newest first */
    size_t recent_count;
    uint8_t id[WAL__COPY_ID_MAX]; /* of the entry that the line names */
    size_t id_size;
    uint8_t check; /* of the line: the lowest byte of its CRC-32 */
    char uuid[WAL__COPY_UUID_TEXT_SIZE + 1];
};

struct wal__copy_step {
    enum wal__copy_opcode opcode; /* END, BYTES, SKIP, TEXT or UUID_NEARBY */
    uint64_t size;                /* of BYTES and SKIP */
    int64_t offset;               /* UUID_NEARBY: from the position in the original */
    struct wal_slice text;        /* valid until the next step */
};

/* A decoded chunk. Zeroed: none. */
struct wal__copy_chunk {
    uint32_t number;                /* index of the chunk, from 0 */
    bool is_last;                   /* the last chunk of the copy */
    struct wal__copy_reader reader; /* borrows the payload and `memory` */
    uint8_t *memory;
    const struct wal__heap *heap;
};

/* Whether all steps of a chunk are valid, as far as that can be checked without the original. */
bool wal__copy_chunk_is_valid(struct wal_slice payload);

/* Starts the next line; checks.size must not be 0. False: the chunk is invalid. */
bool wal__copy_read_line(struct wal__copy_reader *reader, enum wal__copy_line_kind *kind);

/* Decodes the next step of a line that is not OWN; END is the last. False: the chunk is invalid. */
bool wal__copy_read_step(struct wal__copy_reader *reader, struct wal__copy_step *step);

#define WAL__COPY_STREAM 253
#define WAL__COPY_TYPE   "walconv_copy" /* type of a chunk's entry */

struct wal__copy {
    const struct wal__heap *heap; /* NULL: it is not open */
    struct wal_entry_cursor *chunks;
    struct wal_entry_cursor *branch; /* shared entries */
    /* Looks up ids: the next line of the branch must outlive that. */
    struct wal_entry_cursor *named;
    struct wal_entry_cursor *own; /* shared ones may come first */
    struct wal_entry base;        /* the next shared line, if has_base */
    bool has_base;
    bool has_ended;   /* no chunk describes a further line */
    bool is_complete; /* the chunk that ends the copy was read */
    bool is_own_due;  /* the next line is the session's next own line */
    bool is_shared;   /* the last returned entry is made from a shared line */
    /* sequence number of the first chunk: shared entries are before it, own entries after it */
    uint64_t first_sequence;
    uint32_t chunk_count;
    struct wal__copy_chunk chunk;
    struct wal__copy_reader line; /* of the last returned line */
    uint8_t *text;                /* of the last returned line */
    size_t size;
    size_t capacity;
};

/* Starts at the first line. *is_copy: whether the session is a copy; if not, nothing is open.
 * `flags`: of a cursor over the session's own entries; heap NULL: the C library's. Reads the
 * session's info, which invalidates slices of earlier infos. */
enum wal_status wal__copy_open(struct wal__copy *copy, struct wal_session *session,
                               const struct wal__heap *heap, uint32_t flags, bool *is_copy,
                               struct wal_error *error);
void wal__copy_close(struct wal__copy *copy);

/*
 * Returns the next line of the copied part, with own entries where they are; then the other own
 * entries; then WAL_END. A shared entry has the copy's payload, which is valid until the next call,
 * and {"odd":true} as the only member of its meta. An out-of-line payload stays out of line; read
 * it with wal__copy_read_payload. WAL_ECORRUPT and WAL_EIO concern one line, or the lines of one
 * chunk; the next call continues after them.
 */
enum wal_status wal__copy_next(struct wal__copy *copy, struct wal_entry *entry,
                               struct wal_error *error);

/* Passes the out-of-line payload of the last returned line, which is shared, to sink, in pieces of
 * at most 1 MiB; sink returns false to stop. */
enum wal_status wal__copy_read_payload(struct wal__copy *copy, struct wal_store *store,
                                       const struct wal_entry *entry,
                                       bool (*sink)(void *ctx, const void *data, size_t size),
                                       void *ctx, struct wal_error *error);

#endif
