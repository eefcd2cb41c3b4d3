/*
 * session_trash.c - puts sessions in the trash, takes them out of it, and
 * empties it (session_trash.h, SPEC.md 5.10).
 *
 * Invariant: the feature is in MANIFEST before the first record that needs it.
 * The resolve functions run in the leader, under the append lock and the state
 * lock for writing.
 */
#include "engine/session/session_trash.h"

#include "engine/base/error.h"
#include "engine/session/session_record.h"
#include "format/bytes/assert.h"
#include "format/segment/segment_fmt.h"

enum {
    ATTEMPTS_MAX = 1000
};

/* --- in and out --------------------------------------------------------- */

/* The request of an operation whose frame is a SESSION record. */
struct move {
    bool trashed;             /* in the record */
    uint64_t base;            /* position of the record that it was made from */
    const uint64_t *expected; /* last_sequence that the caller saw, or null */
    bool is_stale;            /* out: `base` is not the newest any more */
};

static bool is_trashed(const struct wal__summary *summary)
{
    return (summary->flags & WAL__SUMMARY_TRASHED) != 0;
}

static enum wal_status fail_not_trashed(struct wal__span id,
                                        struct wal_error *error)
{
    return wal__fail(error, WAL_ENOTFOUND,
                     "session \"%.*s\" is not in the trash", (int)id.size,
                     (const char *)id.data);
}

static enum wal_status resolve_move(void *ctx, struct wal__op *op)
{
    struct move *move = op->request;
    struct wal__core *core = ctx;
    struct wal__summary summary;
    enum wal_status status = wal__session_find(
        core, op->frames[0].frame.session, &summary, &op->error);

    WAL__ASSERT(op->frame_count == 1);
    if (status != WAL_OK) {
        return status;
    }
    if (is_trashed(&summary) == move->trashed) {
        return move->trashed ? wal__session_fail_trashed(summary.id, &op->error)
                             : fail_not_trashed(summary.id, &op->error);
    }
    if (move->expected != NULL) {
        status =
            wal__session_check_sequence(&summary, *move->expected, &op->error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (summary.session_position != move->base) {
        move->is_stale = true;
        return wal__fail(&op->error, WAL_ECONFLICT,
                         "the record of session \"%.*s\" changes all the time",
                         (int)summary.id.size, (const char *)summary.id.data);
    }
    op->frames[0].frame.flags = WAL__FRAME_FIRST | WAL__FRAME_LAST;
    return WAL_OK;
}

static enum wal_status try_move(struct wal__core *core, uint32_t number,
                                struct move *move, struct wal_error *error)
{
    struct wal__current_record current = {.position = 0};
    enum wal_status status;

    move->is_stale = false;
    wal__record_buf_init(&current.scratch, core->env.heap);
    status = wal__session_read_current(core, number, &current, error);
    if (status == WAL_OK && current.record.schema_version == 0) {
        status = wal__fail(error, WAL_ESCHEMA,
                           "the session has no schema version; migrate it "
                           "first");
    }
    if (status == WAL_OK) {
        move->base = current.position;
        current.record.flags &= ~(uint32_t)WAL__SESSION_RECORD_TRASHED;
        current.record.flags |=
            move->trashed ? (uint32_t)WAL__SESSION_RECORD_TRASHED : 0;
        status = wal__session_write_record(core, number, &current.record,
                                           resolve_move, move, error);
    }
    wal__record_buf_deinit(&current.scratch);
    return status;
}

enum wal_status wal__session_set_trashed(struct wal__core *core,
                                         uint32_t number, bool trashed,
                                         const uint64_t *expected,
                                         struct wal_error *error)
{
    struct move move = {.trashed = trashed, .expected = expected};
    enum wal_status status =
        trashed ? wal__core_require_feature(core, WAL__INCOMPAT_TRASH, error)
                : WAL_OK;
    uint32_t attempt = 0;

    if (status != WAL_OK) {
        return status;
    }
    do {
        status = try_move(core, number, &move, error);
        attempt++;
    } while (status == WAL_ECONFLICT && move.is_stale &&
             attempt < ATTEMPTS_MAX);
    return status;
}

enum wal_status wal__session_undelete(struct wal__core *core,
                                      struct wal__span id,
                                      struct wal_error *error)
{
    struct wal__summary summary = {0};
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__catalogue_find(&core->catalogue, id, &summary);
    wal__core_unlock(core);
    if (status == WAL_ENOTFOUND) {
        return wal__fail_at(error, status, 0, core->env.root, 0,
                            "there is no session \"%.*s\"", (int)id.size,
                            (const char *)id.data);
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, "cannot read the catalogue: %s",
                         wal_status_text(status));
    }
    return is_trashed(&summary) ? wal__session_set_trashed(core, summary.number,
                                                           false, NULL, error)
                                : fail_not_trashed(id, error);
}

/* --- emptying ----------------------------------------------------------- */

/* One that was taken out of the trash meanwhile, or is deleted, is skipped. No
 * sequence is expected: a session in the trash gets no entries. */
static enum wal_status resolve_empty(void *ctx, struct wal__op *op)
{
    struct wal__op_frame *frame = &op->frames[0];
    struct wal__core *core = ctx;
    struct wal__summary summary;
    enum wal_status status =
        wal__session_find(core, frame->frame.session, &summary, &op->error);

