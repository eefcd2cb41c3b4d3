/*
 * test_store_process.c - tests of several handles of one store, in one process and in several, and
 * of handles that fork() copied: conditional and atomic calls, and processes that only read see
 * documents, heads, batches, redactions and deletions of others.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/stress/stress.h"

enum { STRESS_SECRETS = 120 };

/* What the processes of a test tell each other. */
struct stress_shared {
    _Atomic int ready;
    _Atomic int working;
    _Atomic bool live; /* a process has the store open to write all the time */
    _Atomic bool inside;
    _Atomic uint64_t began; /* the newest that was begun */
    _Atomic uint64_t made;  /* the newest that was acknowledged */
    _Atomic uint64_t lost;
    _Atomic uint64_t reads;
    _Atomic uint64_t redacted[STRESS_SECRETS]; /* when, by `made`; 0: not yet */
};

struct stress_process {
    struct stress_shared *stress_shared;
    int number;
    uint64_t random;
};

/* A handle, in a child, that now and then is given up for a new one. */
struct stress_handle {
    struct wal_store *store;
    struct wal_session *session;
};

typedef void stress_process_fn(struct stress_process *stress_process);

enum {
    PROCESSES_MAX = 8,
    CHILD_TIMEOUT_S = 120 /* seconds until a child that hangs is ended */
};

static struct stress_shared *map_shared(void)
{
    struct stress_shared *stress_shared = mmap(NULL, sizeof(*stress_shared), PROT_READ | PROT_WRITE,
                                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    WAL__ASSERT(stress_shared != MAP_FAILED);
    return stress_shared;
}

static void wait_for_start(struct stress_shared *stress_shared, int count)
{
    atomic_fetch_add(&stress_shared->ready, 1);
    while (atomic_load(&stress_shared->ready) < count) {
        usleep(100);
    }
}

/* A process that writes works once, one that reads until all writers are done. */
static pid_t start_process(struct stress_process stress_process, stress_process_fn *act, bool reads,
                           int count)
{
    pid_t child = kit_start_process();

    if (child != 0) {
        assert_true(child > 0);
        return child;
    }
    (void)alarm(CHILD_TIMEOUT_S);
    wait_for_start(stress_process.stress_shared, count);
    do {
        act(&stress_process);
        atomic_fetch_add(&stress_process.stress_shared->reads, reads ? 1 : 0);
    } while (reads && atomic_load(&stress_process.stress_shared->working) > 0);
    atomic_fetch_sub(&stress_process.stress_shared->working, reads ? 0 : 1);
    _exit(0);
}

/* Starts all at once; each must end well. Prints its seed. */
static void stress_run_processes(struct stress_shared *stress_shared, stress_process_fn *write,
                                 int writers, stress_process_fn *read, int readers)
{
    pid_t children[PROCESSES_MAX];
    uint64_t random = kit_seed();
    int count = writers + readers;
    bool well = true;

    WAL__ASSERT(count <= PROCESSES_MAX);
    (void)fflush(NULL);
    atomic_store(&stress_shared->ready, 0);
    atomic_store(&stress_shared->working, writers);
    for (int i = 0; i < count; i++) {
        bool reads = i >= writers;
        struct stress_process stress_process = {stress_shared, reads ? i - writers : i,
                                                kit_random(&random) | 1};

        children[i] = start_process(stress_process, reads ? read : write, reads, count);
    }
    for (int i = 0; i < count; i++) {
        int status = 0;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            atomic_store(&stress_shared->working, 0);
            well = false;
        }
    }
    assert_true(well);
    assert_true(readers == 0 || atomic_load(&stress_shared->reads) >= 1);
}

/* A new store with the session "s" and these entries, that no handle is on. */
static struct stress_shared *stress_shared_create(const char *entries)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append_all(session, entries);
    wal_session_close(session);
    kit_close(store);
    return map_shared();
}

static void stress_shared_destroy(struct stress_shared *stress_shared)
{
    assert_int_equal(munmap(stress_shared, sizeof(*stress_shared)), 0);
}

static struct stress_handle stress_handle_open(uint32_t flags)
{
    struct stress_handle stress_handle = {.store = stress_open(flags)};

    stress_handle.session = stress_session(stress_handle.store, "s");
    return stress_handle;
}

static void stress_handle_close(struct stress_handle *stress_handle)
{
    stress_close(stress_handle->store, stress_handle->session);
}

/* A process that only has the store open. */
static pid_t stress_start_holder(struct stress_shared *stress_shared)
{
    pid_t child = kit_start_process();

    if (child == 0) {
        struct stress_handle stress_handle;

        (void)alarm(CHILD_TIMEOUT_S);
        stress_handle = stress_handle_open(0);
        atomic_store(&stress_shared->live, true);
        while (atomic_load(&stress_shared->live)) {
            usleep(1000);
        }
        stress_handle_close(&stress_handle);
        _exit(0);
    }
    assert_true(child > 0);
    while (!atomic_load(&stress_shared->live)) {
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
        usleep(1000);
    }
    return child;
}

