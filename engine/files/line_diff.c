/*
 * line_diff.c - the length of the longest common subsequence of two texts
 * (line_diff.h). No section of SPEC.md.
 *
 * Two algorithms compute the same length. The first walks diagonals (Wu,
 * Manber, Myers and Miller, "An O(NP) sequence comparison algorithm", 1990): it
 * is fast when few lines changed. Its budget is the estimated work of the
 * second, which compares one line with 64 at once (Hyyro, "Bit-parallel
 * LCS-length computation revisited", 2004) and whose time does not depend on
 * the changes.
 *
 * Invariant: the result is the exact length, whichever algorithm computed it.
 *
 * Threads: any.
 */
#include "engine/files/line_diff.h"

#include <stdbool.h>
#include <string.h>

#include "format/bytes/assert.h"

enum {
    KIND_WINDOW = 100,       /* lines examined on each side of a frequent one */
    KIND_SHARE = 4,          /* discard if fewer than one in N is frequent */
    FREQUENT_MIN_CAP = 1024, /* upper bound of frequent_min() */
    DENSE_SHARE = 64,        /* dense: at least one in N lines */
    DENSE_COUNT_MAX = 64,    /* follows from DENSE_SHARE */
    WORD_BITS = 64,
};

/* git's rule ----------------------------------------------------------------*/

/* A power of two near the square root of the number of lines. */
static uint32_t frequent_min(uint32_t total)
{
    uint32_t from = 1;

    for (; total > 0 && from < FREQUENT_MIN_CAP; total >>= 2) {
        from <<= 1;
    }
    return from;
}

enum wal__line_kind wal__line_kind(uint32_t matches, uint32_t total)
{
    if (matches == 0) {
        return WAL__LINE_UNMATCHED;
    }
    return matches >= frequent_min(total) ? WAL__LINE_FREQUENT
                                          : WAL__LINE_MATCHED;
}

struct run {
    uint32_t unmatched;
    uint32_t frequent;
};

/* Counts the lines next to a line, up to the first matched one: `count` at
 * most, in direction `step`. */
static struct run count_run(const uint8_t *kinds, uint32_t count, int step)
{
    struct run run = {0, 0};

    if (count > KIND_WINDOW) {
        count = KIND_WINDOW;
    }
    for (uint32_t i = 0; i < count; i++) {
        kinds += step;
        if (*kinds == WAL__LINE_MATCHED) {
            break;
        }
        run.unmatched += *kinds == WAL__LINE_UNMATCHED;
        run.frequent += *kinds == WAL__LINE_FREQUENT;
    }
    return run;
}

/* Whether a frequent line is in a run of mostly unmatched ones. */
static bool should_discard(const uint8_t *kinds, uint32_t at, uint32_t count)
{
    struct run before = count_run(kinds + at, at, -1);
    struct run after;
    uint32_t frequent;

    if (before.unmatched == 0) {
        return false;
    }
    after = count_run(kinds + at, count - at - 1, 1);
    if (after.unmatched == 0) {
        return false;
    }
    /* The line itself is counted once per side. */
    frequent = before.frequent + after.frequent + 2;
    return frequent * KIND_SHARE <
           frequent + before.unmatched + after.unmatched;
}

uint32_t wal__lines_filter(struct wal__lines lines, const uint8_t *kinds)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < lines.count; i++) {
        if (kinds[i] == WAL__LINE_MATCHED ||
            (kinds[i] == WAL__LINE_FREQUENT &&
             !should_discard(kinds, i, lines.count))) {
            lines.numbers[kept++] = lines.numbers[i];
        }
    }
    return kept;
}

/* By diagonals --------------------------------------------------------------*/

struct search {
    const uint32_t *shorter;
    const uint32_t *longer;
    int32_t shorter_count;
    int32_t longer_count;
    int32_t *furthest; /* per diagonal, in the longer text */
    uint64_t work;
};

