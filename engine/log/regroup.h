/*
 * regroup.h - the content of a new segment that has groups of another one
 * (SPEC.md 4.2): payloads and sequence numbers are the same, and the headers
 * are encoded for the new offsets. Healing and backups use it.
 *
 * Invariant: body.size is a multiple of group_align between two calls, and
 * chain is that of the frames so far. One thread.
 */
#ifndef AGENTWAL_ENGINE_LOG_REGROUP_H
#define AGENTWAL_ENGINE_LOG_REGROUP_H

#include "engine/base/buf.h"
#include "format/segment/record.h"
#include "format/segment/scan.h"
#include "format/segment/segment_fmt.h"

struct wal__regroup {
    struct wal__segment_header header;
    struct wal__buf body; /* of the segment; it follows the header */
    uint32_t chain;       /* the caller sets it to that before OPEN */
};

/* Returns the offset in the segment of the next byte of the body. */
uint64_t wal__regroup_end(const struct wal__regroup *copy);

/* Adds the group with OPEN, first of all: `size` bytes of an encoded record.
 * Its COMMIT has epoch, clock and pack_durable of *commit. WAL_ENOMEM. */
enum wal_status wal__regroup_add_open_record(
    struct wal__regroup *copy, const uint8_t *record, uint32_t size,
    uint64_t last_sequence,
    const struct wal__commit_record *commit) WAL_MUST_USE;

/* The same with an OPEN that ends the segment `previous_id` at the offset
 * `cut`; `facts` are those of a scan up to there, or NULL without one. */
enum wal_status
wal__regroup_add_open(struct wal__regroup *copy, uint64_t previous_id,
                      uint64_t cut, const struct wal__scan_result *facts,
                      const struct wal__commit_record *commit) WAL_MUST_USE;

/* Adds a group of a segment with this salt, its OPEN too; a commit mark is left
 * out. WAL_ECORRUPT: the range is no whole group. */
enum wal_status wal__regroup_add_group(struct wal__regroup *copy,
                                       const struct wal__scan_range *range,
                                       uint64_t salt) WAL_MUST_USE;

#endif
