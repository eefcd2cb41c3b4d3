/*
 * test_import.c - tests of wal_import_file, wal_import_tree and wal_import_follow: what is
 * imported, when imported sessions were created and last active, the time of their import, and
 * their projects.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "agentwal/import.h"
#include "convert/import/import_tree.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/backup_kit.h"
#include "tests/lib/kit/store_kit.h"

#define MODEL AGENTWAL_SOURCE_DIR "/tests/golden/model/"

enum { LINE_SIZE = 512 };

/* What the callbacks saw. */
struct seen {
    struct wal_import_report last; /* the last report; texts are copied */
    char path[256];
    char dialect[32];
    char session[256];
    char issues[1024]; /* "LINE:OFFSET:REASON;" of each */
    char failed[256];  /* path of the last failure */
    int32_t status;    /* of it */
    unsigned reports;
    unsigned stop_after; /* reports; 0: never */
    unsigned progress;
    int32_t progress_result;
    uint64_t done;
    uint64_t total;
};

static void copy_slice(char *to, size_t size, struct wal_slice text)
{
    snprintf(to, size, "%.*s", (int)text.size, text.size > 0 ? (const char *)text.data : "");
}

static int32_t on_report(void *ctx, const struct wal_import_report *report)
{
    struct seen *seen = ctx;

    assert_int_equal(report->struct_size, sizeof(*report));
    seen->reports++;
    seen->last = *report;
    copy_slice(seen->path, sizeof(seen->path), report->path);
    copy_slice(seen->dialect, sizeof(seen->dialect), report->dialect);
    copy_slice(seen->session, sizeof(seen->session), report->session_id);
    for (uint64_t i = 0; i < report->issue_count; i++) {
        const struct wal_import_issue *issue = &report->issues[i];
        size_t used = strlen(seen->issues);

        snprintf(seen->issues + used, sizeof(seen->issues) - used, "%llu:%llu:%s;",
                 (unsigned long long)issue->line, (unsigned long long)issue->offset,
                 (const char *)issue->reason.data);
    }
    if (report->status != WAL_OK) {
        assert_non_null(report->error);
        copy_slice(seen->failed, sizeof(seen->failed), report->path);
        seen->status = report->status;
    }
    return seen->reports == seen->stop_after ? 7 : 0;
}

static int32_t on_progress(void *ctx, struct wal_slice path, uint64_t done, uint64_t total)
{
    struct seen *seen = ctx;

    assert_true(path.size > 0);
    assert_true(done >= seen->done || total != seen->total);
    seen->done = done;
    seen->total = total;
    seen->progress++;
    return seen->progress_result;
}

static struct wal_import_options options_of(struct seen *seen)
{
    return (struct wal_import_options){
        .struct_size = sizeof(struct wal_import_options),
        .progress = on_progress,
        .report = on_report,
        .ctx = seen,
    };
}

static enum wal_status import_file(struct wal_store *store, const char *path, struct seen *seen,
                                   struct wal_import_result *result, struct wal_error *error)
{
    struct wal_import_options options = options_of(seen);

    *result = (struct wal_import_result){.struct_size = sizeof(*result)};
    return wal_import_file(store, kit_text(path), &options, result, error);
}

static enum wal_status import_tree(struct wal_store *store, const char *path, struct seen *seen,
                                   struct wal_import_result *result, struct wal_error *error)
{
    const struct wal_slice paths[] = {kit_text(path)};
    struct wal_import_options options = options_of(seen);

    *result = (struct wal_import_result){.struct_size = sizeof(*result)};
    options.exclude = kit_text("store");
    return wal_import_tree(store, paths, 1, &options, result, error);
}

static void must_import(struct wal_store *store, const char *path, struct seen *seen,
                        struct wal_import_result *result)
{
    assert_done(import_file(store, path, seen, result, kit_error()));
}

/* Lines of Claude Code: `first` up to `last`, each under the line before. */
static void write_rows(const char *path, const char *session, unsigned first, unsigned last)
{
    FILE *file = fopen(path, first == 1 ? "we" : "ae");

    assert_non_null(file);
    for (unsigned i = first; i <= last; i++) {
        char parent[40] = "null";

        if (i > 1) {
            snprintf(parent, sizeof(parent), "\"%s-%u\"", session, i - 1);
        }
        fprintf(file,
                "{\"parentUuid\":%s,\"isSidechain\":false,\"type\":\"user\","
                "\"cwd\":\"/home/u\",\"sessionId\":\"%s\",\"message\":{"
                "\"role\":\"user\",\"content\":\"text %u\"},\"uuid\":\"%s-%u\","
                "\"timestamp\":\"2026-01-02T03:04:05.000Z\"}\n",
                parent, session, i, session, i);
    }
    assert_int_equal(fclose(file), 0);
}

