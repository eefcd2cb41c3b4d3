/*
 * live.h - what is appended to all sessions, or to some of them.
 *
 * Invariant: entries and documents come in log order, each once (tail.h).
 */
#ifndef AGENTWAL_TOOLS_WALCAT_LIVE_H
#define AGENTWAL_TOOLS_WALCAT_LIVE_H

#include "engine/base/directory.h"
#include "tools/cli/cli.h"
#include "tools/cli/tail.h"

enum {
    LIVE_HANDLES = 64 /* sessions that are open at a time */
};

/* A session that was seen. Its texts are owned. */
struct live_session {
    char *id;
    char *title; /* or the beginning of the first message */
    char *cwd;
    bool is_selected;
    /* private */
    struct wal_session *handle;
    struct wal_entry_cursor *cursor;
};

/* Zeroed but for the first members, which the caller sets: closed. */
struct live {
    const struct cli *cli;
    struct wal_store *store;
    const char *path;               /* of the store, for messages */
    const struct cli_values *names; /* of the sessions; empty: all */
    const char *project;            /* only of this project; NULL: any */
    const char *cwd;                /* only of this directory, absolute; NULL: any */
    const char *type;               /* of entries; NULL: any */
    int64_t since_ms;               /* begin with what is not older; 0: with what is new */
    /* private */
    struct wal__directory directory; /* that cwd names, if that is set */
    struct cli_tail tail;
    struct cli_ids ids; /* index + 1 in sessions */
    struct live_session *sessions;
    size_t count;
    size_t capacity;
    size_t open[LIVE_HANDLES]; /* index + 1 */
    size_t open_next;
    uint64_t old_end; /* up to here records are compared with since_ms */
};

/* An entry or a document. */
struct live_item {
    struct live_session *session; /* until the next session is seen */
    struct wal_entry entry;       /* of kind WAL_RECORD_ENTRY */
    const struct wal_doc *doc;    /* or NULL for an entry */
    bool is_old;                  /* appended before live_open */
};

/* As cli_use_store, for a verb that waits for what others append. Ends the process with `why` where
 * the store may only be read: the handle may then see only its state at the opening. */
void live_use_store(struct cli *cli, const char *path, const char *why);

/* Opens the tail. Ends the process after an error. */
void live_open(struct live *live);

/* Fills *item with the next one, or returns WAL_END when there is none now. Slices hold until the
 * next call. WAL_ECORRUPT concerns one record. */
enum wal_status live_next(struct live *live, struct live_item *item, struct wal_error *error);

/* The time that the item states, or the present one. */
int64_t live_item_time(const struct live_item *item);

/* The session of an id; NULL when it does not exist, or not any more. */
struct live_session *live_find(struct live *live, struct wal_slice id);
void live_close(struct live *live);

/* Prints a line for each item until a signal comes: JSON with cli->json.
 * `text`: readable conversations. */
int walcat_print_live(struct live *live, bool text);

#endif
