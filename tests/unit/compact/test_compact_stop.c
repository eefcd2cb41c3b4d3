/*
 * test_compact_stop.c - stopping a compaction while it reads and writes a
 * segment, by its progress function (agentwal/admin.h).
 */
#include <time.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "tests/lib/kit/parts_kit.h"

enum {
    STOPPED_WITH = 77,
    CONTENT_SIZE = 1024 * 1024
};

struct caller {
    uint32_t calls;
    uint32_t stops_at;
    uint64_t done;
    uint64_t total;
};

static int32_t on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct caller *caller = ctx;

    caller->calls++;
    assert_true(done <= total);
    caller->done = done;
    caller->total = total;
    return caller->calls == caller->stops_at ? STOPPED_WITH : 0;
}

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Compacts at a rate at which it takes minutes, and stops it. */
static void stop_compaction(struct wal_store *store, uint32_t flags)
{
    struct caller caller = {.stops_at = 2};
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options),
        .flags = flags,
        .rate = 16 * 1024,
        .progress = on_progress,
        .ctx = &caller,
    };
    struct wal_error error = KIT_ERROR;
    double begin = seconds_now();

    assert_int_equal(wal_store_compact(store, &options, NULL, &error),
                     WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, STOPPED_WITH);
    assert_int_equal(caller.calls, 2);
    assert_int_equal(caller.done, 0);
    assert_true(seconds_now() - begin < 30);
}

/* The next compaction goes on. */
static void compact(struct wal_store *store)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .rate = UINT64_MAX};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};

    assert_ok(wal_store_compact(store, &options, &result, NULL));
    assert_int_equal(result.refused, 0);
    assert_true(result.rewritten > 0);
}

KIT_TEST(stop__in_a_segment_of_the_log)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    for (uint32_t i = 0; i < 1000; i++) {
        kit_append(session, NULL, NULL);
    }
    kit_append_all(session, "a b");
    stop_compaction(store, 0);
    kit_append(session, "c", NULL);
    compact(store);
    wal_session_close(session);
    kit_close(store);
}

/* Random content is not compressed. */
static void put_content(struct wal_store *store, uint32_t seed)
{
    uint8_t *bytes = malloc(CONTENT_SIZE);
    uint8_t digest[WAL_DIGEST_SIZE];

    assert_non_null(bytes);
    for (size_t i = 0; i < CONTENT_SIZE; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
    assert_ok(wal_blob_put(store, (struct wal_slice){bytes, CONTENT_SIZE},
                           digest, NULL));
    free(bytes);
}

KIT_TEST(stop__in_a_segment_of_the_pack)
{
    struct wal_store *store = kit_store();

    put_content(store, 1);
    put_content(store, 2);
    stop_compaction(store, WAL_STORE_COMPACT_ERASE);
    stop_compaction(store, WAL_STORE_COMPACT_ERASE);
    compact(store);
    kit_close(store);
}
