/*
 * import_run.c - run an import for a command (import_run.h).
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/convert/import_run.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/json.h"
#include "tools/convert/import_print.h"

#define STOP      1    /* result of a callback that stops the import */
#define FOLLOW_MS 1000 /* between checks for a signal that came before a wait */

/* ------------------------------------------------------------- signals --- */

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
}

void convert_catch_signals(void)
{
    const struct sigaction action = {.sa_handler = on_signal,
                                     .sa_flags = (int)SA_RESETHAND};

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

static void size_words(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double number = (double)bytes;
    size_t unit = 0;

    while (number >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        number /= 1000;
        unit++;
    }
    snprintf(text, size, unit == 0 ? "%.0f %s" : "%.1f %s", number,
             units[unit]);
}

void convert_print_bytes(FILE *file, uint64_t bytes)
{
    char text[32];

    size_words(bytes, text, sizeof(text));
    fputs(text, file);
}

static void show_progress(struct convert_run *run, uint64_t done)
{
    double seconds = (double)(when_steady_ms() - run->start_ms) / 1000;
    double rate = seconds > 0 ? (double)done / seconds : 0;
    uint64_t total = run->total.bytes > done ? run->total.bytes : done;
    char size[32];
    char rate_text[32];
    char text[160];

    if (!progress_is_due(&run->progress)) {
        return;
    }
    size_words(total, size, sizeof(size));
    size_words((uint64_t)rate, rate_text, sizeof(rate_text));
    snprintf(text, sizeof(text),
             "%3.0f %% of %s, %" PRIu64 " of %" PRIu64 " files, %s/s, %.0f s "
             "left",
             total > 0 ? 100 * (double)done / (double)total : 100.0, size,
             run->files, run->total.sources, rate_text,
             rate > 0 ? (double)(total - done) / rate : 0.0);
    progress_show(&run->progress, "import", text);
}

static int32_t on_progress(void *ctx, struct wal_slice path, uint64_t done,
                           uint64_t total)
{
    struct convert_run *run = ctx;

    (void)path;
    (void)total;
    show_progress(run, run->bytes + done);
    return caught != 0 ? STOP : 0;
}

/* ------------------------------------------------------------- reports --- */

static void count_warning(struct convert_run *run,
                          const struct wal_import_issue *issue)
{
    const char *reason = issue->reason.data;
    /* The text after a colon is that of one line. */
    size_t size = strcspn(reason, ":");

    for (uint32_t i = 0; i < run->warning_count; i++) {
        if (strlen(run->warnings[i].reason) == size &&
            memcmp(run->warnings[i].reason, reason, size) == 0) {
            run->warnings[i].count++;
            return;
        }
    }
    if (run->warning_count == CONVERT_WARNINGS_MAX) {
        run->other_warnings++;
        return;
    }
    run->warnings[run->warning_count++] = (struct convert_warning){
        .reason = cli_copy_text(reason, size), .count = 1};
}

/* Whether the path is one that the command was called with. */
static bool is_argument(const struct convert_run *run, struct wal_slice path)
{
    for (uint32_t i = 0; i < run->path_count; i++) {
        if (cli_slice_equal(run->paths[i], path)) {
            return true;
        }
    }
    return false;
}

static bool is_printed(const struct convert_run *run,
                       const struct wal_import_report *report)
{
    /* They are there each time that the directory is imported. */
    if (report->status == WAL_ETRASHED && !run->is_verbose && !run->cli->json &&
        !is_argument(run, report->path)) {
        return false;
    }
    return run->is_verbose || run->cli->json || report->status != WAL_OK ||
           (report->flags & WAL_IMPORT_CHANGED_VIEW) != 0 ||
           ((report->flags & WAL_IMPORT_OTHER_ID) != 0 &&
            run->other_ids <= CONVERT_NAMES_MAX);
}

static int32_t on_report(void *ctx, const struct wal_import_report *report)
{
    struct convert_run *run = ctx;
    unsigned what = run->is_verbose || run->cli->json ? CONVERT_PRINT_ALL : 0;
    int code;

    if (report->kind != WAL_IMPORT_STREAM && report->status == WAL_OK) {
        run->files++;
        run->bytes += report->bytes;
    }
    run->trashed += report->status == WAL_ETRASHED ? 1 : 0;
    run->other_ids += (report->flags & WAL_IMPORT_OTHER_ID) != 0 ? 1 : 0;
    for (uint64_t i = 0; what == 0 && i < report->issue_count; i++) {
        count_warning(run, &report->issues[i]);
    }
    if (run->has_followed && report->status == WAL_OK &&
        report->appended == 0) {
        return caught != 0 ? STOP : 0;
    }
    if (is_printed(run, report)) {
        progress_clear(&run->progress);
        what |= is_argument(run, report->path) ? CONVERT_PRINT_ARGUMENT : 0;
        code = convert_print_import(run->cli, report, what);
        run->code = cli_worse_code(run->code, code);
    }
    show_progress(run, run->bytes);
    return caught != 0 ? STOP : 0;
}

/* ------------------------------------------------------------- summary --- */

void convert_print_left_out(FILE *file, const char *before,
                            const struct wal_import_result *result)
{
    const char *separator = before;

    for (uint32_t i = 0; i < WAL_IMPORT_LEFT_OUT_SIZE; i++) {
        if (result->left_out[i] > 0) {
            fprintf(file, "%s%" PRIu64 " %s", separator, result->left_out[i],
                    wal_import_left_out_name(i));
            separator = ", ";
        }
    }
    if (separator != before) {
        putc('\n', file);
    }
}

static void print_json(const struct convert_run *run, double seconds)
{
    const struct wal_import_result *result = &run->result;
    const struct {
        const char *key;
        uint64_t number;
    } members[] = {
        {"sources", result->sources},   {"sessions", result->sessions},
        {"appended", result->appended}, {"duplicates", result->duplicates},
        {"failed", result->failed},     {"bytes", result->bytes},
    };
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    wal__json_out_member_open(&json, "summary", '{');
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        wal__json_out_member_count(&json, members[i].key, members[i].number);
    }
    wal__json_out_member_count(&json, "milliseconds",
                               (uint64_t)(seconds * 1000));
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

    for (uint32_t i = 0; i < run->warning_count; i++) {
        const struct convert_warning *warning = &run->warnings[i];

        cli_error(cli, CLI_OK, NULL, "warning: %s (%" PRIu64 " %s)",
                  warning->reason, warning->count,
                  cli_plural(warning->count, "time", "times"));
    }
    if (run->other_warnings > 0) {
        cli_error(cli, CLI_OK, NULL, "%" PRIu64 " further warnings",
                  run->other_warnings);
    }
    if (run->warning_count > 0) {
        cli_error(cli, CLI_OK, NULL,
                  "their lines are imported unchanged (--verbose names "
                  "them)");
    }
    if (!run->is_verbose && run->other_ids > CONVERT_NAMES_MAX) {
        cli_error(cli, CLI_OK, NULL,
                  "%" PRIu64 " sessions have another id than their files "
                  "state (--verbose names them)",
                  run->other_ids);
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
    printf("%" PRIu64 " %s, %" PRIu64 " new %s, %" PRIu64 " known, ",
           result->sessions,
           cli_plural(result->sessions, "session", "sessions"),
           result->appended, cli_plural(result->appended, "entry", "entries"),
           result->duplicates);
    convert_print_bytes(stdout, result->bytes);
    printf(", %.1f s\n", seconds);
    convert_print_left_out(stdout, "left out: ", result);
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

/* The project of a directory that exists here, as for the verb create; but an
 * import runs no program and writes nothing outside the store. A repository
 * that stores no id yet gets one when its sessions are listed or continued. */
static int32_t find_project(void *ctx, struct wal_slice directory,
                            char *project, uint64_t size)
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

/* The options of the run, for calls of the library; they hold as long as it
 * does. */
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
static void scan(struct convert_run *run, const struct wal_slice *paths,
                 uint32_t count)
{
    struct wal_import_options options = convert_run_options(run);

    options.report = NULL;
    options.progress = NULL;
    run->total = (struct wal_import_result)WAL_INIT(wal_import_result);
    if (run->progress.is_on) {
        (void)!wal_import_scan(paths, count, &options, &run->total, NULL);
    }
}

static void begin(struct convert_run *run, const struct wal_slice *paths,
                  uint32_t count)
{
    run->paths = paths;
    run->path_count = count;
    run->start_ms = when_steady_ms();
    progress_init(&run->progress, !run->cli->no_progress);
    scan(run, paths, count);
    run->result = (struct wal_import_result)WAL_INIT(wal_import_result);
}

int convert_run_import(struct convert_run *run, struct wal_store *store,
                       const struct wal_slice *paths, uint32_t count)
{
    const struct wal_import_options options = convert_run_options(run);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    begin(run, paths, count);
    status =
        wal_import_tree(store, paths, count, &options, &run->result, &error);
    progress_clear(&run->progress);
    if (status != WAL_OK && caught == 0) {
        return cli_report(run->cli, run->exclude, status, &error);
    }
    return run->code;
}

/* Prints that folders cannot be watched, once. */
static void print_scanning(const struct convert_run *run,
                           const struct wal_import_follow *follow,
                           bool *is_printed_before)
{
    struct wal_import_follow_info info = WAL_INIT(wal_import_follow_info);

    if (*is_printed_before ||
        wal_import_follow_get_info(follow, &info, NULL) != WAL_OK ||
        info.is_scanning == 0) {
        return;
    }
    *is_printed_before = true;
    cli_error(run->cli, CLI_OK, NULL,
              "%s (%s); all folders are scanned every few seconds instead",
              info.sys_errno == ENOSPC ? "the limit of watches is reached, see "
                                         "fs.inotify.max_user_watches"
                                       : "a folder cannot be watched",
              strerror(info.sys_errno));
}

/* Imports changes until a signal comes. */
static enum wal_status follow_changes(struct convert_run *run,
                                      struct wal_import_follow *follow,
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

int convert_run_follow(struct convert_run *run, struct wal_store *store,
                       const struct wal_slice *paths, uint32_t count)
{
    const struct wal_import_options options = convert_run_options(run);
    struct wal_import_follow *follow = NULL;
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    begin(run, paths, count);
    status =
        wal_import_follow_open(store, paths, count, &options, &follow, &error);
    if (status == WAL_OK) {
        status = wal_import_follow_next(follow, 0, &run->result, &error);
    }
    if (status == WAL_OK) {
        status = follow_changes(run, follow, &error);
    }
    progress_clear(&run->progress);
    wal_import_follow_close(follow);
    if (status != WAL_OK && caught == 0) {
        return cli_report(run->cli, run->exclude, status, &error);
    }
    return run->has_followed ? CLI_OK : run->code;
}

void convert_run_deinit(struct convert_run *run)
{
    for (uint32_t i = 0; i < run->warning_count; i++) {
        free(run->warnings[i].reason);
    }
    run->warning_count = 0;
    free(run->directory);
    run->directory = NULL;
}
