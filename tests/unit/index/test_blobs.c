/*
 * test_blobs.c - tests of putting and reading content (SPEC.md 5.12): whole, in
 * pieces and in how much memory, as what changed since other content (SPEC.md
 * 2.18), and by several threads, handles and processes at once.
 */
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/wait.h>

#include "agentwal/blob.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "engine/store/blob_store.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/put_unsynced.h"

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

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void put_sizes(struct wal_store *store, bool compressible,
                      uint8_t digests[SIZES][WAL_DIGEST_SIZE])
{
    for (uint32_t i = 0; i < SIZES; i++) {
        struct kit_content content = kit_content(100 + i, sizes[i], compressible);

        kit_put_blob(store, &content, digests[i]);
        kit_content_free(&content);
    }
}

static void check_sizes(struct wal_store *store, bool compressible,
                        uint8_t digests[SIZES][WAL_DIGEST_SIZE])
{
    for (uint32_t i = 0; i < SIZES; i++) {
        struct kit_content content = kit_content(100 + i, sizes[i], compressible);

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
    struct wal_blob *blob = NULL;

    assert_fails(wal_blob_open(store, digest, &blob, kit_error()), WAL_ENOTFOUND, "010203");
    assert_null(blob);
}

KIT_TEST(blobs__misuse_changes_nothing)
{
    const struct wal_slice nothing = {NULL, 5};
    struct wal_store *store = kit_store();
    uint8_t digest[WAL_DIGEST_SIZE] = {7};
    struct wal_blob_writer *writer = NULL;
    struct wal_blob *blob = NULL;
    uint64_t got = 77;
    char byte;

    assert_int_equal(wal_blob_put(NULL, kit_text("a"), digest, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_blob_put(store, nothing, digest, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_blob_put(store, kit_text("a"), NULL, kit_error()), WAL_EINVAL);
    assert_int_equal(digest[0], 7);
    assert_int_equal(wal_blob_create(store, NULL, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_blob_create(NULL, &writer, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_blob_write(NULL, kit_text("a"), kit_error()), WAL_EINVAL);
    assert_int_equal(wal_blob_finish(NULL, digest, NULL, kit_error()), WAL_EINVAL);
    assert_ok(wal_blob_create(store, &writer, kit_error()));
    assert_int_equal(wal_blob_write(writer, nothing, kit_error()), WAL_EINVAL);
    assert_ok(wal_blob_write(writer, kit_text("a"), kit_error()));
    assert_ok(wal_blob_finish(writer, digest, NULL, kit_error()));
    assert_int_equal(wal_blob_write(writer, kit_text("a"), kit_error()), WAL_EINVAL);
    wal_blob_discard(writer);
    assert_int_equal(wal_blob_open(store, NULL, &blob, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_blob_open(store, digest, NULL, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_blob_open(NULL, digest, &blob, kit_error()), WAL_EINVAL);
    assert_ok(wal_blob_open(store, digest, &blob, kit_error()));
    assert_int_equal(wal_blob_read(blob, 0, NULL, 1, &got, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_blob_read(blob, 0, &byte, 1, NULL, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_blob_read(NULL, 0, &byte, 1, &got, kit_error()), WAL_EINVAL);
    assert_int_equal(got, 77);
    assert_ok(wal_blob_read(blob, UINT64_MAX, &byte, UINT64_MAX, &got, kit_error()));
    assert_int_equal(got, 0);
    assert_int_equal(wal_blob_size(NULL), 0);
    wal_blob_close(blob);
}

/* Reading in any order gives what reading in order does. */
KIT_TEST(blobs__pieces_in_any_order)
{
    struct wal_store *store = kit_store();
    struct kit_content content = kit_content(5, 3 * KIT_MIB + 77, true);
    uint8_t digest[WAL_DIGEST_SIZE];
    uint8_t *bytes = test_memory(2 * KIT_MIB);
    struct wal_blob *blob = NULL;
    uint64_t random = kit_seed();

    kit_put_blob(store, &content, digest);
    assert_ok(wal_blob_open(store, digest, &blob, kit_error()));
    for (int i = 0; i < 60; i++) {
        uint64_t offset = kit_random(&random) % content.size;
        uint64_t size = kit_random(&random) % (2 * KIT_MIB);
        uint64_t left = content.size - offset;
        uint64_t got = 0;

        assert_ok(wal_blob_read(blob, offset, bytes, size, &got, kit_error()));
        assert_int_equal(got, size < left ? size : left);
        assert_memory_equal(bytes, content.data + offset, got);
    }
    wal_blob_close(blob);
    kit_check_blob(store, digest, &content);
}

/* A heap that knows how much was in use at most. */
static int64_t in_use;

static int64_t peak;

struct sized {
    alignas(max_align_t) size_t size;
};

static void *resize(void *ctx, void *at, size_t size)
{
    (void)ctx;
    /* Before what the caller has is its size. */
    struct sized *block = at == NULL ? NULL : (struct sized *)at - 1;

    in_use -= block == NULL ? 0 : (int64_t)block->size;
    block = wal__heap_libc.resize(wal__heap_libc.ctx, block, size == 0 ? 0 : sizeof(*block) + size);
    if (block == NULL) {
        return NULL;
    }
    block->size = size;
    in_use += (int64_t)size;
    peak = in_use > peak ? in_use : peak;
    return block + 1;
}

static const struct wal__heap measured = {resize, NULL};

static bool is_long(void)
{
    const char *text = getenv("AGENTWAL_LONG");

    return text != NULL && *text != '\0' && strcmp(text, "0") != 0;
}

static void write_piece(struct wal_blob_writer *writer, const struct kit_content *content,
                        uint64_t from, uint64_t to)
{
    struct wal_slice piece = {content->data + from, to - from};

    assert_done(wal_blob_write(writer, piece, kit_error()));
}

/* Pieces of the size, or of sizes by chance when it is 0. */
static void write_all(struct wal_store *store, const struct kit_content *content, uint64_t size,
                      uint8_t digest[WAL_DIGEST_SIZE])
{
    struct wal_blob_writer *writer = NULL;
    uint64_t state = content->size + 1;
    uint64_t total = 77;

    assert_ok(wal_blob_create(store, &writer, kit_error()));
    for (uint64_t at = 0; at < content->size;) {
        uint64_t piece = size != 0 ? size : kit_random(&state) % 700000;

        if (piece > content->size - at) {
            piece = content->size - at;
        }
        write_piece(writer, content, at, at + piece);
        at += piece;
    }
    assert_done(wal_blob_finish(writer, digest, &total, kit_error()));
    assert_int_equal(total, content->size);
    assert_int_equal(wal_blob_finish(writer, NULL, NULL, kit_error()), WAL_EINVAL);
    wal_blob_discard(writer);
}

KIT_TEST(stream__pieces_equal_the_whole)
{
    struct wal_store *store = kit_store();

    for (size_t i = 0; i < SIZES; i++) {
        struct kit_content content = kit_content(i, sizes[i], true);
        uint8_t whole[WAL_DIGEST_SIZE];
        uint8_t pieces[WAL_DIGEST_SIZE];
        uint64_t bytes;

        write_all(store, &content, i % 2 == 0 ? 0 : KIT_MIB, pieces);
        bytes = kit_store_info(store).pack_bytes;
        kit_put_blob(store, &content, whole);
        assert_memory_equal(whole, pieces, sizeof(whole));
        assert_int_equal(kit_store_info(store).pack_bytes, bytes);
        write_all(store, &content, 65536, pieces);
        assert_memory_equal(whole, pieces, sizeof(whole));
        assert_int_equal(kit_store_info(store).pack_bytes, bytes);
        kit_check_blob(store, whole, &content);
        kit_content_free(&content);
    }
}

KIT_TEST(stream__unfinished_content_is_not_found)
{
    struct wal_store *store = kit_store();
    struct kit_content content = kit_content(9, 3 * KIT_MIB, true);
    struct wal_blob_writer *writer = NULL;
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob *blob = NULL;
    uint64_t bytes;

    assert_ok(wal_blob_create(store, &writer, kit_error()));
    write_piece(writer, &content, 0, content.size);
    wal_blob_discard(writer);
    wal_blob_discard(NULL);
    bytes = kit_store_info(store).pack_bytes;
    assert_true(bytes > 0);
    kit_put_blob(store, &content, digest);
    /* Two of its chunks were there. */
    assert_true(kit_store_info(store).pack_bytes - bytes < bytes);
    kit_check_blob(store, digest, &content);
    assert_ok(wal_blob_open(store, digest, &blob, kit_error()));
    wal_blob_close(blob);
    wal_blob_close(NULL);
}

/* A piece of content that never repeats, without keeping any. */
static void fill(uint8_t *piece, uint64_t size, uint64_t number)
{
    uint64_t state = number * 0x9E3779B97F4A7C15u + 1;

    for (uint64_t i = 0; i < size; i += 8) {
        uint64_t value = kit_random(&state);

        memcpy(piece + i, &value, 8);
    }
}

/* Reads it back from first to last byte, and some of it from the middle. */
static void check_large(struct wal_store *store, const uint8_t *digest, uint64_t mib,
                        uint8_t *piece, uint8_t *read)
{
    struct wal_blob *blob = NULL;
    uint64_t got = 0;

    assert_done(wal_blob_open(store, digest, &blob, kit_error()));
    assert_int_equal(wal_blob_size(blob), mib * KIT_MIB);
    for (uint64_t i = 0; i <= mib; i++) {
        uint64_t number = i < mib ? i : mib / 2;

        assert_done(wal_blob_read(blob, number * KIT_MIB, read, KIT_MIB, &got, kit_error()));
        fill(piece, KIT_MIB, number);
        assert_int_equal(got, KIT_MIB);
        assert_memory_equal(read, piece, KIT_MIB);
    }
    wal_blob_close(blob);
}

KIT_TEST(stream__memory_is_bounded)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE};
    const uint64_t mib = is_long() ? 10240 : 300;
    uint8_t *piece = test_memory(KIT_MIB);
    uint8_t *read = test_memory(KIT_MIB);
    struct wal_blob_writer *writer = NULL;
    struct wal_store *store = NULL;
    uint8_t digest[WAL_DIGEST_SIZE];
    uint64_t size = 0;

    in_use = 0;
    peak = 0;
    assert_ok(wal__store_open("store", &options, &measured, &wal__io_posix, &store, kit_error()));
    assert_ok(wal_blob_create(store, &writer, kit_error()));
    for (uint64_t i = 0; i < mib; i++) {
        fill(piece, KIT_MIB, i);
        assert_done(wal_blob_write(writer, (struct wal_slice){piece, KIT_MIB}, kit_error()));
    }
    assert_ok(wal_blob_finish(writer, digest, &size, kit_error()));
    wal_blob_discard(writer);
    assert_int_equal(size, mib * KIT_MIB);
    check_large(store, digest, mib, piece, read);
    print_message("%llu MiB took %lld KiB of memory\n", (unsigned long long)mib,
                  (long long)(peak / 1024));
    assert_true(peak < 12 * KIT_MIB);
    assert_ok(wal_close(store, kit_error()));
    assert_int_equal(in_use, 0);
}

/* What is there need not be durable: a caller that puts it again waits. */
KIT_TEST(stream__content_put_again_names_its_end)
{
    struct wal_store *store = kit_store();
    struct wal__blob_store *blobs = &store->core.blobs;
    struct kit_content content = kit_content(1, 2 * KIT_MIB, false);
    const struct wal__span span = {content.data, content.size};
    struct wal__blob_put_result first = {0};
    struct wal__blob_put_result again = {0};
    struct wal__digest digest;

    assert_ok(put_unsynced(store, span, NULL, WAL__BLOB_OF_RECORDS, &digest, &first, NULL));
    assert_true(wal__blob_store_durable_end(blobs) < first.end);
    assert_ok(put_unsynced(store, span, NULL, WAL__BLOB_OF_RECORDS, &digest, &again, NULL));
    assert_int_equal(again.new_blobs, 0);
    assert_ok(wal__blob_store_sync(blobs, again.end, NULL));
    assert_true(wal__blob_store_durable_end(blobs) >= first.end);
}

/* A record of chunks that are valid, in the order of another content. */
KIT_TEST(stream__chunks_in_another_order_are_refused)
{
    struct wal_store *store = kit_store();
    struct wal__blob_store *blobs = &store->core.blobs;
    struct kit_content content = kit_content(1, 2 * KIT_MIB, false);
    struct wal__blob_put_result result = {0};
    struct wal__blob_record record = {.size = 2 * KIT_MIB, .chunk_count = 2};
    struct wal__content_guard guard = {NULL, 0};
    struct wal__blob_prepared prepared;
    struct wal_blob *blob = NULL;
    uint8_t digest[WAL_DIGEST_SIZE];
    uint8_t swapped[2 * WAL_DIGEST_SIZE];
    struct wal__buf chunks;
    uint64_t got = 0;

    kit_put_blob(store, &content, digest);
    wal__buf_init(&chunks, &wal__heap_libc);
    assert_ok(
        wal__blob_list_chunks(blobs, (const struct wal__digest *)digest, &chunks, &got, NULL));
    assert_int_equal(chunks.size, sizeof(swapped));
    memcpy(swapped, chunks.data + WAL_DIGEST_SIZE, WAL_DIGEST_SIZE);
    memcpy(swapped + WAL_DIGEST_SIZE, chunks.data, WAL_DIGEST_SIZE);
    wal__buf_deinit(&chunks);
    memset(record.digest.bytes, 0x55, sizeof(record.digest.bytes));
    record.chunks = swapped;
    assert_ok(wal__content_guard_enter(&guard, &store->core.control, NULL));
    assert_ok(wal__blob_prepare_chunk_list(blobs, &record, WAL__BLOB_OF_CALLER, &prepared, NULL));
    assert_ok(wal__pack_append(blobs, &prepared, 1, &result, NULL));
    wal__blob_prepared_deinit(&prepared);
    wal__content_guard_leave(&guard);
    assert_ok(wal_blob_open(store, record.digest.bytes, &blob, NULL));
    assert_fails(wal_blob_read(blob, 0, content.data, content.size, &got, kit_error()),
                 WAL_ECORRUPT, "SHA-256");
    wal_blob_close(blob);
}

enum { LETTERS = 200000 };

static struct wal__digest no_digest;

/* Letters that LZ4 alone makes hardly shorter. */
static struct kit_content letters(uint64_t seed, uint64_t size)
{
    struct kit_content content = {test_memory(size + 1), size};
    uint64_t state = seed + 1;

    for (uint64_t i = 0; i < size; i++) {
        content.data[i] = (uint8_t)(48 + kit_random(&state) % 64);
    }
    return content;
}

/* `now` with some bytes put into a place, or others in theirs. */
static struct kit_content edited(const struct kit_content *was, uint64_t at, uint64_t removed,
                                 const char *put)
{
    uint64_t size = strlen(put);
    struct kit_content now = {test_memory(was->size + size + 1), was->size - removed + size};

    memcpy(now.data, was->data, at);
    memcpy(now.data + at, put, size);
    memcpy(now.data + at + size, was->data + at + removed, was->size - at - removed);
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

    assert_done(put_unsynced(store, span_of(content), base, WAL__BLOB_OF_RECORDS, digest, &cost,
                             kit_error()));
    return cost.new_bytes;
}

static uint8_t depth_of(struct wal_store *store, const struct wal__digest *digest)
{
    struct wal__buf content;
    uint8_t depth = 99;

    wal__buf_init(&content, &wal__heap_libc);
    assert_done(wal__chunk_load(&store->core.blobs, digest, &content, &depth, kit_error()));
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
    } edits[] = {
        {0, 0, "x"},      {0, 1, ""},          {100, 3, "longer"},   {99999, 0, "inserted"},
        {100000, 50, ""}, {LETTERS, 0, "end"}, {LETTERS - 1, 1, ""}, {65535, 2, "zz"}};
    struct wal_store *store = kit_store();
    struct kit_content was = letters(1, LETTERS);
    struct wal__digest base;
    uint64_t whole = put(store, &was, NULL, &base);

    assert_true(whole > LETTERS / 2);
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        struct kit_content now = edited(&was, edits[i].at, edits[i].removed, edits[i].put);
        struct wal__digest digest;
        uint64_t cost = put(store, &now, &base, &digest);

        if (cost > whole / 20) {
            fail_msg("edit %zu takes %llu bytes of %llu", i, (unsigned long long)cost,
                     (unsigned long long)whole);
        }
        assert_int_equal(depth_of(store, &digest), 1);
        kit_check_blob(store, digest.bytes, &now);
        kit_content_free(&now);
    }
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
        versions[i] = edited(&versions[i - 1], 500 + 100 * (uint64_t)i, 0, text);
        (void)put(store, &versions[i], &digests[i - 1], &digests[i]);
        assert_int_equal(depth_of(store, &digests[i]), i % (WAL__CHUNK_DEPTH_MAX + 1));
        whole += i % (WAL__CHUNK_DEPTH_MAX + 1) == 0;
    }
    assert_int_equal(whole, 2);
    kit_close(store);
    store = kit_store();
    for (int i = 0; i < 20; i++) {
        kit_check_blob(store, digests[i].bytes, &versions[i]);
        kit_content_free(&versions[i]);
    }
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
}

/* --- blocks ------------------------------------------------------------- */

/* Any bytes decoded as a delta are rejected or yield content of the expected size, and nothing
 * outside the buffers is touched. */
KIT_TEST(delta__any_bytes_decode_safely)
{
    uint64_t random = kit_seed();
    struct kit_content was = letters(7, 90000);
    struct kit_content now = edited(&was, 40000, 10, "something else");
    struct wal__chunk_record chunk = {.encoding = WAL__CHUNK_DELTA, .size = (uint32_t)now.size};
    struct wal__buf delta;
    uint8_t *out = test_memory(now.size);

    wal__buf_init(&delta, &wal__heap_libc);
    assert_ok(wal__delta_encode(&wal__heap_libc, span_of(&now), span_of(&was), now.size, &delta));
    chunk.data = (struct wal__span){delta.data, delta.size};
    assert_true(wal__chunk_decode_content(&chunk, span_of(&was), out));
    assert_memory_equal(out, now.data, now.size);
    for (int i = 0; i < 3000; i++) {
        size_t size = i % 3 == 0 ? kit_random(&random) % delta.size : delta.size;
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
    wal__buf_deinit(&delta);
}

KIT_TEST(delta__stops_at_its_size_limit)
{
    struct kit_content was = letters(8, 90000);
    struct kit_content other = letters(9, 90000);
    struct wal__buf delta;

    wal__buf_init(&delta, &wal__heap_libc);
    assert_int_equal(
        wal__delta_encode(&wal__heap_libc, span_of(&other), span_of(&was), 40000, &delta), WAL_END);
    assert_int_equal(delta.size, 0);
    wal__buf_deinit(&delta);
}

enum { WRITERS = 4, CONTENTS = 60 };

static struct kit_content nth(uint32_t number)
{
    return kit_content(number, 1000 + number * 997u, number % 2 == 0);
}

KIT_TEST(shared__handle_finds_content_of_another)
{
    struct wal_store *stores[2] = {kit_store(), kit_store()};

    for (uint32_t i = 0; i < 40; i++) {
        struct kit_content content = nth(i);
        uint8_t digest[WAL_DIGEST_SIZE];
        uint64_t bytes;

        kit_put_blob(stores[i % 2], &content, digest);
        bytes = kit_store_info(stores[0]).pack_bytes;
        kit_check_blob(stores[1 - i % 2], digest, &content);
        kit_put_blob(stores[1 - i % 2], &content, digest);
        assert_int_equal(kit_store_info(stores[1]).pack_bytes, bytes);
        kit_content_free(&content);
    }
}

/* One that only reads follows those who write. */
KIT_TEST(shared__a_reader_follows)
{
    struct wal_store *store = kit_store();
    struct wal_store *reader = kit_open("store", WAL_OPEN_READ_ONLY);
    uint8_t digest[WAL_DIGEST_SIZE];

    for (uint32_t i = 0; i < 20; i++) {
        struct kit_content content = kit_content(i, 400000, false);

        kit_put_blob(store, &content, digest);
        kit_check_blob(reader, digest, &content);
        kit_content_free(&content);
    }
    assert_int_equal(wal_blob_put(reader, kit_text("x"), digest, kit_error()), WAL_EREADONLY);
}

/* One writer of several: puts all contents, in a different order each. */
static void put_all(struct wal_store *store, uint32_t writer)
{
    for (uint32_t i = 0; i < CONTENTS; i++) {
        struct kit_content content = nth((i * 7 + writer * 13) % CONTENTS);
        struct wal_error error = KIT_ERROR;
        uint8_t digest[WAL_DIGEST_SIZE];

        WAL__ASSERT(wal_blob_put(store, kit_slice(&content), digest, &error) == WAL_OK);
        kit_content_free(&content);
    }
}

static void *run_writer(void *arg)
{
    static _Atomic uint32_t number;

    put_all(arg, number++);
    return NULL;
}

/* Every content is there, and is stored once. */
static void check_once(void)
{
    struct wal_store *store = kit_store();
    struct wal_store *alone = kit_open("alone", WAL_OPEN_CREATE);
    uint64_t shared_sequence;
    uint64_t bytes;

    put_all(alone, 0);
    for (uint32_t i = 0; i < CONTENTS; i++) {
        struct kit_content content = nth(i);
        uint8_t digest[WAL_DIGEST_SIZE];

        bytes = kit_store_info(store).pack_bytes;
        kit_put_blob(store, &content, digest);
        assert_int_equal(kit_store_info(store).pack_bytes, bytes);
        kit_check_blob(store, digest, &content);
        kit_content_free(&content);
    }
    /* Groups and their ends apart. */
    shared_sequence = kit_store_info(store).pack_bytes;
    bytes = kit_store_info(alone).pack_bytes;
    assert_true(shared_sequence < bytes + bytes / 10 + 65536);
    kit_close(alone);
    kit_close(store);
}

KIT_TEST(shared__threads_put_the_same)
{
    struct wal_store *store = kit_store();
    pthread_t threads[WRITERS];

    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_writer, store), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    kit_close(store);
    check_once();
}

KIT_TEST(shared__processes_put_the_same)
{
    pid_t children[WRITERS];

    kit_close(kit_store());
    for (uint32_t i = 0; i < WRITERS; i++) {
        children[i] = kit_start_process();
        if (children[i] == 0) {
            struct wal_store *store = kit_store();

            put_all(store, i);
            if (i % 2 == 0) {
                kit_close(store); /* others die with it open */
            }
            _exit(0);
        }
    }
    for (uint32_t i = 0; i < WRITERS; i++) {
        int result = -1;

        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_int_equal(result, 0);
    }
    check_once();
}

KIT_TEST(shared__child_of_fork_cannot_use_handles)
{
    struct wal_store *store = kit_store();
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_error error = KIT_ERROR;
    struct wal_blob *blob = NULL;
    int result = -1;
    pid_t child;

    assert_ok(wal_blob_put(store, kit_text("x"), digest, &error));
    child = kit_start_process();
    if (child == 0) {
        enum wal_status put = wal_blob_put(store, kit_text("y"), digest, &error);
        enum wal_status opened = wal_blob_open(store, digest, &blob, &error);

        _exit(put == WAL_EFORKED && opened == WAL_EFORKED ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}
