/*
 * test_json_scan.c - tests of the scanner's grammar, tokens and bounds, of strings and numbers that
 * are decoded and encoded, and of the search for members. Each text is in a block of exactly its
 * size, so that the address sanitizer sees a read beyond its end.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_scan.h"
#include "format/json/json_text.h"
#include "tests/lib/test.h"

#define TEXT(literal) literal, sizeof(literal) - 1
#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))

struct rejected {
    const char *text;
    size_t size;
    enum wal__json_status status;
    size_t offset;
};

static const char sample[] =
    " {\"id\":\"a\\u00e9\\ud83d\\ude00\\n\", \"n\" : [0,-1,2.50,1e9,-0.1E-2]"
    ",\r\n\t\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\":{\"deep\":[[],{},[{\"x\":"
    "null}]]},\"t\":true,\"f\":false,\"\":\"a long run of plain text, over "
    "sixteen bytes\"}";

static uint8_t *copy_of(const void *text, size_t size)
{
    uint8_t *copy = malloc(size + (size == 0));

    assert_non_null(copy);
    if (size != 0) {
        memcpy(copy, text, size);
    }
    return copy;
}

static enum wal__json_status validate(const char *text, size_t size, size_t *error_offset)
{
    uint8_t *copy = copy_of(text, size);
    enum wal__json_status status = wal__json_validate(copy, size, error_offset);

    free(copy);
    return status;
}

static bool span_is(struct wal__json_span span, const char *text)
{
    return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

TEST(json_scan__valid_texts_are_accepted)
{
    static const char *const texts[] = {"0",
                                        "-0",
                                        "12",
                                        "-3.25",
                                        "0.1",
                                        "1e0",
                                        "1E+10",
                                        "1.5e-3",
                                        "0e1",
                                        "123456789012345678901234567890",
                                        "1e999999",
                                        "true",
                                        "false",
                                        "null",
                                        "\"\"",
                                        "[]",
                                        "{}",
                                        " \t\r\n[ ] \n",
                                        "[[],[[]],{}]",
                                        "{\"a\":{\"a\":{}}}",
                                        "{\"a\":1,\"a\":2}",
                                        "{\"\":0}",
                                        "[1,2 , 3\n,4]",
                                        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                                        "\"\\u0000\"",
                                        "\"\\uD834\\uDD1E\"",
                                        "\"\\ud834\\udd1e\"",
                                        "\"\\uFFFF\\u00aF\"",
                                        "\"\x7f\"",
                                        "\"\xc2\x80\"",
                                        "\"\xdf\xbf\"",
                                        "\"\xe0\xa0\x80\"",
                                        "\"\xed\x9f\xbf\"",
                                        "\"\xee\x80\x80\"",
                                        "\"\xef\xbf\xbf\"",
                                        "\"\xf0\x90\x80\x80\"",
                                        "\"\xf4\x8f\xbf\xbf\"",
                                        "\"\xe2\x80\xa8\"",
                                        "[\"a\",1,true,null,{\"b\":[]}]"};

    for (size_t i = 0; i < COUNT(texts); i++) {
        size_t offset = 77;
        if (validate(texts[i], strlen(texts[i]), &offset) != WAL__JSON_OK) {
            print_error("rejected at %zu: %s\n", offset, texts[i]);
            fail();
        }
        assert_int_equal(offset, 77);
    }
}

static void check_rejected(const struct rejected *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t offset = SIZE_MAX;
        enum wal__json_status status = validate(cases[i].text, cases[i].size, &offset);
        if (status != cases[i].status || offset != cases[i].offset) {
            print_error("%s: %s at %zu, not %s at %zu\n", cases[i].text,
                        wal__json_status_text(status), offset,
                        wal__json_status_text(cases[i].status), cases[i].offset);
            fail();
        }
    }
}

TEST(json_scan__grammar_errors_are_rejected)
{
    static const struct rejected cases[] = {
        {TEXT("]"), WAL__JSON_SYNTAX, 0},         {TEXT("}"), WAL__JSON_SYNTAX, 0},
        {TEXT(","), WAL__JSON_SYNTAX, 0},         {TEXT(":1"), WAL__JSON_SYNTAX, 0},
        {TEXT("[1,]"), WAL__JSON_SYNTAX, 3},      {TEXT("[,1]"), WAL__JSON_SYNTAX, 1},
        {TEXT("[1,,2]"), WAL__JSON_SYNTAX, 3},    {TEXT("[1 2]"), WAL__JSON_SYNTAX, 3},
        {TEXT("[1}"), WAL__JSON_SYNTAX, 2},       {TEXT("[\"a\":1]"), WAL__JSON_SYNTAX, 4},
        {TEXT("[1\v]"), WAL__JSON_SYNTAX, 2},     {TEXT("[\xc2\xa0]"), WAL__JSON_SYNTAX, 1},
        {TEXT("{]"), WAL__JSON_SYNTAX, 1},        {TEXT("{,}"), WAL__JSON_SYNTAX, 1},
        {TEXT("{1:2}"), WAL__JSON_SYNTAX, 1},     {TEXT("{a:1}"), WAL__JSON_SYNTAX, 1},
        {TEXT("{'a':1}"), WAL__JSON_SYNTAX, 1},   {TEXT("{\"a\"}"), WAL__JSON_SYNTAX, 4},
        {TEXT("{\"a\" 1}"), WAL__JSON_SYNTAX, 5}, {TEXT("{\"a\"::1}"), WAL__JSON_SYNTAX, 5},
        {TEXT("{\"a\":}"), WAL__JSON_SYNTAX, 5},  {TEXT("{\"a\":1,}"), WAL__JSON_SYNTAX, 7},
        {TEXT("{\"a\":1]"), WAL__JSON_SYNTAX, 6}, {TEXT("{\"a\":1 \"b\":2}"), WAL__JSON_SYNTAX, 7},
        {TEXT("{\"a\":1;"), WAL__JSON_SYNTAX, 6}, {TEXT("True"), WAL__JSON_SYNTAX, 0},
        {TEXT("nul!"), WAL__JSON_SYNTAX, 3},      {TEXT("[truefalse]"), WAL__JSON_SYNTAX, 5},
        {TEXT("NaN"), WAL__JSON_SYNTAX, 0},       {TEXT("-Infinity"), WAL__JSON_SYNTAX, 1},
        {TEXT("/* */1"), WAL__JSON_SYNTAX, 0},    {TEXT("\xef\xbb\xbf{}"), WAL__JSON_SYNTAX, 0},
        {TEXT("+1"), WAL__JSON_SYNTAX, 0},        {TEXT(".5"), WAL__JSON_SYNTAX, 0},
        {TEXT("[-a]"), WAL__JSON_SYNTAX, 2},      {TEXT("[01]"), WAL__JSON_SYNTAX, 2},
        {TEXT("[-01]"), WAL__JSON_SYNTAX, 3},     {TEXT("[1.]"), WAL__JSON_SYNTAX, 3},
        {TEXT("[1.e1]"), WAL__JSON_SYNTAX, 3},    {TEXT("[1e]"), WAL__JSON_SYNTAX, 3},
        {TEXT("[1e+]"), WAL__JSON_SYNTAX, 4},     {TEXT("[1e1.5]"), WAL__JSON_SYNTAX, 4},
        {TEXT("[0x1]"), WAL__JSON_SYNTAX, 2},     {TEXT("[1-2]"), WAL__JSON_SYNTAX, 2},
        {TEXT("1 2"), WAL__JSON_TRAILING, 2},     {TEXT("{}{}"), WAL__JSON_TRAILING, 2},
        {TEXT("[]]"), WAL__JSON_TRAILING, 2},     {TEXT("01"), WAL__JSON_TRAILING, 1},
        {TEXT("{},"), WAL__JSON_TRAILING, 2},     {TEXT("\"a\"\xff"), WAL__JSON_TRAILING, 3},
    };

    check_rejected(cases, COUNT(cases));
}

