/*
 * test_view.c - tests of views: the states that their files can be in, those whose checksum is
 * wrong (SPEC.md 10.4), and several threads, each with its own view of one session, two of them of
 * the same files.
 *
 * A session grows and changes at random, and after each step its views are what an export into an
 * empty directory is: one that is held open, and one that is opened anew each time. The nth
 * allocation of a flush fails: it returns WAL_ENOMEM, and the next flush makes the view equal to a
 * full export.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <utime.h>

#include "engine/base/system.h"
#include "format/bytes/assert.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/view_kit.h"

static struct stat stat_of(const char *path)
{
    struct stat found;

    assert_int_equal(stat(path, &found), 0);
    return found;
}

/* The flush returns this status, and names the file. */
static void refuses(struct wal_view *view, enum wal_status status, const char *text)
{
    assert_fails(wal_view_flush(view, NULL, kit_error()), status, text);
}

/* ----------------------------------------------------------- growing --- */

KIT_TEST(view__new_session_is_written_whole)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 5);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    struct wal_view_flush_result report = view_kit_flush(view);

    assert_int_equal(report.lines, 5);
    assert_int_equal(report.entries, 5);
    assert_int_equal(report.flags, WAL_VIEW_REPLACED);
    assert_int_equal(report.bytes, stat_of(view_kit_path(view)).st_size);
    assert_int_equal(report.sequence, kit_info(session).last_sequence);
}

KIT_TEST(view__nothing_new_leaves_files_alone)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 5);
    struct wal_view *view = view_kit_open(store, session, "pi", "root");
    struct wal_view_flush_result first = view_kit_flush(view);
    struct stat before = stat_of(view_kit_path(view));

    for (unsigned i = 0; i < 2; i++) {
        struct wal_view_flush_result report = view_kit_flush(view);
        struct stat after = stat_of(view_kit_path(view));
        assert_int_equal(report.lines, 0);
        assert_int_equal(report.bytes, 0);
        assert_int_equal(report.flags, 0);
        assert_int_equal(report.entries, first.entries);
        assert_int_equal(report.sequence, first.sequence);
        assert_int_equal(before.st_ino, after.st_ino);
        assert_int_equal(wal__system_changed_ns(&before), wal__system_changed_ns(&after));
        /* The second time as if in another process. */
        wal_view_close(view);
        view = view_kit_open(store, session, "pi", "root");
    }
}

/* In place, with the view kept open or opened again. */
static void grow(const char *dialect, bool reopens)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_view *view = view_kit_open(store, session, dialect, "root");
    struct stat before;

    (void)view_kit_flush(view);
    before = stat_of(view_kit_path(view));
    for (unsigned i = 5; i < 20; i += 2) {
        struct wal_view_flush_result report;
        struct stat after;
        view_kit_row(session, i, i - 1, "more text");
        view_kit_row(session, i + 1, i, "and more");
        if (reopens) {
            wal_view_close(view);
            view = view_kit_open(store, session, dialect, "root");
        }
        report = view_kit_flush(view);
        after = stat_of(view_kit_path(view));
        assert_int_equal(report.lines, 2);
        assert_int_equal(report.flags, 0);
        assert_int_equal(report.bytes, after.st_size - before.st_size);
        assert_int_equal(before.st_ino, after.st_ino);
        before = after;
        view_kit_assert_full_export(store, session, dialect, "root");
    }
    wal_view_close(view);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(view__new_lines_are_appended_in_place)
{
    grow("claude", false);
}

KIT_TEST(view__new_lines_are_appended_by_another_process)
{
    grow("claude", true);
}

KIT_TEST(view__new_items_are_appended_in_place)
{
    grow("entries", false);
}

KIT_TEST(view__new_items_are_appended_by_another_process)
{
    grow("entries", true);
}

KIT_TEST(view__imported_lines_are_written_verbatim)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 3);
    struct wal_view *verbatim = view_kit_open(store, session, "claude", "one");
    struct wal_view *parsed = view_kit_open(store, session, "claude", "two");

    /* Spaces, an order and an escape that the writer never produces. */
    view_kit_line(session, 4, 3,
                  " { \"uuid\" : \"00000004-0000-4000-8000-000000000004\" , "
                  "\"parentUuid\":\"00000003-0000-4000-8000-000000000003\","
                  "\"type\":\"user\",\"n\":1.50e1,\"message\":{\"role\":"
                  "\"user\",\"content\":\"\\u0041\\/\"}} ",
                  NULL);
    parsed->is_never_verbatim = true;
    (void)view_kit_flush(verbatim);
    (void)view_kit_flush(parsed);
    assert_true(verbatim->position.is_verbatim);
    assert_false(parsed->position.is_verbatim);
    view_kit_assert_equal("one", "two");
    assert_true(view_kit_contains("one", "\"n\":1.50e1,"));
}

KIT_TEST(view__non_line_entry_ends_verbatim_output)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");

    (void)view_kit_flush(view);
    view_kit_message(session, 5, 0, "user", "appended");
    (void)view_kit_flush(view);
    assert_false(view->position.is_verbatim);
    assert_true(view_kit_contains("root", "appended"));
    view_kit_assert_full_export(store, session, "claude", "root");
}

