/*
 * test_import.c - tests of wal_import_file and wal_import_tree.
 */
#include "tests/lib/kit/backup_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>

#include "agentwal/import.h"
#include "convert/import/import_tree.h"
#include "tests/lib/faulty_heap.h"

#define MODEL AGENTWAL_SOURCE_DIR "/tests/golden/model/"

enum {
    LINE_SIZE = 512
};

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
    snprintf(to, size, "%.*s", (int)text.size,
             text.size > 0 ? (const char *)text.data : "");
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

        snprintf(seen->issues + used, sizeof(seen->issues) - used,
                 "%llu:%llu:%s;", (unsigned long long)issue->line,
                 (unsigned long long)issue->offset,
                 (const char *)issue->reason.data);
    }
    if (report->status != WAL_OK) {
        assert_non_null(report->error);
        copy_slice(seen->failed, sizeof(seen->failed), report->path);
        seen->status = report->status;
    }
    return seen->reports == seen->stop_after ? 7 : 0;
}

static int32_t on_progress(void *ctx, struct wal_slice path, uint64_t done,
                           uint64_t total)
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

static enum wal_status import_file(struct wal_store *store, const char *path,
                                   struct seen *seen,
                                   struct wal_import_result *result,
                                   struct wal_error *error)
{
    struct wal_import_options options = options_of(seen);

    *result = (struct wal_import_result){.struct_size = sizeof(*result)};
    return wal_import_file(store, kit_text(path), &options, result, error);
}

static enum wal_status import_tree(struct wal_store *store, const char *path,
                                   struct seen *seen,
                                   struct wal_import_result *result,
                                   struct wal_error *error)
{
    const struct wal_slice paths[] = {kit_text(path)};
    struct wal_import_options options = options_of(seen);

    *result = (struct wal_import_result){.struct_size = sizeof(*result)};
    options.exclude = kit_text("store");
    return wal_import_tree(store, paths, 1, &options, result, error);
}

static void must_import(struct wal_store *store, const char *path,
                        struct seen *seen, struct wal_import_result *result)
{
    struct wal_error error = KIT_ERROR;

    if (import_file(store, path, seen, result, &error) != WAL_OK) {
        fail_msg("%s: %s", path, error.text);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* Lines of Claude Code: `first` up to `last`, each under the line before. */
static void write_rows(const char *path, const char *session, unsigned first,
                       unsigned last)
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
    kit_close(store);
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
    kit_close(store);
}

/* What a compaction wrote is read into memory that is freed with its cursor:
 * nothing of the last line is read after that. */
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
    kit_compact("store");
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
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(import_file__named_dialect_that_is_unknown)
{
    struct wal_import_options options = {.struct_size = sizeof(options),
                                         .dialect = kit_text("cobol")};
    struct wal_store *store = kit_store();
    struct wal_error error = KIT_ERROR;

    write_rows("a.jsonl", "s", 1, 1);
    assert_int_equal(
        wal_import_file(store, kit_text("a.jsonl"), &options, NULL, &error),
        WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "cobol");
    options.dialect = kit_text("lines");
    assert_ok(
        wal_import_file(store, kit_text("a.jsonl"), &options, NULL, NULL));
    kit_close(store);
}

KIT_TEST(import_file__text_of_no_dialect_is_lines)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;
    struct seen seen = {.reports = 0};

    write_file("notes", "one\ntwo\n");
    must_import(store, "notes", &seen, &result);
    assert_string_equal(seen.dialect, "lines");
    assert_int_equal(seen.last.lines, 2);
    kit_close(store);
}

KIT_TEST(import_file__empty_file_is_an_empty_session)
{
    struct wal_store *store = kit_store();
    struct wal_import_result result;
    struct seen seen = {.reports = 0};

    write_file("empty.jsonl", "");
    must_import(store, "empty.jsonl", &seen, &result);
    assert_int_equal(result.sessions, 1);
    assert_int_equal(result.appended, 0);
    assert_int_equal(seen.last.lines, 0);
    kit_close(store);
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
    snprintf(expected, sizeof(expected),
             "2:%llu:torn: the file ends inside this line;",
             (unsigned long long)stat.st_size - 10);
    assert_string_equal(seen.issues, expected);
    kit_close(store);
}

KIT_TEST(import_file__paths_that_cannot_be_read)
{
    struct wal_store *store = kit_store();
    struct wal_error error = KIT_ERROR;
    struct wal_import_result result;
    struct seen seen = {.reports = 0};

    assert_int_equal(import_file(store, "none", &seen, &result, &error),
                     WAL_ENOTFOUND);
    assert_int_equal(error.sys_errno, ENOENT);
    assert_string_equal(seen.failed, "none");
    assert_int_equal(seen.status, WAL_ENOTFOUND);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(import_file(store, "fifo", &seen, &result, &error),
                     WAL_ENOTFILE);
    assert_int_equal(mkdir("plain", 0700), 0);
    assert_int_equal(import_file(store, "plain", &seen, &result, &error),
                     WAL_ENOTFILE);
    assert_int_equal(result.sources, 0);
    assert_int_equal(result.failed, 1);
    assert_int_equal(seen.reports, 3);
    kit_close(store);
}

