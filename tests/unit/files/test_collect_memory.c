/*
 * test_collect_memory.c - captures that fail, for want of memory or because
 * contents cannot be written, free all that they prepared (SPEC.md 5.13).
 */
#include "tests/lib/kit/checkpoint_kit.h"

#include <time.h>

#include "engine/base/io.h"
#include "engine/files/capture.h"
#include "engine/log/locks.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "tests/lib/faulty_heap.h"

static struct wal__io io;
static struct faulty_heap heap;
static bool fails_writes;

static enum wal_status write_unless(void *ctx, struct wal__file *file,
                                    const struct iovec *iov, int count,
                                    uint64_t offset, size_t *put,
                                    int *sys_errno)
{
    if (fails_writes) {
        const struct timespec pause = {0, 300000000};

        (void)nanosleep(&pause, NULL); /* the next batch fills meanwhile */
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
    assert_ok(wal__store_open("store", &options, &heap.heap, &io, &work->store,
                              NULL));
    work->session = kit_session(work->store, "s");
}

/* All memory has come back. */
static void close_counted(struct kit_work *work)
{
    wal_session_close(work->session);
    (void)wal_close(work->store, NULL);
    assert_int_equal(atomic_load(&heap.live), 0);
}

static struct kit_work begin(void)
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

static void write_contents(struct kit_work *work, struct wal_slice *paths,
                           char (*names)[24])
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

/* Contents that are prepared, and cannot be put, are freed. */
KIT_TEST(collect__failed_write_frees_the_contents)
{
    static struct wal_slice paths[CONTENTS];
    static char names[CONTENTS][24];
    struct wal_checkpoint_options options = {.struct_size = sizeof(options)};

    struct kit_work work = begin();

    write_contents(&work, paths, names);
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        struct wal_error error = KIT_ERROR;

        options.threads = threads;
        options.id = kit_text("c");
        fails_writes = true;
        assert_int_equal(wal_checkpoint_create(work.session, paths, CONTENTS,
                                               &options, NULL, &error),
                         WAL_EIO);
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

    struct kit_work work = begin();

    assert_ok(
        wal__content_guard_enter(&guard, &work.store->core.control, &error));
    capture.env = &work.store->core.env;
    capture.blobs = &work.store->core.blobs;
    assert_int_equal(pthread_mutex_init(&job.mutex, NULL), 0);
    assert_int_equal(pthread_cond_init(&job.batch_written, NULL), 0);
    filling = (struct wal__blob_prepared){0};
    assert_ok(wal__blob_prepare(capture.blobs,
                                (struct wal__span){(const uint8_t *)"first", 5},
                                NULL, WAL__BLOB_OF_RECORDS, &filling, &error));
    job.filling.count = 1;
    assert_ok(wal__blob_prepare(
        capture.blobs, (struct wal__span){(const uint8_t *)"second", 6}, NULL,
        WAL__BLOB_OF_RECORDS, &last, &error));
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
    const struct wal_slice paths[] = {kit_text("a"), kit_text("b")};
    bool has_failed = true;

    struct kit_work work = begin();

    kit_write(&work, "a", "1");
    kit_write(&work, "b", "2");
    options.threads = 1;
    options.id = kit_text("c");
    for (uint64_t n = 1; has_failed; n++) {
        enum wal_status status;

        faulty_heap_fail(&heap, n, false);
        status =
            wal_checkpoint_create(work.session, paths, 2, &options, NULL, NULL);
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
