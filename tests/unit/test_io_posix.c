/*
 * test_io_posix.c - tests of engine/io/io_posix and host on the real system.
 * Every test runs in an empty directory of its own, which is the current one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/io/io.h"

static const struct wal__io *const io = &wal__io_posix;

/* Takes the place of the C library's: file systems without it exist, but not
 * wherever the tests run. */
static int fallocate_errno;

int fallocate(int fd, int mode, off_t offset, off_t len)
{
    if (fallocate_errno != 0) {
        errno = fallocate_errno;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, len);
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
    if (place.back < 0 || mkdtemp(place.path) == NULL ||
        chdir(place.path) != 0) {
        return -1;
    }
    fallocate_errno = 0;
    *state = &place;
    return 0;
}

/* Tests leave files and empty directories behind, one level deep. */
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

static struct wal__file *open_file(const char *path, int flags)
{
    struct wal__file *file = NULL;
    int sys_errno = 0;

    assert_int_equal(io->open(NULL, path, flags, &file, &sys_errno), WAL_OK);
    assert_non_null(file);
    return file;
}

static void assert_open_fails(const char *path, int flags,
                              enum wal_status status, int error)
{
    struct wal__file *file = NULL;
    int sys_errno = 0;

    assert_int_equal(io->open(NULL, path, flags, &file, &sys_errno), status);
    assert_int_equal(sys_errno, error);
    assert_null(file);
}

static void put(struct wal__file *file, const char *text, uint64_t offset)
{
    char copy[256];
    struct iovec iov = {copy, strlen(text)};
    int sys_errno = 0;

    assert_true(iov.iov_len <= sizeof(copy));
    memcpy(copy, text, iov.iov_len);
    assert_int_equal(wal__io_write_full(io, file, &iov, 1, offset, &sys_errno),
                     WAL_OK);
}

static struct wal__io_stat stat_file(struct wal__file *file)
{
    struct wal__io_stat st = {0};
    int sys_errno = 0;

    assert_int_equal(io->stat(NULL, file, &st, &sys_errno), WAL_OK);
    return st;
}

/* ------------------------------------------------------------- files --- */

static void test_io_posix__open_follows_its_flags(void **state)
{
    (void)state;
    struct wal__file *file;
    char byte;
    size_t got = 0;
    struct iovec iov = {&byte, 1};
    int sys_errno = 0;

    assert_open_fails("a", 0, WAL_ENOTFOUND, ENOENT);
    assert_open_fails("a", WAL__IO_WRITE, WAL_ENOTFOUND, ENOENT);
    file = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE);
    put(file, "hello", 0);
    io->close(NULL, file);
    assert_open_fails("a", WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE,
                      WAL_EEXISTS, EEXIST);

    file = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE);
    assert_int_equal(stat_file(file).size, 5);
    io->close(NULL, file);

    file = open_file("a", 0);
    assert_int_equal(io->pread(NULL, file, &byte, 1, 4, &got, &sys_errno),
                     WAL_OK);
    assert_int_equal(got, 1);
    assert_int_equal(byte, 'o');
    got = 99;
    assert_int_equal(io->pwritev(NULL, file, &iov, 1, 0, &got, &sys_errno),
                     WAL_EIO);
    assert_int_equal(sys_errno, EBADF);
    assert_int_equal(got, 99);
    io->close(NULL, file);

    file = open_file("a", WAL__IO_WRITE | WAL__IO_TRUNCATE);
    assert_int_equal(stat_file(file).size, 0);
    io->close(NULL, file);
}

