/*
 * backup_look.c - what the copy has: its newest segment, and the guard that an
 * interrupted backup left. A copy that has anything which the store lacks is
 * refused before it is changed.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/backup/backup_job.h"
#include "engine/base/error.h"
#include "engine/log/replay.h"
#include "engine/log/segment_reader.h"
#include "format/bytes/assert.h"

enum {
    COMPARED = 32 * 1024 /* more than the largest COMMIT */
};

/* The end of the last group that has records, of a scan. */
struct last_group {
    const struct wal__segment *segment;
    uint64_t end;
};

static enum wal_status refuse(const struct backup *backup,
                              struct wal_error *error)
{
    return wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                        "the copy has records that the store lacks: it was "
                        "written to, or the store is older than it; back up to "
                        "another directory");
}

static enum wal_status refuse_damaged(const char *path, uint64_t offset,
                                      struct wal_error *error)
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
            end += wal__frame_total_size((uint32_t)wal__commit_record_size(
                range->commit->session_count));
        }
        last->end = wal__align_up(end, last->segment->header.group_align);
    }
    return true;
}

/* Scans a segment of the copy up to `limit`; 0: all of it. */
static enum wal_status scan(struct wal__segment *segment, uint64_t limit,
                            struct last_group *last,
                            struct wal__scan_result *facts,
                            struct wal_error *error)
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
        status = wal__fail_at(error, status == WAL_OK ? WAL_EIO : status,
                              reader.sys_errno, segment->path,
                              facts->error_offset, "cannot read the copy");
    }
    wal__segment_reader_deinit(&reader);
    return status;
}

/* --- what the store has of it ------------------------------------------- */

/* Whether the bytes before `end` are equal. A COMMIT ends there, with the chain
 * over all that is before. */
static enum wal_status is_equal_before(struct backup *backup,
                                       struct wal__segment *one,
                                       struct wal__segment *other, uint64_t end,
                                       bool *equal, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    uint64_t from = end - WAL__SEGMENT_HEADER_SIZE < COMPARED
                        ? WAL__SEGMENT_HEADER_SIZE
                        : end - COMPARED;
    size_t size = (size_t)(end - from);
    size_t got = 0;
    size_t other_got = 0;
    int err = 0;
    enum wal_status status =
        wal__io_read_full(io, one->file, backup->bytes, size, from, &got, &err);

    WAL__ASSERT(2 * COMPARED <= WAL__BACKUP_COPY_SIZE);
    if (status == WAL_OK) {
        status = wal__io_read_full(io, other->file, backup->bytes + COMPARED,
                                   size, from, &other_got, &err);
    }
    *equal = got == size && other_got == size &&
             memcmp(backup->bytes, backup->bytes + COMPARED, size) == 0;
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, one->path, from,
                                           "cannot read the copy");
}

/* Finds the end up to which the newest segment is in the store. */
static enum wal_status compare(struct backup *backup,
                               struct backup_stream *stream,
                               const struct backup_source *source,
                               struct wal_error *error)
{
    struct wal__segment *newest = stream->newest;
    struct wal__segment *opened = NULL;
    struct last_group last;
    bool equal = false;
    enum wal_status status =
        scan(newest, stream->cut, &last, &stream->facts, error);

