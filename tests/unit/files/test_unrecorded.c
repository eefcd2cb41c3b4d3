/*
 * test_unrecorded.c - checkpoints of paths some of which cannot be recorded (SPEC.md 5.13): the
 * others are, the result names these with reasons, and a rewind leaves them alone.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/kit/rewind_kit.h"

static const char *const names[] = {"pipe", "a", "../x", "out/hosts", "/etc/x", "in/c",
                                    "t/c",  "b", ".",    "d",         "../x"};

enum {
    NAMES = sizeof(names) / sizeof(names[0]),
    UNRECORDED = 6 /* of them */
};

static const struct {
    const char *path;
    enum wal_status status;
    const char *reason;
} unrecorded[UNRECORDED] = {
    {".", WAL_ENOTFILE, "root itself"},
    {"../x", WAL_EOUTSIDE, ".."},
    {"/etc/x", WAL_EOUTSIDE, "outside the root"},
    {"d", WAL_ENOTFILE, "is a directory"},
    {"out/hosts", WAL_EOUTSIDE, "metadata failed: Too many levels of symbolic links"},
    {"pipe", WAL_ENOTFILE, "pipe"},
};

/* A session with a work tree in which "a", "b" and "t/c" can be recorded. */
static struct wal_session *begin(void)
{
    struct wal_session *session = tree_session(kit_store());

    tree_directory("t");
    tree_directory("d");
    tree_put("a", "a\n");
    tree_put("b", "b\n");
    tree_put("t/c", "c\n");
    tree_put("d/e", "e\n");
    tree_link("in", "t");
    tree_link("out", "/etc");
    assert_int_equal(mkfifo("tree/pipe", 0600), 0);
    return session;
}

static enum wal_status create(struct wal_session *session, const char *id, uint32_t flags,
                              struct wal_file_cursor **cursor, struct wal_error *error)
{
    const struct wal_checkpoint_options options = {
        .struct_size = sizeof(options), .id = kit_text(id), .flags = flags};
    struct wal_slice paths[NAMES];

    for (int i = 0; i < NAMES; i++) {
        paths[i] = kit_text(names[i]);
    }
    return wal_checkpoint_create(session, paths, NAMES, &options, cursor, error);
}

static enum wal_status create_one(struct wal_session *session, const char *id, const char *name,
                                  struct wal_file_cursor **cursor, struct wal_error *error)
{
    const struct wal_checkpoint_options options = {.struct_size = sizeof(options),
                                                   .id = kit_text(id)};
    const struct wal_slice path = kit_text(name);

    return wal_checkpoint_create(session, &path, 1, &options, cursor, error);
}

static void assert_unrecorded(struct wal_file_cursor *cursor, uint64_t files)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);

    assert_ok(wal_checkpoint_get_info(cursor, &info, NULL));
    assert_int_equal(info.files, files);
    assert_int_equal(info.unrecorded_count, UNRECORDED);
    for (int i = 0; i < UNRECORDED; i++) {
        const struct wal_checkpoint_issue *issue = &info.unrecorded[i];
        char reason[512];

        assert_int_equal(issue->struct_size, sizeof(*issue));
        assert_int_equal(issue->status, unrecorded[i].status);
        assert_int_equal(issue->path.size, strlen(unrecorded[i].path));
        assert_memory_equal(issue->path.data, unrecorded[i].path, issue->path.size);
        snprintf(reason, sizeof(reason), "%.*s", (int)issue->reason.size,
                 (const char *)issue->reason.data);
        assert_non_null(strstr(reason, unrecorded[i].reason));
    }
    wal_file_cursor_close(cursor);
}

