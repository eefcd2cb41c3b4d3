/*
 * test_store_batch.c - tests of batches of entries, documents, heads and
 * metadata: applied whole or not at all (SPEC.md 5.2).
 */
#include "agentwal/admin.h"
#include "engine/session/session.h"
#include "tests/lib/kit/parts_kit.h"

struct bench {
    struct wal_store *store;
    struct wal_session *session;
};

/* Entries a and b, a head, a document of the session and one of the store. */
static struct bench begin(void)
{
    struct bench bench = {.store = kit_store()};

    bench.session = kit_create(bench.store, "s");
    kit_append_all(bench.session, "a b");
    kit_move_head(bench.session, "mark", "a");
    (void)kit_put(bench.store, bench.session, "own", "1");
    (void)kit_put(bench.store, NULL, "shared", "1");
    return bench;
}

static void end(struct bench *bench)
{
    wal_session_close(bench->session);
    kit_close(bench->store);
}

/* A batch with one part of each kind, which a test then makes invalid. */
struct parts {
    struct wal_entry entries[2];
    struct wal_doc docs[3];
    struct wal_head heads[2];
    struct wal_session_change change;
    struct wal_append_options options;
    struct wal_batch batch;
};

static void prepare(struct parts *parts)
{
    memset(parts, 0, sizeof(*parts));
    parts->entries[0] = kit_entry("c", NULL, "{}");
    parts->entries[1] = kit_entry("d", NULL, "{}");
    parts->docs[0] = kit_doc("own", "2");
    parts->docs[1] = kit_doc("new", "{\"x\":[]}");
    parts->docs[2] = kit_doc("shared", "2");
    parts->docs[2].flags = WAL_DOC_STORE;
    parts->heads[0] = kit_head("mark", "d", "a");
    parts->heads[1] = kit_head("main", "c", "b");
    parts->change = kit_title("T");
    parts->options.struct_size = sizeof(parts->options);
    parts->options.flags = WAL_APPEND_EXPECT;
    parts->options.expected_tail = kit_text("b");
    parts->batch.struct_size = sizeof(parts->batch);
    parts->batch.entries = parts->entries;
    parts->batch.entry_count = 2;
    parts->batch.documents = parts->docs;
    parts->batch.document_count = 3;
    parts->batch.heads = parts->heads;
    parts->batch.head_count = 2;
    parts->batch.change = &parts->change;
}

/* Expects this status and an unchanged store, now and after reopening. */
static struct wal_error refused(struct bench *bench, const struct parts *parts,
                                enum wal_status status)
{
    char *before = kit_snapshot(bench->store, bench->session);
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;

    assert_int_equal(wal_batch_commit(bench->session, &parts->batch,
                                      &parts->options, &result, &error),
                     status);
    assert_int_equal(error.status, status);
    assert_true(error.text[0] != '\0');
    assert_int_equal(result.appended, 0);
    assert_unchanged(bench->store, bench->session, before);
    return error;
}

static void reopen(struct bench *bench)
{
    char *before = kit_snapshot(bench->store, bench->session);

    end(bench);
    bench->store = kit_store();
    bench->session = kit_session(bench->store, "s");
    assert_unchanged(bench->store, bench->session, before);
}

KIT_TEST(batch__every_kind_of_item_is_committed)
{
    struct bench bench = begin();
    uint64_t last = kit_last_sequence(bench.store);
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;
    struct parts parts;

    prepare(&parts);
    assert_ok(wal_batch_commit(bench.session, &parts.batch, &parts.options,
                               &result, &error));
    assert_int_equal(result.struct_size, sizeof(result));
    assert_int_equal(result.appended, 2);
    assert_int_equal(result.duplicates, 0);
    assert_int_equal(result.sequence, last + 2);
    assert_string_equal(result.last_id, "d");
    assert_int_equal(kit_last_sequence(bench.store), last + 2 + 3 + 2 + 1);
    reopen(&bench);
    assert_all_entries(bench.session, "a b c d");
    assert_branch(bench.session, "a b c");
    assert_string_equal(kit_heads(bench.session), "main=c mark=d");
    assert_string_equal(kit_docs(bench.store, bench.session, 0, NULL),
                        "new={\"x\":[]} own=2");
    assert_string_equal(kit_docs(bench.store, NULL, 0, NULL), "shared=2");
    assert_slice(kit_info(bench.session).title, "T");
    end(&bench);
}

