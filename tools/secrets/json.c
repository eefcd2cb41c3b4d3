/*
 * json.c - the texts of JSON values, and such values without their secrets (secrets.h).
 */
#include "tools/secrets/secrets.h"

#include <stdlib.h>
#include <string.h>

/* --- visiting ---------------------------------------------------------------- */

/* Returns the text of a string or key; `buf` has it when it has escapes. */
static struct wal_slice unescape(const struct wal__json_token *token, struct wal__buf *buf)
{
    size_t size = 0;

    if (token->kind != WAL__JSON_STRING && token->kind != WAL__JSON_KEY) {
        return (struct wal_slice){token->span.data, token->span.size};
    }
    if (!token->has_escapes) {
        return (struct wal_slice){token->span.data + 1, token->span.size - 2};
    }
    buf->size = 0;
    cli_append(buf, token->span.data, token->span.size); /* room for what is shorter */
    if (wal__json_unescape(token->span, buf->data, buf->size, &size, NULL) != WAL__JSON_OK) {
        size = 0;
    }
    return (struct wal_slice){buf->data, size};
}

bool secrets_visit(struct wal_slice json, secrets_text_fn *each, void *ctx)
{
    struct wal__buf keys = {.data = NULL};
    struct wal__buf texts = {.data = NULL};
    struct wal_slice key = {NULL, 0};
    struct wal__json_scan scan;
    struct wal__json_token token;
    enum wal__json_status status;

    wal__json_scan_init(&scan, json.data, (size_t)json.size);
    while ((status = wal__json_scan_next(&scan, &token)) == WAL__JSON_OK &&
           token.kind != WAL__JSON_END) {
        if (token.kind == WAL__JSON_KEY) {
            key = unescape(&token, &keys);
            each(ctx, &token, (struct wal_slice){NULL, 0}, key);
        } else if (token.kind == WAL__JSON_STRING || token.kind == WAL__JSON_NUMBER) {
            each(ctx, &token, key, unescape(&token, &texts));
        }
    }
    free(keys.data);
    free(texts.data);
    return status == WAL__JSON_OK;
}

/* --- striking ---------------------------------------------------------------- */

struct striking {
    struct secrets *secrets;
    uint64_t *counts;
    struct wal__buf *out;
    struct wal__buf text;
    const uint8_t *done; /* what is before it is in `out` */
    uint64_t struck;
};

static bool put_bytes(void *ctx, const void *data, size_t size)
{
    cli_append(ctx, data, size);
    return true;
}

static void strike_token(void *ctx, const struct wal__json_token *token, struct wal_slice key,
                         struct wal_slice text)
{
    struct striking *striking = ctx;
    struct wal__json_out json = {.put = put_bytes, .ctx = striking->out};
    uint64_t count;

    striking->text.size = 0;
    count = secrets_strike(striking->secrets, key, text, striking->counts, &striking->text);
    if (count > 0) {
        cli_append(striking->out, striking->done, (size_t)(token->span.data - striking->done));
        cli_json_text(&json, (struct wal_slice){striking->text.data, striking->text.size});
        striking->done = token->span.data + token->span.size;
        striking->struck += count;
    }
}

uint64_t secrets_strike_json(struct secrets *secrets, struct wal_slice json, uint64_t *counts,
                             struct wal__buf *out)
{
    struct striking striking = {
        .secrets = secrets, .counts = counts, .out = out, .done = json.data};
    const size_t size = out->size;

    if (wal__json_validate(json.data, (size_t)json.size, NULL) == WAL__JSON_OK) {
        (void)secrets_visit(json, strike_token, &striking);
        cli_append(out, striking.done,
                   (size_t)((const uint8_t *)json.data + json.size - striking.done));
    } else {
        striking.struck = secrets_strike(secrets, cli_slice(NULL), json, counts, out);
    }
    free(striking.text.data);
    out->size = striking.struck > 0 ? out->size : size;
    return striking.struck;
}
