/*
 * api_shipper.c - the public functions of the process that ships a store
 * (agentwal/replica.h): arguments are checked here, everything else is below.
 */
#include "agentwal/replica.h"

#include "engine/base/error.h"
#include "engine/log/locks.h"
#include "engine/store/session.h"

struct wal_shipper {
    struct wal__core *core;
};

enum wal_status wal_shipper_open(struct wal_store *store,
                                 struct wal_shipper **shipper,
                                 struct wal_error *error)
{
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal_shipper *opened;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK && shipper == NULL) {
        status = wal__invalid(error, "the place for the shipper is null");
    }
    if (status == WAL_OK && core->env.io->in_memory) {
        status = wal__invalid(error, "the store has no files");
    }
    if (status != WAL_OK) {
        return status;
    }
    opened = wal__heap_zalloc(core->env.heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    if (atomic_exchange(&core->ships, true)) {
        status = wal__fail(error, WAL_ELOCKED, "this process ships the store");
    } else {
        status = wal__shipping_begin(&core->control, error);
        if (status != WAL_OK) {
            atomic_store(&core->ships, false);
        }
    }
    if (status != WAL_OK) {
        wal__heap_free(core->env.heap, opened);
        return status;
    }
    wal__core_retain(core);
    opened->core = core;
    *shipper = opened;
    return WAL_OK;
}

enum wal_status wal_shipper_report(struct wal_shipper *shipper,
                                   uint64_t sequence, int32_t outcome,
                                   struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(shipper == NULL ? NULL : shipper->core, error);

    if (status == WAL_OK && outcome > WAL_OK) {
        status = wal__invalid(error, "%d is no failure", outcome);
    }
    if (status == WAL_OK) {
        wal__shipping_report(&shipper->core->control, sequence,
                             (enum wal_status)outcome);
    }
    return status;
}

void wal_shipper_close(struct wal_shipper *shipper)
{
    struct wal__core *core;

    if (shipper == NULL) {
        return;
    }
    core = shipper->core;
    /* A store that was closed has released the lock. */
    if (wal__check_core(core, NULL) == WAL_OK) {
        atomic_store(&core->ships, false);
        wal__shipping_end(&core->control);
    }
    wal__heap_free(core->env.heap, shipper);
    wal__core_release(core);
}
