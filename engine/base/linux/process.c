/*
 * process.c - the part of system.h that concerns processes, on Linux.
 *
 * Invariant: a failure to look at a process is reported as "unknown", so that a live process is
 * never taken for a dead one. Any thread.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "engine/base/descriptor.h"
#include "engine/base/linux/storage.h"
#include "engine/base/system.h"
#include "format/bytes/assert.h"

/* --- words of shared maps ----------------------------------------------- */

/* Not FUTEX_PRIVATE_FLAG: the word may be shared between processes. */
void wal__system_wait(const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000),
        .tv_nsec = (long)(timeout_ns % 1000000000),
    };

    (void)syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
}

void wal__system_wake(const uint32_t *word, uint32_t count)
{
    int wake_max = count < INT_MAX ? (int)count : INT_MAX;

    (void)syscall(SYS_futex, word, FUTEX_WAKE, wake_max, NULL, NULL, 0);
}

/* --- processes ---------------------------------------------------------- */

enum { STAT_SIZE = 1024 };

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

void wal__system_boot_id(uint8_t out[16])
{
    char text[64];

    if (!read_proc_file("/proc/sys/kernel/random/boot_id", text, sizeof(text))) {
        text[0] = '\0';
    }
    wal__io_parse_boot_id(text, out);
}

/* Every public call compares the process id, and getpid(2) costs more than some of them. The id is
 * cached in a page that the kernel zeroes for every child, also one of clone(2). 0: not cached yet;
 * null: caching is not possible. */
static pthread_once_t cached_pid_once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t *cached_pid;

static void init_cached_pid(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        return;
    }
    if (!wal__linux_takes_advice() || madvise(page, size, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, size);
        return;
    }
    cached_pid = page;
}

uint32_t wal__system_process_id(void)
{
    uint32_t id;

    if (pthread_once(&cached_pid_once, init_cached_pid) != 0 || cached_pid == NULL) {
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

uint64_t wal__system_start_time(uint32_t pid)
{
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
    /* A zombie has no descriptors and may stay for ever. If only its first thread has ended, the
     * process is alive. */
    if ((*state == 'Z' || *state == 'X') && strtoul(threads, NULL, 10) <= 1) {
        return 0;
    }
    return strtoull(start, NULL, 10);
}

uint64_t wal__system_process_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

bool wal__system_is_stopped(uint32_t pid)
{
    const char *state;
    char text[STAT_SIZE];

    if (!read_proc_stat(pid, text)) {
        return false;
    }
    state = stat_field(text, 3);
    return state != NULL && (*state == 'T' || *state == 't');
}

/* --- processes that keep removed files ---------------------------------- */

static const char removed[] = " (deleted)";

/* Returns whether the path of `size` bytes is below the directory, and of a file that has no name
 * any more. */
static bool is_removed(const char *path, size_t size, const char *directory)
{
    size_t below = strlen(directory);

    return size >= below + sizeof(removed) && memcmp(path, directory, below) == 0 &&
           path[below] == '/' &&
           memcmp(path + size - (sizeof(removed) - 1), removed, sizeof(removed) - 1) == 0;
}

/* Bytes of a line of /proc/PID/maps if it is of such a file; else 0. */
static uint64_t mapped_bytes(const char *line, const char *directory)
{
    const char *path = strchr(line, '/');
    char *dash;
    uint64_t from = strtoull(line, &dash, 16);
    uint64_t to = *dash == '-' ? strtoull(dash + 1, NULL, 16) : from;

    return path != NULL && is_removed(path, strcspn(path, "\n"), directory) ? to - from : 0;
}

static uint64_t sum_maps(const char *pid, const char *directory)
{
    char line[PATH_MAX + 128];
    char path[64];
    uint64_t bytes = 0;
    FILE *maps;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
    maps = fopen(path, "re");
    if (maps == NULL) {
        return 0;
    }
    while (fgets(line, sizeof(line), maps) != NULL) {
        bytes += mapped_bytes(line, directory);
    }
    (void)fclose(maps);
    return bytes;
}

/* Bytes of such files that a process has open. */
static uint64_t sum_files(const char *pid, const char *directory)
{
    char target[PATH_MAX];
    char path[64];
    uint64_t bytes = 0;
    DIR *files;
    const struct dirent *entry;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    files = opendir(path);
    while (files != NULL && (entry = readdir(files)) != NULL) {
        ssize_t size = readlinkat(dirfd(files), entry->d_name, target, sizeof(target));
        struct stat stat;

        if (size > 0 && is_removed(target, (size_t)size, directory) &&
            fstatat(dirfd(files), entry->d_name, &stat, 0) == 0) {
            bytes += (uint64_t)stat.st_size;
        }
    }
    if (files != NULL) {
        (void)closedir(files);
    }
    return bytes;
}

/* Most files that are open are mapped too. */
static uint64_t kept_bytes(const char *pid, const char *directory)
{
    uint64_t mapped = sum_maps(pid, directory);
    uint64_t open = sum_files(pid, directory);

    return mapped > open ? mapped : open;
}

void wal__system_list_mappers(const char *directory,
                              void (*each)(void *arg, uint32_t pid, uint64_t bytes), void *arg)
{
    char whole[PATH_MAX];
    DIR *processes = realpath(directory, whole) == NULL ? NULL : opendir("/proc");
    const struct dirent *entry;

    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        unsigned long pid =
            isdigit((unsigned char)entry->d_name[0]) ? strtoul(entry->d_name, NULL, 10) : 0;
        uint64_t bytes = pid == 0 ? 0 : kept_bytes(entry->d_name, whole);

        if (bytes > 0) {
            each(arg, (uint32_t)pid, bytes);
        }
    }
    if (processes != NULL) {
        (void)closedir(processes);
    }
}

/* --- threads ------------------------------------------------------------ */

void wal__system_name_thread(const char *name)
{
    (void)pthread_setname_np(pthread_self(), name);
}

uint32_t wal__system_processors(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return 1;
    }
    return (uint32_t)CPU_COUNT(&set);
}

