/*
 * bundle.c - bundles (agentwal/transfer.h, docs/machines.md). Writing takes sessions into a
 * temporary store, compacts it, and puts its files one after another into a file. Reading checks
 * all of a bundle, unpacks it to a temporary store, and merges that. What processes left that were
 * killed is removed.
 *
 * Both work on the real system, also for a store in memory. Threads: one thread per call.
 *
 * Invariant: a file has its name only when it is whole and synced. A store is not changed before
 * every checksum of the bundle was verified. Nothing that another process left is removed while its
 * lock is held: the system frees the lock of a process that ends, however it ends. Nor is what
 * another user made: the directory may be one that all write to.
 */
#include "agentwal/admin.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/io.h"
#include "engine/base/struct_size.h"
#include "engine/care/record_copy.h"
#include "engine/care/transfer.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "format/bytes/crc32.h"
#include "format/index/bundle_fmt.h"

enum {
    WAL__BUNDLE_PIECE = 1024 * 1024, /* bytes that are read at once */
    WAL__BUNDLE_NAME = 40            /* of a file of a store, below it */
};

struct wal__bundle_job {
    const struct wal__io *io;
    const struct wal__heap *heap;
    struct wal_store *store;
    const struct wal_transfer_options *options;
    struct wal_error *error; /* of the caller, or NULL */
    uint8_t *piece;          /* WAL__BUNDLE_PIECE bytes */
    char path[WAL__PATH_MAX];
    char directory[WAL__PATH_MAX]; /* of the temporary store; "": none */
    struct wal__file *lock;        /* its lock file, as long as it is there */
};

/* --- what killed processes left ------------------------------------------- */

enum { ATTEMPTS = 100, DIGITS = 16 };

static const char prefix[] = ".agentwal-";

/* Returns whether the path still is the name of the file. */
static bool has_name(const struct wal__io *io, struct wal__file *file, const char *path)
{
    struct wal__io_stat named;
    struct wal__io_stat opened;
    int err = 0;

    return io->path_stat(io->ctx, path, &named, &err) == WAL_OK &&
           io->stat(io->ctx, file, &opened, &err) == WAL_OK && named.inode == opened.inode &&
           named.device == opened.device;
}

/* Creates a file that is locked until it is closed, so that others know that its process lives. */
static enum wal_status bundle_create_locked(const struct wal__io *io, const char *path,
                                            struct wal__file **file, int *sys_errno)
{
    enum wal_status status = WAL_EEXISTS;

    /* Before it is locked, another process may take it for a leftover. */
    for (int i = 0; i < ATTEMPTS; i++) {
        int ignored = 0;

        status = io->open(io->ctx, path, WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE, file,
                          sys_errno);
        if (status == WAL_OK &&
            io->lock(io->ctx, *file, 0, WAL__IO_LOCK_EXCLUSIVE, &ignored) != WAL_ELOCKED &&
            has_name(io, *file, path)) {
            return WAL_OK;
        }
        if (status == WAL_OK) {
            io->close(io->ctx, *file);
            *file = NULL;
            status = WAL_ELOCKED;
        } else if (status != WAL_EEXISTS) {
            break;
        }
        (void)sched_yield();
    }
    return status;
}

/* Returns whether this user made the file, or the directory. */
static bool is_own(const char *path, bool is_directory)
{
    struct stat stat;

    return lstat(path, &stat) == 0 && stat.st_uid == geteuid() &&
           (is_directory ? S_ISDIR(stat.st_mode) : S_ISREG(stat.st_mode));
}

/* Returns whether it is `.agentwal-`, 16 digits, and this ending. */
static bool has_form(const char *name, const char *ending)
{
    const char *digits = name + sizeof(prefix) - 1;

    return strncmp(name, prefix, sizeof(prefix) - 1) == 0 &&
           strspn(digits, "0123456789abcdef") == DIGITS && strcmp(digits + DIGITS, ending) == 0;
}

