/*
 * rewind_plan.c - computes the changes of a rewind and checks that it is
 * possible (SPEC.md 5.15). The caller holds wal__rewind_lock.
 *
 * Invariant: nothing is changed, neither on disk nor in the store.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/rewind_job.h"
#include "format/bytes/assert.h"

enum {
    SMALL_LIST_MAX = 64 /* reading fewer files is faster than loading lists */
};

void wal__rewind_plan_init(struct wal__rewind_plan *plan,
                           const struct wal__heap *heap)
{
    memset(plan, 0, sizeof(*plan));
    wal__checkpoint_init(&plan->checkpoint, heap);
    wal__files_init(&plan->target, heap);
    wal__files_init(&plan->disk, heap);
    wal__changes_init(&plan->changes, heap);
    wal__changes_init(&plan->elsewhere, heap);
}

void wal__rewind_plan_deinit(struct wal__rewind_plan *plan)
{
    wal__changes_deinit(&plan->elsewhere);
    wal__changes_deinit(&plan->changes);
    wal__files_deinit(&plan->disk);
    wal__files_deinit(&plan->target);
    wal__checkpoint_deinit(&plan->checkpoint);
}

/* A missing blob is damage, since the checkpoint exists. */
static enum wal_status load_files(struct wal__files *files,
                                  struct wal__blob_store *blobs,
                                  const struct wal__checkpoint *checkpoint,
                                  struct wal_error *error)
{
    enum wal_status status =
        wal__files_load(files, blobs, &checkpoint->list, error);

    return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
}

static enum wal_status load_target(struct wal__rewind_plan *plan,
                                   struct wal__rewind_job *job,
                                   struct wal__span id, struct wal_slice root,
                                   struct wal_error *error)
{
    struct wal__blob_store *blobs = &job->session->core->blobs;
    struct wal__span override_root = {root.data, (size_t)root.size};
    enum wal_status status =
        wal__checkpoint_get(job->session, id, &plan->checkpoint, error);

    if (status != WAL_OK) {
        return status;
    }
    status = load_files(&plan->target, blobs, &plan->checkpoint, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__files_invalidate_fresh(&plan->target, job->session->core->env.io);
    status = wal__checkpoint_normalize_root(
        job->session,
        override_root.size == 0 ? plan->checkpoint.root : override_root,
        job->root, error);
    if (status != WAL_OK) {
        return status;
    }
    job->after_list = plan->checkpoint.list;
    status = wal__rewind_job_open(job, error);
    return status;
}

/* Captures the files whose contents the target's list does not determine, using
 * other baselines. */
static enum wal_status read_unread(const struct wal__rewind_job *job,
                                   struct wal__files *unread,
                                   struct wal_error *error)
{
    const struct wal__env *env = &job->session->core->env;
    struct wal__span root = {(const uint8_t *)job->root, strlen(job->root)};
    struct wal__capture capture = {
        .env = env, .io = job->io, .worktree = job->worktree};
    struct wal__files baselines[WAL__CAPTURE_BASELINES];
    enum wal_status status = WAL_OK;
    struct wal__digest newest;

