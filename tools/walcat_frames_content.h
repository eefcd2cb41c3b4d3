/*
 * walcat_frames_content.h - digest, size, encoding and depth of the records of
 * the blob stream. Nothing is put for other records, and for a payload that is
 * null.
 */
#ifndef AGENTWAL_TOOLS_WALCAT_FRAMES_CONTENT_H
#define AGENTWAL_TOOLS_WALCAT_FRAMES_CONTENT_H

#include "format/frame.h"
#include "tools/cli_json.h"

/* As members of the object that is open. */
void walcat_content_json(struct cli_json *json, const struct wal__frame *frame,
                         const uint8_t *payload);
/* At the end of a line. */
void walcat_content_text(const struct wal__frame *frame,
                         const uint8_t *payload);

#endif
