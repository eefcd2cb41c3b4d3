/*
 * shown.c - sessions and their texts as they are shown; the command that continues one; its usage
 * (shown.h).
 *
 * Invariant: in a command every text of a session is quoted as sh, its kin and fish read it, or
 * consists of characters that no shell treats specially; a directory with characters that a
 * terminal obeys is left out.
 */
#include "tools/shown/shown.h"

#include <stdlib.h>
#include <string.h>

#include "convert/clients/client.h"
#include "convert/model/dialect.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "tools/cli/session.h"
#include "tools/usage/usage.h"

static struct wal_slice strike_value(struct shown *shown, struct wal_slice key,
                                     struct wal_slice text, struct cli_texts *texts)
{
    return shown->strike == NULL ? text : shown->strike(shown->ctx, key, text, texts);
}

static struct wal_slice strike(struct shown *shown, struct wal_slice text, struct cli_texts *texts)
{
    return strike_value(shown, cli_slice(NULL), text, texts);
}

struct wal_slice shown_cut(struct wal_slice text, uint64_t limit)
{
    const uint8_t *data = text.data;

    if (text.size <= limit) {
        return text;
    }
    /* A character has at most three bytes after its first. */
    for (int i = 0; i < 3 && limit > 0 && (data[limit] & 0xc0) == 0x80; i++) {
        limit--;
    }
    return (struct wal_slice){data, limit};
}

/* Writes a text as the value of a key, and whether it was cut. */
static void put_cut(struct shown *shown, const char *key, struct wal_slice text)
{
    struct wal_slice part = shown->limit == 0 ? text : shown_cut(text, shown->limit);

    cli_json_member_text(shown->json, key, part);
    if (part.size < text.size) {
        wal__json_out_member_bool(shown->json, "cut", true);
        wal__json_out_member_count(shown->json, "bytes", text.size);
    }
}

void shown_text(struct shown *shown, struct wal_slice text)
{
    struct cli_texts texts = {.items = NULL};

    put_cut(shown, "text", strike(shown, text, &texts));
    cli_texts_deinit(&texts);
}

void shown_member(struct shown *shown, const char *key, struct wal_slice text)
{
    struct cli_texts texts = {.items = NULL};

    cli_json_member_text_or_null(shown->json, key, strike(shown, text, &texts));
    cli_texts_deinit(&texts);
}

/* Writes a number, or a text when a part of it was struck. */
static void put_number(struct shown *shown, const struct wal__json_token *token,
                       struct wal_slice key)
{
    const struct wal_slice number = {token->span.data, token->span.size};
    struct cli_texts texts = {.items = NULL};
    struct wal_slice text = strike_value(shown, key, number, &texts);

    if (text.data == number.data) {
        cli_json_raw(shown->json, number);
    } else {
        cli_json_text(shown->json, text);
    }
    cli_texts_deinit(&texts);
}

/* Writes a token of a value whose strings and numbers pass `strike`; `key` is that of the innermost
 * member. */
static void put_token(struct shown *shown, const struct wal__json_token *token,
                      struct wal_slice key)
{
    struct cli_texts texts = {.items = NULL};

    switch (token->kind) {
    case WAL__JSON_OBJECT:
    case WAL__JSON_ARRAY:
        wal__json_out_open(shown->json, token->kind == WAL__JSON_OBJECT ? '{' : '[');
        break;
    case WAL__JSON_OBJECT_END:
    case WAL__JSON_ARRAY_END:
        wal__json_out_close(shown->json, token->kind == WAL__JSON_OBJECT_END ? '}' : ']');
        break;
    case WAL__JSON_KEY:
        cli_json_key_text(shown->json, strike(shown, key, &texts));
        break;
    case WAL__JSON_STRING:
        cli_json_text(shown->json, strike_value(shown, key, cli_unescape(token, &texts), &texts));
        break;
    case WAL__JSON_NUMBER:
        put_number(shown, token, key);
        break;
    case WAL__JSON_TRUE:
    case WAL__JSON_FALSE:
    case WAL__JSON_NULL:
        cli_json_raw(shown->json, (struct wal_slice){token->span.data, token->span.size});
        break;
    case WAL__JSON_NONE:
    case WAL__JSON_END:
        break;
    }
    cli_texts_deinit(&texts);
}

