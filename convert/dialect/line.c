/*
 * line.c - functions that dialects of lines share (dialect.h).
 *
 * Threads: no shared state; any thread may call any function.
 */
#include <string.h>

#include "convert/model/dialect.h"
#include "format/json/json_value.h"

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

bool wal__dialect_is(const struct wal__dialect *dialect, const char *name)
{
    return dialect != NULL && strcmp(dialect->name, name) == 0;
}
