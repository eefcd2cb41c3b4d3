/*
 * control.c - the control page, and the file LOCK that holds it: which process
 * is the first, who may join it, and what they tell each other there (SPEC.md
 * 4.1).
 *
 * Every process of a store maps the first page of LOCK. The page is what the living know; it has no
 * meaning without them. So a process that opens the store first decides whether there are any:
 *
 *  1. It takes the open lock, so that processes come one after the other.
 *  2. It shares the participant lock, and tries to make that exclusive. When it
 *     can, it is alone: the first opener, which resets the page, recovers, and
 *     then shares the lock again. When it cannot, others participate now, and
 *     their page counts. Two separate checks would not prove that, since all
 *     could leave in between.
 *  3. It releases the open lock once it participates, or has recovered.
 *
 * A reader joins in the same way, and lets go of both locks: it follows a page that the next first
 * opener may reset under it (wal__log_follow), or recovers for itself on a private page.
 *
 * What outlives the processes in the page is a doubt: a sync that failed, or whose outcome nobody
 * knows, leaves poison, which the reset passes on to recovery (recover.c). A page of this boot that
 * is void is such a doubt; one of a former boot is none, since what can be read now is what is on
 * the disk.
 *
 * Invariants: a page is used only while this process holds the participant lock, or, read only,
 * while another process does. Its magic is stored last, so that an unfinished page is not valid.
 * The holder of a lock publishes and clears its own name, so that a name is wrong only between the
 * two; the name of a dead process is ignored.
 */
#include "engine/log/control.h"

#include <errno.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

#define CONTROL_MAGIC 0x4b434f4c4c415741ull /* "AWALLOCK" */

enum {
    CONTROL_VERSION = 8,
    CHECK_INTERVAL_NS = 10000000, /* between two looks at LOCK */
    POLL_INTERVAL_NS = 5000000,   /* between two tries for an opening lock */
    TIMEOUT_FACTOR = 20           /* times the lock timeout */
};

_Static_assert(offsetof(struct wal__control_page, logs) == 512,
               "the identity of the page has a separate sector");
_Static_assert(sizeof(struct wal__control_page) <= WAL__CONTROL_SIZE,
               "the control page is one page");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(void *) == 8,
               "needs a 64-bit host with lock-free 64-bit atomics");

/* --- poison and eventcounts --------------------------------------------- */

static uint64_t encode_poison(enum wal__poison_kind kind, uint32_t detail)
{
    return (uint64_t)kind << 32 | detail;
}

void wal__control_poison(struct wal__control_log *shared, enum wal__poison_kind kind,
                         uint32_t detail)
{
    uint64_t none = 0;

    WAL__ASSERT(kind != WAL__POISON_NONE);
    (void)atomic_compare_exchange_strong(&shared->poison, &none, encode_poison(kind, detail));
}

void wal__control_notify(struct wal__control *control, uint32_t log_id, enum wal__log_event event)
{
    _Atomic uint32_t *word = &control->page->eventcounts[log_id][event];
    uint32_t seen = atomic_load(word);

    WAL__ASSERT(log_id < WAL__LOG_COUNT && event < WAL__LOG_EVENT_COUNT);
    if (seen % 2 == 1 && atomic_compare_exchange_strong(word, &seen, seen + 1)) {
        control->env->io->futex_wake(control->env->io->ctx, (const uint32_t *)word, UINT32_MAX);
    }
}

uint32_t wal__control_prepare_wait(struct wal__control *control, uint32_t log_id,
                                   enum wal__log_event event, const uint32_t **word)
{
    _Atomic uint32_t *at = &control->page->eventcounts[log_id][event];

    WAL__ASSERT(log_id < WAL__LOG_COUNT && event < WAL__LOG_EVENT_COUNT);
    *word = (const uint32_t *)at;
    return atomic_fetch_or(at, 1) | 1;
}

/* --- the page ----------------------------------------------------------- */

