/*
 * test_view_list.c - the roots of views that a store knows of, the list of
 * their views, and bringing those up to date (SPEC.md 10.7).
 */
#include "format/index/view_root.h"
#include "tests/lib/kit/view_kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static struct wal_session *imported(struct wal_store *store, unsigned number)
{
    struct wal_session *session = view_kit_import(store, number);

    for (unsigned i = 1; i <= 3; i++) {
        view_kit_row(session, i, i - 1, i == 2 ? "the-canary" : "some text");
    }
    return session;
}

static void redact(struct wal_session *session, unsigned id)
{
    assert_ok(wal_session_redact(session, kit_text(view_kit_id(id)),
                                 kit_text("why"), NULL, NULL));
}

/* The listed views as "SESSION DIALECT ROOT FLAGS;", with the last four bytes
 * of the session and the last component of the root; until the next call. */
static const char *list(struct wal_store *store, uint32_t flags,
                        const char *session)
{
    static char text[1024];
    const struct wal_view_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = flags,
        .session = kit_text(session)};
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct wal_view_cursor *cursor = NULL;
    struct wal_error error = KIT_ERROR;

    text[0] = '\0';
    if (wal_view_cursor_open(store, &options, &cursor, &error) != WAL_OK) {
        fail_msg("%s: %s", error.file, error.text);
    }
    while (wal_view_cursor_next(cursor, &info, NULL) == WAL_OK) {
        size_t size = strlen(info.session);
        size_t at = strlen(text);

        (void)snprintf(text + at, sizeof(text) - at, "%.4s %s %s %u;",
                       info.session + (size < 4 ? 0 : size - 4), info.dialect,
                       strrchr(info.root, '/') + 1, info.flags);
    }
    wal_view_cursor_close(cursor);
    return text;
}

/* The first of the listed views. */
static struct wal_view_info first(struct wal_store *store)
{
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct wal_view_cursor *cursor = NULL;

    assert_ok(wal_view_cursor_open(store, NULL, &cursor, NULL));
    assert_ok(wal_view_cursor_next(cursor, &info, NULL));
    wal_view_cursor_close(cursor);
    return info;
}

static enum wal_status update(struct wal_store *store, struct wal_error *error)
{
    const struct wal_view_info info = first(store);

    return wal_view_update(store, &info, NULL, error);
}

/* The number of names in a directory that do not begin with '.'; 0: there is no
 * directory. The last of them is in `path`. */
static unsigned count_names(const char *name, char path[512])
{
    DIR *directory = opendir(name);
    struct dirent *entry;
    unsigned count = 0;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(path, 512, "%.200s/%.255s", name, entry->d_name);
            count++;
        }
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    return count;
}

static unsigned count_entries(void)
{
    char path[512];

    return count_names("store/views", path);
}

static void run(const char *command)
{
    assert_int_equal(system(command), 0);
}

/* --- the list ------------------------------------------------------------ */

KIT_TEST(view_list__has_what_was_flushed)
{
    struct wal_store *store = kit_store();
    struct wal_session *one = imported(store, 0xFFF1);
    struct wal_session *two = imported(store, 0xFFF2);
    const struct wal_session_info info = kit_info(two);
    char id[WAL_ID_SIZE];

    (void)snprintf(id, sizeof(id), "%.*s", (int)info.id.size,
                   (const char *)info.id.data);
    assert_string_equal(list(store, 0, ""), "");
    (void)view_kit_export(store, one, "claude", "root");
    assert_int_equal(count_entries(), 1);
    (void)view_kit_export(store, two, "claude", "root");
    (void)view_kit_export(store, two, "claude", "./root/");
    assert_int_equal(count_entries(), 1);
    (void)view_kit_export(store, two, "pi", "root");
    assert_int_equal(count_entries(), 2);
    assert_non_null(strstr(list(store, 0, ""), "fff1 claude root 0;fff2 "
                                               "claude root 0;"));
    assert_non_null(strstr(list(store, 0, ""), "fff2 pi root 0;"));
    assert_null(strstr(list(store, 0, id), "fff1"));
    assert_non_null(strstr(list(store, 0, id), "fff2 claude root 0;"));
    assert_non_null(strstr(list(store, 0, id), "fff2 pi root 0;"));
    assert_string_equal(list(store, 0, "another"), "");
    assert_string_equal(list(store, WAL_VIEW_CURSOR_STALE, ""), "");
    wal_session_close(one);
    wal_session_close(two);
    kit_close(store);
    store = kit_open("store", WAL_OPEN_READ_ONLY);
    assert_non_null(strstr(list(store, 0, ""), "fff1 claude root 0;"));
    kit_close(store);
}

