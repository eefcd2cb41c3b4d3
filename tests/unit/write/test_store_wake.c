/*
 * test_store_wake.c - tests of who is woken, and when (SPEC.md 4.3): each wake has a wait that
 * looks again by itself after a while, so that a lost one costs time only. These tests bound the
 * time. And of what is written when nobody appends (SPEC.md 3.3): soon what makes the end durable,
 * and a while later the commit mark of an end that is durable already.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "engine/base/heap.h"
#include "engine/log/leader.h"
#include "engine/log/locks.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/sanitizers.h"

enum {
    WAITERS = 8,
    SLOW_SYNC_MS = 30, /* waiters sleep: they spin for fast syncs only */
    PROMPT_MS = 500 * (WITH_ADDRESS_SANITIZER || WITH_THREAD_SANITIZER ? 4 : 1)
};

static struct wal__io io;

static _Atomic uint32_t syncs;

static atomic_bool in_sync;

static int64_t now_ms(void)
{
    return (int64_t)(wal__io_posix.monotonic_ns(NULL) / 1000000);
}

static enum wal_status slow_sync(void *ctx, struct wal__file *file, int *sys_errno)
{
    atomic_store(&in_sync, true);
    atomic_fetch_add(&syncs, 1);
    kit_pause_ms(SLOW_SYNC_MS);
    atomic_store(&in_sync, false);
    return wal__io_posix.sync(ctx, file, sys_errno);
}

/* No mark for a minute: nothing but wakes. */
static struct wal_store *open_slow(void)
{
    const struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = WAL_OPEN_CREATE, .idle_mark_ms = 60000};
    struct wal_store *store = NULL;

    io = wal__io_posix;
    io.sync = slow_sync;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
    return kit_keep(store);
}

static void await_sync(void)
{
    while (!atomic_load(&in_sync)) {
        kit_pause_ms(1);
    }
}

/* --- what is staged while another thread leads -------------------------- */

static void *append_durably(void *arg)
{
    const struct wal_slice payload = WAL_STR("{}");

    WAL__ASSERT(wal_append_one(arg, "note", payload, NULL, NULL) == WAL_OK);
    return NULL;
}

KIT_TEST(wake__committer_takes_what_was_staged_meanwhile)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_store *store = open_slow();
    struct wal_session *session = kit_create(store, "s");
    struct wal_ticket *ticket = NULL;
    int64_t since;
    pthread_t thread;

    for (const char *id = "a\0b\0c\0d\0"; *id != '\0'; id += 2) {
        const struct wal_entry entry = kit_entry(id, NULL, "{}");

        assert_int_equal(pthread_create(&thread, NULL, append_durably, session), 0);
        await_sync();
        since = now_ms();
        assert_ok(wal_submit(session, &entry, 1, &options, &ticket, NULL));
        assert_ok(wal_ticket_wait(ticket, 10000, NULL, NULL));
        assert_in_range(now_ms() - since, 0, PROMPT_MS);
        wal_ticket_destroy(ticket);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

/* --- sync waiters ------------------------------------------------------- */

KIT_TEST(wake__all_sync_waiters_are_woken)
{
    struct wal_store *store = open_slow();
    struct wal_session *session = kit_create(store, "s");
    pthread_t threads[WAITERS];

    for (int round = 0; round < 5; round++) {
        int64_t since;

        assert_int_equal(pthread_create(&threads[0], NULL, append_durably, session), 0);
        await_sync();
        since = now_ms();
        for (int i = 1; i < WAITERS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, append_durably, session), 0);
        }
        for (int i = 0; i < WAITERS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        assert_in_range(now_ms() - since, 0, PROMPT_MS);
    }
}

/* --- the append lock ---------------------------------------------------- */

struct waiter {
    struct wal__log *log;
    enum wal_status status;
};

static void *wait_for_append_lock(void *arg)
{
    struct waiter *waiter = arg;

    waiter->status = wal__log_lock_append(waiter->log, NULL);
    if (waiter->status == WAL_OK) {
        wal__log_unlock_append(waiter->log);
    }
    return NULL;
}

/* Makes the test the leader: the thread that releases a retained lock after a while leaves it to
 * the leader. */
static void set_leader(struct wal_store *store, bool leads)
{
    struct wal__committer *committer = &store->core.committer;

    pthread_mutex_lock(&committer->mutex);
    committer->has_leader = leads;
    pthread_cond_broadcast(&committer->state_changed);
    pthread_mutex_unlock(&committer->mutex);
}