static void test_io_posix__what_is_made_is_private(void **state)
{
    (void)state;
    mode_t old = umask(0);
    int sys_errno = 0;
    struct stat st;

    io->close(NULL, open_file("a", WAL__IO_WRITE | WAL__IO_CREATE));
    assert_int_equal(io->make_directory(NULL, "d", &sys_errno), WAL_OK);
    (void)umask(old);
    assert_int_equal(stat("a", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat("d", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void test_io_posix__descriptors_are_closed_on_exec(void **state)
{
    (void)state;
    int before = open(".", O_RDONLY | O_CLOEXEC);
    struct wal__file *file;

    /* The lowest free number is the next one given out. */
    assert_int_equal(close(before), 0);
    file = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE);
    assert_true((fcntl(before, F_GETFD) & FD_CLOEXEC) != 0);
    io->close(NULL, file);
    assert_int_equal(fcntl(before, F_GETFD), -1);
}

static void test_io_posix__only_regular_files_open(void **state)
{
    (void)state;
    int sys_errno = 0;
    int before = open(".", O_RDONLY | O_CLOEXEC);
    int after;

    assert_int_equal(close(before), 0);
    assert_int_equal(io->make_directory(NULL, "d", &sys_errno), WAL_OK);
    assert_int_equal(mkfifo("f", 0600), 0);
    assert_open_fails("d", 0, WAL_EIO, EISDIR);
    assert_open_fails("d", WAL__IO_WRITE, WAL_EIO, EISDIR);
    assert_open_fails("f", 0, WAL_EIO, EINVAL);
    assert_open_fails("f", WAL__IO_WRITE, WAL_EIO, EINVAL);

    /* No descriptor is left open. */
    after = open(".", O_RDONLY | O_CLOEXEC);
    assert_int_equal(after, before);
    assert_int_equal(close(after), 0);
}

static void test_io_posix__a_file_as_a_folder_is_not_found(void **state)
{
    (void)state;
    struct wal__io_stat st;
    int sys_errno = 0;

    io->close(NULL, open_file("a", WAL__IO_WRITE | WAL__IO_CREATE));
    assert_open_fails("a/b", 0, WAL_ENOTFOUND, ENOTDIR);
    assert_int_equal(io->path_stat(NULL, "a/b", &st, &sys_errno),
                     WAL_ENOTFOUND);
    assert_int_equal(sys_errno, ENOTDIR);
}

static void test_io_posix__more_pieces_than_the_system_takes(void **state)
{
    (void)state;
    enum {
        count = 3000
    };
    static uint8_t data[count * 3];
    static uint8_t back[count * 3 + 1];
    static struct iovec iov[count];
    struct wal__file *file = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE);
    size_t got = 0;
    int sys_errno = 0;

    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 13);
    }
    for (size_t i = 0; i < count; i++) {
        iov[i] = (struct iovec){data + i * 3, 3};
    }
    assert_int_equal(wal__io_write_full(io, file, iov, count, 100, &sys_errno),
                     WAL_OK);
    assert_int_equal(
        wal__io_read_full(io, file, back, sizeof(back), 100, &got, &sys_errno),
        WAL_OK);
    assert_int_equal(got, sizeof(data));
    assert_memory_equal(back, data, sizeof(data));
    assert_int_equal(io->sync(NULL, file, &sys_errno), WAL_OK);
    io->close(NULL, file);
}

static void test_io_posix__offsets_beyond_the_system_are_refused(void **state)
{
    (void)state;
    struct wal__file *file = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE);
    char byte = 0;
    size_t got = 0;
    int sys_errno = 0;

    assert_int_equal(
        io->pread(NULL, file, &byte, 1, UINT64_MAX, &got, &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EINVAL);
    assert_int_equal(io->allocate(NULL, file, UINT64_MAX, &sys_errno), WAL_EIO);
    assert_int_equal(stat_file(file).size, 0);
    io->close(NULL, file);
}

