/*
 * test_directory.c - tests of paths that name one directory (engine/base/directory.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/directory.h"
#include "tests/lib/test.h"

static struct wal_slice slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

TEST(directory__normal_forms)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"/", "/"},
        {"//", "/"},
        {"/a", "/a"},
        {"/a/", "/a"},
        {"//a///b//", "/a/b"},
        {"a/./b", "a/./b"},
        {"/a\\b/", "/a\\b"},
        {"c:\\w\\\\p\\", "C:/w/p"},
        {"C:/w/p", "C:/w/p"},
        {"c:", "C:"},
        {"c:\\", "C:"},
        {"c:w\\p", "c:w\\p"},
        {"1:\\w", "1:\\w"},
    };
    char normal[WAL__DIRECTORY_SIZE];
    char path[WAL__DIRECTORY_SIZE + 10];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        wal__directory_normalise(slice(cases[i][0]), normal);
        assert_string_equal(normal, cases[i][1]);
    }
    memset(path, 'a', sizeof(path));
    wal__directory_normalise((struct wal_slice){path, sizeof(path)}, normal);
    assert_int_equal(strlen(normal), WAL__DIRECTORY_SIZE - 1);
    wal__directory_normalise((struct wal_slice){NULL, 0}, normal);
    assert_string_equal(normal, "");
}

TEST(directory__link_names_what_it_leads_to)
{
    char root[] = "/tmp/directory-XXXXXX";
    char real[64];
    char link[64];
    char loop[64];
    struct wal__directory directory;

    assert_non_null(mkdtemp(root));
    (void)snprintf(real, sizeof(real), "%s/real", root);
    (void)snprintf(link, sizeof(link), "%s/link", root);
    (void)snprintf(loop, sizeof(loop), "%s/loop", root);
    assert_int_equal(mkdir(real, 0700), 0);
    assert_int_equal(symlink("real", link), 0);
    assert_int_equal(symlink("loop", loop), 0);
    for (unsigned i = 0; i < 2; i++) {
        wal__directory_init(&directory, slice(i == 0 ? real : link));
        assert_true(wal__directory_is(&directory, slice(real)));
        assert_true(wal__directory_is(&directory, slice(link)));
        assert_false(wal__directory_is(&directory, slice(root)));
        assert_false(wal__directory_is(&directory, slice(loop)));
        assert_false(wal__directory_is(&directory, slice("")));
        assert_false(wal__directory_is(&directory, slice("link")));
    }
    wal__directory_init(&directory, slice(loop));
    assert_true(wal__directory_is(&directory, slice(loop)));
    assert_false(wal__directory_is(&directory, slice("/none")));
    assert_int_equal(unlink(loop), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(real), 0);
    assert_int_equal(rmdir(root), 0);
}