static void stress_stop_holder(struct stress_shared *stress_shared, pid_t holder)
{
    atomic_store(&stress_shared->live, false);
    kit_expect_exit(holder, 0);
}

static void stress_handle_maybe_reopen(struct stress_handle *stress_handle, uint64_t *random)
{
    if (kit_random(random) % 8 == 0) {
        stress_handle_close(stress_handle);
        *stress_handle = stress_handle_open(0);
    }
}

enum { TURNS = 200 };

/* Two handles of one store in this process. */
struct pair {
    struct wal_store *stores[2];
    struct wal_session *sessions[2];
};

static struct pair begin(void)
{
    struct pair pair;

    for (int i = 0; i < 2; i++) {
        pair.stores[i] = kit_store();
        pair.sessions[i] =
            i == 0 ? kit_create(pair.stores[0], "s") : kit_session(pair.stores[1], "s");
    }
    return pair;
}

static void end(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        wal_session_close(pair->sessions[i]);
        kit_close(pair->stores[i]);
    }
}

KIT_TEST(handles__see_each_others_entries)
{
    struct pair pair = begin();
    char before[16] = "";

    for (int i = 0; i < TURNS; i++) {
        struct wal_session *mine = pair.sessions[i % 2];
        struct wal_session *other = pair.sessions[1 - i % 2];
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        kit_append(mine, id, NULL);
        assert_parent(other, id, before);
        assert_slice(kit_info(other).head, id);
        assert_int_equal(kit_info(other).entries, i + 1);
        (void)snprintf(before, sizeof(before), "%s", id);
    }
    end(&pair);
    pair.stores[0] = kit_open("store", 0);
    pair.sessions[0] = kit_session(pair.stores[0], "s");
    assert_int_equal(kit_info(pair.sessions[0]).entries, TURNS);
}

KIT_TEST(handles__check_tails_and_ids_together)
{
    struct pair pair = begin();
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = WAL_WRITTEN,
                                         .flags = WAL_APPEND_EXPECT,
                                         .expected_tail = kit_text("a")};
    struct wal_error error = KIT_ERROR;
    struct wal_entry entry = kit_entry("c", NULL, "1");
    struct wal_session *session = NULL;
    struct wal_session_options taken = {.struct_size = sizeof(taken), .id = kit_text("t")};

    kit_append_all(pair.sessions[0], "a b");
    assert_int_equal(wal_append(pair.sessions[1], &entry, 1, &options, NULL, &error),
                     WAL_ECONFLICT);
    assert_string_equal(error.actual, "b");
    entry.id = kit_text("a");
    assert_int_equal(kit_try_append(pair.sessions[1], &entry, NULL, NULL), WAL_EEXISTS);
    wal_session_close(kit_create(pair.stores[0], "t"));
    assert_int_equal(wal_session_create(pair.stores[1], &taken, &session, NULL), WAL_EEXISTS);
    wal_session_close(kit_session(pair.stores[1], "t"));
}

KIT_TEST(handles__follow_through_segments)
{
    struct pair pair = begin();
    const size_t size = 256 * 1024;
    char *text = test_memory(size + 1);
    struct wal_store_info info = {.struct_size = sizeof(info)};

    memset(text, ' ', size);
    text[0] = '1';
    text[size] = '\0';
    for (int i = 0; i < 60; i++) {
        char id[16];
        struct wal_entry entry;

        (void)snprintf(id, sizeof(id), "e%d", i);
        entry = kit_entry(id, NULL, text);
        assert_ok(kit_try_append(pair.sessions[(i / 7) % 2], &entry, NULL, NULL));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kit_info(pair.sessions[i]).entries, 60);
        assert_parent(pair.sessions[i], "e59", "e58");
        assert_ok(wal_store_get_info(pair.stores[i], &info, NULL));
        assert_in_range(info.segments, 3, 20);
    }
}

KIT_TEST(handles__closing_one_does_not_affect_the_other)
{
    struct pair pair = begin();

    kit_append_all(pair.sessions[0], "a");
    kit_append_all(pair.sessions[1], "b");
    wal_session_close(pair.sessions[0]);
    kit_close(pair.stores[0]);
    kit_append_all(pair.sessions[1], "c");
    pair.stores[0] = kit_open("store", 0);
    pair.sessions[0] = kit_session(pair.stores[0], "s");
    assert_branch(pair.sessions[0], "a b c");
    kit_append_all(pair.sessions[0], "d");
    assert_branch(pair.sessions[1], "a b c d");
}

/* --------------------------------------------------------- processes --- */

/* A ball between processes: read waits for it, write passes it on. */
static void send_turn(int fd)
{
    WAL__ASSERT(write(fd, "x", 1) == 1);
}

