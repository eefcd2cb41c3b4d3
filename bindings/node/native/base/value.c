/*
 * value.c - reading values of JavaScript (value.h); make.c makes them.
 */
#include "bindings/node/native/base/value.h"

#include <stdlib.h>
#include <string.h>

#include "bindings/node/native/base/utf8.h"

/* A character of UTF-8, which V8 does not write in part. */
enum {
    CHARACTER_SIZE = 4
};

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
static bool copy_short(struct call *call, napi_value value,
                       struct wal_slice *text)
{
    size_t room;
    size_t size = 0;
    uint8_t *bytes = arena_room(call->arena, &room);

    if (bytes == NULL || room <= CHARACTER_SIZE ||
        !call_ok(call, napi_get_value_string_utf8(
                           call->env, value, (char *)bytes, room, &size)) ||
        size + CHARACTER_SIZE >= room) {
        return false;
    }
    arena_take(call->arena, size + 1);
    *text = (struct wal_slice){bytes, size};
    return true;
}

static bool copy_long(struct call *call, napi_value value,
                      struct wal_slice *text)
{
    size_t size = 0;
    char *bytes;

    if (!call_ok(call, napi_get_value_string_utf8(call->env, value, NULL, 0,
                                                  &size))) {
        return false;
    }
    bytes = arena_alloc(call->arena, size + 1);
    if (bytes == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a string of %zu bytes",
                  size);
        return false;
    }
    if (!call_ok(call, napi_get_value_string_utf8(call->env, value, bytes,
                                                  size + 1, &size))) {
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

    if (!call_ok(call, napi_get_value_string_utf16(call->env, value, NULL, 0,
                                                   &count))) {
        return false;
    }
    units = malloc((count + 1) * sizeof(*units));
    if (units == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a string");
        return false;
    }
    if (call_ok(call, napi_get_value_string_utf16(call->env, value, units,
                                                  count + 1, &count))) {
        result = utf16_has_half(units, count);
    }
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

    if (call->failed ||
        !call_ok(call, napi_is_typedarray(call->env, value, &is_array)) ||
        !is_array) {
        return value_text(call, value);
    }
    if (!call_ok(call, napi_get_typedarray_info(call->env, value, &kind, &size,
                                                &data, NULL, NULL))) {
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
static double read_number(struct call *call, napi_value value, double low,
                          double high)
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
        call_fail(call, WAL_EINVAL,
                  "a whole number between %.0f and %.0f is expected", low,
                  high);
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

int64_t value_i64(struct call *call, napi_value value)
{
    return (int64_t)read_number(call, value, -(double)VALUE_NUMBER_MAX,
                                (double)VALUE_NUMBER_MAX);
}

bool value_bool(struct call *call, napi_value value)
{
    bool result = false;

    return type_of(call, value) == napi_boolean &&
           call_ok(call, napi_get_value_bool(call->env, value, &result)) &&
           result;
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

napi_value value_item(struct call *call, napi_value array, uint32_t index)
{
    napi_value item = NULL;

    if (call->failed ||
        !call_ok(call, napi_get_element(call->env, array, index, &item))) {
        return make_undefined(call);
    }
    return item;
}
