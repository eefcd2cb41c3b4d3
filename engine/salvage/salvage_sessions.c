/*
 * salvage_sessions.c - creates, changes and deletes the sessions of a salvage
 * as their records do.
 *
 * Invariant: a session is created once. A deleted session is created only if a
 * fork that is needed depends on it, and is deleted again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/salvage/salvage.h"
#include "format/json/json_scan.h"
#include "format/json/json_value.h"

static struct wal_slice slice_of(struct wal__span span)
{
    return (struct wal_slice){span.data, span.size};
}

/* --- headers -------------------------------------------------------------- */

/* The texts of a session from its newest known SESSION record. */
struct session_texts {
    struct wal_session_options options;
    char name[32];                /* replaces an id that is lost or in use */
    uint8_t title[WAL__TEXT_MAX]; /* from its metadata */
    bool known;                   /* its SESSION record was read */
    bool from_index;
};

/* In format version 0 the title is a member of the metadata. */
static void read_title(struct session_texts *session_texts)
{
    struct wal_slice metadata = session_texts->options.metadata;
    struct wal__json_token token;
    size_t size;

    if (metadata.size > 0 &&
        wal__json_find(metadata.data, (size_t)metadata.size, "title", &token) ==
            WAL__JSON_OK &&
        token.kind == WAL__JSON_STRING &&
        wal__json_unescape(token.span, session_texts->title,
                           sizeof(session_texts->title), &size,
                           NULL) == WAL__JSON_OK) {
        session_texts->options.title =
            (struct wal_slice){session_texts->title, size};
    }
}

static void read_record(struct session_texts *session_texts,
                        const struct wal__session_record *record)
{
    session_texts->options = (struct wal_session_options){
        .struct_size = sizeof(session_texts->options),
        .schema_version = record->schema_version,
        .id = slice_of(record->id),
        .cwd = slice_of(record->cwd),
        .project = slice_of(record->project),
        .title = slice_of(record->title),
        .parent_id = slice_of(record->parent_id),
        .metadata = slice_of(record->metadata),
        .source = slice_of(record->source),
        .created_ms = record->created_ms,
    };
    if (record->schema_version == 0) {
        read_title(session_texts);
    }
}

/* Fills the texts from the SESSION record that was read most recently, from the
 * session's newest one, or with a generated id if both are lost. */
static void read_texts(const struct wal__salvage *salvage,
                       const struct wal__salvage_session *session,
                       struct session_texts *session_texts)
{
    memset(session_texts, 0, sizeof(*session_texts));
    session_texts->known = true;
    snprintf(session_texts->name, sizeof(session_texts->name),
             "salvaged-%" PRIu32, session->number);
    if (salvage->header.number == session->number) {
        read_record(session_texts, &salvage->header.record);
    } else if (session->has_record) {
        read_record(session_texts, &session->record);
        session_texts->from_index = session->from_index;
    } else {
        session_texts->options = (struct wal_session_options){
            .struct_size = sizeof(session_texts->options),
            .id = wal__salvage_text(session_texts->name),
        };
        session_texts->known = false;
    }
}

static int32_t update_texts(void *ctx, const struct wal_session_info *now,
                            struct wal_session_change *change)
{
    const struct session_texts *session_texts = ctx;

    (void)now;
    change->fields = WAL_CHANGE_METADATA | WAL_CHANGE_TITLE | WAL_CHANGE_CWD |
                     WAL_CHANGE_PROJECT;
    change->metadata = session_texts->options.metadata;
    change->title = session_texts->options.title;
    change->cwd = session_texts->options.cwd;
    change->project = session_texts->options.project;
    if (session_texts->options.schema_version != 0) {
        change->fields |= WAL_CHANGE_SCHEMA;
        change->schema_version = session_texts->options.schema_version;
    }
    return 0;
}

static void update(struct wal__salvage *salvage,
                   const struct wal__salvage_session *session,
                   struct session_texts *session_texts)
{
    struct wal_error error = WAL_INIT(wal_error);
    enum wal_status status;

    if (session->handle == NULL) {
        return;
    }
    status = wal_session_update(session->handle, update_texts, session_texts,
                                &error);
    if (status != WAL_OK && !wal__salvage_is_fatal(salvage, status, &error)) {
        wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session->id, "",
                            "the session's texts cannot be changed: %s",
                            error.text);
    }
}

