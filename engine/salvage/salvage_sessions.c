/*
 * salvage_sessions.c - creates, changes and deletes the sessions of a salvage
 * as their records do, so that they are listed in their order.
 *
 * Invariant: a session is created once. A deleted session is created only if a
 * fork that is needed depends on it, and is deleted again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/salvage/salvage.h"
#include "engine/store/input_text.h"
#include "engine/transfer/record_copy.h"

/* --- creation ------------------------------------------------------------- */

/* The texts of a session. */
struct session_texts {
    struct wal_session_options options;
    char name[32];                /* replaces an id that is lost or in use */
    uint8_t title[WAL__TEXT_MAX]; /* from its metadata */
};

/* Fills the texts from the session's SESSION record, or with a generated
 * id if it is lost. In format version 0 the title is a member of the
 * metadata. */
static void read_texts(const struct wal__salvage_session *session,
                       struct session_texts *texts)
{
    const struct wal__session_record *record = &session->record;
    struct wal__span title = record->title;

    *texts = (struct session_texts){.options = WAL_INIT(wal_session_options)};
    snprintf(texts->name, sizeof(texts->name), "salvaged-%" PRIu32,
             session->number);
    if (!session->has_record) {
        texts->options.id = wal__salvage_text(texts->name);
        return;
    }
    if (record->schema_version == 0) {
        (void)wal__text_member(record->metadata, "title", texts->title,
                               sizeof(texts->title), &title);
    }
    wal__copy_session(record, &texts->options);
    texts->options.title = wal__text_slice(title);
}

static void copy_id(struct wal__salvage_session *session, struct wal_slice id)
{
    snprintf(session->id, sizeof(session->id), "%.*s", WAL_ARG(id));
}

/* Creates the session's copy, or a fork of `source` at an entry if `source` is
 * not NULL. If another session, whose tombstone may be lost, has the id, the
 * generated one is used. */
static enum wal_status make_session(struct wal__salvage *salvage,
                                    struct wal__salvage_session *session,
                                    struct wal_session *source, const char *at,
                                    struct session_texts *texts)
{
    const struct wal_slice id = texts->options.id;
    enum wal_status status = WAL_EEXISTS;
    struct wal_session *made = NULL;

    for (int i = 0; i < 2 && status == WAL_EEXISTS; i++) {
        if (i > 0) {
            texts->options.id = wal__salvage_text(texts->name);
        }
        status =
            source == NULL
                ? wal_session_create(salvage->out, &texts->options, &made,
                                     &salvage->error)
                : wal_session_fork(source, wal__salvage_text(at),
                                   &texts->options, &made, &salvage->error);
    }
    if (status != WAL_OK) {
        return status;
    }
    session->handle = made;
    session->is_copied = true;
    copy_id(session, texts->options.id);
    salvage->result.sessions++;
    if (session->has_record && texts->options.id.data == texts->name) {
        wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session->id, "",
                            "the session's id, %.*s, belongs to another "
                            "session",
                            WAL_ARG(id));
    }
    return WAL_OK;
}

/* Returns what is lost of a session that its record or its FORK record did not
 * create; NULL: nothing. */
static const char *lost_part(const struct wal__salvage_session *session)
{
    if (!session->has_record) {
        return "the session's record is lost: its id, directory and metadata "
               "are unknown";
    }
    return session->from_index
               ? "the session's record is lost: its metadata is unknown, the "
                 "rest comes from an index"
               : NULL;
}

/* Creates the copy of a session that is not a fork, or whose FORK record is
 * lost. */
static void create(struct wal__salvage *salvage,
                   struct wal__salvage_session *session)
{
    struct session_texts texts;
    const char *lost = lost_part(session);
    enum wal_status status;

    read_texts(session, &texts);
    status = make_session(salvage, session, NULL, "", &texts);
    copy_id(session, texts.options.id);
    session->is_copied = true; /* it is tried once */
    if (!wal__salvage_check(salvage, status, WAL_SALVAGE_SESSION, session->id,
                            "", "the session cannot be created")) {
        return;
    }
    if (lost != NULL) {
        wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session->id, "", "%s",
                            lost);
    }
    if (session->has_record &&
        (session->record.flags & WAL__SESSION_RECORD_FORK) != 0) {
        wal__salvage_report(
            salvage, WAL_SALVAGE_SESSION, session->id, "",
            "the session's fork point is lost: it has only the entries that "
            "it did not inherit");
    }
}

struct wal__salvage_session *
wal__salvage_open_session(struct wal__salvage *salvage, uint32_t number)
{
    struct wal__salvage_session *session =
        wal__salvage_get_session(salvage, number);

    if (session != NULL && !session->is_copied) {
        create(salvage, session);
    }
    return salvage->failed == WAL_OK ? session : NULL;
}

struct wal__salvage_session *
wal__salvage_find_writable(struct wal__salvage *salvage, uint32_t number)
{
    struct wal__salvage_session *session =
        wal__salvage_open_session(salvage, number);

    return session == NULL || session->handle == NULL || session->is_removed
               ? NULL
               : session;
}

