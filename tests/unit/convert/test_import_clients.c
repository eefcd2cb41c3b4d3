/*
 * test_import_clients.c - which files of a client an import takes, and how it recognises a session
 * that it has.
 */
#include "tests/lib/kit/store_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <zstd.h>

#include "agentwal/import.h"
#include "convert/import/import.h"

#define SECRET "planted-secret-0123456789"
#define ID_1   "11111111-2222-4333-8444-555555555551"
#define ID_2   "11111111-2222-4333-8444-555555555552"
#define AGENT  ".claude/projects/-srv-app/" ID_1 "/subagents/agent-a1.jsonl"
#define CODEX  ".codex/sessions/2026/02/03/rollout-2026-02-03T09-00-00-c1.jsonl"

enum { PATH_SIZE = 512 };

/* ---------------------------------------------------------------- files --- */

/* Makes the folders above a path. */
static void make_parents(const char *path)
{
    char folder[PATH_SIZE];

    for (const char *at = path; (at = strchr(at, '/')) != NULL; at++) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(at - path), path);
        assert_true(at == path || mkdir(folder, 0700) == 0 || errno == EEXIST);
    }
}

static void add_text(const char *root, const char *path, const char *text)
{
    char name[PATH_SIZE];
    FILE *file;

    snprintf(name, sizeof(name), "%s/%s", root, path);
    make_parents(name);
    file = fopen(name, "ae");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* Appends rows of Claude Code. */
static void add_claude(const char *root, const char *path, const char *id, const char *word,
                       unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        char parent[80] = "null";
        char row[PATH_SIZE];

        if (i > 1) {
            snprintf(parent, sizeof(parent), "\"%s-%u\"", id, i - 1);
        }
        snprintf(row, sizeof(row),
                 "{\"parentUuid\":%s,\"isSidechain\":%s,\"type\":\"user\","
                 "\"cwd\":\"/srv/app\",\"sessionId\":\"%s\",\"message\":{"
                 "\"role\":\"user\",\"content\":\"%s %u\"},\"uuid\":\"%s-%u\","
                 "\"timestamp\":\"2026-02-03T09:00:0%u.000Z\"}\n",
                 parent, strstr(path, "subagents") != NULL ? "true" : "false", id, word, i, id, i,
                 i % 10);
        add_text(root, path, row);
    }
}

static void add_pi(const char *root, const char *path, const char *id)
{
    char row[PATH_SIZE];

    snprintf(row, sizeof(row),
             "{\"type\":\"session\",\"version\":3,\"id\":\"%s\",\"timestamp\":"
             "\"2026-02-03T09:00:00.000Z\",\"cwd\":\"/srv/app\"}\n"
             "{\"type\":\"message\",\"id\":\"a1f03c22\",\"parentId\":null,"
             "\"timestamp\":\"2026-02-03T09:00:01.000Z\",\"message\":{\"role\":"
             "\"user\",\"content\":\"Count in cents.\"}}\n",
             id);
    add_text(root, path, row);
}

static void add_opencode(const char *root)
{
    add_text(root, ".local/share/opencode/storage/session/p/ses_1.json",
             "{\"id\":\"ses_1\",\"version\":\"1\",\"projectID\":\"p\","
             "\"directory\":\"/srv/app\",\"title\":\"t\",\"time\":"
             "{\"created\":1770109201000,\"updated\":1770109201000}}");
    add_text(root, ".local/share/opencode/storage/message/ses_1/msg_1.json",
             "{\"id\":\"msg_1\",\"sessionID\":\"ses_1\",\"role\":\"user\","
             "\"time\":{\"created\":1770109201000}}");
    add_text(root, ".local/share/opencode/storage/session_share/ses_1.json",
             "{\"secret\":\"" SECRET "\"}");
}

/* A home with two sessions of Claude Code, one of which has a subagent, and one each of Codex, pi
 * and OpenCode; and with what clients keep next to them. */
static void make_home(const char *root)
{
    add_claude(root, ".claude/projects/-srv-app/" ID_1 ".jsonl", ID_1, "one", 1, 3);
    add_claude(root, ".claude/projects/-srv-app/" ID_2 ".jsonl", ID_2, "two", 1, 2);
    add_claude(root, AGENT, ID_1, "agent", 1, 2);
    add_text(root, CODEX,
             "{\"timestamp\":\"2026-02-03T09:00:00.000Z\",\"type\":"
             "\"session_meta\",\"payload\":{\"id\":\"c1\",\"timestamp\":"
             "\"2026-02-03T09:00:00.000Z\",\"cwd\":\"/srv/app\",\"originator\":"
             "\"cli\",\"cli_version\":\"1\"}}\n");
    add_pi(root, ".pi/agent/sessions/--srv-app--/t_p1.jsonl", "p1");
    add_opencode(root);
    add_text(root, ".claude/.credentials.json", SECRET);
    add_text(root, ".claude/settings.json", SECRET);
    add_text(root, ".claude/shell-snapshots/snapshot-bash-1.sh", SECRET);
    add_text(root, ".claude/statsig/cached", SECRET);
    add_text(root, ".claude/history.jsonl", "{\"display\":\"" SECRET "\"}\n");
    add_text(root, ".claude/projects/-srv-app/notes.md", SECRET);
    add_text(root, ".codex/auth.json", SECRET);
    add_text(root, ".codex/config.toml", SECRET);
    add_text(root, ".codex/state.sqlite", SECRET);
    add_text(root, ".codex/log/codex-tui.log", SECRET);
    add_text(root, ".pi/agent/auth.json", SECRET);
    add_text(root, "work/sessions.jsonl", "{\"key\":\"" SECRET "\"}\n");
    add_text(root, ".ssh/id_ed25519", SECRET);
}

