/*
 * test_import_follow.c - tests of wal_import_follow.
 */
#include "tests/lib/kit/store_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "agentwal/import.h"

enum {
    PATH_SIZE = 512,
    WAIT_MS = 100,
    TRIES = 100
};

#define PROJECT "home/.claude/projects/-srv-app"

static void make_folder(const char *path)
{
    char folder[PATH_SIZE];

    for (const char *at = path; (at = strchr(at, '/')) != NULL; at++) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(at - path), path);
        assert_true(mkdir(folder, 0700) == 0 || errno == EEXIST);
    }
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
}

static void add_text(const char *folder, const char *name, const char *text)
{
    char path[PATH_SIZE];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* A row of Claude Code. */
static const char *row_of(const char *id, unsigned number)
{
    static char row[PATH_SIZE];
    char parent[80] = "null";

    if (number > 1) {
        snprintf(parent, sizeof(parent), "\"%s-%u\"", id, number - 1);
    }
    snprintf(row, sizeof(row),
             "{\"parentUuid\":%s,\"isSidechain\":false,\"type\":\"user\","
             "\"cwd\":\"/srv/app\",\"sessionId\":\"%s\",\"message\":{\"role\":"
             "\"user\",\"content\":\"text\"},\"uuid\":\"%s-%u\",\"timestamp\":"
             "\"2026-02-03T09:00:00.000Z\"}\n",
             parent, id, id, number);
    return row;
}

static void add_rows(const char *folder, const char *id, unsigned first,
                     unsigned last)
{
    char name[80];

    snprintf(name, sizeof(name), "%s.jsonl", id);
    for (unsigned i = first; i <= last; i++) {
        add_text(folder, name, row_of(id, i));
    }
}

/* What the callbacks are given. */
static unsigned projects_named;

/* A failure is printed: the test that waits for the file fails. */
static int32_t on_report(void *ctx, const struct wal_import_report *report)
{
    assert_ptr_equal(ctx, &projects_named);
    if (report->status != WAL_OK) {
        print_error("%s: %d: %s\n", (const char *)report->path.data,
                    report->status, report->error->text);
    }
    return 0;
}

static int32_t on_progress(void *ctx, struct wal_slice path, uint64_t done,
                           uint64_t total)
{
    (void)path;
    assert_ptr_equal(ctx, &projects_named);
    assert_true(total == 0 || done <= total);
    return 0;
}

static int32_t on_project(void *ctx, struct wal_slice directory, char *project,
                          uint64_t size)
{
    assert_ptr_equal(ctx, &projects_named);
    projects_named++;
    (void)snprintf(project, size, "project of %s",
                   (const char *)directory.data);
    return 0;
}

static struct wal_import_follow *follow_path(struct wal_store *store,
                                             const char *path)
{
    const struct wal_slice paths[] = {kit_text(path)};
    struct wal_import_options options = WAL_INIT(wal_import_options);
    struct wal_import_result result = WAL_INIT(wal_import_result);
    struct wal_import_follow *follow = NULL;

    options.exclude = kit_text("store");
    options.report = on_report;
    options.progress = on_progress;
    options.project = on_project;
    options.ctx = &projects_named;
    assert_ok(wal_import_follow_open(store, paths, 1, &options, &follow, NULL));
    assert_ok(wal_import_follow_next(follow, 0, &result, NULL));
    return follow;
}

static uint64_t count_entries(struct wal_store *store, const char *id)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;

    if (wal_session_open(store, kit_text(id), &session, NULL) != WAL_OK) {
        return 0;
    }
    assert_ok(wal_session_get_info(session, &info, NULL));
    wal_session_close(session);
    return info.entries;
}

static unsigned count_sessions(struct wal_store *store)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    unsigned count = 0;

    assert_ok(wal_session_cursor_open(store, NULL, &list, NULL));
    while (wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
        count++;
    }
    wal_session_cursor_close(list);
    return count;
}

/* Imports changes until the session has this number of entries. */
static void wait_for(struct wal_import_follow *follow, struct wal_store *store,
                     const char *id, uint64_t entries)
{
    for (unsigned i = 0; i < TRIES && count_entries(store, id) != entries;
         i++) {
        assert_ok(wal_import_follow_next(follow, WAIT_MS, NULL, NULL));
    }
    assert_int_equal(count_entries(store, id), entries);
}

/* Imports what there is; returns the number of new entries. */
static uint64_t settle(struct wal_import_follow *follow)
{
    struct wal_import_result result = WAL_INIT(wal_import_result);
    uint64_t appended = 0;

    for (unsigned i = 0; i < 3; i++) {
        assert_ok(wal_import_follow_next(follow, 10, &result, NULL));
        appended += result.appended;
    }
    return appended;
}

