/*
 * segment_run.c - replaces a run of segments by one new segment (segment_run.h): writes it, and
 * reads it back before its rename, through the scan that recovery uses, then record by record.
 *
 * Invariant: `written + pending.size` of a writer is the offset of the next byte; every frame up to
 * there is in `chain` and counted in `commit`. A file that passes holds each record that its index
 * names, whole.
 */
#include "engine/care/segment_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/index_file.h"
#include "engine/log/segment.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/segment/scan.h"

/* --- the writer ----------------------------------------------------------- */

enum {
    WRITE_SIZE = 256 * 1024, /* bytes that are written at once */
    CAPACITY_ALIGN = 4096
};

static uint64_t next_offset(const struct wal__segment_writer *writer)
{
    return writer->written + writer->pending.size;
}

/* --- the file ----------------------------------------------------------- */

static enum wal_status fail_write(const struct wal__segment_writer *writer, enum wal_status status,
                                  int err, struct wal_error *error)
{
    return wal__fail_at(error, status, err, writer->path, writer->written,
                        "cannot write the rewritten segment");
}

static enum wal_status write_at(struct wal__segment_writer *writer, uint64_t offset,
                                const uint8_t *data, size_t size, struct wal_error *error)
{
    const struct wal__io *io = writer->env->io;
    struct iovec iov = {(void *)(uintptr_t)data, size};
    int err = 0;
    enum wal_status status = wal__io_write_full(io, writer->file, &iov, 1, offset, &err);

    return status == WAL_OK ? WAL_OK : fail_write(writer, status, err, error);
}

static enum wal_status sync_file(struct wal__segment_writer *writer, struct wal_error *error)
{
    const struct wal__io *io = writer->env->io;
    uint64_t begin = io->monotonic_ns(io->ctx);
    int err = 0;
    enum wal_status status = io->sync(io->ctx, writer->file, &err);

    if (status != WAL_OK) {
        return fail_write(writer, status, err, error);
    }
    wal__throttle_count_sync(writer->throttle, io->monotonic_ns(io->ctx) - begin);
    return WAL_OK;
}

static enum wal_status flush(struct wal__segment_writer *writer, struct wal_error *error)
{
    enum wal_status status;

    if (writer->pending.size == 0) {
        return WAL_OK;
    }
    status = write_at(writer, writer->written, writer->pending.data, writer->pending.size, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__throttle_spend(writer->throttle, writer->pending.size, error);
    writer->written += writer->pending.size;
    writer->pending.size = 0;
    return status == WAL_OK && wal__throttle_is_limited(writer->throttle) ? sync_file(writer, error)
                                                                          : status;
}

/* Room for `size` bytes, zeroed, at the next offset; written later. */
static enum wal_status extend(struct wal__segment_writer *writer, uint64_t size, uint8_t **at,
                              struct wal_error *error)
{
    enum wal_status status = writer->pending.size >= WRITE_SIZE ? flush(writer, error) : WAL_OK;

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

/* Encodes the header of a frame whose payload is in place, with room for what encryption adds. */
static enum wal_status encode_frame(struct wal__segment_writer *writer, struct wal__frame *frame,
                                    uint64_t offset, uint8_t *at)
{
    if (wal__encrypt_covers(&writer->header, frame->type)) {
        return wal__encrypt_frame(writer->env->keyring, &writer->cipher, &writer->header, offset,
                                  frame, at + WAL__FRAME_SIZE, at);
    }
    wal__frame_encode(frame, writer->header.salt, offset, at);
    return WAL_OK;
}

/* The same of a frame of a group. */
static enum wal_status seal_frame(struct wal__segment_writer *writer, struct wal__frame *frame,
                                  uint64_t offset, uint8_t *at)
{
    enum wal_status status = encode_frame(writer, frame, offset, at);

    writer->chain = wal__frame_chain_crc(writer->chain, frame);
    writer->commit.frame_count++;
    return status;
}

static enum wal_status add_frame(struct wal__segment_writer *writer, uint8_t type,
                                 struct wal__span payload, struct wal_error *error)
{
    uint64_t offset = next_offset(writer);
    struct wal__frame frame = {
        .type = type, .stored_size = (uint32_t)payload.size, .raw_size = (uint32_t)payload.size};
    uint8_t *at;
    enum wal_status status = extend(writer, wal__frame_total_size(frame.stored_size), &at, error);

