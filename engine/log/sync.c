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
    WRITE_BEHIND = 4 * 1024 * 1024,
    SYNC_SMALL = 1024 * 1024 /* what syncs usually have to write */
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
    return wal__fail(error, WAL_EPOISONED, 0, NULL, 0,
                     "a write or sync of the store failed; what it covered is "
                     "unknown; reads go on, and the next append heals it");
}

void wal__log_set_durable(struct wal__log *log, uint64_t position)
{
    atomic_store(&log->shared->durable, position);
    wal__control_tell(log->control, log->stream, WAL__FOLLOW_DURABLE);
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
static void notice_death(struct wal__log *log)
{
    if (atomic_load(&log->shared->syncing) != 0) {
        wal__log_poison(log);
        atomic_store(&log->shared->syncing, 0);
    }
}

void wal__log_find_death(struct wal__log *log)
{
    uint64_t lock = WAL__LOCK_SYNC + log->stream;
    int ignored = 0;

    /* A mutex that is taken is that of a thread that syncs. */
    if (atomic_load(&log->shared->syncing) == 0 ||
        pthread_mutex_trylock(&log->sync_mutex) != 0) {
        return;
    }
    if (wal__control_lock_free(log->control, lock, log->stream, &ignored) ==
        WAL_OK) {
        notice_death(log);
        wal__control_unlock(log->control, lock, log->stream);
    }
    pthread_mutex_unlock(&log->sync_mutex);
}

/* The sync turn is held: syncs and publishes. */
static enum wal_status take_turn(struct wal__log *log, struct wal_error *error)
{
    struct wal__control_stream *shared = log->shared;
    const struct wal__io *io = log->env->io;
    uint64_t begin, written, durable;
    enum wal_status status;
    int err = 0;

    notice_death(log);
    status = wal__log_check_poison(log, error);
    if (status != WAL_OK) {
        return status;
    }
    begin = io->ticks_ns(io->ctx);
    atomic_store(&shared->syncing, log->control->process_id);
    written = atomic_load(&shared->written);
    durable = atomic_load(&shared->durable);
    status = sync_written(log, written, &err);
    if (written - durable < SYNC_SMALL) {
        atomic_store(&log->sync_ns, io->ticks_ns(io->ctx) - begin);
    }
    if (status == WAL_OK) {
        wal__log_set_durable(log, written);
    } else {
        wal__log_poison(log);
        status = wal__fail(error, WAL_EPOISONED, err, NULL, 0,
                           "a sync failed; what it covered is unknown: open "
                           "the store again and ask by id");
    }
    atomic_store(&shared->syncing, 0);
    return status;
}

enum wal_status wal__log_sync(struct wal__log *log, uint64_t position,
                              struct wal_error *error)
{
    uint64_t lock = WAL__LOCK_SYNC + log->stream;
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
    status = wal__control_lock_unless(log->control, lock, log->stream, position,
                                      error);
    if (status == WAL_END) {
        status = wal__log_check_poison(log, error);
        goto done;
    }
    if (status != WAL_OK) {
        /* What waits for this is written: no answer may say that it is not. */
        if (status != WAL_ELOCKED) {
            status = wal__fail(error, WAL_EIO, 0, log->control->path, lock,
                               "cannot take the sync turn; whether what was "
                               "written is durable is unknown");
        }
        goto done;
    }
    if (atomic_load(&log->shared->durable) < position) {
        status = take_turn(log, error);
    }
    wal__control_unlock(log->control, lock, log->stream);

done:
    pthread_mutex_unlock(&log->sync_mutex);
    return status;
}

bool wal__log_lags(const struct wal__log *log)
{
    uint64_t written = atomic_load(&log->shared->written);
    uint64_t durable = atomic_load(&log->shared->durable);

    return wal__position_segment(written) == wal__position_segment(durable) &&
           written >= durable + WRITE_BEHIND;
}

void wal__log_write_behind(struct wal__log *log)
{
    if (wal__log_lags(log) && wal__log_check_poison(log, NULL) == WAL_OK) {
        (void)!wal__log_sync(log, atomic_load(&log->shared->written), NULL);
    }
}

enum wal_status wal__log_lease(struct wal__log *log, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (!log->passed_on) {
        status = wal__control_lock(log->control, WAL__LOCK_LEASE + log->stream,
                                   log->stream, error);
    }
    log->passed_on = false;
    if (status == WAL_OK) {
        status = wal__control_check_often(log->control, error);
        if (status != WAL_OK) {
            wal__log_release(log);
        }
    }
    return status;
}

void wal__log_release(struct wal__log *log)
{
    wal__control_unlock(log->control, WAL__LOCK_LEASE + log->stream,
                        log->stream);
}

void wal__log_pass_on(struct wal__log *log)
{
    log->passed_on = !wal__control_wanted(
        log->control, WAL__LOCK_LEASE + log->stream, log->stream);
    if (!log->passed_on) {
        wal__log_release(log);
    }
}

void wal__log_end_lease(struct wal__log *log)
{
    if (log->passed_on) {
        log->passed_on = false;
        wal__log_release(log);
    }
}
