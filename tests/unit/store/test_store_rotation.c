/*
 * test_store_rotation.c - tests of a log of many segments: every entry is there, in order and byte
 * for byte, in the process that wrote it, after reopening, and without the derived files. Segments
 * grow with the rate of writing, and the last process that closes a store gives back the disk space
 * that is out of proportion (SPEC.md 3.5).
 */
#include <dirent.h>
#include <openssl/sha.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/log/control.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "tests/lib/kit/store_kit.h"

enum { SESSIONS = 5, PAYLOAD_MAX = 200 * 1024 };

/* What was appended. */
struct model {
    struct {
        uint32_t seed; /* of the payload */
        uint32_t size;
    } entries[SESSIONS][4000];
    uint32_t counts[SESSIONS];
};

struct bench {
    struct wal_store *store;
    struct wal_session *sessions[SESSIONS];
    struct model *model;
    char *payload;
    uint64_t random;
};

static void open_sessions(struct bench *bench)
{
    for (int i = 0; i < SESSIONS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        bench->sessions[i] = kit_session(bench->store, id);
    }
}

static struct bench begin(void)
{
    struct bench bench = {.store = kit_store(), .random = kit_seed()};

    bench.model = test_memory(sizeof(*bench.model));
    bench.payload = test_memory(PAYLOAD_MAX + 16);
    for (int i = 0; i < SESSIONS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        wal_session_close(kit_create(bench.store, id));
    }
    open_sessions(&bench);
    return bench;
}

static void close_all(struct bench *bench)
{
    for (int i = 0; i < SESSIONS; i++) {
        wal_session_close(bench->sessions[i]);
    }
    kit_close(bench->store);
}

static void again(struct bench *bench, uint32_t flags)
{
    close_all(bench);
    bench->store = kit_open("store", flags);
    open_sessions(bench);
}

/* The payload of that seed: bytes that do not follow from its position. */
static void fill(char *payload, uint32_t seed, uint32_t size)
{
    uint64_t random = seed | 1;

    for (uint32_t at = 0; at < size; at++) {
        if (at % 8 == 0) {
            (void)kit_random(&random);
        }
        payload[at] = (char)(random >> (at % 8 * 8));
    }
}

static void append_some(struct bench *bench, int batches, uint32_t most)
{
    struct wal_append_options options = {.struct_size = sizeof(options), .durability = WAL_WRITTEN};

    for (int i = 0; i < batches; i++) {
        uint32_t session = (uint32_t)(kit_random(&bench->random) % SESSIONS);
        uint32_t number = bench->model->counts[session];
        uint32_t seed = (uint32_t)kit_random(&bench->random);
        uint32_t size = (uint32_t)(kit_random(&bench->random) % most);
        struct wal_entry entry;
        char id[32];

        (void)snprintf(id, sizeof(id), "e%u", number);
        fill(bench->payload, seed, size);
        entry = kit_entry(id, NULL, "");
        entry.flags = WAL_ENTRY_LINE;
        entry.payload = (struct wal_slice){bench->payload, size};
        assert_ok(wal_append(bench->sessions[session], &entry, 1, &options, NULL, NULL));
        bench->model->entries[session][number].seed = seed;
        bench->model->entries[session][number].size = size;
        bench->model->counts[session]++;
    }
}

static void check_session(struct bench *bench, int session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    uint32_t count = bench->model->counts[session];

    assert_int_equal(kit_info(bench->sessions[session]).entries, count);
    assert_ok(wal_entry_cursor_open(bench->sessions[session], NULL, &cursor, NULL));
    assert_int_equal(wal_entry_cursor_remaining(cursor), count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = bench->model->entries[session][i].size;
        char id[32];

        assert_done(wal_entry_cursor_next(cursor, &entry, kit_error()));
        (void)snprintf(id, sizeof(id), "e%u", i);
        assert_slice(entry.id, id);
        assert_int_equal(entry.payload.size, size);
        fill(bench->payload, bench->model->entries[session][i].seed, size);
        if (size > 0) {
            assert_memory_equal(entry.payload.data, bench->payload, size);
        }
    }
    assert_int_equal(wal_entry_cursor_next(cursor, &entry, NULL), WAL_END);
    wal_entry_cursor_close(cursor);
}

