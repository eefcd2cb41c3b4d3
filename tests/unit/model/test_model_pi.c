/*
 * test_model_pi.c - the way of the dialects pi, sdk and spec11 into the model and out of it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "convert/model/model_member.h"
#include "format/json/json_text.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

#define HEADER                                                          \
    "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"timestamp\":" \
    "\"2026-01-02T03:04:05.678Z\",\"cwd\":\"/home/u/p\"}\n"

static const char everything[] =
    HEADER "{\"type\":\"model_change\",\"id\":\"00000001\",\"parentId\":null,"
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
    assert_string_equal(files.items[0].path, "sessions/--home-u-p--/"
                                             "2026-01-02T03-04-05-678Z_s-1.jsonl");
    assert_same(files.items[0].data, everything);
    for (size_t i = 0; i < WAL__FEATURE_COUNT; i++) {
        assert_int_equal(losses[i], 0);
    }
}

/* Without the original lines, all lines are generated. */
TEST(model_pi__regenerated_session_is_equivalent)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    struct model_kit again;

    model_kit_read_text(&kit, "pi", everything);
    for (size_t i = 0; i < kit.count; i++) {
        kit.items[i].raw.size = 0;
    }
    kit.session.raw.size = 0;
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    /* A sum that is not read again. */
    assert_non_null(strstr(files.items[0].data, "\"totalTokens\":10,"));
    model_kit_read(&again, "pi", &files);
    model_kit_assert_same(&kit, &again, UINT64_MAX, NULL);
}

/* A fork of pi writes "model":"PROVIDER/MODEL"; no provider is invented. */
TEST(model_pi__model_change_without_provider_stays_without)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    struct model_kit again;

    model_kit_read_text(&kit, "pi",
                        HEADER "{\"type\":\"model_change\",\"id\":\"00000001\",\"parentId\":"
                               "null,\"timestamp\":\"2026-01-02T03:04:05.679Z\",\"model\":"
                               "\"p/m\"}\n");
    kit.items[1].raw.size = 0;
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    model_kit_read(&again, "pi", &files);
    for (size_t i = 0; i < 2; i++) {
        const struct wal__model_item *item = i == 0 ? &kit.items[1] : &again.items[1];
        assert_int_equal(item->kind, WAL__ITEM_MODEL_CHANGE);
        assert_int_equal(item->provider.size, 0);
        assert_is(item->model, "p/m");
    }
}

TEST(model_pi__version_1_gets_ids_and_kept_entry)
{
    static const char text[] = "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":"
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
    static const char text[] = HEAD MESSAGE("1", "null", "a") MESSAGE("2", "\"00000001\"", "b")
        MESSAGE("3", "\"00000001\"", "c") LABEL("4", "\"00000002\"");
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;

    model_kit_read_text(&kit, "pi", text);
    assert_is(kit.head, "00000004");
    assert_true(kit.is_live[2]);
    assert_false(kit.is_live[3]);
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    assert_string_equal(files.items[0].data, text);
    files = (struct model_kit_files){.items = NULL};
    assert_true(model_kit_write(&kit, "rollouts", &files, NULL));
    assert_non_null(strstr(files.items[0].data, "\"b\""));
    assert_null(strstr(files.items[0].data, "\"c\""));
}

#define ROW(uuid, parent, side, text)                      \
    "{\"parentUuid\":" parent ",\"isSidechain\":" side     \
    ",\"sessionId\":\"s\",\"cwd\":\"/p\",\"uuid\":\"" uuid \
    "\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"" text "\"}}\n"

/* A side chain may end the file, and its last entry is no leaf. */
TEST(model_pi__side_chain_is_not_a_leaf)
{
    static const char text[] = ROW("u1", "null", "false", "main") ROW("u2", "null", "true", "side")
        ROW("u3", "\"u2\"", "true", "end");
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
}

TEST(model_pi__failed_output_is_an_error)
{
    struct model_kit_files files = {.fails = true};
    struct model_kit kit;

    model_kit_read_text(&kit, "pi", everything);
    assert_false(model_kit_write(&kit, "pi", &files, NULL));
}

