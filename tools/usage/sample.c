/*
 * sample.c - reads counts (usage.h).
 */
#include "tools/usage/usage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "convert/model/model_member.h"
#include "convert/model/model_table.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- values ------------------------------------------------------------- */

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A number of JSON; false for any other value, and for one below zero. */
static bool read_number(const struct wal__json_member *member, double *number)
{
    char text[64];

    if (member->value.kind != WAL__JSON_NUMBER || member->value.span.size >= sizeof(text)) {
        return false;
    }
    memcpy(text, member->value.span.data, member->value.span.size);
    text[member->value.span.size] = '\0';
    *number = strtod(text, NULL);
    return isfinite(*number) && *number >= 0;
}

/* A count, exact where it has no fraction, else rounded; 0 for any other value. */
static uint64_t count_of(const struct wal__json_member *member)
{
    double number = 0;
    int64_t count = 0;

    if (!read_number(member, &number)) {
        return 0;
    }
    if (wal__json_integer(member->value.span, &count) == WAL__JSON_OK) {
        return (uint64_t)count;
    }
    return number < 9e15 ? (uint64_t)(number + 0.5) : 0;
}

static void read_cost(const struct wal__json_member *member, struct usage_sample *sample)
{
    double cost;

    if (!sample->has_cost && read_number(member, &cost)) {
        sample->cost = cost;
        sample->has_cost = true;
    }
}

