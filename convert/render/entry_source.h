/*
 * entry_source.h - reads the entries of a stream from the log, or, for the
 * conversation of a copy, its lines as the copy's file has them (SPEC.md 5.17).
 *
 * Invariant: a payload is valid until the next call. A copy's payloads are in
 * line, except those above size_max.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_RENDER_ENTRY_SOURCE_H
#define AGENTWAL_CONVERT_RENDER_ENTRY_SOURCE_H

#include "agentwal.h"
#include "convert/copy/copy.h"
#include "convert/render/copy_ids.h"
#include "engine/base/heap.h"

/* The owner sets the first six fields, zeroes the others, and closes it in any
 * case. */
struct wal__entry_source {
    const struct wal__heap *heap;
    struct wal_store *store;
    const struct wal__dialect *dialect;
    uint64_t size_max; /* larger payloads stay out of line; 0: no limit */
    struct wal__copy_ids *ids;
    struct wal__arena *keep;
    struct wal_entry_cursor *cursor; /* NULL: of a copy */
    struct wal__copy copy;
    bool is_copy;
    uint8_t *payload;
    size_t size;
    size_t capacity;
    bool has_failed; /* no memory for a payload */
};

/* Opens the source with the options; a copy's conversation always from its
 * beginning. Sessions that are no forks are no copies. */
enum wal_status
wal__entry_source_open(struct wal__entry_source *source,
                       struct wal_session *session,
                       const struct wal_entry_cursor_options *options,
                       bool is_fork, struct wal_error *error) WAL_MUST_USE;

/* Returns the next entry, or WAL_END; WAL_ECORRUPT and WAL_EIO concern one
 * entry. Entries of a copy have the ids of its file. */
enum wal_status wal__entry_source_next(struct wal__entry_source *source,
                                       struct wal_entry *entry,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__entry_source_close(struct wal__entry_source *source);

#endif
