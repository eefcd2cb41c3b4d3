/*
 * io.c - the table that a process of a schedule is given: that of its simulated process, with a
 * step of the schedule before and after each call; and who holds which lock, as far as it can be
 * seen from here (sched.h).
 */
#include <errno.h>
#include <string.h>

#include "engine/log/control.h"
#include "tests/sim/disk/internal.h"
#include "tests/sim/sched/internal.h"

/* ------------------------------------------------------------- locks --- */

/* The byte of round 0 for one of a later round of the sync lock. */
static uint64_t nominal_byte(uint64_t byte)
{
    bool is_later = byte >= WAL__LOCK_SYNC + WAL__LOCK_SYNC_STRIDE && byte < WAL__LOCK_CLAIM;

    return is_later ? WAL__LOCK_SYNC + (byte - WAL__LOCK_SYNC) % WAL__LOCK_SYNC_STRIDE : byte;
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
static bool sched__holds(const struct sched_process *process, uint64_t byte)
{
    return (lock_at(process->sched, byte)->exclusive & 1u << process->slot) != 0;
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

static void track_lock(struct sched_process *process, uint64_t byte, enum wal__io_lock mode)
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

/* Another process holds it. What writes a derived file tries its lock once, and goes on without:
 * that is no reason for WAL_ELOCKED, one before may be. */
static void track_blocked(struct sched_process *process, uint64_t byte)
{
    process->blocked_by_fold |= byte == WAL__LOCK_CATALOGUE;
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

/* Whether the page that it has mapped says that the store is poisoned. */
static bool sched__page_is_poisoned(const struct sched_process *process)
{
    const struct wal__control_page *page = process->page;

    return page != NULL &&
           (atomic_load(&page->logs[0].poison) != 0 || atomic_load(&page->logs[1].poison) != 0);
}

struct sched_process *sched__exclusive_holder(struct sched *sched, uint64_t byte)
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
static void before(struct sched_process *process, enum sim_call call, const char *path,
                   uint64_t offset)
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

static enum wal_status after(struct sched_process *process, enum sim_call call, const char *path,
                             uint64_t offset, enum wal_status status)
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

static enum wal_status io_open(void *ctx, const char *path, int flags, struct wal__file **file,
                               int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_OPEN, path, (uint64_t)flags);
    status = process->base->open(process->base->ctx, path, flags, file, sys_errno);
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

static enum wal_status io_pread(void *ctx, struct wal__file *file, void *data, size_t size,
                                uint64_t offset, size_t *got, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_PREAD, path_of(file), offset);
    status = process->base->pread(process->base->ctx, file, data, size, offset, got, sys_errno);
    return after(process, SIM_PREAD, path_of(file), offset, status);
}

static enum wal_status io_pwritev(void *ctx, struct wal__file *file, const struct iovec *iov,
                                  int count, uint64_t offset, size_t *put, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_PWRITEV, path_of(file), offset);
    status = process->base->pwritev(process->base->ctx, file, iov, count, offset, put, sys_errno);
    if (is_segment(path_of(file)) && offset == 4096 && sched__holds(process, WAL__LOCK_PREALLOC)) {
        process->begun = true;
        process->sched->counts->outcomes[SCHED_ROTATIONS]++;
    }
    return after(process, SIM_PWRITEV, path_of(file), offset, status);
}

static enum wal_status io_sync(void *ctx, struct wal__file *file, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_SYNC, path_of(file), 0);
    status = process->base->sync(process->base->ctx, file, sys_errno);
    return after(process, SIM_SYNC, path_of(file), 0, status);
}

static enum wal_status io_allocate(void *ctx, struct wal__file *file, uint64_t size, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_ALLOCATE, path_of(file), size);
    status = process->base->allocate(process->base->ctx, file, size, sys_errno);
    return after(process, SIM_ALLOCATE, path_of(file), size, status);
}

