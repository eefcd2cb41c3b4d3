/*
 * test_block_replay.c - the records of a rewritten segment are stored session
 * by session, and applied in the order of the log (SPEC.md 2.23).
 */
#include "agentwal/admin.h"
#include "engine/log/log.h"
#include "engine/session/session.h"
#include "tests/lib/kit/store_kit.h"

enum {
    ROUNDS = 200, /* records of each session: several blocks */
    SESSIONS = 3
};

struct applied {
    uint64_t last;  /* sequence */
    uint32_t count; /* of records */
    uint32_t turns; /* from one session to another */
    uint32_t session;
    bool is_ascending;
};

static enum wal_status apply(void *ctx, const struct wal__log_record *record)
{
    struct applied *applied = ctx;
    const struct wal__frame *frame = record->frame;

    applied->is_ascending =
        applied->is_ascending && frame->sequence > applied->last;
    applied->turns += frame->session != applied->session;
    applied->session = frame->session;
    applied->last = frame->sequence;
    applied->count++;
    return WAL_OK;
}

/* Replays the store's first segment into a client that only looks. */
static void replay(struct wal_store *store, struct applied *applied)
{
    static struct wal__scan_result facts;
    const struct wal__log *log = &store->core.log;
    struct wal__segment *segment = wal__log_segment(log, 1);
    struct wal__scan_start start;
    struct wal__log view;

    assert_non_null(segment);
    assert_true(wal__segment_is_rewritten(&segment->header));
    memcpy((void *)&view, log, sizeof(view));
    view.client = (struct wal__log_client){.ctx = applied, .apply = apply};
    wal__replay_init_start(segment, &start);
    assert_ok(wal__replay_scan(&view, segment, &start, &facts, NULL));
}

KIT_TEST(replay__records_of_blocks_in_the_order_of_the_log)
{
    struct wal_store *store = kit_store();
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .rate = UINT64_MAX};
    struct applied applied = {.is_ascending = true};
    struct wal_session *sessions[SESSIONS];

    for (int i = 0; i < SESSIONS; i++) {
        char id[8];

        (void)snprintf(id, sizeof(id), "s%d", i);
        sessions[i] = kit_create(store, id);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SESSIONS; i++) {
            char id[16];

            (void)snprintf(id, sizeof(id), "e%d", round);
            kit_append(sessions[i], id, NULL);
        }
    }
    assert_ok(wal_store_compact(store, &options, NULL, NULL));
    replay(store, &applied);
    assert_true(applied.is_ascending);
    assert_int_equal(applied.count, SESSIONS * (ROUNDS + 1));
    assert_int_equal(applied.last, SESSIONS * (ROUNDS + 1));
    assert_true(applied.turns >= SESSIONS * ROUNDS);
    for (int i = 0; i < SESSIONS; i++) {
        wal_session_close(sessions[i]);
    }
    kit_close(store);
}