static void receive_turn(int fd)
{
    char ball;

    WAL__ASSERT(read(fd, &ball, 1) == 1);
}

/* Whether an append that expects the process's own last entry as the tail gets WAL_ECONFLICT and
 * the tail that another process appended. */
static bool reports_the_tail(struct wal_session *session, int i)
{
    struct wal_error error = KIT_ERROR;
    const struct wal_entry entry = kit_entry("late", NULL, "{}");
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .flags = WAL_APPEND_EXPECT};
    char own[16] = "";
    char tail[16];

    if (i > 1) {
        (void)snprintf(own, sizeof(own), "e%d", i - 2);
    }
    (void)snprintf(tail, sizeof(tail), "e%d", i - 1);
    options.expected_tail = kit_text(own);
    return wal_append(session, &entry, 1, &options, NULL, &error) == WAL_ECONFLICT &&
           strcmp(error.actual, tail) == 0;
}

/* Takes turns with the other process: sees its entry, appends under it. A failure ends the process
 * with an exit code. */
static int append_in_turns(int catch_fd, int throw_fd, int first, int turns)
{
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    struct wal_error error = KIT_ERROR;

    if (wal_open("store", NULL, &store, &error) != WAL_OK ||
        wal_session_open(store, kit_text("s"), &session, &error) != WAL_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    for (int i = first; i < turns; i += 2) {
        struct wal_append_result result = {.struct_size = sizeof(result)};
        struct wal_append_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_APPEND_EXPECT};
        struct wal_entry entry;
        char before[16] = "";
        char id[16];

        receive_turn(catch_fd);
        (void)snprintf(id, sizeof(id), "e%d", i);
        if (i > 0) {
            (void)snprintf(before, sizeof(before), "e%d", i - 1);
        }
        if (i > 0 && !reports_the_tail(session, i)) {
            return 5;
        }
        options.durability = (uint32_t)i / 2 % 2;
        options.expected_tail = kit_text(before);
        entry = kit_entry(id, NULL, "{}");
        if (wal_append(session, &entry, 1, &options, &result, &error) != WAL_OK) {
            (void)fprintf(stderr, "%s: %s\n", id, error.text);
            return 2;
        }
        if (kit_info(session).entries != (uint64_t)i + 1) {
            return 3;
        }
        send_turn(throw_fd);
    }
    wal_session_close(session);
    return wal_close(store, &error) == WAL_OK ? 0 : 4;
}

KIT_TEST(processes__append_in_turn)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    pid_t children[2];
    int pipes[2][2];

    wal_session_close(kit_create(store, "s"));
    kit_close(store);
    assert_int_equal(pipe(pipes[0]), 0);
    assert_int_equal(pipe(pipes[1]), 0);
    for (int i = 0; i < 2; i++) {
        children[i] = kit_start_process();
        if (children[i] == 0) {
            _exit(append_in_turns(pipes[i][0], pipes[1 - i][1], i, TURNS));
        }
    }
    send_turn(pipes[0][1]);
    kit_expect_exit(children[0], 0);
    kit_expect_exit(children[1], 0);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    for (int i = 0; i < TURNS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
        assert_slice(entry.id, id);
    }
    assert_int_equal(wal_entry_cursor_next(cursor, &entry, NULL), WAL_END);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    kit_close(store);
    for (int i = 0; i < 2; i++) {
        (void)close(pipes[i][0]);
        (void)close(pipes[i][1]);
    }
}

