/*
 * parallel.c - one thing done for each of many items by several threads
 * (many.h).
 */
#include "engine/os/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

enum {
    THREADS_DEFAULT = 8
};

struct work {
    const struct wal__parallel_for *many;
    atomic_uint next; /* the first item that nobody took */
    atomic_bool stop; /* one failed */
    pthread_mutex_t mutex;
    /* The failure of the lowest item. */
    enum wal_status status;
    uint32_t failed;
    struct wal_error error;
};

static void record_failure(struct work *work, uint32_t item,
                           enum wal_status status,
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

/* Of a run of items; *item is the one that failed. */
static enum wal_status run_grain(const struct wal__parallel_for *many,
                                 void *state, uint32_t *item,
                                 struct wal_error *error)
{
    uint32_t left = many->count - *item;
    uint32_t end = *item + (left < many->grain ? left : many->grain);
    enum wal_status status = WAL_OK;

    while (*item < end && status == WAL_OK) {
        status = many->body(many->ctx, state, *item, error);
        *item += status == WAL_OK;
    }
    return status;
}

static void *worker_main(void *arg)
{
    struct work *work = arg;
    const struct wal__parallel_for *many = work->many;
    _Alignas(max_align_t) uint8_t state[WAL__PARALLEL_STATE_SIZE] = {0};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = WAL_OK;
    uint32_t item = 0;

    while (status == WAL_OK && !atomic_load(&work->stop)) {
        item = atomic_fetch_add(&work->next, many->grain);
        if (item >= many->count) {
            break;
        }
        status = run_grain(many, state, &item, &error);
    }
    if (status != WAL_OK) {
        record_failure(work, item, status, &error);
    }
    if (many->end != NULL) {
        many->end(many->ctx, state);
    }
    return NULL;
}

static uint32_t usable_processors(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return 1;
    }
    return (uint32_t)CPU_COUNT(&set);
}

/* As many as are wanted, but one for each run of items at most. */
static uint32_t count_threads(const struct wal__parallel_for *many)
{
    uint32_t runs =
        many->count / many->grain + (many->count % many->grain != 0);
    uint32_t count = many->threads;

    if (!many->env->io->threads || runs <= 1) {
        return 1;
    }
    if (count == 0) {
        count = usable_processors();
        count = count < THREADS_DEFAULT ? count : THREADS_DEFAULT;
    }
    count =
        count < WAL__PARALLEL_THREADS_MAX ? count : WAL__PARALLEL_THREADS_MAX;
    return count < runs ? count : runs;
}

/* The caller's thread is one of the workers; where the system gives fewer
 * threads, those that are there do the work. No signal is taken by them. */
static void run(struct work *work, uint32_t thread_count)
{
    pthread_t threads[WAL__PARALLEL_THREADS_MAX];
    uint32_t started = 0;
    sigset_t all;
    sigset_t old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (started + 1 < thread_count &&
           pthread_create(&threads[started], NULL, worker_main, work) == 0) {
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    worker_main(work);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
}

enum wal_status wal__parallel_for(const struct wal__parallel_for *many,
                                  struct wal_error *error)
{
    struct work work = {.many = many};

    if (many->count == 0) {
        return WAL_OK;
    }
    work.error.struct_size = sizeof(work.error);
    pthread_mutex_init(&work.mutex, NULL);
    run(&work, count_threads(many));
    pthread_mutex_destroy(&work.mutex);
    if (work.status != WAL_OK) {
        wal__error_copy(error, &work.error);
    }
    return work.status;
}