/* ------------------------------------------------------- provisional --- */

/* A line that lacks its newline is an entry when it is complete. */
KIT_TEST(view__last_line_without_newline_gets_one)
{
    static const char *const dialects[] = {"claude", "pi", "codex"};
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);

    view_kit_line(session, 5, 4,
                  "{\"uuid\":\"00000005-0000-4000-8000-000000000005\","
                  "\"parentUuid\":\"00000004-0000-4000-8000-000000000004\","
                  "\"type\":\"user\",\"message\":{\"role\":\"user\","
                  "\"content\":\"first\"}}",
                  "{\"eol\":false}");
    for (unsigned i = 0; i < 6; i++) {
        (void)view_kit_export(store, session, dialects[i % 3], "root");
        if (i == 2) {
            view_kit_row(session, 6, 5, "second");
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        (void)view_kit_export(store, session, dialects[i], "whole");
    }
    view_kit_assert_equal("root", "whole");
    assert_true(view_kit_contains("root", "first"));
    assert_true(view_kit_contains("root", "second"));
}

/* Rows of one answer are one message in pi: the file's end is written anew. */
KIT_TEST(view__continued_response_is_one_message)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 3);
    struct wal_view *view = view_kit_open(store, session, "pi", "root");
    struct wal_view_flush_result report;

    view_kit_row(session, 4, 3, "begins");
    (void)view_kit_flush(view);
    assert_true(view_kit_contains("root", "begins"));
    for (unsigned i = 0; i < 3; i++) {
        view_kit_line(session, 100 + i, i == 0 ? 4 : 99 + i,
                      i == 0 ? "{\"uuid\":\"00000064-0000-4000-8000-000000000064"
                               "\",\"parentUuid\":\"00000004-0000-4000-8000-"
                               "000000000004\",\"type\":\"assistant\",\"message\":"
                               "{\"role\":\"assistant\",\"id\":\"msg_1\","
                               "\"content\":[{\"type\":\"text\",\"text\":"
                               "\"goes on\"}]}}"
                             : "{\"type\":\"mode\"}",
                      NULL);
        report = view_kit_flush(view);
        assert_int_equal(report.flags & WAL_VIEW_REPLACED, i == 0 ? WAL_VIEW_REPLACED : 0);
        view_kit_assert_full_export(store, session, "pi", "root");
    }
}

/* The temporary file is in the view's folder, even if another file now has the descriptor that the
 * folder had. */
KIT_TEST(view__folder_is_the_one_of_the_flush)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 3);
    struct wal_view *view = view_kit_open(store, session, "pi", "root");
    int taken[8];

    view_kit_row(session, 4, 3, "begins");
    (void)view_kit_flush(view);
    for (unsigned i = 0; i < 8; i++) {
        taken[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    view_kit_line(session, 100, 4,
                  "{\"uuid\":\"00000064-0000-4000-8000-000000000064\","
                  "\"parentUuid\":\"00000004-0000-4000-8000-000000000004\","
                  "\"type\":\"assistant\",\"message\":{\"role\":"
                  "\"assistant\",\"id\":\"msg_1\",\"content\":[{\"type\":"
                  "\"text\",\"text\":\"goes on\"}]}}",
                  NULL);
    assert_int_equal(view_kit_flush(view).flags, WAL_VIEW_REPLACED);
    for (unsigned i = 0; i < 8; i++) {
        close(taken[i]);
    }
    view_kit_assert_full_export(store, session, "pi", "root");
}

/* ----------------------------------------------- what others changed --- */

KIT_TEST(view__file_with_lines_of_others_is_unchanged)
{
    static const char *const dialects[] = {"claude", "entries"};

    for (unsigned i = 0; i < 2; i++) {
        struct wal_store *store = kit_store();
        struct wal_session *session =
            i == 0 ? view_kit_imported(store, 4) : kit_session(store, view_kit_id(0xFFFF));
        struct wal_view *view = view_kit_open(store, session, dialects[i], dialects[i]);
        char *path;
        char *before;
        char *after;
        size_t sizes[2];

        (void)view_kit_flush(view);
        path = strdup(view_kit_path(view));
        view_kit_write(path, "{\"type\":\"of another\"}\n", 22, true);
        before = test_file(path, &sizes[0]);
        view_kit_row(session, 50 + i, 4, "unseen");
        for (unsigned n = 0; n < 2; n++) {
            refuses(view, WAL_ECHANGED, "import it first");
            wal_view_close(view);
            view = view_kit_open(store, session, dialects[i], dialects[i]);
        }
        after = test_file(path, &sizes[1]);
        assert_string_equal(before, after);
        /* With the foreign bytes cut off, the view equals a full export. */
        view_kit_write(path, before, sizes[0] - 22, false);
        (void)view_kit_flush(view);
        view_kit_assert_full_export(store, session, dialects[i], dialects[i]);
        free(path);
        wal_view_close(view);
        wal_session_close(session);
        kit_close(store);
    }
}

KIT_TEST(view__file_with_other_content_is_unchanged)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    struct wal_error error = KIT_ERROR;
    size_t size;
    char *data;
    char *path;

    (void)view_kit_flush(view);
    path = strdup(view_kit_path(view));
    data = test_file(path, &size);
    data[size / 2] ^= 1;
    view_kit_write(path, data, size, false);
    assert_int_equal(wal_view_flush(view, NULL, &error), WAL_ECHANGED);
    assert_non_null(strstr(path, error.file));
    free(path);
}

