/*
 * test_line_diff.c - tests of engine/files/numstat.h. AGENTWAL_SEED sets the seed. What git says is
 * compared in tests/cli/convert/line_diff_git.py.
 */
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/files/numstat.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"

static uint32_t below(uint32_t limit)
{
    return (uint32_t)(test_random() >> 33) % limit;
}

/* Numbers -------------------------------------------------------------------*/

enum { COUNT_MAX = 700 };

/* The same by the table of all pairs of beginnings. */
static uint32_t model_common(struct wal__lines a, struct wal__lines b)
{
    static uint32_t rows[2][COUNT_MAX + 1];

    memset(rows, 0, sizeof(rows));
    for (uint32_t i = 0; i < a.count; i++) {
        const uint32_t *above = rows[i % 2];
        uint32_t *row = rows[(i + 1) % 2];

        for (uint32_t j = 0; j < b.count; j++) {
            uint32_t most = above[j + 1] > row[j] ? above[j + 1] : row[j];
            row[j + 1] = a.numbers[i] == b.numbers[j] ? above[j] + 1 : most;
        }
    }
    return rows[a.count % 2][b.count];
}

/* In blocks of exactly their size. */
static uint32_t common_of(struct wal__lines a, struct wal__lines b, uint32_t number_end)
{
    uint64_t *room = test_malloc(wal__lines_scratch_words(a.count, b.count, number_end) * 8);
    uint32_t common = wal__lines_lcs(a, b, number_end, room);

    test_free(room);
    return common;
}

static void assert_common(const uint32_t *a, uint32_t a_count, const uint32_t *b, uint32_t b_count,
                          uint32_t number_end)
{
    uint32_t a_copy[COUNT_MAX];
    uint32_t b_copy[COUNT_MAX];
    struct wal__lines x = {a_copy, a_count};
    struct wal__lines y = {b_copy, b_count};

    memcpy(a_copy, a, a_count * sizeof(*a));
    memcpy(b_copy, b, b_count * sizeof(*b));
    uint32_t expected = model_common(x, y);
    assert_int_equal(common_of(x, y, number_end), expected);
}

static void random_numbers(uint32_t *numbers, uint32_t count, uint32_t end)
{
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = below(end);
    }
}

TEST(line_diff__common_lines_of_random_texts)
{
    uint32_t a[COUNT_MAX];
    uint32_t b[COUNT_MAX];

    for (int i = 0; i < 3000; i++) {
        uint32_t most = i % 20 == 0 ? COUNT_MAX : 40;
        uint32_t end = 1 + below(i % 3 == 0 ? 4 : 2 * most);
        uint32_t a_count = below(most + 1);
        uint32_t b_count = below(most + 1);

        random_numbers(a, a_count, end);
        random_numbers(b, b_count, end);
        assert_common(a, a_count, b, b_count, end);
    }
}

TEST(line_diff__common_lines_after_edits)
{
    uint32_t a[COUNT_MAX];
    uint32_t b[COUNT_MAX];

    for (int i = 0; i < 200; i++) {
        uint32_t end = 1 + below(COUNT_MAX);
        uint32_t cut = below(COUNT_MAX);

        random_numbers(a, COUNT_MAX, end);
        memcpy(b, a + cut, (COUNT_MAX - cut) * sizeof(*a));
        memcpy(b + COUNT_MAX - cut, a, cut * sizeof(*a));
        for (uint32_t k = below(20); k > 0; k--) {
            b[below(COUNT_MAX)] = below(end);
        }
        assert_common(a, COUNT_MAX, b, COUNT_MAX - below(50), end);
    }
}

TEST(line_diff__reversed_text_has_one_common_line)
{
    enum { COUNT = 20000 };
    uint32_t *a = test_malloc(COUNT * sizeof(*a));
    uint32_t *b = test_malloc(COUNT * sizeof(*b));

    for (uint32_t i = 0; i < COUNT; i++) {
        a[i] = i;
        b[COUNT - 1 - i] = i;
    }
    assert_int_equal(common_of((struct wal__lines){a, COUNT}, (struct wal__lines){b, COUNT}, COUNT),
                     1);
    test_free(a);
    test_free(b);
}

