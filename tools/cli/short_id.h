/*
 * short_id.h - short forms of ids: what the user may type, and what is printed.
 *
 * An id that a program made ends with random digits, while ids made at one time
 * share their beginning. Ids are therefore shortened to their ending.
 *
 * Invariant: what is printed short is accepted as that id, and as no other one,
 * until ids are added.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_SHORT_ID_H
#define AGENTWAL_TOOLS_CLI_SHORT_ID_H

#include "tools/cli/cli.h"

enum {
    CLI_SHORT_MIN = 4,        /* characters that are accepted */
    CLI_SHORT_SIZE = 7,       /* characters that are printed, at least */
    CLI_SHORT_SESSIONS = 5000 /* in larger stores ids are printed complete */
};

/* --- accepting ------------------------------------------------------------ */

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

/* Sets *id to the one id that begins with the name, or, if none does, ends with
 * it; NULL if there is none. *id is valid until the deinit. Returns
 * CLI_CONTINUE, or prints the candidates and returns CLI_NEGATIVE. */
int cli_match_finish(const struct cli *cli, const struct cli_match *match,
                     const char *kind, const char **id);

void cli_match_deinit(struct cli_match *match);

/* Kinds of names in a session. */
enum cli_name_kind {
    CLI_NAME_ENTRY = 1,
    CLI_NAME_HEAD = 2,
    CLI_NAME_CHECKPOINT = 4
};

/*
 * Completes the name of an entry of a stream, a head of it, or a checkpoint:
 * `kinds` combines enum cli_name_kind. A name that exists is not changed, nor
 * one that matches nothing: the command reports it. Sets *name to memory that
 * the process owns. Only verbs of agentwal complete names; NULL stays NULL.
 * Returns CLI_CONTINUE or, when the name is ambiguous or the session cannot be
 * read, an exit code after printing why.
 */
int cli_complete_name(const struct cli *cli, struct wal_session *session,
                      uint32_t stream, unsigned kinds, const char **name);

/* --- printing ------------------------------------------------------------- */

struct cli_short_table {
    uint64_t *hashes; /* 0: a free slot */
    uint32_t *counts;
};

/* All ids of a kind. Zeroed: none, and every id is printed complete. */
struct cli_short_ids {
    struct wal_slice *items;
    size_t count;
    size_t capacity;
    size_t table_size; /* 0 or a power of two; of both tables */
    struct cli_short_table endings;
    struct cli_short_table beginnings;
    size_t comparisons; /* of ids that share their ending */
    bool is_complete;   /* all ids were added */
    bool owns_items;
};

/* Adds an id, which must stay valid. Ids of up to 12 characters and those that
 * do not end with hexadecimal digits are never shortened. */
void cli_short_ids_add(struct cli_short_ids *ids, struct wal_slice id);

/* Adds the sessions of a store of at most CLI_SHORT_SESSIONS; a copy of their
 * ids is owned by *ids. A failure is ignored: ids are printed complete. */
void cli_short_ids_add_sessions(struct cli_short_ids *ids,
                                struct wal_store *store);

/* Returns the shortest ending of the id that is unique, or the whole id. */
struct wal_slice cli_short_id(struct cli_short_ids *ids, struct wal_slice id);

void cli_short_ids_deinit(struct cli_short_ids *ids);

#endif
