/*
 * test_store_heads.c - tests of heads: their lists, single ones, and the
 * branches that end at them; moving, making and removing them (SPEC.md 2.8,
 * 5.5).
 */
#include "tests/lib/kit/parts_kit.h"
#include "tests/lib/kit/store_kit.h"

static void append_to(struct wal_session *session, uint32_t stream, const char *id)
{
    struct wal_entry entry = kit_entry(id, NULL, "1");

    entry.stream = stream;
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
}

/* entry null: removed. */
static void move(struct wal_session *session, uint32_t stream, const char *name, const char *entry,
                 const char *note)
{
    struct wal_head head = {.struct_size = sizeof(head),
                            .stream = stream,
                            .name = kit_text(name),
                            .entry_id = kit_text(entry),
                            .note = kit_text(note)};
    struct wal_error error = KIT_ERROR;

    if (wal_head_move(session, &head, NULL, &error) != WAL_OK) {
        fail_msg("%s: %s", name, error.text);
    }
}

/* stream:name=entry(note), separated by a blank; versions apart. */
static void check_heads(struct wal_session *session, const char *expected)
{
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_head_cursor *heads = NULL;
    char text[512] = "";

    assert_ok(wal_head_cursor_open(session, &heads, NULL));
    while (wal_head_cursor_next(heads, &head, NULL) == WAL_OK) {
        size_t size = strlen(text);

        (void)snprintf(
            text + size, sizeof(text) - size, "%s%u:%.*s=%.*s(%.*s)", size == 0 ? "" : " ",
            head.stream, (int)head.name.size, (const char *)head.name.data, (int)head.entry_id.size,
            (const char *)head.entry_id.data, (int)head.note.size, (const char *)head.note.data);
        assert_int_equal(head.struct_size, sizeof(head));
        assert_int_equal(head.flags, 0);
        assert_true(head.version > 0);
    }
    assert_int_equal(wal_head_cursor_next(heads, &head, NULL), WAL_END);
    wal_head_cursor_close(heads);
    assert_string_equal(text, expected);
}

static uint64_t version_of(struct wal_session *session, const char *name)
{
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_head_cursor *heads = NULL;
    uint64_t version = 0;

    assert_ok(wal_head_cursor_open(session, &heads, NULL));
    while (wal_head_cursor_next(heads, &head, NULL) == WAL_OK) {
        if (kit_slice_is(head.name, name)) {
            version = head.version;
        }
    }
    wal_head_cursor_close(heads);
    return version;
}

static void check_head(struct wal_session *session, uint32_t stream, const char *name,
                       const char *expected)
{
    char id[256] = "?";
    enum wal_status status = wal_head_get(session, stream, kit_text(name), id, NULL);

    if (expected == NULL) {
        assert_int_equal(status, WAL_ENOTFOUND);
        assert_string_equal(id, "?");
    } else {
        assert_ok(status);
        assert_string_equal(id, expected);
    }
}

KIT_TEST(heads__of_an_empty_session)
{
    struct kit_bench bench = kit_bench("");

    check_heads(bench.session, "");
    check_head(bench.session, 0, "", NULL);
    check_head(bench.session, 0, "main", NULL);
    check_head(bench.session, 0, "none", NULL);
}

KIT_TEST(heads__main_first_then_by_stream_and_name)
{
    struct kit_bench bench = kit_bench("");

    append_to(bench.session, 7, "x");
    append_to(bench.session, 1, "t");
    kit_append_all(bench.session, "a b c");
    move(bench.session, 1, "b", "t", "");
    move(bench.session, 0, "b", "b", "why");
    move(bench.session, 0, "ab", "a", "");
    move(bench.session, 0, "a", "c", "note \xc3\xa9");
    move(bench.session, 0, "\xc3\xa9", "a", "");
    move(bench.session, 0, "gone", "a", "");
    move(bench.session, 0, "gone", NULL, "");
    for (int round = 0; round < 3; round++) {
        check_heads(bench.session, "0:main=c() 1:main=t() 7:main=x() "
                                   "0:a=c(note \xc3\xa9) 0:ab=a() 0:b=b(why) "
                                   "0:\xc3\xa9=a() 1:b=t()");
        check_head(bench.session, 0, "", "c");
        check_head(bench.session, 7, "main", "x");
        check_head(bench.session, 0, "b", "b");
        check_head(bench.session, 1, "b", "t");
        check_head(bench.session, 2, "b", NULL);
        check_head(bench.session, 0, "gone", NULL);
        kit_reopen(&bench, round == 0 ? 0 : WAL_OPEN_PREAD);
    }
}

