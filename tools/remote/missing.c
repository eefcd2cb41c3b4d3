/*
 * missing.c - the verbs of remotes in a build without libcurl (verbs.h).
 */
#include "tools/remote/verbs.h"

#include <string.h>

static int report_missing(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option any[] = {{.name = NULL}};

    if (strcmp(argv[argc - 1], "--help") == 0 ||
        strcmp(argv[argc - 1], "--version") == 0) {
        return cli_parse(cli, argc, argv, any);
    }
    return cli_error(cli, CLI_FAILED, cli->verb,
                     "this agentwal was built without libcurl; install the "
                     "package agentwal, or build it with libcurl4-openssl-dev "
                     "and libexpat1-dev");
}

int remote_run(struct cli *cli, int argc, char **argv)
{
    return report_missing(cli, argc, argv);
}

int remote_resume_run(struct cli *cli, int argc, char **argv)
{
    return report_missing(cli, argc, argv);
}
