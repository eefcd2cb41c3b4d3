/*
 * test_catalogue.c - tests of engine/store/catalogue against a naive model: records,
 * contradictions, failing allocations; walking it while it changes, from a place on, without the
 * hidden; its snapshots: written, adopted, overlaid, rewritten, replaced while in use, damaged in
 * every bit, read by several threads. AGENTWAL_SEED sets the seed.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/catalogue_model.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"

TEST(catalogue__random_records_agree_with_the_model)
{
    static struct model model;
    struct wal__catalogue catalogue;

    model_begin(&model, &catalogue, &wal__heap_libc, 0);
    model_assert_same(&catalogue, &model);
    for (int i = 0; i < 3000; i++) {
        model_step(&model, &catalogue);
        if (i % 50 == 0) {
            model_assert_same(&catalogue, &model);
        }
    }
    model_assert_same(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
}

static enum wal_status apply_raw(struct wal__catalogue *catalogue, uint8_t type, uint32_t session,
                                 uint8_t flags, struct wal__span payload)
{
    struct wal__frame frame = {
        .type = type,
        .flags = flags,
        .session = session,
        .sequence = 9000000,
        .stored_size = (uint32_t)payload.size,
    };
    struct wal__log_record applied = {
        .frame = &frame,
        .payload = payload,
        .position = 1 << 27,
        .clock_ms = 5,
        .version = WAL__FORMAT_VERSION,
    };

    return wal__catalogue_apply(catalogue, &applied);
}

TEST(catalogue__contradicting_record_is_corrupt)
{
    static const uint8_t types[] = {WAL__FRAME_ENTRY,     WAL__FRAME_FORK,       WAL__FRAME_HEAD,
                                    WAL__FRAME_DOC,       WAL__FRAME_DOC_DELETE, WAL__FRAME_REDACT,
                                    WAL__FRAME_TOMBSTONE, WAL__FRAME_ACCEPT,     200};
    static struct model model;
    struct wal__catalogue catalogue;
    struct wal__span garbage = model_span("no record is like this one");
    struct wal__span none = {NULL, 0};
    uint32_t number;

    model_begin(&model, &catalogue, &wal__heap_libc, 300);
    number = model.sessions[0].numbers.number;
    for (size_t i = 0; i < sizeof(types); i++) {
        assert_int_equal(apply_raw(&catalogue, types[i], model.last_session + 1, 0, none),
                         WAL_ECORRUPT);
    }
    assert_int_equal(apply_raw(&catalogue, WAL__FRAME_ENTRY, 0, 0, none), WAL_ECORRUPT);
    assert_int_equal(apply_raw(&catalogue, WAL__FRAME_SESSION, number, 0, garbage), WAL_ECORRUPT);
    assert_int_equal(apply_raw(&catalogue, WAL__FRAME_FORK, number, 0, garbage), WAL_ECORRUPT);
    assert_int_equal(apply_raw(&catalogue, WAL__FRAME_HEAD, number, 0, garbage), WAL_ECORRUPT);
    assert_int_equal(
        apply_raw(&catalogue, WAL__FRAME_ENTRY, number, WAL__FRAME_MOVES_HEAD, garbage),
        WAL_ECORRUPT);
    model_assert_same(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
}

TEST(catalogue__fork_of_an_unknown_source_or_owner_is_corrupt)
{
    static struct model model;
    struct wal__catalogue catalogue;
    uint8_t payload[MODEL_PAYLOAD_SIZE];
    struct wal__fork_record fork = {
        .source_id = model_span("any"),
        .owner_id = model_span("some"),
        .entry_id = model_span("fork-point"),
    };
    uint32_t number;
    uint32_t known;

    model_begin(&model, &catalogue, &wal__heap_libc, 400);
    assert_true(model.count > 1 && model.store.numbers.number != 0);
    number = model.sessions[0].numbers.number;
    known = model.sessions[1].numbers.number;

    const uint32_t wrong[] = {model.last_session + 1, number, WAL__STORE_NUMBER};

    for (size_t i = 0; i < 2 * sizeof(wrong) / sizeof(wrong[0]); i++) {
        fork.owner = i % 2 == 0 ? wrong[i / 2] : known;
        fork.source = i % 2 == 0 ? known : wrong[i / 2];
        wal__fork_record_encode(&fork, payload);
        assert_int_equal(apply_raw(&catalogue, WAL__FRAME_FORK, number, 0,
                                   (struct wal__span){payload, wal__fork_record_size(&fork)}),
                         WAL_ECORRUPT);
    }
    model_assert_same(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
}

TEST(catalogue__record_of_no_session_is_ignored)
{
    static const uint8_t types[] = {WAL__FRAME_OPEN, WAL__FRAME_COMMIT, WAL__FRAME_INDEX,
                                    WAL__FRAME_SEAL, 200};
    static struct model model;
    struct wal__catalogue catalogue;

    model_begin(&model, &catalogue, &wal__heap_libc, 50);
    for (size_t i = 0; i < sizeof(types); i++) {
        assert_ok(apply_raw(&catalogue, types[i], 0, 0, model_span("")));
    }
    model_assert_same(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
}

TEST(catalogue__failed_allocation_of_apply_changes_nothing)
{
    static struct model model;
    static struct model before;
    struct faulty_heap heap;
    struct wal__catalogue catalogue;
    uint64_t failures = 0;

    faulty_heap_init(&heap, &wal__heap_libc);
    model_begin(&model, &catalogue, &heap.heap, 0);
    for (int i = 0; i < 300; i++) {
        struct model_record record;
        uint64_t nth = 1;

        before = model;
        model_make_record(&model, &record);
        faulty_heap_fail(&heap, nth, false);
        while (wal__catalogue_apply(&catalogue, &record.applied) == WAL_ENOMEM) {
            failures++;
            faulty_heap_fail(&heap, 0, false);
            model_assert_same(&catalogue, &before);
            faulty_heap_fail(&heap, ++nth, false);
        }
        faulty_heap_fail(&heap, 0, false);
        assert_ok(model_check(&catalogue, &model));
    }
    assert_true(failures > 50);
    wal__catalogue_deinit(&catalogue);
    assert_int_equal(heap.live, 0);
}

/* Bytes on the heap that a snapshot frees with its last release. */
static void free_bytes(void *owner)
{
    free(test_forget(owner));
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

static void step(struct model *model, struct wal__catalogue *catalogue, uint32_t count)
{
    while (count-- > 0) {
        model_step(model, catalogue);
    }
}

/* Freezes the catalogue. The model forgets at once what the next snapshot omits: no record of such
 * a session follows in a log. */
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
        /* Records since the freeze change neither the image nor what it is written to. */
        snapshot = write_image(&image);
        step(&model, &catalogue, model_random_below(20));
        wal__catalogue_adopt(&catalogue, snapshot);
        wal__catalogue_deinit(&image);
        model_assert_same(&catalogue, &model);
    }
    wal__catalogue_deinit(&catalogue);
    assert_int_equal(heap.live, 0);
}