/* ---------------------------------------------------------- one source --- */

KIT_TEST(import_file__every_dialect_is_detected)
{
    static const struct {
        const char *path;
        const char *dialect;
        uint32_t kind;
    } sources[] = {
        {MODEL "claude.jsonl", "claude", WAL_IMPORT_FILE},
        {MODEL "codex.jsonl", "codex", WAL_IMPORT_FILE},
        {MODEL "entries.jsonl", "entries", WAL_IMPORT_FILE},
        {MODEL "pi.jsonl", "pi", WAL_IMPORT_FILE},
        {MODEL "rollouts.jsonl", "rollouts", WAL_IMPORT_FILE},
        {MODEL "opencode/storage", "opencode", WAL_IMPORT_DIRECTORY},
        {MODEL "sdk/s-1", "sdk", WAL_IMPORT_DIRECTORY},
    };
    struct wal_store *store = kit_store();

    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        struct wal_import_result result;
        struct seen seen = {.reports = 0};

        must_import(store, sources[i].path, &seen, &result);
        assert_string_equal(seen.dialect, sources[i].dialect);
        assert_int_equal(seen.last.kind, sources[i].kind);
        assert_string_equal(seen.path, sources[i].path);
        assert_int_equal(result.sources, 1);
        assert_true(result.sessions > 0 && result.appended > 0);
        assert_int_equal(result.failed, 0);
        wal_session_close(kit_session(store, seen.session));
    }
}

KIT_TEST(import_file__second_import_adds_only_new_lines)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;
    struct seen seen = {.reports = 0};

    write_rows("a.jsonl", "s", 1, 3);
    must_import(store, "a.jsonl", &seen, &result);
    assert_int_equal(result.appended, 3);
    assert_int_equal(seen.last.lines, 3);
    must_import(store, "a.jsonl", &seen, &result);
    assert_int_equal(result.appended, 0);
    assert_int_equal(result.duplicates, 3);
    write_rows("a.jsonl", "s", 4, 5);
    must_import(store, "a.jsonl", &seen, &result);
    assert_int_equal(result.appended, 2);
    assert_int_equal(result.duplicates, 3);
    assert_string_equal(seen.session, "s");
}

/* What a compaction wrote is read into memory that is freed with its cursor: nothing of the last
 * line is read after that. */
KIT_TEST(import_file__grown_after_a_compaction)
{
    struct wal_store *store = kit_store();
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *session;
    struct wal_import_result result;
    struct seen seen = {.reports = 0};
    FILE *file;

    file = fopen("a.jsonl", "we");
    assert_non_null(file);
    for (int i = 0; i < 100; i++) {
        fprintf(file, "{\"a\":\"%0*d\"}\n", 100, i);
    }
    (void)fputs("{\"a\":", file);
    assert_int_equal(fclose(file), 0);
    must_import(store, "a.jsonl", &seen, &result);
    assert_int_equal(result.appended, 100);
    kit_close(store);
    kit_compact_path("store");
    store = kit_store();
    (void)mallopt(M_PERTURB, 'x'); /* a sanitizer's heap has no such option */
    must_import(store, "a.jsonl", &seen, &result);
    assert_int_equal(result.appended, 0);
    file = fopen("a.jsonl", "ae");
    assert_non_null(file);
    (void)fputs("3}\n", file);
    assert_int_equal(fclose(file), 0);
    must_import(store, "a.jsonl", &seen, &result);
    (void)mallopt(M_PERTURB, 0);
    assert_int_equal(result.appended, 1);
    assert_int_equal(result.sessions, 1);
    session = kit_session(store, seen.session);
    assert_ok(wal_entry_get(session, kit_text("line-101"), &entry, NULL));
    assert_slice(entry.parent_id, "line-100");
}

KIT_TEST(import_file__named_dialect_that_is_unknown)
{
    struct wal_import_options options = {.struct_size = sizeof(options),
                                         .dialect = kit_text("cobol")};
    struct wal_store *store = kit_store();

    write_rows("a.jsonl", "s", 1, 1);
    assert_fails(wal_import_file(store, kit_text("a.jsonl"), &options, NULL, kit_error()),
                 WAL_ENOTFOUND, "cobol");
    options.dialect = kit_text("lines");
    assert_ok(wal_import_file(store, kit_text("a.jsonl"), &options, NULL, NULL));
}

KIT_TEST(import_file__text_of_no_dialect_is_lines)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;
    struct seen seen = {.reports = 0};

    kit_write_file("notes", "one\ntwo\n", 8);
    must_import(store, "notes", &seen, &result);
    assert_string_equal(seen.dialect, "lines");
    assert_int_equal(seen.last.lines, 2);
}

