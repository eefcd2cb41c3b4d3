/*
 * known_root.h - the roots of views that a store knows of
 * (SPEC.md 10.7).
 *
 * Threads: any.
 */
#ifndef AGENTWAL_CONVERT_VIEW_KNOWN_ROOT_H
#define AGENTWAL_CONVERT_VIEW_KNOWN_ROOT_H

#include "convert/view/view.h"

/* Adds a root, which exists, to the list of the store, durably; flags are of
 * enum wal_store_view_root_flag. When it is new there, those that do not exist
 * any more are removed. */
enum wal_status wal__view_root_add(struct wal_store *store,
                                   const struct wal__dialect *dialect,
                                   const char *root, uint32_t flags,
                                   struct wal_error *error) WAL_MUST_USE;

#endif
