/*
 * driver_watch.c - notifications of a driver that has them:
 *
 *   remote_driver_watch URL
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "remote/driver/driver.h"

enum {
    ROUNDS = 50,
    LONG_MS = 20 * 1000, /* until a test fails */
    SHORT_MS = 300,
    PROMPT_MS = 100 /* the median of a notification */
};

static const char *remote_url;
static struct wal_error failure = {.struct_size = sizeof(failure)};

/* One that waits and one that notifies, as of two machines. */
static struct wal__driver *watcher;
static struct wal__driver *notifier;

static int64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct wal__driver *open_driver(void)
{
    struct wal__driver *driver = NULL;

    if (wal__driver_open(remote_url, &wal__heap_libc, &driver, &failure) !=
        WAL_OK) {
        fail_msg("%s", failure.text);
    }
    return driver;
}

static int open_drivers(void **state)
{
    (void)state;
    watcher = open_driver();
    notifier = open_driver();
    return 0;
}

static int close_drivers(void **state)
{
    (void)state;
    watcher->calls->close(watcher);
    notifier->calls->close(notifier);
    return 0;
}

/* A name that no other test or run watches. */
static const char *fresh_name(void)
{
    static char name[64];
    static unsigned count;

    (void)snprintf(name, sizeof(name), "watch-%ld-%ld/%u", (long)time(NULL),
                   (long)getpid(), ++count);
    return name;
}

static enum wal_status wait_for(const char *name, uint32_t timeout_ms)
{
    enum wal_status status =
        watcher->calls->watch(watcher, name, timeout_ms, &failure);

    if (status < 0) {
        fail_msg("%s: %d: %s", name, (int)status, failure.text);
    }
    return status;
}

static void test_watch__first_one_returns_at_once(void **state)
{
    (void)state;
    assert_int_equal(wait_for(fresh_name(), 0), WAL_OK);
}

static void test_watch__ends_when_nothing_is_notified(void **state)
{
    (void)state;
    const char *name = fresh_name();
    int64_t from;

    assert_int_equal(wait_for(name, 0), WAL_OK);
    from = now_us();
    assert_int_equal(wait_for(name, SHORT_MS), WAL_END);
    assert_true(now_us() - from >= SHORT_MS * 1000);
}

static void test_watch__sees_what_came_between_two_waits(void **state)
{
    (void)state;
    const char *name = fresh_name();

    assert_int_equal(wait_for(name, 0), WAL_OK);
    notifier->calls->notify(notifier, name);
    assert_int_equal(wait_for(name, LONG_MS), WAL_OK);
    /* And once. */
    assert_int_equal(wait_for(name, SHORT_MS), WAL_END);
}

static void test_watch__another_name_does_not_wake_it(void **state)
{
    (void)state;
    char name[64];

    (void)snprintf(name, sizeof(name), "%s", fresh_name());
    assert_int_equal(wait_for(name, 0), WAL_OK);
    notifier->calls->notify(notifier, fresh_name());
    assert_int_equal(wait_for(name, SHORT_MS), WAL_END);
}

static int64_t notified_us;

static void *notify_soon(void *ctx)
{
    const struct timespec wait = {.tv_nsec = 20 * 1000000};

    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
    notified_us = now_us();
    notifier->calls->notify(notifier, ctx);
    return NULL;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static double ms_of(int64_t us)
{
    return (double)us / 1000;
}

static void test_watch__notification_comes_promptly(void **state)
{
    (void)state;
    char name[64];
    int64_t times[ROUNDS];
    pthread_t thread;

    (void)snprintf(name, sizeof(name), "%s", fresh_name());
    assert_int_equal(wait_for(name, 0), WAL_OK);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(pthread_create(&thread, NULL, notify_soon, name), 0);
        assert_int_equal(wait_for(name, LONG_MS), WAL_OK);
        times[i] = now_us();
        assert_int_equal(pthread_join(thread, NULL), 0);
        times[i] -= notified_us;
    }
    qsort(times, ROUNDS, sizeof(times[0]), compare_times);
    print_message("a notification: p50 %.1f ms, p99 %.1f ms\n",
                  ms_of(times[ROUNDS / 2]), ms_of(times[ROUNDS - 1]));
    assert_true(times[ROUNDS / 2] < PROMPT_MS * 1000);
}

static void test_watch__bad_names_are_refused(void **state)
{
    (void)state;
    assert_int_equal(watcher->calls->watch(watcher, "a//b", 0, &failure),
                     WAL_EINVAL);
    assert_int_equal(watcher->calls->watch(watcher, "", 0, &failure),
                     WAL_EINVAL);
}

static void test_notify__without_watchers_does_nothing(void **state)
{
    (void)state;
    struct wal__driver *driver = open_driver();

    for (int i = 0; i < ROUNDS; i++) {
        driver->calls->notify(driver, fresh_name());
    }
    driver->calls->notify(driver, "a//b");
    driver->calls->close(driver);
}

static void test_notify__close_waits_for_it(void **state)
{
    (void)state;
    char name[64];
    struct wal__driver *driver = open_driver();

    (void)snprintf(name, sizeof(name), "%s", fresh_name());
    assert_int_equal(wait_for(name, 0), WAL_OK);
    driver->calls->notify(driver, name);
    driver->calls->close(driver);
    assert_int_equal(wait_for(name, LONG_MS), WAL_OK);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watch__first_one_returns_at_once),
        cmocka_unit_test(test_watch__ends_when_nothing_is_notified),
        cmocka_unit_test(test_watch__sees_what_came_between_two_waits),
        cmocka_unit_test(test_watch__another_name_does_not_wake_it),
        cmocka_unit_test(test_watch__notification_comes_promptly),
        cmocka_unit_test(test_watch__bad_names_are_refused),
        cmocka_unit_test(test_notify__without_watchers_does_nothing),
        cmocka_unit_test(test_notify__close_waits_for_it),
    };

    if (argc != 2) {
        (void)fputs("usage: URL\n", stderr);
        return 2;
    }
    remote_url = argv[1];
    return cmocka_run_group_tests_name("watch", tests, open_drivers,
                                       close_drivers);
}
