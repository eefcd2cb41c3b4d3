/*
 * test_compact_others.c - processes that append, queue, read and back up, with maps and with pread,
 * while another process compacts and erases without pause. Nothing is damaged: no call may say so,
 * and none may fail but for a lock.
 *
 * Sessions are appended to while their index is not loaded: each round opens some of them anew, in
 * a store that stays open.
 */
#include "tests/lib/kit/store_kit.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <agentwal/admin.h>

#include "engine/base/heap.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/rng.h"

enum { WRITERS = 3, SESSIONS = 40, COMPACTIONS = 60 };

struct shared {
    _Atomic uint32_t stop;
    _Atomic uint32_t appended;
    _Atomic uint32_t read;
    _Atomic uint32_t failed;
};

static struct shared *shared;

static bool is_ok(enum wal_status status, const char *what, const struct wal_error *error)
{
    if (status == WAL_OK || status == WAL_END) {
        return true;
    }
    if (status != WAL_ELOCKED) {
        (void)fprintf(stderr, "%s: %d %s\n", what, status, error->text);
        atomic_fetch_add(&shared->failed, 1);
    }
    return false;
}

static void read_all(struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(session, NULL, &cursor, &error);

    while (status == WAL_OK) {
        status = wal_entry_cursor_next(cursor, &entry, &error);
    }
    if (is_ok(status, "reading", &error)) {
        atomic_fetch_add(&shared->read, 1);
    }
    wal_entry_cursor_close(cursor);
}

/* One entry: durable, written or queued. */
static void append_one(struct wal_store *store, struct wal_session *session, const char *id,
                       uint32_t durability)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = durability};
    const struct wal_entry entry = kit_entry(id, NULL, "{\"text\":\"x\"}");
    struct wal_error error = KIT_ERROR;
    enum wal_status status = wal_append(session, &entry, 1, &options, NULL, &error);

    if (status == WAL_OK && durability == WAL_QUEUED) {
        status = wal_flush(store, &error);
    }
    if (is_ok(status, "appending", &error)) {
        atomic_fetch_add(&shared->appended, 1);
    }
}

static void write_entries(uint64_t seed, uint32_t writer)
{
    static const uint32_t durabilities[] = {WAL_QUEUED, WAL_QUEUED, WAL_WRITTEN, WAL_DURABLE};
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = writer % 2 == 0 ? WAL_OPEN_PREAD : 0};
    uint64_t random = seed + writer;
    struct wal_store *store = NULL;
    struct wal_error error = KIT_ERROR;

    WAL__ASSERT(wal_open("store", &options, &store, &error) == WAL_OK);
    for (uint32_t number = 0; atomic_load(&shared->stop) == 0; number++) {
        struct wal_session *session = NULL;
        char name[32];
        char id[32];

        (void)snprintf(name, sizeof(name), "s%u", (uint32_t)(rng_below(&random, SESSIONS)));
        (void)snprintf(id, sizeof(id), "w%u.%u", writer, number);
        if (!is_ok(wal_session_open(store, kit_text(name), &session, &error), "opening", &error)) {
            continue;
        }
        append_one(store, session, id, durabilities[rng_below(&random, 4)]);
        if (rng_below(&random, 8) == 0) {
            read_all(session);
        }
        wal_session_close(session);
    }
    (void)is_ok(wal_close(store, &error), "closing", &error);
}

/* Every second time it erases. */
static void compact(void)
{
    const uint32_t count = getenv("AGENTWAL_LONG") != NULL ? 20 * COMPACTIONS : COMPACTIONS;
    struct wal_error error = KIT_ERROR;

    for (uint32_t i = 0; i < count; i++) {
        const struct wal_store_compact_options options = {
            .struct_size = sizeof(options),
            .flags = i % 2 == 0 ? 0 : WAL_STORE_COMPACT_ERASE,
            .rate = UINT64_MAX};
        struct wal_store *store = NULL;
        enum wal_status status = wal_open("store", NULL, &store, &error);

        if (status == WAL_OK) {
            status = wal_store_compact(store, &options, NULL, &error);
        }
        (void)is_ok(status, "compacting", &error);
        (void)wal_close(store, NULL);
    }
}

static void prepare(void)
{
    struct wal_store *store = kit_store();

    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct wal_session *session;
        char name[32];

        (void)snprintf(name, sizeof(name), "s%u", i);
        session = kit_create(store, name);
        kit_append_all(session, "a b c");
        wal_session_close(session);
    }
    kit_close(store);
}

KIT_TEST(others__while_one_compacts_nothing_is_damaged)
{
    const uint64_t seed = rng_seed(1);
    pid_t children[WRITERS];
    struct wal_store *store = NULL;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    prepare();
    for (uint32_t i = 0; i < WRITERS; i++) {
        children[i] = kit_start_process();
        if (children[i] == 0) {
            write_entries(seed, i);
            _exit(0);
        }
    }
    compact();
    atomic_store(&shared->stop, 1);
    for (uint32_t i = 0; i < WRITERS; i++) {
        kit_expect_exit(children[i], 0);
    }
    assert_int_equal(atomic_load(&shared->failed), 0);
    assert_true(atomic_load(&shared->appended) > 0);
    assert_true(atomic_load(&shared->read) > 0);
    store = kit_open("store", WAL_OPEN_STRICT);
    kit_close(store);
    (void)munmap(shared, sizeof(*shared));
}

/* --- a compaction that was killed ----------------------------------------- */

static enum wal_status rename_and_die(void *ctx, const char *from, const char *to, int *sys_errno)
{
    const enum wal_status status = wal__io_posix.rename(ctx, from, to, sys_errno);

    if (strstr(from, ".rewrite") != NULL) {
        (void)kill(getpid(), SIGKILL);
    }
    return status;
}

static void compact_and_die(void)
{
    const struct wal_open_options options = {.struct_size = sizeof(options)};
    const struct wal_store_compact_options compact_options = {
        .struct_size = sizeof(compact_options), .rate = UINT64_MAX};
    struct wal__io io = wal__io_posix;
    struct wal_store *store = NULL;

    io.rename = rename_and_die;
    if (wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL) == WAL_OK) {
        (void)!wal_store_compact(store, &compact_options, NULL, NULL);
    }
}

/* No process says what it replaced: others find out. */
KIT_TEST(others__after_a_killed_compaction_a_copy_is_made)
{
    struct wal_error error = KIT_ERROR;
    struct wal_session *session;
    struct wal_store *store;
    int how = 0;
    pid_t child;

    prepare();
    store = kit_store();
    session = kit_session(store, "s1");
    child = kit_start_process();
    if (child == 0) {
        compact_and_die();
        _exit(1);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_ok(wal_store_backup(store, "copy", NULL, NULL, &error));
    kit_append_all(session, "d");
    assert_ok(wal_store_backup(store, "copy", NULL, NULL, &error));
    wal_session_close(session);
    kit_close(store);
    store = kit_open("copy", WAL_OPEN_STRICT);
    session = kit_session(store, "s1");
    assert_branch(session, "a b c d");
    wal_session_close(session);
    kit_close(store);
}
