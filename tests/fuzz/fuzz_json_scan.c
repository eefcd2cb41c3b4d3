/*
 * fuzz_json_scan.c - any bytes to the scanner.
 *
 * Checks that the ways to scan a text agree on it: validate, the cursor and members give one status
 * and one offset; each value's span is a text itself; each string survives unescaping and escaping.
 * An input is free of structure: all of it is the text.
 */
#include <string.h>

#include "format/json/json_scan.h"
#include "format/json/json_text.h"
#include "tests/fuzz/fuzz.h"

static uint8_t *allocate(size_t size)
{
    uint8_t *data = malloc(size + (size == 0));

    check(data != NULL);
    return data;
}

/* Unescaping and escaping `string` again yields the same text. */
static void check_string(struct wal__json_span string)
{
    struct wal__json_span text;
    struct wal__json_span again;
    bool has_nul;

    check(wal__json_unescaped_size(string, &text.size) == WAL__JSON_OK);
    check(text.size <= string.size - 2);
    uint8_t *buffer = allocate(text.size);
    check(wal__json_unescape(string, buffer, text.size, &text.size, &has_nul) == WAL__JSON_OK);
    check(has_nul == (memchr(buffer, 0, text.size) != NULL));
    text.data = buffer;
    check(wal__json_escaped_size(text, &again.size) == WAL__JSON_OK);
    uint8_t *escaped = allocate(again.size);
    check(wal__json_escape(text, escaped, again.size, &again.size) == WAL__JSON_OK);
    again.data = escaped;
    check(wal__json_string_equals(string, text.data, text.size));
    check(wal__json_string_equals(again, text.data, text.size));
    check(wal__json_validate(again.data, again.size, NULL) == WAL__JSON_OK);
    free(escaped);
    free(buffer);
}

static void check_token(const struct wal__json_token *token)
{
    int64_t value;

    if (token->kind == WAL__JSON_STRING || token->kind == WAL__JSON_KEY) {
        bool escapes = memchr(token->span.data, '\\', token->span.size) != NULL;
        check(token->has_escapes == escapes);
        check_string(token->span);
    }
    if (token->kind == WAL__JSON_NUMBER) {
        bool is_integer = true;
        for (size_t i = 0; i < token->span.size; i++) {
            is_integer &= strchr(".eE", token->span.data[i]) == NULL;
        }
        check((wal__json_integer(token->span, &value) != WAL__JSON_NOT_INTEGER) == is_integer);
    }
}

static enum wal__json_status walk(const uint8_t *data, size_t size, size_t *offset)
{
    struct wal__json_scan scan;
    struct wal__json_token token = {.kind = WAL__JSON_NONE};
    const uint8_t *passed = data;
    enum wal__json_status status;

    wal__json_scan_init(&scan, data, size);
    do {
        status = wal__json_scan_next(&scan, &token);
        *offset = wal__json_scan_offset(&scan);
        check(*offset <= size);
        if (status != WAL__JSON_OK || token.kind == WAL__JSON_END) {
            return status;
        }
        check(token.span.data >= passed && token.span.size > 0);
        check(token.span.size <= (size_t)(data + *offset - token.span.data));
        passed = token.span.data + token.span.size;
        check_token(&token);
    } while (true);
}

/* The values of a valid text's outermost container, one by one. */
static void check_values(const uint8_t *data, size_t size)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__json_scan_init(&scan, data, size);
    check(wal__json_scan_next(&scan, &value) == WAL__JSON_OK);
    while (value.kind != WAL__JSON_END) {
        check(wal__json_scan_skip(&scan, &value) == WAL__JSON_OK);
        check(value.depth <= 1);
        if (value.depth == 1) {
            check(wal__json_validate(value.span.data, value.span.size, NULL) == WAL__JSON_OK);
        }
    }
}

static void check_members(const uint8_t *data, size_t size, enum wal__json_status expected,
                          size_t expected_offset)
{
    struct wal__json_member wanted[] = {
        {.key = "type"}, {.key = "message"}, {.parent = "message", .key = "role"}, {.key = ""}};
    size_t offset = expected_offset;

    enum wal__json_status status = wal__json_members(data, size, wanted, 4, &offset);
    check(offset == expected_offset);
    if (expected == WAL__JSON_OK && status == WAL__JSON_NOT_OBJECT) {
        return;
    }
    check(status == expected);
    for (size_t i = 0; i < 4; i++) {
        const struct wal__json_token *value = &wanted[i].value;
        if (value->kind != WAL__JSON_NONE) {
            check(wal__json_validate(value->span.data, value->span.size, NULL) == WAL__JSON_OK);
        }
    }
}

/* Functions that take spans take any bytes. */
static void use_as_span(const uint8_t *data, size_t size)
{
    struct wal__json_span span = {data, size};
    uint8_t buffer[64];
    size_t written;
    int64_t value;
    enum wal__json_status status;

    status = wal__json_unescape(span, buffer, sizeof(buffer), &written, NULL);
    check(status != WAL__JSON_OK || written <= sizeof(buffer));
    status = wal__json_escape(span, buffer, sizeof(buffer), &written);
    check(status != WAL__JSON_OK || written <= sizeof(buffer));
    status = wal__json_integer(span, &value);
    check(status != WAL__JSON_OK || size > 0);
    (void)wal__json_string_is(span, "type");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t offset = size;
    size_t walk_offset;

    enum wal__json_status status = wal__json_validate(data, size, &offset);
    check(walk(data, size, &walk_offset) == status);
    check(walk_offset == offset);
    if (status == WAL__JSON_OK) {
        check_values(data, size);
    }
    check_members(data, size, status, offset);
    use_as_span(data, size);
    return 0;
}
