/*
 * test_store_stopped.c - tests of processes that are stopped or killed while they hold a lock
 * (SPEC.md 4.1): the error of the others names it within a second; they wait for one that is only
 * slow, and one that was killed does not block them.
 */
#include "tests/lib/kit/store_kit.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "engine/base/heap.h"
#include "engine/log/control.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"

enum {
    TIMEOUT_MS = 500, /* the default */
    LIMIT_MS = 3000,  /* a second, and what a busy machine adds; the wait for
                      * a running process is ten seconds */
    SLOW_MS = 2 * TIMEOUT_MS + 300,
    WAITING = 4 /* processes that a test starts, at most */
};

/* --- a process that is stopped -------------------------------------------- */

/* The call at which it is stopped. */
enum trap_call {
    AT_LIST,  /* of the segments, while opening */
    AT_JOIN,  /* sharing the member lock */
    AT_INDEX, /* writing an index file */
    AT_WRITE,
    AT_SEGMENT, /* creating a segment */
    AT_SYNC
};

static struct {
    enum trap_call call;
    int signal;  /* 0: it is only slow */
    int pipe_fd; /* gets a byte right before the signal */
    bool sprung;
} trap;

static void reach_trap(enum trap_call call)
{
    if (trap.sprung || trap.call != call) {
        return;
    }
    trap.sprung = true;
    WAL__ASSERT(write(trap.pipe_fd, "x", 1) == 1);
    if (trap.signal == 0) {
        kit_pause_ms(SLOW_MS);
    } else {
        WAL__ASSERT(kill(getpid(), trap.signal) == 0);
    }
}

static enum wal_status list(void *ctx, const char *path,
                            enum wal_status (*each)(void *arg, const char *name), void *arg,
                            int *sys_errno)
{
    reach_trap(AT_LIST);
    return wal__io_posix.list(ctx, path, each, arg, sys_errno);
}

static enum wal_status lock(void *ctx, struct wal__file *file, uint64_t offset,
                            enum wal__io_lock mode, int *sys_errno)
{
    if (offset == WAL__LOCK_PARTICIPANT && mode == WAL__IO_LOCK_SHARED) {
        reach_trap(AT_JOIN);
    }
    return wal__io_posix.lock(ctx, file, offset, mode, sys_errno);
}

static enum wal_status open_file(void *ctx, const char *path, int flags, struct wal__file **file,
                                 int *sys_errno)
{
    if (strstr(path, ".idx.new") != NULL) {
        reach_trap(AT_INDEX);
    }
    if (strstr(path, ".seg.new") != NULL) {
        reach_trap(AT_SEGMENT);
    }
    return wal__io_posix.open(ctx, path, flags, file, sys_errno);
}

static enum wal_status pwritev_file(void *ctx, struct wal__file *file, const struct iovec *iov,
                                    int count, uint64_t offset, size_t *put, int *sys_errno)
{
    reach_trap(AT_WRITE);
    return wal__io_posix.pwritev(ctx, file, iov, count, offset, put, sys_errno);
}

static enum wal_status sync_file(void *ctx, struct wal__file *file, int *sys_errno)
{
    reach_trap(AT_SYNC);
    return wal__io_posix.sync(ctx, file, sys_errno);
}

static enum wal_status append(struct wal_session *session, const char *id, uint32_t durability,
                              struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = durability};
    const struct wal_entry entry = kit_entry(id, NULL, "{}");

    return wal_append(session, &entry, 1, &options, NULL, error);
}

