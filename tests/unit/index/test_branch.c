/*
 * test_branch.c - tests of engine/store/branch and lineage_list against naive models: an array of
 * records, searched from its end, and a tree of sessions, each with its source and the sequences of
 * its entries. AGENTWAL_SEED sets the seed.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/store/branch.h"
#include "engine/store/lineage_list.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"

enum { RECORDS = 600, ROUNDS = 40, FORK_SEQUENCE = 1000, INHERITED = 17 };

static uint64_t hash_of_main(void)
{
    return wal__id_hash("main", 4);
}

/* ---------------------------------------------------------------- model --- */

struct model {
    struct wal__posting postings[RECORDS];
    uint32_t count;
    bool is_fork;
};

/* The entry of the stream with this sequence, or null. */
static const struct wal__posting *model_entry(const struct model *model, uint32_t stream,
                                              uint64_t sequence)
{
    for (uint32_t i = 0; i < model->count; i++) {
        const struct wal__posting *posting = &model->postings[i];

        if (posting->type == WAL__FRAME_ENTRY && posting->stream == stream &&
            posting->sequence == sequence) {
            return posting;
        }
    }
    return NULL;
}

static uint64_t model_depth(const struct model *model, uint32_t stream, uint64_t sequence)
{
    uint64_t depth = 0;

    for (;;) {
        uint64_t parent = model_entry(model, stream, sequence)->parent;

        if (parent != 0 && model->is_fork && parent == FORK_SEQUENCE) {
            return depth + INHERITED;
        }
        if (model_entry(model, stream, parent) == NULL) {
            return depth;
        }
        depth++;
        sequence = parent;
    }
}

/* Whether a path ends at a root or at the fork point. */
static bool model_knows_depth(const struct model *model, uint32_t stream, uint64_t sequence)
{
    const struct wal__posting *entry = model_entry(model, stream, sequence);
    uint64_t parent = 0;

    for (; entry != NULL; entry = model_entry(model, stream, parent)) {
        parent = entry->parent;
        if (model->is_fork && parent == FORK_SEQUENCE) {
            return stream == 1;
        }
    }
    return parent == 0;
}

static uint64_t model_head(const struct model *model, uint32_t stream)
{
    for (uint32_t i = model->count; i > 0; i--) {
        const struct wal__posting *posting = &model->postings[i - 1];

        if (posting->stream != stream) {
            continue;
        }
        if (posting->type == WAL__FRAME_ENTRY && (posting->flags & WAL__FRAME_MOVES_HEAD) != 0) {
            return posting->sequence;
        }
        if (posting->type == WAL__FRAME_HEAD && posting->id_hash == hash_of_main()) {
            return posting->parent;
        }
    }
    return model->is_fork && stream == 1 ? FORK_SEQUENCE : 0;
}

/* A parent: mostly the newest entry, sometimes any, a root, the fork point, its past, or one that
 * was lost. */
static uint64_t random_parent(const struct model *model, uint32_t stream, uint64_t sequence)
{
    uint64_t choice = test_random() % 10;

    for (uint32_t i = model->count; i > 0 && choice > 1; i--) {
        const struct wal__posting *posting = &model->postings[i - 1];

        if (posting->type == WAL__FRAME_ENTRY && posting->stream == stream &&
            (choice > 4 || test_random() % 8 == 0)) {
            return posting->sequence;
        }
    }
    if (choice == 0) {
        return test_random() % 3 == 0 ? 0 : test_random() % sequence;
    }
    return FORK_SEQUENCE;
}

static struct wal__posting random_posting(const struct model *model, uint64_t sequence)
{
    static const uint8_t types[] = {WAL__FRAME_ENTRY, WAL__FRAME_ENTRY, WAL__FRAME_ENTRY,
                                    WAL__FRAME_ENTRY, WAL__FRAME_ENTRY, WAL__FRAME_HEAD,
                                    WAL__FRAME_HEAD,  WAL__FRAME_ACCEPT};
    static const uint8_t kinds[] = {WAL__KIND_MESSAGE, WAL__KIND_MESSAGE, WAL__KIND_COMPACTION,
                                    WAL__KIND_COMPACTION_SUMMARY, WAL__KIND_NAMED};
    struct wal__posting posting = {
        .type = types[test_random() % sizeof(types)],
        .flags = test_random() % 3 != 0 ? WAL__FRAME_MOVES_HEAD : 0,
        .stream = (uint8_t)(test_random() % 3),
        .kind = kinds[test_random() % sizeof(kinds)],
        .sequence = sequence,
        .id_hash = test_random() % 300, /* so that some are equal */
    };

