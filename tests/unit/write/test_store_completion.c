/*
 * test_store_completion.c - tests of the completion descriptor, of each kind:
 * an eventfd, a pipe, a socket. test_store_queue.c tests what it announces.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/lib/kit/store_kit.h"

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
    static const char *const texts[KINDS] = {"is an eventfd", "is a pipe",
                                             "is a socket"};

    for (uint32_t kind = 0; kind < KINDS; kind++) {
        struct wal_store *store = kit_open("m", WAL_OPEN_MEMORY);
        int32_t fd = open_fd(store, kind);
        int32_t other = -7;

        for (uint32_t i = 1; i < KINDS; i++) {
            assert_int_equal(wal_store_completion_fd(store, (kind + i) % KINDS,
                                                     &other, &error),
                             WAL_EINVAL);
            assert_error(&error, WAL_EINVAL, texts[kind]);
        }
        assert_int_equal(wal_store_completion_fd(store, KINDS, &other, &error),
                         WAL_EINVAL);
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
        assert_int_equal(read(copy, &byte, 1),
                         kind == WAL_COMPLETION_EVENTFD ? -1 : 0);
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
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            bool is_closed = fcntl(fd, F_GETFD) == -1 && errno == EBADF;

            is_closed = wal_store_completion_fd(store, kind, &fd, &error) ==
                            WAL_EFORKED &&
                        is_closed;
            (void)(write(ends[1], is_closed ? "y" : "n", 1) == 1 && pause());
            _exit(1);
        }
        assert_int_equal(read(ends[0], &byte, 1), 1);
        assert_int_equal(byte, 'y');
        kit_close(store);
        assert_int_equal(read(copy, &byte, 1),
                         kind == WAL_COMPLETION_EVENTFD ? -1 : 0);
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
        struct rlimit few = {.rlim_cur = (rlim_t)free_fd + 1,
                             .rlim_max = before.rlim_max};
        int32_t fd = -7;

        assert_int_equal(close(free_fd), 0);
        few.rlim_cur -= kind == WAL_COMPLETION_EVENTFD;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        assert_int_equal(wal_store_completion_fd(store, kind, &fd, &error),
                         WAL_ENOMEM);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(error.sys_errno, EMFILE);
        assert_int_equal(fd, -7);
        assert_int_equal(fcntl(free_fd, F_GETFD), -1);
        /* The kind is not decided by a failure. */
        assert_true(open_fd(store, (kind + 1) % KINDS) >= 0);
        kit_close(store);
    }
}
