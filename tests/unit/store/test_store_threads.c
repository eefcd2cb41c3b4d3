/*
 * test_store_threads.c - tests of many threads on one handle: writers of every class on shared
 * sessions, readers, lists and forks at the same time.
 */
#include "tests/lib/kit/store_kit.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "format/bytes/assert.h"

enum { WRITERS = 4, READERS = 2, SESSIONS = 3, COUNT = 300 };

struct shared {
    struct wal_store *store;
    struct wal_session *sessions[SESSIONS];
    _Atomic int writing;
    _Atomic uint64_t durable; /* acknowledged appends of this class */
    _Atomic uint64_t reads;
};

struct worker {
    struct shared *shared;
    int number;
    pthread_t thread;
};

/* The i-th append of a writer: to which session, of which class. */
static int session_of(int number, int i)
{
    return (i / 3 + number) % SESSIONS;
}

static void *write_entries(void *arg)
{
    struct worker *worker = arg;
    struct shared *shared = worker->shared;

    for (int i = 0; i < COUNT; i++) {
        struct wal_append_options options = {.struct_size = sizeof(options),
                                             .durability = (uint32_t)i % 3};
        struct wal_append_result result = {.struct_size = sizeof(result)};
        struct wal_entry entries[2];
        enum wal_status status;
        char ids[2][32];

        for (int k = 0; k < 2; k++) {
            (void)snprintf(ids[k], sizeof(ids[k]), "%d-%d", worker->number, 2 * i + k);
            entries[k] = kit_entry(ids[k], NULL, "{\"a\":\"payload\"}");
        }
        status = wal_append(shared->sessions[session_of(worker->number, i)], entries, 2, &options,
                            &result, NULL);
        WAL__ASSERT(status == WAL_OK);
        WAL__ASSERT(strcmp(result.last_id, ids[1]) == 0);
        if (options.durability != WAL_QUEUED) {
            WAL__ASSERT(result.appended == 2);
        }
        if (options.durability == WAL_DURABLE) {
            atomic_fetch_add(&shared->durable, 1);
        }
    }
    atomic_fetch_sub(&shared->writing, 1);
    return NULL;
}

/* Reads a session: each writer's entries are there in order, in pairs. Returns their number. */
static uint64_t read_session(struct wal_session *session, uint32_t mode)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options), .mode = mode};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(session, &options, &cursor, NULL);
    int last[WRITERS];
    uint64_t count = 0;
    uint64_t left;

    WAL__ASSERT(status == WAL_OK);
    left = wal_entry_cursor_remaining(cursor);
    memset(last, 0xff, sizeof(last));
    while ((status = wal_entry_cursor_next(cursor, &entry, NULL)) == WAL_OK) {
        char id[32] = "";
        char *rest = NULL;
        long writer;
        int number;

        WAL__ASSERT(entry.id.size < sizeof(id) && entry.depth == count);
        memcpy(id, entry.id.data, entry.id.size);
        writer = strtol(id, &rest, 10);
        WAL__ASSERT(writer >= 0 && writer < WRITERS && *rest == '-');
        number = atoi(rest + 1);
        WAL__ASSERT(number > last[writer]);
        WAL__ASSERT(number % 2 == 0 || last[writer] == number - 1);
        last[writer] = number;
        count++;
    }
    WAL__ASSERT(status == WAL_END && count == left && count % 2 == 0);
    wal_entry_cursor_close(cursor);
    return count;
}

static void *read_entries(void *arg)
{
    struct worker *worker = arg;
    struct shared *shared = worker->shared;
    uint64_t before[SESSIONS] = {0};

    while (atomic_load(&shared->writing) > 0) {
        for (int i = 0; i < SESSIONS; i++) {
            struct wal_session *own = NULL;
            struct wal_session_info info = {.struct_size = sizeof(info)};
            char id[16];
            uint64_t count;
            enum wal_status status;

            (void)snprintf(id, sizeof(id), "s%d", i);
            status = wal_session_open(shared->store, kit_text(id), &own, NULL);
            WAL__ASSERT(status == WAL_OK);
            count = read_session(own, i % 2 == 0 ? WAL_ENTRY_CURSOR_BRANCH : WAL_ENTRY_CURSOR_ALL);
            WAL__ASSERT(count >= before[i]);
            before[i] = count;
            status = wal_session_get_info(own, &info, NULL);
            WAL__ASSERT(status == WAL_OK && info.entries >= count);
            wal_session_close(own);
            atomic_fetch_add(&shared->reads, 1);
        }
    }
    return NULL;
}

