/*
 * Tests of format/jsonl/json_out: JSON, written piece by piece.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_out.h"
#include "tests/lib/test.h"

struct text {
    char bytes[512];
    size_t size;
    size_t room;
};

static bool put(void *ctx, const void *data, size_t size)
{
    struct text *text = ctx;

    if (text->size + size > text->room) {
        return false;
    }
    memcpy(text->bytes + text->size, data, size);
    text->size += size;
    return true;
}

static struct wal__json_span span(const char *text)
{
    return (struct wal__json_span){(const uint8_t *)text, strlen(text)};
}

TEST(json_out__commas_separate_members_and_elements)
{
    static const char expected[] =
        "{\"a\":\"\\u00e9\",\"b\":[1,{},[],null],\"c\":-9223372036854775808,"
        "\"e\":18446744073709551615,\"d\":\"x\\n\\\"\\u0001\\u001fé\","
        "\"f\":true}\n{}\n[0]\n";
    struct text text = {.room = sizeof(text.bytes)};
    struct wal__json_out out = {.put = put, .ctx = &text};

    wal__json_out_open(&out, '{');
    wal__json_out_member(&out, "a", span("\"\\u00e9\""));
    wal__json_out_optional(&out, "none", span(""));
    wal__json_out_member_open(&out, "b", '[');
    wal__json_out_number(&out, 1);
    wal__json_out_open(&out, '{');
    wal__json_out_close(&out, '}');
    wal__json_out_open(&out, '[');
    wal__json_out_close(&out, ']');
    wal__json_out_literal(&out, "null");
    wal__json_out_close(&out, ']');
    wal__json_out_member_int(&out, "c", INT64_MIN);
    wal__json_out_member_count(&out, "e", UINT64_MAX);
    wal__json_out_member_text(&out, "d", span("x\n\"\001\037é"));
    wal__json_out_member_bool(&out, "f", true);
    wal__json_out_close_line(&out);
    wal__json_out_open(&out, '{');
    wal__json_out_close(&out, '}');
    wal__json_out_newline(&out);
    wal__json_out_line(&out, span("[0]"));
    assert_false(out.has_failed);
    assert_int_equal(text.size, sizeof(expected) - 1);
    assert_memory_equal(text.bytes, expected, text.size);
}

TEST(json_out__strings_are_joined)
{
    struct text text = {.room = sizeof(text.bytes)};
    struct wal__json_out out = {.put = put, .ctx = &text};

    wal__json_out_string_begin(&out);
    wal__json_out_string_json(&out, span("\"a\\n\""));
    wal__json_out_string_text(&out, span("\"b\""));
    wal__json_out_string_json(&out, span("\"\""));
    wal__json_out_string_end(&out);
    assert_int_equal(text.size, 10);
    assert_memory_equal(text.bytes, "\"a\\n\\\"b\\\"\"", 10);
}

TEST(json_out__members_are_swapped)
{
    static const char expected[] = "{\"b\":2,\"c\":{\"a\":1}}[1, 2]";
    struct wal__json_override swaps[] = {{"a", {NULL, 0}}, {"b", span("2")}};
    struct text text = {.room = sizeof(text.bytes)};
    struct wal__json_out out = {.put = put, .ctx = &text};

    wal__json_out_overridden(
        &out, span("{\"a\":1, \"\\u0062\":1, \"c\":{\"a\":1}}"), swaps, 2);
    assert_memory_equal(text.bytes, "{\"\\u0062\":2,", 12);
    text.size = 0;
    out.has_value = false;
    wal__json_out_overridden(&out, span("{\"a\":1, \"b\":1, \"c\":{\"a\":1}}"),
                             swaps, 2);
    out.has_value = false;
    wal__json_out_overridden(&out, span("[1, 2]"), swaps, 2);
    assert_false(out.has_failed);
    assert_int_equal(text.size, sizeof(expected) - 1);
    assert_memory_equal(text.bytes, expected, text.size);
    wal__json_out_overridden(&out, span("{\"a\":"), swaps, 2);
    assert_true(out.has_failed);
}

TEST(json_out__failure_is_sticky)
{
    struct text text = {.room = 3};
    struct wal__json_out out = {.put = put, .ctx = &text};

    wal__json_out_literal(&out, "null");
    assert_true(out.has_failed);
    wal__json_out_bytes(&out, "1", 1);
    assert_true(out.has_failed);
    assert_int_equal(text.size, 0);
}

TEST(json_out__inner_values_stay_on_their_line)
{
    static const char *const cases[][2] = {
        {"{\n  \"a b\" : [ 1 ,\t2.50 ],\r\n \"c\": \"x  \\\" \\\\\" }\n",
         "{\"a b\":[1,2.50],\"c\":\"x  \\\" \\\\\"}"},
        {"\n{}\n", "{}"},
        {" 7 ", "7"},
        {"\" \"", "\" \""},
        {"[]", "[]"},
        {"", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct text text = {.room = sizeof(text.bytes)};
        struct wal__json_out out = {.put = put, .ctx = &text};
        wal__json_out_compact(&out, span(cases[i][0]));
        assert_int_equal(text.size, strlen(cases[i][1]));
        assert_memory_equal(text.bytes, cases[i][1], text.size);
    }
}
