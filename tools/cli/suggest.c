/*
 * suggest.c - optimal string alignment distance (Damerau-Levenshtein without
 * edits between exchanged neighbours).
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/suggest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    WORD_MAX = 63
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t cli_edit_distance(const char *from, const char *to)
{
    size_t from_size = strlen(from);
    size_t to_size = strlen(to);
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0];
    size_t *above = rows[1];
    size_t *row = rows[2];

    if (from_size > WORD_MAX || to_size > WORD_MAX) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= to_size; j++) {
        above[j] = j;
        before[j] = j;
    }
    for (size_t i = 1; i <= from_size; i++) {
        size_t *free_row = before;

        row[0] = i;
        for (size_t j = 1; j <= to_size; j++) {
            size_t cost = from[i - 1] == to[j - 1] ? 0 : 1;
            bool is_exchange = i > 1 && j > 1 && from[i - 1] == to[j - 2] &&
                               from[i - 2] == to[j - 1];

            row[j] = least(above[j] + 1, row[j - 1] + 1);
            row[j] = least(row[j], above[j - 1] + cost);
            if (is_exchange) {
                row[j] = least(row[j], before[j - 2] + 1);
            }
        }
        before = above;
        above = row;
        row = free_row;
    }
    return above[to_size];
}

void cli_suggest(struct cli_suggestion *suggestion, const char *name)
{
    size_t size = strlen(suggestion->typed);
    size_t distance = cli_edit_distance(suggestion->typed, name);
    bool is_prefix = size >= 3 && strncmp(suggestion->typed, name, size) == 0;

    if (is_prefix) {
        distance = 1;
    }
    if (size == 0 || distance > (size + 2) / 3 || distance >= strlen(name)) {
        return;
    }
    if (suggestion->nearest == NULL || distance < suggestion->distance) {
        suggestion->nearest = name;
        suggestion->distance = distance;
    }
}
