/*
 * transfer_sessions.c - creates the sessions of a transfer, completes them, and
 * deletes those that only their forks needed.
 *
 * Invariant: a session that is not complete has a mark as its metadata, which
 * is replaced together with its last entries.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/read/head_list.h"
#include "engine/store/input_text.h"
#include "engine/transfer/record_copy.h"
#include "engine/transfer/transfer.h"

/* --- texts ---------------------------------------------------------------- */

/* Reads the newest SESSION record of a session; the options borrow from
 * scratch. */
static enum wal_status read_texts(struct wal__transfer *transfer,
                                  const struct wal__transfer_session *session,
                                  struct wal_session_options *options)
{
    struct wal__core *core = transfer->from;
    struct wal__session_record record;
    struct wal__summary summary;
    uint64_t sequence;
    enum wal_status status = wal__core_read_lock(core, &transfer->error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__catalogue_get(&core->catalogue, session->number, &summary);
    if (status == WAL_OK) {
        status = wal__core_read_session_record(core, summary.session_position,
                                               &transfer->scratch, &record,
                                               &sequence, &transfer->error);
    }
    wal__core_unlock(core);
    if (status == WAL_OK) {
        wal__copy_session(&record, options);
        options->created_ms = summary.created_ms;
    }
    return status;
}

/* --- creation ------------------------------------------------------------- */

/* Deletes the temporary copy of an older session that had the same id. */
static void free_id(struct wal__transfer *transfer,
                    const struct wal__transfer_session *session)
{
    for (uint32_t i = 0; i < transfer->session_count; i++) {
        struct wal__transfer_session *other = transfer->sessions[i];

        if (other != session && other->is_temporary && !other->is_removed &&
            other->handle != NULL &&
            strcmp(other->copy_id, session->copy_id) == 0) {
            wal__transfer_remove(transfer, other);
        }
    }
}

/* Forks a session before its first entry: its head may be after that now. */
static enum wal_status fork_at_start(struct wal__transfer *transfer,
                                     struct wal_session *source,
                                     const struct wal_session_options *options,
                                     struct wal_session **fork)
{
    const struct wal_slice none = {NULL, 0};
    uint64_t looked = 0;
    enum wal_status status;

    do {
        status = wal__session_fork(source, none, true, options, fork,
                                   &transfer->error);
    } while (wal__core_invalidate_derived(source->core, status, &looked));
    return status;
}

/* Forks the source at the entry that the FORK record at fork_position names. */
static enum wal_status fork_session(struct wal__transfer *transfer,
                                    struct wal__transfer_session *session,
                                    const struct wal_session_options *options)
{
    const struct wal__transfer_session *source =
        wal__transfer_find(transfer, session->fork_source);
    struct wal__fork_record record;
    enum wal_status status;

    if (source == NULL || source->state == WAL__TRANSFER_REFUSED ||
        source->handle == NULL) {
        return wal__fail(&transfer->error, WAL_EEXISTS,
                         "its source, %s, is refused",
                         source == NULL ? "" : source->id);
    }
    record.entry_id.size = 0;
    status = session->fork_point == 0
                 ? WAL_OK
                 : wal__transfer_read_fork(
                       transfer->from, session->fork_position,
                       &transfer->to_scratch, &record, &transfer->error);
    if (status == WAL_OK) {
        status = record.entry_id.size == 0
                     ? fork_at_start(transfer, source->handle, options,
                                     &session->handle)
                     : wal_session_fork(
                           source->handle, wal__text_slice(record.entry_id),
                           options, &session->handle, &transfer->error);
    }
    if (status == WAL_OK && source->state != WAL__TRANSFER_NEW) {
        wal__transfer_restore_documents(transfer, session);
    }
    return status;
}

/* Forks the trunk of a branch at the last common entry; without one the branch
 * is a session by itself. */
static enum wal_status create_branch(struct wal__transfer *transfer,
                                     struct wal__transfer_session *session,
                                     struct wal_session_options *options)
{
    const struct wal_slice point = {session->branch_point,
                                    strlen(session->branch_point)};

    options->id =
        (struct wal_slice){session->copy_id, strlen(session->copy_id)};
    options->parent_id = (struct wal_slice){NULL, 0};
    return point.size > 0
               ? wal_session_fork(session->trunk, point, options,
                                  &session->handle, &transfer->error)
               : wal_session_create(transfer->to_store, options,
                                    &session->handle, &transfer->error);
}

void wal__transfer_create(struct wal__transfer *transfer,
                          struct wal__transfer_session *session)
{
    struct wal_session_options options;
    enum wal_status status;

