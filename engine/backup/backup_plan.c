/*
 * backup_plan.c - what is done with each segment (SPEC.md 2.10, 3.5).
 *
 * Invariant: a segment below the newest one of the copy is complete, and its
 * name durable, unless the state has doubt about it.
 */
#include <string.h>

#include "engine/backup/backup_job.h"
#include "engine/base/error.h"
#include "format/bytes/assert.h"

static bool has_file(const struct backup_stream *stream, uint64_t id)
{
    size_t low = 0;
    size_t high = stream->ids.size / sizeof(id);

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t at;

        memcpy(&at, stream->ids.data + middle * sizeof(at), sizeof(at));
        if (at == id) {
            return true;
        }
        if (at < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

/* Plans the segment that was the newest one. */
static void plan_newest(const struct backup_stream *stream,
                        const struct wal__segment *copy,
                        struct backup_source *source)
{
    if (stream->guard != NULL || !stream->is_exact ||
        stream->cut > source->end || (copy->sealed && !source->is_sealed)) {
        source->action = BACKUP_COPY;
    } else if (stream->cut < source->end) {
        source->action = BACKUP_EXTEND;
        source->from = stream->cut;
    } else if (source->is_sealed && !copy->sealed) {
        source->action = BACKUP_SEAL;
    }
}

/* Plans a segment whose file the copy has. */
static void plan_present(const struct backup_stream *stream,
                         const struct wal__segment *copy,
                         struct backup_source *source)
{
    uint64_t newest = stream->newest == NULL ? 0 : stream->newest->id;

    if (stream->state.doubt == source->id || !copy->has_open) {
        source->action = BACKUP_COPY;
    } else if (source->id == newest) {
        plan_newest(stream, copy, source);
    } else if (source->id > newest) {
        /* Left by a backup that was interrupted. */
        source->action =
            source->is_sealed && copy->sealed ? BACKUP_KEEP : BACKUP_COPY;
    } else if (source->is_sealed && !copy->sealed) {
        source->action = BACKUP_SEAL;
    }
}

/* Opens the segment of the copy; NULL: it has none with this salt. */
static enum wal_status open_copy(const struct wal__env *env,
                                 const struct backup_stream *stream,
                                 const struct backup_source *source,
                                 struct wal__segment **copy,
                                 struct wal_error *error)
{
    const struct wal__log *dest = &stream->dest;
    enum wal_status status = wal__segment_open(
        env, dest->directory, source->id, dest->uuid, dest->class, copy, error);

    if (status == WAL_OK && (*copy)->header.salt != source->salt) {
        wal__segment_close(*copy);
        status = WAL_ENOTFOUND;
    }
    if (status != WAL_OK) {
        *copy = NULL;
    }
    return status == WAL_ENOTFOUND || status == WAL_END ||
                   status == WAL_ECORRUPT
               ? WAL_OK
               : status;
}

/* Plans a segment that compaction wrote, in place of others of the copy. */
static enum wal_status plan_shadow(const struct backup *backup,
                                   const struct backup_stream *stream,
                                   struct backup_source *source,
                                   struct wal_error *error)
{
    struct wal__env env = backup->look;
    struct wal__segment *copy = NULL;
    char path[WAL__PATH_MAX];
    enum wal_status status;

    env.has_shadows = true;
    source->action = BACKUP_SHADOW;
    wal__segment_shadow_path(&env, stream->dest.directory, source->id, path);
    status = open_copy(&env, stream, source, &copy, error);
    if (copy != NULL && strcmp(copy->path, path) == 0 &&
        (copy->sealed || !source->is_sealed) &&
        stream->state.doubt != source->id) {
        source->action = BACKUP_SHADOWED;
    }
    wal__segment_close(copy);
    return status;
}

static enum wal_status plan_source(const struct backup *backup,
                                   const struct backup_stream *stream,
                                   struct backup_source *source,
                                   struct wal_error *error)
{
    struct wal__segment *copy = NULL;
    enum wal_status status =
        has_file(stream, source->id)
            ? open_copy(&backup->look, stream, source, &copy, error)
            : WAL_OK;

    source->action = copy == NULL ? BACKUP_COPY : BACKUP_KEEP;
    if (copy != NULL) {
        plan_present(stream, copy, source);
    }
    wal__segment_close(copy);
    return status == WAL_OK && source->action == BACKUP_COPY &&
                   source->is_rewritten && backup->is_store
               ? plan_shadow(backup, stream, source, error)
               : status;
}

/* Bytes of the file that are read. */
static uint64_t cost(const struct backup_source *source)
{
    switch (source->action) {
    case BACKUP_KEEP:
        break;
    case BACKUP_SEAL:
        return source->capacity - source->end;
    case BACKUP_EXTEND:
        return (source->is_sealed ? source->capacity : source->end) -
               source->from;
    case BACKUP_COPY:
    case BACKUP_SHADOW:
        return source->is_sealed ? source->capacity : source->end;
    case BACKUP_SHADOWED:
        break;
    }
    return 0;
}

static bool is_shadow(const struct backup_source *source)
{
    return source->action == BACKUP_SHADOW || source->action == BACKUP_SHADOWED;
}

/* Whether the chain of the copy must end before what is written. */
static void plan_guard(struct backup_stream *stream,
                       struct backup_source *source)
{
    const struct wal__segment *newest = stream->newest;

    if (source->action == BACKUP_KEEP || source->action == BACKUP_SEAL) {
        source->seals = source->action == BACKUP_SEAL;
        return;
    }
    if (is_shadow(source)) {
        return;
    }
    if (newest == NULL || source->id >= newest->id) {
        stream->needs_guard = true;
    }
    if (newest != NULL && source->id == newest->id) {
        /* What follows a rewritten one follows the other, too. */
        if (source->salt == newest->header.salt) {
            source->seals = source->is_sealed;
        }
    }
}

/* Counts the files that compaction replaced. */
static void plan_removals(struct backup_stream *stream)
{
    const struct backup_source *last = backup_newest_source(stream);
    size_t at = 0;

    for (size_t i = 0; last != NULL && i < stream->ids.size;
         i += sizeof(uint64_t)) {
        uint64_t id;

        memcpy(&id, stream->ids.data + i, sizeof(id));
        while (backup_source_at(stream, at)->id < id && id < last->id) {
            at++;
        }
        stream->removals +=
            id < last->id && backup_source_at(stream, at)->id != id;
    }
}

enum wal_status wal__backup_plan(struct backup *backup,
                                 struct backup_stream *stream,
                                 struct wal_error *error)
{
    struct backup_source *last = backup_newest_source(stream);

    if (last == NULL) {
        return stream->newest == NULL && stream->guard == NULL
                   ? WAL_OK
                   : wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                                  "the copy has records, and the store has "
                                  "none");
    }
    if (stream->guard != NULL && stream->guard->id <= last->id) {
        return wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                            "the backup that was interrupted is too old: back "
                            "up to another directory");
    }
    /* A guard whose removal may not be durable is removed again. */
    stream->needs_guard = stream->guard != NULL || stream->repeats.size > 0 ||
                          (stream->state.guard_id != 0 &&
                           stream->state.doubt == stream->state.guard_id);
    for (size_t i = 0; i < backup_source_count(stream); i++) {
        struct backup_source *source = backup_source_at(stream, i);
        enum wal_status status = plan_source(backup, stream, source, error);

        if (status != WAL_OK) {
            return status;
        }
        plan_guard(stream, source);
        backup->total += cost(source);
        stream->changes |= source->action != BACKUP_KEEP;
        backup->has_shadows |= is_shadow(source);
    }
    plan_removals(stream);
    stream->needs_guard &= backup->is_store;
    stream->changes |= stream->needs_guard || stream->removals > 0;
    return WAL_OK;
}