/* Sent again, it changes nothing, whatever it expects. */
KIT_TEST(batch__duplicate_batch_writes_nothing)
{
    struct bench bench = begin();
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct parts parts;
    char *before;

    prepare(&parts);
    assert_ok(wal_batch_commit(bench.session, &parts.batch, &parts.options,
                               &result, NULL));
    parts.docs[0].flags = WAL_DOC_EXPECT;
    parts.docs[0].version = 1;
    parts.change.fields |= WAL_CHANGE_EXPECT;
    parts.change.expected_version = 99;
    before = kit_snapshot(bench.store, bench.session);
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_batch_commit(bench.session, &parts.batch, &parts.options,
                                   &result, NULL));
        assert_int_equal(result.appended, 0);
        assert_int_equal(result.duplicates, 2);
        assert_int_equal(result.sequence, 0);
        assert_string_equal(result.last_id, "d");
    }
    assert_unchanged(bench.store, bench.session, before);
    end(&bench);
}

KIT_TEST(batch__duplicate_entries_with_new_documents)
{
    struct bench bench = begin();
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_entry entries[3] = {kit_entry("a", NULL, "{\"id\":\"a\"}"),
                                   kit_entry("c", NULL, "{}"),
                                   kit_entry("c", NULL, "{}")};
    struct wal_doc doc = kit_doc("own", "2");
    struct wal_batch batch = {.struct_size = sizeof(batch),
                              .entries = entries,
                              .entry_count = 1,
                              .documents = &doc,
                              .document_count = 1};

    assert_ok(wal_batch_commit(bench.session, &batch, NULL, &result, NULL));
    assert_int_equal(result.appended, 0);
    assert_int_equal(result.duplicates, 1);
    assert_string_equal(kit_value(bench.store, bench.session, "own", 0), "2");
    batch.entry_count = 3;
    assert_ok(wal_batch_commit(bench.session, &batch, NULL, &result, NULL));
    assert_int_equal(result.appended, 1);
    assert_int_equal(result.duplicates, 2);
    assert_all_entries(bench.session, "a b c");
    end(&bench);
}

KIT_TEST(batch__head_points_to_entry_of_the_batch)
{
    struct bench bench = begin();
    struct wal_entry entry = kit_entry("c", "a", "{}");
    struct wal_head head = kit_head("side", "c", "");
    struct wal_batch batch = {.struct_size = sizeof(batch),
                              .entries = &entry,
                              .entry_count = 1,
                              .heads = &head,
                              .head_count = 1};

    assert_ok(wal_batch_commit(bench.session, &batch, NULL, NULL, NULL));
    assert_string_equal(kit_heads(bench.session), "main=b mark=a side=c");
    reopen(&bench);
    end(&bench);
}

KIT_TEST(batch__each_part_alone)
{
    struct bench bench = begin();
    struct parts parts;
    struct wal_batch whole;
    struct wal_append_result result = {.struct_size = sizeof(result)};

    prepare(&parts);
    whole = parts.batch;
    for (int i = 0; i < 4; i++) {
        uint64_t last = kit_last_sequence(bench.store);
        uint32_t count = i == 0 ? 2 : i == 1 ? 3 : i == 2 ? 2 : 1;

        parts.batch = whole;
        parts.batch.entry_count = i == 0 ? 2 : 0;
        parts.batch.document_count = i == 1 ? 3 : 0;
        parts.batch.head_count = i == 2 ? 2 : 0;
        parts.batch.change = i == 3 ? &parts.change : NULL;
        parts.heads[1] = kit_head("main", "c", "d");
        assert_ok(
            wal_batch_commit(bench.session, &parts.batch, NULL, &result, NULL));
        assert_int_equal(result.appended, i == 0 ? 2 : 0);
        assert_int_equal(kit_last_sequence(bench.store), last + count);
    }
    reopen(&bench);
    end(&bench);
}

/* --- refusals ------------------------------------------------------------- */

KIT_TEST(batch__duplicate_id_with_other_content_changes_nothing)
{
    struct bench bench = begin();
    struct wal_error error;
    struct parts parts;

    prepare(&parts);
    parts.entries[1] = kit_entry("a", NULL, "{\"id\":\"other\"}");
    error = refused(&bench, &parts, WAL_EEXISTS);
    assert_string_equal(error.actual, "a");
    prepare(&parts);
    parts.entries[1] = kit_entry("c", NULL, "[]");
    error = refused(&bench, &parts, WAL_EEXISTS);
    assert_string_equal(error.actual, "c");
    reopen(&bench);
    end(&bench);
}

