/*
 * call.h - a call of JavaScript to a native function, and its failure.
 *
 * A native function is a `call_body`: it reads its arguments (value.h, store/store.h), calls the
 * library, and returns a value. Failures are sticky: what fails sets call->failed, later reads
 * return zeros, and the value returned is ignored. So a body reads all its arguments and then
 * checks call->failed once. When the body returns, the failure is thrown as a WalError; an
 * exception that Node-API has pending is left as it is.
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
 * A module lists its functions in an array of struct call_method that ends with a zeroed one;
 * interface.h names the array. Each function carries its instance of the addon as its data.
 */
#ifndef AGENTWAL_BINDINGS_NODE_NATIVE_BASE_CALL_H
#define AGENTWAL_BINDINGS_NODE_NATIVE_BASE_CALL_H

#include <agentwal.h>
#include <node_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bindings/table/table.h"

/* Starts a thread, which takes no signal of the program and can meet SIGBUS, whose handler the
 * library has. False: there is none left. */
bool thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/*
 * An instance of the addon: what it keeps for one copy of lib/ in an environment of JavaScript. An
 * environment, which is the main thread or a Worker, has one instance for each call of setup():
 * test runners load lib/ once for each test file, and the binary once. There are no globals;
 * everything hangs on the instance.
 *
 * Life: the functions that setup() returned, stores and jobs retain the memory. Stores that are
 * open and jobs also hold what JavaScript gave to setup(), so that a copy of lib/ which nobody
 * refers to can be collected once its stores are closed.
 */

enum {
    /* Doubles that are shared with JavaScript: `numbers` below. */
    ADDON_NUMBERS = 2048
};

struct call_binding;
struct environment;

struct addon {
    napi_env env;
    struct environment *environment; /* NULL once it is gone */
    struct addon *next;              /* of the environment */
    struct call_binding *bindings;   /* data of the functions */
    uint32_t references;             /* of functions, stores and jobs */
    uint32_t holds;                  /* of stores that are open, and of jobs */
    bool is_ended;                   /* the environment is gone: nothing may be called */
    /* Arguments of the present call; reset when it returns. */
    struct arena scratch;
    /* The failure of the present call. */
    struct wal_error error;
    /* What setup() returned. It is strong while there are holds; its property
     * `kept` refers to what the other references are for, which are weak. */
    napi_ref functions;
    napi_ref make_error; /* (code, message, errno, ...): a WalError */
    napi_ref settle;     /* (count, details): outcomes in `numbers` */
    napi_ref collect;    /* (...values): an array of its arguments */
    /* Results that are numbers are passed in here: a Float64Array that JavaScript reads after the
     * call. */
    double *numbers;
    /* A string of ASCII is made faster from Latin-1 (Node.js), or not (Bun). */
    bool prefers_latin1;
    struct job *threads;       /* jobs that run in separate threads */
    void (*hook)(void *addon); /* of addon_set_hook, or NULL */
    uint32_t random_left;      /* unused bytes of random[] */
    uint8_t random[1024];
};

void addon_retain(struct addon *addon);
void addon_release(struct addon *addon);

/* Holds what JavaScript gave to setup(). */
void addon_hold(struct addon *addon);
void addon_unhold(struct addon *addon);

/* Replaces what is called with the instance when the environment ends, before the hooks that were
 * registered until now; NULL: nothing. A hook that runs is not registered any more: it sets
 * addon->hook to NULL. */
void addon_set_hook(struct addon *addon, void (*hook)(void *addon));

enum { CALL_ARGS = 16 };

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

/* Adds the functions of a list to an object; call->addon->bindings has room for all lists, and
 * `*used` counts those that are in use. */
void call_define(struct call *call, napi_value object, const struct call_method *methods,
                 size_t *used);

/* Begins a call that JavaScript did not make, such as the end of a job. */
void call_begin(struct call *call, struct addon *addon);

/* The argument at an index; undefined when it was not given. */
napi_value call_arg(struct call *call, size_t index);

/* Where the library's call puts its failure, which call_check then takes. */
struct wal_error *call_error(struct call *call);

/* Whether a status is WAL_OK or WAL_END; otherwise the call fails with what is in call_error. */
bool call_check(struct call *call, enum wal_status status);

/* Whether Node-API did what it was asked; otherwise the call fails with the exception that is
 * pending, or with WAL_EIO. */
bool call_ok(struct call *call, napi_status status);

/* Fails the call with a sentence. It is not copied from `text` when the call has failed before. */
void call_fail(struct call *call, enum wal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The name of a status as the header has it, such as "WAL_EINVAL"; "WAL_OK" for one that is none of
 * a failure. bindings/generate.py makes it. Any thread. */
const char *status_code(int32_t status);

/* Makes the WalError of a failure; NULL when an exception is pending. */
napi_value call_make_error(struct call *call, const struct wal_error *error);

/* Takes the failure of the call as an exception's value, so that a promise can be rejected with it;
 * the call has then not failed. NULL when the environment ends. */
napi_value call_take_failure(struct call *call);

/* Writes a UUIDv7 (RFC 9562): the time in milliseconds, then random bits. */
void uuid_make(struct addon *addon, char out[UUID_TEXT_SIZE]);

#endif