/* A permutation and the numbers in order have the longest rise in common. */
static uint32_t model_rise(const uint32_t *numbers, uint32_t count)
{
    uint32_t *ends = test_malloc(count * sizeof(*ends));
    uint32_t longest = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t low = 0;
        uint32_t high = longest;

        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (ends[middle] < numbers[i]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        ends[low] = numbers[i];
        longest += low == longest;
    }
    test_free(ends);
    return longest;
}

TEST(line_diff__shuffled_text_longest_increasing_subsequence)
{
    enum { COUNT = 20000 };
    uint32_t *a = test_malloc(COUNT * sizeof(*a));
    uint32_t *b = test_malloc(COUNT * sizeof(*b));

    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t at = below(i + 1);

        a[i] = i;
        b[i] = i;
        b[i] = b[at];
        b[at] = i;
    }
    uint32_t expected = model_rise(b, COUNT);
    assert_int_equal(common_of((struct wal__lines){a, COUNT}, (struct wal__lines){b, COUNT}, COUNT),
                     expected);
    test_free(a);
    test_free(b);
}

/* git's rule ----------------------------------------------------------------*/

TEST(line_diff__frequent_from_the_root_of_the_lines)
{
    assert_int_equal(wal__line_kind(0, 5), WAL__LINE_UNMATCHED);
    assert_int_equal(wal__line_kind(1, 1), WAL__LINE_MATCHED);
    assert_int_equal(wal__line_kind(2, 3), WAL__LINE_FREQUENT);
    assert_int_equal(wal__line_kind(3, 4), WAL__LINE_MATCHED);
    assert_int_equal(wal__line_kind(4, 15), WAL__LINE_FREQUENT);
    assert_int_equal(wal__line_kind(31, 256), WAL__LINE_MATCHED);
    assert_int_equal(wal__line_kind(32, 256), WAL__LINE_FREQUENT);
    assert_int_equal(wal__line_kind(1023, WAL__LINES_MAX), WAL__LINE_MATCHED);
    assert_int_equal(wal__line_kind(1024, WAL__LINES_MAX), WAL__LINE_FREQUENT);
}

/* Sifts lines whose kinds are letters (u, m, f) and numbers their places; says what is left in
 * letters. */
static void assert_sifted(const char *letters, const char *expected)
{
    uint32_t numbers[COUNT_MAX];
    uint8_t kinds[COUNT_MAX];
    char left[COUNT_MAX + 1];
    struct wal__lines lines = {numbers, (uint32_t)strlen(letters)};

    for (uint32_t i = 0; i < lines.count; i++) {
        numbers[i] = i;
        kinds[i] = letters[i] == 'u'   ? WAL__LINE_UNMATCHED
                   : letters[i] == 'm' ? WAL__LINE_MATCHED
                                       : WAL__LINE_FREQUENT;
    }
    uint32_t kept = wal__lines_filter(lines, kinds);
    for (uint32_t i = 0; i < kept; i++) {
        left[i] = letters[numbers[i]];
    }
    left[kept] = '\0';
    assert_string_equal(left, expected);
}

TEST(line_diff__frequent_line_among_unmatched_is_discarded)
{
    assert_sifted("", "");
    assert_sifted("umu", "m");
    assert_sifted("ufu", "f");
    assert_sifted("uuufuuu", "f");
    assert_sifted("uuufuuuu", "");
    assert_sifted("uuuufuuu", "");
    assert_sifted("muuuufuuum", "mm");
    assert_sifted("uuuuuuuf", "f");
    assert_sifted("fuuuuuuu", "f");
    assert_sifted("uuuuuuuufm", "fm");
    assert_sifted("uuuufuuufuuuu", "");
    assert_sifted("uuuffuuuuu", "ff");
    assert_sifted("uuuuffuuuuuu", "");
    assert_sifted("uuumfuuuuuuu", "mf");
}

