/*
 * import.h - one call of wal_import_file or wal_import_tree: what its parts
 * share (agentwal/import.h).
 *
 * Texts that a source needs are in an arena, which is emptied between sources.
 * A function that returns a text from it returns NULL without memory; callers
 * pass the NULL on, and import->arena.has_failed is checked before anything is
 * written.
 *
 * Threads: one thread at a time per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_IMPORT_H
#define AGENTWAL_CONVERT_IMPORT_IMPORT_H

#include "agentwal/import.h"
#include "convert/model/dialect.h"
#include "convert/state/view_states.h"
#include "engine/base/heap.h"

enum {
    WAL__IMPORT_ID_TRIES = 9 /* ids derived from one name */
};

/* Must not move in memory. */
struct wal__import {
    struct wal_store *store;
    const struct wal__heap *heap;
    const struct wal__dialect *forced; /* NULL: detect the dialect */
    wal_import_progress_fn *progress;
    wal_import_report_fn *report;
    wal_import_project_fn *project;
    void *ctx;
    char *exclude;                /* as in the options; or NULL */
    struct wal__heap_arena arena; /* for one source */
    struct wal__heap_arena walk;  /* for the whole call */
    struct wal__view_index views; /* the same */
    /* of the source, for its report; or NULL */
    const char *view_session;
    /* The source is the session of its id that has its content, whatever its
     * path was when that was imported. */
    bool matches_ids;
    /* A last line without its newline is not read: it is being written. */
    bool waits_for_newline;
    /* A source that another import is writing is not reported as failed, but
     * here. */
    bool retries;
    bool must_retry;
    struct wal_import_result result;
    struct wal_error first; /* the first failure; its status, or WAL_OK */
};

/* Calls the progress callback. */
enum wal_status wal__import_progress(struct wal__import *import,
                                     const char *path, uint64_t done,
                                     uint64_t total,
                                     struct wal_error *error) WAL_MUST_USE;

/* Counts and reports what was imported. The caller sets all but the session's
 * id, which is read from `session`. */
enum wal_status wal__import_report(struct wal__import *import,
                                   struct wal_import_report *report,
                                   struct wal_session *session,
                                   struct wal_error *error) WAL_MUST_USE;

/* Counts and reports that a path failed with a status and *error. Returns
 * WAL_OK if the import goes on: not without memory, and not after a callback
 * stopped it. */
enum wal_status wal__import_fail(struct wal__import *import, const char *path,
                                 enum wal_status status,
                                 struct wal_error *error) WAL_MUST_USE;

/* Fills *error for errno, of a system call on the file of a source. ESTALE: it
 * became shorter. */
enum wal_status wal__import_errno(struct wal_error *error) WAL_MUST_USE;

/* Returns WAL_ENOMEM after an allocation from the arena has failed. */
enum wal_status wal__import_check_memory(const struct wal__import *import,
                                         struct wal_error *error) WAL_MUST_USE;

/* Joins a directory and a path below it, in the arena. */
char *wal__import_path(struct wal__import *import, const char *root,
                       const char *path);

/* Creates a session with the id `base`, or `base~2` to `base~9` when that is
 * taken. */
typedef enum wal_status
wal__import_create_fn(void *ctx, struct wal_session_options *options,
                      struct wal_error *error);
enum wal_status wal__import_try_ids(wal__import_create_fn *create, void *ctx,
                                    struct wal_session_options *options,
                                    const char *base,
                                    struct wal_error *error) WAL_MUST_USE;

/* Opens the session of a source. WAL_ENOTFOUND: no session has it;
 * WAL_ETRASHED: one in the trash has it, and no other. */
enum wal_status wal__session_open_source(struct wal_store *store,
                                         const char *source,
                                         struct wal_session **session,
                                         struct wal_error *error) WAL_MUST_USE;

/* --- new sessions -------------------------------------------------------- */

#define WAL__IMPORT_TIME_SIZE 65 /* of a time with its terminator */

/* Sets the metadata, and if they are not set creation time and project, of a
 * session that is about to be created. `created` is the first time in the
 * source, or NULL; the cwd is set. Texts are in the arena. */
void wal__import_describe(struct wal__import *import, const char *created,
                          struct wal_session_options *options);

/* Sets the time of lines that come before the first time: `known`, of the entry
 * before them, or if that is empty `created`, or if that is NULL the session's.
 * Imports that run at the same time write the same. */
enum wal_status wal__import_first_time(struct wal_session *session,
                                       struct wal_slice known,
                                       const char *created,
                                       char time[WAL__IMPORT_TIME_SIZE],
                                       struct wal_error *error) WAL_MUST_USE;

#endif