static void check(struct bench *bench)
{
    for (int i = 0; i < SESSIONS; i++) {
        check_session(bench, i);
    }
}

static uint64_t segments_of(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(store, &info, NULL));
    assert_ok(info.status);
    assert_int_equal(info.tail, WAL_TAIL_CLEAN);
    return info.segments;
}

static int count_files(const char *path, bool remove_them)
{
    DIR *directory = opendir(path);
    struct dirent *name;
    int count = 0;

    assert_non_null(directory);
    while ((name = readdir(directory)) != NULL) {
        char file[512];

        if (name->d_name[0] == '.') {
            continue;
        }
        count++;
        (void)snprintf(file, sizeof(file), "%s/%s", path, name->d_name);
        if (remove_them) {
            assert_int_equal(unlink(file), 0);
        }
    }
    assert_int_equal(closedir(directory), 0);
    return count;
}

KIT_TEST(rotation__keeps_everything)
{
    struct bench bench = begin();

    for (int round = 0; round < 5; round++) {
        append_some(&bench, 300, 100 * 1024);
        check(&bench);
        again(&bench, round == 3 ? WAL_OPEN_PREAD : 0);
        check(&bench);
    }
    assert_in_range(segments_of(bench.store), 5, 30);
}

KIT_TEST(rotation__small_entries)
{
    struct bench bench = begin();

    append_some(&bench, 10000, 600);
    check(&bench);
    assert_in_range(segments_of(bench.store), 2, 10);
    again(&bench, 0);
    check(&bench);
    append_some(&bench, 4000, 600);
    again(&bench, WAL_OPEN_READ_ONLY);
    check(&bench);
}

KIT_TEST(rotation__without_the_derived_files)
{
    struct bench bench = begin();

    for (int round = 0; round < 4; round++) {
        append_some(&bench, 200, 120 * 1024);
        close_all(&bench);
        assert_true(count_files("store/index", false) > 0);
        (void)count_files("store/index", true);
        assert_int_equal(count_files("store/index", false), 0);
        bench.store = kit_open("store", 0);
        open_sessions(&bench);
        check(&bench);
    }
    assert_in_range(segments_of(bench.store), 4, 30);
}

KIT_TEST(rotation__of_entries_larger_than_a_segment)
{
    struct bench bench = begin();
    const size_t size = 14 * 1024 * 1024;
    char *large = test_memory(size);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;

    fill(large, 7, (uint32_t)size);
    entry = kit_entry("large", NULL, "");
    entry.flags = WAL_ENTRY_LINE;
    entry.payload = (struct wal_slice){large, size};
    wal_session_close(kit_create(bench.store, "l"));
    append_some(&bench, 10, 1000);

    struct wal_session *session = kit_session(bench.store, "l");

    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    append_some(&bench, 10, 1000);
    wal_session_close(session);
    again(&bench, 0);
    check(&bench);
    session = kit_session(bench.store, "l");
    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    assert_int_equal(entry.payload.size, size);
    assert_memory_equal(entry.payload.data, large, size);
    wal_entry_cursor_close(cursor);
}

KIT_TEST(rotation__with_thousands_of_sessions)
{
    enum { COUNT = 4000 };
    struct wal_store *store = kit_store();
    char id[32];

    for (int i = 0; i < COUNT; i++) {
        struct wal_session *session;

        (void)snprintf(id, sizeof(id), "session-%d", i);
        session = kit_create(store, id);
        kit_append_all(session, "a b");
        wal_session_close(session);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i += 37) {
            struct wal_session *session;

            (void)snprintf(id, sizeof(id), "session-%d", i);
            session = kit_session(store, id);
            assert_branch(session, round == 2 ? "a b c" : "a b");
            if (round == 1) {
                kit_append(session, "c", NULL);
            }
            wal_session_close(session);
        }
        kit_close(store);
        if (round == 1) {
            (void)count_files("store/index", true);
        }
        store = kit_open("store", 0);
    }
}

