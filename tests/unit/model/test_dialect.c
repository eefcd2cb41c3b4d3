/*
 * test_dialect.c - which dialect a line is of, and what is read out of it; the tables of words and
 * fields of convert/model/vocabulary, in both directions; and rules of the clients that read what a
 * writer wrote: each test states the rule and the version of the client in which it was seen.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/model/dialect.h"
#include "convert/model/model_member.h"
#include "format/json/json_out.h"
#include "format/json/json_text.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

static const char *recognised(const char *line, bool is_first)
{
    const struct wal__dialect *dialect = wal__dialect_recognise(line, strlen(line), is_first);

    return dialect != NULL ? dialect->name : "";
}

static struct wal__line_info read_as(const char *name, const char *text)
{
    struct wal__line_info line;
    const struct wal__dialect *dialect = wal__dialect_find(name);

    assert_non_null(dialect);
    assert_int_equal(wal__line_read(dialect, text, strlen(text), &line, NULL), WAL__JSON_OK);
    return line;
}

TEST(dialect__list_ends_with_lines)
{
    size_t count = 0;

    while (wal__dialect_at(count) != NULL) {
        assert_ptr_equal(wal__dialect_find(wal__dialect_at(count)->name), wal__dialect_at(count));
        count++;
    }
    assert_true(count >= 4);
    assert_string_equal(wal__dialect_at(count - 1)->name, "lines");
    assert_null(wal__dialect_find("none"));
    assert_null(wal__dialect_find(""));
}

TEST(dialect__recognised_by_content)
{
    static const struct {
        const char *name;
        const char *line;
    } cases[] = {
        {"pi", "{\"type\":\"session\",\"id\":\"x\"}"},
        {"pi", " {\"id\":\"x\",\"z\":1,\"type\":\"sess\\u0069on\"}\r"},
        {"pi", "{\"type\":\"session\",\"id\":\"x\",\"timestamp\":\"t\","
               "\"cwd\":\"/\",\"provider\":\"p\",\"modelId\":\"m\"}"},
        {"rollouts", "{\"type\":\"session\",\"id\":\"x\",\"timestamp\":"
                     "\"t\",\"cwd\":\"/\",\"provider\":\"p\","
                     "\"model\":\"m\"}"},
        {"codex", "{\"timestamp\":\"t\",\"type\":\"session_meta\","
                  "\"payload\":{}}"},
        {"codex", "{\"id\":\"x\",\"timestamp\":\"t\","
                  "\"instructions\":null}"},
        {"entries", "{\"type\":\"session_header\",\"payload\":{}}"},
        {"claude", "{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":\"s\"}"},
        {"claude", "{\"type\":\"x\",\"uuid\":\"u\",\"parentUuid\":null}"},
        {"claude", "{\"type\":\"summary\",\"summary\":\"t\","
                   "\"leafUuid\":\"l\"}"},
        {"claude", "{\"type\":\"user\",\"message\":{},\"cwd\":\"/\"}"},
        {"claude", "{\"type\":\"file-history-snapshot\","
                   "\"messageId\":\"m\"}"},
        {"gemini", "{\"sessionId\":\"s\",\"projectHash\":\"h\",\"startTime\":\"t\"}"},
        {"gemini", "{\"$set\":{}}"},
        {"gemini", "{\"$rewindTo\":\"i\"}"},
        {"gemini", "{\"type\":\"tabnine\",\"id\":\"i\",\"timestamp\":\"t\",\"content\":\"\"}"},
        {"", "{\"$rewindTo\":7}"},
        {"", "{\"sessionId\":\"s\",\"startTime\":\"t\"}"},
        {"", "{\"type\":\"user\",\"id\":\"i\",\"timestamp\":\"t\",\"content\":\"\"}"},
        {"copilot", "{\"type\":\"session.start\",\"data\":{},\"id\":\"i\","
                    "\"timestamp\":\"t\",\"parentId\":null}"},
        {"copilot", "{\"type\":\"hook.start\",\"data\":{},\"id\":\"i\","
                    "\"timestamp\":\"t\",\"parentId\":\"p\"}"},
        {"", "{\"type\":\"session.start\",\"data\":{},\"id\":\"i\",\"timestamp\":\"t\"}"},
        {"", "{\"type\":\"message.updated\",\"data\":{},\"id\":\"i\","
             "\"timestamp\":\"t\",\"parentId\":null}"},
        {"", "{\"type\":\"user.message\",\"data\":[],\"id\":\"i\","
             "\"timestamp\":\"t\",\"parentId\":null}"},
        {"", "{\"timestamp\":\"t\",\"type\":\"session_meta\"}"},
        {"", "{\"id\":\"i\",\"timestamp\":\"t\",\"type\":\"event_msg\","
             "\"payload\":{}}"},
        {"", "{\"type\":\"session\",\"id\":7}"},
        {"", "{\"type\":\"session\",\"version\":0,\"id\":\"x\"}"},
        {"", "{\"type\":\"summary\",\"summary\":\"t\"}"},
        {"", "{\"type\":\"user\",\"message\":\"text\",\"cwd\":\"/\"}"},
        {"", "{\"role\":\"user\",\"content\":\"x\"}"},
        {"", "[{\"type\":\"session\",\"id\":\"x\"}]"},
        {"", "{\"type\":\"session\",\"id\":\"x\""},
        {"", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(recognised(cases[i].line, true), cases[i].name);
    }
}

TEST(dialect__header_is_recognised_in_the_first_line_only)
{
    assert_string_equal(recognised("{\"type\":\"session\",\"id\":\"x\"}", false), "");
    assert_string_equal(recognised("{\"type\":\"session_header\"}", false), "");
    assert_string_equal(recognised("{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":\"s\"}", false),
                        "claude");
    assert_string_equal(recognised("{\"timestamp\":\"t\",\"type\":\"event_msg\","
                                   "\"payload\":{}}",
                                   false),
                        "codex");
    assert_string_equal(
        recognised("{\"id\":\"x\",\"timestamp\":\"t\",\"instructions\":\"\"}", false), "");
}

/* What is read of a line: texts, its link, whether the head moves, and what it is. */
static const char *describe(struct wal__line_info line)
{
    static const char *const links[] = {
        "previous", "head", "root", "explicit", "before", "main", "explicit or previous"};
    static const char *const heads[] = {"move", "keep", "extend"};
    static char text[512];
    const struct {
        const char *name;
        struct wal__json_span span;
    } spans[] = {{"id", line.id},           {"parent", line.parent}, {"type", line.type},
                 {"session", line.session}, {"cwd", line.cwd},       {"time", line.time},
                 {"title", line.title}};
    const struct {
        const char *name;
        bool is_set;
    } flags[] = {{"header", line.is_header},
                 {"subagent", line.is_subagent},
                 {"conversation", line.is_in_conversation},
                 {"sidechain", line.is_sidechain},
                 {"message", line.is_message},
                 {"newer", line.has_newer_version}};
    size_t used = 0;

    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        if (spans[i].span.size > 0) {
            used +=
                (size_t)snprintf(text + used, sizeof(text) - used, "%s=%.*s ", spans[i].name,
                                 (int)spans[i].span.size - 2, (const char *)spans[i].span.data + 1);
        }
    }
    used += (size_t)snprintf(text + used, sizeof(text) - used, "link %s, head %s", links[line.link],
                             heads[line.head]);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (flags[i].is_set) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, ", %s", flags[i].name);
        }
    }
    return text;
}

