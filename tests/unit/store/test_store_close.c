/*
 * test_store_close.c - tests of closing (SPEC.md 4.5): handles of every kind
 * are closed in any order, before and after their store, by several threads at
 * once: the last handle's close, in any thread, frees the store.
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "engine/session/store.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/handle_kit.h"

enum {
    STORES = sizeof(kit_handle_stores) / sizeof(kit_handle_stores[0]),
    LARGE = 300 * 1024 /* bytes of a payload that is a blob */
};

/* Of every test: a heap that counts. */
static struct faulty_heap heap;

static struct wal_store *begin(uint32_t flags, struct wal_session **session)
{
    faulty_heap_init(&heap, &wal__heap_libc);
    return kit_handle_store(flags, &heap.heap, session);
}

/* The kinds that a store with these flags has. */
static uint32_t kinds(uint32_t flags)
{
    return flags == WAL_OPEN_NOOP ? KIT_HANDLE_BLOB : KIT_HANDLE_COUNT;
}

static void expect_busy(struct wal_store *store, unsigned live)
{
    struct wal_error error = KIT_ERROR;
    char text[64];

    (void)snprintf(text, sizeof(text),
                   "closed; %u of its handles %s still open", live,
                   live == 1 ? "is" : "are");
    assert_int_equal(wal_close(store, &error), WAL_EBUSY);
    assert_error(&error, WAL_EBUSY, text);
}

static void expect_closed(const struct kit_handle *handle)
{
    assert_true(kit_handle_returns(handle, WAL_ECLOSED));
}

static void expect_exit(pid_t child)
{
    int how = 0;

    assert_true(child > 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

/* ------------------------------------------------------- live handles --- */

KIT_TEST(close__live_handle_of_each_kind)
{
    for (int i = 0; i < STORES; i++) {
        for (uint32_t kind = 0; kind < kinds(kit_handle_stores[i]); kind++) {
            struct wal_session *session;
            struct wal_store *store = begin(kit_handle_stores[i], &session);
            struct kit_handle handle =
                kit_handle_open(store, session, kind, (uint64_t)i);

            wal_session_close(session);
            expect_busy(store, 1);
            expect_closed(&handle);
            kit_handle_close(&handle);
            assert_int_equal(heap.live, 0);
        }
    }
}

KIT_TEST(close__live_session_with_its_handles)
{
    for (int i = 0; i < STORES; i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        struct kit_handle handles[2] = {{KIT_HANDLE_SESSION, NULL}};
        struct wal_session *session;
        struct wal_store *store = begin(kit_handle_stores[i], &session);

        (void)!wal_entry_get(session, kit_text("a"), &entry, NULL);
        (void)!wal_doc_get(NULL, session, kit_text("d"), 0, &doc, NULL);
        (void)!wal_doc_get(store, NULL, kit_text("d"), 0, &doc, NULL);
        assert_ok(wal_session_claim(session, NULL));
        handles[0].at = session;
        handles[1] = kit_handle_open(store, session, KIT_HANDLE_VIEW, 0);
        expect_busy(store, 2);
        expect_closed(&handles[0]);
        kit_handle_close(&handles[0]);
        expect_closed(&handles[1]);
        kit_handle_close(&handles[1]);
        assert_int_equal(heap.live, 0);
    }
}

/* It keeps no lock. */
KIT_TEST(close__live_handles_of_a_read_only_store)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_READ_ONLY};
    struct kit_handle handles[2];
    struct wal_session *session;
    struct wal_store *store = begin(WAL_OPEN_CREATE, &session);

    wal_session_close(session);
    kit_close(store);
    assert_ok(wal__store_open("store", &options, &heap.heap, &wal__io_posix,
                              &store, NULL));
    session = kit_session(store, "s");
    handles[0] = (struct kit_handle){KIT_HANDLE_SESSION, session};
    handles[1] = kit_handle_open(store, session, KIT_HANDLE_ENTRY_CURSOR, 0);
    expect_busy(store, 2);
    for (int i = 0; i < 2; i++) {
        expect_closed(&handles[i]);
        kit_handle_close(&handles[i]);
    }
    assert_int_equal(heap.live, 0);
}

