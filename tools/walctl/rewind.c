/*
 * rewind.c - the command rewind: restores files from a checkpoint.
 *
 * Invariant: the result is printed as one object, also if the rewind is
 * refused; a refusal exits with 1.
 *
 * Threads: the tool has one thread.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/walctl/changes.h"
#include "tools/walctl/walctl.h"

/* What a rewind did; the items hold copies of the paths. */
struct rewind_report {
    struct wal_rewind_result result;
    struct wal_file_change *items; /* changed, then changed elsewhere */
    size_t count;
    size_t capacity;
};

static enum wal_status collect_changes(struct wal_file_change_cursor *changes,
                                       struct rewind_report *report,
                                       struct wal_error *error)
{
    struct wal_file_change change = {.struct_size = sizeof(change)};
    enum wal_status status;

    while ((status = wal_file_change_cursor_next(changes, &change, error)) ==
           WAL_OK) {
        change.path.data =
            cli_copy_text(change.path.data, (size_t)change.path.size);
        report->items =
            cli_reserve(report->items, report->count, &report->capacity,
                        sizeof(report->items[0]));
        report->items[report->count++] = change;
    }
    return status == WAL_END ? WAL_OK : status;
}

static void free_report(struct rewind_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        free((void *)(uintptr_t)report->items[i].path.data);
    }
    free(report->items);
}

static void write_paths(struct cli_json *json, const char *key,
                        const struct wal_file_change *items, size_t count)
{
    cli_json_key(json, key);
    cli_json_open(json, '[');
    for (size_t i = 0; i < count; i++) {
        cli_json_text(json, items[i].path);
    }
    cli_json_close(json, ']');
}

static void write_changes(struct cli_json *json,
                          const struct rewind_report *report)
{
    cli_json_key(json, "changes");
    cli_json_open(json, '[');
    for (size_t i = 0; i < report->result.files_changed; i++) {
        walctl_json_change(json, &report->items[i]);
    }
    cli_json_close(json, ']');
}

static void print_result(const struct cli *cli,
                         const struct rewind_report *report)
{
    const struct wal_rewind_result *result = &report->result;
    size_t changed = (size_t)result->files_changed;
    struct cli_json json;

    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "canRewind");
    cli_json_bool(&json, result->can_rewind != 0);
    if (result->error[0] != '\0') {
        cli_json_key(&json, "error");
        cli_json_text(&json, cli_slice(result->error));
    }
    write_paths(&json, "filesChanged", report->items, changed);
    cli_json_key(&json, "insertions");
    cli_json_number(&json, result->insertions);
    cli_json_key(&json, "deletions");
    cli_json_number(&json, result->deletions);
    if (result->undo[0] != '\0') {
        cli_json_key(&json, "undoCheckpoint");
        cli_json_text(&json, cli_slice(result->undo));
    }
    if (result->previous_head[0] != '\0' || result->new_head[0] != '\0') {
        cli_json_key(&json, "previousHead");
        cli_json_text_or_null(&json, cli_slice(result->previous_head));
        cli_json_key(&json, "newHead");
        cli_json_text(&json, cli_slice(result->new_head));
    }
    if (report->count > changed) {
        write_paths(&json, "changedElsewhere", report->items + changed,
                    report->count - changed);
    }
    if (cli->json) {
        write_changes(&json, report);
    }
    cli_json_close(&json, '}');
    cli_json_end_line(&json);
    fflush(stdout);
}

/* Reports a refusal on standard error too. */
static int report_refusal(const struct cli *cli,
                          const struct wal_rewind_result *result)
{
    if (result->can_rewind != 0) {
        return CLI_OK;
    }
    return cli_error(
        cli, CLI_NEGATIVE, cli->items[3], "%s; no file was changed%s",
        result->error,
        result->status == WAL_ECHANGED ? " (--force rewinds anyway)" : "");
}

static int rewind_files(const struct cli *cli, struct wal_session *session,
                        const struct wal_rewind_options *options)
{
    struct rewind_report report = {.result.struct_size = sizeof(report.result)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_file_change_cursor *changes = NULL;
    enum wal_status status =
        wal_rewind(session, cli_slice(cli->items[3]), options, &report.result,
                   &changes, &error);
    int code;

    if (status == WAL_OK) {
        status = collect_changes(changes, &report, &error);
    }
    if (status == WAL_OK) {
        print_result(cli, &report);
        code = report_refusal(cli, &report.result);
    } else {
        code = walctl_report_file(cli, cli->items[3], status, &error);
    }
    free_report(&report);
    wal_file_change_cursor_close(changes);
    return code;
}

static int run(const struct cli *cli, const struct wal_rewind_options *options)
{
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    int code = cli_open_store(cli, cli->items[1], 0, &store);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_session(cli, store, cli->items[2], &session);
    if (code == CLI_CONTINUE) {
        code = rewind_files(cli, session, options);
    }
    return walctl_close_session(cli, store, session, code);
}

int walctl_rewind(struct cli *cli, int argc, char **argv)
{
    struct wal_rewind_options wanted = {.struct_size = sizeof(wanted)};
    const char *root = NULL;
    const char *expected = NULL;
    bool is_dry = false;
    bool is_forced = false;
    bool moves_head = false;
    const struct cli_option options[] = {
        {.name = "root", .value = &root},
        {.name = "dry-run", .flag = &is_dry},
        {.name = "expect", .value = &expected},
        {.name = "force", .flag = &is_forced},
        {.name = "head", .flag = &moves_head},
        {.name = NULL},
    };
    char *directory = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 4, 4);
    }
    if (code == CLI_CONTINUE) {
        code = walctl_check_checkpoint_id(cli, "CHECKPOINT", cli->items[3]);
    }
    if (code == CLI_CONTINUE) {
        code = walctl_check_checkpoint_id(cli, "--expect", expected);
    }
    if (code == CLI_CONTINUE) {
        code = walctl_resolve_root(cli, root, &directory);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    wanted.root = cli_slice(directory);
    wanted.expected = cli_slice(expected);
    wanted.flags = (is_dry ? WAL_REWIND_DRY_RUN : 0U) |
                   (is_forced ? WAL_REWIND_FORCE : 0U) |
                   (moves_head ? WAL_REWIND_HEAD : 0U);
    code = run(cli, &wanted);
    free(directory);
    return code;
}
