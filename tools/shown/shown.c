/*
 * shown.c - writes texts of sessions as JSON (shown.h).
 */
#include "tools/shown/shown.h"

#include "tools/cli/cli.h"

static struct wal_slice strike_value(struct shown *shown, struct wal_slice key,
                                     struct wal_slice text,
                                     struct cli_texts *texts)
{
    return shown->strike == NULL ? text
                                 : shown->strike(shown->ctx, key, text, texts);
}

static struct wal_slice strike(struct shown *shown, struct wal_slice text,
                               struct cli_texts *texts)
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
    struct wal_slice part =
        shown->limit == 0 ? text : shown_cut(text, shown->limit);

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

/* Writes a token of a value whose strings and numbers pass `strike`; `key` is
 * that of the innermost member. */
static void put_token(struct shown *shown, const struct wal__json_token *token,
                      struct wal_slice key)
{
    struct cli_texts texts = {.items = NULL};

    switch (token->kind) {
    case WAL__JSON_OBJECT:
    case WAL__JSON_ARRAY:
        wal__json_out_open(shown->json,
                           token->kind == WAL__JSON_OBJECT ? '{' : '[');
        break;
    case WAL__JSON_OBJECT_END:
    case WAL__JSON_ARRAY_END:
        wal__json_out_close(shown->json,
                            token->kind == WAL__JSON_OBJECT_END ? '}' : ']');
        break;
    case WAL__JSON_KEY:
        cli_json_key_text(shown->json, strike(shown, key, &texts));
        break;
    case WAL__JSON_STRING:
        cli_json_text(
            shown->json,
            strike_value(shown, key, cli_unescape(token, &texts), &texts));
        break;
    case WAL__JSON_NUMBER:
        put_number(shown, token, key);
        break;
    case WAL__JSON_TRUE:
    case WAL__JSON_FALSE:
    case WAL__JSON_NULL:
        cli_json_raw(shown->json,
                     (struct wal_slice){token->span.data, token->span.size});
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
    while (wal__json_scan_next(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_END) {
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

/* Writes a value that is longer than the limit as a text. */
static void put_long_value(struct shown *shown, struct wal__json_span value)
{
    struct cli_texts texts = {.items = NULL};

    put_cut(shown, "arguments",
            strike(shown, (struct wal_slice){value.data, value.size}, &texts));
    cli_texts_deinit(&texts);
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
        put_long_value(shown, json);
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
