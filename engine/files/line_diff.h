/*
 * line_diff.h - the number of lines that two texts have in common. Lines are
 * given as numbers: two lines have the same number exactly when they are equal.
 * The caller provides the memory. Any thread.
 */
#ifndef AGENTWAL_ENGINE_FILES_LINE_DIFF_H
#define AGENTWAL_ENGINE_FILES_LINE_DIFF_H

#include <stddef.h>
#include <stdint.h>

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

/* The kind of a line in a text of `total` lines; the whole other text has the
 * line `matches` times. */
enum wal__line_kind wal__line_kind(uint32_t matches, uint32_t total);

/* Removes the lines that git assumes to be changed: unmatched lines, and
 * frequent lines among many unmatched ones. kinds has one kind per line. The
 * order is kept. Returns the number of lines that remain. */
uint32_t wal__lines_filter(struct wal__lines lines, const uint8_t *kinds);

/* The number of uint64_t of scratch memory that wal__lines_lcs needs. All
 * numbers are below `number_end`. */
size_t wal__lines_scratch_words(uint32_t before, uint32_t after,
                                uint32_t number_end);

/* The exact length of the longest common subsequence. Overwrites the numbers.
 * Time: lines times changes, and at most the product of the two counts divided
 * by 64. */
uint32_t wal__lines_lcs(struct wal__lines before, struct wal__lines after,
                        uint32_t number_end, uint64_t *scratch);

#endif
