/*
 * view_roots.h - the list of roots of views that a store keeps: a file for each in views/ (SPEC.md
 * 10.7).
 *
 * Invariant: the list is derived, and nothing else of the store depends on it. An entry is durable
 * before it has its name.
 *
 * Threads: any, also of several processes.
 */
#ifndef AGENTWAL_ENGINE_SESSION_VIEW_ROOTS_H
#define AGENTWAL_ENGINE_SESSION_VIEW_ROOTS_H

#include "engine/base/io.h"
#include "format/index/view_root.h"

enum {
    WAL__VIEW_ROOTS_MAX = 4096 /* entries in the list */
};

/* Adds a valid entry, durably, unless it is there; *is_new when it was not. With `syncs` one that
 * is there is made durable too: the process that added it may have died before it did so.
 * WAL_ELIMIT: the list is full. */
enum wal_status wal__view_roots_add(const struct wal__env *env, const struct wal__view_root *root,
                                    bool syncs, bool *is_new, struct wal_error *error) WAL_MUST_USE;
/* Calls `each` for every valid entry, in no order, at most WAL__VIEW_ROOTS_MAX; it may remove the
 * entry. Stops at the first status that is not WAL_OK, and returns it. WAL_EIO: no directory is in
 * the list's place. */
enum wal_status wal__view_roots_list(const struct wal__env *env,
                                     enum wal_status (*each)(void *ctx,
                                                             const struct wal__view_root *root),
                                     void *ctx, struct wal_error *error) WAL_MUST_USE;

#endif
