/*
 * test_import_turns.c - how rows of Claude Code are linked: parallel calls, compactions, ids of
 * several rows, rows that were written again, rows of other sessions. Each file is imported as a
 * whole, and line by line into another store, which must have the same entries.
 */
#include "agentwal/import.h"
#include "tests/lib/kit/store_kit.h"

enum { ROWS_MAX = 12, TEXT_SIZE = 4096 };

/* A row of session S, unless the members state another, in the directory /w. A null `id`: the
 * members alone. */
struct row {
    const char *id;
    const char *parent; /* null: none */
    const char *members;
};

#define PROMPT(text)   "\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"" text "\"}"
#define ANSWER(answer) "\"type\":\"assistant\",\"message\":{\"id\":\"" answer "\",\"content\":[]}"
#define RESULT(call)                                                           \
    "\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":" \
    "\"tool_result\",\"tool_use_id\":\"" call "\"}]}"
#define NOTE     "\"type\":\"attachment\",\"attachment\":{}"
#define BOUNDARY "\"type\":\"system\",\"subtype\":\"compact_boundary\""

static void write_row(FILE *file, const struct row *row)
{
    char parent[64] = "null";

    if (row->id == NULL) {
        fprintf(file, "{%s}\n", row->members);
        return;
    }
    if (row->parent != NULL) {
        snprintf(parent, sizeof(parent), "\"%s\"", row->parent);
    }
    fprintf(file, "{\"uuid\":\"%s\",\"parentUuid\":%s,%s%s%s}\n", row->id, parent, row->members,
            strstr(row->members, "sessionId") != NULL ? "" : ",\"sessionId\":\"S\"",
            strstr(row->members, "cwd") != NULL ? "" : ",\"cwd\":\"/w\"");
}

static int32_t on_report(void *ctx, const struct wal_import_report *report)
{
    char *issues = ctx;

    issues[0] = '\0';
    for (uint64_t i = 0; i < report->issue_count; i++) {
        size_t used = strlen(issues);

        snprintf(issues + used, TEXT_SIZE - used, "%llu:%s;",
                 (unsigned long long)report->issues[i].line,
                 (const char *)report->issues[i].reason.data);
    }
    return 0;
}

static void import(struct wal_store *store, const char *path, char issues[TEXT_SIZE])
{
    const struct wal_import_options options = {
        .struct_size = sizeof(options), .report = on_report, .ctx = issues};
    struct wal_import_result result = {.struct_size = sizeof(result)};

    assert_done(wal_import_file(store, kit_text(path), &options, &result, kit_error()));
}

/* "ID<PARENT META " of each entry. */
static void describe(struct wal_session *session, char text[TEXT_SIZE])
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry = WAL_INIT(wal_entry);
    size_t used = 0;

    assert_int_equal(wal_entry_cursor_open(session, &options, &cursor, NULL), WAL_OK);
    while (wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        used += (size_t)snprintf(text + used, TEXT_SIZE - used, "%.*s<%.*s%.*s ", WAL_ARG(entry.id),
                                 WAL_ARG(entry.parent_id), WAL_ARG(entry.meta));
        assert_true(used < TEXT_SIZE);
    }
    wal_entry_cursor_close(cursor);
}

/* Imports the rows, and checks the branch of the head and the issues. */
static void check(const struct row *rows, size_t count, const char *branch, const char *issues)
{
    struct wal_store *whole = kit_store();
    struct wal_store *grown = kit_open("grown", WAL_OPEN_CREATE);
    struct wal_session *sessions[2];
    char texts[2][TEXT_SIZE];
    char seen[TEXT_SIZE] = "";
    FILE *file = fopen("S.jsonl", "we");

    assert_non_null(file);
    for (size_t i = 0; i < count; i++) {
        write_row(file, &rows[i]);
        assert_int_equal(fflush(file), 0);
        import(grown, "S.jsonl", seen);
    }
    assert_int_equal(fclose(file), 0);
    assert_string_equal(seen, issues);
    import(whole, "S.jsonl", seen);
    assert_string_equal(seen, issues);
    sessions[0] = kit_session(whole, "S");
    sessions[1] = kit_session(grown, "S");
    for (size_t i = 0; i < 2; i++) {
        describe(sessions[i], texts[i]);
        assert_branch(sessions[i], branch);
    }
    assert_string_equal(texts[0], texts[1]);
}

#define CHECK(rows, branch, issues) check(rows, sizeof(rows) / sizeof((rows)[0]), branch, issues)

