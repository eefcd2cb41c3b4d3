/*
 * test_migrate.c - bringing a store of format version 0 to this version (SPEC.md 7.1) on the
 * simulated machine: what it comes to, and what it leaves when any call to the system or any
 * allocation fails, the power is cut or the process dies at any place of it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/segment/frame.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/test.h"
#include "tests/sim/workload/old_store.h"

TEST_WITH(migrate__old_store_is_read_only, old_set_up, old_tear_down)
{
    uint8_t *before;
    uint8_t *after;
    size_t size;

    sim_disk_read_file(*state, OLD_FIRST, &before, &size);
    assert_int_equal(old_expect_old_or_new(*state), 0);
    sim_disk_read_file(*state, OLD_FIRST, &after, &size);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
}

TEST_WITH(migrate__new_version_is_complete, old_set_up, old_tear_down)
{
    struct wal_migrate_result result;
    struct old_process machine;
    uint8_t *before;
    uint8_t *after;
    size_t size;

    sim_disk_read_file(*state, OLD_FIRST, &before, &size);
    old_process_start(&machine, *state);
    assert_ok(old_migrate(&machine, &result));
    assert_int_equal(result.from, 0);
    assert_int_equal(result.to, 1);
    assert_int_equal(result.sessions, OLD_SESSIONS);
    old_process_stop(&machine);
    assert_int_equal(old_expect_old_or_new(*state), 1);
    sim_disk_read_file(*state, OLD_FIRST, &after, &size);
    assert_memory_equal(before, after, size); /* it is left as it was */
    free(before);
    free(after);
    old_expect_migratable(*state);
}

static bool is_documented(enum wal_status status)
{
    return status == WAL_EIO || status == WAL_ENOSPACE || status == WAL_ENOMEM ||
           status == WAL_EPOISONED || status == WAL_ELOCKED || status == WAL_EREADONLY;
}

static bool fail_call(struct sim_disk *base, const struct sim_fault *way, uint64_t nth)
{
    struct sim_disk *disk = sim_disk_clone(base);
    struct sim_fault fault = *way;
    struct wal_migrate_result result;
    struct old_process machine;
    enum wal_status status;
    bool struck;

    old_process_start(&machine, disk);
    fault.after = nth;
    sim_process_add_fault(machine.process, &fault);
    status = old_migrate(&machine, &result);
    struck = sim_process_counts(machine.process)->faults > 0;
    sim_process_clear_faults(machine.process);
    if (status != WAL_OK && !is_documented(status)) {
        fail_msg("call %llu: migrating answers %d: %s", (unsigned long long)nth, status,
                 old_error.text);
    }
    if (nth % 2 == 0) {
        old_process_stop(&machine);
    }
    if (status == WAL_OK) {
        assert_int_equal(old_expect_old_or_new(disk), 1);
    }
    if (struck) {
        old_expect_migratable(disk);
    }
    if (nth % 2 == 1) {
        old_process_stop(&machine);
    }
    sim_disk_destroy(disk);
    return struck;
}

TEST_WITH(migrate__every_call_fails, old_set_up, old_tear_down)
{
    static const struct sim_fault ways[] = {
        {.call = SIM_ANY, .sys_errno = EIO},
        {.call = SIM_ANY, .sys_errno = EIO, .sticky = true},
        {.call = SIM_ANY, .sys_errno = ENOSPC},
        {.call = SIM_ANY, .sys_errno = ENOSPC, .sticky = true},
        {.call = SIM_PWRITEV, .sys_errno = 0, .put = 100},
        {.call = SIM_PWRITEV, .sys_errno = EIO, .put = 100},
        {.call = SIM_PWRITEV, .sys_errno = EIO, .put = 1u << 30},
        {.call = SIM_SYNC, .sys_errno = EIO, .partial = true},
    };
    uint64_t runs = 0;

    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
        for (uint64_t nth = 0; fail_call(*state, &ways[way], nth); nth++) {
            runs++;
        }
    }
    print_message("%llu failures\n", (unsigned long long)runs);
}

static bool fail_allocation(struct sim_disk *base, uint64_t nth, bool sticky)
{
    struct sim_disk *disk = sim_disk_clone(base);
    struct wal_migrate_result result;
    struct old_process machine;
    enum wal_status status;
    bool struck;

    old_process_start(&machine, disk);
    faulty_heap_fail(&machine.heap, nth, sticky);
    status = old_migrate(&machine, &result);
    struck = machine.heap.failures > 0;
    faulty_heap_fail(&machine.heap, 0, false);
    if (status != WAL_OK && status != WAL_ENOMEM) {
        fail_msg("allocation %llu: migrating answers %d: %s", (unsigned long long)nth, status,
                 old_error.text);
    }
    if (nth % 2 == 0) {
        old_process_stop(&machine);
    }
    if (struck) {
        old_expect_migratable(disk);
    }
    if (nth % 2 == 1) {
        old_process_stop(&machine);
    }
    sim_disk_destroy(disk);
    return struck;
}

