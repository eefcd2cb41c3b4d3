/*
 * test_model_kimi.c - how the dialect kimi is read, in both of its forms.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_text.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT(text)   "{\"type\":\"text\",\"text\":\"" text "\"}"
#define EVENT(event) \
    "{\"type\":\"context.append_loop_event\",\"event\":{" event "},\"time\":1767323045000}\n"
#define MESSAGE(role, rest)                                                         \
    "{\"type\":\"context.append_message\",\"message\":{\"role\":\"" role "\"," rest \
    "},\"time\":1767323045000}\n"
#define OLD(type, payload) \
    "{\"timestamp\":1767323045.25,\"message\":{\"type\":\"" type "\",\"payload\":{" payload "}}}\n"

TEST(model_kimi__lines_have_times_and_a_version)
{
    assert_int_equal(
        model_kit_line(&wal__dialect_kimi, "{\"type\":\"x\",\"time\":1767323045000}").time_ms,
        INT64_C(1767323045000));
    assert_int_equal(
        model_kit_line(&wal__dialect_kimi, "{\"type\":\"metadata\",\"created_at\":7}").time_ms, 7);
    assert_int_equal(model_kit_line(&wal__dialect_kimi, "{\"timestamp\":1767323045.25}").time_ms,
                     INT64_C(1767323045250));
    assert_int_equal(model_kit_line(&wal__dialect_kimi, "{\"timestamp\":1767323045}").time_ms,
                     INT64_C(1767323045000));
    assert_int_equal(model_kit_line(&wal__dialect_kimi, "{\"timestamp\":1e300}").time_ms, 0);
    assert_int_equal(model_kit_line(&wal__dialect_kimi, "{\"timestamp\":-1}").time_ms, 0);
    assert_int_equal(
        model_kit_line(&wal__dialect_kimi, "{\"timestamp\":99999999999999999999}").time_ms, 0);
    assert_false(
        model_kit_line(&wal__dialect_kimi, "{\"protocol_version\":\"1.5\"}").has_newer_version);
    assert_true(
        model_kit_line(&wal__dialect_kimi, "{\"protocol_version\":\"1.6\"}").has_newer_version);
    assert_true(
        model_kit_line(&wal__dialect_kimi, "{\"protocol_version\":\"2.0\"}").has_newer_version);
    assert_true(
        model_kit_line(&wal__dialect_kimi, "{\"protocol_version\":\"1.x\"}").has_newer_version);
    assert_is(model_kit_line(&wal__dialect_kimi, "{\"type\":\"config.update\",\"cwd\":\"/p\"}").cwd,
              "/p");
}

/* A prompt is one message, whether the context repeats it or not. */
TEST(model_kimi__a_prompt_is_taken_once)
{
    static const char text[] = "{\"type\":\"turn.prompt\",\"input\":[" TEXT(
        "one") "]}\n"
               "{\"type\":\"turn.steer\",\"input\":[" TEXT(
                   "two") "]}\n"
                          "{\"type\":\"turn.prompt\"}\n" MESSAGE("user",
                                                                 "\"content\":[" TEXT("one") "]")
                              MESSAGE("user", "\"content\":[" TEXT("three") "]")
                                  MESSAGE("user", "\"content\":[" TEXT("one") "]");
    static const char *const words[] = {"one", "two", "three", "one"};
    struct model_kit kit;
    size_t found = 0;

    model_kit_read_text(&kit, "kimi", text);
    assert_int_equal(kit.count, 6);
    for (size_t i = 0; i < kit.count; i++) {
        if (kit.items[i].kind == WAL__ITEM_MESSAGE) {
            assert_is(kit.items[i].blocks[0].text, words[found++]);
            assert_false(kit.items[i].is_meta);
        }
    }
    assert_int_equal(found, COUNT(words));
}

TEST(model_kimi__records_of_a_step_are_one_answer)
{
    static const char call[] =
        "\"type\":\"tool.call\",\"toolCallId\":\"c\",\"name\":\"ls\",\"args\":{\"p\":1}";
    static const char result[] = "\"type\":\"tool.result\",\"toolCallId\":\"c\","
                                 "\"result\":{\"output\":\"a\",\"isError\":true}";
    static const char usage[] = "{\"type\":\"usage.record\",\"model\":\"k\","
                                "\"usage\":{\"inputOther\":6,\"output\":5}}\n";
    static const char thought[] =
        "\"type\":\"content.part\",\"part\":{\"type\":\"think\",\"think\":\"hm\"}";
    char text[2048];
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    struct model_kit pi;

    snprintf(text, sizeof(text),
             EVENT("\"type\":\"step.begin\",\"uuid\":\"s\"") "%s" EVENT("%s")
                 EVENT("%s") "%s" EVENT("%s") EVENT("%s")
                     EVENT("\"type\":\"step.end\",\"uuid\":\"s\""),
             "{\"type\":\"llm.request\",\"model\":\"k\"}\n", thought,
             "\"type\":\"content.part\",\"part\":" TEXT("go"), usage, call, result);
    model_kit_read_text(&kit, "kimi", text);
    for (size_t i = 0; i < kit.count; i++) {
        if (kit.items[i].role == WAL__ROLE_ASSISTANT) {
            assert_is(kit.items[i].model, "k");
        }
    }
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    model_kit_read(&pi, "pi", &files);
    assert_int_equal(pi.count, 3); /* with the header */
    assert_int_equal(pi.items[1].block_count, 3);
    assert_int_equal(pi.items[1].blocks[0].kind, WAL__BLOCK_THINKING);
    assert_is(pi.items[1].blocks[1].text, "go");
    assert_is(pi.items[1].blocks[2].id, "c");
    assert_is(pi.items[1].model, "k");
    assert_memory_equal(pi.items[1].usage.input.data, "6", 1);
    assert_int_equal(pi.items[2].role, WAL__ROLE_TOOL);
    assert_true(pi.items[2].is_error);
    assert_is(pi.items[2].call, "c");
}