    for (uint32_t i = 0; i < WAL__CAPTURE_BASELINES; i++) {
        wal__files_init(&baselines[i], env->heap);
        capture.baselines[i] = &baselines[i];
    }
    if (unread->count > SMALL_LIST_MAX) {
        status = wal__checkpoint_load_baselines(job->session, root, unread,
                                                baselines, &newest,
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
static void gather_chosen(struct wal__files *from, const uint8_t *chosen,
                          struct wal__files *to)
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
static enum wal_status scan_worktree(struct wal__rewind_plan *plan,
                                     const struct wal__rewind_job *job,
                                     struct wal_error *error)
{
    const struct wal__env *env = &job->session->core->env;
    uint32_t count = plan->target.count;
    struct wal__capture capture = {.env = env,
                                   .io = job->io,
                                   .worktree = job->worktree,
                                   .baselines = {&plan->target},
                                   .baseline_count = 1};
    struct wal__files unread = {.heap = env->heap};
    struct wal__files none = {.heap = env->heap};
    enum wal_status status =
        wal__files_merge(&plan->disk, &plan->target, &none, error);

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

static bool contains_path(const struct wal__changes *changes,
                          struct wal__span path)
{
    uint32_t low = 0;
    uint32_t high = changes->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct wal__span other = changes->items[middle].path;
        size_t size = path.size < other.size ? path.size : other.size;
        int order = memcmp(other.data, path.data, size);

        if (order == 0 && other.size == path.size) {
            return true;
        }
        if (order < 0 || (order == 0 && other.size < path.size)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

/* Lists the files that would change and differ from the expected checkpoint. */
static enum wal_status compare_expected(struct wal__rewind_plan *plan,
                                        const struct wal__files *expected,
                                        struct wal_error *error)
{
    struct wal__changes *elsewhere = &plan->elsewhere;
    enum wal_status status =
        wal__changes_compute(expected, &plan->disk, elsewhere, error);
    uint32_t kept = 0;

    for (uint32_t i = 0; status == WAL_OK && i < elsewhere->count; i++) {
        if (contains_path(&plan->changes, elsewhere->items[i].path)) {
            elsewhere->items[kept] = elsewhere->items[i];
            elsewhere->items[kept++].flags |= WAL_FILE_CHANGE_ELSEWHERE;
        }
    }
    if (status == WAL_OK) {
        elsewhere->count = kept;
    }
    return status;
}

static enum wal_status check_expected(struct wal__rewind_plan *plan,
                                      const struct wal__rewind_job *job,
                                      const struct wal_rewind_options *options,
                                      struct wal_error *error)
{
    const struct wal__heap *heap = job->session->core->env.heap;
    struct wal__span id = {options->expected.data,
                           (size_t)options->expected.size};
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
    status =
        load_files(&expected, &job->session->core->blobs, &checkpoint, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = compare_expected(plan, &expected, error);
done:
    wal__files_deinit(&expected);
    wal__checkpoint_deinit(&checkpoint);
    if (status == WAL_OK && plan->elsewhere.count > 0 &&
        (options->flags & WAL_REWIND_FORCE) == 0) {
        status = wal__fail_at(
            error, WAL_ECHANGED, 0,
            (const char *)plan->elsewhere.items[0].path.data, 0,
            "another program changed %u of the files since checkpoint "
            "\"%.*s\"; this is the first",
            plan->elsewhere.count, (int)id.size, (const char *)id.data);
    }
    return status;
}

/* --- whether the rewind is possible -------------------------------------- */

/* Fills the job's lists: current and target states of the files that change. */
static enum wal_status fill_lists(const struct wal__rewind_plan *plan,
                                  struct wal__rewind_job *job,
                                  struct wal_error *error)
{
    struct wal__files changing = {.heap = job->session->core->env.heap};
    enum wal_status status;

    changing.items = wal__heap_alloc(
        changing.heap, plan->changes.count * sizeof(*changing.items));
    if (changing.items == NULL) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; i < plan->changes.count; i++) {
        changing.items[i] = plan->changes.items[i].before;
        changing.items[i].path = plan->changes.items[i].path;
    }
    changing.count = plan->changes.count;
    status =
        wal__files_filter(&job->before, &plan->disk, &changing, true, error);
    if (status == WAL_OK) {
        status = wal__files_filter(&job->after, &plan->target, &changing, true,
                                   error);
    }
    WAL__ASSERT(status != WAL_OK || (job->before.count == changing.count &&
                                     job->after.count == changing.count));
    wal__heap_free(changing.heap, changing.items);
    return status;
}

/* When directories of the path are missing, the first missing one must be
 * creatable. */
static enum wal_status check_creatable(const struct wal__rewind_job *job,
                                       const char *path, int *err)
{
    char name[WAL__FILE_PATH_MAX + 1];
    const char *slash = strchr(path, '/');
    enum wal_status status = WAL_ENOTFOUND;

    for (; slash != NULL && status == WAL_ENOTFOUND;
         slash = strchr(slash + 1, '/')) {
        size_t size = (size_t)(slash - path);
        struct wal__worktree_stat stat;

        WAL__ASSERT(size < sizeof(name));
        memcpy(name, path, size);
        name[size] = '\0';
        status = job->io->stat(job->io->ctx, job->worktree, name, &stat, err);
        if (status == WAL_OK) {
            status = stat.kind == WAL__WORKTREE_ABSENT
                         ? job->io->check_replace(job->io->ctx, job->worktree,
                                                  name, err)
                         : WAL_ENOTFOUND;
        }
    }
    return status;
}

static enum wal_status check_replaceable(const struct wal__rewind_job *job,
                                         const char *path,
                                         struct wal_error *error)
{
    const char *slash = strrchr(path, '/');
    size_t parent = slash == NULL ? 0 : (size_t)(slash - path);
    int err = 0;
    enum wal_status status = WAL_ETOOBIG;

    /* The path of the temporary file must not be too long. */
    if (parent + WAL__REWIND_TEMP_RESERVE < WAL__FILE_PATH_MAX) {
        status =
            job->io->check_replace(job->io->ctx, job->worktree, path, &err);
    }
    if (status == WAL_ENOTFOUND) {
        status = check_creatable(job, path, &err);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__worktree_fail(error, status, err, path,
                                                 "cannot replace the file");
}

/* A parallel run that checks and counts the changes. */
struct examination {
    const struct wal__rewind_job *job;
    struct wal__diffstat diffstat;
};

static enum wal_status examine(void *ctx, void *state, uint32_t item,
                               struct wal_error *error)
{
    struct examination *examination = ctx;
    const struct wal__rewind_job *job = examination->job;
    enum wal_status status;

    WAL__ASSERT(item < job->after.count);
    status = wal__rewind_verify_file(job, &job->after, item, state, error);

    if (status != WAL_OK) {
        return status;
    }
    status =
        check_replaceable(job, wal__file_path(&job->after.items[item]), error);
    if (status != WAL_OK) {
        return status;
    }
    return wal__diffstat_file(&examination->diffstat, item,
                              wal__rewind_kept_content(job, item), error);
}

static void examine_worker_end(void *ctx, void *state)
{
    const struct examination *examination = ctx;

    wal__rewind_verify_worker_end(examination->job, state);
}

/* Checks all changes and counts their lines. The job's lists have the order of
 * the changes. */
static enum wal_status examine_all(struct wal__rewind_plan *plan,
                                   struct wal__rewind_job *job,
                                   struct wal_error *error)
{
    const struct wal__heap *heap = job->session->core->env.heap;
    const struct wal__content_source blobs = {.blobs =
                                                  &job->session->core->blobs};
    const struct wal__content_source disk = {.io = job->io,
                                             .worktree = job->worktree};
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
        wal__diffstat_init(&examination.diffstat, &plan->changes, &disk,
                           &blobs);
        status = wal__parallel_for(&loop, error);
        wal__diffstat_deinit(&examination.diffstat);
    }
    if (status == WAL_OK) {
        memset(chosen, 1, job->after.count);
        status = wal__rewind_list_missing_dirs(job, &job->after, chosen,
                                               &job->directories, error);
    }
    wal__heap_free(heap, chosen);
    return status;
}

enum wal_status wal__rewind_plan_build(struct wal__rewind_plan *plan,
                                       struct wal__rewind_job *job,
                                       struct wal__span id,
                                       const struct wal_rewind_options *options,
                                       struct wal_error *error)
{
    bool moves_head = (options->flags & WAL_REWIND_HEAD) != 0;
    enum wal_status status = load_target(plan, job, id, options->root, error);

    if (status != WAL_OK) {
        goto done;
    }
    status = wal__rewind_plan_head(job, &plan->checkpoint, moves_head, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = scan_worktree(plan, job, error);
    if (status != WAL_OK) {
        goto done;
    }
    status =
        wal__changes_compute(&plan->disk, &plan->target, &plan->changes, error);
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
