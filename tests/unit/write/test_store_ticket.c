/*
 * test_store_ticket.c - tests of wal_submit, tickets, the queue and wal_sync, and of the completion
 * descriptor, of each kind: an eventfd, a pipe, a socket. test_store_queue.c tests what it
 * announces.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/stress/brake_kit.h"

/* A disk that waits before it writes, for as long as it is held. */
static struct wal__io io;

static struct kit_brake brake;

static bool held;

static _Atomic size_t largest; /* bytes of one write: of a group at most */

static enum wal_status slow_write(void *ctx, struct wal__file *file, const struct iovec *iov,
                                  int count, uint64_t offset, size_t *put, int *sys_errno)
{
    size_t size = 0;

    for (int i = 0; i < count; i++) {
        size += iov[i].iov_len;
    }
    if (size > atomic_load(&largest)) {
        atomic_store(&largest, size);
    }
    kit_brake_pass(&brake, &held, "a write");
    return wal__io_posix.pwritev(ctx, file, iov, count, offset, put, sys_errno);
}

static void hold(bool value)
{
    kit_brake_set(&brake, &held, value);
}

static void await_writer(void)
{
    kit_brake_await(&brake, "a write");
}

struct bench {
    struct wal_store *store;
    struct wal_session *session;
};

static void end_brake(void *arg)
{
    kit_brake_deinit(arg);
}

static struct bench begin(uint32_t queue_limit)
{
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .flags = WAL_OPEN_CREATE,
                                       .queue_limit = queue_limit,
                                       .idle_mark_ms = 600000};
    struct bench bench = {.store = NULL};

    kit_brake_init(&brake);
    test_at_end(end_brake, &brake);
    io = wal__io_posix;
    io.pwritev = slow_write;
    io.populate_writable = NULL; /* every write is a call */
    held = false;
    atomic_store(&largest, 0);
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &bench.store, NULL));
    (void)kit_keep(bench.store);
    bench.session = kit_create(bench.store, "s");
    return bench;
}

static enum wal_status submit(struct bench *bench, const char *id, uint32_t durability,
                              uint32_t flags, struct wal_ticket **ticket, struct wal_error *error)
{
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = durability,
                                         .flags = flags,
                                         .expected_tail = kit_text("none")};
    struct wal_entry entry = kit_entry(id, NULL, "1");

    return wal_submit(bench->session, &entry, 1, &options, ticket, error);
}

static enum wal_status wait_for(struct wal_ticket *ticket, int64_t timeout_ms, const char *last)
{
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;
    enum wal_status status = wal_ticket_wait(ticket, timeout_ms, &result, &error);

    if (status == WAL_OK) {
        assert_string_equal(result.last_id, last);
        assert_int_equal(result.appended, 1);
    } else {
        assert_int_equal(error.status, status);
        assert_true(error.text[0] != '\0');
    }
    return status;
}

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

KIT_TEST(ticket__of_every_class_completes)
{
    struct bench bench = begin(0);
    static const char *const ids[] = {"a", "b", "c"};

    for (uint32_t i = 0; i <= WAL_QUEUED; i++) {
        struct wal_ticket *ticket = NULL;

        assert_ok(submit(&bench, ids[i], i, 0, &ticket, NULL));
        assert_non_null(ticket);
        assert_ok(wait_for(ticket, KIT_LONG_MS, ids[i]));
        assert_ok(wait_for(ticket, 0, ids[i]));
        assert_ok(wal_ticket_wait(ticket, -1, NULL, NULL));
        wal_ticket_destroy(ticket);
    }
    assert_branch(bench.session, "a b c");
}

KIT_TEST(ticket__is_pending_until_written)
{
    struct bench bench = begin(0);
    struct wal_ticket *ticket = NULL;
    struct wal_ticket *second = NULL;
    int64_t start;

    hold(true);
    assert_ok(submit(&bench, "a", WAL_QUEUED, 0, &ticket, NULL));
    await_writer();
    assert_ok(submit(&bench, "b", WAL_DURABLE, 0, &second, NULL));
    assert_int_equal(wait_for(ticket, 0, "a"), WAL_EBUSY);
    start = now_ms();
    assert_int_equal(wait_for(ticket, 60, "a"), WAL_EBUSY);
    assert_in_range(now_ms() - start, 59, 5000);
    assert_int_equal(wait_for(second, 10, "b"), WAL_EBUSY);
    hold(false);
    assert_ok(wait_for(ticket, KIT_LONG_MS, "a"));
    assert_ok(wait_for(second, KIT_LONG_MS, "b"));
    wal_ticket_destroy(ticket);
    wal_ticket_destroy(second);
}

