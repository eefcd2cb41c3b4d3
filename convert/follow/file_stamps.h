/*
 * file_stamps.h - which state of each file was imported, so that a scan reads
 * only files that changed.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_FOLLOW_FILE_STAMPS_H
#define AGENTWAL_CONVERT_FOLLOW_FILE_STAMPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "engine/base/containers.h"

struct wal__scan_stamp {
    uint64_t inode;
    uint64_t size;
    int64_t modified_ns;
    int64_t next_ms; /* not to be read again before this time */
};

struct wal__scan_stamps {
    struct wal__hashmap map; /* from a hash of the name */
    struct wal__scan_stamp *items;
    uint32_t count;
    uint32_t capacity;
};

void wal__scan_stamps_init(struct wal__scan_stamps *stamps,
                           const struct wal__heap *heap);
void wal__scan_stamps_deinit(struct wal__scan_stamps *stamps);

/* Returns the stamp of a file, zeroed if it is new; it holds until the next
 * call. NULL: no memory. */
struct wal__scan_stamp *wal__scan_stamps_get(struct wal__scan_stamps *stamps,
                                             const char *name);

/* Returns true if the file is not as the stamp has it, and updates the
 * stamp. */
bool wal__scan_stamp_update(struct wal__scan_stamp *stamp,
                            const struct stat *stat);

#endif
