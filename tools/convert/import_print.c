/*
 * import_print.c - print the reports of an import.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/convert/import_print.h"

#include <errno.h>
#include <inttypes.h>

#include "tools/cli/json.h"

static void write_number(struct wal__json_out *json, const char *key,
                         uint64_t number)
{
    wal__json_out_member_count(json, key, number);
}

/* The path is written only for a directory: it may have several. */
static void write_issue(struct wal__json_out *json,
                        const struct wal_import_report *report,
                        const struct wal_import_issue *issue)
{
    wal__json_out_open(json, '{');
    if (report->kind == WAL_IMPORT_DIRECTORY) {
        cli_json_path(json, issue->path);
    } else {
        write_number(json, "line", issue->line);
    }
    if (issue->offset != WAL_IMPORT_NO_OFFSET) {
        write_number(json, "offset", issue->offset);
    }
    cli_json_member_text(json, "reason", issue->reason);
    wal__json_out_close(json, '}');
}

static void write_json(const struct wal_import_report *report)
{
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "path", report->path);
    cli_json_member_text(&json, "dialect", report->dialect);
    cli_json_member_text(&json, "sessionId", report->session_id);
    write_number(&json, "lines", report->lines);
    write_number(&json, "appended", report->appended);
    if (report->kind != WAL_IMPORT_DIRECTORY) {
    }
    write_number(&json, "duplicates", report->duplicates);
    if (report->kind == WAL_IMPORT_DIRECTORY) {
        write_number(&json, "documents", report->lines);
        write_number(&json, "changed", report->appended);
        write_number(&json, "checkpoints", report->checkpoints);
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
    printf(", %" PRIu64 " %s, %" PRIu64 " new or changed", report->lines,
           cli_plural(report->lines, "document", "documents"),
           report->appended);
    if (report->checkpoints > 0) {
        printf(", %" PRIu64 " new %s", report->checkpoints,
               cli_plural(report->checkpoints, "checkpoint", "checkpoints"));
    }
    putchar('\n');
}

static void print_lines(const struct wal_import_report *report)
{
    printf(", %" PRIu64 " %s, %" PRIu64 " appended, ", report->lines,
           cli_plural(report->lines, "line", "lines"), report->appended);
    printf("%" PRIu64 " known\n", report->kind == WAL_IMPORT_VIEW
                                      ? report->lines - report->appended
                                      : report->duplicates);
}

static void print_issue(const struct cli *cli,
                        const struct wal_import_issue *issue)
{
    const char *path = issue->path.data;
    const char *reason = issue->reason.data;

    if (issue->offset == WAL_IMPORT_NO_OFFSET) {
        cli_error(cli, CLI_OK, path, "%s", reason);
    } else if (issue->line == 0) {
        cli_error(cli, CLI_OK, path, "byte %" PRIu64 ": %s", issue->offset,
                  reason);
    } else {
        cli_error(cli, CLI_OK, path, "line %" PRIu64 ", byte %" PRIu64 ": %s",
                  issue->line, issue->offset, reason);
    }
}

static void print_text(const struct cli *cli,
                       const struct wal_import_report *report)
{
    cli_print_name(stdout, report->path);
    printf(report->kind == WAL_IMPORT_VIEW ? ": %s view of session "
                                           : ": %s session ",
           (const char *)report->dialect.data);
    cli_print_name(stdout, report->session_id);
    if (report->kind == WAL_IMPORT_DIRECTORY) {
        print_directory(report);
    } else {
        print_lines(report);
    }
    for (uint64_t i = 0; i < report->issue_count; i++) {
        print_issue(cli, &report->issues[i]);
    }
}

/* Whether the file was removed, replaced or is not for this user. */
static bool is_of_file(int number)
{
    return number == EACCES || number == EPERM || number == ENOENT ||
           number == ELOOP || number == ENOTDIR || number == ESTALE;
}

/* An argument that cannot be read is a failure of the tool; below it the answer
 * is no. The files of sessions in the trash are expected below a directory. */
static int print_failure(const struct cli *cli,
                         const struct wal_import_report *report, unsigned what)
{
    enum wal_status status = (enum wal_status)report->status;
    int number = report->error->sys_errno;
    int code = cli_report(cli, report->path.data, status, report->error);

    if ((what & CONVERT_PRINT_ARGUMENT) == 0 && status == WAL_ETRASHED) {
        return CLI_OK;
    }
    if ((what & CONVERT_PRINT_ARGUMENT) == 0 && is_of_file(number)) {
        return CLI_NEGATIVE;
    }
    return status == WAL_ENOTFILE || number != 0 ? CLI_FAILED : code;
}

static void print_flags(const struct cli *cli,
                        const struct wal_import_report *report)
{
    if ((report->flags & WAL_IMPORT_CHANGED_VIEW) != 0) {
        cli_error(cli, CLI_OK, report->path.data,
                  "a view of session '%s' that was not only appended to; "
                  "imported as a new session",
                  (const char *)report->view_session.data);
    }
    if ((report->flags & WAL_IMPORT_OTHER_ID) != 0) {
        cli_error(cli, CLI_OK, report->path.data,
                  "another session has its id; kept as '%.*s'",
                  (int)report->session_id.size,
                  (const char *)report->session_id.data);
    }
}

int convert_print_import(const struct cli *cli,
                         const struct wal_import_report *report, unsigned what)
{
    print_flags(cli, report);
    if (report->status != WAL_OK) {
        return print_failure(cli, report, what);
    }
    if ((what & CONVERT_PRINT_ALL) == 0) {
        return CLI_OK;
    }
    if (cli->json) {
        write_json(report);
    } else {
        print_text(cli, report);
    }
    return CLI_OK;
}
