/*
 * test_view_import.c - tests of lines that other programs add to a view, and of the roots of views
 * that a store knows of: their list, by the store's public calls, the list of their views, and
 * bringing those up to date (SPEC.md 10.7).
 */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "convert/state/view_state.h"
#include "format/index/view_root.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/kit/view_kit.h"

static struct wal_session *native(struct wal_store *store, unsigned messages)
{
    const struct wal_session_options options = {
        .struct_size = sizeof(options),
        .id = kit_text("native"),
        .cwd = kit_text("/home/u/project"),
    };
    struct wal_session *session = NULL;

    session = kit_create_with(store, &options);
    for (unsigned i = 1; i <= messages; i++) {
        view_kit_message(session, i, 0, i % 2 == 1 ? "user" : "assistant", "native text");
    }
    return session;
}

static void add_text(struct wal_view *view, const char *text)
{
    view_kit_write(view_kit_path(view), text, strlen(text), true);
}

/* A row as Claude Code writes it, under the id `parent`. */
static void write_row(struct wal_view *view, unsigned id, const char *parent, const char *text)
{
    char line[2048];

    snprintf(line, sizeof(line),
             "{\"parentUuid\":\"%s\",\"isSidechain\":false,\"type\":\"user\","
             "\"gitBranch\":\"main\",\"message\":{\"role\":\"user\","
             "\"content\":\"%s\"},\"uuid\":\"%s\",\"timestamp\":"
             "\"2026-01-02T03:05:00.000Z\"}\n",
             parent, text, view_kit_id(id));
    add_text(view, line);
}

static struct wal_view_import_result take(struct wal_view *view)
{
    struct wal_view_import_result report = {.struct_size = sizeof(report)};

    assert_done(wal_view_import(view, &report, kit_error()));
    return report;
}

static void expect_head(struct wal_session *session, const char *id)
{
    struct wal_session_info info = kit_info(session);

    assert_int_equal(info.head.size, strlen(id));
    assert_memory_equal(info.head.data, id, strlen(id));
}

/* The parent of an entry is that one. */
static void expect_parent(struct wal_session *session, const char *id, const char *parent)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    assert_ok(wal_entry_cursor_get(cursor, kit_text(id), &entry, NULL));
    assert_int_equal(entry.parent_id.size, strlen(parent));
    assert_memory_equal(entry.parent_id.data, parent, strlen(parent));
    wal_entry_cursor_close(cursor);
}

static uint64_t count_entries(struct wal_session *session)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_entry_cursor *cursor = NULL;
    uint64_t count;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    count = wal_entry_cursor_remaining(cursor);
    wal_entry_cursor_close(cursor);
    return count;
}

/* The file's bytes are those of before. */
static void expect_bytes(const char *path, char *before, size_t size)
{
    size_t now;
    char *data = test_file(path, &now);

    assert_int_equal(now, size);
    assert_memory_equal(data, before, size);
}

/* The text after `key` up to a quote, at its last place in the file. */
static void last_text(const char *path, const char *key, char text[64])
{
    size_t size;
    char *data = test_file(path, &size);
    const char *found = NULL;

    for (char *at = data; (at = strstr(at, key)) != NULL; at++) {
        found = at;
    }
    assert_non_null(found);
    assert_int_equal(sscanf(found + strlen(key), "%63[^\"]", text), 1);
}

/* --- going on ------------------------------------------------------------ */

KIT_TEST(view_import__lines_extend_the_head)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    struct wal_view_import_result report;
    char *before;
    size_t size;

    (void)view_kit_flush(view);
    write_row(view, 5, view_kit_id(4), "of the client");
    write_row(view, 6, view_kit_id(5), "and more of it");
    before = test_file(view_kit_path(view), &size);
    report = take(view);
    assert_int_equal(report.lines, 2);
    assert_int_equal(report.appended, 2);
    assert_int_equal(report.unknown, 0);
    expect_parent(session, view_kit_id(5), view_kit_id(4));
    expect_parent(session, view_kit_id(6), view_kit_id(5));
    expect_head(session, view_kit_id(6));
    assert_int_equal(view_kit_flush(view).bytes, 0);
    assert_true(view->position.is_verbatim);
    expect_bytes(view_kit_path(view), before, size);
    view_kit_assert_full_export(store, session, "claude", "root");
    /* And on from there, in place. */
    view_kit_row(session, 7, 6, "goes on");
    assert_int_equal(view_kit_flush(view).flags, 0);
    view_kit_assert_full_export(store, session, "claude", "root");
}

