/*
 * session.h - short forms of ids, what the user may type and what is printed; and printing
 * sessions.
 *
 * An id that a program made ends with random digits, while ids made at one time share their
 * beginning. Ids are therefore shortened to their ending.
 *
 * Invariant: what is printed short is accepted as that id, and as no other one, until ids are
 * added. list, show, children and walcat's table print the same members of a session under the same
 * names.
 */
#ifndef AGENTWAL_TOOLS_CLI_SESSION_H
#define AGENTWAL_TOOLS_CLI_SESSION_H

#include "agentwal/admin.h"
#include "engine/base/containers.h"
#include "tools/cli/json.h"
#include "tools/cli/table.h"

enum {
    CLI_SHORT_MIN = 4, /* characters that are accepted */
    CLI_SHORT_SIZE = 7 /* characters that are printed, at least */
};

enum {
    CLI_MATCH_NAMED = 5 /* candidates that an error names */
};

/* The ids that a name may mean. Zeroed but for `name`: none. */
struct cli_match {
    const char *name;
    size_t prefix_count; /* ids that begin with the name */
    size_t ending_count;
    char *prefixes[CLI_MATCH_NAMED];
    char *endings[CLI_MATCH_NAMED];
};

/* Adds an id if it begins or ends with the name. */
void cli_match_add(struct cli_match *match, struct wal_slice id);
void cli_match_deinit(struct cli_match *match);

/* Kinds of names in a session. */
enum cli_name_kind { CLI_NAME_ENTRY = 1, CLI_NAME_HEAD = 2, CLI_NAME_CHECKPOINT = 4 };

/*
 * Completes the name of an entry of a stream of cli->session, a head of it, or a checkpoint:
 * `kinds` combines enum cli_name_kind. A name that exists is not changed, nor one that matches
 * nothing: the command reports it. Sets *name to memory that the process owns; NULL stays NULL.
 * Ends the process when the name is ambiguous or the session cannot be read.
 */
void cli_complete_name(const struct cli *cli, uint32_t stream, unsigned kinds, const char **name);

/* All ids of a kind. Zeroed: none, and every id is printed complete. */
struct cli_short_ids {
    struct wal_slice *items;
    size_t count;
    size_t capacity;
    struct wal__hashmap endings;   /* of their last characters: their numbers in items */
    struct wal__bitset beginnings; /* numbers of those whose last characters begin an id */
    bool is_complete;              /* all ids were added */
};

/* Adds an id, which must stay valid. Ids of up to 12 characters and those that do not end with
 * hexadecimal digits are never shortened. */
void cli_short_ids_add(struct cli_short_ids *ids, struct wal_slice id);

/* Returns the shortest ending of the id that is unique, or the whole id. */
struct wal_slice cli_short_id(struct cli_short_ids *ids, struct wal_slice id);
void cli_short_ids_deinit(struct cli_short_ids *ids);

/* The same of a session, among those that are in the trash or not, as it is itself. One store a
 * process. */
struct wal_slice cli_session_short(struct wal_store *store, struct wal_slice id);

/* --- sessions ----------------------------------------------------------- */

/* The heads of a session, of all streams. Zeroed: none. */
struct cli_heads {
    struct wal_head *items; /* their name and entry_id are copies */
    size_t count;
};

enum wal_status cli_heads_read(struct cli_heads *heads, struct wal_session *session,
                               struct wal_error *error);
void cli_heads_deinit(struct cli_heads *heads);

/* Writes the members of a session's object, without the braces. */
void cli_session_json(struct wal__json_out *json, struct wal_store *store,
                      const struct wal_session_info *info);

enum {
    CLI_CLIENT_SIZE = 32 /* bytes of the name of a dialect with its terminator */
};

/* Sets the name of the dialect that a session, or what it was forked from, was imported from, which
 * is before the first blank of its source; else agentwal. */
void cli_session_client(struct wal_store *store, const struct wal_session_info *info,
                        char name[CLI_CLIENT_SIZE]);

/* Whether the title, or the first message of a session, contains the text; case of ASCII does not
 * count. */
bool cli_session_has_text(const struct wal_session_info *info, struct wal_slice text);

/* Returns the path of the file that its client keeps the session in, which is there; the caller
 * frees it. NULL: there is none. */
char *cli_session_file(const struct wal_session_info *info);

/* Returns the first message of a session: of one whose first message was redacted, the next that
 * was not, which is put into `text`, or "(redacted)". Empty: it has no message of a user. */
struct wal_slice cli_session_first_text(struct wal_store *store,
                                        const struct wal_session_info *info,
                                        char text[CLI_TEXT_MAX]);

/* Returns the title, or for a session without one that text, or the name of its file, which is put
 * into `text`. */
struct wal_slice cli_session_title(struct wal_store *store, const struct wal_session_info *info,
                                   char text[CLI_TEXT_MAX]);

/* Puts the title of the session with an id into a table; empty when there is none. */
void cli_session_put_title_of(struct table *table, struct wal_store *store, struct wal_slice id);

/* Opens a list of the sessions of the directory options->cwd, if it is not empty, however their
 * paths of it are written, and returns the first. The caller closes *list. */
enum wal_status cli_open_latest(struct wal_store *store,
                                const struct wal_session_cursor_options *options,
                                struct wal_session_cursor **list, struct wal_session_info *info,
                                struct wal_error *error);

/* What a list of sessions has. */
struct cli_list {
    struct wal_session_cursor_options options; /* paths of the directory `cwd` count however they
                                                * are written */
    const char *client;                        /* NULL: any */
    const char *title;                         /* that cli_session_has_text; NULL: any */
    uint64_t limit;                            /* 0: all */
    bool subagents;                            /* with those */
    bool cursor; /* when there are more sessions, the cursor of the next page is the only line of
                  * standard error */
};

/* Prints the sessions of cli->store, newest first: a table, or one object a line with --json.
 * Returns an exit code. */
int cli_print_sessions(const struct cli *cli, const struct cli_list *wanted);

/* A project, and what its sessions say of it. */
struct cli_project {
    char *id;           /* empty: none */
    char *newest;       /* id of its newest session */
    char *cwd;          /* of that */
    int64_t created_ms; /* of the first session that was created */
    int64_t updated_ms; /* of the newest session */
    uint64_t sessions;
    struct cli_ids directories; /* the newest first */
};

/* Zeroed: none. */
struct cli_projects {
    struct cli_project *items; /* by their newest sessions */
    size_t count;
    size_t capacity;
    struct cli_ids ranks; /* number + 1 in items */
};

/* Reads the projects of a store. The sessions that have none are one of them, or with `splits` one
 * for each directory. */
enum wal_status cli_projects_read(struct cli_projects *projects, struct wal_store *store,
                                  bool splits, struct wal_error *error);
void cli_projects_deinit(struct cli_projects *projects);

/* Whether the session does a part of the work of its parent, which the store has: lists have it
 * below that. The slices of *info hold. */
bool cli_session_is_subagent(struct wal_store *store, const struct wal_session_info *info);

/* Fills *info with the next session of a list that is no such subagent, or returns WAL_END. */
enum wal_status cli_session_next(struct wal_store *store, struct wal_session_cursor *list,
                                 struct wal_session_info *info, struct wal_error *error);

#endif