/* Unless every file is a source: then it comes back. */
KIT_TEST(import_file__empty_file_is_left_out)
{
    const struct wal_import_options all = {.struct_size = sizeof(all),
                                           .flags = WAL_IMPORT_ALL_FILES};
    struct wal_store *store = kit_store();
    struct wal_import_result result;
    struct seen seen = {.reports = 0};

    kit_write_file("empty.jsonl", "", 0);
    must_import(store, "empty.jsonl", &seen, &result);
    assert_int_equal(result.sessions, 0);
    assert_int_equal(result.left_out[WAL_IMPORT_OTHERS], 1);
    assert_int_equal(seen.reports, 0);
    assert_ok(wal_import_file(store, kit_text("empty.jsonl"), &all, &result, NULL));
    assert_int_equal(result.sessions, 1);
}

KIT_TEST(import_file__truncated_line_is_an_issue)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;
    struct seen seen = {.reports = 0};
    struct stat stat;
    char expected[LINE_SIZE];

    write_rows("a.jsonl", "s", 1, 2);
    assert_int_equal(lstat("a.jsonl", &stat), 0);
    assert_int_equal(truncate("a.jsonl", stat.st_size - 10), 0);
    must_import(store, "a.jsonl", &seen, &result);
    assert_int_equal(result.appended, 1);
    snprintf(expected, sizeof(expected), "2:%llu:torn: the file ends inside this line;",
             (unsigned long long)stat.st_size - 10);
    assert_string_equal(seen.issues, expected);
}

KIT_TEST(import_file__paths_that_cannot_be_read)
{
    struct wal_store *store = kit_store();
    struct wal_error error = KIT_ERROR;
    struct wal_import_result result;
    struct seen seen = {.reports = 0};

    assert_int_equal(import_file(store, "none", &seen, &result, &error), WAL_ENOTFOUND);
    assert_int_equal(error.sys_errno, ENOENT);
    assert_string_equal(seen.failed, "none");
    assert_int_equal(seen.status, WAL_ENOTFOUND);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(import_file(store, "fifo", &seen, &result, &error), WAL_ENOTFILE);
    assert_int_equal(mkdir("plain", 0700), 0);
    assert_int_equal(import_file(store, "plain", &seen, &result, &error), WAL_ENOTFILE);
    assert_int_equal(result.sources, 0);
    assert_int_equal(result.failed, 1);
    assert_int_equal(seen.reports, 3);
}

