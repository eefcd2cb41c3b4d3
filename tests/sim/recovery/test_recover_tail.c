/*
 * test_recover_tail.c - recovery, one test for each state that a disk can be
 * found in: SPEC.md 3.4, rows 7 to 9, 3.6, and disks that take no more. The
 * names of the tests are the table.
 */
#include "tests/sim/recovery/recover_fixture.h"

/* --- row 7 -------------------------------------------------------------- */

RECOVERY_TEST(recover_tail__clean_end_after_a_kill)
{
    struct workload *w = *state;

    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    crash(w);
    assert_int_equal(expect_tail(w, WAL_TAIL_CLEAN).segments, 1);
    expect_all(w);
}

RECOVERY_TEST(recover_tail__clean_end_after_a_close)
{
    struct workload *w = *state;

    close_store(w);
    assert_true(sim_file_exists(w->disk, INDEX));
    assert_int_equal(expect_tail(w, WAL_TAIL_CLEAN).syncs, 0);
    expect_all(w);
}

/* --- rows 8 and 9 ------------------------------------------------------- */

RECOVERY_TEST(recover_tail__torn_frame_in_tail_drops_its_group)
{
    struct workload *w = *state;
    struct wal_store_info info;
    struct place torn;
    uint8_t *before;
    uint8_t *after;
    size_t size;

    write_torn_group(w);
    torn = find(w, FIRST, WAL__FRAME_COMMIT, -1);
    sim_disk_read_file(w->disk, FIRST, &before, &size);
    info = expect_tail(w, WAL_TAIL_TORN);
    assert_int_equal(info.tail_segment, 1);
    assert_true(info.tail_offset < torn.offset);
    assert_int_equal(info.tail_offset + info.tail_size,
                     torn.offset +
                         wal__frame_total_size(torn.frame.stored_size));
    assert_int_equal(info.tail_sequence, info.last_sequence + 1);
    expect_all(w);

    /* The torn bytes stay where they are. */
    sim_disk_read_file(w->disk, FIRST, &after, &size);
    assert_memory_equal(after, before, size);
    free(before);
    free(after);
    assert_int_equal(status_of(w).segments, 2);
}

RECOVERY_TEST(recover_tail__torn_commit_drops_its_group)
{
    struct workload *w = *state;

    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    flip_frame(w, FIRST, find(w, FIRST, WAL__FRAME_COMMIT, -1));
    crash(w);
    mark_refused(w, w->ledger->entry_count - 1);
    (void)expect_tail(w, WAL_TAIL_TORN);
    expect_all(w);
}

RECOVERY_TEST(recover_tail__strict_opening_accepts_a_torn_tail)
{
    struct workload *w = *state;

    write_torn_group(w);
    assert_ok(open_with(w, WAL_OPEN_STRICT));
    expect_all(w);
}

RECOVERY_TEST(recover_tail__group_after_a_torn_group_is_dropped)
{
    struct workload *w = *state;
    struct place torn;

    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    torn = find(w, FIRST, WAL__FRAME_ENTRY, -1);
    assert_ok(workload_append(w, 0, 1, WAL_WRITTEN, 300));
    flip_frame(w, FIRST, torn);
    crash(w);
    mark_refused(w, w->ledger->entry_count - 1);
    mark_refused(w, w->ledger->entry_count - 2);
    assert_int_equal(expect_tail(w, WAL_TAIL_TORN).tail_offset, torn.offset);
    expect_all(w);
}

RECOVERY_TEST(recover_tail__promised_group_is_ambiguous)
{
    struct workload *w = *state;
    struct place torn = find(w, FIRST, WAL__FRAME_ENTRY, -1);

    crash(w);
    flip_frame(w, FIRST, torn);
    expect_refused(w, WAL_OPEN_STRICT, WAL_ETORN, FIRST);
    assert_int_equal(expect_tail(w, WAL_TAIL_AMBIGUOUS).tail_offset,
                     torn.offset);
    mark_refused(w, w->ledger->entry_count - 1);
    expect_all(w);
}

RECOVERY_TEST(recover_tail__marked_group_is_not_ambiguous)
{
    struct workload *w = *state;
    struct wal_error error = {.struct_size = sizeof(error)};
    struct place last = find(w, FIRST, WAL__FRAME_ENTRY, -1);

    assert_ok(wal__store_commit_mark(w->actors[0].store, &error));
    crash(w);
    flip_frame(w, FIRST, last);
    assert_int_equal(expect_tail(w, WAL_TAIL_DAMAGED).tail_offset, last.offset);
    assert_true(is_damaged(w, 1));
}

