/*
 * walcheck.c - the tool: reads all of a store and reports its damage; with
 * --salvage, builds a sound store from the readable records (SPEC.md 3.4).
 *
 * Invariant: walcheck writes nothing below the store that it reads.
 *
 * Threads: see walcheck.h.
 */
#include <unistd.h>

#include "tools/cli/verbs.h"
#include "tools/walcheck/walcheck.h"

enum {
    JOBS_MAX = 256
};

/* A command line that was read. */
struct request {
    const char *salvage; /* null: report the damage */
    uint64_t jobs;
    const char *remote; /* URL or store; null: check a store */
    const char *store_id;
};

static int run(struct cli *cli, const struct request *request)
{
    struct check_store store = {
        .cli = cli,
        .path = cli->items[0],
    };
    int code;

    store.jobs = request->jobs == 0 ? 1 : (unsigned)request->jobs;
    store.jobs = store.jobs > JOBS_MAX ? JOBS_MAX : store.jobs;
    code = check_store_run(&store);
    if (code == CLI_CONTINUE) {
        code = request->salvage == NULL
                   ? check_report(&store)
                   : check_salvage(&store, request->salvage);
    }
    check_store_deinit(&store);
    return code;
}

/* `count` is the number of operands. */
static int read_request(struct cli *cli, int argc, char **argv, int count,
                        struct request *request)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const char *jobs = NULL;
    const struct cli_option options[] = {
        {.name = "jobs", .value = &jobs},
        {.name = "salvage", .value = &request->salvage},
        {.name = "remote", .value = &request->remote},
        {.name = "store-id", .value = &request->store_id},
        {.name = NULL},
    };
    int code = cli_parse(cli, argc, argv, options);

    request->jobs = processors > 0 ? (uint64_t)processors : 1;
    if (code == CLI_CONTINUE && jobs != NULL) {
        code = cli_parse_number(cli, "--jobs", jobs, JOBS_MAX, &request->jobs);
    }
    if (code == CLI_CONTINUE && request->remote == NULL &&
        request->store_id != NULL) {
        code = cli_error(cli, CLI_USAGE, "--store-id", "needs --remote");
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    /* agentwal names a store always. */
    if (request->remote != NULL) {
        return cli_check_operands(cli, 0, 1);
    }
    code = cli_check_operands(cli, count, count);
    return code == CLI_CONTINUE ? cli_require_store(cli, cli->items[0]) : code;
}

int verb_check(struct cli *cli, int argc, char **argv)
{
    struct request request = {.salvage = NULL};
    int code = read_request(cli, argc, argv, 1, &request);

    if (code != CLI_CONTINUE) {
        return code;
    }
    if (request.remote != NULL && request.salvage != NULL) {
        return cli_error(cli, CLI_USAGE, "--salvage",
                         "not allowed with --remote");
    }
    return request.remote != NULL
               ? remote_check(cli, request.remote, request.store_id)
               : run(cli, &request);
}

int verb_salvage(struct cli *cli, int argc, char **argv)
{
    struct request request = {.salvage = NULL};
    int code = read_request(cli, argc, argv, 2, &request);

    if (code != CLI_CONTINUE) {
        return code;
    }
    if (request.remote != NULL) {
        return cli_error(cli, CLI_USAGE, "--remote",
                         "not allowed: agentwal remote pull makes a copy");
    }
    if (request.salvage != NULL) {
        return cli_error(cli, CLI_USAGE, "--salvage",
                         "not allowed: OUT is an operand (see %s)",
                         cli_help_command(cli));
    }
    request.salvage = cli->items[1];
    return run(cli, &request);
}