KIT_TEST(batch__conflicting_tail_changes_nothing)
{
    struct bench bench = begin();
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_error error;
    struct parts parts;

    prepare(&parts);
    parts.options.expected_tail = kit_text("a");
    error = refused(&bench, &parts, WAL_ECONFLICT);
    assert_string_equal(error.actual, "b");
    assert_int_equal(error.expectation, WAL_EXPECTATION_TAIL);
    assert_int_equal(wal_batch_commit(bench.session, &parts.batch,
                                      &parts.options, &result, NULL),
                     WAL_ECONFLICT);
    parts.options.expected_tail = kit_text("nobody");
    error = refused(&bench, &parts, WAL_ECONFLICT);
    parts.options.expected_tail = kit_text(NULL);
    error = refused(&bench, &parts, WAL_ECONFLICT);
    /* Without entries, the expected tail is the tail of stream 0. */
    parts.batch.entry_count = 0;
    parts.batch.head_count = 0;
    error = refused(&bench, &parts, WAL_ECONFLICT);
    assert_string_equal(error.actual, "b");
    end(&bench);
}

KIT_TEST(batch__conflicting_head_changes_nothing)
{
    struct bench bench = begin();
    struct wal_error error;
    struct parts parts;

    prepare(&parts);
    parts.heads[0] = kit_head("mark", "d", "b");
    error = refused(&bench, &parts, WAL_ECONFLICT);
    assert_int_equal(error.expectation, WAL_EXPECTATION_HEAD);
    assert_string_equal(error.actual, "a");
    parts.heads[0] = kit_head("mark", "d", "");
    error = refused(&bench, &parts, WAL_ECONFLICT);
    assert_string_equal(error.actual, "a");
    parts.heads[0] = kit_head("other", "d", "a");
    error = refused(&bench, &parts, WAL_ECONFLICT);
    assert_string_equal(error.actual, "");
    /* An entry of the batch itself was the target of no head before it. */
    prepare(&parts);
    parts.heads[1] = kit_head("main", "a", "d");
    error = refused(&bench, &parts, WAL_ECONFLICT);
    assert_string_equal(error.actual, "b");
    end(&bench);
}

KIT_TEST(batch__conflicting_document_version_changes_nothing)
{
    struct bench bench = begin();
    struct wal_error error;
    struct parts parts;
    char version[24];

    (void)snprintf(
        version, sizeof(version), "%llu",
        (unsigned long long)kit_put(bench.store, bench.session, "own", "3"));
    prepare(&parts);
    parts.docs[0].flags = WAL_DOC_EXPECT;
    error = refused(&bench, &parts, WAL_ECONFLICT);
    assert_int_equal(error.expectation, WAL_EXPECTATION_DOCUMENT);
    assert_string_equal(error.actual, version);
    prepare(&parts);
    parts.docs[1].flags = WAL_DOC_EXPECT;
    parts.docs[1].version = 4;
    error = refused(&bench, &parts, WAL_ECONFLICT);
    assert_string_equal(error.actual, "0");
    prepare(&parts);
    parts.docs[2].flags |= WAL_DOC_EXPECT;
    parts.docs[2].version = 1;
    error = refused(&bench, &parts, WAL_ECONFLICT);
    prepare(&parts);
    parts.docs[1].flags = WAL_DOC_DELETE;
    error = refused(&bench, &parts, WAL_ENOTFOUND);
    end(&bench);
}

KIT_TEST(batch__conflicting_metadata_version_changes_nothing)
{
    struct bench bench = begin();
    struct wal_error error;
    struct parts parts;
    char version[24];

    (void)snprintf(
        version, sizeof(version), "%llu",
        (unsigned long long)kit_info(bench.session).metadata_version);
    prepare(&parts);
    parts.change.fields |= WAL_CHANGE_EXPECT;
    parts.change.expected_version = 77;
    error = refused(&bench, &parts, WAL_ECONFLICT);
    assert_int_equal(error.expectation, WAL_EXPECTATION_METADATA);
    assert_string_equal(error.actual, version);
    end(&bench);
}

KIT_TEST(batch__missing_reference_changes_nothing)
{
    struct bench bench = begin();
    struct parts parts;

    prepare(&parts);
    parts.entries[1].parent_id = kit_text("nobody");
    (void)refused(&bench, &parts, WAL_ENOPARENT);
    prepare(&parts);
    parts.entries[0].parent_id = kit_text("d");
    (void)refused(&bench, &parts, WAL_ENOPARENT);
    prepare(&parts);
    parts.heads[0].entry_id = kit_text("nobody");
    (void)refused(&bench, &parts, WAL_ENOTFOUND);
    prepare(&parts);
    parts.heads[0].stream = 1;
    (void)refused(&bench, &parts, WAL_ENOTFOUND);
    end(&bench);
}

