/*
 * rewind.h - bringing files back to the states of a checkpoint (SPEC.md 5.15): what the steps of a
 * rewind share. Any thread; steps that change files run under wal__rewind_lock.
 */
#ifndef AGENTWAL_ENGINE_FILES_REWIND_H
#define AGENTWAL_ENGINE_FILES_REWIND_H

#include <stdatomic.h>

#include "agentwal/checkpoint.h"
#include "engine/base/thread.h"
#include "engine/files/changes.h"
#include "engine/files/checkpoint.h"
#include "engine/session/session.h"

/* Completes or undoes an interrupted rewind of the session; WAL_OK when there is none. */
enum wal_status wal__rewind_recover(struct wal_session *session,
                                    struct wal_error *error) WAL_MUST_USE;

enum {
    WAL__REWIND_SUFFIX_SIZE = 16,  /* hexadecimal digits in a temporary file's name */
    WAL__REWIND_TEMP_RESERVE = 64, /* upper bound of the name without its directory */
    WAL__REWIND_GRAIN = 2          /* files per step of a thread */
};

/* Contents that were verified, so that they need not be read again. */
struct wal__rewind_contents {
    atomic_size_t size; /* bytes; those above a limit are not kept */
    uint32_t count;
    struct wal__buf items[]; /* per file; empty: not kept */
};

/* A rewind in progress. The lists before and after have the same paths in the same order. */
struct wal__rewind_job {
    struct wal_session *session; /* the session that owns the journal */
    struct wal_session *owner;   /* the same if opened for this job, else NULL */
    const struct wal__worktree_io *io;
    struct wal__worktree *worktree; /* NULL: not open */
    char root[WAL__PATH_MAX];
    char temp_suffix[WAL__REWIND_SUFFIX_SIZE + 1];
    struct wal__buf undo;                  /* id of the checkpoint of `before` */
    struct wal__digest before_list;        /* digest of the list of `undo` */
    struct wal__digest after_list;         /* digest of a list that contains `after` */
    struct wal__files all;                 /* the whole list `after_list` */
    struct wal__files before;              /* states before the rewind */
    struct wal__files after;               /* states to restore */
    struct wal__rewind_contents *contents; /* of `after`; NULL: none is kept */
    struct wal__buf directories;           /* to create: parents first, NUL-terminated */
    /* Entry ids of the head `main`, terminated by NUL: when the rewind was planned, or empty; and
     * where it moves, empty: it does not. */
    char head_before[WAL_ID_SIZE];
    char head_after[WAL_ID_SIZE];
};

void wal__rewind_job_init(struct wal__rewind_job *job, struct wal_session *session);
void wal__rewind_job_deinit(struct wal__rewind_job *job);
/* Opens the work tree at job->root. */
enum wal_status wal__rewind_job_open(struct wal__rewind_job *job,
                                     struct wal_error *error) WAL_MUST_USE;
/* One rewind at a time in the whole store. Waits for other
 * threads, and up to the lock timeout for other processes (WAL_ELOCKED). */
enum wal_status wal__rewind_lock(struct wal__core *core, struct wal_error *error) WAL_MUST_USE;
void wal__rewind_unlock(struct wal__core *core);
/* Whether the session has a journal, or was forked from a session while that one rewound and still
 * has the journal. */
enum wal_status wal__rewind_journal_exists(struct wal_session *session, bool *has,
                                           struct wal_error *error) WAL_MUST_USE;
/* Loads that journal into the job; *found says whether there is one. */
enum wal_status wal__rewind_journal_load(struct wal__rewind_job *job, bool *found,
                                         struct wal_error *error) WAL_MUST_USE;
/* Deletes the journal without a sync: a journal that reappears after a power loss is harmless.
 * undone: also deletes the undo checkpoint. */
enum wal_status wal__rewind_journal_delete(struct wal__rewind_job *job, bool undone,
                                           struct wal_error *error) WAL_MUST_USE;
/* Deletes the journal when all files are restored, and moves the head in the same batch, durably
 * then. WAL_ECONFLICT: the head is neither at head_before nor at head_after, and nothing was
 * done. */
