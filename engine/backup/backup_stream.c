/*
 * backup_stream.c - brings a stream of the copy up to date, as planned.
 *
 * Invariant: under the guard nothing in the chain changes but names of files
 * with equal groups. Shadow segments are those of this backup when it commits.
 * After it only files that the chain does not name are removed.
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
    case BACKUP_SHADOWED:
        break;
    case BACKUP_EXTEND:
        return wal__backup_extend_segment(backup, stream, source, error);
    case BACKUP_COPY:
    case BACKUP_SHADOW:
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
    const struct backup_source *source = wal__backup_find_source(
        removal->stream, wal__segment_parse_name(name, ".next"));
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int length;
    int err = 0;

    if (!is_new && (!is_shadow ||
                    (source != NULL && (source->action == BACKUP_SHADOW ||
                                        source->action == BACKUP_SHADOWED)))) {
        return WAL_OK;
    }
    length = snprintf(path, sizeof(path), "%s/%s/%s", dest->env->root,
                      dest->directory, name);
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
    int size = snprintf(path, sizeof(path), "%s/%s", stream->dest.env->root,
                        stream->dest.directory);

    WAL__ASSERT(size > 0 && size < (int)sizeof(path));
    status = io->list(io->ctx, path, remove_temporary, &removal, &err);
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return wal__fail_at(error, status, err, path, 0,
                            "cannot remove what a backup left");
    }
    return removal.has_shadow ? wal__backup_sync_directory(
                                    backup, stream->dest.directory, error)
                              : WAL_OK;
}

enum wal_status wal__backup_write(struct backup *backup,
                                  struct backup_stream *stream,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (stream->changes || backup->has_shadows) {
        status = remove_temporaries(backup, stream, error);
    }
    if (status == WAL_OK && stream->needs_guard) {
        status = wal__backup_guard_install(backup, stream, error);
    }
    if (status == WAL_OK) {
        status = write_sources(backup, stream, error);
    }
    return status == WAL_OK && stream->repeats.size > 0
               ? remove_segments(backup, stream, &stream->repeats, error)
               : status;
}

enum wal_status wal__backup_tidy(struct backup *backup,
                                 struct backup_stream *stream,
                                 struct wal_error *error)
{
    enum wal_status status = seal_sources(backup, stream, error);

    if (status == WAL_OK && stream->removals > 0) {
        status = remove_replaced(backup, stream, error);
    }
    return status == WAL_OK && stream->changes
               ? wal__backup_state_doubt(&backup->dest, stream->dest.log_id, 0,
                                         error)
               : status;
}
