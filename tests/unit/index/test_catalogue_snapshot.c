/*
 * test_catalogue_snapshot.c - tests of the catalogue's snapshots: written,
 * adopted, overlaid and rewritten against a naive model; damaged in every bit;
 * read by several threads. AGENTWAL_SEED sets the seed.
 */
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "tests/lib/catalogue_model.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"

TEST(catalogue_snapshot__snapshots_are_overlaid_and_rewritten)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct wal__span old = {NULL, 0};

    model_begin(&model, &catalogue, &wal__heap_libc, 0);
    for (int generation = 0; generation < 40; generation++) {
        struct wal__span bytes = model_swap_snapshot(&catalogue, &model);
        uint32_t steps = model_random_below(60);

        model_free(old);
        old = bytes;
        assert_int_equal(catalogue.snapshot->header.position,
                         model_header.position);
        assert_int_equal(catalogue.snapshot->header.last_sequence, 2000000);
        assert_int_equal(catalogue.snapshot->header.chain, model_header.chain);
        model_assert_same(&catalogue, &model);
        while (steps-- > 0) {
            model_step(&model, &catalogue);
        }
        model_assert_same(&catalogue, &model);
    }
    assert_true(model.count > 20);
    wal__catalogue_deinit(&catalogue);
    model_free(old);
}

/* The bytes depend on the state alone, not on where it comes from. */
TEST(catalogue_snapshot__snapshot_of_a_snapshot_is_the_same)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct wal__span first;
    struct wal__span second;

    model_begin(&model, &catalogue, &wal__heap_libc, 2000);
    first = model_swap_snapshot(&catalogue, &model);
    second = model_write(&catalogue, &model);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    model_free(second);
    wal__catalogue_deinit(&catalogue);
    model_free(first);
}

TEST(catalogue_snapshot__failed_allocation_of_the_rest_is_reported)
{
    static struct model model;
    struct faulty_heap heap;
    struct wal__catalogue catalogue;
    struct wal__catalogue_iter cursor;
    struct wal__span bytes;
    struct model_sink sink = {.fail_at = 0};
    uint64_t nth = 1;

    faulty_heap_init(&heap, &wal__heap_libc);
    model_begin(&model, &catalogue, &heap.heap, 200);
    bytes = model_write(&catalogue, &model);
    wal__buf_init(&sink.bytes, &wal__heap_libc);
    faulty_heap_fail(&heap, nth, false);
    while (wal__catalogue_write(&catalogue, &model_header, model_sink_write,
                                &sink) == WAL_ENOMEM) {
        sink.bytes.size = 0;
        sink.calls = 0;
        faulty_heap_fail(&heap, ++nth, false);
    }
    assert_in_range(nth, 8, 20);
    assert_memory_equal(sink.bytes.data, bytes.data, bytes.size);
    wal__buf_deinit(&sink.bytes);
    faulty_heap_fail(&heap, 1, false);
    assert_int_equal(model_begin_list(&cursor, &catalogue, &model_filters[0]),
                     WAL_ENOMEM);
    wal__catalogue_deinit(&catalogue);
    faulty_heap_fail(&heap, 1, false);
    assert_int_equal(model_attach(&catalogue, bytes, model_uuid), WAL_ENOMEM);
    assert_ok(model_attach(&catalogue, bytes, model_uuid));
    model_assert_same(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
    assert_int_equal(heap.live, 0);
    model_free(bytes);
}

TEST(catalogue_snapshot__failed_put_ends_the_write)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct model_sink sink = {.fail_at = 1};

    model_begin(&model, &catalogue, &wal__heap_libc, 200);
    wal__buf_init(&sink.bytes, &wal__heap_libc);
    assert_int_equal(wal__catalogue_write(&catalogue, &model_header,
                                          model_sink_write, &sink),
                     WAL_ENOSPACE);
    assert_int_equal(sink.calls, 1);
    wal__buf_deinit(&sink.bytes);
    wal__catalogue_deinit(&catalogue);
}