static enum wal_status io_punch(void *ctx, struct wal__file *file, uint64_t offset, uint64_t size,
                                int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_PUNCH, path_of(file), offset);
    status = process->base->punch(process->base->ctx, file, offset, size, sys_errno);
    return after(process, SIM_PUNCH, path_of(file), offset, status);
}

static enum wal_status io_stat(void *ctx, struct wal__file *file, struct wal__io_stat *out,
                               int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_STAT, path_of(file), 0);
    status = process->base->stat(process->base->ctx, file, out, sys_errno);
    return after(process, SIM_STAT, path_of(file), 0, status);
}

static enum wal_status io_map(void *ctx, struct wal__file *file, uint64_t size, bool writable,
                              void **at, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_MAP, path_of(file), size);
    status = process->base->map(process->base->ctx, file, size, writable, at, sys_errno);
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

static enum wal_status io_populate(void *ctx, const void *at, uint64_t size, int *sys_errno)
{
    struct sched_process *process = ctx;

    enum wal_status status;

    before(process, SIM_POPULATE, NULL, size);
    status = process->base->populate(process->base->ctx, at, size, sys_errno);
    return after(process, SIM_POPULATE, NULL, size, status);
}

static enum wal_status io_lock(void *ctx, struct wal__file *file, uint64_t offset,
                               enum wal__io_lock mode, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    /* No scheduled process lists claims. */
    WAL__ASSERT(mode != WAL__IO_LOCK_TEST);
    process->unlocks = mode == WAL__IO_LOCK_NONE;
    before(process, SIM_LOCK, path_of(file), offset);
    process->unlocks = false;
    process->lock_file = file;
    status = process->base->lock(process->base->ctx, file, offset, mode, sys_errno);
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

static enum wal_status io_path_stat(void *ctx, const char *path, struct wal__io_stat *out,
                                    int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_PATH_STAT, path, 0);
    status = process->base->path_stat(process->base->ctx, path, out, sys_errno);
    return after(process, SIM_PATH_STAT, path, 0, status);
}

static enum wal_status io_make_directory(void *ctx, const char *path, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_MAKE_DIRECTORY, path, 0);
    status = process->base->make_directory(process->base->ctx, path, sys_errno);
    return after(process, SIM_MAKE_DIRECTORY, path, 0, status);
}

static enum wal_status io_list(void *ctx, const char *path,
                               enum wal_status (*each)(void *arg, const char *name), void *arg,
                               int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_LIST, path, 0);
    status = process->base->list(process->base->ctx, path, each, arg, sys_errno);
    return after(process, SIM_LIST, path, 0, status);
}

static enum wal_status io_rename(void *ctx, const char *from, const char *to, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_RENAME, to, 0);
    status = process->base->rename(process->base->ctx, from, to, sys_errno);
    if (status == WAL_OK && is_segment(to) && sched__holds(process, WAL__LOCK_SYNC)) {
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

static enum wal_status io_remove_directory(void *ctx, const char *path, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_UNLINK, path, 0);
    status = process->base->remove_directory(process->base->ctx, path, sys_errno);
    return after(process, SIM_UNLINK, path, 0, status);
}

/* Of the store's own names, and of a segment that healing made, it is not promised what a loss of
 * power leaves after a sync of them that failed. */
static void track_name_sync(struct sched *sched, bool own, bool synced)
{
    if (!synced && (own || sched->heal_name_pending)) {
        sched->names_unsynced = true;
    }
    if (synced && !own) {
        sched->heal_name_pending = false;
    }
}

static enum wal_status io_sync_directory(void *ctx, const char *path, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_SYNC_DIRECTORY, path, 0);
    status = process->base->sync_directory(process->base->ctx, path, sys_errno);
    process->sched->directory_failed |= status != WAL_OK;
    track_name_sync(process->sched, strchr(path + 1, '/') == NULL, status == WAL_OK);
    return after(process, SIM_SYNC_DIRECTORY, path, 0, status);
}

