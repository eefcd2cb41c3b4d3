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

enum {
    WAL__REWIND_ERROR_MAX = 1040, /* a path and a sentence */
    WAL__REWIND_ELSEWHERE = 2
};

/* An answer, whole when wal__rewind returns. */
struct wal_rewind_answer {
    struct wal__core *core;
    int32_t can_rewind;
    int32_t status; /* why not */
    char error[WAL__REWIND_ERROR_MAX];
    struct wal__buf undo;        /* id of the checkpoint, or empty */
    struct wal__changes changes; /* from disk to the checkpoint */
    /* Changed by somebody else: since the earlier rewind that was found to be
     * under way, and since the checkpoint that was expected. */
    struct wal__changes elsewhere[WAL__REWIND_ELSEWHERE];
    uint64_t next; /* to be given, through all three */
};

/* As wal_rewind; the arguments are checked, options are there. */
enum wal_status wal__rewind(struct wal_session *session,
                            struct wal__span checkpoint,
                            const struct wal_rewind_options *options,
                            struct wal_rewind_answer **rewind,
                            struct wal_error *error) WAL_MUST_USE;
/* An answer that it cannot be done: with persistence off. */
enum wal_status
wal__rewind_create_refused(struct wal__core *core, const char *why,
                           struct wal_rewind_answer **rewind,
                           struct wal_error *error) WAL_MUST_USE;
void wal__rewind_info(const struct wal_rewind_answer *rewind,
                      struct wal_rewind_info *info);
/* WAL_END behind the last. */
enum wal_status wal__rewind_next(struct wal_rewind_answer *rewind,
                                 struct wal_file_change *change) WAL_MUST_USE;
void wal__rewind_close(struct wal_rewind_answer *rewind);

/* Finishes or undoes a rewind of the session that was cut short; WAL_OK when
 * there is none. */
enum wal_status wal__rewind_recover(struct wal_session *session,
                                    struct wal_error *error) WAL_MUST_USE;

#endif
