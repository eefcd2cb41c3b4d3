/*
 * rewrite.c - replaces a run of segments (rewrite.h).
 *
 * The index of a segment lists the records of each session by sequence, so that
 * walking the indexes of the run together gives the order in which the records
 * are written: session by session.
 */
#include "engine/compact/rewrite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/segment_reader.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

/* The index of an input while it is walked. */
struct part {
    const struct wal__compact_input *input;
    uint32_t rank; /* of the next summary */
    bool is_present;
    struct wal__summary summary; /* of the present session */
};

struct rewrite {
    struct wal__core *core;
    const struct wal__live_set *set;
    const struct wal__rewrite_options *options;
    struct wal__segment_writer writer;
    struct wal__record_buf scratch;
    struct wal__buf erased;  /* a record without its content */
    struct wal__buf remains; /* of its payload */
    struct part *parts;
    uint32_t count;
    uint64_t first_id;         /* of the run, as merged before */
    uint64_t session_position; /* of the present session's newest SESSION */
    struct wal__rewrite_result *result;
};

/* --- inputs ------------------------------------------------------------- */

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
        wal__throttle_spend(throttle, size);
    }
    wal__segment_reader_deinit(&reader);
    return status;
}

static uint64_t first_id(const struct wal__segment *segment)
{
    return wal__segment_is_rewritten(&segment->header)
               ? segment->header.rewrite.first_id
               : segment->id;
}

/* Fills what the last segment of the run hands on. */
static void fill_rewrite(const struct wal__compact_input *last,
                         struct wal__rewrite *rewrite)
{
    const struct wal__segment *segment = last->segment;
    const struct wal__index_header *header = &last->slot.index.header;

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
static enum wal_status open_writer(struct rewrite *rewrite,
                                   struct wal_error *error)
{
    const struct wal__compact_input *first = rewrite->parts[0].input;
    const struct wal__compact_input *last =
        rewrite->parts[rewrite->count - 1].input;
    struct wal__rewrite_source source = {
        .header = last->segment->header,
        .last_session = last->slot.index.header.last_session,
    };
    struct wal__segment_reader opens;
    struct wal__segment_reader commits;
    struct wal__span payload;
    enum wal_status status;

    source.header.version = WAL__FORMAT_VERSION;
    fill_rewrite(last, &source.header.rewrite);
    source.header.rewrite.first_id = rewrite->first_id;
    source.header.rewrite.generation = rewrite->options->generation;
    wal__segment_reader_init(&opens, first->segment);
    wal__segment_reader_init(&commits, last->segment);
    status = read_frame(&commits, last->slot.index.header.commit_offset,
                        WAL__FRAME_COMMIT, &payload, error);
    if (status == WAL_OK &&
        wal__commit_record_decode(payload, &source.last) != WAL__FMT_OK) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, last->segment->path, 0,
                              "the last COMMIT cannot be decoded");
    }
    if (status == WAL_OK) {
        status = read_frame(&opens, WAL__SEGMENT_HEADER_SIZE, WAL__FRAME_OPEN,
                            &source.open, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_writer_open(
            &rewrite->writer, &rewrite->core->env, rewrite->options->throttle,
            rewrite->core->log.directory, &source, rewrite->options->block_size,
            rewrite->options->level, error);
    }
    wal__segment_reader_deinit(&opens);
    wal__segment_reader_deinit(&commits);
    return status;
}

/* --- records ------------------------------------------------------------ */

/* Encodes what is left of an erased ENTRY, or of a deleted session's SESSION:
 * the former's id, type, time and run, and where a compaction begins; the
 * latter's id. */
static enum wal_status encode_erased(struct rewrite *rewrite,
                                     const struct wal__frame *frame,
                                     struct wal__span payload)
{
    const uint8_t type = frame->type;
    struct wal__session_record session;
    struct wal__entry_record entry;
    struct wal__span *texts[] = {&session.cwd,    &session.project,
                                 &session.title,  &session.parent_id,
                                 &session.source, &session.metadata};
    enum wal_status status;
    uint8_t *at;
    size_t size;

    if (type == WAL__FRAME_ENTRY) {
        if (wal__entry_record_decode(payload, &entry) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        rewrite->result->erased += !entry.is_erased;
        rewrite->remains.size = 0;
        status = wal__payload_append_remains(entry.payload, frame->kind,
                                             &rewrite->remains);
        if (status != WAL_OK) {
            return status;
        }
        wal__entry_record_erase(&entry);
        entry.payload.data = rewrite->remains.data;
        entry.payload.size = rewrite->remains.size;
        size = wal__entry_record_size(&entry);
    } else {
        if (wal__session_record_decode(payload, WAL__FORMAT_VERSION,
                                       &session) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            texts[i]->size = 0;
        }
        size = wal__session_record_size(&session);
    }
    rewrite->erased.size = 0;
    status = wal__buf_reserve(&rewrite->erased, size, &at);
    if (status == WAL_OK && type == WAL__FRAME_ENTRY) {
        wal__entry_record_encode(&entry, at);
    } else if (status == WAL_OK) {
        wal__session_record_encode(&session, at);
    }
    rewrite->erased.size = status == WAL_OK ? size : 0;
    return status;
}

static enum wal_status erase(struct rewrite *rewrite, struct wal__frame *frame,
                             struct wal__span *payload, struct wal_error *error)
{
    enum wal_status status = encode_erased(rewrite, frame, *payload);

