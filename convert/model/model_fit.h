/*
 * model_fit.h - removes the features of an item that a dialect cannot carry.
 *
 * Each loss is counted under its feature: the report of a conversion and the
 * table of permitted losses use these counts. A compaction or a summary that
 * the dialect cannot carry becomes a message with its text.
 *
 * Invariant: text, roles, tool calls, tool results and their order are kept.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_MODEL_MODEL_FIT_H
#define AGENTWAL_CONVERT_MODEL_MODEL_FIT_H

#include "convert/model/model.h"

/*
 * Removes from the item, and in place from its blocks, what is not in
 * `carries`.
 * `target` is the dialect to be written, or NULL; its own lines and blocks are
 * kept. *summary_block becomes the block of a summary that is converted to a
 * message. False: nothing is left to write.
 */
bool wal__model_fit(struct wal__model_item *item, uint64_t carries,
                    const struct wal__dialect *target,
                    struct wal__model_block *summary_block,
                    uint64_t losses[WAL__FEATURE_COUNT]);

#endif
