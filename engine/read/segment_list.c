/*
 * segment_list.c - lists the segments of the log as they are when the cursor is
 * opened (segment_list.h).
 */
#include "engine/read/segment_list.h"

#include "engine/base/error.h"
#include "format/bytes/assert.h"

/* The highest sequence number of a record in the segment of a rank or before
 * it. State lock. */
static uint64_t last_sequence(const struct wal__log *log, uint32_t rank)
{
    const struct wal__segment *segment = wal__log_segment_at(log, rank);
    const struct wal__segment *next;

    if (rank + 1 == wal__log_segment_count(log)) {
        return log->last_sequence;
    }
    next = wal__log_segment_at(log, rank + 1);
    if (next->has_open) {
        return next->open.last_sequence;
    }
    /* Of the next one OPEN is damaged. */
    return wal__segment_is_rewritten(&segment->header)
               ? segment->header.rewrite.last_sequence
               : segment->trailer.last_sequence;
}

/* State lock for reading. */
static enum wal_status collect(struct wal_segment_cursor *cursor)
{
    const struct wal__log *log = &cursor->core->log;
    uint32_t count = wal__log_segment_count(log);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        const struct wal__segment *segment = wal__log_segment_at(log, i);
        struct wal_segment_info info = WAL_INIT(wal_segment_info);

        info.flags = i + 1 == count ? WAL_SEGMENT_TAIL : 0U;
        if (wal__segment_is_rewritten(&segment->header)) {
            info.flags |= WAL_SEGMENT_REWRITTEN;
        }
        info.id = segment->id;
        info.identity = segment->header.salt;
        info.end = atomic_load(&segment->end);
        info.last_sequence = last_sequence(log, i);
        status = wal__buf_append(&cursor->items, &info, sizeof(info));
    }
    return status;
}

enum wal_status wal__segment_cursor_open(struct wal__core *core,
                                         struct wal_segment_cursor **cursor,
                                         struct wal_error *error)
{
    struct wal_segment_cursor *opened =
        wal__heap_zalloc(core->env.heap, sizeof(*opened));
    enum wal_status status;

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->core = core;
    wal__buf_init(&opened->items, core->env.heap);
    wal__core_retain(core);
    status = wal__core_read_lock(core, error);
    if (status == WAL_OK) {
        status = collect(opened) == WAL_OK ? WAL_OK : wal__no_memory(error);
        wal__core_unlock(core);
    }
    if (status != WAL_OK) {
        wal__segment_cursor_close(opened);
        return status;
    }
    *cursor = opened;
    return WAL_OK;
}

enum wal_status wal__segment_cursor_next(struct wal_segment_cursor *cursor,
                                         struct wal_segment_info *segment)
{
    if (cursor->next == cursor->items.size) {
        return WAL_END;
    }
    WAL__ASSERT(cursor->items.size - cursor->next >= sizeof(*segment));
    memcpy(segment, cursor->items.data + cursor->next, sizeof(*segment));
    cursor->next += sizeof(*segment);
    return WAL_OK;
}

void wal__segment_cursor_close(struct wal_segment_cursor *cursor)
{
    struct wal__core *core;

    if (cursor == NULL) {
        return;
    }
    core = cursor->core;
    wal__buf_deinit(&cursor->items);
    wal__heap_free(core->env.heap, cursor);
    wal__core_release(core);
}
