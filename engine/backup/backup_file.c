/*
 * backup_file.c - writes the segments of the copy (backup_job.h).
 */
#include <stdio.h>
#include <string.h>

#include "engine/backup/backup_job.h"
#include "engine/base/error.h"
#include "format/bytes/assert.h"

/* A segment that is copied. */
struct transfer {
    struct wal__segment *in;
    struct wal__file *out;
    const char *out_path;
    bool has_zeros; /* what is not written reads as zeros */
};

static enum wal_status fail_write(const struct transfer *transfer,
                                  enum wal_status status, int err,
                                  struct wal_error *error)
{
    return wal__fail_at(error, status, err, transfer->out_path, 0,
                        "cannot write the copy");
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static enum wal_status show_progress(struct backup *backup, uint64_t size,
                                     struct wal_error *error)
{
    const struct wal__backup_options *options = backup->options;

    backup->done += size;
    if (options->progress != NULL &&
        !options->progress(options->ctx, backup->done, backup->total)) {
        return wal__fail(error, WAL_ECALLBACK, "stopped by the caller");
    }
    return WAL_OK;
}

/* Copies [from, to) to the same place. */
static enum wal_status copy_range(struct backup *backup,
                                  const struct transfer *transfer,
                                  uint64_t from, uint64_t to,
                                  struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    enum wal_status status = WAL_OK;

    WAL__ASSERT(from <= to && to <= transfer->in->header.capacity);
    while (from < to && status == WAL_OK) {
        size_t size = to - from < WAL__BACKUP_COPY_SIZE
                          ? (size_t)(to - from)
                          : (size_t)WAL__BACKUP_COPY_SIZE;
        struct iovec iov = {backup->bytes, size};
        size_t got = 0;
        int err = 0;

        status = wal__io_read_full(io, transfer->in->file, backup->bytes, size,
                                   from, &got, &err);
        if (status != WAL_OK || got < size) {
            return wal__fail_at(error, status == WAL_OK ? WAL_EIO : status, err,
                                transfer->in->path, from,
                                "cannot read the segment");
        }
        if (!transfer->has_zeros || !is_zero(backup->bytes, size)) {
            status = wal__io_write_full(io, transfer->out, &iov, 1, from, &err);
            backup->result->bytes += size;
        }
        status = status == WAL_OK ? show_progress(backup, size, error)
                                  : fail_write(transfer, status, err, error);
        from += size;
    }
    return status;
}

static enum wal_status sync_file(const struct backup *backup,
                                 const struct transfer *transfer,
                                 struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    int err = 0;
    enum wal_status status = io->sync(io->ctx, transfer->out, &err);

    return status == WAL_OK ? WAL_OK : fail_write(transfer, status, err, error);
}

static enum wal_status begin(struct backup *backup,
                             struct backup_stream *stream,
                             const struct backup_source *source,
                             const char *path, int flags,
                             struct transfer *transfer, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    int err = 0;
    enum wal_status status =
        wal__backup_open_source(backup, stream, source, &transfer->in, error);

    transfer->out = NULL;
    transfer->out_path = path;
    transfer->has_zeros = (flags & WAL__IO_TRUNCATE) != 0;
    if (status != WAL_OK) {
        transfer->in = NULL;
        return status;
    }
    status =
        io->open(io->ctx, path, WAL__IO_WRITE | flags, &transfer->out, &err);
    return status == WAL_OK ? WAL_OK : fail_write(transfer, status, err, error);
}

static void end(const struct backup *backup, struct transfer *transfer)
{
    const struct wal__io *io = backup->dest.io;

    if (transfer->out != NULL) {
        io->close(io->ctx, transfer->out);
    }
    wal__segment_close(transfer->in);
}

enum wal_status wal__backup_sync_directory(const struct backup *backup,
                                           const char *name,
                                           struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;
    int size = snprintf(path, sizeof(path), "%s/%s", backup->dest.root, name);

    WAL__ASSERT(size > 0 && size < (int)sizeof(path));
    status = io->sync_directory(io->ctx, path, &err);
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, path, 0,
                                           "cannot sync the directory");
}

