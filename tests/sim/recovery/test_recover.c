/*
 * test_recover.c - recovery, one test for each state that a disk can be found in: SPEC.md 3.4, rows
 * 1 to 6. The names of the tests are the table.
 */
#include "tests/sim/recovery/recover_fixture.h"

/* --- row 1 -------------------------------------------------------------- */

RECOVERY_TEST(recover__read_error_is_not_torn)
{
    struct workload *w = *state;
    struct place last = find(w, FIRST, WAL__FRAME_ENTRY, -1);

    crash(w);
    sim_file_add_bad_range(w->disk, FIRST, last.offset / 512 * 512, 512);
    expect_refused(w, 0, WAL_EIO, FIRST);
    sim_file_clear_bad_ranges(w->disk, FIRST);
    assert_int_equal(expect_tail(w, WAL_TAIL_CLEAN).segments, 1);
    expect_all(w);
}

/* Far from OPEN, whose page is read in another way: by the map, and by pread where maps cannot be
 * populated. */
RECOVERY_TEST(recover__read_error_of_the_scan_is_not_torn)
{
    struct workload *w = *state;
    struct place last;

    for (uint32_t i = 0; i < 20; i++) {
        assert_ok(workload_append(w, 0, i % 2, WAL_DURABLE, 4000));
    }
    last = find(w, FIRST, WAL__FRAME_ENTRY, -1);
    assert_true(last.offset > HEADER + 16 * 1024);
    crash(w);
    sim_file_add_bad_range(w->disk, FIRST, last.offset / 512 * 512, 512);
    for (int i = 0; i < 2; i++) {
        sim_disk_set_populates(w->disk, i == 0);
        expect_refused(w, 0, WAL_EIO, FIRST);
        expect_refused(w, WAL_OPEN_PREAD, WAL_EIO, FIRST);
    }
    sim_file_clear_bad_ranges(w->disk, FIRST);
    assert_int_equal(expect_tail(w, WAL_TAIL_CLEAN).segments, 1);
    expect_all(w);
}

/* --- rows 2 to 4 -------------------------------------------------------- */

RECOVERY_TEST(recover__preallocated_segment_of_zeros_is_ignored)
{
    struct workload *w = *state;
    uint8_t *zeros = test_memory(MIB);

    crash(w);
    sim_disk_write_file(w->disk, SECOND, zeros, MIB);
    assert_int_equal(expect_tail(w, WAL_TAIL_CLEAN).segments, 1);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    assert_int_equal(status_of(w).segments, 2);
    expect_all(w);
}

RECOVERY_TEST(recover__rest_of_a_preallocated_segment_is_ignored)
{
    struct workload *w = *state;

    crash(w);
    sim_disk_write_file(w->disk, SECOND ".new", "rest", 4);
    assert_int_equal(expect_tail(w, WAL_TAIL_CLEAN).segments, 1);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    expect_all(w);
    assert_false(sim_file_exists(w->disk, SECOND ".new"));
}

RECOVERY_TEST(recover__one_header_is_enough)
{
    struct workload *w = *state;

    crash(w);
    sim_file_flip_bit(w->disk, FIRST, 20, 1);
    (void)expect_tail(w, WAL_TAIL_CLEAN);
    expect_all(w);
}

RECOVERY_TEST(recover__both_headers_bad_refuses)
{
    struct workload *w = *state;

    crash(w);
    sim_file_flip_bit(w->disk, FIRST, 20, 1);
    sim_file_flip_bit(w->disk, FIRST, 2048 + 60, 1);
    expect_refused(w, 0, WAL_ECORRUPT, FIRST);
    expect_refused(w, WAL_OPEN_READ_ONLY, WAL_ECORRUPT, FIRST);
}

RECOVERY_TEST(recover__no_header_but_frames_refuses)
{
    struct workload *w = *state;
    uint8_t zeros[HEADER] = {0};

    crash(w);
    overwrite(w, FIRST, 0, zeros, sizeof(zeros));
    assert_int_equal(open_with(w, 0), WAL_ECORRUPT);
}

RECOVERY_TEST(recover__missing_segment_refuses)
{
    struct workload *w = *state;

    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    crash(w);
    remove_file(w, FIRST);
    assert_int_equal(open_with(w, 0), WAL_ECORRUPT);
}

