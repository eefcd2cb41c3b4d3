/*
 * patch.c - the difference between two texts (patch.h).
 *
 * The greedy algorithm of Myers, An O(ND) Difference Algorithm: for each number
 * of edits d and each diagonal k (a position in the first text minus one in the
 * second) it keeps how far one gets; the edits are read from those rows
 * backwards.
 */
#include "tools/shown/patch.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"

struct lines {
    struct wal_slice *items;
    size_t count;
    size_t capacity;
};

struct diff {
    struct lines a;
    struct lines b;
    bool *removed; /* of each line of a */
    bool *added;   /* of each line of b */
};

static void split(struct lines *lines, struct wal_slice text)
{
    const char *at = text.data;
    uint64_t left = text.size;

    while (left > 0) {
        const char *newline = memchr(at, '\n', (size_t)left);
        uint64_t size = newline == NULL ? left : (uint64_t)(newline - at) + 1;

        lines->items = cli_reserve(lines->items, lines->count, &lines->capacity,
                                   sizeof(lines->items[0]));
        lines->items[lines->count++] = (struct wal_slice){at, size};
        at += size;
        left -= size;
    }
}

static bool is_equal(const struct diff *diff, size_t a, size_t b)
{
    return cli_slice_equal(diff->a.items[a], diff->b.items[b]);
}

/* --- the edits ---------------------------------------------------------- */

/* A part of the two texts that begins and ends with a difference. */
struct middle {
    const struct diff *diff;
    size_t from;
    long a_count;
    long b_count;
    long *rows; /* row d: 2d + 1 positions, from diagonal -d to d */
};

static long *row_of(const struct middle *middle, long edits)
{
    return middle->rows + edits * edits;
}

/* The furthest position in the first text on a diagonal with `edits` edits. */
static long reach(const struct middle *middle, long edits, long diagonal)
{
    const long *row;
    long x = 0;

    if (edits > 0) {
        row = row_of(middle, edits - 1) + edits - 1; /* row[k]: diagonal k */
        if (diagonal == -edits ||
            (diagonal != edits && row[diagonal - 1] < row[diagonal + 1])) {
            x = row[diagonal + 1];
        } else {
            x = row[diagonal - 1] + 1;
        }
    }
    while (x < middle->a_count && x - diagonal < middle->b_count &&
           is_equal(middle->diff, middle->from + (size_t)x,
                    middle->from + (size_t)(x - diagonal))) {
        x++;
    }
    return x;
}

/* Finds the least number of edits; -1: more than SHOWN_PATCH_EDITS. */
static long search(struct middle *middle)
{
    size_t capacity = 0;

    for (long edits = 0; edits <= SHOWN_PATCH_EDITS; edits++) {
        size_t size = (size_t)((edits + 1) * (edits + 1));
        while (capacity < size) {
            middle->rows = cli_reserve(middle->rows, capacity, &capacity,
                                       sizeof(middle->rows[0]));
        }
        memset(row_of(middle, edits), 0,
               (size_t)(2 * edits + 1) * sizeof(middle->rows[0]));
        for (long k = -edits; k <= edits; k += 2) {
            long x = reach(middle, edits, k);
            row_of(middle, edits)[edits + k] = x;
            if (x >= middle->a_count && x - k >= middle->b_count) {
                return edits;
            }
        }
    }
    return -1;
}

/* Marks the lines that are removed and added, from the last edit on. */
static void mark(const struct middle *middle, const struct diff *diff,
                 long edits)
{
    long k = middle->a_count - middle->b_count;

    for (; edits > 0; edits--) {
        const long *row = row_of(middle, edits - 1) + edits - 1;
        bool is_added = k == -edits || (k != edits && row[k - 1] < row[k + 1]);
        long x = is_added ? row[k + 1] : row[k - 1];

        if (is_added) {
            k++;
            diff->added[middle->from + (size_t)(x - k)] = true;
        } else {
            k--;
            diff->removed[middle->from + (size_t)x] = true;
        }
    }
}

