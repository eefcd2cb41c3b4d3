/*
 * follow.c - remote pull --follow (follow.h).
 */
#include "tools/remote/follow.h"

#include <signal.h>

#include "tools/remote/open.h"
#include "tools/remote/print.h"

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

/* A system call that waits ends at the signal. */
static void handle_signals(void)
{
    const struct sigaction action = {.sa_handler = interrupt};

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

/* Prints what is new, and once when the remote does not answer. */
static int32_t see(void *ctx, const struct wal_remote_pull_result *result,
                   const struct wal_error *failure)
{
    struct followed *followed = ctx;

    if (failure != NULL && !followed->has_failed) {
        (void)remote_report(followed->cli, followed->path,
                            (enum wal_status)failure->status, failure);
    } else if (failure == NULL &&
               (!followed->has_printed || result->parts != followed->parts)) {
        remote_print_pull(followed->cli, followed->path, false, result);
        (void)fflush(stdout);
        followed->has_printed = true;
        followed->parts = result->parts;
    }
    followed->has_failed = failure != NULL;
    return is_interrupted != 0 || ferror(stdout) != 0;
}

/* A signal ends also a request that waits. */
static int32_t end_request(void *ctx, uint64_t waited_ms,
                           const struct wal_error *why)
{
    struct followed *followed = ctx;

    (void)remote_wait(&followed->wait, waited_ms, why);
    return is_interrupted;
}

int remote_follow(const struct cli *cli, struct wal_remote *remote,
                  const char *path,
                  const struct wal_remote_pull_options *options)
{
    struct followed followed = {
        .cli = cli, .path = path, .wait = {.cli = cli, .what = path}};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    handle_signals();
    status = wal_remote_set_wait(remote, end_request, &followed, &error);
    if (status == WAL_OK) {
        status =
            wal_remote_follow(remote, path, options, see, &followed, &error);
        /* The remote outlives this. */
        (void)!wal_remote_set_wait(remote, NULL, NULL, NULL);
    }
    if (status == WAL_ECALLBACK && is_interrupted != 0) {
        return CLI_OK;
    }
    return status == WAL_OK ? CLI_OK : remote_report(cli, path, status, &error);
}
