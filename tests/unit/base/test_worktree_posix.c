/*
 * test_worktree_posix.c - tests of engine/io/tree_posix on the real system: the cases of every
 * table (tree_cases.h), with openat2(2) and without, and those of these two alone. Every test has a
 * separate directory with the root "tree".
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "tests/lib/tree_cases.h"

static const struct wal__worktree_io *const io = &wal__worktree_posix;

/* ------------------------------------------- in the C library's place --- */

/* What file systems and owners may say, and not wherever the tests run. */
static uint64_t named_attributes;  /* of a name that is asked for */
static uint64_t parent_attributes; /* of a directory */
static uint64_t mount_flags;
static bool foreign_sticky; /* all is another user's, sticky */

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int statx(int directory, const char *restrict path, int flags, unsigned int mask,
          struct statx *restrict out)
{
    bool is_parent = strcmp(path, ".") == 0;

    if (syscall(SYS_statx, directory, path, flags, mask, out) != 0) {
        return -1;
    }
    out->stx_attributes |= is_parent ? parent_attributes : named_attributes;
    if (foreign_sticky) {
        out->stx_uid = 12345;
        out->stx_mode |= is_parent ? S_ISVTX : 0;
    }
    return 0;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int fstatvfs(int fd, struct statvfs *out)
{
    (void)fd;
    memset(out, 0, sizeof(*out));
    out->f_flag = mount_flags;
    return 0;
}

/* ------------------------------------------------------------ set-up --- */

struct place {
    char path[PATH_MAX - 32];
    char root[PATH_MAX];
    int fd; /* of the root's parent directory */
};

static struct place place;

static void below(char out[PATH_MAX + 512], const char *path)
{
    (void)snprintf(out, PATH_MAX + 512, "%s/%s", place.root, path);
}

static void make_pipe(const char *path)
{
    char whole[PATH_MAX + 512];

    below(whole, path);
    assert_int_equal(mkfifo(whole, 0600), 0);
}

static void set_mode(const char *path, uint32_t mode)
{
    char whole[PATH_MAX + 512];

    below(whole, path);
    assert_int_equal(chmod(whole, mode), 0);
}

/* The superuser becomes the user nobody; other users lack the permissions already. */
static void drop(bool dropped)
{
    static bool was_superuser;

    if (dropped && geteuid() == 0) {
        was_superuser = true;
        assert_int_equal(seteuid(65534), 0);
    } else if (!dropped && was_superuser) {
        was_superuser = false;
        assert_int_equal(seteuid(0), 0);
    }
    /* Else a sanitizer may not look at its own process any more. */
    assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
}

static void read_outside(char out[8])
{
    int fd = openat(place.fd, "outside", O_RDONLY | O_CLOEXEC);

    assert_int_equal(read(fd, out, 8), 7);
    assert_int_equal(close(fd), 0);
    out[7] = '\0';
}

static struct tree_backend world = {
    .root = place.root,
    .make_pipe = make_pipe,
    .set_mode = set_mode,
    .drop = drop,
    .read_outside = read_outside,
};

static int enter_with(const struct wal__worktree_io *table)
{
    const char *base = getenv("TMPDIR");
    int fd;

    (void)umask(022);
    (void)snprintf(place.path, sizeof(place.path), "%s/agentwal-tree.XXXXXX",
                   base == NULL ? "/tmp" : base);
    place.fd =
        mkdtemp(place.path) == NULL ? -1 : open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(place.root, sizeof(place.root), "%s/tree", place.path);
    if (place.fd < 0 || mkdir(place.root, 0755) != 0) {
        return -1;
    }
    fd = openat(place.fd, "outside", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, "outside", 7) != 7 || close(fd) != 0) {
        return -1;
    }
    named_attributes = 0;
    parent_attributes = 0;
    foreign_sticky = false;
    mount_flags = 0;
    world.io = table;
    tree_case_set_up(&world);
    return 0;
}

static int enter(void **state)
{
    (void)state;
    return enter_with(&wal__worktree_posix);
}

