/*
 * test_store_written.c - tests of appends that wait for no device: they are synced in the
 * background, and leaders that build groups for others do not keep the append lock from other
 * processes; and of WAL_CLUSTER: appends that wait until the process that ships the store reports
 * them (agentwal/replica.h).
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agentwal/replica.h"
#include "engine/log/commit.h"
#include "engine/log/leader.h"
#include "engine/log/locks.h"
#include "engine/session/session.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/store_kit.h"

enum {
    WRITERS = 4,
    ENTRIES = 6000,
    LARGE = 16 * 1024,
    LARGE_COUNT = 640, /* 10 MiB */
    OTHERS = 50
};

static char large[LARGE + 1];

static struct wal_store *open_unmarked(void)
{
    struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = WAL_OPEN_CREATE, .idle_mark_ms = 600000};
    struct wal_store *store = NULL;

    assert_ok(wal_open("store", &options, &store, kit_error()));
    return kit_keep(store);
}

static enum wal_status append(struct wal_session *session, const char *id, const char *payload,
                              uint32_t durability)
{
    struct wal_append_options options = {.struct_size = sizeof(options), .durability = durability};
    struct wal_entry entry = kit_entry(id, NULL, payload);

    return wal_append(session, &entry, 1, &options, NULL, NULL);
}

static uint64_t count_syncs(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(store, &info, NULL));
    return info.syncs;
}

/* Appends until the tail segment is the fifth, which has room for more than is synced in the
 * background. */
static void fill_segments(struct wal_store *store, struct wal_session *session)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    char id[32];

    memset(large, 'x', LARGE);
    large[0] = '"';
    large[LARGE - 1] = '"';
    for (int i = 0; info.segments < 5; i++) {
        (void)snprintf(id, sizeof(id), "first-%d", i);
        assert_ok(append(session, id, large, WAL_WRITTEN));
        assert_ok(wal_store_get_info(store, &info, NULL));
    }
}

/* Nothing else causes a sync of these segments: no caller asks for one, no commit mark is due, and
 * the tail segment is far from full at the end. */
KIT_TEST(written__is_synced_in_the_background)
{
    const struct timespec moment = {0, 1000000};
    struct wal_store *store = open_unmarked();
    struct wal_session *session = kit_create(store, "s");
    struct wal_store_info info = {.struct_size = sizeof(info)};
    uint64_t syncs = 0;
    char id[32];

    fill_segments(store, session);
    syncs = count_syncs(store);
    for (int i = 0; i < LARGE_COUNT; i++) {
        (void)snprintf(id, sizeof(id), "%d", i);
        assert_ok(append(session, id, large, WAL_WRITTEN));
    }
    for (int i = 0; i < 10000 && count_syncs(store) == syncs; i++) {
        (void)nanosleep(&moment, NULL);
    }
    assert_true(count_syncs(store) > syncs);
    assert_ok(wal_store_get_info(store, &info, NULL));
    assert_int_equal(info.segments, 5);
}

struct writer {
    struct wal_session *session;
    _Atomic int *writing;
    int number;
    pthread_t thread;
};

static void *write_entries(void *arg)
{
    struct writer *writer = arg;
    char id[32];

    for (int i = 0; i < ENTRIES; i++) {
        (void)snprintf(id, sizeof(id), "%d-%d", writer->number, i);
        WAL__ASSERT(append(writer->session, id, "{}", WAL_WRITTEN) == WAL_OK);
    }
    atomic_fetch_sub(writer->writing, 1);
    return NULL;
}

/* Another handle has separate locks, as another process has. */
KIT_TEST(written__append_lock_is_released_for_others)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = open_unmarked();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *seen = kit_session(other, "s");
    struct writer writers[WRITERS];
    _Atomic int writing = WRITERS;
    int count = 0;
    char id[32];

    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){session, &writing, i, 0};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_entries, &writers[i]), 0);
    }
    while (atomic_load(&writing) > 0 || count < OTHERS) {
        (void)snprintf(id, sizeof(id), "other-%d", count);
        assert_ok(append(seen, id, "{}", count % 2 == 0 ? WAL_WRITTEN : WAL_DURABLE));
        count++;
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    }
    assert_int_equal(kit_info(session).entries, WRITERS * ENTRIES + count);
}

