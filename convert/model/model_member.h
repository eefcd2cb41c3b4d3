/*
 * model_member.h - access to JSON values for dialects that read items.
 *
 * Invariant: returned spans are inside the text or the arena. Every function is
 * total over valid JSON.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_MODEL_MODEL_MEMBER_H
#define AGENTWAL_CONVERT_MODEL_MODEL_MEMBER_H

#include "convert/model/model.h"
#include "format/json/json_scan.h"

/*
 * Like wal__json_members for any value: if it is not an object, or is empty,
 * all members are absent. Increases *unknown_count, unless it is NULL, by the
 * members of the top-level object that are not wanted.
 */
enum wal__json_status
wal__model_members(struct wal__json_span object,
                   struct wal__json_member *wanted, size_t count,
                   uint32_t *unknown_count) WAL__JSON_CHECKED;

/* Return the member's value if it is a string, a number, an object or array,
 * anything but null, or anything; else an empty span. */
struct wal__json_span wal__member_string(const struct wal__json_member *member);
struct wal__json_span wal__member_number(const struct wal__json_member *member);
struct wal__json_span
wal__member_container(const struct wal__json_member *member);
struct wal__json_span
wal__member_non_null(const struct wal__json_member *member);
struct wal__json_span wal__member_raw(const struct wal__json_member *member);
bool wal__member_is_true(const struct wal__json_member *member);

/* Whether the string is not empty and decodes to that text. */
bool wal__model_text_is(struct wal__json_span string, const char *text);

/* Whether the object can be an entry with a parent: its id is a string, and its
 * parentId a string or null. */
bool wal__model_has_entry_ids(struct wal__json_span object);

/* Returns a C string as a span; a string has its quotes: "\"text\"". */
struct wal__json_span wal__model_literal(const char *quoted);

/* Begins iterating over an array; any other value is empty. */
void wal__model_array_begin(struct wal__json_scan *scan,
                            struct wal__json_span array);
/* Returns the next value; false: there is none. */
bool wal__model_array_next(struct wal__json_scan *scan,
                           struct wal__json_token *value);

/* A growing array of blocks. Zeroed but for the arena: empty. */
struct wal__model_blocks {
    struct wal__arena *arena;
    struct wal__model_block *items;
    size_t count;
    size_t capacity;
};

/* Appends a block, zeroed but for its kind and raw. NULL: no memory. */
struct wal__model_block *wal__model_blocks_add(struct wal__model_blocks *blocks,
                                               enum wal__model_block_kind kind,
                                               struct wal__json_span raw);

/* Sets an image's media and data from a data: URL, or its url from another
 * one. False: no memory. */
bool wal__model_set_image_url(struct wal__arena *arena,
                              struct wal__model_block *block,
                              struct wal__json_span url);

#endif
