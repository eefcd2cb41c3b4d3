/*
 * json_merge.c - applies a merge patch to text (json_merge.h; RFC 7386 section
 * 2).
 *
 * Both texts are validated first, so iterating over them cannot fail. A level is one object of the
 * patch and the object into which it is merged, if any: first the target's members are merged, then
 * the members that only the patch has are added.
 *
 * Invariant: each member is written at most once, from its last occurrence.
 */
#include "format/json/json_merge.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"

struct member {
    struct wal__json_span key;
    struct wal__json_token value; /* whole value */
};

struct level {
    const uint8_t *target;    /* opening brace, or NULL: no target object */
    const uint8_t *target_at; /* next member; NULL: all were merged */
    const uint8_t *patch;
    const uint8_t *patch_at;
};

struct merge {
    const uint8_t *target_end; /* ends of the whole texts */
    const uint8_t *patch_end;
    uint8_t *out;
    uint8_t *out_end;
    bool has_members; /* the object being written is not empty */
    size_t depth;
    struct level levels[WAL__JSON_DEPTH_MAX];
};

static void append(struct merge *merge, const void *data, size_t size)
{
    WAL__ASSERT(size <= (size_t)(merge->out_end - merge->out));
    memcpy(merge->out, data, size);
    merge->out += size;
}

static void put_key(struct merge *merge, const struct member *member)
{
    if (merge->has_members) {
        append(merge, ",", 1);
    }
    append(merge, member->key.data, member->key.size);
    append(merge, ":", 1);
    merge->has_members = true;
}

static void put_member(struct merge *merge, const struct member *member,
                       const struct wal__json_token *value)
{
    put_key(merge, member);
    append(merge, value->span.data, value->span.size);
}

static const uint8_t *skip_to_value(const uint8_t *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t' || *at == ',' || *at == ':') {
        at++;
    }
    return at;
}

/* Reads the member at `*at`, which is inside an object of a valid text. */
static bool next_member(const uint8_t **at, const uint8_t *end, struct member *member)
{
    const uint8_t *begin = skip_to_value(*at);
    struct wal__json_scan scan;
    bool has_escapes;

    if (*begin == '}') {
        return false;
    }
    const uint8_t *next = begin;
    enum wal__json_status status = wal__json_string_scan(&next, end, &has_escapes);
    WAL__ASSERT(status == WAL__JSON_OK);
    member->key.data = begin;
    member->key.size = (size_t)(next - begin);
    next = skip_to_value(next);
    wal__json_scan_init(&scan, next, (size_t)(end - next));
    status = wal__json_scan_skip(&scan, &member->value);
    WAL__ASSERT(status == WAL__JSON_OK);
    *at = next + member->value.span.size;
    return true;
}

/* Returns the last value of a key of the object; kind NONE if absent. */
static struct wal__json_token find_last(const uint8_t *object, const uint8_t *end,
                                        struct wal__json_span key)
{
    struct wal__json_token found = {0};
    struct member member;

    if (object == NULL) {
        return found;
    }
    const uint8_t *at = object + 1;
    while (next_member(&at, end, &member)) {
        if (wal__json_characters_equal(member.key, key)) {
            found = member.value;
        }
    }
    return found;
}

static void push_level(struct merge *merge, const struct wal__json_token *target,
                       const struct wal__json_token *patch)
{
    WAL__ASSERT(merge->depth < WAL__JSON_DEPTH_MAX);
    struct level *level = &merge->levels[merge->depth++];

    *level = (struct level){.patch = patch->span.data, .patch_at = patch->span.data + 1};
    if (target->kind == WAL__JSON_OBJECT) {
        level->target = target->span.data;
        level->target_at = target->span.data + 1;
    }
    append(merge, "{", 1);
    merge->has_members = false;
}

/* Keeps, removes, replaces or merges a member of the target. */
static void merge_target_member(struct merge *merge, const struct level *level,
                                const struct member *member)
{
    struct wal__json_token change = find_last(level->patch, merge->patch_end, member->key);

    if (change.kind == WAL__JSON_NONE) {
        put_member(merge, member, &member->value);
        return;
    }
    struct wal__json_token last = find_last(level->target, merge->target_end, member->key);
    if (change.kind == WAL__JSON_NULL || last.span.data != member->value.span.data) {
        return;
    }
    if (change.kind == WAL__JSON_OBJECT) {
        put_key(merge, member);
        push_level(merge, &member->value, &change);
    } else {
        put_member(merge, member, &change);
    }
}

/* Adds a member of the patch if the target does not have it. */
static void merge_patch_member(struct merge *merge, const struct level *level,
                               const struct member *member)
{
    static const struct wal__json_token none;
    struct wal__json_token last = find_last(level->patch, merge->patch_end, member->key);
    struct wal__json_token old = find_last(level->target, merge->target_end, member->key);

    if (member->value.kind == WAL__JSON_NULL || last.span.data != member->value.span.data ||
        old.kind != WAL__JSON_NONE) {
        return;
    }
    if (member->value.kind == WAL__JSON_OBJECT) {
        put_key(merge, member);
        push_level(merge, &none, &member->value);
    } else {
        put_member(merge, member, &member->value);
    }
}

static void merge_levels(struct merge *merge)
{
    while (merge->depth > 0) {
        struct level *level = &merge->levels[merge->depth - 1];
        struct member member;
        if (level->target_at != NULL) {
            if (next_member(&level->target_at, merge->target_end, &member)) {
                merge_target_member(merge, level, &member);
            } else {
                level->target_at = NULL;
            }
        } else if (next_member(&level->patch_at, merge->patch_end, &member)) {
            merge_patch_member(merge, level, &member);
        } else {
            WAL__ASSERT(merge->depth > 0);
            append(merge, "}", 1);
            merge->has_members = true;
            merge->depth--;
        }
    }
}

/* Validates the text and returns its whole value. */
static enum wal__json_status read_text(struct wal__span text, struct wal__json_token *value)
{
    struct wal__json_scan scan;
    struct wal__json_token end;

    wal__json_scan_init(&scan, text.data, text.size);
    enum wal__json_status status = wal__json_scan_skip(&scan, value);
    return status == WAL__JSON_OK ? wal__json_scan_next(&scan, &end) : status;
}

enum wal__json_status wal__json_merge(struct wal__span target, struct wal__span patch, uint8_t *out,
                                      size_t capacity, size_t *size)
{
    struct wal__json_token old = {0};
    struct wal__json_token change = {0};
    struct merge merge;

    if (capacity < patch.size || capacity - patch.size < target.size) {
        return WAL__JSON_NO_SPACE;
    }
    enum wal__json_status status = read_text(patch, &change);
    if (status == WAL__JSON_OK && target.size > 0) {
        status = read_text(target, &old);
    }
    if (status != WAL__JSON_OK) {
        return status;
    }
    merge.target_end = target.data + target.size;
    merge.patch_end = patch.data + patch.size;
    merge.out = out;
    merge.out_end = out + capacity;
    merge.depth = 0;
    if (change.kind == WAL__JSON_OBJECT) {
        push_level(&merge, &old, &change);
        merge_levels(&merge);
    } else {
        append(&merge, change.span.data, change.span.size);
    }
    WAL__ASSERT(merge.depth == 0);
    *size = (size_t)(merge.out - out);
    return WAL__JSON_OK;
}