RECOVERY_TEST(recover__truncated_segment_refuses)
{
    struct workload *w = *state;
    uint8_t *bytes;
    size_t size;

    crash(w);
    sim_disk_read_file(w->disk, FIRST, &bytes, &size);
    sim_disk_write_file(w->disk, FIRST, bytes, size - 4096);
    free(bytes);
    expect_refused(w, 0, WAL_ECORRUPT, FIRST);
}

RECOVERY_TEST(recover__torn_open_leaves_the_sealed_predecessor)
{
    struct workload *w = *state;

    for (size_t put = 8; put < OPEN_SIZE; put += 10) {
        struct workload *copy = workload_clone(w);

        die_at_open(copy, put);
        assert_int_equal(expect_tail(copy, WAL_TAIL_CLEAN).segments, 1);
        expect_all(copy);
        workload_destroy(copy);
    }
}

RECOVERY_TEST(recover__open_without_its_commit_is_torn)
{
    struct workload *w = *state;

    for (size_t put = OPEN_SIZE; put < OPEN_SIZE + 80; put += 10) {
        struct workload *copy = workload_clone(w);

        die_at_open(copy, put);
        assert_int_equal(expect_tail(copy, WAL_TAIL_TORN).segments, 2);
        expect_all(copy);
        workload_destroy(copy);
    }
}

RECOVERY_TEST(recover__torn_open_leaves_the_torn_predecessor)
{
    struct workload *w = *state;

    write_torn_group(w);
    for (size_t put = 8; put < OPEN_SIZE; put += 10) {
        struct workload *copy = workload_clone(w);

        die_at_open(copy, put);
        assert_int_equal(expect_tail(copy, WAL_TAIL_TORN).segments, 1);
        expect_all(copy);
        workload_destroy(copy);
    }
}

RECOVERY_TEST(recover__damaged_open_keeps_later_groups)
{
    struct workload *w = *state;
    struct wal_store_info info;

    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    crash(w);
    flip_frame(w, SECOND, find(w, SECOND, WAL__FRAME_OPEN, 0));
    info = expect_tail(w, WAL_TAIL_DAMAGED);
    assert_int_equal(info.tail_segment, 2);
    assert_int_equal(info.tail_offset, HEADER);
    expect_all(w);
}

RECOVERY_TEST(recover__damaged_open_after_a_clean_close)
{
    struct workload *w = *state;

    close_store(w);
    flip_frame(w, FIRST, find(w, FIRST, WAL__FRAME_OPEN, 0));
    assert_ok(open_with(w, 0));
    expect_all(w);
}

/* --- row 5 -------------------------------------------------------------- */

RECOVERY_TEST(recover__damage_below_the_watermark_names_its_session)
{
    struct workload *w = *state;
    struct place lost = find(w, FIRST, WAL__FRAME_ENTRY, 2); /* session 0 */
    struct wal_store_info info;

    crash(w);
    flip_frame(w, FIRST, lost);
    expect_refused(w, WAL_OPEN_STRICT, WAL_ECORRUPT, FIRST);
    info = expect_tail(w, WAL_TAIL_DAMAGED);
    assert_ok(info.status);
    assert_int_equal(info.tail_segment, 1);
    assert_int_equal(info.tail_offset, lost.offset);
    assert_int_equal(info.tail_size, wal__frame_total_size(lost.frame.stored_size));
    assert_int_equal(info.tail_sequence, lost.frame.sequence);
    assert_true(is_damaged(w, 0));
    assert_false(is_damaged(w, 1));
    assert_int_equal(count_entries(w, 0), 2);
    assert_int_equal(count_entries(w, 1), 3);
}

