/*
 * parts_kit.c - see parts_kit.h.
 */
#include "tests/lib/kit/parts_kit.h"

#include <inttypes.h>

#include "format/bytes/assert.h"

struct text_buffer {
    char *text;
    size_t size;
};

static void put(struct text_buffer *to, const void *data, size_t size)
{
    char *grown = realloc(to->text, to->size + size + 1);

    WAL__ASSERT(grown != NULL);
    if (size > 0) {
        memcpy(grown + to->size, data, size);
    }
    to->size += size;
    grown[to->size] = '\0';
    to->text = grown;
}

static void put_text(struct text_buffer *to, const char *text)
{
    put(to, text, strlen(text));
}

static void put_slice(struct text_buffer *to, struct wal_slice slice)
{
    put(to, slice.data, slice.size);
}

static void put_number(struct text_buffer *to, uint64_t number)
{
    char text[32];

    (void)snprintf(text, sizeof(text), " %" PRIu64, number);
    put_text(to, text);
}

static void check(enum wal_status status, const struct wal_error *error, const char *what)
{
    if (status != WAL_OK) {
        fail_msg("%s: %d, %s: %s", what, status, wal_status_text(status), error->text);
    }
}

/* --- documents ------------------------------------------------------------ */

struct wal_doc kit_doc(const char *key, const char *value)
{
    struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = kit_text(key), .value = kit_text(value)};

    return doc;
}

uint64_t kit_put(struct wal_store *store, struct wal_session *session, const char *key,
                 const char *value)
{
    struct wal_doc doc = kit_doc(key, value);
    struct wal_error error = KIT_ERROR;
    uint64_t version = 0;

    check(wal_doc_put(store, session, &doc, &version, &error), &error, key);
    assert_true(version > 0);
    return version;
}

uint64_t kit_delete(struct wal_store *store, struct wal_session *session, const char *key)
{
    struct wal_doc doc = kit_doc(key, NULL);
    struct wal_error error = KIT_ERROR;
    uint64_t version = 0;

    check(wal_doc_delete(store, session, &doc, &version, &error), &error, key);
    assert_true(version > 0);
    return version;
}

static void put_docs(struct text_buffer *to, struct wal_store *store, struct wal_session *session,
                     const struct wal_doc_cursor_options *options, bool versions)
{
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_error error = KIT_ERROR;
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status;
    const char *between = "";

    check(wal_doc_cursor_open(store, session, options, &docs, &error), &error,
          "wal_doc_cursor_open");
    while ((status = wal_doc_cursor_next(docs, &doc, &error)) == WAL_OK) {
        bool deleted = (doc.flags & WAL_DOC_DELETE) != 0;

        assert_int_equal(doc.struct_size, sizeof(doc));
        assert_true(doc.version > 0);
        assert_true(doc.modified_ms > 0);
        put_text(to, between);
        put_slice(to, doc.key);
        put_text(to, deleted ? "-" : "=");
        put_slice(to, doc.value);
        if (versions) {
            put_number(to, doc.version);
        }
        between = " ";
    }
    assert_int_equal(status, WAL_END);
    assert_int_equal(wal_doc_cursor_next(docs, &doc, &error), WAL_END);
    wal_doc_cursor_close(docs);
}

const char *kit_docs(struct wal_store *store, struct wal_session *session, uint32_t flags,
                     const char *prefix)
{
    static struct text_buffer text;
    struct wal_doc_cursor_options options = {
        .struct_size = sizeof(options), .flags = flags, .prefix = kit_text(prefix)};

    text.size = 0;
    put_text(&text, "");
    put_docs(&text, store, session, &options, false);
    return text.text;
}

const char *kit_value(struct wal_store *store, struct wal_session *session, const char *key,
                      uint64_t version)
{
    static struct text_buffer text;
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_error error = KIT_ERROR;
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status;

    text.size = 0;
    put_text(&text, "");
    check(wal_doc_cursor_open(store, session, NULL, &docs, &error), &error, "wal_doc_cursor_open");
    status = wal_doc_cursor_get(docs, kit_text(key), version, &doc, &error);
    if (status != WAL_ENOTFOUND) {
        check(status, &error, key);
        assert_slice(doc.key, key);
        assert_int_equal(doc.flags, 0);
        assert_true(version == 0 || doc.version == version);
        put_slice(&text, doc.value);
    }
    wal_doc_cursor_close(docs);
    return text.text;
}

