/*
 * salvage_records.c - repeats moves of heads, versions of documents, and
 * redactions.
 *
 * A redaction is an entry, and appending it hides its target again. If that
 * entry is lost and its REDACT record is not, the target is redacted again, so
 * that OUT shows no hidden content.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/salvage/salvage.h"

static struct wal_slice slice_of(struct wal__span span)
{
    return (struct wal_slice){span.data, span.size};
}

/* The session, if it has a copy in OUT that is not deleted, or NULL. */
static struct wal__salvage_session *find_writable(struct wal__salvage *salvage,
                                                  uint32_t number)
{
    struct wal__salvage_session *session =
        wal__salvage_open_session(salvage, number);

    return session == NULL || session->handle == NULL || session->is_removed
               ? NULL
               : session;
}

static enum wal_status commit(const struct wal__salvage_session *session,
                              const struct wal_batch *batch,
                              struct wal_error *error)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = WAL_WRITTEN,
    };

    return wal_batch_commit(session->handle, batch, &options, NULL, error);
}

/* --- heads ---------------------------------------------------------------- */

static void move_head(struct wal__salvage *salvage,
                      const struct wal__salvage_session *session,
                      const struct wal__frame *frame,
                      const struct wal__head_record *record)
{
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_head head = WAL_INIT(wal_head);
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .head_count = 1,
        .heads = &head,
    };
    const struct wal_slice name = slice_of(record->name);
    uint64_t ancestor = frame->parent;
    char target[WAL_ID_SIZE];
    enum wal_status status;

    if (!wal__salvage_find_ancestor(salvage, &ancestor, target) &&
        frame->parent != 0) {
        wal__salvage_report(salvage, WAL_SALVAGE_HEAD, session->id, "",
                            "a move of the head %.*s is not repeated: its "
                            "target, sequence %" PRIu64 ", is lost",
                            WAL_ARG(name), frame->parent);
        return;
    }
    head.stream = frame->stream;
    head.name = name;
    head.note = slice_of(record->note);
    head.entry_id = wal__salvage_text(target);
    status = commit(session, &batch, &error);
    if (status == WAL_OK && ancestor != frame->parent) {
        wal__salvage_report(salvage, WAL_SALVAGE_HEAD, session->id, "",
                            "the target of the head %.*s, sequence %" PRIu64
                            ", is lost; it is moved to %s",
                            WAL_ARG(name), frame->parent, target);
    } else if (status != WAL_OK &&
               !wal__salvage_is_fatal(salvage, status, &error) &&
               (status != WAL_ENOTFOUND || target[0] != '\0')) {
        /* A missing head need not be removed. */
        wal__salvage_report(salvage, WAL_SALVAGE_HEAD, session->id, "",
                            "the head %.*s cannot be moved: %s", WAL_ARG(name),
                            wal__salvage_error_text(status, &error));
    }
}

void wal__salvage_head(struct wal__salvage *salvage,
                       const struct wal__frame *frame, struct wal__span payload)
{
    const struct wal__salvage_session *session =
        find_writable(salvage, frame->session);
    struct wal__head_record record;

    if (session != NULL &&
        wal__head_record_decode(payload, &record) == WAL__FMT_OK) {
        move_head(salvage, session, frame, &record);
    }
}

/* --- documents ------------------------------------------------------------ */

static enum wal_status put_doc(struct wal__salvage *salvage,
                               const struct wal__salvage_session *session,
                               const struct wal_doc *doc,
                               struct wal_error *error)
{
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .document_count = 1,
        .documents = doc,
    };
    struct wal_doc plain = *doc;

    if (session != NULL) {
        return commit(session, &batch, error);
    }
    plain.flags = 0;
    return (doc->flags & WAL_DOC_DELETE) != 0
               ? wal_doc_delete(salvage->out, NULL, &plain, NULL, error)
               : wal_doc_put(salvage->out, NULL, &plain, NULL, error);
}

