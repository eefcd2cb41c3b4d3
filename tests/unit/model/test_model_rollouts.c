/*
 * Tests of the rollouts dialect's way into the model and out of it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_value.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

#define HEADER                                                               \
    "{\"type\": \"session\", \"id\": \"s-1\", \"timestamp\": "               \
    "\"2026-01-02T03:04:05.678901\", \"cwd\": \"/home/u/a p\", \"provider\"" \
    ": \"anthropic\", \"model\": \"m\"}\n"

static const char everything[] = HEADER
    "{\"type\": \"message\", \"timestamp\": \"2026-01-02T03:04:06.000Z\", "
    "\"message\": {\"role\": \"system\", \"content\": \"rules\"}}\n"
    "{\"type\": \"message\", \"timestamp\": \"2026-01-02T03:04:07.000Z\", "
    "\"message\": {\"role\": \"user\", \"content\": [{\"type\": "
    "\"text\", \"text\": \"a \\u00e9\"}, {\"type\": \"image\", "
    "\"image_url\": \"data:image/png;base64,QUJD\"}]}}\n"
    "{\"type\": \"message\", \"timestamp\": \"2026-01-02T03:04:08.000Z\", "
    "\"message\": {\"role\": \"assistant\", \"content\": [{\"type\": "
    "\"thinking\", \"thinking\": \"hm\", \"thinking_signature\": "
    "\"sig\"}, {\"type\": \"text\", \"text\": \"ok\"}, {\"type\": "
    "\"toolCall\", \"id\": \"call_1\", \"name\": \"read\", "
    "\"arguments\": {\"n\": 1.50}}]}}\n"
    "{\"type\": \"message\", \"timestamp\": \"2026-01-02T03:04:09.000Z\", "
    "\"message\": {\"role\": \"tool\", \"content\": \"r\", "
    "\"tool_call_id\": \"call_1\"}}\n"
    "{\"type\": \"config_change\", \"timestamp\": "
    "\"2026-01-02T03:04:10.000Z\", \"endpoint\": {\"provider\": \"openai\", "
    "\"model\": \"gpt-x\"}, \"environment_type\": \"coding\"}\n"
    "{\"type\": \"message\", \"timestamp\": \"2026-01-02T03:04:11.000Z\", "
    "\"message\": {\"role\": \"assistant\", \"content\": null}}\n";

static void assert_is(struct wal__json_span span, const char *text)
{
    assert_true(wal__json_string_is(span, text));
}

TEST(model_rollouts__every_line_is_an_item)
{
    struct model_kit kit;

    model_kit_read_text(&kit, "rollouts", everything);
    assert_int_equal(kit.count, 7);
    assert_is(kit.session.id, "s-1");
    assert_is(kit.session.cwd, "/home/u/a p");
    assert_is(kit.session.provider, "anthropic");
    assert_is(kit.session.model, "m");
    assert_int_equal(kit.items[1].role, WAL__ROLE_SYSTEM);
    assert_int_equal(kit.items[2].block_count, 2);
    assert_int_equal(kit.items[2].blocks[1].data.size, 4);
    assert_int_equal(kit.items[3].block_count, 3);
    assert_is(kit.items[3].blocks[0].signature, "sig");
    assert_is(kit.items[3].blocks[2].name, "read");
    assert_int_equal(kit.items[4].role, WAL__ROLE_TOOL);
    assert_is(kit.items[4].call, "call_1");
    assert_int_equal(kit.items[5].kind, WAL__ITEM_MODEL_CHANGE);
    assert_is(kit.items[5].model, "gpt-x");
    assert_int_equal(kit.items[6].block_count, 0);
    model_kit_free(&kit);
}

TEST(model_rollouts__unchanged_lines_are_written_verbatim)
{
    struct model_kit_files files = {.items = NULL};
    uint64_t losses[WAL__FEATURE_COUNT] = {0};
    struct model_kit kit;

    model_kit_read_text(&kit, "rollouts", everything);
    assert_true(model_kit_write(&kit, "rollouts", &files, losses));
    assert_int_equal(files.count, 1);
    assert_string_equal(
        files.items[0].path,
        "sessions/--home-u-a p--/2026-01-02T03-04-05_s-1.jsonl");
    assert_string_equal(files.items[0].data, everything);
    for (size_t i = 0; i < WAL__FEATURE_COUNT; i++) {
        assert_int_equal(losses[i], 0);
    }
    model_kit_files_free(&files);
    model_kit_free(&kit);
}

TEST(model_rollouts__regenerated_session_is_equivalent)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit again;
    struct model_kit kit;
    uint64_t carries = wal__dialect_find("rollouts")->write_ops->carries;
    char *before;
    char *after;

    model_kit_read_text(&kit, "rollouts", everything);
    for (size_t i = 0; i < kit.count; i++) {
        kit.items[i].raw.size = 0;
    }
    kit.session.raw.size = 0;
    assert_true(model_kit_write(&kit, "rollouts", &files, NULL));
    model_kit_read(&again, "rollouts", &files);
    before = model_kit_canon(&kit, carries, NULL);
    after = model_kit_canon(&again, carries, NULL);
    assert_string_equal(before, after);
    assert_is(again.session.provider, "anthropic");
    assert_is(again.session.model, "m");
    free(before);
    free(after);
    model_kit_free(&again);
    model_kit_files_free(&files);
    model_kit_free(&kit);
}

/* Its reader refuses the whole file for one block that it does not know. */
TEST(model_rollouts__unknown_blocks_are_not_written)
{
    static const char text[] = HEADER
        "{\"type\": \"message\", \"timestamp\": \"2026-01-02T03:04:06.000Z\", "
        "\"message\": {\"role\": \"user\", \"content\": [{\"type\": \"text\", "
        "\"text\": \"a\"}, {\"type\": \"video\", \"url\": \"b\"}, "
        "{\"type\": \"text\", \"text\": \"c\"}]}}\n";
    struct model_kit_files files = {.items = NULL};
    uint64_t losses[WAL__FEATURE_COUNT] = {0};
    struct model_kit kit;

    model_kit_read_text(&kit, "rollouts", text);
    assert_int_equal(kit.items[1].block_count, 3);
    assert_true(model_kit_write(&kit, "rollouts", &files, losses));
    assert_null(strstr(files.items[0].data, "video"));
    assert_non_null(strstr(files.items[0].data,
                           "[{\"type\":\"text\",\"text\":\"a\"},"
                           "{\"type\":\"text\",\"text\":\"c\"}]"));
    assert_int_equal(losses[WAL__FEATURE_BLOCKS], 1);
    model_kit_files_free(&files);
    model_kit_free(&kit);
}