/* Diagonal k: the position in the longer text is k more than in the shorter. */
static void extend_diagonal(struct search *search, int32_t k)
{
    int32_t down = search->furthest[k - 1] + 1;
    int32_t across = search->furthest[k + 1];
    int32_t start = down > across ? down : across;
    int32_t y = start;

    while (y < search->longer_count && y - k < search->shorter_count &&
           search->longer[y] == search->shorter[y - k]) {
        y++;
    }
    search->furthest[k] = y;
    search->work += 1 + (uint64_t)(y - start);
}

/* Extends all diagonals for p deletions; true if that reaches the end. */
static bool search_step(struct search *search, int32_t p, uint64_t work_max)
{
    int32_t last = search->longer_count - search->shorter_count;

    search->furthest[-p - 1] = -1;
    search->furthest[last + p + 1] = -1;
    for (int32_t k = -p; k < last && search->work <= work_max; k++) {
        extend_diagonal(search, k);
    }
    for (int32_t k = last + p; k > last && search->work <= work_max; k--) {
        extend_diagonal(search, k);
    }
    if (search->work > work_max) {
        return false;
    }
    extend_diagonal(search, last);
    return search->furthest[last] == search->longer_count;
}

/* False when it needs more than work_max steps. */
static bool lcs_by_diagonals(struct wal__lines shorter,
                             struct wal__lines longer, uint64_t work_max,
                             uint32_t *scratch, uint32_t *common)
{
    int32_t last = (int32_t)(longer.count - shorter.count);
    struct search search = {
        .shorter = shorter.numbers,
        .longer = longer.numbers,
        .shorter_count = (int32_t)shorter.count,
        .longer_count = (int32_t)longer.count,
        .furthest = (int32_t *)scratch + shorter.count + 1,
    };

    WAL__ASSERT(shorter.count <= longer.count);
    WAL__ASSERT(longer.count <= WAL__LINES_MAX);
    for (int32_t k = -1; k <= last + 1; k++) {
        search.furthest[k] = -1;
    }
    for (int32_t p = 0; search.work <= work_max; p++) {
        if (search_step(&search, p, work_max)) {
            WAL__ASSERT((uint32_t)p <= shorter.count);
            *common = shorter.count - (uint32_t)p;
            return true;
        }
    }
    return false;
}

/* By bits -------------------------------------------------------------------*/

static uint32_t row_word_count(uint32_t line_count)
{
    return line_count / WORD_BITS + 1;
}

/* The number of words of a bitmap with one bit per word. */
static uint32_t open_word_count(uint32_t word_count)
{
    return word_count / WORD_BITS + 1;
}

/* One bit per line of the longer text; a clear bit ends a common subsequence of
 * a new length. */
struct bits {
    uint64_t *row;
    uint64_t *open;   /* a bit per word of the row: set if it has a clear bit */
    uint64_t *masks;  /* word_count words per dense line */
    uint32_t *starts; /* per number, and one more: index in positions */
    uint32_t *positions; /* lines of the longer text, sorted by number */
    uint32_t *dense;     /* per number: index of its mask + 1; 0: not dense */
    uint32_t word_count;
    uint32_t number_end;
};

/* Adds the matching bits to the row; each carries up to the next clear bit. */
static uint64_t step_word(uint64_t *word, uint64_t matches, uint64_t carry)
{
    uint64_t hit = *word & matches;
    uint64_t sum;
    uint64_t over = __builtin_add_overflow(*word, hit, &sum);

    over |= __builtin_add_overflow(sum, carry, &sum);
    *word = sum | (*word & ~matches);
    return over;
}

static void update_open(struct bits *bits, uint32_t word)
{
    uint64_t bit = UINT64_C(1) << (word % WORD_BITS);

    if (bits->row[word] == UINT64_MAX) {
        bits->open[word / WORD_BITS] &= ~bit;
    } else {
        bits->open[word / WORD_BITS] |= bit;
    }
}

/* Propagates the carry through words without a match to the first open word. */
static uint64_t propagate_carry(struct bits *bits, uint32_t from, uint32_t end)
{
    uint64_t seen = (UINT64_C(1) << (from % WORD_BITS)) - 1;

    for (uint32_t i = from / WORD_BITS; i < open_word_count(end); i++) {
        uint64_t open = bits->open[i] & ~seen;

        if (open != 0) {
            uint32_t word = i * WORD_BITS + (uint32_t)__builtin_ctzll(open);

            if (word >= end) {
                return 1;
            }
            bits->row[word] |= bits->row[word] + 1;
            update_open(bits, word);
            return 0;
        }
        seen = 0;
    }
    return 1;
}

