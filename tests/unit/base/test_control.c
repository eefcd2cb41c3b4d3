/*
 * test_control.c - tests of the lock bytes and the shared page, on the real system: handles of one
 * process lock each other out as processes do.
 */
#include "tests/lib/kit/store_kit.h"

#include <limits.h>
#include <pthread.h>
#include <time.h>

#include "engine/log/locks.h"
#include "format/bytes/assert.h"

enum { APPEND_LOCK = WAL__LOCK_APPEND, TIMEOUT_MS = 20 };

/* Two members of a store in the current directory. */
struct members {
    struct wal__env env;
    struct wal__control first;
    struct wal__control second;
    struct wal_error error;
};

static void end_members(void *arg)
{
    struct members *members = arg;

    if (members->second.env != NULL) {
        wal__control_close(&members->second);
    }
    wal__control_close(&members->first);
}

static struct members *begin(void)
{
    struct members *members = test_memory(sizeof(*members));

    members->env.root[0] = '.';
    members->env.heap = &wal__heap_libc;
    members->env.io = &wal__io_posix;
    members->env.lock_timeout_ms = TIMEOUT_MS;
    members->error = KIT_ERROR;
    test_at_end(end_members, members);
    assert_ok(wal__control_open(&members->first, &members->env, NULL));
    return members;
}

static void join(struct members *members)
{
    assert_ok(wal__control_finish_open(&members->first, NULL));
    assert_ok(wal__control_open(&members->second, &members->env, NULL));
    assert_ok(wal__control_finish_open(&members->second, NULL));
}

KIT_TEST(control__first_process_recovers)
{
    struct members *members = begin();

    assert_true(members->first.is_first_opener);
    assert_int_equal(wal__control_open(&members->second, &members->env, &members->error),
                     WAL_ELOCKED);
    assert_error(&members->error, WAL_ELOCKED, "recovering");
    join(members);
    assert_false(members->first.is_first_opener);
    assert_false(members->second.is_first_opener);
    wal__control_close(&members->second);
    wal__control_close(&members->first);
    assert_ok(wal__control_open(&members->first, &members->env, NULL));
    assert_true(members->first.is_first_opener);
}

/* A process id that is used again is not the owner. */
KIT_TEST(control__owner_with_another_start_is_not_named)
{
    struct members *members = begin();
    struct wal__control_page *page = members->first.page;

    atomic_fetch_add(&page->exclusive_owner.start, 1);
    atomic_fetch_add(&page->open_lock_owner.start, 1);
    assert_int_equal(wal__control_open(&members->second, &members->env, &members->error),
                     WAL_ELOCKED);
    assert_error(&members->error, WAL_ELOCKED, "another process is recovering");
    assert_int_equal(members->error.holder, 0);
}

KIT_TEST(control__processes_share_one_page)
{
    struct members *members = begin();

    join(members);
    atomic_store(&members->first.page->logs[0].written, 4711);
    assert_int_equal(atomic_load(&members->second.page->logs[0].written), 4711);
}

static int in_place_count;

static void set_in_place(void *ctx, struct wal__file *file)
{
    struct wal__io_stat stat;
    int err = 0;

    assert_ok(wal__io_posix.stat(ctx, file, &stat, &err));
    assert_int_equal(stat.size, 0);
    wal__io_posix.set_in_place(ctx, file);
    in_place_count++;
}

/* btrfs would need space to write the page again: a store to it on a full disk would raise SIGBUS.
 * It takes the flag of an empty file only. */
KIT_TEST(control__page_is_written_in_place)
{
    struct wal__io io = wal__io_posix;
    struct members *members = test_memory(sizeof(*members));

    io.set_in_place = set_in_place;
    in_place_count = 0;
    members->env.root[0] = '.';
    members->env.heap = &wal__heap_libc;
    members->env.io = &io;
    members->env.lock_timeout_ms = TIMEOUT_MS;
    assert_ok(wal__control_open(&members->first, &members->env, NULL));
    join(members);
    assert_int_equal(in_place_count, 1);
}

