/*
 * test_tail_index.c - tests of engine/store/tail_index against a naive model: the postings in an
 * array. AGENTWAL_SEED sets the seed.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/store/tail_index.h"
#include "format/bytes/crc32.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"

enum {
    POSTINGS = 700,
    SESSIONS = 60, /* numbers are 1 to this */
    ROUNDS = 30
};

struct model {
    struct wal__posting postings[POSTINGS];
    uint32_t sessions[POSTINGS];
    uint32_t count;
};

static void add_random(struct wal__tail_index *tail, struct model *model)
{
    uint32_t at = model->count;
    struct wal__posting *posting = &model->postings[at];

    *posting = (struct wal__posting){
        .offset = 4096 + 64 * at,
        .type = (uint8_t)test_random(),
        .flags = (uint8_t)test_random(),
        .stream = (uint8_t)test_random(),
        .kind = (uint8_t)test_random(),
        .sequence = at + 1,
        .parent = at,
        .id_hash = test_random(),
    };
    model->sessions[at] = 1 + (uint32_t)(test_random() % SESSIONS);
    assert_ok(wal__tail_index_add(tail, model->sessions[at], posting));
    model->count++;
}

static uint32_t model_collect(const struct model *model, uint32_t session, struct wal__posting *out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->count; i++) {
        if (model->sessions[i] == session) {
            out[count++] = model->postings[i];
        }
    }
    return count;
}

/* Appends the postings of a session: of the base, then those after it, which are the same from the
 * newest on. */
static enum wal_status collect(const struct wal__tail_index *tail, uint32_t session,
                               struct wal__buf *out)
{
    struct wal__tail_postings postings = wal__tail_index_postings(tail, session);
    struct wal__posting posting;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < postings.base_count && status == WAL_OK; i++) {
        wal__posting_decode(postings.base + (size_t)i * WAL__POSTING_SIZE, &posting);
        status = wal__buf_append(out, &posting, sizeof(posting));
    }
    if (status == WAL_OK) {
        status = wal__tail_index_collect(tail, &postings, out);
    }
    for (uint32_t i = 1; status == WAL_OK && postings.newest != 0; i++) {
        wal__tail_index_step_back(tail, &postings.newest, &posting);
        assert_memory_equal(out->data + out->size - i * sizeof(posting), &posting, sizeof(posting));
        assert_true(i <= postings.count);
    }
    return status;
}

static void assert_collects(const struct wal__tail_index *tail, const struct model *model)
{
    static struct wal__posting wanted[POSTINGS];
    struct wal__buf out;

    wal__buf_init(&out, &wal__heap_libc);
    for (uint32_t session = 0; session <= SESSIONS + 1; session++) {
        size_t size = out.size;
        size_t more = model_collect(model, session, wanted) * sizeof(*wanted);

        assert_int_equal(wal__tail_index_has_session(tail, session), more > 0);
        assert_ok(collect(tail, session, &out));
        assert_int_equal(out.size, size + more);
        if (more > 0) {
            assert_memory_equal(out.data + size, wanted, more);
        }
    }
    wal__buf_deinit(&out);
}

/* The texts of a session, made up from its number; `ctx` counts calls down to a failure. */
static enum wal_status load_summary(void *ctx, uint32_t number, struct wal__summary *summary)
{
    static char id[16];
    static const char cwd[] = "/home/someone/work/project";
    int *left = ctx;

    if ((*left)-- == 0) {
        return WAL_ECORRUPT;
    }
    *summary = (struct wal__summary){
        .entries = number * 3,
        .segment = number + 7,
        .id = {(const uint8_t *)id, (size_t)sprintf(id, "s%u", number)},
        .cwd = {(const uint8_t *)cwd, number % sizeof(cwd)},
    };
    summary->id_hash = wal__id_hash(id, summary->id.size);
    return WAL_OK;
}

static const struct wal__index_header header = {
    .id = 3, .end = 99999, .commit_offset = 5, .last_session = 1234};

static uint64_t text_bound(void)
{
    return SESSIONS * (16 + 27);
}