KIT_TEST(ticket__destroying_it_does_not_cancel_the_append)
{
    struct bench bench = begin(0);
    struct wal_ticket *ticket = NULL;

    hold(true);
    assert_ok(submit(&bench, "a", WAL_QUEUED, 0, &ticket, NULL));
    await_writer();
    wal_ticket_destroy(ticket);
    ticket = NULL;
    assert_ok(submit(&bench, "b", WAL_DURABLE, 0, &ticket, NULL));
    wal_ticket_destroy(ticket);
    hold(false);
    assert_ok(wal_sync(bench.store, NULL));
    assert_branch(bench.session, "a b");
    wal_ticket_destroy(NULL);
}

/* Several operations of one group: each sees the effects of those before it, though nothing is
 * written yet. */
KIT_TEST(group__operations_build_on_those_before)
{
    struct bench bench = begin(0);
    struct wal_ticket *tickets[5] = {NULL};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_store_info before = {.struct_size = sizeof(before)};
    struct wal_store_info after = {.struct_size = sizeof(after)};
    struct wal_append_options expect = {
        .struct_size = sizeof(expect), .flags = WAL_APPEND_EXPECT, .expected_tail = kit_text("b")};
    struct wal_entry entries[5] = {kit_entry("a", NULL, "1"), kit_entry("b", "a", "1"),
                                   kit_entry("a", NULL, "1"), kit_entry("a", NULL, "2"),
                                   kit_entry("c", NULL, "1")};
    static const enum wal_status expected[] = {WAL_OK, WAL_OK, WAL_OK, WAL_EEXISTS, WAL_OK};

    assert_ok(wal_store_get_info(bench.store, &before, NULL));
    hold(true);
    assert_ok(submit(&bench, "first", WAL_QUEUED, 0, &tickets[0], NULL));
    await_writer();
    wal_ticket_destroy(tickets[0]);
    for (int i = 0; i < 5; i++) {
        assert_ok(
            wal_submit(bench.session, &entries[i], 1, i == 4 ? &expect : NULL, &tickets[i], NULL));
    }
    hold(false);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(wal_ticket_wait(tickets[i], KIT_LONG_MS, &result, NULL), expected[i]);
        assert_int_equal(result.duplicates, i == 2);
        wal_ticket_destroy(tickets[i]);
    }
    assert_branch(bench.session, "first a b c");
    assert_ok(wal_store_get_info(bench.store, &after, NULL));
    assert_int_equal(after.groups - before.groups, 2);
}

enum {
    LARGE_ENTRIES = 80, /* of a batch of 20 MiB; each payload is in line */
    LARGE_PAYLOAD = 256 * 1024
};

static struct wal_ticket *submit_large(struct bench *bench, char name, const char *payload)
{
    static char ids[LARGE_ENTRIES][8];
    struct wal_entry entries[LARGE_ENTRIES];
    struct wal_ticket *ticket = NULL;

    for (int i = 0; i < LARGE_ENTRIES; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "%c%d", name, i);
        entries[i] = kit_entry(ids[i], NULL, payload);
    }
    assert_ok(wal_submit(bench->session, entries, LARGE_ENTRIES, NULL, &ticket, NULL));
    return ticket;
}

/* Two batches that are staged together are no group together: it would be larger than a segment can
 * hold. */
KIT_TEST(group__two_batches_of_20_mib_are_two_groups)
{
    struct bench bench = begin(0);
    struct wal_ticket *tickets[3] = {NULL};
    struct wal_store_info before = {.struct_size = sizeof(before)};
    struct wal_store_info after = {.struct_size = sizeof(after)};
    char *payload = test_memory(LARGE_PAYLOAD + 1);

    memset(payload, 'x', LARGE_PAYLOAD);
    payload[0] = payload[LARGE_PAYLOAD - 1] = '"';
    payload[LARGE_PAYLOAD] = '\0';
    assert_ok(wal_store_get_info(bench.store, &before, NULL));
    hold(true);
    assert_ok(submit(&bench, "a", WAL_QUEUED, 0, &tickets[0], NULL));
    await_writer();
    tickets[1] = submit_large(&bench, 'b', payload);
    tickets[2] = submit_large(&bench, 'c', payload);
    hold(false);
    for (int i = 0; i < 3; i++) {
        assert_ok(wal_ticket_wait(tickets[i], KIT_LONG_MS, NULL, NULL));
        wal_ticket_destroy(tickets[i]);
    }
    assert_ok(wal_store_get_info(bench.store, &after, NULL));
    /* Each alone, and perhaps marks and the end of a segment. */
    assert_true(after.groups - before.groups >= 3);
    assert_in_range(atomic_load(&largest), 20 << 20, 33 << 20);
    assert_int_equal(kit_info(bench.session).entries, 2 * LARGE_ENTRIES + 1);
    assert_slice(kit_info(bench.session).head, "c79");
}

