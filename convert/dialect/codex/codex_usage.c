/*
 * codex_usage.c - token counts of answers (codex_usage.h).
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/dialect/codex/codex_usage.h"

#include "convert/model/model_member.h"
#include "format/bytes/assert.h"
#include "format/json/json_value.h"

enum line_kind {
    LINE_OTHER,
    LINE_ANSWER, /* an item of a model's answer */
    LINE_EVENT,  /* an event that repeats one */
    LINE_COUNTS
};

/* Counts of a call of the model, or of all calls so far. */
struct counts {
    bool is_known;
    uint64_t input; /* with those read from a cache */
    uint64_t cached;
    uint64_t output;
    uint64_t reasoning;
};

/* --------------------------------------------------------------- lines --- */

static bool is_answer(struct wal__json_span type, struct wal__json_span role)
{
    return wal__model_text_is(type, "reasoning") ||
           wal__model_text_is(type, "function_call") ||
           wal__model_text_is(type, "custom_tool_call") ||
           wal__model_text_is(type, "local_shell_call") ||
           (wal__model_text_is(type, "message") &&
            wal__model_text_is(role, "assistant"));
}

/* Determines the kind of a line; *info: the counts of LINE_COUNTS. */
static enum line_kind kind_of(struct wal__json_span text,
                              struct wal__json_span *info)
{
    enum {
        TYPE,
        PAYLOAD_TYPE,
        ROLE,
        INFO,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [TYPE] = {.key = "type"},
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
        is_answer(payload, wal__member_string(&members[ROLE]))) {
        return LINE_ANSWER;
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
                   wal__model_text_is(payload, "agent_reasoning_raw_content")
               ? LINE_EVENT
               : LINE_OTHER;
}

/* -------------------------------------------------------------- counts --- */

static uint64_t number_of(const struct wal__json_member *member)
{
    int64_t number = 0;

    return member->value.kind == WAL__JSON_NUMBER &&
                   wal__json_integer(member->value.span, &number) ==
                       WAL__JSON_OK &&
                   number > 0 && number < INT64_MAX / 4
               ? (uint64_t)number
               : 0;
}

static struct counts read_counts(struct wal__json_span info, const char *parent)
{
    struct wal__json_member members[] = {
        {.parent = parent, .key = "input_tokens"},
        {.parent = parent, .key = "cached_input_tokens"},
        {.parent = parent, .key = "output_tokens"},
        {.parent = parent, .key = "reasoning_output_tokens"},
    };
    struct counts counts = {.is_known = false};

    if (wal__model_members(info, members, 4, NULL) == WAL__JSON_OK) {
        counts.is_known = members[0].value.kind == WAL__JSON_NUMBER;
        counts.input = number_of(&members[0]);
        counts.cached = number_of(&members[1]);
        counts.output = number_of(&members[2]);
        counts.reasoning = number_of(&members[3]);
    }
    return counts;
}

static uint64_t less(uint64_t total, uint64_t before)
{
    return total > before ? total - before : 0;
}

/* The counts of the last call: older versions only have the totals. */
static struct counts last_counts(struct wal__codex_held *held,
                                 struct wal__json_span info)
{
    struct counts last = read_counts(info, "last_token_usage");
    struct counts total = read_counts(info, "total_token_usage");

    if (!last.is_known && total.is_known) {
        last = (struct counts){.is_known = true,
                               .input = less(total.input, held->input),
                               .cached = less(total.cached, held->cached),
                               .output = less(total.output, held->output),
                               .reasoning =
                                   less(total.reasoning, held->reasoning)};
    }
    if (total.is_known) {
        held->input = total.input;
        held->cached = total.cached;
        held->output = total.output;
        held->reasoning = total.reasoning;
    }
    return last;
}

static bool write_number(struct wal__arena *arena, uint64_t number,
                         struct wal__json_span *span)
{
    uint8_t text[20];
    size_t at = sizeof(text);

    do {
        text[--at] = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    *span = wal__arena_copy(
        arena, (struct wal__json_span){text + at, sizeof(text) - at});
    return span->data != NULL;
}

/* Input tokens of the model do not include those read from a cache. */
static bool set_usage(struct wal__arena *arena, const struct counts *counts,
                      struct wal__model_usage *usage)
{
    return write_number(arena, less(counts->input, counts->cached),
                        &usage->input) &&
           write_number(arena, counts->output, &usage->output) &&
           write_number(arena, counts->cached, &usage->cache_read) &&
           write_number(arena, counts->reasoning, &usage->reasoning);
}

/* ------------------------------------------------------------- holding --- */

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
static bool restore(struct wal__model_reader *reader,
                    const struct wal__codex_held_line *from,
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
                                      const struct wal__model_line *line,
                                      wal__codex_line_fn *pass)
{
    struct wal__json_span info = {NULL, 0};
    enum line_kind kind = kind_of(line->text, &info);
    struct wal__model_usage usage = {.input = {NULL, 0}};
    bool has_usage = false;
    enum wal__json_status status;

    if (kind == LINE_EVENT && held->count > 0 &&
        held->count < WAL__CODEX_HELD_MAX) {
        return hold(reader, held, line) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
    }
    if (kind == LINE_COUNTS) {
        struct counts counts = last_counts(held, info);
        has_usage = counts.is_known && held->count > 0;
        if (has_usage && !set_usage(reader->scratch, &counts, &usage)) {
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
