/*
 * layout.c - the objects of a store in a remote: their names, and their bytes (layout.h, SPEC.md
 * 11.3).
 */
#include "remote/layout/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/json/json_text.h"

/* The highest number of an epoch or a part. */
#define STORE_OBJECT_NUMBER_MAX (UINT64_MAX >> 2)

/* --- names ---------------------------------------------------------------- */

enum {
    NUMBER = 16, /* digits */
    UUID = 32
};

bool wal__uuid_parse(const char *text, size_t size, uint8_t uuid[16])
{
    static const size_t hyphens[] = {8, 13, 18, 23};
    char plain[UUID];
    uint8_t read[16];
    size_t count = 0;
    size_t hyphen = 0;

    if (size != UUID && size != UUID + 4) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (size > UUID && hyphen < 4 && i == hyphens[hyphen]) {
            if (text[i] != '-') {
                return false;
            }
            hyphen++;
        } else {
            plain[count++] = text[i];
        }
    }
    if (!wal__hex_read(plain, sizeof(read), read)) {
        return false;
    }
    memcpy(uuid, read, sizeof(read));
    return true;
}

void wal__store_object_prefix(const struct wal__store_object *object,
                              char out[WAL__STORE_OBJECT_SIZE])
{
    static const char *const rooms[] = {
        [WAL__OBJECT_EPOCH] = "epoch", [WAL__OBJECT_PART] = "part", [WAL__OBJECT_BASE] = "base",
        [WAL__OBJECT_SEGMENT] = "seg", [WAL__OBJECT_OWN] = "own",   [WAL__OBJECT_BUNDLE] = "bundle",
        [WAL__OBJECT_INDEX] = "index",
    };
    static const uint8_t none[16];
    char id[WAL__UUID_TEXT_SIZE];
    char uuid[WAL__UUID_TEXT_SIZE];

    wal__hex_write(object->uuid, 16, uuid);
    if (object->kind == WAL__OBJECT_PART && object->epoch != 0) {
        (void)snprintf(out, WAL__STORE_OBJECT_SIZE, "%s/part/%016llx/", uuid,
                       (unsigned long long)object->epoch);
        return;
    }
    if ((object->kind == WAL__OBJECT_OWN || object->kind == WAL__OBJECT_BUNDLE) &&
        memcmp(object->id, none, sizeof(none)) != 0) {
        wal__hex_write(object->id, 16, id);
        (void)snprintf(out, WAL__STORE_OBJECT_SIZE, "%s/%s/%s/", uuid, rooms[object->kind], id);
        return;
    }
    (void)snprintf(out, WAL__STORE_OBJECT_SIZE, "%s/%s/", uuid, rooms[object->kind]);
}

struct wal__store_object wal__store_object_of(enum wal__store_object_kind kind,
                                              const uint8_t uuid[16], uint64_t epoch,
                                              uint64_t number)
{
    struct wal__store_object object = {.kind = kind, .epoch = epoch, .number = number};

    memcpy(object.uuid, uuid, sizeof(object.uuid));
    return object;
}

void wal__store_object_format(const struct wal__store_object *object,
                              char out[WAL__STORE_OBJECT_SIZE])
{
    uint64_t number = object->kind == WAL__OBJECT_EPOCH ? object->epoch : object->number;
    size_t size;

    wal__store_object_prefix(object, out);
    size = strlen(out);
    (void)snprintf(out + size, WAL__STORE_OBJECT_SIZE - size, "%016llx",
                   (unsigned long long)number);
    if (object->kind == WAL__OBJECT_SEGMENT || object->kind == WAL__OBJECT_INDEX) {
        size = strlen(out);
        out[size++] = '/';
        wal__hex_write(object->id, 16, out + size);
    }
}

/* Takes a text that *at must begin with. */
static bool take(const char **at, const char *text)
{
    size_t size = strlen(text);

    if (strncmp(*at, text, size) != 0) {
        return false;
    }
    *at += size;
    return true;
}

/* Of an epoch, a part or a base. */
static bool take_number(const char **at, uint64_t *number)
{
    uint8_t bytes[NUMBER / 2];

    if (strlen(*at) < NUMBER || !wal__hex_read(*at, sizeof(bytes), bytes)) {
        return false;
    }
    *number = 0;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        *number = *number << 8 | bytes[i];
    }
    *at += NUMBER;
    return *number > 0 && *number <= STORE_OBJECT_NUMBER_MAX;
}

