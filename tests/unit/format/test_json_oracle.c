/*
 * The scanner against jansson: both accept or both reject, and where both accept they see the same
 * value. Where they may differ is named in is_known: jansson refuses numbers beyond a double, and
 * \u0000 in a key; it loses a raw NUL that follows a number or a word; the scanner's nesting ends
 * at 512 levels, jansson's at 2048.
 *
 * AGENTWAL_SEED sets the seed of the random texts.
 */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "format/json/json_scan.h"
#include "format/json/json_text.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"

enum {
    TEXT_SIZE_MAX = 1 << 16,
    NEST_MAX = 12,
    TOKENS_MAX = 120,
    DOCUMENTS = 3000,
    MUTATIONS = 12,
};

/* A tree under construction: the open containers, and the last key. */
struct builder {
    json_t *root;
    json_t *open[WAL__JSON_DEPTH_MAX];
    char *key;
};

/* A random text, valid by construction. */
struct writer {
    uint64_t random;
    size_t size;
    size_t depth;
    bool is_object[NEST_MAX];
    char text[TEXT_SIZE_MAX];
};

static const char sample[] =
    "{\"id\":\"a\\u00e9\\ud83d\\ude00\\n\",\"n\":[0,-1,2.50,1e9,-0.1E-2],\r\n"
    " \"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\":{\"d\":[[],{},[{\"x\":null}]]},"
    "\"t\":true, \"f\":false,\"\":\"a run of over sixteen bytes\"}";

static char *unescaped(struct wal__json_span string, size_t *size)
{
    char *text = malloc(string.size + 1);

    assert_non_null(text);
    assert_int_equal(wal__json_unescape(string, (uint8_t *)text, string.size, size, NULL),
                     WAL__JSON_OK);
    text[*size] = '\0';
    return text;
}

static json_t *string_node(struct wal__json_span span)
{
    size_t size;
    char *text = unescaped(span, &size);
    json_t *node = json_stringn(text, size);

    free(text);
    return node;
}

static json_t *number_node(struct wal__json_span span)
{
    char *text = strndup((const char *)span.data, span.size);
    json_t *node = json_real(strtod(text, NULL));

    free(text);
    return node;
}

static json_t *node_of(const struct wal__json_token *token)
{
    switch (token->kind) {
    case WAL__JSON_OBJECT:
        return json_object();
    case WAL__JSON_ARRAY:
        return json_array();
    case WAL__JSON_STRING:
        return string_node(token->span);
    case WAL__JSON_NUMBER:
        return number_node(token->span);
    case WAL__JSON_TRUE:
        return json_true();
    case WAL__JSON_FALSE:
        return json_false();
    case WAL__JSON_NULL:
        return json_null();
    case WAL__JSON_NONE:
    case WAL__JSON_OBJECT_END:
    case WAL__JSON_ARRAY_END:
    case WAL__JSON_KEY:
    case WAL__JSON_END:
        break;
    }
    return NULL;
}

static void add_token(struct builder *builder, const struct wal__json_token *token)
{
    size_t size;

    if (token->kind == WAL__JSON_KEY) {
        builder->key = unescaped(token->span, &size);
        return;
    }
    json_t *node = node_of(token);
    if (node == NULL) {
        return;
    }
    if (token->depth == 0) {
        builder->root = node;
    } else if (builder->key != NULL) {
        assert_int_equal(json_object_set_new(builder->open[token->depth - 1], builder->key, node),
                         0);
    } else {
        assert_int_equal(json_array_append_new(builder->open[token->depth - 1], node), 0);
    }
    free(builder->key);
    builder->key = NULL;
    if (json_is_object(node) || json_is_array(node)) {
        builder->open[token->depth] = node;
    }
}

/* What the scanner sees in a valid text, as a tree. */
static json_t *tree_of(const void *data, size_t size)
{
    struct builder builder = {0};
    struct wal__json_scan scan;
    struct wal__json_token token;

    wal__json_scan_init(&scan, data, size);
    do {
        assert_int_equal(wal__json_scan_next(&scan, &token), WAL__JSON_OK);
        add_token(&builder, &token);
    } while (token.kind != WAL__JSON_END);
    return builder.root;
}

static bool is_known(enum wal__json_status status, const char *data, size_t offset,
                     const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);

    if (status == WAL__JSON_OK) {
        return code == json_error_numeric_overflow || code == json_error_null_byte_in_key ||
               strncmp(error->text, "invalid Unicode", 15) == 0;
    }
    if (status == WAL__JSON_NUL_BYTE) {
        return offset > 0 && isalnum((unsigned char)data[offset - 1]);
    }
    return status == WAL__JSON_DEPTH;
}

