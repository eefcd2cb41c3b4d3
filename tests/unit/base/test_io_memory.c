/*
 * test_io_memory.c - tests of engine/io/io_memory: the cases of
 * every table (io_cases.h), and those of this one alone.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/os/io_memory.h"
#include "format/bytes/assert.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/io_cases.h"

enum {
    page = 4096
};

static struct faulty_heap heap;
static struct wal__io *io;

static int enter(void **state)
{
    (void)state;
    faulty_heap_init(&heap, &wal__heap_libc);
    if (wal__io_memory_create(&heap.heap, &io) != WAL_OK) {
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

    assert_int_equal(io->map(io->ctx, file, size, false, &at, &sys_errno),
                     WAL_OK);
    assert_non_null(at);
    return at;
}

/* Resident KiB of the mapping at this address. Pages of zeros that were only
 * read do not count: they are the system's. */
static unsigned long resident_kib(const void *at)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    char line[512];
    bool inside = false;
    unsigned long kib = 0;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        unsigned long from;
        unsigned long to;

        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            inside = (uintptr_t)at >= from && (uintptr_t)at < to;
        } else if (inside && sscanf(line, "Rss: %lu kB", &kib) == 1) {
            break;
        }
    }
    assert_true(inside);
    (void)fclose(file);
    return kib;
}

/* ------------------------------------------------------------- files --- */

static void
test_io_memory__what_has_no_name_stays_until_its_last_use(void **state)
{
    (void)state;
    struct wal__file *file = make_file("a");
    char back[5];
    size_t got = 0;
    int sys_errno = 0;
    int64_t live;
    void *at;

    io_case_write(file, "hello", 0);
    at = map_file(file, 5);
    live = heap.live;
    assert_int_equal(io->unlink(io->ctx, "a", &sys_errno), WAL_OK);
    io_case_open_fails("a", 0, WAL_ENOTFOUND, ENOENT);
    io->close(io->ctx, make_file("a"));
    assert_int_equal(io->pread(io->ctx, file, back, 5, 0, &got, &sys_errno),
                     WAL_OK);
    assert_memory_equal(back, "hello", 5);
    io->close(io->ctx, file);
    assert_memory_equal(at, "hello", 5);
    io->unmap(io->ctx, at, 5);
    assert_int_equal(io->unlink(io->ctx, "a", &sys_errno), WAL_OK);
    /* The handle and its file. */
    assert_int_equal(heap.live, live - 2);
}

static void
test_io_memory__a_replaced_file_stays_until_its_last_use(void **state)
{
    (void)state;
    struct wal__file *old = make_file("a");
    struct wal__file *new = make_file("a.new");
    struct wal__file *file;
    char back[5];
    size_t got = 0;
    int sys_errno = 0;

    io_case_write(old, "old", 0);
    io_case_write(new, "new", 0);
    assert_int_equal(io->rename(io->ctx, "a.new", "a", &sys_errno), WAL_OK);
    assert_true(io_case_stat(old).inode != io_case_stat(new).inode);
    assert_int_equal(io->pread(io->ctx, old, back, 5, 0, &got, &sys_errno),
                     WAL_OK);
    assert_int_equal(got, 3);
    assert_memory_equal(back, "old", 3);
    file = io_case_open("a", 0);
    assert_int_equal(io->pread(io->ctx, file, back, 5, 0, &got, &sys_errno),
                     WAL_OK);
    assert_memory_equal(back, "new", 3);
    io->close(io->ctx, file);
    io->close(io->ctx, old);
    io->close(io->ctx, new);
}

static void test_io_memory__zeros_take_no_memory(void **state)
{
    (void)state;
    enum {
        size = 64 << 20,
        part = 1 << 20
    };
    static uint8_t zeros[part];
    struct wal__file *file = make_file("a");
    struct iovec iov = {zeros, part};
    int sys_errno = 0;
    unsigned long before;
    uint8_t *at;

    assert_int_equal(io->allocate(io->ctx, file, size, &sys_errno), WAL_OK);
    assert_int_equal(io_case_stat(file).size, size);
    at = map_file(file, size);
    before = resident_kib(at);
    for (uint64_t offset = 0; offset < size; offset += part) {
        assert_int_equal(
            wal__io_write_full(io, file, &iov, 1, offset, &sys_errno), WAL_OK);
    }
    assert_true(resident_kib(at) < before + size / 1024 / 8);

    /* But they are written where something is. */
    io_case_write(file, "x", 3 * page);
    iov.iov_len = 8 * page;
    assert_int_equal(wal__io_write_full(io, file, &iov, 1, 100, &sys_errno),
                     WAL_OK);
    assert_int_equal(at[3 * page], 0);
    memset(zeros, 'y', part);
    iov.iov_len = part;
    for (uint64_t offset = 0; offset < size; offset += part) {
        assert_int_equal(
            wal__io_write_full(io, file, &iov, 1, offset, &sys_errno), WAL_OK);
    }
    assert_true(resident_kib(at) >= before + size / 1024 / 2);
    assert_memory_equal(at + size - part, zeros, part);
    io->unmap(io->ctx, at, size);
    io->close(io->ctx, file);
}

