/*
 * written_ids.h - which entry of the log is what a view's file has under an id.
 *
 * Invariant: it answers only where a run over the same entries writes the same
 * bytes again.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_VIEW_WRITTEN_IDS_H
#define AGENTWAL_ENGINE_CONVERT_VIEW_WRITTEN_IDS_H

#include "engine/convert/view/view.h"

/* Zeroed: nothing was written_ids. */
struct wal__written_ids {
    struct wal__heap_arena memory;
    struct wal__model_table items; /* item by hash of the id that it has */
    struct wal__model_table provisional; /* the same, of what is not settled */
    struct wal__model_table parts; /* the last part of an item, by its hash */
    struct wal__json_span last;    /* item that was written_ids last */
    bool is_known;
};

/* Converts the session once more, up to where the view has it. `saved` is how
 * the file of that path was saved. WAL_OK also where that is not known. */
enum wal_status wal__written_ids_load(struct wal__written_ids *written_ids,
                                      const struct wal_view *view,
                                      const char *path,
                                      const struct wal__saved_file *saved,
                                      struct wal_error *error) WAL_MUST_USE;
void wal__written_ids_deinit(struct wal__written_ids *written_ids);

/* The item, a JSON string, that went out under the id; empty: none is known. */
struct wal__json_span
wal__written_ids_find(const struct wal__written_ids *written_ids,
                      struct wal__json_span written);

#endif
