/*
 * backup_copy.c - reads the store of a backup and writes its copy (backup.h).
 *
 * What is below the durable ends of both streams never changes, and compaction is kept out, so that
 * the files are copied without a lock.
 *
 * The guard of a stream of the copy is a segment with an id above all others, whose OPEN ends the
 * chain where the last backup did. What is written to the copy then is not in the chain until it is
 * removed. Where the newest segment is rewritten, the guard follows the original, as every other
 * one would.
 *
 * Invariant: under the guard nothing in the chain changes but names of files with equal groups.
 * Shadow segments are those of this backup when it commits. After it only files that the chain does
 * not name are removed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/care/backup.h"
#include "engine/log/group.h"
#include "engine/log/index_file.h"
#include "engine/log/log.h"
#include "engine/log/segment.h"
#include "engine/store/copy_state.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"

/* --- what never changes --------------------------------------------------- */

uint64_t wal__frozen_end(const struct wal__log *log)
{
    uint64_t durable = atomic_load(&log->shared->durable);
    uint64_t end = atomic_load(&log->end);

    if (log->tail_segment == NULL) {
        return 0;
    }
    return durable > end ? end : durable;
}

uint64_t wal__frozen_segment_end(const struct wal__segment *segment,
                                 const struct wal__segment *next)
{
    if (next->has_open && next->open.previous_id == segment->id) {
        return next->open.previous_end;
    }
    return segment->sealed ? segment->trailer.end : segment->header.capacity;
}

/* --- the store ------------------------------------------------------------ */

enum { BUSY_POLL_NS = 10 * 1000 * 1000 };

struct backup_source *wal__backup_find_source(const struct backup_stream *stream, uint64_t id)
{
    size_t count = backup_source_count(stream);
    size_t rank = wal__lower_bound(stream->sources.data, count, sizeof(struct backup_source),
                                   offsetof(struct backup_source, id), id);

    return rank < count && backup_source_at(stream, rank)->id == id ? backup_source_at(stream, rank)
                                                                    : NULL;
}

enum wal_status wal__backup_open_source(const struct backup *backup,
                                        const struct backup_stream *stream,
                                        const struct backup_source *source,
                                        struct wal__segment **segment, struct wal_error *error)
{
    enum wal_status status = wal__log_open_with_salt(stream->log, &backup->source, source->id,
                                                     source->salt, segment, error);

    return status == WAL_ENOTFOUND
               ? wal__fail(error, WAL_ECORRUPT,
                           "segment %016" PRIx64 ", which is to be copied, is missing", source->id)
               : status;
}

static enum wal_status describe(const struct backup *backup, const struct backup_stream *stream,
                                struct wal__segment *segment, uint64_t end, bool is_newest,
                                struct backup_source *source, struct wal_error *error)
{
    struct wal__segment *opened = NULL;
    enum wal_status status;

    memset(source, 0, sizeof(*source));
    source->id = segment->id;
    source->salt = segment->header.salt;
    source->capacity = segment->header.capacity;
    source->is_newest = is_newest;
    source->is_rewritten = wal__segment_is_rewritten(&segment->header);
    source->first_id = source->is_rewritten ? segment->header.rewrite.first_id : segment->id;
    source->last_sequence = segment->header.rewrite.last_sequence;
    source->end = end;
    source->is_sealed = segment->sealed && segment->trailer.end == end;
    if (source->is_rewritten) {
        source->end = segment->sealed ? segment->trailer.end : source->capacity;
        source->is_sealed = segment->sealed;
    }
    if (is_newest || source->is_sealed || source->is_rewritten) {
        source->is_sealed = source->is_sealed && !is_newest;
        return WAL_OK;
    }
    /* Another process may have sealed it since it was opened. */
    status = wal__backup_open_source(backup, stream, source, &opened, error);
    if (status == WAL_OK) {
        source->is_sealed = opened->sealed && opened->trailer.end == end;
        wal__segment_close(opened);
    }
    return status;
}

/* Lists the segments up to a position. */
static enum wal_status list(struct backup *backup, struct backup_stream *stream, uint64_t position,
                            struct wal_error *error)
{
    const struct wal__log *log = stream->log;
    uint32_t count = wal__log_segment_count(log);
    uint64_t last = wal__position_segment(position);

