/*
 * session_usage.c - the tokens and costs of a session (session_usage.h).
 */
#include "tools/shown/session_usage.h"

#include <stdlib.h>

#include "convert/model/dialect.h"
#include "convert/source/entry_payload.h"
#include "tools/cli/cli.h"
#include "tools/shown/entries.h"
#include "tools/shown/entry_json.h"
#include "tools/usage/usage.h"

struct reading {
    struct wal_store *store;
    struct usage_codex codex;
    struct usage_answers answers;
    char **entry_ids; /* of each answer: the first entry that has it */
    size_t capacity;
};

/* The sum of the answers of a model. */
struct sum {
    struct usage_tokens tokens;
    double cost;
    uint64_t requests;
    uint64_t costed;
};

/* Where the answers of a line go, and the entry whose line it is. */
struct answering {
    struct reading *reading;
    const struct wal_entry *entry;
};

static void add_answer(void *ctx, const struct usage_sample *sample)
{
    const struct answering *answering = ctx;
    struct reading *reading = answering->reading;
    const struct wal_slice id = answering->entry->id;
    size_t before = reading->answers.count;

    usage_answers_add(&reading->answers, 0, sample);
    if (reading->answers.count > before) {
        reading->entry_ids =
            cli_reserve(reading->entry_ids, before, &reading->capacity,
                        sizeof(reading->entry_ids[0]));
        reading->entry_ids[before] = cli_copy_text(id.data, (size_t)id.size);
    }
}

static void read_line(struct reading *reading, const struct wal_entry *entry)
{
    struct answering answering = {.reading = reading, .entry = entry};

    if (usage_may_count(entry->payload)) {
        usage_read_line(
            wal__line_text(entry->payload.data, (size_t)entry->payload.size),
            shown_entry_time(entry), &reading->codex, add_answer, &answering);
    }
}

static enum wal_status read_entry(void *ctx, const struct wal_entry *entry,
                                  struct wal_error *error)
{
    struct reading *reading = ctx;
    struct wal_entry loaded = *entry;
    char *memory = NULL;
    enum wal_status status;

    status =
        wal__entry_payload_load(NULL, reading->store, &loaded, &memory, error);
    if (status == WAL_OK) {
        read_line(reading, &loaded);
    }
    free(memory);
    return status == WAL_ENOMEM ? status : WAL_OK;
}

static void put_tokens(struct shown *shown, const struct usage_tokens *tokens)
{
    wal__json_out_member_count(shown->json, "inputTokens", tokens->input);
    wal__json_out_member_count(shown->json, "outputTokens", tokens->output);
    wal__json_out_member_count(shown->json, "cacheReadTokens",
                               tokens->cache_read);
    wal__json_out_member_count(shown->json, "cacheWriteTokens",
                               tokens->cache_write);
    wal__json_out_member_count(shown->json, "reasoningTokens",
                               tokens->reasoning);
    wal__json_out_member_count(shown->json, "totalTokens", tokens->total);
}

static void put_cost(struct shown *shown, bool has_cost, double cost)
{
    char text[64];

    if (!has_cost) {
        shown_null(shown, "cost");
        return;
    }
    snprintf(text, sizeof(text), "%.9g", cost);
    wal__json_out_key(shown->json, "cost");
    cli_json_raw(shown->json, cli_slice(text));
}

static void put_turns(struct shown *shown, const struct reading *reading)
{
    const struct usage_answers *answers = &reading->answers;

    wal__json_out_member_open(shown->json, "turns", '[');
    for (size_t i = 0; i < answers->count; i++) {
        const struct usage_answer *answer = &answers->items[i];

        wal__json_out_open(shown->json, '{');
        cli_json_member_text(shown->json, "entryId",
                             cli_slice(reading->entry_ids[i]));
        shown_time(shown, "time", answer->time_ms);
        shown_member(shown, "model",
                     cli_slice(answers->models.items[answer->model]));
        put_tokens(shown, &answer->tokens);
        put_cost(shown, answer->has_cost, answer->cost);
        wal__json_out_close(shown->json, '}');
    }
    wal__json_out_close(shown->json, ']');
}

static void add(struct sum *sum, const struct usage_answer *answer)
{
    sum->tokens.input += answer->tokens.input;
    sum->tokens.output += answer->tokens.output;
    sum->tokens.cache_read += answer->tokens.cache_read;
    sum->tokens.cache_write += answer->tokens.cache_write;
    sum->tokens.reasoning += answer->tokens.reasoning;
    sum->tokens.total += answer->tokens.total;
    sum->requests += answer->is_request ? 1 : 0;
    if (answer->has_cost) {
        sum->costed++;
        sum->cost += answer->cost;
    }
}

static void put_models(struct shown *shown, const struct usage_answers *answers)
{
    struct sum *sums = cli_alloc((answers->models.count + 1) * sizeof(*sums));

    for (size_t i = 0; i < answers->count; i++) {
        add(&sums[answers->items[i].model], &answers->items[i]);
    }
    wal__json_out_member_open(shown->json, "models", '[');
    for (size_t i = 0; i < answers->models.count; i++) {
        wal__json_out_open(shown->json, '{');
        shown_member(shown, "model", cli_slice(answers->models.items[i]));
        wal__json_out_member_count(shown->json, "requests", sums[i].requests);
        put_tokens(shown, &sums[i].tokens);
        put_cost(shown, sums[i].costed > 0, sums[i].cost);
        wal__json_out_member_count(shown->json, "costed", sums[i].costed);
        wal__json_out_close(shown->json, '}');
    }
    wal__json_out_close(shown->json, ']');
    free(sums);
}

enum wal_status shown_usage(struct shown *shown, struct wal_store *store,
                            struct wal_session *session,
                            struct wal_error *error)
{
    struct reading reading = {.store = store};
    uint64_t damaged = 0;
    enum wal_status status = shown_entries_visit(store, session, 0, read_entry,
                                                 &reading, &damaged, error);

    if (status == WAL_OK) {
        put_turns(shown, &reading);
        put_models(shown, &reading.answers);
    }
    for (size_t i = 0; i < reading.answers.count; i++) {
        free(reading.entry_ids[i]);
    }
    free(reading.entry_ids);
    usage_answers_deinit(&reading.answers);
    return status;
}
