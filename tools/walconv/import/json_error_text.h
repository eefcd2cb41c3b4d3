/*
 * json_error_text.h - why a text of a session file is not JSON, in words.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_JSON_ERROR_TEXT_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_JSON_ERROR_TEXT_H

#include <stdbool.h>

#include "format/json/json_scan.h"

/* Words for what a scan answered, at that offset. `is_last`: the file ends
 * where the text does. */
const char *walconv_json_error_text(struct wal__json_span text,
                                    enum wal__json_status status, size_t offset,
                                    bool is_last);

#endif
