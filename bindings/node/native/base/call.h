/*
 * call.h - a call of JavaScript to a native function, and its failure.
 *
 * A native function is a `call_body`: it reads its arguments (value.h,
 * store/handle.h), calls the library, and returns a value. Failures are sticky:
 * what fails sets call->failed, later reads return zeros, and the value
 * returned is ignored. So a body reads all its arguments and then checks
 * call->failed once. When the body returns, the failure is thrown as a
 * WalError; an exception that Node-API has pending is left as it is.
 *
 *   static napi_value session_title(struct call *call)
 *   {
 *       struct handle *session = handle_get(call, 0, &session_type);
 *       struct wal_slice title = value_text(call, call_arg(call, 1));
 *
 *       if (!call->failed &&
 *           call_check(call, wal_set_title(session->object, title,
 *                                          call_error(call)))) {
 *           return make_bool(call, true);
 *       }
 *       return NULL;
 *   }
 *
 * A module lists its functions in an array of struct call_method that ends with
 * a zeroed one; modules.h and addon.c name the array. Each function carries its
 * instance of the addon as its data.
 */
#ifndef AGENTWAL_NODE_CALL_H
#define AGENTWAL_NODE_CALL_H

#include "bindings/node/native/base/addon.h"

enum {
    CALL_ARGS = 16
};

struct call {
    napi_env env;
    struct addon *addon;
    struct arena *arena; /* where arguments are copied to: valid until the call
                          * returns, or of a job (job.h) until it ends */
    size_t count;        /* of arguments given, at most CALL_ARGS */
    napi_value args[CALL_ARGS];
    bool failed;
};

typedef napi_value call_body(struct call *call);

struct call_method {
    const char *name; /* of the property of the addon's exports */
    call_body *body;
};

/* The data of a function. */
struct call_binding {
    const struct call_method *method;
    struct addon *addon; /* retained while JavaScript has the function */
};

/* Adds the functions of a list to an object; call->addon->bindings has room for
 * all lists, and `*used` counts those that are in use. */
void call_define(struct call *call, napi_value object,
                 const struct call_method *methods, size_t *used);

/* Begins a call that JavaScript did not make, such as the end of a job. */
void call_begin(struct call *call, struct addon *addon);

/* The argument at an index; undefined when it was not given. */
napi_value call_arg(struct call *call, size_t index);

/* Where the library's call puts its failure, which call_check then takes. */
struct wal_error *call_error(struct call *call);

/* Whether a status is WAL_OK or WAL_END; otherwise the call fails with what is
 * in call_error. */
bool call_check(struct call *call, enum wal_status status);

/* Whether Node-API did what it was asked; otherwise the call fails with the
 * exception that is pending, or with WAL_EIO. */
bool call_ok(struct call *call, napi_status status);

/* Fails the call with a sentence. It is not copied from `text` when the call
 * has failed before. */
void call_fail(struct call *call, enum wal_status status, const char *format,
               ...) __attribute__((format(printf, 3, 4)));

/* The name of a status as the header has it, such as "WAL_EINVAL"; "WAL_OK" for
 * one that is none of a failure. bindings/generate.py makes it. Any thread. */
const char *status_code(int32_t status);

/* Makes the WalError of a failure; NULL when an exception is pending. */
napi_value call_make_error(struct call *call, const struct wal_error *error);

/* Takes the failure of the call as an exception's value, so that a promise can
 * be rejected with it; the call has then not failed. NULL when the environment
 * ends. */
napi_value call_take_failure(struct call *call);

#endif
