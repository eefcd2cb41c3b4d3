/*
 * line_delta_parts: what reading and writing a chunk share (line_delta.h).
 *
 * Threads: no shared state.
 */
#ifndef FORMAT_JSONL_LINE_DELTA_PARTS_H
#define FORMAT_JSONL_LINE_DELTA_PARTS_H

#include "format/jsonl/line_delta.h"

void wal__delta_uuid_text(const uint8_t *uuid, uint8_t *text);

/* Puts a UUID in front that was `from` behind it; `from` being the count: it
 * was not there. */
void wal__delta_remember(struct wal__delta_recent *recent, const uint8_t *uuid,
                         size_t from);

#endif