    if (status != WAL_OK) {
        return wal__fail(error, status, "cannot erase a record");
    }
    payload->data = rewrite->erased.data;
    payload->size = rewrite->erased.size;
    frame->data_crc = wal__crc32(0, payload->data, payload->size);
    return WAL_OK;
}

static enum wal_status copy_record(struct rewrite *rewrite,
                                   const struct part *part,
                                   const struct wal__posting *posting,
                                   enum wal__fate fate, struct wal_error *error)
{
    const struct wal__segment *segment = part->input->segment;
    struct wal__posting copy = *posting;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = wal__log_read(
        &rewrite->core->log, wal__position(segment->id, posting->offset),
        &rewrite->scratch, &frame, &payload, error);

    if (status == WAL_OK &&
        (frame.type != posting->type || frame.sequence != posting->sequence)) {
        status =
            wal__fail_at(error, WAL_ECORRUPT, 0, segment->path, posting->offset,
                         "the index names another record here");
    }
    if (status == WAL_OK && fate == WAL__FATE_ERASE) {
        status = erase(rewrite, &frame, &payload, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_writer_add(&rewrite->writer, &frame, payload,
                                         &copy.offset, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    copy.flags |= WAL__FRAME_REWRITTEN;
    if (copy.type == WAL__FRAME_SESSION) {
        rewrite->session_position =
            wal__position(rewrite->writer.header.id, copy.offset);
    }
    rewrite->result->kept++;
    return wal__segment_writer_add_posting(&rewrite->writer, &copy, error);
}

static enum wal_status copy_part(struct rewrite *rewrite,
                                 const struct part *part,
                                 struct wal_error *error)
{
    const struct wal__index *index = &part->input->slot.index;
    const struct wal__summary *summary = &part->summary;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < summary->posting_count && status == WAL_OK; i++) {
        struct wal__posting posting;
        enum wal__fate fate;

        wal__posting_decode(index->postings +
                                (size_t)(summary->first_posting + i) *
                                    WAL__POSTING_SIZE,
                            &posting);
        fate = wal__live_set_fate(rewrite->set, summary->number, &posting,
                                  i == 0 && summary->segment == 0);
        if (fate == WAL__FATE_DROP) {
            rewrite->result->dropped++;
        } else {
            status = copy_record(rewrite, part, &posting, fate, error);
        }
    }
    return status;
}

/* Adds the summary that the last part has, as of the whole run. */
static enum wal_status add_summary(struct rewrite *rewrite,
                                   const struct part *first,
                                   const struct part *last,
                                   struct wal_error *error)
{
    struct wal__summary summary = last->summary;
    uint64_t segment = wal__position_segment(summary.session_position);

    summary.segment = first->summary.segment;
    if (segment >= rewrite->first_id && segment <= rewrite->writer.header.id) {
        summary.session_position = rewrite->session_position;
    }
    wal__live_set_strip(rewrite->set, &summary);
    return wal__segment_writer_add_summary(&rewrite->writer, &summary, error);
}

/* Copies what the run has of one session. */
static enum wal_status copy_session(struct rewrite *rewrite, uint32_t number,
                                    struct wal_error *error)
{
    const struct part *first = NULL;
    const struct part *last = NULL;
    bool is_purged = wal__live_set_is_purged(rewrite->set, number);
    enum wal_status status = WAL_OK;

    rewrite->session_position = 0;
    for (uint32_t i = 0; i < rewrite->count && status == WAL_OK; i++) {
        struct part *part = &rewrite->parts[i];

        if (!part->is_present || part->summary.number != number) {
            continue;
        }
        first = first == NULL ? part : first;
        last = part;
        status = copy_part(rewrite, part, error);
    }
    WAL__ASSERT(first != NULL);
    return status == WAL_OK && !is_purged
               ? add_summary(rewrite, first, last, error)
               : status;
}

/* Moves to the next summary. */
static enum wal_status step(struct part *part, struct wal_error *error)
{
    const struct wal__index *index = &part->input->slot.index;

    part->is_present = part->rank < index->header.session_count;
    if (part->is_present &&
        wal__index_summary(index, part->rank, &part->summary) != WAL__FMT_OK) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, part->input->segment->path,
                            0, "the index of the segment is damaged");
    }
    part->rank++;
    return WAL_OK;
}

static enum wal_status copy_sessions(struct rewrite *rewrite,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < rewrite->count && status == WAL_OK; i++) {
        status = step(&rewrite->parts[i], error);
    }
    while (status == WAL_OK) {
        bool found = false;
        uint32_t number = 0;

        for (uint32_t i = 0; i < rewrite->count; i++) {
            const struct part *part = &rewrite->parts[i];

            if (part->is_present && (!found || part->summary.number < number)) {
                number = part->summary.number;
                found = true;
            }
        }
        if (!found) {
            break;
        }
        status = copy_session(rewrite, number, error);
        for (uint32_t i = 0; i < rewrite->count && status == WAL_OK; i++) {
            struct part *part = &rewrite->parts[i];

            if (part->is_present && part->summary.number == number) {
                status = step(part, error);
            }
        }
    }
    return status;
}

