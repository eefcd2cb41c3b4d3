/*
 * test_recover_index.c - opening with files in index/ that are of another life
 * of the log, or missing (SPEC.md 3.6).
 */
#include "tests/sim/recovery/recover_fixture.h"

struct file_copy {
    uint8_t *bytes;
    size_t size;
};

static struct file_copy copy_file(struct workload *w, const char *path)
{
    struct file_copy copy = {NULL, 0};

    assert_true(sim_file_exists(w->disk, path));
    sim_disk_read_file(w->disk, path, &copy.bytes, &copy.size);
    return copy;
}

static void put_file(struct workload *w, const char *path,
                     struct file_copy *copy)
{
    sim_disk_write_file(w->disk, path, copy->bytes, copy->size);
    free(copy->bytes);
}

/* Ends the first segment without a SEAL: its last group is torn. The store is
 * then closed, with entries of each session in the second segment, and large
 * enough for a catalogue. */
static void end_by_a_tear(struct workload *w)
{
    write_torn_group(w);
    assert_int_equal(expect_tail(w, WAL_TAIL_TORN).segments, 1);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 2 * MIB));
    close_store(w);
    assert_true(sim_file_exists(w->disk, SECOND));
}

/* Two lives append a group at the same offset. The index of one names the
 * COMMIT of the other, with another chain. */
RECOVERY_TEST(recover_index__tail_index_of_another_life_is_ignored)
{
    struct workload *w = *state;
    struct workload *other;
    struct file_copy index;
    uint64_t offset;

    crash(w);
    offset = find(w, FIRST, WAL__FRAME_COMMIT, -1).offset;
    other = workload_clone(w);
    assert_ok(workload_open(other, 0));
    assert_ok(workload_append(other, 0, 1, WAL_DURABLE, 300));
    close_store(other);
    index = copy_file(other, INDEX);
    assert_ok(workload_open(w, 0));
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    close_store(w);
    assert_true(offset < find(w, FIRST, WAL__FRAME_COMMIT, -1).offset);
    assert_int_equal(find(w, FIRST, WAL__FRAME_COMMIT, -1).offset,
                     find(other, FIRST, WAL__FRAME_COMMIT, -1).offset);
    put_file(w, INDEX, &index);
    (void)expect_tail(w, WAL_TAIL_CLEAN);
    expect_all(w);
    workload_destroy(other);
}

/* The index was that of the tail when the store was closed; more was appended
 * before the segment ended. */
RECOVERY_TEST(recover_index__with_an_earlier_end_is_ignored)
{
    struct workload *w = *state;
    struct file_copy index;

    close_store(w);
    index = copy_file(w, INDEX);
    assert_ok(workload_open(w, 0));
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    end_by_a_tear(w);
    put_file(w, INDEX, &index);
    (void)expect_tail(w, WAL_TAIL_CLEAN);
    expect_all(w);
}

/* It describes an older end once anything is appended, also where the first
 * append fails because the file cannot be removed. */
RECOVERY_TEST(recover_index__is_removed_before_any_append)
{
    struct workload *w = *state;

    close_store(w);
    assert_true(sim_file_exists(w->disk, INDEX));
    assert_ok(workload_open(w, 0));
    sim_process_add_fault(w->actors[0].process,
                          &(struct sim_fault){.call = SIM_UNLINK,
                                              .path = ".idx",
                                              .sys_errno = EIO});
    assert_int_not_equal(workload_append(w, 0, 0, WAL_DURABLE, 300), WAL_OK);
    sim_process_clear_faults(w->actors[0].process);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_false(sim_file_exists(w->disk, INDEX));
    crash(w);
    (void)expect_tail(w, WAL_TAIL_CLEAN);
    expect_all(w);
}

/* Submits an entry with the id of another one; what the ticket reports. Unlike
 * a call that waits, it does not load the indexes again and retry. */
static enum wal_status submit_again(struct workload *w, uint32_t session,
                                    uint32_t entry)
{
    struct wal_session *handle = session_of(w, session);
    struct wal_ticket *ticket = NULL;
    char id[LEDGER_TEXT];
    struct wal_entry again = {.struct_size = sizeof(again),
                              .type = ledger_slice(WAL_TYPE_MESSAGE),
                              .payload = ledger_slice("\"another\"")};
    enum wal_status status;

    ledger_entry_id(entry, id);
    again.id = ledger_slice(id);
    assert_ok(wal_submit(handle, &again, 1, NULL, &ticket, NULL));
    status = wal_ticket_wait(ticket, -1, NULL, NULL);
    wal_ticket_destroy(ticket);
    wal_session_close(handle);
    return status;
}

/* The catalogue alone does not locate the records of a segment. */
RECOVERY_TEST(recover_index__missing_of_an_ended_segment_is_made_again)
{
    struct workload *w = *state;

    end_by_a_tear(w);
    assert_true(sim_file_exists(w->disk, WORKLOAD_ROOT "/index/catalogue"));
    remove_file(w, INDEX);
    (void)expect_tail(w, WAL_TAIL_CLEAN);
    assert_int_equal(submit_again(w, 0, 0), WAL_EEXISTS);
    expect_all(w);
}
