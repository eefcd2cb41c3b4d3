/*
 * missing.c - the verb serve of a build without libmicrohttpd (verbs.h).
 */
#include "tools/cli/verbs.h"

int serve_run(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option any[] = {{.name = NULL}};

    if (argc == 2) { /* --help and --version */
        int code = cli_parse(cli, argc, argv, any);

        if (code != CLI_CONTINUE) {
            return code;
        }
    }
    return cli_error(cli, CLI_FAILED, cli->verb,
                     "this agentwal was built without libmicrohttpd; install "
                     "the package agentwal, or build it with "
                     "libmicrohttpd-dev");
}
