/*
 * line_diff.h - how many lines two texts have in common, their lines being
 * given as numbers: two lines have one number exactly when they are equal. The
 * memory is the caller's. Any thread.
 */
#ifndef AGENTWAL_ENGINE_CHECKPOINT_LINE_DIFF_H
#define AGENTWAL_ENGINE_CHECKPOINT_LINE_DIFF_H

#include <stddef.h>
#include <stdint.h>

struct wal__lines {
    uint32_t *numbers;
    uint32_t count; /* at most WAL__LINES_MAX */
};

#define WAL__LINES_MAX (UINT32_C(1) << 29)

/* What git asks about a line before it compares the two texts. */
enum wal__line_kind {
    WAL__LINE_UNMATCHED, /* the other text does not have it */
    WAL__LINE_MATCHED,
    WAL__LINE_FREQUENT, /* the other text has it very often */
};

/* The kind of a line of a text of `total` lines, of which the whole other text
 * has `matches`. */
enum wal__line_kind wal__line_kind(uint32_t matches, uint32_t total);

/* Leaves out the lines that git takes for changed unseen: the unmatched ones,
 * and the frequent ones that stand among many unmatched ones. One kind per
 * line. The others keep their order; returns how many they are. */
uint32_t wal__lines_filter(struct wal__lines lines, const uint8_t *kinds);

/* How many uint64_t wal__lines_lcs needs, all numbers being below
 * `number_end`. */
size_t wal__lines_scratch_words(uint32_t before, uint32_t after,
                                uint32_t number_end);

/* The length of the longest common subsequence, exactly. Overwrites the
 * numbers. The time is that of the lines times the changes, and at most that
 * of the product of the two counts divided by 64. */
uint32_t wal__lines_lcs(struct wal__lines before, struct wal__lines after,
                        uint32_t number_end, uint64_t *scratch);

#endif
