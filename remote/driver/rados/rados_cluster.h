/*
 * rados_cluster.h - a connection to a pool of Ceph, and what the calls of a
 * driver on it have in common (driver_rados.h).
 *
 * Threads: any number, but for init and deinit.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_RADOS_RADOS_CLUSTER_H
#define AGENTWAL_REMOTE_DRIVER_RADOS_RADOS_CLUSTER_H

#include <pthread.h>
#include <stdatomic.h>

#include "remote/driver/driver_url.h"
#include "remote/driver/rados/rados_library.h"

enum {
    WAL__RADOS_DEADLINE_MS = 60 * 1000,
    /* Of an object. An OSD refuses more than osd_max_write_size in a write,
     * 90 MiB unless it is configured, and a creation is one write. */
    WAL__RADOS_OBJECT_MAX = 88 * 1024 * 1024,
    /* Bytes of a name in the pool, with its terminator. */
    WAL__RADOS_NAME_SIZE = sizeof(((struct wal__driver_url *)NULL)->prefix) +
                           WAL__OBJECT_NAME_MAX + 16
};

struct wal__rados_watch; /* rados_watch.c */

struct wal__rados {
    const struct wal__heap *heap;
    struct wal__driver_url url;
    uint32_t deadline_ms;
    _Atomic bool is_connected; /* set last: what follows is then there */
    struct wal__rados_calls calls;
    rados_t cluster;
    rados_ioctx_t io;
    /* Held while connecting, and while a watch is registered. */
    pthread_mutex_t setup;
    /* Guards what follows, which callbacks of librados change. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char directory[WAL__OBJECT_NAME_MAX + 1]; /* the last one in the index */
    struct wal__rados_watch *watches;
    uint32_t notifying; /* notifications that are not over */
};

/* Nothing is asked of the cluster yet. On failure there is nothing to free. */
enum wal_status wal__rados_init(struct wal__rados *rados,
                                const struct wal__driver_url *url,
                                const struct wal__heap *heap,
                                struct wal_error *error) WAL_MUST_USE;

/* Disconnects. false: a callback may still come, and *rados must remain. */
bool wal__rados_deinit(struct wal__rados *rados);

/* Connects, unless that was done. */
enum wal_status wal__rados_connect(struct wal__rados *rados,
                                   struct wal_error *error) WAL_MUST_USE;

/* Fills what failed. `name` is that of the object, or NULL. */
enum wal_status wal__rados_fail(const struct wal__rados *rados,
                                const char *name, enum wal_status status,
                                const char *text, struct wal_error *error);

/* The same for what a call of librados returned, which is negative. */
enum wal_status wal__rados_failed(const struct wal__rados *rados,
                                  const char *name, int code,
                                  struct wal_error *error);

/* The name in the pool, in a text of WAL__RADOS_NAME_SIZE bytes. */
void wal__rados_name(const struct wal__rados *rados, const char *name,
                     char *text);

/* Performs the write, and frees it: 0 or a negative code. */
int wal__rados_write(struct wal__rados *rados, const char *name,
                     rados_write_op_t write);

#endif
