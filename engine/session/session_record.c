/*
 * session_record.c - writes the SESSION record of a session anew
 * (session_record.h).
 */
#include "engine/session/session_record.h"

#include "engine/base/error.h"
#include "format/bytes/crc32.h"

enum wal_status wal__session_write_record(
    struct wal__core *core, uint32_t number,
    const struct wal__session_record *record,
    enum wal_status (*resolve)(void *ctx, struct wal__op *op), void *request,
    struct wal_error *error)
{
    size_t size = wal__session_record_size(record);
    struct wal__op *op = wal__op_create(&core->ops);
    struct wal__op_frame *frame;
    enum wal_status status;
    uint8_t *payload;

    if (op == NULL ||
        wal__op_add_frame(op, (uint32_t)size, &frame, &payload) != WAL_OK) {
        wal__op_release(op);
        return wal__no_memory(error);
    }
    wal__session_record_encode(record, payload);
    frame->frame.type = WAL__FRAME_SESSION;
    frame->frame.session = number;
    frame->frame.id_hash = wal__id_hash(record->id.data, record->id.size);
    op->request = request;
    op->resolve = resolve;
    wal__op_finish(op);
    /* Of its texts as they are, and as they are written. */
    op->reservation.texts =
        2 * (size - record->metadata.size) + WAL__SUMMARY_GROWTH_MAX;
    status = wal__session_commit(core, op, error);
    wal__op_release(op);
    return status;
}
