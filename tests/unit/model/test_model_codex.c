/*
 * test_model_codex.c - the way of the dialects codex and rollouts into the model and out of it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_text.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

#define ID "019b2ea4-aaaa-4bbb-8ccc-58208e1f0001"
#define LINE(second, type, payload)                                        \
    "{\"timestamp\":\"2026-01-02T03:04:" second ".000Z\",\"type\":\"" type \
    "\",\"payload\":{" payload "}}\n"
#define META                                                             \
    LINE("05", "session_meta",                                           \
         "\"id\":\"" ID "\",\"timestamp\":\"2026-01-02T03:04:05.000Z\"," \
         "\"cwd\":\"/home/u/p\",\"originator\":\"codex_cli_rs\","        \
         "\"cli_version\":\"0.146.0\",\"model_provider\":\"openai\"")
#define USER_EVENT(second, text) \
    LINE(second, "event_msg", "\"type\":\"user_message\",\"message\":\"" text "\",\"images\":[]")
#define USER(second, text)                                                \
    LINE(second, "response_item",                                         \
         "\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":" \
         "\"input_text\",\"text\":\"" text "\"}]")
#define AGENT_EVENT(second, text) \
    LINE(second, "event_msg", "\"type\":\"agent_message\",\"message\":\"" text "\"")
#define AGENT(second, text)                                           \
    LINE(second, "response_item",                                     \
         "\"type\":\"message\",\"role\":\"assistant\",\"content\":[{" \
         "\"type\":\"output_text\",\"text\":\"" text "\"}]")

/* The text of the nth message, and its role. */
static void assert_message(const struct model_kit *kit, size_t number, enum wal__model_role role,
                           const char *text)
{
    for (size_t i = 0; i < kit->count; i++) {
        const struct wal__model_item *item = &kit->items[i];
        if (item->kind != WAL__ITEM_MESSAGE || number-- > 0) {
            continue;
        }
        assert_int_equal(item->role, role);
        assert_int_equal(item->block_count, 1);
        assert_is(item->blocks[0].text, text);
        return;
    }
    fail();
}

static size_t count_messages(const struct model_kit *kit, bool only_live)
{
    size_t count = 0;

    for (size_t i = 0; i < kit->count; i++) {
        count += kit->items[i].kind == WAL__ITEM_MESSAGE && (!only_live || kit->is_live[i]) ? 1 : 0;
    }
    return count;
}

static char *generated_file(void)
{
    size_t size;

    return test_file(AGENTWAL_SOURCE_DIR "/tests/golden/model/codex.jsonl", &size);
}

TEST(model_codex__items_are_read)
{
    static const char text[] =
        META LINE("06", "turn_context", "\"model\":\"gpt-5.2\",\"effort\":\"high\"")
            LINE("07", "response_item",
                 "\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\","
                 "\"text\":\"a\"},{\"type\":\"summary_text\",\"text\":\"b\"}],"
                 "\"encrypted_content\":\"gAAAAABo\"")
                LINE("08", "response_item",
                     "\"type\":\"function_call\",\"name\":\"shell\",\"arguments\":"
                     "\"{\\\"n\\\":1.50}\",\"call_id\":\"c1\"")
                    LINE("09", "response_item",
                         "\"type\":\"custom_tool_call\",\"name\":\"apply_patch\","
                         "\"input\":\"x\\ny\",\"call_id\":\"c2\"")
                        LINE("10", "response_item",
                             "\"type\":\"function_call_output\",\"call_id\":\"c1\","
                             "\"output\":\"r\"");
    struct model_kit kit;

    model_kit_read_text(&kit, "codex", text);
    assert_int_equal(kit.count, 8);
    assert_is(kit.session.id, ID);
    assert_int_equal(kit.items[1].kind, WAL__ITEM_MODEL_CHANGE);
    assert_is(kit.items[1].model, "gpt-5.2");
    assert_is(kit.items[2].text, "high");
    assert_int_equal(kit.items[3].kind, WAL__ITEM_LINE);
    assert_is(kit.items[4].blocks[0].text, "a\n\nb");
    assert_is(kit.items[4].blocks[0].signature, "gAAAAABo");
    assert_is(kit.items[4].model, "gpt-5.2");
    assert_is(kit.items[4].provider, "openai");
    assert_memory_equal(kit.items[5].blocks[0].arguments.data, "{\"n\":1.50}", 10);
    assert_memory_equal(kit.items[6].blocks[0].arguments.data, "{\"input\":\"x\\ny\"}", 16);
    assert_int_equal(kit.items[7].role, WAL__ROLE_TOOL);
    assert_is(kit.items[7].call, "c1");
    /* All of one answer. */
    assert_int_equal(kit.items[4].answer_id.size, kit.items[6].answer_id.size);
    assert_memory_equal(kit.items[4].answer_id.data, kit.items[6].answer_id.data,
                        kit.items[4].answer_id.size);
}

