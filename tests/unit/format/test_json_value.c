/* Tests of decoding and encoding JSON strings and numbers. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_value.h"
#include "tests/lib/test.h"

#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define TEXT(literal) literal, sizeof(literal) - 1

static struct wal__json_span span_of(const char *text, size_t size)
{
    struct wal__json_span span = {(const uint8_t *)text, size};

    return span;
}

static const struct {
    const char *string;
    size_t string_size;
    const char *text;
    size_t size;
} strings[] = {
    {TEXT("\"\""), TEXT("")},
    {TEXT("\"plain\""), TEXT("plain")},
    {TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), TEXT("\"\\/\b\f\n\r\t")},
    {TEXT("\"a\\u0041\\u007f\""), TEXT("aA\x7f")},
    {TEXT("\"\\u0080\\u07ff\""), TEXT("\xc2\x80\xdf\xbf")},
    {TEXT("\"\\u0800\\uFFFF\""), TEXT("\xe0\xa0\x80\xef\xbf\xbf")},
    {TEXT("\"\\ud800\\udc00\""), TEXT("\xf0\x90\x80\x80")},
    {TEXT("\"\\uDBFF\\uDFFF!\""), TEXT("\xf4\x8f\xbf\xbf!")},
    {TEXT("\"x\xc3\xa9y\""), TEXT("x\xc3\xa9y")},
    {TEXT("\"a\\u0000b\""), TEXT("a\0b")},
    /* Halves of surrogate pairs, alone or in the wrong order. */
    {TEXT("\"\\udc00\\ud800.\""), TEXT("\xef\xbf\xbd\xef\xbf\xbd.")},
    {TEXT("\"\\ud83d\\n\""), TEXT("\xef\xbf\xbd\n")},
    {TEXT("\"!\\ud83d\""), TEXT("!\xef\xbf\xbd")},
};

TEST(json_value__strings_are_unescaped)
{
    for (size_t i = 0; i < COUNT(strings); i++) {
        struct wal__json_span string =
            span_of(strings[i].string, strings[i].string_size);
        uint8_t buffer[32];
        size_t size = SIZE_MAX;
        bool has_nul = false;
        assert_int_equal(wal__json_unescaped_size(string, &size), WAL__JSON_OK);
        assert_int_equal(size, strings[i].size);
        /* A buffer of exactly the size will do. */
        assert_int_equal(
            wal__json_unescape(string, buffer, size, &size, &has_nul),
            WAL__JSON_OK);
        assert_int_equal(size, strings[i].size);
        assert_memory_equal(buffer, strings[i].text, size);
        assert_int_equal(has_nul, memchr(strings[i].text, 0, size) != NULL);
    }
}

TEST(json_value__small_buffer_is_left_alone)
{
    uint8_t buffer[4] = "zzz";
    size_t size = 77;
    bool has_nul = true;

    assert_int_equal(wal__json_unescape(span_of(TEXT("\"ab\\u20ac\"")), buffer,
                                        4, &size, &has_nul),
                     WAL__JSON_NO_SPACE);
    assert_int_equal(wal__json_escape(span_of(TEXT("a\n")), buffer, 4, &size),
                     WAL__JSON_NO_SPACE);
    assert_memory_equal(buffer, "zzz", 4);
    assert_int_equal(size, 77);
    assert_true(has_nul);
}

TEST(json_value__non_string_spans_are_refused)
{
    static const struct {
        const char *text;
        size_t size;
        enum wal__json_status status;
    } cases[] = {
        {TEXT(""), WAL__JSON_TRUNCATED},
        {TEXT("\""), WAL__JSON_TRUNCATED},
        {TEXT("\"ab"), WAL__JSON_TRUNCATED},
        {TEXT("\"\\\""), WAL__JSON_TRUNCATED},
        {TEXT("\"\\u00\""), WAL__JSON_TRUNCATED},
        {TEXT("\"\xe2\x82\""), WAL__JSON_TRUNCATED},
        {TEXT("12"), WAL__JSON_SYNTAX},
        {TEXT("\"a\"b\""), WAL__JSON_SYNTAX},
        {TEXT("\"\\q\""), WAL__JSON_SYNTAX},
        {TEXT("\"\n\""), WAL__JSON_CONTROL},
        {TEXT("\"\0\""), WAL__JSON_NUL_BYTE},
        {TEXT("\"\xff\""), WAL__JSON_UTF8},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wal__json_span span = span_of(cases[i].text, cases[i].size);
        uint8_t buffer[16];
        size_t size;
        assert_int_equal(wal__json_unescaped_size(span, &size),
                         cases[i].status);
        assert_int_equal(wal__json_unescape(span, buffer, 16, &size, NULL),
                         cases[i].status);
        assert_false(wal__json_string_is(span, ""));
        assert_false(wal__json_string_is(span, "ab"));
    }
}

