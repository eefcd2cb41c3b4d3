/*
 * pack.c - the records of one segment of the blob stream, and its index
 * (SPEC.md 2.18 to 2.20).
 *
 * Threads: check_pack_add_record and check_pack_add_lost run in the scan of
 * their segment; all other functions belong to the main thread.
 */
#include <inttypes.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "tools/walcheck/pack.h"

/* Decodes a record; false if it is not well-formed. */
static bool decode_record(const struct wal__frame *frame,
                          const uint8_t *payload, struct check_blob *blob)
{
    const struct wal__span bytes = {payload, frame->stored_size};
    struct wal__chunk_record chunk;
    struct wal__blob_record list;

    if ((frame->flags & ~WAL__FRAME_REWRITTEN) != 0 || frame->session != 0 ||
        frame->stream != 0 || frame->kind > 1 || frame->parent != 0) {
        return false;
    }
    if (frame->type == WAL__FRAME_CHUNK &&
        wal__chunk_record_decode(bytes, &chunk) == WAL__FMT_OK) {
        blob->digest = chunk.digest;
        blob->size = chunk.size;
    } else if (frame->type == WAL__FRAME_BLOB &&
               wal__blob_record_decode(bytes, &list) == WAL__FMT_OK) {
        blob->digest = list.digest;
        blob->size = list.size;
    } else {
        return false;
    }
    blob->type = frame->type;
    blob->is_callers = frame->kind == 0;
    blob->span = (uint32_t)wal__frame_total_size(frame->stored_size);
    return wal__digest_hash(&blob->digest) == frame->id_hash;
}

void check_pack_add_record(struct check_segment *segment,
                           const struct wal__frame *frame, uint64_t offset,
                           const uint8_t *payload)
{
    struct check_blob blob = {
        .position = wal__position(segment->head->id, (uint32_t)offset),
    };

    if (!decode_record(frame, payload, &blob)) {
        check_damage_add(&segment->damages, segment->head->name, offset,
                         wal__frame_total_size(frame->stored_size),
                         "the %s of sequence %" PRIu64 " is not well-formed",
                         wal__frame_type_name(frame->type), frame->sequence);
        check_pack_add_lost(segment, frame->id_hash, offset);
        return;
    }
    segment->blobs = cli_reserve(segment->blobs, segment->blob_count,
                                 &segment->blob_capacity, sizeof(blob));
    segment->blobs[segment->blob_count++] = blob;
}

void check_pack_add_lost(struct check_segment *segment, uint64_t digest_hash,
                         uint64_t offset)
{
    segment->lost_blobs =
        cli_reserve(segment->lost_blobs, segment->lost_blob_count,
                    &segment->lost_blob_capacity, sizeof(*segment->lost_blobs));
    segment->lost_blobs[segment->lost_blob_count++] = (struct check_lost_blob){
        digest_hash, wal__position(segment->head->id, (uint32_t)offset)};
}

/* The record at an offset, or null. */
static const struct check_blob *
find_at_offset(const struct check_segment *segment, uint32_t offset)
{
    size_t low = 0;
    size_t high = segment->blob_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (wal__position_offset(segment->blobs[middle].position) < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < segment->blob_count &&
                   wal__position_offset(segment->blobs[low].position) == offset
               ? &segment->blobs[low]
               : NULL;
}

const char *check_pack_index(struct check_segment *segment,
                             const struct wal__pack_index *index)
{
    const uint8_t *previous = NULL;
    uint32_t previous_offset = 0;
    uint32_t found = 0;

    for (uint32_t i = 0; i < index->header.posting_count; i++) {
        const uint8_t *digest = index->digests + (size_t)i * WAL__DIGEST_SIZE;
        uint32_t offset = wal__get32(index->offsets + (size_t)i * 4);
        const struct check_blob *blob = find_at_offset(segment, offset);
        int order =
            previous == NULL ? -1 : memcmp(previous, digest, WAL__DIGEST_SIZE);

        if (order > 0 || (order == 0 && previous_offset >= offset)) {
            return "its digests are not in order";
        }
        previous = digest;
        previous_offset = offset;
        if (blob != NULL &&
            memcmp(blob->digest.bytes, digest, WAL__DIGEST_SIZE) == 0) {
            found++;
        } else if (blob == NULL && segment->has_lost_records) {
            check_pack_add_lost(segment, wal__get64(digest), offset);
        } else {
            return "one of its digests is not at the recorded offset";
        }
    }
    return found < segment->blob_count
               ? "records of the segment are missing from it"
               : NULL;
}
