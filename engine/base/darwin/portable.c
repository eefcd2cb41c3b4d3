/*
 * portable.c - calls that macOS lacks, in terms of POSIX (portable.h).
 *
 * Invariant: a file system whose name is not known to keep locks and maps of one machine, or is
 * mounted from another, is never reported as local. Any thread.
 */
#include "engine/base/darwin/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int wal__portable_set_flags(int fd, bool blocks)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        return -1;
    }
    return blocks ? 0 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int wal__portable_set_ends(int ends[2], bool blocks, int result)
{
    int error;

    if (result < 0 || (wal__portable_set_flags(ends[0], blocks) == 0 &&
                       wal__portable_set_flags(ends[1], blocks) == 0)) {
        return result;
    }
    error = errno;
    (void)close(ends[0]);
    (void)close(ends[1]);
    errno = error;
    return -1;
}

static uint64_t now_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    const struct timespec pause = {
        .tv_sec = (time_t)(ns / 1000000000),
        .tv_nsec = (long)(ns % 1000000000),
    };

    (void)nanosleep(&pause, NULL);
}

enum { FIRST_PAUSE_NS = 20000, LAST_PAUSE_NS = 1000000, SIGNAL_PAUSE_NS = 10000000 };

void wal__portable_wait(const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    const uint64_t begin = now_ns();
    uint64_t pause = FIRST_PAUSE_NS;
    uint64_t waited = 0;

    while (waited < timeout_ns && __atomic_load_n(word, __ATOMIC_SEQ_CST) == expected) {
        sleep_ns(pause < timeout_ns - waited ? pause : timeout_ns - waited);
        pause = pause * 2 < LAST_PAUSE_NS ? pause * 2 : LAST_PAUSE_NS;
        waited = now_ns() - begin;
    }
}

int wal__portable_wait_signal(const sigset_t *signals, uint64_t timeout_ns)
{
    const uint64_t begin = now_ns();

    for (;;) {
        sigset_t pending;
        uint64_t waited;

        (void)sigpending(&pending);
        for (int number = 1; number < NSIG; number++) {
            if (sigismember(&pending, number) == 1 && sigismember(signals, number) == 1) {
                sigset_t one;

                (void)sigemptyset(&one);
                (void)sigaddset(&one, number);
                return sigwait(&one, &number) == 0 ? number : -1;
            }
        }
        waited = now_ns() - begin;
        if (waited >= timeout_ns) {
            errno = EAGAIN;
            return -1;
        }
        sleep_ns(timeout_ns - waited < SIGNAL_PAUSE_NS ? timeout_ns - waited : SIGNAL_PAUSE_NS);
    }
}

bool wal__portable_left(const struct timespec *until, struct timespec *left)
{
    const uint64_t now = now_ns();
    const uint64_t then = (uint64_t)until->tv_sec * 1000000000 + (uint64_t)until->tv_nsec;

    if (then <= now) {
        return false;
    }
    *left = (struct timespec){
        .tv_sec = (time_t)((then - now) / 1000000000),
        .tv_nsec = (long)((then - now) % 1000000000),
    };
    return true;
}

enum wal__storage wal__portable_storage(const char *name, bool is_local)
{
    static const char *const local[] = {"apfs", "hfs", "exfat", "msdos", "tmpfs", "udf", "ufs"};

    for (size_t i = 0; is_local && i < sizeof(local) / sizeof(local[0]); i++) {
        if (strcmp(name, local[i]) == 0) {
            return WAL__STORAGE_LOCAL;
        }
    }
    return WAL__STORAGE_SHARED;
}