/* --- heads ---------------------------------------------------------------- */

struct wal_head kit_head(const char *name, const char *entry, const char *expected)
{
    struct wal_head head = {.struct_size = sizeof(head),
                            .flags = expected != NULL ? WAL_HEAD_EXPECT : 0,
                            .name = kit_text(name),
                            .entry_id = kit_text(entry),
                            .expected = kit_text(expected)};

    return head;
}

void kit_move_head(struct wal_session *session, const char *name, const char *entry)
{
    struct wal_head head = kit_head(name, entry, NULL);
    struct wal_error error = KIT_ERROR;

    check(wal_head_move(session, &head, NULL, &error), &error, name);
}

static void put_heads(struct text_buffer *to, struct wal_session *session, bool versions)
{
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_error error = KIT_ERROR;
    struct wal_head_cursor *heads = NULL;
    enum wal_status status;
    const char *between = "";

    check(wal_head_cursor_open(session, &heads, &error), &error, "wal_head_cursor_open");
    while ((status = wal_head_cursor_next(heads, &head, &error)) == WAL_OK) {
        put_text(to, between);
        put_slice(to, head.name);
        put_text(to, "=");
        put_slice(to, head.entry_id);
        if (head.note.size > 0) {
            put_text(to, "(");
            put_slice(to, head.note);
            put_text(to, ")");
        }
        if (versions) {
            put_number(to, head.version);
        }
        between = " ";
    }
    assert_int_equal(status, WAL_END);
    wal_head_cursor_close(heads);
}

const char *kit_heads(struct wal_session *session)
{
    static struct text_buffer text;

    text.size = 0;
    put_text(&text, "");
    put_heads(&text, session, false);
    return text.text;
}

/* --- everything ----------------------------------------------------------- */

struct wal_session_change kit_title(const char *title)
{
    struct wal_session_change change = {
        .struct_size = sizeof(change), .fields = WAL_CHANGE_TITLE, .title = kit_text(title)};

    return change;
}

void kit_reopen_unchanged(struct kit_bench *bench)
{
    char *before = kit_snapshot(bench->store, bench->session);

    kit_reopen(bench, 0);
    assert_unchanged(bench->store, bench->session, before);
}

static void put_info(struct text_buffer *to, struct wal_session *session)
{
    struct wal_session_info info = kit_info(session);

    put_slice(to, info.id);
    put_text(to, "|");
    put_slice(to, info.cwd);
    put_text(to, "|");
    put_slice(to, info.project);
    put_text(to, "|");
    put_slice(to, info.title);
    put_text(to, "|");
    put_slice(to, info.metadata);
    put_text(to, "|");
    put_slice(to, info.head);
    put_text(to, "|");
    put_slice(to, info.first_text);
    put_number(to, info.schema_version);
    put_number(to, info.entries);
    put_number(to, info.bytes);
    put_number(to, info.last_sequence);
    put_number(to, info.metadata_version);
    put_number(to, info.documents);
}

char *kit_snapshot(struct wal_store *store, struct wal_session *session)
{
    struct wal_doc_cursor_options history = {.struct_size = sizeof(history),
                                             .flags = WAL_DOC_CURSOR_HISTORY};
    struct wal_entry_cursor_options all = {.struct_size = sizeof(all),
                                           .mode = WAL_ENTRY_CURSOR_ALL,
                                           .flags =
                                               WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED};
    struct text_buffer text = {NULL, 0};

    put_info(&text, session);
    put_text(&text, "\nentries ");
    put_text(&text, kit_list_ids(session, &all));
    put_text(&text, "\nbranch ");
    put_text(&text, kit_list_ids(session, NULL));
    put_text(&text, "\nheads ");
    put_heads(&text, session, true);
    put_text(&text, "\ndocuments ");
    put_docs(&text, store, session, &history, true);
    put_text(&text, "\nstore ");
    put_docs(&text, store, NULL, &history, true);
    put_text(&text, "\nlast");
    put_number(&text, kit_store_info(store).last_sequence);
    return text.text;
}

void assert_unchanged(struct wal_store *store, struct wal_session *session, char *before)
{
    char *after = kit_snapshot(store, session);

    assert_string_equal(after, before);
    free(after);
    free(before);
}
