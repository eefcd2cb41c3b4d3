/*
 * session_trash.h - the trash: sessions that are deleted and can be taken back
 * (SPEC.md 5.10).
 *
 * A session is in the trash while its newest SESSION record has the flag. Any
 * thread, without a lock.
 */
#ifndef AGENTWAL_ENGINE_SESSION_SESSION_TRASH_H
#define AGENTWAL_ENGINE_SESSION_SESSION_TRASH_H

#include "engine/store/session.h"

/* Puts a session in the trash, or takes it out of it, durably. WAL_ETRASHED: it
 * is in it; WAL_ENOTFOUND: it is not, or the session is deleted. expected:
 * last_sequence of the session as the caller saw it, or null. */
enum wal_status wal__session_set_trashed(struct wal__core *core,
                                         uint32_t number, bool trashed,
                                         const uint64_t *expected,
                                         struct wal_error *error) WAL_MUST_USE;

/* Takes the session with this id out of the trash. */
enum wal_status wal__session_undelete(struct wal__core *core,
                                      struct wal__span id,
                                      struct wal_error *error) WAL_MUST_USE;

/* Deletes the sessions that are in the trash for good, durably, by ascending
 * number; one that is taken out of it meanwhile stays. *count, also on failure:
 * those that were deleted. */
enum wal_status wal__trash_empty(struct wal__core *core, uint64_t *count,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