    if (position == 0 && count > 0) {
        return wal__fail(error, WAL_EBUSY, "another process is opening the store: try again");
    }
    for (uint32_t i = 0; i < count; i++) {
        struct wal__segment *segment = wal__log_segment_at(log, i);
        bool is_newest = segment->id == last;
        struct backup_source source;
        enum wal_status status;

        if (segment->id > last) {
            break;
        }
        if (!is_newest && i + 1 == count) {
            return wal__fail(error, WAL_EBUSY, "the log goes on meanwhile: try again");
        }
        status =
            describe(backup, stream, segment,
                     is_newest ? wal__position_offset(position)
                               : wal__frozen_segment_end(segment, wal__log_segment_at(log, i + 1)),
                     is_newest, &source, error);
        if (status != WAL_OK) {
            return status;
        }
        if (wal__buf_append(&stream->sources, &source, sizeof(source)) != WAL_OK) {
            return wal__no_memory(error);
        }
    }
    return WAL_OK;
}

/* Finds the last sequence number below the end that is copied, which is not the end of the log. */
static enum wal_status find_sequence(const struct backup *backup, struct backup_stream *stream,
                                     struct wal_error *error)
{
    const struct backup_source *newest = backup_newest_source(stream);
    const struct wal__scan_sink sink = {0};
    struct wal__segment_reader reader;
    struct wal__scan_source source = {&reader, wal__segment_reader_fetch};
    struct wal__scan_start start;
    struct wal__segment *opened = NULL;
    enum wal_status status;

    if (newest == NULL) {
        stream->last_sequence = 0;
        return WAL_OK;
    }
    status = wal__backup_open_source(backup, stream, newest, &opened, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__replay_init_start(opened, &start);
    start.capacity = newest->end;
    start.known_end = newest->end;
    wal__segment_reader_init(&reader, opened);
    wal__scan(&source, &sink, &start, &stream->facts);
    if (stream->facts.verdict == WAL__VERDICT_READ_ERROR) {
        status = wal__fail_at(error, WAL_EIO, reader.sys_errno, opened->path,
                              stream->facts.error_offset, "cannot read the segment");
    }
    stream->last_sequence = stream->facts.last_sequence;
    memset(&stream->facts, 0, sizeof(stream->facts));
    wal__segment_reader_deinit(&reader);
    wal__segment_close(opened);
    return status;
}

/* The position up to which a log is copied. A handle that only reads, and found no live process,
 * copies what it sees: a copy is to leave nothing out. */
static uint64_t find_end(const struct wal__core *core, const struct wal__log *log)
{
    return core->control.page == &core->control.private_page && log->tail_segment != NULL
               ? atomic_load(&log->end)
               : wal__frozen_end(log);
}

/* WAL_EBUSY: another process is opening the store, or the end is not among the segments any
 * more. */
static enum wal_status freeze(struct backup *backup, struct wal_error *error)
{
    struct wal__core *core = backup->core;
    struct backup_stream *log = &backup->streams[WAL__LOG_ID_LOG];
    struct backup_stream *pack = &backup->streams[WAL__LOG_ID_PACK];
    enum wal_status status = wal__core_read_lock(core, error);
    bool is_end;
    uint64_t end;

    if (status != WAL_OK) {
        return status;
    }
    log->sources.size = 0;
    pack->sources.size = 0;
    log->log = &core->log;
    log->last_sequence = core->log.last_sequence;
    end = find_end(core, &core->log);
    is_end = end == atomic_load(&core->log.end);
    status = list(backup, log, end, error);
    wal__core_unlock(core);
    if (status == WAL_OK && !is_end) {
        status = find_sequence(backup, log, error);
    }
    if (status != WAL_OK || !core->blobs.is_open) {
        return status;
    }
    /* After the log: what it refers to was durable before. */
    status = wal__blob_store_read_lock(&core->blobs, error);
    if (status == WAL_OK) {
        pack->log = &core->blobs.log;
        pack->last_sequence = core->blobs.log.last_sequence;
        end = find_end(core, &core->blobs.log);
        status = list(backup, pack, end, error);
        wal__blob_store_unlock(&core->blobs);
    }
    return status;
}

enum wal_status wal__backup_freeze(struct backup *backup, struct wal_error *error)
{
    const struct wal__env *env = &backup->core->env;
    const uint64_t begin = env->io->monotonic_ns(env->io->ctx);
    const uint64_t limit = (uint64_t)env->lock_timeout_ms * 1000000;
    const uint32_t never = 0;
    enum wal_status status;

