/*
 * test_recover.c - recovery, one test for each state that a disk can be found
 * in: SPEC.md 3.4, rows 1 to 6. The names of the tests are the table.
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

/* Far from OPEN, whose page is read in another way: by the map, and by pread
 * where maps cannot be populated. */
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
    uint8_t *zeros = calloc(1, MIB);

    crash(w);
    sim_disk_write_file(w->disk, SECOND, zeros, MIB);
    free(zeros);
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
    assert_int_equal(info.tail_size,
                     wal__frame_total_size(lost.frame.stored_size));
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
    uint8_t *zeros = calloc(1, size);
    struct wal_store_info info;

    crash(w);
    overwrite(w, FIRST, from.offset, zeros, size);
    free(zeros);
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
    assert_ok(wal_session_open(w->actors[0].store, ledger_slice("lost-2"),
                               &handle, &error));
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
        wal__commit_record_decode(
            (struct wal__span){frames.bytes + place.offset + WAL__FRAME_SIZE,
                               place.frame.stored_size},
            &commit),
        WAL__FMT_OK);
    commit.chain ^= 1;
    session = wal__commit_record_session(&commit, 0);
    wal__commit_record_encode(&commit, &session, bytes + WAL__FRAME_SIZE);
    place.frame.data_crc =
        wal__crc32(0, bytes + WAL__FRAME_SIZE, place.frame.stored_size);
    wal__frame_encode(&place.frame, frames.salt, place.offset, bytes);
    overwrite(w, FIRST, place.offset, bytes,
              wal__frame_total_size(place.frame.stored_size));
    free(frames.bytes);
    (void)expect_tail(w, WAL_TAIL_DAMAGED);
    assert_int_equal(count_entries(w, 0), 3);
    assert_int_equal(count_entries(w, 1), 3);
}
