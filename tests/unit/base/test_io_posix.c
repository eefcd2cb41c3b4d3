/*
 * test_io_posix.c - tests of engine/io/io_posix and host on the real system:
 * the cases of every table (io_cases.h), and those of this one alone.
 * Every test runs in a separate empty directory, the current one.
 */
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/io.h"
#include "engine/base/linux/storage.h"
#include "engine/log/op.h"
#include "tests/lib/io_cases.h"
#include "tests/lib/test.h"

static const struct wal__io *const io = &wal__io_posix;

/* Takes the place of the C library's: file systems without it exist, but not wherever the tests
 * run. */
static int fallocate_errno;

int fallocate(int fd, int mode, off_t offset, off_t len)
{
    if (fallocate_errno != 0) {
        errno = fallocate_errno;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

/* Likewise: a system that has none. */
static int eventfd_errno;

int eventfd(unsigned int count, int flags)
{
    if (eventfd_errno != 0) {
        errno = eventfd_errno;
        return -1;
    }
    return (int)syscall(SYS_eventfd2, count, flags);
}

/* ------------------------------------------------------------ set-up --- */

struct place {
    char path[PATH_MAX];
    int back; /* the directory before */
};

static int enter(void **state)
{
    static struct place place;
    const char *base = getenv("TMPDIR");

    (void)snprintf(place.path, sizeof(place.path), "%s/agentwal-io.XXXXXX",
                   base == NULL ? "/tmp" : base);
    place.back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place.back < 0 || mkdtemp(place.path) == NULL || chdir(place.path) != 0) {
        return -1;
    }
    fallocate_errno = 0;
    io_case_set_io(io);
    *state = &place;
    return 0;
}

/* Tests leave files and empty directories, one level deep. */
static enum wal_status forget(void *arg, const char *name)
{
    (void)arg;
    return remove(name) == 0 ? WAL_OK : WAL_EIO;
}

static int leave(void **state)
{
    struct place *place = *state;
    int sys_errno = 0;
    int result = io->list(NULL, ".", forget, NULL, &sys_errno);

    if (fchdir(place->back) != 0 || rmdir(place->path) != 0) {
        result = -1;
    }
    (void)close(place->back);
    return result;
}

/* ------------------------------------------------------------- files --- */

TEST_WITH(io_posix__created_files_are_private, enter, leave)
{
    mode_t old = umask(0);
    int sys_errno = 0;
    struct stat st;

    io->close(NULL, io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE));
    assert_ok(io->make_directory(NULL, "d", &sys_errno));
    (void)umask(old);
    assert_int_equal(stat("a", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat("d", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

TEST_WITH(io_posix__descriptors_are_closed_on_exec, enter, leave)
{
    int before = open(".", O_RDONLY | O_CLOEXEC);
    struct wal__file *file;

    /* The lowest free number is the next one given out. */
    assert_int_equal(close(before), 0);
    file = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    assert_true((fcntl(before, F_GETFD) & FD_CLOEXEC) != 0);
    io->close(NULL, file);
    assert_int_equal(fcntl(before, F_GETFD), -1);
}

TEST_WITH(io_posix__only_regular_files_open, enter, leave)
{
    struct wal__file *file = NULL;
    int sys_errno = 0;
    int before = open(".", O_RDONLY | O_CLOEXEC);
    int after;

    assert_int_equal(close(before), 0);
    assert_ok(io->make_directory(NULL, "d", &sys_errno));
    assert_int_equal(mkfifo("f", 0600), 0);
    io_case_open_fails("d", 0, WAL_EIO, EISDIR);
    io_case_open_fails("d", WAL__IO_WRITE, WAL_EIO, EISDIR);
    io_case_open_fails("f", 0, WAL_EIO, ENXIO);
    io_case_open_fails("f", WAL__IO_WRITE, WAL_EIO, ENXIO);
    io_case_open_fails("/dev/null", 0, WAL_EIO, ENXIO);
    assert_int_equal(symlink("none", "l"), 0);
    io_case_open_fails("l", 0, WAL_EIO, ELOOP);
    io_case_open_fails("l", WAL__IO_WRITE | WAL__IO_CREATE, WAL_EIO, ELOOP);
    assert_int_not_equal(access("none", F_OK), 0);
    assert_ok(
        io->open(NULL, "l", WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_FOLLOW, &file, &sys_errno));
    io->close(NULL, file);

    /* No descriptor is left open. */
    after = open(".", O_RDONLY | O_CLOEXEC);
    assert_int_equal(after, before);
    assert_int_equal(close(after), 0);
}

TEST_WITH(io_posix__allocate_falls_back_to_writing, enter, leave)
{
    struct wal__file *file;
    int sys_errno = 0;

    fallocate_errno = EOPNOTSUPP;
    io_case_check_allocate("a");
    fallocate_errno = ENOSYS;
    io_case_check_allocate("b");

    /* Other failures are returned. */
    fallocate_errno = ENOSPC;
    file = io_case_open("c", WAL__IO_WRITE | WAL__IO_CREATE);
    assert_int_equal(io->allocate(NULL, file, 4096, &sys_errno), WAL_ENOSPACE);
    assert_int_equal(sys_errno, ENOSPC);
    assert_int_equal(io_case_stat(file).size, 0);
    io->close(NULL, file);
}

/* ------------------------------------------------------- event loops --- */

TEST(completion__without_eventfd_a_pipe_is_left)
{
    struct wal_error error = WAL_INIT(wal_error);
    struct wal__async_errors errors;
    int32_t fd = -1;

    wal__async_errors_init(&errors);
    eventfd_errno = ENOTSUP;
    assert_int_equal(wal__async_errors_completion_fd(&errors, WAL_COMPLETION_EVENTFD, &fd, &error),
                     WAL_EINVAL);
    assert_non_null(strstr(error.text, "a pipe"));
    eventfd_errno = EMFILE;
    assert_int_equal(wal__async_errors_completion_fd(&errors, WAL_COMPLETION_EVENTFD, &fd, &error),
                     WAL_ENOMEM);
    eventfd_errno = 0;
    assert_int_equal(fd, -1);
    assert_ok(wal__async_errors_completion_fd(&errors, WAL_COMPLETION_PIPE, &fd, &error));
    assert_true(fd > STDERR_FILENO);
    wal__async_errors_deinit(&errors);
}

/* ------------------------------------------------------------- locks --- */

TEST_WITH(io_posix__killed_process_releases_its_locks, enter, leave)
{
    struct wal__file *file = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    int ready[2];
    int how;
    char byte;
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct wal__file *own;
        int sys_errno;

        if (io->open(NULL, "a", WAL__IO_WRITE, &own, &sys_errno) == WAL_OK &&
            io->lock(NULL, own, 0, WAL__IO_LOCK_EXCLUSIVE, &sys_errno) == WAL_OK &&
            write(ready[1], "1", 1) == 1) {
            (void)pause();
        }
        _exit(1);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    assert_int_equal(io_case_lock(file, 0, WAL__IO_LOCK_EXCLUSIVE), WAL_ELOCKED);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_ok(io_case_lock(file, 0, WAL__IO_LOCK_EXCLUSIVE));
    io->close(NULL, file);
}

/* ------------------------------------------------------------- names --- */

TEST_WITH(io_posix__file_systems_are_distinguished, enter, leave)
{
    enum wal__storage storage = WAL__STORAGE_SHARED;
    char name[32] = "untouched";
    int sys_errno = 0;

    assert_int_equal(io->storage(NULL, "x", &storage, name, &sys_errno), WAL_ENOTFOUND);
    assert_int_equal(storage, WAL__STORAGE_SHARED);
    assert_string_equal(name, "untouched");

    /* One that is not listed: local, named by its number. */
    assert_ok(io->storage(NULL, "/proc", &storage, name, &sys_errno));
    assert_int_equal(storage, WAL__STORAGE_LOCAL);
    assert_string_equal(name, "0x00009fa0");
    storage = WAL__STORAGE_SHARED;
    assert_ok(io->storage(NULL, "/dev/shm", &storage, name, &sys_errno));
    assert_int_equal(storage, WAL__STORAGE_LOCAL);
    assert_string_equal(name, "tmpfs");
}

/* Lines as Linux writes them, with mounts of several kinds on devices without a disk. */
static const char mounts[] = "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
                             "36 35 0:40 / /with\\040blank rw - 9p host rw,dirsync,cache=mmap\n"
                             "37 35 0:41 / /a,-,9p rw,relatime shared:5 master:1 - overlay overlay "
                             "rw,lowerdir=/a:/b:/a-path-that-is-longer-than-a-name,volatile\n"
                             "38 35 0:42 / /kept rw - overlay overlay "
                             "rw,lowerdir=/volatile,upperdir=/u,nonvolatile,volatilex=1\n"
                             "39 35 0:43 / /x-path-that-is-31-bytes-long-x- rw - tmpfs none rw\n"
                             "40 35 0:44 /9p /9p rw - btrfs /dev/vdb rw,volatile\n"
                             "41 35 254:3 / /disk rw - 9p host rw\n"
                             "43 35 0:47 / /m rw - overlay overlay rw,uuid=on,fsync=volatile\n"
                             "44 35 0:48 / /m rw - overlay overlay rw,uuid=on,fsync=auto\n"
                             "45 35 0:49 / /m rw - fuse.sshfs host:/ rw,user_id=0\n"
                             "46 35 0:50 / /m rw - virtiofs share rw\n"
                             "42 35 0:45 / /cut rw -";

TEST_WITH(io_posix__mounts_decide_where_numbers_do_not, enter, leave)
{
    static const struct {
        uint32_t magic;
        unsigned major;
        unsigned minor;
        enum wal__storage storage;
        const char *name;
    } cases[] = {
        {0xEF53, 0, 40, WAL__STORAGE_SHARED, "9p"},
        {0x9123683E, 0, 40, WAL__STORAGE_SHARED, "9p"},
        {0x794C7630, 0, 41, WAL__STORAGE_VOLATILE, "overlay"},
        {0x794C7630, 0, 42, WAL__STORAGE_LOCAL, "overlay"},
        {0x794C7630, 0, 47, WAL__STORAGE_VOLATILE, "overlay"},
        {0x794C7630, 0, 48, WAL__STORAGE_LOCAL, "overlay"},
        {0x01021994, 0, 43, WAL__STORAGE_LOCAL, "tmpfs"},
        {0x9123683E, 0, 44, WAL__STORAGE_LOCAL, "btrfs"},
        {0xEF53, 254, 3, WAL__STORAGE_LOCAL, "ext4"},
        {0x6969, 0, 43, WAL__STORAGE_SHARED, "nfs"},
        {0x65735546, 0, 49, WAL__STORAGE_SHARED, "fuse.sshfs"},
        {0x65735546, 0, 50, WAL__STORAGE_SHARED, "virtiofs"},
        {0x65735546, 0, 51, WAL__STORAGE_SHARED, "fuse"},
        {0xEF53, 0, 45, WAL__STORAGE_LOCAL, "ext4"},
        {0xEF53, 0, 46, WAL__STORAGE_LOCAL, "ext4"},
    };
    FILE *file = fopen("mountinfo", "w");
    char name[32];

    assert_non_null(file);
    assert_int_equal(fwrite(mounts, sizeof(mounts) - 1, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(wal__file_system_storage(cases[i].magic,
                                                  makedev(cases[i].major, cases[i].minor),
                                                  "mountinfo", name),
                         cases[i].storage);
        assert_string_equal(name, cases[i].name);
    }
    assert_int_equal(wal__file_system_storage(0xEF53, makedev(0, 40), "missing", name),
                     WAL__STORAGE_LOCAL);
    assert_string_equal(name, "ext4");
}

TEST_WITH(io_posix__first_wsl_is_known_by_its_release, enter, leave)
{
    assert_true(wal__kernel_is_wsl1("4.4.0-22621-Microsoft"));
    assert_false(wal__kernel_is_wsl1("5.15.167.4-microsoft-standard-WSL2"));
    assert_false(wal__kernel_is_wsl1("6.1.0-28-amd64"));
}

/* -------------------------------------------- clocks, identity, chance --- */

TEST_WITH(io_posix__boot_id_is_the_systems, enter, leave)
{
    uint8_t id[16];
    char text[64] = "";
    char wanted[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    assert_non_null(file);
    assert_non_null(fgets(wanted, sizeof(wanted), file));
    (void)fclose(file);
    io->boot_id(NULL, id);
    for (size_t i = 0, at = 0; i < sizeof(id); i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%02x", dash, id[i]);
    }
    wanted[strcspn(wanted, "\n")] = '\0';
    assert_string_equal(text, wanted);
}

TEST_WITH(io_posix__start_time_of_a_process_is_constant, enter, leave)
{
    uint32_t self = io->process_id(NULL);
    uint64_t start = io->process_start_time(NULL, self);

    assert_int_equal(self, getpid());
    assert_true(start != 0 && start != UINT64_MAX);
    assert_int_equal(usleep(30000), 0);
    assert_true(io->process_start_time(NULL, self) == start);
    assert_true(io->process_start_time(NULL, 0) == 0);
    assert_true(io->process_start_time(NULL, UINT32_MAX) == 0);
    assert_true(io->process_start_time(NULL, INT32_MAX) == 0);
}

/* Neither fork() nor what it calls in the child has a part in this. */
static pid_t make_child(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

TEST_WITH(io_posix__child_has_another_process_id, enter, leave)
{
    uint32_t self = io->process_id(NULL);
    pid_t child;
    int how;

    assert_int_equal(self, getpid());
    child = make_child();
    assert_true(child >= 0);
    if (child == 0) {
        uint32_t id = io->process_id(NULL);

        _exit(id == (uint32_t)syscall(SYS_getpid) && id != self && id == io->process_id(NULL) ? 0
                                                                                              : 1);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_int_equal(io->process_id(NULL), self);
}

/* From now on madvise(2) returns 0 and does nothing, as qemu-user's. */
static bool ignore_advice(uint8_t *page)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {
        .len = sizeof(filter) / sizeof(filter[0]),
        .filter = filter,
    };

    /* The emulator itself refuses the filter, and needs none. */
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    return madvise(page, (size_t)sysconf(_SC_PAGESIZE), -1) == 0;
}

static int child_whose_advice_is_ignored(void)
{
    uint8_t *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int sys_errno = 0;
    uint32_t self;
    pid_t child;
    int how = 1;

    if (page == MAP_FAILED || !ignore_advice(page)) {
        return 1;
    }
    self = io->process_id(NULL);
    child = make_child();
    if (child == 0) {
        _exit(io->process_id(NULL) == (uint32_t)syscall(SYS_getpid) && io->process_id(NULL) != self
                  ? 0
                  : 1);
    }
    return child > 0 && waitpid(child, &how, 0) == child && how == 0 &&
                   io->populate(NULL, page, 1, &sys_errno) == WAL_EINVAL &&
                   io->populate_writable(NULL, page, 1, &sys_errno) != WAL_OK
               ? 0
               : 1;
}

/* Before a test lets the process find out what the kernel takes. */
static int check_ignored_advice(void)
{
    pid_t child = fork();
    int how = 1;

    if (child == 0) {
        _exit(child_whose_advice_is_ignored());
    }
    if (child < 0 || waitpid(child, &how, 0) != child || how != 0) {
        print_error("advice that the system ignores is relied on\n");
        return 1;
    }
    return 0;
}

TEST_WITH(io_posix__zombie_and_dead_process_are_not_running, enter, leave)
{
    siginfo_t info;
    int ready[2];
    int how;
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char byte;

        (void)close(ready[1]);
        _exit(read(ready[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)close(ready[0]);
    assert_true(io->process_start_time(NULL, (uint32_t)child) >=
                io->process_start_time(NULL, io->process_id(NULL)));
    (void)close(ready[1]);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(io->process_start_time(NULL, (uint32_t)child) == 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(io->process_start_time(NULL, (uint32_t)child) == 0);
}

TEST_WITH(io_posix__stopped_process_is_reported, enter, leave)
{
    uint32_t self = io->process_id(NULL);
    pid_t child = fork();
    int how;

    assert_true(child >= 0);
    if (child == 0) {
        (void)raise(SIGSTOP);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, WUNTRACED), child);
    assert_true(WIFSTOPPED(how));
    assert_true(io->process_is_stopped(NULL, (uint32_t)child));
    assert_false(io->process_is_stopped(NULL, self));
    assert_false(io->process_is_stopped(NULL, 0));
    assert_false(io->process_is_stopped(NULL, UINT32_MAX));
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &how, WCONTINUED), child);
    assert_false(io->process_is_stopped(NULL, (uint32_t)child));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_false(io->process_is_stopped(NULL, (uint32_t)child));
}

/* Waits for the first thread to end, and keeps running. */
static void *run_thread(void *arg)
{
    char byte;

    (void)read(*(int *)arg, &byte, 1);
    _exit(0);
}

TEST_WITH(io_posix__process_runs_while_one_thread_runs, enter, leave)
{
    int ready[2];
    int how;
    pid_t child;
    char path[64];
    char text[512];
    char status = 0;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static int end;
        pthread_t thread;

        (void)close(ready[1]);
        end = ready[0];
        if (pthread_create(&thread, NULL, run_thread, &end) != 0) {
            _exit(1);
        }
        /* Only the thread ends: pthread_exit would run clean-up code. */
        (void)syscall(SYS_exit, 0);
    }
    (void)close(ready[0]);
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
    while (status != 'Z') {
        FILE *file = fopen(path, "re");

        assert_non_null(file);
        assert_non_null(fgets(text, sizeof(text), file));
        (void)fclose(file);
        status = strrchr(text, ')')[2];
        (void)usleep(1000);
    }
    assert_true(io->process_start_time(NULL, (uint32_t)child) != 0);
    (void)close(ready[1]);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

TEST_WITH(io_posix__no_free_descriptor_is_not_a_dead_process, enter, leave)
{
    struct rlimit old;
    struct rlimit none;
    uint64_t self;
    uint64_t dead;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    self = io->process_start_time(NULL, io->process_id(NULL));
    dead = io->process_start_time(NULL, INT32_MAX);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_true(self == UINT64_MAX);
    assert_true(dead == 0);
}

/* -------------------------------------------------------------- pages --- */

/* The caller need not know the size of a page. */
TEST(io_posix__parts_of_pages_are_populated_and_evicted)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint8_t *at = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int sys_errno = 0;

    assert_true(at != MAP_FAILED);
    assert_ok(io->populate(NULL, at + 100, page, &sys_errno));
    assert_ok(io->populate_writable(NULL, at + page - 1, 2, &sys_errno));
    memset(at, 0xa5, 4 * page);
    io->evict(NULL, at + 100, 100);
    assert_int_equal(at[0], 0xa5);
    io->evict(NULL, at + 100, 3 * page);
    assert_int_equal(at[0], 0);
    assert_int_equal(at[3 * page - 1], 0);
    assert_int_equal(at[3 * page], 0xa5);
    assert_int_equal(munmap(at, 4 * page), 0);
}

/* ------------------------------------------------------------ waiting --- */

TEST_WITH(io_posix__a_wake_crosses_processes_and_maps, enter, leave)
{
    struct wal__file *file = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    void *ours = NULL;
    void *theirs = NULL;
    int sys_errno = 0;
    int how = 0;
    pid_t child;
    uint64_t before;

    assert_ok(io->allocate(NULL, file, 4096, &sys_errno));
    assert_ok(io->map(NULL, file, 4096, true, &ours, &sys_errno));
    assert_ok(io->map(NULL, file, 4096, false, &theirs, &sys_errno));
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const uint32_t *word = theirs;

        /* Ends a child that never sees the word change. */
        (void)alarm(60);
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) {
            io->futex_wait(NULL, word, 0, UINT64_C(30000000000));
        }
        _exit(0);
    }
    (void)usleep(20000);
    before = io->monotonic_ns(NULL);
    __atomic_store_n((uint32_t *)ours, 1, __ATOMIC_RELEASE);
    io->futex_wake(NULL, ours, UINT32_MAX);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    /* A lost wake would take the whole time-out. */
    assert_true(io->monotonic_ns(NULL) - before < UINT64_C(20000000000));
    io->unmap(NULL, ours, 4096);
    io->unmap(NULL, theirs, 4096);
    io->close(NULL, file);
}

/* In a child, whose standard streams are closed: what it prints then goes nowhere, and not into a
 * file. */
TEST_WITH(io_posix__files_leave_the_standard_streams_alone, enter, leave)
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        struct wal__file *file = NULL;
        char byte = 'x';
        struct wal__io_stat found;
        int error;

        for (int fd = 0; fd <= STDERR_FILENO; fd++) {
            (void)close(fd);
        }
        if (io->open(io->ctx, "file", WAL__IO_WRITE | WAL__IO_CREATE, &file, &error) != WAL_OK ||
            write(STDIN_FILENO, &byte, 1) == 1 || write(STDOUT_FILENO, &byte, 1) == 1 ||
            write(STDERR_FILENO, &byte, 1) == 1 ||
            io->stat(io->ctx, file, &found, &error) != WAL_OK) {
            _exit(1);
        }
        _exit(found.size == 0 ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int run_cases(void)
{
    int failed = check_ignored_advice();

    return failed + io_cases_run("io_posix, as every table", enter, leave);
}

TEST_FILE(NULL, NULL, run_cases);
