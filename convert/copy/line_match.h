/*
 * line_match.h - whether a line of a copied session file corresponds to a line
 * of the original (SPEC.md 5.17).
 *
 * A client that copies a session gives its lines new ids, times and positions;
 * the content stays. So members of the envelope may differ, or exist on one
 * side only. Other members may be added in the copy; the rest must have the
 * same bytes, except strings that are UUIDs or times.
 *
 * Invariant: any bytes may be compared; a line that is no JSON object
 * corresponds only to equal bytes. No allocation, no state.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_COPY_LINE_MATCH_H
#define AGENTWAL_CONVERT_COPY_LINE_MATCH_H

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