    posting.parent = random_parent(model, posting.stream, sequence);
    if (posting.type == WAL__FRAME_HEAD && test_random() % 2 == 0) {
        posting.id_hash = hash_of_main();
    }
    return posting;
}

/* Position of a record, made up from its sequence. */
static uint64_t position_of(uint64_t sequence)
{
    return sequence * 8 + 5;
}

/* -------------------------------------------------------------- compare --- */

static void assert_path(const struct wal__branch *branch, const struct model *model,
                        const struct wal__stream *stream, uint32_t ordinal)
{
    struct wal__buf out;
    uint64_t sequence = stream->entries[ordinal].sequence;
    uint64_t rest = UINT64_MAX;

    wal__buf_init(&out, &wal__heap_libc);
    assert_ok(wal__branch_path(branch, stream, ordinal, &out, &rest));
    for (size_t at = 0; at < out.size; at += sizeof(struct wal__entry_range)) {
        struct wal__entry_range stretch;

        memcpy(&stretch, out.data + at, sizeof(stretch));
        for (uint32_t i = stretch.count; i > 0; i--) {
            uint64_t found = stream->entries[stretch.first + i - 1].sequence;
            const struct wal__posting *entry = model_entry(model, stream->number, sequence);

            assert_non_null(entry);
            assert_int_equal(found, sequence);
            sequence = entry->parent;
        }
    }
    assert_null(model_entry(model, stream->number, sequence));
    assert_int_equal(rest, sequence);
    wal__buf_deinit(&out);
}

static void assert_compactions(const struct wal__stream *stream)
{
    for (int i = 0; i < 20 && stream->entry_count > 0; i++) {
        struct wal__entry_range stretch;
        uint32_t wanted = UINT32_MAX;
        uint32_t found = UINT32_MAX;

        stretch.first = (uint32_t)test_random() % stream->entry_count;
        stretch.count = 1 + (uint32_t)test_random() % (stream->entry_count - stretch.first);
        for (uint32_t j = 0; j < stretch.count; j++) {
            uint8_t kind = stream->entries[stretch.first + j].kind;

            if (kind == WAL__KIND_COMPACTION || kind == WAL__KIND_COMPACTION_SUMMARY) {
                wanted = stretch.first + j;
            }
        }
        assert_int_equal(wal__branch_find_compaction(stream, &stretch, &found),
                         wanted != UINT32_MAX);
        assert_int_equal(found, wanted);
    }
}

static void assert_entries(const struct wal__branch *branch, const struct model *model,
                           uint32_t number)
{
    const struct wal__stream *stream = wal__branch_stream(branch, number);
    uint32_t ordinal = 0;
    uint32_t found = 0;

    for (uint32_t i = 0; i < model->count; i++) {
        const struct wal__posting *posting = &model->postings[i];

        if (posting->type != WAL__FRAME_ENTRY || posting->stream != number) {
            continue;
        }
        assert_non_null(stream);
        assert_true(ordinal < stream->entry_count);

        const struct wal__branch_entry *entry = &stream->entries[ordinal];

        assert_int_equal(entry->sequence, posting->sequence);
        assert_int_equal(entry->position, position_of(posting->sequence));
        assert_int_equal(entry->kind, posting->kind);
        assert_int_equal(entry->flags, posting->flags);
        assert_true(wal__branch_find_sequence(stream, posting->sequence, &found));
        assert_int_equal(found, ordinal);
        assert_int_equal(wal__branch_depth(stream, ordinal),
                         model_depth(model, number, posting->sequence));
        assert_int_equal(wal__branch_is_depth_exact(stream, ordinal),
                         model_knows_depth(model, number, posting->sequence));
        ordinal++;
    }
    if (stream == NULL) {
        return;
    }
    assert_int_equal(stream->entry_count, ordinal);
    assert_false(wal__branch_find_sequence(stream, 0, &found));
    assert_false(wal__branch_find_sequence(stream, UINT64_MAX, &found));
    assert_compactions(stream);
    for (ordinal = 0; ordinal < stream->entry_count; ordinal += 7) {
        assert_path(branch, model, stream, ordinal);
    }
}