/* -------------------------------------------------------------- imports --- */

struct seen {
    unsigned other_ids;
    char failed[PATH_SIZE];
    char text[PATH_SIZE]; /* of its error */
    int32_t status;
};

static int32_t on_report(void *ctx, const struct wal_import_report *report)
{
    struct seen *seen = ctx;

    if ((report->flags & WAL_IMPORT_OTHER_ID) != 0) {
        seen->other_ids++;
    }
    if (report->status != WAL_OK) {
        seen->status = report->status;
        snprintf(seen->failed, sizeof(seen->failed), "%s", (const char *)report->path.data);
        snprintf(seen->text, sizeof(seen->text), "%s", report->error->text);
    }
    return 0;
}

static struct wal_import_result import(struct wal_store *store, const char *path, uint32_t flags,
                                       struct seen *seen)
{
    const struct wal_slice paths[] = {kit_text(path)};
    struct seen unused = {.status = WAL_OK};
    const struct wal_import_options options = {
        .struct_size = sizeof(options),
        .flags = flags,
        .report = on_report,
        .ctx = seen != NULL ? seen : &unused,
    };
    struct wal_import_result result = {.struct_size = sizeof(result)};

    assert_done(wal_import_tree(store, paths, 1, &options, &result, kit_error()));
    return result;
}

static unsigned count_sessions(struct wal_store *store)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    unsigned count = 0;

    assert_ok(wal_session_cursor_open(store, NULL, &list, NULL));
    while (wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
        count++;
    }
    wal_session_cursor_close(list);
    return count;
}

/* Returns true if a payload or a document of the store contains the secret. */
static bool has_secret(void)
{
    return system("grep -rqa " SECRET " store") == 0;
}

static void assert_sessions(struct wal_store *store, const char *path, unsigned sessions)
{
    struct wal_import_result result = import(store, path, 0, NULL);

    assert_int_equal(result.failed, 0);
    assert_int_equal(result.sessions, sessions);
}

/* ------------------------------------------------------------ selection --- */

KIT_TEST(select__home_has_sessions_of_four_clients)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;

    make_home("home");
    result = import(store, "home", 0, NULL);
    assert_int_equal(result.failed, 0);
    assert_int_equal(result.sessions, 6);
    assert_int_equal(count_sessions(store), 6);
    assert_int_equal(result.left_out[WAL_IMPORT_CREDENTIALS], 4);
    assert_int_equal(result.left_out[WAL_IMPORT_SETTINGS], 2);
    assert_int_equal(result.left_out[WAL_IMPORT_DATABASES], 1);
    assert_int_equal(result.left_out[WAL_IMPORT_SHELL_SNAPSHOTS], 1);
    assert_int_equal(result.left_out[WAL_IMPORT_LOGS], 2);
    assert_int_equal(result.left_out[WAL_IMPORT_HISTORIES], 1);
    assert_int_equal(result.left_out[WAL_IMPORT_LINKS], 0);
    assert_int_equal(result.left_out[WAL_IMPORT_OTHERS], 1);
    kit_close(store);
    assert_false(has_secret());
}

KIT_TEST(select__argument_is_any_folder_of_a_client)
{
    static const struct {
        const char *path;
        unsigned sessions;
    } arguments[] = {
        {"home/.claude", 3},
        {"home/.claude/", 3},
        {"home/.claude/projects", 3},
        {"home/.claude/projects/-srv-app", 3},
        {"home/.claude/projects/-srv-app/" ID_1, 1},
        {"home/.claude/shell-snapshots", 0},
        {"home/.codex", 1},
        {"home/.codex/sessions/2026", 1},
        {"home/.pi", 1},
        {"home/.pi/agent", 1},
        {"home/.pi/agent/sessions", 1},
        {"home/.local", 1},
        {"home/.local/share/opencode", 1},
        {"home/.local/share/opencode/storage", 1},
        {"home/.claude/settings.json", 1}, /* given by its name */
    };

    make_home("home");
    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
        struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);

        assert_sessions(store, arguments[i].path, arguments[i].sessions);
        kit_close(store);
    }
}

KIT_TEST(select__folder_that_the_environment_names)
{
    struct wal_store *store = kit_store();
    char name[PATH_SIZE];
    char *cwd = getcwd(name, sizeof(name) - 10);

    assert_non_null(cwd);
    add_claude("moved", "projects/-srv-app/a.jsonl", "a", "one", 1, 2);
    add_claude("moved", "rows.jsonl", "b", SECRET, 1, 2);
    strcat(name, "/moved");
    assert_int_equal(setenv("CLAUDE_CONFIG_DIR", name, 1), 0);
    assert_sessions(store, "moved", 1);
    assert_int_equal(unsetenv("CLAUDE_CONFIG_DIR"), 0);
    kit_close(store);
    assert_false(has_secret());
}