bool wal__system_is_real_time(void)
{
    int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

    return policy == SCHED_FIFO || policy == SCHED_RR;
}

void wal__system_mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;

    (void)pthread_mutexattr_init(&attributes);
#ifdef __GLIBC__
    (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    (void)pthread_mutex_init(mutex, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
}

void wal__system_rwlock_init(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attributes;

    (void)pthread_rwlockattr_init(&attributes);
#ifdef __GLIBC__
    (void)pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
    (void)pthread_rwlock_init(lock, &attributes);
    (void)pthread_rwlockattr_destroy(&attributes);
}

void wal__system_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

int wal__system_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                          const struct timespec *until)
{
    return pthread_cond_timedwait(cond, mutex, until);
}

/* --- memory for secrets --------------------------------------------------- */

void *wal__system_secret_alloc(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED) {
        return NULL;
    }
    (void)mlock(at, size);
    (void)madvise(at, size, MADV_DONTDUMP);
    return at;
}

void wal__system_secret_free(void *at, size_t size)
{
    (void)munmap(at, size);
}

ssize_t wal__system_keyring_read(const char *name, void *out, size_t room)
{
    static const int rings[] = {KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_KEYRING};
    long key = -1;

    for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]) && key < 0; i++) {
        key = syscall(SYS_keyctl, KEYCTL_SEARCH, rings[i], "user", name, 0);
    }
    return key < 0 ? -1 : syscall(SYS_keyctl, KEYCTL_READ, key, out, room, 0);
}

/* --- clocks and random bytes -------------------------------------------- */

int64_t wal__system_clock_ns(enum wal__system_clock clock)
{
    static const clockid_t ids[] = {
        [WAL__CLOCK_COARSE] = CLOCK_MONOTONIC_COARSE,
        [WAL__CLOCK_FILES] = CLOCK_REALTIME_COARSE,
        [WAL__CLOCK_BOOT] = CLOCK_BOOTTIME,
    };
    struct timespec now = {0};

    (void)clock_gettime(ids[clock], &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void wal__system_random(void *data, size_t size)
{
    uint8_t *out = data;

    while (size > 0) {
        ssize_t result;

        WAL__RETRY_EINTR(result, getrandom(out, size, 0));
        WAL__ASSERT(result > 0);
        out += result;
        size -= (size_t)result;
    }
}

/* --- descriptors -------------------------------------------------------- */

int wal__system_pipe(int ends[2])
{
    return pipe2(ends, O_NONBLOCK | O_CLOEXEC);
}

int wal__system_blocking_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC);
}

int wal__system_event(bool is_signalled)
{
    return eventfd(is_signalled, EFD_NONBLOCK | EFD_CLOEXEC);
}

int wal__system_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int wal__system_socket_pair(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
}

int wal__system_peer_user(int fd, uid_t *user)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    int result = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);

    *user = peer.uid;
    return result;
}

/* --- programs ----------------------------------------------------------- */

int wal__system_program(char *path, size_t size)
{
    ssize_t read = readlink("/proc/self/exe", path, size - 1);

    path[read > 0 ? read : 0] = '\0';
    return read < 0 ? -1 : 0;
}

void wal__system_process_name(uint32_t pid, char *name, size_t size)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%u/comm", (unsigned)pid);
    if (!read_proc_file(path, name, size)) {
        name[0] = '\0';
    }
    name[strcspn(name, "\n")] = '\0';
}

int wal__system_wait_signal(const sigset_t *signals, uint64_t timeout_ns)
{
    const struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000),
        .tv_nsec = (long)(timeout_ns % 1000000000),
    };

    return sigtimedwait(signals, NULL, &timeout);
}

void wal__system_wipe(void *data, size_t size)
{
    explicit_bzero(data, size);
}

void wal__system_limit_heap(size_t returned_size)
{
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, (int)returned_size);
    (void)mallopt(M_ARENA_MAX, 2);
#else
    (void)returned_size; /* other heaps have no arenas, and return what is large */
#endif
}

bool wal__system_put(FILE *file, const void *data, size_t size)
{
    return fwrite_unlocked(data, 1, size, file) == size;
}

FILE *wal__system_open_stream(void *ctx, ssize_t (*write)(void *ctx, const char *data, size_t size))
{
    return fopencookie(ctx, "w", (cookie_io_functions_t){.write = write});
}

int wal__system_compile(regex_t *out, const char *expression, int flags)
{
    locale_t bytes = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = uselocale(bytes);
    int code = regcomp(out, expression, flags);

    (void)uselocale(before);
    freelocale(bytes);
    return code;
}
