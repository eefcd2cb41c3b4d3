/*
 * driver_cases.c - what every driver must do (driver_cases.h).
 */
#include "driver_cases.h"

#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "remote/driver/driver.h"
#include "tests/lib/test.h"

enum { THREADS = 8, RACE_KEYS = 50, MANY = 2500 };

static struct {
    const char *url;
    struct wal__driver *driver;
    char run[64]; /* what all names of this run begin with, without a '/' */
} fixture;

static struct wal_error failure;

/* The call succeeds, and does not fill its error. */
#define assert_succeeds(call)                                                          \
    do {                                                                               \
        failure.text[0] = '\0';                                                        \
                                                                                       \
        enum wal_status got_ = (call);                                                 \
        if (got_ != WAL_OK || failure.text[0] != '\0') {                               \
            fail_msg("%s: %d: %s (%s)", #call, (int)got_, failure.text, failure.file); \
        }                                                                              \
    } while (0)

/* RUN/REST, in one of a few static buffers. */
static const char *name_of(const char *rest)
{
    static char names[4][256];
    static unsigned next;
    char *name = names[next++ % 4];

    (void)snprintf(name, sizeof(names[0]), "%s/%s", fixture.run, rest);
    return name;
}

static struct wal_slice slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static void put_text(const char *rest, const char *text)
{
    assert_succeeds(
        fixture.driver->calls->put(fixture.driver, name_of(rest), slice(text), &failure));
}

static enum wal_status create(const char *rest, const char *text)
{
    return fixture.driver->calls->put_if_absent(fixture.driver, name_of(rest), slice(text),
                                                &failure);
}

static enum wal_status get_range(const char *rest, uint64_t offset, uint64_t size,
                                 struct wal__buf *bytes)
{
    return fixture.driver->calls->get(fixture.driver, name_of(rest), offset, size, bytes, &failure);
}

static void assert_range(const char *rest, uint64_t offset, uint64_t size, const char *expected)
{
    struct wal__buf bytes;

    wal__buf_init(&bytes, &wal__heap_libc);
    assert_succeeds(wal__buf_append(&bytes, "kept", 4));
    assert_succeeds(get_range(rest, offset, size, &bytes));
    assert_int_equal(bytes.size, 4 + strlen(expected));
    assert_memory_equal(bytes.data, "kept", 4);
    assert_memory_equal(bytes.data + 4, expected, strlen(expected));
    wal__buf_deinit(&bytes);
}

static void assert_absent(const char *rest)
{
    struct wal__buf bytes;
    uint64_t size = 77;

    wal__buf_init(&bytes, &wal__heap_libc);
    assert_int_equal(get_range(rest, 0, 10, &bytes), WAL_ENOTFOUND);
    assert_int_equal(bytes.size, 0);
    wal__buf_deinit(&bytes);
    assert_int_equal(fixture.driver->calls->head(fixture.driver, name_of(rest), &size, &failure),
                     WAL_ENOTFOUND);
    assert_int_equal(size, 77);
}

static void remove_text(const char *rest)
{
    assert_succeeds(fixture.driver->calls->remove(fixture.driver, name_of(rest), &failure));
}

/* -------------------------------------------------------------- one --- */

static void test_driver__created_object_has_its_bytes(void **state)
{
    (void)state;
    uint64_t size = 0;

    assert_absent("one/created");
    assert_succeeds(create("one/created", "content"));
    assert_range("one/created", 0, 100, "content");
    assert_succeeds(
        fixture.driver->calls->head(fixture.driver, name_of("one/created"), &size, &failure));
    assert_int_equal(size, 7);
}

static void test_driver__second_create_changes_nothing(void **state)
{
    (void)state;
    assert_succeeds(create("one/twice", "first"));
    assert_int_equal(create("one/twice", "second"), WAL_EEXISTS);
    assert_int_equal(create("one/twice", "first"), WAL_EEXISTS);
    assert_range("one/twice", 0, 100, "first");
}

static void test_driver__put_replaces(void **state)
{
    (void)state;
    put_text("one/put", "old and long");
    put_text("one/put", "new");
    assert_range("one/put", 0, 100, "new");
    assert_int_equal(create("one/put", "third"), WAL_EEXISTS);
}

static void test_driver__removed_object_can_be_created_again(void **state)
{
    (void)state;
    remove_text("one/gone");
    assert_succeeds(create("one/gone", "first"));
    remove_text("one/gone");
    remove_text("one/gone");
    assert_absent("one/gone");
    assert_succeeds(create("one/gone", "second"));
    assert_range("one/gone", 0, 100, "second");
}

static void test_driver__ranges_end_with_the_object(void **state)
{
    (void)state;
    put_text("one/range", "0123456789");
    assert_range("one/range", 0, UINT64_MAX, "0123456789");
    assert_range("one/range", 0, 10, "0123456789");
    assert_range("one/range", 3, 4, "3456");
    assert_range("one/range", 9, 1, "9");
    assert_range("one/range", 8, 100, "89");
    assert_range("one/range", 8, UINT64_MAX, "89");
    assert_range("one/range", 10, 1, "");
    assert_range("one/range", 1000, 10, "");
    assert_range("one/range", UINT64_MAX, UINT64_MAX, "");
    assert_range("one/range", 5, 0, "");
}

static void test_driver__empty_object_is_an_object(void **state)
{
    (void)state;
    uint64_t size = 1;

    assert_succeeds(create("one/empty", ""));
    assert_int_equal(create("one/empty", ""), WAL_EEXISTS);
    assert_range("one/empty", 0, 10, "");
    assert_succeeds(
        fixture.driver->calls->head(fixture.driver, name_of("one/empty"), &size, &failure));
    assert_int_equal(size, 0);
}

static void test_driver__object_of_megabytes(void **state)
{
    (void)state;
    enum { SIZE = 5 * 1024 * 1024 + 3 };
    uint8_t *bytes = malloc(SIZE);
    struct wal__buf got;
    uint64_t size = 0;

    assert_non_null(bytes);
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = (uint8_t)(i * 131 + (i >> 9));
    }
    wal__buf_init(&got, &wal__heap_libc);
    assert_succeeds(fixture.driver->calls->put_if_absent(
        fixture.driver, name_of("one/large"), (struct wal_slice){bytes, SIZE}, &failure));
    assert_succeeds(
        fixture.driver->calls->head(fixture.driver, name_of("one/large"), &size, &failure));
    assert_int_equal(size, SIZE);
    assert_succeeds(get_range("one/large", 1, SIZE, &got));
    assert_int_equal(got.size, SIZE - 1);
    assert_memory_equal(got.data, bytes + 1, SIZE - 1);
    wal__buf_deinit(&got);
    free(bytes);
}