/* Of several chunks and pages in every section. */
TEST(catalogue_snapshot__large_snapshot_is_read_back)
{
    enum {
        COUNT = 3000
    };
    struct wal__catalogue catalogue;
    struct wal__span bytes;
    struct wal__summary summary;
    char id[16];

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    for (uint32_t number = 1; number <= COUNT; number++) {
        sprintf(id, "s%u", number);
        assert_ok(model_put(&catalogue, number, id));
    }
    bytes = model_swap_snapshot(&catalogue, NULL);
    assert_true(bytes.size > (size_t)6 * MODEL_CHUNK);
    for (uint32_t number = 1; number <= COUNT; number++) {
        sprintf(id, "s%u", number);
        assert_ok(wal__catalogue_find(&catalogue, model_span(id), &summary));
        assert_int_equal(summary.number, number);
        assert_ok(wal__catalogue_get(&catalogue, number, &summary));
        assert_true(model_span_is(summary.id, id));
    }
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

/* --------------------------------------------------------------- damage --- */

/* WAL_OK when the bytes say what the model does. */
static enum wal_status check_bytes(struct wal__span bytes,
                                   const struct model *model)
{
    struct wal__catalogue catalogue;
    enum wal_status status;

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    status = model_attach(&catalogue, bytes, model_uuid);
    if (status == WAL_OK) {
        status = model_check(&catalogue, model);
    } else {
        assert_null(catalogue.snapshot);
        assert_int_equal(catalogue.visible_count, 0);
    }
    wal__catalogue_deinit(&catalogue);
    return status;
}

TEST(catalogue_snapshot__flipped_bit_is_detected_or_harmless)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct wal__span bytes;
    uint8_t *copy;
    size_t corrupt = 0;

    model_begin(&model, &catalogue, &wal__heap_libc, 40);
    bytes = model_write(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
    copy = malloc(bytes.size);
    assert_non_null(copy);
    memcpy(copy, bytes.data, bytes.size);
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        enum wal_status status;

        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        status = check_bytes((struct wal__span){copy, bytes.size}, &model);
        assert_true(status == WAL_OK || status == WAL_ECORRUPT);
        corrupt += status == WAL_ECORRUPT;
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    /* Every section is asked for something, and every page has a sum. */
    assert_int_equal(corrupt, 8 * bytes.size);
    assert_ok(check_bytes((struct wal__span){copy, bytes.size}, &model));
    free(copy);
    model_free(bytes);
}

TEST(catalogue_snapshot__truncated_snapshot_is_rejected)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct wal__span bytes;

    model_begin(&model, &catalogue, &wal__heap_libc, 40);
    bytes = model_write(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *cut = malloc(size + (size == 0));

        assert_non_null(cut);
        memcpy(cut, bytes.data, size);
        assert_int_equal(
            model_attach(&catalogue, (struct wal__span){cut, size}, model_uuid),
            WAL_ECORRUPT);
        free(cut);
    }
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

TEST(catalogue_snapshot__snapshot_of_another_store_is_rejected)
{
    static const uint8_t other[16] = "another store's.";
    struct wal__catalogue catalogue;
    struct wal__span bytes;

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    bytes = model_write(&catalogue, NULL);
    assert_int_equal(model_attach(&catalogue, bytes, other), WAL_ECORRUPT);
    assert_ok(model_attach(&catalogue, bytes, model_uuid));
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

/* A damaged page does no harm to what does not touch it, and what was read
 * from it before stays verified. */
TEST(catalogue_snapshot__damage_is_detected_on_access)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct wal__summary summary;
    struct wal__span bytes;
    uint8_t *by_cwd;

    model_begin(&model, &catalogue, &wal__heap_libc, 100);
    bytes = model_swap_snapshot(&catalogue, &model);
    by_cwd =
        (uint8_t *)(uintptr_t)bytes.data + catalogue.snapshot->layout.by_cwd;
    by_cwd[0] ^= 1;
    assert_ok(model_check_session(&catalogue, &model, &model.sessions[0]));
    assert_ok(model_check_list(&catalogue, &model, &model_filters[0]));
    assert_int_equal(model_check_list(&catalogue, &model, &model_filters[1]),
                     WAL_ECORRUPT);
    assert_int_equal(
        wal__catalogue_find(&catalogue, model_span("none"), &summary),
        WAL_ENOTFOUND);
    by_cwd[0] ^= 1;
    model_assert_same(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

/* -------------------------------------------------------------- threads --- */

struct reader {
    pthread_t thread;
    const struct wal__catalogue *catalogue;
    const struct model *model;
    enum wal_status status;
};

static void *read_all(void *ctx)
{
    struct reader *reader = ctx;

    reader->status = model_check(reader->catalogue, reader->model);
    return NULL;
}

TEST(catalogue_snapshot__readers_verify_pages_concurrently)
{
    enum {
        READERS = 4
    };
    static struct model model;
    struct wal__catalogue catalogue;
    struct reader readers[READERS];
    struct wal__span bytes;

    model_begin(&model, &catalogue, &wal__heap_libc, 2000);
    bytes = model_swap_snapshot(&catalogue, &model);
    for (int i = 0; i < READERS; i++) {
        readers[i].catalogue = &catalogue;
        readers[i].model = &model;
        assert_int_equal(
            pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
        assert_ok(readers[i].status);
    }
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

/* Each page of texts but the first begins within some session's. */
TEST(catalogue_snapshot__every_page_of_a_text_is_verified)
{
    enum {
        COUNT = 2000
    };
    struct wal__catalogue catalogue;
    struct wal__catalogue_layout layout;
    struct wal__span bytes;
    size_t corrupt = 0;

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    for (uint32_t number = 1; number <= COUNT; number++) {
        char id[16];

        sprintf(id, "s%u", number);
        assert_ok(model_put(&catalogue, number, id));
    }
    bytes = model_swap_snapshot(&catalogue, NULL);
    layout = catalogue.snapshot->layout;
    for (uint64_t at = layout.texts; at < layout.table; at += 4096) {
        ((uint8_t *)(uintptr_t)bytes.data)[at] ^= 1;
        wal__catalogue_deinit(&catalogue);
        assert_ok(model_attach(&catalogue, bytes, model_uuid));
        for (uint32_t number = COUNT; number > 0; number--) {
            struct wal__summary summary;
            char id[16];
            enum wal_status status =
                wal__catalogue_get(&catalogue, number, &summary);

            sprintf(id, "s%u", number);
            assert_true(status == WAL_ECORRUPT ||
                        (status == WAL_OK && model_span_is(summary.id, id)));
            corrupt += status == WAL_ECORRUPT;
        }
        ((uint8_t *)(uintptr_t)bytes.data)[at] ^= 1;
    }
    assert_true(corrupt >= COUNT);
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

/* Makes every checksum right again. */
static void forge_sums(uint8_t *bytes, const struct wal__catalogue *catalogue)
{
    const struct wal__catalogue_layout *layout = &catalogue->snapshot->layout;
    struct wal__catalogue_header header = catalogue->snapshot->header;

    for (uint64_t page = 1; page < layout->table / 4096; page++) {
        wal__put32(bytes + layout->table + 4 * page,
                   wal__crc32(0, bytes + page * 4096, 4096));
    }
    header.table_crc =
        wal__crc32(0, bytes + layout->table, layout->size - layout->table);
    wal__catalogue_header_encode(&header, bytes);
}

/* A checksum holds over bytes that a broken writer made. */
TEST(catalogue_snapshot__forged_rank_is_corrupt)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct wal__span bytes;
    uint8_t *forged;

    model_begin(&model, &catalogue, &wal__heap_libc, 100);
    bytes = model_swap_snapshot(&catalogue, &model);
    forged = (uint8_t *)(uintptr_t)bytes.data;
    wal__put32(forged + catalogue.snapshot->layout.by_recent,
               catalogue.snapshot->header.session_count);
    wal__put32(forged + catalogue.snapshot->layout.by_id, UINT32_MAX);
    forge_sums(forged, &catalogue);
    wal__catalogue_deinit(&catalogue);
    assert_ok(model_attach(&catalogue, bytes, model_uuid));
    assert_int_equal(model_check_list(&catalogue, &model, &model_filters[0]),
                     WAL_ECORRUPT);
    assert_int_equal(model_check(&catalogue, &model), WAL_ECORRUPT);
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

TEST(catalogue_snapshot__unordered_numbers_are_not_written)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct wal__span bytes;
    struct model_sink sink = {.fail_at = 0};
    uint8_t *forged;

    model_begin(&model, &catalogue, &wal__heap_libc, 100);
    bytes = model_swap_snapshot(&catalogue, &model);
    forged = (uint8_t *)(uintptr_t)bytes.data;
    wal__put32(forged + catalogue.snapshot->layout.summaries +
                   WAL__SUMMARY_SIZE,
               model.sessions[0].numbers.number);
    forge_sums(forged, &catalogue);
    wal__catalogue_deinit(&catalogue);
    assert_ok(model_attach(&catalogue, bytes, model_uuid));
    assert_int_equal(wal__catalogue_write(&catalogue, &model_header,
                                          model_sink_write, &sink),
                     WAL_ECORRUPT);
    assert_int_equal(sink.calls, 0);
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

/* What is newest of a cwd costs the same whatever else there is. */
TEST(catalogue_snapshot__cwd_list_reads_only_its_cwd)
{
    static struct model model;
    const struct model_session *wanted[MODEL_SESSIONS];
    struct wal__catalogue catalogue;
    struct wal__catalogue_iter cursor;
    struct wal__summary summary;
    struct wal__span bytes;
    uint32_t begun;
    uint32_t count;
    uint32_t deleted = 0;

    model_begin(&model, &catalogue, &wal__heap_libc, 1000);
    bytes = model_swap_snapshot(&catalogue, &model);
    count = model_list(&model, &model_filters[1], wanted);
    for (uint32_t i = 0; i < model.count; i++) {
        deleted += model_is_deleted(&model.sessions[i]) &&
                   !model.sessions[i].is_omitted &&
                   strcmp(model.sessions[i].cwd, model_filters[1].cwd) == 0;
    }
    assert_ok(model_begin_list(&cursor, &catalogue, &model_filters[1]));
    begun = cursor.snapshot_next;
    while (wal__catalogue_iter_next(&cursor, &catalogue, &summary) == WAL_OK) {
    }
    assert_true(count > 0 && count < model.count);
    assert_int_equal(cursor.snapshot_end - begun, count + deleted);
    wal__catalogue_iter_deinit(&cursor);
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

TEST_FILE(model_set_up, NULL, NULL);