TEST_WITH(migrate__every_allocation_fails, old_set_up, old_tear_down)
{
    uint64_t runs = 0;

    for (int sticky = 0; sticky < 2; sticky++) {
        for (uint64_t nth = 1; fail_allocation(*state, nth, sticky != 0); nth++) {
            runs++;
        }
    }
    print_message("%llu failures\n", (unsigned long long)runs);
}

/* Migrates until the process dies, or is done. */
static void migrate_or_die(struct old_process *machine)
{
    struct wal_migrate_result result;

    if (setjmp(machine->death) == 0) {
        assert_ok(old_migrate(machine, &result));
    }
}

static bool kill_at(struct sim_disk *base, const struct sim_fault *death, uint64_t nth)
{
    struct sim_disk *disk = sim_disk_clone(base);
    struct sim_fault fault = *death;
    struct old_process machine;
    bool died;

    old_process_start(&machine, disk);
    fault.after = nth;
    sim_process_add_fault(machine.process, &fault);
    migrate_or_die(&machine);
    died = machine.died;
    old_process_stop(&machine);
    if (died) {
        old_expect_migratable(disk);
    }
    sim_disk_destroy(disk);
    return died;
}

TEST_WITH(migrate__killed_at_every_call, old_set_up, old_tear_down)
{
    static const struct sim_fault deaths[] = {
        {.call = SIM_ANY, .effect = SIM_KILL_BEFORE},
        {.call = SIM_ANY, .effect = SIM_KILL_AFTER},
        {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 24},
        {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 200},
    };
    uint64_t runs = 0;

    for (size_t way = 0; way < sizeof(deaths) / sizeof(deaths[0]); way++) {
        for (uint64_t nth = 0; kill_at(*state, &deaths[way], nth); nth++) {
            runs++;
        }
    }
    print_message("%llu deaths\n", (unsigned long long)runs);
}

/* The power goes after each call that a migration makes. */
struct cuts {
    struct sim_disk *disk;
    uint64_t calls;
};

static void cut(void *arg, const struct sim_event *event)
{
    struct cuts *cuts = arg;

    (void)event;
    for (int landing = SIM_PERSIST_NONE; landing < SIM_PERSISTENCES; landing++) {
        struct sim_power_loss loss = {.landing = (enum sim_persistence)landing,
                                      .garbage = cuts->calls % 2 == 0};
        struct sim_disk *copy = sim_disk_clone(cuts->disk);

        sim_disk_on_call(copy, NULL, NULL);
        sim_disk_power_loss(copy, &loss, cuts->calls);
        old_expect_migratable(copy);
        sim_disk_destroy(copy);
    }
    cuts->calls++;
}

TEST_WITH(migrate__power_lost_at_every_call, old_set_up, old_tear_down)
{
    struct cuts cuts = {.disk = *state};
    struct sim_power_loss none = {.landing = SIM_PERSIST_NONE};
    struct wal_migrate_result result;
    struct old_process machine;

    old_process_start(&machine, *state);
    sim_disk_on_call(*state, cut, &cuts);
    assert_ok(old_migrate(&machine, &result));
    sim_disk_on_call(*state, NULL, NULL);
    old_process_stop(&machine);
    sim_disk_power_loss(*state, &none, 1);
    assert_int_equal(old_expect_old_or_new(*state), 1); /* it was promised */
    print_message("%llu calls\n", (unsigned long long)cuts.calls);
}

/* --- stores that are not sound, or in use ------------------------------- */

/* The offset after the last frame. */
static uint64_t end_of(struct sim_disk *disk)
{
    uint8_t *bytes;
    size_t size;
    size_t end = 0;

    sim_disk_read_file(disk, OLD_FIRST, &bytes, &size);
    for (size_t i = 0; i < size; i++) {
        end = bytes[i] != 0 ? i + 1 : end;
    }
    free(bytes);
    return (end + 7) / 8 * 8;
}

TEST_WITH(migrate__torn_tail, old_set_up, old_tear_down)
{
    struct sim_disk *disk = *state;
    uint64_t end = end_of(disk);

    for (uint64_t at = end; at < end + 100; at += 3) {
        sim_file_flip_bit(disk, OLD_FIRST, at, (unsigned)(at % 8));
    }
    assert_int_equal(old_expect_old_or_new(disk), 0);
    old_expect_migratable(disk);
}