static void test_driver__names_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",     "/",        "/a",   "a/",    "a//b", ".",
                                      "..",   "a/..",     "../a", "a/./b", "a b",  "a~b",
                                      "a%2f", "\xc3\xa9", "a\nb", "a?b",   "a\\b", "a*"};
    static const char *const good[] = {"one/A-z_0.9", "one/...", "one/.a", "one/-", "one/_/_/_"};
    char longest[WAL__OBJECT_NAME_MAX + 2];
    struct wal__driver *driver = fixture.driver;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t size = 0;

        assert_int_equal(driver->calls->put_if_absent(driver, bad[i], slice("x"), &failure),
                         WAL_EINVAL);
        assert_int_equal(driver->calls->put(driver, bad[i], slice("x"), &failure), WAL_EINVAL);
        assert_int_equal(driver->calls->head(driver, bad[i], &size, &failure), WAL_EINVAL);
        assert_int_equal(driver->calls->remove(driver, bad[i], &failure), WAL_EINVAL);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_succeeds(create(good[i], good[i]));
        assert_range(good[i], 0, 100, good[i]);
    }
    memset(longest, 'n', sizeof(longest));
    longest[WAL__OBJECT_NAME_MAX + 1] = '\0';
    memcpy(longest, name_of("x/"), strlen(name_of("x/")));
    assert_int_equal(driver->calls->put(driver, longest, slice("x"), &failure), WAL_EINVAL);
    longest[WAL__OBJECT_NAME_MAX] = '\0';
    assert_succeeds(driver->calls->put(driver, longest, slice("x"), &failure));
}

/* ------------------------------------------------------------- list --- */

struct listed {
    char (*names)[WAL__OBJECT_NAME_MAX + 1];
    uint64_t sizes[MANY + 10];
    size_t count;
    size_t stop_at; /* 0: never */
};

static bool each_listed(void *ctx, const char *name, uint64_t size)
{
    struct listed *listed = ctx;

    assert_true(listed->count < MANY + 10);
    (void)snprintf(listed->names[listed->count], sizeof(listed->names[0]), "%s", name);
    listed->sizes[listed->count++] = size;
    return listed->count != listed->stop_at;
}

static void list_names(struct listed *listed, const char *prefix, const char *after)
{
    listed->count = 0;
    assert_succeeds(
        fixture.driver->calls->list(fixture.driver, prefix, after, each_listed, listed, &failure));
}

static void listed_init(struct listed *listed)
{
    memset(listed, 0, sizeof(*listed));
    listed->names = calloc(MANY + 10, sizeof(listed->names[0]));
    assert_non_null(listed->names);
}

