/*
 * test_control.c - tests of the lock bytes and the shared page, on the real
 * system: handles of one process lock each other out as processes do.
 */
#include "tests/lib/store_kit.h"

#include <pthread.h>
#include <time.h>

#include "engine/base/assert.h"
#include "engine/log/control.h"

enum {
    LEASE = WAL__LOCK_LEASE,
    TIMEOUT_MS = 20
};

/* Two members of a store in the current directory. */
struct members {
    struct wal__env env;
    struct wal__control first;
    struct wal__control second;
    struct wal_error error;
};

static struct members *begin(void)
{
    struct members *members = calloc(1, sizeof(*members));

    assert_non_null(members);
    members->env.root[0] = '.';
    members->env.heap = &wal__heap_libc;
    members->env.io = &wal__io_posix;
    members->env.lock_timeout_ms = TIMEOUT_MS;
    members->error = KIT_ERROR;
    assert_int_equal(wal__control_open(&members->first, &members->env, NULL),
                     WAL_OK);
    return members;
}

static void join(struct members *members)
{
    assert_int_equal(wal__control_share(&members->first, NULL), WAL_OK);
    assert_int_equal(wal__control_open(&members->second, &members->env, NULL),
                     WAL_OK);
    assert_int_equal(wal__control_share(&members->second, NULL), WAL_OK);
}

static void test_control__first_is_alone_and_recovers(void **state)
{
    (void)state;
    struct members *members = begin();

    assert_true(members->first.alone);
    assert_int_equal(
        wal__control_open(&members->second, &members->env, &members->error),
        WAL_ELOCKED);
    kit_told(&members->error, WAL_ELOCKED, "recovering");
    join(members);
    assert_false(members->first.alone);
    assert_false(members->second.alone);
    wal__control_close(&members->second);
    wal__control_close(&members->first);
    assert_int_equal(wal__control_open(&members->first, &members->env, NULL),
                     WAL_OK);
    assert_true(members->first.alone);
    wal__control_close(&members->first);
    free(members);
}

static void test_control__page_is_one(void **state)
{
    (void)state;
    struct members *members = begin();

    join(members);
    atomic_store(&members->first.page->streams[0].written, 4711);
    assert_int_equal(atomic_load(&members->second.page->streams[0].written),
                     4711);
    wal__control_close(&members->second);
    wal__control_close(&members->first);
    free(members);
}

static void test_control__lock_names_its_holder(void **state)
{
    (void)state;
    struct members *members = begin();

    join(members);
    assert_int_equal(wal__control_lock(&members->first, LEASE, 0, NULL),
                     WAL_OK);
    assert_int_equal(
        wal__control_lock(&members->second, LEASE, 0, &members->error),
        WAL_ELOCKED);
    assert_int_equal(members->error.holder, getpid());
    assert_int_equal(members->error.offset, LEASE);
    wal__control_unlock(&members->first, LEASE, 0);
    assert_int_equal(wal__control_lock(&members->second, LEASE, 0, NULL),
                     WAL_OK);
    wal__control_unlock(&members->second, LEASE, 0);
    wal__control_close(&members->second);
    wal__control_close(&members->first);
    free(members);
}

/* Who closes lets go of everything. */
static void test_control__closing_frees_the_locks(void **state)
{
    (void)state;
    struct members *members = begin();

    join(members);
    assert_int_equal(wal__control_lock(&members->first, LEASE, 0, NULL),
                     WAL_OK);
    wal__control_close(&members->first);
    assert_int_equal(wal__control_lock(&members->second, LEASE, 0, NULL),
                     WAL_OK);
    wal__control_unlock(&members->second, LEASE, 0);
    wal__control_close(&members->second);
    free(members);
}

static void test_control__last_one_knows(void **state)
{
    (void)state;
    struct members *members = begin();

    join(members);
    assert_false(wal__control_is_last(&members->first));
    wal__control_close(&members->second);
    assert_true(wal__control_is_last(&members->first));
    assert_int_equal(
        wal__control_open(&members->second, &members->env, &members->error),
        WAL_ELOCKED);
    wal__control_close(&members->first);
    free(members);
}

