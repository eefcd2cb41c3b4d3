/*
 * suggest.h - find the name that a user meant.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_SUGGEST_H
#define AGENTWAL_TOOLS_CLI_SUGGEST_H

#include <stddef.h>

struct cli_suggestion {
    const char *typed;
    const char *nearest; /* NULL: no name is near */
    size_t distance;     /* of `nearest` */
};

/* Keeps the name if it is nearer than the names before it. A name is near when
 * one insertion, deletion, substitution or exchange of neighbours for each
 * three characters leads to it, or when it begins with what was typed. */
void cli_suggest(struct cli_suggestion *suggestion, const char *name);

/* The number of insertions, deletions, substitutions and exchanges of
 * neighbours that make one word from the other. Words longer than 63 bytes are
 * infinitely distant. */
size_t cli_edit_distance(const char *from, const char *to);

#endif
