/*
 * test_driver_file.c - tests of remote/driver/driver_file: the contract of all
 * drivers (driver_cases.h), and what is special to a directory.
 */
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver_cases.h"
#include "remote/driver/driver.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"

static char directory[PATH_MAX];
static struct wal_error failure = {.struct_size = sizeof(failure)};

/* PATH below the directory. */
static const char *path_of(const char *path)
{
    static char text[PATH_MAX + 256];

    (void)snprintf(text, sizeof(text), "%s/%s", directory, path);
    return text;
}

static struct wal__driver *open_in(const char *below,
                                   const struct wal__heap *heap)
{
    char url[PATH_MAX + 300];
    struct wal__driver *driver = NULL;

    (void)snprintf(url, sizeof(url), "file://%s", path_of(below));
    assert_ok(wal__driver_open(url, heap, &driver, &failure));
    return driver;
}

static struct wal_slice slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static bool count_each(void *ctx, const char *name, uint64_t size)
{
    (void)name;
    (void)size;
    ++*(int *)ctx;
    return true;
}

static int count_of(struct wal__driver *driver)
{
    int count = 0;

    assert_ok(
        driver->calls->list(driver, "", "", count_each, &count, &failure));
    return count;
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path_of(path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

TEST(driver_file__missing_directory_is_no_store)
{
    struct wal__driver *driver = open_in("missing", &wal__heap_libc);
    struct wal__buf bytes;
    uint64_t size = 0;
    int count = 0;

    wal__buf_init(&bytes, &wal__heap_libc);
    assert_int_equal(
        driver->calls->put_if_absent(driver, "a/b", slice("x"), &failure),
        WAL_ENOTSTORE);
    assert_int_equal(driver->calls->put(driver, "a", slice("x"), &failure),
                     WAL_ENOTSTORE);
    assert_int_equal(driver->calls->get(driver, "a", 0, 1, &bytes, &failure),
                     WAL_ENOTSTORE);
    assert_int_equal(driver->calls->head(driver, "a", &size, &failure),
                     WAL_ENOTSTORE);
    assert_int_equal(driver->calls->remove(driver, "a", &failure),
                     WAL_ENOTSTORE);
    assert_int_equal(
        driver->calls->list(driver, "", "", count_each, &count, &failure),
        WAL_ENOTSTORE);
    assert_int_equal(access(path_of("missing"), F_OK), -1);
    driver->calls->close(driver);
}

TEST(driver_file__leftovers_are_not_objects)
{
    struct wal__driver *driver;

    assert_int_equal(mkdir(path_of("left"), 0700), 0);
    driver = open_in("left", &wal__heap_libc);
    assert_ok(
        driver->calls->put_if_absent(driver, "a/b", slice("x"), &failure));
    write_file("left/~12.0", "half");
    write_file("left/a/~13.7", "half");
    write_file("left/a name", "foreign");
    assert_int_equal(mkdir(path_of("left/empty"), 0700), 0);
    assert_int_equal(symlink("b", path_of("left/a/link")), 0);
    assert_int_equal(mkfifo(path_of("left/fifo"), 0600), 0);
    assert_int_equal(count_of(driver), 1);
    driver->calls->close(driver);
}

TEST(driver_file__no_temporary_file_remains)
{
    struct wal__driver *driver;
    struct dirent *entry;
    int count = 0;
    DIR *dir;

    assert_int_equal(mkdir(path_of("clean"), 0700), 0);
    driver = open_in("clean", &wal__heap_libc);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            driver->calls->put_if_absent(driver, "a", slice("x"), &failure),
            i == 0 ? WAL_OK : WAL_EEXISTS);
        assert_ok(driver->calls->put(driver, "b", slice("y"), &failure));
    }
    assert_ok(driver->calls->put(driver, "c/d", slice("y"), &failure));
    assert_int_equal(driver->calls->put(driver, "c", slice("y"), &failure),
                     WAL_EINVAL);
    dir = opendir(path_of("clean"));
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    assert_int_equal(closedir(dir), 0);
    assert_int_equal(count, 3);
    driver->calls->close(driver);
}

