/*
 * scan.h - one pass over the frames and groups of a segment, and the decision
 * table about its end (SPEC.md 3.1 to 3.4). Recovery, walcheck and salvage all
 * read segments through this, so that there is one idea of what is valid.
 *
 * Invariant: the sink sees whole groups in order, and of damaged groups below
 * the watermark each frame that stands on its own checksums; never anything
 * else. Reads only through the source; a read error ends the scan and is never
 * taken for a tear.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_SCAN_H
#define AGENTWAL_FORMAT_SEGMENT_SCAN_H

#include <stdbool.h>

#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"

/* Where the bytes come from. */
struct wal__scan_source {
    void *ctx;
    /* Bytes [offset, offset + size) of the segment in one range, valid until
     * the next call; null when they cannot be read. */
    const uint8_t *(*fetch)(void *ctx, uint64_t offset, uint64_t size);
};

/* A range of the segment whose frames are all valid. */
struct wal__scan_range {
    const uint8_t *bytes; /* of the first frame */
    uint64_t offset;      /* in the segment */
    uint64_t size;        /* whole frames; without a COMMIT */
    const struct wal__commit_record *commit; /* null: its group is not whole */
};

/* What becomes of what is found. A call that answers false stops the scan. */
struct wal__scan_sink {
    void *ctx;
    bool (*range)(void *ctx, const struct wal__scan_range *range);
    /* A session that lost a record of the damaged range found last; 0: one
     * that cannot be named. May repeat. */
    bool (*lost)(void *ctx, uint32_t session);
};

enum wal__verdict {
    WAL__VERDICT_CLEAN = 0,
    WAL__VERDICT_TORN,
    WAL__VERDICT_AMBIGUOUS,
    WAL__VERDICT_DAMAGED,
    WAL__VERDICT_READ_ERROR,
    WAL__VERDICT_NEWER,  /* a frame type of a newer library */
    WAL__VERDICT_STOPPED /* by the sink */
};

const char *wal__verdict_text(enum wal__verdict verdict);

/* Where a scan begins: what OPEN of the segment, or the header, says. */
struct wal__scan_start {
    uint64_t salt;
    uint64_t capacity;
    uint32_t group_align;
    uint64_t offset;        /* of a group's first frame; 4,096 for all */
    uint64_t last_sequence; /* before it */
    uint32_t chain;         /* before it */
    uint64_t known_end; /* S: an end that a later OPEN or the log's COMMIT of
                         * the pack's position names; 0: none */
    uint64_t watermark; /* of the pack, as the log names it; 0: none */
};

struct wal__scan_result {
    enum wal__verdict verdict;
    uint64_t end;          /* where the next group would begin */
    uint64_t invalid;      /* X: first offset that holds no valid frame */
    uint64_t watermark;    /* W */
    uint64_t sealed_end;   /* S from SEAL; 0: not sealed */
    uint64_t index_offset; /* of a valid INDEX frame behind the end; 0: none */
    uint64_t index_size;
    uint64_t dirty_end;     /* behind the last byte that is not zero, from X on;
                         * X when there is none */
    uint64_t commit_offset; /* of the last COMMIT kept; 0: none */
    uint64_t last_sequence;
    uint64_t torn_sequence; /* last one of valid frames that were dropped */
    uint64_t epoch;
    uint64_t pack_durable; /* the highest in a COMMIT kept */
    int64_t clock_ms;
    uint64_t groups;
    uint32_t chain;
    uint32_t damage_count; /* all found, also those over WAL__DAMAGE_MAX */
    uint64_t error_offset; /* of a read error */
    struct wal__damage damage[WAL__DAMAGE_MAX];
};

/*
 * Scans a segment from `start`. result is filled whatever the verdict.
 * group ends are rounded up to group_align.
 */
void wal__scan(const struct wal__scan_source *source,
               const struct wal__scan_sink *sink,
               const struct wal__scan_start *start,
               struct wal__scan_result *result);

#endif
