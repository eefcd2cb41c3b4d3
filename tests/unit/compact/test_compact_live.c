/*
 * test_compact_live.c - what readers and writers see of a store whose log was
 * compacted: the same as before, of all that is live (SPEC.md 3.9).
 */
#include "agentwal/admin.h"
#include "tests/lib/kit/parts_kit.h"

enum {
    ENTRIES = 400
};

static struct wal_store_compact_result compact(struct wal_store *store,
                                               uint32_t flags)
{
    struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                .flags = flags};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;

    assert_ok(wal_store_compact(store, &options, &result, &error));
    assert_int_equal(result.refused, 0);
    return result;
}

/* Many entries with ids that tell their rank, and payloads that compress. */
static void append_many(struct wal_session *session, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%u", i);
        kit_append(session, id, NULL);
    }
}

static void redact(struct wal_session *session, const char *id)
{
    assert_ok(
        wal_session_redact(session, kit_text(id), kit_text("why"), NULL, NULL));
}

KIT_TEST(compact__resent_entry_that_was_erased_is_a_duplicate)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_entry entry = kit_entry("a", NULL, "{\"id\":\"a\"}");
    struct wal_error error = KIT_ERROR;

    kit_append_all(session, "a b");
    redact(session, "a");
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).erased_records, 1);
    assert_ok(kit_try_append(session, &entry, &result, &error));
    assert_int_equal(result.duplicates, 1);
    /* What is left of it is compared. */
    entry.type = kit_text("custom");
    assert_int_equal(kit_try_append(session, &entry, &result, &error),
                     WAL_EEXISTS);
    /* A second compaction finds nothing to erase. */
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).erased_records, 0);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(compact__erased_compaction_still_begins_the_branch)
{
    struct wal_entry_cursor_options since = {
        .struct_size = sizeof(since),
        .flags = WAL_ENTRY_CURSOR_SINCE_COMPACTION};
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_compact_options options = {.struct_size = sizeof(options),
                                          .first_kept = kit_text("b"),
                                          .summary = kit_text("a secret")};
    struct wal_append_result result = {.struct_size = sizeof(result)};

    kit_append_all(session, "a b c");
    assert_ok(wal_session_compact(session, &options, NULL, &result, NULL));
    redact(session, result.last_id);
    kit_append(session, "d", NULL);
    for (int i = 0; i < 3; i++) {
        const char *ids = kit_list_ids(session, &since);

        assert_memory_equal(ids, "b c ", 4);
        assert_string_equal(ids + strlen(ids) - 2, " d");
        (void)compact(store, WAL_STORE_COMPACT_ERASE);
    }
    wal_session_close(session);
    kit_close(store);
}

/* The slices of all entries are compared after the last one was read. */
KIT_TEST(compact__pinned_slices_stay)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .flags = WAL_ENTRY_CURSOR_PINNED};
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry *entries = calloc(ENTRIES, sizeof(*entries));
    struct wal_entry_cursor *cursor = NULL;

    assert_non_null(entries);
    append_many(session, ENTRIES);
    (void)compact(store, 0);
    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    for (uint32_t i = 0; i < ENTRIES; i++) {
        entries[i].struct_size = sizeof(entries[i]);
        assert_ok(wal_entry_cursor_next(cursor, &entries[i], NULL));
    }
    for (uint32_t i = 0; i < ENTRIES; i++) {
        char id[16];
        char payload[32];

        (void)snprintf(id, sizeof(id), "e%u", i);
        (void)snprintf(payload, sizeof(payload), "{\"id\":\"%s\"}", id);
        assert_slice(entries[i].id, id);
        assert_slice(entries[i].payload, payload);
        if (i > 0) {
            (void)snprintf(id, sizeof(id), "e%u", i - 1);
            assert_slice(entries[i].parent_id, id);
        }
    }
    wal_entry_cursor_close(cursor);
    free(entries);
    wal_session_close(session);
    kit_close(store);
}

/* A handle that has the former tail segment as its tail. */
KIT_TEST(compact__other_handle_whose_tail_was_rewritten)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_store *other;
    struct wal_session *seen;

    kit_append_all(session, "a b");
    (void)compact(store, 0);
    kit_append(session, "c", NULL);
    other = kit_open("store", 0);
    seen = kit_session(other, "s");
    assert_branch(seen, "a b c");
    for (int i = 0; i < 3; i++) {
        (void)compact(store, 0);
        assert_branch(seen, "a b c");
    }
    kit_append(seen, "d", NULL);
    kit_append(session, "e", NULL);
    assert_branch(seen, "a b c d e");
    assert_branch(session, "a b c d e");
    (void)compact(other, 0);
    assert_branch(session, "a b c d e");
    wal_session_close(seen);
    kit_close(other);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(compact__open_cursors_go_on)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_entry_cursor *cursor = NULL;
    struct wal_doc_cursor *docs = NULL;

    append_many(session, ENTRIES);
    (void)kit_put(store, session, "k1", "1");
    (void)kit_put(store, session, "k2", "2");
    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    assert_ok(wal_doc_cursor_open(store, session, NULL, &docs, NULL));
    assert_ok(wal_doc_cursor_next(docs, &doc, NULL));
    for (uint32_t i = 0; i < ENTRIES; i++) {
        char id[16];

        if (i % 100 == 50) {
            (void)compact(store, WAL_STORE_COMPACT_ERASE);
            (void)snprintf(id, sizeof(id), "z%u", i);
            kit_append(session, id, NULL);
        }
        (void)snprintf(id, sizeof(id), "e%u", i);
        assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
        assert_slice(entry.id, id);
    }
    assert_ok(wal_doc_cursor_next(docs, &doc, NULL));
    assert_slice(doc.key, "k2");
    assert_slice(doc.value, "2");
    assert_int_equal(wal_doc_cursor_next(docs, &doc, NULL), WAL_END);
    wal_doc_cursor_close(docs);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(compact__cursor_of_a_deleted_session_says_so)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    struct wal_error error = KIT_ERROR;

    append_many(session, ENTRIES);
    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    assert_ok(wal_session_delete(session, NULL));
    (void)compact(store, 0);
    assert_int_equal(wal_entry_cursor_next(cursor, &entry, &error),
                     WAL_ENOTFOUND);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    kit_close(store);
}

