/*
 * repeat.h - whether a segment repeats records of another one (SPEC.md 3.5): a
 * segment that an attempt left, and that the chain has replaced since.
 *
 * Invariant: records are compared by everything but their place. Threads: no
 * shared state; one thread per call.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_REPEAT_H
#define AGENTWAL_FORMAT_SEGMENT_REPEAT_H

#include "format/segment/scan.h"

/* The bytes of a segment, and where its scan begins. */
struct wal__repeat_segment {
    struct wal__scan_source source;
    struct wal__scan_start start;
};

enum wal__repeat {
    WAL__REPEAT_NO,     /* it has other records, or damage */
    WAL__REPEAT_EMPTY,  /* it holds no record */
    WAL__REPEAT_RECORDS /* its records are the first ones of the other */
};

/* Returns whether `segment` holds records that `other` does not begin with.
 * `other` may be NULL. *scratch is overwritten. */
enum wal__repeat wal__segment_repeats(const struct wal__repeat_segment *segment,
                                      const struct wal__repeat_segment *other,
                                      struct wal__scan_result *scratch);

#endif