/* Appends to a private session and to one shared by all, without pauses. */
static int append_to_both(int number, int count)
{
    struct wal_open_options options = {.struct_size = sizeof(options), .lock_timeout_ms = 60000};
    struct wal_store *store = NULL;
    struct wal_session *common = NULL;
    struct wal_error error = KIT_ERROR;
    char id[32];

    if (wal_open("store", &options, &store, &error) != WAL_OK ||
        wal_session_open(store, kit_text("s"), &common, &error) != WAL_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    (void)snprintf(id, sizeof(id), "own-%d", number);

    struct wal_session *own = kit_create(store, id);

    for (int i = 0; i < count; i++) {
        struct wal_entry entry;

        (void)snprintf(id, sizeof(id), "p%d-%d", number, i);
        entry = kit_entry(id, NULL, "{\"some\":\"payload\"}");
        if (kit_try_append(i % 2 == 0 ? own : common, &entry, NULL, &error) != WAL_OK) {
            (void)fprintf(stderr, "%s: %s\n", id, error.text);
            return 2;
        }
    }
    wal_session_close(own);
    wal_session_close(common);
    return wal_close(store, &error) == WAL_OK ? 0 : 3;
}

KIT_TEST(processes__append_concurrently)
{
    enum { PROCESSES = 4, COUNT = 1000 };
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    pid_t children[PROCESSES];
    char id[32];

    for (int i = 0; i < PROCESSES; i++) {
        children[i] = kit_start_process();
        if (children[i] == 0) {
            _exit(append_to_both(i, COUNT));
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        kit_expect_exit(children[i], 0);
    }
    for (int round = 0; round < 2; round++) {
        assert_int_equal(kit_info(session).entries, PROCESSES * COUNT / 2);
        for (int i = 0; i < PROCESSES; i++) {
            struct wal_session *own;

            (void)snprintf(id, sizeof(id), "own-%d", i);
            own = kit_session(store, id);
            assert_int_equal(kit_info(own).entries, COUNT / 2);
            (void)snprintf(id, sizeof(id), "p%d-%d", i, COUNT - 2);
            assert_slice(kit_info(own).head, id);
            wal_session_close(own);
        }
        wal_session_close(session);
        kit_close(store);
        store = kit_open("store", 0);
        session = kit_session(store, "s");
    }
}

/* -------------------------------------------------------------- fork --- */

static int use_inherited_handles(struct wal_store *store, struct wal_session *session)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_session_info session_info = {.struct_size = sizeof(session_info)};
    struct wal_entry entry = kit_entry("x", NULL, "1");
    struct wal_error error = KIT_ERROR;
    struct wal_slice none = {NULL, 0};
    struct wal_session *other = NULL;
    struct wal_ticket *ticket = NULL;
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session_cursor *list = NULL;
    const enum wal_status answers[] = {
        wal_store_get_info(store, &info, &error),
        wal_session_create(store, NULL, &other, &error),
        wal_session_open(store, kit_text("s"), &other, &error),
        wal_session_get_info(session, &session_info, &error),
        wal_session_fork(session, none, NULL, &other, &error),
        wal_session_accept_damage(session, &error),
        wal_session_cursor_open(store, NULL, &list, &error),
        wal_append(session, &entry, 1, NULL, NULL, &error),
        wal_submit(session, &entry, 1, NULL, &ticket, &error),
        wal_entry_cursor_open(session, NULL, &cursor, &error),
        wal_sync(store, &error),
        wal_close(store, &error),
    };

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (answers[i] != WAL_EFORKED) {
            (void)fprintf(stderr, "call %zu: %d\n", i, answers[i]);
            return 1;
        }
    }
    return strstr(error.text, "parent") == NULL ? 2 : 0;
}

static int open_separately(void)
{
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    struct wal_entry entry = kit_entry("child", NULL, "1");

    if (wal_open("store", NULL, &store, NULL) != WAL_OK ||
        wal_session_open(store, kit_text("s"), &session, NULL) != WAL_OK ||
        wal_append(session, &entry, 1, NULL, NULL, NULL) != WAL_OK) {
        return 3;
    }
    wal_session_close(session);
    return wal_close(store, NULL) == WAL_OK ? 0 : 4;
}

KIT_TEST(fork__handles_of_the_parent_are_refused)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    pid_t child;

    kit_append(session, "a", NULL);
    child = kit_start_process();
    if (child == 0) {
        int code = use_inherited_handles(store, session);

        _exit(code != 0 ? code : open_separately());
    }
    kit_expect_exit(child, 0);
    kit_append(session, "b", NULL);
    assert_branch(session, "a child b");
    wal_session_close(session);
    kit_close(store);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    assert_branch(session, "a child b");
}

/* A child that survives its parent holds no lock. */
KIT_TEST(fork__surviving_child_holds_no_lock)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    int ball[2];
    pid_t child;

    assert_int_equal(pipe(ball), 0);
    child = kit_start_process();
    if (child == 0) {
        receive_turn(ball[0]);
        _exit(0);
    }
    kit_append(session, "a", NULL);
    wal_session_close(session);
    kit_close(store);
    for (int i = 0; i < 3; i++) {
        char id[16];

        store = kit_open("store", 0);
        session = kit_session(store, "s");
        (void)snprintf(id, sizeof(id), "b%d", i);
        kit_append(session, id, NULL);
        wal_session_close(session);
        kit_close(store);
    }
    send_turn(ball[1]);
    kit_expect_exit(child, 0);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    assert_branch(session, "a b0 b1 b2");
    (void)close(ball[0]);
    (void)close(ball[1]);
}

/* Appends until it is killed, with a child that only waits for the end of a pipe. */
static void append_and_fork(int waits_fd, int count_fd, int round)
{
    struct wal_store *store = kit_open("store", 0);
    struct wal_session *session = kit_session(store, "s");
    pid_t child = kit_start_process();

    WAL__ASSERT(child >= 0);
    if (child == 0) {
        char end;

        (void)close(count_fd);
        (void)!read(waits_fd, &end, 1);
        _exit(0);
    }
    for (int i = 0;; i++) {
        struct wal_entry entry;
        char id[32];

        (void)snprintf(id, sizeof(id), "%d-%d", round, i);
        entry = kit_entry(id, NULL, "{}");
        WAL__ASSERT(wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK);
        WAL__ASSERT(write(count_fd, &i, sizeof(i)) == sizeof(i));
    }
}

