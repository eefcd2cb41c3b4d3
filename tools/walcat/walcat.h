/*
 * walcat.h - the parts of walcat.
 *
 * Each answers an exit code. They read and write nothing but the output.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCAT_WALCAT_H
#define AGENTWAL_TOOLS_WALCAT_WALCAT_H

#include "tools/cli/cli.h"

/* What of a session is wanted. */
struct walcat_options {
    const char *branch; /* entry or head; null: the head `main` */
    const char *up_to;  /* entry; null: the whole branch */
    const char *type;   /* null: any */
    uint64_t tail;      /* the last so many; UINT64_MAX: all */
    uint32_t stream;
    bool since_compaction;
    bool all;
    bool deltas;
    bool redacted;
    bool text;
    bool follow;
    struct wal_store *store; /* that is open */
};

/* Prints entries, as JSON or as text. */
int walcat_print_entries(const struct cli *cli, struct wal_session *session,
                         const struct walcat_options *view);

/* Prints one entry as people read it; one without text prints nothing, a
 * redacted one that it is. A payload that cannot be read is a failure. */
enum wal_status walcat_print_text(struct wal_store *store,
                                  const struct wal_entry *entry,
                                  struct wal_error *error);

/* Prints two blanks and the beginning of an entry's text, where it has one, on
 * the line at hand. */
void walcat_print_preview(struct wal_store *store,
                          const struct wal_entry *entry, size_t columns);

/* Whether a status of wal_entry_cursor_next concerns one entry alone, which the
 * iterator stepped over: it had `left` ones before. */
bool walcat_is_lost(const struct wal_entry_cursor *iter, enum wal_status status,
                    uint64_t left);

/* Says that the entry behind that one, or with an empty id the first one in
 * view, cannot be read. Answers CLI_NEGATIVE. */
int walcat_report_lost(const struct cli *cli, struct wal_slice before,
                       enum wal_status status, const struct wal_error *error);

/* Draws the branches of a session, with its heads and what was redacted. */
int walcat_print_tree(const struct cli *cli, struct wal_session *session,
                      const struct walcat_options *view);

/* Prints every frame of a store or of a segment file. */
int walcat_print_frames(const struct cli *cli, const char *path);

#endif
