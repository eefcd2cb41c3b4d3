/*
 * numstat.h - the numbers of lines inserted and deleted between two contents of
 * a file, as `git diff --numstat` prints them. Any thread.
 */
#ifndef AGENTWAL_ENGINE_FILES_NUMSTAT_H
#define AGENTWAL_ENGINE_FILES_NUMSTAT_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/heap.h"
#include "format/bytes/fmt.h"

/* Content is binary if its first WAL__BINARY_PROBE_SIZE bytes contain a zero
 * byte, or if it is larger than the largest content git compares. */
enum {
    WAL__BINARY_PROBE_SIZE = 8000
};
#define WAL__DIFF_SIZE_MAX (UINT64_C(512) << 20)

struct wal__numstat {
    uint64_t insertions;
    uint64_t deletions;
    bool is_binary; /* one content is binary; both counts are 0 */
};

/* The counts of `git diff --numstat --minimal --no-renames` up to git 2.49. An
 * absent file is an empty span. Spans may be maps of files that another process
 * writes; the counts then belong to no single moment. WAL_ENOMEM. */
enum wal_status wal__numstat_diff(const struct wal__heap *heap,
                                  struct wal__span before,
                                  struct wal__span after,
                                  struct wal__numstat *counts) WAL_MUST_USE;

/* The minimal counts, which git prints since 2.50. */
enum wal_status
wal__numstat_diff_minimal(const struct wal__heap *heap, struct wal__span before,
                          struct wal__span after,
                          struct wal__numstat *counts) WAL_MUST_USE;

#endif
