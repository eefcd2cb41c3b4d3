/*
 * Tests of format/jsonl/dialect: which dialect a line is of, and what is read
 * out of it.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "convert/model/dialect.h"
#include "format/json/json_value.h"
#include "tests/lib/test.h"

static const char *recognised(const char *line, bool is_first)
{
    const struct wal__dialect *dialect =
        wal__dialect_recognise(line, strlen(line), is_first);

    return dialect != NULL ? dialect->name : "";
}

static struct wal__line_info read_as(const char *name, const char *text)
{
    struct wal__line_info line;
    const struct wal__dialect *dialect = wal__dialect_find(name);

    assert_non_null(dialect);
    assert_int_equal(dialect->read(text, strlen(text), &line, NULL),
                     WAL__JSON_OK);
    return line;
}

static void assert_is(struct wal__json_span span, const char *text)
{
    if (text == NULL) {
        assert_int_equal(span.size, 0);
    } else {
        assert_true(wal__json_string_is(span, text));
    }
}

TEST(dialect__list_ends_with_lines)
{
    size_t count = 0;

    while (wal__dialect_at(count) != NULL) {
        assert_ptr_equal(wal__dialect_find(wal__dialect_at(count)->name),
                         wal__dialect_at(count));
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
        {"", "{\"timestamp\":\"t\",\"type\":\"session_meta\"}"},
        {"", "{\"id\":\"i\",\"timestamp\":\"t\",\"type\":\"event_msg\","
             "\"payload\":{}}"},
        {"", "{\"type\":\"session\",\"id\":7}"},
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
    assert_string_equal(
        recognised("{\"type\":\"session\",\"id\":\"x\"}", false), "");
    assert_string_equal(recognised("{\"type\":\"session_header\"}", false), "");
    assert_string_equal(
        recognised("{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":\"s\"}",
                   false),
        "claude");
    assert_string_equal(
        recognised("{\"timestamp\":\"t\",\"type\":\"event_msg\","
                   "\"payload\":{}}",
                   false),
        "codex");
    assert_string_equal(
        recognised("{\"id\":\"x\",\"timestamp\":\"t\",\"instructions\":\"\"}",
                   false),
        "");
}

TEST(dialect__codex_lines)
{
    struct wal__line_info line;

    line = read_as("codex", "{\"timestamp\":\"T\",\"type\":\"session_meta\","
                            "\"payload\":{\"id\":\"S\",\"cwd\":\"/w\"}}");
    assert_is(line.id, NULL);
    assert_is(line.session, "S");
    assert_is(line.cwd, "/w");
    assert_is(line.time, "T");
    assert_is(line.type, "session_meta");
    assert_int_equal(line.link, WAL__LINK_PREVIOUS);
    assert_int_equal(line.head, WAL__HEAD_MOVE);

    line = read_as("codex", "{\"timestamp\":\"T\",\"type\":\"event_msg\","
                            "\"payload\":{\"type\":\"thread_name_updated\","
                            "\"thread_name\":\"N\"}}");
    assert_is(line.title, "N");
    assert_is(line.session, NULL);

    line = read_as("codex", "{\"id\":\"S\",\"timestamp\":\"T\","
                            "\"instructions\":null}");
    assert_is(line.session, "S");

    line = read_as("codex", "{\"created_at\":\"T\",\"role\":\"user\"}");
    assert_is(line.time, "T");
    assert_true(line.is_message);
}

TEST(dialect__rollouts_lines)
{
    struct wal__line_info line;

    line = read_as("rollouts", "{\"type\":\"session\",\"id\":\"S\","
                               "\"timestamp\":\"T\",\"cwd\":\"/w\"}");
    assert_is(line.id, NULL);
    assert_is(line.session, "S");
    assert_is(line.cwd, "/w");

    line = read_as("rollouts", "{\"type\":\"message\",\"timestamp\":\"T\","
                               "\"message\":{\"role\":\"user\"}}");
    assert_is(line.type, "message");
    assert_is(line.time, "T");
    assert_is(line.session, NULL);
    assert_int_equal(line.link, WAL__LINK_PREVIOUS);
}

TEST(dialect__pi_header_and_entries)
{
    struct wal__line_info line;

    line = read_as("pi", "{\"type\":\"session\",\"id\":\"S\",\"cwd\":\"/w\","
                         "\"timestamp\":\"T\"}");
    assert_is(line.id, "S");
    assert_is(line.session, "S");
    assert_is(line.cwd, "/w");
    assert_is(line.time, "T");
    assert_int_equal(line.link, WAL__LINK_ROOT);
    assert_int_equal(line.head, WAL__HEAD_MOVE);

    line = read_as("pi", "{\"type\":\"message\",\"id\":\"b\","
                         "\"parentId\":\"a\",\"cwd\":\"/other\"}");
    assert_is(line.id, "b");
    assert_is(line.parent, "a");
    assert_is(line.session, NULL);
    assert_is(line.cwd, NULL);
    assert_int_equal(line.link, WAL__LINK_EXPLICIT);

    line = read_as("pi", "{\"type\":\"message\",\"parentId\":null}");
    assert_is(line.id, NULL);
    assert_int_equal(line.link, WAL__LINK_ROOT);

    line = read_as("pi", "{\"type\":\"message\"}");
    assert_int_equal(line.link, WAL__LINK_PREVIOUS);
    assert_int_equal(line.head, WAL__HEAD_MOVE);

    line = read_as("pi", "{\"type\":\"session_info\",\"name\":\"N\"}");
    assert_is(line.title, "N");
}

TEST(dialect__claude_rows)
{
    struct wal__line_info line;

    line = read_as("claude", "{\"parentUuid\":\"p\",\"isSidechain\":false,"
                             "\"cwd\":\"/w\",\"sessionId\":\"S\","
                             "\"type\":\"user\",\"uuid\":\"u\"}");
    assert_is(line.id, "u");
    assert_is(line.parent, "p");
    assert_is(line.session, "S");
    assert_is(line.cwd, "/w");
    assert_int_equal(line.link, WAL__LINK_EXPLICIT);
    assert_int_equal(line.head, WAL__HEAD_MOVE);
    assert_true(line.is_in_conversation);
    assert_false(line.is_sidechain);

    line = read_as("claude", "{\"parentUuid\":null,\"isSidechain\":true,"
                             "\"type\":\"user\",\"uuid\":\"u\"}");
    assert_int_equal(line.link, WAL__LINK_ROOT);
    assert_int_equal(line.head, WAL__HEAD_KEEP);
    assert_true(line.is_sidechain);

    line = read_as("claude", "{\"type\":\"custom-title\","
                             "\"customTitle\":\"T\",\"id\":\"no\","
                             "\"parentUuid\":\"p\"}");
    assert_is(line.id, NULL);
    assert_is(line.title, "T");
    assert_int_equal(line.link, WAL__LINK_PREVIOUS);
    assert_int_equal(line.head, WAL__HEAD_KEEP);
    assert_false(line.is_in_conversation);
}

TEST(dialect__entries)
{
    struct wal__line_info line;

    line =
        read_as("entries", "{\"type\":\"session_header\",\"id\":\"h\","
                           "\"payload\":{\"cwd\":\"/w\",\"sessionId\":\"S\"}}");
    assert_is(line.session, "S");
    assert_is(line.cwd, "/w");
    assert_int_equal(line.link, WAL__LINK_HEAD);
    assert_int_equal(line.head, WAL__HEAD_EXTEND);

    line = read_as("entries", "{\"type\":\"m\",\"parentId\":null}");
    assert_int_equal(line.link, WAL__LINK_ROOT);
    line = read_as("entries", "{\"type\":\"m\",\"parentId\":\"a\"}");
    assert_int_equal(line.link, WAL__LINK_EXPLICIT);
    assert_is(line.parent, "a");
}

TEST(dialect__lines_has_alternative_member_names)
{
    struct wal__line_info line;

    line = read_as("lines", "{\"uuid\":\"u\",\"parentUuid\":\"p\","
                            "\"role\":\"user\"}");
    assert_is(line.id, "u");
    assert_is(line.parent, "p");
    assert_true(line.is_message);
    assert_int_equal(line.link, WAL__LINK_EXPLICIT);

    line = read_as("lines", "{\"id\":7,\"parentId\":8,\"type\":{}}");
    assert_is(line.id, NULL);
    assert_is(line.type, NULL);
    assert_int_equal(line.link, WAL__LINK_PREVIOUS);
    assert_int_equal(line.head, WAL__HEAD_MOVE);
}

TEST(dialect__json_that_is_not_an_object_is_ignored)
{
    static const char *const texts[] = {"7", "null", "[1,{\"id\":\"x\"}]",
                                        "\"id\""};
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
        assert_int_equal(
            wal__dialect_at(d)->read(text, sizeof(text) - 1, &line, &offset),
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