static void test_io_memory__files_grow_by_writes(void **state)
{
    (void)state;
    struct wal__file *file = make_file("a");
    uint8_t data[1000];
    uint8_t back[1000];
    struct iovec iov[2] = {{data, 600}, {data + 600, 400}};
    size_t got = 0;
    int sys_errno = 0;

    for (uint32_t i = 0; i < 300; i++) {
        memset(data, (int)i + 1, sizeof(data));
        assert_int_equal(
            io->pwritev(io->ctx, file, iov, 2, i * 1100, &got, &sys_errno),
            WAL_OK);
        assert_int_equal(got, sizeof(data));
        assert_int_equal(io_case_stat(file).size, i * 1100 + 1000);
    }
    for (uint32_t i = 0; i < 300; i++) {
        memset(data, (int)i + 1, sizeof(data));
        assert_int_equal(io->pread(io->ctx, file, back, sizeof(back), i * 1100,
                                   &got, &sys_errno),
                         WAL_OK);
        assert_int_equal(got, sizeof(back));
        assert_memory_equal(back, data, sizeof(data));
        assert_int_equal(io->pread(io->ctx, file, back, 100, i * 1100 + 1000,
                                   &got, &sys_errno),
                         WAL_OK);
        for (size_t at = 0; at < got; at++) {
            assert_int_equal(back[at], 0);
        }
    }
    io->close(io->ctx, file);
}

static void test_io_memory__a_mapped_file_grows_within_its_memory(void **state)
{
    (void)state;
    struct wal__file *file = make_file("a");
    char byte = 'x';
    struct iovec iov = {&byte, 1};
    size_t got = 7;
    int sys_errno = 0;
    uint8_t *at;

    io_case_write(file, "hello", 0);
    /* As on a disk, a map may be larger than its file. */
    at = map_file(file, 5 * page);
    io_case_write(file, "world", 5 * page - 5);
    assert_memory_equal(at + 5 * page - 5, "world", 5);
    assert_int_equal(io_case_stat(file).size, 5 * page);
    assert_int_equal(
        io->pwritev(io->ctx, file, &iov, 1, 5 * page, &got, &sys_errno),
        WAL_ENOMEM);
    assert_int_equal(sys_errno, ENOMEM);
    assert_int_equal(got, 7);
    assert_int_equal(io->allocate(io->ctx, file, 6 * page, &sys_errno),
                     WAL_ENOMEM);
    assert_int_equal(io_case_stat(file).size, 5 * page);
    assert_memory_equal(at, "hello", 5);
    io->unmap(io->ctx, at, 5 * page);
    assert_int_equal(
        io->pwritev(io->ctx, file, &iov, 1, 5 * page, &got, &sys_errno),
        WAL_OK);
    io->close(io->ctx, file);
}

static void test_io_memory__an_emptied_file_is_zeros_again(void **state)
{
    (void)state;
    struct wal__file *file = make_file("a");
    uint8_t *at;
    int sys_errno = 0;

    for (int mapped = 0; mapped < 2; mapped++) {
        io_case_write(file, "hello", 100);
        at = mapped != 0 ? map_file(file, 200) : NULL;
        io->close(io->ctx, io_case_open("a", WAL__IO_WRITE | WAL__IO_TRUNCATE));
        assert_int_equal(io_case_stat(file).size, 0);
        assert_int_equal(io->allocate(io->ctx, file, 200, &sys_errno), WAL_OK);
        at = at == NULL ? map_file(file, 200) : at;
        for (size_t i = 0; i < 200; i++) {
            assert_int_equal(at[i], 0);
        }
        io->unmap(io->ctx, at, 200);
    }
    io->close(io->ctx, file);
}

