/*
 * missing.c - the verbs search and index of a build without SQLite (verbs.h).
 */
#include "tools/cli/verbs.h"

static int refuse(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option any[] = {{.name = NULL}};

    (void)argv;
    if (argc == 2) { /* --help and --version */
        int code = cli_parse(cli, argc, argv, any);

        if (code != CLI_CONTINUE) {
            return code;
        }
    }
    return cli_error(cli, CLI_FAILED, cli->verb,
                     "this agentwal was built without SQLite; install the "
                     "package agentwal, or build it with libsqlite3-dev");
}

int search_run(struct cli *cli, int argc, char **argv)
{
    return refuse(cli, argc, argv);
}

int search_run_index(struct cli *cli, int argc, char **argv)
{
    return refuse(cli, argc, argv);
}
