/*
 * Tests of convert/model/vocabulary: tables of words and fields, in both
 * directions.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "convert/model/vocabulary.h"
#include "tests/lib/test.h"

struct thing {
    struct wal__json_span type;
    struct wal__json_span text;
    struct wal__json_span number;
    struct wal__json_span container;
    struct wal__json_span non_null;
    struct wal__json_span raw;
    struct wal__json_token token;
    bool flag;
};

#define AT(field) offsetof(struct thing, field)

static const struct wal__field fields[] = {
    {"type", .at = AT(type)},
    {"number", .at = AT(number), .kind = WAL__FIELD_NUMBER, .missing = "0"},
    {"container", .at = AT(container), .kind = WAL__FIELD_CONTAINER},
    {"nonNull", .at = AT(non_null), .kind = WAL__FIELD_NON_NULL},
    {"raw", .at = AT(raw), .kind = WAL__FIELD_RAW},
    {"token", .at = AT(token), .kind = WAL__FIELD_TOKEN},
    {"flag", .at = AT(flag), .kind = WAL__FIELD_TRUE},
    {"known", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

static const struct wal__word words[] = {
    {"note", 1, {{"text", .at = AT(text)}, {"body", .at = AT(text)}}},
    {"memo", 1, {{"body", .at = AT(text), .parent = "inner"}}},
    {"note", 2, {{.key = NULL}}},
    {.name = NULL},
};

static struct wal__json_span span(const char *text)
{
    return (struct wal__json_span){(const uint8_t *)text, strlen(text)};
}

static void assert_text(struct wal__json_span value, const char *text)
{
    assert_int_equal(value.size, strlen(text));
    assert_true(value.size == 0 || memcmp(value.data, text, value.size) == 0);
}

static const struct wal__word *
read_sample(const char *json, struct thing *thing, uint32_t *unknown_count)
{
    const struct wal__word *word = NULL;

    *thing = (struct thing){.flag = false};
    *unknown_count = 0;
    assert_int_equal(wal__word_read(span(json), fields, words, &thing->type,
                                    thing, unknown_count, &word),
                     WAL__JSON_OK);
    return word;
}

TEST(vocabulary__a_field_has_the_kind_of_its_value)
{
    struct thing thing;
    uint32_t unknown;

    assert_null(
        read_sample("{\"number\":1.5,\"container\":[1],\"nonNull\":true,"
                    "\"raw\":null,\"token\":\"t\",\"flag\":true}",
                    &thing, &unknown));
    assert_text(thing.number, "1.5");
    assert_text(thing.container, "[1]");
    assert_text(thing.non_null, "true");
    assert_text(thing.raw, "null");
    assert_int_equal(thing.token.kind, WAL__JSON_STRING);
    assert_text(thing.token.span, "\"t\"");
    assert_true(thing.flag);
    assert_int_equal(unknown, 0);
}

TEST(vocabulary__a_value_of_another_kind_is_absent)
{
    struct thing thing;
    uint32_t unknown;

    assert_null(read_sample("{\"type\":1,\"number\":\"1\",\"container\":2,"
                            "\"nonNull\":null,\"flag\":1}",
                            &thing, &unknown));
    assert_text(thing.type, "");
    assert_text(thing.number, "");
    assert_text(thing.container, "");
    assert_text(thing.non_null, "");
    assert_text(thing.raw, "");
    assert_int_equal(thing.token.kind, WAL__JSON_NONE);
    assert_false(thing.flag);
    assert_null(read_sample("[\"note\"]", &thing, &unknown));
    assert_text(thing.type, "");
}

TEST(vocabulary__only_the_fields_of_the_word_are_read)
{
    struct thing thing;
    uint32_t unknown;

    assert_ptr_equal(
        read_sample("{\"text\":\"t\",\"type\":\"note\"}", &thing, &unknown),
        &words[0]);
    assert_text(thing.text, "\"t\"");
    assert_ptr_equal(read_sample("{\"text\":\"t\",\"type\":\"memo\","
                                 "\"inner\":{\"body\":\"b\"}}",
                                 &thing, &unknown),
                     &words[1]);
    assert_text(thing.text, "\"b\"");
    assert_null(
        read_sample("{\"text\":\"t\",\"type\":\"x\"}", &thing, &unknown));
    assert_text(thing.text, "");
}

TEST(vocabulary__the_first_alternative_with_a_value)
{
    struct thing thing;
    uint32_t unknown;

    (void)read_sample("{\"type\":\"note\",\"body\":\"b\",\"text\":\"t\"}",
                      &thing, &unknown);
    assert_text(thing.text, "\"t\"");
    (void)read_sample("{\"type\":\"note\",\"body\":\"b\",\"text\":1}", &thing,
                      &unknown);
    assert_text(thing.text, "\"b\"");
    assert_int_equal(wal__fields_read(span("{\"text\":\"new\",\"flag\":false}"),
                                      words[0].fields, &thing, NULL),
                     WAL__JSON_OK);
    assert_text(thing.text, "\"b\"");
}

TEST(vocabulary__members_in_no_table_are_counted)
{
    struct thing thing;
    uint32_t unknown;

    (void)read_sample("{\"known\":1,\"text\":1,\"body\":1,\"inner\":1}", &thing,
                      &unknown);
    assert_int_equal(unknown, 0);
    (void)read_sample("{\"a\":1,\"b\":{\"c\":1},\"type\":\"note\"}", &thing,
                      &unknown);
    assert_int_equal(unknown, 2);
}

TEST(vocabulary__text_that_is_not_json_is_an_error)
{
    struct thing thing = {.flag = false};

    assert_int_equal(
        wal__fields_read(span("{\"number\":1,}"), fields, &thing, NULL),
        WAL__JSON_SYNTAX);
    assert_text(thing.number, "");
}

TEST(vocabulary__words_by_name_and_by_value)
{
    assert_ptr_equal(wal__word_find(words, span("\"no\\u0074e\"")), &words[0]);
    assert_null(wal__word_find(words, span("\"\"")));
    assert_null(wal__word_find(words, span("")));
    assert_ptr_equal(wal__word_of(words, 1), &words[0]);
    assert_ptr_equal(wal__word_of(words, 2), &words[2]);
    assert_null(wal__word_of(words, 3));
}

TEST(vocabulary__stop_reasons)
{
    static const struct wal__word stops[] = {{"stop", .value = WAL__STOP_END},
                                             {.name = NULL}};

    assert_int_equal(wal__word_stop(stops, span("\"stop\"")), WAL__STOP_END);
    assert_int_equal(wal__word_stop(stops, span("\"x\"")), WAL__STOP_OTHER);
    assert_int_equal(wal__word_stop(stops, span("")), WAL__STOP_NONE);
}

static bool put(void *ctx, const void *data, size_t size)
{
    strncat(ctx, data, size);
    return true;
}

TEST(vocabulary__fields_are_written_in_order)
{
    char text[200] = "";
    struct wal__json_out out = {.put = put, .ctx = text};
    struct thing thing = {.type = span("\"note\""), .raw = span("[1]")};

    thing.text = span("\"t\"");
    wal__json_out_open(&out, '{');
    wal__fields_write(&out, fields, &thing);
    wal__fields_write(&out, words[0].fields, &thing);
    wal__fields_write(&out, words[1].fields, &thing);
    wal__json_out_close(&out, '}');
    assert_string_equal(
        text, "{\"type\":\"note\",\"number\":0,\"raw\":[1],\"text\":\"t\"}");
}