KIT_TEST(control__lock_reports_its_holder)
{
    struct members *members = begin();

    join(members);
    assert_ok(wal__control_lock(&members->first, APPEND_LOCK, 0, NULL));
    assert_int_equal(wal__control_lock(&members->second, APPEND_LOCK, 0, &members->error),
                     WAL_ELOCKED);
    assert_int_equal(members->error.holder, getpid());
    assert_int_equal(members->error.offset, APPEND_LOCK);
    wal__control_unlock(&members->first, APPEND_LOCK, 0);
    assert_ok(wal__control_lock(&members->second, APPEND_LOCK, 0, NULL));
    wal__control_unlock(&members->second, APPEND_LOCK, 0);
}

/* --- waiting for a lock ------------------------------------------------- */

static struct wal__io freeing_io;
static struct members *freeing;
static int waits;

/* Another handle holds the lock, and releases it before this one can sleep. */
static enum wal_status freeing_lock(void *ctx, struct wal__file *file, uint64_t byte,
                                    enum wal__io_lock kind, int *sys_errno)
{
    enum wal_status status = wal__io_posix.lock(ctx, file, byte, kind, sys_errno);

    if (status == WAL_ELOCKED) {
        wal__control_unlock(&freeing->first, APPEND_LOCK, 0);
    }
    return status;
}

/* The second member waits by freeing_io, as it is changed then. */
static struct members *begin_freeing(struct wal__env *env)
{
    struct members *members = begin();

    join(members);
    freeing = members;
    freeing_io = wal__io_posix;
    *env = members->env;
    env->io = &freeing_io;
    members->second.env = env;
    return members;
}

static void counted_wait(void *ctx, const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    waits++;
    wal__io_posix.futex_wait(ctx, word, expected, timeout_ns);
}

KIT_TEST(control__lock_freed_before_sleeping_is_taken)
{
    struct wal__env env;
    struct members *members = begin_freeing(&env);

    freeing_io.lock = freeing_lock;
    freeing_io.futex_wait = counted_wait;
    waits = 0;
    assert_ok(wal__control_lock(&members->first, APPEND_LOCK, 0, NULL));
    assert_ok(wal__control_lock(&members->second, APPEND_LOCK, 0, NULL));
    assert_int_equal(waits, 0);
    wal__control_unlock(&members->second, APPEND_LOCK, 0);
    members->second.env = &members->env;
}

static uint64_t busy_now;

static uint64_t busy_clock(void *ctx)
{
    (void)ctx;
    return busy_now;
}

/* The holder, which has no processor before it says who it is, frees the lock during the wait that
 * `waits` counts down to. */
static void busy_wait(void *ctx, const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    (void)ctx;
    (void)word;
    (void)expected;
    busy_now += timeout_ns;
    if (--waits == 0) {
        wal__control_unlock(&freeing->first, APPEND_LOCK, 0);
    }
}

KIT_TEST(control__holder_without_a_name_is_waited_for_once_more)
{
    struct wal__env env;
    struct members *members = begin_freeing(&env);

    freeing_io.monotonic_ns = busy_clock;
    freeing_io.futex_wait = busy_wait;
    assert_ok(wal__control_lock(&members->first, APPEND_LOCK, 0, NULL));
    atomic_store(&members->first.page->logs[0].append_holder, 0);
    busy_now = 1;
    waits = INT_MAX;
    assert_int_equal(wal__control_lock(&members->second, APPEND_LOCK, 0, &members->error),
                     WAL_ELOCKED);
    assert_error(&members->error, WAL_ELOCKED, "another process holds");
    assert_int_equal(members->error.holder, 0);
    assert_in_range(busy_now, UINT64_C(2000000) * TIMEOUT_MS, UINT64_C(2500000) * TIMEOUT_MS);
    waits = 2 * TIMEOUT_MS / 5 - 1;
    assert_ok(wal__control_lock(&members->second, APPEND_LOCK, 0, NULL));
    assert_int_equal(waits, 0);
    wal__control_unlock(&members->second, APPEND_LOCK, 0);
    members->second.env = &members->env;
}

static uint64_t other_namespace(void *ctx)
{
    (void)ctx;
    return 1;
}

static uint64_t no_process(void *ctx, uint32_t process)
{
    (void)ctx;
    (void)process;
    return 0;
}

