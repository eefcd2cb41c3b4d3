/*
 * rewind.c - runs a rewind (SPEC.md 5.15): orders the steps, each of which has
 * its own file, and builds the result. Any thread; steps that change files run
 * under wal__rewind_lock.
 */
#include "engine/files/rewind.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/rewind_job.h"
#include "format/bytes/assert.h"

/* --- applying ------------------------------------------------------------ */

/*
 * Undoes a failed rewind. WAL_OK when all files are in their old states, or
 * when the next call will find only temporary files. Otherwise files are in
 * both states, and the journal remains for the next call. `moved` selects the
 * files to restore, including the one that failed, whatever its state.
 */
static enum wal_status roll_back(struct wal__rewind_job *job,
                                 const uint8_t *moved)
{
    struct wal_error ignored = {.struct_size = sizeof(ignored)};
    enum wal_status status = WAL_OK;

    WAL__ASSERT(job->before.count == job->after.count);
    if (memchr(moved, 1, job->before.count) != NULL) {
        status = wal__rewind_remove_temps(job, false, &ignored);
        if (status == WAL_OK) {
            status = wal__rewind_apply(job, &job->before, NULL, moved, NULL,
                                       &ignored);
        }
    }
    if (status == WAL_OK &&
        wal__rewind_remove_temps(job, true, &ignored) == WAL_OK) {
        (void)!wal__rewind_journal_delete(job, true, &ignored);
    }
    return status;
}

/* All files are restored: deletes the journal, and moves the head. A head that
 * another thread or process has moved since the plan undoes the rewind. */
static enum wal_status finish(struct wal__rewind_job *job, const uint8_t *moved,
                              bool *is_partial, struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status = wal__rewind_finish(job, &own);

    /* A journal that remains is harmless: recovery finds every file done. */
    if (status == WAL_OK || job->head_after[0] == '\0') {
        return WAL_OK;
    }
    if (status != WAL_ECONFLICT) {
        *is_partial = true;
        wal__error_copy(error, &own);
        return status;
    }
    *is_partial = roll_back(job, moved) != WAL_OK;
    return wal__fail(error, WAL_ECHANGED,
                     "%s; it was moved during the rewind, call rewind again",
                     own.text);
}

/* Sets *is_partial when files are left in both states, or the head is not where
 * the files belong. */
static enum wal_status apply_plan(struct wal__rewind_job *job, bool *is_partial,
                                  struct wal_error *error)
{
    const struct wal__heap *heap = job->session->core->env.heap;
    uint32_t count = job->before.count;
    /* One byte per file: chosen files, then moved files. */
    uint8_t *chosen;
    uint8_t *moved;
    enum wal_status status;

    WAL__ASSERT(count == job->after.count);
    if (count == 0) {
        return wal__rewind_save_undo(job, error);
    }
    chosen = wal__heap_zalloc(heap, 2 * (size_t)count);
    if (chosen == NULL) {
        return wal__no_memory(error);
    }
    moved = chosen + count;
    memset(chosen, 1, count);
    status = wal__rewind_save_undo(job, error);
    if (status != WAL_OK) {
        goto done;
    }
    status =
        wal__rewind_apply(job, &job->after, &job->before, chosen, moved, error);
    if (status != WAL_OK) {
        *is_partial = roll_back(job, moved) != WAL_OK;
    } else {
        status = finish(job, moved, is_partial, error);
    }
done:
    wal__heap_free(heap, chosen);
    return status;
}

/* --- the result ---------------------------------------------------------- */

/* Whether a failure is reported in the result, as the reason why the files
 * cannot be rewound. */
static bool is_refusal(enum wal_status status)
{
    return status == WAL_ENOTFOUND || status == WAL_ECORRUPT ||
           status == WAL_ECHANGED || status == WAL_EOUTSIDE ||
           status == WAL_EACCESS || status == WAL_ENOTFILE ||
           status == WAL_ENOSPACE || status == WAL_ETOOBIG || status == WAL_EIO;
}

void wal__rewind_set_refused(struct wal_rewind_result *result,
                             const struct wal_error *why)
{
    WAL__ASSERT(why->status != WAL_OK);
    result->can_rewind = 0;
    result->status = why->status;
    (void)snprintf(result->error, sizeof(result->error), "%s%s%s", why->file,
                   why->file[0] == '\0' ? "" : ": ", why->text);
}

/* What the cursor holds, in numbers. */
static void set_counts(struct wal_rewind_result *result,
                       const struct wal_file_change_cursor *cursor)
{
    struct wal_file_changes_info sums = {.struct_size = sizeof(sums)};

    wal__changes_info(&cursor->changes, &sums);
    result->files_changed = sums.files;
    result->insertions = sums.insertions;
    result->deletions = sums.deletions;
    result->binary = sums.binary;
    for (int i = 0; i < WAL__CHANGES_ELSEWHERE; i++) {
        result->changed_elsewhere += cursor->elsewhere[i].count;
    }
}

