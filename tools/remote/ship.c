/*
 * ship.c - what goes on until a signal comes: `remote push --follow`, which ships the store, and
 * `remote pull --follow`, which keeps a replica up to date; what follows a push, and sessions that
 * move (remote.h).
 *
 * After a signal it ships what is durable: as long as the remote answers, for a few seconds, and
 * until another signal comes.
 */
#include "tools/remote/remote.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "agentwal/admin.h"
#include "engine/base/system.h"

/* --- sessions that move to other machines ------------------------------- */

static void print_moved(void *ctx, struct wal_slice session, const char *host)
{
    const struct cli *cli = ctx;
    char *name = cli_copy_slice(session);
    char note[256];

    (void)snprintf(note, sizeof(note),
                   "the session has moved to %s; appends to it are refused "
                   "here from now on",
                   host[0] != '\0' ? host : "the machine that resumes it next");
    cli_note(cli, name, note);
    free(name);
}

/* Prints what a check of `moves` finds, or its failure. Returns the exit code. */
static int print_moves(const struct cli *cli, const char *url, struct wal_remote_moves *moves)
{
    return remote_report(
        cli, url, wal_remote_moves_check(moves, print_moved, (void *)(uintptr_t)cli, cli->error));
}

int remote_check_moves(const struct cli *cli, const char *url, struct wal_remote *remote,
                       struct wal_store *store)
{
    struct wal_remote_moves *moves = NULL;
    enum wal_status status = wal_remote_moves_open(remote, store, &moves, cli->error);
    int code;

    if (status != WAL_OK) {
        return remote_report(cli, url, status);
    }
    code = print_moves(cli, url, moves);
    wal_remote_moves_close(moves);
    return code;
}

int remote_permit_appends(const struct cli *cli, struct wal_store *store, const char *session)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);
    struct wal_session *handle = NULL;
    enum wal_status status = wal_session_open(store, cli_slice(session), &handle, cli->error);

    if (status == WAL_OK) {
        status = wal_session_get_move(handle, &move, cli->error);
    }
    if (status == WAL_OK) {
        move.flags = 0;
        status = wal_session_set_move(handle, &move, cli->error);
    }
    wal_session_close(handle);
    return cli_report(cli, session, status);
}

/* --- what follows a push ------------------------------------------------ */

enum {
    PARTS = 256 /* between looks whether a base is due */
};

void remote_upkeep(const struct cli *cli, const char *url, struct wal_remote *remote,
                   struct wal_store *store, uint64_t parts, uint64_t part)
{
    enum wal_status status;

    if (parts == 0) {
        return;
    }
    status = wal_remote_put_sessions(remote, store, cli->error);
    if (status == WAL_OK && (parts > part || (part - parts) / PARTS != part / PARTS)) {
        status = wal_remote_compact(remote, store, NULL, NULL, cli->error);
    }
    if (status != WAL_OK) {
        (void)remote_report(cli, url, status);
    }
}

/* --- shipping ----------------------------------------------------------- */

enum {
    UPKEEP_SECONDS = 30, /* between looks at claims of sessions, and bases */
    END_SECONDS = 10,    /* for what is not stored, after a signal */
    END_WAITED_MS = 2000 /* after which a request is ended then */
};

struct following {
    const struct cli *cli;
    const char *url;
    struct remote_wait wait;
    /* When the first signal came; 0: not yet. */
    _Atomic int64_t ended_s;
    atomic_bool must_end; /* every request */
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

static bool is_signal_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
            sigismember(&pending, SIGHUP) == 1);
}

/* Of a request that waits: ends it when the process is to end. */
static int32_t wait_for_remote(void *ctx, uint64_t waited_ms, const struct wal_error *why)
{
    struct following *following = ctx;
    const int64_t ended_s = following->ended_s;
    const bool is_long = waited_ms >= END_WAITED_MS;

    (void)remote_wait(&following->wait, waited_ms, why);
    /* A signal that is pending is the first one, for the thread that waits for it, or the second
     * one. */
    if (ended_s == 0) {
        return is_long && is_signal_pending();
    }
    if (is_long || when_steady_ms() / 1000 >= ended_s + END_SECONDS || is_signal_pending()) {
        following->must_end = true;
    }
    return following->must_end;
}

/* Of the shipper's thread: an attempt failed, or succeeded after that. */
static void report(void *ctx, const struct wal_error *error)
{
    const struct following *following = ctx;

    if (error->status == WAL_ECALLBACK) {
        return; /* by wait_for_remote; remote_ship reports it */
    }
    if (error->status == WAL_OK) {
        fprintf(stderr, "agentwal: %s: the remote answers again\n", following->url);
    } else {
        (void)remote_report_error(following->cli, following->url, (enum wal_status)error->status,
                                  error);
    }
}

