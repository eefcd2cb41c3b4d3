/*
 * test_store_batch_limits.c - tests of the size limits of batches, and of
 * batches of several threads (SPEC.md 5.2, 6).
 */
#include "tests/lib/kit/parts_kit.h"

#include <pthread.h>

#include "format/bytes/assert.h"

enum {
    MEBIBYTE = 1024 * 1024,
    DOCS = 64 * 1024,
    HEADS = 4096,
    REDACTIONS = 5000,
    ROUNDS = 100
};

struct bench {
    struct wal_store *store;
    struct wal_session *session;
};

static struct bench begin(void)
{
    struct bench bench = {.store = kit_store()};

    bench.session = kit_create(bench.store, "s");
    kit_append_all(bench.session, "a b");
    return bench;
}

static void end(struct bench *bench)
{
    wal_session_close(bench->session);
    kit_close(bench->store);
}

static enum wal_status commit(struct bench *bench,
                              const struct wal_batch *batch)
{
    struct wal_error error = KIT_ERROR;
    enum wal_status status =
        wal_batch_commit(bench->session, batch, NULL, NULL, &error);

    assert_int_equal(status, error.status);
    return status;
}

/* Names "PREFIX00001" and so on, each of 16 bytes in one allocation. */
static char *names(const char *prefix, uint32_t count)
{
    char *text = calloc(count, 16);

    assert_non_null(text);
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(text + (size_t)i * 16, 16, "%s%05u", prefix,
                       (unsigned)(i % 100000));
    }
    return text;
}

static uint32_t count_docs(struct bench *bench)
{
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_DOC_CURSOR_KEYS};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;
    uint32_t count = 0;

    assert_ok(wal_doc_cursor_open(bench->store, bench->session, &options, &docs,
                                  NULL));
    while (wal_doc_cursor_next(docs, &doc, NULL) == WAL_OK) {
        assert_int_equal(doc.value.size, 0);
        count++;
    }
    wal_doc_cursor_close(docs);
    return count;
}

KIT_TEST(batch__document_limit_is_65536)
{
    struct bench bench = begin();
    struct wal_doc *docs = calloc(DOCS + 1, sizeof(*docs));
    char *keys = names("k", DOCS + 1);
    struct wal_batch batch = {.struct_size = sizeof(batch),
                              .documents = docs,
                              .document_count = DOCS + 1};
    char *before = kit_snapshot(bench.store, bench.session);

    assert_non_null(docs);
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
    assert_int_equal(kit_last_sequence(bench.store), 3 + DOCS);
    assert_ok(commit(&bench, &batch));
    assert_int_equal(kit_last_sequence(bench.store), 3 + DOCS);
    assert_int_equal(count_docs(&bench), DOCS);
    end(&bench);
    bench.store = kit_store();
    bench.session = kit_session(bench.store, "s");
    assert_int_equal(count_docs(&bench), DOCS);
    assert_string_equal(kit_value(bench.store, bench.session, "k65535", 0),
                        "1");
    free(keys);
    free(docs);
    end(&bench);
}

/* The limit of heads applies to every way of making them; `main` does not
 * count. */
KIT_TEST(batch__head_limit_is_4096)
{
    struct bench bench = begin();
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
    free(texts);
    free(heads);
    end(&bench);
}

/* The records of heads and redactions count too. */
KIT_TEST(batch__size_limit_counts_every_item)
{
    struct bench bench = begin();
    char *text = malloc(15 * MEBIBYTE + 4097);
    struct wal_head *heads = calloc(HEADS, sizeof(*heads));
    char *texts = names("h", HEADS);
    struct wal_doc docs[2];
    struct wal_batch batch = {.struct_size = sizeof(batch),
                              .documents = docs,
                              .document_count = 2,
                              .heads = heads,
                              .head_count = HEADS};
    char *before = kit_snapshot(bench.store, bench.session);

    assert_non_null(text);
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
    free(texts);
    free(heads);
    free(text);
    end(&bench);
}

