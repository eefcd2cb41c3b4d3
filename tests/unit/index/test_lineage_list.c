/*
 * test_lineage_list.c - tests of engine/store/lineage_list against a naive
 * model: a tree of sessions, each with its source and the sequences of its
 * entries. AGENTWAL_SEED sets the seed.
 */
#include <stddef.h>
#include <stdint.h>

#include "engine/store/lineage_list.h"
#include "format/bytes/crc32.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"

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

struct model {
    struct model_session sessions[SESSIONS + 1]; /* by number, from 1 */
    uint32_t count;
    uint64_t sequence;
};

static uint64_t random_state;

static int set_up(void **state)
{
    (void)state;
    random_state = rng_seed(1);
    return 0;
}

static uint64_t hash_of(uint64_t sequence)
{
    return wal__id_hash(&sequence, sizeof(sequence));
}

/* Adds what the table lacks for a fork at `limit`. */
static enum wal_status index_ids(const struct model *model,
                                 const struct wal__lineage_view *view,
                                 uint64_t limit)
{
    enum wal_status status = WAL_OK;
    uint64_t up_to;
    uint32_t rank;

    while (status == WAL_OK &&
           wal__lineage_next_unindexed(view, limit, &rank, &up_to)) {
        struct wal__lineage_level level = wal__lineage_level(view, rank);
        const struct model_session *session = &model->sessions[level.session];

        for (uint32_t i = 0; i < ENTRIES && status == WAL_OK; i++) {
            uint64_t sequence = session->first + i;

            if (sequence > level.indexed && sequence <= up_to) {
                status = wal__lineage_add_id(view, rank, hash_of(sequence),
                                             sequence * 64);
            }
        }
        if (status == WAL_OK) {
            wal__lineage_set_indexed(view, rank, up_to);
        }
    }
    return status;
}

/* Adds a fork of `owner` at one of its entries; owner 0: no fork. */
static enum wal_status add_session(struct model *model,
                                   const struct wal__heap *heap, uint32_t owner,
                                   uint64_t fork)
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

static void release_all(struct model *model)
{
    for (uint32_t i = 1; i <= model->count; i++) {
        wal__lineage_release(&model->sessions[i].view);
    }
}

/* The session that owns the sequence as `number` sees it; 0: it is not seen. */
static uint32_t model_owner(const struct model *model, uint32_t number,
                            uint64_t sequence)
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

    while (wal__lineage_find_id(&session->view, hash_of(sequence), &cursor,
                                &hit)) {
        uint32_t next = hit.rank + 1;
        uint64_t limit =
            next < session->view.count
                ? wal__lineage_level(&session->view, next).fork_sequence
                : session->fork;

        if (hit.position == sequence * 64 && sequence <= limit) {
            found = wal__lineage_level(&session->view, hit.rank).session;
        }
    }
    return found;
}

static void check_session(const struct model *model, uint32_t number)
{
    const struct model_session *session = &model->sessions[number];
    uint32_t rank;

    for (uint64_t sequence = 1; sequence <= model->sequence; sequence++) {
        uint32_t owner = model_owner(model, number, sequence);

        assert_int_equal(find_id(session, sequence), owner);
        if (owner == 0 || sequence > session->fork) {
            continue;
        }
        assert_true(
            wal__lineage_find_sequence(&session->view, sequence, &rank));
        assert_int_equal(wal__lineage_level(&session->view, rank).session,
                         owner);
    }
    assert_false(wal__lineage_find_sequence(&session->view, 0, &rank));
}

static uint32_t random_session(const struct model *model, uint32_t shape)
{
    uint64_t random = rng_next(&random_state);

    if (model->count == 0 || random % 20 == 0) {
        return 0;
    }
    /* A chain, a comb, or any tree. */
    if (shape == 0) {
        return model->count;
    }
    return shape == 1 && model->count > 1
               ? model->count - (uint32_t)(random >> 8) % 2
               : 1 + (uint32_t)(random >> 8) % model->count;
}

