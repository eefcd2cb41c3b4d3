/*
 * test_store_batch.c - tests of batches of entries, documents, heads and metadata: applied whole or
 * not at all; their size limits, and batches of several threads (SPEC.md 5.2, 6).
 */
#include <pthread.h>

#include "agentwal/admin.h"
#include "engine/session/session.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/parts_kit.h"

/* Entries a and b, a head, a document of the session and one of the store. */
static struct kit_bench begin(void)
{
    struct kit_bench bench = kit_bench("a b");

    kit_move_head(bench.session, "mark", "a");
    (void)kit_put(bench.store, bench.session, "own", "1");
    (void)kit_put(bench.store, NULL, "shared", "1");
    return bench;
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
static struct wal_error refused(struct kit_bench *bench, const struct parts *parts,
                                enum wal_status status)
{
    char *before = kit_snapshot(bench->store, bench->session);
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;

    assert_int_equal(
        wal_batch_commit(bench->session, &parts->batch, &parts->options, &result, &error), status);
    assert_int_equal(error.status, status);
    assert_true(error.text[0] != '\0');
    assert_int_equal(result.appended, 0);
    assert_unchanged(bench->store, bench->session, before);
    return error;
}

/* --- refusals ------------------------------------------------------------- */

KIT_TEST(batch__duplicate_id_with_other_content_changes_nothing)
{
    struct kit_bench bench = begin();
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
    kit_reopen_unchanged(&bench);
}

KIT_TEST(batch__missing_reference_changes_nothing)
{
    struct kit_bench bench = begin();
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
}

/* Wrong struct sizes, flags and pointers, one at a time; false after the last. */
static bool invalidate_part(struct parts *parts, int nth)
{
    uint32_t *const sizes[] = {&parts->batch.struct_size,   &parts->entries[1].struct_size,
                               &parts->docs[0].struct_size, &parts->heads[0].struct_size,
                               &parts->change.struct_size,  &parts->options.struct_size};
    uint32_t *const flags[] = {&parts->docs[0].flags, &parts->heads[0].flags, &parts->change.fields,
                               &parts->entries[0].flags, &parts->options.flags};
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
    struct kit_bench bench = begin();
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
}

KIT_TEST(batch__empty_batch_is_refused)
{
    struct kit_bench bench = begin();
    struct wal_batch batch = {.struct_size = sizeof(batch)};
    struct wal_ticket *ticket = NULL;

    assert_int_equal(wal_batch_commit(bench.session, &batch, NULL, NULL, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_batch_commit(bench.session, NULL, NULL, NULL, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_batch_commit(NULL, &batch, NULL, NULL, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_batch_submit(bench.session, &batch, NULL, &ticket, kit_error()),
                     WAL_EINVAL);
    assert_null(ticket);
}

/* --- tickets -------------------------------------------------------------- */

KIT_TEST(batch__submitted_batch_completes_its_ticket)
{
    struct kit_bench bench = begin();
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_ticket *tickets[3] = {NULL, NULL, NULL};
    struct wal_error error = KIT_ERROR;
    struct parts parts;

    prepare(&parts);
    parts.change.fields |= WAL_CHANGE_EXPECT;
    parts.change.expected_version = kit_info(bench.session).metadata_version;
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_batch_submit(bench.session, &parts.batch, &parts.options, &tickets[i], NULL));
    }
    parts.change = kit_title("U");
    parts.change.fields |= WAL_CHANGE_EXPECT;
    parts.change.expected_version = 1;
    parts.batch.entry_count = 0;
    parts.batch.document_count = 0;
    assert_ok(wal_ticket_wait(tickets[0], -1, &result, &error));
    assert_int_equal(result.appended, 2);
    /* The second one may have been encoded before the first was written: then it is refused,
     * because the version that it expects was replaced. */
    if (wal_ticket_wait(tickets[1], -1, &result, &error) == WAL_OK) {
        assert_int_equal(result.appended, 0);
        assert_int_equal(result.duplicates, 2);
    } else {
        assert_int_equal(error.status, WAL_ECONFLICT);
    }
    assert_int_equal(wal_batch_submit(bench.session, &parts.batch, NULL, &tickets[2], &error),
                     WAL_ECONFLICT);
    assert_null(tickets[2]);
    wal_ticket_destroy(tickets[0]);
    wal_ticket_destroy(tickets[1]);
    assert_all_entries(bench.session, "a b c d");
}

KIT_TEST(batch__submitted_change_must_expect_a_version)
{
    struct kit_bench bench = begin();
    char *before = kit_snapshot(bench.store, bench.session);
    struct wal_ticket *ticket = NULL;
    struct parts parts;

    prepare(&parts);
    assert_int_equal(wal_batch_submit(bench.session, &parts.batch, NULL, &ticket, kit_error()),
                     WAL_EINVAL);
    assert_null(ticket);
    assert_unchanged(bench.store, bench.session, before);
}

/* The record that the change was made from is the same, at another position. */
KIT_TEST(batch__change_is_staged_while_another_compacts)
{
    struct wal_store_compact_options compact = {.struct_size = sizeof(compact), .rate = UINT64_MAX};
    struct wal_session_change change = {.struct_size = sizeof(change),
                                        .fields = WAL_CHANGE_TITLE | WAL_CHANGE_EXPECT,
                                        .title = WAL_STR("new")};
    const struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_ticket *ticket = NULL;

    kit_append(session, "a", NULL);
    change.expected_version = kit_info(session).metadata_version;
    (void)usleep(20000); /* an append lock is kept for a moment */
    wal__committer_pause(&store->core.committer);
    assert_ok(wal_batch_submit(session, &batch, NULL, &ticket, kit_error()));
    assert_ok(wal_store_compact(other, &compact, NULL, kit_error()));
    wal__committer_resume(&store->core.committer);
    assert_ok(wal_ticket_wait(ticket, -1, NULL, kit_error()));
    wal_ticket_destroy(ticket);
    assert_slice(kit_info(session).title, "new");
}

enum { MEBIBYTE = 1024 * 1024, DOCS = 64 * 1024, HEADS = 4096, REDACTIONS = 5000, ROUNDS = 100 };

static enum wal_status commit(struct kit_bench *bench, const struct wal_batch *batch)
{
    struct wal_error error = KIT_ERROR;
    enum wal_status status = wal_batch_commit(bench->session, batch, NULL, NULL, &error);

    assert_int_equal(status, error.status);
    return status;
}

/* Names "PREFIX00001" and so on, each of 16 bytes in one allocation. */
static char *names(const char *prefix, uint32_t count)
{
    char *text = test_memory(count * 16);

    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(text + (size_t)i * 16, 16, "%s%05u", prefix, (unsigned)(i % 100000));
    }
    return text;
}

static uint32_t count_docs(struct kit_bench *bench)
{
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_DOC_CURSOR_KEYS};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;
    uint32_t count = 0;

