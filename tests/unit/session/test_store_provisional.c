/*
 * test_store_provisional.c - tests of deltas (SPEC.md 5.1): they are under the head and do not move
 * it, are not counted, cannot be named, and are dropped by compaction once their message is there.
 */
#include <inttypes.h>

#include "agentwal/admin.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/kit/reading_kit.h"

enum {
    DELTAS = WAL_ENTRY_CURSOR_DELTAS,
    STREAMED = 20000,
    STREAMED_BYTES = 7 /* of text in each */
};

static struct wal_entry delta_entry(const char *id, const char *parent)
{
    struct wal_entry entry = kit_entry(id, parent, "{\"text\":\"part\"}");

    entry.type = kit_text(WAL_TYPE_MESSAGE_DELTA_BATCH);
    return entry;
}

/* Appends deltas with these ids, separated by a blank, each under the head. */
static void stream(struct wal_session *session, const char *ids)
{
    char copy[256];
    char *rest = NULL;

    (void)snprintf(copy, sizeof(copy), "%s", ids);
    for (char *id = strtok_r(copy, " ", &rest); id != NULL; id = strtok_r(NULL, " ", &rest)) {
        struct wal_entry entry = delta_entry(id, NULL);

        assert_ok(kit_try_append(session, &entry, NULL, NULL));
    }
}

static void assert_streamed(struct wal_session *session, const char *branch, const char *all)
{
    assert_string_equal(reading_ids(session, 0, DELTAS), branch);
    assert_string_equal(reading_ids(session, 1, DELTAS), all);
}

static bool is_there(struct wal_session *session, const char *id)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status = wal_entry_get(session, kit_text(id), &entry, NULL);

    assert_true(status == WAL_OK || status == WAL_ENOTFOUND);
    return status == WAL_OK;
}

/* --- writing ------------------------------------------------------------ */

KIT_TEST(delta__moves_no_head_and_is_not_counted)
{
    struct reading reading = reading_begin();
    struct wal_append_options expects = {
        .struct_size = sizeof(expects), .flags = WAL_APPEND_EXPECT, .expected_tail = kit_text("a")};
    struct wal_entry message = kit_entry("b", NULL, "{}");
    char head[256];

    kit_append_all(reading.session, "a");
    stream(reading.session, "1 2 3");
    for (int round = 0; round < 2; round++) {
        assert_int_equal(kit_info(reading.session).entries, 1);
        assert_slice(kit_info(reading.session).head, "a");
        assert_ok(wal_head_get(reading.session, 0, kit_text("main"), head, NULL));
        assert_string_equal(head, "a");
        assert_parent(reading.session, "1", "a");
        assert_parent(reading.session, "3", "a");
        reading_reopen(&reading, 0);
    }
    assert_ok(wal_append(reading.session, &message, 1, &expects, NULL, NULL));
    assert_parent(reading.session, "b", "a");
    assert_int_equal(kit_info(reading.session).entries, 2);
    reading_deinit(&reading);
}

/* A reply that is streamed before the session has any entry. */
KIT_TEST(delta__before_the_first_entry)
{
    struct reading reading = reading_begin();
    struct wal_entry_cursor *cursor;

    stream(reading.session, "1 2");
    assert_int_equal(kit_info(reading.session).entries, 0);
    assert_branch(reading.session, "");
    assert_streamed(reading.session, "1 2", "1 2");
    cursor = reading_open(reading.session, 0, DELTAS);
    reading_assert_next(cursor, "1", "", 0);
    reading_assert_next(cursor, "2", "", 0);
    reading_assert_end(cursor);
    kit_append_all(reading.session, "a b");
    assert_streamed(reading.session, "a b", "1 2 a b");
    assert_parent(reading.session, "a", "");
    (void)kit_compact(reading.store, 0);
    assert_streamed(reading.session, "a b", "a b");
    reading_deinit(&reading);
}

