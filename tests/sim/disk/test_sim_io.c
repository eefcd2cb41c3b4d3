/*
 * test_sim_io.c - the simulated machine's files, locks, clocks and copies.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/sim/disk/sim_fixture.h"

/* ------------------------------------------------------------- files --- */

SIM_TEST(sim_io__written_bytes_are_read)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    struct iovec iov[] = {{.iov_base = (char[]){"one"}, .iov_len = 3},
                          {.iov_base = NULL, .iov_len = 0},
                          {.iov_base = (char[]){"two"}, .iov_len = 3}};
    char data[16];
    size_t count;

    assert_ok(m->io->pwritev(m->io->ctx, file, iov, 3, 2, &count, &m->error));
    assert_int_equal(count, 6);
    assert_ok(m->io->pread(m->io->ctx, file, data, sizeof(data), 0, &count, &m->error));
    assert_int_equal(count, 8);
    assert_memory_equal(data, "\0\0onetwo", 8);
    assert_ok(m->io->pread(m->io->ctx, file, data, 4, 8, &count, &m->error));
    assert_int_equal(count, 0);
}

SIM_TEST(sim_io__file_opened_to_read_refuses_writes)
{
    struct machine *m = *state;
    size_t put = 99;

    close_file(m, make(m, "a"));

    struct wal__file *file = open_on(m->io, "a", 0);

    assert_int_equal(try_write(m, file, "x", 0, &put), WAL_EIO);
    assert_int_equal(m->error, EBADF);
    assert_int_equal(put, 99);
}

SIM_TEST(sim_io__map_shows_writes_and_outlives_the_file)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    void *at = NULL;

    assert_ok(m->io->allocate(m->io->ctx, file, 8192, &m->error));
    assert_ok(m->io->map(m->io->ctx, file, 8192, false, &at, &m->error));
    write_text(m, file, "hello", 4096);
    assert_memory_equal((char *)at + 4096, "hello", 5);
    assert_ok(m->io->allocate(m->io->ctx, file, 1 << 20, &m->error));
    close_file(m, file);
    assert_ok(m->io->unlink(m->io->ctx, "a", &m->error));
    assert_memory_equal((char *)at + 4096, "hello", 5);
    m->io->unmap(m->io->ctx, at, 8192);
}

static enum wal_status populate(struct machine *m, const void *at, uint64_t size)
{
    return m->io->populate(m->io->ctx, at, size, &m->error);
}

SIM_TEST(sim_io__bad_bytes_cannot_be_populated)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    void *at = NULL;

    assert_ok(m->io->allocate(m->io->ctx, file, 16384, &m->error));
    assert_ok(m->io->map(m->io->ctx, file, 16384, false, &at, &m->error));
    assert_ok(populate(m, at, 16384));
    sim_file_add_bad_range(m->disk, "a", 8192 + 512, 512);
    assert_ok(populate(m, at, 8192));
    assert_ok(populate(m, (char *)at + 12288, 4096));
    assert_int_equal(populate(m, (char *)at + 8192, 4096), WAL_EIO);
    assert_int_equal(m->error, EIO);
    assert_int_equal(populate(m, at, 16384), WAL_EIO);
    fail_next(m, SIM_POPULATE, false);
    assert_int_equal(populate(m, at, 4096), WAL_EIO);
    sim_disk_set_populates(m->disk, false);
    assert_int_equal(populate(m, at, 4096), WAL_EINVAL);
}

SIM_TEST(sim_io__map_past_the_end_is_refused)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    void *at = NULL;

    write_text(m, file, "hello", 0);
    assert_int_equal(m->io->map(m->io->ctx, file, 6, false, &at, &m->error), WAL_EIO);
    assert_int_equal(m->error, ENXIO);
    assert_null(at);
}

SIM_TEST(sim_io__sparse_files_cost_no_memory)
{
    struct machine *m = *state;
    char path[16];

    /* 64 GiB in all. */
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(path, sizeof(path), "%d", i);

        struct wal__file *file = make(m, path);

        assert_ok(m->io->allocate(m->io->ctx, file, 64 << 20, &m->error));
        write_text(m, file, "x", (64 << 20) - 1);
        close_file(m, file);
    }
    assert_int_equal(sim_file_size(m->disk, "999"), 64 << 20);
}

