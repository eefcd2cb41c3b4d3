/*
 * test_model_claude.c - the Claude dialect's way into the model and out of it, and merging the
 * parts of one answer.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "convert/model/model_member.h"
#include "convert/model/model_write.h"
#include "format/json/json_text.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

#define UUID(n) "00000000-0000-4000-8000-00000000000" n
#define ROW(parent, n, rest)                                         \
    "{\"parentUuid\":" parent ",\"sessionId\":\"s\",\"cwd\":\"/p\"," \
    "\"uuid\":\"" UUID(n) "\"," rest "}\n"
#define UNDER(n) "\"" UUID(n) "\""
#define USER(blocks)                                    \
    "\"type\":\"user\",\"message\":{\"role\":\"user\"," \
    "\"content\":" blocks "}"
#define ANSWER(id, blocks)                                                    \
    "\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"id\":\"" id \
    "\",\"content\":[" blocks "]}"
#define CALL(id)   "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"n\",\"input\":{}}"
#define RESULT(id) "{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":\"" id "\"}"

/* The results hang under the rows of their calls; the tip is under one. */
static const char parallel[] = ROW("null", "1", USER("\"go\""))
    ROW(UNDER("1"), "2", ANSWER("m1", CALL("c1"))) ROW(UNDER("2"), "3", ANSWER("m1", CALL("c2")))
        ROW(UNDER("2"), "4", USER("[" RESULT("c1") "]"))
            ROW(UNDER("3"), "5", USER("[" RESULT("c2") "]"))
                ROW(UNDER("5"), "6", ANSWER("m2", "{\"type\":\"text\",\"text\":\"x\"}"));

TEST(model_claude__parallel_calls_are_one_chain)
{
    struct model_kit kit;

    model_kit_read_text(&kit, "claude", parallel);
    assert_int_equal(kit.count, 7); /* with the header */
    for (size_t i = 1; i < kit.count; i++) {
        assert_true(kit.is_live[i]);
    }
    assert_is(kit.items[4].parent, UUID("3"));
    assert_is(kit.items[5].parent, UUID("4"));
}

TEST(model_claude__rows_of_a_response_are_one_message)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;
    struct model_kit pi;

    model_kit_read_text(&kit, "claude", parallel);
    assert_true(model_kit_write(&kit, "pi", &files, NULL));
    model_kit_read(&pi, "pi", &files);
    assert_int_equal(pi.count, 6);
    assert_int_equal(pi.items[2].block_count, 2);
    assert_int_equal(pi.items[3].role, WAL__ROLE_TOOL);
    assert_is(pi.items[3].call, "c1");
    assert_is(pi.items[3].name, "n");
    assert_is(pi.items[4].call, "c2");
}

TEST(model_claude__results_are_items_in_order)
{
    static const char text[] =
        ROW("null", "1",
            USER("[{\"type\":\"text\",\"text\":\"a\"}," RESULT("c1") "," RESULT(
                "c2") ",{\"type\":\"text\",\"text\":\"b\"}]"))
            ROW(UNDER("1"), "2", USER("\"next\""));
    struct model_kit kit;

    model_kit_read_text(&kit, "claude", text);
    assert_int_equal(kit.count, 6);
    assert_int_equal(kit.items[1].role, WAL__ROLE_USER);
    assert_int_equal(kit.items[1].raw_items_left, 3);
    assert_int_equal(kit.items[2].role, WAL__ROLE_TOOL);
    assert_is(kit.items[3].call, "c2");
    assert_is(kit.items[4].id, UUID("1"));
    assert_is(kit.items[4].blocks[0].text, "b");
    assert_is(kit.items[5].parent, UUID("1"));
}

