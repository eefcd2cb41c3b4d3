/*
 * control.c - lock bytes and the shared page (SPEC.md 4.1).
 */
#include "engine/process/control.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/process/open_lock.h"
#include "format/bytes/assert.h"

#define CONTROL_MAGIC 0x4b434f4c4c415741ull /* "AWALLOCK" */

enum {
    CONTROL_VERSION = 6,
    POLL_INTERVAL_NS = 5000000
};

_Static_assert(offsetof(struct wal__control_page, logs) == 512,
               "what identifies the page has a sector of its own");
_Static_assert(sizeof(struct wal__control_page) <= WAL__CONTROL_SIZE,
               "the control page is one page");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(void *) == 8,
               "needs a 64-bit host with lock-free 64-bit atomics");

enum wal_status wal__control_set_lock(struct wal__control *control,
                                      uint64_t byte, enum wal__io_lock mode,
                                      int *err)
{
    const struct wal__io *io = control->env->io;

    return io->lock(io->ctx, control->file, byte, mode, err);
}

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

/* Whether the bytes that can be read now have been read from the disk since
 * the last process wrote: the machine was started anew in between. */
static bool page_is_of_other_boot(const struct wal__control *control)
{
    static const uint8_t unknown[16];
    const struct wal__control_page *page = control->page;
    uint8_t boot_id[16];

    control->env->io->boot_id(control->env->io->ctx, boot_id);
    return atomic_load(&page->magic) == CONTROL_MAGIC &&
           page->version == CONTROL_VERSION &&
           memcmp(boot_id, unknown, sizeof(boot_id)) != 0 &&
           memcmp(page->boot_id, boot_id, sizeof(boot_id)) != 0;
}

/* Poison is set before anything else is taken away: who is killed here leaves
 * it to the next one. */
static void reset_log(struct wal__control_log *shared, uint64_t durable,
                      uint32_t poison)
{
    struct wal__control_log fresh;

    atomic_store(&shared->poison, poison);
    memset(&fresh, 0, sizeof(fresh));
    atomic_init(&fresh.durable, durable);
    atomic_init(&fresh.poison, poison);
    memcpy(shared, &fresh, sizeof(fresh));
}

/* Says whose the page is. Its magic comes last: without it the page is not
 * believed, and a sync may have failed. */
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
    /* So that after a loss of power it tells of another boot. */
    (void)!io->sync(io->ctx, control->file, &ignored);
}

/*
 * Fills the page for this boot and file. What is durable, and whether a sync
 * failed or was cut short, outlasts the processes of a boot until recovery has
 * dealt with it: poison stays. Without a page that can be believed a sync may
 * have failed.
 */
static void reset_page(struct wal__control *control)
{
    struct wal__control_page *page = control->page;
    bool live = page_is_live(control, page);
    uint32_t poisoned = !live && !page_is_of_other_boot(control);

    control->lock_file_replaced = poisoned != 0;
    if (!live) {
        atomic_store(&page->magic, 0);
    }
    memset(page->claims, 0, sizeof(page->claims));
    for (uint32_t i = 0; i < WAL__LOG_COUNT; i++) {
        struct wal__control_log *shared = &page->logs[i];
        bool failed = atomic_load(&shared->poison) != 0 ||
                      atomic_load(&shared->syncing_pid) != 0 ||
                      atomic_load(&shared->open_syncing_pid) != 0;

        reset_log(shared, live ? atomic_load(&shared->durable) : 0,
                  live ? failed : poisoned);
    }
    if (!live) {
        identify_page(control);
    }
}

/* The page is mapped from a file handle of its own: the locks are those of an
 * open file description, which a map keeps, also that of a forked child. */
static enum wal_status map_page(struct wal__control *control, int *err)
{
    const struct wal__io *io = control->env->io;
    struct wal__file *file = NULL;
    enum wal_status status =
        io->open(io->ctx, control->path, WAL__IO_WRITE, &file, err);
    void *at = NULL;

    if (status == WAL_OK) {
        status = io->map(io->ctx, file, WAL__CONTROL_SIZE, true, &at, err);
        io->close(io->ctx, file);
    }
    if (status == WAL_OK) {
        control->file_page = at;
    }
    return status;
}

enum wal_status wal__control_identify(struct wal__control *control, int *err)
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

/* Whether who had the store alone has recovered it. */
static bool page_is_ready(const struct wal__control *control)
{
    return page_is_live(control, control->file_page) &&
           atomic_load(&control->file_page->logs[0].is_recovered) != 0;
}

/* Makes the page of a file that is new. */
static enum wal_status make_page(struct wal__control *control, int *err)
{
    const struct wal__io *io = control->env->io;
    enum wal_status status =
        io->allocate(io->ctx, control->file, WAL__CONTROL_SIZE, err);

    return status == WAL_OK ? map_page(control, err) : status;
}