/* Gives a segment its name, durably. */
static enum wal_status give_name(struct backup *backup,
                                 const struct backup_stream *stream,
                                 const struct backup_source *source,
                                 const char *temporary, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    const struct wal__log *dest = &stream->dest;
    char path[WAL__PATH_MAX];
    int err = 0;
    enum wal_status status =
        wal__backup_state_doubt(&backup->dest, dest->log_id, source->id, error);

    if (status != WAL_OK) {
        return status;
    }
    if (source->action == BACKUP_SHADOW) {
        wal__segment_shadow_path(&backup->dest, dest->directory, source->id,
                                 path);
    } else {
        wal__segment_path(&backup->dest, dest->directory, source->id, path);
    }
    status = io->rename(io->ctx, temporary, path, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, path, 0,
                            "cannot rename the copy");
    }
    return wal__backup_sync_directory(backup, dest->directory, error);
}

/* Shares the blocks of the whole file where the file system can. */
static bool share(struct backup *backup, const struct transfer *transfer)
{
    const struct wal__io *io = backup->dest.io;
    uint64_t size = transfer->in->header.capacity;
    int ignored = 0;

    if (io->clone == NULL || io->clone(io->ctx, transfer->in->file,
                                       transfer->out, &ignored) != WAL_OK) {
        return false;
    }
    backup->result->shared += size;
    return true;
}

static enum wal_status fill(struct backup *backup,
                            const struct transfer *transfer,
                            const struct backup_source *source, bool whole,
                            struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    enum wal_status status;
    int err = 0;

    if (whole && share(backup, transfer)) {
        return show_progress(backup, source->capacity, error);
    }
    if (whole) {
        /* The trailer gives the file its size. */
        return copy_range(backup, transfer, 0, source->capacity, error);
    }
    status = io->allocate(io->ctx, transfer->out, source->capacity, &err);
    return status == WAL_OK
               ? copy_range(backup, transfer, 0, source->end, error)
               : fail_write(transfer, status, err, error);
}

enum wal_status wal__backup_copy_segment(struct backup *backup,
                                         struct backup_stream *stream,
                                         const struct backup_source *source,
                                         bool whole, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    char temporary[WAL__PATH_MAX + 8];
    struct transfer transfer;
    enum wal_status status;
    int ignored = 0;

    WAL__ASSERT(!whole || source->is_sealed);
    wal__segment_path(&backup->dest, stream->dest.directory, source->id, path);
    (void)snprintf(temporary, sizeof(temporary), "%s.new", path);
    status = begin(backup, stream, source, temporary,
                   WAL__IO_CREATE | WAL__IO_TRUNCATE, &transfer, error);
    if (status == WAL_OK) {
        status = fill(backup, &transfer, source, whole, error);
    }
    if (status == WAL_OK) {
        status = sync_file(backup, &transfer, error);
    }
    end(backup, &transfer);
    if (status == WAL_OK) {
        return give_name(backup, stream, source, temporary, error);
    }
    /* Best effort: it may be what fills the disk. */
    (void)!io->unlink(io->ctx, temporary, &ignored);
    return status;
}

enum wal_status wal__backup_extend_segment(struct backup *backup,
                                           struct backup_stream *stream,
                                           const struct backup_source *source,
                                           struct wal_error *error)
{
    char path[WAL__PATH_MAX];
    struct transfer transfer;
    enum wal_status status;

    wal__segment_path(&backup->dest, stream->dest.directory, source->id, path);
    status = begin(backup, stream, source, path, 0, &transfer, error);
    if (status == WAL_OK) {
        status =
            copy_range(backup, &transfer, source->from, source->end, error);
    }
    if (status == WAL_OK) {
        status = sync_file(backup, &transfer, error);
    }
    end(backup, &transfer);
    return status;
}

enum wal_status wal__backup_seal_segment(struct backup *backup,
                                         struct backup_stream *stream,
                                         const struct backup_source *source,
                                         struct wal_error *error)
{
    uint64_t trailer = source->capacity - WAL__TRAILER_SIZE;
    char path[WAL__PATH_MAX];
    struct transfer transfer;
    enum wal_status status;

    wal__segment_path(&backup->dest, stream->dest.directory, source->id, path);
    status = begin(backup, stream, source, path, 0, &transfer, error);
    transfer.has_zeros = true;
    if (status == WAL_OK) {
        status = copy_range(backup, &transfer, source->end, trailer, error);
    }
    /* The trailer vouches for what is before it. */
    if (status == WAL_OK) {
        status = sync_file(backup, &transfer, error);
    }
    if (status == WAL_OK) {
        status =
            copy_range(backup, &transfer, trailer, source->capacity, error);
    }
    if (status == WAL_OK) {
        status = sync_file(backup, &transfer, error);
    }
    end(backup, &transfer);
    return status;
}