    /* Compaction is kept out now: what it replaced is found, and no more. */
    wal__core_adopt_files(backup->core);
    for (;;) {
        status = freeze(backup, error);
        if (status != WAL_EBUSY || env->io->monotonic_ns(env->io->ctx) - begin >= limit) {
            return status;
        }
        env->io->futex_wait(env->io->ctx, &never, 0, BUSY_POLL_NS);
    }
}

/* --- segments of the copy ------------------------------------------------- */

/* A segment that is copied. */
struct transfer {
    struct wal__segment *in;
    struct wal__file *out;
    const char *out_path;
    bool has_zeros; /* what is not written reads as zeros */
};

static enum wal_status fail_write(const struct transfer *transfer, enum wal_status status, int err,
                                  struct wal_error *error)
{
    return wal__fail_at(error, status, err, transfer->out_path, 0, "cannot write the copy");
}

static enum wal_status show_progress(struct backup *backup, uint64_t size, struct wal_error *error)
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
static enum wal_status copy_range(struct backup *backup, const struct transfer *transfer,
                                  uint64_t from, uint64_t to, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    enum wal_status status = WAL_OK;

    WAL__ASSERT(from <= to && to <= transfer->in->header.capacity);
    while (from < to && status == WAL_OK) {
        size_t size =
            to - from < WAL__BACKUP_COPY_SIZE ? (size_t)(to - from) : (size_t)WAL__BACKUP_COPY_SIZE;
        struct iovec iov = {backup->bytes, size};
        size_t got = 0;
        int err = 0;

        status = wal__io_read_full(io, transfer->in->file, backup->bytes, size, from, &got, &err);
        if (status != WAL_OK || got < size) {
            return wal__fail_at(error, status == WAL_OK ? WAL_EIO : status, err, transfer->in->path,
                                from, "cannot read the segment");
        }
        if (!transfer->has_zeros || !wal__is_zero(backup->bytes, size)) {
            status = wal__io_write_full(io, transfer->out, &iov, 1, from, &err);
            backup->result->bytes += size;
        }
        status = status == WAL_OK ? show_progress(backup, size, error)
                                  : fail_write(transfer, status, err, error);
        from += size;
    }
    return status;
}

static enum wal_status sync_file(const struct backup *backup, const struct transfer *transfer,
                                 struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    int err = 0;
    enum wal_status status = io->sync(io->ctx, transfer->out, &err);

    return status == WAL_OK ? WAL_OK : fail_write(transfer, status, err, error);
}

static enum wal_status begin(struct backup *backup, struct backup_stream *stream,
                             const struct backup_source *source, const char *path, int flags,
                             struct transfer *transfer, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    int err = 0;
    enum wal_status status = wal__backup_open_source(backup, stream, source, &transfer->in, error);

    transfer->out = NULL;
    transfer->out_path = path;
    transfer->has_zeros = (flags & WAL__IO_TRUNCATE) != 0;
    if (status != WAL_OK) {
        transfer->in = NULL;
        return status;
    }
    status = io->open(io->ctx, path, WAL__IO_WRITE | flags, &transfer->out, &err);
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

/* Syncs "log", "pack" or "index" of the copy. */
static enum wal_status backup_sync_directory(const struct backup *backup, const char *name,
                                             struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__env_path(&backup->dest, path, "%s", name);
    status = io->sync_directory(io->ctx, path, &err);
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0, "cannot sync the directory");
}

/* Gives a segment its name, durably. */
static enum wal_status give_name(struct backup *backup, const struct backup_stream *stream,
                                 const struct backup_source *source, const char *temporary,
                                 struct wal_error *error)
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
        wal__segment_shadow_path(&backup->dest, dest->directory, source->id, path);
    } else {
        wal__segment_path(&backup->dest, dest->directory, source->id, path);
    }
    status = io->rename(io->ctx, temporary, path, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, path, 0, "cannot rename the copy");
    }
    return backup_sync_directory(backup, dest->directory, error);
}

