/*
 * walconv_adopt - imports a file that is a view of one of the store's own
 * sessions into that session.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_adopt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli_json.h"
#include "tools/walconv_survey.h"

struct adopted {
    const struct walconv_import *import;
    int fd;
    const char *name;
    struct wal_view_place place;
    struct wal_session *session;
    struct wal_view *view;
    struct wal_view_import_report report;
    uint64_t lines; /* of the file */
    uint64_t known; /* of these, lines that the session had */
};

/* The number of the line that begins at the offset. */
static uint64_t line_at(const struct adopted *adopted, uint64_t offset)
{
    uint64_t lines = 0;

    (void)walconv_count_lines(adopted->fd, offset, &lines);
    return lines + 1;
}

static void write_json(const struct adopted *adopted)
{
    struct cli_json json;
    uint64_t offset;
    const char *reason;

    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "path");
    cli_json_text(&json, cli_slice(adopted->name));
    cli_json_key(&json, "dialect");
    cli_json_text(&json, cli_slice(adopted->place.dialect));
    cli_json_key(&json, "sessionId");
    cli_json_text(&json, cli_slice(adopted->place.session));
    cli_json_key(&json, "lines");
    cli_json_number(&json, adopted->lines);
    cli_json_key(&json, "appended");
    cli_json_number(&json, adopted->report.appended);
    cli_json_key(&json, "shared");
    cli_json_number(&json, 0);
    cli_json_key(&json, "duplicates");
    cli_json_number(&json, adopted->known);
    cli_json_key(&json, "damaged");
    cli_json_open(&json, '[');
    for (uint32_t i = 0;
         wal_view_odd(adopted->view, i, &offset, &reason, NULL) == WAL_OK;
         i++) {
        cli_json_open(&json, '{');
        cli_json_key(&json, "line");
        cli_json_number(&json, line_at(adopted, offset));
        cli_json_key(&json, "offset");
        cli_json_number(&json, offset);
        cli_json_key(&json, "reason");
        cli_json_text(&json, cli_slice(reason));
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_line(&json);
}

static void print_text(const struct adopted *adopted)
{
    const struct cli *cli = adopted->import->cli;
    uint64_t offset;
    const char *reason;

    cli_print_name(stdout, cli_slice(adopted->name));
    printf(": %s view of session ", adopted->place.dialect);
    cli_print_name(stdout, cli_slice(adopted->place.session));
    printf(", %" PRIu64 " %s, %" PRIu64 " appended, %" PRIu64 " known\n",
           adopted->lines, cli_noun(adopted->lines, "line", "lines"),
           adopted->report.appended, adopted->lines - adopted->report.appended);
    for (uint32_t i = 0;
         wal_view_odd(adopted->view, i, &offset, &reason, NULL) == WAL_OK;
         i++) {
        cli_error(cli, CLI_DONE, adopted->name,
                  "line %" PRIu64 ", byte %" PRIu64 ": %s",
                  line_at(adopted, offset), offset, reason);
    }
}

static enum wal_status take(struct adopted *adopted, struct wal_error *error)
{
    struct wal_store *store = adopted->import->store;
    const struct wal_view_options options = {
        .struct_size = sizeof(options),
        .dialect = cli_slice(adopted->place.dialect),
        .root = cli_slice(adopted->place.root),
    };
    enum wal_status status = wal_session_open(
        store, cli_slice(adopted->place.session), &adopted->session, error);

    if (status == WAL_OK) {
        status = wal_view_open(store, adopted->session, &options,
                               &adopted->view, error);
    }
    if (status == WAL_OK) {
        adopted->report.struct_size = sizeof(adopted->report);
        status = wal_view_import(adopted->view, &adopted->report, error);
    }
    return status;
}

/* Whether the file is the main one of a view, which --dialect allows. */
static bool is_view(struct adopted *adopted)
{
    const struct wal__dialect *forced = adopted->import->forced;

    adopted->place.struct_size = sizeof(adopted->place);
    return wal_view_find(adopted->import->store, cli_slice(adopted->name),
                         &adopted->place, NULL) == WAL_OK &&
           (forced == NULL ||
            strcmp(forced->name, adopted->place.dialect) == 0);
}

/* Counts the lines. 0, or -1 and errno. */
static int count(struct adopted *adopted)
{
    struct stat stat;
    char last = '\n';

    if (fstat(adopted->fd, &stat) != 0 ||
        (stat.st_size > 0 &&
         pread(adopted->fd, &last, 1, stat.st_size - 1) != 1) ||
        walconv_count_lines(adopted->fd, (uint64_t)stat.st_size,
                            &adopted->lines) < 0) {
        return -1;
    }
    adopted->known = adopted->lines - adopted->report.appended;
    if (last != '\n' && adopted->known > 0) {
        adopted->known--; /* it waits */
    }
    return 0;
}

/* Says what was done; the exit code. */
static int print(struct adopted *adopted)
{
    const struct cli *cli = adopted->import->cli;

    if (count(adopted) < 0) {
        return cli_error(cli, CLI_FAILED, adopted->name, "%s", strerror(errno));
    }
    if (cli->json) {
        write_json(adopted);
    } else {
        print_text(adopted);
    }
    return CLI_DONE;
}

bool walconv_adopt(const struct walconv_import *import, int fd,
                   const char *name, int *code)
{
    struct adopted adopted = {.import = import, .fd = fd, .name = name};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    if (!is_view(&adopted)) {
        return false;
    }
    status = take(&adopted, &error);
    progress_clear(import->progress);
    if (status == WAL_OK) {
        *code = print(&adopted);
    } else if (status == WAL_ECHANGED) {
        cli_error(import->cli, CLI_DONE, name,
                  "a view of session '%s' that was not only appended to: "
                  "imported as a session of its own",
                  adopted.place.session);
    } else if (status != WAL_ENOTFOUND) {
        *code = cli_fail(import->cli, name, status, &error);
    }
    wal_view_close(adopted.view);
    wal_session_close(adopted.session);
    return status != WAL_ECHANGED && status != WAL_ENOTFOUND;
}
