/*
 * test_store_move.c - sessions that have moved to another store: what is refused, what is not, in
 * other processes and after a reopen; and the operations of agents that used another session store,
 * done with agentwal.h.
 */
#include "agentwal/admin.h"
#include "agentwal/transfer.h"
#include "tests/lib/kit/parts_kit.h"
#include "tests/lib/kit/store_kit.h"

static struct wal_session_move move_to(const char *host, uint64_t number)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);

    move.flags = WAL_SESSION_MOVE_AWAY;
    move.number = number;
    move.moved_ms = 1234;
    memset(move.store, 0xab, sizeof(move.store));
    snprintf(move.host, sizeof(move.host), "%s", host);
    return move;
}

static void go_away(struct wal_session *session)
{
    const struct wal_session_move move = move_to("desk", 3);

    assert_ok(wal_session_set_move(session, &move, NULL));
}

static void come_back(struct wal_session *session)
{
    struct wal_session_move move = move_to("here", 4);

    move.flags = 0;
    assert_ok(wal_session_set_move(session, &move, NULL));
}

static enum wal_status append(struct wal_session *session, const char *id, struct wal_error *error)
{
    const struct wal_entry entry = kit_entry(id, NULL, "{}");

    return wal_append(session, &entry, 1, NULL, NULL, error);
}

static void assert_refused(struct wal_session *session)
{
    struct wal_error error = KIT_ERROR;
    uint64_t before = kit_info(session).entries;

    assert_int_equal(append(session, "refused", &error), WAL_ECLAIMED);
    if (strstr(error.text, "moved to desk") == NULL ||
        strstr(error.text, "--take-back s") == NULL) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(kit_info(session).entries, before);
}

KIT_TEST(move__append_is_refused_with_the_host)
{
    struct kit_bench bench = kit_bench("a b");

    go_away(bench.session);
    assert_refused(bench.session);
    assert_branch(bench.session, "a b");
    assert_int_equal(kit_info(bench.session).flags, WAL_SESSION_MOVED);
}

KIT_TEST(move__other_sessions_go_on)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_session *other = kit_create(bench.store, "other");

    go_away(bench.session);
    assert_ok(append(other, "x", NULL));
}

KIT_TEST(move__it_is_forked_and_the_fork_goes_on)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_session_move move = WAL_INIT(wal_session_move);
    struct wal_session *fork;

    go_away(bench.session);
    fork = kit_fork(bench.session, "b", "fork");
    assert_ok(append(fork, "x", NULL));
    assert_branch(fork, "a b x");
    assert_int_equal(wal_session_get_move(fork, &move, NULL), WAL_ENOTFOUND);
}

KIT_TEST(move__metadata_that_was_changed_before_stays)
{
    struct kit_bench bench = kit_bench("a b");
    const struct wal_session_change change = {
        .struct_size = sizeof(change), .fields = WAL_CHANGE_TITLE, .title = WAL_STR("a title")};
    const struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};

    assert_ok(wal_batch_commit(bench.session, &batch, NULL, NULL, NULL));
    go_away(bench.session);
    assert_true(kit_slice_is(kit_info(bench.session).title, "a title"));
    come_back(bench.session);
    assert_true(kit_slice_is(kit_info(bench.session).title, "a title"));
}

KIT_TEST(move__a_merge_adds_to_it_and_takes_no_mark_along)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_store *other = kit_open("other", WAL_OPEN_CREATE);
    struct wal_session_move move = WAL_INIT(wal_session_move);
    struct wal_session *copy;

    go_away(bench.session);
    assert_ok(wal_store_merge(bench.store, other, NULL, NULL, NULL));
    copy = kit_session(other, "s");
    assert_int_equal(wal_session_get_move(copy, &move, NULL), WAL_ENOTFOUND);
    assert_ok(append(copy, "there", NULL));
    assert_ok(wal_store_merge(other, bench.store, NULL, NULL, NULL));
    assert_branch(bench.session, "a b there");
    assert_refused(bench.session);
}