/* Of an object of a session: its id, and a number. */
static bool take_of_session(const char **at, struct wal__store_object *object)
{
    if (strlen(*at) <= UUID || !wal__uuid_parse(*at, UUID, object->id) || (*at)[UUID] != '/') {
        return false;
    }
    *at += UUID + 1;
    return take_number(at, &object->number);
}

/* Reads what follows UUID and a slash. */
static bool parse_rest(const char *at, struct wal__store_object *object)
{
    bool is_valid = false;

    if (take(&at, "epoch/")) {
        object->kind = WAL__OBJECT_EPOCH;
        is_valid = take_number(&at, &object->epoch);
    } else if (take(&at, "part/")) {
        object->kind = WAL__OBJECT_PART;
        is_valid =
            take_number(&at, &object->epoch) && take(&at, "/") && take_number(&at, &object->number);
    } else if (take(&at, "base/")) {
        object->kind = WAL__OBJECT_BASE;
        is_valid = take_number(&at, &object->number);
    } else if (take(&at, "seg/") || take(&at, "index/")) {
        object->kind = at[-2] == 'g' ? WAL__OBJECT_SEGMENT : WAL__OBJECT_INDEX;
        is_valid = take_number(&at, &object->number) && take(&at, "/") && strlen(at) == UUID &&
                   wal__uuid_parse(at, UUID, object->id);
        at += is_valid ? UUID : 0;
    } else if (take(&at, "own/")) {
        object->kind = WAL__OBJECT_OWN;
        is_valid = take_of_session(&at, object);
    } else if (take(&at, "bundle/")) {
        object->kind = WAL__OBJECT_BUNDLE;
        is_valid = take_of_session(&at, object);
    }
    return is_valid && *at == '\0';
}

bool wal__store_object_parse(const char *name, struct wal__store_object *object)
{
    struct wal__store_object parsed = {.epoch = 0};

    if (strlen(name) <= UUID || name[UUID] != '/' || !wal__uuid_parse(name, UUID, parsed.uuid) ||
        !parse_rest(name + UUID + 1, &parsed)) {
        return false;
    }
    *object = parsed;
    return true;
}

/* --- the object of a part ------------------------------------------------- */

enum { FLOOR_SIZE = 8 };

enum wal_status wal__part_object_seal(struct wal__buf *bytes, uint64_t floor)
{
    uint8_t trailer[WAL__PART_TRAILER_SIZE];

    wal__put64(trailer, floor);
    wal__put32(trailer + FLOOR_SIZE, wal__crc32(0, trailer, FLOOR_SIZE));
    return wal__buf_append(bytes, trailer, sizeof(trailer));
}

enum wal_status wal__part_object_open(struct wal_slice object, const char *name, uint64_t part_size,
                                      struct wal_slice *part, uint64_t *floor,
                                      struct wal_error *error)
{
    const uint8_t *bytes = object.data;
    const uint8_t *trailer;

    if (object.size < WAL__PART_TRAILER_SIZE || object.size - WAL__PART_TRAILER_SIZE != part_size) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, object.size,
                            "the object is damaged: it has %llu bytes, and the "
                            "part in it %llu",
                            (unsigned long long)object.size, (unsigned long long)part_size);
    }
    trailer = bytes + part_size;
    if (wal__get32(trailer + FLOOR_SIZE) != wal__crc32(0, trailer, FLOOR_SIZE)) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, part_size,
                            "the object is damaged: the checksum after the "
                            "part is wrong");
    }
    *part = (struct wal_slice){bytes, part_size};
    *floor = wal__get64(trailer);
    return WAL_OK;
}

/* --- what the objects in JSON share --------------------------------------- */

static bool put_bytes(void *ctx, const void *data, size_t size)
{
    return wal__buf_append(ctx, data, size) == WAL_OK;
}

/* An output that appends to the buffer. */
static struct wal__json_out fields_out(struct wal__buf *buf)
{
    return (struct wal__json_out){.put = put_bytes, .ctx = buf};
}

/* WAL_OK, or WAL_ENOMEM after a failure of the output. */
static enum wal_status fields_end(const struct wal__json_out *out)
{
    return out->has_failed ? WAL_ENOMEM : WAL_OK;
}

