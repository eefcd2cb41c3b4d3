/*
 * test_model_qwen.c - the way of the dialect qwen into the model and out of it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/model/model_write.h"
#include "format/json/json_text.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define SESSION "11111111-2222-4333-8444-555555555555"
#define RECORD(uuid, parent, type, rest)                                                       \
    "{\"uuid\":\"" uuid "\",\"parentUuid\":" parent ",\"sessionId\":\"" SESSION                \
    "\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"cwd\":\"/p\",\"type\":\"" type "\"," rest \
    "}\n"
#define PARTS(role, parts)       "\"message\":{\"role\":\"" role "\",\"parts\":[" parts "]}"
#define TEXT(text)               "{\"text\":\"" text "\"}"
#define COMMAND(phase, rest)     SYSTEM("slash_command", "\"phase\":\"" phase "\"" rest)
#define SYSTEM(subtype, payload) "\"subtype\":\"" subtype "\",\"systemPayload\":{" payload "}"

TEST(model_qwen__a_line_names_its_session_and_parent)
{
    struct wal__line_info line =
        model_kit_line(&wal__dialect_qwen, RECORD("b", "\"a\"", "user", PARTS("user", TEXT("x"))));

    assert_is(line.id, "b");
    assert_is(line.parent, "a");
    assert_is(line.session, SESSION);
    assert_is(line.cwd, "/p");
    assert_is(line.type, "user");
    assert_is(line.time, "2026-01-02T03:04:05.000Z");
    assert_is(line.starter, NULL);
    assert_int_equal(line.link, WAL__LINK_EXPLICIT);
    assert_int_equal(line.head, WAL__HEAD_MOVE);
    assert_false(line.is_subagent);
    line =
        model_kit_line(&wal__dialect_qwen, RECORD("a", "null", "user", PARTS("user", TEXT("x"))));
    assert_int_equal(line.link, WAL__LINK_ROOT);
    line = model_kit_line(&wal__dialect_qwen, "{\"type\":\"user\",\"sessionId\":\"s\"}");
    assert_int_equal(line.link, WAL__LINK_PREVIOUS);
    line =
        model_kit_line(&wal__dialect_qwen, RECORD("t", "\"a\"", "system",
                                                  SYSTEM("custom_title", "\"customTitle\":\"T\"")));
    assert_is(line.title, "T");
}

TEST(model_qwen__a_session_names_its_starter)
{
    struct wal__line_info line =
        model_kit_line(&wal__dialect_qwen, "{\"sessionId\":\"s\",\"agentId\":\"a1\"}");

    assert_is(line.starter, "s");
    assert_true(line.is_subagent && line.is_sidechain);
    line = model_kit_line(&wal__dialect_qwen, "{\"sessionId\":\"s\",\"isSidechain\":true}");
    assert_true(line.is_subagent);
    line = model_kit_line(
        &wal__dialect_qwen,
        "{\"sessionId\":\"s\",\"forkedFrom\":{\"sessionId\":\"f\",\"messageUuid\":1}}");
    assert_is(line.starter, "f");
    assert_false(line.is_subagent);
    line = model_kit_line(&wal__dialect_qwen,
                          "{\"sessionId\":\"s\",\"systemPayload\":{\"parentSessionId\":\"p\"}}");
    assert_is(line.starter, "p");
}

TEST(model_qwen__parts_are_blocks_and_results)
{
    static const char call[] =
        "{\"functionCall\":{\"id\":\"c\",\"name\":\"ls\",\"args\":{\"p\":1}}}";
    static const char counts[] = "\"model\":\"m\",\"usageMetadata\":{\"promptTokenCount\":10,"
                                 "\"cachedContentTokenCount\":4,\"candidatesTokenCount\":3,"
                                 "\"thoughtsTokenCount\":2,\"totalTokenCount\":13}";
    static const char results[] =
        "{\"functionResponse\":{\"id\":\"c\",\"name\":\"ls\",\"response\":{\"output\":\"one\"}}},"
        "{\"functionResponse\":{\"id\":\"d\",\"name\":\"rm\",\"response\":{\"error\":\"no\"},"
        "\"parts\":[{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"QUJD\"}}]}}";
    char text[2048];
    struct model_kit kit;

    snprintf(text, sizeof(text),
             RECORD("a", "null", "assistant",
                    PARTS("model", "{\"text\":\"hm\",\"thought\":true}," TEXT("go") ",%s") ",%s")
                 RECORD("b", "\"a\"", "tool_result", PARTS("user", "%s")),
             call, counts, results);
    model_kit_read_text(&kit, "qwen", text);
    assert_int_equal(kit.count, 4); /* with the header */
    assert_int_equal(kit.items[1].block_count, 3);
    assert_int_equal(kit.items[1].blocks[0].kind, WAL__BLOCK_THINKING);
    assert_int_equal(kit.items[1].blocks[1].kind, WAL__BLOCK_TEXT);
    assert_int_equal(kit.items[1].blocks[2].kind, WAL__BLOCK_TOOL_CALL);
    assert_is(kit.items[1].model, "m");
    assert_number(kit.items[1].usage.input, "6");
    assert_number(kit.items[1].usage.cache_read, "4");
    assert_number(kit.items[1].usage.output, "3");
    assert_number(kit.items[1].usage.reasoning, "2");
    assert_int_equal(kit.items[2].role, WAL__ROLE_TOOL);
    assert_is(kit.items[2].call, "c");
    assert_is(kit.items[2].name, "ls");
    assert_is(kit.items[2].blocks[0].text, "one");
    assert_false(kit.items[2].is_error);
    assert_is(kit.items[3].call, "d");
    assert_is(kit.items[3].blocks[0].text, "no");
    assert_true(kit.items[3].is_error);
    assert_int_equal(kit.items[3].blocks[1].kind, WAL__BLOCK_IMAGE);
}

