/*
 * io_cases.c - what every table of io.h does (io_cases.h): each test begins with an empty current
 * directory.
 */
#include "tests/lib/io_cases.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct wal__io *io; /* under test */

void io_case_set_io(const struct wal__io *table)
{
    io = table;
}

struct wal__file *io_case_open(const char *path, int flags)
{
    struct wal__file *file = NULL;
    int sys_errno = 0;

    assert_ok(io->open(io->ctx, path, flags, &file, &sys_errno));
    assert_non_null(file);
    return file;
}

void io_case_open_fails(const char *path, int flags, enum wal_status status, int error)
{
    struct wal__file *file = NULL;
    int sys_errno = 0;

    assert_int_equal(io->open(io->ctx, path, flags, &file, &sys_errno), status);
    assert_int_equal(sys_errno, error);
    assert_null(file);
}

void io_case_write(struct wal__file *file, const char *text, uint64_t offset)
{
    char copy[256];
    struct iovec iov = {copy, strlen(text)};
    int sys_errno = 0;

    assert_true(iov.iov_len <= sizeof(copy));
    memcpy(copy, text, iov.iov_len);
    assert_ok(wal__io_write_full(io, file, &iov, 1, offset, &sys_errno));
}

struct wal__io_stat io_case_stat(struct wal__file *file)
{
    struct wal__io_stat st = {0};
    int sys_errno = 0;

    assert_ok(io->stat(io->ctx, file, &st, &sys_errno));
    return st;
}

enum wal_status io_case_lock(struct wal__file *file, uint64_t offset, enum wal__io_lock mode)
{
    int sys_errno = 0;
    enum wal_status status = io->lock(io->ctx, file, offset, mode, &sys_errno);

    assert_true((status == WAL_OK) == (sys_errno == 0));
    return status;
}

/* ------------------------------------------------------------- files --- */

static void test_io__open_follows_its_flags(void **state)
{
    (void)state;
    struct wal__file *file;
    char byte;
    size_t got = 0;
    struct iovec iov = {&byte, 1};
    int sys_errno = 0;

    io_case_open_fails("a", 0, WAL_ENOTFOUND, ENOENT);
    io_case_open_fails("a", WAL__IO_WRITE, WAL_ENOTFOUND, ENOENT);
    file = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE);
    io_case_write(file, "hello", 0);
    io->close(io->ctx, file);
    io_case_open_fails("a", WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE, WAL_EEXISTS,
                       EEXIST);

    file = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    assert_int_equal(io_case_stat(file).size, 5);
    io->close(io->ctx, file);

    file = io_case_open("a", 0);
    assert_ok(io->pread(io->ctx, file, &byte, 1, 4, &got, &sys_errno));
    assert_int_equal(got, 1);
    assert_int_equal(byte, 'o');
    got = 99;
    assert_int_equal(io->pwritev(io->ctx, file, &iov, 1, 0, &got, &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EBADF);
    assert_int_equal(got, 99);
    io->close(io->ctx, file);

    file = io_case_open("a", WAL__IO_WRITE | WAL__IO_TRUNCATE);
    assert_int_equal(io_case_stat(file).size, 0);
    io->close(io->ctx, file);
}

static void test_io__a_file_as_a_folder_is_not_found(void **state)
{
    (void)state;
    struct wal__io_stat st;
    int sys_errno = 0;

    io->close(io->ctx, io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE));
    io_case_open_fails("a/b", 0, WAL_ENOTFOUND, ENOTDIR);
    assert_int_equal(io->path_stat(io->ctx, "a/b", &st, &sys_errno), WAL_ENOTFOUND);
    assert_int_equal(sys_errno, ENOTDIR);
}

