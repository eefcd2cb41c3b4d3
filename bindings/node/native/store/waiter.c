/*
 * waiter.c - the thread that waits for completions (waiter.h).
 */
#include "bindings/node/native/store/waiter.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bindings/node/native/base/thread.h"
#include "bindings/node/native/store/store.h"

struct waiter {
    pthread_t thread;
    int32_t ring_fd; /* of the library */
    int stop_fd;
    bool is_running;
    bool is_lost; /* the environment took `ring`; set by the thread */
    napi_threadsafe_function ring;
    napi_env env;
};

static void read_count(int fd)
{
    uint64_t count;

    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
}

static void *run(void *arg)
{
    struct waiter *waiter = arg;
    struct pollfd fds[2] = {{.fd = waiter->ring_fd, .events = POLLIN},
                            {.fd = waiter->stop_fd, .events = POLLIN}};

    pthread_setname_np(pthread_self(), "wal-node");
    while (fds[1].revents == 0) {
        if (poll(fds, 2, -1) < 0) {
            continue;
        }
        if (fds[0].revents != 0 && fds[1].revents == 0) {
            read_count(waiter->ring_fd);
            if (napi_call_threadsafe_function(waiter->ring, NULL,
                                              napi_tsfn_nonblocking) ==
                napi_closing) {
                waiter->is_lost = true;
                break;
            }
        }
    }
    return NULL;
}

/* In the thread of JavaScript. */
static void on_ring(napi_env env, napi_value function, void *context,
                    void *data)
{
    struct store *store = context;

    (void)function;
    (void)data;
    if (env != NULL && store->state != STORE_CLOSED &&
        store->state != STORE_SHUTTING) {
        submissions_settle(store);
    }
}

static void release_store(napi_env env, void *data, void *context)
{
    (void)env;
    (void)data;
    store_release(context);
}

static bool open_descriptors(struct call *call, struct store *store,
                             struct waiter *waiter)
{
    if (!call_check(call, wal_store_completion_fd(
                              store->wal, WAL_COMPLETION_EVENTFD,
                              &waiter->ring_fd, call_error(call)))) {
        return false;
    }
    waiter->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (waiter->stop_fd < 0) {
        call_fail(call, WAL_ENOMEM, "the process has no descriptor left");
        return false;
    }
    return true;
}

static bool make_ring(struct call *call, struct store *store,
                      struct waiter *waiter)
{
    napi_value name = NULL;

    if (!call_ok(call, napi_create_string_utf8(call->env, "agentwal",
                                               NAPI_AUTO_LENGTH, &name)) ||
        !call_ok(call, napi_create_threadsafe_function(
                           call->env, NULL, NULL, name, 1, 1, NULL,
                           release_store, store, on_ring, &waiter->ring))) {
        return false;
    }
    store_retain(store);
    (void)napi_unref_threadsafe_function(call->env, waiter->ring);
    store_renew_hook(store);
    return true;
}

bool waiter_start(struct call *call, struct store *store)
{
    struct waiter *waiter;

    if (store->waiter != NULL) {
        return true;
    }
    waiter = calloc(1, sizeof(*waiter));
    if (waiter == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a thread");
        return false;
    }
    waiter->env = call->env;
    waiter->stop_fd = -1;
    if (open_descriptors(call, store, waiter) &&
        make_ring(call, store, waiter)) {
        if (thread_start(&waiter->thread, run, waiter)) {
            waiter->is_running = true;
            store->waiter = waiter;
            return true;
        }
        call_fail(call, WAL_ENOMEM, "cannot start a thread");
    }
    waiter_destroy(waiter);
    return false;
}

void waiter_hold(struct waiter *waiter, bool is_held)
{
    if (is_held) {
        (void)napi_ref_threadsafe_function(waiter->env, waiter->ring);
    } else {
        (void)napi_unref_threadsafe_function(waiter->env, waiter->ring);
    }
}

void waiter_stop(struct waiter *waiter)
{
    const uint64_t one = 1;

    if (waiter == NULL || !waiter->is_running) {
        return;
    }
    while (write(waiter->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    pthread_join(waiter->thread, NULL);
    waiter->is_running = false;
}

void waiter_destroy(struct waiter *waiter)
{
    if (waiter == NULL) {
        return;
    }
    if (waiter->ring != NULL && !waiter->is_lost) {
        (void)napi_release_threadsafe_function(waiter->ring, napi_tsfn_release);
    }
    if (waiter->stop_fd >= 0) {
        (void)close(waiter->stop_fd);
    }
    free(waiter);
}