KIT_TEST(view_list__without_files_is_empty)
{
    const uint32_t flags[] = {WAL_OPEN_MEMORY | WAL_OPEN_CREATE, WAL_OPEN_NOOP};

    for (size_t i = 0; i < 2; i++) {
        struct wal_store *store = kit_open("store", flags[i]);

        if (i == 0) {
            struct wal_session *session = imported(store, 0xFFFF);

            (void)view_kit_export(store, session, "claude", "root");
            wal_session_close(session);
        }
        assert_ok(wal_view_root_add(store, kit_text("claude"), kit_text("root"),
                                    NULL));
        assert_string_equal(list(store, 0, ""), "");
        kit_close(store);
    }
    assert_int_not_equal(access("store", F_OK), 0);
}

/* A reader's flush adds nothing; it may be asked to. */
KIT_TEST(view_list__of_a_reader_is_written_on_request)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 0xFFFF);
    struct wal_store *reader;
    struct wal_session *read;

    reader = kit_open("store", WAL_OPEN_READ_ONLY);
    assert_ok(wal_session_open(reader, kit_info(session).id, &read, NULL));
    (void)view_kit_export(reader, read, "claude", "root");
    assert_int_equal(count_entries(), 0);
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_view_root_add(reader, kit_text("claude"),
                                    kit_text("root"), NULL));
        assert_int_equal(count_entries(), 1);
    }
    assert_string_equal(list(store, 0, ""), "ffff claude root 0;");
    wal_session_close(read);
    wal_session_close(session);
    kit_close(reader);
    kit_close(store);
}

/* Of the bytes of an entry each is changed, and each number of them is cut:
 * it counts as missing, and a flush writes it again. */
KIT_TEST(view_list__with_a_damaged_entry_is_written_again)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 0xFFFF);
    char path[512];
    size_t size;
    char *bytes;

    (void)view_kit_export(store, session, "claude", "root");
    assert_int_equal(count_names("store/views", path), 1);
    bytes = view_kit_read(path, &size);
    for (size_t i = 0; i < 2 * size; i++) {
        char *damaged = malloc(size + 1);

        assert_non_null(damaged);
        memcpy(damaged, bytes, size);
        damaged[i % size] ^= 1;
        view_kit_write(path, damaged, i < size ? size : i - size, false);
        free(damaged);
        assert_string_equal(list(store, 0, ""), "");
    }
    view_kit_write(path, bytes, size, false);
    view_kit_write(path, "x", 1, true); /* a byte too many */
    assert_string_equal(list(store, 0, ""), "");
    (void)view_kit_export(store, session, "claude", "root");
    assert_string_equal(list(store, 0, ""), "ffff claude root 0;");
    assert_int_equal(count_entries(), 1);
    /* A valid entry under the name of another. */
    assert_int_equal(rename(path, "store/views/0123456789abcdef"), 0);
    assert_string_equal(list(store, 0, ""), "");
    free(bytes);
    wal_session_close(session);
    kit_close(store);
}

