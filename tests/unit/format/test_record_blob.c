/*
 * test_record_blob.c - the payloads of CHUNK and BLOB, the index of a pack segment, and the list of
 * files of a checkpoint (SPEC.md 2.21): round trips, every field outside its range, that no other
 * size is accepted, which paths are plain; digests in hexadecimal. Bytes lie in blocks of exactly
 * their size, so that the address sanitizer sees a read beyond the end.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/index/file_list.h"
#include "format/index/index_fmt.h"
#include "tests/lib/codec.h"

enum { AT_SIZE = 32, AT_ENCODING = 36, AT_DEPTH = 37, AT_ZERO = 38, AT_CHUNK_COUNT = 40 };

static struct wal__digest random_digest(void)
{
    struct wal__digest digest;

    for (size_t i = 0; i < sizeof(digest.bytes); i++) {
        digest.bytes[i] = (uint8_t)test_random();
    }
    return digest;
}

/* Encodes a chunk with `data_size` bytes of data, all the same byte. */
static struct wal__span encode_chunk(uint8_t encoding, uint8_t depth, uint32_t size,
                                     size_t data_size)
{
    struct wal__chunk_record chunk = {.digest = random_digest(),
                                      .size = size,
                                      .encoding = encoding,
                                      .depth = depth,
                                      .base = random_digest(),
                                      .data = {NULL, data_size}};
    struct wal__span payload = {NULL, wal__chunk_record_size(&chunk)};
    uint8_t *block = codec_block(payload.size);

    assert_int_equal(wal__chunk_record_encode_head(&chunk, block) + data_size, payload.size);
    payload.data = block;
    return payload;
}

static enum wal__fmt decode(struct wal__span payload)
{
    struct wal__chunk_record chunk;
    enum wal__fmt fmt = wal__chunk_record_decode(payload, &chunk);

    if (fmt == WAL__FMT_OK) {
        assert_int_equal(wal__chunk_record_size(&chunk), payload.size);
    }
    return fmt;
}

static enum wal__fmt try_chunk(uint8_t encoding, uint8_t depth, uint32_t size, size_t data_size)
{
    struct wal__span payload = encode_chunk(encoding, depth, size, data_size);

    return decode(payload);
}

TEST(record_blob__sizes_of_chunks_are_bounded)
{
    assert_int_equal(try_chunk(WAL__CHUNK_RAW, 0, 0, 0), WAL__FMT_OK);
    assert_int_equal(try_chunk(WAL__CHUNK_RAW, 0, 1, 1), WAL__FMT_OK);
    assert_int_equal(try_chunk(WAL__CHUNK_RAW, 0, WAL__CHUNK_MAX, WAL__CHUNK_MAX), WAL__FMT_OK);
    assert_int_equal(try_chunk(WAL__CHUNK_RAW, 0, WAL__CHUNK_MAX + 1, WAL__CHUNK_MAX + 1),
                     WAL__FMT_FIELD);
    assert_int_equal(try_chunk(WAL__CHUNK_RAW, 0, 5, 4), WAL__FMT_FIELD);
    assert_int_equal(try_chunk(WAL__CHUNK_RAW, 0, 5, 6), WAL__FMT_FIELD);
    assert_int_equal(try_chunk(WAL__CHUNK_LZ4, 0, 5, 4), WAL__FMT_OK);
    assert_int_equal(try_chunk(WAL__CHUNK_LZ4, 0, 5, 5), WAL__FMT_FIELD);
    assert_int_equal(try_chunk(WAL__CHUNK_LZ4, 0, 5, 0), WAL__FMT_FIELD);
    assert_int_equal(try_chunk(WAL__CHUNK_DELTA, 1, 50, 49), WAL__FMT_OK);
    assert_int_equal(try_chunk(WAL__CHUNK_DELTA, 1, 50, 50), WAL__FMT_FIELD);
    assert_int_equal(try_chunk(WAL__CHUNK_DELTA, 1, 50, 0), WAL__FMT_FIELD);
}