/* A session is idle for many segments, then is read and continued. */
KIT_TEST(rotation__during_a_paused_session)
{
    struct bench bench = begin();
    struct wal_session *sleeper = kit_create_filled(bench.store, "sleeper", "a b");
    struct wal_session *fork;

    append_some(&bench, 400, 60 * 1024);
    kit_append_all(sleeper, "c");
    append_some(&bench, 400, 60 * 1024);
    fork = kit_fork(sleeper, "b", "fork");
    append_some(&bench, 400, 60 * 1024);
    kit_append_all(fork, "d");
    kit_append_all(sleeper, "e");
    wal_session_close(fork);
    wal_session_close(sleeper);
    for (int round = 0; round < 2; round++) {
        sleeper = kit_session(bench.store, "sleeper");
        fork = kit_session(bench.store, "fork");
        assert_branch(sleeper, "a b c e");
        assert_branch(fork, "a b d");
        assert_parent(sleeper, "c", "b");
        wal_session_close(fork);
        wal_session_close(sleeper);
        again(&bench, 0);
    }
    assert_in_range(segments_of(bench.store), 4, 30);
    check(&bench);
}

/* Other processes hold the sync lock, in every round. */
static atomic_bool is_held;

static enum wal_status lock_or_not(void *ctx, struct wal__file *file, uint64_t offset,
                                   enum wal__io_lock mode, int *sys_errno)
{
    bool is_sync_lock = offset < WAL__LOCK_CLAIM &&
                        offset % WAL__LOCK_SYNC_STRIDE == WAL__LOCK_SYNC % WAL__LOCK_SYNC_STRIDE;

    if (is_held && is_sync_lock && mode == WAL__IO_LOCK_EXCLUSIVE) {
        return WAL_ELOCKED;
    }
    return wal__io_posix.lock(ctx, file, offset, mode, sys_errno);
}

static struct wal_store *open_with_held_lock(uint32_t flags)
{
    const struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = flags, .lock_timeout_ms = 20};
    static struct wal__io io;
    struct wal_store *store = NULL;

    io = wal__io_posix;
    io.lock = lock_or_not;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
    return kit_keep(store);
}

static enum wal_status append_sized(struct wal_session *session, const char *id, uint32_t size)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_DURABLE};
    struct wal_entry entry = kit_entry(id, NULL, "");
    char *payload = malloc(size);
    enum wal_status status;

    assert_non_null(payload);
    fill(payload, size, size);
    entry.flags = WAL_ENTRY_LINE;
    entry.payload = (struct wal_slice){payload, size};
    status = wal_append(session, &entry, 1, &options, NULL, NULL);
    free(payload);
    return status;
}

/* A sealed segment whose seal could not be synced is not written again: readers would stop at its
 * seal. */
KIT_TEST(rotation__no_frame_after_a_seal)
{
    struct wal_store *store = open_with_held_lock(WAL_OPEN_CREATE);
    struct wal_session *session = kit_create(store, "s");

    for (const char *id = "a\0b\0c\0d\0"; *id != '\0'; id += 2) {
        assert_ok(append_sized(session, id, 200 * 1024));
    }
    is_held = true;
    assert_int_equal(append_sized(session, "large", 240 * 1024), WAL_ELOCKED);
    is_held = false;
    assert_ok(append_sized(session, "e", 100));
    wal_session_close(session);
    kit_close(store);
    store = kit_store();
    session = kit_session(store, "s");
    assert_branch(session, "a b c d e");
}

static int go[2];
static int done[2];

