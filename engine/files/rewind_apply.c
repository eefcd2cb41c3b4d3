/*
 * rewind_apply.c - moves files to the states of a list (SPEC.md 5.15): contents are read and
 * verified, written to temporary files in the directories of their targets, synced, and only then
 * renamed into place. The caller holds wal__rewind_lock. Several threads read and write; on the
 * simulated disk one thread does, file by file. Small contents that were verified are kept in
 * memory until they are written.
 *
 * Invariants: before everything that the chosen files need is on stable storage, only temporary
 * files and directories are created. A temporary file has its content, then its permission bits, or
 * the call fails.
 */
#include "engine/files/rewind.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

enum {
    PIECE_SIZE = 1024 * 1024,
    TEMP_NAME_MAX = WAL__FILE_PATH_MAX + WAL__REWIND_TEMP_RESERVE,
    KEPT_MAX = 8 * 1024 * 1024, /* bytes of contents in memory */
    REPLACE_THREADS = 8
};

/* A parallel run over the chosen files of a list. */
struct work {
    const struct wal__rewind_job *job;
    const struct wal__files *list;
    const uint8_t *chosen;
    uint8_t *moved;                   /* set for files that are replaced; may be NULL */
    enum { EACH, REMOVED, PUT } part; /* of the chosen files */
};

/* The state of a worker thread. */
struct worker {
    uint8_t *piece; /* PIECE_SIZE bytes, allocated on demand */
};

const struct wal__file_record *wal__rewind_above(const struct wal__rewind_job *job,
                                                 struct wal__span path)
{
    return wal__files_find_above(&job->before, path);
}

/* A path in the directory of the file's temporary file. */
static const char *staged_below(const struct wal__rewind_job *job, uint32_t number)
{
    const struct wal__file_record *file = &job->before.items[number];
    const struct wal__file_record *above = wal__rewind_above(job, file->path);

    return wal__file_path(above != NULL ? above : file);
}

/* Writes the path of the file's temporary file: in the same directory, or where that is to be made
 * in the place of a file, or to make room for one, in the directory of that. */
static void rewind_temp_name(const struct wal__rewind_job *job, uint32_t number,
                             char out[TEMP_NAME_MAX])
{
    const char *path = staged_below(job, number);
    const char *slash = strrchr(path, '/');
    int size = slash == NULL ? 0 : (int)(slash + 1 - path);
    int written;

    WAL__ASSERT(number < job->before.count);
    written = snprintf(out, TEMP_NAME_MAX, "%.*s.agentwal-%s-%" PRIu32, size, path,
                       job->temp_suffix, number);
    WAL__ASSERT(written > 0 && written < TEMP_NAME_MAX);
}

static enum wal_status alloc_buffer(const struct wal__rewind_job *job, struct worker *worker,
                                    struct wal_error *error)
{
    if (worker->piece == NULL) {
        worker->piece = wal__heap_alloc(job->session->core->env.heap, PIECE_SIZE);
    }
    return worker->piece == NULL ? wal__no_memory(error) : WAL_OK;
}

static void worker_end(void *ctx, void *state)
{
    const struct work *work = ctx;

    wal__rewind_verify_worker_end(work->job, state);
}

static enum wal_status run(struct work *work,
                           enum wal_status (*body)(void *ctx, void *state, uint32_t item,
                                                   struct wal_error *error),
                           uint32_t threads, struct wal_error *error)
{
    const struct wal__parallel_for loop = {.env = &work->job->session->core->env,
                                           .ctx = work,
                                           .count = work->list->count,
                                           .grain = WAL__REWIND_GRAIN,
                                           .threads = threads,
                                           .body = body,
                                           .end = worker_end};

    static_assert(sizeof(struct worker) <= WAL__PARALLEL_STATE_SIZE,
                  "the worker state fits the per-thread space");
    return wal__parallel_for(&loop, error);
}

/* --- contents ------------------------------------------------------------ */

/* Fails because a content cannot be read; names the file that needs it. */
static enum wal_status content_fail(const struct wal__file_record *file, enum wal_status status,
                                    const struct wal_error *why, struct wal_error *error)
{
    char digest[WAL__DIGEST_HEX_SIZE];

    wal__hex_write(file->digest.bytes, WAL__DIGEST_SIZE, digest);
    if (status == WAL_ENOTFOUND) {
        status = WAL_ECORRUPT;
    }
    return wal__fail_at(error, status, why->sys_errno, wal__file_path(file), 0,
                        "its content %s cannot be read: %s", digest, why->text);
}