TEST(json_scan__half_of_a_surrogate_pair_is_accepted)
{
    static const struct {
        const char *text;
        size_t size;
    } cases[] = {
        {TEXT("\"\\ud800\"")},        {TEXT("\"x\\udc00\"")},       {TEXT("\"\\udfff\\ud800\"")},
        {TEXT("\"\\ud800\\ud800\"")}, {TEXT("\"\\udbff\\u0041\"")}, {TEXT("\"\\ud800\\n\"")},
        {TEXT("\"\\ud800x\"")},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(wal__json_validate(cases[i].text, cases[i].size, NULL), WAL__JSON_OK);
    }
}

TEST(json_scan__string_errors_are_rejected)
{
    static const struct rejected cases[] = {
        {TEXT("\"a\nb\""), WAL__JSON_CONTROL, 2},
        {TEXT("\"\x1f\""), WAL__JSON_CONTROL, 1},
        {TEXT("{\"a\tb\":1}"), WAL__JSON_CONTROL, 3},
        {TEXT("\"\\a\""), WAL__JSON_SYNTAX, 2},
        {TEXT("\"\\'\""), WAL__JSON_SYNTAX, 2},
        {TEXT("\"\\x41\""), WAL__JSON_SYNTAX, 2},
        {TEXT("\"\\U0041\""), WAL__JSON_SYNTAX, 2},
        {TEXT("\"\\u004g\""), WAL__JSON_SYNTAX, 6},
        {TEXT("\"\\u12\""), WAL__JSON_SYNTAX, 5},
        {TEXT("\"\\ud800\\u00zz\""), WAL__JSON_SYNTAX, 11},
        {TEXT("\"\x80\""), WAL__JSON_UTF8, 1},
        {TEXT("\"a\xbf\""), WAL__JSON_UTF8, 2},
        {TEXT("\"\xc0\x80\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xc1\xbf\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xc3\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xc3\xc3\xa9\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xe0\x9f\xbf\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xed\xa0\x80\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xed\xbf\xbf\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xe2\x82\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xf0\x8f\xbf\xbf\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xf4\x90\x80\x80\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xf5\x80\x80\x80\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xf0\x9f\x98\""), WAL__JSON_UTF8, 1},
        {TEXT("\"\xff\""), WAL__JSON_UTF8, 1},
    };

    check_rejected(cases, COUNT(cases));
}

