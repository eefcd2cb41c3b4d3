/*
 * test_store_moving.c - the operations of agents that used another session
 * store, done with agentwal.h: a complete run for each of the designs in
 * README's tables.
 */
#include "tests/lib/kit/parts_kit.h"

#define METADATA                                                           \
    "{\"model\":\"m-1\",\"agentName\":\"\",\"turnCount\":5,"               \
    "\"totalTokens\":1200,\"totalCostUsd\":0.0234,\"exitReason\":\"end\"," \
    "\"share\":{\"url\":\"https://example.org/s\"},"                       \
    "\"revert\":{\"messageID\":\"m2\",\"partID\":\"p1\"},"                 \
    "\"summary\":{\"additions\":1,\"deletions\":2,\"files\":3},"           \
    "\"customPrompt\":\"be brief\"}"

static struct wal_session_change metadata(const char *json)
{
    struct wal_session_change change = {.struct_size = sizeof(change),
                                        .fields = WAL_CHANGE_METADATA,
                                        .metadata = kit_text(json)};

    return change;
}

static int32_t finish(void *ctx, const struct wal_session_info *now,
                      struct wal_session_change *change)
{
    (void)ctx;
    assert_slice(now->metadata, "");
    *change = metadata(METADATA);
    return 0;
}

KIT_TEST(moving__metadata_of_every_design_is_returned)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *resumed;
    struct wal_session *fork;

    kit_append_all(session, "a b");
    assert_ok(wal_session_update(session, finish, NULL, NULL));
    wal_session_close(session);
    kit_close(store);
    store = kit_store();
    resumed = kit_session(store, "s");
    assert_slice(kit_info(resumed).metadata, METADATA);
    assert_branch(resumed, "a b");
    fork = kit_fork(resumed, NULL, "f");
    assert_slice(kit_info(fork).metadata, METADATA);
    assert_branch(fork, "a b");
    wal_session_close(fork);
    wal_session_close(resumed);
    kit_close(store);
}

/* Save passes all messages that the caller has, and its metadata. */
static void save(struct wal_session *session, uint32_t count, const char *json,
                 uint32_t appended)
{
    const struct wal_entry entries[] = {kit_entry("a", NULL, "1"),
                                        kit_entry("b", NULL, "2"),
                                        kit_entry("c", NULL, "3")};
    const struct wal_session_change change = metadata(json);
    const struct wal_batch batch = {.struct_size = sizeof(batch),
                                    .entry_count = count,
                                    .entries = entries,
                                    .change = &change};
    struct wal_append_result result = {.struct_size = sizeof(result)};

    assert_ok(wal_batch_commit(session, &batch, NULL, &result, NULL));
    assert_int_equal(result.appended, appended);
    assert_int_equal(result.duplicates, count - appended);
}

KIT_TEST(moving__save_writes_metadata_and_missing_entries)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    uint64_t before;

    save(session, 2, "{\"turns\":1}", 2);
    save(session, 3, "{\"turns\":2}", 1);
    assert_branch(session, "a b c");
    assert_slice(kit_info(session).metadata, "{\"turns\":2}");
    before = kit_last_sequence(store);
    save(session, 3, "{\"turns\":2}", 0);
    assert_int_equal(kit_last_sequence(store), before);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(moving__append_and_save_is_all_or_nothing)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    const struct wal_entry entry = kit_entry("d", "missing", "4");
    const struct wal_session_change change = metadata("{\"turns\":9}");
    const struct wal_batch batch = {.struct_size = sizeof(batch),
                                    .entry_count = 1,
                                    .entries = &entry,
                                    .change = &change};
    struct wal_error error = KIT_ERROR;

    save(session, 1, "{\"turns\":1}", 1);
    assert_int_equal(wal_batch_commit(session, &batch, NULL, NULL, &error),
                     WAL_ENOPARENT);
    assert_branch(session, "a");
    assert_slice(kit_info(session).metadata, "{\"turns\":1}");
    wal_session_close(session);
    kit_close(store);
}

/* branch_session counts messages; a fork names the entry of that rank. */
KIT_TEST(moving__branch_after_an_index)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .skip = 2};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *fork = NULL;
    struct wal_entry_cursor *cursor = NULL;

    kit_append_all(session, "a b c d");
    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    assert_ok(wal_session_fork(session, entry.id, NULL, &fork, NULL));
    assert_branch(fork, "a b c");
    wal_entry_cursor_close(cursor);
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(moving__parts_stream_as_versions_of_a_document)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    uint64_t first;

    first = kit_put(store, session, "message/m1/part/p1", "\"Hel\"");
    kit_put(store, session, "message/m1/part/p1", "\"Hello\"");
    kit_put(store, session, "message/m1", "{\"role\":\"assistant\"}");
    kit_put(store, session, "message/m2", "{\"role\":\"user\"}");
    assert_string_equal(kit_docs(store, session, 0, "message/m1"),
                        "message/m1={\"role\":\"assistant\"} "
                        "message/m1/part/p1=\"Hello\"");
    assert_string_equal(kit_value(store, session, "message/m1/part/p1", first),
                        "\"Hel\"");
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(moving__fork_has_a_separate_title)
{
    const struct wal_session_options options = {
        .struct_size = sizeof(options), .title = kit_text("Work (fork)")};
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork = NULL;

    kit_append_all(session, "a b");
    assert_ok(wal_session_fork(session, kit_text("a"), &options, &fork, NULL));
    assert_slice(kit_info(fork).title, "Work (fork)");
    assert_slice(kit_info(fork).parent_id, "s");
    assert_branch(fork, "a");
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(moving__session_moves_to_another_project)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    const struct wal_session_change change = {.struct_size = sizeof(change),
                                              .fields = WAL_CHANGE_PROJECT,
                                              .project = kit_text("4f2a")};
    const struct wal_batch batch = {.struct_size = sizeof(batch),
                                    .change = &change};
    const struct wal_session_cursor_options wanted = {
        .struct_size = sizeof(wanted), .project = kit_text("4f2a")};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;

    assert_ok(wal_batch_commit(session, &batch, NULL, NULL, NULL));
    assert_ok(wal_session_cursor_open(store, &wanted, &list, NULL));
    assert_ok(wal_session_cursor_next(list, &info, NULL));
    assert_slice(info.id, "s");
    wal_session_cursor_close(list);
    wal_session_close(session);
    kit_close(store);
}
