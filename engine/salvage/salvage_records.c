/*
 * salvage_records.c - repeats moves of heads, versions of documents, and
 * redactions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/salvage/salvage.h"
#include "engine/store/input_text.h"

static enum wal_status commit(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session,
                              const struct wal_batch *batch)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = WAL_WRITTEN,
    };

    return wal_batch_commit(session->handle, batch, &options, NULL,
                            &salvage->error);
}

/* --- heads ---------------------------------------------------------------- */

void wal__salvage_head(struct wal__salvage *salvage,
                       const struct wal__frame *frame,
                       const struct wal__head_record *record)
{
    const struct wal__salvage_session *session =
        wal__salvage_find_writable(salvage, frame->session);
    uint64_t ancestor = frame->parent;
    const char *target = wal__salvage_find_ancestor(salvage, &ancestor);
    const struct wal_head head = {
        .struct_size = sizeof(head),
        .stream = frame->stream,
        .name = wal__text_slice(record->name),
        .note = wal__text_slice(record->note),
        .entry_id = wal__salvage_text(target),
    };
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .head_count = 1,
        .heads = &head,
    };
    enum wal_status status;

    if (session == NULL) {
        return;
    }
    if (target[0] == '\0' && frame->parent != 0) {
        wal__salvage_report(salvage, WAL_SALVAGE_HEAD, session->id, "",
                            "a move of the head %.*s is not repeated: its "
                            "target, sequence %" PRIu64 ", is lost",
                            WAL_ARG(head.name), frame->parent);
        return;
    }
    status = commit(salvage, session, &batch);
    if (status == WAL_ENOTFOUND && target[0] == '\0') {
        return; /* a missing head need not be removed */
    }
    if (wal__salvage_check(salvage, status, WAL_SALVAGE_HEAD, session->id, "",
                           "the head %.*s cannot be moved",
                           WAL_ARG(head.name)) &&
        ancestor != frame->parent) {
        wal__salvage_report(salvage, WAL_SALVAGE_HEAD, session->id, "",
                            "the target of the head %.*s, sequence %" PRIu64
                            ", is lost; it is moved to %s",
                            WAL_ARG(head.name), frame->parent, target);
    }
}

/* --- documents ------------------------------------------------------------ */

/* Writes a version; of a document of the store if `session` is NULL. */
static enum wal_status put_doc(struct wal__salvage *salvage,
                               const struct wal__salvage_session *session,
                               struct wal_doc *doc)
{
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .document_count = 1,
        .documents = doc,
    };
    bool is_deletion = (doc->flags & WAL_DOC_DELETE) != 0;

    if (session != NULL) {
        return commit(salvage, session, &batch);
    }
    doc->flags = 0;
    return is_deletion
               ? wal_doc_delete(salvage->out, NULL, doc, NULL, &salvage->error)
               : wal_doc_put(salvage->out, NULL, doc, NULL, &salvage->error);
}

void wal__salvage_doc(struct wal__salvage *salvage,
                      const struct wal__frame *frame,
                      const struct wal__doc_record *record)
{
    bool is_store = frame->session == WAL__STORE_NUMBER;
    const struct wal__salvage_session *session =
        is_store ? NULL : wal__salvage_find_writable(salvage, frame->session);
    struct wal_doc doc = {
        .struct_size = sizeof(doc),
        .flags = frame->type == WAL__FRAME_DOC_DELETE ? WAL_DOC_DELETE : 0U,
        .key = wal__text_slice(record->key),
        .value = wal__text_slice(record->value),
    };

    if (session == NULL && !is_store) {
        return;
    }
    if (!is_store && record->key.size > 0 && record->key.data[0] == 0) {
        wal__salvage_reserved_doc(salvage, session, frame, record);
        return;
    }
    salvage->result.documents += wal__salvage_check(
        salvage, put_doc(salvage, session, &doc), WAL_SALVAGE_DOCUMENT,
        is_store ? "" : session->id, "",
        "a version of the document %.*s, sequence %" PRIu64
        ", cannot be written",
        WAL_ARG(doc.key), frame->sequence);
}

/* --- redactions ----------------------------------------------------------- */

/* Whether the session sees the entry and its content. */
static bool is_visible(const struct wal__salvage_session *session,
                       struct wal_slice id)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    bool visible = false;

    if (wal_entry_cursor_open(session->handle, NULL, &cursor, NULL) == WAL_OK) {
        visible = wal_entry_cursor_get(cursor, id, &entry, NULL) == WAL_OK;
        wal_entry_cursor_close(cursor);
    }
    return visible;
}

static void redact_in_session(struct wal__salvage *salvage, uint32_t number,
                              const struct wal__redact_record *record)
{
    const struct wal__salvage_session *session =
        wal__salvage_find_session(salvage, number);
    const struct wal_slice target = wal__text_slice(record->target_id);
    const struct wal_slice entry = wal__text_slice(record->entry_id);
    char id[WAL_ID_SIZE];

    if (salvage->failed != WAL_OK || session == NULL ||
        session->handle == NULL || session->is_removed ||
        !is_visible(session, target)) {
        return;
    }
    snprintf(id, sizeof(id), "%.*s", WAL_ARG(target));
    if (wal__salvage_check(
            salvage,
            wal_session_redact(session->handle, target,
                               wal__text_slice(record->reason), NULL,
                               &salvage->error),
            WAL_SALVAGE_ENTRY, session->id, id,
            "its redaction %.*s is lost, and it cannot be redacted",
            WAL_ARG(entry))) {
        wal__salvage_report(salvage, WAL_SALVAGE_ENTRY, session->id, id,
                            "its redaction %.*s is lost; it was redacted again",
                            WAL_ARG(entry));
    }
}

/* A redaction is an entry, before its REDACT record in the log, and appending
 * it hides its target again. If that entry is lost the target is redacted
 * again, so that OUT shows no hidden content. */
void wal__salvage_redact(struct wal__salvage *salvage,
                         const struct wal__frame *frame,
                         const struct wal__redact_record *record)
{
    redact_in_session(salvage, record->session, record);
    redact_in_session(salvage, frame->session, record);
}

/* Whether a session is one, or a fork of it. */
static bool inherits(const struct wal__salvage *salvage,
                     const struct wal__salvage_session *session,
                     uint32_t number)
{
    /* A source has a lower number. */
    while (session != NULL && session->number > number &&
           session->fork_source < session->number) {
        session = wal__salvage_find_session(salvage, session->fork_source);
    }
    return session != NULL && session->number == number;
}

void wal__salvage_redact_erased(struct wal__salvage *salvage)
{
    const struct wal__salvage_erased *erased =
        (const struct wal__salvage_erased *)(const void *)salvage->erased.data;
    size_t count = salvage->erased.size / sizeof(*erased);

    for (size_t i = 0; i < count; i++) {
        uint64_t sequence = erased[i].sequence;
        const char *id = wal__salvage_find_ancestor(salvage, &sequence);
        const struct wal__redact_record record = {
            .entry_id = {(const uint8_t *)"", 0},
            .target_id = {(const uint8_t *)id, strlen(id)},
            .reason = {(const uint8_t *)"", 0},
        };

        for (uint32_t k = 0;
             k < salvage->session_count && sequence == erased[i].sequence &&
             salvage->failed == WAL_OK;
             k++) {
            const struct wal__salvage_session *session = salvage->sessions[k];

            if (inherits(salvage, session, erased[i].session)) {
                redact_in_session(salvage, session->number, &record);
            }
        }
    }
}