void wal__salvage_doc(struct wal__salvage *salvage,
                      const struct wal__frame *frame, struct wal__span payload)
{
    bool is_store = frame->session == WAL__STORE_NUMBER;
    struct wal__salvage_session *session =
        is_store ? NULL : find_writable(salvage, frame->session);
    struct wal_error error = WAL_INIT(wal_error);
    struct wal__doc_record record;
    struct wal_doc doc = WAL_INIT(wal_doc);
    enum wal_status status;

    if ((session == NULL && !is_store) ||
        wal__doc_record_decode(payload, &record) != WAL__FMT_OK) {
        return;
    }
    if (!is_store && record.key.size > 0 && record.key.data[0] == 0) {
        wal__salvage_reserved_doc(salvage, session, frame, &record);
        return;
    }
    if (frame->type == WAL__FRAME_DOC_DELETE) {
        doc.flags = WAL_DOC_DELETE;
    }
    doc.key = slice_of(record.key);
    doc.value = slice_of(record.value);
    status = put_doc(salvage, session, &doc, &error);
    if (status == WAL_OK) {
        salvage->result.documents++;
    } else if (!wal__salvage_is_fatal(salvage, status, &error)) {
        wal__salvage_report(salvage, WAL_SALVAGE_DOCUMENT,
                            is_store ? "" : session->id, "",
                            "a version of the document %.*s, sequence %" PRIu64
                            ", cannot be written: %s",
                            WAL_ARG(doc.key), frame->sequence,
                            wal__salvage_error_text(status, &error));
    }
}

/* --- redactions ----------------------------------------------------------- */

void wal__salvage_add_redaction(struct wal__salvage *salvage,
                                const struct wal__frame *frame,
                                struct wal__span payload)
{
    struct wal__salvage_redaction *redaction;
    struct wal__redact_record record;

    if (wal__redact_record_decode(payload, &record) != WAL__FMT_OK ||
        !wal__salvage_grow(salvage, (void **)&salvage->redactions,
                           salvage->redaction_count,
                           &salvage->redaction_capacity, sizeof(*redaction))) {
        return;
    }
    redaction = &salvage->redactions[salvage->redaction_count];
    *redaction = (struct wal__salvage_redaction){
        .owner = frame->session,
        .holder = record.session,
        .reason = wal__heap_alloc(salvage->heap, record.reason.size),
        .reason_size = record.reason.size,
    };
    if (redaction->reason == NULL) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    salvage->redaction_count++;
    wal__salvage_copy_id(redaction->entry, slice_of(record.entry_id));
    wal__salvage_copy_id(redaction->target, slice_of(record.target_id));
    if (record.reason.size > 0) {
        memcpy(redaction->reason, record.reason.data, record.reason.size);
    }
}

/* Whether the session sees the entry and its content. */
static bool is_visible(const struct wal__salvage_session *session,
                       const char *id)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    bool visible = false;

    if (wal_entry_cursor_open(session->handle, NULL, &cursor, NULL) == WAL_OK) {
        visible = wal_entry_cursor_get(cursor, wal__salvage_text(id), &entry,
                                       NULL) == WAL_OK;
        wal_entry_cursor_close(cursor);
    }
    return visible;
}

/* Redacts the target in a session, unless it is redacted or missing. */
static void redact_in_session(struct wal__salvage *salvage, uint32_t number,
                              const struct wal__salvage_redaction *redaction)
{
    const struct wal__salvage_session *session =
        wal__salvage_find_session(salvage, number);
    struct wal_error error = WAL_INIT(wal_error);
    enum wal_status status;

    if (salvage->failed != WAL_OK || session == NULL ||
        session->handle == NULL || session->is_removed ||
        !is_visible(session, redaction->target)) {
        return;
    }
    status = wal_session_redact(
        session->handle, wal__salvage_text(redaction->target),
        (struct wal_slice){redaction->reason, redaction->reason_size}, NULL,
        &error);
    if (status == WAL_OK) {
        wal__salvage_report(salvage, WAL_SALVAGE_ENTRY, session->id,
                            redaction->target,
                            "its redaction %s is lost; it was redacted again",
                            redaction->entry);
    } else if (!wal__salvage_is_fatal(salvage, status, &error)) {
        wal__salvage_report(
            salvage, WAL_SALVAGE_ENTRY, session->id, redaction->target,
            "its redaction %s is lost, and it cannot be "
            "redacted: %s",
            redaction->entry, wal__salvage_error_text(status, &error));
    }
}

void wal__salvage_redo_redactions(struct wal__salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->redaction_count; i++) {
        const struct wal__salvage_redaction *redaction =
            &salvage->redactions[i];

        redact_in_session(salvage, redaction->holder, redaction);
        redact_in_session(salvage, redaction->owner, redaction);
        wal__heap_free(salvage->heap, redaction->reason);
    }
    salvage->redaction_count = 0;
}
