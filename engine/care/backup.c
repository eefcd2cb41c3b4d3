/*
 * backup.c - copies a store while it is written to (backup.h): looks at what the copy has, plans
 * what is done with each segment (SPEC.md 2.10, 3.5), and takes the steps. A copy that has anything
 * which the store lacks is refused before it is changed.
 *
 * The steps, each for the pack first, then for the log:
 *
 *  1. The newest segment of the copy must be in the store: with the same salt,
 *     and the same bytes before its end, where a COMMIT holds the chain over
 *     everything before; or replaced by compaction, and no longer than the last
 *     backup left it.
 *  2. A guard becomes the newest segment of the copy: 64 KiB that hold only
 *     OPEN, which ends the chain where the copy ends. Its id is far above those
 *     of the store, and its salt follows from the id and the store's uuid, so
 *     that it is recognised (SPEC.md 3.11).
 *  3. Under the guard the newest segment is extended in place, and others are
 *     written under temporary names, synced and renamed. Segments that
 *     compaction wrote become shadow segments.
 *  4. The guard of the pack is removed, then that of the log, and the
 *     directories are synced. With shadow segments MANIFEST makes both streams
 *     valid in one step instead.
 *  5. INDEX, SEAL and trailer are written to a segment that ended since. Files
 *     that compaction replaced are removed.
 *
 * KEYS of an encrypted store is copied before step 2, as it is after the end of what is copied was
 * found. MANIFEST gets new feature bits then, a new version after the last one; that of a new
 * copy is written last. `index/backup` has the sequence numbers before and after, the guard's id,
 * and which name is not known to be durable. It is written before step 2; a reader takes the
 * records up to the number after it for durable.
 *
 * Invariant: a segment below the newest one of the copy is complete, and its name durable, unless
 * the state has doubt about it.
 */
#include "engine/care/backup.h"
#include "agentwal/admin.h"
#include "engine/base/containers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/locks.h"
#include "engine/log/log.h"
#include "engine/log/segment.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "engine/store/copy_state.h"
#include "engine/store/keys_file.h"
#include "format/bytes/assert.h"

/* --- the plan ------------------------------------------------------------- */

static bool has_file(const struct backup_stream *stream, uint64_t id)
{
    const uint64_t *ids = (const void *)stream->ids.data;
    size_t count = stream->ids.size / sizeof(id);
    size_t rank = wal__lower_bound(ids, count, sizeof(id), 0, id);

    return rank < count && ids[rank] == id;
}

/* Plans the segment that was the newest one. */
static void plan_newest(const struct backup_stream *stream, const struct wal__segment *copy,
                        struct backup_source *source)
{
    if (stream->guard != NULL || !stream->is_exact || stream->cut > source->end ||
        (copy->sealed && !source->is_sealed)) {
        source->action = BACKUP_COPY;
    } else if (stream->cut < source->end) {
        source->action = BACKUP_EXTEND;
        source->from = stream->cut;
    } else if (source->is_sealed && !copy->sealed) {
        source->action = BACKUP_SEAL;
    }
}

/* Plans a segment whose file the copy has. */
static void plan_present(const struct backup_stream *stream, const struct wal__segment *copy,
                         struct backup_source *source)
{
    uint64_t newest = stream->newest == NULL ? 0 : stream->newest->id;

    if (stream->state.doubt == source->id || !copy->has_open) {
        source->action = BACKUP_COPY;
    } else if (source->id == newest) {
        plan_newest(stream, copy, source);
    } else if (source->id > newest) {
        /* Left by a backup that was interrupted. */
        source->action = source->is_sealed && copy->sealed ? BACKUP_KEEP : BACKUP_COPY;
    } else if (source->is_sealed && !copy->sealed) {
        source->action = BACKUP_SEAL;
    }
}

/* Opens the segment of the copy; NULL: it has none with this salt. */
static enum wal_status open_copy(const struct wal__env *env, const struct backup_stream *stream,
                                 const struct backup_source *source, struct wal__segment **copy,
                                 struct wal_error *error)
{
    const struct wal__log *dest = &stream->dest;
    enum wal_status status =
        wal__segment_open(env, dest->directory, source->id, dest->uuid, dest->class, copy, error);

