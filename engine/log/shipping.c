/*
 * shipping.c - how far the log is stored in another place too (shipping.h).
 */
#include "engine/log/shipping.h"

#include "engine/base/error.h"
#include "engine/log/control_lock.h"
#include "format/bytes/assert.h"

enum wal_status wal__shipping_begin(struct wal__control *control,
                                    struct wal_error *error)
{
    struct wal__control_shipping *shipping = &control->page->shipping;
    int err = 0;
    enum wal_status status;

    WAL__ASSERT(control->page == control->file_page);
    status = wal__control_set_lock(control, WAL__LOCK_SHIPPING,
                                   WAL__IO_LOCK_EXCLUSIVE, &err);
    if (status != WAL_OK) {
        return status == WAL_ELOCKED
                   ? wal__fail_at(error, status, 0, control->path, 0,
                                  "another process ships the store")
                   : wal__fail_at(error, status, err, control->path,
                                  WAL__LOCK_SHIPPING,
                                  "cannot lock the shipping");
    }
    /* The process before may have shipped to another place. */
    atomic_store(&shipping->sequence, 0);
    atomic_store(&shipping->status, WAL_OK);
    return WAL_OK;
}

void wal__shipping_end(struct wal__control *control)
{
    int ignored = 0;

    (void)!wal__control_set_lock(control, WAL__LOCK_SHIPPING, WAL__IO_LOCK_NONE,
                                 &ignored);
    /* Those that wait find that nothing ships. */
    wal__shipping_report(
        control, atomic_load(&control->page->shipping.sequence), WAL_OK);
}

void wal__shipping_report(struct wal__control *control, uint64_t sequence,
                          enum wal_status status)
{
    struct wal__control_shipping *shipping = &control->page->shipping;
    uint32_t seen;

    if (status != WAL_OK) {
        atomic_store(&shipping->status, status);
        atomic_fetch_add(&shipping->failures, 1);
    }
    atomic_store(&shipping->sequence, sequence);
    seen = atomic_load(&shipping->word);
    if (seen % 2 == 1 &&
        atomic_compare_exchange_strong(&shipping->word, &seen, seen + 1)) {
        control->env->io->futex_wake(control->env->io->ctx,
                                     (const uint32_t *)&shipping->word,
                                     UINT32_MAX);
    }
}

void wal__shipping_read(struct wal__control *control,
                        struct wal__shipping_state *state)
{
    struct wal__control_shipping *shipping = &control->page->shipping;

    state->word = (const uint32_t *)&shipping->word;
    state->expected = atomic_fetch_or(&shipping->word, 1) | 1;
    state->sequence = atomic_load(&shipping->sequence);
    state->failures = atomic_load(&shipping->failures);
    state->status = (enum wal_status)atomic_load(&shipping->status);
}

enum wal_status wal__shipping_test(struct wal__control *control, bool *ships,
                                   struct wal_error *error)
{
    int err = 0;
    enum wal_status status = wal__control_set_lock(control, WAL__LOCK_SHIPPING,
                                                   WAL__IO_LOCK_TEST, &err);

    *ships = status == WAL_ELOCKED;
    return status == WAL_OK || status == WAL_ELOCKED
               ? WAL_OK
               : wal__fail_at(error, status, err, control->path,
                              WAL__LOCK_SHIPPING,
                              "cannot test whether a process ships the store");
}
