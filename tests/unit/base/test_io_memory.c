/*
 * test_io_memory.c - tests of engine/base/io_memory: the cases of
 * every table (io_cases.h), and those of names over memfds.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/io.h"
#include "format/bytes/assert.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/io_cases.h"
#include "tests/lib/test.h"

enum { page = 4096 };

static struct faulty_heap heap;
static struct wal__io *io;

/* Takes the place of the C library's: /proc is mounted wherever tests run. */
static bool is_without_proc;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int access(const char *path, int mode)
{
    if (is_without_proc) {
        errno = ENOENT;
        return -1;
    }
    return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

/* ------------------------------------------------------------ set-up --- */

static int enter(void **state)
{
    struct wal_error error = {.struct_size = sizeof(error)};

    (void)state;
    faulty_heap_init(&heap, &wal__heap_libc);
    if (wal__io_memory_create(&heap.heap, false, &io, &error) != WAL_OK) {
        return -1;
    }
    io_case_set_io(io);
    return 0;
}

/* All memory is freed, whatever files a test left. */
static int leave(void **state)
{
    (void)state;
    wal__io_memory_destroy(io);
    return heap.live == 0 ? 0 : -1;
}

static struct wal__file *make_file(const char *path)
{
    return io_case_open(path, WAL__IO_WRITE | WAL__IO_CREATE);
}

static void *map_file(struct wal__file *file, uint64_t size)
{
    void *at = NULL;
    int sys_errno = 0;

    assert_ok(io->map(io->ctx, file, size, false, &at, &sys_errno));
    assert_non_null(at);
    return at;
}

static void assert_content(struct wal__file *file, const char *text)
{
    char back[16];
    size_t got = 0;
    int sys_errno = 0;

    assert_ok(io->pread(io->ctx, file, back, sizeof(back), 0, &got, &sys_errno));
    assert_int_equal(got, strlen(text));
    assert_memory_equal(back, text, got);
}

/* The descriptors of this process that are memfds; *any is one of them. */
static int count_memfds(int *any)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    int count = 0;

    assert_non_null(directory);
    for (entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char link[64] = "";

        if (readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1) > 0 &&
            strncmp(link, "/memfd:", 7) == 0) {
            *any = atoi(entry->d_name);
            count++;
        }
    }
    (void)closedir(directory);
    return count;
}

/* Sets the soft limit, and returns the one before. */
static rlim_t set_limit(__rlimit_resource_t resource, rlim_t value)
{
    struct rlimit limit;
    rlim_t before;

    assert_int_equal(getrlimit(resource, &limit), 0);
    before = limit.rlim_cur;
    limit.rlim_cur = value;
    assert_int_equal(setrlimit(resource, &limit), 0);
    return before;
}

/* ------------------------------------------------------------- files --- */

TEST_WITH(io_memory__an_unlinked_file_stays_until_its_last_use, enter, leave)
{
    struct wal__file *file = make_file("a");
    int64_t live = heap.live;
    int sys_errno = 0;
    int any = -1;
    void *at;

    io_case_write(file, "hello", 0);
    at = map_file(file, 5);
    assert_int_equal(count_memfds(&any), 2);
    assert_ok(io->unlink(io->ctx, "a", &sys_errno));
    assert_int_equal(heap.live, live - 1);
    assert_int_equal(count_memfds(&any), 1);
    io_case_open_fails("a", 0, WAL_ENOTFOUND, ENOENT);
    io->close(io->ctx, make_file("a"));
    assert_content(file, "hello");
    io->close(io->ctx, file);
    assert_memory_equal(at, "hello", 5);
    io->unmap(io->ctx, at, 5);
    assert_ok(io->unlink(io->ctx, "a", &sys_errno));
    assert_int_equal(count_memfds(&any), 0);
}

TEST_WITH(io_memory__a_replaced_file_stays_until_its_last_use, enter, leave)
{
    struct wal__file *old = make_file("a");
    struct wal__file *new = make_file("a.new");
    struct wal__file *file;
    int sys_errno = 0;

    io_case_write(old, "old", 0);
    io_case_write(new, "new", 0);
    assert_ok(io->rename(io->ctx, "a.new", "a", &sys_errno));
    assert_true(io_case_stat(old).inode != io_case_stat(new).inode);
    assert_content(old, "old");
    file = io_case_open("a", 0);
    assert_content(file, "new");
    io->close(io->ctx, file);
    io->close(io->ctx, old);
    io->close(io->ctx, new);
}

TEST_WITH(io_memory__allocated_space_takes_no_memory, enter, leave)
{
    enum { size = 64 << 20 };
    struct wal__file *file = make_file("a");
    int sys_errno = 0;

    assert_ok(io->allocate(io->ctx, file, size, &sys_errno));
    assert_int_equal(io_case_stat(file).size, size);
    assert_true(io_case_stat(file).allocated <= size / 16);
    io_case_write(file, "x", size / 2);
    assert_true(io_case_stat(file).allocated <= size / 8);
    io->close(io->ctx, file);
}

