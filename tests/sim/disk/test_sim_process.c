/*
 * test_sim_process.c - deaths of simulated processes, faults that strike their
 * calls, counters and trace.
 */
#include <errno.h>

#include "tests/sim/disk/sim_fixture.h"

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

    sim_process_add_fault(m->process,
                          &(struct sim_fault){.call = SIM_PWRITEV,
                                              .after = 1,
                                              .effect = SIM_KILL_BEFORE,
                                              .put = 3});
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

    sim_process_add_fault(m->process,
                          &(struct sim_fault){.effect = SIM_KILL_AFTER});
    assert_int_equal(
        m->io->open(m->io->ctx, "a", WAL__IO_CREATE, &file, &m->error),
        WAL_EIO);
    assert_null(file);
    assert_true(sim_file_exists(m->disk, "a"));
}

SIM_TEST(sim_process__kill_before_a_call_prevents_it)
{
    struct machine *m = *state;

    sim_process_add_fault(m->process,
                          &(struct sim_fault){.effect = SIM_KILL_BEFORE});
    assert_int_equal(m->io->make_directory(m->io->ctx, "a", &m->error),
                     WAL_EIO);
    assert_false(sim_file_exists(m->disk, "a"));
}

static void jump(void *arg)
{
    longjmp(*(jmp_buf *)arg, 1);
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
    sim_process_on_death(m->process, jump, &target);
    sim_process_add_fault(m->process,
                          &(struct sim_fault){.call = SIM_MAKE_DIRECTORY,
                                              .effect = SIM_KILL_AFTER});
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

    sim_process_add_fault(m->process, &(struct sim_fault){.call = SIM_SYNC,
                                                          .path = "dir",
                                                          .after = 1,
                                                          .sys_errno = EDQUOT});
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

    sim_process_add_fault(
        m->process,
        &(struct sim_fault){.after = 1, .sticky = true, .sys_errno = EIO});
    assert_ok(m->io->stat(m->io->ctx, file, &stat, &m->error));
    assert_int_equal(m->io->stat(m->io->ctx, file, &stat, &m->error), WAL_EIO);
    assert_int_equal(m->io->path_stat(m->io->ctx, "a", &stat, &m->error),
                     WAL_EIO);
    close_file(m, file);
    sim_process_clear_faults(m->process);
    assert_ok(m->io->path_stat(m->io->ctx, "a", &stat, &m->error));
}

SIM_TEST(sim_process__short_write_succeeds_with_fewer_bytes)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    size_t put = 0;

    sim_process_add_fault(m->process,
                          &(struct sim_fault){.call = SIM_PWRITEV, .put = 2});
    assert_ok(try_write(m, file, "abcd", 0, &put));
    assert_int_equal(put, 2);
    expect_content(m->disk, "a", "ab");
}

SIM_TEST(sim_process__failed_write_may_write_bytes)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");
    size_t put = 99;

    sim_process_add_fault(
        m->process,
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
