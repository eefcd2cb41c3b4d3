/*
 * rados_index.h - the names of the objects in a pool (driver_rados.h).
 *
 * A pool lists its objects in the order of a hash, and only all of them. So
 * names are keys of index objects: `~index` has the names without a '/' and the
 * first parts of the others, with their '/'; `FIRST/~index` has what follows
 * that. '~' is in no name of an object.
 *
 * Invariant: the name of an object is in the index before the object exists and
 * until it does not. The reverse does not hold after a process was killed: a
 * list looks for each object.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_RADOS_RADOS_INDEX_H
#define AGENTWAL_REMOTE_DRIVER_RADOS_RADOS_INDEX_H

#include "remote/driver/rados/rados_cluster.h"

/* Puts the name into the index, durably. */
enum wal_status wal__rados_index_add(struct wal__rados *rados, const char *name,
                                     struct wal_error *error) WAL_MUST_USE;

/* Takes the name out. */
enum wal_status wal__rados_index_remove(struct wal__rados *rados,
                                        const char *name,
                                        struct wal_error *error) WAL_MUST_USE;

/* See `list` of driver.h. */
enum wal_status wal__rados_index_list(struct wal__rados *rados,
                                      const char *prefix, const char *after,
                                      wal__driver_list_fn *each, void *ctx,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
