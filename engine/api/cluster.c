/*
 * cluster.c - the durability class WAL_CLUSTER (cluster.h).
 */
#include "engine/api/cluster.h"

#include "engine/write/write_batch.h"

enum wal_status wal__cluster_begin(struct wal__core *core,
                                   struct wal_append_options *options,
                                   bool *is_cluster, struct wal_error *error)
{
    *is_cluster = options->durability == WAL_CLUSTER && !core->env.io->forgets;
    if (options->durability == WAL_CLUSTER) {
        options->durability = WAL_DURABLE;
    }
    return *is_cluster ? wal__core_check_ships(core, error) : WAL_OK;
}

/* Whether result.sequence is the number of the operation's last record. */
static bool has_last_sequence(const struct wal__op *op)
{
    const struct wal__batch *batch = op->request;

    return op->result.sequence != 0 && op->result.duplicates == 0 &&
           batch->doc_count == 0 && batch->head_count == 0 &&
           !batch->has_change;
}

enum wal_status wal__cluster_wait(struct wal__core *core,
                                  const struct wal__op *op, int64_t timeout_ms,
                                  struct wal_error *error)
{
    uint64_t sequence = 0;
    enum wal_status status = WAL_OK;

    if (has_last_sequence(op)) {
        sequence = op->result.sequence;
    } else {
        /* What was there before is durable, like the rest. */
        status = wal__core_wait(core, &sequence, true, 0, error);
    }
    if (status == WAL_OK) {
        sequence--;
        status = wal__core_wait_shipped(core, &sequence, timeout_ms, error);
    }
    return status;
}
