/*
 * test_store_wait.c - tests of wal_store_wait: handles of one process and of several that sleep
 * until the log has grown.
 */
#include "tests/lib/kit/store_kit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "format/bytes/assert.h"

enum { ROUNDS = 100, LONG_MS = 20000 };

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t last_of(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    WAL__ASSERT(wal_store_get_info(store, &info, NULL) == WAL_OK);
    return info.last_sequence;
}

/* ------------------------------------------------------- one process --- */

KIT_TEST(store_wait__existing_records_end_it_at_once)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    uint64_t sequence = 0;

    kit_append_as(session, WAL_DURABLE);
    for (uint32_t class = WAL_DURABLE; class <= WAL_WRITTEN; class ++) {
        sequence = 0;
        assert_ok(wal_store_wait(store, &sequence, class, 0, NULL));
        assert_int_equal(sequence, last_of(store));
    }
}

KIT_TEST(store_wait__timeout_expires)
{
    struct wal_store *store = kit_store();
    uint64_t sequence;
    uint64_t begin;

    wal_session_close(kit_create(store, "s"));
    sequence = last_of(store);
    begin = now_ns();
    assert_int_equal(wal_store_wait(store, &sequence, WAL_DURABLE, 50, kit_error()), WAL_EBUSY);
    assert_true(now_ns() - begin >= 50000000);
    assert_int_equal(sequence, last_of(store));
    assert_int_equal(wal_store_wait(store, &sequence, WAL_WRITTEN, 0, kit_error()), WAL_EBUSY);
}

KIT_TEST(store_wait__invalid_arguments_are_refused)
{
    struct wal_store *store = kit_store();
    uint64_t sequence = 0;

    assert_int_equal(wal_store_wait(NULL, &sequence, 0, 0, NULL), WAL_EINVAL);
    assert_int_equal(wal_store_wait(store, NULL, 0, 0, NULL), WAL_EINVAL);
    assert_int_equal(wal_store_wait(store, &sequence, WAL_QUEUED, 0, NULL), WAL_EINVAL);
}

/* A record that is written and not synced is not durable, but the one before it is. The idle mark,
 * which syncs, is not due. */
KIT_TEST(store_wait__durable_ends_before_written)
{
    const struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = WAL_OPEN_CREATE, .idle_mark_ms = LONG_MS};
    struct wal_store *store = NULL;
    struct wal_session *session;
    uint64_t durable;
    uint64_t sequence = 0;

    assert_ok(wal_open("store", &options, &store, NULL));
    session = kit_create(kit_keep(store), "s");
    kit_append_as(session, WAL_DURABLE);
    durable = last_of(store);
    kit_append_as(session, WAL_WRITTEN);
    kit_append_as(session, WAL_WRITTEN);
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 0, NULL));
    assert_int_equal(sequence, durable);
    assert_int_equal(wal_store_wait(store, &sequence, WAL_DURABLE, 30, NULL), WAL_EBUSY);
    assert_ok(wal_store_wait(store, &sequence, WAL_WRITTEN, 0, NULL));
    assert_int_equal(sequence, durable + 2);
    assert_ok(wal_sync(store, NULL));
    sequence = durable;
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 0, NULL));
    assert_int_equal(sequence, durable + 2);
}

/* A sync of a handle covers what another one has written. */
KIT_TEST(store_wait__for_what_another_handle_has_synced)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_store *other = kit_store();
    uint64_t sequence = 0;

    kit_append_as(session, WAL_WRITTEN);
    assert_ok(wal_sync(other, NULL));
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 0, NULL));
    assert_int_equal(sequence, last_of(store));
}

KIT_TEST(store_wait__memory)
{
    struct wal_store *store = kit_open("none", WAL_OPEN_MEMORY);
    struct wal_session *session = kit_create(store, "s");
    uint64_t sequence = 0;

    kit_append_as(session, WAL_DURABLE);
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 0, NULL));
    assert_int_equal(wal_store_wait(store, &sequence, WAL_DURABLE, 10, NULL), WAL_EBUSY);
}

struct waiter {
    struct wal_store *store;
    uint32_t durability;
    _Atomic uint64_t seen;
    uint64_t last;
};

/* Waits for every record up to the last. */
static void *wait_for_last(void *arg)
{
    struct waiter *waiter = arg;
    uint64_t sequence = 0;

    while (sequence < waiter->last) {
        uint64_t before = sequence;

        WAL__ASSERT(wal_store_wait(waiter->store, &sequence, waiter->durability, LONG_MS, NULL) ==
                    WAL_OK);
        WAL__ASSERT(sequence > before);
        atomic_store(&waiter->seen, sequence);
    }
    return NULL;
}

KIT_TEST(store_wait__threads_on_the_writers_handle)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct waiter waiters[4];
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        waiters[i] = (struct waiter){
            .store = store, .durability = (uint32_t)i % 2, .last = last_of(store) + ROUNDS};
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_last, &waiters[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        kit_append_as(session, (uint32_t)i % 2);
    }
    assert_ok(wal_sync(store, NULL));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(waiters[i].seen, waiters[i].last);
    }
}

static uint64_t used_us(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

KIT_TEST(store_wait__idle_store_uses_no_processor_time)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    uint64_t sequence;
    uint64_t used;

    kit_append_as(session, WAL_DURABLE);
    sequence = last_of(store);
    kit_pause_ms(400); /* the idle mark is written */
    used = used_us();
    assert_int_equal(wal_store_wait(store, &sequence, WAL_DURABLE, 2000, NULL), WAL_EBUSY);
    used = used_us() - used;
    print_message("2 s of waiting: %u us of processor time\n", (unsigned)used);
    assert_in_range(used, 0, 10000);
}

/* --------------------------------------------------------- processes --- */

