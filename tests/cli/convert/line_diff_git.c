/*
 * line_diff_git.c - counts the changed lines of the pairs of contents that come on standard input,
 * for line_diff_git.py.
 *
 * A pair is a line with the two sizes, then the two contents. For each it prints what git would
 * say, and the least numbers that there are; "-" for binary contents. One thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/files/numstat.h"

static void fail(const char *what)
{
    fprintf(stderr, "line_diff_git: %s\n", what);
    exit(EXIT_FAILURE);
}

/* In a block of exactly its size. */
static struct wal__span read_content(size_t size)
{
    uint8_t *data = size == 0 ? NULL : malloc(size);

    if (size != 0 && data == NULL) {
        fail("no memory");
    }
    if (size != 0 && fread(data, 1, size, stdin) != size) {
        fail("a content ends early");
    }
    return (struct wal__span){data, size};
}

static void print(const struct wal__numstat *counts)
{
    if (counts->is_binary) {
        printf("- -");
    } else {
        printf("%" PRIu64 " %" PRIu64, counts->insertions, counts->deletions);
    }
}

int main(void)
{
    size_t sizes[2];

    while (scanf("%zu %zu", &sizes[0], &sizes[1]) == 2) {
        struct wal__numstat counts;
        struct wal__numstat least;
        struct wal__span before;
        struct wal__span after;

        (void)getchar();
        before = read_content(sizes[0]);
        after = read_content(sizes[1]);
        if (wal__numstat_diff(&wal__heap_libc, before, after, false, &counts) < 0 ||
            wal__numstat_diff(&wal__heap_libc, before, after, true, &least) < 0) {
            fail("no memory");
        }
        print(&counts);
        putchar(' ');
        print(&least);
        putchar('\n');
        free((void *)before.data);
        free((void *)after.data);
    }
    return EXIT_SUCCESS;
}
