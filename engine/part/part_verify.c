/*
 * part_verify.c - verifies the groups of a part without a store (part.h): what
 * applying it would find, but for what comes before it.
 */
#include "engine/base/error.h"
#include "engine/part/part.h"

static enum wal_status fail(struct wal_error *error, const char *why)
{
    return wal__fail(error, WAL_ECORRUPT, "the part is damaged: %s", why);
}

/* The header of the segment in which a range is: the range has it where it
 * begins the segment; else what the scan needs is in the head. */
static enum wal_status get_header(const struct wal__part_head *head,
                                  const struct wal__part_range *range,
                                  struct wal__span bytes,
                                  struct wal__segment_header *header,
                                  struct wal_error *error)
{
    const struct wal__part_place *before = &head->before[range->stream];
    const struct wal__part_place *after = &head->after[range->stream];

    if (range->segment != after->segment) {
        return fail(error, "its range is not at its position");
    }
    if (range->offset != 0) {
        *header = (struct wal__segment_header){
            .id = range->segment,
            .salt = after->salt,
            .capacity = range->offset + range->size,
            .group_align = head->manifest.group_align};
        return range->segment == before->segment &&
                       range->offset == before->offset &&
                       after->salt == before->salt
                   ? WAL_OK
                   : fail(error, "its range is not at its position");
    }
    if (bytes.size < WAL__SEGMENT_HEADER_SIZE ||
        wal__segment_header_decode(bytes.data, header) != WAL__FMT_OK ||
        header->id != range->segment || header->salt != after->salt ||
        bytes.size > header->capacity ||
        memcmp(header->uuid, head->manifest.uuid, sizeof(header->uuid)) != 0) {
        return fail(error, "the header of a segment");
    }
    return WAL_OK;
}

static enum wal_status verify_range(const struct wal__part_head *head,
                                    const struct wal__part_range *range,
                                    struct wal__span bytes,
                                    struct wal__scan_result *facts,
                                    struct wal_error *error)
{
    const struct wal__part_place unknown = {0};
    const bool is_segment = (head->flags & WAL__PART_SEGMENT) != 0;
    struct wal__segment_header header;
    struct wal__part_place reached;
    enum wal_status status = get_header(head, range, bytes, &header, error);

    if (status == WAL_OK) {
        /* A whole segment may replace what is before it. */
        status = wal__part_scan(
            &header, is_segment ? &unknown : &head->before[range->stream],
            range->offset, bytes, !is_segment, &reached, facts, error);
    }
    if (status == WAL_ECONFLICT) {
        return fail(error, "a segment follows another past");
    }
    if (status == WAL_OK &&
        ((is_segment && facts->verdict != WAL__VERDICT_CLEAN) ||
         !wal__part_place_equal(&reached, &head->after[range->stream]))) {
        status = fail(error, "it leads to another position than it says");
    }
    return status;
}

enum wal_status wal__part_verify(struct wal__sha256_alg *sha256_alg,
                                 struct wal__span part,
                                 struct wal__part_head *head,
                                 struct wal__scan_result *facts,
                                 struct wal_error *error)
{
    enum wal_status status = wal__part_check(sha256_alg, part, head, error);
    const uint8_t *at;
    uint32_t count;

    if (status != WAL_OK) {
        return status;
    }
    at = part.data + wal__part_head_size(head->range_count);
    /* The second range of a whole segment is its trailer. */
    count = (head->flags & WAL__PART_SEGMENT) != 0 ? 1 : head->range_count;
    for (uint32_t i = 0; status == WAL_OK && i < count; i++) {
        const struct wal__part_range *range = &head->ranges[i];

        status = verify_range(head, range,
                              (struct wal__span){at, (size_t)range->size},
                              facts, error);
        at += range->size;
    }
    return status;
}