    if (status == WAL_OK) {
        memcpy(at + WAL__FRAME_SIZE, payload.data, payload.size);
        frame.data_crc = wal__crc32(0, payload.data, payload.size);
        status = seal_frame(writer, &frame, offset, at);
    }
    return status;
}

/* Ends the group by a COMMIT, and begins the next one. */
static enum wal_status end_group(struct wal__segment_writer *writer, struct wal_error *error)
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
                        wal__align_up(next_offset(writer), WAL__BLOCK_ALIGN) - next_offset(writer),
                        &at, error);
    }
    writer->commit_offset = offset;
    writer->end = next_offset(writer);
    writer->group_begin = writer->end;
    commit->frame_count = 0;
    return status;
}

enum wal_status wal__segment_writer_open(struct wal__segment_writer *writer,
                                         const struct wal__env *env, struct wal__throttle *throttle,
                                         const char *directory,
                                         const struct wal__rewrite_source *source,
                                         uint32_t block_size, int level, struct wal_error *error)
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
    wal__encrypt_header(env->keyring, &writer->header);
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
    size = snprintf(writer->path, sizeof(writer->path), "%.*s/%s/%016" PRIx64 ".rewrite",
                    WAL__PATH_MAX - 64, env->root, directory, source->header.id);
    WAL__ASSERT(size > 0 && size < WAL__PATH_MAX);
    status = io->unlink(io->ctx, writer->path, &err);
    if (status == WAL_OK || status == WAL_ENOTFOUND) {
        status = io->open(io->ctx, writer->path, WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE,
                          &writer->file, &err);
    }
    if (status != WAL_OK) {
        return fail_write(writer, status, err, error);
    }
    status = add_frame(writer, WAL__FRAME_OPEN, source->open, error);
    return status == WAL_OK ? end_group(writer, error) : status;
}

/* --- records ------------------------------------------------------------ */

static enum wal_status end_block(struct wal__segment_writer *writer, struct wal_error *error)
{
    struct wal__span raw = {writer->records.data, writer->records.size};
    uint64_t offset = next_offset(writer);
    struct wal__frame frame = {.session = writer->session};
    const uint32_t added = wal__encrypt_overhead(&writer->header);
    enum wal_status status;
    uint64_t room;
    uint64_t used;
    uint8_t *at;

    if (writer->record_count == 0) {
        return WAL_OK;
    }
    WAL__ASSERT(offset % WAL__BLOCK_ALIGN == 0);
    room = WAL__FRAME_SIZE + wal__block_payload_size((uint32_t)raw.size, added) + added;
    status = extend(writer, room, &at, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__block_encode(raw, writer->record_count, writer->level, added, &frame,
                      at + WAL__FRAME_SIZE);
    used = wal__frame_total_size(frame.stored_size + added);
    WAL__ASSERT(used <= room && used % WAL__BLOCK_ALIGN == 0);
    writer->pending.size -= room - used;
    if (seal_frame(writer, &frame, offset, at) != WAL_OK) {
        return wal__no_memory(error);
    }
    writer->records.size = 0;
    writer->record_count = 0;
    wal__throttle_yield(writer->throttle);
    return WAL_OK;
}

enum wal_status wal__segment_writer_add(struct wal__segment_writer *writer,
                                        const struct wal__frame *frame, struct wal__span payload,
                                        uint32_t *offset, struct wal_error *error)
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
    memset(at + WAL__FRAME_SIZE + payload.size, 0, size - WAL__FRAME_SIZE - payload.size);
    writer->records.size += size;
    writer->header.rewrite.raw_size += size;
    writer->session =
        writer->record_count == 0 || writer->session == frame->session ? frame->session : 0;
    writer->record_count++;
    return WAL_OK;
}

/* --- the end ------------------------------------------------------------ */

