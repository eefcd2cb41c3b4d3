/*
 * sync.c - making the log durable, by one sync for all waiters, and the poison that a failed one
 * leaves (SPEC.md 3.3, 4.2). Any thread.
 *
 * Invariant: the durable end only rises, and never exceeds what a successful sync has covered.
 * After a failed sync, or one whose outcome nobody knows, no process syncs or appends until the log
 * is healed: a later sync may succeed without the bytes that the failed one dropped.
 *
 * A process that lost the sync lock to a takeover may be anywhere in sync_and_publish. So each of
 * its stores must be harmless late: the durable end is raised, never set; syncing_pid is changed
 * only from the expected value; the poison of a log that was healed since costs another healing.
 *
 * Lock order: append lock, sync_mutex, sync lock byte. A sync acquires no other lock while it holds
 * them.
 */
#include "engine/base/error.h"
#include "engine/log/locks.h"
#include "engine/log/log.h"
#include "format/bytes/assert.h"

enum {
    UNSYNCED_SIZE_MAX = 4 * 1024 * 1024, /* before a background sync */
    SMALL_SYNC_SIZE = 1024 * 1024,       /* larger syncs are not typical durations */
    TAKEOVERS_MAX = 4                    /* of stopped processes, each a lock timeout long */
};

static enum wal_status fail_poisoned(const struct wal__log *log, struct wal_error *error)
{
    uint64_t poison = atomic_load(&log->shared->poison);
    uint32_t detail = (uint32_t)poison;
    enum wal_status status = WAL_EPOISONED;

    switch ((enum wal__poison_kind)(poison >> 32)) {
    case WAL__POISON_WRITE:
        return wal__fail_at(error, status, (int)detail, NULL, 0, "a write to the log failed");
    case WAL__POISON_SYNC:
        return wal__fail_at(error, status, (int)detail, NULL, 0, "a sync of the log failed");
    case WAL__POISON_DEATH:
        return wal__fail(error, status, "process %u died while it synced the log", detail);
    case WAL__POISON_STOPPED:
        if (detail == 0) {
            return wal__fail(error, status, "a process was stopped while it synced the log");
        }
        return wal__fail(error, status, "process %u was stopped while it synced the log", detail);
    case WAL__POISON_NONE: /* healed just now */
    case WAL__POISON_UNKNOWN:
    default:
        return wal__fail(error, status,
                         "a sync of the log may have failed in an earlier "
                         "process");
    }
}

enum wal_status wal__log_check_poison(const struct wal__log *log, struct wal_error *error)
{
    return atomic_load(&log->shared->poison) == 0 ? WAL_OK : fail_poisoned(log, error);
}

bool wal__log_is_durable(const struct wal__log *log, uint64_t position)
{
    return atomic_load(&log->shared->durable) >= position;
}

void wal__log_set_durable(struct wal__log *log, uint64_t position)
{
    uint64_t durable = atomic_load(&log->shared->durable);

    while (durable < position &&
           !atomic_compare_exchange_weak(&log->shared->durable, &durable, position)) {
    }
    wal__control_notify(log->control, log->log_id, WAL__LOG_EVENT_DURABLE);
}

/* Syncs the segment that contains the written end. */
static enum wal_status sync_written(struct wal__log *log, uint64_t written, int *err)
{
    const struct wal__io *io = log->env->io;
    uint64_t id = wal__position_segment(written);
    struct wal__segment *segment = wal__log_use_segment(log, id);
    struct wal__file *file = NULL;
    char path[WAL__PATH_MAX];
    enum wal_status status;

    atomic_fetch_add(&log->syncs, 1);
    wal__write_map_evict(&log->write_map, io);
    if (segment != NULL) {
        WAL__ASSERT(segment->id == id);
        status = io->sync(io->ctx, segment->file, err);
        wal__log_end_use(segment);
        return status;
    }
    /* Another process rotated to a segment that this one has not opened. */
    wal__segment_path(log->env, log->directory, id, path);
    status = io->open(io->ctx, path, WAL__IO_WRITE, &file, err);
    if (status == WAL_OK) {
        status = io->sync(io->ctx, file, err);
        io->close(io->ctx, file);
    }
    return status;
}

/* With the sync lock: a syncing_pid that is still set is that of a process that died while it
 * synced. What its sync covered is unknown. */
static void poison_if_syncer_died(struct wal__log *log)
{
    uint64_t syncing = atomic_load(&log->shared->syncing_pid);

    if (syncing != 0) {
        wal__control_poison(log->shared, WAL__POISON_DEATH, (uint32_t)syncing);
        (void)atomic_compare_exchange_strong(&log->shared->syncing_pid, &syncing, 0);
    }
}

