/*
 * session.h - print sessions.
 *
 * Invariant: list, show, children and walcat's table print the same members of
 * a session under the same names.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_SESSION_H
#define AGENTWAL_TOOLS_CLI_SESSION_H

#include "agentwal/admin.h"
#include "tools/cli/cli.h"
#include "tools/cli/json.h"

/* The heads of a session, of all streams. Zeroed: none. */
struct cli_heads {
    struct wal_head *items; /* their name and entry_id are copies */
    size_t count;
};

enum wal_status cli_heads_read(struct cli_heads *heads,
                               struct wal_session *session,
                               struct wal_error *error);
void cli_heads_deinit(struct cli_heads *heads);

/* Where a session of the store has moved to. False: it has not, or that cannot
 * be read. */
bool cli_session_move(struct wal_store *store,
                      const struct wal_session_info *info,
                      struct wal_session_move *move);

/* Writes the members of a session's object, without the braces. move: where it
 * has moved to, or NULL. */
void cli_session_json(struct wal__json_out *json,
                      const struct wal_session_info *info,
                      const struct wal_session_move *move);

/* Returns the title, or for a session without one its first message, or the
 * name of its file, which is put into `text`. */
struct wal_slice cli_session_title(const struct wal_session_info *info,
                                   char text[CLI_TEXT_MAX]);

/*
 * Prints the sessions of the store at `path`, newest first, at most `limit` (0:
 * all): a table, or one object a line with --json. With `cursor`, and when
 * there are more sessions, prints the cursor of the next page to standard error
 * as its only line. Returns an exit code.
 */
int cli_print_sessions(const struct cli *cli, struct wal_store *store,
                       const char *path,
                       const struct wal_session_cursor_options *options,
                       uint64_t limit, bool cursor);

#endif
