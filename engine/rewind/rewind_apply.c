/*
 * rewind_apply.c - moving files to a state (SPEC.md 5.15): their contents are
 * written under temporary names beside them, synced, and only then put in
 * place. Invariant: nothing but temporary files and directories is made before
 * everything that the chosen files need is on stable storage.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/rewind/rewind_job.h"

/* Bytes of the path's directory, without the slash; 0: the root. */
static size_t parent_size(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : (size_t)(slash - path);
}

/* --- directories --------------------------------------------------------- */

/* Bytes that two paths have in common at their beginning. */
static size_t common_size(const char *a, const char *b)
{
    size_t size = 0;

    while (a[size] != '\0' && a[size] == b[size]) {
        size++;
    }
    return size;
}

/* Of one path, whose directories up to `known` bytes were looked at with the
 * path before. */
static enum wal_status find_missing(const struct wal__rewind_job *job,
                                    const char *path, size_t known,
                                    struct wal__buf *out,
                                    struct wal_error *error)
{
    const struct wal__worktree_io *io = job->io;
    struct wal__worktree_stat stat;
    char name[WAL__FILE_PATH_MAX + 1];
    const char *slash = strchr(path, '/');

    for (; slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t size = (size_t)(slash - path);
        enum wal_status status;
        int err = 0;

        if (size < known) {
            continue;
        }
        memcpy(name, path, size);
        name[size] = '\0';
        status = io->stat(io->ctx, job->worktree, name, &stat, &err);
        if (status != WAL_OK) {
            return wal__worktree_fail(error, status, err, path,
                                      "its directory cannot be looked at");
        }
        if (stat.kind == WAL__WORKTREE_ABSENT &&
            wal__buf_append(out, name, size + 1) != WAL_OK) {
            return wal__no_memory(error);
        }
    }
    return WAL_OK;
}

/* The paths are sorted: those below a directory stand together. */
enum wal_status wal__rewind_list_missing_dirs(const struct wal__rewind_job *job,
                                              const struct wal__files *list,
                                              const uint8_t *chosen,
                                              struct wal__buf *out,
                                              struct wal_error *error)
{
    const char *before = "";
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < list->count && status == WAL_OK; i++) {
        const char *path = wal__file_path(&list->items[i]);

        if (chosen[i] == 0 || list->items[i].kind == WAL__FILE_ABSENT) {
            continue;
        }
        status = find_missing(job, path, common_size(before, path), out, error);
        before = path;
    }
    return status;
}

/* The next of a list of directories behind `at`, or null. */
static const char *next_directory(const struct wal__buf *list, const char *at)
{
    const char *next =
        at == NULL ? (const char *)list->data : at + strlen(at) + 1;

    return next == NULL || next == (const char *)list->data + list->size ? NULL
                                                                         : next;
}

static enum wal_status make_directories(const struct wal__rewind_job *job,
                                        const struct wal__buf *list,
                                        struct wal_error *error)
{
    for (const char *at = next_directory(list, NULL); at != NULL;
         at = next_directory(list, at)) {
        int err = 0;
        enum wal_status status =
            job->io->make_directory(job->io->ctx, job->worktree, at, &err);

        if (status != WAL_OK && status != WAL_EEXISTS) {
            return wal__worktree_fail(error, status, err, at,
                                      "the directory cannot be made");
        }
    }
    return WAL_OK;
}

/* A directory whose names are to be synced: the beginning of a path. */
struct place {
    const char *path;
    size_t size;
};

static int compare_dirs(const void *left, const void *right)
{
    const struct place *a = left;
    const struct place *b = right;
    size_t size = a->size < b->size ? a->size : b->size;
    int order = memcmp(a->path, b->path, size);

    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static enum wal_status add_parent_dir(struct wal__buf *dirs, const char *path)
{
    struct place place = {path, parent_size(path)};

    return wal__buf_append(dirs, &place, sizeof(place));
}

/* The dirs as paths, each once, followed by a NUL. */
static enum wal_status list_distinct_dirs(struct wal__buf *dirs,
                                          struct wal__buf *paths)
{
    struct place *items = (void *)dirs->data;
    size_t count = dirs->size / sizeof(*items);
    enum wal_status status = WAL_OK;

    if (count > 0) {
        qsort(items, count, sizeof(*items), compare_dirs);
    }
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        if (i > 0 && compare_dirs(&items[i - 1], &items[i]) == 0) {
            continue;
        }
        status = wal__buf_append(paths, items[i].path, items[i].size);
        if (status == WAL_OK) {
            status = wal__buf_append(paths, "", 1);
        }
    }
    return status;
}