static void step_sparse(struct bits *bits, uint32_t number)
{
    const uint32_t *at = bits->positions + bits->starts[number];
    const uint32_t *end = bits->positions + bits->starts[number + 1];
    uint32_t next = 0;
    uint64_t carry = 0;

    while (at < end) {
        uint32_t word = *at / WORD_BITS;
        uint64_t matches = 0;

        for (; at < end && *at / WORD_BITS == word; at++) {
            matches |= UINT64_C(1) << (*at % WORD_BITS);
        }
        if (carry != 0) {
            carry = propagate_carry(bits, next, word);
        }
        carry = step_word(&bits->row[word], matches, carry);
        update_open(bits, word);
        next = word + 1;
    }
    if (carry != 0) {
        (void)propagate_carry(bits, next, bits->word_count);
    }
}

static void step_dense(struct bits *bits, const uint64_t *mask)
{
    uint64_t carry = 0;

    for (uint32_t i = 0; i < bits->word_count; i++) {
        carry = step_word(&bits->row[i], mask[i], carry);
        update_open(bits, i);
    }
}

/* Sorts the positions of the longer text by number. */
static void sort_positions(struct bits *bits, struct wal__lines longer)
{
    uint32_t *starts = bits->starts;
    uint32_t sum = 0;

    memset(starts, 0, (bits->number_end + (size_t)1) * sizeof(*starts));
    for (uint32_t i = 0; i < longer.count; i++) {
        starts[longer.numbers[i]]++;
    }
    for (uint32_t i = 0; i <= bits->number_end; i++) {
        sum += starts[i];
        starts[i] = sum;
    }
    for (uint32_t i = longer.count; i-- > 0;) {
        bits->positions[--starts[longer.numbers[i]]] = i;
    }
    WAL__ASSERT(starts[bits->number_end] == longer.count);
}

static void build_masks(struct bits *bits, uint32_t longer_count)
{
    uint32_t count = 0;

    for (uint32_t number = 0; number < bits->number_end; number++) {
        uint32_t start = bits->starts[number];
        uint32_t end = bits->starts[number + 1];
        uint64_t *mask = bits->masks + (size_t)count * bits->word_count;

        bits->dense[number] = 0;
        if ((uint64_t)(end - start) * DENSE_SHARE < longer_count) {
            continue;
        }
        WAL__ASSERT(count < DENSE_COUNT_MAX);
        memset(mask, 0, bits->word_count * sizeof(*mask));
        for (uint32_t i = start; i < end; i++) {
            mask[bits->positions[i] / WORD_BITS] |=
                UINT64_C(1) << (bits->positions[i] % WORD_BITS);
        }
        bits->dense[number] = ++count;
    }
}

static uint32_t lcs_bit_parallel(struct wal__lines shorter,
                                 struct wal__lines longer, uint32_t number_end,
                                 uint64_t *scratch)
{
    uint32_t word_count = row_word_count(longer.count);
    struct bits bits = {.word_count = word_count, .number_end = number_end};
    uint32_t common = 0;

    bits.row = scratch;
    bits.open = bits.row + word_count;
    bits.masks = bits.open + open_word_count(word_count);
    bits.starts =
        (uint32_t *)(bits.masks + (size_t)DENSE_COUNT_MAX * word_count);
    bits.positions = bits.starts + number_end + 1;
    bits.dense = bits.positions + longer.count;
    sort_positions(&bits, longer);
    build_masks(&bits, longer.count);
    memset(bits.row, 0xff, word_count * sizeof(*bits.row));
    memset(bits.open, 0, open_word_count(word_count) * sizeof(*bits.open));
    for (uint32_t i = 0; i < shorter.count; i++) {
        uint32_t number = shorter.numbers[i];
        uint32_t dense = bits.dense[number];

        if (dense != 0) {
            step_dense(&bits, bits.masks + (size_t)(dense - 1) * word_count);
        } else {
            step_sparse(&bits, number);
        }
    }
    for (uint32_t i = 0; i < longer.count; i++) {
        common += (uint32_t)(~bits.row[i / WORD_BITS] >> (i % WORD_BITS)) & 1;
    }
    WAL__ASSERT(common <= shorter.count);
    return common;
}

