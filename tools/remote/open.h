/*
 * open.h - opens a remote by its URL.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_OPEN_H
#define AGENTWAL_TOOLS_REMOTE_OPEN_H

#include <stdatomic.h>

#include "agentwal/remote.h"
#include "tools/cli/cli.h"

/* Says once that a remote does not answer. */
struct remote_wait {
    const struct cli *cli;
    const char *what; /* as it is named to the user */
    atomic_flag has_said;
};

/* A wal_remote_wait_fn of a struct remote_wait: says it after 2 s, and ends
 * nothing. */
int32_t remote_wait(void *ctx, uint64_t waited_ms, const struct wal_error *why);

/* Opens it. A URL that is refused is not printed, since it may have a password:
 * `what` is. Returns CLI_CONTINUE, or prints the error and returns the exit
 * code. */
int remote_open(const struct cli *cli, const char *what, const char *url,
                struct wal_remote **remote);

#endif
