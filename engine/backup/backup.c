/*
 * backup.c - copies a store while it is written to (backup.h).
 *
 * A segment that has ended never changes, and compaction is kept out; of the
 * tail segment the bytes below the durable end never change. So each file can
 * be copied without a lock.
 */
#include "engine/backup/backup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backup/backup_state.h"
#include "engine/base/error.h"
#include "engine/process/control_lock.h"
#include "format/bytes/assert.h"

enum {
    COPY_SIZE = 1024 * 1024
};

/* A segment as it was when the backup began. */
struct source {
    uint64_t id;
    uint64_t salt;
    uint64_t capacity;
    uint64_t end;  /* of the bytes to copy; the rest of the file is zeros */
    bool is_whole; /* it has ended: all of its bytes are copied */
    char path[WAL__PATH_MAX];
};

struct backup {
    struct wal__core *core;
    struct wal__env dest;
    struct wal__backup_state state; /* of the last complete backup */
    struct wal__file *lock;         /* LOCK of the copy */
    struct wal__backup_result *result;
    uint8_t *bytes; /* COPY_SIZE */
};

/* --- files -------------------------------------------------------------- */

static enum wal_status fail_file(const char *path, enum wal_status status,
                                 int err, const char *what,
                                 struct wal_error *error)
{
    return wal__fail_at(error, status, err, path, 0, "cannot %s", what);
}

static void dest_path(const struct backup *backup, const char *name,
                      char out[WAL__PATH_MAX])
{
    int size = snprintf(out, WAL__PATH_MAX, "%s/%s", backup->dest.root, name);

    WAL__ASSERT(size > 0 && size < WAL__PATH_MAX);
}

/* Copies [from, to) of a file to the same place of another one. */
static enum wal_status copy_range(struct backup *backup, struct wal__file *in,
                                  struct wal__file *out, uint64_t from,
                                  uint64_t to, int *err)
{
    const struct wal__io *io = backup->dest.io;

    while (from < to) {
        size_t size =
            to - from < COPY_SIZE ? (size_t)(to - from) : (size_t)COPY_SIZE;
        struct iovec iov;
        size_t got = 0;
        enum wal_status status =
            wal__io_read_full(io, in, backup->bytes, size, from, &got, err);

        if (status == WAL_OK && got < size) {
            status = WAL_EIO;
        }
        iov.iov_base = backup->bytes;
        iov.iov_len = size;
        if (status == WAL_OK) {
            status = wal__io_write_full(io, out, &iov, 1, from, err);
        }
        if (status != WAL_OK) {
            return status;
        }
        backup->result->bytes += size;
        from += size;
    }
    return WAL_OK;
}

/* Copies a segment from an offset on to a file of the copy, and syncs it. */
static enum wal_status copy_segment(struct backup *backup,
                                    const struct source *source,
                                    const char *path, int flags, uint64_t from,
                                    struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    struct wal__file *in = NULL;
    struct wal__file *out = NULL;
    int err = 0;
    enum wal_status status = io->open(io->ctx, source->path, 0, &in, &err);

    if (status != WAL_OK) {
        return fail_file(source->path, status, err, "open the segment", error);
    }
    status = io->open(io->ctx, path, WAL__IO_WRITE | flags, &out, &err);
    if (status == WAL_OK) {
        status = io->allocate(io->ctx, out, source->capacity, &err);
    }
    if (status == WAL_OK) {
        status = copy_range(backup, in, out, from, source->end, &err);
    }
    if (status == WAL_OK) {
        status = io->sync(io->ctx, out, &err);
    }
    if (out != NULL) {
        io->close(io->ctx, out);
    }
    io->close(io->ctx, in);
    backup->result->copied++;
    return status == WAL_OK
               ? WAL_OK
               : fail_file(path, status, err, "write the copy", error);
}

/* --- segments ----------------------------------------------------------- */

/* Reads what the copy has of a segment. WAL_ENOTFOUND: nothing that is whole,
 * or another file. */
