/*
 * copy.h - reads sessions that are stored as a copy of another session's file
 * (SPEC.md 5.17).
 *
 * Such a session is a fork. It shares the entries of lines that are also in the
 * original's file. Chunks, which are entries of the stream WAL__COPY_STREAM,
 * describe how each line of the copy is made from a shared line. Lines without
 * a counterpart in the original are own entries of the session. No import
 * writes chunks any more.
 *
 * Invariant: lines are returned in the order of the copy's file, as the bytes
 * that were imported. When the heap has no memory for a line, the call returns
 * WAL_ENOMEM.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_COPY_COPY_H
#define AGENTWAL_CONVERT_COPY_COPY_H

#include "agentwal.h"
#include "convert/copy/copy_chunk.h"

#define WAL__COPY_STREAM 253
#define WAL__COPY_TYPE   "walconv_copy" /* type of a chunk's entry */

struct wal__copy {
    const struct wal__heap *heap; /* NULL: the C library's */
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
    /* sequence number of the first chunk: shared entries are before it, own
     * entries after it */
    uint64_t first_sequence;
    uint32_t chunk_count;
    struct wal__copy_chunk chunk;
    struct wal__copy_reader line; /* of the last returned line */
    uint8_t *text;                /* of the last returned line */
    size_t size;
    size_t capacity;
};

/* Starts at the first line. *is_copy: whether the session is a copy; if not,
 * nothing is open. `flags`: of a cursor over the session's own entries. Reads
 * the session's info, which invalidates slices of earlier infos. */
enum wal_status wal__copy_open(struct wal__copy *copy,
                               struct wal_session *session,
                               const struct wal__heap *heap, uint32_t flags,
                               bool *is_copy, struct wal_error *error);
void wal__copy_close(struct wal__copy *copy);

/*
 * Returns the next line of the copied part, with own entries where they are;
 * then the other own entries; then WAL_END. A shared entry has the copy's
 * payload, which is valid until the next call, and {"odd":true} as the only
 * member of its meta. An out-of-line payload stays out of line; read it with
 * wal__copy_read_payload. WAL_ECORRUPT and WAL_EIO concern one line, or the
 * lines of one chunk; the next call continues after them.
 */
enum wal_status wal__copy_next(struct wal__copy *copy, struct wal_entry *entry,
                               struct wal_error *error);

/* Passes the out-of-line payload of the last returned line, which is shared, to
 * sink, in pieces of at most 1 MiB; sink returns false to stop. */
enum wal_status
wal__copy_read_payload(struct wal__copy *copy, struct wal_store *store,
                       const struct wal_entry *entry,
                       bool (*sink)(void *ctx, const void *data, size_t size),
                       void *ctx, struct wal_error *error);

#endif
