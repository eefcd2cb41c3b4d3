/*
 * json_mutate.h - seeded damage to files of JSON and of lines of JSON.
 *
 * Half of it is done to bytes: flips, cuts, copies, pieces of another place.
 * Half is done to values, and leaves JSON: one becomes another of any kind, or
 * changes places with one; a member is doubled, renamed or goes.
 *
 * Threads: one thread at a time per chance.
 */
#ifndef AGENTWAL_TESTS_LIB_JSON_MUTATE_H
#define AGENTWAL_TESTS_LIB_JSON_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same seed gives the same damage. */
struct json_random {
    uint64_t state;
};

uint64_t json_random_next(struct json_random *chance);
/* Below limit, which is not 0. */
size_t json_random_below(struct json_random *chance, size_t limit);

/* Damages a text in its own allocation, which may move; answers its size. What
 * is of lines is damaged in one line, or lines of it change places. */
size_t json_mutate(struct json_random *chance, char **text, size_t size,
                   bool is_lines);

#endif