/* Shares the blocks of the whole file where the file system can. */
static bool share(struct backup *backup, const struct transfer *transfer)
{
    const struct wal__io *io = backup->dest.io;
    uint64_t size = transfer->in->header.capacity;
    int ignored = 0;

    if (io->clone == NULL ||
        io->clone(io->ctx, transfer->in->file, transfer->out, &ignored) != WAL_OK) {
        return false;
    }
    backup->result->shared_bytes += size;
    return true;
}

static enum wal_status fill(struct backup *backup, const struct transfer *transfer,
                            const struct backup_source *source, bool whole, struct wal_error *error)
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
    return status == WAL_OK ? copy_range(backup, transfer, 0, source->end, error)
                            : fail_write(transfer, status, err, error);
}

/* Writes the segment anew, and gives it its name, or that of a shadow segment; all of it when
 * `whole`. Until the name is durable the state has doubt about the segment. */
static enum wal_status backup_copy_segment(struct backup *backup, struct backup_stream *stream,
                                           const struct backup_source *source, bool whole,
                                           struct wal_error *error)
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
    status = begin(backup, stream, source, temporary, WAL__IO_CREATE | WAL__IO_TRUNCATE, &transfer,
                   error);
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

/* Writes what follows source->from. */
static enum wal_status backup_extend_segment(struct backup *backup, struct backup_stream *stream,
                                             const struct backup_source *source,
                                             struct wal_error *error)
{
    char path[WAL__PATH_MAX];
    struct transfer transfer;
    enum wal_status status;

    wal__segment_path(&backup->dest, stream->dest.directory, source->id, path);
    status = begin(backup, stream, source, path, 0, &transfer, error);
    if (status == WAL_OK) {
        status = copy_range(backup, &transfer, source->from, source->end, error);
    }
    if (status == WAL_OK) {
        status = sync_file(backup, &transfer, error);
    }
    end(backup, &transfer);
    return status;
}

/* Writes INDEX, SEAL and trailer. */
static enum wal_status backup_seal_segment(struct backup *backup, struct backup_stream *stream,
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
        status = copy_range(backup, &transfer, trailer, source->capacity, error);
    }
    if (status == WAL_OK) {
        status = sync_file(backup, &transfer, error);
    }
    end(backup, &transfer);
    return status;
}

/* --- the directory of the copy -------------------------------------------- */

enum {
    LEVELS = 512 /* of directories above the copy */
};

/* The nearest directory that exists: that of the copy or the one it is in. */
static enum wal_status start_of_walk(const struct backup *backup, char path[WAL__PATH_MAX],
                                     struct wal__io_stat *stat)
{
    const struct wal__io *io = backup->dest.io;
    enum wal_status status;
    char *slash;
    int err = 0;

    memcpy(path, backup->dest.root, WAL__PATH_MAX);
    status = io->path_stat(io->ctx, path, stat, &err);
    if (status != WAL_ENOTFOUND) {
        return status;
    }
    slash = strrchr(path, '/');
    if (slash == NULL) {
        memcpy(path, ".", 2);
    } else {
        slash[slash == path] = '\0';
    }
    return io->path_stat(io->ctx, path, stat, &err);
}

/* Refuses a copy inside the store, or the store itself. */
static enum wal_status check_outside(const struct backup *backup, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    struct wal__io_stat store;
    struct wal__io_stat at;
    struct wal__io_stat last = {0};
    int err = 0;

    if (io->path_stat(io->ctx, backup->source.root, &store, &err) != WAL_OK ||
        start_of_walk(backup, path, &at) != WAL_OK) {
        return WAL_OK; /* the calls after it report why */
    }
    for (int level = 0; level < LEVELS; level++) {
        size_t size = strlen(path);

        if (at.device == store.device && at.inode == store.inode) {
            return wal__invalid(error, "the copy is inside the store: choose a "
                                       "directory outside of it");
        }
        if ((at.device == last.device && at.inode == last.inode) || size + 4 > WAL__PATH_MAX) {
            break;
        }
        memcpy(path + size, "/..", 4);
        last = at;
        if (io->path_stat(io->ctx, path, &at, &err) != WAL_OK) {
            break;
        }
    }
    return WAL_OK;
}

