/*
 * numstat.c - counts the lines that two contents do not have in common (numstat.h). No section of
 * SPEC.md.
 *
 * The common prefix and suffix are removed bytewise. Only the lines between are kept: 4 bytes each,
 * and about 32 more per distinct line. Equal lines get the same number. The lines that git assumes
 * to be changed are removed, and the longest common subsequence of the others is unchanged.
 *
 * Two algorithms compute its length. The first walks diagonals (Wu, Manber, Myers and Miller, "An
 * O(NP) sequence comparison algorithm", 1990): it is fast when few lines changed. Its budget is the
 * estimated work of the second, which compares one line with 64 at once (Hyyro, "Bit-parallel
 * LCS-length computation revisited", 2004) and whose time does not depend on the changes.
 *
 * Invariants: the length is exact, whichever algorithm computed it. Nothing is read outside the two
 * spans, even when their bytes change during the call.
 *
 * Threads: any.
 */
#include "engine/files/numstat.h"

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

/* --- git's rule ---------------------------------------------------------- */

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
    return matches >= frequent_min(total) ? WAL__LINE_FREQUENT : WAL__LINE_MATCHED;
}

struct run {
    uint32_t unmatched;
    uint32_t frequent;
};

/* Counts the lines next to a line, up to the first matched one: `count` at most, in direction
 * `step`. */
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
    return frequent * KIND_SHARE < frequent + before.unmatched + after.unmatched;
}

uint32_t wal__lines_filter(struct wal__lines lines, const uint8_t *kinds)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < lines.count; i++) {
        if (kinds[i] == WAL__LINE_MATCHED ||
            (kinds[i] == WAL__LINE_FREQUENT && !should_discard(kinds, i, lines.count))) {
            lines.numbers[kept++] = lines.numbers[i];
        }
    }
    return kept;
}

/* --- by diagonals -------------------------------------------------------- */

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
static bool lcs_by_diagonals(struct wal__lines shorter, struct wal__lines longer, uint64_t work_max,
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

/* --- by bits ------------------------------------------------------------- */

static uint32_t row_word_count(uint32_t line_count)
{
    return line_count / WORD_BITS + 1;
}

/* The number of words of a bitmap with one bit per word. */
static uint32_t open_word_count(uint32_t word_count)
{
    return word_count / WORD_BITS + 1;
}

/* One bit per line of the longer text; a clear bit ends a common subsequence of a new length. */
struct bits {
    uint64_t *row;
    uint64_t *open;      /* a bit per word of the row: set if it has a clear bit */
    uint64_t *masks;     /* word_count words per dense line */
    uint32_t *starts;    /* per number, and one more: index in positions */
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
            mask[bits->positions[i] / WORD_BITS] |= UINT64_C(1) << (bits->positions[i] % WORD_BITS);
        }
        bits->dense[number] = ++count;
    }
}