/* Every entry with the hash is given once. */
static void assert_ids(const struct wal__branch *branch, const struct model *model,
                       uint64_t id_hash)
{
    uint64_t wanted_sum = 0;
    uint64_t found_sum = 0;
    uint32_t wanted = 0;
    uint32_t found = 0;
    uint32_t cursor = 0;
    struct wal__branch_hit hit;

    for (uint32_t i = 0; i < model->count; i++) {
        if (model->postings[i].type == WAL__FRAME_ENTRY && model->postings[i].id_hash == id_hash) {
            wanted_sum += model->postings[i].sequence;
            wanted++;
        }
    }
    while (wal__branch_find_id(branch, id_hash, &cursor, &hit)) {
        const struct wal__branch_entry *entry = &hit.stream->entries[hit.ordinal];

        assert_int_equal(entry->position, hit.position);
        assert_non_null(model_entry(model, hit.stream->number, entry->sequence));
        found_sum += entry->sequence;
        found++;
    }
    assert_int_equal(found, wanted);
    assert_int_equal(found_sum, wanted_sum);
}

static void assert_same(const struct wal__branch *branch, const struct model *model)
{
    for (uint32_t stream = 0; stream < 4; stream++) {
        assert_int_equal(wal__branch_head(branch, stream), model_head(model, stream));
        assert_entries(branch, model, stream);
    }
    for (uint64_t id_hash = 0; id_hash < 300; id_hash += 11) {
        assert_ids(branch, model, id_hash);
    }
    if (model->count > 0) {
        assert_int_equal(branch->last_sequence, model->postings[model->count - 1].sequence);
    }
}

/* ---------------------------------------------------------------- tests --- */

/* Begins a branch, some with a fork point, some with a hint, right or wrong. */
static void begin(struct wal__branch *branch, const struct wal__heap *heap, struct model *model)
{
    memset(model, 0, sizeof(*model));
    model->is_fork = test_random() % 2 == 0;
    wal__branch_init(branch, heap, 1);
    if (model->is_fork) {
        wal__branch_set_fork(branch, FORK_SEQUENCE, 1, INHERITED);
    }
    if (test_random() % 2 == 0) {
        wal__branch_expect(branch, test_random() % (2 * RECORDS));
    }
}

/* Adds the ids of a branch that was loaded without. */
static enum wal_status add_ids(struct wal__branch *branch, const struct model *model)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < model->count && status == WAL_OK; i++) {
        const struct wal__posting *posting = &model->postings[i];

        if (posting->type == WAL__FRAME_ENTRY) {
            status = wal__branch_add_id(branch, posting, position_of(posting->sequence));
        }
    }
    return status == WAL_OK ? wal__branch_end_ids(branch) : status;
}

TEST(branch__random_trees_agree_with_a_parent_walk)
{
    static struct model model;

    for (int round = 0; round < ROUNDS; round++) {
        struct wal__branch branch;
        uint64_t sequence = FORK_SEQUENCE;
        uint32_t records = (uint32_t)test_random() % RECORDS;
        uint32_t loaded = (uint32_t)test_random() % (records + 1);

        begin(&branch, &wal__heap_libc, &model);
        if (round % 2 == 0) {
            wal__branch_defer_ids(&branch);
        }
        while (model.count < records) {
            if (branch.ids_deferred && model.count == loaded) {
                assert_ok(add_ids(&branch, &model));
            }
            sequence += 1 + test_random() % 3;

            struct wal__posting posting = random_posting(&model, sequence);

            assert_ok(wal__branch_add(&branch, &posting, position_of(sequence)));
            model.postings[model.count++] = posting;
        }
        if (branch.ids_deferred) {
            assert_ok(add_ids(&branch, &model));
        }
        assert_same(&branch, &model);
        wal__branch_deinit(&branch);
    }
}

