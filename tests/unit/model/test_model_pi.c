/*
 * Tests of the pi dialect's way into the model and out of it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "convert/model/model_member.h"
#include "format/json/json_value.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

#define HEADER                                                          \
    "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"timestamp\":" \
    "\"2026-01-02T03:04:05.678Z\",\"cwd\":\"/home/u/p\"}\n"

static const char everything[] = HEADER
    "{\"type\":\"model_change\",\"id\":\"00000001\",\"parentId\":null,"
    "\"timestamp\":\"2026-01-02T03:04:05.679Z\",\"provider\":\"anthropic\","
    "\"modelId\":\"m\"}\n"
    "{\"type\":\"thinking_level_change\",\"id\":\"00000002\",\"parentId\":"
    "\"00000001\",\"timestamp\":\"2026-01-02T03:04:06.000Z\","
    "\"thinkingLevel\":\"high\"}\n"
    "{\"type\":\"message\",\"id\":\"00000003\",\"parentId\":\"00000002\","
    "\"timestamp\":\"2026-01-02T03:04:07.000Z\",\"message\":{\"role\":"
    "\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a \\u00e9 \\\" b\"},"
    "{\"type\":\"image\",\"data\":\"QUJD\",\"mimeType\":\"image/png\"}],"
    "\"timestamp\":1767323047000}}\n"
    "{\"type\":\"message\",\"id\":\"00000004\",\"parentId\":\"00000003\","
    "\"timestamp\":\"2026-01-02T03:04:08.000Z\",\"message\":{\"role\":"
    "\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\","
    "\"thinkingSignature\":\"sig\"},{\"type\":\"text\",\"text\":\"ok\"},"
    "{\"type\":\"toolCall\",\"id\":\"call_1\",\"name\":\"read\","
    "\"arguments\":{\"path\":\"a\",\"n\":1.50}}],\"api\":"
    "\"anthropic-messages\",\"provider\":\"anthropic\",\"model\":\"m\","
    "\"usage\":{\"input\":1,\"output\":2,\"cacheRead\":3,\"cacheWrite\":4,"
    "\"totalTokens\":10,\"cost\":{\"input\":0,\"output\":0,\"cacheRead\":0,"
    "\"cacheWrite\":0,\"total\":0.25}},\"stopReason\":\"toolUse\","
    "\"timestamp\":1767323048000}}\n"
    "{\"type\":\"message\",\"id\":\"00000005\",\"parentId\":\"00000004\","
    "\"timestamp\":\"2026-01-02T03:04:09.000Z\",\"message\":{\"role\":"
    "\"toolResult\",\"toolCallId\":\"call_1\",\"toolName\":\"read\","
    "\"content\":[{\"type\":\"text\",\"text\":\"r\"}],\"isError\":true,"
    "\"timestamp\":1767323049000}}\n"
    "{\"type\":\"compaction\",\"id\":\"00000006\",\"parentId\":\"00000005\","
    "\"timestamp\":\"2026-01-02T03:04:10.000Z\",\"summary\":\"sum\","
    "\"firstKeptEntryId\":\"00000004\",\"tokensBefore\":99}\n"
    "{\"type\":\"message\",\"id\":\"00000007\",\"parentId\":\"00000003\","
    "\"timestamp\":\"2026-01-02T03:04:11.000Z\",\"message\":{\"role\":"
    "\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"other\"}],"
    "\"api\":\"a\",\"provider\":\"p\",\"model\":\"m\",\"usage\":{},"
    "\"stopReason\":\"length\",\"timestamp\":1767323051000}}\n"
    "{\"type\":\"branch_summary\",\"id\":\"00000008\",\"parentId\":"
    "\"00000006\",\"timestamp\":\"2026-01-02T03:04:12.000Z\",\"fromId\":"
    "\"00000007\",\"summary\":\"what was there\"}\n"
    "{\"type\":\"custom\",\"id\":\"00000009\",\"parentId\":\"00000008\","
    "\"timestamp\":\"2026-01-02T03:04:13.000Z\",\"customType\":\"x\","
    "\"data\":{\"k\":[1,2]}}\n"
    "{\"type\":\"custom_message\",\"id\":\"0000000a\",\"parentId\":"
    "\"00000009\",\"timestamp\":\"2026-01-02T03:04:14.000Z\",\"customType\":"
    "\"note\",\"content\":\"psst\",\"display\":true}\n"
    "{\"type\":\"label\",\"id\":\"0000000b\",\"parentId\":\"0000000a\","
    "\"timestamp\":\"2026-01-02T03:04:15.000Z\",\"targetId\":\"00000004\","
    "\"label\":\"here\"}\n"
    "{\"type\":\"session_info\",\"id\":\"0000000c\",\"parentId\":"
    "\"0000000b\",\"timestamp\":\"2026-01-02T03:04:16.000Z\",\"name\":"
    "\"A title\"}\n"
    "{\"type\":\"message\",\"id\":\"0000000d\",\"parentId\":\"0000000c\","
    "\"timestamp\":\"2026-01-02T03:04:17.000Z\",\"message\":{\"role\":"
    "\"bashExecution\",\"command\":\"ls\",\"output\":\"a\\nb\",\"exitCode\":"
    "0,\"cancelled\":false,\"truncated\":false,\"timestamp\":"
    "1767323057000}}\n"
    "{\"type\":\"future\",\"id\":\"0000000e\",\"parentId\":\"0000000d\","
    "\"timestamp\":\"2026-01-02T03:04:18.000Z\",\"q\":1}\n";

static void assert_is(struct wal__json_span span, const char *text)
{
    if (text == NULL) {
        assert_int_equal(span.size, 0);
    } else {
        assert_true(wal__json_string_is(span, text));
    }
}

TEST(model_pi__every_entry_is_an_item)
{
    struct model_kit kit;

    model_kit_read_text(&kit, "pi", everything);
    assert_int_equal(kit.count, 15);
    assert_is(kit.session.id, "s-1");
    assert_is(kit.session.cwd, "/home/u/p");
    assert_int_equal(kit.items[1].kind, WAL__ITEM_MODEL_CHANGE);
    assert_is(kit.items[2].text, "high");
    assert_int_equal(kit.items[3].block_count, 2);
    assert_int_equal(kit.items[3].blocks[1].data.size, 4);
    assert_int_equal(kit.items[4].role, WAL__ROLE_ASSISTANT);
    assert_int_equal(kit.items[4].block_count, 3);
    assert_int_equal(kit.items[4].stop, WAL__STOP_TOOL);
    assert_is(kit.items[4].blocks[0].signature, "sig");
    assert_int_equal(kit.items[5].role, WAL__ROLE_TOOL);
    assert_true(kit.items[5].is_error);
    assert_is(kit.items[5].call, "call_1");
    assert_is(kit.items[6].target, "00000004");
    model_kit_free(&kit);
}

static void assert_same(const char *one, const char *two)
{
    assert_string_equal(one, two);
}

TEST(model_pi__unchanged_lines_are_written_verbatim)
{
    struct model_kit_files files = {.items = NULL};
    uint64_t losses[WAL__FEATURE_COUNT] = {0};
    struct model_kit kit;

    model_kit_read_text(&kit, "pi", everything);
    assert_true(model_kit_write(&kit, "pi", &files, losses));
    assert_int_equal(files.count, 1);
    assert_string_equal(files.items[0].path,
                        "sessions/--home-u-p--/"
                        "2026-01-02T03-04-05-678Z_s-1.jsonl");
    assert_same(files.items[0].data, everything);
    for (size_t i = 0; i < WAL__FEATURE_COUNT; i++) {
        assert_int_equal(losses[i], 0);
    }
    model_kit_files_free(&files);
    model_kit_free(&kit);
}

/* Without the original lines, all lines are generated. */
TEST(model_pi__regenerated_session_is_equivalent)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    struct model_kit again;
    char *before;
    char *after;

    model_kit_read_text(&kit, "pi", everything);
    for (size_t i = 0; i < kit.count; i++) {
        kit.items[i].raw.size = 0;
    }
    kit.session.raw.size = 0;
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    /* A sum that is not read again. */
    assert_non_null(strstr(files.items[0].data, "\"totalTokens\":10,"));
    model_kit_read(&again, "pi", &files);
    before = model_kit_canon(&kit, UINT64_MAX, NULL);
    after = model_kit_canon(&again, UINT64_MAX, NULL);
    assert_same(before, after);
    free(before);
    free(after);
    model_kit_free(&again);
    model_kit_files_free(&files);
    model_kit_free(&kit);
}

