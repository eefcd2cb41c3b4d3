/*
 * io.c - the table that a process of a schedule is given: that of its
 * simulated process, with a step of the schedule before and after each call;
 * and who holds which lock, as far as it can be seen from here (sched.h).
 */
#include "tests/sim/sched/internal.h"

#include <string.h>

#include "engine/log/control.h"
#include "tests/sim/disk/internal.h"

/* ------------------------------------------------------------- locks --- */

/* The byte of round 0 for one of a later round of the sync lock. */
static uint64_t nominal_byte(uint64_t byte)
{
    bool is_later = byte >= WAL__LOCK_SYNC + WAL__LOCK_SYNC_STRIDE &&
                    byte < WAL__LOCK_CLAIM;

    return is_later ? WAL__LOCK_SYNC +
                          (byte - WAL__LOCK_SYNC) % WAL__LOCK_SYNC_STRIDE
                    : byte;
}

static struct sched_lock *lock_at(struct sched *sched, uint64_t byte)
{
    switch (byte) {
    case WAL__LOCK_PARTICIPANT:
        return &sched->locks[0];
    case WAL__LOCK_OPEN:
        return &sched->locks[6];
    case WAL__LOCK_CATALOGUE:
        return &sched->locks[1];
    case WAL__LOCK_INDEX:
        return &sched->locks[10];
    case WAL__LOCK_INDEX + 1:
        return &sched->locks[11];
    case WAL__LOCK_APPEND:
        return &sched->locks[2];
    case WAL__LOCK_SYNC:
        return &sched->locks[3];
    case WAL__LOCK_PREALLOC:
        return &sched->locks[4];
    case WAL__LOCK_APPEND + 1: /* of blobs */
        return &sched->locks[7];
    case WAL__LOCK_SYNC + 1:
        return &sched->locks[8];
    case WAL__LOCK_PREALLOC + 1:
        return &sched->locks[9];
    default:
        return &sched->locks[5];
    }
}

/* For itself alone. */
bool sched__holds(const struct sched_process *process, uint64_t byte)
{
    return (lock_at(process->sched, byte)->exclusive & 1u << process->slot) !=
           0;
}

void sched__unlock_all(struct sched_process *process)
{
    for (uint32_t i = 0; i < SCHED_LOCKS; i++) {
        process->sched->locks[i].exclusive &= ~(1u << process->slot);
        process->sched->locks[i].shared &= ~(1u << process->slot);
    }
    process->begun = false;
    process->owner_unpublished = false;
}

static void track_lock(struct sched_process *process, uint64_t byte,
                       enum wal__io_lock mode)
{
    struct sched_lock *lock = lock_at(process->sched, byte);
    uint32_t bit = 1u << process->slot;

    lock->shared &= ~bit;
    lock->exclusive &= ~bit;
    lock->shared |= mode == WAL__IO_LOCK_SHARED ? bit : 0;
    lock->exclusive |= mode == WAL__IO_LOCK_EXCLUSIVE ? bit : 0;
    process->owner_unpublished = mode == WAL__IO_LOCK_EXCLUSIVE;
    if (process->blocked_byte == byte && mode != WAL__IO_LOCK_NONE) {
        process->blocked_byte = 0;
    }
    if (byte == WAL__LOCK_PREALLOC) {
        process->begun = false;
    }
    if (byte == WAL__LOCK_PARTICIPANT && mode == WAL__IO_LOCK_EXCLUSIVE &&
        (process->activity_bits & 1u << SCHED_OPENING) != 0) {
        process->sched->counts->outcomes[SCHED_RECOVERIES]++;
    }
}

/* Another process holds it. What writes a derived file tries its lock once, and
 * goes on without: that is no reason for WAL_ELOCKED, one before may be. */
static void track_blocked(struct sched_process *process, uint64_t byte)
{
    if (byte == WAL__LOCK_INDEX || byte == WAL__LOCK_INDEX + 1 ||
        (byte == WAL__LOCK_CATALOGUE && process->blocked_byte != 0)) {
        return;
    }
    process->last_polled_ns = sched__now(process->sched);
    if (process->blocked_byte != byte) {
        process->blocked_byte = byte;
        process->blocked_ns = process->last_polled_ns;
    }
}

bool sched__page_is_poisoned(const struct sched_process *process)
{
    const struct wal__control_page *page = process->page;

    return page != NULL && (atomic_load(&page->logs[0].poison) != 0 ||
                            atomic_load(&page->logs[1].poison) != 0);
}