/* Forks, lists, reads the state, syncs. */
static void *background_thread(void *arg)
{
    struct worker *worker = arg;
    struct shared *shared = worker->shared;
    struct wal_store_info store_info = {.struct_size = sizeof(store_info)};
    struct wal_slice head = {NULL, 0};
    int forks = 0;

    while (atomic_load(&shared->writing) > 0) {
        struct wal_session_info info = {.struct_size = sizeof(info)};
        struct wal_session *fork = NULL;
        struct wal_session_cursor *list = NULL;
        int listed = 0;
        enum wal_status status;

        if (forks < 50) {
            status = wal_session_fork(shared->sessions[forks % SESSIONS], head, NULL, &fork, NULL);
            WAL__ASSERT(status == WAL_OK);
            (void)read_session(fork, WAL_ENTRY_CURSOR_ALL);
            wal_session_close(fork);
            forks++;
        }
        status = wal_session_cursor_open(shared->store, NULL, &list, NULL);
        WAL__ASSERT(status == WAL_OK);
        while (wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
            listed++;
        }
        WAL__ASSERT(listed == SESSIONS + forks);
        wal_session_cursor_close(list);
        status = wal_store_get_info(shared->store, &store_info, NULL);
        WAL__ASSERT(status == WAL_OK && store_info.status == WAL_OK);
        if (forks % 8 == 0) {
            status = wal_sync(shared->store, NULL);
            WAL__ASSERT(status == WAL_OK);
        }
    }
    return NULL;
}

static void start(struct worker *worker, struct shared *shared, int number, void *(*work)(void *))
{
    worker->shared = shared;
    worker->number = number;
    assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
}

static uint64_t expected(int session)
{
    uint64_t count = 0;

    for (int number = 0; number < WRITERS; number++) {
        for (int i = 0; i < COUNT; i++) {
            count += session_of(number, i) == session ? 2 : 0;
        }
    }
    return count;
}

static void run(uint32_t flags)
{
    struct shared shared = {.store = NULL};
    struct worker writers[WRITERS];
    struct worker readers[READERS + 1];
    struct wal_store_info info = {.struct_size = sizeof(info)};
    char id[16];

    shared.store = kit_open("store", WAL_OPEN_CREATE | flags);
    atomic_store(&shared.writing, WRITERS);
    for (int i = 0; i < SESSIONS; i++) {
        (void)snprintf(id, sizeof(id), "s%d", i);
        shared.sessions[i] = kit_create(shared.store, id);
    }
    for (int i = 0; i < WRITERS; i++) {
        start(&writers[i], &shared, i, write_entries);
    }
    for (int i = 0; i < READERS; i++) {
        start(&readers[i], &shared, i, read_entries);
    }
    start(&readers[READERS], &shared, 0, background_thread);
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    }
    for (int i = 0; i <= READERS; i++) {
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
    }
    assert_true(atomic_load(&shared.reads) > 0);
    assert_ok(wal_sync(shared.store, NULL));
    assert_ok(wal_store_get_info(shared.store, &info, NULL));
    assert_true(info.acknowledged >= atomic_load(&shared.durable));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < SESSIONS; i++) {
            assert_int_equal(read_session(shared.sessions[i], WAL_ENTRY_CURSOR_BRANCH),
                             expected(i));
            wal_session_close(shared.sessions[i]);
        }
        kit_close(shared.store);
        shared.store = kit_open("store", flags);
        for (int i = 0; i < SESSIONS; i++) {
            (void)snprintf(id, sizeof(id), "s%d", i);
            shared.sessions[i] = kit_session(shared.store, id);
        }
    }
    for (int i = 0; i < SESSIONS; i++) {
        wal_session_close(shared.sessions[i]);
    }
    kit_close(shared.store);
}

KIT_TEST(threads__write_read_fork_and_list)
{
    run(0);
}

KIT_TEST(threads__the_same_with_pread)
{
    run(WAL_OPEN_PREAD);
}

/* All threads append the same id in each round; one of them wins. */
static void *append_thread(void *arg)
{
    struct worker *worker = arg;

    for (int i = 0; i < COUNT; i++) {
        struct wal_append_options options = {
            .struct_size = sizeof(options), .durability = WAL_WRITTEN, .flags = WAL_APPEND_EXPECT};
        struct wal_append_result result = {.struct_size = sizeof(result)};
        char payload[16];
        char before[16] = "";
        char id[16];
        struct wal_entry entry;
        enum wal_status status;

        (void)snprintf(id, sizeof(id), "e%d", i);
        if (i > 0) {
            (void)snprintf(before, sizeof(before), "e%d", i - 1);
        }
        (void)snprintf(payload, sizeof(payload), "%d", worker->number);
        entry = kit_entry(id, NULL, payload);
        options.expected_tail = kit_text(before);
        status = wal_append(worker->shared->sessions[0], &entry, 1, &options, &result, NULL);
        WAL__ASSERT(status == WAL_OK || status == WAL_ECONFLICT || status == WAL_EEXISTS);
        if (status == WAL_OK) {
            atomic_fetch_add(&worker->shared->durable, 1);
        }
    }
    return NULL;
}