KIT_TEST(select__plain_folder_has_files_with_content_of_one)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;

    add_claude("backup", "a/one.jsonl", ID_1, "one", 1, 2);
    add_pi("backup", "two.jsonl", "p1");
    add_text("backup", ID_2 ".jsonl", "no JSON, but the name of a session\n");
    add_text("backup", "export.json",
             "{\"info\":{\"id\":\"ses_9\",\"time\":{\"created\":1}},"
             "\"messages\":[]}");
    add_text("backup", "data.jsonl", "{\"key\":\"" SECRET "\"}\n");
    add_text("backup", "settings.json", "{\"key\":\"" SECRET "\"}\n");
    add_text("backup", ".git/a.jsonl", SECRET);
    result = import(store, "backup", 0, NULL);
    assert_int_equal(result.sessions, 4);
    assert_int_equal(result.left_out[WAL_IMPORT_OTHERS], 1);
    assert_int_equal(result.left_out[WAL_IMPORT_SETTINGS], 1);
    kit_close(store);
    assert_false(has_secret());
}

KIT_TEST(select__links_to_files_and_below_a_project_are_not_followed)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;

    add_claude("elsewhere", ID_2 ".jsonl", ID_2, SECRET, 1, 2);
    add_claude("home", ".claude/projects/p/" ID_1 ".jsonl", ID_1, "one", 1, 2);
    assert_int_equal(mkdir("home/.claude/projects/p/" ID_1, 0700), 0);
    assert_int_equal(
        symlink("../../../../elsewhere/" ID_2 ".jsonl", "home/.claude/projects/p/" ID_2 ".jsonl"),
        0);
    assert_int_equal(
        symlink("../../../../../elsewhere", "home/.claude/projects/p/" ID_1 "/subagents"), 0);
    assert_int_equal(symlink("../../elsewhere", "home/.claude/plans"), 0);
    result = import(store, "home", 0, NULL);
    assert_int_equal(result.failed, 0);
    assert_int_equal(result.sessions, 1);
    assert_int_equal(result.left_out[WAL_IMPORT_LINKS], 3);
    kit_close(store);
    assert_false(has_secret());
}

/* The session has this source. */
static void assert_source(struct wal_store *store, const char *id, const char *source)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session = NULL;

    assert_ok(wal_session_open(store, kit_text(id), &session, NULL));
    assert_ok(wal_session_get_info(session, &info, NULL));
    assert_slice(info.source, source);
    wal_session_close(session);
}

KIT_TEST(select__links_to_the_folder_of_projects_and_to_a_project_are_followed)
{
    static const char *const arguments[] = {"home", "home/.claude", "home/.claude/projects",
                                            "home/.claude/projects/q"};

    char home[PATH_SIZE];

    assert_non_null(getcwd(home, sizeof(home) - sizeof("/home")));
    strcat(home, "/home");
    assert_int_equal(setenv("HOME", home, 1), 0);
    add_claude("data", "p/" ID_1 ".jsonl", ID_1, "one", 1, 2);
    add_claude("app", ID_2 ".jsonl", ID_2, "two", 1, 2);
    assert_int_equal(symlink("../app", "data/q"), 0);
    add_text("home", ".claude/settings.json", SECRET);
    assert_int_equal(symlink("../../data", "home/.claude/projects"), 0);
    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
        struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);

        assert_sessions(store, arguments[i], i < 3 ? 2 : 1);
        assert_source(store, ID_2, "claude 0 projects/q/" ID_2 ".jsonl");
        kit_close(store);
    }
}

KIT_TEST(select__link_to_the_folder_of_projects_that_is_not_followed_is_a_failure)
{
    struct wal_store *store = kit_store();
    struct seen seen = {.status = WAL_OK};

    add_text("home", ".claude/settings.json", SECRET);
    assert_int_equal(symlink("nowhere", "home/.claude/projects"), 0);
    assert_int_equal(import(store, "home/.claude", 0, &seen).failed, 1);
    assert_int_equal(seen.status, WAL_EOUTSIDE);
    assert_string_equal(seen.failed, "home/.claude/projects");
}

KIT_TEST(select__links_in_a_circle_end)
{
    struct wal_store *store = kit_store();

    add_claude("home", ".claude/projects/p/" ID_1 ".jsonl", ID_1, "one", 1, 2);
    assert_int_equal(symlink("../projects", "home/.claude/projects/q"), 0);
    assert_int_equal(symlink("../../..", "home/.claude/projects/r"), 0);
    assert_sessions(store, "home", 1);
}

KIT_TEST(select__path_in_a_clients_folder_decides_the_dialect)
{
    struct wal_store *store = kit_store();

    add_text("home", ".claude/projects/p/" ID_1 ".jsonl", "{\"note\":1}\n");
    add_text("home", "plain/" ID_2 ".jsonl", "{\"note\":1}\n");
    assert_sessions(store, "home/.claude", 1);
    assert_source(store, ID_1, "claude 0 projects/p/" ID_1 ".jsonl");
    assert_sessions(store, "home/plain", 1);
    assert_source(store, ID_2, "lines 0 " ID_2 ".jsonl");
}