/* Entries of 200,000 bytes each, `count` of them; their ids are in `ids`. */
static struct wal_entry *large_entries(char *ids, uint32_t count,
                                       const char *payload)
{
    struct wal_entry *entries = calloc(count, sizeof(*entries));

    assert_non_null(entries);
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = kit_entry(ids + (size_t)i * 16, NULL, payload);
    }
    return entries;
}

static char *large_payload(void)
{
    char *text = malloc(200001);

    assert_non_null(text);
    memset(text, 'x', 200000);
    text[0] = '"';
    text[199999] = '"';
    text[200000] = '\0';
    return text;
}

/* 32 MiB of entries are the limit, whatever each of them has. */
KIT_TEST(batch__entries_of_more_than_32_mib_are_refused)
{
    struct bench bench = begin();
    char *payload = large_payload();
    char *ids = names("e", 200);
    struct wal_entry *entries = large_entries(ids, 200, payload);
    struct wal_error error = KIT_ERROR;

    assert_int_equal(
        wal_append(bench.session, entries, 168, NULL, NULL, &error),
        WAL_ETOOBIG);
    assert_error(&error, WAL_ETOOBIG, "the batch is larger than");
    assert_int_equal(kit_info(bench.session).entries, 2);
    assert_ok(wal_append(bench.session, entries, 167, NULL, NULL, &error));
    assert_int_equal(kit_info(bench.session).entries, 2 + 167);
    free(entries);
    free(ids);
    free(payload);
    end(&bench);
}

/* Batches that each fit a group and wait together are written in two. */
KIT_TEST(batch__large_ones_that_wait_together_are_written)
{
    struct bench bench = begin();
    char *payload = large_payload();
    char *ids = names("e", 400);
    struct wal_ticket *tickets[4];

    for (uint32_t i = 0; i < 4; i++) {
        struct wal_entry *entries =
            large_entries(ids + (size_t)i * 100 * 16, 100, payload);

        assert_ok(
            wal_submit(bench.session, entries, 100, NULL, &tickets[i], NULL));
        free(entries);
    }
    for (uint32_t i = 0; i < 4; i++) {
        assert_ok(wal_ticket_wait(tickets[i], -1, NULL, NULL));
        wal_ticket_destroy(tickets[i]);
    }
    assert_int_equal(kit_info(bench.session).entries, 2 + 400);
    free(ids);
    free(payload);
    end(&bench);
}

/* One batch with redactions of more entries than a group may name sessions, in
 * the session itself and in a fork that shares them. */
KIT_TEST(batch__of_5000_redactions)
{
    struct bench bench = begin();
    struct wal_entry *entries = calloc(REDACTIONS, sizeof(*entries));
    char *ids = names("e", REDACTIONS);
    char *payloads = calloc(REDACTIONS, 64);
    struct wal_batch batch = {.struct_size = sizeof(batch),
                              .entries = entries,
                              .entry_count = REDACTIONS};
    struct wal_session *fork;
    uint64_t last;

    assert_non_null(entries);
    assert_non_null(payloads);
    for (uint32_t i = 0; i < REDACTIONS; i++) {
        entries[i] = kit_entry(ids + (size_t)i * 16, NULL, "{}");
    }
    assert_ok(commit(&bench, &batch));
    for (uint32_t i = 0; i < REDACTIONS; i++) {
        char *payload = payloads + (size_t)i * 64;

        (void)snprintf(payload, 64, "{\"targetEntryId\":\"%s\"}",
                       ids + (size_t)i * 16);
        entries[i] = kit_entry(NULL, NULL, payload);
        entries[i].type = kit_text("redaction");
    }
    fork = kit_fork(bench.session, NULL, "f");
    last = kit_last_sequence(bench.store);
    assert_ok(commit(&bench, &batch));
    assert_int_equal(kit_last_sequence(bench.store), last + 2 * REDACTIONS);
    assert_ok(wal_batch_commit(fork, &batch, NULL, NULL, NULL));
    assert_int_equal(kit_last_sequence(bench.store), last + 4 * REDACTIONS);
    wal_session_close(fork);
    free(payloads);
    free(ids);
    free(entries);
    end(&bench);
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
    const struct wal_append_options options = {
        .struct_size = sizeof(options), .durability = runner->durability};

    for (int i = 0; i < ROUNDS; i++) {
        struct wal_session_change change = {.struct_size = sizeof(change),
                                            .fields = runner->field};
        struct wal_append_result result = {.struct_size = sizeof(result)};
        struct wal_entry entry;
        struct wal_batch batch = {.struct_size = sizeof(batch),
                                  .entries = &entry,
                                  .entry_count = 1,
                                  .change = &change};
        char text[32];

        (void)snprintf(text, sizeof(text), "%s%d", runner->name, i);
        entry = kit_entry(text, NULL, "{}");
        change.title = kit_text(text);
        change.cwd = kit_text(text);
        WAL__ASSERT(wal_batch_commit(runner->session, &batch, &options, &result,
                                     NULL) == WAL_OK);
        WAL__ASSERT(runner->durability != WAL_WRITTEN || result.appended == 1);
    }
    return NULL;
}

