/*
 * test_io.c - tests of engine/io/io: whole reads and writes over a table that moves a few bytes,
 * nothing, or fails.
 */
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include "engine/base/io.h"
#include "tests/lib/test.h"

enum { disk_size = 512 };

/* A file in memory that follows a script. */
struct disk {
    uint8_t bytes[disk_size];
    size_t size;
    size_t piece; /* most bytes that one call moves */
    int calls;
    int fail_at;     /* from this call on, counted from 1; 0: never */
    int fail_count;  /* number of calls that fail */
    int fail_errno;  /* 0: move nothing and answer WAL_OK */
    int again_every; /* every n-th call is EAGAIN; 0: none */
};

/* WAL_END: go on. */
static enum wal_status next_call(struct disk *disk, int *sys_errno)
{
    disk->calls++;
    if (disk->again_every != 0 && disk->calls % disk->again_every == 0) {
        *sys_errno = EAGAIN;
        return WAL_EIO;
    }
    if (disk->fail_at == 0 || disk->calls < disk->fail_at ||
        disk->calls >= disk->fail_at + disk->fail_count) {
        return WAL_END;
    }
    if (disk->fail_errno == 0) {
        return WAL_OK;
    }
    *sys_errno = disk->fail_errno;
    return disk->fail_errno == ENOSPC ? WAL_ENOSPACE : WAL_EIO;
}

static size_t smallest(size_t a, size_t b)
{
    return a < b ? a : b;
}

static enum wal_status disk_pread(void *ctx, struct wal__file *file, void *data, size_t size,
                                  uint64_t offset, size_t *got, int *sys_errno)
{
    struct disk *disk = ctx;
    enum wal_status status = next_call(disk, sys_errno);

    assert_null(file);
    if (status != WAL_END) {
        *got = 0;
        return status;
    }
    *got = 0;
    if (offset < disk->size) {
        *got = smallest(smallest(size, disk->piece), disk->size - offset);
        memcpy(data, disk->bytes + offset, *got);
    }
    return WAL_OK;
}

static enum wal_status disk_pwritev(void *ctx, struct wal__file *file, const struct iovec *iov,
                                    int count, uint64_t offset, size_t *put, int *sys_errno)
{
    struct disk *disk = ctx;
    enum wal_status status = next_call(disk, sys_errno);
    size_t done = 0;

    assert_null(file);
    assert_true(count > 0);
    if (status != WAL_END) {
        *put = 0;
        return status;
    }
    for (int i = 0; i < count && done < disk->piece; i++) {
        size_t part = smallest(iov[i].iov_len, disk->piece - done);

        assert_true(offset + done + part <= disk_size);
        if (part > 0) {
            memcpy(disk->bytes + offset + done, iov[i].iov_base, part);
        }
        done += part;
    }
    *put = done;
    return WAL_OK;
}

static struct wal__io table(struct disk *disk)
{
    return (struct wal__io){.ctx = disk, .pread = disk_pread, .pwritev = disk_pwritev};
}

static void fill(uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(i * 7 + 1);
    }
}

TEST(io__short_reads_are_continued)
{
    for (size_t piece = 1; piece < 120; piece++) {
        for (int again_every = 0; again_every < 4; again_every += 2) {
            struct disk disk = {.size = 200, .piece = piece, .again_every = again_every};
            struct wal__io io = table(&disk);
            uint8_t data[100] = {0};
            size_t got = 0;
            int sys_errno = 0;

            fill(disk.bytes, disk.size);
            assert_ok(wal__io_read_full(&io, NULL, data, sizeof(data), 33, &got, &sys_errno));
            assert_int_equal(got, sizeof(data));
            assert_memory_equal(data, disk.bytes + 33, sizeof(data));
        }
    }
}

TEST(io__a_read_stops_at_the_end_of_the_file)
{
    struct disk disk = {.size = 50, .piece = 20};
    struct wal__io io = table(&disk);
    uint8_t data[100];
    size_t got = 1;
    int sys_errno = 0;

    fill(disk.bytes, disk.size);
    assert_ok(wal__io_read_full(&io, NULL, data, sizeof(data), 5, &got, &sys_errno));
    assert_int_equal(got, 45);
    assert_memory_equal(data, disk.bytes + 5, 45);
    assert_ok(wal__io_read_full(&io, NULL, data, sizeof(data), 50, &got, &sys_errno));
    assert_int_equal(got, 0);
    disk.calls = 0;
    assert_ok(wal__io_read_full(&io, NULL, NULL, 0, 0, &got, &sys_errno));
    assert_int_equal(disk.calls, 0);
}

TEST(io__failed_read_returns_no_bytes)
{
    struct disk disk = {.size = 100, .piece = 10, .fail_at = 3, .fail_count = 1, .fail_errno = EIO};
    struct wal__io io = table(&disk);
    uint8_t data[100];
    size_t got = 4711;
    int sys_errno = 0;

    assert_int_equal(wal__io_read_full(&io, NULL, data, sizeof(data), 0, &got, &sys_errno),
                     WAL_EIO);
    assert_int_equal(sys_errno, EIO);
    assert_int_equal(got, 4711);
    assert_int_equal(disk.calls, 3);
}