/* Returns whether the page belongs to this boot and this file. */
static bool page_is_live(const struct wal__control *control, const struct wal__control_page *page)
{
    const struct wal__io *io = control->env->io;
    uint8_t boot_id[16];

    io->boot_id(io->ctx, boot_id);
    return atomic_load(&page->magic) == CONTROL_MAGIC && page->version == CONTROL_VERSION &&
           memcmp(page->boot_id, boot_id, sizeof(boot_id)) == 0 &&
           page->device == control->device && page->inode == control->inode;
}

/* Returns whether the page was written before this boot: then the page cache of that boot is gone,
 * and what can be read now is what is on the disk. */
static bool page_is_of_other_boot(const struct wal__control *control,
                                  const struct wal__control_page *page)
{
    static const uint8_t unknown[16];
    uint8_t boot_id[16];

    control->env->io->boot_id(control->env->io->ctx, boot_id);
    return atomic_load(&page->magic) == CONTROL_MAGIC && page->version == CONTROL_VERSION &&
           memcmp(boot_id, unknown, sizeof(boot_id)) != 0 &&
           memcmp(page->boot_id, boot_id, sizeof(boot_id)) != 0;
}

/* Returns the poison that a live page leaves to the next first opener. */
static uint64_t left_poison(const struct wal__control_log *shared)
{
    uint64_t poison = atomic_load(&shared->poison);
    uint64_t syncing = atomic_load(&shared->syncing_pid);

    if (syncing == 0) {
        syncing = atomic_load(&shared->open_syncing_pid);
    }
    return poison != 0 || syncing == 0 ? poison
                                       : encode_poison(WAL__POISON_DEATH, (uint32_t)syncing);
}

/* Sets poison before it clears anything: when this process is killed here, the next one finds the
 * poison. */
static void reset_log(struct wal__control_log *shared, uint64_t durable, uint64_t poison,
                      uint32_t unsynced_renames)
{
    struct wal__control_log fresh;

    atomic_store(&shared->poison, poison);
    memset(&fresh, 0, sizeof(fresh));
    atomic_init(&fresh.durable, durable);
    atomic_init(&fresh.poison, poison);
    atomic_init(&fresh.unsynced_renames, unsynced_renames);
    memcpy(shared, &fresh, sizeof(fresh));
}

/* Sets boot, file and version of the page, and the magic last: a page without it is not valid, and
 * the next opener assumes a failed sync. */
static void identify_page(struct wal__control *control)
{
    const struct wal__io *io = control->env->io;
    struct wal__control_page *page = control->page;
    int ignored = 0;

    memset(page, 0, offsetof(struct wal__control_page, logs));
    io->boot_id(io->ctx, page->boot_id);
    page->device = control->device;
    page->inode = control->inode;
    page->version = CONTROL_VERSION;
    atomic_store(&page->magic, CONTROL_MAGIC);
    /* So that after a power loss the page names the former boot. */
    (void)!io->sync(io->ctx, control->file, &ignored);
}

/*
 * Resets the page for this boot and file. Of a live page, the durable ends and poison survive the
 * processes that wrote them, until recovery has handled them. Poisons the logs when a process died
 * while it synced, and when there is no valid page: a sync may have failed then.
 */
static void reset_page(struct wal__control *control)
{
    struct wal__control_page *page = control->page;
    bool live = page_is_live(control, page);
    uint64_t doubt =
        !live && !page_is_of_other_boot(control, page) ? encode_poison(WAL__POISON_UNKNOWN, 0) : 0;

    WAL__ASSERT(control->is_exclusive && control->holds_open_lock);
    control->lock_file_replaced = doubt != 0;
    /* Before the ends, which are reset as bytes: readers follow none of a page without it. A store
     * alone would not keep a processor from storing those first. */
    atomic_store(&page->logs[0].is_recovered, 0);
#ifndef __SANITIZE_THREAD__ /* it knows no fences, and x86-64 needs none here */
    atomic_thread_fence(memory_order_seq_cst);
#endif
    if (!live) {
        atomic_store(&page->magic, 0);
    }
    memset(page->claims, 0, sizeof(page->claims));
    atomic_store(&page->condemned_id, 0);
    atomic_store(&page->shipping.sequence, 0);
    if (!live) {
        atomic_store(&page->has_lost_names, 0);
    }
    for (uint32_t i = 0; i < WAL__LOG_COUNT; i++) {
        struct wal__control_log *shared = &page->logs[i];

        reset_log(shared, live ? atomic_load(&shared->durable) : 0,
                  live ? left_poison(shared) : doubt,
                  live ? atomic_load(&shared->unsynced_renames) : doubt != 0);
    }
    if (!live) {
        identify_page(control);
    }
    atomic_store(&page->process_namespace, control->process_namespace);
}