KIT_TEST(view__truncated_file_is_completed)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    size_t size;

    (void)view_kit_flush(view);
    (void)test_file(view_kit_path(view), &size);
    for (size_t cut = 0; cut < size; cut += 97) {
        assert_int_equal(truncate(view_kit_path(view), (off_t)cut), 0);
        (void)view_kit_flush(view);
        view_kit_assert_full_export(store, session, "claude", "root");
    }
}

KIT_TEST(view__file_removed_is_written_again)
{
    static const char *const dialects[] = {"claude", "pi", "sdk", "opencode"};
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);

    for (unsigned i = 0; i < 4; i++) {
        struct wal_view *view = view_kit_open(store, session, dialects[i], dialects[i]);
        (void)view_kit_flush(view);
        assert_int_equal(unlink(view_kit_path(view)), 0);
        wal_view_close(view);
        (void)view_kit_export(store, session, dialects[i], dialects[i]);
        view_kit_assert_full_export(store, session, dialects[i], dialects[i]);
    }
}

KIT_TEST(view__touched_file_is_still_recognised)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");
    const struct utimbuf times = {1, 1};

    (void)view_kit_flush(view);
    assert_int_equal(utime(view_kit_path(view), &times), 0);
    assert_ok(wal_session_redact(session, kit_text(view_kit_id(2)), kit_text(""), NULL, NULL));
    (void)view_kit_flush(view);
    view_kit_assert_full_export(store, session, "claude", "root");
}

/* ------------------------------------------------------------- state --- */

/* Replaces the root's states by their first bytes. */
static void cut_states(const char *root, const char *size)
{
    char command[256];

    snprintf(command, sizeof(command), "truncate -s %s %s/.agentwal/*.json", size, root);
    assert_int_equal(system(command), 0);
}

KIT_TEST(view__lost_state_is_rebuilt)
{
    static const char *const sizes[] = {"0", "1", "-1", "100", "+1"};
    static const char *const dialects[] = {"claude", "codex", "spec11"};
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);

    for (unsigned i = 0; i < 15; i++) {
        const char *dialect = dialects[i / 5];
        (void)view_kit_export(store, session, dialect, "root");
        cut_states("root", sizes[i % 5]);
        view_kit_row(session, 10 + i, i == 0 ? 4 : 9 + i, "more");
        (void)view_kit_export(store, session, dialect, "root");
        view_kit_assert_full_export(store, session, dialect, "root");
        assert_int_equal(system("rm -rf root"), 0);
    }
}

KIT_TEST(view__state_of_another_store_is_ignored)
{
    struct wal_store *stores[2] = {kit_open("one", WAL_OPEN_CREATE),
                                   kit_open("two", WAL_OPEN_CREATE)};
    struct wal_session *sessions[2];

    for (unsigned i = 0; i < 2; i++) {
        sessions[i] = view_kit_imported(stores[i], 3 + i);
        (void)view_kit_export(stores[i], sessions[i], "claude", "root");
    }
    view_kit_assert_full_export(stores[1], sessions[1], "claude", "root");
    for (unsigned i = 0; i < 2; i++) {
        wal_session_close(sessions[i]);
        kit_close(stores[i]);
    }
}

KIT_TEST(view__handles_take_turns)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 3);
    struct wal_view *views[2] = {view_kit_open(store, session, "pi", "root"),
                                 view_kit_open(store, session, "pi", "root")};

    for (unsigned i = 4; i < 24; i++) {
        view_kit_row(session, i, i - 1, "in turns");
        (void)view_kit_flush(views[i / 3 % 2]);
        view_kit_assert_full_export(store, session, "pi", "root");
    }
}

/* --------------------------------------------- what changes the past --- */

KIT_TEST(view__redacted_bytes_are_in_no_file)
{
    const char *dialect;

    for (uint32_t i = 0; (dialect = wal_view_dialect(i)) != NULL; i++) {
        for (unsigned reopens = 0; reopens < 2; reopens++) {
            struct wal_store *store = kit_store();
            struct wal_session *session = view_kit_import(store, 100 + 2 * i + reopens);
            struct wal_view *view;

            for (unsigned n = 1; n <= 6; n++) {
                view_kit_row(session, n, n - 1, n == 3 ? "the secret" : "plain");
            }
            view = view_kit_open(store, session, dialect, "root");
            (void)view_kit_flush(view);
            assert_true(view_kit_contains("root", "the secret"));
            assert_ok(
                wal_session_redact(session, kit_text(view_kit_id(3)), kit_text(""), NULL, NULL));
            if (reopens == 1) {
                wal_view_close(view);
                view = view_kit_open(store, session, dialect, "root");
            }
            (void)view_kit_flush(view);
            assert_false(view_kit_contains("root", "the secret"));
            view_kit_assert_full_export(store, session, dialect, "root");
            wal_view_close(view);
            wal_session_close(session);
            kit_close(store);
            assert_int_equal(system("rm -rf root"), 0);
        }
    }
}

