/*
 * content_guard.c - the guard of content that is about to be named
 * (content_guard.h).
 *
 * Invariant: while guards[i] is not 0 this process shares lock byte i, until it
 * closes the file. A guard holds the byte of the round that the page had after
 * the byte was locked.
 */
#include "engine/log/content_guard.h"

#include "engine/base/error.h"
#include "engine/log/control_lock.h"
#include "format/bytes/assert.h"

enum {
    POLL_NS = 1000000,
    ENTER_ATTEMPTS = 1000 /* each meets the end of a wait: it lasts no time */
};

static const uint64_t wait_max_ns = UINT64_C(10000000000);

static uint64_t byte_of(uint32_t round)
{
    return WAL__LOCK_CONTENT + (round & 1);
}

static void pause_briefly(const struct wal__control *control)
{
    const struct wal__io *io = control->env->io;
    const uint32_t never_woken = 0;

    io->futex_wait(io->ctx, &never_woken, 0, POLL_NS);
}

/* Releases a guard of the round. */
static void drop(struct wal__control *control, uint32_t round)
{
    int ignored = 0;

    WAL__ASSERT(control->guards[round & 1] > 0);
    control->guards[round & 1]--;
    if (control->guards[round & 1] == 0 && control->file != NULL) {
        /* A byte that the kernel keeps only makes a compaction wait. */
        (void)!wal__control_set_lock(control, byte_of(round), WAL__IO_LOCK_NONE,
                                     &ignored);
    }
}

/* Tries to take a guard of the present round. WAL_ELOCKED: a compaction has
 * just begun the next one. */
static enum wal_status try_take(struct wal__control *control, uint32_t *round,
                                int *err)
{
    enum wal_status status = WAL_OK;

    *round = atomic_load(&control->page->content_round);
    if (control->guards[*round & 1] == 0) {
        status = wal__control_set_lock(control, byte_of(*round),
                                       WAL__IO_LOCK_SHARED, err);
    }
    if (status != WAL_OK) {
        return status;
    }
    control->guards[*round & 1]++;
    if (atomic_load(&control->page->content_round) != *round) {
        drop(control, *round);
        return WAL_ELOCKED;
    }
    return WAL_OK;
}

enum wal_status wal__content_guard_enter(struct wal__content_guard *guard,
                                         struct wal__control *control,
                                         struct wal_error *error)
{
    enum wal_status status = WAL_ELOCKED;
    int err = 0;

    if (guard->control != NULL) {
        return WAL_OK;
    }
    for (int i = 0; i < ENTER_ATTEMPTS && status == WAL_ELOCKED; i++) {
        if (i > 0) {
            pause_briefly(control);
        }
        pthread_mutex_lock(&control->guard_mutex);
        status = try_take(control, &guard->round, &err);
        pthread_mutex_unlock(&control->guard_mutex);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, control->path,
                            WAL__LOCK_CONTENT, "cannot guard content");
    }
    guard->control = control;
    return WAL_OK;
}

void wal__content_guard_leave(struct wal__content_guard *guard)
{
    struct wal__control *control = guard->control;

    if (control == NULL) {
        return;
    }
    pthread_mutex_lock(&control->guard_mutex);
    drop(control, guard->round);
    pthread_mutex_unlock(&control->guard_mutex);
    guard->control = NULL;
}

bool wal__content_guard_is_held(struct wal__control *control)
{
    bool is_held;

    pthread_mutex_lock(&control->guard_mutex);
    is_held = control->guards[0] + control->guards[1] > 0;
    pthread_mutex_unlock(&control->guard_mutex);
    return is_held;
}

/* Whether nobody holds a guard of rounds like this one. *is_own: a thread of
 * this process does. */
static enum wal_status try_drain(struct wal__control *control, uint32_t round,
                                 bool *is_own, int *err)
{
    enum wal_status status = WAL_ELOCKED;
    int ignored = 0;

    pthread_mutex_lock(&control->guard_mutex);
    *is_own = control->guards[round & 1] > 0;
    if (!*is_own) {
        status = wal__control_set_lock(control, byte_of(round),
                                       WAL__IO_LOCK_EXCLUSIVE, err);
    }
    if (status == WAL_OK) {
        (void)!wal__control_set_lock(control, byte_of(round), WAL__IO_LOCK_NONE,
                                     &ignored);
    }
    pthread_mutex_unlock(&control->guard_mutex);
    return status;
}

static enum wal_status drain(struct wal__control *control, uint32_t round,
                             struct wal_error *error)
{
    const struct wal__io *io = control->env->io;
    uint64_t deadline = io->monotonic_ns(io->ctx) + wait_max_ns;
    bool is_own = false;
    int err = 0;
    enum wal_status status = try_drain(control, round, &is_own, &err);

    while (status == WAL_ELOCKED && io->monotonic_ns(io->ctx) < deadline) {
        pause_briefly(control);
        status = try_drain(control, round, &is_own, &err);
    }
    if (status == WAL_ELOCKED) {
        status = wal__fail_at(
            error, status, 0, control->path, byte_of(round),
            "%s is still storing content, such as a checkpoint: try again",
            is_own ? "another thread" : "another process");
        wal__error_set_holder(error, is_own ? (int32_t)control->process_id : 0);
        return status;
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, err, control->path, byte_of(round),
                              "cannot wait for guards of content");
}

enum wal_status wal__content_condemn(struct wal__control *control,
                                     uint64_t last_id, struct wal_error *error)
{
    struct wal__control_page *page = control->page;
    uint32_t round = atomic_load(&page->content_round);
    /* Of a round for which an earlier compaction did not wait long enough. */
    enum wal_status status = drain(control, round + 1, error);

    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(last_id > 0);
    atomic_store(&page->condemned_id, last_id);
    atomic_store(&page->content_round, round + 1);
    status = drain(control, round, error);
    if (status != WAL_OK) {
        wal__content_absolve(control);
    }
    return status;
}

void wal__content_absolve(struct wal__control *control)
{
    atomic_store(&control->page->condemned_id, 0);
}

uint64_t wal__content_condemned(const struct wal__control *control)
{
    return atomic_load(&control->page->condemned_id);
}