/* Returns whether the page is live and the first opener has finished recovery.
 * */
static bool page_is_ready(const struct wal__control *control)
{
    return page_is_live(control, control->file_page) &&
           atomic_load(&control->file_page->logs[0].is_recovered) != 0;
}

enum wal_status wal__control_write_former(const struct wal__io *io, struct wal__file *file,
                                          int *sys_errno)
{
    /* The prefix of the page: a boot's id is random, and never this one. */
    const struct {
        uint64_t magic;
        uint32_t version;
        uint32_t reserved;
        uint8_t boot_id[16];
    } former = {.magic = CONTROL_MAGIC, .version = CONTROL_VERSION, .boot_id = {[15] = 1}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)&former, .iov_len = sizeof(former)};
    uint64_t magic = 0;
    size_t got = 0;
    enum wal_status status = wal__io_read_full(io, file, &magic, sizeof(magic), 0, &got, sys_errno);

    _Static_assert(offsetof(struct wal__control_page, device) == sizeof(former),
                   "the prefix of the page");
    if (status != WAL_OK || (got == sizeof(magic) && magic != 0)) {
        return status;
    }
    status = io->allocate(io->ctx, file, WAL__CONTROL_SIZE, sys_errno);
    if (status == WAL_OK) {
        status = wal__io_write_full(io, file, &part, 1, 0, sys_errno);
    }
    return status == WAL_OK ? io->sync(io->ctx, file, sys_errno) : status;
}

/* Maps the page through a second open of LOCK: locks belong to an open file description, which a
 * map keeps alive, also in a forked child. */
static enum wal_status map_page(struct wal__control *control, int *err)
{
    const struct wal__io *io = control->env->io;
    struct wal__file *file = NULL;
    enum wal_status status = io->open(io->ctx, control->path, WAL__IO_WRITE, &file, err);
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

/* Records device and inode of LOCK, and maps its page when it has one: the page names the blocking
 * holder. */
static enum wal_status identify_file(struct wal__control *control, int *err)
{
    const struct wal__io *io = control->env->io;
    struct wal__io_stat stat;
    enum wal_status status = io->stat(io->ctx, control->file, &stat, err);

    if (status != WAL_OK) {
        return status;
    }
    control->device = stat.device;
    control->inode = stat.inode;
    return stat.size < WAL__CONTROL_SIZE ? WAL_OK : map_page(control, err);
}

/* Creates the page of a new file. It is stored to while the disk is full, so its block is not to be
 * copied on write. */
static enum wal_status make_page(struct wal__control *control, int *err)
{
    const struct wal__io *io = control->env->io;
    enum wal_status status;