    wal__transfer_flush(transfer);
    free_id(transfer, session);
    status = read_texts(transfer, session, &options);
    if (status == WAL_OK) {
        options.metadata = wal__transfer_mark_text(
            session->is_temporary ? WAL__TRANSFER_MARKED_SOURCE
                                  : WAL__TRANSFER_MARKED);
        if (session->is_fork) {
            options.parent_id = (struct wal_slice){NULL, 0};
        }
        status = session->trunk != NULL
                     ? create_branch(transfer, session, &options)
                 : session->is_fork
                     ? fork_session(transfer, session, &options)
                     : wal_session_create(transfer->to_store, &options,
                                          &session->handle, &transfer->error);
    }
    if (wal__transfer_try(transfer, session, status) &&
        session->trunk != NULL) {
        wal__transfer_restore_branch(transfer, session);
    }
}

/* --- completion ----------------------------------------------------------- */

static bool same_head(const struct wal_head *a, const struct wal_head *b)
{
    return a->stream == b->stream && a->name.size == b->name.size &&
           (a->name.size == 0 ||
            memcmp(a->name.data, b->name.data, a->name.size) == 0);
}

static bool has_head(const struct wal__buf *heads, const struct wal_head *head)
{
    const struct wal_head *items = (const void *)heads->data;

    for (size_t i = 0; i < heads->size / sizeof(*items); i++) {
        if (same_head(&items[i], head)) {
            return true;
        }
    }
    return false;
}

/* Appends the heads of a session, whose texts hold until *cursor is closed. */
static enum wal_status list_heads(struct wal_session *session,
                                  struct wal_head_cursor **cursor,
                                  struct wal__buf *heads,
                                  struct wal_error *error)
{
    struct wal_head head = WAL_INIT(wal_head);
    enum wal_status status = wal__head_cursor_open(session, cursor, error);

    while (status == WAL_OK) {
        status = wal__head_cursor_next(*cursor, &head);
        if (status == WAL_OK &&
            wal__buf_append(heads, &head, sizeof(head)) != WAL_OK) {
            status = wal__no_memory(error);
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Adds the heads `main` that the entries which wait will move: they may be
 * there then only. */
static enum wal_status add_moved(const struct wal__transfer *transfer,
                                 const struct wal__transfer_session *session,
                                 struct wal__buf *heads)
{
    const struct wal__transfer_batch *batch = &transfer->batch;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0;
         batch->session == session && i < batch->count && status == WAL_OK;
         i++) {
        const struct wal_head head = {.struct_size = sizeof(head),
                                      .stream = batch->frames[i].stream,
                                      .name = WAL_STR("main")};

        if ((batch->frames[i].flags & WAL__FRAME_MOVES_HEAD) != 0 &&
            !has_head(heads, &head)) {
            status = wal__buf_append(heads, &head, sizeof(head));
        }
    }
    return status;
}

/* Finds the entry that the plan saw nearest before the one that a head is at.
 * Its sequence is 0 where there is none. */
static enum wal_status find_seen(struct wal__transfer *transfer,
                                 const struct wal__transfer_session *session,
                                 const struct wal_head *head,
                                 struct wal__entry_location *found)
{
    const struct wal__span id = {(const uint8_t *)head->entry_id.data,
                                 (size_t)head->entry_id.size};
    struct wal__core *core = transfer->from;
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status = wal__core_write_lock(core, &transfer->error);

    if (status != WAL_OK) {
        return status;
    }
    status =
        wal__core_find_id(core, session->number, id, found, &transfer->error);
    while (status == WAL_OK && found->sequence > session->seen) {
        status = wal__log_read(&core->log, found->position, &transfer->scratch,
                               &frame, &payload, &transfer->error);
        if (status == WAL_OK && frame.parent == 0) {
            found->sequence = 0;
        } else if (status == WAL_OK) {
            status =
                wal__core_find_sequence(core, session->number, head->stream,
                                        frame.parent, found, &transfer->error);
        }
    }
    wal__core_unlock(core);
    return status;
}

/* Takes heads that others have moved since the plan back to what is copied. Ids
 * are kept in *ids. */
static enum wal_status lower_heads(struct wal__transfer *transfer,
                                   const struct wal__transfer_session *session,
                                   struct wal__buf *heads, struct wal__buf *ids)
{
    struct wal_head *items = (void *)heads->data;
    size_t count = heads->size / sizeof(*items);
    enum wal_status status = WAL_OK;
    size_t moved = 0;
    size_t kept = 0;
    uint8_t *at = NULL;

    for (size_t i = 0; i < count; i++) {
        moved += items[i].version > session->seen;
    }
    if (moved > 0 &&
        wal__buf_reserve(ids, moved * WAL_ID_SIZE, &at) != WAL_OK) {
        return wal__no_memory(&transfer->error);
    }
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal_head head = items[i];
        struct wal__entry_location found = {0};

        if (head.version > session->seen) {
            status = find_seen(transfer, session, &head, &found);
            if (status != WAL_OK || found.sequence == 0) {
                continue;
            }
            status = wal__transfer_read_id(
                transfer->from, session->number, head.stream, found.sequence,
                &transfer->scratch, &transfer->from_id, &transfer->error);
            if (status == WAL_OK) {
                memcpy(at, transfer->from_id.bytes, transfer->from_id.size);
                head.entry_id = (struct wal_slice){(const char *)at,
                                                   transfer->from_id.size};
                at += WAL_ID_SIZE;
            }
        }
        items[kept++] = head;
    }
    heads->size = kept * sizeof(*items);
    return status;
}

/* Makes *from the moves that give the copy its heads. `all`: also those that it
 * has; else only what is missing. */
static enum wal_status plan_moves(const struct wal__buf *to, bool all,
                                  struct wal__buf *from)
{
    const struct wal_head *present = (const void *)to->data;
    size_t present_count = to->size / sizeof(*present);
    struct wal_head *items = (void *)from->data;
    size_t count = from->size / sizeof(*items);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (all || !has_head(to, &items[i])) {
            items[kept] = items[i];
            items[kept++].flags = 0;
        }
    }
    for (size_t i = 0; i < present_count && all; i++) {
        struct wal_head removed = present[i];

        if (!has_head(from, &removed)) {
            removed.entry_id = (struct wal_slice){NULL, 0};
            removed.note = (struct wal_slice){NULL, 0};
            removed.flags = 0;
            from->size = kept * sizeof(*items);
            if (wal__buf_append(from, &removed, sizeof(removed)) != WAL_OK) {
                return WAL_ENOMEM;
            }
            kept++;
        }
    }
    from->size = kept * sizeof(*items);
    return WAL_OK;
}

/* Gives the copy the heads and, if `all`, the texts of the session. */
static void finish(struct wal__transfer *transfer,
                   struct wal__transfer_session *session,
                   struct wal_session *original, bool all)
{
    struct wal_session_change change = WAL_INIT(wal_session_change);
    struct wal_head_cursor *from_cursor = NULL;
    struct wal_head_cursor *to_cursor = NULL;
    struct wal_session_options options;
    struct wal__buf from;
    struct wal__buf to;
    struct wal__buf ids;
    enum wal_status status;

