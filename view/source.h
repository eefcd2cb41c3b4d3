/*
 * source.h - where the entries of a stream come from: the log, or, for the
 * conversation of a session that is a copy of another's file, its lines as
 * that file has them (SPEC.md 5.17).
 *
 * Invariant: a payload holds until the next call. Of a copy it is in line, but
 * for lines that are too long to be wanted.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_VIEW_SOURCE_H
#define AGENTWAL_VIEW_SOURCE_H

#include "agentwal.h"
#include "engine/base/heap.h"
#include "view/copy.h"
#include "view/own_ids.h"

/* The owner sets the first six fields, zeroes the others, and closes it in any
 * case. */
struct wal__source {
    const struct wal__heap *heap;
    struct wal_store *store;
    const struct wal__dialect *dialect;
    uint64_t size_max; /* longer lines are left out of line; 0: none are */
    struct wal__own_ids *ids;
    struct wal__arena *keep;
    struct wal_iter *iter; /* of a copy: own entries */
    struct wal__copy copy;
    bool is_copy;
    bool is_owed; /* the next own line is the copy's next */
    uint8_t *payload;
    size_t size;
    size_t capacity;
    bool has_failed; /* there was no memory for a payload */
};

/* Begins to read what the options say; a copy's conversation from its
 * beginning, whatever they skip. Where it is no fork, a session is no copy. */
enum wal_status wal__source_open(struct wal__source *source,
                                 struct wal_session *session,
                                 const struct wal_iter_options *options,
                                 bool is_fork,
                                 struct wal_error *error) WAL_MUST_USE;

/* The next entry, or WAL_END; WAL_ECORRUPT and WAL_EIO concern one. Of a copy
 * it has the ids that its line says. */
enum wal_status wal__source_next(struct wal__source *source,
                                 struct wal_entry *entry,
                                 struct wal_error *error) WAL_MUST_USE;
void wal__source_close(struct wal__source *source);

#endif