KIT_TEST(delta__that_moves_the_head_is_refused)
{
    struct reading reading = reading_begin();
    struct wal_entry entry = delta_entry("1", NULL);
    struct wal_error error = KIT_ERROR;

    kit_append_all(reading.session, "a");
    entry.flags = WAL_ENTRY_HEAD_MOVE;
    assert_int_equal(kit_try_append(reading.session, &entry, NULL, &error), WAL_EINVAL);
    assert_error(&error, WAL_EINVAL, "does not move the head");
    entry.flags = WAL_ENTRY_HEAD_KEEP;
    assert_ok(kit_try_append(reading.session, &entry, NULL, &error));
    assert_streamed(reading.session, "a 1", "a 1");
    reading_deinit(&reading);
}

/* Every way to name a delta as something to build on. */
KIT_TEST(delta__cannot_be_named)
{
    struct reading reading = reading_begin();
    struct wal_session *fork = NULL;
    struct wal_error error = KIT_ERROR;
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_entry_cursor_options up_to = WAL_INIT(wal_entry_cursor_options);
    struct wal_compact_options kept = WAL_INIT(wal_compact_options);
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry = kit_entry("b", "1", "{}");

    kit_append_all(reading.session, "a");
    stream(reading.session, "1");
    assert_int_equal(kit_try_append(reading.session, &entry, NULL, &error), WAL_ENOPARENT);
    assert_error(&error, WAL_ENOPARENT, "\"1\" is a delta: name the entry that it is under");
    entry = delta_entry("2", "1");
    assert_int_equal(kit_try_append(reading.session, &entry, NULL, &error), WAL_ENOPARENT);
    assert_int_equal(wal_session_fork(reading.session, kit_text("1"), &options, &fork, &error),
                     WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "is a delta");
    head.entry_id = kit_text("1");
    assert_int_equal(wal_head_move(reading.session, &head, NULL, &error), WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "is a delta");
    head.name = kit_text("mine");
    assert_int_equal(wal_head_move(reading.session, &head, NULL, &error), WAL_ENOTFOUND);
    up_to.up_to = kit_text("1");
    assert_int_equal(wal_entry_cursor_open(reading.session, &up_to, &cursor, &error),
                     WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "is a delta");
    kept.first_kept = kit_text("1");
    kept.summary = kit_text("all");
    assert_int_equal(wal_session_compact(reading.session, &kept, NULL, NULL, &error),
                     WAL_ENOTFOUND);
    entry = kit_entry("s", NULL, "{\"sourceSessionId\":\"s\",\"sourceEntryId\":\"1\"}");
    entry.type = kit_text(WAL_TYPE_BRANCH_SUMMARY);
    assert_int_equal(kit_try_append(reading.session, &entry, NULL, &error), WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "is a delta");
    assert_streamed(reading.session, "a 1", "a 1");
    reading_deinit(&reading);
}

/* The same, where the delta is in the batch. */
KIT_TEST(delta__of_the_batch_cannot_be_named)
{
    struct reading reading = reading_begin();
    struct wal_entry entries[3] = {delta_entry("1", NULL), kit_entry("b", "1", "{}"),
                                   delta_entry("2", NULL)};
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_batch batch = {.struct_size = sizeof(batch), .entry_count = 2, .entries = entries};
    struct wal_error error = KIT_ERROR;

    kit_append_all(reading.session, "a");
    assert_int_equal(wal_batch_commit(reading.session, &batch, NULL, NULL, &error), WAL_ENOPARENT);
    batch.entry_count = 1;
    batch.head_count = 1;
    batch.heads = &head;
    head.entry_id = kit_text("1");
    assert_int_equal(wal_batch_commit(reading.session, &batch, NULL, NULL, &error), WAL_ENOTFOUND);
    assert_streamed(reading.session, "a", "a");
    /* Delta, its message, and a delta of the next one, in one batch. */
    entries[1].parent_id = kit_text("");
    batch.entry_count = 3;
    batch.head_count = 0;
    assert_ok(wal_batch_commit(reading.session, &batch, NULL, NULL, &error));
    assert_parent(reading.session, "b", "a");
    assert_parent(reading.session, "2", "b");
    assert_streamed(reading.session, "a b 2", "a 1 b 2");
    assert_int_equal(kit_info(reading.session).entries, 2);
    reading_deinit(&reading);
}

