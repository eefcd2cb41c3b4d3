/*
 * view_env.h - the environment of a view: its heap, and a hook with which tests
 * stop it.
 *
 * Threads: read only.
 */
#ifndef AGENTWAL_CONVERT_FILES_VIEW_ENV_H
#define AGENTWAL_CONVERT_FILES_VIEW_ENV_H

#include "engine/base/heap.h"

struct wal__view_env {
    const struct wal__heap *heap;
    /* Called before each change of the file system with the number of bytes to
     * write, or 0; returns how many of them to write. May be NULL. */
    size_t (*fault_hook)(void *ctx, size_t size);
    void *ctx;
};

static inline size_t wal__view_fault_point(const struct wal__view_env *env,
                                           size_t size)
{
    return env->fault_hook != NULL ? env->fault_hook(env->ctx, size) : size;
}

#endif