    WAL__ASSERT(op->frame_count == 1);
    frame->frame.flags = WAL__FRAME_FIRST | WAL__FRAME_LAST;
    frame->skipped =
        status == WAL_ENOTFOUND || (status == WAL_OK && !is_trashed(&summary));
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* text_size: that of its summary, in bytes. */
static enum wal_status delete_trashed(struct wal__core *core, uint32_t number,
                                      uint64_t text_size, uint64_t *count,
                                      struct wal_error *error)
{
    struct wal__op *op = wal__op_create(&core->ops);
    struct wal__op_frame *frame;
    enum wal_status status;
    uint8_t *payload;

    if (op == NULL || wal__op_add_frame(op, 0, &frame, &payload) != WAL_OK) {
        wal__op_release(op);
        return wal__no_memory(error);
    }
    frame->frame.type = WAL__FRAME_TOMBSTONE;
    frame->frame.session = number;
    op->resolve = resolve_empty;
    wal__op_finish(op);
    op->reservation.texts = text_size;
    status = wal__session_commit(core, op, error);
    *count += status == WAL_OK && op->written;
    wal__op_release(op);
    return status;
}

/* Finds the first session in the trash from a number on; WAL_ENOTFOUND when
 * there is none. */
static enum wal_status find_trashed(struct wal__core *core, uint32_t from,
                                    uint32_t *number, uint64_t *text_size,
                                    struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = WAL_ENOTFOUND;
    for (uint64_t i = from;
         status == WAL_ENOTFOUND && i <= core->catalogue.last_session; i++) {
        status = wal__catalogue_get(&core->catalogue, (uint32_t)i, &summary);
        if (status == WAL_OK && (!is_trashed(&summary) ||
                                 (summary.flags & WAL__SUMMARY_DELETED) != 0)) {
            status = WAL_ENOTFOUND;
        }
    }
    if (status == WAL_OK) {
        *number = summary.number;
        *text_size = wal__summary_text_size(&summary) + WAL__SUMMARY_GROWTH_MAX;
    } else if (status != WAL_ENOTFOUND) {
        status = wal__fail(error, status, "cannot read the catalogue: %s",
                           wal_status_text(status));
    }
    wal__core_unlock(core);
    return status;
}

enum wal_status wal__trash_empty(struct wal__core *core, uint64_t *count,
                                 struct wal_error *error)
{
    uint64_t looked = 0;
    uint64_t text_size;
    uint32_t number = 0;
    enum wal_status status = WAL_OK;

    *count = 0;
    while (status == WAL_OK) {
        status = find_trashed(core, number + 1, &number, &text_size, error);
        if (status == WAL_OK) {
            status = delete_trashed(core, number, text_size, count, error);
        } else if (wal__core_invalidate_derived(core, status, &looked)) {
            status = WAL_OK;
        }
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}
