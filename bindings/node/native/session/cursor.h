/*
 * cursor.h - reading entries, many at a time.
 */
#ifndef AGENTWAL_NODE_CURSOR_H
#define AGENTWAL_NODE_CURSOR_H

#include "bindings/node/native/base/call.h"

enum {
    /* Of one entry in addon->numbers and in the array of values. */
    CURSOR_NUMBERS = 5, /* flags, stream, sequence, depth, payloadSize */
    CURSOR_VALUES = 7,  /* id, parentId, type, timestamp, runId, payload,
                         * meta */
    CURSOR_ENTRIES = 256,
    CURSOR_BYTES = 1024 * 1024
};

#endif