TEST(io__endless_eagain_ends)
{
    struct disk disk = {
        .size = 100, .piece = 10, .fail_at = 2, .fail_count = 1000000, .fail_errno = EAGAIN};
    struct wal__io io = table(&disk);
    uint8_t data[100] = {0};
    struct iovec iov = {data, sizeof(data)};
    size_t got = 4711;
    int sys_errno = 0;

    assert_int_equal(wal__io_read_full(&io, NULL, data, sizeof(data), 0, &got, &sys_errno),
                     WAL_EIO);
    assert_int_equal(sys_errno, EAGAIN);
    assert_in_range(disk.calls, 3, 1000);
    sys_errno = 0;
    disk.calls = 0;
    assert_int_equal(wal__io_write_full(&io, NULL, &iov, 1, 0, &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EAGAIN);
    assert_in_range(disk.calls, 3, 1000);
}

/* Pieces of 0, 1, 2, ... bytes of `data`, with empty ones at both ends. */
static int cut(uint8_t *data, size_t size, struct iovec *iov)
{
    size_t at = 0;
    int count = 0;

    iov[count++] = (struct iovec){NULL, 0};
    for (size_t part = 0; at < size; part++) {
        part = smallest(part, size - at);
        iov[count++] = (struct iovec){data + at, part};
        at += part;
    }
    iov[count++] = (struct iovec){NULL, 0};
    return count;
}

TEST(io__short_writes_are_continued_without_a_gap)
{
    uint8_t data[200];
    struct iovec iov[64];
    int count = cut(data, sizeof(data), iov);

    fill(data, sizeof(data));
    for (size_t piece = 1; piece <= sizeof(data); piece++) {
        for (int again_every = 0; again_every < 4; again_every += 2) {
            struct disk disk = {.piece = piece, .again_every = again_every};
            struct wal__io io = table(&disk);
            struct iovec before[64];
            int sys_errno = 0;

            memcpy(before, iov, sizeof(iov[0]) * (size_t)count);
            assert_ok(wal__io_write_full(&io, NULL, iov, count, 77, &sys_errno));
            assert_memory_equal(disk.bytes + 77, data, sizeof(data));
            assert_int_equal(disk.bytes[76], 0);
            assert_int_equal(disk.bytes[77 + sizeof(data)], 0);
            assert_memory_equal(iov, before, sizeof(iov[0]) * (size_t)count);
        }
    }
}

TEST(io__a_whole_write_is_one_call)
{
    uint8_t data[200];
    struct iovec iov[64];
    int count = cut(data, sizeof(data), iov);
    struct disk disk = {.piece = disk_size};
    struct wal__io io = table(&disk);
    int sys_errno = 0;

    fill(data, sizeof(data));
    assert_ok(wal__io_write_full(&io, NULL, iov, count, 0, &sys_errno));
    assert_int_equal(disk.calls, 1);
}

TEST(io__writing_nothing_makes_no_call)
{
    struct iovec iov[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    struct disk disk = {.piece = disk_size};
    struct wal__io io = table(&disk);
    int sys_errno = 0;

    assert_ok(wal__io_write_full(&io, NULL, iov, 3, 0, &sys_errno));
    assert_ok(wal__io_write_full(&io, NULL, NULL, 0, 0, &sys_errno));
    assert_int_equal(disk.calls, 0);
}

TEST(io__repeated_empty_write_is_eio)
{
    uint8_t data[200];
    struct iovec iov = {data, sizeof(data)};
    struct disk disk = {.piece = 30, .fail_at = 3, .fail_count = 1000000};
    struct wal__io io = table(&disk);
    int sys_errno = 0;

    fill(data, sizeof(data));
    assert_int_equal(wal__io_write_full(&io, NULL, &iov, 1, 0, &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, EIO);
    assert_in_range(disk.calls, 4, 1000);

    /* A few empty ones are passed over. */
    disk = (struct disk){.piece = 30, .fail_at = 3, .fail_count = 5};
    assert_ok(wal__io_write_full(&io, NULL, &iov, 1, 0, &sys_errno));
    assert_memory_equal(disk.bytes, data, sizeof(data));
}

TEST(io__a_failed_write_is_not_repeated)
{
    uint8_t data[200];
    struct iovec iov = {data, sizeof(data)};
    struct disk disk = {.piece = 30, .fail_at = 3, .fail_count = 1, .fail_errno = ENOSPC};
    struct wal__io io = table(&disk);
    int sys_errno = 0;

    fill(data, sizeof(data));
    assert_int_equal(wal__io_write_full(&io, NULL, &iov, 1, 0, &sys_errno), WAL_ENOSPACE);
    assert_int_equal(sys_errno, ENOSPC);
    assert_int_equal(disk.calls, 3);
}
