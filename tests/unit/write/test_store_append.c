/*
 * test_store_append.c - tests of wal_append: ids, parents, heads, duplicates, expected tails, and
 * atomic batches.
 */
#include "tests/lib/kit/store_kit.h"

struct bench {
    struct wal_store *store;
    struct wal_session *session;
    struct wal_append_result result;
    struct wal_error error;
};

static struct bench begin(void)
{
    struct bench bench = {.store = kit_store()};

    bench.session = kit_create(bench.store, "s");
    return bench;
}

static void end(struct bench *bench)
{
    wal_session_close(bench->session);
    kit_close(bench->store);
}

/* Closes the store and opens it again. */
static void again(struct bench *bench)
{
    end(bench);
    bench->store = kit_open("store", 0);
    bench->session = kit_session(bench->store, "s");
}

static enum wal_status batch(struct bench *bench, const struct wal_entry *entries, uint32_t count)
{
    bench->result = (struct wal_append_result){.struct_size = sizeof(bench->result)};
    bench->error = KIT_ERROR;
    return wal_append(bench->session, entries, count, NULL, &bench->result, &bench->error);
}

static enum wal_status one(struct bench *bench, struct wal_entry entry)
{
    return batch(bench, &entry, 1);
}

static enum wal_status expecting(struct bench *bench, const char *tail,
                                 const struct wal_entry *entries, uint32_t count)
{
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .flags = WAL_APPEND_EXPECT,
                                         .expected_tail = kit_text(tail)};

    bench->result = (struct wal_append_result){
        .struct_size = sizeof(bench->result), .appended = 7, .last_id = "of the call before"};
    bench->error = KIT_ERROR;
    return wal_append(bench->session, entries, count, &options, &bench->result, &bench->error);
}

static struct wal_entry get(struct bench *bench, const char *id, struct wal_entry_cursor **cursor)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};

    assert_ok(wal_entry_cursor_open(bench->session, NULL, cursor, NULL));
    assert_ok(wal_entry_cursor_get(*cursor, kit_text(id), &entry, NULL));
    return entry;
}

static void check_result(const struct bench *bench, const char *last, uint32_t count,
                         uint32_t duplicates, uint64_t sequence)
{
    assert_string_equal(bench->result.last_id, last);
    assert_int_equal(bench->result.appended, count);
    assert_int_equal(bench->result.duplicates, duplicates);
    assert_int_equal(bench->result.sequence, sequence);
    assert_int_equal(bench->result.struct_size, sizeof(bench->result));
}

/* ------------------------------------------------------------ fields --- */

KIT_TEST(append__defaults_are_filled_in)
{
    struct bench bench = begin();
    struct wal_entry entry = kit_entry(NULL, NULL, "{\"x\":1}");
    struct wal_entry_cursor *cursor = NULL;

    assert_ok(one(&bench, entry));
    assert_int_equal(strlen(bench.result.last_id), 36);
    assert_int_equal(bench.result.last_id[14], '7');
    check_result(&bench, bench.result.last_id, 1, 0, 2);
    entry = get(&bench, bench.result.last_id, &cursor);
    assert_slice(entry.type, "message");
    assert_slice(entry.payload, "{\"x\":1}");
    assert_slice(entry.run_id, "");
    assert_slice(entry.meta, "");
    assert_int_equal(entry.timestamp.size, 24);
    assert_int_equal(((const char *)entry.timestamp.data)[10], 'T');
    assert_int_equal(((const char *)entry.timestamp.data)[23], 'Z');
    assert_int_equal(entry.flags, WAL_ENTRY_ROOT);
    assert_int_equal(entry.stream, 0);
    assert_int_equal(entry.sequence, 2);
    assert_int_equal(entry.depth, 0);
    wal_entry_cursor_close(cursor);
}

