/*
 * copies.c - copies of the store: backups, and second stores by bundles and merges (model.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/model/model.h"

void model_back_up(struct model *model, struct differential *run, bool is_erased)
{
    struct wal_store_backup_result result = {.struct_size = sizeof(result)};
    enum wal_status status = wal_store_backup(run->store, model->copy, NULL, &result, &run->error);

    model_disarm();
    (void)differential_compare_status(run, status, WAL_OK);
    differential_check_number(run, "the last sequence of the copy", result.last_sequence,
                              reference_last_sequence(run->ref));
    if (is_erased) {
        model_search(model, run, model->copy);
    }
}

/* Of several redactions of an entry another one may count in the copy, and one that was undone
 * since the copy was made. */
static void take_redaction(const struct differential *run, const struct wal_entry *engine,
                           struct reference_entry *wanted)
{
    struct wal_slice by;

    if ((engine->flags & WAL_ENTRY_REDACTED) != 0 &&
        ((wanted->entry.flags & WAL_ENTRY_REDACTED) != 0 ||
         reference_was_redacted(run->ref, wanted->entry.sequence, 0)) &&
        reference_member(engine->payload, "redactedBy", &by)) {
        reference_take_redaction(run->ref, by, wanted);
        reference_free(by);
    }
}

/* Compares an entry of the second store. Sequence numbers are its own. */
static void compare_entry(struct differential *run, const struct wal_entry *entry,
                          struct reference_entry *wanted)
{
    take_redaction(run, entry, wanted);
    wanted->entry.sequence = entry->sequence;
    differential_check_entry(run, entry, wanted);
}

/* The copy has no other entries, but for redactions of a session that is not copied: they are
 * repeated where they hide something. */
static void find_all(struct differential *run, struct wal_entry_cursor *cursor,
                     const struct reference_entry *entries, uint32_t count)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    enum wal_status status = wal_entry_cursor_next(cursor, &entry, &run->error);

    while (status == WAL_OK) {
        bool is_known = reference_is_redaction(run->ref, entry.id);

        for (uint32_t i = 0; i < count && !is_known; i++) {
            is_known = reference_is_equal(entries[i].entry.id, entry.id);
        }
        if (!is_known) {
            differential_fail(run, "the copy has an entry more: %.*s, a %.*s", (int)entry.id.size,
                              (const char *)entry.id.data, (int)entry.type.size,
                              (const char *)entry.type.data);
        }
        status = wal_entry_cursor_next(cursor, &entry, &run->error);
    }
    (void)differential_compare_status(run, status, WAL_END);
}

/* Compares a stream of a session in the second store: its branch, and each entry by its id, since
 * those of other branches may be in another order. */
static void compare_stream(struct differential *run, uint32_t number, struct wal_session *session,
                           uint32_t stream, uint32_t mode)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .flags = WAL_ENTRY_CURSOR_REDACTED,
                                                     .mode = mode,
                                                     .stream = stream};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    struct reference_entry *entries = NULL;
    uint32_t count = 0;

    (void)differential_compare_status(
        run, wal_entry_cursor_open(session, &options, &cursor, &run->error),
        reference_read(run->ref, number, &options, &entries, &count));
    for (uint32_t i = 0; i < count; i++) {
        enum wal_status status =
            mode == WAL_ENTRY_CURSOR_BRANCH
                ? wal_entry_cursor_next(cursor, &entry, &run->error)
                : wal_entry_cursor_get(cursor, entries[i].entry.id, &entry, &run->error);

        (void)differential_compare_status(run, status, WAL_OK);
        compare_entry(run, &entry, &entries[i]);
    }
    if (mode == WAL_ENTRY_CURSOR_ALL) {
        find_all(run, cursor, entries, count);
    } else {
        (void)differential_compare_status(run, wal_entry_cursor_next(cursor, &entry, &run->error),
                                          WAL_END);
    }
    wal_entry_cursor_close(cursor);
    common_free(entries);
}

static void compare_heads(struct differential *run, uint32_t number, struct wal_session *session)
{
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_head_cursor *heads = NULL;
    struct wal_head *wanted = NULL;
    uint32_t count = 0;

    (void)differential_compare_status(run, wal_head_cursor_open(session, &heads, &run->error),
                                      reference_heads(run->ref, number, &wanted, &count));
    for (uint32_t i = 0; i < count; i++) {
        (void)differential_compare_status(run, wal_head_cursor_next(heads, &head, &run->error),
                                          WAL_OK);
        differential_check_slice(run, "a head's name", head.name, wanted[i].name);
        differential_check_slice(run, "a head's entry", head.entry_id, wanted[i].entry_id);
        differential_check_slice(run, "a head's note", head.note, wanted[i].note);
    }
    (void)differential_compare_status(run, wal_head_cursor_next(heads, &head, &run->error),
                                      WAL_END);
    wal_head_cursor_close(heads);
    common_free(wanted);
}