KIT_TEST(close__no_live_handle)
{
    for (int i = 0; i < STORES; i++) {
        struct wal_session *session;
        struct wal_store *store = begin(kit_handle_stores[i], &session);
        struct wal_error error = KIT_ERROR;

        for (uint32_t kind = 0; kind < kinds(kit_handle_stores[i]); kind++) {
            struct kit_handle handle = kit_handle_open(store, session, kind, 1);

            kit_handle_close(&handle);
        }
        wal_session_close(session);
        assert_ok(wal_close(store, &error));
        assert_string_equal(error.text, "");
        assert_int_equal(heap.live, 0);
    }
}

/* An error of an operation that nobody waited for, and a live handle. */
KIT_TEST(close__failure_has_priority)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_QUEUED,
                                               .flags = WAL_APPEND_EXPECT,
                                               .expected_tail =
                                                   kit_text("other")};
    const struct wal_entry entry = kit_entry("x", NULL, "1");
    struct wal_error error = KIT_ERROR;
    struct kit_handle handle = {KIT_HANDLE_SESSION, NULL};
    struct wal_session *session;
    struct wal_store *store = begin(WAL_OPEN_CREATE, &session);

    assert_ok(wal_append(session, &entry, 1, &options, NULL, NULL));
    assert_int_equal(wal_close(store, &error), WAL_ECONFLICT);
    assert_error(&error, WAL_ECONFLICT, "other");
    handle.at = session;
    expect_closed(&handle);
    kit_handle_close(&handle);
    assert_int_equal(heap.live, 0);
}

KIT_TEST(close__ticket_reports_the_outcome)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .flags = WAL_APPEND_EXPECT,
                                               .expected_tail = kit_text("c")};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;
    struct wal_ticket *tickets[2];
    struct wal_session *session;
    struct wal_store *store = begin(WAL_OPEN_CREATE, &session);

    for (int i = 0; i < 2; i++) {
        const struct wal_entry entry = kit_entry(i == 0 ? "d" : "e", NULL, "1");

        assert_ok(wal_submit(session, &entry, 1, &options, &tickets[i], NULL));
    }
    wal_session_close(session);
    expect_busy(store, 2);
    assert_ok(wal_ticket_wait(tickets[0], 0, &result, NULL));
    assert_string_equal(result.last_id, "d");
    assert_int_equal(wal_ticket_wait(tickets[1], 0, NULL, &error),
                     WAL_ECONFLICT);
    assert_string_equal(error.actual, "d");
    wal_ticket_destroy(tickets[1]);
    wal_ticket_destroy(tickets[0]);
    assert_int_equal(heap.live, 0);
}

/* ----------------------------------------------- released by wal_close --- */

static int count_names(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    (void)closedir(directory);
    return count;
}

/* Appends and claims, which needs every lock. */
static bool can_use(void)
{
    const struct wal_entry entry = kit_entry(NULL, NULL, "1");
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    bool good =
        wal_open("store", NULL, &store, NULL) == WAL_OK &&
        wal_session_open(store, kit_text("s"), &session, NULL) == WAL_OK &&
        wal_session_claim(session, NULL) == WAL_OK &&
        wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK;

    wal_session_close(session);
    return wal_close(store, NULL) == WAL_OK && good;
}

KIT_TEST(close__locks_descriptors_and_threads_are_released)
{
    static const uint32_t flags[] = {WAL_OPEN_CREATE,
                                     WAL_OPEN_CREATE | WAL_OPEN_PREAD};

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        int descriptors = count_names("/proc/self/fd");
        int threads = count_names("/proc/self/task");
        struct wal_session *session;
        struct wal_store *store;
        struct kit_handle handle;
        int32_t fd = -1;
        pid_t child;

        store = begin(flags[i], &session);
        handle = kit_handle_open(store, session, KIT_HANDLE_BLOB, 0);
        assert_ok(
            wal_store_completion_fd(store, WAL_COMPLETION_EVENTFD, &fd, NULL));
        assert_ok(wal_session_claim(session, NULL));
        expect_busy(store, 2);
        assert_int_equal(count_names("/proc/self/fd"), descriptors);
        assert_int_equal(count_names("/proc/self/task"), threads);
        child = fork();
        if (child == 0) {
            _exit(can_use() ? 0 : 1);
        }
        expect_exit(child);
        assert_true(can_use());
        wal_session_close(session);
        kit_handle_close(&handle);
        assert_int_equal(heap.live, 0);
    }
}

