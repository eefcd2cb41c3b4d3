/*
 * test_walk.c - the walk visits what is below a path, folders first and in the order of names,
 * follows the links that the caller lets it follow, and reports what it cannot read
 * (convert/import/walk.h).
 */
#include "convert/import/walk.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/faulty_heap.h"

#define KINDS "DFLO!" /* of enum wal__walk_kind */

static struct faulty_heap faulty;
static char seen[4096];
static const char *skipped;
static const char *followed;
static const char *removed; /* when it is visited */

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static int make_tree(void **state)
{
    (void)state;
    assert_int_equal(system("rm -rf tree along nowhere"), 0);
    assert_int_equal(mkdir("tree", 0700) | mkdir("tree/b", 0700) | mkdir("tree/b/c", 0700) |
                         mkdir("tree/b/c/d", 0700) | mkdir("tree/empty", 0700),
                     0);
    make_file("tree/a");
    make_file("tree/b.txt");
    make_file("tree/b/c/d/deep");
    assert_int_equal(mkfifo("tree/pipe", 0600), 0);
    assert_int_equal(symlink("b", "tree/link") | symlink("..", "tree/b/up") |
                         symlink("tree", "along") | symlink("missing", "nowhere"),
                     0);
    skipped = followed = removed = "-";
    faulty_heap_init(&faulty, &wal__heap_libc);
    return 0;
}

static int remove_tree(void **state)
{
    (void)state;
    assert_int_equal(atomic_load(&faulty.live), 0);
    return system("rm -rf tree along nowhere");
}

/* Returns the entries as "KIND PATH DEPTH;", or NULL when memory ran out. */
static const char *walked(const char *path, bool follows, bool folders_only)
{
    struct wal__walk walk = {
        .heap = &faulty.heap, .argument = path, .follows = follows, .folders_only = folders_only};
    struct wal__walk_entry *entry = NULL;
    enum wal_status status;
    size_t size = 0;

    seen[0] = '\0';
    while ((status = wal__walk_next(&walk, &entry)) == WAL_OK && entry != NULL) {
        const char *name = strrchr(entry->path, '/');

        size += (size_t)snprintf(seen + size, sizeof(seen) - size, "%c %s %zu;", KINDS[entry->kind],
                                 entry->path, entry->depth);
        assert_true(size < sizeof(seen));
        assert_string_equal(entry->name, name != NULL ? name + 1 : entry->path);
        assert_int_equal(entry->parent != NULL ? entry->parent->depth + 1 : 0, entry->depth);
        if (entry->kind == WAL__WALK_FOLDER && strcmp(entry->name, removed) == 0) {
            assert_int_equal(rmdir(entry->path), 0);
        }
        entry->is_skipped = strcmp(entry->name, skipped) == 0;
        entry->is_followed = strcmp(entry->name, followed) == 0;
    }
    wal__walk_deinit(&walk);
    assert_true(status == WAL_OK || status == WAL_ENOMEM);
    return status == WAL_OK ? seen : NULL;
}

TEST_WITH(walk__visits_folders_first_and_in_the_order_of_names, make_tree, remove_tree)
{
    assert_string_equal(walked("tree", true, false),
                        "D tree 0;F tree/a 1;D tree/b 1;D tree/b/c 2;D tree/b/c/d 3;"
                        "F tree/b/c/d/deep 4;L tree/b/up 2;F tree/b.txt 1;D tree/empty 1;"
                        "L tree/link 1;O tree/pipe 1;");
    assert_string_equal(walked("tree/b/c/", true, false),
                        "D tree/b/c/ 0;D tree/b/c/d 1;F tree/b/c/d/deep 2;");
    assert_string_equal(walked("tree", true, true),
                        "D tree 0;D tree/b 1;D tree/b/c 2;D tree/b/c/d 3;D tree/empty 1;");
}

TEST_WITH(walk__leaves_out_what_the_caller_skips, make_tree, remove_tree)
{
    skipped = "b";
    assert_string_equal(walked("tree", true, false),
                        "D tree 0;F tree/a 1;D tree/b 1;F tree/b.txt 1;D tree/empty 1;"
                        "L tree/link 1;O tree/pipe 1;");
}

TEST_WITH(walk__follows_a_link_but_not_into_itself, make_tree, remove_tree)
{
    skipped = "c";
    followed = "link";
    assert_string_equal(walked("tree", true, false),
                        "D tree 0;F tree/a 1;D tree/b 1;D tree/b/c 2;L tree/b/up 2;F tree/b.txt 1;"
                        "D tree/empty 1;L tree/link 1;D tree/link 1;D tree/link/c 2;"
                        "L tree/link/up 2;O tree/pipe 1;");
    followed = "up";
    assert_string_equal(walked("tree", true, false),
                        "D tree 0;F tree/a 1;D tree/b 1;D tree/b/c 2;L tree/b/up 2;O tree/b/up 2;"
                        "F tree/b.txt 1;D tree/empty 1;L tree/link 1;O tree/pipe 1;");
}

TEST_WITH(walk__begins_at_a_link_where_that_is_asked, make_tree, remove_tree)
{
    skipped = "b";
    assert_string_equal(walked("along", false, false), "L along 0;");
    assert_string_equal(walked("along", true, true), "D along 0;D along/b 1;D along/empty 1;");
    assert_string_equal(walked("nowhere", true, false), "L nowhere 0;");
    followed = "missing";
    assert_int_equal(symlink("nowhere", "tree/missing"), 0);
    assert_non_null(strstr(walked("tree", true, false), "L tree/missing 1;! tree/missing 1;O"));
}

TEST_WITH(walk__reports_what_it_cannot_read, make_tree, remove_tree)
{
    assert_string_equal(walked("tree/none", true, false), "! tree/none 0;");
    removed = "empty";
    assert_non_null(strstr(walked("tree", true, false), "D tree/empty 1;! tree/empty 1;L tree/l"));
}

TEST_WITH(walk__ends_without_memory, make_tree, remove_tree)
{
    uint64_t nth = 1;

    for (faulty_heap_fail(&faulty, nth, true); walked("tree", true, false) == NULL;
         faulty_heap_fail(&faulty, nth, true)) {
        assert_int_equal(atomic_load(&faulty.live), 0);
        nth++;
    }
    assert_true(nth > 8);
    faulty_heap_fail(&faulty, 0, false);
}
