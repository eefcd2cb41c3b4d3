/*
 * list.h - the sessions of a store, newest first, and those of them that match
 * a query.
 *
 * A query is words; each must be in the title, the first text, the directory,
 * the project or the id, whatever its case.
 *
 * Invariant: matches are in the order of the list, and among the rows that were
 * loaded.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_RESUME_LIST_H
#define AGENTWAL_TOOLS_RESUME_LIST_H

#include "tools/cli/cli.h"

enum {
    RESUME_QUERY_SIZE = 256, /* bytes of a query with its terminator */
    RESUME_WORDS = 32
};

/* A session. Its texts are those of one block of memory. */
struct resume_row {
    const char *id;
    const char *title;
    const char *cwd;
    const char *source;
    const char *folded; /* the texts that words are looked for in */
    size_t folded_size;
    int64_t updated_ms;
    uint64_t entries;
};

/* Zeroed: no rows, and a query that all match. */
struct resume_list {
    struct resume_row *rows;
    size_t count;
    size_t capacity;
    size_t *matches; /* indexes of rows */
    size_t match_count;
    bool is_complete; /* all rows were loaded */
    /* private */
    size_t match_capacity;
    struct wal_session_cursor *cursor;
    char query[RESUME_QUERY_SIZE]; /* folded */
    char words[RESUME_QUERY_SIZE]; /* each with its terminator */
    const char *word[RESUME_WORDS];
    size_t word_count;
};

enum wal_status
resume_list_open(struct resume_list *list, struct wal_store *store,
                 const struct wal_session_cursor_options *options,
                 struct wal_error *error);

/* Loads at most `count` more rows. */
enum wal_status resume_list_load(struct resume_list *list, size_t count,
                                 struct wal_error *error);

/* Sets the query; of a longer one the rest is left out. */
void resume_list_filter(struct resume_list *list, const char *query);

void resume_list_close(struct resume_list *list);

#endif