    if (io->set_in_place != NULL) {
        io->set_in_place(io->ctx, control->file);
    }
    status = io->allocate(io->ctx, control->file, WAL__CONTROL_SIZE, err);
    return status == WAL_OK ? map_page(control, err) : status;
}

/* Unmaps the page of the file. */
static void unmap_page(struct wal__control *control)
{
    const struct wal__io *io = control->env->io;

    if (control->file_page != NULL) {
        io->unmap(io->ctx, control->file_page, WAL__CONTROL_SIZE);
    }
    control->file_page = NULL;
}

/* --- the lock file ------------------------------------------------------ */

enum wal_status wal__control_sync_directory(const struct wal__control *control,
                                            const struct wal__io *io, const char *path,
                                            int *sys_errno)
{
    enum wal_status status = io->sync_directory(io->ctx, path, sys_errno);

    /* Other errors are of opening it: nothing is lost then. */
    if (status != WAL_OK && control != NULL &&
        (*sys_errno == EIO || *sys_errno == ENOSPC || *sys_errno == EDQUOT)) {
        atomic_store(&control->page->has_lost_names, 1);
    }
    return status;
}

/* Returns whether a relative path of the store no longer leads to a directory: the working
 * directory has changed. */
static bool working_directory_changed(const struct wal__control *control)
{
    const struct wal__io *io = control->env->io;
    struct wal__io_stat stat;
    int err = 0;

    return control->path[0] != '/' &&
           io->path_stat(io->ctx, control->env->root, &stat, &err) == WAL_ENOTFOUND;
}

/* Returns whether another program has cut LOCK, or overwritten its page. */
static bool page_is_void(const struct wal__control *control)
{
    return control->file_page != NULL && control->page == control->file_page &&
           atomic_load(&control->page->magic) != CONTROL_MAGIC;
}

enum wal_status wal__control_check_lock_file(const struct wal__control *control,
                                             struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    struct wal__io_stat stat;
    enum wal_status status;
    int err = 0;

    status = io->path_stat(io->ctx, control->path, &stat, &err);
    if (status == WAL_OK && stat.device == control->device && stat.inode == control->inode &&
        !page_is_void(control) && (stat.size >= WAL__CONTROL_SIZE || control->file_page == NULL)) {
        return WAL_OK;
    }
    if (status == WAL_ENOTFOUND && working_directory_changed(control)) {
        return WAL_OK;
    }
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return wal__fail_at(error, status, err, control->path, 0,
                            "cannot check whether LOCK is still the file that "
                            "the processes of the store lock");
    }
    return wal__fail_at(error, WAL_ELOCKFILE, 0, control->path, 0,
                        "the file was %s while the store is open: the store accepts no more "
                        "writes; close it in every process and open it again",
                        status == WAL_OK ? "replaced or cut" : "removed");
}

enum wal_status wal__control_check_ratelimited(struct wal__control *control,
                                               struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    uint64_t now = io->monotonic_ns(io->ctx);
    enum wal_status status;

    if (now - atomic_load(&control->checked_ns) < CHECK_INTERVAL_NS && !page_is_void(control)) {
        return WAL_OK;
    }
    status = wal__control_check_lock_file(control, error);
    if (status == WAL_OK) {
        atomic_store(&control->checked_ns, now);
    }
    return status;
}

bool wal__control_is_same_process(const struct wal__control *control)
{
    const struct wal__io *io = control->env->io;

    return io->process_id(io->ctx) == control->process_id;
}

/* --- a lock byte, and the name of its holder ---------------------------- */

enum wal_status wal__control_set_lock(struct wal__control *control, uint64_t byte,
                                      enum wal__io_lock mode, int *err)
{
    const struct wal__io *io = control->env->io;

    /* No other process has a file in memory, and all locks of this one are of one handle. */
    if (io->in_memory) {
        return WAL_OK;
    }
    return io->lock(io->ctx, control->file, byte, mode, err);
}

static bool names_processes(const struct wal__control *control)
{
    return atomic_load(&control->page->process_namespace) == control->process_namespace;
}

uint64_t wal__control_start_time(const struct wal__control *control, uint32_t process)
{
    const struct wal__io *io = control->env->io;

    return names_processes(control) ? io->process_start_time(io->ctx, process) : UINT64_MAX;
}

bool wal__control_is_stopped(const struct wal__control *control, uint32_t process)
{
    const struct wal__io *io = control->env->io;

    return names_processes(control) && io->process_is_stopped(io->ctx, process);
}

void wal__lock_owner_publish(const struct wal__control *control, struct wal__lock_owner *owner)
{
    atomic_store(&owner->start, control->process_start_time);
    atomic_store(&owner->process, control->process_id);
}

