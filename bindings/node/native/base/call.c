/*
 * call.c - entering and leaving native functions (call.h).
 */
#include "bindings/node/native/base/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/system.h"
#include "engine/base/thread.h"

/* --- threads -------------------------------------------------------------- */

bool thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    return wal__thread_start(thread, run, arg) == 0;
}

/* --- random ids ----------------------------------------------------------- */

enum { RANDOM_BYTES = 10 };

static void random_bytes(struct addon *addon, uint8_t out[RANDOM_BYTES])
{
    if (addon->random_left < RANDOM_BYTES) {
        wal__system_random(addon->random, sizeof(addon->random));
        addon->random_left = sizeof(addon->random);
    }
    addon->random_left -= RANDOM_BYTES;
    memcpy(out, addon->random + addon->random_left, RANDOM_BYTES);
}

void uuid_make(struct addon *addon, char out[UUID_TEXT_SIZE])
{
    uint8_t bytes[16];
    struct timespec now;
    uint64_t ms;

    clock_gettime(CLOCK_REALTIME, &now);
    ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    for (int i = 0; i < 6; i++) {
        bytes[i] = (uint8_t)(ms >> (8 * (5 - i)));
    }
    random_bytes(addon, bytes + 6);
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x70);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    uuid_write(out, bytes);
}

/* --- calls ---------------------------------------------------------------- */

void call_begin(struct call *call, struct addon *addon)
{
    call->env = addon->env;
    call->addon = addon;
    call->arena = &call->addon->scratch;
    call->count = 0;
    call->failed = false;
}

napi_value call_arg(struct call *call, size_t index)
{
    napi_value undefined = NULL;

    if (index < call->count) {
        return call->args[index];
    }
    call_ok(call, napi_get_undefined(call->env, &undefined));
    return undefined;
}

struct wal_error *call_error(struct call *call)
{
    struct wal_error *error = &call->addon->error;

    error->struct_size = sizeof(*error);
    return error;
}

bool call_check(struct call *call, enum wal_status status)
{
    if (status >= WAL_OK) {
        return true;
    }
    call->failed = true;
    return false;
}

void call_fail(struct call *call, enum wal_status status, const char *format, ...)
{
    struct wal_error *error = &call->addon->error;
    va_list arguments;

    if (call->failed) {
        return;
    }
    *error = (struct wal_error){.struct_size = sizeof(*error), .status = (int32_t)status};
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    call->failed = true;
}

bool call_ok(struct call *call, napi_status status)
{
    bool is_pending = false;

    if (status == napi_ok) {
        return true;
    }
    (void)napi_is_exception_pending(call->env, &is_pending);
    if (!is_pending && !call->failed) {
        call_fail(call, WAL_EIO, "JavaScript refused a value: status %d", (int)status);
    }
    call->failed = true;
    return false;
}

static napi_value plain_text(struct call *call, const char *text)
{
    napi_value value = NULL;

    (void)napi_create_string_utf8(call->env, text, NAPI_AUTO_LENGTH, &value);
    return value;
}

static napi_value plain_number(struct call *call, double number)
{
    napi_value value = NULL;

    (void)napi_create_double(call->env, number, &value);
    return value;
}

napi_value call_make_error(struct call *call, const struct wal_error *error)
{
    napi_value function = NULL;
    napi_value self = NULL;
    napi_value made = NULL;
    napi_value arguments[] = {
        plain_text(call, status_code(error->status)),
        plain_text(call, error->text),
        plain_number(call, error->sys_errno),
        plain_number(call, error->holder),
        plain_text(call, error->file),
        plain_number(call, (double)error->offset),
        plain_text(call, error->actual),
        plain_number(call, error->expectation),
    };

    if (napi_get_reference_value(call->env, call->addon->make_error, &function) != napi_ok ||
        napi_get_undefined(call->env, &self) != napi_ok ||
        napi_call_function(call->env, self, function, sizeof(arguments) / sizeof(arguments[0]),
                           arguments, &made) != napi_ok) {
        return NULL;
    }
    return made;
}

/* The failure as a value; NULL without one. */
napi_value call_take_failure(struct call *call)
{
    napi_value exception = NULL;
    bool is_pending = false;

    (void)napi_is_exception_pending(call->env, &is_pending);
    if (!is_pending && call->failed) {
        exception = call_make_error(call, &call->addon->error);
        if (exception == NULL) {
            (void)napi_is_exception_pending(call->env, &is_pending);
        }
    }
    if (is_pending) {
        (void)napi_get_and_clear_last_exception(call->env, &exception);
    }
    call->failed = false;
    return exception;
}

static void throw_failure(struct call *call)
{
    napi_value exception = NULL;
    bool is_pending = false;

    (void)napi_is_exception_pending(call->env, &is_pending);
    if (is_pending) {
        return;
    }
    exception = call_make_error(call, &call->addon->error);
    if (exception != NULL) {
        (void)napi_throw(call->env, exception);
    }
}

static napi_value enter(napi_env env, napi_callback_info info)
{
    const struct call_binding *binding;
    void *data = NULL;
    struct call call;
    napi_value result = NULL;
    size_t count = CALL_ARGS;

    if (napi_get_cb_info(env, info, &count, call.args, NULL, &data) != napi_ok) {
        return NULL;
    }
    binding = data;
    if (binding->addon->is_ended) {
        return NULL;
    }
    call_begin(&call, binding->addon);
    call.count = count < CALL_ARGS ? count : CALL_ARGS;
    result = binding->method->body(&call);
    arena_reset(&call.addon->scratch);
    if (call.failed) {
        throw_failure(&call);
        return NULL;
    }
    return result;
}

/* JavaScript has lost a function. */
static void finalize(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    addon_release(((struct call_binding *)data)->addon);
}

static bool define(struct call *call, napi_value object, struct call_binding *binding)
{
    const char *name = binding->method->name;
    napi_value function = NULL;

    if (!call_ok(call, napi_create_function(call->env, name, NAPI_AUTO_LENGTH, enter, binding,
                                            &function)) ||
        !call_ok(call, napi_add_finalizer(call->env, function, binding, finalize, NULL, NULL))) {
        return false;
    }
    addon_retain(binding->addon);
    return call_ok(call, napi_set_named_property(call->env, object, name, function));
}

void call_define(struct call *call, napi_value object, const struct call_method *methods,
                 size_t *used)
{
    for (const struct call_method *method = methods; method->name != NULL; method++) {
        struct call_binding *binding = &call->addon->bindings[(*used)++];

        *binding = (struct call_binding){.method = method, .addon = call->addon};
        if (!define(call, object, binding)) {
            return;
        }
    }
}