static void compare_docs(struct differential *run, struct wal_store *store, uint32_t number,
                         struct wal_session *session)
{
    const struct wal_doc_cursor_options options = {.struct_size = sizeof(options)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct reference_doc *wanted = NULL;
    struct wal_doc_cursor *docs = NULL;
    uint32_t count = 0;

    (void)differential_compare_status(
        run, wal_doc_cursor_open(store, session, &options, &docs, &run->error),
        reference_docs(run->ref, number, &options, &wanted, &count));
    for (uint32_t i = 0; i < count; i++) {
        (void)differential_compare_status(run, wal_doc_cursor_next(docs, &doc, &run->error),
                                          WAL_OK);
        wanted[i].doc.version = doc.version; /* its own */
        if (session == NULL) {
            /* One of the store is put anew. */
            wanted[i].doc.modified_ms = doc.modified_ms;
            wanted[i].latest_ms = doc.modified_ms;
        }
        differential_check_doc(run, &doc, &wanted[i], false);
    }
    (void)differential_compare_status(run, wal_doc_cursor_next(docs, &doc, &run->error), WAL_END);
    wal_doc_cursor_close(docs);
    common_free(wanted);
}

static void compare_session(struct differential *run, struct wal_store *store, uint32_t number)
{
    struct wal_session_info got = {.struct_size = sizeof(got)};
    struct wal_session *session = NULL;
    struct reference_info wanted;

    (void)!reference_session_status(run->ref, number, &wanted);
    (void)differential_compare_status(
        run, wal_session_open(store, wanted.info.id, &session, &run->error), WAL_OK);
    (void)differential_compare_status(run, wal_session_get_info(session, &got, &run->error),
                                      WAL_OK);
    differential_check_slice(run, "title", got.title, wanted.info.title);
    differential_check_slice(run, "cwd", got.cwd, wanted.info.cwd);
    differential_check_slice(run, "metadata", got.metadata, wanted.info.metadata);
    differential_check_slice(run, "head", got.head, wanted.info.head);
    for (uint32_t stream = 0; stream < DIFFERENTIAL_STREAMS; stream++) {
        compare_stream(run, number, session, stream, WAL_ENTRY_CURSOR_BRANCH);
        compare_stream(run, number, session, stream, WAL_ENTRY_CURSOR_ALL);
    }
    compare_heads(run, number, session);
    compare_docs(run, store, number, session);
    wal_session_close(session);
}

/* Into a store that is empty no session is refused. */
static int32_t report(void *ctx, const struct wal_transfer_report *made)
{
    const struct differential *run = ctx;

    if (made->status != WAL_OK) {
        differential_fail(run, "session %.*s is refused: %s", (int)made->session_id.size,
                          (const char *)made->session_id.data,
                          made->error == NULL ? wal_status_text(made->status) : made->error->text);
    }
    return 0;
}

void model_transfer(struct model *model, struct differential *run, bool by_bundle)
{
    const struct wal_open_options open = {.struct_size = sizeof(open), .flags = WAL_OPEN_CREATE};
    const struct wal_transfer_options options = {
        .struct_size = sizeof(options), .report = report, .ctx = run};
    struct wal_transfer_result result = {.struct_size = sizeof(result)};
    const struct wal_slice bundle = differential_slice(model->bundle);
    uint32_t count = reference_session_count(run->ref);
    struct wal_store *other = NULL;

    (void)differential_compare_status(run, wal_open(model->other, &open, &other, &run->error),
                                      WAL_OK);
    if (by_bundle) {
        (void)differential_compare_status(
            run, wal_bundle_write(run->store, bundle, &options, &result, &run->error), WAL_OK);
        (void)differential_compare_status(
            run, wal_bundle_read(other, bundle, &options, &result, &run->error), WAL_OK);
    } else {
        (void)differential_compare_status(
            run, wal_store_merge(run->store, other, &options, &result, &run->error), WAL_OK);
        compare_docs(run, other, REFERENCE_STORE, NULL);
    }
    for (uint32_t number = 1; number <= count; number++) {
        if (!reference_is_deleted(run->ref, number) && !reference_is_trashed(run->ref, number)) {
            compare_session(run, other, number);
        }
    }
    (void)differential_compare_status(run, wal_close(other, &run->error), WAL_OK);
    model_search(model, run, model->other);
}
