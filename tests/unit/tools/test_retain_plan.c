/*
 * test_retain_plan.c - tests of moving a chosen session to the trash (tools/care/retain.c): only as
 * it was when it was chosen. The code is compiled into this test.
 */
#include "tests/lib/kit/parts_kit.h"

#include "tools/care/retain.c"

static struct retain_item choose_session(struct wal_session *session)
{
    static char id[] = "s";
    struct retain_item item = {.id = id};

    item.last_sequence = kit_info(session).last_sequence;
    return item;
}

KIT_TEST(move__unchanged_session_goes)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct retain_item item;

    kit_append(session, "a", NULL);
    item = choose_session(session);
    assert_ok(retain_plan_move(&item, store, NULL));
    assert_int_equal(item.reason, 0);
    assert_true((kit_info(session).flags & WAL_SESSION_TRASHED) != 0);
}

KIT_TEST(move__changed_session_stays)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct retain_item item = choose_session(session);

    kit_append(session, "a", NULL);
    assert_ok(retain_plan_move(&item, store, NULL));
    assert_int_equal(item.reason, RETAIN_CHANGED);
    assert_true((kit_info(session).flags & WAL_SESSION_TRASHED) == 0);
    assert_branch(session, "a");
}

KIT_TEST(move__claimed_and_gone_sessions_have_a_reason)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct retain_item item = choose_session(session);

    assert_ok(wal_session_claim(session, NULL));
    assert_ok(retain_plan_move(&item, other, NULL));
    assert_int_equal(item.reason, RETAIN_CLAIMED);
    assert_ok(wal_session_trash(session, NULL));
    assert_ok(retain_plan_move(&item, other, NULL));
    assert_int_equal(item.reason, RETAIN_GONE);
    assert_ok(wal_session_delete(session, NULL));
    item.reason = (enum retain_reason)0;
    assert_ok(retain_plan_move(&item, other, NULL));
    assert_int_equal(item.reason, RETAIN_GONE);
}
