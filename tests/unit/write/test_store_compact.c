/*
 * test_store_compact.c - tests of compactions, and of the entries that other entries may name
 * (SPEC.md 5.2, 5.6, 5.7).
 */
#include "tests/lib/kit/parts_kit.h"

static struct kit_bench begin(void)
{
    struct kit_bench bench = kit_bench("a b c d");

    kit_append(bench.session, "side", "a");
    return bench;
}

static void since(struct wal_session *session, const char *ids)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .flags = WAL_ENTRY_CURSOR_SINCE_COMPACTION};

    assert_string_equal(kit_list_ids(session, &options), ids);
}

static struct wal_compact_options options_keeping(const char *first_kept)
{
    struct wal_compact_options options = {.struct_size = sizeof(options),
                                          .first_kept = kit_text(first_kept),
                                          .summary = kit_text("so \"far\"\n")};

    return options;
}

/* Expects a refusal, in place and into a new session, that changes nothing. */
static void refused(struct kit_bench *bench, struct wal_compact_options options,
                    enum wal_status status)
{
    struct wal_session_options into = {.struct_size = sizeof(into), .id = kit_text("f")};
    struct wal_session *fork = NULL;

    for (int i = 0; i < 2; i++) {
        char *before = kit_snapshot(bench->store, bench->session);
        struct wal_error error = KIT_ERROR;

        options.into = i == 0 ? NULL : &into;
        assert_int_equal(wal_session_compact(bench->session, &options, &fork, NULL, &error),
                         status);
        assert_int_equal(error.status, status);
        assert_null(fork);
        assert_unchanged(bench->store, bench->session, before);
        assert_int_equal(wal_session_open(bench->store, kit_text("f"), &fork, NULL), WAL_ENOTFOUND);
    }
}

