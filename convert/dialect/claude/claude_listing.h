/*
 * claude_listing.h - makes converted sessions visible in Claude Code's list.
 *
 * The client looks for a prompt or a title in the first and in the last 64 KiB
 * of a transcript. If a converted session has none there, this writes a row
 * with the beginning of a prompt, as the client itself does.
 *
 * Invariant: a transcript whose prompts the client finds gets no such row.
 *
 * Threads: one thread at a time per listing.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_CLAUDE_CLAUDE_LISTING_H
#define AGENTWAL_CONVERT_DIALECT_CLAUDE_CLAUDE_LISTING_H

#include "convert/model/model.h"
#include "format/json/json_out.h"

/* wal__claude_listing_init sets the first two fields; the others are zeroed. */
struct wal__claude_listing {
    bool (*put)(void *ctx, const void *data, size_t size);
    void *ctx;
    uint64_t size;      /* bytes of the transcript */
    uint64_t last;      /* offset of the last prompt or title */
    bool is_near_start; /* a prompt or title is in the first 64 KiB */
    size_t prompt_size;
    uint8_t prompt[200]; /* beginning of the first prompt; UTF-8 */
};

/* Starts counting the bytes written to `out`. */
void wal__claude_listing_init(struct wal__claude_listing *listing,
                              struct wal__json_out *out);

/* Call these before and after each item is written, and at the end. `session`
 * is the id of the transcript, `begin` the size before the item. False: no
 * memory. */
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