/* Reads the manifest when there is one, of this store. */
static enum wal_status read_manifest(struct backup *backup, struct wal_error *error)
{
    bool read_only = false;
    enum wal_status status = wal__manifest_probe(&backup->dest, &backup->is_store, error);

    if (status != WAL_OK || !backup->is_store) {
        return status;
    }
    status = wal__manifest_read(&backup->dest, &backup->manifest, &read_only, error);
    if (status == WAL_OK && memcmp(backup->manifest.uuid, backup->source_manifest.uuid, 16) != 0) {
        status = wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                              "another store is there; back up to another "
                              "directory");
    }
    if (status == WAL_OK && read_only) {
        status = wal__fail_at(error, WAL_EVERSION, 0, backup->dest.root, 0,
                              "the copy has features that this library cannot "
                              "write");
    }
    return status;
}

static enum wal_status make_directories(const struct backup *backup, struct wal_error *error)
{
    enum wal_status status = wal__manifest_make_directories(&backup->dest, error);

    return status == WAL_ENOTSTORE ? wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                                                  "other files are there, or its parent directory "
                                                  "does not exist: back up to a directory that is "
                                                  "empty, or can be created")
                                   : status;
}

/* No process may have the copy open to write, or be backing up to it. */
static enum wal_status lock_dest(struct backup *backup, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__env_path(&backup->dest, path, "LOCK");
    status = io->open(io->ctx, path, WAL__IO_WRITE | WAL__IO_CREATE, &backup->dest_lock, &err);
    if (status == WAL_OK) {
        status = io->lock(io->ctx, backup->dest_lock, WAL__LOCK_PARTICIPANT, WAL__IO_LOCK_EXCLUSIVE,
                          &err);
    }
    if (status == WAL_ELOCKED) {
        return wal__fail_at(error, status, 0, path, 0, "another process has the copy open");
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_open(error, status, err, path, "cannot lock the copy");
}

/* A directory without a manifest may hold a backup that was interrupted, and no other segments. */
static enum wal_status check_unfinished(struct backup *backup, struct wal_error *error)
{
    for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
        struct wal__buf ids = {0};
        enum wal_status status = wal__log_list_ids(&backup->streams[i].dest, &ids, error);
        bool is_empty = ids.size == 0;

        wal__buf_deinit(&ids);
        if (status != WAL_OK) {
            return status;
        }
        if (!is_empty) {
            return wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                                "segments of a store without a manifest are "
                                "there; back up to another directory");
        }
    }
    return WAL_OK;
}

enum wal_status wal__backup_open_dest(struct backup *backup, struct wal_error *error)
{
    enum wal_status status = check_outside(backup, error);

    if (status == WAL_OK) {
        status = read_manifest(backup, error);
    }
    if (status == WAL_OK && !backup->is_store) {
        status = make_directories(backup, error);
    }
    if (status == WAL_OK) {
        status = lock_dest(backup, error);
    }
    /* Another process may have completed it meanwhile. */
    if (status == WAL_OK) {
        status = read_manifest(backup, error);
    }
    if (status == WAL_OK && backup->is_store && backup->manifest.has_shadows) {
        status = wal__shadow_finish(&backup->dest, &backup->manifest, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__backup_state_read(&backup->dest, backup->source_manifest.uuid, &backup->state);
    for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
        backup->streams[i].state = backup->state.streams[i];
        backup->streams[i].has_state = backup->state.is_valid;
    }
    return backup->is_store || backup->state.is_valid ? WAL_OK : check_unfinished(backup, error);
}

enum wal_status wal__backup_remove_derived(const struct backup *backup, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char paths[1 + WAL__LOG_COUNT][WAL__PATH_MAX];
    bool removed = false;

    wal__env_path(&backup->dest, paths[0], "index/catalogue");
    for (uint32_t i = 0; i < WAL__LOG_COUNT; i++) {
        const struct wal__segment *newest = backup->streams[i].newest;

        wal__index_path(&backup->dest, i, newest == NULL ? 0 : newest->id, paths[1 + i]);
    }
    for (size_t i = 0; i < 1 + WAL__LOG_COUNT; i++) {
        int err = 0;
        enum wal_status status = io->unlink(io->ctx, paths[i], &err);

        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            return wal__fail_at(error, status, err, paths[i], 0,
                                "cannot remove an index of the copy");
        }
        removed |= status == WAL_OK;
    }
    return removed ? backup_sync_directory(backup, "index", error) : WAL_OK;
}