KIT_TEST(import_file__misuse_changes_nothing)
{
    struct wal_import_options options = {.struct_size = 1};
    struct wal_import_result result = {.struct_size = 1};
    struct wal_store *store = kit_store();

    assert_int_equal(wal_import_file(NULL, kit_text("a"), NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_import_file(store, kit_text("a"), &options, NULL, NULL), WAL_EINVAL);
    options = (struct wal_import_options){.struct_size = sizeof(options), .flags = 1};
    assert_int_equal(wal_import_file(store, kit_text("a"), &options, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_import_file(store, kit_text("a"), NULL, &result, NULL), WAL_EINVAL);
    assert_int_equal(wal_import_tree(store, NULL, 1, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_import_file(store, (struct wal_slice){"a\0b", 3}, NULL, NULL, NULL),
                     WAL_EINVAL);
}

/* --------------------------------------------------------------- trees --- */

KIT_TEST(import_tree__without_sources)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;
    struct seen seen = {.reports = 0};

    assert_int_equal(mkdir("plain", 0700), 0);
    assert_int_equal(mkdir("plain/below", 0700), 0);
    assert_ok(import_tree(store, "plain", &seen, &result, NULL));
    assert_int_equal(result.sources, 0);
    assert_int_equal(seen.reports, 0);
}

KIT_TEST(import_tree__excluded_store_is_not_a_source)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;
    struct seen seen = {.reports = 0};

    write_rows("a.jsonl", "s", 1, 2);
    assert_ok(import_tree(store, ".", &seen, &result, NULL));
    assert_int_equal(result.sources, 1);
    assert_string_equal(seen.path, "./a.jsonl");
}

/* A link cycle cannot be read by any user. */
KIT_TEST(import_tree__one_bad_source_is_counted)
{
    const struct wal_slice paths[] = {kit_text("a.jsonl"), kit_text("loop"), kit_text("z.jsonl")};
    struct wal_store *store = kit_store();
    struct wal_import_result result = {.struct_size = sizeof(result)};
    struct seen seen = {.reports = 0};
    struct wal_import_options options = options_of(&seen);

    write_rows("a.jsonl", "a", 1, 2);
    write_rows("z.jsonl", "z", 1, 3);
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_ok(wal_import_tree(store, paths, 3, &options, &result, kit_error()));
    assert_int_equal(result.sessions, 2);
    assert_int_equal(result.appended, 5);
    assert_int_equal(result.failed, 1);
    assert_string_equal(seen.failed, "loop");
    assert_string_equal(seen.path, "z.jsonl");
}

KIT_TEST(import_tree__second_import_adds_nothing)
{
    struct wal_store *store = kit_store();
    struct wal_import_result first;
    struct wal_import_result second;
    struct seen seen = {.reports = 0};

    assert_ok(import_tree(store, MODEL, &seen, &first, NULL));
    assert_true(first.sessions >= 8);
    assert_int_equal(first.failed, 0);
    assert_ok(import_tree(store, MODEL, &seen, &second, NULL));
    assert_int_equal(second.appended, 0);
    assert_int_equal(second.sessions, first.sessions);
    assert_int_equal(second.duplicates, first.appended + first.duplicates);
}

#define FIRST_OF_COPY                                                       \
    "{\"parentUuid\":null,\"isSidechain\":false,\"type\":\"user\",\"cwd\":" \
    "\"/home/u\",\"sessionId\":\"copy\",\"message\":{\"role\":\"user\","    \
    "\"content\":\"text\"},\"uuid\":\"first\",\"timestamp\":"               \
    "\"2026-01-02T03:04:05.000Z\"}\n"

/* A copy of the rows of `origin`, as Claude Code forks a session, one row before and one after
 * them. */
static void write_copy(const char *path, const char *origin, unsigned last)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    (void)fputs(FIRST_OF_COPY, file);
    for (unsigned i = 1; i <= last + 1; i++) {
        char parent[40] = "null";

        if (i > 1) {
            snprintf(parent, sizeof(parent), "\"%s-%u\"", origin, i - 1);
        }
        fprintf(file,
                "{\"parentUuid\":%s,\"isSidechain\":false,\"type\":\"user\","
                "\"cwd\":\"/home/u\",\"sessionId\":\"copy\",\"message\":{"
                "\"role\":\"user\",\"content\":\"text %u\"},\"uuid\":"
                "\"%s-%u\",\"timestamp\":\"2026-01-02T03:04:05.000Z\","
                "\"forkedFrom\":{\"sessionId\":\"%s\"}}\n",
                parent, i, origin, i, origin);
    }
    assert_int_equal(fclose(file), 0);
}

/* The links are the same in any order, and when a file is read before the lines that name the
 * origin are there. */
KIT_TEST(import_tree__copy_is_whole_and_a_child_of_its_origin)
{
    static const char *const orders[][2] = {{"t/a.jsonl", "t/b.jsonl"}, {"t/b.jsonl", "t/a.jsonl"}};

    assert_int_equal(mkdir("t", 0700), 0);
    write_rows("t/b.jsonl", "origin", 1, 20);
    for (size_t i = 0; i < 2; i++) {
        struct wal_store *store = kit_store();
        struct wal_import_result result;
        struct seen seen = {.reports = 0};
        struct wal_session *session;

        kit_write_file("t/a.jsonl", FIRST_OF_COPY, sizeof(FIRST_OF_COPY) - 1);
        must_import(store, "t/a.jsonl", &seen, &result);
        write_copy("t/a.jsonl", "origin", 20);
        for (size_t j = 0; j < 2; j++) {
            must_import(store, orders[i][j], &seen, &result);
        }
        session = kit_session(store, "copy");
        assert_slice(kit_info(session).parent_id, "origin");
        assert_int_equal(kit_info(session).entries, 22);
        assert_int_equal(kit_info(session).flags, 0);
        wal_session_close(session);
        session = kit_session(store, "origin");
        assert_slice(kit_info(session).parent_id, "");
        wal_session_close(session);
        assert_ok(import_tree(store, "t", &seen, &result, NULL));
        assert_int_equal(result.appended, 0);
        assert_int_equal(result.sessions, 2);
        kit_close(store);
        assert_int_equal(system("rm -rf store"), 0);
    }
}

