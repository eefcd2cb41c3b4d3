/*
 * codex_state.c - the state that connects the lines of a rollout.
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/dialect/codex/codex_state.h"

#include <string.h>

#include "convert/model/model_member.h"
#include "format/bytes/assert.h"
#include "format/json/json_value.h"

static const struct wal__json_span none = {NULL, 0};

struct wal__codex *wal__codex_state(struct wal__model_reader *reader)
{
    if (reader->state == NULL) {
        reader->state =
            wal__arena_calloc(reader->arena, sizeof(struct wal__codex));
    }
    return reader->state;
}

bool wal__codex_line_begin(struct wal__model_reader *reader,
                           const struct wal__model_line *line)
{
    struct wal__codex *codex = reader->state;

    /* If the log has another parent than the previous line, the log counts. */
    return wal__codex_text_equals(&codex->last_line, line->parent) ||
           wal__codex_text_set(reader, &codex->last_item, line->parent);
}

bool wal__codex_line_end(struct wal__model_reader *reader,
                         const struct wal__model_line *line)
{
    struct wal__codex *codex = reader->state;

    return wal__codex_text_set(reader, &codex->last_line, line->id);
}

bool wal__codex_emit(struct wal__model_reader *reader,
                     struct wal__model_item *item)
{
    struct wal__codex *codex = reader->state;

    if (!wal__codex_text_copy(reader, &codex->last_item, &item->parent)) {
        return false;
    }
    if (item->raw.size > 0) {
        if (!wal__codex_text_copy(reader, &codex->pending_lines,
                                  &item->raw_prefix)) {
            return false;
        }
        codex->pending_lines.size = 0;
    }
    return (item->is_off_branch ||
            wal__codex_text_set(reader, &codex->last_item, item->id)) &&
           wal__model_emit(reader, item);
}

/* Appends a suffix to the id in `base` and returns the new id. */
static bool derive_id(struct wal__model_reader *reader,
                      struct wal__codex_text *base, const char *suffix,
                      struct wal__json_span *id)
{
    const struct wal__json_span end = {(const uint8_t *)suffix, strlen(suffix)};

    base->size -= base->size > 0 ? 1 : 0;
    return wal__codex_text_add(reader, base, end) &&
           wal__codex_text_copy(reader, base, id);
}

bool wal__codex_flush_lines(struct wal__model_reader *reader,
                            bool is_off_branch)
{
    struct wal__codex *codex = reader->state;
    struct wal__model_item item = {.kind = WAL__ITEM_LINE,
                                   .is_echo = true,
                                   .is_off_branch = is_off_branch};

    if (codex->pending_lines.size == 0) {
        return true;
    }
    if ((!is_off_branch &&
         !derive_id(reader, &codex->pending_id, "~echo\"", &item.id)) ||
        !wal__codex_text_copy(reader, &codex->pending_lines, &item.raw)) {
        return false;
    }
    codex->pending_lines.size = 0;
    item.data = item.raw;
    return wal__codex_emit(reader, &item);
}

/* ------------------------------------------------------------ turns --- */

static bool begin_turn(struct wal__model_reader *reader,
                       const struct wal__codex_text *last_item)
{
    struct wal__codex *codex = reader->state;
    const struct wal__json_span span = {last_item->data, last_item->size};
    struct wal__json_span *turns =
        wal__arena_grow(reader->arena, codex->turns, codex->turn_count,
                        &codex->turn_capacity, sizeof(turns[0]));

    if (turns == NULL) {
        return false;
    }
    codex->turns = turns;
    turns[codex->turn_count] =
        span.size > 0 ? wal__arena_copy(reader->arena, span) : none;
    if (span.size > 0 && turns[codex->turn_count].data == NULL) {
        return false;
    }
    codex->turn_count++;
    return true;
}

bool wal__codex_roll_back(struct wal__model_reader *reader,
                          struct wal__model_item *item, uint64_t turns)
{
    struct wal__codex *codex = reader->state;

    if (!wal__codex_flush(reader)) {
        return false;
    }
    codex->is_answering = false;
    codex->pending_lines.size = 0;
    item->kind = WAL__ITEM_HEAD;
    item->raw.size = 0;
    if (turns > codex->turn_count) {
        turns = codex->turn_count;
    }
    WAL__ASSERT(turns <= codex->turn_count);
    codex->turn_count -= (size_t)turns;
    if (turns > 0 && !wal__codex_text_set(reader, &codex->last_item,
                                          codex->turns[codex->turn_count])) {
        return false;
    }
    return wal__codex_emit(reader, item);
}

/* ------------------------------------------------- events and items --- */

/* Emits a message for an event without an item. */
static bool flush(struct wal__model_reader *reader,
                  struct wal__codex_echo *echo)
{
    struct wal__codex *codex = reader->state;
    struct wal__model_block block = {.kind = WAL__BLOCK_TEXT};
    struct wal__model_item item = {
        .kind = WAL__ITEM_MESSAGE, .blocks = &block, .block_count = 1};
    struct wal__model_block *kept;

