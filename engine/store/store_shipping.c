/*
 * store_shipping.c - waits until records are stored in another place too
 * (SPEC.md 4.1): the process that ships them reports how far they are.
 *
 * Invariant: a waiter announces itself before it reads the report, so that
 * every later one wakes it. Any thread.
 */
#include "engine/base/error.h"
#include "engine/log/locks.h"
#include "engine/store/core.h"

enum {
    CHECK_INTERVAL_NS = 1000000000 /* whether a process still ships */
};

/* `before`: what the message begins with. */
static enum wal_status check_ships(struct wal__core *core, const char *before,
                                   struct wal_error *error)
{
    bool ships = atomic_load(&core->ships);
    enum wal_status status =
        ships ? WAL_OK : wal__shipping_test(&core->control, &ships, error);

    if (status == WAL_OK && !ships) {
        status = wal__fail_at(error, WAL_EREMOTE, 0, core->env.root, 0,
                              "%sno process ships the store: run `agentwal "
                              "remote push --follow`, or start a shipper in "
                              "the program",
                              before);
    }
    return status;
}

enum wal_status wal__core_check_ships(struct wal__core *core,
                                      struct wal_error *error)
{
    return check_ships(core, "", error);
}

enum wal_status wal__core_wait_shipped(struct wal__core *core,
                                       uint64_t *sequence, int64_t timeout_ms,
                                       struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    const uint64_t begin = io->monotonic_ns(io->ctx);
    uint64_t deadline_ns = UINT64_MAX;
    struct wal__shipping_state state;
    uint32_t failures;

    if (timeout_ms >= 0 && timeout_ms < INT64_MAX / 1000000) {
        deadline_ns = begin + (uint64_t)timeout_ms * 1000000;
    }
    wal__shipping_read(&core->control, &state);
    failures = state.failures;
    for (uint64_t now = begin, checked = 0;; now = io->monotonic_ns(io->ctx)) {
        enum wal_status status = WAL_OK;
        uint64_t sleep_ns = CHECK_INTERVAL_NS;

        if (state.sequence > *sequence) {
            *sequence = state.sequence;
            return WAL_OK;
        }
        if (state.failures != failures) {
            return wal__fail_at(error, state.status, 0, core->env.root, 0,
                                "it is durable here; the process that ships "
                                "the store could not store it elsewhere: %s "
                                "(`agentwal remote status` says more)",
                                wal_status_text(state.status));
        }
        if (checked == 0 || now - checked >= CHECK_INTERVAL_NS) {
            status = check_ships(
                core, "it is durable here, and not yet elsewhere; ", error);
            checked = now;
        }
        if (status != WAL_OK) {
            return status;
        }
        if (now >= deadline_ns) {
            return wal__fail_at(error, WAL_EBUSY, 0, core->env.root, 0,
                                "it was not shipped before the timeout");
        }
        if (deadline_ns - now < sleep_ns) {
            sleep_ns = deadline_ns - now;
        }
        io->futex_wait(io->ctx, state.word, state.expected, sleep_ns);
        wal__shipping_read(&core->control, &state);
    }
}
