/*
 * rewind.h - restores files to the states of a checkpoint, all or none, and
 * recovers a rewind that was interrupted (SPEC.md 5.15). Any thread.
 *
 * Invariant: while a file may be in another state than before the call, the
 * session has a journal from which the next call completes or undoes the
 * rewind.
 */
#ifndef AGENTWAL_ENGINE_REWIND_REWIND_H
#define AGENTWAL_ENGINE_REWIND_REWIND_H

#include "engine/checkpoint/file_changes.h"
#include "engine/store/session.h"

enum {
    WAL__REWIND_ERROR_MAX = 1040, /* bytes of a path and a sentence */
    WAL__REWIND_ELSEWHERE = 2
};

/* The result of a rewind, complete when wal__rewind returns. */
struct wal_rewind_answer {
    struct wal__core *core;
    int32_t can_rewind;
    int32_t status; /* why can_rewind is 0 */
    char error[WAL__REWIND_ERROR_MAX];
    struct wal__buf undo;        /* id of the undo checkpoint, or empty */
    struct wal__changes changes; /* from disk to the checkpoint */
    /* Changes by other programs: [0] since the interrupted rewind that this
     * call recovered, [1] since the checkpoint that the caller expected. */
    struct wal__changes elsewhere[WAL__REWIND_ELSEWHERE];
    uint64_t next; /* index of the next change, over all three lists */
};

/* As wal_rewind; the caller checked the arguments, and options is not NULL. */
enum wal_status wal__rewind(struct wal_session *session,
                            struct wal__span checkpoint,
                            const struct wal_rewind_options *options,
                            struct wal_rewind_answer **rewind,
                            struct wal_error *error) WAL_MUST_USE;
/* Creates a result that says that rewinding is impossible, for a store without
 * persistence. */
enum wal_status
wal__rewind_create_refused(struct wal__core *core, const char *why,
                           struct wal_rewind_answer **rewind,
                           struct wal_error *error) WAL_MUST_USE;
void wal__rewind_info(const struct wal_rewind_answer *rewind,
                      struct wal_rewind_info *info);
/* WAL_END after the last. */
enum wal_status wal__rewind_next(struct wal_rewind_answer *rewind,
                                 struct wal_file_change *change) WAL_MUST_USE;
void wal__rewind_close(struct wal_rewind_answer *rewind);

/* Completes or undoes an interrupted rewind of the session; WAL_OK when there
 * is none. */
enum wal_status wal__rewind_recover(struct wal_session *session,
                                    struct wal_error *error) WAL_MUST_USE;

#endif
