/*
 * test_json_out.c - JSON, written piece by piece; and merge patches: RFC 7386, and what stays the
 * bytes that it was.
 */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_merge.h"
#include "format/json/json_out.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"
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

    wal__json_out_overridden(&out, span("{\"a\":1, \"\\u0062\":1, \"c\":{\"a\":1}}"), swaps, 2);
    assert_memory_equal(text.bytes, "{\"\\u0062\":2,", 12);
    text.size = 0;
    out.has_value = false;
    wal__json_out_overridden(&out, span("{\"a\":1, \"b\":1, \"c\":{\"a\":1}}"), swaps, 2);
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

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct wal__span span_of(const char *text)
{
    struct wal__span span = {(const uint8_t *)text, strlen(text)};

    return span;
}

/* The result, terminated, in memory of exactly the bound. */
static char *merged(const char *target, const char *patch)
{
    size_t capacity = strlen(target) + strlen(patch);
    uint8_t *out = malloc(capacity);
    size_t size = SIZE_MAX;

    assert_non_null(out);
    enum wal__json_status status =
        wal__json_merge(span_of(target), span_of(patch), out, capacity, &size);
    if (status != WAL__JSON_OK) {
        fail_msg("%s + %s: %s", target, patch, wal__json_status_text(status));
    }
    assert_in_range(size, 1, capacity);
    char *text = test_memory(size + 1);
    memcpy(text, out, size);
    text[size] = '\0';
    free(out);
    return text;
}

static void assert_merged(const char *target, const char *patch, const char *expected)
{
    char *text = merged(target, patch);

    assert_string_equal(text, expected);
}

TEST(json_merge__examples_of_the_rfc)
{
    static const char *const examples[][3] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };

    for (size_t i = 0; i < COUNT(examples); i++) {
        assert_merged(examples[i][0], examples[i][1], examples[i][2]);
    }
}

/* The document of RFC 7386 section 3. */
TEST(json_merge__document_of_the_rfc)
{
    assert_merged("{\n\"title\": \"Goodbye!\",\n\"author\" : {\n"
                  "\"givenName\" : \"John\",\n\"familyName\" : \"Doe\"\n},\n"
                  "\"tags\":[ \"example\", \"sample\" ],\n"
                  "\"content\": \"This will be unchanged\"\n}",
                  "{\n\"title\": \"Hello!\",\n"
                  "\"phoneNumber\": \"+01-123-456-7890\",\n"
                  "\"author\": {\n\"familyName\": null\n},\n"
                  "\"tags\": [ \"example\" ]\n}\n",
                  "{\"title\":\"Hello!\",\"author\":{\"givenName\":\"John\"},"
                  "\"tags\":[ \"example\" ],"
                  "\"content\":\"This will be unchanged\","
                  "\"phoneNumber\":\"+01-123-456-7890\"}");
}

TEST(json_merge__untouched_values_keep_their_bytes)
{
    assert_merged(" { \"n\" : 1.50e+07 , \"s\" : \"\\u0041\\/\" , \"o\" : "
                  "{ \"x\" : 9007199254740993 } , \"k\\u0065y\" : [ 1 ] } ",
                  " { \"new\" : -0.0 } ",
                  "{\"n\":1.50e+07,\"s\":\"\\u0041\\/\",\"o\":{ \"x\" : "
                  "9007199254740993 },\"k\\u0065y\":[ 1 ],\"new\":-0.0}");
    assert_merged("{\"a\":{ \"b\" : 1 }}", "{\"a\":{}}", "{\"a\":{\"b\":1}}");
    assert_merged("{\"a\":1}", "{}", "{\"a\":1}");
}

TEST(json_merge__absent_target)
{
    assert_merged("", "{\"a\":{\"b\":null,\"c\":[null]}}", "{\"a\":{\"c\":[null]}}");
    assert_merged("", " 7 ", "7");
}

TEST(json_merge__last_of_equal_members_counts)
{
    /* In the patch. */
    assert_merged("{\"a\":1}", "{\"a\":2,\"a\":null}", "{}");
    assert_merged("{\"a\":1}", "{\"a\":null,\"a\":2}", "{\"a\":2}");
    assert_merged("{}", "{\"a\":1,\"b\":{\"x\":1,\"x\":null},\"a\":3}", "{\"b\":{},\"a\":3}");
    /* In the target. */
    assert_merged("{\"a\":{\"x\":1},\"a\":{\"y\":2}}", "{\"a\":{\"z\":3}}",
                  "{\"a\":{\"y\":2,\"z\":3}}");
    assert_merged("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":null}", "{\"b\":2}");
    assert_merged("{\"a\":1,\"b\":2,\"a\":3}", "{\"b\":null}", "{\"a\":1,\"a\":3}");
}

