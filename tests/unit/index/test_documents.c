/*
 * test_documents.c - tests of the order of documents by key against a naive one: prefixes,
 * documents that are added between listings, keys that cannot be read (AGENTWAL_SEED sets the
 * seed); and of the annotations of a session: deltas, redactions, named heads.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/store/branch.h"
#include "engine/store/documents.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"

enum { DOCS_MAX = 20000, KEY_SIZE = 24 };

/* The keys by rank; an empty one is unreadable. */
struct kit {
    struct wal__documents documents;
    struct faulty_heap heap;
    char (*keys)[KEY_SIZE];
    uint32_t reads;
    enum wal_status failure; /* of the next read; WAL_OK: none */
    uint32_t ranks[DOCS_MAX];
    bool readable[DOCS_MAX];
    uint32_t count;
    uint64_t random;
};

static uint32_t below(struct kit *kit, uint32_t limit)
{
    return (uint32_t)(rng_next(&kit->random) % limit);
}

static enum wal_status read_key(void *ctx, const struct wal__document *document,
                                struct wal__span *key)
{
    struct kit *kit = ctx;
    const char *text = kit->keys[document->key_hash];
    enum wal_status failure = kit->failure;

    kit->reads++;
    kit->failure = WAL_OK;
    if (failure != WAL_OK) {
        return failure;
    }
    *key = (struct wal__span){(const uint8_t *)text, strlen(text)};
    return text[0] == '\0' ? WAL_ENOTFOUND : WAL_OK;
}

static enum wal_status add_rank(void *ctx, uint32_t rank, bool is_readable)
{
    struct kit *kit = ctx;

    kit->ranks[kit->count] = rank;
    kit->readable[kit->count] = is_readable;
    kit->count++;
    return WAL_OK;
}

static struct kit *begin(void)
{
    struct kit *kit = calloc(1, sizeof(*kit));

    assert_non_null(kit);
    kit->keys = calloc(DOCS_MAX, sizeof(*kit->keys));
    assert_non_null(kit->keys);
    kit->random = rng_seed(1);
    faulty_heap_init(&kit->heap, &wal__heap_libc);
    wal__documents_init(&kit->documents, &kit->heap.heap);
    return kit;
}

static void end(struct kit *kit)
{
    wal__documents_deinit(&kit->documents);
    assert_int_equal(kit->heap.live, 0);
    free(kit->keys);
    free(kit);
}

/* Its hash is its rank: no two are equal. */
static void add(struct kit *kit, const char *key)
{
    uint32_t rank = kit->documents.count;
    struct wal__posting posting = {.type = WAL__FRAME_DOC, .sequence = rank + 1, .id_hash = rank};

    strcpy(kit->keys[rank], key);
    assert_ok(wal__documents_add(&kit->documents, &posting, rank + 1));
}

static void add_random(struct kit *kit)
{
    char key[KEY_SIZE];
    int size = snprintf(key, sizeof(key), "%c/%u", (char)('a' + below(kit, 5)), below(kit, 100000));

    key[1 + below(kit, (uint32_t)size)] = '\0';
    if (below(kit, 50) == 0) {
        key[0] = '\0';
    }
    add(kit, key);
}

static enum wal_status visit(struct kit *kit, const char *from, const char *prefix)
{
    const struct wal__document_keys keys = {read_key, kit};
    const struct wal__document_range range = {
        {(const uint8_t *)from, strlen(from)},
        {(const uint8_t *)prefix, strlen(prefix)},
    };

    kit->count = 0;
    return wal__documents_visit(&kit->documents, &keys, &range, add_rank, kit);
}

static char (*sorted_keys)[KEY_SIZE];

static int compare(const void *left, const void *right)
{
    return strcmp(sorted_keys[*(const uint32_t *)left], sorted_keys[*(const uint32_t *)right]);
}

/* Every document once, in order; equal keys are documents of the test alone. */
static void assert_visited(struct kit *kit, const char *from, const char *prefix)
{
    uint32_t wanted[DOCS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < kit->documents.count; i++) {
        const char *key = kit->keys[i];

        if (key[0] == '\0' ||
            (strcmp(key, from) >= 0 && strncmp(key, prefix, strlen(prefix)) == 0)) {
            wanted[count++] = i;
        }
    }
    sorted_keys = kit->keys;
    qsort(wanted, count, sizeof(*wanted), compare);
    assert_ok(visit(kit, from, prefix));
    assert_int_equal(kit->count, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *key = kit->keys[kit->ranks[i]];

        assert_string_equal(key, kit->keys[wanted[i]]);
        assert_int_equal(kit->readable[i], key[0] != '\0');
    }
}

TEST(document_order__agrees_with_a_sorted_list)
{
    static const char *const prefixes[] = {"", "a", "b/", "c/1", "e/99", "f"};
    struct kit *kit = begin();

    assert_visited(kit, "", "");
    for (int round = 0; round < 60; round++) {
        uint32_t count = round % 20 == 5 ? 2000 : below(kit, 60);

        while (count-- > 0) {
            add_random(kit);
        }
        for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
            assert_visited(kit, prefixes[i], prefixes[i]);
        }
        assert_visited(kit, "b", "");
    }
    end(kit);
}

/* A prefix costs a binary search, whatever else there is, also among documents that were added
 * since. */
TEST(document_order__prefix_reads_few_keys)
{
    struct kit *kit = begin();

    for (int i = 0; i < DOCS_MAX - 1000; i++) {
        add_random(kit);
    }
    assert_visited(kit, "c/12345", "c/12345");
    for (int i = 0; i < 900; i++) {
        add_random(kit);
        kit->reads = 0;
        assert_ok(visit(kit, "c/12345", "c/12345"));
        /* When the short array is full, each of its keys is searched for. */
        assert_in_range(kit->reads, 2, i % 513 == 512 ? 513 * 20 : 80);
    }
    kit->reads = 0;
    assert_ok(visit(kit, "c/12345", "c/12345"));
    assert_in_range(kit->reads, 2, 80);
    end(kit);
}

