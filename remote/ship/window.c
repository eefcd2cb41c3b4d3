/*
 * window.c - the parts that a writer has on the way (window.h).
 */
#include "remote/ship/window.h"

#include <time.h>

#include "engine/base/thread.h"
#include "remote/history/machine.h"

static struct wal__send *send_of(struct wal__window *window, uint64_t number)
{
    return &window->sends[number % WAL__PART_WINDOW];
}

void wal__window_init(struct wal__window *window, struct wal_remote *remote,
                      uint64_t next)
{
    pthread_condattr_t monotonic;

    *window =
        (struct wal__window){.remote = remote, .first = next, .next = next};
    (void)pthread_mutex_init(&window->mutex, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&window->work, NULL);
    (void)pthread_cond_init(&window->done, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    for (size_t i = 0; i < WAL__PART_WINDOW; i++) {
        wal__buf_init(&window->sends[i].bytes, remote->heap);
        wal__buf_init(&window->sends[i].found, remote->heap);
    }
}

void wal__window_deinit(struct wal__window *window)
{
    if (window->remote == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&window->mutex);
    window->is_stopping = true;
    (void)pthread_cond_broadcast(&window->work);
    (void)pthread_mutex_unlock(&window->mutex);
    for (uint32_t i = 0; i < window->thread_count; i++) {
        (void)pthread_join(window->threads[i], NULL);
    }
    for (size_t i = 0; i < WAL__PART_WINDOW; i++) {
        wal__buf_deinit(&window->sends[i].bytes);
        wal__buf_deinit(&window->sends[i].found);
    }
    (void)pthread_cond_destroy(&window->done);
    (void)pthread_cond_destroy(&window->work);
    (void)pthread_mutex_destroy(&window->mutex);
    window->remote = NULL;
}

bool wal__window_is_full(const struct wal__window *window)
{
    return window->next - window->first == WAL__PART_WINDOW;
}

bool wal__window_is_empty(const struct wal__window *window)
{
    return window->next == window->first;
}

uint64_t wal__window_bytes(const struct wal__window *window)
{
    uint64_t bytes = 0;

    for (uint64_t number = window->first; number < window->next; number++) {
        bytes += window->sends[number % WAL__PART_WINDOW].bytes.size;
    }
    return bytes;
}

/* --- the work ----------------------------------------------------------- */

/* Creates the object. Without the mutex. */
static enum wal_status create(struct wal__window *window,
                              struct wal__send *send)
{
    enum wal_status status;

    send->error = (struct wal_error){.struct_size = sizeof(send->error)};
    send->began_ms = window->remote->now_ms();
    status = wal__remote_create(
        window->remote, send->name,
        (struct wal_slice){send->bytes.data, send->bytes.size}, &send->found,
        &send->error);
    send->ended_ms = window->remote->now_ms();
    return status;
}

/* The oldest one that is queued, or NULL. Mutex. */
static struct wal__send *find_queued(struct wal__window *window)
{
    for (uint64_t number = window->first; number < window->next; number++) {
        if (send_of(window, number)->state == WAL__SEND_QUEUED) {
            return send_of(window, number);
        }
    }
    return NULL;
}

static void *thread_main(void *arg)
{
    struct wal__window *window = arg;

    (void)pthread_mutex_lock(&window->mutex);
    while (!window->is_stopping) {
        struct wal__send *send = find_queued(window);

        if (send == NULL) {
            (void)pthread_cond_wait(&window->work, &window->mutex);
            continue;
        }
        send->state = WAL__SEND_RUNNING;
        (void)pthread_mutex_unlock(&window->mutex);
        send->status = create(window, send);
        (void)pthread_mutex_lock(&window->mutex);
        send->state = WAL__SEND_DONE;
        (void)pthread_cond_signal(&window->done);
    }
    (void)pthread_mutex_unlock(&window->mutex);
    return NULL;
}

/* Whether a thread has, or will have, what is queued. */
static bool has_thread(struct wal__window *window, uint32_t max_threads)
{
    uint64_t waiting = 0;

    (void)pthread_mutex_lock(&window->mutex);
    for (uint64_t number = window->first; number < window->next; number++) {
        waiting += send_of(window, number)->state != WAL__SEND_DONE;
    }
    (void)pthread_mutex_unlock(&window->mutex);
    if (waiting > window->thread_count && window->thread_count < max_threads &&
        wal__thread_start(&window->threads[window->thread_count], thread_main,
                          window) == 0) {
        window->thread_count++;
    }
    return window->thread_count > 0;
}

/* --- sending ------------------------------------------------------------ */

struct wal__send *wal__window_place(struct wal__window *window)
{
    struct wal__send *send = send_of(window, window->next);

    send->number = window->next;
    send->bytes.size = 0;
    return send;
}

/* Without threads, or when none could be made. */
static void send_inline(struct wal__window *window, struct wal__send *send)
{
    send->status = create(window, send);
    send->state = WAL__SEND_DONE;
}

static void queue(struct wal__window *window, struct wal__send *send)
{
    (void)pthread_mutex_lock(&window->mutex);
    send->state = WAL__SEND_QUEUED;
    (void)pthread_cond_signal(&window->work);
    (void)pthread_mutex_unlock(&window->mutex);
}

void wal__window_send(struct wal__window *window, uint32_t max_threads)
{
    struct wal__send *send = send_of(window, window->next);

    (void)pthread_mutex_lock(&window->mutex);
    send->state = WAL__SEND_RUNNING; /* of this thread, as yet */
    window->next++;
    (void)pthread_mutex_unlock(&window->mutex);
    if (has_thread(window, max_threads)) {
        queue(window, send);
    } else {
        send_inline(window, send);
    }
}

void wal__window_send_again(struct wal__window *window)
{
    for (uint64_t number = window->first; number < window->next; number++) {
        struct wal__send *send = send_of(window, number);
        bool failed;

        (void)pthread_mutex_lock(&window->mutex);
        failed = send->state == WAL__SEND_DONE && send->status != WAL_OK;
        (void)pthread_mutex_unlock(&window->mutex);
        if (failed && window->thread_count > 0) {
            queue(window, send);
        } else if (failed) {
            send_inline(window, send);
        }
    }
}

/* --- waiting ------------------------------------------------------------ */

static struct timespec deadline_after(int64_t timeout_ms)
{
    struct timespec at = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(timeout_ms / 1000);
    at.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

struct wal__send *wal__window_wait(struct wal__window *window,
                                   int64_t timeout_ms)
{
    struct wal__send *send = send_of(window, window->first);
    const struct timespec deadline =
        deadline_after(timeout_ms > 0 ? timeout_ms : 0);
    int result = 0;

    if (wal__window_is_empty(window)) {
        return NULL;
    }
    (void)pthread_mutex_lock(&window->mutex);
    while (send->state != WAL__SEND_DONE && result == 0 && timeout_ms != 0) {
        result = timeout_ms < 0
                     ? pthread_cond_wait(&window->done, &window->mutex)
                     : pthread_cond_timedwait(&window->done, &window->mutex,
                                              &deadline);
    }
    if (send->state != WAL__SEND_DONE) {
        send = NULL;
    }
    (void)pthread_mutex_unlock(&window->mutex);
    return send;
}

void wal__window_take(struct wal__window *window)
{
    struct wal__send *send = send_of(window, window->first);

    (void)pthread_mutex_lock(&window->mutex);
    send->state = WAL__SEND_NONE;
    window->first++;
    (void)pthread_mutex_unlock(&window->mutex);
}

void wal__window_settle(struct wal__window *window)
{
    (void)pthread_mutex_lock(&window->mutex);
    for (uint64_t number = window->first; number < window->next; number++) {
        while (send_of(window, number)->state != WAL__SEND_DONE) {
            (void)pthread_cond_wait(&window->done, &window->mutex);
        }
    }
    (void)pthread_mutex_unlock(&window->mutex);
}
