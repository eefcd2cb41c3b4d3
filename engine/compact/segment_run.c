/*
 * segment_run.c - replaces a run of segments (segment_run.h).
 */
#include "engine/compact/segment_run.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/log/index_file.h"
#include "engine/log/segment_reader.h"
#include "format/bytes/assert.h"

static struct wal__segment *last_of(const struct wal__segment_run *run)
{
    WAL__ASSERT(run->count > 0);
    return run->segments[run->count - 1];
}

uint64_t wal__segment_run_first_id(const struct wal__segment_run *run)
{
    const struct wal__segment *first = run->segments[0];

    return wal__segment_is_rewritten(&first->header)
               ? first->header.rewrite.first_id
               : first->id;
}

/* --- reading ------------------------------------------------------------ */

/* Reads all of a segment's used bytes once, so that a bad sector is an error
 * and not a signal. */
static enum wal_status populate(struct wal__segment *segment,
                                struct wal__throttle *throttle,
                                struct wal_error *error)
{
    const uint64_t step = 1024 * 1024;
    uint64_t end = atomic_load(&segment->end);
    struct wal__segment_reader reader;
    enum wal_status status = WAL_OK;

    wal__segment_reader_init(&reader, segment);
    for (uint64_t at = 0; at < end && status == WAL_OK; at += step) {
        uint64_t size = end - at < step ? end - at : step;

        if (wal__segment_reader_fetch(&reader, at, size) == NULL) {
            status = reader.status == WAL_OK ? WAL_EIO : reader.status;
            wal__fail_at(error, status, reader.sys_errno, segment->path, at,
                         "cannot read the segment");
        }
        if (status == WAL_OK) {
            status = wal__throttle_spend(throttle, size, error);
        }
    }
    wal__segment_reader_deinit(&reader);
    return status;
}

/* Fills what the last segment of the run hands on. */
static void fill_rewrite(const struct wal__segment_run *run,
                         struct wal__rewrite *rewrite)
{
    const struct wal__segment *segment = last_of(run);
    const struct wal__index_header *header = run->last_index;

    if (wal__segment_is_rewritten(&segment->header)) {
        rewrite->original_end = segment->header.rewrite.original_end;
        rewrite->original_chain = segment->header.rewrite.original_chain;
    } else {
        rewrite->original_end = atomic_load(&segment->end);
        rewrite->original_chain = header->chain;
    }
    rewrite->last_sequence = header->last_sequence;
}

/* Reads the frame at an offset of a segment, not of a record in a block. */
static enum wal_status read_frame(struct wal__segment_reader *reader,
                                  uint64_t offset, uint8_t type,
                                  struct wal__span *payload,
                                  struct wal_error *error)
{
    struct wal__segment *segment = reader->segment;
    const uint64_t left = segment->header.capacity - offset;
    struct wal__frame frame = {0};
    const uint8_t *at =
        wal__segment_reader_fetch(reader, offset, WAL__FRAME_SIZE);
    enum wal__fmt fmt = WAL__FMT_OK;

    if (at != NULL) {
        fmt = wal__frame_decode(at, left, segment->header.salt, offset, &frame);
    }
    if (at != NULL && fmt == WAL__FMT_OK) {
        at = wal__segment_reader_fetch(
            reader, offset, wal__frame_total_size(frame.stored_size));
    }
    if (at == NULL) {
        return wal__fail_at(error, WAL_EIO, reader->sys_errno, segment->path,
                            offset, "cannot read the segment");
    }
    if (fmt == WAL__FMT_OK && frame.type == type) {
        fmt = wal__frame_check_data(&frame, at + WAL__FRAME_SIZE);
    }
    if (fmt != WAL__FMT_OK || frame.type != type) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, segment->path, offset,
                            "the %s of the segment is damaged",
                            wal__frame_type_name(type));
    }
    payload->data = at + WAL__FRAME_SIZE;
    payload->size = frame.stored_size;
    return WAL_OK;
}

/* Creates the file, with the OPEN of the first segment and what the COMMIT of
 * the last one has. */
static enum wal_status open_writer(const struct wal__segment_run *run,
                                   struct wal__segment_writer *writer,
                                   struct wal_error *error)
{
    const struct wal__segment_run_options *options = run->options;
    struct wal__segment *last = last_of(run);
    struct wal__rewrite_source source = {.header = last->header};
    struct wal__segment_reader opens;
    struct wal__segment_reader commits;
    struct wal__span payload;
    enum wal_status status;