static void test_io__more_pieces_than_iov_max(void **state)
{
    (void)state;
    enum { count = 3000 };
    static uint8_t data[count * 3];
    static uint8_t back[count * 3 + 1];
    static struct iovec iov[count];
    struct wal__file *file = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    size_t got = 0;
    int sys_errno = 0;

    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 13);
    }
    for (size_t i = 0; i < count; i++) {
        iov[i] = (struct iovec){data + i * 3, 3};
    }
    assert_ok(wal__io_write_full(io, file, iov, count, 100, &sys_errno));
    assert_ok(wal__io_read_full(io, file, back, sizeof(back), 100, &got, &sys_errno));
    assert_int_equal(got, sizeof(data));
    assert_memory_equal(back, data, sizeof(data));
    assert_ok(io->sync(io->ctx, file, &sys_errno));
    io->close(io->ctx, file);
}

static void test_io__offsets_beyond_the_system_are_refused(void **state)
{
    (void)state;
    struct wal__file *file = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    char byte = 0;
    size_t got = 0;
    int sys_errno = 0;

    assert_int_equal(io->pread(io->ctx, file, &byte, 1, UINT64_MAX, &got, &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EINVAL);
    assert_int_equal(io->allocate(io->ctx, file, UINT64_MAX, &sys_errno), WAL_EIO);
    assert_int_equal(io_case_stat(file).size, 0);
    io->close(io->ctx, file);
}

void io_case_check_allocate(const char *path)
{
    struct wal__file *file = io_case_open(path, WAL__IO_WRITE | WAL__IO_CREATE);
    static uint8_t back[200000];
    size_t got = 0;
    int sys_errno = 0;

    io_case_write(file, "hello", 0);
    assert_ok(io->allocate(io->ctx, file, 0, &sys_errno));
    assert_int_equal(io_case_stat(file).size, 5);
    assert_ok(io->allocate(io->ctx, file, 150001, &sys_errno));
    assert_int_equal(io_case_stat(file).size, 150001);
    assert_ok(io->sync(io->ctx, file, &sys_errno));
    assert_true(io->in_memory || io_case_stat(file).allocated >= 150001);
    assert_ok(wal__io_read_full(io, file, back, sizeof(back), 0, &got, &sys_errno));
    assert_int_equal(got, 150001);
    assert_memory_equal(back, "hello", 5);
    for (size_t i = 5; i < got; i++) {
        assert_int_equal(back[i], 0);
    }

    /* Never shorter. */
    assert_ok(io->allocate(io->ctx, file, 100, &sys_errno));
    assert_int_equal(io_case_stat(file).size, 150001);
    io->close(io->ctx, file);
}

static void test_io__allocate_reserves_zeros(void **state)
{
    (void)state;
    io_case_check_allocate("a");
}

static void test_io__stat_distinguishes_files(void **state)
{
    (void)state;
    struct wal__file *a = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__file *b = io_case_open("b", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__io_stat by_path = {0};
    struct wal__io_stat by_file;
    int sys_errno = 0;

    io_case_write(a, "hello", 1000);
    by_file = io_case_stat(a);
    assert_ok(io->path_stat(io->ctx, "a", &by_path, &sys_errno));
    assert_int_equal(by_file.size, 1005);
    assert_int_equal(by_path.size, 1005);
    assert_false(by_path.is_directory);
    assert_true(by_path.inode == by_file.inode);
    assert_true(by_path.device == by_file.device);
    assert_true(by_file.inode != io_case_stat(b).inode);
    assert_ok(io->path_stat(io->ctx, ".", &by_path, &sys_errno));
    assert_true(by_path.is_directory);
    by_path.size = 4711;
    assert_int_equal(io->path_stat(io->ctx, "x", &by_path, &sys_errno), WAL_ENOTFOUND);
    assert_int_equal(by_path.size, 4711);
    io->close(io->ctx, a);
    io->close(io->ctx, b);
}

static void test_io__a_map_sees_writes_and_outlives_the_file(void **state)
{
    (void)state;
    struct wal__file *file = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__file *reader;
    void *view = NULL;
    void *page = NULL;
    char back[5];
    size_t got = 0;
    int sys_errno = 0;

    assert_ok(io->allocate(io->ctx, file, 8192, &sys_errno));
    reader = io_case_open("a", 0);
    assert_ok(io->map(io->ctx, reader, 8192, false, &view, &sys_errno));
    assert_ok(io->map(io->ctx, file, 8192, true, &page, &sys_errno));
    io_case_write(file, "hello", 5000);
    assert_memory_equal((char *)view + 5000, "hello", 5);
    memcpy((char *)page + 100, "world", 5);
    assert_memory_equal((char *)view + 100, "world", 5);
    assert_ok(io->pread(io->ctx, reader, back, 5, 100, &got, &sys_errno));
    assert_memory_equal(back, "world", 5);

    io->close(io->ctx, file);
    io->close(io->ctx, reader);
    assert_ok(io->unlink(io->ctx, "a", &sys_errno));
    assert_memory_equal((char *)view + 5000, "hello", 5);
    io->unmap(io->ctx, view, 8192);
    io->unmap(io->ctx, page, 8192);
}

static void test_io__invalid_maps_are_refused(void **state)
{
    (void)state;
    struct wal__file *file;
    void *at = NULL;
    int sys_errno = 0;

    io->close(io->ctx, io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE));
    file = io_case_open("a", 0);
    assert_int_equal(io->map(io->ctx, file, 4096, true, &at, &sys_errno), WAL_EREADONLY);
    assert_int_equal(sys_errno, EACCES);
    assert_int_equal(io->map(io->ctx, file, 0, false, &at, &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EINVAL);
    assert_null(at);
    io->close(io->ctx, file);
}

/* ------------------------------------------------------------- locks --- */

static void test_io__locks_belong_to_the_open_file(void **state)
{
    (void)state;
    struct wal__file *a = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__file *b = io_case_open("a", WAL__IO_WRITE);

    assert_ok(io_case_lock(a, 3, WAL__IO_LOCK_EXCLUSIVE));
    assert_int_equal(io_case_lock(b, 3, WAL__IO_LOCK_EXCLUSIVE), WAL_ELOCKED);
    assert_int_equal(io_case_lock(b, 3, WAL__IO_LOCK_SHARED), WAL_ELOCKED);
    assert_ok(io_case_lock(a, 3, WAL__IO_LOCK_EXCLUSIVE));

    /* One byte only. */
    assert_ok(io_case_lock(b, 2, WAL__IO_LOCK_EXCLUSIVE));
    assert_ok(io_case_lock(b, 4, WAL__IO_LOCK_EXCLUSIVE));
    assert_int_equal(io_case_lock(a, 4, WAL__IO_LOCK_SHARED), WAL_ELOCKED);

    /* Another's unlock changes nothing. */
    assert_ok(io_case_lock(b, 3, WAL__IO_LOCK_NONE));
    assert_int_equal(io_case_lock(b, 3, WAL__IO_LOCK_SHARED), WAL_ELOCKED);
    assert_ok(io_case_lock(a, 3, WAL__IO_LOCK_NONE));
    assert_ok(io_case_lock(b, 3, WAL__IO_LOCK_EXCLUSIVE));

    /* Closing frees, but not by closing some other handle of the file. */
    io->close(io->ctx, io_case_open("a", WAL__IO_WRITE));
    assert_int_equal(io_case_lock(a, 3, WAL__IO_LOCK_SHARED), WAL_ELOCKED);
    io->close(io->ctx, b);
    assert_ok(io_case_lock(a, 3, WAL__IO_LOCK_EXCLUSIVE));
    io->close(io->ctx, a);
}

static void test_io__shared_locks_are_compatible(void **state)
{
    (void)state;
    struct wal__file *a = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__file *b = io_case_open("a", WAL__IO_WRITE);

    assert_ok(io_case_lock(a, 0, WAL__IO_LOCK_SHARED));
    assert_ok(io_case_lock(b, 0, WAL__IO_LOCK_SHARED));
    assert_int_equal(io_case_lock(b, 0, WAL__IO_LOCK_EXCLUSIVE), WAL_ELOCKED);
    assert_ok(io_case_lock(a, 0, WAL__IO_LOCK_NONE));
    assert_ok(io_case_lock(b, 0, WAL__IO_LOCK_EXCLUSIVE));
    io->close(io->ctx, a);
    io->close(io->ctx, b);
}

static void test_io__testing_a_lock_changes_nothing(void **state)
{
    (void)state;
    struct wal__file *a = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__file *b = io_case_open("a", 0);

    assert_ok(io_case_lock(b, 3, WAL__IO_LOCK_TEST));
    assert_ok(io_case_lock(a, 3, WAL__IO_LOCK_EXCLUSIVE));
    assert_int_equal(io_case_lock(b, 3, WAL__IO_LOCK_TEST), WAL_ELOCKED);
    assert_ok(io_case_lock(b, 4, WAL__IO_LOCK_TEST));
    /* The own lock does not conflict, and remains. */
    assert_ok(io_case_lock(a, 3, WAL__IO_LOCK_TEST));
    assert_int_equal(io_case_lock(b, 3, WAL__IO_LOCK_SHARED), WAL_ELOCKED);
    assert_ok(io_case_lock(a, 3, WAL__IO_LOCK_SHARED));
    assert_int_equal(io_case_lock(b, 3, WAL__IO_LOCK_TEST), WAL_ELOCKED);
    assert_ok(io_case_lock(a, 3, WAL__IO_LOCK_NONE));
    assert_ok(io_case_lock(b, 3, WAL__IO_LOCK_TEST));
    assert_ok(io_case_lock(a, 3, WAL__IO_LOCK_EXCLUSIVE));
    io->close(io->ctx, a);
    io->close(io->ctx, b);
}

/* ------------------------------------------------------------- names --- */

static void test_io__directories(void **state)
{
    (void)state;
    int sys_errno = 0;

    assert_ok(io->make_directory(io->ctx, "d", &sys_errno));
    assert_int_equal(io->make_directory(io->ctx, "d", &sys_errno), WAL_EEXISTS);
    assert_int_equal(sys_errno, EEXIST);
    assert_int_equal(io->make_directory(io->ctx, "x/y", &sys_errno), WAL_ENOTFOUND);
    assert_ok(io->sync_directory(io->ctx, "d", &sys_errno));
    assert_int_equal(io->sync_directory(io->ctx, "x", &sys_errno), WAL_ENOTFOUND);
    io->close(io->ctx, io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE));
    assert_int_equal(io->sync_directory(io->ctx, "a", &sys_errno), WAL_ENOTFOUND);
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

static void test_io__list_gives_every_name_once(void **state)
{
    (void)state;
    struct names names = {0};
    int sys_errno = 0;

    io->close(io->ctx, io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE));
    io->close(io->ctx, io_case_open("b", WAL__IO_WRITE | WAL__IO_CREATE));
    assert_ok(io->make_directory(io->ctx, "c", &sys_errno));
    assert_ok(io->list(io->ctx, ".", note_name, &names, &sys_errno));
    assert_int_equal(names.count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(names.seen[i], 1);
    }

    /* The callback ends it. */
    names = (struct names){.stop_at = 2};
    sys_errno = 5;
    assert_int_equal(io->list(io->ctx, ".", note_name, &names, &sys_errno), WAL_ECONFLICT);
    assert_int_equal(sys_errno, 0);
    assert_int_equal(names.count, 2);

    names = (struct names){0};
    assert_ok(io->list(io->ctx, "c", note_name, &names, &sys_errno));
    assert_int_equal(io->list(io->ctx, "x", note_name, &names, &sys_errno), WAL_ENOTFOUND);
    assert_int_equal(io->list(io->ctx, "a", note_name, &names, &sys_errno), WAL_ENOTFOUND);
    assert_int_equal(names.count, 0);
}

static void test_io__rename_replaces_and_unlink_removes(void **state)
{
    (void)state;
    struct wal__file *file = io_case_open("a", WAL__IO_WRITE | WAL__IO_CREATE);
    struct wal__io_stat st;
    int sys_errno = 0;

    io_case_write(file, "hello", 0);
    io->close(io->ctx, file);
    io->close(io->ctx, io_case_open("b", WAL__IO_WRITE | WAL__IO_CREATE));
    assert_ok(io->rename(io->ctx, "a", "b", &sys_errno));
    assert_int_equal(io->path_stat(io->ctx, "a", &st, &sys_errno), WAL_ENOTFOUND);
    assert_ok(io->path_stat(io->ctx, "b", &st, &sys_errno));
    assert_int_equal(st.size, 5);
    assert_int_equal(io->rename(io->ctx, "a", "b", &sys_errno), WAL_ENOTFOUND);
    assert_ok(io->unlink(io->ctx, "b", &sys_errno));
    assert_int_equal(io->unlink(io->ctx, "b", &sys_errno), WAL_ENOTFOUND);
}

static void test_io__remove_directory_removes_an_empty_one(void **state)
{
    (void)state;
    struct wal__io_stat st;
    int sys_errno = 0;

    assert_ok(io->make_directory(io->ctx, "d", &sys_errno));
    io->close(io->ctx, io_case_open("d/a", WAL__IO_WRITE | WAL__IO_CREATE));
    assert_int_not_equal(io->remove_directory(io->ctx, "d", &sys_errno), WAL_OK);
    assert_int_equal(sys_errno, ENOTEMPTY);
    assert_int_not_equal(io->remove_directory(io->ctx, "d/a", &sys_errno), WAL_OK);
    assert_int_equal(sys_errno, ENOTDIR);
    assert_ok(io->unlink(io->ctx, "d/a", &sys_errno));
    assert_ok(io->remove_directory(io->ctx, "d", &sys_errno));
    assert_int_equal(io->path_stat(io->ctx, "d", &st, &sys_errno), WAL_ENOTFOUND);
    assert_int_equal(io->remove_directory(io->ctx, "d", &sys_errno), WAL_ENOTFOUND);
}

/* ------------------------------------------- clocks, chance, waiting --- */

static void test_io__clocks(void **state)
{
    (void)state;
    uint64_t before = io->monotonic_ns(io->ctx);
    int64_t now = io->now_ms(io->ctx);

    assert_true(now > INT64_C(1600000000000));
    /* time() may lag by one tick of the kernel. */
    assert_in_range(time(NULL) - now / 1000 + 1, 0, 3);
    assert_int_equal(usleep(2000), 0);
    assert_true(io->monotonic_ns(io->ctx) - before >= 2000000);
}

static void test_io__random_fills_the_whole_buffer(void **state)
{
    (void)state;
    static uint8_t a[70000];
    static uint8_t b[70000];
    size_t zeros = 0;

    io->random(io->ctx, a, sizeof(a));
    io->random(io->ctx, b, sizeof(b) - 100);
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

static void test_io__wait_times_out(void **state)
{
    (void)state;
    uint32_t word = 1;
    uint64_t before = io->monotonic_ns(io->ctx);

    /* The word is another already. */
    io->futex_wait(io->ctx, &word, 2, UINT64_MAX);
    io->futex_wait(io->ctx, &word, 1, 20000000);
    assert_in_range(io->monotonic_ns(io->ctx) - before, 19000000, 10000000000);
}

int io_cases_run(const char *group, CMFixtureFunction enter, CMFixtureFunction leave)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        CASE(test_io__open_follows_its_flags),
        CASE(test_io__a_file_as_a_folder_is_not_found),
        CASE(test_io__more_pieces_than_iov_max),
        CASE(test_io__offsets_beyond_the_system_are_refused),
        CASE(test_io__allocate_reserves_zeros),
        CASE(test_io__stat_distinguishes_files),
        CASE(test_io__a_map_sees_writes_and_outlives_the_file),
        CASE(test_io__invalid_maps_are_refused),
        CASE(test_io__locks_belong_to_the_open_file),
        CASE(test_io__shared_locks_are_compatible),
        CASE(test_io__testing_a_lock_changes_nothing),
        CASE(test_io__directories),
        CASE(test_io__list_gives_every_name_once),
        CASE(test_io__rename_replaces_and_unlink_removes),
        CASE(test_io__remove_directory_removes_an_empty_one),
        CASE(test_io__clocks),
        CASE(test_io__random_fills_the_whole_buffer),
        CASE(test_io__wait_times_out),
    };
#undef CASE

    return cmocka_run_group_tests_name(group, tests, NULL, NULL);
}
