/*
 * bundle.c - what writing and reading a bundle share (bundle.h).
 */
#include "engine/transfer/bundle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/transfer/record_copy.h"

static const char *const folders[] = {
    [WAL__BUNDLE_LOG] = "log",
    [WAL__BUNDLE_PACK] = "pack",
};

enum wal_status wal__bundle_fail(const struct wal__bundle_job *job,
                                 enum wal_status status, int sys_errno,
                                 const char *file, const char *what)
{
    return wal__fail_at(job->error,
                        status == WAL_EREADONLY ? WAL_EACCESS : status,
                        sys_errno, file, 0, "%s", what);
}

enum wal_status wal__bundle_begin(struct wal__bundle_job *job,
                                  struct wal_slice path)
{
    if (path.data == NULL || path.size == 0 ||
        memchr(path.data, 0, path.size) != NULL) {
        return wal__invalid(job->error, "the path of the bundle is empty, or "
                                        "has a zero byte");
    }
    if (path.size >= sizeof(job->path) - WAL__BUNDLE_NAME) {
        return wal__fail(job->error, WAL_ETOOBIG, "a path is too long");
    }
    memcpy(job->path, path.data, path.size);
    job->path[path.size] = '\0';
    job->piece = wal__heap_alloc(job->heap, WAL__BUNDLE_PIECE);
    return job->piece == NULL ? wal__no_memory(job->error) : WAL_OK;
}

/* The path of the lock file of the temporary store. */
static void lock_path(const struct wal__bundle_job *job,
                      char out[WAL__PATH_MAX + 8])
{
    snprintf(out, WAL__PATH_MAX + 8, "%s.lock", job->directory);
}

/* Creates the lock file, then the directory that it is of. */
static enum wal_status make_locked_directory(struct wal__bundle_job *job)
{
    char path[WAL__PATH_MAX + 8];
    int err = 0;
    enum wal_status status;

    lock_path(job, path);
    status = wal__bundle_create_locked(job->io, path, &job->lock, &err);
    if (status == WAL_OK) {
        status = job->io->make_directory(job->io->ctx, job->directory, &err);
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__bundle_fail(job, status, err, job->directory,
                                  "a temporary directory cannot be made");
}

enum wal_status wal__bundle_make_directory(struct wal__bundle_job *job,
                                           const char *place)
{
    const struct wal_slice given = job->options->directory;
    char parent[WAL__PATH_MAX];
    uint64_t number = 0;
    int size;

    size = snprintf(parent, sizeof(parent), "%.*s",
                    given.size > 0 ? (int)given.size : (int)strlen(place),
                    given.size > 0 ? (const char *)given.data : place);
    if (size < 0 || size + 2 * WAL__BUNDLE_NAME >= (int)sizeof(parent)) {
        return wal__fail(job->error, WAL_ETOOBIG, "a path is too long");
    }
    wal__bundle_remove_leftovers(job->io, parent);
    job->io->random(job->io->ctx, &number, sizeof(number));
    snprintf(job->directory, sizeof(job->directory),
             "%.*s/.agentwal-%016" PRIx64, size, parent, number);
    return make_locked_directory(job);
}

void wal__bundle_end(struct wal__bundle_job *job)
{
    if (job->lock != NULL) {
        char path[WAL__PATH_MAX + 8];
        int err = 0;

        wal__copy_remove_store(job->io, job->directory);
        lock_path(job, path);
        (void)!job->io->unlink(job->io->ctx, path, &err);
        job->io->close(job->io->ctx, job->lock);
    }
    wal__heap_free(job->heap, job->piece);
}

void wal__bundle_name(const struct wal__bundle_file *file,
                      char out[WAL__BUNDLE_NAME])
{
    if (file->file_class == WAL__BUNDLE_MANIFEST) {
        snprintf(out, WAL__BUNDLE_NAME, "MANIFEST");
    } else {
        snprintf(out, WAL__BUNDLE_NAME, "%s/%016" PRIx64 ".seg",
                 folders[file->file_class], file->id);
    }
}

bool wal__bundle_path(const struct wal__bundle_job *job,
                      const struct wal__bundle_file *file,
                      char out[WAL__PATH_MAX])
{
    char name[WAL__BUNDLE_NAME];
    int size;

    wal__bundle_name(file, name);
    size = snprintf(out, WAL__PATH_MAX, "%s/%s", job->directory, name);
    return size > 0 && size < WAL__PATH_MAX;
}

enum wal_status wal__bundle_pread(const struct wal__bundle_job *job,
                                  struct wal__file *file, const char *name,
                                  void *data, size_t size, uint64_t offset)
{
    size_t got = 0;
    int err = 0;
    enum wal_status status =
        wal__io_read_full(job->io, file, data, size, offset, &got, &err);

    if (status != WAL_OK) {
        return wal__bundle_fail(job, status, err, name, "cannot be read");
    }
    return got == size
               ? WAL_OK
               : wal__fail_at(job->error, WAL_ECORRUPT, 0, name, offset + got,
                              "the file is shorter than it says");
}

enum wal_status wal__bundle_pwrite(const struct wal__bundle_job *job,
                                   struct wal__file *file, const char *name,
                                   const void *data, size_t size,
                                   uint64_t offset)
{
    const struct iovec iov = {(void *)(uintptr_t)data, size};
    int err = 0;
    enum wal_status status =
        size == 0 ? WAL_OK
                  : wal__io_write_full(job->io, file, &iov, 1, offset, &err);

    return status == WAL_OK
               ? WAL_OK
               : wal__bundle_fail(job, status, err, name, "cannot be written");
}