KIT_TEST(ticket__reports_a_refusal)
{
    struct bench bench = begin(0);
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;
    struct wal_ticket *ticket = NULL;

    kit_append(bench.session, "a", NULL);
    assert_ok(submit(&bench, "b", WAL_WRITTEN, WAL_APPEND_EXPECT, &ticket, NULL));
    assert_int_equal(wal_ticket_wait(ticket, KIT_LONG_MS, &result, &error), WAL_ECONFLICT);
    assert_string_equal(error.actual, "a");
    assert_error(&error, WAL_ECONFLICT, "\"a\"");
    wal_ticket_destroy(ticket);
    assert_branch(bench.session, "a");
}

KIT_TEST(queue__full_submit_returns_an_error)
{
    struct bench bench = begin(4);
    struct wal_error error = KIT_ERROR;
    struct wal_ticket *ticket = NULL;
    enum wal_status status = WAL_OK;
    int taken = 0;

    hold(true);
    while (status == WAL_OK && taken < 1000) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", taken);
        status = submit(&bench, id, WAL_QUEUED, WAL_APPEND_NO_WAIT, &ticket, &error);
        if (status == WAL_OK) {
            wal_ticket_destroy(ticket);
            taken++;
        }
        if (taken == 1) {
            await_writer(); /* the first is out of the queue */
        }
    }
    assert_int_equal(status, WAL_EBUSY);
    assert_error(&error, WAL_EBUSY, "queue");
    assert_int_equal(taken, 5);
    hold(false);
    assert_ok(wal_sync(bench.store, NULL));
    assert_branch(bench.session, "e0 e1 e2 e3 e4");
}

static void *release_later(void *arg)
{
    struct timespec pause = {0, 50000000};

    (void)arg;
    (void)nanosleep(&pause, NULL);
    hold(false);
    return NULL;
}

KIT_TEST(queue__full_append_blocks)
{
    struct bench bench = begin(2);
    struct wal_append_options options = {.struct_size = sizeof(options), .durability = WAL_QUEUED};
    struct wal_entry entry = kit_entry("a", NULL, "1");
    pthread_t thread;
    int64_t start = now_ms();

    hold(true);
    assert_int_equal(pthread_create(&thread, NULL, release_later, NULL), 0);
    for (int i = 0; i < 6; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        entry.id = kit_text(id);
        assert_ok(wal_append(bench.session, &entry, 1, &options, NULL, NULL));
    }
    assert_in_range(now_ms() - start, 45, 60000);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(wal_sync(bench.store, NULL));
    assert_branch(bench.session, "e0 e1 e2 e3 e4 e5");
}

/* The next call returns the failure of an operation without a waiter. */
KIT_TEST(queue__failure_is_returned_once)
{
    struct bench bench = begin(0);
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = WAL_QUEUED,
                                         .flags = WAL_APPEND_EXPECT,
                                         .expected_tail = kit_text("none")};
    struct wal_entry entry = kit_entry("b", NULL, "1");

    kit_append(bench.session, "a", NULL);
    assert_ok(wal_append(bench.session, &entry, 1, &options, NULL, NULL));
    assert_fails(wal_sync(bench.store, kit_error()), WAL_ECONFLICT, "\"a\"");
    assert_ok(wal_sync(bench.store, kit_error()));
    assert_ok(wal_append(bench.session, &entry, 1, &options, NULL, NULL));
    wal_session_close(bench.session);
    assert_int_equal(wal_close(bench.store, kit_error()), WAL_ECONFLICT);
    bench.store = kit_open("store", 0);
    bench.session = kit_session(bench.store, "s");
    assert_branch(bench.session, "a");
}

KIT_TEST(queue__failure_that_a_ticket_returned_is_not_repeated)
{
    struct bench bench = begin(0);
    struct wal_ticket *ticket = NULL;

    kit_append(bench.session, "a", NULL);
    assert_ok(submit(&bench, "b", WAL_QUEUED, WAL_APPEND_EXPECT, &ticket, NULL));
    assert_int_equal(wait_for(ticket, KIT_LONG_MS, "b"), WAL_ECONFLICT);
    wal_ticket_destroy(ticket);
    assert_ok(wal_sync(bench.store, NULL));
}