enum wal_status wal__segment_writer_end_records(struct wal__segment_writer *writer,
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

static enum wal_status add_index(struct wal__segment_writer *writer, struct wal__span index,
                                 struct wal_error *error)
{
    struct wal__frame frame = {.type = WAL__FRAME_INDEX,
                               .stored_size = (uint32_t)index.size,
                               .raw_size = (uint32_t)index.size};
    enum wal_status status = flush(writer, error);
    uint8_t *at;

    if (status == WAL_OK) {
        status = extend(
            writer,
            wal__frame_total_size(frame.stored_size + wal__encrypt_overhead(&writer->header)), &at,
            error);
    }
    if (status != WAL_OK) {
        return status;
    }
    memcpy(at + WAL__FRAME_SIZE, index.data, index.size);
    frame.data_crc = wal__crc32(0, index.data, index.size);
    return encode_frame(writer, &frame, writer->end, at) == WAL_OK ? WAL_OK : wal__no_memory(error);
}

/* SEAL and trailer; sets the capacity. */
static enum wal_status add_seal(struct wal__segment_writer *writer, struct wal_error *error)
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
    struct wal__frame frame = {
        .type = WAL__FRAME_SEAL, .stored_size = WAL__SEAL_SIZE, .raw_size = WAL__SEAL_SIZE};
    uint64_t size = wal__frame_total_size(WAL__SEAL_SIZE);
    uint64_t capacity =
        wal__align_up(trailer.seal_offset + size + WAL__TRAILER_SIZE, CAPACITY_ALIGN);
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
    wal__trailer_encode(&trailer, writer->header.salt, capacity - WAL__TRAILER_SIZE,
                        at + capacity - trailer.seal_offset - WAL__TRAILER_SIZE);
    writer->header.capacity = capacity;
    return flush(writer, error);
}

enum wal_status wal__segment_writer_finish(struct wal__segment_writer *writer,
                                           struct wal__span index, struct wal_error *error)
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
    wal__cipher_deinit(&writer->cipher);
}

/* --- reading back --------------------------------------------------------- */

struct verify {
    const struct wal__segment_writer *writer;
    const struct wal__segment_run_client *client;
    const uint8_t *map;
    struct wal__buf records;
    struct wal__cipher cipher;
    struct wal__buf plain;  /* a block that was decrypted */
    struct wal__buf index;  /* INDEX, that was */
    enum wal_status status; /* WAL_ENOMEM stops the scan */
};

static const uint8_t *fetch(void *ctx, uint64_t offset, uint64_t size)
{
    const struct verify *verify = ctx;

    return offset + size <= verify->writer->header.capacity ? verify->map + offset : NULL;
}

/* Decrypts a frame where the file is encrypted. */
static bool decrypt(struct verify *verify, uint64_t offset, struct wal__frame *frame,
                    struct wal__buf *plain, const uint8_t **payload)
{
    const struct wal__segment_writer *writer = verify->writer;
    const enum wal_status status = wal__decrypt_payload(
        writer->env->keyring, &verify->cipher, &writer->header, offset, frame, plain, payload);

    verify->status = status == WAL_ENOMEM ? status : verify->status;
    return status == WAL_OK;
}

static bool verify_block(struct verify *verify, const struct wal__frame *frame, uint64_t offset,
                         const uint8_t *payload)
{
    uint64_t salt = verify->writer->header.salt;
    struct wal__block_cursor cursor;
    struct wal__span bytes;
    struct wal__frame record;
    struct wal__block block;
    enum wal__fmt fmt = wal__block_decode(frame, payload, &block);
    uint8_t *out;

    if (fmt == WAL__FMT_OK && block.is_compressed) {
        verify->records.size = 0;
        if (wal__buf_reserve(&verify->records, block.raw_size, &out) != WAL_OK) {
            verify->status = WAL_ENOMEM;
            return false;
        }
        fmt = wal__block_decompress(&block, out);
        block.data = (struct wal__span){out, block.raw_size};
    }
    if (fmt != WAL__FMT_OK) {
        return false;
    }
    wal__block_cursor_begin(&cursor, block.data, block.count, salt, offset);
    while (fmt == WAL__FMT_OK) {
        uint64_t at = cursor.offset;

        fmt = wal__block_cursor_next(&cursor, &record, &bytes);
        if (fmt == WAL__FMT_OK &&
            !verify->client->check_record(verify->client->ctx, &record, at, bytes)) {
            return false;
        }
    }
    return fmt == WAL__FMT_ZERO;
}

static bool verify_range(void *ctx, const struct wal__scan_range *range)
{
    struct verify *verify = ctx;
    uint64_t salt = verify->writer->header.salt;

    for (uint64_t at = 0; at < range->size;) {
        const uint8_t *payload = range->bytes + at + WAL__FRAME_SIZE;
        const uint64_t offset = range->offset + at;
        struct wal__frame frame;

        if (wal__frame_decode(range->bytes + at, range->size - at, salt, offset, &frame) !=
            WAL__FMT_OK) {
            return false;
        }
        at += wal__frame_total_size(frame.stored_size);
        if (frame.type == WAL__FRAME_BLOCK &&
            (!decrypt(verify, offset, &frame, &verify->plain, &payload) ||
             !verify_block(verify, &frame, offset, payload))) {
            return false;
        }
        wal__throttle_yield(verify->writer->throttle);
    }
    return true;
}