TEST(json_merge__names_are_compared_unescaped)
{
    assert_merged("{\"a\\u00e9\":1}", "{\"\\u0061\xc3\xa9\":2}", "{\"a\\u00e9\":2}");
    assert_merged("{\"\\ud83d\\ude00\":1}", "{\"\xf0\x9f\x98\x80\":null}", "{}");
    assert_merged("{\"a\\n\":1,\"a\":2}", "{\"a\":null}", "{\"a\\n\":1}");
    assert_merged("{\"a\":2}", "{\"a\\u0000\":1}", "{\"a\":2,\"a\\u0000\":1}");
    assert_merged("{\"\":1}", "{\"\":2}", "{\"\":2}");
}

static char *nested(size_t depth, const char *inner)
{
    char *text = test_memory(depth * 6 + strlen(inner) + 1);

    text[0] = '\0';
    for (size_t i = 0; i < depth; i++) {
        strcat(text, "{\"a\":");
    }
    strcat(text, inner);
    for (size_t i = 0; i < depth; i++) {
        strcat(text, "}");
    }
    return text;
}

TEST(json_merge__deepest_is_merged_and_deeper_refused)
{
    char *target = nested(WAL__JSON_DEPTH_MAX, "1");
    char *patch = nested(WAL__JSON_DEPTH_MAX, "2");
    char *deeper = nested(WAL__JSON_DEPTH_MAX + 1, "2");
    uint8_t *out = test_memory(16384);
    size_t size = 77;

    assert_merged(target, patch, patch);
    assert_merged("", patch, patch);
    assert_merged(patch, target, target);
    assert_int_equal(wal__json_merge(span_of(target), span_of(deeper), out, 16384, &size),
                     WAL__JSON_DEPTH);
    assert_int_equal(size, 77);
}

TEST(json_merge__invalid_json_is_refused)
{
    static const struct {
        const char *target;
        const char *patch;
        enum wal__json_status status;
    } cases[] = {
        {"{}", "", WAL__JSON_TRUNCATED},    {"{}", "{", WAL__JSON_TRUNCATED},
        {"{", "{}", WAL__JSON_TRUNCATED},   {"{}{}", "{}", WAL__JSON_TRAILING},
        {"{}", "{} x", WAL__JSON_TRAILING}, {"{}", "]", WAL__JSON_SYNTAX},
        {" ", "{}", WAL__JSON_TRUNCATED},   {"{}", "}", WAL__JSON_SYNTAX},
    };
    uint8_t out[16] = "zzz";
    size_t size = 77;

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(wal__json_merge(span_of(cases[i].target), span_of(cases[i].patch), out,
                                         sizeof(out), &size),
                         cases[i].status);
    }
    assert_int_equal(wal__json_merge(span_of("{}"), span_of("{}"), out, 3, &size),
                     WAL__JSON_NO_SPACE);
    assert_int_equal(size, 77);
    assert_memory_equal(out, "zzz", 4);
}

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*seed >> 33) % below;
}

/* A value of few names, so that they meet. */
static json_t *random_value(uint64_t *seed, int depth)
{
    static const char *const names[] = {"a", "b", "\xc3\xa9", "\n"};
    uint32_t kind = draw(seed, 8);

    if (depth == 0 || kind < 2) {
        return json_integer(draw(seed, 100));
    }
    if (kind == 2) {
        return json_null();
    }
    if (kind == 3) {
        return json_pack("[n{sn}]", "a");
    }
    json_t *object = json_object();
    for (uint32_t n = draw(seed, 4); n > 0; n--) {
        json_object_set_new(object, names[draw(seed, COUNT(names))], random_value(seed, depth - 1));
    }
    return object;
}

/* RFC 7386 section 2, to the letter; both references are borrowed. */
static json_t *oracle(json_t *target, json_t *patch)
{
    const char *name;
    json_t *value;

    if (!json_is_object(patch)) {
        return json_incref(patch);
    }
    json_t *result = json_is_object(target) ? json_copy(target) : json_object();
    json_object_foreach(patch, name, value)
    {
        if (json_is_null(value)) {
            json_object_del(result, name);
        } else {
            json_object_set_new(result, name, oracle(json_object_get(result, name), value));
        }
    }
    return result;
}

TEST(json_merge__agrees_with_the_algorithm_of_the_rfc)
{
    uint64_t seed = 7386;

    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 20000; i++) {
        json_t *target = random_value(&seed, 4);
        json_t *patch = random_value(&seed, 4);
        json_t *expected = oracle(target, patch);
        size_t flags = JSON_ENCODE_ANY;
        char *target_text = json_dumps(target, flags);
        char *patch_text = json_dumps(patch, flags | JSON_ENSURE_ASCII);
        char *text = merged(target_text, patch_text);
        json_t *result = json_loads(text, JSON_DECODE_ANY, NULL);
        if (!json_equal(result, expected)) {
            fail_msg("%s + %s: %s", target_text, patch_text, text);
        }
        json_decref(result);
        json_decref(expected);
        json_decref(patch);
        json_decref(target);
        free(patch_text);
        free(target_text);
    }
}
