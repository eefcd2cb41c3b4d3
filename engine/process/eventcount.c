/*
 * eventcount.c - how the processes of a store notice each other's doings
 * (SPEC.md 4.1): ends that rise, and a LOCK that is no longer the one that they
 * share. Invariant: whoever listened before it looked is woken by whatever
 * rises afterwards. Any thread.
 */
#include "engine/base/error.h"
#include "engine/process/control.h"

enum {
    CHECK_INTERVAL_NS = 10000000
};

void wal__control_notify(struct wal__control *control, uint32_t log_id,
                         enum wal__log_event what)
{
    _Atomic uint32_t *word = &control->page->eventcounts[log_id][what];
    uint32_t seen = atomic_load(word);

    if (seen % 2 == 1 &&
        atomic_compare_exchange_strong(word, &seen, seen + 1)) {
        control->env->io->futex_wake(control->env->io->ctx,
                                     (const uint32_t *)word, UINT32_MAX);
    }
}

uint32_t wal__control_prepare_wait(struct wal__control *control,
                                   uint32_t log_id, enum wal__log_event what,
                                   const uint32_t **word)
{
    _Atomic uint32_t *at = &control->page->eventcounts[log_id][what];

    *word = (const uint32_t *)at;
    return atomic_fetch_or(at, 1) | 1;
}

/* Whether the store's directory is gone from where it was named: the working
 * directory has changed. */
static bool working_directory_changed(const struct wal__control *control)
{
    const struct wal__io *io = control->env->io;
    struct wal__io_stat stat;
    int err = 0;

    return control->path[0] != '/' &&
           io->path_stat(io->ctx, control->env->root, &stat, &err) ==
               WAL_ENOTFOUND;
}

enum wal_status wal__control_check_lock_file(const struct wal__control *control,
                                             struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    struct wal__io_stat stat;
    enum wal_status status;
    int err = 0;

    status = io->path_stat(io->ctx, control->path, &stat, &err);
    if (status == WAL_OK && stat.device == control->device &&
        stat.inode == control->inode) {
        return WAL_OK;
    }
    if (status == WAL_ENOTFOUND && working_directory_changed(control)) {
        return WAL_OK;
    }
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return wal__fail_at(error, status, err, control->path, 0,
                            "cannot tell whether this is the file that the "
                            "processes of the store lock");
    }
    return wal__fail_at(
        error, WAL_ELOCKFILE, 0, control->path, 0,
        "the file was %s while the store is open: nothing is "
        "written any more; close the store in every process and "
        "open it again",
        status == WAL_OK ? "replaced" : "removed");
}

enum wal_status wal__control_check_ratelimited(struct wal__control *control,
                                               struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    uint64_t now = io->monotonic_ns(io->ctx);
    enum wal_status status;

    if (now - atomic_load(&control->checked_ns) < CHECK_INTERVAL_NS) {
        return WAL_OK;
    }
    status = wal__control_check_lock_file(control, error);
    if (status == WAL_OK) {
        atomic_store(&control->checked_ns, now);
    }
    return status;
}