/* A change without an expected version that meets a change of another thread is
 * applied to the new state: no field of either is lost, queued or not. */
KIT_TEST(batch__stale_change_is_retried)
{
    struct bench bench = begin();
    struct runner runners[4] = {
        {bench.session, WAL_WRITTEN, "t", WAL_CHANGE_TITLE},
        {bench.session, WAL_WRITTEN, "c", WAL_CHANGE_CWD},
        {bench.session, WAL_QUEUED, "u", WAL_CHANGE_TITLE},
        {bench.session, WAL_QUEUED, "d", WAL_CHANGE_CWD}};
    pthread_t threads[4];
    struct wal_session_info info;

    for (int i = 0; i < 4; i++) {
        WAL__ASSERT(
            pthread_create(&threads[i], NULL, run_changes, &runners[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        WAL__ASSERT(pthread_join(threads[i], NULL) == 0);
    }
    assert_ok(wal_sync(bench.store, NULL));
    info = kit_info(bench.session);
    assert_int_equal(info.entries, 2 + 4 * ROUNDS);
    assert_true(kit_slice_is(info.title, "t99") ||
                kit_slice_is(info.title, "u99"));
    assert_true(kit_slice_is(info.cwd, "c99") || kit_slice_is(info.cwd, "d99"));
    end(&bench);
}

/* A refusal for another reason is returned without a retry. */
KIT_TEST(batch__stale_document_with_a_change_is_refused)
{
    struct bench bench = begin();
    struct wal_session_change change = kit_title("T");
    struct wal_doc doc = kit_doc("k", "1");
    struct wal_batch batch = {.struct_size = sizeof(batch),
                              .documents = &doc,
                              .document_count = 1,
                              .change = &change};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    char *before = kit_snapshot(bench.store, bench.session);

    doc.flags = WAL_DOC_EXPECT;
    doc.version = 7;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(commit(&bench, &batch), WAL_ECONFLICT);
    }
    assert_unchanged(bench.store, bench.session, before);
    end(&bench);
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

            WAL__ASSERT(wal_doc_cursor_open(NULL, runner->session, NULL, &docs,
                                            NULL) == WAL_OK);
            if (wal_doc_cursor_get(docs, kit_text("n"), 0, &doc, NULL) ==
                WAL_OK) {
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
            /* Each thread puts a different value, so a put that lost the race
             * is refused by its expected version. */
            WAL__ASSERT(status == WAL_OK || status == WAL_ECONFLICT);
        } while (status != WAL_OK);
    }
    return NULL;
}

/* Concurrent readers and writers of documents: the last value is one that a
 * thread put, and versions only rise. */
KIT_TEST(batch__documents_of_several_threads)
{
    struct bench bench = begin();
    struct runner runner = {bench.session, WAL_DURABLE, NULL, 0};
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        WAL__ASSERT(pthread_create(&threads[i], NULL, run_docs, &runner) == 0);
    }
    for (int i = 0; i < 3; i++) {
        WAL__ASSERT(pthread_join(threads[i], NULL) == 0);
    }
    assert_true(strtol(kit_value(bench.store, bench.session, "n", 0), NULL,
                       10) >= ROUNDS);
    end(&bench);
}