    assert_ok(wal_doc_cursor_open(bench->store, bench->session, &options, &docs, NULL));
    while (wal_doc_cursor_next(docs, &doc, NULL) == WAL_OK) {
        assert_int_equal(doc.value.size, 0);
        count++;
    }
    wal_doc_cursor_close(docs);
    return count;
}

KIT_TEST(batch__document_limit_is_65536)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_doc *docs = test_memory((DOCS + 1) * sizeof(*docs));
    char *keys = names("k", DOCS + 1);
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .documents = docs, .document_count = DOCS + 1};
    char *before = kit_snapshot(bench.store, bench.session);

    for (uint32_t i = 0; i <= DOCS; i++) {
        docs[i] = kit_doc(keys + (size_t)i * 16, "1");
    }
    assert_int_equal(commit(&bench, &batch), WAL_ETOOBIG);
    assert_unchanged(bench.store, bench.session, before);
    batch.document_count = DOCS;
    docs[DOCS - 1].key = docs[0].key;
    assert_int_equal(commit(&bench, &batch), WAL_EINVAL);
    docs[DOCS - 1].key = kit_text(keys + (size_t)(DOCS - 1) * 16);
    assert_ok(commit(&bench, &batch));
    assert_int_equal(kit_store_info(bench.store).last_sequence, 3 + DOCS);
    assert_ok(commit(&bench, &batch));
    assert_int_equal(kit_store_info(bench.store).last_sequence, 3 + DOCS);
    assert_int_equal(count_docs(&bench), DOCS);
    kit_end(&bench);
    bench.store = kit_store();
    bench.session = kit_session(bench.store, "s");
    assert_int_equal(count_docs(&bench), DOCS);
    assert_string_equal(kit_value(bench.store, bench.session, "k65535", 0), "1");
}

