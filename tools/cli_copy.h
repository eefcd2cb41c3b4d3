/*
 * cli_copy.h - sessions that began as a copy of another's file (SPEC.md 5.17).
 *
 * Such a session is a fork: entries that its file shares with the original are
 * shared, and what the file says otherwise is told by chunks, entries of the
 * stream CLI_COPY_STREAM. Lines that the original has not are entries of its
 * own.
 *
 * Invariant: lines are given in the order of the copy's file, as the bytes that
 * were read when it was imported. Depends on agentwal.h, format/jsonl and zlib
 * alone.
 *
 * Threads: one at a time.
 */
#ifndef AGENTWAL_TOOLS_CLI_COPY_H
#define AGENTWAL_TOOLS_CLI_COPY_H

#include "agentwal.h"
#include "tools/cli_copy_chunk.h"

#define CLI_COPY_STREAM 253
#define CLI_COPY_TYPE   "walconv_copy" /* of a chunk's entry */

struct cli_copy {
    struct wal_session *session;
    struct wal_iter *chunks;
    struct wal_iter *branch; /* entries that are shared, and behind them own */
    struct wal_entry base;   /* the shared line that is next, or was held */
    bool has_base;
    bool has_ended;       /* no line is left that is told by a chunk */
    bool is_whole;        /* the chunk that ends the copy was read */
    bool gives_originals; /* in: lines as the original has them */
    uint64_t begin; /* sequence number of the first chunk: what is shared is
                     * before it, what is own behind */
    uint32_t chunk_count;
    struct cli_copy_chunk chunk;
    struct wal__delta_reader line; /* at the steps of the line given last */
    uint8_t *text;                 /* of the line given last */
    size_t capacity;
};

/* Begins at the first line. *is_copy: whether the session is one; if not,
 * nothing is open. */
enum wal_status cli_copy_open(struct cli_copy *copy,
                              struct wal_session *session, bool *is_copy,
                              struct wal_error *error);
void cli_copy_close(struct cli_copy *copy);

/* Whether the session is a copy, and was imported to the end of what it
 * shares. */
enum wal_status cli_copy_look(struct wal_session *session, bool *is_copy,
                              bool *is_whole, struct wal_error *error);

/*
 * The next line of the copied part, or WAL_END. *is_own: the next own entry of
 * the session that is a line stands here; *entry is untouched. Else *entry is
 * the shared entry with the copy's payload, which holds until the next call,
 * and {"odd":true} alone of its meta. One that is out of line stays so, and is
 * to be read by cli_copy_pass. WAL_ECORRUPT and WAL_EIO concern one line, or
 * the lines of one chunk; the next call goes on behind.
 */
enum wal_status cli_copy_next(struct cli_copy *copy, struct wal_entry *entry,
                              bool *is_own, struct wal_error *error);

/* Passes the payload of the line given last, which is out of line, in pieces
 * of 1 MiB at most; take answers false when no more is wanted. */
enum wal_status cli_copy_pass(struct cli_copy *copy, struct wal_store *store,
                              const struct wal_entry *entry,
                              bool (*take)(void *ctx, const void *data,
                                           size_t size),
                              void *ctx, struct wal_error *error);

/* Starts reading the session's own entries of the conversation; entries whose
 * sequence number is below copy->begin may come before them. Asks for the
 * session's status: slices of it that were given before are gone. */
enum wal_status cli_copy_own(struct cli_copy *copy, struct wal_iter **iter,
                             struct wal_error *error);

#endif
