/*
 * copy_ids.h - entries of a copy under the ids that its lines say.
 *
 * A line that a copy shares with its original has the original's id in the log,
 * and its own in the copy's file (SPEC.md 5.17); so has the line that it goes
 * under. Where a line says neither, or says an id that one above it has, those
 * of the log stand in. A line without a time has that of one above it.
 *
 * Invariant: no two entries get the same id, and a parent is above its entry.
 * Memory grows with the entries.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_RENDER_COPY_IDS_H
#define AGENTWAL_ENGINE_CONVERT_RENDER_COPY_IDS_H

#include "agentwal.h"
#include "format/model/dialect.h"
#include "format/model/model_table.h"

/* Zeroed: empty. */
struct wal__copy_ids {
    struct wal__model_table by_log_id; /* ids as texts, by those of the log */
    struct wal__model_table used_ids;  /* the same, by themselves */
    struct wal__json_span last_id;     /* id of the entry above */
    uint8_t time[64];                  /* that a line above says */
    size_t time_size;
};

/* Turns the next entry's id, parent and time, of the log, into its own. Ids are
 * kept in the arena, the same one each time, and the time until the next call.
 * False: no memory. */
bool wal__copy_ids_map_entry(struct wal__copy_ids *ids, struct wal__arena *keep,
                             const struct wal__dialect *dialect,
                             struct wal_entry *entry) WAL_MUST_USE;

/* The own id, as a text, of one of the log's that is given as a JSON string;
 * empty where no entry had it. */
struct wal__json_span wal__copy_ids_find(const struct wal__copy_ids *ids,
                                         struct wal__json_span id);

#endif