TEST(json_scan__raw_nul_is_rejected_everywhere)
{
    static const struct rejected cases[] = {
        {TEXT("\0"), WAL__JSON_NUL_BYTE, 0},       {TEXT("\"a\0b\""), WAL__JSON_NUL_BYTE, 2},
        {TEXT("\"\\\0\""), WAL__JSON_NUL_BYTE, 2}, {TEXT("\"\\u00\0\""), WAL__JSON_NUL_BYTE, 5},
        {TEXT("{}\0"), WAL__JSON_NUL_BYTE, 2},     {TEXT("{\"a\"\0:1}"), WAL__JSON_NUL_BYTE, 4},
        {TEXT("[1\0]"), WAL__JSON_NUL_BYTE, 2},    {TEXT("[1.\0]"), WAL__JSON_NUL_BYTE, 3},
        {TEXT("[\0]"), WAL__JSON_NUL_BYTE, 1},     {TEXT("tr\0e"), WAL__JSON_NUL_BYTE, 2},
        {TEXT("{\0}"), WAL__JSON_NUL_BYTE, 1},
    };

    check_rejected(cases, COUNT(cases));
}

TEST(json_scan__every_truncation_is_reported)
{
    static const char *const others[] = {"true ", "\"\\ud83d\\ude00\"", "[-1.5e+3]",
                                         "\"\xf0\x9f\x98\x80\""};

    assert_int_equal(validate(TEXT(sample), NULL), WAL__JSON_OK);
    for (size_t size = 0; size < sizeof(sample) - 1; size++) {
        size_t offset = SIZE_MAX;
        assert_int_equal(validate(sample, size, &offset), WAL__JSON_TRUNCATED);
        assert_int_equal(offset, size);
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        for (size_t size = 0; size < strlen(others[i]) - 1; size++) {
            enum wal__json_status status = validate(others[i], size, NULL);
            /* "true" is complete before its space. */
            assert_true(status == WAL__JSON_TRUNCATED || (i == 0 && size == 4));
        }
    }
    assert_int_equal(wal__json_validate(NULL, 0, NULL), WAL__JSON_TRUNCATED);
}