/* The process id of the holder is of nobody here, or of another process that is stopped. */
KIT_TEST(control__holder_of_another_namespace_counts_as_running)
{
    struct wal__env env;
    struct members *members = begin_freeing(&env);
    struct wal__control_page *page = members->first.page;

    assert_int_not_equal(atomic_load(&page->process_namespace), 0);
    wal__control_close(&members->second);
    freeing_io.process_namespace = other_namespace;
    freeing_io.process_start_time = no_process;
    freeing_io.monotonic_ns = busy_clock;
    freeing_io.futex_wait = busy_wait;
    assert_ok(wal__control_open(&members->second, &env, NULL));
    assert_ok(wal__control_finish_open(&members->second, NULL));
    assert_int_equal(atomic_load(&page->process_namespace), 0);
    assert_ok(wal__control_lock(&members->first, APPEND_LOCK, 0, NULL));
    busy_now = 1;
    waits = INT_MAX;
    assert_int_equal(wal__control_lock(&members->second, APPEND_LOCK, 0, &members->error),
                     WAL_ELOCKED);
    assert_in_range(busy_now, UINT64_C(20000000) * TIMEOUT_MS, UINT64_C(21000000) * TIMEOUT_MS);
    assert_true(wal__control_start_time(&members->first, 1) == UINT64_MAX);
    members->second.env = &members->env;
}

/* --- the rounds of the sync lock ---------------------------------------- */

enum { SYNC_LOCK = WAL__LOCK_SYNC };

/* The holder seems to be gone: it is not named any more. */
static void take_over(struct members *members)
{
    struct wal__control_log *shared = &members->first.page->logs[0];

    atomic_store(&shared->sync_holder, 0);
    assert_true(wal__control_take_over_sync_lock(&members->second, 0));
    assert_int_equal(atomic_load(&shared->sync_round), 1);
}

KIT_TEST(control__late_unlock_frees_its_own_round)
{
    struct members *members = begin();
    int err = 0;

    join(members);
    assert_ok(wal__control_lock(&members->first, SYNC_LOCK, 0, NULL));
    take_over(members);
    assert_ok(wal__control_lock(&members->second, SYNC_LOCK, 0, NULL));
    wal__control_unlock(&members->first, SYNC_LOCK, 0);
    assert_int_equal(wal__control_try_lock(&members->first, SYNC_LOCK, 0, &err), WAL_ELOCKED);
    wal__control_unlock(&members->second, SYNC_LOCK, 0);
    /* The byte of the first round comes again. */
    atomic_store(&members->first.page->logs[0].sync_round, WAL__SYNC_ROUNDS);
    assert_ok(wal__control_try_lock(&members->second, SYNC_LOCK, 0, &err));
    wal__control_unlock(&members->second, SYNC_LOCK, 0);
}

/* Another process takes the round over while this one locks its byte. */
static enum wal_status overtaken_lock(void *ctx, struct wal__file *file, uint64_t byte,
                                      enum wal__io_lock kind, int *sys_errno)
{
    struct wal__control_log *shared = &freeing->first.page->logs[0];

    if (kind != WAL__IO_LOCK_NONE && waits++ == 0) {
        atomic_fetch_add(&shared->sync_round, 1);
    }
    return wal__io_posix.lock(ctx, file, byte, kind, sys_errno);
}

KIT_TEST(control__round_that_is_over_is_not_kept)
{
    struct members *members = begin();
    struct wal__env env;
    int err = 0;

    join(members);
    freeing = members;
    freeing_io = wal__io_posix;
    freeing_io.lock = overtaken_lock;
    env = members->env;
    env.io = &freeing_io;
    members->second.env = &env;
    waits = 0;
    assert_ok(wal__control_try_lock(&members->second, SYNC_LOCK, 0, &err));
    assert_int_equal(members->second.sync_round[0], 1);
    members->second.env = &members->env;
    assert_int_equal(wal__control_try_lock(&members->first, SYNC_LOCK, 0, &err), WAL_ELOCKED);
    wal__control_unlock(&members->second, SYNC_LOCK, 0);
}