struct removal {
    const struct wal__io *io;
    const char *place;
};

/* Removes a file that no process has locked; before it, the directory that a lock file is of. */
static enum wal_status remove_leftover(void *arg, const char *name)
{
    const struct removal *removal = arg;
    const struct wal__io *io = removal->io;
    bool is_lock = has_form(name, ".lock");
    char path[WAL__PATH_MAX];
    struct wal__file *file;
    int err = 0;
    int size;

    size = snprintf(path, sizeof(path), "%s/%s", removal->place, name);
    if ((!is_lock && !has_form(name, ".tmp")) || size < 0 || size >= (int)sizeof(path) ||
        !is_own(path, false) || io->open(io->ctx, path, WAL__IO_WRITE, &file, &err) != WAL_OK) {
        return WAL_OK;
    }
    if (io->lock(io->ctx, file, 0, WAL__IO_LOCK_EXCLUSIVE, &err) == WAL_OK &&
        has_name(io, file, path)) {
        char directory[WAL__PATH_MAX];

        snprintf(directory, sizeof(directory), "%.*s", size - (int)strlen(".lock"), path);
        if (is_lock && is_own(directory, true)) {
            wal__copy_remove_store(io, directory);
        }
        (void)!io->unlink(io->ctx, path, &err);
    }
    io->close(io->ctx, file);
    return WAL_OK;
}

/* Removes what processes of this user that have ended left in a directory: temporary stores, with
 * their lock files, and unfinished bundles. What cannot be removed stays. */
static void bundle_remove_leftovers(const struct wal__io *io, const char *place)
{
    struct removal removal = {.io = io, .place = place};
    int err = 0;

    (void)!io->list(io->ctx, place, remove_leftover, &removal, &err);
}

const char *wal__bundle_default_place(void)
{
    const char *place = getenv("TMPDIR");

    return place == NULL || place[0] == '\0' ? "/tmp" : place;
}

void wal__bundle_sweep(const char *place)
{
    bundle_remove_leftovers(&wal__io_posix, place);
}

/* --- files ---------------------------------------------------------------- */

static const char *const file_folders[] = {
    [WAL__BUNDLE_LOG] = "log",
    [WAL__BUNDLE_PACK] = "pack",
};

/* Fails with the system's error about a file. */
static enum wal_status bundle_fail(const struct wal__bundle_job *job, enum wal_status status,
                                   int sys_errno, const char *file, const char *what)
{
    return wal__fail_at(job->error, status == WAL_EREADONLY ? WAL_EACCESS : status, sys_errno, file,
                        0, "%s", what);
}

/* Checks the arguments and makes the directory for a temporary store, in options->directory, else
 * in `place`. */
static enum wal_status bundle_begin(struct wal__bundle_job *job, struct wal_slice path)
{
    if (path.data == NULL || path.size == 0 || memchr(path.data, 0, path.size) != NULL) {
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
static void lock_path(const struct wal__bundle_job *job, char out[WAL__PATH_MAX + 8])
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
    status = bundle_create_locked(job->io, path, &job->lock, &err);
    if (status == WAL_OK) {
        status = job->io->make_directory(job->io->ctx, job->directory, &err);
    }
    return status == WAL_OK ? WAL_OK
                            : bundle_fail(job, status, err, job->directory,
                                          "a temporary directory cannot be made");
}

static enum wal_status bundle_make_directory(struct wal__bundle_job *job, const char *place)
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
    bundle_remove_leftovers(job->io, parent);
    job->io->random(job->io->ctx, &number, sizeof(number));
    snprintf(job->directory, sizeof(job->directory), "%.*s/.agentwal-%016" PRIx64, size, parent,
             number);
    return make_locked_directory(job);
}

/* Removes the directory, and frees. */
static void bundle_end(struct wal__bundle_job *job)
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