static void assert_encodes(const struct wal__tail_index *tail, const struct model *model)
{
    static struct wal__posting wanted[POSTINGS];
    struct wal__buf out;
    struct wal__index index;
    uint32_t rank = 0;
    int left = -1;

    wal__buf_init(&out, &wal__heap_libc);
    assert_ok(wal__buf_append(&out, "left over", 9));
    assert_ok(wal__tail_index_encode(tail, &header, load_summary, &left, &out));
    assert_true(out.size <= wal__tail_index_size_bound(tail, 0, 0, text_bound()));
    assert_int_equal(wal__index_decode((struct wal__span){out.data, out.size}, &index),
                     WAL__FMT_OK);
    assert_int_equal(index.header.id, 3);
    assert_int_equal(index.header.last_session, 1234);
    assert_int_equal(index.header.posting_count, model->count);
    for (uint32_t session = 1; session <= SESSIONS; session++) {
        struct wal__summary summary;
        uint32_t count = model_collect(model, session, wanted);

        if (count == 0) {
            continue;
        }
        assert_int_equal(wal__index_summary(&index, rank++, &summary), WAL__FMT_OK);
        assert_int_equal(summary.number, session);
        assert_int_equal(summary.segment, session + 7);
        assert_int_equal(summary.entries, session * 3);
        assert_int_equal(summary.cwd.size, session % 27);
        assert_int_equal(summary.posting_count, count);
        for (uint32_t i = 0; i < count; i++) {
            struct wal__posting posting;

            wal__posting_decode(
                index.postings + (size_t)(summary.first_posting + i) * WAL__POSTING_SIZE, &posting);
            assert_memory_equal(&posting, &wanted[i], sizeof(posting));
        }
    }
    assert_int_equal(index.header.session_count, rank);
    wal__buf_deinit(&out);
}

TEST(tail_index__random_postings_agree_with_the_model)
{
    static struct model model;
    struct wal__tail_index tail;

    wal__tail_index_init(&tail, &wal__heap_libc);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t count = (uint32_t)test_random() % POSTINGS;

        model.count = 0;
        while (model.count < count) {
            add_random(&tail, &model);
        }
        assert_collects(&tail, &model);
        assert_encodes(&tail, &model);
        wal__tail_index_reset(&tail);
    }
    model.count = 0;
    assert_collects(&tail, &model);
    wal__tail_index_deinit(&tail);
}

/* Begins a tail with what another one holds; out keeps the bytes. */
static void adopt(struct wal__tail_index *tail, const struct wal__tail_index *from,
                  struct wal__buf *out)
{
    struct wal__index index;
    int left = -1;

    assert_ok(wal__tail_index_encode(from, &header, load_summary, &left, out));
    assert_int_equal(wal__index_decode((struct wal__span){out->data, out->size}, &index),
                     WAL__FMT_OK);
    assert_ok(wal__tail_index_attach_base(tail, &index));
}

static uint64_t model_before(const struct model *model, uint64_t offset)
{
    uint64_t newest = 0;

    for (uint32_t i = 0; i < model->count; i++) {
        if (model->postings[i].offset < offset) {
            newest = model->postings[i].sequence;
        }
    }
    return newest;
}

static enum wal_status count_session(void *ctx, uint32_t number)
{
    uint32_t *counts = ctx;

    assert_in_range(number, 1, SESSIONS);
    counts[number]++;
    return WAL_OK;
}

static enum wal_status refuse_session(void *ctx, uint32_t number)
{
    (void)ctx;
    (void)number;
    return WAL_EIO;
}

static void assert_sessions(const struct wal__tail_index *tail, const struct model *model)
{
    static struct wal__posting wanted[POSTINGS];
    uint32_t counts[SESSIONS + 1] = {0};

    assert_ok(wal__tail_index_visit_sessions(tail, count_session, counts));
    for (uint32_t session = 1; session <= SESSIONS; session++) {
        assert_int_equal(counts[session], model_collect(model, session, wanted) > 0);
    }
    assert_int_equal(wal__tail_index_visit_sessions(tail, refuse_session, NULL),
                     model->count > 0 ? WAL_EIO : WAL_OK);
}

