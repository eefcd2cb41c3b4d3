/*
 * model_member.h - what dialects need to make items of JSON.
 *
 * Invariant: spans that are given lie in the text that was read or in the
 * arena. Every function is total over valid JSON.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_MODEL_MODEL_MEMBER_H
#define AGENTWAL_FORMAT_MODEL_MODEL_MEMBER_H

#include "format/json/json_scan.h"
#include "format/model/model.h"

/*
 * Members as wal__json_members gives them, of any value: of one that is no
 * object, or is not there, all are absent. *unknown_count, if not null, grows
 * by the members of the topmost object that are not among the wanted ones.
 */
enum wal__json_status
wal__model_members(struct wal__json_span object,
                   struct wal__json_member *wanted, size_t count,
                   uint32_t *unknown_count) WAL__JSON_CHECKED;

/* The member's value when it is a string, a number, an object or array,
 * anything but null, or anything; else an empty span. */
struct wal__json_span wal__member_string(const struct wal__json_member *member);
struct wal__json_span wal__member_number(const struct wal__json_member *member);
struct wal__json_span
wal__member_container(const struct wal__json_member *member);
struct wal__json_span
wal__member_non_null(const struct wal__json_member *member);
struct wal__json_span wal__member_raw(const struct wal__json_member *member);
bool wal__member_is_true(const struct wal__json_member *member);

/* Whether the string is there and is that text. */
bool wal__model_text_is(struct wal__json_span string, const char *text);

/* Whether the object has an id that is a string, and a parentId: so it can be
 * an entry under another. */
bool wal__model_has_entry_ids(struct wal__json_span object);

/* A C string as a JSON string; `quoted` holds its quotes: "\"text\"". */
struct wal__json_span wal__model_literal(const char *quoted);

/* The values of an array, one after the other. */
void wal__model_array_begin(struct wal__json_scan *scan,
                            struct wal__json_span array);
/* False behind the last one. */
bool wal__model_array_next(struct wal__json_scan *scan,
                           struct wal__json_token *value);

/* Blocks that are being gathered. Zeroed but for the arena: none. */
struct wal__model_blocks {
    struct wal__arena *arena;
    struct wal__model_block *items;
    size_t count;
    size_t capacity;
};

/* Another block, zeroed but for its kind and raw; null: no memory. */
struct wal__model_block *wal__model_blocks_add(struct wal__model_blocks *blocks,
                                               enum wal__model_block_kind kind,
                                               struct wal__json_span raw);

/* Sets an image's media and data out of a data: URL, or its url. False: no
 * memory. */
bool wal__model_set_image_url(struct wal__arena *arena,
                              struct wal__model_block *block,
                              struct wal__json_span url);

#endif