uint32_t wal__lock_owner_find(const struct wal__control *control, struct wal__lock_owner *owner)
{
    const struct wal__io *io = control->env->io;
    uint32_t process = atomic_load(&owner->process);
    uint64_t start = atomic_load(&owner->start);
    uint64_t now = process == 0 ? 0 : io->process_start_time(io->ctx, process);

    return now != 0 && (now == start || now == UINT64_MAX) ? process : 0;
}

/* --- waiting for the locks of opening ----------------------------------- */

/* The state of a bounded wait for these locks. */
struct open_wait {
    uint64_t deadline;   /* monotonic time at which the wait fails */
    uint32_t holder;     /* process id of the blocking holder, or 0 */
    bool stopped;        /* the holder is stopped */
    uint64_t stopped_ns; /* since when every poll found a stopped holder */
};

static uint64_t timeout_ns(const struct wal__control *control)
{
    return (uint64_t)control->env->lock_timeout_ms * 1000000;
}

/* Begins a wait: 20 times the lock timeout for a holder that runs, which may be recovering; one
 * lock timeout for a stopped one. */
static void init_wait(struct open_wait *wait, const struct wal__control *control)
{
    const struct wal__io *io = control->env->io;

    *wait = (struct open_wait){0};
    wait->deadline = io->monotonic_ns(io->ctx) + timeout_ns(control) * TIMEOUT_FACTOR;
}

static bool is_stopped(const struct wal__control *control, uint32_t process)
{
    const struct wal__io *io = control->env->io;

    return process != 0 && io->process_is_stopped(io->ctx, process);
}

/* Returns the blocking holder. For the open lock also a stopped process for which the holder of the
 * open lock waits: otherwise each opener would wait for the one before it. */
static uint32_t find_blocking_holder(const struct wal__control *control, uint64_t byte,
                                     bool *stopped)
{
    uint32_t opener;
    uint32_t exclusive;

    *stopped = false;
    if (control->file_page == NULL) {
        return 0;
    }
    exclusive = wal__lock_owner_find(control, &control->file_page->exclusive_owner);
    *stopped = is_stopped(control, exclusive);
    if (byte == WAL__LOCK_PARTICIPANT || *stopped) {
        return exclusive;
    }
    opener = wal__lock_owner_find(control, &control->file_page->open_lock_owner);
    *stopped = is_stopped(control, opener);
    return opener;
}

/* Updates the blocking holder, and since when it is stopped. */
static void update_blocking_holder(struct wal__control *control, uint64_t byte, uint64_t now,
                                   struct open_wait *wait)
{
    uint32_t holder;
    bool stopped;
    int ignored = 0;

    if (control->file_page == NULL) {
        /* LOCK was empty: the holder of the open lock creates the page. */
        (void)!identify_file(control, &ignored);
    }
    holder = find_blocking_holder(control, byte, &stopped);
    WAL__ASSERT(holder != 0 || !stopped);
    if (!wait->stopped) {
        wait->stopped_ns = now;
    }
    wait->holder = holder;
    wait->stopped = stopped;
}

/* Returns whether the wait has expired; sleeps POLL_INTERVAL_NS if not. */
static bool poll_or_expire(struct wal__control *control, uint64_t byte, struct open_wait *wait)
{
    const struct wal__io *io = control->env->io;
    uint64_t now = io->monotonic_ns(io->ctx);
    const uint32_t never_woken = 0;

    update_blocking_holder(control, byte, now, wait);
    if (now >= wait->deadline || (wait->stopped && now - wait->stopped_ns >= timeout_ns(control))) {
        return true;
    }
    io->futex_wait(io->ctx, &never_woken, 0, POLL_INTERVAL_NS);
    return false;
}

static enum wal_status set_lock_waiting(struct wal__control *control, uint64_t byte,
                                        enum wal__io_lock mode, struct open_wait *wait, int *err)
{
    enum wal_status status;

