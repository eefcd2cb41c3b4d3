/*
 * view.h - views of sessions for the verbs: flushing, paths, results and
 * losses.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CONVERT_VIEW_H
#define AGENTWAL_TOOLS_CONVERT_VIEW_H

#include "agentwal/convert.h"
#include "tools/cli/cli.h"
#include "tools/cli/json.h"

struct convert_view {
    const struct cli *cli;
    struct wal_store *store;
    const char *store_path;
    const char *dialect;
    const char *root; /* output directory; NULL: standard output */
};

enum wal_status convert_view_open(const struct convert_view *target,
                                  struct wal_session *session,
                                  struct wal_view **view,
                                  struct wal_error *error);

/* Flushes a view, and has the store list its root, so that erasing finds it;
 * where the list may not be written, it does not. */
enum wal_status convert_view_flush(const struct convert_view *target,
                                   struct wal_view *view,
                                   struct wal_view_flush_result *result,
                                   struct wal_error *error);

/* Whether the session belongs into a view of all sessions. That leaves out
 * those without entries, and imported ones without a message of a user;
 * transcripts of subagents belong only into views of the same client, and of
 * OpenCode. */
bool convert_view_has_messages(const char *dialect,
                               const struct wal_session_info *info);

/* Updates the view of a session and prints the result. Returns an exit code. */
int convert_view_export(const struct convert_view *target, const char *id);

/* Prints the result of a flush; `name` is the session's, `missing` the number
 * of missing backups (file_history.h). Returns an exit code. */
int convert_view_print(const struct convert_view *target, struct wal_view *view,
                       const char *name,
                       const struct wal_view_flush_result *result,
                       uint64_t missing);

/* Prints the error of a flush with the file's path, if known. Returns an exit
 * code. */
int convert_view_fail(const struct convert_view *target, const char *name,
                      enum wal_status status, const struct wal_error *error);

/* Returns true if the view's dialect has checkpoints next to its files. */
bool convert_view_has_checkpoints(const struct convert_view *target);

/* Exports the session's missing checkpoints. Returns an exit code. */
int convert_view_export_checkpoints(const struct convert_view *target,
                                    struct wal_session *session,
                                    struct wal_view *view, const char *id);

/* Prints a path, for a verb with --json as {"path"}. */
void convert_print_path(const struct cli *cli, const char *path);

/* Prints the path of a session's view. Returns an exit code. */
int convert_view_print_path(const struct convert_view *target,
                            struct wal_session *session, const char *name,
                            uint32_t stream);

/* Writes an item of "losses" unless the count is 0. */
void convert_write_loss(struct wal__json_out *json, const char *what,
                        uint64_t count);

#endif
