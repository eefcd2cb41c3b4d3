/*
 * usage.c - the verb usage: tokens and costs as the sessions state them
 * (verbs.h, docs/seeing.md).
 *
 * Threads: the tool has one thread.
 */
#include "tools/cli/time.h"
#include "tools/usage/groups.h"
#include "tools/usage/verbs.h"

static int parse_by(const struct cli *cli, const char *text, enum usage_by *by)
{
    return text == NULL || usage_by_find(text, by)
               ? CLI_CONTINUE
               : cli_error(cli, CLI_USAGE, "--by",
                           "\"%s\" is no group; use day, model, project, "
                           "client or session",
                           text);
}

/* Prints the sums; damage makes the exit code CLI_NEGATIVE. */
static int print(const struct cli *cli, const struct usage *usage,
                 const struct usage_groups *groups)
{
    if (cli->json) {
        usage_groups_write(groups);
    } else if (groups->count == 0) {
        cli_note(cli, "usage", "no session states a token count or a cost");
    } else {
        cli_start_pager(cli);
        usage_groups_print(groups);
    }
    if (usage->damaged == 0) {
        return CLI_OK;
    }
    return cli_error(cli, CLI_NEGATIVE, "usage",
                     "%llu %s could not be read and %s not counted; agentwal "
                     "check shows them",
                     (unsigned long long)usage->damaged,
                     cli_plural(usage->damaged, "record", "records"),
                     cli_plural(usage->damaged, "is", "are"));
}

static int count(const struct cli *cli, struct wal_store *store,
                 enum usage_by by, int64_t since_ms, int64_t until_ms)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct usage_groups groups = {.by = by};
    struct progress progress;
    struct usage usage = {.progress = &progress};
    enum wal_status status;
    int code;

    progress_init(&progress, !cli->no_progress);
    status = usage_read(&usage, store, &error);
    if (status == WAL_OK) {
        usage_groups_fill(&groups, &usage, since_ms, until_ms);
        code = print(cli, &usage, &groups);
    } else {
        code = cli_report(cli, "usage", status, &error);
    }
    usage_groups_deinit(&groups);
    usage_deinit(&usage);
    return code;
}

int usage_run(struct cli *cli, int argc, char **argv)
{
    const char *by_text = NULL;
    const char *since = NULL;
    const char *until = NULL;
    const struct cli_option options[] = {
        {.name = "by", .value = &by_text},
        {.name = "since", .value = &since},
        {.name = "until", .value = &until},
        {.name = NULL},
    };
    enum usage_by by = USAGE_BY_DAY;
    struct wal_store *store = NULL;
    int64_t since_ms = 0;
    int64_t until_ms = 0;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 2, 2);
    }
    if (code == CLI_CONTINUE) {
        code = parse_by(cli, by_text, &by);
    }
    if (code == CLI_CONTINUE) {
        code = cli_parse_time(cli, "--since", since, &since_ms);
    }
    if (code == CLI_CONTINUE) {
        code = cli_parse_time(cli, "--until", until, &until_ms);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], 0, &store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    return cli_close_store(cli, cli->items[1], store,
                           count(cli, store, by, since_ms, until_ms));
}