static void put_value(struct shown *shown, struct wal__json_span value)
{
    struct cli_texts texts = {.items = NULL};
    struct wal_slice key = {NULL, 0};
    struct wal__json_scan scan;
    struct wal__json_token token;

    if (shown->strike == NULL) {
        cli_json_raw(shown->json, (struct wal_slice){value.data, value.size});
        return;
    }
    wal__json_scan_init(&scan, value.data, value.size);
    while (wal__json_scan_next(&scan, &token) == WAL__JSON_OK && token.kind != WAL__JSON_END) {
        if (token.kind == WAL__JSON_KEY) {
            struct wal__json_token string = token;
            string.kind = WAL__JSON_STRING;
            key = cli_unescape(&string, &texts);
        }
        put_token(shown, &token, key);
    }
    cli_texts_deinit(&texts);
}

/* Whether a text is a JSON object, which then is *value. */
static bool is_object(struct wal_slice text, struct wal__json_span *value)
{
    *value = (struct wal__json_span){text.data, (size_t)text.size};
    return text.size > 0 && value->data[0] == '{' &&
           wal__json_validate(value->data, value->size, NULL) == WAL__JSON_OK;
}

void shown_arguments(struct shown *shown, const struct wal__json_token *value)
{
    struct cli_texts texts = {.items = NULL};
    struct wal__json_span json = value->span;

    if (value->kind == WAL__JSON_NONE) {
        shown_null(shown, "arguments");
        return;
    }
    if (value->kind == WAL__JSON_STRING) {
        struct wal_slice text = cli_unescape(value, &texts);
        if (!is_object(text, &json)) {
            put_cut(shown, "arguments", strike(shown, text, &texts));
            cli_texts_deinit(&texts);
            return;
        }
    }
    if (shown->limit > 0 && json.size > shown->limit) {
        /* A value that is longer is written as a text. */
        put_cut(shown, "arguments",
                strike(shown, (struct wal_slice){json.data, json.size}, &texts));
    } else {
        wal__json_out_key(shown->json, "arguments");
        put_value(shown, json);
    }
    cli_texts_deinit(&texts);
}

void shown_null(struct shown *shown, const char *key)
{
    wal__json_out_key(shown->json, key);
    cli_json_raw(shown->json, cli_slice("null"));
}

void shown_time(struct shown *shown, const char *key, int64_t ms)
{
    if (ms <= 0) {
        shown_null(shown, key);
    } else {
        wal__json_out_member_count(shown->json, key, (uint64_t)ms);
    }
}

/* --- the command that continues a session ------------------------------- */

/* Whether a terminal obeys a character, as it does when it is pasted. */
static bool has_control(struct wal_slice text)
{
    const uint8_t *data = text.data;
    size_t step;

    for (uint64_t at = 0; at < text.size; at += step) {
        step = utf8_size(data + at, (size_t)(text.size - at));
        if (step == 0 || utf8_is_control(data + at)) {
            return true;
        }
    }
    return false;
}

/* Whether the client knows the session by its id: it has none with a number, and none without a
 * text. */
static bool is_client_id(struct wal_slice id)
{
    return cli_is_plain_word(id) && memchr(id.data, '~', (size_t)id.size) == NULL;
}

/* Writes a word that is no option. */
static void put_operand(FILE *file, struct wal_slice text)
{
    fputs(text.size > 0 && *(const char *)text.data == '-' ? "-- " : "", file);
    cli_put_word(file, text);
}

