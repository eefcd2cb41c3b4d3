/*
 * missing.c - the verbs of remotes in a build without libcurl (verbs.h).
 */
#include "tools/cli/verbs.h"

static const char why[] =
    "this agentwal was built without libcurl; install the package agentwal, or "
    "build it with libcurl4-openssl-dev and libexpat1-dev";

int remote_check(const struct cli *cli, const char *target, const char *store_id)
{
    (void)target;
    (void)store_id;
    return cli_error(cli, CLI_FAILED, "--remote", "%s", why);
}

void remote_note_fenced(const struct cli *cli)
{
    (void)cli;
}

int remote_run(struct cli *cli, int argc, char **argv)
{
    return cli_refuse_missing(cli, argc, argv, why);
}

int remote_resume_run(struct cli *cli, int argc, char **argv)
{
    return cli_refuse_missing(cli, argc, argv, why);
}