TEST(tail_index__continues_after_an_adopted_index)
{
    static struct model model;
    struct wal__tail_index first;
    struct wal__tail_index tail;
    struct wal__buf bytes;

    wal__buf_init(&bytes, &wal__heap_libc);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t begin = 1 + (uint32_t)test_random() % (POSTINGS / 4);
        uint32_t end = begin + (uint32_t)test_random() % (POSTINGS / 2);

        model.count = 0;
        wal__tail_index_init(&first, &wal__heap_libc);
        wal__tail_index_init(&tail, &wal__heap_libc);
        while (model.count < begin) {
            add_random(&first, &model);
        }
        adopt(&tail, &first, &bytes);
        wal__tail_index_deinit(&first);
        while (model.count < end) {
            add_random(&tail, &model);
        }
        assert_collects(&tail, &model);
        assert_encodes(&tail, &model);
        assert_sessions(&tail, &model);
        for (uint64_t at = 4096; at < 4096 + 64 * (end + 1); at += 32) {
            assert_int_equal(wal__tail_index_last_before(&tail, at), model_before(&model, at));
        }
        wal__tail_index_reset(&tail);
        model.count = 0;
        assert_collects(&tail, &model);
        assert_sessions(&tail, &model);
        wal__tail_index_deinit(&tail);
    }
    wal__buf_deinit(&bytes);
}

/* Changes one summary of an encoded index, whose checksums are made anew. */
static void corrupt(struct wal__index *index, uint32_t rank,
                    void (*change)(struct wal__summary *summary))
{
    uint8_t *at = (uint8_t *)(uintptr_t)index->summaries + (size_t)rank * WAL__SUMMARY_SIZE;
    uint8_t text[WAL__SUMMARY_TEXT_MAX];
    struct wal__summary summary;

    assert_int_equal(wal__index_summary(index, rank, &summary), WAL__FMT_OK);
    change(&summary);
    wal__summary_encode(&summary, (uint32_t)(summary.id.data - index->texts.data), at, text);
}

static void same_number(struct wal__summary *summary)
{
    summary->number = 1;
}

static void decrement_posting_count(struct wal__summary *summary)
{
    summary->posting_count--;
}

static void decrement_first_posting(struct wal__summary *summary)
{
    summary->first_posting--;
}

TEST(tail_index__contradictory_index_is_rejected)
{
    static struct model model;
    static void (*const changes[])(struct wal__summary *) = {same_number, decrement_posting_count,
                                                             decrement_first_posting};
    struct wal__tail_index first;
    struct wal__tail_index tail;

    model.count = 0;
    wal__tail_index_init(&first, &wal__heap_libc);
    wal__tail_index_init(&tail, &wal__heap_libc);
    while (model.count < POSTINGS) {
        add_random(&first, &model);
    }
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct wal__index index;
        struct wal__buf bytes;
        int left = -1;

        wal__buf_init(&bytes, &wal__heap_libc);
        assert_ok(wal__tail_index_encode(&first, &header, load_summary, &left, &bytes));
        assert_int_equal(wal__index_decode((struct wal__span){bytes.data, bytes.size}, &index),
                         WAL__FMT_OK);
        corrupt(&index, index.header.session_count - 1, changes[i]);
        assert_int_equal(wal__tail_index_attach_base(&tail, &index), WAL_ECORRUPT);
        assert_false(wal__tail_index_has_session(&tail, 1));
        wal__buf_deinit(&bytes);
    }
    wal__tail_index_deinit(&tail);
    wal__tail_index_deinit(&first);
}

/* The file is mapped, so that its bytes may change under it. */
TEST(tail_index__encodes_no_base_that_changed)
{
    static struct model model;
    struct wal__tail_index first;
    struct wal__tail_index tail;
    struct wal__buf bytes;
    struct wal__buf out;
    int left = -1;

    model.count = 0;
    wal__buf_init(&bytes, &wal__heap_libc);
    wal__buf_init(&out, &wal__heap_libc);
    wal__tail_index_init(&first, &wal__heap_libc);
    wal__tail_index_init(&tail, &wal__heap_libc);
    while (model.count < POSTINGS) {
        add_random(&first, &model);
    }
    adopt(&tail, &first, &bytes);
    corrupt(&tail.base, tail.base.header.session_count - 1, decrement_posting_count);
    assert_int_equal(wal__tail_index_encode(&tail, &header, load_summary, &left, &out),
                     WAL_ECORRUPT);
    assert_int_equal(out.size, 0);
    wal__tail_index_deinit(&tail);
    wal__tail_index_deinit(&first);
    wal__buf_deinit(&out);
    wal__buf_deinit(&bytes);
}