/* --- changes -------------------------------------------------------------- */

static int32_t set_texts(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    (void)now;
    wal__copy_change(ctx, change);
    return 0;
}

static void update(struct wal__salvage *salvage,
                   const struct wal__salvage_session *session,
                   struct wal_session_options *options)
{
    (void)wal__salvage_check(salvage,
                             wal_session_update(session->handle, set_texts,
                                                options, &salvage->error),
                             WAL_SALVAGE_SESSION, session->id, "",
                             "the session's texts cannot be changed");
}

void wal__salvage_session(struct wal__salvage *salvage,
                          struct wal__salvage_session *session)
{
    struct session_texts texts;

    if (session->handle != NULL && !session->is_removed) {
        read_texts(session, &texts);
        update(salvage, session, &texts.options);
    } else if ((session->record.flags & WAL__SESSION_RECORD_FORK) == 0) {
        (void)wal__salvage_open_session(salvage, session->number);
    } /* The FORK record that follows creates a fork. */
}

/* --- forks ---------------------------------------------------------------- */

/* Creates the fork at the nearest surviving ancestor of its fork point. A fork
 * inherits the texts that it does not set, so they are set again. */
static void create_fork(struct wal__salvage *salvage,
                        struct wal__salvage_session *session,
                        struct wal_session *source, uint64_t point)
{
    struct session_texts texts;
    uint64_t ancestor = point;
    const char *at = wal__salvage_find_ancestor(salvage, &ancestor);

    if (at[0] == '\0' && point != 0) {
        return;
    }
    read_texts(session, &texts);
    texts.options.parent_id = (struct wal_slice){NULL, 0};
    if (!wal__salvage_try(salvage,
                          make_session(salvage, session, source, at, &texts))) {
        return;
    }
    if (session->has_record) {
        update(salvage, session, &texts.options);
    }
    if (ancestor != point) {
        wal__salvage_report_reparented(salvage, session->id, "", point, at);
    }
}

/* A fork that is not created here is created by wal__salvage_open_session,
 * which reports the loss. */
void wal__salvage_fork(struct wal__salvage *salvage,
                       const struct wal__frame *frame,
                       const struct wal__fork_record *record)
{
    struct wal__salvage_session *session =
        wal__salvage_get_session(salvage, frame->session);
    const struct wal__salvage_session *source;

    if (session == NULL || session->is_copied ||
        wal__salvage_find_session(salvage, record->source) == NULL ||
        record->source == frame->session ||
        record->source == WAL__STORE_NUMBER) {
        return;
    }
    source = wal__salvage_open_session(salvage, record->source);
    if (source != NULL && source->handle != NULL) {
        create_fork(salvage, session, source->handle, frame->parent);
    }
}

/* --- deletion ------------------------------------------------------------- */

void wal__salvage_delete(struct wal__salvage *salvage, uint32_t number)
{
    struct wal__salvage_session *session =
        wal__salvage_find_writable(salvage, number);

    if (session != NULL &&
        wal__salvage_check(salvage,
                           wal_session_delete(session->handle, &salvage->error),
                           WAL_SALVAGE_SESSION, session->id, "",
                           "the session cannot be deleted again")) {
        session->is_removed = true;
        salvage->result.sessions--;
    }
}

/* After all else of the session, which refuses changes then. */
static void put_in_trash(struct wal__salvage *salvage, uint32_t number)
{
    struct wal__salvage_session *session =
        wal__salvage_find_writable(salvage, number);

    if (session != NULL) {
        (void)wal__salvage_check(
            salvage, wal_session_trash(session->handle, &salvage->error),
            WAL_SALVAGE_SESSION, session->id, "",
            "the session cannot be put in the trash again");
    }
}

/* After all else but the trash. The document that says where to may be lost. */
static void mark_moved(struct wal__salvage *salvage, uint32_t number)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);
    struct wal__salvage_session *session =
        wal__salvage_find_writable(salvage, number);

    if (session == NULL) {
        return;
    }
    if (wal_session_get_move(session->handle, &move, NULL) != WAL_OK) {
        move.number = 1;
    }
    move.flags = WAL_SESSION_MOVE_AWAY;
    (void)wal__salvage_check(
        salvage, wal_session_set_move(session->handle, &move, &salvage->error),
        WAL_SALVAGE_SESSION, session->id, "",
        "the session cannot be marked as moved again");
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
        if (!session->is_deleted && salvage->failed == WAL_OK &&
            (session->record.flags & WAL__SESSION_RECORD_MOVED) != 0) {
            mark_moved(salvage, session->number);
        }
        if (session->is_deleted && salvage->failed == WAL_OK) {
            wal__salvage_delete(salvage, session->number);
        } else if ((session->record.flags & WAL__SESSION_RECORD_TRASHED) != 0 &&
                   salvage->failed == WAL_OK) {
            put_in_trash(salvage, session->number);
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
