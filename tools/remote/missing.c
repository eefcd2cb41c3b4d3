/*
 * missing.c - the verbs of remotes in a build without libcurl (verbs.h).
 */

#include "tools/cli/verbs.h"
#include <string.h>

static int fail(const struct cli *cli, const char *what)
{
    return cli_error(cli, CLI_FAILED, what,
                     "this agentwal was built without libcurl; install the "
                     "package agentwal, or build it with libcurl4-openssl-dev "
                     "and libexpat1-dev");
}

int remote_check(const struct cli *cli, const char *target,
                 const char *store_id)
{
    (void)target;
    (void)store_id;
    return fail(cli, "--remote");
}

static int report_missing(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option any[] = {{.name = NULL}};

    if (strcmp(argv[argc - 1], "--help") == 0 ||
        strcmp(argv[argc - 1], "--version") == 0) {
        return cli_parse(cli, argc, argv, any);
    }
    return fail(cli, cli->verb);
}

void remote_note_fenced(const struct cli *cli)
{
    (void)cli;
}

int remote_run(struct cli *cli, int argc, char **argv)
{
    return report_missing(cli, argc, argv);
}

int remote_resume_run(struct cli *cli, int argc, char **argv)
{
    return report_missing(cli, argc, argv);
}
