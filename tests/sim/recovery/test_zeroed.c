/*
 * test_zeroed.c - sectors of a segment that are zeros at rest, one after the
 * other (SPEC.md 3.4): what was promised and cannot be read is reported, also
 * where the segment then looks like one that was never begun.
 */
#include "tests/sim/recovery/recover_fixture.h"

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
        if (wal_session_open(w->actors[0].store, ledger_slice(id), &handle,
                             &error) == WAL_OK) {
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

        ledger_set_context("zeros at %llu of %llu, ending %d",
                           (unsigned long long)at, (unsigned long long)end,
                           (int)ending);
        copy->has_damage = true;
        overwrite(copy, FIRST, at, zeros, sizeof(zeros));
        if (open_with(copy, 0) == WAL_OK) {
            info = status_of(copy);
            if (readable_entries(copy) < entries &&
                info.tail == WAL_TAIL_CLEAN) {
                fail_msg("zeros at %llu of %llu, ending %d: %u of %u entries, "
                         "and nothing is reported",
                         (unsigned long long)at, (unsigned long long)end,
                         (int)ending, readable_entries(copy), entries);
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

/* A healed segment, whose COMMITs name no end: OPEN is durable before anything
 * follows it, so that any group proves that it was there. */
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
                          &(struct sim_fault){.call = SIM_SYNC,
                                              .path = ".seg",
                                              .sys_errno = EIO});
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

/* A sealed segment of which nothing is left but SEAL: its trailer and all its
 * frames are zeros, and no file in index/ names it. It was not begun only. */
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
    zeros = calloc(1, frames.size);
    assert_non_null(zeros);
    overwrite(w, FIRST, HEADER, zeros, seal.offset - HEADER);
    overwrite(w, FIRST, frames.size - WAL__TRAILER_SIZE, zeros,
              WAL__TRAILER_SIZE);
    free(zeros);
    if (open_with(w, 0) == WAL_OK) {
        assert_int_equal(status_of(w).tail, WAL_TAIL_DAMAGED);
    } else {
        assert_int_equal(open_error.status, WAL_ECORRUPT);
    }
}