KIT_TEST(view_import__head_elsewhere_creates_a_branch)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");

    (void)view_kit_flush(view);
    view_kit_message(session, 9, 0, "user", "appended");
    write_row(view, 5, view_kit_id(4), "of the client");
    write_row(view, 6, view_kit_id(5), "and more of it");
    assert_int_equal(wal_view_flush(view, NULL, kit_error()), WAL_ECHANGED);
    assert_int_equal(take(view).appended, 2);
    expect_parent(session, view_kit_id(5), view_kit_id(4));
    expect_head(session, view_kit_id(9));
    (void)view_kit_flush(view);
    assert_true(view_kit_contains("root", "\"appended\""));
    assert_true(view_kit_contains("root", "\"gitBranch\":\"main\""));
    assert_true(view_kit_contains("root", "and more of it"));
    view_kit_assert_full_export(store, session, "claude", "root");
}

KIT_TEST(view_import__second_import_adds_nothing)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    uint64_t count;

    (void)view_kit_flush(view);
    assert_int_equal(take(view).lines, 0);
    write_row(view, 5, view_kit_id(4), "of the client");
    (void)take(view);
    count = count_entries(session);
    assert_int_equal(take(view).lines, 0);
    wal_view_close(view);
    view = view_kit_open(store, session, "claude", "root");
    assert_int_equal(take(view).lines, 0);
    (void)view_kit_flush(view);
    assert_int_equal(take(view).lines, 0);
    assert_int_equal(count_entries(session), count);
}

KIT_TEST(view_import__unterminated_line_waits)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 2);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");

    (void)view_kit_flush(view);
    write_row(view, 3, view_kit_id(2), "whole");
    add_text(view, "{\"parentUuid\":\"00000003-0000-4000-8000-");
    assert_int_equal(take(view).appended, 1);
    assert_int_equal(take(view).lines, 0);
    /* A file that another program is writing is not replaced. */
    view_kit_message(session, 9, 0, "user", "appended");
    assert_int_equal(wal_view_flush(view, NULL, kit_error()), WAL_ECHANGED);
    add_text(view, "000000000003\",\"type\":\"user\",\"message\":{\"role\":"
                   "\"user\",\"content\":\"late\"},\"uuid\":"
                   "\"00000004-0000-4000-8000-000000000004\"}\n");
    assert_int_equal(take(view).appended, 1);
    expect_parent(session, view_kit_id(4), view_kit_id(3));
    expect_head(session, view_kit_id(9));
    (void)view_kit_flush(view);
    assert_true(view_kit_contains("root", "late"));
}

/* The state that was there before the lines were taken is there again. */
KIT_TEST(view_import__crash_before_the_state_adds_nothing)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 2);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    struct wal_view_import_result report;
    char *saved;
    size_t size;
    glob_t found;

    (void)view_kit_flush(view);
    assert_int_equal(glob("root/.agentwal/*.json", 0, NULL, &found), 0);
    saved = test_file(found.gl_pathv[0], &size);
    write_row(view, 3, view_kit_id(2), "once");
    write_row(view, 3, view_kit_id(2), "once");
    add_text(view, "no JSON\n");
    report = take(view);
    assert_int_equal(report.appended, 3);
    assert_int_equal(count_entries(session), 5);
    view_kit_write(found.gl_pathv[0], saved, size, false);
    wal_view_close(view);
    view = view_kit_open(store, session, "claude", "root");
    write_row(view, 4, view_kit_id(3), "after it");
    report = take(view);
    assert_int_equal(report.appended, 1);
    assert_int_equal(report.duplicates, 3);
    assert_int_equal(count_entries(session), 6);
    expect_parent(session, view_kit_id(4), view_kit_id(3));
    (void)view_kit_flush(view);
    view_kit_assert_full_export(store, session, "claude", "root");
    globfree(&found);
}

/* --- oddities ------------------------------------------------------------ */

