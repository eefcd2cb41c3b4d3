/*
 * line_delta_internal.h - functions that encoding and decoding of chunks share
 * (line_delta.h).
 *
 * Threads: no shared state.
 */
#ifndef AGENTWAL_CONVERT_COPY_LINE_DELTA_INTERNAL_H
#define AGENTWAL_CONVERT_COPY_LINE_DELTA_INTERNAL_H

#include "convert/copy/line_delta.h"

void wal__delta_uuid_text(const uint8_t *uuid, uint8_t *text);

/* Moves the UUID at index `from` to the front; from == count: adds it. */
void wal__delta_recent_touch(struct wal__delta_recent *recent,
                             const uint8_t *uuid, size_t from);

#endif
