/*
 * model_member.c - access to JSON values for dialects that read items.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/model_member.h"

#include <string.h>

#include "convert/model/dialect.h"
#include "format/bytes/assert.h"
#include "format/json/json_value.h"

static const struct wal__json_span none = {NULL, 0};

static bool is_wanted(const struct wal__json_member *wanted, size_t count,
                      struct wal__json_span key)
{
    for (size_t i = 0; i < count; i++) {
        const char *name =
            wanted[i].parent != NULL ? wanted[i].parent : wanted[i].key;
        if (wal__json_string_is(key, name)) {
            return true;
        }
    }
    return false;
}

static void count_others(struct wal__json_span object,
                         const struct wal__json_member *wanted, size_t count,
                         uint32_t *unknown_count)
{
    struct wal__json_scan scan;
    struct wal__json_token token;

    wal__json_scan_init(&scan, object.data, object.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK) {
        return;
    }
    while (wal__json_scan_next(&scan, &token) == WAL__JSON_OK &&
           token.kind == WAL__JSON_KEY) {
        *unknown_count += is_wanted(wanted, count, token.span) ? 0 : 1;
        if (wal__json_scan_skip(&scan, &token) != WAL__JSON_OK) {
            return;
        }
    }
}

enum wal__json_status wal__model_members(struct wal__json_span object,
                                         struct wal__json_member *wanted,
                                         size_t count, uint32_t *unknown_count)
{
    enum wal__json_status status = WAL__JSON_NOT_OBJECT;

    if (object.size > 0) {
        status =
            wal__json_members(object.data, object.size, wanted, count, NULL);
    }
    if (status == WAL__JSON_NOT_OBJECT) {
        for (size_t i = 0; i < count; i++) {
            wanted[i].value.kind = WAL__JSON_NONE;
        }
        return WAL__JSON_OK;
    }
    if (status == WAL__JSON_OK && unknown_count != NULL) {
        count_others(object, wanted, count, unknown_count);
    }
    return status;
}

bool wal__model_has_entry_ids(struct wal__json_span object)
{
    struct wal__json_member ids[2] = {{.key = "id"}, {.key = "parentId"}};

    return wal__model_members(object, ids, 2, NULL) == WAL__JSON_OK &&
           ids[0].value.kind == WAL__JSON_STRING && !ids[0].is_duplicate &&
           (ids[1].value.kind == WAL__JSON_STRING ||
            ids[1].value.kind == WAL__JSON_NULL);
}

static struct wal__json_span span_if_kind(const struct wal__json_member *member,
                                          enum wal__json_kind kind)
{
    return member->value.kind == kind ? member->value.span : none;
}

struct wal__json_span wal__member_string(const struct wal__json_member *member)
{
    return span_if_kind(member, WAL__JSON_STRING);
}

struct wal__json_span wal__member_number(const struct wal__json_member *member)
{
    return span_if_kind(member, WAL__JSON_NUMBER);
}

struct wal__json_span
wal__member_container(const struct wal__json_member *member)
{
    return member->value.kind == WAL__JSON_ARRAY
               ? member->value.span
               : span_if_kind(member, WAL__JSON_OBJECT);
}

struct wal__json_span
wal__member_non_null(const struct wal__json_member *member)
{
    return member->value.kind == WAL__JSON_NONE ||
                   member->value.kind == WAL__JSON_NULL
               ? none
               : member->value.span;
}

struct wal__json_span wal__member_raw(const struct wal__json_member *member)
{
    return member->value.kind == WAL__JSON_NONE ? none : member->value.span;
}

bool wal__member_is_true(const struct wal__json_member *member)
{
    return member->value.kind == WAL__JSON_TRUE;
}

bool wal__model_text_is(struct wal__json_span string, const char *text)
{
    return string.size > 0 && wal__json_string_is(string, text);
}

struct wal__json_span wal__model_literal(const char *quoted)
{
    return (struct wal__json_span){(const uint8_t *)quoted, strlen(quoted)};
}

void wal__model_array_begin(struct wal__json_scan *scan,
                            struct wal__json_span array)
{
    struct wal__json_token token = {.kind = WAL__JSON_NONE};

    wal__json_scan_init(scan, array.data, array.size);
    if (wal__json_scan_next(scan, &token) != WAL__JSON_OK ||
        token.kind != WAL__JSON_ARRAY) {
        wal__json_scan_init(scan, NULL, 0);
    }
}

bool wal__model_array_next(struct wal__json_scan *scan,
                           struct wal__json_token *value)
{
    return wal__json_scan_skip(scan, value) == WAL__JSON_OK &&
           value->kind != WAL__JSON_ARRAY_END && value->kind != WAL__JSON_END;
}

struct wal__model_block *wal__model_blocks_add(struct wal__model_blocks *blocks,
                                               enum wal__model_block_kind kind,
                                               struct wal__json_span raw)
{
    struct wal__model_block *items =
        wal__arena_grow(blocks->arena, blocks->items, blocks->count,
                        &blocks->capacity, sizeof(items[0]));

    if (items == NULL) {
        return NULL;
    }
    blocks->items = items;
    WAL__ASSERT(blocks->count < blocks->capacity);
    blocks->items[blocks->count] =
        (struct wal__model_block){.kind = kind, .raw = raw};
    return &blocks->items[blocks->count++];
}

bool wal__model_set_image_url(struct wal__arena *arena,
                              struct wal__model_block *block,
                              struct wal__json_span url)
{
    static const char scheme[] = "data:";
    static const char encoding[] = ";base64,";
    const size_t scheme_size = sizeof(scheme) - 1;
    const size_t encoding_size = sizeof(encoding) - 1;
    struct wal__json_span text;
    const uint8_t *separator;

    block->url = url;
    if (url.size < scheme_size + 2 ||
        memcmp(url.data + 1, scheme, scheme_size) != 0) {
        return true;
    }
    text = wal__arena_unescape(arena, url);
    if (text.data == NULL) {
        return false;
    }
    separator = memchr(text.data, ';', text.size);
    if (separator == NULL ||
        (size_t)(text.data + text.size - separator) < encoding_size ||
        memcmp(separator, encoding, encoding_size) != 0) {
        return true;
    }
    block->url = none;
    block->media.data = text.data + scheme_size;
    block->media.size = (size_t)(separator - block->media.data);
    block->data.data = separator + encoding_size;
    block->data.size = (size_t)(text.data + text.size - block->data.data);
    WAL__ASSERT(block->media.size + block->data.size < text.size);
    return true;
}

/* --- lines (dialect.h) --------------------------------------------------- */

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
