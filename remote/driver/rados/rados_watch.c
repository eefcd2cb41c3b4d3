/*
 * rados_watch.c - waits for notifications, and sends them (rados_watch.h).
 *
 * A watch is registered by the first wait for its name and remains, so that
 * what is notified between two waits is not missed. When librados reports that
 * it may have missed something, the watch is registered again.
 *
 * Nobody waits for the end of a notification but the close: a watcher that was
 * killed makes each last NOTIFY_MS, until the cluster gives it up.
 *
 * Locks: `setup` before `lock`. Callbacks take `lock`, so it is not held in a
 * call of librados, which may wait for callbacks.
 */
#include "remote/driver/rados/rados_watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"

enum {
    NOTIFY_MS = 1000,
    NOTIFYING_MAX = 64,     /* at a time; more are left out */
    END_MS = 5 * NOTIFY_MS, /* until a close gives up notifications */
    OBJECT_SIZE = WAL__RADOS_NAME_SIZE
};

struct wal__rados_watch {
    struct wal__rados_watch *next;
    struct wal__rados *rados;
    char object[OBJECT_SIZE];
    uint64_t cookie;
    bool is_registered;
    bool is_broken;   /* something may have been missed */
    bool is_notified; /* since the last wait */
};

static void object_of(const struct wal__rados *rados, const char *name,
                      char object[OBJECT_SIZE])
{
    char text[WAL__OBJECT_NAME_MAX + 16];

    (void)snprintf(text, sizeof(text), "%s~watch", name);
    wal__rados_name(rados, text, object);
}

static void set_flag(struct wal__rados_watch *watch, bool *flag)
{
    (void)pthread_mutex_lock(&watch->rados->lock);
    *flag = true;
    (void)pthread_cond_broadcast(&watch->rados->changed);
    (void)pthread_mutex_unlock(&watch->rados->lock);
}

static void on_notify(void *ctx, uint64_t notify, uint64_t handle,
                      uint64_t notifier, void *data, size_t size)
{
    struct wal__rados_watch *watch = ctx;
    const struct wal__rados *rados = watch->rados;

    (void)notifier;
    (void)data;
    (void)size;
    set_flag(watch, &watch->is_notified);
    (void)rados->calls.notify_ack(rados->io, watch->object, notify, handle,
                                  NULL, 0);
}

static void on_error(void *ctx, uint64_t cookie, int code)
{
    struct wal__rados_watch *watch = ctx;

    (void)cookie;
    (void)code;
    set_flag(watch, &watch->is_broken);
}

/* ---------------------------------------------------------------- wait --- */

static int create_object(struct wal__rados *rados, const char *object)
{
    rados_write_op_t write = rados->calls.create_write_op();
    int code;

    rados->calls.write_op_create(write, LIBRADOS_CREATE_IDEMPOTENT, NULL);
    code = rados->calls.write_op_operate(write, rados->io, object, NULL, 0);
    rados->calls.release_write_op(write);
    return code;
}

/* Finds the watch of the object, or makes one. NULL: no memory. With `setup`.
 */
static struct wal__rados_watch *find_watch(struct wal__rados *rados,
                                           const char *object)
{
    struct wal__rados_watch *watch = rados->watches;

    while (watch != NULL && strcmp(watch->object, object) != 0) {
        watch = watch->next;
    }
    if (watch == NULL) {
        watch = wal__heap_zalloc(rados->heap, sizeof(*watch));
        if (watch != NULL) {
            watch->rados = rados;
            watch->next = rados->watches;
            (void)strcpy(watch->object, object);
            rados->watches = watch;
        }
    }
    return watch;
}

/* Registers the watch, and marks it as notified: what was before is not known.
 * 0 or a negative code. With `setup`. */
static int register_watch(struct wal__rados *rados,
                          struct wal__rados_watch *watch)
{
    int code;

    if (watch->is_registered) {
        watch->is_registered = false;
        (void)rados->calls.unwatch2(rados->io, watch->cookie);
        (void)rados->calls.watch_flush(rados->cluster);
    }
    (void)pthread_mutex_lock(&rados->lock);
    watch->is_broken = false;
    (void)pthread_mutex_unlock(&rados->lock);
    code = create_object(rados, watch->object);
    if (code == 0) {
        code = rados->calls.watch2(rados->io, watch->object, &watch->cookie,
                                   on_notify, on_error, watch);
    }
    if (code == 0) {
        watch->is_registered = true;
        set_flag(watch, &watch->is_notified);
    }
    return code;
}