/* Flushes in a process that the system kills when the file has `size` bytes. */
static void flush_until_killed(rlim_t size)
{
    pid_t child = kit_start_process();
    int how = 0;

    if (child == 0) {
        const struct wal_open_options options = {.struct_size = sizeof(options),
                                                 .idle_mark_ms = 600000};
        const struct rlimit none = {0, 0};
        const struct rlimit limit = {size, size};
        struct wal_store *store = NULL;
        struct wal_view *view;

        if (wal_open("store", &options, &store, NULL) != WAL_OK) {
            _exit(1);
        }
        view = view_kit_open(store, kit_session(store, view_kit_id(0xFFFF)), "claude", "root");
        (void)signal(SIGXFSZ, SIG_DFL);
        if (setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0) {
            _exit(1);
        }
        (void)!wal_view_flush(view, NULL, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGXFSZ);
}

/* What follows the known end of the file is half of the view's own line. */
KIT_TEST(view_import__interrupted_append_is_refused)
{
    static char text[64 * 1024];
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    struct stat stat_of_file;
    char path[4096];

    for (unsigned i = 5; i < 40; i++) {
        view_kit_row(session, i, i - 1, "more than the state of the view has");
    }
    (void)view_kit_flush(view);
    (void)snprintf(path, sizeof(path), "%s", view_kit_path(view));
    assert_int_equal(stat(path, &stat_of_file), 0);
    memset(text, 't', sizeof(text) - 1);
    view_kit_row(session, 40, 39, text);
    assert_ok(wal_sync(store, NULL));
    wal_view_close(view);
    wal_session_close(session);
    kit_close(store);

    flush_until_killed((rlim_t)stat_of_file.st_size + 100);
    store = kit_store();
    session = kit_session(store, view_kit_id(0xFFFF));
    view = view_kit_open(store, session, "claude", "root");
    assert_fails(wal_view_import(view, NULL, kit_error()), WAL_EBUSY, "interrupted");
    (void)view_kit_flush(view);
    view_kit_assert_full_export(store, session, "claude", "root");
}

KIT_TEST(view_import__issue_is_kept_and_reported)
{
    static const char *const reasons[] = {"is not JSON", "its parent is not known",
                                          "duplicate id; renamed"};
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 2);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    struct wal_view_import_result report;
    uint64_t offset = 0;
    size_t size;
    const char *reason;

    (void)view_kit_flush(view);
    (void)test_file(view_kit_path(view), &size);
    add_text(view, "{\"torn\":\n");
    write_row(view, 3, "nobody", "an orphan");
    write_row(view, 1, view_kit_id(3), "of an id that is taken");
    write_row(view, 4, view_kit_id(1), "under the other one");
    add_text(view, " \n");
    report = take(view);
    assert_int_equal(report.lines, 5);
    assert_int_equal(report.appended, 4);
    assert_int_equal(report.damaged, 1);
    assert_int_equal(report.unknown, 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_ok(wal_view_issue(view, i, &offset, &reason, NULL));
        assert_string_equal(reason, reasons[i]);
        assert_true(i == 0 ? offset == size : offset > size);
    }
    assert_int_equal(wal_view_issue(view, 3, &offset, &reason, NULL), WAL_END);
    expect_parent(session, view_kit_id(3), view_kit_id(2));
    (void)view_kit_flush(view);
    view_kit_assert_full_export(store, session, "claude", "root");
}

KIT_TEST(view_import__other_beginning_is_refused)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 2);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    char *data;
    size_t size;

    assert_int_equal(wal_view_import(view, NULL, kit_error()), WAL_ENOTFOUND);
    (void)view_kit_flush(view);
    data = test_file(view_kit_path(view), &size);
    data[size - 3] ^= 1;
    view_kit_write(view_kit_path(view), data, size, false);
    write_row(view, 3, view_kit_id(2), "after it");
    assert_int_equal(wal_view_import(view, NULL, kit_error()), WAL_ECHANGED);
    assert_int_equal(count_entries(session), 2);
    assert_int_equal(unlink(view_kit_path(view)), 0);
    assert_int_equal(wal_view_import(view, NULL, kit_error()), WAL_ENOTFOUND);
}

/* --- other dialects ------------------------------------------------------ */

/* The client goes on under an id that the view made. */
KIT_TEST(view_import__native_session_as_pi)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = native(store, 4);
    struct wal_view *view = view_kit_open(store, session, "pi", "root");
    struct wal_view_import_result report;
    char parent[64];
    char line[1024];

    (void)view_kit_flush(view);
    last_text(view_kit_path(view), "\"id\":\"", parent);
    snprintf(line, sizeof(line),
             "{\"type\":\"message\",\"id\":\"abcd1234\",\"parentId\":\"%s\","
             "\"timestamp\":\"2026-01-02T03:05:00.000Z\",\"message\":{\"role\":"
             "\"user\",\"content\":\"of the client\"}}\n",
             parent);
    add_text(view, line);
    report = take(view);
    assert_int_equal(report.appended, 1);
    assert_int_equal(report.unknown, 0);
    expect_parent(session, "abcd1234", view_kit_id(4));
    expect_head(session, "abcd1234");
    (void)view_kit_flush(view);
    assert_true(view_kit_contains("root", "of the client"));
    view_kit_assert_full_export(store, session, "pi", "root");
    (void)view_kit_export(store, session, "claude", "other");
    assert_true(view_kit_contains("other", "of the client"));
}

