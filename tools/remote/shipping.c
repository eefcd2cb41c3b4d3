/*
 * shipping.c - ships the store until a signal comes (shipping.h).
 */
#include "tools/remote/shipping.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "tools/remote/moves.h"
#include "tools/remote/print.h"
#include "tools/remote/upkeep.h"

enum {
    UPKEEP_SECONDS = 30 /* between looks at claims of sessions, and bases */
};

struct following {
    const struct cli *cli;
    const char *url;
};

static sigset_t end_signals(void)
{
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    return signals;
}

void remote_ship_init(void)
{
    const sigset_t signals = end_signals();

    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
}

/* Of the shipper's thread: an attempt failed, or succeeded after that. */
static void report(void *ctx, const struct wal_error *error)
{
    const struct following *following = ctx;

    if (error->status == WAL_OK) {
        fprintf(stderr, "agentwal: %s: the remote answers again\n",
                following->url);
    } else {
        (void)remote_report(following->cli, following->url,
                            (enum wal_status)error->status, error);
    }
}

/* Waits for a signal, at most a second. */
static bool has_signal(void)
{
    const sigset_t signals = end_signals();
    const struct timespec second = {.tv_sec = 1};

    return sigtimedwait(&signals, NULL, &second) > 0;
}

/* What is done while the shipper ships. */
struct upkeep {
    const struct cli *cli;
    const char *url;
    struct wal_remote *remote;
    struct wal_store *store;
    struct wal_remote_moves *moves;
    struct wal_remote_shipper_info last; /* as of the last look */
};

/* Looks for sessions that have moved, and makes a base when one is due. */
static void look_after(struct upkeep *upkeep,
                       const struct wal_remote_shipper_info *info)
{
    (void)remote_print_moves(upkeep->cli, upkeep->url, upkeep->moves);
    remote_upkeep(upkeep->cli, upkeep->url, upkeep->remote, upkeep->store,
                  info->parts - upkeep->last.parts,
                  info->bytes - upkeep->last.bytes, info->part);
    upkeep->last = *info;
}

/* Waits until a signal comes or the shipper ends. Each second is one wait. */
static enum wal_status wait_for_end(struct upkeep *upkeep,
                                    struct wal_remote_shipper *shipper,
                                    struct wal_remote_shipper_info *info,
                                    struct wal_error *error)
{
    uint32_t seconds = 0;
    enum wal_status status;

    do {
        status = wal_remote_shipper_get_info(shipper, info, error);
        if (status == WAL_OK && seconds++ % UPKEEP_SECONDS == 0) {
            look_after(upkeep, info);
        }
    } while (status == WAL_OK && !info->has_ended && !has_signal());
    return status;
}

int remote_ship(const struct cli *cli, const char *url,
                struct wal_remote *remote, struct wal_store *store,
                struct wal_remote_writer *writer, uint32_t parts_per_second)
{
    struct following following = {cli, url};
    struct upkeep upkeep = {
        .cli = cli, .url = url, .remote = remote, .store = store};
    struct wal_remote_shipper_options options =
        WAL_INIT(wal_remote_shipper_options);
    struct wal_remote_shipper_info info = WAL_INIT(wal_remote_shipper_info);
    struct wal_remote_shipper *shipper = NULL;
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    options.parts_per_second = parts_per_second;
    options.report = report;
    options.ctx = &following;
    status = wal_remote_moves_open(remote, store, &upkeep.moves, &error);
    if (status == WAL_OK) {
        status = wal_remote_shipper_start(writer, &options, &shipper, &error);
    }
    if (status != WAL_OK) {
        wal_remote_moves_close(upkeep.moves);
        return remote_report(cli, url, status, &error);
    }
    remote_print_following(cli, url);
    status = wait_for_end(&upkeep, shipper, &info, &error);
    wal_remote_shipper_stop(shipper);
    wal_remote_moves_close(upkeep.moves);
    return info.has_ended ? cli_exit_code((enum wal_status)info.status)
                          : CLI_OK;
}