TEST(json_value__strings_are_compared_unescaped)
{
    for (size_t i = 0; i < COUNT(strings); i++) {
        for (size_t j = 0; j < COUNT(strings); j++) {
            struct wal__json_span string =
                span_of(strings[i].string, strings[i].string_size);
            assert_int_equal(wal__json_string_equals(string, strings[j].text,
                                                     strings[j].size),
                             i == j);
        }
    }
    assert_true(wal__json_string_is(span_of(TEXT("\"us\\u0065r\"")), "user"));
    assert_false(wal__json_string_is(span_of(TEXT("\"use\"")), "user"));
    assert_false(wal__json_string_is(span_of(TEXT("\"users\"")), "user"));
    assert_false(wal__json_string_is(span_of(TEXT("\"a\\u0000\"")), "a"));
    /* An escape does not equal its own bytes. */
    assert_false(wal__json_string_is(span_of(TEXT("\"\\n\"")), "\\n"));
}

TEST(json_value__text_is_escaped_as_stringify_does)
{
    static const struct {
        const char *text;
        size_t size;
        const char *string;
    } cases[] = {
        {TEXT(""), "\"\""},
        {TEXT("plain/'text'"), "\"plain/'text'\""},
        {TEXT("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\""},
        {TEXT("\0\x01\x0b\x1f\x7f"), "\"\\u0000\\u0001\\u000b\\u001f\x7f\""},
        {TEXT("\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80"),
         "\"\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80\""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wal__json_span text = span_of(cases[i].text, cases[i].size);
        uint8_t buffer[64];
        size_t size;
        assert_int_equal(wal__json_escaped_size(text, &size), WAL__JSON_OK);
        assert_int_equal(size, strlen(cases[i].string));
        assert_int_equal(wal__json_escape(text, buffer, size, &size),
                         WAL__JSON_OK);
        assert_memory_equal(buffer, cases[i].string, size);
    }
}

TEST(json_value__ill_formed_text_is_not_escaped)
{
    static const char *const cases[] = {"\xff",     "a\xc3",
                                        "\xe2\x82", "\xed\xa0\x80",
                                        "\xc0\x80", "\xf4\x90\x80\x80"};
    struct wal__json_span nothing = {NULL, 0};
    uint8_t buffer[64];
    size_t size = 77;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wal__json_span text = span_of(cases[i], strlen(cases[i]));
        assert_int_equal(wal__json_escaped_size(text, &size), WAL__JSON_UTF8);
        assert_int_equal(wal__json_escape(text, buffer, 64, &size),
                         WAL__JSON_UTF8);
        assert_int_equal(size, 77);
    }
    assert_int_equal(wal__json_escape(nothing, buffer, 64, &size),
                     WAL__JSON_OK);
    assert_int_equal(size, 2);
}

TEST(json_value__integers_are_exact)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0", 0},
        {"-0", 0},
        {"7", 7},
        {"-10", -10},
        {"9007199254740993", INT64_C(9007199254740993)},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wal__json_span number =
            span_of(cases[i].text, strlen(cases[i].text));
        int64_t value = 77;
        assert_int_equal(wal__json_integer(number, &value), WAL__JSON_OK);
        assert_true(value == cases[i].value);
    }
}

TEST(json_value__other_numbers_are_not_integers)
{
    static const struct {
        const char *text;
        enum wal__json_status status;
    } cases[] = {
        {"", WAL__JSON_NOT_INTEGER},
        {"-", WAL__JSON_NOT_INTEGER},
        {"01", WAL__JSON_NOT_INTEGER},
        {"-01", WAL__JSON_NOT_INTEGER},
        {"+1", WAL__JSON_NOT_INTEGER},
        {"1.0", WAL__JSON_NOT_INTEGER},
        {"1e3", WAL__JSON_NOT_INTEGER},
        {"1 ", WAL__JSON_NOT_INTEGER},
        {"\"1\"", WAL__JSON_NOT_INTEGER},
        {"9223372036854775808", WAL__JSON_RANGE},
        {"-9223372036854775809", WAL__JSON_RANGE},
        {"18446744073709551616", WAL__JSON_RANGE},
        {"99999999999999999999999999999999999999999", WAL__JSON_RANGE},
        {"99999999999999999999999999999999999999999.5", WAL__JSON_NOT_INTEGER},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wal__json_span number =
            span_of(cases[i].text, strlen(cases[i].text));
        int64_t value = 77;
        assert_int_equal(wal__json_integer(number, &value), cases[i].status);
        assert_true(value == 77);
    }
}