static int enter_by_parts(void **state)
{
    (void)state;
    return enter_with(&wal__worktree_posix_no_openat2);
}

static int forget(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int leave(void **state)
{
    (void)state;
    drop(false); /* of a test that failed */
    tree_case_tear_down();
    (void)close(place.fd);
    return nftw(place.path, forget, 16, FTW_DEPTH | FTW_PHYS);
}

/* --------------------------------------------- systems without openat2 --- */

/* From now on openat2(2) answers this errno, in this process. */
static bool forbid_openat2(int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {
        .len = sizeof(filter) / sizeof(filter[0]),
        .filter = filter,
    };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           syscall(SYS_openat2, -1, "x", NULL, 0) == -1 && errno == error;
}

static int child_without_openat2(int error)
{
    int sys_errno = 0;

    return forbid_openat2(error) && tree_do_open("d/e/x", &sys_errno) == WAL_OK &&
                   tree_do_open("d/link/x", &sys_errno) == WAL_EOUTSIDE &&
                   tree_do_open("d/missing/x", &sys_errno) == WAL_ENOTFOUND
               ? 0
               : 1;
}

TEST_WITH(tree_posix__system_without_openat2_is_supported, enter, leave)
{
    static const int errors[] = {ENOSYS, EPERM};

    tree_case_directory("d");
    tree_case_directory("d/e");
    tree_case_put("d/e/x", "x");
    tree_case_link("d/link", "e");
    for (size_t i = 0; i < 2; i++) {
        int how = 0;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            _exit(child_without_openat2(errors[i]));
        }
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
}

/* ----------------------------------------------------------- replacing --- */

static void is_denied(const char *path, int error)
{
    int sys_errno;

    assert_int_equal(tree_do_may_replace(path, &sys_errno), WAL_EACCESS);
    assert_int_equal(sys_errno, error);
}

TEST_WITH(tree_posix__immutable_file_is_not_replaced, enter, leave)
{
    int sys_errno = 0;

    tree_case_put("x", "x");
    assert_ok(tree_do_may_replace("x", &sys_errno));
    named_attributes = STATX_ATTR_IMMUTABLE;
    is_denied("x", EPERM);
    named_attributes = STATX_ATTR_APPEND;
    is_denied("x", EPERM);
    named_attributes = STATX_ATTR_MOUNT_ROOT;
    is_denied("x", EBUSY);
    named_attributes = STATX_ATTR_COMPRESSED;
    assert_ok(tree_do_may_replace("x", &sys_errno));

    named_attributes = 0;
    parent_attributes = STATX_ATTR_IMMUTABLE;
    is_denied("x", EPERM);
    parent_attributes = STATX_ATTR_APPEND;
    is_denied("x", EPERM);
    is_denied("new", EPERM);
    parent_attributes = 0;
    mount_flags = ST_RDONLY;
    is_denied("x", EROFS);
    is_denied("new", EROFS);
}

TEST_WITH(tree_posix__sticky_directory_permissions_apply, enter, leave)
{
    int sys_errno = 0;

    tree_case_directory("d");
    tree_case_put("d/x", "x");
    set_mode("d", 01777);
    assert_ok(tree_do_may_replace("d/x", &sys_errno));
    foreign_sticky = true;
    /* The rule is not for the superuser. */
    assert_int_equal(tree_do_may_replace("d/x", &sys_errno), geteuid() == 0 ? WAL_OK : WAL_EACCESS);
    drop(true);
    is_denied("d/x", EPERM);
    assert_ok(tree_do_may_replace("d/new", &sys_errno));
    drop(false);
}

/* ------------------------------------------------------------- limits --- */

TEST_WITH(tree_posix__full_disk_is_reported, enter, leave)
{
    struct rlimit old;
    struct rlimit small;
    struct wal__worktree_file *file = NULL;
    size_t put = 99;
    int sys_errno = 0;
    enum wal_status status;

    assert_ok(io->create(io->ctx, tree_case_root(), "x", 0600, &file, &sys_errno));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = old.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = io->write(io->ctx, file, "x", 1, 4096, &put, &sys_errno);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    (void)signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, WAL_ENOSPACE);
    assert_int_equal(put, 99);
    io->close(io->ctx, file);
}

