/*
 * test_loop_replica.c - applying parts to a replica is cut short at its Nth call to the system, for
 * every N: the process dies, the call fails once or from then on, the disk is full; then the power
 * goes, or not. The replica opens strictly, with all that was acknowledged and no more than the
 * parts have; the next process goes on, and a replica that is complete can become an ordinary
 * store.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/care/part.h"
#include "tests/lib/sanitizers.h"
#include "tests/lib/test.h"
#include "tests/sim/workload/copied_store.h"
#include "tests/sim/workload/workload.h"

#define REPLICA "/replica"

enum {
    PARTS_MAX = 256,
    NONE = -1 /* entries of a directory that is no store */
};

/* A store on a disk, and parts of it, of which some were applied. */
struct scene {
    struct sim_disk *disk;
    struct wal_slice parts[PARTS_MAX];
    int count;
    int applied;
    int entries; /* of all parts */
    bool takes_store;
    int per_sync;      /* parts that are written, the last of which is applied;
                        * 0: each is applied */
    uint64_t segments; /* when it is complete: bit of each id; 0: not known */
};

/* --- parts -------------------------------------------------------------- */

static void keep(struct scene *scene, struct wal_slice part)
{
    void *copy = malloc(part.size);

    assert_non_null(copy);
    assert_true(scene->count < PARTS_MAX);
    memcpy(copy, part.data, part.size);
    scene->parts[scene->count++] = (struct wal_slice){copy, part.size};
}

/* Reads all that follows the parts read before. */
static void read_parts(struct scene *scene, uint64_t max_size)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_part_reader *reader = NULL;
    struct old_process machine;
    struct wal_slice part;
    enum wal_status status = WAL_OK;

    if (scene->count > 0) {
        assert_ok(wal_part_get_info(scene->parts[scene->count - 1], &info, NULL));
    }
    old_process_start(&machine, scene->disk);
    machine.store = copied_open(&machine, OLD_ROOT, WAL_OPEN_READ_ONLY);
    assert_ok(wal_part_reader_open(machine.store, &reader, NULL));
    while (status == WAL_OK) {
        status = wal_part_reader_next(reader, info.after, max_size, &part, &info, &old_error);
        if (status == WAL_OK) {
            keep(scene, part);
        }
    }
    assert_int_equal(status, WAL_END);
    wal_part_reader_close(reader);
    old_close(&machine);
    old_process_stop(&machine);
}

static void forget_parts(struct scene *scene)
{
    for (int i = 0; i < scene->count; i++) {
        free((void *)(uintptr_t)scene->parts[i].data);
    }
    scene->count = 0;
    scene->applied = 0;
}

/* Applies the parts from `from` on; raises *applied by those that are durable then. A sync after a
 * failure makes durable what was written before it. */
static enum wal_status apply(const struct scene *scene, struct old_process *machine, int from,
                             int *applied)
{
    struct wal_replica *replica = NULL;
    enum wal_status status =
        wal__replica_open(REPLICA, scene->takes_store, &machine->heap.heap,
                          sim_process_io(machine->process), &replica, &old_error);
    int written = 0;

    for (int i = from; i < scene->count && status == WAL_OK; i++) {
        const bool is_later =
            scene->per_sync > 0 && i + 1 < scene->count && (i + 1) % scene->per_sync != 0;

        status = is_later ? wal_replica_write(replica, scene->parts[i], &old_error)
                          : wal_replica_apply(replica, scene->parts[i], &old_error);
        written = status == WAL_OK ? i + 1 : written;
        if (status == WAL_OK && !is_later && i >= *applied) {
            *applied = i + 1;
        }
    }
    if (status != WAL_OK && written > *applied && wal_replica_sync(replica, NULL) == WAL_OK) {
        *applied = written;
    }
    wal_replica_close(replica);
    return status;
}

