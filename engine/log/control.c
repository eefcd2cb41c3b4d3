/*
 * control.c - the control page: mapping, validating and resetting it, and the
 * file LOCK that holds it (SPEC.md 4.1).
 *
 * Invariant: a page is used only while this process holds the participant lock,
 * or, read only, while another process does. Its magic is stored last, so that
 * an unfinished page is not valid.
 */
#include "engine/log/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/control_lock.h"
#include "engine/log/open_lock.h"
#include "format/bytes/assert.h"

#define CONTROL_MAGIC 0x4b434f4c4c415741ull /* "AWALLOCK" */

enum {
    CONTROL_VERSION = 8,
    CHECK_INTERVAL_NS = 10000000 /* between two looks at LOCK */
};

_Static_assert(offsetof(struct wal__control_page, logs) == 512,
               "the identity of the page has a separate sector");
_Static_assert(sizeof(struct wal__control_page) <= WAL__CONTROL_SIZE,
               "the control page is one page");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(void *) == 8,
               "needs a 64-bit host with lock-free 64-bit atomics");

/* Whether the page belongs to this boot and this file. */
static bool page_is_live(const struct wal__control *control,
                         const struct wal__control_page *page)
{
    const struct wal__io *io = control->env->io;
    uint8_t boot_id[16];

    io->boot_id(io->ctx, boot_id);
    return atomic_load(&page->magic) == CONTROL_MAGIC &&
           page->version == CONTROL_VERSION &&
           memcmp(page->boot_id, boot_id, sizeof(boot_id)) == 0 &&
           page->device == control->device && page->inode == control->inode;
}

/* Whether the page was written before this boot: then the page cache of that
 * boot is gone, and what can be read now is what is on the disk. */
static bool page_is_of_other_boot(const struct wal__control *control,
                                  const struct wal__control_page *page)
{
    static const uint8_t unknown[16];
    uint8_t boot_id[16];

    control->env->io->boot_id(control->env->io->ctx, boot_id);
    return atomic_load(&page->magic) == CONTROL_MAGIC &&
           page->version == CONTROL_VERSION &&
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
    return poison != 0 || syncing == 0
               ? poison
               : wal__control_encode_poison(WAL__POISON_DEATH,
                                            (uint32_t)syncing);
}

/* Sets poison before it clears anything: when this process is killed here, the
 * next one finds the poison. */
static void reset_log(struct wal__control_log *shared, uint64_t durable,
                      uint64_t poison, uint32_t unsynced_renames)
{
    struct wal__control_log fresh;

    atomic_store(&shared->poison, poison);
    memset(&fresh, 0, sizeof(fresh));
    atomic_init(&fresh.durable, durable);
    atomic_init(&fresh.poison, poison);
    atomic_init(&fresh.unsynced_renames, unsynced_renames);
    memcpy(shared, &fresh, sizeof(fresh));
}

/* Sets boot, file and version of the page, and the magic last: a page without
 * it is not valid, and the next opener assumes a failed sync. */
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
 * Resets the page for this boot and file. Of a live page, the durable ends and
 * poison survive the processes that wrote them, until recovery has handled
 * them. Poisons the logs when a process died while it synced, and when there is
 * no valid page: a sync may have failed then.
 */
static void reset_page(struct wal__control *control)
{
    struct wal__control_page *page = control->page;
    bool live = page_is_live(control, page);
    uint64_t doubt = !live && !page_is_of_other_boot(control, page)
                         ? wal__control_encode_poison(WAL__POISON_UNKNOWN, 0)
                         : 0;

    WAL__ASSERT(control->is_exclusive && control->holds_open_lock);
    control->lock_file_replaced = doubt != 0;
    /* Before the ends: readers follow none of a page without it. */
    atomic_store(&page->logs[0].is_recovered, 0);
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
}

enum wal_status wal__control_sync_directory(const struct wal__control *control,
                                            const struct wal__io *io,
                                            const char *path, int *sys_errno)
{
    enum wal_status status = io->sync_directory(io->ctx, path, sys_errno);

    /* Other errors are of opening it: nothing is lost then. */
    if (status != WAL_OK && control != NULL &&
        (*sys_errno == EIO || *sys_errno == ENOSPC || *sys_errno == EDQUOT)) {
        atomic_store(&control->page->has_lost_names, 1);
    }
    return status;
}