/* The limit of heads applies to every way of making them; `main` does not count. */
KIT_TEST(batch__head_limit_is_4096)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_head *heads = calloc(HEADS + 1, sizeof(*heads));
    char *texts = names("h", HEADS + 1);
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .heads = heads, .head_count = HEADS + 1};
    char *before = kit_snapshot(bench.store, bench.session);

    assert_non_null(heads);
    for (uint32_t i = 0; i <= HEADS; i++) {
        heads[i] = kit_head(texts + (size_t)i * 16, "a", NULL);
    }
    assert_int_equal(commit(&bench, &batch), WAL_ETOOBIG);
    assert_unchanged(bench.store, bench.session, before);
    kit_move_head(bench.session, texts + (size_t)HEADS * 16, "b");
    before = kit_snapshot(bench.store, bench.session);
    batch.head_count = HEADS;
    assert_int_equal(commit(&bench, &batch), WAL_ETOOBIG);
    assert_unchanged(bench.store, bench.session, before);
    batch.head_count = HEADS - 1;
    assert_ok(commit(&bench, &batch));
    before = kit_snapshot(bench.store, bench.session);
    batch.heads = &heads[HEADS - 1];
    batch.head_count = 1;
    assert_int_equal(commit(&bench, &batch), WAL_ETOOBIG);
    assert_unchanged(bench.store, bench.session, before);
    /* Removes one head and makes another. */
    batch.head_count = 2;
    heads[HEADS].entry_id = kit_text(NULL);
    assert_ok(commit(&bench, &batch));
    kit_move_head(bench.session, "main", "a");
    kit_move_head(bench.session, "main", NULL);
    kit_move_head(bench.session, "main", "b");
    kit_move_head(bench.session, texts, NULL);
    free(heads);
}

/* The records of heads and redactions count too. */
KIT_TEST(batch__size_limit_counts_every_item)
{
    struct kit_bench bench = kit_bench("a b");
    char *text = test_memory(15 * MEBIBYTE + 4097);
    struct wal_head *heads = calloc(HEADS, sizeof(*heads));
    char *texts = names("h", HEADS);
    struct wal_doc docs[2];
    struct wal_batch batch = {.struct_size = sizeof(batch),
                              .documents = docs,
                              .document_count = 2,
                              .heads = heads,
                              .head_count = HEADS};
    char *before = kit_snapshot(bench.store, bench.session);

    assert_non_null(heads);
    memset(text, ' ', 15 * MEBIBYTE + 4096);
    text[0] = '1';
    text[15 * MEBIBYTE + 4096] = '\0';
    for (uint32_t i = 0; i < HEADS; i++) {
        heads[i] = kit_head(texts + (size_t)i * 16, "a", NULL);
        heads[i].note = kit_text(text + 15 * MEBIBYTE);
    }
    for (uint32_t i = 0; i < 2; i++) {
        docs[i] = kit_doc(i == 0 ? "x" : "y", "1");
        docs[i].value = (struct wal_slice){text, 15 * MEBIBYTE};
    }
    assert_int_equal(commit(&bench, &batch), WAL_ETOOBIG);
    assert_unchanged(bench.store, bench.session, before);
    batch.document_count = 0;
    assert_ok(commit(&bench, &batch));
    free(heads);
}

/* Entries of 200,000 bytes each, `count` of them; their ids are in `ids`. */
static struct wal_entry *large_entries(char *ids, uint32_t count, const char *payload)
{
    struct wal_entry *entries = test_memory(count * sizeof(*entries));

    for (uint32_t i = 0; i < count; i++) {
        entries[i] = kit_entry(ids + (size_t)i * 16, NULL, payload);
    }
    return entries;
}

