/*
 * control.c - lock bytes and the shared page (SPEC.md 4.1).
 */
#include "engine/log/control.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/error.h"
#include "engine/log/control_door.h"

#define CONTROL_MAGIC 0x4b434f4c4c415741ull /* "AWALLOCK" */

enum {
    CONTROL_VERSION = 6,
    LOOK_AGAIN_NS = 5000000
};

_Static_assert(offsetof(struct wal__control_page, streams) == 512,
               "what identifies the page has a sector of its own");
_Static_assert(sizeof(struct wal__control_page) <= WAL__CONTROL_SIZE,
               "the control page is one page");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(void *) == 8,
               "needs a 64-bit host with lock-free 64-bit atomics");

enum wal_status wal__control_try(struct wal__control *control, uint64_t byte,
                                 enum wal__io_lock mode, int *err)
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
static void reset_stream(struct wal__control_stream *stream, uint64_t durable,
                         uint32_t poison)
{
    struct wal__control_stream fresh;

    atomic_store(&stream->poison, poison);
    memset(&fresh, 0, sizeof(fresh));
    atomic_init(&fresh.durable, durable);
    atomic_init(&fresh.poison, poison);
    memcpy(stream, &fresh, sizeof(fresh));
}

/* Says whose the page is. Its magic comes last: without it the page is not
 * believed, and a sync may have failed. */
