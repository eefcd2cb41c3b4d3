/*
 * make.c - making values of JavaScript (value.h).
 */
#include <string.h>

#include "bindings/node/native/base/utf8.h"
#include "bindings/node/native/base/value.h"

enum {
    /* A string has at most 2^29 - 24 characters in V8; what may have more is a
     * buffer. */
    STRING_SIZE_MAX = (1 << 29) - 25
};

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

napi_value make_double(struct call *call, double value)
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
    if (value < -(int64_t)VALUE_NUMBER_MAX ||
        value > (int64_t)VALUE_NUMBER_MAX) {
        call_fail(call, WAL_EINVAL, "a number is above 2^53");
        return NULL;
    }
    return make_double(call, (double)value);
}

napi_value make_text(struct call *call, struct wal_slice text)
{
    napi_value made = NULL;

    if (call->addon->prefers_latin1 && utf8_is_ascii(text)) {
        call_ok(call, napi_create_string_latin1(call->env,
                                                text.size == 0 ? "" : text.data,
                                                text.size, &made));
    } else {
        call_ok(call, napi_create_string_utf8(call->env,
                                              text.size == 0 ? "" : text.data,
                                              text.size, &made));
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
        !call_ok(call,
                 napi_create_buffer(call->env, bytes.size, &copy, &made))) {
        return NULL;
    }
    if (bytes.size > 0) {
        memcpy(copy, bytes.data, bytes.size);
    }
    return made;
}

napi_value make_text_or_buffer(struct call *call, struct wal_slice bytes)
{
    return bytes.size <= STRING_SIZE_MAX && utf8_is_valid(bytes)
               ? make_text(call, bytes)
               : make_buffer(call, bytes);
}

napi_value make_digest(struct call *call, const uint8_t digest[WAL_DIGEST_SIZE])
{
    char text[2 * WAL_DIGEST_SIZE];

    for (size_t i = 0; i < WAL_DIGEST_SIZE; i++) {
        text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    return make_text(call, (struct wal_slice){text, sizeof(text)});
}

napi_value make_array(struct call *call)
{
    napi_value made = NULL;

    call_ok(call, napi_create_array(call->env, &made));
    return made;
}

void array_push(struct call *call, napi_value array, uint32_t index,
                napi_value value)
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

void object_set(struct call *call, napi_value object, const char *name,
                napi_value value)
{
    if (!call->failed && object != NULL && value != NULL) {
        call_ok(call, napi_set_named_property(call->env, object, name, value));
    }
}

void object_number(struct call *call, napi_value object, const char *name,
                   uint64_t value)
{
    object_set(call, object, name, make_number(call, value));
}

void object_bool(struct call *call, napi_value object, const char *name,
                 bool value)
{
    object_set(call, object, name, make_bool(call, value));
}

void object_text(struct call *call, napi_value object, const char *name,
                 struct wal_slice text)
{
    object_set(call, object, name, make_text(call, text));
}