static char *large_payload(void)
{
    char *text = test_memory(200001);

    memset(text, 'x', 200000);
    text[0] = '"';
    text[199999] = '"';
    text[200000] = '\0';
    return text;
}

/* 32 MiB of entries are the limit, whatever each of them has. */
KIT_TEST(batch__entries_of_more_than_32_mib_are_refused)
{
    struct kit_bench bench = kit_bench("a b");
    char *payload = large_payload();
    char *ids = names("e", 200);
    struct wal_entry *entries = large_entries(ids, 200, payload);

    assert_fails(wal_append(bench.session, entries, 168, NULL, NULL, kit_error()), WAL_ETOOBIG,
                 "the batch is larger than");
    assert_int_equal(kit_info(bench.session).entries, 2);
    assert_ok(wal_append(bench.session, entries, 167, NULL, NULL, kit_error()));
    assert_int_equal(kit_info(bench.session).entries, 2 + 167);
}

/* Batches that each fit a group and wait together are written in two. */
KIT_TEST(batch__large_ones_that_wait_together_are_written)
{
    struct kit_bench bench = kit_bench("a b");
    char *payload = large_payload();
    char *ids = names("e", 400);
    struct wal_ticket *tickets[4];

    for (uint32_t i = 0; i < 4; i++) {
        struct wal_entry *entries = large_entries(ids + (size_t)i * 100 * 16, 100, payload);

        assert_ok(wal_submit(bench.session, entries, 100, NULL, &tickets[i], NULL));
    }
    for (uint32_t i = 0; i < 4; i++) {
        assert_ok(wal_ticket_wait(tickets[i], -1, NULL, NULL));
        wal_ticket_destroy(tickets[i]);
    }
    assert_int_equal(kit_info(bench.session).entries, 2 + 400);
}

/* One batch with redactions of more entries than a group may name sessions, in the session itself
 * and in a fork that shares them. */
KIT_TEST(batch__of_5000_redactions)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_entry *entries = calloc(REDACTIONS, sizeof(*entries));
    char *ids = names("e", REDACTIONS);
    char *payloads = test_memory(REDACTIONS * 64);
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .entries = entries, .entry_count = REDACTIONS};
    struct wal_session *fork;
    uint64_t last;

    assert_non_null(entries);
    for (uint32_t i = 0; i < REDACTIONS; i++) {
        entries[i] = kit_entry(ids + (size_t)i * 16, NULL, "{}");
    }
    assert_ok(commit(&bench, &batch));
    for (uint32_t i = 0; i < REDACTIONS; i++) {
        char *payload = payloads + (size_t)i * 64;

        (void)snprintf(payload, 64, "{\"targetEntryId\":\"%s\"}", ids + (size_t)i * 16);
        entries[i] = kit_entry(NULL, NULL, payload);
        entries[i].type = kit_text("redaction");
    }
    fork = kit_fork(bench.session, NULL, "f");
    last = kit_store_info(bench.store).last_sequence;
    assert_ok(commit(&bench, &batch));
    assert_int_equal(kit_store_info(bench.store).last_sequence, last + 2 * REDACTIONS);
    assert_ok(wal_batch_commit(fork, &batch, NULL, NULL, NULL));
    assert_int_equal(kit_store_info(bench.store).last_sequence, last + 4 * REDACTIONS);
    free(entries);
}

/* --- threads -------------------------------------------------------------- */

struct runner {
    struct wal_session *session;
    uint32_t durability;
    const char *name;
    uint32_t field;
};

/* Sets one field again and again, with an entry each time. */
static void *run_changes(void *arg)
{
    struct runner *runner = arg;
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = runner->durability};

    for (int i = 0; i < ROUNDS; i++) {
        struct wal_session_change change = {.struct_size = sizeof(change), .fields = runner->field};
        struct wal_append_result result = {.struct_size = sizeof(result)};
        struct wal_entry entry;
        struct wal_batch batch = {
            .struct_size = sizeof(batch), .entries = &entry, .entry_count = 1, .change = &change};
        char text[32];

        (void)snprintf(text, sizeof(text), "%s%d", runner->name, i);
        entry = kit_entry(text, NULL, "{}");
        change.title = kit_text(text);
        change.cwd = kit_text(text);
        WAL__ASSERT(wal_batch_commit(runner->session, &batch, &options, &result, NULL) == WAL_OK);
        WAL__ASSERT(runner->durability != WAL_WRITTEN || result.appended == 1);
    }
    return NULL;
}