/* Sets *watch to a watch that is registered. */
static enum wal_status get_watch(struct wal__rados *rados, const char *name,
                                 struct wal__rados_watch **watch,
                                 struct wal_error *error)
{
    char object[OBJECT_SIZE];
    enum wal_status status = WAL_OK;
    bool is_broken;
    int code = 0;

    object_of(rados, name, object);
    (void)pthread_mutex_lock(&rados->setup);
    *watch = find_watch(rados, object);
    if (*watch == NULL) {
        status = wal__no_memory(error);
    } else {
        (void)pthread_mutex_lock(&rados->lock);
        is_broken = (*watch)->is_broken;
        (void)pthread_mutex_unlock(&rados->lock);
        if (is_broken || !(*watch)->is_registered) {
            code = register_watch(rados, *watch);
        }
    }
    (void)pthread_mutex_unlock(&rados->setup);
    if (code < 0) {
        status = code == -ENOENT
                     ? wal__rados_fail(rados, NULL, WAL_ENOTSTORE,
                                       "the pool does not exist", error)
                     : wal__rados_failed(rados, name, code, error);
    }
    return status;
}

/* The time of CLOCK_MONOTONIC in `ms`. */
static struct timespec time_after(uint32_t ms)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += ms / 1000;
    time.tv_nsec += (long)(ms % 1000) * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000;
    }
    return time;
}

enum wal_status wal__rados_watch(struct wal__rados *rados, const char *name,
                                 uint32_t timeout_ms, struct wal_error *error)
{
    const struct timespec until = time_after(timeout_ms);
    struct wal__rados_watch *watch = NULL;
    enum wal_status status = get_watch(rados, name, &watch, error);
    int result = 0;

    if (status != WAL_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&rados->lock);
    while (!watch->is_notified && !watch->is_broken && result == 0) {
        result = pthread_cond_timedwait(&rados->changed, &rados->lock, &until);
    }
    status = watch->is_notified || watch->is_broken ? WAL_OK : WAL_END;
    watch->is_notified = false;
    (void)pthread_mutex_unlock(&rados->lock);
    return status;
}

/* -------------------------------------------------------------- notify --- */

static void on_notified(rados_completion_t completion, void *ctx)
{
    struct wal__rados *rados = ctx;

    (void)completion;
    (void)pthread_mutex_lock(&rados->lock);
    rados->notifying--;
    (void)pthread_cond_broadcast(&rados->changed);
    (void)pthread_mutex_unlock(&rados->lock);
}

void wal__rados_notify(struct wal__rados *rados, const char *name)
{
    char object[OBJECT_SIZE];
    rados_completion_t completion = NULL;
    bool is_allowed;
    int code;

    object_of(rados, name, object);
    (void)pthread_mutex_lock(&rados->lock);
    is_allowed = rados->notifying < NOTIFYING_MAX;
    rados->notifying += is_allowed;
    (void)pthread_mutex_unlock(&rados->lock);
    if (!is_allowed) {
        return;
    }
    code = rados->calls.aio_create_completion2(rados, on_notified, &completion);
    if (code == 0) {
        /* Without the object, which the first watcher makes, this fails. */
        code = rados->calls.aio_notify(rados->io, object, completion, NULL, 0,
                                       NOTIFY_MS, NULL, NULL);
        rados->calls.aio_release(completion);
    }
    if (code < 0) {
        on_notified(NULL, rados);
    }
}

void wal__rados_watch_end(struct wal__rados *rados)
{
    const struct timespec until = time_after(END_MS);
    int result = 0;

    for (struct wal__rados_watch *watch = rados->watches; watch != NULL;
         watch = watch->next) {
        if (watch->is_registered) {
            (void)rados->calls.unwatch2(rados->io, watch->cookie);
        }
    }
    if (rados->watches != NULL) {
        (void)rados->calls.watch_flush(rados->cluster);
    }
    while (rados->watches != NULL) {
        struct wal__rados_watch *watch = rados->watches;

        rados->watches = watch->next;
        wal__heap_free(rados->heap, watch);
    }
    (void)pthread_mutex_lock(&rados->lock);
    while (rados->notifying > 0 && result == 0) {
        result = pthread_cond_timedwait(&rados->changed, &rados->lock, &until);
    }
    (void)pthread_mutex_unlock(&rados->lock);
}