void wal__backup_close_dest(struct backup *backup)
{
    const struct wal__io *io = backup->dest.io;

    if (backup->dest_lock != NULL) {
        io->close(io->ctx, backup->dest_lock);
        backup->dest_lock = NULL;
    }
}

/* --- the guard ------------------------------------------------------------ */

/* Far from the ids of the store, so that a guard can stay while it grows. */
static const uint64_t id_distance = 65536;

static uint64_t guard_id(const struct backup_stream *stream)
{
    uint64_t last = backup_newest_source(stream)->id;

    if (stream->guard != NULL) {
        return stream->guard->id;
    }
    return stream->state.guard_id > last ? stream->state.guard_id : last + id_distance;
}

/* Fills the header: that of a segment of the same version, which is not rewritten. */
static enum wal_status fill_header(struct backup *backup, struct backup_stream *stream,
                                   struct wal__segment_header *header, struct wal_error *error)
{
    struct wal__segment *opened = NULL;
    enum wal_status status = WAL_OK;

    if (stream->newest != NULL) {
        *header = stream->newest->header;
    } else {
        status =
            wal__backup_open_source(backup, stream, backup_newest_source(stream), &opened, error);
        if (status == WAL_OK) {
            *header = opened->header;
            wal__segment_close(opened);
        }
    }
    if (wal__segment_is_rewritten(header)) {
        header->features.incompat &= ~(uint32_t)WAL__INCOMPAT_REWRITTEN;
        header->group_align = backup->core->log.group_align;
        memset(&header->rewrite, 0, sizeof(header->rewrite));
    }
    header->id = stream->state.guard_id;
    header->salt = wal__guard_salt(stream->dest.uuid, header->id);
    header->capacity = WAL__SEGMENT_MIN;
    wal__encrypt_header(backup->dest.keyring, header);
    return status;
}

/* Adds an OPEN that follows the newest segment. */
static enum wal_status add_open(const struct backup_stream *stream, struct wal__regroup *copy,
                                const struct wal__commit_record *commit)
{
    const struct wal__segment *newest = stream->newest;
    const struct wal__rewrite *rewrite = &newest->header.rewrite;
    struct wal__scan_result facts = stream->facts;
    uint64_t end = stream->cut;

    if (wal__segment_is_rewritten(&newest->header)) {
        facts.last_sequence = rewrite->last_sequence;
        facts.chain = rewrite->original_chain;
        end = rewrite->original_end;
    }
    copy->chain = facts.chain;
    return wal__regroup_add_open(copy, newest->id, end, &facts, commit);
}

/* Encodes the guard. */
static enum wal_status build(struct backup *backup, struct backup_stream *stream,
                             struct wal__regroup *copy, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    const struct wal__segment *newest = stream->newest;
    struct wal__commit_record commit = {.epoch = 1, .clock_ms = io->now_ms(io->ctx)};
    enum wal_status status = fill_header(backup, stream, &copy->header, error);

    if (status != WAL_OK) {
        return status;
    }
    if (newest == NULL) {
        status = wal__regroup_add_open(copy, 0, 0, NULL, &commit);
    } else {
        commit.epoch = newest->open.epoch;
        commit.pack_durable = stream->facts.pack_durable;
        status = add_open(stream, copy, &commit);
    }
    if (status == WAL_OK && wal__regroup_end(copy) + WAL__TRAILER_SIZE > copy->header.capacity) {
        status = WAL_ECORRUPT;
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, 0, newest == NULL ? NULL : newest->path,
                                           0, "cannot keep the end of the copy");
}

