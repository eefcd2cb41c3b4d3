/*
 * test_file_list.c - the list of files of a checkpoint (SPEC.md 2.21): round
 * trips, every field outside its range, that no other size is accepted, and
 * which paths are plain. Bytes lie in blocks of exactly their size, so that the
 * address sanitizer sees a read beyond the end.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/index/file_list.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"

enum {
    HEAD = 32,
    RECORD = 80,
    ROUNDS = 300,
    FILES_MAX = 40
};

static uint64_t random_state;

static uint64_t random_u64(void)
{
    return rng_next(&random_state);
}

static int set_up(void **state)
{
    (void)state;
    random_state = rng_seed(1);
    return 0;
}

static struct wal__span span(const char *text)
{
    return (struct wal__span){(const uint8_t *)text, strlen(text)};
}

/* --- lists ---------------------------------------------------------------- */

struct list {
    uint8_t *data; /* of exactly its size */
    size_t size;
};

static const uint8_t boot[WAL__FILE_BOOT_SIZE] = {0xb0, [15] = 0x07};

static struct list encode(const struct wal__file_record *files, uint32_t count)
{
    struct list list = {.size = wal__file_list_head_size()};
    uint8_t *at;

    for (uint32_t i = 0; i < count; i++) {
        list.size += wal__file_record_size(&files[i]);
    }
    list.data = malloc(list.size);
    assert_non_null(list.data);
    wal__file_list_encode_head(count, boot, list.data);
    at = list.data + wal__file_list_head_size();
    for (uint32_t i = 0; i < count; i++) {
        wal__file_record_encode(&files[i], at);
        at += wal__file_record_size(&files[i]);
    }
    assert_ptr_equal(at, list.data + list.size);
    return list;
}

/* What is wrong with the list, whole. */
static enum wal__fmt check(const uint8_t *data, size_t size)
{
    struct wal__file_list list;
    struct wal__file_record file;
    enum wal__fmt fmt =
        wal__file_list_decode((struct wal__span){data, size}, &list);

    while (fmt == WAL__FMT_OK && list.remaining > 0) {
        fmt = wal__file_list_next(&list, &file);
    }
    return fmt;
}

static struct wal__file_record random_file(uint32_t rank, char *path)
{
    struct wal__file_record file = {.kind = (uint8_t)(random_u64() % 3)};

    file.path.data = (const uint8_t *)path;
    file.path.size = (size_t)sprintf(path, "d%03u/%0*u", rank,
                                     1 + (int)(random_u64() % 60), rank);
    if (file.kind == WAL__FILE_ABSENT) {
        return file;
    }
    file.flags = (uint8_t)(random_u64() % 4);
    file.mode = (uint32_t)(random_u64() % 4096);
    file.size = random_u64();
    file.mtime_ns = (int64_t)random_u64();
    file.ctime_ns = (int64_t)random_u64();
    file.inode = random_u64();
    file.device = random_u64();
    for (size_t i = 0; i < sizeof(file.digest.bytes); i++) {
        file.digest.bytes[i] = (uint8_t)random_u64();
    }
    return file;
}

static void assert_same(const struct wal__file_record *a,
                        const struct wal__file_record *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->mode, b->mode);
    assert_true(a->size == b->size);
    assert_true(a->mtime_ns == b->mtime_ns);
    assert_true(a->ctime_ns == b->ctime_ns);
    assert_true(a->inode == b->inode);
    assert_true(a->device == b->device);
    assert_memory_equal(&a->digest, &b->digest, sizeof(a->digest));
    assert_true(wal__span_equal(a->path, b->path));
}

TEST(file_list__round_trip)
{
    static char paths[FILES_MAX][128];

    for (int round = 0; round < ROUNDS; round++) {
        struct wal__file_record files[FILES_MAX];
        uint32_t count = (uint32_t)(random_u64() % (FILES_MAX + 1));
        struct wal__file_list list;
        struct list bytes;

        for (uint32_t i = 0; i < count; i++) {
            files[i] = random_file(i, paths[i]);
        }
        bytes = encode(files, count);
        assert_int_equal(wal__file_list_decode(
                             (struct wal__span){bytes.data, bytes.size}, &list),
                         WAL__FMT_OK);
        assert_int_equal(list.count, count);
        for (uint32_t i = 0; i < count; i++) {
            struct wal__file_record file;

            assert_int_equal(list.remaining, count - i);
            assert_int_equal(wal__file_list_next(&list, &file), WAL__FMT_OK);
            assert_same(&file, &files[i]);
        }
        assert_int_equal(list.rest.size, 0);
        free(bytes.data);
    }
}

TEST(file_list__no_other_size_is_accepted)
{
    static char paths[3][128];
    struct wal__file_record files[3];
    struct list bytes;

    for (uint32_t i = 0; i < 3; i++) {
        files[i] = random_file(i, paths[i]);
    }
    bytes = encode(files, 3);
    for (size_t size = 0; size <= bytes.size + 1; size++) {
        uint8_t *block = malloc(size + (size == 0));

        memset(block, 0, size);
        memcpy(block, bytes.data, size < bytes.size ? size : bytes.size);
        assert_true((check(block, size) == WAL__FMT_OK) ==
                    (size == bytes.size));
        free(block);
    }
    free(bytes.data);
}

