/*
 * api_check.h - what every public function checks first (agentwal.h,
 * Conventions).
 */
#ifndef AGENTWAL_ENGINE_API_API_CHECK_H
#define AGENTWAL_ENGINE_API_API_CHECK_H

#include "engine/base/struct_size.h"
#include "engine/store/session.h"

/* The handle is there and belongs to this process; core may be null. */
enum wal_status wal__check_process(const struct wal__core *core,
                                   struct wal_error *error) WAL_MUST_USE;
/* And its store is open. */
enum wal_status wal__check_core(const struct wal__core *core,
                                struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__check_session(const struct wal_session *session,
                                   struct wal_error *error) WAL_MUST_USE;
/* And may write. */
enum wal_status wal__check_writable(const struct wal__core *core,
                                    struct wal_error *error) WAL_MUST_USE;

/* A document's key, or its beginning, is not one of the engine's own. */
enum wal_status wal__check_key(struct wal_slice key,
                               struct wal_error *error) WAL_MUST_USE;

#endif