KIT_TEST(unread__client_is_named_and_nothing_is_imported)
{
    static const char *const arguments[] = {"home/.qoder", "home/.qoder/projects/p", "home"};

    add_claude("home", ".qoder/projects/p/" ID_1 ".jsonl", ID_1, "one", 1, 2);
    add_claude("home", ".qoder/projects/p/" ID_2 ".jsonl", ID_2, "one", 1, 2);
    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
        struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);
        struct seen seen = {.status = WAL_OK};
        struct wal_import_result result = import(store, arguments[i], 0, &seen);

        assert_int_equal(result.sessions, 0);
        assert_int_equal(result.left_out[WAL_IMPORT_OTHERS], 2);
        assert_int_equal(result.failed, 1);
        assert_int_equal(seen.status, WAL_EVERSION);
        assert_string_equal(seen.failed, i == 1 ? arguments[i] : "home/.qoder");
        assert_non_null(strstr(seen.text, "2 files with sessions of Qoder"));
        kit_close(store);
    }
}

KIT_TEST(unread__file_given_by_its_path_keeps_the_name_of_its_client)
{
    struct wal_store *store = kit_store();

    add_claude("home", ".qoder/projects/p/" ID_1 ".jsonl", ID_1, "one", 1, 2);
    assert_sessions(store, "home/.qoder/projects/p/" ID_1 ".jsonl", 1);
    assert_source(store, ID_1, "claude 0 .qoder/projects/p/" ID_1 ".jsonl");
}

KIT_TEST(unread__client_without_a_folder_is_known_by_the_name_of_its_file)
{
    struct wal_store *store = kit_store();
    struct seen seen = {.status = WAL_OK};

    add_text("work", "a/.aider.chat.history.md", "# chat\n");
    add_text("work", "b/.aider.chat.history.md", "# chat\n");
    assert_int_equal(import(store, "work", 0, &seen).failed, 1);
    assert_non_null(strstr(seen.text, "2 files with sessions of Aider"));
}

KIT_TEST(select__all_files)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;

    make_home("home");
    result = import(store, "home", WAL_IMPORT_ALL_FILES, NULL);
    assert_true(result.sources >= 18);
    assert_int_equal(result.left_out[WAL_IMPORT_CREDENTIALS], 0);
    kit_close(store);
    assert_true(has_secret());
}

KIT_TEST(select__other_files_are_outside_of_clients)
{
    struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);
    struct wal_import_result result;

    make_home("home");
    result = import(store, "home", WAL_IMPORT_OTHER_FILES, NULL);
    /* work/sessions.jsonl and .ssh/id_ed25519 */
    assert_int_equal(result.sessions, 6 + 2);
    assert_int_equal(result.left_out[WAL_IMPORT_CREDENTIALS], 4);
}

KIT_TEST(select__scan_counts_what_an_import_takes)
{
    const struct wal_slice paths[] = {kit_text("home"), kit_text("backup"), kit_text("none")};
    struct seen seen = {.status = WAL_OK};
    const struct wal_import_options options = {
        .struct_size = sizeof(options), .report = on_report, .ctx = &seen};
    struct wal_import_result scan = {.struct_size = sizeof(scan)};
    struct wal_import_result done = {.struct_size = sizeof(done)};
    struct wal_store *store = kit_store();

    make_home("home");
    add_pi("backup", "two.jsonl", "p1");
    add_text("backup", "data.jsonl", "{\"key\":\"" SECRET "\"}\n");
    assert_ok(wal_import_scan(paths, 3, &options, &scan, NULL));
    assert_ok(wal_import_tree(store, paths, 3, &options, &done, NULL));
    assert_int_equal(scan.sources, done.sources);
    assert_int_equal(scan.failed, 1);
    assert_string_equal(seen.failed, "none");
    assert_memory_equal(scan.left_out, done.left_out, sizeof(scan.left_out));
    assert_int_equal(scan.sessions, done.sessions);
    assert_true(scan.bytes >= done.bytes);
}

/* A wal_import_progress_fn: stops at the second source. */
static int32_t stop_at_second(void *ctx, struct wal_slice path, uint64_t done, uint64_t total)
{
    uint32_t *calls = ctx;

    assert_true(path.size > 0);
    assert_int_equal(done, total);
    return ++*calls == 2 ? 7 : 0;
}