    if (status == WAL_OK && (*copy)->header.salt != source->salt) {
        wal__segment_close(*copy);
        status = WAL_ENOTFOUND;
    }
    if (status != WAL_OK) {
        *copy = NULL;
    }
    return status == WAL_ENOTFOUND || status == WAL_END || status == WAL_ECORRUPT ? WAL_OK : status;
}

/* Plans a segment that compaction wrote, in place of others of the copy. */
static enum wal_status plan_shadow(const struct backup *backup, const struct backup_stream *stream,
                                   struct backup_source *source, struct wal_error *error)
{
    struct wal__env env = backup->look;
    struct wal__segment *copy = NULL;
    char path[WAL__PATH_MAX];
    enum wal_status status;

    env.has_shadows = true;
    source->action = BACKUP_SHADOW;
    wal__segment_shadow_path(&env, stream->dest.directory, source->id, path);
    status = open_copy(&env, stream, source, &copy, error);
    if (copy != NULL && strcmp(copy->path, path) == 0 && (copy->sealed || !source->is_sealed) &&
        stream->state.doubt != source->id) {
        source->action = BACKUP_SHADOWED;
    }
    wal__segment_close(copy);
    return status;
}

static enum wal_status plan_source(const struct backup *backup, const struct backup_stream *stream,
                                   struct backup_source *source, struct wal_error *error)
{
    struct wal__segment *copy = NULL;
    enum wal_status status = has_file(stream, source->id)
                                 ? open_copy(&backup->look, stream, source, &copy, error)
                                 : WAL_OK;

    source->action = copy == NULL ? BACKUP_COPY : BACKUP_KEEP;
    if (copy != NULL) {
        plan_present(stream, copy, source);
    }
    wal__segment_close(copy);
    return status == WAL_OK && source->action == BACKUP_COPY && source->is_rewritten &&
                   backup->is_store
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
        return (source->is_sealed ? source->capacity : source->end) - source->from;
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

/* Returns whether the chain of the copy must end before what is written. */
static void plan_guard(struct backup_stream *stream, struct backup_source *source)
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

    for (size_t i = 0; last != NULL && i < stream->ids.size; i += sizeof(uint64_t)) {
        uint64_t id;

        memcpy(&id, stream->ids.data + i, sizeof(id));
        while (backup_source_at(stream, at)->id < id && id < last->id) {
            at++;
        }
        stream->removals += id < last->id && backup_source_at(stream, at)->id != id;
    }
}

/* Decides what is done with each segment. */
static enum wal_status backup_plan(struct backup *backup, struct backup_stream *stream,
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
    stream->needs_guard =
        stream->guard != NULL || stream->repeats.size > 0 ||
        (stream->state.guard_id != 0 && stream->state.doubt == stream->state.guard_id);
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

/* --- what the copy has ---------------------------------------------------- */

enum {
    COMPARED = 32 * 1024 /* more than the largest COMMIT */
};

/* The end of the last group that has records, of a scan. */
struct last_group {
    const struct wal__segment *segment;
    uint64_t end;
};

static enum wal_status refuse(const struct backup *backup, struct wal_error *error)
{
    return wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                        "the copy has records that the store lacks: it was "
                        "written to, or the store is older than it; back up to "
                        "another directory");
}

static enum wal_status refuse_damaged(const char *path, uint64_t offset, struct wal_error *error)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, path, offset,
                        "the copy is damaged: back up to another directory");
}

/* --- scanning ----------------------------------------------------------- */

static bool note_group(void *ctx, const struct wal__scan_range *range)
{
    struct last_group *last = ctx;

    if (range->size > 0) {
        uint64_t end = range->offset + range->size;

        if (range->commit != NULL) {
            end += wal__frame_total_size(
                (uint32_t)wal__commit_record_size(range->commit->session_count));
        }
        last->end = wal__align_up(end, last->segment->header.group_align);
    }
    return true;
}

/* Scans a segment of the copy up to `limit`; 0: all of it. */
static enum wal_status scan(struct wal__segment *segment, uint64_t limit, struct last_group *last,
                            struct wal__scan_result *facts, struct wal_error *error)
{
    struct wal__scan_sink sink = {last, note_group, NULL};
    struct wal__segment_reader reader;
    struct wal__scan_source source = {&reader, wal__segment_reader_fetch};
    struct wal__scan_start start;
    enum wal_status status;