KIT_TEST(import_file__misuse_changes_nothing)
{
    struct wal_import_options options = {.struct_size = 1};
    struct wal_import_result result = {.struct_size = 1};
    struct wal_store *store = kit_store();

    assert_int_equal(wal_import_file(NULL, kit_text("a"), NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(
        wal_import_file(store, kit_text("a"), &options, NULL, NULL),
        WAL_EINVAL);
    options =
        (struct wal_import_options){.struct_size = sizeof(options), .flags = 1};
    assert_int_equal(
        wal_import_file(store, kit_text("a"), &options, NULL, NULL),
        WAL_EINVAL);
    assert_int_equal(wal_import_file(store, kit_text("a"), NULL, &result, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_import_tree(store, NULL, 1, NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(
        wal_import_file(store, (struct wal_slice){"a\0b", 3}, NULL, NULL, NULL),
        WAL_EINVAL);
    kit_close(store);
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
    kit_close(store);
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
    kit_close(store);
}

/* A link cycle cannot be read by any user. */
KIT_TEST(import_tree__one_bad_source_is_counted)
{
    const struct wal_slice paths[] = {kit_text("a.jsonl"), kit_text("loop"),
                                      kit_text("z.jsonl")};
    struct wal_store *store = kit_store();
    struct wal_import_result result = {.struct_size = sizeof(result)};
    struct seen seen = {.reports = 0};
    struct wal_import_options options = options_of(&seen);
    struct wal_error error = KIT_ERROR;

    write_rows("a.jsonl", "a", 1, 2);
    write_rows("z.jsonl", "z", 1, 3);
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_ok(wal_import_tree(store, paths, 3, &options, &result, &error));
    assert_int_equal(result.sessions, 2);
    assert_int_equal(result.appended, 5);
    assert_int_equal(result.failed, 1);
    assert_string_equal(seen.failed, "loop");
    assert_string_equal(seen.path, "z.jsonl");
    kit_close(store);
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
    kit_close(store);
}

#define FIRST_OF_COPY                                                       \
    "{\"parentUuid\":null,\"isSidechain\":false,\"type\":\"user\",\"cwd\":" \
    "\"/home/u\",\"sessionId\":\"copy\",\"message\":{\"role\":\"user\","    \
    "\"content\":\"text\"},\"uuid\":\"first\",\"timestamp\":"               \
    "\"2026-01-02T03:04:05.000Z\"}\n"

/* A copy of the rows of `origin`, as Claude Code forks a session, one row
 * before and one after them. */
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

/* The links are the same in any order, and when a file is read before the lines
 * that name the origin are there. */
KIT_TEST(import_tree__copy_is_whole_and_a_child_of_its_origin)
{
    static const char *const orders[][2] = {{"t/a.jsonl", "t/b.jsonl"},
                                            {"t/b.jsonl", "t/a.jsonl"}};

    assert_int_equal(mkdir("t", 0700), 0);
    write_rows("t/b.jsonl", "origin", 1, 20);
    for (size_t i = 0; i < 2; i++) {
        struct wal_store *store = kit_store();
        struct wal_import_result result;
        struct seen seen = {.reports = 0};
        struct wal_session *session;

        write_file("t/a.jsonl", FIRST_OF_COPY);
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
        write_file("a.jsonl", header);
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
    assert_int_equal(import_file(store, "a.jsonl", &seen, &result, &error),
                     WAL_ECALLBACK);
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
    kit_close(store);
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
    assert_int_equal(import_tree(store, "t", &seen, &result, &error),
                     WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 7);
    assert_int_equal(result.sessions, 1);
    seen = (struct seen){.reports = 0};
    assert_ok(import_tree(store, "t", &seen, &result, &error));
    assert_int_equal(result.sessions, 2);
    assert_int_equal(result.appended, 2);
    kit_close(store);
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
    assert_non_null(
        strstr(seen.issues, ":its parent is not before it in the file;"));
    assert_non_null(strstr(seen.issues, ":not JSON;"));
    assert_int_equal(seen.last.issue_count, 2);
    seen.issues[0] = '\0';
    must_import(store, "a.jsonl", &seen, &result);
    assert_int_equal(seen.last.issue_count, 2);
    kit_close(store);
}

/* -------------------------------------------------------------- memory --- */

/* Fails every allocation in turn; what was imported then is completed. */
static void check_without_memory(const char *path, uint64_t sessions)
{
    const struct wal_slice paths[] = {kit_text(path)};
    struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);
    struct wal_import_result result;
    enum wal_status status = WAL_ENOMEM;
    struct faulty_heap heap;

    for (uint64_t nth = 1; status != WAL_OK; nth++) {
        struct wal_error error = KIT_ERROR;

        faulty_heap_init(&heap, &wal__heap_libc);
        faulty_heap_fail(&heap, nth, false);
        result = (struct wal_import_result){.struct_size = sizeof(result)};
        status = wal__import_paths(store, paths, 1, false, NULL, &heap.heap,
                                   &result, &error);
        assert_int_equal(heap.live, 0);
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
        assert_int_equal(status == WAL_OK, heap.failures == 0);
        assert_int_equal(result.failed, 0);
    }
    assert_int_equal(result.sessions, sessions);
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
