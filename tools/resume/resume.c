/*
 * resume.c - the verb resume: pick a session and print or run the command that
 * continues it (verbs.h).
 *
 * Threads: the tool has one thread.
 */
#include "tools/shown/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/json.h"
#include "tools/resume/picker.h"
#include "tools/resume/verbs.h"
#include "tools/terminal/cell.h"
#include "tools/terminal/when.h"

enum {
    LIMIT = 20,
    GAVE_UP = 130, /* as fzf, and as a shell after Ctrl-C */
    ID_WIDTH = 36, /* of a UUID */
    TIME_WIDTH = 16,
    TITLE_WIDTH = 40
};

struct arguments {
    const char *project;
    const char *cwd;
    const char *limit;
    bool run;
};

static void make_command(const struct resume_row *row,
                         char command[SHOWN_RESUME_SIZE])
{
    struct wal_session_info info = WAL_INIT(wal_session_info);

    info.id = cli_slice(row->id);
    info.cwd = cli_slice(row->cwd);
    info.source = cli_slice(row->source);
    shown_resume_text(&info, command);
}

static void write_row(const struct resume_row *row)
{
    char command[SHOWN_RESUME_SIZE];
    struct wal__json_out json;

    make_command(row, command);
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", cli_slice(row->id));
    cli_json_member_time(&json, "updated", row->updated_ms);
    cli_json_member_text_or_null(&json, "title", cli_slice(row->title));
    cli_json_member_text_or_null(&json, "cwd", cli_slice(row->cwd));
    cli_json_member_text(&json, "command", cli_slice(command));
    wal__json_out_close_line(&json);
}

static void print_row(const struct resume_row *row)
{
    char command[SHOWN_RESUME_SIZE];
    char time[WHEN_SIZE];
    size_t width = cli_print_name(stdout, cli_slice(row->id));

    make_command(row, command);
    when_text(row->updated_ms, time);
    printf("%*s  %-*s  ", width < ID_WIDTH ? (int)(ID_WIDTH - width) : 0, "",
           TIME_WIDTH, time);
    cell_print(stdout, row->title, strlen(row->title), TITLE_WIDTH, CELL_PAD);
    fputs("  ", stdout);
    cli_print_name(stdout, cli_slice(command));
    putchar('\n');
}

/* Without a terminal: the newest sessions that match. */
static int print_list(const struct cli *cli, struct resume_list *list,
                      const char *query, uint64_t limit)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = WAL_OK;
    size_t printed = 0;

    resume_list_filter(list, query);
    while (status == WAL_OK && (limit == 0 || printed < limit) &&
           (!list->is_complete || printed < list->match_count)) {
        if (printed == list->match_count) {
            status = resume_list_load(list, 1, &error);
            continue;
        }
        if (!cli->json && printed == 0) {
            printf("%-*s  %-*s  %-*s  %s\n", ID_WIDTH, "ID", TIME_WIDTH, "TIME",
                   TITLE_WIDTH, "TITLE", "COMMAND");
        }
        if (cli->json) {
            write_row(&list->rows[list->matches[printed++]]);
        } else {
            print_row(&list->rows[list->matches[printed++]]);
        }
    }
    if (status != WAL_OK) {
        return cli_report(cli, cli->items[1], status, &error);
    }
    return printed == 0 && query[0] != '\0' ? CLI_NEGATIVE : CLI_OK;
}

static int pick(const struct cli *cli, struct screen *screen,
                struct wal_store *store, struct resume_list *list,
                const char *query, char command[SHOWN_RESUME_SIZE])
{
    struct wal_error error = CLI_ERROR_INIT;
    size_t index = SIZE_MAX;
    enum wal_status status =
        resume_pick(screen, store, list, query, &index, &error);

    screen_close(screen);
    if (status != WAL_OK) {
        return cli_report(cli, cli->items[1], status, &error);
    }
    if (index == SIZE_MAX) {
        return GAVE_UP;
    }
    make_command(&list->rows[index], command);
    return CLI_OK;
}

/* Joins the words of the command line. */
static void join(const struct cli *cli, char query[RESUME_QUERY_SIZE])
{
    size_t size = 0;

    query[0] = '\0';
    for (int i = 2; i < cli->count && size < RESUME_QUERY_SIZE; i++) {
        size += (size_t)snprintf(query + size, RESUME_QUERY_SIZE - size, "%s%s",
                                 i > 2 ? " " : "", cli->items[i]);
    }
}

static int resume(const struct cli *cli, const struct arguments *arguments,
                  struct wal_store *store, char command[SHOWN_RESUME_SIZE])
{
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    char *cwd =
        arguments->cwd != NULL ? cli_absolute_path(arguments->cwd) : NULL;
    struct resume_list list = {.rows = NULL};
    struct wal_error error = CLI_ERROR_INIT;
    struct screen screen = {.file = NULL};
    char query[RESUME_QUERY_SIZE];
    uint64_t limit = LIMIT;
    enum wal_status status;
    int code = CLI_CONTINUE;

    join(cli, query);
    options.project = cli_slice(arguments->project);
    options.cwd = cli_slice(cwd);
    if (arguments->limit != NULL) {
        code = cli_parse_number(cli, "--limit", arguments->limit, UINT64_MAX,
                                &limit);
    }
    if (code == CLI_CONTINUE) {
        status = resume_list_open(&list, store, &options, &error);
        if (status != WAL_OK) {
            code = cli_report(cli, cli->items[1], status, &error);
        } else if (!cli->json && isatty(STDIN_FILENO) == 1 &&
                   isatty(STDERR_FILENO) == 1 &&
                   screen_open(&screen, cli->no_colour)) {
            code = pick(cli, &screen, store, &list, query, command);
        } else if (arguments->run) {
            code = cli_error(cli, CLI_USAGE, "--run",
                             "needs a terminal to pick a session on");
        } else {
            code = print_list(cli, &list, query, limit);
        }
    }
    resume_list_close(&list);
    free(cwd);
    return code;
}

int resume_run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.project = NULL};
    const struct cli_option options[] = {
        {.name = "project", .value = &arguments.project},
        {.name = "cwd", .value = &arguments.cwd},
        {.name = "limit", .value = &arguments.limit},
        {.name = "run", .flag = &arguments.run},
        {.name = NULL},
    };
    char command[SHOWN_RESUME_SIZE] = "";
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], WAL_OPEN_READ_ONLY, &store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_close_store(cli, cli->items[1], store,
                           resume(cli, &arguments, store, command));
    if (code != CLI_OK || command[0] == '\0') {
        return code;
    }
    if (!arguments.run) {
        if (isatty(STDOUT_FILENO) == 1) {
            cli_print_name(stdout, cli_slice(command));
        } else {
            fputs(command, stdout);
        }
        putchar('\n');
        return code;
    }
    /* `agentwal cat` reads the store that --store named. */
    if (setenv("AGENTWAL_STORE", cli->items[1], 1) != 0) {
        return cli_error(cli, CLI_FAILED, "AGENTWAL_STORE", "cannot be set");
    }
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    return cli_error(cli, CLI_FAILED, "/bin/sh", "cannot be run");
}