TEST_WITH(io_memory__a_mapped_file_grows, enter, leave)
{
    struct wal__file *file = make_file("a");
    int sys_errno = 0;
    uint8_t *at;

    io_case_write(file, "hello", 0);
    /* A map may be larger than its file. */
    at = map_file(file, 5 * page);
    io_case_write(file, "world", 5 * page - 5);
    assert_memory_equal(at + 5 * page - 5, "world", 5);
    io_case_write(file, "beyond", 500 * page);
    assert_ok(io->allocate(io->ctx, file, 600 * page, &sys_errno));
    assert_int_equal(io_case_stat(file).size, 600 * page);
    io_case_write(file, "again", 0);
    assert_memory_equal(at, "again", 5);
    io->unmap(io->ctx, at, 5 * page);
    io->close(io->ctx, file);
}

TEST_WITH(io_memory__a_truncated_file_is_zeros_again, enter, leave)
{
    struct wal__file *file = make_file("a");
    int sys_errno = 0;
    uint8_t *at;

    io_case_write(file, "hello", 100);
    at = map_file(file, 200);
    io->close(io->ctx, io_case_open("a", WAL__IO_WRITE | WAL__IO_TRUNCATE));
    assert_int_equal(io_case_stat(file).size, 0);
    assert_ok(io->allocate(io->ctx, file, 200, &sys_errno));
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(at[i], 0);
    }
    io->unmap(io->ctx, at, 200);
    io->close(io->ctx, file);
}