/* A fork's redaction applies to its source too, which gets no new record. */
KIT_TEST(view__redaction_by_a_fork_is_applied)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 5);
    struct wal_session *fork = NULL;
    struct wal_view *view = view_kit_open(store, session, "claude", "root");

    (void)view_kit_flush(view);
    assert_ok(wal_session_fork(session, kit_text(""), NULL, &fork, NULL));
    assert_ok(wal_session_redact(fork, kit_text(view_kit_id(2)), kit_text(""), NULL, NULL));
    (void)view_kit_flush(view);
    view_kit_assert_full_export(store, session, "claude", "root");
    assert_int_equal(view->position.redacted, 1);
    wal_session_close(fork);
}

/* As many entries are redacted as before, but others; of a session and of its fork, which gets no
 * new record. */
KIT_TEST(view__undone_redaction_is_applied)
{
    const char *dialect;

    for (uint32_t i = 0; (dialect = wal_view_dialect(i)) != NULL; i++) {
        for (unsigned is_fork = 0; is_fork < 2; is_fork++) {
            struct wal_store *store = kit_store();
            struct wal_session *session = view_kit_import(store, 700 + 2 * i + is_fork);
            struct wal_session *shown = session;
            struct wal_view *view;

            for (unsigned n = 1; n <= 6; n++) {
                view_kit_row(session, n, n - 1,
                             n == 3   ? "the secret"
                             : n == 4 ? "the word"
                                      : "plain");
            }
            kit_redact(session, view_kit_id(3));
            if (is_fork == 1) {
                assert_ok(wal_session_fork(session, kit_text(""), NULL, &shown, NULL));
            }
            view = view_kit_open(store, shown, dialect, "root");
            (void)view_kit_flush(view);
            assert_false(view_kit_contains("root", "the secret"));
            assert_true(view_kit_contains("root", "the word"));
            assert_ok(wal_session_unredact(session, kit_text(view_kit_id(3)), NULL));
            kit_redact(session, view_kit_id(4));
            (void)view_kit_flush(view);
            assert_true(view_kit_contains("root", "the secret"));
            assert_false(view_kit_contains("root", "the word"));
            view_kit_assert_full_export(store, shown, dialect, "root");
            wal_view_close(view);
            if (is_fork == 1) {
                wal_session_close(shown);
            }
            wal_session_close(session);
            kit_close(store);
            assert_int_equal(system("rm -rf root"), 0);
        }
    }
}

static void move_head(struct wal_session *session, unsigned id)
{
    const struct wal_head head = {.struct_size = sizeof(head),
                                  .entry_id = kit_text(view_kit_id(id))};

    assert_ok(wal_head_move(session, &head, NULL, NULL));
}

KIT_TEST(view__head_moves_back_and_forward)
{
    const char *dialect;

    for (uint32_t i = 0; (dialect = wal_view_dialect(i)) != NULL; i++) {
        struct wal_store *store = kit_store();
        struct wal_session *session = view_kit_import(store, 200 + i);
        struct wal_view *view = view_kit_open(store, session, dialect, "root");

        for (unsigned n = 1; n <= 6; n++) {
            view_kit_row(session, n, n - 1, "text");
        }
        for (unsigned n = 0; n < 6; n++) {
            if (n == 1) {
                move_head(session, 3);
            } else if (n == 2 || n == 3) {
                view_kit_row(session, 20 + n, n == 2 ? 3 : 22, "aside");
            } else if (n == 4) {
                move_head(session, 6);
            } else if (n == 5) {
                view_kit_message(session, 30, 0, "user", "after");
            }
            (void)view_kit_flush(view);
            view_kit_assert_full_export(store, session, dialect, "root");
        }
        wal_view_close(view);
        wal_session_close(session);
        kit_close(store);
        assert_int_equal(system("rm -rf root"), 0);
    }
}

static int32_t set_cwd(void *ctx, const struct wal_session_info *now,
                       struct wal_session_change *change)
{
    (void)now;
    change->fields = WAL_CHANGE_CWD;
    change->cwd = kit_text(ctx);
    return 0;
}

/* The file goes where the session is now; the old one is no view of it. */
KIT_TEST(view__directory_changed_moves_the_file)
{
    static char place[] = "/another/place";
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_view *view = view_kit_open(store, session, "pi", "root");

    (void)view_kit_flush(view);
    assert_ok(wal_session_update(session, set_cwd, place, NULL));
    (void)view_kit_flush(view);
    assert_true(view_kit_contains("root", "/another/place"));
    view_kit_assert_full_export(store, session, "pi", "root");
}

/* ----------------------------------------------------------- durable --- */

KIT_TEST(view__contains_appends_before_the_flush)
{
    const struct wal_append_options queued = {.struct_size = sizeof(queued),
                                              .durability = WAL_QUEUED};
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 2);
    struct wal_view *view = view_kit_open(store, session, "entries", "root");
    struct wal_entry entry = kit_entry("last", NULL,
                                       "{\"role\":\"user\","
                                       "\"content\":\"q\"}");

    assert_ok(wal_append(session, &entry, 1, &queued, NULL, NULL));
    (void)view_kit_flush(view);
    assert_true(view_kit_contains("root", "\"last\""));
}