TEST_WITH(lineage_list__random_forks_equal_model, set_up, NULL)
{
    for (uint32_t round = 0; round < 12; round++) {
        static struct model model;

        model = (struct model){.count = 0};
        while (model.count < SESSIONS) {
            uint32_t owner = random_session(&model, round % 3);
            uint64_t fork = owner == 0 ? 0
                                       : model.sessions[owner].first +
                                             rng_next(&random_state) % ENTRIES;
            uint32_t number = model.count + 1;

            assert_ok(add_session(&model, &wal__heap_libc, owner, fork));
            /* Some are never looked up before their forks are. */
            if (rng_next(&random_state) % 2 == 0) {
                assert_ok(
                    index_ids(&model, &model.sessions[number].view, fork));
                check_session(&model, number);
            }
        }
        for (uint32_t i = 1; i <= model.count; i++) {
            assert_ok(index_ids(&model, &model.sessions[i].view,
                                model.sessions[i].fork));
            check_session(&model, i);
        }
        release_all(&model);
    }
}

/* Every level has a second fork, which is forked too: the lists part at each
 * of them, and are joined again before there are too many. */
TEST_WITH(lineage_list__lists_that_part_are_bounded, set_up, NULL)
{
    static struct model model;
    struct wal__lineage_view second;
    uint32_t newest;

    model = (struct model){.count = 0};
    assert_ok(add_session(&model, &wal__heap_libc, 0, 0));
    newest = 1;
    for (uint32_t i = 0; i < DEPTH; i++) {
        uint64_t fork = model.sessions[newest].first;

        assert_ok(add_session(&model, &wal__heap_libc, newest, fork));
        assert_ok(wal__lineage_extend(
            &wal__heap_libc, &model.sessions[model.count].view, model.count,
            model.sessions[model.count].fork, &second));
        wal__lineage_release(&second);
        assert_ok(add_session(&model, &wal__heap_libc, newest, fork + 1));
        newest = model.count;
    }
    assert_ok(index_ids(&model, &model.sessions[newest].view,
                        model.sessions[newest].fork));
    check_session(&model, newest);
    assert_int_equal(model.sessions[newest].view.count, DEPTH);
    release_all(&model);
}

/* A chain shares one list: a level more takes no more memory at the end of it
 * than at its beginning. */
TEST_WITH(lineage_list__a_chain_shares_one_list, set_up, NULL)
{
    static struct model model;
    uint64_t share = 0;

    model = (struct model){.count = 0};
    assert_ok(add_session(&model, &wal__heap_libc, 0, 0));
    while (model.count < SESSIONS) {
        assert_ok(
            add_session(&model, &wal__heap_libc, model.count, model.sequence));
    }
    for (uint32_t i = 2; i <= model.count; i++) {
        assert_ptr_equal(model.sessions[i].view.lineage,
                         model.sessions[2].view.lineage);
        share += wal__lineage_share(&model.sessions[i].view);
    }
    assert_true(share < SESSIONS * 64);
    release_all(&model);
}

/* The source of the first fork was lost. */
TEST_WITH(lineage_list__below_a_root_that_is_a_fork_nothing_is_found, set_up,
          NULL)
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

static enum wal_status fill_model(struct model *model,
                                  const struct wal__heap *heap)
{
    enum wal_status status = add_session(model, heap, 0, 0);

    for (uint32_t i = 0; i < 24 && status == WAL_OK; i++) {
        uint32_t owner = model->count - (i % 3 == 2);
        uint64_t fork = model->sessions[owner].first + i % ENTRIES;

        status = add_session(model, heap, owner, fork);
        if (status == WAL_OK) {
            status =
                index_ids(model, &model->sessions[model->count].view, fork);
        }
    }
    return status;
}

TEST_WITH(lineage_list__each_allocation_fails, set_up, NULL)
{
    uint64_t failing = 0;
    enum wal_status status;

    do {
        static struct model model;
        struct faulty_heap faulty;

        faulty_heap_init(&faulty, &wal__heap_libc);
        model = (struct model){.count = 0};
        faulty_heap_fail(&faulty, ++failing, false);
        status = fill_model(&model, &faulty.heap);
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
        release_all(&model);
        assert_int_equal(faulty.live, 0);
    } while (status != WAL_OK);
    assert_true(failing > 5);
}