TEST(tail_index__size_bound_covers_later_adds)
{
    static struct model model;
    struct wal__tail_index tail;
    uint64_t bound;

    model.count = 0;
    wal__tail_index_init(&tail, &wal__heap_libc);
    for (int i = 0; i < 20; i++) {
        add_random(&tail, &model);
    }
    bound = wal__tail_index_size_bound(&tail, 30, 30, text_bound());
    for (int i = 0; i < 30; i++) {
        add_random(&tail, &model);
    }
    assert_true(wal__tail_index_size_bound(&tail, 0, 0, text_bound()) <= bound);
    assert_encodes(&tail, &model);
    assert_int_equal(wal__tail_index_size_bound(&tail, UINT32_MAX, UINT32_MAX, 0),
                     wal__index_size(tail.session_count, tail.count, 0) +
                         (WAL__SUMMARY_SIZE + WAL__POSTING_SIZE) * (uint64_t)UINT32_MAX);
    wal__tail_index_deinit(&tail);
}

TEST(tail_index__reserved_adds_cannot_fail)
{
    struct faulty_heap heap;
    struct wal__tail_index tail;
    struct wal__posting posting = {.sequence = 1};
    uint64_t nth = 1;

    faulty_heap_init(&heap, &wal__heap_libc);
    wal__tail_index_init(&tail, &heap.heap);
    faulty_heap_fail(&heap, nth, false);
    while (wal__tail_index_reserve(&tail, 500) == WAL_ENOMEM) {
        assert_int_equal(tail.count, 0);
        faulty_heap_fail(&heap, ++nth, false);
    }
    assert_true(nth >= 5);
    faulty_heap_fail(&heap, 1, true);
    for (uint32_t i = 1; i <= 500; i++) {
        assert_ok(wal__tail_index_add(&tail, i, &posting));
    }
    wal__tail_index_deinit(&tail);
    assert_int_equal(heap.live, 0);
}

TEST(tail_index__failed_allocation_changes_nothing)
{
    static struct model model;
    struct faulty_heap heap;
    struct wal__tail_index tail;
    uint64_t failures = 0;

    model.count = 0;
    faulty_heap_init(&heap, &wal__heap_libc);
    wal__tail_index_init(&tail, &heap.heap);
    while (model.count < 300) {
        struct wal__posting posting = {.sequence = model.count + 1};
        uint32_t session = 1 + model.count / 2;

        for (uint64_t nth = 1;; nth++) {
            faulty_heap_fail(&heap, nth, false);
            if (wal__tail_index_add(&tail, session, &posting) == WAL_OK) {
                break;
            }
            failures++;
            assert_collects(&tail, &model);
        }
        model.postings[model.count] = posting;
        model.sessions[model.count] = session;
        model.count++;
    }
    faulty_heap_fail(&heap, 0, false);
    assert_true(failures > 10);
    assert_collects(&tail, &model);
    wal__tail_index_deinit(&tail);
    assert_int_equal(heap.live, 0);
}

TEST(tail_index__failed_encode_writes_nothing)
{
    static struct model model;
    struct faulty_heap heap;
    struct wal__tail_index tail;
    struct wal__buf out;
    int left = 5;
    uint64_t nth = 1;
    enum wal_status status;

    model.count = 0;
    faulty_heap_init(&heap, &wal__heap_libc);
    wal__tail_index_init(&tail, &heap.heap);
    wal__buf_init(&out, &heap.heap);
    for (int i = 0; i < 100; i++) {
        add_random(&tail, &model);
    }
    assert_int_equal(wal__tail_index_encode(&tail, &header, load_summary, &left, &out),
                     WAL_ECORRUPT);
    assert_int_equal(out.size, 0);
    wal__buf_deinit(&out);
    do {
        left = -1;
        faulty_heap_fail(&heap, nth++, false);
        status = wal__tail_index_encode(&tail, &header, load_summary, &left, &out);
        assert_true(status == WAL_OK || out.size == 0);
        if (status != WAL_OK) {
            assert_int_equal(status, WAL_ENOMEM);
            wal__buf_deinit(&out);
        }
    } while (status != WAL_OK);
    assert_true(nth > 3);
    faulty_heap_fail(&heap, 0, false);
    wal__buf_deinit(&out);
    wal__tail_index_deinit(&tail);
    assert_int_equal(heap.live, 0);
}
