/*
 * test_collect.c - tests of capturing many files (SPEC.md 5.13): which are read, files that change
 * or fail meanwhile, and that several threads get the result of one. Captures that fail, for want
 * of memory or because contents cannot be written, free all that they prepared.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <utime.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/base/worktree.h"
#include "engine/files/capture.h"
#include "engine/log/locks.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/checkpoint_kit.h"

/* --- a work tree that is watched ----------------------------------------- */

static struct wal__worktree_io tree;

static struct wal__io io;

static atomic_int opens;

static int changes_left; /* openings after which "moving" grows */

static const char *failing; /* path whose opening fails */

static enum wal_status failing_with;

static const struct kit_work *moving_in;

static uint8_t boot; /* number of the boot */

static void count_boots(void *ctx, uint8_t out[16])
{
    (void)ctx;
    memset(out, boot, 16);
}

static void grow(void)
{
    int fd = open(kit_path(moving_in, "moving"), O_WRONLY | O_APPEND);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(close(fd), 0);
}

static enum wal_status watch_open(void *ctx, struct wal__worktree *root, const char *path,
                                  struct wal__worktree_file **file, int *sys_errno)
{
    enum wal_status status;

    atomic_fetch_add(&opens, 1);
    if (failing != NULL && strcmp(path, failing) == 0) {
        *sys_errno = 5;
        return failing_with;
    }
    status = wal__worktree_posix.open(ctx, root, path, file, sys_errno);
    if (strcmp(path, "moving") == 0 && changes_left > 0) {
        changes_left--;
        grow();
    }
    return status;
}

/* A store on the real system but for the opening of files of the tree. */
static struct kit_work begin(void)
{
    struct wal_open_options options = {.struct_size = sizeof(options), .flags = WAL_OPEN_CREATE};
    struct kit_work work = kit_work_begin(0);

    kit_work_end(&work);
    tree = wal__worktree_posix;
    tree.open = watch_open;
    io = wal__io_posix;
    io.worktree = &tree;
    io.boot_id = count_boots;
    boot = 1;
    failing = NULL;
    changes_left = 0;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &work.store, NULL));
    (void)kit_keep(work.store);
    work.session = kit_session(work.store, "s");
    atomic_store(&opens, 0);
    return work;
}

static int opened(void)
{
    return atomic_exchange(&opens, 0);
}

/* --- which are read ------------------------------------------------------ */

KIT_TEST(collect__unchanged_files_are_not_read_again)
{
    struct kit_work work = begin();

    kit_write(&work, "a", "1");
    kit_write(&work, "b", "2");
    kit_write(&work, "c", "3");
    kit_wait_past_mtime();
    kit_checkpoint(&work, "1", "a b c");
    assert_int_equal(opened(), 3);
    kit_checkpoint(&work, "2", "a b c none");
    assert_int_equal(opened(), 0);
    kit_write(&work, "b", "9");
    kit_wait_past_mtime();
    kit_checkpoint(&work, "3", "a b c");
    assert_int_equal(opened(), 1);
    assert_string_equal(kit_files(&work, work.session, "3"), "a=1 b=9 c=3");
    assert_string_equal(kit_files(&work, work.session, "2"), "a=1 b=2 c=3 none-");
    assert_string_equal(kit_diff(work.session, "3", ""), "");
    assert_int_equal(opened(), 0);
}

static void make_old(const struct kit_work *work, const char *path)
{
    struct timespec times[2] = {{.tv_sec = 1000000000, .tv_nsec = 1},
                                {.tv_sec = 1000000000, .tv_nsec = 1}};

    assert_int_equal(utimensat(AT_FDCWD, kit_path(work, path), times, 0), 0);
}

static void capture_one(const struct kit_work *work, const struct wal__files *earlier,
                        struct wal__files *files, struct wal__blob_put_result *result)
{
    struct wal__core *core = work->session->core;
    struct wal__capture collect = {.env = &core->env,
                                   .io = &tree,
                                   .blobs = &core->blobs,
                                   .baselines = {earlier},
                                   .baseline_count = earlier != NULL};
    const struct wal_slice path = kit_text("a");
    struct wal__content_guard guard = {NULL, 0};
    int sys_errno = 0;

