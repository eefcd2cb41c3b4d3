/*
 * sync.c - making the log durable, by one sync for all waiters, and the poison
 * that a failed one leaves (SPEC.md 3.3, 4.2). Any thread.
 *
 * Invariant: the durable end never exceeds what a successful sync has covered;
 * after a failed sync no call in any process reports that anything is durable,
 * until the log is healed.
 *
 * Lock order: append lock, sync_mutex, sync lock byte. A sync acquires no other
 * lock while it holds them.
 */
#include "engine/base/error.h"
#include "engine/log/log.h"
#include "engine/process/control_lock.h"
#include "format/bytes/assert.h"

enum {
    UNSYNCED_SIZE_MAX = 4 * 1024 * 1024, /* before a background sync */
    SMALL_SYNC_SIZE = 1024 * 1024 /* larger syncs are not typical durations */
};

void wal__log_poison(struct wal__log *log)
{
    atomic_store(&log->shared->poison, 1);
}

enum wal_status wal__log_check_poison(const struct wal__log *log,
                                      struct wal_error *error)
{
    if (atomic_load(&log->shared->poison) == 0) {
        return WAL_OK;
    }
    return wal__fail(error, WAL_EPOISONED,
                     "a write or sync of the store failed; whether what it "
                     "covered is durable is unknown; reads work, and the next "
                     "append heals the log");
}

void wal__log_set_durable(struct wal__log *log, uint64_t position)
{
    atomic_store(&log->shared->durable, position);
    wal__control_notify(log->control, log->log_id, WAL__LOG_EVENT_DURABLE);
}

/* Syncs the segment that contains the written end. */
static enum wal_status sync_written(struct wal__log *log, uint64_t written,
                                    int *err)
{
    const struct wal__io *io = log->env->io;
    uint64_t id = wal__position_segment(written);
    struct wal__segment *segment = wal__log_segment(log, id);
    struct wal__file *file = NULL;
    char path[WAL__PATH_MAX];
    enum wal_status status;

    atomic_fetch_add(&log->syncs, 1);
    if (segment != NULL) {
        WAL__ASSERT(segment->id == id);
        return io->sync(io->ctx, segment->file, err);
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

/* With the sync lock: a syncing_pid that is still set is that of a process that
 * died while it synced. What its sync covered is unknown. */
static void poison_if_syncer_died(struct wal__log *log)
{
    if (atomic_load(&log->shared->syncing_pid) != 0) {
        wal__log_poison(log);
        atomic_store(&log->shared->syncing_pid, 0);
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
    if (wal__control_try_lock(log->control, lock, log->log_id, &ignored) ==
        WAL_OK) {
        poison_if_syncer_died(log);
        wal__control_unlock(log->control, lock, log->log_id);
    }
    pthread_mutex_unlock(&log->sync_mutex);
}

/* With the sync lock: syncs up to the written end, and publishes it. */
static enum wal_status sync_and_publish(struct wal__log *log,
                                        struct wal_error *error)
{
    struct wal__control_log *shared = log->shared;
    const struct wal__io *io = log->env->io;
    uint64_t begin, written, durable;
    enum wal_status status;
    int err = 0;

    poison_if_syncer_died(log);
    status = wal__log_check_poison(log, error);
    if (status != WAL_OK) {
        return status;
    }
    begin = io->monotonic_ns(io->ctx);
    atomic_store(&shared->syncing_pid, log->control->process_id);
    written = atomic_load(&shared->written);
    durable = atomic_load(&shared->durable);
    status = sync_written(log, written, &err);
    if (written - durable < SMALL_SYNC_SIZE) {
        atomic_store(&log->last_sync_ns, io->monotonic_ns(io->ctx) - begin);
    }
    if (status == WAL_OK) {
        wal__log_set_durable(log, written);
    } else {
        wal__log_poison(log);
        status =
            wal__fail_at(error, WAL_EPOISONED, err, NULL, 0,
                         "a sync failed; whether what it covered is durable "
                         "is unknown: open the store again and look the "
                         "entries up by id");
    }
    atomic_store(&shared->syncing_pid, 0);
    return status;
}

enum wal_status wal__log_sync(struct wal__log *log, uint64_t position,
                              struct wal_error *error)
{
    uint64_t lock = WAL__LOCK_SYNC + log->log_id;
    enum wal_status status;

    if (position == UINT64_MAX) {
        position = atomic_load(&log->shared->written) + 1;
    }
    if (atomic_load(&log->shared->durable) >= position) {
        return wal__log_check_poison(log, error);
    }
    pthread_mutex_lock(&log->sync_mutex);
    if (atomic_load(&log->shared->durable) >= position) {
        status = wal__log_check_poison(log, error);
        goto done;
    }
    status = wal__control_lock_unless_durable(log->control, lock, log->log_id,
                                              position, error);
    if (status == WAL_END) {
        status = wal__log_check_poison(log, error);
        goto done;
    }
    if (status != WAL_OK) {
        /* The groups are written: the status must not deny that. */
        if (status != WAL_ELOCKED) {
            status = wal__fail_at(error, WAL_EIO, 0, log->control->path, lock,
                                  "cannot acquire the sync lock; whether what "
                                  "was written is durable is unknown");
        }
        goto done;
    }
    if (atomic_load(&log->shared->durable) < position) {
        status = sync_and_publish(log, error);
    }
    wal__control_unlock(log->control, lock, log->log_id);

done:
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
    if (wal__log_needs_background_sync(log) &&
        wal__log_check_poison(log, NULL) == WAL_OK) {
        (void)!wal__log_sync(log, atomic_load(&log->shared->written), NULL);
    }
}