    if (status == WAL_OK) {
        status =
            wal__backup_open_source(backup, stream, source, &opened, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    stream->is_exact =
        stream->cut == 0 && stream->facts.verdict == WAL__VERDICT_CLEAN;
    stream->cut = stream->facts.end;
    if (stream->cut <= source->end) {
        status =
            is_equal_before(backup, newest, opened, stream->cut, &equal, error);
    }
    if (status == WAL_OK && !equal && last.end <= source->end) {
        /* A commit mark: the copy was opened for writing. */
        status =
            is_equal_before(backup, newest, opened, last.end, &equal, error);
        stream->is_exact = false;
        stream->cut = last.end;
        if (status == WAL_OK && equal) {
            status = scan(newest, last.end, &last, &stream->facts, error);
        }
    }
    wal__segment_close(opened);
    return status == WAL_OK && !equal ? refuse(backup, error) : status;
}

/* The newest segment is not in the store: compaction has replaced it, or it is
 * of another history. */
static enum wal_status find_replaced(struct backup *backup,
                                     struct backup_stream *stream,
                                     struct wal_error *error)
{
    struct wal__segment *newest = stream->newest;
    struct last_group last;
    enum wal_status status =
        scan(newest, stream->cut, &last, &stream->facts, error);

    if (status != WAL_OK) {
        return status;
    }
    stream->is_exact = false;
    stream->cut = stream->facts.end;
    for (size_t i = 0; i < backup_source_count(stream); i++) {
        const struct backup_source *source = backup_source_at(stream, i);

        if (source->is_rewritten && source->first_id <= newest->id &&
            newest->id <= source->id && stream->has_state &&
            stream->facts.last_sequence <= stream->state.after &&
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

    return source != NULL && source->salt == segment->header.salt ? source
                                                                  : NULL;
}

/* --- the segments of the copy ------------------------------------------- */

/* Opens the newest segment with an OPEN, by rank from `*rank` down. */
static enum wal_status open_newest(struct backup *backup,
                                   const struct backup_stream *stream,
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
        status = wal__segment_open(&backup->look, dest->directory, id,
                                   dest->uuid, dest->class, newest, error);
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

/* Takes over the guard that an interrupted backup left: nobody may have
 * appended to it. */
static enum wal_status look_at_guard(struct backup *backup,
                                     struct backup_stream *stream,
                                     struct wal_error *error)
{
    struct wal__segment *guard = stream->guard;
    struct last_group last;
    uint64_t previous = guard->open.previous_id;
    enum wal_status status = scan(guard, 0, &last, &stream->facts, error);

    if (status != WAL_OK) {
        return status;
    }
    if (!stream->has_state ||
        stream->facts.last_sequence != stream->state.before ||
        stream->facts.last_sequence != guard->open.last_sequence) {
        return refuse(backup, error);
    }
    if (previous == 0) {
        return WAL_OK;
    }
    stream->cut = guard->open.previous_end;
    status = wal__segment_open(&backup->look, stream->dest.directory, previous,
                               stream->dest.uuid, stream->dest.class,
                               &stream->newest, error);
    return status == WAL_ECORRUPT || status == WAL_END ||
                   status == WAL_ENOTFOUND
               ? refuse_damaged(backup->dest.root, 0, error)
               : status;
}

/* The newest segment is of the copy alone. Opening a copy for writing makes
 * such ones without new records: then the one before it is the newest. */
static enum wal_status step_down(struct backup *backup,
                                 struct backup_stream *stream,
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
    status = wal__segment_open(&backup->look, stream->dest.directory, previous,
                               stream->dest.uuid, stream->dest.class,
                               &stream->newest, error);
    if (status != WAL_OK) {
        return status == WAL_ENOMEM ? status : refuse(backup, error);
    }
    status = scan(stream->newest, 0, &last, &stream->facts, error);
    return status == WAL_OK && stream->facts.last_sequence < last_sequence
               ? refuse(backup, error)
               : status;
}

/* Finds the newest segment that is in the store. */
static enum wal_status look_at_newest(struct backup *backup,
                                      struct backup_stream *stream,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    while (status == WAL_OK) {
        const struct backup_source *source =
            find_source(stream, stream->newest);

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

enum wal_status wal__backup_look(struct backup *backup,
                                 struct backup_stream *stream,
                                 struct wal_error *error)
{
    enum wal_status status =
        wal__log_list_ids(&stream->dest, &stream->ids, error);

    if (status != WAL_OK || !backup->is_store) {
        return status;
    }
    status = open_newest(backup, stream, stream->ids.size / sizeof(uint64_t),
                         &stream->newest, error);
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