/* A waiter for a position does not need the lock once the position is durable. */
KIT_TEST(control__reached_position_needs_no_lock)
{
    struct members *members = begin();
    const uint64_t turn = WAL__LOCK_SYNC;

    join(members);
    assert_ok(wal__control_lock(&members->first, turn, 0, NULL));
    assert_int_equal(wal__control_lock_unless_durable(&members->second, turn, 0, 10, NULL),
                     WAL_ELOCKED);
    atomic_store(&members->first.page->logs[0].durable, 10);
    assert_int_equal(wal__control_lock_unless_durable(&members->second, turn, 0, 10, NULL),
                     WAL_END);
    assert_int_equal(wal__control_lock_unless_durable(&members->second, turn, 0, 11, NULL),
                     WAL_ELOCKED);
    wal__control_unlock(&members->first, turn, 0);
    assert_ok(wal__control_lock_unless_durable(&members->second, turn, 0, 11, NULL));
    wal__control_unlock(&members->second, turn, 0);
}

/* Closing releases every lock. */
KIT_TEST(control__closing_frees_the_locks)
{
    struct members *members = begin();

    join(members);
    assert_ok(wal__control_lock(&members->first, APPEND_LOCK, 0, NULL));
    wal__control_close(&members->first);
    assert_ok(wal__control_lock(&members->second, APPEND_LOCK, 0, NULL));
    wal__control_unlock(&members->second, APPEND_LOCK, 0);
}

KIT_TEST(control__last_process_detects_that_it_is_last)
{
    struct members *members = begin();

    join(members);
    assert_false(wal__control_try_exclusive(&members->first));
    wal__control_close(&members->second);
    assert_true(wal__control_try_exclusive(&members->first));
    assert_int_equal(wal__control_open(&members->second, &members->env, &members->error),
                     WAL_ELOCKED);
}

static void *unlock_later(void *arg)
{
    struct members *members = arg;
    struct timespec pause = {0, 30000000};

    (void)nanosleep(&pause, NULL);
    wal__control_unlock(&members->first, APPEND_LOCK, 0);
    return NULL;
}

KIT_TEST(control__waiter_acquires_the_lock)
{
    struct members *members = begin();
    pthread_t thread;

    members->env.lock_timeout_ms = 60000;
    join(members);
    assert_ok(wal__control_lock(&members->first, APPEND_LOCK, 0, NULL));
    assert_int_equal(pthread_create(&thread, NULL, unlock_later, members), 0);
    assert_ok(wal__control_lock(&members->second, APPEND_LOCK, 0, NULL));
    assert_int_equal(pthread_join(thread, NULL), 0);
    wal__control_unlock(&members->second, APPEND_LOCK, 0);
}

KIT_TEST(control__reader_follows_writer_or_is_alone)
{
    struct members *members = begin();

    assert_ok(wal__control_finish_open(&members->first, NULL));
    members->env.read_only = true;
    assert_ok(wal__control_open(&members->second, &members->env, NULL));
    assert_false(members->second.is_first_opener);
    atomic_store(&members->first.page->logs[0].written, 4711);
    assert_int_equal(atomic_load(&members->second.page->logs[0].written), 4711);
    assert_false(wal__control_try_exclusive(&members->first));
    assert_ok(wal__control_finish_open(&members->second, NULL));
    assert_true(wal__control_try_exclusive(&members->first));
    wal__control_close(&members->second);
    wal__control_close(&members->first);
    assert_ok(wal__control_open(&members->second, &members->env, NULL));
    assert_true(members->second.is_first_opener);
    assert_ptr_equal(members->second.page, &members->second.private_page);
    assert_true(wal__control_is_same_process(&members->second));
}

/* The only member closes or fails while others are about to join: no process has recovered the
 * state in the page. */
KIT_TEST(control__unrecovered_page_is_rejected)
{
    struct members *members = begin();
    const struct wal__io *io = members->env.io;
    int err = 0;

    assert_ok(
        io->lock(io->ctx, members->first.file, WAL__LOCK_PARTICIPANT, WAL__IO_LOCK_SHARED, &err));
    /* It keeps the open lock: no other process opens the store. */
    assert_int_equal(wal__control_open(&members->second, &members->env, &members->error),
                     WAL_ELOCKED);
    assert_ok(io->lock(io->ctx, members->first.file, WAL__LOCK_OPEN, WAL__IO_LOCK_NONE, &err));
    assert_int_equal(wal__control_open(&members->second, &members->env, &members->error),
                     WAL_ECORRUPT);
    members->env.read_only = true;
    assert_ok(wal__control_open(&members->second, &members->env, NULL));
    assert_true(members->second.is_first_opener);
    assert_ptr_equal(members->second.page, &members->second.private_page);
    wal__control_close(&members->second);
    members->env.read_only = false;
    wal__control_close(&members->first);
    assert_ok(wal__control_open(&members->second, &members->env, NULL));
    assert_true(members->second.is_first_opener);
}