/* A fork of pi writes "model":"PROVIDER/MODEL"; no provider is invented. */
TEST(model_pi__model_change_without_provider_stays_without)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    struct model_kit again;

    model_kit_read_text(
        &kit, "pi",
        HEADER "{\"type\":\"model_change\",\"id\":\"00000001\",\"parentId\":"
               "null,\"timestamp\":\"2026-01-02T03:04:05.679Z\",\"model\":"
               "\"p/m\"}\n");
    kit.items[1].raw.size = 0;
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    model_kit_read(&again, "pi", &files);
    for (size_t i = 0; i < 2; i++) {
        const struct wal__model_item *item =
            i == 0 ? &kit.items[1] : &again.items[1];
        assert_int_equal(item->kind, WAL__ITEM_MODEL_CHANGE);
        assert_int_equal(item->provider.size, 0);
        assert_is(item->model, "p/m");
    }
    model_kit_free(&again);
    model_kit_files_free(&files);
    model_kit_free(&kit);
}

TEST(model_pi__version_1_gets_ids_and_kept_entry)
{
    static const char text[] =
        "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":"
        "\"2026-01-02T03:04:05Z\",\"cwd\":\"/p\",\"provider\":\"anthropic\","
        "\"modelId\":\"m\",\"thinkingLevel\":\"off\"}\n"
        "{\"type\":\"message\",\"timestamp\":\"2026-01-02T03:04:06Z\","
        "\"message\":{\"role\":\"user\",\"content\":\"one\"}}\n"
        "{\"type\":\"message\",\"timestamp\":\"2026-01-02T03:04:07Z\","
        "\"message\":{\"role\":\"user\",\"content\":\"two\"}}\n"
        "{\"type\":\"compaction\",\"timestamp\":\"2026-01-02T03:04:08Z\","
        "\"summary\":\"s\",\"firstKeptEntryIndex\":2,\"tokensBefore\":5}\n";
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    struct model_kit again;

    model_kit_read_text(&kit, "pi", text);
    assert_int_equal(kit.count, 4);
    assert_is(kit.session.model, "m");
    assert_is(kit.items[3].target, "line-3");
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    model_kit_read(&again, "pi", &files);
    assert_int_equal(again.count, 4);
    assert_int_equal(again.items[2].id.size, 10);
    assert_memory_equal(again.items[3].target.data, again.items[2].id.data, 10);
    assert_memory_equal(again.items[2].parent.data, again.items[1].id.data, 10);
    assert_int_equal(again.items[1].parent.size, 0);
    model_kit_free(&again);
    model_kit_files_free(&files);
    model_kit_free(&kit);
}

