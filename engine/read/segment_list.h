/*
 * segment_list.h - lists the segments of the log (agentwal/record.h). One
 * thread at a time per cursor.
 */
#ifndef AGENTWAL_ENGINE_READ_SEGMENT_LIST_H
#define AGENTWAL_ENGINE_READ_SEGMENT_LIST_H

#include "agentwal/record.h"
#include "engine/store/core.h"

struct wal_segment_cursor {
    struct wal__core *core;
    struct wal__buf items; /* struct wal_segment_info */
    size_t next;           /* bytes of items */
};

enum wal_status wal__segment_cursor_open(struct wal__core *core,
                                         struct wal_segment_cursor **cursor,
                                         struct wal_error *error) WAL_MUST_USE;
/* WAL_END after the last one. */
enum wal_status wal__segment_cursor_next(struct wal_segment_cursor *cursor,
                                         struct wal_segment_info *segment);
void wal__segment_cursor_close(struct wal_segment_cursor *cursor);

#endif
