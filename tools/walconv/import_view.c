/*
 * import_view.c - import a view of a session of the store into that session.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/walconv/import_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/convert.h"
#include "tools/cli/json.h"
#include "tools/walconv/import/file_probe.h"

struct view_import {
    const struct walconv_import *import;
    int fd;
    const char *name;
    struct wal_view_info info;
    struct wal_session *session;
    struct wal_view *view;
    struct wal_view_import_result result;
    uint64_t lines;       /* of the file */
    uint64_t known_lines; /* lines that the session had before */
};

/* Returns the number of the line that begins at the offset. */
static uint64_t line_at(const struct view_import *view_import, uint64_t offset)
{
    uint64_t lines = 0;

    (void)walconv_count_lines(view_import->fd, offset, &lines);
    return lines + 1;
}

static void write_json(const struct view_import *view_import)
{
    struct cli_json json;
    uint64_t offset;
    const char *reason;

    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "path");
    cli_json_text(&json, cli_slice(view_import->name));
    cli_json_key(&json, "dialect");
    cli_json_text(&json, cli_slice(view_import->info.dialect));
    cli_json_key(&json, "sessionId");
    cli_json_text(&json, cli_slice(view_import->info.session));
    cli_json_key(&json, "lines");
    cli_json_number(&json, view_import->lines);
    cli_json_key(&json, "appended");
    cli_json_number(&json, view_import->result.appended);
    cli_json_key(&json, "shared");
    cli_json_number(&json, 0);
    cli_json_key(&json, "duplicates");
    cli_json_number(&json, view_import->known_lines);
    cli_json_key(&json, "damaged");
    cli_json_open(&json, '[');
    for (uint32_t i = 0;
         wal_view_issue(view_import->view, i, &offset, &reason, NULL) == WAL_OK;
         i++) {
        cli_json_open(&json, '{');
        cli_json_key(&json, "line");
        cli_json_number(&json, line_at(view_import, offset));
        cli_json_key(&json, "offset");
        cli_json_number(&json, offset);
        cli_json_key(&json, "reason");
        cli_json_text(&json, cli_slice(reason));
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_end_line(&json);
}

static void print_text(const struct view_import *view_import)
{
    const struct cli *cli = view_import->import->cli;
    uint64_t offset;
    const char *reason;

    cli_print_name(stdout, cli_slice(view_import->name));
    printf(": %s view of session ", view_import->info.dialect);
    cli_print_name(stdout, cli_slice(view_import->info.session));
    printf(", %" PRIu64 " %s, %" PRIu64 " appended, %" PRIu64 " known\n",
           view_import->lines, cli_plural(view_import->lines, "line", "lines"),
           view_import->result.appended,
           view_import->lines - view_import->result.appended);
    for (uint32_t i = 0;
         wal_view_issue(view_import->view, i, &offset, &reason, NULL) == WAL_OK;
         i++) {
        cli_error(cli, CLI_OK, view_import->name,
                  "line %" PRIu64 ", byte %" PRIu64 ": %s",
                  line_at(view_import, offset), offset, reason);
    }
}

static enum wal_status import_view(struct view_import *view_import,
                                   struct wal_error *error)
{
    struct wal_store *store = view_import->import->store;
    const struct wal_view_options options = {
        .struct_size = sizeof(options),
        .dialect = cli_slice(view_import->info.dialect),
        .root = cli_slice(view_import->info.root),
    };
    enum wal_status status =
        wal_session_open(store, cli_slice(view_import->info.session),
                         &view_import->session, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal_view_open(store, view_import->session, &options,
                           &view_import->view, error);
    if (status != WAL_OK) {
        return status;
    }
    view_import->result.struct_size = sizeof(view_import->result);
    return wal_view_import(view_import->view, &view_import->result, error);
}

/* Returns true if the file is the main file of a view whose dialect --dialect
 * allows. */
static bool is_view(struct view_import *view_import)
{
    const struct wal__dialect *forced = view_import->import->forced;

    view_import->info.struct_size = sizeof(view_import->info);
    return wal_view_find(view_import->import->store,
                         cli_slice(view_import->name), &view_import->info,
                         NULL) == WAL_OK &&
           (forced == NULL ||
            strcmp(forced->name, view_import->info.dialect) == 0);
}

/* Counts the lines. Returns 0, or -1 with errno set. */
static int count_lines(struct view_import *view_import)
{
    struct stat stat;
    char last = '\n';

    if (fstat(view_import->fd, &stat) != 0 ||
        (stat.st_size > 0 &&
         pread(view_import->fd, &last, 1, stat.st_size - 1) != 1) ||
        walconv_count_lines(view_import->fd, (uint64_t)stat.st_size,
                            &view_import->lines) < 0) {
        return -1;
    }
    view_import->known_lines =
        view_import->lines - view_import->result.appended;
    if (last != '\n' && view_import->known_lines > 0) {
        view_import->known_lines--; /* a partial line waits for its newline */
    }
    return 0;
}

/* Prints the result. Returns an exit code. */
static int print_result(struct view_import *view_import)
{
    const struct cli *cli = view_import->import->cli;

    if (count_lines(view_import) < 0) {
        return cli_error(cli, CLI_FAILED, view_import->name, "%s",
                         strerror(errno));
    }
    if (cli->json) {
        write_json(view_import);
    } else {
        print_text(view_import);
    }
    return CLI_OK;
}

bool walconv_import_view(const struct walconv_import *import, int fd,
                         const char *name, int *code)
{
    struct view_import view_import = {.import = import, .fd = fd, .name = name};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    if (!is_view(&view_import)) {
        return false;
    }
    status = import_view(&view_import, &error);
    progress_clear(import->progress);
    if (status == WAL_OK) {
        *code = print_result(&view_import);
    } else if (status == WAL_ECHANGED) {
        cli_error(import->cli, CLI_OK, name,
                  "a view of session '%s' that was not only appended to; "
                  "imported as a new session",
                  view_import.info.session);
    } else if (status != WAL_ENOTFOUND) {
        *code = cli_report(import->cli, name, status, &error);
    }
    wal_view_close(view_import.view);
    wal_session_close(view_import.session);
    return status != WAL_ECHANGED && status != WAL_ENOTFOUND;
}
