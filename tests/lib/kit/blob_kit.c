/*
 * blob_kit.c - content for the tests of blobs.
 */
#include "tests/lib/kit/blob_kit.h"

#include "agentwal/blob.h"

struct kit_content kit_content(uint64_t seed, uint64_t size, bool compressible)
{
    struct kit_content content = {malloc(size + 1), size};
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;

    assert_non_null(content.data);
    test_at_end(free, content.data);
    for (uint64_t i = 0; i < size; i++) {
        uint64_t number = i % 8 == 0 ? kit_random(&state) : state >> (i % 8);

        content.data[i] = compressible && i % 64 >= 8 ? (uint8_t)("the quick brown fox"[i % 19])
                                                      : (uint8_t)(number >> 24);
    }
    return content;
}

void kit_content_free(struct kit_content *content)
{
    free(test_forget(content->data));
    content->data = NULL;
}

struct wal_slice kit_slice(const struct kit_content *content)
{
    return (struct wal_slice){content->data, content->size};
}

void kit_put_blob(struct wal_store *store, const struct kit_content *content,
                  uint8_t digest[WAL_DIGEST_SIZE])
{
    assert_done(wal_blob_put(store, kit_slice(content), digest, kit_error()));
}

static void check_part(struct wal_blob *blob, uint64_t offset, uint64_t size,
                       const struct kit_content *content)
{
    uint8_t *bytes = malloc(size + 1);
    uint64_t expected = 0;
    uint64_t got = 77;

    if (offset < content->size) {
        expected = content->size - offset < size ? content->size - offset : size;
    }
    assert_non_null(bytes);
    assert_done(wal_blob_read(blob, offset, bytes, size, &got, kit_error()));
    assert_int_equal(got, expected);
    if (expected > 0) {
        assert_memory_equal(bytes, content->data + offset, expected);
    }
    free(bytes);
}

void kit_check_blob(struct wal_store *store, const uint8_t digest[WAL_DIGEST_SIZE],
                    const struct kit_content *content)
{
    struct wal_blob *blob = NULL;

    assert_done(wal_blob_open(store, digest, &blob, kit_error()));
    assert_int_equal(wal_blob_size(blob), content->size);
    check_part(blob, 0, content->size + 10, content);
    check_part(blob, content->size / 2, 100000, content);
    check_part(blob, content->size, 10, content);
    check_part(blob, content->size + 5, 10, content);
    wal_blob_close(blob);
}
