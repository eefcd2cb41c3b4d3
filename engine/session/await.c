/*
 * await.c - sleeping until the log has grown (SPEC.md 4.1): a sequence number
 * is told once its record is before the written end, or the durable one.
 *
 * Invariant: who sleeps said so in the control page before it looked, so that
 * whatever rises afterwards wakes it. Any thread.
 */
#include "engine/base/error.h"
#include "engine/session/core.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    ALONE_LOOK_NS = 50000000
};

/* What a look found, and where to sleep. */
struct look {
    uint64_t newest;
    const uint32_t *word;
    uint32_t expected;
    bool alone; /* no process lives that could tell */
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
    if (wal__position_segment(durable) != log->tail->id) {
        return log->tail->open.last_sequence;
    }
    found = wal__tail_index_before(&core->tail, wal__position_offset(durable));
    return found != 0 ? found : log->tail->open.last_sequence;
}

static enum wal_status look_once(struct wal__core *core, bool durable,
                                 struct look *look, struct wal_error *error)
{
    struct wal__log *log = &core->log;
    enum wal_status status;
    bool behind;

    do {
        status = wal__core_read_lock(core, error);
        if (status != WAL_OK) {
            return status;
        }
        look->expected = wal__control_listen(
            &core->control, log->stream,
            durable ? WAL__FOLLOW_DURABLE : WAL__FOLLOW_WRITTEN, &look->word);
        behind = atomic_load(&log->shared->written) > atomic_load(&log->end);
        look->newest = durable ? find_durable(core) : log->last_sequence;
        look->alone = core->control.page == &core->control.own;
        wal__core_unlock(core);
    } while (behind);
    return WAL_OK;
}

/* Sleeps, until `until` at most; looks after what can end the waiting without
 * a word. */
static enum wal_status sleep_once(struct wal__core *core,
                                  const struct look *look, uint64_t until,
                                  struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    uint64_t now = io->ticks_ns(io->ctx);
    uint64_t most = look->alone ? ALONE_LOOK_NS : SECOND_NS;

    if (now >= until) {
        return WAL_OK;
    }
    io->wait(io->ctx, look->word, look->expected,
             until - now < most ? until - now : most);
    if (look->alone) {
        return wal__core_meet(core, error);
    }
    return io->ticks_ns(io->ctx) - now < most
               ? WAL_OK
               : wal__control_check(&core->control, error);
}

/* Without the right to write LOCK nobody can be met, nor heard. */
static enum wal_status check_hearing(const struct wal__core *core,
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
        return wal__fail(error, status, err, core->control.path, 0,
                         "a store whose LOCK may not be written cannot be "
                         "followed: it is seen as it was when it was opened");
    }
    return WAL_OK;
}

enum wal_status wal__core_await(struct wal__core *core, uint64_t *sequence,
                                bool durable, int64_t timeout_ms,
                                struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    uint64_t begin = io->ticks_ns(io->ctx);
    uint64_t until = UINT64_MAX;
    struct look look = {0};
    bool heard = false;
    enum wal_status status;

    if (timeout_ms >= 0 && timeout_ms < INT64_MAX / 1000000) {
        until = begin + (uint64_t)timeout_ms * 1000000;
    }
    for (;;) {
        status = look_once(core, durable, &look, error);
        if (status != WAL_OK) {
            return status;
        }
        if (look.newest > *sequence) {
            *sequence = look.newest;
            return WAL_OK;
        }
        if (look.alone && !heard) {
            status = check_hearing(core, error);
            heard = true;
        }
        if (status == WAL_OK && io->ticks_ns(io->ctx) >= until) {
            return wal__fail(error, WAL_EBUSY, 0, core->env.root, 0,
                             "no further record came in time");
        }
        if (status == WAL_OK) {
            status = sleep_once(core, &look, until, error);
        }
        if (status != WAL_OK) {
            return status;
        }
    }
}
