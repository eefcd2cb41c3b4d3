/*
 * base.c - what a new replica is made of (object_json.h).
 */
#include <string.h>

#include "engine/base/error.h"
#include "remote/layout/json_fields.h"

static enum wal_status fail(struct wal_error *error, const char *name)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                        "the object is damaged: it is not a base");
}

/* --- encoding ----------------------------------------------------------- */

static void encode_place(struct wal__json_out *json, const char *key,
                         const struct wal_part_place *place)
{
    wal__json_out_member_open(json, key, '{');
    wal__fields_hex(json, "segment", place->segment);
    wal__fields_hex(json, "identity", place->identity);
    wal__fields_hex(json, "offset", place->offset);
    wal__fields_hex(json, "sequence", place->sequence);
    wal__json_out_member_int(json, "chain", place->chain);
    wal__json_out_close(json, '}');
}

static void encode_segment(struct wal__json_out *json, uint8_t uuid[16],
                           const struct wal__base_segment *segment)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_SEGMENT,
                                       .stream = segment->stream,
                                       .segment = segment->segment,
                                       .identity = segment->identity};
    char name[WAL__STORE_OBJECT_SIZE];
    char digest[WAL__DIGEST_HEX_SIZE];

    memcpy(object.uuid, uuid, sizeof(object.uuid));
    wal__store_object_format(&object, name);
    wal__digest_to_hex(&segment->digest, digest);
    wal__json_out_open(json, '{');
    /* Without the store: what follows UUID and a slash. */
    wal__json_out_member_str(json, "name", name + WAL__UUID_TEXT_SIZE);
    wal__json_out_member_int(json, "size", (int64_t)segment->size);
    wal__json_out_member_str(json, "sha256", digest);
    wal__json_out_close(json, '}');
}

enum wal_status wal__base_encode(const struct wal__base *base,
                                 struct wal__buf *out)
{
    struct wal__json_out json = wal__fields_out(out);
    uint8_t uuid[16] = {0};

    wal__json_out_open(&json, '{');
    wal__json_out_member_int(&json, "version", 1);
    wal__fields_hex(&json, "k", base->number);
    wal__fields_hex(&json, "epoch", base->epoch);
    wal__fields_hex(&json, "part", base->part);
    wal__json_out_member_open(&json, "position", '{');
    encode_place(&json, "log", &base->position.places[WAL_PART_LOG]);
    encode_place(&json, "content", &base->position.places[WAL_PART_CONTENT]);
    wal__json_out_close(&json, '}');
    wal__json_out_member_open(&json, "segments", '[');
    for (uint32_t i = 0; i < base->count; i++) {
        encode_segment(&json, uuid, &base->segments[i]);
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
    return wal__fields_end(&json);
}

/* --- decoding ----------------------------------------------------------- */

enum wal_status wal__base_add(struct wal__base *base,
                              const struct wal__heap *heap,
                              const struct wal__base_segment *segment)
{
    struct wal__base_segment *segments;

    if (base->count == WAL__BASE_SEGMENTS_MAX) {
        return WAL_ETOOBIG;
    }
    segments = wal__heap_grow_array(heap, base->segments, base->count,
                                    &base->capacity, sizeof(*segment));
    if (segments == NULL) {
        return WAL_ENOMEM;
    }
    base->segments = segments;
    base->segments[base->count++] = *segment;
    return WAL_OK;
}

void wal__base_deinit(struct wal__base *base, const struct wal__heap *heap)
{
    wal__heap_free(heap, base->segments);
    *base = (struct wal__base){.count = 0};
}

static bool decode_place(struct wal__json_span position, const char *stream,
                         struct wal_part_place *place)
{
    struct wal__json_member members[] = {
        {stream, "segment", {.kind = WAL__JSON_NONE}, false},
        {stream, "identity", {.kind = WAL__JSON_NONE}, false},
        {stream, "offset", {.kind = WAL__JSON_NONE}, false},
        {stream, "sequence", {.kind = WAL__JSON_NONE}, false},
        {stream, "chain", {.kind = WAL__JSON_NONE}, false},
    };
    int64_t chain = 0;