static enum wal_status open_copy(const struct backup *backup,
                                 const struct wal__log *log,
                                 const struct source *source,
                                 struct wal__segment **copy)
{
    enum wal_status status =
        wal__segment_open(&backup->dest, log->directory, source->id, log->uuid,
                          log->class, copy, NULL);

    if (status == WAL_OK && (*copy)->header.salt != source->salt) {
        wal__segment_close(*copy);
        *copy = NULL;
        status = WAL_ENOTFOUND;
    }
    return status == WAL_OK || status == WAL_ENOMEM ? status : WAL_ENOTFOUND;
}

/* Copies the whole segment under a temporary name, and renames it. */
static enum wal_status replace_copy(struct backup *backup,
                                    const struct wal__log *log,
                                    const struct source *source,
                                    struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    char temporary[WAL__PATH_MAX + 8];
    enum wal_status status;
    int err = 0;

    wal__segment_path(&backup->dest, log->directory, source->id, path);
    (void)snprintf(temporary, sizeof(temporary), "%s.new", path);
    status = copy_segment(backup, source, temporary,
                          WAL__IO_CREATE | WAL__IO_TRUNCATE, 0, error);
    if (status != WAL_OK) {
        return status;
    }
    status = io->rename(io->ctx, temporary, path, &err);
    if (status == WAL_OK) {
        *strrchr(path, '/') = '\0';
        status = io->sync_directory(io->ctx, path, &err);
    }
    return status == WAL_OK
               ? WAL_OK
               : fail_file(path, status, err, "rename the copy", error);
}

/* Brings the copy of one segment up to date. */
static enum wal_status back_up_segment(struct backup *backup,
                                       const struct wal__log *log,
                                       const struct source *source,
                                       struct wal_error *error)
{
    const struct wal__backup_end *end = &backup->state.ends[log->log_id];
    struct wal__segment *copy = NULL;
    enum wal_status status = open_copy(backup, log, source, &copy);
    bool is_sealed = status == WAL_OK && copy->sealed;
    char path[WAL__PATH_MAX];

    wal__segment_close(copy);
    if (status == WAL_ENOMEM) {
        return wal__no_memory(error);
    }
    backup->result->segments++;
    if (status == WAL_OK && end->salt == source->salt && end->end != 0) {
        /* It was the tail segment of the last backup. */
        if (end->end >= source->end) {
            return WAL_OK;
        }
        wal__segment_path(&backup->dest, log->directory, source->id, path);
        return copy_segment(backup, source, path, 0, end->end, error);
    }
    if (status == WAL_OK && source->is_whole && is_sealed) {
        return WAL_OK;
    }
    return replace_copy(backup, log, source, error);
}

static void describe(const struct wal__log *log,
                     const struct wal__segment *segment, uint64_t durable,
                     struct source *source)
{
    source->id = segment->id;
    source->salt = segment->header.salt;
    source->capacity = segment->header.capacity;
    source->is_whole = wal__position_segment(durable) > segment->id;
    source->end = source->is_whole ? segment->header.capacity
                                   : wal__position_offset(durable);
    memcpy(source->path, segment->path, sizeof(source->path));
    WAL__ASSERT(source->end <= source->capacity);
    (void)log;
}

/* The segments of a stream up to its durable end, as struct source. */
static enum wal_status list_sources(const struct wal__log *log,
                                    uint64_t durable, struct wal__buf *sources,
                                    struct wal_error *error)
{
    uint32_t count = wal__log_segment_count(log);

    for (uint32_t i = 0; i < count; i++) {
        const struct wal__segment *segment = wal__log_segment_at(log, i);
        struct source source;

        if (segment->id > wal__position_segment(durable)) {
            break;
        }
        describe(log, segment, durable, &source);
        if (wal__buf_append(sources, &source, sizeof(source)) != WAL_OK) {
            return wal__no_memory(error);
        }
    }
    return WAL_OK;
}

static const struct source *source_at(const struct wal__buf *sources, size_t i)
{
    return (const struct source *)(const void *)sources->data + i;
}