static enum wal_status write_piece(const struct wal__rewind_job *job,
                                   struct wal__worktree_file *out, const char *path,
                                   const uint8_t *data, size_t size, uint64_t offset,
                                   struct wal_error *error)
{
    size_t done = 0;

    while (done < size) {
        size_t put = 0;
        int err = 0;
        enum wal_status status =
            job->io->write(job->io->ctx, out, data + done, size - done, offset + done, &put, &err);

        if (status == WAL_OK && put == 0) {
            status = WAL_EIO;
        }
        if (status != WAL_OK) {
            return wal__worktree_fail(error, status, err, path, "writing the file");
        }
        WAL__ASSERT(put <= size - done);
        done += put;
    }
    return WAL_OK;
}

/* Reads all of a file's content, which verifies it, and writes it to `out` unless that is NULL. */
static enum wal_status copy_content(const struct wal__rewind_job *job,
                                    const struct wal__file_record *file,
                                    struct wal__worktree_file *out, uint8_t *piece,
                                    struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    struct wal__blob_reader *reader = NULL;
    uint64_t offset = 0;
    uint64_t got = 1;
    enum wal_status status =
        wal__blob_reader_create(&job->session->core->blobs, &file->digest, &reader, &own);

    if (status == WAL_OK && wal__blob_reader_size(reader) != file->size) {
        status =
            wal__fail(&own, WAL_ECORRUPT, "its size differs from the recorded size of the file");
    }
    while (status == WAL_OK && got > 0) {
        status = wal__blob_reader_read(reader, offset, piece, PIECE_SIZE, &got, &own);
        WAL__ASSERT(status != WAL_OK || got <= PIECE_SIZE);
        if (status != WAL_OK || out == NULL) {
            offset += got;
            continue;
        }
        status = write_piece(job, out, wal__file_path(file), piece, (size_t)got, offset, error);
        if (status != WAL_OK) {
            goto done;
        }
        offset += got;
    }
    if (status != WAL_OK) {
        status = content_fail(file, status, &own, error);
    }
done:
    wal__blob_reader_destroy(reader);
    return status;
}

enum wal_status wal__rewind_keep_contents(struct wal__rewind_job *job, struct wal_error *error)
{
    const struct wal__heap *heap = job->session->core->env.heap;
    struct wal__rewind_contents *made =
        wal__heap_zalloc(heap, sizeof(*made) + job->after.count * sizeof(made->items[0]));

    WAL__ASSERT(job->contents == NULL);
    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->count = job->after.count;
    for (uint32_t i = 0; i < made->count; i++) {
        wal__buf_init(&made->items[i], heap);
    }
    job->contents = made;
    return WAL_OK;
}

void wal__rewind_contents_destroy(struct wal__rewind_contents *contents,
                                  const struct wal__heap *heap)
{
    for (uint32_t i = 0; contents != NULL && i < contents->count; i++) {
        wal__buf_deinit(&contents->items[i]);
    }
    wal__heap_free(heap, contents);
}

struct wal__span wal__rewind_kept_content(const struct wal__rewind_job *job, uint32_t number)
{
    struct wal__span none = {NULL, 0};

    if (job->contents == NULL) {
        return none;
    }
    WAL__ASSERT(number < job->contents->count);
    return (struct wal__span){job->contents->items[number].data, job->contents->items[number].size};
}

/* Copies a content, unless there is too little space for it. */
static void keep_content(struct wal__rewind_contents *contents, uint32_t item,
                         const uint8_t *content, size_t size)
{
    static_assert((int)PIECE_SIZE <= (int)KEPT_MAX, "a piece may be kept");
    WAL__ASSERT(item < contents->count && contents->items[item].size == 0);
    if (atomic_fetch_add(&contents->size, size) <= KEPT_MAX - size) {
        (void)!wal__buf_append(&contents->items[item], content, size);
    }
}

enum wal_status wal__rewind_verify_file(const struct wal__rewind_job *job,
                                        const struct wal__files *list, uint32_t item, void *state,
                                        struct wal_error *error)
{
    const struct wal__file_record *file = &list->items[item];
    struct worker *worker = state;
    enum wal_status status;

