/*
 * cluster.h - the durability class WAL_CLUSTER: an operation that is durable,
 * and then waited for until the process that ships the store has stored it.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_ENGINE_API_CLUSTER_H
#define AGENTWAL_ENGINE_API_CLUSTER_H

#include "engine/store/core.h"

/* Makes WAL_DURABLE of WAL_CLUSTER in the options, and sets *is_cluster when
 * there is something to wait for. WAL_EREMOTE: no process ships the store. */
enum wal_status wal__cluster_begin(struct wal__core *core,
                                   struct wal_append_options *options,
                                   bool *is_cluster,
                                   struct wal_error *error) WAL_MUST_USE;

/* Waits until the operation, which is done and durable, is stored; see
 * wal__core_wait_shipped. */
enum wal_status wal__cluster_wait(struct wal__core *core,
                                  const struct wal__op *op, int64_t timeout_ms,
                                  struct wal_error *error) WAL_MUST_USE;

#endif
