/*
 * process.c - the part of system.h that concerns processes, on macOS.
 *
 * Invariant: a failure to look at a process is reported as "unknown", so that a live process is
 * never taken for a dead one. Any thread.
 */
#define __STDC_WANT_LIB_EXT1__ 1 /* memset_s */

#include <assert.h>
#include <errno.h>
#include <libproc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/proc.h>
#include <sys/socket.h>
#include <sys/sysctl.h>
#include <time.h>
#include <unistd.h>
#include <xlocale.h>

#include "engine/base/darwin/portable.h"
#include "engine/base/heap.h"
#include "engine/base/system.h"

static_assert(sizeof(pid_t) == sizeof(uint32_t), "process ids have 32 bits");

/* --- words of shared maps ----------------------------------------------- */

/* The C library of macOS 11 and later; the public calls are of macOS 14.4. */
int __ulock_wait2(uint32_t operation, void *word, uint64_t value, uint64_t timeout_ns,
                  uint64_t value2);
int __ulock_wake(uint32_t operation, void *word, uint64_t value);

enum {
    COMPARE_AND_WAIT_SHARED = 3, /* the word may be shared between processes */
    WAKE_ALL = 0x100,
    NO_ERRNO = 0x1000000 /* return -errno */
};

void wal__system_wait(const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    int result = 0;

    if (timeout_ns == 0) {
        return; /* without an end to __ulock_wait2 */
    }
    result = __ulock_wait2(COMPARE_AND_WAIT_SHARED | NO_ERRNO, (void *)(uintptr_t)word, expected,
                           timeout_ns, 0);
    if (result < 0 && result != -EINTR && result != -ETIMEDOUT && result != -EFAULT) {
        wal__portable_wait(word, expected, timeout_ns);
    }
}

void wal__system_wake(const uint32_t *word, uint32_t count)
{
    uint32_t operation = COMPARE_AND_WAIT_SHARED | NO_ERRNO | (count > 1 ? WAKE_ALL : 0);

    (void)__ulock_wake(operation, (void *)(uintptr_t)word, 0);
}

/* --- processes ---------------------------------------------------------- */

void wal__system_boot_id(uint8_t out[16])
{
    char text[64] = "";
    size_t size = sizeof(text) - 1;

    if (sysctlbyname("kern.bootsessionuuid", text, &size, NULL, 0) != 0) {
        text[0] = '\0';
    }
    wal__io_parse_boot_id(text, out);
}

/* 0: not cached. */
static pthread_once_t registering = PTHREAD_ONCE_INIT;
static _Atomic uint32_t cached_pid;
static bool is_registered;

static void forget_pid(void)
{
    atomic_store(&cached_pid, 0);
}

static void register_atfork(void)
{
    is_registered = pthread_atfork(NULL, NULL, forget_pid) == 0;
}

uint32_t wal__system_process_id(void)
{
    uint32_t id = atomic_load_explicit(&cached_pid, memory_order_relaxed);

    if (id == 0) {
        id = (uint32_t)getpid();
        if (pthread_once(&registering, register_atfork) == 0 && is_registered) {
            atomic_store_explicit(&cached_pid, id, memory_order_relaxed);
        }
    }
    return id;
}

/* 1: found, 0: there is none, -1: unknown. */
static int find_process(uint32_t pid, struct kinfo_proc *info)
{
    int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, (int)pid};
    size_t size = sizeof(*info);

    if (sysctl(name, sizeof(name) / sizeof(name[0]), info, &size, NULL, 0) == 0 &&
        size == sizeof(*info)) {
        return 1;
    }
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH ? 0 : -1;
}

uint64_t wal__system_start_time(uint32_t pid)
{
    struct kinfo_proc info = {0};
    int found = pid == 0 || pid > INT32_MAX ? 0 : find_process(pid, &info);

    if (found <= 0 || info.kp_proc.p_stat == SZOMB) {
        return found < 0 ? UINT64_MAX : 0;
    }
    return (uint64_t)info.kp_proc.p_starttime.tv_sec * 1000000 +
           (uint64_t)info.kp_proc.p_starttime.tv_usec;
}

uint64_t wal__system_process_namespace(void)
{
    return 0;
}

bool wal__system_is_stopped(uint32_t pid)
{
    struct kinfo_proc info = {0};

    return find_process(pid, &info) > 0 && info.kp_proc.p_stat == SSTOP;
}

/* What others have mapped is not to be found out without privileges. */
void wal__system_list_mappers(const char *directory,
                              void (*each)(void *arg, uint32_t pid, uint64_t bytes), void *arg)
{
    (void)directory;
    (void)each;
    (void)arg;
}

/* --- threads ------------------------------------------------------------ */

void wal__system_name_thread(const char *name)
{
    (void)pthread_setname_np(name);
}

uint32_t wal__system_processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count < 1 ? 1 : (uint32_t)count;
}

bool wal__system_is_real_time(void)
{
    struct sched_param ignored;
    int policy = SCHED_OTHER;

    return pthread_getschedparam(pthread_self(), &policy, &ignored) == 0 &&
           (policy == SCHED_FIFO || policy == SCHED_RR);
}

