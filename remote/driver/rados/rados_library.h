/*
 * rados_library.h - librados, loaded when the first URL rados:// needs it: it
 * is large, and programs that are linked to it start 35 ms later.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_RADOS_RADOS_LIBRARY_H
#define AGENTWAL_REMOTE_DRIVER_RADOS_RADOS_LIBRARY_H

#include <rados/librados.h>

#include "agentwal.h"

/* The calls of librados that are used, without their `rados_`. */
#define WAL__RADOS_CALLS(X)   \
    X(create2)                \
    X(conf_read_file)         \
    X(conf_parse_env)         \
    X(conf_set)               \
    X(connect)                \
    X(shutdown)               \
    X(ioctx_create)           \
    X(ioctx_destroy)          \
    X(stat)                   \
    X(read)                   \
    X(create_write_op)        \
    X(release_write_op)       \
    X(write_op_create)        \
    X(write_op_write_full)    \
    X(write_op_remove)        \
    X(write_op_omap_set2)     \
    X(write_op_omap_rm_keys2) \
    X(write_op_operate)       \
    X(create_read_op)         \
    X(release_read_op)        \
    X(read_op_omap_get_vals2) \
    X(read_op_operate)        \
    X(omap_get_next2)         \
    X(omap_get_end)           \
    X(aio_create_completion2) \
    X(aio_wait_for_complete)  \
    X(aio_get_return_value)   \
    X(aio_release)            \
    X(aio_stat)               \
    X(aio_notify)             \
    X(watch2)                 \
    X(unwatch2)               \
    X(notify_ack)             \
    X(watch_flush)

struct wal__rados_calls {
#define WAL__RADOS_CALL(name) __typeof__(rados_##name) *name;
    WAL__RADOS_CALLS(WAL__RADOS_CALL)
#undef WAL__RADOS_CALL
};

/* Loads the library, which is never unloaded, and fills *calls. WAL_EINVAL: it
 * is not installed, or lacks a call. Any thread. */
enum wal_status wal__rados_load(struct wal__rados_calls *calls,
                                struct wal_error *error) WAL_MUST_USE;

#endif