/* Also if the session's head moved before the import of the client's lines. */
KIT_TEST(view_import__native_session_as_claude)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = native(store, 4);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    char parent[64];

    (void)view_kit_flush(view);
    last_text(view_kit_path(view), "\"uuid\":\"", parent);
    write_row(view, 0x50, parent, "of the client");
    write_row(view, 0x51, view_kit_id(0x50), "and more of it");
    view_kit_message(session, 5, 0, "user", "meanwhile");
    assert_int_equal(take(view).unknown, 0);
    expect_parent(session, view_kit_id(0x50), view_kit_id(4));
    expect_head(session, view_kit_id(5));
    (void)view_kit_flush(view);
    assert_true(view_kit_contains("root", "and more of it"));
    assert_true(view_kit_contains("root", "meanwhile"));
    view_kit_assert_full_export(store, session, "claude", "root");
}

/* Without branches a line goes under the one before it. */
static void continue_linear(const char *dialect, const char *lines)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = native(store, 4);
    struct wal_view *view = view_kit_open(store, session, dialect, "root");
    struct wal_view_import_result report;

    (void)view_kit_flush(view);
    add_text(view, lines);
    report = take(view);
    assert_int_equal(report.appended, 2);
    assert_int_equal(report.unknown, 0);
    assert_int_equal(count_entries(session), 6);
    (void)view_kit_flush(view);
    assert_true(view_kit_contains("root", "native text"));
    assert_true(view_kit_contains("root", "of the client"));
    assert_true(view_kit_contains("root", "and more of it"));
    view_kit_assert_full_export(store, session, dialect, "root");
    assert_int_equal(take(view).appended, 0);
    wal_view_close(view);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(view_import__linear_dialect)
{
    continue_linear("codex", "{\"timestamp\":\"2026-01-02T03:05:00.000Z\",\"type\":"
                             "\"response_item\",\"payload\":{\"type\":\"message\",\"role\":"
                             "\"user\",\"content\":[{\"type\":\"input_text\",\"text\":"
                             "\"of the client\"}]}}\n"
                             "{\"timestamp\":\"2026-01-02T03:05:01.000Z\",\"type\":"
                             "\"response_item\",\"payload\":{\"type\":\"message\",\"role\":"
                             "\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":"
                             "\"and more of it\"}]}}\n");
}

/* --- finding ------------------------------------------------------------- */

KIT_TEST(view_import__file_finds_its_view)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 2);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    struct wal_view_info place = {.struct_size = sizeof(place)};

    assert_int_equal(wal_view_find(store, kit_text(view_kit_path(view)), &place, kit_error()),
                     WAL_ENOTFOUND);
    (void)view_kit_flush(view);
    view_kit_write("root/nearby.jsonl", "{}\n", 3, false);
    assert_int_equal(wal_view_find(store, kit_text("root/nearby.jsonl"), &place, kit_error()),
                     WAL_ENOTFOUND);
    assert_ok(wal_view_find(store, kit_text(view_kit_path(view)), &place, kit_error()));
    assert_string_equal(place.session, view_kit_id(0xFFFF));
    assert_string_equal(place.dialect, "claude");
    assert_string_equal(strrchr(place.root, '/') + 1, "root");
    wal_view_close(view);
    view = view_kit_open(store, session, place.dialect, place.root);
    write_row(view, 3, view_kit_id(2), "of the client");
    assert_int_equal(take(view).appended, 1);
}

/* An index reads each state once, and those that are new or have changed when it does not know a
 * path. */
KIT_TEST(view_import__index_knows_new_views)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 2);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    struct wal_view *other = view_kit_open(store, session, "pi", "root");
    struct wal_view_info place = {.struct_size = sizeof(place)};
    struct wal__view_index index;

    wal__view_index_init(&index, store, &wal__heap_libc);
    (void)view_kit_flush(view);
    assert_ok(wal__view_index_find(&index, kit_text(view_kit_path(view)), &place, NULL));
    assert_string_equal(place.dialect, "claude");
    index.items[0]->items[0].session[0] = '#';
    (void)view_kit_flush(other);
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(wal__view_index_find(&index, kit_text(view_kit_path(other)), &place, NULL));
        assert_string_equal(place.dialect, "pi");
    }
    assert_int_equal(index.items[0]->count, 2);
    assert_int_equal(index.items[0]->items[0].session[0], '#');
    wal__view_index_deinit(&index);
}

static struct wal_session *listed_session(struct wal_store *store, unsigned number)
{
    struct wal_session *session = view_kit_import(store, number);