KIT_TEST(delta__sent_again_before_and_after_compaction)
{
    struct reading reading = reading_begin();
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_entry entry = delta_entry("1", NULL);
    struct wal_entry other = kit_entry("1", NULL, "{}");

    kit_append_all(reading.session, "a");
    stream(reading.session, "1");
    kit_append_all(reading.session, "b");
    assert_ok(kit_try_append(reading.session, &entry, &result, NULL));
    assert_int_equal(result.duplicates, 1);
    assert_int_equal(kit_try_append(reading.session, &other, &result, NULL), WAL_EEXISTS);
    reading_reopen(&reading, 0);
    assert_ok(kit_try_append(reading.session, &entry, &result, NULL));
    assert_int_equal(result.duplicates, 1);
    (void)kit_compact(reading.store, 0);
    assert_false(is_there(reading.session, "1"));
    /* It is new now, and of the message after the head. */
    assert_ok(kit_try_append(reading.session, &entry, &result, NULL));
    assert_int_equal(result.appended, 1);
    assert_streamed(reading.session, "a b 1", "a b 1");
    reading_deinit(&reading);
}

/* The feature bits in MANIFEST. */
static uint32_t features(void)
{
    uint8_t bytes[WAL__MANIFEST_SIZE];
    struct wal__manifest manifest;
    FILE *file = fopen("store/MANIFEST", "rb");

    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, sizeof(bytes), file), sizeof(bytes));
    (void)fclose(file);
    assert_int_equal(wal__manifest_decode(bytes, &manifest), WAL__FMT_OK);
    return manifest.features.incompat;
}

KIT_TEST(delta__first_one_adds_the_feature)
{
    struct reading reading = reading_begin();
    struct wal_entry line = delta_entry("0", NULL);

    line.flags = WAL_ENTRY_LINE;
    kit_append_all(reading.session, "a");
    assert_ok(kit_try_append(reading.session, &line, NULL, NULL));
    assert_int_equal(features(), 0);
    stream(reading.session, "1");
    assert_int_equal(features(), WAL__INCOMPAT_PROVISIONAL);
    stream(reading.session, "2");
    reading_reopen(&reading, 0);
    stream(reading.session, "3");
    assert_int_equal(features(), WAL__INCOMPAT_PROVISIONAL);
    reading_deinit(&reading);
}

/* --- reading ------------------------------------------------------------ */

KIT_TEST(delta__is_read_until_its_message_is_there)
{
    struct reading reading = reading_begin();
    struct wal_entry_cursor_options last = {
        .struct_size = sizeof(last), .flags = DELTAS, .last = 2};
    struct wal_entry_cursor *cursor;

    kit_append_all(reading.session, "a b");
    stream(reading.session, "1 2 3");
    for (int round = 0; round < 3; round++) {
        assert_branch(reading.session, "a b");
        assert_all_entries(reading.session, "a b");
        assert_streamed(reading.session, "a b 1 2 3", "a b 1 2 3");
        assert_string_equal(kit_list_ids(reading.session, &last), "2 3");
        for (uint32_t mode = 0; mode < 2; mode++) {
            cursor = reading_open(reading.session, mode, DELTAS);
            assert_int_equal(wal_entry_cursor_remaining(cursor), 5);
            reading_assert_next(cursor, "a", "", 0);
            reading_assert_next(cursor, "b", "a", 1);
            reading_assert_next(cursor, "1", "b", 2);
            reading_assert_next(cursor, "2", "b", 2);
            reading_assert_next(cursor, "3", "b", 2);
            reading_assert_end(cursor);
        }
        reading_reopen(&reading, round == 0 ? 0 : WAL_OPEN_PREAD);
    }
    kit_append_all(reading.session, "c");
    stream(reading.session, "4");
    assert_streamed(reading.session, "a b c 4", "a b 1 2 3 c 4");
    kit_append_all(reading.session, "d");
    assert_streamed(reading.session, "a b c d", "a b 1 2 3 c 4 d");
    reading_deinit(&reading);
}