/* The names are those of the list "a b c", below the run's name. */
static void assert_listed(struct listed *listed, const char *prefix, const char *after,
                          const char *expected)
{
    char text[2048] = "";
    size_t size = 0;

    list_names(listed, prefix[0] == '=' ? prefix + 1 : name_of(prefix),
               after[0] == '\0' ? "" : name_of(after));
    for (size_t i = 0; i < listed->count; i++) {
        assert_memory_equal(listed->names[i], fixture.run, strlen(fixture.run));
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%s", i == 0 ? "" : " ",
                                 listed->names[i] + strlen(fixture.run) + 1);
    }
    assert_string_equal(text, expected);
}

static void test_driver__list_is_in_byte_order_of_whole_names(void **state)
{
    (void)state;
    static const char *const names[] = {"l/a/b", "l/a-b",   "l/a.b",  "l/a0", "l/A", "l/b",
                                        "l/_",   "l/a/0/1", "l/a/-x", "l/10", "l/9", "m/1"};
    struct listed listed;

    listed_init(&listed);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        put_text(names[i], names[i]);
    }
    assert_listed(&listed, "l/", "", "l/10 l/9 l/A l/_ l/a-b l/a.b l/a/-x l/a/0/1 l/a/b l/a0 l/b");
    for (size_t i = 0; i < listed.count; i++) {
        assert_int_equal(listed.sizes[i], strlen(listed.names[i]) - strlen(fixture.run) - 1);
    }
    assert_listed(&listed, "l/a", "", "l/a-b l/a.b l/a/-x l/a/0/1 l/a/b l/a0");
    assert_listed(&listed, "l/a/", "", "l/a/-x l/a/0/1 l/a/b");
    assert_listed(&listed, "l/a/0", "", "l/a/0/1");
    assert_listed(&listed, "l", "l/b", "");
    assert_listed(&listed, "nothing/", "", "");
    assert_listed(&listed, "l/b/", "", "");
    free(listed.names);
}

static void test_driver__list_begins_after_a_name(void **state)
{
    (void)state;
    struct listed listed;

    listed_init(&listed);
    put_text("n/a", "");
    put_text("n/b/1", "");
    put_text("n/b/2", "");
    put_text("n/c", "");
    assert_listed(&listed, "n/", "n/a", "n/b/1 n/b/2 n/c");
    assert_listed(&listed, "n/", "n/b/1", "n/b/2 n/c");
    assert_listed(&listed, "n/", "n/b/10", "n/b/2 n/c");
    assert_listed(&listed, "n/", "n/b", "n/b/1 n/b/2 n/c");
    assert_listed(&listed, "n/", "n/b0", "n/c");
    assert_listed(&listed, "n/", "n/", "n/a n/b/1 n/b/2 n/c");
    assert_listed(&listed, "n/b/", "a", "n/b/1 n/b/2");
    assert_listed(&listed, "n/", "n/c", "");
    assert_listed(&listed, "n/", "z", "");
    remove_text("n/b/1");
    assert_listed(&listed, "n/", "", "n/a n/b/2 n/c");
    free(listed.names);
}

/* Threads that share the work of creating objects. */
struct maker {
    pthread_t thread;
    unsigned index;
    unsigned failed;
};

static void *make_many(void *ctx)
{
    struct maker *maker = ctx;

    for (unsigned i = maker->index; i < MANY; i += THREADS) {
        char name[256];
        struct wal_error error = {0};

        (void)snprintf(name, sizeof(name), "%s/many/%05u", fixture.run, i);
        if (fixture.driver->calls->put_if_absent(fixture.driver, name, slice("of many"), &error) !=
            WAL_OK) {
            print_error("%s: %s\n", name, error.text);
            maker->failed++;
            break;
        }
    }
    return NULL;
}

