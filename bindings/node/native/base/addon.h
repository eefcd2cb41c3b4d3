/*
 * addon.h - what the addon keeps for an environment of JavaScript: the main
 * thread or a Worker. There are no globals; everything hangs on this.
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

struct addon {
    napi_env env;
    uint32_t references; /* of the environment, handles, stores and jobs */
    bool is_ended;       /* the environment is gone: nothing may be called */
    /* Arguments of the present call; reset when it returns. */
    struct arena scratch;
    /* The failure of the present call. */
    struct wal_error error;
    /* Functions of lib/base/native.js. */
    napi_ref make_error; /* (code, message, errno, ...): a WalError */
    napi_ref settle;     /* (count, details): outcomes in `numbers` */
    napi_ref collect;    /* (...values): an array of its arguments */
    /* Results that are numbers are passed in here: a Float64Array that
     * JavaScript reads after the call. */
    napi_ref numbers_ref;
    double *numbers;
    /* A string of ASCII is made faster from Latin-1 (Node.js), or not (Bun). */
    bool prefers_latin1;
    struct job *threads;  /* jobs that run in separate threads */
    bool has_thread_hook; /* the hook that ends them is registered */
    uint32_t random_left; /* unused bytes of random[] */
    uint8_t random[1024];
};

/* The addon of an environment; NULL when that ends. */
struct addon *addon_get(napi_env env);
void addon_retain(struct addon *addon);
void addon_release(struct addon *addon);

#endif
