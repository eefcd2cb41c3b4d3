/*
 * control_lock.c - the lock bytes of a log (SPEC.md 4.1).
 *
 * Invariant: the holder's process id is in the control page while the lock is
 * held, except between the two system calls around it. A waiter counts itself
 * before it tries again and sleeps; the holder unlocks before it reads the
 * count, so that no wakeup is lost.
 */
#include "engine/log/control_lock.h"

#include <inttypes.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

enum {
    POLL_INTERVAL_NS = 5000000,
    IDLE_NS_MIN = 10000000, /* that a holder is seen not to run */
    RUNNING_FACTOR = 20     /* times the lock timeout, while the holder runs */
};

enum wal_status wal__control_set_lock(struct wal__control *control,
                                      uint64_t byte, enum wal__io_lock mode,
                                      int *err)
{
    const struct wal__io *io = control->env->io;

    /* No other process has a file in memory, and all locks of this one are of
     * one handle. */
    if (io->in_memory) {
        return WAL_OK;
    }
    return io->lock(io->ctx, control->file, byte, mode, err);
}

static enum wal__wait_queue wait_queue_of(uint64_t byte)
{
    if (byte >= WAL__LOCK_PREALLOC) {
        return WAL__WAIT_PREALLOC;
    }
    return byte >= WAL__LOCK_SYNC ? WAL__WAIT_SYNC : WAL__WAIT_APPEND;
}

static struct wal__wait_word *wait_word_of(struct wal__control *control,
                                           uint64_t byte, uint32_t log_id)
{
    WAL__ASSERT(byte >= WAL__LOCK_APPEND && log_id < WAL__LOG_COUNT);
    return &control->page->logs[log_id].wait_words[wait_queue_of(byte)];
}

/* Returns the word of the control page that names the lock's holder. */
static _Atomic uint32_t *holder_of(struct wal__control *control, uint64_t byte,
                                   uint32_t log_id)
{
    struct wal__control_log *shared = &control->page->logs[log_id];

    switch (wait_queue_of(byte)) {
    case WAL__WAIT_PREALLOC:
        return &shared->prealloc_holder;
    case WAL__WAIT_SYNC:
        return &shared->sync_holder;
    case WAL__WAIT_APPEND:
    case WAL__WAIT_COUNT:
    default:
        return &shared->append_holder;
    }
}

/* Whether the holder that the page names is a process that runs. */
static bool holder_runs(struct wal__control *control, uint64_t byte,
                        uint32_t log_id)
{
    const struct wal__io *io = control->env->io;
    uint32_t holder = atomic_load(holder_of(control, byte, log_id));

    return holder != 0 && io->process_start_time(io->ctx, holder) != 0 &&
           !io->process_is_stopped(io->ctx, holder);
}

static enum wal_status fail_locked(struct wal__control *control, uint64_t byte,
                                   uint32_t log_id, struct wal_error *error)
{
    uint32_t holder = atomic_load(holder_of(control, byte, log_id));
    enum wal_status status;

    status =
        wal__fail_at(error, WAL_ELOCKED, 0, control->path, byte,
                     "process %u holds the store's lock; it may be stopped: "
                     "continue or end it",
                     holder);
    wal__error_set_holder(error, (int32_t)holder);
    return status;
}

/* Returns the byte of the sync lock in a round. */
static uint64_t sync_byte(uint32_t log_id, uint32_t round)
{
    return WAL__LOCK_SYNC + log_id +
           (uint64_t)(round % WAL__SYNC_ROUNDS) * WAL__LOCK_SYNC_STRIDE;
}

/* Tries once to lock the byte of the present round. The round is read again
 * under the lock: it is not held by a process that was late. */
static enum wal_status try_sync_byte(struct wal__control *control,
                                     uint32_t log_id, int *err)
{
    const struct wal__control_log *shared = &control->page->logs[log_id];

    for (;;) {
        uint32_t round = atomic_load(&shared->sync_round);
        uint64_t byte = sync_byte(log_id, round);
        enum wal_status status =
            wal__control_set_lock(control, byte, WAL__IO_LOCK_EXCLUSIVE, err);

        if (status != WAL_OK) {
            return status;
        }
        if (atomic_load(&shared->sync_round) == round) {
            control->sync_round[log_id] = round;
            return WAL_OK;
        }
        status = wal__control_set_lock(control, byte, WAL__IO_LOCK_NONE, err);
        if (status != WAL_OK) {
            return status;
        }
    }
}

enum wal_status wal__control_try_lock(struct wal__control *control,
                                      uint64_t byte, uint32_t log_id, int *err)
{
    enum wal_status status;

    WAL__ASSERT(byte >= WAL__LOCK_APPEND && log_id < WAL__LOG_COUNT);
    WAL__ASSERT(byte % 8 == log_id);
    status =
        byte == WAL__LOCK_SYNC + log_id
            ? try_sync_byte(control, log_id, err)
            : wal__control_set_lock(control, byte, WAL__IO_LOCK_EXCLUSIVE, err);
    if (status != WAL_OK) {
        return status;
    }
    atomic_store(holder_of(control, byte, log_id), control->process_id);
    if (byte == WAL__LOCK_APPEND + log_id) {
        atomic_store(&control->page->logs[log_id].holder_start,
                     control->process_start_time);
    }
    return WAL_OK;
}

/* Tries once to lock, unless the durable end has reached the position. */
static enum wal_status try_lock_unless_durable(struct wal__control *control,
                                               uint64_t byte, uint32_t log_id,
                                               uint64_t position, int *err)
{
    if (atomic_load(&control->page->logs[log_id].durable) >= position) {
        return WAL_END;
    }
    return wal__control_try_lock(control, byte, log_id, err);
}

