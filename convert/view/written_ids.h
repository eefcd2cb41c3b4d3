/*
 * written_ids.h - maps the ids in a view's file to entries of the log (SPEC.md
 * 10.6).
 *
 * Invariant: the map is used only if converting the same entries again yields
 * the same bytes.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_VIEW_WRITTEN_IDS_H
#define AGENTWAL_CONVERT_VIEW_WRITTEN_IDS_H

#include "convert/view/view.h"

/* Zeroed: no id is known. */
struct wal__written_ids {
    struct wal__heap_arena memory;
    struct wal__model_table items; /* item, by hash of its id in the file */
    struct wal__model_table provisional; /* the same after the stable part */
    struct wal__model_table parts;       /* last part, by hash of the item */
    struct wal__json_span last;          /* the last item in the file */
    bool is_known;
};

/* Converts the session again, up to the position of the view. `saved` is the
 * saved state of the file with the path. Returns WAL_OK with is_known false
 * when the bytes differ. */
enum wal_status wal__written_ids_load(struct wal__written_ids *written_ids,
                                      const struct wal_view *view,
                                      const char *path,
                                      const struct wal__saved_file *saved,
                                      struct wal_error *error) WAL_MUST_USE;
void wal__written_ids_deinit(struct wal__written_ids *written_ids);

/* The item, a JSON string, that was written with the id; empty: unknown. */
struct wal__json_span
wal__written_ids_find(const struct wal__written_ids *written_ids,
                      struct wal__json_span written);

#endif
