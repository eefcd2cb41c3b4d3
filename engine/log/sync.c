/*
 * sync.c - making what was written durable, once for everybody who waits, and
 * the poison that a failure leaves (SPEC.md 3.3, 4.2).
 *
 * Invariant: the durable end never passes what a sync that succeeded has
 * covered; after a failed sync nobody, in any process, is told that anything
 * is durable.
 */
#include <inttypes.h>

#include "engine/base/error.h"
#include "engine/log/log.h"

enum {
    WRITE_BEHIND_SIZE = 4 * 1024 * 1024,
    SMALL_SYNC_SIZE = 1024 * 1024 /* what syncs usually have to write */
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
                     "a write or sync of the store failed; what it covered is "
                     "unknown; reads go on, and the next append heals it");
}

void wal__log_set_durable(struct wal__log *log, uint64_t position)
{
    atomic_store(&log->shared->durable, position);
    wal__control_notify(log->control, log->log_id, WAL__LOG_EVENT_DURABLE);
}

/* Syncs the segment that holds the written end. */
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
        return io->sync(io->ctx, segment->file, err);
    }
    /* Another process went on to a segment that this one has not seen. */
    wal__segment_path(log->env, log->directory, id, path);
    status = io->open(io->ctx, path, WAL__IO_WRITE, &file, err);
    if (status == WAL_OK) {
        status = io->sync(io->ctx, file, err);
        io->close(io->ctx, file);
    }
    return status;
}

/* The sync turn is held: a name that is there all the same is that of who died
 * at it, and what that sync covered is unknown. */
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

    /* A mutex that is taken is that of a thread that syncs. */
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

/* The sync turn is held: syncs and publishes. */
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
        status = wal__fail_at(error, WAL_EPOISONED, err, NULL, 0,
                              "a sync failed; what it covered is unknown: open "
                              "the store again and ask by id");
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
        /* What waits for this is written: no answer may say that it is not. */
        if (status != WAL_ELOCKED) {
            status = wal__fail_at(error, WAL_EIO, 0, log->control->path, lock,
                                  "cannot take the sync turn; whether what was "
                                  "written is durable is unknown");
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

bool wal__log_needs_write_behind(const struct wal__log *log)
{
    uint64_t written = atomic_load(&log->shared->written);
    uint64_t durable = atomic_load(&log->shared->durable);

    return wal__position_segment(written) == wal__position_segment(durable) &&
           written >= durable + WRITE_BEHIND_SIZE;
}

void wal__log_write_behind(struct wal__log *log)
{
    if (wal__log_needs_write_behind(log) &&
        wal__log_check_poison(log, NULL) == WAL_OK) {
        (void)!wal__log_sync(log, atomic_load(&log->shared->written), NULL);
    }
}

enum wal_status wal__log_lock_append(struct wal__log *log,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (!log->append_lock_retained) {
        status = wal__control_lock(log->control, WAL__LOCK_APPEND + log->log_id,
                                   log->log_id, error);
    }
    log->append_lock_retained = false;
    if (status == WAL_OK) {
        status = wal__control_check_ratelimited(log->control, error);
        if (status != WAL_OK) {
            wal__log_unlock_append(log);
        }
    }
    return status;
}

void wal__log_unlock_append(struct wal__log *log)
{
    wal__control_unlock(log->control, WAL__LOCK_APPEND + log->log_id,
                        log->log_id);
}

void wal__log_retain_append_lock(struct wal__log *log)
{
    log->append_lock_retained = !wal__control_has_waiters(
        log->control, WAL__LOCK_APPEND + log->log_id, log->log_id);
    if (!log->append_lock_retained) {
        wal__log_unlock_append(log);
    }
}

void wal__log_release_retained_lock(struct wal__log *log)
{
    if (log->append_lock_retained) {
        log->append_lock_retained = false;
        wal__log_unlock_append(log);
    }
}