SIM_TEST(sim_io__disk_limit_returns_no_space)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    size_t put = 0;

    sim_disk_set_limit(m->disk, 8192);
    assert_int_equal(m->io->allocate(m->io->ctx, file, 8193, &m->error), WAL_ENOSPACE);
    assert_ok(m->io->allocate(m->io->ctx, file, 4096, &m->error));
    write_text(m, file, "within what is reserved", 0);

    struct wal__file *other = make(m, "b");

    assert_ok(try_write(m, other, "short", 4094, &put));
    assert_int_equal(put, 2);
    assert_int_equal(try_write(m, other, "none", 4096, &put), WAL_ENOSPACE);
    assert_int_equal(m->error, ENOSPC);
    assert_int_equal(sim_disk_used_bytes(m->disk), 8192);
    sim_disk_set_limit(m->disk, 0);
    write_text(m, other, "again", 4096);
}

SIM_TEST(sim_io__read_only_disk_refuses_changes)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");

    close_file(m, file);
    sim_disk_set_read_only(m->disk, true);
    assert_int_equal(m->io->open(m->io->ctx, "a", WAL__IO_WRITE, &file, &m->error), WAL_EREADONLY);
    assert_int_equal(m->io->open(m->io->ctx, "b", WAL__IO_CREATE, &file, &m->error), WAL_EREADONLY);
    assert_int_equal(m->io->unlink(m->io->ctx, "a", &m->error), WAL_EREADONLY);
    assert_int_equal(m->io->rename(m->io->ctx, "a", "b", &m->error), WAL_EREADONLY);
    assert_int_equal(m->io->make_directory(m->io->ctx, "d", &m->error), WAL_EREADONLY);
    close_file(m, open_on(m->io, "a", 0));
}

SIM_TEST(sim_io__spoiled_range_is_a_read_error)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    char data[16];
    size_t got = 99;

    write_text(m, file, "0123456789", 0);
    sim_file_add_bad_range(m->disk, "a", 4, 2);
    assert_int_equal(m->io->pread(m->io->ctx, file, data, 10, 5, &got, &m->error), WAL_EIO);
    assert_int_equal(m->error, EIO);
    assert_int_equal(got, 99);
    assert_ok(m->io->pread(m->io->ctx, file, data, 10, 0, &got, &m->error));
    assert_int_equal(got, 4);
    assert_ok(m->io->pread(m->io->ctx, file, data, 10, 6, &got, &m->error));
    assert_int_equal(got, 4);
    sim_file_clear_bad_ranges(m->disk, "a");
    assert_ok(m->io->pread(m->io->ctx, file, data, 10, 0, &got, &m->error));
    assert_int_equal(got, 10);
}

/* ------------------------------------------------------------- locks --- */

SIM_TEST(sim_io__locks_belong_to_the_handle)
{
    struct machine *m = *state;
    struct wal__file *a = make(m, "lock");
    struct wal__file *b = make(m, "lock");

    assert_ok(lock(m, a, 7, WAL__IO_LOCK_EXCLUSIVE));
    assert_int_equal(lock(m, b, 7, WAL__IO_LOCK_EXCLUSIVE), WAL_ELOCKED);
    assert_int_equal(lock(m, b, 7, WAL__IO_LOCK_SHARED), WAL_ELOCKED);
    assert_ok(lock(m, b, 8, WAL__IO_LOCK_EXCLUSIVE));
    /* Its own lock is no obstacle: it is converted. */
    assert_ok(lock(m, a, 7, WAL__IO_LOCK_SHARED));
    assert_ok(lock(m, b, 7, WAL__IO_LOCK_SHARED));
    assert_int_equal(lock(m, a, 7, WAL__IO_LOCK_EXCLUSIVE), WAL_ELOCKED);
    assert_ok(lock(m, b, 7, WAL__IO_LOCK_NONE));
    assert_ok(lock(m, a, 7, WAL__IO_LOCK_EXCLUSIVE));
    /* Another handle's close frees nothing of this one. */
    close_file(m, make(m, "lock"));
    assert_int_equal(lock(m, b, 7, WAL__IO_LOCK_SHARED), WAL_ELOCKED);
    close_file(m, a);
    assert_ok(lock(m, b, 7, WAL__IO_LOCK_EXCLUSIVE));
}