static void read_model(const struct wal__json_member *member, char model[USAGE_MODEL_SIZE])
{
    uint8_t text[USAGE_MODEL_SIZE - 1];
    size_t size = 0;
    bool has_nul = false;

    if (member->value.kind == WAL__JSON_STRING &&
        wal__json_unescape(member->value.span, text, sizeof(text), &size, &has_nul) ==
            WAL__JSON_OK &&
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
    return member->value.kind == WAL__JSON_STRING && wal__json_string_is(member->value.span, text);
}

static bool members_of(struct wal__json_span object, struct wal__json_member *members, size_t count)
{
    return wal__model_members(object, members, count, NULL) == WAL__JSON_OK;
}

bool usage_may_count(struct wal_slice text)
{
    static const char *const names[] = {
        "\"usage\"",         "\"token_count\"",    "\"tokens\"",        "\"turn_context\"",
        "\"session_meta\"",  "\"total_cost_usd\"", "\"usageMetadata\"", "\"modelMetrics\"",
        "\"session.start\"", "\"projectHash\"",    "\"token_usage\"",
    };

    for (size_t i = 0; text.size > 0 && i < sizeof(names) / sizeof(names[0]); i++) {
        if (memmem(text.data, (size_t)text.size, names[i], strlen(names[i])) != NULL) {
            return true;
        }
    }
    return false;
}

/* --- usage of a message ------------------------------------------------- */

/* Reads {"input_tokens",...} of Claude Code, {"inputOther",...} of Kimi Code, {"input_other",...}
 * of Kimi CLI, or {"input",...} of pi and of appended entries. cached_input_tokens are part of the
 * input. Returns whether it has a count. */
static bool read_usage(struct wal__json_span usage, struct usage_sample *sample)
{
    enum { INPUT, OUTPUT, READ, WRITE, KINDS };
    static const struct {
        const char *key;
        size_t kind;
    } counts[] = {{"input", INPUT},
                  {"input_tokens", INPUT},
                  {"inputOther", INPUT},
                  {"input_other", INPUT},
                  {"output", OUTPUT},
                  {"output_tokens", OUTPUT},
                  {"cacheRead", READ},
                  {"cache_read_input_tokens", READ},
                  {"inputCacheRead", READ},
                  {"input_cache_read", READ},
                  {"cacheWrite", WRITE},
                  {"cache_creation_input_tokens", WRITE},
                  {"inputCacheCreation", WRITE},
                  {"input_cache_creation", WRITE}};
    enum {
        COUNTS = sizeof(counts) / sizeof(counts[0]),
        WRITE_1H = COUNTS,
        CACHED,
        REASONING,
        COST,
        COST_TOTAL,
        SPEED,
        COUNT
    };
    struct wal__json_member m[COUNT] = {
        [WRITE_1H] = {.parent = "cache_creation", .key = "ephemeral_1h_input_tokens"},
        [CACHED] = {.key = "cached_input_tokens"},
        [REASONING] = {.key = "reasoning"},
        [COST] = {.key = "cost"},
        [COST_TOTAL] = {.parent = "cost", .key = "total"},
        [SPEED] = {.key = "speed"}};
    struct usage_tokens *tokens = &sample->tokens;
    uint64_t sums[KINDS] = {0};
    uint64_t cached;
    bool is_known = false;

    for (size_t i = 0; i < COUNTS; i++) {
        m[i].key = counts[i].key;
    }
    if (usage.size == 0 || !members_of(usage, m, COUNT)) {
        return false;
    }
    for (size_t i = 0; i < COUNTS; i++) {
        sums[counts[i].kind] = add(sums[counts[i].kind], count_of(&m[i]));
        is_known |= m[i].value.kind == WAL__JSON_NUMBER;
    }
    cached = smaller(count_of(&m[CACHED]), sums[INPUT]);
    tokens->input = sums[INPUT] - cached;
    tokens->output = sums[OUTPUT];
    tokens->cache_read = add(sums[READ], cached);
    tokens->cache_write = sums[WRITE];
    tokens->cache_write_1h = smaller(count_of(&m[WRITE_1H]), tokens->cache_write);
    tokens->reasoning = count_of(&m[REASONING]);
    tokens->total =
        add(add(tokens->input, tokens->output), add(tokens->cache_read, tokens->cache_write));
    read_cost(&m[COST], sample);
    read_cost(&m[COST_TOTAL], sample);
    sample->is_fast = is_string(&m[SPEED], "fast");
    sample->is_request = true;
    return is_known;
}

/* Reads the counts of a message of OpenCode, whose output does not include the reasoning. Returns
 * whether it is an answer. In version 2 it has a type instead of a role. */
static bool read_opencode(struct wal__json_span info, struct usage_sample *sample)
{
    enum {
        ROLE,
        TYPE,
        ID,
        MODEL,
        MODEL_ID,
        COST,
        TIME,
        INPUT,
        OUTPUT,
        REASONING,
        CACHE,
        TOKENS,
        COUNT
    };
    struct wal__json_member m[COUNT] = {[ROLE] = {.key = "role"},
                                        [TYPE] = {.key = "type"},
                                        [ID] = {.key = "id"},
                                        [MODEL] = {.key = "modelID"},
                                        [MODEL_ID] = {.parent = "model", .key = "id"},
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
        !(is_string(&m[ROLE], "assistant") || is_string(&m[TYPE], "assistant") ||
          is_string(&m[TYPE], "compaction")) ||
        m[TOKENS].value.kind != WAL__JSON_OBJECT ||
        !members_of(wal__member_container(&m[CACHE]), cache, 2)) {
        return false;
    }
    tokens->input = count_of(&m[INPUT]);
    tokens->output = count_of(&m[OUTPUT]);
    tokens->reasoning = count_of(&m[REASONING]);
    tokens->cache_read = count_of(&cache[0]);
    tokens->cache_write = count_of(&cache[1]);
    tokens->total = add(add(add(tokens->input, tokens->output), tokens->reasoning),
                        add(tokens->cache_read, tokens->cache_write));
    if (m[ID].value.kind == WAL__JSON_STRING) {
        sample->key = wal__model_string_hash(0, m[ID].value.span);
    }
    read_cost(&m[COST], sample);
    read_model(&m[m[MODEL].value.kind == WAL__JSON_STRING ? MODEL : MODEL_ID], sample->model);
    read_time(&m[TIME], &sample->time_ms);
    sample->is_request = true;
    return tokens->total > 0 || sample->cost > 0;
}

/* Reads the counts of Google's API, whose prompt includes what was read from a cache, and whose
 * total may include thoughts that the candidates do not. Returns whether it has a count. */
static bool read_metadata(struct wal__json_span metadata, struct usage_sample *sample)
{
    enum { PROMPT, CANDIDATES, CACHED, THOUGHTS, TOTAL, COUNT };
    struct wal__json_member m[COUNT] = {[PROMPT] = {.key = "promptTokenCount"},
                                        [CANDIDATES] = {.key = "candidatesTokenCount"},
                                        [CACHED] = {.key = "cachedContentTokenCount"},
                                        [THOUGHTS] = {.key = "thoughtsTokenCount"},
                                        [TOTAL] = {.key = "totalTokenCount"}};
    struct usage_tokens *tokens = &sample->tokens;
    uint64_t prompt;

    if (metadata.size == 0 || !members_of(metadata, m, COUNT)) {
        return false;
    }
    prompt = count_of(&m[PROMPT]);
    tokens->cache_read = smaller(count_of(&m[CACHED]), prompt);
    tokens->input = prompt - tokens->cache_read;
    tokens->reasoning = count_of(&m[THOUGHTS]);
    tokens->output = count_of(&m[CANDIDATES]);
    if (add(add(prompt, tokens->output), tokens->reasoning) == count_of(&m[TOTAL])) {
        tokens->output = add(tokens->output, tokens->reasoning);
    }
    tokens->total = add(prompt, tokens->output);
    sample->is_request = true;
    return tokens->total > 0;
}

/* --- Gemini CLI and Copilot CLI ------------------------------------------ */

/* Reads the counts of a message of Gemini CLI, whose input includes what was read from a cache and
 * whose output does not include the thoughts. It is written again while it grows. */
static bool read_gemini(struct wal__json_span message, const struct usage_codex *codex,
                        struct usage_sample *sample)
{
    enum { ID, MODEL, TIME, INPUT, OUTPUT, CACHED, THOUGHTS, COUNT };
    struct wal__json_member m[COUNT] = {[ID] = {.key = "id"},
                                        [MODEL] = {.key = "model"},
                                        [TIME] = {.key = "timestamp"},
                                        [INPUT] = {.parent = "tokens", .key = "input"},
                                        [OUTPUT] = {.parent = "tokens", .key = "output"},
                                        [CACHED] = {.parent = "tokens", .key = "cached"},
                                        [THOUGHTS] = {.parent = "tokens", .key = "thoughts"}};
    struct usage_tokens *tokens = &sample->tokens;
    uint64_t input;

    if (message.size == 0 || !members_of(message, m, COUNT) ||
        m[INPUT].value.kind != WAL__JSON_NUMBER) {
        return false;
    }
    input = count_of(&m[INPUT]);
    tokens->cache_read = smaller(count_of(&m[CACHED]), input);
    tokens->input = input - tokens->cache_read;
    tokens->reasoning = count_of(&m[THOUGHTS]);
    tokens->output = add(count_of(&m[OUTPUT]), tokens->reasoning);
    tokens->total = add(input, tokens->output);
    if (m[ID].value.kind == WAL__JSON_STRING) {
        sample->key = wal__model_string_hash(codex->thread + 5, m[ID].value.span);
    }
    read_model(&m[MODEL], sample->model);
    read_time(&m[TIME], &sample->time_ms);
    sample->is_request = true;
    return true;
}

/* Passes on the messages of a list that replaces all before it, or of a session in one object. */
static void read_gemini_list(struct wal__json_span messages, const struct usage_codex *codex,
                             int64_t time_ms, usage_sample_fn *each, void *ctx)
{
    struct wal__json_scan scan;
    struct wal__json_token message;

    wal__model_array_begin(&scan, messages);
    while (wal__model_array_next(&scan, &message)) {
        struct usage_sample sample = {.time_ms = time_ms};

        if (message.kind == WAL__JSON_OBJECT && read_gemini(message.span, codex, &sample)) {
            each(ctx, &sample);
        }
    }
}

/* Passes on the sums of a session of Copilot CLI, {MODEL:{requests,usage}}, whose input includes
 * that of the cache. A later one has the earlier one in it. */
static void read_metrics(struct wal__json_span metrics, const struct usage_codex *codex,
                         int64_t time_ms, usage_sample_fn *each, void *ctx)
{
    enum { REQUESTS, INPUT, OUTPUT, READ, WRITE, REASONING, COUNT };
    struct wal__json_scan scan;
    struct wal__json_member name = {.key = NULL};
    struct wal__json_token value;

    wal__json_scan_init(&scan, metrics.data, metrics.size);
    while (wal__json_scan_next(&scan, &name.value) == WAL__JSON_OK &&
           name.value.kind != WAL__JSON_END) {
        struct wal__json_member m[COUNT] = {
            [REQUESTS] = {.parent = "requests", .key = "count"},
            [INPUT] = {.parent = "usage", .key = "inputTokens"},
            [OUTPUT] = {.parent = "usage", .key = "outputTokens"},
            [READ] = {.parent = "usage", .key = "cacheReadTokens"},
            [WRITE] = {.parent = "usage", .key = "cacheWriteTokens"},
            [REASONING] = {.parent = "usage", .key = "reasoningTokens"}};
        struct usage_sample sample = {.time_ms = time_ms, .is_request = true};
        struct usage_tokens *tokens = &sample.tokens;
        uint64_t input;

        if (name.value.kind != WAL__JSON_KEY ||
            wal__json_scan_skip(&scan, &value) != WAL__JSON_OK || value.kind != WAL__JSON_OBJECT ||
            !members_of(value.span, m, COUNT) || m[INPUT].value.kind != WAL__JSON_NUMBER) {
            continue;
        }
        input = count_of(&m[INPUT]);
        tokens->cache_read = smaller(count_of(&m[READ]), input);
        tokens->cache_write = smaller(count_of(&m[WRITE]), input - tokens->cache_read);
        tokens->input = input - tokens->cache_read - tokens->cache_write;
        tokens->output = count_of(&m[OUTPUT]);
        tokens->reasoning = count_of(&m[REASONING]);
        tokens->total = add(input, tokens->output);
        sample.others = less(count_of(&m[REQUESTS]), 1);
        name.value.kind = WAL__JSON_STRING;
        read_model(&name, sample.model);
        sample.key =
            codex->thread == 0 ? 0 : wal__model_string_hash(codex->thread + 6, name.value.span);
        each(ctx, &sample);
    }
}

/* --- Codex -------------------------------------------------------------- */

enum {
    CODEX_INPUT, /* with what was read from a cache or written to one */
    CODEX_CACHED,
    CODEX_WRITTEN,
    CODEX_OUTPUT, /* with the reasoning */
    CODEX_REASONING
};

/* Reads the counts of a call, or of all calls so far. */
static bool read_codex_counts(struct wal__json_span info, const char *parent,
                              uint64_t counts[USAGE_CODEX_COUNTS])
{
    struct wal__json_member m[USAGE_CODEX_COUNTS] = {
        [CODEX_INPUT] = {.parent = parent, .key = "input_tokens"},
        [CODEX_CACHED] = {.parent = parent, .key = "cached_input_tokens"},
        [CODEX_WRITTEN] = {.parent = parent, .key = "cache_write_input_tokens"},
        [CODEX_OUTPUT] = {.parent = parent, .key = "output_tokens"},
        [CODEX_REASONING] = {.parent = parent, .key = "reasoning_output_tokens"},
    };

    if (info.size == 0 || !members_of(info, m, USAGE_CODEX_COUNTS)) {
        return false;
    }
    for (size_t i = 0; i < USAGE_CODEX_COUNTS; i++) {
        counts[i] = count_of(&m[i]);
    }
    return m[CODEX_INPUT].value.kind == WAL__JSON_NUMBER;
}

/* Returns the hash of the thread that a header names as the one that it came from; 0: none. */
static uint64_t codex_parent(const struct wal__json_member *source,
                             const struct wal__json_member *forked,
                             const struct wal__json_member *parent)
{
    struct wal__json_member spawn = {.parent = "subagent", .key = "thread_spawn"};
    struct wal__json_member id = {.key = "parent_thread_id"};
    struct wal__json_span object = wal__member_container(source);

    if (object.size > 0 && members_of(object, &spawn, 1)) {
        object = wal__member_container(&spawn);
    }
    if (object.size == 0 || !members_of(object, &id, 1) || id.value.kind != WAL__JSON_STRING) {
        id = forked->value.kind == WAL__JSON_STRING ? *forked : *parent;
    }
    return id.value.kind == WAL__JSON_STRING ? wal__model_string_hash(3, id.value.span) : 0;
}

/* Reads a header. The first one is the file's; a copy of another file has that one's after it. */
static void read_codex_header(struct wal__json_span payload, int64_t time_ms,
                              struct usage_codex *codex)
{
    struct wal__json_member m[] = {{.key = "id"},
                                   {.key = "source"},
                                   {.key = "forked_from_id"},
                                   {.key = "parent_thread_id"},
                                   {.key = "subagent_history_start_ordinal"}};
    uint64_t thread;

    if (payload.size == 0 || !members_of(payload, m, 5) || m[0].value.kind != WAL__JSON_STRING) {
        return;
    }
    thread = wal__model_string_hash(3, m[0].value.span);
    if (codex->thread == 0) {
        codex->thread = thread;
        codex->parents[0] = codex_parent(&m[1], &m[2], &m[3]);
        codex->began_ms = time_ms; /* not its "timestamp", which may be that of the other thread */
        codex->own_ordinal = count_of(&m[4]);
    } else if (thread != codex->thread) {
        codex->parents[1] = thread;
    }
}

/* Identifies an event by a thread and totals, which a copy keeps even if its times are new. */
static uint64_t codex_key(const struct usage_codex *codex, uint64_t thread,
                          const uint64_t last[USAGE_CODEX_COUNTS])
{
    const struct wal__json_span totals = {(const uint8_t *)codex->total, sizeof(codex->total)};
    const struct wal__json_span counts = {(const uint8_t *)last,
                                          USAGE_CODEX_COUNTS * sizeof(last[0])};

    return thread == 0 ? 0 : wal__model_hash(wal__model_hash(thread, totals), counts);
}

/* Reads an event token_count. One with the totals of the one before it repeats it, and is no
 * request. */
static void read_codex(struct wal__json_span info, struct usage_codex *codex,
                       struct usage_sample *sample)
{
    struct usage_tokens *tokens = &sample->tokens;
    uint64_t total[USAGE_CODEX_COUNTS];
    uint64_t last[USAGE_CODEX_COUNTS];
    bool has_total = read_codex_counts(info, "total_token_usage", total);
    bool has_last = read_codex_counts(info, "last_token_usage", last);

    if (has_total && codex->has_total && memcmp(total, codex->total, sizeof(total)) == 0) {
        return;
    }
    if (!has_last && has_total) {
        for (size_t i = 0; i < USAGE_CODEX_COUNTS; i++) {
            last[i] = less(total[i], codex->has_total ? codex->total[i] : 0);
        }
        has_last = true;
    }
    if (has_total) {
        memcpy(codex->total, total, sizeof(total));
        codex->has_total = true;
        sample->key = has_last ? codex_key(codex, codex->thread, last) : 0;
        for (size_t i = 0; has_last && i < USAGE_PARENTS; i++) {
            sample->parents[i] = codex->parents[i];
            sample->parent_keys[i] = codex_key(codex, codex->parents[i], last);
        }
        sample->thread = codex->thread;
        sample->began_ms = codex->began_ms;
    }
    if (!has_last || last[CODEX_INPUT] + last[CODEX_OUTPUT] == 0) {
        return;
    }
    tokens->cache_read = smaller(last[CODEX_CACHED], last[CODEX_INPUT]);
    tokens->input = last[CODEX_INPUT] - tokens->cache_read;
    tokens->cache_write = smaller(last[CODEX_WRITTEN], tokens->input);
    tokens->input -= tokens->cache_write;
    tokens->output = last[CODEX_OUTPUT];
    tokens->reasoning = last[CODEX_REASONING];
    tokens->total = add(last[CODEX_INPUT], last[CODEX_OUTPUT]);
    memcpy(sample->model, codex->model, sizeof(sample->model));
    sample->is_request = true;
}

/* --- lines -------------------------------------------------------------- */

enum {
    LINE_TYPE,
    LINE_ID,
    LINE_TIMESTAMP,
    LINE_ORDINAL,
    LINE_REQUEST,
    LINE_SESSION,
    LINE_SIDECHAIN,
    LINE_COST,
    LINE_USAGE,
    LINE_MODEL,
    LINE_MESSAGE_ID,
    LINE_MESSAGE_USAGE,
    LINE_MESSAGE_MODEL,
    LINE_DATA_MESSAGE,
    LINE_PAYLOAD,
    LINE_PAYLOAD_TYPE,
    LINE_PAYLOAD_INFO,
    LINE_PAYLOAD_USAGE,
    LINE_PAYLOAD_MODEL,
    LINE_INFO,
    LINE_UUID,
    LINE_METADATA,
    LINE_SCOPE,
    LINE_DATA_SESSION,
    LINE_DATA_METRICS,
    LINE_SET_MESSAGES,
    LINE_MESSAGES,
    LINE_PROJECT,
    LINE_STATUS,
    LINE_COUNT
};

static const struct wal__json_member line_members[LINE_COUNT] = {
    [LINE_TYPE] = {.key = "type"},
    [LINE_ID] = {.key = "id"},
    [LINE_TIMESTAMP] = {.key = "timestamp"},
    [LINE_ORDINAL] = {.key = "ordinal"},
    [LINE_REQUEST] = {.key = "requestId"},
    [LINE_SESSION] = {.key = "sessionId"},
    [LINE_SIDECHAIN] = {.key = "isSidechain"},
    [LINE_COST] = {.key = "costUSD"},
    [LINE_USAGE] = {.key = "usage"},
    [LINE_MODEL] = {.key = "model"},
    [LINE_MESSAGE_ID] = {.parent = "message", .key = "id"},
    [LINE_MESSAGE_USAGE] = {.parent = "message", .key = "usage"},
    [LINE_MESSAGE_MODEL] = {.parent = "message", .key = "model"},
    [LINE_DATA_MESSAGE] = {.parent = "data", .key = "message"},
    [LINE_PAYLOAD] = {.key = "payload"},
    [LINE_PAYLOAD_TYPE] = {.parent = "payload", .key = "type"},
    [LINE_PAYLOAD_INFO] = {.parent = "payload", .key = "info"},
    [LINE_PAYLOAD_USAGE] = {.parent = "payload", .key = "usage"},
    [LINE_PAYLOAD_MODEL] = {.parent = "payload", .key = "model"},
    [LINE_INFO] = {.key = "info"},
    [LINE_UUID] = {.key = "uuid"},
    [LINE_METADATA] = {.key = "usageMetadata"},
    [LINE_SCOPE] = {.key = "usageScope"},
    [LINE_DATA_SESSION] = {.parent = "data", .key = "sessionId"},
    [LINE_DATA_METRICS] = {.parent = "data", .key = "modelMetrics"},
    [LINE_SET_MESSAGES] = {.parent = "$set", .key = "messages"},
    [LINE_MESSAGES] = {.key = "messages"},
    [LINE_PROJECT] = {.key = "projectHash"},
    [LINE_STATUS] = {.parent = "message", .key = "payload"}};

/* Identifies an answer: several lines of Claude Code may have it, and a copied session the same
 * line again. A side chain that goes on from another one copies its answers with other requests. */
static void set_keys(struct wal__json_span line, const struct wal__json_member *m,
                     struct usage_sample *sample)
{
    if (m[LINE_MESSAGE_ID].value.kind == WAL__JSON_STRING) {
        uint64_t key = wal__model_string_hash(1, m[LINE_MESSAGE_ID].value.span);

        sample->key = m[LINE_REQUEST].value.kind == WAL__JSON_STRING
                          ? wal__model_string_hash(key, m[LINE_REQUEST].value.span)
                          : key;
        if (m[LINE_SESSION].value.kind == WAL__JSON_STRING) {
            sample->replay_key = wal__model_string_hash(key + 1, m[LINE_SESSION].value.span);
        }
        sample->is_sidechain = wal__member_is_true(&m[LINE_SIDECHAIN]);
    } else if (m[LINE_TIMESTAMP].value.kind == WAL__JSON_STRING &&
               (m[LINE_ID].value.kind == WAL__JSON_STRING ||
                m[LINE_MESSAGE_USAGE].value.kind == WAL__JSON_OBJECT)) {
        sample->key = wal__model_hash(2, line);
    }
}

/* Reads the counts of an answer of Claude Code, pi, or an appended entry. Returns where they are;
 * an empty span: nowhere. */
static struct wal__json_span read_message(struct wal__json_span line,
                                          const struct wal__json_member *m,
                                          struct usage_sample *sample)
{
    static const int places[][2] = {
        {LINE_MESSAGE_USAGE, LINE_MESSAGE_MODEL},
        {LINE_PAYLOAD_USAGE, LINE_PAYLOAD_MODEL},
        {LINE_USAGE, LINE_MODEL},
    };

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct wal__json_span usage = wal__member_container(&m[places[i][0]]);

        if (read_usage(usage, sample)) {
            read_model(&m[places[i][1]], sample->model);
            read_cost(&m[LINE_COST], sample);
            set_keys(line, m, sample);
            return usage;
        }
    }
    return (struct wal__json_span){NULL, 0};
}