static void identify_page(struct wal__control *control)
{
    const struct wal__io *io = control->env->io;
    struct wal__control_page *page = control->page;
    int ignored = 0;

    memset(page, 0, offsetof(struct wal__control_page, streams));
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
    uint32_t doubt = !live && !page_is_of_other_boot(control);

    control->doubt = doubt != 0;
    if (!live) {
        atomic_store(&page->magic, 0);
    }
    memset(page->claims, 0, sizeof(page->claims));
    for (uint32_t i = 0; i < WAL__STREAMS; i++) {
        struct wal__control_stream *stream = &page->streams[i];
        bool failed = atomic_load(&stream->poison) != 0 ||
                      atomic_load(&stream->syncing) != 0 ||
                      atomic_load(&stream->opening) != 0;

        reset_stream(stream, live ? atomic_load(&stream->durable) : 0,
                     live ? failed : doubt);
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
        control->shown = at;
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
    return page_is_live(control, control->shown) &&
           atomic_load(&control->shown->streams[0].ready) != 0;
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
static enum wal_status enter(struct wal__control *control,
                             struct wal__visit *visit, int *err)
{
    enum wal_status status = wal__control_identify(control, err);

    if (status == WAL_OK) {
        status = wal__door_pass(control, visit, err);
    }
    if (status == WAL_OK && control->shown == NULL) {
        status = make_page(control, err);
    }
    if (status == WAL_OK) {
        wal__door_sign(control);
        status = wal__member_join(control, visit, err);
    }
    if (status == WAL_OK) {
        control->page = control->shown;
    }
    return status;
}

/* Who is alone keeps the door until the page is shared. */
static enum wal_status open_page(struct wal__control *control,
                                 struct wal__visit *visit, int *err)
{
    const struct wal__io *io = control->env->io;
    enum wal_status status =
        io->open(io->ctx, control->path, WAL__IO_WRITE | WAL__IO_CREATE,
                 &control->file, err);

    if (status == WAL_OK) {
        status = enter(control, visit, err);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (control->alone) {
        reset_page(control);
        return WAL_OK;
    }
    if (!page_is_ready(control)) {
        return WAL_ECORRUPT;
    }
    return wal__door_leave(control, err);
}

/* Of the file; a page that is followed stays. */
static void unmap_page(struct wal__control *control)
{
    const struct wal__io *io = control->env->io;

    if (control->shown != NULL) {
        io->unmap(io->ctx, control->shown, WAL__CONTROL_SIZE);
    }
    control->shown = NULL;
}

static void leave_file(struct wal__control *control)
{
    const struct wal__io *io = control->env->io;
    int err = 0;

    /* Closing lets go of nothing while a forked child has a copy. */
    (void)!wal__member_yield(control, WAL__IO_UNLOCK, &err);
    (void)!wal__door_leave(control, &err);
    io->close(io->ctx, control->file);
    control->file = NULL;
    if (control->page != control->shown) {
        unmap_page(control);
    }
}

/* Sees who lives, and follows their page. It stays theirs while the member lock
 * is shared and the door is shut: nobody can be alone and reset it. */
static bool look_inside(struct wal__control *control, struct wal__visit *visit,
                        bool met)
{
    int err = 0;

    /* Without the page it says nothing, and follows nobody. */
    (void)!wal__control_identify(control, &err);
    if (wal__door_pass(control, visit, &err) != WAL_OK) {
        return false;
    }
    if (control->shown != NULL) {
        wal__door_sign(control);
    }
    if (wal__member_join(control, visit, &err) != WAL_OK) {
        return false;
    }
    if (control->alone) {
        return !met;
    }
    if (control->shown == NULL || !page_is_ready(control)) {
        return false;
    }
    control->page = control->shown;
    return true;
}

/*
 * Goes inside the door to see who lives. Where processes do, follows their
 * page; else nobody comes in until the door is left. False: the file is closed
 * again, because it cannot be told, or with `met`, because nobody lives.
 */
static bool visit_file(struct wal__control *control, struct wal__visit *visit,
                       bool met)
{
    const struct wal__io *io = control->env->io;
    int err = 0;

    if (io->open(io->ctx, control->path, WAL__IO_WRITE, &control->file, &err) ==
        WAL_OK) {
        if (look_inside(control, visit, met)) {
            return true;
        }
        leave_file(control);
    }
    control->file = NULL;
    control->alone = true;
    return false;
}

/* Who only reads keeps no lock once it has opened: it follows the live
 * processes' page when there are any, else it recovers for itself, on a page
 * of its own, while nobody comes in. */
static void watch_page(struct wal__control *control)
{
    struct wal__visit visit;

    control->page = &control->own;
    wal__visit_init(&visit, control);
    (void)visit_file(control, &visit, false);
}

bool wal__control_meet(struct wal__control *control)
{
    struct wal__visit visit = {0};

    return control->page == &control->own && visit_file(control, &visit, true);
}

enum wal_status wal__control_open(struct wal__control *control,
                                  const struct wal__env *env,
                                  struct wal_error *error)
{
    struct wal__visit visit;
    enum wal_status status;
    int err = 0;
    int size;

    memset(control, 0, sizeof(*control));
    control->env = env;
    control->process_id = env->io->process_id(env->io->ctx);
    control->process_start =
        env->io->process_start(env->io->ctx, control->process_id);
    size = snprintf(control->path, sizeof(control->path), "%s/LOCK", env->root);
    WAL__ASSERT(size > 0 && size < (int)sizeof(control->path));
    if (env->read_only) {
        watch_page(control);
        return WAL_OK;
    }
    wal__visit_init(&visit, control);
    status = open_page(control, &visit, &err);
    if (status == WAL_OK) {
        status = wal__control_check(control, error);
        if (status != WAL_OK) {
            wal__control_close(control);
        }
        return status;
    }
    wal__control_close(control);
    if (status == WAL_ECORRUPT) {
        return wal__fail(error, status, 0, control->path, 0,
                         "the control page is not of this boot and file, yet "
                         "a process holds it");
    }
    if (status == WAL_ELOCKED) {
        return wal__visit_refused(control, &visit, error);
    }
    return wal__fail(error, status, err, control->path, 0,
                     "cannot open the lock file");
}

enum wal_status wal__control_share(struct wal__control *control,
                                   struct wal_error *error)
{
    enum wal_status status;
    int err = 0;

    if (control->file == NULL) {
        return WAL_OK;
    }
    if (control->env->read_only) {
        leave_file(control);
        control->alone = control->page == &control->own;
        return WAL_OK;
    }
    atomic_store(&control->page->streams[0].ready, 1);
    status = wal__member_yield(control, WAL__IO_SHARED, &err);
    if (status != WAL_OK) {
        return wal__fail(error, status, err, control->path, WAL__LOCK_MEMBER,
                         "cannot share the store");
    }
    control->alone = false;
    for (uint32_t i = 0; i < WAL__STREAMS; i++) {
        wal__control_tell(control, i, WAL__FOLLOW_WRITTEN);
        wal__control_tell(control, i, WAL__FOLLOW_DURABLE);
    }
    status = wal__door_leave(control, &err);
    if (status != WAL_OK) {
        return wal__fail(error, status, err, control->path, WAL__LOCK_DOOR,
                         "cannot let others into the store");
    }
    return WAL_OK;
}

void wal__control_close(struct wal__control *control)
{
    if (control->file != NULL) {
        leave_file(control);
    }
    unmap_page(control);
    control->page = NULL;
}

bool wal__control_is_last(struct wal__control *control)
{
    int err = 0;

    return control->file != NULL && wal__member_take(control, &err) == WAL_OK;
}

static enum wal__awaited awaited(uint64_t byte)
{
    if (byte >= WAL__LOCK_SPARE) {
        return WAL__AWAIT_SPARE;
    }
    return byte >= WAL__LOCK_SYNC ? WAL__AWAIT_SYNC : WAL__AWAIT_LEASE;
}

static struct wal__control_bell *bell_of(struct wal__control *control,
                                         uint64_t byte, uint32_t stream)
{
    return &control->page->streams[stream].bells[awaited(byte)];
}

/* Where the holder of a stream's lock says who it is. */
static _Atomic uint32_t *holder_of(struct wal__control *control, uint64_t byte,
                                   uint32_t stream)
{
    struct wal__control_stream *shared = &control->page->streams[stream];

    switch (awaited(byte)) {
    case WAL__AWAIT_SPARE:
        return &shared->sparing;
    case WAL__AWAIT_SYNC:
        return &shared->turn;
    case WAL__AWAIT_LEASE:
    case WAL__AWAITED:
    default:
        return &shared->holder;
    }
}

static enum wal_status locked(struct wal__control *control, uint64_t byte,
                              uint32_t stream, struct wal_error *error)
{
    uint32_t holder = atomic_load(holder_of(control, byte, stream));
    enum wal_status status;

    status = wal__fail(error, WAL_ELOCKED, 0, control->path, byte,
                       "process %u holds the store's lock; it may be stopped: "
                       "continue or end it",
                       holder);
    if (error != NULL) {
        error->holder = (int32_t)holder;
    }
    return status;
}

enum wal_status wal__control_lock_free(struct wal__control *control,
                                       uint64_t byte, uint32_t stream, int *err)
{
    enum wal_status status =
        wal__control_try(control, byte, WAL__IO_EXCLUSIVE_LOCK, err);

    if (status != WAL_OK) {
        return status;
    }
    atomic_store(holder_of(control, byte, stream), control->process_id);
    if (byte == WAL__LOCK_LEASE + stream) {
        atomic_store(&control->page->streams[stream].holder_start,
                     control->process_start);
    }
    return WAL_OK;
}

/* Tries to lock, unless the durable end has reached the position. */
static enum wal_status try_unless(struct wal__control *control, uint64_t byte,
                                  uint32_t stream, uint64_t position, int *err)
{
    if (atomic_load(&control->page->streams[stream].durable) >= position) {
        return WAL_END;
    }
    return wal__control_lock_free(control, byte, stream, err);
}

/* The same again and again, until the time is over. */
static enum wal_status await(struct wal__control *control, uint64_t byte,
                             uint32_t stream, uint64_t position, int *err)
{
    struct wal__control_bell *bell = bell_of(control, byte, stream);
    const struct wal__io *io = control->env->io;
    uint64_t deadline = io->ticks_ns(io->ctx) +
                        (uint64_t)control->env->lock_timeout_ms * 1000000;

    for (;;) {
        uint32_t seen = atomic_load(&bell->word);
        enum wal_status status =
            try_unless(control, byte, stream, position, err);

        if (status != WAL_ELOCKED || io->ticks_ns(io->ctx) >= deadline) {
            return status;
        }
        io->wait(io->ctx, (const uint32_t *)&bell->word, seen, LOOK_AGAIN_NS);
    }
}

enum wal_status wal__control_lock_unless(struct wal__control *control,
                                         uint64_t byte, uint32_t stream,
                                         uint64_t position,
                                         struct wal_error *error)
{
    struct wal__control_bell *bell = bell_of(control, byte, stream);
    enum wal_status status;
    int err = 0;

    status = try_unless(control, byte, stream, position, &err);
    if (status == WAL_ELOCKED) {
        /* Who frees it from here on sees that somebody waits. */
        atomic_fetch_add(&bell->waiters, 1);
        status = await(control, byte, stream, position, &err);
        atomic_fetch_sub(&bell->waiters, 1);
    }
    if (status == WAL_OK || status == WAL_END) {
        return status;
    }
    if (status == WAL_ELOCKED) {
        return locked(control, byte, stream, error);
    }
    return wal__fail(error, status, err, control->path, byte, "cannot lock");
}

enum wal_status wal__control_lock(struct wal__control *control, uint64_t byte,
                                  uint32_t stream, struct wal_error *error)
{
    return wal__control_lock_unless(control, byte, stream, UINT64_MAX, error);
}

bool wal__control_wanted(struct wal__control *control, uint64_t byte,
                         uint32_t stream)
{
    return atomic_load(&bell_of(control, byte, stream)->waiters) != 0;
}

void wal__control_unlock(struct wal__control *control, uint64_t byte,
                         uint32_t stream)
{
    struct wal__control_bell *bell = bell_of(control, byte, stream);
    const struct wal__io *io = control->env->io;
    int ignored = 0;

    atomic_store(holder_of(control, byte, stream), 0);
    /* What the kernel will not free now it frees with the file; until then
     * others are told who holds it. */
    (void)!wal__control_try(control, byte, WAL__IO_UNLOCK, &ignored);
    if (atomic_load(&bell->waiters) != 0) {
        atomic_fetch_add(&bell->word, 1);
        io->wake(io->ctx, (const uint32_t *)&bell->word,
                 awaited(byte) == WAL__AWAIT_SYNC ? UINT32_MAX : 1);
    }
}

bool wal__control_is_own(const struct wal__control *control)
{
    const struct wal__io *io = control->env->io;

    return io->process_id(io->ctx) == control->process_id;
}
