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

KIT_TEST(delta__that_moves_the_head_is_refused)
{
    struct reading reading = reading_begin();
    struct wal_entry entry = delta_entry("1", NULL);

    kit_append_all(reading.session, "a");
    entry.flags = WAL_ENTRY_HEAD_MOVE;
    assert_fails(kit_try_append(reading.session, &entry, NULL, kit_error()), WAL_EINVAL,
                 "does not move the head");
    entry.flags = WAL_ENTRY_HEAD_KEEP;
    assert_ok(kit_try_append(reading.session, &entry, NULL, kit_error()));
    assert_streamed(reading.session, "a 1", "a 1");
}

/* Every way to name a delta as something to build on. */
KIT_TEST(delta__cannot_be_named)
{
    struct reading reading = reading_begin();
    struct wal_session *fork = NULL;
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_entry_cursor_options up_to = WAL_INIT(wal_entry_cursor_options);
    struct wal_compact_options kept = WAL_INIT(wal_compact_options);
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry = kit_entry("b", "1", "{}");

    kit_append_all(reading.session, "a");
    stream(reading.session, "1");
    assert_fails(kit_try_append(reading.session, &entry, NULL, kit_error()), WAL_ENOPARENT,
                 "\"1\" is a delta: name the entry that it is under");
    entry = delta_entry("2", "1");
    assert_int_equal(kit_try_append(reading.session, &entry, NULL, kit_error()), WAL_ENOPARENT);
    assert_fails(wal_session_fork(reading.session, kit_text("1"), &options, &fork, kit_error()),
                 WAL_ENOTFOUND, "is a delta");
    head.entry_id = kit_text("1");
    assert_fails(wal_head_move(reading.session, &head, NULL, kit_error()), WAL_ENOTFOUND,
                 "is a delta");
    head.name = kit_text("mine");
    assert_int_equal(wal_head_move(reading.session, &head, NULL, kit_error()), WAL_ENOTFOUND);
    up_to.up_to = kit_text("1");
    assert_fails(wal_entry_cursor_open(reading.session, &up_to, &cursor, kit_error()),
                 WAL_ENOTFOUND, "is a delta");
    kept.first_kept = kit_text("1");
    kept.summary = kit_text("all");
    assert_int_equal(wal_session_compact(reading.session, &kept, NULL, NULL, kit_error()),
                     WAL_ENOTFOUND);
    entry = kit_entry("s", NULL, "{\"sourceSessionId\":\"s\",\"sourceEntryId\":\"1\"}");
    entry.type = kit_text(WAL_TYPE_BRANCH_SUMMARY);
    assert_fails(kit_try_append(reading.session, &entry, NULL, kit_error()), WAL_ENOTFOUND,
                 "is a delta");
    assert_streamed(reading.session, "a 1", "a 1");
}

/* The same, where the delta is in the batch. */
KIT_TEST(delta__of_the_batch_cannot_be_named)
{
    struct reading reading = reading_begin();
    struct wal_entry entries[3] = {delta_entry("1", NULL), kit_entry("b", "1", "{}"),
                                   delta_entry("2", NULL)};
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_batch batch = {.struct_size = sizeof(batch), .entry_count = 2, .entries = entries};

    kit_append_all(reading.session, "a");
    assert_int_equal(wal_batch_commit(reading.session, &batch, NULL, NULL, kit_error()),
                     WAL_ENOPARENT);
    batch.entry_count = 1;
    batch.head_count = 1;
    batch.heads = &head;
    head.entry_id = kit_text("1");
    assert_int_equal(wal_batch_commit(reading.session, &batch, NULL, NULL, kit_error()),
                     WAL_ENOTFOUND);
    assert_streamed(reading.session, "a", "a");
    /* Delta, its message, and a delta of the next one, in one batch. */
    entries[1].parent_id = kit_text("");
    batch.entry_count = 3;
    batch.head_count = 0;
    assert_ok(wal_batch_commit(reading.session, &batch, NULL, NULL, kit_error()));
    assert_parent(reading.session, "b", "a");
    assert_parent(reading.session, "2", "b");
    assert_streamed(reading.session, "a b 2", "a 1 b 2");
    assert_int_equal(kit_info(reading.session).entries, 2);
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
}

/* --- reading ------------------------------------------------------------ */

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
    char *text = test_memory((STREAMED + 1) * (STREAMED_BYTES + 1));
    struct wal_entry message = kit_entry("answer", NULL, NULL);
    struct wal_store_compact_result result;
    uint64_t seed = 1;

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
}
