/*
 * test_store_close_threads.c - tests of closing (SPEC.md 4.5) by several
 * threads at once: the last handle's close, in any thread, frees the store.
 */
#include <pthread.h>

#include "agentwal/admin.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/handle_kit.h"

enum {
    STORES = sizeof(kit_handle_stores) / sizeof(kit_handle_stores[0]),
    THREADS = 4,
    HANDLES = 24, /* of each thread */
    ROUNDS = 8
};

/* A thread and the handles that it closes. */
struct closer {
    struct kit_handle handles[HANDLES];
    pthread_barrier_t *start;
    pthread_t thread;
};

static void *close_handles(void *ctx)
{
    struct closer *closer = ctx;

    (void)pthread_barrier_wait(closer->start);
    for (int i = 0; i < HANDLES; i++) {
        kit_handle_close(&closer->handles[i]);
    }
    return NULL;
}

static void start(struct closer *closers, pthread_barrier_t *barrier)
{
    assert_int_equal(pthread_barrier_init(barrier, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        closers[i].start = barrier;
        assert_int_equal(pthread_create(&closers[i].thread, NULL, close_handles,
                                        &closers[i]),
                         0);
    }
}

static void finish(struct closer *closers, pthread_barrier_t *barrier)
{
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(closers[i].thread, NULL), 0);
    }
    assert_int_equal(pthread_barrier_destroy(barrier), 0);
}

/* Deals the session with its claim, and handles of all kinds on it, to the
 * threads. */
static void distribute_handles(struct wal_store *store,
                               struct wal_session *session, uint32_t flags,
                               struct closer *closers, uint64_t *random)
{
    uint64_t kinds =
        flags == WAL_OPEN_NOOP ? KIT_HANDLE_BLOB : KIT_HANDLE_COUNT;

    for (int i = 0; i < THREADS * HANDLES; i++) {
        closers[i % THREADS].handles[i / THREADS] = kit_handle_open(
            store, session, (enum kit_handle_kind)rng_below(random, kinds),
            rng_next(random));
    }
    assert_ok(wal_session_claim(session, NULL));
    kit_handle_close(&closers[0].handles[0]);
    closers[0].handles[0] = (struct kit_handle){KIT_HANDLE_SESSION, session};
}

/* One round: wal_close before the threads close their handles, or after. */
static void run(uint32_t flags, bool store_first, uint64_t *random)
{
    struct closer closers[THREADS];
    struct faulty_heap heap;
    struct wal_session *session;
    struct wal_store *store;
    pthread_barrier_t barrier;

    faulty_heap_init(&heap, &wal__heap_libc);
    store = kit_handle_store(flags, &heap.heap, &session);
    distribute_handles(store, session, flags, closers, random);
    if (store_first) {
        assert_int_equal(wal_close(store, NULL), WAL_EBUSY);
    }
    start(closers, &barrier);
    finish(closers, &barrier);
    if (!store_first) {
        assert_true(heap.live > 0);
        assert_ok(wal_close(store, NULL));
    }
    assert_int_equal(heap.live, 0);
}

KIT_TEST(close_threads__after_the_store)
{
    uint64_t random = kit_seed();

    for (int round = 0; round < ROUNDS; round++) {
        run(kit_handle_stores[round % STORES], true, &random);
    }
}

KIT_TEST(close_threads__before_the_store)
{
    uint64_t random = kit_seed();

    for (int round = 0; round < ROUNDS; round++) {
        run(kit_handle_stores[round % STORES], false, &random);
    }
}
