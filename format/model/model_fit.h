/*
 * model_fit.h - an item without what a dialect cannot carry.
 *
 * What goes is counted by name, so that the report of a conversion and the
 * table of permitted losses have one source. A compaction or a summary that
 * cannot be carried as such becomes a message with its text.
 *
 * Invariant: text, roles, tool calls, tool results and their order stay.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_MODEL_MODEL_FIT_H
#define AGENTWAL_FORMAT_MODEL_MODEL_FIT_H

#include "format/model/model.h"

/*
 * Takes from the item, and from its blocks in place, what is not in `carries`.
 * `target` is the dialect that it is for, or null: lines and blocks of that one
 * always stay. `summary_block` becomes the block of a summary that is made a
 * message. False: nothing of it is left to be written.
 */
bool wal__model_fit(struct wal__model_item *item, uint64_t carries,
                    const struct wal__dialect *target,
                    struct wal__model_block *summary_block,
                    uint64_t losses[WAL__FEATURE_COUNT]);

#endif