KIT_TEST(compaction__first_kept_is_not_on_the_branch)
{
    struct kit_bench bench = begin();
    struct wal_session *empty = kit_create(bench.store, "empty");
    struct wal_compact_options options = options_keeping("a");
    char *text = test_memory(4 * 1024 * 1024 + 1);
    struct wal_append_result result = {.struct_size = 1};
    struct wal_session_options into = {.struct_size = sizeof(into)};
    struct wal_session *fork = NULL;

    refused(&bench, options_keeping("side"), WAL_ENOTFOUND);
    refused(&bench, options_keeping("nobody"), WAL_ENOTFOUND);
    refused(&bench, options_keeping(NULL), WAL_EINVAL);
    refused(&bench, options_keeping("\xff"), WAL_EINVAL);
    options.struct_size--;
    refused(&bench, options, WAL_EINVAL);
    options.struct_size++;
    memset(text, 't', 4 * 1024 * 1024 + 1);
    options.summary = (struct wal_slice){text, 4 * 1024 * 1024 + 1};
    refused(&bench, options, WAL_ETOOBIG);
    options.summary = kit_text("\xff");
    refused(&bench, options, WAL_EINVAL);
    options = options_keeping("a");
    assert_int_equal(wal_session_compact(empty, &options, NULL, NULL, NULL), WAL_ENOTFOUND);
    assert_int_equal(wal_session_compact(bench.session, NULL, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_compact(bench.session, &options, NULL, &result, NULL), WAL_EINVAL);
    options.into = &into;
    assert_int_equal(wal_session_compact(bench.session, &options, NULL, NULL, NULL), WAL_EINVAL);
    into.struct_size = 1;
    assert_int_equal(wal_session_compact(bench.session, &options, &fork, NULL, NULL), WAL_EINVAL);
    assert_null(fork);
}

/* A summary of the greatest size, of characters with the longest escapes. */
KIT_TEST(compaction__summary_of_4_mib_of_quotes)
{
    struct kit_bench bench = begin();
    struct wal_compact_options options = options_keeping("b");
    char *text = test_memory(4 * 1024 * 1024);

    memset(text, '"', 4 * 1024 * 1024);
    options.summary = (struct wal_slice){text, 4 * 1024 * 1024};
    assert_ok(wal_session_compact(bench.session, &options, NULL, NULL, NULL));
}

/* --- entries that name others --------------------------------------------- */

static struct wal_entry typed(const char *id, const char *type, const char *payload)
{
    struct wal_entry entry = kit_entry(id, NULL, payload);

    entry.type = kit_text(type);
    return entry;
}

/* Appends entries in one batch; a refusal changes nothing. */
static enum wal_status append(struct kit_bench *bench, const struct wal_entry *entries,
                              uint32_t count)
{
    char *before = kit_snapshot(bench->store, bench->session);
    struct wal_error error = KIT_ERROR;
    enum wal_status status = wal_append(bench->session, entries, count, NULL, NULL, &error);

    assert_int_equal(error.status, status);
    if (status == WAL_OK) {
        free(before);
    } else {
        assert_unchanged(bench->store, bench->session, before);
    }
    return status;
}

static enum wal_status append_one(struct kit_bench *bench, const char *type, const char *payload)
{
    struct wal_entry entry = typed(NULL, type, payload);

    return append(bench, &entry, 1);
}

KIT_TEST(compaction_entry__must_name_an_ancestor)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "null",
        "{\"firstKeptEntryId\":1}",
        "{\"firstKeptEntryId\":\"\"}",
        "{\"firstKeptEntryId\":null}",
        "{\"x\":{\"firstKeptEntryId\":\"a\"}}",
    };
    static const char type[] = "compaction_summary";
    struct kit_bench bench = begin();
    struct wal_entry entry = typed("x", type, "{\"firstKeptEntryId\":\"d\"}");

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(append_one(&bench, type, bad[i]), WAL_EINVAL);
    }
    assert_int_equal(append_one(&bench, type, "{\"firstKeptEntryId\":\"side\"}"), WAL_ENOTFOUND);
    assert_int_equal(append_one(&bench, type, "{\"firstKeptEntryId\":\"q\"}"), WAL_ENOTFOUND);
    entry.parent_id = kit_text("side");
    assert_int_equal(append(&bench, &entry, 1), WAL_ENOTFOUND);
    entry.payload = kit_text("{\"firstKeptEntryId\":\"side\"}");
    assert_ok(append(&bench, &entry, 1));
    entry = typed("y", type, "{\"firstKeptEntryId\":\"y\"}");
    assert_int_equal(append(&bench, &entry, 1), WAL_ENOTFOUND);
    entry = typed("y", type, "{\"firstKeptEntryId\":\"a\"}");
    entry.flags = WAL_ENTRY_ROOT;
    assert_int_equal(append(&bench, &entry, 1), WAL_ENOTFOUND);
    /* The name is compared after unescaping. */
    assert_ok(append_one(&bench, type, "{\"firstKept\\u0045ntryId\":\"\\u0061\"}"));
}

KIT_TEST(compaction_entry__names_an_entry_of_its_batch)
{
    static const char type[] = "compaction_summary";
    struct kit_bench bench = begin();
    struct wal_entry entries[4] = {kit_entry("e", NULL, "{}"), kit_entry("f", NULL, "{}"),
                                   typed("x", type, "{\"firstKeptEntryId\":\"e\"}"),
                                   kit_entry("g", NULL, "{}")};

    entries[2].payload = kit_text("{\"firstKeptEntryId\":\"g\"}");
    assert_int_equal(append(&bench, entries, 4), WAL_ENOTFOUND);
    entries[2].payload = kit_text("{\"firstKeptEntryId\":\"x\"}");
    assert_int_equal(append(&bench, entries, 4), WAL_ENOTFOUND);
    entries[2].payload = kit_text("{\"firstKeptEntryId\":\"e\"}");
    entries[2].parent_id = kit_text("d");
    assert_int_equal(append(&bench, entries, 4), WAL_ENOTFOUND);
    entries[2].parent_id = kit_text("f");
    assert_ok(append(&bench, entries, 4));
    since(bench.session, "e f x g");
    /* Sent again; then an entry whose target is an existing one, through the batch. */
    assert_ok(append(&bench, entries, 4));
    entries[3] = typed("h", type, "{\"firstKeptEntryId\":\"c\"}");
    assert_ok(append(&bench, entries, 4));
    since(bench.session, "c d e f x g h");
}

