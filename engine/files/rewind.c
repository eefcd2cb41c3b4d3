/*
 * rewind.c - runs a rewind (SPEC.md 5.15): computes the changes and checks that it is possible,
 * orders the steps, moves the head `main` with the files, and builds the result; recovers one that
 * was interrupted. Any thread; steps that change files run under wal__rewind_lock.
 *
 * Invariants: planning changes nothing, neither on disk nor in the store. The head moves in the
 * batch that deletes the journal, so that it moves when all files are restored, and only then. In
 * recovery a file that is in neither its old nor its new state was changed by another program, and
 * is not touched.
 */
#include "engine/files/rewind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

/* The changes that a rewind would make. */
struct rewind_plan {
    struct wal__checkpoint checkpoint;
    struct wal__files disk; /* current states of all files of the checkpoint */
    struct wal__changes changes;
    struct wal__changes elsewhere;
};

/* The head `main`: fills head_before; with `moves` also head_after, unless the head is there.
 * WAL_ENOTFOUND: the checkpoint is linked with no entry of the session's conversation. */
static enum wal_status rewind_plan_head(struct wal__rewind_job *job,
                                        const struct wal__checkpoint *checkpoint, bool moves,
                                        struct wal_error *error)
{
    const struct wal__span *entry = &checkpoint->entry;
    enum wal_status status = wal__checkpoint_current_entry(job->session, job->head_before, error);

    WAL__ASSERT(job->head_after[0] == '\0');
    if (status != WAL_OK || !moves) {
        return status;
    }
    if (entry->size == 0) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the checkpoint \"%.*s\" is linked with no entry of "
                         "the conversation; rewind the files alone",
                         (int)checkpoint->id.size, (const char *)checkpoint->id.data);
    }
    status = wal__checkpoint_check_entry(job->session, *entry, error);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(entry->size < sizeof(job->head_after));
    if (strcmp((const char *)entry->data, job->head_before) != 0) {
        memcpy(job->head_after, entry->data, entry->size);
        job->head_after[entry->size] = '\0';
    }
    return WAL_OK;
}

enum {
    SMALL_LIST_MAX = 64 /* reading fewer files is faster than loading lists */
};

static void rewind_plan_init(struct rewind_plan *plan, const struct wal__heap *heap)
{
    memset(plan, 0, sizeof(*plan));
    wal__checkpoint_init(&plan->checkpoint, heap);
    wal__files_init(&plan->disk, heap);
    wal__changes_init(&plan->changes, heap);
    wal__changes_init(&plan->elsewhere, heap);
}

static void rewind_plan_deinit(struct rewind_plan *plan)
{
    wal__changes_deinit(&plan->elsewhere);
    wal__changes_deinit(&plan->changes);
    wal__files_deinit(&plan->disk);
    wal__checkpoint_deinit(&plan->checkpoint);
}

static enum wal_status load_target(struct rewind_plan *plan, struct wal__rewind_job *job,
                                   struct wal__span id, struct wal_slice root,
                                   struct wal_error *error)
{
    struct wal__span override_root = {root.data, (size_t)root.size};
    enum wal_status status = wal__checkpoint_get(job->session, id, &plan->checkpoint, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__files_load(&job->all, &job->session->core->blobs, &plan->checkpoint.list, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__files_invalidate_fresh(&job->all, job->session->core->env.io);
    status = wal__checkpoint_normalize_root(
        job->session, override_root.size == 0 ? plan->checkpoint.root : override_root, job->root,
        error);
    if (status != WAL_OK) {
        return status;
    }
    job->after_list = plan->checkpoint.list;
    return wal__rewind_job_open(job, error);
}

/* Captures the files whose contents the target's list does not determine, using other baselines. */
static enum wal_status read_unread(const struct wal__rewind_job *job, struct wal__files *unread,
                                   struct wal_error *error)
{
    const struct wal__env *env = &job->session->core->env;
    struct wal__span root = {(const uint8_t *)job->root, strlen(job->root)};
    struct wal__capture capture = {.env = env, .io = job->io, .worktree = job->worktree};
    struct wal__files baselines[WAL__CAPTURE_BASELINES];
    enum wal_status status = WAL_OK;
    struct wal__digest newest;

    for (uint32_t i = 0; i < WAL__CAPTURE_BASELINES; i++) {
        wal__files_init(&baselines[i], env->heap);
        capture.baselines[i] = &baselines[i];
    }
    if (unread->count > SMALL_LIST_MAX) {
        status = wal__checkpoint_load_baselines(job->session, root, unread, baselines, &newest,
                                                &capture.baseline_count, error);
    }
    if (status == WAL_OK) {
        status = wal__capture(&capture, unread, error);
    }
    for (uint32_t i = 0; i < WAL__CAPTURE_BASELINES; i++) {
        wal__files_deinit(&baselines[i]);
    }
    return status;
}

/* Copies the chosen records to `to`; scatter_chosen copies them back. */
static void gather_chosen(struct wal__files *from, const uint8_t *chosen, struct wal__files *to)
{
    to->count = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        if (chosen[i] != 0) {
            to->items[to->count++] = from->items[i];
        }
    }
}

static void scatter_chosen(struct wal__files *into, const uint8_t *chosen,
                           const struct wal__files *from)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < into->count; i++) {
        if (chosen[i] != 0) {
            into->items[i] = from->items[next++];
        }
    }
    WAL__ASSERT(next == from->count);
}

