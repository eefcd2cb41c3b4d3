/*
 * open.c - opens a remote by its URL (open.h).
 */
#include "tools/remote/open.h"

#include "tools/remote/print.h"

int remote_open(const struct cli *cli, const char *what, const char *url,
                struct wal_remote **remote)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_remote_open(url, remote, &error);

    return status == WAL_OK ? CLI_CONTINUE
                            : remote_report(cli, what, status, &error);
}