KIT_TEST(close__commits_what_is_queued)
{
    struct bench bench = begin(0);
    struct wal_append_options options = {.struct_size = sizeof(options), .durability = WAL_QUEUED};
    struct wal_entry entry = kit_entry("a", NULL, "1");

    for (int i = 0; i < 1000; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        entry.id = kit_text(id);
        assert_ok(wal_append(bench.session, &entry, 1, &options, NULL, NULL));
    }
    wal_session_close(bench.session);
    kit_close(bench.store);
    bench.store = kit_open("store", 0);
    bench.session = kit_session(bench.store, "s");
    assert_int_equal(kit_info(bench.session).entries, 1000);
    assert_slice(kit_info(bench.session).head, "e999");
}

KIT_TEST(submit__misuse_is_refused)
{
    struct bench bench = begin(0);
    struct wal_append_result result = {.struct_size = 3};
    struct wal_entry entry = kit_entry("a", NULL, "1");
    struct wal_ticket *ticket = NULL;

    assert_int_equal(wal_submit(NULL, &entry, 1, NULL, &ticket, NULL), WAL_EINVAL);
    assert_int_equal(wal_submit(bench.session, &entry, 1, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_submit(bench.session, NULL, 1, NULL, &ticket, NULL), WAL_EINVAL);
    entry.payload = kit_text("{");
    assert_int_equal(wal_submit(bench.session, &entry, 1, NULL, &ticket, NULL), WAL_EBADJSON);
    assert_null(ticket);
    entry.payload = kit_text("{}");
    assert_ok(wal_submit(bench.session, &entry, 1, NULL, &ticket, NULL));
    assert_int_equal(wal_ticket_wait(ticket, KIT_LONG_MS, &result, NULL), WAL_EINVAL);
    assert_int_equal(wal_ticket_wait(NULL, -1, NULL, NULL), WAL_EINVAL);
    wal_ticket_destroy(ticket);
}

enum {
    KINDS = 3,
    MANY = 100000,
    LONG_MS = 60000 /* a wait that must not be over first */
};

static struct wal_error error = {.struct_size = sizeof(error)};

static int32_t open_fd(struct wal_store *store, uint32_t kind)
{
    int32_t fd = -1;

    assert_ok(wal_store_completion_fd(store, kind, &fd, &error));
    return fd;
}

/* Whether it becomes readable in time. */
static bool is_readable(int32_t fd, int timeout_ms)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};

    return poll(&wanted, 1, timeout_ms) == 1 && (wanted.revents & POLLIN) != 0;
}

/* Reads until it is empty; returns the number of reads that got something. */
static uint32_t drain(int32_t fd)
{
    static char bytes[4096];
    uint32_t count = 0;

    while (read(fd, bytes, sizeof(bytes)) > 0) {
        count++;
    }
    assert_int_equal(errno, EAGAIN);
    return count;
}

/* Completes an operation that has a ticket. */
static void complete(struct wal_session *session, uint32_t number)
{
    struct wal_ticket *ticket = NULL;
    struct wal_entry entry;
    char id[16];

    (void)snprintf(id, sizeof(id), "e%u", number);
    entry = kit_entry(id, NULL, "1");
    assert_ok(wal_submit(session, &entry, 1, NULL, &ticket, &error));
    assert_ok(wal_ticket_wait(ticket, LONG_MS, NULL, &error));
    wal_ticket_destroy(ticket);
}

static mode_t type_of(int32_t fd)
{
    struct stat stat;

    assert_int_equal(fstat(fd, &stat), 0);
    return stat.st_mode & S_IFMT;
}

KIT_TEST(completion__each_kind_wakes_poll)
{
    static const mode_t types[KINDS] = {0, S_IFIFO, S_IFSOCK};

    for (uint32_t kind = 0; kind < KINDS; kind++) {
        struct wal_store *store = kit_open("m", WAL_OPEN_MEMORY);
        struct wal_session *session = kit_create(store, "s");
        int32_t fd = open_fd(store, kind);

        assert_int_equal(type_of(fd), types[kind]);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
        assert_int_equal(open_fd(store, kind), fd);
        assert_false(is_readable(fd, 0));
        for (uint32_t i = 0; i < 3; i++) {
            complete(session, i);
            assert_true(is_readable(fd, LONG_MS));
            assert_int_equal(drain(fd), 1);
            assert_false(is_readable(fd, 0));
        }
        wal_session_close(session);
        kit_close(store);
    }
}