/* A layer that could not be written stays, and is written together with what came after it. */
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
}

/* The same sessions in the same order, whatever replaced the layers. */
TEST(catalogue_fold__open_iterator_keeps_its_order)
{
    static struct model model;
    static struct model then;

    for (int round = 0; round < 60; round++) {
        const struct model_filter *filter = &model_filters[(size_t)round % MODEL_FILTERS];
        const struct model_session *wanted[MODEL_SESSIONS];
        struct wal__catalogue catalogue;
        struct wal__catalogue image;
        struct wal__catalogue_iter cursor;
        struct wal__summary summary;
        uint32_t count;

        model_begin(&model, &catalogue, &wal__heap_libc, 300);
        (void)model_swap_snapshot(&catalogue, &model);
        step(&model, &catalogue, 30);
        if (round % 3 == 0) {
            freeze(&catalogue, &model, &image);
            step(&model, &catalogue, 10);
        }
        then = model;
        count = model_list(&then, filter, wanted);
        assert_ok(model_begin_list(&cursor, &catalogue, filter));
        for (uint32_t i = 0; i < count; i++) {
            const struct model_session *now = &model.sessions[wanted[i] - then.sessions];

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
            assert_int_equal(cursor.key.sequence, wanted[i]->numbers.last_sequence);
            assert_true(model_equals(&summary, now));
        }
        assert_int_equal(wal__catalogue_iter_next(&cursor, &catalogue, &summary), WAL_END);
        if (count == 0 && round % 3 == 0) {
            wal__catalogue_deinit(&image);
        }
        wal__catalogue_iter_deinit(&cursor);
        wal__catalogue_deinit(&catalogue);
    }
}