KIT_TEST(select__scan_is_stopped_by_its_progress)
{
    const struct wal_slice path = kit_text("home");
    uint32_t calls = 0;
    const struct wal_import_options options = {
        .struct_size = sizeof(options), .progress = stop_at_second, .ctx = &calls};
    struct wal_import_result scan = {.struct_size = sizeof(scan)};
    struct wal_error error = KIT_ERROR;

    make_home("home");
    assert_int_equal(wal_import_scan(&path, 1, &options, &scan, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 7);
    assert_int_equal(calls, 2);
    assert_int_equal(scan.sources, 2);
    assert_int_equal(scan.failed, 0);
}

/* Without the capability that ignores permissions, for a run as root. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{.effective = 0}};

    assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

KIT_TEST(select__folder_without_permission_is_named)
{
    struct wal_store *store = kit_store();
    struct seen seen = {.status = WAL_OK};
    struct wal_import_result result;

    make_home("home");
    add_claude("home", ".claude/projects/-a/a.jsonl", "a", "one", 1, 2);
    assert_int_equal(chmod("home/.claude/projects/-a", 0), 0);
    drop_capabilities();
    result = import(store, "home", 0, &seen);
    assert_int_equal(chmod("home/.claude/projects/-a", 0700), 0);
    assert_int_equal(result.failed, 1);
    assert_int_equal(result.sessions, 6);
    assert_string_equal(seen.failed, "home/.claude/projects/-a");
    assert_int_equal(seen.status, WAL_EACCESS);
}

/* ------------------------------------------------------------- identity --- */

KIT_TEST(identity__other_roots_add_nothing)
{
    static const char *const roots[] = {
        "home/.claude/projects/-srv-app",
        "home/.claude/projects",
        "home/.claude",
        "home",
        "copy/.claude/projects",
        "copy",
        "copy/.codex",
    };
    struct wal_store *store = kit_store();

    make_home("home");
    make_home("copy");
    assert_int_equal(import(store, "home/.codex", 0, NULL).sessions, 1);
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        struct wal_import_result result = import(store, roots[i], 0, NULL);

        assert_int_equal(result.failed, 0);
        assert_int_equal(count_sessions(store), i < 3 ? 4 : 6);
        assert_true(result.appended == 0 || i == 0 || i == 3);
    }
}

KIT_TEST(identity__grown_file_adds_its_new_lines)
{
    struct wal_store *store = kit_store();

    make_home("home");
    (void)import(store, "home", 0, NULL);
    add_claude("home", ".claude/projects/-srv-app/" ID_1 ".jsonl", ID_1, "one", 4, 6);
    assert_int_equal(import(store, "home/.claude/projects", 0, NULL).appended, 3);
    assert_int_equal(import(store, "home/.claude", 0, NULL).appended, 0);
    assert_int_equal(count_sessions(store), 6);
}

KIT_TEST(identity__older_copy_adds_nothing)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;

    add_claude("new", ID_1 ".jsonl", ID_1, "one", 1, 6);
    add_claude("old", ID_1 ".jsonl", ID_1, "one", 1, 4);
    (void)import(store, "new", 0, NULL);
    result = import(store, "old", 0, NULL);
    assert_int_equal(result.appended, 0);
    assert_int_equal(result.duplicates, 4);
    assert_int_equal(count_sessions(store), 1);
}

KIT_TEST(identity__diverged_copies_are_both_kept)
{
    struct wal_store *store = kit_store();
    struct seen seen = {.status = WAL_OK};

    add_claude("a", ID_1 ".jsonl", ID_1, "one", 1, 2);
    add_claude("b", ID_1 ".jsonl", ID_1, "other", 1, 2);
    assert_int_equal(import(store, "a", 0, &seen).appended, 2);
    assert_int_equal(seen.other_ids, 0);
    assert_int_equal(import(store, "b", 0, &seen).appended, 2);
    assert_int_equal(seen.other_ids, 1);
    assert_int_equal(count_sessions(store), 2);
    wal_session_close(kit_session(store, ID_1 "~2"));
    /* Both continue, from any root. */
    add_claude("a", ID_1 ".jsonl", ID_1, "one", 3, 3);
    add_claude("b", ID_1 ".jsonl", ID_1, "other", 3, 3);
    assert_int_equal(import(store, ".", 0, &seen).appended, 2);
    assert_int_equal(import(store, "b/" ID_1 ".jsonl", 0, &seen).appended, 0);
    assert_int_equal(count_sessions(store), 2);
}

KIT_TEST(identity__one_id_of_two_clients)
{
    struct wal_store *store = kit_store();
    struct seen seen = {.status = WAL_OK};

    add_claude("home", ".claude/projects/p/same.jsonl", "same", "one", 1, 2);
    add_pi("home", ".pi/agent/sessions/p/same.jsonl", "same");
    assert_int_equal(import(store, "home", 0, &seen).sessions, 2);
    assert_int_equal(seen.other_ids, 1);
    assert_int_equal(count_sessions(store), 2);
    assert_int_equal(import(store, "home/.pi", 0, &seen).appended, 0);
    assert_int_equal(count_sessions(store), 2);
}

KIT_TEST(identity__file_that_names_no_session)
{
    const char row[] = "{\"type\":\"summary\",\"summary\":\"S\",\"leafUuid\":"
                       "\"u\"}\n";
    struct wal_store *store = kit_store();

    add_text("home", ".claude/projects/p/" ID_1 ".jsonl", row);
    add_text("home", ".claude/projects/p/" ID_2 ".jsonl", row);
    add_text("home", ".claude/projects/p/empty.jsonl", "");
    assert_int_equal(import(store, "home", 0, NULL).sessions, 2);
    assert_int_equal(import(store, "home/.claude", 0, NULL).appended, 0);
    assert_int_equal(count_sessions(store), 2);
    wal_session_close(kit_session(store, ID_1));
    wal_session_close(kit_session(store, ID_2));
}