/* Passes on the answers of advisors, which the counts of the answer that asked them do not
 * include. */
static void read_advisors(struct wal__json_span usage, const struct usage_sample *asker,
                          usage_sample_fn *each, void *ctx)
{
    struct wal__json_member iterations = {.key = "iterations"};
    struct wal__json_scan scan;
    struct wal__json_token item;

    if (!members_of(usage, &iterations, 1)) {
        return;
    }
    wal__model_array_begin(&scan, wal__member_container(&iterations));
    for (uint64_t i = 1; wal__model_array_next(&scan, &item); i++) {
        struct wal__json_member m[] = {{.key = "type"}, {.key = "model"}};
        struct usage_sample sample = {.time_ms = asker->time_ms,
                                      .is_sidechain = asker->is_sidechain};

        if (members_of(item.span, m, 2) && is_string(&m[0], "advisor_message") &&
            read_usage(item.span, &sample)) {
            read_model(&m[1], sample.model);
            sample.key = asker->key == 0 ? 0 : asker->key + i;
            sample.replay_key = asker->replay_key == 0 ? 0 : asker->replay_key + i;
            each(ctx, &sample);
        }
    }
}

/* Reads a line of Codex. Returns whether it is one whose counts, if any, are not those of a
 * message. */
static bool read_codex_line(const struct wal__json_member *m, struct usage_codex *codex,
                            struct usage_sample *sample)
{
    if (is_string(&m[LINE_TYPE], "session_meta")) {
        read_codex_header(wal__member_container(&m[LINE_PAYLOAD]), sample->time_ms, codex);
        return true;
    }
    if (is_string(&m[LINE_TYPE], "turn_context")) {
        read_model(&m[LINE_PAYLOAD_MODEL], codex->model);
        return true;
    }
    if (is_string(&m[LINE_PAYLOAD_TYPE], "token_count")) {
        read_codex(wal__member_container(&m[LINE_PAYLOAD_INFO]), codex, sample);
        sample->is_request &= m[LINE_ORDINAL].value.kind != WAL__JSON_NUMBER ||
                              count_of(&m[LINE_ORDINAL]) >= codex->own_ordinal;
        return true;
    }
    /* An event token_count states the counts of a record again. */
    return is_string(&m[LINE_TYPE], "event_msg") || is_string(&m[LINE_TYPE], "token_usage_record");
}