    last->segment = segment;
    last->end = WAL__SEGMENT_HEADER_SIZE;
    wal__replay_init_start(segment, &start);
    if (limit != 0) {
        start.capacity = limit;
        start.known_end = limit;
    }
    wal__segment_reader_init(&reader, segment);
    wal__scan(&source, &sink, &start, facts);
    status = reader.status;
    if (status != WAL_OK || facts->verdict == WAL__VERDICT_READ_ERROR ||
        facts->verdict == WAL__VERDICT_NEWER) {
        status = wal__fail_at(error, status == WAL_OK ? WAL_EIO : status, reader.sys_errno,
                              segment->path, facts->error_offset, "cannot read the copy");
    }
    wal__segment_reader_deinit(&reader);
    return status;
}

/* --- what the store has of it ------------------------------------------- */

/* Returns whether the bytes before `end` are equal. A COMMIT ends there, with the chain over all
 * that is before. */
static enum wal_status is_equal_before(struct backup *backup, struct wal__segment *one,
                                       struct wal__segment *other, uint64_t end, bool *equal,
                                       struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    uint64_t from =
        end - WAL__SEGMENT_HEADER_SIZE < COMPARED ? WAL__SEGMENT_HEADER_SIZE : end - COMPARED;
    size_t size = (size_t)(end - from);
    size_t got = 0;
    size_t other_got = 0;
    int err = 0;
    enum wal_status status =
        wal__io_read_full(io, one->file, backup->bytes, size, from, &got, &err);

    WAL__ASSERT(2 * COMPARED <= WAL__BACKUP_COPY_SIZE);
    if (status == WAL_OK) {
        status = wal__io_read_full(io, other->file, backup->bytes + COMPARED, size, from,
                                   &other_got, &err);
    }
    *equal = got == size && other_got == size &&
             memcmp(backup->bytes, backup->bytes + COMPARED, size) == 0;
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, err, one->path, from, "cannot read the copy");
}