static struct wal_import_follow_info
info_of(const struct wal_import_follow *follow)
{
    struct wal_import_follow_info info = WAL_INIT(wal_import_follow_info);

    assert_ok(wal_import_follow_get_info(follow, &info, NULL));
    return info;
}

/* -------------------------------------------------------------- changes --- */

KIT_TEST(follow__file_that_grows)
{
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;

    make_folder(PROJECT);
    add_rows(PROJECT, "a", 1, 2);
    follow = follow_path(store, "home/.claude");
    assert_int_equal(count_entries(store, "a"), 2);
    assert_int_equal(settle(follow), 0);
    add_rows(PROJECT, "a", 3, 5);
    wait_for(follow, store, "a", 5);
    assert_int_equal(info_of(follow).scans, 1);
    assert_int_equal(info_of(follow).is_scanning, 0);
    wal_import_follow_close(follow);
    kit_close(store);
}

/* By the first import, and by what follows it. */
KIT_TEST(follow__project_is_named_by_the_caller)
{
    static const char *const ids[] = {"a", "b"};
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;

    projects_named = 0;
    make_folder(PROJECT);
    add_rows(PROJECT, "a", 1, 2);
    follow = follow_path(store, "home/.claude");
    assert_int_equal(projects_named, 1);
    add_rows(PROJECT, "b", 1, 2);
    wait_for(follow, store, "b", 2);
    assert_int_equal(projects_named, 2);
    for (size_t i = 0; i < 2; i++) {
        struct wal_session *session = kit_session(store, ids[i]);

        assert_slice(kit_info(session).project, "project of /srv/app");
        wal_session_close(session);
    }
    wal_import_follow_close(follow);
    kit_close(store);
}

KIT_TEST(follow__incomplete_line_waits_for_its_end)
{
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;
    char row[PATH_SIZE];

    make_folder(PROJECT);
    add_rows(PROJECT, "a", 1, 1);
    follow = follow_path(store, "home");
    snprintf(row, sizeof(row), "%.40s", row_of("a", 2));
    add_text(PROJECT, "a.jsonl", row);
    assert_int_equal(settle(follow), 0);
    assert_int_equal(count_entries(store, "a"), 1);
    add_text(PROJECT, "a.jsonl", row_of("a", 2) + 40);
    wait_for(follow, store, "a", 2);
    /* A new file of an incomplete line is no session yet. */
    add_text(PROJECT, "b.jsonl", row);
    assert_int_equal(settle(follow), 0);
    wal_import_follow_close(follow);
    kit_close(store);
}

KIT_TEST(follow__new_files_and_folders)
{
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;

    make_folder(PROJECT);
    add_rows(PROJECT, "a", 1, 1);
    follow = follow_path(store, "home");
    add_rows(PROJECT, "b", 1, 2);
    wait_for(follow, store, "b", 2);
    make_folder("home/.claude/projects/-new");
    add_rows("home/.claude/projects/-new", "c", 1, 3);
    wait_for(follow, store, "c", 3);
    add_rows("home/.claude/projects/-new", "c", 4, 4);
    wait_for(follow, store, "c", 4);
    /* A client that was not there. */
    make_folder("home/.pi/agent/sessions/--srv--");
    add_text("home/.pi/agent/sessions/--srv--", "t_p.jsonl",
             "{\"type\":\"session\",\"version\":3,\"id\":\"p\",\"timestamp\":"
             "\"2026-02-03T09:00:00.000Z\",\"cwd\":\"/srv\"}\n");
    wait_for(follow, store, "p", 1);
    wal_import_follow_close(follow);
    kit_close(store);
}

KIT_TEST(follow__other_files_are_left_out)
{
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;

    make_folder(PROJECT);
    add_rows(PROJECT, "a", 1, 1);
    follow = follow_path(store, "home");
    add_text("home/.claude", ".credentials.json", "secret");
    add_text("home/.claude", "history.jsonl", "{}\n");
    make_folder("home/.claude/shell-snapshots");
    add_text("home/.claude/shell-snapshots", "s.jsonl", "{}\n");
    add_text(PROJECT, "notes.md", "notes\n");
    assert_int_equal(symlink("../../.credentials.json", PROJECT "/l.jsonl"), 0);
    assert_int_equal(settle(follow), 0);
    assert_int_equal(count_sessions(store), 1);
    wal_import_follow_close(follow);
    kit_close(store);
}