KIT_TEST(branch_summary__must_name_an_entry_of_a_session)
{
    static const char type[] = "branch_summary";
    static const char *const bad[] = {
        "{}",
        "7",
        "{\"sourceSessionId\":\"s\"}",
        "{\"sourceEntryId\":\"a\"}",
        "{\"sourceSessionId\":\"s\",\"sourceEntryId\":[]}",
        "{\"sourceSessionId\":2,\"sourceEntryId\":\"a\"}",
    };
    static const char *const missing[] = {
        "{\"sourceSessionId\":\"s\",\"sourceEntryId\":\"z\"}",
        "{\"sourceSessionId\":\"q\",\"sourceEntryId\":\"a\"}",
        "{\"sourceSessionId\":\"o\",\"sourceEntryId\":\"b\"}",
        "{\"sourceSessionId\":\"gone\",\"sourceEntryId\":\"a\"}",
        "{\"sourceSessionId\":\"store\",\"sourceEntryId\":\"a\"}",
    };
    struct kit_bench bench = begin();
    struct wal_session *other = kit_create(bench.store, "o");
    struct wal_session *gone = kit_create(bench.store, "gone");
    struct wal_entry entries[3];

    (void)kit_put(bench.store, NULL, "k", "1");
    kit_append(other, "only", NULL);
    kit_append(gone, "a", NULL);
    assert_ok(wal_session_delete(gone, NULL));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(append_one(&bench, type, bad[i]), WAL_EINVAL);
    }
    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
        assert_int_equal(append_one(&bench, type, missing[i]), WAL_ENOTFOUND);
    }
    assert_ok(append_one(&bench, type, "{\"sourceSessionId\":\"o\",\"sourceEntryId\":\"only\"}"));
    assert_ok(append_one(&bench, type, "{\"sourceSessionId\":\"s\",\"sourceEntryId\":\"side\"}"));
    /* In its batch: an entry before it, not one after it. */
    entries[0] = kit_entry("e", NULL, "{}");
    entries[1] = typed("x", type, "{\"sourceSessionId\":\"s\",\"sourceEntryId\":\"f\"}");
    entries[2] = kit_entry("f", NULL, "{}");
    assert_int_equal(append(&bench, entries, 3), WAL_ENOTFOUND);
    entries[1].payload = kit_text("{\"sourceSessionId\":\"s\",\"sourceEntryId\":\"e\"}");
    assert_ok(append(&bench, entries, 3));
}

KIT_TEST(redaction__must_name_a_visible_entry)
{
    static const char type[] = "redaction";
    static const char *const bad[] = {
        "{}",   "[]", "{\"targetEntryId\":1}", "{\"targetEntryId\":\"\"}", "{\"reason\":\"x\"}",
        "\"a\""};
    struct kit_bench bench = begin();
    struct wal_session *fork = kit_fork(bench.session, "a", "f");
    struct wal_entry entry = typed("r", type, "{\"targetEntryId\":\"b\",\"reason\":\"x\"}");
    char *before;
    char text[4098];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(append_one(&bench, type, bad[i]), WAL_EINVAL);
    }
    assert_int_equal(append_one(&bench, type, "{\"targetEntryId\":\"q\"}"), WAL_ENOTFOUND);
    /* The fork does not see it. */
    assert_int_equal(wal_append(fork, &entry, 1, NULL, NULL, kit_error()), WAL_ENOTFOUND);
    assert_all_entries(fork, "a");
    before = kit_snapshot(bench.store, bench.session);
    memset(text, 'r', 4097);
    text[4097] = '\0';
    assert_int_equal(
        wal_session_redact(bench.session, kit_text("a"), kit_text(text), NULL, kit_error()),
        WAL_ETOOBIG);
    assert_int_equal(
        wal_session_redact(bench.session, kit_text(NULL), kit_text("x"), NULL, kit_error()),
        WAL_EINVAL);
    assert_int_equal(
        wal_session_redact(bench.session, kit_text("q"), kit_text("x"), NULL, kit_error()),
        WAL_ENOTFOUND);
    assert_int_equal(wal_session_redact(NULL, kit_text("a"), kit_text("x"), NULL, kit_error()),
                     WAL_EINVAL);
    assert_unchanged(bench.store, bench.session, before);
    assert_branch(bench.session, "a b c d");
    assert_ok(append(&bench, &entry, 1));
    assert_branch(bench.session, "a c d r");
    assert_ok(append(&bench, &entry, 1));
    assert_branch(bench.session, "a c d r");
}

