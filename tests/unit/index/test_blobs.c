/*
 * test_blobs.c - tests of putting and reading content (SPEC.md 5.12).
 */
#include "agentwal/blob.h"
#include "tests/lib/kit/blob_kit.h"

static const uint64_t sizes[] = {0,
                                 1,
                                 7,
                                 4095,
                                 65536,
                                 KIT_MIB - 1,
                                 KIT_MIB,
                                 KIT_MIB + 1,
                                 2 * KIT_MIB,
                                 5 * KIT_MIB,
                                 5 * KIT_MIB + 12345};

enum {
    SIZES = sizeof(sizes) / sizeof(sizes[0])
};

static void put_sizes(struct wal_store *store, bool compressible,
                      uint8_t digests[SIZES][WAL_DIGEST_SIZE])
{
    for (uint32_t i = 0; i < SIZES; i++) {
        struct kit_content content =
            kit_content(100 + i, sizes[i], compressible);

        kit_put_blob(store, &content, digests[i]);
        kit_content_free(&content);
    }
}

static void check_sizes(struct wal_store *store, bool compressible,
                        uint8_t digests[SIZES][WAL_DIGEST_SIZE])
{
    for (uint32_t i = 0; i < SIZES; i++) {
        struct kit_content content =
            kit_content(100 + i, sizes[i], compressible);

        kit_check_blob(store, digests[i], &content);
        kit_content_free(&content);
    }
}

static void put_and_get(bool compressible, uint32_t flags)
{
    uint8_t digests[SIZES][WAL_DIGEST_SIZE];
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE | flags);

    put_sizes(store, compressible, digests);
    check_sizes(store, compressible, digests);
    kit_close(store);
    store = kit_open("store", flags);
    check_sizes(store, compressible, digests);
    kit_close(store);
    store = kit_open("store", flags | WAL_OPEN_READ_ONLY);
    check_sizes(store, compressible, digests);
    kit_close(store);
}

KIT_TEST(blobs__content_of_any_size_round_trip)
{
    put_and_get(true, 0);
}

KIT_TEST(blobs__incompressible_content_round_trip)
{
    put_and_get(false, 0);
}

KIT_TEST(blobs__content_is_read_without_maps)
{
    put_and_get(true, WAL_OPEN_PREAD);
}

KIT_TEST(blobs__content_of_a_store_in_memory)
{
    uint8_t digests[SIZES][WAL_DIGEST_SIZE];
    struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);

    put_sizes(store, true, digests);
    check_sizes(store, true, digests);
    kit_close(store);
}

KIT_TEST(blobs__duplicate_takes_no_space)
{
    uint8_t digests[SIZES][WAL_DIGEST_SIZE];
    struct wal_store *store = kit_store();
    struct wal_store_info before;

    put_sizes(store, true, digests);
    before = kit_store_info(store);
    put_sizes(store, true, digests);
    assert_int_equal(kit_store_info(store).pack_bytes, before.pack_bytes);
    kit_close(store);
    store = kit_store();
    before = kit_store_info(store);
    put_sizes(store, true, digests);
    assert_int_equal(kit_store_info(store).pack_bytes, before.pack_bytes);
    kit_close(store);
}

KIT_TEST(blobs__a_store_without_blobs_has_no_pack)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append(session, "a", NULL);
    wal_session_close(session);
    assert_int_equal(kit_store_info(store).pack_segments, 0);
    kit_close(store);
    assert_int_not_equal(access("store/pack", F_OK), 0);
}

KIT_TEST(blobs__unknown_content_is_not_found)
{
    const uint8_t digest[WAL_DIGEST_SIZE] = {1, 2, 3};
    struct wal_store *store = kit_store();
    struct wal_error error = KIT_ERROR;
    struct wal_blob *blob = NULL;

    assert_int_equal(wal_blob_open(store, digest, &blob, &error),
                     WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "010203");
    assert_null(blob);
    kit_close(store);
}