RECOVERY_TEST(recover__damaged_session_refuses_until_accepted)
{
    struct workload *w = *state;

    crash(w);
    flip_frame(w, FIRST, find(w, FIRST, WAL__FRAME_ENTRY, 2));
    (void)expect_tail(w, WAL_TAIL_DAMAGED);
    assert_int_equal(workload_append(w, 0, 0, WAL_DURABLE, 300), WAL_EDAMAGED);
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    assert_int_equal(status_of(w).segments, 2);
    crash(w);

    /* The new segment names the damage: it is no longer at the tail. */
    assert_int_equal(expect_tail(w, WAL_TAIL_CLEAN).segments, 2);
    assert_true(is_damaged(w, 0));
    assert_int_equal(count_entries(w, 0), 2);
    assert_int_equal(count_entries(w, 1), 4);
    assert_int_equal(workload_append(w, 0, 0, WAL_DURABLE, 300), WAL_EDAMAGED);
    accept_damage(w, 0);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    close_store(w);

    (void)expect_tail(w, WAL_TAIL_CLEAN);
    assert_false(is_damaged(w, 0));
    assert_int_equal(count_entries(w, 0), 3);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
}

RECOVERY_TEST(recover__damage_is_detected_without_index)
{
    struct workload *w = *state;

    crash(w);
    flip_frame(w, FIRST, find(w, FIRST, WAL__FRAME_ENTRY, 2));
    (void)expect_tail(w, WAL_TAIL_DAMAGED);
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    crash(w);
    remove_file(w, INDEX);
    assert_int_equal(expect_tail(w, WAL_TAIL_CLEAN).segments, 2);
    assert_true(is_damaged(w, 0));
    assert_int_equal(count_entries(w, 0), 2);
    assert_int_equal(count_entries(w, 1), 4);
}

RECOVERY_TEST(recover__damaged_header_names_session_by_commit)
{
    struct workload *w = *state;
    struct place lost = find(w, FIRST, WAL__FRAME_ENTRY, 3); /* session 1 */

    crash(w);
    sim_file_flip_bit(w->disk, FIRST, lost.offset + 21, 0);
    (void)expect_tail(w, WAL_TAIL_DAMAGED);
    assert_false(is_damaged(w, 0));
    assert_true(is_damaged(w, 1));
    assert_int_equal(count_entries(w, 0), 3);
}

RECOVERY_TEST(recover__zeroed_groups_below_the_watermark)
{
    struct workload *w = *state;
    struct place from = find(w, FIRST, WAL__FRAME_ENTRY, 1);
    struct place to = find(w, FIRST, WAL__FRAME_ENTRY, 4);
    size_t size = (size_t)(to.offset - from.offset);
    uint8_t *zeros = test_memory(size);
    struct wal_store_info info;

    crash(w);
    overwrite(w, FIRST, from.offset, zeros, size);
    info = expect_tail(w, WAL_TAIL_DAMAGED);
    assert_int_equal(info.tail_offset, from.offset);
    assert_int_equal(info.tail_size, size);
    assert_int_equal(info.tail_sequence, from.frame.sequence);
    assert_true(is_damaged(w, 0)); /* its parent is in the range */
    assert_true(is_damaged(w, 1));
}

RECOVERY_TEST(recover__lost_session_record_keeps_the_entries)
{
    struct workload *w = *state;
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *handle = NULL;

    crash(w);
    flip_frame(w, FIRST, find(w, FIRST, WAL__FRAME_SESSION, 1));
    (void)expect_tail(w, WAL_TAIL_DAMAGED);
    assert_int_equal(count_entries(w, 0), 3);
    assert_ok(wal_session_open(w->actors[0].store, ledger_slice("lost-2"), &handle, &error));
    assert_ok(wal_session_get_info(handle, &info, &error));
    assert_int_equal(info.entries, 3);
    assert_int_equal(info.flags, WAL_SESSION_DAMAGED);
    assert_int_equal(info.metadata.size, 0);
    wal_session_close(handle);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
}

RECOVERY_TEST(recover__damage_before_a_seal)
{
    struct workload *w = *state;
    struct place last;

    /* The last group is promised; only SEAL says so. */
    die_at_open(w, 0);
    last = find(w, FIRST, WAL__FRAME_ENTRY, -1);
    flip_frame(w, FIRST, last);
    sim_file_flip_bit(w->disk, FIRST, MIB - 40, 1); /* the trailer */
    assert_int_equal(expect_tail(w, WAL_TAIL_DAMAGED).tail_offset, last.offset);
    assert_true(is_damaged(w, 1));
    assert_false(is_damaged(w, 0));
}

