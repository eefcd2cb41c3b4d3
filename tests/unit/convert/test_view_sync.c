/*
 * test_view_sync.c - the order in which a flush of a view writes, syncs and
 * renames (docs/views.md 10.3, 10.4), seen at the system calls, which this
 * program replaces; and states whose checksum is wrong.
 */
#include "tests/lib/kit/view_kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    INODES_MAX = 64,
    STRIDE = 5 /* of the digits of a state that are tried */
};

/* Inodes that are not durable. */
struct inodes {
    ino_t items[INODES_MAX];
    size_t count;
};

static struct inodes unsynced; /* files with bytes that no sync covers */
static struct inodes renamed;  /* directories with names that none covers */
static bool watches;
static unsigned file_renames;
static unsigned state_renames;
static unsigned file_syncs;

static void add(struct inodes *inodes, ino_t inode)
{
    for (size_t i = 0; i < inodes->count; i++) {
        if (inodes->items[i] == inode) {
            return;
        }
    }
    assert_true(inodes->count < INODES_MAX);
    inodes->items[inodes->count++] = inode;
}

static bool take(struct inodes *inodes, ino_t inode)
{
    for (size_t i = 0; i < inodes->count; i++) {
        if (inodes->items[i] == inode) {
            inodes->items[i] = inodes->items[--inodes->count];
            return true;
        }
    }
    return false;
}

static ino_t inode_of(int fd)
{
    struct stat found;

    assert_int_equal(fstat(fd, &found), 0);
    return found.st_ino;
}

/* Whether the directory is that of the states. */
static bool has_states(int directory)
{
    char link[64];
    char path[4096];
    ssize_t size;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
    size = readlink(link, path, sizeof(path) - 1);
    assert_true(size > 0);
    path[size] = '\0';
    return strstr(path, "/.agentwal") != NULL;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
ssize_t write(int fd, const void *data, size_t size)
{
    if (watches && fd > 2) {
        add(&unsynced, inode_of(fd));
    }
    return syscall(SYS_write, fd, data, size);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int fdatasync(int fd)
{
    if (watches) {
        file_syncs += take(&unsynced, inode_of(fd));
    }
    return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    if (watches) {
        (void)take(&renamed, inode_of(fd));
    }
    return (int)syscall(SYS_fsync, fd);
}

static ino_t inode_at(int directory, const char *name)
{
    struct stat found;

    assert_int_equal(fstatat(directory, name, &found, 0), 0);
    return found.st_ino;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int renameat(int from, const char *old, int to, const char *name)
{
    if (watches && has_states(to)) {
        /* The state alone may be written and not synced. */
        bool own = take(&unsynced, inode_at(from, old));

        state_renames++;
        if (unsynced.count > 0) {
            watches = false;
            fail_msg("the state %s is saved before the file is synced", name);
        }
        (void)own;
        add(&renamed, inode_of(to));
    } else if (watches) {
        file_renames++;
        if (unsynced.count > 0) {
            watches = false;
            fail_msg("%s is renamed before it, and the state, are synced",
                     name);
        }
        if (renamed.count > 0) {
            watches = false;
            fail_msg("%s is renamed before an earlier name is synced", name);
        }
        add(&renamed, inode_of(to));
    }
    return (int)syscall(SYS_renameat, from, old, to, name);
}

/* Flushes, and checks that nothing but the last state is left to be synced. */
static void flush(struct wal_view *view)
{
    unsynced.count = 0;
    renamed.count = 0;
    file_renames = 0;
    state_renames = 0;
    file_syncs = 0;
    watches = true;
    (void)view_kit_flush(view);
    watches = false;
    assert_int_equal(unsynced.count, 0);
}

static struct wal_session *imported(struct wal_store *store, unsigned rows)
{
    struct wal_session *session = view_kit_import(store, 0xFFFF);

    for (unsigned i = 1; i <= rows; i++) {
        view_kit_row(session, i, i - 1, "some text");
    }
    return session;
}

static const char *const dialects[] = {"claude", "codex", "pi"};

static void test_view_sync__new_files(void **state)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 5);

    (void)state;
    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
        struct wal_view *view =
            view_kit_open(store, session, dialects[i], dialects[i]);

        flush(view);
        assert_true(file_renames > 0 && state_renames > 0 && file_syncs > 1);
        /* A file's name is durable when the flush ends. */
        assert_true(renamed.count == 0);
        wal_view_close(view);
    }
    wal_session_close(session);
    kit_close(store);
}

static void test_view_sync__appended_file(void **state)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 5);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");

    (void)state;
    (void)view_kit_flush(view);
    for (unsigned i = 6; i < 10; i++) {
        view_kit_row(session, i, i - 1, "more text");
        flush(view);
        assert_int_equal(file_renames, 0);
        assert_true(state_renames >= 1);
        assert_true(file_syncs >= 1);
    }
    wal_view_close(view);
    wal_session_close(session);
    kit_close(store);
}

static void test_view_sync__replaced_file(void **state)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 5);
    struct wal_view *view = view_kit_open(store, session, "claude", "root");

    (void)state;
    (void)view_kit_flush(view);
    assert_int_equal(wal_session_redact(session, kit_text(view_kit_id(3)),
                                        kit_text("why"), NULL, NULL),
                     WAL_OK);
    flush(view);
    assert_true(file_renames > 0 && state_renames > 0);
    assert_true(renamed.count == 0);
    wal_view_close(view);
    wal_session_close(session);
    kit_close(store);
}

/* --- the checksum of the state -------------------------------------------- */

static char *state_path(void)
{
    static char path[512];
    DIR *directory = opendir("root/.agentwal");
    struct dirent *entry;

    assert_non_null(directory);
    path[0] = '\0';
    while ((entry = readdir(directory)) != NULL) {
        size_t size = strlen(entry->d_name);

        if (size > 5 && strcmp(entry->d_name + size - 5, ".json") == 0) {
            (void)snprintf(path, sizeof(path), "root/.agentwal/%s",
                           entry->d_name);
        }
    }
    (void)closedir(directory);
    assert_true(path[0] != '\0');
    return path;
}

/* Digits of the state are changed in turn, so that it is valid JSON: the
 * flush does not go on from it, and the files are right. */
static void test_view_sync__state_with_another_digit_is_not_used(void **state)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 3);
    size_t size;
    char *good;
    unsigned digits = 0;
    unsigned tried = 0;

    (void)state;
    (void)view_kit_export(store, session, "claude", "root");
    good = view_kit_read(state_path(), &size);
    view_kit_row(session, 4, 3, "more");
    assert_int_equal(system("rm -rf saved && cp -r root saved"), 0);
    for (size_t at = 0; at < size; at++) {
        char *changed;

        if (good[at] < '0' || good[at] > '9' || digits++ % STRIDE != 0) {
            continue;
        }
        changed = malloc(size);
        assert_non_null(changed);
        memcpy(changed, good, size);
        changed[at] = good[at] == '9' ? '8' : (char)(good[at] + 1);
        assert_int_equal(system("rm -rf root && cp -r saved root"), 0);
        view_kit_write(state_path(), changed, size, false);
        (void)view_kit_export(store, session, "claude", "root");
        view_kit_assert_full_export(store, session, "claude", "root");
        free(changed);
        tried++;
    }
    assert_true(tried > 20);
    free(good);
    wal_session_close(session);
    kit_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_view_sync__new_files),
        KIT_TEST(test_view_sync__appended_file),
        KIT_TEST(test_view_sync__replaced_file),
        KIT_TEST(test_view_sync__state_with_another_digit_is_not_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