enum wal_status wal__rewind_finish(struct wal__rewind_job *job,
                                   struct wal_error *error) WAL_MUST_USE;
/* Lets wal__rewind_verify_file keep small contents of `after`. */
enum wal_status wal__rewind_keep_contents(struct wal__rewind_job *job,
                                          struct wal_error *error) WAL_MUST_USE;
/* contents may be null. */
void wal__rewind_contents_destroy(struct wal__rewind_contents *contents,
                                  const struct wal__heap *heap);
/* The content of a file of `after` if it was kept, else empty. */
struct wal__span wal__rewind_kept_content(const struct wal__rewind_job *job, uint32_t number);
/* Reads and verifies every content that the chosen files need. WAL_ECORRUPT: the error names the
 * file and the digest. */
enum wal_status wal__rewind_verify(const struct wal__rewind_job *job, const struct wal__files *list,
                                   const uint8_t *chosen, struct wal_error *error) WAL_MUST_USE;
/* The same for one file, in a thread of wal__parallel_for; `state` is the thread's and is released
 * by wal__rewind_verify_worker_end. */
enum wal_status wal__rewind_verify_file(const struct wal__rewind_job *job,
                                        const struct wal__files *list, uint32_t item, void *state,
                                        struct wal_error *error) WAL_MUST_USE;
void wal__rewind_verify_worker_end(const struct wal__rewind_job *job, void *state);
/* The file of `before` that the path is below, the topmost one, or NULL: where it becomes a
 * directory, or one becomes it. */
const struct wal__file_record *wal__rewind_above(const struct wal__rewind_job *job,
                                                 struct wal__span path);
/*
 * Where a directory is in the place of file `number` of `to`: appends it and all directories in it
 * to `out`, parents first, NUL-terminated. WAL_ENOTFILE, which names the path: one of them holds
 * what is not a file that `to` has as absent, and that is chosen. chosen may be NULL: all are.
 */
enum wal_status wal__rewind_list_dirs_in_place(const struct wal__rewind_job *job,
                                               const struct wal__files *to, const uint8_t *chosen,
                                               uint32_t number, struct wal__buf *out,
                                               struct wal_error *error) WAL_MUST_USE;
/* Appends to `out` the directories that are missing for a path. Those within its first `known`
 * bytes are there. WAL_ENOTFILE: a file is in the place of one, and the rewind does not remove
 * it. */
enum wal_status wal__rewind_find_missing_dirs(const struct wal__rewind_job *job, const char *path,
                                              size_t known, struct wal__buf *out,
                                              struct wal_error *error) WAL_MUST_USE;
/* The same for the chosen files. */
enum wal_status wal__rewind_list_missing_dirs(const struct wal__rewind_job *job,
                                              const struct wal__files *list, const uint8_t *chosen,
                                              struct wal__buf *out,
                                              struct wal_error *error) WAL_MUST_USE;
/*
 * Brings the chosen files to the states in `to`, one of the job's lists, and syncs them. `from` has
 * them as they were captured: one whose stat differs is WAL_ECHANGED before any file is replaced.
 * moved, unless NULL, has one byte per file, zeros on entry: 1 for files that may be
 * in the new state. A failure leaves temporary files and directories for wal__rewind_remove_temps.
 */
enum wal_status wal__rewind_apply(const struct wal__rewind_job *job, const struct wal__files *to,
                                  const struct wal__files *from, const uint8_t *chosen,
                                  uint8_t *moved, struct wal_error *error) WAL_MUST_USE;
/* Removes leftover temporary files durably; with `directories` also the job's directories that are
 * empty. Makes those of them durable that remain. */
enum wal_status wal__rewind_remove_temps(const struct wal__rewind_job *job, bool directories,
                                         struct wal_error *error) WAL_MUST_USE;
/* Stores the current states of the files in job->before as the undo checkpoint, linked with
 * head_before, and the journal in the same batch, durably. Without files there is no journal: the
 * batch moves the head, and completes the rewind. Replaces job->before by what was recorded.
 * WAL_ECHANGED when a state or the head differs. */
enum wal_status wal__rewind_save_undo(struct wal__rewind_job *job,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