/* A change without an expected version that meets a change of another thread is applied to the new
 * state: no field of either is lost, queued or not. */
KIT_TEST(batch__stale_change_is_retried)
{
    struct kit_bench bench = kit_bench("a b");
    struct runner runners[4] = {{bench.session, WAL_WRITTEN, "t", WAL_CHANGE_TITLE},
                                {bench.session, WAL_WRITTEN, "c", WAL_CHANGE_CWD},
                                {bench.session, WAL_QUEUED, "u", WAL_CHANGE_TITLE},
                                {bench.session, WAL_QUEUED, "d", WAL_CHANGE_CWD}};
    pthread_t threads[4];
    struct wal_session_info info;

    for (int i = 0; i < 4; i++) {
        WAL__ASSERT(pthread_create(&threads[i], NULL, run_changes, &runners[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        WAL__ASSERT(pthread_join(threads[i], NULL) == 0);
    }
    assert_ok(wal_sync(bench.store, NULL));
    info = kit_info(bench.session);
    assert_int_equal(info.entries, 2 + 4 * ROUNDS);
    assert_true(kit_slice_is(info.title, "t99") || kit_slice_is(info.title, "u99"));
    assert_true(kit_slice_is(info.cwd, "c99") || kit_slice_is(info.cwd, "d99"));
}

/* A refusal for another reason is returned without a retry. */
KIT_TEST(batch__stale_document_with_a_change_is_refused)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_session_change change = kit_title("T");
    struct wal_doc doc = kit_doc("k", "1");
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .documents = &doc, .document_count = 1, .change = &change};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    char *before = kit_snapshot(bench.store, bench.session);

    doc.flags = WAL_DOC_EXPECT;
    doc.version = 7;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(commit(&bench, &batch), WAL_ECONFLICT);
    }
    assert_unchanged(bench.store, bench.session, before);
}

static void *run_docs(void *arg)
{
    struct runner *runner = arg;

    for (int i = 0; i < ROUNDS; i++) {
        enum wal_status status;

        do {
            struct wal_doc doc = {.struct_size = sizeof(doc)};
            struct wal_doc_cursor *docs = NULL;
            uint64_t version = 0;
            char text[32];
            long number = 0;

            WAL__ASSERT(wal_doc_cursor_open(NULL, runner->session, NULL, &docs, NULL) == WAL_OK);
            if (wal_doc_cursor_get(docs, kit_text("n"), 0, &doc, NULL) == WAL_OK) {
                (void)snprintf(text, sizeof(text), "%.*s", (int)doc.value.size,
                               (const char *)doc.value.data);
                number = strtol(text, NULL, 10);
                version = doc.version;
            }
            wal_doc_cursor_close(docs);
            (void)snprintf(text, sizeof(text), "%ld", number + 1);
            doc = kit_doc("n", text);
            doc.flags = WAL_DOC_EXPECT;
            doc.version = version;
            status = wal_doc_put(NULL, runner->session, &doc, NULL, NULL);
            /* Each thread puts a different value, so a put that lost the race is refused by its
             * expected version. */
            WAL__ASSERT(status == WAL_OK || status == WAL_ECONFLICT);
        } while (status != WAL_OK);
    }
    return NULL;
}

/* Concurrent readers and writers of documents: the last value is one that a thread put, and
 * versions only rise. */
KIT_TEST(batch__documents_of_several_threads)
{
    struct kit_bench bench = kit_bench("a b");
    struct runner runner = {bench.session, WAL_DURABLE, NULL, 0};
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        WAL__ASSERT(pthread_create(&threads[i], NULL, run_docs, &runner) == 0);
    }
    for (int i = 0; i < 3; i++) {
        WAL__ASSERT(pthread_join(threads[i], NULL) == 0);
    }
    assert_true(strtol(kit_value(bench.store, bench.session, "n", 0), NULL, 10) >= ROUNDS);
}
