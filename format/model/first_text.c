/*
 * first_text.c - the beginning of a user's message (first_text.h).
 *
 * One pass over the tokens. A longer payload is truncated to
 * WAL__FIRST_TEXT_SCAN_MAX bytes: the truncation may cut a long text or an
 * image; what precedes it counts.
 *
 * Invariant: `text` points after the opening quote of a string whose bytes up
 * to its closing quote, or up to the truncation, are valid. Threads: any.
 */
#include "format/model/first_text.h"

#include <string.h>

#include "format/json/json_character.h"
#include "format/json/json_scan.h"
#include "format/json/json_value.h"

/* An object that may be the message. */
struct message {
    struct wal__json_token role; /* kind NONE if it is not a string */
    const uint8_t *text;         /* NULL: none */
};

struct reader {
    struct wal__json_scan scan;
    const uint8_t *end;
    bool is_truncated;
    bool is_meta;
    bool is_sidechain;
};

/*
 * Returns the next token. A string value that the truncation cuts is returned
 * up to there, without its closing quote; the next call fails.
 */
static enum wal__json_status next_token(struct reader *reader,
                                        struct wal__json_token *token)
{
    const uint8_t *at = reader->scan.at;

    enum wal__json_status status = wal__json_scan_next(&reader->scan, token);
    if (status != WAL__JSON_TRUNCATED || !reader->is_truncated) {
        return status;
    }
    while (at < reader->end && *at != '"') {
        at++;
    }
    if (at == reader->end || reader->scan.at != reader->end) {
        return status;
    }
    /* A truncated key is a string too; no caller uses it. */
    WAL__ASSERT(at >= reader->scan.begin && at < reader->end);
    *token = (struct wal__json_token){.kind = WAL__JSON_STRING};
    token->span.data = at;
    token->span.size = (size_t)(reader->end - at);
    reader->end = at;
    return WAL__JSON_OK;
}

/* Skips the rest of the value that begins with `token`. */
static enum wal__json_status skip_rest(struct reader *reader,
                                       const struct wal__json_token *token)
{
    enum wal__json_status status = WAL__JSON_OK;
    struct wal__json_token part;

    while (status == WAL__JSON_OK && reader->scan.depth > token->depth) {
        status = wal__json_scan_next(&reader->scan, &part);
    }
    return status;
}

static const uint8_t *string_begin(const struct wal__json_token *token)
{
    return token->kind == WAL__JSON_STRING ? token->span.data + 1 : NULL;
}

/* Reads the text of the open object if it is a text block. */
static enum wal__json_status read_block(struct reader *reader,
                                        const uint8_t **text)
{
    struct wal__json_token key = {0};
    struct wal__json_token value = {0};
    const uint8_t *candidate = NULL;
    bool is_text = false;

    enum wal__json_status status = next_token(reader, &key);
    while (status == WAL__JSON_OK && key.kind == WAL__JSON_KEY) {
        status = next_token(reader, &value);
        if (status != WAL__JSON_OK) {
            break;
        }
        if (wal__json_string_is(key.span, "type")) {
            is_text = wal__json_string_is(value.span, "text") ||
                      wal__json_string_is(value.span, "input_text");
        } else if (wal__json_string_is(key.span, "text")) {
            candidate = string_begin(&value);
        }
        status = skip_rest(reader, &value);
        if (status == WAL__JSON_OK) {
            status = next_token(reader, &key);
        }
    }
    if (is_text && *text == NULL) {
        *text = candidate;
    }
    return status;
}

/* Finds the first text in the open array. */
static enum wal__json_status read_items(struct reader *reader,
                                        const uint8_t **text)
{
    struct wal__json_token item = {0};

    enum wal__json_status status = next_token(reader, &item);
    while (status == WAL__JSON_OK && item.kind != WAL__JSON_ARRAY_END) {
        if (*text == NULL && item.kind == WAL__JSON_OBJECT) {
            status = read_block(reader, text);
        } else if (*text == NULL) {
            *text = string_begin(&item);
        }
        if (status == WAL__JSON_OK) {
            status = skip_rest(reader, &item);
        }
        if (status == WAL__JSON_OK) {
            status = next_token(reader, &item);
        }
    }
    return status;
}

/* Reads a member of a message. */
static enum wal__json_status read_member(struct reader *reader,
                                         const struct wal__json_token *key,
                                         const struct wal__json_token *value,
                                         struct message *message)
{
    if (wal__json_string_is(key->span, "role")) {
        message->role = *value;
        if (value->kind != WAL__JSON_STRING) {
            message->role.kind = WAL__JSON_NONE;
        }
    } else if (wal__json_string_is(key->span, "content")) {
        message->text = string_begin(value);
        if (value->kind == WAL__JSON_ARRAY) {
            return read_items(reader, &message->text);
        }
    }
    return skip_rest(reader, value);
}

/* Reads the open object of the member `message` or `payload`. */
static enum wal__json_status read_message(struct reader *reader,
                                          struct message *message)
{
    struct wal__json_token key = {0};
    struct wal__json_token value = {0};