TEST(record_blob__only_deltas_have_a_depth)
{
    for (uint32_t depth = 0; depth < 256; depth++) {
        bool fits = depth > 0 && depth <= WAL__CHUNK_DEPTH_MAX;

        assert_int_equal(try_chunk(WAL__CHUNK_DELTA, (uint8_t)depth, 50, 20),
                         fits ? WAL__FMT_OK : WAL__FMT_FIELD);
        assert_int_equal(try_chunk(WAL__CHUNK_LZ4, (uint8_t)depth, 50, 20),
                         depth == 0 ? WAL__FMT_OK : WAL__FMT_FIELD);
        assert_int_equal(try_chunk(WAL__CHUNK_RAW, (uint8_t)depth, 50, 50),
                         depth == 0 ? WAL__FMT_OK : WAL__FMT_FIELD);
    }
}

TEST(record_blob__chunk_round_trip)
{
    struct wal__span payload = encode_chunk(WAL__CHUNK_DELTA, 3, 90, 40);
    struct wal__chunk_record chunk;
    uint8_t head[128];

    assert_int_equal(wal__chunk_record_decode(payload, &chunk), WAL__FMT_OK);
    assert_int_equal(chunk.size, 90);
    assert_int_equal(chunk.depth, 3);
    assert_int_equal(chunk.data.size, 40);
    assert_int_equal(wal__chunk_record_encode_head(&chunk, head), 72);
    assert_memory_equal(head, payload.data, 72);
    assert_true(wal__digest_hash(&chunk.digest) == wal__get64(payload.data));
}

TEST(record_blob__fields_of_chunks_are_checked)
{
    struct wal__span payload = encode_chunk(WAL__CHUNK_RAW, 0, 9, 9);
    uint8_t *bytes = (uint8_t *)(uintptr_t)payload.data;

    for (int encoding = 3; encoding < 256; encoding++) {
        bytes[AT_ENCODING] = (uint8_t)encoding;
        assert_int_equal(decode(payload), WAL__FMT_FIELD);
    }
    bytes[AT_ENCODING] = 0;
    for (int i = 0; i < 2; i++) {
        bytes[AT_ZERO + i] = 1;
        assert_int_equal(decode(payload), WAL__FMT_FIELD);
        bytes[AT_ZERO + i] = 0;
    }
    bytes[AT_SIZE] = 8;
    assert_int_equal(decode(payload), WAL__FMT_FIELD);
}

TEST(record_blob__short_payloads_are_refused)
{
    struct wal__span payload = encode_chunk(WAL__CHUNK_DELTA, 1, 90, 40);

    for (size_t size = 0; size < 72; size++) {
        uint8_t *cut = codec_block(size);

        memcpy(cut, payload.data, size);
        assert_int_equal(decode((struct wal__span){cut, size}), WAL__FMT_SHORT);
    }
}

TEST(record_blob__blocks_are_bounded_by_their_data)
{
    struct wal__chunk_block block = {.stored_size = 10, .window = 77};
    uint8_t *bytes = codec_block(18);
    struct wal__span data = {bytes, 18};
    struct wal__chunk_block read;

    wal__chunk_block_encode_head(&block, bytes);
    assert_int_equal(wal__chunk_block_decode(&data, 10, &read), WAL__FMT_OK);
    assert_int_equal(read.window, 77);
    assert_true(read.stored.data == bytes + 8);
    assert_int_equal(data.size, 0);
    data = (struct wal__span){bytes, 18};
    assert_int_equal(wal__chunk_block_decode(&data, 9, &read), WAL__FMT_FIELD);
    data = (struct wal__span){bytes, 17};
    assert_int_equal(wal__chunk_block_decode(&data, 10, &read), WAL__FMT_SHORT);
    data = (struct wal__span){bytes, 7};
    assert_int_equal(wal__chunk_block_decode(&data, 10, &read), WAL__FMT_SHORT);
    block.stored_size = 0;
    wal__chunk_block_encode_head(&block, bytes);
    data = (struct wal__span){bytes, 18};
    assert_int_equal(wal__chunk_block_decode(&data, 10, &read), WAL__FMT_FIELD);
    block.stored_size = 10;
    block.window = WAL__CHUNK_MAX + 1;
    wal__chunk_block_encode_head(&block, bytes);
    assert_int_equal(wal__chunk_block_decode(&data, 10, &read), WAL__FMT_FIELD);
    block.window = -WAL__CHUNK_WINDOW;
    wal__chunk_block_encode_head(&block, bytes);
    assert_int_equal(wal__chunk_block_decode(&data, 10, &read), WAL__FMT_FIELD);
    assert_int_equal(data.size, 18);
    block.window++;
    wal__chunk_block_encode_head(&block, bytes);
    assert_int_equal(wal__chunk_block_decode(&data, 10, &read), WAL__FMT_OK);
    assert_int_equal(read.window, 1 - WAL__CHUNK_WINDOW);
}