/* Waits for a signal, at most a second. */
static bool has_signal(void)
{
    const sigset_t signals = end_signals();

    return wal__system_wait_signal(&signals, 1000000000) > 0;
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

/* Waits until a signal comes or the shipper ends. Each second is one wait. */
static enum wal_status wait_for_end(struct upkeep *upkeep, struct wal_remote_shipper *shipper,
                                    struct wal_remote_shipper_info *info, struct wal_error *error)
{
    uint32_t seconds = 0;
    enum wal_status status;

    do {
        status = wal_remote_shipper_get_info(shipper, info, error);
        if (status == WAL_OK && seconds++ % UPKEEP_SECONDS == 0) {
            (void)print_moves(upkeep->cli, upkeep->url, upkeep->moves);
            remote_upkeep(upkeep->cli, upkeep->url, upkeep->remote, upkeep->store,
                          info->parts - upkeep->last.parts, info->part);
            upkeep->last = *info;
        }
    } while (status == WAL_OK && !info->has_ended && !has_signal());
    return status;
}

/* Stores what the shipper has not, which has been stopped; nothing is sent when there is
 * nothing. */
static int ship_rest(const struct following *following, struct wal_remote_writer *writer)
{
    struct wal_remote_push_result result = WAL_INIT(wal_remote_push_result);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_remote_push(writer, &result, &error);

    if (status == WAL_OK) {
        return CLI_OK;
    }
    return cli_error_status(following->cli, status == WAL_ECALLBACK ? WAL_EREMOTE : status,
                            following->url,
                            "ended before everything was stored: the remote "
                            "has what is up to number %" PRIu64 "; push again (%s)",
                            result.sequence, error.text);
}

int remote_ship(const struct cli *cli, const char *url, struct wal_remote *remote,
                struct wal_store *store, struct wal_remote_writer *writer,
                uint32_t parts_per_second)
{
    struct following following = {.cli = cli, .url = url, .wait = {.cli = cli, .what = url}};
    struct upkeep upkeep = {.cli = cli, .url = url, .remote = remote, .store = store};
    struct wal_remote_shipper_options options = WAL_INIT(wal_remote_shipper_options);
    struct wal_remote_shipper_info info = WAL_INIT(wal_remote_shipper_info);
    struct wal_remote_shipper *shipper = NULL;
    enum wal_status status;
    int code;

    options.parts_per_second = parts_per_second;
    options.report = report;
    options.ctx = &following;
    status = wal_remote_set_wait(remote, wait_for_remote, &following, cli->error);
    if (status == WAL_OK) {
        status = wal_remote_moves_open(remote, store, &upkeep.moves, cli->error);
    }
    if (status == WAL_OK) {
        status = wal_remote_shipper_start(writer, &options, &shipper, cli->error);
    }
    if (status == WAL_OK) {
        remote_print_following(cli, url);
        status = wait_for_end(&upkeep, shipper, &info, cli->error);
        following.ended_s = when_steady_ms() / 1000;
        wal_remote_shipper_stop(shipper);
    }
    if (status != WAL_OK) {
        code = remote_report(cli, url, status);
    } else if (info.has_ended) {
        code = cli_exit_code((enum wal_status)info.status);
    } else {
        code = ship_rest(&following, writer);
    }
    wal_remote_moves_close(upkeep.moves);
    /* The remote outlives this. */
    (void)!wal_remote_set_wait(remote, NULL, NULL, NULL);
    return code;
}

/* --- following ---------------------------------------------------------- */

static volatile sig_atomic_t is_interrupted;

struct followed {
    const struct cli *cli;
    const char *path;
    struct remote_wait wait;
    bool has_printed;
    bool has_failed; /* the remote did not answer last */
    uint64_t parts;  /* that were printed */
};

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

/* Prints what is new, and once when the remote does not answer. */
static int32_t see(void *ctx, const struct wal_remote_pull_result *result,
                   const struct wal_error *failure)
{
    struct followed *followed = ctx;

    if (failure != NULL && !followed->has_failed) {
        (void)remote_report_error(followed->cli, followed->path, (enum wal_status)failure->status,
                                  failure);
    } else if (failure == NULL && (!followed->has_printed || result->parts != followed->parts)) {
        remote_print_pull(followed->cli, followed->path, false, result);
        (void)fflush(stdout);
        followed->has_printed = true;
        followed->parts = result->parts;
    }
    followed->has_failed = failure != NULL;
    return is_interrupted != 0 || ferror(stdout) != 0;
}

/* A signal ends also a request that waits. */
static int32_t end_request(void *ctx, uint64_t waited_ms, const struct wal_error *why)
{
    struct followed *followed = ctx;

    (void)remote_wait(&followed->wait, waited_ms, why);
    return is_interrupted;
}

int remote_follow(const struct cli *cli, struct wal_remote *remote, const char *path,
                  const struct wal_remote_pull_options *options)
{
    const struct sigaction action = {.sa_handler = interrupt};
    struct followed followed = {.cli = cli, .path = path, .wait = {.cli = cli, .what = path}};
    enum wal_status status;

    /* A system call that waits ends at the signal. */
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    status = wal_remote_set_wait(remote, end_request, &followed, cli->error);
    if (status == WAL_OK) {
        status = wal_remote_follow(remote, path, options, see, &followed, cli->error);
        /* The remote outlives this. */
        (void)!wal_remote_set_wait(remote, NULL, NULL, NULL);
    }
    if (status == WAL_ECALLBACK && is_interrupted != 0) {
        return CLI_OK;
    }
    return remote_report(cli, path, status);
}