char *shown_command(const struct cli *cli, const struct wal__client *client,
                    const struct wal_session_info *info, const char *id)
{
    const char *at;
    char *text = NULL;
    size_t size = 0;
    FILE *file;

    if (client == NULL || client->resume == NULL) {
        return cli_command(cli, "cat --text", &id, 1);
    }
    file = cli_open_memory(&text, &size);
    if (info->cwd.size > 0 && !has_control(info->cwd)) {
        fputs("cd ", file);
        put_operand(file, info->cwd);
        fputs(" && ", file);
    }
    at = strstr(client->resume, "%s");
    fwrite(client->resume, 1, (size_t)(at - client->resume), file);
    put_operand(file, cli_slice(id));
    fputs(at + strlen("%s"), file);
    (void)fclose(file);
    return text;
}

char *shown_resume(const struct cli *cli, const struct wal_session_info *info)
{
    const struct wal__client *client = NULL;
    struct wal__source source;
    char *id = cli_copy_slice(info->id);
    char *text;

    if (is_client_id(info->id) && wal__source_parse(info->source, &source)) {
        client = wal__client_of_source(source.dialect, source.path, NULL);
    }
    text = shown_command(cli, client, info, id);
    free(id);
    return text;
}

/* --- sessions ----------------------------------------------------------- */

/* Writes the member "startedBy" of a subagent. */
static void put_starter(struct shown *shown, struct wal_store *store,
                        const struct wal_session_info *info)
{
    struct shown_subagent start;

    if (shown_starter_read(&start, store, info)) {
        wal__json_out_member_open(shown->json, "startedBy", '{');
        cli_json_member_text(shown->json, "sessionId", info->parent_id);
        shown_member(shown, "agent", cli_slice(start.agent));
        cli_json_member_text_or_null(shown->json, "call", cli_slice(start.call));
        cli_json_member_text_or_null(shown->json, "entryId", cli_slice(start.entry));
        wal__json_out_close(shown->json, '}');
    }
    shown_subagent_deinit(&start);
}

void shown_session(struct shown *shown, struct wal_store *store,
                   const struct wal_session_info *info, bool with_start)
{
    struct wal__json_out *json = shown->json;
    char *resume = shown_resume(shown->cli, info);
    char client[CLI_CLIENT_SIZE];
    char text[CLI_TEXT_MAX];

    cli_session_client(store, info, client);
    wal__json_out_open(json, '{');
    cli_json_member_text(json, "id", info->id);
    wal__json_out_member_count(shown->json, "number", info->number);
    shown_member(shown, "title", info->title);
    shown_member(shown, "text", cli_session_first_text(store, info, text));
    shown_member(shown, "cwd", info->cwd);
    shown_member(shown, "projectId", info->project);
    cli_json_member_text(json, "client", cli_slice(client));
    cli_json_member_text_or_null(json, "parentId", info->parent_id);
    wal__json_out_member_bool(json, "subagent", cli_session_is_subagent(store, info));
    if (with_start) {
        put_starter(shown, store, info);
    }
    shown_time(shown, "created", info->created_ms);
    shown_time(shown, "updated", info->updated_ms);
    wal__json_out_member_count(shown->json, "entries", info->entries);
    wal__json_out_member_count(shown->json, "bytes", info->bytes);
    wal__json_out_member_count(shown->json, "sequence", info->last_sequence);
    cli_json_member_text_or_null(json, "head", info->head);
    wal__json_out_member_bool(shown->json, "damaged", (info->flags & WAL_SESSION_DAMAGED) != 0);
    shown_member(shown, "resume", cli_slice(resume));
    wal__json_out_close(json, '}');
    free(resume);
}

enum wal_status shown_heads(struct shown *shown, struct wal_session *session,
                            struct wal_error *error)
{
    struct cli_heads heads = {.items = NULL};
    enum wal_status status = cli_heads_read(&heads, session, error);