struct sched_process *sched__exclusive_holder(struct sched *sched,
                                              uint64_t byte)
{
    uint32_t held = lock_at(sched, byte)->exclusive;

    for (uint32_t i = 0; i < sched->options.processes; i++) {
        if ((held & 1u << i) != 0) {
            return &sched->processes[i];
        }
    }
    return NULL;
}

/* ------------------------------------------------------------- steps --- */

static bool is_segment(const char *path)
{
    const char *dot = path == NULL ? NULL : strrchr(path, '.');

    return dot != NULL && strcmp(dot, ".seg") == 0;
}

/* Before a call: on a path, or on a file that was opened before. */
static void before(struct sched_process *process, enum sim_call call,
                   const char *path, uint64_t offset)
{
    process->call = call;
    process->offset = offset;
    process->on_segment = is_segment(path);
    if (process->sched->current == process) {
        process->owner_unpublished = process->unlocks;
        sched__step(process, true);
        process->owner_unpublished = false;
    }
}

static enum wal_status after(struct sched_process *process, enum sim_call call,
                             const char *path, uint64_t offset,
                             enum wal_status status)
{
    process->call = call;
    process->offset = offset;
    sched__trace(process, status, path);
    if (process->sched->current == process) {
        sched__step(process, false);
    }
    return status;
}

static const char *path_of(const struct wal__file *file)
{
    return file->path;
}

/* ------------------------------------------------------------- files --- */

static enum wal_status io_open(void *ctx, const char *path, int flags,
                               struct wal__file **file, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_OPEN, path, (uint64_t)flags);
    status =
        process->base->open(process->base->ctx, path, flags, file, sys_errno);
    return after(process, SIM_OPEN, path, (uint64_t)flags, status);
}

static void io_close(void *ctx, struct wal__file *file)
{
    struct sched_process *process = ctx;

    before(process, SIM_CLOSE, path_of(file), 0);
    if (file == process->lock_file) {
        sched__unlock_all(process);
        process->lock_file = NULL;
        process->failed_unlock = false;
    }
    process->base->close(process->base->ctx, file);
    (void)after(process, SIM_CLOSE, NULL, 0, WAL_OK);
}

static enum wal_status io_pread(void *ctx, struct wal__file *file, void *data,
                                size_t size, uint64_t offset, size_t *got,
                                int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_PREAD, path_of(file), offset);
    status = process->base->pread(process->base->ctx, file, data, size, offset,
                                  got, sys_errno);
    return after(process, SIM_PREAD, path_of(file), offset, status);
}

static enum wal_status io_pwritev(void *ctx, struct wal__file *file,
                                  const struct iovec *iov, int count,
                                  uint64_t offset, size_t *put, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_PWRITEV, path_of(file), offset);
    status = process->base->pwritev(process->base->ctx, file, iov, count,
                                    offset, put, sys_errno);
    if (is_segment(path_of(file)) && offset == 4096 &&
        sched__holds(process, WAL__LOCK_PREALLOC)) {
        process->begun = true;
        process->sched->counts->outcomes[SCHED_ROTATIONS]++;
    }
    return after(process, SIM_PWRITEV, path_of(file), offset, status);
}

static enum wal_status io_sync(void *ctx, struct wal__file *file,
                               int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_SYNC, path_of(file), 0);
    status = process->base->sync(process->base->ctx, file, sys_errno);
    return after(process, SIM_SYNC, path_of(file), 0, status);
}

static enum wal_status io_allocate(void *ctx, struct wal__file *file,
                                   uint64_t size, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_ALLOCATE, path_of(file), size);
    status = process->base->allocate(process->base->ctx, file, size, sys_errno);
    return after(process, SIM_ALLOCATE, path_of(file), size, status);
}

static enum wal_status io_punch(void *ctx, struct wal__file *file,
                                uint64_t offset, uint64_t size, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_PUNCH, path_of(file), offset);
    status =
        process->base->punch(process->base->ctx, file, offset, size, sys_errno);
    return after(process, SIM_PUNCH, path_of(file), offset, status);
}

static enum wal_status io_stat(void *ctx, struct wal__file *file,
                               struct wal__io_stat *out, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_STAT, path_of(file), 0);
    status = process->base->stat(process->base->ctx, file, out, sys_errno);
    return after(process, SIM_STAT, path_of(file), 0, status);
}

static enum wal_status io_map(void *ctx, struct wal__file *file, uint64_t size,
                              bool writable, void **at, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_MAP, path_of(file), size);
    status = process->base->map(process->base->ctx, file, size, writable, at,
                                sys_errno);
    if (status == WAL_OK && writable) {
        process->page = *at; /* nothing else is mapped to be written */
    }
    return after(process, SIM_MAP, path_of(file), size, status);
}

