/*
 * driver_rados.h - the objects of a pool of Ceph, without a gateway (driver.h).
 */
#ifndef AGENTWAL_REMOTE_DRIVER_DRIVER_RADOS_H
#define AGENTWAL_REMOTE_DRIVER_DRIVER_RADOS_H

#include "remote/driver/driver_url.h"

/* Opens the pool of the URL. The first call connects. */
enum wal_status wal__driver_rados_open(const struct wal__driver_url *url,
                                       const struct wal__heap *heap,
                                       struct wal__driver **driver,
                                       struct wal_error *error) WAL_MUST_USE;

/* Sets the time after which a call fails, in whole seconds. Before any call. */
void wal__driver_rados_set_deadline(struct wal__driver *driver,
                                    uint32_t deadline_ms);

#endif