/* Captures the current states of the target's files. */
static enum wal_status scan_worktree(struct rewind_plan *plan, const struct wal__rewind_job *job,
                                     struct wal_error *error)
{
    const struct wal__env *env = &job->session->core->env;
    uint32_t count = job->all.count;
    struct wal__capture capture = {.env = env,
                                   .io = job->io,
                                   .worktree = job->worktree,
                                   .baselines = {&job->all},
                                   .baseline_count = 1};
    struct wal__files unread = {.heap = env->heap};
    struct wal__files none = {.heap = env->heap};
    enum wal_status status = wal__files_merge(&plan->disk, &job->all, &none, error);

    if (status != WAL_OK || count == 0) {
        return status;
    }
    WAL__ASSERT(plan->disk.count == count);
    capture.needs_read = wal__heap_zalloc(env->heap, count);
    unread.items = wal__heap_alloc(env->heap, count * sizeof(unread.items[0]));
    status = capture.needs_read != NULL && unread.items != NULL
                 ? wal__capture(&capture, &plan->disk, error)
                 : wal__no_memory(error);
    if (status != WAL_OK) {
        goto done;
    }
    gather_chosen(&plan->disk, capture.needs_read, &unread);
    status = read_unread(job, &unread, error);
    if (status != WAL_OK) {
        goto done;
    }
    scatter_chosen(&plan->disk, capture.needs_read, &unread);
done:
    wal__heap_free(env->heap, unread.items);
    wal__heap_free(env->heap, capture.needs_read);
    return status;
}

/* --- the expected checkpoint --------------------------------------------- */

/* Lists the files that would change and differ from the expected checkpoint. */
static enum wal_status compare_expected(struct rewind_plan *plan, const struct wal__files *expected,
                                        struct wal_error *error)
{
    const struct wal__changes *changes = &plan->changes;
    struct wal__changes *elsewhere = &plan->elsewhere;
    enum wal_status status = wal__changes_compute(expected, &plan->disk, elsewhere, error);
    uint32_t kept = 0;
    uint32_t next = 0;

    for (uint32_t i = 0; status == WAL_OK && i < elsewhere->count; i++) {
        struct wal__span path = elsewhere->items[i].path;

        while (next < changes->count && wal__span_compare(changes->items[next].path, path) < 0) {
            next++;
        }
        if (next < changes->count && wal__span_equal(changes->items[next].path, path)) {
            elsewhere->items[kept] = elsewhere->items[i];
            elsewhere->items[kept++].flags |= WAL_FILE_CHANGE_ELSEWHERE;
        }
    }
    if (status == WAL_OK) {
        elsewhere->count = kept;
    }
    return status;
}

static enum wal_status check_expected(struct rewind_plan *plan, const struct wal__rewind_job *job,
                                      const struct wal_rewind_options *options,
                                      struct wal_error *error)
{
    const struct wal__heap *heap = job->session->core->env.heap;
    struct wal__span id = {options->expected.data, (size_t)options->expected.size};
    struct wal__checkpoint checkpoint;
    struct wal__files expected;
    enum wal_status status;