KIT_TEST(follow__renamed_and_removed)
{
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;

    make_folder(PROJECT);
    add_rows(PROJECT, "a", 1, 2);
    add_rows(PROJECT, "r", 1, 2);
    follow = follow_path(store, "home");
    /* Written under another name, then renamed. */
    add_text(PROJECT, "new.tmp", row_of("n", 1));
    assert_int_equal(settle(follow), 0);
    assert_int_equal(rename(PROJECT "/new.tmp", PROJECT "/n.jsonl"), 0);
    wait_for(follow, store, "n", 1);
    /* Replaced by a longer file. */
    add_text(PROJECT, "a.tmp", row_of("a", 1));
    add_text(PROJECT, "a.tmp", row_of("a", 2));
    add_text(PROJECT, "a.tmp", row_of("a", 3));
    assert_int_equal(rename(PROJECT "/a.tmp", PROJECT "/a.jsonl"), 0);
    wait_for(follow, store, "a", 3);
    /* A folder that is renamed, and one of its files that grows then. */
    assert_int_equal(rename(PROJECT, PROJECT "-2"), 0);
    assert_int_equal(settle(follow), 0);
    add_rows(PROJECT "-2", "a", 4, 4);
    wait_for(follow, store, "a", 4);
    assert_int_equal(unlink(PROJECT "-2/r.jsonl"), 0);
    assert_int_equal(settle(follow), 0);
    assert_int_equal(count_entries(store, "r"), 2);
    assert_int_equal(count_sessions(store), 3);
    wal_import_follow_close(follow);
    kit_close(store);
}

KIT_TEST(follow__folder_that_leaves_is_not_watched)
{
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;
    uint64_t folders;

    make_folder(PROJECT);
    make_folder(PROJECT "/a/subagents");
    add_rows(PROJECT, "a", 1, 2);
    follow = follow_path(store, "home");
    folders = info_of(follow).folders;
    assert_int_equal(rename(PROJECT, "outside"), 0);
    assert_int_equal(settle(follow), 0);
    assert_int_equal(info_of(follow).folders, folders - 3);
    add_rows("outside", "a", 3, 3);
    add_rows("outside", "b", 1, 1);
    assert_int_equal(settle(follow), 0);
    assert_int_equal(count_sessions(store), 1);
    assert_int_equal(rename("outside", PROJECT), 0);
    wait_for(follow, store, "a", 3);
    wait_for(follow, store, "b", 1);
    assert_int_equal(info_of(follow).folders, folders);
    wal_import_follow_close(follow);
    kit_close(store);
}

KIT_TEST(follow__argument_that_is_a_file)
{
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;

    make_folder("plain");
    add_rows("plain", "a", 1, 1);
    follow = follow_path(store, "plain/a.jsonl");
    add_rows("plain", "b", 1, 1);
    add_rows("plain", "a", 2, 2);
    wait_for(follow, store, "a", 2);
    assert_int_equal(count_sessions(store), 1);
    wal_import_follow_close(follow);
    kit_close(store);
}

KIT_TEST(follow__argument_that_is_created_later)
{
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;

    follow = follow_path(store, "home/.claude");
    make_folder(PROJECT);
    add_rows(PROJECT, "a", 1, 2);
    wait_for(follow, store, "a", 2);
    add_rows(PROJECT, "a", 3, 3);
    wait_for(follow, store, "a", 3);
    wal_import_follow_close(follow);
    kit_close(store);
}

KIT_TEST(follow__storage_of_opencode)
{
    const char *folder = "home/.local/share/opencode/storage";
    const char *message = "{\"id\":\"msg_1\",\"sessionID\":\"ses_1\",\"role\":"
                          "\"user\",\"time\":{\"created\":1}}";
    char path[PATH_SIZE];
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session;

    snprintf(path, sizeof(path), "%s/session/p", folder);
    make_folder(path);
    add_text(path, "ses_1.json",
             "{\"id\":\"ses_1\",\"version\":\"1\",\"projectID\":\"p\","
             "\"title\":\"t\",\"time\":{\"created\":1,\"updated\":1}}");
    follow = follow_path(store, "home");
    session = kit_session(store, "ses_1");
    snprintf(path, sizeof(path), "%s/message/ses_1", folder);
    make_folder(path);
    add_text(path, "msg_1.json", message);
    for (unsigned i = 0; i < TRIES && info.documents < 2; i++) {
        assert_ok(wal_import_follow_next(follow, WAIT_MS, NULL, NULL));
        assert_ok(wal_session_get_info(session, &info, NULL));
    }
    assert_int_equal(info.documents, 2);
    wal_session_close(session);
    wal_import_follow_close(follow);
    kit_close(store);
}

/* ------------------------------------------------------------- failures --- */

