/*
 * sample.c - reads counts (sample.h).
 */
#include "tools/usage/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_value.h"
#include "format/model/model_member.h"
#include "format/model/model_table.h"
#include "format/model/model_timestamp.h"

/* --- values ------------------------------------------------------------- */

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* A count; 0 for any other value. */
static uint64_t count_of(const struct wal__json_member *member)
{
    int64_t number = 0;

    return member->value.kind == WAL__JSON_NUMBER &&
                   wal__json_integer(member->value.span, &number) ==
                       WAL__JSON_OK &&
                   number > 0
               ? (uint64_t)number
               : 0;
}

static void read_cost(const struct wal__json_member *member,
                      struct usage_sample *sample)
{
    char text[64];
    double cost;

    if (sample->has_cost || member->value.kind != WAL__JSON_NUMBER ||
        member->value.span.size >= sizeof(text)) {
        return;
    }
    memcpy(text, member->value.span.data, member->value.span.size);
    text[member->value.span.size] = '\0';
    cost = strtod(text, NULL);
    if (isfinite(cost) && cost >= 0) {
        sample->cost = cost;
        sample->has_cost = true;
    }
}

static void read_model(const struct wal__json_member *member,
                       char model[USAGE_MODEL_SIZE])
{
    uint8_t text[USAGE_MODEL_SIZE - 1];
    size_t size = 0;
    bool has_nul = false;

    if (member->value.kind == WAL__JSON_STRING &&
        wal__json_unescape(member->value.span, text, sizeof(text), &size,
                           &has_nul) == WAL__JSON_OK &&
        size > 0 && !has_nul) {
        memcpy(model, text, size);
        model[size] = '\0';
    }
}

static void read_time(const struct wal__json_member *member, int64_t *ms)
{
    (void)wal__model_time_read(member->value.span, ms);
}

static bool is_string(const struct wal__json_member *member, const char *text)
{
    return member->value.kind == WAL__JSON_STRING &&
           wal__json_string_is(member->value.span, text);
}

static bool members_of(struct wal__json_span object,
                       struct wal__json_member *members, size_t count)
{
    return wal__model_members(object, members, count, NULL) == WAL__JSON_OK;
}

bool usage_may_count(struct wal_slice text)
{
    static const char *const names[] = {"\"usage\"", "\"token_count\"",
                                        "\"tokens\"", "\"turn_context\"",
                                        "\"total_cost_usd\""};

    for (size_t i = 0; text.size > 0 && i < sizeof(names) / sizeof(names[0]);
         i++) {
        if (memmem(text.data, (size_t)text.size, names[i], strlen(names[i])) !=
            NULL) {
            return true;
        }
    }
    return false;
}

/* --- usage of a message ------------------------------------------------- */

/* Reads {"input_tokens",...} of Claude Code or {"input",...} of pi and of
 * appended entries. Returns whether it has a count. */
