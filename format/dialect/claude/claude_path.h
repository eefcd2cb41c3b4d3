/*
 * claude_path.h - where Claude Code looks for a session, and what it is called.
 *
 * Invariant: the same session has the same path, whatever it came from.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_PATH_H
#define AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_PATH_H

#include "format/model/model.h"

/* Whether the id, with its quotes, is a UUID. */
bool wal__claude_is_id(struct wal__json_span id);

/* Splits SESSION~agent-ID; the agent is empty where it is a session. */
void wal__claude_split_id(struct wal__json_span id, struct wal__arena *arena,
                          struct wal__json_span *session,
                          struct wal__json_span *agent);

/* The session's id as a UUID, in the arena; data is NULL without memory. */
struct wal__json_span wal__claude_uuid(struct wal__json_span id,
                                       struct wal__arena *arena);

/* projects/FOLDER/UUID.jsonl, of a subagent UUID/subagents/agent-ID.jsonl. */
const char *wal__claude_path(const struct wal__model_session *session,
                             uint32_t stream, struct wal__arena *arena);

/* Whether the session is one of the client's whose rows say its own id. */
bool wal__claude_can_copy_verbatim(const struct wal__model_session *session,
                                   struct wal__arena *arena);

#endif
