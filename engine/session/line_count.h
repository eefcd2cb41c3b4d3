/*
 * line_count.h - how many lines were inserted and deleted between two contents
 * of a file, as git tells it. Any thread.
 */
#ifndef WAL_SESSION_LINE_COUNT_H
#define WAL_SESSION_LINE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/heap.h"
#include "format/fmt.h"

/* A content with a zero byte among so many first ones is binary, and so is one
 * of more bytes than git compares. */
enum {
    WAL__BINARY_LOOK = 8000
};
#define WAL__BINARY_SIZE (UINT64_C(512) << 20)

struct wal__line_counts {
    uint64_t insertions;
    uint64_t deletions;
    bool is_binary; /* one of the two is; both numbers are 0 */
};

/* What `git diff --numstat --minimal --no-renames` says up to git 2.49. An
 * absent file is an empty span. Spans may be maps of files that another
 * process writes: the numbers are then those of no one moment. WAL_ENOMEM. */
enum wal_status wal__line_diff(const struct wal__heap *heap,
                               struct wal__span before, struct wal__span after,
                               struct wal__line_counts *counts) WAL_MUST_USE;

/* The least numbers that there are, which git says from 2.50 on. */
enum wal_status
wal__line_diff_least(const struct wal__heap *heap, struct wal__span before,
                     struct wal__span after,
                     struct wal__line_counts *counts) WAL_MUST_USE;

#endif
