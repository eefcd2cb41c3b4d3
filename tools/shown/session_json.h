/*
 * session_json.h - sessions as JSON (docs/seeing.md, Resources).
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_SESSION_JSON_H
#define AGENTWAL_TOOLS_SHOWN_SESSION_JSON_H

#include "tools/shown/shown.h"

/* Writes a session as a value. */
void shown_session(struct shown *shown, const struct wal_session_info *info);

/* Writes the member "heads": those of stream 0. */
enum wal_status shown_heads(struct shown *shown, struct wal_session *session,
                            struct wal_error *error);

#endif