KIT_TEST(threads__race_for_the_same_tail)
{
    struct shared shared = {.store = kit_store()};
    struct worker workers[WRITERS];

    shared.sessions[0] = kit_create(shared.store, "s");
    for (int i = 0; i < WRITERS; i++) {
        start(&workers[i], &shared, i, append_thread);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    }
    assert_int_equal(atomic_load(&shared.durable), COUNT);
    assert_int_equal(kit_info(shared.sessions[0]).entries, COUNT);
}

/* Two handles of a store, as two processes have them: a thread of each reads what the other one
 * writes, and schedules the commit mark after it. */
KIT_TEST(threads__two_handles_of_a_store)
{
    struct shared shared[2] = {{.store = NULL}, {.store = NULL}};
    struct worker writers[2];
    struct worker readers[2];

    for (int k = 0; k < 2; k++) {
        shared[k].store = kit_open("store", WAL_OPEN_CREATE);
        atomic_store(&shared[k].writing, 1);
        for (int i = 0; i < SESSIONS; i++) {
            char id[16];

            (void)snprintf(id, sizeof(id), "s%d", i);
            shared[k].sessions[i] =
                k == 0 ? kit_create(shared[k].store, id) : kit_session(shared[k].store, id);
        }
    }
    for (int k = 0; k < 2; k++) {
        start(&writers[k], &shared[k], k, write_entries);
        start(&readers[k], &shared[k], k, read_entries);
    }
    for (int k = 0; k < 2; k++) {
        assert_int_equal(pthread_join(writers[k].thread, NULL), 0);
        assert_int_equal(pthread_join(readers[k].thread, NULL), 0);
    }
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < SESSIONS; i++) {
            wal_session_close(shared[k].sessions[i]);
        }
        kit_close(shared[k].store);
    }
}

/* The signals that a thread of this process blocks, one bit each. */
static uint64_t blocked_by(const char *thread)
{
    char path[300];
    char line[256];
    uint64_t blocked = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread);
    file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "SigBlk:", 7) == 0) {
            blocked = strtoull(line + 7, NULL, 16);
        }
    }
    (void)fclose(file);
    return blocked;
}

enum {
    THREADS_MAX = 16,
    LOOKS = 600, /* for a thread that begins */
    LOOK_US = 50000
};

/* Lists the threads of this process, with that of a sanitizer. */
static uint32_t list_threads(char ids[THREADS_MAX][16])
{
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *thread;
    uint32_t count = 0;

    assert_non_null(threads);
    while ((thread = readdir(threads)) != NULL) {
        if (thread->d_name[0] != '.') {
            assert_true(count < THREADS_MAX);
            (void)snprintf(ids[count], sizeof(ids[0]), "%.15s", thread->d_name);
            count++;
        }
    }
    (void)closedir(threads);
    return count;
}

/* They take no signal of the program, and SIGBUS does not end it in them. */
KIT_TEST(threads__of_the_library_leave_signals_alone)
{
    const uint64_t usual =
        (uint64_t)1 << (SIGUSR1 - 1) | (uint64_t)1 << (SIGWINCH - 1) | (uint64_t)1 << (SIGTERM - 1);
    const uint64_t bus = (uint64_t)1 << (SIGBUS - 1);
    char before[THREADS_MAX][16];
    char after[THREADS_MAX][16];
    uint32_t before_count = list_threads(before);
    uint32_t after_count;
    uint32_t started = 0;

    (void)kit_store();
    after_count = list_threads(after);
    for (uint32_t i = 0; i < after_count; i++) {
        bool is_new = true;

        for (uint32_t k = 0; k < before_count; k++) {
            is_new = is_new && strcmp(after[i], before[k]) != 0;
        }
        if (is_new) {
            uint64_t blocked = blocked_by(after[i]);

            /* One that has not run yet blocks all. */
            for (int look = 0; look < LOOKS && (blocked & bus) != 0; look++) {
                (void)usleep(LOOK_US);
                blocked = blocked_by(after[i]);
            }
            started++;
            assert_int_equal(blocked & usual, usual);
            assert_int_equal(blocked & bus, 0);
        }
    }
    assert_true(started >= 2);
}