    if (file->kind == WAL__FILE_ABSENT) {
        return WAL_OK;
    }
    status = alloc_buffer(job, worker, error);
    if (status == WAL_OK) {
        status = copy_content(job, file, NULL, worker->piece, error);
    }
    if (status == WAL_OK && job->contents != NULL && list == &job->after &&
        file->size <= PIECE_SIZE) {
        keep_content(job->contents, item, worker->piece, (size_t)file->size);
    }
    return status;
}

void wal__rewind_verify_worker_end(const struct wal__rewind_job *job, void *state)
{
    struct worker *worker = state;

    wal__heap_free(job->session->core->env.heap, worker->piece);
}

static enum wal_status verify_item(void *ctx, void *state, uint32_t item, struct wal_error *error)
{
    const struct work *work = ctx;

    return work->chosen[item] != 0
               ? wal__rewind_verify_file(work->job, work->list, item, state, error)
               : WAL_OK;
}

enum wal_status wal__rewind_verify(const struct wal__rewind_job *job, const struct wal__files *list,
                                   const uint8_t *chosen, struct wal_error *error)
{
    struct work work = {.job = job, .list = list, .chosen = chosen};

    WAL__ASSERT(list->count == job->before.count);
    return run(&work, verify_item, 0, error);
}

/* --- temporary files ----------------------------------------------------- */

static enum wal_status stage_file(const struct wal__rewind_job *job,
                                  const struct wal__file_record *to, const char *name,
                                  struct wal__span kept, struct worker *worker,
                                  struct wal_error *error)
{
    const struct wal__worktree_io *io = job->io;
    struct wal__worktree_file *file;
    int err = 0;
    enum wal_status status = io->create(io->ctx, job->worktree, name, 0600, &file, &err);

    if (status != WAL_OK) {
        return wal__worktree_fail(error, status, err, wal__file_path(to),
                                  "cannot create a temporary file in its directory");
    }
    status = kept.size > 0
                 ? write_piece(job, file, wal__file_path(to), kept.data, kept.size, 0, error)
                 : alloc_buffer(job, worker, error);
    if (status == WAL_OK && kept.size == 0) {
        status = copy_content(job, to, file, worker->piece, error);
    }
    if (status == WAL_OK) {
        /* After the content: writing clears some of the bits. */
        status = io->set_mode(io->ctx, file, to->mode, &err);
        if (status != WAL_OK) {
            (void)!wal__worktree_fail(error, status, err, wal__file_path(to),
                                      "cannot set its permission bits");
        }
    }
    io->close(io->ctx, file);
    return status;
}

static enum wal_status make_link(const struct wal__rewind_job *job,
                                 const struct wal__file_record *to, const char *name,
                                 struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    struct wal__buf target;
    enum wal_status status;
    int err = 0;

    wal__buf_init(&target, job->session->core->env.heap);
    status = wal__blob_load(&job->session->core->blobs, &to->digest, &target, &own);
    if (status != WAL_OK) {
        status = content_fail(to, status, &own, error);
    } else if (wal__buf_append(&target, "", 1) != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        status =
            job->io->make_link(job->io->ctx, job->worktree, name, (const char *)target.data, &err);
        if (status != WAL_OK) {
            (void)!wal__worktree_fail(error, status, err, wal__file_path(to),
                                      "cannot create a temporary link in its directory");
        }
    }
    wal__buf_deinit(&target);
    return status;
}

static enum wal_status stage_item(void *ctx, void *state, uint32_t item, struct wal_error *error)
{
    const struct work *work = ctx;
    const struct wal__file_record *file = &work->list->items[item];
    struct wal__span kept = {NULL, 0};
    char name[TEMP_NAME_MAX];