    if (id.size == 0) {
        return WAL_OK;
    }
    wal__checkpoint_init(&checkpoint, heap);
    wal__files_init(&expected, heap);
    status = wal__checkpoint_get(job->session, id, &checkpoint, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__files_load(&expected, &job->session->core->blobs, &checkpoint.list, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = compare_expected(plan, &expected, error);
done:
    wal__files_deinit(&expected);
    wal__checkpoint_deinit(&checkpoint);
    if (status == WAL_OK && plan->elsewhere.count > 0 && (options->flags & WAL_REWIND_FORCE) == 0) {
        status = wal__fail_at(error, WAL_ECHANGED, 0,
                              (const char *)plan->elsewhere.items[0].path.data, 0,
                              "another program changed %u of the files since checkpoint "
                              "\"%.*s\"; this is the first",
                              plan->elsewhere.count, (int)id.size, (const char *)id.data);
    }
    return status;
}

/* --- whether the rewind is possible -------------------------------------- */

/* Fills the job's lists: current and target states of the files that change. */
static enum wal_status fill_lists(const struct rewind_plan *plan, struct wal__rewind_job *job,
                                  struct wal_error *error)
{
    struct wal__files changing = {.heap = job->session->core->env.heap};
    enum wal_status status;

    changing.items = wal__heap_alloc(changing.heap, plan->changes.count * sizeof(*changing.items));
    if (changing.items == NULL) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; i < plan->changes.count; i++) {
        changing.items[i] = plan->changes.items[i].before;
        changing.items[i].path = plan->changes.items[i].path;
    }
    changing.count = plan->changes.count;
    status = wal__files_filter(&job->before, &plan->disk, &changing, true, error);
    if (status == WAL_OK) {
        status = wal__files_filter(&job->after, &job->all, &changing, true, error);
    }
    WAL__ASSERT(status != WAL_OK ||
                (job->before.count == changing.count && job->after.count == changing.count));
    wal__heap_free(changing.heap, changing.items);
    return status;
}

/* When directories of the path are missing, the first missing one must be creatable. */
static enum wal_status check_creatable(const struct wal__rewind_job *job, const char *path,
                                       int *err)
{
    char name[WAL__FILE_PATH_MAX + 1];
    const char *slash = strchr(path, '/');
    enum wal_status status = WAL_ENOTFOUND;

    for (; slash != NULL && status == WAL_ENOTFOUND; slash = strchr(slash + 1, '/')) {
        size_t size = (size_t)(slash - path);
        struct wal__worktree_stat stat;

        WAL__ASSERT(size < sizeof(name));
        memcpy(name, path, size);
        name[size] = '\0';
        status = job->io->stat(job->io->ctx, job->worktree, name, &stat, err);
        if (status == WAL_OK) {
            status = stat.kind == WAL__WORKTREE_ABSENT
                         ? job->io->check_replace(job->io->ctx, job->worktree, name, err)
                         : WAL_ENOTFOUND;
        }
    }
    return status;
}

/* Whether each file that the path is below, and that changes, goes. */
static bool is_above_removed(const struct wal__rewind_job *job, struct wal__span path)
{
    for (size_t i = 0; i < path.size; i++) {
        const struct wal__file_record *above =
            path.data[i] == '/' ? wal__files_find(&job->after, (struct wal__span){path.data, i})
                                : NULL;

        if (above != NULL && above->kind != WAL__FILE_ABSENT) {
            return false;
        }
    }
    return true;
}

/* A directory is in the place of the file: it can go with all directories in it. */
static enum wal_status check_directories(const struct wal__rewind_job *job, uint32_t number,
                                         struct wal_error *error)
{
    struct wal__buf list;
    enum wal_status status;

    wal__buf_init(&list, job->session->core->env.heap);
    status = wal__rewind_list_dirs_in_place(job, &job->after, NULL, number, &list, error);
    for (size_t at = 0; status == WAL_OK && at < list.size;
         at += strlen((const char *)list.data + at) + 1) {
        const char *path = (const char *)list.data + at;
        int err = 0;

        status = job->io->check_replace(job->io->ctx, job->worktree, path, &err);
        status = err == EISDIR || status == WAL_ENOTFOUND
                     ? WAL_OK
                     : wal__worktree_fail(error, status, err, path, "removing the directory");
    }
    wal__buf_deinit(&list);
    return status;
}

static enum wal_status check_replaceable(const struct wal__rewind_job *job, uint32_t number,
                                         struct wal_error *error)
{
    const struct wal__file_record *to = &job->after.items[number];
    const struct wal__file_record *above = wal__rewind_above(job, to->path);
    const char *path = wal__file_path(to);
    const char *slash = strrchr(path, '/');
    size_t parent = slash == NULL ? 0 : (size_t)(slash - path);
    int err = 0;
    enum wal_status status = WAL_ETOOBIG;

    if (to->kind != WAL__FILE_ABSENT && !is_above_removed(job, to->path)) {
        return wal__fail_at(error, WAL_ENOTFILE, 0, path, 0,
                            "the checkpoint has a file in the place of its directory");
    }
    /* The path of the temporary file must not be too long. */
    if (parent + WAL__REWIND_TEMP_RESERVE < WAL__FILE_PATH_MAX) {
        /* A file that goes makes room for the directory; it is checked itself. */
        status = above != NULL && above->kind != WAL__FILE_ABSENT
                     ? WAL_OK
                     : job->io->check_replace(job->io->ctx, job->worktree, path, &err);
    }
    if (status == WAL_ENOTFILE && err == EISDIR) {
        return check_directories(job, number, error);
    }
    if (status == WAL_ENOTFOUND) {
        status = check_creatable(job, path, &err);
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__worktree_fail(error, status, err, path,
                                    err == EBUSY ? "replacing the file, which is a mount point,"
                                                 : "replacing the file");
}

/* A parallel run that checks and counts the changes. */
struct examination {
    const struct wal__rewind_job *job;
    struct wal__diffstat diffstat;
};

static enum wal_status examine(void *ctx, void *state, uint32_t item, struct wal_error *error)
{
    struct examination *examination = ctx;
    const struct wal__rewind_job *job = examination->job;
    enum wal_status status;

