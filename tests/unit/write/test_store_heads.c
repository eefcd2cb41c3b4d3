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

    assert_done(wal_head_move(session, &head, NULL, kit_error()));
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
    char was[256];

    memset(was, 'x', sizeof(was));
    assert_done(wal_head_move(bench->session, &head, was, kit_error()));
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