/* --- the retained append lock ------------------------------------------- */

/* Whether the process retains the lock. A leader changes that without the mutex. */
static bool is_retained(struct wal_store *store)
{
    struct wal__committer *committer = &store->core.committer;
    bool retained;

    pthread_mutex_lock(&committer->mutex);
    retained = !committer->has_leader && store->core.log.append_lock_retained;
    pthread_mutex_unlock(&committer->mutex);
    return retained;
}

/* Appends in a burst until the process retains the lock afterwards: a thread that is not scheduled
 * for a while ends the burst. */
static void retain_lock(struct wal_store *store, struct wal_session *session, int *count)
{
    bool retained = false;
    char id[32];

    for (int i = 0; i < 100000 && !retained; i++) {
        (void)snprintf(id, sizeof(id), "burst-%d", (*count)++);
        assert_ok(append(session, id, "{}", WAL_WRITTEN));
        retained = is_retained(store);
    }
    assert_true(retained);
}

KIT_TEST(written__idle_process_releases_the_append_lock)
{
    const struct timespec moment = {0, 1000000};
    struct wal_store *store = open_unmarked();
    struct wal_session *session = kit_create(store, "s");
    int count = 0;

    for (int round = 0; round < 20; round++) {
        int waits = 0;

        retain_lock(store, session, &count);
        while (is_retained(store)) {
            assert_in_range(waits++, 0, 5000);
            (void)nanosleep(&moment, NULL);
        }
    }
}

/* No append of another process is refused or waits for long, though the first one is idle with the
 * lock. */
KIT_TEST(written__retained_lock_does_not_refuse_others)
{
    struct wal_store *store = open_unmarked();
    struct wal_store *other = open_unmarked();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *seen = kit_session(other, "s");
    int count = 0;
    char id[32];

    for (int round = 0; round < 20; round++) {
        retain_lock(store, session, &count);
        (void)snprintf(id, sizeof(id), "other-%d", round);
        assert_ok(append(seen, id, "{}", WAL_WRITTEN));
    }
    assert_int_equal(kit_info(session).entries, (uint64_t)count + 20);
}

static void *append_one(void *session)
{
    WAL__ASSERT(append(session, "other", "{}", WAL_WRITTEN) == WAL_OK);
    return NULL;
}

/* Makes this thread the leader, without a retained lock. */
static void lead(struct wal__committer *committer)
{
    bool leads = false;

    while (!leads) {
        pthread_mutex_lock(&committer->mutex);
        leads = !committer->has_leader && !committer->log->append_lock_retained;
        committer->has_leader |= leads;
        pthread_mutex_unlock(&committer->mutex);
        (void)sched_yield();
    }
}

/* Begins a group as the leader of a burst does, until another process waits. */
KIT_TEST(written__lock_is_not_retained_before_a_waiter)
{
    struct wal_store *store = open_unmarked();
    struct wal_store *other = kit_open("store", 0);
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *seen = kit_session(other, "s");
    struct wal__committer *committer = &store->core.committer;
    const struct wal__leader_client *client = &committer->client;
    struct wal__log *log = &store->core.log;
    pthread_t thread;
    bool held;

    lead(committer);
    assert_ok(wal__leader_begin(log, client, true, NULL));
    assert_int_equal(pthread_create(&thread, NULL, append_one, seen), 0);
    while (!wal__control_has_waiters(log->control, WAL__LOCK_APPEND + log->log_id, log->log_id)) {
        (void)sched_yield();
    }
    wal__leader_end_retaining_lock(log, client);
    held = log->append_lock_held;
    wal__committer_resume(committer);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(held);
    assert_int_equal(kit_info(session).entries, 1);
}

KIT_TEST(written__close_releases_the_append_lock)
{
    struct wal_store *other;
    struct wal_session *seen;
    int count = 0;

    for (int round = 0; round < 10; round++) {
        struct wal_store *store = open_unmarked();
        struct wal_session *session = round == 0 ? kit_create(store, "s") : kit_session(store, "s");

        retain_lock(store, session, &count);
        wal_session_close(session);
        kit_close(store);
    }
    other = kit_open("store", 0);
    seen = kit_session(other, "s");
    assert_int_equal(kit_info(seen).entries, count);
}

