/*
 * test_remote_shipper.c - tests of shipping in the background: what an append with WAL_CLUSTER has
 * acknowledged is in the remote; a remote that fails, and that another writer takes over.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "agentwal/remote.h"
#include "remote/ship/shipper.h"
#include "tests/lib/remote/memory_driver.h"
#include "tests/lib/test.h"

enum { WRITERS = 16, APPENDS = 10 };

static struct memory_driver memory;

static int set_up(void **state)
{
    memory_driver_init(&memory);
    return kit_set_up(state);
}

static int tear_down(void **state)
{
    memory_driver_deinit(&memory);
    return kit_tear_down(state);
}

static struct wal_remote_writer *open_writer(struct wal_store *store, uint8_t id, uint32_t flags)
{
    struct wal_remote_writer_options options = WAL_INIT(wal_remote_writer_options);
    struct wal_remote_writer *writer = NULL;

    options.writer[0] = id;
    options.flags = flags;
    assert_ok(wal_remote_writer_open(&memory.remote, store, &options, &writer, NULL));
    return writer;
}

static _Atomic int32_t last_report;

static void report(void *ctx, const struct wal_error *error)
{
    (void)ctx;
    atomic_store(&last_report, error->status);
}

static struct wal_remote_shipper *start_shipper(struct wal_remote_writer *writer,
                                                uint32_t parts_per_second)
{
    struct wal_remote_shipper_options options = WAL_INIT(wal_remote_shipper_options);
    struct wal_remote_shipper *shipper = NULL;

    options.parts_per_second = parts_per_second;
    options.report = report;
    assert_ok(wal_remote_shipper_start(writer, &options, &shipper, NULL));
    return shipper;
}

static struct wal_remote_shipper_info info_of(struct wal_remote_shipper *shipper)
{
    struct wal_remote_shipper_info info = WAL_INIT(wal_remote_shipper_info);

    assert_ok(wal_remote_shipper_get_info(shipper, &info, NULL));
    return info;
}

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

static enum wal_status append(struct wal_session *session, struct wal_error *error)
{
    static const struct wal_append_options cluster = {.struct_size = sizeof(cluster),
                                                      .durability = WAL_CLUSTER};
    const struct wal_entry entry = {.struct_size = sizeof(entry),
                                    .type = kit_text(WAL_TYPE_MESSAGE),
                                    .payload = kit_text("{}")};

    return wal_append(session, &entry, 1, &cluster, NULL, error);
}

/* Pulls to a directory, and returns how many entries the session has there. */
static uint64_t count_pulled(const char *path)
{
    struct wal_store *copy;
    struct wal_session *session;
    uint64_t count;

    assert_ok(wal_remote_pull(&memory.remote, path, NULL, NULL, NULL));
    copy = kit_open(path, WAL_OPEN_READ_ONLY);
    session = kit_session(copy, "s");
    count = kit_info(session).entries;
    wal_session_close(session);
    kit_close(copy);
    return count;
}

/* --- appends ------------------------------------------------------------- */

static void *append_main(void *arg)
{
    for (int i = 0; i < APPENDS; i++) {
        if (append(arg, NULL) != WAL_OK) {
            return arg;
        }
    }
    return NULL;
}

TEST_WITH(remote_shipper__acknowledged_entries_are_pulled, set_up, tear_down)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_remote_writer *writer = open_writer(store, 1, 0);
    struct wal_remote_shipper *shipper = start_shipper(writer, 1000);
    pthread_t threads[WRITERS];

    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, append_main, session), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        void *failed = NULL;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    /* While it ships. */
    assert_int_equal(count_pulled("copy"), WRITERS * APPENDS);
    wal_remote_shipper_stop(shipper);
    wal_remote_writer_close(writer);
}

/* As fast as one appends, with the pace of users: a quarter second's parts at once, and then one
 * each 50 ms. */
TEST_WITH(remote_shipper__keeps_its_pace, set_up, tear_down)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_remote_writer *writer = open_writer(store, 1, 0);
    struct wal_remote_shipper *shipper = start_shipper(writer, 0);
    struct timespec begin;
    struct timespec end;
    double seconds;

    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < 25; i++) {
        assert_ok(append(session, NULL));
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    assert_true((double)info_of(shipper).parts <= 6 + 20 * seconds + 1);
    wal_remote_shipper_stop(shipper);
    wal_remote_writer_close(writer);
}