    if (work->chosen[item] == 0 || file->kind == WAL__FILE_ABSENT) {
        return WAL_OK;
    }
    rewind_temp_name(work->job, item, name);
    if (file->kind == WAL__FILE_SYMLINK) {
        return make_link(work->job, file, name, error);
    }
    if (work->list == &work->job->after) {
        kept = wal__rewind_kept_content(work->job, item);
    }
    return stage_file(work->job, file, name, kept, state, error);
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

/* Whether the directory can be made only when the files that go are gone, because it or one above
 * it is a file in one of the states. */
static bool is_deferred(const struct wal__rewind_job *job, const char *directory)
{
    const struct wal__span path = {(const uint8_t *)directory, strlen(directory)};

    return wal__files_find(&job->before, path) != NULL || wal__rewind_above(job, path) != NULL;
}

enum wal_status wal__rewind_find_missing_dirs(const struct wal__rewind_job *job, const char *path,
                                              size_t known, struct wal__buf *out,
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
        if (status == WAL_EOUTSIDE && is_deferred(job, name)) {
            stat.kind = WAL__WORKTREE_ABSENT; /* below a link that goes */
        } else if (status != WAL_OK) {
            return wal__worktree_fail(error, status, err, path,
                                      "cannot read the metadata of its directory");
        }
        if (stat.kind == WAL__WORKTREE_DIRECTORY) {
            continue;
        }
        if (stat.kind != WAL__WORKTREE_ABSENT && !is_deferred(job, name)) {
            return wal__fail_at(error, WAL_ENOTFILE, 0, path, 0, "%s is not a directory", name);
        }
        if (wal__buf_append(out, name, size + 1) != WAL_OK) {
            return wal__no_memory(error);
        }
    }
    return WAL_OK;
}

/* The paths are sorted, so that those below a directory are adjacent. */
enum wal_status wal__rewind_list_missing_dirs(const struct wal__rewind_job *job,
                                              const struct wal__files *list, const uint8_t *chosen,
                                              struct wal__buf *out, struct wal_error *error)
{
    const char *before = "";
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < list->count && status == WAL_OK; i++) {
        const char *path = wal__file_path(&list->items[i]);

        if (chosen[i] == 0 || list->items[i].kind == WAL__FILE_ABSENT) {
            continue;
        }
        status = wal__rewind_find_missing_dirs(job, path, common_size(before, path), out, error);
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

    return next == NULL || next == (const char *)list->data + list->size ? NULL : next;
}

