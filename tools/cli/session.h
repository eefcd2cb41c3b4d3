/*
 * session.h - sessions as the tools print them.
 *
 * Invariant: list, show, children and walcat's table say the same of a
 * session, under the same names.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_CLI_SESSION_H
#define AGENTWAL_TOOLS_CLI_SESSION_H

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

/* Writes the members of a session's object, without its brackets. */
void cli_session_json(struct cli_json *json,
                      const struct wal_session_info *info);

/*
 * Prints the sessions of the store at path, newest first, at most `limit` (0:
 * all): a table, or an object a line with --json. With `cursor`, and when there
 * are more, the cursor for the next page goes to standard error, as its only
 * line. Answers the exit code.
 */
int cli_print_sessions(const struct cli *cli, struct wal_store *store,
                       const char *path,
                       const struct wal_session_cursor_options *options,
                       uint64_t limit, bool cursor);

#endif
