/*
 * claude_path.h - paths and ids of sessions of Claude Code.
 *
 * Invariant: a session has the same path whatever dialect it was read from.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_CLAUDE_CLAUDE_PATH_H
#define AGENTWAL_CONVERT_DIALECT_CLAUDE_CLAUDE_PATH_H

#include "convert/model/model.h"

/* Whether the id, with its quotes, is a UUID. */
bool wal__claude_is_id(struct wal__json_span id);

/* Splits SESSION~agent-ID; *agent is empty if the id has no agent. */
void wal__claude_split_id(struct wal__json_span id, struct wal__arena *arena,
                          struct wal__json_span *session,
                          struct wal__json_span *agent);

/* Returns the session's id as a UUID, in the arena; data is NULL if there is no
 * memory. */
struct wal__json_span wal__claude_uuid(struct wal__json_span id,
                                       struct wal__arena *arena);

/* Returns projects/FOLDER/UUID.jsonl, for a subagent
 * projects/FOLDER/UUID/subagents/agent-ID.jsonl. NULL: no memory. */
const char *wal__claude_path(const struct wal__model_session *session,
                             uint32_t stream, struct wal__arena *arena);

/* Whether the session was read from this dialect and its rows have its id. */
bool wal__claude_can_copy_verbatim(const struct wal__model_session *session,
                                   struct wal__arena *arena);

#endif
