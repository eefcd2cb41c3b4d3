/*
 * bundle_write.c - writes sessions to a bundle: takes them into a temporary
 * store, compacts it, and puts its files one after another into a file.
 *
 * Invariant: the file has its name only when it is whole and synced.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "engine/api/api_check.h"
#include "engine/api/api_store.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "engine/transfer/bundle.h"
#include "format/bytes/crc32.h"

/* --- the store in the bundle ---------------------------------------------- */

/* The callbacks of the caller, and the first refusal. */
struct copy {
    const struct wal_transfer_options *options;
    struct wal_error refusal;
};

static int32_t on_progress(void *ctx, uint64_t done, uint64_t total)
{
    const struct copy *copy = ctx;

    return copy->options->progress == NULL
               ? 0
               : copy->options->progress(copy->options->ctx, done, total);
}

static int32_t on_report(void *ctx, const struct wal_transfer_report *report)
{
    struct copy *copy = ctx;

    if (report->kind == WAL_TRANSFER_REFUSED &&
        copy->refusal.status == WAL_OK) {
        wal__fail(&copy->refusal, report->status, "session %.*s: %s",
                  WAL_ARG(report->session_id), report->error->text);
    }
    return copy->options->report == NULL
               ? 0
               : copy->options->report(copy->options->ctx, report);
}

static enum wal_status fill(struct wal__bundle_job *job,
                            struct wal_store *bundled,
                            struct wal_transfer_result *result)
{
    struct copy copy = {.options = job->options,
                        .refusal = {.struct_size = sizeof(copy.refusal)}};
    const struct wal_store_compact_options compact = {
        .struct_size = sizeof(compact),
        .flags = WAL_STORE_COMPACT_ERASE,
        .rate = UINT64_MAX,
    };
    struct wal_transfer_options options = *job->options;
    enum wal_status status;

    options.progress = on_progress;
    options.report = on_report;
    options.ctx = &copy;
    status = wal__transfer_run(job->store, bundled, &options, false, result,
                               job->error);
    if (status == WAL_OK && result->refused > 0) {
        wal__error_copy(job->error, &copy.refusal);
        status = (enum wal_status)copy.refusal.status;
    }
    return status == WAL_OK
               ? wal_store_compact(bundled, &compact, NULL, job->error)
               : status;
}

static enum wal_status make_store(struct wal__bundle_job *job,
                                  struct wal_transfer_result *result)
{
    const struct wal_open_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE | WAL_OPEN_NETWORK_FS,
    };
    struct wal_store *bundled = NULL;
    enum wal_status closed;
    enum wal_status status = wal__store_open(
        job->directory, &options, job->heap, job->io, &bundled, job->error);

    if (status != WAL_OK) {
        return status;
    }
    status = fill(job, bundled, result);
    closed = wal_close(bundled, status == WAL_OK ? job->error : NULL);
    return status == WAL_OK ? closed : status;
}

/* --- its files ------------------------------------------------------------ */

/* The files of one folder. */
struct listing {
    struct wal__buf *files; /* struct wal__bundle_file */
    uint32_t file_class;
};

static enum wal_status add_segment(void *arg, const char *name)
{
    const struct listing *listing = arg;
    struct wal__bundle_file file = {.file_class = listing->file_class};
    char *end = NULL;

    file.id = strtoull(name, &end, 16);
    return end == name + 16 && strcmp(end, ".seg") == 0 && file.id > 0
               ? wal__buf_append(listing->files, &file, sizeof(file))
               : WAL_OK;
}