/* ------------------------------------------------------------ clocks --- */

static void wake_up(void *arg)
{
    *(uint32_t *)arg += 1;
}

SIM_TEST(sim_io__waiting_takes_simulated_time)
{
    struct machine *m = *state;
    uint32_t word = 5;
    uint64_t before = m->io->monotonic_ns(m->io->ctx);
    int64_t now = m->io->now_ms(m->io->ctx);

    m->io->futex_wait(m->io->ctx, &word, 5, 20000000);
    assert_in_range(m->io->monotonic_ns(m->io->ctx) - before, 20000000, 20100000);
    assert_in_range(m->io->now_ms(m->io->ctx) - now, 20, 21);
    m->io->futex_wait(m->io->ctx, &word, 6, 20000000);
    assert_in_range(m->io->monotonic_ns(m->io->ctx) - before, 20000000, 20100000);
    sim_process_on_wait(m->process, wake_up, &word);
    m->io->futex_wait(m->io->ctx, &word, 5, UINT64_MAX);
    assert_int_equal(word, 6);
    assert_in_range(m->io->monotonic_ns(m->io->ctx) - before, 20000000, 20100000);
    sim_disk_step_clock(m->disk, -3600000);
    assert_true(m->io->now_ms(m->io->ctx) < now);
    assert_true(m->io->monotonic_ns(m->io->ctx) > before);
    assert_false(m->io->threads);
}

/* ------------------------------------------------------------ copies --- */

SIM_TEST(sim_io__clone_is_independent)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");

    write_text(m, file, "before", 0);

    struct sim_disk *clone = sim_disk_clone(m->disk);
    struct sim_process *process = sim_process_create(clone);
    struct machine other = {.disk = clone, .process = process, .io = sim_process_io(process)};

    write_text(m, file, "BEFORE", 0);
    expect_content(clone, "a", "before");
    assert_false(sim_file_is_durable(clone, "a", 0, 6));
    write_text(&other, make(&other, "a"), "other!", 0);
    close_file(&other, make(&other, "new"));
    expect_content(m->disk, "a", "BEFORE");
    assert_false(sim_file_exists(m->disk, "new"));
    sim_disk_destroy(clone);
}

SIM_TEST(sim_io__flip_changes_one_bit)
{
    struct machine *m = *state;

    sim_disk_write_file(m->disk, "/d/e/a", "abc", 3);
    sim_file_flip_bit(m->disk, "/d/e/a", 1, 0);
    expect_content(m->disk, "d/e/a", "acc");
    assert_true(sim_file_is_durable(m->disk, "/d/e/a", 0, 3));
}

SIM_TEST(sim_io__directory_survives_dump_and_load)
{
    struct machine *m = *state;
    struct sim_disk *copy = sim_disk_create(2);
    char real[] = "dump-XXXXXX";
    static const uint8_t zeros[20000];
    uint8_t *data;
    size_t size;

    sim_disk_write_file(m->disk, "/s/MANIFEST", "manifest", 8);
    sim_disk_write_file(m->disk, "/s/log/1.seg", zeros, sizeof(zeros));
    sim_disk_write_file(m->disk, "/s/log/deep/2", "", 0);
    sim_file_flip_bit(m->disk, "/s/log/1.seg", 19999, 7);
    assert_non_null(mkdtemp(real));
    assert_true(sim_disk_dump(m->disk, "/s", real));
    assert_true(sim_disk_load(copy, "/t", real));
    expect_content(copy, "/t/MANIFEST", "manifest");
    expect_content(copy, "/t/log/deep/2", "");
    sim_disk_read_file(copy, "/t/log/1.seg", &data, &size);
    assert_int_equal(size, 20000);
    assert_memory_equal(data, zeros, 19999);
    assert_int_equal(data[19999], 128);
    free(data);
    assert_true(sim_file_is_durable(copy, "/t/log/1.seg", 0, 20000));
    assert_false(sim_disk_load(copy, "/u", "no/such/folder"));
    sim_disk_destroy(copy);
}

