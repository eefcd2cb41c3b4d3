/*
 * test_spill.c - tests of wal__spill: where blocks lie, and that their bytes survive moving.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/heap.h"
#include "tests/lib/test.h"

enum { MIB = 1 << 20 };

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 31 + i / 4096);
}

static void fill(uint8_t *at, size_t from, size_t size)
{
    for (size_t i = from; i < size; i++) {
        at[i] = byte_at(i);
    }
}

static void check(const uint8_t *at, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (at[i] != byte_at(i)) {
            fail_msg("byte %zu is another one", i);
        }
    }
}

/* Bytes of memory of this process that are no file's. */
static size_t anonymous_bytes(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    size_t kibibytes = 0;
    char line[256];

    assert_non_null(status);
    while (fgets(line, sizeof(line), status) != NULL) {
        (void)sscanf(line, "RssAnon: %zu", &kibibytes);
    }
    fclose(status);
    return kibibytes * 1024;
}

static unsigned open_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

/* Grows a block by doubling, as arrays do. */
static uint8_t *grow(const struct wal__heap *heap, size_t size)
{
    uint8_t *at = NULL;

    for (size_t now = MIB, had = 0; now <= size; had = now, now *= 2) {
        at = wal__heap_resize(heap, at, now, 1);
        assert_non_null(at);
        check(at, had);
        fill(at, had, now);
    }
    return at;
}

TEST(spill__large_blocks_are_not_anonymous_memory)
{
    unsigned files = open_files();
    size_t before = anonymous_bytes();
    struct wal__spill spill;
    uint8_t *at;

    wal__spill_init(&spill, &wal__heap_libc, ".");
    at = grow(&spill.heap, 64 * MIB);
    assert_int_equal(spill.count, 1);
    check(at, 64 * MIB);
    /* A sanitizer has a shadow, of an eighth, of each place it was at. */
    assert_true(anonymous_bytes() < before + 48 * MIB);
    wal__heap_free(&spill.heap, at);
    assert_int_equal(spill.count, 0);
    wal__spill_deinit(&spill);
    assert_int_equal(open_files(), files);
}

TEST(spill__small_blocks_come_from_the_heap)
{
    struct wal__spill spill;
    uint8_t *at;

    wal__spill_init(&spill, &wal__heap_libc, ".");
    at = grow(&spill.heap, 2 * MIB);
    assert_int_equal(spill.count, 0);
    wal__heap_free(&spill.heap, at);
    wal__spill_deinit(&spill);
}

TEST(spill__new_block_is_zeroed_on_request)
{
    static const uint8_t zeros[4096];
    struct wal__spill spill;
    uint8_t *at;

    wal__spill_init(&spill, &wal__heap_libc, ".");
    at = wal__heap_zalloc(&spill.heap, 8 * MIB);
    assert_non_null(at);
    assert_int_equal(spill.count, 1);
    for (size_t i = 0; i < 8 * MIB; i += sizeof(zeros)) {
        assert_memory_equal(at + i, zeros, sizeof(zeros));
    }
    wal__heap_free(&spill.heap, at);
    wal__spill_deinit(&spill);
}

TEST(spill__several_blocks_are_separate)
{
    struct wal__spill spill;
    uint8_t *at[3];

    wal__spill_init(&spill, &wal__heap_libc, ".");
    for (size_t i = 0; i < 3; i++) {
        at[i] = grow(&spill.heap, 8 * MIB);
    }
    wal__heap_free(&spill.heap, at[0]);
    assert_int_equal(spill.count, 2);
    for (size_t i = 1; i < 3; i++) {
        at[i] = wal__heap_resize(&spill.heap, at[i], 12 * MIB, 1);
        assert_non_null(at[i]);
        check(at[i], 8 * MIB);
    }
    /* A smaller size does not move the block. */
    assert_ptr_equal(wal__heap_resize(&spill.heap, at[1], MIB, 1), at[1]);
    wal__heap_free(&spill.heap, at[1]);
    wal__heap_free(&spill.heap, at[2]);
    wal__spill_deinit(&spill);
}

TEST(spill__without_a_file_uses_the_heap)
{
    struct wal__spill spill;
    uint8_t *at;

    wal__spill_init(&spill, &wal__heap_libc, "no-such-directory");
    at = grow(&spill.heap, 16 * MIB);
    assert_int_equal(spill.count, 0);
    check(at, 16 * MIB);
    wal__heap_free(&spill.heap, at);
    wal__spill_deinit(&spill);
}

static void *fail_resize(void *ctx, void *at, size_t size)
{
    (void)ctx;
    (void)at;
    (void)size;
    return NULL;
}

TEST(spill__without_memory_returns_an_error)
{
    const struct wal__heap nothing = {.resize = fail_resize};
    struct wal__spill spill;

    wal__spill_init(&spill, &nothing, ".");
    assert_null(wal__heap_alloc(&spill.heap, 100));
    assert_null(wal__heap_alloc(&spill.heap, 8 * MIB));
    wal__spill_deinit(&spill);
}