KIT_TEST(heads__version_is_the_sequence_of_the_move)
{
    struct kit_bench bench = kit_bench("");
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_entry entry = kit_entry("b", NULL, "1");
    uint64_t moved;

    kit_append_all(bench.session, "a");
    assert_ok(kit_try_append(bench.session, &entry, &result, NULL));
    assert_int_equal(version_of(bench.session, "main"), result.sequence);
    move(bench.session, 0, "main", "a", "back");
    moved = version_of(bench.session, "main");
    assert_true(moved > result.sequence);
    check_heads(bench.session, "0:main=a(back)");
    move(bench.session, 0, "x", "b", "");
    assert_true(version_of(bench.session, "x") > moved);
    assert_int_equal(version_of(bench.session, "main"), moved);
    move(bench.session, 0, "main", NULL, "none");
    check_heads(bench.session, "0:x=b()");
    check_head(bench.session, 0, "main", NULL);
    move(bench.session, 0, "main", "b", "");
    entry.id = kit_text("c");
    assert_ok(kit_try_append(bench.session, &entry, &result, NULL));
    kit_reopen(&bench, 0);
    check_heads(bench.session, "0:main=c() 0:x=b()");
    assert_int_equal(version_of(bench.session, "main"), result.sequence);
}

KIT_TEST(heads__of_a_fork_begin_at_its_record)
{
    struct kit_bench bench = kit_bench("");
    struct wal_session *fork;
    struct wal_session_info info;

    kit_append_all(bench.session, "a b");
    move(bench.session, 0, "x", "a", "");
    append_to(bench.session, 1, "t");
    fork = kit_fork(bench.session, "b", "f");
    info = kit_info(fork);
    for (int round = 0; round < 2; round++) {
        check_heads(fork, "0:main=b()");
        assert_int_equal(version_of(fork, "main"), info.last_sequence);
        check_head(fork, 0, "x", NULL);
        check_head(fork, 0, "main", "b");
        wal_session_close(fork);
        kit_reopen(&bench, 0);
        fork = kit_session(bench.store, "f");
        info = kit_info(fork);
    }
    move(fork, 0, "main", "a", "back");
    move(fork, 0, "y", "b", "");
    move(fork, 0, "main", "b", "again");
    check_heads(fork, "0:main=b(again) 0:y=b()");
    move(fork, 0, "main", "a", "");
    kit_append_all(fork, "c");
    check_heads(fork, "0:main=c() 0:y=b()");
    assert_branch(fork, "a c");
    check_heads(bench.session, "0:main=b() 1:main=t() 0:x=a()");
}

KIT_TEST(heads__list_is_a_copy)
{
    struct kit_bench bench = kit_bench("");
    struct wal_head first = {.struct_size = sizeof(first)};
    struct wal_head second = {.struct_size = sizeof(second)};
    struct wal_head_cursor *heads = NULL;

    kit_append_all(bench.session, "a b");
    move(bench.session, 0, "x", "a", "note");
    assert_ok(wal_head_cursor_open(bench.session, &heads, NULL));
    assert_ok(wal_head_cursor_next(heads, &first, NULL));
    move(bench.session, 0, "x", "b", "other");
    move(bench.session, 0, "y", "b", "");
    assert_ok(wal_head_cursor_next(heads, &second, NULL));
    wal_session_close(bench.session);
    assert_slice(first.name, "main");
    assert_slice(first.entry_id, "b");
    assert_slice(second.name, "x");
    assert_slice(second.entry_id, "a");
    assert_slice(second.note, "note");
    assert_int_equal(wal_head_cursor_next(heads, &second, NULL), WAL_END);
    wal_head_cursor_close(heads);
    bench.session = kit_session(bench.store, "s");
}

KIT_TEST(heads__of_a_deleted_session)
{
    struct kit_bench bench = kit_bench("");
    struct wal_head_cursor *heads = NULL;

    kit_append_all(bench.session, "a");
    assert_ok(wal_session_delete(bench.session, NULL));
    assert_int_equal(wal_head_cursor_open(bench.session, &heads, NULL), WAL_ENOTFOUND);
    assert_null(heads);
    check_head(bench.session, 0, "main", NULL);
}

