/*
 * tree_cases.h - a root of tree.h under test: what is to be there, every call on a path, and tests
 * that hold for every table.
 */
#ifndef AGENTWAL_TESTS_LIB_TREE_CASES_H
#define AGENTWAL_TESTS_LIB_TREE_CASES_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/worktree.h"
#include "tests/lib/test.h"

/* A table, and what a test needs that is not in it. Paths are below root. */
struct tree_backend {
    const struct wal__worktree_io *io;
    const char *root; /* empty; next to it is the file "outside" */
    void (*make_pipe)(const char *path);
    void (*set_mode)(const char *path, uint32_t mode); /* of a directory */
    /* Whether a process that is no superuser and owns nothing yet makes the calls from now on. */
    void (*drop)(bool dropped);
    /* The first bytes of "outside", to detect writes to it. */
    void (*read_outside)(char out[8]);
};

/* Sets the world, opens its root, and closes it again: around each test. */
void tree_case_set_up(const struct tree_backend *used);
void tree_case_tear_down(void);

const struct tree_backend *tree_case_backend(void);
/* The root that is open; another one in its place, and what was there. */
struct wal__worktree *tree_case_root(void);
struct wal__worktree *tree_case_swap_root(struct wal__worktree *other);

void tree_case_put(const char *path, const char *content);
void tree_case_directory(const char *path);
void tree_case_link(const char *path, const char *target);
struct wal__worktree_stat tree_case_stat(const char *path);
void tree_case_assert_content(const char *path, const char *content);
/* What "outside" holds is as it was. */
void tree_case_assert_outside(void);

/* The calls on one path, each of which may fail. Renames go to "renamed", and from a file "here"
 * that they make. Each sees to it that nothing but the errno is put out when it fails. */
typedef enum wal_status tree_call(const char *path, int *sys_errno);

tree_call tree_do_open, tree_do_create, tree_do_read_link, tree_do_make_link, tree_do_rename_to,
    tree_do_rename_from, tree_do_may_replace, tree_do_unlink, tree_do_stat, tree_do_make_directory,
    tree_do_remove_directory, tree_do_sync_directory;

enum { TREE_CALLS = 12 };

extern tree_call *const tree_calls[TREE_CALLS];

/* The call answers this and an errno; or all of them. */
void tree_assert_fails(tree_call *made, const char *path, enum wal_status status);
void tree_assert_all_fail(const char *path, enum wal_status status);

/* Runs the tests, each between enter, which calls tree_case_set_up, and leave, which calls
 * tree_case_tear_down. How many failed. */
int tree_cases_run(const char *group, CMFixtureFunction enter, CMFixtureFunction leave);

#endif