    for (unsigned i = 1; i <= 3; i++) {
        view_kit_row(session, i, i - 1, i == 2 ? "the-canary" : "some text");
    }
    return session;
}

static void redact(struct wal_session *session, unsigned id)
{
    assert_ok(wal_session_redact(session, kit_text(view_kit_id(id)), kit_text("why"), NULL, NULL));
}

/* The listed views as "SESSION DIALECT ROOT FLAGS;", with the last four bytes of the session and
 * the last component of the root; until the next call. */
static const char *list(struct wal_store *store, uint32_t flags, const char *session)
{
    static char text[1024];
    const struct wal_view_cursor_options options = {
        .struct_size = sizeof(options), .flags = flags, .session = kit_text(session)};
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct wal_view_cursor *cursor = NULL;

    text[0] = '\0';
    assert_done(wal_view_cursor_open(store, &options, &cursor, kit_error()));
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

/* The number of names in a directory that do not begin with '.'; 0: there is no directory. The last
 * of them is in `path`. */
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

static unsigned count_listed(void)
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
    struct wal_session *one = listed_session(store, 0xFFF1);
    struct wal_session *two = listed_session(store, 0xFFF2);
    const struct wal_session_info info = kit_info(two);
    char id[WAL_ID_SIZE];

    (void)snprintf(id, sizeof(id), "%.*s", (int)info.id.size, (const char *)info.id.data);
    assert_string_equal(list(store, 0, ""), "");
    (void)view_kit_export(store, one, "claude", "root");
    assert_int_equal(count_listed(), 1);
    (void)view_kit_export(store, two, "claude", "root");
    (void)view_kit_export(store, two, "claude", "./root/");
    assert_int_equal(count_listed(), 1);
    (void)view_kit_export(store, two, "pi", "root");
    assert_int_equal(count_listed(), 2);
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
}

KIT_TEST(view_list__without_files_is_empty)
{
    const uint32_t flags[] = {WAL_OPEN_MEMORY | WAL_OPEN_CREATE, WAL_OPEN_NOOP};

    for (size_t i = 0; i < 2; i++) {
        struct wal_store *store = kit_open("store", flags[i]);

        if (i == 0) {
            struct wal_session *session = listed_session(store, 0xFFFF);

            (void)view_kit_export(store, session, "claude", "root");
            wal_session_close(session);
        }
        assert_ok(wal_view_root_add(store, kit_text("claude"), kit_text("root"), NULL));
        assert_string_equal(list(store, 0, ""), "");
        kit_close(store);
    }
    assert_int_not_equal(access("store", F_OK), 0);
}

/* A reader's flush adds nothing; it may be asked to. */
KIT_TEST(view_list__of_a_reader_is_written_on_request)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = listed_session(store, 0xFFFF);
    struct wal_store *reader;
    struct wal_session *read;

    reader = kit_open("store", WAL_OPEN_READ_ONLY);
    assert_ok(wal_session_open(reader, kit_info(session).id, &read, NULL));
    (void)view_kit_export(reader, read, "claude", "root");
    assert_int_equal(count_listed(), 0);
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_view_root_add(reader, kit_text("claude"), kit_text("root"), NULL));
        assert_int_equal(count_listed(), 1);
    }
    assert_string_equal(list(store, 0, ""), "ffff claude root 0;");
    wal_session_close(read);
}

/* Of the bytes of an entry each is changed, and each number of them is cut:
 * it counts as missing, and a flush writes it again. */
KIT_TEST(view_list__with_a_damaged_entry_is_written_again)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = listed_session(store, 0xFFFF);
    char path[512];
    size_t size;
    char *bytes;

    (void)view_kit_export(store, session, "claude", "root");
    assert_int_equal(count_names("store/views", path), 1);
    bytes = test_file(path, &size);
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
    assert_int_equal(count_listed(), 1);
    /* A valid entry under the name of another. */
    assert_int_equal(rename(path, "store/views/0123456789abcdef"), 0);
    assert_string_equal(list(store, 0, ""), "");
}

/* In place of an entry, and of the list. */
KIT_TEST(view_list__does_not_follow_links)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = listed_session(store, 0xFFFF);
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
    assert_int_equal(wal_view_cursor_open(store, NULL, &cursor, &error), WAL_EIO);
    assert_non_null(strstr(error.file, "views"));
    assert_int_equal(wal_view_root_add(store, kit_text("pi"), kit_text("root"), NULL), WAL_EIO);
    view_kit_row(session, 4, 3, "goes on");
    (void)view_kit_export(store, session, "pi", "root"); /* all the same */
    assert_int_equal(count_names("elsewhere", path), 1);
    assert_int_equal(unlink("store/views"), 0);
    view_kit_write("store/views", "x", 1, false);
    assert_int_equal(wal_view_cursor_open(store, NULL, &cursor, &error), WAL_EIO);
}