/* Finds the members of an object; false unless the text is JSON, and each is there once. */
static bool fields_find(struct wal__json_span json, struct wal__json_member *members, size_t count)
{
    if (wal__json_members(json.data, json.size, members, count, NULL) != WAL__JSON_OK) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (members[i].value.kind == WAL__JSON_NONE || members[i].is_duplicate) {
            return false;
        }
    }
    return true;
}

/* The values of a member; false: it has another form. */
static bool fields_get_integer(const struct wal__json_member *member, int64_t min, int64_t max,
                               int64_t *value)
{
    int64_t found = 0;

    if (member->value.kind != WAL__JSON_NUMBER ||
        wal__json_integer(member->value.span, &found) != WAL__JSON_OK || found < min ||
        found > max) {
        return false;
    }
    *value = found;
    return true;
}

/* Copies a string of printable ASCII and terminates it. */
static bool fields_get_text(const struct wal__json_member *member, char *out, size_t capacity)
{
    char text[256];
    size_t size = 0;

    if (member->value.kind != WAL__JSON_STRING ||
        wal__json_unescape(member->value.span, (uint8_t *)text, sizeof(text), &size, NULL) !=
            WAL__JSON_OK ||
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

/* Checks the member "version" of an object: WAL_OK, WAL_ECORRUPT when there is none, WAL_EVERSION
 * when it is not 1. */
static enum wal_status fields_check_version(struct wal__json_span json, const char *name,
                                            struct wal_error *error)
{
    struct wal__json_member version = {.key = "version"};
    int64_t number = 0;

    if (!fields_find(json, &version, 1) || !fields_get_integer(&version, 1, INT64_MAX, &number)) {
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

/* --- epochs and fences ---------------------------------------------------- */

static enum wal_status fail_json(struct wal_error *error, const char *name, const char *what)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0, "the object is damaged: it is not %s",
                        what);
}

static struct wal__json_span span_of(struct wal_slice bytes)
{
    return (struct wal__json_span){bytes.data, (size_t)bytes.size};
}

enum wal_status wal__epoch_encode(const struct wal__epoch *epoch, struct wal__buf *out)
{
    struct wal__json_out json = fields_out(out);
    char writer[WAL__UUID_TEXT_SIZE];

    wal__hex_write(epoch->writer, 16, writer);
    wal__json_out_open(&json, '{');
    wal__json_out_member_int(&json, "version", 1);
    wal__json_out_member_str(&json, "writer", writer);
    wal__json_out_member_text(
        &json, "host", (struct wal__json_span){(const uint8_t *)epoch->host, strlen(epoch->host)});
    wal__json_out_member_int(&json, "started", epoch->started_ms);
    wal__json_out_close_line(&json);
    return fields_end(&json);
}

enum wal_status wal__epoch_decode(struct wal_slice bytes, const char *name,
                                  struct wal__epoch *epoch, struct wal_error *error)
{
    struct wal__json_member members[] = {{.key = "writer"}, {.key = "host"}, {.key = "started"}};
    struct wal__epoch decoded = {.started_ms = 0};
    char writer[WAL__UUID_TEXT_SIZE];
    enum wal_status status;

    if (bytes.size > WAL__EPOCH_JSON_MAX) {
        return fail_json(error, name, "an epoch");
    }
    status = fields_check_version(span_of(bytes), name, error);
    if (status != WAL_OK) {
        return status;
    }
    if (!fields_find(span_of(bytes), members, 3) ||
        !fields_get_text(&members[0], writer, sizeof(writer)) ||
        !wal__uuid_parse(writer, strlen(writer), decoded.writer) ||
        !fields_get_text(&members[1], decoded.host, sizeof(decoded.host)) ||
        !fields_get_integer(&members[2], 0, INT64_MAX, &decoded.started_ms)) {
        return fail_json(error, name, "an epoch");
    }
    *epoch = decoded;
    return WAL_OK;
}

enum wal_status wal__fence_encode(uint64_t epoch, struct wal__buf *out)
{
    struct wal__json_out json = fields_out(out);

    wal__json_out_open(&json, '{');
    wal__json_out_member_int(&json, "fence", (int64_t)epoch);
    wal__json_out_close_line(&json);
    return fields_end(&json);
}

enum wal_status wal__fence_decode(struct wal_slice bytes, const char *name, uint64_t *epoch,
                                  struct wal_error *error)
{
    struct wal__json_member member = {.key = "fence"};
    int64_t number = 0;

    if (bytes.size == 0 || *(const uint8_t *)bytes.data != '{') {
        *epoch = 0;
        return WAL_OK;
    }
    if (bytes.size > WAL__FENCE_JSON_MAX || !fields_find(span_of(bytes), &member, 1) ||
        !fields_get_integer(&member, 1, INT64_MAX, &number)) {
        return fail_json(error, name, "a part, and not a fence");
    }
    *epoch = (uint64_t)number;
    return WAL_OK;
}

/* --- bases ---------------------------------------------------------------- */

void wal__base_list_init(struct wal__base_list *list, const struct wal__heap *heap)
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

const struct wal__base_segment *wal__base_list_at(const struct wal__base_list *list, size_t at)
{
    WAL__ASSERT(at < wal__base_list_count(list));
    return (const struct wal__base_segment *)(const void *)list->segments.data + at;
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
    struct wal__store_object object = {.kind = WAL__OBJECT_SEGMENT, .number = segment->number};

    memcpy(object.id, segment->id, sizeof(object.id));
    wal__store_object_format(&object, name);
    return strchr(name, '/') + 1;
}

enum wal_status wal__base_list_encode(const struct wal__base_list *list, struct wal__buf *out)
{
    struct wal__json_out json = fields_out(out);

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

        wal__json_out_text(&json, (struct wal__json_span){(const uint8_t *)text, strlen(text)});
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
    return fields_end(&json);
}

static enum wal_status fail_base(struct wal_error *error, const char *name)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0, "the object is damaged: it is not a base");
}