TEST(branch__ids_of_other_entries_are_corrupt)
{
    struct faulty_heap heap;
    struct wal__branch branch;
    struct wal__posting posting = {.type = WAL__FRAME_ENTRY, .sequence = 1};

    faulty_heap_init(&heap, &wal__heap_libc);
    wal__branch_init(&branch, &heap.heap, 1);
    wal__branch_defer_ids(&branch);
    for (posting.sequence = 1; posting.sequence <= 3; posting.sequence++) {
        assert_ok(wal__branch_add(&branch, &posting, posting.sequence));
    }
    posting.sequence = 2;
    assert_int_equal(wal__branch_add_id(&branch, &posting, 2), WAL_ECORRUPT);
    posting.sequence = 1;
    posting.stream = 1;
    assert_int_equal(wal__branch_add_id(&branch, &posting, 1), WAL_ECORRUPT);
    posting.stream = 0;
    faulty_heap_fail(&heap, 1, false);
    assert_int_equal(wal__branch_add_id(&branch, &posting, 1), WAL_ENOMEM);
    for (posting.sequence = 1; posting.sequence <= 3; posting.sequence++) {
        assert_int_equal(wal__branch_end_ids(&branch), WAL_ECORRUPT);
        assert_ok(wal__branch_add_id(&branch, &posting, posting.sequence));
    }
    assert_int_equal(wal__branch_add_id(&branch, &posting, 4), WAL_ECORRUPT);
    wal__branch_drop_ids(&branch);
    assert_int_equal(wal__branch_end_ids(&branch), WAL_ECORRUPT);
    wal__branch_deinit(&branch);
    assert_int_equal(heap.live, 0);
}

TEST(branch__failed_allocation_changes_nothing)
{
    static struct model model;
    struct faulty_heap heap;
    struct wal__branch branch;
    uint64_t failures = 0;

    faulty_heap_init(&heap, &wal__heap_libc);
    begin(&branch, &heap.heap, &model);
    for (uint64_t i = 1; i <= 200; i++) {
        struct wal__posting posting = random_posting(&model, FORK_SEQUENCE + i);
        uint64_t nth = 1;

        faulty_heap_fail(&heap, nth, false);
        while (wal__branch_add(&branch, &posting, position_of(posting.sequence)) == WAL_ENOMEM) {
            failures++;
            assert_same(&branch, &model);
            faulty_heap_fail(&heap, ++nth, false);
        }
        faulty_heap_fail(&heap, 0, false);
        model.postings[model.count++] = posting;
        assert_int_equal(branch.last_sequence, posting.sequence);
    }
    assert_same(&branch, &model);
    assert_true(failures > 20);
    wal__branch_deinit(&branch);
    assert_int_equal(heap.live, 0);
}

TEST(branch__failed_allocation_of_a_path_leaves_the_buffer)
{
    struct faulty_heap heap;
    struct wal__branch branch;
    struct wal__buf out;
    uint64_t rest = 77;

    faulty_heap_init(&heap, &wal__heap_libc);
    wal__branch_init(&branch, &wal__heap_libc, 1);
    /* Each entry is a separate run: a child of the one before the last. */
    for (uint64_t i = 1; i <= 400; i++) {
        struct wal__posting posting = {
            .type = WAL__FRAME_ENTRY,
            .sequence = i,
            .parent = i > 2 ? i - 2 : 0,
        };

        assert_ok(wal__branch_add(&branch, &posting, 0));
    }
    wal__buf_init(&out, &heap.heap);
    assert_ok(wal__buf_append(&out, "x", 1));
    faulty_heap_fail(&heap, 2, false);
    assert_int_equal(wal__branch_path(&branch, wal__branch_stream(&branch, 0), 399, &out, &rest),
                     WAL_ENOMEM);
    assert_int_equal(out.size, 1);
    assert_int_equal(rest, 77);
    assert_ok(wal__branch_path(&branch, wal__branch_stream(&branch, 0), 399, &out, &rest));
    assert_int_equal(out.size, 1 + 200 * sizeof(struct wal__entry_range));
    assert_int_equal(rest, 0);
    wal__buf_deinit(&out);
    wal__branch_deinit(&branch);
}

