/*
 * copy_ids.h - the ids of a copy's entries as the lines of the copy's file have
 * them.
 *
 * A line that a copy shares with its original has the original's id in the log,
 * and its own id in the copy's file (SPEC.md 5.17); the same applies to its
 * parent. Where a line has neither, or repeats an earlier id, the ids of the
 * log are used. A line without a time gets the time of an earlier line.
 *
 * Invariant: no two entries get the same id, and a parent comes before its
 * entry. Memory grows with the entries.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_RENDER_COPY_IDS_H
#define AGENTWAL_CONVERT_RENDER_COPY_IDS_H

#include "agentwal.h"
#include "convert/model/dialect.h"
#include "convert/model/model_table.h"

/* Zeroed: empty. */
struct wal__copy_ids {
    struct wal__model_table by_log_id; /* id in the file, by id in the log */
    struct wal__model_table used_ids;  /* id in the file, by itself */
    struct wal__json_span last_id;     /* id of the previous entry */
    uint8_t time[64];                  /* of the last line that has one */
    size_t time_size;
};

/* Replaces id, parent and time of the next entry by those of the copy's file.
 * Ids are stored in the arena, which must be the same for all calls; the time
 * is valid until the next call. False: no memory. */
bool wal__copy_ids_map_entry(struct wal__copy_ids *ids, struct wal__arena *keep,
                             const struct wal__dialect *dialect,
                             struct wal_entry *entry) WAL_MUST_USE;

/* The id in the copy's file, as text, for an id of the log, given as a JSON
 * string; empty if no entry has it. */
struct wal__json_span wal__copy_ids_find(const struct wal__copy_ids *ids,
                                         struct wal__json_span id);

#endif