TEST_WITH(remote_pace__burst_and_interval, set_up, tear_down)
{
    const uint64_t ms = 1000000;
    struct wal__pace pace;
    uint64_t now = 1000 * ms;
    uint32_t sent = 0;

    wal__pace_init(&pace, 20);
    while (wal__pace_due_ns(&pace, false) <= now) {
        wal__pace_count(&pace, now);
        sent++;
    }
    assert_int_equal(sent, 6);
    assert_int_equal(wal__pace_due_ns(&pace, false), now + 50 * ms);
    now += 10000 * ms;
    assert_true(wal__pace_due_ns(&pace, false) <= now);
    wal__pace_count(&pace, now);
    /* A small part waits while another one is on the way. */
    assert_true(wal__pace_due_ns(&pace, false) <= now);
    assert_int_equal(wal__pace_due_ns(&pace, true), now + 50 * ms);
}

/* --- failures ------------------------------------------------------------ */

TEST_WITH(remote_shipper__remote_fails_and_comes_back, set_up, tear_down)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_remote_writer *writer = open_writer(store, 1, 0);
    struct wal_remote_shipper *shipper = start_shipper(writer, 1000);
    struct wal_error error = KIT_ERROR;

    assert_ok(append(session, NULL));
    memory_driver_set_faults(&memory, 1000);
    /* Some of the failed ones are stored, and found to be on the next try. */
    while (append(session, &error) == WAL_OK) {
    }
    assert_error(&error, WAL_EREMOTE, "durable here");
    assert_int_equal(atomic_load(&last_report), WAL_EREMOTE);
    memory_driver_set_faults(&memory, 0);
    while (append(session, &error) != WAL_OK) {
        assert_int_equal(error.status, WAL_EREMOTE);
    }
    assert_ok(atomic_load(&last_report));
    assert_ok(info_of(shipper).status);
    assert_int_equal(count_pulled("copy"), kit_info(session).entries);
    wal_remote_shipper_stop(shipper);
    wal_remote_writer_close(writer);
}

TEST_WITH(remote_shipper__ends_when_it_is_fenced, set_up, tear_down)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_remote_writer *writer = open_writer(store, 1, 0);
    struct wal_remote_shipper *shipper = start_shipper(writer, 1000);
    struct wal_remote_pull_options options = WAL_INIT(wal_remote_pull_options);
    enum wal_status status;

    assert_ok(append(session, NULL));
    options.flags = WAL_REMOTE_PULL_TAKE_OVER;
    options.writer[0] = 2;
    assert_ok(wal_remote_pull(&memory.remote, "other", &options, NULL, NULL));
    /* Fenced; or, if the shipper was quick to find out, nothing ships. */
    status = append(session, kit_error());
    assert_true(status == WAL_EFENCED || status == WAL_EREMOTE);
    while (info_of(shipper).has_ended == 0) {
        pause_ms(1);
    }
    assert_int_equal(info_of(shipper).status, WAL_EFENCED);
    assert_fails(append(session, kit_error()), WAL_EREMOTE, "no process ships the store");
    wal_remote_shipper_stop(shipper);
    wal_remote_writer_close(writer);
}

TEST_WITH(remote_shipper__stopped_and_started_again, set_up, tear_down)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_remote_writer *writer = open_writer(store, 1, 0);
    struct wal_remote_shipper *second = NULL;
    struct wal_remote_shipper *shipper = start_shipper(writer, 1000);

    assert_int_equal(wal_remote_shipper_start(writer, NULL, &second, NULL), WAL_ELOCKED);
    assert_ok(append(session, NULL));
    wal_remote_shipper_stop(shipper);
    assert_int_equal(append(session, NULL), WAL_EREMOTE);
    kit_append_as(session, WAL_DURABLE);
    shipper = start_shipper(writer, 1000);
    assert_ok(append(session, NULL));
    assert_int_equal(count_pulled("copy"), 3);
    wal_remote_shipper_stop(shipper);
    wal_remote_writer_close(writer);
}

TEST_WITH(remote_shipper__arguments, set_up, tear_down)
{
    struct wal_store *store = kit_store();
    struct wal_remote_writer *writer = open_writer(store, 1, 0);
    struct wal_remote_shipper_options options = WAL_INIT(wal_remote_shipper_options);
    struct wal_remote_shipper_info info = WAL_INIT(wal_remote_shipper_info);
    struct wal_remote_shipper *shipper = NULL;

    options.parts_per_second = 10001;
    assert_int_equal(wal_remote_shipper_start(writer, &options, &shipper, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_shipper_start(NULL, NULL, &shipper, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_shipper_start(writer, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_shipper_get_info(NULL, &info, NULL), WAL_EINVAL);
    wal_remote_shipper_stop(NULL);
    wal_remote_writer_close(writer);
}
