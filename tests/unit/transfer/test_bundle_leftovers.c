/*
 * test_bundle_leftovers.c - what a process leaves that is killed while it
 * writes or reads a bundle is removed by the next one there; what a process
 * that lives has is not, nor what only has such a name (docs/machines.md).
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agentwal/transfer.h"
#include "tests/lib/kit/store_kit.h"

static int32_t kill_here(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    (void)raise(SIGKILL);
    return 0;
}

static int32_t stop_here(void *ctx, uint64_t done, uint64_t total)
{
    bool *has_stopped = ctx;

    (void)done;
    (void)total;
    if (!*has_stopped) {
        *has_stopped = true;
        (void)raise(SIGSTOP);
    }
    return 0;
}

static enum wal_status transfer(const char *store_path, bool writes,
                                const char *path,
                                wal_transfer_progress_fn *progress)
{
    bool has_stopped = false;
    const struct wal_transfer_options options = {.struct_size = sizeof(options),
                                                 .directory = WAL_STR("."),
                                                 .progress = progress,
                                                 .ctx = &has_stopped};
    struct wal_store *store = kit_open(store_path, WAL_OPEN_CREATE);
    struct wal_error error = KIT_ERROR;
    enum wal_status status =
        writes ? wal_bundle_write(store, kit_text(path), &options, NULL, &error)
               : wal_bundle_read(store, kit_text(path), &options, NULL, &error);

    if (status != WAL_OK) {
        (void)fprintf(stderr, "%s: %s\n", error.file, error.text);
    }
    (void)!wal_close(store, NULL);
    return status;
}

/* The number of names that begin as those of temporary stores do. */
static uint32_t count_temporary(void)
{
    DIR *directory = opendir(".");
    uint32_t count = 0;

    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        count += strncmp(entry->d_name, ".agentwal-", 10) == 0;
    }
    (void)closedir(directory);
    return count;
}

static void make_store(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append_all(session, "a b c");
    wal_session_close(session);
    kit_close(store);
}

/* A child that transfers until the progress function ends or stops it. */
static pid_t start(const char *store, bool writes, const char *path,
                   wal_transfer_progress_fn *progress)
{
    pid_t child = fork();
    int code;

    assert_true(child >= 0);
    if (child == 0) {
        _exit(transfer(store, writes, path, progress) == WAL_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &code, WUNTRACED), child);
    assert_true(WIFSTOPPED(code) ||
                (WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL));
    return child;
}

KIT_TEST(leftovers__of_a_killed_writer)
{
    make_store();
    for (int i = 0; i < 2; i++) {
        (void)start("store", true, "first", kill_here);
        assert_true(count_temporary() >= 2);
    }
    assert_ok(transfer("store", true, "second", NULL));
    assert_int_equal(count_temporary(), 0);
    assert_int_equal(access("first", F_OK), -1);
}

KIT_TEST(leftovers__of_a_killed_reader)
{
    make_store();
    assert_ok(transfer("store", true, "bundle", NULL));
    (void)start("other", false, "bundle", kill_here);
    assert_true(count_temporary() >= 2);
    assert_ok(transfer("other", false, "bundle", NULL));
    assert_int_equal(count_temporary(), 0);
}

KIT_TEST(leftovers__of_a_process_that_lives_stay)
{
    uint32_t before;
    pid_t child;
    int code;

    make_store();
    child = start("store", true, "first", stop_here);
    before = count_temporary();
    assert_true(before >= 2);
    assert_ok(transfer("store", true, "second", NULL));
    assert_int_equal(count_temporary(), before);
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    assert_int_equal(count_temporary(), 0);
    assert_ok(transfer("other", false, "first", NULL));
}

static void make_file(const char *name)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

/* An unfinished bundle, and the store of a lock file, are removed; a directory
 * without one, a link, and the files of others are not. */
KIT_TEST(leftovers__only_what_is_of_bundles)
{
    static const char *const kept[] = {
        ".agentwal-0123456789abcdef",
        ".agentwal-0123456789abcde.tmp",
        ".agentwal-0123456789abcdef0.tmp",
        ".agentwal-0123456789ABCDEF.tmp",
        ".agentwal-pi-0123456789abcdef.1.tmp",
        ".agentwal-3333333333333333.lock",
        "agentwal-0123456789abcdef.tmp",
        "precious/file",
    };

    make_store();
    assert_int_equal(mkdir("precious", 0700), 0);
    make_file("precious/file");
    assert_int_equal(mkdir(".agentwal-0123456789abcdef", 0700), 0);
    for (size_t i = 1; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (i != 5) {
            make_file(kept[i]);
        }
    }
    /* A lock file that is a link, and one whose directory is a link. */
    assert_int_equal(symlink("precious/file", kept[5]), 0);
    make_file(".agentwal-2222222222222222.lock");
    assert_int_equal(symlink("precious", ".agentwal-2222222222222222"), 0);
    make_file(".agentwal-1111111111111111.lock");
    assert_int_equal(mkdir(".agentwal-1111111111111111", 0700), 0);
    make_file(".agentwal-1111111111111111/MANIFEST");
    make_file(".agentwal-4444444444444444.tmp");
    assert_ok(transfer("store", true, "bundle", NULL));
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        struct stat stat;

        if (lstat(kept[i], &stat) != 0) {
            fail_msg("%s is gone", kept[i]);
        }
    }
    assert_int_equal(access(".agentwal-1111111111111111.lock", F_OK), -1);
    assert_int_equal(access(".agentwal-1111111111111111", F_OK), -1);
    assert_int_equal(access(".agentwal-4444444444444444.tmp", F_OK), -1);
    assert_int_equal(access("precious/file", F_OK), 0);
}