    if (status == WAL_OK) {
        wal__json_out_member_open(shown->json, "heads", '[');
        for (size_t i = 0; i < heads.count; i++) {
            if (heads.items[i].stream == 0) {
                wal__json_out_open(shown->json, '{');
                shown_member(shown, "name", heads.items[i].name);
                cli_json_member_text_or_null(shown->json, "entryId", heads.items[i].entry_id);
                wal__json_out_close(shown->json, '}');
            }
        }
        wal__json_out_close(shown->json, ']');
    }
    cli_heads_deinit(&heads);
    return status;
}

/* --- usage -------------------------------------------------------------- */

struct reading {
    struct wal_store *store;
    struct usage_codex codex;
    struct usage_answers answers;
    struct cli_texts entry_ids; /* of each answer: the first that has it */
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
        cli_texts_add(&reading->entry_ids, id);
    }
}

static void read_line(struct reading *reading, const struct wal_entry *entry)
{
    struct answering answering = {.reading = reading, .entry = entry};

    if (usage_may_count(entry->payload)) {
        usage_read_line(wal__line_text(entry->payload.data, (size_t)entry->payload.size),
                        shown_entry_time(entry), &reading->codex, add_answer, &answering);
    }
}

static enum wal_status read_entry(void *ctx, const struct wal_entry *entry, struct wal_error *error)
{
    struct reading *reading = ctx;
    struct wal_entry loaded = *entry;
    char *memory = NULL;
    enum wal_status status;

    status = wal__entry_payload_load(NULL, reading->store, &loaded, &memory, error);
    if (status == WAL_OK) {
        read_line(reading, &loaded);
    }
    free(memory);
    return status == WAL_ENOMEM ? status : WAL_OK;
}

static void put_turns(struct shown *shown, const struct reading *reading)
{
    const struct usage_answers *answers = &reading->answers;

    wal__json_out_member_open(shown->json, "turns", '[');
    for (size_t i = 0; i < answers->count; i++) {
        const struct usage_answer *answer = &answers->items[i];
        struct usage_group group = {.name = NULL};

        usage_group_add(&group, answer);
        wal__json_out_open(shown->json, '{');
        cli_json_member_text(shown->json, "entryId", cli_slice(reading->entry_ids.items[i]));
        shown_time(shown, "time", answer->time_ms);
        shown_member(shown, "model", cli_slice(answers->models.items[answer->model].text));
        usage_tokens_write(shown->json, &answer->tokens);
        usage_costs_write(shown->json, &group);
        wal__json_out_close(shown->json, '}');
    }
    wal__json_out_close(shown->json, ']');
}

static void put_models(struct shown *shown, const struct usage_answers *answers)
{
    struct usage_group *sums = cli_alloc((answers->models.count + 1) * sizeof(*sums));

    for (size_t i = 0; i < answers->count; i++) {
        usage_group_add(&sums[answers->items[i].model], &answers->items[i]);
    }
    wal__json_out_member_open(shown->json, "models", '[');
    for (size_t i = 0; i < answers->models.count; i++) {
        wal__json_out_open(shown->json, '{');
        shown_member(shown, "model", cli_slice(answers->models.items[i].text));
        usage_tokens_write(shown->json, &sums[i].tokens);
        usage_costs_write(shown->json, &sums[i]);
        wal__json_out_close(shown->json, '}');
    }
    wal__json_out_close(shown->json, ']');
    free(sums);
}

enum wal_status shown_usage(struct shown *shown, struct wal_store *store,
                            struct wal_session *session, struct wal_error *error)
{
    struct reading reading = {.store = store};
    uint64_t damaged = 0;
    enum wal_status status =
        shown_entries_visit(store, session, 0, read_entry, &reading, &damaged, error);

    if (status == WAL_OK) {
        if (shown->prices != NULL) {
            usage_answers_price(&reading.answers, shown->prices);
        }
        put_turns(shown, &reading);
        put_models(shown, &reading.answers);
    }
    cli_texts_deinit(&reading.entry_ids);
    usage_answers_deinit(&reading.answers);
    return status;
}