/* A close with live handles writes what a close without them does. */
KIT_TEST(close__commits_the_queue_and_writes_the_indexes)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_QUEUED};
    int names[2];

    for (int live = 0; live < 2; live++) {
        struct wal_session *session;
        struct wal_session *again;
        struct wal_store *store;

        store = begin(WAL_OPEN_CREATE, &session);
        for (int i = 0; i < 100; i++) {
            const struct wal_entry entry = kit_entry(NULL, NULL, "1");

            assert_ok(wal_append(session, &entry, 1, &options, NULL, NULL));
        }
        if (live == 0) {
            wal_session_close(session);
            kit_close(store);
        } else {
            expect_busy(store, 1);
        }
        names[live] = count_names("store/index");
        store = kit_open("store", 0);
        again = kit_session(store, "s");
        assert_int_equal(kit_info(again).entries, 103);
        wal_session_close(again);
        kit_close(store);
        if (live != 0) {
            wal_session_close(session);
        }
        assert_int_equal(heap.live, 0);
    }
    assert_int_equal(names[0], names[1]);
    assert_true(names[0] > 2);
}

/* -------------------------------------------------------------- slices --- */

static void append_large(struct wal_session *session)
{
    char *payload = malloc(LARGE);
    struct wal_entry entry = kit_entry("large", NULL, "");

    assert_non_null(payload);
    memset(payload, 'x', LARGE);
    payload[0] = '"';
    payload[LARGE - 1] = '"';
    entry.payload = (struct wal_slice){payload, LARGE};
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    free(payload);
}

KIT_TEST(close__slices_of_live_cursors_remain_valid)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .flags = WAL_ENTRY_CURSOR_PINNED};

    for (int i = 0; kit_handle_stores[i] != WAL_OPEN_NOOP; i++) {
        struct wal_session *session;
        struct wal_store *store = begin(kit_handle_stores[i], &session);
        struct wal_entry entries[4];
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        struct wal_entry_cursor *cursor = NULL;
        struct wal_doc_cursor *docs = NULL;

        append_large(session);
        assert_ok(wal_doc_cursor_open(store, session, NULL, &docs, NULL));
        assert_ok(wal_doc_cursor_next(docs, &doc, NULL));
        assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
        for (int k = 0; k < 4; k++) {
            entries[k] =
                (struct wal_entry){.struct_size = sizeof(struct wal_entry)};
            assert_ok(wal_entry_cursor_next(cursor, &entries[k], NULL));
        }
        expect_busy(store, 3);
        wal_session_close(session);
        assert_true(kit_handle_stores[i] == WAL_OPEN_MEMORY || can_use());
        assert_slice(doc.value, "1");
        assert_slice(entries[0].id, "a");
        assert_slice(entries[1].parent_id, "a");
        assert_slice(entries[2].payload, "{\"id\":\"c\"}");
        assert_int_equal(entries[3].payload.size, LARGE);
        assert_memory_equal((const char *)entries[3].payload.data + LARGE - 3,
                            "xx\"", 3);
        wal_doc_cursor_close(docs);
        assert_slice(entries[2].id, "c");
        wal_entry_cursor_close(cursor);
        assert_int_equal(heap.live, 0);
    }
}

/* ----------------------------------------------------------- any order --- */

enum {
    TREE = 40,
    ROUNDS = 20
};

/* A tree of handles: those of sessions of the tree come later in it. */
struct tree {
    struct wal_store *store; /* null: closed */
    struct kit_handle handles[TREE];
    uint64_t random;
};

static unsigned count_live(const struct tree *tree)
{
    unsigned live = 0;

    for (int i = 0; i < TREE; i++) {
        live += tree->handles[i].at != NULL;
    }
    return live;
}

/* An open session of the tree. */
static struct wal_session *pick_session(struct tree *tree, int count)
{
    int at;

