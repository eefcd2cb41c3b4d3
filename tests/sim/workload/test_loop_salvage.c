/*
 * test_loop_salvage.c - wal_salvage on the simulated machine: what it answers, and what it leaves,
 * when any call to the system or any allocation fails, the disk is full, or the power is cut when
 * it has succeeded.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "engine/care/salvage.h"
#include "engine/session/store.h"
#include "tests/lib/golden.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/sanitizers.h"
#include "tests/lib/test.h"
#include "tests/sim/workload/old_store.h"

#define ROOT "/store"
#define OUT  "/out"

static const char intact[] = AGENTWAL_SOURCE_DIR "/tests/golden/intact_long.golden";
static const char damaged[] =
    AGENTWAL_SOURCE_DIR "/tests/golden/flipped_entry_below_watermark.golden";

/* Of a salvage without a fault. */
static struct wal_salvage_result sound;
static uint64_t random_state;

static int set_up(void **state)
{
    struct sim_disk *disk = sim_disk_create(7);

    golden_load(disk, ROOT, damaged);
    *state = disk;
    return 0;
}

static int tear_down(void **state)
{
    sim_disk_destroy(*state);
    return 0;
}

static enum wal_status salvage(struct old_process *machine, struct wal_salvage_result *result)
{
    const struct wal_salvage_options options = WAL_INIT(wal_salvage_options);
    enum wal_status status;

    old_error = (struct wal_error){.struct_size = sizeof(old_error)};
    *result = (struct wal_salvage_result){.struct_size = sizeof(*result)};
    status = wal__salvage(ROOT, OUT, &options, &machine->heap.heap,
                          sim_process_io(machine->process), result, &old_error);
    assert_int_equal(arena_heap_count(&machine->arena), 0);
    return status;
}

/* Salvages in a process that has no fault. */
static struct wal_salvage_result expect_salvaged(struct sim_disk *disk)
{
    struct wal_salvage_result result;
    struct old_process machine;

    old_process_start(&machine, disk);
    if (salvage(&machine, &result) != WAL_OK) {
        fail_msg("%s", old_error.text);
    }
    old_process_stop(&machine);
    return result;
}

/* Replaces the segments of the store by rewritten ones. */
static void compact(struct sim_disk *disk)
{
    struct wal_store_compact_result result = WAL_INIT(wal_store_compact_result);
    const struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_store *store = NULL;
    struct old_process machine;

    old_process_start(&machine, disk);
    assert_ok(wal__store_open(ROOT, &options, &machine.heap.heap, sim_process_io(machine.process),
                              &store, NULL));
    assert_ok(wal_store_compact(store, NULL, &result, NULL));
    assert_true(result.rewritten > 0 && result.kept_records > 0);
    assert_ok(wal_close(store, NULL));
    old_process_stop(&machine);
}

/* The number of entries of all sessions of OUT, which must open strictly. */
static uint64_t count_entries(struct sim_disk *disk)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_STRICT};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *sessions = NULL;
    struct wal_store *store = NULL;
    struct old_process machine;
    uint64_t count = 0;

    old_process_start(&machine, disk);
    assert_ok(wal__store_open(OUT, &options, &machine.heap.heap, sim_process_io(machine.process),
                              &store, NULL));
    assert_ok(wal_session_cursor_open(store, NULL, &sessions, NULL));
    while (wal_session_cursor_next(sessions, &info, NULL) == WAL_OK) {
        count += info.entries;
    }
    wal_session_cursor_close(sessions);
    assert_ok(wal_close(store, NULL));
    old_process_stop(&machine);
    return count;
}

/* OUT has all of a sound store, or what is missing was reported. */
static void expect_honest(struct sim_disk *disk, const struct wal_salvage_result *result,
                          uint64_t entries)
{
    uint64_t found = count_entries(disk);

    if (result->losses == 0) {
        assert_int_equal(result->entries, sound.entries);
        assert_int_equal(result->documents, sound.documents);
        assert_int_equal(found, entries);
    }
}

