/*
 * told.h - which entry of the log is what a view's file has under an id.
 *
 * Invariant: it answers only where a run over the same entries writes the same
 * bytes again.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_VIEW_TOLD_H
#define AGENTWAL_VIEW_TOLD_H

#include "view/view.h"

/* Zeroed: nothing was told. */
struct wal__told {
    struct wal__heap_arena memory;
    struct wal__model_table items; /* item by hash of the id that it has */
    struct wal__model_table tail;  /* the same, of what is not settled */
    struct wal__model_table parts; /* the last part of an item, by its hash */
    struct wal__json_span last;    /* item that was told last */
    bool is_known;
};

/* Converts the session once more, up to where the view has it. `left` is how
 * the file of that path was left. WAL_OK also where that is not known. */
enum wal_status wal__told_read(struct wal__told *told,
                               const struct wal_view *view, const char *path,
                               const struct wal__left *left,
                               struct wal_error *error) WAL_MUST_USE;
void wal__told_deinit(struct wal__told *told);

/* The item, a JSON string, that went out under the id; empty: none is known. */
struct wal__json_span wal__told_item(const struct wal__told *told,
                                     struct wal__json_span written);

#endif