static void test_driver__list_of_pages_is_complete(void **state)
{
    (void)state;
    struct maker makers[THREADS] = {0};
    struct listed listed;
    char expected[256];

    listed_init(&listed);
    for (unsigned i = 0; i < THREADS; i++) {
        makers[i].index = i;
        assert_int_equal(pthread_create(&makers[i].thread, NULL, make_many, &makers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(makers[i].thread, NULL), 0);
        assert_int_equal(makers[i].failed, 0);
    }
    list_names(&listed, name_of("many/"), "");
    assert_int_equal(listed.count, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(expected, sizeof(expected), "%s/many/%05u", fixture.run, i);
        assert_string_equal(listed.names[i], expected);
        assert_int_equal(listed.sizes[i], 7);
    }
    list_names(&listed, name_of("many/"), name_of("many/01999"));
    assert_int_equal(listed.count, 500);
    listed.stop_at = 3;
    list_names(&listed, name_of("many/"), name_of("many/00996"));
    assert_int_equal(listed.count, 3);
    assert_string_equal(listed.names[2], name_of("many/00999"));
    free(listed.names);
}

/* ------------------------------------------------------------- race --- */

struct racer {
    pthread_t thread;
    unsigned index;
    bool won[RACE_KEYS];
    unsigned wrong;
};

/* How often threads began a key. */
static atomic_uint begun;

static void *race(void *ctx)
{
    struct racer *racer = ctx;

    for (unsigned key = 0; key < RACE_KEYS; key++) {
        char name[256];
        char text[64];
        struct wal_error error = {0};
        enum wal_status status;

        (void)snprintf(name, sizeof(name), "%s/race/%u/x", fixture.run, key);
        (void)snprintf(text, sizeof(text), "thread %u, key %u", racer->index, key);
        atomic_fetch_add(&begun, 1);
        while (atomic_load(&begun) < (key + 1) * THREADS) {
            (void)sched_yield();
        }
        status = fixture.driver->calls->put_if_absent(fixture.driver, name, slice(text), &error);
        racer->won[key] = status == WAL_OK;
        if (status != WAL_OK && status != WAL_EEXISTS) {
            racer->wrong += 1;
            if (racer->wrong == 1) {
                print_error("%s: %d: %s\n", name, (int)status, error.text);
            }
        }
    }
    return NULL;
}

static void test_driver__one_of_racing_creates_wins(void **state)
{
    (void)state;
    static struct racer racers[THREADS];

    atomic_store(&begun, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){.index = i};
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
        assert_int_equal(racers[i].wrong, 0);
    }
    for (unsigned key = 0; key < RACE_KEYS; key++) {
        unsigned winners = 0;
        char name[64];
        char text[64] = "";

        for (unsigned i = 0; i < THREADS; i++) {
            if (racers[i].won[key]) {
                winners++;
                (void)snprintf(text, sizeof(text), "thread %u, key %u", i, key);
            }
        }
        assert_int_equal(winners, 1);
        (void)snprintf(name, sizeof(name), "race/%u/x", key);
        assert_range(name, 0, 100, text);
    }
}

/* ------------------------------------------------------------ times --- */

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

/* Prints what a put takes; checks nothing. */
static void test_driver__times_of_puts(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static const size_t sizes[] = {1024, 65536, 1048576};
    static char bytes[1048576];
    static int64_t times[COUNT];

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        int count = sizes[s] > 100000 ? COUNT / 5 : COUNT;

        for (int i = 0; i < count; i++) {
            char name[64];
            struct timespec from;
            struct timespec to;

            (void)snprintf(name, sizeof(name), "times/%zu/%d", sizes[s], i);
            (void)clock_gettime(CLOCK_MONOTONIC, &from);
            assert_succeeds(fixture.driver->calls->put_if_absent(
                fixture.driver, name_of(name), (struct wal_slice){bytes, sizes[s]}, &failure));
            (void)clock_gettime(CLOCK_MONOTONIC, &to);
            times[i] = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
        }
        qsort(times, (size_t)count, sizeof(times[0]), compare_times);
        print_message("put_if_absent of %zu bytes: p50 %.1f ms, p99 %.1f ms\n", sizes[s],
                      ms_of(times[count / 2]), ms_of(times[count - 1 - count / 100]));
    }
}

static int open_driver(void **state)
{
    (void)state;
    failure = (struct wal_error){.struct_size = sizeof(failure)};
    (void)snprintf(fixture.run, sizeof(fixture.run), "run-%ld-%ld", (long)time(NULL),
                   (long)getpid());
    if (wal__driver_open(fixture.url, &wal__heap_libc, &fixture.driver, &failure) != WAL_OK) {
        print_error("%s\n", failure.text);
        return -1;
    }
    return 0;
}

static int close_driver(void **state)
{
    (void)state;
    fixture.driver->calls->close(fixture.driver);
    return 0;
}

int driver_cases_run(const char *url)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_driver__created_object_has_its_bytes),
        cmocka_unit_test(test_driver__second_create_changes_nothing),
        cmocka_unit_test(test_driver__put_replaces),
        cmocka_unit_test(test_driver__removed_object_can_be_created_again),
        cmocka_unit_test(test_driver__ranges_end_with_the_object),
        cmocka_unit_test(test_driver__empty_object_is_an_object),
        cmocka_unit_test(test_driver__object_of_megabytes),
        cmocka_unit_test(test_driver__names_that_are_none_are_refused),
        cmocka_unit_test(test_driver__list_is_in_byte_order_of_whole_names),
        cmocka_unit_test(test_driver__list_begins_after_a_name),
        cmocka_unit_test(test_driver__list_of_pages_is_complete),
        cmocka_unit_test(test_driver__one_of_racing_creates_wins),
        cmocka_unit_test(test_driver__times_of_puts),
    };

    fixture.url = url;
    return cmocka_run_group_tests_name("driver", tests, open_driver, close_driver);
}