/* Of a path, the id is that in the file's name. */
KIT_TEST(import_file__names_of_a_forked_session)
{
    static const struct {
        const char *member;
        const char *parent;
    } names[] = {
        {"\"parentSession\":\"s-0\"", "s-0"},
        {"\"branchedFrom\":\"s-0\"", "s-0"},
        {"\"parentSession\":\"/y/2026-01-01T00-00-00-000Z_s-0.jsonl\"", "s-0"},
        {"\"parentSession\":\"/y/2026-01-01_a_b.jsonl\"", "a_b"},
        {"\"parentSession\":\"/y/a_b.jsonl\"", "a_b"},
        {"\"parentSession\":\"s-0.jsonl\"", "s-0"},
        {"\"parentSession\":\"s-1\"", ""}, /* itself */
        {"\"parentSession\":\"/y/\"", ""},
        {"\"parentSession\":\"\\u0007\"", ""},
        {"\"parentSession\":7", ""},
        {"\"parentSession\":\"\",\"branchedFrom\":\"s-0\"", "s-0"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct wal_store *store = kit_store();
        struct wal_import_result result;
        struct seen seen = {.reports = 0};
        struct wal_session *session;
        char header[LINE_SIZE];

        snprintf(header, sizeof(header),
                 "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"cwd\":"
                 "\"/x\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",%s}\n",
                 names[i].member);
        kit_write_file("a.jsonl", header, strlen(header));
        must_import(store, "a.jsonl", &seen, &result);
        assert_string_equal(seen.dialect, "pi");
        session = kit_session(store, "s-1");
        assert_slice(kit_info(session).parent_id, names[i].parent);
        wal_session_close(session);
        kit_close(store);
        assert_int_equal(system("rm -rf store"), 0);
    }
}

/* ----------------------------------------------------------- callbacks --- */

KIT_TEST(import_progress__reports_bytes_and_stops)
{
    struct wal_store *store = kit_store();
    struct wal_error error = KIT_ERROR;
    struct wal_import_result result;
    struct seen seen = {.reports = 0};
    struct stat stat;

    write_rows("a.jsonl", "s", 1, 3);
    assert_int_equal(lstat("a.jsonl", &stat), 0);
    seen.progress_result = 9;
    assert_int_equal(import_file(store, "a.jsonl", &seen, &result, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 9);
    assert_int_equal(seen.progress, 1);
    assert_int_equal(seen.reports, 0);
    assert_int_equal(result.sessions, 0);
    seen = (struct seen){.reports = 0};
    must_import(store, "a.jsonl", &seen, &result);
    assert_int_equal(seen.done, stat.st_size);
    assert_int_equal(seen.total, stat.st_size);
    assert_int_equal(result.bytes, stat.st_size);
    assert_int_equal(result.appended + result.duplicates, 3);
}

KIT_TEST(import_report__stops_the_tree)
{
    struct wal_store *store = kit_store();
    struct wal_error error = KIT_ERROR;
    struct wal_import_result result;
    struct seen seen = {.stop_after = 1};

    assert_int_equal(mkdir("t", 0700), 0);
    write_rows("t/a.jsonl", "a", 1, 2);
    write_rows("t/b.jsonl", "b", 1, 2);
    assert_int_equal(import_tree(store, "t", &seen, &result, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 7);
    assert_int_equal(result.sessions, 1);
    seen = (struct seen){.reports = 0};
    assert_ok(import_tree(store, "t", &seen, &result, &error));
    assert_int_equal(result.sessions, 2);
    assert_int_equal(result.appended, 2);
}

/* Returns the syncs that the handle made. */
static uint64_t count_syncs(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(store, &info, NULL));
    return info.syncs;
}

static uint64_t count_durable(struct wal_store *store, const char *id)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_ENTRY_CURSOR_DURABLE,
    };
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *session = kit_session(store, id);
    uint64_t count = 0;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    while (wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        count++;
    }
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    return count;
}

/* Other syncs, of new segments and of an idle store, are few. */
KIT_TEST(import_durability__files_share_a_sync)
{
    const struct wal_slice paths[] = {kit_text("t")};
    struct wal_store *store = kit_store();
    struct wal_import_result result = {.struct_size = sizeof(result)};
    char path[64];
    char id[16];
    uint64_t syncs;

    assert_int_equal(mkdir("t", 0700), 0);
    for (unsigned i = 0; i < 50; i++) {
        (void)snprintf(path, sizeof(path), "t/%u.jsonl", i);
        (void)snprintf(id, sizeof(id), "s%u", i);
        write_rows(path, id, 1, 3);
    }
    syncs = count_syncs(store);
    assert_ok(wal_import_tree(store, paths, 1, NULL, &result, NULL));
    assert_int_equal(result.appended, 150);
    assert_in_range(count_syncs(store), syncs + 1, syncs + 25);
    for (unsigned i = 0; i < 50; i++) {
        (void)snprintf(id, sizeof(id), "s%u", i);
        assert_int_equal(count_durable(store, id), 3);
    }
    assert_ok(wal_import_tree(store, paths, 1, NULL, &result, NULL));
    assert_int_equal(result.appended, 0);
}