static void kill_process_with_child(int round, uint64_t *random)
{
    struct wal_entry entry;
    struct wal_store *store;
    struct wal_session *session;
    int waits[2];
    int counts[2];
    int status;
    int last = -1;
    char id[32];
    pid_t child;

    assert_int_equal(pipe(waits), 0);
    assert_int_equal(pipe(counts), 0);
    child = kit_start_process();
    if (child == 0) {
        (void)close(waits[1]);
        (void)close(counts[0]);
        append_and_fork(waits[0], counts[1], round);
    }
    (void)close(counts[1]);
    assert_int_equal(read(counts[0], &last, sizeof(last)), sizeof(last));
    usleep((useconds_t)(kit_random(random) % 5000));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    while (read(counts[0], &last, sizeof(last)) == sizeof(last)) {
    }
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    (void)snprintf(id, sizeof(id), "after-%d", round);
    entry = kit_entry(id, NULL, "{}");
    assert_done(wal_append(session, &entry, 1, NULL, NULL, kit_error()));
    (void)snprintf(id, sizeof(id), "%d-%d", round, last);
    entry = kit_entry(id, NULL, "{}");
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    (void)snprintf(id, sizeof(id), "after-%d", round);
    assert_slice(kit_info(session).head, id); /* the other one was known */
    wal_session_close(session);
    kit_close(store);
    (void)close(waits[0]);
    (void)close(waits[1]);
    (void)close(counts[0]);
}

/* A killed process holds no lock either, though a child of it survives. */
KIT_TEST(fork__child_of_a_killed_process_holds_no_lock)
{
    struct wal_store *store = kit_store();
    uint64_t random = kit_seed();

    wal_session_close(kit_create(store, "s"));
    kit_close(store);
    for (int round = 0; round < 20; round++) {
        kill_process_with_child(round, &random);
    }
}

enum { WRITERS = 3, READERS = 2, ROUNDS = 40, LIVES = 40, PAIRS = 150 };

/* ---------------------------------------------------------- counters --- */

static void increment_counters(struct stress_process *stress_process)
{
    struct stress_handle stress_handle = stress_handle_open(0);
    uint64_t lost = 0;

    for (int i = 0; i < ROUNDS; i++) {
        stress_increment_metadata(stress_handle.session);
        lost += stress_increment_doc(stress_handle.store, stress_handle.session, "n",
                                     stress_process->number);
        lost += stress_increment_doc(stress_handle.store, NULL, "n", stress_process->number);
        stress_handle_maybe_reopen(&stress_handle, &stress_process->random);
    }
    atomic_fetch_add(&stress_process->stress_shared->lost, lost);
    stress_handle_close(&stress_handle);
}

/* Values that were seen once never decrease. */
static void watch(struct stress_process *stress_process)
{
    struct stress_handle stress_handle =
        stress_handle_open(stress_process->number == 0 ? WAL_OPEN_READ_ONLY : 0);
    uint64_t seen[3] = {0, 0, 0};

    for (int i = 0; i < 20; i++) {
        uint64_t now[3] = {stress_read_metadata(stress_handle.session),
                           stress_read_doc(stress_handle.store, stress_handle.session, "n", NULL),
                           stress_read_doc(stress_handle.store, NULL, "n", NULL)};

        for (int k = 0; k < 3; k++) {
            WAL__ASSERT(now[k] >= seen[k]);
            seen[k] = now[k];
        }
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__every_change_counts_once)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct stress_handle stress_handle;

    stress_run_processes(stress_shared, increment_counters, WRITERS, watch, READERS);
    print_message("%" PRIu64 " puts came too late\n", atomic_load(&stress_shared->lost));
    stress_handle = stress_handle_open(0);
    assert_int_equal(stress_read_metadata(stress_handle.session), WRITERS * ROUNDS);
    assert_int_equal(stress_read_doc(stress_handle.store, stress_handle.session, "n", NULL),
                     WRITERS * ROUNDS);
    assert_int_equal(stress_read_doc(stress_handle.store, NULL, "n", NULL), WRITERS * ROUNDS);
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}

/* -------------------------------------------------------------- lock --- */