    WAL__ASSERT(byte == WAL__LOCK_OPEN || byte == WAL__LOCK_PARTICIPANT);
    do {
        status = wal__control_set_lock(control, byte, mode, err);
    } while (status == WAL_ELOCKED && !poll_or_expire(control, byte, wait));
    return status;
}

/* Fills *error for a wait that failed; returns WAL_ELOCKED. */
static enum wal_status fail_wait(const struct wal__control *control, const struct open_wait *wait,
                                 struct wal_error *error)
{
    enum wal_status status;

    if (wait->holder == 0) {
        return wal__fail_at(error, WAL_ELOCKED, 0, control->path, 0,
                            "another process is recovering the store: try again");
    }
    status = wal__fail_at(error, WAL_ELOCKED, 0, control->path, 0,
                          "process %u is recovering the store, or closing it%s", wait->holder,
                          wait->stopped ? ", and is stopped: continue or end it" : "");
    wal__error_set_holder(error, (int32_t)wait->holder);
    return status;
}

/* --- the open lock ------------------------------------------------------ */

static enum wal_status acquire_open_lock(struct wal__control *control, struct open_wait *wait,
                                         int *err)
{
    enum wal_status status;

    WAL__ASSERT(!control->holds_open_lock && !control->is_exclusive);
    status = set_lock_waiting(control, WAL__LOCK_OPEN, WAL__IO_LOCK_EXCLUSIVE, wait, err);
    control->holds_open_lock = status == WAL_OK;
    return status;
}

/* Names this process as the holder, once control->file_page is mapped. */
static void name_opener(struct wal__control *control)
{
    WAL__ASSERT(control->holds_open_lock);
    wal__lock_owner_publish(control, &control->file_page->open_lock_owner);
}

/* Releases the open lock, if it is held. */
static enum wal_status release_open_lock(struct wal__control *control, int *err)
{
    if (!control->holds_open_lock) {
        return WAL_OK;
    }
    control->holds_open_lock = false;
    if (control->file_page != NULL) {
        atomic_store(&control->file_page->open_lock_owner.process, 0);
    }
    return wal__control_set_lock(control, WAL__LOCK_OPEN, WAL__IO_LOCK_NONE, err);
}

/* --- the participant lock ----------------------------------------------- */

/* Makes the participant lock exclusive, and publishes its holder. WAL_ELOCKED: other processes
 * share it. */
static enum wal_status upgrade_participant_lock(struct wal__control *control, int *err)
{
    enum wal_status status =
        wal__control_set_lock(control, WAL__LOCK_PARTICIPANT, WAL__IO_LOCK_EXCLUSIVE, err);

    if (status == WAL_OK) {
        control->is_exclusive = true;
        if (control->file_page != NULL) {
            wal__lock_owner_publish(control, &control->file_page->exclusive_owner);
        }
    }
    return status;
}

/*
 * Acquires the participant lock, with the open lock: another holder then either participates or is
 * closing as the last one. Sets control->is_first_opener when the lock could be made exclusive.
 * Otherwise it is shared, and the failed upgrade proves that other processes participate now; two
 * separate checks would not, since all could leave in between.
 */
static enum wal_status acquire_participant_lock(struct wal__control *control,
                                                struct open_wait *wait, int *err)
{
    enum wal_status status;

    WAL__ASSERT(control->holds_open_lock && !control->is_exclusive);
    status = set_lock_waiting(control, WAL__LOCK_PARTICIPANT, WAL__IO_LOCK_SHARED, wait, err);
    if (status != WAL_OK) {
        return status;
    }
    status = upgrade_participant_lock(control, err);
    control->is_first_opener = status == WAL_OK;
    return status == WAL_ELOCKED ? WAL_OK : status;
}

/* Shares the participant lock, or with WAL__IO_LOCK_NONE releases it. */
static enum wal_status downgrade_participant_lock(struct wal__control *control,
                                                  enum wal__io_lock mode, int *err)
{
    WAL__ASSERT(mode != WAL__IO_LOCK_EXCLUSIVE);
    if (control->is_exclusive && control->file_page != NULL) {
        atomic_store(&control->file_page->exclusive_owner.process, 0);
    }
    control->is_exclusive = false;
    return wal__control_set_lock(control, WAL__LOCK_PARTICIPANT, mode, err);
}