enum {
    descriptors = 256 /* more than a test opens */
};

/* How many are open, and which. */
static int note_open(bool out[descriptors])
{
    int count = 0;

    for (int fd = 0; fd < descriptors; fd++) {
        out[fd] = fcntl(fd, F_GETFD) != -1;
        count += out[fd] ? 1 : 0;
    }
    return count;
}

/* The lowest that is open and was not. */
static int opened_since(const bool before[descriptors])
{
    int fd = 0;

    while (before[fd] || fcntl(fd, F_GETFD) == -1) {
        fd++;
        assert_true(fd < descriptors);
    }
    return fd;
}

TEST_WITH(tree_posix__descriptors_are_closed, enter, leave)
{
    bool open[descriptors];
    int before;
    int sys_errno;

    tree_case_directory("d");
    tree_case_put("d/x", "x");
    tree_case_link("d/link", "x");
    make_pipe("d/pipe");
    /* What is remembered is open. */
    (void)tree_case_stat("d/x");
    (void)tree_case_stat("d");
    before = note_open(open);
    for (size_t i = 0; i < TREE_CALLS; i++) {
        (void)tree_calls[i]("d/pipe", &sys_errno);
        (void)tree_calls[i]("d/link/x", &sys_errno);
        (void)tree_calls[i]("d/x/x", &sys_errno);
        (void)tree_calls[i]("missing/x", &sys_errno);
        (void)tree_calls[i]("d", &sys_errno);
    }
    assert_int_equal(note_open(open), before);
}

TEST_WITH(tree_posix__descriptors_are_closed_on_exec, enter, leave)
{
    bool before[descriptors];
    struct wal__worktree_file *file = NULL;
    struct wal__worktree *tree = NULL;
    int sys_errno;
    int fd;

    (void)note_open(before);
    assert_ok(io->create(io->ctx, tree_case_root(), "x", 0600, &file, &sys_errno));
    fd = opened_since(before);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(fcntl(fd, F_GETFL) & O_SYNC, 0);
    io->close(io->ctx, file);
    assert_ok(io->open_root(io->ctx, place.root, &tree, &sys_errno));
    fd = opened_since(before);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    io->close_root(io->ctx, tree);
}

