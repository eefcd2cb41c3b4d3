/*
 * bundle_read.c - takes the sessions of a bundle into a store: checks all of
 * it, unpacks it to a temporary store, and merges that.
 *
 * Invariant: the store is not changed before every checksum of the bundle was
 * verified.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/api/api_check.h"
#include "engine/api/api_store.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "engine/transfer/bundle.h"
#include "engine/transfer/bundle_leftovers.h"
#include "format/bytes/crc32.h"

static enum wal_status damaged(const struct wal__bundle_job *job,
                               uint64_t offset, const char *what)
{
    return wal__fail_at(job->error, WAL_ECORRUPT, 0, job->path, offset,
                        "the bundle is damaged: %s; copy it again, or write it "
                        "again with `agentwal bundle`",
                        what);
}

/* --- the front ------------------------------------------------------------ */

static enum wal_status fail_header(const struct wal__bundle_job *job,
                                   enum wal__fmt fmt,
                                   const struct wal__bundle *bundle)
{
    if (fmt == WAL__FMT_MAGIC) {
        return wal__fail_at(job->error, WAL_EINVAL, 0, job->path, 0,
                            "is not a bundle");
    }
    if (fmt == WAL__FMT_VERSION) {
        return wal__fail_at(job->error, WAL_EVERSION, 0, job->path, 0,
                            "the bundle has version %" PRIu32
                            "; this library reads version %d and older",
                            bundle->version, WAL__BUNDLE_VERSION);
    }
    return damaged(job, 0,
                   fmt == WAL__FMT_SHORT ? "it is cut off in its header"
                   : fmt == WAL__FMT_HEADER_CRC
                       ? "the checksum of its header does not match"
                       : "a field of its header is not valid");
}

/* Reads the header and compares its size with that of the file. */
static enum wal_status read_header(const struct wal__bundle_job *job,
                                   struct wal__file *in,
                                   struct wal__bundle *bundle)
{
    uint8_t bytes[WAL__BUNDLE_HEADER_SIZE];
    struct wal__io_stat stat;
    size_t got = 0;
    int err = 0;
    enum wal__fmt fmt;
    enum wal_status status =
        wal__io_read_full(job->io, in, bytes, sizeof(bytes), 0, &got, &err);

    if (status == WAL_OK) {
        status = job->io->stat(job->io->ctx, in, &stat, &err);
    }
    if (status != WAL_OK) {
        return wal__bundle_fail(job, status, err, job->path, "cannot be read");
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
    return stat.size == bundle->size
               ? WAL_OK
               : damaged(job, bundle->size, "bytes follow its end");
}

/* Reads and checks the table; *rows is struct wal__bundle_file. */
static enum wal_status read_table(const struct wal__bundle_job *job,
                                  struct wal__file *in,
                                  const struct wal__bundle *bundle,
                                  struct wal__buf *bytes, struct wal__buf *rows)
{
    size_t size = (size_t)bundle->file_count * WAL__BUNDLE_FILE_SIZE;
    struct wal__bundle_table table;
    struct wal__bundle_file row;
    uint8_t *at;
    enum wal_status status;

    if (wal__buf_reserve(bytes, size, &at) != WAL_OK) {
        return wal__no_memory(job->error);
    }
    status = wal__bundle_pread(job, in, job->path, at, size,
                               WAL__BUNDLE_HEADER_SIZE);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__bundle_table_decode(bundle, (struct wal__span){at, size},
                                 &table) != WAL__FMT_OK) {
        return damaged(job, WAL__BUNDLE_HEADER_SIZE,
                       "the checksum of its table does not match");
    }
    while (table.left > 0) {
        uint32_t rank = bundle->file_count - table.left;

        if (wal__bundle_table_next(&table, &row) != WAL__FMT_OK) {
            return damaged(job,
                           WAL__BUNDLE_HEADER_SIZE +
                               (uint64_t)rank * WAL__BUNDLE_FILE_SIZE,
                           "a row of its table is not valid");
        }
        if (wal__buf_append(rows, &row, sizeof(row)) != WAL_OK) {
            return wal__no_memory(job->error);
        }
    }
    return WAL_OK;
}

/* --- files ---------------------------------------------------------------- */

/* Copies the stored bytes to the file, which gets its size, and verifies their
 * checksum. */