/* Encodes a BLOB of `size` bytes of content, whatever its chunks are. */
static struct wal__span encode_blob(uint64_t size, uint32_t count)
{
    uint8_t *chunks = codec_block((size_t)count * WAL__DIGEST_SIZE);
    struct wal__blob_record blob = {
        .digest = random_digest(), .size = size, .chunk_count = count, .chunks = chunks};
    struct wal__span payload = {NULL, wal__blob_record_size(&blob)};
    uint8_t *block = codec_block(payload.size);

    wal__blob_record_encode(&blob, block);
    payload.data = block;
    return payload;
}

static enum wal__fmt try_blob(uint64_t size, uint32_t count)
{
    struct wal__span payload = encode_blob(size, count);
    struct wal__blob_record blob;
    enum wal__fmt fmt = wal__blob_record_decode(payload, &blob);

    if (fmt == WAL__FMT_OK) {
        assert_true(blob.size == size);
        assert_int_equal(blob.chunk_count, count);
        assert_true(blob.chunks == payload.data + 48);
    }
    return fmt;
}

TEST(record_blob__chunk_count_matches_the_size)
{
    const uint64_t mib = WAL__CHUNK_MAX;
    const uint64_t most = mib * WAL__BLOB_CHUNKS_MAX;

    assert_int_equal(try_blob(mib + 1, 2), WAL__FMT_OK);
    assert_int_equal(try_blob(2 * mib, 2), WAL__FMT_OK);
    assert_int_equal(try_blob(2 * mib + 1, 3), WAL__FMT_OK);
    assert_int_equal(try_blob(most, WAL__BLOB_CHUNKS_MAX), WAL__FMT_OK);
    assert_int_equal(try_blob(mib, 1), WAL__FMT_FIELD);
    assert_int_equal(try_blob(0, 0), WAL__FMT_FIELD);
    assert_int_equal(try_blob(2 * mib, 3), WAL__FMT_FIELD);
    assert_int_equal(try_blob(2 * mib + 1, 2), WAL__FMT_FIELD);
    assert_int_equal(try_blob(most + 1, WAL__BLOB_CHUNKS_MAX + 1), WAL__FMT_FIELD);
}

TEST(record_blob__sizes_match_the_payload)
{
    struct wal__span payload = encode_blob(3 * WAL__CHUNK_MAX, 3);
    struct wal__blob_record blob;
    uint8_t *bytes;

    for (size_t size = 0; size < payload.size; size++) {
        assert_int_equal(wal__blob_record_decode((struct wal__span){payload.data, size}, &blob),
                         WAL__FMT_SHORT);
    }
    bytes = codec_block(payload.size + 1);
    memcpy(bytes, payload.data, payload.size);
    assert_int_equal(wal__blob_record_decode((struct wal__span){bytes, payload.size + 1}, &blob),
                     WAL__FMT_FIELD);
    bytes[AT_CHUNK_COUNT + 4] = 1;
    assert_int_equal(wal__blob_record_decode((struct wal__span){bytes, payload.size}, &blob),
                     WAL__FMT_FIELD);
}

