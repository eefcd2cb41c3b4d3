/*
 * model_merge.h - merges the parts of one answer of a model into one item.
 *
 * Invariant: order and number of blocks are kept; of a field that several parts
 * have, the last value counts.
 *
 * Threads: one thread at a time per merge.
 */
#ifndef AGENTWAL_CONVERT_MODEL_MODEL_MERGE_H
#define AGENTWAL_CONVERT_MODEL_MODEL_MERGE_H

#include "convert/model/model.h"

/* The owner sets the first four fields and zeroes the others. */
struct wal__model_merge {
    /* While has_item is set, its memory and that of the items must stay
     * valid. */
    struct wal__arena *scratch;
    bool (*emit)(void *ctx, struct wal__model_item *item);
    /* Called when the item `id` became a part of the item `to`. */
    bool (*on_merged)(void *ctx, struct wal__json_span id,
                      struct wal__json_span to);
    void *ctx;
    bool has_item;
    struct wal__model_item item;
    struct wal__json_span last_id; /* of its last part */
    size_t capacity;               /* of item.blocks; 0: not in scratch */
};

/* Adds an item and emits those that are complete. False: a function of the
 * owner returned false, or there is no memory. */
bool wal__model_merge_add(struct wal__model_merge *merge,
                          struct wal__model_item *item);

/* Emits the item that waits for further parts. */
bool wal__model_merge_flush(struct wal__model_merge *merge);

#endif
