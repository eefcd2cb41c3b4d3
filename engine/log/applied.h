/*
 * applied.h - a record of the log, as it is handed to what keeps indexes.
 */
#ifndef WAL_LOG_APPLIED_H
#define WAL_LOG_APPLIED_H

#include "format/frame.h"

struct wal__applied {
    const struct wal__frame *frame;
    struct wal__span payload; /* borrowed for the call */
    uint64_t position;
    int64_t clock_ms; /* of its group's COMMIT */
    uint32_t version; /* format version of its segment */
};

#endif