KIT_TEST(append__line_of_any_bytes_is_unchanged)
{
    enum { MOST = 16 * 1024 * 1024 };
    struct bench bench = begin();
    struct wal_entry entry = kit_entry("a", NULL, "");
    struct wal_entry_cursor *cursor = NULL;
    uint64_t random = 42;
    char *bytes = test_memory(MOST);

    for (size_t i = 0; i < MOST; i++) {
        bytes[i] = (char)(i < 256 ? i : kit_random(&random));
    }
    entry.flags = WAL_ENTRY_LINE;
    entry.payload = (struct wal_slice){bytes, 1000};
    assert_ok(one(&bench, entry));
    entry.id = kit_text("b");
    entry.payload.size = MOST;
    assert_ok(one(&bench, entry));
    entry.id = kit_text("c");
    entry.payload = kit_text(NULL);
    assert_ok(one(&bench, entry));
    for (int round = 0; round < 2; round++) {
        entry = get(&bench, "a", &cursor);
        assert_int_equal(entry.flags, WAL_ENTRY_LINE | WAL_ENTRY_ROOT);
        assert_int_equal(entry.payload.size, 1000);
        assert_memory_equal(entry.payload.data, bytes, 1000);
        wal_entry_cursor_close(cursor);
        entry = get(&bench, "b", &cursor);
        assert_int_equal(entry.flags, WAL_ENTRY_LINE);
        assert_int_equal(entry.payload.size, MOST);
        assert_memory_equal(entry.payload.data, bytes, MOST);
        wal_entry_cursor_close(cursor);
        entry = get(&bench, "c", &cursor);
        assert_int_equal(entry.payload.size, 0);
        wal_entry_cursor_close(cursor);
        again(&bench);
    }
    assert_branch(bench.session, "a b c");
}

/* ----------------------------------------------------------- parents --- */

KIT_TEST(parent__missing_is_refused)
{
    struct bench bench = begin();
    struct wal_session *other = kit_create(bench.store, "other");
    struct wal_entry entries[2] = {kit_entry("b", "c", "1"), kit_entry("c", NULL, "1")};
    struct wal_entry transcript = kit_entry("t", NULL, "1");

    kit_append(other, "x", NULL);
    kit_append(bench.session, "a", NULL);
    assert_int_equal(one(&bench, kit_entry("b", "none", "1")), WAL_ENOPARENT);
    assert_error(&bench.error, WAL_ENOPARENT, "\"none\"");
    assert_int_equal(one(&bench, kit_entry("b", "x", "1")), WAL_ENOPARENT);
    assert_int_equal(one(&bench, kit_entry("b", "b", "1")), WAL_ENOPARENT);
    assert_int_equal(batch(&bench, entries, 2), WAL_ENOPARENT);
    transcript.stream = 1;
    assert_ok(one(&bench, transcript));
    assert_int_equal(one(&bench, kit_entry("b", "t", "1")), WAL_ENOPARENT);
    transcript = kit_entry("u", "a", "1");
    transcript.stream = 1;
    assert_int_equal(one(&bench, transcript), WAL_ENOPARENT);
    assert_all_entries(bench.session, "a");
}

/* ------------------------------------------------------ expected tail --- */

KIT_TEST(expect__matches_or_returns_the_tail)
{
    struct bench bench = begin();
    struct wal_entry entry = kit_entry("a", NULL, "1");

    assert_int_equal(expecting(&bench, "x", &entry, 1), WAL_ECONFLICT);
    assert_string_equal(bench.error.actual, "");
    assert_ok(expecting(&bench, "", &entry, 1));
    check_result(&bench, "a", 1, 0, 2);
    entry = kit_entry("b", NULL, "1");
    assert_int_equal(expecting(&bench, "", &entry, 1), WAL_ECONFLICT);
    assert_string_equal(bench.error.actual, "a");
    assert_error(&bench.error, WAL_ECONFLICT, "\"a\"");
    assert_ok(expecting(&bench, "a", &entry, 1));
    entry = kit_entry("c", NULL, "1");
    assert_int_equal(expecting(&bench, "a", &entry, 1), WAL_ECONFLICT);
    assert_string_equal(bench.error.actual, "b");
    assert_int_equal(bench.result.appended, 0);
    assert_int_equal(bench.result.sequence, 0);
    assert_string_equal(bench.result.last_id, "");
    assert_all_entries(bench.session, "a b");
}

/* -------------------------------------------------------- duplicates --- */

KIT_TEST(duplicate__compares_supplied_fields_only)
{
    struct bench bench = begin();
    struct wal_entry good = kit_entry("b", "a", "{\"x\":1}");
    struct wal_entry other;

    kit_append(bench.session, "a", NULL);
    good.timestamp = kit_text("noon");
    good.run_id = kit_text("r");
    good.meta = kit_text("{}");
    assert_ok(one(&bench, good));
    assert_ok(one(&bench, good));
    check_result(&bench, "b", 0, 1, 0);
    other = good;
    other.timestamp = kit_text(NULL);
    assert_ok(one(&bench, other));
    other = good;
    other.parent_id = kit_text(NULL);
    assert_ok(one(&bench, other));
    other = good;
    other.timestamp = kit_text("later");
    assert_int_equal(one(&bench, other), WAL_EEXISTS);
    assert_error(&bench.error, WAL_EEXISTS, "\"b\"");
    other = good;
    other.run_id = kit_text(NULL);
    assert_int_equal(one(&bench, other), WAL_EEXISTS);
    other = good;
    other.meta = kit_text("{ }");
    assert_int_equal(one(&bench, other), WAL_EEXISTS);
    other = good;
    other.payload = kit_text("{\"x\":2}");
    assert_int_equal(one(&bench, other), WAL_EEXISTS);
    other = good;
    other.flags = WAL_ENTRY_LINE;
    assert_int_equal(one(&bench, other), WAL_EEXISTS);
    other = good;
    other.parent_id = kit_text(NULL);
    other.flags = WAL_ENTRY_ROOT;
    assert_int_equal(one(&bench, other), WAL_EEXISTS);
    kit_append(bench.session, "c", NULL);
    other = good;
    other.parent_id = kit_text("c");
    assert_int_equal(one(&bench, other), WAL_EEXISTS);
    other.parent_id = kit_text("none");
    assert_int_equal(one(&bench, other), WAL_EEXISTS);
    assert_all_entries(bench.session, "a b c");
}