/* A rewind, another try, and the deltas of both. */
KIT_TEST(delta__of_two_answers_to_one_message)
{
    struct reading reading = reading_begin();
    struct wal_head head = WAL_INIT(wal_head);

    kit_append_all(reading.session, "a");
    stream(reading.session, "1");
    kit_append_all(reading.session, "b c");
    head.entry_id = kit_text("a");
    assert_ok(wal_head_move(reading.session, &head, NULL, NULL));
    assert_streamed(reading.session, "a", "a 1 b c");
    stream(reading.session, "2");
    assert_streamed(reading.session, "a 2", "a 1 b c 2");
    (void)kit_compact(reading.store, 0);
    assert_streamed(reading.session, "a 2", "a b c 2");
    kit_append_all(reading.session, "d");
    assert_streamed(reading.session, "a d", "a b c 2 d");
    (void)kit_compact(reading.store, 0);
    assert_streamed(reading.session, "a d", "a b c d");
    reading_deinit(&reading);
}

KIT_TEST(delta__of_streams_are_separate)
{
    struct reading reading = reading_begin();
    struct wal_entry_cursor_options one = {
        .struct_size = sizeof(one), .flags = DELTAS, .stream = 1};
    struct wal_entry entry = delta_entry("1", NULL);

    kit_append_all(reading.session, "a");
    entry.stream = 1;
    assert_ok(kit_try_append(reading.session, &entry, NULL, NULL));
    kit_append_all(reading.session, "b");
    for (int round = 0; round < 2; round++) {
        assert_string_equal(kit_list_ids(reading.session, &one), "1");
        assert_streamed(reading.session, "a b", "a b");
        (void)kit_compact(reading.store, 0);
    }
    reading_deinit(&reading);
}

KIT_TEST(delta__of_a_fork_and_of_its_source)
{
    struct reading reading = reading_begin();
    struct wal_session *fork;

    kit_append_all(reading.session, "a");
    stream(reading.session, "1");
    fork = kit_fork(reading.session, "a", "f");
    stream(fork, "2");
    stream(reading.session, "3");
    for (int round = 0; round < 2; round++) {
        assert_streamed(reading.session, "a 1 3", "a 1 3");
        assert_streamed(fork, "a 2", "a 2");
        assert_false(is_there(fork, "3"));
        (void)kit_compact(reading.store, 0);
    }
    kit_append_all(fork, "b");
    (void)kit_compact(reading.store, 0);
    assert_streamed(reading.session, "a 1 3", "a 1 3");
    assert_streamed(fork, "a b", "a b");
    kit_append_all(reading.session, "c");
    (void)kit_compact(reading.store, 0);
    assert_streamed(reading.session, "a c", "a c");
    assert_false(is_there(reading.session, "1"));
    wal_session_close(fork);
    reading_deinit(&reading);
}

/* --- compaction --------------------------------------------------------- */

/* A cursor that is open goes on after the deltas that are left. */
KIT_TEST(compact__under_a_cursor_that_reads_deltas)
{
    struct reading reading = reading_begin();
    struct wal_entry_cursor *cursors[2];

    kit_append_all(reading.session, "a");
    stream(reading.session, "1 2");
    kit_append_all(reading.session, "b");
    stream(reading.session, "3 4");
    for (uint32_t mode = 0; mode < 2; mode++) {
        cursors[mode] = reading_open(reading.session, mode, DELTAS);
        reading_assert_next(cursors[mode], "a", "", 0);
    }
    (void)kit_compact(reading.store, 0);
    for (uint32_t mode = 0; mode < 2; mode++) {
        reading_assert_next(cursors[mode], "b", "a", 1);
        reading_assert_next(cursors[mode], "3", "b", 2);
        reading_assert_next(cursors[mode], "4", "b", 2);
        reading_assert_end(cursors[mode]);
    }
    reading_deinit(&reading);
}

KIT_TEST(compact__keeps_deltas_when_asked)
{
    struct reading reading = reading_begin();
    struct wal_store_compact_options both = {.struct_size = sizeof(both),
                                             .flags = WAL_STORE_COMPACT_KEEP_DELTAS |
                                                      WAL_STORE_COMPACT_ERASE};
    struct wal_error error = KIT_ERROR;

    kit_append_all(reading.session, "a");
    stream(reading.session, "1 2");
    kit_append_all(reading.session, "b");
    assert_int_equal(wal_store_compact(reading.store, &both, NULL, &error), WAL_EINVAL);
    assert_error(&error, WAL_EINVAL, "exclude each other");
    assert_int_equal(kit_compact(reading.store, WAL_STORE_COMPACT_KEEP_DELTAS).dropped_records, 0);
    assert_streamed(reading.session, "a b", "a 1 2 b");
    assert_true(is_there(reading.session, "2"));
    assert_int_equal(kit_compact(reading.store, WAL_STORE_COMPACT_ERASE).dropped_records, 2);
    assert_streamed(reading.session, "a b", "a b");
    reading_deinit(&reading);
}