KIT_TEST(branch__ends_at_the_named_head)
{
    struct kit_bench bench = kit_bench("");
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};
    struct wal_error error = KIT_ERROR;
    struct wal_session *fork;
    struct wal_entry_cursor *cursor = NULL;

    kit_append_all(bench.session, "a b c");
    kit_append(bench.session, "d", "a");
    append_to(bench.session, 1, "t");
    move(bench.session, 0, "side", "d", "");
    move(bench.session, 1, "side", "t", "");
    fork = kit_fork(bench.session, "c", "f");
    kit_append_all(fork, "e");
    move(fork, 0, "old", "b", "");
    for (int round = 0; round < 2; round++) {
        options.head = kit_text("side");
        assert_string_equal(kit_list_ids(bench.session, &options), "a d");
        assert_int_equal(wal_entry_cursor_open(fork, &options, &cursor, &error), WAL_ENOTFOUND);
        assert_error(&error, WAL_ENOTFOUND, "\"side\"");
        options.stream = 1;
        assert_string_equal(kit_list_ids(bench.session, &options), "t");
        options.stream = 0;
        options.head = kit_text("main");
        assert_string_equal(kit_list_ids(bench.session, &options), "a b c");
        options.head = kit_text("old");
        assert_string_equal(kit_list_ids(fork, &options), "a b");
        wal_session_close(fork);
        kit_reopen(&bench, WAL_OPEN_PREAD);
        fork = kit_session(bench.store, "f");
    }
    options.head = kit_text("side");
    move(bench.session, 0, "side", NULL, "");
    assert_int_equal(wal_entry_cursor_open(bench.session, &options, &cursor, NULL), WAL_ENOTFOUND);
    assert_null(cursor);
    options.head = kit_text("main");
    options.stream = 5;
    assert_string_equal(kit_list_ids(bench.session, &options), "");
}

