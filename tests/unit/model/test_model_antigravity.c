/*
 * test_model_antigravity.c - how the dialect antigravity is read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_text.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

#define STEP(source, type, more)                  \
    "{\"source\":\"" source "\",\"type\":\"" type \
    "\",\"created_at\":\"2026-01-02T03:04:05Z\"," more "}"
#define MODEL(type, more) STEP("MODEL", type, more) "\n"
#define PERSON(content)   STEP("USER_EXPLICIT", "USER_INPUT", "\"content\":\"" content "\"")
#define META(text)        "<ADDITIONAL_METADATA>" text "</ADDITIONAL_METADATA>"

static bool is_recognised(const char *line)
{
    return wal__line_recognise(&wal__dialect_antigravity, line, strlen(line), false);
}

/* The directory of a step, as its line has it, in an allocation of the line's size. */
static void assert_directory(const char *line, const char *expected)
{
    struct wal__line_info info;
    char *exact = malloc(strlen(line));

    assert_non_null(exact);
    memcpy(exact, line, strlen(line));
    assert_int_equal(wal__line_read(&wal__dialect_antigravity, exact, strlen(line), &info, NULL),
                     WAL__JSON_OK);
    assert_int_equal(info.has_inner_cwd, expected != NULL);
    assert_int_equal(info.cwd.size, expected != NULL ? strlen(expected) : 0);
    if (expected != NULL) {
        assert_memory_equal(info.cwd.data, expected, info.cwd.size);
    }
    free(exact);
}

TEST(model_antigravity__step_is_recognised_by_its_source)
{
    assert_true(is_recognised(PERSON("x")));
    assert_true(is_recognised(STEP("MODEL", "X", "\"tool_calls\":[]")));
    assert_true(is_recognised("{\"source\":\"planner\",\"created_at\":\"t\",\"content\":\"\"}"));
    assert_false(is_recognised(STEP("OTHER", "X", "\"content\":\"x\"")));
    assert_false(is_recognised(STEP("MODEL", "X", "\"content\":7")));
    assert_false(is_recognised("{\"source\":\"MODEL\",\"content\":\"x\"}"));
    assert_false(is_recognised("{\"source\":7,\"created_at\":\"t\",\"content\":\"x\"}"));
    assert_false(is_recognised("[]"));
    assert_false(is_recognised("{\"source\":\"MODEL\""));
}

TEST(model_antigravity__directory_is_in_the_metadata)
{
    assert_directory(PERSON("a" META("{\\\"cwd\\\":\\\"/srv/app\\\"}")), "/srv/app");
    assert_directory(PERSON("a" META("{\\\"x\\\":1,\\\"cwd\\\": \\\"/a \\\\\\\"b\\\\\\\\\\\"}")),
                     "/a \\\\\\\"b\\\\\\\\");
    assert_directory(PERSON("{\\\"cwd\\\":\\\"/srv\\\"}"), NULL);
    assert_directory(PERSON(META("{\\\"cwd\\\":7}")), NULL);
    assert_directory(PERSON("<ADDITIONAL_METADATA>{\\\"cwd\\\":\\\"/srv"), NULL);
    assert_directory(PERSON("<ADDITIONAL_METADATA>{\\\"cwd\\\":\\\"/srv\\\\\\\\"), NULL);
    assert_directory(PERSON("<ADDITIONAL_METADATA>{\\\"cwd\\\":"), NULL);
    assert_directory(PERSON("<ADDITIONAL_METADATA>{\\\"cwd\\\":\\\""), NULL);
}

TEST(model_antigravity__steps_of_tools_are_results_in_the_order_of_the_calls)
{
    static const char text[] =
        PERSON("<USER_REQUEST>\\n go \\n</USER_REQUEST>" META("{}")) /* clang-format off */
        "\n" STEP("SYSTEM", "CHECKPOINT", "\"content\":\"c\"") "\n"
        MODEL("PLANNER_RESPONSE",
              "\"content\":\"I look.\",\"thinking\":\"hm\",\"tool_calls\":["
              "{\"name\":\"a\",\"args\":{\"x\":1}},{\"name\":\"b\"},7]")
        MODEL("RUN_COMMAND", "\"content\":\"one\"")
        MODEL("VIEW_FILE", "\"content\":\"two\",\"status\":\"ERROR\"")
        MODEL("VIEW_FILE", "\"content\":\"\"")
        MODEL("CODE_ACTION", "\"content\":\"four\"")
        MODEL("PLANNER_RESPONSE", "\"content\":\"\"")
        "{\"source\":\"LATER\"}\n"; /* clang-format on */
    struct model_kit kit;
    const struct wal__model_item *items;

    model_kit_read_text(&kit, "antigravity", text);
    items = kit.items;
    assert_int_equal(kit.count, 9);
    assert_is(items[0].blocks[0].text, "go");
    assert_false(items[0].is_meta);
    assert_true(items[1].is_meta);
    assert_int_equal(items[2].block_count, 5);
    assert_is(items[2].blocks[0].text, "hm");
    assert_is(items[2].blocks[3].name, "b");
    assert_true(wal__json_characters_equal(items[3].call, items[2].blocks[2].id));
    assert_true(wal__json_characters_equal(items[4].call, items[2].blocks[3].id));
    assert_true(items[4].is_error && !items[3].is_error);
    assert_is(items[4].name, "b");
    assert_int_equal(items[5].block_count, 0);
    assert_int_equal(items[6].call.size, 0);
    assert_is(items[6].name, "CODE_ACTION");
    assert_int_equal(items[6].role, WAL__ROLE_TOOL);
    assert_int_equal(items[7].kind, WAL__ITEM_LINE);
    assert_int_equal(items[8].kind, WAL__ITEM_LINE);
}

TEST(model_antigravity__more_calls_than_are_kept)
{
    char *text = test_memory(100000);
    struct model_kit kit;

    assert_non_null(text);
    strcat(text, "{\"source\":\"MODEL\",\"type\":\"PLANNER_RESPONSE\",\"tool_calls\":[0");
    for (size_t i = 0; i < 200; i++) {
        strcat(text, ",{\"name\":\"n\"}");
    }
    strcat(text, "]}\n");
    for (size_t i = 0; i < 100; i++) {
        strcat(text, MODEL("X", "\"content\":\"r\""));
    }
    model_kit_read_text(&kit, "antigravity", text);
    assert_int_equal(kit.count, 101);
    assert_true(kit.items[60].call.size > 0);
    assert_int_equal(kit.items[100].call.size, 0);
}
