/*
 * json_merge.h - a change of a JSON text that says only what changes.
 *
 * Implements JSON merge patches (RFC 7386) on text: what the patch does not
 * touch stays the very bytes that it was, in its place; members that are new
 * come last, in the order of the patch. White space around members goes. Of
 * members of one name the last one counts, in both texts.
 *
 * Invariant: one output byte at most for each byte of the two texts. Time is
 * bounded by the members of one text times the size of the other; there is no
 * recursion and no allocation. Outputs are untouched on failure.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_JSON_JSON_MERGE_H
#define AGENTWAL_FORMAT_JSON_JSON_MERGE_H

#include "format/bytes/fmt.h"
#include "format/json/json_text.h"

/*
 * Applies `patch` to `target`, which may be empty text: nothing was there.
 * Writes the result, which overlaps neither, and its size. NO_SPACE unless
 * `capacity` is at least target.size + patch.size; else what is wrong with a
 * text that is no JSON.
 */
enum wal__json_status wal__json_merge(struct wal__span target,
                                      struct wal__span patch, uint8_t *out,
                                      size_t capacity,
                                      size_t *size) WAL__JSON_CHECKED;

#endif