/* --- the index ---------------------------------------------------------- */

enum { DIGESTS = 3000 };

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, WAL__DIGEST_SIZE);
}

/* An index of the digests, which are sorted; offsets are their ranks. */
static struct wal__span encode_index(struct wal__digest *digests, uint32_t count)
{
    struct wal__index_header header = {
        .posting_count = count, .id = 7, .end = 9000, .commit_offset = 8000};
    struct wal__span bytes = {NULL, (size_t)wal__pack_index_size(count)};
    uint8_t *block = codec_block(bytes.size);

    qsort(digests, count, sizeof(*digests), compare);
    for (uint32_t i = 0; i < count; i++) {
        wal__pack_index_put(block, count, i, &digests[i], 4096 + i * 8);
    }
    wal__pack_index_finish(&header, block);
    bytes.data = block;
    return bytes;
}

TEST(pack_index__finds_exactly_its_digests)
{
    static struct wal__digest digests[DIGESTS];
    static const uint32_t counts[] = {0, 1, 2, 255, DIGESTS};

    for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
        struct wal__pack_index index;
        struct wal__span bytes;
        uint32_t offset = 0;

        for (uint32_t i = 0; i < counts[n]; i++) {
            digests[i] = random_digest();
            if (i % 3 == 0) {
                digests[i].bytes[0] = (uint8_t)(i % 2 == 0 ? 0 : 255);
            }
        }
        bytes = encode_index(digests, counts[n]);
        assert_int_equal(wal__pack_index_decode(bytes, &index), WAL__FMT_OK);
        for (uint32_t i = 0; i < counts[n]; i++) {
            struct wal__digest other = digests[i];

            assert_true(wal__pack_index_find(&index, &digests[i], &offset));
            assert_int_equal(offset, 4096 + i * 8);
            other.bytes[i % WAL__DIGEST_SIZE] ^= 1;
            assert_false(wal__pack_index_find(&index, &other, &offset));
        }
    }
}

TEST(pack_index__newest_of_equal_digests_is_found)
{
    struct wal__digest digests[5];
    struct wal__pack_index index;
    struct wal__span bytes;
    uint32_t offset = 0;

    for (int i = 0; i < 5; i++) {
        digests[i] = (struct wal__digest){{9, (uint8_t)(i == 4)}};
    }
    bytes = encode_index(digests, 5);
    assert_int_equal(wal__pack_index_decode(bytes, &index), WAL__FMT_OK);
    assert_true(wal__pack_index_find(&index, &digests[0], &offset));
    assert_int_equal(offset, 4096 + 3 * 8);
}

TEST(pack_index__any_flip_is_detected)
{
    struct wal__digest digests[3] = {random_digest(), random_digest(), random_digest()};
    struct wal__span bytes = encode_index(digests, 3);
    uint8_t *block = (uint8_t *)(uintptr_t)bytes.data;
    struct wal__pack_index index;

    for (size_t bit = 0; bit < bytes.size * 8; bit++) {
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(wal__pack_index_decode(bytes, &index), WAL__FMT_OK);
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t size = 0; size < bytes.size; size++) {
        assert_int_equal(wal__pack_index_decode((struct wal__span){block, size}, &index),
                         WAL__FMT_SHORT);
    }
    assert_int_equal(wal__pack_index_decode(bytes, &index), WAL__FMT_OK);
}

/* A fan-out that leads out of the digests is refused, whatever its CRC. */
TEST(pack_index__fan_out_is_bounded)
{
    struct wal__digest digests[3] = {random_digest(), random_digest(), random_digest()};
    struct wal__span bytes = encode_index(digests, 3);
    uint8_t *block = (uint8_t *)(uintptr_t)bytes.data;
    struct wal__pack_index index;

    for (int byte = 0; byte < WAL__PACK_FAN_OUT; byte++) {
        uint8_t *at = block + WAL__INDEX_HEADER_SIZE + (size_t)byte * 4;
        uint32_t kept = wal__get32(at);

        wal__put32(at, 4);
        wal__put32(block + 104, wal__crc32(0, block + 112, bytes.size - 112));
        wal__put32(block + 108, wal__crc32(0, block, 108));
        assert_int_equal(wal__pack_index_decode(bytes, &index), WAL__FMT_FIELD);
        wal__put32(at, kept);
    }
}