void wal__log_check_dead_syncer(struct wal__log *log)
{
    uint64_t lock = WAL__LOCK_SYNC + log->log_id;
    int ignored = 0;

    /* If the mutex is locked, a thread of this process is syncing. */
    if (atomic_load(&log->shared->syncing_pid) == 0 ||
        pthread_mutex_trylock(&log->sync_mutex) != 0) {
        return;
    }
    if (wal__control_try_lock(log->control, lock, log->log_id, &ignored) == WAL_OK) {
        poison_if_syncer_died(log);
        wal__control_unlock(log->control, lock, log->log_id);
    }
    pthread_mutex_unlock(&log->sync_mutex);
}

/* With the sync lock: syncs up to the written end, and publishes it, unless the log is poisoned. */
static enum wal_status sync_and_publish(struct wal__log *log, struct wal_error *error)
{
    struct wal__control_log *shared = log->shared;
    const struct wal__io *io = log->env->io;
    uint64_t own = log->control->process_id;
    enum wal_status status = WAL_EPOISONED;
    uint64_t syncing = 0;
    int err = 0;

    poison_if_syncer_died(log);
    if (!atomic_compare_exchange_strong(&shared->syncing_pid, &syncing, own)) {
        /* Another process syncs, which lost the lock and continues. */
        wal__control_poison(shared, WAL__POISON_STOPPED, (uint32_t)syncing);
        return fail_poisoned(log, error);
    }
    /* Read after that: a sync that failed before has set it. */
    if (atomic_load(&shared->poison) == 0) {
        uint64_t begin = io->monotonic_ns(io->ctx);
        uint64_t written = atomic_load(&shared->written);
        uint64_t durable = atomic_load(&shared->durable);

        status = sync_written(log, written, &err);
        if (written - durable < SMALL_SYNC_SIZE) {
            atomic_store(&log->last_sync_ns, io->monotonic_ns(io->ctx) - begin);
        }
        if (status != WAL_OK) {
            wal__control_poison(shared, WAL__POISON_SYNC, (uint32_t)err);
        } else if (atomic_load(&shared->syncing_pid) != own) {
            /* Another sync of the segment may have failed meanwhile. */
            status = WAL_EPOISONED;
        } else {
            wal__log_set_durable(log, written);
        }
    }
    if (status != WAL_OK) {
        status = fail_poisoned(log, error);
    }
    (void)atomic_compare_exchange_strong(&shared->syncing_pid, &own, 0);
    return status;
}

enum wal_status wal__log_lock_sync(struct wal__log *log, uint64_t position, struct wal_error *error)
{
    enum wal_status status;
    int takeovers = 0;

    do {
        status = wal__control_lock_unless_durable(log->control, WAL__LOCK_SYNC + log->log_id,
                                                  log->log_id, position, error);
    } while (status == WAL_ELOCKED && takeovers++ < TAKEOVERS_MAX &&
             wal__control_take_over_sync_lock(log->control, log->log_id));
    return status;
}

/* sync_mutex is held. As wal__log_sync. */
static enum wal_status sync_to(struct wal__log *log, uint64_t position, struct wal_error *error)
{
    enum wal_status status;

    if (wal__log_is_durable(log, position)) {
        return WAL_OK;
    }
    status = wal__log_lock_sync(log, position, error);
    if (status == WAL_OK) {
        if (!wal__log_is_durable(log, position)) {
            status = sync_and_publish(log, error);
        }
        wal__control_unlock(log->control, WAL__LOCK_SYNC + log->log_id, log->log_id);
    }
    /* Another process may have healed the log meanwhile. */
    return status == WAL_END || wal__log_is_durable(log, position) ? WAL_OK : status;
}

enum wal_status wal__log_sync(struct wal__log *log, uint64_t position, struct wal_error *error)
{
    enum wal_status status;

    if (position == UINT64_MAX) {
        position = atomic_load(&log->shared->written) + 1;
    }
    if (wal__log_is_durable(log, position)) {
        return WAL_OK;
    }
    pthread_mutex_lock(&log->sync_mutex);
    status = sync_to(log, position, error);
    pthread_mutex_unlock(&log->sync_mutex);
    return status;
}

bool wal__log_needs_background_sync(const struct wal__log *log)
{
    uint64_t written = atomic_load(&log->shared->written);
    uint64_t durable = atomic_load(&log->shared->durable);

    return wal__position_segment(written) == wal__position_segment(durable) &&
           written >= durable + UNSYNCED_SIZE_MAX;
}

void wal__log_background_sync(struct wal__log *log)
{
    if (!wal__log_needs_background_sync(log) || wal__log_check_poison(log, NULL) != WAL_OK) {
        return;
    }
    /* The thread that holds the mutex syncs, or heals. */
    if (pthread_mutex_trylock(&log->sync_mutex) == 0) {
        (void)!sync_to(log, atomic_load(&log->shared->written), NULL);
        pthread_mutex_unlock(&log->sync_mutex);
    }
}