static int compare_files(const void *a, const void *b)
{
    const struct wal__bundle_file *x = a;
    const struct wal__bundle_file *y = b;

    if (x->file_class != y->file_class) {
        return x->file_class < y->file_class ? -1 : 1;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

static enum wal_status list_files(struct wal__bundle_job *job,
                                  struct wal__buf *files)
{
    static const char *const folders[] = {"log", "pack"};
    const struct wal__bundle_file manifest = {.file_class =
                                                  WAL__BUNDLE_MANIFEST};
    enum wal_status status =
        wal__buf_append(files, &manifest, sizeof(manifest));

    for (uint32_t i = 0; i < 2 && status == WAL_OK; i++) {
        struct listing listing = {files, WAL__BUNDLE_LOG + i};
        char path[WAL__PATH_MAX + 8];
        int err = 0;

        snprintf(path, sizeof(path), "%s/%s", job->directory, folders[i]);
        status = job->io->list(job->io->ctx, path, add_segment, &listing, &err);
        if (status == WAL_ENOTFOUND) {
            status = WAL_OK;
        } else if (status != WAL_OK) {
            return wal__bundle_fail(job, status, err, path, "cannot be read");
        }
    }
    if (status != WAL_OK) {
        return wal__no_memory(job->error);
    }
    qsort(files->data, files->size / sizeof(manifest), sizeof(manifest),
          compare_files);
    return WAL_OK;
}

/* The number of bytes up to the last one that is not zero. */
static size_t used_size(const uint8_t *bytes, size_t size)
{
    while (size > 0 && bytes[size - 1] == 0) {
        size--;
    }
    return size;
}

/* Copies a file of the store to `offset` of the bundle without the zeros at its
 * end; fills the row. */
static enum wal_status copy_file(struct wal__bundle_job *job,
                                 struct wal__file *from, const char *name,
                                 struct wal__file *out, uint64_t offset,
                                 struct wal__bundle_file *row)
{
    struct wal__io_stat stat;
    int err = 0;
    enum wal_status status = job->io->stat(job->io->ctx, from, &stat, &err);

    if (status != WAL_OK) {
        return wal__bundle_fail(job, status, err, name, "cannot be read");
    }
    row->size = stat.size;
    for (uint64_t at = stat.size; at > 0 && row->stored == 0;) {
        size_t size = at % WAL__BUNDLE_PIECE == 0 ? WAL__BUNDLE_PIECE
                                                  : at % WAL__BUNDLE_PIECE;

        at -= size;
        status = wal__bundle_pread(job, from, name, job->piece, size, at);
        if (status != WAL_OK) {
            return status;
        }
        size = used_size(job->piece, size);
        row->stored = size > 0 ? at + size : 0;
    }
    for (uint64_t at = 0; at < row->stored && status == WAL_OK;) {
        uint64_t left = row->stored - at;
        size_t size = left < WAL__BUNDLE_PIECE ? left : WAL__BUNDLE_PIECE;

        status = wal__bundle_pread(job, from, name, job->piece, size, at);
        if (status == WAL_OK) {
            row->crc = wal__crc32(row->crc, job->piece, size);
            status = wal__bundle_pwrite(job, out, job->path, job->piece, size,
                                        offset + at);
        }
        at += size;
    }
    return status;
}

static enum wal_status copy_files(struct wal__bundle_job *job,
                                  struct wal__file *out, struct wal__buf *files,
                                  uint64_t *end)
{
    struct wal__bundle_file *rows = (void *)files->data;
    size_t count = files->size / sizeof(*rows);
    enum wal_status status = WAL_OK;

    *end = WAL__BUNDLE_HEADER_SIZE + (uint64_t)count * WAL__BUNDLE_FILE_SIZE;
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__file *from = NULL;
        char name[WAL__PATH_MAX];
        int err = 0;

        if (!wal__bundle_path(job, &rows[i], name)) {
            return wal__fail(job->error, WAL_ETOOBIG, "a path is too long");
        }
        status = job->io->open(job->io->ctx, name, 0, &from, &err);
        if (status != WAL_OK) {
            return wal__bundle_fail(job, status, err, name, "cannot be opened");
        }
        status = copy_file(job, from, name, out, *end, &rows[i]);
        *end += rows[i].stored;
        job->io->close(job->io->ctx, from);
    }
    return status;
}

/* --- the file ------------------------------------------------------------- */

/* Writes the header and the table, once the rows are filled. */
static enum wal_status write_front(struct wal__bundle_job *job,
                                   struct wal__file *out,
                                   const struct wal__buf *files,
                                   uint64_t sessions, uint64_t size)
{
    const struct wal__bundle_file *rows = (const void *)files->data;
    size_t count = files->size / sizeof(*rows);
    struct wal__bundle bundle = {
        .version = WAL__BUNDLE_VERSION,
        .file_count = (uint32_t)count,
        .size = size,
        .sessions = sessions,
        .created_ms = job->io->now_ms(job->io->ctx),
    };
    uint8_t header[WAL__BUNDLE_HEADER_SIZE];
    struct wal__buf table;
    enum wal_status status;
    uint8_t *at;

    wal__buf_init(&table, job->heap);
    status = wal__buf_reserve(&table, count * WAL__BUNDLE_FILE_SIZE, &at);
    if (status != WAL_OK) {
        return wal__no_memory(job->error);
    }
    for (size_t i = 0; i < count; i++) {
        wal__bundle_file_encode(&rows[i], at + i * WAL__BUNDLE_FILE_SIZE);
    }
    bundle.table_crc = wal__crc32(0, at, count * WAL__BUNDLE_FILE_SIZE);
    wal__bundle_encode(&bundle, header);
    status = wal__bundle_pwrite(job, out, job->path, at,
                                count * WAL__BUNDLE_FILE_SIZE,
                                WAL__BUNDLE_HEADER_SIZE);
    if (status == WAL_OK) {
        status =
            wal__bundle_pwrite(job, out, job->path, header, sizeof(header), 0);
    }
    wal__buf_deinit(&table);
    return status;
}

static enum wal_status write_content(struct wal__bundle_job *job,
                                     struct wal__file *out,
                                     struct wal_transfer_result *result)
{
    struct wal__buf files;
    int err = 0;
    enum wal_status status;

    wal__buf_init(&files, job->heap);
    status = list_files(job, &files);
    if (status == WAL_OK) {
        status = copy_files(job, out, &files, &result->bytes);
    }
    if (status == WAL_OK) {
        status = write_front(job, out, &files, result->created, result->bytes);
    }
    if (status == WAL_OK) {
        status = job->io->sync(job->io->ctx, out, &err);
        if (status != WAL_OK) {
            status = wal__bundle_fail(job, status, err, job->path,
                                      "cannot be synced");
        }
    }
    wal__buf_deinit(&files);
    return status;
}

/* The directory of a path. */
static void parent_of(const char *path, char out[WAL__PATH_MAX])
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL) {
        snprintf(out, WAL__PATH_MAX, ".");
    } else {
        snprintf(out, WAL__PATH_MAX, "%.*s",
                 slash == path ? 1 : (int)(slash - path), path);
    }
}