    if (!wal__fields_find(position, members, 5) ||
        !wal__fields_get_hex(&members[0], &place->segment) ||
        !wal__fields_get_hex(&members[1], &place->identity) ||
        !wal__fields_get_hex(&members[2], &place->offset) ||
        !wal__fields_get_hex(&members[3], &place->sequence) ||
        !wal__fields_get_integer(&members[4], 0, UINT32_MAX, &chain)) {
        return false;
    }
    place->chain = (uint32_t)chain;
    return true;
}

static bool decode_segment(struct wal__json_span json,
                           struct wal__base_segment *segment)
{
    struct wal__json_member members[] = {
        {.key = "name"}, {.key = "size"}, {.key = "sha256"}};
    char name[WAL__STORE_OBJECT_SIZE] = "00000000000000000000000000000000/";
    char digest[WAL__DIGEST_HEX_SIZE];
    struct wal__store_object object;
    int64_t size = 0;

    if (!wal__fields_find(json, members, 3) ||
        !wal__fields_get_text(&members[0], name + WAL__UUID_TEXT_SIZE,
                              sizeof(name) - WAL__UUID_TEXT_SIZE) ||
        !wal__store_object_parse(name, &object) ||
        object.kind != WAL__OBJECT_SEGMENT ||
        !wal__fields_get_integer(&members[1], 1, INT64_MAX, &size) ||
        !wal__fields_get_text(&members[2], digest, sizeof(digest)) ||
        !wal__digest_from_hex(
            (struct wal__span){(const uint8_t *)digest, strlen(digest)},
            &segment->digest)) {
        return false;
    }
    segment->stream = object.stream;
    segment->segment = object.segment;
    segment->identity = object.identity;
    segment->size = (uint64_t)size;
    return true;
}

/* Reads the array, which the scanner has accepted. */
static enum wal_status decode_segments(struct wal__json_span array,
                                       const struct wal__heap *heap,
                                       struct wal__base *base)
{
    struct wal__base_segment segment = {.stream = 0};
    struct wal__json_token token;
    struct wal__json_scan scan;
    enum wal_status status = WAL_OK;

    wal__json_scan_init(&scan, array.data, array.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK) {
        return WAL_ECORRUPT;
    }
    while (status == WAL_OK) {
        if (wal__json_scan_skip(&scan, &token) != WAL__JSON_OK) {
            return WAL_ECORRUPT;
        }
        if (token.kind == WAL__JSON_ARRAY_END) {
            break;
        }
        if (token.kind != WAL__JSON_OBJECT ||
            !decode_segment(token.span, &segment)) {
            return WAL_ECORRUPT;
        }
        status = wal__base_add(base, heap, &segment);
    }
    return status == WAL_ETOOBIG ? WAL_ECORRUPT : status;
}

static bool decode_fields(struct wal__json_span json, struct wal__base *base,
                          struct wal__json_span *segments)
{
    struct wal__json_member members[] = {{.key = "k"},
                                         {.key = "epoch"},
                                         {.key = "part"},
                                         {.key = "position"},
                                         {.key = "segments"}};

    if (!wal__fields_find(json, members, 5) ||
        !wal__fields_get_hex(&members[0], &base->number) ||
        !wal__fields_get_hex(&members[1], &base->epoch) ||
        !wal__fields_get_hex(&members[2], &base->part) ||
        members[3].value.kind != WAL__JSON_OBJECT ||
        members[4].value.kind != WAL__JSON_ARRAY || base->number == 0 ||
        base->epoch == 0 || base->part == 0 ||
        !decode_place(members[3].value.span, "log",
                      &base->position.places[WAL_PART_LOG]) ||
        !decode_place(members[3].value.span, "content",
                      &base->position.places[WAL_PART_CONTENT])) {
        return false;
    }
    *segments = members[4].value.span;
    return true;
}

enum wal_status wal__base_decode(struct wal_slice bytes, const char *name,
                                 const struct wal__heap *heap,
                                 struct wal__base *base,
                                 struct wal_error *error)
{
    struct wal__json_span json = {bytes.data, (size_t)bytes.size};
    struct wal__json_span segments = {NULL, 0};
    struct wal__base decoded = {.count = 0};
    enum wal_status status;

    if (bytes.size > WAL__BASE_JSON_MAX) {
        return fail(error, name);
    }
    status = wal__fields_check_version(json, name, error);
    if (status != WAL_OK) {
        return status;
    }
    if (!decode_fields(json, &decoded, &segments)) {
        return fail(error, name);
    }
    status = decode_segments(segments, heap, &decoded);
    if (status != WAL_OK) {
        wal__base_deinit(&decoded, heap);
        return status == WAL_ENOMEM ? wal__no_memory(error) : fail(error, name);
    }
    *base = decoded;
    return WAL_OK;
}