static void set_heads(struct wal_rewind_result *result,
                      const struct wal__rewind_job *job)
{
    bool moves = job->head_after[0] != '\0';

    memcpy(result->previous_head, job->head_before,
           sizeof(result->previous_head));
    memcpy(result->new_head, moves ? job->head_after : job->head_before,
           sizeof(result->new_head));
}

/* Plans the rewind, and applies it unless it is a dry run. The lock is held. */
static enum wal_status plan_and_apply(struct wal_session *session,
                                      struct wal__span id,
                                      const struct wal_rewind_options *options,
                                      struct wal_rewind_result *result,
                                      struct wal_file_change_cursor *cursor,
                                      bool *is_partial, struct wal_error *error)
{
    bool dry = (options->flags & WAL_REWIND_DRY_RUN) != 0;
    struct wal__rewind_plan plan;
    struct wal__rewind_job job;
    enum wal_status status;

    wal__rewind_job_init(&job, session);
    wal__rewind_plan_init(&plan, session->core->env.heap);
    status = wal__rewind_plan_build(&plan, &job, id, options, error);
    if (status == WAL_OK && !dry &&
        (plan.changes.count > 0 || job.head_after[0] != '\0')) {
        WAL__ASSERT(job.before.count == plan.changes.count);
        status = apply_plan(&job, is_partial, error);
        if (status == WAL_OK) {
            WAL__ASSERT(job.undo.size < sizeof(result->undo));
            memcpy(result->undo, job.undo.data, job.undo.size);
        }
    }
    if (status == WAL_OK && (options->flags & WAL_REWIND_HEAD) != 0) {
        set_heads(result, &job);
    }
    cursor->changes = plan.changes;
    cursor->elsewhere[1] = plan.elsewhere;
    wal__changes_init(&plan.changes, session->core->env.heap);
    wal__changes_init(&plan.elsewhere, session->core->env.heap);
    wal__rewind_plan_deinit(&plan);
    wal__rewind_job_deinit(&job);
    return status;
}

/* Checks what needs no lock, then recovers and rewinds under the lock. */
static enum wal_status run_locked(struct wal_session *session,
                                  struct wal__span id,
                                  const struct wal_rewind_options *options,
                                  struct wal_rewind_result *result,
                                  struct wal_file_change_cursor *cursor,
                                  bool *is_partial, struct wal_error *error)
{
    bool on = true;
    enum wal_status status = wal__checkpoints_enabled(session, &on, error);

    if (status != WAL_OK) {
        return status;
    }
    if (!on) {
        return wal__fail(
            error, WAL_ENOTFOUND,
            "checkpoints are off in this session; enable them first");
    }
    status = wal__rewind_lock(session->core, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__rewind_recover_locked(session, &cursor->elsewhere[0], error);
    if (status == WAL_OK) {
        status = plan_and_apply(session, id, options, result, cursor,
                                is_partial, error);
    }
    wal__rewind_unlock(session->core);
    return status;
}

enum wal_status wal__rewind(struct wal_session *session,
                            struct wal__span checkpoint,
                            const struct wal_rewind_options *options,
                            struct wal_rewind_result *result,
                            struct wal_file_change_cursor **changes,
                            struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};
    struct wal_rewind_result made = {.struct_size = sizeof(made),
                                     .can_rewind = 1};
    struct wal_file_change_cursor *cursor = NULL;
    bool is_partial = false;
    enum wal_status status =
        wal__change_cursor_create(session->core, &cursor, error);

    if (status != WAL_OK) {
        return status;
    }
    status = run_locked(session, checkpoint, options, &made, cursor,
                        &is_partial, &why);
    WAL__ASSERT(status != WAL_OK || !is_partial);
    if (status != WAL_OK && (is_partial || !is_refusal(status))) {
        wal__error_copy(error, &why);
        if (is_partial) {
            wal__fail_at(
                error, status, why.sys_errno, why.file, 0,
                "%.300s; the rewind is incomplete: call rewind again to "
                "complete it",
                why.text);
        }
        wal_file_change_cursor_close(cursor);
        return status;
    }
    if (status != WAL_OK) {
        wal__rewind_set_refused(&made, &why);
        wal__changes_deinit(&cursor->changes);
        wal__changes_init(&cursor->changes, session->core->env.heap);
    }
    set_counts(&made, cursor);
    *result = made;
    *changes = cursor;
    return WAL_OK;
}
