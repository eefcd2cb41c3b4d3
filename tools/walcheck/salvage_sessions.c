/*
 * salvage_sessions.c - creates, changes and deletes the sessions of a salvage
 * as their records do.
 *
 * Invariant: a session is created once. A deleted session is created only if a
 * fork that is needed depends on it, and is deleted again.
 *
 * Threads: the main thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_scan.h"
#include "format/json/json_value.h"
#include "tools/walcheck/salvage.h"

static struct wal_slice slice_of(struct wal__span span)
{
    return (struct wal_slice){span.data, span.size};
}

/* --- selection ------------------------------------------------------------ */

void salvage_mark_needed(struct salvage *salvage)
{
    const struct check_model *model = &salvage->store->model;

    for (size_t i = 0; i < model->session_count; i++) {
        struct check_session *session = model->sessions[i];

        if (check_session_is_deleted(session)) {
            continue;
        }
        while (session != NULL && !session->needed) {
            session->needed = true;
            session = check_model_find(model, session->state.fork_source);
        }
    }
    for (size_t i = 0; i < model->session_count; i++) {
        salvage->sessions_skipped += !model->sessions[i]->needed;
    }
}

bool salvage_is_skipped(const struct salvage *salvage, uint32_t number)
{
    const struct check_session *known =
        check_model_find(&salvage->store->model, number);

    return known != NULL && !known->needed;
}

struct salvage_session *salvage_find_session(const struct salvage *salvage,
                                             uint32_t number)
{
    const struct check_session *known =
        check_model_find(&salvage->store->model, number);

    if (known != NULL) {
        return known->salvaged == 0 ? NULL
                                    : &salvage->sessions[known->salvaged - 1];
    }
    for (size_t i = salvage->session_count; i > 0; i--) {
        if (salvage->sessions[i - 1].number == number) {
            return &salvage->sessions[i - 1];
        }
    }
    return NULL;
}