/* Removes the segments of the copy that the store does not have: compaction
 * replaced them. */
static enum wal_status remove_others(const struct backup *backup,
                                     const struct wal__log *log,
                                     const struct wal__buf *sources,
                                     struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    struct wal__log dest = *log;
    size_t count = sources->size / sizeof(struct source);
    struct wal__buf ids;
    enum wal_status status;
    size_t at = 0;
    int err = 0;

    dest.env = &backup->dest;
    wal__buf_init(&ids, backup->dest.heap);
    status = wal__log_list_ids(&dest, &ids, error);
    for (size_t i = 0; i < ids.size && status == WAL_OK;
         i += sizeof(uint64_t)) {
        char path[WAL__PATH_MAX];
        uint64_t id;

        memcpy(&id, ids.data + i, sizeof(id));
        while (at < count && source_at(sources, at)->id < id) {
            at++;
        }
        if (at < count && source_at(sources, at)->id == id) {
            continue;
        }
        wal__segment_path(&backup->dest, log->directory, id, path);
        status = io->unlink(io->ctx, path, &err);
        if (status != WAL_OK) {
            fail_file(path, status, err, "remove a replaced segment", error);
        }
    }
    wal__buf_deinit(&ids);
    return status;
}

static enum wal_status back_up_stream(struct backup *backup,
                                      const struct wal__log *log,
                                      uint64_t durable, struct wal_error *error)
{
    struct wal__backup_end *end = &backup->state.ends[log->log_id];
    struct wal__buf sources;
    enum wal_status status;
    size_t count;

    wal__buf_init(&sources, backup->dest.heap);
    status =
        durable == 0 ? WAL_OK : list_sources(log, durable, &sources, error);
    count = sources.size / sizeof(struct source);
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        status = back_up_segment(backup, log, source_at(&sources, i), error);
    }
    if (status == WAL_OK && count > 0) {
        const struct source *last = source_at(&sources, count - 1);

        status = remove_others(backup, log, &sources, error);
        end->id = last->id;
        end->salt = last->salt;
        end->end = last->end;
    }
    wal__buf_deinit(&sources);
    return status;
}

/* --- the copy ----------------------------------------------------------- */

/* Refuses a copy to which records were appended since. */
static enum wal_status check_untouched(const struct backup *backup,
                                       struct wal_error *error)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_READ_ONLY |
                                                      WAL_OPEN_NETWORK_FS};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_store *store = NULL;
    enum wal_status status =
        wal_open(backup->dest.root, &options, &store, error);

    if (status == WAL_OK) {
        status = wal_store_get_info(store, &info, error);
        (void)!wal_close(store, NULL);
    }
    if (status == WAL_OK && info.last_sequence > backup->state.last_sequence) {
        status = wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                              "records were appended to the copy; back up to "
                              "another directory");
    }
    return status;
}