/* A string of `size` bytes, with `byte` at each place but the last. */
static void check_places(size_t size, int byte, enum wal__json_status expected)
{
    char text[80];

    for (size_t at = 1; at + 2 < size; at++) {
        memset(text, 'a', size);
        text[0] = '"';
        text[at] = (char)byte;
        text[size - 1] = '"';
        assert_int_equal(validate(text, size, NULL), expected);
    }
}

TEST(json_scan__stops_are_found_at_every_alignment)
{
    static const char plain[] = " !#[]~\x7f";

    for (size_t size = 4; size < 80; size++) {
        check_places(size, 0, WAL__JSON_NUL_BYTE);
        check_places(size, 0x1f, WAL__JSON_CONTROL);
        check_places(size, '"', WAL__JSON_TRAILING);
        check_places(size, '\\', WAL__JSON_SYNTAX);
        check_places(size, 0x80, WAL__JSON_UTF8);
        check_places(size, 0xff, WAL__JSON_UTF8);
        for (size_t i = 0; i < sizeof(plain) - 1; i++) {
            check_places(size, plain[i], WAL__JSON_OK);
        }
    }
}

/* The status of a byte that follows N backslashes. */
static enum wal__json_status expected_after(size_t backslashes, char byte)
{
    if (backslashes % 2 == 1) {
        return memchr("\"\\/bfnrtu", byte, 9) != NULL ? WAL__JSON_OK
               : byte == 0                            ? WAL__JSON_NUL_BYTE
                                                      : WAL__JSON_SYNTAX;
    }
    return byte == 0            ? WAL__JSON_NUL_BYTE
           : (byte & 0x80) != 0 ? WAL__JSON_UTF8
           : byte < ' '         ? WAL__JSON_CONTROL
           : byte == '"'        ? WAL__JSON_TRAILING
                                : WAL__JSON_OK;
}

/* A string that begins with an escape: plain bytes, backslashes, the byte, and what may follow a
 * \u. */
static void check_after(size_t plain, size_t backslashes, char byte)
{
    enum wal__json_status expected = expected_after(backslashes, byte);
    size_t place = 3 + plain + backslashes;
    size_t size = place + 1 + 90;
    size_t offset = SIZE_MAX;
    char text[512];

    memset(text, 'b', size);
    memcpy(text, "\"\\n", 3);
    memset(text + 3 + plain, '\\', backslashes);
    text[place] = byte;
    text[size - 1] = '"';
    assert_int_equal(validate(text, size, &offset), expected);
    if (expected != WAL__JSON_OK) {
        assert_int_equal(offset, place + (expected == WAL__JSON_TRAILING));
    }
}

TEST(json_scan__escapes_are_checked_at_every_alignment)
{
    static const char bytes[] = "\"/bfnrtuaBN0'.\x01\x1f \x7f\x80\xff";

    for (size_t plain = 0; plain < 140; plain++) {
        for (size_t backslashes = 0; backslashes < 6; backslashes++) {
            for (size_t i = 0; i < sizeof(bytes); i++) {
                check_after(plain, backslashes, bytes[i]);
            }
        }
    }
    for (size_t backslashes = 6; backslashes < 200; backslashes++) {
        for (size_t i = 0; i < sizeof(bytes); i++) {
            check_after(backslashes % 67, backslashes, bytes[i]);
        }
    }
}