/* The name of a file below its store. */
static void bundle_name(const struct wal__bundle_file *file, char out[WAL__BUNDLE_NAME])
{
    if (file->file_class == WAL__BUNDLE_MANIFEST) {
        snprintf(out, WAL__BUNDLE_NAME, "MANIFEST");
    } else if (file->file_class == WAL__BUNDLE_KEYS) {
        snprintf(out, WAL__BUNDLE_NAME, "KEYS");
    } else {
        snprintf(out, WAL__BUNDLE_NAME, "%s/%016" PRIx64 ".seg", file_folders[file->file_class],
                 file->id);
    }
}

/* The path of a file in the temporary store; false: it is too long. */
static bool bundle_path(const struct wal__bundle_job *job, const struct wal__bundle_file *file,
                        char out[WAL__PATH_MAX])
{
    char name[WAL__BUNDLE_NAME];
    int size;

    bundle_name(file, name);
    size = snprintf(out, WAL__PATH_MAX, "%s/%s", job->directory, name);
    return size > 0 && size < WAL__PATH_MAX;
}

/* Reads just these bytes; WAL_ECORRUPT at the end of the file. */
static enum wal_status bundle_pread(const struct wal__bundle_job *job, struct wal__file *file,
                                    const char *name, void *data, size_t size, uint64_t offset)
{
    size_t got = 0;
    int err = 0;
    enum wal_status status = wal__io_read_full(job->io, file, data, size, offset, &got, &err);

    if (status != WAL_OK) {
        return bundle_fail(job, status, err, name, "cannot be read");
    }
    return got == size ? WAL_OK
                       : wal__fail_at(job->error, WAL_ECORRUPT, 0, name, offset + got,
                                      "the file is shorter than it says");
}

static enum wal_status bundle_pwrite(const struct wal__bundle_job *job, struct wal__file *file,
                                     const char *name, const void *data, size_t size,
                                     uint64_t offset)
{
    const struct iovec iov = {(void *)(uintptr_t)data, size};
    int err = 0;
    enum wal_status status =
        size == 0 ? WAL_OK : wal__io_write_full(job->io, file, &iov, 1, offset, &err);

    return status == WAL_OK ? WAL_OK : bundle_fail(job, status, err, name, "cannot be written");
}

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

    if (report->kind == WAL_TRANSFER_REFUSED && copy->refusal.status == WAL_OK) {
        wal__fail(&copy->refusal, report->status, "session %.*s: %s", WAL_ARG(report->session_id),
                  report->error->text);
    }
    return copy->options->report == NULL ? 0 : copy->options->report(copy->options->ctx, report);
}

static enum wal_status fill(struct wal__bundle_job *job, struct wal_store *bundled,
                            struct wal_transfer_result *result)
{
    struct copy copy = {.options = job->options, .refusal = {.struct_size = sizeof(copy.refusal)}};
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
    status = wal__transfer_run(job->store, bundled, &options, false, result, job->error);
    if (status == WAL_OK && result->refused > 0) {
        wal__error_copy(job->error, &copy.refusal);
        status = (enum wal_status)copy.refusal.status;
    }
    return status == WAL_OK ? wal_store_compact(bundled, &compact, NULL, job->error) : status;
}

static enum wal_status make_store(struct wal__bundle_job *job, struct wal_transfer_result *result)
{
    const struct wal_open_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE | WAL_OPEN_NETWORK_FS,
        .key = job->options->key,
    };
    struct wal_store *bundled = NULL;
    enum wal_status closed;
    enum wal_status status =
        wal__store_open(job->directory, &options, job->heap, job->io, &bundled, job->error);

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

static enum wal_status list_files(struct wal__bundle_job *job, struct wal__buf *files)
{
    static const char *const folders[] = {"log", "pack"};
    const struct wal__bundle_file manifest = {.file_class = WAL__BUNDLE_MANIFEST};
    const struct wal__bundle_file keys = {.file_class = WAL__BUNDLE_KEYS};
    enum wal_status status = wal__buf_append(files, &manifest, sizeof(manifest));