/* Unmatched lines, frequent ones, unmatched ones: how many are left. */
static uint32_t sifted(uint32_t before, uint32_t frequent, uint32_t after)
{
    uint32_t numbers[COUNT_MAX] = {0};
    uint8_t kinds[COUNT_MAX];
    struct wal__lines lines = {numbers, before + frequent + after};

    memset(kinds, WAL__LINE_UNMATCHED, sizeof(kinds));
    memset(kinds + before, WAL__LINE_FREQUENT, frequent);
    return wal__lines_filter(lines, kinds);
}

TEST(line_diff__only_near_lines_discard_a_frequent_one)
{
    /* A line sees 100 on either side: here 48 frequent, 152 unmatched, and itself twice. 4 x 50 is
     * less than 202. */
    assert_int_equal(sifted(200, 49, 200), 0);
    assert_int_equal(sifted(200, 50, 200), 50);
    /* The first one sees 32 frequent, 102 unmatched: 4 x 34 is 34 + 102. */
    assert_int_equal(sifted(200, 33, 2), 33);
    assert_int_equal(sifted(200, 33, 3), 32);
}

/* Contents ------------------------------------------------------------------*/

static struct wal__span span(const char *text)
{
    return (struct wal__span){(const uint8_t *)text, strlen(text)};
}

static void assert_diff(const char *before, const char *after, uint64_t insertions,
                        uint64_t deletions)
{
    struct wal__numstat counts;

    assert_ok(wal__numstat_diff(&wal__heap_libc, span(before), span(after), false, &counts));
    assert_int_equal(counts.insertions, insertions);
    assert_int_equal(counts.deletions, deletions);
    assert_false(counts.is_binary);
    assert_ok(wal__numstat_diff(&wal__heap_libc, span(after), span(before), false, &counts));
    assert_int_equal(counts.insertions, deletions);
    assert_int_equal(counts.deletions, insertions);
}

TEST(line_diff__small_contents)
{
    assert_diff("", "", 0, 0);
    assert_diff("", "a\n", 1, 0);
    assert_diff("", "\n\n\n", 3, 0);
    assert_diff("", "a\nb", 2, 0);
    assert_diff("a", "a\n", 1, 1);
    assert_diff("a\nb", "a\nb\n", 1, 1);
    assert_diff("a\nb", "a\nbc", 1, 1);
    assert_diff("a\nb", "a\nb", 0, 0);
    assert_diff("a\nb\n", "b\n", 0, 1);
    assert_diff("xb\n", "b\n", 1, 1);
    assert_diff("a\nb\n", "b\na\n", 1, 1);
    assert_diff("a\nb\nc\n", "a\nx\nc\n", 1, 1);
    assert_diff("a\nb\n", "a\r\nb\r\n", 2, 2);
    assert_diff("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", 2, 3);
    assert_diff("a\na\na\n", "a\na\na\na\na\n", 2, 0);
    assert_diff("same\nend", "other\nend", 1, 1);
    assert_diff("end", "other\nend", 1, 0);
}

TEST(line_diff__absent_content_is_null)
{
    struct wal__span absent = {NULL, 0};
    struct wal__numstat counts;

    assert_ok(wal__numstat_diff(&wal__heap_libc, absent, span("a\nb\n"), false, &counts));
    assert_int_equal(counts.insertions, 2);
    assert_int_equal(counts.deletions, 0);
    assert_ok(wal__numstat_diff(&wal__heap_libc, absent, absent, false, &counts));
    assert_int_equal(counts.insertions, 0);
}

static void assert_binary(struct wal__span before, struct wal__span after, bool is_binary)
{
    struct wal__numstat counts = {7, 7, !is_binary};

    assert_ok(wal__numstat_diff(&wal__heap_libc, before, after, false, &counts));
    assert_int_equal(counts.is_binary, is_binary);
    if (is_binary) {
        assert_int_equal(counts.insertions, 0);
        assert_int_equal(counts.deletions, 0);
    }
}