/* Writes the file under a temporary name and gives it its name. */
static enum wal_status write_file(struct wal__bundle_job *job,
                                  const char *parent,
                                  struct wal_transfer_result *result)
{
    char temporary[WAL__PATH_MAX + 8];
    struct wal__file *out = NULL;
    int err = 0;
    enum wal_status status;

    snprintf(temporary, sizeof(temporary), "%s/%s%s", parent,
             strrchr(job->directory, '/') + 1, ".tmp");
    status = wal__bundle_create_locked(job->io, temporary, &out, &err);
    if (status != WAL_OK) {
        return wal__bundle_fail(job, status, err, temporary,
                                "cannot be created");
    }
    status = write_content(job, out, result);
    if (status == WAL_OK) {
        status = job->io->rename(job->io->ctx, temporary, job->path, &err);
        if (status == WAL_OK) {
            status = job->io->sync_directory(job->io->ctx, parent, &err);
        }
        if (status != WAL_OK) {
            status = wal__bundle_fail(job, status, err, job->path,
                                      "cannot be created");
        }
    }
    if (status != WAL_OK) {
        (void)!job->io->unlink(job->io->ctx, temporary, &err);
    }
    job->io->close(job->io->ctx, out); /* it is locked until now */
    return status;
}

static enum wal_status write_bundle(struct wal__bundle_job *job,
                                    struct wal_transfer_result *result)
{
    struct wal__io_stat stat;
    char parent[WAL__PATH_MAX];
    int err = 0;
    enum wal_status status =
        job->io->path_stat(job->io->ctx, job->path, &stat, &err);

    if (status == WAL_OK) {
        return wal__bundle_fail(job, WAL_EEXISTS, 0, job->path,
                                "exists; a bundle is a new file");
    }
    parent_of(job->path, parent);
    wal__bundle_remove_leftovers(job->io, parent);
    status = wal__bundle_make_directory(job, parent);
    if (status == WAL_OK) {
        status = make_store(job, result);
    }
    return status == WAL_OK ? write_file(job, parent, result) : status;
}

enum wal_status wal_bundle_write(struct wal_store *store, struct wal_slice path,
                                 const struct wal_transfer_options *options,
                                 struct wal_transfer_result *result,
                                 struct wal_error *error)
{
    struct wal_transfer_result done = WAL_INIT(wal_transfer_result);
    struct wal_transfer_options own;
    struct wal__bundle_job job = {.io = &wal__io_posix,
                                  .heap = &wal__heap_libc,
                                  .store = store,
                                  .options = &own,
                                  .error = error};
    enum wal_status status =
        wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK) {
        status = wal__transfer_load(&own, options, result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__bundle_begin(&job, path);
    if (status == WAL_OK && !store->core.noop) {
        status = write_bundle(&job, &done);
    }
    wal__bundle_end(&job);
    wal__struct_store(WAL__STRUCT(wal_transfer_result), result, &done);
    return status;
}