/* Finds the end up to which the newest segment is in the store. */
static enum wal_status compare(struct backup *backup, struct backup_stream *stream,
                               const struct backup_source *source, struct wal_error *error)
{
    struct wal__segment *newest = stream->newest;
    struct wal__segment *opened = NULL;
    struct last_group last;
    bool equal = false;
    enum wal_status status = scan(newest, stream->cut, &last, &stream->facts, error);

    if (status == WAL_OK) {
        status = wal__backup_open_source(backup, stream, source, &opened, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    stream->is_exact = stream->cut == 0 && stream->facts.verdict == WAL__VERDICT_CLEAN;
    stream->cut = stream->facts.end;
    if (stream->cut <= source->end) {
        status = is_equal_before(backup, newest, opened, stream->cut, &equal, error);
    }
    if (status == WAL_OK && !equal && last.end <= source->end) {
        /* A commit mark: the copy was opened for writing. */
        status = is_equal_before(backup, newest, opened, last.end, &equal, error);
        stream->is_exact = false;
        stream->cut = last.end;
        if (status == WAL_OK && equal) {
            status = scan(newest, last.end, &last, &stream->facts, error);
        }
    }
    wal__segment_close(opened);
    return status == WAL_OK && !equal ? refuse(backup, error) : status;
}

/* The newest segment is not in the store: compaction has replaced it, or it is of another
 * history. */
static enum wal_status find_replaced(struct backup *backup, struct backup_stream *stream,
                                     struct wal_error *error)
{
    struct wal__segment *newest = stream->newest;
    struct last_group last;
    enum wal_status status = scan(newest, stream->cut, &last, &stream->facts, error);

    if (status != WAL_OK) {
        return status;
    }
    stream->is_exact = false;
    stream->cut = stream->facts.end;
    for (size_t i = 0; i < backup_source_count(stream); i++) {
        const struct backup_source *source = backup_source_at(stream, i);

        if (source->is_rewritten && source->first_id <= newest->id && newest->id <= source->id &&
            stream->has_state && stream->facts.last_sequence <= stream->state.after &&
            stream->facts.last_sequence <= source->last_sequence) {
            return WAL_OK;
        }
    }
    return refuse(backup, error);
}

static struct backup_source *find_source(const struct backup_stream *stream,
                                         const struct wal__segment *segment)
{
    struct backup_source *source = wal__backup_find_source(stream, segment->id);

    return source != NULL && source->salt == segment->header.salt ? source : NULL;
}

/* --- the segments of the copy ------------------------------------------- */

/* Opens the newest segment with an OPEN, by rank from `*rank` down. */
static enum wal_status open_newest(struct backup *backup, const struct backup_stream *stream,
                                   size_t rank, struct wal__segment **newest,
                                   struct wal_error *error)
{
    const struct wal__log *dest = &stream->dest;

    *newest = NULL;
    while (rank > 0) {
        enum wal_status status;
        uint64_t id;

        rank--;
        memcpy(&id, stream->ids.data + rank * sizeof(id), sizeof(id));
        status = wal__segment_open(&backup->look, dest->directory, id, dest->uuid, dest->class,
                                   newest, error);
        if (status == WAL_OK && (*newest)->has_open) {
            return WAL_OK;
        }
        if (status == WAL_OK) {
            /* It was preallocated: the copy was opened for writing. */
            wal__segment_close(*newest);
            *newest = NULL;
        } else if (status == WAL_ECORRUPT) {
            return refuse_damaged(backup->dest.root, 0, error);
        } else if (status != WAL_END) {
            return status;
        }
    }
    return WAL_OK;
}

/* Takes over the guard that an interrupted backup left: nobody may have appended to it. */
static enum wal_status look_at_guard(struct backup *backup, struct backup_stream *stream,
                                     struct wal_error *error)
{
    struct wal__segment *guard = stream->guard;
    struct last_group last;
    uint64_t previous = guard->open.previous_id;
    enum wal_status status = scan(guard, 0, &last, &stream->facts, error);

    if (status != WAL_OK) {
        return status;
    }
    if (!stream->has_state || stream->facts.last_sequence != stream->state.before ||
        stream->facts.last_sequence != guard->open.last_sequence) {
        return refuse(backup, error);
    }
    if (previous == 0) {
        return WAL_OK;
    }
    stream->cut = guard->open.previous_end;
    status = wal__segment_open(&backup->look, stream->dest.directory, previous, stream->dest.uuid,
                               stream->dest.class, &stream->newest, error);
    return status == WAL_ECORRUPT || status == WAL_END || status == WAL_ENOTFOUND
               ? refuse_damaged(backup->dest.root, 0, error)
               : status;
}

/* The newest segment is of the copy alone. Opening a copy for writing makes such ones without new
 * records: then the one before it is the newest. */
static enum wal_status step_down(struct backup *backup, struct backup_stream *stream,
                                 struct wal_error *error)
{
    struct wal__segment *repeat = stream->newest;
    uint64_t previous = repeat->open.previous_id;
    struct last_group last;
    uint64_t last_sequence;
    enum wal_status status;

    if (previous == 0 || stream->cut != stream->facts.end) {
        return refuse(backup, error);
    }
    last_sequence = stream->facts.last_sequence;
    stream->newest = NULL;
    stream->cut = 0;
    status = wal__buf_append(&stream->repeats, &repeat->id, sizeof(repeat->id));
    wal__segment_close(repeat);
    if (status != WAL_OK) {
        return wal__no_memory(error);
    }
    status = wal__segment_open(&backup->look, stream->dest.directory, previous, stream->dest.uuid,
                               stream->dest.class, &stream->newest, error);
    if (status != WAL_OK) {
        return status == WAL_ENOMEM ? status : refuse(backup, error);
    }
    status = scan(stream->newest, 0, &last, &stream->facts, error);
    return status == WAL_OK && stream->facts.last_sequence < last_sequence ? refuse(backup, error)
                                                                           : status;
}

/* Finds the newest segment that is in the store. */
static enum wal_status look_at_newest(struct backup *backup, struct backup_stream *stream,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    while (status == WAL_OK) {
        const struct backup_source *source = find_source(stream, stream->newest);

        if (source != NULL) {
            return compare(backup, stream, source, error);
        }
        status = find_replaced(backup, stream, error);
        if (status == WAL_OK) {
            return WAL_OK;
        }
        if (status == WAL_EEXISTS) {
            status = step_down(backup, stream, error);
        }
    }
    return status;
}

/* Finds the guard and the newest segment of the copy, and checks that all of it is in the store.
 * Nothing is changed. */
static enum wal_status backup_look(struct backup *backup, struct backup_stream *stream,
                                   struct wal_error *error)
{
    enum wal_status status = wal__log_list_ids(&stream->dest, &stream->ids, error);

    if (status != WAL_OK || !backup->is_store) {
        return status;
    }
    status =
        open_newest(backup, stream, stream->ids.size / sizeof(uint64_t), &stream->newest, error);
    if (status != WAL_OK || stream->newest == NULL) {
        return status;
    }
    if (wal__segment_is_guard(&stream->newest->header)) {
        stream->guard = stream->newest;
        stream->newest = NULL;
        status = look_at_guard(backup, stream, error);
        if (status != WAL_OK || stream->newest == NULL) {
            return status;
        }
    }
    return look_at_newest(backup, stream, error);
}

/* --- the store ---------------------------------------------------------- */

/* Keeps compaction out, through a separate descriptor: so a handle that only reads can, and threads
 * of one handle do not share the lock. A store without LOCK, or on a medium that cannot be locked,
 * is not compacted. */
static enum wal_status lock_source(struct backup *backup, struct wal_error *error)
{
    const struct wal__control *control = &backup->core->control;
    const struct wal__io *io = backup->source.io;
    enum wal_status status;
    int err = 0;

    if (io->open(io->ctx, control->path, 0, &backup->source_lock, &err) != WAL_OK) {
        backup->source_lock = NULL;
        return WAL_OK;
    }
    status = io->lock(io->ctx, backup->source_lock, WAL__LOCK_COMPACT, WAL__IO_LOCK_SHARED, &err);
    return status == WAL_ELOCKED
               ? wal__compact_lock_refused(
                     control,
                     control->file_page == NULL
                         ? 0
                         : wal__lock_owner_find(control, &control->file_page->compact_owner),
                     error)
               : WAL_OK;
}

static void unlock_source(struct backup *backup)
{
    const struct wal__io *io = backup->source.io;

    if (backup->source_lock != NULL) {
        io->close(io->ctx, backup->source_lock);
        backup->source_lock = NULL;
    }
}

/* --- the steps ---------------------------------------------------------- */

static enum wal_status plan(struct backup *backup, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < WAL__LOG_COUNT && status == WAL_OK; i++) {
        status = backup_look(backup, &backup->streams[i], error);
        if (status == WAL_OK) {
            status = backup_plan(backup, &backup->streams[i], error);
        }
    }
    return status;
}

/* Makes the state of this backup durable. */
static enum wal_status begin(struct backup *backup, struct wal_error *error)
{
    enum wal_status status;

    for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
        struct backup_stream *stream = &backup->streams[i];

        stream->state.before = stream->facts.last_sequence;
        stream->state.after = stream->last_sequence;
        if (stream->needs_guard) {
            wal__backup_guard_name(stream);
        }
        backup->state.streams[i] = stream->state;
    }
    status =
        wal__backup_state_write(&backup->dest, backup->source_manifest.uuid, &backup->state, error);
    if (status == WAL_OK && backup->is_store) {
        status = wal__backup_remove_derived(backup, error);
    }
    if (status == WAL_OK && backup_source_count(&backup->streams[WAL__LOG_ID_PACK]) > 0) {
        status = wal__copy_make_pack(&backup->dest, error);
    }
    return status;
}