/* Makes a guard the newest segment of the copy, durably. */
static enum wal_status backup_guard_install(struct backup *backup, struct backup_stream *stream,
                                            struct wal_error *error)
{
    struct wal__regroup copy;
    enum wal_status status;

    WAL__ASSERT(stream->state.guard_id == guard_id(stream));
    wal__regroup_init(&copy, &backup->dest);
    status = build(backup, stream, &copy, error);
    if (status == WAL_OK) {
        status = wal__segment_install(&backup->dest, stream->dest.directory, NULL, &copy.header,
                                      copy.body.data, copy.body.size, error);
    }
    backup->result->bytes += copy.body.size + WAL__SEGMENT_HEADER_SIZE;
    wal__regroup_deinit(&copy);
    return status;
}

void wal__backup_guard_name(struct backup_stream *stream)
{
    stream->state.guard_id = guard_id(stream);
}

enum wal_status wal__backup_guard_remove(struct backup *backup, struct backup_stream *stream,
                                         struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    int err = 0;
    enum wal_status status =
        wal__backup_state_doubt(&backup->dest, stream->dest.log_id, stream->state.guard_id, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__segment_path(&backup->dest, stream->dest.directory, stream->state.guard_id, path);
    status = io->unlink(io->ctx, path, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, path, 0, "cannot complete the copy");
    }
    return backup_sync_directory(backup, stream->dest.directory, error);
}

/* --- a stream of the copy ------------------------------------------------- */

static enum wal_status write_source(struct backup *backup, struct backup_stream *stream,
                                    const struct backup_source *source, struct wal_error *error)
{
    switch (source->action) {
    case BACKUP_KEEP:
    case BACKUP_SEAL:
    case BACKUP_SHADOWED:
        break;
    case BACKUP_EXTEND:
        return backup_extend_segment(backup, stream, source, error);
    case BACKUP_COPY:
    case BACKUP_SHADOW:
        /* The guard may end the chain within a segment that is sealed later: its index would name
         * what follows. */
        return backup_copy_segment(backup, stream, source, source->is_sealed && !source->seals,
                                   error);
    }
    return WAL_OK;
}

/* Writes the segments that need it; first the one with a doubtful name, which would be forgotten
 * otherwise. */
static enum wal_status write_sources(struct backup *backup, struct backup_stream *stream,
                                     struct wal_error *error)
{
    size_t count = backup_source_count(stream);
    uint64_t doubt = stream->state.doubt;
    enum wal_status status = WAL_OK;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < count && status == WAL_OK; i++) {
            const struct backup_source *source = backup_source_at(stream, i);

            if ((source->id == doubt) == (pass == 0)) {
                status = write_source(backup, stream, source, error);
            }
        }
    }
    return status;
}

static enum wal_status seal_sources(struct backup *backup, struct backup_stream *stream,
                                    struct wal_error *error)
{
    size_t count = backup_source_count(stream);
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        const struct backup_source *source = backup_source_at(stream, i);

        if (source->seals) {
            status = backup_seal_segment(backup, stream, source, error);
        }
    }
    return status;
}

static enum wal_status remove_file(struct backup *backup, const char *path, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    int err = 0;
    enum wal_status status = io->unlink(io->ctx, path, &err);

    return status == WAL_OK || status == WAL_ENOTFOUND
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0, "cannot remove a file of the copy");
}

/* Removes those of the segments that the store does not have: their files in index/ first, which
 * would be evidence of a loss. */
static enum wal_status remove_segments(struct backup *backup, struct backup_stream *stream,
                                       const struct wal__buf *ids, struct wal_error *error)
{
    char path[WAL__PATH_MAX];
    enum wal_status status = WAL_OK;

    for (int pass = 0; pass < 2; pass++) {
        bool is_index = pass == 0;

        for (size_t i = 0; i < ids->size && status == WAL_OK; i += sizeof(uint64_t)) {
            uint64_t id;

            memcpy(&id, ids->data + i, sizeof(id));
            if (wal__backup_find_source(stream, id) != NULL) {
                continue;
            }
            if (is_index) {
                wal__index_path(&backup->dest, stream->dest.log_id, id, path);
            } else {
                wal__segment_path(&backup->dest, stream->dest.directory, id, path);
            }
            status = remove_file(backup, path, error);
            backup->result->removed += !is_index;
        }
        if (status == WAL_OK) {
            status =
                backup_sync_directory(backup, is_index ? "index" : stream->dest.directory, error);
        }
    }
    return status;
}

