/*
 * test_blobs.c - tests of putting and reading content (SPEC.md 5.12).
 */
#include "tests/lib/blob_kit.h"

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

static void test_blobs__content_of_any_size_comes_back(void **state)
{
    (void)state;
    put_and_get(true, 0);
}

static void test_blobs__incompressible_content_comes_back(void **state)
{
    (void)state;
    put_and_get(false, 0);
}

static void test_blobs__content_comes_back_without_maps(void **state)
{
    (void)state;
    put_and_get(true, WAL_OPEN_PREAD);
}

static void test_blobs__content_of_a_store_in_memory_comes_back(void **state)
{
    (void)state;
    uint8_t digests[SIZES][WAL_DIGEST_SIZE];
    struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);

    put_sizes(store, true, digests);
    check_sizes(store, true, digests);
    kit_close(store);
}

static void test_blobs__a_duplicate_costs_nothing(void **state)
{
    (void)state;
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

static void test_blobs__a_store_without_blobs_has_no_pack(void **state)
{
    (void)state;
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append(session, "a", NULL);
    wal_session_close(session);
    assert_int_equal(kit_store_info(store).pack_segments, 0);
    kit_close(store);
    assert_int_not_equal(access("store/pack", F_OK), 0);
}

static void test_blobs__unknown_content_is_not_found(void **state)
{
    (void)state;
    const uint8_t digest[WAL_DIGEST_SIZE] = {1, 2, 3};
    struct wal_store *store = kit_store();
    struct wal_error error = KIT_ERROR;
    struct wal_blob *blob = NULL;

    assert_int_equal(wal_blob_open(store, digest, &blob, &error),
                     WAL_ENOTFOUND);
    kit_told(&error, WAL_ENOTFOUND, "010203");
    assert_null(blob);
    kit_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_blobs__content_of_any_size_comes_back),
        KIT_TEST(test_blobs__incompressible_content_comes_back),
        KIT_TEST(test_blobs__content_comes_back_without_maps),
        KIT_TEST(test_blobs__content_of_a_store_in_memory_comes_back),
        KIT_TEST(test_blobs__a_duplicate_costs_nothing),
        KIT_TEST(test_blobs__a_store_without_blobs_has_no_pack),
        KIT_TEST(test_blobs__unknown_content_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