TEST(dialect__what_is_read_of_a_line)
{
    static const struct {
        const char *dialect;
        const char *line;
        const char *expected;
    } rows[] = {
        {"gemini",
         "{\"sessionId\":\"S\",\"projectHash\":\"h\",\"startTime\":\"T\",\"kind\":"
         "\"subagent\",\"directories\":[\"/w\",\"/x\"]}",
         "session=S cwd=/w time=T link previous, head move, header, subagent"},
        {"gemini", "{\"id\":\"i\",\"timestamp\":\"T\",\"type\":\"user\"}",
         "id=i parent=i type=user time=T link before, head move, conversation"},
        {"gemini", "{\"$rewindTo\":\"i\"}", "parent=i link before, head move"},
        {"gemini", "{\"$set\":{\"summary\":\"N\",\"directories\":7}}",
         "title=N link previous, head move"},
        {"gemini", "{\"$set\":{\"messages\":[]}}", "link root, head move"},
        {"copilot",
         "{\"type\":\"session.start\",\"data\":{\"sessionId\":\"S\",\"version\":2,\"context\":"
         "{\"cwd\":\"/w\"}},\"id\":\"i\",\"timestamp\":\"T\",\"parentId\":null}",
         "id=i type=session.start session=S cwd=/w time=T link main, head move, header, "
         "conversation, newer"},
        {"copilot", "{\"type\":\"assistant.message\",\"data\":{},\"agentId\":\"a\"}",
         "type=assistant.message link previous, head keep, conversation, sidechain"},
        {"copilot", "{\"type\":\"tool.execution_start\",\"data\":{\"parentToolCallId\":\"c\"}}",
         "type=tool.execution_start link previous, head keep, conversation, sidechain"},
        {"copilot", "{\"type\":\"session.snapshot_rewind\",\"data\":{\"upToEventId\":\"e\"}}",
         "parent=e type=session.snapshot_rewind link before, head move, conversation"},
        {"copilot", "{\"type\":\"session.title_changed\",\"data\":{\"title\":\"N\"}}",
         "type=session.title_changed title=N link main, head move, conversation"},
        {"copilot", "{\"type\":\"session.start\",\"data\":{\"context\":[]}}",
         "type=session.start link main, head move, header, conversation"},
        {"codex",
         "{\"timestamp\":\"T\",\"type\":\"session_meta\",\"payload\":{\"id\":\"S\",\"cwd\":"
         "\"/w\"}}",
         "type=session_meta session=S cwd=/w time=T link previous, head move, header, "
         "conversation"},
        {"codex",
         "{\"timestamp\":\"T\",\"type\":\"event_msg\",\"payload\":{\"type\":"
         "\"thread_name_updated\",\"thread_name\":\"N\"}}",
         "type=event_msg time=T title=N link previous, head move, conversation"},
        {"codex", "{\"id\":\"S\",\"timestamp\":\"T\",\"instructions\":null}",
         "session=S time=T link previous, head move, header, conversation"},
        {"codex", "{\"created_at\":\"T\",\"role\":\"user\"}",
         "time=T link previous, head move, conversation, message"},
        {"rollouts", "{\"type\":\"session\",\"id\":\"S\",\"timestamp\":\"T\",\"cwd\":\"/w\"}",
         "type=session session=S cwd=/w time=T link previous, head move, header, conversation"},
        {"rollouts", "{\"type\":\"message\",\"timestamp\":\"T\",\"message\":{\"role\":\"user\"}}",
         "type=message time=T link previous, head move, conversation"},
        {"pi", "{\"type\":\"session\",\"id\":\"S\",\"cwd\":\"/w\",\"timestamp\":\"T\"}",
         "id=S type=session session=S cwd=/w time=T link root, head move, header, conversation"},
        {"pi", "{\"type\":\"message\",\"id\":\"b\",\"parentId\":\"a\",\"cwd\":\"/other\"}",
         "id=b parent=a type=message link explicit, head move, conversation"},
        {"pi", "{\"type\":\"message\",\"parentId\":null}",
         "type=message link root, head move, conversation"},
        {"pi", "{\"type\":\"message\"}", "type=message link previous, head move, conversation"},
        {"pi", "{\"type\":\"session_info\",\"name\":\"N\"}",
         "type=session_info title=N link previous, head move, conversation"},
        {"claude",
         "{\"parentUuid\":\"p\",\"isSidechain\":false,\"cwd\":\"/w\",\"sessionId\":\"S\","
         "\"type\":\"user\",\"uuid\":\"u\"}",
         "id=u parent=p type=user session=S cwd=/w link explicit, head move, conversation"},
        {"claude", "{\"parentUuid\":null,\"isSidechain\":true,\"type\":\"user\",\"uuid\":\"u\"}",
         "id=u type=user link root, head keep, conversation, sidechain"},
        {"claude",
         "{\"type\":\"custom-title\",\"customTitle\":\"T\",\"id\":\"no\",\"parentUuid\":\"p\"}",
         "type=custom-title title=T link previous, head extend"},
        {"claude",
         "{\"parentUuid\":null,\"logicalParentUuid\":\"p\",\"uuid\":\"u\",\"type\":\"system\","
         "\"subtype\":\"compact_boundary\"}",
         "id=u parent=p type=system link explicit or previous, head move, conversation"},
        {"claude",
         "{\"parentUuid\":null,\"uuid\":\"u\",\"type\":\"system\",\"subtype\":"
         "\"compact_boundary\"}",
         "id=u type=system link explicit or previous, head move, conversation"},
        {"entries",
         "{\"type\":\"session_header\",\"id\":\"h\",\"payload\":{\"cwd\":\"/w\",\"sessionId\":"
         "\"S\"}}",
         "id=h type=session_header session=S cwd=/w link head, head extend, header, "
         "conversation"},
        {"entries", "{\"type\":\"m\",\"parentId\":null}",
         "type=m link root, head extend, conversation"},
        {"entries", "{\"type\":\"m\",\"parentId\":\"a\"}",
         "parent=a type=m link explicit, head extend, conversation"},
        {"lines", "{\"uuid\":\"u\",\"parentUuid\":\"p\",\"role\":\"user\"}",
         "id=u parent=p link explicit, head move, conversation, message"},
        {"lines", "{\"id\":7,\"parentId\":8,\"type\":{}}",
         "link previous, head move, conversation"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(describe(read_as(rows[i].dialect, rows[i].line)), rows[i].expected);
    }
}

TEST(dialect__claude_steps)
{
    static const struct {
        const char *members;
        enum wal__line_step step;
    } rows[] = {
        {"\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"t\"}", WAL__STEP_PROMPT},
        {"\"type\":\"user\",\"isMeta\":true,\"message\":{\"content\":\"t\"}", WAL__STEP_OTHER},
        {"\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\","
         "\"tool_use_id\":\"c\"}]}",
         WAL__STEP_RESULT},
        {"\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":"
         "\"\\\"tool_use_id\\\"\"}]}",
         WAL__STEP_PROMPT},
        {"\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[]}", WAL__STEP_ANSWER},
        {"\"type\":\"assistant\",\"message\":{\"id\":7,\"content\":[]}", WAL__STEP_PROMPT},
        {"\"type\":\"assistant\",\"message\":7", WAL__STEP_PROMPT},
        {"\"type\":\"attachment\",\"attachment\":{\"type\":\"queued_command\"}", WAL__STEP_OTHER},
        {"\"type\":7", WAL__STEP_OTHER},
        {"\"type\":\"system\",\"subtype\":\"compact_boundary\"", WAL__STEP_PROMPT},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "{\"uuid\":\"u\",\"parentUuid\":\"p\",%s}", rows[i].members);
        assert_int_equal(read_as("claude", text).step, rows[i].step);
    }
}