/* Joins, with the page mapped. */
static enum wal_status join_store(struct wal__control *control,
                                  struct wal__lock_wait *lock_wait, int *err)
{
    enum wal_status status = wal__control_identify(control, err);

    if (status == WAL_OK) {
        status = wal__open_lock_acquire(control, lock_wait, err);
    }
    if (status == WAL_OK && control->file_page == NULL) {
        status = make_page(control, err);
    }
    if (status == WAL_OK) {
        wal__open_lock_publish_owner(control);
        status = wal__participant_lock_acquire_shared(control, lock_wait, err);
    }
    if (status == WAL_OK) {
        control->page = control->file_page;
    }
    return status;
}

/* Who is alone keeps the door until the page is shared. */
static enum wal_status open_page(struct wal__control *control,
                                 struct wal__lock_wait *lock_wait, int *err)
{
    const struct wal__io *io = control->env->io;
    enum wal_status status =
        io->open(io->ctx, control->path, WAL__IO_WRITE | WAL__IO_CREATE,
                 &control->file, err);

    if (status == WAL_OK) {
        status = join_store(control, lock_wait, err);
    }
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

/* Of the file; a page that is followed stays. */
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

    /* Closing lets go of nothing while a forked child has a copy. */
    (void)!wal__participant_lock_downgrade(control, WAL__IO_LOCK_NONE, &err);
    (void)!wal__open_lock_release(control, &err);
    io->close(io->ctx, control->file);
    control->file = NULL;
    if (control->page != control->file_page) {
        unmap_page(control);
    }
}

/* Sees who lives, and follows their page. It stays theirs while the member lock
 * is shared and the door is shut: nobody can be alone and reset it. */
static bool try_attach(struct wal__control *control,
                       struct wal__lock_wait *lock_wait, bool only_if_live)
{
    int err = 0;

    /* Without the page it says nothing, and follows nobody. */
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
 * Goes inside the door to see who lives. Where processes do, follows their
 * page; else nobody comes in until the door is left. False: the file is closed
 * again, because it cannot be told, or with `only_if_live`, because nobody
 * lives.
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

/* Who only reads keeps no lock once it has opened: it follows the live
 * processes' page when there are any, else it recovers for itself, on a page
 * of its own, while nobody comes in. */
static void open_page_read_only(struct wal__control *control)
{
    struct wal__lock_wait lock_wait;

    control->page = &control->private_page;
    wal__lock_wait_init(&lock_wait, control);
    (void)attach_to_file(control, &lock_wait, false);
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
            "the control page is not of this boot and file, yet "
            "a process holds it");
    }
    if (status == WAL_ELOCKED) {
        return wal__lock_wait_failed(control, &lock_wait, error);
    }
    return wal__fail_at(error, status, err, control->path, 0,
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
    atomic_store(&control->page->logs[0].is_recovered, 1);
    status =
        wal__participant_lock_downgrade(control, WAL__IO_LOCK_SHARED, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path,
                            WAL__LOCK_PARTICIPANT, "cannot share the store");
    }
    control->is_first_opener = false;
    for (uint32_t i = 0; i < WAL__LOG_COUNT; i++) {
        wal__control_notify(control, i, WAL__LOG_EVENT_WRITTEN);
        wal__control_notify(control, i, WAL__LOG_EVENT_DURABLE);
    }
    status = wal__open_lock_release(control, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path, WAL__LOCK_OPEN,
                            "cannot let others into the store");
    }
    return WAL_OK;
}

void wal__control_close(struct wal__control *control)
{
    if (control->file != NULL) {
        release_file(control);
    }
    unmap_page(control);
    control->page = NULL;
}

bool wal__control_try_exclusive(struct wal__control *control)
{
    int err = 0;

    return control->file != NULL &&
           wal__participant_lock_upgrade(control, &err) == WAL_OK;
}

static enum wal__wait_queue wait_queue_of(uint64_t byte)
{
    if (byte >= WAL__LOCK_PREALLOC) {
        return WAL__WAIT_PREALLOC;
    }
    return byte >= WAL__LOCK_SYNC ? WAL__WAIT_SYNC : WAL__WAIT_APPEND;
}

static struct wal__wait_word *wait_word_of(struct wal__control *control,
                                           uint64_t byte, uint32_t log_id)
{
    return &control->page->logs[log_id].wait_words[wait_queue_of(byte)];
}

/* Where the holder of a stream's lock says who it is. */
static _Atomic uint32_t *holder_of(struct wal__control *control, uint64_t byte,
                                   uint32_t log_id)
{
    struct wal__control_log *shared = &control->page->logs[log_id];

    switch (wait_queue_of(byte)) {
    case WAL__WAIT_PREALLOC:
        return &shared->prealloc_holder;
    case WAL__WAIT_SYNC:
        return &shared->sync_holder;
    case WAL__WAIT_APPEND:
    case WAL__WAIT_COUNT:
    default:
        return &shared->append_holder;
    }
}

