/*
 * rados_watch.h - notifications through an object of a pool (driver_rados.h):
 * `NAME~watch`, which has no content. Any thread.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_RADOS_RADOS_WATCH_H
#define AGENTWAL_REMOTE_DRIVER_RADOS_RADOS_WATCH_H

#include "remote/driver/rados/rados_cluster.h"

/* See `watch` of driver.h. */
enum wal_status wal__rados_watch(struct wal__rados *rados, const char *name,
                                 uint32_t timeout_ms,
                                 struct wal_error *error) WAL_MUST_USE;

/* See `notify` of driver.h. */
void wal__rados_notify(struct wal__rados *rados, const char *name);

/* Ends all watches, and waits for notifications that were sent. Before
 * wal__rados_deinit. */
void wal__rados_watch_end(struct wal__rados *rados);

#endif