TEST(json_scan__depth_is_bounded)
{
    enum { DEPTH = WAL__JSON_DEPTH_MAX };
    static const char *const opens[] = {"[", "{\"a\":"};
    static const char *const closes[] = {"]", "}"};
    static char text[(DEPTH + 1) * 6 + 1];
    size_t offset = 0;

    for (size_t kind = 0; kind < 2; kind++) {
        size_t open_size = strlen(opens[kind]);
        size_t size = 0;
        for (size_t i = 0; i < DEPTH; i++) {
            memcpy(text + size, opens[kind], open_size);
            size += open_size;
        }
        text[size++] = '1';
        memset(text + size, closes[kind][0], DEPTH);
        assert_int_equal(validate(text, size + DEPTH, NULL), WAL__JSON_OK);

        memcpy(text + size - 1, opens[kind], open_size);
        assert_int_equal(validate(text, size - 1 + open_size, &offset), WAL__JSON_DEPTH);
        assert_int_equal(offset, size - 1);
    }
}

static void append_token(char *trace, const struct wal__json_token *token)
{
    static const char *const names[] = {"none",   "{",      "}",    "[",     "]",    "key",
                                        "string", "number", "true", "false", "null", "end"};

    sprintf(trace + strlen(trace), "%s@%u%s %.*s|", names[token->kind], (unsigned)token->depth,
            token->has_escapes ? "!" : "", (int)token->span.size, (const char *)token->span.data);
}

TEST(json_scan__tokens_carry_kind_depth_and_span)
{
    static const char text[] = " {\"a\" : [1, \"x\\n\"],\"\\u0062\":{ },\"c\":[true,false,null]} ";
    static const char expected[] = "{@0 {|key@1 \"a\"|[@1 [|number@2 1|string@2! \"x\\n\"|]@1 ]|"
                                   "key@1! \"\\u0062\"|{@1 {|}@1 }|key@1 \"c\"|[@1 [|true@2 true|"
                                   "false@2 false|null@2 null|]@1 ]|}@0 }|end@0 |end@0 |";
    char trace[512] = "";
    struct wal__json_scan scan;
    struct wal__json_token token = {0};

    wal__json_scan_init(&scan, TEXT(text));
    while (token.kind != WAL__JSON_END) {
        assert_int_equal(wal__json_scan_next(&scan, &token), WAL__JSON_OK);
        append_token(trace, &token);
    }
    assert_int_equal(wal__json_scan_next(&scan, &token), WAL__JSON_OK);
    append_token(trace, &token);
    assert_string_equal(trace, expected);
    assert_int_equal(wal__json_scan_offset(&scan), sizeof(text) - 1);
}

TEST(json_scan__failure_is_final_and_leaves_the_token)
{
    struct wal__json_scan scan;
    struct wal__json_token token;
    struct wal__json_token before;

    wal__json_scan_init(&scan, TEXT("[1,x,2]"));
    assert_int_equal(wal__json_scan_next(&scan, &token), WAL__JSON_OK);
    assert_int_equal(wal__json_scan_next(&scan, &token), WAL__JSON_OK);
    before = token;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wal__json_scan_next(&scan, &token), WAL__JSON_SYNTAX);
        assert_int_equal(wal__json_scan_skip(&scan, &token), WAL__JSON_SYNTAX);
        assert_int_equal(wal__json_scan_offset(&scan), 3);
        assert_memory_equal(&token, &before, sizeof(token));
    }
}

TEST(json_scan__skip_gives_whole_values)
{
    static const char *const expected[] = {"{\"a\":[1,{}]}", "[ [] ]", "\"s\"",
                                           "-1.0",           "null",   "]"};
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__json_scan_init(&scan, TEXT("[{\"a\":[1,{}]} , [ [] ],\"s\",-1.0,null ] "));
    assert_int_equal(wal__json_scan_next(&scan, &value), WAL__JSON_OK);
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_int_equal(wal__json_scan_skip(&scan, &value), WAL__JSON_OK);
        assert_true(span_is(value.span, expected[i]));
        assert_int_equal(value.depth, i < 5 ? 1 : 0);
    }
    assert_int_equal(value.kind, WAL__JSON_ARRAY_END);
    assert_int_equal(wal__json_scan_skip(&scan, &value), WAL__JSON_OK);
    assert_int_equal(value.kind, WAL__JSON_END);
}

