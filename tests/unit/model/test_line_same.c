/* Tests of what lines of a copy may have otherwise. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "convert/copy/line_match.h"
#include "tests/lib/test.h"

#define UUID_A "11111111-2222-4333-8444-555555555555"
#define UUID_B "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
#define TIME_A "2026-01-01T00:00:00.000Z"
#define TIME_B "2026-02-03T04:05:06.789Z"

static bool is_same(const char *copy, const char *original)
{
    return wal__line_matches((const uint8_t *)copy, strlen(copy),
                             (const uint8_t *)original, strlen(original));
}

TEST(line_same__ids_and_times_may_differ)
{
    assert_true(is_same("{\"uuid\":\"b\",\"sessionId\":\"t\",\"m\":1}",
                        "{\"uuid\":\"a\",\"sessionId\":\"s\",\"m\":1}"));
    assert_true(is_same("{\"timestamp\":\"" TIME_B "\",\"payload\":{\"x\":1}}",
                        "{\"timestamp\":\"" TIME_A
                        "\",\"payload\":{\"x\":1}}"));
    assert_true(is_same("{\"snapshot\":{\"messageId\":\"" UUID_B
                        "\",\"at\":\"" TIME_B "\",\"x\":[1]}}",
                        "{\"snapshot\":{\"messageId\":\"" UUID_A
                        "\",\"at\":\"" TIME_A "\",\"x\":[1]}}"));
    assert_true(
        is_same("{\"ref\":\"" UUID_B "\"}", "{\"ref\":\"" UUID_A "\"}"));
}

TEST(line_same__members_may_be_new)
{
    assert_true(
        is_same("{\"m\":1,\"forkedFrom\":{\"a\":[1,{}]}}", "{\"m\":1}"));
    assert_true(is_same("{ \"ordinal\" : 3 , \"m\":1 }", "{\"m\":1}"));
    assert_true(is_same("{\"m\":1}", "{\"m\":1,\"parentUuid\":null}"));
    assert_true(is_same("{\"b\":2,\"a\":1}", "{\"a\":1,\"b\":2}"));
}

TEST(line_same__different_text_is_different)
{
    static const char *const pairs[][2] = {
        {"{\"content\":\"yes\"}", "{\"content\":\"no\"}"},
        {"{\"message\":{\"text\":\"a\"}}", "{\"message\":{\"text\":\"b\"}}"},
        {"{\"message\":{\"text\":\"a\"}}", "{\"message\":{\"text\":\"ab\"}}"},
        {"{\"message\":1}", "{\"message\":12}"},
        {"{\"t\":1}", "{\"t\":1,\"message\":1}"},
        {"{\"text\":\"see " UUID_A "\"}", "{\"text\":\"see " UUID_B "\"}"},
        {"{\"a\":\"" UUID_A "\"}", "{\"a\":\"" TIME_A "\"}"},
        {"[1]", "[2]"},
        {"{\"a\":1", "{\"a\":1}"},
        {"{\"a\":1}", "{\"a\":1,"},
        {"{\"a\":1}}", "{\"a\":1}"},
        {"{\"a\":\"\\\"}", "{\"a\":\"\"}"},
        {"", "{}"},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (is_same(pairs[i][0], pairs[i][1]) ||
            is_same(pairs[i][1], pairs[i][0]) !=
                (strcmp(pairs[i][0], "{\"t\":1}") == 0)) {
            fail_msg("%s and %s", pairs[i][0], pairs[i][1]);
        }
    }
}

TEST(line_same__every_line_equals_itself)
{
    assert_true(is_same("", ""));
    assert_true(is_same("not JSON", "not JSON"));
    assert_false(is_same("not JSON", "not jSON"));
    assert_true(is_same("{\"a\":\"\\\\\"}", "{\"a\":\"\\\\\"}"));
}

TEST(line_same__too_many_members_are_different)
{
    char a[4096] = "{\"uuid\":\"a\"";
    char b[4096] = "{\"uuid\":\"b\"";

    for (int i = 0; i < 64; i++) {
        char member[32];

        if (i == 63) {
            assert_false(is_same(a, b)); /* they do not end */
        }
        snprintf(member, sizeof(member), ",\"m%d\":%d", i, i);
        strcat(a, member);
        strcat(b, member);
    }
    strcat(a, "}");
    strcat(b, "}");
    assert_false(is_same(a, b));
    assert_true(is_same(a, a));
}