RECOVERY_TEST(recover__damaged_trailer_alone_is_no_loss)
{
    struct workload *w = *state;

    die_at_open(w, 0);
    sim_file_flip_bit(w->disk, FIRST, MIB - 40, 1);
    (void)expect_tail(w, WAL_TAIL_CLEAN);
    expect_all(w);
}

RECOVERY_TEST(recover__damaged_trailer_of_an_ended_segment)
{
    struct workload *w = *state;

    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    crash(w);
    sim_file_flip_bit(w->disk, FIRST, MIB - 40, 1);
    (void)expect_tail(w, WAL_TAIL_CLEAN);
    expect_all(w);
}

/* --- row 6 -------------------------------------------------------------- */

RECOVERY_TEST(recover__chain_mismatch_is_damage)
{
    struct workload *w = *state;
    struct place place = find(w, FIRST, WAL__FRAME_COMMIT, 4);
    struct wal__commit_record commit;
    struct frames frames;
    uint32_t session = 1;
    uint8_t bytes[256] = {0};

    crash(w);
    read_frames(w, FIRST, &frames);
    assert_int_equal(
        wal__commit_record_decode((struct wal__span){frames.bytes + place.offset + WAL__FRAME_SIZE,
                                                     place.frame.stored_size},
                                  &commit),
        WAL__FMT_OK);
    commit.chain ^= 1;
    session = wal__commit_record_session(&commit, 0);
    wal__commit_record_encode(&commit, &session, bytes + WAL__FRAME_SIZE);
    place.frame.data_crc = wal__crc32(0, bytes + WAL__FRAME_SIZE, place.frame.stored_size);
    wal__frame_encode(&place.frame, frames.salt, place.offset, bytes);
    overwrite(w, FIRST, place.offset, bytes, wal__frame_total_size(place.frame.stored_size));
    free(frames.bytes);
    (void)expect_tail(w, WAL_TAIL_DAMAGED);
    assert_int_equal(count_entries(w, 0), 3);
    assert_int_equal(count_entries(w, 1), 3);
}

/* --- recover index ------------------------------------------------------- */

/*
 * Opening with files in index/ that are of another life of the log, or missing (SPEC.md 3.6).
 */

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

static void put_file(struct workload *w, const char *path, struct file_copy *copy)
{
    sim_disk_write_file(w->disk, path, copy->bytes, copy->size);
    free(copy->bytes);
}

/* Ends the first segment without a SEAL: its last group is torn. The store is then closed, with
 * entries of each session in the second segment, and large enough for a catalogue. */
static void end_by_a_tear(struct workload *w)
{
    write_torn_group(w);
    assert_int_equal(expect_tail(w, WAL_TAIL_TORN).segments, 1);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 2 * MIB));
    close_store(w);
    assert_true(sim_file_exists(w->disk, SECOND));
}

/* Two lives append a group at the same offset. The index of one names the COMMIT of the other, with
 * another chain. */
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

/* The index was that of the tail when the store was closed; more was appended before the segment
 * ended. */
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

/* It describes an older end once anything is appended, also where the first append fails because
 * the file cannot be removed. */
RECOVERY_TEST(recover_index__is_removed_before_any_append)
{
    struct workload *w = *state;

    close_store(w);
    assert_true(sim_file_exists(w->disk, INDEX));
    assert_ok(workload_open(w, 0));
    sim_process_add_fault(
        w->actors[0].process,
        &(struct sim_fault){.call = SIM_UNLINK, .path = ".idx", .sys_errno = EIO});
    assert_int_not_equal(workload_append(w, 0, 0, WAL_DURABLE, 300), WAL_OK);
    sim_process_clear_faults(w->actors[0].process);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_false(sim_file_exists(w->disk, INDEX));
    crash(w);
    (void)expect_tail(w, WAL_TAIL_CLEAN);
    expect_all(w);
}

/* Submits an entry with the id of another one; what the ticket reports. Unlike a call that waits,
 * it does not load the indexes again and retry. */
static enum wal_status submit_again(struct workload *w, uint32_t session, uint32_t entry)
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

/* --- recover tail -------------------------------------------------------- */

