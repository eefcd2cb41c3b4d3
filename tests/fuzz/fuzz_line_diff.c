/*
 * fuzz_line_diff.c - any two contents.
 *
 * An input is the content before, a byte 0xff, and the content after. Checks that both ways of
 * counting keep the difference of the lines, that the least numbers are not more than git's, that
 * they are the same both ways round, and that equal contents have no changes.
 */
#include <string.h>

#include "engine/files/numstat.h"
#include "tests/fuzz/fuzz.h"

static uint64_t lines_of(struct wal__span content)
{
    uint64_t count = 0;

    for (size_t i = 0; i < content.size; i++) {
        count += content.data[i] == '\n' || i + 1 == content.size;
    }
    return count;
}

static void check_counts(struct wal__span before, struct wal__span after,
                         struct wal__numstat counts)
{
    check(counts.deletions <= lines_of(before));
    check(counts.insertions <= lines_of(after));
    check(lines_of(before) - counts.deletions == lines_of(after) - counts.insertions);
    check(!wal__span_equal(before, after) || counts.insertions + counts.deletions == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, 0xff, size) : NULL;
    struct wal__span before = {data, end != NULL ? (size_t)(end - data) : 0};
    struct wal__span after = {data, size};
    struct wal__numstat counts;
    struct wal__numstat least;
    struct wal__numstat back;

    if (end != NULL) {
        after.data = end + 1;
        after.size = size - before.size - 1;
    }
    check(wal__numstat_diff(&wal__heap_libc, before, after, false, &counts) == WAL_OK);
    check(wal__numstat_diff(&wal__heap_libc, before, after, true, &least) == WAL_OK);
    check(wal__numstat_diff(&wal__heap_libc, after, before, true, &back) == WAL_OK);
    check(counts.is_binary == least.is_binary);
    if (counts.is_binary) {
        check(counts.insertions + counts.deletions == 0);
        return 0;
    }
    check_counts(before, after, counts);
    check_counts(before, after, least);
    check(least.insertions <= counts.insertions);
    check(least.insertions == back.deletions);
    check(least.deletions == back.insertions);
    return 0;
}
