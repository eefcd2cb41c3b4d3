/*
 * json_merge.h - JSON merge patches (RFC 7386) on text.
 *
 * A value that the patch does not change keeps its bytes and its place; new members are appended in
 * the order of the patch. White space around members is removed. Of duplicate keys the last one
 * counts, in both texts.
 *
 * Invariant: the result is no longer than both texts together. Time is bounded by the members of
 * one text times the size of the other; there is no recursion and no allocation. Outputs are
 * untouched on failure.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_JSON_JSON_MERGE_H
#define AGENTWAL_FORMAT_JSON_JSON_MERGE_H

#include "format/bytes/bytes.h"
#include "format/json/json_text.h"

/*
 * Applies `patch` to `target`; an empty target is an absent value. Writes the result, which must
 * not overlap the texts, and its size. NO_SPACE unless `capacity` is at least target.size +
 * patch.size; other failures are syntax errors of a text.
 */
enum wal__json_status wal__json_merge(struct wal__span target, struct wal__span patch, uint8_t *out,
                                      size_t capacity, size_t *size) WAL__JSON_CHECKED;

#endif
