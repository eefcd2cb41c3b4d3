/*
 * names.h - texts with numbers: models, days, projects. Equal texts have the
 * same number.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_USAGE_NAMES_H
#define AGENTWAL_TOOLS_USAGE_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed it is empty. */
struct usage_names {
    char **items;
    size_t count;
    size_t capacity;
    uint32_t *slots; /* number + 1, by hash; 0: free */
    size_t slot_count;
};

/* Returns the number of a text, from 0 on; a new one gets the next. */
uint32_t usage_names_number(struct usage_names *names, const char *text);

void usage_names_deinit(struct usage_names *names);

#endif
