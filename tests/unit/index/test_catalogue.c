/*
 * test_catalogue.c - tests of engine/store/catalogue against a naive model:
 * records, contradictions, failing allocations. AGENTWAL_SEED sets the seed.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

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

static void assert_contradictions(struct wal__catalogue *catalogue)
{
    struct wal__summary summary;

    assert_int_equal(model_put(catalogue, 7, "other"), WAL_ECORRUPT);
    assert_int_equal(model_put(catalogue, 8, "seven"), WAL_ECORRUPT);
    assert_int_equal(model_put(catalogue, 0, "zero"), WAL_ECORRUPT);
    assert_int_equal(model_put(catalogue, 8, ""), WAL_ECORRUPT);
    assert_int_equal(catalogue->visible_count, 1);
    assert_int_equal(catalogue->last_session, 7);
    assert_int_equal(wal__catalogue_get(catalogue, 8, &summary), WAL_ENOTFOUND);
    assert_int_equal(
        wal__catalogue_find(catalogue, model_span("other"), &summary),
        WAL_ENOTFOUND);
}

TEST(catalogue__number_and_id_stay_paired)
{
    struct wal__catalogue catalogue;
    struct wal__summary summary;
    struct wal__span bytes;

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    assert_ok(model_put(&catalogue, 7, "seven"));
    assert_contradictions(&catalogue);
    bytes = model_swap_snapshot(&catalogue, NULL);
    assert_contradictions(&catalogue);
    assert_ok(model_put(&catalogue, 7, "seven"));
    assert_contradictions(&catalogue);
    assert_ok(wal__catalogue_get(&catalogue, 7, &summary));
    assert_int_equal(summary.first_posting, 0);
    assert_int_equal(summary.posting_count, 0);
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

static enum wal_status put_indexed(struct wal__catalogue *catalogue,
                                   uint32_t number, const char *id)
{
    struct wal__summary summary = {.number = number, .id = model_span(id)};

    return wal__catalogue_put_indexed(catalogue, &summary);
}

TEST(put_indexed__present_number_keeps_its_id)
{
    struct wal__catalogue catalogue;
    struct wal__summary summary;
    struct wal__span bytes;

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    assert_ok(model_put(&catalogue, 7, "seven"));
    bytes = model_swap_snapshot(&catalogue, NULL);
    assert_int_equal(put_indexed(&catalogue, 7, "other"), WAL_ECORRUPT);
    assert_int_equal(put_indexed(&catalogue, 0, "zero"), WAL_ECORRUPT);
    assert_int_equal(put_indexed(&catalogue, 8, ""), WAL_ECORRUPT);
    assert_int_equal(put_indexed(&catalogue, WAL__STORE_NUMBER, "eight"),
                     WAL_ECORRUPT);
    assert_int_equal(catalogue.visible_count, 1);
    assert_ok(put_indexed(&catalogue, 7, "seven"));
    assert_int_equal(catalogue.visible_count, 1);
    assert_ok(put_indexed(&catalogue, 8, "eight"));
    assert_int_equal(put_indexed(&catalogue, 8, "other"), WAL_ECORRUPT);
    assert_int_equal(catalogue.visible_count, 2);
    assert_int_equal(catalogue.last_session, 8);
    assert_ok(wal__catalogue_find(&catalogue, model_span("eight"), &summary));
    assert_int_equal(summary.number, 8);
    wal__catalogue_deinit(&catalogue);
    model_free(bytes);
}

/* What was got may be changed and put, though its texts are the slot's. */
TEST(catalogue__put_accepts_texts_of_the_catalogue)
{
    static const char long_id[] =
        "a head's id that is longer than any room which is left for one";
    struct wal__catalogue catalogue;
    struct wal__summary summary;

    wal__catalogue_init(&catalogue, &wal__heap_libc);
    assert_ok(model_put(&catalogue, 1, "one"));
    assert_ok(wal__catalogue_get(&catalogue, 1, &summary));
    summary.title = model_span("title");
    summary.head_id = model_span("head");
    assert_ok(wal__catalogue_put(&catalogue, &summary));
    assert_ok(wal__catalogue_get(&catalogue, 1, &summary));
    summary.cwd = summary.title;
    summary.title = summary.id;
    summary.source = summary.head_id;
    assert_ok(wal__catalogue_put(&catalogue, &summary));
    assert_ok(wal__catalogue_get(&catalogue, 1, &summary));
    summary.head_id = summary.cwd;
    assert_ok(wal__catalogue_put(&catalogue, &summary));
    assert_ok(wal__catalogue_get(&catalogue, 1, &summary));
    assert_true(model_span_is(summary.cwd, "title"));
    assert_true(model_span_is(summary.title, "one"));
    assert_true(model_span_is(summary.source, "head"));
    assert_true(model_span_is(summary.head_id, "title"));
    summary.head_id = model_span(long_id);
    assert_ok(wal__catalogue_put(&catalogue, &summary));
    assert_ok(wal__catalogue_get(&catalogue, 1, &summary));
    assert_true(model_span_is(summary.head_id, long_id));
    assert_true(model_span_is(summary.id, "one"));
    wal__catalogue_deinit(&catalogue);
}

static enum wal_status apply_raw(struct wal__catalogue *catalogue, uint8_t type,
                                 uint32_t session, uint8_t flags,
                                 struct wal__span payload)
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
    static const uint8_t types[] = {
        WAL__FRAME_ENTRY,     WAL__FRAME_FORK,       WAL__FRAME_HEAD,
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
        assert_int_equal(
            apply_raw(&catalogue, types[i], model.last_session + 1, 0, none),
            WAL_ECORRUPT);
    }
    assert_int_equal(apply_raw(&catalogue, WAL__FRAME_ENTRY, 0, 0, none),
                     WAL_ECORRUPT);
    assert_int_equal(
        apply_raw(&catalogue, WAL__FRAME_SESSION, number, 0, garbage),
        WAL_ECORRUPT);
    assert_int_equal(apply_raw(&catalogue, WAL__FRAME_FORK, number, 0, garbage),
                     WAL_ECORRUPT);
    assert_int_equal(apply_raw(&catalogue, WAL__FRAME_HEAD, number, 0, garbage),
                     WAL_ECORRUPT);
    assert_int_equal(apply_raw(&catalogue, WAL__FRAME_ENTRY, number,
                               WAL__FRAME_MOVES_HEAD, garbage),
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

    const uint32_t wrong[] = {model.last_session + 1, number,
                              WAL__STORE_NUMBER};

    for (size_t i = 0; i < 2 * sizeof(wrong) / sizeof(wrong[0]); i++) {
        fork.owner = i % 2 == 0 ? wrong[i / 2] : known;
        fork.source = i % 2 == 0 ? known : wrong[i / 2];
        wal__fork_record_encode(&fork, payload);
        assert_int_equal(apply_raw(&catalogue, WAL__FRAME_FORK, number, 0,
                                   (struct wal__span){
                                       payload, wal__fork_record_size(&fork)}),
                         WAL_ECORRUPT);
    }
    model_assert_same(&catalogue, &model);
    wal__catalogue_deinit(&catalogue);
}

TEST(catalogue__record_of_no_session_is_ignored)
{
    static const uint8_t types[] = {WAL__FRAME_OPEN, WAL__FRAME_COMMIT,
                                    WAL__FRAME_INDEX, WAL__FRAME_SEAL, 200};
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
        while (wal__catalogue_apply(&catalogue, &record.applied) ==
               WAL_ENOMEM) {
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

TEST_FILE(model_set_up, NULL, NULL);