    wal__buf_init(&from, transfer->heap);
    wal__buf_init(&to, transfer->heap);
    wal__buf_init(&ids, transfer->heap);
    status = list_heads(original, &from_cursor, &from, &transfer->error);
    if (status == WAL_OK) {
        status = lower_heads(transfer, session, &from, &ids);
    }
    if (status == WAL_OK) {
        status = list_heads(session->handle, &to_cursor, &to, &transfer->error);
    }
    if (status == WAL_OK && (add_moved(transfer, session, &to) != WAL_OK ||
                             plan_moves(&to, all, &from) != WAL_OK)) {
        status = wal__no_memory(&transfer->error);
    }
    if (status == WAL_OK && all) {
        status = read_texts(transfer, session, &options);
    }
    if (wal__transfer_try(transfer, session, status)) {
        if (all) {
            wal__copy_change(&options, &change);
        }
        wal__transfer_flush_with(
            transfer, session, (const void *)from.data,
            (uint32_t)(from.size / sizeof(struct wal_head)),
            all ? &change : NULL);
    }
    wal__head_cursor_close(from_cursor);
    wal__head_cursor_close(to_cursor);
    wal__buf_deinit(&from);
    wal__buf_deinit(&to);
    wal__buf_deinit(&ids);
}

void wal__transfer_complete(struct wal__transfer *transfer,
                            struct wal__transfer_session *session)
{
    bool all = session->state == WAL__TRANSFER_NEW ||
               session->state == WAL__TRANSFER_INCOMPLETE ||
               session->is_continued;
    struct wal_session *original = NULL;

    session->is_complete = true;
    if (!session->is_wanted || session->state == WAL__TRANSFER_AHEAD) {
        if (transfer->batch.session == session) {
            wal__transfer_flush(transfer);
        }
        return;
    }
    if (wal__transfer_try(transfer, session,
                          wal__session_open(transfer->from, session->number,
                                            &original, &transfer->error))) {
        finish(transfer, session, original, all);
        wal_session_close(original);
    }
}

/* --- redactions ----------------------------------------------------------- */

static enum wal_status redact(struct wal__transfer *transfer,
                              struct wal__transfer_session *session,
                              const struct wal__redact_record *record)
{
    struct wal_slice target = wal__text_slice(record->target_id);
    struct wal_entry entry = WAL_INIT(wal_entry);
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .entry_count = 1, .entries = &entry};
    struct wal_entry found = WAL_INIT(wal_entry);
    struct wal__buf json;
    enum wal_status status =
        wal_entry_get(session->handle, target, &found, &transfer->error);