KIT_TEST(view__never_runs_ahead_of_the_durable_log)
{
    const struct wal_open_options slow = {
        .struct_size = sizeof(slow), .flags = WAL_OPEN_CREATE, .idle_mark_ms = 60000};
    const struct wal_append_options written = {.struct_size = sizeof(written),
                                               .durability = WAL_WRITTEN};
    struct wal_entry entry = kit_entry("ahead", NULL,
                                       "{\"role\":\"user\","
                                       "\"content\":\"w\"}");
    struct wal_store *writer = NULL;
    struct wal_store *reader;
    struct wal_session *sessions[2];
    struct wal_view *view;

    assert_ok(wal_open("store", &slow, &writer, NULL));
    (void)kit_keep(writer);
    sessions[0] = view_kit_imported(writer, 2);
    assert_ok(wal_append(sessions[0], &entry, 1, &written, NULL, NULL));
    reader = kit_open("store", WAL_OPEN_READ_ONLY);
    sessions[1] = kit_session(reader, view_kit_id(0xFFFF));
    for (unsigned i = 0; i < 2; i++) {
        view = view_kit_open(reader, sessions[1], i == 0 ? "pi" : "rollouts", "root");
        assert_int_equal(view_kit_flush(view).entries, 2);
        assert_ok(wal_sync(writer, NULL));
        assert_int_equal(view_kit_flush(view).entries, 3);
        wal_view_close(view);
        if (i == 0) {
            entry.id = kit_text("more");
            break;
        }
    }
    assert_true(view_kit_contains("root", "\"w\""));
    for (unsigned i = 0; i < 2; i++) {
        wal_session_close(sessions[i]);
    }
}

/* --------------------------------------------------------------- use --- */

struct sink {
    char data[65536];
    size_t size;
    int32_t answer;
};

static int32_t take(void *ctx, const void *data, uint64_t size)
{
    struct sink *sink = ctx;

    assert_true(sink->size + size < sizeof(sink->data));
    memcpy(sink->data + sink->size, data, size);
    sink->size += size;
    return sink->answer;
}

KIT_TEST(view__callback_receives_the_lines)
{
    static struct sink sink;
    const struct wal_view_options options = {
        .struct_size = sizeof(options), .dialect = kit_text("sdk"), .put = take, .ctx = &sink};
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_view *view = NULL;
    struct wal_error error = KIT_ERROR;
    size_t size;
    char *data;

    (void)view_kit_export(store, session, "sdk", "root");
    assert_ok(wal_view_open(store, session, &options, &view, NULL));
    for (unsigned i = 0; i < 2; i++) {
        char path[256];
        sink.size = 0;
        (void)view_kit_flush(view);
        snprintf(path, sizeof(path), "root/%s", view_kit_path(view));
        data = test_file(path, &size);
        assert_int_equal(size, sink.size);
        assert_memory_equal(data, sink.data, size);
    }
    sink.answer = 9;
    assert_int_equal(wal_view_flush(view, NULL, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 9);
    wal_view_close(view);
}

KIT_TEST(view__fork_of_an_import_reads_its_lines)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 4);
    struct wal_session *fork = kit_fork(session, NULL, "a-fork");
    const char *name;
    uint64_t count;
    struct wal_view *view = view_kit_open(store, fork, "entries", "root");

    (void)view_kit_flush(view);
    assert_true(view_kit_contains("root", "\"text\":\"some text\""));
    for (uint32_t i = 0; wal_view_loss(view, i, &name, &count, NULL) == WAL_OK; i++) {
        assert_string_not_equal(name, "lines that are not JSON");
    }
}

KIT_TEST(view__path_out_of_the_root_is_refused)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "..");
    struct wal_view *view;

    kit_append(session, "a", NULL);
    view = view_kit_open(store, session, "sdk", "root/below");
    assert_int_not_equal(wal_view_flush(view, NULL, NULL), WAL_ENOMEM);
    assert_int_not_equal(access("root/metadata.json", F_OK), 0);
    assert_int_not_equal(access("root/messages.jsonl", F_OK), 0);
}

KIT_TEST(view__link_below_the_root_is_not_followed)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 2);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");

    assert_int_equal(mkdir("root", 0700), 0);
    assert_int_equal(mkdir("elsewhere", 0700), 0);
    assert_int_equal(symlink("../elsewhere", "root/projects"), 0);
    refuses(view, WAL_EOUTSIDE, "projects is a symbolic link");
    assert_int_equal(rmdir("elsewhere"), 0);
}