/* Returns whether header, INDEX and trailer are what was written. */
static bool verify_ends(struct verify *verify)
{
    const struct wal__segment_writer *writer = verify->writer;
    const uint64_t trailer_at = writer->header.capacity - WAL__TRAILER_SIZE;
    struct wal__segment_header header;
    struct wal__trailer trailer;
    const uint8_t *payload;
    struct wal__frame frame;

    if (wal__segment_header_decode(verify->map, &header) != WAL__FMT_OK ||
        wal__segment_header_copies(verify->map) != 2 || header.salt != writer->header.salt ||
        header.capacity != writer->header.capacity ||
        wal__trailer_decode(verify->map + trailer_at, header.salt, trailer_at, &trailer) !=
            WAL__FMT_OK ||
        trailer.end != writer->end ||
        wal__frame_decode(verify->map + trailer.index_offset,
                          header.capacity - trailer.index_offset, header.salt, trailer.index_offset,
                          &frame) != WAL__FMT_OK ||
        frame.type != WAL__FRAME_INDEX) {
        return false;
    }
    payload = verify->map + trailer.index_offset + WAL__FRAME_SIZE;
    return decrypt(verify, trailer.index_offset, &frame, &verify->index, &payload) &&
           verify->client->check_index(verify->client->ctx,
                                       (struct wal__span){payload, frame.stored_size});
}

static bool verify_map(struct verify *verify, struct wal__scan_result *facts)
{
    const struct wal__segment_writer *writer = verify->writer;
    struct wal__scan_source source = {verify, fetch};
    struct wal__scan_sink sink = {.ctx = verify, .range = verify_range};
    struct wal__scan_start start = {
        .salt = writer->header.salt,
        .capacity = writer->header.capacity,
        .group_align = writer->header.group_align,
        .offset = WAL__SEGMENT_HEADER_SIZE,
        .last_sequence = writer->header.rewrite.last_sequence,
        .chain = writer->first_chain,
    };

    if (!verify_ends(verify)) {
        return false;
    }
    wal__scan(&source, &sink, &start, facts);
    return facts->verdict == WAL__VERDICT_CLEAN && facts->groups == 2 &&
           facts->end == writer->end && facts->sealed_end == writer->end &&
           verify->client->check_end(verify->client->ctx);
}

enum wal_status wal__segment_writer_verify(const struct wal__segment_writer *writer,
                                           const struct wal__segment_run_client *client,
                                           struct wal_error *error)
{
    const struct wal__env *env = writer->env;
    struct verify verify = {.writer = writer, .client = client};
    struct wal__scan_result *facts = wal__heap_alloc(env->heap, sizeof(*facts));
    struct wal__mapped_file mapped = {0};
    enum wal_status status;

    if (facts == NULL) {
        return wal__no_memory(error);
    }
    wal__buf_init(&verify.records, env->heap);
    wal__buf_init(&verify.plain, env->heap);
    wal__buf_init(&verify.index, env->heap);
    status = wal__mapped_file_open(env, writer->path, &mapped, error);
    if (status == WAL_OK) {
        int err = 0;

        verify.map = mapped.at;
        status = env->io->populate(env->io->ctx, mapped.at, mapped.size, &err);
        status = status == WAL_EINVAL ? WAL_OK : status;
        if (status == WAL_OK &&
            (mapped.size != writer->header.capacity || !verify_map(&verify, facts))) {
            status = verify.status == WAL_OK ? WAL_ECORRUPT : verify.status;
        }
        if (status != WAL_OK) {
            wal__fail_at(error, status, err, writer->path, 0,
                         "the rewritten segment is not what was written");
        }
        wal__mapped_file_close(env, &mapped);
    }
    wal__buf_deinit(&verify.records);
    wal__buf_deinit(&verify.plain);
    wal__buf_deinit(&verify.index);
    wal__cipher_deinit(&verify.cipher);
    wal__heap_free(env->heap, facts);
    return status;
}

/* --- a run of segments ---------------------------------------------------- */

static struct wal__segment *last_of(const struct wal__segment_run *run)
{
    WAL__ASSERT(run->count > 0);
    return run->segments[run->count - 1];
}