    WAL__ASSERT(item < job->after.count);
    status = wal__rewind_verify_file(job, &job->after, item, state, error);

    if (status != WAL_OK) {
        return status;
    }
    status = check_replaceable(job, item, error);
    if (status != WAL_OK) {
        return status;
    }
    return wal__diffstat_file(&examination->diffstat, item, wal__rewind_kept_content(job, item),
                              error);
}

static void examine_worker_end(void *ctx, void *state)
{
    const struct examination *examination = ctx;

    wal__rewind_verify_worker_end(examination->job, state);
}

/* Checks all changes and counts their lines. The job's lists have the order of the changes. */
static enum wal_status examine_all(struct rewind_plan *plan, struct wal__rewind_job *job,
                                   struct wal_error *error)
{
    const struct wal__heap *heap = job->session->core->env.heap;
    const struct wal__content_source blobs = {.blobs = &job->session->core->blobs};
    const struct wal__content_source disk = {.io = job->io, .worktree = job->worktree};
    struct examination examination = {.job = job};
    const struct wal__parallel_for loop = {.env = &job->session->core->env,
                                           .ctx = &examination,
                                           .count = job->after.count,
                                           .grain = WAL__REWIND_GRAIN,
                                           .body = examine,
                                           .end = examine_worker_end};
    uint8_t *chosen = wal__heap_alloc(heap, job->after.count);
    enum wal_status status;

    WAL__ASSERT(job->after.count == plan->changes.count);
    if (chosen == NULL) {
        return wal__no_memory(error);
    }
    status = wal__rewind_keep_contents(job, error);
    if (status == WAL_OK) {
        wal__diffstat_init(&examination.diffstat, &plan->changes, &disk, &blobs);
        status = wal__parallel_for(&loop, error);
        wal__diffstat_deinit(&examination.diffstat);
    }
    if (status == WAL_OK) {
        memset(chosen, 1, job->after.count);
        status = wal__rewind_list_missing_dirs(job, &job->after, chosen, &job->directories, error);
    }
    wal__heap_free(heap, chosen);
    return status;
}

/* Builds the plan. job->session is set; this call opens the work tree and fills before and after
 * with the files that change, and directories with the missing ones. WAL_ECHANGED: see
 * elsewhere. */
static enum wal_status rewind_plan_build(struct rewind_plan *plan, struct wal__rewind_job *job,
                                         struct wal__span id,
                                         const struct wal_rewind_options *options,
                                         struct wal_error *error)
{
    bool moves_head = (options->flags & WAL_REWIND_HEAD) != 0;
    enum wal_status status = load_target(plan, job, id, options->root, error);

