/*
 * json_string.c - decodes and encodes texts (json_string.h).
 *
 * Threads: any; one thread at a time per arena.
 */
#include "convert/source/json_string.h"

#include <stdio.h>
#include <string.h>

#include "format/json/json_scan.h"
#include "format/json/json_value.h"

/* A string without escapes is copied without decoding. */
static bool unescape(struct wal__json_span string, size_t max, char *text,
                     size_t *size)
{
    size_t inner = string.size - 2;

    if (memchr(string.data, '\\', string.size) == NULL) {
        if (inner > max) {
            return false;
        }
        memcpy(text, string.data + 1, inner);
        *size = inner;
        return true;
    }
    return wal__json_unescape(string, (uint8_t *)text, max, size, NULL) ==
           WAL__JSON_OK;
}

bool wal__string_decode(struct wal__json_span string, size_t max, char *text)
{
    size_t size = 0;
    bool is_valid;

    /* A byte is encoded in at most six bytes of JSON. */
    is_valid = string.size >= 3 && string.size <= 6 * max + 2 &&
               unescape(string, max, text, &size) && size > 0;
    for (size_t i = 0; is_valid && i < size; i++) {
        uint8_t byte = (uint8_t)text[i];
        is_valid = byte >= 0x20 && byte != 0x7F;
    }
    text[is_valid ? size : 0] = '\0';
    return is_valid;
}

char *wal__string_copy(struct wal__arena *arena, struct wal__json_span string,
                       size_t max)
{
    size_t capacity = string.size < max ? string.size : max;
    char *text;

    if (string.size < 3) {
        return NULL;
    }
    text = wal__arena_alloc(arena, capacity + 1);
    return text != NULL && wal__string_decode(string, capacity, text) ? text
                                                                      : NULL;
}

char *wal__string_object(struct wal__arena *arena, const char *key,
                         struct wal_slice text, const char *members)
{
    struct wal__json_span escaped = wal__arena_escape(
        arena, (struct wal__json_span){text.data, (size_t)text.size});
    size_t size;
    char *object;

    if (escaped.data == NULL) {
        escaped = (struct wal__json_span){(const uint8_t *)"\"\"", 2};
    }
    size = strlen(key) + escaped.size + strlen(members) + 8;
    object = wal__arena_alloc(arena, size);
    if (object != NULL) {
        snprintf(object, size, "{\"%s\":%.*s%s}", key, (int)escaped.size,
                 (const char *)escaped.data, members);
    }
    return object;
}

bool wal__string_member(const void *json, size_t size, const char *parent,
                        const char *key, char text[WAL__STRING_MAX + 1])
{
    struct wal__json_member member = {.parent = parent, .key = key};

    text[0] = '\0';
    return wal__json_members(json, size, &member, 1, NULL) == WAL__JSON_OK &&
           member.value.kind == WAL__JSON_STRING &&
           wal__string_decode(member.value.span, WAL__STRING_MAX, text);
}
