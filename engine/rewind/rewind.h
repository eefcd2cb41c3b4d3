/*
 * rewind.h - bringing files back to the state that a checkpoint holds, all or
 * none, and finishing what a death cut short (SPEC.md 5.15). Any thread.
 *
 * Invariant: while a file may be in another state than before the call, the
 * session has a journal from which the next call finishes or undoes it.
 */
#ifndef AGENTWAL_ENGINE_REWIND_REWIND_H
#define AGENTWAL_ENGINE_REWIND_REWIND_H

#include "agentwal/checkpoint.h"
#include "engine/checkpoint/file_changes.h"
#include "engine/store/session.h"

/* As wal_rewind; the arguments are checked, and neither result, a whole struct
 * of this version, nor changes is null. */
enum wal_status wal__rewind(struct wal_session *session,
                            struct wal__span checkpoint,
                            const struct wal_rewind_options *options,
                            struct wal_rewind_result *result,
                            struct wal_file_change_cursor **changes,
                            struct wal_error *error) WAL_MUST_USE;
/* The result of a rewind that is refused; result as above. */
void wal__rewind_set_refused(struct wal_rewind_result *result,
                             const struct wal_error *why);

/* Finishes or undoes a rewind of the session that was cut short; WAL_OK when
 * there is none. */
enum wal_status wal__rewind_recover(struct wal_session *session,
                                    struct wal_error *error) WAL_MUST_USE;

#endif
