/*
 * copy.h - sessions that began as a copy of another's file (SPEC.md 5.17).
 *
 * Such a session is a fork: entries that its file shares with the original are
 * shared, and what the file says otherwise is told by chunks, entries of the
 * stream WAL__COPY_STREAM. Lines that the original has not are entries of its
 * own.
 *
 * Invariant: lines are given in the order of the copy's file, as the bytes that
 * were read when it was imported. What has no place in the heap of whoever
 * reads is answered by WAL_ENOMEM.
 *
 * Threads: one at a time.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_COPY_COPY_H
#define AGENTWAL_ENGINE_CONVERT_COPY_COPY_H

#include "agentwal.h"
#include "engine/convert/copy/copy_chunk.h"

#define WAL__COPY_STREAM 253
#define WAL__COPY_TYPE   "walconv_copy" /* of a chunk's entry */

struct wal__copy {
    struct wal_session *session;
    const struct wal__heap *heap; /* null: the C library's */
    struct wal_entry_cursor *chunks;
    struct wal_entry_cursor
        *branch;           /* entries that are shared, and behind them own */
    struct wal_entry base; /* the shared line that is next, or was held */
    bool has_base;
    bool has_ended;        /* no line is left that is told by a chunk */
    bool is_complete;      /* the chunk that ends the copy was read */
    bool return_originals; /* in: lines as the original has them */
    /* sequence number of the first chunk: what is shared is before it, what is
     * own behind */
    uint64_t first_sequence;
    uint32_t chunk_count;
    struct wal__copy_chunk chunk;
    struct wal__delta_reader line; /* at the steps of the line given last */
    uint8_t *text;                 /* of the line given last */
    size_t capacity;
};

/* Begins at the first line. *is_copy: whether the session is one; if not,
 * nothing is open. `flags`: WAL_ENTRY_CURSOR_DURABLE, or 0. */
enum wal_status wal__copy_open(struct wal__copy *copy,
                               struct wal_session *session,
                               const struct wal__heap *heap, uint32_t flags,
                               bool *is_copy, struct wal_error *error);
void wal__copy_close(struct wal__copy *copy);

/* Whether the session is a copy, and was imported to the end of what it
 * shares. */
enum wal_status wal__copy_inspect(struct wal_session *session, bool *is_copy,
                                  bool *is_complete, struct wal_error *error);

/*
 * The next line of the copied part, or WAL_END. *is_own: the next own entry of
 * the session that is a line stands here; *entry is untouched. Else *entry is
 * the shared entry with the copy's payload, which holds until the next call,
 * and {"odd":true} alone of its meta. One that is out of line stays so, and is
 * to be read by wal__copy_read_payload. WAL_ECORRUPT and WAL_EIO concern one
 * line, or the lines of one chunk; the next call goes on behind.
 */
enum wal_status wal__copy_next(struct wal__copy *copy, struct wal_entry *entry,
                               bool *is_own, struct wal_error *error);

/* Passes the payload of the line given last, which is out of line, in pieces
 * of 1 MiB at most; sink answers false when no more is wanted. */
enum wal_status
wal__copy_read_payload(struct wal__copy *copy, struct wal_store *store,
                       const struct wal_entry *entry,
                       bool (*sink)(void *ctx, const void *data, size_t size),
                       void *ctx, struct wal_error *error);

/* Starts reading the session's own entries of the conversation; entries whose
 * sequence number is below copy->first_sequence may come before them. `flags`:
 * of the iterator. Asks for the session's status: slices of it that were given
 * before are gone. */
enum wal_status wal__copy_open_own(struct wal__copy *copy, uint32_t flags,
                                   struct wal_entry_cursor **iter,
                                   struct wal_error *error);

#endif