TEST(branch__a_chain_is_one_run)
{
    struct wal__branch branch;
    const struct wal__stream *stream;

    wal__branch_init(&branch, &wal__heap_libc, 1);
    for (uint64_t i = 1; i <= 1000; i++) {
        struct wal__posting posting = {
            .type = WAL__FRAME_ENTRY,
            .stream = i % 2 == 0, /* two chains, interleaved */
            .sequence = i,
            .parent = i > 2 ? i - 2 : 0,
        };

        assert_ok(wal__branch_add(&branch, &posting, 0));
    }
    for (uint32_t number = 0; number < 2; number++) {
        stream = wal__branch_stream(&branch, number);
        assert_int_equal(stream->run_count, 1);
        assert_int_equal(stream->runs[0].count, 500);
        assert_int_equal(wal__branch_depth(stream, 499), 499);
    }
    wal__branch_deinit(&branch);
}

TEST(branch__hint_without_memory_is_ignored)
{
    struct faulty_heap heap;
    struct wal__branch branch;
    struct wal__posting posting = {.type = WAL__FRAME_ENTRY, .sequence = 1};

    faulty_heap_init(&heap, &wal__heap_libc);
    for (uint64_t nth = 2; nth <= 3; nth++) {
        wal__branch_init(&branch, &heap.heap, 1);
        wal__branch_expect(&branch, UINT64_MAX);
        assert_int_equal(branch.expected, 1 << 24);
        wal__branch_expect(&branch, 1000);
        faulty_heap_fail(&heap, nth, false);
        assert_ok(wal__branch_add(&branch, &posting, 0));
        assert_int_equal(wal__branch_stream(&branch, 0)->entry_count, 1);
        faulty_heap_fail(&heap, 0, false);
        wal__branch_deinit(&branch);
        assert_int_equal(heap.live, 0);
    }
}

TEST(branch__record_out_of_order_is_corrupt)
{
    struct wal__branch branch;
    struct wal__posting posting = {.type = WAL__FRAME_ENTRY, .sequence = 5, .parent = 5};

    wal__branch_init(&branch, &wal__heap_libc, 1);
    assert_int_equal(wal__branch_add(&branch, &posting, 0), WAL_ECORRUPT);
    posting.parent = 6;
    assert_int_equal(wal__branch_add(&branch, &posting, 0), WAL_ECORRUPT);
    posting.parent = 4;
    assert_ok(wal__branch_add(&branch, &posting, 0));
    assert_int_equal(wal__branch_add(&branch, &posting, 0), WAL_ECORRUPT);
    posting.sequence = 4;
    posting.parent = 0;
    assert_int_equal(wal__branch_add(&branch, &posting, 0), WAL_ECORRUPT);
    posting.sequence = 0;
    assert_int_equal(wal__branch_add(&branch, &posting, 0), WAL_ECORRUPT);
    assert_int_equal(wal__branch_stream(&branch, 0)->entry_count, 1);
    assert_int_equal(branch.last_sequence, 5);
    wal__branch_deinit(&branch);
}

enum {
    SESSIONS = 200,
    ENTRIES = 4, /* of a session */
    DEPTH = 64
};

/* Session `number` has the entries first .. first + ENTRIES - 1. */
struct model_session {
    uint32_t owner; /* of the fork point; 0: not a fork */
    uint64_t fork;  /* sequence */
    uint64_t first;
    struct wal__lineage_view view; /* of its ancestors */
};

struct sessions_model {
    struct model_session sessions[SESSIONS + 1]; /* by number, from 1 */
    uint32_t count;
    uint64_t sequence;
};

static uint64_t hash_of(uint64_t sequence)
{
    return wal__id_hash(&sequence, sizeof(sequence));
}

/* Adds what the table lacks for a fork at `limit`. */
static enum wal_status index_ids(const struct sessions_model *model,
                                 const struct wal__lineage_view *view, uint64_t limit)
{
    enum wal_status status = WAL_OK;
    uint64_t up_to;
    uint32_t rank;

    while (status == WAL_OK && wal__lineage_next_unindexed(view, limit, &rank, &up_to)) {
        struct wal__lineage_level level = wal__lineage_level(view, rank);
        const struct model_session *session = &model->sessions[level.session];

        for (uint32_t i = 0; i < ENTRIES && status == WAL_OK; i++) {
            uint64_t sequence = session->first + i;

            if (sequence > level.indexed && sequence <= up_to) {
                status = wal__lineage_add_id(view, rank, hash_of(sequence), sequence * 64);
            }
        }
        if (status == WAL_OK) {
            wal__lineage_set_indexed(view, rank, up_to);
        }
    }
    return status;
}

