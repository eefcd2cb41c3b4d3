/*
 * test_store_idle.c - tests of what is written when nobody appends (SPEC.md
 * 3.3): soon what makes the end durable, and a while later the commit mark of
 * an end that is durable already.
 */
#include <time.h>

#include "tests/lib/kit/store_kit.h"

enum {
    NEVER_MS = 600000,
    MARK_MS = 5000, /* until a durable end is marked */
    SOON_MS = 3500, /* before that, with time for a slow machine */
    LATE_MS = 30000
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct wal_store *open_store(uint32_t idle_mark_ms)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE,
                                             .idle_mark_ms = idle_mark_ms};
    struct wal_store *store = NULL;

    assert_ok(wal_open("store", &options, &store, NULL));
    return store;
}

static struct wal_store_info info_of(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(store, &info, NULL));
    return info;
}

/* Waits until the log grows; returns after how many milliseconds. */
static int64_t await_mark(struct wal_store *store)
{
    uint64_t size = info_of(store).log_bytes;
    int64_t begin = now_ms();

    while (info_of(store).log_bytes == size) {
        assert_in_range(now_ms() - begin, 0, LATE_MS);
        kit_pause_ms(5);
    }
    return now_ms() - begin;
}

/* The newest record becomes durable before a durable end would be marked. */
static void expect_durable_soon(struct wal_store *store)
{
    uint64_t sequence = info_of(store).last_sequence - 1;

    assert_ok(wal_store_wait(store, &sequence, WAL_DURABLE, SOON_MS, NULL));
}

/* The next append names the durable end: a mark before it would double the
 * bytes and the syncs of a process that appends once a second. */
KIT_TEST(idle__durable_appends_need_no_mark_between_them)
{
    struct wal_store *store = open_store(0);
    struct wal_session *session = kit_create(store, "s");
    struct wal_store_info before;
    struct wal_store_info after;

    for (int i = 0; i < 3; i++) {
        kit_append_as(session, WAL_DURABLE);
        before = info_of(store);
        kit_pause_ms(700);
        after = info_of(store);
        assert_int_equal(after.log_bytes, before.log_bytes);
        assert_int_equal(after.syncs, before.syncs);
    }
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(idle__durable_end_is_marked_later)
{
    struct wal_store *store = open_store(0);
    struct wal_session *session = kit_create(store, "s");
    uint64_t size;

    kit_append_as(session, WAL_DURABLE);
    assert_in_range(await_mark(store), MARK_MS / 2, LATE_MS);
    size = info_of(store).log_bytes;
    kit_pause_ms(300);
    assert_int_equal(info_of(store).log_bytes, size);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(idle__option_sets_the_time_of_a_durable_end)
{
    struct wal_store *store = open_store(50);
    struct wal_session *session = kit_create(store, "s");

    kit_append_as(session, WAL_DURABLE);
    assert_in_range(await_mark(store), 0, SOON_MS);
    wal_session_close(session);
    kit_close(store);
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
    wal_session_close(session);
    kit_close(store);
}

/* The writer's handle marks nothing; another one, as of another process, has
 * seen a durable end, and then one that is not. */
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
    wal_session_close(seen);
    wal_session_close(session);
    kit_close(other);
    kit_close(store);
}