KIT_TEST(import_durability__of_a_stopped_import)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;
    struct seen seen = {.stop_after = 2};

    assert_int_equal(mkdir("t", 0700), 0);
    write_rows("t/a.jsonl", "a", 1, 2);
    write_rows("t/b.jsonl", "b", 1, 3);
    write_rows("t/c.jsonl", "c", 1, 4);
    assert_int_equal(import_tree(store, "t", &seen, &result, NULL), WAL_ECALLBACK);
    assert_int_equal(result.appended, 5);
    assert_int_equal(count_durable(store, "a"), 2);
    assert_int_equal(count_durable(store, "b"), 3);
}

KIT_TEST(import_durability__of_a_directory)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;
    struct seen seen = {.reports = 0};

    must_import(store, MODEL "sdk/s-1", &seen, &result);
    assert_true(count_durable(store, seen.session) > 0);
}

/* The issues are those that the tool prints for this file. */
KIT_TEST(import_report__issues_of_damaged_lines)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;
    struct seen seen = {.reports = 0};
    FILE *file;

    write_rows("a.jsonl", "s", 1, 2);
    file = fopen("a.jsonl", "ae");
    assert_non_null(file);
    fprintf(file, "{\"parentUuid\":\"gone\",\"type\":\"user\",\"uuid\":\"x\"}\n"
                  "not json\n");
    assert_int_equal(fclose(file), 0);
    must_import(store, "a.jsonl", &seen, &result);
    assert_non_null(strstr(seen.issues, ":its parent comes later or not at all;"));
    assert_non_null(strstr(seen.issues, ":not JSON;"));
    assert_int_equal(seen.last.issue_count, 2);
    seen.issues[0] = '\0';
    must_import(store, "a.jsonl", &seen, &result);
    assert_int_equal(seen.last.issue_count, 2);
}

/* -------------------------------------------------------------- memory --- */

/* Fails every allocation in turn; what was imported then is completed. */
static void check_store_without_memory(struct wal_store *store, const char *path, uint64_t sessions)
{
    const struct wal_slice paths[] = {kit_text(path)};
    struct wal_import_result result;
    enum wal_status status = WAL_ENOMEM;
    struct faulty_heap heap;

    for (uint64_t nth = 1; status != WAL_OK; nth++) {
        faulty_heap_init(&heap, &wal__heap_libc);
        faulty_heap_fail(&heap, nth, false);
        result = (struct wal_import_result){.struct_size = sizeof(result)};
        status = wal__tree_run(store, paths, 1, WAL__TREE_IMPORT, NULL, &heap.heap, &result,
                               kit_error());
        assert_int_equal(heap.live, 0);
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
        assert_int_equal(status == WAL_OK, heap.failures == 0);
        assert_int_equal(result.failed, 0);
    }
    assert_int_equal(result.sessions, sessions);
}

static void check_without_memory(const char *path, uint64_t sessions)
{
    struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);

    check_store_without_memory(store, path, sessions);
    kit_close(store);
}

KIT_TEST(import_memory__every_allocation_of_a_file)
{
    check_without_memory(MODEL "claude.jsonl", 1);
}

KIT_TEST(import_memory__every_allocation_of_a_copy)
{
    assert_int_equal(mkdir("t", 0700), 0);
    write_copy("t/a.jsonl", "origin", 20);
    write_rows("t/b.jsonl", "origin", 1, 20);
    check_without_memory("t", 2);
}

/* What OpenCode added to a session that was exported to it. */
KIT_TEST(import_memory__every_allocation_of_what_was_gone_on_with)
{
    static const char id[] = "ses_000000000000AAAAAAAAAAAAAA";
    struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);
    struct wal_session *session = kit_create(store, id);
    FILE *file = fopen("back.json", "we");

    assert_non_null(file);
    fprintf(file,
            "{\"info\":{\"id\":\"%s\",\"title\":\"Edited\",\"metadata\":{\"agentwal\":\"%s\","
            "\"agentwalAs\":\"%s\"}},\"messages\":[",
            id, id, id);
    for (int i = 0; i < 3; i++) {
        fprintf(file,
                "%s{\"info\":{\"id\":\"msg_00000000000%dAAAAAAAAAAAAAA\",\"role\":\"user\"},"
                "\"parts\":[{\"type\":\"text\",\"text\":\"%d\"}]}",
                i > 0 ? "," : "", i, i);
    }
    fprintf(file, "]}");
    assert_int_equal(fclose(file), 0);
    check_store_without_memory(store, "back.json", 1);
    assert_int_equal(count_durable(store, id), 3);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(import_memory__every_allocation_of_directories)
{
    check_without_memory(MODEL "sdk/s-1", 1);
    check_without_memory(MODEL "opencode/storage", 1);
}

KIT_TEST(import_dialect__lists_every_dialect)
{
    uint32_t count = 0;

    while (wal_import_dialect(count) != NULL) {
        count++;
    }
    assert_true(count >= 9);
    assert_string_equal(wal_import_dialect(count - 1), "lines");
}