/* Removes the files below the newest segment that the store does not have. */
static enum wal_status remove_replaced(struct backup *backup, struct backup_stream *stream,
                                       struct wal_error *error)
{
    uint64_t last = backup_newest_source(stream)->id;
    struct wal__buf ids = {0};
    enum wal_status status = wal__log_list_ids(&stream->dest, &ids, error);
    size_t count = 0;

    while (count < ids.size) {
        uint64_t id;

        memcpy(&id, ids.data + count, sizeof(id));
        if (id >= last) {
            break;
        }
        count += sizeof(id);
    }
    ids.size = count;
    if (status == WAL_OK) {
        status = remove_segments(backup, stream, &ids, error);
    }
    wal__buf_deinit(&ids);
    return status;
}

/* Files that an interrupted backup left. */
struct removal {
    const struct backup *backup;
    const struct backup_stream *stream;
    bool has_shadow; /* a shadow segment was removed */
};

/* Best effort, but for shadow segments that are not of this backup. */
static enum wal_status remove_temporary(void *arg, const char *name)
{
    struct removal *removal = arg;
    const struct wal__log *dest = &removal->stream->dest;
    const struct wal__io *io = dest->env->io;
    size_t size = strlen(name);
    bool is_new = size > 8 && strcmp(name + size - 8, ".seg.new") == 0;
    bool is_shadow = size > 5 && strcmp(name + size - 5, ".next") == 0;
    const struct backup_source *source =
        wal__backup_find_source(removal->stream, wal__segment_parse_name(name, ".next"));
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int length;
    int err = 0;

    if (!is_new && (!is_shadow || (source != NULL && (source->action == BACKUP_SHADOW ||
                                                      source->action == BACKUP_SHADOWED)))) {
        return WAL_OK;
    }
    length = snprintf(path, sizeof(path), "%s/%s/%s", dest->env->root, dest->directory, name);
    if (length <= 0 || length >= (int)sizeof(path)) {
        return WAL_OK;
    }
    status = io->unlink(io->ctx, path, &err);
    removal->has_shadow |= is_shadow;
    return is_new || status == WAL_ENOTFOUND ? WAL_OK : status;
}

static enum wal_status remove_temporaries(const struct backup *backup,
                                          const struct backup_stream *stream,
                                          struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    struct removal removal = {.backup = backup, .stream = stream};
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__env_path(stream->dest.env, path, "%s", stream->dest.directory);
    status = io->list(io->ctx, path, remove_temporary, &removal, &err);
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return wal__fail_at(error, status, err, path, 0, "cannot remove what a backup left");
    }
    return removal.has_shadow ? backup_sync_directory(backup, stream->dest.directory, error)
                              : WAL_OK;
}

enum wal_status wal__backup_write(struct backup *backup, struct backup_stream *stream,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (stream->changes || backup->has_shadows) {
        status = remove_temporaries(backup, stream, error);
    }
    if (status == WAL_OK && stream->needs_guard) {
        status = backup_guard_install(backup, stream, error);
    }
    if (status == WAL_OK) {
        status = write_sources(backup, stream, error);
    }
    return status == WAL_OK && stream->repeats.size > 0
               ? remove_segments(backup, stream, &stream->repeats, error)
               : status;
}

enum wal_status wal__backup_tidy(struct backup *backup, struct backup_stream *stream,
                                 struct wal_error *error)
{
    enum wal_status status = seal_sources(backup, stream, error);

    if (status == WAL_OK && stream->removals > 0) {
        status = remove_replaced(backup, stream, error);
    }
    return status == WAL_OK && stream->changes
               ? wal__backup_state_doubt(&backup->dest, stream->dest.log_id, 0, error)
               : status;
}
