/*
 * claude_listing.c - makes converted sessions visible in Claude Code's list.
 *
 * Threads: one thread at a time per listing.
 */
#include "convert/dialect/claude/claude_listing.h"

#include <string.h>

#include "format/bytes/assert.h"

#define SCAN_WINDOW  65536
#define ROW_OVERHEAD 1024 /* bytes of a prompt's row without its text */

static bool count_and_put(void *ctx, const void *data, size_t size)
{
    struct wal__claude_listing *listing = ctx;

    listing->size += size;
    return listing->put(listing->ctx, data, size);
}

void wal__claude_listing_init(struct wal__claude_listing *listing,
                              struct wal__json_out *out)
{
    listing->put = out->put;
    listing->ctx = out->ctx;
    out->put = count_and_put;
    out->ctx = listing;
}

/* Returns the text of a prompt that a person wrote, or an empty span. */
static struct wal__json_span find_prompt(const struct wal__model_item *item)
{
    const struct wal__json_span none = {NULL, 0};

    if (item->kind != WAL__ITEM_MESSAGE || item->role != WAL__ROLE_USER ||
        item->is_meta || item->is_sidechain) {
        return none;
    }
    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind == WAL__BLOCK_TEXT &&
            item->blocks[i].text.size > 2) {
            return item->blocks[i].text;
        }
    }
    return none;
}

static bool save_prompt(struct wal__claude_listing *listing,
                        struct wal__json_span prompt,
                        struct wal__arena *scratch)
{
    struct wal__json_span text = wal__arena_unescape(scratch, prompt);
    size_t size = text.size;

    if (text.data == NULL) {
        return false;
    }
    if (size > sizeof(listing->prompt)) {
        size = sizeof(listing->prompt);
        while (size > 0 && (text.data[size] & 0xC0) == 0x80) {
            size--; /* not inside a character */
        }
    }
    WAL__ASSERT(size <= sizeof(listing->prompt));
    memcpy(listing->prompt, text.data, size);
    listing->prompt_size = size;
    return true;
}

static void write_prompt(struct wal__claude_listing *listing,
                         struct wal__json_span session,
                         struct wal__json_out *out)
{
    listing->last = listing->size;
    wal__json_out_open(out, '{');
    wal__json_out_member_str(out, "type", "last-prompt");
    wal__json_out_member_text(
        out, "lastPrompt",
        (struct wal__json_span){listing->prompt, listing->prompt_size});
    wal__json_out_member(out, "sessionId", session);
    wal__json_out_member_bool(out, "walconv", true);
    wal__json_out_close_line(out);
    listing->is_near_start |= listing->size <= SCAN_WINDOW;
}

static uint64_t estimate_size(const struct wal__model_item *item)
{
    uint64_t size = ROW_OVERHEAD;

    for (size_t i = 0; i < item->block_count; i++) {
        size += item->blocks[i].text.size + item->blocks[i].data.size +
                item->blocks[i].url.size + item->blocks[i].raw.size;
    }
    return size;
}

bool wal__claude_listing_before_item(struct wal__claude_listing *listing,
                                     const struct wal__model_item *item,
                                     struct wal__json_span session,
                                     struct wal__arena *scratch,
                                     struct wal__json_out *out)
{
    struct wal__json_span prompt = find_prompt(item);

    if (prompt.size == 0 || listing->prompt_size > 0) {
        return true;
    }
    if (!save_prompt(listing, prompt, scratch)) {
        return false;
    }
    if (!listing->is_near_start &&
        listing->size + ROW_OVERHEAD <= SCAN_WINDOW &&
        listing->size + estimate_size(item) > SCAN_WINDOW) {
        write_prompt(listing, session, out);
    }
    return true;
}

void wal__claude_listing_after_item(struct wal__claude_listing *listing,
                                    const struct wal__model_item *item,
                                    uint64_t begin)
{
    if (find_prompt(item).size > 0 || item->kind == WAL__ITEM_TITLE) {
        WAL__ASSERT(begin >= listing->last && begin <= listing->size);
        listing->last = begin;
        listing->is_near_start |= listing->size <= SCAN_WINDOW;
    }
}

void wal__claude_listing_end(struct wal__claude_listing *listing,
                             struct wal__json_span session,
                             struct wal__json_out *out)
{
    if (listing->prompt_size > 0 && !listing->is_near_start &&
        listing->size - listing->last > SCAN_WINDOW) {
        write_prompt(listing, session, out);
    }
}