/* Reads a line of Gemini CLI, Copilot CLI or Kimi CLI, or counts of Kimi Code that others have in
 * them.
 * Returns whether it is one. */
static bool read_other_line(struct wal__json_span line, const struct wal__json_member *m,
                            struct usage_codex *codex, int64_t time_ms, usage_sample_fn *each,
                            void *ctx)
{
    size_t session = is_string(&m[LINE_TYPE], "session.start") ? LINE_DATA_SESSION : LINE_SESSION;
    struct usage_sample sample = {.time_ms = time_ms};

    if ((session == LINE_DATA_SESSION || m[LINE_PROJECT].value.kind == WAL__JSON_STRING) &&
        m[session].value.kind == WAL__JSON_STRING) {
        codex->thread = wal__model_string_hash(7, m[session].value.span);
        read_gemini_list(wal__member_container(&m[LINE_MESSAGES]), codex, time_ms, each, ctx);
        return true;
    }
    if (is_string(&m[LINE_TYPE], "session.shutdown")) {
        read_metrics(wal__member_container(&m[LINE_DATA_METRICS]), codex, time_ms, each, ctx);
        return true;
    }
    if (m[LINE_SET_MESSAGES].value.kind == WAL__JSON_ARRAY) {
        read_gemini_list(m[LINE_SET_MESSAGES].value.span, codex, time_ms, each, ctx);
        return true;
    }
    if ((is_string(&m[LINE_TYPE], "gemini") || is_string(&m[LINE_TYPE], "tabnine")) &&
        read_gemini(line, codex, &sample)) {
        each(ctx, &sample);
        return true;
    }
    if (m[LINE_STATUS].value.kind == WAL__JSON_OBJECT) {
        struct wal__json_member usage = {.key = "token_usage"};

        if (members_of(m[LINE_STATUS].value.span, &usage, 1) &&
            read_usage(wal__member_container(&usage), &sample)) {
            each(ctx, &sample);
        }
        return true;
    }
    /* The sums of a turn are counted, not those of a session or a step as well. */
    return m[LINE_SCOPE].value.kind == WAL__JSON_STRING && !is_string(&m[LINE_SCOPE], "turn");
}