KIT_TEST(batch__invalid_json_changes_nothing)
{
    struct bench bench = begin();
    struct parts parts;

    prepare(&parts);
    parts.entries[1].payload = kit_text("{");
    (void)refused(&bench, &parts, WAL_EBADJSON);
    prepare(&parts);
    parts.docs[2].value = kit_text("nul");
    (void)refused(&bench, &parts, WAL_EBADJSON);
    prepare(&parts);
    parts.docs[2].value = kit_text(NULL);
    (void)refused(&bench, &parts, WAL_EBADJSON);
    prepare(&parts);
    parts.change.fields = WAL_CHANGE_METADATA;
    parts.change.metadata = kit_text("[1]");
    (void)refused(&bench, &parts, WAL_EBADJSON);
    end(&bench);
}

/* Wrong struct sizes, flags and pointers, one at a time; false after the
 * last. */
static bool invalidate_part(struct parts *parts, int nth)
{
    uint32_t *const sizes[] = {
        &parts->batch.struct_size,   &parts->entries[1].struct_size,
        &parts->docs[0].struct_size, &parts->heads[0].struct_size,
        &parts->change.struct_size,  &parts->options.struct_size};
    uint32_t *const flags[] = {&parts->docs[0].flags, &parts->heads[0].flags,
                               &parts->change.fields, &parts->entries[0].flags,
                               &parts->options.flags};
    const int size_count = sizeof(sizes) / sizeof(sizes[0]);
    const int flag_count = sizeof(flags) / sizeof(flags[0]);

    if (nth < size_count) {
        *sizes[nth] -= 1;
        return true;
    }
    if (nth < size_count + flag_count) {
        *flags[nth - size_count] = 1u << 9;
        return true;
    }
    return false;
}

/* Invalid contents, one at a time; false after the last. */
static bool invalidate_content_part(struct parts *parts, int nth)
{
    const struct {
        struct wal_slice *slice;
        const char *text;
    } texts[] = {
        {&parts->docs[1].key, "own"},    {&parts->docs[1].key, ""},
        {&parts->heads[1].name, "mark"}, {&parts->heads[0].name, NULL},
        {&parts->docs[0].key, "\xff"},   {&parts->heads[0].name, "\xff"},
    };
    const int count = sizeof(texts) / sizeof(texts[0]);

    if (nth < count) {
        *texts[nth].slice = kit_text(texts[nth].text);
        return true;
    }
    switch (nth - count) {
    case 0:
        parts->batch.entries = NULL;
        return true;
    case 1:
        parts->batch.documents = NULL;
        return true;
    case 2:
        parts->batch.heads = NULL;
        return true;
    case 3:
        parts->heads[0].stream = 256;
        return true;
    case 4:
        parts->change.fields = WAL_CHANGE_SCHEMA;
        return true;
    default:
        return false;
    }
}

KIT_TEST(batch__misuse_changes_nothing)
{
    struct bench bench = begin();
    struct parts parts;

    prepare(&parts);
    for (int i = 0; invalidate_part(&parts, i); i++) {
        (void)refused(&bench, &parts, WAL_EINVAL);
        prepare(&parts);
    }
    for (int i = 0; invalidate_content_part(&parts, i); i++) {
        (void)refused(&bench, &parts, WAL_EINVAL);
        prepare(&parts);
    }
    end(&bench);
}

KIT_TEST(batch__empty_batch_is_refused)
{
    struct bench bench = begin();
    struct wal_batch batch = {.struct_size = sizeof(batch)};
    struct wal_ticket *ticket = NULL;
    struct wal_error error = KIT_ERROR;

    assert_int_equal(
        wal_batch_commit(bench.session, &batch, NULL, NULL, &error),
        WAL_EINVAL);
    assert_int_equal(wal_batch_commit(bench.session, NULL, NULL, NULL, &error),
                     WAL_EINVAL);
    assert_int_equal(wal_batch_commit(NULL, &batch, NULL, NULL, &error),
                     WAL_EINVAL);
    assert_int_equal(
        wal_batch_submit(bench.session, &batch, NULL, &ticket, &error),
        WAL_EINVAL);
    assert_null(ticket);
    end(&bench);
}

KIT_TEST(batch__text_above_its_limit_changes_nothing)
{
    struct bench bench = begin();
    struct parts parts;
    char *text = malloc(4098);

    assert_non_null(text);
    memset(text, 'x', 4097);
    text[4097] = '\0';
    prepare(&parts);
    parts.docs[0].key = (struct wal_slice){text, 1025};
    (void)refused(&bench, &parts, WAL_ETOOBIG);
    prepare(&parts);
    parts.heads[0].name = (struct wal_slice){text, 256};
    (void)refused(&bench, &parts, WAL_ETOOBIG);
    prepare(&parts);
    parts.heads[0].note = kit_text(text);
    (void)refused(&bench, &parts, WAL_ETOOBIG);
    prepare(&parts);
    parts.change = kit_title(text);
    (void)refused(&bench, &parts, WAL_ETOOBIG);
    free(text);
    end(&bench);
}

