/*
 * test_model_linear.c - sessions whose lines are one sequence, in which a line may go back: those
 * of GitHub Copilot CLI and of Gemini CLI. What a person saw in the client is the branch to the
 * head.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

enum { SHOWN_SIZE = 4096 };

static void add(char *shown, const char *text, size_t size)
{
    size_t used = strlen(shown);

    snprintf(shown + used, SHOWN_SIZE - used, "%.*s", (int)size, text);
}

/* The messages on the branch: "user:TEXT;", "assistant:TEXT[CALL];", "tool(CALL):TEXT;". */
static void assert_shown(const char *dialect, const char *text, const char *expected)
{
    static const char *const roles[] = {"user", "assistant", "system", "tool"};
    char shown[SHOWN_SIZE] = "";
    struct model_kit kit;

    model_kit_read_text(&kit, dialect, text);
    for (size_t i = 0; i < kit.count; i++) {
        const struct wal__model_item *item = &kit.items[i];

        if (item->kind != WAL__ITEM_MESSAGE || !kit.is_live[i]) {
            continue;
        }
        add(shown, item->is_meta ? "meta" : roles[item->role], 16);
        if (item->role == WAL__ROLE_TOOL) {
            add(shown, item->is_error ? "!" : "", 1);
            add(shown, "(", 1);
            add(shown, (const char *)item->call.data + 1, item->call.size - 2);
            add(shown, ")", 1);
        }
        add(shown, ":", 1);
        for (size_t j = 0; j < item->block_count; j++) {
            const struct wal__model_block *block = &item->blocks[j];
            struct wal__json_span span =
                block->kind == WAL__BLOCK_TOOL_CALL ? block->id : block->text;
            const char *open = block->kind == WAL__BLOCK_TOOL_CALL  ? "["
                               : block->kind == WAL__BLOCK_THINKING ? "<"
                                                                    : "";
            add(shown, open, 1);
            if (span.size > 2) {
                add(shown, (const char *)span.data + 1, span.size - 2);
            }
            add(shown, *open == '[' ? "]" : *open == '<' ? ">" : "", 1);
        }
        add(shown, ";", 1);
    }
    assert_string_equal(shown, expected);
}

/* What is written in the same dialect shows the same. */
static void assert_same_again(const char *dialect, const char *text, const char *expected)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;

    assert_shown(dialect, text, expected);
    model_kit_read_text(&kit, dialect, text);
    assert_true(model_kit_write(&kit, dialect, &files, NULL));
    assert_int_equal(files.count, 1);
    assert_shown(dialect, files.items[0].data, expected);
}

/* --- Copilot -------------------------------------------------------------- */

#define EVENT(type, id, more, data)                                    \
    "{\"type\":\"" type "\",\"id\":\"" id "\",\"parentId\":null," more \
    "\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"data\":{" data "}}\n"
#define COPILOT_START   EVENT("session.start", "e0", "", "\"sessionId\":\"s\",\"version\":1")
#define ASKED(id, text) EVENT("user.message", id, "", "\"content\":\"" text "\"")
#define SAID(id, text)  EVENT("assistant.message", id, "", "\"content\":\"" text "\"")

TEST(copilot__main_agent_continues_after_its_last_event)
{
    assert_shown("copilot",
                 COPILOT_START ASKED("e1", "go") EVENT("assistant.message", "e2",
                                                       "\"agentId\":\"a\",", "\"content\":\"sub\"")
                     EVENT("assistant.message", "e3", "",
                           "\"content\":\"sub too\",\"parentToolCallId\":\"c\"") SAID("e4", "done"),
                 "user:go;assistant:done;");
}

TEST(copilot__rewind_goes_back_to_before_an_event)
{
    assert_same_again("copilot",
                      COPILOT_START ASKED("e1", "one") SAID("e2", "two") ASKED("e3", "no")
                          EVENT("session.snapshot_rewind", "e4", "", "\"upToEventId\":\"e3\"")
                              ASKED("e5", "yes"),
                      "user:one;assistant:two;user:yes;");
}

TEST(copilot__message_of_a_skill_is_by_no_person)
{
    assert_shown(
        "copilot",
        COPILOT_START EVENT("user.message", "e1", "",
                            "\"content\":\"how\",\"source\":\"skill-pdf\"")
            EVENT("user.message", "e2", "", "\"content\":\"hi\",\"transformedContent\":\"now: hi\"")
                EVENT("user.message", "e3", "", "\"content\":\"<skill-context>\""),
        "meta:how;user:hi;meta:<skill-context>;");
}