void usage_read_line(struct wal__json_span line, int64_t time_ms, struct usage_codex *codex,
                     usage_sample_fn *each, void *ctx)
{
    struct usage_sample sample = {.time_ms = time_ms};
    struct wal__json_member m[LINE_COUNT];
    struct wal__json_span usage;

    memcpy(m, line_members, sizeof(m));
    if (!members_of(line, m, LINE_COUNT)) {
        return;
    }
    if (is_string(&m[LINE_TYPE], "progress")) {
        /* A row of a subagent in the session that runs it. */
        line = wal__member_container(&m[LINE_DATA_MESSAGE]);
        memcpy(m, line_members, sizeof(m));
        if (line.size == 0 || !members_of(line, m, LINE_COUNT)) {
            return;
        }
    }
    read_time(&m[LINE_TIMESTAMP], &sample.time_ms);
    if (is_string(&m[LINE_TYPE], "result")) {
        return; /* the sum of a run, of which each answer is a line */
    }
    if (read_other_line(line, m, codex, sample.time_ms, each, ctx)) {
        return;
    }
    if (read_codex_line(m, codex, &sample)) {
        if (sample.is_request) {
            each(ctx, &sample);
        }
        return;
    }
    usage = read_message(line, m, &sample);
    if (usage.size == 0 && read_metadata(wal__member_container(&m[LINE_METADATA]), &sample)) {
        read_model(&m[LINE_MODEL], sample.model);
        if (m[LINE_UUID].value.kind == WAL__JSON_STRING) {
            sample.key = wal__model_string_hash(4, m[LINE_UUID].value.span); /* a fork keeps it */
        }
        each(ctx, &sample);
    } else if (usage.size > 0) {
        each(ctx, &sample);
        read_advisors(usage, &sample, each, ctx);
    } else if (read_opencode(wal__member_container(&m[LINE_INFO]), &sample)) {
        each(ctx, &sample);
    }
}

/* --- documents ---------------------------------------------------------- */

/* Passes on the answers of {info,messages:[{info,parts}]}. */
static void read_messages(struct wal__json_span messages, int64_t time_ms, usage_sample_fn *each,
                          void *ctx)
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

void usage_read_document(struct wal__json_span document, int64_t time_ms, usage_sample_fn *each,
                         void *ctx)
{
    enum { MESSAGES, COST, MODEL, CREATED, UPDATED, COUNT };
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
