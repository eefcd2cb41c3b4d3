/*
 * import.c - the verb import; running an import for a command, with its progress, its reports, and
 * one summary at the end.
 */
#include "tools/convert/convert.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/model/dialect.h"
#include "tools/cli/transfer.h"
#include "tools/cli/verbs.h"
#include "tools/secrets/secrets.h"

/* --- reports ------------------------------------------------------------ */

enum {
    /* All of it; else only what must not be missed. */
    PRINT_ALL = 1,
    /* The path is an argument: not reading it is a failure of the tool. */
    PRINT_ARGUMENT = 2
};

/* The path is written only for a directory: it may have several. */
static void write_issue(struct wal__json_out *json, const struct wal_import_report *report,
                        const struct wal_import_issue *issue)
{
    wal__json_out_open(json, '{');
    if (report->kind == WAL_IMPORT_DIRECTORY) {
        cli_json_path(json, issue->path);
    } else {
        wal__json_out_member_count(json, "line", issue->line);
    }
    if (issue->offset != WAL_IMPORT_NO_OFFSET) {
        wal__json_out_member_count(json, "offset", issue->offset);
    }
    cli_json_member_text(json, "reason", issue->reason);
    wal__json_out_close(json, '}');
}

static void write_json(const struct wal_import_report *report)
{
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_json_member_text(&json, "path", report->path);
    cli_json_member_text(&json, "dialect", report->dialect);
    cli_json_member_text(&json, "sessionId", report->session_id);
    wal__json_out_member_count(&json, "lines", report->lines);
    wal__json_out_member_count(&json, "appended", report->appended);
    wal__json_out_member_count(&json, "duplicates", report->duplicates);
    if (report->kind == WAL_IMPORT_DIRECTORY) {
        wal__json_out_member_count(&json, "documents", report->lines);
        wal__json_out_member_count(&json, "changed", report->appended);
        wal__json_out_member_count(&json, "checkpoints", report->checkpoints);
    }
    wal__json_out_member_open(&json, "damaged", '[');
    for (uint64_t i = 0; i < report->issue_count; i++) {
        write_issue(&json, report, &report->issues[i]);
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void print_directory(const struct wal_import_report *report)
{
    printf(", %s, %" PRIu64 " new or changed", cli_counted(report->lines, "document", "documents"),
           report->appended);
    if (report->checkpoints > 0) {
        printf(", %" PRIu64 " new %s", report->checkpoints,
               cli_plural(report->checkpoints, "checkpoint", "checkpoints"));
    }
    putchar('\n');
}

static void print_issue(const struct cli *cli, const struct wal_import_issue *issue)
{
    const char *path = issue->path.data;
    const char *reason = issue->reason.data;

    if (issue->offset == WAL_IMPORT_NO_OFFSET) {
        cli_error(cli, CLI_OK, path, "%s", reason);
    } else if (issue->line == 0) {
        cli_error(cli, CLI_OK, path, "byte %" PRIu64 ": %s", issue->offset, reason);
    } else {
        cli_error(cli, CLI_OK, path, "line %" PRIu64 ", byte %" PRIu64 ": %s", issue->line,
                  issue->offset, reason);
    }
}

static void print_text(const struct cli *cli, const struct wal_import_report *report)
{
    cli_print_name(stdout, report->path);
    printf(report->kind == WAL_IMPORT_VIEW ? ": %s view of session " : ": %s session ",
           (const char *)report->dialect.data);
    cli_print_name(stdout, report->session_id);
    if (report->kind == WAL_IMPORT_DIRECTORY) {
        print_directory(report);
    } else {
        printf(", %s, %" PRIu64 " appended, ", cli_counted(report->lines, "line", "lines"),
               report->appended);
        printf("%" PRIu64 " known\n", report->kind == WAL_IMPORT_VIEW
                                          ? report->lines - report->appended
                                          : report->duplicates);
    }
    for (uint64_t i = 0; i < report->issue_count; i++) {
        print_issue(cli, &report->issues[i]);
    }
}

/* Whether the file was removed, replaced, is locked by its client or is not for this user. */
static bool is_of_file(int number)
{
    return number == EACCES || number == EPERM || number == ENOENT || number == ELOOP ||
           number == ENOTDIR || number == ESTALE || number == EBUSY;
}

/* An argument that cannot be read is a failure of the tool; below it, and for sessions that this
 * version does not read, the answer is no. The files of sessions in the trash are expected below a
 * directory. */
static int print_failure(const struct cli *cli, const struct wal_import_report *report,
                         unsigned what)
{
    enum wal_status status = (enum wal_status)report->status;
    int number = report->error->sys_errno;
    int code;

    /* What cli_report advises for these is about a store. */
    if (status == WAL_EVERSION || status == WAL_EOUTSIDE) {
        return cli_error(cli, CLI_NEGATIVE, report->path.data, "%s", report->error->text);
    }
    code = status == WAL_EBUSY && number == EBUSY
               ? cli_error(cli, CLI_FAILED, report->path.data, "%s", report->error->text)
               : cli_report_error(cli, report->path.data, status, report->error);
    if ((what & PRINT_ARGUMENT) == 0 && status == WAL_ETRASHED) {
        return CLI_OK;
    }
    if ((what & PRINT_ARGUMENT) == 0 && is_of_file(number)) {
        return CLI_NEGATIVE;
    }
    return status == WAL_ENOTFILE || number != 0 ? CLI_FAILED : code;
}

static void print_flags(const struct cli *cli, const struct wal_import_report *report,
                        unsigned what)
{
    if ((report->flags & WAL_IMPORT_PARTIAL) != 0 && (what & PRINT_ALL) == 0) {
        cli_error(cli, CLI_OK, report->path.data, "its session lacks the beginning: %s",
                  (const char *)report->issues[0].reason.data);
    }
    if ((report->flags & WAL_IMPORT_CHANGED_VIEW) != 0) {
        cli_error(cli, CLI_OK, report->path.data,
                  "a view of session '%s' that was not only appended to; "
                  "imported as a new session",
                  (const char *)report->view_session.data);
    }
    if ((report->flags & WAL_IMPORT_OTHER_ID) != 0) {
        cli_error(cli, CLI_OK, report->path.data,
                  "differs from the session of its id; imported as '%.*s'",
                  (int)report->session_id.size, (const char *)report->session_id.data);
    }
}

/* Prints the report; `what` is a set of the above. Returns its exit code. */
static int print_import(const struct cli *cli, const struct wal_import_report *report,
                        unsigned what)
{
    print_flags(cli, report, what);
    if (report->status != WAL_OK) {
        return print_failure(cli, report, what);
    }
    if ((what & PRINT_ALL) == 0) {
        return CLI_OK;
    }
    if (cli->json) {
        write_json(report);
    } else {
        print_text(cli, report);
    }
    return CLI_OK;
}

/* --- an import ---------------------------------------------------------- */

#define STOP 1 /* result of a callback that stops the import */

#define FOLLOW_MS 1000 /* between checks for a signal that came before a wait */

/* ------------------------------------------------------------- signals --- */

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
}

void convert_catch_signals(void)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

void convert_end_interrupted(const struct cli *cli)
{
    int number = caught;

    if (number == 0) {
        return;
    }
    cli_error(cli, CLI_OK, "interrupted", "run it again to go on");
    (void)cli_finish(cli, CLI_OK);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* ------------------------------------------------------------ progress --- */

void convert_print_bytes(uint64_t bytes)
{
    char text[SIZE_TEXT];

    size_text(bytes, text);
    fputs(text, stdout);
}

static void show_progress(struct convert_run *run, uint64_t done)
{
    double seconds = (double)(when_steady_ms() - run->start_ms) / 1000;
    double rate = seconds > 0 ? (double)done / seconds : 0;
    uint64_t total = run->total.bytes > done ? run->total.bytes : done;
    char size[SIZE_TEXT];
    char rate_text[SIZE_TEXT];
    char text[160];

    if (!progress_is_due(&run->progress)) {
        return;
    }
    size_text(total, size);
    size_text((uint64_t)rate, rate_text);
    snprintf(text, sizeof(text),
             "%3.0f %% of %s, %" PRIu64 " of %" PRIu64 " files, %s/s, %.0f s "
             "left",
             total > 0 ? 100 * (double)done / (double)total : 100.0, size, run->files,
             run->total.sources, rate_text, rate > 0 ? (double)(total - done) / rate : 0.0);
    progress_show(&run->progress, "import", text);
}

static int32_t on_progress(void *ctx, struct wal_slice path, uint64_t done, uint64_t total)
{
    struct convert_run *run = ctx;

    (void)path;
    (void)total;
    show_progress(run, run->bytes + done);
    return caught != 0 ? STOP : 0;
}

/* ------------------------------------------------------------- reports --- */

/* Counts the lines of a file that have issues; those of one line follow each other. */
static void count_odd(struct convert_run *run, const struct wal_import_report *report)
{
    uint64_t last = 0;
    uint64_t first = (report->flags & WAL_IMPORT_PARTIAL) != 0 ? 1 : 0;

    for (uint64_t i = first; i < report->issue_count; i++) {
        uint64_t line = report->issues[i].line;

        run->odd_lines += line != 0 && line != last ? 1 : 0;
        last = line;
    }
    run->odd_files += report->issue_count > first ? 1 : 0;
}

/* Whether the path is one that the command was called with. */
static bool is_argument(const struct convert_run *run, struct wal_slice path)
{
    for (uint32_t i = 0; !run->has_found_paths && i < run->path_count; i++) {
        if (cli_slice_equal(run->paths[i], path)) {
            return true;
        }
    }
    return false;
}

static bool is_printed(const struct convert_run *run, const struct wal_import_report *report)
{
    /* They are there each time that the directory is imported. */
    if (report->status == WAL_ETRASHED && !run->is_verbose && !run->cli->json &&
        !is_argument(run, report->path)) {
        return false;
    }
    return run->is_verbose || run->cli->json || report->status != WAL_OK ||
           (report->flags & WAL_IMPORT_CHANGED_VIEW) != 0 ||
           ((report->flags & WAL_IMPORT_OTHER_ID) != 0 && run->other_ids <= CONVERT_NAMES_MAX) ||
           ((report->flags & WAL_IMPORT_PARTIAL) != 0 && run->partials <= CONVERT_NAMES_MAX);
}

static int32_t on_report(void *ctx, const struct wal_import_report *report)
{
    struct convert_run *run = ctx;
    unsigned what = run->is_verbose || run->cli->json ? PRINT_ALL : 0;
    int code;

    if (report->kind != WAL_IMPORT_STREAM && report->status == WAL_OK) {
        run->files++;
        run->bytes += report->bytes;
    }
    run->trashed += report->status == WAL_ETRASHED ? 1 : 0;
    run->unread += report->status == WAL_EVERSION ? 1 : 0;
    run->other_ids += (report->flags & WAL_IMPORT_OTHER_ID) != 0 ? 1 : 0;
    run->partials += (report->flags & WAL_IMPORT_PARTIAL) != 0 ? 1 : 0;
    if (what == 0) {
        count_odd(run, report);
    }
    if (run->has_followed && report->status == WAL_OK && report->appended == 0) {
        return caught != 0 ? STOP : 0;
    }
    if (run->hides_unread && report->status == WAL_EVERSION) {
        run->code = cli_worse_code(run->code, CLI_NEGATIVE);
    } else if (is_printed(run, report)) {
        progress_clear(&run->progress);
        what |= is_argument(run, report->path) ? PRINT_ARGUMENT : 0;
        code = print_import(run->cli, report, what);
        run->code = cli_worse_code(run->code, code);
    }
    show_progress(run, run->bytes);
    run->is_full = report->status == WAL_ENOSPACE; /* it was printed, once */
    return caught != 0 || run->is_full ? STOP : 0;
}

/* ------------------------------------------------------------- summary --- */

/* Prints a number, and the name of a kind, which is a plural. */
static void print_kind(uint64_t count, const char *name)
{
    size_t size = strlen(name);
    bool is_y = size > 3 && strcmp(name + size - 3, "ies") == 0;

    printf("%" PRIu64 " ", count);
    if (count == 1) {
        size -= is_y ? 3 : 1;
    }
    printf("%.*s%s", (int)size, name, count == 1 && is_y ? "y" : "");
}

void convert_print_left_out(const char *before, const struct wal_import_result *result)
{
    const char *separator = before;

    for (uint32_t i = 0; i < WAL_IMPORT_LEFT_OUT_SIZE; i++) {
        if (result->left_out[i] > 0) {
            fputs(separator, stdout);
            print_kind(result->left_out[i], wal_import_left_out_name(i));
            separator = ", ";
        }
    }
    if (separator != before) {
        putchar('\n');
    }
}

static void print_json(const struct convert_run *run, double seconds)
{
    const struct wal_import_result *result = &run->result;
    const struct cli_count members[] = {
        {"sources", result->sources},   {"sessions", result->sessions},
        {"appended", result->appended}, {"duplicates", result->duplicates},
        {"failed", result->failed},     {"bytes", result->bytes},
    };
    struct wal__json_out json;

    cli_json_begin(&json);
    wal__json_out_member_open(&json, "summary", '{');
    cli_json_counts(&json, members, sizeof(members) / sizeof(members[0]));
    wal__json_out_member_count(&json, "milliseconds", (uint64_t)(seconds * 1000));
    wal__json_out_member_open(&json, "leftOut", '{');
    for (uint32_t i = 0; i < WAL_IMPORT_LEFT_OUT_SIZE; i++) {
        cli_json_key_text(&json, cli_slice(wal_import_left_out_name(i)));
        wal__json_out_count(&json, result->left_out[i]);
    }
    wal__json_out_close(&json, '}');
    wal__json_out_close(&json, '}');
    wal__json_out_close_line(&json);
}

static void print_warnings(const struct convert_run *run)
{
    const struct cli *cli = run->cli;
    const char *files = cli_plural(run->odd_files, "file", "files");

    if (run->odd_lines > 0) {
        cli_error(
            cli, CLI_OK, NULL, "%s of %" PRIu64 " %s %s odd and %s kept unchanged; -v lists them",
            cli_counted(run->odd_lines, "line", "lines"), run->odd_files, files,
            cli_plural(run->odd_lines, "is", "are"), cli_plural(run->odd_lines, "was", "were"));
    } else if (run->odd_files > 0) {
        cli_error(cli, CLI_OK, NULL, "%" PRIu64 " %s %s odd and %s kept unchanged; -v lists them",
                  run->odd_files, files, cli_plural(run->odd_files, "is", "are"),
                  cli_plural(run->odd_files, "was", "were"));
    }
    if (!run->is_verbose && run->other_ids > CONVERT_NAMES_MAX) {
        cli_error(cli, CLI_OK, NULL,
                  "%" PRIu64 " sessions have another id than their files state; -v lists them",
                  run->other_ids);
    }
    if (!run->is_verbose && run->partials > CONVERT_NAMES_MAX) {
        cli_error(cli, CLI_OK, NULL,
                  "%" PRIu64 " files go on from others that were not found; -v lists them",
                  run->partials);
    }
}

void convert_run_print(const struct convert_run *run)
{
    const struct wal_import_result *result = &run->result;
    double seconds = (double)(when_steady_ms() - run->start_ms) / 1000;

    if (run->cli->json) {
        print_json(run, seconds);
        return;
    }
    printf("%s, %" PRIu64 " new %s, %" PRIu64 " known, ",
           cli_counted(result->sessions, "session", "sessions"), result->appended,
           cli_plural(result->appended, "entry", "entries"), result->duplicates);
    convert_print_bytes(result->bytes);
    printf(", %.1f s\n", seconds);
    convert_print_left_out("left out: ", result);
    if (run->trashed > 0) {
        printf("in the trash, and not imported: %" PRIu64 "\n", run->trashed);
    }
    if (result->failed > run->trashed) {
        printf("failed: %" PRIu64 "\n", result->failed - run->trashed);
    }
    fflush(stdout);
    print_warnings(run);
}

/* ----------------------------------------------------------------- run --- */

/* The project of a directory that exists here, as for the verb create; but an import runs no
 * program and writes nothing outside the store. A repository that stores no id yet gets one when
 * its sessions are listed or continued. */
static int32_t find_project(void *ctx, struct wal_slice directory, char *project, uint64_t size)
{
    struct convert_run *run = ctx;
    const char *path = directory.data;
    struct stat found;

    if (path[0] != '/' || stat(path, &found) != 0 || !S_ISDIR(found.st_mode)) {
        return 1;
    }
    /* Sessions of one directory follow each other. */
    if (run->directory == NULL || strcmp(run->directory, path) != 0) {
        free(run->directory);
        run->directory = cli_copy_text(path, strlen(path));
        run->has_project = cli_project_read(path, run->project);
    }
    if (!run->has_project) {
        return 1;
    }
    snprintf(project, (size_t)size, "%s", run->project);
    return 0;
}

/* The options of the run, for calls of the library; they hold as long as it does. */
static struct wal_import_options convert_run_options(struct convert_run *run)
{
    return (struct wal_import_options){
        .struct_size = sizeof(struct wal_import_options),
        .flags = run->flags,
        .dialect = cli_slice(run->dialect),
        .exclude = cli_slice(run->exclude),
        .progress = on_progress,
        .report = on_report,
        .ctx = run,
        .project = find_project,
    };
}

/* Counts what there is, for the progress on a terminal. */
static void scan(struct convert_run *run, const struct wal_slice *paths, uint32_t count)
{
    struct wal_import_options options = convert_run_options(run);

    options.report = NULL;
    options.progress = NULL;
    run->total = (struct wal_import_result)WAL_INIT(wal_import_result);
    if (run->progress.is_on) {
        (void)!wal_import_scan(paths, count, &options, &run->total, NULL);
    }
}

static void begin(struct convert_run *run, const struct wal_slice *paths, uint32_t count)
{
    run->paths = paths;
    run->path_count = count;
    run->start_ms = when_steady_ms();
    progress_init(&run->progress, !run->cli->no_progress);
    scan(run, paths, count);
    run->result = (struct wal_import_result)WAL_INIT(wal_import_result);
}

bool convert_run_is_empty(struct convert_run *run, const struct wal_slice *paths, uint32_t count)
{
    struct wal_import_options options = convert_run_options(run);
    struct wal_import_result result = WAL_INIT(wal_import_result);

    options.report = NULL;
    options.progress = NULL;
    if (access(run->exclude, F_OK) == 0 ||
        wal_import_scan(paths, count, &options, &result, NULL) != WAL_OK || result.sources > 0) {
        return false;
    }
    run->paths = paths;
    run->path_count = count;
    run->start_ms = when_steady_ms();
    options.report = on_report;
    run->result = (struct wal_import_result)WAL_INIT(wal_import_result);
    return wal_import_scan(paths, count, &options, &run->result, NULL) == WAL_OK;
}

int convert_run_import(struct convert_run *run, struct wal_store *store,
                       const struct wal_slice *paths, uint32_t count)
{
    const struct wal_import_options options = convert_run_options(run);
    enum wal_status status;

    begin(run, paths, count);
    status = wal_import_tree(store, paths, count, &options, &run->result, run->cli->error);
    progress_clear(&run->progress);
    if (status != WAL_OK && caught == 0 && !run->is_full) {
        return cli_report(run->cli, run->exclude, status);
    }
    return run->code;
}

/* Prints that folders cannot be watched, once. */
static void print_scanning(const struct convert_run *run, const struct wal_import_follow *follow,
                           bool *is_printed_before)
{
    struct wal_import_follow_info info = WAL_INIT(wal_import_follow_info);

    if (*is_printed_before || wal_import_follow_get_info(follow, &info, NULL) != WAL_OK ||
        info.is_scanning == 0) {
        return;
    }
    *is_printed_before = true;
    cli_error(run->cli, CLI_OK, NULL, "%s (%s); all folders are scanned every few seconds instead",
              info.sys_errno == ENOSPC ? "the limit of watches is reached, see "
                                         "fs.inotify.max_user_watches"
                                       : "a folder cannot be watched",
              strerror(info.sys_errno));
}

/* Imports changes until a signal comes. */
static enum wal_status follow_changes(struct convert_run *run, struct wal_import_follow *follow,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool is_scanning = false;

    progress_clear(&run->progress);
    run->progress.is_on = false;
    run->has_followed = true;
    if (run->prints_summary) {
        convert_run_print(run);
    }
    cli_error(run->cli, CLI_OK, NULL, "following; end with Ctrl-C");
    while (caught == 0 && status == WAL_OK && !cli_output_failed()) {
        print_scanning(run, follow, &is_scanning);
        status = wal_import_follow_next(follow, FOLLOW_MS, NULL, error);
        fflush(stdout);
    }
    return status;
}

/* Imports the paths, and then what changes in them, until a signal comes. Prints the summary of the
 * first import. Returns the exit code. */
static int run_follow(struct convert_run *run, struct wal_store *store,
                      const struct wal_slice *paths, uint32_t count)
{
    const struct wal_import_options options = convert_run_options(run);
    struct wal_import_follow *follow = NULL;
    enum wal_status status;

    begin(run, paths, count);
    status = wal_import_follow_open(store, paths, count, &options, &follow, run->cli->error);
    if (status == WAL_OK) {
        status = wal_import_follow_next(follow, 0, &run->result, run->cli->error);
    }
    if (status == WAL_OK && (run->unread == 0 || run->result.sources > 0)) {
        status = follow_changes(run, follow, run->cli->error);
    } else if (status == WAL_OK && run->prints_summary) {
        convert_run_print(run);
    }
    progress_clear(&run->progress);
    wal_import_follow_close(follow);
    if (status != WAL_OK && caught == 0) {
        return cli_report(run->cli, run->exclude, status);
    }
    return run->has_followed ? CLI_OK : run->code;
}

/* --- the verb import ---------------------------------------------------- */

struct import_arguments {
    const char *dialect;
    bool all_files;
    bool is_verbose;
    bool summary;
    bool follows;
};

/* The operands after the store. */
struct operands {
    struct wal_slice *paths; /* those that are no bundles */
    uint32_t count;
    const char **bundles;
    struct cli_key_options bundle_key;
    uint32_t bundle_count;
};

static void split_operands(const struct cli *cli, struct operands *operands)
{
    size_t count = (size_t)cli->count - 2;

    *operands =
        (struct operands){.paths = cli_keep(cli_alloc(count * sizeof(operands->paths[0]))),
                          .bundles = cli_keep(cli_alloc(count * sizeof(operands->bundles[0])))};
    for (size_t i = 0; i < count; i++) {
        const char *path = cli->items[2 + i];

        if (wal_bundle_detect(cli_slice(path)) != 0) {
            operands->bundles[operands->bundle_count++] = path;
        } else {
            operands->paths[operands->count++] = cli_slice(path);
        }
    }
}

/* Imports the operands, bundles first. Returns the exit code. */
static int import_operands(struct convert_run *run, struct wal_store *store,
                           const struct operands *operands, bool follows)
{
    const struct cli *cli = run->cli;
    int bundles_code = CLI_OK;
    int code;

    for (uint32_t i = 0; i < operands->bundle_count; i++) {
        bundles_code =
            cli_worse_code(bundles_code, cli_transfer_import(cli, store, operands->bundles[i],
                                                             &operands->bundle_key));
    }
    if (operands->count == 0) {
        return bundles_code;
    }
    code = follows ? run_follow(run, store, operands->paths, operands->count)
                   : convert_run_import(run, store, operands->paths, operands->count);
    if (run->prints_summary && !follows) {
        convert_run_print(run);
    }
    return cli_worse_code(code, bundles_code);
}

/* Redacts the entries above the sequence number that have known secrets. Returns the exit code. */
static int redact_secrets(struct convert_run *run, struct wal_store *store, uint64_t after)
{
    struct secrets secrets = {.items = NULL};
    struct secrets_scan scan = {.secrets = &secrets, .after_sequence = after};
    const struct cli *cli = run->cli;
    enum wal_status status;
    int code;

    secrets_open(&secrets, cli, run->rules);
    status = secrets_scan(&scan, cli, store, cli->error);
    if (status == WAL_OK) {
        status = secrets_scan_redact(&scan, store, cli->error);
    }
    code = cli_report(cli, "--redact-secrets", status);
    if (scan.redacted + scan.left > 0 && !cli->json) {
        cli_error(cli, CLI_OK, NULL,
                  "redacted %s with known secrets; the bytes stay until agentwal gc --erase",
                  cli_counted(scan.redacted, "entry", "entries"));
    }
    if (scan.left > 0) {
        code = cli_worse_code(
            code, cli_error(cli, CLI_NEGATIVE, "--redact-secrets",
                            "%s in documents, titles or metadata; agentwal secrets shows them",
                            cli_counted(scan.left, "secret stays", "secrets stay")));
    }
    secrets_scan_deinit(&scan);
    return code;
}

/* Opens the store, unless there is nothing to import into a new one. Returns the exit code. */
static int import_into_store(struct convert_run *run, const struct operands *operands, bool follows)
{
    struct wal_store_info before = WAL_INIT(wal_store_info);
    const struct cli *cli = run->cli;
    struct wal_store *store;
    int code;

    if (operands->bundle_count == 0 &&
        convert_run_is_empty(run, operands->paths, operands->count) &&
        (!follows || run->unread > 0)) {
        if (run->prints_summary) {
            convert_run_print(run);
        }
        return run->code;
    }
    store = cli_open_store(cli, cli->items[1], 0);
    cli_check(cli, cli->items[1], wal_store_get_info(store, &before, cli->error));
    code = import_operands(run, store, operands, follows);
    if (run->redacts_secrets) {
        code = cli_worse_code(code, redact_secrets(run, store, before.last_sequence));
    }
    return cli_close_store(cli, cli->items[1], store, code);
}

int verb_import(struct cli *cli, int argc, char **argv)
{
    static struct convert_run run;
    struct import_arguments arguments = {.dialect = "auto"};
    struct cli_key_options bundle_key = {.file = NULL};
    const struct cli_option options[] = {
        {.name = "dialect", .value = &arguments.dialect},
        {.name = "all-files", .flag = &arguments.all_files},
        {.name = "verbose", .letter = 'v', .flag = &arguments.is_verbose},
        {.name = "follow", .flag = &arguments.follows},
        {.name = "summary", .flag = &arguments.summary},
        {.name = "redact-secrets", .flag = &run.redacts_secrets},
        {.name = "rules", .value = &run.rules},
        {.name = "bundle-key-file", .value = &bundle_key.file},
        {.name = "bundle-passphrase-fd", .value = &bundle_key.fd},
        {.name = NULL},
    };
    struct operands operands;
    int code;

    cli_parse_operands(cli, argc, argv, options, 3, argc);
    run.redacts_secrets = run.redacts_secrets || run.rules != NULL;
    if (run.redacts_secrets && arguments.follows) {
        cli_fail(cli, CLI_USAGE, "--redact-secrets", "excludes --follow; see agentwal secrets");
    }
    if (strcmp(arguments.dialect, "auto") == 0) {
        arguments.dialect = NULL;
    } else if (wal__dialect_find(arguments.dialect) == NULL) {
        cli_fail(cli, CLI_USAGE, "--dialect", "'%s' is not a dialect (see: agentwal dialects)",
                 arguments.dialect);
    }
    run.cli = cli;
    run.flags = arguments.all_files ? WAL_IMPORT_ALL_FILES : 0;
    run.dialect = arguments.dialect;
    run.exclude = cli->items[1];
    run.is_verbose = arguments.is_verbose;
    run.prints_summary = arguments.summary || !cli->json;
    convert_catch_signals();
    split_operands(cli, &operands);
    operands.bundle_key = bundle_key;
    code = import_into_store(&run, &operands, arguments.follows);
    if (!run.has_followed) {
        convert_end_interrupted(cli);
    }
    return code;
}
