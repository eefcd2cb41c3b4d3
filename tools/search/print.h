/*
 * print.h - prints the hits of a search.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_SEARCH_PRINT_H
#define AGENTWAL_TOOLS_SEARCH_PRINT_H

#include "agentwal/search.h"
#include "tools/cli/cli.h"

struct search_print {
    const struct cli *cli;
    struct wal_store *store;
    const char *query; /* as it was typed, for the command that shows more */
    bool shows_around; /* print entries around each hit */
    uint64_t around;   /* on each side */
};

/* Prints the hits of the cursor: for people, or with --json an object for each
 * session. Returns an exit code. */
int search_print_hits(const struct search_print *print,
                      struct wal_search_cursor *cursor);

#endif