/* Whether the page is live and the first opener has finished recovery. */
static bool page_is_ready(const struct wal__control *control)
{
    return page_is_live(control, control->file_page) &&
           atomic_load(&control->file_page->logs[0].is_recovered) != 0;
}

enum wal_status wal__control_write_former(const struct wal__io *io,
                                          struct wal__file *file,
                                          int *sys_errno)
{
    /* The prefix of the page: a boot's id is random, and never this one. */
    const struct {
        uint64_t magic;
        uint32_t version;
        uint32_t reserved;
        uint8_t boot_id[16];
    } former = {.magic = CONTROL_MAGIC,
                .version = CONTROL_VERSION,
                .boot_id = {[15] = 1}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)&former,
                         .iov_len = sizeof(former)};
    uint64_t magic = 0;
    size_t got = 0;
    enum wal_status status =
        wal__io_read_full(io, file, &magic, sizeof(magic), 0, &got, sys_errno);

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

/* Creates the page of a new file. It is stored to while the disk is full, so
 * its block is not to be copied on write. */
static enum wal_status make_page(struct wal__control *control, int *err)
{
    const struct wal__io *io = control->env->io;
    enum wal_status status;

    if (io->set_in_place != NULL) {
        io->set_in_place(io->ctx, control->file);
    }
    status = io->allocate(io->ctx, control->file, WAL__CONTROL_SIZE, err);
    return status == WAL_OK ? wal__control_map_page(control, err) : status;
}

/* Acquires open lock and participant lock, with the page mapped. */
static enum wal_status join_store(struct wal__control *control,
                                  struct wal__lock_wait *lock_wait, int *err)
{
    enum wal_status status = wal__control_identify(control, err);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__open_lock_acquire(control, lock_wait, err);
    if (status == WAL_OK && control->file_page == NULL) {
        status = make_page(control, err);
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__open_lock_publish_owner(control);
    status = wal__participant_lock_acquire_shared(control, lock_wait, err);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(control->file_page != NULL);
    control->page = control->file_page;
    return WAL_OK;
}

/* Joins the store. The first opener resets the page and keeps the open lock
 * until wal__control_finish_open. */
static enum wal_status open_page(struct wal__control *control,
                                 struct wal__lock_wait *lock_wait, int *err)
{
    const struct wal__io *io = control->env->io;
    enum wal_status status =
        io->open(io->ctx, control->path, WAL__IO_WRITE | WAL__IO_CREATE,
                 &control->file, err);

    if (status != WAL_OK) {
        return status;
    }
    status = join_store(control, lock_wait, err);
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
    return wal__open_lock_release(control, err);
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

static void release_file(struct wal__control *control)
{
    const struct wal__io *io = control->env->io;
    int err = 0;

    /* Closing does not unlock while a forked child has a copy of the file. */
    (void)!wal__participant_lock_downgrade(control, WAL__IO_LOCK_NONE, &err);
    (void)!wal__open_lock_release(control, &err);
    io->close(io->ctx, control->file);
    control->file = NULL;
    if (control->page != control->file_page) {
        unmap_page(control);
    }
}

/* Attaches to the page of live processes. While this process shares the
 * participant lock and holds the open lock, no process can become the first
 * opener and reset the page. */
static bool try_attach(struct wal__control *control,
                       struct wal__lock_wait *lock_wait, bool only_if_live)
{
    int err = 0;

