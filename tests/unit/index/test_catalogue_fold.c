/*
 * test_catalogue_fold.c - tests of replacing the catalogue's snapshot while it
 * is in use, against a naive model: frozen, written from the image, adopted,
 * iterated meanwhile. AGENTWAL_SEED sets the seed.
 */
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/catalogue_model.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"

/* Bytes on the heap that a snapshot frees with its last release. */
static void free_bytes(void *owner)
{
    free(owner);
}

/* Writes an image, and opens what was written. */
static struct wal__snapshot *write_image(const struct wal__catalogue *image)
{
    struct wal__span bytes = model_write(image, NULL);
    struct wal__snapshot *snapshot = NULL;

    assert_ok(wal__snapshot_open(image->heap, bytes, model_uuid, &snapshot));
    snapshot->unmap = free_bytes;
    snapshot->owner = (void *)(uintptr_t)bytes.data;
    return snapshot;
}

static void step(struct model *model, struct wal__catalogue *catalogue,
                 uint32_t count)
{
    while (count-- > 0) {
        model_step(model, catalogue);
    }
}

/* Freezes the catalogue. The model forgets at once what the next snapshot
 * omits: no record of such a session follows in a log. */
static void freeze(struct wal__catalogue *catalogue, struct model *model,
                   struct wal__catalogue *image)
{
    wal__catalogue_freeze(catalogue, image);
    model_omit(model);
}

TEST(catalogue_fold__answers_are_the_same_at_every_step)
{
    static struct model model;
    struct faulty_heap heap;
    struct wal__catalogue catalogue;

    faulty_heap_init(&heap, &wal__heap_libc);
    model_begin(&model, &catalogue, &heap.heap, 0);
    for (int round = 0; round < 60; round++) {
        struct wal__catalogue image;
        struct wal__snapshot *snapshot;

        step(&model, &catalogue, model_random_below(80));
        wal__catalogue_freeze(&catalogue, &image);
        model_assert_same(&catalogue, &model);
        model_omit(&model);
        step(&model, &catalogue, model_random_below(80));
        /* Records since the freeze change neither the image nor what it is
         * written to. */
        snapshot = write_image(&image);
        step(&model, &catalogue, model_random_below(20));
        wal__catalogue_adopt(&catalogue, snapshot);
        wal__catalogue_deinit(&image);
        model_assert_same(&catalogue, &model);
    }
    wal__catalogue_deinit(&catalogue);
    assert_int_equal(heap.live, 0);
}

/* A layer that could not be written stays, and is written together with what
 * came after it. */
