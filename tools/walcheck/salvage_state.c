/*
 * salvage_state.c - repeats moves of heads, versions of documents, and
 * redactions.
 *
 * A redaction is an entry, and appending it hides its target again. If that
 * entry is lost and its REDACT record is not, the target is redacted again, so
 * that OUT shows no hidden content.
 *
 * Threads: the main thread.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/walcheck/salvage.h"

static struct wal_slice slice_of(struct wal__span span)
{
    return (struct wal_slice){span.data, span.size};
}

static const char *error_text(enum wal_status status,
                              const struct wal_error *error)
{
    return error->text[0] != '\0' ? error->text : wal_status_text(status);
}

/* The session in OUT; null if it is missing or deleted. */
static struct salvage_session *find_writable_session(struct salvage *salvage,
                                                     uint32_t number)
{
    struct salvage_session *session = salvage_session(salvage, number);

    return session->handle == NULL || session->deleted ? NULL : session;
}

static enum wal_status commit(struct salvage_session *session,
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

void salvage_head(struct salvage *salvage, const struct wal__frame *frame,
                  struct wal__span payload)
{
    struct salvage_session *session =
        find_writable_session(salvage, frame->session);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal__head_record record;
    struct wal_head head = {.struct_size = sizeof(head)};
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .head_count = 1,
        .heads = &head,
    };
    uint64_t ancestor = frame->parent;
    enum wal_status status;
    char *name;
    char *target;

    if (session == NULL ||
        wal__head_record_decode(payload, &record) != WAL__FMT_OK) {
        return; /* already reported */
    }
    name = cli_copy_text(record.name.data, record.name.size);
    target = salvage_nearest_ancestor(salvage, &ancestor);
    if (target == NULL && frame->parent != 0) {
        salvage_note(salvage, session->id, "",
                     "a move of the head %s is not repeated: its target, "
                     "sequence %" PRIu64 ", is lost",
                     name, frame->parent);
        free(name);
        return;
    }
    head.stream = frame->stream;
    head.name = slice_of(record.name);
    head.note = slice_of(record.note);
    head.entry_id = cli_slice(target == NULL ? "" : target);
    status = commit(session, &batch, &error);
    if (status == WAL_OK && ancestor != frame->parent) {
        salvage_note(salvage, session->id, "",
                     "the target of the head %s, sequence %" PRIu64
                     ", is lost; it is moved to %s",
                     name, frame->parent, target);
    } else if (status != WAL_OK && !salvage_is_fatal(salvage, status, &error) &&
               (status != WAL_ENOTFOUND || target != NULL)) {
        /* A missing head need not be removed. */
        salvage_note(salvage, session->id, "",
                     "the head %s cannot be moved: %s", name,
                     error_text(status, &error));
    }
    free(name);
    free(target);
}

/* --- documents ------------------------------------------------------------ */

static enum wal_status put_doc(struct salvage *salvage,
                               struct salvage_session *session,
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

void salvage_doc(struct salvage *salvage, const struct wal__frame *frame,
                 struct wal__span payload)
{
    bool is_store = frame->session == WAL__STORE_NUMBER;
    struct salvage_session *session =
        is_store ? NULL : find_writable_session(salvage, frame->session);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal__doc_record record;
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    enum wal_status status;
    char *key;

    if ((session == NULL && !is_store) ||
        wal__doc_record_decode(payload, &record) != WAL__FMT_OK) {
        return; /* already reported */
    }
    if (!is_store && check_key_is_reserved(record.key)) {
        salvage_reserved_doc(salvage, session, frame, &record);
        return;
    }
    if (frame->type == WAL__FRAME_DOC_DELETE) {
        doc.flags = WAL_DOC_DELETE;
    }
    doc.key = slice_of(record.key);
    doc.value = slice_of(record.value);
    status = put_doc(salvage, session, &doc, &error);
    if (status == WAL_OK) {
        salvage->documents_written++;
        return;
    }
    if (salvage_is_fatal(salvage, status, &error)) {
        return;
    }
    key = cli_copy_text(record.key.data, record.key.size);
    salvage_note(salvage, is_store ? "" : session->id, "",
                 "a version of the document %s, sequence %" PRIu64
                 ", cannot be written: %s",
                 key, frame->sequence, error_text(status, &error));
    free(key);
}

/* --- redactions ----------------------------------------------------------- */

void salvage_add_redaction(struct salvage *salvage,
                           const struct wal__frame *frame,
                           struct wal__span payload)
{
    struct wal__redact_record record;

    if (wal__redact_record_decode(payload, &record) != WAL__FMT_OK) {
        return; /* reported as damage */
    }
    salvage->redactions =
        cli_reserve(salvage->redactions, salvage->redaction_count,
                    &salvage->redaction_capacity, sizeof(*salvage->redactions));
    salvage->redactions[salvage->redaction_count++] =
        (struct salvage_redaction){
            .owner = frame->session,
            .holder = record.session,
            .entry = cli_copy_text(record.entry_id.data, record.entry_id.size),
            .target =
                cli_copy_text(record.target_id.data, record.target_id.size),
            .reason = cli_copy_text(record.reason.data, record.reason.size),
        };
}

/* Whether the session sees the entry and its content. */
static bool is_visible(const struct salvage_session *session, const char *id)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    bool visible = false;

    if (wal_entry_cursor_open(session->handle, NULL, &cursor, NULL) == WAL_OK) {
        visible =
            wal_entry_cursor_get(cursor, cli_slice(id), &entry, NULL) == WAL_OK;
        wal_entry_cursor_close(cursor);
    }
    return visible;
}

/* Redacts the target in a session, unless it is redacted or missing. */
static void redact_in_session(struct salvage *salvage, uint32_t number,
                              const struct salvage_redaction *redaction)
{
    const struct salvage_session *session =
        salvage_find_session(salvage, number);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    if (session == NULL || session->handle == NULL || session->deleted ||
        !is_visible(session, redaction->target)) {
        return;
    }
    status = wal_session_redact(session->handle, cli_slice(redaction->target),
                                cli_slice(redaction->reason), NULL, &error);
    if (status == WAL_OK) {
        salvage_note(salvage, session->id, redaction->target,
                     "its redaction %s is lost; it was redacted again",
                     redaction->entry);
    } else if (!salvage_is_fatal(salvage, status, &error)) {
        salvage_note(salvage, session->id, redaction->target,
                     "its redaction %s is lost, and it cannot be redacted: %s",
                     redaction->entry, error_text(status, &error));
    }
}

void salvage_redo_redactions(struct salvage *salvage)
{
    for (size_t i = 0; i < salvage->redaction_count; i++) {
        struct salvage_redaction *redaction = &salvage->redactions[i];

        redact_in_session(salvage, redaction->holder, redaction);
        redact_in_session(salvage, redaction->owner, redaction);
        free(redaction->entry);
        free(redaction->target);
        free(redaction->reason);
    }
    salvage->redaction_count = 0;
}