KIT_TEST(delta__that_is_redacted_is_hidden_and_erased)
{
    struct reading reading = reading_begin();
    struct wal_entry entry = WAL_INIT(wal_entry);

    kit_append_all(reading.session, "a");
    stream(reading.session, "1 2");
    reading_redact(reading.session, "1", "a key");
    assert_streamed(reading.session, "a 2", "a 2");
    assert_string_equal(reading_ids(reading.session, 0, DELTAS | WAL_ENTRY_CURSOR_REDACTED),
                        "a 1 2");
    assert_int_equal(kit_compact(reading.store, WAL_STORE_COMPACT_ERASE).erased_records, 1);
    kit_append_all(reading.session, "b");
    /* Its REDACT names it, so that it stays. */
    assert_int_equal(kit_compact(reading.store, WAL_STORE_COMPACT_ERASE).dropped_records, 1);
    assert_int_equal(wal_entry_get(reading.session, kit_text("1"), &entry, NULL), WAL_EREDACTED);
    assert_false(is_there(reading.session, "2"));
    reading_deinit(&reading);
}

/* A word of a vocabulary in which some are more frequent than others. */
static void write_token(uint64_t *seed, char token[STREAMED_BYTES + 1])
{
    static const char letters[] = "etaoinshrdlu";
    uint64_t random = kit_random(seed);
    uint64_t word = random % 1000 * (random / 1000 % 1000) / 1000;

    for (int i = 0; i < STREAMED_BYTES - 1; i++) {
        word = word * 6364136223846793005U + 1442695040888963407U;
        token[i] = letters[(word >> 33) % (sizeof(letters) - 1)];
    }
    token[STREAMED_BYTES - 1] = ' ';
    token[STREAMED_BYTES] = '\0';
}

/* A long answer, token by token: its deltas leave nothing. */
KIT_TEST(compact__twenty_thousand_deltas_of_one_message)
{
    struct reading reading = reading_begin();
    char *text = calloc(STREAMED + 1, STREAMED_BYTES + 1);
    struct wal_entry message = kit_entry("answer", NULL, NULL);
    struct wal_store_compact_result result;
    uint64_t seed = 1;

    assert_non_null(text);
    strcpy(text, "{\"text\":\"");
    kit_append_all(reading.session, "question");
    for (uint32_t i = 0; i < STREAMED; i++) {
        struct wal_append_options options = {.struct_size = sizeof(options),
                                             .durability = WAL_QUEUED};
        struct wal_entry entry = delta_entry(NULL, NULL);
        char payload[32];
        char token[STREAMED_BYTES + 1];

        write_token(&seed, token);
        (void)snprintf(payload, sizeof(payload), "{\"text\":\"%s\"}", token);
        memcpy(text + 9 + (size_t)i * STREAMED_BYTES, token, STREAMED_BYTES);
        entry.payload = kit_text(payload);
        assert_ok(wal_append(reading.session, &entry, 1, &options, NULL, NULL));
    }
    strcat(text, "\"}");
    message.payload = kit_text(text);
    assert_ok(kit_try_append(reading.session, &message, NULL, NULL));
    assert_int_equal(kit_info(reading.session).entries, 2);
    result = kit_compact(reading.store, 0);
    assert_int_equal(result.dropped_records, STREAMED);
    assert_streamed(reading.session, "question answer", "question answer");
    print_message("20,000 deltas of 140,000 bytes of text: segments of "
                  "%" PRIu64 " bytes became one of %" PRIu64 " with the message\n",
                  result.bytes_before, result.bytes_after);
    assert_true(result.bytes_after <= WAL__SEGMENT_HEADER_SIZE + (uint64_t)64 * 1024);
    free(text);
    reading_deinit(&reading);
}