/* A wait for a lock. */
struct wait {
    uint64_t since_ns;
    /* Since when each look, after the lock timeout, found this holder not to
     * run; 0: it runs. */
    uint64_t idle_since_ns;
    uint32_t idle_holder;
};

/* Whether the wait has expired: after the lock timeout, unless the holder runs.
 * It may be slow, and to be refused for that helps nobody. One look does not
 * suffice: a holder may be about to publish its name. */
static bool wait_is_over(struct wal__control *control, uint64_t byte,
                         uint32_t log_id, struct wait *wait)
{
    const struct wal__io *io = control->env->io;
    uint64_t timeout_ns = (uint64_t)control->env->lock_timeout_ms * 1000000;
    uint64_t now = io->monotonic_ns(io->ctx);
    uint32_t holder = atomic_load(holder_of(control, byte, log_id));

    if (now - wait->since_ns < timeout_ns) {
        return false;
    }
    if (holder_runs(control, byte, log_id)) {
        wait->idle_since_ns = 0;
    } else if (wait->idle_since_ns == 0 || wait->idle_holder != holder) {
        wait->idle_since_ns = now;
        wait->idle_holder = holder;
    }
    return now - wait->since_ns >= timeout_ns * RUNNING_FACTOR ||
           (wait->idle_since_ns != 0 &&
            now - wait->idle_since_ns >= IDLE_NS_MIN);
}

/* Tries until the wait expires. The wait word is read before each try, so that
 * an unlock in between ends the wait. */
static enum wal_status wait_for_lock(struct wal__control *control,
                                     uint64_t byte, uint32_t log_id,
                                     uint64_t position, int *err)
{
    struct wal__wait_word *wait_word = wait_word_of(control, byte, log_id);
    const struct wal__io *io = control->env->io;
    struct wait wait = {.since_ns = io->monotonic_ns(io->ctx)};

    for (;;) {
        uint32_t seen = atomic_load(&wait_word->word);
        enum wal_status status =
            try_lock_unless_durable(control, byte, log_id, position, err);

        if (status != WAL_ELOCKED ||
            wait_is_over(control, byte, log_id, &wait)) {
            return status;
        }
        io->futex_wait(io->ctx, (const uint32_t *)&wait_word->word, seen,
                       POLL_INTERVAL_NS);
    }
}

enum wal_status wal__control_lock_unless_durable(struct wal__control *control,
                                                 uint64_t byte, uint32_t log_id,
                                                 uint64_t position,
                                                 struct wal_error *error)
{
    struct wal__wait_word *wait_word = wait_word_of(control, byte, log_id);
    enum wal_status status;
    int err = 0;

    status = try_lock_unless_durable(control, byte, log_id, position, &err);
    if (status == WAL_ELOCKED) {
        /* A process that unlocks from here on sees the waiter. */
        atomic_fetch_add(&wait_word->waiters, 1);
        status = wait_for_lock(control, byte, log_id, position, &err);
        atomic_fetch_sub(&wait_word->waiters, 1);
    }
    if (status == WAL_OK || status == WAL_END) {
        return status;
    }
    if (status == WAL_ELOCKED) {
        return fail_locked(control, byte, log_id, error);
    }
    return wal__fail_at(error, status, err, control->path, byte,
                        "cannot lock byte %" PRIu64, byte);
}

enum wal_status wal__control_lock(struct wal__control *control, uint64_t byte,
                                  uint32_t log_id, struct wal_error *error)
{
    return wal__control_lock_unless_durable(control, byte, log_id, UINT64_MAX,
                                            error);
}

bool wal__control_take_over_sync_lock(struct wal__control *control,
                                      uint32_t log_id)
{
    struct wal__control_log *shared = &control->page->logs[log_id];
    uint64_t byte = WAL__LOCK_SYNC + log_id;
    uint32_t round = atomic_load(&shared->sync_round);
    uint32_t holder = atomic_load(&shared->sync_holder);

    if (holder_runs(control, byte, log_id)) {
        return false;
    }
    /* Before the round: the next holder must not trust a sync. */
    wal__control_poison(shared, WAL__POISON_STOPPED, holder);
    (void)atomic_compare_exchange_strong(&shared->sync_round, &round,
                                         round + 1);
    return true;
}

bool wal__control_has_waiters(struct wal__control *control, uint64_t byte,
                              uint32_t log_id)
{
    return atomic_load(&wait_word_of(control, byte, log_id)->waiters) != 0;
}

void wal__control_unlock(struct wal__control *control, uint64_t byte,
                         uint32_t log_id)
{
    struct wal__wait_word *wait_word = wait_word_of(control, byte, log_id);
    enum wal__wait_queue queue = wait_queue_of(byte);
    _Atomic uint32_t *holder = holder_of(control, byte, log_id);
    const struct wal__io *io = control->env->io;
    uint32_t own = control->process_id;
    int ignored = 0;

    WAL__ASSERT(byte % 8 == log_id);
    /* Another process may have taken the sync lock over. */
    (void)atomic_compare_exchange_strong(holder, &own, 0);
    if (byte == WAL__LOCK_SYNC + log_id) {
        byte = sync_byte(log_id, control->sync_round[log_id]);
    }
    /* A lock that the kernel does not release now is released with the file;
     * until then other processes report its holder. */
    (void)!wal__control_set_lock(control, byte, WAL__IO_LOCK_NONE, &ignored);
    if (atomic_load(&wait_word->waiters) != 0) {
        atomic_fetch_add(&wait_word->word, 1);
        io->futex_wake(io->ctx, (const uint32_t *)&wait_word->word,
                       queue == WAL__WAIT_SYNC ? UINT32_MAX : 1);
    }
}