TEST(catalogue_fold__frozen_layer_is_written_with_the_next)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct wal__catalogue image;
    struct wal__span bytes;

    model_begin(&model, &catalogue, &wal__heap_libc, 300);
    wal__catalogue_freeze(&catalogue, &image);
    step(&model, &catalogue, 300);
    model_assert_same(&catalogue, &model);
    wal__catalogue_deinit(&image);
    model_assert_same(&catalogue, &model);
    bytes = model_write(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
    assert_ok(model_attach(&catalogue, bytes, model_uuid));
    model_assert_same(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

/* The same sessions in the same order, whatever replaced the layers. */
TEST(catalogue_fold__open_iterator_keeps_its_order)
{
    static struct model model;
    static struct model then;

    for (int round = 0; round < 60; round++) {
        const struct model_filter *filter =
            &model_filters[(size_t)round % MODEL_FILTERS];
        const struct model_session *wanted[MODEL_SESSIONS];
        struct wal__catalogue catalogue;
        struct wal__catalogue image;
        struct wal__catalogue_iter cursor;
        struct wal__summary summary;
        struct wal__span bytes;
        uint32_t count;

        model_begin(&model, &catalogue, &wal__heap_libc, 300);
        bytes = model_swap_snapshot(&catalogue, &model);
        step(&model, &catalogue, 30);
        if (round % 3 == 0) {
            freeze(&catalogue, &model, &image);
            step(&model, &catalogue, 10);
        }
        then = model;
        count = model_list(&then, filter, wanted);
        assert_ok(model_begin_list(&cursor, &catalogue, filter));
        for (uint32_t i = 0; i < count; i++) {
            const struct model_session *now =
                &model.sessions[wanted[i] - then.sessions];

            model_step(&model, &catalogue);
            if (round % 3 != 0 && i == count / 3) {
                freeze(&catalogue, &model, &image);
            }
            model_step(&model, &catalogue);
            if (i == count / 2) {
                wal__catalogue_adopt(&catalogue, write_image(&image));
                wal__catalogue_deinit(&image);
            }
            if (model_is_deleted(now) || now->is_omitted ||
                now->numbers.number != wanted[i]->numbers.number) {
                continue;
            }
            assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
            assert_int_equal(cursor.key.number, wanted[i]->numbers.number);
            assert_int_equal(cursor.key.sequence,
                             wanted[i]->numbers.last_sequence);
            assert_true(model_equals(&summary, now));
        }
        assert_int_equal(
            wal__catalogue_iter_next(&cursor, &catalogue, &summary), WAL_END);
        if (count == 0 && round % 3 == 0) {
            wal__catalogue_deinit(&image);
        }
        wal__catalogue_iter_deinit(&cursor);
        wal__catalogue_deinit(&catalogue);
        model_free(bytes);
    }
}

/* A session that the adopted snapshot omits is skipped by an iterator that has
 * yet to reach it. */
TEST(catalogue_fold__omitted_session_is_skipped)
{
    struct wal__catalogue catalogue;
    struct wal__catalogue image;
    struct wal__catalogue_filter all = {.changed_after = 0};
    struct wal__catalogue_iter cursor;
    struct wal__summary summary;
    struct wal__span bytes;

    for (int in_snapshot = 0; in_snapshot < 2; in_snapshot++) {
        wal__catalogue_init(&catalogue, &wal__heap_libc);
        assert_ok(model_put(&catalogue, 1, "a"));
        assert_ok(model_put(&catalogue, 2, "b"));
        assert_ok(model_put(&catalogue, 3, "c"));
        bytes = in_snapshot != 0 ? model_swap_snapshot(&catalogue, NULL)
                                 : (struct wal__span){NULL, 0};
        assert_ok(wal__catalogue_iter_init(&cursor, &catalogue, &all));
        assert_ok(wal__catalogue_get(&catalogue, 2, &summary));
        summary.flags |= WAL__SUMMARY_DELETED;
        assert_ok(wal__catalogue_put(&catalogue, &summary));
        wal__catalogue_freeze(&catalogue, &image);
        wal__catalogue_adopt(&catalogue, write_image(&image));
        wal__catalogue_deinit(&image);
        assert_int_equal(wal__catalogue_get(&catalogue, 2, &summary),
                         WAL_ENOTFOUND);
        for (uint32_t number = 3; number < 4; number -= 2) {
            assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
            assert_int_equal(summary.number, number);
        }
        assert_int_equal(
            wal__catalogue_iter_next(&cursor, &catalogue, &summary), WAL_END);
        wal__catalogue_iter_deinit(&cursor);
        assert_int_equal(catalogue.visible_count, 2);
        wal__catalogue_deinit(&catalogue);
        model_free(bytes);
    }
}

/* An image is written by a thread without a lock. */
struct writer {
    struct wal__catalogue image;
    struct wal__snapshot *snapshot;
};

static void *write_in_thread(void *ctx)
{
    struct writer *writer = ctx;

    writer->snapshot = write_image(&writer->image);
    wal__catalogue_deinit(&writer->image);
    return NULL;
}

TEST(catalogue_fold__image_is_written_while_records_come)
{
    static struct model model;
    struct wal__catalogue catalogue;

    model_begin(&model, &catalogue, &wal__heap_libc, 0);
    for (int round = 0; round < 20; round++) {
        struct writer writer = {.snapshot = NULL};
        pthread_t thread;

        step(&model, &catalogue, 200);
        freeze(&catalogue, &model, &writer.image);
        assert_int_equal(
            pthread_create(&thread, NULL, write_in_thread, &writer), 0);
        step(&model, &catalogue, 200);
        assert_int_equal(pthread_join(thread, NULL), 0);
        wal__catalogue_adopt(&catalogue, writer.snapshot);
        model_assert_same(&catalogue, &model);
    }
    wal__catalogue_deinit(&catalogue);
}

TEST_FILE(model_set_up, NULL, NULL);