/* --- hexadecimal --------------------------------------------------------- */

TEST(hex__only_lower_case_digits_are_read)
{
    const uint8_t bytes[] = {0x00, 0x9f, 0xa0, 0xff};
    uint8_t read[sizeof(bytes)];
    char text[2 * sizeof(bytes) + 1];

    wal__hex_write(bytes, sizeof(bytes), text);
    assert_string_equal(text, "009fa0ff");
    assert_true(wal__hex_read(text, sizeof(bytes), read));
    assert_memory_equal(read, bytes, sizeof(bytes));
    assert_true(wal__hex_read("", 0, read));
    for (size_t i = 0; i < 2 * sizeof(bytes); i++) {
        for (int byte = 0; byte <= UINT8_MAX; byte++) {
            bool is_digit = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
            char kept = text[i];

            text[i] = (char)byte;
            assert_int_equal(wal__hex_read(text, sizeof(bytes), read), is_digit);
            text[i] = kept;
        }
    }
}

enum { HEAD = 32, RECORD = 80, ROUNDS = 300, FILES_MAX = 40 };

static struct wal__span span(const char *text)
{
    return (struct wal__span){(const uint8_t *)text, strlen(text)};
}

/* --- lists ---------------------------------------------------------------- */

static const uint8_t boot[WAL__FILE_BOOT_SIZE] = {0xb0, [15] = 0x07};

static struct wal__span encode(const struct wal__file_record *files, uint32_t count)
{
    size_t size = wal__file_list_head_size();
    uint8_t *block;
    uint8_t *at;

    for (uint32_t i = 0; i < count; i++) {
        size += wal__file_record_size(&files[i]);
    }
    block = codec_block(size);
    wal__file_list_encode_head(count, boot, block);
    at = block + wal__file_list_head_size();
    for (uint32_t i = 0; i < count; i++) {
        wal__file_record_encode(&files[i], at);
        at += wal__file_record_size(&files[i]);
    }
    assert_ptr_equal(at, block + size);
    return (struct wal__span){block, size};
}

/* What is wrong with the list, whole. */
static enum wal__fmt decode_list(struct wal__span bytes)
{
    struct wal__file_list list;
    struct wal__file_record file;
    enum wal__fmt fmt = wal__file_list_decode(bytes, &list);

    while (fmt == WAL__FMT_OK && list.remaining > 0) {
        fmt = wal__file_list_next(&list, &file);
    }
    return fmt;
}

static struct wal__file_record random_file(uint32_t rank, char *path)
{
    struct wal__file_record file = {.kind = (uint8_t)(test_random() % 3)};

    file.path.data = (const uint8_t *)path;
    file.path.size = (size_t)sprintf(path, "d%03u/%0*u", rank, 1 + (int)(test_random() % 60), rank);
    if (file.kind == WAL__FILE_ABSENT) {
        return file;
    }
    file.flags = (uint8_t)(test_random() % 4);
    file.mode = (uint32_t)(test_random() % 4096);
    file.size = test_random();
    file.mtime_ns = (int64_t)test_random();
    file.ctime_ns = (int64_t)test_random();
    file.inode = test_random();
    file.device = test_random();
    for (size_t i = 0; i < sizeof(file.digest.bytes); i++) {
        file.digest.bytes[i] = (uint8_t)test_random();
    }
    return file;
}