/* Adds a fork of `owner` at one of its entries; owner 0: no fork. */
static enum wal_status add_session(struct sessions_model *model, const struct wal__heap *heap,
                                   uint32_t owner, uint64_t fork)
{
    struct model_session *added = &model->sessions[model->count + 1];
    enum wal_status status = WAL_OK;

    *added = (struct model_session){.owner = owner, .fork = fork};
    added->first = model->sequence + 1;
    if (owner != 0) {
        status = wal__lineage_extend(heap, &model->sessions[owner].view, owner,
                                     model->sessions[owner].fork, &added->view);
    }
    if (status == WAL_OK) {
        model->count++;
        model->sequence += ENTRIES;
    }
    return status;
}

static void release_all(struct sessions_model *model)
{
    for (uint32_t i = 1; i <= model->count; i++) {
        wal__lineage_release(&model->sessions[i].view);
    }
}

/* The session that owns the sequence as `number` sees it; 0: it is not seen. */
static uint32_t model_owner(const struct sessions_model *model, uint32_t number, uint64_t sequence)
{
    const struct model_session *session = &model->sessions[number];
    uint64_t limit = session->fork;

    for (number = session->owner; number != 0; number = session->owner) {
        session = &model->sessions[number];
        if (sequence >= session->first && sequence < session->first + ENTRIES) {
            return sequence <= limit ? number : 0;
        }
        limit = session->fork;
    }
    return 0;
}

/* The session that the view finds for the id of the sequence; 0: none. */
static uint32_t find_id(const struct model_session *session, uint64_t sequence)
{
    struct wal__lineage_hit hit;
    uint32_t cursor = 0;
    uint32_t found = 0;

    while (wal__lineage_find_id(&session->view, hash_of(sequence), &cursor, &hit)) {
        uint32_t next = hit.rank + 1;
        uint64_t limit = next < session->view.count
                             ? wal__lineage_level(&session->view, next).fork_sequence
                             : session->fork;

        if (hit.position == sequence * 64 && sequence <= limit) {
            found = wal__lineage_level(&session->view, hit.rank).session;
        }
    }
    return found;
}

static void check_session(const struct sessions_model *model, uint32_t number)
{
    const struct model_session *session = &model->sessions[number];
    uint32_t rank;

    for (uint64_t sequence = 1; sequence <= model->sequence; sequence++) {
        uint32_t owner = model_owner(model, number, sequence);

        assert_int_equal(find_id(session, sequence), owner);
        if (owner == 0 || sequence > session->fork) {
            continue;
        }
        assert_true(wal__lineage_find_sequence(&session->view, sequence, &rank));
        assert_int_equal(wal__lineage_level(&session->view, rank).session, owner);
    }
    assert_false(wal__lineage_find_sequence(&session->view, 0, &rank));
}

static uint32_t random_session(const struct sessions_model *model, uint32_t shape)
{
    uint64_t random = test_random();

    if (model->count == 0 || random % 20 == 0) {
        return 0;
    }
    /* A chain, a comb, or any tree. */
    if (shape == 0) {
        return model->count;
    }
    return shape == 1 && model->count > 1 ? model->count - (uint32_t)(random >> 8) % 2
                                          : 1 + (uint32_t)(random >> 8) % model->count;
}