/* What MANIFEST of the copy is to say. */
enum step {
    STEP_BEGIN,  /* what a process has to know that reads the segments */
    STEP_COMMIT, /* the shadow segments count */
    STEP_END
};

static enum wal_status write_manifest(struct backup *backup, enum step step,
                                      struct wal_error *error)
{
    const struct wal__manifest *source = &backup->source_manifest;
    struct wal__manifest next = *source;
    enum wal_status status;

    if (!backup->is_store) {
        if (step != STEP_END) {
            return WAL_OK;
        }
        /* A manifest implies that the directories exist. */
        status = wal__manifest_sync_directories(&backup->dest, error);
        backup->manifest = *source;
        next.has_shadows = false;
        return status == WAL_OK
                   ? wal__manifest_replace(&backup->dest, &backup->manifest, &next, error)
                   : status;
    }
    next = backup->manifest;
    next.version = step == STEP_END ? source->version : next.version;
    next.has_shadows = step == STEP_COMMIT;
    next.features.compat |= source->features.compat;
    next.features.ro_compat |= source->features.ro_compat;
    next.features.incompat |= source->features.incompat;
    return next.version == backup->manifest.version &&
                   next.has_shadows == backup->manifest.has_shadows &&
                   memcmp(&next.features, &backup->manifest.features, sizeof(next.features)) == 0
               ? WAL_OK
               : wal__manifest_replace(&backup->dest, &backup->manifest, &next, error);
}