/* A session that the adopted snapshot omits is skipped by an iterator that has yet to reach it. */
TEST(catalogue_fold__omitted_session_is_skipped)
{
    struct wal__catalogue catalogue;
    struct wal__catalogue image;
    struct wal__catalogue_filter all = {.changed_after = 0};
    struct wal__catalogue_iter cursor;
    struct wal__summary summary;

    for (int in_snapshot = 0; in_snapshot < 2; in_snapshot++) {
        wal__catalogue_init(&catalogue, &wal__heap_libc);
        assert_ok(model_put(&catalogue, 1, "a"));
        assert_ok(model_put(&catalogue, 2, "b"));
        assert_ok(model_put(&catalogue, 3, "c"));
        if (in_snapshot != 0) {
            (void)model_swap_snapshot(&catalogue, NULL);
        }
        assert_ok(wal__catalogue_iter_init(&cursor, &catalogue, &all));
        assert_ok(wal__catalogue_get(&catalogue, 2, &summary));
        summary.flags |= WAL__SUMMARY_DELETED;
        assert_ok(wal__catalogue_put(&catalogue, &summary));
        wal__catalogue_freeze(&catalogue, &image);
        wal__catalogue_adopt(&catalogue, write_image(&image));
        wal__catalogue_deinit(&image);
        assert_int_equal(wal__catalogue_get(&catalogue, 2, &summary), WAL_ENOTFOUND);
        for (uint32_t number = 3; number < 4; number -= 2) {
            assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
            assert_int_equal(summary.number, number);
        }
        assert_int_equal(wal__catalogue_iter_next(&cursor, &catalogue, &summary), WAL_END);
        wal__catalogue_iter_deinit(&cursor);
        assert_int_equal(catalogue.visible_count, 2);
        wal__catalogue_deinit(&catalogue);
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
        assert_int_equal(pthread_create(&thread, NULL, write_in_thread, &writer), 0);
        step(&model, &catalogue, 200);
        assert_int_equal(pthread_join(thread, NULL), 0);
        wal__catalogue_adopt(&catalogue, writer.snapshot);
        model_assert_same(&catalogue, &model);
    }
    wal__catalogue_deinit(&catalogue);
}