/* --- sim names ----------------------------------------------------------- */

/*
 * What a power loss and a failed directory sync do to the names of the simulated disk.
 */

SIM_TEST(sim_names__new_name_waits_for_its_directory)
{
    struct machine *m = *state;
    struct wal__file *file;

    assert_ok(m->io->make_directory(m->io->ctx, "s", &m->error));
    file = make(m, "s/a");
    write_text(m, file, "hello", 0);
    assert_ok(sync_file(m, file));
    expect_after_power_loss(m, SIM_PERSIST_NONE, "s/a", NULL);
    expect_after_power_loss(m, SIM_PERSIST_ALL, "s/a", "hello");
    /* The file's name is nothing without that of its directory. */
    sync_dir(m, "s");
    assert_false(sim_file_is_durable(m->disk, "s/a", 0, 5));
    expect_after_power_loss(m, SIM_PERSIST_NONE, "s/a", NULL);
    sync_dir(m, "/");
    assert_true(sim_file_is_durable(m->disk, "s/a", 0, 5));
    expect_after_power_loss(m, SIM_PERSIST_NONE, "s/a", "hello");
}

SIM_TEST(sim_names__lost_directory_loses_its_files)
{
    struct machine *m = *state;
    struct wal__file *file;

    assert_ok(m->io->make_directory(m->io->ctx, "s", &m->error));
    assert_ok(m->io->make_directory(m->io->ctx, "s/log", &m->error));
    file = make(m, "s/log/a");
    sync_dir(m, "s");
    sync_dir(m, "s/log");
    assert_ok(m->io->allocate(m->io->ctx, file, 8192, &m->error));
    assert_ok(sync_file(m, file));

    struct sim_disk *copy = power_loss(m, SIM_PERSIST_NONE, 1);

    assert_false(sim_file_exists(copy, "s"));
    assert_int_equal(sim_disk_used_bytes(copy), 0);
    sim_disk_destroy(copy);
}

SIM_TEST(sim_names__rename_leaves_the_old_or_the_new)
{
    struct machine *m = *state;
    int kept = 0;

    sim_disk_write_file(m->disk, "a", "old", 3);
    sim_disk_write_file(m->disk, "a.new", "new", 3);
    assert_ok(m->io->rename(m->io->ctx, "a.new", "a", &m->error));
    expect_content(m->disk, "a", "new");
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_disk *copy = power_loss(m, SIM_PERSIST_ANY, seed);
        bool is_old = sim_file_exists(copy, "a.new");

        expect_content(copy, "a", is_old ? "old" : "new");
        kept += is_old;
        sim_disk_destroy(copy);
    }
    assert_in_range(kept, SEEDS / 10, SEEDS - SEEDS / 10);
    sync_dir(m, "/");
    expect_after_power_loss(m, SIM_PERSIST_NONE, "a", "new");
    expect_after_power_loss(m, SIM_PERSIST_NONE, "a.new", NULL);
}

SIM_TEST(sim_names__unlinked_file_may_reappear)
{
    struct machine *m = *state;

    sim_disk_write_file(m->disk, "a", "old", 3);
    assert_ok(m->io->unlink(m->io->ctx, "a", &m->error));
    close_file(m, make(m, "a"));
    expect_after_power_loss(m, SIM_PERSIST_NONE, "a", "old");
    expect_after_power_loss(m, SIM_PERSIST_ALL, "a", "");
    sync_dir(m, "/");
    expect_after_power_loss(m, SIM_PERSIST_NONE, "a", "");
}

SIM_TEST(sim_names__failed_directory_sync_loses_names)
{
    struct machine *m = *state;

    sim_disk_write_file(m->disk, "a", "old", 3);
    assert_ok(m->io->rename(m->io->ctx, "a", "b", &m->error));
    fail_next(m, SIM_SYNC_DIRECTORY, false);
    assert_int_equal(m->io->sync_directory(m->io->ctx, "/", &m->error), WAL_EIO);
    sync_dir(m, "/");
    assert_false(sim_file_is_durable(m->disk, "b", 0, 3));
    expect_after_power_loss(m, SIM_PERSIST_ALL, "a", "old");
    expect_after_power_loss(m, SIM_PERSIST_ALL, "b", NULL);
}