static void compare(struct diff *diff)
{
    size_t least =
        diff->a.count < diff->b.count ? diff->a.count : diff->b.count;
    size_t prefix = 0;
    size_t suffix = 0;
    struct middle middle = {.diff = diff};
    long edits;

    while (prefix < least && is_equal(diff, prefix, prefix)) {
        prefix++;
    }
    while (suffix < least - prefix && is_equal(diff, diff->a.count - suffix - 1,
                                               diff->b.count - suffix - 1)) {
        suffix++;
    }
    middle.from = prefix;
    middle.a_count = (long)(diff->a.count - prefix - suffix);
    middle.b_count = (long)(diff->b.count - prefix - suffix);
    edits = search(&middle);
    if (edits >= 0) {
        mark(&middle, diff, edits);
    } else {
        memset(diff->removed + prefix, true, (size_t)middle.a_count);
        memset(diff->added + prefix, true, (size_t)middle.b_count);
    }
    free(middle.rows);
}

/* --- the hunks ---------------------------------------------------------- */

static void put_line(FILE *file, char mark, struct wal_slice line)
{
    const char *text = line.data;

    putc(mark, file);
    fwrite(text, 1, (size_t)line.size, file);
    if (text[line.size - 1] != '\n') {
        fputs("\n\\ No newline at end of file\n", file);
    }
}

/* Positions in both texts, where the same lines follow. */
struct place {
    size_t a;
    size_t b;
};

static bool is_equal_at(const struct diff *diff, struct place at)
{
    return at.a < diff->a.count && at.b < diff->b.count &&
           !diff->removed[at.a] && !diff->added[at.b];
}

static bool is_end(const struct diff *diff, struct place at)
{
    return at.a == diff->a.count && at.b == diff->b.count;
}

/* Returns the end of a hunk: the place after the last difference that has no
 * more than twice the context before the next one. */
static struct place hunk_end(const struct diff *diff, struct place at)
{
    struct place end = at;
    size_t equal = 0;

    while (!is_end(diff, at) && equal <= 2 * (size_t)SHOWN_PATCH_CONTEXT) {
        if (is_equal_at(diff, at)) {
            at.a++;
            at.b++;
            equal++;
            continue;
        }
        equal = 0;
        if (at.a < diff->a.count && diff->removed[at.a]) {
            at.a++;
        } else {
            at.b++;
        }
        end = at;
    }
    for (int i = 0; i < SHOWN_PATCH_CONTEXT && is_equal_at(diff, end); i++) {
        end.a++;
        end.b++;
    }
    return end;
}

static void put_range(FILE *file, char mark, size_t from, size_t count)
{
    fprintf(file, "%c%zu,%zu", mark, count > 0 ? from + 1 : from, count);
}

static void put_hunk(FILE *file, const struct diff *diff, struct place from,
                     struct place end)
{
    fputs("@@ ", file);
    put_range(file, '-', from.a, end.a - from.a);
    putc(' ', file);
    put_range(file, '+', from.b, end.b - from.b);
    fputs(" @@\n", file);
    while (from.a < end.a || from.b < end.b) {
        if (from.a < end.a && diff->removed[from.a]) {
            put_line(file, '-', diff->a.items[from.a++]);
        } else if (from.b < end.b && diff->added[from.b]) {
            put_line(file, '+', diff->b.items[from.b++]);
        } else {
            put_line(file, ' ', diff->a.items[from.a++]);
            from.b++;
        }
    }
}

void shown_patch(FILE *file, struct wal_slice before, struct wal_slice after)
{
    struct diff diff = {.removed = NULL};
    struct place at = {0, 0};

    split(&diff.a, before);
    split(&diff.b, after);
    diff.removed = cli_alloc(diff.a.count + 1);
    diff.added = cli_alloc(diff.b.count + 1);
    compare(&diff);
    while (!is_end(&diff, at)) {
        struct place from = at;
        struct place end;

        if (is_equal_at(&diff, at)) {
            at.a++;
            at.b++;
            continue;
        }
        for (int i = 0; i < SHOWN_PATCH_CONTEXT && from.a > 0 && from.b > 0;
             i++) {
            from.a--;
            from.b--;
        }
        end = hunk_end(&diff, at);
        put_hunk(file, &diff, from, end);
        at = end;
    }
    free(diff.a.items);
    free(diff.b.items);
    free(diff.removed);
    free(diff.added);
}