/* Opens, appends, closes. */
static int live(const char *id)
{
    struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal__io io = wal__io_posix;
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    struct wal_error error = KIT_ERROR;

    io.list = list;
    io.lock = lock;
    io.open = open_file;
    io.pwritev = pwritev_file;
    io.populate_writable = NULL; /* every write is a call */
    io.sync = sync_file;
    if (wal__store_open("store", &options, &wal__heap_libc, &io, &store, &error) != WAL_OK ||
        wal_session_open(store, kit_text("s"), &session, &error) != WAL_OK ||
        append(session, id, WAL_DURABLE, &error) != WAL_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    wal_session_close(session);
    return wal_close(store, &error) == WAL_OK ? 0 : 2;
}

/* What a process is to do. */
struct order {
    char id[8]; /* of the entry that it appends */
    enum trap_call call;
    int signal;
};

/* Processes that wait for an order. They are forked while no store is open: a thread may have the
 * lock of the sanitizer's heap, which the new process then has for ever. */
static struct {
    pid_t process; /* 0: none, or started */
    int orders;    /* to write to */
    int reached;   /* to read from */
} waiting[WAITING];

_Noreturn static void wait_for_order(int orders, int reached)
{
    struct order order;

    if (read(orders, &order, sizeof(order)) != (ssize_t)sizeof(order)) {
        _exit(0);
    }
    trap.call = order.call;
    trap.signal = order.signal;
    trap.pipe_fd = reached;
    _exit(live(order.id));
}

/* Instead of those that a test before has left. */
static void fork_waiting(void)
{
    for (int i = 0; i < WAITING; i++) {
        int orders[2];
        int reached[2];

        if (waiting[i].process != 0) {
            assert_int_equal(kill(waiting[i].process, SIGKILL), 0);
            assert_int_equal(waitpid(waiting[i].process, NULL, 0), waiting[i].process);
            (void)close(waiting[i].orders);
            (void)close(waiting[i].reached);
        }
        assert_int_equal(pipe(orders), 0);
        assert_int_equal(pipe(reached), 0);
        waiting[i].process = kit_start_process();
        if (waiting[i].process == 0) {
            (void)close(orders[1]);
            wait_for_order(orders[0], reached[1]);
        }
        (void)close(orders[0]);
        (void)close(reached[1]);
        waiting[i].orders = orders[1];
        waiting[i].reached = reached[0];
    }
}

/* Returns when a process, which appends `id`, has reached the call. */
static pid_t start_as(const char *id, enum trap_call call, int signal)
{
    struct order order = {.call = call, .signal = signal};
    int how = 0;
    int i = 0;
    char byte;
    pid_t child;

    while (waiting[i].process == 0) {
        i++;
        assert_true(i < WAITING);
    }
    child = waiting[i].process;
    waiting[i].process = 0;
    (void)snprintf(order.id, sizeof(order.id), "%s", id);
    assert_int_equal(write(waiting[i].orders, &order, sizeof(order)), sizeof(order));
    assert_int_equal(read(waiting[i].reached, &byte, 1), 1);
    (void)close(waiting[i].orders);
    (void)close(waiting[i].reached);
    if (signal == SIGSTOP) {
        assert_int_equal(waitpid(child, &how, WUNTRACED), child);
        assert_true(WIFSTOPPED(how));
    }
    return child;
}

static pid_t start(enum trap_call call, int signal)
{
    return start_as("x", call, signal);
}

static void resume_child(pid_t child)
{
    assert_int_equal(kill(child, SIGCONT), 0);
    kit_expect_exit(child, 0);
}

static void end(pid_t child)
{
    int how = 0;

    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
}

/* --- what the others get -------------------------------------------------- */

static uint64_t now_ms(void)
{
    return wal__io_posix.monotonic_ns(NULL) / 1000000;
}

static void prepare(const char *ids)
{
    struct wal_store *store;
    struct wal_session *session;

    fork_waiting();
    store = kit_store();
    session = kit_create(store, "s");
    kit_append_all(session, ids);
    wal_session_close(session);
    kit_close(store);
}

static void expect_locked(enum wal_status status, const struct wal_error *error, pid_t holder,
                          uint64_t since_ms)
{
    uint64_t waited = now_ms() - since_ms;

    assert_int_equal(status, WAL_ELOCKED);
    assert_error(error, WAL_ELOCKED, "stopped");
    assert_int_equal(error->holder, holder);
    assert_in_range(waited, TIMEOUT_MS - 1, LIMIT_MS);
}

static void expect_closed_to_all(pid_t holder)
{
    struct wal_store *store = NULL;
    struct wal_error error = KIT_ERROR;
    uint64_t since = now_ms();

    expect_locked(wal_open("store", NULL, &store, &error), &error, holder, since);
    assert_null(store);
}

/* With the default lock timeout. */
static struct wal_store *open_store(uint32_t flags)
{
    const struct wal_open_options options = {.struct_size = sizeof(options), .flags = flags};
    struct wal_store *store = NULL;

    assert_ok(wal_open("store", &options, &store, kit_error()));
    return store;
}

static void expect_content(const char *ids)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_STRICT);
    struct wal_session *session = kit_session(store, "s");

    assert_branch(session, ids);
    wal_session_close(session);
    kit_close(store);
}