TEST_WITH(loop_salvage__result_is_durable, set_up, tear_down)
{
    const struct sim_power_loss none = {.landing = SIM_PERSIST_NONE};
    struct sim_disk *disk = *state;
    uint64_t entries;

    sound = expect_salvaged(disk);
    assert_true(sound.losses > 0 && sound.entries > 0);
    entries = count_entries(disk);
    sim_disk_power_loss(disk, &none, 1);
    assert_int_equal(count_entries(disk), entries);
}

/* The random distance to the next call or allocation that fails; 1 where all are tried
 * (sanitizers.h). */
static uint64_t sample_step(void)
{
    return 1 + kit_random(&random_state) % (2 * sample_stride() - 1);
}

static bool fail_call(struct sim_disk *base, const struct sim_fault *way, uint64_t nth,
                      uint64_t entries)
{
    struct sim_disk *disk = sim_disk_clone(base);
    struct sim_fault fault = *way;
    struct wal_salvage_result result;
    struct old_process machine;
    enum wal_status status;
    bool struck;

    old_process_start(&machine, disk);
    fault.after = nth;
    sim_process_add_fault(machine.process, &fault);
    status = salvage(&machine, &result);
    struck = sim_process_counts(machine.process)->faults > 0;
    old_process_stop(&machine);
    if (status == WAL_OK) {
        expect_honest(disk, &result, entries);
        /* A failure to write is an error, and not a loss. */
        assert_true(way->path == NULL || result.losses == 0);
    } else {
        assert_int_equal(result.entries, 0);
        assert_int_equal(old_error.status, status);
        /* A call that removes OUT may be the one that failed. */
        assert_true(way->sticky || !sim_file_exists(disk, OUT "/MANIFEST"));
    }
    sim_disk_destroy(disk);
    return struck;
}

static void loop_calls(struct sim_disk *disk)
{
    static const struct sim_fault ways[] = {
        {.call = SIM_ANY, .sys_errno = EIO},
        {.call = SIM_ANY, .sys_errno = EIO, .sticky = true},
        {.call = SIM_PWRITEV, .path = OUT, .sys_errno = ENOSPC},
        {.call = SIM_SYNC, .path = OUT, .sys_errno = EIO, .partial = true},
    };
    struct sim_disk *copy = sim_disk_clone(disk);
    uint64_t entries;
    uint64_t runs = 0;

    sound = expect_salvaged(copy);
    assert_int_equal(sound.losses, 0);
    entries = count_entries(copy);
    sim_disk_destroy(copy);
    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
        uint64_t nth = 0;

        while (fail_call(disk, &ways[way], nth, entries)) {
            nth += sample_step();
        }
        runs += nth;
    }
    assert_true(runs > 100);
    print_message("%llu calls\n", (unsigned long long)runs);
}

TEST_WITH(loop_salvage__every_call_fails, set_up, tear_down)
{
    struct sim_disk *disk = sim_disk_create(7);

    golden_load(disk, ROOT, intact);
    loop_calls(disk);
    sim_disk_destroy(disk);
}

TEST_WITH(loop_salvage__every_call_fails_after_compaction, set_up, tear_down)
{
    struct sim_disk *disk = sim_disk_create(7);

    golden_load(disk, ROOT, intact);
    compact(disk);
    loop_calls(disk);
    sim_disk_destroy(disk);
}

/* Writes to OUT alone fail, and so does every sync of it. */
TEST_WITH(loop_salvage__failing_output_is_never_success, set_up, tear_down)
{
    static const struct sim_fault ways[] = {
        {.call = SIM_PWRITEV, .path = OUT, .sys_errno = ENOSPC, .sticky = true},
        {.call = SIM_ALLOCATE, .path = OUT, .sys_errno = ENOSPC, .sticky = true},
        {.call = SIM_SYNC, .path = OUT, .sys_errno = EIO, .sticky = true},
        {.call = SIM_SYNC_DIRECTORY, .path = OUT, .sys_errno = EIO, .sticky = true},
        {.call = SIM_MAKE_DIRECTORY, .path = OUT, .sys_errno = EACCES},
    };
    static const enum wal_status statuses[] = {WAL_ENOSPACE, WAL_ENOSPACE, WAL_EIO, WAL_EIO,
                                               WAL_EACCESS};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct sim_disk *disk = sim_disk_clone(*state);
        struct wal_salvage_result result;
        struct old_process machine;

        old_process_start(&machine, disk);
        sim_process_add_fault(machine.process, &ways[i]);
        assert_int_equal(salvage(&machine, &result), statuses[i]);
        assert_false(sim_file_exists(disk, OUT));
        old_process_stop(&machine);
        sim_disk_destroy(disk);
    }
}