KIT_TEST(identity__renamed_file_is_another_session)
{
    struct wal_store *store = kit_store();

    add_claude("a", "one.jsonl", ID_1, "one", 1, 2);
    add_claude("b", "two.jsonl", ID_1, "one", 1, 3);
    (void)import(store, "a", 0, NULL);
    assert_int_equal(import(store, "b", 0, NULL).appended, 3);
    assert_int_equal(count_sessions(store), 2);
}

KIT_TEST(identity__session_that_no_import_made)
{
    struct wal_store *store = kit_store();

    wal_session_close(kit_create(store, ID_1));
    add_claude("a", ID_1 ".jsonl", ID_1, "one", 1, 2);
    assert_int_equal(import(store, "a", 0, NULL).appended, 2);
    assert_int_equal(count_sessions(store), 2);
}

/* The client resumes the session by the name of its file. */
KIT_TEST(identity__name_of_the_file_is_the_id)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;

    add_claude("a", "p/" ID_1 ".jsonl", ID_1, "one", 1, 2);
    add_claude("a", "p/" ID_2 ".jsonl", ID_1, "one", 1, 2);
    add_claude("a", "p/" ID_2 ".jsonl", ID_2, "one", 3, 3);
    assert_int_equal(import(store, "a", 0, NULL).sessions, 2);
    session = kit_session(store, ID_2);
    assert_slice(kit_info(session).parent_id, ID_1);
    assert_int_equal(kit_info(session).entries, 3);
    wal_session_close(session);
    session = kit_session(store, ID_1);
    assert_slice(kit_info(session).parent_id, "");
    wal_session_close(session);
    assert_int_equal(import(store, "a/p", 0, NULL).appended, 0);
    assert_int_equal(count_sessions(store), 2);
}

#define OLD_PATH  ".pi/agent/sessions/p/s.jsonl"
#define HEADER(v) "{\"type\":\"session\",\"id\":\"s\",\"cwd\":\"/p\"" v "}\n"
#define MESSAGE(role, text, members)                                    \
    "{\"type\":\"message\",\"timestamp\":\"2026-01-02T03:04:05.000Z\"," \
    "\"message\":{\"role\":\"" role "\",\"content\":\"" text "\"}" members "}\n"
#define VERSION_1 HEADER("") MESSAGE("user", "one", "") MESSAGE("hookMessage", "two", "")
#define VERSION_2                                             \
    HEADER(",\"version\":2")                                  \
    MESSAGE("user", "one", ",\"id\":\"a\",\"parentId\":null") \
    MESSAGE("hookMessage", "two", ",\"id\":\"b\",\"parentId\":\"a\"")
#define VERSION_3                                             \
    HEADER(",\"version\":3")                                  \
    MESSAGE("user", "one", ",\"id\":\"a\",\"parentId\":null") \
    MESSAGE("custom", "two", ",\"id\":\"b\",\"parentId\":\"a\"")

static void set_text(const char *root, const char *path, const char *text)
{
    char name[256];

    (void)snprintf(name, sizeof(name), "%s/%s", root, path);
    (void)unlink(name);
    add_text(root, path, text);
}

KIT_TEST(identity__rewritten_file_replaces_its_older_form)
{
    static const char *const forms[] = {VERSION_1, VERSION_2,
                                        VERSION_3 MESSAGE("user", "three", ",\"id\":\"c\"")};
    struct wal_store *store = kit_store();
    struct wal_session *session;

    for (size_t i = 0; i < 3; i++) {
        set_text("home", OLD_PATH, forms[i]);
        assert_int_equal(import(store, "home", 0, NULL).appended, i == 2 ? 4 : 3);
        assert_int_equal(import(store, "home", 0, NULL).appended, 0);
        assert_int_equal(count_sessions(store), 1);
    }
    session = kit_session(store, "s");
    assert_slice(kit_info(session).source, "pi 0 sessions/p/s.jsonl");
}

KIT_TEST(identity__older_form_adds_nothing)
{
    static const char *const forms[] = {VERSION_1, VERSION_2,
                                        HEADER("") MESSAGE("user", "one", "")};
    struct wal_store *store = kit_store();

    add_text("home", OLD_PATH, VERSION_3);
    (void)import(store, "home", 0, NULL);
    for (size_t i = 0; i < 3; i++) {
        set_text("backup", OLD_PATH, forms[i]);
        assert_int_equal(import(store, "backup", 0, NULL).appended, 0);
        assert_int_equal(import(store, "home", 0, NULL).appended, 0);
        assert_int_equal(count_sessions(store), 1);
    }
}

KIT_TEST(identity__rewritten_file_of_a_continued_session)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;

    add_text("home", OLD_PATH, VERSION_1);
    (void)import(store, "home", 0, NULL);
    session = kit_session(store, "s");
    kit_append(session, "own", NULL);
    set_text("home", OLD_PATH, VERSION_3);
    assert_int_equal(import(store, "home", 0, NULL).appended, 3);
    assert_int_equal(kit_info(session).entries, 4);
    wal_session_close(kit_session(store, "s~2"));
}