/* A list of one file, changed; what is wrong with it. */
static enum wal__fmt changed(size_t offset, size_t size, uint64_t value)
{
    struct wal__file_record file = {
        .kind = WAL__FILE_REGULAR, .mode = 0644, .path = span("a/b")};
    struct list bytes = encode(&file, 1);
    enum wal__fmt fmt;
    uint8_t number[8];

    wal__put64(number, value);
    memcpy(bytes.data + offset, number, size);
    fmt = check(bytes.data, bytes.size);
    free(bytes.data);
    return fmt;
}

TEST(file_list__field_out_of_its_range_is_refused)
{
    assert_int_equal(changed(0, 1, 'A'), WAL__FMT_OK);
    assert_int_equal(changed(0, 1, 'B'), WAL__FMT_MAGIC);
    assert_int_equal(changed(7, 1, 'X'), WAL__FMT_MAGIC);
    assert_int_equal(changed(8, 4, 0), WAL__FMT_VERSION);
    assert_int_equal(changed(8, 4, 2), WAL__FMT_VERSION);
    assert_int_equal(changed(12, 4, 0), WAL__FMT_FIELD);
    assert_int_equal(changed(12, 4, 2), WAL__FMT_FIELD);
    assert_int_equal(changed(12, 4, UINT32_MAX), WAL__FMT_FIELD);
    assert_int_equal(changed(16, 1, 2), WAL__FMT_OK);
    assert_int_equal(changed(HEAD, 1, 2), WAL__FMT_OK);
    assert_int_equal(changed(HEAD, 1, 3), WAL__FMT_FIELD);
    assert_int_equal(changed(HEAD + 1, 1, 1), WAL__FMT_OK);
    assert_int_equal(changed(HEAD + 1, 1, 4), WAL__FMT_FIELD);
    assert_int_equal(changed(HEAD + 2, 2, 2), WAL__FMT_FIELD);
    assert_int_equal(changed(HEAD + 2, 2, 4), WAL__FMT_SHORT);
    assert_int_equal(changed(HEAD + 2, 2, 0), WAL__FMT_FIELD);
    assert_int_equal(changed(HEAD + 4, 4, 07777), WAL__FMT_OK);
    assert_int_equal(changed(HEAD + 4, 4, 010000), WAL__FMT_FIELD);
    assert_int_equal(changed(HEAD + RECORD, 1, '/'), WAL__FMT_FIELD);
    assert_int_equal(changed(HEAD + RECORD, 1, 0), WAL__FMT_FIELD);
    assert_int_equal(changed(HEAD + RECORD + 2, 1, '.'), WAL__FMT_FIELD);
}

TEST(file_list__absent_file_has_only_a_path)
{
    struct wal__file_record file = {.kind = WAL__FILE_ABSENT,
                                    .path = span("a")};
    struct list bytes = encode(&file, 1);

    assert_int_equal(check(bytes.data, bytes.size), WAL__FMT_OK);
    for (size_t i = 1; i < RECORD; i++) {
        if (i == 2 || i == 3) {
            continue; /* the size of the path */
        }
        bytes.data[HEAD + i] = 1;
        assert_int_equal(check(bytes.data, bytes.size), WAL__FMT_FIELD);
        bytes.data[HEAD + i] = 0;
    }
    free(bytes.data);
}

static enum wal__fmt pair(const char *first, const char *second)
{
    const struct wal__file_record files[2] = {{.path = span(first)},
                                              {.path = span(second)}};
    struct list bytes = encode(files, 2);
    enum wal__fmt fmt = check(bytes.data, bytes.size);

    free(bytes.data);
    return fmt;
}

TEST(file_list__paths_ascend_by_their_bytes)
{
    assert_int_equal(pair("a", "b"), WAL__FMT_OK);
    assert_int_equal(pair("a", "a"), WAL__FMT_FIELD);
    assert_int_equal(pair("b", "a"), WAL__FMT_FIELD);
    assert_int_equal(pair("a", "ab"), WAL__FMT_OK);
    assert_int_equal(pair("ab", "a"), WAL__FMT_FIELD);
    assert_int_equal(pair("a-b", "a/b"), WAL__FMT_OK);
    assert_int_equal(pair("z", "\xff"), WAL__FMT_OK);
    assert_int_equal(pair("\xff", "z"), WAL__FMT_FIELD);
}

/* --- paths ---------------------------------------------------------------- */

TEST(file_path__valid_paths)
{
    static const char *const plain[] = {
        "a", "a/b", "...", "a..b/..c", ".a", "a.", " ", "\xff\x01", "a\nb/\\"};
    static const char *const others[] = {
        "",    ".",   "..",    "/",    "/a",   "a/",    "a//b",
        "./a", "a/.", "a/./b", "../a", "a/..", "a/../b"};
    uint8_t longest[WAL__FILE_PATH_MAX + 1];
    struct wal__span path = {longest, WAL__FILE_PATH_MAX};

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        assert_true(wal__file_path_is_normalized(span(plain[i])));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(wal__file_path_is_normalized(span(others[i])));
    }
    memset(longest, 'a', sizeof(longest));
    assert_true(wal__file_path_is_normalized(path));
    path.size++;
    assert_false(wal__file_path_is_normalized(path));
    path.size = 10;
    longest[5] = 0;
    assert_false(wal__file_path_is_normalized(path));
}

TEST_FILE(set_up, NULL, NULL);