KIT_TEST(duplicate__in_one_batch_with_another_parent)
{
    struct bench bench = begin();
    struct wal_entry entries[2] = {kit_entry("c", "a", "1"), kit_entry("c", "b", "1")};

    kit_append_all(bench.session, "a b");
    assert_int_equal(batch(&bench, entries, 2), WAL_EEXISTS);
    assert_all_entries(bench.session, "a b");
    entries[1].parent_id = kit_text("a");
    assert_ok(batch(&bench, entries, 2));
    check_result(&bench, "c", 1, 1, 4);
    entries[0] = kit_entry("d", NULL, "1");
    entries[1] = kit_entry("d", NULL, "1");
    entries[1].flags = WAL_ENTRY_ROOT;
    assert_int_equal(batch(&bench, entries, 2), WAL_EEXISTS);
    assert_all_entries(bench.session, "a b c");
}

/* ------------------------------------------------------------- batch --- */

KIT_TEST(batch__many_items_keep_their_order)
{
    enum { COUNT = 20000 };
    struct bench bench = begin();
    struct wal_entry *entries = test_memory(COUNT * sizeof(*entries));
    char(*ids)[16] = calloc(COUNT, sizeof(*ids));
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;

    assert_non_null(ids);
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "e%d", i);
        entries[i] = kit_entry(ids[i], NULL, "{}");
    }
    assert_ok(batch(&bench, entries, COUNT));
    check_result(&bench, ids[COUNT - 1], COUNT, 0, COUNT + 1);
    again(&bench);
    assert_ok(wal_entry_cursor_open(bench.session, NULL, &cursor, NULL));
    for (int i = 0; i < COUNT; i++) {
        assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
        assert_true(kit_slice_is(entry.id, ids[i]));
        assert_true(kit_slice_is(entry.parent_id, i == 0 ? "" : ids[i - 1]));
        assert_int_equal(entry.sequence, i + 2);
    }
    assert_int_equal(wal_entry_cursor_next(cursor, &entry, NULL), WAL_END);
    wal_entry_cursor_close(cursor);
    assert_ok(batch(&bench, entries, COUNT));
    check_result(&bench, ids[COUNT - 1], 0, COUNT, 0);
    free(ids);
}

KIT_TEST(sync__happens_for_durable_appends_only)
{
    struct bench bench = begin();
    struct wal_open_options slow = {.struct_size = sizeof(slow), .idle_mark_ms = 600000};
    struct wal_store_info before = {.struct_size = sizeof(before)};
    struct wal_store_info after = {.struct_size = sizeof(after)};
    struct wal_entry entry = kit_entry("a", NULL, "1");

    end(&bench);
    assert_ok(wal_open("store", &slow, &bench.store, NULL));
    (void)kit_keep(bench.store);
    bench.session = kit_session(bench.store, "s");
    assert_ok(wal_store_get_info(bench.store, &before, NULL));
    kit_append_all(bench.session, "x y z");
    assert_ok(wal_store_get_info(bench.store, &after, NULL));
    assert_int_equal(after.syncs, before.syncs);
    assert_int_equal(after.groups, before.groups + 3);
    assert_ok(one(&bench, entry));
    assert_ok(wal_store_get_info(bench.store, &after, NULL));
    assert_int_equal(after.syncs, before.syncs + 1);
    assert_ok(wal_sync(bench.store, NULL));
    assert_ok(wal_store_get_info(bench.store, &after, NULL));
    assert_int_equal(after.syncs, before.syncs + 1);
    kit_append(bench.session, "w", NULL);
    assert_ok(wal_sync(bench.store, NULL));
    assert_ok(wal_store_get_info(bench.store, &after, NULL));
    assert_int_equal(after.syncs, before.syncs + 2);
}
