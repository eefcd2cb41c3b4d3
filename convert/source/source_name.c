/*
 * source_name.c - writes and parses the names of sources, decodes and encodes texts
 * (source_name.h).
 */
#include "convert/source/source_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_scan.h"
#include "format/json/json_text.h"

/* A string without escapes is copied without decoding. */
static bool unescape(struct wal__json_span string, size_t max, char *text, size_t *size)
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
    return wal__json_unescape(string, (uint8_t *)text, max, size, NULL) == WAL__JSON_OK;
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

char *wal__string_copy(struct wal__arena *arena, struct wal__json_span string, size_t max)
{
    size_t capacity = string.size < max ? string.size : max;
    char *text;

    if (string.size < 3) {
        return NULL;
    }
    text = wal__arena_alloc(arena, capacity + 1);
    return text != NULL && wal__string_decode(string, capacity, text) ? text : NULL;
}

char *wal__string_object(struct wal__arena *arena, const char *key, struct wal_slice text,
                         const char *members)
{
    struct wal__json_span escaped =
        wal__arena_escape(arena, (struct wal__json_span){text.data, (size_t)text.size});
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

bool wal__string_member(const void *json, size_t size, const char *parent, const char *key,
                        char text[WAL__STRING_MAX + 1])
{
    struct wal__json_member member = {.parent = parent, .key = key};

    text[0] = '\0';
    return wal__json_members(json, size, &member, 1, NULL) == WAL__JSON_OK &&
           member.value.kind == WAL__JSON_STRING &&
           wal__string_decode(member.value.span, WAL__STRING_MAX, text);
}

static bool is_utf8(const char *text, size_t size)
{
    const uint8_t *at = (const uint8_t *)text;
    const uint8_t *end = at + size;

    while (at < end) {
        enum wal__json_status status = wal__json_skip_unescaped(&at, end);
        if (status != WAL__JSON_OK) {
            return false;
        }
        if (at < end) {
            at++; /* a quote, a backslash or a control byte */
        }
    }
    return true;
}

/* Escapes as much of the path as the room for `capacity` bytes and a NUL holds; returns false if
 * that is not all. */
static bool escape(const char *path, char *text, size_t capacity)
{
    size_t size = strlen(path);
    bool is_valid = is_utf8(path, size);
    size_t used = 0;

    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)path[i];
        bool is_escaped = byte == '%' || byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !is_valid);

        if (capacity - used < (is_escaped ? 3 : 1)) {
            return false;
        }
        if (is_escaped) {
            used += (size_t)snprintf(text + used, 4, "%%%02X", byte);
        } else {
            text[used++] = (char)byte;
        }
    }
    text[used] = '\0';
    return true;
}

bool wal__source_sibling(const char *name, const char *path, const char *other,
                         char sibling[WAL__SOURCE_SIZE_MAX + 1])
{
    size_t common = 0; /* folders of both */
    size_t size = strlen(name);
    size_t tail;
    int used;

    for (size_t i = 0; path[i] != '\0' && path[i] == other[i]; i++) {
        common = path[i] == '/' ? i + 1 : common;
    }
    tail = strlen(path + common);
    if (strcmp(path, other) == 0 || tail > size || strcmp(name + size - tail, path + common) != 0) {
        return false;
    }
    used = snprintf(sibling, WAL__SOURCE_SIZE_MAX + 1, "%.*s%s", (int)(size - tail), name,
                    other + common);
    return used > 0 && used <= WAL__SOURCE_SIZE_MAX;
}

char *wal__source_escape(struct wal__arena *arena, const char *path)
{
    size_t capacity = 3 * strlen(path);
    char *text = wal__arena_alloc(arena, capacity + 1);

    return text != NULL && escape(path, text, capacity) ? text : NULL;
}

bool wal__source_text(char text[WAL__SOURCE_SIZE_MAX + 1], const char *dialect, uint64_t ordinal,
                      const char *path)
{
    int used = snprintf(text, WAL__SOURCE_SIZE_MAX + 1, "%s %" PRIu64 " ", dialect, ordinal);

    return used > 0 && used <= WAL__SOURCE_SIZE_MAX &&
           escape(path, text + used, WAL__SOURCE_SIZE_MAX - (size_t)used);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

/* Decodes %XX in place. Returns false for malformed escapes and for %00. */
static bool decode(char *path)
{
    char *out = path;

    for (const char *in = path; *in != '\0'; in++) {
        int high, low;
        if (*in != '%') {
            *out++ = *in;
            continue;
        }
        high = hex_digit(in[1]);
        low = high >= 0 ? hex_digit(in[2]) : -1;
        if (low < 0 || high * 16 + low == 0) {
            return false;
        }
        *out++ = (char)(high * 16 + low);
        in += 2;
    }
    *out = '\0';
    return true;
}

bool wal__source_unescape(struct wal_slice text, char path[WAL__SOURCE_SIZE_MAX + 1])
{
    if (text.size > WAL__SOURCE_SIZE_MAX) {
        return false;
    }
    snprintf(path, WAL__SOURCE_SIZE_MAX + 1, "%.*s", (int)text.size,
             text.size > 0 ? (const char *)text.data : "");
    return decode(path);
}

bool wal__source_parse(struct wal_slice text, struct wal__source *source)
{
    char copy[WAL__SOURCE_SIZE_MAX + 1];
    char *space;
    char *end;

    if (text.size == 0 || text.size > WAL__SOURCE_SIZE_MAX) {
        return false;
    }
    memcpy(copy, text.data, (size_t)text.size);
    copy[text.size] = '\0';
    space = strchr(copy, ' ');
    if (space == NULL || (size_t)(space - copy) >= sizeof(source->dialect) || space[1] < '0' ||
        space[1] > '9') {
        return false;
    }
    source->ordinal = strtoull(space + 1, &end, 10);
    if (*end != ' ' || end[1] == '\0' || !decode(end + 1)) {
        return false;
    }
    *space = '\0';
    memcpy(source->dialect, copy, (size_t)(space - copy) + 1);
    memcpy(source->path, end + 1, strlen(end + 1) + 1);
    return true;
}

static bool is_uuid(const char *text)
{
    for (size_t i = 0; i + 1 < WAL__FILE_ID_SIZE; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (is_dash ? text[i] != '-' : strchr("0123456789abcdefABCDEF", text[i]) == NULL) {
            return false;
        }
    }
    return true;
}

bool wal__source_file_id(const char *path, char id[WAL__FILE_ID_SIZE])
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t size = strcspn(name, ".");
    const size_t id_size = WAL__FILE_ID_SIZE - 1;

    id[0] = '\0';
    if (size < id_size || memchr(name + size - id_size, '\0', id_size) != NULL ||
        !is_uuid(name + size - id_size)) {
        return false;
    }
    memcpy(id, name + size - id_size, id_size);
    id[id_size] = '\0';
    return true;
}

bool wal__source_names_file(struct wal_slice id)
{
    const char *text = id.data;

    return id.size > WAL__FILE_ID_SIZE && text[WAL__FILE_ID_SIZE - 1] == ':' && is_uuid(text);
}

uint64_t wal__source_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}
