/*
 * reserved.h - documents of a session whose keys begin with a zero byte
 * (SPEC.md 5.8): the engine's own. Public calls refuse them and leave them
 * out. Any thread.
 */
#ifndef WAL_CHECKPOINT_RESERVED_H
#define WAL_CHECKPOINT_RESERVED_H

#include "engine/base/buf.h"
#include "engine/session/session.h"

#define WAL__ANY_VERSION UINT64_MAX

/*
 * The newest version, its JSON value in *value (emptied first; may be null).
 * WAL_ENOTFOUND when there is none, or it was deleted. version may be null.
 */
enum wal_status wal__reserved_get(struct wal_session *session,
                                  struct wal__span key, struct wal__buf *value,
                                  uint64_t *version,
                                  struct wal_error *error) WAL_MUST_USE;

/* Durably. expected: the version that must be the newest, 0: none,
 * WAL__ANY_VERSION; WAL_ESTALE where it is not. version may be null. */
enum wal_status wal__reserved_put(struct wal_session *session,
                                  struct wal__span key, struct wal__span value,
                                  uint64_t expected, uint64_t *version,
                                  struct wal_error *error) WAL_MUST_USE;
/* WAL_ENOTFOUND when it is not there. */
enum wal_status wal__reserved_delete(struct wal_session *session,
                                     struct wal__span key,
                                     struct wal_error *error) WAL_MUST_USE;

#endif