/* --- opening, and closing as the last process ----------------------------- */

KIT_TEST(stopped__while_recovering)
{
    pid_t child;

    prepare("a");
    child = start(AT_LIST, SIGSTOP);
    expect_closed_to_all(child);
    resume_child(child);
    expect_content("a x");
}

KIT_TEST(stopped__and_killed_while_recovering)
{
    pid_t child;

    prepare("a");
    child = start(AT_LIST, SIGSTOP);
    expect_closed_to_all(child);
    end(child);
    expect_content("a");
}

/* A reader continues without the lock. */
KIT_TEST(stopped__readers_recover_for_themselves)
{
    struct wal_store *store;
    struct wal_session *session;
    uint64_t since;
    pid_t child;

    prepare("a");
    child = start(AT_LIST, SIGSTOP);
    since = now_ms();
    store = open_store(WAL_OPEN_READ_ONLY);
    assert_in_range(now_ms() - since, TIMEOUT_MS - 1, LIMIT_MS);
    session = kit_session(store, "s");
    assert_branch(session, "a");
    wal_session_close(session);
    kit_close(store);
    resume_child(child);
}

KIT_TEST(stopped__holding_the_open_lock_while_others_run)
{
    struct wal_store *store;
    struct wal_session *session;
    pid_t child;

    prepare("a");
    store = open_store(0);
    session = kit_session(store, "s");
    child = start(AT_JOIN, SIGSTOP);
    expect_closed_to_all(child);
    assert_ok(append(session, "b", WAL_DURABLE, NULL));
    resume_child(child);
    assert_branch(session, "a b x");
    wal_session_close(session);
    kit_close(store);
    expect_content("a b x");
}

KIT_TEST(stopped__closing_as_the_last_one)
{
    pid_t child;

    prepare("a");
    child = start(AT_INDEX, SIGSTOP);
    expect_closed_to_all(child);
    resume_child(child);
    expect_content("a x");
}

KIT_TEST(slow__opening_waits_for_recovery)
{
    uint64_t since;
    pid_t child;

    prepare("a");
    child = start(AT_LIST, 0);
    since = now_ms();
    kit_close(open_store(0));
    assert_true(now_ms() - since > SLOW_MS - TIMEOUT_MS);
    kit_expect_exit(child, 0);
    expect_content("a x");
}

/* --- who appends ---------------------------------------------------------- */

KIT_TEST(stopped__holding_the_append_lock)
{
    struct wal_error error = KIT_ERROR;
    struct wal_store *store;
    struct wal_session *session;
    uint64_t since;
    pid_t child;

    prepare("a");
    store = open_store(0);
    session = kit_session(store, "s");
    child = start(AT_WRITE, SIGSTOP);
    since = now_ms();
    expect_locked(append(session, "b", WAL_WRITTEN, &error), &error, child, since);
    since = now_ms();
    expect_locked(append(session, "b", WAL_DURABLE, &error), &error, child, since);
    resume_child(child);
    assert_ok(append(session, "c", WAL_DURABLE, NULL));
    assert_branch(session, "a x c");
    wal_session_close(session);
    kit_close(store);
}

/* What was appended is durable: closing needs the lock only for a mark. */
KIT_TEST(stopped__holding_the_append_lock_while_others_close)
{
    struct wal_error error = KIT_ERROR;
    struct wal_store *store;
    struct wal_session *session;
    pid_t child;

    prepare("a");
    store = open_store(0);
    session = kit_session(store, "s");
    assert_ok(append(session, "b", WAL_DURABLE, &error));
    child = start(AT_WRITE, SIGSTOP);
    wal_session_close(session);
    assert_ok(wal_close(store, &error));
    resume_child(child);
    expect_content("a b x");
}

