/*
 * salt.c - computes a segment's salt from its frames when both copies of its
 * header are lost (SPEC.md 2.2, 2.3), and recognises a rewritten one (2.22).
 *
 * A frame's seed is fold(salt ^ offset * PHI) = fold(salt) ^ fold(offset *
 * PHI), so frames depend on fold(salt) alone. A CRC can be computed backwards:
 * the OPEN frame at 4,096 yields its seed, and the next frame confirms it.
 *
 * Invariant: a salt is accepted only if a second frame is valid under it.
 *
 * Threads: any.
 */
#include "format/segment/salt.h"

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/block.h"

#define POLYNOMIAL 0xEDB88320u
#define TOP_BIT    0x80000000u

/* The start value that yields `crc` after the bytes. */
static uint32_t crc_unwind(uint32_t crc, const uint8_t *bytes, size_t size)
{
    crc = ~crc;
    while (size > 0) {
        size--;
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = (crc & TOP_BIT) != 0 ? (crc ^ POLYNOMIAL) << 1 | 1 : crc << 1;
        }
        crc ^= bytes[size];
    }
    return ~crc;
}

/* Whether a valid frame is at `offset`; *next is the offset after it. */
static bool is_valid_frame(const struct wal__scan_source *source, uint64_t size,
                           uint64_t salt, uint64_t offset, uint64_t *next)
{
    const uint8_t *bytes = source->fetch(source->ctx, offset, WAL__FRAME_SIZE);
    struct wal__frame frame;

    if (bytes == NULL || wal__frame_decode(bytes, size - offset, salt, offset,
                                           &frame) != WAL__FMT_OK) {
        return false;
    }
    *next = offset + wal__frame_total_size(frame.stored_size);
    return true;
}

bool wal__salt_find(const struct wal__scan_source *source, uint64_t size,
                    uint64_t *salt)
{
    const uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    const uint8_t *bytes;
    uint32_t seed;
    uint64_t next;

    if (size < WAL__SEGMENT_MIN || size > WAL__SEGMENT_MAX ||
        size % WAL__SEGMENT_HEADER_SIZE != 0) {
        return false;
    }
    bytes = source->fetch(source->ctx, at, WAL__FRAME_SIZE);
    if (bytes == NULL) {
        return false;
    }
    seed = crc_unwind(wal__get32(bytes), bytes + 4, WAL__FRAME_SIZE - 4);
    *salt = seed ^ wal__crc32_seed(0, at);
    return is_valid_frame(source, size, *salt, at, &next) &&
           is_valid_frame(source, size, *salt, next, &next);
}

/* Decodes the header of the frame at `offset`; false if it is not valid. */
static bool read_header(const struct wal__scan_source *source, uint64_t size,
                        uint64_t salt, uint64_t offset,
                        struct wal__frame *frame)
{
    const uint8_t *bytes;

    if (offset > size || size - offset < WAL__FRAME_SIZE) {
        return false;
    }
    bytes = source->fetch(source->ctx, offset, WAL__FRAME_SIZE);
    return bytes != NULL && wal__frame_decode(bytes, size - offset, salt,
                                              offset, frame) == WAL__FMT_OK;
}

/* The payload of a frame whose header is valid; empty if it is damaged. */
static struct wal__span read_payload(const struct wal__scan_source *source,
                                     uint64_t offset,
                                     const struct wal__frame *frame)
{
    struct wal__span payload = {NULL, 0};
    const uint8_t *bytes = source->fetch(
        source->ctx, offset, wal__frame_total_size(frame->stored_size));

    if (bytes != NULL &&
        wal__frame_check_data(frame, bytes + WAL__FRAME_SIZE) == WAL__FMT_OK) {
        payload.data = bytes + WAL__FRAME_SIZE;
        payload.size = frame->stored_size;
    }
    return payload;
}

bool wal__rewrite_find(const struct wal__scan_source *source, uint64_t size,
                       uint64_t salt, struct wal__rewrite *rewrite)
{
    uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    struct wal__open_record open = {.epoch = 0};
    struct wal__commit_record commit;
    struct wal__frame frame;
    bool continues = false; /* the first group is followed by the next number */

    *rewrite = (struct wal__rewrite){.generation = 1};
    if (!read_header(source, size, salt, at, &frame) ||
        frame.type != WAL__FRAME_OPEN ||
        wal__open_record_decode(read_payload(source, at, &frame), &open) !=
            WAL__FMT_OK) {
        return false;
    }
    rewrite->first_id = open.previous_id + 1;
    rewrite->last_sequence = open.last_sequence;
    at += wal__frame_total_size(frame.stored_size);
    if (read_header(source, size, salt, at, &frame) &&
        frame.type == WAL__FRAME_COMMIT &&
        wal__commit_record_decode(read_payload(source, at, &frame), &commit) ==
            WAL__FMT_OK &&
        commit.first_sequence > open.last_sequence) {
        continues = commit.first_sequence == open.last_sequence + 1;
        rewrite->last_sequence = commit.first_sequence - 1;
    }
    at = wal__align_up(
        at + wal__frame_total_size((uint32_t)wal__commit_record_size(0)),
        WAL__BLOCK_ALIGN);
    return read_header(source, size, salt, at, &frame)
               ? frame.type == WAL__FRAME_BLOCK ||
                     (frame.type == WAL__FRAME_COMMIT && !continues)
               : false;
}