    echo->unmatched_items = 0;
    if (!echo->is_pending) {
        return true;
    }
    echo->is_pending = false;
    item.role = echo == &codex->user ? WAL__ROLE_USER : WAL__ROLE_ASSISTANT;
    kept = wal__arena_alloc(reader->scratch, sizeof(*kept));
    if (kept == NULL ||
        !wal__codex_text_copy(reader, &echo->text, &block.text) ||
        !wal__codex_text_copy(reader, &echo->time, &item.time)) {
        return false;
    }
    *kept = block;
    item.blocks = kept;
    /* Its source line is that of the event. */
    if (!derive_id(reader, &echo->id, "~event\"", &item.id) ||
        !wal__codex_text_copy(reader, &codex->pending_lines, &item.raw)) {
        return false;
    }
    codex->pending_lines.size = 0;
    codex->is_answering = false;
    return (echo != &codex->user || begin_turn(reader, &codex->turn)) &&
           wal__codex_emit(reader, &item);
}

bool wal__codex_flush(struct wal__model_reader *reader)
{
    struct wal__codex *codex = reader->state;

    return flush(reader, &codex->user) && flush(reader, &codex->agent);
}

void wal__codex_end_answer(struct wal__codex *codex)
{
    codex->is_answering = false;
}

/* Matches an item with a pending event; whether there was one. */
static bool match_item(struct wal__codex_echo *echo)
{
    bool was_pending = echo->is_pending;

    echo->is_pending = false;
    echo->unmatched_items += was_pending ? 0 : 1;
    return was_pending;
}

/* Matches an event with an earlier item, or makes it pending. */
static bool match_event(struct wal__model_reader *reader,
                        struct wal__codex_echo *echo,
                        const struct wal__model_line *line,
                        struct wal__json_span text)
{
    struct wal__codex *codex = reader->state;
    bool is_user = echo == &codex->user;
    struct wal__json_span last;

    if (!flush(reader, is_user ? &codex->agent : &codex->user)) {
        return false;
    }
    if (is_user) {
        codex->is_answering = false;
    }
    if (echo->unmatched_items > 0) {
        echo->unmatched_items--;
        return true;
    }
    if (!flush(reader, echo) ||
        (is_user && !wal__codex_flush_lines(reader, false))) {
        return false;
    }
    echo->is_pending = true;
    last =
        (struct wal__json_span){codex->last_item.data, codex->last_item.size};
    return wal__codex_text_set(reader, &echo->id, line->id) &&
           wal__codex_text_set(reader, &echo->time, line->time) &&
           wal__codex_text_set(reader, &echo->text, text) &&
           (!is_user || wal__codex_text_set(reader, &codex->turn, last));
}

bool wal__codex_emit_event(struct wal__model_reader *reader,
                           struct wal__codex_echo *echo,
                           const struct wal__model_line *line,
                           struct wal__json_span text)
{
    struct wal__codex *codex = reader->state;
    struct wal__model_item item = {.kind = WAL__ITEM_HEAD,
                                   .is_off_branch = true,
                                   .is_echo = true,
                                   .id = line->id,
                                   .time = line->time};

    if (text.size > 0 && !match_event(reader, echo, line, text)) {
        return false;
    }
    if ((codex->pending_lines.size > 0 &&
         !wal__codex_text_add(reader, &codex->pending_lines,
                              wal__model_literal("\n"))) ||
        !wal__codex_text_add(reader, &codex->pending_lines, line->text) ||
        !wal__codex_text_set(reader, &codex->pending_id, line->id)) {
        return false;
    }
    return wal__codex_emit(reader, &item);
}

/* Whether the item has visible content. */
static bool has_text(const struct wal__model_item *item)
{
    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind == WAL__BLOCK_TEXT) {
            return true;
        }
    }
    return false;
}

static bool emit_answer(struct wal__model_reader *reader,
                        struct wal__model_item *item)
{
    struct wal__codex *codex = reader->state;

    if (!flush(reader, &codex->user)) {
        return false;
    }
    if (has_text(item)) {
        (void)match_item(&codex->agent);
    }
    if (!codex->is_answering &&
        !wal__codex_text_set(reader, &codex->answer, item->id)) {
        return false;
    }
    codex->is_answering = true;
    return wal__codex_text_copy(reader, &codex->answer, &item->answer_id) &&
           wal__codex_text_copy(reader, &codex->model, &item->model) &&
           wal__codex_text_copy(reader, &codex->provider, &item->provider) &&
           wal__codex_emit(reader, item);
}

static bool emit_prompt(struct wal__model_reader *reader,
                        struct wal__model_item *item)
{
    struct wal__codex *codex = reader->state;

    if (!flush(reader, &codex->agent)) {
        return false;
    }
    codex->is_answering = false;
    /* A text with a user event was written by a person. */
    if (item->is_meta && codex->user.is_pending &&
        wal__codex_text_equals(&codex->user.text, item->blocks[0].text)) {
        item->is_meta = false;
        item->name.size = 0;
    }
    if (!item->is_meta && !codex->user.is_pending &&
        !wal__codex_flush_lines(reader, false)) {
        return false;
    }
    if (!item->is_meta &&
        !begin_turn(reader, match_item(&codex->user) ? &codex->turn
                                                     : &codex->last_item)) {
        return false;
    }
    return wal__codex_emit(reader, item);
}

bool wal__codex_emit_message(struct wal__model_reader *reader,
                             struct wal__model_item *item)
{
    struct wal__codex *codex = reader->state;

    item->kind = WAL__ITEM_MESSAGE;
    switch (item->role) {
    case WAL__ROLE_ASSISTANT:
        return emit_answer(reader, item);
    case WAL__ROLE_USER:
        return emit_prompt(reader, item);
    case WAL__ROLE_TOOL:
        if (!wal__codex_flush(reader)) {
            return false;
        }
        break;
    case WAL__ROLE_SYSTEM:
        break;
    }
    codex->is_answering = false;
    return wal__codex_emit(reader, item);
}