TEST(lineage_list__random_forks_equal_model)
{
    for (uint32_t round = 0; round < 12; round++) {
        static struct sessions_model model;

        model = (struct sessions_model){.count = 0};
        while (model.count < SESSIONS) {
            uint32_t owner = random_session(&model, round % 3);
            uint64_t fork = owner == 0 ? 0 : model.sessions[owner].first + test_random() % ENTRIES;
            uint32_t number = model.count + 1;

            assert_ok(add_session(&model, &wal__heap_libc, owner, fork));
            /* Some are never looked up before their forks are. */
            if (test_random() % 2 == 0) {
                assert_ok(index_ids(&model, &model.sessions[number].view, fork));
                check_session(&model, number);
            }
        }
        for (uint32_t i = 1; i <= model.count; i++) {
            assert_ok(index_ids(&model, &model.sessions[i].view, model.sessions[i].fork));
            check_session(&model, i);
        }
        release_all(&model);
    }
}

/* Every level has a second fork, which is forked too: the lists part at each of them, and are
 * joined again before there are too many. */
TEST(lineage_list__lists_that_part_are_bounded)
{
    static struct sessions_model model;
    struct wal__lineage_view second;
    uint32_t newest;

    model = (struct sessions_model){.count = 0};
    assert_ok(add_session(&model, &wal__heap_libc, 0, 0));
    newest = 1;
    for (uint32_t i = 0; i < DEPTH; i++) {
        uint64_t fork = model.sessions[newest].first;

        assert_ok(add_session(&model, &wal__heap_libc, newest, fork));
        assert_ok(wal__lineage_extend(&wal__heap_libc, &model.sessions[model.count].view,
                                      model.count, model.sessions[model.count].fork, &second));
        wal__lineage_release(&second);
        assert_ok(add_session(&model, &wal__heap_libc, newest, fork + 1));
        newest = model.count;
    }
    assert_ok(index_ids(&model, &model.sessions[newest].view, model.sessions[newest].fork));
    check_session(&model, newest);
    assert_int_equal(model.sessions[newest].view.count, DEPTH);
    release_all(&model);
}

/* A chain shares one list: a level more takes no more memory at the end of it than at its
 * beginning. */
TEST(lineage_list__a_chain_shares_one_list)
{
    static struct sessions_model model;
    uint64_t share = 0;

    model = (struct sessions_model){.count = 0};
    assert_ok(add_session(&model, &wal__heap_libc, 0, 0));
    while (model.count < SESSIONS) {
        assert_ok(add_session(&model, &wal__heap_libc, model.count, model.sequence));
    }
    for (uint32_t i = 2; i <= model.count; i++) {
        assert_ptr_equal(model.sessions[i].view.lineage, model.sessions[2].view.lineage);
        share += wal__lineage_share(&model.sessions[i].view);
    }
    assert_true(share < SESSIONS * 64);
    release_all(&model);
}

/* The source of the first fork was lost. */
TEST(lineage_list__below_a_root_that_is_a_fork_nothing_is_found)
{
    struct wal__lineage_view none = {NULL, 0};
    struct wal__lineage_view view;
    uint32_t rank;

    assert_ok(wal__lineage_extend(&wal__heap_libc, &none, 7, 10, &view));
    assert_false(wal__lineage_find_sequence(&view, 10, &rank));
    assert_true(wal__lineage_find_sequence(&view, 11, &rank));
    assert_int_equal(rank, 0);
    wal__lineage_release(&view);
    assert_null(view.lineage);
    wal__lineage_release(&view);
}

static enum wal_status fill_model(struct sessions_model *model, const struct wal__heap *heap)
{
    enum wal_status status = add_session(model, heap, 0, 0);

    for (uint32_t i = 0; i < 24 && status == WAL_OK; i++) {
        uint32_t owner = model->count - (i % 3 == 2);
        uint64_t fork = model->sessions[owner].first + i % ENTRIES;

        status = add_session(model, heap, owner, fork);
        if (status == WAL_OK) {
            status = index_ids(model, &model->sessions[model->count].view, fork);
        }
    }
    return status;
}

TEST(lineage_list__each_allocation_fails)
{
    uint64_t failing = 0;
    enum wal_status status;

    do {
        static struct sessions_model model;
        struct faulty_heap faulty;

        faulty_heap_init(&faulty, &wal__heap_libc);
        model = (struct sessions_model){.count = 0};
        faulty_heap_fail(&faulty, ++failing, false);
        status = fill_model(&model, &faulty.heap);
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
        release_all(&model);
        assert_int_equal(faulty.live, 0);
    } while (status != WAL_OK);
    assert_true(failing > 5);
}