KIT_TEST(import_turns__parallel_calls_and_results_are_on_the_branch)
{
    static const struct row rows[] = {
        {"u1", NULL, PROMPT("q")}, {"a1", "u1", ANSWER("m1")}, {"a2", "a1", ANSWER("m1")},
        {"r1", "a1", RESULT("1")}, {"a3", "a2", ANSWER("m1")}, {"r3", "a3", RESULT("3")},
        {"n1", "r1", NOTE},        {"r2", "a2", RESULT("2")},  {"b1", "r1", ANSWER("m2")},
    };

    CHECK(rows, "u1 a1 a2 r1 a3 r3 n1 r2 b1", "");
}

KIT_TEST(import_turns__answers_below_a_prompt_are_one_chain)
{
    static const struct row rows[] = {
        {"u1", NULL, PROMPT("q")},
        {"a1", "u1", ANSWER("m1")},
        {"a2", "u1", ANSWER("m1")},
        {"u2", "a1", PROMPT("r")},
    };

    CHECK(rows, "u1 a1 a2 u2", "");
}

KIT_TEST(import_turns__turn_with_two_continuations_is_a_fork)
{
    static const struct row rows[] = {
        {"u1", NULL, PROMPT("q")},  {"a1", "u1", ANSWER("m1")}, {"u2", "a1", PROMPT("one")},
        {"a2", "u2", ANSWER("m2")}, {"n1", "a1", NOTE},         {"u3", "n1", PROMPT("two")},
        {"a3", "u3", ANSWER("m3")}, {"a4", "u3", ANSWER("m4")},
    };

    CHECK(rows, "u1 a1 n1 u3 a4", "");
}

KIT_TEST(import_turns__rows_without_ids_are_in_the_order_of_the_file)
{
    static const struct row rows[] = {
        {NULL, NULL, "\"type\":\"pr-link\",\"sessionId\":\"S\",\"prNumber\":7"},
        {"u1", NULL, PROMPT("q")},
        {NULL, NULL, "\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"content\":\"t\""},
        {NULL, NULL, "\"type\":\"queue-operation\",\"operation\":\"remove\""},
        {"a1", "u1", ANSWER("m1")},
        {NULL, NULL, "\"type\":\"custom-title\",\"customTitle\":\"t\""},
    };

    CHECK(rows, "line-1 u1 line-3 line-4 a1 line-6", "");
}

KIT_TEST(import_turns__side_chains_are_off_the_branch)
{
#define SIDE ",\"isSidechain\":true"
    static const struct row rows[] = {
        {"u1", NULL, PROMPT("q")},         {"a1", "u1", ANSWER("m1")},
        {"s1", NULL, PROMPT("do") SIDE},   {"s2", "s1", ANSWER("m2") SIDE},
        {"r1", "a1", RESULT("1")},         {"s3", "s2", PROMPT("more") SIDE},
        {NULL, NULL, "\"type\":\"note\""}, {"a2", "r1", ANSWER("m3")},
    };

    CHECK(rows, "u1 a1 r1 line-7 a2", "");
}

KIT_TEST(import_turns__compaction_goes_on_after_its_logical_parent)
{
    static const struct row rows[] = {
        {"u1", NULL, PROMPT("q")},
        {"a1", "u1", ANSWER("m1")},
        {"b1", NULL, BOUNDARY ",\"logicalParentUuid\":\"a1\""},
        {"s1", "b1", PROMPT("sum") ",\"isCompactSummary\":true"},
        {"b2", NULL, BOUNDARY ",\"logicalParentUuid\":\"gone\""},
        {"b3", NULL, BOUNDARY ",\"logicalParentUuid\":\"b3\""},
        {"b4", NULL, BOUNDARY ",\"logicalParentUuid\":7"},
        {"b5", NULL, BOUNDARY},
    };

    CHECK(rows, "u1 a1 b1 s1 b2 b3 b4 b5", "");
}

KIT_TEST(import_turns__compaction_may_be_the_first_row)
{
    static const struct row rows[] = {
        {"b1", NULL, BOUNDARY ",\"logicalParentUuid\":\"gone\""},
        {"s1", "b1", PROMPT("sum") ",\"isCompactSummary\":true"},
    };

    CHECK(rows, "b1 s1", "");
}