/* What pi has entries for is a plain message here, or is lost and counted. */
TEST(model_rollouts__a_summary_is_a_users_message)
{
    static const char text[] =
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":"
        "\"2026-01-02T03:04:05.678Z\"}\n"
        "{\"type\":\"compaction\",\"id\":\"00000001\",\"parentId\":null,"
        "\"timestamp\":\"2026-01-02T03:04:06.000Z\",\"summary\":\"sum\","
        "\"firstKeptEntryId\":\"00000001\",\"tokensBefore\":99}\n"
        "{\"type\":\"label\",\"id\":\"00000002\",\"parentId\":\"00000001\","
        "\"timestamp\":\"2026-01-02T03:04:07.000Z\",\"targetId\":"
        "\"00000001\",\"label\":\"here\"}\n";
    static const char wanted[] =
        "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":"
        "\"2026-01-02T03:04:05.678Z\",\"cwd\":\"/\",\"provider\":\"unknown\","
        "\"model\":\"unknown\"}\n"
        "{\"type\":\"message\",\"timestamp\":\"2026-01-02T03:04:06.000Z\","
        "\"message\":{\"role\":\"user\",\"content\":\"sum\"}}\n";
    struct model_kit_files files = {.items = NULL};
    uint64_t losses[WAL__FEATURE_COUNT] = {0};
    struct model_kit kit;

    model_kit_read_text(&kit, "pi", text);
    assert_true(model_kit_write(&kit, "rollouts", &files, losses));
    assert_string_equal(files.items[0].data, wanted);
    assert_int_equal(losses[WAL__FEATURE_COMPACTIONS], 1);
    assert_int_equal(losses[WAL__FEATURE_LABELS], 1);
    model_kit_files_free(&files);
    model_kit_free(&kit);
}

TEST(model_rollouts__failed_output_is_an_error)
{
    struct model_kit_files files = {.fails = true};
    struct model_kit kit;

    model_kit_read_text(&kit, "rollouts", everything);
    assert_false(model_kit_write(&kit, "rollouts", &files, NULL));
    model_kit_files_free(&files);
    model_kit_free(&kit);
}