/* Opens the copy, or creates its directories. *exists: it has a MANIFEST. */
static enum wal_status open_dest(struct backup *backup, bool *exists,
                                 struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    struct wal__manifest manifest;
    char path[WAL__PATH_MAX];
    bool ignored = false;
    enum wal_status status = wal__manifest_probe(&backup->dest, exists, error);
    int err = 0;

    if (status == WAL_OK && !*exists) {
        return wal__manifest_make_directories(&backup->dest, error);
    }
    if (status == WAL_OK) {
        status = wal__manifest_read(&backup->dest, &manifest, &ignored, error);
    }
    if (status == WAL_OK && memcmp(manifest.uuid, backup->core->manifest.uuid,
                                   sizeof(manifest.uuid)) != 0) {
        status = wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                              "another store is there");
    }
    wal__backup_state_read(&backup->dest, backup->core->log.uuid,
                           &backup->state);
    if (status == WAL_OK && backup->state.last_sequence != 0) {
        status = check_untouched(backup, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    dest_path(backup, "LOCK", path);
    status = io->open(io->ctx, path, WAL__IO_WRITE | WAL__IO_CREATE,
                      &backup->lock, &err);
    if (status == WAL_OK) {
        status = io->lock(io->ctx, backup->lock, WAL__LOCK_PARTICIPANT,
                          WAL__IO_LOCK_EXCLUSIVE, &err);
    }
    return status == WAL_OK
               ? WAL_OK
               : fail_file(path, status, err, "lock the copy", error);
}

/* Makes the directory of the blob stream, when the store has one. */
static enum wal_status make_pack(const struct backup *backup,
                                 struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    dest_path(backup, "pack", path);
    status = io->make_directory(io->ctx, path, &err);
    return status == WAL_OK || status == WAL_EEXISTS
               ? WAL_OK
               : fail_file(path, status, err, "create the directory", error);
}

static enum wal_status copy_streams(struct backup *backup,
                                    struct wal_error *error)
{
    struct wal__core *core = backup->core;
    enum wal_status status = wal__core_read_lock(core, error);
    uint64_t durable = 0;
    uint64_t pack = 0;

    if (status != WAL_OK) {
        return status;
    }
    durable = atomic_load(&core->log.shared->durable);
    backup->state.last_sequence = core->log.last_sequence;
    wal__core_unlock(core);
    /* What the log refers to was durable before. */
    pack = atomic_load(&core->control.page->logs[WAL__LOG_ID_PACK].durable);
    if (pack != 0) {
        status = make_pack(backup, error);
        if (status == WAL_OK) {
            /* Learns of segments that other processes began. */
            status = wal__blob_store_read_lock(&core->blobs, error);
        }
        if (status == WAL_OK) {
            wal__blob_store_unlock(&core->blobs);
            status = back_up_stream(backup, &core->blobs.log, pack, error);
        }
    }
    return status == WAL_OK ? back_up_stream(backup, &core->log, durable, error)
                            : status;
}

static enum wal_status back_up(struct backup *backup, struct wal_error *error)
{
    struct wal__core *core = backup->core;
    bool exists = false;
    enum wal_status status = open_dest(backup, &exists, error);

    if (status == WAL_OK && exists) {
        status = wal__manifest_copy(&backup->dest, &core->manifest, error);
    }
    if (status == WAL_OK) {
        status = copy_streams(backup, error);
    }
    if (status == WAL_OK && !exists) {
        status = wal__manifest_copy(&backup->dest, &core->manifest, error);
    }
    if (status == WAL_OK) {
        backup->result->last_sequence = backup->state.last_sequence;
        status = wal__backup_state_write(&backup->dest, core->log.uuid,
                                         &backup->state, error);
    }
    return status;
}

enum wal_status wal__backup(struct wal__core *core, const char *path,
                            struct wal__backup_result *result,
                            struct wal_error *error)
{
    struct backup backup = {.core = core, .dest = core->env, .result = result};
    const struct wal__io *io = core->env.io;
    size_t size = strlen(path);
    enum wal_status status;
    int err = 0;

    memset(result, 0, sizeof(*result));
    if (size == 0 || size >= WAL__PATH_MAX - 64) {
        return wal__invalid(error, "the path of the copy is not valid");
    }
    memcpy(backup.dest.root, path, size + 1);
    backup.dest.read_only = false;
    status = wal__committer_sync(&core->committer, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__control_set_lock(&core->control, WAL__LOCK_COMPACT,
                                   WAL__IO_LOCK_EXCLUSIVE, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, core->env.root, 0,
                            "the store is being compacted or backed up");
    }
    backup.bytes = wal__heap_alloc(core->env.heap, COPY_SIZE);
    status =
        backup.bytes == NULL ? wal__no_memory(error) : back_up(&backup, error);
    if (backup.lock != NULL) {
        io->close(io->ctx, backup.lock);
    }
    wal__heap_free(core->env.heap, backup.bytes);
    (void)!wal__control_set_lock(&core->control, WAL__LOCK_COMPACT,
                                 WAL__IO_LOCK_NONE, &err);
    return status;
}