TEST(catalogue_list__is_a_snapshot_of_its_init)
{
    static struct model model;
    static struct model then;

    for (int round = 0; round < 60; round++) {
        const struct model_filter *filter = &model_filters[(size_t)round % MODEL_FILTERS];
        const struct model_session *wanted[MODEL_SESSIONS];
        struct wal__catalogue catalogue;
        struct wal__catalogue_iter cursor;
        struct wal__summary summary;
        uint32_t count;

        model_begin(&model, &catalogue, &wal__heap_libc, 300);
        (void)model_swap_snapshot(&catalogue, &model);
        for (int i = 0; i < 30; i++) {
            model_step(&model, &catalogue);
        }
        then = model;
        count = model_list(&then, filter, wanted);
        assert_ok(model_begin_list(&cursor, &catalogue, filter));
        for (uint32_t i = 0; i < count; i++) {
            const struct model_session *now = &model.sessions[wanted[i] - then.sessions];

            model_step(&model, &catalogue);
            if (model_is_deleted(now)) {
                continue;
            }
            assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
            assert_int_equal(cursor.key.number, wanted[i]->numbers.number);
            assert_int_equal(cursor.key.sequence, wanted[i]->numbers.last_sequence);
            assert_true(model_equals(&summary, now));
        }
        for (int i = 0; i < 3; i++) {
            model_step(&model, &catalogue);
            assert_int_equal(wal__catalogue_iter_next(&cursor, &catalogue, &summary), WAL_END);
        }
        wal__catalogue_iter_deinit(&cursor);
        wal__catalogue_deinit(&catalogue);
    }
}

static struct wal__list_key place_of(const struct model_session *session)
{
    return (struct wal__list_key){session->numbers.updated_ms, session->numbers.last_sequence,
                                  session->numbers.number};
}

/* The items after a position are the rest of the list, to the end. */
static void assert_rest(const struct wal__catalogue *catalogue, const struct model_filter *texts,
                        struct wal__list_key after, const struct model_session **rest,
                        uint32_t count)
{
    struct wal__catalogue_filter filter = {
        .cwd = model_span(texts->cwd),
        .project = model_span(texts->project),
        .prefix = model_span(texts->prefix),
        .source = model_span(texts->source),
        .parent_id = model_span(texts->parent_id),
        .after = after,
        .changed_after = texts->changed_after,
        .recorded_after = texts->recorded_after,
    };
    struct wal__catalogue_iter cursor;
    struct wal__summary summary;

    assert_ok(wal__catalogue_iter_init(&cursor, catalogue, &filter));
    for (uint32_t i = 0; i < count; i++) {
        assert_ok(wal__catalogue_iter_next(&cursor, catalogue, &summary));
        assert_true(model_equals(&summary, rest[i]));
    }
    assert_int_equal(wal__catalogue_iter_next(&cursor, catalogue, &summary), WAL_END);
    wal__catalogue_iter_deinit(&cursor);
}

TEST(catalogue_list__continues_after_every_position)
{
    static struct model model;

    for (int round = 0; round < 40; round++) {
        const struct model_filter *filter = &model_filters[(size_t)round % MODEL_FILTERS];
        const struct model_session *wanted[MODEL_SESSIONS];
        struct wal__catalogue catalogue;
        uint32_t count;

        model_begin(&model, &catalogue, &wal__heap_libc, 300);
        (void)model_swap_snapshot(&catalogue, &model);
        for (int i = 0; i < 30; i++) {
            if (round % 2 == 0 && i % 15 == 0) {
                assert_ok(wal__catalogue_index_sources(&catalogue));
            }
            model_step(&model, &catalogue);
        }
        if (round % 4 == 0) {
            assert_ok(wal__catalogue_index_sources(&catalogue));
        }
        count = model_list(&model, filter, wanted);
        for (uint32_t i = 0; i < count; i++) {
            struct wal__list_key place = place_of(wanted[i]);

            assert_rest(&catalogue, filter, place, &wanted[i + 1], count - i - 1);
            /* Where a session was that has moved away since. */
            place.sequence++;
            place.number = UINT32_MAX;
            assert_rest(&catalogue, filter, place, &wanted[i], count - i);
        }
        wal__catalogue_deinit(&catalogue);
    }
}

static uint32_t count_pages_read(const struct wal__catalogue *catalogue)
{
    const struct wal__snapshot *snapshot = catalogue->snapshot;
    uint32_t count = 0;

    for (uint64_t i = 0; i < snapshot->layout.table / 4096 / 8 + 1; i++) {
        count += (uint32_t)__builtin_popcount(snapshot->verified[i]);
    }
    return count;
}

