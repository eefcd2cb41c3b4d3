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
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "tools/walcheck/walcheck.h"

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
static bool is_valid_frame(struct cli_file *file, uint64_t salt,
                           uint64_t offset, uint64_t *next)
{
    const uint8_t *bytes = cli_file_fetch(file, offset, WAL__FRAME_SIZE);
    struct wal__frame frame;

    if (bytes == NULL || wal__frame_decode(bytes, file->size - offset, salt,
                                           offset, &frame) != WAL__FMT_OK) {
        return false;
    }
    *next = offset + wal__frame_total_size(frame.stored_size);
    return true;
}

static bool find(const struct check_store *store, struct check_segment *segment,
                 struct cli_file *file)
{
    const uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    struct wal__segment_header *header = &segment->header;
    const uint8_t *bytes = cli_file_fetch(file, at, WAL__FRAME_SIZE);
    uint32_t seed;
    uint64_t next;

    if (bytes == NULL) {
        return false;
    }
    seed = crc_unwind(wal__get32(bytes), bytes + 4, WAL__FRAME_SIZE - 4);
    *header = (struct wal__segment_header){
        .version = store->format_version,
        .id = segment->id,
        .capacity = file->size,
        .salt = seed ^ wal__crc32_seed(0, at),
        .group_align =
            store->group_align == 0 ? WAL__FRAME_ALIGN : store->group_align,
    };
    memcpy(header->uuid, store->uuid, sizeof(header->uuid));
    return is_valid_frame(file, header->salt, at, &next) &&
           is_valid_frame(file, header->salt, next, &next);
}

bool check_segment_find_salt(const struct check_store *store,
                             struct check_segment *segment)
{
    struct cli_file file;

    if (cli_file_open(&file, segment->path) != 0) {
        return false;
    }
    segment->salt_found = file.size >= WAL__SEGMENT_MIN &&
                          file.size <= WAL__SEGMENT_MAX &&
                          file.size % WAL__SEGMENT_HEADER_SIZE == 0 &&
                          find(store, segment, &file);
    cli_file_close(&file);
    if (segment->salt_found) {
        check_damage_add_redundant(
            &segment->damages, segment->name, 0, WAL__SEGMENT_HEADER_SIZE,
            "both copies of the header are damaged, so that no reader opens "
            "the segment; its frames are whole and can be salvaged");
    }
    return segment->salt_found;
}