KIT_TEST(heads__misuse_is_refused)
{
    struct kit_bench bench = kit_bench("");
    struct wal_head head = {.struct_size = 1};
    struct wal_head_cursor *heads = NULL;
    char id[256];

    kit_append_all(bench.session, "a");
    assert_int_equal(wal_head_cursor_open(NULL, &heads, NULL), WAL_EINVAL);
    assert_int_equal(wal_head_cursor_open(bench.session, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_head_cursor_next(NULL, &head, NULL), WAL_EINVAL);
    assert_int_equal(wal_head_get(NULL, 0, kit_text(""), id, NULL), WAL_EINVAL);
    assert_int_equal(wal_head_get(bench.session, 256, kit_text(""), id, NULL), WAL_EINVAL);
    assert_int_equal(wal_head_get(bench.session, 0, kit_text("\xff"), id, NULL), WAL_EINVAL);
    assert_int_equal(wal_head_get(bench.session, 0, kit_text(""), NULL, NULL), WAL_EINVAL);
    assert_ok(wal_head_cursor_open(bench.session, &heads, NULL));
    assert_int_equal(wal_head_cursor_next(heads, &head, NULL), WAL_EINVAL);
    assert_int_equal(wal_head_cursor_next(heads, NULL, NULL), WAL_EINVAL);
    wal_head_cursor_close(heads);
    wal_head_cursor_close(NULL);
}

static void moved(struct kit_bench *bench, struct wal_head head, const char *previous)
{
    struct wal_error error = KIT_ERROR;
    char was[256];

    memset(was, 'x', sizeof(was));
    if (wal_head_move(bench->session, &head, was, &error) != WAL_OK) {
        fail_msg("%d: %s", error.status, error.text);
    }
    assert_string_equal(was, previous);
}

static void refused(struct kit_bench *bench, struct wal_head head, enum wal_status status,
                    const char *actual)
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

static void left(struct kit_bench *bench, struct wal_head head)
{
    char *before = kit_snapshot(bench->store, bench->session);

    assert_ok(wal_head_move(bench->session, &head, NULL, NULL));
    assert_unchanged(bench->store, bench->session, before);
}

KIT_TEST(main__moves_to_empty_and_back)
{
    struct kit_bench bench = kit_bench("a b c");
    char id[256];

    moved(&bench, kit_head(NULL, NULL, NULL), "c");
    for (int i = 0; i < 2; i++) {
        assert_branch(bench.session, "");
        assert_all_entries(bench.session, "a b c");
        assert_slice(kit_info(bench.session).head, "");
        assert_int_equal(wal_head_get(bench.session, 0, kit_text(NULL), id, NULL), WAL_ENOTFOUND);
        kit_reopen_unchanged(&bench);
    }
    left(&bench, kit_head("main", NULL, "c"));
    moved(&bench, kit_head("main", "b", ""), "");
    assert_branch(bench.session, "a b");
    moved(&bench, kit_head("main", NULL, "b"), "b");
    kit_append(bench.session, "r", NULL);
    assert_branch(bench.session, "r");
    assert_parent(bench.session, "r", "");
    moved(&bench, kit_head("main", "c", "r"), "r");
    kit_reopen_unchanged(&bench);
    assert_branch(bench.session, "a b c");
}

KIT_TEST(main__appends_continue_where_it_was_moved)
{
    struct kit_bench bench = kit_bench("a b c");

    kit_move_head(bench.session, "main", "a");
    kit_append(bench.session, "d", NULL);
    assert_branch(bench.session, "a d");
    assert_parent(bench.session, "d", "a");
    kit_append(bench.session, "e", "c");
    assert_branch(bench.session, "a d");
    kit_reopen_unchanged(&bench);
    assert_slice(kit_info(bench.session).head, "d");
}

KIT_TEST(head__conflicting_head_names_the_present_one)
{
    struct kit_bench bench = kit_bench("a b c");

    refused(&bench, kit_head("main", "a", "b"), WAL_ECONFLICT, "c");
    refused(&bench, kit_head("main", "a", ""), WAL_ECONFLICT, "c");
    refused(&bench, kit_head("main", "a", "nobody"), WAL_ECONFLICT, "c");
    refused(&bench, kit_head("new", "a", "b"), WAL_ECONFLICT, "");
    moved(&bench, kit_head("new", "a", ""), "");
    refused(&bench, kit_head("new", "b", ""), WAL_ECONFLICT, "a");
    refused(&bench, kit_head("new", NULL, "b"), WAL_ECONFLICT, "a");
    moved(&bench, kit_head("new", "b", "a"), "a");
    moved(&bench, kit_head("new", NULL, "b"), "b");
    kit_reopen_unchanged(&bench);
    assert_string_equal(kit_heads(bench.session), "main=c");
}

/* Whatever was expected, so that a move may be repeated. */
KIT_TEST(head__duplicate_append_does_not_move_it)
{
    struct kit_bench bench = kit_bench("a b c");
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
    kit_reopen_unchanged(&bench);
    /* Removed twice, with a note or without one. */
    head = kit_head("mark", NULL, "b");
    head.note = kit_text("done");
    moved(&bench, head, "b");
    left(&bench, head);
    left(&bench, kit_head("mark", NULL, NULL));
    head.name = kit_text("never was");
    left(&bench, head);
    kit_reopen_unchanged(&bench);
}

KIT_TEST(main__note_is_returned)
{
    struct kit_bench bench = kit_bench("a b c");
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
    kit_reopen_unchanged(&bench);
}

KIT_TEST(head__each_stream_has_one)
{
    struct kit_bench bench = kit_bench("a b c");
    struct wal_entry entry = kit_entry("t", NULL, "{}");
    struct wal_head head = kit_head("mark", "t", NULL);

    entry.stream = 7;
    assert_ok(kit_try_append(bench.session, &entry, NULL, NULL));
    refused(&bench, head, WAL_ENOTFOUND, "");
    head.stream = 7;
    moved(&bench, head, "");
    kit_move_head(bench.session, "mark", "a");
    assert_string_equal(kit_heads(bench.session), "main=c main=t mark=a mark=t");
    head = kit_head("main", NULL, "t");
    head.stream = 7;
    moved(&bench, head, "t");
    assert_string_equal(kit_heads(bench.session), "main=c mark=a mark=t");
    kit_reopen_unchanged(&bench);
}

KIT_TEST(head__missing_entries_and_misuse)
{
    struct kit_bench bench = kit_bench("a b c");
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
    assert_int_equal(wal_head_move(bench.session, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_head_move(NULL, &head, NULL, NULL), WAL_EINVAL);
    kit_reopen_unchanged(&bench);
}

KIT_TEST(fork__does_not_copy_named_heads)
{
    struct kit_bench bench = kit_bench("a b c");
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
}