/* More events than the queue of a watch has room for. */
KIT_TEST(follow__lost_events_scan_everything)
{
    char path[PATH_SIZE];
    char text[16] = "";
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;
    unsigned limit = 16384;
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");

    if (file != NULL && fgets(text, sizeof(text), file) != NULL) {
        limit = (unsigned)strtoul(text, NULL, 10);
    }
    if (file != NULL) {
        assert_int_equal(fclose(file), 0);
    }
    make_folder(PROJECT);
    add_rows(PROJECT, "a", 1, 1);
    follow = follow_path(store, "home");
    /* Two events each, which differ from their neighbours. */
    for (unsigned i = 0; i <= limit / 2; i++) {
        snprintf(path, sizeof(path), PROJECT "/x%u", i % 2);
        assert_int_equal(close(creat(path, 0600)), 0);
        assert_int_equal(unlink(path), 0);
    }
    add_rows(PROJECT, "a", 2, 2);
    make_folder("home/.claude/projects/-new");
    add_rows("home/.claude/projects/-new", "b", 1, 1);
    wait_for(follow, store, "a", 2);
    wait_for(follow, store, "b", 1);
    assert_true(info_of(follow).scans >= 2);
    /* The new folder is watched too. */
    add_rows("home/.claude/projects/-new", "b", 2, 2);
    wait_for(follow, store, "b", 2);
    wal_import_follow_close(follow);
    kit_close(store);
}

/* The limit of instances is reached: everything is scanned again and again. */
KIT_TEST(follow__without_watches_scans)
{
    enum {
        INSTANCES = 900
    };
    static int fds[INSTANCES];
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;
    struct wal_import_follow_info info;
    size_t count = 0;

    make_folder(PROJECT);
    add_rows(PROJECT, "a", 1, 1);
    while (count < INSTANCES && (fds[count] = inotify_init1(IN_CLOEXEC)) >= 0) {
        count++;
    }
    follow = follow_path(store, "home");
    for (size_t i = 0; i < count; i++) {
        close(fds[i]);
    }
    info = info_of(follow);
    if (count < INSTANCES) {
        assert_int_equal(info.is_scanning, 1);
        assert_int_equal(info.sys_errno, EMFILE);
        assert_int_equal(info.folders, 0);
    }
    add_rows(PROJECT, "a", 2, 2);
    add_rows(PROJECT, "b", 1, 1);
    wait_for(follow, store, "a", 2);
    wait_for(follow, store, "b", 1);
    wal_import_follow_close(follow);
    kit_close(store);
}

/* Two followers, in two processes, of files that grow. */
KIT_TEST(follow__several_processes_add_nothing_twice)
{
    enum {
        ROWS = 60
    };
    struct wal_import_follow *follow;
    struct wal_store *store;
    pid_t child;
    int result = 0;

    make_folder(PROJECT);
    kit_close(kit_store());
    child = fork();
    if (child == 0) {
        store = kit_store();
        follow = follow_path(store, "home");
        /* Each row wakes it, possibly several times. */
        for (unsigned i = 0;
             i < ROWS * TRIES && (count_entries(store, "a") < ROWS ||
                                  count_entries(store, "b") < ROWS);
             i++) {
            if (wal_import_follow_next(follow, WAIT_MS, NULL, NULL) != WAL_OK) {
                _exit(2);
            }
        }
        result = count_entries(store, "a") == ROWS ? 0 : 3;
        wal_import_follow_close(follow);
        _exit(wal_close(store, NULL) == WAL_OK ? result : 4);
    }
    assert_true(child > 0);
    store = kit_store();
    follow = follow_path(store, "home");
    for (unsigned i = 1; i <= ROWS; i++) {
        add_rows(PROJECT, "a", i, i);
        add_rows(PROJECT, "b", i, i);
        assert_ok(wal_import_follow_next(follow, 5, NULL, NULL));
    }
    wait_for(follow, store, "a", ROWS);
    wait_for(follow, store, "b", ROWS);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(settle(follow), 0);
    assert_int_equal(count_entries(store, "a"), ROWS);
    assert_int_equal(count_sessions(store), 2);
    wal_import_follow_close(follow);
    kit_close(store);
}

static void on_alarm(int number)
{
    (void)number;
}

KIT_TEST(follow__signal_ends_the_wait)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    const struct itimerval timer = {.it_value = {.tv_usec = 100000}};
    struct timespec begin;
    struct timespec end;
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;

    make_folder(PROJECT);
    follow = follow_path(store, "home");
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &begin), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
    assert_ok(wal_import_follow_next(follow, 60000, NULL, NULL));
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &end), 0);
    assert_true(end.tv_sec - begin.tv_sec < 30);
    wal_import_follow_close(follow);
    kit_close(store);
}

KIT_TEST(follow__misuse_is_refused)
{
    struct wal_import_follow *follow = NULL;
    struct wal_store *store = kit_store();

    assert_int_equal(wal_import_follow_open(NULL, NULL, 0, NULL, &follow, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_import_follow_open(store, NULL, 0, NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_import_follow_next(NULL, 0, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_import_follow_get_info(NULL, NULL, NULL), WAL_EINVAL);
    wal_import_follow_close(NULL);
    kit_close(store);
}