TEST(copilot__arguments_are_an_object_or_a_text)
{
    assert_shown("copilot",
                 COPILOT_START EVENT("assistant.message", "e1", "",
                                     "\"content\":\"\",\"reasoningText\":\"hm\",\"toolRequests\":["
                                     "{\"toolCallId\":\"c1\",\"name\":\"a\",\"arguments\":{}},"
                                     "{\"toolCallId\":\"c2\",\"name\":\"b\",\"arguments\":\"{}\"}]")
                     EVENT("tool.execution_complete", "e2", "",
                           "\"toolCallId\":\"c1\",\"success\":true,\"result\":{\"content\":\"r\"}")
                         EVENT("tool.execution_complete", "e3", "",
                               "\"toolCallId\":\"c2\",\"success\":false,"
                               "\"error\":{\"message\":\"no\"}"),
                 "assistant:<hm>[c1][c2];tool(c1):r;tool!(c2):no;");
}

TEST(copilot__thinking_that_comes_twice_is_read_once)
{
    assert_shown("copilot",
                 COPILOT_START EVENT("assistant.reasoning", "e1", "", "\"content\":\"hm\"") EVENT(
                     "assistant.message", "e2", "", "\"content\":\"so\",\"reasoningText\":\"hm\""),
                 "assistant:<hm>;assistant:so;");
}

/* --- Gemini --------------------------------------------------------------- */

#define GEMINI_START \
    "{\"sessionId\":\"s\",\"projectHash\":\"h\",\"startTime\":\"2026-01-02T03:04:05.000Z\"}\n"
#define MESSAGE(type, id, more) \
    "{\"id\":\"" id "\",\"timestamp\":\"2026-01-02T03:04:06.000Z\",\"type\":\"" type "\"," more "}"
#define USER(id, text) MESSAGE("user", id, "\"content\":\"" text "\"")
#define CALLED(result)                                                                     \
    "\"content\":\"\",\"toolCalls\":[{\"id\":\"c\",\"name\":\"n\",\"args\":{},\"status\":" \
    "\"success\"" result "}]"
#define RESPONSE(text) \
    "[{\"functionResponse\":{\"id\":\"c\",\"name\":\"n\",\"response\":{\"output\":\"" text "\"}}}]"

TEST(gemini__later_line_with_its_id_replaces_a_message)
{
    assert_same_again(
        "gemini",
        GEMINI_START USER("m1", "go") "\n" MESSAGE(
            "gemini", "m2",
            CALLED("")) "\n"
                        "{\"$set\":{\"lastUpdated\":\"x\"}}\n" MESSAGE(
                            "gemini", "m2",
                            CALLED(",\"result\":" RESPONSE("r"))) "\n" USER("m3", "on") "\n",
        "user:go;assistant:[c];tool(c):r;user:on;");
}

TEST(gemini__rewind_goes_back_to_before_a_message)
{
    assert_same_again("gemini",
                      GEMINI_START USER("m1", "one") "\n" USER("m2", "no") "\n" USER(
                          "m3", "nor this") "\n{\"$rewindTo\":\"m2\"}\n" USER("m4", "yes") "\n",
                      "user:one;user:yes;");
}

TEST(gemini__rewind_to_an_unknown_message_drops_all)
{
    assert_same_again(
        "gemini",
        GEMINI_START USER("m1", "one") "\n{\"$rewindTo\":\"m9\"}\n" USER("m2", "two") "\n",
        "user:two;");
}

TEST(gemini__set_of_messages_replaces_all_before_it)
{
    assert_shown(
        "gemini",
        GEMINI_START USER("m1", "long") "\n{\"$set\":{\"messages\":[" USER(
            "m5", "short") "," MESSAGE("gemini", "m6",
                                       CALLED(",\"result\":" RESPONSE(
                                           "r"))) "," MESSAGE("user", "m7",
                                                              "\"content\":" RESPONSE(
                                                                  "r")) "]}}\n" USER("m8",
                                                                                     "on") "\n",
        "user:short;assistant:[c];tool(c):r;user:on;");
}

TEST(gemini__what_was_displayed_is_what_the_user_said)
{
    assert_shown("gemini",
                 GEMINI_START MESSAGE("user", "m1",
                                      "\"content\":[{\"text\":\"@a\"},{\"text\":\"its lines\"}],"
                                      "\"displayContent\":[{\"text\":\"@a\"}]") "\n",
                 "user:@a;");
}