/* The lock guards a document that is put without an expected version. */
static void hold_lock(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle = stress_handle_open(0);

    for (int i = 0; i < ROUNDS / 2; i++) {
        while (!stress_try_lock(stress_handle.session, stress_process->number)) {
            atomic_fetch_add(&stress_shared->lost, 1);
            usleep((useconds_t)(kit_random(&stress_process->random) % 500));
        }
        WAL__ASSERT(!atomic_exchange(&stress_shared->inside, true));
        stress_write_doc(
            stress_handle.store, stress_handle.session, "guarded",
            stress_read_doc(stress_handle.store, stress_handle.session, "guarded", NULL) + 1,
            stress_process->number);
        atomic_store(&stress_shared->inside, false);
        stress_unlock(stress_handle.session, stress_process->number);
        stress_handle_maybe_reopen(&stress_handle, &stress_process->random);
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__head_is_a_lock)
{
    struct stress_shared *stress_shared = stress_shared_create("w0 w1 w2");
    struct stress_handle stress_handle;

    stress_run_processes(stress_shared, hold_lock, WRITERS, NULL, 0);
    assert_true(atomic_load(&stress_shared->lost) > 0);
    stress_handle = stress_handle_open(0);
    assert_int_equal(stress_read_doc(stress_handle.store, stress_handle.session, "guarded", NULL),
                     WRITERS * ROUNDS / 2);
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}

/* ------------------------------------------------------------- turns --- */

static void make_turns(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle = stress_handle_open(0);

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t number =
            stress_write_turn(stress_handle.store, stress_handle.session, stress_process->number);
        uint64_t made = atomic_load(&stress_shared->made);

        while (made < number &&
               !atomic_compare_exchange_weak(&stress_shared->made, &made, number)) {
        }
        stress_handle_maybe_reopen(&stress_handle, &stress_process->random);
    }
    stress_handle_close(&stress_handle);
}

/* One of the readers opens read-only: it follows live writers; without writers it sees the state at
 * its opening. */
static void check_turns(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    bool follows = stress_process->number != 0 || atomic_load(&stress_shared->live);
    uint64_t last = atomic_load(&stress_shared->made);
    struct stress_handle stress_handle =
        stress_handle_open(stress_process->number == 0 ? WAL_OPEN_READ_ONLY : 0);

    for (int i = 0; i < 10; i++) {
        uint64_t least = follows ? atomic_load(&stress_shared->made) : last;

        last = stress_check_turn(stress_handle.store, stress_handle.session,
                                 least > last ? least : last);
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__batch_is_seen_whole_or_not_at_all)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct stress_handle stress_handle;
    pid_t holder;

    stress_run_processes(stress_shared, make_turns, WRITERS, check_turns, READERS);
    holder = stress_start_holder(stress_shared);
    stress_run_processes(stress_shared, make_turns, WRITERS, check_turns, READERS);
    stress_stop_holder(stress_shared, holder);
    stress_handle = stress_handle_open(0);
    assert_int_equal(stress_check_turn(stress_handle.store, stress_handle.session, 0),
                     2 * WRITERS * ROUNDS);
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}

/* -------------------------------------------------------- redactions --- */

static void redact_all(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle = stress_handle_open(0);
    struct wal_error error = KIT_ERROR;

    for (int i = stress_process->number; i < STRESS_SECRETS; i += 2) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        stress_check(
            wal_session_redact(stress_handle.session, kit_text(id), kit_text("why"), NULL, &error),
            &error, id);
        atomic_store(&stress_shared->redacted[i], atomic_fetch_add(&stress_shared->made, 1) + 1);
    }
    stress_handle_close(&stress_handle);
}

static void read_secrets(struct stress_process *stress_process, struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    struct wal_entry_cursor *cursor = NULL;
    uint64_t now = atomic_load(&stress_process->stress_shared->made);
    enum wal_status status;

    stress_check(wal_entry_cursor_open(session, NULL, &cursor, &error), &error,
                 "wal_entry_cursor_open");
    while ((status = wal_entry_cursor_next(cursor, &entry, &error)) == WAL_OK) {
        char id[16] = "";
        uint64_t stamp;

        if (!kit_slice_is(entry.type, "message")) {
            continue;
        }
        WAL__ASSERT(entry.id.size < sizeof(id));
        memcpy(id, entry.id.data, entry.id.size);
        stamp = atomic_load(&stress_process->stress_shared->redacted[atoi(id + 1)]);
        WAL__ASSERT(stamp == 0 || stamp > now);
    }
    WAL__ASSERT(status == WAL_END);
    wal_entry_cursor_close(cursor);
}

/* An entry that another process redacted before this is refused. */
static void append_contended_id(struct stress_process *stress_process, struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    struct wal_entry_cursor *cursor = NULL;
    int which = (int)(kit_random(&stress_process->random) % STRESS_SECRETS);
    bool redacted = atomic_load(&stress_process->stress_shared->redacted[which]) != 0;
    enum wal_status status;
    char id[16];

    (void)snprintf(id, sizeof(id), "e%d", which);
    stress_check(wal_entry_cursor_open(session, NULL, &cursor, &error), &error,
                 "wal_entry_cursor_open");
    status = wal_entry_cursor_get(cursor, kit_text(id), &entry, &error);
    WAL__ASSERT(status == WAL_EREDACTED || (status == WAL_OK && !redacted));
    wal_entry_cursor_close(cursor);
}

