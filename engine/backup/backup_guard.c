/*
 * backup_guard.c - the guard of a stream of the copy (backup.h): a segment with
 * an id above all others, whose OPEN ends the chain where the last backup did.
 * What is written to the copy then is not in the chain until it is removed.
 *
 * Where the newest segment is rewritten, the guard follows the original, as
 * every other one would.
 */
#include <stdio.h>
#include <string.h>

#include "engine/backup/backup_job.h"
#include "engine/base/error.h"
#include "engine/log/regroup.h"
#include "engine/log/replay.h"
#include "engine/log/segment_reader.h"
#include "format/bytes/assert.h"

/* Far from the ids of the store, so that a guard can stay while it grows. */
static const uint64_t id_distance = 65536;

static uint64_t guard_id(const struct backup_stream *stream)
{
    uint64_t last = backup_newest_source(stream)->id;

    if (stream->guard != NULL) {
        return stream->guard->id;
    }
    return stream->state.guard_id > last ? stream->state.guard_id
                                         : last + id_distance;
}

/* Fills the header: that of a segment of the same version, which is not
 * rewritten. */
static enum wal_status fill_header(struct backup *backup,
                                   struct backup_stream *stream,
                                   struct wal__segment_header *header,
                                   struct wal_error *error)
{
    struct wal__segment *opened = NULL;
    enum wal_status status = WAL_OK;

    if (stream->newest != NULL) {
        *header = stream->newest->header;
    } else {
        status = wal__backup_open_source(
            backup, stream, backup_newest_source(stream), &opened, error);
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
    return status;
}

/* Adds an OPEN that follows the newest segment. */
static enum wal_status add_open(const struct backup_stream *stream,
                                struct wal__regroup *copy,
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
static enum wal_status build(struct backup *backup,
                             struct backup_stream *stream,
                             struct wal__regroup *copy, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    const struct wal__segment *newest = stream->newest;
    struct wal__commit_record commit = {.epoch = 1,
                                        .clock_ms = io->now_ms(io->ctx)};
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
    if (status == WAL_OK &&
        wal__regroup_end(copy) + WAL__TRAILER_SIZE > copy->header.capacity) {
        status = WAL_ECORRUPT;
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, 0,
                              newest == NULL ? NULL : newest->path, 0,
                              "cannot keep the end of the copy");
}

enum wal_status wal__backup_guard_install(struct backup *backup,
                                          struct backup_stream *stream,
                                          struct wal_error *error)
{
    struct wal__regroup copy = {0};
    enum wal_status status;

    WAL__ASSERT(stream->state.guard_id == guard_id(stream));
    wal__buf_init(&copy.body, backup->dest.heap);
    status = build(backup, stream, &copy, error);
    if (status == WAL_OK) {
        status = wal__segment_install(&backup->dest, stream->dest.directory,
                                      NULL, &copy.header, copy.body.data,
                                      copy.body.size, error);
    }
    backup->result->bytes += copy.body.size + WAL__SEGMENT_HEADER_SIZE;
    wal__buf_deinit(&copy.body);
    return status;
}

void wal__backup_guard_name(struct backup_stream *stream)
{
    stream->state.guard_id = guard_id(stream);
}

enum wal_status wal__backup_guard_remove(struct backup *backup,
                                         struct backup_stream *stream,
                                         struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    int err = 0;
    enum wal_status status = wal__backup_state_doubt(
        &backup->dest, stream->dest.log_id, stream->state.guard_id, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__segment_path(&backup->dest, stream->dest.directory,
                      stream->state.guard_id, path);
    status = io->unlink(io->ctx, path, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, path, 0,
                            "cannot complete the copy");
    }
    return wal__backup_sync_directory(backup, stream->dest.directory, error);
}