TEST(dialect__json_that_is_not_an_object_is_ignored)
{
    static const char *const texts[] = {"7", "null", "[1,{\"id\":\"x\"}]", "\"id\""};
    struct wal__line_info line;

    for (size_t d = 0; wal__dialect_at(d) != NULL; d++) {
        for (size_t i = 0; i < 4; i++) {
            line = read_as(wal__dialect_at(d)->name, texts[i]);
            assert_is(line.id, NULL);
            assert_is(line.type, NULL);
            assert_is(line.session, NULL);
        }
    }
}

TEST(dialect__invalid_line_leaves_the_outputs)
{
    static const char text[] = "{\"id\":\"a\",\"x\":nul}";
    struct wal__line_info line;
    struct wal__line_info before;
    size_t offset;

    memset(&before, 0x5A, sizeof(before));
    for (size_t d = 0; wal__dialect_at(d) != NULL; d++) {
        memcpy(&line, &before, sizeof(line));
        offset = 0;
        assert_int_equal(wal__line_read(wal__dialect_at(d), text, sizeof(text) - 1, &line, &offset),
                         WAL__JSON_SYNTAX);
        assert_memory_equal(&line, &before, sizeof(line));
        assert_int_equal(offset, sizeof(text) - 1 - 1);
    }
}