/* What a process left that died while it wrote the entry. */
KIT_TEST(view_list__removes_an_unfinished_entry)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = listed_session(store, 0xFFFF);
    char path[512];
    char temporary[640];

    (void)view_kit_export(store, session, "claude", "root");
    assert_int_equal(count_names("store/views", path), 1);
    (void)snprintf(temporary, sizeof(temporary), "%s.01234567.tmp", path);
    assert_int_equal(rename(path, temporary), 0);
    assert_string_equal(list(store, 0, ""), "");
    (void)view_kit_export(store, session, "claude", "root");
    assert_string_equal(list(store, 0, ""), "ffff claude root 0;");
    assert_int_equal(count_listed(), 1);
}

KIT_TEST(view_list__forgets_a_root_that_is_gone)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = listed_session(store, 0xFFFF);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");

    (void)view_kit_flush(view);
    run("mv root moved");
    assert_string_equal(list(store, 0, ""), "");
    assert_int_equal(count_listed(), 0);
    /* A view that stays open adds it again. */
    (void)view_kit_flush(view);
    assert_string_equal(list(store, 0, ""), "ffff claude root 0;");
    wal_view_close(view);
    /* Adding another one removes it. */
    run("rm -r root");
    (void)view_kit_export(store, session, "claude", "other");
    assert_int_equal(count_listed(), 1);
    assert_string_equal(list(store, 0, ""), "ffff claude other 0;");
}

/* The root has only states of another store: it is left out. */
KIT_TEST(view_list__leaves_out_views_of_another_store)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_open("other", WAL_OPEN_CREATE);
    struct wal_session *session = listed_session(store, 0xFFFF);
    struct wal_session *theirs = listed_session(other, 0xFFF1);

    (void)view_kit_export(store, session, "claude", "root");
    run("rm -r root");
    (void)view_kit_export(other, theirs, "claude", "root");
    assert_string_equal(list(store, 0, ""), "");
    assert_string_equal(list(other, 0, ""), "fff1 claude root 0;");
    (void)view_kit_export(store, session, "claude", "root");
    assert_string_equal(list(store, 0, ""), "ffff claude root 0;");
    assert_string_equal(list(other, 0, ""), "fff1 claude root 0;");
}