/* Both ways of allocating keep what is there and put zeros behind it. */
static void check_allocate(const char *path)
{
    struct wal__file *file = open_file(path, WAL__IO_WRITE | WAL__IO_CREATE);
    static uint8_t back[200000];
    size_t got = 0;
    int sys_errno = 0;

    put(file, "hello", 0);
    assert_int_equal(io->allocate(NULL, file, 0, &sys_errno), WAL_OK);
    assert_int_equal(stat_file(file).size, 5);
    assert_int_equal(io->allocate(NULL, file, 150001, &sys_errno), WAL_OK);
    assert_int_equal(stat_file(file).size, 150001);
    assert_int_equal(io->sync(NULL, file, &sys_errno), WAL_OK);
    assert_true(stat_file(file).allocated >= 150001);
    assert_int_equal(
        wal__io_read_full(io, file, back, sizeof(back), 0, &got, &sys_errno),
        WAL_OK);
    assert_int_equal(got, 150001);
    assert_memory_equal(back, "hello", 5);
    for (size_t i = 5; i < got; i++) {
        assert_int_equal(back[i], 0);
    }

    /* Never shorter. */
    assert_int_equal(io->allocate(NULL, file, 100, &sys_errno), WAL_OK);
    assert_int_equal(stat_file(file).size, 150001);
    io->close(NULL, file);
}

static void test_io_posix__allocate_reserves_zeros(void **state)
{
    (void)state;
    check_allocate("a");
}

static void test_io_posix__allocate_writes_where_it_must(void **state)
{
    (void)state;
    struct wal__file *file;
    int sys_errno = 0;

    fallocate_errno = EOPNOTSUPP;
    check_allocate("a");
    fallocate_errno = ENOSYS;
    check_allocate("b");

    /* Other failures are failures. */
    fallocate_errno = ENOSPC;
    file = open_file("c", WAL__IO_WRITE | WAL__IO_CREATE);
    assert_int_equal(io->allocate(NULL, file, 4096, &sys_errno), WAL_ENOSPACE);
    assert_int_equal(sys_errno, ENOSPC);
    assert_int_equal(stat_file(file).size, 0);
    io->close(NULL, file);
}