TEST(dialect__mark_and_blanks)
{
    struct wal__json_span text;

    text = wal__line_text("\xEF\xBB\xBF{}", 5);
    assert_int_equal(text.size, 2);
    assert_int_equal(text.data[0], '{');
    assert_int_equal(wal__line_text("\xEF\xBB", 2).size, 2);
    assert_int_equal(wal__line_text("", 0).size, 0);
    assert_true(wal__line_is_blank(" \t\r", 3));
    assert_true(wal__line_is_blank("", 0));
    assert_false(wal__line_is_blank("\0", 1));
    assert_false(wal__line_is_blank(" x", 2));
}

#define CLAUDE_ROW(type, id, parent, rest)                             \
    "{\"parentUuid\":" parent ",\"isSidechain\":false,\"cwd\":\"/w\"," \
    "\"sessionId\":\"11111111-1111-4111-8111-111111111111\","          \
    "\"type\":\"" type "\",\"uuid\":\"" id "\","                       \
    "\"timestamp\":\"2026-01-02T03:04:05.000Z\"," rest "}\n"
#define CLAUDE_CALLS                                                      \
    "\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":"        \
    "\"assistant\",\"model\":\"m\",\"content\":[{\"type\":\"tool_use\","  \
    "\"id\":\"c1\",\"name\":\"Read\",\"input\":{\"path\":\"/a\"}},"       \
    "{\"type\":\"tool_use\",\"id\":\"c2\",\"name\":\"Glob\",\"input\":"   \
    "{\"pattern\":\"*\"}},{\"type\":\"tool_use\",\"id\":\"c3\",\"name\":" \
    "\"Bash\",\"input\":{\"command\":\"ls\"}}]}"
#define CLAUDE_RESULT(call, text)                                            \
    "\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"," \
    "\"tool_use_id\":\"" call "\",\"content\":\"" text "\"}]}"
#define CLAUDE_PROMPT(text) "\"message\":{\"role\":\"user\",\"content\":\"" text "\"}"
#define CLAUDE_LEAF                                                     \
    "{\"type\":\"last-prompt\",\"lastPrompt\":\"undone\",\"leafUuid\":" \
    "\"00000000-0000-4000-8000-000000000002\",\"sessionId\":"           \
    "\"11111111-1111-4111-8111-111111111111\"}\n"
#define U1 "\"00000000-0000-4000-8000-000000000001\""
#define U2 "\"00000000-0000-4000-8000-000000000002\""
#define U3 "\"00000000-0000-4000-8000-000000000003\""
#define U4 "\"00000000-0000-4000-8000-000000000004\""

/* Three calls in one answer whose results came in another order. */
static const char parallel_calls[] = CLAUDE_ROW("user", "00000000-0000-4000-8000-000000000001",
                                                "null", CLAUDE_PROMPT("go"))
    CLAUDE_ROW("assistant", "00000000-0000-4000-8000-000000000002", U1, CLAUDE_CALLS) CLAUDE_ROW(
        "user", "00000000-0000-4000-8000-000000000003", U2, CLAUDE_RESULT("c2", "two"))
        CLAUDE_ROW("user", "00000000-0000-4000-8000-000000000004", U3, CLAUDE_RESULT("c1", "one"))
            CLAUDE_ROW("user", "00000000-0000-4000-8000-000000000005", U4,
                       CLAUDE_RESULT("c3", "three"));

#define CODEX_LINE(type, payload) \
    "{\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"type\":\"" type "\",\"payload\":{" payload "}}\n"
#define CODEX_META                                                                          \
    CODEX_LINE("session_meta", "\"id\":\"22222222-2222-4222-8222-222222222222\","           \
                               "\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"cwd\":\"/w\"," \
                               "\"originator\":\"o\",\"cli_version\":\"0\"")
#define CODEX_CALL(id, arguments)                                                \
    CODEX_LINE("response_item", "\"type\":\"function_call\",\"name\":\"shell\"," \
                                "\"arguments\":\"" arguments "\",\"call_id\":\"" id "\"")
#define CODEX_RESULT(id, text)                                                              \
    CODEX_LINE("response_item", "\"type\":\"function_call_output\",\"call_id\":\"" id "\"," \
                                "\"output\":\"" text "\"")
#define CODEX_TEXT(role, kind, text)                                    \
    CODEX_LINE("response_item", "\"type\":\"message\",\"role\":\"" role \
                                "\",\"content\":[{\"type\":\"" kind "\",\"text\":\"" text "\"}]")

/* Calls whose results come after the user's next message, and one before. */
static const char late_results[] = CODEX_META CODEX_TEXT("user", "input_text", "go")
    CODEX_CALL("c1", "{\\\"n\\\":1}") CODEX_CALL("c2", "{\\\"n\\\":2}")
        CODEX_TEXT("user", "input_text", "wait") CODEX_RESULT("c2", "two")
            CODEX_TEXT("assistant", "output_text", "well") CODEX_CALL("c3", "{\\\"n\\\":3}")
                CODEX_RESULT("c1", "one") CODEX_RESULT("c3", "three");

static void convert(const char *from, const char *text, const char *to, struct model_kit_files *out)
{
    struct model_kit kit;

    *out = (struct model_kit_files){.items = NULL};
    model_kit_read_text(&kit, from, text);
    assert_true(model_kit_write(&kit, to, out, NULL));
}