/* In place of an entry, and of the list. */
KIT_TEST(view_list__does_not_follow_links)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 0xFFFF);
    struct wal_view_cursor *cursor = NULL;
    struct wal_error error = KIT_ERROR;
    char path[512];

    (void)view_kit_export(store, session, "claude", "root");
    assert_int_equal(count_names("store/views", path), 1);
    assert_int_equal(rename(path, "entry"), 0);
    assert_int_equal(symlink("../../entry", path), 0);
    assert_string_equal(list(store, 0, ""), "");
    (void)view_kit_export(store, session, "claude", "root");
    assert_string_equal(list(store, 0, ""), "ffff claude root 0;");
    assert_int_equal(access("entry", F_OK), 0);

    assert_int_equal(rename("store/views", "elsewhere"), 0);
    assert_int_equal(symlink("../elsewhere", "store/views"), 0);
    assert_int_equal(wal_view_cursor_open(store, NULL, &cursor, &error),
                     WAL_EIO);
    assert_non_null(strstr(error.file, "views"));
    assert_int_equal(
        wal_view_root_add(store, kit_text("pi"), kit_text("root"), NULL),
        WAL_EIO);
    view_kit_row(session, 4, 3, "goes on");
    (void)view_kit_export(store, session, "pi", "root"); /* all the same */
    assert_int_equal(count_names("elsewhere", path), 1);
    assert_int_equal(unlink("store/views"), 0);
    view_kit_write("store/views", "x", 1, false);
    assert_int_equal(wal_view_cursor_open(store, NULL, &cursor, &error),
                     WAL_EIO);
    wal_session_close(session);
    kit_close(store);
}

/* What a process left that died while it wrote the entry. */
KIT_TEST(view_list__removes_an_unfinished_entry)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 0xFFFF);
    char path[512];
    char temporary[640];

    (void)view_kit_export(store, session, "claude", "root");
    assert_int_equal(count_names("store/views", path), 1);
    (void)snprintf(temporary, sizeof(temporary), "%s.01234567.tmp", path);
    assert_int_equal(rename(path, temporary), 0);
    assert_string_equal(list(store, 0, ""), "");
    (void)view_kit_export(store, session, "claude", "root");
    assert_string_equal(list(store, 0, ""), "ffff claude root 0;");
    assert_int_equal(count_entries(), 1);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(view_list__forgets_a_root_that_is_gone)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 0xFFFF);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");

    (void)view_kit_flush(view);
    run("mv root moved");
    assert_string_equal(list(store, 0, ""), "");
    assert_int_equal(count_entries(), 0);
    /* A view that stays open adds it again. */
    (void)view_kit_flush(view);
    assert_string_equal(list(store, 0, ""), "ffff claude root 0;");
    wal_view_close(view);
    /* Adding another one removes it. */
    run("rm -r root");
    (void)view_kit_export(store, session, "claude", "other");
    assert_int_equal(count_entries(), 1);
    assert_string_equal(list(store, 0, ""), "ffff claude other 0;");
    wal_session_close(session);
    kit_close(store);
}

/* The root has only states of another store: it is left out. */
KIT_TEST(view_list__leaves_out_views_of_another_store)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_open("other", WAL_OPEN_CREATE);
    struct wal_session *session = imported(store, 0xFFFF);
    struct wal_session *theirs = imported(other, 0xFFF1);

    (void)view_kit_export(store, session, "claude", "root");
    run("rm -r root");
    (void)view_kit_export(other, theirs, "claude", "root");
    assert_string_equal(list(store, 0, ""), "");
    assert_string_equal(list(other, 0, ""), "fff1 claude root 0;");
    (void)view_kit_export(store, session, "claude", "root");
    assert_string_equal(list(store, 0, ""), "ffff claude root 0;");
    assert_string_equal(list(other, 0, ""), "fff1 claude root 0;");
    wal_session_close(session);
    wal_session_close(theirs);
    kit_close(store);
    kit_close(other);
}