/* In a child, whose standard streams are closed. */
TEST_WITH(tree_posix__standard_streams_are_left_alone, enter, leave)
{
    int how = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        struct wal__worktree *tree = NULL;
        struct wal__worktree_file *file = NULL;
        int sys_errno;

        for (int fd = 0; fd <= STDERR_FILENO; fd++) {
            (void)close(fd);
        }
        if (io->open_root(io->ctx, place.root, &tree, &sys_errno) != WAL_OK ||
            io->create(io->ctx, tree, "x", 0600, &file, &sys_errno) != WAL_OK) {
            _exit(1);
        }
        for (int fd = 0; fd <= STDERR_FILENO; fd++) {
            if (fcntl(fd, F_GETFD) != -1) {
                _exit(2);
            }
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
}

/* ------------------------------------------------------ file systems --- */

/* In the place of the C library's: how often a file was synced. */
static int synced_files;

int fdatasync(int fildes)
{
    synced_files++;
    return (int)syscall(SYS_fdatasync, fildes);
}

TEST_WITH(tree_posix__another_file_system_is_synced_at_once, enter, leave)
{
    struct wal__worktree *tree = NULL;
    struct wal__worktree_file *file = NULL;
    struct wal__worktree_stat st = {0};
    char path[64];
    int sys_errno = 0;
    size_t written = 0;

    (void)snprintf(path, sizeof(path), "shm/agentwal-tree-%ld", (long)getpid());
    assert_ok(io->open_root(io->ctx, "/dev", &tree, &sys_errno));
    assert_ok(io->stat(io->ctx, tree, "shm", &st, &sys_errno));
    assert_int_equal(st.kind, WAL__WORKTREE_DIRECTORY);
    assert_ok(io->create(io->ctx, tree, path, 0600, &file, &sys_errno));
    synced_files = 0;
    assert_ok(io->write(io->ctx, file, "x", 1, 0, &written, &sys_errno));
    assert_int_equal(synced_files, 1);
    assert_ok(io->set_mode(io->ctx, file, 0644, &sys_errno));
    io->close(io->ctx, file);
    assert_ok(io->unlink(io->ctx, tree, path, &sys_errno));
    io->close_root(io->ctx, tree);
}

/* ----------------------------------------------------------- syncing --- */

/* In the place of the C library's: what was synced, and how often. */
static int synced_directories;
static int synced_all;

int fsync(int fd)
{
    synced_directories++;
    return (int)syscall(SYS_fsync, fd);
}

int syncfs(int fd)
{
    synced_all++;
    return (int)syscall(SYS_syncfs, fd);
}

static void expect_syncs(struct wal__worktree *tree, const char *paths, size_t size,
                         enum wal_status status, int single, int all)
{
    int sys_errno = 0;

    synced_directories = 0;
    synced_all = 0;
    assert_int_equal(io->sync_directories(io->ctx, tree, paths, size, &sys_errno), status);
    assert_int_equal(synced_directories, single);
    assert_int_equal(synced_all, all);
}

#define PATHS(text) (text), sizeof(text)

TEST_WITH(tree_posix__one_sync_covers_several_directories, enter, leave)
{
    struct wal__worktree *tree = tree_case_root();

    tree_case_directory("a");
    tree_case_directory("b");
    tree_case_put("file", "");
    expect_syncs(tree, "", 0, WAL_OK, 0, 0);
    expect_syncs(tree, PATHS(""), WAL_OK, 1, 0);
    expect_syncs(tree, PATHS("a"), WAL_OK, 1, 0);
    expect_syncs(tree, PATHS("a\0b"), WAL_OK, 0, 1);
    expect_syncs(tree, PATHS("\0a\0b"), WAL_OK, 0, 1);
    /* A path that cannot be reached is reported; the others are synced. */
    expect_syncs(tree, PATHS("gone\0a"), WAL_ENOTFOUND, 1, 0);
    expect_syncs(tree, PATHS("a\0file\0b"), WAL_ENOTFOUND, 0, 1);
    /* An invalid path is reported before anything is synced. */
    expect_syncs(tree, PATHS("a\0../b"), WAL_EOUTSIDE, 0, 0);
}

TEST_WITH(tree_posix__directories_of_other_mounts_are_synced_separately, enter, leave)
{
    struct wal__worktree *tree = NULL;
    struct stat dev;
    struct stat shm;
    int sys_errno = 0;

    assert_int_equal(stat("/dev", &dev), 0);
    assert_int_equal(stat("/dev/shm", &shm), 0);
    assert_int_not_equal(dev.st_dev, shm.st_dev);
    assert_ok(io->open_root(io->ctx, "/dev", &tree, &sys_errno));
    expect_syncs(tree, PATHS("shm"), WAL_OK, 1, 0);
    expect_syncs(tree, PATHS("\0shm"), WAL_OK, 2, 0);
    expect_syncs(tree, PATHS("\0fd/..\0shm"), WAL_EOUTSIDE, 0, 0);
    io->close_root(io->ctx, tree);
}

/* ------------------------------------------------------- remembering --- */

static void move(const char *from, const char *to)
{
    char old[PATH_MAX + 512];
    char new[PATH_MAX + 512];

    below(old, from);
    below(new, to);
    assert_int_equal(rename(old, new), 0);
}

TEST_WITH(tree_posix__moved_directory_is_not_written, enter, leave)
{
    int sys_errno = 0;

    tree_case_directory("d");
    tree_case_put("d/x", "old");
    (void)tree_case_stat("d/x");
    move("d", "../gone");
    tree_assert_fails(tree_do_create, "d/new", WAL_ENOTFOUND);
    tree_assert_fails(tree_do_unlink, "d/x", WAL_ENOTFOUND);
    tree_assert_fails(tree_do_rename_to, "d/x", WAL_ENOTFOUND);
    tree_assert_fails(tree_do_may_replace, "d/x", WAL_ENOTFOUND);
    tree_assert_fails(tree_do_sync_directory, "d", WAL_ENOTFOUND);
    tree_case_directory("d");
    tree_case_put("d/y", "new");
    assert_ok(tree_do_may_replace("d/y", &sys_errno));
    move("../gone", "back");
    tree_case_assert_content("back/x", "old");
    assert_int_equal(tree_case_stat("back/y").kind, WAL__WORKTREE_ABSENT);

    /* Soon no lookup enters this directory. */
    (void)usleep(40000);
    assert_int_equal(tree_case_stat("d/x").kind, WAL__WORKTREE_ABSENT);
    tree_case_assert_content("d/y", "new");
}

TEST_WITH(tree_posix__new_root_sees_existing_files, enter, leave)
{
    struct wal__worktree *tree = NULL;
    int sys_errno = 0;

    tree_case_directory("d");
    tree_case_put("d/x", "x");
    assert_int_equal(tree_case_stat("d/x").kind, WAL__WORKTREE_REGULAR);
    move("d", "gone");
    assert_ok(io->open_root(io->ctx, place.root, &tree, &sys_errno));
    tree = tree_case_swap_root(tree);
    assert_int_equal(tree_case_stat("d/x").kind, WAL__WORKTREE_ABSENT);
    io->close_root(io->ctx, tree);
}

enum {
    remembered = 32, /* directories, at most */
    directories = 12,
    rounds = 2000
};

/* Looks at a file in each directory, and makes and removes one. */
static void *access_tree(void *arg)
{
    struct wal__worktree *tree = tree_case_root();
    const char *mark = arg;
    size_t faults = 0;
    int sys_errno = 0;

    for (int i = 0; i < rounds; i++) {
        struct wal__worktree_stat st = {0};
        struct wal__worktree_file *file = NULL;
        char path[32];

        (void)snprintf(path, sizeof(path), "d%d/x", i % directories);
        if (io->stat(io->ctx, tree, path, &st, &sys_errno) != WAL_OK ||
            st.size != (uint64_t)(i % directories)) {
            faults++;
        }
        (void)snprintf(path, sizeof(path), "d%d/%s", i % directories, mark);
        if (io->create(io->ctx, tree, path, 0600, &file, &sys_errno) != WAL_OK) {
            faults++;
            continue;
        }
        io->close(io->ctx, file);
        faults += io->unlink(io->ctx, tree, path, &sys_errno) != WAL_OK;
    }
    return faults == 0 ? NULL : arg;
}

TEST_WITH(tree_posix__threads_share_a_root, enter, leave)
{
    static char marks[4][8] = {"one", "two", "three", "four"};
    bool open[descriptors];
    int before = note_open(open);
    pthread_t threads[4];
    char path[32];

    for (int i = 0; i < directories; i++) {
        (void)snprintf(path, sizeof(path), "d%d", i);
        tree_case_directory(path);
        (void)snprintf(path, sizeof(path), "d%d/x", i);
        tree_case_put(path, &"abcdefghijkl"[directories - i]);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, access_tree, marks[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *fault = NULL;

        assert_int_equal(pthread_join(threads[i], &fault), 0);
        assert_null(fault);
    }
    assert_true(note_open(open) <= before + remembered);
}

static int run_cases(void)
{
    return tree_cases_run("tree_posix, as every table", enter, leave) +
           tree_cases_run("tree_posix by parts, as every table", enter_by_parts, leave);
}

TEST_FILE(NULL, NULL, run_cases);