/* The number of files that contain both texts. */
static size_t count_files(const struct model_kit_files *files, const char *one, const char *two)
{
    size_t count = 0;

    for (size_t i = 0; i < files->count; i++) {
        const char *data = files->items[i].data;
        count += strstr(data, one) != NULL && strstr(data, two) != NULL ? 1 : 0;
    }
    return count;
}

static void assert_same_items(const char *from, const char *text)
{
    const struct wal__dialect *opencode = wal__dialect_find("opencode");
    struct model_kit_files out;
    struct model_kit before;
    struct model_kit after;

    convert(from, text, "opencode", &out);
    model_kit_read_text(&before, from, text);
    model_kit_read(&after, "opencode", &out);
    model_kit_assert_same(&before, &after, opencode->write_ops->carries, opencode);
}

/* ----------------------------------------------------------- OpenCode --- */

/* OpenCode 1.0 to 1.18 has one part for a call and its result: a second part with the same callID
 * is a second call, without arguments. */
TEST(opencode_rule__one_part_per_call)
{
    static const struct {
        const char *from;
        const char *text;
    } sessions[] = {{"claude", parallel_calls}, {"codex", late_results}};

    for (size_t i = 0; i < 2; i++) {
        struct model_kit_files out;
        convert(sessions[i].from, sessions[i].text, "opencode", &out);
        for (unsigned call = 1; call <= 3; call++) {
            char id[32];
            snprintf(id, sizeof(id), "\"callID\":\"c%u\"", call);
            assert_int_equal(count_files(&out, id, ""), 1);
            assert_int_equal(count_files(&out, id, "\"completed\""), 1);
        }
        assert_int_equal(count_files(&out, "\"pending\"", ""), 0);
        assert_int_equal(count_files(&out, "\"input\":{}", ""), 0);
    }
}

/* The order of results is not the client's, but it survives. */
TEST(opencode_rule__order_of_results_survives)
{
    assert_same_items("claude", parallel_calls);
    assert_same_items("codex", late_results);
}

/* Results that name the same item, each other, or none, are all read once. */
TEST(opencode_rule__odd_order_loses_no_result)
{
    static const char *const after[] = {"m1", "m1", "p4", "p3", "none", "p5"};
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    bool is_seen[6] = {false};

    model_kit_files_add(&files, "message/s/m1.json", true, "{\"id\":\"m1\",\"role\":\"assistant\"}",
                        30);
    for (unsigned i = 0; i < 6; i++) {
        char path[64];
        char text[256];
        snprintf(path, sizeof(path), "part/m1/p%u.json", i);
        snprintf(text, sizeof(text),
                 "{\"id\":\"p%u\",\"type\":\"tool\",\"callID\":\"c%u\","
                 "\"state\":{\"status\":\"completed\",\"output\":\"r\","
                 "\"metadata\":{\"walconvAfter\":\"%s\"}}}",
                 i, i, after[i]);
        model_kit_files_add(&files, path, true, text, strlen(text));
    }
    model_kit_read(&kit, "opencode", &files);
    for (size_t i = 0; i < kit.count; i++) {
        const struct wal__model_item *item = &kit.items[i];
        if (item->role == WAL__ROLE_TOOL) {
            unsigned call = (unsigned)(item->call.data[2] - '0');
            assert_false(is_seen[call]);
            is_seen[call] = true;
        }
    }
    for (unsigned i = 0; i < 6; i++) {
        assert_true(is_seen[i]);
    }
}

/* OpenCode 1.18 imports a pending tool part only with state.raw; without it the import ends
 * there. */
TEST(opencode_rule__pending_call_has_raw)
{
    static const char text[] = CODEX_META CODEX_CALL("c1", "{\\\"n\\\":1}");
    struct model_kit_files out;

    convert("codex", text, "opencode", &out);
    assert_int_equal(count_files(&out, "\"status\":\"pending\"", "\"raw\":\"\""), 1);
}

/* OpenCode 1.2 moves storage to its database project by project: a session whose
 * storage/project/ID.json is missing is gone. */
TEST(opencode_rule__project_is_written)
{
    static const char text[] = CODEX_META CODEX_TEXT("user", "input_text", "a");
    const struct model_kit_file *project;
    struct model_kit_files out;

    convert("codex", text, "opencode", &out);
    project = model_kit_files_find(&out, "storage/project/global.json");
    assert_non_null(project);
    assert_non_null(strstr(project->data, "\"id\":\"global\""));
    assert_non_null(strstr(project->data, "\"worktree\":\"/\""));
    assert_non_null(strstr(project->data, "\"time\":{\"created\":"));
}

/* -------------------------------------------------------- Claude Code --- */

/* Claude Code 2 resumes at last-prompt.leafUuid wherever the row is. So a file whose head may be
 * elsewhere names no leaf: then its last row counts. */
TEST(claude_rule__no_row_names_the_leaf)
{
    static const char text[] =
        CLAUDE_ROW("user", "00000000-0000-4000-8000-000000000001", "null", CLAUDE_PROMPT("go"))
            CLAUDE_ROW("user", "00000000-0000-4000-8000-000000000002", U1, CLAUDE_PROMPT("undone"))
                CLAUDE_LEAF;
    struct model_kit_files out = {.items = NULL};
    struct model_kit kit;
    const char *head;

    model_kit_read_text(&kit, "claude", text);
    kit.head = kit.items[1].id;
    assert_true(model_kit_write(&kit, "claude", &out, NULL));
    assert_non_null(strstr(out.items[0].data, "\"lastPrompt\":\"undone\""));
    assert_null(strstr(out.items[0].data, "leafUuid"));
    head = strstr(out.items[0].data, "walconv_head");
    assert_non_null(head);
}