TEST(json_scan__skip_validates_the_value)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__json_scan_init(&scan, TEXT("[[1,[2,}]]]"));
    assert_int_equal(wal__json_scan_skip(&scan, &value), WAL__JSON_SYNTAX);
    assert_int_equal(wal__json_scan_offset(&scan), 7);
}

TEST(json_scan__every_status_has_its_text)
{
    for (int i = WAL__JSON_OK; i < WAL__JSON_NO_SPACE; i++) {
        const char *text = wal__json_status_text((enum wal__json_status)i);
        const char *next = wal__json_status_text((enum wal__json_status)(i + 1));
        assert_string_not_equal(text, next);
        assert_string_not_equal(text, "unknown status");
    }
    assert_string_equal(wal__json_status_text((enum wal__json_status)999), "unknown status");
}

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
        struct wal__json_span string = span_of(strings[i].string, strings[i].string_size);
        uint8_t buffer[32];
        size_t size = SIZE_MAX;
        bool has_nul = false;
        assert_int_equal(wal__json_unescaped_size(string, &size), WAL__JSON_OK);
        assert_int_equal(size, strings[i].size);
        /* A buffer of exactly the size will do. */
        assert_int_equal(wal__json_unescape(string, buffer, size, &size, &has_nul), WAL__JSON_OK);
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

    assert_int_equal(wal__json_unescape(span_of(TEXT("\"ab\\u20ac\"")), buffer, 4, &size, &has_nul),
                     WAL__JSON_NO_SPACE);
    assert_int_equal(wal__json_escape(span_of(TEXT("a\n")), buffer, 4, &size), WAL__JSON_NO_SPACE);
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
        {TEXT(""), WAL__JSON_TRUNCATED},          {TEXT("\""), WAL__JSON_TRUNCATED},
        {TEXT("\"ab"), WAL__JSON_TRUNCATED},      {TEXT("\"\\\""), WAL__JSON_TRUNCATED},
        {TEXT("\"\\u00\""), WAL__JSON_TRUNCATED}, {TEXT("\"\xe2\x82\""), WAL__JSON_TRUNCATED},
        {TEXT("12"), WAL__JSON_SYNTAX},           {TEXT("\"a\"b\""), WAL__JSON_SYNTAX},
        {TEXT("\"\\q\""), WAL__JSON_SYNTAX},      {TEXT("\"\n\""), WAL__JSON_CONTROL},
        {TEXT("\"\0\""), WAL__JSON_NUL_BYTE},     {TEXT("\"\xff\""), WAL__JSON_UTF8},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wal__json_span span = span_of(cases[i].text, cases[i].size);
        uint8_t buffer[16];
        size_t size;
        assert_int_equal(wal__json_unescaped_size(span, &size), cases[i].status);
        assert_int_equal(wal__json_unescape(span, buffer, 16, &size, NULL), cases[i].status);
        assert_false(wal__json_string_is(span, ""));
        assert_false(wal__json_string_is(span, "ab"));
    }
}