/* --- a page that was left ----------------------------------------------- */

/* Changes to a page, as the next process to open finds them. */
enum found {
    FOUND_AS_LEFT,
    FOUND_OF_ANOTHER_BOOT,
    FOUND_OF_ANOTHER_DEVICE,
    FOUND_OF_ANOTHER_FILE,
    FOUND_WITHOUT_MAGIC,
    FOUND_OF_ANOTHER_VERSION,
    FOUND_KINDS
};

static void change_page(struct wal__control_page *page, enum found found)
{
    page->boot_id[0] ^= found == FOUND_OF_ANOTHER_BOOT;
    page->device += found == FOUND_OF_ANOTHER_DEVICE;
    page->inode += found == FOUND_OF_ANOTHER_FILE;
    page->version += found == FOUND_OF_ANOTHER_VERSION;
    if (found == FOUND_WITHOUT_MAGIC) {
        atomic_store(&page->magic, 0);
    }
}

/* A page with the state of an active writer, which then dies. */
static void leave_page(struct members *members, enum found found)
{
    struct wal__control_page *page = members->first.page;
    struct wal__control_log *stream = &page->logs[0];

    assert_ok(wal__control_finish_open(&members->first, NULL));
    atomic_store(&stream->poison, 0); /* it has recovered */
    atomic_store(&stream->written, 5000);
    atomic_store(&stream->durable, 4000);
    atomic_store(&stream->indexed_tail_id, 3);
    atomic_store(&stream->closed_segment_id, 3);
    atomic_store(&stream->append_holder, 4711);
    atomic_store(&stream->sync_holder, 4711);
    atomic_store(&stream->wait_words[WAL__WAIT_APPEND].waiters, 7);
    atomic_store(&page->claims[0].start, 4711);
    change_page(page, found);
    wal__control_close(&members->first);
}

/* Nothing of it is trusted except the durable end, if it is of this boot and file. */
KIT_TEST(control__stale_page_is_rejected)
{
    for (enum found found = 0; found < FOUND_KINDS; found++) {
        struct members *members = begin();
        struct wal__control_log *stream;
        bool doubt = found > FOUND_OF_ANOTHER_BOOT;

        leave_page(members, found);
        assert_ok(wal__control_open(&members->first, &members->env, NULL));
        stream = &members->first.page->logs[0];
        assert_true(members->first.is_first_opener);
        assert_int_equal(members->first.lock_file_replaced, doubt);
        assert_int_equal(atomic_load(&stream->written), 0);
        assert_int_equal(atomic_load(&stream->durable), found == FOUND_AS_LEFT ? 4000 : 0);
        assert_int_equal(atomic_load(&stream->indexed_tail_id), 0);
        assert_int_equal(atomic_load(&stream->closed_segment_id), 0);
        assert_int_equal(atomic_load(&stream->is_recovered), 0);
        assert_int_equal(atomic_load(&stream->append_holder), 0);
        assert_int_equal(atomic_load(&stream->sync_holder), 0);
        assert_int_equal(atomic_load(&stream->poison) >> 32,
                         doubt ? WAL__POISON_UNKNOWN : WAL__POISON_NONE);
        assert_int_equal(atomic_load(&stream->wait_words[WAL__WAIT_APPEND].waiters), 0);
        assert_int_equal(atomic_load(&members->first.page->claims[0].start), 0);
        wal__control_close(&members->first);
        assert_int_equal(unlink("LOCK"), 0);
    }
}

/* A holder of the participant lock alone does not make the page valid. */
KIT_TEST(control__page_of_another_store_is_rejected)
{
    for (enum found found = 1; found < FOUND_KINDS; found++) {
        struct members *members = begin();

        assert_ok(wal__control_finish_open(&members->first, NULL));
        change_page(members->first.page, found);
        assert_int_equal(wal__control_open(&members->second, &members->env, &members->error),
                         WAL_ECORRUPT);
        assert_error(&members->error, WAL_ECORRUPT, "not of this boot and file");
        wal__control_close(&members->first);
        assert_int_equal(unlink("LOCK"), 0);
    }
}