    if (status == WAL_OK && job->options->key != NULL) {
        status = wal__buf_append(files, &keys, sizeof(keys));
    }

    for (uint32_t i = 0; i < 2 && status == WAL_OK; i++) {
        struct listing listing = {files, WAL__BUNDLE_LOG + i};
        char path[WAL__PATH_MAX + 8];
        int err = 0;

        snprintf(path, sizeof(path), "%s/%s", job->directory, folders[i]);
        status = job->io->list(job->io->ctx, path, add_segment, &listing, &err);
        if (status == WAL_ENOTFOUND) {
            status = WAL_OK;
        } else if (status != WAL_OK) {
            return bundle_fail(job, status, err, path, "cannot be read");
        }
    }
    if (status != WAL_OK) {
        return wal__no_memory(job->error);
    }
    qsort(files->data, files->size / sizeof(manifest), sizeof(manifest), compare_files);
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

/* Copies a file of the store to `offset` of the bundle without the zeros at its end; fills the
 * row. */
static enum wal_status copy_file(struct wal__bundle_job *job, struct wal__file *from,
                                 const char *name, struct wal__file *out, uint64_t offset,
                                 struct wal__bundle_file *row)
{
    struct wal__io_stat stat;
    int err = 0;
    enum wal_status status = job->io->stat(job->io->ctx, from, &stat, &err);

    if (status != WAL_OK) {
        return bundle_fail(job, status, err, name, "cannot be read");
    }
    row->size = stat.size;
    for (uint64_t at = stat.size; at > 0 && row->stored == 0;) {
        size_t size = at % WAL__BUNDLE_PIECE == 0 ? WAL__BUNDLE_PIECE : at % WAL__BUNDLE_PIECE;

        at -= size;
        status = bundle_pread(job, from, name, job->piece, size, at);
        if (status != WAL_OK) {
            return status;
        }
        size = used_size(job->piece, size);
        row->stored = size > 0 ? at + size : 0;
    }
    for (uint64_t at = 0; at < row->stored && status == WAL_OK;) {
        uint64_t left = row->stored - at;
        size_t size = left < WAL__BUNDLE_PIECE ? left : WAL__BUNDLE_PIECE;

        status = bundle_pread(job, from, name, job->piece, size, at);
        if (status == WAL_OK) {
            row->crc = wal__crc32(row->crc, job->piece, size);
            status = bundle_pwrite(job, out, job->path, job->piece, size, offset + at);
        }
        at += size;
    }
    return status;
}

static enum wal_status copy_files(struct wal__bundle_job *job, struct wal__file *out,
                                  struct wal__buf *files, uint64_t *end)
{
    struct wal__bundle_file *rows = (void *)files->data;
    size_t count = files->size / sizeof(*rows);
    enum wal_status status = WAL_OK;

    *end = WAL__BUNDLE_HEADER_SIZE + (uint64_t)count * WAL__BUNDLE_FILE_SIZE;
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__file *from = NULL;
        char name[WAL__PATH_MAX];
        int err = 0;

        if (!bundle_path(job, &rows[i], name)) {
            return wal__fail(job->error, WAL_ETOOBIG, "a path is too long");
        }
        status = job->io->open(job->io->ctx, name, 0, &from, &err);
        if (status != WAL_OK) {
            return bundle_fail(job, status, err, name, "cannot be opened");
        }
        status = copy_file(job, from, name, out, *end, &rows[i]);
        *end += rows[i].stored;
        job->io->close(job->io->ctx, from);
    }
    return status;
}

/* --- the file ------------------------------------------------------------- */