/* The pages before a place are searched through, never walked. */
TEST(catalogue_list__last_page_reads_few_pages)
{
    enum { COUNT = 20000, PAGE_BITS = 64 };
    struct wal__catalogue catalogue;
    struct wal__catalogue_iter cursor;
    struct wal__catalogue_filter filter = {.after = {0, 1000011, 11}};
    struct wal__summary summary;
    char id[16];

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    for (uint32_t number = 1; number <= COUNT; number++) {
        sprintf(id, "s%u", number);
        assert_ok(model_put(&catalogue, number, id));
    }
    (void)model_swap_snapshot(&catalogue, NULL);
    assert_ok(wal__catalogue_iter_init(&cursor, &catalogue, &filter));
    for (uint32_t number = 10; number > 0; number--) {
        assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
        assert_int_equal(summary.number, number);
    }
    assert_int_equal(wal__catalogue_iter_next(&cursor, &catalogue, &summary), WAL_END);
    assert_in_range(count_pages_read(&catalogue), 3, PAGE_BITS);
    assert_true(catalogue.snapshot->layout.table / 4096 > 10 * PAGE_BITS);
    wal__catalogue_iter_deinit(&cursor);
    wal__catalogue_deinit(&catalogue);
}

static void put_with_source(struct wal__catalogue *catalogue, uint32_t number, uint32_t flags)
{
    char id[16];
    char source[16];
    struct wal__summary summary = {.number = number, .flags = flags, .last_sequence = number};

    sprintf(id, "s%u", number);
    sprintf(source, "file-%u", number / 2);
    summary.id = model_span(id);
    summary.source = model_span(source);
    assert_ok(wal__catalogue_put(catalogue, &summary));
}

/* Once the sources are indexed, only the sessions of one are read, also those that were created
 * since. */
TEST(catalogue_list__source_reads_its_sessions_alone)
{
    enum { COUNT = 20001 };
    struct wal__catalogue catalogue;
    struct wal__catalogue_iter cursor;
    const struct wal__catalogue_filter filter = {.source = model_span("file-10000")};
    struct wal__summary summary;

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    for (uint32_t number = 1; number < COUNT; number++) {
        put_with_source(&catalogue, number, 0);
    }
    (void)model_swap_snapshot(&catalogue, NULL);
    assert_ok(wal__catalogue_index_sources(&catalogue));
    put_with_source(&catalogue, COUNT, 0);
    assert_ok(wal__catalogue_index_sources(&catalogue));
    memset(catalogue.snapshot->verified, 0, catalogue.snapshot->layout.table / 4096 / 8 + 1);
    assert_ok(wal__catalogue_iter_init(&cursor, &catalogue, &filter));
    for (uint32_t number = COUNT; number > COUNT - 2; number--) {
        assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
        assert_int_equal(summary.number, number);
    }
    assert_int_equal(wal__catalogue_iter_next(&cursor, &catalogue, &summary), WAL_END);
    assert_in_range(count_pages_read(&catalogue), 1, 8);
    wal__catalogue_iter_deinit(&cursor);
    put_with_source(&catalogue, COUNT, WAL__SUMMARY_DELETED);
    assert_ok(wal__catalogue_iter_init(&cursor, &catalogue, &filter));
    assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
    assert_int_equal(summary.number, COUNT - 1);
    wal__catalogue_iter_deinit(&cursor);
    wal__catalogue_deinit(&catalogue);
}