TEST(model_codex__events_and_items_are_one_message)
{
    static const char text[] = META USER_EVENT("06", "one") USER("07", "one") AGENT("08", "two")
        AGENT_EVENT("09", "two") USER("10", "three") USER_EVENT("11", "three")
            AGENT_EVENT("12", "four") AGENT("13", "four");
    struct model_kit kit;

    model_kit_read_text(&kit, "codex", text);
    assert_int_equal(count_messages(&kit, false), 4);
    assert_message(&kit, 0, WAL__ROLE_USER, "one");
    assert_message(&kit, 1, WAL__ROLE_ASSISTANT, "two");
    assert_message(&kit, 2, WAL__ROLE_USER, "three");
    assert_message(&kit, 3, WAL__ROLE_ASSISTANT, "four");
}

TEST(model_codex__text_only_in_events_is_kept)
{
    static const char text[] =
        META USER_EVENT("06", "one") AGENT_EVENT("07", "two") USER_EVENT("08", "three")
            AGENT("09", "four") AGENT_EVENT("10", "four") AGENT_EVENT("11", "five");
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;

    model_kit_read_text(&kit, "codex", text);
    assert_int_equal(count_messages(&kit, true), 5);
    assert_message(&kit, 0, WAL__ROLE_USER, "one");
    assert_message(&kit, 1, WAL__ROLE_ASSISTANT, "two");
    assert_message(&kit, 2, WAL__ROLE_USER, "three");
    assert_message(&kit, 3, WAL__ROLE_ASSISTANT, "four");
    assert_message(&kit, 4, WAL__ROLE_ASSISTANT, "five");
    assert_true(model_kit_write(&kit, "codex", &files, NULL));
    assert_string_equal(files.items[0].data, text);
}

TEST(model_codex__rollback_makes_a_branch)
{
    static const char text[] =
        META USER("06", "one") USER_EVENT("07", "one") AGENT("08", "two") USER_EVENT("09", "wrong")
            USER("10", "wrong") AGENT("11", "no") USER("12", "wronger") AGENT("13", "no!")
                LINE("14", "event_msg", "\"type\":\"thread_rolled_back\",\"num_turns\":2")
                    USER_EVENT("15", "right") USER("16", "right");
    static const char wanted[] = META USER("06", "one") USER_EVENT("07", "one") AGENT("08", "two")
        USER_EVENT("15", "right") USER("16", "right");
    struct model_kit_files files = {.items = NULL};
    uint64_t losses[WAL__FEATURE_COUNT] = {0};
    struct model_kit kit;
    struct model_kit again;

    model_kit_read_text(&kit, "codex", text);
    assert_int_equal(count_messages(&kit, false), 7);
    assert_int_equal(count_messages(&kit, true), 3);
    assert_true(model_kit_write(&kit, "codex", &files, losses));
    assert_string_equal(files.items[0].data, wanted);
    assert_int_equal(losses[WAL__FEATURE_BRANCHES], 4);
    files = (struct model_kit_files){.items = NULL};
    /* Where there are branches, it is one. */
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    model_kit_read(&again, "pi", &files);
    assert_int_equal(count_messages(&again, false), 7);
    assert_int_equal(count_messages(&again, true), 3);
}