/*
 * Recovery, one test for each state that a disk can be found in: SPEC.md 3.4, rows 7 to 9, 3.6, and
 * disks that take no more. The names of the tests are the table.
 */

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
                     torn.offset + wal__frame_total_size(torn.frame.stored_size));
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
    assert_int_equal(expect_tail(w, WAL_TAIL_AMBIGUOUS).tail_offset, torn.offset);
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

/* Puts files of index/ from an earlier time in place of those that are there now. */
RECOVERY_TEST(recover_tail__stale_index_is_harmless)
{
    struct workload *w = *state;
    uint8_t *index;
    uint8_t *catalogue;
    size_t index_size;
    size_t catalogue_size;

    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    close_store(w);
    sim_disk_read_file(w->disk, WORKLOAD_ROOT "/index/0000000000000002.idx", &index, &index_size);
    sim_disk_read_file(w->disk, WORKLOAD_ROOT "/index/catalogue", &catalogue, &catalogue_size);
    for (int rotates = 0; rotates < 2; rotates++) {
        assert_ok(open_with(w, 0));
        assert_ok(workload_append(w, 0, 1, WAL_DURABLE, rotates == 0 ? 300 : 4 * MIB));
        assert_ok(workload_add_session(w, 0));
        crash(w);
        sim_disk_write_file(w->disk, WORKLOAD_ROOT "/index/0000000000000002.idx", index,
                            index_size);
        sim_disk_write_file(w->disk, WORKLOAD_ROOT "/index/catalogue", catalogue, catalogue_size);
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
        sim_process_add_fault(
            actor->process,
            &(struct sim_fault){.call = calls[i], .sticky = true, .sys_errno = ENOSPC});
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
        assert_int_equal(expect_tail(w, torn != 0 ? WAL_TAIL_TORN : WAL_TAIL_CLEAN).status,
                         WAL_EREADONLY);
        ledger_check(w->ledger, w->actors[0].store, LEDGER_NO_LOSS, NULL);
        assert_int_equal(workload_append(w, 0, 0, WAL_DURABLE, 300), WAL_EREADONLY);
        assert_ok(workload_close(w, 0));
        crash(w);
        sim_disk_set_read_only(w->disk, false);
    }
    assert_ok(open_with(w, 0));
    expect_all(w);
}

/* --- zeroed -------------------------------------------------------------- */

/*
 * Sectors of a segment that are zeros at rest, one after the other (SPEC.md
 * 3.4): what was promised and cannot be read is reported, also where the
 * segment then looks like one that was never begun.
 */

#define CATALOGUE WORKLOAD_ROOT "/index/catalogue"

/* What the last groups of the store were. */
enum ending {
    MARKED,  /* closed; without its files in index/ */
    DURABLE, /* killed after durable groups */
    WRITTEN  /* killed after groups that nothing promised to be durable */
};

static void remove_if_there(struct workload *w, const char *path)
{
    if (sim_file_exists(w->disk, path)) {
        remove_file(w, path);
    }
}

static void finish_with(struct workload *w, enum ending ending)
{
    if (ending == WRITTEN) {
        for (uint32_t i = 0; i < 6; i++) {
            assert_ok(workload_append(w, 0, i % 2, WAL_WRITTEN, 300));
        }
    }
    if (ending == MARKED) {
        assert_ok(workload_close(w, 0));
        remove_file(w, INDEX);
        remove_if_there(w, CATALOGUE);
    }
    crash(w);
}

static uint64_t end_of_frames(struct workload *w)
{
    struct frames frames;
    struct place last;

    read_frames(w, FIRST, &frames);
    free(frames.bytes);
    last = frames.at[frames.count - 1];
    return last.offset + wal__frame_total_size(last.frame.stored_size);
}

static uint32_t readable_entries(struct workload *w)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t count = 0;

    for (uint32_t i = 0; i < 2; i++) {
        struct wal_session *handle = NULL;
        char id[LEDGER_TEXT];

        ledger_session_id(i, id);
        if (wal_session_open(w->actors[0].store, ledger_slice(id), &handle, &error) == WAL_OK) {
            assert_ok(wal_session_get_info(handle, &info, &error));
            wal_session_close(handle);
            count += count_entries(w, i);
        }
    }
    return count;
}

