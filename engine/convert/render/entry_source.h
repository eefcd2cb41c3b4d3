/*
 * entry_source.h - where the entries of a stream come from: the log, or, for
 * the conversation of a session that is a copy of another's file, its lines as
 * that file has them (SPEC.md 5.17).
 *
 * Invariant: a payload holds until the next call. Of a copy it is in line, but
 * for lines that are too long to be wanted.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_RENDER_ENTRY_SOURCE_H
#define AGENTWAL_ENGINE_CONVERT_RENDER_ENTRY_SOURCE_H

#include "agentwal.h"
#include "engine/base/heap.h"
#include "engine/convert/copy/copy.h"
#include "engine/convert/render/copy_ids.h"

/* The owner sets the first six fields, zeroes the others, and closes it in any
 * case. */
struct wal__entry_source {
    const struct wal__heap *heap;
    struct wal_store *store;
    const struct wal__dialect *dialect;
    uint64_t size_max; /* longer lines are left out of line; 0: none are */
    struct wal__copy_ids *ids;
    struct wal__arena *keep;
    struct wal_entry_cursor *iter; /* of a copy: own entries */
    struct wal__copy copy;
    bool is_copy;
    bool is_own_line_next; /* the next own line is the copy's next */
    uint8_t *payload;
    size_t size;
    size_t capacity;
    bool has_failed; /* there was no memory for a payload */
};

/* Begins to read what the options say; a copy's conversation from its
 * beginning, whatever they skip. Where it is no fork, a session is no copy. */
enum wal_status
wal__entry_source_open(struct wal__entry_source *source,
                       struct wal_session *session,
                       const struct wal_entry_cursor_options *options,
                       bool is_fork, struct wal_error *error) WAL_MUST_USE;

/* The next entry, or WAL_END; WAL_ECORRUPT and WAL_EIO concern one. Of a copy
 * it has the ids that its line says. */
enum wal_status wal__entry_source_next(struct wal__entry_source *source,
                                       struct wal_entry *entry,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__entry_source_close(struct wal__entry_source *source);

#endif