static void test_io_posix__stat_tells_files_apart(void **state)
{
    (void)state;
    struct wal__file *a = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__file *b = open_file("b", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__io_stat by_path = {0};
    struct wal__io_stat by_file;
    int sys_errno = 0;

    put(a, "hello", 1000);
    by_file = stat_file(a);
    assert_int_equal(io->path_stat(NULL, "a", &by_path, &sys_errno), WAL_OK);
    assert_int_equal(by_file.size, 1005);
    assert_int_equal(by_path.size, 1005);
    assert_false(by_path.is_directory);
    assert_true(by_path.inode == by_file.inode);
    assert_true(by_path.device == by_file.device);
    assert_true(by_file.inode != stat_file(b).inode);
    assert_int_equal(io->path_stat(NULL, ".", &by_path, &sys_errno), WAL_OK);
    assert_true(by_path.is_directory);
    by_path.size = 4711;
    assert_int_equal(io->path_stat(NULL, "x", &by_path, &sys_errno),
                     WAL_ENOTFOUND);
    assert_int_equal(by_path.size, 4711);
    io->close(NULL, a);
    io->close(NULL, b);
}

static void test_io_posix__a_map_sees_writes_and_outlives_the_file(void **state)
{
    (void)state;
    struct wal__file *file = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__file *reader;
    void *view = NULL;
    void *page = NULL;
    char back[5];
    size_t got = 0;
    int sys_errno = 0;

    assert_int_equal(io->allocate(NULL, file, 8192, &sys_errno), WAL_OK);
    reader = open_file("a", 0);
    assert_int_equal(io->map(NULL, reader, 8192, false, &view, &sys_errno),
                     WAL_OK);
    assert_int_equal(io->map(NULL, file, 8192, true, &page, &sys_errno),
                     WAL_OK);
    put(file, "hello", 5000);
    assert_memory_equal((char *)view + 5000, "hello", 5);
    memcpy((char *)page + 100, "world", 5);
    assert_memory_equal((char *)view + 100, "world", 5);
    assert_int_equal(io->pread(NULL, reader, back, 5, 100, &got, &sys_errno),
                     WAL_OK);
    assert_memory_equal(back, "world", 5);

    io->close(NULL, file);
    io->close(NULL, reader);
    assert_int_equal(io->unlink(NULL, "a", &sys_errno), WAL_OK);
    assert_memory_equal((char *)view + 5000, "hello", 5);
    io->unmap(NULL, view, 8192);
    io->unmap(NULL, page, 8192);
}

static void test_io_posix__maps_that_cannot_be(void **state)
{
    (void)state;
    struct wal__file *file;
    void *at = NULL;
    int sys_errno = 0;

    io->close(NULL, open_file("a", WAL__IO_WRITE | WAL__IO_CREATE));
    file = open_file("a", 0);
    assert_int_equal(io->map(NULL, file, 4096, true, &at, &sys_errno),
                     WAL_EREADONLY);
    assert_int_equal(sys_errno, EACCES);
    assert_int_equal(io->map(NULL, file, 0, false, &at, &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EINVAL);
    assert_null(at);
    io->close(NULL, file);
}

/* ------------------------------------------------------------- locks --- */

static enum wal_status lock(struct wal__file *file, uint64_t offset,
                            enum wal__io_lock mode)
{
    int sys_errno = 0;
    enum wal_status status = io->lock(NULL, file, offset, mode, &sys_errno);

    assert_true((status == WAL_OK) == (sys_errno == 0));
    return status;
}

static void test_io_posix__locks_belong_to_the_open_file(void **state)
{
    (void)state;
    struct wal__file *a = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__file *b = open_file("a", WAL__IO_WRITE);

    assert_int_equal(lock(a, 3, WAL__IO_EXCLUSIVE_LOCK), WAL_OK);
    assert_int_equal(lock(b, 3, WAL__IO_EXCLUSIVE_LOCK), WAL_ELOCKED);
    assert_int_equal(lock(b, 3, WAL__IO_SHARED), WAL_ELOCKED);
    assert_int_equal(lock(a, 3, WAL__IO_EXCLUSIVE_LOCK), WAL_OK);

    /* One byte only. */
    assert_int_equal(lock(b, 2, WAL__IO_EXCLUSIVE_LOCK), WAL_OK);
    assert_int_equal(lock(b, 4, WAL__IO_EXCLUSIVE_LOCK), WAL_OK);
    assert_int_equal(lock(a, 4, WAL__IO_SHARED), WAL_ELOCKED);

    /* Another's unlock changes nothing. */
    assert_int_equal(lock(b, 3, WAL__IO_UNLOCK), WAL_OK);
    assert_int_equal(lock(b, 3, WAL__IO_SHARED), WAL_ELOCKED);
    assert_int_equal(lock(a, 3, WAL__IO_UNLOCK), WAL_OK);
    assert_int_equal(lock(b, 3, WAL__IO_EXCLUSIVE_LOCK), WAL_OK);

    /* Closing frees, but not by closing some other handle of the file. */
    io->close(NULL, open_file("a", WAL__IO_WRITE));
    assert_int_equal(lock(a, 3, WAL__IO_SHARED), WAL_ELOCKED);
    io->close(NULL, b);
    assert_int_equal(lock(a, 3, WAL__IO_EXCLUSIVE_LOCK), WAL_OK);
    io->close(NULL, a);
}

static void test_io_posix__shared_locks_go_together(void **state)
{
    (void)state;
    struct wal__file *a = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__file *b = open_file("a", WAL__IO_WRITE);

    assert_int_equal(lock(a, 0, WAL__IO_SHARED), WAL_OK);
    assert_int_equal(lock(b, 0, WAL__IO_SHARED), WAL_OK);
    assert_int_equal(lock(b, 0, WAL__IO_EXCLUSIVE_LOCK), WAL_ELOCKED);
    assert_int_equal(lock(a, 0, WAL__IO_UNLOCK), WAL_OK);
    assert_int_equal(lock(b, 0, WAL__IO_EXCLUSIVE_LOCK), WAL_OK);
    io->close(NULL, a);
    io->close(NULL, b);
}

static void test_io_posix__a_killed_process_frees_its_locks(void **state)
{
    (void)state;
    struct wal__file *file = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE);
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
            io->lock(NULL, own, 0, WAL__IO_EXCLUSIVE_LOCK, &sys_errno) ==
                WAL_OK &&
            write(ready[1], "1", 1) == 1) {
            (void)pause();
        }
        _exit(1);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    assert_int_equal(lock(file, 0, WAL__IO_EXCLUSIVE_LOCK), WAL_ELOCKED);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(lock(file, 0, WAL__IO_EXCLUSIVE_LOCK), WAL_OK);
    io->close(NULL, file);
}

