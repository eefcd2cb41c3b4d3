/*
 * rewind.c - how changes of files are printed, and the verb rewind, which restores files from a
 * checkpoint.
 *
 * Invariant: the result of a rewind is printed as one object, also if it is refused; a refusal
 * exits with 1.
 */
#include "tools/files/files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/session.h"
#include "tools/cli/verbs.h"

const char *files_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [WAL_FILE_ABSENT] = "absent",
        [WAL_FILE_REGULAR] = "file",
        [WAL_FILE_SYMLINK] = "symlink",
    };

    return kind <= WAL_FILE_SYMLINK ? names[kind] : "unknown";
}

void files_json_mode(struct wal__json_out *json, uint32_t mode)
{
    char text[16];

    snprintf(text, sizeof(text), "%04" PRIo32, mode);
    cli_json_text(json, cli_slice(text));
}

static void write_state(struct wal__json_out *json, const char *key, const char *mode_key,
                        uint32_t kind, uint32_t mode)
{
    cli_json_member_text(json, key, cli_slice(files_kind_name(kind)));
    if (kind == WAL_FILE_REGULAR) {
        wal__json_out_key(json, mode_key);
        files_json_mode(json, mode);
    }
}

void files_json_change(struct wal__json_out *json, const struct wal_file_change *change)
{
    wal__json_out_open(json, '{');
    cli_json_path(json, change->path);
    write_state(json, "before", "modeBefore", change->kind_before, change->mode_before);
    write_state(json, "after", "modeAfter", change->kind_after, change->mode_after);
    wal__json_out_member_count(json, "insertions", change->insertions);
    wal__json_out_member_count(json, "deletions", change->deletions);
    wal__json_out_member_bool(json, "binary", (change->flags & WAL_FILE_CHANGE_BINARY) != 0);
    wal__json_out_close(json, '}');
}

void files_print_change(const struct wal_file_change *change)
{
    if ((change->flags & WAL_FILE_CHANGE_BINARY) != 0) {
        printf("%8s %8s  ", "-", "-");
    } else {
        printf("%8" PRIu64 " %8" PRIu64 "  ", change->insertions, change->deletions);
    }
    cli_print_name(stdout, change->path);
    if (change->kind_before == WAL_FILE_ABSENT) {
        fputs("  (new)", stdout);
    } else if (change->kind_after == WAL_FILE_ABSENT) {
        fputs("  (deleted)", stdout);
    } else if (change->kind_before != change->kind_after) {
        printf("  (%s to %s)", files_kind_name(change->kind_before),
               files_kind_name(change->kind_after));
    } else if ((change->flags & WAL_FILE_CHANGE_MODE) != 0) {
        printf("  (mode %04" PRIo32 " to %04" PRIo32 ")", change->mode_before, change->mode_after);
    }
    putchar('\n');
}

void files_print_totals(const struct wal_file_changes_info *info)
{
    printf("%s, +%" PRIu64 " -%" PRIu64, cli_counted(info->files, "file", "files"),
           info->insertions, info->deletions);
}

void files_json_totals(struct wal__json_out *json, const struct wal_file_changes_info *info)
{
    wal__json_out_open(json, '{');
    wal__json_out_member_count(json, "additions", info->insertions);
    wal__json_out_member_count(json, "deletions", info->deletions);
    wal__json_out_member_count(json, "files", info->files);
    wal__json_out_close(json, '}');
}

/* --- the verb rewind ---------------------------------------------------- */

/* What a rewind did; the items hold copies of the paths. */
struct rewind_report {
    struct wal_rewind_result result;
    struct wal_file_change *items; /* changed, then changed elsewhere */
    size_t count;
    size_t capacity;
};

static enum wal_status collect_changes(struct wal_file_change_cursor *changes,
                                       struct rewind_report *report, struct wal_error *error)
{
    struct wal_file_change change = WAL_INIT(wal_file_change);
    enum wal_status status;

    while ((status = wal_file_change_cursor_next(changes, &change, error)) == WAL_OK) {
        change.path.data = cli_copy_slice(change.path);
        *CLI_ADD(report) = change;
    }
    return status == WAL_END ? WAL_OK : status;
}

static void write_paths(struct wal__json_out *json, const char *key,
                        const struct wal_file_change *items, size_t count)
{
    wal__json_out_member_open(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        cli_json_text(json, items[i].path);
    }
    wal__json_out_close(json, ']');
}

/* A command line that was read. */
struct request {
    const char *checkpoint; /* null: that of the entry `to` */
    const char *to;         /* or null */
    struct wal_rewind_options options;
};

/* For people: the files, the conversation, and how to undo it. */
static void print_rewound(const struct cli *cli, const struct request *request,
                          const struct rewind_report *report)
{
    const struct wal_rewind_result *result = &report->result;
    bool is_dry = (request->options.flags & WAL_REWIND_DRY_RUN) != 0;
    bool moved = strcmp(result->previous_head, result->new_head) != 0;

    for (size_t i = 0; i < report->count; i++) {
        if (i == result->files_changed) {
            printf("changed by other programs:\n");
        }
        files_print_change(&report->items[i]);
    }
    if (result->can_rewind == 0) {
        return; /* the error says why */
    }
    printf("%s %s: +%" PRIu64 " -%" PRIu64 "\n", is_dry ? "would restore" : "restored",
           cli_counted(result->files_changed, "file", "files"), result->insertions,
           result->deletions);
    if (moved) {
        printf("%s the conversation from ", is_dry ? "would move" : "moved");
        cli_print_name(stdout, cli_slice(result->previous_head));
        fputs(" to ", stdout);
        cli_print_name(stdout, cli_slice(result->new_head));
        putchar('\n');
    }
    if (result->undo[0] != '\0') {
        const char *const words[] = {cli->items[2], result->undo};

        cli_print_command(cli, "to undo: ", moved ? "rewind --head" : "rewind", words, 2);
    }
    fflush(stdout);
}