TEST(model_claude__compaction_is_on_the_branch)
{
    static const char text[] = ROW("null", "1", USER("\"one\""))
        ROW("null", "2",
            "\"type\":\"system\",\"subtype\":\"compact_boundary\","
            "\"logicalParentUuid\":\"" UUID("1") "\","
                                                 "\"compactMetadata\":{\"preTokens\":9}")
            ROW(UNDER("2"), "3", USER("\"sum\"") ",\"isCompactSummary\":true")
                ROW(UNDER("3"), "4", USER("\"two\""));
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;

    model_kit_read_text(&kit, "claude", text);
    assert_int_equal(kit.count, 5);
    assert_int_equal(kit.items[3].kind, WAL__ITEM_COMPACTION);
    assert_is(kit.items[3].text, "sum");
    assert_is(kit.items[3].parent, UUID("1"));
    assert_int_equal(kit.items[3].tokens.data[0], '9');
    for (size_t i = 1; i < kit.count; i++) {
        assert_true(kit.is_live[i] || kit.items[i].kind == WAL__ITEM_HEAD);
    }
    assert_true(model_kit_write(&kit, "claude", &files, NULL));
    assert_int_equal(files.items[0].size, sizeof(text) - 1 + 4 * strlen(UUID("1")) - 4);
}

/* A row that marks a compaction, with additional members. */
#define BOUNDARY(n, members) \
    ROW("null", n, "\"type\":\"system\",\"subtype\":\"compact_boundary\"," members)

#define SUMMARY(parent, n) ROW(UNDER(parent), n, USER("\"sum\"") ",\"isCompactSummary\":true")
#define LOGICAL(parent)    "\"logicalParentUuid\":" parent
#define KEPT(n)            "\"compactMetadata\":{\"preservedSegment\":{\"headUuid\":" n "}}"
#define ODD(parent)                                     \
    ROW("null", "1", USER("\"one\""))                   \
    BOUNDARY("2", LOGICAL(parent) "," KEPT(UNDER("4"))) \
    SUMMARY("2", "3") ROW(UNDER("3"), "4", USER("\"two\""))

/* A logical parent that does not precede the row could make a cycle: the row before counts. */
TEST(model_claude__compaction_without_a_known_logical_parent_goes_under_the_row_before)
{
    static const char *const texts[] = {
        ODD(UNDER("2")),    ODD(UNDER("3")), ODD(UNDER("4")),
        ODD("\"nowhere\""), ODD("7"),        ODD("{\"uuid\":1}"),
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct model_kit kit;
        model_kit_read_text(&kit, "claude", texts[i]);
        assert_int_equal(kit.count, 5);
        assert_int_equal(kit.items[3].kind, WAL__ITEM_COMPACTION);
        assert_is(kit.items[3].parent, UUID("1"));
        assert_int_equal(kit.items[3].target.size, 0);
        assert_is(kit.items[4].parent, UUID("3"));
        assert_true(kit.is_live[3]);
        assert_true(kit.is_live[1]);
    }
}

/* Rows between a boundary and its summary are children of what precedes. */
TEST(model_claude__rows_after_a_boundary)
{
    static const char title[] = "{\"type\":\"custom-title\",\"customTitle\":\"t\"}\n";
    char text[2048] = "";
    struct model_kit kit;

    strcat(text, ROW("null", "1", USER("\"one\"")));
    strcat(text, BOUNDARY("2", LOGICAL(UNDER("1"))));
    strcat(text, title);
    strcat(text, SUMMARY("2", "3"));
    strcat(text, BOUNDARY("4", LOGICAL(UNDER("3"))));
    model_kit_read_text(&kit, "claude", text);
    assert_int_equal(kit.items[2].kind, WAL__ITEM_TITLE);
    assert_is(kit.items[2].parent, UUID("1"));
    assert_int_equal(kit.items[4].kind, WAL__ITEM_COMPACTION);
    assert_is(kit.items[4].parent, UUID("1"));
    /* A boundary without a summary is a compaction too. */
    assert_int_equal(kit.items[5].kind, WAL__ITEM_COMPACTION);
    assert_is(kit.items[5].parent, UUID("3"));
}

/* The row becomes `count` items, of which the last is the text, and a note or not. */
static void check_words(const char *rows, size_t count, const char *text, bool is_meta)
{
    const struct wal__model_item *last;
    struct model_kit kit;

    model_kit_read_text(&kit, "claude", rows);
    assert_int_equal(kit.count, count + 1); /* with the header */
    last = &kit.items[count];
    assert_int_equal(last->kind, WAL__ITEM_MESSAGE);
    assert_is(last->id, UUID("1"));
    assert_int_equal(last->block_count, 1);
    assert_is(last->blocks[0].text, text);
    assert_int_equal(last->is_meta, is_meta);
    for (size_t i = 1; i < count; i++) {
        assert_true(kit.items[i].is_meta);
    }
    assert_int_equal(kit.items[1].raw_items_left, count - 1);
}