    /* Without a page there is no owner to publish and nothing to attach to. */
    (void)!wal__control_identify(control, &err);
    if (wal__open_lock_acquire(control, lock_wait, &err) != WAL_OK) {
        return false;
    }
    if (control->file_page != NULL) {
        wal__open_lock_publish_owner(control);
    }
    if (wal__participant_lock_acquire_shared(control, lock_wait, &err) !=
        WAL_OK) {
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
 * Opens LOCK for a reader and attaches to the page of live processes. Without
 * any, the reader keeps the open lock, so that no process opens the store
 * meanwhile. Returns false with the file closed when neither is possible, or
 * with only_if_live when no process is live.
 */
static bool attach_to_file(struct wal__control *control,
                           struct wal__lock_wait *lock_wait, bool only_if_live)
{
    const struct wal__io *io = control->env->io;
    int err = 0;

    if (io->open(io->ctx, control->path, WAL__IO_WRITE, &control->file, &err) ==
        WAL_OK) {
        if (try_attach(control, lock_wait, only_if_live)) {
            return true;
        }
        release_file(control);
    }
    control->file = NULL;
    control->is_first_opener = true;
    return false;
}

/* Leaves to a private page what the page of the file says about durable ends:
 * of a former boot, everything that can be read is on the disk. */
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

/* A read-only opener holds no lock once the store is open. It uses the page of
 * live processes; without any it recovers privately, on a private page, and
 * holds the open lock meanwhile. */
static void open_page_read_only(struct wal__control *control)
{
    struct wal__lock_wait lock_wait;

    control->page = &control->private_page;
    wal__lock_wait_init(&lock_wait, control);
    if (attach_to_file(control, &lock_wait, false) &&
        control->page == &control->private_page) {
        inherit_durable(control);
    }
}

bool wal__control_attach_live_page(struct wal__control *control)
{
    struct wal__lock_wait lock_wait = {0};

    return control->page == &control->private_page &&
           attach_to_file(control, &lock_wait, true);
}

enum wal_status wal__control_open(struct wal__control *control,
                                  const struct wal__env *env,
                                  struct wal_error *error)
{
    struct wal__lock_wait lock_wait;
    enum wal_status status;
    int err = 0;
    int size;

    memset(control, 0, sizeof(*control));
    control->env = env;
    pthread_mutex_init(&control->guard_mutex, NULL);
    control->process_id = env->io->process_id(env->io->ctx);
    control->process_start_time =
        env->io->process_start_time(env->io->ctx, control->process_id);
    size = snprintf(control->path, sizeof(control->path), "%s/LOCK", env->root);
    WAL__ASSERT(size > 0 && size < (int)sizeof(control->path));
    if (env->read_only) {
        open_page_read_only(control);
        return WAL_OK;
    }
    wal__lock_wait_init(&lock_wait, control);
    status = open_page(control, &lock_wait, &err);
    if (status == WAL_OK) {
        status = wal__control_check_lock_file(control, error);
        if (status != WAL_OK) {
            wal__control_close(control);
        }
        return status;
    }
    wal__control_close(control);
    if (status == WAL_ECORRUPT) {
        return wal__fail_at(
            error, status, 0, control->path, 0,
            "the control page is not of this boot and file, but another "
            "process uses it: close the store in every process");
    }
    if (status == WAL_ELOCKED) {
        return wal__lock_wait_failed(control, &lock_wait, error);
    }
    return wal__fail_open(error, status, err, control->path,
                          "cannot open the lock file");
}

enum wal_status wal__control_finish_open(struct wal__control *control,
                                         struct wal_error *error)
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
    status =
        wal__participant_lock_downgrade(control, WAL__IO_LOCK_SHARED, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path,
                            WAL__LOCK_PARTICIPANT,
                            "cannot share the participant lock");
    }
    control->is_first_opener = false;
    for (uint32_t i = 0; i < WAL__LOG_COUNT; i++) {
        wal__control_notify(control, i, WAL__LOG_EVENT_WRITTEN);
        wal__control_notify(control, i, WAL__LOG_EVENT_DURABLE);
    }
    status = wal__open_lock_release(control, &err);
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

bool wal__control_try_exclusive(struct wal__control *control)
{
    int err = 0;

    return control->file != NULL &&
           wal__participant_lock_upgrade(control, &err) == WAL_OK;
}

/* --- the lock file ------------------------------------------------------ */

/* Whether a relative path of the store no longer leads to a directory: the
 * working directory has changed. */
static bool working_directory_changed(const struct wal__control *control)
{
    const struct wal__io *io = control->env->io;
    struct wal__io_stat stat;
    int err = 0;

    return control->path[0] != '/' &&
           io->path_stat(io->ctx, control->env->root, &stat, &err) ==
               WAL_ENOTFOUND;
}

/* Whether another program has cut LOCK, or overwritten its page. */
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
    if (status == WAL_OK && stat.device == control->device &&
        stat.inode == control->inode && !page_is_void(control) &&
        (stat.size >= WAL__CONTROL_SIZE || control->file_page == NULL)) {
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
    return wal__fail_at(
        error, WAL_ELOCKFILE, 0, control->path, 0,
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

    if (now - atomic_load(&control->checked_ns) < CHECK_INTERVAL_NS &&
        !page_is_void(control)) {
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