void wal__system_mutex_init(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_init(mutex, NULL);
}

void wal__system_rwlock_init(pthread_rwlock_t *lock)
{
    (void)pthread_rwlock_init(lock, NULL);
}

void wal__system_cond_init(pthread_cond_t *cond)
{
    (void)pthread_cond_init(cond, NULL);
}

int wal__system_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                          const struct timespec *until)
{
    struct timespec left;

    return wal__portable_left(until, &left) ? pthread_cond_timedwait_relative_np(cond, mutex, &left)
                                            : ETIMEDOUT;
}

/* --- memory for secrets --------------------------------------------------- */

/* Core files have it: the system has no advice against that. */
void *wal__system_secret_alloc(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);

    if (at == MAP_FAILED) {
        return NULL;
    }
    (void)mlock(at, size);
    return at;
}

void wal__system_secret_free(void *at, size_t size)
{
    (void)munmap(at, size);
}

ssize_t wal__system_keyring_read(const char *name, void *out, size_t room)
{
    (void)name;
    (void)out;
    (void)room;
    errno = ENOTSUP;
    return -1;
}

/* --- clocks and random bytes -------------------------------------------- */

int64_t wal__system_clock_ns(enum wal__system_clock clock)
{
    static const clockid_t ids[] = {
        [WAL__CLOCK_COARSE] = CLOCK_MONOTONIC_RAW_APPROX,
        [WAL__CLOCK_FILES] = CLOCK_REALTIME,
        [WAL__CLOCK_BOOT] = CLOCK_MONOTONIC,
    };
    struct timespec now = {0};

    (void)clock_gettime(ids[clock], &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void wal__system_random(void *data, size_t size)
{
    arc4random_buf(data, size);
}

/* --- descriptors -------------------------------------------------------- */

int wal__system_pipe(int ends[2])
{
    return wal__portable_set_ends(ends, false, pipe(ends));
}

int wal__system_blocking_pipe(int ends[2])
{
    return wal__portable_set_ends(ends, true, pipe(ends));
}

/* A kqueue is readable, but cannot be read, which its users would have to. */
int wal__system_event(bool is_signalled)
{
    (void)is_signalled;
    errno = ENOTSUP;
    return -1;
}

static int raise_no_signal(int fd)
{
    const int on = 1;

    return setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
}

int wal__system_socket(int family)
{
    int fd = socket(family, SOCK_STREAM, 0);

    if (fd >= 0 && (wal__portable_set_flags(fd, false) < 0 || raise_no_signal(fd) < 0)) {
        int error = errno;

        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int wal__system_socket_pair(int ends[2])
{
    int result = wal__portable_set_ends(ends, false, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));

    if (result == 0) {
        (void)raise_no_signal(ends[0]);
        (void)raise_no_signal(ends[1]);
    }
    return result;
}

int wal__system_peer_user(int fd, uid_t *user)
{
    gid_t ignored;

    return getpeereid(fd, user, &ignored);
}

/* --- programs ----------------------------------------------------------- */

int wal__system_program(char *path, size_t size)
{
    return proc_pidpath(getpid(), path, (uint32_t)size) > 0 ? 0 : -1;
}

void wal__system_process_name(uint32_t pid, char *name, size_t size)
{
    if (proc_name((int)pid, name, (uint32_t)size) <= 0) {
        name[0] = '\0';
    }
}

int wal__system_wait_signal(const sigset_t *signals, uint64_t timeout_ns)
{
    return wal__portable_wait_signal(signals, timeout_ns);
}

void wal__system_wipe(void *data, size_t size)
{
    (void)memset_s(data, size, 0, size);
}

void wal__system_limit_heap(size_t returned_size)
{
    (void)returned_size;
}

bool wal__system_put(FILE *file, const void *data, size_t size)
{
    return fwrite(data, 1, size, file) == size;
}

struct stream {
    void *ctx;
    ssize_t (*write)(void *ctx, const char *data, size_t size);
};

static int stream_write(void *cookie, const char *data, int size)
{
    struct stream *stream = cookie;

    return (int)stream->write(stream->ctx, data, (size_t)size);
}

static int stream_close(void *cookie)
{
    wal__heap_free(&wal__heap_libc, cookie);
    return 0;
}

FILE *wal__system_open_stream(void *ctx, ssize_t (*write)(void *ctx, const char *data, size_t size))
{
    struct stream *stream = wal__heap_alloc(&wal__heap_libc, sizeof(*stream));
    FILE *file;

    if (stream == NULL) {
        return NULL;
    }
    *stream = (struct stream){ctx, write};
    file = funopen(stream, NULL, stream_write, NULL, stream_close);
    if (file == NULL) {
        wal__heap_free(&wal__heap_libc, stream);
    }
    return file;
}

int wal__system_compile(regex_t *out, const char *expression, int flags)
{
    return regcomp_l(out, expression, flags, LC_C_LOCALE);
}