static bool slice_equal(struct wal_slice a, struct wal_slice b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, (size_t)a.size) == 0);
}

/* A fork inherits the texts that it does not set; the copy must have exactly
 * the recorded ones. */
static void update_fork(struct wal__salvage *salvage,
                        const struct wal__salvage_session *session,
                        struct session_texts *session_texts)
{
    const struct wal_session_options *options = &session_texts->options;
    struct wal_session_info info = WAL_INIT(wal_session_info);

    if (session_texts->known &&
        wal_session_get_info(session->handle, &info, NULL) == WAL_OK &&
        (!slice_equal(info.cwd, options->cwd) ||
         !slice_equal(info.project, options->project) ||
         !slice_equal(info.title, options->title) ||
         !slice_equal(info.metadata, options->metadata))) {
        update(salvage, session, session_texts);
    }
}

/* --- creation ------------------------------------------------------------- */

/* Creates the session's copy, or a fork of `source` at an entry if `source` is
 * not NULL. If another session, whose tombstone may be lost, has the id, the
 * generated one is used. */
static enum wal_status make_session(struct wal__salvage *salvage,
                                    struct wal__salvage_session *session,
                                    struct wal_session *source, const char *at,
                                    struct session_texts *session_texts,
                                    struct wal_error *error)
{
    const struct wal_slice id = session_texts->options.id;
    enum wal_status status = WAL_EEXISTS;

    for (int i = 0; i < 2 && status == WAL_EEXISTS; i++) {
        if (i > 0) {
            session_texts->options.id = wal__salvage_text(session_texts->name);
        }
        status = source == NULL
                     ? wal_session_create(salvage->out, &session_texts->options,
                                          &session->handle, error)
                     : wal_session_fork(source, wal__salvage_text(at),
                                        &session_texts->options,
                                        &session->handle, error);
    }
    if (status != WAL_OK) {
        session->handle = NULL;
        return status;
    }
    if (session_texts->known &&
        session_texts->options.id.data == session_texts->name) {
        wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session_texts->name,
                            "",
                            "the session's id, %.*s, belongs to another "
                            "session",
                            WAL_ARG(id));
    }
    session->is_copied = true;
    wal__salvage_copy_id(session->id, session_texts->options.id);
    salvage->result.sessions++;
    return WAL_OK;
}

static void create(struct wal__salvage *salvage,
                   struct wal__salvage_session *session)
{
    struct wal_error error = WAL_INIT(wal_error);
    struct session_texts session_texts;
    enum wal_status status;

    read_texts(salvage, session, &session_texts);
    status = make_session(salvage, session, NULL, "", &session_texts, &error);
    if (status != WAL_OK) {
        if (!wal__salvage_is_fatal(salvage, status, &error)) {
            session->is_copied = true;
            wal__salvage_copy_id(session->id, session_texts.options.id);
            wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session->id, "",
                                "the session cannot be created: %s",
                                error.text);
        }
        return;
    }
    if (!session_texts.known) {
        wal__salvage_report(
            salvage, WAL_SALVAGE_SESSION, session->id, "",
            "the session's record is lost: its id, directory and metadata are "
            "unknown");
    } else if (session_texts.from_index) {
        wal__salvage_report(
            salvage, WAL_SALVAGE_SESSION, session->id, "",
            "the session's record is lost: its metadata is unknown, the rest "
            "comes from an index");
    }
}

/* A fork is normally created by its FORK record; if that is lost, it is created
 * here as a session without a source. */
struct wal__salvage_session *
wal__salvage_open_session(struct wal__salvage *salvage, uint32_t number)
{
    struct wal__salvage_session *session =
        wal__salvage_get_session(salvage, number);

    if (session == NULL || session->is_copied) {
        return session;
    }
    create(salvage, session);
    if (salvage->failed != WAL_OK) {
        return NULL;
    }
    if (session->has_record &&
        (session->record.flags & WAL__SESSION_RECORD_FORK) != 0) {
        wal__salvage_report(
            salvage, WAL_SALVAGE_SESSION, session->id, "",
            "the session's fork point is lost: it has only the entries that "
            "it did not inherit");
    }
    return session;
}

/* Keeps a SESSION record for the FORK record that may follow; false if it is
 * not well-formed. */