TEST(model_claude__words_of_a_person_are_without_tags)
{
    check_words(ROW("null", "1",
                    USER("\"<command-message>x</command-message>\\n<command-name>/x</command-name>"
                         "<command-args>a \\\"b\\\"</command-args>\"")),
                1, "/x a \"b\"", false);
    check_words(ROW("null", "1", USER("\"<bash-input>ls \\u001b[1mx</bash-input>\"")), 1, "ls x",
                false);
    check_words(ROW("null", "1", USER("\"<system-reminder>r</system-reminder>words\"")), 2, "words",
                false);
    check_words(ROW("null", "1", USER("\"<system-reminder>r</system-reminder>\"")), 1,
                "<system-reminder>r</system-reminder>", true);
    check_words(ROW("null", "1", USER("\"<command-name></command-name>\"")), 1,
                "<command-name></command-name>", false);
    check_words(ROW("null", "1", "\"isMeta\":true," USER("\"<command-name>/x</command-name>\"")), 1,
                "<command-name>/x</command-name>", true);
    check_words(ROW("null", "1", USER("\"a <b>c</b>\"")), 1, "a <b>c</b>", false);
}

TEST(model_claude__what_was_sent_to_the_model_is_a_line_off_the_branch)
{
    struct model_kit kit;

    model_kit_read_text(
        &kit, "claude",
        ROW("null", "1",
            USER("\"go\"")) "{\"type\":\"api-request-blob\",\"sessionId\":\"s\","
                            "\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n" ROW(
                                UNDER("1"), "2",
                                ANSWER("m1", "{\"type\":\"text\",\"text\":\"x\"}")));
    assert_int_equal(kit.count, 4);
    assert_int_equal(kit.items[2].kind, WAL__ITEM_LINE);
    assert_true(kit.items[2].is_off_branch);
    assert_is(kit.items[3].parent, UUID("1"));
}

TEST(model_claude__long_folders_get_a_hash)
{
    struct wal__model_session session = {.id = {(const uint8_t *)"\"x\"", 3}};
    struct model_kit kit;
    char cwd[304];
    const char *path;

    memset(cwd, 'a', sizeof(cwd));
    cwd[0] = '"';
    cwd[1] = '/';
    cwd[303] = '"';
    model_kit_read_text(&kit, "claude", parallel);
    session.cwd = (struct wal__json_span){(const uint8_t *)cwd, 304};
    path = wal__dialect_claude.write_ops->path(&session, 0, &kit.memory);
    assert_non_null(path);
    assert_int_equal(strcspn(path + 9, "/"), 200 + 1 + 6);
    assert_memory_equal(path, "projects/-aaa", 13);
}

static struct wal__model_item emitted;

static size_t count;

static bool emit(void *ctx, struct wal__model_item *item)
{
    (void)ctx;
    emitted = *item;
    count++;
    return true;
}

static bool on_merged(void *ctx, struct wal__json_span id, struct wal__json_span to)
{
    (void)ctx;
    (void)id;
    (void)to;
    return true;
}

static struct wal__model_item part(const char *id, const char *parent, uint8_t stop)
{
    return (struct wal__model_item){.kind = WAL__ITEM_MESSAGE,
                                    .role = WAL__ROLE_ASSISTANT,
                                    .id = wal__model_literal(id),
                                    .parent = wal__model_literal(parent),
                                    .answer_id = wal__model_literal("\"m\""),
                                    .stop = stop};
}

/* An answer stops where its last part says; a part without a reason says nothing. */
TEST(merge__last_stop_reason_counts)
{
    struct wal__model_merge merge = {.emit = emit, .on_merged = on_merged};
    struct wal__model_item parts[] = {
        part("\"1\"", "\"0\"", WAL__STOP_END),
        part("\"2\"", "\"1\"", WAL__STOP_TOOL),
        part("\"3\"", "\"2\"", WAL__STOP_NONE),
    };

    count = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_true(wal__model_merge_add(&merge, &parts[i]));
    }
    assert_true(wal__model_merge_flush(&merge));
    assert_int_equal(count, 1);
    assert_int_equal(emitted.stop, WAL__STOP_TOOL);
}
