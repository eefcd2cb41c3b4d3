/*
 * base_list.c - the JSON of a base (base_list.h).
 */
#include "remote/layout/base_list.h"

#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "remote/layout/json_fields.h"

void wal__base_list_init(struct wal__base_list *list,
                         const struct wal__heap *heap)
{
    *list = (struct wal__base_list){.epoch = 0};
    wal__buf_init(&list->segments, heap);
}

void wal__base_list_deinit(struct wal__base_list *list)
{
    wal__buf_deinit(&list->segments);
}

size_t wal__base_list_count(const struct wal__base_list *list)
{
    return list->segments.size / sizeof(struct wal__base_segment);
}

const struct wal__base_segment *
wal__base_list_at(const struct wal__base_list *list, size_t at)
{
    WAL__ASSERT(at < wal__base_list_count(list));
    return (const struct wal__base_segment *)(const void *)list->segments.data +
           at;
}

enum wal_status wal__base_list_add(struct wal__base_list *list,
                                   const struct wal__base_segment *segment)
{
    return wal__base_list_count(list) >= WAL__BASE_SEGMENTS_MAX
               ? WAL_ETOOBIG
               : wal__buf_append(&list->segments, segment, sizeof(*segment));
}

/* --- JSON --------------------------------------------------------------- */

/* The name of a segment below the store's prefix. */
static const char *name_segment(const struct wal__base_segment *segment,
                                char name[WAL__STORE_OBJECT_SIZE])
{
    struct wal__store_object object = {.kind = WAL__OBJECT_SEGMENT,
                                       .number = segment->number};

    memcpy(object.id, segment->id, sizeof(object.id));
    wal__store_object_format(&object, name);
    return strchr(name, '/') + 1;
}

enum wal_status wal__base_list_encode(const struct wal__base_list *list,
                                      struct wal__buf *out)
{
    struct wal__json_out json = wal__fields_out(out);

    wal__json_out_open(&json, '{');
    wal__json_out_member_int(&json, "version", 1);
    wal__json_out_member_int(&json, "created", list->created_ms);
    wal__json_out_member_int(&json, "epoch", (int64_t)list->epoch);
    wal__json_out_member_int(&json, "part", (int64_t)list->part);
    if (list->erased != 0) {
        wal__json_out_member_int(&json, "erased", (int64_t)list->erased);
    }
    wal__json_out_member_open(&json, "segments", '[');
    for (size_t i = 0; i < wal__base_list_count(list); i++) {
        char name[WAL__STORE_OBJECT_SIZE];
        const char *text = name_segment(wal__base_list_at(list, i), name);

        wal__json_out_text(&json, (struct wal__json_span){(const uint8_t *)text,
                                                          strlen(text)});
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
    return wal__fields_end(&json);
}

static enum wal_status fail(struct wal_error *error, const char *name)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                        "the object is damaged: it is not a base");
}

/* Reads the name of a segment from a string, which has no escapes. */
static bool parse_segment(const struct wal__json_token *token,
                          struct wal__base_segment *segment)
{
    static const char zero[] = "00000000000000000000000000000000/";
    struct wal__store_object object;
    char name[WAL__STORE_OBJECT_SIZE];
    size_t size = token->span.size;

    if (token->kind != WAL__JSON_STRING || token->has_escapes || size < 2 ||
        size - 2 >= sizeof(name) - (sizeof(zero) - 1)) {
        return false;
    }
    memcpy(name, zero, sizeof(zero) - 1);
    memcpy(name + sizeof(zero) - 1, token->span.data + 1, size - 2);
    name[sizeof(zero) - 1 + size - 2] = '\0';
    if (!wal__store_object_parse(name, &object) ||
        object.kind != WAL__OBJECT_SEGMENT) {
        return false;
    }
    *segment = (struct wal__base_segment){.number = object.number};
    memcpy(segment->id, object.id, sizeof(segment->id));
    return true;
}

static enum wal_status parse_segments(struct wal__json_span array,
                                      const char *name,
                                      struct wal__base_list *list,
                                      struct wal_error *error)
{
    struct wal__json_scan scan;
    struct wal__json_token token = {.kind = WAL__JSON_NONE};
    struct wal__base_segment segment;
    enum wal_status status = WAL_OK;

    wal__json_scan_init(&scan, array.data, array.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK ||
        token.kind != WAL__JSON_ARRAY) {
        return fail(error, name);
    }
    while (status == WAL_OK) {
        if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK) {
            return fail(error, name);
        }
        if (token.kind == WAL__JSON_ARRAY_END &&
            wal__base_list_count(list) > 0) {
            return WAL_OK;
        }
        if (!parse_segment(&token, &segment)) {
            return fail(error, name);
        }
        status = wal__base_list_add(list, &segment);
    }
    return status == WAL_ENOMEM ? wal__no_memory(error) : fail(error, name);
}

enum wal_status wal__base_list_decode(struct wal_slice bytes, const char *name,
                                      struct wal__base_list *list,
                                      struct wal_error *error)
{
    const struct wal__json_span json = {bytes.data, (size_t)bytes.size};
    const int64_t max = (int64_t)WAL__STORE_OBJECT_NUMBER_MAX;
    struct wal__json_member members[] = {{.key = "created"},
                                         {.key = "epoch"},
                                         {.key = "part"},
                                         {.key = "segments"}};
    struct wal__json_member erased = {.key = "erased"};
    struct wal__base_list decoded;
    int64_t epoch = 0;
    int64_t part = 0;
    int64_t base = 0;
    enum wal_status status;

    if (bytes.size > WAL__BASE_JSON_MAX) {
        return fail(error, name);
    }
    status = wal__fields_check_version(json, name, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__base_list_init(&decoded, list->segments.heap);
    if (!wal__fields_find(json, members, 4) ||
        !wal__fields_get_integer(&members[0], 0, INT64_MAX,
                                 &decoded.created_ms) ||
        !wal__fields_get_integer(&members[1], 1, max, &epoch) ||
        !wal__fields_get_integer(&members[2], 1, max, &part) ||
        (wal__fields_find(json, &erased, 1) &&
         !wal__fields_get_integer(&erased, 0, max, &base))) {
        return fail(error, name);
    }
    decoded.epoch = (uint64_t)epoch;
    decoded.part = (uint64_t)part;
    decoded.erased = (uint64_t)base;
    status = parse_segments(members[3].value.span, name, &decoded, error);
    if (status != WAL_OK) {
        wal__base_list_deinit(&decoded);
        return status;
    }
    wal__base_list_deinit(list);
    *list = decoded;
    return WAL_OK;
}