/* A key that became unreadable since it was sorted is found by a search: the next visit sorts
 * anew. */
TEST(document_order__lost_key_is_sorted_anew)
{
    struct kit *kit = begin();

    for (int i = 0; i < 100; i++) {
        add_random(kit);
    }
    add(kit, "c/1");
    assert_visited(kit, "", "");
    for (int i = 0; i < 100; i++) {
        kit->keys[i][0] = '\0';
    }
    assert_int_equal(visit(kit, "c", "c"), WAL_ECORRUPT);
    assert_visited(kit, "c", "c");
    assert_int_equal(kit->count, 101);
    end(kit);
}

TEST(document_order__failures_leave_a_valid_order)
{
    static const enum wal_status failures[] = {WAL_EIO, WAL_ECORRUPT, WAL_ENOMEM};
    struct kit *kit = begin();

    for (int i = 0; i < 1200; i++) {
        size_t which = (size_t)i % 3;

        add_random(kit);
        kit->failure = failures[which];
        assert_int_equal(visit(kit, "b", "b"), failures[which]);
        if (i % 40 == 0) {
            assert_visited(kit, "b", "b");
        }
        for (uint64_t nth = 1; nth < 12 && i % 40 == 1; nth++) {
            enum wal_status status;

            faulty_heap_fail(&kit->heap, nth, false);
            status = visit(kit, "b", "b");
            faulty_heap_fail(&kit->heap, 0, false);
            assert_true(status == WAL_OK || status == WAL_ENOMEM);
            assert_visited(kit, "b", "b");
        }
    }
    end(kit);
}

static void annotate(struct wal__annotations *annotations, uint8_t type, uint8_t kind,
                     uint64_t sequence, uint64_t parent)
{
    struct wal__posting posting = {
        .type = type, .kind = kind, .sequence = sequence, .parent = parent};

    assert_ok(wal__annotations_add(annotations, &posting, sequence * 100));
}

static void delta(struct wal__annotations *annotations, uint64_t sequence)
{
    annotate(annotations, WAL__FRAME_ENTRY, WAL__KIND_MESSAGE_DELTA_BATCH, sequence, 0);
}

static void redact(struct wal__annotations *annotations, uint64_t sequence, uint64_t target)
{
    annotate(annotations, WAL__FRAME_REDACT, 0, sequence, target);
}

static void head(struct wal__annotations *annotations, uint64_t name, uint8_t stream,
                 uint64_t sequence, uint64_t target)
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
    assert_int_equal(wal__annotations_next_redacted(&annotations, 0), UINT64_MAX);
    wal__annotations_deinit(&annotations);
    wal__annotations_deinit(&annotations);
    annotations = (struct wal__annotations){0};
    wal__annotations_deinit(&annotations);
}

TEST(marks__other_records_are_ignored)
{
    static const uint8_t types[] = {WAL__FRAME_SESSION,    WAL__FRAME_FORK,      WAL__FRAME_DOC,
                                    WAL__FRAME_DOC_DELETE, WAL__FRAME_TOMBSTONE, WAL__FRAME_ACCEPT};
    struct wal__annotations annotations;

    wal__annotations_init(&annotations, &wal__heap_libc);
    for (uint64_t i = 0; i < sizeof(types); i++) {
        annotate(&annotations, types[i], WAL__KIND_MESSAGE_DELTA_BATCH, i + 5, 2);
    }
    annotate(&annotations, WAL__FRAME_ENTRY, WAL__KIND_MESSAGE, 20, 2);
    annotate(&annotations, WAL__FRAME_ENTRY, WAL__KIND_REDACTION, 21, 2);
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
        assert_int_equal(wal__annotations_is_delta(&annotations, i), i % 3 == 0 && i > 0);
        assert_int_equal(wal__annotations_next_delta(&annotations, i),
                         i == 0 ? 3 : (i + 2) / 3 * 3);
    }
    assert_int_equal(wal__annotations_next_delta(&annotations, 301), UINT64_MAX);
    assert_int_equal(wal__annotations_next_redacted(&annotations, 1), UINT64_MAX);
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
    assert_int_equal(wal__annotations_find_redaction(&annotations, 4)->position, 1000);
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
    assert_int_equal(wal__annotations_find_head(&annotations, 0, 78)->target, 4);
    assert_int_equal(wal__annotations_find_head(&annotations, 0, 79)->target, 5);
    assert_int_equal(annotations.head_count, 2);
    head(&annotations, 79, 0, 15, 0);
    head(&annotations, 78, 0, 16, 0);
    assert_int_equal(annotations.head_count, 0);
    head(&annotations, 77, 0, 17, 6);
    assert_int_equal(wal__annotations_find_head(&annotations, 0, 77)->version, 17);
    wal__annotations_deinit(&annotations);
}

TEST(marks__main_without_an_entry_stays)
{
    struct wal__annotations annotations;
    uint64_t name = wal__id_hash("main", 4);

    wal__annotations_init(&annotations, &wal__heap_libc);
    head(&annotations, name, 2, 10, 0);
    assert_int_equal(wal__annotations_find_head(&annotations, 2, name)->target, 0);
    assert_int_equal(wal__annotations_find_head(&annotations, 2, name)->version, 10);
    assert_null(wal__annotations_find_head(&annotations, 0, name));
    wal__annotations_deinit(&annotations);
}

/* Each kind of record, at counts where room has to be made. */
static void add_one(struct wal__annotations *annotations, uint64_t i, struct faulty_heap *faulty)
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