TEST(model_codex__rollback_of_all_turns_begins_a_new_root)
{
    static const char text[] = META USER("06", "one") AGENT("07", "two")
        LINE("08", "event_msg", "\"type\":\"thread_rolled_back\",\"num_turns\":9")
            USER("09", "three");
    struct model_kit kit;

    model_kit_read_text(&kit, "codex", text);
    assert_int_equal(count_messages(&kit, true), 1);
}

static const struct wal__model_item *first_of(const struct model_kit *kit,
                                              enum wal__model_item_kind kind, size_t *index)
{
    for (size_t i = 0; i < kit->count; i++) {
        if (kit->items[i].kind == kind) {
            *index = i;
            return &kit->items[i];
        }
    }
    fail();
    return NULL;
}

#define COMPACTED(second) LINE(second, "compacted", "\"message\":\"so far\"")
#define ROLLED_BACK(second, turns) \
    LINE(second, "event_msg", "\"type\":\"thread_rolled_back\",\"num_turns\":" turns)

/* A rollback keeps a compaction that only later turns follow, and removes one whose earlier turns
 * are rolled back. */
TEST(model_codex__rollback_over_a_compaction)
{
    static const char near[] = META USER("06", "one") AGENT("07", "two") COMPACTED("08")
        USER("09", "three") AGENT("10", "four") ROLLED_BACK("11", "1") USER("12", "five");
    static const char far[] = META USER("06", "one") AGENT("07", "two") COMPACTED("08")
        USER("09", "three") AGENT("10", "four") ROLLED_BACK("11", "2") USER("12", "five");
    struct model_kit kit;
    size_t at = 0;

    model_kit_read_text(&kit, "codex", near);
    first_of(&kit, WAL__ITEM_COMPACTION, &at);
    assert_true(kit.is_live[at]);
    assert_int_equal(count_messages(&kit, true), 3);
    model_kit_read_text(&kit, "codex", far);
    first_of(&kit, WAL__ITEM_COMPACTION, &at);
    assert_false(kit.is_live[at]);
    assert_int_equal(count_messages(&kit, true), 1);
}

/* Invalid counts change nothing; such lines are kept verbatim. */
TEST(model_codex__invalid_rollbacks)
{
    static const char *const counts[] = {"0", "-1", "1.5", "\"1\"", "null", "99999999999999999999"};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        char text[2048];
        struct model_kit kit;
        strcpy(text, META USER("06", "one") AGENT("07", "two"));
        snprintf(text + strlen(text), 512,
                 "{\"timestamp\":\"2026-01-02T03:04:08.000Z\",\"type\":"
                 "\"event_msg\",\"payload\":{\"type\":"
                 "\"thread_rolled_back\",\"num_turns\":%s}}\n",
                 counts[i]);
        strcat(text, USER("09", "three"));
        model_kit_read_text(&kit, "codex", text);
        assert_int_equal(count_messages(&kit, true), 3);
    }
}

/* It replaces all before it: other clients get it as the summary. */
TEST(model_codex__replacement_history_is_the_summary)
{
    static const char text[] = META USER("06", "one") AGENT("07", "two")
        LINE("08", "compacted",
             "\"message\":\"sum\",\"replacement_history\":[{\"type\":\"message\","
             "\"role\":\"developer\",\"content\":[{\"type\":\"input_text\","
             "\"text\":\"rules\"}]},{\"type\":\"message\",\"role\":\"user\","
             "\"content\":[{\"type\":\"input_text\",\"text\":"
             "\"<environment_context>x</environment_context>\"}]},{\"type\":"
             "\"message\",\"role\":\"user\",\"content\":[{\"type\":"
             "\"input_text\",\"text\":\"one\"}]},{\"type\":\"message\",\"role\":"
             "\"user\",\"content\":[{\"type\":\"input_text\",\"text\":"
             "\"It was: sum\"}]}]") USER("09", "three");
    static const char empty[] =
        META USER("06", "one") LINE("08", "compacted",
                                    "\"message\":\"sum\",\"replacement_history\":[{\"type\":"
                                    "\"compaction\",\"encrypted_content\":\"gAAAAA\"},7,{}]");
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    size_t at = 0;

    model_kit_read_text(&kit, "codex", text);
    assert_is(first_of(&kit, WAL__ITEM_COMPACTION, &at)->text, "one\n\nIt was: sum");
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    assert_non_null(strstr(files.items[0].data, "\"summary\":\"one\\n\\nIt was: sum\""));
    files = (struct model_kit_files){.items = NULL};
    assert_true(model_kit_write(&kit, "codex", &files, NULL));
    assert_string_equal(files.items[0].data, text);
    model_kit_read_text(&kit, "codex", empty);
    assert_is(first_of(&kit, WAL__ITEM_COMPACTION, &at)->text, "sum");
}