TEST_WITH(io_memory__a_read_only_handle_changes_nothing, enter, leave)
{
    struct wal__file *file = make_file("a");
    struct wal__file *reader = io_case_open("a", 0);
    int sys_errno = 0;

    assert_int_equal(io->allocate(io->ctx, reader, 10, &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EINVAL);
    assert_int_equal(io->lock(io->ctx, reader, 0, WAL__IO_LOCK_EXCLUSIVE, &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EBADF);
    assert_int_equal(io_case_stat(file).size, 0);
    io->close(io->ctx, file);
    io->close(io->ctx, reader);
}

/* A process that closed its standard input must not read a store there. */
TEST_WITH(io_memory__no_descriptor_is_a_standard_stream, enter, leave)
{
    int saved = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
    struct wal__file *file;

    (void)close(STDIN_FILENO);
    file = make_file("a");
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
    io->close(io->ctx, file);
    assert_int_equal(dup2(saved, STDIN_FILENO), saved < 0 ? -1 : 0);
    (void)close(saved);
}

/* ------------------------------------------------------------- names --- */

TEST_WITH(io_memory__paths, enter, leave)
{
    char path[300];
    struct wal__io_stat st;
    int sys_errno = 0;

    assert_ok(io->make_directory(io->ctx, "d", &sys_errno));
    assert_ok(io->make_directory(io->ctx, "d/e", &sys_errno));
    io->close(io->ctx, make_file("d/e/f"));
    io->close(io->ctx, make_file("f"));
    assert_ok(io->path_stat(io->ctx, "d/e/f", &st, &sys_errno));
    assert_false(st.is_directory);
    assert_ok(io->path_stat(io->ctx, "d/e", &st, &sys_errno));
    assert_true(st.is_directory);
    io_case_open_fails("d/f", 0, WAL_ENOTFOUND, ENOENT);
    io_case_open_fails("d/e/f/g", WAL__IO_CREATE, WAL_ENOTFOUND, ENOTDIR);
    io_case_open_fails("e/f", WAL__IO_CREATE, WAL_ENOTFOUND, ENOENT);
    io_case_open_fails("d/e/ff", 0, WAL_ENOTFOUND, ENOENT);
    io_case_open_fails("d", 0, WAL_EIO, EISDIR);
    io_case_open_fails(".", WAL__IO_WRITE | WAL__IO_CREATE, WAL_EIO, EISDIR);
    memset(path, 'x', sizeof(path));
    path[256] = '\0';
    io_case_open_fails(path, WAL__IO_CREATE, WAL_EIO, ENAMETOOLONG);
    path[255] = '\0';
    io->close(io->ctx, make_file(path));
    assert_ok(io->path_stat(io->ctx, path, &st, &sys_errno));
    assert_int_equal(io->unlink(io->ctx, "d", &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EISDIR);
}

static void assert_rename_fails(const char *from, const char *to, int error)
{
    int sys_errno = 0;

    assert_int_not_equal(io->rename(io->ctx, from, to, &sys_errno), WAL_OK);
    assert_int_equal(sys_errno, error);
}

TEST_WITH(io_memory__renaming, enter, leave)
{
    struct wal__io_stat st;
    int sys_errno = 0;

    assert_ok(io->make_directory(io->ctx, "d", &sys_errno));
    io->close(io->ctx, make_file("a"));
    assert_rename_fails("a", "d", EISDIR);
    assert_rename_fails("d", "a", EISDIR);
    assert_rename_fails("d", "h", EISDIR);
    assert_rename_fails("a", "x/h", ENOENT);
    assert_rename_fails("a", "a/h", ENOTDIR);
    assert_ok(io->rename(io->ctx, "a", "a", &sys_errno));
    assert_ok(io->rename(io->ctx, "a", "d/b", &sys_errno));
    assert_ok(io->path_stat(io->ctx, "d/b", &st, &sys_errno));
    assert_int_equal(io->path_stat(io->ctx, "a", &st, &sys_errno), WAL_ENOTFOUND);
}

/* Unlinks each name while they are listed. */
static enum wal_status unlink_name(void *arg, const char *name)
{
    int *count = arg;
    int sys_errno = 0;

    (*count)++;
    return io->unlink(io->ctx, name, &sys_errno);
}

TEST_WITH(io_memory__a_callback_may_change_the_directory, enter, leave)
{
    char name[8];
    int count = 0;
    int sys_errno = 0;

    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        io->close(io->ctx, make_file(name));
    }
    assert_ok(io->list(io->ctx, ".", unlink_name, &count, &sys_errno));
    assert_int_equal(count, 20);
    count = 0;
    assert_ok(io->list(io->ctx, ".", unlink_name, &count, &sys_errno));
    assert_int_equal(count, 0);
}

TEST_WITH(io_memory__storage_is_local, enter, leave)
{
    enum wal__storage storage = WAL__STORAGE_SHARED;
    char name[32] = "";
    int sys_errno = 0;

    assert_ok(io->storage(io->ctx, ".", &storage, name, &sys_errno));
    assert_int_equal(storage, WAL__STORAGE_LOCAL);
    assert_string_equal(name, "memory");
}

/* ------------------------------------------------------- whole tables --- */

TEST_WITH(io_memory__tables_are_independent, enter, leave)
{
    struct wal__io *other = NULL;
    struct wal__io_stat st;
    int sys_errno = 0;

    assert_ok(wal__io_memory_create(&heap.heap, false, &other, NULL));
    io->close(io->ctx, make_file("a"));
    assert_int_equal(other->path_stat(other->ctx, "a", &st, &sys_errno), WAL_ENOTFOUND);
    wal__io_memory_destroy(other);
    wal__io_memory_destroy(NULL);
    assert_ok(io->path_stat(io->ctx, "a", &st, &sys_errno));
}

TEST_WITH(io_memory__destroying_closes_every_descriptor, enter, leave)
{
    struct wal__io *other = NULL;
    struct wal__file *file = NULL;
    int any = -1;
    int err = 0;
    int before = count_memfds(&any);

    assert_ok(wal__io_memory_create(&heap.heap, false, &other, NULL));
    assert_ok(other->make_directory(other->ctx, "d", &err));
    for (int i = 0; i < 20; i++) {
        char path[16];

        (void)snprintf(path, sizeof(path), "d/%d", i);
        assert_ok(other->open(other->ctx, path, WAL__IO_WRITE | WAL__IO_CREATE, &file, &err));
        other->close(other->ctx, file);
    }
    assert_int_equal(count_memfds(&any), before + 20);
    assert_int_equal(fcntl(any, F_GETFD), FD_CLOEXEC);
    wal__io_memory_destroy(other);
    assert_int_equal(count_memfds(&any), before);
}

/* ---------------------------------------------------------- failures --- */

TEST_WITH(io_memory__without_memory_nothing_changes, enter, leave)
{
    struct wal__io *other = NULL;
    struct wal__io_stat st;
    int sys_errno = 0;

    faulty_heap_fail(&heap, 1, false);
    assert_int_equal(wal__io_memory_create(&heap.heap, false, &other, NULL), WAL_ENOMEM);
    assert_null(other);
    faulty_heap_fail(&heap, 1, false);
    io_case_open_fails("a", WAL__IO_CREATE, WAL_ENOMEM, ENOMEM);
    assert_int_equal(io->path_stat(io->ctx, "a", &st, &sys_errno), WAL_ENOTFOUND);
    faulty_heap_fail(&heap, 1, false);
    assert_int_equal(io->make_directory(io->ctx, "d", &sys_errno), WAL_ENOMEM);
}

/* The name's descriptor fails, then the handle's. */
TEST_WITH(io_memory__without_descriptors_nothing_changes, enter, leave)
{
    int64_t live = heap.live;
    int lowest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    struct wal__io_stat st;
    int sys_errno = 0;

    (void)close(lowest);
    for (int room = 0; room < 2; room++) {
        rlim_t before = set_limit(RLIMIT_NOFILE, (rlim_t)lowest + (rlim_t)room);

        io_case_open_fails("a", WAL__IO_CREATE, WAL_EIO, EMFILE);
        (void)set_limit(RLIMIT_NOFILE, before);
        assert_int_equal(io->path_stat(io->ctx, "a", &st, &sys_errno), WAL_ENOTFOUND);
        assert_int_equal(heap.live, live);
    }
    io->close(io->ctx, make_file("a"));
}

TEST_WITH(io_memory__file_size_limit_applies, enter, leave)
{
    struct wal__file *file = make_file("a");
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    rlim_t before = set_limit(RLIMIT_FSIZE, 100 * page);
    int sys_errno = 0;
    enum wal_status status = io->allocate(io->ctx, file, 101 * page, &sys_errno);

    (void)set_limit(RLIMIT_FSIZE, before);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(status, WAL_ENOSPACE);
    assert_int_equal(sys_errno, EFBIG);
    assert_int_equal(io_case_stat(file).size, 0);
    io->close(io->ctx, file);
}

TEST_WITH(io_memory__without_proc_there_is_no_table, enter, leave)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal__io *other = NULL;
    enum wal_status status;

    is_without_proc = true;
    status = wal__io_memory_create(&heap.heap, false, &other, &error);
    is_without_proc = false;
    assert_int_equal(status, WAL_EIO);
    assert_null(other);
    assert_non_null(strstr(error.text, "/proc"));
}

/* A file that exists is never reported as missing. */
TEST_WITH(io_memory__without_its_link_a_file_cannot_be_used, enter, leave)
{
    struct wal__io_stat st;
    int sys_errno = 0;
    int fd = -1;

    io->close(io->ctx, make_file("a"));
    assert_int_equal(count_memfds(&fd), 1);
    (void)close(fd);
    io_case_open_fails("a", 0, WAL_EIO, ENOENT);
    assert_int_equal(io->path_stat(io->ctx, "a", &st, &sys_errno), WAL_EIO);
}

/* ----------------------------------------------------------- threads --- */

/* What other threads do meanwhile. */
struct others {
    struct wal__file *file; /* grows */
    atomic_bool stop;
};

static void *read_and_rename(void *arg)
{
    struct others *others = arg;
    char back[16];
    size_t got;
    int err;

    while (!atomic_load(&others->stop)) {
        enum wal_status status = io->pread(io->ctx, others->file, back, 16, 0, &got, &err);
        struct wal__file *own;

        WAL__ASSERT(status == WAL_OK && got == 16);
        WAL__ASSERT(memcmp(back, "0123456789abcdef", 16) == 0);
        status = io->open(io->ctx, "b", WAL__IO_WRITE | WAL__IO_CREATE, &own, &err);
        WAL__ASSERT(status == WAL_OK);
        status = io->lock(io->ctx, own, 0, WAL__IO_LOCK_SHARED, &err);
        WAL__ASSERT(status == WAL_OK);
        (void)!io->rename(io->ctx, "b", "c", &err);
        io->close(io->ctx, own);
    }
    return NULL;
}

TEST_WITH(io_memory__threads_copy_while_a_file_grows, enter, leave)
{
    struct others others = {.file = make_file("a")};
    pthread_t threads[3];

    io_case_write(others.file, "0123456789abcdef", 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_and_rename, &others), 0);
    }
    for (uint64_t i = 1; i < 2000; i++) {
        io_case_write(others.file, "grows", i * 2000);
    }
    atomic_store(&others.stop, true);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    io->close(io->ctx, others.file);
}

/* While a thread of the parent uses the parent's. */
TEST_WITH(io_memory__a_forked_child_creates_its_own_table, enter, leave)
{
    struct others others = {.file = make_file("a")};
    pthread_t thread;

    io_case_write(others.file, "0123456789abcdef", 0);
    assert_int_equal(pthread_create(&thread, NULL, read_and_rename, &others), 0);
    for (int i = 0; i < 50; i++) {
        int how = 0;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            struct wal__file *file = NULL;
            struct wal__io *own = NULL;
            int err;

            /* Ends a child that would wait for ever. */
            (void)alarm(60);
            (void)!wal__io_memory_create(&wal__heap_libc, false, &own, NULL);
            (void)!own->open(own->ctx, "b", WAL__IO_WRITE | WAL__IO_CREATE, &file, &err);
            _exit(file != NULL ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    atomic_store(&others.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    io->close(io->ctx, others.file);
}

static int run_cases(void)
{
    return io_cases_run("io_memory, as every table", enter, leave);
}

TEST_FILE(NULL, NULL, run_cases);