/* ------------------------------------------------------------- names --- */

static void test_io_posix__directories(void **state)
{
    (void)state;
    int sys_errno = 0;

    assert_int_equal(io->make_directory(NULL, "d", &sys_errno), WAL_OK);
    assert_int_equal(io->make_directory(NULL, "d", &sys_errno), WAL_EEXISTS);
    assert_int_equal(sys_errno, EEXIST);
    assert_int_equal(io->make_directory(NULL, "x/y", &sys_errno),
                     WAL_ENOTFOUND);
    assert_int_equal(io->sync_directory(NULL, "d", &sys_errno), WAL_OK);
    assert_int_equal(io->sync_directory(NULL, "x", &sys_errno), WAL_ENOTFOUND);
    io->close(NULL, open_file("a", WAL__IO_WRITE | WAL__IO_CREATE));
    assert_int_equal(io->sync_directory(NULL, "a", &sys_errno), WAL_ENOTFOUND);
    assert_int_equal(sys_errno, ENOTDIR);
}

struct names {
    int seen[3];
    int count;
    int stop_at;
};

static enum wal_status note_name(void *arg, const char *name)
{
    struct names *names = arg;

    names->count++;
    if (names->count == names->stop_at) {
        return WAL_ECONFLICT;
    }
    assert_int_equal(strlen(name), 1);
    assert_in_range(name[0], 'a', 'c');
    names->seen[name[0] - 'a']++;
    return WAL_OK;
}

static void test_io_posix__list_gives_every_name_once(void **state)
{
    (void)state;
    struct names names = {0};
    int sys_errno = 0;

    io->close(NULL, open_file("a", WAL__IO_WRITE | WAL__IO_CREATE));
    io->close(NULL, open_file("b", WAL__IO_WRITE | WAL__IO_CREATE));
    assert_int_equal(io->make_directory(NULL, "c", &sys_errno), WAL_OK);
    assert_int_equal(io->list(NULL, ".", note_name, &names, &sys_errno),
                     WAL_OK);
    assert_int_equal(names.count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(names.seen[i], 1);
    }

    /* The callback ends it. */
    names = (struct names){.stop_at = 2};
    sys_errno = 5;
    assert_int_equal(io->list(NULL, ".", note_name, &names, &sys_errno),
                     WAL_ECONFLICT);
    assert_int_equal(sys_errno, 0);
    assert_int_equal(names.count, 2);

    names = (struct names){0};
    assert_int_equal(io->list(NULL, "c", note_name, &names, &sys_errno),
                     WAL_OK);
    assert_int_equal(io->list(NULL, "x", note_name, &names, &sys_errno),
                     WAL_ENOTFOUND);
    assert_int_equal(io->list(NULL, "a", note_name, &names, &sys_errno),
                     WAL_ENOTFOUND);
    assert_int_equal(names.count, 0);
}

static void test_io_posix__rename_replaces_and_unlink_removes(void **state)
{
    (void)state;
    struct wal__file *file = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__io_stat st;
    int sys_errno = 0;

    put(file, "hello", 0);
    io->close(NULL, file);
    io->close(NULL, open_file("b", WAL__IO_WRITE | WAL__IO_CREATE));
    assert_int_equal(io->rename(NULL, "a", "b", &sys_errno), WAL_OK);
    assert_int_equal(io->path_stat(NULL, "a", &st, &sys_errno), WAL_ENOTFOUND);
    assert_int_equal(io->path_stat(NULL, "b", &st, &sys_errno), WAL_OK);
    assert_int_equal(st.size, 5);
    assert_int_equal(io->rename(NULL, "a", "b", &sys_errno), WAL_ENOTFOUND);
    assert_int_equal(io->unlink(NULL, "b", &sys_errno), WAL_OK);
    assert_int_equal(io->unlink(NULL, "b", &sys_errno), WAL_ENOTFOUND);
}