static void count_segments(struct backup *backup)
{
    struct wal_store_backup_result *result = backup->result;

    for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
        const struct backup_stream *stream = &backup->streams[i];
        size_t count = backup_source_count(stream);

        result->segments += count;
        for (size_t j = 0; j < count; j++) {
            result->copied += backup_source_at(stream, j)->action != BACKUP_KEEP;
        }
    }
    result->last_sequence = backup->streams[WAL__LOG_ID_LOG].last_sequence;
}

/* Makes what was written valid, in one step. */
static enum wal_status switch_over(struct backup *backup, struct wal_error *error)
{
    static const uint32_t order[] = {WAL__LOG_ID_PACK, WAL__LOG_ID_LOG};
    enum wal_status status = WAL_OK;

    if (backup->has_shadows) {
        status = write_manifest(backup, STEP_COMMIT, error);
        return status == WAL_OK ? wal__shadow_move(&backup->dest, backup->manifest.uuid, error)
                                : status;
    }
    for (size_t i = 0; i < WAL__LOG_COUNT && status == WAL_OK; i++) {
        struct backup_stream *stream = &backup->streams[order[i]];

        if (stream->needs_guard) {
            status = wal__backup_guard_remove(backup, stream, error);
        }
    }
    return status;
}

/* Before anything that is encrypted by a key which the copy does not know. */
static enum wal_status copy_keys(const struct backup *backup, struct wal_error *error)
{
    uint8_t bytes[WAL__KEYS_COPY_SIZE];
    size_t size = 0;
    enum wal_status status = wal__keys_read_copy(&backup->source, bytes, &size, error);

    return status == WAL_OK
               ? wal__keys_write_copy(&backup->dest, (struct wal__span){bytes, size}, error)
               : status;
}

static enum wal_status change(struct backup *backup, struct wal_error *error)
{
    struct backup_stream *log = &backup->streams[WAL__LOG_ID_LOG];
    struct backup_stream *pack = &backup->streams[WAL__LOG_ID_PACK];
    enum wal_status status = WAL_OK;

