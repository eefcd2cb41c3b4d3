/*
 * lock_owner.c - names of lock holders (lock_owner.h), and the compaction lock,
 * which is tried and never waited for.
 */
#include "engine/log/lock_owner.h"

#include "engine/base/error.h"
#include "engine/log/control_lock.h"

void wal__lock_owner_publish(const struct wal__control *control,
                             struct wal__lock_owner *owner)
{
    atomic_store(&owner->start, control->process_start_time);
    atomic_store(&owner->process, control->process_id);
}

uint32_t wal__lock_owner_find(const struct wal__control *control,
                              struct wal__lock_owner *owner)
{
    const struct wal__io *io = control->env->io;
    uint32_t process = atomic_load(&owner->process);
    uint64_t start = atomic_load(&owner->start);
    uint64_t now = process == 0 ? 0 : io->process_start_time(io->ctx, process);

    return now != 0 && (now == start || now == UINT64_MAX) ? process : 0;
}

enum wal_status wal__compact_lock_refused(const struct wal__control *control,
                                          uint32_t holder,
                                          struct wal_error *error)
{
    enum wal_status status =
        holder == 0
            ? wal__fail_at(error, WAL_ELOCKED, 0, control->path, 0,
                           "another process compacts the store, or backs "
                           "it up")
            : wal__fail_at(error, WAL_ELOCKED, 0, control->path, 0,
                           "process %u compacts the store", holder);

    wal__error_set_holder(error, (int32_t)holder);
    return status;
}

enum wal_status wal__compact_lock_acquire(struct wal__control *control,
                                          struct wal_error *error)
{
    struct wal__control_page *page = control->file_page;
    int err = 0;
    enum wal_status status = wal__control_set_lock(
        control, WAL__LOCK_COMPACT, WAL__IO_LOCK_EXCLUSIVE, &err);

    if (status == WAL_ELOCKED) {
        return wal__compact_lock_refused(
            control,
            page == NULL ? 0
                         : wal__lock_owner_find(control, &page->compact_owner),
            error);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path,
                            WAL__LOCK_COMPACT, "cannot lock the compaction");
    }
    if (page != NULL) {
        wal__lock_owner_publish(control, &page->compact_owner);
    }
    return WAL_OK;
}

void wal__compact_lock_release(struct wal__control *control)
{
    int ignored = 0;

    if (control->file_page != NULL) {
        atomic_store(&control->file_page->compact_owner.process, 0);
    }
    /* A lock that the kernel does not release now is released with the file. */
    (void)!wal__control_set_lock(control, WAL__LOCK_COMPACT, WAL__IO_LOCK_NONE,
                                 &ignored);
}
