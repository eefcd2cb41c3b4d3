/*
 * salt.c - computes a segment's salt from its frames when both copies of its
 * header are lost (SPEC.md 2.2, 2.3).
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
