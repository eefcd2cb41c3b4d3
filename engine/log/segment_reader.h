/*
 * segment_reader.h - the bytes of a segment for scans (SPEC.md 3.4): from its
 * map, populated piece by piece so that a bad sector is an error and not a
 * signal; or by pread where the system cannot populate, or env->use_pread.
 *
 * Invariant: [offset, offset + size) of the segment is in `bytes`, and
 * [0, populated) of the map is in memory. One thread at a time.
 */
#ifndef AGENTWAL_ENGINE_LOG_SEGMENT_READER_H
#define AGENTWAL_ENGINE_LOG_SEGMENT_READER_H

#include "engine/log/segment.h"

struct wal__segment_reader {
    struct wal__segment *segment;
    /* bytes of the map to populate after those fetched */
    uint64_t readahead_size;
    const uint8_t *map; /* NULL until the first fetch, and with use_pread */
    uint64_t populated;
    /* The window that was read by pread. */
    uint8_t *bytes;
    uint64_t capacity;
    uint64_t offset;
    uint64_t size;
    bool use_pread;
    enum wal_status status; /* of the last failure */
    int sys_errno;
};

void wal__segment_reader_init(struct wal__segment_reader *reader,
                              struct wal__segment *segment);
void wal__segment_reader_deinit(struct wal__segment_reader *reader);
/* The function of a struct wal__scan_source; ctx is the reader. Returns `size`
 * bytes at `offset`, valid until the next call, or NULL: reader->status says
 * why, WAL_OK at the end of the file. */
const uint8_t *wal__segment_reader_fetch(void *ctx, uint64_t offset,
                                         uint64_t size);

/* Whether anything but zeros is in the segment from the offset on. What cannot
 * be read may be anything. */
bool wal__segment_has_rest(struct wal__segment *segment, uint64_t offset);

#endif
