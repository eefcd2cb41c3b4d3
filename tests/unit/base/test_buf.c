/*
 * test_buf.c - tests of engine/base/buf.
 */
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include "engine/base/heap.h"
#include "tests/lib/test.h"

/* A heap that fails its allocation number `fail_at`, from 1 on. */
struct counted {
    int calls;
    int fail_at;
    int live; /* blocks */
};

static void *counted_resize(void *ctx, void *at, size_t size)
{
    struct counted *counted = ctx;

    if (size == 0) {
        counted->live--;
        return wal__heap_libc.resize(NULL, at, 0);
    }
    if (++counted->calls == counted->fail_at) {
        return NULL;
    }
    counted->live += at == NULL;
    return wal__heap_libc.resize(NULL, at, size);
}

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 131 + (i >> 8));
}

static void assert_pattern(const struct wal__buf *buf)
{
    for (size_t i = 0; i < buf->size; i++) {
        assert_int_equal(buf->data[i], pattern(i));
    }
}

static enum wal_status append_pattern(struct wal__buf *buf, size_t size)
{
    uint8_t part[300];

    for (size_t i = 0; i < size; i++) {
        part[i] = pattern(buf->size + i);
    }
    return wal__buf_append(buf, part, size);
}

TEST(buf__appended_bytes_stay_in_order)
{
    struct counted counted = {0};
    const struct wal__heap heap = {counted_resize, &counted};
    struct wal__buf buf;
    size_t total = 0;

    wal__buf_init(&buf, &heap);
    for (size_t size = 0; size < 300; size++) {
        assert_ok(append_pattern(&buf, size));
        total += size;
        assert_int_equal(buf.size, total);
        assert_true(buf.capacity >= total);
    }
    assert_pattern(&buf);
    /* 44,850 bytes in doublings from 64. */
    assert_true(counted.calls <= 12);
    assert_int_equal(counted.live, 1);
    wal__buf_deinit(&buf);
    assert_int_equal(counted.live, 0);
}

TEST(buf__reserve_adds_capacity_and_keeps_the_size)
{
    struct wal__buf buf;
    uint8_t *at = NULL;

    wal__buf_init(&buf, &wal__heap_libc);
    assert_ok(append_pattern(&buf, 10));
    assert_ok(wal__buf_reserve(&buf, 5000, &at));
    assert_int_equal(buf.size, 10);
    assert_ptr_equal(at, buf.data + 10);
    memset(at, 0x5A, 5000);
    assert_pattern(&buf);

    /* Within the reserved room nothing moves. */
    const uint8_t *data = buf.data;

    for (int i = 0; i < 50; i++) {
        assert_ok(append_pattern(&buf, 100));
    }
    assert_ptr_equal(buf.data, data);
    assert_pattern(&buf);
    wal__buf_deinit(&buf);
}

TEST(buf__zero_sizes_are_valid)
{
    struct wal__buf buf = {.heap = &wal__heap_libc};
    struct wal__buf zeroed = {0};
    uint8_t *at = NULL;

    wal__buf_deinit(&zeroed);
    wal__buf_deinit(&buf);
    assert_ok(wal__buf_append(&buf, NULL, 0));
    assert_int_equal(buf.size, 0);
    assert_ok(wal__buf_reserve(&buf, 0, &at));
    assert_non_null(at);
    assert_ok(append_pattern(&buf, 3));
    wal__buf_deinit(&buf);

    /* A deinitialised buffer is an empty one. */
    assert_ok(append_pattern(&buf, 3));
    assert_pattern(&buf);
    wal__buf_deinit(&buf);
    wal__buf_deinit(&buf);
}

/* Appends `count` parts, each again when it failed. Returns failures. */
static int append_with_failures(struct wal__buf *buf, int count)
{
    int failures = 0;

    for (int i = 0; i < count; i++) {
        struct wal__buf before = *buf;

        if (append_pattern(buf, 200) != WAL_OK) {
            failures++;
            assert_memory_equal(buf, &before, sizeof(before));
            assert_ok(append_pattern(buf, 200));
        }
    }
    return failures;
}

TEST(buf__a_failed_allocation_changes_nothing)
{
    int failures = 0;

    for (int fail_at = 1; fail_at <= 8; fail_at++) {
        struct counted counted = {.fail_at = fail_at};
        const struct wal__heap heap = {counted_resize, &counted};
        struct wal__buf buf;

        wal__buf_init(&buf, &heap);
        failures += append_with_failures(&buf, 40);
        assert_int_equal(buf.size, 8000);
        assert_pattern(&buf);
        wal__buf_deinit(&buf);
        assert_int_equal(counted.live, 0);
    }
    /* 200, 400, ... 12,800 bytes are seven allocations. */
    assert_int_equal(failures, 7);
}

TEST(buf__sizes_that_overflow_are_no_memory)
{
    struct counted counted = {0};
    const struct wal__heap heap = {counted_resize, &counted};
    struct wal__buf buf;
    uint8_t byte = 0;
    uint8_t *at = &byte;

    wal__buf_init(&buf, &heap);
    assert_ok(append_pattern(&buf, 1));
    assert_int_equal(wal__buf_reserve(&buf, SIZE_MAX, &at), WAL_ENOMEM);
    assert_ptr_equal(at, &byte);
    assert_int_equal(counted.calls, 1);
    assert_int_equal(buf.size, 1);
    wal__buf_deinit(&buf);
}