/* Every member of jansson's object is found by its key, with its value. */
static void compare_members(json_t *object, const void *data, size_t size)
{
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
    const char *key;
    json_t *expected;

    json_object_foreach(object, key, expected)
    {
        struct wal__json_token value;
        assert_int_equal(wal__json_find(data, size, key, &value), WAL__JSON_OK);
        json_t *found = json_loadb((const char *)value.span.data, value.span.size, flags, NULL);
        assert_true(json_equal(found, expected));
        json_decref(found);
    }
}

/* Whether both accept the text. */
static bool compare(const void *text, size_t size)
{
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
    json_error_t error = {0};
    size_t offset = 0;
    char *data = malloc(size + (size == 0));

    assert_non_null(data);
    memcpy(data, text, size);
    enum wal__json_status status = wal__json_validate(data, size, &offset);
    json_t *expected = json_loadb(data, size, flags, &error);
    bool agreed = (status == WAL__JSON_OK) == (expected != NULL);
    if (!agreed && !is_known(status, data, offset, &error)) {
        fail_msg("scanner: %s; jansson: %s: %.*s", wal__json_status_text(status),
                 expected != NULL ? "no error" : error.text, (int)size, data);
    }
    if (agreed && expected != NULL) {
        json_t *seen = tree_of(data, size);
        if (!json_equal(seen, expected)) {
            print_error("different value: %.*s\n", (int)size, data);
            fail();
        }
        compare_members(expected, data, size);
        json_decref(seen);
    }
    json_decref(expected);
    free(data);
    return agreed && status == WAL__JSON_OK;
}

static uint64_t next_random(uint64_t *state)
{
    return rng_next(state);
}

static size_t below(uint64_t *state, size_t limit)
{
    return (size_t)(next_random(state) % limit);
}

static void put(struct writer *writer, const char *piece)
{
    size_t size = strlen(piece);

    assert_true(size <= sizeof(writer->text) - writer->size);
    memcpy(writer->text + writer->size, piece, size);
    writer->size += size;
}

static void put_one_of(struct writer *writer, const char *const *pieces, size_t count)
{
    put(writer, pieces[below(&writer->random, count)]);
}

static void put_space(struct writer *writer)
{
    static const char *const spaces[] = {"", "", "", "", " ", "\n", "\t\r "};

    put_one_of(writer, spaces, 7);
}

static void put_string(struct writer *writer)
{
    static const char *const pieces[] = {"a",
                                         "key",
                                         "type",
                                         "some plain text of a length",
                                         " ",
                                         "/",
                                         "\x7f",
                                         "\\\"",
                                         "\\\\",
                                         "\\/",
                                         "\\b",
                                         "\\f",
                                         "\\n",
                                         "\\r",
                                         "\\t",
                                         "\\u0041",
                                         "\\u00e9",
                                         "\\u20AC",
                                         "\\ud83D\\uDe00",
                                         "\\u001f",
                                         "\xc2\x80",
                                         "\xc3\xa9",
                                         "\xe0\xa0\x80",
                                         "\xed\x9f\xbf",
                                         "\xef\xbf\xbf",
                                         "\xf0\x90\x80\x80",
                                         "\xf4\x8f\xbf\xbf",
                                         "\\u0000"};
    size_t count = below(&writer->random, 5);

    put(writer, "\"");
    for (size_t i = 0; i < count; i++) {
        put_one_of(writer, pieces, sizeof(pieces) / sizeof(pieces[0]));
    }
    put(writer, "\"");
}

static void put_scalar(struct writer *writer)
{
    static const char *const scalars[] = {"true",
                                          "false",
                                          "null",
                                          "0",
                                          "-0",
                                          "7",
                                          "-12",
                                          "3.25",
                                          "0.001",
                                          "1e5",
                                          "-2.5E-7",
                                          "9007199254740993",
                                          "123456789012345678901234567890",
                                          "1e400",
                                          "4.9e-324"};

    if (below(&writer->random, 2) == 0) {
        put_string(writer);
    } else {
        put_one_of(writer, scalars, sizeof(scalars) / sizeof(scalars[0]));
    }
}

/* Writes a value, or opens a container; returns whether it opened one. */
static bool put_value(struct writer *writer, bool may_open)
{
    if (!may_open || writer->depth == NEST_MAX || below(&writer->random, 3) == 0) {
        put_scalar(writer);
        return false;
    }
    bool is_object = below(&writer->random, 2) == 0;
    writer->is_object[writer->depth] = is_object;
    writer->depth++;
    put(writer, is_object ? "{" : "[");
    put_space(writer);
    return true;
}

static void put_close(struct writer *writer)
{
    writer->depth--;
    put(writer, writer->is_object[writer->depth] ? "}" : "]");
    put_space(writer);
}