KIT_TEST(completion__before_the_descriptor_is_announced)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        struct wal_store *store = kit_open("m", WAL_OPEN_MEMORY);
        struct wal_session *session = kit_create(store, "s");

        complete(session, 0);
        assert_true(is_readable(open_fd(store, kind), LONG_MS));
        assert_int_equal(drain(open_fd(store, kind)), 1);
        wal_session_close(session);
        kit_close(store);
    }
}

/* Nobody reads: the descriptor stays readable, completions go on. */
KIT_TEST(completion__full_descriptor_drops_bytes)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        struct wal_store *store = kit_open("m", WAL_OPEN_NOOP);
        struct wal_session *session = kit_create(store, "s");
        int32_t fd = open_fd(store, kind);

        for (uint32_t i = 0; i < MANY; i++) {
            complete(session, i);
        }
        assert_true(is_readable(fd, 0));
        assert_true(drain(fd) > 0);
        assert_false(is_readable(fd, 0));
        complete(session, MANY);
        assert_true(is_readable(fd, LONG_MS));
        assert_int_equal(drain(fd), 1);
        wal_session_close(session);
        kit_close(store);
    }
}

KIT_TEST(completion__other_descriptor_kind_is_refused)
{
    static const char *const texts[KINDS] = {"is an eventfd", "is a pipe", "is a socket"};

    for (uint32_t kind = 0; kind < KINDS; kind++) {
        struct wal_store *store = kit_open("m", WAL_OPEN_MEMORY);
        int32_t fd = open_fd(store, kind);
        int32_t other = -7;

        for (uint32_t i = 1; i < KINDS; i++) {
            assert_int_equal(wal_store_completion_fd(store, (kind + i) % KINDS, &other, &error),
                             WAL_EINVAL);
            assert_error(&error, WAL_EINVAL, texts[kind]);
        }
        assert_int_equal(wal_store_completion_fd(store, KINDS, &other, &error), WAL_EINVAL);
        assert_int_equal(other, -7);
        assert_int_equal(open_fd(store, kind), fd);
        kit_close(store);
    }
}

/* The caller's duplicate shows that the other end is closed too. */
KIT_TEST(completion__is_closed_with_the_store)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        struct wal_store *store = kit_open("m", WAL_OPEN_MEMORY);
        int32_t fd = open_fd(store, kind);
        int copy = dup(fd);
        char byte;

        kit_close(store);
        assert_int_equal(fcntl(fd, F_GETFD), -1);
        assert_int_equal(errno, EBADF);
        assert_int_equal(read(copy, &byte, 1), kind == WAL_COMPLETION_EVENTFD ? -1 : 0);
        assert_int_equal(close(copy), 0);
    }
}

/* The child has neither end: the parent's close is seen while it lives. */
KIT_TEST(completion__child_of_fork_does_not_inherit_it)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        struct wal_store *store = kit_store();
        int32_t fd = open_fd(store, kind);
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 100);
        int ends[2];
        char byte = 0;
        pid_t child;

        assert_int_equal(pipe(ends), 0);
        child = kit_start_process();
        if (child == 0) {
            bool is_closed = fcntl(fd, F_GETFD) == -1 && errno == EBADF;

            is_closed =
                wal_store_completion_fd(store, kind, &fd, &error) == WAL_EFORKED && is_closed;
            (void)(write(ends[1], is_closed ? "y" : "n", 1) == 1 && pause());
            _exit(1);
        }
        assert_int_equal(read(ends[0], &byte, 1), 1);
        assert_int_equal(byte, 'y');
        kit_close(store);
        assert_int_equal(read(copy, &byte, 1), kind == WAL_COMPLETION_EVENTFD ? -1 : 0);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(close(ends[i]), 0);
        }
        assert_int_equal(close(copy), 0);
    }
}

/* With room for fewer descriptors than the kind needs, none is left open. */
KIT_TEST(completion__without_descriptors_is_refused)
{
    struct rlimit before;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        struct wal_store *store = kit_open("m", WAL_OPEN_MEMORY);
        int free_fd = fcntl(0, F_DUPFD, 0);
        struct rlimit few = {.rlim_cur = (rlim_t)free_fd + 1, .rlim_max = before.rlim_max};
        int32_t fd = -7;

        assert_int_equal(close(free_fd), 0);
        few.rlim_cur -= kind == WAL_COMPLETION_EVENTFD;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        assert_int_equal(wal_store_completion_fd(store, kind, &fd, &error), WAL_ENOMEM);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(error.sys_errno, EMFILE);
        assert_int_equal(fd, -7);
        assert_int_equal(fcntl(free_fd, F_GETFD), -1);
        /* The kind is not decided by a failure. */
        assert_true(open_fd(store, (kind + 1) % KINDS) >= 0);
        kit_close(store);
    }
}
