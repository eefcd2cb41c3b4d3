/*
 * scan.h - one pass over the frames and groups of a segment, and the decision table about its end
 * (SPEC.md 3.1 to 3.4). Recovery, walcheck and salvage all read segments through it, so they agree
 * on what is valid.
 *
 * Where a walk from group to group cannot continue, a probe finds the valid frames after the first
 * offset that holds none.
 *
 * Invariants: the sink receives whole groups in order, and of damaged groups below the watermark
 * each frame whose checksums are valid; nothing else. A probed frame counts only if its header,
 * data and sequence range are valid. The scan reads only through the source. A read error ends the
 * scan and is never reported as a torn write. Threads: no shared state; one thread per call.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_SCAN_H
#define AGENTWAL_FORMAT_SEGMENT_SCAN_H

#include <stdbool.h>

#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"

/* The segment's bytes. */
struct wal__scan_source {
    void *ctx;
    /* Returns bytes [offset, offset + size) of the segment, valid until the next call; NULL if they
     * cannot be read. */
    const uint8_t *(*fetch)(void *ctx, uint64_t offset, uint64_t size);
};

/* A range of the segment whose frames are all valid. */
struct wal__scan_range {
    const uint8_t *bytes;                    /* of the first frame */
    uint64_t offset;                         /* in the segment */
    uint64_t size;                           /* of whole frames, without the COMMIT */
    const struct wal__commit_record *commit; /* NULL: an incomplete group */
};

/* The consumer of what the scan finds. Both functions are optional; one that returns false stops
 * the scan. */
struct wal__scan_sink {
    void *ctx;
    bool (*range)(void *ctx, const struct wal__scan_range *range);
    /* Reports a session that lost a record in the last damaged range; 0: an unknown session. May
     * report a session more than once. */
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

/* Returns a constant phrase. */
const char *wal__verdict_text(enum wal__verdict verdict);

/* Where a scan begins: from the segment's header and OPEN. */
struct wal__scan_start {
    uint64_t salt;
    uint64_t capacity;
    uint32_t group_align;
    uint64_t offset;        /* of a group's first frame; 4,096: all groups */
    uint64_t last_sequence; /* before it */
    uint32_t chain;         /* before it */
    uint64_t known_end;     /* S, from a later OPEN or, for the pack, from a COMMIT
                         * of the log; 0: unknown */
    uint64_t watermark;     /* of the pack, from the log; 0: none */
    /* Its groups have no sequence numbers, and it was durable before it got its name: nothing in it
     * is torn. last_sequence is then its own. */
    bool is_rewritten;
    /* Of a replica (11.2): what follows an invalid frame was being copied, and is torn whatever it
     * says. */
    bool is_replica;
};

struct wal__scan_result {
    enum wal__verdict verdict;
    uint64_t end;          /* offset at which the next group would begin */
    uint64_t invalid;      /* X: first offset without a valid frame */
    uint64_t watermark;    /* W */
    uint64_t sealed_end;   /* S from SEAL; 0: not sealed */
    uint64_t index_offset; /* of a valid INDEX frame after the end; 0: none */
    uint64_t index_size;
    uint64_t dirty_end;     /* end of the last non-zero byte from X on; X if
                             * there is none */
    uint64_t commit_offset; /* of the last accepted COMMIT; 0: none */
    uint64_t last_sequence;
    uint64_t torn_sequence; /* last one in valid frames that were dropped */
    uint64_t epoch;
    uint64_t pack_durable; /* maximum of the accepted COMMITs */
    int64_t clock_ms;
    uint64_t groups;
    uint32_t chain;
    uint32_t damage_count; /* may exceed WAL__DAMAGE_MAX */
    uint64_t error_offset; /* of a read error */
    struct wal__damage damage[WAL__DAMAGE_MAX];
};

/*
 * Scans a segment from `start`. Fills *result whatever the verdict. Group ends are rounded up to
 * group_align.
 */
void wal__scan(const struct wal__scan_source *source, const struct wal__scan_sink *sink,
               const struct wal__scan_start *start, struct wal__scan_result *result);

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

/* Finds the first valid frame at or after `from` whose sequence number is at least first_sequence.
 * Raises *dirty_end, unless dirty_end is NULL, to the end of the last non-zero word read. False:
 * there is none, or probe->failed. */
bool wal__probe_next(struct wal__probe *probe, uint64_t from, uint64_t first_sequence,
                     uint64_t *dirty_end, struct wal__probe_hit *hit);

/* Computes the salt from the frames of a segment file of `size` bytes. False if the size is not a
 * segment's, or the first two frames do not yield it. */
bool wal__salt_find(const struct wal__scan_source *source, uint64_t size, uint64_t *salt);

/* Whether the frames are those of a rewritten segment. Sets generation to 1, first_id and
 * last_sequence as OPEN and COMMIT say, and the rest to 0. */
bool wal__rewrite_find(const struct wal__scan_source *source, uint64_t size, uint64_t salt,
                       struct wal__rewrite *rewrite);

/* The bytes of a segment, and where its scan begins. */
struct wal__repeat_segment {
    struct wal__scan_source source;
    struct wal__scan_start start;
    /* Of an encrypted segment: makes *frame, whose payload follows at `stored`, as it is without
     * encryption. False: it cannot. NULL: it is not encrypted. */
    bool (*decrypt)(void *ctx, struct wal__frame *frame, uint64_t offset, const uint8_t *stored);
    void *decrypt_ctx;
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
