/*
 * process.c - the machine and its processes on Linux (host.h). No section of
 * SPEC.md. Invariant: what cannot be told is answered as such, never as an
 * end: a live process is not taken for a dead one. Any thread.
 */
#include "engine/os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "format/bytes/assert.h"

enum {
    STAT_SIZE = 1024
};

/* Sets result to what a system call answers, whatever signals come. */
#define RETRY_EINTR(result, call) \
    do {                          \
        (result) = (call);        \
    } while ((result) < 0 && errno == EINTR)

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    int result = clock_gettime(clock, &now);

    WAL__ASSERT(result == 0);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

int64_t wal__clock_now_ms(void *ctx)
{
    (void)ctx;
    return (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000);
}

uint64_t wal__clock_monotonic_ns(void *ctx)
{
    (void)ctx;
    return clock_ns(CLOCK_MONOTONIC);
}

void wal__random_system(void *ctx, void *data, size_t size)
{
    (void)ctx;
    uint8_t *at = data;

    while (size > 0) {
        ssize_t result;

        RETRY_EINTR(result, getrandom(at, size, 0));
        WAL__ASSERT(result > 0);
        at += result;
        size -= (size_t)result;
    }
}

/* The beginning of a small file of /proc, terminated; false on failure. */
static bool read_proc_file(const char *path, char *text, size_t size)
{
    int fd;
    ssize_t bytes_read;

    RETRY_EINTR(fd, open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0) {
        return false;
    }
    RETRY_EINTR(bytes_read, read(fd, text, size - 1));
    (void)close(fd);
    if (bytes_read <= 0) {
        return false;
    }
    text[bytes_read] = '\0';
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void wal__process_boot_id(void *ctx, uint8_t out[16])
{
    (void)ctx;
    uint8_t id[16] = {0};
    char text[64];
    size_t digits = 0;

    memset(out, 0, sizeof(id));
    if (!read_proc_file("/proc/sys/kernel/random/boot_id", text,
                        sizeof(text))) {
        return;
    }
    for (const char *at = text; *at != '\0' && digits < 32; at++) {
        int digit = hex_digit(*at);

        if (digit >= 0) {
            id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | digit);
            digits++;
        }
    }
    if (digits == 32) {
        memcpy(out, id, sizeof(id));
    }
}

/* Every public call asks for the process's id, and a system call takes longer
 * than some of them. The kernel empties the page it is kept in for a child,
 * however that was made. */
static pthread_once_t cached_pid_once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t
    *cached_pid; /* 0: not asked for yet; null: never cached */

static void init_cached_pid(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        return;
    }
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, size);
        return;
    }
    cached_pid = page;
}

uint32_t wal__process_id(void *ctx)
{
    uint32_t id;

    (void)ctx;
    if (pthread_once(&cached_pid_once, init_cached_pid) != 0 ||
        cached_pid == NULL) {
        return (uint32_t)getpid();
    }
    id = atomic_load_explicit(cached_pid, memory_order_relaxed);
    if (id == 0) {
        id = (uint32_t)getpid();
        atomic_store_explicit(cached_pid, id, memory_order_relaxed);
    }
    return id;
}

/* The start of field `number` (from 3 on) of /proc/PID/stat, or null. */
static const char *stat_field(const char *text, int number)
{
    /* Field 2, the command, is in brackets and may hold brackets. */
    const char *at = strrchr(text, ')');

    for (int field = 2; at != NULL && field < number; field++) {
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
    }
    return at;
}

/* /proc/PID/stat. */
static bool read_proc_stat(uint32_t pid, char text[STAT_SIZE])
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%u/stat", (unsigned)pid);
    return read_proc_file(path, text, STAT_SIZE);
}

uint64_t wal__process_start_time(void *ctx, uint32_t pid)
{
    (void)ctx;
    char text[STAT_SIZE];

    if (pid == 0 || pid > INT32_MAX) {
        return 0;
    }
    if (!read_proc_stat(pid, text)) {
        bool gone = kill((pid_t)pid, 0) != 0 && errno == ESRCH;

        return gone ? 0 : UINT64_MAX;
    }

    const char *state = stat_field(text, 3);
    const char *threads = stat_field(text, 20);
    const char *start = stat_field(text, 22);

    if (start == NULL) {
        return UINT64_MAX;
    }
    /* A zombie holds nothing any more and may stay for ever, unless only its
     * first thread has ended. */
    if ((*state == 'Z' || *state == 'X') && strtoul(threads, NULL, 10) <= 1) {
        return 0;
    }
    return strtoull(start, NULL, 10);
}

bool wal__process_is_stopped(void *ctx, uint32_t pid)
{
    (void)ctx;
    const char *state;
    char text[STAT_SIZE];

    if (!read_proc_stat(pid, text)) {
        return false;
    }
    state = stat_field(text, 3);
    return state != NULL && (*state == 'T' || *state == 't');
}

/* Not the private kind of futex: the word may be shared between processes. */
void wal__futex_wait(void *ctx, const uint32_t *word, uint32_t expected,
                     uint64_t timeout_ns)
{
    (void)ctx;
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000),
        .tv_nsec = (long)(timeout_ns % 1000000000),
    };

    (void)syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
}

void wal__futex_wake(void *ctx, const uint32_t *word, uint32_t count)
{
    int most = count < INT_MAX ? (int)count : INT_MAX;

    (void)ctx;
    (void)syscall(SYS_futex, word, FUTEX_WAKE, most, NULL, NULL, 0);
}

int wal__eventfd_open(uint32_t count, int *sys_errno)
{
    int fd = eventfd(count, EFD_NONBLOCK | EFD_CLOEXEC);

    *sys_errno = fd < 0 ? errno : 0;
    return fd;
}

/* Fails only when the counter is at its limit: readable already. */
void wal__eventfd_signal(int fd)
{
    uint64_t one = 1;
    ssize_t result;

    RETRY_EINTR(result, write(fd, &one, sizeof(one)));
    (void)result;
}

void wal__eventfd_close(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}
