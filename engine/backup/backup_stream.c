/*
 * backup_stream.c - brings a stream of the copy up to date, as planned.
 *
 * Invariant: under the guard nothing in the chain changes but names of files
 * with equal groups. After it only files that the chain does not name are
 * removed.
 */
#include <stdio.h>
#include <string.h>

#include "engine/backup/backup_job.h"
#include "engine/base/error.h"
#include "engine/log/index_file.h"
#include "format/bytes/assert.h"

static enum wal_status write_source(struct backup *backup,
                                    struct backup_stream *stream,
                                    const struct backup_source *source,
                                    struct wal_error *error)
{
    switch (source->action) {
    case BACKUP_KEEP:
    case BACKUP_SEAL:
        break;
    case BACKUP_EXTEND:
        return wal__backup_extend_segment(backup, stream, source, error);
    case BACKUP_COPY:
        /* The guard may end the chain within a segment that is sealed later:
         * its index would name what follows. */
        return wal__backup_copy_segment(
            backup, stream, source, source->is_sealed && !source->seals, error);
    }
    return WAL_OK;
}

/* Writes the segments that need it; first the one with a doubtful name, which
 * would be forgotten otherwise. */
static enum wal_status write_sources(struct backup *backup,
                                     struct backup_stream *stream,
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

static enum wal_status seal_sources(struct backup *backup,
                                    struct backup_stream *stream,
                                    struct wal_error *error)
{
    size_t count = backup_source_count(stream);
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        const struct backup_source *source = backup_source_at(stream, i);

        if (source->seals) {
            status = wal__backup_seal_segment(backup, stream, source, error);
        }
    }
    return status;
}

static enum wal_status remove_file(struct backup *backup, const char *path,
                                   struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    int err = 0;
    enum wal_status status = io->unlink(io->ctx, path, &err);

    return status == WAL_OK || status == WAL_ENOTFOUND
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0,
                              "cannot remove a file of the copy");
}

/* Removes those of the segments that the store does not have: their files in
 * index/ first, which would be evidence of a loss. */
static enum wal_status remove_segments(struct backup *backup,
                                       struct backup_stream *stream,
                                       const struct wal__buf *ids,
                                       struct wal_error *error)
{
    char path[WAL__PATH_MAX];
    enum wal_status status = WAL_OK;

    for (int pass = 0; pass < 2; pass++) {
        bool is_index = pass == 0;

        for (size_t i = 0; i < ids->size && status == WAL_OK;
             i += sizeof(uint64_t)) {
            uint64_t id;

            memcpy(&id, ids->data + i, sizeof(id));
            if (wal__backup_find_source(stream, id) != NULL) {
                continue;
            }
            if (is_index) {
                wal__index_path(&backup->dest, stream->dest.log_id, id, path);
            } else {
                wal__segment_path(&backup->dest, stream->dest.directory, id,
                                  path);
            }
            status = remove_file(backup, path, error);
            backup->result->removed += !is_index;
        }
        if (status == WAL_OK) {
            status = wal__backup_sync_directory(
                backup, is_index ? "index" : stream->dest.directory, error);
        }
    }
    return status;
}

/* Removes the files below the newest segment that the store does not have. */
static enum wal_status remove_replaced(struct backup *backup,
                                       struct backup_stream *stream,
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

/* Removes what a process that was killed was writing; best effort. */
static enum wal_status remove_temporary(void *arg, const char *name)
{
    const struct wal__log *dest = arg;
    const struct wal__io *io = dest->env->io;
    size_t size = strlen(name);
    char path[WAL__PATH_MAX];
    int err = 0;

    if (size > 8 && strcmp(name + size - 8, ".seg.new") == 0) {
        int length = snprintf(path, sizeof(path), "%s/%s/%s", dest->env->root,
                              dest->directory, name);

        if (length > 0 && length < (int)sizeof(path)) {
            (void)!io->unlink(io->ctx, path, &err);
        }
    }
    return WAL_OK;
}

static void remove_temporaries(struct backup_stream *stream)
{
    const struct wal__io *io = stream->dest.env->io;
    char path[WAL__PATH_MAX];
    int err = 0;
    int size = snprintf(path, sizeof(path), "%s/%s", stream->dest.env->root,
                        stream->dest.directory);

    WAL__ASSERT(size > 0 && size < (int)sizeof(path));
    (void)!io->list(io->ctx, path, remove_temporary, &stream->dest, &err);
}

enum wal_status wal__backup_apply(struct backup *backup,
                                  struct backup_stream *stream,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (!stream->changes) {
        return WAL_OK;
    }
    remove_temporaries(stream);
    if (stream->needs_guard) {
        status = wal__backup_guard_install(backup, stream, error);
    }
    if (status == WAL_OK) {
        status = write_sources(backup, stream, error);
    }
    if (status == WAL_OK && stream->repeats.size > 0) {
        status = remove_segments(backup, stream, &stream->repeats, error);
    }
    if (status == WAL_OK && stream->needs_guard) {
        status = wal__backup_guard_remove(backup, stream, error);
    }
    if (status == WAL_OK) {
        status = seal_sources(backup, stream, error);
    }
    if (status == WAL_OK && stream->removals > 0) {
        status = remove_replaced(backup, stream, error);
    }
    return status == WAL_OK ? wal__backup_state_doubt(
                                  &backup->dest, stream->dest.log_id, 0, error)
                            : status;
}