/* Reads the name of a segment from a string, which has no escapes. */
static bool parse_segment(const struct wal__json_token *token, struct wal__base_segment *segment)
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
    if (!wal__store_object_parse(name, &object) || object.kind != WAL__OBJECT_SEGMENT) {
        return false;
    }
    *segment = (struct wal__base_segment){.number = object.number};
    memcpy(segment->id, object.id, sizeof(segment->id));
    return true;
}

static enum wal_status parse_segments(struct wal__json_span array, const char *name,
                                      struct wal__base_list *list, struct wal_error *error)
{
    struct wal__json_scan scan;
    struct wal__json_token token = {.kind = WAL__JSON_NONE};
    struct wal__base_segment segment;
    enum wal_status status = WAL_OK;

    wal__json_scan_init(&scan, array.data, array.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK || token.kind != WAL__JSON_ARRAY) {
        return fail_base(error, name);
    }
    while (status == WAL_OK) {
        if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK) {
            return fail_base(error, name);
        }
        if (token.kind == WAL__JSON_ARRAY_END && wal__base_list_count(list) > 0) {
            return WAL_OK;
        }
        if (!parse_segment(&token, &segment)) {
            return fail_base(error, name);
        }
        status = wal__base_list_add(list, &segment);
    }
    return status == WAL_ENOMEM ? wal__no_memory(error) : fail_base(error, name);
}

enum wal_status wal__base_list_decode(struct wal_slice bytes, const char *name,
                                      struct wal__base_list *list, struct wal_error *error)
{
    const struct wal__json_span json = {bytes.data, (size_t)bytes.size};
    const int64_t max = (int64_t)STORE_OBJECT_NUMBER_MAX;
    struct wal__json_member members[] = {
        {.key = "created"}, {.key = "epoch"}, {.key = "part"}, {.key = "segments"}};
    struct wal__json_member erased = {.key = "erased"};
    struct wal__base_list decoded;
    int64_t epoch = 0;
    int64_t part = 0;
    int64_t base = 0;
    enum wal_status status;