    if (status != WAL_OK) {
        goto done;
    }
    status = rewind_plan_head(job, &plan->checkpoint, moves_head, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = scan_worktree(plan, job, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__changes_compute(&plan->disk, &job->all, &plan->changes, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = check_expected(plan, job, options, error);
done:
    if (status == WAL_OK && plan->changes.count > 0) {
        status = fill_lists(plan, job, error);
    }
    if (status == WAL_OK && plan->changes.count > 0) {
        status = examine_all(plan, job, error);
    }
    return status;
}

/* The state in which recovery finds a file. */
enum found { FOUND_BEFORE, FOUND_AFTER, FOUND_OTHER };

struct recovery {
    struct wal__rewind_job *job;
    struct wal__files now; /* current states of the same paths */
    uint8_t *states;       /* enum found */
    uint8_t *chosen;       /* those to move */
};

static bool has_found(const struct recovery *recovery, enum found state)
{
    return memchr(recovery->states, (int)state, recovery->now.count) != NULL;
}

/* --- inspecting ---------------------------------------------------------- */

/* Captures one file. Sets *other if it cannot be in a state of the job. */
static enum wal_status inspect_file(struct recovery *recovery, uint32_t number, bool *other,
                                    struct wal_error *error)
{
    const struct wal__env *env = &recovery->job->session->core->env;
    struct wal_error own = {.struct_size = sizeof(own)};
    struct wal__capture capture = {.env = env,
                                   .io = recovery->job->io,
                                   .worktree = recovery->job->worktree,
                                   .threads = 1,
                                   .baselines = {&recovery->job->before},
                                   .baseline_count = 1,
                                   .names = &recovery->job->all};
    struct wal__files one = {.heap = env->heap,
                             .items = &recovery->now.items[number],
                             .count = 1,
                             .texts = recovery->now.texts};
    enum wal_status status;

    WAL__ASSERT(number < recovery->now.count);
    status = wal__capture(&capture, &one, &own);

    if (status == WAL_ENOTFILE || status == WAL_EOUTSIDE || status == WAL_ECHANGED) {
        struct wal__span path = recovery->job->before.items[number].path;

        recovery->now.items[number] = (struct wal__file_record){.path = path};
        *other = true;
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

/*
 * Whether a chosen file cannot come to its state in `to`: another program's file is in the place of
 * its directory, or in a directory in its place.
 */
static enum wal_status check_way(const struct recovery *recovery, const struct wal__files *to,
                                 uint32_t number, bool *blocked, struct wal_error *error)
{
    const struct wal__rewind_job *job = recovery->job;
    const struct wal__file_record *file = &to->items[number];
    const struct wal__file_record *above = wal__rewind_above(job, file->path);
    struct wal_error own = {.struct_size = sizeof(own)};
    struct wal__buf ignored;
    enum wal_status status;

    *blocked = above != NULL && recovery->states[above - job->before.items] == (uint8_t)FOUND_OTHER;
    if (*blocked) {
        return WAL_OK;
    }
    wal__buf_init(&ignored, job->session->core->env.heap);
    status = wal__rewind_find_missing_dirs(job, wal__file_path(file), 0, &ignored, &own);
    ignored.size = 0;
    if (status == WAL_OK) {
        status = wal__rewind_list_dirs_in_place(job, to, recovery->chosen, number, &ignored, &own);
    }
    wal__buf_deinit(&ignored);
    *blocked = status == WAL_ENOTFILE || status == WAL_EOUTSIDE;
    if (status == WAL_OK || *blocked) {
        return WAL_OK;
    }
    wal__error_copy(error, &own);
    return status;
}

/* Chooses the files that were found in one state and can come to the other. The rest of them count
 * as other: what is in their way is. */
static enum wal_status choose_from(struct recovery *recovery, enum found from,
                                   struct wal_error *error)
{
    const struct wal__files *to =
        from == FOUND_BEFORE ? &recovery->job->after : &recovery->job->before;
    enum wal_status status = WAL_OK;

    WAL__ASSERT(from == FOUND_BEFORE || from == FOUND_AFTER);
    for (uint32_t i = 0; i < recovery->now.count; i++) {
        recovery->chosen[i] = recovery->states[i] == from;
    }
    for (uint32_t i = 0; i < recovery->now.count && status == WAL_OK; i++) {
        bool blocked = false;

        if (recovery->chosen[i] != 0 && to->items[i].kind != WAL__FILE_ABSENT) {
            status = check_way(recovery, to, i, &blocked, error);
        }
        if (blocked) {
            recovery->states[i] = FOUND_OTHER;
            recovery->chosen[i] = 0;
        }
    }
    return status;
}

/* Finds the states of the files that may have been moved; the others are as before. moved may be
 * NULL: all may have been. */
static enum wal_status inspect_files(struct recovery *recovery, const uint8_t *moved,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < recovery->now.count && status == WAL_OK; i++) {
        bool other = false;

        recovery->states[i] = FOUND_BEFORE;
        if (moved != NULL && moved[i] == 0) {
            continue;
        }
        status = inspect_file(recovery, i, &other, error);
        if (!other &&
            wal__file_state_equal(&recovery->now.items[i], &recovery->job->after.items[i])) {
            recovery->states[i] = FOUND_AFTER;
        } else if (other || !wal__file_state_equal(&recovery->now.items[i],
                                                   &recovery->job->before.items[i])) {
            recovery->states[i] = FOUND_OTHER;
        }
    }
    return status;
}

/* Lists the files that another program changed, as changes from `before`. */
static enum wal_status list_foreign_changes(const struct recovery *recovery,
                                            struct wal__changes *elsewhere, struct wal_error *error)
{
    uint32_t kept = 0;
    enum wal_status status =
        wal__changes_compute(&recovery->job->before, &recovery->now, elsewhere, error);

    for (uint32_t i = 0; status == WAL_OK && i < elsewhere->count; i++) {
        const struct wal__file_record *file =
            wal__files_find(&recovery->now, elsewhere->items[i].path);

        if (file != NULL && recovery->states[file - recovery->now.items] == FOUND_OTHER) {
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

/* Moves the chosen files, which were found in one state, to the other state. */
static enum wal_status roll_from(struct recovery *recovery, enum found from,
                                 struct wal_error *error)
{
    const struct wal__files *to =
        from == FOUND_BEFORE ? &recovery->job->after : &recovery->job->before;
    enum wal_status status = wal__rewind_verify(recovery->job, to, recovery->chosen, error);

    return status == WAL_OK
               ? wal__rewind_apply(recovery->job, to, &recovery->now, recovery->chosen, NULL, error)
               : status;
}

/* Neither state can be restored: deletes the journal, so that the damage is reported once, and
 * leaves the files. */
static enum wal_status abandon(struct recovery *recovery, struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status = wal__rewind_remove_temps(recovery->job, false, &own);

    if (status == WAL_OK) {
        status = wal__rewind_journal_delete(recovery->job, false, &own);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
        return status;
    }
    return WAL_ECORRUPT;
}

/* Some files are in the old and some in the new state: completes the rewind, or undoes it when
 * contents of the new state are damaged. */
static enum wal_status finish_partial(struct recovery *recovery, bool *undone,
                                      struct wal_error *error)
{
    enum wal_status status = roll_from(recovery, FOUND_BEFORE, error);

    *undone = status == WAL_ECORRUPT;
    if (!*undone) {
        return status;
    }
    status = choose_from(recovery, FOUND_AFTER, error);
    if (status == WAL_OK) {
        status = roll_from(recovery, FOUND_AFTER, error);
    }
    return status == WAL_OK ? wal__rewind_remove_temps(recovery->job, true, error) : status;
}

/* All files are restored. A head that was moved since the rewind was planned was moved by a program
 * that continued the session, and is left there. */
static enum wal_status finish_recovery(struct recovery *recovery, struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status = wal__rewind_finish(recovery->job, &own);

    if (status == WAL_ECONFLICT || status == WAL_ENOTFOUND) {
        return wal__rewind_journal_delete(recovery->job, false, error);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

static enum wal_status recover_files(struct recovery *recovery, struct wal_error *error)
{
    bool undone = !has_found(recovery, FOUND_AFTER);
    enum wal_status status = wal__rewind_remove_temps(recovery->job, undone, error);

    if (status == WAL_OK && !undone && has_found(recovery, FOUND_BEFORE)) {
        status = finish_partial(recovery, &undone, error);
        if (status == WAL_ECORRUPT) {
            return abandon(recovery, error);
        }
        if (status != WAL_OK) {
            struct wal_error ignored = {.struct_size = sizeof(ignored)};

            /* The next call finds what remains. */
            (void)!wal__rewind_remove_temps(recovery->job, false, &ignored);
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    /* What was in the place of a file that another program changed may be in the undo checkpoint
     * alone. */
    return undone
               ? wal__rewind_journal_delete(recovery->job, !has_found(recovery, FOUND_OTHER), error)
               : finish_recovery(recovery, error);
}

/* --- recovery ------------------------------------------------------------ */

static enum wal_status recovery_init(struct recovery *recovery, struct wal__rewind_job *job,
                                     struct wal_error *error)
{
    const struct wal__heap *heap = job->session->core->env.heap;
    uint32_t count = job->before.count;
    enum wal_status status;

    WAL__ASSERT(job->after.count == count);
    recovery->job = job;
    wal__files_init(&recovery->now, heap);
    recovery->states = wal__heap_zalloc(heap, count);
    recovery->chosen = wal__heap_zalloc(heap, count);
    status = wal__files_filter(&recovery->now, &job->before, &job->before, true, error);
    return status == WAL_OK && (recovery->states == NULL || recovery->chosen == NULL)
               ? wal__no_memory(error)
               : status;
}

static void recovery_deinit(struct recovery *recovery)
{
    const struct wal__heap *heap = recovery->job->session->core->env.heap;

    wal__heap_free(heap, recovery->states);
    wal__heap_free(heap, recovery->chosen);
    wal__files_deinit(&recovery->now);
}

static enum wal_status recover_journal(struct wal__rewind_job *job, struct wal__changes *elsewhere,
                                       struct wal_error *error)
{
    struct recovery recovery;
    enum wal_status status = wal__rewind_job_open(job, error);

    if (status == WAL_ENOTFOUND) {
        /* The root is gone, and with it all files and temporary files. */
        return wal__rewind_journal_delete(job, false, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = recovery_init(&recovery, job, error);
    if (status == WAL_OK) {
        status = inspect_files(&recovery, NULL, error);
    }
    if (status == WAL_OK) {
        status = choose_from(&recovery, FOUND_BEFORE, error);
    }
    if (status == WAL_OK) {
        status = list_foreign_changes(&recovery, elsewhere, error);
    }
    if (status == WAL_OK) {
        status = recover_files(&recovery, error);
    }
    recovery_deinit(&recovery);
    return status;
}

/* As wal__rewind_recover, with the lock held; *elsewhere,
 * empty on entry, receives the files that other programs changed since. */
static enum wal_status rewind_recover_locked(struct wal_session *session,
                                             struct wal__changes *elsewhere,
                                             struct wal_error *error)
{
    struct wal__rewind_job job;
    bool found = false;
    enum wal_status status;

    wal__rewind_job_init(&job, session);
    status = wal__rewind_journal_load(&job, &found, error);
    if (status == WAL_OK && found) {
        status = recover_journal(&job, elsewhere, error);
    } else if (status == WAL_ECORRUPT) {
        /* The journal is useless: delete it, so that the damage is reported once. */
        struct wal_error ignored = {.struct_size = sizeof(ignored)};

        (void)!wal__rewind_journal_delete(&job, false, &ignored);
    }
    wal__rewind_job_deinit(&job);
    return status;
}

enum wal_status wal__rewind_recover(struct wal_session *session, struct wal_error *error)
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
    status = rewind_recover_locked(session, &ignored, error);
    wal__changes_deinit(&ignored);
    wal__rewind_unlock(session->core);
    return status;
}

/* --- applying ------------------------------------------------------------ */

/* Brings the moved files back. WAL_ECHANGED: another program changed one of them since. */
static enum wal_status restore_moved(struct wal__rewind_job *job, const uint8_t *moved,
                                     struct wal_error *error)
{
    struct recovery recovery;
    enum wal_status status = recovery_init(&recovery, job, error);

    if (status == WAL_OK) {
        /* Directories that were resolved before the failure may have been replaced since. */
        job->io->close_root(job->io->ctx, job->worktree);
        job->worktree = NULL;
        status = wal__rewind_job_open(job, error);
    }
    if (status == WAL_OK) {
        status = inspect_files(&recovery, moved, error);
    }
    if (status == WAL_OK) {
        status = choose_from(&recovery, FOUND_AFTER, error);
    }
    if (status == WAL_OK && has_found(&recovery, FOUND_OTHER)) {
        status = WAL_ECHANGED;
    }
    if (status == WAL_OK) {
        status = wal__rewind_remove_temps(job, false, error);
    }
    if (status == WAL_OK) {
        status = roll_from(&recovery, FOUND_AFTER, error);
    }
    recovery_deinit(&recovery);
    return status;
}

/*
 * Undoes a failed rewind. WAL_OK when all files are in their old states, or when the next call will
 * find only temporary files. Otherwise the journal remains for the next call. `moved` has the files
 * that may be in their new states, including the one that failed.
 */
static enum wal_status roll_back(struct wal__rewind_job *job, const uint8_t *moved)
{
    struct wal_error ignored = {.struct_size = sizeof(ignored)};
    enum wal_status status = WAL_OK;

    WAL__ASSERT(job->before.count == job->after.count);
    if (memchr(moved, 1, job->before.count) != NULL) {
        status = restore_moved(job, moved, &ignored);
    }
    if (status == WAL_OK && wal__rewind_remove_temps(job, true, &ignored) == WAL_OK) {
        (void)!wal__rewind_journal_delete(job, true, &ignored);
    }
    return status;
}

/* All files are restored: deletes the journal, and moves the head. A head that another thread or
 * process has moved since the plan undoes the rewind. */
static enum wal_status finish(struct wal__rewind_job *job, const uint8_t *moved, bool *is_partial,
                              struct wal_error *error)
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
    return wal__fail(error, WAL_ECHANGED, "%s; it was moved during the rewind, call rewind again",
                     own.text);
}

/* Sets *is_partial when files are left in both states, or the head is not where the files
 * belong. */
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
    status = wal__rewind_apply(job, &job->after, &job->before, chosen, moved, error);
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

/* Whether a failure is reported in the result, as the reason why the files cannot be rewound. */
static bool is_refusal(enum wal_status status)
{
    return status == WAL_ENOTFOUND || status == WAL_ECORRUPT || status == WAL_ECHANGED ||
           status == WAL_EOUTSIDE || status == WAL_EACCESS || status == WAL_ENOTFILE ||
           status == WAL_ENOSPACE || status == WAL_ETOOBIG || status == WAL_EIO;
}

/* Fills the result of a rewind that is refused. */
static void rewind_set_refused(struct wal_rewind_result *result, const struct wal_error *why)
{
    WAL__ASSERT(why->status != WAL_OK);
    result->can_rewind = 0;
    result->status = why->status;
    (void)snprintf(result->error, sizeof(result->error), "%s%s%s%s%s", why->file,
                   why->file[0] == '\0' ? "" : ": ", why->text, why->sys_errno == 0 ? "" : ": ",
                   why->sys_errno == 0 ? "" : strerror(why->sys_errno));
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

static void set_heads(struct wal_rewind_result *result, const struct wal__rewind_job *job)
{
    bool moves = job->head_after[0] != '\0';

    memcpy(result->previous_head, job->head_before, sizeof(result->previous_head));
    memcpy(result->new_head, moves ? job->head_after : job->head_before, sizeof(result->new_head));
}

/* Plans the rewind, and applies it unless it is a dry run. The lock is held. */
static enum wal_status plan_and_apply(struct wal_session *session, struct wal__span id,
                                      const struct wal_rewind_options *options,
                                      struct wal_rewind_result *result,
                                      struct wal_file_change_cursor *cursor, bool *is_partial,
                                      struct wal_error *error)
{
    bool dry = (options->flags & WAL_REWIND_DRY_RUN) != 0;
    struct rewind_plan plan;
    struct wal__rewind_job job;
    enum wal_status status;

    wal__rewind_job_init(&job, session);
    rewind_plan_init(&plan, session->core->env.heap);
    status = rewind_plan_build(&plan, &job, id, options, error);
    if (status == WAL_OK && !dry && (plan.changes.count > 0 || job.head_after[0] != '\0')) {
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
    rewind_plan_deinit(&plan);
    wal__rewind_job_deinit(&job);
    return status;
}

/* Checks what needs no lock, then recovers and rewinds under the lock. */
static enum wal_status run_locked(struct wal_session *session, struct wal__span id,
                                  const struct wal_rewind_options *options,
                                  struct wal_rewind_result *result,
                                  struct wal_file_change_cursor *cursor, bool *is_partial,
                                  struct wal_error *error)
{
    bool on = true;
    enum wal_status status = wal__checkpoints_enabled(session, &on, error);

    if (status != WAL_OK) {
        return status;
    }
    if (!on) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "checkpoints are off in this session; enable them first");
    }
    status = wal__rewind_lock(session->core, error);
    if (status != WAL_OK) {
        return status;
    }
    status = rewind_recover_locked(session, &cursor->elsewhere[0], error);
    if (status == WAL_OK) {
        status = plan_and_apply(session, id, options, result, cursor, is_partial, error);
    }
    wal__rewind_unlock(session->core);
    return status;
}

/* As wal_rewind. The caller checked the arguments; result is a whole struct of this version, and
 * result and changes are not NULL. */
static enum wal_status wal__rewind(struct wal_session *session, struct wal__span checkpoint,
                                   const struct wal_rewind_options *options,
                                   struct wal_rewind_result *result,
                                   struct wal_file_change_cursor **changes, struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};
    struct wal_rewind_result made = {.struct_size = sizeof(made), .can_rewind = 1};
    struct wal_file_change_cursor *cursor = NULL;
    bool is_partial = false;
    enum wal_status status = wal__change_cursor_create(session->core, &cursor, error);

    if (status != WAL_OK) {
        return status;
    }
    status = run_locked(session, checkpoint, options, &made, cursor, &is_partial, &why);
    WAL__ASSERT(status != WAL_OK || !is_partial);
    if (status != WAL_OK && (is_partial || !is_refusal(status))) {
        wal__error_copy(error, &why);
        if (is_partial) {
            wal__fail_at(error, status, why.sys_errno, why.file, 0,
                         "%.300s; the rewind is incomplete: call rewind again to "
                         "complete it",
                         why.text);
        }
        wal_file_change_cursor_close(cursor);
        return status;
    }
    if (status != WAL_OK) {
        rewind_set_refused(&made, &why);
        wal__changes_deinit(&cursor->changes);
        wal__changes_init(&cursor->changes, session->core->env.heap);
    }
    set_counts(&made, cursor);
    *result = made;
    *changes = cursor;
    return WAL_OK;
}

static enum wal_status check_options(const struct wal_rewind_options *options,
                                     struct wal_error *error)
{
    const uint32_t known = WAL_REWIND_DRY_RUN | WAL_REWIND_FORCE | WAL_REWIND_HEAD;
    struct wal__span span;
    enum wal_status status;

    if ((options->flags & ~known) != 0) {
        return wal__invalid(error, "the rewind's flags are %#x", options->flags);
    }
    status =
        wal__text_check(options->expected, WAL__ID_MAX, "expected checkpoint's id", &span, error);
    if (status == WAL_OK && (!wal__text_span(options->root, WAL__PATH_MAX - 1, &span) ||
                             (span.size > 0 && span.data[0] != '/'))) {
        status = wal__invalid(error,
                              "the root is not an absolute path of at most %d "
                              "bytes",
                              WAL__PATH_MAX - 1);
    }
    return status;
}

static enum wal_status check_arguments(struct wal_session *session, struct wal_slice checkpoint,
                                       const struct wal_rewind_options *options,
                                       const struct wal_rewind_result *result, struct wal__span *id,
                                       struct wal_error *error)
{
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status = check_options(options, error);
    }
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_rewind_result), result, error);
    }
    if (status == WAL_OK) {
        status = wal__checkpoint_check_id(checkpoint, id, error);
    }
    return status;
}

enum wal_status wal_rewind(struct wal_session *session, struct wal_slice checkpoint,
                           const struct wal_rewind_options *options,
                           struct wal_rewind_result *result,
                           struct wal_file_change_cursor **changes, struct wal_error *error)
{
    struct wal_rewind_options own;
    struct wal_rewind_result made = {.struct_size = sizeof(made)};
    struct wal_file_change_cursor *cursor = NULL;
    struct wal__span id;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_rewind_options), &own, options, error);

    if (status == WAL_OK) {
        status = check_arguments(session, checkpoint, &own, result, &id, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__rewind(session, id, &own, &made, &cursor, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__struct_store(WAL__STRUCT(wal_rewind_result), result, &made);
    if (changes == NULL) {
        wal_file_change_cursor_close(cursor);
    } else {
        *changes = cursor;
    }
    return WAL_OK;
}