    enum wal__json_status status = next_token(reader, &key);
    while (status == WAL__JSON_OK && key.kind == WAL__JSON_KEY) {
        status = next_token(reader, &value);
        if (status == WAL__JSON_OK) {
            status = read_member(reader, &key, &value, message);
        }
        if (status == WAL__JSON_OK) {
            status = next_token(reader, &key);
        }
    }
    return status;
}

enum location {
    LOCATION_TOP,
    LOCATION_MESSAGE,
    LOCATION_PAYLOAD,
    LOCATION_COUNT,
};

static enum wal__json_status read_top(struct reader *reader,
                                      const struct wal__json_token *key,
                                      struct message messages[LOCATION_COUNT])
{
    struct wal__json_token value = {0};
    enum location location = LOCATION_TOP;

    enum wal__json_status status = next_token(reader, &value);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (wal__json_string_is(key->span, "isMeta")) {
        reader->is_meta = value.kind == WAL__JSON_TRUE;
    } else if (wal__json_string_is(key->span, "isSidechain")) {
        reader->is_sidechain = value.kind == WAL__JSON_TRUE;
    } else if (wal__json_string_is(key->span, "message")) {
        location = LOCATION_MESSAGE;
    } else if (wal__json_string_is(key->span, "payload")) {
        location = LOCATION_PAYLOAD;
    }
    if (location == LOCATION_TOP) {
        return read_member(reader, key, &value, &messages[LOCATION_TOP]);
    }
    messages[location] = (struct message){0};
    if (value.kind == WAL__JSON_OBJECT) {
        return read_message(reader, &messages[location]);
    }
    return skip_rest(reader, &value);
}

static enum wal__json_status
read_payload(struct reader *reader, struct message messages[LOCATION_COUNT])
{
    struct wal__json_token token = {0};

    enum wal__json_status status = next_token(reader, &token);
    if (status == WAL__JSON_OK && token.kind != WAL__JSON_OBJECT) {
        return WAL__JSON_NOT_OBJECT;
    }
    while (status == WAL__JSON_OK && token.kind != WAL__JSON_END) {
        status = next_token(reader, &token);
        if (status == WAL__JSON_OK && token.kind == WAL__JSON_KEY) {
            status = read_top(reader, &token, messages);
        }
    }
    return status;
}

/* Unicode's white space and control characters. */
static bool is_space_or_control(uint32_t code_point)
{
    return code_point <= ' ' || (code_point >= 0x7f && code_point <= 0xa0) ||
           code_point == 0x1680 ||
           (code_point >= 0x2000 && code_point <= 0x200a) ||
           code_point == 0x2028 || code_point == 0x2029 ||
           code_point == 0x202f || code_point == 0x205f || code_point == 0x3000;
}

static size_t copy_text(const uint8_t *at, const uint8_t *end,
                        uint8_t out[WAL__FIRST_TEXT_MAX])
{
    size_t size = 0;
    bool has_gap = false;
    uint32_t code_point;

    while (at < end && *at != '"' &&
           wal__json_character_read(&at, end, &code_point)) {
        uint8_t character[4];
        if (is_space_or_control(code_point)) {
            has_gap = size > 0;
            continue;
        }
        size_t width = wal__json_character_write(code_point, character);
        if (size + has_gap + width > WAL__FIRST_TEXT_MAX) {
            break;
        }
        if (has_gap) {
            out[size++] = ' ';
        }
        WAL__ASSERT(size + width <= WAL__FIRST_TEXT_MAX);
        memcpy(out + size, character, width);
        size += width;
        has_gap = false;
    }
    return size;
}

bool wal__first_text(struct wal__span payload, uint8_t out[WAL__FIRST_TEXT_MAX],
                     size_t *size)
{
    struct message messages[LOCATION_COUNT] = {0};
    struct reader reader = {.is_truncated =
                                payload.size > WAL__FIRST_TEXT_SCAN_MAX};
    size_t scan_size =
        reader.is_truncated ? WAL__FIRST_TEXT_SCAN_MAX : payload.size;

    wal__json_scan_init(&reader.scan, payload.data, scan_size);
    reader.end = reader.scan.end;
    enum wal__json_status status = read_payload(&reader, messages);
    if (status == WAL__JSON_TRUNCATED && reader.is_truncated) {
        status = WAL__JSON_OK;
    }
    if (status != WAL__JSON_OK || reader.is_meta || reader.is_sidechain) {
        return false;
    }
    const struct message *message = messages;
    while (message->role.kind == WAL__JSON_NONE) {
        if (++message == messages + LOCATION_COUNT) {
            return false;
        }
    }
    if (message->text == NULL ||
        !wal__json_string_is(message->role.span, "user")) {
        return false;
    }
    size_t copied = copy_text(message->text, reader.scan.end, out);
    if (copied == 0) {
        return false;
    }
    *size = copied;
    return true;
}