/* Without the files of index/, and of the catalogue. */
KIT_TEST(compact__opens_without_derived_files)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;

    kit_append_all(session, "a b c");
    fork = kit_fork(session, "b", "f");
    kit_append(fork, "x", NULL);
    assert_ok(wal_session_delete(session, NULL));
    (void)compact(store, WAL_STORE_COMPACT_ERASE);
    wal_session_close(session);
    wal_session_close(fork);
    kit_close(store);
    assert_int_equal(system("rm -f store/index/*"), 0);
    store = kit_store();
    fork = kit_session(store, "f");
    assert_branch(fork, "a b x");
    assert_int_equal(wal_session_open(store, kit_text("s"), &session, NULL),
                     WAL_ENOTFOUND);
    wal_session_close(fork);
    kit_close(store);
}

/* Damages the INDEX in the oldest segment's file. */
static void damage_index(void)
{
    static const char magic[] = "AGWALIDX";
    FILE *file;
    char *bytes = malloc(64u << 20);
    size_t size;
    char *at;

    assert_non_null(bytes);
    assert_int_equal(system("cp \"$(ls store/log/*.seg | head -n 1)\" oldest"),
                     0);
    file = fopen("oldest", "r+b");
    assert_non_null(file);
    size = fread(bytes, 1, 64u << 20, file);
    at = memmem(bytes, size, magic, sizeof(magic) - 1);
    assert_non_null(at);
    assert_int_equal(fseek(file, at - bytes + 20, SEEK_SET), 0);
    assert_int_equal(fputc(~at[20], file), (uint8_t)~at[20]);
    assert_int_equal(fclose(file), 0);
    free(bytes);
    assert_int_equal(system("cp oldest \"$(ls store/log/*.seg | head -n 1)\""),
                     0);
}

/* All but the first line, which counts the bytes of records that are there. */
static void assert_same(struct wal_store *store, struct wal_session *session,
                        const char *before)
{
    char *now = kit_snapshot(store, session);

    assert_string_equal(strchr(now, '\n'), strchr(before, '\n'));
    free(now);
}

/* The records of its blocks are applied again, in the order of the log. */
KIT_TEST(compact__index_of_a_rewritten_segment_is_lost)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;
    struct wal_session *gone = kit_create(store, "gone");
    char *before[2];

    append_many(session, ENTRIES);
    kit_append(gone, "g", NULL);
    fork = kit_fork(session, "e7", "f");
    for (int i = 0; i < 20; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "x%d", i);
        kit_append(fork, id, NULL);
        kit_append(session, id, NULL);
        (void)kit_put(store, i % 2 == 0 ? session : fork, "k",
                      i % 4 < 2 ? "1" : "\"two\"");
    }
    redact(session, "e9");
    redact(fork, "e3");
    kit_move_head(session, "left", "e4");
    kit_move_head(session, "main", "x3");
    assert_ok(wal_session_delete(gone, NULL));
    wal_session_close(gone);
    (void)compact(store, WAL_STORE_COMPACT_ERASE);
    before[0] = kit_snapshot(store, session);
    before[1] = kit_snapshot(store, fork);
    wal_session_close(session);
    wal_session_close(fork);
    kit_close(store);
    assert_int_equal(system("rm -f store/index/*"), 0);
    damage_index();
    for (int i = 0; i < 2; i++) {
        store = kit_open("store", i == 0 ? 0 : WAL_OPEN_PREAD);
        session = kit_session(store, "s");
        fork = kit_session(store, "f");
        assert_same(store, session, before[0]);
        assert_same(store, fork, before[1]);
        assert_int_equal(wal_session_open(store, kit_text("gone"), &gone, NULL),
                         WAL_ENOTFOUND);
        wal_session_close(session);
        wal_session_close(fork);
        kit_close(store);
    }
    free(before[0]);
    free(before[1]);
}

/* The source of a fork was deleted after the fork was made, and a fork of the
 * fork after that: by sequence alone the fork is known when its source goes. */
KIT_TEST(compact__index_lost_and_source_deleted)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;
    struct wal_session *last;

    kit_append_all(session, "a b c");
    fork = kit_fork(session, "b", "f");
    kit_append(fork, "x", NULL);
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    last = kit_fork(fork, "x", "g");
    kit_append(last, "y", NULL);
    assert_ok(wal_session_delete(fork, NULL));
    wal_session_close(fork);
    wal_session_close(last);
    (void)compact(store, WAL_STORE_COMPACT_ERASE);
    kit_close(store);
    assert_int_equal(system("rm -f store/index/*"), 0);
    damage_index();
    store = kit_store();
    last = kit_session(store, "g");
    assert_branch(last, "a b x y");
    wal_session_close(last);
    kit_close(store);
}
