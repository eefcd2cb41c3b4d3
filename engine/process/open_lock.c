/*
 * open_lock.c - coming in (SPEC.md 4.1). Invariant: a name is written, and
 * taken away, by who holds the lock that it stands for, so that it is wrong
 * only for the moment between the two; one of a process that ended counts for
 * nothing. Of one thread: who opens or closes the store.
 */
#include "engine/process/open_lock.h"

#include "engine/base/error.h"

enum {
    POLL_INTERVAL_NS = 5000000,
    TIMEOUT_FACTOR = 20 /* times the lock timeout */
};

/* -------------------------------------------------------------- names --- */

static void publish_owner(const struct wal__control *control,
                          struct wal__lock_owner *name)
{
    atomic_store(&name->start, control->process_start_time);
    atomic_store(&name->process, control->process_id);
}

/* The process that a name stands for, or 0. */
static uint32_t read_live_owner(const struct wal__control *control,
                                struct wal__lock_owner *name)
{
    const struct wal__io *io = control->env->io;
    uint32_t process = atomic_load(&name->process);
    uint64_t start = atomic_load(&name->start);
    uint64_t now = process == 0 ? 0 : io->process_start_time(io->ctx, process);

    return now != 0 && (now == start || now == UINT64_MAX) ? process : 0;
}

static bool is_stopped(const struct wal__control *control, uint32_t process)
{
    const struct wal__io *io = control->env->io;

    return process != 0 && io->process_is_stopped(io->ctx, process);
}

/* Who is in the way. At the door also who keeps the one inside waiting: else
 * those before it would be waited for one by one. */
static uint32_t find_blocking_holder(const struct wal__control *control,
                                     uint64_t byte, bool *stopped)
{
    uint32_t opener;
    uint32_t exclusive;

    *stopped = false;
    if (control->file_page == NULL) {
        return 0;
    }
    exclusive = read_live_owner(control, &control->file_page->exclusive_owner);
    *stopped = is_stopped(control, exclusive);
    if (byte == WAL__LOCK_PARTICIPANT || *stopped) {
        return exclusive;
    }
    opener = read_live_owner(control, &control->file_page->open_lock_owner);
    *stopped = is_stopped(control, opener);
    return opener;
}

/* ------------------------------------------------------------ waiting --- */

static uint64_t timeout_ns(const struct wal__control *control)
{
    return (uint64_t)control->env->lock_timeout_ms * 1000000;
}

void wal__lock_wait_init(struct wal__lock_wait *lock_wait,
                         const struct wal__control *control)
{
    const struct wal__io *io = control->env->io;

    *lock_wait = (struct wal__lock_wait){0};
    lock_wait->deadline =
        io->monotonic_ns(io->ctx) + timeout_ns(control) * TIMEOUT_FACTOR;
}

/* Who is in the way, and since when every look found one stopped. */
static void update_blocking_holder(struct wal__control *control, uint64_t byte,
                                   uint64_t now,
                                   struct wal__lock_wait *lock_wait)
{
    uint32_t holder;
    bool stopped;
    int ignored = 0;

    if (control->file_page == NULL) {
        /* It was empty: who is inside is making it. */
        (void)!wal__control_identify(control, &ignored);
    }
    holder = find_blocking_holder(control, byte, &stopped);
    if (!lock_wait->stopped) {
        lock_wait->stopped_ns = now;
    }
    lock_wait->holder = holder;
    lock_wait->stopped = stopped;
}

/* Whether the wait is over; waits a little when it is not. */
static bool poll_or_expire(struct wal__control *control, uint64_t byte,
                           struct wal__lock_wait *lock_wait)
{
    const struct wal__io *io = control->env->io;
    uint64_t now = io->monotonic_ns(io->ctx);
    const uint32_t never_woken = 0;

    update_blocking_holder(control, byte, now, lock_wait);
    if (now >= lock_wait->deadline ||
        (lock_wait->stopped &&
         now - lock_wait->stopped_ns >= timeout_ns(control))) {
        return true;
    }
    io->futex_wait(io->ctx, &never_woken, 0, POLL_INTERVAL_NS);
    return false;
}

static enum wal_status set_lock_waiting(struct wal__control *control,
                                        uint64_t byte, enum wal__io_lock mode,
                                        struct wal__lock_wait *lock_wait,
                                        int *err)
{
    enum wal_status status;

    do {
        status = wal__control_set_lock(control, byte, mode, err);
    } while (status == WAL_ELOCKED &&
             !poll_or_expire(control, byte, lock_wait));
    return status;
}

enum wal_status wal__lock_wait_failed(const struct wal__control *control,
                                      const struct wal__lock_wait *lock_wait,
                                      struct wal_error *error)
{
    enum wal_status status;

    if (lock_wait->holder == 0) {
        return wal__fail_at(error, WAL_ELOCKED, 0, control->path, 0,
                            "another process is recovering the store");
    }
    status = wal__fail_at(
        error, WAL_ELOCKED, 0, control->path, 0,
        "process %u is recovering the store, or closing it%s",
        lock_wait->holder,
        lock_wait->stopped ? ", and is stopped: continue or end it" : "");
    if (error != NULL) {
        error->holder = (int32_t)lock_wait->holder;
    }
    return status;
}

/* --------------------------------------------------------------- door --- */

void wal__open_lock_publish_owner(struct wal__control *control)
{
    publish_owner(control, &control->file_page->open_lock_owner);
}

enum wal_status wal__open_lock_acquire(struct wal__control *control,
                                       struct wal__lock_wait *lock_wait,
                                       int *err)
{
    enum wal_status status = set_lock_waiting(
        control, WAL__LOCK_OPEN, WAL__IO_LOCK_EXCLUSIVE, lock_wait, err);

    control->holds_open_lock = status == WAL_OK;
    return status;
}

enum wal_status wal__open_lock_release(struct wal__control *control, int *err)
{
    if (!control->holds_open_lock) {
        return WAL_OK;
    }
    control->holds_open_lock = false;
    if (control->file_page != NULL) {
        atomic_store(&control->file_page->open_lock_owner.process, 0);
    }
    return wal__control_set_lock(control, WAL__LOCK_OPEN, WAL__IO_LOCK_NONE,
                                 err);
}

/* -------------------------------------------------------- member lock --- */

enum wal_status wal__participant_lock_upgrade(struct wal__control *control,
                                              int *err)
{
    enum wal_status status = wal__control_set_lock(
        control, WAL__LOCK_PARTICIPANT, WAL__IO_LOCK_EXCLUSIVE, err);

    if (status == WAL_OK) {
        control->is_exclusive = true;
        if (control->file_page != NULL) {
            publish_owner(control, &control->file_page->exclusive_owner);
        }
    }
    return status;
}

enum wal_status
wal__participant_lock_acquire_shared(struct wal__control *control,
                                     struct wal__lock_wait *lock_wait, int *err)
{
    enum wal_status status = set_lock_waiting(
        control, WAL__LOCK_PARTICIPANT, WAL__IO_LOCK_SHARED, lock_wait, err);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__participant_lock_upgrade(control, err);
    control->is_first_opener = status == WAL_OK;
    return status == WAL_ELOCKED ? WAL_OK : status;
}

enum wal_status wal__participant_lock_downgrade(struct wal__control *control,
                                                enum wal__io_lock mode,
                                                int *err)
{
    if (control->is_exclusive && control->file_page != NULL) {
        atomic_store(&control->file_page->exclusive_owner.process, 0);
    }
    control->is_exclusive = false;
    return wal__control_set_lock(control, WAL__LOCK_PARTICIPANT, mode, err);
}
