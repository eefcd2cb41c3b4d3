/*
 * open.c - opens a remote by its URL (open.h).
 */
#include "tools/remote/open.h"

#include "tools/remote/print.h"

enum {
    SAID_AFTER_MS = 2000
};

int32_t remote_wait(void *ctx, uint64_t waited_ms, const struct wal_error *why)
{
    struct remote_wait *wait = ctx;
    char note[sizeof(why->text) + 64];

    if (waited_ms >= SAID_AFTER_MS &&
        !atomic_flag_test_and_set(&wait->has_said)) {
        (void)snprintf(note, sizeof(note), "%s; trying on",
                       why->text[0] != '\0'
                           ? why->text
                           : "the object store does not answer");
        cli_note(wait->cli, wait->what, note);
    }
    return 0;
}

int remote_open(const struct cli *cli, const char *what, const char *url,
                struct wal_remote **remote)
{
    static struct remote_wait wait; /* outlives all remotes */
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_remote_open(url, remote, &error);

    wait.cli = cli;
    wait.what = what;
    if (status == WAL_OK) {
        status = wal_remote_set_wait(*remote, remote_wait, &wait, &error);
    }
    return status == WAL_OK ? CLI_CONTINUE
                            : remote_report(cli, what, status, &error);
}
