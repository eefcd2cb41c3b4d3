/*
 * test_damaged_file.c - reading a file of a store from a disk with errors
 * (engine/care/damaged_store.h): pread fails at a set offset.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/care/damaged_store.h"
#include "tests/lib/test.h"

enum { SIZE = 1024 * 1024, BLOCK = 512, FILLER = 0xa5 };

static uint64_t bad_from;
static uint64_t bad_to;

static enum wal_status failing_pread(void *ctx, struct wal__file *file, void *data, size_t size,
                                     uint64_t offset, size_t *bytes_read, int *sys_errno)
{
    if (offset < bad_to && bad_from < offset + size) {
        *sys_errno = EIO;
        return WAL_EIO;
    }
    return wal__io_posix.pread(ctx, file, data, size, offset, bytes_read, sys_errno);
}

static struct wal__io io;
static const struct wal__env env = {.heap = &wal__heap_libc, .io = &io, .root = "."};

static uint8_t content_at(uint64_t offset)
{
    return (uint8_t)(offset * 31 % 251);
}

static int set_up(void **state)
{
    struct wal__damaged_file *file = malloc(sizeof(*file));
    uint8_t *bytes = malloc(SIZE);
    FILE *out = fopen("content", "wb");

    assert_true(file != NULL && bytes != NULL && out != NULL);
    for (uint64_t i = 0; i < SIZE; i++) {
        bytes[i] = content_at(i);
    }
    assert_int_equal(fwrite(bytes, SIZE, 1, out), 1);
    assert_int_equal(fclose(out), 0);
    free(bytes);
    bad_from = 0;
    bad_to = 0;
    io = wal__io_posix;
    io.pread = failing_pread;
    assert_int_equal(wal__damaged_file_open(file, &env, "content"), WAL_OK);
    *state = file;
    return 0;
}

static int tear_down(void **state)
{
    wal__damaged_file_close(*state);
    free(*state);
    return 0;
}

static void expect_bytes(struct wal__damaged_file *file, uint64_t offset, uint64_t size)
{
    const uint8_t *bytes = wal__damaged_file_fetch(file, offset, size);

    assert_non_null(bytes);
    for (uint64_t i = 0; i < size; i++) {
        bool bad = offset + i >= file->bad_offset && offset + i < file->bad_end;

        assert_int_equal(bytes[i], bad ? FILLER : content_at(offset + i));
    }
}

TEST_WITH(damaged_file__every_range_is_read, set_up, tear_down)
{
    struct wal__damaged_file *file = *state;

    expect_bytes(file, 0, 48);
    expect_bytes(file, 100, 300 * 1024);
    expect_bytes(file, 90, 48);
    expect_bytes(file, SIZE - 7, 7);
    expect_bytes(file, 0, SIZE);
    expect_bytes(file, SIZE, 0);
    assert_int_equal(file->bad_end, 0);
}

TEST_WITH(damaged_file__beyond_the_end_is_an_error, set_up, tear_down)
{
    struct wal__damaged_file *file = *state;

    assert_null(wal__damaged_file_fetch(file, SIZE - 7, 8));
    assert_int_equal(file->error, ENODATA);
    assert_null(wal__damaged_file_fetch(file, SIZE + 1, 0));
    assert_null(wal__damaged_file_fetch(file, 8, UINT64_MAX - 4));
}

TEST_WITH(damaged_file__bad_sectors_lose_only_their_bytes, set_up, tear_down)
{
    struct wal__damaged_file *file = *state;

    bad_from = 5000;
    bad_to = 9000;
    expect_bytes(file, 0, SIZE);
    assert_int_equal(file->bad_offset, 5000 / BLOCK * BLOCK);
    assert_int_equal(file->bad_end, (9000 + BLOCK - 1) / BLOCK * BLOCK);
    assert_int_equal(file->error, EIO);
}

TEST_WITH(damaged_file__concurrent_truncation_is_an_error, set_up, tear_down)
{
    struct wal__damaged_file *file = *state;

    assert_int_equal(truncate("content", SIZE / 2), 0);
    expect_bytes(file, 0, 4096);
    assert_null(wal__damaged_file_fetch(file, SIZE / 2, 4096));
    assert_int_equal(file->error, ENODATA);
}

/* Opens the file, or what is in its place; the errno value. */
static int open_error(const char *path, int flags)
{
    struct wal__damaged_file file;
    int error = wal__damaged_path_open(&file, &env, path, flags) == WAL_OK ? 0 : file.error;

    wal__damaged_file_close(&file);
    return error;
}

TEST_WITH(damaged_file__a_link_is_followed_where_it_is_asked_for, set_up, tear_down)
{
    (void)state;
    assert_int_equal(symlink("content", "link"), 0);
    assert_int_equal(open_error("link", 0), ELOOP);
    assert_int_equal(open_error("link", WAL__IO_FOLLOW), 0);
    assert_int_equal(open_error(".", 0), EISDIR);
    assert_int_equal(open_error("missing", 0), ENOENT);
}