TEST(json_value__strings_are_compared_unescaped)
{
    for (size_t i = 0; i < COUNT(strings); i++) {
        for (size_t j = 0; j < COUNT(strings); j++) {
            struct wal__json_span string = span_of(strings[i].string, strings[i].string_size);
            assert_int_equal(wal__json_string_equals(string, strings[j].text, strings[j].size),
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
        {TEXT("\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80"), "\"\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80\""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wal__json_span text = span_of(cases[i].text, cases[i].size);
        uint8_t buffer[64];
        size_t size;
        assert_int_equal(wal__json_escaped_size(text, &size), WAL__JSON_OK);
        assert_int_equal(size, strlen(cases[i].string));
        assert_int_equal(wal__json_escape(text, buffer, size, &size), WAL__JSON_OK);
        assert_memory_equal(buffer, cases[i].string, size);
    }
}

TEST(json_value__ill_formed_text_is_not_escaped)
{
    static const char *const cases[] = {"\xff",         "a\xc3",    "\xe2\x82",
                                        "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80"};
    struct wal__json_span nothing = {NULL, 0};
    uint8_t buffer[64];
    size_t size = 77;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wal__json_span text = span_of(cases[i], strlen(cases[i]));
        assert_int_equal(wal__json_escaped_size(text, &size), WAL__JSON_UTF8);
        assert_int_equal(wal__json_escape(text, buffer, 64, &size), WAL__JSON_UTF8);
        assert_int_equal(size, 77);
    }
    assert_int_equal(wal__json_escape(nothing, buffer, 64, &size), WAL__JSON_OK);
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
        struct wal__json_span number = span_of(cases[i].text, strlen(cases[i].text));
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
        struct wal__json_span number = span_of(cases[i].text, strlen(cases[i].text));
        int64_t value = 77;
        assert_int_equal(wal__json_integer(number, &value), cases[i].status);
        assert_true(value == 77);
    }
}

TEST(json_members__are_found_in_one_pass)
{
    struct wal__json_member wanted[] = {
        {.key = "type"},
        {.key = "message"},
        {.parent = "message", .key = "role"},
        {.parent = "message", .key = "type"},
        {.parent = "list", .key = "role"},
        {.parent = "message", .key = "absent"},
        {.key = "role"},
        {.key = "t"},
        {.key = "type"},
        {.key = ""},
    };
    static const char *const values[] = {"\"user\"",
                                         "{ \"role\":[1,{\"role\":0}], \"type\":null }",
                                         "[1,{\"role\":0}]",
                                         "null",
                                         NULL,
                                         NULL,
                                         NULL,
                                         NULL,
                                         "\"user\"",
                                         "{}"};

    assert_int_equal(
        wal__json_members(TEXT("{\"type\":\"user\",\"message\": { \"role\":[1,{\"role\":0}], "
                               "\"type\":null },\"list\":[{\"role\":1}],\"\":{}}"),
                          wanted, COUNT(wanted), NULL),
        WAL__JSON_OK);
    for (size_t i = 0; i < COUNT(wanted); i++) {
        assert_false(wanted[i].is_duplicate);
        if (values[i] == NULL) {
            assert_int_equal(wanted[i].value.kind, WAL__JSON_NONE);
        } else {
            assert_true(span_is(wanted[i].value.span, values[i]));
        }
    }
    assert_int_equal(wanted[0].value.kind, WAL__JSON_STRING);
    assert_int_equal(wanted[1].value.kind, WAL__JSON_OBJECT);
    assert_int_equal(wanted[3].value.kind, WAL__JSON_NULL);
}

TEST(json_members__match_unescaped_keys)
{
    struct wal__json_member wanted[] = {
        {.key = "id"}, {.key = "\xc3\xa9"}, {.parent = "id", .key = "a\"b"}, {.key = "z"}};

    assert_int_equal(wal__json_members(TEXT("{\"\\u0069d\":{\"a\\\"b\":1},"
                                            "\"\\u00e9\":2,\"z\\u0000\":3}"),
                                       wanted, COUNT(wanted), NULL),
                     WAL__JSON_OK);
    assert_true(span_is(wanted[0].value.span, "{\"a\\\"b\":1}"));
    assert_true(span_is(wanted[1].value.span, "2"));
    assert_true(span_is(wanted[2].value.span, "1"));
    assert_int_equal(wanted[3].value.kind, WAL__JSON_NONE);
}

TEST(json_members__last_duplicate_counts_and_is_reported)
{
    struct wal__json_member wanted[] = {{.key = "a"},
                                        {.key = "b"},
                                        {.parent = "m", .key = "x"},
                                        {.parent = "m", .key = "y"},
                                        {.parent = "m", .key = "z"}};

    assert_int_equal(wal__json_members(TEXT("{\"a\":1,\"m\":{\"x\":1,\"y\":1},\"b\":3,"
                                            "\"\\u0061\":2,\"m\":{\"x\":5,\"z\":6}}"),
                                       wanted, COUNT(wanted), NULL),
                     WAL__JSON_OK);
    assert_true(span_is(wanted[0].value.span, "2"));
    assert_true(wanted[0].is_duplicate);
    assert_true(span_is(wanted[1].value.span, "3"));
    assert_false(wanted[1].is_duplicate);
    assert_true(span_is(wanted[2].value.span, "5"));
    assert_true(wanted[2].is_duplicate);
    assert_int_equal(wanted[3].value.kind, WAL__JSON_NONE);
    assert_true(wanted[3].is_duplicate);
    assert_true(span_is(wanted[4].value.span, "6"));
}

TEST(json_members__failure_leaves_the_outputs)
{
    static const struct rejected cases[] = {
        {TEXT("{\"a\":1"), WAL__JSON_TRUNCATED, 6},
        {TEXT("{\"a\":1}x"), WAL__JSON_TRAILING, 7},
        {TEXT("{\"a\":1,\"m\":{\"x\":2,}}"), WAL__JSON_SYNTAX, 18},
        {TEXT("{\"a\":1,\"z\":[\"\xff\"]}"), WAL__JSON_UTF8, 13},
        {TEXT("[1,2"), WAL__JSON_TRUNCATED, 4},
        {TEXT("[1,2]"), WAL__JSON_NOT_OBJECT, 77},
        {TEXT("1"), WAL__JSON_NOT_OBJECT, 77},
    };
    struct wal__json_member wanted[2];
    struct wal__json_member before[2];

    memset(wanted, 0, sizeof(wanted));
    wanted[0].key = "a";
    wanted[1].parent = "m";
    wanted[1].key = "x";
    wanted[0].value.depth = 9;
    memcpy(before, wanted, sizeof(before));
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t offset = 77;
        assert_int_equal(wal__json_members(cases[i].text, cases[i].size, wanted, 2, &offset),
                         cases[i].status);
        assert_int_equal(offset, cases[i].offset);
        assert_memory_equal(wanted, before, sizeof(before));
    }
}

