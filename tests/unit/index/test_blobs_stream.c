/*
 * test_blobs_stream.c - tests of content that comes in pieces, and of how much
 * memory it takes (SPEC.md 5.12).
 */
#include <malloc.h>
#include <stdatomic.h>

#include "agentwal/blob.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "engine/store/blob_store.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/put_unsynced.h"

/* A heap that knows how much was in use at most. */
static int64_t in_use;
static int64_t peak;

static void *resize(void *ctx, void *at, size_t size)
{
    (void)ctx;
    in_use -= at == NULL ? 0 : (int64_t)malloc_usable_size(at);
    at = wal__heap_libc.resize(wal__heap_libc.ctx, at, size);
    in_use += at == NULL ? 0 : (int64_t)malloc_usable_size(at);
    peak = in_use > peak ? in_use : peak;
    return at;
}

static const struct wal__heap measured = {resize, NULL};

static bool is_long(void)
{
    const char *text = getenv("AGENTWAL_LONG");

    return text != NULL && *text != '\0' && strcmp(text, "0") != 0;
}

static void write_piece(struct wal_blob_writer *writer,
                        const struct kit_content *content, uint64_t from,
                        uint64_t to)
{
    struct wal_error error = KIT_ERROR;
    struct wal_slice piece = {content->data + from, to - from};

    if (wal_blob_write(writer, piece, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
}

/* Pieces of the size, or of sizes by chance when it is 0. */
static void write_all(struct wal_store *store,
                      const struct kit_content *content, uint64_t size,
                      uint8_t digest[WAL_DIGEST_SIZE])
{
    struct wal_error error = KIT_ERROR;
    struct wal_blob_writer *writer = NULL;
    uint64_t state = content->size + 1;
    uint64_t total = 77;

    assert_ok(wal_blob_create(store, &writer, &error));
    for (uint64_t at = 0; at < content->size;) {
        uint64_t piece = size != 0 ? size : kit_random(&state) % 700000;

        if (piece > content->size - at) {
            piece = content->size - at;
        }
        write_piece(writer, content, at, at + piece);
        at += piece;
    }
    if (wal_blob_finish(writer, digest, &total, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(total, content->size);
    assert_int_equal(wal_blob_finish(writer, NULL, NULL, &error), WAL_EINVAL);
    wal_blob_discard(writer);
}

KIT_TEST(stream__pieces_equal_the_whole)
{
    static const uint64_t sizes[] = {
        0, 1, KIT_MIB, KIT_MIB + 1, 2 * KIT_MIB, 2 * KIT_MIB + 99};
    struct wal_store *store = kit_store();

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
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
    kit_close(store);
}

KIT_TEST(stream__unfinished_content_is_not_found)
{
    struct wal_store *store = kit_store();
    struct kit_content content = kit_content(9, 3 * KIT_MIB, true);
    struct wal_error error = KIT_ERROR;
    struct wal_blob_writer *writer = NULL;
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob *blob = NULL;
    uint64_t bytes;

    assert_ok(wal_blob_create(store, &writer, &error));
    write_piece(writer, &content, 0, content.size);
    wal_blob_discard(writer);
    wal_blob_discard(NULL);
    bytes = kit_store_info(store).pack_bytes;
    assert_true(bytes > 0);
    kit_put_blob(store, &content, digest);
    /* Two of its chunks were there. */
    assert_true(kit_store_info(store).pack_bytes - bytes < bytes);
    kit_check_blob(store, digest, &content);
    assert_ok(wal_blob_open(store, digest, &blob, &error));
    wal_blob_close(blob);
    wal_blob_close(NULL);
    kit_content_free(&content);
    kit_close(store);
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
static void check_large(struct wal_store *store, const uint8_t *digest,
                        uint64_t mib, uint8_t *piece, uint8_t *read)
{
    struct wal_error error = KIT_ERROR;
    struct wal_blob *blob = NULL;
    uint64_t got = 0;

    if (wal_blob_open(store, digest, &blob, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(wal_blob_size(blob), mib * KIT_MIB);
    for (uint64_t i = 0; i <= mib; i++) {
        uint64_t number = i < mib ? i : mib / 2;

        if (wal_blob_read(blob, number * KIT_MIB, read, KIT_MIB, &got,
                          &error) != WAL_OK) {
            fail_msg("%s", error.text);
        }
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
    uint8_t *piece = malloc(KIT_MIB);
    uint8_t *read = malloc(KIT_MIB);
    struct wal_error error = KIT_ERROR;
    struct wal_blob_writer *writer = NULL;
    struct wal_store *store = NULL;
    uint8_t digest[WAL_DIGEST_SIZE];
    uint64_t size = 0;

    assert_non_null(piece);
    assert_non_null(read);
    in_use = 0;
    peak = 0;
    assert_ok(wal__store_open("store", &options, &measured, &wal__io_posix,
                              &store, &error));
    assert_ok(wal_blob_create(store, &writer, &error));
    for (uint64_t i = 0; i < mib; i++) {
        fill(piece, KIT_MIB, i);
        if (wal_blob_write(writer, (struct wal_slice){piece, KIT_MIB},
                           &error) != WAL_OK) {
            fail_msg("%s", error.text);
        }
    }
    assert_ok(wal_blob_finish(writer, digest, &size, &error));
    wal_blob_discard(writer);
    assert_int_equal(size, mib * KIT_MIB);
    check_large(store, digest, mib, piece, read);
    print_message("%llu MiB took %lld KiB of memory\n", (unsigned long long)mib,
                  (long long)(peak / 1024));
    assert_true(peak < 12 * KIT_MIB);
    assert_ok(wal_close(store, &error));
    assert_int_equal(in_use, 0);
    free(piece);
    free(read);
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

    assert_ok(put_unsynced(store, span, NULL, WAL__BLOB_OF_RECORDS, &digest,
                           &first, NULL));
    assert_true(wal__blob_store_durable_end(blobs) < first.end);
    assert_ok(put_unsynced(store, span, NULL, WAL__BLOB_OF_RECORDS, &digest,
                           &again, NULL));
    assert_int_equal(again.new_blobs, 0);
    assert_ok(wal__blob_store_sync(blobs, again.end, NULL));
    assert_true(wal__blob_store_durable_end(blobs) >= first.end);
    kit_content_free(&content);
    kit_close(store);
}

/* A record of chunks that are valid, in the order of another content. */
KIT_TEST(stream__chunks_in_another_order_are_refused)
{
    struct wal_store *store = kit_store();
    struct wal__blob_store *blobs = &store->core.blobs;
    struct kit_content content = kit_content(1, 2 * KIT_MIB, false);
    struct wal__blob_put_result result = {0};
    struct wal__blob_record record = {.size = 2 * KIT_MIB, .chunk_count = 2};
    struct wal_error error = KIT_ERROR;
    struct wal__content_guard guard = {NULL, 0};
    struct wal__blob_prepared prepared;
    struct wal_blob *blob = NULL;
    uint8_t digest[WAL_DIGEST_SIZE];
    uint8_t swapped[2 * WAL_DIGEST_SIZE];
    struct wal__buf chunks;
    uint64_t got = 0;

    kit_put_blob(store, &content, digest);
    wal__buf_init(&chunks, &wal__heap_libc);
    assert_ok(wal__blob_list_chunks(blobs, (const struct wal__digest *)digest,
                                    &chunks, &got, NULL));
    assert_int_equal(chunks.size, sizeof(swapped));
    memcpy(swapped, chunks.data + WAL_DIGEST_SIZE, WAL_DIGEST_SIZE);
    memcpy(swapped + WAL_DIGEST_SIZE, chunks.data, WAL_DIGEST_SIZE);
    wal__buf_deinit(&chunks);
    memset(record.digest.bytes, 0x55, sizeof(record.digest.bytes));
    record.chunks = swapped;
    assert_ok(wal__content_guard_enter(&guard, &store->core.control, NULL));
    assert_ok(wal__blob_prepare_chunk_list(blobs, &record, WAL__BLOB_OF_CALLER,
                                           &prepared, NULL));
    assert_ok(wal__pack_append(blobs, &prepared, 1, &result, NULL));
    wal__blob_prepared_deinit(&prepared);
    wal__content_guard_leave(&guard);
    assert_ok(wal_blob_open(store, record.digest.bytes, &blob, NULL));
    assert_int_equal(
        wal_blob_read(blob, 0, content.data, content.size, &got, &error),
        WAL_ECORRUPT);
    assert_error(&error, WAL_ECORRUPT, "SHA-256");
    wal_blob_close(blob);
    kit_content_free(&content);
    kit_close(store);
}
