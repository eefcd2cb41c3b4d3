/*
 * repeat.c - comparing the records of two segments (SPEC.md 3.5).
 *
 * Invariant: a segment is read only as far as its records are compared.
 */
#include "format/segment/repeat.h"

#include "format/bytes/crc32.h"

enum {
    PLACELESS_SIZE = 44 /* of a frame's header that no offset changes */
};

/* What the records of a segment are, up to a sequence number. */
struct summary {
    uint64_t salt;
    uint64_t limit; /* highest sequence number that counts */
    uint64_t last_sequence;
    uint64_t count;
    uint32_t crc;
};

static void add_record(struct summary *summary, const uint8_t *header,
                       const struct wal__frame *frame)
{
    /* The header's checksum is seeded with the offset. */
    summary->crc =
        wal__crc32(summary->crc, header + sizeof(uint32_t), PLACELESS_SIZE);
    summary->last_sequence = frame->sequence;
    summary->count++;
}

static bool add_range(void *ctx, const struct wal__scan_range *range)
{
    struct summary *summary = ctx;
    uint64_t at = 0;

    while (at < range->size) {
        const uint8_t *header = range->bytes + at;
        struct wal__frame frame;

        if (wal__frame_decode(header, range->size - at, summary->salt,
                              range->offset + at, &frame) != WAL__FMT_OK) {
            return false;
        }
        if (wal__frame_is_sequenced(frame.type)) {
            if (frame.sequence > summary->limit) {
                return false; /* the rest is not compared */
            }
            add_record(summary, header, &frame);
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    return true;
}

/* Sums up the records up to `limit`, and returns how the scan ended. */
static enum wal__verdict sum_up(const struct wal__repeat_segment *segment,
                                uint64_t limit, struct summary *summary,
                                struct wal__scan_result *scratch)
{
    const struct wal__scan_sink sink = {summary, add_range, NULL};

    *summary = (struct summary){.salt = segment->start.salt, .limit = limit};
    wal__scan(&segment->source, &sink, &segment->start, scratch);
    return scratch->verdict;
}

enum wal__repeat wal__segment_repeats(const struct wal__repeat_segment *segment,
                                      const struct wal__repeat_segment *other,
                                      struct wal__scan_result *scratch)
{
    struct summary own;
    struct summary theirs;
    enum wal__verdict verdict = sum_up(segment, UINT64_MAX, &own, scratch);

    if (verdict != WAL__VERDICT_CLEAN && verdict != WAL__VERDICT_TORN) {
        return WAL__REPEAT_NO;
    }
    if (own.count == 0) {
        return WAL__REPEAT_EMPTY;
    }
    if (other == NULL) {
        return WAL__REPEAT_NO;
    }
    verdict = sum_up(other, own.last_sequence, &theirs, scratch);
    return verdict != WAL__VERDICT_READ_ERROR && theirs.count == own.count &&
                   theirs.last_sequence == own.last_sequence &&
                   theirs.crc == own.crc
               ? WAL__REPEAT_RECORDS
               : WAL__REPEAT_NO;
}