KIT_TEST(view_list__without_arguments_fails)
{
    struct wal_store *store = kit_store();
    struct wal_view_cursor_options options = WAL_INIT(wal_view_cursor_options);
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct wal_view_cursor *cursor = NULL;
    struct wal_error error = KIT_ERROR;
    char large[5000];

    assert_int_equal(wal_view_cursor_open(NULL, NULL, &cursor, &error),
                     WAL_EINVAL);
    assert_int_equal(wal_view_cursor_open(store, NULL, NULL, &error),
                     WAL_EINVAL);
    options.flags = 2;
    assert_int_equal(wal_view_cursor_open(store, &options, &cursor, &error),
                     WAL_EINVAL);
    options.flags = 0;
    memset(large, 'x', sizeof(large));
    options.session = (struct wal_slice){large, WAL_ID_SIZE};
    assert_int_equal(wal_view_cursor_open(store, &options, &cursor, &error),
                     WAL_EINVAL);
    assert_int_equal(wal_view_cursor_next(NULL, &info, &error), WAL_EINVAL);
    wal_view_cursor_close(NULL);
    assert_int_equal(
        wal_view_root_add(store, kit_text("no"), kit_text("."), &error),
        WAL_ENOTFOUND);
    assert_int_equal(wal_view_root_add(store, kit_text("claude"),
                                       kit_text("nothing"), &error),
                     WAL_ENOTFOUND);
    assert_int_equal(
        wal_view_root_add(store, kit_text("claude"), kit_text(""), &error),
        WAL_EINVAL);
    assert_int_equal(wal_view_root_add(store, kit_text("claude"),
                                       (struct wal_slice){large, sizeof(large)},
                                       &error),
                     WAL_EINVAL);
    assert_int_equal(
        wal_view_root_add(NULL, kit_text("claude"), kit_text("."), &error),
        WAL_EINVAL);
    assert_int_equal(wal_view_update(store, NULL, NULL, &error), WAL_EINVAL);
    assert_int_equal(wal_view_update(store, &info, NULL, &error), WAL_EINVAL);
    memset(info.session, 'x', sizeof(info.session));
    info.root[0] = '/';
    assert_int_equal(wal_view_update(store, &info, NULL, &error), WAL_EINVAL);
    kit_close(store);
    assert_int_equal(wal_view_cursor_open(NULL, NULL, &cursor, &error),
                     WAL_EINVAL);
}

/* --- what was erased ----------------------------------------------------- */

KIT_TEST(view_update__rewrites_a_view_with_a_redaction)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 0xFFFF);
    struct wal_session *fork;

    fork = kit_fork(session, view_kit_id(3), "the-fork");
    (void)view_kit_export(store, session, "claude", "root");
    (void)view_kit_export(store, fork, "claude", "forks");
    assert_true(view_kit_contains("root", "the-canary"));
    assert_true(view_kit_contains("forks", "the-canary"));
    redact(session, 2);
    assert_non_null(
        strstr(list(store, WAL_VIEW_CURSOR_STALE, ""), "ffff claude root 2;"));
    assert_non_null(
        strstr(list(store, WAL_VIEW_CURSOR_STALE, ""), "fork claude forks 2;"));
    while (list(store, WAL_VIEW_CURSOR_STALE, "")[0] != '\0') {
        const struct wal_view_cursor_options options = {
            .struct_size = sizeof(options), .flags = WAL_VIEW_CURSOR_STALE};
        struct wal_view_info info = WAL_INIT(wal_view_info);
        struct wal_view_cursor *cursor = NULL;

        assert_ok(wal_view_cursor_open(store, &options, &cursor, NULL));
        assert_ok(wal_view_cursor_next(cursor, &info, NULL));
        wal_view_cursor_close(cursor);
        assert_ok(wal_view_update(store, &info, NULL, NULL));
    }
    assert_false(view_kit_contains("root", "the-canary"));
    assert_false(view_kit_contains("forks", "the-canary"));
    view_kit_assert_full_export(store, session, "claude", "root");
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

/* In each dialect: its files and its state are removed, and nothing else. */
KIT_TEST(view_update__removes_a_view_of_a_deleted_session)
{
    static const char *const dialects[] = {"claude", "codex", "pi", "opencode",
                                           "rollouts"};

    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
        struct wal_store *store = kit_store();
        struct wal_session *kept = imported(store, 0xFFF1);
        struct wal_session *gone = imported(store, 0xFFF2);
        struct wal_view_info info;

        (void)view_kit_export(store, gone, dialects[i], "root");
        assert_true(view_kit_contains("root", "the-canary"));
        assert_ok(wal_session_delete(gone, NULL));
        wal_session_close(gone);
        info = first(store);
        assert_int_equal(info.flags, WAL_VIEW_INFO_DELETED);
        redact(kept, 2);
        (void)view_kit_export(store, kept, dialects[i], "root");
        assert_ok(wal_view_update(store, &info, NULL, NULL));
        assert_false(view_kit_contains("root", "the-canary"));
        assert_string_equal(list(store, WAL_VIEW_CURSOR_STALE, ""), "");
        run("test -z \"$(find root -type d -empty)\"");
        /* Again: another process did. */
        assert_ok(wal_view_update(store, &info, NULL, NULL));
        wal_session_close(kept);
        kit_close(store);
        run("rm -r store root");
    }
}

