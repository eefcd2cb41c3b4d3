/*
 * print.h - prints what remotes answered.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_PRINT_H
#define AGENTWAL_TOOLS_REMOTE_PRINT_H

#include "agentwal/remote.h"
#include "tools/cli/cli.h"

/* Prints an error of the library: the object, or `what`, and the sentence.
 * Returns the exit code. */
int remote_report(const struct cli *cli, const char *what,
                  enum wal_status status, const struct wal_error *error);
void remote_print_added(const struct cli *cli, const char *url);
void remote_print_removed(const struct cli *cli, const char *url);
/* A wal_remote_store_fn: a store that the remote has. ctx: the struct cli. */
int32_t remote_print_store(void *ctx, const uint8_t uuid[16],
                           const struct wal_remote_status *status);
/* A wal_remote_session_fn: a session of a store. ctx: the struct cli. */
int32_t remote_print_session(void *ctx, const uint8_t uuid[16],
                             const char *host,
                             const struct wal_session_info *session);
void remote_print_following(const struct cli *cli, const char *url);
void remote_print_push(const struct cli *cli, const char *url,
                       const struct wal_remote_push_result *result);
void remote_print_pull(const struct cli *cli, const char *path, bool is_store,
                       const struct wal_remote_pull_result *result);
void remote_print_compact(const struct cli *cli, const char *url,
                          const struct wal_remote_compact_result *result);
/* is_writer: the epoch is of this copy of the store. Without has_past, what the
 * remote lacks is not known, and is not printed. */
void remote_print_status(const struct cli *cli, const char *url, bool is_writer,
                         bool has_past, const struct wal_remote_status *status);

#endif