TEST(model_codex__unchanged_lines_are_written_verbatim)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    char *text = generated_file();
    char *wrong;
    char *right;

    model_kit_read_text(&kit, "codex", text);
    assert_true(model_kit_write(&kit, "codex", &files, NULL));
    assert_string_equal(files.items[0].path, "sessions/2026/01/02/"
                                             "rollout-2026-01-02T03-04-01-" ID ".jsonl");
    /* All of it but for the turn that was taken back. */
    wrong = strstr(text, "A wrong turn");
    right = strstr(text, "A right one");
    assert_non_null(wrong);
    assert_non_null(right);
    while (wrong[-1] != '\n') {
        wrong--;
    }
    while (right[-1] != '\n') {
        right--;
    }
    memmove(wrong, right, strlen(right) + 1);
    assert_string_equal(files.items[0].data, text);
}

TEST(model_codex__regenerated_session_is_equivalent)
{
    const uint64_t carries = wal__dialect_find("codex")->write_ops->carries;
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    struct model_kit again;
    char *text = generated_file();

    model_kit_read_text(&kit, "codex", text);
    for (size_t i = 0; i < kit.count; i++) {
        kit.items[i].raw.size = 0;
        kit.items[i].raw_items_left = 0;
    }
    kit.session.raw.size = 0;
    kit.session.dialect = NULL;
    assert_true(model_kit_write(&kit, "codex", &files, NULL));
    model_kit_read(&again, "codex", &files);
    model_kit_assert_same(&kit, &again, carries, NULL);
}

/* People see events, the model sees items: both are written. */
TEST(model_codex__other_sessions_get_events_and_items)
{
    static const char text[] =
        "{\"type\":\"session\",\"version\":3,\"id\":\"" ID "\",\"timestamp\":"
        "\"2026-01-02T03:04:05.000Z\",\"cwd\":\"/home/u/p\"}\n"
        "{\"type\":\"message\",\"id\":\"00000001\",\"parentId\":null,"
        "\"timestamp\":\"2026-01-02T03:04:06.000Z\",\"message\":{\"role\":"
        "\"user\",\"content\":\"hi\"}}\n"
        "{\"type\":\"message\",\"id\":\"00000002\",\"parentId\":\"00000001\","
        "\"timestamp\":\"2026-01-02T03:04:07.000Z\",\"message\":{\"role\":"
        "\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"ho\"},"
        "{\"type\":\"toolCall\",\"id\":\"c1\",\"name\":\"read\","
        "\"arguments\":{\"n\":1.50}}]}}\n"
        "{\"type\":\"message\",\"id\":\"00000003\",\"parentId\":\"00000002\","
        "\"timestamp\":\"2026-01-02T03:04:08.000Z\",\"message\":{\"role\":"
        "\"toolResult\",\"toolCallId\":\"c1\",\"content\":[{\"type\":"
        "\"text\",\"text\":\"r\"}]}}\n";
    static const char wanted[] =
        LINE("05", "session_meta",
             "\"id\":\"" ID "\",\"timestamp\":\"2026-01-02T03:04:05.000Z\","
             "\"cwd\":\"/home/u/p\",\"originator\":\"walconv\","
             "\"cli_version\":\"0.0.0\",\"model_provider\":\"openai\",\"source\":\"cli\"")
            LINE("06", "event_msg", "\"type\":\"user_message\",\"message\":\"hi\"") USER("06", "hi")
                AGENT_EVENT("07", "ho") AGENT("07", "ho")
                    LINE("07", "response_item",
                         "\"type\":\"function_call\",\"name\":\"read\",\"arguments\":"
                         "\"{\\\"n\\\":1.50}\",\"call_id\":\"c1\"")
                        LINE("08", "response_item",
                             "\"type\":\"function_call_output\",\"call_id\":\"c1\","
                             "\"output\":\"r\"");
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;

    model_kit_read_text(&kit, "pi", text);
    assert_true(model_kit_write(&kit, "codex", &files, NULL));
    assert_string_equal(files.items[0].data, wanted);
    /* That provider is the client's, not the one of the answers. */
    model_kit_read_text(&kit, "codex", files.items[0].data);
    assert_int_equal(kit.session.provider.size, 0);
}

