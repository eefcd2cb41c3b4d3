/*
 * test_blobs_delta.c - tests of content that is kept by what it was before
 * (SPEC.md 2.18, 5.12).
 */
#include "engine/session/session.h"
#include "engine/store/blob_store.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/put_unsynced.h"

enum {
    LETTERS = 200000
};

static struct wal__digest no_digest;

/* Letters that LZ4 alone makes hardly shorter. */
static struct kit_content letters(uint64_t seed, uint64_t size)
{
    struct kit_content content = {malloc(size + 1), size};
    uint64_t state = seed + 1;

    assert_non_null(content.data);
    for (uint64_t i = 0; i < size; i++) {
        content.data[i] = (uint8_t)(48 + kit_random(&state) % 64);
    }
    return content;
}

/* `now` with some bytes put into a place, or others in theirs. */
static struct kit_content edited(const struct kit_content *was, uint64_t at,
                                 uint64_t removed, const char *put)
{
    uint64_t size = strlen(put);
    struct kit_content now = {malloc(was->size + size + 1),
                              was->size - removed + size};

    assert_non_null(now.data);
    memcpy(now.data, was->data, at);
    memcpy(now.data + at, put, size);
    memcpy(now.data + at + size, was->data + at + removed,
           was->size - at - removed);
    return now;
}

static struct wal__span span_of(const struct kit_content *content)
{
    return (struct wal__span){content->data, content->size};
}

/* Puts it by a base; what it takes in the stream. */
static uint64_t put(struct wal_store *store, const struct kit_content *content,
                    const struct wal__digest *base, struct wal__digest *digest)
{
    struct wal__blob_put_result cost = {0};
    struct wal_error error = KIT_ERROR;

    if (put_unsynced(store, span_of(content), base, WAL__BLOB_OF_RECORDS,
                     digest, &cost, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
    return cost.new_bytes;
}

static uint8_t depth_of(struct wal_store *store,
                        const struct wal__digest *digest)
{
    struct wal__buf content;
    struct wal_error error = KIT_ERROR;
    uint8_t depth = 99;

    wal__buf_init(&content, &wal__heap_libc);
    if (wal__chunk_load(&store->core.blobs, digest, &content, &depth, &error) !=
        WAL_OK) {
        fail_msg("%s", error.text);
    }
    wal__buf_deinit(&content);
    return depth;
}

/* An edit costs about itself, wherever it is, and whether it moves the rest. */
KIT_TEST(delta__small_edit_is_a_small_delta)
{
    static const struct {
        uint64_t at;
        uint64_t removed;
        const char *put;
    } edits[] = {{0, 0, "x"},          {0, 1, ""},
                 {100, 3, "longer"},   {99999, 0, "inserted"},
                 {100000, 50, ""},     {LETTERS, 0, "end"},
                 {LETTERS - 1, 1, ""}, {65535, 2, "zz"}};
    struct wal_store *store = kit_store();
    struct kit_content was = letters(1, LETTERS);
    struct wal__digest base;
    uint64_t whole = put(store, &was, NULL, &base);

    assert_true(whole > LETTERS / 2);
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        struct kit_content now =
            edited(&was, edits[i].at, edits[i].removed, edits[i].put);
        struct wal__digest digest;
        uint64_t cost = put(store, &now, &base, &digest);

        if (cost > whole / 20) {
            fail_msg("edit %zu takes %llu bytes of %llu", i,
                     (unsigned long long)cost, (unsigned long long)whole);
        }
        assert_int_equal(depth_of(store, &digest), 1);
        kit_check_blob(store, digest.bytes, &now);
        kit_content_free(&now);
    }
    kit_content_free(&was);
    kit_close(store);
}

KIT_TEST(delta__chains_are_bounded)
{
    struct wal_store *store = kit_store();
    struct kit_content versions[20];
    struct wal__digest digests[20];
    uint32_t whole = 0;

    versions[0] = letters(2, 30000);
    (void)put(store, &versions[0], NULL, &digests[0]);
    for (int i = 1; i < 20; i++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "<%d>", i);
        versions[i] =
            edited(&versions[i - 1], 500 + 100 * (uint64_t)i, 0, text);
        (void)put(store, &versions[i], &digests[i - 1], &digests[i]);
        assert_int_equal(depth_of(store, &digests[i]),
                         i % (WAL__CHUNK_DEPTH_MAX + 1));
        whole += i % (WAL__CHUNK_DEPTH_MAX + 1) == 0;
    }
    assert_int_equal(whole, 2);
    kit_close(store);
    store = kit_store();
    for (int i = 0; i < 20; i++) {
        kit_check_blob(store, digests[i].bytes, &versions[i]);
        kit_content_free(&versions[i]);
    }
    kit_close(store);
}