static void follow_redactions(struct stress_process *stress_process)
{
    struct stress_handle stress_handle =
        stress_handle_open(stress_process->number == 0 ? WAL_OPEN_READ_ONLY : 0);

    for (int i = 0; i < 10; i++) {
        read_secrets(stress_process, stress_handle.session);
        append_contended_id(stress_process, stress_handle.session);
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__redacted_entry_is_not_returned)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct stress_handle stress_handle = stress_handle_open(0);
    pid_t holder;
    char id[16];

    for (int i = 0; i < STRESS_SECRETS; i++) {
        (void)snprintf(id, sizeof(id), "e%d", i);
        kit_append(stress_handle.session, id, NULL);
    }
    stress_handle_close(&stress_handle);
    holder = stress_start_holder(stress_shared);
    stress_run_processes(stress_shared, redact_all, 2, follow_redactions, READERS);
    stress_stop_holder(stress_shared, holder);
    assert_int_equal(atomic_load(&stress_shared->made), STRESS_SECRETS);
    stress_handle = stress_handle_open(WAL_OPEN_READ_ONLY);
    read_secrets(&(struct stress_process){.stress_shared = stress_shared}, stress_handle.session);
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}

/* ---------------------------------------------------------- deletions --- */

static void format_life_id(char id[16], uint64_t number)
{
    (void)snprintf(id, 16, "life-%d", (int)number);
}

/* Life i is there, session and document, before life i - 1 is gone. */
static void create_and_delete(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle = stress_handle_open(0);
    struct wal_session *before = NULL;
    struct wal_error error = KIT_ERROR;

    for (uint64_t i = 1; i <= LIVES; i++) {
        struct wal_session_options options = {.struct_size = sizeof(options)};
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        struct wal_session *session = NULL;
        char id[16];

        format_life_id(id, i);
        options.id = kit_text(id);
        atomic_store(&stress_shared->began, i);
        stress_check(wal_session_create(stress_handle.store, &options, &session, &error), &error,
                     id);
        stress_write_doc(stress_handle.store, session, "mine", i, 0);
        stress_write_doc(stress_handle.store, NULL, id, i, 0);
        if (before != NULL) {
            format_life_id(id, i - 1);
            doc.key = kit_text(id);
            stress_check(wal_session_delete(before, &error), &error, id);
            stress_check(wal_doc_delete(stress_handle.store, NULL, &doc, NULL, &error), &error, id);
            wal_session_close(before);
        }
        before = session;
        atomic_store(&stress_shared->made, i);
    }
    wal_session_close(before);
    stress_handle_close(&stress_handle);
}

/* The session and its documents exist both or not at all. */
static void check_session_exists(struct wal_store *store, uint64_t number, bool there)
{
    struct wal_session *session = NULL;
    struct wal_error error = KIT_ERROR;
    enum wal_status status;
    char id[16];

    format_life_id(id, number);
    status = wal_session_open(store, kit_text(id), &session, &error);
    if (!there) {
        WAL__ASSERT(status == WAL_ENOTFOUND);
        WAL__ASSERT(stress_read_doc(store, NULL, id, NULL) == 0);
        return;
    }
    stress_check(status, &error, id);
    WAL__ASSERT(stress_read_doc(store, session, "mine", NULL) == number);
    WAL__ASSERT(stress_read_doc(store, NULL, id, NULL) == number);
    wal_session_close(session);
}

static void count_sessions(struct wal_store *store)
{
    struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                 .prefix = kit_text("life-")};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = KIT_ERROR;
    struct wal_session_cursor *list = NULL;
    int count = 0;

    stress_check(wal_session_cursor_open(store, &options, &list, &error), &error,
                 "wal_session_cursor_open");
    while (wal_session_cursor_next(list, &info, &error) == WAL_OK) {
        count++;
    }
    WAL__ASSERT(count <= 2);
    wal_session_cursor_close(list);
}

/* Also with a handle of a session that another process deletes. */
static void read_sessions(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle =
        stress_handle_open(stress_process->number == 0 ? WAL_OPEN_READ_ONLY : 0);
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *held = NULL;
    uint64_t holds = 0;

    for (int i = 0; i < 20; i++) {
        uint64_t made = atomic_load(&stress_shared->made);
        char id[16];

        if (held != NULL && made > holds) {
            WAL__ASSERT(wal_session_get_info(held, &info, NULL) == WAL_ENOTFOUND);
            WAL__ASSERT(wal_session_delete(held, NULL) ==
                        (stress_process->number == 0 ? WAL_EREADONLY : WAL_ENOTFOUND));
            wal_session_close(held);
            held = NULL;
        }
        if (made > 1) {
            check_session_exists(stress_handle.store,
                                 1 + kit_random(&stress_process->random) % (made - 1), false);
        }
        format_life_id(id, made);
        if (held == NULL && made > 0 &&
            wal_session_open(stress_handle.store, kit_text(id), &held, NULL) == WAL_OK) {
            holds = made;
        }
        WAL__ASSERT(made == 0 || held != NULL || atomic_load(&stress_shared->began) > made);
        count_sessions(stress_handle.store);
    }
    wal_session_close(held);
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__deleted_session_is_absent_for_all)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct stress_handle stress_handle;
    pid_t holder = stress_start_holder(stress_shared);

    stress_run_processes(stress_shared, create_and_delete, 1, read_sessions, READERS);
    stress_stop_holder(stress_shared, holder);
    stress_handle = stress_handle_open(WAL_OPEN_READ_ONLY);
    for (uint64_t i = 1; i <= LIVES; i++) {
        check_session_exists(stress_handle.store, i, i == LIVES);
    }
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}