/* Writes the header and the table, once the rows are filled. */
static enum wal_status write_front(struct wal__bundle_job *job, struct wal__file *out,
                                   const struct wal__buf *files, uint64_t sessions, uint64_t size)
{
    const struct wal__bundle_file *rows = (const void *)files->data;
    size_t count = files->size / sizeof(*rows);
    struct wal__bundle bundle = {
        .version = job->options->key != NULL ? WAL__BUNDLE_VERSION : 1,
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
    status = bundle_pwrite(job, out, job->path, at, count * WAL__BUNDLE_FILE_SIZE,
                           WAL__BUNDLE_HEADER_SIZE);
    if (status == WAL_OK) {
        status = bundle_pwrite(job, out, job->path, header, sizeof(header), 0);
    }
    wal__buf_deinit(&table);
    return status;
}

static enum wal_status write_content(struct wal__bundle_job *job, struct wal__file *out,
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
            status = bundle_fail(job, status, err, job->path, "cannot be synced");
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
        snprintf(out, WAL__PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    }
}

/* Writes the file under a temporary name and gives it its name. */
static enum wal_status write_file(struct wal__bundle_job *job, const char *parent,
                                  struct wal_transfer_result *result)
{
    char temporary[WAL__PATH_MAX + 8];
    struct wal__file *out = NULL;
    int err = 0;
    enum wal_status status;

    snprintf(temporary, sizeof(temporary), "%s/%s%s", parent, strrchr(job->directory, '/') + 1,
             ".tmp");
    status = bundle_create_locked(job->io, temporary, &out, &err);
    if (status != WAL_OK) {
        return bundle_fail(job, status, err, temporary, "cannot be created");
    }
    status = write_content(job, out, result);
    if (status == WAL_OK) {
        status = job->io->rename(job->io->ctx, temporary, job->path, &err);
        if (status == WAL_OK) {
            status = job->io->sync_directory(job->io->ctx, parent, &err);
        }
        if (status != WAL_OK) {
            status = bundle_fail(job, status, err, job->path, "cannot be created");
        }
    }
    if (status != WAL_OK) {
        (void)!job->io->unlink(job->io->ctx, temporary, &err);
    }
    job->io->close(job->io->ctx, out); /* it is locked until now */
    return status;
}

static enum wal_status write_bundle(struct wal__bundle_job *job, struct wal_transfer_result *result)
{
    const struct wal_transfer_options *options = job->options;
    struct wal__io_stat stat;
    char parent[WAL__PATH_MAX];
    int err = 0;
    enum wal_status status;

    if (job->store->core.env.keyring != NULL && options->key == NULL &&
        (options->flags & WAL_TRANSFER_PLAIN) == 0) {
        return bundle_fail(job, WAL_EKEY, 0, job->path,
                           "the store is encrypted: a bundle of it needs a key too, or "
                           "WAL_TRANSFER_PLAIN");
    }
    status = job->io->path_stat(job->io->ctx, job->path, &stat, &err);

    if (status == WAL_OK) {
        return bundle_fail(job, WAL_EEXISTS, 0, job->path, "exists; a bundle is a new file");
    }
    parent_of(job->path, parent);
    bundle_remove_leftovers(job->io, parent);
    status = bundle_make_directory(job, parent);
    if (status == WAL_OK) {
        status = make_store(job, result);
    }
    return status == WAL_OK ? write_file(job, parent, result) : status;
}

/* Writes or reads a bundle, by `body`. `checked` is the status of the store. */
static enum wal_status
run(struct wal_store *store, enum wal_status checked, struct wal_slice path,
    const struct wal_transfer_options *options, struct wal_transfer_result *result,
    enum wal_status (*body)(struct wal__bundle_job *job, struct wal_transfer_result *result),
    struct wal_error *error)
{
    struct wal_transfer_result done = WAL_INIT(wal_transfer_result);
    struct wal_transfer_options own;
    struct wal_key key;
    struct wal__bundle_job job = {.io = &wal__io_posix,
                                  .heap = &wal__heap_libc,
                                  .store = store,
                                  .options = &own,
                                  .error = error};
    enum wal_status status =
        checked == WAL_OK ? wal__transfer_load(&own, &key, options, result, error) : checked;

    if (status != WAL_OK) {
        return status;
    }
    status = bundle_begin(&job, path);
    if (status == WAL_OK && !store->core.env.io->forgets) {
        status = body(&job, &done);
    }
    bundle_end(&job);
    wal__struct_store(WAL__STRUCT(wal_transfer_result), result, &done);
    return status;
}

enum wal_status wal_bundle_write(struct wal_store *store, struct wal_slice path,
                                 const struct wal_transfer_options *options,
                                 struct wal_transfer_result *result, struct wal_error *error)
{
    return run(store, wal__check_core(store == NULL ? NULL : &store->core, error), path, options,
               result, write_bundle, error);
}

/* --- reading -------------------------------------------------------------- */

static enum wal_status damaged(const struct wal__bundle_job *job, uint64_t offset, const char *what)
{
    return wal__fail_at(job->error, WAL_ECORRUPT, 0, job->path, offset,
                        "the bundle is damaged: %s; copy it again, or write it "
                        "again with `agentwal bundle`",
                        what);
}

/* --- the front ------------------------------------------------------------ */

static enum wal_status fail_header(const struct wal__bundle_job *job, enum wal__fmt fmt,
                                   const struct wal__bundle *bundle)
{
    if (fmt == WAL__FMT_MAGIC) {
        return wal__fail_at(job->error, WAL_EINVAL, 0, job->path, 0, "is not a bundle");
    }
    if (fmt == WAL__FMT_VERSION) {
        return wal__fail_at(job->error, WAL_EVERSION, 0, job->path, 0,
                            "the bundle has version %" PRIu32
                            "; this library reads version %d and older",
                            bundle->version, WAL__BUNDLE_VERSION);
    }
    return damaged(job, 0,
                   fmt == WAL__FMT_SHORT        ? "it is cut off in its header"
                   : fmt == WAL__FMT_HEADER_CRC ? "the checksum of its header does not match"
                                                : "a field of its header is not valid");
}

/* Reads the header and compares its size with that of the file. */
static enum wal_status read_header(const struct wal__bundle_job *job, struct wal__file *in,
                                   struct wal__bundle *bundle)
{
    uint8_t bytes[WAL__BUNDLE_HEADER_SIZE];
    struct wal__io_stat stat;
    size_t got = 0;
    int err = 0;
    enum wal__fmt fmt;
    enum wal_status status = wal__io_read_full(job->io, in, bytes, sizeof(bytes), 0, &got, &err);

    if (status == WAL_OK) {
        status = job->io->stat(job->io->ctx, in, &stat, &err);
    }
    if (status != WAL_OK) {
        return bundle_fail(job, status, err, job->path, "cannot be read");
    }
    if (!wal__bundle_is_magic((struct wal__span){bytes, got})) {
        return fail_header(job, WAL__FMT_MAGIC, bundle);
    }
    fmt = wal__bundle_decode((struct wal__span){bytes, got}, bundle);
    if (fmt != WAL__FMT_OK) {
        return fail_header(job, fmt, bundle);
    }
    if (stat.size < bundle->size) {
        return damaged(job, stat.size, "it is cut off");
    }
    return stat.size == bundle->size ? WAL_OK : damaged(job, bundle->size, "bytes follow its end");
}

/* Reads and checks the table; *rows is struct wal__bundle_file. */
static enum wal_status read_table(const struct wal__bundle_job *job, struct wal__file *in,
                                  const struct wal__bundle *bundle, struct wal__buf *bytes,
                                  struct wal__buf *rows)
{
    size_t size = (size_t)bundle->file_count * WAL__BUNDLE_FILE_SIZE;
    struct wal__bundle_table table;
    struct wal__bundle_file row;
    uint8_t *at;
    enum wal_status status;

    if (wal__buf_reserve(bytes, size, &at) != WAL_OK) {
        return wal__no_memory(job->error);
    }
    status = bundle_pread(job, in, job->path, at, size, WAL__BUNDLE_HEADER_SIZE);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__bundle_table_decode(bundle, (struct wal__span){at, size}, &table) != WAL__FMT_OK) {
        return damaged(job, WAL__BUNDLE_HEADER_SIZE, "the checksum of its table does not match");
    }
    while (table.left > 0) {
        uint32_t rank = bundle->file_count - table.left;

        if (wal__bundle_table_next(&table, &row) != WAL__FMT_OK) {
            return damaged(job, WAL__BUNDLE_HEADER_SIZE + (uint64_t)rank * WAL__BUNDLE_FILE_SIZE,
                           "a row of its table is not valid");
        }
        if (wal__buf_append(rows, &row, sizeof(row)) != WAL_OK) {
            return wal__no_memory(job->error);
        }
    }
    return WAL_OK;
}

