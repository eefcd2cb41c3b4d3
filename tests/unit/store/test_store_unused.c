/*
 * test_store_unused.c - tests of the disk space that a store takes but does not
 * use (SPEC.md 3.5): segments grow with the rate of writing, and the last
 * process that closes a store gives back what is out of proportion.
 */
#include "tests/lib/kit/store_kit.h"

#include <sys/wait.h>

#include "agentwal/blob.h"
#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/session.h"
#include "engine/session/store.h"

enum {
    MIB = 1024 * 1024,
    SMALLEST = 64 * 1024
};

/* The clock of a store, and what it is advanced by for each MiB. */
static struct wal__io io;
static int64_t clock_ms;

static int64_t read_clock(void *ctx)
{
    (void)ctx;
    return clock_ms;
}

static struct wal_store *open_store(void)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE};
    struct wal_store *store = NULL;

    io = wal__io_posix;
    io.now_ms = read_clock;
    assert_ok(
        wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
    return store;
}

/* Appends entries of 64 KiB; the clock advances evenly. */
static void append_mib(struct wal_session *session, unsigned count,
                       int64_t ms_each)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    static char payload[64 * 1024];
    static unsigned number;

    memset(payload, 'x', sizeof(payload));
    for (unsigned i = 0; i < count * 16; i++) {
        char id[32];
        struct wal_entry entry;

        (void)snprintf(id, sizeof(id), "e%u", number++);
        entry = kit_entry(id, NULL, "");
        entry.flags = WAL_ENTRY_LINE;
        entry.payload = (struct wal_slice){payload, sizeof(payload)};
        assert_ok(wal_append(session, &entry, 1, &options, NULL, NULL));
        clock_ms += ms_each / 16;
    }
}

static uint64_t tail_capacity(const struct wal_store *store)
{
    return store->core.log.tail_segment->header.capacity;
}

static struct wal_store_info info_of(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(store, &info, NULL));
    return info;
}

KIT_TEST(store_unused__fast_writer_doubles_segments)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create(store, "s");

    append_mib(session, 48, 100);
    assert_int_equal(tail_capacity(store), 32 * MIB);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(store_unused__slow_writer_keeps_them_small)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create(store, "s");

    append_mib(session, 12, 60000);
    assert_int_equal(tail_capacity(store), MIB);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(store_unused__writer_that_becomes_slow)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create(store, "s");

    append_mib(session, 24, 100);
    assert_true(tail_capacity(store) >= 16 * MIB);
    append_mib(session, 140, 60000);
    assert_true(tail_capacity(store) <= 2 * MIB);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(store_unused__slow_writer_of_a_large_store)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create(store, "s");

    append_mib(session, 140, 100);
    append_mib(session, 150, 60000);
    /* A 64th of 290 MiB, rounded down to a power of two. */
    assert_int_equal(tail_capacity(store), 4 * MIB);
    wal_session_close(session);
    kit_close(store);
}

/* The clock was set back between two segments. */
KIT_TEST(store_unused__clock_that_is_set_back)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create(store, "s");

    clock_ms = INT64_C(1000000000);
    append_mib(session, 3, 60000);
    clock_ms = 5;
    append_mib(session, 6, 0);
    assert_true(tail_capacity(store) > MIB);
    wal_session_close(session);
    kit_close(store);
}

/* Closes a store of 40 MiB whose tail is mostly unused. */
static void write_and_close(void)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create(store, "s");

    append_mib(session, 34, 100);
    assert_int_equal(tail_capacity(store), 32 * MIB);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(store_unused__last_process_gives_it_back)
{
    struct wal_store *store;
    struct wal_session *session;
    struct wal_store_info info;

    write_and_close();
    store = open_store();
    info = info_of(store);
    assert_int_equal(tail_capacity(store), SMALLEST);
    assert_true(info.disk_bytes < info.log_bytes + MIB);
    assert_int_equal(access("store/index/catalogue", F_OK), 0);
    assert_int_equal(info.tail, WAL_TAIL_CLEAN);
    /* What follows goes on after it. */
    session = kit_session(store, "s");
    append_mib(session, 2, 100);
    wal_session_close(session);
    kit_close(store);
    store = kit_open("store", WAL_OPEN_READ_ONLY);
    info = info_of(store);
    assert_int_equal(info.tail, WAL_TAIL_CLEAN);
    assert_true(info.log_bytes > 36 * (uint64_t)MIB);
    kit_close(store);
}

KIT_TEST(store_unused__other_process_keeps_it)
{
    struct wal_store *store = kit_store();
    pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        write_and_close();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    wal_session_close(kit_session(store, "s"));
    assert_int_equal(tail_capacity(store), 32 * MIB);
    kit_close(store);
}

/* A little is not worth another segment. */
KIT_TEST(store_unused__small_rest_stays)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create(store, "s");
    uint64_t id;

    append_mib(session, 2, 60000);
    id = store->core.log.tail_segment->id;
    assert_int_equal(tail_capacity(store), MIB);
    wal_session_close(session);
    kit_close(store);
    store = open_store();
    assert_int_equal(store->core.log.tail_segment->id, id);
    kit_close(store);
}

KIT_TEST(store_unused__content_gives_it_back)
{
    struct wal_store *store = open_store();
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_store_info info;
    char *content = calloc(1, 5 * MIB);
    uint64_t random = kit_seed();

    assert_non_null(content);
    for (size_t i = 0; i + 8 <= 5 * MIB; i += 8) {
        uint64_t word = kit_random(&random);

        memcpy(content + i, &word, sizeof(word));
    }
    assert_ok(wal_blob_put(store, (struct wal_slice){content, 5 * MIB}, digest,
                           NULL));
    info = info_of(store);
    assert_true(info.pack_disk_bytes > info.pack_bytes + 2 * MIB);
    kit_close(store);
    store = open_store();
    info = info_of(store);
    assert_true(info.pack_disk_bytes < info.pack_bytes + MIB);
    kit_close(store);
    free(content);
}