/* Makes those of the list that are deferred, or those that are not. */
static enum wal_status make_directories(const struct wal__rewind_job *job,
                                        const struct wal__buf *list, bool deferred,
                                        struct wal_error *error)
{
    for (const char *at = next_directory(list, NULL); at != NULL; at = next_directory(list, at)) {
        int err = 0;
        enum wal_status status =
            is_deferred(job, at) == deferred
                ? job->io->make_directory(job->io->ctx, job->worktree, at, &err)
                : WAL_OK;

        if (status != WAL_OK && status != WAL_EEXISTS) {
            return wal__worktree_fail(error, status, err, at, "cannot create the directory");
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

    return wal__span_compare((struct wal__span){(const uint8_t *)a->path, a->size},
                             (struct wal__span){(const uint8_t *)b->path, b->size});
}

static enum wal_status add_parent_dir(struct wal__buf *dirs, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct parent_dir dir = {path, slash == NULL ? 0 : (size_t)(slash - path)};

    return wal__buf_append(dirs, &dir, sizeof(dir));
}

/* Appends the distinct directories to `paths`, each followed by a NUL. */
static enum wal_status list_distinct_dirs(struct wal__buf *dirs, struct wal__buf *paths)
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

/* Syncs the directories of these paths, each of which is followed by a NUL. */
static enum wal_status sync_paths(const struct wal__rewind_job *job, const struct wal__buf *paths,
                                  struct wal_error *error)
{
    int err = 0;
    enum wal_status status = job->io->sync_directories(
        job->io->ctx, job->worktree, (const char *)paths->data, paths->size, &err);

    /* A directory that is gone or was replaced has none of our names. */
    return status == WAL_OK || status == WAL_ENOTFOUND || status == WAL_ENOTFILE ||
                   status == WAL_EOUTSIDE
               ? WAL_OK
               : wal__worktree_fail(error, status, err, job->root,
                                    "cannot sync the directories below the root");
}

static enum wal_status sync_dirs(const struct wal__rewind_job *job, struct wal__buf *dirs,
                                 struct wal_error *error)
{
    struct wal__buf paths;
    enum wal_status status;

    wal__buf_init(&paths, dirs->heap);
    status = list_distinct_dirs(dirs, &paths) == WAL_OK ? sync_paths(job, &paths, error)
                                                        : wal__no_memory(error);
    wal__buf_deinit(&paths);
    return status;
}

/* Syncs every directory that contains a chosen file, its temporary file or a created directory. */
static enum wal_status sync_directories(const struct wal__rewind_job *job,
                                        const struct wal__buf *made, const uint8_t *chosen,
                                        struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    struct wal__buf dirs;

    wal__buf_init(&dirs, job->session->core->env.heap);
    for (uint32_t i = 0; i < job->before.count && status == WAL_OK; i++) {
        const char *path = wal__file_path(&job->before.items[i]);
        const char *staged = staged_below(job, i);

        if (chosen != NULL && chosen[i] == 0) {
            continue;
        }
        status = add_parent_dir(&dirs, path);
        if (status == WAL_OK && staged != path) {
            status = add_parent_dir(&dirs, staged);
        }
    }
    for (const char *at = next_directory(made, NULL); at != NULL && status == WAL_OK;
         at = next_directory(made, at)) {
        status = add_parent_dir(&dirs, at);
    }
    status = status == WAL_OK ? sync_dirs(job, &dirs, error) : wal__no_memory(error);
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

static bool matches_stat(const struct wal__file_record *file, const struct wal__worktree_stat *stat)
{
    if (kind_of(stat->kind) != file->kind) {
        return false;
    }
    return file->kind == WAL__FILE_ABSENT ||
           (stat->size == file->size && stat->mtime_ns == file->mtime_ns &&
            stat->ctime_ns == file->ctime_ns && stat->inode == file->inode &&
            stat->device == file->device);
}

/* Whether an absent file has this status when it is looked for: its name is that of a directory, or
 * its path leads through a link, in the place of a file that the rewind changes. */
static bool counts_as_absent(const struct wal__rewind_job *job, const struct wal__file_record *file,
                             enum wal_status status)
{
    return status == WAL_ENOTFOUND ||
           (status == WAL_ENOTFILE && wal__files_has_below(&job->all, file->path)) ||
           (status == WAL_EOUTSIDE && wal__rewind_above(job, file->path) != NULL);
}

/* Checks that the stats of the chosen files are those of `from`. */
static enum wal_status check_not_modified(const struct wal__rewind_job *job,
                                          const struct wal__files *from, const uint8_t *chosen,
                                          struct wal_error *error)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const char *path = wal__file_path(&from->items[i]);
        struct wal__worktree_stat stat = {0};
        enum wal_status status;
        int err = 0;

        if (chosen[i] == 0) {
            continue;
        }
        status = job->io->stat(job->io->ctx, job->worktree, path, &stat, &err);
        if (status == WAL_OK && stat.kind == WAL__WORKTREE_DIRECTORY) {
            status = WAL_ENOTFILE;
        }
        if (counts_as_absent(job, &from->items[i], status)) {
            stat.kind = WAL__WORKTREE_ABSENT;
        } else if (status != WAL_OK && stat.kind != WAL__WORKTREE_DIRECTORY) {
            return wal__worktree_fail(error, status, err, path,
                                      "cannot read the metadata of the file");
        }
        if (!matches_stat(&from->items[i], &stat)) {
            return wal__fail_at(error, WAL_ECHANGED, 0, path, 0,
                                "another program changed the file during the rewind; call "
                                "rewind again");
        }
    }
    return WAL_OK;
}

static enum wal_status replace_file(const struct wal__rewind_job *job,
                                    const struct wal__file_record *to, uint32_t number,
                                    struct wal_error *error)
{
    const struct wal__worktree_io *io = job->io;
    const char *path = wal__file_path(to);
    char name[TEMP_NAME_MAX];
    enum wal_status status;
    int err = 0;

    WAL__ASSERT(number < job->before.count);
    if (to->kind == WAL__FILE_ABSENT) {
        status = io->unlink(io->ctx, job->worktree, path, &err);
        status = counts_as_absent(job, to, status) ? WAL_OK : status;
    } else {
        rewind_temp_name(job, number, name);
        status = io->rename(io->ctx, job->worktree, name, path, &err);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__worktree_fail(error, status, err, path, "replacing the file");
}

static enum wal_status replace_item(void *ctx, void *state, uint32_t item, struct wal_error *error)
{
    const struct work *work = ctx;

