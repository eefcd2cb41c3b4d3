/*
 * test_import_times.c - tests of when imported sessions were created and last
 * active, of the time of their import, and of their projects.
 */
#include "tests/lib/kit/store_kit.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "agentwal/import.h"

/* 2024-05-06T00:00:00Z, and a second of it. */
#define DAY_SECONDS INT64_C(1714953600)

static int64_t at(int second)
{
    return (DAY_SECONDS + second) * 1000;
}

/* Begins a file, or adds to it, with a line of Claude Code of that second; of
 * no time when it is negative. */
static void write_row(const char *path, const char *mode, const char *session,
                      int number, int second)
{
    FILE *file = fopen(path, mode);
    char parent[48] = "null";
    char time[64] = "";

    assert_non_null(file);
    if (number > 1) {
        (void)snprintf(parent, sizeof(parent), "\"r-%d\"", number - 1);
    }
    if (second >= 0) {
        (void)snprintf(time, sizeof(time),
                       ",\"timestamp\":\"2024-05-06T00:00:%02d.000Z\"", second);
    }
    fprintf(file,
            "{\"parentUuid\":%s,\"isSidechain\":false,\"type\":\"user\","
            "\"cwd\":\"/home/u/work\",\"sessionId\":\"%s\",\"message\":{"
            "\"role\":\"user\",\"content\":\"%0400d\"},\"uuid\":\"r-%d\"%s}\n",
            parent, session, number, number, time);
    assert_int_equal(fclose(file), 0);
}

static void import(struct wal_store *store, const char *path,
                   const struct wal_import_options *options)
{
    struct wal_error error = KIT_ERROR;

    if (wal_import_file(store, kit_text(path), options, NULL, &error) !=
        WAL_OK) {
        fail_msg("%s: %s", path, error.text);
    }
}

static void check_times(struct wal_store *store, const char *id, int created,
                        int updated)
{
    struct wal_session *session = kit_session(store, id);
    struct wal_session_info info = kit_info(session);

    assert_int_equal(info.created_ms, at(created));
    assert_int_equal(info.updated_ms, at(updated));
    wal_session_close(session);
}

KIT_TEST(import_times__are_those_of_the_lines)
{
    struct wal_store *store = kit_store();

    write_row("f.jsonl", "we", "s", 1, -1); /* before the first time */
    write_row("f.jsonl", "ae", "s", 2, 20);
    write_row("f.jsonl", "ae", "s", 3, 10);
    write_row("f.jsonl", "ae", "s", 4, -1);
    import(store, "f.jsonl", NULL);
    check_times(store, "s", 10, 20);
    import(store, "f.jsonl", NULL);
    check_times(store, "s", 10, 20);
    write_row("f.jsonl", "ae", "s", 5, -1);
    write_row("f.jsonl", "ae", "s", 6, 30);
    import(store, "f.jsonl", NULL);
    check_times(store, "s", 10, 30);
    kit_close(store);
}

/* The latest is the one that was used last, in whatever order they came. */
KIT_TEST(import_times__order_the_list)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = NULL;

    write_row("b.jsonl", "we", "b", 1, 40);
    write_row("a.jsonl", "we", "a", 1, 50);
    write_row("c.jsonl", "we", "c", 1, 45);
    import(store, "a.jsonl", NULL);
    import(store, "b.jsonl", NULL);
    import(store, "c.jsonl", NULL);
    assert_ok(wal_session_open_latest(store, kit_text("/home/u/work"), &session,
                                      NULL));
    assert_slice(kit_info(session).id, "a");
    wal_session_close(session);
    kit_close(store);
}

/* A file without any time is as old as its import. */
KIT_TEST(import_times__without_any)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;
    struct wal_session_info info;

    write_row("f.jsonl", "we", "s", 1, -1);
    write_row("f.jsonl", "ae", "s", 2, -1);
    import(store, "f.jsonl", NULL);
    session = kit_session(store, "s");
    info = kit_info(session);
    assert_int_equal(info.updated_ms, info.created_ms);
    assert_true(info.updated_ms > at(0));
    assert_true(info.metadata.size > 12);
    assert_memory_equal(info.metadata.data, "{\"imported\":", 12);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(import_times__time_of_the_import_is_in_metadata)
{
    static const char wanted[] =
        "{\"created\":\"2024-05-06T00:00:07.000Z\",\"imported\":\"20";
    struct wal_store *store = kit_store();
    struct wal_session *session;
    struct wal_session_info info;

    write_row("f.jsonl", "we", "s", 1, 7);
    import(store, "f.jsonl", NULL);
    session = kit_session(store, "s");
    info = kit_info(session);
    assert_int_equal(info.metadata.size, sizeof(wanted) - 1 + 22 + 2);
    assert_memory_equal(info.metadata.data, wanted, sizeof(wanted) - 1);
    wal_session_close(session);
    kit_close(store);
}

/* ------------------------------------------------------------- projects --- */

static int32_t project_of(void *ctx, struct wal_slice directory, char *project,
                          uint64_t size)
{
    const char *id = ctx;

    assert_slice(directory, "/home/u/work");
    assert_int_equal(((const char *)directory.data)[directory.size], '\0');
    (void)snprintf(project, (size_t)size, "%s", id);
    return id[0] == '-' ? 1 : 0;
}

static void check_project(struct wal_import_options *options, const char *id,
                          const char *wanted)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;
    char copy[64];

    (void)snprintf(copy, sizeof(copy), "%s", id);
    if (options != NULL) {
        options->ctx = copy;
    }
    import(store, "f.jsonl", options);
    session = kit_session(store, "s");
    assert_slice(kit_info(session).project, wanted);
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(system("rm -rf store"), 0);
}

KIT_TEST(import_project__of_the_directory)
{
    struct wal_import_options options = {.struct_size = sizeof(options),
                                         .project = project_of};

    write_row("f.jsonl", "we", "s", 1, 7);
    check_project(NULL, "", "/home/u/work");
    check_project(&options, "p-1", "p-1");
    check_project(&options, "-none", "/home/u/work");
}

KIT_TEST(import_project__without_a_directory)
{
    struct wal_import_options options = {.struct_size = sizeof(options),
                                         .project = project_of};
    struct wal_store *store = kit_store();
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    FILE *file = fopen("f.txt", "we");

    assert_non_null(file);
    fprintf(file, "just text\n");
    assert_int_equal(fclose(file), 0);
    import(store, "f.txt", &options);
    assert_ok(wal_session_cursor_open(store, NULL, &list, NULL));
    assert_ok(wal_session_cursor_next(list, &info, NULL));
    assert_slice(info.project, "");
    wal_session_cursor_close(list);
    kit_close(store);
}