/* 2024-05-06T00:00:00Z, and a second of it. */
#define DAY_SECONDS INT64_C(1714953600)

static int64_t at(int second)
{
    return (DAY_SECONDS + second) * 1000;
}

/* Begins a file, or adds to it, with a line of Claude Code of that second; of no time when it is
 * negative. */
static void write_row(const char *path, const char *mode, const char *session, int number,
                      int second)
{
    FILE *file = fopen(path, mode);
    char parent[48] = "null";
    char time[64] = "";

    assert_non_null(file);
    if (number > 1) {
        (void)snprintf(parent, sizeof(parent), "\"r-%d\"", number - 1);
    }
    if (second >= 0) {
        (void)snprintf(time, sizeof(time), ",\"timestamp\":\"2024-05-06T00:00:%02d.000Z\"", second);
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
    assert_done(wal_import_file(store, kit_text(path), options, NULL, kit_error()));
}

static void check_times(struct wal_store *store, const char *id, int created, int updated)
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
    assert_ok(wal_session_open_latest(store, kit_text("/home/u/work"), &session, NULL));
    assert_slice(kit_info(session).id, "a");
    wal_session_close(session);
}

static void set_time(const char *path, time_t time)
{
    const struct timespec times[] = {{.tv_sec = time}, {.tv_sec = time, .tv_nsec = 5000000}};

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* The time of the file is that of the session and its lines, then of lines that are added. */
KIT_TEST(import_times__without_any)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;
    struct wal_session_info info;

    write_row("f.jsonl", "we", "s", 1, -1);
    write_row("f.jsonl", "ae", "s", 2, -1);
    set_time("f.jsonl", 1700000000);
    import(store, "f.jsonl", NULL);
    session = kit_session(store, "s");
    info = kit_info(session);
    assert_int_equal(info.created_ms, 1700000000005);
    assert_int_equal(info.updated_ms, info.created_ms);
    assert_true(info.metadata.size > 12);
    assert_memory_equal(info.metadata.data, "{\"imported\":", 12);
    write_row("f.jsonl", "ae", "s", 3, -1);
    import(store, "f.jsonl", NULL);
    info = kit_info(session);
    assert_int_equal(info.entries, 3);
    assert_int_equal(info.updated_ms, info.created_ms);
}

KIT_TEST(import_times__time_of_the_import_is_in_metadata)
{
    static const char wanted[] = "{\"created\":\"2024-05-06T00:00:07.000Z\",\"imported\":\"20";
    struct wal_store *store = kit_store();
    struct wal_session *session;
    struct wal_session_info info;

    write_row("f.jsonl", "we", "s", 1, 7);
    import(store, "f.jsonl", NULL);
    session = kit_session(store, "s");
    info = kit_info(session);
    assert_int_equal(info.metadata.size, sizeof(wanted) - 1 + 22 + 2);
    assert_memory_equal(info.metadata.data, wanted, sizeof(wanted) - 1);
}

/* ------------------------------------------------------------- projects --- */

static int32_t project_of(void *ctx, struct wal_slice directory, char *project, uint64_t size)
{
    const char *id = ctx;

    assert_slice(directory, "/home/u/work");
    assert_int_equal(((const char *)directory.data)[directory.size], '\0');
    (void)snprintf(project, (size_t)size, "%s", id);
    return id[0] == '-' ? 1 : 0;
}

static void check_project(struct wal_import_options *options, const char *id, const char *wanted)
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
    struct wal_import_options options = {.struct_size = sizeof(options), .project = project_of};

    write_row("f.jsonl", "we", "s", 1, 7);
    check_project(NULL, "", "/home/u/work");
    check_project(&options, "p-1", "p-1");
    check_project(&options, "-none", "/home/u/work");
}

KIT_TEST(import_project__without_a_directory)
{
    struct wal_import_options options = {.struct_size = sizeof(options), .project = project_of};
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
}

enum { PATH_SIZE = 512, WAIT_MS = 100, TRIES = 100 };

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

static void add_rows(const char *folder, const char *id, unsigned first, unsigned last)
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
static int32_t on_followed(void *ctx, const struct wal_import_report *report)
{
    assert_ptr_equal(ctx, &projects_named);
    if (report->status != WAL_OK) {
        print_error("%s: %d: %s\n", (const char *)report->path.data, report->status,
                    report->error->text);
    }
    return 0;
}

static int32_t on_followed_progress(void *ctx, struct wal_slice path, uint64_t done, uint64_t total)
{
    (void)path;
    assert_ptr_equal(ctx, &projects_named);
    assert_true(total == 0 || done <= total);
    return 0;
}