TEST(line_diff__zero_byte_among_the_first_is_binary)
{
    uint8_t bytes[WAL__BINARY_PROBE_SIZE + 10];
    struct wal__span content = {bytes, sizeof(bytes)};

    memset(bytes, 'a', sizeof(bytes));
    bytes[WAL__BINARY_PROBE_SIZE] = 0;
    assert_binary(content, span("a\n"), false);
    assert_binary(span("a\n"), content, false);
    bytes[WAL__BINARY_PROBE_SIZE - 1] = 0;
    assert_binary(content, span("a\n"), true);
    assert_binary(span("a\n"), content, true);
    assert_binary(content, (struct wal__span){NULL, 0}, true);
    content.size = WAL__BINARY_PROBE_SIZE - 1;
    assert_binary(content, span("a\n"), false);
}

TEST(line_diff__huge_content_is_binary_unread)
{
    struct wal__span huge = {(const uint8_t *)"a", WAL__DIFF_SIZE_MAX + 1};

    assert_binary(huge, span("a\n"), true);
    assert_binary(span("a\n"), huge, true);
}

TEST(line_diff__long_lines_are_compared_to_their_end)
{
    enum { SIZE = 300000 };
    char *before = test_malloc(2 * SIZE + 1);
    char *after = test_malloc(2 * SIZE + 1);

    memset(before, 'x', 2 * SIZE);
    before[SIZE - 1] = '\n';
    before[2 * SIZE - 1] = '\n';
    before[2 * SIZE] = '\0';
    memcpy(after, before, 2 * SIZE + 1);
    assert_diff(before, after, 0, 0);
    after[SIZE - 2] = 'y';
    assert_diff(before, after, 1, 1);
    after[SIZE] = 'y';
    assert_diff(before, after, 2, 2);
    test_free(before);
    test_free(after);
}

static void assert_least(const char *before, const char *after, uint64_t insertions,
                         uint64_t deletions)
{
    struct wal__numstat least;

    assert_ok(wal__numstat_diff(&wal__heap_libc, span(before), span(after), true, &least));
    assert_int_equal(least.insertions, insertions);
    assert_int_equal(least.deletions, deletions);
}

#define MANY "a\nb\nc\nd\n}\ne\nf\ng\nh\nend\n"
#define FEW  "x\ny\n}\nz\nend\n"

/* A frequent line that git takes for changed, though it could stay. */
TEST(line_diff__minimum_may_be_below_gits_count)
{
    assert_least("}\n}\n}\n" MANY "}\n}\n", "}\n}\n}\n" FEW "}\n}\n", 3, 8);
    assert_diff("}\n}\n}\n" MANY "}\n}\n", "}\n}\n}\n" FEW "}\n}\n", 4, 9);
}

TEST(line_diff__common_ends_count_towards_frequency)
{
    assert_diff(MANY "}\n}\n}\n", FEW "}\n}\n}\n", 4, 9);
    assert_diff("}\n}\n}\n" MANY, "}\n}\n}\n" FEW, 4, 9);
    assert_diff(MANY "}\n}\n", FEW "}\n}\n", 3, 8);
    /* A longer text: four matches are not frequent any more. */
    assert_diff(MANY "1\n2\n3\n4\n5\n6\n}\n}\n}\n", FEW "1\n2\n3\n4\n5\n6\n}\n}\n}\n", 3, 8);
}

TEST(line_diff__no_memory_changes_nothing)
{
    char before[3000];
    char after[3000];
    struct wal__numstat counts = {7, 8, true};
    struct faulty_heap faulty;
    enum wal_status status = WAL_ENOMEM;
    uint64_t nth = 0;

    for (size_t i = 0, at = 0; i < 200; i++, at += 9) {
        snprintf(before + at, sizeof(before) - at, "line %03zu\n", i);
        snprintf(after + at, sizeof(after) - at, "line %03zu\n", i * 7 % 300);
    }
    faulty_heap_init(&faulty, &wal__heap_libc);
    while (status == WAL_ENOMEM) {
        assert_int_equal(counts.insertions, 7);
        assert_int_equal(counts.deletions, 8);
        assert_true(counts.is_binary);
        faulty_heap_fail(&faulty, ++nth, false);
        status = wal__numstat_diff(&faulty.heap, span(before), span(after), false, &counts);
        assert_int_equal(faulty.live, 0);
    }
    assert_ok(status);
    assert_false(counts.is_binary);
    assert_true(nth > 8);
}
