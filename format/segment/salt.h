/*
 * salt.h - what the frames of a segment say when its header is lost: its salt,
 * and whether it is a rewritten one (SPEC.md 2.2, 2.3, 2.22). Threads: any.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_SALT_H
#define AGENTWAL_FORMAT_SEGMENT_SALT_H

#include "format/segment/scan.h"

/* Computes the salt from the frames of a segment file of `size` bytes. False
 * if the size is not a segment's, or the first two frames do not yield it. */
bool wal__salt_find(const struct wal__scan_source *source, uint64_t size,
                    uint64_t *salt);

/* Whether the frames are those of a rewritten segment. Sets generation to 1,
 * first_id and last_sequence as OPEN and COMMIT have them, and the rest to 0. */
bool wal__rewrite_find(const struct wal__scan_source *source, uint64_t size,
                       uint64_t salt, struct wal__rewrite *rewrite);

#endif