static enum wal_status fail_locked(struct wal__control *control, uint64_t byte,
                                   uint32_t log_id, struct wal_error *error)
{
    uint32_t holder = atomic_load(holder_of(control, byte, log_id));
    enum wal_status status;

    status =
        wal__fail_at(error, WAL_ELOCKED, 0, control->path, byte,
                     "process %u holds the store's lock; it may be stopped: "
                     "continue or end it",
                     holder);
    if (error != NULL) {
        error->holder = (int32_t)holder;
    }
    return status;
}

enum wal_status wal__control_try_lock(struct wal__control *control,
                                      uint64_t byte, uint32_t log_id, int *err)
{
    enum wal_status status =
        wal__control_set_lock(control, byte, WAL__IO_LOCK_EXCLUSIVE, err);

    if (status != WAL_OK) {
        return status;
    }
    atomic_store(holder_of(control, byte, log_id), control->process_id);
    if (byte == WAL__LOCK_APPEND + log_id) {
        atomic_store(&control->page->logs[log_id].holder_start,
                     control->process_start_time);
    }
    return WAL_OK;
}

/* Tries to lock, unless the durable end has reached the position. */
static enum wal_status try_lock_unless_durable(struct wal__control *control,
                                               uint64_t byte, uint32_t log_id,
                                               uint64_t position, int *err)
{
    if (atomic_load(&control->page->logs[log_id].durable) >= position) {
        return WAL_END;
    }
    return wal__control_try_lock(control, byte, log_id, err);
}

/* The same again and again, until the time is over. */
static enum wal_status wait_for_lock(struct wal__control *control,
                                     uint64_t byte, uint32_t log_id,
                                     uint64_t position, int *err)
{
    struct wal__wait_word *wait_word = wait_word_of(control, byte, log_id);
    const struct wal__io *io = control->env->io;
    uint64_t deadline = io->monotonic_ns(io->ctx) +
                        (uint64_t)control->env->lock_timeout_ms * 1000000;

    for (;;) {
        uint32_t seen = atomic_load(&wait_word->word);
        enum wal_status status =
            try_lock_unless_durable(control, byte, log_id, position, err);

        if (status != WAL_ELOCKED || io->monotonic_ns(io->ctx) >= deadline) {
            return status;
        }
        io->futex_wait(io->ctx, (const uint32_t *)&wait_word->word, seen,
                       POLL_INTERVAL_NS);
    }
}

enum wal_status wal__control_lock_unless_durable(struct wal__control *control,
                                                 uint64_t byte, uint32_t log_id,
                                                 uint64_t position,
                                                 struct wal_error *error)
{
    struct wal__wait_word *wait_word = wait_word_of(control, byte, log_id);
    enum wal_status status;
    int err = 0;

    status = try_lock_unless_durable(control, byte, log_id, position, &err);
    if (status == WAL_ELOCKED) {
        /* Who frees it from here on sees that somebody waits. */
        atomic_fetch_add(&wait_word->waiters, 1);
        status = wait_for_lock(control, byte, log_id, position, &err);
        atomic_fetch_sub(&wait_word->waiters, 1);
    }
    if (status == WAL_OK || status == WAL_END) {
        return status;
    }
    if (status == WAL_ELOCKED) {
        return fail_locked(control, byte, log_id, error);
    }
    return wal__fail_at(error, status, err, control->path, byte, "cannot lock");
}

enum wal_status wal__control_lock(struct wal__control *control, uint64_t byte,
                                  uint32_t log_id, struct wal_error *error)
{
    return wal__control_lock_unless_durable(control, byte, log_id, UINT64_MAX,
                                            error);
}

bool wal__control_has_waiters(struct wal__control *control, uint64_t byte,
                              uint32_t log_id)
{
    return atomic_load(&wait_word_of(control, byte, log_id)->waiters) != 0;
}

void wal__control_unlock(struct wal__control *control, uint64_t byte,
                         uint32_t log_id)
{
    struct wal__wait_word *wait_word = wait_word_of(control, byte, log_id);
    const struct wal__io *io = control->env->io;
    int ignored = 0;

    atomic_store(holder_of(control, byte, log_id), 0);
    /* What the kernel will not free now it frees with the file; until then
     * others are told who holds it. */
    (void)!wal__control_set_lock(control, byte, WAL__IO_LOCK_NONE, &ignored);
    if (atomic_load(&wait_word->waiters) != 0) {
        atomic_fetch_add(&wait_word->word, 1);
        io->futex_wake(io->ctx, (const uint32_t *)&wait_word->word,
                       wait_queue_of(byte) == WAL__WAIT_SYNC ? UINT32_MAX : 1);
    }
}

bool wal__control_is_same_process(const struct wal__control *control)
{
    const struct wal__io *io = control->env->io;

    return io->process_id(io->ctx) == control->process_id;
}
