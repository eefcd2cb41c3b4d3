/*
 * rewind_job.h - what the files rewind*.c share (SPEC.md 5.15): a rewind
 * under way, its journal, and the moving of files. Everything here is called
 * by the one thread that has wal__rewind_lock.
 */
#ifndef AGENTWAL_ENGINE_REWIND_REWIND_JOB_H
#define AGENTWAL_ENGINE_REWIND_REWIND_JOB_H

#include "agentwal/checkpoint.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/os/parallel.h"
#include "engine/rewind/rewind.h"

enum {
    WAL__REWIND_SUFFIX_SIZE =
        16, /* hexadecimal digits in a temporary file's name */
    WAL__REWIND_TEMP_RESERVE = 64, /* at most, of the name and what is around */
    WAL__REWIND_TEMP_NAME_MAX = WAL__FILE_PATH_MAX + WAL__REWIND_TEMP_RESERVE,
    WAL__REWIND_GRAIN = 2 /* files that a thread takes at once */
};

/* The two lists have the same paths in the same order. */
struct wal__rewind_job {
    struct wal_session *session; /* whose journal it is */
    struct wal_session *owner;   /* the same, opened for the job; or null */
    const struct wal__worktree_io *io;
    struct wal__worktree *worktree; /* null: not opened */
    char root[WAL__PATH_MAX];
    char temp_suffix[WAL__REWIND_SUFFIX_SIZE + 1];
    struct wal__buf undo;           /* id of the checkpoint of `before` */
    struct wal__digest before_list; /* blob of that checkpoint's list */
    struct wal__digest after_list;  /* blob of a list that has `after` */
    struct wal__files before;       /* the files before it began */
    struct wal__files after;        /* and as they are to be */
    struct wal__buf directories;    /* to be made: parents first, each path
                                      * followed by a NUL */
};

void wal__rewind_job_init(struct wal__rewind_job *job,
                          struct wal_session *session);
void wal__rewind_job_deinit(struct wal__rewind_job *job);
/* Opens the tree at job->root. */
enum wal_status wal__rewind_job_open(struct wal__rewind_job *job,
                                     struct wal_error *error) WAL_MUST_USE;

/* rewind_journal.c: one at a time in the whole store. */
enum wal_status wal__rewind_lock(struct wal__core *core,
                                 struct wal_error *error) WAL_MUST_USE;
void wal__rewind_unlock(struct wal__core *core);

/* The journal as a document; *value is empty before. */
struct wal__span wal__rewind_journal_key(void);
enum wal_status wal__rewind_journal_encode(const struct wal__rewind_job *job,
                                           struct wal__buf *value) WAL_MUST_USE;
/* Whether the session, or the one that it was forked from while it rewound,
 * has a journal. */
enum wal_status
wal__rewind_journal_exists(struct wal_session *session, bool *has,
                           struct wal_error *error) WAL_MUST_USE;
/* And fills the job from it. */
enum wal_status wal__rewind_journal_load(struct wal__rewind_job *job,
                                         bool *found,
                                         struct wal_error *error) WAL_MUST_USE;
/* Documents of the engine's own in one batch. */
enum wal_status wal__rewind_commit_docs(struct wal_session *session,
                                        const struct wal_doc *docs,
                                        uint32_t count,
                                        enum wal_durability durability,
                                        struct wal_error *error) WAL_MUST_USE;
/* It is over: found again after a loss of power it does no harm, so that it
 * is not synced. undone: the undo checkpoint goes with the journal. */
enum wal_status
wal__rewind_journal_delete(struct wal__rewind_job *job, bool undone,
                           struct wal_error *error) WAL_MUST_USE;

/*
 * rewind_content.c. A choice is a byte for each file of the job: not 0 for
 * those that are meant.
 */

/* The name of a file's temporary one, beside it. */
void wal__rewind_temp_name(const struct wal__rewind_job *job, uint32_t number,
                           char out[WAL__REWIND_TEMP_NAME_MAX]);