/* Writers of both classes, so that a caller that waits for no device becomes the leader while
 * others wait for one. */
static void *write_mixed(void *arg)
{
    struct writer *writer = arg;
    char id[32];

    for (int i = 0; i < ENTRIES / 10; i++) {
        bool durable = i % 8 == writer->number;

        (void)snprintf(id, sizeof(id), "%d-%d", writer->number, i);
        WAL__ASSERT(append(writer->session, id, "{}", durable ? WAL_DURABLE : WAL_WRITTEN) ==
                    WAL_OK);
    }
    return NULL;
}

KIT_TEST(written__and_durable_all_complete)
{
    struct writer writers[2 * WRITERS];
    struct wal_session *session = kit_create(kit_store(), "s");

    for (int i = 0; i < 2 * WRITERS; i++) {
        writers[i] = (struct writer){session, NULL, i, 0};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_mixed, &writers[i]), 0);
    }
    for (int i = 0; i < 2 * WRITERS; i++) {
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    }
    assert_int_equal(kit_info(session).entries, 2 * WRITERS * (ENTRIES / 10));
}

static atomic_bool is_synced;

/* Appends until a background sync is due, and runs it. */
static void *sync_in_background(void *session)
{
    struct wal__log *log = &((struct wal_session *)session)->core->log;
    char id[32];

    for (int i = 0; !wal__log_needs_background_sync(log); i++) {
        (void)snprintf(id, sizeof(id), "%d", i);
        assert_ok(append(session, id, large, WAL_WRITTEN));
    }
    wal__log_background_sync(log);
    atomic_store(&is_synced, true);
    return NULL;
}

/* Healing holds sync_mutex and waits for prealloc_mutex, which the background thread holds when it
 * calls this. */
KIT_TEST(written__background_sync_never_waits_for_a_sync)
{
    struct wal_store *store = open_unmarked();
    struct wal_session *session = kit_create(store, "s");
    struct wal__log *log = &store->core.log;
    pthread_t thread;

    fill_segments(store, session);
    pthread_mutex_lock(&log->sync_mutex);
    assert_int_equal(pthread_create(&thread, NULL, sync_in_background, session), 0);
    for (int ms = 0; ms < 20000 && !atomic_load(&is_synced); ms++) {
        kit_pause_ms(1);
    }
    assert_true(atomic_load(&is_synced));
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_mutex_unlock(&log->sync_mutex);
}

static uint64_t last_of(struct wal_store *store)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);

    WAL__ASSERT(wal_store_get_info(store, &info, NULL) == WAL_OK);
    return info.last_sequence;
}

static struct wal_shipper *open_shipper(struct wal_store *store)
{
    struct wal_shipper *shipper = NULL;

    assert_ok(wal_shipper_open(store, &shipper, NULL));
    return shipper;
}

static const struct wal_append_options cluster = {.struct_size = sizeof(cluster),
                                                  .durability = WAL_CLUSTER};

static enum wal_status append_to_cluster(struct wal_session *session, const char *id,
                                         struct wal_append_result *result, struct wal_error *error)
{
    struct wal_entry entry = kit_entry(id, "", "{}");

    return wal_append(session, &entry, 1, &cluster, result, error);
}

/* An append_to_cluster in a separate thread. */
struct appending {
    struct wal_session *session;
    const char *id;
    struct wal_append_result result;
    _Atomic int done;
    enum wal_status status;
    struct wal_error error;
    pthread_t thread;
};

static void *append_main(void *arg)
{
    struct appending *appending = arg;

    appending->result.struct_size = sizeof(appending->result);
    appending->status =
        append_to_cluster(appending->session, appending->id, &appending->result, &appending->error);
    atomic_store(&appending->done, 1);
    return NULL;
}

static void start(struct appending *appending, struct wal_session *session, const char *id)
{
    *appending = (struct appending){.session = session, .id = id, .error = KIT_ERROR};
    assert_int_equal(pthread_create(&appending->thread, NULL, append_main, appending), 0);
}

static enum wal_status finish(struct appending *appending)
{
    assert_int_equal(pthread_join(appending->thread, NULL), 0);
    return appending->status;
}

/* --- nothing ships ------------------------------------------------------- */