/* --------------------------------------------------------------- Codex --- */

/* The counts of a call of the model come after the items of its answer, and input tokens include
 * those read from a cache (Codex 0.169). */
TEST(codex_rule__token_counts_belong_to_the_answer)
{
    static const char text[] =
        CODEX_META CODEX_TEXT("user", "input_text", "go") CODEX_CALL("c1", "{}")
            CODEX_LINE("event_msg", "\"type\":\"token_count\",\"info\":{\"total_token_usage\":{"
                                    "\"input_tokens\":100,\"cached_input_tokens\":60,"
                                    "\"output_tokens\":7,\"reasoning_output_tokens\":2},"
                                    "\"last_token_usage\":{\"input_tokens\":100,"
                                    "\"cached_input_tokens\":60,\"output_tokens\":7,"
                                    "\"reasoning_output_tokens\":2}}") CODEX_RESULT("c1", "r")
                CODEX_TEXT("assistant", "output_text", "done")
                    CODEX_LINE("event_msg", "\"type\":\"agent_message\","
                                            "\"message\":\"done\"")
                        CODEX_LINE("event_msg", "\"type\":\"token_count\",\"info\":{"
                                                "\"total_token_usage\":{\"input_tokens\":250,"
                                                "\"cached_input_tokens\":160,"
                                                "\"output_tokens\":12,"
                                                "\"reasoning_output_tokens\":2}}");
    static const char *const expected[] = {"\"input\":40,\"output\":7,\"cacheRead\":60",
                                           "\"input\":50,\"output\":5,\"cacheRead\":100"};
    struct model_kit_files out;

    convert("codex", text, "pi", &out);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(count_files(&out, expected[i], ""), 1);
    }
    convert("codex", text, "claude", &out);
    assert_int_equal(
        count_files(&out, "\"cache_read_input_tokens\":60", "\"cache_read_input_tokens\":100"), 1);
}

/* Codex 0.169 reads names of threads from session_index.jsonl only. */
TEST(codex_rule__title_is_in_the_index)
{
    static const char text[] = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":"
                               "\"2026-01-02T03:04:05.000Z\",\"cwd\":\"/w\"}\n"
                               "{\"type\":\"session_info\",\"id\":\"a0000001\",\"parentId\":null,"
                               "\"timestamp\":\"2026-01-02T03:04:06.000Z\",\"name\":\"One\"}\n"
                               "{\"type\":\"session_info\",\"id\":\"a0000002\",\"parentId\":"
                               "\"a0000001\",\"timestamp\":\"2026-01-02T03:04:07.000Z\","
                               "\"name\":\"Two, too\"}\n";
    const struct model_kit_file *index;
    struct model_kit_files out;

    convert("pi", text, "codex", &out);
    index = model_kit_files_find(&out, "session_index.jsonl");
    assert_non_null(index);
    assert_null(strstr(index->data, "One"));
    assert_non_null(strstr(index->data, "\"thread_name\":\"Two, too\","
                                        "\"updated_at\":"
                                        "\"2026-01-02T03:04:07.000Z\"}\n"));
}

/* Codex 0.169 lists the first user_message event as the prompt: what no person wrote has none, and
 * is in the model's context all the same. */
TEST(codex_rule__meta_messages_have_no_event)
{
    static const char text[] = CLAUDE_ROW("user", "00000000-0000-4000-8000-000000000001", "null",
                                          CLAUDE_PROMPT("Caveat") ",\"isMeta\":true")
        CLAUDE_ROW("user", "00000000-0000-4000-8000-000000000002", U1, CLAUDE_PROMPT("go"));
    const char *event;
    struct model_kit_files out;

    convert("claude", text, "codex", &out);
    assert_int_equal(count_files(&out, "\"text\":\"Caveat\"", ""), 1);
    event = strstr(out.items[0].data, "\"user_message\"");
    assert_non_null(event);
    assert_null(strstr(event + 1, "\"user_message\""));
    assert_non_null(strstr(event, "\"message\":\"go\""));
}

/* ------------------------------------------------------------------ pi --- */

#define PI_HEADER                                                     \
    "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":" \
    "\"2026-01-02T03:04:05.000Z\",\"cwd\":\"/w\"}\n"

/* pi 0.73 runs "!!command" without showing it to the model: no other client can, so it is in no
 * context, and named as left out. */
TEST(pi_rule__excluded_command_is_in_no_context)
{
    static const char *const dialects[] = {"claude", "codex", "opencode", "rollouts"};
    static const char text[] =
        PI_HEADER "{\"type\":\"message\",\"id\":\"a0000001\",\"parentId\":null,"
                  "\"timestamp\":\"2026-01-02T03:04:06.000Z\",\"message\":{\"role\":"
                  "\"bashExecution\",\"command\":\"env\",\"output\":\"SECRET\","
                  "\"exitCode\":0,\"cancelled\":false,\"truncated\":false,"
                  "\"excludeFromContext\":true,\"timestamp\":1}}\n";
    struct model_kit_files out;
    struct model_kit kit;

    for (size_t i = 0; i < 4; i++) {
        uint64_t losses[WAL__FEATURE_COUNT] = {0};
        bool keeps_lines = i == 0; /* as a row that Claude Code ignores */
        out = (struct model_kit_files){.items = NULL};
        model_kit_read_text(&kit, "pi", text);
        assert_true(model_kit_write(&kit, dialects[i], &out, losses));
        assert_int_equal(losses[WAL__FEATURE_LINES], keeps_lines ? 0 : 1);
        assert_int_equal(count_files(&out, "SECRET", "\"role\":\"user\""), 0);
    }
    convert("pi", text, "pi", &out);
    assert_int_equal(count_files(&out, "SECRET", "excludeFromContext"), 1);
}