static enum wal_status sync_dirs(const struct wal__rewind_job *job,
                                 struct wal__buf *dirs, struct wal_error *error)
{
    struct wal__buf paths;
    enum wal_status status;
    int err = 0;

    wal__buf_init(&paths, dirs->heap);
    status = list_distinct_dirs(dirs, &paths);
    if (status != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        status = job->io->sync_directories(job->io->ctx, job->worktree,
                                           (const char *)paths.data, paths.size,
                                           &err);
        /* One that is gone, or is another's now, holds none of our names. */
        if (status == WAL_ENOTFOUND || status == WAL_ENOTFILE ||
            status == WAL_EOUTSIDE) {
            status = WAL_OK;
        } else if (status != WAL_OK) {
            (void)!wal__worktree_fail(error, status, err, job->root,
                                      "its directories cannot be synced");
        }
    }
    wal__buf_deinit(&paths);
    return status;
}

/* Every directory in which a name of the chosen files, or one of the
 * directories made, was changed. */
static enum wal_status sync_directories(const struct wal__rewind_job *job,
                                        const struct wal__buf *made,
                                        const uint8_t *chosen,
                                        struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    struct wal__buf dirs;

    wal__buf_init(&dirs, job->session->core->env.heap);
    for (uint32_t i = 0; i < job->before.count && status == WAL_OK; i++) {
        if (chosen == NULL || chosen[i] != 0) {
            status =
                add_parent_dir(&dirs, wal__file_path(&job->before.items[i]));
        }
    }
    for (const char *at = next_directory(made, NULL);
         at != NULL && status == WAL_OK; at = next_directory(made, at)) {
        status = add_parent_dir(&dirs, at);
    }
    status =
        status == WAL_OK ? sync_dirs(job, &dirs, error) : wal__no_memory(error);
    wal__buf_deinit(&dirs);
    return status;
}

/* --- putting in place ---------------------------------------------------- */

static uint8_t kind_of(enum wal__worktree_kind kind)
{
    switch (kind) {
    case WAL__WORKTREE_ABSENT:
        return WAL__FILE_ABSENT;
    case WAL__WORKTREE_REGULAR:
        return WAL__FILE_REGULAR;
    case WAL__WORKTREE_SYMLINK:
        return WAL__FILE_SYMLINK;
    case WAL__WORKTREE_DIRECTORY:
    case WAL__WORKTREE_OTHER:
        break;
    }
    return UINT8_MAX;
}

static bool matches_stat(const struct wal__file_record *file,
                         const struct wal__worktree_stat *stat)
{
    if (kind_of(stat->kind) != file->kind) {
        return false;
    }
    return file->kind == WAL__FILE_ABSENT ||
           (stat->size == file->size && stat->mtime_ns == file->mtime_ns &&
            stat->ctime_ns == file->ctime_ns && stat->inode == file->inode &&
            stat->device == file->device);
}

/* The chosen files are as they were when their state was kept. */
static enum wal_status check_not_modified(const struct wal__rewind_job *job,
                                          const struct wal__files *from,
                                          const uint8_t *chosen,
                                          struct wal_error *error)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const char *path = wal__file_path(&from->items[i]);
        struct wal__worktree_stat stat;
        enum wal_status status;
        int err = 0;

        if (chosen[i] == 0) {
            continue;
        }
        status = job->io->stat(job->io->ctx, job->worktree, path, &stat, &err);
        if (status != WAL_OK) {
            return wal__worktree_fail(error, status, err, path,
                                      "the file cannot be looked at");
        }
        if (!matches_stat(&from->items[i], &stat)) {
            return wal__fail_at(
                error, WAL_ECHANGED, 0, path, 0,
                "the file was changed by somebody else meanwhile");
        }
    }
    return WAL_OK;
}