KIT_TEST(move__salvaged_it_is_away)
{
    struct kit_bench bench = kit_bench("a b");
    const struct wal_salvage_options options = {.struct_size = sizeof(options)};

    go_away(bench.session);
    kit_end(&bench);
    assert_ok(wal_salvage("store", "saved", &options, NULL, NULL));
    bench.store = kit_open("saved", 0);
    bench.session = kit_session(bench.store, "s");
    assert_branch(bench.session, "a b");
    assert_refused(bench.session);
}

KIT_TEST(move__compacted_it_is_away)
{
    struct kit_bench bench = kit_bench("a b");
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .rate = UINT64_MAX, .flags = WAL_STORE_COMPACT_ERASE};

    go_away(bench.session);
    assert_ok(wal_store_compact(bench.store, &options, NULL, NULL));
    assert_refused(bench.session);
    kit_end(&bench);
    bench.store = kit_open("store", 0);
    bench.session = kit_session(bench.store, "s");
    assert_refused(bench.session);
}

KIT_TEST(move__bad_input_is_refused)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_session_move move = move_to("desk", 1);

    assert_int_equal(wal_session_set_move(bench.session, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_set_move(NULL, &move, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_get_move(bench.session, NULL, NULL), WAL_EINVAL);
    move.number = 0;
    assert_int_equal(wal_session_set_move(bench.session, &move, NULL), WAL_EINVAL);
    move = move_to("desk", 1);
    move.flags = 2;
    assert_int_equal(wal_session_set_move(bench.session, &move, NULL), WAL_EINVAL);
    move = move_to("a\nb", 1);
    assert_int_equal(wal_session_set_move(bench.session, &move, NULL), WAL_EINVAL);
    memset(move.host, 'h', sizeof(move.host));
    assert_int_equal(wal_session_set_move(bench.session, &move, NULL), WAL_EINVAL);
    move.host[WAL_SESSION_HOST_SIZE - 1] = '\0';
    assert_ok(wal_session_set_move(bench.session, &move, NULL));
}

KIT_TEST(move__without_a_host_the_text_says_so)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_session_move move = move_to("", 1);

    assert_ok(wal_session_set_move(bench.session, &move, NULL));
    assert_fails(append(bench.session, "x", kit_error()), WAL_ECLAIMED, "moved to another machine");
}

KIT_TEST(move__a_reader_cannot_mark)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_session_move move = move_to("desk", 1);

    go_away(bench.session);
    kit_end(&bench);
    bench.store = kit_open("store", WAL_OPEN_READ_ONLY);
    bench.session = kit_session(bench.store, "s");
    assert_int_equal(wal_session_set_move(bench.session, &move, NULL), WAL_EREADONLY);
    assert_ok(wal_session_get_move(bench.session, &move, NULL));
    assert_int_equal(move.flags, WAL_SESSION_MOVE_AWAY);
}

static struct wal_session_change metadata(const char *json)
{
    struct wal_session_change change = {
        .struct_size = sizeof(change), .fields = WAL_CHANGE_METADATA, .metadata = kit_text(json)};

    return change;
}

/* Save passes all messages that the caller has, and its metadata. */
static void save(struct wal_session *session, uint32_t count, const char *json, uint32_t appended)
{
    const struct wal_entry entries[] = {kit_entry("a", NULL, "1"), kit_entry("b", NULL, "2"),
                                        kit_entry("c", NULL, "3")};
    const struct wal_session_change change = metadata(json);
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .entry_count = count, .entries = entries, .change = &change};
    struct wal_append_result result = {.struct_size = sizeof(result)};

    assert_ok(wal_batch_commit(session, &batch, NULL, &result, NULL));
    assert_int_equal(result.appended, appended);
    assert_int_equal(result.duplicates, count - appended);
}

KIT_TEST(moving__append_and_save_is_all_or_nothing)
{
    struct wal_session *session = kit_create(kit_store(), "s");
    const struct wal_entry entry = kit_entry("d", "missing", "4");
    const struct wal_session_change change = metadata("{\"turns\":9}");
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .entry_count = 1, .entries = &entry, .change = &change};

    save(session, 1, "{\"turns\":1}", 1);
    assert_int_equal(wal_batch_commit(session, &batch, NULL, NULL, kit_error()), WAL_ENOPARENT);
    assert_branch(session, "a");
    assert_slice(kit_info(session).metadata, "{\"turns\":1}");
}
