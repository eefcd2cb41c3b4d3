/*
 * session_turns.h - what OpenCode added to a session that was exported to it (SPEC.md 10.6,
 * exports): messages of its database, or of a file that it exported, which are neither documents of
 * the session nor written of its items.
 *
 * Invariant: the same messages add nothing a second time.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_SESSION_TURNS_H
#define AGENTWAL_CONVERT_IMPORT_SESSION_TURNS_H

#include "convert/import/import.h"

struct wal__session_turns;

/* Reads the items of the session, which the client has as `id`; *turns is NULL if it is exported
 * under another id. is_own: its documents were imported from the client. The caller closes
 * *turns. */
enum wal_status wal__session_turns_open(struct wal__import *import, struct wal_session *session,
                                        const char *id, bool is_own,
                                        struct wal__session_turns **turns,
                                        struct wal_error *error) WAL_MUST_USE;
void wal__session_turns_close(struct wal__session_turns *turns);

/* Takes a message, in the client's order, unless it is not the session's and none before it was
 * written of an entry. Takes a part of a message that was taken. Without memory the arena of the
 * import has failed. */
bool wal__session_turns_message(struct wal__session_turns *turns, struct wal_slice id,
                                struct wal_slice json);
bool wal__session_turns_part(struct wal__session_turns *turns, struct wal_slice message,
                             struct wal_slice json);

/* Whether a message that was taken is no document of the session. */
bool wal__session_turns_has_any(const struct wal__session_turns *turns);

/* Appends the new messages, up to one that the client is not done with; counts them. */
enum wal_status wal__session_turns_commit(struct wal__session_turns *turns, uint64_t *appended,
                                          struct wal_error *error) WAL_MUST_USE;

#endif
