/*
 * segment_writer.c - writes a rewritten segment (segment_writer.h).
 *
 * Invariant: `written + pending.size` is the offset of the next byte; every
 * frame up to there is in `chain` and counted in `commit`.
 */
#include "engine/compact/segment_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

enum {
    WRITE_SIZE = 256 * 1024, /* bytes that are written at once */
    CAPACITY_ALIGN = 4096
};

static uint64_t next_offset(const struct wal__segment_writer *writer)
{
    return writer->written + writer->pending.size;
}

/* --- the file ----------------------------------------------------------- */

static enum wal_status fail_write(const struct wal__segment_writer *writer,
                                  enum wal_status status, int err,
                                  struct wal_error *error)
{
    return wal__fail_at(error, status, err, writer->path, writer->written,
                        "cannot write the rewritten segment");
}

static enum wal_status write_at(struct wal__segment_writer *writer,
                                uint64_t offset, const uint8_t *data,
                                size_t size, struct wal_error *error)
{
    const struct wal__io *io = writer->env->io;
    struct iovec iov = {(void *)(uintptr_t)data, size};
    int err = 0;
    enum wal_status status =
        wal__io_write_full(io, writer->file, &iov, 1, offset, &err);

    return status == WAL_OK ? WAL_OK : fail_write(writer, status, err, error);
}

static enum wal_status sync_file(struct wal__segment_writer *writer,
                                 struct wal_error *error)
{
    const struct wal__io *io = writer->env->io;
    uint64_t begin = io->monotonic_ns(io->ctx);
    int err = 0;
    enum wal_status status = io->sync(io->ctx, writer->file, &err);

    if (status != WAL_OK) {
        return fail_write(writer, status, err, error);
    }
    wal__throttle_count_sync(writer->throttle,
                             io->monotonic_ns(io->ctx) - begin);
    return WAL_OK;
}

static enum wal_status flush(struct wal__segment_writer *writer,
                             struct wal_error *error)
{
    enum wal_status status;

    if (writer->pending.size == 0) {
        return WAL_OK;
    }
    status = write_at(writer, writer->written, writer->pending.data,
                      writer->pending.size, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__throttle_spend(writer->throttle, writer->pending.size, error);
    writer->written += writer->pending.size;
    writer->pending.size = 0;
    return status == WAL_OK && wal__throttle_is_limited(writer->throttle)
               ? sync_file(writer, error)
               : status;
}

/* Room for `size` bytes, zeroed, at the next offset; written later. */
static enum wal_status extend(struct wal__segment_writer *writer, uint64_t size,
                              uint8_t **at, struct wal_error *error)
{
    enum wal_status status =
        writer->pending.size >= WRITE_SIZE ? flush(writer, error) : WAL_OK;

    if (status != WAL_OK) {
        return status;
    }
    if (next_offset(writer) + size > WAL__SEGMENT_MAX) {
        return wal__fail_at(error, WAL_ETOOBIG, 0, writer->path, 0,
                            "the rewritten segment would be larger than %d "
                            "bytes",
                            (int)WAL__SEGMENT_MAX);
    }
    if (wal__buf_reserve(&writer->pending, size, at) != WAL_OK) {
        return wal__no_memory(error);
    }
    memset(*at, 0, size);
    writer->pending.size += size;
    return WAL_OK;
}

/* --- frames and groups -------------------------------------------------- */

/* Encodes the header of a frame whose payload is in place. */
static void seal_frame(struct wal__segment_writer *writer,
                       struct wal__frame *frame, uint64_t offset, uint8_t *at)
{
    wal__frame_encode(frame, writer->header.salt, offset, at);
    writer->chain = wal__frame_chain_crc(writer->chain, frame);
    writer->commit.frame_count++;
}

static enum wal_status add_frame(struct wal__segment_writer *writer,
                                 uint8_t type, struct wal__span payload,
                                 struct wal_error *error)
{
    uint64_t offset = next_offset(writer);
    struct wal__frame frame = {.type = type,
                               .stored_size = (uint32_t)payload.size,
                               .raw_size = (uint32_t)payload.size};
    uint8_t *at;
    enum wal_status status =
        extend(writer, wal__frame_total_size(frame.stored_size), &at, error);

    if (status == WAL_OK) {
        memcpy(at + WAL__FRAME_SIZE, payload.data, payload.size);
        frame.data_crc = wal__crc32(0, payload.data, payload.size);
        seal_frame(writer, &frame, offset, at);
    }
    return status;
}

/* Ends the group by a COMMIT, and begins the next one. */
static enum wal_status end_group(struct wal__segment_writer *writer,
                                 struct wal_error *error)
{
    struct wal__commit_record *commit = &writer->commit;
    uint64_t offset = next_offset(writer);
    uint8_t payload[64];
    struct wal__span span = {payload, wal__commit_record_size(0)};
    enum wal_status status;
    uint8_t *at;

