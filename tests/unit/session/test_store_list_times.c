/*
 * test_store_list_times.c - tests of the order of lists: the times of entries,
 * then the newest record; pages while sessions move; the filter by time.
 */
#include <stdlib.h>

#include "tests/lib/kit/store_kit.h"

static void add(struct wal_store *store, const char *id, int64_t created_ms)
{
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text(id),
                                          .cwd = kit_text("/w"),
                                          .created_ms = created_ms};
    struct wal_session *session = NULL;

    assert_ok(wal_session_create(store, &options, &session, NULL));
    wal_session_close(session);
}

/* Appends an entry of the second `second` of 2020, or of now when that is
 * negative. */
static void append(struct wal_store *store, const char *id, int second)
{
    struct wal_session *session = kit_session(store, id);
    struct wal_entry entry = kit_entry(NULL, NULL, "{}");
    char time[32];

    (void)snprintf(time, sizeof(time), "2020-01-01T00:00:%02dZ", second);
    if (second >= 0) {
        entry.timestamp = kit_text(time);
    }
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    wal_session_close(session);
}

enum {
    YEAR_SECONDS = 1577836800 /* start of 2020 */
};

static int64_t at(int second)
{
    return ((int64_t)YEAR_SECONDS + second) * 1000;
}

/* The ids of a page of at most `page` sessions on one line, valid until the
 * next call; `position` is where it begins, and where the next one does. */
static const char *read_page(struct wal_store *store,
                             struct wal_session_cursor_options options,
                             char position[WAL_CURSOR_TEXT_SIZE], int page)
{
    static char text[256];
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;

    options.struct_size = sizeof(options);
    options.after = kit_text(position);
    text[0] = '\0';
    assert_ok(wal_session_cursor_open(store, &options, &list, NULL));
    while (page-- > 0 && wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
        size_t size = strlen(text);

        (void)snprintf(text + size, sizeof(text) - size, "%s%.*s",
                       size == 0 ? "" : " ", (int)info.id.size,
                       (const char *)info.id.data);
    }
    assert_ok(wal_session_cursor_encode(list, position, NULL));
    wal_session_cursor_close(list);
    return text;
}

static const char *listed(struct wal_store *store, int64_t changed_after)
{
    const struct wal_session_cursor_options options = {.changed_after =
                                                           changed_after};
    char position[WAL_CURSOR_TEXT_SIZE] = "";

    return read_page(store, options, position, 100);
}

/* Opens the store again: with its indexes, or from the log alone. */
static struct wal_store *reopen(struct wal_store *store, bool has_index)
{
    kit_close(store);
    if (!has_index) {
        assert_int_equal(system("rm -rf store/index/*"), 0);
    }
    return kit_open("store", 0);
}

KIT_TEST(list_times__order_is_that_of_entries)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;
    struct wal_session_info info;

    add(store, "a", at(1));
    add(store, "b", at(2));
    add(store, "c", at(3));
    assert_string_equal(listed(store, 0), "c b a");
    append(store, "b", 9);
    append(store, "a", 5);
    append(store, "c", 7);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(listed(store, 0), "b c a");
        session = kit_session(store, "a");
        info = kit_info(session);
        assert_int_equal(info.created_ms, at(1));
        assert_int_equal(info.updated_ms, at(5));
        wal_session_close(session);
        store = reopen(store, i == 0);
    }
    append(store, "c", -1);
    assert_string_equal(listed(store, 0), "c b a");
    /* An older entry moves nothing, and makes the session older. */
    append(store, "c", 0);
    assert_string_equal(listed(store, 0), "c b a");
    session = kit_session(store, "c");
    assert_int_equal(kit_info(session).created_ms, at(0));
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(list_times__ties_are_in_the_order_of_records)
{
    struct wal_store *store = kit_store();

    add(store, "a", at(1));
    add(store, "b", at(1));
    add(store, "c", at(1));
    append(store, "c", 5);
    append(store, "b", 5);
    append(store, "a", 5);
    append(store, "b", 4);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(listed(store, 0), "b a c");
        store = reopen(store, i == 0);
    }
    kit_close(store);
}

/* As in a store to which an older library imported. */
KIT_TEST(list_times__first_entry_is_older_than_the_session)
{
    struct wal_store *store = kit_store();

    add(store, "a", at(3));
    append(store, "a", 3);
    add(store, "b", 0);
    assert_string_equal(listed(store, 0), "b a");
    append(store, "b", 2);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(listed(store, 0), "a b");
        store = reopen(store, i == 0);
    }
    append(store, "b", 4);
    assert_string_equal(listed(store, 0), "b a");
    kit_close(store);
}