KIT_TEST(redaction__of_an_entry_of_its_batch)
{
    struct kit_bench bench = begin();
    struct wal_entry entries[3] = {typed("r", "redaction", "{\"targetEntryId\":\"e\"}"),
                                   kit_entry("e", NULL, "{}"),
                                   typed("q", "redaction", "{\"targetEntryId\":\"q\"}")};

    assert_ok(append(&bench, entries, 2));
    assert_branch(bench.session, "a b c d r");
    /* Itself: the same alone and with others. */
    assert_ok(append(&bench, &entries[2], 1));
    assert_branch(bench.session, "a b c d r");
}

/* An imported line is kept unchanged: it hides the entry that it names if that exists, and nothing
 * otherwise, whatever its bytes are. */
KIT_TEST(redaction__imported_line_is_unchanged)
{
    static const struct wal_slice lines[] = {
        {"", 0},
        {"\0", 1},
        {"{", 1},
        {"\xff\xfe{\"payload\":", 13},
        {"{\"payload\":7}", 13},
        {"{\"payload\":{\"targetEntryId\":", 28},
        {"{\"payload\":{\"targetEntryId\":\"q\"}}", 33},
        {"{\"targetEntryId\":\"\\ud800\"}", 26},
        {"[[[[[[[[[[[[[[[[[[[[[[[[", 24},
    };
    static const char *const types[] = {"redaction", "compaction_summary", "branch_summary"};
    struct kit_bench bench = begin();
    struct wal_entry entry;

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        for (size_t j = 0; j < 3; j++) {
            entry = typed(NULL, types[j], NULL);
            entry.flags = WAL_ENTRY_LINE | WAL_ENTRY_HEAD_KEEP;
            entry.payload = lines[i];
            assert_ok(append(&bench, &entry, 1));
        }
    }
    assert_branch(bench.session, "a b c d");
    entry = typed("r", "redaction",
                  "{\"type\":\"redaction\",\"payload\":{\"targetEntryId\":"
                  "\"b\",\"reason\":\"x\"}}");
    entry.flags = WAL_ENTRY_LINE;
    assert_ok(append(&bench, &entry, 1));
    assert_branch(bench.session, "a c d r");
    entry.id = kit_text("r2");
    entry.payload = kit_text("{\"targetEntryId\":\"c\"}");
    assert_ok(append(&bench, &entry, 1));
    assert_branch(bench.session, "a d r r2");
}

KIT_TEST(fork__from_a_missing_entry)
{
    struct kit_bench bench = begin();
    char *before = kit_snapshot(bench.store, bench.session);
    struct wal_session_options options = {.struct_size = sizeof(options), .id = kit_text("f")};
    struct wal_session *fork = NULL;

    assert_fails(wal_session_fork(bench.session, kit_text("missing"), &options, &fork, kit_error()),
                 WAL_ENOTFOUND, "missing");
    assert_null(fork);
    assert_unchanged(bench.store, bench.session, before);
    assert_int_equal(wal_session_open(bench.store, kit_text("f"), &fork, NULL), WAL_ENOTFOUND);
}