TEST(model_qwen__messages_of_no_person_are_meta)
{
    static const char text[] = RECORD("a", "null", "user",
                                      PARTS("user", TEXT("mine")) ",\"provenance\":\"real_user\"")
        RECORD("b", "\"a\"", "user",
               PARTS("user", TEXT("mine too")) ",\"subtype\":\"mid_turn_user_message\"")
            RECORD("c", "\"b\"", "system",
                   PARTS("user", TEXT("and this")) ",\"subtype\":\"mid_turn_user_message\"")
                RECORD("d", "\"c\"", "user",
                       PARTS("user", TEXT("no")) ",\"subtype\":\"notification\"")
                    RECORD("e", "\"d\"", "user", PARTS("user", TEXT("no")) ",\"subtype\":\"cron\"")
                        RECORD("f", "\"e\"", "user",
                               PARTS("user", TEXT("no")) ",\"subtype\":\"goal_runtime\"")
                            RECORD("g", "\"f\"", "user",
                                   PARTS("user", TEXT("no")) ",\"provenance\":\"system\"")
                                RECORD("h", "\"g\"", "system",
                                       COMMAND("invocation", ",\"rawCommand\":\"/about\""))
                                    RECORD("i", "\"h\"", "system",
                                           COMMAND("result",
                                                   ",\"outputHistoryItems\":[{\"text\":\"1.0\"}]"));
    struct model_kit kit;

    model_kit_read_text(&kit, "qwen", text);
    assert_int_equal(kit.count, 10);
    for (size_t i = 1; i < kit.count; i++) {
        assert_int_equal(kit.items[i].kind, WAL__ITEM_MESSAGE);
        assert_int_equal(kit.items[i].role, WAL__ROLE_USER);
        assert_int_equal(kit.items[i].is_meta, i > 3);
    }
    assert_is(kit.items[8].blocks[0].text, "/about");
    assert_is(kit.items[9].blocks[0].text, "1.0");
}

TEST(model_qwen__commands_that_are_not_shown_are_lines)
{
    static const char text[] =
        RECORD("a", "null", "system",
               COMMAND("invocation", ",\"rawCommand\":\"/a\",\"hiddenInvocation\":true"))
            RECORD("b", "\"a\"", "system",
                   COMMAND("invocation", ",\"rawCommand\":\"/b\",\"sentToModel\":true"))
                RECORD("c", "\"b\"", "system", COMMAND("result", ""))
                    RECORD("d", "\"c\"", "system", SYSTEM("rewind", "\"truncatedCount\":2"));
    struct model_kit kit;

    model_kit_read_text(&kit, "qwen", text);
    assert_int_equal(kit.count, 5);
    for (size_t i = 1; i < kit.count; i++) {
        assert_int_equal(kit.items[i].kind, WAL__ITEM_LINE);
    }
}

TEST(model_qwen__rewind_leaves_a_branch)
{
    static const char text[] = RECORD("a", "null", "user", PARTS("user", TEXT("go")))
        RECORD("b", "\"a\"", "assistant", PARTS("model", TEXT("first")))
            RECORD("c", "\"a\"", "system", SYSTEM("rewind", "\"truncatedCount\":1"))
                RECORD("d", "\"c\"", "assistant", PARTS("model", TEXT("second")));
    struct model_kit kit;

    model_kit_read_text(&kit, "qwen", text);
    assert_int_equal(kit.count, 5);
    assert_true(kit.is_live[1] && !kit.is_live[2] && kit.is_live[3] && kit.is_live[4]);
}