TEST_WITH(loop_salvage__full_disk_is_reported, set_up, tear_down)
{
    uint64_t used = sim_disk_used_bytes(*state);

    for (uint64_t room = 0; room < 512 * 1024; room += 16 * 1024) {
        struct sim_disk *disk = sim_disk_clone(*state);
        struct wal_salvage_result result;
        struct old_process machine;

        old_process_start(&machine, disk);
        sim_disk_set_limit(disk, used + room + 1);
        assert_int_equal(salvage(&machine, &result), WAL_ENOSPACE);
        assert_false(sim_file_exists(disk, OUT));
        old_process_stop(&machine);
        sim_disk_destroy(disk);
    }
}

TEST_WITH(loop_salvage__store_without_permission_is_refused, set_up, tear_down)
{
    const struct sim_fault fault = {
        .call = SIM_OPEN, .path = "MANIFEST", .sys_errno = EACCES, .sticky = true};
    struct wal_salvage_result result;
    struct old_process machine;

    old_process_start(&machine, *state);
    sim_process_add_fault(machine.process, &fault);
    assert_int_equal(salvage(&machine, &result), WAL_EACCESS);
    assert_false(sim_file_exists(*state, OUT));
    old_process_stop(&machine);
}

/* Bad sectors cost their records alone. */
TEST_WITH(loop_salvage__bad_sector_is_reported, set_up, tear_down)
{
    struct sim_disk *copy = sim_disk_clone(*state);
    struct wal_salvage_result result;

    sound = expect_salvaged(copy);
    sim_disk_destroy(copy);
    sim_file_add_bad_range(*state, ROOT "/log/0000000000000001.seg", 4096 + 512, 512);
    result = expect_salvaged(*state);
    assert_true(result.losses > sound.losses);
    assert_in_range(result.entries, 1, sound.entries - 1);
    assert_true(count_entries(*state) > 0);
}

static bool fail_allocation(struct sim_disk *base, uint64_t nth)
{
    struct sim_disk *disk = sim_disk_clone(base);
    struct wal_salvage_result result;
    struct old_process machine;
    enum wal_status status;
    bool struck;

    old_process_start(&machine, disk);
    faulty_heap_fail(&machine.heap, nth, false);
    status = salvage(&machine, &result);
    struck = machine.heap.failures > 0;
    old_process_stop(&machine);
    if (status == WAL_OK) {
        assert_int_equal(result.entries, sound.entries);
        assert_int_equal(result.losses, sound.losses);
    } else if (status != WAL_ENOMEM || sim_file_exists(disk, OUT)) {
        fail_msg("allocation %llu: salvage answers %d: %s", (unsigned long long)nth, status,
                 old_error.text);
    }
    sim_disk_destroy(disk);
    return struck;
}

static void loop_allocations(struct sim_disk *disk)
{
    struct sim_disk *copy = sim_disk_clone(disk);
    uint64_t nth = 1;

    sound = expect_salvaged(copy);
    sim_disk_destroy(copy);
    while (fail_allocation(disk, nth)) {
        nth += sample_step();
    }
    assert_true(nth > 50);
    print_message("up to allocation %llu\n", (unsigned long long)nth);
}

TEST_WITH(loop_salvage__every_allocation_fails, set_up, tear_down)
{
    loop_allocations(*state);
}

TEST_WITH(loop_salvage__every_allocation_fails_after_compaction, set_up, tear_down)
{
    struct sim_disk *disk = sim_disk_create(7);

    golden_load(disk, ROOT, intact);
    compact(disk);
    loop_allocations(disk);
    sim_disk_destroy(disk);
}

static int set_up_group(void **state)
{
    (void)state;
    random_state = kit_seed();
    return 0;
}

TEST_FILE(set_up_group, NULL, NULL);
