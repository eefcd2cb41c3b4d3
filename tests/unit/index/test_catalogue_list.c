/*
 * test_catalogue_list.c - tests of walking the catalogue against a naive
 * model: while it changes, from a place on, without the hidden.
 * AGENTWAL_SEED sets the seed.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include "tests/lib/catalogue_model.h"
#include "tests/lib/test.h"

TEST(catalogue_list__is_a_snapshot_of_its_init)
{
    static struct model model;
    static struct model then;

    for (int round = 0; round < 60; round++) {
        const struct model_filter *filter =
            &model_filters[(size_t)round % MODEL_FILTERS];
        const struct model_session *wanted[MODEL_SESSIONS];
        struct wal__catalogue catalogue;
        struct wal__catalogue_iter cursor;
        struct wal__summary summary;
        struct wal__span bytes;
        uint32_t count;

        model_begin(&model, &catalogue, &wal__heap_libc, 300);
        bytes = model_swap_snapshot(&catalogue, &model);
        for (int i = 0; i < 30; i++) {
            model_step(&model, &catalogue);
        }
        then = model;
        count = model_list(&then, filter, wanted);
        assert_ok(model_begin_list(&cursor, &catalogue, filter));
        for (uint32_t i = 0; i < count; i++) {
            const struct model_session *now =
                &model.sessions[wanted[i] - then.sessions];

            model_step(&model, &catalogue);
            if (model_is_deleted(now)) {
                continue;
            }
            assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
            assert_int_equal(cursor.key.number, wanted[i]->numbers.number);
            assert_int_equal(cursor.key.sequence,
                             wanted[i]->numbers.last_sequence);
            assert_true(model_equals(&summary, now));
        }
        for (int i = 0; i < 3; i++) {
            model_step(&model, &catalogue);
            assert_int_equal(
                wal__catalogue_iter_next(&cursor, &catalogue, &summary),
                WAL_END);
        }
        wal__catalogue_iter_deinit(&cursor);
        wal__catalogue_deinit(&catalogue);
        model_free(bytes);
    }
}

static struct wal__list_key place_of(const struct model_session *session)
{
    return (struct wal__list_key){session->numbers.updated_ms,
                                  session->numbers.last_sequence,
                                  session->numbers.number};
}

/* The items after a position are the rest of the list, to the end. */
static void assert_rest(const struct wal__catalogue *catalogue,
                        const struct model_filter *texts,
                        struct wal__list_key after,
                        const struct model_session **rest, uint32_t count)
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
    assert_int_equal(wal__catalogue_iter_next(&cursor, catalogue, &summary),
                     WAL_END);
    wal__catalogue_iter_deinit(&cursor);
}

TEST(catalogue_list__continues_after_every_position)
{
    static struct model model;

    for (int round = 0; round < 40; round++) {
        const struct model_filter *filter =
            &model_filters[(size_t)round % MODEL_FILTERS];
        const struct model_session *wanted[MODEL_SESSIONS];
        struct wal__catalogue catalogue;
        struct wal__span bytes;
        uint32_t count;

        model_begin(&model, &catalogue, &wal__heap_libc, 300);
        bytes = model_swap_snapshot(&catalogue, &model);
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

            assert_rest(&catalogue, filter, place, &wanted[i + 1],
                        count - i - 1);
            /* Where a session was that has moved away since. */
            place.sequence++;
            place.number = UINT32_MAX;
            assert_rest(&catalogue, filter, place, &wanted[i], count - i);
        }
        wal__catalogue_deinit(&catalogue);
        model_free(bytes);
    }
}

