/*
 * json_fields.c - what the objects in JSON share (json_fields.h).
 */
#include "remote/layout/json_fields.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/json/json_value.h"

static bool put(void *ctx, const void *data, size_t size)
{
    return wal__buf_append(ctx, data, size) == WAL_OK;
}

struct wal__json_out wal__fields_out(struct wal__buf *buf)
{
    return (struct wal__json_out){.put = put, .ctx = buf};
}

enum wal_status wal__fields_end(const struct wal__json_out *out)
{
    return out->has_failed ? WAL_ENOMEM : WAL_OK;
}

bool wal__fields_find(struct wal__json_span json,
                      struct wal__json_member *members, size_t count)
{
    if (wal__json_members(json.data, json.size, members, count, NULL) !=
        WAL__JSON_OK) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (members[i].value.kind == WAL__JSON_NONE ||
            members[i].is_duplicate) {
            return false;
        }
    }
    return true;
}

bool wal__fields_get_integer(const struct wal__json_member *member, int64_t min,
                             int64_t max, int64_t *value)
{
    int64_t found = 0;

    if (member->value.kind != WAL__JSON_NUMBER ||
        wal__json_integer(member->value.span, &found) != WAL__JSON_OK ||
        found < min || found > max) {
        return false;
    }
    *value = found;
    return true;
}

bool wal__fields_get_text(const struct wal__json_member *member, char *out,
                          size_t capacity)
{
    char text[256];
    size_t size = 0;

    if (member->value.kind != WAL__JSON_STRING ||
        wal__json_unescape(member->value.span, (uint8_t *)text, sizeof(text),
                           &size, NULL) != WAL__JSON_OK ||
        size >= capacity) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < 0x20 || text[i] > 0x7e) {
            return false;
        }
    }
    memcpy(out, text, size);
    out[size] = '\0';
    return true;
}

enum wal_status wal__fields_check_version(struct wal__json_span json,
                                          const char *name,
                                          struct wal_error *error)
{
    struct wal__json_member version = {.key = "version"};
    int64_t number = 0;

    if (!wal__fields_find(json, &version, 1) ||
        !wal__fields_get_integer(&version, 1, INT64_MAX, &number)) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                            "the object is not the JSON that it must be");
    }
    if (number != 1) {
        return wal__fail_at(error, WAL_EVERSION, 0, name, 0,
                            "the object has version %lld; a newer agentwal "
                            "reads it",
                            (long long)number);
    }
    return WAL_OK;
}