/* --- tickets -------------------------------------------------------------- */

KIT_TEST(batch__submitted_batch_completes_its_ticket)
{
    struct bench bench = begin();
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_ticket *tickets[3] = {NULL, NULL, NULL};
    struct wal_error error = KIT_ERROR;
    struct parts parts;

    prepare(&parts);
    parts.change.fields |= WAL_CHANGE_EXPECT;
    parts.change.expected_version = kit_info(bench.session).metadata_version;
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_batch_submit(bench.session, &parts.batch, &parts.options,
                                   &tickets[i], NULL));
    }
    parts.change = kit_title("U");
    parts.change.fields |= WAL_CHANGE_EXPECT;
    parts.change.expected_version = 1;
    parts.batch.entry_count = 0;
    parts.batch.document_count = 0;
    assert_ok(wal_ticket_wait(tickets[0], -1, &result, &error));
    assert_int_equal(result.appended, 2);
    /* The second one may have been encoded before the first was written: then
     * it is refused, because the version that it expects was replaced. */
    if (wal_ticket_wait(tickets[1], -1, &result, &error) == WAL_OK) {
        assert_int_equal(result.appended, 0);
        assert_int_equal(result.duplicates, 2);
    } else {
        assert_int_equal(error.status, WAL_ECONFLICT);
    }
    assert_int_equal(wal_batch_submit(bench.session, &parts.batch, NULL,
                                      &tickets[2], &error),
                     WAL_ECONFLICT);
    assert_null(tickets[2]);
    wal_ticket_destroy(tickets[0]);
    wal_ticket_destroy(tickets[1]);
    assert_all_entries(bench.session, "a b c d");
    end(&bench);
}

KIT_TEST(batch__submitted_change_must_expect_a_version)
{
    struct bench bench = begin();
    char *before = kit_snapshot(bench.store, bench.session);
    struct wal_ticket *ticket = NULL;
    struct wal_error error = KIT_ERROR;
    struct parts parts;

    prepare(&parts);
    assert_int_equal(
        wal_batch_submit(bench.session, &parts.batch, NULL, &ticket, &error),
        WAL_EINVAL);
    assert_null(ticket);
    assert_unchanged(bench.store, bench.session, before);
    end(&bench);
}

/* The record that the change was made from is the same, at another position. */
KIT_TEST(batch__change_is_staged_while_another_compacts)
{
    struct wal_store_compact_options compact = {.struct_size = sizeof(compact),
                                                .rate = UINT64_MAX};
    struct wal_session_change change = {.struct_size = sizeof(change),
                                        .fields = WAL_CHANGE_TITLE |
                                                  WAL_CHANGE_EXPECT,
                                        .title = WAL_STR("new")};
    const struct wal_batch batch = {.struct_size = sizeof(batch),
                                    .change = &change};
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_ticket *ticket = NULL;
    struct wal_error error = KIT_ERROR;

    kit_append(session, "a", NULL);
    change.expected_version = kit_info(session).metadata_version;
    (void)usleep(20000); /* an append lock is kept for a moment */
    wal__committer_pause(&store->core.committer);
    assert_ok(wal_batch_submit(session, &batch, NULL, &ticket, &error));
    assert_ok(wal_store_compact(other, &compact, NULL, &error));
    wal__committer_resume(&store->core.committer);
    assert_ok(wal_ticket_wait(ticket, -1, NULL, &error));
    wal_ticket_destroy(ticket);
    assert_slice(kit_info(session).title, "new");
    wal_session_close(session);
    kit_close(other);
    kit_close(store);
}

KIT_TEST(batch__refused_ticket_changes_nothing)
{
    struct bench bench = begin();
    char *before = kit_snapshot(bench.store, bench.session);
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;
    struct wal_ticket *ticket = NULL;
    struct parts parts;

    prepare(&parts);
    parts.batch.change = NULL;
    parts.heads[1] = kit_head("main", "c", "a");
    assert_ok(
        wal_batch_submit(bench.session, &parts.batch, NULL, &ticket, NULL));
    assert_int_equal(wal_ticket_wait(ticket, -1, &result, &error),
                     WAL_ECONFLICT);
    assert_string_equal(error.actual, "b");
    wal_ticket_destroy(ticket);
    assert_unchanged(bench.store, bench.session, before);
    end(&bench);
}