    if (bytes.size > WAL__BASE_JSON_MAX) {
        return fail_base(error, name);
    }
    status = fields_check_version(json, name, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__base_list_init(&decoded, list->segments.heap);
    if (!fields_find(json, members, 4) ||
        !fields_get_integer(&members[0], 0, INT64_MAX, &decoded.created_ms) ||
        !fields_get_integer(&members[1], 1, max, &epoch) ||
        !fields_get_integer(&members[2], 1, max, &part) ||
        (fields_find(json, &erased, 1) && !fields_get_integer(&erased, 0, max, &base))) {
        return fail_base(error, name);
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

/* --- claims of sessions --------------------------------------------------- */

enum wal_status wal__own_id(const char *session, uint8_t id[16])
{
    const struct wal__span text = {(const uint8_t *)session, strlen(session)};
    struct wal__sha256_alg sha256;
    struct wal__digest digest;
    enum wal_status status;

    wal__sha256_alg_init(&sha256);
    status = wal__sha256(&sha256, text, &digest);
    wal__sha256_alg_deinit(&sha256);
    if (status == WAL_OK) {
        memcpy(id, digest.bytes, 16);
    }
    return status;
}

static struct wal__json_span span_of_text(const char *text)
{
    return (struct wal__json_span){(const uint8_t *)text, strlen(text)};
}

enum wal_status wal__own_encode(const struct wal__own *own, struct wal__buf *out)
{
    struct wal__json_out json = fields_out(out);
    char store[WAL__UUID_TEXT_SIZE];

    wal__hex_write(own->store, 16, store);
    wal__json_out_open(&json, '{');
    wal__json_out_member_int(&json, "version", 1);
    wal__json_out_member_text(&json, "session", span_of_text(own->session));
    wal__json_out_member_int(&json, "move", (int64_t)own->move);
    wal__json_out_member_str(&json, "store", store);
    wal__json_out_member_text(&json, "host", span_of_text(own->host));
    wal__json_out_member_text(&json, "entry", span_of_text(own->entry));
    wal__json_out_member_int(&json, "sequence", (int64_t)own->sequence);
    wal__json_out_member_int(&json, "claimed", own->claimed_ms);
    wal__json_out_close_line(&json);
    return fields_end(&json);
}

/* Copies an id: any text without U+0000, terminated. */
static bool get_own_id(const struct wal__json_member *member, char out[WAL_ID_SIZE])
{
    char text[WAL_ID_SIZE];
    bool has_nul = false;
    size_t size = 0;

    if (member->value.kind != WAL__JSON_STRING ||
        wal__json_unescape(member->value.span, (uint8_t *)text, sizeof(text) - 1, &size,
                           &has_nul) != WAL__JSON_OK ||
        has_nul) {
        return false;
    }
    memcpy(out, text, size);
    out[size] = '\0';
    return true;
}

enum wal_status wal__own_decode(struct wal_slice bytes, const char *name, struct wal__own *own,
                                struct wal_error *error)
{
    const struct wal__json_span json = {bytes.data, (size_t)bytes.size};
    struct wal__json_member members[] = {
        {.key = "session"},  {.key = "store"},   {.key = "host"}, {.key = "entry"},
        {.key = "sequence"}, {.key = "claimed"}, {.key = "move"}};
    struct wal__own decoded = {.sequence = 0};
    char store[WAL__UUID_TEXT_SIZE];
    int64_t sequence = 0;
    int64_t move = 0;
    enum wal_status status = WAL_ECORRUPT;

    if (bytes.size <= WAL__OWN_JSON_MAX) {
        status = fields_check_version(json, name, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (status != WAL_OK || !fields_find(json, members, 7) ||
        !get_own_id(&members[0], decoded.session) || decoded.session[0] == '\0' ||
        !fields_get_text(&members[1], store, sizeof(store)) ||
        !wal__uuid_parse(store, strlen(store), decoded.store) ||
        !fields_get_text(&members[2], decoded.host, sizeof(decoded.host)) ||
        !get_own_id(&members[3], decoded.entry) ||
        !fields_get_integer(&members[4], 0, INT64_MAX, &sequence) ||
        !fields_get_integer(&members[5], 0, INT64_MAX, &decoded.claimed_ms) ||
        !fields_get_integer(&members[6], 1, INT64_MAX / 2, &move)) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                            "the object is damaged: it does not say where a "
                            "session goes on");
    }
    decoded.sequence = (uint64_t)sequence;
    decoded.move = (uint64_t)move;
    *own = decoded;
    return WAL_OK;
}

/* --- the list of sessions ------------------------------------------------- */

enum {
    HOUR_MS = 60 * 60 * 1000,
    FRAME_SIZE = 1024 /* bytes of a list without its sessions, at most */
};

/* The JSON of a session. */
struct row {
    int64_t updated_ms;
    size_t offset;
    size_t size;
    const uint8_t *json; /* while the list is encoded */
};

void wal__session_list_name(const uint8_t uuid[16], char out[WAL__STORE_OBJECT_SIZE])
{
    static const char name[] = "/sessions";

    wal__hex_write(uuid, 16, out);
    memcpy(out + WAL__UUID_TEXT_SIZE - 1, name, sizeof(name));
}

void wal__session_list_init(struct wal__session_list *list, const struct wal__heap *heap)
{
    wal__buf_init(&list->json, heap);
    wal__buf_init(&list->rows, heap);
}

void wal__session_list_deinit(struct wal__session_list *list)
{
    wal__buf_deinit(&list->json);
    wal__buf_deinit(&list->rows);
}

static size_t count_of(const struct wal__session_list *list)
{
    return list->rows.size / sizeof(struct row);
}

/* --- encoding ----------------------------------------------------------- */

static void put_text(struct wal__json_out *json, const char *key, struct wal_slice text)
{
    wal__json_out_member_text(json, key, (struct wal__json_span){text.data, (size_t)text.size});
}

enum wal_status wal__session_list_add(struct wal__session_list *list,
                                      const struct wal_session_info *session)
{
    struct wal__json_out json = fields_out(&list->json);
    const int64_t ms = session->updated_ms;
    struct row row = {.updated_ms = ms < 0 ? 0 : ms - ms % HOUR_MS, .offset = list->json.size};
    enum wal_status status;

    if (count_of(list) == WAL__SESSION_LIST_MAX) {
        return WAL_END;
    }
    wal__json_out_open(&json, '{');
    put_text(&json, "id", session->id);
    put_text(&json, "title", session->title);
    put_text(&json, "text", session->first_text);
    put_text(&json, "cwd", session->cwd);
    put_text(&json, "project", session->project);
    wal__json_out_member_int(&json, "updated", row.updated_ms);
    wal__json_out_member_bool(&json, "moved", (session->flags & WAL_SESSION_MOVED) != 0);
    wal__json_out_member_int(&json, "bundle", (int64_t)session->last_sequence);
    wal__json_out_close(&json, '}');
    status = fields_end(&json);
    row.size = list->json.size - row.offset;
    if (status == WAL_OK &&
        list->json.size + count_of(list) + FRAME_SIZE > WAL__SESSION_LIST_JSON_MAX) {
        status = WAL_END;
    }
    if (status == WAL_OK) {
        status = wal__buf_append(&list->rows, &row, sizeof(row));
    }
    if (status != WAL_OK) {
        list->json.size = row.offset;
    }
    return status;
}

/* The newest hour first. */
static int compare(const void *a, const void *b)
{
    const struct row *one = a;
    const struct row *other = b;

    if (one->updated_ms != other->updated_ms) {
        return one->updated_ms > other->updated_ms ? -1 : 1;
    }
    return wal__span_compare((struct wal__span){one->json, one->size},
                             (struct wal__span){other->json, other->size});
}

enum wal_status wal__session_list_encode(struct wal__session_list *list, const char *host,
                                         struct wal__buf *out)
{
    struct wal__json_out json = fields_out(out);
    struct row *rows = (struct row *)(void *)list->rows.data;
    const size_t count = count_of(list);

    for (size_t i = 0; i < count; i++) {
        rows[i].json = list->json.data + rows[i].offset;
    }
    if (count > 0) {
        qsort(rows, count, sizeof(*rows), compare);
    }
    wal__json_out_open(&json, '{');
    wal__json_out_member_int(&json, "version", 1);
    wal__json_out_member_text(&json, "host",
                              (struct wal__json_span){(const uint8_t *)host, strlen(host)});
    wal__json_out_member_open(&json, "sessions", '[');
    for (size_t i = 0; i < count; i++) {
        wal__json_out_value(&json, (struct wal__json_span){rows[i].json, rows[i].size});
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
    return fields_end(&json);
}

/* --- decoding ----------------------------------------------------------- */

static enum wal_status fail(struct wal_error *error, const char *name)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                        "the object is damaged: it is not a list of sessions");
}

/* Appends a text to `texts`, which has the capacity. */
static bool get_text(const struct wal__json_member *member, struct wal__buf *texts,
                     struct wal_slice *text)
{
    uint8_t *at = texts->data + texts->size;
    size_t size = 0;

    if (member->value.kind != WAL__JSON_STRING ||
        wal__json_unescape(member->value.span, at, texts->capacity - texts->size, &size, NULL) !=
            WAL__JSON_OK) {
        return false;
    }
    texts->size += size;
    *text = (struct wal_slice){at, size};
    return true;
}

/* Reads one session; its texts are put into `texts`. */
static bool get_session(struct wal__json_span json, struct wal__buf *texts,
                        struct wal_session_info *session)
{
    struct wal__json_member members[] = {
        {.key = "id"},      {.key = "title"}, {.key = "text"},    {.key = "cwd"},
        {.key = "project"}, {.key = "moved"}, {.key = "updated"}, {.key = "bundle"},
    };
    const enum wal__json_kind *moved = &members[5].value.kind;
    int64_t bundle = 0;

    *session = (struct wal_session_info)WAL_INIT(wal_session_info);
    texts->size = 0;
    if (!fields_find(json, members, sizeof(members) / sizeof(members[0])) ||
        !get_text(&members[0], texts, &session->id) ||
        !get_text(&members[1], texts, &session->title) ||
        !get_text(&members[2], texts, &session->first_text) ||
        !get_text(&members[3], texts, &session->cwd) ||
        !get_text(&members[4], texts, &session->project) ||
        (*moved != WAL__JSON_TRUE && *moved != WAL__JSON_FALSE) ||
        !fields_get_integer(&members[7], 0, INT64_MAX / 4, &bundle) ||
        !fields_get_integer(&members[6], 0, INT64_MAX, &session->updated_ms)) {
        return false;
    }
    session->flags = *moved == WAL__JSON_TRUE ? WAL_SESSION_MOVED : 0U;
    session->last_sequence = (uint64_t)bundle;
    return session->id.size > 0 && session->id.size < WAL_ID_SIZE &&
           memchr(session->id.data, 0, (size_t)session->id.size) == NULL;
}

static enum wal_status read_sessions(struct wal__json_span array, const char *name,
                                     const char *host, struct wal__buf *texts,
                                     wal__session_list_fn *each, void *ctx, struct wal_error *error)
{
    struct wal__json_scan scan;
    struct wal__json_token token = {.kind = WAL__JSON_NONE};
    struct wal_session_info session;
    int32_t result = 0;

    wal__json_scan_init(&scan, array.data, array.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK || token.kind != WAL__JSON_ARRAY) {
        return fail(error, name);
    }
    while (result == 0) {
        if (wal__json_scan_skip(&scan, &token) != WAL__JSON_OK) {
            return fail(error, name);
        }
        if (token.kind == WAL__JSON_ARRAY_END) {
            return WAL_OK;
        }
        if (token.kind != WAL__JSON_OBJECT || !get_session(token.span, texts, &session)) {
            return fail(error, name);
        }
        result = each(ctx, host, &session);
    }
    return wal__fail_at(error, WAL_ECALLBACK, result, NULL, 0,
                        "the list of sessions was ended by its callback");
}

enum wal_status wal__session_list_decode(struct wal_slice bytes, const char *name,
                                         const struct wal__heap *heap, wal__session_list_fn *each,
                                         void *ctx, struct wal_error *error)
{
    const struct wal__json_span json = {bytes.data, (size_t)bytes.size};
    struct wal__json_member members[] = {{.key = "host"}, {.key = "sessions"}};
    char host[WAL__EPOCH_HOST_SIZE];
    struct wal__buf texts;
    uint8_t *end;
    enum wal_status status;

    if (bytes.size > WAL__SESSION_LIST_JSON_MAX) {
        return fail(error, name);
    }
    status = fields_check_version(json, name, error);
    if (status != WAL_OK) {
        return status;
    }
    if (!fields_find(json, members, 2) || !fields_get_text(&members[0], host, sizeof(host))) {
        return fail(error, name);
    }
    /* No text is longer than its JSON. */
    wal__buf_init(&texts, heap);
    status = wal__buf_reserve(&texts, json.size, &end);
    status = status == WAL_OK
                 ? read_sessions(members[1].value.span, name, host, &texts, each, ctx, error)
                 : wal__no_memory(error);
    wal__buf_deinit(&texts);
    return status;
}
