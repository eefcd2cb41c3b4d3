/*
 * numstat.h - how many lines were inserted and deleted between two contents
 * of a file, as git tells it. Any thread.
 */
#ifndef AGENTWAL_ENGINE_CHECKPOINT_NUMSTAT_H
#define AGENTWAL_ENGINE_CHECKPOINT_NUMSTAT_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/heap.h"
#include "format/bytes/fmt.h"

/* A content with a zero byte among so many first ones is binary, and so is one
 * of more bytes than git compares. */
enum {
    WAL__BINARY_PROBE_SIZE = 8000
};
#define WAL__DIFF_SIZE_MAX (UINT64_C(512) << 20)

struct wal__numstat {
    uint64_t insertions;
    uint64_t deletions;
    bool is_binary; /* one of the two is; both numbers are 0 */
};

/* What `git diff --numstat --minimal --no-renames` says up to git 2.49. An
 * absent file is an empty span. Spans may be maps of files that another
 * process writes: the numbers are then those of no one moment. WAL_ENOMEM. */
enum wal_status wal__numstat_diff(const struct wal__heap *heap,
                                  struct wal__span before,
                                  struct wal__span after,
                                  struct wal__numstat *counts) WAL_MUST_USE;

/* The least numbers that there are, which git says from 2.50 on. */
enum wal_status
wal__numstat_diff_minimal(const struct wal__heap *heap, struct wal__span before,
                          struct wal__span after,
                          struct wal__numstat *counts) WAL_MUST_USE;

#endif