static void io_unmap(void *ctx, void *at, uint64_t size)
{
    struct sched_process *process = ctx;

    before(process, SIM_UNMAP, NULL, size);
    if (at == process->page) {
        process->page = NULL;
    }
    process->base->unmap(process->base->ctx, at, size);
    (void)after(process, SIM_UNMAP, NULL, size, WAL_OK);
}

static enum wal_status io_populate(void *ctx, const void *at, uint64_t size,
                                   int *sys_errno)
{
    struct sched_process *process = ctx;

    enum wal_status status;

    before(process, SIM_POPULATE, NULL, size);
    status = process->base->populate(process->base->ctx, at, size, sys_errno);
    return after(process, SIM_POPULATE, NULL, size, status);
}

static enum wal_status io_lock(void *ctx, struct wal__file *file,
                               uint64_t offset, enum wal__io_lock mode,
                               int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    /* No scheduled process lists claims. */
    WAL__ASSERT(mode != WAL__IO_LOCK_TEST);
    process->unlocks = mode == WAL__IO_LOCK_NONE;
    before(process, SIM_LOCK, path_of(file), offset);
    process->unlocks = false;
    process->lock_file = file;
    status =
        process->base->lock(process->base->ctx, file, offset, mode, sys_errno);
    if (status == WAL_OK) {
        track_lock(process, nominal_byte(offset), mode);
    } else if (status == WAL_ELOCKED) {
        track_blocked(process, nominal_byte(offset));
    } else if (mode == WAL__IO_LOCK_NONE) {
        process->failed_unlock = true;
        process->sched->may_lock = true;
    }
    return after(process, SIM_LOCK,
                 mode == WAL__IO_LOCK_NONE     ? "unlock"
                 : mode == WAL__IO_LOCK_SHARED ? "shared"
                                               : "exclusive",
                 offset, status);
}

/* ------------------------------------------------------------- names --- */

static enum wal_status io_path_stat(void *ctx, const char *path,
                                    struct wal__io_stat *out, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_PATH_STAT, path, 0);
    status = process->base->path_stat(process->base->ctx, path, out, sys_errno);
    return after(process, SIM_PATH_STAT, path, 0, status);
}

static enum wal_status io_make_directory(void *ctx, const char *path,
                                         int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_MAKE_DIRECTORY, path, 0);
    status = process->base->make_directory(process->base->ctx, path, sys_errno);
    return after(process, SIM_MAKE_DIRECTORY, path, 0, status);
}

static enum wal_status io_list(void *ctx, const char *path,
                               enum wal_status (*each)(void *arg,
                                                       const char *name),
                               void *arg, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_LIST, path, 0);
    status =
        process->base->list(process->base->ctx, path, each, arg, sys_errno);
    return after(process, SIM_LIST, path, 0, status);
}

static enum wal_status io_rename(void *ctx, const char *from, const char *to,
                                 int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_RENAME, to, 0);
    status = process->base->rename(process->base->ctx, from, to, sys_errno);
    if (status == WAL_OK && is_segment(to) &&
        sched__holds(process, WAL__LOCK_SYNC)) {
        process->sched->heal_name_pending = true;
    }
    return after(process, SIM_RENAME, to, 0, status);
}

static enum wal_status io_unlink(void *ctx, const char *path, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_UNLINK, path, 0);
    status = process->base->unlink(process->base->ctx, path, sys_errno);
    return after(process, SIM_UNLINK, path, 0, status);
}

static enum wal_status io_remove_directory(void *ctx, const char *path,
                                           int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_UNLINK, path, 0);
    status =
        process->base->remove_directory(process->base->ctx, path, sys_errno);
    return after(process, SIM_UNLINK, path, 0, status);
}

/* Of the store's own names, and of a segment that healing made, it is not
 * promised what a loss of power leaves after a sync of them that failed. */
static void track_name_sync(struct sched *sched, bool own, bool synced)
{
    if (!synced && (own || sched->heal_name_pending)) {
        sched->names_unsynced = true;
    }
    if (synced && !own) {
        sched->heal_name_pending = false;
    }
}

static enum wal_status io_sync_directory(void *ctx, const char *path,
                                         int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_SYNC_DIRECTORY, path, 0);
    status = process->base->sync_directory(process->base->ctx, path, sys_errno);
    process->sched->directory_failed |= status != WAL_OK;
    track_name_sync(process->sched, strchr(path + 1, '/') == NULL,
                    status == WAL_OK);
    return after(process, SIM_SYNC_DIRECTORY, path, 0, status);
}