/* Files that are no newer form of VERSION_1: each is a session. */
KIT_TEST(identity__file_with_other_content_replaces_none)
{
    static const char *const files[] = {
        HEADER(",\"version\":3") MESSAGE("user", "one", "") MESSAGE("user", "other", ""),
        HEADER(",\"version\":3") MESSAGE("user", "one", ",\"id\":\"a\""),
        HEADER(",\"version\":\"3\"") MESSAGE("user", "one", "") MESSAGE("custom", "two", ""),
        HEADER(",\"version\":3,\"more\":[") MESSAGE("user", "one", ""),
        HEADER(",\"version\":3") "\n" MESSAGE("user", "one", "") MESSAGE("custom", "two", ""),
        HEADER(",\"version\":3") "[]\n{\"id\":\n\n",
    };
    struct wal_store *store = kit_store();

    add_text("home", OLD_PATH, VERSION_1);
    (void)import(store, "home", 0, NULL);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        set_text("home", OLD_PATH, files[i]);
        (void)import(store, "home", 0, NULL);
        assert_int_equal(count_sessions(store), i + 2);
    }
}

/* Each file below a client's folder is written back to its path. */
KIT_TEST(identity__one_id_in_two_folders_is_two_sessions)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;

    add_claude("home", ".claude/projects/-a/" ID_1 ".jsonl", ID_1, "one", 1, 2);
    add_claude("home", ".claude/projects/-b/" ID_1 ".jsonl", ID_1, "one", 1, 2);
    assert_int_equal(import(store, "home", 0, NULL).appended, 4);
    session = kit_session(store, ID_1 "~2");
    assert_slice(kit_info(session).parent_id, ID_1);
    assert_slice(kit_info(session).source, "claude 0 projects/-b/" ID_1 ".jsonl");
    /* Both go on. */
    add_claude("home", ".claude/projects/-b/" ID_1 ".jsonl", ID_1, "other", 3, 4);
    assert_int_equal(import(store, "home/.claude/projects", 0, NULL).appended, 2);
    add_claude("home", ".claude/projects/-a/" ID_1 ".jsonl", ID_1, "one", 3, 3);
    assert_int_equal(import(store, "home/.claude/projects", 0, NULL).appended, 1);
    assert_int_equal(kit_info(session).entries, 4);
    wal_session_close(session);
    assert_int_equal(import(store, "home", 0, NULL).appended, 0);
    assert_int_equal(count_sessions(store), 2);
}

KIT_TEST(identity__folder_that_was_renamed_has_one_session)
{
    struct wal_store *store = kit_store();

    add_claude("home", ".claude/projects/-a/" ID_1 ".jsonl", ID_1, "one", 1, 2);
    (void)import(store, "home", 0, NULL);
    assert_int_equal(symlink("-a", "home/.claude/projects/-l"), 0);
    assert_int_equal(import(store, "home", 0, NULL).appended, 0);
    assert_int_equal(import(store, "home/.claude/projects/-l", 0, NULL).appended, 0);
    assert_int_equal(count_sessions(store), 1);
    assert_int_equal(rename("home/.claude/projects/-a", "home/.claude/projects/-b"), 0);
    add_claude("home", ".claude/projects/-b/" ID_1 ".jsonl", ID_1, "one", 3, 3);
    assert_int_equal(import(store, "home", 0, NULL).appended, 1);
    assert_int_equal(count_sessions(store), 1);
}

/* ------------------------------------------------------------ compressed --- */

/* Expands frames of zeros, which do not state their sizes; at most 5,000 bytes. */
static enum wal_status unpack_zeros(size_t size, unsigned frames, struct wal_error *error)
{
    static char zeros[5000];
    char packed[256];
    ZSTD_CCtx *context = ZSTD_createCCtx();
    int fd = open("packed", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    enum wal_status status;
    struct stat info;
    int plain = -1;

    assert_true(context != NULL && fd >= 0);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0)));
    for (unsigned i = 0; i < frames; i++) {
        size_t got = ZSTD_compress2(context, packed, sizeof(packed), zeros, size);

        assert_false(ZSTD_isError(got));
        assert_int_equal(write(fd, packed, got), (ssize_t)got);
    }
    ZSTD_freeCCtx(context);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    status = wal__file_unpack(&wal__heap_libc, fd, 5000, &plain, error);
    if (status == WAL_OK) {
        assert_int_equal(fstat(plain, &info), 0);
        assert_int_equal(info.st_size, (off_t)(size * frames));
        assert_int_equal(info.st_nlink, 0);
        close(plain);
    }
    close(fd);
    return status;
}

KIT_TEST(compressed__file_that_expands_to_too_much)
{
    struct wal_error error = WAL_INIT(wal_error);

    assert_ok(unpack_zeros(5000, 1, &error));
    assert_ok(unpack_zeros(2500, 2, &error));
    assert_int_equal(unpack_zeros(5000, 2, &error), WAL_ETOOBIG);
    assert_non_null(strstr(error.text, "it expands to more than"));
    assert_int_equal(unpack_zeros(1667, 3, &error), WAL_ETOOBIG);
}