static enum wal_status replace_file(const struct wal__rewind_job *job,
                                    const struct wal__file_record *to,
                                    uint32_t number, struct wal_error *error)
{
    const struct wal__worktree_io *io = job->io;
    const char *path = wal__file_path(to);
    char name[WAL__REWIND_TEMP_NAME_MAX];
    enum wal_status status;
    int err = 0;

    if (to->kind == WAL__FILE_ABSENT) {
        status = io->unlink(io->ctx, job->worktree, path, &err);
        status = status == WAL_ENOTFOUND ? WAL_OK : status;
    } else {
        wal__rewind_temp_name(job, number, name);
        status = io->rename(io->ctx, job->worktree, name, path, &err);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__worktree_fail(error, status, err, path,
                                                 "the file cannot be replaced");
}

/* The files of a list that are put in place. */
struct moving {
    const struct wal__rewind_job *job;
    const struct wal__files *to;
    const uint8_t *chosen;
    uint8_t *moved; /* or null */
};

static enum wal_status replace_item(void *ctx, void *state, uint32_t item,
                                    struct wal_error *error)
{
    const struct moving *moving = ctx;

    (void)state;
    if (moving->chosen[item] == 0) {
        return WAL_OK;
    }
    if (moving->moved != NULL) {
        moving->moved[item] = 1;
    }
    return replace_file(moving->job, &moving->to->items[item], item, error);
}

/* By several threads: the system frees what was there before, which takes its
 * time, in the course of the call. */
static enum wal_status replace_files(struct moving *moving,
                                     struct wal_error *error)
{
    const struct wal__parallel_for loop = {.env =
                                               &moving->job->session->core->env,
                                           .ctx = moving,
                                           .count = moving->to->count,
                                           .grain = WAL__REWIND_GRAIN,
                                           .body = replace_item};

    return wal__parallel_for(&loop, error);
}

enum wal_status wal__rewind_apply(const struct wal__rewind_job *job,
                                  const struct wal__files *to,
                                  const struct wal__files *from,
                                  const uint8_t *chosen, uint8_t *moved,
                                  struct wal_error *error)
{
    struct moving moving = {
        .job = job, .to = to, .chosen = chosen, .moved = moved};
    struct wal__buf missing;
    enum wal_status status;
    int err = 0;

    wal__buf_init(&missing, job->session->core->env.heap);
    status = wal__rewind_list_missing_dirs(job, to, chosen, &missing, error);
    if (status == WAL_OK) {
        status = make_directories(job, &missing, error);
    }
    if (status == WAL_OK) {
        status = wal__rewind_stage(job, to, chosen, error);
    }
    if (status == WAL_OK) {
        status = job->io->sync_all(job->io->ctx, job->worktree, &err);
        if (status != WAL_OK) {
            (void)!wal__worktree_fail(error, status, err, job->root,
                                      "the files cannot be synced");
        }
    }
    if (status == WAL_OK && from != NULL) {
        status = check_not_modified(job, from, chosen, error);
    }
    if (status != WAL_OK) {
        goto done;
    }
    status = replace_files(&moving, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = sync_directories(job, &missing, chosen, error);
done:
    wal__buf_deinit(&missing);
    return status;
}

/* --- clearing away ------------------------------------------------------- */

static void remove_directories(const struct wal__rewind_job *job)
{
    const struct wal__buf *list = &job->directories;
    size_t end = list->size;

    while (end > 0) {
        size_t begin = end - 1;
        int ignored = 0;

        while (begin > 0 && list->data[begin - 1] != '\0') {
            begin--;
        }
        /* Somebody may have put something there. */
        (void)!job->io->remove_directory(job->io->ctx, job->worktree,
                                         (const char *)list->data + begin,
                                         &ignored);
        end = begin;
    }
}

enum wal_status wal__rewind_remove_temps(const struct wal__rewind_job *job,
                                         bool directories,
                                         struct wal_error *error)
{
    static const struct wal__buf none;
    char name[WAL__REWIND_TEMP_NAME_MAX];

    for (uint32_t i = 0; i < job->before.count; i++) {
        enum wal_status status;
        int err = 0;

        wal__rewind_temp_name(job, i, name);
        status = job->io->unlink(job->io->ctx, job->worktree, name, &err);
        /* Where its directory was replaced there is nothing to remove. */
        if (status != WAL_OK && status != WAL_ENOTFOUND &&
            status != WAL_EOUTSIDE && status != WAL_ENOTFILE) {
            return wal__worktree_fail(error, status, err, name,
                                      "the temporary file cannot be removed");
        }
    }
    if (directories) {
        remove_directories(job);
    }
    return sync_directories(job, directories ? &job->directories : &none, NULL,
                            error);
}
