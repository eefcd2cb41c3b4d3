/*
 * value.c - values of JavaScript (value.h).
 */
#include "bindings/node/native/base/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers above are not exact in JavaScript; a greater one fails the call. */
#define VALUE_NUMBER_MAX (UINT64_C(1) << 53)

/* --- values --------------------------------------------------------------- */

enum {
    /* A string has at most 2^29 - 24 characters in V8; what may have more is a buffer. */
    STRING_SIZE_MAX = (1 << 29) - 25,
    /* A character of UTF-8, which V8 does not write in part. */
    CHARACTER_SIZE = 4
};

/* --- text ----------------------------------------------------------------- */

static const uint64_t high_bits = UINT64_C(0x8080808080808080);

static uint64_t load(const uint8_t *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

/* The number of bytes below 128 at the start, or less by up to 31. */
static size_t ascii_prefix(const uint8_t *at, size_t size)
{
    size_t count = 0;

    while (size - count >= 32 && ((load(at + count) | load(at + count + 8) | load(at + count + 16) |
                                   load(at + count + 24)) &
                                  high_bits) == 0) {
        count += 32;
    }
    return count;
}

static bool utf8_is_ascii(struct wal_slice text)
{
    const uint8_t *bytes = text.data;
    size_t at = ascii_prefix(bytes, text.size);

    while (at < text.size && bytes[at] < 0x80) {
        at++;
    }
    return at == text.size;
}

static bool is_tail(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The size of the valid sequence at `at` with `left` bytes, or 0. */
static size_t sequence_size(const uint8_t *at, size_t left)
{
    if (at[0] < 0x80) {
        return 1;
    }
    if (at[0] >= 0xc2 && at[0] <= 0xdf) {
        return left >= 2 && is_tail(at[1]) ? 2 : 0;
    }
    if ((at[0] & 0xf0) == 0xe0) {
        return left >= 3 && is_tail(at[1]) && is_tail(at[2]) && (at[0] != 0xe0 || at[1] >= 0xa0) &&
                       (at[0] != 0xed || at[1] < 0xa0)
                   ? 3
                   : 0;
    }
    if (at[0] >= 0xf0 && at[0] <= 0xf4) {
        return left >= 4 && is_tail(at[1]) && is_tail(at[2]) && is_tail(at[3]) &&
                       (at[0] != 0xf0 || at[1] >= 0x90) && (at[0] != 0xf4 || at[1] < 0x90)
                   ? 4
                   : 0;
    }
    return 0;
}

/* Whether it is UTF-8: no overlong form, no surrogate, nothing above U+10FFFF. */
static bool utf8_is_valid(struct wal_slice text)
{
    const uint8_t *at = text.data;
    size_t left = text.size;

    while (left > 0) {
        size_t size = ascii_prefix(at, left);

        if (size == 0) {
            size = sequence_size(at, left);
        }
        if (size == 0) {
            return false;
        }
        at += size;
        left -= size;
    }
    return true;
}

/* Whether U+FFFD is in it, which a half of a surrogate pair becomes. */
static bool utf8_has_replacement(struct wal_slice text)
{
    return text.size != 0 && memmem(text.data, text.size, "\xef\xbf\xbd", 3);
}

/* Whether UTF-16 has half a surrogate pair. */
static bool utf16_has_half(const char16_t *units, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if ((units[i] & 0xfc00) == 0xd800 && i + 1 < count && (units[i + 1] & 0xfc00) == 0xdc00) {
            i++;
        } else if ((units[i] & 0xf800) == 0xd800) {
            return true;
        }
    }
    return false;
}

/* --- reading -------------------------------------------------------------- */

static napi_valuetype type_of(struct call *call, napi_value value)
{
    napi_valuetype type = napi_undefined;

    if (!call->failed) {
        call_ok(call, napi_typeof(call->env, value, &type));
    }
    return type;
}

bool value_is_absent(struct call *call, napi_value value)
{
    napi_valuetype type = type_of(call, value);

    return type == napi_undefined || type == napi_null;
}

/* Copies a string into what is left of a block, if it fits. */
static bool copy_short(struct call *call, napi_value value, struct wal_slice *text)
{
    size_t room;
    size_t size = 0;
    uint8_t *bytes = arena_room(call->arena, &room);

    if (bytes == NULL || room <= CHARACTER_SIZE ||
        !call_ok(call, napi_get_value_string_utf8(call->env, value, (char *)bytes, room, &size)) ||
        size + CHARACTER_SIZE >= room) {
        return false;
    }
    arena_take(call->arena, size + 1);
    *text = (struct wal_slice){bytes, size};
    return true;
}

static bool copy_long(struct call *call, napi_value value, struct wal_slice *text)
{
    size_t size = 0;
    char *bytes;

    if (!call_ok(call, napi_get_value_string_utf8(call->env, value, NULL, 0, &size))) {
        return false;
    }
    bytes = arena_alloc(call->arena, size + 1);
    if (bytes == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a string of %zu bytes", size);
        return false;
    }
    if (!call_ok(call, napi_get_value_string_utf8(call->env, value, bytes, size + 1, &size))) {
        return false;
    }
    *text = (struct wal_slice){bytes, size};
    return true;
}

/* Whether U+FFFD in the copy was half a surrogate pair in the string. */
static bool has_half(struct call *call, napi_value value)
{
    size_t count = 0;
    char16_t *units;
    bool result = false;

    if (!call_ok(call, napi_get_value_string_utf16(call->env, value, NULL, 0, &count))) {
        return false;
    }
    units = malloc((count + 1) * sizeof(*units));
    if (units == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a string");
        return false;
    }
    if (call_ok(call, napi_get_value_string_utf16(call->env, value, units, count + 1, &count))) {
        result = utf16_has_half(units, count);
    }
    memory_clear(units, (count + 1) * sizeof(*units));
    free(units);
    return result;
}

static struct wal_slice read_string(struct call *call, napi_value value)
{
    struct wal_slice text = {NULL, 0};

    if (!copy_short(call, value, &text) && !call->failed) {
        (void)copy_long(call, value, &text);
    }
    if (!call->failed && utf8_has_replacement(text) && has_half(call, value)) {
        call_fail(call, WAL_EINVAL,
                  "a string has half a surrogate pair, which UTF-8 cannot "
                  "express");
    }
    return text;
}

struct wal_slice value_text(struct call *call, napi_value value)
{
    napi_valuetype type = type_of(call, value);

    if (type == napi_string) {
        return read_string(call, value);
    }
    if (type != napi_undefined && type != napi_null) {
        call_fail(call, WAL_EINVAL, "a string is expected");
    }
    return (struct wal_slice){NULL, 0};
}

struct wal_slice value_bytes(struct call *call, napi_value value)
{
    napi_typedarray_type kind = napi_uint8_array;
    bool is_array = false;
    void *data = NULL;
    uint8_t *copy;
    size_t size = 0;

    if (call->failed || !call_ok(call, napi_is_typedarray(call->env, value, &is_array)) ||
        !is_array) {
        return value_text(call, value);
    }
    if (!call_ok(call,
                 napi_get_typedarray_info(call->env, value, &kind, &size, &data, NULL, NULL))) {
        return (struct wal_slice){NULL, 0};
    }
    if (kind != napi_uint8_array) {
        call_fail(call, WAL_EINVAL, "a string or a Uint8Array is expected");
        return (struct wal_slice){NULL, 0};
    }
    copy = arena_alloc(call->arena, size + 1);
    if (copy == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for %zu bytes", size);
        return (struct wal_slice){NULL, 0};
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    copy[size] = 0;
    return (struct wal_slice){copy, size};
}

const char *value_path(struct call *call, napi_value value)
{
    struct wal_slice path = value_text(call, value);

    if (call->failed) {
        return "";
    }
    if (path.size == 0 || memchr(path.data, 0, path.size) != NULL) {
        call_fail(call, WAL_EINVAL,
                  "a path is expected: a string that is not "
                  "empty and has no zero character");
        return "";
    }
    return path.data;
}

/* A whole number between the limits; undefined is 0. */
static double read_number(struct call *call, napi_value value, double low, double high)
{
    napi_valuetype type = type_of(call, value);
    double number = 0;

    if (call->failed || type == napi_undefined) {
        return 0;
    }
    if (type == napi_number) {
        call_ok(call, napi_get_value_double(call->env, value, &number));
    }
    if (type != napi_number || !(number >= low && number <= high) ||
        number != (double)(int64_t)number) {
        call_fail(call, WAL_EINVAL, "a whole number between %.0f and %.0f is expected", low, high);
        return 0;
    }
    return number;
}

uint32_t value_u32(struct call *call, napi_value value)
{
    return (uint32_t)read_number(call, value, 0, UINT32_MAX);
}

uint64_t value_u64(struct call *call, napi_value value)
{
    return (uint64_t)read_number(call, value, 0, (double)VALUE_NUMBER_MAX);
}

static int64_t value_i64(struct call *call, napi_value value)
{
    return (int64_t)read_number(call, value, -(double)VALUE_NUMBER_MAX, (double)VALUE_NUMBER_MAX);
}

bool value_bool(struct call *call, napi_value value)
{
    bool result = false;

    return type_of(call, value) == napi_boolean &&
           call_ok(call, napi_get_value_bool(call->env, value, &result)) && result;
}

uint32_t value_length(struct call *call, napi_value array)
{
    uint32_t length = 0;

    if (value_is_absent(call, array)) {
        return 0;
    }
    call_ok(call, napi_get_array_length(call->env, array, &length));
    return length;
}

static napi_value value_item(struct call *call, napi_value array, uint32_t index)
{
    napi_value item = NULL;

    if (call->failed || !call_ok(call, napi_get_element(call->env, array, index, &item))) {
        return make_undefined(call);
    }
    return item;
}

struct wal_slice value_path_slice(struct call *call, napi_value value)
{
    const char *path;

    if (value_is_absent(call, value)) {
        return (struct wal_slice){NULL, 0};
    }
    path = value_path(call, value);
    return (struct wal_slice){path, strlen(path)};
}

struct wal_slice *value_texts(struct call *call, napi_value array, bool are_paths, uint32_t *count)
{
    uint32_t length = value_length(call, array);
    struct wal_slice *texts;

    if (call->failed || value_is_absent(call, array)) {
        return NULL;
    }
    texts = arena_calloc(call->arena, length + (size_t)1, sizeof(texts[0]));
    if (texts == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for %u texts", length);
        return NULL;
    }
    for (uint32_t i = 0; i < length; i++) {
        napi_value item = value_item(call, array, i);

        texts[i] = are_paths ? value_path_slice(call, item) : value_text(call, item);
        if (!call->failed && texts[i].data == NULL) {
            call_fail(call, WAL_EINVAL, "a string is expected");
        }
    }
    *count = length;
    return call->failed ? NULL : texts;
}

/* --- making --------------------------------------------------------------- */

napi_value make_undefined(struct call *call)
{
    napi_value made = NULL;

    call_ok(call, napi_get_undefined(call->env, &made));
    return made;
}

napi_value make_null(struct call *call)
{
    napi_value made = NULL;

    call_ok(call, napi_get_null(call->env, &made));
    return made;
}

napi_value make_bool(struct call *call, bool value)
{
    napi_value made = NULL;

    call_ok(call, napi_get_boolean(call->env, value, &made));
    return made;
}

static napi_value make_double(struct call *call, double value)
{
    napi_value made = NULL;

    call_ok(call, napi_create_double(call->env, value, &made));
    return made;
}

napi_value make_number(struct call *call, uint64_t value)
{
    if (value > VALUE_NUMBER_MAX) {
        call_fail(call, WAL_EINVAL, "a number is above 2^53");
        return NULL;
    }
    return make_double(call, (double)value);
}

napi_value make_signed(struct call *call, int64_t value)
{
    if (value < -(int64_t)VALUE_NUMBER_MAX || value > (int64_t)VALUE_NUMBER_MAX) {
        call_fail(call, WAL_EINVAL, "a number is above 2^53");
        return NULL;
    }
    return make_double(call, (double)value);
}

napi_value make_text(struct call *call, struct wal_slice text)
{
    napi_value made = NULL;

    if (call->addon->prefers_latin1 && utf8_is_ascii(text)) {
        call_ok(call, napi_create_string_latin1(call->env, text.size == 0 ? "" : text.data,
                                                text.size, &made));
    } else {
        call_ok(call, napi_create_string_utf8(call->env, text.size == 0 ? "" : text.data, text.size,
                                              &made));
    }
    return made;
}

napi_value make_string(struct call *call, const char *text)
{
    return make_text(call, (struct wal_slice){text, strlen(text)});
}

napi_value make_optional(struct call *call, struct wal_slice text)
{
    return text.size == 0 ? make_null(call) : make_text(call, text);
}

napi_value make_buffer(struct call *call, struct wal_slice bytes)
{
    napi_value made = NULL;
    void *copy = NULL;

    if (bytes.size > VALUE_NUMBER_MAX ||
        !call_ok(call, napi_create_buffer(call->env, bytes.size, &copy, &made))) {
        return NULL;
    }
    if (bytes.size > 0) {
        memcpy(copy, bytes.data, bytes.size);
    }
    return made;
}

napi_value make_text_or_buffer(struct call *call, struct wal_slice bytes)
{
    return bytes.size <= STRING_SIZE_MAX && utf8_is_valid(bytes) ? make_text(call, bytes)
                                                                 : make_buffer(call, bytes);
}

napi_value make_digest(struct call *call, const uint8_t digest[WAL_DIGEST_SIZE])
{
    char text[HEX_SIZE];

    hex_write(text, digest, WAL_DIGEST_SIZE);
    return make_text(call, (struct wal_slice){text, sizeof(text)});
}

napi_value make_array(struct call *call)
{
    napi_value made = NULL;

    call_ok(call, napi_create_array(call->env, &made));
    return made;
}

void array_push(struct call *call, napi_value array, uint32_t index, napi_value value)
{
    if (!call->failed && array != NULL && value != NULL) {
        call_ok(call, napi_set_element(call->env, array, index, value));
    }
}

napi_value make_object(struct call *call)
{
    napi_value made = NULL;

    call_ok(call, napi_create_object(call->env, &made));
    return made;
}

void object_set(struct call *call, napi_value object, const char *name, napi_value value)
{
    if (!call->failed && object != NULL && value != NULL) {
        call_ok(call, napi_set_named_property(call->env, object, name, value));
    }
}

void object_number(struct call *call, napi_value object, const char *name, uint64_t value)
{
    object_set(call, object, name, make_number(call, value));
}

/* --- structs -------------------------------------------------------------- */

/* --- out ---------------------------------------------------------------- */

/* Numbers of 32 bits. */
static napi_value make_small(struct call *call, const struct field *field, const void *place)
{
    uint32_t bits;

    memcpy(&bits, place, sizeof(bits));
    switch (field->kind) {
    case FIELD_U32:
        return make_number(call, bits);
    case FIELD_I32:
        return make_signed(call, (int32_t)bits);
    case FIELD_BOOL:
        return make_bool(call, bits != 0);
    case FIELD_FLAG:
        return make_bool(call, (bits & field->mask) != 0);
    case FIELD_NAME:
        return make_string(call, field->names[bits < field->mask ? bits : 0]);
    default:
        return (int32_t)bits == WAL_OK ? make_null(call)
                                       : make_string(call, status_code((int32_t)bits));
    }
}

/* Numbers of 64 bits. */
static napi_value make_wide(struct call *call, const struct field *field, const void *place)
{
    union {
        uint64_t whole;
        int64_t with_sign;
        double real;
    } number;

    memcpy(&number, place, sizeof(number));
    switch (field->kind) {
    case FIELD_U64:
        return make_number(call, number.whole);
    case FIELD_U64_OR_NULL:
        return number.whole == UINT64_MAX ? make_null(call) : make_number(call, number.whole);
    case FIELD_I64:
        return make_signed(call, number.with_sign);
    case FIELD_MS:
        return make_double(call, (double)number.with_sign / 1e6);
    default:
        return make_double(call, number.real);
    }
}

static napi_value make_slice(struct call *call, const struct field *field, struct wal_slice text)
{
    if (text.size == 0 && field->kind == FIELD_OR_NONE) {
        return make_undefined(call);
    }
    return text.size == 0 && field->kind == FIELD_OR_NULL ? make_null(call) : make_text(call, text);
}

static napi_value make_counts(struct call *call, const struct field *field, const void *place)
{
    napi_value object = make_object(call);
    const uint64_t *counts = place;

    for (uint32_t i = 0; i < field->size / sizeof(counts[0]); i++) {
        if (counts[i] > 0) {
            object_number(call, object, field->name_of(i), counts[i]);
        }
    }
    return object;
}

static napi_value make_field(struct call *call, const struct field *field, const char *filled)
{
    const void *place = filled + field->offset;
    const struct wal_error *error;
    const char *string;
    struct wal_slice text;
    char uuid[UUID_TEXT_SIZE];

    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_OR_NULL:
    case FIELD_OR_NONE:
    case FIELD_PATH:
    case FIELD_CONTENT:
        memcpy(&text, place, sizeof(text));
        return make_slice(call, field, text);
    case FIELD_STRING:
        memcpy(&string, place, sizeof(string));
        return make_string(call, string);
    case FIELD_COUNTS:
        return make_counts(call, field, place);
    case FIELD_CHARS:
    case FIELD_ID:
        text = (struct wal_slice){place, strnlen(place, field->size)};
        return text.size == 0 && field->kind == FIELD_ID ? make_null(call) : make_text(call, text);
    case FIELD_U64:
    case FIELD_U64_OR_NULL:
    case FIELD_I64:
    case FIELD_MS:
    case FIELD_DOUBLE:
        return make_wide(call, field, place);
    case FIELD_DIGEST:
    case FIELD_NO_DIGEST:
        return field->kind == FIELD_NO_DIGEST && digest_is_zero(place) ? make_null(call)
                                                                       : make_digest(call, place);
    case FIELD_UUID:
        uuid_write(uuid, place);
        return make_string(call, uuid);
    case FIELD_ERROR:
        memcpy(&error, place, sizeof(error));
        return error == NULL ? make_null(call) : call_make_error(call, error);
    default:
        break;
    }
    return make_small(call, field, place);
}

static napi_value make_structs(struct call *call, const struct field *field, const char *filled)
{
    struct structs structs = structs_of(field, filled);
    napi_value array = make_array(call);

    for (uint32_t i = 0; i < structs.count && !call->failed; i++) {
        const char *item = structs.first + (size_t)i * structs.stride;
        napi_value object = make_object(call);

        for (uint32_t j = 0; j < field->items->count; j++) {
            object_set(call, object, field->items->fields[j].name,
                       make_field(call, &field->items->fields[j], item));
        }
        array_push(call, array, i, object);
    }
    return array;
}

napi_value make_struct(struct call *call, const struct table *table, const void *filled)
{
    napi_value object;

    if (table->fields[0].name == NULL) {
        return make_field(call, &table->fields[0], filled);
    }
    object = make_object(call);
    for (uint32_t i = 0; i < table->count && !call->failed; i++) {
        const struct field *field = &table->fields[i];

        object_set(call, object, field->name,
                   field->kind == FIELD_STRUCTS ? make_structs(call, field, filled)
                                                : make_field(call, field, filled));
    }
    return object;
}

napi_value make_rows(struct call *call, const struct table *table, table_next *next, void *cursor,
                     uint32_t max)
{
    napi_value array = make_array(call);
    union table_item item;

    memset(&item, 0, table->size);
    item.struct_size = table->size;
    for (uint32_t i = 0; i < max && !call->failed; i++) {
        enum wal_status status = next(cursor, &item, call_error(call));

        if (!call_check(call, status) || status == WAL_END) {
            break;
        }
        array_push(call, array, i, make_struct(call, table, &item));
    }
    return array;
}

napi_value make_names(struct call *call, const char *name_of(uint32_t index))
{
    napi_value array = make_array(call);
    const char *name;

    for (uint32_t i = 0; (name = name_of(i)) != NULL; i++) {
        array_push(call, array, i, make_string(call, name));
    }
    return array;
}

/* --- in ----------------------------------------------------------------- */

void value_digest(struct call *call, napi_value value, uint8_t digest[WAL_DIGEST_SIZE])
{
    if (!digest_read(value_text(call, value), digest)) {
        call_fail(call, WAL_EINVAL, "a digest is expected: 64 hexadecimal digits");
    }
}

/* Milliseconds with a fraction as nanoseconds. */
static int64_t read_time(struct call *call, napi_value value)
{
    /* Above, a conversion to nanoseconds is not defined. */
    const double limit = 9e12;
    napi_valuetype type = napi_undefined;
    double time = 0;

    if (call->failed || !call_ok(call, napi_typeof(call->env, value, &type)) ||
        type == napi_undefined) {
        return 0;
    }
    if (type == napi_number) {
        call_ok(call, napi_get_value_double(call->env, value, &time));
    }
    if (type != napi_number || !(time >= -limit && time <= limit)) {
        call_fail(call, WAL_EINVAL, "a time in milliseconds since 1970 is expected");
        return 0;
    }
    return (int64_t)(time * 1e6);
}

/* Copies a text with its NUL. */
static void read_chars(struct call *call, const struct field *field, napi_value value, char *place)
{
    struct wal_slice text = value_text(call, value);

    if (text.size >= field->size ||
        (text.size > 0 && memchr(text.data, 0, (size_t)text.size) != NULL)) {
        call_fail(call, WAL_EINVAL, "the %s is not valid", field->name);
    } else if (text.size > 0) {
        memcpy(place, text.data, (size_t)text.size);
    }
}

static void read_field(struct call *call, const struct field *field, napi_value value, char *made)
{
    void *place = made + field->offset;
    const struct wal_slice *texts;
    uint32_t count = 0;

    switch (field->kind) {
    case FIELD_TEXT:
        *(struct wal_slice *)place = value_text(call, value);
        break;
    case FIELD_PATH:
        *(struct wal_slice *)place = value_path_slice(call, value);
        break;
    case FIELD_SECRET:
        call->arena->is_secret = true;
        *(struct wal_slice *)place = value_bytes(call, value);
        break;
    case FIELD_CONTENT:
        *(struct wal_slice *)place = value_bytes(call, value);
        break;
    case FIELD_U32:
        *(uint32_t *)place = value_u32(call, value);
        break;
    case FIELD_FLAG:
        *(uint32_t *)place |= value_bool(call, value) ? field->mask : 0;
        break;
    case FIELD_U64:
        *(uint64_t *)place = value_u64(call, value);
        break;
    case FIELD_I64:
        *(int64_t *)place = value_i64(call, value);
        break;
    case FIELD_MS:
        *(int64_t *)place = read_time(call, value);
        break;
    case FIELD_DIGEST:
        if (!value_is_absent(call, value)) {
            value_digest(call, value, place);
        }
        break;
    case FIELD_CHARS:
        read_chars(call, field, value, place);
        break;
    case FIELD_TEXTS:
        texts = value_texts(call, value, false, &count);
        memcpy(place, &texts, sizeof(texts));
        *(uint64_t *)(void *)(made + field->count) = count;
        break;
    default:
        call_fail(call, WAL_EINVAL, "%s is not set by a caller", field->name);
        break;
    }
}

void read_struct(struct call *call, size_t first, const struct table *table, void *made)
{
    memset(made, 0, table->size);
    *(uint32_t *)made = table->size; /* struct_size */
    for (uint32_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        uint32_t count;

        if (field->kind == FIELD_STRUCT) {
            *(void **)(void *)((char *)made + field->offset) =
                read_structs(call, call_arg(call, first + i), field->items, &count);
        } else {
            read_field(call, field, call_arg(call, first + i), made);
        }
    }
}

void read_items(struct call *call, napi_value array, uint32_t first, const struct table *table,
                void *made)
{
    memset(made, 0, table->size);
    *(uint32_t *)made = table->size; /* struct_size */
    for (uint32_t i = 0; i < table->count && !call->failed; i++) {
        read_field(call, &table->fields[i], value_item(call, array, first + i), made);
    }
}

void *read_structs(struct call *call, napi_value array, const struct table *table, uint32_t *count)
{
    uint32_t wanted = value_length(call, array) / table->count;
    char *made;

    *count = 0;
    if (call->failed || wanted == 0) {
        return NULL;
    }
    made = arena_calloc(call->arena, wanted, table->size);
    if (made == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for %u structs", wanted);
        return NULL;
    }
    for (uint32_t i = 0; i < wanted && !call->failed; i++) {
        read_items(call, array, i * table->count, table, made + (size_t)i * table->size);
    }
    *count = wanted;
    return made;
}

napi_value list_structs(struct call *call, const struct list *list, const struct table *table)
{
    napi_value array = make_array(call);
    uint32_t index = 0;

    for (const struct list_item *item = list->first; item != NULL; item = item->next) {
        array_push(call, array, index++, make_struct(call, table, item + 1));
    }
    return array;
}

napi_value list_first(struct call *call, const struct list *list, const struct table *table)
{
    return make_struct(call, table, list->first + 1);
}
