/*
 * file_compare.h - compares a file with bytes, from front to back.
 *
 * Threads: one thread at a time per window.
 */
#ifndef AGENTWAL_CONVERT_SOURCE_FILE_COMPARE_H
#define AGENTWAL_CONVERT_SOURCE_FILE_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/heap.h"

/* The owner sets fd, and heap unless it is the C library's, and zeroes the
 * rest. */
struct wal__file_compare {
    const struct wal__heap *heap;
    int fd;
    char *bytes;     /* allocated by the first comparison */
    uint64_t offset; /* of the window in the file */
    size_t size;
    bool has_failed; /* no memory: the results are false */
    bool has_ended;  /* the file ended before a compared byte */
};

void wal__file_compare_deinit(struct wal__file_compare *window);

/* Returns true if the file has these bytes at the offset. */
bool wal__file_compare_bytes(struct wal__file_compare *window, uint64_t offset,
                             const void *data, size_t size);

#endif
