/*
 * rewind.h - restores files to the states of a checkpoint, all or none, and
 * recovers a rewind that was interrupted (SPEC.md 5.15). Any thread.
 *
 * Invariant: while a file may be in another state than before the call, the
 * session has a journal from which the next call completes or undoes the
 * rewind.
 */
#ifndef AGENTWAL_ENGINE_FILES_REWIND_H
#define AGENTWAL_ENGINE_FILES_REWIND_H

#include "agentwal/checkpoint.h"
#include "engine/files/changes.h"
#include "engine/session/session.h"

/* As wal_rewind. The caller checked the arguments; result is a whole struct of
 * this version, and result and changes are not NULL. */
enum wal_status wal__rewind(struct wal_session *session,
                            struct wal__span checkpoint,
                            const struct wal_rewind_options *options,
                            struct wal_rewind_result *result,
                            struct wal_file_change_cursor **changes,
                            struct wal_error *error) WAL_MUST_USE;
/* Fills the result of a rewind that is refused. */
void wal__rewind_set_refused(struct wal_rewind_result *result,
                             const struct wal_error *why);

/* Completes or undoes an interrupted rewind of the session; WAL_OK when there
 * is none. */
enum wal_status wal__rewind_recover(struct wal_session *session,
                                    struct wal_error *error) WAL_MUST_USE;

#endif
