/*
 * test_store_head_move.c - tests of moving, making and removing heads
 * (SPEC.md 2.8, 5.5).
 */
#include "tests/lib/kit/parts_kit.h"

struct bench {
    struct wal_store *store;
    struct wal_session *session;
};

static struct bench begin(void)
{
    struct bench bench = {.store = kit_store()};

    bench.session = kit_create(bench.store, "s");
    kit_append_all(bench.session, "a b c");
    return bench;
}

static void end(struct bench *bench)
{
    wal_session_close(bench->session);
    kit_close(bench->store);
}

static void reopen(struct bench *bench)
{
    char *before = kit_snapshot(bench->store, bench->session);

    end(bench);
    bench->store = kit_store();
    bench->session = kit_session(bench->store, "s");
    assert_unchanged(bench->store, bench->session, before);
}

static void moved(struct bench *bench, struct wal_head head,
                  const char *previous)
{
    struct wal_error error = KIT_ERROR;
    char was[256];

    memset(was, 'x', sizeof(was));
    if (wal_head_move(bench->session, &head, was, &error) != WAL_OK) {
        fail_msg("%d: %s", error.status, error.text);
    }
    assert_string_equal(was, previous);
}

static void refused(struct bench *bench, struct wal_head head,
                    enum wal_status status, const char *actual)
{
    char *before = kit_snapshot(bench->store, bench->session);
    struct wal_error error = KIT_ERROR;
    char was[256] = "kept";

    assert_int_equal(wal_head_move(bench->session, &head, was, &error), status);
    assert_int_equal(error.status, status);
    assert_string_equal(error.actual, actual);
    assert_string_equal(was, "kept");
    assert_unchanged(bench->store, bench->session, before);
}

static void left(struct bench *bench, struct wal_head head)
{
    char *before = kit_snapshot(bench->store, bench->session);

    assert_ok(wal_head_move(bench->session, &head, NULL, NULL));
    assert_unchanged(bench->store, bench->session, before);
}

KIT_TEST(main__moves_to_empty_and_back)
{
    struct bench bench = begin();
    char id[256];

    moved(&bench, kit_head(NULL, NULL, NULL), "c");
    for (int i = 0; i < 2; i++) {
        assert_branch(bench.session, "");
        assert_all_entries(bench.session, "a b c");
        assert_slice(kit_info(bench.session).head, "");
        assert_int_equal(
            wal_head_get(bench.session, 0, kit_text(NULL), id, NULL),
            WAL_ENOTFOUND);
        reopen(&bench);
    }
    left(&bench, kit_head("main", NULL, "c"));
    moved(&bench, kit_head("main", "b", ""), "");
    assert_branch(bench.session, "a b");
    moved(&bench, kit_head("main", NULL, "b"), "b");
    kit_append(bench.session, "r", NULL);
    assert_branch(bench.session, "r");
    assert_parent(bench.session, "r", "");
    moved(&bench, kit_head("main", "c", "r"), "r");
    reopen(&bench);
    assert_branch(bench.session, "a b c");
    end(&bench);
}

KIT_TEST(main__appends_continue_where_it_was_moved)
{
    struct bench bench = begin();

    kit_move_head(bench.session, "main", "a");
    kit_append(bench.session, "d", NULL);
    assert_branch(bench.session, "a d");
    assert_parent(bench.session, "d", "a");
    kit_append(bench.session, "e", "c");
    assert_branch(bench.session, "a d");
    reopen(&bench);
    assert_slice(kit_info(bench.session).head, "d");
    end(&bench);
}

KIT_TEST(head__conflicting_head_names_the_present_one)
{
    struct bench bench = begin();

    refused(&bench, kit_head("main", "a", "b"), WAL_ECONFLICT, "c");
    refused(&bench, kit_head("main", "a", ""), WAL_ECONFLICT, "c");
    refused(&bench, kit_head("main", "a", "nobody"), WAL_ECONFLICT, "c");
    refused(&bench, kit_head("new", "a", "b"), WAL_ECONFLICT, "");
    moved(&bench, kit_head("new", "a", ""), "");
    refused(&bench, kit_head("new", "b", ""), WAL_ECONFLICT, "a");
    refused(&bench, kit_head("new", NULL, "b"), WAL_ECONFLICT, "a");
    moved(&bench, kit_head("new", "b", "a"), "a");
    moved(&bench, kit_head("new", NULL, "b"), "b");
    reopen(&bench);
    assert_string_equal(kit_heads(bench.session), "main=c");
    end(&bench);
}

