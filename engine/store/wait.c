/*
 * wait.c - waits until the log has grown (SPEC.md 4.1): a sequence number is returned once its
 * record is before the written end, or before the durable end, or is stored in another place too,
 * as the process that ships the store reports it.
 *
 * Invariant: a waiter announces itself in the control page before it reads the ends, or the report
 * (eventcount), so that every later change wakes it. Any thread.
 */
#include "engine/base/error.h"
#include "engine/log/locks.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

enum {
    CHECK_INTERVAL_NS = 1000000000 /* whether a process still ships */
};

/* `before`: what the message begins with. */
static enum wal_status check_ships(struct wal__core *core, const char *before,
                                   struct wal_error *error)
{
    bool ships = atomic_load(&core->ships);
    enum wal_status status = ships ? WAL_OK : wal__shipping_test(&core->control, &ships, error);

    if (status == WAL_OK && !ships) {
        status = wal__fail_at(error, WAL_EREMOTE, 0, core->env.root, 0,
                              "%sno process ships the store: run `agentwal "
                              "remote push --follow`, or start a shipper in "
                              "the program",
                              before);
    }
    return status;
}

enum wal_status wal__core_check_ships(struct wal__core *core, struct wal_error *error)
{
    return check_ships(core, "", error);
}

enum wal_status wal__core_wait_shipped(struct wal__core *core, uint64_t *sequence,
                                       int64_t timeout_ms, struct wal_error *error)
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
            status = check_ships(core, "it is durable here, and not yet elsewhere; ", error);
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

#define SECOND_NS UINT64_C(1000000000)

enum { NO_WRITER_POLL_NS = 50000000 };

/* The ends that were read, and the futex word to sleep on. */
struct wait_state {
    uint64_t newest;
    const uint32_t *word;
    uint32_t expected;
    bool no_writer_alive; /* no other process is alive to wake this one */
};

/* The sequence number of the last record before the durable end. State lock. */
static uint64_t find_durable(const struct wal__core *core)
{
    const struct wal__log *log = &core->log;
    uint64_t durable = atomic_load(&log->shared->durable);
    uint64_t found;

    if (durable >= atomic_load(&log->end)) {
        return log->last_sequence;
    }
    WAL__ASSERT(log->tail_segment != NULL);
    if (wal__position_segment(durable) != log->tail_segment->id) {
        return log->tail_segment->open.last_sequence;
    }
    found = wal__tail_index_last_before(&core->tail_index, wal__position_offset(durable));
    return found != 0 ? found : log->tail_segment->open.last_sequence;
}

static enum wal_status read_wait_state(struct wal__core *core, bool durable,
                                       struct wait_state *wait_state, struct wal_error *error)
{
    struct wal__log *log = &core->log;
    enum wal_status status;
    bool needs_catch_up;

    do {
        status = wal__core_read_lock(core, error);
        if (status != WAL_OK) {
            return status;
        }
        wait_state->expected = wal__control_prepare_wait(
            &core->control, log->log_id, durable ? WAL__LOG_EVENT_DURABLE : WAL__LOG_EVENT_WRITTEN,
            &wait_state->word);
        needs_catch_up = wal__log_follow(log) > atomic_load(&log->end);
        wait_state->newest = durable ? find_durable(core) : log->last_sequence;
        wait_state->no_writer_alive = core->control.page == &core->control.private_page;
        wal__core_unlock(core);
    } while (needs_catch_up);
    return WAL_OK;
}

/* Sleeps until a wake-up or deadline_ns, with a bound; then checks for the changes that wake
 * nobody: a new process, a replaced LOCK file. */
static enum wal_status sleep_once(struct wal__core *core, const struct wait_state *wait_state,
                                  uint64_t deadline_ns, struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    uint64_t now = io->monotonic_ns(io->ctx);
    uint64_t max_ns = wait_state->no_writer_alive ? NO_WRITER_POLL_NS : SECOND_NS;

    WAL__ASSERT(wait_state->word != NULL);
    if (now >= deadline_ns) {
        return WAL_OK;
    }
    io->futex_wait(io->ctx, wait_state->word, wait_state->expected,
                   deadline_ns - now < max_ns ? deadline_ns - now : max_ns);
    if (wait_state->no_writer_alive) {
        return wal__core_rejoin(core, error);
    }
    return io->monotonic_ns(io->ctx) - now < max_ns
               ? WAL_OK
               : wal__control_check_lock_file(&core->control, error);
}

/* Without permission to write LOCK, this process cannot join others. */
static enum wal_status check_lock_writable(const struct wal__core *core, struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    struct wal__file *file = NULL;
    enum wal_status status;
    int err = 0;

    status = io->open(io->ctx, core->control.path, WAL__IO_WRITE, &file, &err);
    if (status == WAL_OK) {
        io->close(io->ctx, file);
    }
    if (status == WAL_EREADONLY) {
        return wal__fail_at(error, status, err, core->control.path, 0,
                            "cannot wait for records of a store whose LOCK is not "
                            "writable: it is read as of its opening");
    }
    return WAL_OK;
}

enum wal_status wal__core_wait(struct wal__core *core, uint64_t *sequence, bool durable,
                               int64_t timeout_ms, struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    uint64_t begin = io->monotonic_ns(io->ctx);
    uint64_t deadline_ns = UINT64_MAX;
    struct wait_state wait_state = {0};
    bool lock_checked = false;
    enum wal_status status;

    if (timeout_ms >= 0 && timeout_ms < INT64_MAX / 1000000) {
        deadline_ns = begin + (uint64_t)timeout_ms * 1000000;
    }
    for (;;) {
        status = read_wait_state(core, durable, &wait_state, error);
        if (status != WAL_OK) {
            return status;
        }
        WAL__ASSERT(wait_state.word != NULL);
        if (wait_state.newest > *sequence) {
            *sequence = wait_state.newest;
            return WAL_OK;
        }
        if (wait_state.no_writer_alive && !lock_checked) {
            status = check_lock_writable(core, error);
            if (status != WAL_OK) {
                return status;
            }
            lock_checked = true;
        }
        if (io->monotonic_ns(io->ctx) >= deadline_ns) {
            return wal__fail_at(error, WAL_EBUSY, 0, core->env.root, 0,
                                "no record was appended before the timeout");
        }
        status = sleep_once(core, &wait_state, deadline_ns, error);
        if (status != WAL_OK) {
            return status;
        }
    }
}