bool wal__control_try_exclusive(struct wal__control *control)
{
    int err = 0;

    return control->file != NULL && upgrade_participant_lock(control, &err) == WAL_OK;
}

/* --- opening and closing ------------------------------------------------ */

/* Acquires open lock and participant lock, with the page mapped. */
static enum wal_status join_store(struct wal__control *control, struct open_wait *wait, int *err)
{
    enum wal_status status = identify_file(control, err);

    if (status != WAL_OK) {
        return status;
    }
    status = acquire_open_lock(control, wait, err);
    if (status == WAL_OK && control->file_page == NULL) {
        status = make_page(control, err);
    }
    if (status != WAL_OK) {
        return status;
    }
    name_opener(control);
    status = acquire_participant_lock(control, wait, err);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(control->file_page != NULL);
    control->page = control->file_page;
    return WAL_OK;
}

/* Joins the store. The first opener resets the page and keeps the open lock until
 * wal__control_finish_open. */
static enum wal_status open_page(struct wal__control *control, struct open_wait *wait, int *err)
{
    const struct wal__io *io = control->env->io;
    enum wal_status status =
        io->open(io->ctx, control->path, WAL__IO_WRITE | WAL__IO_CREATE, &control->file, err);

    if (status != WAL_OK) {
        return status;
    }
    status = join_store(control, wait, err);
    if (status != WAL_OK) {
        return status;
    }
    if (control->is_first_opener) {
        reset_page(control);
        return WAL_OK;
    }
    if (!page_is_ready(control)) {
        return WAL_ECORRUPT;
    }
    if (!names_processes(control)) {
        atomic_store(&control->page->process_namespace, 0);
    }
    return release_open_lock(control, err);
}

static void release_file(struct wal__control *control)
{
    const struct wal__io *io = control->env->io;
    int err = 0;

    /* Closing does not unlock while a forked child has a copy of the file. */
    (void)!downgrade_participant_lock(control, WAL__IO_LOCK_NONE, &err);
    (void)!release_open_lock(control, &err);
    io->close(io->ctx, control->file);
    control->file = NULL;
    if (control->page != control->file_page) {
        unmap_page(control);
    }
}

/* Attaches to the page of live processes. While this process shares the participant lock and holds
 * the open lock, no process can become the first opener and reset the page. */
static bool try_attach(struct wal__control *control, struct open_wait *wait, bool only_if_live)
{
    int err = 0;

    /* Without a page there is no owner to publish and nothing to attach to. */
    (void)!identify_file(control, &err);
    if (acquire_open_lock(control, wait, &err) != WAL_OK) {
        return false;
    }
    if (control->file_page != NULL) {
        name_opener(control);
    }
    if (acquire_participant_lock(control, wait, &err) != WAL_OK) {
        return false;
    }
    WAL__ASSERT(control->holds_open_lock);
    if (control->is_first_opener) {
        return !only_if_live;
    }
    if (control->file_page == NULL || !page_is_ready(control)) {
        return false;
    }
    control->page = control->file_page;
    return true;
}

/*
 * Opens LOCK for a reader and attaches to the page of live processes. Without any, the reader keeps
 * the open lock, so that no process opens the store meanwhile. Returns false with the file closed
 * when neither is possible, or with only_if_live when no process is live.
 */
static bool attach_to_file(struct wal__control *control, struct open_wait *wait, bool only_if_live)
{
    const struct wal__io *io = control->env->io;
    int err = 0;

    if (io->open(io->ctx, control->path, WAL__IO_WRITE, &control->file, &err) == WAL_OK) {
        if (try_attach(control, wait, only_if_live)) {
            return true;
        }
        release_file(control);
    }
    control->file = NULL;
    control->is_first_opener = true;
    return false;
}