/* Many processes create and delete the same id. */
static void append_contended_ids(struct stress_process *stress_process)
{
    struct stress_shared *stress_shared = stress_process->stress_shared;
    struct stress_handle stress_handle = stress_handle_open(0);
    struct wal_session_options options = {.struct_size = sizeof(options), .id = kit_text("x")};
    struct wal_error error = KIT_ERROR;

    for (int i = 0; i < ROUNDS / 2;) {
        struct wal_session *session = NULL;
        enum wal_status status =
            wal_session_create(stress_handle.store, &options, &session, &error);

        if (status == WAL_EEXISTS) {
            usleep((useconds_t)(kit_random(&stress_process->random) % 500));
            continue;
        }
        stress_check(status, &error, "wal_session_create");
        WAL__ASSERT(!atomic_exchange(&stress_shared->inside, true));
        WAL__ASSERT(
            stress_increment_doc(stress_handle.store, session, "n", stress_process->number) == 0);
        WAL__ASSERT(stress_read_doc(stress_handle.store, session, "n", NULL) == 1);
        WAL__ASSERT(stress_write_turn(stress_handle.store, session, stress_process->number) == 1);
        atomic_fetch_add(&stress_shared->made, 1);
        atomic_store(&stress_shared->inside, false);
        stress_check(wal_session_delete(session, &error), &error, "delete");
        wal_session_close(session);
        stress_handle_maybe_reopen(&stress_handle, &stress_process->random);
        i++;
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__id_is_used_by_one_at_a_time)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct wal_store *store;

    stress_run_processes(stress_shared, append_contended_ids, WRITERS, NULL, 0);
    assert_int_equal(atomic_load(&stress_shared->made), WRITERS * ROUNDS / 2);
    store = kit_open("store", 0);
    wal_session_close(kit_create(store, "x"));
    stress_shared_destroy(stress_shared);
}

/* ------------------------------------------------------------- forks --- */

static void put_pairs(struct stress_process *stress_process)
{
    struct stress_handle stress_handle = stress_handle_open(0);

    for (uint64_t i = 0; i < PAIRS; i++) {
        atomic_store(&stress_process->stress_shared->began, i + 1);
        stress_write_pair(stress_handle.session, i);
        atomic_store(&stress_process->stress_shared->made, i + 1);
        stress_handle_maybe_reopen(&stress_handle, &stress_process->random);
    }
    stress_handle_close(&stress_handle);
}

static void fork_between(struct stress_process *stress_process)
{
    struct stress_handle stress_handle = stress_handle_open(0);
    struct wal_slice head = {NULL, 0};
    struct wal_error error = KIT_ERROR;

    for (int i = 0; i < 5; i++) {
        struct wal_session *fork = NULL;
        uint64_t least = atomic_load(&stress_process->stress_shared->made);
        uint64_t most;
        uint64_t count;

        stress_check(wal_session_fork(stress_handle.session, head, NULL, &fork, &error), &error,
                     "wal_session_fork");
        most = atomic_load(&stress_process->stress_shared->began);
        usleep((useconds_t)(kit_random(&stress_process->random) % 500));
        count = stress_check_pairs(fork);
        WAL__ASSERT(count >= least && count <= most);
        stress_write_pair(fork, count);
        WAL__ASSERT(stress_check_pairs(fork) == count + 1);
        WAL__ASSERT(stress_check_pairs(stress_handle.session) >= count);
        wal_session_close(fork);
    }
    stress_handle_close(&stress_handle);
}

KIT_TEST(processes__fork_inherits_a_snapshot_of_documents)
{
    struct stress_shared *stress_shared = stress_shared_create("");
    struct stress_handle stress_handle;

    stress_run_processes(stress_shared, put_pairs, 1, fork_between, READERS);
    stress_handle = stress_handle_open(0);
    assert_int_equal(stress_check_pairs(stress_handle.session), PAIRS);
    stress_handle_close(&stress_handle);
    stress_shared_destroy(stress_shared);
}