static struct salvage_session *add_session(struct salvage *salvage,
                                           uint32_t number)
{
    struct check_session *known =
        check_model_find(&salvage->store->model, number);
    struct salvage_session *session;

    salvage->sessions =
        cli_reserve(salvage->sessions, salvage->session_count,
                    &salvage->session_capacity, sizeof(*salvage->sessions));
    session = &salvage->sessions[salvage->session_count++];
    if (known != NULL) {
        known->salvaged = salvage->session_count;
    }
    *session = (struct salvage_session){.number = number};
    return session;
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
static void read_texts(const struct salvage *salvage, uint32_t number,
                       struct session_texts *session_texts)
{
    const struct check_session *known =
        check_model_find(&salvage->store->model, number);

    *session_texts = (struct session_texts){.known = true};
    snprintf(session_texts->name, sizeof(session_texts->name),
             "salvaged-%" PRIu32, number);
    if (salvage->header.number == number) {
        read_record(session_texts, &salvage->header.record);
    } else if (known != NULL && known->has_record) {
        read_record(session_texts, &known->record);
        session_texts->from_index = known->from_index;
    } else {
        session_texts->options = (struct wal_session_options){
            .struct_size = sizeof(session_texts->options),
            .id = cli_slice(session_texts->name),
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

static void update(struct salvage *salvage, struct salvage_session *session,
                   struct session_texts *session_texts)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    if (session->handle == NULL) {
        return;
    }
    status = wal_session_update(session->handle, update_texts, session_texts,
                                &error);
    if (status != WAL_OK && !salvage_is_fatal(salvage, status, &error)) {
        salvage_note(salvage, session->id, "",
                     "the session's texts cannot be changed: %s", error.text);
    }
}

/* A fork inherits the texts that it does not set; the copy must have exactly
 * the recorded ones. */
static void update_fork(struct salvage *salvage,
                        struct salvage_session *session,
                        struct session_texts *session_texts)
{
    const struct wal_session_options *options = &session_texts->options;
    struct wal_session_info info = {.struct_size = sizeof(info)};

    if (session_texts->known &&
        wal_session_get_info(session->handle, &info, NULL) == WAL_OK &&
        (!cli_slice_equal(info.cwd, options->cwd) ||
         !cli_slice_equal(info.project, options->project) ||
         !cli_slice_equal(info.title, options->title) ||
         !cli_slice_equal(info.metadata, options->metadata))) {
        update(salvage, session, session_texts);
    }
}

/* --- creation ------------------------------------------------------------- */

/* Creates a session, or a fork of `source` at an entry if `source` is not null.
 * If another session, whose tombstone may be lost, has the id, the generated
 * one is used. */
static enum wal_status make_session(struct salvage *salvage,
                                    struct wal_session *source, const char *at,
                                    struct session_texts *session_texts,
                                    struct wal_session **handle,
                                    struct wal_error *error)
{
    enum wal_status status = WAL_EEXISTS;
    char *id = cli_copy_text(session_texts->options.id.data,
                             session_texts->options.id.size);

    for (int i = 0; i < 2 && status == WAL_EEXISTS; i++) {
        if (i > 0) {
            session_texts->options.id = cli_slice(session_texts->name);
        }
        status = source == NULL
                     ? wal_session_create(salvage->out, &session_texts->options,
                                          handle, error)
                     : wal_session_fork(source, cli_slice(at),
                                        &session_texts->options, handle, error);
    }
    if (status == WAL_OK && session_texts->known &&
        session_texts->options.id.data == session_texts->name) {
        salvage_note(salvage, session_texts->name, "",
                     "the session's id, %s, belongs to another session", id);
    }
    free(id);
    return status;
}

static void create(struct salvage *salvage, struct salvage_session *session)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    struct session_texts session_texts;

    read_texts(salvage, session->number, &session_texts);
    status = make_session(salvage, NULL, "", &session_texts, &session->handle,
                          &error);
    session->id = cli_copy_text(session_texts.options.id.data,
                                session_texts.options.id.size);
    if (status != WAL_OK) {
        if (!salvage_is_fatal(salvage, status, &error)) {
            salvage_note(salvage, session->id, "",
                         "the session cannot be created: %s", error.text);
        }
        return;
    }
    salvage->sessions_written++;
    if (!session_texts.known) {
        salvage_note(
            salvage, session->id, "",
            "the session's record is lost: its id, directory and metadata are "
            "unknown");
    } else if (session_texts.from_index) {
        salvage_note(
            salvage, session->id, "",
            "the session's record is lost: its metadata is unknown, the rest "
            "comes from an index");
    }
}

/* A fork is normally created by its FORK record; if that is lost, it is created
 * here as a session without a source. */
struct salvage_session *salvage_session(struct salvage *salvage,
                                        uint32_t number)
{
    struct salvage_session *session = salvage_find_session(salvage, number);
    const struct check_session *known;

    if (session != NULL) {
        return session;
    }
    session = add_session(salvage, number);
    create(salvage, session);
    known = check_model_find(&salvage->store->model, number);
    if (known != NULL && known->has_record &&
        (known->record.flags & WAL__SESSION_RECORD_FORK) != 0) {
        salvage_note(
            salvage, session->id, "",
            "the session's fork point is lost: it has only the entries that "
            "it did not inherit");
    }
    return session;
}

void salvage_header(struct salvage *salvage, uint32_t number,
                    struct wal__span payload)
{
    struct salvage_session *session = salvage_find_session(salvage, number);
    struct salvage_header *header = &salvage->header;
    struct session_texts session_texts;

    free(header->bytes);
    header->number = 0;
    header->bytes = cli_alloc(payload.size);
    memcpy(header->bytes, payload.data, payload.size);
    payload.data = header->bytes;
    if (check_session_decode(salvage->segment, payload, &header->record) !=
        WAL__FMT_OK) {
        return; /* reported as damage; a later record creates the session */
    }
    header->number = number;
    if (session != NULL) {
        read_texts(salvage, number, &session_texts);
        update(salvage, session, &session_texts);
    } else if ((header->record.flags & WAL__SESSION_RECORD_FORK) == 0) {
        salvage_session(salvage, number);
    } /* The FORK record that follows creates a fork. */
}

/* Creates the fork at the nearest surviving ancestor of its fork point. */
void salvage_fork(struct salvage *salvage, const struct wal__frame *frame,
                  struct wal__span payload)
{
    struct wal__fork_record fork;
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *handle = NULL;
    struct salvage_session *session;
    uint64_t ancestor = frame->parent;
    enum wal_status status;
    struct session_texts session_texts;
    char *at;

    if (wal__fork_record_decode(payload, &fork) != WAL__FMT_OK ||
        salvage_find_session(salvage, frame->session) != NULL ||
        check_model_find(&salvage->store->model, fork.source) == NULL ||
        fork.source == frame->session || fork.source == WAL__STORE_NUMBER) {
        return; /* salvage_session creates it and notes the loss */
    }
    session = salvage_session(salvage, fork.source);
    at = salvage_nearest_ancestor(salvage, &ancestor);
    if (session->handle == NULL || (at == NULL && frame->parent != 0)) {
        goto done;
    }
    read_texts(salvage, frame->session, &session_texts);
    session_texts.options.parent_id = (struct wal_slice){NULL, 0};
    status = make_session(salvage, session->handle, at == NULL ? "" : at,
                          &session_texts, &handle, &error);
    if (status != WAL_OK) {
        (void)salvage_is_fatal(salvage, status, &error);
        goto done;
    }
    session = add_session(salvage, frame->session);
    session->handle = handle;
    session->id = cli_copy_text(session_texts.options.id.data,
                                session_texts.options.id.size);
    salvage->sessions_written++;
    update_fork(salvage, session, &session_texts);
    if (ancestor != frame->parent) {
        salvage_note_reparented(salvage, session->id, "", frame->parent, at);
    }
done:
    free(at);
}

/* --- deletion ------------------------------------------------------------- */

void salvage_delete(struct salvage *salvage, uint32_t number)
{
    struct salvage_session *session = salvage_session(salvage, number);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    if (session->handle == NULL || session->deleted) {
        return;
    }
    status = wal_session_delete(session->handle, &error);
    if (salvage_is_fatal(salvage, status, &error)) {
        return;
    }
    if (status != WAL_OK) {
        salvage_note(salvage, session->id, "",
                     "the session cannot be deleted again: %s", error.text);
        return;
    }
    session->deleted = true;
    salvage->sessions_written--;
}

void salvage_finish_sessions(struct salvage *salvage)
{
    const struct check_model *model = &salvage->store->model;

    for (size_t i = 0; i < model->session_count; i++) {
        const struct check_session *session = model->sessions[i];

        if (session->number == WAL__STORE_NUMBER || !session->needed) {
            continue;
        }
        if (session->has_record) {
            salvage_session(salvage, session->number);
        }
        if (check_session_is_deleted(session)) {
            salvage_delete(salvage, session->number);
        }
    }
}

void salvage_close_sessions(struct salvage *salvage)
{
    for (size_t i = 0; i < salvage->session_count; i++) {
        wal_session_close(salvage->sessions[i].handle);
        salvage->sessions[i].handle = NULL;
    }
}

void salvage_sessions_deinit(struct salvage *salvage)
{
    for (size_t i = 0; i < salvage->session_count; i++) {
        free(salvage->sessions[i].id);
        free(salvage->sessions[i].last_id);
    }
    free(salvage->sessions);
    free(salvage->header.bytes);
}