static uint32_t lcs_bit_parallel(struct wal__lines shorter, struct wal__lines longer,
                                 uint32_t number_end, uint64_t *scratch)
{
    uint32_t word_count = row_word_count(longer.count);
    struct bits bits = {.word_count = word_count, .number_end = number_end};
    uint32_t common = 0;

    bits.row = scratch;
    bits.open = bits.row + word_count;
    bits.masks = bits.open + open_word_count(word_count);
    bits.starts = (uint32_t *)(bits.masks + (size_t)DENSE_COUNT_MAX * word_count);
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

/* --- either way ---------------------------------------------------------- */

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

static void count_numbers(struct wal__lines lines, uint32_t number_end, uint32_t *counts)
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
    while (suffix < most - prefix && before->numbers[before->count - 1 - suffix] ==
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

/* Estimates the work of lcs_bit_parallel in steps of lcs_by_diagonals, which take about four times
 * as long. */
static uint64_t bit_parallel_work(struct wal__lines shorter, struct wal__lines longer,
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

size_t wal__lines_scratch_words(uint32_t before, uint32_t after, uint32_t number_end)
{
    uint32_t longer = before > after ? before : after;
    uint32_t words = row_word_count(longer);
    size_t counts = (size_t)number_end * 2;
    size_t search = (size_t)before + after + 3;
    size_t bits = (size_t)number_end * 2 + 1 + longer + (size_t)words * (DENSE_COUNT_MAX + 1) * 2 +
                  (size_t)open_word_count(words) * 2;
    size_t most = counts > search ? counts : search;

    most = most > bits ? most : bits;
    return (most + 1) / 2;
}

uint32_t wal__lines_lcs(struct wal__lines before, struct wal__lines after, uint32_t number_end,
                        uint64_t *scratch)
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
    work_max = bit_parallel_work(shorter, longer, is_grown ? in_after : in_before);
    if (!lcs_by_diagonals(shorter, longer, work_max, (uint32_t *)scratch, &common)) {
        common = lcs_bit_parallel(shorter, longer, number_end, scratch);
    }
    WAL__ASSERT(common <= shorter.count);
    return trimmed + common;
}

#define HASH_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

/* A class of equal lines; its index is their number. */
struct line_class {
    const uint8_t *data;
    uint32_t size;
    uint32_t hash;
    uint32_t counts[2]; /* occurrences in the whole content: before, after */
};

struct classes {
    const struct wal__heap *heap;
    struct line_class *items;
    uint32_t *slots; /* number + 1; 0: free */
    uint32_t count;
    uint32_t capacity; /* a power of two, or 0; twice as many slots */
};

struct side {
    struct wal__span middle; /* between the common prefix and suffix */
    struct wal__lines lines; /* of the middle */
    uint32_t total;          /* lines of the whole content */
};

struct diff {
    struct side sides[2]; /* before, after */
    struct wal__span prefix;
    struct wal__span suffix;
    struct classes classes;
    uint32_t *numbers; /* the lines of both sides */
};

/* --- bytes --------------------------------------------------------------- */

static bool is_binary(struct wal__span content)
{
    size_t probe_size =
        content.size < WAL__BINARY_PROBE_SIZE ? content.size : WAL__BINARY_PROBE_SIZE;

    return content.size > WAL__DIFF_SIZE_MAX ||
           (probe_size > 0 && memchr(content.data, 0, probe_size) != NULL);
}

/* Removes `size` bytes from the front and returns them. */
static struct wal__span consume(struct wal__span *from, size_t size)
{
    struct wal__span taken = {from->data, size};

    if (size > 0) {
        from->data += size;
        from->size -= size;
    }
    return taken;
}

/* Removes a line with its newline from a nonempty span and returns it. */
static struct wal__span next_line(struct wal__span *from)
{
    const uint8_t *end = memchr(from->data, '\n', from->size);

    return consume(from, end != NULL ? (size_t)(end - from->data) + 1 : from->size);
}

static uint32_t count_lines(struct wal__span span)
{
    uint32_t count = 0;

    while (span.size > 0) {
        (void)next_line(&span);
        count++;
    }
    return count;
}

static size_t common_prefix(struct wal__span a, struct wal__span b)
{
    size_t limit = a.size < b.size ? a.size : b.size;
    size_t at = 0;

    for (size_t step = 4096; step > 0; step = step > 1 ? step / 8 : 0) {
        while (limit - at >= step && memcmp(a.data + at, b.data + at, step) == 0) {
            at += step;
        }
    }
    return at;
}

static size_t common_suffix(struct wal__span a, struct wal__span b)
{
    size_t limit = a.size < b.size ? a.size : b.size;
    size_t at = 0;

    for (size_t step = 4096; step > 0; step = step > 1 ? step / 8 : 0) {
        while (limit - at >= step &&
               memcmp(a.data + a.size - at - step, b.data + b.size - at - step, step) == 0) {
            at += step;
        }
    }
    return at;
}

/* Whether a line begins `size` bytes before the end of the span, which itself begins with a
 * line. */
static bool is_line_start(struct wal__span span, size_t size)
{
    return size == span.size || span.data[span.size - size - 1] == '\n';
}

/* Removes the whole lines of the common prefix and suffix. */
static void trim_common(struct diff *diff)
{
    struct wal__span *before = &diff->sides[0].middle;
    struct wal__span *after = &diff->sides[1].middle;
    size_t size = common_prefix(*before, *after);

    if (size < before->size || size < after->size) {
        while (size > 0 && before->data[size - 1] != '\n') {
            size--;
        }
    }
    diff->prefix = consume(before, size);
    (void)consume(after, size);

    size = common_suffix(*before, *after);
    diff->suffix = (struct wal__span){before->data, 0};
    if (size > 0) {
        diff->suffix.data = before->data + before->size - size;
        diff->suffix.size = size;
        if (!is_line_start(*before, size) || !is_line_start(*after, size)) {
            (void)next_line(&diff->suffix);
        }
    }
    WAL__ASSERT(diff->suffix.size <= before->size);
    WAL__ASSERT(diff->suffix.size <= after->size);
    before->size -= diff->suffix.size;
    after->size -= diff->suffix.size;
}

/* --- numbers ------------------------------------------------------------- */

static uint32_t hash_line(struct wal__span line)
{
    uint64_t hash = line.size;
    uint64_t word;

    for (; line.size >= sizeof(word); (void)consume(&line, sizeof(word))) {
        memcpy(&word, line.data, sizeof(word));
        hash = (hash ^ word) * HASH_MULTIPLIER;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, line.data, line.size);
    hash = (hash ^ word) * HASH_MULTIPLIER;
    return (uint32_t)(hash ^ (hash >> 32));
}

/* The slot of the line's class, or the free slot for it. */
static uint32_t *find_slot(const struct classes *classes, struct wal__span line, uint32_t hash)
{
    uint32_t mask = classes->capacity * 2 - 1;
    uint32_t at = hash & mask;

    WAL__ASSERT(classes->capacity > 0);
    for (; classes->slots[at] != 0; at = (at + 1) & mask) {
        const struct line_class *item = &classes->items[classes->slots[at] - 1];

        if (item->hash == hash && item->size == line.size &&
            memcmp(item->data, line.data, line.size) == 0) {
            break;
        }
    }
    return &classes->slots[at];
}

/* Doubles the capacity for classes. */
static enum wal_status grow(struct classes *classes)
{
    uint32_t capacity = classes->capacity == 0 ? 64 : classes->capacity * 2;
    uint32_t mask = capacity * 2 - 1;
    struct line_class *items =
        wal__heap_resize(classes->heap, classes->items, capacity, sizeof(*items));
    uint32_t *slots;

    WAL__ASSERT((capacity & (capacity - 1)) == 0);
    if (items == NULL) {
        return WAL_ENOMEM;
    }
    classes->items = items;
    slots = wal__heap_zalloc(classes->heap, (size_t)capacity * 2 * sizeof(*slots));
    if (slots == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t i = 0; i < classes->count; i++) {
        uint32_t at = items[i].hash & mask;

        while (slots[at] != 0) {
            at = (at + 1) & mask;
        }
        slots[at] = i + 1;
    }
    wal__heap_free(classes->heap, classes->slots);
    classes->slots = slots;
    classes->capacity = capacity;
    return WAL_OK;
}

/* Counts a line of one side in its class; creates the class if needed. */
static enum wal_status classify_line(struct classes *classes, struct wal__span line, int side,
                                     uint32_t *number)
{
    uint32_t hash = hash_line(line);
    uint32_t *slot;

    if (classes->count == classes->capacity) {
        enum wal_status status = grow(classes);

        if (status != WAL_OK) {
            return status;
        }
    }
    slot = find_slot(classes, line, hash);
    if (*slot == 0) {
        WAL__ASSERT(classes->count < classes->capacity);
        classes->items[classes->count] =
            (struct line_class){.data = line.data, .size = (uint32_t)line.size, .hash = hash};
        *slot = ++classes->count;
    }
    *number = *slot - 1;
    classes->items[*number].counts[side]++;
    return WAL_OK;
}

static enum wal_status classify_lines(struct diff *diff, int index)
{
    struct side *side = &diff->sides[index];
    struct wal__span rest = side->middle;
    uint32_t count = 0;

    /* Another process may have changed the bytes since they were counted. */
    while (rest.size > 0 && count < side->lines.count) {
        enum wal_status status =
            classify_line(&diff->classes, next_line(&rest), index, &side->lines.numbers[count]);

        if (status != WAL_OK) {
            return status;
        }
        count++;
    }
    WAL__ASSERT(count <= side->lines.count);
    side->lines.count = count;
    return WAL_OK;
}

/* Counts the lines of the common prefix or suffix in the classes of the middle. */
static void count_common(struct classes *classes, struct wal__span common)
{
    while (common.size > 0) {
        struct wal__span line = next_line(&common);
        uint32_t slot = *find_slot(classes, line, hash_line(line));

        if (slot != 0) {
            classes->items[slot - 1].counts[0]++;
            classes->items[slot - 1].counts[1]++;
        }
    }
}

static enum wal_status classify_all(struct diff *diff)
{
    struct wal__lines *before = &diff->sides[0].lines;
    struct wal__lines *after = &diff->sides[1].lines;
    enum wal_status status;

    diff->numbers = wal__heap_resize(diff->classes.heap, NULL, (size_t)before->count + after->count,
                                     sizeof(*diff->numbers));
    if (diff->numbers == NULL) {
        return WAL_ENOMEM;
    }
    before->numbers = diff->numbers;
    after->numbers = diff->numbers + before->count;
    status = classify_lines(diff, 0);
    if (status == WAL_OK) {
        status = classify_lines(diff, 1);
    }
    return status;
}

/* --- the count ----------------------------------------------------------- */

static enum wal_status discard_confusing(struct diff *diff, int index)
{
    const struct line_class *items = diff->classes.items;
    struct side *side = &diff->sides[index];
    uint8_t *kinds = wal__heap_alloc(diff->classes.heap, side->lines.count);

    WAL__ASSERT(side->lines.count <= side->total);
    if (kinds == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t i = 0; i < side->lines.count; i++) {
        kinds[i] =
            (uint8_t)wal__line_kind(items[side->lines.numbers[i]].counts[1 - index], side->total);
    }
    side->lines.count = wal__lines_filter(side->lines, kinds);
    wal__heap_free(diff->classes.heap, kinds);
    return WAL_OK;
}

static enum wal_status discard_confusing_all(struct diff *diff)
{
    enum wal_status status;

    /* A frequent line is discarded only between two unmatched lines. */
    if (diff->sides[0].lines.count < 3 && diff->sides[1].lines.count < 3) {
        return WAL_OK;
    }
    count_common(&diff->classes, diff->prefix);
    count_common(&diff->classes, diff->suffix);
    status = discard_confusing(diff, 0);
    if (status == WAL_OK) {
        status = discard_confusing(diff, 1);
    }
    return status;
}

static void free_classes(struct classes *classes)
{
    wal__heap_free(classes->heap, classes->slots);
    wal__heap_free(classes->heap, classes->items);
    classes->slots = NULL;
    classes->items = NULL;
}

/* Counts the lines of both middles that did not change. */
static enum wal_status count_unchanged(struct diff *diff, bool is_minimal, uint32_t *unchanged)
{
    const struct wal__heap *heap = diff->classes.heap;
    struct wal__lines *before = &diff->sides[0].lines;
    struct wal__lines *after = &diff->sides[1].lines;
    uint32_t number_end;
    uint64_t *scratch;
    enum wal_status status;

    status = classify_all(diff);
    if (status == WAL_OK && !is_minimal) {
        status = discard_confusing_all(diff);
    }
    if (status != WAL_OK) {
        return status;
    }
    number_end = diff->classes.count;
    free_classes(&diff->classes);
    scratch = wal__heap_resize(heap, NULL,
                               wal__lines_scratch_words(before->count, after->count, number_end),
                               sizeof(*scratch));
    if (scratch == NULL) {
        return WAL_ENOMEM;
    }
    *unchanged = wal__lines_lcs(*before, *after, number_end, scratch);
    WAL__ASSERT(*unchanged <= before->count && *unchanged <= after->count);
    wal__heap_free(heap, scratch);
    return WAL_OK;
}

static enum wal_status count_changed(struct diff *diff, bool is_minimal,
                                     struct wal__numstat *counts)
{
    struct side *before = &diff->sides[0];
    struct side *after = &diff->sides[1];
    uint32_t common;
    uint32_t unchanged = 0;
    enum wal_status status = WAL_OK;

    trim_common(diff);
    before->lines.count = count_lines(before->middle);
    after->lines.count = count_lines(after->middle);
    *counts =
        (struct wal__numstat){.insertions = after->lines.count, .deletions = before->lines.count};
    if (before->lines.count > 0 && after->lines.count > 0) {
        common = count_lines(diff->prefix) + count_lines(diff->suffix);
        before->total = common + before->lines.count;
        after->total = common + after->lines.count;
        status = count_unchanged(diff, is_minimal, &unchanged);
    }
    WAL__ASSERT(unchanged <= counts->insertions);
    WAL__ASSERT(unchanged <= counts->deletions);
    counts->insertions -= unchanged;
    counts->deletions -= unchanged;
    return status;
}

enum wal_status wal__numstat_diff(const struct wal__heap *heap, struct wal__span before,
                                  struct wal__span after, bool is_minimal,
                                  struct wal__numstat *counts)
{
    struct diff diff = {.classes = {.heap = heap}};
    struct wal__numstat found;
    enum wal_status status;

    if (is_binary(before) || is_binary(after)) {
        *counts = (struct wal__numstat){.is_binary = true};
        return WAL_OK;
    }
    diff.sides[0].middle = before;
    diff.sides[1].middle = after;
    status = count_changed(&diff, is_minimal, &found);
    free_classes(&diff.classes);
    wal__heap_free(heap, diff.numbers);
    if (status == WAL_OK) {
        *counts = found;
    }
    return status;
}