/* Seals the segment after three more entries, and does not begin the next one. */
static void append_and_seal(void)
{
    struct wal_session *session;
    char byte = 0;

    assert_int_equal(read(go[0], &byte, 1), 1);
    session = kit_session(open_with_held_lock(0), "s");
    for (const char *id = "b\0c\0d\0"; *id != '\0'; id += 2) {
        assert_ok(append_sized(session, id, 200 * 1024));
    }
    is_held = true;
    assert_int_equal(append_sized(session, "large", 240 * 1024), WAL_ELOCKED);
    assert_int_equal(write(done[1], &byte, 1), 1);
    (void)!read(go[0], &byte, 1); /* until the reader has ended */
}

/* A reader that applied a part of the newest segment, knows it as sealed since, and loads the
 * indexes again before the next one begins, has all of it. */
KIT_TEST(rotation__sealed_segment_is_loaded_whole)
{
    const struct wal_store_compact_options dry_run = {.struct_size = sizeof(dry_run),
                                                      .flags = WAL_STORE_COMPACT_DRY_RUN};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session;
    struct wal_store *store;
    char byte = 0;
    pid_t child;

    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(done), 0);
    child = kit_start_process();
    if (child == 0) {
        close(go[1]);
        append_and_seal();
        _exit(0);
    }
    store = kit_store();
    session = kit_create(store, "s");
    assert_ok(append_sized(session, "a", 200 * 1024));
    assert_branch(session, "a");
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(read(done[0], &byte, 1), 1);
    assert_ok(wal__segment_refresh(store->core.log.tail_segment));
    assert_true(store->core.log.tail_segment->sealed);
    store->core.log.needs_reload = true; /* as by a compaction */
    assert_branch(session, "a b c d");
    assert_ok(wal_session_get_info(session, &info, NULL));
    assert_int_equal(info.entries, 4);
    assert_ok(wal_store_compact(store, &dry_run, &result, NULL));
    assert_int_equal(result.segments, 1);
    assert_int_equal(result.refused, 0);
    close(go[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* --- content of another process ------------------------------------------- */

enum { CONTENT_SIZE = 100 * 1024, LARGE_CONTENT = 8 * 1024 * 1024 };

static atomic_bool is_armed;

static struct wal_slice random_content(uint64_t seed, uint64_t size)
{
    uint64_t *words = malloc(size);

    assert_non_null(words);
    for (uint64_t i = 0; i < size / 8; i++) {
        words[i] = kit_random(&seed);
    }
    return (struct wal_slice){(const char *)words, size};
}

static void put(struct wal_store *store, uint64_t seed, uint64_t size)
{
    struct wal_slice content = random_content(seed, size);
    uint8_t digest[WAL_DIGEST_SIZE];

    assert_ok(wal_blob_put(store, content, digest, NULL));
    free((void *)(uintptr_t)content.data);
}

static bool has(struct wal_store *store, uint64_t seed, uint64_t size)
{
    struct wal_slice content = random_content(seed, size);
    struct wal_blob *blob = NULL;
    uint8_t digest[WAL_DIGEST_SIZE];
    enum wal_status status;

    assert_non_null(SHA256((const void *)content.data, content.size, digest));
    status = wal_blob_open(store, digest, &blob, NULL);
    assert_true(status == WAL_OK || status == WAL_ENOTFOUND);
    wal_blob_close(blob);
    free((void *)(uintptr_t)content.data);
    return status == WAL_OK;
}

static void have_other_continue(void)
{
    char byte = 0;

    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(read(done[0], &byte, 1), 1);
}

/* The other process goes on while this one opens the segment of which it knows a part. */
static enum wal_status open_late(void *ctx, const char *path, int flags, struct wal__file **file,
                                 int *sys_errno)
{
    if (strstr(path, "/pack/") != NULL && strstr(path, ".seg") != NULL &&
        atomic_exchange(&is_armed, false)) {
        have_other_continue();
    }
    return wal__io_posix.open(ctx, path, flags, file, sys_errno);
}

/* Begins a segment with content 1; puts content 2 there, and seals it. */
static void put_and_seal(void)
{
    struct wal_store *store;
    char byte = 0;

    close(go[1]);
    assert_int_equal(read(go[0], &byte, 1), 1);
    store = kit_open("store", 0);
    put(store, 10, LARGE_CONTENT);
    put(store, 1, CONTENT_SIZE);
    assert_int_equal(write(done[1], &byte, 1), 1);
    assert_int_equal(read(go[0], &byte, 1), 1);
    put(store, 2, CONTENT_SIZE);
    for (uint64_t i = 0; i < 4; i++) {
        put(store, 20 + i, LARGE_CONTENT);
    }
    assert_int_equal(write(done[1], &byte, 1), 1);
    kit_close(store);
}

KIT_TEST(rotation__content_of_a_segment_sealed_while_it_is_opened)
{
    const struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal__io late = wal__io_posix;
    struct wal_store *store;
    pid_t child;

    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(done), 0);
    child = kit_start_process();
    if (child == 0) {
        put_and_seal();
        _exit(0);
    }
    kit_close(kit_store());
    late.open = open_late;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &late, &store, NULL));
    put(store, 0, CONTENT_SIZE);
    have_other_continue();
    is_armed = true;
    assert_true(has(store, 1, CONTENT_SIZE));
    assert_false(is_armed);
    assert_true(has(store, 2, CONTENT_SIZE));
    assert_true(has(store, 23, LARGE_CONTENT));
    assert_int_equal(waitpid(child, NULL, 0), child);
    kit_close(store);
}