/* --- sim process --------------------------------------------------------- */

/*
 * Deaths of simulated processes, faults that strike their calls, counters and trace.
 */

/* --------------------------------------------------------- processes --- */

SIM_TEST(sim_process__kill_frees_locks_and_keeps_content)
{
    struct machine *m = *state;
    struct sim_process *second = sim_process_create(m->disk);
    const struct wal__io *io = sim_process_io(second);
    uint32_t id = m->io->process_id(m->io->ctx);
    struct wal__file *mine = make(m, "a");
    struct wal__file *other = open_on(io, "a", WAL__IO_WRITE);
    void *page = NULL;
    void *shared = NULL;
    size_t put;

    write_text(m, mine, "written", 0);
    assert_ok(lock(m, mine, 0, WAL__IO_LOCK_EXCLUSIVE));
    assert_ok(m->io->map(m->io->ctx, mine, 7, true, &page, &m->error));
    assert_ok(io->map(io->ctx, other, 7, true, &shared, &m->error));
    ((char *)page)[0] = 'W';
    assert_int_not_equal(io->process_start_time(io->ctx, id), 0);
    sim_process_kill(m->process);

    assert_int_equal(io->process_start_time(io->ctx, id), 0);
    assert_memory_equal(shared, "Written", 7);
    assert_ok(io->lock(io->ctx, other, 0, WAL__IO_LOCK_EXCLUSIVE, &m->error));
    assert_int_equal(try_write(m, mine, "x", 0, &put), WAL_EIO);
    assert_int_equal(sync_file(m, mine), WAL_EIO);
    m->io->unmap(m->io->ctx, page, 7);
    close_file(m, mine);
    expect_content(m->disk, "a", "Written");
    assert_false(sim_file_is_durable(m->disk, "a", 0, 7));
}

SIM_TEST(sim_process__kill_inside_a_write_tears_it)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    size_t put = 99;

    sim_process_add_fault(
        m->process,
        &(struct sim_fault){.call = SIM_PWRITEV, .after = 1, .effect = SIM_KILL_BEFORE, .put = 3});
    write_text(m, file, "whole ", 0);
    assert_int_equal(try_write(m, file, "partly", 6, &put), WAL_EIO);
    assert_int_equal(put, 99);
    assert_true(sim_process_is_dead(m->process));
    expect_content(m->disk, "a", "whole par");
}

SIM_TEST(sim_process__kill_after_a_call_keeps_its_effect)
{
    struct machine *m = *state;
    struct wal__file *file = NULL;

    sim_process_add_fault(m->process, &(struct sim_fault){.effect = SIM_KILL_AFTER});
    assert_int_equal(m->io->open(m->io->ctx, "a", WAL__IO_CREATE, &file, &m->error), WAL_EIO);
    assert_null(file);
    assert_true(sim_file_exists(m->disk, "a"));
}

SIM_TEST(sim_process__kill_before_a_call_prevents_it)
{
    struct machine *m = *state;

    sim_process_add_fault(m->process, &(struct sim_fault){.effect = SIM_KILL_BEFORE});
    assert_int_equal(m->io->make_directory(m->io->ctx, "a", &m->error), WAL_EIO);
    assert_false(sim_file_exists(m->disk, "a"));
}

static enum wal_status make_another(void *arg, const char *name)
{
    struct machine *m = arg;

    (void)name;
    return m->io->make_directory(m->io->ctx, "another", &m->error);
}

SIM_TEST(sim_process__death_may_longjmp_out_of_a_call)
{
    struct machine *m = *state;
    jmp_buf target;

    close_file(m, make(m, "a"));
    close_file(m, make(m, "b"));
    sim_process_on_death(m->process, sim_jump, &target);
    sim_process_add_fault(
        m->process, &(struct sim_fault){.call = SIM_MAKE_DIRECTORY, .effect = SIM_KILL_AFTER});
    if (setjmp(target) == 0) {
        (void)m->io->list(m->io->ctx, "/", make_another, m, &m->error);
        fail_msg("the call came back");
    }
    assert_true(sim_process_is_dead(m->process));
}