    wal__files_init(files, core->env.heap);
    assert_ok(wal__files_from_paths(files, work->root, &path, 1, NULL, NULL));
    assert_ok(tree.open_root(tree.ctx, work->root, &collect.worktree, &sys_errno));
    assert_ok(wal__content_guard_enter(&guard, &core->control, NULL));
    assert_ok(wal__capture(&collect, files, NULL));
    wal__content_guard_leave(&guard);
    tree.close_root(tree.ctx, collect.worktree);
    *result = collect.result;
}

/* The digest of an earlier list is reused only if the store has the content, which must then be as
 * durable as new content. */
KIT_TEST(collect__reused_content_must_be_in_the_store)
{
    struct kit_work work = begin();
    struct wal__blob_put_result first;
    struct wal__blob_put_result result;
    struct wal__files earlier;
    struct wal__files files;
    struct wal__digest digest;

    kit_write(&work, "a", "1");
    kit_wait_past_mtime();
    capture_one(&work, NULL, &earlier, &first);
    assert_int_equal(opened(), 1);
    capture_one(&work, &earlier, &files, &result);
    assert_int_equal(opened(), 0);
    assert_true(result.end > wal__blob_store_durable_end(&work.session->core->blobs));
    assert_true(result.end <= first.end);
    wal__files_deinit(&files);

    digest = earlier.items[0].digest;
    earlier.items[0].digest.bytes[0] ^= 1;
    capture_one(&work, &earlier, &files, &result);
    assert_int_equal(opened(), 1);
    assert_memory_equal(files.items[0].digest.bytes, digest.bytes, WAL__DIGEST_SIZE);
    wal__files_deinit(&files);
    wal__files_deinit(&earlier);
}

/* The times of a file that was new may be all that a loss of power left. */
KIT_TEST(collect__fresh_file_of_another_boot_is_read_again)
{
    struct kit_work work = begin();

    kit_write(&work, "a", "1");
    kit_write(&work, "b", "2");
    make_old(&work, "b"); /* but its ctime is not */
    kit_wait_past_mtime();
    kit_checkpoint(&work, "1", "a b");
    assert_int_equal(opened(), 2);
    boot = 2;
    kit_checkpoint(&work, "2", "a b");
    assert_int_equal(opened(), 2);
    kit_checkpoint(&work, "3", "a b");
    assert_int_equal(opened(), 0);
}

/* What the checkpoint has already is still of the boot before. */
KIT_TEST(collect__adding_keeps_the_boot_of_earlier_files)
{
    struct kit_work work = begin();

    kit_write(&work, "a", "1");
    kit_write(&work, "c", "3");
    kit_wait_past_mtime();
    kit_checkpoint(&work, "1", "a");
    boot = 2;
    kit_checkpoint(&work, "1", "c");
    assert_int_equal(opened(), 2);
    kit_checkpoint(&work, "2", "a c");
    assert_int_equal(opened(), 1);
}

KIT_TEST(collect__fresh_file_of_no_known_boot_is_read_again)
{
    struct kit_work work = begin();

    boot = 0;
    kit_write(&work, "a", "1");
    kit_wait_past_mtime();
    kit_checkpoint(&work, "1", "a");
    kit_checkpoint(&work, "2", "a");
    assert_int_equal(opened(), 2);
}

/* Four checkpoints of other files lie between. */
KIT_TEST(collect__only_the_newest_lists_are_searched)
{
    struct kit_work work = begin();

    kit_write(&work, "a", "1");
    kit_wait_past_mtime();
    kit_checkpoint(&work, "1", "a");
    kit_checkpoint(&work, "2", "x");
    kit_checkpoint(&work, "3", "x y");
    kit_checkpoint(&work, "4", "z");
    assert_int_equal(opened(), 1);
    kit_checkpoint(&work, "5", "a");
    assert_int_equal(opened(), 0);
    kit_checkpoint(&work, "6", "x");
    kit_checkpoint(&work, "7", "y");
    kit_checkpoint(&work, "8", "z");
    kit_checkpoint(&work, "9", "w");
    kit_checkpoint(&work, "10", "a");
    assert_int_equal(opened(), 1);
}

