/*
 * test_portable.c - tests of what takes the place of calls that macOS lacks
 * (engine/base/darwin/portable.h), on any system, and of the id of a boot.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/darwin/portable.h"
#include "tests/lib/test.h"

static uint64_t now_ns(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ------------------------------------------------------------- words --- */

static _Atomic uint32_t word;

static void *change_word(void *ctx)
{
    const struct timespec pause = {.tv_nsec = 20000000};

    (void)ctx;
    (void)nanosleep(&pause, NULL);
    atomic_store(&word, 1);
    return NULL;
}

TEST(portable_wait__ends_with_the_time)
{
    uint64_t begin = now_ns();

    atomic_store(&word, 7);
    wal__portable_wait((const uint32_t *)&word, 7, 5000000);
    assert_true(now_ns() - begin >= 5000000);
}

TEST(portable_wait__ends_when_the_word_changes)
{
    pthread_t thread;

    atomic_store(&word, 0);
    assert_int_equal(pthread_create(&thread, NULL, change_word, NULL), 0);
    wal__portable_wait((const uint32_t *)&word, 0, UINT64_MAX);
    assert_int_equal(atomic_load(&word), 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    /* It has changed before. */
    wal__portable_wait((const uint32_t *)&word, 0, UINT64_MAX);
}

/* ----------------------------------------------------------- signals --- */

TEST(portable_signal__is_taken_once)
{
    sigset_t signals;
    sigset_t before;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &signals, &before), 0);
    assert_true(wal__portable_wait_signal(&signals, 0) < 0);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(wal__portable_wait_signal(&signals, UINT64_MAX), SIGUSR1);
    assert_true(wal__portable_wait_signal(&signals, 1000000) < 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

/* ------------------------------------------------------- descriptors --- */

static void expect_flags(int fd, bool blocks)
{
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0, blocks);
}

TEST(portable_ends__get_their_flags)
{
    for (int blocks = 0; blocks < 2; blocks++) {
        int ends[2];

        assert_int_equal(wal__portable_set_ends(ends, blocks != 0, pipe(ends)), 0);
        expect_flags(ends[0], blocks != 0);
        expect_flags(ends[1], blocks != 0);
        assert_int_equal(close(ends[0]), 0);
        assert_int_equal(close(ends[1]), 0);
    }
}

TEST(portable_ends__failures_leave_nothing_open)
{
    int ends[2];

    errno = EMFILE;
    assert_int_equal(wal__portable_set_ends(ends, false, -1), -1);
    assert_int_equal(errno, EMFILE);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(wal__portable_set_ends(ends, false, 0), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(fcntl(ends[0], F_GETFD), -1);
}

/* ------------------------------------------------------------- times --- */

TEST(portable_left__is_the_time_until_then)
{
    uint64_t now = now_ns();
    struct timespec until = {.tv_sec = (time_t)(now / 1000000000),
                             .tv_nsec = (long)(now % 1000000000)};
    struct timespec left = {0};

    assert_false(wal__portable_left(&until, &left));
    until.tv_sec += 100;
    assert_true(wal__portable_left(&until, &left));
    assert_true(left.tv_sec < 100);
    assert_in_range(left.tv_nsec, 0, 999999999);
}

/* ----------------------------------------------------------- storage --- */

TEST(portable_storage__only_known_local_file_systems_are_local)
{
    static const struct {
        const char *name;
        bool is_local;
        enum wal__storage storage;
    } cases[] = {
        {"apfs", true, WAL__STORAGE_LOCAL},     {"hfs", true, WAL__STORAGE_LOCAL},
        {"exfat", true, WAL__STORAGE_LOCAL},    {"apfs", false, WAL__STORAGE_SHARED},
        {"smbfs", false, WAL__STORAGE_SHARED},  {"nfs", false, WAL__STORAGE_SHARED},
        {"macfuse", true, WAL__STORAGE_SHARED}, {"", true, WAL__STORAGE_SHARED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(wal__portable_storage(cases[i].name, cases[i].is_local), cases[i].storage);
    }
}

/* -------------------------------------------------------------- boot --- */

TEST(boot_id__is_read_in_either_case)
{
    static const uint8_t zeros[16];
    uint8_t lower[16];
    uint8_t upper[16];

    wal__io_parse_boot_id("0f8fad5b-d9cb-469f-a165-70867728950e\n", lower);
    wal__io_parse_boot_id("0F8FAD5B-D9CB-469F-A165-70867728950E", upper);
    assert_memory_equal(lower, upper, sizeof(lower));
    assert_int_equal(lower[0], 0x0f);
    assert_int_equal(lower[15], 0x0e);
    wal__io_parse_boot_id("0F8FAD5B-D9CB-469F-A165-70867728950", upper);
    assert_memory_equal(upper, zeros, sizeof(zeros));
    wal__io_parse_boot_id("", lower);
    assert_memory_equal(lower, zeros, sizeof(zeros));
}