/* pi 0.73 goes on with the provider and the model of the last answer. */
TEST(pi_rule__last_answer_has_a_model)
{
    static const char text[] =
        CLAUDE_ROW("user", "00000000-0000-4000-8000-000000000001", "null", CLAUDE_PROMPT("go"))
            CLAUDE_ROW("assistant", "00000000-0000-4000-8000-000000000002", U1, CLAUDE_CALLS)
                CLAUDE_ROW("assistant", "00000000-0000-4000-8000-000000000003", U2,
                           "\"message\":{\"id\":\"msg_2\",\"role\":"
                           "\"assistant\",\"content\":[{\"type\":\"text\","
                           "\"text\":\"x\"}]}");
    struct model_kit_files out;
    struct model_kit kit;
    const char *at;

    convert("claude", text, "pi", &out);
    assert_null(strstr(out.items[0].data, "\"unknown\",\"model\""));
    at = strstr(out.items[0].data, "\"text\":\"x\"");
    assert_non_null(at);
    assert_non_null(strstr(at, "\"api\":\"anthropic-messages\",\"provider\":"
                               "\"anthropic\",\"model\":\"m\""));
    /* What the answer did not say is not read as said. */
    model_kit_read_text(&kit, "pi", out.items[0].data);
    assert_int_equal(kit.items[kit.count - 1].model.size, 0);
    assert_int_equal(kit.items[kit.count - 1].provider.size, 0);
}

/* OpenCode writes a storage that is its own byte by byte: steps, snapshots and patches are what its
 * undo needs (1.0 to 1.2). */
TEST(opencode_rule__own_documents_keep_their_bytes)
{
    static const char *const documents[][2] = {
        {"storage/session/p1/ses_7fffffffffffAAAAAAAAAAAAAA.json",
         "{\"id\":\"ses_7fffffffffffAAAAAAAAAAAAAA\",\"projectID\":\"p1\","
         "\"directory\":\"/w\",\"title\":\"t\",\"time\":{\"created\":1,"
         "\"updated\":2}}"},
        {"storage/message/ses_7fffffffffffAAAAAAAAAAAAAA/"
         "msg_b7ca99070000AAAAAAAAAAAAAA.json",
         "{\n  \"id\": \"msg_b7ca99070000AAAAAAAAAAAAAA\",\n  \"sessionID\": "
         "\"ses_7fffffffffffAAAAAAAAAAAAAA\",\n  \"role\": \"assistant\","
         "\"error\":{\"name\":\"MessageAbortedError\",\"data\":{\"message\":"
         "\"Aborted\"}},\"time\":{\"created\":3}}"},
        {"storage/part/msg_b7ca99070000AAAAAAAAAAAAAA/"
         "prt_b7ca99070001AAAAAAAAAAAAAA.json",
         "{\"id\":\"prt_b7ca99070001AAAAAAAAAAAAAA\",\"sessionID\":"
         "\"ses_7fffffffffffAAAAAAAAAAAAAA\",\"messageID\":"
         "\"msg_b7ca99070000AAAAAAAAAAAAAA\",\"type\":\"step-start\","
         "\"snapshot\":\"abc\"}"},
        {"storage/part/msg_b7ca99070000AAAAAAAAAAAAAA/"
         "prt_b7ca99070002AAAAAAAAAAAAAA.json",
         "{\"id\":\"prt_b7ca99070002AAAAAAAAAAAAAA\",\"sessionID\":"
         "\"ses_7fffffffffffAAAAAAAAAAAAAA\",\"messageID\":"
         "\"msg_b7ca99070000AAAAAAAAAAAAAA\",\"type\":\"patch\",\"hash\":"
         "\"abc\",\"files\":[]}"},
    };
    struct model_kit_files files = {.items = NULL};
    struct model_kit_files out = {.items = NULL};
    uint64_t losses[WAL__FEATURE_COUNT] = {0};
    struct model_kit kit;

    for (size_t i = 0; i < 4; i++) {
        model_kit_files_add(&files, documents[i][0], true, documents[i][1],
                            strlen(documents[i][1]));
    }
    model_kit_read(&kit, "opencode", &files);
    assert_true(model_kit_write(&kit, "opencode", &out, losses));
    for (size_t i = 0; i < 4; i++) {
        const struct model_kit_file *file = model_kit_files_find(&out, documents[i][0]);
        assert_non_null(file);
        assert_string_equal(file->data, documents[i][1]);
    }
    assert_int_equal(out.count, 5); /* and the project */
    for (size_t i = 0; i < WAL__FEATURE_COUNT; i++) {
        assert_int_equal(losses[i], 0);
    }
}

/* --------------------------------------------------------- surrogates --- */

/* Texts that were cut inside of a character: Codex drops such a line whole, the interfaces of
 * models refuse such a request. Within a dialect, and in those that belong to no client, bytes
 * stay. */
