/*
 * open_lock.c - the locks of opening a store (SPEC.md 4.1).
 *
 * Invariant: the holder of a lock publishes and clears its own name, so that a
 * name is wrong only between the two; the name of a dead process is ignored.
 */
#include "engine/log/open_lock.h"

#include "engine/base/error.h"
#include "engine/log/control_lock.h"
#include "engine/log/lock_owner.h"
#include "format/bytes/assert.h"

enum {
    POLL_INTERVAL_NS = 5000000,
    TIMEOUT_FACTOR = 20 /* times the lock timeout */
};

/* --- owners ------------------------------------------------------------- */

/* Maps the page through a second open of LOCK: locks belong to an open file
 * description, which a map keeps alive, also in a forked child. */
enum wal_status wal__control_map_page(struct wal__control *control, int *err)
{
    const struct wal__io *io = control->env->io;
    struct wal__file *file = NULL;
    enum wal_status status =
        io->open(io->ctx, control->path, WAL__IO_WRITE, &file, err);
    void *at = NULL;

    WAL__ASSERT(control->file_page == NULL);
    if (status != WAL_OK) {
        return status;
    }
    status = io->map(io->ctx, file, WAL__CONTROL_SIZE, true, &at, err);
    io->close(io->ctx, file);
    if (status == WAL_OK) {
        control->file_page = at;
    }
    return status;
}

enum wal_status wal__control_identify(struct wal__control *control, int *err)
{
    const struct wal__io *io = control->env->io;
    struct wal__io_stat stat;
    enum wal_status status = io->stat(io->ctx, control->file, &stat, err);

    if (status != WAL_OK) {
        return status;
    }
    control->device = stat.device;
    control->inode = stat.inode;
    return stat.size < WAL__CONTROL_SIZE ? WAL_OK
                                         : wal__control_map_page(control, err);
}

static bool is_stopped(const struct wal__control *control, uint32_t process)
{
    const struct wal__io *io = control->env->io;

    return process != 0 && io->process_is_stopped(io->ctx, process);
}

/* Returns the blocking holder. For the open lock also a stopped process for
 * which the holder of the open lock waits: otherwise each opener would wait for
 * the one before it. */
static uint32_t find_blocking_holder(const struct wal__control *control,
                                     uint64_t byte, bool *stopped)
{
    uint32_t opener;
    uint32_t exclusive;

    *stopped = false;
    if (control->file_page == NULL) {
        return 0;
    }
    exclusive =
        wal__lock_owner_find(control, &control->file_page->exclusive_owner);
    *stopped = is_stopped(control, exclusive);
    if (byte == WAL__LOCK_PARTICIPANT || *stopped) {
        return exclusive;
    }
    opener =
        wal__lock_owner_find(control, &control->file_page->open_lock_owner);
    *stopped = is_stopped(control, opener);
    return opener;
}

/* --- waiting ------------------------------------------------------------ */

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

/* Updates the blocking holder, and since when it is stopped. */
static void update_blocking_holder(struct wal__control *control, uint64_t byte,
                                   uint64_t now,
                                   struct wal__lock_wait *lock_wait)
{
    uint32_t holder;
    bool stopped;
    int ignored = 0;

    if (control->file_page == NULL) {
        /* LOCK was empty: the holder of the open lock creates the page. */
        (void)!wal__control_identify(control, &ignored);
    }
    holder = find_blocking_holder(control, byte, &stopped);
    WAL__ASSERT(holder != 0 || !stopped);
    if (!lock_wait->stopped) {
        lock_wait->stopped_ns = now;
    }
    lock_wait->holder = holder;
    lock_wait->stopped = stopped;
}

/* Returns whether the wait has expired; sleeps POLL_INTERVAL_NS if not. */
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

    WAL__ASSERT(byte == WAL__LOCK_OPEN || byte == WAL__LOCK_PARTICIPANT);
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
        return wal__fail_at(
            error, WAL_ELOCKED, 0, control->path, 0,
            "another process is recovering the store: try again");
    }
    status = wal__fail_at(
        error, WAL_ELOCKED, 0, control->path, 0,
        "process %u is recovering the store, or closing it%s",
        lock_wait->holder,
        lock_wait->stopped ? ", and is stopped: continue or end it" : "");
    wal__error_set_holder(error, (int32_t)lock_wait->holder);
    return status;
}

/* --- the open lock ------------------------------------------------------ */

void wal__open_lock_publish_owner(struct wal__control *control)
{
    WAL__ASSERT(control->holds_open_lock);
    wal__lock_owner_publish(control, &control->file_page->open_lock_owner);
}

enum wal_status wal__open_lock_acquire(struct wal__control *control,
                                       struct wal__lock_wait *lock_wait,
                                       int *err)
{
    enum wal_status status;

    WAL__ASSERT(!control->holds_open_lock && !control->is_exclusive);
    status = set_lock_waiting(control, WAL__LOCK_OPEN, WAL__IO_LOCK_EXCLUSIVE,
                              lock_wait, err);
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

/* --- the participant lock ----------------------------------------------- */

enum wal_status wal__participant_lock_upgrade(struct wal__control *control,
                                              int *err)
{
    enum wal_status status = wal__control_set_lock(
        control, WAL__LOCK_PARTICIPANT, WAL__IO_LOCK_EXCLUSIVE, err);

    if (status == WAL_OK) {
        control->is_exclusive = true;
        if (control->file_page != NULL) {
            wal__lock_owner_publish(control,
                                    &control->file_page->exclusive_owner);
        }
    }
    return status;
}

enum wal_status
wal__participant_lock_acquire_shared(struct wal__control *control,
                                     struct wal__lock_wait *lock_wait, int *err)
{
    enum wal_status status;

    WAL__ASSERT(control->holds_open_lock && !control->is_exclusive);
    status = set_lock_waiting(control, WAL__LOCK_PARTICIPANT,
                              WAL__IO_LOCK_SHARED, lock_wait, err);
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
    WAL__ASSERT(mode != WAL__IO_LOCK_EXCLUSIVE);
    if (control->is_exclusive && control->file_page != NULL) {
        atomic_store(&control->file_page->exclusive_owner.process, 0);
    }
    control->is_exclusive = false;
    return wal__control_set_lock(control, WAL__LOCK_PARTICIPANT, mode, err);
}