static void test_io_memory__wrong_use_is_refused(void **state)
{
    (void)state;
    struct wal__file *file = make_file("a");
    struct wal__file *reader = io_case_open("a", 0);
    char byte = 0;
    struct iovec iov[2] = {{&byte, 1}, {&byte, SIZE_MAX}};
    size_t put = 7;
    void *at = NULL;
    int sys_errno = 0;

    assert_int_equal(
        io->pwritev(io->ctx, file, iov, 1, INT64_MAX, &put, &sys_errno),
        WAL_ENOSPACE);
    assert_int_equal(io->pwritev(io->ctx, file, iov, 2, 0, &put, &sys_errno),
                     WAL_EIO);
    assert_int_equal(sys_errno, EINVAL);
    assert_int_equal(
        io->pwritev(io->ctx, file, iov, 1, INT64_MAX - 1, &put, &sys_errno),
        WAL_ENOMEM);
    assert_int_equal(put, 7);
    assert_int_equal(io->map(io->ctx, file, UINT64_MAX, true, &at, &sys_errno),
                     WAL_ENOMEM);
    assert_int_equal(io->allocate(io->ctx, reader, 10, &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EBADF);
    assert_int_equal(
        io->lock(io->ctx, reader, 0, WAL__IO_LOCK_EXCLUSIVE, &sys_errno),
        WAL_EIO);
    assert_int_equal(io_case_stat(file).size, 0);
    assert_int_equal(io->pwritev(io->ctx, file, iov, 0, 5, &put, &sys_errno),
                     WAL_OK);
    assert_int_equal(put, 0);
    assert_int_equal(io_case_stat(file).size, 0);
    io->close(io->ctx, file);
    io->close(io->ctx, reader);
}

/* ------------------------------------------------------------- names --- */

static void test_io_memory__paths(void **state)
{
    (void)state;
    char path[300];
    struct wal__io_stat st;
    int sys_errno = 0;
    uint64_t inode;

    assert_int_equal(io->make_directory(io->ctx, "d", &sys_errno), WAL_OK);
    assert_int_equal(io->make_directory(io->ctx, "d/e", &sys_errno), WAL_OK);
    io->close(io->ctx, make_file("d/e/f"));
    assert_int_equal(io->path_stat(io->ctx, "d/e/f", &st, &sys_errno), WAL_OK);
    inode = st.inode;
    for (size_t i = 0; i < 3; i++) {
        static const char *const same[] = {"/d/e/f", "d//e/./f", "./d/e//f"};

        assert_int_equal(io->path_stat(io->ctx, same[i], &st, &sys_errno),
                         WAL_OK);
        assert_true(st.inode == inode);
    }
    io_case_open_fails("e/f", 0, WAL_ENOTFOUND, ENOENT);
    io_case_open_fails("f", 0, WAL_ENOTFOUND, ENOENT);
    io_case_open_fails("", WAL__IO_CREATE, WAL_ENOTFOUND, ENOENT);
    io_case_open_fails("d", 0, WAL_EIO, EISDIR);
    io_case_open_fails("/", WAL__IO_WRITE | WAL__IO_CREATE, WAL_EIO, EISDIR);
    memset(path, 'x', sizeof(path));
    path[256] = '\0';
    io_case_open_fails(path, WAL__IO_CREATE, WAL_EIO, ENAMETOOLONG);
    path[255] = '\0';
    io->close(io->ctx, make_file(path));
    assert_int_equal(io->path_stat(io->ctx, path, &st, &sys_errno), WAL_OK);
    assert_int_equal(io->unlink(io->ctx, "d", &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EISDIR);
}

static void assert_rename_fails(const char *from, const char *to, int error)
{
    int sys_errno = 0;

    assert_int_not_equal(io->rename(io->ctx, from, to, &sys_errno), WAL_OK);
    assert_int_equal(sys_errno, error);
}

static void test_io_memory__renaming_directories(void **state)
{
    (void)state;
    struct wal__io_stat st;
    int sys_errno = 0;

    assert_int_equal(io->make_directory(io->ctx, "d", &sys_errno), WAL_OK);
    assert_int_equal(io->make_directory(io->ctx, "d/e", &sys_errno), WAL_OK);
    assert_int_equal(io->make_directory(io->ctx, "g", &sys_errno), WAL_OK);
    io->close(io->ctx, make_file("a"));
    io->close(io->ctx, make_file("d/e/f"));
    assert_rename_fails("a", "d", EISDIR);
    assert_rename_fails("d", "a", ENOTDIR);
    assert_rename_fails("g", "d", ENOTEMPTY);
    assert_rename_fails("d", "d/e/h", EINVAL);
    assert_rename_fails("d", "x/h", ENOENT);
    assert_rename_fails("/", "h", EBUSY);
    assert_rename_fails("g", "/", EBUSY);
    assert_int_equal(io->rename(io->ctx, "a", "a", &sys_errno), WAL_OK);
    assert_int_equal(io->rename(io->ctx, "d/e", "g", &sys_errno), WAL_OK);
    assert_int_equal(io->path_stat(io->ctx, "g/f", &st, &sys_errno), WAL_OK);
    assert_int_equal(io->path_stat(io->ctx, "d/e", &st, &sys_errno),
                     WAL_ENOTFOUND);
}

/* Unlinks each name while they are listed. */
static enum wal_status unlink_name(void *arg, const char *name)
{
    int *count = arg;
    int sys_errno = 0;

    (*count)++;
    return io->unlink(io->ctx, name, &sys_errno);
}

static void test_io_memory__a_callback_may_change_the_directory(void **state)
{
    (void)state;
    char name[8];
    int count = 0;
    int sys_errno = 0;

    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        io->close(io->ctx, make_file(name));
    }
    assert_int_equal(io->list(io->ctx, ".", unlink_name, &count, &sys_errno),
                     WAL_OK);
    assert_int_equal(count, 20);
    count = 0;
    assert_int_equal(io->list(io->ctx, ".", unlink_name, &count, &sys_errno),
                     WAL_OK);
    assert_int_equal(count, 0);
}

static void test_io_memory__is_no_network(void **state)
{
    (void)state;
    bool network = true;
    char name[32] = "untouched";
    int sys_errno = 0;

    assert_int_equal(io->is_network(io->ctx, "x", &network, name, &sys_errno),
                     WAL_ENOTFOUND);
    assert_string_equal(name, "untouched");
    assert_int_equal(io->is_network(io->ctx, ".", &network, name, &sys_errno),
                     WAL_OK);
    assert_false(network);
    assert_string_equal(name, "memory");
}

/* ------------------------------------------------------ the whole of it --- */

static void test_io_memory__tables_are_independent(void **state)
{
    (void)state;
    struct wal__io *other = NULL;
    struct wal__io_stat st;
    uint8_t ids[3][16];
    int sys_errno = 0;

    assert_int_equal(wal__io_memory_create(&heap.heap, &other), WAL_OK);
    io->close(io->ctx, make_file("a"));
    assert_int_equal(other->path_stat(other->ctx, "a", &st, &sys_errno),
                     WAL_ENOTFOUND);
    io->boot_id(io->ctx, ids[0]);
    io->boot_id(io->ctx, ids[1]);
    other->boot_id(other->ctx, ids[2]);
    assert_memory_equal(ids[0], ids[1], 16);
    assert_memory_not_equal(ids[0], ids[2], 16);
    wal__io_memory_destroy(other);
    wal__io_memory_destroy(NULL);
}

static void test_io_memory__destroying_unmaps_what_is_left(void **state)
{
    (void)state;
    enum {
        size = 64 << 20
    };
    struct wal__io *other = NULL;
    struct wal__file *file = NULL;
    unsigned char resident;
    void *at = NULL;
    int err = 0;

    assert_int_equal(wal__io_memory_create(&heap.heap, &other), WAL_OK);
    assert_int_equal(other->open(other->ctx, "a",
                                 WAL__IO_WRITE | WAL__IO_CREATE, &file, &err),
                     WAL_OK);
    assert_int_equal(other->allocate(other->ctx, file, size, &err), WAL_OK);
    assert_int_equal(other->map(other->ctx, file, size, true, &at, &err),
                     WAL_OK);
    other->unmap(other->ctx, at, size);
    other->close(other->ctx, file);
    assert_int_equal(mincore(at, page, &resident), 0);
    wal__io_memory_destroy(other);
    assert_int_equal(mincore(at, page, &resident), -1);
    assert_int_equal(errno, ENOMEM);
}

static void test_io_memory__only_this_process_is_alive(void **state)
{
    (void)state;
    assert_int_equal(io->process_id(io->ctx), getpid());
    assert_true(io->process_start_time(io->ctx, (uint32_t)getpid()) != 0);
    assert_true(io->process_start_time(io->ctx, (uint32_t)getppid()) == 0);
    assert_true(io->process_start_time(io->ctx, 0) == 0);
}

static void test_io_memory__without_memory_nothing_changes(void **state)
{
    (void)state;
    struct wal__io *other = NULL;
    struct wal__file *file;
    struct wal__io_stat st;
    int sys_errno = 0;

    faulty_heap_fail(&heap, 1, false);
    assert_int_equal(wal__io_memory_create(&heap.heap, &other), WAL_ENOMEM);
    assert_null(other);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        faulty_heap_fail(&heap, nth, false);
        io_case_open_fails("a", WAL__IO_CREATE, WAL_ENOMEM, ENOMEM);
        assert_int_equal(io->path_stat(io->ctx, "a", &st, &sys_errno),
                         WAL_ENOTFOUND);
    }
    faulty_heap_fail(&heap, 1, false);
    assert_int_equal(io->make_directory(io->ctx, "d", &sys_errno), WAL_ENOMEM);
    file = make_file("a");
    faulty_heap_fail(&heap, 1, false);
    assert_int_equal(
        io->lock(io->ctx, file, 0, WAL__IO_LOCK_EXCLUSIVE, &sys_errno),
        WAL_ENOMEM);
    assert_int_equal(io_case_lock(file, 0, WAL__IO_LOCK_SHARED), WAL_OK);
    io->close(io->ctx, file);
}

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
        enum wal_status status =
            io->pread(io->ctx, others->file, back, 16, 0, &got, &err);
        struct wal__file *own;

        WAL__ASSERT(status == WAL_OK && got == 16);
        WAL__ASSERT(memcmp(back, "0123456789abcdef", 16) == 0);
        status =
            io->open(io->ctx, "b", WAL__IO_WRITE | WAL__IO_CREATE, &own, &err);
        WAL__ASSERT(status == WAL_OK);
        status = io->lock(io->ctx, own, 0, WAL__IO_LOCK_SHARED, &err);
        WAL__ASSERT(status == WAL_OK);
        (void)!io->rename(io->ctx, "b", "c", &err);
        io->close(io->ctx, own);
    }
    return NULL;
}

