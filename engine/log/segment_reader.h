/*
 * segment_reader.h - the bytes of a segment for scans (SPEC.md 3.4): from its
 * map, brought into memory piece by piece so that a bad sector is an error and
 * not a signal, or read where the system cannot do that, or maps are not
 * wanted.
 *
 * One thread at a time.
 */
#ifndef AGENTWAL_ENGINE_LOG_SEGMENT_READER_H
#define AGENTWAL_ENGINE_LOG_SEGMENT_READER_H

#include "engine/log/segment.h"

struct wal__segment_reader {
    struct wal__segment *segment;
    /* bytes of a map brought along behind those asked for */
    uint64_t readahead_size;
    /* From the map: [0, populated) is in memory. */
    const uint8_t *map;
    uint64_t populated;
    /* Read: the window's bytes. */
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
/* For struct wal__scan_source; ctx is the window. */
const uint8_t *wal__segment_reader_fetch(void *ctx, uint64_t offset,
                                         uint64_t size);

#endif
