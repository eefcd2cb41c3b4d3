/*
 * model_merge.h - parts of one answer of a model become one item.
 *
 * Invariant: order and number of blocks stay; of fields that several parts
 * have, the last one's counts.
 *
 * Threads: one thread at a time per merge.
 */
#ifndef AGENTWAL_FORMAT_MODEL_MODEL_MERGE_H
#define AGENTWAL_FORMAT_MODEL_MODEL_MERGE_H

#include "format/model/model.h"

/* The owner sets the first four fields and zeroes the others. */
struct wal__model_merge {
    /* Must keep what it gave, and what the items point to must hold, for as
     * long as has_item is set. */
    struct wal__arena *scratch;
    bool (*emit)(void *ctx, struct wal__model_item *item);
    /* The item of this id is now part of the one of that id. */
    bool (*on_merged)(void *ctx, struct wal__json_span id,
                      struct wal__json_span to);
    void *ctx;
    bool has_item;
    struct wal__model_item item;
    struct wal__json_span last_id; /* of its last part */
    size_t capacity;               /* of item.blocks, when they are own */
};

/* Takes an item, and gives those that are complete. False: a function of the
 * owner did, or there is no memory. */
bool wal__model_merge_add(struct wal__model_merge *merge,
                          struct wal__model_item *item);

/* Gives what waits for more. */
bool wal__model_merge_flush(struct wal__model_merge *merge);

#endif