    WAL__ASSERT(span.size <= sizeof(payload));
    commit->group_size = (uint32_t)(offset - writer->group_begin);
    commit->durable_off = (uint32_t)writer->group_begin;
    commit->chain = writer->chain;
    wal__commit_record_encode(commit, NULL, payload);
    status = add_frame(writer, WAL__FRAME_COMMIT, span, error);
    if (status == WAL_OK) {
        status = extend(writer,
                        wal__align_up(next_offset(writer), WAL__BLOCK_ALIGN) -
                            next_offset(writer),
                        &at, error);
    }
    writer->commit_offset = offset;
    writer->end = next_offset(writer);
    writer->group_begin = writer->end;
    commit->frame_count = 0;
    return status;
}

enum wal_status wal__segment_writer_open(
    struct wal__segment_writer *writer, const struct wal__env *env,
    struct wal__throttle *throttle, const char *directory,
    const struct wal__rewrite_source *source, uint32_t block_size, int level,
    struct wal_error *error)
{
    const struct wal__io *io = env->io;
    struct wal__open_record open;
    enum wal_status status;
    int err = 0;
    int size;

    memset(writer, 0, sizeof(*writer));
    writer->env = env;
    writer->throttle = throttle;
    wal__buf_init(&writer->pending, env->heap);
    wal__buf_init(&writer->records, env->heap);
    if (wal__open_record_decode(source->open, &open) != WAL__FMT_OK) {
        return wal__fail(error, WAL_ECORRUPT, "OPEN cannot be decoded");
    }
    writer->header = source->header;
    writer->header.features.incompat |= WAL__INCOMPAT_REWRITTEN;
    writer->header.group_align = WAL__BLOCK_ALIGN;
    writer->header.rewrite.raw_size = 0;
    io->random(io->ctx, &writer->header.salt, sizeof(writer->header.salt));
    writer->block_size = block_size;
    writer->level = level;
    writer->chain = open.chain;
    writer->first_chain = open.chain;
    writer->first_sequence = open.last_sequence + 1;
    writer->commit = source->last;
    writer->commit.flags = 0;
    writer->commit.session_count = 0;
    writer->commit.frame_count = 0;
    writer->commit.first_sequence = source->header.rewrite.last_sequence + 1;
    writer->written = WAL__SEGMENT_HEADER_SIZE;
    writer->group_begin = writer->written;
    size = snprintf(writer->path, sizeof(writer->path),
                    "%.*s/%s/%016" PRIx64 ".rewrite", WAL__PATH_MAX - 64,
                    env->root, directory, source->header.id);
    WAL__ASSERT(size > 0 && size < WAL__PATH_MAX);
    status = io->unlink(io->ctx, writer->path, &err);
    if (status == WAL_OK || status == WAL_ENOTFOUND) {
        status = io->open(io->ctx, writer->path,
                          WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE,
                          &writer->file, &err);
    }
    if (status != WAL_OK) {
        return fail_write(writer, status, err, error);
    }
    status = add_frame(writer, WAL__FRAME_OPEN, source->open, error);
    return status == WAL_OK ? end_group(writer, error) : status;
}

/* --- records ------------------------------------------------------------ */

static enum wal_status end_block(struct wal__segment_writer *writer,
                                 struct wal_error *error)
{
    struct wal__span raw = {writer->records.data, writer->records.size};
    uint64_t offset = next_offset(writer);
    struct wal__frame frame = {.session = writer->session};
    enum wal_status status;
    uint64_t room;
    uint64_t used;
    uint8_t *at;

    if (writer->record_count == 0) {
        return WAL_OK;
    }
    WAL__ASSERT(offset % WAL__BLOCK_ALIGN == 0);
    room = WAL__FRAME_SIZE + wal__block_payload_size((uint32_t)raw.size);
    status = extend(writer, room, &at, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__block_encode(raw, writer->record_count, writer->level, &frame,
                      at + WAL__FRAME_SIZE);
    used = wal__frame_total_size(frame.stored_size);
    WAL__ASSERT(used <= room && used % WAL__BLOCK_ALIGN == 0);
    writer->pending.size -= room - used;
    seal_frame(writer, &frame, offset, at);
    writer->records.size = 0;
    writer->record_count = 0;
    wal__throttle_yield(writer->throttle);
    return WAL_OK;
}

enum wal_status wal__segment_writer_add(struct wal__segment_writer *writer,
                                        const struct wal__frame *frame,
                                        struct wal__span payload,
                                        uint32_t *offset,
                                        struct wal_error *error)
{
    struct wal__frame copy = *frame;
    uint64_t size = wal__frame_total_size((uint32_t)payload.size);
    enum wal_status status = WAL_OK;
    uint8_t *at;