/* --- files ---------------------------------------------------------------- */

/* Copies the stored bytes to the file, which gets its size, and verifies their checksum. */
static enum wal_status copy_content(const struct wal__bundle_job *job, struct wal__file *in,
                                    uint64_t offset, const struct wal__bundle_file *row,
                                    struct wal__file *out, const char *name)
{
    static const uint8_t zero = 0;
    enum wal_status status = WAL_OK;
    uint32_t crc = 0;

    for (uint64_t at = 0; at < row->stored && status == WAL_OK;) {
        uint64_t left = row->stored - at;
        size_t size = left < WAL__BUNDLE_PIECE ? left : WAL__BUNDLE_PIECE;

        status = bundle_pread(job, in, job->path, job->piece, size, offset + at);
        if (status == WAL_OK) {
            crc = wal__crc32(crc, job->piece, size);
            status = bundle_pwrite(job, out, name, job->piece, size, at);
        }
        at += size;
    }
    if (status == WAL_OK && crc != row->crc) {
        char short_name[WAL__BUNDLE_NAME];
        char what[WAL__BUNDLE_NAME + 40];

        bundle_name(row, short_name);
        snprintf(what, sizeof(what), "the checksum of %s does not match", short_name);
        return damaged(job, offset, what);
    }
    /* The rest is a hole. */
    return status == WAL_OK && row->size > row->stored
               ? bundle_pwrite(job, out, name, &zero, 1, row->size - 1)
               : status;
}