KIT_TEST(store_shipping__no_shipper_nothing_is_written)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_ticket *ticket = NULL;
    struct wal_entry entry = kit_entry("b", "", "{}");
    const uint64_t before = last_of(store);
    uint64_t sequence = 0;

    assert_fails(append_to_cluster(session, "a", &result, kit_error()), WAL_EREMOTE,
                 "no process ships the store");
    assert_int_equal(result.sequence, 0);
    assert_string_equal(result.last_id, "");
    assert_int_equal(wal_submit(session, &entry, 1, &cluster, &ticket, kit_error()), WAL_EREMOTE);
    assert_int_equal(last_of(store), before);
    assert_int_equal(wal_store_wait(store, &sequence, WAL_CLUSTER, -1, kit_error()), WAL_EREMOTE);
}

KIT_TEST(store_shipping__noop_store_takes_it)
{
    struct wal_store *store = kit_open(NULL, WAL_OPEN_NOOP);
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = NULL;
    uint64_t sequence = UINT64_MAX;

    assert_ok(append_to_cluster(session, "a", NULL, NULL));
    assert_int_equal(wal_store_wait(store, &sequence, WAL_CLUSTER, 0, NULL), WAL_EBUSY);
    assert_int_equal(wal_shipper_open(store, &shipper, NULL), WAL_EINVAL);
}

/* --- reports ------------------------------------------------------------- */

KIT_TEST(store_shipping__append_waits_for_the_report)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = open_shipper(store);
    struct appending appending;
    uint64_t sequence = last_of(store);

    start(&appending, session, "a");
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 10000, NULL));
    assert_ok(wal_shipper_report(shipper, sequence - 1, WAL_OK, NULL));
    kit_pause_ms(30);
    assert_int_equal(atomic_load(&appending.done), 0);
    assert_ok(wal_shipper_report(shipper, sequence, WAL_OK, NULL));
    assert_ok(finish(&appending));
    assert_int_equal(appending.result.sequence, sequence);
    /* The same again: nothing is appended, and it is stored. */
    assert_ok(append_to_cluster(session, "a", NULL, NULL));
    wal_shipper_close(shipper);
}

KIT_TEST(store_shipping__duplicate_that_is_not_stored_waits)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = open_shipper(store);
    struct wal_entry entry = kit_entry("a", "", "{}");
    struct appending appending;

    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    start(&appending, session, "a");
    kit_pause_ms(30);
    assert_int_equal(atomic_load(&appending.done), 0);
    assert_ok(wal_shipper_report(shipper, last_of(store), WAL_OK, NULL));
    assert_ok(finish(&appending));
    assert_int_equal(appending.result.duplicates, 1);
    wal_shipper_close(shipper);
}

KIT_TEST(store_shipping__failure_ends_the_wait_of_a_durable_entry)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = open_shipper(store);
    struct appending appending;
    uint64_t sequence = last_of(store);

    start(&appending, session, "a");
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 10000, NULL));
    kit_pause_ms(30); /* until it waits: only later failures are its own */
    while (atomic_load(&appending.done) == 0) {
        assert_ok(wal_shipper_report(shipper, 0, WAL_EFENCED, NULL));
        kit_pause_ms(1);
    }
    assert_int_equal(finish(&appending), WAL_EFENCED);
    assert_int_equal(appending.result.sequence, sequence);
    assert_int_equal(appending.result.appended, 1);
    assert_string_equal(appending.result.last_id, "");
    assert_branch(session, "a");
    assert_int_equal(wal_shipper_report(shipper, 0, 1, NULL), WAL_EINVAL);
    wal_shipper_close(shipper);
}

KIT_TEST(store_shipping__shipper_closes_while_one_waits)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = open_shipper(store);
    struct appending appending;
    uint64_t sequence = last_of(store);

    start(&appending, session, "a");
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 10000, NULL));
    wal_shipper_close(shipper);
    assert_int_equal(finish(&appending), WAL_EREMOTE);
    assert_non_null(strstr(appending.error.text, "it is durable here"));
}