static void stop_at_sync(bool killed)
{
    struct wal_error error = KIT_ERROR;
    struct wal_store *store;
    struct wal_session *session;
    uint64_t since;
    pid_t child;

    prepare("a");
    store = open_store(0);
    session = kit_session(store, "s");
    child = start(AT_SYNC, SIGSTOP);
    assert_ok(append(session, "b", WAL_WRITTEN, NULL));
    since = now_ms();
    /* The lock is taken over, once. */
    assert_ok(append(session, "c", WAL_DURABLE, &error));
    assert_in_range(now_ms() - since, TIMEOUT_MS - 1, LIMIT_MS);
    since = now_ms();
    assert_ok(append(session, "d", WAL_DURABLE, &error));
    assert_in_range(now_ms() - since, 0, TIMEOUT_MS - 1);
    if (killed) {
        end(child);
    } else {
        resume_child(child); /* its append succeeds */
    }
    assert_ok(append(session, "e", WAL_DURABLE, &error));
    assert_branch(session, "a x b c d e");
    wal_session_close(session);
    kit_close(store);
    expect_content("a x b c d e");
}

KIT_TEST(stopped__holding_the_sync_lock)
{
    stop_at_sync(false);
}

KIT_TEST(stopped__and_killed_holding_the_sync_lock)
{
    stop_at_sync(true);
}

/* Two processes, one after the other, are stopped with it. */
KIT_TEST(stopped__two_holding_the_sync_lock)
{
    struct wal_store *store;
    struct wal_session *session;
    pid_t first;
    pid_t second;

    prepare("a");
    store = open_store(0);
    session = kit_session(store, "s");
    first = start_as("x", AT_SYNC, SIGSTOP);
    assert_ok(append(session, "b", WAL_DURABLE, NULL));
    second = start_as("y", AT_SYNC, SIGSTOP);
    assert_ok(append(session, "c", WAL_DURABLE, NULL));
    resume_child(second);
    resume_child(first);
    assert_ok(append(session, "d", WAL_DURABLE, NULL));
    assert_branch(session, "a x b y c d");
    wal_session_close(session);
    kit_close(store);
    expect_content("a x b y c d");
}

/* A process is stopped, or killed, while it heals for one that was killed. */
KIT_TEST(stopped__while_healing)
{
    struct wal_error error = KIT_ERROR;
    struct wal_store *store;
    struct wal_session *session;
    uint64_t since;
    pid_t child;
    int how = 0;

    prepare("a");
    store = open_store(0);
    session = kit_session(store, "s");
    child = start(AT_SYNC, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    child = start_as("y", AT_SEGMENT, SIGSTOP);
    since = now_ms();
    expect_locked(append(session, "b", WAL_DURABLE, &error), &error, child, since);
    resume_child(child);
    assert_ok(append(session, "c", WAL_DURABLE, &error));
    assert_branch(session, "a x y c");
    child = start_as("z", AT_SYNC, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    child = start_as("w", AT_SEGMENT, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_ok(append(session, "d", WAL_DURABLE, &error));
    assert_branch(session, "a x y c z d");
    wal_session_close(session);
    kit_close(store);
    expect_content("a x y c z d");
}

KIT_TEST(killed__holding_the_sync_lock)
{
    struct wal_error error = KIT_ERROR;
    struct wal_store *store;
    struct wal_session *session;

    prepare("a");
    store = open_store(0);
    session = kit_session(store, "s");
    for (int i = 0; i < 2; i++) {
        pid_t child = start(AT_SYNC, SIGKILL);
        int how = 0;

        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how));
        assert_ok(append(session, i == 0 ? "b" : "c", WAL_DURABLE, &error));
    }
    assert_branch(session, "a x b c");
    wal_session_close(session);
    kit_close(store);
    expect_content("a x b c");
}