TEST(json_members__are_bounded)
{
    struct wal__json_member wanted[WAL__JSON_MEMBERS_MAX + 1];

    memset(wanted, 0, sizeof(wanted));
    for (size_t i = 0; i < COUNT(wanted); i++) {
        wanted[i].key = "a";
    }
    assert_int_equal(wal__json_members(TEXT("{\"a\":1}"), wanted, COUNT(wanted), NULL),
                     WAL__JSON_NO_SPACE);
    assert_int_equal(wal__json_members(TEXT("{\"a\":1}"), wanted, WAL__JSON_MEMBERS_MAX, NULL),
                     WAL__JSON_OK);
    assert_int_equal(wanted[WAL__JSON_MEMBERS_MAX - 1].value.kind, WAL__JSON_NUMBER);
    assert_int_equal(wal__json_members(TEXT("{\"a\":1}"), NULL, 0, NULL), WAL__JSON_OK);
}

TEST(json_members__find_gives_one_value)
{
    struct wal__json_token value = {.depth = 9};

    assert_int_equal(wal__json_find(TEXT("{\"a\":{\"b\":1}}"), "b", &value), WAL__JSON_NOT_FOUND);
    assert_int_equal(wal__json_find(TEXT("[\"a\"]"), "a", &value), WAL__JSON_NOT_OBJECT);
    assert_int_equal(wal__json_find(TEXT("{\"a\":1,}"), "a", &value), WAL__JSON_SYNTAX);
    assert_int_equal(value.depth, 9);
    assert_int_equal(wal__json_find(TEXT("{\"a\":{\"b\":1}}"), "a", &value), WAL__JSON_OK);
    assert_int_equal(value.kind, WAL__JSON_OBJECT);
    assert_int_equal(value.depth, 1);
    assert_true(span_is(value.span, "{\"b\":1}"));
}