KIT_TEST(view__invalid_arguments_are_refused)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 1);
    struct wal_view_options options = {
        .struct_size = sizeof(options), .dialect = kit_text("pi"), .root = kit_text("root")};
    struct wal_view_flush_result report = {.struct_size = 1};
    struct wal_view *view = NULL;
    const char *name;
    uint64_t count;

    assert_int_equal(wal_view_open(NULL, session, &options, &view, NULL), WAL_EINVAL);
    assert_int_equal(wal_view_open(store, NULL, &options, &view, NULL), WAL_EINVAL);
    assert_int_equal(wal_view_open(store, session, NULL, &view, NULL), WAL_EINVAL);
    options.put = take;
    assert_int_equal(wal_view_open(store, session, &options, &view, NULL), WAL_EINVAL);
    options.put = NULL;
    options.dialect = kit_text("lines");
    assert_int_equal(wal_view_open(store, session, &options, &view, NULL), WAL_ENOTFOUND);
    assert_null(view);
    options.dialect = kit_text("pi");
    assert_ok(wal_view_open(store, session, &options, &view, NULL));
    assert_int_equal(wal_view_flush(view, &report, NULL), WAL_EINVAL);
    assert_int_equal(wal_view_flush(NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_view_path(view, 0, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_view_loss(view, 0, &name, &count, NULL), WAL_END);
    assert_int_equal(wal_view_loss(NULL, 0, &name, &count, NULL), WAL_EINVAL);
    wal_view_close(view);
}

struct growing {
    struct wal_store *store;
    struct wal_session *session;
    uint64_t random;
    unsigned count; /* entries so far */
};

static unsigned below(struct growing *growing, unsigned end)
{
    return (unsigned)(kit_random(&growing->random) % end);
}

static unsigned any(struct growing *growing)
{
    return growing->count > 0 ? 1 + below(growing, growing->count) : 0;
}

static void add_call(struct growing *growing)
{
    char payload[512];
    struct wal_entry entry = {.struct_size = sizeof(entry), .type = kit_text("message")};

    snprintf(payload, sizeof(payload),
             "{\"role\":\"assistant\",\"id\":\"m%u\",\"content\":[{\"type\":"
             "\"toolCall\",\"id\":\"call_%u\",\"name\":\"read\",\"arguments\":"
             "{}}]}",
             growing->count / 3, growing->count);
    entry.id = kit_text(view_kit_id(++growing->count));
    entry.payload = kit_text(payload);
    assert_ok(wal_append(growing->session, &entry, 1, NULL, NULL, NULL));
    snprintf(payload, sizeof(payload),
             "{\"role\":\"tool\",\"toolCallId\":\"call_%u\",\"toolName\":"
             "\"read\",\"content\":\"result\"}",
             growing->count - 1);
    entry.id = kit_text(view_kit_id(++growing->count));
    entry.payload = kit_text(payload);
    assert_ok(wal_append(growing->session, &entry, 1, NULL, NULL, NULL));
}

static void move_to_any(struct growing *growing)
{
    const struct wal_head head = {.struct_size = sizeof(head),
                                  .entry_id = kit_text(view_kit_id(any(growing)))};

    assert_ok(wal_head_move(growing->session, &head, NULL, NULL));
}

static void step(struct growing *growing, bool is_import)
{
    char title[32];
    unsigned kind = below(growing, 20);
    unsigned id;

    if (growing->count == 0 || kind < 7) {
        id = ++growing->count;
        if (is_import) {
            view_kit_row(growing->session, id, id - 1, "row");
        } else {
            view_kit_message(growing->session, id, 0, kind % 2 == 0 ? "user" : "assistant",
                             "message");
        }
    } else if (kind < 12) {
        id = growing->count + 1;
        view_kit_message(growing->session, id, kind == 11 ? any(growing) : 0,
                         kind < 10 ? "assistant" : "user", "said");
        growing->count++;
    } else if (kind < 14) {
        add_call(growing);
    } else if (kind == 14) {
        move_to_any(growing);
    } else if (kind == 15) {
        id = ++growing->count;
        view_kit_line(growing->session, id, id - 1, "no JSON", "{\"inexact\":true}");
    } else if (kind == 16) {
        id = ++growing->count;
        view_kit_line(growing->session, id, id - 1, "{\"type\":\"cut",
                      "{\"eol\":false,\"inexact\":true}");
    } else if (kind == 17) {
        snprintf(title, sizeof(title), "title %u", growing->count);
        assert_ok(wal_session_update(growing->session, kit_set_title, title, NULL));
    } else if (kind == 18 && below(growing, 3) == 0) {
        enum wal_status status = wal_session_redact(
            growing->session, kit_text(view_kit_id(any(growing))), kit_text(""), NULL, kit_error());
        assert_true(status == WAL_OK || status == WAL_EREDACTED);
    }
}

static void grow_by_chance(const char *dialect, bool is_import, uint64_t seed, unsigned steps)
{
    struct growing growing = {.store = kit_store(), .random = seed};
    struct wal_view *view;

    growing.session =
        is_import ? view_kit_import(growing.store, 0xFFFF) : kit_create(growing.store, "native");
    view = view_kit_open(growing.store, growing.session, dialect, "held");
    for (unsigned i = 0; i < steps; i++) {
        for (unsigned n = below(&growing, 3); n < 3; n++) {
            step(&growing, is_import);
        }
        (void)view_kit_flush(view);
        (void)view_kit_export(growing.store, growing.session, dialect, "anew");
        assert_int_equal(system("rm -rf fresh"), 0);
        (void)view_kit_export(growing.store, growing.session, dialect, "fresh");
        view_kit_assert_equal("fresh", "held");
        view_kit_assert_equal("fresh", "anew");
    }
    wal_view_close(view);
    wal_session_close(growing.session);
    kit_close(growing.store);
    assert_int_equal(system("rm -rf store held anew fresh"), 0);
}

static void grow_all(bool is_import)
{
    const uint64_t seed = kit_seed();
    const bool is_long = getenv("AGENTWAL_LONG") != NULL;
    const char *dialect;

    for (uint32_t i = 0; (dialect = wal_view_dialect(i)) != NULL; i++) {
        unsigned steps = strcmp(dialect, "opencode") == 0 ? 8 : 20;
        for (unsigned n = 0; n < (is_long ? 40 : 1); n++) {
            print_message("%s, seed %llu\n", dialect, (unsigned long long)seed + n);
            grow_by_chance(dialect, is_import, seed + n, steps);
        }
    }
}

KIT_TEST(view_grown__session_that_was_appended)
{
    grow_all(false);
}

KIT_TEST(view_grown__session_that_was_imported)
{
    grow_all(true);
}

static struct wal_view *open_view(struct wal_store *store, struct wal_session *session,
                                  const char *dialect, const struct wal__heap *heap)
{
    const struct wal__view_env env = {.heap = heap};
    const struct wal_view_options options = {
        .struct_size = sizeof(options), .dialect = kit_text(dialect), .root = kit_text("root")};
    struct wal_view *view = NULL;
    enum wal_status status = wal__view_open(store, session, &options, &env, &view, NULL);

    assert_true(status == WAL_OK || status == WAL_ENOMEM);
    assert_true((status == WAL_OK) == (view != NULL));
    return view;
}

static void make(struct wal_session *session, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        view_kit_row(session, i, i - 1, "text");
    }
}