static bool read_usage(struct wal__json_span usage, struct usage_sample *sample)
{
    enum {
        INPUT,
        INPUT_TOKENS,
        OUTPUT,
        OUTPUT_TOKENS,
        READ,
        READ_TOKENS,
        WRITE,
        WRITE_TOKENS,
        REASONING,
        COST,
        COST_TOTAL,
        COUNT
    };
    struct wal__json_member m[COUNT] = {
        [INPUT] = {.key = "input"},
        [INPUT_TOKENS] = {.key = "input_tokens"},
        [OUTPUT] = {.key = "output"},
        [OUTPUT_TOKENS] = {.key = "output_tokens"},
        [READ] = {.key = "cacheRead"},
        [READ_TOKENS] = {.key = "cache_read_input_tokens"},
        [WRITE] = {.key = "cacheWrite"},
        [WRITE_TOKENS] = {.key = "cache_creation_input_tokens"},
        [REASONING] = {.key = "reasoning"},
        [COST] = {.key = "cost"},
        [COST_TOTAL] = {.parent = "cost", .key = "total"}};
    struct usage_tokens *tokens = &sample->tokens;
    bool is_known = false;

    if (usage.size == 0 || !members_of(usage, m, COUNT)) {
        return false;
    }
    for (size_t i = INPUT; i <= WRITE_TOKENS; i++) {
        is_known |= m[i].value.kind == WAL__JSON_NUMBER;
    }
    tokens->input = add(count_of(&m[INPUT]), count_of(&m[INPUT_TOKENS]));
    tokens->output = add(count_of(&m[OUTPUT]), count_of(&m[OUTPUT_TOKENS]));
    tokens->cache_read = add(count_of(&m[READ]), count_of(&m[READ_TOKENS]));
    tokens->cache_write = add(count_of(&m[WRITE]), count_of(&m[WRITE_TOKENS]));
    tokens->reasoning = count_of(&m[REASONING]);
    tokens->total = add(add(tokens->input, tokens->output),
                        add(tokens->cache_read, tokens->cache_write));
    read_cost(&m[COST], sample);
    read_cost(&m[COST_TOTAL], sample);
    sample->is_request = true;
    return is_known;
}

/* Reads the counts of a message of OpenCode, whose output does not include the
 * reasoning. Returns whether it is an answer. */
static bool read_opencode(struct wal__json_span info,
                          struct usage_sample *sample)
{
    enum {
        ROLE,
        ID,
        MODEL,
        COST,
        TIME,
        INPUT,
        OUTPUT,
        REASONING,
        CACHE,
        TOKENS,
        COUNT
    };
    struct wal__json_member m[COUNT] = {
        [ROLE] = {.key = "role"},
        [ID] = {.key = "id"},
        [MODEL] = {.key = "modelID"},
        [COST] = {.key = "cost"},
        [TIME] = {.parent = "time", .key = "created"},
        [INPUT] = {.parent = "tokens", .key = "input"},
        [OUTPUT] = {.parent = "tokens", .key = "output"},
        [REASONING] = {.parent = "tokens", .key = "reasoning"},
        [CACHE] = {.parent = "tokens", .key = "cache"},
        [TOKENS] = {.key = "tokens"}};
    struct wal__json_member cache[] = {{.key = "read"}, {.key = "write"}};
    struct usage_tokens *tokens = &sample->tokens;

    if (info.size == 0 || !members_of(info, m, COUNT) ||
        !is_string(&m[ROLE], "assistant") ||
        m[TOKENS].value.kind != WAL__JSON_OBJECT ||
        !members_of(wal__member_container(&m[CACHE]), cache, 2)) {
        return false;
    }
    tokens->input = count_of(&m[INPUT]);
    tokens->output = count_of(&m[OUTPUT]);
    tokens->reasoning = count_of(&m[REASONING]);
    tokens->cache_read = count_of(&cache[0]);
    tokens->cache_write = count_of(&cache[1]);
    tokens->total =
        add(add(add(tokens->input, tokens->output), tokens->reasoning),
            add(tokens->cache_read, tokens->cache_write));
    if (m[ID].value.kind == WAL__JSON_STRING) {
        sample->key = wal__model_string_hash(0, m[ID].value.span);
    }
    read_cost(&m[COST], sample);
    read_model(&m[MODEL], sample->model);
    read_time(&m[TIME], &sample->time_ms);
    sample->is_request = true;
    return tokens->total > 0 || sample->cost > 0;
}

/* --- Codex -------------------------------------------------------------- */

/* Counts of a call, or of all calls so far: input with what is of a cache,
 * that, output with reasoning, and that. */
static bool read_codex_counts(struct wal__json_span info, const char *parent,
                              uint64_t counts[4])
{
    struct wal__json_member m[] = {
        {.parent = parent, .key = "input_tokens"},
        {.parent = parent, .key = "cached_input_tokens"},
        {.parent = parent, .key = "output_tokens"},
        {.parent = parent, .key = "reasoning_output_tokens"},
    };

    if (info.size == 0 || !members_of(info, m, 4)) {
        return false;
    }
    for (size_t i = 0; i < 4; i++) {
        counts[i] = count_of(&m[i]);
    }
    return m[0].value.kind == WAL__JSON_NUMBER;
}