    if (!backup->is_store || log->changes || pack->changes) {
        status = begin(backup, error);
    }
    if (status == WAL_OK && backup->source.keyring != NULL) {
        status = copy_keys(backup, error);
    }
    if (status == WAL_OK) {
        status = write_manifest(backup, STEP_BEGIN, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_write(backup, pack, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_write(backup, log, error);
    }
    if (status == WAL_OK) {
        status = switch_over(backup, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_tidy(backup, pack, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_tidy(backup, log, error);
    }
    return status == WAL_OK ? write_manifest(backup, STEP_END, error) : status;
}

static enum wal_status back_up(struct backup *backup, struct wal_error *error)
{
    bool ignored = false;
    enum wal_status status = lock_source(backup, error);

    if (status == WAL_OK) {
        status = wal__manifest_read(&backup->source, &backup->source_manifest, &ignored, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_freeze(backup, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_open_dest(backup, error);
    }
    if (status == WAL_OK) {
        status = plan(backup, error);
    }
    if (status == WAL_OK) {
        status = change(backup, error);
    }
    if (status == WAL_OK) {
        status = wal__search_files_sweep(&backup->dest, NULL, error);
    }
    if (status == WAL_OK) {
        count_segments(backup);
    }
    wal__backup_close_dest(backup);
    unlock_source(backup);
    return status;
}

/* --- memory ------------------------------------------------------------- */

static void init(struct backup *backup, struct wal__core *core, const char *path, size_t size)
{
    static const char *const directories[] = {"log", "pack"};
    static const uint32_t classes[] = {WAL__CLASS_LOG, WAL__CLASS_PACK};

    backup->core = core;
    backup->source = core->env;
    backup->source.read_only = true;
    backup->dest = core->env;
    memcpy(backup->dest.root, path, size);
    backup->dest.root[size] = '\0';
    backup->dest.read_only = false;
    backup->dest.has_shadows = false;
    backup->look = backup->dest;
    backup->look.read_only = true;
    for (uint32_t i = 0; i < WAL__LOG_COUNT; i++) {
        struct backup_stream *stream = &backup->streams[i];

        stream->dest.env = &backup->look;
        stream->dest.directory = directories[i];
        stream->dest.class = classes[i];
        stream->dest.log_id = i;
        memcpy(stream->dest.uuid, core->log.uuid, sizeof(stream->dest.uuid));
        wal__buf_init(&stream->sources, core->env.heap);
        wal__buf_init(&stream->ids, core->env.heap);
        wal__buf_init(&stream->repeats, core->env.heap);
    }
}

static void destroy(struct backup *backup)
{
    const struct wal__heap *heap = backup->source.heap;

    for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
        struct backup_stream *stream = &backup->streams[i];

        wal__segment_close(stream->newest);
        wal__segment_close(stream->guard);
        wal__buf_deinit(&stream->sources);
        wal__buf_deinit(&stream->ids);
        wal__buf_deinit(&stream->repeats);
    }
    wal__heap_free(heap, backup->bytes);
    wal__heap_free(heap, backup);
}

/* Copies the store to the directory `path`: wal_store_backup. */
static enum wal_status copy_store(struct wal__core *core, const char *path,
                                  const struct wal__backup_options *options,
                                  struct wal_store_backup_result *result, struct wal_error *error)
{
    const struct wal__heap *heap = core->env.heap;
    struct backup *backup;
    size_t size = strlen(path);
    enum wal_status status = WAL_OK;

    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    if (size == 0 || size >= WAL__PATH_MAX - 64) {
        return wal__invalid(error, "the path of the copy is empty or too long");
    }
    if (!core->env.read_only) {
        status = wal__committer_sync(&core->committer, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    backup = wal__heap_zalloc(heap, sizeof(*backup));
    if (backup == NULL) {
        return wal__no_memory(error);
    }
    init(backup, core, path, size);
    backup->options = options;
    backup->result = result;
    backup->bytes = wal__heap_alloc(heap, WAL__BACKUP_COPY_SIZE);
    status = backup->bytes == NULL ? wal__no_memory(error) : back_up(backup, error);
    destroy(backup);
    return status;
}

/* --- the interface -------------------------------------------------------- */

/* The caller of a backup, whose callback is called. */
struct caller {
    const struct wal_store_backup_options *options;
    int32_t stopped; /* what it returned last */
};

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct caller *caller = ctx;

    caller->stopped = caller->options->progress(caller->options->ctx, done, total);
    return caller->stopped == 0;
}

static enum wal_status check_arguments(const struct wal_store *store, const char *path,
                                       const struct wal_store_backup_options *options,
                                       struct wal_error *error)
{
    if (path == NULL) {
        return wal__invalid(error, "the path of the copy is null");
    }
    if (options->flags != 0) {
        return wal__invalid(error, "the options for a backup are not valid");
    }
    if (store->core.env.io->in_memory) {
        return wal__invalid(error, "the store has no files");
    }
    return WAL_OK;
}

enum wal_status wal_store_backup(struct wal_store *store, const char *path,
                                 const struct wal_store_backup_options *options,
                                 struct wal_store_backup_result *result, struct wal_error *error)
{
    struct wal_store_backup_options own;
    struct wal_store_backup_result done = {.struct_size = sizeof(done)};
    struct caller caller = {&own, 0};
    struct wal__backup_options backup = {.ctx = &caller};
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_store_backup_options), &own, options, error);

    if (status == WAL_OK) {
        status = wal__check_core(store == NULL ? NULL : &store->core, error);
    }
    if (status == WAL_OK) {
        status = check_arguments(store, path, &own, error);
    }
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_store_backup_result), result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    backup.progress = own.progress == NULL ? NULL : on_progress;
    status = copy_store(&store->core, path, &backup, &done, error);
    if (caller.stopped != 0 && error != NULL) {
        error->sys_errno = caller.stopped;
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__struct_store(WAL__STRUCT(wal_store_backup_result), result, &done);
    return WAL_OK;
}
