/*
 * salt.h - computing the salt of a segment whose header is lost (SPEC.md 2.2,
 * 2.3). Threads: any.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_SALT_H
#define AGENTWAL_FORMAT_SEGMENT_SALT_H

#include "format/segment/scan.h"

/* Computes the salt from the frames of a segment file of `size` bytes. False
 * if the size is not a segment's, or the first two frames do not yield it. */
bool wal__salt_find(const struct wal__scan_source *source, uint64_t size,
                    uint64_t *salt);

#endif