KIT_TEST(import_turns__parent_that_several_rows_have_is_the_nearest)
{
    static const struct row rows[] = {
        {"h", NULL, NOTE ",\"n\":1"}, {"u1", "h", PROMPT("1")}, {"a1", "u1", ANSWER("m1")},
        {"h", "a1", NOTE ",\"n\":2"}, {"u2", "h", PROMPT("2")}, {"a2", "u2", ANSWER("m2")},
        {"h", "a2", NOTE ",\"n\":3"}, {"u3", "h", PROMPT("3")},
    };

    CHECK(rows, "h u1 a1 h~4 u2 a2 h~7 u3",
          "4:duplicate id; renamed;"
          "7:duplicate id; renamed;");
}

KIT_TEST(import_turns__row_that_was_written_again_is_a_replay)
{
    static const struct row rows[] = {
        {"u1", NULL, PROMPT("q")},
        {"a1", "u1", ANSWER("m1") ",\"version\":\"1\",\"slug\":\"a\""},
        {"u2", "a1", PROMPT("r")},
        {"a1", "u1", ANSWER("m1") ",\"version\":\"2\",\"slug\":\"b\",\"cwd\":\"/else\""},
        {"u2", "a1", PROMPT("r") ",\"gitBranch\":\"main\""},
        {"u2", "a1", PROMPT("changed")},
        {"a2", "u2", ANSWER("m2")},
    };
    char text[TEXT_SIZE];

    CHECK(rows, "u1 a1 u2~6 a2", "6:duplicate id; renamed;");
    describe(kit_session(kit_store(), "S"), text);
    assert_non_null(strstr(text, " a1~4<u2{\"replay\":true} u2~5<a1~4{\"replay\":true} "));
}

KIT_TEST(import_turns__rows_of_another_session_are_off_the_branch)
{
#define OTHER ",\"sessionId\":\"T\""
    static const struct row rows[] = {
        {"u1", NULL, PROMPT("q")},          {"u2", "u1", PROMPT("r")},
        {"t3", "t2", PROMPT("of T") OTHER}, {"t4", "t3", PROMPT("of T") OTHER},
        {"a2", "u2", ANSWER("m1")},         {"u3", "a2", PROMPT("goes on as T") OTHER},
    };

    CHECK(rows, "u1 u2 a2 u3", "3:is of another session, T;4:is of another session, T;");
    assert_parent(kit_session(kit_store(), "S"), "t3", "");
    assert_parent(kit_session(kit_store(), "S"), "t4", "t3");
}

/* The session of a subagent has its first prompt as title, and its starter as parent. */
KIT_TEST(import_turns__subagent_is_a_child_named_by_its_prompt)
{
    static const struct row rows[] = {
        {"s1", NULL, PROMPT("Find\\n the  bug") ",\"isSidechain\":true,\"agentId\":\"a1\""},
        {"s2", "s1", ANSWER("m1") ",\"isSidechain\":true,\"agentId\":\"a1\""},
        {"s3", "s2", PROMPT("more") ",\"isSidechain\":true,\"agentId\":\"a1\""},
    };
    char issues[TEXT_SIZE] = "";
    struct wal_store *store = kit_store();
    FILE *file = fopen("agent-a1.jsonl", "we");
    struct wal_session_info info;

    assert_non_null(file);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_row(file, &rows[i]);
        assert_int_equal(fflush(file), 0);
        import(store, "agent-a1.jsonl", issues);
    }
    assert_int_equal(fclose(file), 0);
    info = kit_info(kit_session(store, "S~agent-a1"));
    assert_slice(info.parent_id, "S");
    assert_slice(info.title, "Find the bug");
    assert_non_null(
        memmem(info.metadata.data, (size_t)info.metadata.size, "\"subagent\":true", 15));
    assert_branch(kit_session(store, "S~agent-a1"), "s1 s2 s3");
}

KIT_TEST(import_turns__rows_that_name_one_parent_do_not_take_long)
{
    enum { COUNT = 20000 };
    char issues[TEXT_SIZE] = "";
    FILE *file = fopen("S.jsonl", "we");
    char id[2][16] = {"u", "u"};

    assert_non_null(file);
    write_row(file, &(struct row){"u", NULL, PROMPT("q")});
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(id[i % 2], sizeof(id[0]), "n%u", i);
        write_row(file, &(struct row){id[i % 2], i % 3 == 0 ? "u" : id[(i + 1) % 2], NOTE});
    }
    assert_int_equal(fclose(file), 0);
    import(kit_store(), "S.jsonl", issues);
    assert_string_equal(issues, "");
}
