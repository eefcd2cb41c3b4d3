/*
 * json_error_text.h - describes why a line of a session file is not JSON.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_JSON_ERROR_TEXT_H
#define AGENTWAL_CONVERT_IMPORT_JSON_ERROR_TEXT_H

#include <stdbool.h>

#include "format/json/json_scan.h"

/* Describes the result of a scan that failed at `offset`. `is_last`: the text
 * is at the end of the file. */
const char *wal__json_error_text(struct wal__json_span text,
                                 enum wal__json_status status, size_t offset,
                                 bool is_last);

#endif
