/*
 * moves.c - sessions of the store that move to other machines (moves.h).
 */
#include "tools/remote/moves.h"

#include <stdlib.h>

#include "agentwal/admin.h"

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

int remote_permit_appends(const struct cli *cli, struct wal_store *store,
                          const char *session)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *handle = NULL;
    enum wal_status status =
        wal_session_open(store, cli_slice(session), &handle, &error);

    if (status == WAL_OK) {
        status = wal_session_get_move(handle, &move, &error);
    }
    if (status == WAL_OK) {
        move.flags = 0;
        status = wal_session_set_move(handle, &move, &error);
    }
    wal_session_close(handle);
    return status == WAL_OK ? CLI_OK : cli_report(cli, session, status, &error);
}
