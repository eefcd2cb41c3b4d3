/*
 * op.c - an operation and its frames (SPEC.md 4.3).
 */
#include <string.h>

#include "engine/base/assert.h"
#include "engine/log/commit.h"
#include "format/crc32.h"

struct wal__op *wal__op_create(const struct wal__heap *heap,
                               size_t subject_size)
{
    struct wal__op *op = wal__heap_zalloc(heap, sizeof(*op) + subject_size);

    if (op == NULL) {
        return NULL;
    }
    op->heap = heap;
    op->subject = subject_size > 0 ? op + 1 : NULL;
    op->error.struct_size = sizeof(op->error);
    op->result.struct_size = sizeof(op->result);
    wal__buf_init(&op->bytes, heap);
    atomic_store(&op->references, 1);
    return op;
}

void wal__op_retain(struct wal__op *op)
{
    atomic_fetch_add(&op->references, 1);
}

void wal__op_release(struct wal__op *op)
{
    if (op == NULL || atomic_fetch_sub(&op->references, 1) != 1) {
        return;
    }
    if (op->release != NULL) {
        op->release(op);
    }
    wal__buf_deinit(&op->bytes);
    if (op->frames != &op->first_frame) {
        wal__heap_free(op->heap, op->frames);
    }
    wal__heap_free(op->heap, op);
}

/* The first frame has its room; then doubles it when the count is a power of
 * two. */
static enum wal_status grow_frames(struct wal__op *op)
{
    uint32_t count = op->frame_count;
    bool inside = op->frames == &op->first_frame;
    struct wal__op_frame *frames;

    if (count == 0) {
        op->frames = &op->first_frame;
        return WAL_OK;
    }
    if ((count & (count - 1)) != 0) {
        return WAL_OK;
    }
    frames = wal__heap_resize(op->heap, inside ? NULL : op->frames,
                              (size_t)count * 2, sizeof(*frames));
    if (frames == NULL) {
        return WAL_ENOMEM;
    }
    if (inside) {
        frames[0] = op->first_frame;
    }
    op->frames = frames;
    return WAL_OK;
}

enum wal_status wal__op_add(struct wal__op *op, uint32_t size,
                            struct wal__op_frame **frame, uint8_t **payload)
{
    uint64_t span = wal__frame_span(size);
    struct wal__op_frame *added;
    uint8_t *at;

    if (grow_frames(op) != WAL_OK ||
        wal__buf_reserve(&op->bytes, span, &at) != WAL_OK) {
        return WAL_ENOMEM;
    }
    memset(at, 0, WAL__FRAME_SIZE);
    memset(at + span - 8, 0, 8);
    added = &op->frames[op->frame_count];
    memset(added, 0, sizeof(*added));
    added->offset = (uint32_t)op->bytes.size;
    added->frame.stored_size = size;
    added->frame.raw_size = size;
    op->bytes.size += span;
    op->frame_count++;
    *frame = added;
    *payload = at + WAL__FRAME_SIZE;
    return WAL_OK;
}

void wal__op_finish(struct wal__op *op)
{
    op->demand.size = op->bytes.size;
    op->demand.frames = op->frame_count;
    op->demand.sessions = 1;
    for (uint32_t i = 0; i < op->frame_count; i++) {
        struct wal__op_frame *frame = &op->frames[i];

        frame->frame.data_crc =
            wal__crc32(0, op->bytes.data + frame->offset + WAL__FRAME_SIZE,
                       frame->frame.stored_size);
    }
}