static void test_io_posix__file_systems_are_told_apart(void **state)
{
    (void)state;
    bool network = true;
    char name[32] = "untouched";
    int sys_errno = 0;

    assert_int_equal(io->is_network(NULL, "x", &network, name, &sys_errno),
                     WAL_ENOTFOUND);
    assert_true(network);
    assert_string_equal(name, "untouched");

    /* One that is not listed: local, named by its number. */
    assert_int_equal(io->is_network(NULL, "/proc", &network, name, &sys_errno),
                     WAL_OK);
    assert_false(network);
    assert_string_equal(name, "0x00009fa0");
    assert_int_equal(
        io->is_network(NULL, "/dev/shm", &network, name, &sys_errno), WAL_OK);
    assert_false(network);
    assert_string_equal(name, "tmpfs");
}

/* -------------------------------------------- clocks, identity, chance --- */

static void test_io_posix__clocks(void **state)
{
    (void)state;
    uint64_t before = io->ticks_ns(NULL);
    int64_t now = io->now_ms(NULL);

    assert_true(now > INT64_C(1600000000000));
    /* time() may lag behind by a tick of the kernel. */
    assert_in_range(time(NULL) - now / 1000 + 1, 0, 3);
    assert_int_equal(usleep(2000), 0);
    assert_true(io->ticks_ns(NULL) - before >= 2000000);
}

static void test_io_posix__random_fills_all_it_is_given(void **state)
{
    (void)state;
    static uint8_t a[70000];
    static uint8_t b[70000];
    size_t zeros = 0;

    io->random(NULL, a, sizeof(a));
    io->random(NULL, b, sizeof(b) - 100);
    assert_memory_not_equal(a, b, 32);
    assert_memory_not_equal(a + sizeof(a) - 132, b + sizeof(b) - 132, 32);
    for (size_t i = 0; i < sizeof(a); i++) {
        zeros += a[i] == 0;
    }
    /* 273 are expected. */
    assert_in_range(zeros, 100, 600);
    for (size_t i = sizeof(b) - 100; i < sizeof(b); i++) {
        assert_int_equal(b[i], 0);
    }
}

static void test_io_posix__boot_id_is_the_systems(void **state)
{
    (void)state;
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

        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%02x", dash,
                               id[i]);
    }
    wanted[strcspn(wanted, "\n")] = '\0';
    assert_string_equal(text, wanted);
}

static void test_io_posix__a_process_has_one_start(void **state)
{
    (void)state;
    uint32_t self = io->process_id(NULL);
    uint64_t start = io->process_start(NULL, self);

    assert_int_equal(self, getpid());
    assert_true(start != 0 && start != UINT64_MAX);
    assert_int_equal(usleep(30000), 0);
    assert_true(io->process_start(NULL, self) == start);
    assert_true(io->process_start(NULL, 0) == 0);
    assert_true(io->process_start(NULL, UINT32_MAX) == 0);
    assert_true(io->process_start(NULL, INT32_MAX) == 0);
}