TEST(model_kimi__records_of_the_older_client)
{
    static const char call[] = "\"type\":\"function\",\"id\":\"c\",\"function\":"
                               "{\"name\":\"ls\",\"arguments\":\"{\\\"p\\\":1}\"}";
    static const char result[] =
        "\"tool_call_id\":\"c\",\"return_value\":{\"is_error\":true,\"output\":\"no\"}";
    static const char usage[] = "\"token_usage\":{\"input_other\":1,\"output\":2}";
    char text[2048];
    struct model_kit kit;

    snprintf(text, sizeof(text),
             OLD("TurnBegin", "\"user_input\":\"go\"") OLD("StepBegin", "\"n\":1")
                 OLD("ContentPart", "\"type\":\"text\",\"text\":\"ok\"") OLD("ToolCall", "%s")
                     OLD("ToolResult", "%s") OLD("StatusUpdate", "%s"),
             call, result, usage);
    assert_true(wal__line_recognise(&wal__dialect_kimi, text, strcspn(text, "\n"), false));
    model_kit_read_text(&kit, "kimi", text);
    assert_int_equal(kit.count, 6);
    assert_is(kit.items[0].blocks[0].text, "go");
    assert_int_equal(kit.items[0].role, WAL__ROLE_USER);
    assert_int_equal(kit.items[1].kind, WAL__ITEM_LINE);
    assert_is(kit.items[2].blocks[0].text, "ok");
    assert_is(kit.items[3].blocks[0].name, "ls");
    assert_int_equal(kit.items[3].blocks[0].arguments.data[0], '{');
    assert_is(kit.items[4].call, "c");
    assert_true(kit.items[4].is_error);
    assert_is(kit.items[4].blocks[0].text, "no");
    assert_memory_equal(kit.items[5].usage.output.data, "2", 1);
}

TEST(model_kimi__what_no_person_wrote_is_meta_and_a_clear_is_a_compaction)
{
    static const char compaction[] =
        "{\"type\":\"context.apply_compaction\",\"summary\":\"sum\",\"tokensBefore\":9}\n"
        "{\"type\":\"context.clear\"}\n";
    static const char image[] =
        "{\"type\":\"image_url\",\"imageUrl\":{\"url\":\"blobref:image/png;0a\"}}";
    static const char origin[] = "\"origin\":{\"kind\":\"injection\"}";
    char text[1024];
    struct model_kit kit;

    snprintf(text, sizeof(text),
             MESSAGE("user", "\"content\":[%s],%s") "%s" MESSAGE("user", "\"content\":[%s]"),
             TEXT("x"), origin, compaction, image);
    model_kit_read_text(&kit, "kimi", text);
    assert_true(kit.items[0].is_meta);
    assert_is(kit.items[0].name, "injection");
    assert_int_equal(kit.items[1].kind, WAL__ITEM_COMPACTION);
    assert_is(kit.items[1].text, "sum");
    assert_int_equal(kit.items[2].kind, WAL__ITEM_COMPACTION);
    assert_is(kit.items[2].text, "The context was cleared.");
    assert_int_equal(kit.items[3].blocks[0].kind, WAL__BLOCK_IMAGE);
    assert_is(kit.items[3].blocks[0].url, "blobref:image/png;0a");
}

TEST(model_kimi__odd_records_are_kept)
{
    static const char *const lines[] = {
        MESSAGE("future", "\"content\":7"),
        EVENT("\"type\":\"future\""),
        EVENT("\"type\":7"),
        "{\"type\":\"context.append_message\",\"message\":[]}\n",
        "{\"type\":\"context.append_loop_event\",\"event\":\"x\"}\n",
        "{\"type\":\"usage.record\",\"usage\":{\"output\":1}}\n",
        "{\"type\":\"turn.prompt\",\"input\":{}}\n",
        "{\"type\":7,\"message\":{\"type\":\"TurnBegin\",\"payload\":7}}\n",
        "[]\n",
        "7\n",
    };

    for (size_t i = 0; i < COUNT(lines); i++) {
        struct model_kit kit;
        model_kit_read_text(&kit, "kimi", lines[i]);
        assert_int_equal(kit.damaged, 0);
        assert_int_equal(kit.count, 1);
    }
}