KIT_TEST(unrecorded__others_are_recorded)
{
    struct wal_session *session = begin();
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_file_cursor *cursor;
    struct kit_rewind_result answer;

    assert_ok(create(session, "c", 0, &cursor, kit_error()));
    assert_unrecorded(cursor, 3);
    assert_ok(wal_file_cursor_open(session, kit_text("c"), &cursor, kit_error()));
    assert_ok(wal_checkpoint_get_info(cursor, &info, kit_error()));
    assert_int_equal(info.files, 3);
    assert_int_equal(info.unrecorded_count, 0);
    assert_null(info.unrecorded);
    wal_file_cursor_close(cursor);
    tree_put("a", "changed\n");
    tree_put("t/c", "changed\n");
    tree_remove("pipe");
    tree_put("pipe", "a file now\n");
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, " a+1-1 t/c+1-1");
    tree_assert_content("pipe", "a file now\n");
    tree_assert_content("d/e", "e\n");
}

/* A path that could not be recorded can be later; the checkpoint keeps those that it has. */
KIT_TEST(unrecorded__path_is_added_later)
{
    struct wal_session *session = begin();
    struct wal_file_cursor *cursor;

    assert_ok(create(session, "c", 0, &cursor, kit_error()));
    wal_file_cursor_close(cursor);
    tree_put("a", "changed\n");
    assert_ok(create(session, "c", 0, &cursor, kit_error()));
    assert_unrecorded(cursor, 3);
    tree_remove("pipe");
    tree_put("pipe", "a file now\n");
    assert_ok(create_one(session, "c", "pipe", &cursor, kit_error()));
    wal_file_cursor_close(cursor);
    tree_remove("pipe");
    assert_int_equal(kit_rewind(session, "c").info.files_changed, 2);
    tree_assert_content("a", "a\n");
    tree_assert_content("pipe", "a file now\n");
}

/* With the flag, and where the caller takes no result. */
KIT_TEST(unrecorded__all_or_none)
{
    struct wal_session *session = begin();
    struct wal_file_cursor *cursor = NULL;
    struct wal_error error = KIT_ERROR;

    assert_int_equal(create(session, "c", WAL_CHECKPOINT_ALL_OR_NONE, &cursor, &error),
                     WAL_EOUTSIDE);
    assert_string_equal(error.file, "../x");
    assert_null(cursor);
    error = KIT_ERROR;
    assert_int_equal(create(session, "c", 0, NULL, &error), WAL_EOUTSIDE);
    assert_fails(wal_file_cursor_open(session, kit_text("c"), &cursor, kit_error()), WAL_ENOTFOUND,
                 "c");
    assert_ok(create_one(session, "c", "a", NULL, kit_error()));
}

KIT_TEST(unrecorded__no_path_that_can_be_recorded)
{
    struct wal_session *session = begin();
    struct wal_file_cursor *cursor = NULL;
    struct wal_error error = KIT_ERROR;

    for (int i = 0; i < UNRECORDED; i++) {
        error = KIT_ERROR;
        assert_int_equal(create_one(session, "c", unrecorded[i].path, &cursor, &error),
                         unrecorded[i].status);
        assert_string_equal(error.file, unrecorded[i].path);
        assert_null(cursor);
    }
    assert_fails(create_one(session, "c", "", &cursor, kit_error()), WAL_EINVAL, "empty");
    assert_fails(wal_file_cursor_open(session, kit_text("c"), &cursor, kit_error()), WAL_ENOTFOUND,
                 "c");
    assert_ok(create_one(session, "c", "a", NULL, kit_error()));
    assert_int_equal(create_one(session, "c", "pipe", &cursor, &error), WAL_ENOTFILE);
    assert_null(cursor);
}

KIT_TEST(unrecorded__persistence_off)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_NOOP};
    const struct wal_session_options of = {
        .struct_size = sizeof(of), .id = kit_text("s"), .cwd = kit_text("/tree")};
    struct wal_store *store;
    struct wal_session *session;
    struct wal_file_cursor *cursor;
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);

    assert_ok(wal_open("nowhere", &options, &store, kit_error()));
    assert_ok(wal_session_create(store, &of, &session, kit_error()));
    assert_ok(create(session, "c", 0, &cursor, kit_error()));
    assert_ok(wal_checkpoint_get_info(cursor, &info, kit_error()));
    assert_int_equal(info.files, 0);
    assert_int_equal(info.unrecorded_count, 3);
    wal_file_cursor_close(cursor);
    wal_session_close(session);
    kit_close(store);
}