/* The client takes no other id, and looks for it in the file's name. */
TEST(model_codex__session_ids_become_uuids)
{
    static const char *const texts[] = {
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":"
        "\"2026-01-02T03:04:05.000Z\"}\n",
        LINE("05", "session_meta", "\"id\":\"s\",\"cwd\":\"/\""),
    };
    static const char *const dialects[] = {"pi", "codex"};
    char name[64];

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct model_kit_files files = {.items = NULL};
        struct model_kit kit;
        struct model_kit again;
        model_kit_read_text(&kit, dialects[i], texts[i]);
        assert_true(model_kit_write(&kit, "codex", &files, NULL));
        model_kit_read(&again, "codex", &files);
        assert_int_equal(again.session.id.size, 38);
        snprintf(name, sizeof(name), "-%.36s.jsonl", (const char *)again.session.id.data + 1);
        assert_non_null(model_kit_files_find(&files, name));
    }
}

TEST(model_codex__untagged_form_is_written_tagged)
{
    static const char text[] = "{\"id\":\"" ID "\",\"timestamp\":\"2025-06-02T03:04:05.000Z\","
                               "\"instructions\":null,\"git\":{\"branch\":\"main\"}}\n"
                               "{\"record_type\":\"state\"}\n"
                               "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":"
                               "\"input_text\",\"text\":\"hi\"}]}\n"
                               "{\"type\":\"function_call\",\"id\":\"fc_1\",\"name\":\"shell\","
                               "\"arguments\":\"{}\",\"call_id\":\"c1\"}\n"
                               "{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":"
                               "\"r\"}\n";
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;

    model_kit_read_text(&kit, "codex", text);
    assert_is(kit.session.id, ID);
    assert_int_equal(kit.count, 5);
    assert_int_equal(kit.items[1].kind, WAL__ITEM_LINE);
    assert_int_equal(kit.items[4].role, WAL__ROLE_TOOL);
    assert_true(model_kit_write(&kit, "codex", &files, NULL));
    assert_non_null(strstr(files.items[0].data, "\"type\":\"session_meta\""));
    assert_non_null(strstr(files.items[0].data, "\"user_message\""));
    assert_non_null(strstr(files.items[0].data, "\"response_item\""));
}

/* Encrypted content is unchanged after a conversion to another dialect. */
TEST(model_codex__encrypted_content_survives)
{
    static const char *const others[] = {"pi", "claude", "entries", "rollouts"};
    char *text = generated_file();
    struct model_kit kit;

    model_kit_read_text(&kit, "codex", text);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct model_kit_files there = {.items = NULL};
        struct model_kit_files back = {.items = NULL};
        struct model_kit other;
        assert_true(model_kit_write(&kit, others[i], &there, NULL));
        model_kit_read(&other, others[i], &there);
        assert_true(model_kit_write(&other, "codex", &back, NULL));
        assert_non_null(strstr(back.items[0].data, "\"encrypted_content\":\"gAAAAABo1234==\""));
        assert_non_null(strstr(back.items[0].data, "\"encrypted_content\":\"gAAAAABo5678==\""));
    }
}

/* A rollout that is cut anywhere after its rollback is written as a prefix of the output of the
 * whole one. */