/* Reads an event token_count. One with the totals of the one before it repeats
 * it. */
static bool read_codex(struct wal__json_span info, struct usage_codex *codex,
                       struct usage_sample *sample)
{
    struct usage_tokens *tokens = &sample->tokens;
    uint64_t total[4];
    uint64_t last[4];
    bool has_total = read_codex_counts(info, "total_token_usage", total);
    bool has_last = read_codex_counts(info, "last_token_usage", last);

    if (has_total && codex->has_total &&
        memcmp(total, codex->total, sizeof(total)) == 0) {
        return false;
    }
    if (!has_last && has_total) {
        for (size_t i = 0; i < 4; i++) {
            last[i] = less(total[i], codex->has_total ? codex->total[i] : 0);
        }
        has_last = true;
    }
    if (has_total) {
        memcpy(codex->total, total, sizeof(total));
        codex->has_total = true;
    }
    if (!has_last || last[0] + last[2] == 0) {
        return false;
    }
    tokens->cache_read = last[1] < last[0] ? last[1] : last[0];
    tokens->input = less(last[0], last[1]);
    tokens->output = last[2];
    tokens->reasoning = last[3];
    tokens->total = add(last[0], last[2]);
    memcpy(sample->model, codex->model, sizeof(sample->model));
    sample->is_request = true;
    return true;
}

/* --- lines -------------------------------------------------------------- */

enum {
    LINE_TYPE,
    LINE_ID,
    LINE_TIMESTAMP,
    LINE_REQUEST,
    LINE_COST,
    LINE_USAGE,
    LINE_MODEL,
    LINE_MESSAGE_ID,
    LINE_MESSAGE_USAGE,
    LINE_MESSAGE_MODEL,
    LINE_PAYLOAD_TYPE,
    LINE_PAYLOAD_INFO,
    LINE_PAYLOAD_USAGE,
    LINE_PAYLOAD_MODEL,
    LINE_INFO,
    LINE_COUNT
};

/* Identifies an answer: several lines of Claude Code may have it, and a copied
 * session the same line again. */
static uint64_t key_of(struct wal__json_span line,
                       const struct wal__json_member *m)
{
    if (m[LINE_MESSAGE_ID].value.kind == WAL__JSON_STRING) {
        uint64_t key = wal__model_string_hash(1, m[LINE_MESSAGE_ID].value.span);

        return m[LINE_REQUEST].value.kind == WAL__JSON_STRING
                   ? wal__model_string_hash(key, m[LINE_REQUEST].value.span)
                   : key;
    }
    return m[LINE_ID].value.kind == WAL__JSON_STRING &&
                   m[LINE_TIMESTAMP].value.kind == WAL__JSON_STRING
               ? wal__model_hash(2, line)
               : 0;
}

/* Reads the counts of an answer of Claude Code, pi, or an appended entry. */
static bool read_message(struct wal__json_span line,
                         const struct wal__json_member *m,
                         struct usage_sample *sample)
{
    static const int places[][2] = {
        {LINE_MESSAGE_USAGE, LINE_MESSAGE_MODEL},
        {LINE_PAYLOAD_USAGE, LINE_PAYLOAD_MODEL},
        {LINE_USAGE, LINE_MODEL},
    };

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (read_usage(wal__member_container(&m[places[i][0]]), sample)) {
            read_model(&m[places[i][1]], sample->model);
            read_cost(&m[LINE_COST], sample);
            sample->key = key_of(line, m);
            return true;
        }
    }
    return false;
}