TEST(model_qwen__compression_has_the_summary)
{
    static const char text[] = RECORD("a", "null", "user", PARTS("user", TEXT("go"))) RECORD(
        "b", "\"a\"", "system",
        SYSTEM("chat_compression", "\"info\":{\"originalTokenCount\":99},\"compressedHistory\":["
                                   "{\"role\":\"user\",\"parts\":[" TEXT(
                                       "sum") "]},"
                                              "{\"role\":\"model\",\"parts\":[" TEXT("ok") "]}]"));
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    struct model_kit pi;

    model_kit_read_text(&kit, "qwen", text);
    assert_int_equal(kit.items[2].kind, WAL__ITEM_COMPACTION);
    assert_is(kit.items[2].text, "sum");
    assert_number(kit.items[2].tokens, "99");
    assert_is(kit.items[2].parent, "a");
    assert_true(kit.items[2].fields > 0);
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    model_kit_read(&pi, "pi", &files);
    assert_int_equal(pi.items[pi.count - 1].kind, WAL__ITEM_COMPACTION);
}

/* The records keep their bytes; in a session with another id they get that. */
TEST(model_qwen__own_records_are_written_unchanged)
{
    static const char text[] = RECORD("00000000-0000-4000-8000-000000000001", "null", "user",
                                      PARTS("user", TEXT("go")) ",\"odd\" : [1, 2]")
        RECORD("00000000-0000-4000-8000-000000000002", "\"00000000-0000-4000-8000-000000000001\"",
               "system", SYSTEM("rewind", "\"truncatedCount\":2"));
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;

    model_kit_read_text(&kit, "qwen", text);
    assert_true(model_kit_write(&kit, "qwen", &files, NULL));
    assert_int_equal(files.count, 1);
    assert_string_equal(files.items[0].path, "projects/-p/chats/" SESSION ".jsonl");
    assert_string_equal(files.items[0].data, text);
    files = (struct model_kit_files){.items = NULL};
    kit.session.id = (struct wal__json_span){(const uint8_t *)"\"other\"", 7};
    assert_true(model_kit_write(&kit, "qwen", &files, NULL));

    assert_null(strstr(files.items[0].data, SESSION));
    assert_non_null(strstr(files.items[0].data, "\"odd\":[1,2]"));
}

TEST(model_qwen__a_session_without_items_has_a_record)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;

    model_kit_read_text(&kit, "qwen", "");
    assert_true(model_kit_write(&kit, "qwen", &files, NULL));
    assert_true(files.items[0].size > 0);
}

TEST(model_qwen__recognised_by_its_message_or_payload)
{
    static const struct {
        const char *line;
        bool is_qwen;
    } cases[] = {
        {RECORD("a", "null", "user", PARTS("user", TEXT("x"))), true},
        {RECORD("a", "null", "assistant", "\"message\":{\"role\":\"model\"}"), true},
        {RECORD("a", "null", "tool_result", "\"x\":1"), true},
        {RECORD("a", "null", "system", SYSTEM("session_model", "")), true},
        {RECORD("a", "null", "system", "\"subtype\":\"compact_boundary\""), false},
        {RECORD("a", "null", "user", "\"message\":{\"role\":\"user\",\"content\":\"x\"}"), false},
        {"{\"type\":\"user\",\"message\":{\"parts\":[]}}", false},
        {"{\"type\":\"user\",\"sessionId\":\"s\",\"message\":{\"parts\":{}}}", false},
        {"{\"type\":\"user\",\"sessionId\":\"s\",\"message\":{\"parts\":[", false},
        {"[]", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(
            wal__line_recognise(&wal__dialect_qwen, cases[i].line, strlen(cases[i].line), true),
            cases[i].is_qwen);
    }
}

/* Values of other kinds than the client writes are lines, or absent. */
TEST(model_qwen__odd_values_are_lines)
{
    static const char *const lines[] = {
        RECORD("a", "null", "user", "\"message\":7"),
        RECORD("a", "null", "user", "\"message\":[]"),
        RECORD("a", "null", "assistant", "\"x\":1"),
        RECORD("a", "null", "future", PARTS("user", TEXT("x"))),
        RECORD("a", "null", "system", SYSTEM("slash_command", "\"rawCommand\":7")),
        RECORD("a", "null", "system", "\"subtype\":5,\"systemPayload\":[]"),
        "{\"type\":5,\"sessionId\":7,\"uuid\":{},\"parentUuid\":[]}\n",
        "{\"type\":\"user\",\"type\":\"x\",\"message\":null}\n",
        "[1]\n",
        "null\n",
    };

    for (size_t i = 0; i < COUNT(lines); i++) {
        struct model_kit kit;
        model_kit_read_text(&kit, "qwen", lines[i]);
        assert_int_equal(kit.damaged, 0);
        assert_true(kit.count >= 1);
        assert_int_equal(kit.items[kit.count - 1].kind, WAL__ITEM_LINE);
    }
    assert_true(
        model_kit_line(&wal__dialect_qwen, "{\"uuid\":\"a\",\"uuid\":\"b\"}").has_duplicate_key);
}