TEST(model_codex__every_beginning_is_read)
{
    struct model_kit_files whole = {.items = NULL};
    struct model_kit kit;
    char *text = generated_file();
    size_t lines = 0;

    model_kit_read_text(&kit, "codex", text);
    assert_true(model_kit_write(&kit, "codex", &whole, NULL));
    for (char *end = text; (end = strchr(end, '\n')) != NULL; end++) {
        struct model_kit_files files = {.items = NULL};
        struct model_kit_files other = {.items = NULL};
        char *rest = strcpy(test_memory(strlen(end)), end + 1);
        end[1] = '\0';
        model_kit_read_text(&kit, "codex", text);
        assert_true(model_kit_write(&kit, "codex", &files, NULL));
        assert_true(model_kit_write(&kit, "pi", &other, NULL));
        if (strstr(text, "thread_rolled_back") != NULL) {
            assert_memory_equal(files.items[0].data, whole.items[0].data, files.items[0].size);
        }
        memcpy(end + 1, rest, strlen(rest) + 1);
        lines++;
    }
    assert_true(lines > 40);
}

TEST(model_codex__failed_output_is_an_error)
{
    static const char text[] = META USER("06", "one");
    struct model_kit_files files = {.fails = true};
    struct model_kit kit;

    model_kit_read_text(&kit, "codex", text);
    assert_false(model_kit_write(&kit, "codex", &files, NULL));
}

#define HEADER                                                               \
    "{\"type\": \"session\", \"id\": \"s-1\", \"timestamp\": "               \
    "\"2026-01-02T03:04:05.678901\", \"cwd\": \"/home/u/a p\", \"provider\"" \
    ": \"anthropic\", \"model\": \"m\"}\n"

static const char everything[] =
    HEADER "{\"type\": \"message\", \"timestamp\": \"2026-01-02T03:04:06.000Z\", "
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
}

TEST(model_rollouts__unchanged_lines_are_written_verbatim)
{
    struct model_kit_files files = {.items = NULL};
    uint64_t losses[WAL__FEATURE_COUNT] = {0};
    struct model_kit kit;

    model_kit_read_text(&kit, "rollouts", everything);
    assert_true(model_kit_write(&kit, "rollouts", &files, losses));
    assert_int_equal(files.count, 1);
    assert_string_equal(files.items[0].path,
                        "sessions/--home-u-a p--/2026-01-02T03-04-05_s-1.jsonl");
    assert_string_equal(files.items[0].data, everything);
    for (size_t i = 0; i < WAL__FEATURE_COUNT; i++) {
        assert_int_equal(losses[i], 0);
    }
}

TEST(model_rollouts__regenerated_session_is_equivalent)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit again;
    struct model_kit kit;
    uint64_t carries = wal__dialect_find("rollouts")->write_ops->carries;

    model_kit_read_text(&kit, "rollouts", everything);
    for (size_t i = 0; i < kit.count; i++) {
        kit.items[i].raw.size = 0;
    }
    kit.session.raw.size = 0;
    assert_true(model_kit_write(&kit, "rollouts", &files, NULL));
    model_kit_read(&again, "rollouts", &files);
    model_kit_assert_same(&kit, &again, carries, NULL);
    assert_is(again.session.provider, "anthropic");
    assert_is(again.session.model, "m");
}

/* Its reader refuses the whole file for one block that it does not know. */
TEST(model_rollouts__unknown_blocks_are_not_written)
{
    static const char text[] =
        HEADER "{\"type\": \"message\", \"timestamp\": \"2026-01-02T03:04:06.000Z\", "
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
    assert_non_null(strstr(files.items[0].data, "[{\"type\":\"text\",\"text\":\"a\"},"
                                                "{\"type\":\"text\",\"text\":\"c\"}]"));
    assert_int_equal(losses[WAL__FEATURE_BLOCKS], 1);
}

/* What pi has entries for is a plain message here, or is lost and counted. */
TEST(model_rollouts__a_summary_is_a_users_message)
{
    static const char text[] = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":"
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
}

TEST(model_rollouts__failed_output_is_an_error)
{
    struct model_kit_files files = {.fails = true};
    struct model_kit kit;

    model_kit_read_text(&kit, "rollouts", everything);
    assert_false(model_kit_write(&kit, "rollouts", &files, NULL));
}
