/*
 * test_check_file.c - reading a file of a store from a disk with errors (tools/store_file/file.h).
 * The code is compiled into this test with a pread that fails at a set offset.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t bad_from;
static uint64_t bad_to;

static ssize_t failing_pread(int fd, void *bytes, size_t size, off_t offset)
{
    if ((uint64_t)offset < bad_to && bad_from < (uint64_t)offset + size) {
        errno = EIO;
        return -1;
    }
    return pread(fd, bytes, size, offset);
}

#define pread failing_pread
#include "tests/lib/test.h"
#include "tools/store_file/file.c"
#undef pread

enum {
    SIZE = 1024 * 1024
};

void *cli_realloc(void *data, size_t size)
{
    void *grown = realloc(data, size);

    assert_non_null(grown);
    return grown;
}

static uint8_t content_at(uint64_t offset)
{
    return (uint8_t)(offset * 31 % 251);
}

static int set_up(void **state)
{
    struct cli_file *file = malloc(sizeof(*file));
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
    assert_int_equal(cli_file_open(file, "content"), 0);
    *state = file;
    return 0;
}

static int tear_down(void **state)
{
    cli_file_close(*state);
    free(*state);
    return 0;
}

static void expect_bytes(struct cli_file *file, uint64_t offset, uint64_t size)
{
    const uint8_t *bytes = cli_file_fetch(file, offset, size);

    assert_non_null(bytes);
    for (uint64_t i = 0; i < size; i++) {
        bool bad = offset + i >= file->bad_offset && offset + i < file->bad_end;

        assert_int_equal(bytes[i], bad ? CLI_FILE_FILLER : content_at(offset + i));
    }
}

TEST_WITH(check_file__every_range_is_read, set_up, tear_down)
{
    struct cli_file *file = *state;

    expect_bytes(file, 0, 48);
    expect_bytes(file, 100, 300 * 1024);
    expect_bytes(file, 90, 48);
    expect_bytes(file, SIZE - 7, 7);
    expect_bytes(file, 0, SIZE);
    expect_bytes(file, SIZE, 0);
    assert_int_equal(file->bad_end, 0);
}

TEST_WITH(check_file__beyond_the_end_is_an_error, set_up, tear_down)
{
    struct cli_file *file = *state;

    assert_null(cli_file_fetch(file, SIZE - 7, 8));
    assert_int_equal(file->error, ENODATA);
    assert_null(cli_file_fetch(file, SIZE + 1, 0));
    assert_null(cli_file_fetch(file, 8, UINT64_MAX - 4));
}

TEST_WITH(check_file__bad_sectors_lose_only_their_bytes, set_up, tear_down)
{
    struct cli_file *file = *state;

    bad_from = 5000;
    bad_to = 9000;
    expect_bytes(file, 0, SIZE);
    assert_int_equal(file->bad_offset, 5000 / BLOCK * BLOCK);
    assert_int_equal(file->bad_end, (9000 + BLOCK - 1) / BLOCK * BLOCK);
    assert_int_equal(file->error, EIO);
}

TEST_WITH(check_file__concurrent_truncation_is_an_error, set_up, tear_down)
{
    struct cli_file *file = *state;

    assert_int_equal(truncate("content", SIZE / 2), 0);
    expect_bytes(file, 0, 4096);
    assert_null(cli_file_fetch(file, SIZE / 2, 4096));
    assert_int_equal(file->error, ENODATA);
}