static void test_io_memory__threads_copy_while_a_file_grows(void **state)
{
    (void)state;
    struct others others = {.file = make_file("a")};
    pthread_t threads[3];

    io_case_write(others.file, "0123456789abcdef", 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, read_and_rename, &others), 0);
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

static void test_io_memory__a_forked_child_goes_on_reading(void **state)
{
    (void)state;
    struct others others = {.file = make_file("a")};
    pthread_t thread;

    io_case_write(others.file, "0123456789abcdef", 0);
    assert_int_equal(pthread_create(&thread, NULL, read_and_rename, &others),
                     0);
    for (int i = 0; i < 50; i++) {
        int how = 0;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            struct wal__io *own = NULL;
            char byte = 0;
            size_t got = 0;
            int err;

            /* Ends a child that would wait for ever. */
            (void)alarm(60);
            (void)!io->pread(io->ctx, others.file, &byte, 1, 0, &got, &err);
            (void)!wal__io_memory_create(&wal__heap_libc, &own);
            wal__io_memory_destroy(own);
            _exit(byte == '0' && own != NULL ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    atomic_store(&others.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    io->close(io->ctx, others.file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_io_memory__what_has_no_name_stays_until_its_last_use),
        TEST(test_io_memory__a_replaced_file_stays_until_its_last_use),
        TEST(test_io_memory__zeros_take_no_memory),
        TEST(test_io_memory__files_grow_by_writes),
        TEST(test_io_memory__a_mapped_file_grows_within_its_memory),
        TEST(test_io_memory__an_emptied_file_is_zeros_again),
        TEST(test_io_memory__wrong_use_is_refused),
        TEST(test_io_memory__paths),
        TEST(test_io_memory__renaming_directories),
        TEST(test_io_memory__a_callback_may_change_the_directory),
        TEST(test_io_memory__is_no_network),
        TEST(test_io_memory__tables_are_independent),
        TEST(test_io_memory__destroying_unmaps_what_is_left),
        TEST(test_io_memory__only_this_process_is_alive),
        TEST(test_io_memory__without_memory_nothing_changes),
        TEST(test_io_memory__threads_copy_while_a_file_grows),
        TEST(test_io_memory__a_forked_child_goes_on_reading),
    };

    return io_cases_run("io_memory, as every table", enter, leave) +
           cmocka_run_group_tests(tests, NULL, NULL);
}