TEST(model_pi__head_elsewhere_ends_the_file)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    struct model_kit again;

    model_kit_read_text(&kit, "pi", everything);
    kit.head = kit.items[5].id;
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    model_kit_read(&again, "pi", &files);
    assert_int_equal(again.count, kit.count + 1);
    assert_int_equal(again.items[kit.count].kind, WAL__ITEM_HEAD);
    assert_is(again.items[kit.count].parent, "00000005");
    model_kit_free(&again);
    model_kit_files_free(&files);
    model_kit_free(&kit);
}

#define MESSAGE(id, parent, text)                                         \
    "{\"type\":\"message\",\"id\":\"0000000" id "\",\"parentId\":" parent \
    ",\"timestamp\":\"2026-01-02T03:04:06.000Z\",\"message\":{\"role\":"  \
    "\"user\",\"content\":\"" text "\"}}\n"

#define HEAD                                            \
    "{\"type\":\"session\",\"version\":3,\"id\":\"s\"," \
    "\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"cwd\":\"/p\"}\n"
#define LABEL(id, parent)                                               \
    "{\"type\":\"label\",\"id\":\"0000000" id "\",\"parentId\":" parent \
    ",\"timestamp\":\"2026-01-02T03:04:07.000Z\",\"targetId\":"         \
    "\"00000003\",\"label\":\"x\"}\n"

/* The leaf is the last line, whatever its type. */
TEST(model_pi__a_label_is_a_leaf)
{
    static const char text[] =
        HEAD MESSAGE("1", "null", "a") MESSAGE("2", "\"00000001\"", "b")
            MESSAGE("3", "\"00000001\"", "c") LABEL("4", "\"00000002\"");
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;

    model_kit_read_text(&kit, "pi", text);
    assert_is(kit.head, "00000004");
    assert_true(kit.is_live[2]);
    assert_false(kit.is_live[3]);
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    assert_string_equal(files.items[0].data, text);
    model_kit_files_free(&files);
    assert_true(model_kit_write(&kit, "rollouts", &files, NULL));
    assert_non_null(strstr(files.items[0].data, "\"b\""));
    assert_null(strstr(files.items[0].data, "\"c\""));
    model_kit_files_free(&files);
    model_kit_free(&kit);
}

#define ROW(uuid, parent, side, text)                                         \
    "{\"parentUuid\":" parent ",\"isSidechain\":" side                        \
    ",\"sessionId\":\"s\",\"cwd\":\"/p\",\"uuid\":\"" uuid                    \
    "\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"" text \
    "\"}}\n"

/* A side chain may end the file, and its last entry is no leaf. */
TEST(model_pi__side_chain_is_not_a_leaf)
{
    static const char text[] = ROW("u1", "null", "false", "main")
        ROW("u2", "null", "true", "side") ROW("u3", "\"u2\"", "true", "end");
    struct model_kit_files files = {.items = NULL};
    struct model_kit again;
    struct model_kit kit;

    model_kit_read_text(&kit, "claude", text);
    assert_is(kit.head, "u1");
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    model_kit_read(&again, "pi", &files);
    assert_int_equal(again.items[again.count - 1].kind, WAL__ITEM_HEAD);
    assert_true(again.is_live[1]);
    assert_is(again.items[1].blocks[0].text, "main");
    assert_false(again.is_live[2]);
    assert_false(again.is_live[3]);
    model_kit_free(&again);
    model_kit_files_free(&files);
    model_kit_free(&kit);
}

TEST(model_pi__failed_output_is_an_error)
{
    struct model_kit_files files = {.fails = true};
    struct model_kit kit;

    model_kit_read_text(&kit, "pi", everything);
    assert_false(model_kit_write(&kit, "pi", &files, NULL));
    model_kit_files_free(&files);
    model_kit_free(&kit);
}
