/*
 * snippet.h - the line of text that shows a hit (struct wal_search_hit).
 *
 * Threads: any.
 */
#ifndef AGENTWAL_SEARCH_TEXT_SNIPPET_H
#define AGENTWAL_SEARCH_TEXT_SNIPPET_H

#include "search/text/matcher.h"

/* A line, to be freed, and the bytes of the matches in it. */
struct wal__snippet {
    char *text;
    uint32_t size;
    uint32_t *matches; /* pairs */
    uint32_t match_count;
};

/* Makes the line around the best match of the text that the matcher was run on:
 * that with the most terms near it. `characters` are shown on each side. An
 * ellipsis marks what is cut. WAL_ENOMEM. */
enum wal_status wal__snippet_make(const struct wal__matcher *matcher,
                                  struct wal_slice text, uint32_t characters,
                                  struct wal__snippet *snippet) WAL_MUST_USE;

void wal__snippet_deinit(struct wal__snippet *snippet);

#endif
