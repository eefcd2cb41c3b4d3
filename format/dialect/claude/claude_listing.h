/*
 * claude_listing.h - what Claude Code lists a session by.
 *
 * The client looks for a prompt or a title in the first and in the last 64 KiB
 * of a transcript. Where a session that comes from elsewhere has none there, a
 * row with the beginning of a prompt is written, as the client itself does.
 *
 * Invariant: a transcript whose prompts the client finds gets no such row.
 *
 * Threads: one thread at a time per listing.
 */
#ifndef AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_LISTING_H
#define AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_LISTING_H

#include "format/json/json_out.h"
#include "format/model/model.h"

/* Zeroed but for the first two: nothing was written. */
struct wal__claude_listing {
    bool (*put)(void *ctx, const void *data, size_t size);
    void *ctx;
    uint64_t size;      /* bytes of the transcript */
    uint64_t last;      /* where the last prompt or title begins */
    bool is_near_start; /* one of them stands in the first 64 KiB */
    size_t prompt_size;
    uint8_t prompt[200]; /* the beginning of the first one; UTF-8 */
};

/* From here on all that goes out is counted. */
void wal__claude_listing_init(struct wal__claude_listing *listing,
                              struct wal__json_out *out);

/* Before and after an item is written, and behind them all. `session` is the
 * id of the transcript. False: no memory. */
bool wal__claude_listing_before_item(struct wal__claude_listing *listing,
                                     const struct wal__model_item *item,
                                     struct wal__json_span session,
                                     struct wal__arena *scratch,
                                     struct wal__json_out *out);
void wal__claude_listing_after_item(struct wal__claude_listing *listing,
                                    const struct wal__model_item *item,
                                    uint64_t begin);
void wal__claude_listing_end(struct wal__claude_listing *listing,
                             struct wal__json_span session,
                             struct wal__json_out *out);

#endif