    do {
        at = (int)rng_below(&tree->random, (uint64_t)count);
    } while (tree->handles[at].kind != KIT_HANDLE_SESSION ||
             tree->handles[at].at == NULL);
    return tree->handles[at].at;
}

static void grow(struct tree *tree, uint32_t flags)
{
    struct wal_session *session;

    tree->store = begin(flags, &session);
    tree->handles[0] = (struct kit_handle){KIT_HANDLE_SESSION, session};
    for (int i = 1; i < TREE; i++) {
        uint32_t kind = (uint32_t)rng_below(&tree->random, kinds(flags));
        int other = (int)rng_below(&tree->random, (uint64_t)i);

        kind = rng_below(&tree->random, 3) == 0 ? KIT_HANDLE_SESSION : kind;
        tree->handles[i] = kit_handle_open(tree->store, pick_session(tree, i),
                                           (enum kit_handle_kind)kind,
                                           rng_next(&tree->random));
        if (other > 0 && rng_below(&tree->random, 8) == 0) {
            kit_handle_close(&tree->handles[other]);
        }
    }
}

static void close_store(struct tree *tree)
{
    unsigned live = count_live(tree);

    if (live > 0) {
        expect_busy(tree->store, live);
    } else {
        assert_ok(wal_close(tree->store, NULL));
    }
    tree->store = NULL;
}

/* Closes all, the store at a random place. */
static void close_all(struct tree *tree)
{
    unsigned steps = (unsigned)rng_below(&tree->random, count_live(tree) + 1);

    for (;;) {
        int at = (int)rng_below(&tree->random, TREE);

        if (steps == 0 && tree->store != NULL) {
            close_store(tree);
        }
        if (count_live(tree) == 0) {
            return;
        }
        while (tree->handles[at].at == NULL) {
            at = (at + 1) % TREE;
        }
        if (tree->store == NULL) {
            expect_closed(&tree->handles[at]);
        }
        kit_handle_close(&tree->handles[at]);
        steps -= steps > 0;
    }
}

KIT_TEST(close__any_order)
{
    uint64_t random = kit_seed();

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < STORES; i++) {
            struct tree tree = {.random = rng_next(&random)};

            grow(&tree, kit_handle_stores[i]);
            close_all(&tree);
            assert_null(tree.store);
            assert_int_equal(heap.live, 0);
        }
    }
}

/* ---------------------------------------------------------------- fork --- */

/* One handle of each kind. */
static void open_each(struct wal_store *store, struct wal_session *session,
                      uint32_t flags, struct kit_handle *handles)
{
    memset(handles, 0, KIT_HANDLE_COUNT * sizeof(*handles));
    for (uint32_t kind = 0; kind < kinds(flags); kind++) {
        handles[kind] = kit_handle_open(store, session, kind, 0);
    }
}

static bool each_returns(const struct kit_handle *handles,
                         enum wal_status status)
{
    bool good = true;

    for (int i = 0; i < KIT_HANDLE_COUNT; i++) {
        good = good && (handles[i].at == NULL ||
                        kit_handle_returns(&handles[i], status));
    }
    return good;
}

static void close_each(struct kit_handle *handles)
{
    for (int i = 0; i < KIT_HANDLE_COUNT; i++) {
        if (handles[i].at != NULL) {
            kit_handle_close(&handles[i]);
        }
    }
}

KIT_TEST(close__in_a_child)
{
    for (int i = 0; i < STORES; i++) {
        uint32_t flags = kit_handle_stores[i];
        struct kit_handle handles[KIT_HANDLE_COUNT];
        struct wal_session *session;
        struct wal_store *store = begin(flags, &session);
        pid_t child;

        open_each(store, session, flags, handles);
        assert_ok(wal_session_claim(session, NULL));
        child = fork();
        if (child == 0) {
            bool good = wal_close(store, NULL) == WAL_EFORKED &&
                        each_returns(handles, WAL_EFORKED);

            close_each(handles);
            wal_session_close(session);
            _exit(good && heap.live != 0 ? 0 : 1);
        }
        expect_exit(child);
        close_each(handles);
        kit_append_all(session, "d");
        wal_session_close(session);
        assert_ok(wal_close(store, NULL));
        assert_int_equal(heap.live, 0);
    }
}