/* ------------------------------------------------------------- changing --- */

static int32_t replace_file(void *ctx, const struct wal_import_report *report)
{
    int32_t *calls = ctx;

    (void)report;
    if (++*calls == 1) {
        assert_int_equal(unlink("home/.claude/projects/p/b.jsonl"), 0);
        add_claude("home", ".claude/projects/p/a.jsonl", "a", "one", 3, 3);
        assert_int_equal(unlink("home/.claude/projects/p/c.jsonl"), 0);
        add_claude("home", ".claude/projects/p/c.jsonl", "c", "other", 1, 3);
    }
    return 0;
}

/* While the first file is reported it grows, the second is removed and the third is replaced. */
KIT_TEST(changing__files_of_a_folder)
{
    const struct wal_slice paths[] = {kit_text("home")};
    int32_t calls = 0;
    const struct wal_import_options options = {
        .struct_size = sizeof(options), .report = replace_file, .ctx = &calls};
    struct wal_import_result result = {.struct_size = sizeof(result)};
    struct wal_store *store = kit_store();

    add_claude("home", ".claude/projects/p/a.jsonl", "a", "one", 1, 2);
    add_claude("home", ".claude/projects/p/b.jsonl", "b", "one", 1, 2);
    add_claude("home", ".claude/projects/p/c.jsonl", "c", "one", 1, 2);
    assert_ok(wal_import_tree(store, paths, 1, &options, &result, NULL));
    assert_int_equal(result.appended, 2 + 3);
    assert_int_equal(result.failed, 1);
    assert_int_equal(import(store, "home", 0, NULL).appended, 1);
    assert_int_equal(count_sessions(store), 2);
}

/* --- lines that go back ------------------------------------------------------- */

#define COPILOT ".copilot/session-state/" ID_1 "/events.jsonl"
#define GEMINI  ".gemini/tmp/app/chats/session-2026-02-03T09-00-11111111.jsonl"

static void add_event(const char *root, const char *id, const char *type, const char *more,
                      const char *data)
{
    char row[PATH_SIZE];

    snprintf(row, sizeof(row),
             "{\"type\":\"%s\",\"id\":\"%s\",\"parentId\":null,%s"
             "\"timestamp\":\"2026-02-03T09:00:00.000Z\",\"data\":{%s}}\n",
             type, id, more, data);
    add_text(root, COPILOT, row);
}

KIT_TEST(import_clients__main_agent_continues_after_its_last_line_in_any_import)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;

    add_event("copilot-home", "e0", "session.start", "",
              "\"sessionId\":\"" ID_1 "\",\"version\":1");
    add_event("copilot-home", "e1", "user.message", "", "\"content\":\"go\"");
    add_event("copilot-home", "e2", "assistant.message", "\"agentId\":\"a\",",
              "\"content\":\"sub\"");
    import(store, "copilot-home", 0, NULL);
    add_event("copilot-home", "e3", "assistant.message", "\"agentId\":\"a\",",
              "\"content\":\"sub\"");
    import(store, "copilot-home", 0, NULL);
    add_event("copilot-home", "e4", "assistant.message", "", "\"content\":\"done\"");
    import(store, "copilot-home", 0, NULL);
    session = kit_session(store, ID_1);
    assert_parent(session, "e3", "e2");
    assert_branch(session, "e0 e1 e4");
}

static void add_message(const char *root, const char *id, const char *text)
{
    char row[PATH_SIZE];

    snprintf(row, sizeof(row),
             "{\"id\":\"%s\",\"timestamp\":\"2026-02-03T09:00:00.000Z\",\"type\":\"user\","
             "\"content\":\"%s\"}\n",
             id, text);
    add_text(root, GEMINI, row);
}

KIT_TEST(import_clients__line_that_replaces_another_is_in_its_place_in_any_import)
{
    struct wal_store *store = kit_store();
    struct seen seen = {.status = WAL_OK};
    struct wal_session *session;

    add_text("gemini-home", GEMINI,
             "{\"sessionId\":\"" ID_2 "\",\"projectHash\":\"h\",\"startTime\":"
             "\"2026-02-03T09:00:00.000Z\",\"kind\":\"main\"}\n");
    add_message("gemini-home", "m1", "one");
    add_message("gemini-home", "m2", "two");
    import(store, "gemini-home", 0, NULL);
    add_message("gemini-home", "m2", "two, with its result");
    import(store, "gemini-home", 0, &seen);
    session = kit_session(store, ID_2);
    assert_branch(session, "line-1 m1 m2~4");
    assert_parent(session, "m2~4", "m1");
    add_text("gemini-home", GEMINI, "{\"$rewindTo\":\"m1\"}\n");
    add_message("gemini-home", "m3", "again");
    import(store, "gemini-home", 0, NULL);
    assert_branch(session, "line-1 line-5 m3");
    add_text("gemini-home", GEMINI, "{\"$rewindTo\":\"m9\"}\n");
    import(store, "gemini-home", 0, NULL);
    assert_branch(session, "line-7");
}