/* A leader that may retain the lock releases it for another process. */
KIT_TEST(wake__append_lock_is_not_retained_for_a_waiter)
{
    struct wal_store *first = open_slow();
    struct wal_store *second = kit_open("store", 0);
    struct wal__log *log = &first->core.log;
    struct waiter waiter = {.log = &second->core.log};
    pthread_t thread;

    set_leader(first, true);
    assert_ok(wal__log_lock_append(log, NULL));
    wal__log_retain_append_lock(log);
    assert_true(log->append_lock_retained);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_append_lock, &waiter), 0);
    while (!wal__control_has_waiters(log->control, WAL__LOCK_APPEND, 0)) {
        kit_pause_ms(1);
    }
    assert_ok(wal__log_lock_append(log, NULL));
    wal__log_retain_append_lock(log);
    assert_false(log->append_lock_retained);
    assert_false(log->append_lock_held);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(waiter.status);
    set_leader(first, false);
}

enum {
    NEVER_MS = 600000,
    MARK_MS = 5000, /* until a durable end is marked */
    SOON_MS = 3500, /* before that, with time for a slow machine */
    LATE_MS = 30000
};

static struct wal_store *open_store(uint32_t idle_mark_ms)
{
    const struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = WAL_OPEN_CREATE, .idle_mark_ms = idle_mark_ms};
    struct wal_store *store = NULL;

    assert_ok(wal_open("store", &options, &store, NULL));
    return kit_keep(store);
}

/* Waits until the log grows; returns after how many milliseconds. */
static int64_t await_mark(struct wal_store *store)
{
    uint64_t size = kit_store_info(store).log_bytes;
    int64_t begin = now_ms();

    while (kit_store_info(store).log_bytes == size) {
        assert_in_range(now_ms() - begin, 0, LATE_MS);
        kit_pause_ms(5);
    }
    return now_ms() - begin;
}

/* The newest record becomes durable before a durable end would be marked. */
static void expect_durable_soon(struct wal_store *store)
{
    uint64_t sequence = kit_store_info(store).last_sequence - 1;

    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, SOON_MS, NULL));
}

/* The next append names the durable end: a mark before it would double the bytes and the syncs of a
 * process that appends once a second. */
KIT_TEST(idle__durable_appends_need_no_mark_between_them)
{
    struct wal_store *store = open_store(0);
    struct wal_session *session = kit_create(store, "s");
    struct wal_store_info before;
    struct wal_store_info after;

    for (int i = 0; i < 3; i++) {
        kit_append_as(session, WAL_DURABLE);
        before = kit_store_info(store);
        kit_pause_ms(700);
        after = kit_store_info(store);
        assert_int_equal(after.log_bytes, before.log_bytes);
        assert_int_equal(after.syncs, before.syncs);
    }
}

KIT_TEST(idle__durable_end_is_marked_later)
{
    struct wal_store *store = open_store(0);
    struct wal_session *session = kit_create(store, "s");
    uint64_t size;

    kit_append_as(session, WAL_DURABLE);
    assert_in_range(await_mark(store), MARK_MS / 2, LATE_MS);
    size = kit_store_info(store).log_bytes;
    kit_pause_ms(300);
    assert_int_equal(kit_store_info(store).log_bytes, size);
}

KIT_TEST(idle__option_sets_the_time_of_a_durable_end)
{
    struct wal_store *store = open_store(50);
    struct wal_session *session = kit_create(store, "s");

    kit_append_as(session, WAL_DURABLE);
    assert_in_range(await_mark(store), 0, SOON_MS);
}

/* Also while the committer thread sleeps until a durable end is marked. */
KIT_TEST(idle__written_end_becomes_durable_soon)
{
    struct wal_store *store = open_store(0);
    struct wal_session *session = kit_create(store, "s");

    kit_append_as(session, WAL_WRITTEN);
    expect_durable_soon(store);
    kit_append_as(session, WAL_DURABLE);
    kit_pause_ms(300);
    kit_append_as(session, WAL_WRITTEN);
    expect_durable_soon(store);
}

/* The writer's handle marks nothing; another one, as of another process, has seen a durable end,
 * and then one that is not. */
KIT_TEST(idle__end_that_another_handle_sees_becomes_durable)
{
    struct wal_store *store = open_store(NEVER_MS);
    struct wal_session *session = kit_create(store, "s");
    struct wal_store *other = open_store(0);
    struct wal_session *seen = kit_session(other, "s");

    kit_append_as(session, WAL_DURABLE);
    assert_int_equal(kit_info(seen).entries, 1);
    kit_pause_ms(300);
    kit_append_as(session, WAL_WRITTEN);
    assert_int_equal(kit_info(seen).entries, 2);
    expect_durable_soon(other);
}
