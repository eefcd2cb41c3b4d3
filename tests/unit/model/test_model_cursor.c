/*
 * test_model_cursor.c - how the dialect cursor is read.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_text.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define USER(text) \
    "{\"role\":\"user\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}}\n"
#define ANSWER(blocks) "{\"role\":\"assistant\",\"message\":{\"content\":[" blocks "]}}\n"

TEST(model_cursor__recognised_without_ids)
{
    static const struct {
        const char *line;
        bool is_cursor;
    } cases[] = {
        {USER("x"), true},
        {ANSWER(""), true},
        {"{\"role\":\"user\",\"message\":{\"content\":\"x\"}}", true},
        {"{\"type\":\"turn_ended\",\"status\":\"success\"}", false},
        {"{\"role\":\"user\",\"content\":\"x\"}", false},
        {"{\"role\":\"system\",\"message\":{\"content\":\"x\"}}", false},
        {"{\"role\":\"user\",\"message\":{}}", false},
        {"{\"role\":\"user\",\"message\":{\"content\":1},\"type\":\"user\"}", false},
        {"{\"role\":\"user\",\"message\":{\"content\":1},\"uuid\":\"u\"}", false},
        {"{\"role\":\"user\",\"message\":{\"content\":1},\"id\":\"u\"}", false},
        {"{\"role\":\"user\",\"message\":{\"content\":", false},
        {"7", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(
            wal__line_recognise(&wal__dialect_cursor, cases[i].line, strlen(cases[i].line), true),
            cases[i].is_cursor);
    }
}

/* A time without a zone, or in another form, is not known. */
TEST(model_cursor__time_is_in_a_member_or_a_tag)
{
    static const struct {
        const char *tag;
        int64_t ms;
    } cases[] = {
        {"Friday, Sep 4, 2026, 2:21 AM (UTC+8)", INT64_C(1788459660000)},
        {"Friday, Sep 4, 2026, 2:21 PM (UTC-7)", INT64_C(1788556860000)},
        {"Friday, Sep 4, 2026, 12:00 AM (UTC)", INT64_C(1788480000000)},
        {"Friday, Sep 4, 2026, 12:00 AM (UTC", 0},
        {"Friday, Sep 4, 2026, 12:00 AM (UTC+0)", INT64_C(1788480000000)},
        {"Friday, Sep 4, 2026, 12:00 PM (UTC+5:30)", INT64_C(1788503400000)},
        {"Friday, Sep 4, 2026, 2:21 AM", 0},
        {"Friday, Sep 31, 2026, 2:21 AM (UTC+8)", 0},
        {"Friday, epO 4, 2026, 2:21 AM (UTC+8)", 0},
        {"Friday, Sep 4, 2026, 13:21 AM (UTC+8)", 0},
        {"Friday, Sep 4, 2026, 2:21 AM (UTC+99)", 0},
        {"now", 0},
        {"", 0},
    };
    char text[512];

    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(text, sizeof(text), USER("<timestamp>%s</timestamp>\\n<user_query>x</user_query>"),
                 cases[i].tag);
        assert_int_equal(model_kit_line(&wal__dialect_cursor, text).time_ms, cases[i].ms);
    }
    assert_is(model_kit_line(&wal__dialect_cursor,
                             "{\"role\":\"user\",\"timestamp\":\"T\",\"message\":{}}")
                  .time,
              "T");
    assert_int_equal(
        model_kit_line(&wal__dialect_cursor, "{\"role\":\"user\",\"timestamp\":1788459660000}")
            .time_ms,
        INT64_C(1788459660000));
    assert_int_equal(model_kit_line(&wal__dialect_cursor, USER("<timestamp>")).time_ms, 0);
    assert_int_equal(model_kit_line(&wal__dialect_cursor, USER("</timestamp><timestamp>")).time_ms,
                     0);
}

TEST(model_cursor__words_of_a_person_have_no_tags)
{
    static const char text[] =
        USER("<timestamp>x</timestamp>\\n<user_query>\\n count \\\"it\\\" \\n</user_query>\\n")
            USER("plain") USER("<context>none of mine</context>") USER("<b>bold</b> words")
                USER("<user_query>a</user_query> <user_query>b</user_query>")
                    USER("<user_query>\\\\n</user_query>") USER("<user_query></user_query>");
    static const char *const words[] = {"count \"it\"",
                                        "plain",
                                        "<context>none of mine</context>",
                                        "<b>bold</b> words",
                                        "a</user_query> <user_query>b",
                                        "\\n",
                                        "<user_query></user_query>"};
    struct model_kit kit;

    model_kit_read_text(&kit, "cursor", text);
    assert_int_equal(kit.count, COUNT(words));
    for (size_t i = 0; i < kit.count; i++) {
        assert_int_equal(kit.items[i].role, WAL__ROLE_USER);
        assert_int_equal(kit.items[i].is_meta, i == 2 || i == 6);
        assert_is(kit.items[i].blocks[0].text, words[i]);
    }
}

TEST(model_cursor__calls_and_results_need_no_ids)
{
    static const char call[] =
        "{\"type\":\"text\",\"text\":\"ok\"},"
        "{\"type\":\"tool_use\",\"name\":\"Shell\",\"input\":{\"command\":\"ls\"}},"
        "{\"type\":\"redacted\"}";
    char text[1024];
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    struct model_kit pi;

    snprintf(text, sizeof(text), USER("go") ANSWER("%s") "%s%s", call,
             "{\"role\":\"user\",\"message\":{\"content\":"
             "[{\"type\":\"tool_result\",\"content\":\"a.c\"}]}}\n",
             "{\"type\":\"turn_ended\",\"status\":\"success\"}\n");
    model_kit_read_text(&kit, "cursor", text);
    assert_int_equal(kit.count, 4);
    assert_int_equal(kit.items[1].block_count, 3);
    assert_is(kit.items[1].blocks[1].name, "Shell");
    assert_int_equal(kit.items[1].blocks[2].kind, WAL__BLOCK_RAW);
    assert_int_equal(kit.items[2].role, WAL__ROLE_TOOL);
    assert_int_equal(kit.items[3].kind, WAL__ITEM_LINE);
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    model_kit_read(&pi, "pi", &files);
    assert_int_equal(pi.items[2].block_count, 2);
    assert_is(pi.items[3].blocks[0].text, "a.c");
}

TEST(model_cursor__odd_lines_are_kept)
{
    static const char *const lines[] = {
        "{\"role\":\"user\"}\n",
        "{\"role\":7,\"message\":[]}\n",
        "{\"role\":\"system\"}\n",
        "{\"message\":{\"content\":\"x\"}}\n",
        "[{\"role\":\"user\"}]\n",
        "null\n",
        "{\"role\":\"tool\",\"message\":{\"content\":\"x\"}}\n",
    };

    for (size_t i = 0; i < COUNT(lines); i++) {
        struct model_kit kit;
        model_kit_read_text(&kit, "cursor", lines[i]);
        assert_int_equal(kit.count, 1);
        assert_int_equal(kit.items[0].kind, WAL__ITEM_LINE);
    }
}
