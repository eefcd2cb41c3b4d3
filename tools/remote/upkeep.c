/*
 * upkeep.c - the list of sessions, and bases, of a remote (upkeep.h).
 */
#include "tools/remote/upkeep.h"

#include "tools/remote/print.h"

enum {
    PARTS = 256 /* between looks whether a base is due */
};

void remote_upkeep(const struct cli *cli, const char *url,
                   struct wal_remote *remote, struct wal_store *store,
                   uint64_t parts, uint64_t part)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    if (parts == 0) {
        return;
    }
    status = wal_remote_put_sessions(remote, store, &error);
    if (status == WAL_OK &&
        (parts > part || (part - parts) / PARTS != part / PARTS)) {
        status = wal_remote_compact(remote, store, NULL, NULL, &error);
    }
    if (status != WAL_OK) {
        (void)remote_report(cli, url, status, &error);
    }
}
