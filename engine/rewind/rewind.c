/*
 * rewind.c - runs a rewind (SPEC.md 5.15): orders the steps, each of which has
 * its own file, and builds the result. Any thread; steps that change files run
 * under wal__rewind_lock.
 */
#include "engine/rewind/rewind.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/rewind/rewind_job.h"
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

/* Sets *is_partial when files are left in both states. */
static enum wal_status apply_plan(struct wal__rewind_job *job, bool *is_partial,
                                  struct wal_error *error)
{
    const struct wal__heap *heap = job->session->core->env.heap;
    struct wal_error ignored = {.struct_size = sizeof(ignored)};
    uint32_t count = job->before.count;
    /* One byte per file: chosen files, then moved files. */
    uint8_t *chosen = wal__heap_zalloc(heap, 2 * (size_t)count);
    uint8_t *moved;
    enum wal_status status;

    WAL__ASSERT(count > 0 && count == job->after.count);
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
        /* A journal that remains is harmless: recovery finds every file
         * done. */
        (void)!wal__rewind_journal_delete(job, false, &ignored);
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

static void set_refused(struct wal_rewind_answer *rewind,
                        enum wal_status status, const struct wal_error *why)
{
    rewind->can_rewind = 0;
    rewind->status = status;
    (void)snprintf(rewind->error, sizeof(rewind->error), "%s%s%s", why->file,
                   why->file[0] == '\0' ? "" : ": ", why->text);
    wal__changes_deinit(&rewind->changes);
    wal__changes_init(&rewind->changes, rewind->core->env.heap);
}

static struct wal_rewind_answer *create(struct wal__core *core)
{
    const struct wal__heap *heap = core->env.heap;
    struct wal_rewind_answer *rewind = wal__heap_zalloc(heap, sizeof(*rewind));

    if (rewind == NULL) {
        return NULL;
    }
    rewind->core = core;
    rewind->can_rewind = 1;
    wal__buf_init(&rewind->undo, heap);
    wal__changes_init(&rewind->changes, heap);
    for (int i = 0; i < WAL__REWIND_ELSEWHERE; i++) {
        wal__changes_init(&rewind->elsewhere[i], heap);
    }
    return rewind;
}

void wal__rewind_close(struct wal_rewind_answer *rewind)
{
    if (rewind == NULL) {
        return;
    }
    wal__buf_deinit(&rewind->undo);
    wal__changes_deinit(&rewind->changes);
    for (int i = 0; i < WAL__REWIND_ELSEWHERE; i++) {
        wal__changes_deinit(&rewind->elsewhere[i]);
    }
    wal__heap_free(rewind->core->env.heap, rewind);
}

enum wal_status wal__rewind_create_refused(struct wal__core *core,
                                           const char *why,
                                           struct wal_rewind_answer **rewind,
                                           struct wal_error *error)
{
    struct wal_error reason = {.struct_size = sizeof(reason)};
    struct wal_rewind_answer *made = create(core);

    if (made == NULL) {
        return wal__no_memory(error);
    }
    set_refused(made, wal__fail(&reason, WAL_ENOTFOUND, "%s", why), &reason);
    *rewind = made;
    return WAL_OK;
}

/* Plans the rewind, and applies it unless it is a dry run. The lock is held. */
static enum wal_status plan_and_apply(struct wal_session *session,
                                      struct wal__span id,
                                      const struct wal_rewind_options *options,
                                      struct wal_rewind_answer *rewind,
                                      bool *is_partial, struct wal_error *error)
{
    bool dry = (options->flags & WAL_REWIND_DRY_RUN) != 0;
    struct wal__rewind_plan plan;
    struct wal__rewind_job job;
    enum wal_status status;

    wal__rewind_job_init(&job, session);
    wal__rewind_plan_init(&plan, session->core->env.heap);
    status = wal__rewind_plan_build(&plan, &job, id, options, error);
    if (status == WAL_OK && !dry && plan.changes.count > 0) {
        WAL__ASSERT(job.before.count == plan.changes.count);
        status = apply_plan(&job, is_partial, error);
        if (status == WAL_OK) {
            rewind->undo = job.undo;
            wal__buf_init(&job.undo, session->core->env.heap);
        }
    }
    rewind->changes = plan.changes;
    rewind->elsewhere[1] = plan.elsewhere;
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
                                  struct wal_rewind_answer *rewind,
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
    status = wal__rewind_recover_locked(session, &rewind->elsewhere[0], error);
    if (status == WAL_OK) {
        status =
            plan_and_apply(session, id, options, rewind, is_partial, error);
    }
    wal__rewind_unlock(session->core);
    return status;
}

enum wal_status wal__rewind(struct wal_session *session,
                            struct wal__span checkpoint,
                            const struct wal_rewind_options *options,
                            struct wal_rewind_answer **rewind,
                            struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};
    struct wal_rewind_answer *made = create(session->core);
    bool is_partial = false;
    enum wal_status status;

    if (made == NULL) {
        return wal__no_memory(error);
    }
    status = run_locked(session, checkpoint, options, made, &is_partial, &why);
    WAL__ASSERT(status != WAL_OK || !is_partial);
    if (status != WAL_OK && (is_partial || !is_refusal(status))) {
        wal__error_copy(error, &why);
        if (is_partial) {
            wal__fail_at(
                error, status, why.sys_errno, why.file, 0,
                "%.300s; only some files are rewound: call rewind again to "
                "complete it",
                why.text);
        }
        wal__rewind_close(made);
        return status;
    }
    if (status != WAL_OK) {
        set_refused(made, status, &why);
    }
    *rewind = made;
    return WAL_OK;
}

/* --- reading the result -------------------------------------------------- */

void wal__rewind_info(const struct wal_rewind_answer *rewind,
                      struct wal_rewind_info *info)
{
    struct wal_file_changes_info sums = {.struct_size = sizeof(sums)};

    wal__changes_info(&rewind->changes, &sums);
    *info = (struct wal_rewind_info){
        .struct_size = sizeof(*info),
        .can_rewind = rewind->can_rewind,
        .status = rewind->status,
        .error = {rewind->error, strlen(rewind->error)},
        .undo = {rewind->undo.data, rewind->undo.size},
        .files_changed = sums.files,
        .insertions = sums.insertions,
        .deletions = sums.deletions,
        .binary = sums.binary,
    };
    for (int i = 0; i < WAL__REWIND_ELSEWHERE; i++) {
        info->changed_elsewhere += rewind->elsewhere[i].count;
    }
}

enum wal_status wal__rewind_next(struct wal_rewind_answer *rewind,
                                 struct wal_file_change *change)
{
    const struct wal__changes *parts[] = {
        &rewind->changes, &rewind->elsewhere[0], &rewind->elsewhere[1]};
    uint64_t number = rewind->next;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (number < parts[i]->count) {
            wal__change_to_public(&parts[i]->items[number], change);
            rewind->next++;
            return WAL_OK;
        }
        number -= parts[i]->count;
    }
    return WAL_END;
}
