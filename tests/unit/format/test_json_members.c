/* Tests of the search for members, and of find. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_scan.h"
#include "tests/lib/test.h"

#define TEXT(literal) literal, sizeof(literal) - 1
#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))

struct rejected {
    const char *text;
    size_t size;
    enum wal__json_status status;
    size_t offset;
};

static bool span_is(struct wal__json_span span, const char *text)
{
    return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
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
    static const char *const values[] = {
        "\"user\"",
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
        wal__json_members(
            TEXT("{\"type\":\"user\",\"message\": { \"role\":[1,{\"role\":0}], "
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
    struct wal__json_member wanted[] = {{.key = "id"},
                                        {.key = "\xc3\xa9"},
                                        {.parent = "id", .key = "a\"b"},
                                        {.key = "z"}};

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

    assert_int_equal(
        wal__json_members(TEXT("{\"a\":1,\"m\":{\"x\":1,\"y\":1},\"b\":3,"
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
        assert_int_equal(
            wal__json_members(cases[i].text, cases[i].size, wanted, 2, &offset),
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
    assert_int_equal(
        wal__json_members(TEXT("{\"a\":1}"), wanted, COUNT(wanted), NULL),
        WAL__JSON_NO_SPACE);
    assert_int_equal(wal__json_members(TEXT("{\"a\":1}"), wanted,
                                       WAL__JSON_MEMBERS_MAX, NULL),
                     WAL__JSON_OK);
    assert_int_equal(wanted[WAL__JSON_MEMBERS_MAX - 1].value.kind,
                     WAL__JSON_NUMBER);
    assert_int_equal(wal__json_members(TEXT("{\"a\":1}"), NULL, 0, NULL),
                     WAL__JSON_OK);
}

TEST(json_members__find_gives_one_value)
{
    struct wal__json_token value = {.depth = 9};

    assert_int_equal(wal__json_find(TEXT("{\"a\":{\"b\":1}}"), "b", &value),
                     WAL__JSON_NOT_FOUND);
    assert_int_equal(wal__json_find(TEXT("[\"a\"]"), "a", &value),
                     WAL__JSON_NOT_OBJECT);
    assert_int_equal(wal__json_find(TEXT("{\"a\":1,}"), "a", &value),
                     WAL__JSON_SYNTAX);
    assert_int_equal(value.depth, 9);
    assert_int_equal(wal__json_find(TEXT("{\"a\":{\"b\":1}}"), "a", &value),
                     WAL__JSON_OK);
    assert_int_equal(value.kind, WAL__JSON_OBJECT);
    assert_int_equal(value.depth, 1);
    assert_true(span_is(value.span, "{\"b\":1}"));
}