/* --- index/ ------------------------------------------------------------- */

RECOVERY_TEST(recover_tail__without_index_nothing_changes)
{
    struct workload *w = *state;

    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    close_store(w);
    assert_true(sim_file_exists(w->disk, WORKLOAD_ROOT "/index/catalogue"));
    remove_file(w, WORKLOAD_ROOT "/index/catalogue");
    remove_file(w, WORKLOAD_ROOT "/index/0000000000000002.idx");
    (void)expect_tail(w, WAL_TAIL_CLEAN);
    expect_all(w);
}

/* Puts files of index/ from an earlier time in place of those that are there
 * now. */
RECOVERY_TEST(recover_tail__stale_index_is_harmless)
{
    struct workload *w = *state;
    uint8_t *index;
    uint8_t *catalogue;
    size_t index_size;
    size_t catalogue_size;

    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    close_store(w);
    sim_disk_read_file(w->disk, WORKLOAD_ROOT "/index/0000000000000002.idx",
                       &index, &index_size);
    sim_disk_read_file(w->disk, WORKLOAD_ROOT "/index/catalogue", &catalogue,
                       &catalogue_size);
    for (int rotates = 0; rotates < 2; rotates++) {
        assert_ok(open_with(w, 0));
        assert_ok(workload_append(w, 0, 1, WAL_DURABLE,
                                  rotates == 0 ? 300 : 4 * MIB));
        assert_ok(workload_add_session(w, 0));
        crash(w);
        sim_disk_write_file(w->disk,
                            WORKLOAD_ROOT "/index/0000000000000002.idx", index,
                            index_size);
        sim_disk_write_file(w->disk, WORKLOAD_ROOT "/index/catalogue",
                            catalogue, catalogue_size);
        (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_KILL);
        assert_ok(open_with(w, 0));
        expect_all(w);
        close_store(w);
    }
    free(index);
    free(catalogue);
}

/* --- places that cannot be written -------------------------------------- */

RECOVERY_TEST(recover_tail__full_disk_opens_and_reads)
{
    struct workload *w = *state;

    write_torn_group(w);
    sim_disk_set_limit(w->disk, sim_disk_used_bytes(w->disk));
    (void)expect_tail(w, WAL_TAIL_TORN);
    ledger_check(w->ledger, w->actors[0].store, LEDGER_NO_LOSS, NULL);
    assert_int_equal(workload_append(w, 0, 0, WAL_DURABLE, 300), WAL_ENOSPACE);
    ledger_check(w->ledger, w->actors[0].store, LEDGER_NO_LOSS, NULL);
    sim_disk_set_limit(w->disk, 0);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    expect_all(w);
}

RECOVERY_TEST(recover_tail__nothing_can_be_written)
{
    static const enum sim_call calls[] = {SIM_PWRITEV, SIM_ALLOCATE};
    struct workload *w = *state;
    struct workload_actor *actor;

    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    close_store(w);
    actor = workload_start(w, 0);
    for (size_t i = 0; i < 2; i++) {
        sim_process_add_fault(actor->process,
                              &(struct sim_fault){.call = calls[i],
                                                  .sticky = true,
                                                  .sys_errno = ENOSPC});
    }
    (void)expect_tail(w, WAL_TAIL_CLEAN);
    ledger_check(w->ledger, actor->store, LEDGER_NO_LOSS, NULL);
    crash(w);
    assert_ok(open_with(w, 0));
    expect_all(w);
}

RECOVERY_TEST(recover_tail__read_only_directory_reads)
{
    struct workload *w = *state;

    for (int torn = 0; torn < 2; torn++) {
        if (torn != 0) {
            assert_ok(open_with(w, 0));
            write_torn_group(w);
        } else {
            crash(w);
        }
        sim_disk_set_read_only(w->disk, true);
        assert_int_equal(
            expect_tail(w, torn != 0 ? WAL_TAIL_TORN : WAL_TAIL_CLEAN).status,
            WAL_EREADONLY);
        ledger_check(w->ledger, w->actors[0].store, LEDGER_NO_LOSS, NULL);
        assert_int_equal(workload_append(w, 0, 0, WAL_DURABLE, 300),
                         WAL_EREADONLY);
        assert_ok(workload_close(w, 0));
        crash(w);
        sim_disk_set_read_only(w->disk, false);
    }
    assert_ok(open_with(w, 0));
    expect_all(w);
}