static void *let_go(void *arg)
{
    struct members *members = arg;
    struct timespec pause = {0, 30000000};

    (void)nanosleep(&pause, NULL);
    wal__control_unlock(&members->first, LEASE, 0);
    return NULL;
}

static void test_control__waiter_gets_the_lock(void **state)
{
    (void)state;
    struct members *members = begin();
    pthread_t thread;

    members->env.lock_timeout_ms = 60000;
    join(members);
    assert_int_equal(wal__control_lock(&members->first, LEASE, 0, NULL),
                     WAL_OK);
    assert_int_equal(pthread_create(&thread, NULL, let_go, members), 0);
    assert_int_equal(wal__control_lock(&members->second, LEASE, 0, NULL),
                     WAL_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    wal__control_unlock(&members->second, LEASE, 0);
    wal__control_close(&members->second);
    wal__control_close(&members->first);
    free(members);
}

static void test_control__reader_watches_or_is_alone(void **state)
{
    (void)state;
    struct members *members = begin();

    assert_int_equal(wal__control_share(&members->first, NULL), WAL_OK);
    members->env.read_only = true;
    assert_int_equal(wal__control_open(&members->second, &members->env, NULL),
                     WAL_OK);
    assert_false(members->second.alone);
    atomic_store(&members->first.page->streams[0].written, 4711);
    assert_int_equal(atomic_load(&members->second.page->streams[0].written),
                     4711);
    assert_false(wal__control_is_last(&members->first));
    assert_int_equal(wal__control_share(&members->second, NULL), WAL_OK);
    assert_true(wal__control_is_last(&members->first));
    wal__control_close(&members->second);
    wal__control_close(&members->first);
    assert_int_equal(wal__control_open(&members->second, &members->env, NULL),
                     WAL_OK);
    assert_true(members->second.alone);
    assert_ptr_equal(members->second.page, &members->second.own);
    assert_true(wal__control_is_own(&members->second));
    wal__control_close(&members->second);
    free(members);
}

/* Who was alone is gone, or fails, while others are about to join: what is in
 * the page then was recovered by nobody. */
static void
test_control__page_that_was_not_recovered_is_not_joined(void **state)
{
    (void)state;
    struct members *members = begin();
    const struct wal__io *io = members->env.io;
    int err = 0;

    assert_int_equal(io->lock(io->ctx, members->first.file, WAL__LOCK_MEMBER,
                              WAL__IO_SHARED, &err),
                     WAL_OK);
    /* It keeps the door: nobody comes in. */
    assert_int_equal(
        wal__control_open(&members->second, &members->env, &members->error),
        WAL_ELOCKED);
    assert_int_equal(io->lock(io->ctx, members->first.file, WAL__LOCK_DOOR,
                              WAL__IO_UNLOCK, &err),
                     WAL_OK);
    assert_int_equal(
        wal__control_open(&members->second, &members->env, &members->error),
        WAL_ECORRUPT);
    members->env.read_only = true;
    assert_int_equal(wal__control_open(&members->second, &members->env, NULL),
                     WAL_OK);
    assert_true(members->second.alone);
    assert_ptr_equal(members->second.page, &members->second.own);
    wal__control_close(&members->second);
    members->env.read_only = false;
    wal__control_close(&members->first);
    assert_int_equal(wal__control_open(&members->second, &members->env, NULL),
                     WAL_OK);
    assert_true(members->second.alone);
    wal__control_close(&members->second);
    free(members);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_control__first_is_alone_and_recovers),
        KIT_TEST(test_control__page_is_one),
        KIT_TEST(test_control__lock_names_its_holder),
        KIT_TEST(test_control__closing_frees_the_locks),
        KIT_TEST(test_control__last_one_knows),
        KIT_TEST(test_control__waiter_gets_the_lock),
        KIT_TEST(test_control__reader_watches_or_is_alone),
        KIT_TEST(test_control__page_that_was_not_recovered_is_not_joined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