/* Which frame of the first segment is hit. */
static void damage_frame(struct sim_disk *disk, uint8_t type, uint32_t nth)
{
    struct wal__segment_header header;
    struct wal__frame frame;
    uint64_t offset = WAL__SEGMENT_HEADER_SIZE;
    uint8_t *bytes;
    size_t size;

    sim_disk_read_file(disk, OLD_FIRST, &bytes, &size);
    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    while (wal__frame_decode(bytes + offset, size - offset, header.salt, offset, &frame) ==
           WAL__FMT_OK) {
        if (frame.type == type && nth-- == 0) {
            sim_file_flip_bit(disk, OLD_FIRST, offset + WAL__FRAME_SIZE + 30, 3);
            break;
        }
        offset += wal__frame_total_size(frame.stored_size);
    }
    free(bytes);
}

static void forget_index(struct sim_disk *disk)
{
    static const char *const paths[] = {OLD_ROOT "/index/0000000000000001.idx",
                                        OLD_ROOT "/index/catalogue"};
    struct sim_process *process = sim_process_create(disk);
    const struct wal__io *io = sim_process_io(process);

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int err = 0;

        if (sim_file_exists(disk, paths[i])) {
            assert_ok(io->unlink(io->ctx, paths[i], &err));
        }
    }
    sim_process_destroy(process);
}

static uint32_t flags_of(struct wal_store *store, const char *id)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session = NULL;

    assert_ok(wal_session_open(store, old_slice(id), &session, &old_error));
    assert_ok(wal_session_get_info(session, &info, &old_error));
    wal_session_close(session);
    return info.flags;
}

static enum wal_status append_to(struct wal_store *store, const char *id)
{
    struct wal_session *session = NULL;
    enum wal_status status;

    assert_ok(wal_session_open(store, old_slice(id), &session, &old_error));
    status = wal_append(session, &old_new_entry, 1, NULL, NULL, &old_error);
    wal_session_close(session);
    return status;
}

/* An entry was lost, or the record of a session: all else is migrated, and the loss remains
 * reported. */
static void migrate_damaged(struct sim_disk *disk, const char *id)
{
    struct wal_migrate_result result;
    struct old_process machine;
    enum wal_status status;

    forget_index(disk);
    old_process_start(&machine, disk);
    assert_ok(old_open(&machine));
    assert_int_not_equal(flags_of(machine.store, id) & WAL_SESSION_DAMAGED, 0);
    old_close(&machine);
    status = old_migrate(&machine, &result);
    if (status != WAL_OK) {
        fail_msg("a damaged store answers %d: %s", status, old_error.text);
    }
    assert_ok(old_open(&machine));
    assert_int_not_equal(flags_of(machine.store, id) & WAL_SESSION_DAMAGED, 0);
    assert_int_equal(append_to(machine.store, id), WAL_EDAMAGED);
    assert_int_equal(old_count_listed(machine.store), OLD_SESSIONS);
    old_close(&machine);
    assert_ok(old_migrate(&machine, &result));
    assert_int_equal(result.from, 1);
    old_process_stop(&machine);
}

TEST_WITH(migrate__session_that_lost_an_entry, old_set_up, old_tear_down)
{
    damage_frame(*state, WAL__FRAME_ENTRY, 0);
    migrate_damaged(*state, "alpha");
}

TEST_WITH(migrate__session_that_lost_its_record, old_set_up, old_tear_down)
{
    damage_frame(*state, WAL__FRAME_SESSION, 1);
    migrate_damaged(*state, "lost-2");
}

/* Another process that has the store open reads on, whatever is done. */
struct onlooker {
    struct old_process machine;
    struct sim_process *migrating;
    uint64_t reads;
    bool inside;
};

static void look(void *arg, const struct sim_event *event)
{
    struct onlooker *onlooker = arg;
    struct old_snapshot seen;

    if (onlooker->inside || event->process != onlooker->migrating) {
        return;
    }
    onlooker->inside = true;
    old_read(onlooker->machine.store, &seen);
    for (uint32_t i = 0; i < OLD_SESSIONS; i++) {
        assert_int_equal(seen.content[i], old_before.content[i]);
    }
    assert_int_equal(seen.version, 0);
    assert_int_equal(seen.status, WAL_EVERSION);
    onlooker->reads++;
    onlooker->inside = false;
}

TEST_WITH(migrate__concurrently_with_a_reader, old_set_up, old_tear_down)
{
    struct onlooker onlooker = {.reads = 0};
    struct wal_migrate_result result;
    struct old_process machine;

    old_process_start(&onlooker.machine, *state);
    assert_ok(old_open(&onlooker.machine));
    old_process_start(&machine, *state);
    onlooker.migrating = machine.process;
    sim_disk_on_call(*state, look, &onlooker);
    assert_ok(old_migrate(&machine, &result));
    sim_disk_on_call(*state, NULL, NULL);
    assert_int_equal(result.sessions, OLD_SESSIONS);
    assert_true(onlooker.reads > 10);
    old_expect_refused(onlooker.machine.store);
    old_close(&onlooker.machine);
    old_process_stop(&onlooker.machine);
    old_process_stop(&machine);
    old_expect_migratable(*state);
}