/* Sessions that lost their records have no sequence number. */
TEST(catalogue_list__equal_sequences_are_ordered_by_number)
{
    enum {
        COUNT = 20
    };
    struct wal__catalogue catalogue;
    struct wal__catalogue_filter filter;
    struct wal__span bytes = {NULL, 0};

    memset(&filter, 0, sizeof(filter));
    wal__catalogue_init(&catalogue, &wal__heap_libc);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t number = 1 + i * 7 % COUNT;
        char id[16];
        struct wal__summary summary = {.number = number};

        sprintf(id, "lost-%u", number);
        summary.id = model_span(id);
        if (i == COUNT / 2) {
            bytes = model_swap_snapshot(&catalogue, NULL);
        }
        assert_ok(wal__catalogue_put(&catalogue, &summary));
    }
    for (uint32_t from = 0; from < COUNT; from++) {
        struct wal__catalogue_iter cursor;
        struct wal__summary summary;

        filter.after.number = from;
        assert_ok(wal__catalogue_iter_init(&cursor, &catalogue, &filter));
        for (uint32_t number = from + 1; number <= COUNT; number++) {
            assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
            assert_int_equal(summary.number, number);
        }
        assert_int_equal(
            wal__catalogue_iter_next(&cursor, &catalogue, &summary), WAL_END);
        wal__catalogue_iter_deinit(&cursor);
    }
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
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
    enum {
        COUNT = 20000,
        PAGE_BITS = 64
    };
    struct wal__catalogue catalogue;
    struct wal__catalogue_iter cursor;
    struct wal__catalogue_filter filter = {.after = {0, 1000011, 11}};
    struct wal__summary summary;
    struct wal__span bytes;
    char id[16];

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    for (uint32_t number = 1; number <= COUNT; number++) {
        sprintf(id, "s%u", number);
        assert_ok(model_put(&catalogue, number, id));
    }
    bytes = model_swap_snapshot(&catalogue, NULL);
    assert_ok(wal__catalogue_iter_init(&cursor, &catalogue, &filter));
    for (uint32_t number = 10; number > 0; number--) {
        assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
        assert_int_equal(summary.number, number);
    }
    assert_int_equal(wal__catalogue_iter_next(&cursor, &catalogue, &summary),
                     WAL_END);
    assert_in_range(count_pages_read(&catalogue), 3, PAGE_BITS);
    assert_true(catalogue.snapshot->layout.table / 4096 > 10 * PAGE_BITS);
    wal__catalogue_iter_deinit(&cursor);
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

static void put_with_source(struct wal__catalogue *catalogue, uint32_t number,
                            uint32_t flags)
{
    char id[16];
    char source[16];
    struct wal__summary summary = {
        .number = number, .flags = flags, .last_sequence = number};

    sprintf(id, "s%u", number);
    sprintf(source, "file-%u", number / 2);
    summary.id = model_span(id);
    summary.source = model_span(source);
    assert_ok(wal__catalogue_put(catalogue, &summary));
}

/* Once the sources are indexed, only the sessions of one are read, also those
 * that were created since. */
TEST(catalogue_list__source_reads_its_sessions_alone)
{
    enum {
        COUNT = 20001
    };
    struct wal__catalogue catalogue;
    struct wal__catalogue_iter cursor;
    const struct wal__catalogue_filter filter = {.source =
                                                     model_span("file-10000")};
    struct wal__summary summary;
    struct wal__span bytes;

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    for (uint32_t number = 1; number < COUNT; number++) {
        put_with_source(&catalogue, number, 0);
    }
    bytes = model_swap_snapshot(&catalogue, NULL);
    assert_ok(wal__catalogue_index_sources(&catalogue));
    put_with_source(&catalogue, COUNT, 0);
    assert_ok(wal__catalogue_index_sources(&catalogue));
    memset(catalogue.snapshot->verified, 0,
           catalogue.snapshot->layout.table / 4096 / 8 + 1);
    assert_ok(wal__catalogue_iter_init(&cursor, &catalogue, &filter));
    for (uint32_t number = COUNT; number > COUNT - 2; number--) {
        assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
        assert_int_equal(summary.number, number);
    }
    assert_int_equal(wal__catalogue_iter_next(&cursor, &catalogue, &summary),
                     WAL_END);
    assert_in_range(count_pages_read(&catalogue), 1, 8);
    wal__catalogue_iter_deinit(&cursor);
    put_with_source(&catalogue, COUNT, WAL__SUMMARY_DELETED);
    assert_ok(wal__catalogue_iter_init(&cursor, &catalogue, &filter));
    assert_ok(wal__catalogue_iter_next(&cursor, &catalogue, &summary));
    assert_int_equal(summary.number, COUNT - 1);
    wal__catalogue_iter_deinit(&cursor);
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

TEST_FILE(model_set_up, NULL, NULL);