/* --- token counts --------------------------------------------------------- */

/* Codex counts reasoning in the output; Gemini and OpenCode count it separately. */
TEST(linear__reasoning_is_counted_once)
{
    static const char codex[] =
        "{\"timestamp\":\"2026-03-01T10:00:00.000Z\",\"type\":\"session_meta\",\"payload\":{"
        "\"id\":\"33333333-3333-4333-8333-333333333333\",\"cwd\":\"/srv/app\"}}\n"
        "{\"timestamp\":\"2026-03-01T10:00:01.000Z\",\"type\":\"response_item\",\"payload\":{"
        "\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\","
        "\"text\":\"so\"}]}}\n"
        "{\"timestamp\":\"2026-03-01T10:00:02.000Z\",\"type\":\"event_msg\",\"payload\":{"
        "\"type\":\"token_count\",\"info\":{\"last_token_usage\":{\"input_tokens\":100,"
        "\"output_tokens\":10,\"reasoning_output_tokens\":2}}}}\n";
    static const struct {
        const char *dialect;
        const char *counts;
    } cases[] = {
        {"gemini", "\"output\":8,\"cached\":0,\"thoughts\":2,\"total\":110}"},
        {"opencode", "\"output\":8,\"reasoning\":2,"},
        {"qwen", "\"candidatesTokenCount\":10,\"cachedContentTokenCount\":0,"
                 "\"thoughtsTokenCount\":2,\"totalTokenCount\":110}"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model_kit_files files = {.items = NULL};
        struct model_kit_files again = {.items = NULL};
        struct model_kit kit;
        struct model_kit read;
        bool is_found = false;

        model_kit_read_text(&kit, "codex", codex);
        assert_true(model_kit_write(&kit, cases[i].dialect, &files, NULL));
        for (size_t j = 0; j < files.count; j++) {
            is_found |= strstr(files.items[j].data, cases[i].counts) != NULL;
        }
        assert_true(is_found);
        model_kit_read(&read, cases[i].dialect, &files);
        assert_true(model_kit_write(&read, "entries", &again, NULL));
        assert_non_null(strstr(again.items[0].data, "\"output\":10"));
        assert_non_null(strstr(again.items[0].data, "\"reasoning\":2"));
    }
}

/* --- bad input ------------------------------------------------------------ */

TEST(linear__bad_values_are_read_without_a_loss_of_the_rest)
{
    static const char *const bad[] = {
        "{}\n",
        "[]\n",
        "null\n",
        "{\"type\":\"user.message\",\"id\":7,\"data\":7}\n",
        "{\"type\":\"assistant.message\",\"id\":\"x\",\"data\":{\"toolRequests\":[7,{},[]]}}\n",
        "{\"type\":\"tool.execution_complete\",\"data\":{\"result\":[],\"error\":{}}}\n",
        "{\"type\":\"user.message\",\"id\":\"x\",\"data\":{\"walconvContent\":[null,null,7]}}\n",
        "{\"id\":\"x\",\"type\":\"gemini\",\"content\":7,\"thoughts\":[7],\"toolCalls\":[7,{}]}\n",
        "{\"id\":\"x\",\"type\":\"user\",\"content\":{\"text\":\"\\ud83d\"}}\n",
        "{\"$set\":{\"messages\":[7,{},{\"id\":\"y\"}],\"messages\":[]}}\n",
        "{\"$rewindTo\":\"\"}\n",
        "{\"id\":\"\",\"type\":\"user\",\"content\":[]}\n",
        "{\"type\":\"session.snapshot_rewind\",\"id\":\"x\",\"data\":{\"upToEventId\":\"x\"}}\n",
    };
    static const char *const dialects[] = {"copilot", "gemini"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (size_t j = 0; j < 2; j++) {
            struct model_kit_files files = {.items = NULL};
            char text[SHOWN_SIZE];
            struct model_kit kit;

            snprintf(text, sizeof(text), "%s%s%s%s", j == 0 ? COPILOT_START : GEMINI_START, bad[i],
                     bad[i], j == 0 ? ASKED("e1", "hi") : USER("m1", "hi") "\n");
            model_kit_read_text(&kit, dialects[j], text);
            assert_int_equal(kit.damaged, 0);
            assert_true(model_kit_write(&kit, "claude", &files, NULL));
            assert_non_null(strstr(files.items[0].data, "\"hi\""));
        }
    }
}
