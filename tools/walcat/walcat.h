/*
 * walcat.h - the functions that walcat's files share.
 *
 * They write nothing but the output. Those that return int return the exit code.
 */
#ifndef AGENTWAL_TOOLS_WALCAT_WALCAT_H
#define AGENTWAL_TOOLS_WALCAT_WALCAT_H

#include "tools/cli/cli.h"

/* The selection of a session's entries, and their form. */
struct walcat_options {
    const char *branch; /* entry or head; null: the head `main` */
    const char *up_to;  /* entry; null: the whole branch */
    const char *type;   /* null: any */
    uint64_t tail;      /* number of last entries; UINT64_MAX: all */
    uint32_t stream;
    bool since_compaction;
    bool all;
    bool deltas;
    bool redacted;
    bool text;
    bool follow;
    struct wal_store *store; /* the open store */
};

/* Prints entries, as JSON or as text. */
int walcat_print_entries(const struct cli *cli, struct wal_session *session,
                         const struct walcat_options *view);

struct shown_subagents;

/* Prints one entry as readable text, with the subagents that it started, unless they are NULL:
 * nothing for an entry without text, a note for a redacted one. Fails if the payload cannot be
 * read. */
enum wal_status walcat_print_text(const struct terminal *terminal, struct wal_store *store,
                                  const struct wal_entry *entry,
                                  const struct shown_subagents *subagents, struct wal_error *error);

/* Prints two blanks and the beginning of an entry's text on the current line; nothing for an entry
 * without text. */
void walcat_print_preview(FILE *file, struct wal_store *store, const struct wal_entry *entry,
                          size_t columns);

/* Prints every frame of a store or of a segment file. */
int walcat_print_frames(const struct cli *cli, const char *path);

#endif