/* A program may name itself as the source of all its sessions. */
TEST(catalogue_list__a_source_of_many_sessions_is_indexed_once)
{
    const struct wal__catalogue_filter filter = {.source = model_span("program")};
    struct wal__summary summary = {.source = model_span("program"), .id = model_span("s")};
    struct wal__catalogue_iter cursor;
    struct wal__catalogue catalogue;

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    for (uint32_t number = 1; number <= 1000; number++) {
        char id[16];

        sprintf(id, "s%u", number);
        summary.id = model_span(id);
        summary.number = number;
        summary.last_sequence = number;
        assert_ok(wal__catalogue_put(&catalogue, &summary));
        if (number % 100 == 0) {
            assert_ok(wal__catalogue_index_sources(&catalogue));
        }
    }
    assert_int_equal(catalogue.by_source.count, 1);
    assert_ok(wal__catalogue_iter_init(&cursor, &catalogue, &filter));
    for (uint32_t number = 1000; number > 0; number--) {
        assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
        assert_int_equal(summary.number, number);
    }
    assert_int_equal(wal__catalogue_iter_next(&cursor, &catalogue, &summary), WAL_END);
    wal__catalogue_iter_deinit(&cursor);
    wal__catalogue_deinit(&catalogue);
}

TEST(catalogue_snapshot__snapshots_are_overlaid_and_rewritten)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct wal__span old = {NULL, 0};

    model_begin(&model, &catalogue, &wal__heap_libc, 0);
    for (int generation = 0; generation < 40; generation++) {
        struct wal__span bytes = model_swap_snapshot(&catalogue, &model);
        uint32_t steps = model_random_below(60);

        free(test_forget(old.data));
        old = bytes;
        assert_int_equal(catalogue.snapshot->header.position, model_header.position);
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
    while (wal__catalogue_write(&catalogue, &model_header, model_sink_write, &sink) == WAL_ENOMEM) {
        sink.bytes.size = 0;
        sink.calls = 0;
        faulty_heap_fail(&heap, ++nth, false);
    }
    assert_in_range(nth, 8, 20);
    assert_memory_equal(sink.bytes.data, bytes.data, bytes.size);
    wal__buf_deinit(&sink.bytes);
    faulty_heap_fail(&heap, 1, false);
    assert_int_equal(model_begin_list(&cursor, &catalogue, &model_filters[0]), WAL_ENOMEM);
    wal__catalogue_deinit(&catalogue);
    faulty_heap_fail(&heap, 1, false);
    assert_int_equal(model_attach(&catalogue, bytes, model_uuid), WAL_ENOMEM);
    assert_ok(model_attach(&catalogue, bytes, model_uuid));
    model_assert_same(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
    assert_int_equal(heap.live, 0);
}

TEST(catalogue_snapshot__failed_put_ends_the_write)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct model_sink sink = {.fail_at = 1};

    model_begin(&model, &catalogue, &wal__heap_libc, 200);
    wal__buf_init(&sink.bytes, &wal__heap_libc);
    assert_int_equal(wal__catalogue_write(&catalogue, &model_header, model_sink_write, &sink),
                     WAL_ENOSPACE);
    assert_int_equal(sink.calls, 1);
    wal__buf_deinit(&sink.bytes);
    wal__catalogue_deinit(&catalogue);
}

/* --------------------------------------------------------------- damage --- */

/* WAL_OK when the bytes say what the model does. */
static enum wal_status check_bytes(struct wal__span bytes, const struct model *model)
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
    copy = test_memory(bytes.size);
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
        assert_int_equal(model_attach(&catalogue, (struct wal__span){cut, size}, model_uuid),
                         WAL_ECORRUPT);
        free(cut);
    }
    wal__catalogue_deinit(&catalogue);
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
}

/* A damaged page does no harm to what does not touch it, and what was read from it before stays
 * verified. */