/* Leaves to a private page what the page of the file says about durable ends: of a former boot,
 * everything that can be read is on the disk. */
static void inherit_durable(struct wal__control *control)
{
    const struct wal__control_page *left = control->file_page;

    for (uint32_t i = 0; left != NULL && i < WAL__LOG_COUNT; i++) {
        uint64_t durable = 0;

        if (page_is_live(control, left)) {
            durable = atomic_load(&left->logs[i].durable);
        } else if (page_is_of_other_boot(control, left)) {
            durable = UINT64_MAX;
        }
        atomic_store(&control->private_page.logs[i].durable, durable);
    }
}

/* A read-only opener holds no lock once the store is open. It uses the page of live processes;
 * without any it recovers privately, on a private page, and holds the open lock meanwhile. */
static void open_page_read_only(struct wal__control *control)
{
    struct open_wait wait;

    control->page = &control->private_page;
    init_wait(&wait, control);
    if (attach_to_file(control, &wait, false) && control->page == &control->private_page) {
        inherit_durable(control);
    }
}

bool wal__control_attach_live_page(struct wal__control *control)
{
    struct open_wait wait = {0};

    return control->page == &control->private_page && attach_to_file(control, &wait, true);
}

enum wal_status wal__control_open(struct wal__control *control, const struct wal__env *env,
                                  struct wal_error *error)
{
    struct open_wait wait;
    enum wal_status status;
    int err = 0;

    memset(control, 0, sizeof(*control));
    control->env = env;
    pthread_mutex_init(&control->guard_mutex, NULL);
    control->process_id = env->io->process_id(env->io->ctx);
    control->process_start_time = env->io->process_start_time(env->io->ctx, control->process_id);
    control->process_namespace = env->io->process_namespace(env->io->ctx);
    wal__env_path(env, control->path, "LOCK");
    if (env->read_only) {
        open_page_read_only(control);
        return WAL_OK;
    }
    init_wait(&wait, control);
    status = open_page(control, &wait, &err);
    if (status == WAL_OK) {
        status = wal__control_check_lock_file(control, error);
        if (status != WAL_OK) {
            wal__control_close(control);
        }
        return status;
    }
    wal__control_close(control);
    if (status == WAL_ECORRUPT) {
        return wal__fail_at(error, status, 0, control->path, 0,
                            "the control page is not of this boot and file, but another "
                            "process uses it: close the store in every process");
    }
    if (status == WAL_ELOCKED) {
        return fail_wait(control, &wait, error);
    }
    return wal__fail_open(error, status, err, control->path, "cannot open the lock file");
}

enum wal_status wal__control_finish_open(struct wal__control *control, struct wal_error *error)
{
    enum wal_status status;
    int err = 0;

    if (control->file == NULL) {
        return WAL_OK;
    }
    if (control->env->read_only) {
        release_file(control);
        control->is_first_opener = control->page == &control->private_page;
        return WAL_OK;
    }
    WAL__ASSERT(control->page == control->file_page);
    atomic_store(&control->page->logs[0].is_recovered, 1);
    status = downgrade_participant_lock(control, WAL__IO_LOCK_SHARED, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path, WAL__LOCK_PARTICIPANT,
                            "cannot share the participant lock");
    }
    control->is_first_opener = false;
    for (uint32_t i = 0; i < WAL__LOG_COUNT; i++) {
        wal__control_notify(control, i, WAL__LOG_EVENT_WRITTEN);
        wal__control_notify(control, i, WAL__LOG_EVENT_DURABLE);
    }
    status = release_open_lock(control, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path, WAL__LOCK_OPEN,
                            "cannot release the open lock");
    }
    return WAL_OK;
}

void wal__control_close(struct wal__control *control)
{
    /* A guard of a handle that outlives the store is left after this. */
    pthread_mutex_lock(&control->guard_mutex);
    if (control->file != NULL) {
        release_file(control);
    }
    pthread_mutex_unlock(&control->guard_mutex);
    unmap_page(control);
    control->page = NULL;
}