TEST(driver_file__directory_is_not_an_object)
{
    struct wal__driver *driver;
    uint64_t size = 0;

    assert_int_equal(mkdir(path_of("both"), 0700), 0);
    driver = open_in("both", &wal__heap_libc);
    assert_ok(driver->calls->put(driver, "a/b", slice("x"), &failure));
    assert_int_equal(driver->calls->head(driver, "a", &size, &failure),
                     WAL_ENOTFOUND);
    assert_int_equal(driver->calls->head(driver, "a/b/c", &size, &failure),
                     WAL_ENOTFOUND);
    assert_ok(driver->calls->remove(driver, "a", &failure));
    assert_ok(driver->calls->remove(driver, "a/b/c", &failure));
    assert_int_equal(
        driver->calls->put_if_absent(driver, "a", slice("x"), &failure),
        WAL_EINVAL);
    assert_int_equal(
        driver->calls->put_if_absent(driver, "a/b/c", slice("x"), &failure),
        WAL_EINVAL);
    assert_ok(driver->calls->head(driver, "a/b", &size, &failure));
    assert_int_equal(count_of(driver), 1);
    driver->calls->close(driver);
}

TEST(driver_file__links_are_not_followed)
{
    struct wal__driver *driver;
    uint64_t size = 0;

    assert_int_equal(mkdir(path_of("linked"), 0700), 0);
    assert_int_equal(mkdir(path_of("outside"), 0700), 0);
    write_file("outside/file", "secret");
    assert_int_equal(symlink("../outside", path_of("linked/dir")), 0);
    assert_int_equal(symlink("../outside/file", path_of("linked/file")), 0);
    driver = open_in("linked", &wal__heap_libc);
    assert_int_equal(driver->calls->head(driver, "dir/file", &size, &failure),
                     WAL_ENOTFOUND);
    assert_int_equal(driver->calls->head(driver, "file", &size, &failure),
                     WAL_ENOTFOUND);
    assert_int_equal(
        driver->calls->put(driver, "dir/new", slice("x"), &failure),
        WAL_EINVAL);
    assert_int_equal(access(path_of("outside/new"), F_OK), -1);
    assert_int_equal(count_of(driver), 0);
    driver->calls->close(driver);
}

TEST(driver_file__each_failed_allocation_is_reported)
{
    struct faulty_heap faulty;
    struct wal__driver *driver;
    struct wal__buf bytes;
    int lists = 0;
    int gets = 0;

    faulty_heap_init(&faulty, &wal__heap_libc);
    assert_int_equal(mkdir(path_of("heap"), 0700), 0);
    driver = open_in("heap", &faulty.heap);
    assert_ok(driver->calls->put(driver, "a/b/c", slice("x"), &failure));
    for (enum wal_status status = WAL_ENOMEM; status != WAL_OK; lists++) {
        int count = 0;

        faulty_heap_fail(&faulty, (uint64_t)lists + 1, false);
        status =
            driver->calls->list(driver, "", "", count_each, &count, &failure);
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
    }
    assert_true(lists > 3);
    for (enum wal_status status = WAL_ENOMEM; status != WAL_OK; gets++) {
        wal__buf_init(&bytes, &faulty.heap);
        faulty_heap_fail(&faulty, (uint64_t)gets + 1, false);
        status = driver->calls->get(driver, "a/b/c", 0, 9, &bytes, &failure);
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
        wal__buf_deinit(&bytes);
    }
    assert_true(gets > 1);
    driver->calls->close(driver);
    assert_int_equal(faulty.live, 0);
}

static int run_cases(void)
{
    char template[] = "remote.XXXXXX";
    char url[PATH_MAX + 16];

    if (mkdtemp(template) == NULL || realpath(template, directory) == NULL) {
        return 1;
    }
    (void)snprintf(url, sizeof(url), "file://%s", directory);
    return driver_cases_run(url);
}

TEST_FILE(NULL, NULL, run_cases);
