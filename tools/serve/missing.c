/*
 * missing.c - the verb serve of a build without libmicrohttpd (verbs.h).
 */
#include "tools/cli/verbs.h"

int serve_run(struct cli *cli, int argc, char **argv)
{
    return cli_refuse_missing(cli, argc, argv,
                              "this agentwal was built without libmicrohttpd; install the package "
                              "agentwal, or build it with libmicrohttpd-dev");
}