KIT_TEST(list_times__pages_while_sessions_change)
{
    const struct wal_session_cursor_options filters[] = {
        {.flags = 0}, {.cwd = kit_text("/w")}};

    for (size_t i = 0; i < 2; i++) {
        struct wal_store *store = kit_store();
        char position[WAL_CURSOR_TEXT_SIZE] = "";
        char id[2] = "a";

        for (int n = 0; n < 6; n++, id[0]++) {
            add(store, id, at(10 * n));
            append(store, id, 10 * n);
        }
        assert_string_equal(read_page(store, filters[i], position, 2), "f e");
        append(store, "f", 51);   /* returned, moves to the front */
        append(store, "c", 52);   /* not returned, moves to the front */
        append(store, "e", 1);    /* returned, stays */
        add(store, "new", at(5)); /* sorts after the position */
        store = reopen(store, true);
        assert_string_equal(read_page(store, filters[i], position, 2), "d b");
        append(store, "d", 2); /* a tie, returned: stays before */
        assert_string_equal(read_page(store, filters[i], position, 9), "new a");
        assert_string_equal(read_page(store, filters[i], position, 9), "");
        kit_close(store);
        assert_int_equal(system("rm -rf store"), 0);
    }
}

KIT_TEST(list_times__changed_after)
{
    struct wal_store *store = kit_store();
    struct wal_session_cursor_options lineage = {.struct_size = sizeof(lineage),
                                                 .flags =
                                                     WAL_SESSION_CURSOR_LINEAGE,
                                                 .lineage_of = kit_text("a"),
                                                 .changed_after = 1};
    struct wal_session_cursor *list = NULL;

    add(store, "a", at(1));
    add(store, "b", at(2));
    add(store, "c", at(3));
    append(store, "a", 8);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(listed(store, at(0)), "a c b");
        assert_string_equal(listed(store, at(2)), "a c");
        assert_string_equal(listed(store, at(3)), "a");
        assert_string_equal(listed(store, at(8) - 1), "a");
        assert_string_equal(listed(store, at(8)), "");
        assert_string_equal(listed(store, -1), "a c b");
        store = reopen(store, i == 0);
    }
    assert_int_equal(wal_session_cursor_open(store, &lineage, &list, NULL),
                     WAL_EINVAL);
    assert_null(list);
    kit_close(store);
}

/* Whatever their times: what a follower has to look at. */
KIT_TEST(list_times__recorded_after)
{
    struct wal_store *store = kit_store();
    struct wal_session_cursor_options options = {.flags = 0};
    char start[WAL_CURSOR_TEXT_SIZE];
    struct wal_session *session;

    add(store, "a", at(3));
    add(store, "b", at(2));
    store = reopen(store, true);
    session = kit_session(store, "b");
    options.recorded_after = kit_info(session).last_sequence;
    wal_session_close(session);
    for (int i = 0; i < 2; i++) {
        start[0] = '\0';
        assert_string_equal(read_page(store, options, start, 9), "");
        store = reopen(store, i == 0);
    }
    append(store, "a", 1);
    add(store, "c", at(9));
    for (int i = 0; i < 3; i++) {
        start[0] = '\0';
        assert_string_equal(read_page(store, options, start, 1), "c");
        assert_string_equal(read_page(store, options, start, 9), "a");
        store = reopen(store, i == 0);
    }
    kit_close(store);
}

/* What an older library wrote, and what no library writes. */
KIT_TEST(list_times__other_positions_are_refused)
{
    static const char *const texts[] = {
        "0000000000000003-00000001",
        "00000000000003e8-0000000000000003-0000000",
        "00000000000003e8-0000000000000003-00000001x",
        "00000000000003e8_0000000000000003-00000001",
        "00000000000003e8-0000000000000003_00000001",
        "00000000000003E8-0000000000000003-00000001",
        "0000000000000000-0000000000000003-00000000",
        "00000000000003e8-0000000000000000-00000000",
    };

    struct wal_store *store = kit_store();
    struct wal_session_cursor *list = NULL;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct wal_session_cursor_options options = {
            .struct_size = sizeof(options), .after = kit_text(texts[i])};

        assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL),
                         WAL_EINVAL);
    }
    assert_null(list);
    kit_close(store);
}
