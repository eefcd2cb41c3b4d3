/*
 * probe.h - finds valid frames where no walk from group to group leads: behind
 * the first offset of a segment that holds none (SPEC.md 3.4).
 *
 * Invariant: a frame counts only when header, data and sequence range all
 * hold. Reads through the source alone; a read error is never taken for bytes
 * that are no frame.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_PROBE_H
#define AGENTWAL_FORMAT_SEGMENT_PROBE_H

#include "format/segment/scan.h"

struct wal__probe {
    const struct wal__scan_source *source;
    uint64_t salt;
    uint64_t limit;        /* end of the segment */
    uint64_t sequence;     /* last one before: bounds what may follow */
    bool failed;           /* a read did, */
    uint64_t error_offset; /* there */
};

struct wal__probe_hit {
    uint64_t offset;
    struct wal__frame frame;
    const uint8_t *payload; /* until the next read */
};

/* Finds the first valid frame at or behind `from`, with sequence numbers from
 * first_sequence on. dirty_end may be null; else it is raised to behind the
 * last word looked at that is not zero. False: none, or probe->failed. */
bool wal__probe_next(struct wal__probe *probe, uint64_t from,
                     uint64_t first_sequence, uint64_t *dirty_end,
                     struct wal__probe_hit *hit);

/* What lies behind an offset, looked at once. */
struct wal__probe_result {
    uint64_t watermark;  /* highest that a valid COMMIT names */
    uint64_t sealed_end; /* that a SEAL names; 0: none */
    uint64_t dirty_end;  /* behind the last byte that is not zero */
    uint64_t last_sequence;
    /* offset of the last COMMIT that promised; 0: none */
    uint64_t last_durable_commit;
    bool is_done;
};

/* Looks at everything from `from` on. False when a read failed. */
bool wal__probe_all(struct wal__probe *probe, uint64_t from,
                    struct wal__probe_result *beyond);

#endif