/* Fails one allocation after the other in two flushes of one view. */
static void fail_each(const char *dialect, bool sticky)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_import(store, 0xFFFF);
    unsigned rows = 1;
    bool is_done = false;

    make(session, rows, 6);
    rows = 6;
    for (uint64_t n = 1; !is_done; n += 1 + n / 10) {
        struct faulty_heap faulty;
        struct wal_view *view;
        enum wal_status status;
        faulty_heap_init(&faulty, &wal__heap_libc);
        faulty_heap_fail(&faulty, n, sticky);
        view = open_view(store, session, dialect, &faulty.heap);
        for (unsigned i = 0; i < 2 && view != NULL; i++) {
            status = wal_view_flush(view, NULL, kit_error());
            assert_true(status == WAL_OK || status == WAL_ENOMEM);
            if (i == 0) {
                make(session, rows, rows + 1);
                rows++;
            }
        }
        wal_view_close(view);
        assert_int_equal(faulty.live, 0);
        is_done = faulty.failures == 0;
        (void)view_kit_export(store, session, dialect, "root");
        view_kit_assert_full_export(store, session, dialect, "root");
    }
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(system("rm -rf store root"), 0);
}

KIT_TEST(view_memory__unchanged_lines)
{
    fail_each("claude", false);
    fail_each("claude", true);
}

KIT_TEST(view_memory__lines_that_may_continue)
{
    fail_each("pi", false);
}

KIT_TEST(view_memory__live_branch_and_documents)
{
    fail_each("spec11", false);
    fail_each("opencode", false);
}

#define ROLLOUT "sessions/2026/01/02/rollout-2026-01-02T03-04-05-"

/* A paginated thread of Codex in its folder, root, and a fork of it with a message. */
static struct wal_session *fork_of_thread(struct wal_store *store)
{
    char id[64];
    char source[256];
    char path[256];
    char line[512];
    struct wal_session_options options = {.struct_size = sizeof(options)};
    struct wal_session *thread;
    struct wal_session *fork = NULL;

    snprintf(id, sizeof(id), "%s", view_kit_id(0xFFFF));
    snprintf(source, sizeof(source), "codex 0 " ROLLOUT "%s.jsonl", id);
    snprintf(path, sizeof(path), "root/" ROLLOUT "%s.jsonl", id);
    assert_int_equal(system("mkdir -p root/sessions/2026/01/02"), 0);
    options.id = kit_text(id);
    options.source = kit_text(source);
    thread = kit_create_with(store, &options);
    for (unsigned i = 0; i < 3; i++) {
        const char *payload =
            "\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\","
            "\"text\":\"shared\"}]";
        char header[256];
        snprintf(header, sizeof(header), "\"id\":\"%s\",\"history_mode\":\"paginated\"", id);
        snprintf(line, sizeof(line),
                 "{\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"ordinal\":%u,\"type\":\"%s\","
                 "\"payload\":{%s}}",
                 i, i == 0 ? "session_meta" : "response_item", i == 0 ? header : payload);
        view_kit_line(thread, i + 1, i, line, NULL);
        view_kit_write(path, line, strlen(line), i > 0);
        view_kit_write(path, "\n", 1, true);
    }
    assert_done(wal_session_fork(thread, kit_text(view_kit_id(2)), NULL, &fork, kit_error()));
    view_kit_message(fork, 4, 0, "user", "own");
    wal_session_close(thread);
    return fork;
}