/* Applies all parts again without a fault; those that are there change nothing. */
static void complete(struct scene *scene)
{
    struct old_process machine;

    old_process_start(&machine, scene->disk);
    if (apply(scene, &machine, 0, &scene->applied) != WAL_OK) {
        fail_msg("cannot go on: %s (%s)", old_error.text, old_error.file);
    }
    old_process_stop(&machine);
    assert_int_equal(copied_count(scene->disk, REPLICA), scene->entries);
}

/* Which segments the log of the replica has, those after the first 63 apart. */
static uint64_t segments_of(const struct scene *scene)
{
    uint64_t segments = 0;

    for (int id = 1; id < 64; id++) {
        char path[64];

        (void)snprintf(path, sizeof(path), REPLICA "/log/%016x.seg", (unsigned)id);
        if (sim_file_exists(scene->disk, path)) {
            segments |= UINT64_C(1) << id;
        }
    }
    return segments;
}

/* What was replaced is gone, also when the power goes. */
static void expect_segments(const struct scene *scene)
{
    if (scene->segments != 0 && segments_of(scene) != scene->segments) {
        ledger_fail("segments %llx, not %llx", (unsigned long long)segments_of(scene),
                    (unsigned long long)scene->segments);
    }
}

/* --- the loop ----------------------------------------------------------- */

/* The entries that the first parts have, by applying them on a separate disk. */
static int entries_of(const struct scene *scene, int parts)
{
    static int known[PARTS_MAX + 1];
    static const struct wal_slice *of;
    static int count;

    if (of != scene->parts || count != scene->count) {
        struct scene other = *scene;

        other.disk = sim_disk_create(12);
        for (int i = 0; i < scene->count; i++) {
            struct old_process machine;
            int applied = 0;

            other.count = i + 1;
            old_process_start(&machine, other.disk);
            assert_ok(apply(&other, &machine, i, &applied));
            old_process_stop(&machine);
            known[i + 1] = copied_count(other.disk, REPLICA);
        }
        sim_disk_destroy(other.disk);
        of = scene->parts;
        count = scene->count;
    }
    return parts == 0 ? 0 : known[parts];
}

static void expect_prefix(const struct scene *scene, int least)
{
    int count;

    if (!sim_file_exists(scene->disk, REPLICA "/MANIFEST")) {
        assert_int_equal(least, 0);
        return;
    }
    count = copied_count(scene->disk, REPLICA);
    if (count < least || count > scene->entries) {
        fail_msg("the replica has %d entries, not %d to %d", count, least, scene->entries);
    }
}

/* True: the fault struck. */
static bool cut_short(struct scene *scene, const struct sim_fault *fault)
{
    struct old_process machine;
    bool struck;

    old_process_start(&machine, scene->disk);
    sim_process_add_fault(machine.process, fault);
    if (setjmp(machine.death) == 0) {
        (void)!apply(scene, &machine, scene->applied, &scene->applied);
    }
    struck = sim_process_counts(machine.process)->faults > 0;
    old_process_stop(&machine);
    return struck;
}

/* The replica becomes a store, that or the power goes in the middle of it. */
static void promote(struct scene *scene, uint64_t nth)
{
    const struct sim_fault fault = {.call = SIM_ANY, .effect = SIM_KILL_BEFORE, .after = nth % 40};
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};

    for (int attempt = 0; attempt < 2; attempt++) {
        struct wal_replica *replica = NULL;
        struct old_process machine;
        enum wal_status status = WAL_OK;

        old_process_start(&machine, scene->disk);
        if (attempt == 0) {
            sim_process_add_fault(machine.process, &fault);
        }
        if (setjmp(machine.death) == 0) {
            status = wal__replica_open(REPLICA, false, &machine.heap.heap,
                                       sim_process_io(machine.process), &replica, NULL);
            if (status == WAL_OK) {
                status = wal_replica_promote(replica, NULL);
            }
            /* The first attempt did it. */
            assert_true(status == WAL_OK || (attempt == 1 && status == WAL_EEXISTS));
        }
        old_process_stop(&machine);
        if (nth % 3 == 0) {
            sim_disk_power_loss(scene->disk, &loss, nth);
        }
        assert_int_equal(copied_count(scene->disk, REPLICA), scene->entries);
    }
}