KIT_TEST(view_list__without_arguments_fails)
{
    struct wal_store *store = kit_store();
    struct wal_view_cursor_options options = WAL_INIT(wal_view_cursor_options);
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct wal_view_cursor *cursor = NULL;
    char large[5000];

    assert_int_equal(wal_view_cursor_open(NULL, NULL, &cursor, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_view_cursor_open(store, NULL, NULL, kit_error()), WAL_EINVAL);
    options.flags = 2;
    assert_int_equal(wal_view_cursor_open(store, &options, &cursor, kit_error()), WAL_EINVAL);
    options.flags = 0;
    memset(large, 'x', sizeof(large));
    options.session = (struct wal_slice){large, WAL_ID_SIZE};
    assert_int_equal(wal_view_cursor_open(store, &options, &cursor, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_view_cursor_next(NULL, &info, kit_error()), WAL_EINVAL);
    wal_view_cursor_close(NULL);
    assert_int_equal(wal_view_root_add(store, kit_text("no"), kit_text("."), kit_error()),
                     WAL_ENOTFOUND);
    assert_int_equal(wal_view_root_add(store, kit_text("claude"), kit_text("nothing"), kit_error()),
                     WAL_ENOTFOUND);
    assert_int_equal(wal_view_root_add(store, kit_text("claude"), kit_text(""), kit_error()),
                     WAL_EINVAL);
    assert_int_equal(wal_view_root_add(store, kit_text("claude"),
                                       (struct wal_slice){large, sizeof(large)}, kit_error()),
                     WAL_EINVAL);
    assert_int_equal(wal_view_root_add(NULL, kit_text("claude"), kit_text("."), kit_error()),
                     WAL_EINVAL);
    assert_int_equal(wal_view_update(store, NULL, NULL, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_view_update(store, &info, NULL, kit_error()), WAL_EINVAL);
    memset(info.session, 'x', sizeof(info.session));
    info.root[0] = '/';
    assert_int_equal(wal_view_update(store, &info, NULL, kit_error()), WAL_EINVAL);
    kit_close(store);
    assert_int_equal(wal_view_cursor_open(NULL, NULL, &cursor, kit_error()), WAL_EINVAL);
}

/* --- what was erased ----------------------------------------------------- */

KIT_TEST(view_update__rewrites_a_view_with_a_redaction)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = listed_session(store, 0xFFFF);
    struct wal_session *fork;

    fork = kit_fork(session, view_kit_id(3), "the-fork");
    (void)view_kit_export(store, session, "claude", "root");
    (void)view_kit_export(store, fork, "claude", "forks");
    assert_true(view_kit_contains("root", "the-canary"));
    assert_true(view_kit_contains("forks", "the-canary"));
    redact(session, 2);
    assert_non_null(strstr(list(store, WAL_VIEW_CURSOR_STALE, ""), "ffff claude root 2;"));
    assert_non_null(strstr(list(store, WAL_VIEW_CURSOR_STALE, ""), "fork claude forks 2;"));
    while (list(store, WAL_VIEW_CURSOR_STALE, "")[0] != '\0') {
        const struct wal_view_cursor_options options = {.struct_size = sizeof(options),
                                                        .flags = WAL_VIEW_CURSOR_STALE};
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
}

/* In each dialect: its files and its state are removed, and nothing else. */
KIT_TEST(view_update__removes_a_view_of_a_deleted_session)
{
    static const char *const dialects[] = {"claude", "codex", "pi", "opencode", "rollouts"};

    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
        struct wal_store *store = kit_store();
        struct wal_session *kept = listed_session(store, 0xFFF1);
        struct wal_session *gone = listed_session(store, 0xFFF2);
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
    struct wal_session *session = listed_session(store, 0xFFFF);

    (void)view_kit_export(store, session, "claude", "root");
    assert_ok(wal_session_trash(session, NULL));
    assert_string_equal(list(store, WAL_VIEW_CURSOR_STALE, ""), "");
    assert_int_equal(update(store, kit_error()), WAL_ETRASHED);
    assert_true(view_kit_contains("root", "the-canary"));
}

/* Another program went on in the file of a session that was deleted. */
KIT_TEST(view_update__leaves_a_file_that_changed)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = listed_session(store, 0xFFFF);
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
    assert_string_equal(list(store, WAL_VIEW_CURSOR_STALE, ""), "ffff claude root 1;");
    assert_int_equal(unlink(path), 0);
    assert_ok(update(store, &error));
    assert_string_equal(list(store, WAL_VIEW_CURSOR_STALE, ""), "");
}

KIT_TEST(view_update__of_a_root_that_is_gone_fails)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = listed_session(store, 0xFFFF);
    struct wal_view_info info;

    (void)view_kit_export(store, session, "claude", "root");
    info = first(store);
    run("rm -r root");
    assert_int_equal(wal_view_update(store, &info, NULL, kit_error()), WAL_ENOTFOUND);
    assert_int_not_equal(access("root", F_OK), 0);
    view_kit_write("root", "x", 1, false);
    assert_int_equal(wal_view_update(store, &info, NULL, kit_error()), WAL_ENOTFOUND);
}

/* A root whose states may not be read, or where no directory of states is. */
KIT_TEST(view_update__of_a_root_that_cannot_be_read_fails)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = listed_session(store, 0xFFFF);
    struct wal_error error = KIT_ERROR;

    (void)view_kit_export(store, session, "claude", "root");
    run("mv root/.agentwal states && ln -s ../states root/.agentwal");
    assert_string_equal(list(store, WAL_VIEW_CURSOR_STALE, ""), " claude root 4;");
    assert_int_equal(update(store, &error), WAL_EACCESS);
    assert_non_null(strstr(error.file, "root"));
}

KIT_TEST(view_update__of_a_read_only_root_fails)
{
    struct wal_store *store = kit_store();
    struct wal_session *kept = listed_session(store, 0xFFF1);
    struct wal_session *gone = listed_session(store, 0xFFF2);
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
        assert_int_equal(wal_view_update(store, &infos[i], NULL, &error), WAL_EACCESS);
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
}

static enum wal_status add(struct wal_store *store, const char *dialect, const char *root,
                           uint32_t flags)
{
    return wal_store_add_view_root(store, kit_text(dialect), kit_text(root), flags, NULL, NULL);
}

struct listed {
    int count;
    int stop_at; /* the callback returns 7 then; 0: never */
    char text[256];
};

static int32_t note(void *ctx, struct wal_slice dialect, struct wal_slice root)
{
    struct listed *listed = ctx;

    assert_int_equal(((const char *)dialect.data)[dialect.size], '\0');
    assert_int_equal(((const char *)root.data)[root.size], '\0');
    (void)snprintf(listed->text, sizeof(listed->text), "%s %s", (const char *)dialect.data,
                   (const char *)root.data);
    return ++listed->count == listed->stop_at ? 7 : 0;
}