static void check_every_sector(struct workload *w, enum ending ending)
{
    static const uint8_t zeros[512];
    uint64_t end;
    uint32_t entries;

    finish_with(w, ending);
    end = end_of_frames(w);
    entries = w->ledger->entry_count;
    for (uint64_t at = HEADER; at < end; at += sizeof(zeros)) {
        struct workload *copy = workload_clone(w);
        struct wal_store_info info;

        ledger_set_context("zeros at %llu of %llu, ending %d", (unsigned long long)at,
                           (unsigned long long)end, (int)ending);
        copy->has_damage = true;
        overwrite(copy, FIRST, at, zeros, sizeof(zeros));
        if (open_with(copy, 0) == WAL_OK) {
            info = status_of(copy);
            if (readable_entries(copy) < entries && info.tail == WAL_TAIL_CLEAN) {
                fail_msg("zeros at %llu of %llu, ending %d: %u of %u entries, "
                         "and nothing is reported",
                         (unsigned long long)at, (unsigned long long)end, (int)ending,
                         readable_entries(copy), entries);
            }
            /* Only the first sector has OPEN. */
            if (at == HEADER) {
                assert_int_equal(info.tail, WAL_TAIL_DAMAGED);
                assert_true(info.last_sequence > 0);
            }
        }
        workload_destroy(copy);
    }
}

RECOVERY_TEST(zeroed__sector_of_a_marked_segment)
{
    check_every_sector(*state, MARKED);
}

RECOVERY_TEST(zeroed__sector_of_durable_groups)
{
    check_every_sector(*state, DURABLE);
}

RECOVERY_TEST(zeroed__sector_of_written_groups)
{
    check_every_sector(*state, WRITTEN);
}

/* A healed segment, whose COMMITs name no end: OPEN is durable before anything follows it, so that
 * any group proves that it was there. */
RECOVERY_TEST(zeroed__open_of_a_healed_segment)
{
    static const uint8_t zeros[512];
    struct workload *w = *state;
    struct wal_store_info info;
    uint64_t last;

    for (uint32_t i = 0; i < 6; i++) {
        assert_ok(workload_append(w, 0, i % 2, WAL_WRITTEN, 300));
    }
    last = status_of(w).last_sequence;
    sim_process_add_fault(w->actors[0].process,
                          &(struct sim_fault){.call = SIM_SYNC, .path = ".seg", .sys_errno = EIO});
    assert_ok(wal_sync(w->actors[0].store, NULL));
    crash(w);
    w->has_damage = true;
    overwrite(w, SECOND, HEADER, zeros, sizeof(zeros));
    assert_ok(open_with(w, 0));
    info = status_of(w);
    assert_int_equal(info.tail, WAL_TAIL_DAMAGED);
    assert_int_equal(info.last_sequence, last);
    assert_true(readable_entries(w) >= 10);
    crash(w);
    assert_int_equal(open_with(w, WAL_OPEN_STRICT), WAL_ECORRUPT);
}

/* A sealed segment of which nothing is left but SEAL: its trailer and all its frames are zeros, and
 * no file in index/ names it. It was not begun only. */
RECOVERY_TEST(zeroed__all_but_seal)
{
    struct workload *w = *state;
    struct frames frames;
    struct place seal;
    uint8_t *zeros;

    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    crash(w);
    seal = find(w, FIRST, WAL__FRAME_SEAL, 0);
    read_frames(w, FIRST, &frames);
    free(frames.bytes);
    remove_file(w, SECOND);
    remove_if_there(w, CATALOGUE);
    w->has_damage = true;
    zeros = test_memory(frames.size);
    overwrite(w, FIRST, HEADER, zeros, seal.offset - HEADER);
    overwrite(w, FIRST, frames.size - WAL__TRAILER_SIZE, zeros, WAL__TRAILER_SIZE);
    if (open_with(w, 0) == WAL_OK) {
        assert_int_equal(status_of(w).tail, WAL_TAIL_DAMAGED);
    } else {
        assert_int_equal(open_error.status, WAL_ECORRUPT);
    }
}