TEST(surrogate_rule__unpaired_ones_are_replaced_for_other_clients)
{
    static const struct {
        const char *dialect;
        unsigned replaced; /* in the texts, and in the title where there is one */
    } rows[] = {
        {"codex", 5},  {"pi", 5},      {"opencode", 4}, {"qwen", 5}, {"gemini", 5}, {"copilot", 4},
        {"claude", 0}, {"entries", 0}, {"rollouts", 0}, {"sdk", 0},  {"spec11", 0},
    };
    static const char text[] =
        "{\"type\":\"custom-title\",\"customTitle\":\"ti\\ud83d\"}\n" CLAUDE_ROW(
            "user", "00000000-0000-4000-8000-000000000001", "null",
            CLAUDE_PROMPT("cut \\ud83d, \\ud83d\\ude00 \\\\ud83d \\uFFFD"))
            CLAUDE_ROW("assistant", "00000000-0000-4000-8000-000000000002", U1,
                       "\"message\":{\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":["
                       "{\"type\":\"text\",\"text\":\"and \\uDC00\\ud83d\"},"
                       "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":"
                       "{\"a\":\"\\uDbFf\"}}]}");
    static const char *const first[] = {"cut \\ud83d, \\ud83d\\ude00 \\\\ud83d \\uFFFD",
                                        "cut \\ufffd, \\ud83d\\ude00 \\\\ud83d \\uFFFD"};
    static const char *const second[] = {"and \\uDC00\\ud83d", "and \\ufffd\\ufffd"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t losses[WAL__FEATURE_COUNT] = {0};
        struct model_kit_files out = {.items = NULL};
        struct model_kit kit;

        model_kit_read_text(&kit, "claude", text);
        assert_true(model_kit_write(&kit, rows[i].dialect, &out, losses));
        /* Each is counted once, in how many places of a file it may be. */
        assert_int_equal(losses[WAL__FEATURE_SURROGATES], rows[i].replaced);
        assert_true(count_files(&out, first[rows[i].replaced > 0], "") > 0);
        assert_true(count_files(&out, second[rows[i].replaced > 0], "") > 0);
        assert_int_equal(count_files(&out, "uDC00", "") == 0, rows[i].replaced > 0);
    }
}

/* Clients that read lines with Node.js may end one at these characters. */
TEST(surrogate_rule__line_separators_are_escaped)
{
    static const char text[] = CLAUDE_ROW("user", "00000000-0000-4000-8000-000000000001", "null",
                                          CLAUDE_PROMPT("a\xe2\x80\xa8\xe2\x80\xa9 \xe2\x80\x9c"));
    struct model_kit_files out;

    convert("claude", text, "copilot", &out);
    assert_true(count_files(&out, "a\\u2028\\u2029 \xe2\x80\x9c", "") > 0);
    assert_int_equal(count_files(&out, "\xe2\x80\xa8", ""), 0);
    convert("claude", text, "claude", &out);
    assert_true(count_files(&out, "a\xe2\x80\xa8", "") > 0);
}

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

static const struct wal__word *read_sample(const char *json, struct thing *thing,
                                           uint32_t *unknown_count)
{
    const struct wal__word *word = NULL;

    *thing = (struct thing){.flag = false};
    *unknown_count = 0;
    assert_int_equal(
        wal__word_read(span(json), fields, words, &thing->type, thing, unknown_count, &word),
        WAL__JSON_OK);
    return word;
}

TEST(vocabulary__a_field_has_the_kind_of_its_value)
{
    struct thing thing;
    uint32_t unknown;

    assert_null(read_sample("{\"number\":1.5,\"container\":[1],\"nonNull\":true,"
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

    assert_ptr_equal(read_sample("{\"text\":\"t\",\"type\":\"note\"}", &thing, &unknown),
                     &words[0]);
    assert_text(thing.text, "\"t\"");
    assert_ptr_equal(read_sample("{\"text\":\"t\",\"type\":\"memo\","
                                 "\"inner\":{\"body\":\"b\"}}",
                                 &thing, &unknown),
                     &words[1]);
    assert_text(thing.text, "\"b\"");
    assert_null(read_sample("{\"text\":\"t\",\"type\":\"x\"}", &thing, &unknown));
    assert_text(thing.text, "");
}

TEST(vocabulary__the_first_alternative_with_a_value)
{
    struct thing thing;
    uint32_t unknown;

    (void)read_sample("{\"type\":\"note\",\"body\":\"b\",\"text\":\"t\"}", &thing, &unknown);
    assert_text(thing.text, "\"t\"");
    (void)read_sample("{\"type\":\"note\",\"body\":\"b\",\"text\":1}", &thing, &unknown);
    assert_text(thing.text, "\"b\"");
    assert_int_equal(
        wal__fields_read(span("{\"text\":\"new\",\"flag\":false}"), words[0].fields, &thing, NULL),
        WAL__JSON_OK);
    assert_text(thing.text, "\"b\"");
}

TEST(vocabulary__members_in_no_table_are_counted)
{
    struct thing thing;
    uint32_t unknown;

    (void)read_sample("{\"known\":1,\"text\":1,\"body\":1,\"inner\":1}", &thing, &unknown);
    assert_int_equal(unknown, 0);
    (void)read_sample("{\"a\":1,\"b\":{\"c\":1},\"type\":\"note\"}", &thing, &unknown);
    assert_int_equal(unknown, 2);
}

TEST(vocabulary__text_that_is_not_json_is_an_error)
{
    struct thing thing = {.flag = false};

    assert_int_equal(wal__fields_read(span("{\"number\":1,}"), fields, &thing, NULL),
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
    static const struct wal__word stops[] = {{"stop", .value = WAL__STOP_END}, {.name = NULL}};

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
    assert_string_equal(text, "{\"type\":\"note\",\"number\":0,\"raw\":[1],\"text\":\"t\"}");
}