    if (status == WAL_EREDACTED || status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        return status;
    }
    entry.flags = WAL_ENTRY_HEAD_KEEP;
    entry.stream = found.stream;
    entry.id = wal__text_slice(record->entry_id);
    entry.parent_id = target;
    entry.type = WAL_STR(WAL_TYPE_REDACTION);
    wal__buf_init(&json, transfer->heap);
    status = wal__copy_redaction(record, &json);
    entry.payload = (struct wal_slice){json.data, json.size};
    if (status == WAL_OK) {
        status = wal__transfer_commit(session->handle, &batch, NULL,
                                      &transfer->error);
    }
    if (status == WAL_EEXISTS) {
        entry.id = (struct wal_slice){NULL, 0};
        status = wal__transfer_commit(session->handle, &batch, NULL,
                                      &transfer->error);
    }
    wal__buf_deinit(&json);
    return status;
}

void wal__transfer_redact(struct wal__transfer *transfer,
                          struct wal__transfer_session *session)
{
    const struct wal__transfer_redaction *items =
        (const void *)transfer->redactions.data;
    size_t count = transfer->redactions.size / sizeof(*items);

    for (size_t i = 0; i < count; i++) {
        struct wal__redact_record record;
        enum wal_status status;

        if (items[i].rank != session->rank || session->handle == NULL ||
            session->is_removed || !wal__transfer_goes_on(transfer, session)) {
            continue;
        }
        status =
            wal__transfer_read_redact(transfer, items[i].position, &record);
        if (status == WAL_OK) {
            status = redact(transfer, session, &record);
        }
        (void)wal__transfer_try(transfer, session, status);
    }
}

/* --- deletion ------------------------------------------------------------- */

/* *is_used: the copy has entries that the session has not. A branch shares
 * entries with its trunk, and is not compared. */
static enum wal_status compare_copy(struct wal__transfer *transfer,
                                    struct wal__transfer_session *session,
                                    bool *is_used)
{
    struct wal__transfer_entries found;
    enum wal_status status;

    *is_used = false;
    if (session->trunk != NULL) {
        return WAL_OK;
    }
    status = wal__transfer_collect(transfer->from, session->number,
                                   &transfer->from_records, &transfer->error);
    if (status == WAL_OK) {
        status = wal__transfer_collect(transfer->to, session->handle->number,
                                       &transfer->to_records, &transfer->error);
    }
    transfer->from_id.sequence = 0;
    transfer->to_id.sequence = 0;
    if (status == WAL_OK) {
        status = wal__transfer_compare_entries(transfer, session, 0, &found);
    }
    *is_used = status == WAL_OK && (found.has_more || found.has_other);
    return status;
}

/* Deletes the copy, unless others append to it meanwhile: what they did is
 * theirs, and the copy stays as an incomplete one. */
static enum wal_status remove_unused(struct wal__transfer *transfer,
                                     struct wal__transfer_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_remove_options options =
        WAL_INIT(wal_session_remove_options);
    bool is_used = false;
    enum wal_status status =
        wal_session_get_info(session->handle, &info, &transfer->error);

    if (status == WAL_OK) {
        status = compare_copy(transfer, session, &is_used);
    }
    if (status != WAL_OK || is_used) {
        return status;
    }
    options.flags = WAL_SESSION_REMOVE_EXPECT;
    options.expected_sequence = info.last_sequence;
    status = wal_session_remove(session->handle, &options, &transfer->error);
    return status == WAL_ECONFLICT || status == WAL_ENOTFOUND ? WAL_OK : status;
}

void wal__transfer_remove(struct wal__transfer *transfer,
                          struct wal__transfer_session *session)
{
    enum wal_status status;

    if (session->handle == NULL || session->is_removed ||
        !wal__transfer_goes_on(transfer, session)) {
        return;
    }
    wal__transfer_redact(transfer, session);
    status = remove_unused(transfer, session);
    session->is_removed = status == WAL_OK;
    (void)wal__transfer_try(transfer, session, status);
}

void wal__transfer_close_sessions(struct wal__transfer *transfer)
{
    for (uint32_t i = 0; i < transfer->session_count; i++) {
        wal_session_close(transfer->sessions[i]->handle);
        wal_session_close(transfer->sessions[i]->trunk);
        wal__heap_free(transfer->heap, transfer->sessions[i]->why);
        wal__heap_free(transfer->heap, transfer->sessions[i]);
    }
    wal__heap_free(transfer->heap, transfer->sessions);
    transfer->sessions = NULL;
    transfer->session_count = 0;
    transfer->session_capacity = 0;
}
