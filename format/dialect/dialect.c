/*
 * dialect.c - the list of dialects, and functions that they share.
 *
 * Invariant: `lines` is the last one and recognises nothing; it is the default.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "format/model/dialect.h"

#include <string.h>

#include "format/json/json_value.h"

static const struct wal__dialect *const dialects[] = {
    &wal__dialect_rollouts, &wal__dialect_pi,       &wal__dialect_codex,
    &wal__dialect_entries,  &wal__dialect_claude,   &wal__dialect_sdk,
    &wal__dialect_spec11,   &wal__dialect_opencode, &wal__dialect_lines,
};

#define DIALECT_COUNT (sizeof(dialects) / sizeof(dialects[0]))

const struct wal__dialect *wal__dialect_at(size_t index)
{
    return index < DIALECT_COUNT ? dialects[index] : NULL;
}

const struct wal__dialect *wal__dialect_find(const char *name)
{
    for (size_t i = 0; i < DIALECT_COUNT; i++) {
        if (strcmp(dialects[i]->name, name) == 0) {
            return dialects[i];
        }
    }
    return NULL;
}

const struct wal__dialect *wal__dialect_find_string(struct wal__json_span name)
{
    for (size_t i = 0; name.size > 0 && i < DIALECT_COUNT; i++) {
        if (wal__json_string_is(name, dialects[i]->name)) {
            return dialects[i];
        }
    }
    return NULL;
}

const struct wal__dialect *wal__dialect_recognise(const void *data, size_t size,
                                                  bool is_first)
{
    for (size_t i = 0; i < DIALECT_COUNT; i++) {
        if (dialects[i]->recognise(data, size, is_first)) {
            return dialects[i];
        }
    }
    return NULL;
}

struct wal__json_span wal__line_text(const void *data, size_t size)
{
    static const uint8_t bom[] = {0xEF, 0xBB, 0xBF};
    struct wal__json_span text = {data, size};

    if (size >= sizeof(bom) && memcmp(data, bom, sizeof(bom)) == 0) {
        text.data += sizeof(bom);
        text.size -= sizeof(bom);
    }
    return text;
}

bool wal__line_is_blank(const void *data, size_t size)
{
    const uint8_t *bytes = data;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r') {
            return false;
        }
    }
    return true;
}

struct wal__json_span wal__line_string(const struct wal__json_member *member)
{
    struct wal__json_span none = {NULL, 0};

    return member->value.kind == WAL__JSON_STRING ? member->value.span : none;
}

bool wal__line_string_is(const struct wal__json_member *member,
                         const char *text)
{
    return member->value.kind == WAL__JSON_STRING &&
           wal__json_string_is(member->value.span, text);
}

enum wal__json_status wal__line_members(const void *data, size_t size,
                                        struct wal__json_member *wanted,
                                        size_t count, size_t *error_offset)
{
    enum wal__json_status status;

    status = wal__json_members(data, size, wanted, count, error_offset);
    if (status != WAL__JSON_NOT_OBJECT) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        wanted[i].value.kind = WAL__JSON_NONE;
    }
    return WAL__JSON_OK;
}

bool wal__line_has_duplicate_key(const struct wal__json_member *members,
                                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (members[i].is_duplicate) {
            return true;
        }
    }
    return false;
}

bool wal__line_version_above(const struct wal__json_member *member,
                             int64_t known)
{
    int64_t version;

    return member->value.kind == WAL__JSON_NUMBER &&
           (wal__json_integer(member->value.span, &version) != WAL__JSON_OK ||
            version > known);
}
