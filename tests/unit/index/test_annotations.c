/*
 * test_annotations.c - tests of the annotations of a session: deltas,
 * redactions, named heads.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/store/branch.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"

static void add(struct wal__annotations *annotations, uint8_t type,
                uint8_t kind, uint64_t sequence, uint64_t parent)
{
    struct wal__posting posting = {
        .type = type, .kind = kind, .sequence = sequence, .parent = parent};

    assert_ok(wal__annotations_add(annotations, &posting, sequence * 100));
}

static void delta(struct wal__annotations *annotations, uint64_t sequence)
{
    add(annotations, WAL__FRAME_ENTRY, WAL__KIND_MESSAGE_DELTA_BATCH, sequence,
        0);
}

static void redact(struct wal__annotations *annotations, uint64_t sequence,
                   uint64_t target)
{
    add(annotations, WAL__FRAME_REDACT, 0, sequence, target);
}

static void head(struct wal__annotations *annotations, uint64_t name,
                 uint8_t stream, uint64_t sequence, uint64_t target)
{
    struct wal__posting posting = {.type = WAL__FRAME_HEAD,
                                   .stream = stream,
                                   .id_hash = name,
                                   .sequence = sequence,
                                   .parent = target};

    assert_ok(wal__annotations_add(annotations, &posting, sequence * 100));
}

TEST(marks__of_no_records)
{
    struct wal__annotations annotations;

    wal__annotations_init(&annotations, &wal__heap_libc);
    assert_false(wal__annotations_is_delta(&annotations, 1));
    assert_null(wal__annotations_find_redaction(&annotations, 1));
    assert_null(wal__annotations_find_head(&annotations, 0, 1));
    assert_int_equal(wal__annotations_next_delta(&annotations, 0), UINT64_MAX);
    assert_int_equal(wal__annotations_next_redacted(&annotations, 0),
                     UINT64_MAX);
    wal__annotations_deinit(&annotations);
    wal__annotations_deinit(&annotations);
    annotations = (struct wal__annotations){0};
    wal__annotations_deinit(&annotations);
}

TEST(marks__other_records_are_ignored)
{
    static const uint8_t types[] = {WAL__FRAME_SESSION,   WAL__FRAME_FORK,
                                    WAL__FRAME_DOC,       WAL__FRAME_DOC_DELETE,
                                    WAL__FRAME_TOMBSTONE, WAL__FRAME_ACCEPT};
    struct wal__annotations annotations;

    wal__annotations_init(&annotations, &wal__heap_libc);
    for (uint64_t i = 0; i < sizeof(types); i++) {
        add(&annotations, types[i], WAL__KIND_MESSAGE_DELTA_BATCH, i + 5, 2);
    }
    add(&annotations, WAL__FRAME_ENTRY, WAL__KIND_MESSAGE, 20, 2);
    add(&annotations, WAL__FRAME_ENTRY, WAL__KIND_REDACTION, 21, 2);
    assert_int_equal(annotations.delta_count, 0);
    assert_int_equal(annotations.redaction_count, 0);
    assert_int_equal(annotations.head_count, 0);
    wal__annotations_deinit(&annotations);
}

TEST(marks__deltas_are_found_by_sequence)
{
    struct wal__annotations annotations;

    wal__annotations_init(&annotations, &wal__heap_libc);
    for (uint64_t i = 1; i <= 100; i++) {
        delta(&annotations, i * 3);
    }
    for (uint64_t i = 0; i <= 300; i++) {
        assert_int_equal(wal__annotations_is_delta(&annotations, i),
                         i % 3 == 0 && i > 0);
        assert_int_equal(wal__annotations_next_delta(&annotations, i),
                         i == 0 ? 3 : (i + 2) / 3 * 3);
    }
    assert_int_equal(wal__annotations_next_delta(&annotations, 301),
                     UINT64_MAX);
    assert_int_equal(wal__annotations_next_redacted(&annotations, 1),
                     UINT64_MAX);
    wal__annotations_deinit(&annotations);
}

TEST(marks__redactions_in_any_order_of_targets)
{
    struct wal__annotations annotations;
    const struct wal__redaction *found;

    wal__annotations_init(&annotations, &wal__heap_libc);
    for (uint64_t i = 0; i < 100; i++) {
        redact(&annotations, 1000 + i, 2 + i * 37 % 101 * 2);
    }
    for (uint64_t i = 0; i < 100; i++) {
        found =
            wal__annotations_find_redaction(&annotations, 2 + i * 37 % 101 * 2);
        assert_non_null(found);
        assert_int_equal(found->position, (1000 + i) * 100);
        assert_null(wal__annotations_find_redaction(&annotations, 3 + i * 2));
    }
    for (uint32_t i = 1; i < annotations.redaction_count; i++) {
        assert_true(annotations.redactions[i - 1].target <
                    annotations.redactions[i].target);
    }
    assert_int_equal(annotations.redaction_count, 100);
    assert_int_equal(wal__annotations_next_redacted(&annotations, 0), 2);
    assert_int_equal(wal__annotations_next_redacted(&annotations, 3), 4);
    assert_int_equal(wal__annotations_next_redacted(&annotations, 4), 4);
    assert_int_equal(wal__annotations_next_redacted(&annotations, 203),
                     UINT64_MAX);
    wal__annotations_deinit(&annotations);
}

TEST(marks__first_redaction_of_an_entry_is_returned)
{
    struct wal__annotations annotations;

    wal__annotations_init(&annotations, &wal__heap_libc);
    redact(&annotations, 10, 4);
    redact(&annotations, 11, 2);
    redact(&annotations, 12, 4);
    assert_int_equal(annotations.redaction_count, 2);
    assert_int_equal(wal__annotations_find_redaction(&annotations, 4)->position,
                     1000);
    wal__annotations_deinit(&annotations);
}

TEST(marks__last_record_of_a_head_counts)
{
    struct wal__annotations annotations;
    const struct wal__named_head *found;

    wal__annotations_init(&annotations, &wal__heap_libc);
    head(&annotations, 77, 0, 10, 3);
    head(&annotations, 77, 1, 11, 4);
    head(&annotations, 78, 0, 12, 5);
    head(&annotations, 77, 0, 13, 6);
    found = wal__annotations_find_head(&annotations, 0, 77);
    assert_int_equal(found->target, 6);
    assert_int_equal(found->version, 13);
    assert_int_equal(found->position, 1300);
    found = wal__annotations_find_head(&annotations, 1, 77);
    assert_int_equal(found->target, 4);
    assert_int_equal(found->stream, 1);
    assert_int_equal(wal__annotations_find_head(&annotations, 0, 78)->target,
                     5);
    assert_null(wal__annotations_find_head(&annotations, 2, 77));
    assert_null(wal__annotations_find_head(&annotations, 0, 79));
    assert_int_equal(annotations.head_count, 3);
    wal__annotations_deinit(&annotations);
}

TEST(marks__removed_head_is_absent_until_set_again)
{
    struct wal__annotations annotations;

    wal__annotations_init(&annotations, &wal__heap_libc);
    head(&annotations, 77, 0, 10, 3);
    head(&annotations, 78, 0, 11, 4);
    head(&annotations, 79, 0, 12, 5);
    head(&annotations, 77, 0, 13, 0);
    head(&annotations, 80, 0, 14, 0);
    assert_null(wal__annotations_find_head(&annotations, 0, 77));
    assert_null(wal__annotations_find_head(&annotations, 0, 80));
    assert_int_equal(wal__annotations_find_head(&annotations, 0, 78)->target,
                     4);
    assert_int_equal(wal__annotations_find_head(&annotations, 0, 79)->target,
                     5);
    assert_int_equal(annotations.head_count, 2);
    head(&annotations, 79, 0, 15, 0);
    head(&annotations, 78, 0, 16, 0);
    assert_int_equal(annotations.head_count, 0);
    head(&annotations, 77, 0, 17, 6);
    assert_int_equal(wal__annotations_find_head(&annotations, 0, 77)->version,
                     17);
    wal__annotations_deinit(&annotations);
}

TEST(marks__main_without_an_entry_stays)
{
    struct wal__annotations annotations;
    uint64_t name = wal__id_hash("main", 4);

    wal__annotations_init(&annotations, &wal__heap_libc);
    head(&annotations, name, 2, 10, 0);
    assert_int_equal(wal__annotations_find_head(&annotations, 2, name)->target,
                     0);
    assert_int_equal(wal__annotations_find_head(&annotations, 2, name)->version,
                     10);
    assert_null(wal__annotations_find_head(&annotations, 0, name));
    wal__annotations_deinit(&annotations);
}

/* Each kind of record, at counts where room has to be made. */
static void add_one(struct wal__annotations *annotations, uint64_t i,
                    struct faulty_heap *faulty)
{
    struct wal__posting postings[3] = {
        {.type = WAL__FRAME_ENTRY, .kind = WAL__KIND_MESSAGE_DELTA_BATCH},
        {.type = WAL__FRAME_REDACT, .parent = 1000 - i},
        {.type = WAL__FRAME_HEAD, .id_hash = i, .parent = 3}};

