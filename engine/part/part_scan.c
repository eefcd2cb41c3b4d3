/*
 * part_scan.c - verifies the groups of a part in memory (part.h).
 */
#include <inttypes.h>

#include "engine/base/error.h"
#include "engine/part/part.h"
#include "format/segment/frame.h"

/* Bytes of a segment from an offset on. */
struct memory {
    const uint8_t *data;
    uint64_t offset;
    uint64_t size;
};

static const uint8_t *fetch(void *ctx, uint64_t offset, uint64_t size)
{
    const struct memory *memory = ctx;

    if (offset < memory->offset ||
        size > memory->offset + memory->size - offset ||
        offset > memory->offset + memory->size) {
        return NULL;
    }
    return memory->data + (offset - memory->offset);
}

bool wal__part_read_open(const struct wal__segment_header *header,
                         struct wal__span bytes, struct wal__open_record *open)
{
    const uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    struct wal__frame frame;
    struct wal__span payload;

    if (bytes.size < at + WAL__FRAME_SIZE ||
        wal__frame_decode(bytes.data + at, bytes.size - at, header->salt, at,
                          &frame) != WAL__FMT_OK ||
        frame.type != WAL__FRAME_OPEN ||
        wal__frame_check_data(&frame, bytes.data + at + WAL__FRAME_SIZE) !=
            WAL__FMT_OK) {
        return false;
    }
    payload.data = bytes.data + at + WAL__FRAME_SIZE;
    payload.size = frame.stored_size;
    return wal__open_record_decode(payload, open) == WAL__FMT_OK &&
           open->previous_id < header->id;
}

/* The start of the scan of a new segment, which must follow `before`; all zero:
 * what comes before it is not known. */
static enum wal_status start_segment(const struct wal__segment_header *header,
                                     const struct wal__part_place *before,
                                     struct wal__span bytes,
                                     struct wal__scan_start *start,
                                     struct wal_error *error)
{
    struct wal__open_record open;

    if (!wal__part_read_open(header, bytes, &open)) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the first record of segment %016" PRIx64
                         " is damaged",
                         header->id);
    }
    if (before->segment != 0 && (open.previous_id != before->segment ||
                                 open.previous_end != before->offset ||
                                 open.last_sequence != before->sequence ||
                                 open.chain != before->chain)) {
        return wal__fail(error, WAL_ECONFLICT,
                         "segment %016" PRIx64 " follows another past",
                         header->id);
    }
    start->offset = WAL__SEGMENT_HEADER_SIZE;
    start->last_sequence = open.last_sequence;
    start->chain = open.chain;
    return WAL_OK;
}

enum wal_status wal__part_scan(const struct wal__segment_header *header,
                               const struct wal__part_place *before,
                               uint64_t from, struct wal__span bytes,
                               bool is_whole, struct wal__part_place *after,
                               struct wal__scan_result *facts,
                               struct wal_error *error)
{
    struct memory memory = {bytes.data, from, bytes.size};
    const struct wal__scan_source source = {&memory, fetch};
    const struct wal__scan_sink sink = {0};
    struct wal__scan_start start = {.salt = header->salt,
                                    .capacity = from + bytes.size,
                                    .group_align = header->group_align,
                                    .offset = from,
                                    .last_sequence = before->sequence,
                                    .chain = before->chain};
    enum wal_status status =
        from == 0 ? start_segment(header, before, bytes, &start, error)
                  : WAL_OK;

    if (status != WAL_OK) {
        return status;
    }
    if (wal__segment_is_rewritten(header)) {
        start.is_rewritten = true;
        start.last_sequence = header->rewrite.last_sequence;
    }
    wal__scan(&source, &sink, &start, facts);
    if (facts->verdict == WAL__VERDICT_NEWER) {
        return wal__fail(error, WAL_EVERSION,
                         "segment %016" PRIx64
                         " has records of a newer format: use a newer library",
                         header->id);
    }
    if (facts->damage_count > 0 || facts->groups == 0 ||
        facts->verdict == WAL__VERDICT_READ_ERROR ||
        (is_whole && facts->end != from + bytes.size)) {
        return wal__fail(error, WAL_ECORRUPT,
                         "segment %016" PRIx64
                         " is damaged, or has another past, at offset %" PRIu64,
                         header->id, facts->end);
    }
    *after = (struct wal__part_place){header->id, header->salt, facts->end,
                                      facts->last_sequence, facts->chain};
    if (start.is_rewritten) {
        after->offset = header->rewrite.original_end;
        after->sequence = header->rewrite.last_sequence;
        after->chain = header->rewrite.original_chain;
    }
    return WAL_OK;
}
