/*
 * test_inherit.c - an append after what a process that died has left at the
 * end of the log (SPEC.md 4.3), where that cannot be read: nothing is written
 * over it.
 */
#include "tests/lib/test.h"
#include "tests/sim/recovery/recover_fixture.h"

/* Two processes append, and the first one dies in the middle of a write. */
static void kill_in_a_write(struct workload *w)
{
    ledger_set_context("test_inherit");
    assert_ok(workload_open(w, 0));
    assert_ok(workload_add_session(w, 0));
    assert_ok(workload_open(w, 1));
    assert_ok(workload_append(w, 1, 0, WAL_DURABLE, 40));
    sim_process_add_fault(w->actors[0].process,
                          &(struct sim_fault){.call = SIM_PWRITEV,
                                              .path = ".seg",
                                              .put = 500,
                                              .effect = SIM_KILL_BEFORE});
    if (setjmp(w->death) == 0) {
        (void)workload_append(w, 0, 0, WAL_DURABLE, 3000);
    }
    workload_kill(w, 0);
    workload_free_call(w);
    assert_true(w->died);
    w->died = false;
}

/* A process dies in the middle of a write; another cannot read what it left. */
TEST(inherit__unreadable_end_is_not_empty)
{
    struct workload *w = workload_create(&(struct workload_options){
        .seed = 1, .actors = 2, .open_flags = WAL_OPEN_PREAD});
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ALL};

    kill_in_a_write(w);
    sim_process_add_fault(w->actors[1].process,
                          &(struct sim_fault){.call = SIM_PREAD,
                                              .path = ".seg",
                                              .sys_errno = EIO});
    assert_int_equal(workload_append(w, 1, 0, WAL_DURABLE, 40), WAL_EIO);
    sim_process_clear_faults(w->actors[1].process);
    assert_ok(workload_append(w, 1, 0, WAL_DURABLE, 40));
    assert_true(workload_check(w, 1));
    workload_crash(w, &loss, 1);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    workload_destroy(w);
}

/* A process dies in the middle of a write: another one leaves the segment with
 * the torn group. */
TEST(inherit__torn_group_ends_the_segment)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ALL};
    struct workload *w =
        workload_create(&(struct workload_options){.seed = 1, .actors = 2});
    struct wal_store_info info = {.struct_size = sizeof(info)};

    kill_in_a_write(w);
    assert_ok(workload_append(w, 1, 0, WAL_DURABLE, 40));
    assert_ok(wal_store_get_info(w->actors[1].store, &info, NULL));
    assert_int_equal(info.segments, 2);
    assert_true(workload_check(w, 1));
    workload_crash(w, &loss, 1);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    workload_destroy(w);
}
