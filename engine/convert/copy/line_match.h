/*
 * line_match.h - whether a line of a copied session file tells what a line of
 * the original does (SPEC.md 5.17).
 *
 * A client that copies a session gives its lines other ids, times and places;
 * what was said stays. So members of the envelope may differ, or be there on
 * one side alone; other members may be new in the copy, and else hold the same
 * bytes, but for strings that are UUIDs or times.
 *
 * Invariant: any bytes may be given; what is no JSON object is the same only
 * when it is the same bytes. No allocation, no state.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_COPY_LINE_MATCH_H
#define AGENTWAL_ENGINE_CONVERT_COPY_LINE_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WAL__UUID_TEXT_SIZE = 36
};

bool wal__line_matches(const uint8_t *copy, size_t copy_size,
                       const uint8_t *original, size_t original_size);

/* Whether the 36 bytes are a UUID in lower case. */
bool wal__is_uuid(const uint8_t *text);

#endif