/* Both ----------------------------------------------------------------------*/

/* Lines that only one text has are in no common subsequence. */
static void discard_unmatched(struct wal__lines *lines, const uint32_t *others)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < lines->count; i++) {
        if (others[lines->numbers[i]] != 0) {
            lines->numbers[kept++] = lines->numbers[i];
        }
    }
    lines->count = kept;
}

static void count_numbers(struct wal__lines lines, uint32_t number_end,
                          uint32_t *counts)
{
    memset(counts, 0, number_end * sizeof(*counts));
    for (uint32_t i = 0; i < lines.count; i++) {
        counts[lines.numbers[i]]++;
    }
}

/* Removes the common prefix and suffix; returns their length in lines. */
static uint32_t trim(struct wal__lines *before, struct wal__lines *after)
{
    uint32_t most = before->count < after->count ? before->count : after->count;
    uint32_t prefix = 0;
    uint32_t suffix = 0;

    while (prefix < most && before->numbers[prefix] == after->numbers[prefix]) {
        prefix++;
    }
    while (suffix < most - prefix &&
           before->numbers[before->count - 1 - suffix] ==
               after->numbers[after->count - 1 - suffix]) {
        suffix++;
    }
    WAL__ASSERT(prefix + suffix <= most);
    before->numbers += prefix;
    before->count -= prefix + suffix;
    after->numbers += prefix;
    after->count -= prefix + suffix;
    return prefix + suffix;
}

/* Estimates the work of lcs_bit_parallel in steps of lcs_by_diagonals, which
 * take about four times as long. */
static uint64_t bit_parallel_work(struct wal__lines shorter,
                                  struct wal__lines longer,
                                  const uint32_t *counts)
{
    uint64_t words = row_word_count(longer.count);
    uint64_t work = longer.count;

    for (uint32_t i = 0; i < shorter.count; i++) {
        uint64_t positions = counts[shorter.numbers[i]];
        uint64_t sparse = positions * 4 + open_word_count((uint32_t)words);

        work += sparse < words ? sparse : words;
    }
    return work / 4;
}

size_t wal__lines_scratch_words(uint32_t before, uint32_t after,
                                uint32_t number_end)
{
    uint32_t longer = before > after ? before : after;
    uint32_t words = row_word_count(longer);
    size_t counts = (size_t)number_end * 2;
    size_t search = (size_t)before + after + 3;
    size_t bits = (size_t)number_end * 2 + 1 + longer +
                  (size_t)words * (DENSE_COUNT_MAX + 1) * 2 +
                  (size_t)open_word_count(words) * 2;
    size_t most = counts > search ? counts : search;

    most = most > bits ? most : bits;
    return (most + 1) / 2;
}

uint32_t wal__lines_lcs(struct wal__lines before, struct wal__lines after,
                        uint32_t number_end, uint64_t *scratch)
{
    uint32_t *in_before = (uint32_t *)scratch;
    uint32_t *in_after = in_before + number_end;
    uint32_t trimmed;
    uint32_t common = 0;
    uint64_t work_max;

    count_numbers(before, number_end, in_before);
    count_numbers(after, number_end, in_after);
    discard_unmatched(&before, in_after);
    discard_unmatched(&after, in_before);
    trimmed = trim(&before, &after);

    bool is_grown = before.count <= after.count;
    struct wal__lines shorter = is_grown ? before : after;
    struct wal__lines longer = is_grown ? after : before;
    if (shorter.count == 0) {
        return trimmed;
    }
    work_max =
        bit_parallel_work(shorter, longer, is_grown ? in_after : in_before);
    if (!lcs_by_diagonals(shorter, longer, work_max, (uint32_t *)scratch,
                          &common)) {
        common = lcs_bit_parallel(shorter, longer, number_end, scratch);
    }
    WAL__ASSERT(common <= shorter.count);
    return trimmed + common;
}
