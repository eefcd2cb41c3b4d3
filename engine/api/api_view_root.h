/*
 * api_view_root.h - the list of roots of views that a store keeps, for the
 * converter, which decides what an entry is worth (docs/engine/views.md 10.7).
 *
 * Threads: any.
 */
#ifndef AGENTWAL_ENGINE_API_API_VIEW_ROOT_H
#define AGENTWAL_ENGINE_API_API_VIEW_ROOT_H

#include <stdbool.h>

#include "agentwal.h"

/* Takes an entry; the slices are terminated by NUL and hold until it
 * returns. */
typedef enum wal_status wal__view_root_fn(void *ctx, const char *dialect,
                                          const char *path);

/* Adds an entry, durably; *is_new when it was not there. With `syncs` one that
 * is there is made durable. Nothing is done for a store that has no files.
 * WAL_EINVAL: a text is too long. */
enum wal_status wal__store_add_view_root(struct wal_store *store,
                                         const char *dialect, const char *path,
                                         bool syncs, bool *is_new,
                                         struct wal_error *error) WAL_MUST_USE;

/* Whether the handle may write the log: then flushes add entries. */
bool wal__store_is_writable(const struct wal_store *store);

/* Calls `each` for every entry. Stops at the first status that is not WAL_OK,
 * and returns it. */
enum wal_status
wal__store_list_view_roots(struct wal_store *store, wal__view_root_fn *each,
                           void *ctx, struct wal_error *error) WAL_MUST_USE;

/* Removes an entry, where the list may be written. */
void wal__store_remove_view_root(struct wal_store *store, const char *dialect,
                                 const char *path);

#endif