static bool fail_nth(const struct scene *base, uint32_t way, uint64_t nth)
{
    const struct sim_power_loss none = {.landing = SIM_PERSIST_NONE};
    struct sim_power_loss loss = {.landing =
                                      (enum sim_persistence)(nth / 2 % (uint64_t)SIM_PERSISTENCES),
                                  .garbage = nth % 4 == 0};
    struct scene scene = *base;
    struct sim_fault fault = copied_faults[way];
    struct copied_sync sync = {.path = REPLICA};
    bool struck;

    ledger_set_context("way %u, call %llu", way, (unsigned long long)nth);
    scene.disk = sim_disk_clone(base->disk);
    /* A call of one kind fails twice: with and without a loss of power. */
    fault.after = fault.call == SIM_ANY ? nth : nth / 2;
    sim_disk_on_call(scene.disk, copied_note_sync, &sync);
    struck = cut_short(&scene, &fault);
    if (struck) {
        if (nth % 2 == 0) {
            sim_disk_power_loss(scene.disk, &loss, nth);
            sync.has_failed = false;
        }
        expect_prefix(&scene, entries_of(base, scene.applied));
        complete(&scene);
        expect_segments(&scene);
        if (!sync.has_failed) {
            sim_disk_power_loss(scene.disk, &none, nth);
            /* A later sync does not make up for one that failed: the next call finds what is
             * back. */
            if (fault.sys_errno != 0) {
                complete(&scene);
            }
            expect_segments(&scene);
            assert_int_equal(copied_count(scene.disk, REPLICA), scene.entries);
            promote(&scene, nth);
        }
    }
    sim_disk_destroy(scene.disk);
    return struck;
}

static void loop(struct scene *scene, uint32_t every)
{
    uint64_t runs = 0;

    if (WITH_ADDRESS_SANITIZER && every < workload_sample(1)) {
        every = workload_sample(1);
    }
    (void)entries_of(scene, 0);
    for (uint32_t way = 0; way < COPIED_FAULTS; way++) {
        uint32_t stride = workload_stride(copied_faults[way].call, every);
        uint64_t nth = way % stride;

        while (fail_nth(scene, way, nth)) {
            nth += stride;
            runs++;
        }
    }
    assert_true(runs > 0);
    print_message("%d parts, cut short %llu times\n", scene->count, (unsigned long long)runs);
    sim_disk_destroy(scene->disk);
    forget_parts(scene);
}

static struct scene begin(int entries)
{
    struct scene scene = {.disk = sim_disk_create(11)};

    copied_add(scene.disk, &scene.entries, entries);
    return scene;
}

TEST(loop_replica__of_one_part)
{
    struct scene scene = begin(12);

    read_parts(&scene, 0);
    loop(&scene, workload_sample(3));
}

TEST(loop_replica__of_many_parts)
{
    struct scene scene = begin(8);

    read_parts(&scene, 1000);
    loop(&scene, 1);
}

/* With content and several segments, written before any of it is durable. */
TEST(loop_replica__of_parts_that_are_synced_later)
{
    struct scene scene = begin(8);

    copied_add(scene.disk, &scene.entries, 30);
    read_parts(&scene, 1000);
    scene.per_sync = scene.count;
    loop(&scene, workload_sample(7));
}