static const char messages[] =
    "{\"uuid\":\"u1\",\"timestamp\":\"2026-01-02T03:04:05Z\",\"role\":\"sys"
    "tem\",\"content\":\"rules\"}\n"
    "{\"uuid\":\"u2\",\"timestamp\":\"2026-01-02T03:04:06Z\",\"role\":\"use"
    "r\",\"content\":\"a \\u00e9\"}\n"
    "{\"uuid\":\"u3\",\"timestamp\":\"2026-01-02T03:04:07Z\",\"role\":\"ass"
    "istant\",\"content\":\"ok\",\"tool_calls\":[{\"id\":\"call_1\",\"type"
    "\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"{\\\"n"
    "\\\": 1.50}\"}},{\"id\":\"call_2\",\"name\":\"list\",\"input\":{\"k\":"
    "2}}]}\n"
    "{\"uuid\":\"u4\",\"timestamp\":\"2026-01-02T03:04:08Z\",\"role\":\"too"
    "l\",\"tool_call_id\":\"call_2\",\"content\":\"two\"}\n"
    "{\"uuid\":\"u5\",\"timestamp\":\"2026-01-02T03:04:09Z\",\"role\":\"too"
    "l\",\"tool_call_id\":\"call_1\",\"content\":\"one\"}\n"
    "{\"uuid\":\"u6\",\"timestamp\":\"2026-01-02T03:04:10Z\",\"message\":{"
    "\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"b\"}"
    ",{\"type\":\"tool_use\",\"id\":\"call_3\",\"name\":\"x\",\"input\":{}}"
    ",{\"type\":\"text\",\"text\":\"c\"}]}}\n"
    "{\"uuid\":\"u7\",\"timestamp\":\"2026-01-02T03:04:11Z\",\"message\":{"
    "\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id"
    "\":\"call_3\",\"content\":\"r\"},{\"type\":\"text\",\"text\":\"go on\""
    "}]}}\n"
    "{\"uuid\":\"u8\",\"timestamp\":\"2026-01-02T03:04:12Z\",\"role\":\"cri"
    "tic\",\"content\":\"hm\"}\n"
    "{\"uuid\":\"u9\",\"timestamp\":\"2026-01-02T03:04:13Z\",\"role\":\"ass"
    "istant\",\"content\":\"\"}\n";

static const char transcript[] =
    "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\"}\n"
    "{\"type\":\"user\",\"uuid\":\"u2\"}\n";

static const char sdk_metadata[] =
    "{\"session_id\":\"s-1\",\"created_at\":\"2026-01-02T03:04:05Z\","
    "\"model\":\"m\",\"cwd\":\"/p\",\"turn_count\":1,\"total_cost_usd\":0.5,"
    "\"exit_reason\":\"end_turn\",\"agent_name\":\"a\",\"more\":1.0}\n";

static const char code_metadata[] =
    "{\"id\":\"s-1\",\"parent_session_id\":\"s-0\",\"fork_point_uuid\":\"u2\","
    "\"created_at\":\"2026-01-02T03:04:05Z\",\"updated_at\":"
    "\"2026-01-02T03:04:13Z\",\"message_count\":9}";

static const char spec11_metadata[] =
    "{\"id\":\"s-1\",\"project_hash\":\"h\",\"cwd\":\"/p\",\"model\":\"m\","
    "\"created_at\":\"2026-01-02T03:04:05Z\",\"updated_at\":"
    "\"2026-01-02T03:04:14Z\",\"message_count\":10,\"turn_count\":1,"
    "\"total_tokens\":9,\"exit_reason\":\"end\",\"parent_id\":\"s-0\","
    "\"agent_name\":\"a\"}";

static void add(struct model_kit_files *files, const char *path, bool is_document, const char *text)
{
    model_kit_files_add(files, path, is_document, text, strlen(text));
}

/* A session with everything; the kit's spans lie in the files. */
static void read_session(struct model_kit *kit, struct model_kit_files *files, const char *dialect,
                         const char *metadata)
{
    *files = (struct model_kit_files){.items = NULL};
    if (metadata != NULL) {
        add(files, "metadata.json", true, metadata);
    }
    add(files, "messages.jsonl", false, messages);
    add(files, "transcript.jsonl", false, transcript);
    model_kit_read(kit, dialect, files);
}

TEST(model_sdk__every_line_is_an_item)
{
    struct model_kit_files files;
    struct wal__model_item *items;
    struct model_kit kit;

    read_session(&kit, &files, "sdk", sdk_metadata);
    assert_int_equal(kit.count, 1 + 9 + 1 + 2); /* u7 is two items */
    items = kit.items + 1;
    assert_is(kit.session.id, "s-1");
    assert_is(kit.session.cwd, "/p");
    assert_is(kit.session.model, "m");
    assert_is(kit.session.agent, "a");
    assert_is(kit.session.exit_reason, "end_turn");
    assert_is(kit.session.time, "2026-01-02T03:04:05Z");
    assert_int_equal(items[0].role, WAL__ROLE_SYSTEM);
    assert_int_equal(items[1].role, WAL__ROLE_USER);
    assert_is(items[1].id, "u2");
    assert_is(items[1].parent, "u1");
    assert_is(items[1].time, "2026-01-02T03:04:06Z");
    assert_int_equal(items[2].block_count, 3);
    assert_is(items[2].blocks[0].text, "ok");
    assert_is(items[2].blocks[1].id, "call_1");
    assert_is(items[2].blocks[1].name, "read");
    assert_memory_equal(items[2].blocks[1].arguments.data, "{\"n\": 1.50}", 11);
    assert_int_equal(items[3].role, WAL__ROLE_TOOL);
    assert_is(items[3].call, "call_2");
    assert_is(items[4].call, "call_1");
    assert_int_equal(items[5].role, WAL__ROLE_ASSISTANT);
    assert_int_equal(items[5].block_count, 3);
    assert_int_equal(items[5].blocks[1].kind, WAL__BLOCK_TOOL_CALL);
    assert_int_equal(items[6].role, WAL__ROLE_TOOL);
    assert_is(items[6].call, "call_3");
    assert_int_equal(items[7].role, WAL__ROLE_USER);
    assert_is(items[7].id, "u7");
    assert_int_equal(items[8].kind, WAL__ITEM_LINE);
    assert_int_equal(items[9].block_count, 0);
    assert_is(kit.head, "u9");
}

/* Calls have their name and arguments below `function`, or next to their id. */
TEST(model_sdk__calls_of_both_forms)
{
    struct model_kit_files files;
    struct model_kit kit;

    read_session(&kit, &files, "sdk", sdk_metadata);
    assert_is(kit.items[3].blocks[2].id, "call_2");
    assert_is(kit.items[3].blocks[2].name, "list");
    assert_int_equal(kit.items[3].blocks[2].arguments.size, 7);
    assert_memory_equal(kit.items[3].blocks[2].arguments.data, "{\"k\":2}", 7);
}

TEST(model_sdk__transcript_is_next_to_the_conversation)
{
    struct model_kit_files files;
    struct model_kit kit;

    read_session(&kit, &files, "sdk", sdk_metadata);
    for (size_t i = kit.count - 2; i < kit.count; i++) {
        assert_int_equal(kit.items[i].kind, WAL__ITEM_LINE);
        assert_int_equal(kit.items[i].stream, 1);
        assert_true(kit.items[i].is_off_branch);
    }
}

TEST(model_sdk__metadata_of_the_code)
{
    struct model_kit_files files;
    struct model_kit kit;

    read_session(&kit, &files, "sdk", code_metadata);
    assert_is(kit.session.id, "s-1");
    assert_is(kit.session.parent, "s-0");
    assert_is(kit.session.updated, "2026-01-02T03:04:13Z");
}

TEST(model_spec11__metadata)
{
    struct model_kit_files files;
    struct model_kit kit;

    read_session(&kit, &files, "spec11", spec11_metadata);
    assert_is(kit.session.id, "s-1");
    assert_is(kit.session.project, "h");
    assert_is(kit.session.parent, "s-0");
    assert_is(kit.session.exit_reason, "end");
    assert_is(kit.session.agent, "a");
}

static void assert_verbatim(const char *dialect, const char *metadata, const char *folder)
{
    struct model_kit_files files;
    struct model_kit_files out = {.items = NULL};
    uint64_t losses[WAL__FEATURE_COUNT] = {0};
    struct model_kit kit;
    char path[64] = "";

    read_session(&kit, &files, dialect, metadata);
    assert_true(model_kit_write(&kit, dialect, &out, losses));
    assert_int_equal(out.count, 3);
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"metadata.json", "messages.jsonl", "transcript.jsonl"};
        const char *texts[] = {metadata, messages, transcript};
        const struct model_kit_file *file;
        strcpy(path, folder);
        strcat(path, names[i]);
        file = model_kit_files_find(&out, path);
        assert_non_null(file);
        assert_string_equal(file->path, path);
        assert_string_equal(file->data, texts[i]);
    }
    for (size_t i = 0; i < WAL__FEATURE_COUNT; i++) {
        assert_int_equal(losses[i], 0);
    }
}

