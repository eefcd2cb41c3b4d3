/*
 * control_door.c - coming in (SPEC.md 4.1). Invariant: a name is written, and
 * taken away, by who holds the lock that it stands for, so that it is wrong
 * only for the moment between the two; one of a process that ended counts for
 * nothing. Of one thread: who opens or closes the store.
 */
#include "engine/log/control_door.h"

#include "engine/base/error.h"

enum {
    LOOK_AGAIN_NS = 5000000,
    PATIENCE = 20 /* times the lock timeout */
};

/* -------------------------------------------------------------- names --- */

static void sign(const struct wal__control *control,
                 struct wal__control_name *name)
{
    atomic_store(&name->start, control->process_start);
    atomic_store(&name->process, control->process_id);
}

/* The process that a name stands for, or 0. */
static uint32_t read_name(const struct wal__control *control,
                          struct wal__control_name *name)
{
    const struct wal__io *io = control->env->io;
    uint32_t process = atomic_load(&name->process);
    uint64_t start = atomic_load(&name->start);
    uint64_t now = process == 0 ? 0 : io->process_start(io->ctx, process);

    return now != 0 && (now == start || now == UINT64_MAX) ? process : 0;
}

static bool is_stopped(const struct wal__control *control, uint32_t process)
{
    const struct wal__io *io = control->env->io;

    return process != 0 && io->process_is_stopped(io->ctx, process);
}

/* Who is in the way. At the door also who keeps the one inside waiting: else
 * those before it would be waited for one by one. */
static uint32_t find_holder(const struct wal__control *control, uint64_t byte,
                            bool *stopped)
{
    uint32_t inside;
    uint32_t alone;

    *stopped = false;
    if (control->shown == NULL) {
        return 0;
    }
    alone = read_name(control, &control->shown->alone);
    *stopped = is_stopped(control, alone);
    if (byte == WAL__LOCK_MEMBER || *stopped) {
        return alone;
    }
    inside = read_name(control, &control->shown->door);
    *stopped = is_stopped(control, inside);
    return inside;
}

/* ------------------------------------------------------------ waiting --- */

static uint64_t timeout_ns(const struct wal__control *control)
{
    return (uint64_t)control->env->lock_timeout_ms * 1000000;
}

void wal__visit_init(struct wal__visit *visit,
                     const struct wal__control *control)
{
    const struct wal__io *io = control->env->io;

    *visit = (struct wal__visit){0};
    visit->deadline = io->ticks_ns(io->ctx) + timeout_ns(control) * PATIENCE;
}

/* Who is in the way, and since when every look found one stopped. */
static void look_at_holder(struct wal__control *control, uint64_t byte,
                           uint64_t now, struct wal__visit *visit)
{
    uint32_t holder;
    bool stopped;
    int ignored = 0;

    if (control->shown == NULL) {
        /* It was empty: who is inside is making it. */
        (void)!wal__control_identify(control, &ignored);
    }
    holder = find_holder(control, byte, &stopped);
    if (!visit->stopped) {
        visit->stopped_ns = now;
    }
    visit->holder = holder;
    visit->stopped = stopped;
}

/* Whether the wait is over; waits a little when it is not. */
static bool is_over(struct wal__control *control, uint64_t byte,
                    struct wal__visit *visit)
{
    const struct wal__io *io = control->env->io;
    uint64_t now = io->ticks_ns(io->ctx);
    const uint32_t look = 0;

    look_at_holder(control, byte, now, visit);
    if (now >= visit->deadline ||
        (visit->stopped && now - visit->stopped_ns >= timeout_ns(control))) {
        return true;
    }
    io->wait(io->ctx, &look, 0, LOOK_AGAIN_NS);
    return false;
}

static enum wal_status wait_for(struct wal__control *control, uint64_t byte,
                                enum wal__io_lock mode,
                                struct wal__visit *visit, int *err)
{
    enum wal_status status;

    do {
        status = wal__control_try(control, byte, mode, err);
    } while (status == WAL_ELOCKED && !is_over(control, byte, visit));
    return status;
}

enum wal_status wal__visit_refused(const struct wal__control *control,
                                   const struct wal__visit *visit,
                                   struct wal_error *error)
{
    enum wal_status status;

    if (visit->holder == 0) {
        return wal__fail(error, WAL_ELOCKED, 0, control->path, 0,
                         "another process is recovering the store");
    }
    status = wal__fail(
        error, WAL_ELOCKED, 0, control->path, 0,
        "process %u is recovering the store, or closing it%s", visit->holder,
        visit->stopped ? ", and is stopped: continue or end it" : "");
    if (error != NULL) {
        error->holder = (int32_t)visit->holder;
    }
    return status;
}

/* --------------------------------------------------------------- door --- */

void wal__door_sign(struct wal__control *control)
{
    sign(control, &control->shown->door);
}

enum wal_status wal__door_pass(struct wal__control *control,
                               struct wal__visit *visit, int *err)
{
    enum wal_status status =
        wait_for(control, WAL__LOCK_DOOR, WAL__IO_EXCLUSIVE_LOCK, visit, err);

    control->inside = status == WAL_OK;
    return status;
}

enum wal_status wal__door_leave(struct wal__control *control, int *err)
{
    if (!control->inside) {
        return WAL_OK;
    }
    control->inside = false;
    if (control->shown != NULL) {
        atomic_store(&control->shown->door.process, 0);
    }
    return wal__control_try(control, WAL__LOCK_DOOR, WAL__IO_UNLOCK, err);
}

/* -------------------------------------------------------- member lock --- */

enum wal_status wal__member_take(struct wal__control *control, int *err)
{
    enum wal_status status = wal__control_try(control, WAL__LOCK_MEMBER,
                                              WAL__IO_EXCLUSIVE_LOCK, err);

    if (status == WAL_OK) {
        control->sole = true;
        if (control->shown != NULL) {
            sign(control, &control->shown->alone);
        }
    }
    return status;
}

enum wal_status wal__member_join(struct wal__control *control,
                                 struct wal__visit *visit, int *err)
{
    enum wal_status status =
        wait_for(control, WAL__LOCK_MEMBER, WAL__IO_SHARED, visit, err);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__member_take(control, err);
    control->alone = status == WAL_OK;
    return status == WAL_ELOCKED ? WAL_OK : status;
}

enum wal_status wal__member_yield(struct wal__control *control,
                                  enum wal__io_lock mode, int *err)
{
    if (control->sole && control->shown != NULL) {
        atomic_store(&control->shown->alone.process, 0);
    }
    control->sole = false;
    return wal__control_try(control, WAL__LOCK_MEMBER, mode, err);
}