static enum wal_status unpack_file(const struct wal__bundle_job *job, struct wal__file *in,
                                   uint64_t offset, const struct wal__bundle_file *row)
{
    struct wal__file *out = NULL;
    char name[WAL__PATH_MAX];
    int err = 0;
    enum wal_status status;

    if (!bundle_path(job, row, name)) {
        return wal__fail(job->error, WAL_ETOOBIG, "a path is too long");
    }
    status = job->io->open(job->io->ctx, name, WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE,
                           &out, &err);
    if (status != WAL_OK) {
        return bundle_fail(job, status, err, name, "cannot be created");
    }
    status = copy_content(job, in, offset, row, out, name);
    job->io->close(job->io->ctx, out);
    return status;
}

static enum wal_status unpack(struct wal__bundle_job *job, struct wal__file *in,
                              const struct wal__buf *rows)
{
    static const char *const folders[] = {"log", "pack", "index"};
    const struct wal__bundle_file *items = (const void *)rows->data;
    size_t count = rows->size / sizeof(*items);
    uint64_t offset = WAL__BUNDLE_HEADER_SIZE + (uint64_t)count * WAL__BUNDLE_FILE_SIZE;
    enum wal_status status = bundle_make_directory(job, wal__bundle_default_place());

    for (size_t i = 0; i < 3 && status == WAL_OK; i++) {
        char path[WAL__PATH_MAX + 8];
        int err = 0;

        snprintf(path, sizeof(path), "%s/%s", job->directory, folders[i]);
        status = job->io->make_directory(job->io->ctx, path, &err);
        if (status != WAL_OK) {
            status = bundle_fail(job, status, err, path, "cannot be created");
        }
    }
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        status = unpack_file(job, in, offset, &items[i]);
        offset += items[i].stored;
    }
    return status;
}