static enum wal_status io_storage(void *ctx, const char *path,
                                  enum wal__storage *storage, char *name,
                                  int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_STORAGE, path, 0);
    status = process->base->storage(process->base->ctx, path, storage, name,
                                    sys_errno);
    return after(process, SIM_STORAGE, path, 0, status);
}

static uint64_t io_free_space(void *ctx, const char *path)
{
    struct sched_process *process = ctx;

    before(process, SIM_ANY, NULL, 0);
    return process->base->free_space(process->base->ctx, path);
}

/* --------------------------------------------------- clocks and chance --- */

static int64_t io_now_ms(void *ctx)
{
    struct sched_process *process = ctx;

    before(process, SIM_ANY, NULL, 0);
    return process->base->now_ms(process->base->ctx);
}

static uint64_t io_monotonic_ns(void *ctx)
{
    struct sched_process *process = ctx;

    before(process, SIM_ANY, NULL, 0);
    return process->base->monotonic_ns(process->base->ctx);
}

static void io_random(void *ctx, void *data, size_t size)
{
    struct sched_process *process = ctx;

    before(process, SIM_ANY, NULL, 0);
    process->base->random(process->base->ctx, data, size);
}

static void io_boot_id(void *ctx, uint8_t out[16])
{
    struct sched_process *process = ctx;

    before(process, SIM_ANY, NULL, 0);
    process->base->boot_id(process->base->ctx, out);
}

static uint32_t io_process_id(void *ctx)
{
    struct sched_process *process = ctx;

    before(process, SIM_ANY, NULL, 0);
    return process->base->process_id(process->base->ctx);
}

static uint64_t io_process_start_time(void *ctx, uint32_t pid)
{
    struct sched_process *process = ctx;

    before(process, SIM_ANY, NULL, 0);
    return process->base->process_start_time(process->base->ctx, pid);
}

static bool io_process_is_stopped(void *ctx, uint32_t pid)
{
    struct sched_process *process = ctx;
    const struct sched *sched = process->sched;

    before(process, SIM_ANY, NULL, 0);
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        const struct sched_process *other = &sched->processes[i];

        if (other->process != NULL && other->id == pid && other->stopped) {
            return true;
        }
    }
    return false;
}

/* Waiting is a step of the schedule: it ends when the word is another, when
 * another process wakes it, or at the timeout; sometimes early. */
static void io_wait(void *ctx, const uint32_t *word, uint32_t expected,
                    uint64_t timeout_ns)
{
    struct sched_process *process = ctx;
    struct sched *sched = process->sched;

    if (sched->current != process) {
        process->base->futex_wait(process->base->ctx, word, expected,
                                  timeout_ns);
        return;
    }
    before(process, SIM_WAIT, NULL, timeout_ns);
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != expected) {
        return;
    }
    process->word = word;
    process->expected = expected;
    process->woken = false;
    process->due_ns = sched__now(sched) + timeout_ns;
    process->waits = true;
    (void)after(process, SIM_WAIT, NULL, timeout_ns, WAL_OK);
    process->waits = false;
}

static void io_wake(void *ctx, const uint32_t *word, uint32_t count)
{
    struct sched_process *process = ctx;
    struct sched *sched = process->sched;

    before(process, SIM_WAKE, NULL, 0);
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        struct sched_process *other = &sched->processes[i];

        if (count > 0 && other->waits && other->word == word && !other->woken) {
            other->woken = true;
            count--;
        }
    }
    (void)after(process, SIM_WAKE, NULL, 0, WAL_OK);
}

static const struct wal__io table = {
    .open = io_open,
    .close = io_close,
    .pread = io_pread,
    .pwritev = io_pwritev,
    .sync = io_sync,
    .allocate = io_allocate,
    .punch = io_punch,
    .stat = io_stat,
    .map = io_map,
    .unmap = io_unmap,
    .populate = io_populate,
    .lock = io_lock,
    .path_stat = io_path_stat,
    .make_directory = io_make_directory,
    .list = io_list,
    .rename = io_rename,
    .unlink = io_unlink,
    .remove_directory = io_remove_directory,
    .sync_directory = io_sync_directory,
    .storage = io_storage,
    .free_space = io_free_space,
    .now_ms = io_now_ms,
    .monotonic_ns = io_monotonic_ns,
    .random = io_random,
    .boot_id = io_boot_id,
    .process_id = io_process_id,
    .process_start_time = io_process_start_time,
    .process_is_stopped = io_process_is_stopped,
    .futex_wait = io_wait,
    .futex_wake = io_wake,
    .threads = false,
};

void sched__io_init(struct sched_process *process)
{
    process->io = table;
    process->io.ctx = process;
}