KIT_TEST(delta__large_content_is_encoded_by_chunk)
{
    struct wal_store *store = kit_store();
    struct kit_content was = letters(3, 3 * KIT_MIB + 1000);
    struct kit_content now = edited(&was, 2 * KIT_MIB + 77, 5, "here");
    struct wal__digest base;
    struct wal__digest digest;
    uint64_t whole = put(store, &was, NULL, &base);

    /* Two chunks are there, one and a half are new by what they were. */
    assert_true(put(store, &now, &base, &digest) < whole / 20);
    kit_check_blob(store, digest.bytes, &now);
    kit_check_blob(store, base.bytes, &was);
    kit_content_free(&now);
    now = edited(&was, 10, 0, "moved everything");
    assert_true(put(store, &now, &base, &digest) < whole / 20);
    kit_check_blob(store, digest.bytes, &now);
    kit_content_free(&now);
    kit_content_free(&was);
    kit_close(store);
}

KIT_TEST(delta__between_small_and_large_content)
{
    struct wal_store *store = kit_store();
    struct kit_content large = letters(4, KIT_MIB + 5000);
    struct kit_content small = {large.data, 600000};
    struct wal__digest digests[2];
    struct wal__digest digest;
    struct kit_content now;

    (void)put(store, &large, NULL, &digests[0]);
    now = edited(&small, 77, 0, "grown");
    assert_true(put(store, &now, &digests[0], &digest) < 60000);
    kit_check_blob(store, digest.bytes, &now);
    kit_content_free(&now);
    now = edited(&large, 99, 2, "again");
    assert_true(put(store, &now, &digest, &digests[1]) < 700000);
    kit_check_blob(store, digests[1].bytes, &now);
    kit_content_free(&now);
    kit_content_free(&large);
    kit_close(store);
}

KIT_TEST(delta__unrelated_content_is_stored_whole)
{
    struct wal_store *store = kit_store();
    struct kit_content was = letters(5, LETTERS);
    struct kit_content other = letters(6, LETTERS);
    struct kit_content empty = {was.data, 0};
    struct wal__digest base;
    struct wal__digest digest;

    (void)put(store, &was, NULL, &base);
    (void)put(store, &other, &base, &digest);
    assert_int_equal(depth_of(store, &digest), 0);
    kit_check_blob(store, digest.bytes, &other);
    (void)put(store, &empty, &base, &digest);
    assert_int_equal(depth_of(store, &digest), 0);
    kit_content_free(&other);
    other = edited(&was, 10, 0, "!");
    (void)put(store, &other, &no_digest, &digest); /* an unknown digest */
    assert_int_equal(depth_of(store, &digest), 0);
    kit_check_blob(store, digest.bytes, &other);
    kit_content_free(&other);
    kit_content_free(&was);
    kit_close(store);
}

/* --- blocks ------------------------------------------------------------- */

/* Any bytes decoded as a delta are rejected or yield content of the expected
 * size, and nothing outside the buffers is touched. */
KIT_TEST(delta__any_bytes_decode_safely)
{
    uint64_t random = kit_seed();
    struct kit_content was = letters(7, 90000);
    struct kit_content now = edited(&was, 40000, 10, "something else");
    struct wal__chunk_record chunk = {.encoding = WAL__CHUNK_DELTA,
                                      .size = (uint32_t)now.size};
    struct wal__buf delta;
    uint8_t *out = malloc(now.size);

    assert_non_null(out);
    wal__buf_init(&delta, &wal__heap_libc);
    assert_ok(wal__delta_encode(&wal__heap_libc, span_of(&now), span_of(&was),
                                now.size, &delta));
    chunk.data = (struct wal__span){delta.data, delta.size};
    assert_true(wal__chunk_decode_content(&chunk, span_of(&was), out));
    assert_memory_equal(out, now.data, now.size);
    for (int i = 0; i < 3000; i++) {
        size_t size =
            i % 3 == 0 ? kit_random(&random) % delta.size : delta.size;
        struct wal__span base = span_of(&was);
        uint8_t *copy = malloc(size + 1);

        assert_non_null(copy);
        memcpy(copy, delta.data, size);
        for (int n = 0; n < i % 4 && size > 0; n++) {
            copy[kit_random(&random) % size] = (uint8_t)kit_random(&random);
        }
        base.size = i % 5 == 0 ? kit_random(&random) % was.size : was.size;
        chunk.data = (struct wal__span){copy, size};
        chunk.size = (uint32_t)(i % 7 == 0 ? now.size - 1 : now.size);
        (void)wal__chunk_decode_content(&chunk, base, out);
        free(copy);
    }
    free(out);
    wal__buf_deinit(&delta);
    kit_content_free(&now);
    kit_content_free(&was);
}

KIT_TEST(delta__stops_at_its_size_limit)
{
    struct kit_content was = letters(8, 90000);
    struct kit_content other = letters(9, 90000);
    struct wal__buf delta;

    wal__buf_init(&delta, &wal__heap_libc);
    assert_int_equal(wal__delta_encode(&wal__heap_libc, span_of(&other),
                                       span_of(&was), 40000, &delta),
                     WAL_END);
    assert_int_equal(delta.size, 0);
    wal__buf_deinit(&delta);
    kit_content_free(&was);
    kit_content_free(&other);
}
