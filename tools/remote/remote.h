/*
 * remote.h - what the verbs of remotes share: the file remote.json of a store, opening a remote,
 * what is printed, and what goes on until a signal comes.
 *
 * Threads: the tool has one thread; the library's shipper has others.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_REMOTE_H
#define AGENTWAL_TOOLS_REMOTE_REMOTE_H

#include <stdatomic.h>

#include "agentwal/remote.h"
#include "tools/cli/cli.h"

/* --- remote.json -------------------------------------------------------- */

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

/* Reads the file. Returns CLI_OK, or prints the error and returns the exit code: CLI_NEGATIVE when
 * there is none, which is not printed unless `required`. */
int remote_config_read(const struct cli *cli, const char *store, bool required,
                       struct remote_config *config);

/* Writes the file, durably, for the user alone. Returns CLI_OK, or prints the error and returns the
 * exit code. */
int remote_config_write(const struct cli *cli, const char *store,
                        const struct remote_config *config);

/* Removes the file, durably. Ends the process after an error. */
void remote_config_remove(const struct cli *cli, const char *store);

/* Locks the store's directory until *lock is closed, so that one process pushes. Returns CLI_OK, or
 * prints the error and returns the exit code: CLI_NEGATIVE when another process pushes, which is
 * printed, with another code, only if `required`. */
int remote_config_lock(const struct cli *cli, const char *store, bool required, int *lock);

/* --- a remote ----------------------------------------------------------- */

/* Says once that a remote does not answer. */
struct remote_wait {
    const struct cli *cli;
    const char *what; /* as it is named to the user */
    atomic_flag has_said;
};

/* A wal_remote_wait_fn of a struct remote_wait: says it after 2 s, and ends nothing. */
int32_t remote_wait(void *ctx, uint64_t waited_ms, const struct wal_error *why);

/* Opens it. A URL that is refused is not printed, since it may have a password: `what` is. Ends the
 * process after an error. */
struct wal_remote *remote_open(const struct cli *cli, const char *what, const char *url);

/* Copies a URL of the command line, which `what` names. Ends the process if it is too long. */
void remote_copy_url(const struct cli *cli, const char *what, const char *url,
                     char copy[REMOTE_URL_SIZE]);

/* Reads the argument of --store-id: 32 hexadecimal digits, with or without hyphens. NULL: *uuid
 * stays as it is. Ends the process for any other text. */
void remote_read_store_id(const struct cli *cli, const char *text, uint8_t uuid[16]);

/* --- printing ----------------------------------------------------------- */

/* Prints an error of the library, which is in cli->error or in `error`: the object, or `what`, and
 * the sentence; nothing for WAL_OK. Returns the exit code. */
int remote_report(const struct cli *cli, const char *what, enum wal_status status);
int remote_report_error(const struct cli *cli, const char *what, enum wal_status status,
                        const struct wal_error *error);
/* What was done, and the remote. */
void remote_print_url(const struct cli *cli, const char *what, const char *url);
/* A wal_remote_store_fn: a store that the remote has. ctx: the struct cli. */
int32_t remote_print_store(void *ctx, const uint8_t uuid[16],
                           const struct wal_remote_status *status);
/* A wal_remote_session_fn: a session of a store. ctx: the struct cli. */
int32_t remote_print_session(void *ctx, const uint8_t uuid[16], const char *host,
                             const struct wal_session_info *session);
void remote_print_following(const struct cli *cli, const char *url);
void remote_print_push(const struct cli *cli, const char *url,
                       const struct wal_remote_push_result *result);
void remote_print_pull(const struct cli *cli, const char *path, bool is_store,
                       const struct wal_remote_pull_result *result);
void remote_print_compact(const struct cli *cli, const char *url,
                          const struct wal_remote_compact_result *result);
/* is_writer: the epoch is of this copy of the store. Without has_past, what the remote lacks is not
 * known, and is not printed. */
void remote_print_status(const struct cli *cli, const char *url, bool is_writer, bool has_past,
                         const struct wal_remote_status *status);

/* --- sessions that move ------------------------------------------------- */

/* Looks once. Returns the exit code. */
int remote_check_moves(const struct cli *cli, const char *url, struct wal_remote *remote,
                       struct wal_store *store);

/* Permits appends to a session that has moved away, in this store: the remote does not learn of it.
 * Returns CLI_OK, or prints the error and returns the exit code. */
int remote_permit_appends(const struct cli *cli, struct wal_store *store, const char *session);

/* --- pushing and pulling ------------------------------------------------ */

/* `parts` of them were stored, the last one is number `part`. A
 * failure is printed, and is none of the push. */
void remote_upkeep(const struct cli *cli, const char *url, struct wal_remote *remote,
                   struct wal_store *store, uint64_t parts, uint64_t part);

/* Blocks the signals that end it; before the writer is opened. */
void remote_ship_init(void);

/* Ships what becomes durable, at most parts_per_second (0: the default), until SIGINT, SIGTERM or
 * SIGHUP, or until the writer is fenced. Prints failures, and each 30 s the sessions that have
 * moved to other machines since. Returns the exit code. */
int remote_ship(const struct cli *cli, const char *url, struct wal_remote *remote,
                struct wal_store *store, struct wal_remote_writer *writer,
                uint32_t parts_per_second);

/* Pulls to `path`, and goes on until SIGINT or SIGTERM: CLI_OK. Prints a line whenever something
 * new came. Returns the exit code. */
int remote_follow(const struct cli *cli, struct wal_remote *remote, const char *path,
                  const struct wal_remote_pull_options *options);

#endif