static void test_io_posix__a_zombie_and_a_dead_process_are_none(void **state)
{
    (void)state;
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
    assert_true(io->process_start(NULL, (uint32_t)child) >=
                io->process_start(NULL, io->process_id(NULL)));
    (void)close(ready[1]);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(io->process_start(NULL, (uint32_t)child) == 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(io->process_start(NULL, (uint32_t)child) == 0);
}

/* Waits for the first thread to end, and lives on. */
static void *outlive(void *arg)
{
    char byte;

    (void)read(*(int *)arg, &byte, 1);
    _exit(0);
}

static void test_io_posix__a_process_lives_as_long_as_a_thread(void **state)
{
    (void)state;
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
        if (pthread_create(&thread, NULL, outlive, &end) != 0) {
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
    assert_true(io->process_start(NULL, (uint32_t)child) != 0);
    (void)close(ready[1]);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

static void
test_io_posix__no_descriptor_left_is_not_a_dead_process(void **state)
{
    (void)state;
    struct rlimit old;
    struct rlimit none;
    uint64_t self;
    uint64_t dead;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    self = io->process_start(NULL, io->process_id(NULL));
    dead = io->process_start(NULL, INT32_MAX);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_true(self == UINT64_MAX);
    assert_true(dead == 0);
}

/* ------------------------------------------------------------ waiting --- */

static void test_io_posix__a_wait_ends(void **state)
{
    (void)state;
    uint32_t word = 1;
    uint64_t before = io->ticks_ns(NULL);

    /* The word is another already. */
    io->wait(NULL, &word, 2, UINT64_MAX);
    io->wait(NULL, &word, 1, 20000000);
    assert_in_range(io->ticks_ns(NULL) - before, 19000000, 10000000000);
}

static void test_io_posix__a_wake_crosses_processes_and_maps(void **state)
{
    (void)state;
    struct wal__file *file = open_file("a", WAL__IO_WRITE | WAL__IO_CREATE);
    void *ours = NULL;
    void *theirs = NULL;
    int sys_errno = 0;
    int how = 0;
    pid_t child;
    uint64_t before;

    assert_int_equal(io->allocate(NULL, file, 4096, &sys_errno), WAL_OK);
    assert_int_equal(io->map(NULL, file, 4096, true, &ours, &sys_errno),
                     WAL_OK);
    assert_int_equal(io->map(NULL, file, 4096, false, &theirs, &sys_errno),
                     WAL_OK);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const uint32_t *word = theirs;

        /* Ends a child that never sees the word change. */
        (void)alarm(60);
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) {
            io->wait(NULL, word, 0, UINT64_C(30000000000));
        }
        _exit(0);
    }
    (void)usleep(20000);
    before = io->ticks_ns(NULL);
    __atomic_store_n((uint32_t *)ours, 1, __ATOMIC_RELEASE);
    io->wake(NULL, ours);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    /* A lost wake would take the whole time-out. */
    assert_true(io->ticks_ns(NULL) - before < UINT64_C(20000000000));
    io->unmap(NULL, ours, 4096);
    io->unmap(NULL, theirs, 4096);
    io->close(NULL, file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_io_posix__open_follows_its_flags),
        TEST(test_io_posix__what_is_made_is_private),
        TEST(test_io_posix__descriptors_are_closed_on_exec),
        TEST(test_io_posix__only_regular_files_open),
        TEST(test_io_posix__a_file_as_a_folder_is_not_found),
        TEST(test_io_posix__more_pieces_than_the_system_takes),
        TEST(test_io_posix__offsets_beyond_the_system_are_refused),
        TEST(test_io_posix__allocate_reserves_zeros),
        TEST(test_io_posix__allocate_writes_where_it_must),
        TEST(test_io_posix__stat_tells_files_apart),
        TEST(test_io_posix__a_map_sees_writes_and_outlives_the_file),
        TEST(test_io_posix__maps_that_cannot_be),
        TEST(test_io_posix__locks_belong_to_the_open_file),
        TEST(test_io_posix__shared_locks_go_together),
        TEST(test_io_posix__a_killed_process_frees_its_locks),
        TEST(test_io_posix__directories),
        TEST(test_io_posix__list_gives_every_name_once),
        TEST(test_io_posix__rename_replaces_and_unlink_removes),
        TEST(test_io_posix__file_systems_are_told_apart),
        TEST(test_io_posix__clocks),
        TEST(test_io_posix__random_fills_all_it_is_given),
        TEST(test_io_posix__boot_id_is_the_systems),
        TEST(test_io_posix__a_process_has_one_start),
        TEST(test_io_posix__a_zombie_and_a_dead_process_are_none),
        TEST(test_io_posix__a_process_lives_as_long_as_a_thread),
        TEST(test_io_posix__no_descriptor_left_is_not_a_dead_process),
        TEST(test_io_posix__a_wait_ends),
        TEST(test_io_posix__a_wake_crosses_processes_and_maps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