static enum wal_status io_storage(void *ctx, const char *path, enum wal__storage *storage,
                                  char *name, int *sys_errno)
{
    struct sched_process *process = ctx;
    enum wal_status status;

    before(process, SIM_STORAGE, path, 0);
    status = process->base->storage(process->base->ctx, path, storage, name, sys_errno);
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

static uint64_t io_process_namespace(void *ctx)
{
    const struct sched_process *process = ctx;

    return process->base->process_namespace(process->base->ctx);
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

/* Waiting is a step of the schedule: it ends when the word is another, when another process wakes
 * it, or at the timeout; sometimes early. */
static void io_wait(void *ctx, const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct sched_process *process = ctx;
    struct sched *sched = process->sched;

    if (sched->current != process) {
        process->base->futex_wait(process->base->ctx, word, expected, timeout_ns);
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
    .process_namespace = io_process_namespace,
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

/* --- fault ---------------------------------------------------------------- */

/*
 * What strikes a schedule, and when: chosen by the seed before it begins, by what a process is at
 * and how often that comes about. Counts every blow by its kind and place.
 */

enum {
    STEPS_MAX = 200000, /* of a schedule: more are a livelock */
    KILLS_MAX = 3       /* of each process */
};

/* ------------------------------------------------------------- plans --- */

static enum sched_event_kind draw_kind(uint64_t *fate)
{
    static const enum sched_event_kind kinds[] = {
        EVENT_KILL,       EVENT_KILL,       EVENT_KILL,       EVENT_KILL, EVENT_KILL,
        EVENT_KILL,       EVENT_STOP,       EVENT_STOP,       EVENT_STOP, EVENT_STOP,
        EVENT_POWER_LOSS, EVENT_POWER_LOSS, EVENT_POWER_LOSS, EVENT_FAIL, EVENT_FAIL,
        EVENT_FAIL,       EVENT_FAIL,       EVENT_FAIL,       EVENT_FAIL, EVENT_FULL};

    return kinds[sched__random(fate, sizeof(kinds) / sizeof(kinds[0]))];
}

/* Calls of which a schedule makes a few. */
static bool is_rare_call(enum sim_call call)
{
    return call == SIM_ALLOCATE || call == SIM_MAKE_DIRECTORY || call == SIM_LIST ||
           call == SIM_RENAME || call == SIM_UNLINK || call == SIM_SYNC_DIRECTORY ||
           call == SIM_STORAGE || call == SIM_PUNCH || call == SIM_POPULATE;
}

/* Which call fails, and how. */
static void draw_failure(struct sched_event *event, uint64_t *fate)
{
    static const enum sim_call prealloc_calls[] = {SIM_OPEN, SIM_ALLOCATE, SIM_PWRITEV, SIM_RENAME,
                                                   SIM_MAKE_DIRECTORY};

    event->failure = (enum sched_call_failure)sched__random(fate, SCHED_FAILURES);
    event->countdown = sched__random(fate, 5);
    switch (event->failure) {
    case SCHED_FAIL_SYNC:
    case SCHED_FAIL_PARTIAL:
        event->call = SIM_SYNC;
        return;
    case SCHED_FAIL_WRITE:
    case SCHED_SHORT_WRITE:
    case SCHED_TORN_WRITE:
        event->call = SIM_PWRITEV;
        return;
    case SCHED_FAIL_NO_SPACE:
        event->call = prealloc_calls[sched__random(fate, 5)];
        return;
    case SCHED_FAIL_ONCE:
    case SCHED_FAIL_STICKY:
    case SCHED_FULL_DISK:
    case SCHED_FAILURES:
        break;
    }
    if (event->failure == SCHED_FULL_DISK) {
        event->failure = SCHED_FAIL_ONCE;
    }
    event->call = (enum sim_call)(1 + sched__random(fate, SIM_STORE_CALLS - 1));
    event->countdown = sched__random(fate, is_rare_call(event->call) ? 2 : 12);
    if (event->call == SIM_PUNCH) {
        event->countdown = 0; /* healing makes one hole */
    }
}

/* Whether the event needs a log that is healed, as the call does that gives space back. */
static bool needs_healing(const struct sched_event *event)
{
    return event->place == SCHED_HEALING || (event->kind == EVENT_FAIL && event->call == SIM_PUNCH);
}

/* There is something to heal only after a sync or a write failed. */
static void plan_poison(struct sched *sched)
{
    struct sched_event event = {.kind = EVENT_FAIL, .failure = SCHED_FAIL_SYNC, .call = SIM_SYNC};

    event.countdown = sched__random(&sched->fault_random, 4);
    for (uint32_t i = 0; i < sched->event_count; i++) {
        if (needs_healing(&sched->events[i]) && sched->event_count < SCHED_EVENTS) {
            sched->events[sched->event_count] = event;
            sched->event_count++;
            return;
        }
    }
}

void sched__plan_faults(struct sched *sched)
{
    uint64_t *fate = &sched->fault_random;

    sched->event_count = sched__random(fate, 10) == 0 ? 0 : 1 + (uint32_t)sched__random(fate, 3);
    for (uint32_t i = 0; i < sched->event_count; i++) {
        struct sched_event *event = &sched->events[i];

        event->kind = draw_kind(fate);
        event->place = SCHED_ANY_ACTIVITY;
        event->countdown = sched__random(fate, UINT64_C(30) << sched__random(fate, 6));
        if (event->kind == EVENT_FAIL) {
            draw_failure(event, fate);
        } else if (event->kind != EVENT_FULL && sched__random(fate, 3) != 0) {
            event->place = (enum sched_activity)(1 + sched__random(fate, SCHED_ACTIVITIES - 1));
            event->countdown = sched__random(fate, UINT64_C(1) << sched__random(fate, 6));
        }
    }
    plan_poison(sched);
}

/* ------------------------------------------------------------ places --- */

static uint32_t activity_bit(enum sched_activity place)
{
    return 1u << place;
}

/* The activities of the process, as bits. */
static uint32_t activities_of(const struct sched_process *process, bool before)
{
    uint32_t places = activity_bit(SCHED_ANY_ACTIVITY) | process->activity_bits;
    bool appending = sched__holds(process, WAL__LOCK_APPEND);
    bool prealloc = sched__holds(process, WAL__LOCK_PREALLOC);

    if (sched__holds(process, WAL__LOCK_PARTICIPANT)) {
        places |= (process->activity_bits & activity_bit(SCHED_OPENING)) != 0
                      ? activity_bit(SCHED_RECOVERING)
                      : activity_bit(SCHED_CLOSING_LAST);
    }
    places |= appending ? activity_bit(SCHED_APPEND_LOCK) : 0;
    places |= appending && prealloc ? activity_bit(SCHED_ROTATING) : 0;
    places |= !appending && prealloc ? activity_bit(SCHED_PREALLOCATING) : 0;
    places |= process->begun ? activity_bit(SCHED_OPEN_UNPUBLISHED) : 0;
    places |= sched__holds(process, WAL__LOCK_SYNC) ? activity_bit(SCHED_SYNCING) : 0;
    if (appending && sched__holds(process, WAL__LOCK_SYNC) && sched__page_is_poisoned(process)) {
        places |= activity_bit(SCHED_HEALING);
    }
    places |= process->waits ? activity_bit(SCHED_WAITING) : 0;
    if (before && process->call == SIM_PWRITEV && process->on_segment) {
        places |= activity_bit(SCHED_WRITING);
    }
    return places;
}

static void count_fault(struct sched_process *process, enum sched_fault blow, bool before)
{
    uint32_t places = activities_of(process, before);

    for (uint32_t i = 0; i < SCHED_ACTIVITIES; i++) {
        if ((places & 1u << i) != 0) {
            process->sched->counts->fault_hits[blow][i]++;
        }
    }
}

/* --------------------------------------------------------- failures --- */

/* A number of bytes that is less than what is written. */
static size_t draw_partial_size(struct sched *sched)
{
    static const size_t puts[] = {0, 8, 24, 48, 100, 200, 512, 1024, 4096};

    return puts[sched__random(&sched->fault_random, 9)];
}

static void fill_fault(struct sched *sched, const struct sched_event *event,
                       struct sim_fault *fault)
{
    *fault = (struct sim_fault){.call = event->call, .sys_errno = EIO};
    switch (event->failure) {
    case SCHED_FAIL_STICKY:
        fault->sticky = true;
        break;
    case SCHED_FAIL_PARTIAL:
        fault->partial = true;
        break;
    case SCHED_FAIL_WRITE:
        fault->put = draw_partial_size(sched);
        break;
    case SCHED_SHORT_WRITE:
        fault->put = 1 + draw_partial_size(sched);
        fault->sys_errno = 0;
        break;
    case SCHED_FAIL_NO_SPACE:
        fault->sys_errno = ENOSPC;
        break;
    case SCHED_TORN_WRITE:
        fault->effect = SIM_KILL_BEFORE;
        fault->put = draw_partial_size(sched);
        break;
    case SCHED_FAIL_ONCE:
    case SCHED_FAIL_SYNC:
    case SCHED_FULL_DISK:
    case SCHED_FAILURES:
        break;
    }
}

/* Makes the call that is about to be made fail. */
static void fail_call(struct sched_process *process, const struct sched_event *event)
{
    struct sched *sched = process->sched;
    struct sim_fault fault;

    fill_fault(sched, event, &fault);
    sim_process_clear_faults(process->process);
    sim_process_add_fault(process->process, &fault);
    sched->counts->failures[event->failure]++;
    if (event->failure == SCHED_TORN_WRITE) {
        count_fault(process, SCHED_KILL, true);
        process->kills++;
        sched__trace(process, 0, "killed in the middle");
        return;
    }
    sched__trace(process, 0, "is made to fail");
    if (event->failure == SCHED_SHORT_WRITE) {
        return;
    }
    sched->counts->calls[event->call]++;
    process->failed = true;
    process->failed_space |= event->failure == SCHED_FAIL_NO_SPACE;
    sched->may_poison |= event->call == SIM_SYNC || event->call == SIM_PWRITEV;
    if (fault.sticky) {
        process->sticky_until = sched->steps + sched__random(&sched->fault_random, 200);
    }
}

/* ------------------------------------------------------------- steps --- */

static bool event_matches(const struct sched_event *event, const struct sched_process *process,
                          bool before)
{
    if (event->done) {
        return false;
    }
    if (event->kind != EVENT_FAIL) {
        return (activities_of(process, before) & activity_bit(event->place)) != 0;
    }
    return before && process->call == event->call &&
           (process->on_segment ||
            (event->failure != SCHED_FAIL_SYNC && event->failure != SCHED_FAIL_PARTIAL &&
             event->failure != SCHED_TORN_WRITE));
}

/* Ends faults whose duration is over. */
static void expire_faults(struct sched_process *process)
{
    struct sched *sched = process->sched;

    if (sched->full_until != 0 && sched->steps >= sched->full_until) {
        sched->full_until = 0;
        sim_disk_set_limit(sched->disk, 0);
    }
    if (process->sticky_until != 0 && sched->steps >= process->sticky_until) {
        process->sticky_until = 0;
        sim_process_clear_faults(process->process);
    }
}

static void count_event(struct sched_process *process, enum sched_event_kind kind, bool before)
{
    if (kind == EVENT_KILL && process->kills < KILLS_MAX) {
        count_fault(process, SCHED_KILL, before);
    } else if (kind == EVENT_STOP) {
        count_fault(process, SCHED_STOP, before);
    } else if (kind == EVENT_POWER_LOSS) {
        count_fault(process, SCHED_POWER_LOSS, before);
    }
}

void sched__step(struct sched_process *process, bool before)
{
    struct sched *sched = process->sched;
    struct sched_process *next;

    sched->steps++;
    if (sched->steps > STEPS_MAX) {
        sched__fail(sched, "livelock");
    }
    expire_faults(process);
    for (uint32_t i = 0; i < sched->event_count && sched->due == NULL; i++) {
        struct sched_event *event = &sched->events[i];

        if (!event_matches(event, process, before) || event->countdown-- != 0) {
            continue;
        }
        event->done = true;
        if (event->kind == EVENT_FAIL) {
            fail_call(process, event);
        } else {
            count_event(process, event->kind, before);
            sched->due = event;
            sched->victim = process;
        }
    }
    if (sched->due != NULL) {
        sched__yield(process);
        return;
    }
    next = sched__pick_next(sched);
    if (next != process) {
        sched->next = next;
        sched__yield(process);
    }
}

/* ------------------------------------------------------------- kills --- */

/* The death of a process that syncs poisons, and so does taking the lock over from one that is
 * stopped. */
static void note_syncer(struct sched_process *process)
{
    process->sched->may_poison |=
        sched__holds(process, WAL__LOCK_SYNC) || sched__holds(process, WAL__LOCK_SYNC + 1);
}

static void kill_process(struct sched_process *process)
{
    process->kills++;
    note_syncer(process);
    sim_process_kill(process->process);
    sched__remove_process(process);
}

void sched__resume_stopped(struct sched_process *process)
{
    struct sched *sched = process->sched;

    process->stopped = false;
    process->call = SIM_ANY;
    sched->stopped_ns = sched__now(sched);
    process->continued_ns = sched->stopped_ns;
    sched__trace(process, 0, process->dies ? "killed while stopped" : "goes on");
    if (process->dies) {
        count_fault(process, SCHED_KILL, false);
        kill_process(process);
    }
}

static void stop_process(struct sched_process *process)
{
    static const uint64_t spans_ms[] = {1, 40, 700, 700, 3000, 15000};
    struct sched *sched = process->sched;

    note_syncer(process);
    process->stopped = true;
    process->stopped_since_ns = sched__now(sched);
    process->dies = sched__random(&sched->fault_random, 4) == 0;
    process->stopped_until_ns =
        sched__now(sched) + spans_ms[sched__random(&sched->fault_random, 6)] * 1000000;
}

static void cut(struct sched *sched)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};

    loss.garbage = sched__random(&sched->fault_random, 2) == 0;
    if (!sched->names_unsynced) {
        sim_disk_power_loss(sched->disk, &loss, sched__random(&sched->fault_random, UINT64_MAX));
        sched->directory_failed = false;
        sched__mark_power_loss(sched);
        sched->heal_name_pending = false;
    }
    sched->stopped_ns = 0;
    for (uint32_t i = 0; i < sched->options.processes; i++) {
        sched__remove_process(&sched->processes[i]);
    }
}

void sched__apply_fault(struct sched *sched)
{
    static const char *const names[] = {[EVENT_KILL] = "killed",
                                        [EVENT_STOP] = "stopped",
                                        [EVENT_POWER_LOSS] = "the power is cut",
                                        [EVENT_FULL] = "the disk is full"};
    struct sched_process *victim = sched->victim;
    const struct sched_event *event = sched->due;

    sched->due = NULL;
    victim->call = SIM_ANY;
    sched__trace(victim, 0, names[event->kind]);
    switch (event->kind) {
    case EVENT_KILL:
        if (victim->kills < KILLS_MAX) {
            kill_process(victim);
        }
        return;
    case EVENT_STOP:
        stop_process(victim);
        return;
    case EVENT_POWER_LOSS:
        cut(sched);
        return;
    case EVENT_FULL:
        sched->was_full = true;
        sched->counts->failures[SCHED_FULL_DISK]++;
        sched->full_until = sched->steps + sched__random(&sched->fault_random, 400);
        sim_disk_set_limit(sched->disk, sim_disk_used_bytes(sched->disk));
        return;
    case EVENT_FAIL:
        return;
    }
}

void sched__on_death(void *arg)
{
    struct sched_process *process = arg;

    if (process->sched->current == process) {
        sched__exit(process->sched);
    }
}

const struct wal__io *sched_io_base(const struct wal__io *io)
{
    return io->random == io_random ? ((struct sched_process *)io->ctx)->base : io;
}
