/*
 * frames_blob.h - digest, size, encoding and depth of the records of
 * the blob stream. Nothing is put for other records, and for a payload that is
 * null.
 */
#ifndef AGENTWAL_TOOLS_WALCAT_FRAMES_BLOB_H
#define AGENTWAL_TOOLS_WALCAT_FRAMES_BLOB_H

#include "format/segment/frame.h"
#include "tools/cli/json.h"

/* As members of the object that is open. */
void walcat_blob_json(struct cli_json *json, const struct wal__frame *frame,
                      const uint8_t *payload);
/* At the end of a line. */
void walcat_blob_text(const struct wal__frame *frame, const uint8_t *payload);

#endif