/* The same size within one tick of the clock: the times do not show the change. */
KIT_TEST(collect__recently_written_file_is_read_again)
{
    struct kit_work work = begin();

    for (int i = 0; i < 50; i++) {
        char id[16];
        char content[16];
        char expected[32];

        snprintf(id, sizeof(id), "%d", i);
        snprintf(content, sizeof(content), "%04d", i);
        snprintf(expected, sizeof(expected), "a=%04d", i);
        kit_write(&work, "a", content);
        kit_checkpoint(&work, id, "a");
        assert_string_equal(kit_files(&work, work.session, id), expected);
    }
    assert_int_equal(opened(), 50);
}

/* --- what changes -------------------------------------------------------- */

KIT_TEST(collect__changed_file_is_read_again)
{
    struct kit_work work = begin();

    moving_in = &work;
    kit_write(&work, "moving", "0");
    changes_left = 3;
    kit_checkpoint(&work, "c", "moving");
    assert_string_equal(kit_files(&work, work.session, "c"), "moving=0xxx");
    assert_int_equal(opened(), 4);
}

KIT_TEST(collect__constantly_changing_file_is_refused)
{
    enum { LARGE = 1100000 };
    struct wal_error error = KIT_ERROR;
    char *content = test_memory(LARGE);

    struct kit_work work = begin();

    moving_in = &work;
    kit_write(&work, "a", "1");
    kit_write(&work, "moving", "0");
    changes_left = 4;
    assert_int_equal(kit_try_checkpoint(&work, "c", "a moving", &error), WAL_ECHANGED);
    assert_string_equal(error.file, "moving");
    assert_int_equal(changes_left, 0);
    kit_write_bytes(&work, "moving", content, LARGE);
    changes_left = 4;
    error = KIT_ERROR;
    assert_int_equal(kit_try_checkpoint(&work, "c", "a moving", &error), WAL_ECHANGED);
    assert_string_equal(error.file, "moving");
    assert_string_equal(kit_checkpoints(work.session), "");
    kit_checkpoint(&work, "c", "a moving");
}

/* --- many ---------------------------------------------------------------- */

enum { MANY = 600 };

static void write_many(struct kit_work *work, struct wal_slice *paths, char (*names)[24])
{
    for (int i = 0; i < MANY; i++) {
        char content[40000];
        int size = snprintf(content, sizeof(content), "%d,", i % 500);

        /* One hundred have contents of others. */
        snprintf(names[i], sizeof(names[i]), "d%d/f%03d", i % 7, i);
        memset(content + size, 'a' + i % 500 % 26, (size_t)(i % 500) * 60);
        kit_write_bytes(work, names[i], content, (size_t)size + (size_t)(i % 500) * 60);
        paths[i] = kit_text(names[i]);
    }
}

static void check_many(struct kit_work *work, const char *id)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_file_cursor *checkpoint;

    assert_ok(wal_file_cursor_open(work->session, kit_text(id), &checkpoint, NULL));
    assert_ok(wal_checkpoint_get_info(checkpoint, &info, NULL));
    assert_int_equal(info.files, MANY);
    wal_file_cursor_close(checkpoint);
    assert_string_equal(kit_diff(work->session, id, ""), "");
}

KIT_TEST(collect__threads_agree_with_one_thread)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options)};
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    static struct wal_slice paths[MANY];
    static char names[MANY][24];
    struct wal_error error = KIT_ERROR;
    struct wal_file_cursor *checkpoint;

    struct kit_work work = begin();

    write_many(&work, paths, names);
    kit_wait_past_mtime();
    options.threads = 8;
    failing = names[333];
    failing_with = WAL_EACCESS;
    options.id = kit_text("failed");
    assert_int_equal(wal_checkpoint_create(work.session, paths, MANY, &options, NULL, &error),
                     WAL_EACCESS);
    assert_string_equal(error.file, names[333]);
    options.id = kit_text("without");
    assert_ok(wal_checkpoint_create(work.session, paths, MANY, &options, &checkpoint, NULL));
    assert_ok(wal_checkpoint_get_info(checkpoint, &info, NULL));
    assert_int_equal(info.files, MANY - 1);
    assert_int_equal(info.unrecorded_count, 1);
    assert_memory_equal(info.unrecorded[0].path.data, names[333], info.unrecorded[0].path.size);
    wal_file_cursor_close(checkpoint);
    assert_ok(wal_checkpoint_delete(work.session, options.id, NULL));
    failing = NULL;
    options.id = kit_text("8");
    assert_ok(wal_checkpoint_create(work.session, paths, MANY, &options, &checkpoint, NULL));
    assert_ok(wal_checkpoint_get_info(checkpoint, &info, NULL));
    assert_int_equal(info.new_blobs, 1);
    wal_file_cursor_close(checkpoint);
    options.threads = 1;
    options.id = kit_text("1");
    assert_ok(wal_checkpoint_create(work.session, paths, MANY, &options, &checkpoint, NULL));
    assert_ok(wal_checkpoint_get_info(checkpoint, &info, NULL));
    assert_int_equal(info.new_blobs, 0);
    wal_file_cursor_close(checkpoint);
    assert_string_equal(kit_diff(work.session, "8", "1"), "");
    opened();
    check_many(&work, "8");
    assert_int_equal(opened(), 0);
}