    source.header.version = WAL__FORMAT_VERSION;
    fill_rewrite(run, &source.header.rewrite);
    source.header.rewrite.first_id = wal__segment_run_first_id(run);
    source.header.rewrite.generation = options->generation;
    wal__segment_reader_init(&opens, run->segments[0]);
    wal__segment_reader_init(&commits, last);
    status = read_frame(&commits, run->last_index->commit_offset,
                        WAL__FRAME_COMMIT, &payload, error);
    if (status == WAL_OK &&
        wal__commit_record_decode(payload, &source.last) != WAL__FMT_OK) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, last->path, 0,
                              "the last COMMIT cannot be decoded");
    }
    if (status == WAL_OK) {
        status = read_frame(&opens, WAL__SEGMENT_HEADER_SIZE, WAL__FRAME_OPEN,
                            &source.open, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_writer_open(
            writer, run->log->env, options->throttle, run->log->directory,
            &source, options->block_size, options->level, error);
    }
    wal__segment_reader_deinit(&opens);
    wal__segment_reader_deinit(&commits);
    return status;
}

/* --- replacing ---------------------------------------------------------- */

/* Gives the new file its name, durably. Until it is known to be durable the
 * page says so: then what the file replaces is not removed, since a later sync
 * proves nothing. */
static enum wal_status rename_file(const struct wal__segment_run *run,
                                   const struct wal__segment_writer *writer,
                                   struct wal__segment_run_result *result,
                                   struct wal_error *error)
{
    struct wal__log *log = run->log;
    const struct wal__io *io = log->env->io;
    enum wal_status status;
    int err = 0;

    atomic_fetch_add(&log->shared->unsynced_renames, 1);
    status = io->rename(io->ctx, writer->path, last_of(run)->path, &err);
    if (status != WAL_OK) {
        atomic_fetch_sub(&log->shared->unsynced_renames, 1);
        return wal__fail_at(error, status, err, writer->path, 0,
                            "cannot rename the rewritten segment");
    }
    result->is_replaced = true;
    status = wal__log_sync_directory(log, error);
    if (status == WAL_OK) {
        atomic_fetch_sub(&log->shared->unsynced_renames, 1);
    }
    return status;
}

bool wal__segment_run_may_lose_names(const struct wal__log *log)
{
    return atomic_load(&log->shared->unsynced_renames) != 0;
}

void wal__segment_run_names_renewed(struct wal__log *log)
{
    atomic_store(&log->shared->unsynced_renames, 0);
}

/* Removes the segments that the new one replaces, with what an earlier
 * compaction left of them, and their files in index/. */
static enum wal_status remove_replaced(const struct wal__segment_run *run,
                                       const struct wal__segment_writer *writer,
                                       struct wal_error *error)
{
    struct wal__log *log = run->log;
    uint64_t last = writer->header.id;
    enum wal_status status;
    struct wal__buf ids;
    uint64_t id;

    wal__buf_init(&ids, log->env->heap);
    status = wal__log_list_ids(log, &ids, error);
    for (size_t at = 0; at < ids.size && status == WAL_OK; at += sizeof(id)) {
        memcpy(&id, ids.data + at, sizeof(id));
        if (id >= wal__segment_run_first_id(run) && id < last) {
            status = wal__log_remove_replaced(log, id, error);
        }
    }
    wal__buf_deinit(&ids);
    if (status == WAL_OK && !last_of(run)->sealed) {
        status = wal__index_file_remove(log, last);
        if (status != WAL_OK) {
            wal__fail_at(error, status, 0, log->env->root, 0,
                         "cannot remove the index of a replaced segment");
        }
    }
    return status == WAL_OK && wal__segment_run_first_id(run) < last
               ? wal__log_sync_directory(log, error)
               : status;
}

/* --- the whole ---------------------------------------------------------- */

/* Writes the file and reads it back. */
static enum wal_status write_file(const struct wal__segment_run *run,
                                  const struct wal__segment_run_client *client,
                                  struct wal__segment_writer *writer,
                                  struct wal_error *error)
{
    struct wal__index_header header;
    struct wal__span index;
    enum wal_status status = open_writer(run, writer, error);

    if (status == WAL_OK) {
        status = client->copy(client->ctx, writer, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_writer_end_records(writer, &header, error);
    }
    if (status == WAL_OK) {
        status = client->encode_index(client->ctx, &header, &index, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_writer_finish(writer, index, error);
    }
    return status == WAL_OK ? wal__segment_writer_verify(writer, client, error)
                            : status;
}

enum wal_status
wal__segment_run_rewrite(const struct wal__segment_run *run,
                         const struct wal__segment_run_client *client,
                         struct wal__segment_run_result *result,
                         struct wal_error *error)
{
    struct wal__segment_writer writer = {.env = NULL};
    enum wal_status status = WAL_OK;

    memset(result, 0, sizeof(*result));
    for (uint32_t i = 0; i < run->count && status == WAL_OK; i++) {
        result->bytes_read += run->segments[i]->header.capacity;
        status = populate(run->segments[i], run->options->throttle, error);
    }
    if (status == WAL_OK) {
        status = write_file(run, client, &writer, error);
    }
    if (status == WAL_OK) {
        status = rename_file(run, &writer, result, error);
    }
    if (status == WAL_OK) {
        status = remove_replaced(run, &writer, error);
    }
    if (writer.env != NULL) {
        result->bytes_written = writer.header.capacity;
        wal__segment_writer_close(&writer, result->is_replaced);
    }
    return status;
}
