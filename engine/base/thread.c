/*
 * thread.c - starts the threads of the library, and a parallel for (thread.h; SPEC.md 5.13).
 * Invariant of the latter: items are claimed in ascending order and a claim is processed up to its
 * first failure, so that the lowest item that fails is always found. The threads share struct work.
 */
#include "engine/base/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "engine/base/system.h"
#include "format/bytes/assert.h"

/* That of musl is 128 KiB, unless the program says otherwise. */
enum { STACK_LEAST = 1024 * 1024 };

/* Prepares the attributes of a thread that has room for what the library calls. */
static void init_attributes(pthread_attr_t *attributes)
{
    size_t size = 0;

    (void)pthread_attr_init(attributes);
    if (pthread_attr_getstacksize(attributes, &size) == 0 && size < STACK_LEAST) {
        (void)pthread_attr_setstacksize(attributes, STACK_LEAST);
    }
}

int wal__thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    /* A thread that blocks one of these is ended with its process by it. */
    static const int faults[] = {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGABRT};
    pthread_attr_t attributes;
    sigset_t blocked;
    sigset_t before;
    int err;

    init_attributes(&attributes);
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        (void)sigdelset(&blocked, faults[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    err = pthread_create(thread, &attributes, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return err;
}

/* --- a parallel for ----------------------------------------------------- */

enum {
    THREADS_DEFAULT = 8,
    GUIDED_SHARE = 4 /* of the part that each thread would get of the rest */
};

struct work {
    const struct wal__parallel_for *loop;
    uint32_t thread_count;
    atomic_uint next; /* the first item that no thread has claimed */
    atomic_bool stop; /* an item failed */
    pthread_mutex_t mutex;
    /* The failure of the lowest item; under the mutex. */
    enum wal_status status;
    uint32_t failed;
    struct wal_error error;
};

static void record_failure(struct work *work, uint32_t item, enum wal_status status,
                           const struct wal_error *error)
{
    pthread_mutex_lock(&work->mutex);
    if (work->status == WAL_OK || item < work->failed) {
        work->status = status;
        work->failed = item;
        if (error->status == status) {
            wal__error_copy(&work->error, error);
        } else {
            wal__fail(&work->error, status, "%s", wal_status_text(status));
        }
    }
    pthread_mutex_unlock(&work->mutex);
    atomic_store(&work->stop, true);
}

/* Claims the items from *item up to *end; false: none is left. */
static bool claim(struct work *work, uint32_t *item, uint32_t *end)
{
    const struct wal__parallel_for *loop = work->loop;
    uint32_t next = atomic_load(&work->next);
    uint32_t size;

    WAL__ASSERT(loop->grain > 0 && work->thread_count > 0);
    do {
        uint32_t left = loop->count - next;
        uint32_t share = left / (GUIDED_SHARE * work->thread_count);

        if (left == 0) {
            return false;
        }
        size = loop->guided && share > loop->grain ? share : loop->grain;
        size = size < left ? size : left;
    } while (!atomic_compare_exchange_weak(&work->next, &next, next + size));
    *item = next;
    *end = next + size;
    return true;
}

/* Processes the items from *item up to `end`; leaves *item at the one that failed. */
static enum wal_status run_claim(const struct wal__parallel_for *loop, void *state, uint32_t *item,
                                 uint32_t end, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    WAL__ASSERT(*item < end && end <= loop->count);
    while (*item < end && status == WAL_OK) {
        status = loop->body(loop->ctx, state, *item, error);
        *item += status == WAL_OK;
    }
    return status;
}

static void *worker_main(void *arg)
{
    struct work *work = arg;
    const struct wal__parallel_for *loop = work->loop;
    _Alignas(max_align_t) uint8_t state[WAL__PARALLEL_STATE_SIZE] = {0};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = WAL_OK;
    uint32_t item = 0;
    uint32_t end = 0;

    while (status == WAL_OK && !atomic_load(&work->stop) && claim(work, &item, &end)) {
        status = run_claim(loop, state, &item, end, &error);
    }
    if (status != WAL_OK) {
        record_failure(work, item, status, &error);
    }
    if (loop->end != NULL) {
        loop->end(loop->ctx, state);
    }
    return NULL;
}

/* The threads asked for, but at most one per grain. */
static uint32_t count_threads(const struct wal__parallel_for *loop)
{
    uint32_t grains = loop->count / loop->grain + (loop->count % loop->grain != 0);
    uint32_t count = loop->threads;

    if (!loop->env->io->threads || grains <= 1) {
        return 1;
    }
    if (count == 0) {
        count = wal__system_processors();
        count = count < THREADS_DEFAULT ? count : THREADS_DEFAULT;
    }
    count = count < WAL__PARALLEL_THREADS_MAX ? count : WAL__PARALLEL_THREADS_MAX;
    return count < grains ? count : grains;
}

/* The caller's thread is one of the workers; if threads cannot be created, the others do the
 * work. */
static void run(struct work *work)
{
    uint32_t thread_count = work->thread_count;
    pthread_t threads[WAL__PARALLEL_THREADS_MAX];
    uint32_t started = 0;

    WAL__ASSERT(thread_count > 0 && thread_count <= WAL__PARALLEL_THREADS_MAX);
    while (started + 1 < thread_count &&
           wal__thread_start(&threads[started], worker_main, work) == 0) {
        started++;
    }
    worker_main(work);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
}

enum wal_status wal__parallel_for(const struct wal__parallel_for *loop, struct wal_error *error)
{
    struct work work = {.loop = loop, .thread_count = count_threads(loop)};

    if (loop->count == 0) {
        return WAL_OK;
    }
    work.error.struct_size = sizeof(work.error);
    pthread_mutex_init(&work.mutex, NULL);
    run(&work);
    pthread_mutex_destroy(&work.mutex);
    if (work.status != WAL_OK) {
        wal__error_copy(error, &work.error);
    }
    return work.status;
}
