/*
 * codex_state.c - the state that connects the lines of a rollout, and the token counts of its
 * answers (codex.h).
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/dialect/codex.h"

#include <string.h>

#include "convert/model/model_member.h"
#include "format/bytes/assert.h"
#include "format/json/json_text.h"

/* --- texts --------------------------------------------------------------- */

static bool codex_text_add(struct wal__model_reader *reader, struct wal__codex_text *text,
                           struct wal__json_span span)
{
    if (text->capacity - text->size < span.size) {
        size_t capacity = 2 * (text->size + span.size);
        uint8_t *data = wal__arena_alloc(reader->arena, capacity);
        if (data == NULL) {
            return false;
        }
        if (text->size > 0) {
            memcpy(data, text->data, text->size);
        }
        text->data = data;
        text->capacity = capacity;
    }
    if (span.size > 0) {
        WAL__ASSERT(span.size <= text->capacity - text->size);
        memcpy(text->data + text->size, span.data, span.size);
        text->size += span.size;
    }
    return true;
}

bool wal__codex_text_set(struct wal__model_reader *reader, struct wal__codex_text *text,
                         struct wal__json_span span)
{
    text->size = 0;
    return codex_text_add(reader, text, span);
}

bool wal__codex_text_copy(struct wal__model_reader *reader, const struct wal__codex_text *text,
                          struct wal__json_span *span)
{
    const struct wal__json_span kept = {text->data, text->size};

    *span = (struct wal__json_span){NULL, 0};
    if (text->size > 0) {
        *span = wal__arena_copy(reader->scratch, kept);
    }
    return text->size == 0 || span->data != NULL;
}

bool wal__codex_text_equals(const struct wal__codex_text *text, struct wal__json_span span)
{
    const struct wal__json_span kept = {text->data, text->size};

    return kept.size > 0 && span.size > 0 ? wal__json_characters_equal(kept, span)
                                          : kept.size == span.size;
}

/* --- token counts -------------------------------------------------------- */

enum line_kind {
    LINE_OTHER,
    LINE_ANSWER, /* an item of a model's answer */
    LINE_EVENT,  /* what may be between one and its counts: an event that repeats it, a result */
    LINE_COUNTS
};

/* --- lines --------------------------------------------------------------- */

/* Determines the kind of a line; *info: the counts of LINE_COUNTS. */
static enum line_kind kind_of(struct wal__json_span text, struct wal__json_span *info)
{
    enum { TYPE, PAYLOAD, PAYLOAD_TYPE, ROLE, INFO, COUNT };
    struct wal__json_member members[COUNT] = {[TYPE] = {.key = "type"},
                                              [PAYLOAD] = {.key = "payload"},
                                              [PAYLOAD_TYPE] = {.parent = "payload", .key = "type"},
                                              [ROLE] = {.parent = "payload", .key = "role"},
                                              [INFO] = {.parent = "payload", .key = "info"}};
    struct wal__json_span type;
    struct wal__json_span payload;

    if (wal__model_members(text, members, COUNT, NULL) != WAL__JSON_OK) {
        return LINE_OTHER;
    }
    type = wal__member_string(&members[TYPE]);
    payload = wal__member_string(&members[PAYLOAD_TYPE]);
    if (wal__model_text_is(type, "response_item") &&
        (wal__model_text_is(payload, "reasoning") || wal__model_text_is(payload, "function_call") ||
         wal__model_text_is(payload, "custom_tool_call") ||
         wal__model_text_is(payload, "local_shell_call") ||
         (wal__model_text_is(payload, "message") &&
          wal__model_text_is(wal__member_string(&members[ROLE]), "assistant")))) {
        return LINE_ANSWER;
    }
    if (wal__model_text_is(type, "response_item")) {
        return wal__model_text_is(payload, "function_call_output") ||
                       wal__model_text_is(payload, "custom_tool_call_output")
                   ? LINE_EVENT
                   : LINE_OTHER;
    }
    if (wal__model_text_is(type, "token_usage_record")) {
        *info = wal__member_container(&members[PAYLOAD]);
        return info->size > 0 ? LINE_COUNTS : LINE_OTHER;
    }
    if (!wal__model_text_is(type, "event_msg")) {
        return LINE_OTHER;
    }
    *info = wal__member_container(&members[INFO]);
    if (wal__model_text_is(payload, "token_count") && info->size > 0) {
        return LINE_COUNTS;
    }
    return wal__model_text_is(payload, "agent_message") ||
                   wal__model_text_is(payload, "agent_reasoning") ||
                   wal__model_text_is(payload, "agent_reasoning_raw_content") ||
                   wal__model_text_is(payload, "item_completed")
               ? LINE_EVENT
               : LINE_OTHER;
}

