/*
 * missing.c - the verbs of what a build lacks: search, serve and remotes (verbs.h). They are weak:
 * those of a build that has it replace them.
 */
#include "tools/cli/verbs.h"

#define WEAK __attribute__((weak))

#define WITHOUT(library, packages)             \
    "this agentwal was built without " library \
    "; install the package agentwal, or build it with " packages
#define WITHOUT_REMOTE WITHOUT("libcurl", "libcurl4-openssl-dev and libexpat1-dev")

#define MISSING_VERB(name, why)                           \
    WEAK int name(struct cli *cli, int argc, char **argv) \
    {                                                     \
        return cli_refuse_missing(cli, argc, argv, why);  \
    }

MISSING_VERB(search_run, WITHOUT("SQLite", "libsqlite3-dev"))
MISSING_VERB(search_run_index, WITHOUT("SQLite", "libsqlite3-dev"))
MISSING_VERB(serve_run, WITHOUT("libmicrohttpd", "libmicrohttpd-dev"))
MISSING_VERB(remote_run, WITHOUT_REMOTE)
MISSING_VERB(remote_resume_run, WITHOUT_REMOTE)

WEAK int remote_check(const struct cli *cli, const char *target, const char *store_id)
{
    (void)target;
    (void)store_id;
    return cli_error(cli, CLI_FAILED, "--remote", "%s", WITHOUT_REMOTE);
}

WEAK void remote_note_fenced(const struct cli *cli)
{
    (void)cli;
}
