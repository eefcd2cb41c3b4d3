/*
 * rewind_resume.c - what becomes of a rewind that was cut short (SPEC.md
 * 5.15, the table). Invariant: a file that is neither as it was nor as it was
 * to be is somebody else's, and is left alone.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/checkpoint/rewind_parts.h"

/* What a file is found to be. */
enum found {
    FOUND_BEFORE,
    FOUND_AFTER,
    FOUND_OTHER,
    FOUND_STATES
};

struct resume {
    struct wal__rewind_job job;
    struct wal__files now; /* the same paths */
    uint8_t *states;       /* enum found */
    uint8_t *chosen;
    uint32_t counts[FOUND_STATES];
};

static enum wal_status no_memory(struct wal_error *error)
{
    return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
}

/* --- looking ------------------------------------------------------------- */

/* One file as it is now. What cannot be a file of ours is told as `other`. */
static enum wal_status look_at(struct resume *resume, uint32_t number,
                               bool *other, struct wal_error *error)
{
    const struct wal__env *env = &resume->job.session->core->env;
    struct wal_error own = {.struct_size = sizeof(own)};
    struct wal__collect collect = {.env = env,
                                   .io = resume->job.io,
                                   .tree = resume->job.tree,
                                   .threads = 1,
                                   .earlier = {&resume->job.before},
                                   .earlier_count = 1};
    struct wal__files one = {.heap = env->heap,
                             .items = &resume->now.items[number],
                             .count = 1,
                             .texts = resume->now.texts};
    enum wal_status status = wal__collect(&collect, &one, &own);

    if (status == WAL_ENOTFILE || status == WAL_EOUTSIDE ||
        status == WAL_ECHANGED) {
        struct wal__span path = resume->job.before.items[number].path;

        resume->now.items[number] = (struct wal__file_record){.path = path};
        *other = true;
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

static enum wal_status look(struct resume *resume, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < resume->now.count && status == WAL_OK; i++) {
        bool other = false;

        status = look_at(resume, i, &other, error);
        if (other) {
            resume->states[i] = FOUND_OTHER;
        } else if (wal__file_equal(&resume->now.items[i],
                                   &resume->job.after.items[i])) {
            resume->states[i] = FOUND_AFTER;
        } else if (wal__file_equal(&resume->now.items[i],
                                   &resume->job.before.items[i])) {
            resume->states[i] = FOUND_BEFORE;
        } else {
            resume->states[i] = FOUND_OTHER;
        }
        resume->counts[resume->states[i]]++;
    }
    return status;
}

/* The files that somebody else changed, from what they were before. */
static enum wal_status tell_others(const struct resume *resume,
                                   struct wal__changes *elsewhere,
                                   struct wal_error *error)
{
    uint32_t kept = 0;
    enum wal_status status =
        wal__compare(&resume->job.before, &resume->now, elsewhere, error);

    for (uint32_t i = 0; status == WAL_OK && i < elsewhere->count; i++) {
        const struct wal__file_record *file =
            wal__files_find(&resume->now, elsewhere->items[i].path);

        if (file != NULL &&
            resume->states[file - resume->now.items] == FOUND_OTHER) {
            elsewhere->items[kept] = elsewhere->items[i];
            elsewhere->items[kept++].flags |= WAL_FILE_CHANGE_ELSEWHERE;
        }
    }
    if (status == WAL_OK) {
        elsewhere->count = kept;
    }
    return status;
}

/* --- acting -------------------------------------------------------------- */

static void choose(struct resume *resume, enum found state)
{
    for (uint32_t i = 0; i < resume->now.count; i++) {
        resume->chosen[i] = resume->states[i] == state;
    }
}

/* Brings the files found in one state to the other. */
static enum wal_status bring(struct resume *resume, enum found from,
                             struct wal_error *error)
{
    const struct wal__files *to =
        from == FOUND_BEFORE ? &resume->job.after : &resume->job.before;
    enum wal_status status;

    choose(resume, from);
    status = wal__rewind_verify(&resume->job, to, resume->chosen, error);
    if (status == WAL_OK) {
        status = wal__rewind_bring(&resume->job, to, NULL, resume->chosen, NULL,
                                   error);
    }
    return status;
}

/* Neither way is open: the damage is told once, and the files stay. */
static enum wal_status give_up(struct resume *resume, struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status = wal__rewind_clean(&resume->job, false, &own);

    if (status == WAL_OK) {
        status = wal__rewind_journal_end(&resume->job, false, &own);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
        return status;
    }
    return WAL_ECORRUPT;
}

/* Some files are as they were, and some as they were to be. */
static enum wal_status finish_mixed(struct resume *resume, bool *undone,
                                    struct wal_error *error)
{
    enum wal_status status = bring(resume, FOUND_BEFORE, error);

    *undone = false;
    if (status == WAL_ECORRUPT) {
        status = bring(resume, FOUND_AFTER, error);
        *undone = true;
    }
    return status == WAL_OK && *undone
               ? wal__rewind_clean(&resume->job, true, error)
               : status;
}

static enum wal_status act(struct resume *resume, struct wal_error *error)
{
    bool undone = resume->counts[FOUND_AFTER] == 0;
    enum wal_status status = wal__rewind_clean(&resume->job, undone, error);

    if (status == WAL_OK && resume->counts[FOUND_AFTER] > 0 &&
        resume->counts[FOUND_BEFORE] > 0) {
        status = finish_mixed(resume, &undone, error);
        if (status == WAL_ECORRUPT) {
            return give_up(resume, error);
        }
        if (status != WAL_OK) {
            struct wal_error ignored = {.struct_size = sizeof(ignored)};

            /* What is left is found by the next call. */
            (void)!wal__rewind_clean(&resume->job, false, &ignored);
        }
    }
    return status == WAL_OK
               ? wal__rewind_journal_end(&resume->job, undone, error)
               : status;
}

/* --- the whole ----------------------------------------------------------- */

static enum wal_status resume_init(struct resume *resume,
                                   struct wal_error *error)
{
    const struct wal__heap *heap = resume->job.session->core->env.heap;
    uint32_t count = resume->job.before.count;
    enum wal_status status = wal__files_among(&resume->now, &resume->job.before,
                                              &resume->job.before, true, error);

    if (status != WAL_OK) {
        return status;
    }
    resume->states = wal__heap_zalloc(heap, count);
    resume->chosen = wal__heap_zalloc(heap, count);
    return resume->states == NULL || resume->chosen == NULL ? no_memory(error)
                                                            : WAL_OK;
}

static enum wal_status resume_found(struct resume *resume,
                                    struct wal__changes *elsewhere,
                                    struct wal_error *error)
{
    enum wal_status status = wal__rewind_job_open(&resume->job, error);

    if (status == WAL_ENOTFOUND) {
        /* None of the files is there any more, nor anything of ours. */
        return wal__rewind_journal_end(&resume->job, false, error);
    }
    if (status == WAL_OK) {
        status = resume_init(resume, error);
    }
    if (status == WAL_OK) {
        status = look(resume, error);
    }
    if (status == WAL_OK) {
        status = tell_others(resume, elsewhere, error);
    }
    return status == WAL_OK ? act(resume, error) : status;
}

enum wal_status wal__rewind_finish(struct wal_session *session,
                                   struct wal__changes *elsewhere,
                                   struct wal_error *error)
{
    const struct wal__heap *heap = session->core->env.heap;
    struct resume resume = {0};
    bool found = false;
    enum wal_status status;

    wal__rewind_job_init(&resume.job, session);
    wal__files_init(&resume.now, heap);
    status = wal__rewind_journal_load(&resume.job, &found, error);
    if (status == WAL_OK && found) {
        status = resume_found(&resume, elsewhere, error);
    } else if (status == WAL_ECORRUPT) {
        /* Nothing can be made of it: told once. */
        struct wal_error ignored = {.struct_size = sizeof(ignored)};

        (void)!wal__rewind_journal_end(&resume.job, false, &ignored);
    }
    wal__heap_free(heap, resume.states);
    wal__heap_free(heap, resume.chosen);
    wal__files_deinit(&resume.now);
    wal__rewind_job_deinit(&resume.job);
    return status;
}

enum wal_status wal__rewind_resume(struct wal_session *session,
                                   struct wal_error *error)
{
    struct wal__changes ignored;
    bool has = false;
    enum wal_status status = wal__rewind_journal_has(session, &has, error);

    /* A journal that cannot be understood is looked at by who may end it. */
    if (status != WAL_ECORRUPT && (status != WAL_OK || !has)) {
        return status;
    }
    status = wal__rewind_lock(session->core, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__changes_init(&ignored, session->core->env.heap);
    status = wal__rewind_finish(session, &ignored, error);
    wal__changes_deinit(&ignored);
    wal__rewind_unlock(session->core);
    return status;
}