/* --- the bundle ----------------------------------------------------------- */

/* Merges the temporary store, which is only read. */
static enum wal_status merge(struct wal__bundle_job *job, struct wal_transfer_result *result)
{
    const struct wal_open_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_OPEN_READ_ONLY | WAL_OPEN_NETWORK_FS,
        .key = job->options->key,
    };
    struct wal_store *bundled = NULL;
    enum wal_status status =
        wal__store_open(job->directory, &options, job->heap, job->io, &bundled, job->error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__transfer_run(bundled, job->store, job->options, false, result, job->error);
    (void)!wal_close(bundled, NULL);
    return status;
}

/* The last row says whether the bundle is encrypted. */
static enum wal_status check_key(const struct wal__bundle_job *job, const struct wal__buf *rows)
{
    const struct wal__bundle_file *items = (const void *)rows->data;
    const bool is_encrypted = items[rows->size / sizeof(*items) - 1].file_class == WAL__BUNDLE_KEYS;

    return is_encrypted == (job->options->key != NULL)
               ? WAL_OK
               : bundle_fail(job, WAL_EKEY, 0, job->path,
                             is_encrypted ? "the bundle is encrypted: a key opens it"
                                          : "the bundle is not encrypted: no key opens it");
}

static enum wal_status read_bundle(struct wal__bundle_job *job, struct wal_transfer_result *result)
{
    struct wal__file *in = NULL;
    struct wal__bundle bundle = {.version = 0};
    struct wal__buf table;
    struct wal__buf rows;
    int err = 0;
    enum wal_status status = job->io->open(job->io->ctx, job->path, WAL__IO_FOLLOW, &in, &err);

    if (status != WAL_OK) {
        bool is_other = err == ELOOP || err == EISDIR || err == ENXIO;

        return wal__fail_open(job->error,
                              is_other                  ? WAL_ENOTFILE
                              : status == WAL_EREADONLY ? WAL_EACCESS
                                                        : status,
                              err, job->path, "the bundle cannot be read");
    }
    wal__buf_init(&table, job->heap);
    wal__buf_init(&rows, job->heap);
    status = read_header(job, in, &bundle);
    if (status == WAL_OK) {
        status = read_table(job, in, &bundle, &table, &rows);
    }
    if (status == WAL_OK) {
        status = check_key(job, &rows);
    }
    if (status == WAL_OK) {
        status = unpack(job, in, &rows);
    }
    wal__buf_deinit(&table);
    wal__buf_deinit(&rows);
    job->io->close(job->io->ctx, in);
    result->bytes = bundle.size;
    return status == WAL_OK ? merge(job, result) : status;
}

enum wal_status wal_bundle_read(struct wal_store *store, struct wal_slice path,
                                const struct wal_transfer_options *options,
                                struct wal_transfer_result *result, struct wal_error *error)
{
    return run(store, wal__check_writable(store == NULL ? NULL : &store->core, error), path,
               options, result, read_bundle, error);
}

int32_t wal_bundle_detect(struct wal_slice path)
{
    const struct wal__io *io = &wal__io_posix;
    uint8_t bytes[WAL__BUNDLE_MAGIC_SIZE];
    struct wal__file *in = NULL;
    char name[WAL__PATH_MAX];
    size_t got = 0;
    int err = 0;
    bool found;

    if (path.data == NULL || path.size == 0 || path.size >= sizeof(name)) {
        return 0;
    }
    memcpy(name, path.data, path.size);
    name[path.size] = '\0';
    if (io->open(io->ctx, name, WAL__IO_FOLLOW, &in, &err) != WAL_OK) {
        return 0;
    }
    found = wal__io_read_full(io, in, bytes, sizeof(bytes), 0, &got, &err) == WAL_OK &&
            wal__bundle_is_magic((struct wal__span){bytes, got});
    io->close(io->ctx, in);
    return found;
}