/* --- counts -------------------------------------------------------------- */

/* Reads the counts of a member of `info`. Returns false if there are none. */
static bool read_counts(struct wal__json_span info, const char *parent,
                        uint64_t counts[WAL__CODEX_COUNTS])
{
    struct wal__json_member members[WAL__CODEX_COUNTS] = {
        [WAL__CODEX_INPUT] = {.parent = parent, .key = "input_tokens"},
        [WAL__CODEX_CACHED] = {.parent = parent, .key = "cached_input_tokens"},
        [WAL__CODEX_OUTPUT] = {.parent = parent, .key = "output_tokens"},
        [WAL__CODEX_REASONING] = {.parent = parent, .key = "reasoning_output_tokens"},
    };

    if (wal__model_members(info, members, WAL__CODEX_COUNTS, NULL) != WAL__JSON_OK ||
        members[WAL__CODEX_INPUT].value.kind != WAL__JSON_NUMBER) {
        return false;
    }
    for (size_t i = 0; i < WAL__CODEX_COUNTS; i++) {
        counts[i] = wal__model_count(wal__member_number(&members[i]));
    }
    return true;
}

/* Reads the counts of the last call, of a token_usage_record or a token_count; older versions only
 * have the totals. Returns false if there are none. */
static bool read_last(struct wal__codex_held *held, struct wal__json_span info,
                      uint64_t last[WAL__CODEX_COUNTS])
{
    bool is_known = read_counts(info, "usage", last) || read_counts(info, "last_token_usage", last);
    uint64_t total[WAL__CODEX_COUNTS];

    if (!read_counts(info, "total_token_usage", total)) {
        return is_known;
    }
    for (size_t i = 0; i < WAL__CODEX_COUNTS; i++) {
        last[i] = is_known ? last[i] : wal__model_less(total[i], held->total[i]);
        held->total[i] = total[i];
    }
    return true;
}

/* --- holding ------------------------------------------------------------- */

static bool hold(struct wal__model_reader *reader, struct wal__codex_held *held,
                 const struct wal__model_line *line)
{
    struct wal__codex_held_line *to = &held->lines[held->count];

    WAL__ASSERT(held->count < WAL__CODEX_HELD_MAX);
    to->line = *line;
    if (!wal__codex_text_set(reader, &to->text, line->text) ||
        !wal__codex_text_set(reader, &to->id, line->id) ||
        !wal__codex_text_set(reader, &to->parent, line->parent) ||
        !wal__codex_text_set(reader, &to->time, line->time)) {
        return false;
    }
    held->count++;
    return true;
}

/* Restores a line in scratch: the buffers are used again. */
static bool restore(struct wal__model_reader *reader, const struct wal__codex_held_line *from,
                    struct wal__model_line *line)
{
    *line = from->line;
    return wal__codex_text_copy(reader, &from->text, &line->text) &&
           wal__codex_text_copy(reader, &from->id, &line->id) &&
           wal__codex_text_copy(reader, &from->parent, &line->parent) &&
           wal__codex_text_copy(reader, &from->time, &line->time);
}

enum wal__json_status wal__codex_release(struct wal__model_reader *reader,
                                         struct wal__codex_held *held,
                                         const struct wal__model_usage *usage,
                                         wal__codex_line_fn *pass)
{
    enum wal__json_status status = WAL__JSON_OK;
    size_t count = held->count;

    held->count = 0;
    for (size_t i = 0; i < count && status == WAL__JSON_OK; i++) {
        struct wal__model_line line;
        status = restore(reader, &held->lines[i], &line)
                     ? pass(reader, &line, i == 0 ? usage : NULL)
                     : WAL__JSON_NO_SPACE;
    }
    return status;
}