    WAL__ASSERT(wal__frame_is_sequenced(frame->type));
    if (writer->records.size + size > writer->block_size ||
        writer->record_count == WAL__BLOCK_RECORDS_MAX) {
        status = end_block(writer, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal__buf_reserve(&writer->records, size, &at) != WAL_OK) {
        return wal__no_memory(error);
    }
    *offset = (uint32_t)next_offset(writer) + writer->record_count;
    copy.stored_size = (uint32_t)payload.size;
    copy.raw_size = copy.stored_size;
    copy.flags |= WAL__FRAME_REWRITTEN;
    wal__frame_encode(&copy, writer->header.salt, *offset, at);
    memcpy(at + WAL__FRAME_SIZE, payload.data, payload.size);
    memset(at + WAL__FRAME_SIZE + payload.size, 0,
           size - WAL__FRAME_SIZE - payload.size);
    writer->records.size += size;
    writer->header.rewrite.raw_size += size;
    writer->session =
        writer->record_count == 0 || writer->session == frame->session
            ? frame->session
            : 0;
    writer->record_count++;
    return WAL_OK;
}

/* --- the end ------------------------------------------------------------ */

enum wal_status
wal__segment_writer_end_records(struct wal__segment_writer *writer,
                                struct wal__index_header *header,
                                struct wal_error *error)
{
    enum wal_status status = end_block(writer, error);

    if (status == WAL_OK) {
        status = end_group(writer, error);
    }
    *header = (struct wal__index_header){
        .id = writer->header.id,
        .end = writer->end,
        .first_sequence = writer->first_sequence,
        .last_sequence = writer->header.rewrite.last_sequence,
        .chain = writer->chain,
        .commit_offset = (uint32_t)writer->commit_offset,
        .epoch = writer->commit.epoch,
    };
    memcpy(header->uuid, writer->header.uuid, sizeof(header->uuid));
    return status;
}

static enum wal_status add_index(struct wal__segment_writer *writer,
                                 struct wal__span index,
                                 struct wal_error *error)
{
    struct wal__frame frame = {.type = WAL__FRAME_INDEX,
                               .stored_size = (uint32_t)index.size,
                               .raw_size = (uint32_t)index.size};
    enum wal_status status = flush(writer, error);
    uint8_t *at;

    if (status == WAL_OK) {
        status = extend(writer, wal__frame_total_size(frame.stored_size), &at,
                        error);
    }
    if (status != WAL_OK) {
        return status;
    }
    memcpy(at + WAL__FRAME_SIZE, index.data, index.size);
    frame.data_crc = wal__crc32(0, index.data, index.size);
    wal__frame_encode(&frame, writer->header.salt, writer->end, at);
    return WAL_OK;
}

/* SEAL and trailer; sets the capacity. */
static enum wal_status add_seal(struct wal__segment_writer *writer,
                                struct wal_error *error)
{
    struct wal__trailer trailer = {
        .id = writer->header.id,
        .seal_offset = next_offset(writer),
        .index_offset = writer->end,
        .end = writer->end,
        .last_sequence = writer->header.rewrite.last_sequence,
        .chain = writer->chain,
    };
    struct wal__seal_record seal = {
        .end = trailer.end,
        .last_sequence = trailer.last_sequence,
        .chain = trailer.chain,
        .index_offset = trailer.index_offset,
    };
    struct wal__frame frame = {.type = WAL__FRAME_SEAL,
                               .stored_size = WAL__SEAL_SIZE,
                               .raw_size = WAL__SEAL_SIZE};
    uint64_t size = wal__frame_total_size(WAL__SEAL_SIZE);
    uint64_t capacity = wal__align_up(
        trailer.seal_offset + size + WAL__TRAILER_SIZE, CAPACITY_ALIGN);
    enum wal_status status;
    uint8_t *at;

    capacity = capacity < WAL__SEGMENT_MIN ? WAL__SEGMENT_MIN : capacity;
    status = extend(writer, capacity - trailer.seal_offset, &at, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__seal_record_encode(&seal, at + WAL__FRAME_SIZE);
    frame.data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, WAL__SEAL_SIZE);
    wal__frame_encode(&frame, writer->header.salt, trailer.seal_offset, at);
    wal__trailer_encode(
        &trailer, writer->header.salt, capacity - WAL__TRAILER_SIZE,
        at + capacity - trailer.seal_offset - WAL__TRAILER_SIZE);
    writer->header.capacity = capacity;
    return flush(writer, error);
}

enum wal_status wal__segment_writer_finish(struct wal__segment_writer *writer,
                                           struct wal__span index,
                                           struct wal_error *error)
{
    uint8_t header[WAL__SEGMENT_HEADER_SIZE];
    enum wal_status status = add_index(writer, index, error);

    if (status == WAL_OK) {
        status = add_seal(writer, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__segment_header_encode(&writer->header, header);
    status = write_at(writer, 0, header, sizeof(header), error);
    return status == WAL_OK ? sync_file(writer, error) : status;
}

void wal__segment_writer_close(struct wal__segment_writer *writer, bool keep)
{
    const struct wal__io *io = writer->env->io;
    int err = 0;

    if (writer->file != NULL) {
        io->close(io->ctx, writer->file);
        writer->file = NULL;
        if (!keep) {
            (void)!io->unlink(io->ctx, writer->path, &err);
        }
    }
    wal__buf_deinit(&writer->pending);
    wal__buf_deinit(&writer->records);
}
