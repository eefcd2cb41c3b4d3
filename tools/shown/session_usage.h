/*
 * session_usage.h - the tokens and costs of a session by answer and by model,
 * as JSON (docs/seeing.md, Resources).
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_SESSION_USAGE_H
#define AGENTWAL_TOOLS_SHOWN_SESSION_USAGE_H

#include "tools/shown/shown.h"

/* Writes the members "turns" and "models". */
enum wal_status shown_usage(struct shown *shown, struct wal_store *store,
                            struct wal_session *session,
                            struct wal_error *error);

#endif
