/*
 * session_move.c - a session that goes on in another store (session_move.h).
 *
 * Invariant: the feature is in MANIFEST before the first record that needs it.
 * The resolve function runs in the leader, under the append lock and the state
 * lock for writing.
 */
#include "engine/session/session_move.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/base/moved_document.h"
#include "engine/read/document_reader.h"
#include "engine/session/session_record.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"
#include "format/segment/segment_fmt.h"

enum {
    ATTEMPTS_MAX = 1000
};

/* --- the document --------------------------------------------------------- */

/* Copies the id of a session, which is not deleted. */
static enum wal_status read_id(struct wal_session *session,
                               char id[WAL_ID_SIZE], bool *is_away,
                               struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_find(core, session->number, &summary, error);
    if (status == WAL_OK) {
        WAL__ASSERT(summary.id.size < WAL_ID_SIZE);
        memcpy(id, summary.id.data, summary.id.size);
        id[summary.id.size] = '\0';
        *is_away = (summary.flags & WAL__SUMMARY_MOVED) != 0;
    }
    wal__core_unlock(core);
    return status;
}

static struct wal__span span_of(const char *id)
{
    return (struct wal__span){(const uint8_t *)id, strlen(id)};
}

/* As a copy, which a session that has moved accepts. */
static enum wal_status put_document(struct wal_session *session,
                                    struct wal__span value,
                                    struct wal_error *error)
{
    const struct wal_doc doc = {.struct_size = sizeof(doc),
                                .key = wal__text_slice(wal__moved_key()),
                                .value = wal__text_slice(value)};
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .documents = &doc, .document_count = 1};
    uint64_t looked = 0;
    enum wal_status status;

    do {
        struct wal__op *op = NULL;

        status = wal__batch_create(session, &batch, NULL, WAL__BATCH_COPY, &op,
                                   error);
        if (status == WAL_OK) {
            status = wal__session_commit(session->core, op, error);
            wal__op_release(op);
        }
    } while (wal__core_invalidate_derived(session->core, status, &looked));
    return status;
}

static enum wal_status get_document(struct wal_session *session,
                                    struct wal_doc_cursor *docs,
                                    struct wal_doc *doc,
                                    struct wal_error *error)
{
    uint64_t looked = 0;
    enum wal_status status;

    do {
        status = wal__doc_cursor_get(docs, wal__moved_key(), 0, doc, error);
    } while (
        wal__core_read_again(session->core, status, docs->is_damaged, &looked));
    return status;
}

enum wal_status wal__session_get_move(struct wal_session *session,
                                      struct wal_session_move *move,
                                      struct wal_error *error)
{
    struct wal_doc_cursor docs = {.core = session->core,
                                  .number = session->number};
    struct wal_session_move read = WAL_INIT(wal_session_move);
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    char id[WAL_ID_SIZE];
    bool is_away = false;
    enum wal_status status = read_id(session, id, &is_away, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__record_buf_init(&docs.scratch, session->core->env.heap);
    status = get_document(session, &docs, &doc, error);
    if (status == WAL_OK &&
        !wal__moved_decode(
            (struct wal__span){doc.value.data, (size_t)doc.value.size},
            span_of(id), &read)) {
        status = WAL_ENOTFOUND;
    }
    wal__record_buf_deinit(&docs.scratch);
    if (status == WAL_ENOTFOUND) {
        return wal__fail(error, status, "the session \"%s\" never moved", id);
    }
    if (status == WAL_OK) {
        read.flags = is_away ? (uint32_t)WAL_SESSION_MOVE_AWAY : 0;
        *move = read;
    }
    return status;
}

/* --- the flag ------------------------------------------------------------- */

/* The request of an operation whose frame is a SESSION record. */
struct mark {
    bool is_away;
    uint64_t base; /* position of the record that it was made from */
};

static enum wal_status resolve_mark(void *ctx, struct wal__op *op)
{
    const struct mark *mark = op->request;
    struct wal__op_frame *frame = &op->frames[0];
    struct wal__core *core = ctx;
    struct wal__summary summary;
    enum wal_status status =
        wal__session_find(core, frame->frame.session, &summary, &op->error);

    WAL__ASSERT(op->frame_count == 1);
    if (status != WAL_OK) {
        return status;
    }
    frame->frame.flags = WAL__FRAME_FIRST | WAL__FRAME_LAST;
    frame->skipped =
        ((summary.flags & WAL__SUMMARY_MOVED) != 0) == mark->is_away;
    if (!frame->skipped && summary.session_position != mark->base) {
        return wal__fail(&op->error, WAL_ECONFLICT,
                         "the record of session \"%.*s\" changes all the time",
                         (int)summary.id.size, (const char *)summary.id.data);
    }
    return WAL_OK;
}

static enum wal_status try_mark(struct wal__core *core, uint32_t number,
                                bool is_away, struct wal_error *error)
{
    struct wal__current_record current = {.position = 0};
    struct mark mark = {.is_away = is_away};
    enum wal_status status;

    wal__record_buf_init(&current.scratch, core->env.heap);
    status = wal__session_read_current(core, number, &current, error);
    if (status == WAL_OK && current.record.schema_version == 0) {
        status = wal__fail(error, WAL_ESCHEMA,
                           "the session has no schema version; migrate it "
                           "first");
    }
    if (status == WAL_OK) {
        mark.base = current.position;
        current.record.flags &= ~(uint32_t)WAL__SESSION_RECORD_MOVED;
        current.record.flags |=
            is_away ? (uint32_t)WAL__SESSION_RECORD_MOVED : 0;
        status = wal__session_write_record(core, number, &current.record,
                                           resolve_mark, &mark, error);
    }
    wal__record_buf_deinit(&current.scratch);
    return status;
}

static enum wal_status set_mark(struct wal__core *core, uint32_t number,
                                bool is_away, struct wal_error *error)
{
    enum wal_status status =
        is_away ? wal__core_require_feature(core, WAL__INCOMPAT_MOVED, error)
                : WAL_OK;
    uint32_t attempt = 0;

    if (status != WAL_OK) {
        return status;
    }
    do {
        status = try_mark(core, number, is_away, error);
        attempt++;
    } while (status == WAL_ECONFLICT && attempt < ATTEMPTS_MAX);
    return status;
}

enum wal_status wal__session_set_move(struct wal_session *session,
                                      const struct wal_session_move *move,
                                      struct wal_error *error)
{
    struct wal__core *core = session->core;
    char id[WAL_ID_SIZE];
    bool is_away = false;
    struct wal__buf value;
    enum wal_status status = read_id(session, id, &is_away, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&value, core->env.heap);
    status = wal__moved_encode(move, span_of(id), &value);
    if (status == WAL_OK) {
        status = put_document(
            session, (struct wal__span){value.data, value.size}, error);
    } else {
        status = wal__no_memory(error);
    }
    wal__buf_deinit(&value);
    return status == WAL_OK
               ? set_mark(core, session->number,
                          (move->flags & WAL_SESSION_MOVE_AWAY) != 0, error)
               : status;
}