/* Whatever was expected, so that a move may be repeated. */
KIT_TEST(head__duplicate_append_does_not_move_it)
{
    struct bench bench = begin();
    struct wal_head head = kit_head("mark", "b", "");

    left(&bench, kit_head("main", "c", "a"));
    head.note = kit_text("why");
    moved(&bench, head, "");
    left(&bench, head);
    left(&bench, kit_head("mark", "b", "nobody"));
    head.note = kit_text("other");
    head.expected = kit_text("b");
    moved(&bench, head, "b");
    assert_string_equal(kit_heads(bench.session), "main=c mark=b(other)");
    reopen(&bench);
    /* Removed twice, with a note or without one. */
    head = kit_head("mark", NULL, "b");
    head.note = kit_text("done");
    moved(&bench, head, "b");
    left(&bench, head);
    left(&bench, kit_head("mark", NULL, NULL));
    head.name = kit_text("never was");
    left(&bench, head);
    reopen(&bench);
    end(&bench);
}

KIT_TEST(main__note_is_returned)
{
    struct bench bench = begin();
    struct wal_head head = kit_head("main", "c", NULL);

    head.note = kit_text("here");
    moved(&bench, head, "c");
    assert_string_equal(kit_heads(bench.session), "main=c(here)");
    left(&bench, head);
    kit_append(bench.session, "d", NULL);
    assert_string_equal(kit_heads(bench.session), "main=d");
    head.entry_id = kit_text("d");
    moved(&bench, head, "d");
    assert_string_equal(kit_heads(bench.session), "main=d(here)");
    head = kit_head("main", NULL, NULL);
    head.note = kit_text("start anew");
    moved(&bench, head, "d");
    left(&bench, head);
    reopen(&bench);
    end(&bench);
}

KIT_TEST(head__each_stream_has_one)
{
    struct bench bench = begin();
    struct wal_entry entry = kit_entry("t", NULL, "{}");
    struct wal_head head = kit_head("mark", "t", NULL);

    entry.stream = 7;
    assert_ok(kit_try_append(bench.session, &entry, NULL, NULL));
    refused(&bench, head, WAL_ENOTFOUND, "");
    head.stream = 7;
    moved(&bench, head, "");
    kit_move_head(bench.session, "mark", "a");
    assert_string_equal(kit_heads(bench.session),
                        "main=c main=t mark=a mark=t");
    head = kit_head("main", NULL, "t");
    head.stream = 7;
    moved(&bench, head, "t");
    assert_string_equal(kit_heads(bench.session), "main=c mark=a mark=t");
    reopen(&bench);
    end(&bench);
}

KIT_TEST(head__missing_entries_and_misuse)
{
    struct bench bench = begin();
    struct wal_head head = kit_head("mark", "nobody", NULL);
    char text[4098];

    memset(text, 'n', 4097);
    text[4097] = '\0';
    refused(&bench, head, WAL_ENOTFOUND, "");
    head.entry_id = kit_text("a");
    head.stream = 256;
    refused(&bench, head, WAL_EINVAL, "");
    head.stream = 0;
    head.note = kit_text(text);
    refused(&bench, head, WAL_ETOOBIG, "");
    head.note.size--;
    moved(&bench, head, "");
    head.name = (struct wal_slice){text, 256};
    refused(&bench, head, WAL_ETOOBIG, "");
    head.name.size--;
    moved(&bench, head, "");
    head.flags = 2;
    refused(&bench, head, WAL_EINVAL, "");
    head.flags = 0;
    head.struct_size--;
    refused(&bench, head, WAL_EINVAL, "");
    assert_int_equal(wal_head_move(bench.session, NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_head_move(NULL, &head, NULL, NULL), WAL_EINVAL);
    reopen(&bench);
    end(&bench);
}

KIT_TEST(fork__does_not_copy_named_heads)
{
    struct bench bench = begin();
    struct wal_session *fork;

    kit_move_head(bench.session, "mark", "a");
    fork = kit_fork(bench.session, "b", "f");
    assert_string_equal(kit_heads(fork), "main=b");
    /* A shared entry may be the target, one after the fork point may not. */
    kit_move_head(fork, "mark", "a");
    struct wal_head head = kit_head("mark", "c", NULL);

    assert_int_equal(wal_head_move(fork, &head, NULL, NULL), WAL_ENOTFOUND);
    kit_move_head(fork, "main", NULL);
    assert_string_equal(kit_heads(fork), "mark=a");
    assert_string_equal(kit_heads(bench.session), "main=c mark=a");
    wal_session_close(fork);
    fork = kit_fork(bench.session, NULL, "g");
    assert_string_equal(kit_heads(fork), "main=c");
    wal_session_close(fork);
    end(&bench);
}
