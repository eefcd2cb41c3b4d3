/*
 * transfer.h - sessions from one store to another: the options, reports and results of merge,
 * bundle and the import of a bundle.
 *
 * With --json a line for each session, and in a merge for each document of the store that differs,
 * then {"summary":{...}}; for people only what was refused, on standard error, and the sums.
 */
#ifndef AGENTWAL_TOOLS_CLI_TRANSFER_H
#define AGENTWAL_TOOLS_CLI_TRANSFER_H

#include "agentwal/transfer.h"
#include "tools/cli/cli.h"

/* One call of the library. */
struct cli_transfer {
    const struct cli *cli;
    const char *what;   /* of the progress: the verb */
    const char *bundle; /* its path; NULL: none */
    int code;           /* exit code so far */
    struct progress progress;
    struct wal_transfer_options options;
    struct wal_transfer_result result;
    /* private */
    struct wal_slice *sessions; /* that are selected */
};

/* bundle may be NULL. *transfer stays where it is: the options point to it. */
void cli_transfer_init(struct cli_transfer *transfer, const struct cli *cli, const char *what,
                       const char *bundle);

/* Selects the sessions of a store that the operands from `first` to before `end` name. Ends the
 * process after an error. */
void cli_transfer_select(struct cli_transfer *transfer, struct wal_store *store, int first,
                         int end);

/* Prints the result of the call that had this status, about `path`. Returns the exit code:
 * CLI_NEGATIVE if something was refused. */
int cli_transfer_finish(struct cli_transfer *transfer, const char *path, enum wal_status status);

/* Takes a bundle into a store; of an encrypted one the options name the key, or else its passphrase
 * is asked for. Returns the exit code. */
int cli_transfer_import(const struct cli *cli, struct wal_store *store, const char *bundle,
                        const struct cli_key_options *key);

#endif
