/*
 * test_links.c - checkpoints of paths that lead through symbolic links (SPEC.md 5.13): recorded
 * where they lead to below the root, once, and refused elsewhere, whatever is replaced meanwhile.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/io.h"
#include "engine/base/worktree.h"
#include "engine/session/store.h"
#include "tests/lib/kit/checkpoint_kit.h"

static void make_link(const struct kit_work *work, const char *path, const char *target)
{
    assert_int_equal(symlink(target, kit_path(work, path)), 0);
}

/* The directories "d" and "d/e" with a file each, and next to the root one that is not below it. */
static void make_tree(const struct kit_work *work)
{
    kit_write(work, "d/a", "1");
    kit_write(work, "d/e/b", "2");
    kit_write(work, "../outside/secret", "secret");
}

static void assert_recorded(struct kit_work *work, const char *paths, const char *files)
{
    kit_checkpoint(work, "c", paths);
    assert_string_equal(kit_files(work, work->session, "c"), files);
    assert_ok(wal_checkpoint_delete(work->session, kit_text("c"), NULL));
}

static void refuse(struct kit_work *work, const char *paths, const char *file)
{
    struct wal_error error = KIT_ERROR;

    assert_int_equal(kit_try_checkpoint(work, "c", paths, &error), WAL_EOUTSIDE);
    assert_string_equal(error.file, file);
    assert_string_equal(kit_checkpoints(work->session), "");
}

KIT_TEST(links__path_is_recorded_where_it_leads_to)
{
    struct kit_work work = kit_work_begin(0);
    char target[8192];

    make_tree(&work);
    make_link(&work, "in", "d");
    make_link(&work, "in2", "./in//.");
    make_link(&work, "d/up", "../in2");
    make_link(&work, "d/e/self", ".");
    make_link(&work, "last", "d/a");
    make_link(&work, "void", "d/none");
    snprintf(target, sizeof(target), "%s//d/e/", work.root);
    make_link(&work, "absolute", target);
    snprintf(target, sizeof(target), "%s", work.root);
    make_link(&work, "d/root", target);
    assert_recorded(&work, "in/a", "d/a=1");
    assert_recorded(&work, "in2/e/b", "d/e/b=2");
    assert_recorded(&work, "d/up/up/e/self/self/b", "d/e/b=2");
    assert_recorded(&work, "absolute/b absolute/c", "d/e/b=2 d/e/c-");
    assert_recorded(&work, "d/root/d/a", "d/a=1");
    assert_recorded(&work, "void/x", "d/none/x-");
    assert_recorded(&work, "last", "last->d/a");
    assert_recorded(&work, "in/up", "d/up->../in2");
    snprintf(target, sizeof(target), "%s/in/a", work.root);
    assert_recorded(&work, target, "d/a=1");
}

KIT_TEST(links__file_with_two_names_is_recorded_once)
{
    struct kit_work work = kit_work_begin(0);

    make_tree(&work);
    make_link(&work, "in", "d");
    make_link(&work, "z", "in");
    assert_recorded(&work, "z/a in/a d/a b in/e/b", "b- d/a=1 d/e/b=2");
    kit_checkpoint(&work, "c", "in/a");
    kit_write(&work, "d/a", "changed");
    assert_int_equal(kit_checkpoint(&work, "c", "z/a in/b").files, 2);
    assert_string_equal(kit_files(&work, work.session, "c"), "d/a=1 d/b-");
}

/* The link is a file of the request: the path below it is absent, for a rewind to either kind. */
KIT_TEST(links__named_link_leads_nowhere)
{
    struct kit_work work = kit_work_begin(0);

    make_tree(&work);
    make_link(&work, "in", "d");
    make_link(&work, "z", "in");
    assert_recorded(&work, "in in/a", "in->d in/a-");
    assert_recorded(&work, "in z/a", "d/a=1 in->d");
}

KIT_TEST(links__out_of_the_root_are_refused)
{
    struct kit_work work = kit_work_begin(0);
    char target[8192];

    make_tree(&work);
    make_link(&work, "etc", "/etc");
    make_link(&work, "up", "../outside");
    make_link(&work, "again", "../work/d");
    make_link(&work, "d/top", "../..");
    make_link(&work, "one", "two");
    make_link(&work, "two", "one");
    snprintf(target, sizeof(target), "%s-else", work.root);
    make_link(&work, "almost", target);
    make_link(&work, "through", "up/../work/d");
    refuse(&work, "d/a etc/passwd", "etc/passwd");
    refuse(&work, "up/secret", "up/secret");
    refuse(&work, "again/a", "again/a");
    refuse(&work, "d/top/outside/secret", "d/top/outside/secret");
    refuse(&work, "one/a", "one/a");
    refuse(&work, "almost/a", "almost/a");
    refuse(&work, "through/a", "through/a");
}

/* --- replaced meanwhile -------------------------------------------------- */

static const struct kit_work *replaced_in;

/* The directory "d" becomes a link that leads elsewhere; once. */
static void replace_directory(void)
{
    char from[8192];

    snprintf(from, sizeof(from), "%s", kit_path(replaced_in, "d"));
    if (access(kit_path(replaced_in, "moved"), F_OK) != 0) {
        assert_int_equal(rename(from, kit_path(replaced_in, "moved")), 0);
        make_link(replaced_in, "d", "../outside");
    }
}

static enum wal_status replace_and_read(void *ctx, struct wal__worktree *tree, const char *path,
                                        void *data, size_t size, size_t *got, int *sys_errno)
{
    replace_directory();
    return wal__worktree_posix.read_link(ctx, tree, path, data, size, got, sys_errno);
}

static enum wal_status stat_and_replace(void *ctx, struct wal__worktree *tree, const char *path,
                                        struct wal__worktree_stat *out, int *sys_errno)
{
    enum wal_status status = wal__worktree_posix.stat(ctx, tree, path, out, sys_errno);

    if (strcmp(path, "d") == 0) {
        replace_directory();
    }
    return status;
}

KIT_TEST(links__directory_that_is_replaced_meanwhile_leads_nowhere)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE};

    for (int when = 0; when < 2; when++) {
        struct kit_work work = kit_work_begin(0);
        struct wal__worktree_io tree = wal__worktree_posix;
        struct wal__io io = wal__io_posix;

        kit_work_end(&work);
        tree.read_link = when == 0 ? replace_and_read : tree.read_link;
        tree.stat = when == 1 ? stat_and_replace : tree.stat;
        io.worktree = &tree;
        assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &work.store, NULL));
        work.session = kit_session(work.store, "s");
        kit_write(&work, "../outside/secret", "secret");
        kit_write(&work, "d/secret", "mine");
        make_link(&work, "in", "d");
        replaced_in = &work;
        refuse(&work, "in/secret", when == 0 ? "in/secret" : "d/secret");
        assert_int_equal(access(kit_path(&work, "moved/secret"), F_OK), 0);
        kit_work_end(&work);
        assert_int_equal(system("rm -r store work outside"), 0);
    }
}
