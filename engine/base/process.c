/*
 * process.c - processes on Linux (process.h). No section of SPEC.md. Invariant:
 * a failure to look at a process is reported as "unknown", so that a live
 * process is never taken for a dead one. Any thread.
 */
#include "engine/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "format/bytes/assert.h"

enum {
    STAT_SIZE = 1024
};

/* Reads the first size - 1 bytes of a file of /proc and terminates them. */
static bool read_proc_file(const char *path, char *text, size_t size)
{
    int fd;
    ssize_t bytes_read;

    WAL__RETRY_EINTR(fd, open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0) {
        return false;
    }
    WAL__RETRY_EINTR(bytes_read, read(fd, text, size - 1));
    (void)close(fd);
    if (bytes_read <= 0) {
        return false;
    }
    WAL__ASSERT((size_t)bytes_read < size);
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

/* Every public call compares the process id, and getpid(2) costs more than some
 * of them. The id is cached in a page that the kernel zeroes for every child,
 * also one of clone(2). 0: not cached yet; null: caching is not possible. */
static pthread_once_t cached_pid_once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t *cached_pid;

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

/* The start of field `number`, at least 3, of /proc/PID/stat, or null. */
static const char *stat_field(const char *text, int number)
{
    /* Field 2, the command, is in parentheses and may contain them. */
    const char *start = strrchr(text, ')');

    for (int field = 2; start != NULL && field < number; field++) {
        start = strchr(start, ' ');
        start = start == NULL ? NULL : start + 1;
    }
    return start;
}

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
    /* A zombie has no descriptors and may stay for ever. If only its first
     * thread has ended, the process is alive. */
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