    for (uint64_t k = 0; k < 3; k++) {
        struct wal__annotations before = *annotations;

        postings[k].sequence = 2000 + i * 3 + k;
        faulty_heap_fail(faulty, 1, false);
        if (wal__annotations_add(annotations, &postings[k], 1) == WAL_ENOMEM) {
            assert_memory_equal(&before, annotations, sizeof(before));
            assert_ok(wal__annotations_add(annotations, &postings[k], 1));
        }
        faulty_heap_fail(faulty, 0, false);
    }
}

TEST(marks__without_memory_nothing_changes)
{
    struct faulty_heap faulty;
    struct wal__annotations annotations;

    faulty_heap_init(&faulty, &wal__heap_libc);
    wal__annotations_init(&annotations, &faulty.heap);
    for (uint64_t i = 1; i <= 40; i++) {
        add_one(&annotations, i, &faulty);
    }
    assert_int_equal(faulty.failures, 3 * 4); /* at 0, 8, 16, 32 */
    assert_int_equal(annotations.delta_count, 40);
    assert_int_equal(annotations.redaction_count, 40);
    assert_int_equal(annotations.head_count, 40);
    assert_int_equal(annotations.redactions[0].target, 960);
    wal__annotations_deinit(&annotations);
    assert_int_equal(faulty.live, 0);
}