/* The syncs of files that the parts take. */
static uint64_t syncs_of(const struct scene *scene)
{
    struct scene copy = *scene;
    struct old_process machine;
    uint64_t syncs;

    copy.disk = sim_disk_create(13);
    old_process_start(&machine, copy.disk);
    assert_int_equal(apply(&copy, &machine, 0, &copy.applied), WAL_OK);
    syncs = sim_process_counts(machine.process)->calls[SIM_SYNC];
    old_process_stop(&machine);
    sim_disk_destroy(copy.disk);
    return syncs;
}

/* Of one segment, one for all of them. */
TEST(loop_replica__of_parts_that_are_synced_once)
{
    struct scene scene = begin(5);
    uint64_t each;

    for (int i = 0; i < 20; i++) {
        copied_add(scene.disk, &scene.entries, 1);
        read_parts(&scene, 0);
    }
    each = syncs_of(&scene);
    scene.per_sync = scene.count;
    assert_true(syncs_of(&scene) + 15 <= each);
    sim_disk_destroy(scene.disk);
    forget_parts(&scene);
}

TEST(loop_replica__of_parts_that_are_synced_at_times)
{
    struct scene scene = begin(8);

    read_parts(&scene, 1000);
    scene.per_sync = 3;
    loop(&scene, 1);
}

TEST(loop_replica__that_goes_on)
{
    struct scene scene = begin(8);

    read_parts(&scene, 0);
    complete(&scene);
    copied_add(scene.disk, &scene.entries, 6);
    read_parts(&scene, 0);
    loop(&scene, 1);
}

/* As a base has them: the same log in fewer parts, of which the replica has the beginning from
 * smaller ones. */
TEST(loop_replica__of_parts_that_overlap)
{
    struct scene scene = begin(8);

    read_parts(&scene, 1000);
    complete(&scene);
    forget_parts(&scene);
    copied_add(scene.disk, &scene.entries, 6);
    read_parts(&scene, 0);
    loop(&scene, 1);
}

TEST(loop_replica__of_segments_that_ended)
{
    struct scene scene = begin(8);

    copied_add(scene.disk, &scene.entries, 50);
    read_parts(&scene, 0);
    loop(&scene, workload_sample(7));
}

TEST(loop_replica__of_segments_that_compaction_wrote)
{
    struct scene scene = begin(30);

    copied_compact(scene.disk);
    copied_add(scene.disk, &scene.entries, 3);
    read_parts(&scene, 0);
    loop(&scene, workload_sample(5));
}

/* The replica has everything, in segments of which compaction has made others since: these replace
 * them. */
TEST(loop_replica__of_segments_that_replace_its_own)
{
    struct scene scene = begin(8);
    struct scene whole;

    copied_add(scene.disk, &scene.entries, 50);
    read_parts(&scene, 0);
    complete(&scene);
    copied_compact(scene.disk);
    copied_add(scene.disk, &scene.entries, 3);
    read_parts(&scene, 0);
    complete(&scene);
    forget_parts(&scene);
    read_parts(&scene, 0);
    whole = scene;
    whole.disk = sim_disk_clone(scene.disk);
    complete(&whole);
    scene.segments = segments_of(&whole);
    assert_true(scene.segments != segments_of(&scene));
    sim_disk_destroy(whole.disk);
    loop(&scene, workload_sample(5));
}

/* The replica becomes a store, and has written nothing since. */
static void make_store(const struct scene *scene)
{
    struct wal_replica *replica = NULL;
    struct old_process machine;

    old_process_start(&machine, scene->disk);
    assert_ok(wal__replica_open(REPLICA, false, &machine.heap.heap, sim_process_io(machine.process),
                                &replica, NULL));
    assert_ok(wal_replica_promote(replica, NULL));
    old_process_stop(&machine);
}

TEST(loop_replica__of_a_store)
{
    struct scene scene = begin(8);

    read_parts(&scene, 0);
    complete(&scene);
    make_store(&scene);
    scene.takes_store = true;
    copied_add(scene.disk, &scene.entries, 6);
    read_parts(&scene, 1000);
    loop(&scene, workload_is_long() ? 1 : 2);
}
