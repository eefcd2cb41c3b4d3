/*
 * log_record.h - a record of the log as the client's apply receives it (log.h).
 */
#ifndef AGENTWAL_ENGINE_LOG_LOG_RECORD_H
#define AGENTWAL_ENGINE_LOG_LOG_RECORD_H

#include "format/segment/frame.h"

struct wal__log_record {
    const struct wal__frame *frame;
    struct wal__span payload; /* borrowed for the call */
    uint64_t position;
    int64_t clock_ms; /* of its group's COMMIT */
    uint32_t version; /* format version of its segment */
};

#endif