TEST(model_sdk__unchanged_lines_are_written_verbatim)
{
    assert_verbatim("sdk", sdk_metadata, "s-1/");
    assert_verbatim("sdk", code_metadata, "s-1/");
}

TEST(model_spec11__unchanged_lines_are_written_verbatim)
{
    assert_verbatim("spec11", spec11_metadata, "sessions/s-1/");
}

static void assert_regenerated(const char *dialect, const char *metadata)
{
    uint64_t carries = wal__dialect_find(dialect)->write_ops->carries;
    struct model_kit_files files;
    struct model_kit_files out = {.items = NULL};
    struct model_kit again;
    struct model_kit kit;

    read_session(&kit, &files, dialect, metadata);
    for (size_t i = 0; i < kit.count; i++) {
        if (kit.items[i].stream == 0) {
            kit.items[i].raw.size = 0;
            kit.items[i].raw_items_left = 0;
        }
    }
    kit.session.raw.size = 0;
    assert_true(model_kit_write(&kit, dialect, &out, NULL));
    model_kit_read(&again, dialect, &out);
    model_kit_assert_same(&kit, &again, carries, NULL);
    assert_is(again.session.id, "s-1");
    assert_is(again.session.cwd, "/p");
    assert_is(again.session.model, "m");
    assert_is(again.session.agent, "a");
}