KIT_TEST(blobs__misuse_changes_nothing)
{
    const struct wal_slice nothing = {NULL, 5};
    struct wal_store *store = kit_store();
    struct wal_error error = KIT_ERROR;
    uint8_t digest[WAL_DIGEST_SIZE] = {7};
    struct wal_blob_writer *writer = NULL;
    struct wal_blob *blob = NULL;
    uint64_t got = 77;
    char byte;

    assert_int_equal(wal_blob_put(NULL, kit_text("a"), digest, &error),
                     WAL_EINVAL);
    assert_int_equal(wal_blob_put(store, nothing, digest, &error), WAL_EINVAL);
    assert_int_equal(wal_blob_put(store, kit_text("a"), NULL, &error),
                     WAL_EINVAL);
    assert_int_equal(digest[0], 7);
    assert_int_equal(wal_blob_create(store, NULL, &error), WAL_EINVAL);
    assert_int_equal(wal_blob_create(NULL, &writer, &error), WAL_EINVAL);
    assert_int_equal(wal_blob_write(NULL, kit_text("a"), &error), WAL_EINVAL);
    assert_int_equal(wal_blob_finish(NULL, digest, NULL, &error), WAL_EINVAL);
    assert_ok(wal_blob_create(store, &writer, &error));
    assert_int_equal(wal_blob_write(writer, nothing, &error), WAL_EINVAL);
    assert_ok(wal_blob_write(writer, kit_text("a"), &error));
    assert_ok(wal_blob_finish(writer, digest, NULL, &error));
    assert_int_equal(wal_blob_write(writer, kit_text("a"), &error), WAL_EINVAL);
    wal_blob_discard(writer);
    assert_int_equal(wal_blob_open(store, NULL, &blob, &error), WAL_EINVAL);
    assert_int_equal(wal_blob_open(store, digest, NULL, &error), WAL_EINVAL);
    assert_int_equal(wal_blob_open(NULL, digest, &blob, &error), WAL_EINVAL);
    assert_ok(wal_blob_open(store, digest, &blob, &error));
    assert_int_equal(wal_blob_read(blob, 0, NULL, 1, &got, &error), WAL_EINVAL);
    assert_int_equal(wal_blob_read(blob, 0, &byte, 1, NULL, &error),
                     WAL_EINVAL);
    assert_int_equal(wal_blob_read(NULL, 0, &byte, 1, &got, &error),
                     WAL_EINVAL);
    assert_int_equal(got, 77);
    assert_ok(wal_blob_read(blob, UINT64_MAX, &byte, UINT64_MAX, &got, &error));
    assert_int_equal(got, 0);
    assert_int_equal(wal_blob_size(NULL), 0);
    wal_blob_close(blob);
    kit_close(store);
}

/* Reading in any order gives what reading in order does. */
KIT_TEST(blobs__pieces_in_any_order)
{
    struct wal_store *store = kit_store();
    struct kit_content content = kit_content(5, 3 * KIT_MIB + 77, true);
    struct wal_error error = KIT_ERROR;
    uint8_t digest[WAL_DIGEST_SIZE];
    uint8_t *bytes = malloc(2 * KIT_MIB);
    struct wal_blob *blob = NULL;
    uint64_t random = kit_seed();

    assert_non_null(bytes);
    kit_put_blob(store, &content, digest);
    assert_ok(wal_blob_open(store, digest, &blob, &error));
    for (int i = 0; i < 60; i++) {
        uint64_t offset = kit_random(&random) % content.size;
        uint64_t size = kit_random(&random) % (2 * KIT_MIB);
        uint64_t left = content.size - offset;
        uint64_t got = 0;

        assert_ok(wal_blob_read(blob, offset, bytes, size, &got, &error));
        assert_int_equal(got, size < left ? size : left);
        assert_memory_equal(bytes, content.data + offset, got);
    }
    wal_blob_close(blob);
    kit_check_blob(store, digest, &content);
    free(bytes);
    kit_content_free(&content);
    kit_close(store);
}