TEST(catalogue_snapshot__damage_is_detected_on_access)
{
    static struct model model;
    struct wal__catalogue catalogue;
    struct wal__summary summary;
    struct wal__span bytes;
    uint8_t *by_cwd;

    model_begin(&model, &catalogue, &wal__heap_libc, 100);
    bytes = model_swap_snapshot(&catalogue, &model);
    by_cwd = (uint8_t *)(uintptr_t)bytes.data + catalogue.snapshot->layout.by_cwd;
    by_cwd[0] ^= 1;
    assert_ok(model_check_session(&catalogue, &model, &model.sessions[0]));
    assert_ok(model_check_list(&catalogue, &model, &model_filters[0]));
    assert_int_equal(model_check_list(&catalogue, &model, &model_filters[1]), WAL_ECORRUPT);
    assert_int_equal(wal__catalogue_find(&catalogue, model_span("none"), &summary), WAL_ENOTFOUND);
    by_cwd[0] ^= 1;
    model_assert_same(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
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
    enum { READERS = 4 };
    static struct model model;
    struct wal__catalogue catalogue;
    struct reader readers[READERS];

    model_begin(&model, &catalogue, &wal__heap_libc, 2000);
    (void)model_swap_snapshot(&catalogue, &model);
    for (int i = 0; i < READERS; i++) {
        readers[i].catalogue = &catalogue;
        readers[i].model = &model;
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
        assert_ok(readers[i].status);
    }
    wal__catalogue_deinit(&catalogue);
}

/* Each page of texts but the first begins within some session's. */
TEST(catalogue_snapshot__every_page_of_a_text_is_verified)
{
    enum { COUNT = 2000 };
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
            enum wal_status status = wal__catalogue_get(&catalogue, number, &summary);

            sprintf(id, "s%u", number);
            assert_true(status == WAL_ECORRUPT ||
                        (status == WAL_OK && model_span_is(summary.id, id)));
            corrupt += status == WAL_ECORRUPT;
        }
        ((uint8_t *)(uintptr_t)bytes.data)[at] ^= 1;
    }
    assert_true(corrupt >= COUNT);
    wal__catalogue_deinit(&catalogue);
}

/* Makes every checksum right again. */
static void forge_sums(uint8_t *bytes, const struct wal__catalogue *catalogue)
{
    const struct wal__catalogue_layout *layout = &catalogue->snapshot->layout;
    struct wal__catalogue_header header = catalogue->snapshot->header;

    for (uint64_t page = 1; page < layout->table / 4096; page++) {
        wal__put32(bytes + layout->table + 4 * page, wal__crc32(0, bytes + page * 4096, 4096));
    }
    header.table_crc = wal__crc32(0, bytes + layout->table, layout->size - layout->table);
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
    assert_int_equal(model_check_list(&catalogue, &model, &model_filters[0]), WAL_ECORRUPT);
    assert_int_equal(model_check(&catalogue, &model), WAL_ECORRUPT);
    wal__catalogue_deinit(&catalogue);
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
    wal__put32(forged + catalogue.snapshot->layout.summaries + WAL__SUMMARY_SIZE,
               model.sessions[0].numbers.number);
    forge_sums(forged, &catalogue);
    wal__catalogue_deinit(&catalogue);
    assert_ok(model_attach(&catalogue, bytes, model_uuid));
    assert_int_equal(wal__catalogue_write(&catalogue, &model_header, model_sink_write, &sink),
                     WAL_ECORRUPT);
    assert_int_equal(sink.calls, 0);
    wal__catalogue_deinit(&catalogue);
}

/* What is newest of a cwd costs the same whatever else there is. */
TEST(catalogue_snapshot__cwd_list_reads_only_its_cwd)
{
    static struct model model;
    const struct model_session *wanted[MODEL_SESSIONS];
    struct wal__catalogue catalogue;
    struct wal__catalogue_iter cursor;
    struct wal__summary summary;
    uint32_t begun;
    uint32_t count;
    uint32_t deleted = 0;

    model_begin(&model, &catalogue, &wal__heap_libc, 1000);
    (void)model_swap_snapshot(&catalogue, &model);
    count = model_list(&model, &model_filters[1], wanted);
    for (uint32_t i = 0; i < model.count; i++) {
        deleted += model_is_deleted(&model.sessions[i]) && !model.sessions[i].is_omitted &&
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
}

TEST_FILE(model_set_up, NULL, NULL);