static int count(struct wal_store *store)
{
    struct listed listed = {0};

    assert_ok(wal_store_list_view_roots(store, note, &listed, NULL));
    return listed.count;
}

KIT_TEST(view_roots__are_added_listed_and_removed)
{
    struct wal_store *store = kit_store();
    struct listed listed = {0};
    int32_t is_new = 7;

    assert_int_equal(count(store), 0);
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_store_add_view_root(store, kit_text("d"), kit_text("/a"),
                                          i == 0 ? 0 : WAL_STORE_VIEW_ROOT_SYNC, &is_new, NULL));
        assert_int_equal(is_new, i == 0);
    }
    assert_ok(wal_store_list_view_roots(store, note, &listed, NULL));
    assert_int_equal(listed.count, 1);
    assert_string_equal(listed.text, "d /a");
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_store_remove_view_root(store, kit_text("d"), kit_text("/a"), NULL));
        assert_int_equal(count(store), 0);
    }
}

KIT_TEST(view_roots__callback_stops_the_listing)
{
    struct wal_store *store = kit_store();
    struct listed listed = {.stop_at = 2};
    struct wal_error error = KIT_ERROR;

    for (const char *root = "/a\0/b\0/c\0"; *root != '\0'; root += 3) {
        assert_ok(add(store, "d", root, 0));
    }
    assert_int_equal(wal_store_list_view_roots(store, note, &listed, &error), WAL_ECALLBACK);
    assert_int_equal(listed.count, 2);
    assert_int_equal(error.sys_errno, 7);
    assert_int_equal(count(store), 3);
}

KIT_TEST(view_roots__of_a_reader)
{
    struct wal_store *store = kit_store();
    struct wal_store *reader = kit_open("store", WAL_OPEN_READ_ONLY);

    assert_int_equal(add(reader, "d", "/a", WAL_STORE_VIEW_ROOT_WRITER), WAL_EREADONLY);
    assert_int_equal(count(store), 0);
    assert_ok(add(reader, "d", "/a", 0));
    assert_ok(add(store, "d", "/b", WAL_STORE_VIEW_ROOT_WRITER));
    assert_int_equal(count(reader), 2);
}

KIT_TEST(view_roots__without_files_are_not_kept)
{
    const uint32_t flags[] = {WAL_OPEN_MEMORY | WAL_OPEN_CREATE, WAL_OPEN_NOOP};

    for (size_t i = 0; i < 2; i++) {
        struct wal_store *store = kit_open("store", flags[i]);
        int32_t is_new = 7;

        assert_ok(wal_store_add_view_root(store, kit_text("d"), kit_text("/a"),
                                          WAL_STORE_VIEW_ROOT_WRITER, &is_new, NULL));
        assert_int_equal(is_new, 0);
        assert_int_equal(count(store), 0);
        assert_ok(wal_store_remove_view_root(store, kit_text("d"), kit_text("/a"), NULL));
        kit_close(store);
    }
    assert_int_not_equal(access("store", F_OK), 0);
}

static void refuses(struct wal_store *store, struct wal_slice dialect, struct wal_slice root)
{
    int32_t is_new = 7;

    assert_fails(wal_store_add_view_root(store, dialect, root, 0, &is_new, kit_error()), WAL_EINVAL,
                 "path");
    assert_int_equal(is_new, 7);
    assert_int_equal(wal_store_remove_view_root(store, dialect, root, kit_error()), WAL_EINVAL);
}

KIT_TEST(view_roots__misuse_is_refused)
{
    const struct wal_slice texts[] = {{NULL, 0}, {NULL, 1}, {"", 0}, {"/a\0b", 4}};
    struct wal_store *store = kit_store();
    struct wal_slice good[2] = {kit_text("d"), kit_text("/a")};
    char large[4096];

    memset(large, '/', sizeof(large));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        refuses(store, texts[i], good[1]);
        refuses(store, good[0], texts[i]);
    }
    refuses(store, (struct wal_slice){large, 32}, good[1]);
    refuses(store, good[0], (struct wal_slice){large, sizeof(large)});
    refuses(store, good[0], kit_text("relative"));
    assert_int_equal(add(store, "d", "/a", 4), WAL_EINVAL);
    assert_int_equal(add(NULL, "d", "/a", 0), WAL_EINVAL);
    assert_int_equal(wal_store_list_view_roots(store, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_store_list_view_roots(NULL, note, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_store_remove_view_root(NULL, good[0], good[1], NULL), WAL_EINVAL);
    assert_int_equal(count(store), 0);
}