bool usage_read_line(struct wal__json_span line, int64_t time_ms,
                     struct usage_codex *codex, struct usage_sample *sample)
{
    struct wal__json_member m[LINE_COUNT] = {
        [LINE_TYPE] = {.key = "type"},
        [LINE_ID] = {.key = "id"},
        [LINE_TIMESTAMP] = {.key = "timestamp"},
        [LINE_REQUEST] = {.key = "requestId"},
        [LINE_COST] = {.key = "costUSD"},
        [LINE_USAGE] = {.key = "usage"},
        [LINE_MODEL] = {.key = "model"},
        [LINE_MESSAGE_ID] = {.parent = "message", .key = "id"},
        [LINE_MESSAGE_USAGE] = {.parent = "message", .key = "usage"},
        [LINE_MESSAGE_MODEL] = {.parent = "message", .key = "model"},
        [LINE_PAYLOAD_TYPE] = {.parent = "payload", .key = "type"},
        [LINE_PAYLOAD_INFO] = {.parent = "payload", .key = "info"},
        [LINE_PAYLOAD_USAGE] = {.parent = "payload", .key = "usage"},
        [LINE_PAYLOAD_MODEL] = {.parent = "payload", .key = "model"},
        [LINE_INFO] = {.key = "info"}};

    *sample = (struct usage_sample){.time_ms = time_ms};
    if (!members_of(line, m, LINE_COUNT)) {
        return false;
    }
    read_time(&m[LINE_TIMESTAMP], &sample->time_ms);
    if (is_string(&m[LINE_TYPE], "turn_context")) {
        read_model(&m[LINE_PAYLOAD_MODEL], codex->model);
        return false;
    }
    if (is_string(&m[LINE_TYPE], "result")) {
        return false; /* the sum of a run, of which each answer is a line */
    }
    if (is_string(&m[LINE_PAYLOAD_TYPE], "token_count")) {
        return read_codex(wal__member_container(&m[LINE_PAYLOAD_INFO]), codex,
                          sample);
    }
    if (is_string(&m[LINE_TYPE], "event_msg")) {
        return false;
    }
    return read_message(line, m, sample) ||
           read_opencode(wal__member_container(&m[LINE_INFO]), sample);
}

/* --- documents ---------------------------------------------------------- */

/* Passes on the answers of {info,messages:[{info,parts}]}. */
static void read_messages(struct wal__json_span messages, int64_t time_ms,
                          usage_sample_fn *each, void *ctx)
{
    struct wal__json_scan scan;
    struct wal__json_token message;

    wal__model_array_begin(&scan, messages);
    while (wal__model_array_next(&scan, &message)) {
        struct wal__json_member info = {.key = "info"};
        struct usage_sample sample = {.time_ms = time_ms};

        if (members_of(message.span, &info, 1) &&
            read_opencode(wal__member_container(&info), &sample)) {
            each(ctx, &sample);
        }
    }
}

void usage_read_document(struct wal__json_span document, int64_t time_ms,
                         usage_sample_fn *each, void *ctx)
{
    enum {
        MESSAGES,
        COST,
        MODEL,
        CREATED,
        UPDATED,
        COUNT
    };
    struct wal__json_member m[COUNT] = {[MESSAGES] = {.key = "messages"},
                                        [COST] = {.key = "total_cost_usd"},
                                        [MODEL] = {.key = "model"},
                                        [CREATED] = {.key = "created_at"},
                                        [UPDATED] = {.key = "updated_at"}};
    struct usage_sample sample = {.time_ms = time_ms};

    if (!members_of(document, m, COUNT)) {
        return;
    }
    if (m[MESSAGES].value.kind == WAL__JSON_ARRAY) {
        read_messages(m[MESSAGES].value.span, time_ms, each, ctx);
    } else if (m[COST].value.kind == WAL__JSON_NUMBER) {
        read_time(&m[CREATED], &sample.time_ms);
        read_time(&m[UPDATED], &sample.time_ms);
        read_model(&m[MODEL], sample.model);
        read_cost(&m[COST], &sample);
        if (sample.cost > 0) {
            each(ctx, &sample);
        }
    } else if (read_opencode(document, &sample)) {
        each(ctx, &sample);
    }
}
