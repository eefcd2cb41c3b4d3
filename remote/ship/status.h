/*
 * status.h - how far a remote is with a store (wal_remote_get_status), and
 * which stores it has (wal_remote_list).
 *
 * Threads: one at a time per source.
 */
#ifndef AGENTWAL_REMOTE_SHIP_STATUS_H
#define AGENTWAL_REMOTE_SHIP_STATUS_H

#include "agentwal/remote.h"
#include "remote/history/history.h"

/* Fills *result, also when the store lacks what the remote has:
 * WAL_ECONFLICT. */
enum wal_status wal__status_read(struct wal_remote *remote,
                                 const struct wal__part_source *source,
                                 const uint8_t uuid[16],
                                 struct wal_remote_status *result,
                                 struct wal_error *error) WAL_MUST_USE;

enum wal_status wal__status_list(struct wal_remote *remote,
                                 wal__part_info_fn *info,
                                 wal_remote_store_fn *report, void *ctx,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
