/*
 * view_index.h - the files of all views below roots, by their paths (SPEC.md
 * 10.6).
 *
 * The states of a root are read once. When the directory of the states has
 * changed and a path is not found, those that changed are read again.
 *
 * Threads: one thread at a time per index.
 */
#ifndef AGENTWAL_CONVERT_STATE_VIEW_INDEX_H
#define AGENTWAL_CONVERT_STATE_VIEW_INDEX_H

#include "agentwal/convert.h"
#include "engine/base/heap.h"

struct wal__view_index {
    const struct wal__heap *heap;
    struct wal_store *store;
    struct wal__view_states **items; /* of each directory */
    uint32_t count;
    uint32_t capacity;
};

void wal__view_index_init(struct wal__view_index *index,
                          struct wal_store *store,
                          const struct wal__heap *heap);
void wal__view_index_deinit(struct wal__view_index *index);

/* Finds the view that a file belongs to. WAL_ENOTFOUND: none. */
enum wal_status wal__view_index_find(struct wal__view_index *index,
                                     struct wal_slice path,
                                     struct wal_view_info *place,
                                     struct wal_error *error) WAL_MUST_USE;

#endif