TEST(model_sdk__regenerated_session_is_equivalent)
{
    assert_regenerated("sdk", sdk_metadata);
    assert_regenerated("spec11", spec11_metadata);
}

/* The document's names of members, whatever the session came from. */
TEST(model_sdk__metadata_is_the_documents)
{
    struct model_kit_files files;
    struct model_kit_files out = {.items = NULL};
    struct model_kit kit;

    read_session(&kit, &files, "spec11", spec11_metadata);
    assert_true(model_kit_write(&kit, "sdk", &out, NULL));
    assert_string_equal(model_kit_files_find(&out, "s-1/metadata.json")->data,
                        "{\"session_id\":\"s-1\",\"created_at\":\"2026-01-02T03:04:05Z\","
                        "\"model\":\"m\",\"cwd\":\"/p\",\"turn_count\":2,\"total_cost_usd\":0,"
                        "\"exit_reason\":\"end\",\"agent_name\":\"a\"}\n");
    out = (struct model_kit_files){.items = NULL};
    assert_true(model_kit_write(&kit, "spec11", &out, NULL));
    out = (struct model_kit_files){.items = NULL};

    read_session(&kit, &files, "sdk", sdk_metadata);
    assert_true(model_kit_write(&kit, "spec11", &out, NULL));
    assert_non_null(strstr(model_kit_files_find(&out, "sessions/s-1/metadata.json")->data,
                           "\"created_at\":\"2026-01-02T03:04:05Z\",\"updated_at\":"
                           "\"2026-01-02T03:04:05Z\",\"message_count\":"));
}

/* A message that says no time gets that of the one before it. */
TEST(model_sdk__invalid_times)
{
    static const char text[] =
        "{\"uuid\":\"a\",\"timestamp\":\"2026-01-02T03:04:05Z\",\"role\":\"user"
        "\",\"content\":\"1\"}\n"
        "{\"uuid\":\"b\",\"role\":\"user\",\"content\":\"2\"}\n"
        "{\"uuid\":\"c\",\"timestamp\":\"soon\",\"role\":\"user\",\"content\":"
        "\"3\"}\n";
    struct model_kit_files files = {.items = NULL};
    struct model_kit_files out = {.items = NULL};
    const char *at;
    struct model_kit kit;

    add(&files, "metadata.json", true, sdk_metadata);
    add(&files, "messages.jsonl", false, text);
    model_kit_read(&kit, "sdk", &files);
    assert_true(model_kit_write(&kit, "pi", &out, NULL));
    at = out.items[0].data;
    for (size_t i = 0; i < 3; i++) {
        at = strstr(at, "\"timestamp\":\"2026-01-02T03:04:05");
        assert_non_null(at);
        at++;
    }
    assert_null(strstr(out.items[0].data, "1970"));
    assert_null(strstr(out.items[0].data, "soon"));
}

/* Names of files and folders come from ids that may be anything. */
TEST(model_sdk__ids_cannot_escape_the_directory)
{
    static const char *const ids[] = {"..", "../../x", "a\\u0000b", "a\\nb", ".hidden", ""};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        struct model_kit_files files = {.items = NULL};
        struct model_kit kit;
        char text[128] = "{\"session_id\":\"";
        strcat(strcat(text, ids[i]), "\",\"created_at\":\"\"}");
        add(&files, "metadata.json", true, text);
        model_kit_read(&kit, "sdk", &files);
        for (unsigned d = 0; d < 3; d++) {
            static const char *const to[] = {"sdk", "spec11", "opencode"};
            struct model_kit_files out = {.items = NULL};
            assert_true(model_kit_write(&kit, to[d], &out, NULL));
            for (size_t f = 0; f < out.count; f++) {
                const char *path = out.items[f].path;
                assert_null(strstr(path, "/."));
                assert_null(strstr(path, "//"));
                assert_null(strchr(path, '\n'));
                assert_true(path[0] != '.' && path[0] != '/');
            }
        }
    }
}

TEST(model_sdk__failed_output_is_an_error)
{
    struct model_kit_files files;
    struct model_kit_files out = {.fails = true};
    struct model_kit kit;

    read_session(&kit, &files, "sdk", sdk_metadata);
    assert_false(model_kit_write(&kit, "sdk", &out, NULL));
    assert_false(model_kit_write(&kit, "spec11", &out, NULL));
    assert_false(model_kit_write(&kit, "opencode", &out, NULL));
}