/* --- replacing ---------------------------------------------------------- */

/* Gives the new file its name, durably. Until it is known to be durable the
 * page says so: then what the file replaces is not removed, since a later sync
 * proves nothing. */
static enum wal_status rename_file(struct rewrite *rewrite,
                                   struct wal_error *error)
{
    struct wal__log *log = &rewrite->core->log;
    const struct wal__io *io = log->env->io;
    const struct wal__compact_input *last =
        rewrite->parts[rewrite->count - 1].input;
    enum wal_status status;
    int err = 0;

    atomic_fetch_add(&log->shared->unsynced_renames, 1);
    status =
        io->rename(io->ctx, rewrite->writer.path, last->segment->path, &err);
    if (status != WAL_OK) {
        atomic_fetch_sub(&log->shared->unsynced_renames, 1);
        return wal__fail_at(error, status, err, rewrite->writer.path, 0,
                            "cannot rename the rewritten segment");
    }
    rewrite->result->is_replaced = true;
    status = wal__log_sync_directory(log, error);
    if (status == WAL_OK) {
        atomic_fetch_sub(&log->shared->unsynced_renames, 1);
    }
    return status;
}

/* Removes the segments that the new one replaces, with what an earlier
 * compaction left of them, and their files in index/. */
static enum wal_status remove_replaced(struct rewrite *rewrite,
                                       struct wal_error *error)
{
    struct wal__log *log = &rewrite->core->log;
    uint64_t last = rewrite->writer.header.id;
    enum wal_status status;
    struct wal__buf ids;
    uint64_t id;

    wal__buf_init(&ids, log->env->heap);
    status = wal__log_list_ids(log, &ids, error);
    for (size_t at = 0; at < ids.size && status == WAL_OK; at += sizeof(id)) {
        memcpy(&id, ids.data + at, sizeof(id));
        if (id >= rewrite->first_id && id < last) {
            status = wal__log_remove_replaced(log, id, error);
        }
    }
    wal__buf_deinit(&ids);
    if (status == WAL_OK &&
        !rewrite->parts[rewrite->count - 1].input->segment->sealed) {
        status = wal__index_file_remove(log, last);
        if (status != WAL_OK) {
            wal__fail_at(error, status, 0, log->env->root, 0,
                         "cannot remove the index of a replaced segment");
        }
    }
    return status == WAL_OK && rewrite->first_id < last
               ? wal__log_sync_directory(log, error)
               : status;
}

static enum wal_status replace(struct rewrite *rewrite, struct wal_error *error)
{
    enum wal_status status = rename_file(rewrite, error);

    return status == WAL_OK ? remove_replaced(rewrite, error) : status;
}

static enum wal_status write_and_replace(struct rewrite *rewrite,
                                         struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < rewrite->count && status == WAL_OK; i++) {
        status = populate(rewrite->parts[i].input->segment,
                          rewrite->options->throttle, error);
    }
    if (status == WAL_OK) {
        status = open_writer(rewrite, error);
    }
    if (status == WAL_OK) {
        status = copy_sessions(rewrite, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_writer_finish(&rewrite->writer, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_writer_verify(&rewrite->writer, error);
    }
    if (status == WAL_OK) {
        status = replace(rewrite, error);
    }
    if (rewrite->writer.env != NULL) {
        rewrite->result->bytes_written = rewrite->writer.header.capacity;
        wal__segment_writer_close(&rewrite->writer,
                                  rewrite->result->is_replaced);
    }
    return status;
}

enum wal_status
wal__rewrite_segments(struct wal__core *core, const struct wal__live_set *set,
                      const struct wal__compact_input *inputs, uint32_t count,
                      const struct wal__rewrite_options *options,
                      struct wal__rewrite_result *result,
                      struct wal_error *error)
{
    const struct wal__heap *heap = core->env.heap;
    struct rewrite rewrite = {
        .core = core,
        .set = set,
        .options = options,
        .parts = wal__heap_zalloc(heap, count * sizeof(struct part)),
        .count = count,
        .first_id = first_id(inputs[0].segment),
        .result = result,
    };
    enum wal_status status;

    memset(result, 0, sizeof(*result));
    if (rewrite.parts == NULL) {
        return wal__no_memory(error);
    }
    wal__record_buf_init(&rewrite.scratch, heap);
    wal__buf_init(&rewrite.erased, heap);
    wal__buf_init(&rewrite.remains, heap);
    for (uint32_t i = 0; i < count; i++) {
        rewrite.parts[i].input = &inputs[i];
        result->bytes_read += inputs[i].segment->header.capacity;
    }
    status = write_and_replace(&rewrite, error);
    wal__buf_deinit(&rewrite.erased);
    wal__buf_deinit(&rewrite.remains);
    wal__record_buf_deinit(&rewrite.scratch);
    wal__heap_free(heap, rewrite.parts);
    return status;
}
