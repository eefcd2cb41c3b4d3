/*
 * handles.c - the live handles of a store (core.h; SPEC.md 4.5).
 *
 * Invariant: references is the number of live handles, plus 1 until wal_close;
 * the thread that takes it to 0 destroys the core. Any thread.
 */
#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

void wal__core_retain(struct wal__core *core)
{
    uint32_t before =
        atomic_fetch_add_explicit(&core->references, 1, memory_order_relaxed);

    WAL__ASSERT(before > 0 && before < UINT32_MAX);
}

/* Gives up a reference and returns how many are left. The core is valid only
 * while there are any. */
static uint32_t release(struct wal__core *core)
{
    /* What other threads did with their handles happens before the core is
     * destroyed. */
    uint32_t before =
        atomic_fetch_sub_explicit(&core->references, 1, memory_order_acq_rel);

    WAL__ASSERT(before > 0);
    if (before > 1) {
        return before - 1;
    }
    WAL__ASSERT(core->closed && core->destroy != NULL);
    /* In a child, locks of the parent's threads may be held for ever. */
    if (wal__control_is_same_process(&core->control)) {
        core->destroy(core);
    }
    return 0;
}

void wal__core_release(struct wal__core *core)
{
    if (core != NULL) {
        (void)release(core);
    }
}

uint32_t wal__core_release_store(struct wal__core *core)
{
    WAL__ASSERT(!core->closed && !core->committer_ready);
    atomic_store_explicit(&core->closed, true, memory_order_relaxed);
    return release(core);
}

enum wal_status wal__core_fail_closed(const struct wal__core *core,
                                      struct wal_error *error)
{
    return wal__fail_at(error, WAL_ECLOSED, 0, core->env.root, 0,
                        "the store of this handle was closed; close the "
                        "handle, and open the store again");
}
