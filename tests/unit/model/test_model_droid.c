/*
 * test_model_droid.c - how the dialect droid is read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_text.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

#define HEADER "{\"type\":\"session_start\",\"id\":\"s\",\"title\":\"T\",\"cwd\":\"/p\"}\n"

static bool is_recognised(const char *line, bool is_first)
{
    return wal__line_recognise(&wal__dialect_droid, line, strlen(line), is_first);
}

TEST(model_droid__header_identifies_the_session)
{
    struct wal__line_info line;

    assert_int_equal(wal__line_read(&wal__dialect_droid, HEADER, sizeof(HEADER) - 2, &line, NULL),
                     WAL__JSON_OK);
    assert_is(line.session, "s");
    assert_is(line.title, "T");
    assert_is(line.cwd, "/p");
    assert_true(line.is_header);
    assert_true(is_recognised(HEADER, true));
    assert_true(is_recognised("{\"type\":\"session_start\",\"sessionId\":\"s\"}", true));
    assert_false(is_recognised(HEADER, false));
    assert_false(is_recognised("{\"type\":\"session_start\"}", true));
    assert_false(is_recognised("{\"type\":\"session_start\",\"id\":\"s\"", true));
}

TEST(model_droid__messages_follow_their_parent_or_the_line_before)
{
    static const char text[] = HEADER
        "{\"type\":\"message\",\"id\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n"
        "{\"type\":\"message\",\"id\":\"b\",\"parentId\":\"a\",\"message\":"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}}\n"
        "{\"type\":\"todo_state\",\"id\":\"t\"}\n"
        "{\"type\":\"message\",\"message\":{\"role\":\"future\"}}\n"
        "{\"type\":\"message\",\"message\":7}\n";
    struct model_kit kit;

    model_kit_read_text(&kit, "droid", text);
    assert_int_equal(kit.count, 6);
    assert_int_equal(kit.items[0].kind, WAL__ITEM_HEADER);
    assert_is(kit.items[1].blocks[0].text, "go");
    assert_is(kit.items[2].parent, "a");
    assert_int_equal(kit.items[2].role, WAL__ROLE_ASSISTANT);
    for (size_t i = 3; i < kit.count; i++) {
        assert_int_equal(kit.items[i].kind, WAL__ITEM_LINE);
    }
}
