/*
 * verify.c - reads a rewritten segment back before its rename (segment_run.h):
 * through the scan that recovery uses, then record by record.
 *
 * Invariant: a file that passes holds each record that its index names, whole.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/compact/segment_run.h"
#include "engine/log/index_file.h"
#include "format/bytes/assert.h"
#include "format/segment/scan.h"

struct verify {
    const struct wal__segment_writer *writer;
    const struct wal__segment_run_client *client;
    const uint8_t *map;
    struct wal__buf records;
    enum wal_status status; /* WAL_ENOMEM stops the scan */
};

static const uint8_t *fetch(void *ctx, uint64_t offset, uint64_t size)
{
    const struct verify *verify = ctx;

    return offset + size <= verify->writer->header.capacity
               ? verify->map + offset
               : NULL;
}

static bool verify_block(struct verify *verify, const struct wal__frame *frame,
                         uint64_t offset, const uint8_t *payload)
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
        if (wal__buf_reserve(&verify->records, block.raw_size, &out) !=
            WAL_OK) {
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
            !verify->client->check_record(verify->client->ctx, &record, at,
                                          bytes)) {
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
        struct wal__frame frame;

        if (wal__frame_decode(range->bytes + at, range->size - at, salt,
                              range->offset + at, &frame) != WAL__FMT_OK ||
            (frame.type == WAL__FRAME_BLOCK &&
             !verify_block(verify, &frame, range->offset + at,
                           range->bytes + at + WAL__FRAME_SIZE))) {
            return false;
        }
        at += wal__frame_total_size(frame.stored_size);
        wal__throttle_yield(verify->writer->throttle);
    }
    return true;
}

/* Whether header, INDEX and trailer are what was written. */
static bool verify_ends(struct verify *verify)
{
    const struct wal__segment_writer *writer = verify->writer;
    const uint64_t trailer_at = writer->header.capacity - WAL__TRAILER_SIZE;
    struct wal__segment_header header;
    struct wal__trailer trailer;
    struct wal__frame frame;
    struct wal__span index;

    if (wal__segment_header_decode(verify->map, &header) != WAL__FMT_OK ||
        wal__segment_header_copies(verify->map) != 2 ||
        header.salt != writer->header.salt ||
        header.capacity != writer->header.capacity ||
        wal__trailer_decode(verify->map + trailer_at, header.salt, trailer_at,
                            &trailer) != WAL__FMT_OK ||
        trailer.end != writer->end ||
        wal__frame_decode(verify->map + trailer.index_offset,
                          header.capacity - trailer.index_offset, header.salt,
                          trailer.index_offset, &frame) != WAL__FMT_OK ||
        frame.type != WAL__FRAME_INDEX) {
        return false;
    }
    index.data = verify->map + trailer.index_offset + WAL__FRAME_SIZE;
    index.size = frame.stored_size;
    return verify->client->check_index(verify->client->ctx, index);
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

enum wal_status
wal__segment_writer_verify(const struct wal__segment_writer *writer,
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
    status = wal__mapped_file_open(env, writer->path, &mapped, error);
    if (status == WAL_OK) {
        int err = 0;

        verify.map = mapped.at;
        status = env->io->populate(env->io->ctx, mapped.at, mapped.size, &err);
        status = status == WAL_EINVAL ? WAL_OK : status;
        if (status == WAL_OK && (mapped.size != writer->header.capacity ||
                                 !verify_map(&verify, facts))) {
            status = verify.status == WAL_OK ? WAL_ECORRUPT : verify.status;
        }
        if (status != WAL_OK) {
            wal__fail_at(error, status, err, writer->path, 0,
                         "the rewritten segment is not what was written");
        }
        wal__mapped_file_close(env, &mapped);
    }
    wal__buf_deinit(&verify.records);
    wal__heap_free(env->heap, facts);
    return status;
}