KIT_TEST(store_shipping__ticket_waits_after_it_is_durable)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_shipper *shipper = open_shipper(store);
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_entry entry = kit_entry("a", "", "{}");
    struct wal_ticket *ticket = NULL;
    uint64_t sequence = last_of(store);

    assert_ok(wal_submit(session, &entry, 1, &cluster, &ticket, NULL));
    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, 10000, NULL));
    assert_int_equal(wal_ticket_wait(ticket, 50, &result, NULL), WAL_EBUSY);
    assert_ok(wal_shipper_report(shipper, sequence, WAL_OK, NULL));
    assert_ok(wal_ticket_wait(ticket, -1, &result, NULL));
    assert_int_equal(result.sequence, sequence);
    wal_ticket_destroy(ticket);
    wal_shipper_close(shipper);
}

/* --- several ------------------------------------------------------------- */

KIT_TEST(store_shipping__second_shipper_is_refused)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_open("store", 0);
    struct wal_shipper *shipper = open_shipper(store);
    struct wal_shipper *second = NULL;

    assert_int_equal(wal_shipper_open(store, &second, kit_error()), WAL_ELOCKED);
    assert_int_equal(wal_shipper_open(other, &second, kit_error()), WAL_ELOCKED);
    wal_shipper_close(shipper);
    second = open_shipper(other);
    wal_shipper_close(second);
}

/* The next shipper may store elsewhere: what the last one reported is void. */
KIT_TEST(store_shipping__new_shipper_begins_with_nothing)
{
    struct wal_store *store = kit_store();
    struct wal_shipper *shipper = open_shipper(store);
    uint64_t sequence = 0;

    assert_ok(wal_shipper_report(shipper, 1000, WAL_OK, NULL));
    assert_ok(wal_store_wait(store, &sequence, WAL_CLUSTER, 0, NULL));
    assert_int_equal(sequence, 1000);
    wal_shipper_close(shipper);
    shipper = open_shipper(store);
    sequence = 0;
    assert_int_equal(wal_store_wait(store, &sequence, WAL_CLUSTER, 0, NULL), WAL_EBUSY);
    wal_shipper_close(shipper);
}

/* The process is made before this one has threads. */
KIT_TEST(store_shipping__shipping_process_is_killed)
{
    struct wal_store *store;
    struct wal_session *session;
    int ready[2];
    char byte = 0;
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    child = kit_start_process();
    if (child == 0) {
        const struct wal_open_options options = {.struct_size = sizeof(options),
                                                 .flags = WAL_OPEN_CREATE};
        struct wal_store *own = NULL;
        struct wal_shipper *shipper = NULL;

        if (wal_open("store", &options, &own, NULL) != WAL_OK ||
            wal_shipper_open(own, &shipper, NULL) != WAL_OK ||
            wal_shipper_report(shipper, 100, WAL_OK, NULL) != WAL_OK ||
            write(ready[1], "x", 1) != 1) {
            _exit(1);
        }
        pause();
        _exit(2);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    store = kit_open("store", 0);
    session = kit_create(store, "s");
    assert_ok(append_to_cluster(session, "a", NULL, NULL));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(append_to_cluster(session, "b", NULL, NULL), WAL_EREMOTE);
}

KIT_TEST(store_shipping__handles_that_cannot_ship)
{
    struct wal_store *store = kit_store();
    struct wal_store *reader = kit_open("store", WAL_OPEN_READ_ONLY);
    struct wal_store *memory = kit_open("none", WAL_OPEN_MEMORY);
    struct wal_shipper *shipper = NULL;

    assert_int_equal(wal_shipper_open(NULL, &shipper, NULL), WAL_EINVAL);
    assert_int_equal(wal_shipper_open(store, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_shipper_open(reader, &shipper, NULL), WAL_EREADONLY);
    assert_int_equal(wal_shipper_open(memory, &shipper, NULL), WAL_EINVAL);
    assert_int_equal(wal_shipper_report(NULL, 1, WAL_OK, NULL), WAL_EINVAL);
    wal_shipper_close(NULL);
}

KIT_TEST(store_shipping__store_is_closed_first)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = NULL;
    struct wal_shipper *shipper = open_shipper(store);

    assert_int_equal(wal_close(store, NULL), WAL_EBUSY);
    assert_int_equal(wal_shipper_report(shipper, 1, WAL_OK, NULL), WAL_ECLOSED);
    other = kit_open("store", 0);
    wal_shipper_close(shipper);
    shipper = open_shipper(other);
    wal_shipper_close(shipper);
}
