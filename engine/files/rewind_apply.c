/*
 * rewind_apply.c - moves files to the states of a list (SPEC.md 5.15): contents
 * are written to temporary files in the directories of their targets, synced,
 * and only then renamed into place. The caller holds wal__rewind_lock.
 *
 * Invariant: before everything that the chosen files need is on stable storage,
 * only temporary files and directories are created.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/rewind_job.h"
#include "format/bytes/assert.h"

/* Length of the path's directory without the slash; 0: the root. */
static size_t parent_size(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : (size_t)(slash - path);
}

/* --- directories --------------------------------------------------------- */

/* Length of the common prefix of two paths. */
static size_t common_size(const char *a, const char *b)
{
    size_t size = 0;

    while (a[size] != '\0' && a[size] == b[size]) {
        size++;
    }
    return size;
}

/* Appends the missing directories of one path. Those within the first `known`
 * bytes were checked with the previous path. */
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
        WAL__ASSERT(size < sizeof(name));
        memcpy(name, path, size);
        name[size] = '\0';
        status = io->stat(io->ctx, job->worktree, name, &stat, &err);
        if (status != WAL_OK) {
            return wal__worktree_fail(
                error, status, err, path,
                "cannot read the metadata of its directory");
        }
        if (stat.kind == WAL__WORKTREE_ABSENT &&
            wal__buf_append(out, name, size + 1) != WAL_OK) {
            return wal__no_memory(error);
        }
    }
    return WAL_OK;
}

/* The paths are sorted, so that those below a directory are adjacent. */
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

/* The directory after `at` in the list, or NULL. */
static const char *next_directory(const struct wal__buf *list, const char *at)
{
    const char *next;

    WAL__ASSERT(list->size == 0 || list->data[list->size - 1] == '\0');
    next = at == NULL ? (const char *)list->data : at + strlen(at) + 1;

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
                                      "cannot create the directory");
        }
    }
    return WAL_OK;
}

/* A directory to sync, as a prefix of a path. */
struct parent_dir {
    const char *path;
    size_t size;
};

static int compare_dirs(const void *left, const void *right)
{
    const struct parent_dir *a = left;
    const struct parent_dir *b = right;
    size_t size = a->size < b->size ? a->size : b->size;
    int order = memcmp(a->path, b->path, size);

    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static enum wal_status add_parent_dir(struct wal__buf *dirs, const char *path)
{
    struct parent_dir dir = {path, parent_size(path)};

    return wal__buf_append(dirs, &dir, sizeof(dir));
}

/* Appends the distinct directories to `paths`, each followed by a NUL. */
static enum wal_status list_distinct_dirs(struct wal__buf *dirs,
                                          struct wal__buf *paths)
{
    struct parent_dir *items = (void *)dirs->data;
    size_t count = dirs->size / sizeof(*items);
    enum wal_status status = WAL_OK;

    WAL__ASSERT(dirs->size % sizeof(*items) == 0);
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
        /* A directory that is gone or was replaced has none of our names. */
        if (status == WAL_ENOTFOUND || status == WAL_ENOTFILE ||
            status == WAL_EOUTSIDE) {
            status = WAL_OK;
        } else if (status != WAL_OK) {
            (void)!wal__worktree_fail(
                error, status, err, job->root,
                "cannot sync the directories below the root");
        }
    }
    wal__buf_deinit(&paths);
    return status;
}

/* Syncs every directory that contains a chosen file or a created directory. */
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

/* --- replacing ----------------------------------------------------------- */

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

/* Checks that the stats of the chosen files are those of `from`. */
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
                                      "cannot read the metadata of the file");
        }
        if (!matches_stat(&from->items[i], &stat)) {
            return wal__fail_at(
                error, WAL_ECHANGED, 0, path, 0,
                "another program changed the file during the rewind; call "
                "rewind again");
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

    WAL__ASSERT(number < job->before.count);
    if (to->kind == WAL__FILE_ABSENT) {
        status = io->unlink(io->ctx, job->worktree, path, &err);
        status = status == WAL_ENOTFOUND ? WAL_OK : status;
    } else {
        wal__rewind_temp_name(job, number, name);
        status = io->rename(io->ctx, job->worktree, name, path, &err);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__worktree_fail(error, status, err, path,
                                                 "cannot replace the file");
}

enum {
    REPLACE_THREADS = 8
};

/* A parallel run that renames files of a list into place. */
struct replacement {
    const struct wal__rewind_job *job;
    const struct wal__files *to;
    const uint8_t *chosen;
    uint8_t *moved; /* may be NULL */
};

static enum wal_status replace_item(void *ctx, void *state, uint32_t item,
                                    struct wal_error *error)
{
    const struct replacement *replacement = ctx;

    (void)state;
    if (replacement->chosen[item] == 0) {
        return WAL_OK;
    }
    if (replacement->moved != NULL) {
        replacement->moved[item] = 1;
    }
    return replace_file(replacement->job, &replacement->to->items[item], item,
                        error);
}

/* In several threads, on one processor too: the system frees the replaced
 * contents within the call, and may wait for the disk. */
static enum wal_status replace_files(struct replacement *replacement,
                                     struct wal_error *error)
{
    const struct wal__parallel_for loop = {
        .env = &replacement->job->session->core->env,
        .ctx = replacement,
        .count = replacement->to->count,
        .grain = WAL__REWIND_GRAIN,
        .threads = REPLACE_THREADS,
        .body = replace_item};

    return wal__parallel_for(&loop, error);
}

enum wal_status wal__rewind_apply(const struct wal__rewind_job *job,
                                  const struct wal__files *to,
                                  const struct wal__files *from,
                                  const uint8_t *chosen, uint8_t *moved,
                                  struct wal_error *error)
{
    struct replacement replacement = {
        .job = job, .to = to, .chosen = chosen, .moved = moved};
    struct wal__buf missing;
    enum wal_status status;
    int err = 0;

    WAL__ASSERT(to->count == job->before.count);
    WAL__ASSERT(from == NULL || from->count == to->count);
    wal__buf_init(&missing, job->session->core->env.heap);
    status = wal__rewind_list_missing_dirs(job, to, chosen, &missing, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = make_directories(job, &missing, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__rewind_stage(job, to, chosen, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = job->io->sync_all(job->io->ctx, job->worktree, &err);
    if (status != WAL_OK) {
        status = wal__worktree_fail(error, status, err, job->root,
                                    "cannot sync the files below the root");
        goto done;
    }
    if (from != NULL) {
        status = check_not_modified(job, from, chosen, error);
        if (status != WAL_OK) {
            goto done;
        }
    }
    status = replace_files(&replacement, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = sync_directories(job, &missing, chosen, error);
done:
    wal__buf_deinit(&missing);
    return status;
}

/* --- removing temporary files -------------------------------------------- */

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
        /* Fails if another program put a file there, which must stay. */
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
    char name[WAL__REWIND_TEMP_NAME_MAX];

    for (uint32_t i = 0; i < job->before.count; i++) {
        enum wal_status status;
        int err = 0;

        wal__rewind_temp_name(job, i, name);
        status = job->io->unlink(job->io->ctx, job->worktree, name, &err);
        /* If its directory was replaced, there is nothing to remove. */
        if (status != WAL_OK && status != WAL_ENOTFOUND &&
            status != WAL_EOUTSIDE && status != WAL_ENOTFILE) {
            return wal__worktree_fail(error, status, err, name,
                                      "cannot remove the temporary file");
        }
    }
    if (directories) {
        remove_directories(job);
    }
    /* Those that a process made which died before it synced them. */
    return sync_directories(job, &job->directories, NULL, error);
}
