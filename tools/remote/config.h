/*
 * config.h - the file remote.json of a store: where its remote is, who
 * writes to it from here, and what was sent. It has no credentials.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_CONFIG_H
#define AGENTWAL_TOOLS_REMOTE_CONFIG_H

#include "agentwal/remote.h"
#include "tools/cli/cli.h"

enum {
    REMOTE_URL_SIZE = 2048 /* with its terminator */
};

struct remote_config {
    char url[REMOTE_URL_SIZE];
    uint8_t writer[16]; /* of this copy of the store; see remote.h */
    /* What was sent from here (wal_remote_keep_fn). */
    struct wal_remote_mark marks[WAL_REMOTE_MARKS];
    uint64_t mark_count;
    bool is_fenced; /* the last push found that another writer took over */
};

/* Fills config->writer. */
void remote_config_init(struct remote_config *config);

/* Reads the file. Returns CLI_CONTINUE, or prints the error and returns the
 * exit code: CLI_NEGATIVE when there is none, which is not printed unless
 * `required`. */
int remote_config_read(const struct cli *cli, const char *store, bool required,
                       struct remote_config *config);

/* Writes the file, durably, for the user alone. Returns CLI_CONTINUE, or prints
 * the error and returns the exit code. */
int remote_config_write(const struct cli *cli, const char *store,
                        const struct remote_config *config);

/* Removes the file, durably. Returns CLI_CONTINUE, or prints the error and
 * returns the exit code. */
int remote_config_remove(const struct cli *cli, const char *store);

/* Locks the store's directory until *lock is closed, so that one process
 * pushes. Returns CLI_CONTINUE, or prints the error and returns the exit code:
 * CLI_NEGATIVE when another process pushes, which is printed, with another
 * code, only if `required`. */
int remote_config_lock(const struct cli *cli, const char *store, bool required,
                       int *lock);

#endif
