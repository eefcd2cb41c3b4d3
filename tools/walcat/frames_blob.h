/*
 * frames_blob.h - prints digest, size, encoding and depth of the records of
 * the blob stream. Prints nothing for other records and for a null payload.
 */
#ifndef AGENTWAL_TOOLS_WALCAT_FRAMES_BLOB_H
#define AGENTWAL_TOOLS_WALCAT_FRAMES_BLOB_H

#include "format/segment/frame.h"
#include "tools/cli/json.h"

/* Writes them as members of the open object. */
void walcat_blob_json(struct wal__json_out *json,
                      const struct wal__frame *frame, const uint8_t *payload);
/* Prints them at the end of a line. */
void walcat_blob_text(const struct wal__frame *frame, const uint8_t *payload);

#endif