    (void)state;
    if (work->chosen[item] == 0 ||
        (work->part != EACH &&
         (work->part == REMOVED) != (work->list->items[item].kind == WAL__FILE_ABSENT))) {
        return WAL_OK;
    }
    if (work->moved != NULL) {
        work->moved[item] = 1;
    }
    return replace_file(work->job, &work->list->items[item], item, error);
}

/* --- directories in the way ---------------------------------------------- */

/* A walk over the directories in the place of a file. */
struct walk {
    const struct wal__rewind_job *job;
    const struct wal__files *to;
    const uint8_t *chosen; /* NULL: all */
    struct wal__buf *out;
    char path[WAL__FILE_PATH_MAX + 1]; /* of the directory that is listed */
    struct wal_error *error;
};

static enum wal_status walk_name(void *arg, const char *name)
{
    struct walk *walk = arg;
    const struct wal__rewind_job *job = walk->job;
    const struct wal__file_record *file;
    char path[WAL__FILE_PATH_MAX + 1];
    struct wal__worktree_stat stat;
    enum wal_status status;
    int err = 0;
    int size = snprintf(path, sizeof(path), "%s/%s", walk->path, name);

    if (size < 0 || (size_t)size >= sizeof(path)) {
        return wal__fail_at(walk->error, WAL_ETOOBIG, 0, walk->path, 0, "holds too long a path");
    }
    status = job->io->stat(job->io->ctx, job->worktree, path, &stat, &err);
    if (status != WAL_OK) {
        return wal__worktree_fail(walk->error, status, err, path, "reading its metadata");
    }
    if (stat.kind == WAL__WORKTREE_DIRECTORY) {
        return wal__buf_append(walk->out, path, (size_t)size + 1) == WAL_OK
                   ? WAL_OK
                   : wal__no_memory(walk->error);
    }
    file = wal__files_find(&job->before, (struct wal__span){(const uint8_t *)path, (size_t)size});
    if (file != NULL) {
        size_t number = (size_t)(file - job->before.items);

        if (walk->to->items[number].kind == WAL__FILE_ABSENT &&
            (walk->chosen == NULL || walk->chosen[number] != 0)) {
            return WAL_OK;
        }
    }
    return wal__fail_at(walk->error, WAL_ENOTFILE, 0, path, 0,
                        "the checkpoint does not have this file, which is in a directory in the "
                        "place of one that it has");
}

enum wal_status wal__rewind_list_dirs_in_place(const struct wal__rewind_job *job,
                                               const struct wal__files *to, const uint8_t *chosen,
                                               uint32_t number, struct wal__buf *out,
                                               struct wal_error *error)
{
    const struct wal__file_record *file = &to->items[number];
    struct walk walk = {.job = job, .to = to, .chosen = chosen, .out = out, .error = error};
    struct wal__worktree_stat stat = {0};
    enum wal_status status = WAL_OK;
    size_t at = out->size;
    int err = 0;

    if (wal__files_has_below(&job->all, file->path)) {
        status = job->io->stat(job->io->ctx, job->worktree, wal__file_path(file), &stat, &err);
    }
    if (status != WAL_OK && !counts_as_absent(job, file, status)) {
        return wal__worktree_fail(error, status, err, wal__file_path(file), "reading its metadata");
    }
    if (stat.kind != WAL__WORKTREE_DIRECTORY) {
        return WAL_OK;
    }
    if (wal__buf_append(out, wal__file_path(file), file->path.size + 1) != WAL_OK) {
        return wal__no_memory(error);
    }
    while (at < out->size) {
        size_t size = strlen((const char *)out->data + at) + 1;

        memcpy(walk.path, out->data + at, size);
        at += size;
        status = job->io->list(job->io->ctx, job->worktree, walk.path, walk_name, &walk, &err);
        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            return err == 0
                       ? status
                       : wal__worktree_fail(error, status, err, walk.path, "reading the directory");
        }
    }
    return WAL_OK;
}

/* Removes the directories of the list, the last one first. One that is not empty holds what another
 * program put there, which must stay. */
static enum wal_status remove_directories(const struct wal__rewind_job *job,
                                          const struct wal__buf *list, struct wal_error *error)
{
    enum wal_status first = WAL_OK;
    size_t end = list->size;

    while (end > 0) {
        const char *path;
        enum wal_status status;
        int err = 0;

        end--;
        while (end > 0 && list->data[end - 1] != '\0') {
            end--;
        }
        path = (const char *)list->data + end;
        status = job->io->remove_directory(job->io->ctx, job->worktree, path, &err);
        if (status != WAL_OK && status != WAL_ENOTFOUND && first == WAL_OK) {
            first = status == WAL_EEXISTS ? WAL_ECHANGED : status;
            (void)!wal__worktree_fail(error, first, err, path, "removing the directory");
        }
    }
    return first;
}

/* Brings the chosen files, whose new contents are staged, to the states of the list. */
static enum wal_status replace_all(struct work *work, const struct wal__buf *missing,
                                   struct wal_error *error)
{
    const struct wal__rewind_job *job = work->job;
    struct wal__buf in_place;
    enum wal_status status = WAL_OK;
    bool crosses = false;