struct adder {
    struct kit_work *work;
    const struct wal_slice *paths;
    enum wal_status status;
};

static void *add_some(void *arg)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options)};
    struct adder *adder = arg;

    options.id = kit_text("shared");
    options.threads = 2;
    for (int i = 0; i < MANY / 4 && adder->status == WAL_OK; i += 10) {
        adder->status =
            wal_checkpoint_create(adder->work->session, adder->paths + i, 10, &options, NULL, NULL);
    }
    return NULL;
}

KIT_TEST(checkpoint__concurrent_additions_to_one)
{
    static struct wal_slice paths[MANY];
    static char names[MANY][24];
    struct adder adders[4];
    pthread_t threads[4];

    struct kit_work work = begin();

    write_many(&work, paths, names);
    for (int i = 0; i < 4; i++) {
        adders[i] = (struct adder){.work = &work, .paths = paths + i * (MANY / 4)};
        assert_int_equal(pthread_create(&threads[i], NULL, add_some, &adders[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_ok(adders[i].status);
    }
    check_many(&work, "shared");
}

static struct faulty_heap heap;

static bool fails_writes;

static bool fails_one; /* the next, and then no other */

static enum wal_status write_unless(void *ctx, struct wal__file *file, const struct iovec *iov,
                                    int count, uint64_t offset, size_t *put, int *sys_errno)
{
    if (fails_writes) {
        const struct timespec pause = {0, 300000000};

        (void)nanosleep(&pause, NULL); /* the next batch fills meanwhile */
        fails_writes = !fails_one;
        *sys_errno = 5;
        return WAL_EIO;
    }
    return wal__io_posix.pwritev(ctx, file, iov, count, offset, put, sys_errno);
}

/* A store that counts its memory, and whose writes fail on demand. */
static void open_counted(struct kit_work *work)
{
    struct wal_open_options options = {.struct_size = sizeof(options)};

    faulty_heap_init(&heap, &wal__heap_libc);
    fails_writes = false;
    assert_ok(wal__store_open("store", &options, &heap.heap, &io, &work->store, NULL));
    work->session = kit_session(work->store, "s");
}

/* All memory has come back. */
static void close_counted(struct kit_work *work)
{
    wal_session_close(work->session);
    (void)wal_close(work->store, NULL);
    assert_int_equal(atomic_load(&heap.live), 0);
}

static struct kit_work begin_counted(void)
{
    struct kit_work work = kit_work_begin(0);

    kit_work_end(&work);
    io = wal__io_posix;
    io.pwritev = write_unless;
    open_counted(&work);
    return work;
}

enum {
    /* More than one batch: the contents after it wait for its write. */
    CONTENTS = 24,
    CONTENT_SIZE = 1000000
};

static void write_contents(struct kit_work *work, struct wal_slice *paths, char (*names)[24])
{
    uint64_t random = 7;
    char *content = malloc(CONTENT_SIZE);

    assert_non_null(content);
    for (int i = 0; i < CONTENTS; i++) {
        for (size_t at = 0; at < CONTENT_SIZE; at += sizeof(random)) {
            uint64_t next = kit_random(&random);

            memcpy(content + at, &next, sizeof(next));
        }
        snprintf(names[i], sizeof(names[i]), "f%02d", i);
        kit_write_bytes(work, names[i], content, CONTENT_SIZE);
        paths[i] = kit_text(names[i]);
    }
    free(content);
}

/* Contents that are prepared, and cannot be put, are freed. That is no reason of the files. */
KIT_TEST(collect__failed_write_frees_the_contents)
{
    static struct wal_slice paths[CONTENTS];
    static char names[CONTENTS][24];
    struct wal_checkpoint_options options = {.struct_size = sizeof(options)};

    struct kit_work work = begin_counted();

    write_contents(&work, paths, names);
    for (uint32_t i = 0; i < 4; i++) {
        struct wal_error error = KIT_ERROR;
        struct wal_file_cursor *none = NULL;

        options.threads = 1 + 3 * (i & 1);
        options.id = kit_text("c");
        fails_one = i >= 2;
        fails_writes = true;
        assert_int_equal(
            wal_checkpoint_create(work.session, paths, CONTENTS, &options, &none, &error), WAL_EIO);
        assert_null(none);
        fails_writes = false;
        close_counted(&work);
        open_counted(&work);
    }
    close_counted(&work);
}

/* A content comes to a batch that is full, and that cannot be written. */
KIT_TEST(collect__content_after_a_batch_that_fails_is_freed)
{
    struct wal__blob_prepared filling;
    struct wal__blob_prepared writing;
    struct wal__blob_prepared last = {0};
    struct wal__capture capture = {.threads = 1};
    struct wal__capture_job job = {.capture = &capture,
                                   .filling = {.items = &filling},
                                   .writing = {.items = &writing},
                                   .capacity = 1};
    struct wal__content_guard guard = {NULL, 0};
    struct wal_error error = KIT_ERROR;

    struct kit_work work = begin_counted();

    assert_ok(wal__content_guard_enter(&guard, &work.store->core.control, &error));
    capture.env = &work.store->core.env;
    capture.blobs = &work.store->core.blobs;
    assert_int_equal(pthread_mutex_init(&job.mutex, NULL), 0);
    assert_int_equal(pthread_cond_init(&job.batch_written, NULL), 0);
    filling = (struct wal__blob_prepared){0};
    assert_ok(wal__blob_prepare(capture.blobs, (struct wal__span){(const uint8_t *)"first", 5},
                                NULL, WAL__BLOB_OF_RECORDS, &filling, &error));
    job.filling.count = 1;
    assert_ok(wal__blob_prepare(capture.blobs, (struct wal__span){(const uint8_t *)"second", 6},
                                NULL, WAL__BLOB_OF_RECORDS, &last, &error));
    fails_writes = true;
    assert_int_equal(wal__capture_add_content(&job, &last, &error), WAL_EIO);
    fails_writes = false;
    wal__content_guard_leave(&guard);
    assert_int_equal(job.filling.count, 0);
    assert_int_equal(job.writing.count, 0);
    pthread_cond_destroy(&job.batch_written);
    pthread_mutex_destroy(&job.mutex);
    close_counted(&work);
}

/* Each allocation of a checkpoint fails in turn. */
KIT_TEST(collect__missing_memory_frees_the_contents)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options)};
    const struct wal_slice paths[] = {kit_text("a"), kit_text("b"), kit_text("../c"),
                                      kit_text("d")};
    bool has_failed = true;

    struct kit_work work = begin_counted();

    kit_write(&work, "a", "1");
    kit_write(&work, "b", "2");
    kit_write(&work, "d/e", "3");
    options.threads = 1;
    options.id = kit_text("c");
    for (uint64_t n = 1; has_failed; n++) {
        struct wal_file_cursor *checkpoint = NULL;
        enum wal_status status;

        faulty_heap_fail(&heap, n, false);
        status = wal_checkpoint_create(work.session, paths, 4, &options, &checkpoint, NULL);
        wal_file_cursor_close(checkpoint);
        has_failed = atomic_load(&heap.failures) > 0;
        assert_true(status == WAL_OK || (has_failed && status == WAL_ENOMEM));
        faulty_heap_fail(&heap, 0, false);
        if (has_failed) {
            close_counted(&work);
            open_counted(&work);
        }
    }
    assert_string_equal(kit_files(&work, work.session, "c"), "a=1 b=2");
    close_counted(&work);
}