/* ------------------------------------------------------------ faults --- */

SIM_TEST(sim_process__fault_fails_the_nth_call_once)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "dir.a");
    struct wal__file *other = make(m, "b");

    sim_process_add_fault(
        m->process,
        &(struct sim_fault){.call = SIM_SYNC, .path = "dir", .after = 1, .sys_errno = EDQUOT});
    assert_ok(sync_file(m, file));
    assert_ok(sync_file(m, other));
    assert_int_equal(sync_file(m, file), WAL_ENOSPACE);
    assert_int_equal(m->error, EDQUOT);
    assert_ok(sync_file(m, file));
    assert_int_equal(sim_process_counts(m->process)->faults, 1);
}

SIM_TEST(sim_process__sticky_fault_fails_all_later_calls)
{
    struct machine *m = *state;
    struct wal__io_stat stat;
    struct wal__file *file = make(m, "a");

    sim_process_add_fault(m->process,
                          &(struct sim_fault){.after = 1, .sticky = true, .sys_errno = EIO});
    assert_ok(m->io->stat(m->io->ctx, file, &stat, &m->error));
    assert_int_equal(m->io->stat(m->io->ctx, file, &stat, &m->error), WAL_EIO);
    assert_int_equal(m->io->path_stat(m->io->ctx, "a", &stat, &m->error), WAL_EIO);
    close_file(m, file);
    sim_process_clear_faults(m->process);
    assert_ok(m->io->path_stat(m->io->ctx, "a", &stat, &m->error));
}

SIM_TEST(sim_process__short_write_succeeds_with_fewer_bytes)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    size_t put = 0;

    sim_process_add_fault(m->process, &(struct sim_fault){.call = SIM_PWRITEV, .put = 2});
    assert_ok(try_write(m, file, "abcd", 0, &put));
    assert_int_equal(put, 2);
    expect_content(m->disk, "a", "ab");
}

SIM_TEST(sim_process__failed_write_may_write_bytes)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    size_t put = 99;

    sim_process_add_fault(m->process,
                          &(struct sim_fault){.call = SIM_PWRITEV, .sys_errno = EIO, .put = 2});
    assert_int_equal(try_write(m, file, "abcd", 0, &put), WAL_EIO);
    assert_int_equal(put, 99);
    assert_false(sim_process_is_dead(m->process));
    expect_content(m->disk, "a", "ab");
}

/* -------------------------------------------------- counts and trace --- */

struct trace {
    struct sim_disk *disk;
    int count;
    struct sim_event last;
    bool was_durable;
};

static void note(void *arg, const struct sim_event *event)
{
    struct trace *trace = arg;

    trace->count++;
    trace->last = *event;
    trace->was_durable = sim_file_is_durable(trace->disk, "/a", 0, 5);
}

SIM_TEST(sim_process__trace_and_counts_include_every_call)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    const struct sim_counts *counts = sim_process_counts(m->process);
    struct trace trace = {.disk = m->disk};

    assert_ok(m->io->sync_directory(m->io->ctx, "/", &m->error));
    sim_disk_on_call(m->disk, note, &trace);
    write_text(m, file, "hello", 0);
    assert_int_equal(trace.last.call, SIM_PWRITEV);
    assert_int_equal(trace.last.done, 5);
    assert_string_equal(trace.last.path, "a");
    assert_false(trace.was_durable);
    assert_ok(sync_file(m, file));
    assert_int_equal(trace.last.call, SIM_SYNC);
    assert_true(trace.was_durable);
    assert_int_equal(m->io->unlink(m->io->ctx, "b", &m->error), WAL_ENOTFOUND);
    assert_int_equal(trace.last.sys_errno, ENOENT);
    assert_int_equal(trace.count, 3);
    assert_int_equal(counts->calls[SIM_PWRITEV], 1);
    assert_int_equal(counts->calls[SIM_SYNC], 1);
    assert_int_equal(counts->calls[SIM_ANY], 5);
    assert_int_equal(counts->bytes_written, 5);
    assert_string_equal(sim_call_name(SIM_SYNC), "sync");
}
