/*
 * moves.c - which sessions of the store have moved to other machines (moves.h).
 */
#include "tools/remote/moves.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/remote/print.h"

static void print_moved(void *ctx, struct wal_slice session, const char *host)
{
    const struct cli *cli = ctx;
    char *name = cli_copy_text(session.data, (size_t)session.size);
    char note[256];

    (void)snprintf(note, sizeof(note),
                   "the session has moved to %s; appends to it are refused "
                   "here from now on",
                   host[0] != '\0' ? host : "the machine that resumes it next");
    cli_note(cli, name, note);
    free(name);
}

int remote_print_moves(const struct cli *cli, const char *url,
                       struct wal_remote_moves *moves)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_remote_moves_check(
        moves, print_moved, (void *)(uintptr_t)cli, &error);

    return status == WAL_OK ? CLI_OK : remote_report(cli, url, status, &error);
}

int remote_check_moves(const struct cli *cli, const char *url,
                       struct wal_remote *remote, struct wal_store *store)
{
    struct wal_remote_moves *moves = NULL;
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status =
        wal_remote_moves_open(remote, store, &moves, &error);
    int code;

    if (status != WAL_OK) {
        return remote_report(cli, url, status, &error);
    }
    code = remote_print_moves(cli, url, moves);
    wal_remote_moves_close(moves);
    return code;
}