static bool keep_header(struct wal__salvage *salvage,
                        const struct wal__damaged_segment *segment,
                        uint32_t number, struct wal__span payload)
{
    struct wal__salvage_header *header = &salvage->header;

    header->number = 0;
    header->bytes.size = 0;
    if (wal__buf_append(&header->bytes, payload.data, payload.size) != WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return false;
    }
    payload.data = header->bytes.data;
    if (!wal__salvage_decode_session(segment, payload, &header->record)) {
        return false;
    }
    header->number = number;
    return true;
}

void wal__salvage_header(struct wal__salvage *salvage,
                         const struct wal__damaged_segment *segment,
                         uint32_t number, struct wal__span payload)
{
    struct wal__salvage_session *session =
        wal__salvage_get_session(salvage, number);
    struct session_texts session_texts;

    if (session == NULL || !keep_header(salvage, segment, number, payload)) {
        return; /* a later record creates the session */
    }
    if (session->is_copied) {
        read_texts(salvage, session, &session_texts);
        update(salvage, session, &session_texts);
    } else if ((salvage->header.record.flags & WAL__SESSION_RECORD_FORK) == 0) {
        (void)wal__salvage_open_session(salvage, number);
    } /* The FORK record that follows creates a fork. */
}

/* Creates the fork at the nearest surviving ancestor of its fork point. */
void wal__salvage_fork(struct wal__salvage *salvage,
                       const struct wal__frame *frame, struct wal__span payload)
{
    struct wal__salvage_session *session =
        wal__salvage_get_session(salvage, frame->session);
    const struct wal__salvage_session *source;
    struct wal_error error = WAL_INIT(wal_error);
    struct session_texts session_texts;
    struct wal__fork_record fork;
    uint64_t ancestor = frame->parent;
    enum wal_status status;
    char at[WAL_ID_SIZE];

    if (session == NULL || session->is_copied ||
        wal__fork_record_decode(payload, &fork) != WAL__FMT_OK ||
        wal__salvage_find_session(salvage, fork.source) == NULL ||
        fork.source == frame->session || fork.source == WAL__STORE_NUMBER) {
        return; /* wal__salvage_open_session creates it and reports the loss */
    }
    source = wal__salvage_open_session(salvage, fork.source);
    if (source == NULL || source->handle == NULL ||
        (!wal__salvage_find_ancestor(salvage, &ancestor, at) &&
         frame->parent != 0)) {
        return;
    }
    read_texts(salvage, session, &session_texts);
    session_texts.options.parent_id = (struct wal_slice){NULL, 0};
    status = make_session(salvage, session, source->handle, at, &session_texts,
                          &error);
    if (status != WAL_OK) {
        (void)wal__salvage_is_fatal(salvage, status, &error);
        return;
    }
    update_fork(salvage, session, &session_texts);
    if (ancestor != frame->parent) {
        wal__salvage_report_reparented(salvage, session->id, "", frame->parent,
                                       at);
    }
}

/* --- deletion ------------------------------------------------------------- */

void wal__salvage_delete(struct wal__salvage *salvage, uint32_t number)
{
    struct wal__salvage_session *session =
        wal__salvage_open_session(salvage, number);
    struct wal_error error = WAL_INIT(wal_error);
    enum wal_status status;

    if (session == NULL || session->handle == NULL || session->is_removed) {
        return;
    }
    status = wal_session_delete(session->handle, &error);
    if (wal__salvage_is_fatal(salvage, status, &error)) {
        return;
    }
    if (status != WAL_OK) {
        wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session->id, "",
                            "the session cannot be deleted again: %s",
                            error.text);
        return;
    }
    session->is_removed = true;
    salvage->result.sessions--;
}

void wal__salvage_finish_sessions(struct wal__salvage *salvage)
{
    for (uint32_t i = 0;
         i < salvage->session_count && salvage->failed == WAL_OK; i++) {
        const struct wal__salvage_session *session = salvage->sessions[i];

        if (session->number == WAL__STORE_NUMBER || !session->is_needed) {
            continue;
        }
        if (session->has_record) {
            (void)wal__salvage_open_session(salvage, session->number);
        }
        if (session->is_deleted && salvage->failed == WAL_OK) {
            wal__salvage_delete(salvage, session->number);
        }
    }
}

void wal__salvage_close_sessions(struct wal__salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->session_count; i++) {
        wal_session_close(salvage->sessions[i]->handle);
        salvage->sessions[i]->handle = NULL;
    }
}