    wal__buf_init(&in_place, job->session->core->env.heap);
    for (uint32_t i = 0; i < work->list->count && status == WAL_OK; i++) {
        if (work->chosen[i] != 0 && work->list->items[i].kind != WAL__FILE_ABSENT) {
            status =
                wal__rewind_list_dirs_in_place(job, work->list, work->chosen, i, &in_place, error);
            crosses = crosses || wal__rewind_above(job, work->list->items[i].path) != NULL;
        }
    }
    if (status == WAL_OK && (crosses || in_place.size > 0)) {
        work->part = REMOVED;
        status = run(work, replace_item, REPLACE_THREADS, error);
        work->part = PUT;
        if (status == WAL_OK) {
            /* What was moved out of a directory, or into it, is settled while it can be synced. */
            status = sync_paths(job, &in_place, error);
        }
        if (status == WAL_OK) {
            status = remove_directories(job, &in_place, error);
        }
        if (status == WAL_OK) {
            status = make_directories(job, missing, true, error);
        }
    }
    wal__buf_deinit(&in_place);
    /* In several threads, on one processor too: the system frees the replaced contents within the
     * call, and may wait for the disk. */
    return status == WAL_OK ? run(work, replace_item, REPLACE_THREADS, error) : status;
}

enum wal_status wal__rewind_apply(const struct wal__rewind_job *job, const struct wal__files *to,
                                  const struct wal__files *from, const uint8_t *chosen,
                                  uint8_t *moved, struct wal_error *error)
{
    struct work work = {.job = job, .list = to, .chosen = chosen, .moved = moved};
    struct wal__buf missing;
    enum wal_status status;
    int err = 0;

    WAL__ASSERT(to->count == job->before.count);
    WAL__ASSERT(from->count == to->count);
    wal__buf_init(&missing, job->session->core->env.heap);
    status = wal__rewind_list_missing_dirs(job, to, chosen, &missing, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = make_directories(job, &missing, false, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = run(&work, stage_item, 0, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = job->io->sync_all(job->io->ctx, job->worktree, &err);
    if (status != WAL_OK) {
        status = wal__worktree_fail(error, status, err, job->root,
                                    "cannot sync the files below the root");
        goto done;
    }
    status = check_not_modified(job, from, chosen, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = replace_all(&work, &missing, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = sync_directories(job, &missing, chosen, error);
done:
    wal__buf_deinit(&missing);
    return status;
}

/* --- removing temporary files -------------------------------------------- */

enum wal_status wal__rewind_remove_temps(const struct wal__rewind_job *job, bool directories,
                                         struct wal_error *error)
{
    char name[TEMP_NAME_MAX];

    for (uint32_t i = 0; i < job->before.count; i++) {
        enum wal_status status;
        int err = 0;

        rewind_temp_name(job, i, name);
        status = job->io->unlink(job->io->ctx, job->worktree, name, &err);
        /* If its directory was replaced, there is nothing to remove. */
        if (status != WAL_OK && status != WAL_ENOTFOUND && status != WAL_EOUTSIDE &&
            status != WAL_ENOTFILE) {
            return wal__worktree_fail(error, status, err, name, "cannot remove the temporary file");
        }
    }
    if (directories) {
        struct wal_error ignored = {.struct_size = sizeof(ignored)};

        (void)!remove_directories(job, &job->directories, &ignored);
    }
    /* Those that a process made which died before it synced them. */
    return sync_directories(job, &job->directories, NULL, error);
}
