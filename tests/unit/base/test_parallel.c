/*
 * test_parallel.c - tests of the parallel for (engine/base/thread.h).
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/io.h"
#include "engine/base/thread.h"
#include "tests/lib/test.h"

enum { ITEMS = 1000 };

/* What was done. */
struct notes {
    atomic_int times[ITEMS];
    atomic_int threads;
    atomic_uint last;    /* item */
    atomic_int disorder; /* items processed after a higher one */
    uint32_t first_bad;  /* this and all above it fail */
};

static enum wal_status note(void *ctx, void *state, uint32_t item, struct wal_error *error)
{
    struct notes *notes = ctx;
    uint32_t *seen = state;

    if (item >= notes->first_bad) {
        return wal__fail_at(error, WAL_ECHANGED, 0, NULL, item, "bad");
    }
    atomic_fetch_add(&notes->times[item], 1);
    if (atomic_exchange(&notes->last, item) > item) {
        atomic_fetch_add(&notes->disorder, 1);
    }
    *seen += 1;
    return WAL_OK;
}

static void end(void *ctx, void *state)
{
    struct notes *notes = ctx;
    uint32_t *seen = state;

    atomic_fetch_add(&notes->threads, 1);
    *seen = 0;
}

static struct notes notes;
static bool guided;

static enum wal_status run_parallel(struct wal__io *io, uint32_t count, uint32_t threads,
                                    uint32_t first_bad, struct wal_error *error)
{
    const struct wal__env env = {.io = io};
    const struct wal__parallel_for many = {.env = &env,
                                           .ctx = &notes,
                                           .count = count,
                                           .grain = 3,
                                           .guided = guided,
                                           .threads = threads,
                                           .body = note,
                                           .end = end};

    memset(&notes, 0, sizeof(notes));
    notes.first_bad = first_bad;
    return wal__parallel_for(&many, error);
}

static void check_done(uint32_t count)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(atomic_load(&notes.times[i]), i < count);
    }
}

static int set_guided(void **state)
{
    (void)state;
    guided = true;
    return 0;
}

static int set_unguided(void **state)
{
    (void)state;
    guided = false;
    return 0;
}

TEST(parallel_for__each_item_once)
{
    struct wal__io io = wal__io_posix;

    for (uint32_t count = 0; count < 20; count++) {
        assert_ok(run_parallel(&io, count, 8, ITEMS, NULL));
        check_done(count);
        assert_int_equal(atomic_load(&notes.threads), (count + 2) / 3 < 8 ? (count + 2) / 3 : 8);
    }
    assert_ok(run_parallel(&io, ITEMS, 0, ITEMS, NULL));
    check_done(ITEMS);
}

TEST(parallel_for__without_threads_in_order)
{
    struct wal__io io = wal__io_posix;

    io.threads = false;
    assert_ok(run_parallel(&io, ITEMS, 8, ITEMS, NULL));
    check_done(ITEMS);
    assert_int_equal(atomic_load(&notes.threads), 1);
    assert_int_equal(atomic_load(&notes.disorder), 0);
}

TEST(parallel_for__first_failure_is_returned)
{
    struct wal__io io = wal__io_posix;

    for (uint32_t bad = 0; bad < 100; bad++) {
        struct wal_error error = {.struct_size = sizeof(error)};

        assert_int_equal(run_parallel(&io, ITEMS, 8, bad, &error), WAL_ECHANGED);
        check_done(bad);
        assert_int_equal(error.status, WAL_ECHANGED);
        assert_int_equal(error.offset, bad);
    }
}

/* The first claim lasts until the second one has begun. */
static enum wal_status wait_for_second(void *ctx, void *state, uint32_t item,
                                       struct wal_error *error)
{
    atomic_uint *second = ctx;
    unsigned none = 0;
    bool *is_first = state;

    (void)error;
    if (item == 0) {
        *is_first = true;
        while (atomic_load(second) == 0) {
            sched_yield();
        }
    } else if (!*is_first) {
        (void)atomic_compare_exchange_strong(second, &none, item);
    }
    return WAL_OK;
}

TEST(parallel_for__guided_claim_is_a_share_of_the_rest)
{
    struct wal__io io = wal__io_posix;
    const struct wal__env env = {.io = &io};
    atomic_uint second = 0;
    struct wal__parallel_for two = {.env = &env,
                                    .ctx = &second,
                                    .count = ITEMS,
                                    .grain = 3,
                                    .guided = true,
                                    .threads = 2,
                                    .body = wait_for_second};

    assert_ok(wal__parallel_for(&two, NULL));
    assert_int_equal(atomic_load(&second), ITEMS / 8);
    two.guided = false;
    atomic_store(&second, 0);
    assert_ok(wal__parallel_for(&two, NULL));
    assert_int_equal(atomic_load(&second), 3);
}

TEST_WITH(parallel_for__guided_each_item_once, set_guided, set_unguided)
{
    test_parallel_for__each_item_once(state);
}

TEST_WITH(parallel_for__guided_first_failure_is_returned, set_guided, set_unguided)
{
    test_parallel_for__first_failure_is_returned(state);
}

#ifdef __GLIBC__

/* --- stacks -------------------------------------------------------------- */

static void *measure_stack(void *arg)
{
    pthread_attr_t attributes;

    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstacksize(&attributes, arg);
        (void)pthread_attr_destroy(&attributes);
    }
    return NULL;
}

/* The default of another C library, for programs that do not set their own. */
TEST(thread__small_default_stack_is_not_taken)
{
    pthread_attr_t small;
    pthread_attr_t before;
    pthread_t thread;
    size_t size = 0;
    int err;

    assert_int_equal(pthread_getattr_default_np(&before), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 128 * 1024), 0);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    err = wal__thread_start(&thread, measure_stack, &size);
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    assert_int_equal(err, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(size >= 1024 * 1024);
    assert_int_equal(pthread_attr_destroy(&small) | pthread_attr_destroy(&before), 0);
}

#endif