static void assert_same(const struct wal__file_record *a, const struct wal__file_record *b)
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
        uint32_t count = (uint32_t)(test_random() % (FILES_MAX + 1));
        struct wal__file_list list;
        struct wal__span bytes;

        for (uint32_t i = 0; i < count; i++) {
            files[i] = random_file(i, paths[i]);
        }
        bytes = encode(files, count);
        assert_int_equal(wal__file_list_decode(bytes, &list), WAL__FMT_OK);
        assert_int_equal(list.count, count);
        for (uint32_t i = 0; i < count; i++) {
            struct wal__file_record file;

            assert_int_equal(list.remaining, count - i);
            assert_int_equal(wal__file_list_next(&list, &file), WAL__FMT_OK);
            assert_same(&file, &files[i]);
        }
        assert_int_equal(list.rest.size, 0);
    }
}

TEST(file_list__no_other_size_is_accepted)
{
    static char paths[3][128];
    struct wal__file_record files[3];
    struct wal__span bytes;

    for (uint32_t i = 0; i < 3; i++) {
        files[i] = random_file(i, paths[i]);
    }
    bytes = encode(files, 3);
    for (size_t size = 0; size <= bytes.size + 1; size++) {
        uint8_t *block = test_memory(size);

        memcpy(block, bytes.data, size < bytes.size ? size : bytes.size);
        assert_true((decode_list((struct wal__span){block, size}) == WAL__FMT_OK) ==
                    (size == bytes.size));
    }
}

TEST(file_list__field_out_of_its_range_is_refused)
{
    const struct wal__file_record file = {
        .kind = WAL__FILE_REGULAR, .mode = 0644, .path = span("a/b")};
    const struct wal__span payload = encode(&file, 1);
    static const struct codec_change changes[] = {{0, 1, 'A', OK},
                                                  {0, 1, 'B', MAGIC},
                                                  {7, 1, 'X', MAGIC},
                                                  {8, 4, 0, VERSION},
                                                  {8, 4, 2, VERSION},
                                                  {12, 4, 0, FIELD},
                                                  {12, 4, 2, FIELD},
                                                  {12, 4, UINT32_MAX, FIELD},
                                                  {16, 1, 2, OK},
                                                  {HEAD, 1, 2, OK},
                                                  {HEAD, 1, 3, FIELD},
                                                  {HEAD + 1, 1, 1, OK},
                                                  {HEAD + 1, 1, 4, FIELD},
                                                  {HEAD + 2, 2, 2, FIELD},
                                                  {HEAD + 2, 2, 4, SHORT},
                                                  {HEAD + 2, 2, 0, FIELD},
                                                  {HEAD + 4, 4, 07777, OK},
                                                  {HEAD + 4, 4, 010000, FIELD},
                                                  {HEAD + RECORD, 1, '/', FIELD},
                                                  {HEAD + RECORD, 1, 0, FIELD},
                                                  {HEAD + RECORD + 2, 1, '.', FIELD}};

    CODEC_ASSERT_CHANGES(decode_list, payload, changes);
}

TEST(file_list__absent_file_has_only_a_path)
{
    struct wal__file_record file = {.kind = WAL__FILE_ABSENT, .path = span("a")};
    struct wal__span bytes = encode(&file, 1);

    assert_int_equal(decode_list(bytes), WAL__FMT_OK);
    for (size_t i = 1; i < RECORD; i++) {
        if (i == 2 || i == 3) {
            continue; /* the size of the path */
        }
        assert_int_equal(codec_decode_with(decode_list, bytes, HEAD + i, 1, 1), WAL__FMT_FIELD);
    }
}

static enum wal__fmt pair(const char *first, const char *second)
{
    const struct wal__file_record files[2] = {{.path = span(first)}, {.path = span(second)}};
    struct wal__span bytes = encode(files, 2);

    return decode_list(bytes);
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
    static const char *const plain[] = {"a",  "a/b", "...",      "a..b/..c", ".a",
                                        "a.", " ",   "\xff\x01", "a\nb/\\"};
    static const char *const others[] = {"",    ".",   "..",    "/",    "/a",   "a/",    "a//b",
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