uint64_t wal__segment_run_first_id(const struct wal__segment_run *run)
{
    const struct wal__segment *first = run->segments[0];

    return wal__segment_is_rewritten(&first->header) ? first->header.rewrite.first_id : first->id;
}

/* --- reading ------------------------------------------------------------ */

/* Reads all of a segment's used bytes once, so that a bad sector is an error and not a signal. */
static enum wal_status populate(struct wal__segment *segment, struct wal__throttle *throttle,
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
static void fill_rewrite(const struct wal__segment_run *run, struct wal__rewrite *rewrite)
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
static enum wal_status read_frame(struct wal__segment_reader *reader, uint64_t offset, uint8_t type,
                                  struct wal__span *payload, struct wal_error *error)
{
    struct wal__segment *segment = reader->segment;
    const uint64_t left = segment->header.capacity - offset;
    struct wal__frame frame = {0};
    const uint8_t *at = wal__segment_reader_fetch(reader, offset, WAL__FRAME_SIZE);
    enum wal__fmt fmt = WAL__FMT_OK;

    if (at != NULL) {
        fmt = wal__frame_decode(at, left, segment->header.salt, offset, &frame);
    }
    if (at != NULL && fmt == WAL__FMT_OK) {
        at = wal__segment_reader_fetch(reader, offset, wal__frame_total_size(frame.stored_size));
    }
    if (at == NULL) {
        return wal__fail_at(error, WAL_EIO, reader->sys_errno, segment->path, offset,
                            "cannot read the segment");
    }
    if (fmt == WAL__FMT_OK && frame.type == type) {
        fmt = wal__frame_check_data(&frame, at + WAL__FRAME_SIZE);
    }
    if (fmt != WAL__FMT_OK || frame.type != type) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, segment->path, offset,
                            "the %s of the segment is damaged", wal__frame_type_name(type));
    }
    payload->data = at + WAL__FRAME_SIZE;
    payload->size = frame.stored_size;
    return WAL_OK;
}

/* Creates the file, with the OPEN of the first segment and what the COMMIT of the last one has. */
static enum wal_status open_writer(const struct wal__segment_run *run,
                                   struct wal__segment_writer *writer, struct wal_error *error)
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
    status =
        read_frame(&commits, run->last_index->commit_offset, WAL__FRAME_COMMIT, &payload, error);
    if (status == WAL_OK && wal__commit_record_decode(payload, &source.last) != WAL__FMT_OK) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, last->path, 0,
                              "the last COMMIT cannot be decoded");
    }
    if (status == WAL_OK) {
        status = read_frame(&opens, WAL__SEGMENT_HEADER_SIZE, WAL__FRAME_OPEN, &source.open, error);
    }
    if (status == WAL_OK) {
        status =
            wal__segment_writer_open(writer, run->log->env, options->throttle, run->log->directory,
                                     &source, options->block_size, options->level, error);
    }
    wal__segment_reader_deinit(&opens);
    wal__segment_reader_deinit(&commits);
    return status;
}

/* --- replacing ---------------------------------------------------------- */

/* Gives the new file its name, durably. Until it is known to be durable the page says so: then what
 * the file replaces is not removed, since a later sync proves nothing. */
static enum wal_status rename_file(const struct wal__segment_run *run,
                                   const struct wal__segment_writer *writer,
                                   struct wal__segment_run_result *result, struct wal_error *error)
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

/* Removes the segments that the new one replaces, with what an earlier compaction left of them, and
 * their files in index/. */
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
                                  struct wal__segment_writer *writer, struct wal_error *error)
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
    return status == WAL_OK ? wal__segment_writer_verify(writer, client, error) : status;
}