/* Memory shared by two processes. */
struct talk {
    _Atomic uint64_t acknowledged; /* time of the newest */
    _Atomic uint64_t sequence;     /* its number */
    _Atomic uint64_t seen;         /* the newest that the reader got */
    _Atomic int ready;
    uint64_t delays[ROUNDS];
};

static struct talk *share(void)
{
    struct talk *talk =
        mmap(NULL, sizeof(*talk), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(talk != MAP_FAILED);
    return talk;
}

static void make_store(void)
{
    struct wal_store *store = kit_store();

    wal_session_close(kit_create(store, "s"));
    kit_close(store);
}

static int watch(struct talk *talk, uint32_t flags, int rounds)
{
    const struct wal_open_options options = {.struct_size = sizeof(options), .flags = flags};
    struct wal_store *store = NULL;
    uint64_t sequence;

    WAL__ASSERT(wal_open("store", &options, &store, NULL) == WAL_OK);
    sequence = last_of(store);
    atomic_store(&talk->ready, 1);
    for (int i = 0; i < rounds; i++) {
        WAL__ASSERT(wal_store_wait(store, &sequence, WAL_DURABLE, LONG_MS, NULL) == WAL_OK);
        uint64_t now = now_ns();

        atomic_store(&talk->seen, sequence);
        while (atomic_load(&talk->sequence) < sequence) {
        }
        uint64_t acked = atomic_load(&talk->acknowledged);

        talk->delays[i] = now > acked ? now - acked : 0;
    }
    return wal_close(store, NULL) == WAL_OK ? 0 : 1;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void await_ready(struct talk *talk)
{
    while (atomic_load(&talk->ready) == 0) {
        kit_pause_ms(1);
    }
}

static void measure(uint32_t flags)
{
    struct talk *talk = share();
    struct wal_store *store;
    struct wal_session *session;
    pid_t child;

    make_store();
    child = kit_start_process();
    if (child == 0) {
        kit_pause_ms((flags & WAL_OPEN_READ_ONLY) != 0 ? 100 : 0);
        _exit(watch(talk, flags, ROUNDS));
    }
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    await_ready(talk);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t sequence;

        kit_pause_ms(2);
        kit_append_as(session, WAL_DURABLE);
        atomic_store(&talk->acknowledged, now_ns());
        sequence = last_of(store);
        atomic_store(&talk->sequence, sequence);
        while (atomic_load(&talk->seen) < sequence) {
            kit_pause_ms(1);
        }
    }
    kit_expect_exit(child, 0);
    qsort(talk->delays, ROUNDS, sizeof(talk->delays[0]), compare);
    print_message("seen after %u us, median; %u us at most\n",
                  (unsigned)(talk->delays[ROUNDS / 2] / 1000),
                  (unsigned)(talk->delays[ROUNDS - 1] / 1000));
    assert_true(talk->delays[ROUNDS / 2] < 20000000);
    wal_session_close(session);
    kit_close(store);
    (void)munmap(talk, sizeof(*talk));
}

KIT_TEST(store_wait__another_process_is_woken)
{
    measure(0);
}

KIT_TEST(store_wait__a_reader_is_woken)
{
    measure(WAL_OPEN_READ_ONLY);
}

/* The reader opens when no writer runs; then writers start and are killed, each while the reader
 * sleeps, and it sees each entry. */
KIT_TEST(store_wait__short_lived_and_killed_writers)
{
    enum { WRITERS = 10 };
    struct talk *talk = share();
    pid_t reader;
    uint64_t last = 0;

    make_store();
    reader = kit_start_process();
    if (reader == 0) {
        _exit(watch(talk, WAL_OPEN_READ_ONLY, WRITERS));
    }
    await_ready(talk);
    for (int i = 0; i < WRITERS; i++) {
        pid_t writer = kit_start_process();
        uint64_t begin;

        if (writer == 0) {
            struct wal_store *store = kit_open("store", 0);
            struct wal_session *session = kit_session(store, "s");

            kit_append_as(session, WAL_DURABLE);
            atomic_store(&talk->sequence, last_of(store));
            (void)pause();
        }
        begin = now_ns();
        while (atomic_load(&talk->sequence) == last ||
               atomic_load(&talk->seen) < atomic_load(&talk->sequence)) {
            kit_pause_ms(1);
            assert_true(now_ns() - begin < UINT64_C(10000000000));
        }
        last = atomic_load(&talk->sequence);
        assert_int_equal(kill(writer, SIGKILL), 0);
        assert_int_equal(waitpid(writer, NULL, 0), writer);
    }
    kit_expect_exit(reader, 0);
    (void)munmap(talk, sizeof(*talk));
}

/* A process that was killed while asleep does not count as a waiter. */
KIT_TEST(store_wait__killed_waiters_do_not_block_others)
{
    struct talk *talk = share();
    struct wal_store *store;
    struct wal_session *session;

    make_store();
    for (int i = 0; i < 5; i++) {
        pid_t child;

        atomic_store(&talk->ready, 0);
        child = kit_start_process();
        if (child == 0) {
            _exit(watch(talk, 0, 1));
        }
        await_ready(talk);
        kit_pause_ms(20);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    kit_append_as(session, WAL_DURABLE);
    wal_session_close(session);
    kit_close(store);
    (void)munmap(talk, sizeof(*talk));
}

KIT_TEST(store_wait__child_of_fork_is_refused)
{
    struct wal_store *store = kit_store();
    pid_t child = kit_start_process();

    if (child == 0) {
        uint64_t sequence = 0;

        _exit(wal_store_wait(store, &sequence, WAL_WRITTEN, -1, NULL) == WAL_EFORKED ? 0 : 1);
    }
    kit_expect_exit(child, 0);
}