/* Reads every content that the chosen files of a list need. WAL_ECORRUPT names
 * the file and the digest. */
enum wal_status wal__rewind_verify(const struct wal__rewind_job *job,
                                   const struct wal__files *list,
                                   const uint8_t *chosen,
                                   struct wal_error *error) WAL_MUST_USE;
/* Of one file, in a thread of wal__parallel_for; state is the thread's, and to
 * be ended. */
enum wal_status wal__rewind_verify_file(const struct wal__rewind_job *job,
                                        const struct wal__files *list,
                                        uint32_t item, void *state,
                                        struct wal_error *error) WAL_MUST_USE;
void wal__rewind_verify_worker_end(const struct wal__rewind_job *job,
                                   void *state);
/* Makes the chosen files of a list under their temporary names. A failure
 * leaves some. */
enum wal_status wal__rewind_stage(const struct wal__rewind_job *job,
                                  const struct wal__files *to,
                                  const uint8_t *chosen,
                                  struct wal_error *error) WAL_MUST_USE;

/* rewind_apply.c */

/* The directories that are missing for the chosen files of a list, appended
 * to `out`. */
enum wal_status
wal__rewind_list_missing_dirs(const struct wal__rewind_job *job,
                              const struct wal__files *list,
                              const uint8_t *chosen, struct wal__buf *out,
                              struct wal_error *error) WAL_MUST_USE;

/*
 * Brings the chosen files to the state in `to`, one of the job's lists, and
 * makes it durable. from, if not null, is the other: a file whose times are
 * not as it says any more is WAL_ECHANGED before anything is touched. moved,
 * if not null, has a byte for each file, zeros before: 1 for those that may be
 * in the new state. A failure leaves temporary files and directories for
 * wal__rewind_remove_temps.
 */
enum wal_status wal__rewind_apply(const struct wal__rewind_job *job,
                                  const struct wal__files *to,
                                  const struct wal__files *from,
                                  const uint8_t *chosen, uint8_t *moved,
                                  struct wal_error *error) WAL_MUST_USE;

/* Removes temporary files that are left, durably; with `directories` also
 * those of the job's that are empty. */
enum wal_status wal__rewind_remove_temps(const struct wal__rewind_job *job,
                                         bool directories,
                                         struct wal_error *error) WAL_MUST_USE;

/* rewind_resume.c: as wal__rewind_recover, the lock being held; *elsewhere,
 * empty before, takes the files that somebody else changed meanwhile. */
enum wal_status
wal__rewind_recover_locked(struct wal_session *session,
                           struct wal__changes *elsewhere,
                           struct wal_error *error) WAL_MUST_USE;

/* rewind_plan.c: what a rewind would do. */
struct wal__rewind_plan {
    struct wal__checkpoint checkpoint;
    struct wal__files target; /* all files of the checkpoint */
    struct wal__files disk;   /* the same as they are */
    struct wal__changes changes;
    struct wal__changes elsewhere;
};

void wal__rewind_plan_init(struct wal__rewind_plan *plan,
                           const struct wal__heap *heap);
void wal__rewind_plan_deinit(struct wal__rewind_plan *plan);
/* The job's session is set, its tree opened here; before and after get what
 * changes, directories what is missing for it. WAL_ECHANGED: see elsewhere. */
enum wal_status wal__rewind_plan_build(struct wal__rewind_plan *plan,
                                       struct wal__rewind_job *job,
                                       struct wal__span id,
                                       const struct wal_rewind_options *options,
                                       struct wal_error *error) WAL_MUST_USE;

/*
 * rewind_undo.c: keeps the files of job->before as they are in a checkpoint of
 * its own, and the journal with it, durably. before gets what was recorded;
 * WAL_ECHANGED when that is something else than it had.
 */
enum wal_status wal__rewind_save_undo(struct wal__rewind_job *job,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
