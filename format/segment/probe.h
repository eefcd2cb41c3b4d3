/*
 * probe.h - finds valid frames after the first offset of a segment that holds
 * none, where a walk from group to group cannot continue (SPEC.md 3.4).
 *
 * Invariant: a frame counts only if its header, data and sequence range are
 * valid. A probe reads only through the source. It reports a read error as
 * such, never as invalid bytes. Threads: no shared state; one thread per probe.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_PROBE_H
#define AGENTWAL_FORMAT_SEGMENT_PROBE_H

#include "format/segment/scan.h"

struct wal__probe {
    const struct wal__scan_source *source;
    uint64_t salt;
    uint64_t limit;        /* end of the segment */
    uint64_t sequence;     /* last valid one: bounds those that may follow */
    bool failed;           /* a read failed */
    uint64_t error_offset; /* of the failed read */
};

struct wal__probe_hit {
    uint64_t offset;
    struct wal__frame frame;
    const uint8_t *payload; /* valid until the next read */
};

/* Finds the first valid frame at or after `from` whose sequence number is at
 * least first_sequence. Raises *dirty_end, unless dirty_end is NULL, to the end
 * of the last non-zero word read. False: there is none, or probe->failed. */
bool wal__probe_next(struct wal__probe *probe, uint64_t from,
                     uint64_t first_sequence, uint64_t *dirty_end,
                     struct wal__probe_hit *hit);

/* A summary of the valid frames after an offset. */
struct wal__probe_result {
    uint64_t watermark;  /* highest of the valid COMMITs */
    uint64_t sealed_end; /* of a SEAL; 0: none */
    uint64_t dirty_end;  /* end of the last non-zero byte */
    uint64_t last_sequence;
    /* offset of the last COMMIT with WAL__COMMIT_DURABLE; 0: none */
    uint64_t last_durable_commit;
    uint64_t last_member; /* offset of the last BLOCK or COMMIT; 0: none */
    /* a COMMIT ends a group after that of OPEN */
    bool has_later_group;
    bool is_done;
};

/* Probes everything from `from` on, unless beyond->is_done. False: a read
 * failed. */
bool wal__probe_all(struct wal__probe *probe, uint64_t from,
                    struct wal__probe_result *beyond);

#endif
