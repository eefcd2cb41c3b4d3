/*
 * store_wait.c - sleeping until the log has grown (SPEC.md 4.1): a sequence
 * number is told once its record is before the written end, or the durable one.
 *
 * Invariant: who sleeps said so in the control page before it looked, so that
 * whatever rises afterwards wakes it. Any thread.
 */
#include "engine/base/error.h"
#include "engine/store/core.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    NO_WRITER_POLL_NS = 50000000
};

/* What a wait_state found, and where to sleep. */
struct wait_state {
    uint64_t newest;
    const uint32_t *word;
    uint32_t expected;
    bool no_writer_alive; /* no process lives that could tell */
};

/* The last record before the durable end. */
static uint64_t find_durable(const struct wal__core *core)
{
    const struct wal__log *log = &core->log;
    uint64_t durable = atomic_load(&log->shared->durable);
    uint64_t found;

    if (durable >= atomic_load(&log->end)) {
        return log->last_sequence;
    }
    if (wal__position_segment(durable) != log->tail_segment->id) {
        return log->tail_segment->open.last_sequence;
    }
    found =
        wal__tail_index_last_before(&core->tail, wal__position_offset(durable));
    return found != 0 ? found : log->tail_segment->open.last_sequence;
}

static enum wal_status read_wait_state(struct wal__core *core, bool durable,
                                       struct wait_state *wait_state,
                                       struct wal_error *error)
{
    struct wal__log *log = &core->log;
    enum wal_status status;
    bool is_behind;

    do {
        status = wal__core_read_lock(core, error);
        if (status != WAL_OK) {
            return status;
        }
        wait_state->expected = wal__control_prepare_wait(
            &core->control, log->log_id,
            durable ? WAL__LOG_EVENT_DURABLE : WAL__LOG_EVENT_WRITTEN,
            &wait_state->word);
        is_behind = atomic_load(&log->shared->written) > atomic_load(&log->end);
        wait_state->newest = durable ? find_durable(core) : log->last_sequence;
        wait_state->no_writer_alive =
            core->control.page == &core->control.private_page;
        wal__core_unlock(core);
    } while (is_behind);
    return WAL_OK;
}

/* Sleeps, until `until` at most; looks after what can end the waiting without
 * a word. */
static enum wal_status sleep_once(struct wal__core *core,
                                  const struct wait_state *wait_state,
                                  uint64_t until, struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    uint64_t now = io->monotonic_ns(io->ctx);
    uint64_t most = wait_state->no_writer_alive ? NO_WRITER_POLL_NS : SECOND_NS;

    if (now >= until) {
        return WAL_OK;
    }
    io->futex_wait(io->ctx, wait_state->word, wait_state->expected,
                   until - now < most ? until - now : most);
    if (wait_state->no_writer_alive) {
        return wal__core_rejoin(core, error);
    }
    return io->monotonic_ns(io->ctx) - now < most
               ? WAL_OK
               : wal__control_check_lock_file(&core->control, error);
}

/* Without the right to write LOCK nobody can be met, nor lock_checked. */
static enum wal_status check_lock_writable(const struct wal__core *core,
                                           struct wal_error *error)
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
        return wal__fail_at(
            error, status, err, core->control.path, 0,
            "a store whose LOCK may not be written cannot be "
            "followed: it is seen as it was when it was opened");
    }
    return WAL_OK;
}

enum wal_status wal__core_wait(struct wal__core *core, uint64_t *sequence,
                               bool durable, int64_t timeout_ms,
                               struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    uint64_t begin = io->monotonic_ns(io->ctx);
    uint64_t until = UINT64_MAX;
    struct wait_state wait_state = {0};
    bool lock_checked = false;
    enum wal_status status;

    if (timeout_ms >= 0 && timeout_ms < INT64_MAX / 1000000) {
        until = begin + (uint64_t)timeout_ms * 1000000;
    }
    for (;;) {
        status = read_wait_state(core, durable, &wait_state, error);
        if (status != WAL_OK) {
            return status;
        }
        if (wait_state.newest > *sequence) {
            *sequence = wait_state.newest;
            return WAL_OK;
        }
        if (wait_state.no_writer_alive && !lock_checked) {
            status = check_lock_writable(core, error);
            lock_checked = true;
        }
        if (status == WAL_OK && io->monotonic_ns(io->ctx) >= until) {
            return wal__fail_at(error, WAL_EBUSY, 0, core->env.root, 0,
                                "no further record came in time");
        }
        if (status == WAL_OK) {
            status = sleep_once(core, &wait_state, until, error);
        }
        if (status != WAL_OK) {
            return status;
        }
    }
}