KIT_TEST(close__in_a_child_after_the_parent_closed)
{
    for (int i = 0; i < STORES; i++) {
        uint32_t flags = kit_handle_stores[i];
        struct kit_handle handles[KIT_HANDLE_COUNT];
        struct wal_session *session;
        struct wal_store *store = begin(flags, &session);
        pid_t child;

        open_each(store, session, flags, handles);
        wal_session_close(session);
        expect_busy(store, kinds(flags));
        child = fork();
        if (child == 0) {
            bool good = each_returns(handles, WAL_EFORKED);

            close_each(handles);
            _exit(good && heap.live != 0 ? 0 : 1);
        }
        expect_exit(child);
        assert_true(each_returns(handles, WAL_ECLOSED));
        close_each(handles);
        assert_int_equal(heap.live, 0);
    }
}

enum {
    THREADS = 4,
    HANDLES = 24, /* of each thread */
    THREAD_ROUNDS = 8
};

/* A thread and the handles that it closes. */
struct closer {
    struct kit_handle handles[HANDLES];
    pthread_barrier_t *start;
    pthread_t thread;
};

static void *close_handles(void *ctx)
{
    struct closer *closer = ctx;

    (void)pthread_barrier_wait(closer->start);
    for (int i = 0; i < HANDLES; i++) {
        kit_handle_close(&closer->handles[i]);
    }
    return NULL;
}

static void start(struct closer *closers, pthread_barrier_t *barrier)
{
    assert_int_equal(pthread_barrier_init(barrier, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        closers[i].start = barrier;
        assert_int_equal(pthread_create(&closers[i].thread, NULL, close_handles,
                                        &closers[i]),
                         0);
    }
}

static void finish(struct closer *closers, pthread_barrier_t *barrier)
{
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(closers[i].thread, NULL), 0);
    }
    assert_int_equal(pthread_barrier_destroy(barrier), 0);
}

/* Deals the session with its claim, and handles of all kinds on it, to the
 * threads. */
static void distribute_handles(struct wal_store *store,
                               struct wal_session *session, uint32_t flags,
                               struct closer *closers, uint64_t *random)
{
    uint64_t kinds =
        flags == WAL_OPEN_NOOP ? KIT_HANDLE_BLOB : KIT_HANDLE_COUNT;

    for (int i = 0; i < THREADS * HANDLES; i++) {
        closers[i % THREADS].handles[i / THREADS] = kit_handle_open(
            store, session, (enum kit_handle_kind)rng_below(random, kinds),
            rng_next(random));
    }
    assert_ok(wal_session_claim(session, NULL));
    kit_handle_close(&closers[0].handles[0]);
    closers[0].handles[0] = (struct kit_handle){KIT_HANDLE_SESSION, session};
}

/* One round: wal_close before the threads close their handles, or after. */
static void run(uint32_t flags, bool store_first, uint64_t *random)
{
    struct closer closers[THREADS];
    struct wal_session *session;
    struct wal_store *store;
    pthread_barrier_t barrier;

    faulty_heap_init(&heap, &wal__heap_libc);
    store = kit_handle_store(flags, &heap.heap, &session);
    distribute_handles(store, session, flags, closers, random);
    if (store_first) {
        assert_int_equal(wal_close(store, NULL), WAL_EBUSY);
    }
    start(closers, &barrier);
    finish(closers, &barrier);
    if (!store_first) {
        assert_true(heap.live > 0);
        assert_ok(wal_close(store, NULL));
    }
    assert_int_equal(heap.live, 0);
}

KIT_TEST(close_threads__after_the_store)
{
    uint64_t random = kit_seed();

    for (int round = 0; round < THREAD_ROUNDS; round++) {
        run(kit_handle_stores[round % STORES], true, &random);
    }
}

KIT_TEST(close_threads__before_the_store)
{
    uint64_t random = kit_seed();

    for (int round = 0; round < THREAD_ROUNDS; round++) {
        run(kit_handle_stores[round % STORES], false, &random);
    }
}
