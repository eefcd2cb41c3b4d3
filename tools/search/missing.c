/*
 * missing.c - the verbs search and index of a build without SQLite (verbs.h).
 */
#include "tools/cli/verbs.h"

static const char why[] =
    "this agentwal was built without SQLite; install the package agentwal, or "
    "build it with libsqlite3-dev";

int search_run(struct cli *cli, int argc, char **argv)
{
    return cli_refuse_missing(cli, argc, argv, why);
}

int search_run_index(struct cli *cli, int argc, char **argv)
{
    return cli_refuse_missing(cli, argc, argv, why);
}