/* Its file names the line of the thread that it goes on from, with and without memory. */
KIT_TEST(view_memory__fork_that_goes_on_from_a_line)
{
    struct wal_store *store = kit_store();
    struct wal_session *fork = fork_of_thread(store);
    bool is_done = false;

    for (uint64_t n = 1; !is_done; n += 1 + n / 20) {
        struct faulty_heap faulty;
        struct wal_view *view;
        size_t size;
        char *text;
        char *path;

        faulty_heap_init(&faulty, &wal__heap_libc);
        faulty_heap_fail(&faulty, n, n % 2 == 0);
        view = open_view(store, fork, "codex", &faulty.heap);
        for (unsigned i = 0; i < 2 && view != NULL; i++) {
            enum wal_status status = wal_view_flush(view, NULL, kit_error());
            assert_true(status == WAL_OK || status == WAL_ENOMEM);
        }
        wal_view_close(view);
        assert_int_equal(faulty.live, 0);
        is_done = faulty.failures == 0;
        for (unsigned i = 0; i < 2; i++) {
            view = view_kit_open(store, fork, "codex", "root");
            (void)view_kit_flush(view);
            path = strdup(view_kit_path(view));
            wal_view_close(view);
            text = test_file(path, &size);
            assert_non_null(strstr(text, "\"end_ordinal_exclusive\":2,\"end_byte_offset\":"));
            assert_non_null(strstr(text, "own"));
            assert_null(strstr(text, "shared"));
            /* The second time with the file there. */
            if (i > 0) {
                assert_int_equal(unlink(path), 0);
            }
            free(path);
        }
    }
    wal_session_close(fork);
}

enum {
    STRIDE = 5 /* of the digits of a state that are tried */
};

static char *state_path(void)
{
    static char path[512];
    DIR *directory = opendir("root/.agentwal");
    struct dirent *entry;

    assert_non_null(directory);
    path[0] = '\0';
    while ((entry = readdir(directory)) != NULL) {
        size_t size = strlen(entry->d_name);

        if (size > 5 && strcmp(entry->d_name + size - 5, ".json") == 0) {
            (void)snprintf(path, sizeof(path), "root/.agentwal/%s", entry->d_name);
        }
    }
    (void)closedir(directory);
    assert_true(path[0] != '\0');
    return path;
}

/* Changes the n-th digit of the state; false: it has fewer. */
static bool change_digit(size_t n)
{
    size_t size;
    size_t at = 0;
    char *state = test_file(state_path(), &size);

    while (at < size && (state[at] < '0' || state[at] > '9' || n-- > 0)) {
        at++;
    }
    if (at < size) {
        state[at] = state[at] == '9' ? '8' : (char)(state[at] + 1);
        view_kit_write(state_path(), state, size, false);
    }
    return at < size;
}

/* Digits of the state are changed in turn, so that it is valid JSON: the
 * flush does not go on from it, and the files are right. The files are those
 * that the state describes, or it would not be used in any case. */
KIT_TEST(view_state__with_another_digit_is_not_used)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_imported(store, 3);
    unsigned tried = 0;

    (void)view_kit_export(store, session, "claude", "root");
    while (change_digit((size_t)tried * STRIDE)) {
        view_kit_row(session, 4 + tried, 3 + tried, "more");
        (void)view_kit_export(store, session, "claude", "root");
        view_kit_assert_full_export(store, session, "claude", "root");
        tried++;
    }
    assert_true(tried > 20);
}

enum { ROWS = 60, VIEWS = 4 };

struct viewer {
    struct wal_view *view;
    pthread_t thread;
};

static void *look(void *ctx)
{
    const struct viewer *viewer = ctx;
    struct wal_view_flush_result report = {.struct_size = sizeof(report)};

    while (report.entries < ROWS) {
        WAL__ASSERT(wal_view_flush(viewer->view, &report, NULL) == WAL_OK);
    }
    return NULL;
}

KIT_TEST(view_threads__each_thread_has_a_view)
{
    static const char *const dialects[VIEWS] = {"claude", "pi", "pi", "codex"};
    struct wal_store *store = kit_store();
    struct wal_session *session = view_kit_import(store, 0xFFFF);
    struct viewer viewers[VIEWS];

    for (unsigned i = 0; i < VIEWS; i++) {
        viewers[i].view = view_kit_open(store, session, dialects[i], i == 3 ? "codex" : "root");
        assert_int_equal(pthread_create(&viewers[i].thread, NULL, look, &viewers[i]), 0);
    }
    for (unsigned i = 1; i <= ROWS; i++) {
        view_kit_row(session, i, i - 1, "text");
    }
    for (unsigned i = 0; i < VIEWS; i++) {
        assert_int_equal(pthread_join(viewers[i].thread, NULL), 0);
        (void)view_kit_flush(viewers[i].view);
        wal_view_close(viewers[i].view);
    }
    (void)view_kit_export(store, session, "claude", "whole");
    (void)view_kit_export(store, session, "pi", "whole");
    view_kit_assert_equal("whole", "root");
    view_kit_assert_full_export(store, session, "codex", "codex");
}