static void write_text(struct writer *writer)
{
    size_t tokens = 0;

    writer->size = 0;
    writer->depth = 0;
    put_space(writer);
    bool is_open = put_value(writer, true);
    put_space(writer);
    while (writer->depth > 0) {
        tokens++;
        if (tokens > TOKENS_MAX || below(&writer->random, 4) == 0) {
            put_close(writer);
            is_open = false;
            continue;
        }
        if (!is_open) {
            put(writer, ",");
            put_space(writer);
        }
        if (writer->is_object[writer->depth - 1]) {
            put_string(writer);
            put_space(writer);
            put(writer, ":");
            put_space(writer);
        }
        is_open = put_value(writer, tokens < TOKENS_MAX);
        put_space(writer);
    }
}

TEST(json_oracle__every_one_byte_change_agrees)
{
    char text[sizeof(sample)];
    size_t accepted = 0;

    assert_true(compare(sample, sizeof(sample) - 1));
    memcpy(text, sample, sizeof(text));
    for (size_t at = 0; at < sizeof(sample) - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            text[at] = (char)byte;
            accepted += compare(text, sizeof(sample) - 1);
        }
        text[at] = sample[at];
    }
    assert_true(accepted > sizeof(sample));
}

TEST(json_oracle__every_insertion_and_removal_agrees)
{
    enum { SIZE = sizeof(sample) - 1 };
    char text[SIZE + 1];

    for (size_t at = 0; at <= SIZE; at++) {
        memcpy(text, sample, at);
        memcpy(text + at + 1, sample + at, SIZE - at);
        for (int byte = 0; byte < 256; byte++) {
            text[at] = (char)byte;
            (void)compare(text, SIZE + 1);
        }
        if (at < SIZE) {
            memcpy(text + at, sample + at + 1, SIZE - at - 1);
            (void)compare(text, SIZE - 1);
        }
    }
}

TEST(json_oracle__every_truncation_agrees)
{
    for (size_t size = 0; size < sizeof(sample) - 1; size++) {
        assert_false(compare(sample, size));
    }
}

/* Two bytes after each of all leads, in a string long enough to end blocks. */
TEST(json_oracle__every_utf8_lead_byte_agrees)
{
    enum { COUNT = 12 };
    static const uint8_t seconds[COUNT] = {0x00, 0x22, 0x41, 0x7f, 0x80, 0x8f,
                                           0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};
    char text[] = "\"0123456789abcdXXXX\"";

    for (size_t i = 0; i < (size_t)COUNT * COUNT; i++) {
        text[16] = (char)seconds[i % COUNT];
        text[17] = (char)seconds[i / COUNT];
        for (int lead = 0x80; lead < 256; lead++) {
            text[15] = (char)lead;
            text[18] = (char)0x80;
            (void)compare(text, sizeof(text) - 1);
            text[18] = 'x';
            (void)compare(text, sizeof(text) - 1);
        }
    }
}

TEST(json_oracle__every_unicode_escape_agrees)
{
    char text[32];

    for (unsigned unit = 0; unit < 0x10000; unit++) {
        int size = snprintf(text, sizeof(text), "\"\\u%04x\"", unit);
        bool is_half = unit >= 0xd800 && unit <= 0xdfff;
        assert_int_equal(compare(text, (size_t)size), !is_half);
        size = snprintf(text, sizeof(text), "\"\\ud801\\u%04X\"", unit);
        assert_int_equal(compare(text, (size_t)size), unit >= 0xdc00 && unit <= 0xdfff);
    }
}

/* Between the two bounds only jansson accepts. */
TEST(json_oracle__depth_differs_only_by_policy)
{
    static char text[2 * 2100];

    for (size_t depth = 1; depth < sizeof(text) / 2; depth += 37) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        assert_int_equal(compare(text, 2 * depth), depth <= WAL__JSON_DEPTH_MAX);
    }
}

static void mutate(uint64_t *random, char *text, size_t size)
{
    static const char bytes[] = "\"\\{}[],:0-.eEu/ \n\t\x80\xc3\xed\xff";
    size_t at = below(random, size);

    if (below(random, 2) == 0) {
        text[at] = (char)(text[at] ^ (1 << below(random, 8)));
    } else {
        text[at] = bytes[below(random, sizeof(bytes))];
    }
}

TEST(json_oracle__random_texts_agree)
{
    static struct writer writer;
    static char text[TEXT_SIZE_MAX];
    size_t accepted = 0;

    writer.random = rng_seed(1);
    for (int i = 0; i < DOCUMENTS; i++) {
        write_text(&writer);
        assert_int_equal(wal__json_validate(writer.text, writer.size, NULL), WAL__JSON_OK);
        accepted += compare(writer.text, writer.size);
        memcpy(text, writer.text, writer.size);
        for (int j = 0; j < MUTATIONS; j++) {
            mutate(&writer.random, text, writer.size);
            (void)compare(text, writer.size - below(&writer.random, 2));
        }
    }
    /* The rest holds a number or a key that jansson refuses. */
    assert_true(accepted > DOCUMENTS / 3);
}