static void print_result(const struct cli *cli, const struct rewind_report *report)
{
    const struct wal_rewind_result *result = &report->result;
    size_t changed = (size_t)result->files_changed;
    struct wal__json_out json;

    cli_json_begin(&json);
    wal__json_out_member_bool(&json, "canRewind", result->can_rewind != 0);
    if (result->error[0] != '\0') {
        cli_json_member_text(&json, "error", cli_slice(result->error));
    }
    write_paths(&json, "filesChanged", report->items, changed);
    wal__json_out_member_count(&json, "insertions", result->insertions);
    wal__json_out_member_count(&json, "deletions", result->deletions);
    if (result->undo[0] != '\0') {
        cli_json_member_text(&json, "undoCheckpoint", cli_slice(result->undo));
    }
    if (result->previous_head[0] != '\0' || result->new_head[0] != '\0') {
        cli_json_member_text_or_null(&json, "previousHead", cli_slice(result->previous_head));
        cli_json_member_text(&json, "newHead", cli_slice(result->new_head));
    }
    if (report->count > changed) {
        write_paths(&json, "changedElsewhere", report->items + changed, report->count - changed);
    }
    if (cli->json) {
        wal__json_out_member_open(&json, "changes", '[');
        for (size_t i = 0; i < report->result.files_changed; i++) {
            files_json_change(&json, &report->items[i]);
        }
        wal__json_out_close(&json, ']');
    }
    wal__json_out_close_line(&json);
    fflush(stdout);
}

static int rewind_files(const struct cli *cli, struct wal_session *session,
                        const struct request *request)
{
    static struct rewind_report report = {.result = WAL_INIT(wal_rewind_result)};
    struct wal_file_change_cursor *changes = NULL;
    enum wal_status status = wal_rewind(session, cli_slice(request->checkpoint), &request->options,
                                        &report.result, &changes, cli->error);

    if (status == WAL_OK) {
        status = collect_changes(changes, &report, cli->error);
    }
    cli_need(cli, cli_report_file(cli, request->checkpoint, status));
    if (!cli->json) {
        print_rewound(cli, request, &report);
    } else {
        print_result(cli, &report);
    }
    /* A refusal is on standard error too. */
    if (report.result.can_rewind == 0) {
        cli_fail(cli, CLI_NEGATIVE, request->checkpoint, "%s; no file was changed%s",
                 report.result.error,
                 report.result.status == WAL_ECHANGED ? " (--force rewinds anyway)" : "");
    }
    wal_file_change_cursor_close(changes);
    return CLI_OK;
}

/* Sets the checkpoint to the newest one that is linked with the entry. */
static void find_checkpoint(const struct cli *cli, struct request *request)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *checkpoints = NULL;
    int64_t newest_ms = INT64_MIN;
    enum wal_status status = wal_checkpoint_cursor_open(cli->session, &checkpoints, cli->error);

    while (status == WAL_OK &&
           (status = wal_checkpoint_cursor_next(checkpoints, &info, cli->error)) == WAL_OK) {
        if (cli_slice_equal(info.entry_id, cli_slice(request->to)) &&
            info.created_ms >= newest_ms) {
            request->checkpoint = cli_keep_slice(info.id);
            newest_ms = info.created_ms;
        }
    }
    wal_checkpoint_cursor_close(checkpoints);
    cli_check(cli, request->to, status == WAL_END ? WAL_OK : status);
    if (request->checkpoint == NULL) {
        cli_end(cli, cli_error_status(cli, WAL_ENOTFOUND, request->to,
                                      "no checkpoint was made at this entry; nothing was changed "
                                      "(see: agentwal checkpoints --json SESSION; head moves the "
                                      "conversation alone)"));
    }
}

int verb_rewind(struct cli *cli, int argc, char **argv)
{
    struct request request = {.options = WAL_INIT(wal_rewind_options)};
    struct wal_rewind_options *wanted = &request.options;
    const char *directory = NULL;
    const char *expected = NULL;
    bool is_dry = false;
    bool is_forced = false;
    bool moves_head = false;
    const struct cli_option options[] = {
        {.name = "to", .value = &request.to, .max = CLI_ID_MAX},
        {.name = "root", .directory = &directory},
        {.name = "dry-run", .flag = &is_dry},
        {.name = "expect", .value = &expected, .check = cli_check_checkpoint_id},
        {.name = "force", .flag = &is_forced},
        {.name = "head", .flag = &moves_head},
        {.name = NULL},
    };

    cli_parse(cli, argc, argv, options);
    cli_check_operands(cli, request.to != NULL ? 3 : 4, request.to != NULL ? 3 : 4);
    request.checkpoint = request.to == NULL ? cli->items[3] : NULL;
    cli_check_checkpoint_id(cli, "CHECKPOINT", request.checkpoint);
    cli_open(cli, 0);
    cli_complete_name(cli, 0, CLI_NAME_CHECKPOINT, &request.checkpoint);
    cli_complete_name(cli, 0, CLI_NAME_ENTRY, &request.to);
    if (request.to != NULL) {
        find_checkpoint(cli, &request);
    }
    wanted->root = cli_slice(directory);
    wanted->expected = cli_slice(expected);
    wanted->flags = (is_dry ? WAL_REWIND_DRY_RUN : 0U) | (is_forced ? WAL_REWIND_FORCE : 0U) |
                    (moves_head || request.to != NULL ? WAL_REWIND_HEAD : 0U);
    return rewind_files(cli, cli->session, &request);
}
