/*
 * test_compact_leftovers.c - the sync of a directory fails while a compaction
 * replaces segments; then a process opens the store alone, and the power goes.
 * What was replaced stays as long as the new name may be lost (SPEC.md 3.9).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agentwal/admin.h"
#include "engine/api/api_store.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/sim/disk/sim.h"

enum {
    ENTRIES = 40
};

static struct wal_store *open_store(struct sim_process *process)
{
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .flags = WAL_OPEN_CREATE};
    struct wal_error error = KIT_ERROR;
    struct wal_store *store = NULL;

    if (wal__store_open("/store", &options, &wal__heap_libc,
                        sim_process_io(process), &store, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
    return store;
}

static void append_half(struct wal_session *session, int first)
{
    for (int i = first; i < first + ENTRIES / 2; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        kit_append(session, id, NULL);
    }
}

static enum wal_status compact(struct wal_store *store)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_STORE_COMPACT_ERASE,
        .rate = UINT64_MAX};

    return wal_store_compact(store, &options, NULL, NULL);
}

/* A store with a rewritten segment, and entries after it: the next compaction
 * makes one segment of both. */
static struct sim_disk *make_disk(void)
{
    struct sim_disk *disk = sim_disk_create(1);
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    struct wal_session *session = kit_create(store, "s");

    append_half(session, 0);
    assert_int_equal(compact(store), WAL_OK);
    append_half(session, ENTRIES / 2);
    wal_session_close(session);
    kit_close(store);
    sim_process_destroy(process);
    return disk;
}

/* Compacts while the sync of the log's directory fails, after some that do not.
 * False: it did not come to that one. */
static bool fail_to_compact(struct sim_disk *disk, uint64_t after)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    const struct sim_fault fault = {.call = SIM_SYNC_DIRECTORY,
                                    .path = "/store/log",
                                    .after = after,
                                    .sys_errno = EIO};
    bool struck;

    sim_process_add_fault(process, &fault);
    (void)!compact(store);
    struck = sim_process_counts(process)->faults > 0;
    sim_process_clear_faults(process);
    (void)!wal_close(store, NULL);
    sim_process_destroy(process);
    return struck;
}

static void open_and_check(struct sim_disk *disk)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    struct wal_session *session = kit_session(store, "s");

    assert_int_equal(kit_info(session).entries, ENTRIES);
    wal_session_close(session);
    (void)!wal_close(store, NULL);
    sim_process_destroy(process);
}

static void test_leftovers__name_that_may_be_lost(void **state)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_NONE};
    struct sim_disk *made = make_disk();
    uint32_t kept = 0; /* runs in which replaced segments had to stay */
    bool struck = true;

    (void)state;
    for (uint64_t after = 0; struck; after++) {
        struct sim_disk *disk = sim_disk_clone(made);

        struck = fail_to_compact(disk, after);
        open_and_check(disk);
        kept += sim_file_exists(disk, "/store/log/0000000000000001.seg") &&
                sim_file_exists(disk, "/store/log/0000000000000003.seg");
        sim_disk_power_loss(disk, &loss, 1);
        open_and_check(disk);
        sim_disk_destroy(disk);
    }
    assert_true(kept > 0);
    sim_disk_destroy(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leftovers__name_that_may_be_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