static int32_t on_project(void *ctx, struct wal_slice directory, char *project, uint64_t size)
{
    assert_ptr_equal(ctx, &projects_named);
    projects_named++;
    (void)snprintf(project, size, "project of %s", (const char *)directory.data);
    return 0;
}

static void end_follow(void *follow)
{
    wal_import_follow_close(follow);
}

static struct wal_import_follow *follow_path(struct wal_store *store, const char *path)
{
    const struct wal_slice paths[] = {kit_text(path)};
    struct wal_import_options options = WAL_INIT(wal_import_options);
    struct wal_import_result result = WAL_INIT(wal_import_result);
    struct wal_import_follow *follow = NULL;

    options.exclude = kit_text("store");
    options.report = on_followed;
    options.progress = on_followed_progress;
    options.project = on_project;
    options.ctx = &projects_named;
    assert_ok(wal_import_follow_open(store, paths, 1, &options, &follow, NULL));
    test_at_end(end_follow, follow);
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
static void wait_for(struct wal_import_follow *follow, struct wal_store *store, const char *id,
                     uint64_t entries)
{
    for (unsigned i = 0; i < TRIES && count_entries(store, id) != entries; i++) {
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

static struct wal_import_follow_info info_of(const struct wal_import_follow *follow)
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
}

KIT_TEST(follow__folder_of_projects_that_is_a_link)
{
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;

    make_folder("data/p");
    make_folder("other");
    make_folder("home/.claude");
    assert_int_equal(symlink("../../data", "home/.claude/projects"), 0);
    add_rows("data/p", "a", 1, 2);
    follow = follow_path(store, "home/.claude");
    assert_int_equal(count_entries(store, "a"), 2);
    add_rows("data/p", "a", 3, 5);
    wait_for(follow, store, "a", 5);
    assert_int_equal(symlink("../other", "data/q"), 0);
    assert_int_equal(settle(follow), 0);
    add_rows("other", "b", 1, 2);
    wait_for(follow, store, "b", 2);
    assert_int_equal(info_of(follow).is_scanning, 0);
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
}

/* A client may write the newline with the next line, and there is no next line at the end. */
KIT_TEST(follow__last_line_without_a_newline)
{
    struct wal_store *store = kit_store();
    struct wal_import_follow *follow;
    char row[PATH_SIZE];

    make_folder(PROJECT);
    add_rows(PROJECT, "a", 1, 1);
    follow = follow_path(store, "home");
    snprintf(row, sizeof(row), "%.*s", (int)strlen(row_of("a", 2)) - 1, row_of("a", 2));
    add_text(PROJECT, "a.jsonl", row);
    wait_for(follow, store, "a", 2);
    snprintf(row, sizeof(row), "\n%.*s", (int)strlen(row_of("a", 3)) - 1, row_of("a", 3));
    add_text(PROJECT, "a.jsonl", row);
    wait_for(follow, store, "a", 3);
    /* Half a line stays out, however long it is the last. */
    snprintf(row, sizeof(row), "\n%.40s", row_of("a", 4));
    add_text(PROJECT, "a.jsonl", row);
    for (unsigned i = 0; i < 3; i++) {
        assert_ok(wal_import_follow_next(follow, 700, NULL, NULL));
    }
    assert_int_equal(count_entries(store, "a"), 3);
    add_text(PROJECT, "a.jsonl", row_of("a", 4) + 40);
    wait_for(follow, store, "a", 4);
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
}

/* The limit of instances is reached: everything is scanned again and again. */
KIT_TEST(follow__without_watches_scans)
{
    enum { INSTANCES = 900 };
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
}

/* Two followers, in two processes, of files that grow. */
KIT_TEST(follow__several_processes_add_nothing_twice)
{
    enum { ROWS = 60 };
    struct wal_import_follow *follow;
    struct wal_store *store;
    pid_t child;
    int result = 0;

    make_folder(PROJECT);
    kit_close(kit_store());
    child = kit_start_process();
    if (child == 0) {
        store = kit_store();
        follow = follow_path(store, "home");
        /* Each row wakes it, possibly several times. */
        for (unsigned i = 0; i < ROWS * TRIES &&
                             (count_entries(store, "a") < ROWS || count_entries(store, "b") < ROWS);
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
}

KIT_TEST(follow__misuse_is_refused)
{
    struct wal_import_follow *follow = NULL;
    struct wal_store *store = kit_store();

    assert_int_equal(wal_import_follow_open(NULL, NULL, 0, NULL, &follow, NULL), WAL_EINVAL);
    assert_int_equal(wal_import_follow_open(store, NULL, 0, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_import_follow_next(NULL, 0, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_import_follow_get_info(NULL, NULL, NULL), WAL_EINVAL);
    wal_import_follow_close(NULL);
}