enum wal_status wal__segment_run_rewrite(const struct wal__segment_run *run,
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

/* --- how fast ------------------------------------------------------------- */

enum {
    STEP = 64 * 1024,         /* bytes between two looks at the clock */
    PAUSE_MAX_NS = 100000000, /* after a sync */
    AVERAGE_OF = 8,           /* syncs, about */
    SLOW_FACTOR = 2,
    SLICE_NS = 250000,     /* of work */
    REPORT_NS = 250000000, /* between reports */
    NS_PER_US = 1000,
    US_PER_S = 1000000
};

void wal__throttle_init(struct wal__throttle *throttle, const struct wal__io *io, uint64_t rate)
{
    memset(throttle, 0, sizeof(*throttle));
    throttle->io = io;
    throttle->rate = rate;
}

void wal__throttle_set_progress(struct wal__throttle *throttle, wal__throttle_progress_fn *progress,
                                void *ctx)
{
    throttle->progress = progress;
    throttle->ctx = ctx;
}

void wal__throttle_expect(struct wal__throttle *throttle, uint64_t done, uint64_t total)
{
    throttle->done = done;
    throttle->total = total;
}

enum wal_status wal__throttle_report(struct wal__throttle *throttle, uint64_t done, uint64_t total,
                                     struct wal_error *error)
{
    wal__throttle_expect(throttle, done, total);
    throttle->reported_ns = throttle->io->monotonic_ns(throttle->io->ctx);
    return throttle->progress == NULL || throttle->progress(throttle->ctx, done, total)
               ? WAL_OK
               : wal__fail(error, WAL_ECALLBACK, "stopped by the caller");
}

/* Reports the same again when it is time. */
static enum wal_status report_again(struct wal__throttle *throttle, uint64_t now,
                                    struct wal_error *error)
{
    if (throttle->reported_ns == 0) {
        throttle->reported_ns = now;
    }
    return now - throttle->reported_ns < REPORT_NS
               ? WAL_OK
               : wal__throttle_report(throttle, throttle->done, throttle->total, error);
}

bool wal__throttle_is_limited(const struct wal__throttle *throttle)
{
    return throttle->rate != UINT64_MAX;
}

static void pause_for(struct wal__throttle *throttle, uint64_t ns)
{
    const uint32_t never_woken = 0;
    const struct wal__io *io = throttle->io;

    io->futex_wait(io->ctx, &never_woken, 0, ns);
    throttle->begun_ns = io->monotonic_ns(io->ctx);
}

/* How long the bytes take at the rate; whole microseconds, so that nothing overflows. */
static uint64_t duration_of(uint64_t bytes, uint64_t rate)
{
    uint64_t seconds = bytes / rate;
    uint64_t rest = bytes % rate;
    uint64_t us =
        rate > UINT64_MAX / US_PER_S ? rest / (rate / US_PER_S) : (rest * US_PER_S) / rate;

    return (seconds * US_PER_S + us) * NS_PER_US;
}

/* Sleeps, and reports meanwhile. */
static enum wal_status sleep_for(struct wal__throttle *throttle, uint64_t ns,
                                 struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    while (ns > 0 && status == WAL_OK) {
        uint64_t part = ns < REPORT_NS ? ns : REPORT_NS;

        pause_for(throttle, part);
        ns -= part;
        status = report_again(throttle, throttle->begun_ns, error);
    }
    return status;
}

enum wal_status wal__throttle_spend(struct wal__throttle *throttle, uint64_t bytes,
                                    struct wal_error *error)
{
    uint64_t now;

    throttle->unpaid += bytes;
    if (throttle->unpaid < STEP) {
        return WAL_OK;
    }
    now = throttle->io->monotonic_ns(throttle->io->ctx);
    if (!wal__throttle_is_limited(throttle)) {
        throttle->unpaid = 0;
        return report_again(throttle, now, error);
    }
    if (throttle->free_ns < now) {
        throttle->free_ns = now;
    }
    throttle->free_ns += duration_of(throttle->unpaid, throttle->rate);
    throttle->unpaid = 0;
    return sleep_for(throttle, throttle->free_ns - now, error);
}

void wal__throttle_count_sync(struct wal__throttle *throttle, uint64_t duration_ns)
{
    bool is_slow = throttle->usual_ns != 0 && duration_ns / SLOW_FACTOR > throttle->usual_ns;

    if (!wal__throttle_is_limited(throttle)) {
        return;
    }
    if (is_slow) {
        pause_for(throttle, duration_ns < PAUSE_MAX_NS ? duration_ns : PAUSE_MAX_NS);
    }
    throttle->usual_ns =
        throttle->usual_ns == 0
            ? duration_ns
            : throttle->usual_ns - throttle->usual_ns / AVERAGE_OF + duration_ns / AVERAGE_OF;
}

void wal__throttle_yield(struct wal__throttle *throttle)
{
    uint64_t now;

    if (!wal__throttle_is_limited(throttle)) {
        return;
    }
    now = throttle->io->monotonic_ns(throttle->io->ctx);
    if (throttle->begun_ns == 0) {
        throttle->begun_ns = now;
    }
    if (now - throttle->begun_ns >= SLICE_NS) {
        /* What took longer was waiting for a device, not work. */
        pause_for(throttle, SLICE_NS);
    }
}