static enum wal_status copy_content(const struct wal__bundle_job *job,
                                    struct wal__file *in, uint64_t offset,
                                    const struct wal__bundle_file *row,
                                    struct wal__file *out, const char *name)
{
    static const uint8_t zero = 0;
    enum wal_status status = WAL_OK;
    uint32_t crc = 0;

    for (uint64_t at = 0; at < row->stored && status == WAL_OK;) {
        uint64_t left = row->stored - at;
        size_t size = left < WAL__BUNDLE_PIECE ? left : WAL__BUNDLE_PIECE;

        status = wal__bundle_pread(job, in, job->path, job->piece, size,
                                   offset + at);
        if (status == WAL_OK) {
            crc = wal__crc32(crc, job->piece, size);
            status = wal__bundle_pwrite(job, out, name, job->piece, size, at);
        }
        at += size;
    }
    if (status == WAL_OK && crc != row->crc) {
        char short_name[WAL__BUNDLE_NAME];
        char what[WAL__BUNDLE_NAME + 40];

        wal__bundle_name(row, short_name);
        snprintf(what, sizeof(what), "the checksum of %s does not match",
                 short_name);
        return damaged(job, offset, what);
    }
    /* The rest is a hole. */
    return status == WAL_OK && row->size > row->stored
               ? wal__bundle_pwrite(job, out, name, &zero, 1, row->size - 1)
               : status;
}

static enum wal_status unpack_file(const struct wal__bundle_job *job,
                                   struct wal__file *in, uint64_t offset,
                                   const struct wal__bundle_file *row)
{
    struct wal__file *out = NULL;
    char name[WAL__PATH_MAX];
    int err = 0;
    enum wal_status status;

    if (!wal__bundle_path(job, row, name)) {
        return wal__fail(job->error, WAL_ETOOBIG, "a path is too long");
    }
    status = job->io->open(job->io->ctx, name,
                           WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE,
                           &out, &err);
    if (status != WAL_OK) {
        return wal__bundle_fail(job, status, err, name, "cannot be created");
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
    uint64_t offset =
        WAL__BUNDLE_HEADER_SIZE + (uint64_t)count * WAL__BUNDLE_FILE_SIZE;
    enum wal_status status =
        wal__bundle_make_directory(job, wal__bundle_default_place());

    for (size_t i = 0; i < 3 && status == WAL_OK; i++) {
        char path[WAL__PATH_MAX + 8];
        int err = 0;

        snprintf(path, sizeof(path), "%s/%s", job->directory, folders[i]);
        status = job->io->make_directory(job->io->ctx, path, &err);
        if (status != WAL_OK) {
            status =
                wal__bundle_fail(job, status, err, path, "cannot be created");
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
static enum wal_status merge(struct wal__bundle_job *job,
                             struct wal_transfer_result *result)
{
    const struct wal_open_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_OPEN_READ_ONLY | WAL_OPEN_NETWORK_FS,
    };
    struct wal_store *bundled = NULL;
    enum wal_status status = wal__store_open(
        job->directory, &options, job->heap, job->io, &bundled, job->error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__transfer_run(bundled, job->store, job->options, false, result,
                               job->error);
    (void)!wal_close(bundled, NULL);
    return status;
}

static enum wal_status read_bundle(struct wal__bundle_job *job,
                                   struct wal_transfer_result *result)
{
    struct wal__file *in = NULL;
    struct wal__bundle bundle = {.version = 0};
    struct wal__buf table;
    struct wal__buf rows;
    int err = 0;
    enum wal_status status =
        job->io->open(job->io->ctx, job->path, WAL__IO_FOLLOW, &in, &err);

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
        wal__check_writable(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK) {
        status = wal__transfer_load(&own, options, result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__bundle_begin(&job, path);
    if (status == WAL_OK && !store->core.noop) {
        status = read_bundle(&job, &done);
    }
    wal__bundle_end(&job);
    wal__struct_store(WAL__STRUCT(wal_transfer_result), result, &done);
    return status;
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
    found = wal__io_read_full(io, in, bytes, sizeof(bytes), 0, &got, &err) ==
                WAL_OK &&
            wal__bundle_is_magic((struct wal__span){bytes, got});
    io->close(io->ctx, in);
    return found;
}