enum { MIB = 1024 * 1024, SMALLEST = 64 * 1024 };

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
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
    return kit_keep(store);
}

/* Appends entries of 64 KiB; the clock advances evenly. */
static void append_mib(struct wal_session *session, unsigned count, int64_t ms_each)
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

KIT_TEST(store_unused__fast_writer_doubles_segments)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create(store, "s");

    append_mib(session, 48, 100);
    assert_int_equal(tail_capacity(store), 32 * MIB);
}

KIT_TEST(store_unused__slow_writer_keeps_them_small)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create(store, "s");

    append_mib(session, 12, 60000);
    assert_int_equal(tail_capacity(store), MIB);
}

KIT_TEST(store_unused__writer_that_becomes_slow)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create(store, "s");

    append_mib(session, 24, 100);
    assert_true(tail_capacity(store) >= 16 * MIB);
    append_mib(session, 140, 60000);
    assert_true(tail_capacity(store) <= 2 * MIB);
}

KIT_TEST(store_unused__slow_writer_of_a_large_store)
{
    struct wal_store *store = open_store();
    struct wal_session *session = kit_create(store, "s");

    append_mib(session, 140, 100);
    append_mib(session, 150, 60000);
    /* A 64th of 290 MiB, rounded down to a power of two. */
    assert_int_equal(tail_capacity(store), 4 * MIB);
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
    info = kit_store_info(store);
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
    info = kit_store_info(store);
    assert_int_equal(info.tail, WAL_TAIL_CLEAN);
    assert_true(info.log_bytes > 36 * (uint64_t)MIB);
}

KIT_TEST(store_unused__other_process_keeps_it)
{
    struct wal_store *store = kit_store();
    pid_t child = kit_start_process();
    int status = 0;

    if (child == 0) {
        write_and_close();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    wal_session_close(kit_session(store, "s"));
    assert_int_equal(tail_capacity(store), 32 * MIB);
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
}

KIT_TEST(store_unused__content_gives_it_back)
{
    struct wal_store *store = open_store();
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_store_info info;
    char *content = test_memory(5 * MIB);
    uint64_t random = kit_seed();

    for (size_t i = 0; i + 8 <= 5 * MIB; i += 8) {
        uint64_t word = kit_random(&random);

        memcpy(content + i, &word, sizeof(word));
    }
    assert_ok(wal_blob_put(store, (struct wal_slice){content, 5 * MIB}, digest, NULL));
    info = kit_store_info(store);
    assert_true(info.pack_disk_bytes > info.pack_bytes + 2 * MIB);
    kit_close(store);
    store = open_store();
    info = kit_store_info(store);
    assert_true(info.pack_disk_bytes < info.pack_bytes + MIB);
}