enum wal__json_status wal__codex_hold(struct wal__model_reader *reader,
                                      struct wal__codex_held *held,
                                      const struct wal__model_line *line, wal__codex_line_fn *pass)
{
    struct wal__json_span info = {NULL, 0};
    enum line_kind kind = kind_of(line->text, &info);
    struct wal__model_usage usage = {.input = {NULL, 0}};
    uint64_t last[WAL__CODEX_COUNTS];
    bool has_usage = false;
    enum wal__json_status status;

    if (kind == LINE_EVENT && held->count > 0 && held->count < WAL__CODEX_HELD_MAX) {
        return hold(reader, held, line) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
    }
    if (kind == LINE_COUNTS) {
        has_usage = read_last(held, info, last) && held->count > 0;
        /* Input tokens of the model do not include those read from a cache. */
        if (has_usage &&
            (!wal__model_number(reader->scratch,
                                wal__model_less(last[WAL__CODEX_INPUT], last[WAL__CODEX_CACHED]),
                                &usage.input) ||
             !wal__model_number(reader->scratch, last[WAL__CODEX_OUTPUT], &usage.output) ||
             !wal__model_number(reader->scratch, last[WAL__CODEX_CACHED], &usage.cache_read) ||
             !wal__model_number(reader->scratch, last[WAL__CODEX_REASONING], &usage.reasoning))) {
            return WAL__JSON_NO_SPACE;
        }
    }
    status = wal__codex_release(reader, held, has_usage ? &usage : NULL, pass);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (kind == LINE_ANSWER) {
        return hold(reader, held, line) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
    }
    return pass(reader, line, NULL);
}

/* --- the state ----------------------------------------------------------- */

static const struct wal__json_span none = {NULL, 0};

struct wal__codex *wal__codex_state(struct wal__model_reader *reader)
{
    return wal__reader_state(reader, sizeof(struct wal__codex));
}

bool wal__codex_line_begin(struct wal__model_reader *reader, const struct wal__model_line *line)
{
    struct wal__codex *codex = reader->state;

    /* If the log has another parent than the previous line, the log counts. */
    return wal__codex_text_equals(&codex->last_line, line->parent) ||
           wal__codex_text_set(reader, &codex->last_item, line->parent);
}

bool wal__codex_line_end(struct wal__model_reader *reader, const struct wal__model_line *line)
{
    struct wal__codex *codex = reader->state;

    return wal__codex_text_set(reader, &codex->last_line, line->id);
}

bool wal__codex_emit(struct wal__model_reader *reader, struct wal__model_item *item)
{
    struct wal__codex *codex = reader->state;

    if (!wal__codex_text_copy(reader, &codex->last_item, &item->parent)) {
        return false;
    }
    if (item->raw.size > 0) {
        if (!wal__codex_text_copy(reader, &codex->pending_lines, &item->raw_prefix)) {
            return false;
        }
        codex->pending_lines.size = 0;
    }
    return (item->is_off_branch || wal__codex_text_set(reader, &codex->last_item, item->id)) &&
           wal__model_emit(reader, item);
}

/* Returns the id with a suffix; data is NULL if there is no memory. */
static struct wal__json_span derive_id(struct wal__model_reader *reader,
                                       const struct wal__codex_text *base, const char *suffix)
{
    const struct wal__json_span id = {base->data, base->size};

    return wal__model_append(reader->scratch, id, suffix, none);
}

bool wal__codex_flush_lines(struct wal__model_reader *reader, bool is_off_branch)
{
    struct wal__codex *codex = reader->state;
    struct wal__model_item item = {
        .kind = WAL__ITEM_LINE, .is_echo = true, .is_off_branch = is_off_branch};

    if (codex->pending_lines.size == 0) {
        return true;
    }
    if (!is_off_branch) {
        item.id = derive_id(reader, &codex->pending_id, "~echo");
    }
    if ((!is_off_branch && item.id.data == NULL) ||
        !wal__codex_text_copy(reader, &codex->pending_lines, &item.raw)) {
        return false;
    }
    codex->pending_lines.size = 0;
    item.data = item.raw;
    return wal__codex_emit(reader, &item);
}

/* --- turns --------------------------------------------------------------- */

static bool begin_turn(struct wal__model_reader *reader, const struct wal__codex_text *last_item)
{
    struct wal__codex *codex = reader->state;
    const struct wal__json_span span = {last_item->data, last_item->size};
    struct wal__json_span *turns = wal__arena_grow(reader->arena, codex->turns, codex->turn_count,
                                                   &codex->turn_capacity, sizeof(turns[0]));

    if (turns == NULL) {
        return false;
    }
    codex->turns = turns;
    turns[codex->turn_count] = span.size > 0 ? wal__arena_copy(reader->arena, span) : none;
    if (span.size > 0 && turns[codex->turn_count].data == NULL) {
        return false;
    }
    codex->turn_count++;
    return true;
}

