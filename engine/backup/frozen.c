/*
 * frozen.c - what of a log never changes any more (frozen.h).
 */
#include "engine/backup/frozen.h"

uint64_t wal__frozen_end(const struct wal__log *log)
{
    uint64_t durable = atomic_load(&log->shared->durable);
    uint64_t end = atomic_load(&log->end);

    if (log->tail_segment == NULL) {
        return 0;
    }
    return durable > end ? end : durable;
}

uint64_t wal__frozen_segment_end(const struct wal__segment *segment,
                                 const struct wal__segment *next)
{
    if (next->has_open && next->open.previous_id == segment->id) {
        return next->open.previous_end;
    }
    return segment->sealed ? segment->trailer.end : segment->header.capacity;
}
