/*
 * numstat.h - the numbers of lines inserted and deleted between two contents of a file, as `git
 * diff --numstat` prints them. Any thread.
 */
#ifndef AGENTWAL_ENGINE_FILES_NUMSTAT_H
#define AGENTWAL_ENGINE_FILES_NUMSTAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/heap.h"
#include "format/bytes/bytes.h"

/* Content is binary if its first WAL__BINARY_PROBE_SIZE bytes contain a zero byte, or if it is
 * larger than the largest content git compares. */
enum { WAL__BINARY_PROBE_SIZE = 8000 };
#define WAL__DIFF_SIZE_MAX (UINT64_C(512) << 20)

struct wal__numstat {
    uint64_t insertions;
    uint64_t deletions;
    bool is_binary; /* one content is binary; both counts are 0 */
};

/* The counts of `git diff --numstat --minimal --no-renames`: of git up to 2.49, or with
 * `is_minimal` of later ones. An absent file is an empty span. Spans may be maps of files that
 * another process writes; the counts then belong to no single moment. WAL_ENOMEM. */
enum wal_status wal__numstat_diff(const struct wal__heap *heap, struct wal__span before,
                                  struct wal__span after, bool is_minimal,
                                  struct wal__numstat *counts) WAL_MUST_USE;

/*
 * The steps that compare lines, which are also tested alone. Lines are given as numbers: two lines
 * have the same number exactly when they are equal.
 */
struct wal__lines {
    uint32_t *numbers;
    uint32_t count; /* at most WAL__LINES_MAX */
};

#define WAL__LINES_MAX (UINT32_C(1) << 29)

/* How git classifies a line before it compares the two texts. */
enum wal__line_kind {
    WAL__LINE_UNMATCHED, /* the other text does not have it */
    WAL__LINE_MATCHED,
    WAL__LINE_FREQUENT, /* the other text has it often */
};

/* The kind of a line in a text of `total` lines; the whole other text has the line `matches`
 * times. */
enum wal__line_kind wal__line_kind(uint32_t matches, uint32_t total);

/* Removes the lines that git assumes to be changed: unmatched lines, and frequent lines among many
 * unmatched ones. kinds has one kind per line. The order is kept. Returns the number of lines that
 * remain. */
uint32_t wal__lines_filter(struct wal__lines lines, const uint8_t *kinds);

/* The number of uint64_t of scratch memory that wal__lines_lcs needs. All numbers are below
 * `number_end`. */
size_t wal__lines_scratch_words(uint32_t before, uint32_t after, uint32_t number_end);

/* The exact length of the longest common subsequence. Overwrites the numbers. Time: lines times
 * changes, and at most the product of the two counts divided by 64. */
uint32_t wal__lines_lcs(struct wal__lines before, struct wal__lines after, uint32_t number_end,
                        uint64_t *scratch);

#endif
