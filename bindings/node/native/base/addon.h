/*
 * addon.h - an instance of the addon: what it keeps for one copy of lib/ in an
 * environment of JavaScript. An environment, which is the main thread or a
 * Worker, has one instance for each call of setup(): test runners load lib/
 * once for each test file, and the binary once. There are no globals;
 * everything hangs on the instance.
 *
 * Life: the functions that setup() returned, stores and jobs retain the memory.
 * Stores that are open and jobs also hold what JavaScript gave to setup(), so
 * that a copy of lib/ which nobody refers to can be collected once its stores
 * are closed.
 *
 * Threads: that of the environment, here and in all files of this folder, where
 * nothing else is said.
 */
#ifndef AGENTWAL_NODE_ADDON_H
#define AGENTWAL_NODE_ADDON_H

#include <agentwal.h>
#include <node_api.h>
#include <stdbool.h>

#include "bindings/node/native/base/arena.h"

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
    bool is_ended; /* the environment is gone: nothing may be called */
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
    /* Results that are numbers are passed in here: a Float64Array that
     * JavaScript reads after the call. */
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

/* Replaces what is called with the instance when the environment ends, before
 * the hooks that were registered until now; NULL: nothing. A hook that runs is
 * not registered any more: it sets addon->hook to NULL. */
void addon_set_hook(struct addon *addon, void (*hook)(void *addon));

#endif
