/*
 * rewind_recover.c - recovers a rewind that was interrupted (SPEC.md 5.15, the
 * table). The caller holds wal__rewind_lock.
 *
 * Invariant: a file that is in neither its old nor its new state was changed by
 * another program, and is not touched.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/rewind_job.h"
#include "format/bytes/assert.h"

/* The state in which recovery finds a file. */
enum found {
    FOUND_BEFORE,
    FOUND_AFTER,
    FOUND_OTHER,
    FOUND_STATES
};

struct recovery {
    struct wal__rewind_job job;
    struct wal__files now; /* current states of the same paths */
    uint8_t *states;       /* enum found */
    uint8_t *chosen;
    uint32_t counts[FOUND_STATES];
};

/* --- inspecting ---------------------------------------------------------- */

/* Captures one file. Sets *other if it cannot be in a state of the job. */
static enum wal_status inspect_file(struct recovery *recovery, uint32_t number,
                                    bool *other, struct wal_error *error)
{
    const struct wal__env *env = &recovery->job.session->core->env;
    struct wal_error own = {.struct_size = sizeof(own)};
    struct wal__capture capture = {.env = env,
                                   .io = recovery->job.io,
                                   .worktree = recovery->job.worktree,
                                   .threads = 1,
                                   .baselines = {&recovery->job.before},
                                   .baseline_count = 1};
    struct wal__files one = {.heap = env->heap,
                             .items = &recovery->now.items[number],
                             .count = 1,
                             .texts = recovery->now.texts};
    enum wal_status status;

    WAL__ASSERT(number < recovery->now.count);
    status = wal__capture(&capture, &one, &own);

    if (status == WAL_ENOTFILE || status == WAL_EOUTSIDE ||
        status == WAL_ECHANGED) {
        struct wal__span path = recovery->job.before.items[number].path;

        recovery->now.items[number] = (struct wal__file_record){.path = path};
        *other = true;
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

static enum wal_status inspect_files(struct recovery *recovery,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < recovery->now.count && status == WAL_OK; i++) {
        bool other = false;

        status = inspect_file(recovery, i, &other, error);
        recovery->states[i] = FOUND_OTHER;
        if (other) {
            continue;
        }
        if (wal__file_state_equal(&recovery->now.items[i],
                                  &recovery->job.after.items[i])) {
            recovery->states[i] = FOUND_AFTER;
        } else if (wal__file_state_equal(&recovery->now.items[i],
                                         &recovery->job.before.items[i])) {
            recovery->states[i] = FOUND_BEFORE;
        }
        recovery->counts[recovery->states[i]]++;
    }
    WAL__ASSERT(recovery->counts[FOUND_BEFORE] + recovery->counts[FOUND_AFTER] +
                    recovery->counts[FOUND_OTHER] <=
                recovery->now.count);
    return status;
}

/* Lists the files that another program changed, as changes from `before`. */
static enum wal_status list_foreign_changes(const struct recovery *recovery,
                                            struct wal__changes *elsewhere,
                                            struct wal_error *error)
{
    uint32_t kept = 0;
    enum wal_status status = wal__changes_compute(
        &recovery->job.before, &recovery->now, elsewhere, error);

    for (uint32_t i = 0; status == WAL_OK && i < elsewhere->count; i++) {
        const struct wal__file_record *file =
            wal__files_find(&recovery->now, elsewhere->items[i].path);

        if (file != NULL &&
            recovery->states[file - recovery->now.items] == FOUND_OTHER) {
            elsewhere->items[kept] = elsewhere->items[i];
            elsewhere->items[kept++].flags |= WAL_FILE_CHANGE_ELSEWHERE;
        }
    }
    if (status == WAL_OK) {
        elsewhere->count = kept;
    }
    return status;
}

/* --- restoring ----------------------------------------------------------- */

static void choose(struct recovery *recovery, enum found state)
{
    for (uint32_t i = 0; i < recovery->now.count; i++) {
        recovery->chosen[i] = recovery->states[i] == state;
    }
}

/* Moves the files found in one state to the other state. */
static enum wal_status roll_from(struct recovery *recovery, enum found from,
                                 struct wal_error *error)
{
    const struct wal__files *to =
        from == FOUND_BEFORE ? &recovery->job.after : &recovery->job.before;
    enum wal_status status;

    WAL__ASSERT(from == FOUND_BEFORE || from == FOUND_AFTER);
    choose(recovery, from);
    status = wal__rewind_verify(&recovery->job, to, recovery->chosen, error);
    if (status == WAL_OK) {
        status = wal__rewind_apply(&recovery->job, to, NULL, recovery->chosen,
                                   NULL, error);
    }
    return status;
}

/* Neither state can be restored: deletes the journal, so that the damage is
 * reported once, and leaves the files. */
static enum wal_status abandon(struct recovery *recovery,
                               struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status =
        wal__rewind_remove_temps(&recovery->job, false, &own);

    if (status == WAL_OK) {
        status = wal__rewind_journal_delete(&recovery->job, false, &own);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
        return status;
    }
    return WAL_ECORRUPT;
}

/* Some files are in the old and some in the new state: completes the rewind, or
 * undoes it when contents of the new state are damaged. */
static enum wal_status finish_partial(struct recovery *recovery, bool *undone,
                                      struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(recovery->counts[FOUND_BEFORE] > 0);
    WAL__ASSERT(recovery->counts[FOUND_AFTER] > 0);
    status = roll_from(recovery, FOUND_BEFORE, error);
    *undone = false;
    if (status == WAL_ECORRUPT) {
        status = roll_from(recovery, FOUND_AFTER, error);
        *undone = true;
    }
    return status == WAL_OK && *undone
               ? wal__rewind_remove_temps(&recovery->job, true, error)
               : status;
}

/* All files are restored. A head that was moved since the rewind was planned
 * was moved by a program that continued the session, and is left there. */
static enum wal_status finish(struct recovery *recovery,
                              struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status = wal__rewind_finish(&recovery->job, &own);

    if (status == WAL_ECONFLICT || status == WAL_ENOTFOUND) {
        return wal__rewind_journal_delete(&recovery->job, false, error);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

static enum wal_status recover_files(struct recovery *recovery,
                                     struct wal_error *error)
{
    bool undone = recovery->counts[FOUND_AFTER] == 0;
    enum wal_status status =
        wal__rewind_remove_temps(&recovery->job, undone, error);

    if (status == WAL_OK && recovery->counts[FOUND_AFTER] > 0 &&
        recovery->counts[FOUND_BEFORE] > 0) {
        status = finish_partial(recovery, &undone, error);
        if (status == WAL_ECORRUPT) {
            return abandon(recovery, error);
        }
        if (status != WAL_OK) {
            struct wal_error ignored = {.struct_size = sizeof(ignored)};

            /* The next call finds what remains. */
            (void)!wal__rewind_remove_temps(&recovery->job, false, &ignored);
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    return undone ? wal__rewind_journal_delete(&recovery->job, true, error)
                  : finish(recovery, error);
}

/* --- recovery ------------------------------------------------------------ */

static enum wal_status recovery_init(struct recovery *recovery,
                                     struct wal_error *error)
{
    const struct wal__heap *heap = recovery->job.session->core->env.heap;
    uint32_t count = recovery->job.before.count;
    enum wal_status status =
        wal__files_filter(&recovery->now, &recovery->job.before,
                          &recovery->job.before, true, error);

    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(recovery->now.count == count);
    WAL__ASSERT(recovery->job.after.count == count);
    recovery->states = wal__heap_zalloc(heap, count);
    recovery->chosen = wal__heap_zalloc(heap, count);
    return recovery->states == NULL || recovery->chosen == NULL
               ? wal__no_memory(error)
               : WAL_OK;
}

static enum wal_status recover_journal(struct recovery *recovery,
                                       struct wal__changes *elsewhere,
                                       struct wal_error *error)
{
    enum wal_status status = wal__rewind_job_open(&recovery->job, error);

    if (status == WAL_ENOTFOUND) {
        /* The root is gone, and with it all files and temporary files. */
        return wal__rewind_journal_delete(&recovery->job, false, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = recovery_init(recovery, error);
    if (status != WAL_OK) {
        return status;
    }
    status = inspect_files(recovery, error);
    if (status != WAL_OK) {
        return status;
    }
    status = list_foreign_changes(recovery, elsewhere, error);
    if (status != WAL_OK) {
        return status;
    }
    return recover_files(recovery, error);
}

enum wal_status wal__rewind_recover_locked(struct wal_session *session,
                                           struct wal__changes *elsewhere,
                                           struct wal_error *error)
{
    const struct wal__heap *heap = session->core->env.heap;
    struct recovery recovery = {0};
    bool found = false;
    enum wal_status status;

    wal__rewind_job_init(&recovery.job, session);
    wal__files_init(&recovery.now, heap);
    status = wal__rewind_journal_load(&recovery.job, &found, error);
    if (status == WAL_OK && found) {
        status = recover_journal(&recovery, elsewhere, error);
    } else if (status == WAL_ECORRUPT) {
        /* The journal is useless: delete it, so that the damage is reported
         * once. */
        struct wal_error ignored = {.struct_size = sizeof(ignored)};

        (void)!wal__rewind_journal_delete(&recovery.job, false, &ignored);
    }
    wal__heap_free(heap, recovery.states);
    wal__heap_free(heap, recovery.chosen);
    wal__files_deinit(&recovery.now);
    wal__rewind_job_deinit(&recovery.job);
    return status;
}

enum wal_status wal__rewind_recover(struct wal_session *session,
                                    struct wal_error *error)
{
    struct wal__changes ignored;
    bool has = false;
    enum wal_status status = wal__rewind_journal_exists(session, &has, error);

    /* A damaged journal is deleted under the lock. */
    if (status != WAL_ECORRUPT && (status != WAL_OK || !has)) {
        return status;
    }
    status = wal__rewind_lock(session->core, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__changes_init(&ignored, session->core->env.heap);
    status = wal__rewind_recover_locked(session, &ignored, error);
    wal__changes_deinit(&ignored);
    wal__rewind_unlock(session->core);
    return status;
}