bool wal__codex_roll_back(struct wal__model_reader *reader, struct wal__model_item *item,
                          uint64_t turns)
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
    if (turns > 0 &&
        !wal__codex_text_set(reader, &codex->last_item, codex->turns[codex->turn_count])) {
        return false;
    }
    return wal__codex_emit(reader, item);
}

/* --- events and items ---------------------------------------------------- */

/* Emits a message for an event without an item. */
static bool flush(struct wal__model_reader *reader, struct wal__codex_echo *echo)
{
    struct wal__codex *codex = reader->state;
    struct wal__model_block block = {.kind = WAL__BLOCK_TEXT};
    struct wal__model_item item = {.kind = WAL__ITEM_MESSAGE, .blocks = &block, .block_count = 1};
    struct wal__model_block *kept;

    echo->unmatched_items = 0;
    if (!echo->is_pending) {
        return true;
    }
    echo->is_pending = false;
    item.role = echo == &codex->user ? WAL__ROLE_USER : WAL__ROLE_ASSISTANT;
    kept = wal__arena_alloc(reader->scratch, sizeof(*kept));
    if (kept == NULL || !wal__codex_text_copy(reader, &echo->text, &block.text) ||
        !wal__codex_text_copy(reader, &echo->time, &item.time)) {
        return false;
    }
    *kept = block;
    item.blocks = kept;
    /* Its source line is that of the event. */
    item.id = derive_id(reader, &echo->id, "~event");
    if (item.id.data == NULL || !wal__codex_text_copy(reader, &codex->pending_lines, &item.raw)) {
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
static bool match_event(struct wal__model_reader *reader, struct wal__codex_echo *echo,
                        const struct wal__model_line *line, struct wal__json_span text)
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
    if (!flush(reader, echo) || (is_user && !wal__codex_flush_lines(reader, false))) {
        return false;
    }
    echo->is_pending = true;
    last = (struct wal__json_span){codex->last_item.data, codex->last_item.size};
    return wal__codex_text_set(reader, &echo->id, line->id) &&
           wal__codex_text_set(reader, &echo->time, line->time) &&
           wal__codex_text_set(reader, &echo->text, text) &&
           (!is_user || wal__codex_text_set(reader, &codex->turn, last));
}

bool wal__codex_emit_event(struct wal__model_reader *reader, struct wal__codex_echo *echo,
                           const struct wal__model_line *line, struct wal__json_span text)
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
         !codex_text_add(reader, &codex->pending_lines, wal__model_literal("\n"))) ||
        !codex_text_add(reader, &codex->pending_lines, line->text) ||
        !wal__codex_text_set(reader, &codex->pending_id, line->id)) {
        return false;
    }
    return wal__codex_emit(reader, &item);
}

static bool emit_answer(struct wal__model_reader *reader, struct wal__model_item *item)
{
    struct wal__codex *codex = reader->state;

    if (!flush(reader, &codex->user)) {
        return false;
    }
    if (wal__model_has_block(item->blocks, item->block_count, WAL__BLOCK_TEXT)) {
        (void)match_item(&codex->agent);
    }
    if (!codex->is_answering && !wal__codex_text_set(reader, &codex->answer, item->id)) {
        return false;
    }
    codex->is_answering = true;
    return wal__codex_text_copy(reader, &codex->answer, &item->answer_id) &&
           wal__codex_text_copy(reader, &codex->model, &item->model) &&
           wal__codex_text_copy(reader, &codex->provider, &item->provider) &&
           wal__codex_emit(reader, item);
}

static bool emit_prompt(struct wal__model_reader *reader, struct wal__model_item *item)
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
    if (!item->is_meta && !codex->user.is_pending && !wal__codex_flush_lines(reader, false)) {
        return false;
    }
    if (!item->is_meta &&
        !begin_turn(reader, match_item(&codex->user) ? &codex->turn : &codex->last_item)) {
        return false;
    }
    return wal__codex_emit(reader, item);
}

bool wal__codex_emit_message(struct wal__model_reader *reader, struct wal__model_item *item)
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