/* In the trash it may be taken back. */
KIT_TEST(view_update__leaves_a_view_of_the_trash)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 0xFFFF);
    struct wal_error error = KIT_ERROR;

    (void)view_kit_export(store, session, "claude", "root");
    assert_ok(wal_session_trash(session, NULL));
    assert_string_equal(list(store, WAL_VIEW_CURSOR_STALE, ""), "");
    assert_int_equal(update(store, &error), WAL_ETRASHED);
    assert_true(view_kit_contains("root", "the-canary"));
    wal_session_close(session);
    kit_close(store);
}

/* Another program went on in the file of a session that was deleted. */
KIT_TEST(view_update__leaves_a_file_that_changed)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 0xFFFF);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    struct wal_error error = KIT_ERROR;
    char path[512];

    (void)view_kit_flush(view);
    (void)snprintf(path, sizeof(path), "%s", view_kit_path(view));
    view_kit_write(path, "{}\n", 3, true);
    wal_view_close(view);
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    assert_int_equal(update(store, &error), WAL_ECHANGED);
    assert_true(error.file[0] != '\0' && strstr(path, error.file) != NULL);
    assert_true(view_kit_contains("root", "the-canary"));
    assert_string_equal(list(store, WAL_VIEW_CURSOR_STALE, ""),
                        "ffff claude root 1;");
    assert_int_equal(unlink(path), 0);
    assert_ok(update(store, &error));
    assert_string_equal(list(store, WAL_VIEW_CURSOR_STALE, ""), "");
    kit_close(store);
}

KIT_TEST(view_update__of_a_root_that_is_gone_fails)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 0xFFFF);
    struct wal_error error = KIT_ERROR;
    struct wal_view_info info;

    (void)view_kit_export(store, session, "claude", "root");
    info = first(store);
    run("rm -r root");
    assert_int_equal(wal_view_update(store, &info, NULL, &error),
                     WAL_ENOTFOUND);
    assert_int_not_equal(access("root", F_OK), 0);
    view_kit_write("root", "x", 1, false);
    assert_int_equal(wal_view_update(store, &info, NULL, &error),
                     WAL_ENOTFOUND);
    wal_session_close(session);
    kit_close(store);
}

/* A root whose states may not be read, or where no directory of states is. */
KIT_TEST(view_update__of_a_root_that_cannot_be_read_fails)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 0xFFFF);
    struct wal_error error = KIT_ERROR;

    (void)view_kit_export(store, session, "claude", "root");
    run("mv root/.agentwal states && ln -s ../states root/.agentwal");
    assert_string_equal(list(store, WAL_VIEW_CURSOR_STALE, ""),
                        " claude root 4;");
    assert_int_equal(update(store, &error), WAL_EACCESS);
    assert_non_null(strstr(error.file, "root"));
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(view_update__of_a_read_only_root_fails)
{
    struct wal_store *store = kit_store();
    struct wal_session *kept = imported(store, 0xFFF1);
    struct wal_session *gone = imported(store, 0xFFF2);
    struct wal_error error = KIT_ERROR;
    struct wal_view_info infos[2];
    uid_t user = geteuid();

    (void)view_kit_export(store, kept, "claude", "kept");
    infos[0] = first(store);
    (void)view_kit_export(store, gone, "claude", "gone");
    infos[1] = first(store); /* roots are in order */
    redact(kept, 2);
    assert_ok(wal_session_delete(gone, NULL));
    run("chmod -R a+rX . && chmod -R a-w kept gone && chmod a+rx ..");
    (void)(user == 0 && seteuid(65534) == 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wal_view_update(store, &infos[i], NULL, &error),
                         WAL_EACCESS);
        assert_true(error.file[0] != '\0');
    }
    assert_int_equal(seteuid(user), 0);
    assert_true(view_kit_contains("kept", "the-canary"));
    assert_true(view_kit_contains("gone", "the-canary"));
    run("chmod -R u+w kept gone");
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_view_update(store, &infos[i], NULL, &error));
    }
    assert_false(view_kit_contains("kept", "the-canary"));
    assert_false(view_kit_contains("gone", "the-canary"));
    wal_session_close(kept);
    wal_session_close(gone);
    kit_close(store);
}
