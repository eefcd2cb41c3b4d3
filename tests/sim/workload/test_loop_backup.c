/*
 * test_loop_backup.c - a backup that is cut short at its Nth call to the system, for every N: the
 * process dies, the call fails once or from then on, the disk is full; then the power goes, or not.
 * The copy opens as of one backup or the other, also for a process that only reads and for
 * walcheck, the store is unharmed, and the next backup goes on.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "engine/care/part.h"
#include "engine/care/salvage.h"
#include "engine/session/store.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/test.h"
#include "tests/sim/workload/copied_store.h"
#include "tests/sim/workload/workload.h"

#define COPY    "/copy"
/* What is made of the copy. */
#define SECOND  "/second"
#define SALVAGE "/salvage"

#define ERASED "erased"

enum {
    NONE = -1, /* entries of a copy that is no store */
    ERASED_ENTRIES = 14
};

/* A store on a disk, and the backup that is cut short. */
struct scene {
    struct sim_disk *disk;
    int copied;      /* entries of the copy; NONE: it is no store */
    int entries;     /* of the store, all durable */
    bool has_erased; /* the copy has the session ERASED, and the store not */
    int *shadows;    /* counts the copies that a cut left with `shadow` */
    bool has_writer;
    struct old_process writer;
    struct wal_session *session; /* of the writer */
};

/* --- backups ------------------------------------------------------------ */

/* The writer goes on while the backup copies. */
static int32_t on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct scene *scene = ctx;

    assert_true(done <= total);
    if (scene->has_writer && scene->session != NULL) {
        scene->entries += copied_append(scene->session, scene->entries, WAL_DURABLE) == WAL_OK;
    }
    return 0;
}

static enum wal_status back_up(struct scene *scene, struct old_process *machine)
{
    struct wal_store_backup_options options = {
        .struct_size = sizeof(options), .progress = on_progress, .ctx = scene};

    old_error = (struct wal_error){.struct_size = sizeof(old_error)};
    return wal_store_backup(machine->store, COPY, &options, NULL, &old_error);
}

/* Whether the backup was cut short after it committed. */
static bool has_shadows(const struct scene *scene)
{
    struct wal__manifest manifest = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;

    if (sim_file_exists(scene->disk, COPY "/MANIFEST")) {
        sim_disk_read_file(scene->disk, COPY "/MANIFEST", &bytes, &size);
        assert_int_equal(size, WAL__MANIFEST_SIZE);
        assert_int_equal(wal__manifest_decode(bytes, &manifest), WAL__FMT_OK);
        free(bytes);
    }
    return manifest.has_shadows;
}

/* A backup without a fault: the copy has everything. */
static void complete(struct scene *scene)
{
    struct old_process machine;

    old_process_start(&machine, scene->disk);
    machine.store = copied_open(&machine, OLD_ROOT, WAL_OPEN_READ_ONLY);
    if (back_up(scene, &machine) != WAL_OK) {
        fail_msg("the backup fails: %s (%s)", old_error.text, old_error.file);
    }
    old_close(&machine);
    old_process_stop(&machine);
    scene->copied = scene->entries;
    assert_int_equal(copied_count(scene->disk, COPY), scene->copied);
    assert_false(has_shadows(scene));
    if (scene->has_erased) {
        assert_int_equal(copied_count_other(scene->disk, COPY, ERASED), NONE);
        scene->has_erased = false;
    }
}

static void start_writer(struct scene *scene)
{
    scene->has_writer = true;
    old_process_start(&scene->writer, scene->disk);
    scene->writer.store = copied_open(&scene->writer, OLD_ROOT, 0);
    scene->session = copied_session(scene->writer.store);
    for (int i = 0; i < 2; i++) {
        assert_ok(copied_append(scene->session, scene->entries, WAL_DURABLE));
        scene->entries++;
    }
}

static void stop_writer(struct scene *scene)
{
    if (scene->has_writer) {
        old_process_stop(&scene->writer);
        scene->has_writer = false;
        scene->session = NULL;
    }
}

/* --- the loop ----------------------------------------------------------- */

/* Walcheck finds a copy of the copy sound. */
static void check(const struct scene *scene)
{
    int status;

    assert_int_equal(system("rm -rf checked"), 0);
    assert_true(sim_disk_dump(scene->disk, COPY, "checked"));
    status = system("\"$WALBIN/agentwal\" --store checked check >output "
                    "2>&1");
    if (status != 0) {
        (void)!system("cat output");
        fail_msg("walcheck finds damage");
    }
}

/* The copy is as of one backup or the other. */
static void expect_one_or_other(const struct scene *scene, int least)
{
    int count;

    if (!sim_file_exists(scene->disk, COPY "/MANIFEST")) {
        assert_int_equal(scene->copied, NONE);
        return;
    }
    count = copied_count(scene->disk, COPY);
    if (count != scene->copied && (count < least || count > scene->entries)) {
        fail_msg("the copy has %d entries: neither %d nor %d to %d", count, scene->copied, least,
                 scene->entries);
    }
    if (scene->has_erased) {
        assert_int_equal(copied_count_other(scene->disk, COPY, ERASED),
                         count == scene->copied ? ERASED_ENTRIES : NONE);
    }
}

/* A process that opens the copy for writing completes it, or removes what the backup left;
 * durably. */
static void expect_completed(const struct scene *scene, int least)
{
    const struct sim_power_loss none = {.landing = SIM_PERSIST_NONE};
    struct scene opened = *scene;
    struct old_process machine;

    if (scene->copied == NONE) {
        return;
    }
    opened.disk = sim_disk_clone(scene->disk);
    for (int i = 0; i < 2; i++) {
        old_process_start(&machine, opened.disk);
        machine.store = copied_open(&machine, COPY, 0);
        old_close(&machine);
        old_process_stop(&machine);
        expect_one_or_other(&opened, least);
        sim_disk_power_loss(opened.disk, &none, 0);
    }
    sim_disk_destroy(opened.disk);
}

/* A backup of the copy as it is, and what salvage finds in it, have what it has. */
static void expect_copied(const struct scene *scene)
{
    const struct wal_salvage_options options = {.struct_size = sizeof(options),
                                                .key = kit_test_key()};
    struct wal_salvage_result result = WAL_INIT(wal_salvage_result);
    const char *const paths[] = {SECOND, SALVAGE};
    struct sim_disk *disk = sim_disk_clone(scene->disk);
    struct old_process machine;

    old_process_start(&machine, disk);
    machine.store = copied_open(&machine, COPY, WAL_OPEN_READ_ONLY);
    if (wal_store_backup(machine.store, SECOND, NULL, NULL, &old_error) != WAL_OK ||
        wal__salvage(COPY, SALVAGE, &options, &machine.heap.heap, sim_process_io(machine.process),
                     &result, &old_error) != WAL_OK) {
        fail_msg("the copy cannot be copied: %s (%s)", old_error.text, old_error.file);
    }
    old_close(&machine);
    old_process_stop(&machine);
    assert_int_equal(result.losses, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(copied_count(disk, paths[i]), copied_count(disk, COPY));
        assert_int_equal(copied_count_other(disk, paths[i], ERASED),
                         copied_count_other(disk, COPY, ERASED));
    }
    sim_disk_destroy(disk);
}

/* The copy is completed before it follows another store. */
static void expect_taken(const struct scene *scene)
{
    struct wal_replica *replica = NULL;
    struct scene taken = *scene;
    struct old_process machine;
    int count = copied_count(scene->disk, COPY);

    taken.disk = sim_disk_clone(scene->disk);
    old_process_start(&machine, taken.disk);
    if (wal__replica_open(COPY, true, &machine.heap.heap, sim_process_io(machine.process), &replica,
                          &old_error) != WAL_OK) {
        fail_msg("the copy cannot follow: %s (%s)", old_error.text, old_error.file);
    }
    wal_replica_close(replica);
    old_process_stop(&machine);
    assert_false(has_shadows(&taken));
    assert_int_equal(copied_count(taken.disk, COPY), count);
    sim_disk_destroy(taken.disk);
}

/* True: the fault struck. */
static bool cut_short(struct scene *scene, const struct sim_fault *fault)
{
    struct old_process machine;
    bool struck;

    old_process_start(&machine, scene->disk);
    machine.store = copied_open(&machine, OLD_ROOT, fault->after % 2 == 0 ? WAL_OPEN_READ_ONLY : 0);
    memset(sim_process_counts(machine.process), 0, sizeof(struct sim_counts));
    sim_process_add_fault(machine.process, fault);
    if (setjmp(machine.death) == 0) {
        (void)!back_up(scene, &machine);
    }
    struck = sim_process_counts(machine.process)->faults > 0;
    old_process_stop(&machine);
    return struck;
}

static bool fail_nth(const struct scene *base, uint32_t way, uint64_t nth)
{
    const struct sim_power_loss none = {.landing = SIM_PERSIST_NONE};
    struct sim_power_loss loss = {.landing =
                                      (enum sim_persistence)(nth / 2 % (uint64_t)SIM_PERSISTENCES),
                                  .garbage = nth % 4 == 0};
    bool has_loss = nth % 2 == 0;
    struct scene scene = *base;
    struct sim_fault fault = copied_faults[way];
    struct copied_sync sync = {.path = COPY};
    bool struck;
    int least;

    ledger_set_context("way %u, call %llu", way, (unsigned long long)nth);
    scene.disk = sim_disk_clone(base->disk);
    if (nth % 8 < 4) {
        start_writer(&scene);
    }
    least = scene.entries;
    /* A call of one kind fails twice: with and without a loss of power. */
    fault.after = fault.call == SIM_ANY ? nth : nth / 2;
    sim_disk_on_call(scene.disk, copied_note_sync, &sync);
    struck = cut_short(&scene, &fault);
    stop_writer(&scene);
    if (struck) {
        if (has_loss) {
            sim_disk_power_loss(scene.disk, &loss, nth);
            sync.has_failed = false;
        }
        expect_one_or_other(&scene, least);
        if (scene.has_erased && nth % 3 == 0) {
            check(&scene);
        }
        if (has_shadows(&scene)) {
            expect_copied(&scene);
            expect_taken(&scene);
            (*scene.shadows)++;
        }
        if (nth % 7 < 2 && scene.copied != NONE) {
            /* The next one is cut short too. */
            fault.after = nth * 5 % 47;
            (void)cut_short(&scene, &fault);
            expect_one_or_other(&scene, least);
        }
        if (nth % 4 == 1 && !sync.has_failed) {
            expect_completed(&scene, least);
        }
        assert_int_equal(copied_count(scene.disk, OLD_ROOT), scene.entries);
        if (nth % 5 == 0) {
            copied_compact(scene.disk);
            copied_add(scene.disk, &scene.entries, 3);
        }
        complete(&scene);
        if (!sync.has_failed) {
            sim_disk_power_loss(scene.disk, &none, nth);
            assert_int_equal(copied_count(scene.disk, COPY), scene.copied);
        }
    }
    sim_disk_destroy(scene.disk);
    return struck;
}

static void loop(struct scene *scene, uint32_t every)
{
    uint64_t runs = 0;
    int shadows = 0;

    scene->shadows = &shadows;

    for (uint32_t way = 0; way < COPIED_FAULTS; way++) {
        uint32_t stride = workload_stride(copied_faults[way].call, every);
        uint64_t nth = way % stride;

        while (fail_nth(scene, way, nth)) {
            nth += stride;
            runs++;
        }
    }
    assert_true(runs > 0);
    assert_true(!scene->has_erased || shadows > 0);
    print_message("%llu backups cut short, %d after they committed\n", (unsigned long long)runs,
                  shadows);
    sim_disk_destroy(scene->disk);
}

static struct scene begin(int entries)
{
    struct scene scene = {.disk = sim_disk_create(11), .copied = NONE};

    copied_add(scene.disk, &scene.entries, entries);
    return scene;
}

TEST(loop_backup__of_a_new_copy)
{
    struct scene scene = begin(12);

    loop(&scene, workload_sample(3));
}

TEST(loop_backup__of_a_few_entries)
{
    struct scene scene = begin(2);

    complete(&scene);
    copied_add(scene.disk, &scene.entries, 1);
    loop(&scene, workload_sample(3));
}

TEST(loop_backup__of_segments_that_ended)
{
    struct scene scene = begin(8);

    complete(&scene);
    copied_add(scene.disk, &scene.entries, 50);
    loop(&scene, workload_sample(5));
}

TEST(loop_backup__after_compaction)
{
    struct scene scene = begin(40);

    complete(&scene);
    copied_compact(scene.disk);
    copied_add(scene.disk, &scene.entries, 3);
    loop(&scene, workload_sample(3));
}

TEST(loop_backup__after_merging)
{
    struct scene scene = begin(20);

    copied_compact(scene.disk);
    copied_add(scene.disk, &scene.entries, 20);
    complete(&scene);
    copied_add(scene.disk, &scene.entries, 2);
    copied_compact(scene.disk);
    copied_add(scene.disk, &scene.entries, 2);
    copied_compact(scene.disk);
    loop(&scene, workload_sample(3));
}

/* The entries of ERASED are in segments with others, and one that has its TOMBSTONE alone.
 * `rounds`: erasing a second time leaves out that too. */
static struct scene begin_erased(int rounds)
{
    struct scene scene = begin(2);
    struct old_process machine;
    struct wal_session *session;

    old_process_start(&machine, scene.disk);
    machine.store = copied_open(&machine, OLD_ROOT, 0);
    session = copied_other_session(machine.store, ERASED);
    for (int i = 0; i < ERASED_ENTRIES; i++) {
        assert_ok(copied_append(session, i, WAL_DURABLE));
    }
    wal_session_close(session);
    old_close(&machine);
    old_process_stop(&machine);
    copied_add(scene.disk, &scene.entries, 10);
    complete(&scene);
    assert_int_equal(copied_count_other(scene.disk, COPY, ERASED), ERASED_ENTRIES);
    old_process_start(&machine, scene.disk);
    machine.store = copied_open(&machine, OLD_ROOT, 0);
    session = copied_other_session(machine.store, ERASED);
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    old_close(&machine);
    old_process_stop(&machine);
    scene.has_erased = true;
    for (int i = 0; i < rounds; i++) {
        copied_erase(scene.disk);
        copied_add(scene.disk, &scene.entries, 12);
    }
    return scene;
}

TEST(loop_backup__after_erasing)
{
    struct scene scene = begin_erased(1);

    loop(&scene, workload_sample(3));
}

TEST(loop_backup__after_erasing_its_tombstone)
{
    struct scene scene = begin_erased(3);

    loop(&scene, workload_sample(3));
}

/* --- readers ------------------------------------------------------------ */

/* A process that opens the copy, and a backup to it that runs between two of its calls to the
 * system. */
struct overtaking {
    struct scene scene;
    struct old_process reader;
    struct sim_fault fault; /* of the backup */
    uint64_t after;         /* calls of the reader */
    bool has_run;
};

static void overtake(void *arg, const struct sim_event *event)
{
    struct overtaking *overtaking = arg;

    if (event->process != overtaking->reader.process || overtaking->has_run ||
        overtaking->after-- > 0) {
        return;
    }
    overtaking->has_run = true;
    (void)cut_short(&overtaking->scene, &overtaking->fault);
}

/* False: the reader makes fewer calls. */
static bool overtake_reader(const struct scene *base, const struct sim_fault *fault, uint64_t after)
{
    /* It cannot have the lock, as next to a backup that runs for long. */
    const struct sim_fault no_lock = {
        .call = SIM_OPEN, .path = COPY "/LOCK", .sys_errno = EACCES, .sticky = true};
    struct overtaking overtaking = {.scene = *base, .fault = *fault, .after = after};
    struct scene *scene = &overtaking.scene;
    int count;
    int erased;

    ledger_set_context("a backup after %llu calls of the reader", (unsigned long long)after);
    scene->disk = sim_disk_clone(base->disk);
    old_process_start(&overtaking.reader, scene->disk);
    sim_process_add_fault(overtaking.reader.process, &no_lock);
    sim_disk_on_call(scene->disk, overtake, &overtaking);
    overtaking.reader.store =
        copied_open(&overtaking.reader, COPY, WAL_OPEN_STRICT | WAL_OPEN_READ_ONLY);
    sim_disk_on_call(scene->disk, NULL, NULL);
    count = copied_count_in(overtaking.reader.store, "s");
    erased = copied_count_in(overtaking.reader.store, ERASED);
    if (count == scene->copied) {
        assert_int_equal(erased, ERASED_ENTRIES);
    } else {
        assert_int_equal(count, scene->entries);
        assert_int_equal(erased, NONE);
    }
    old_close(&overtaking.reader);
    old_process_stop(&overtaking.reader);
    sim_disk_destroy(scene->disk);
    return overtaking.has_run;
}

TEST(loop_backup__overtakes_a_reader_that_opens_the_copy)
{
    /* It ends, or is killed while it renames what it committed. */
    const struct sim_fault ways[] = {
        {.call = SIM_ANY, .effect = SIM_KILL_BEFORE, .after = UINT32_MAX},
        {.call = SIM_RENAME, .path = ".next", .effect = SIM_KILL_BEFORE},
        {.call = SIM_RENAME, .path = ".next", .effect = SIM_KILL_AFTER},
    };
    struct scene scene = begin_erased(1);

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        for (uint64_t after = 0; overtake_reader(&scene, &ways[i], after); after++) {
        }
    }
    sim_disk_destroy(scene.disk);
}

/* Reads the session "s" to its end. */
static enum wal_status read_session(struct wal_store *store)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(store, old_slice("s"), &session, &old_error);

    if (status == WAL_OK) {
        status = wal_entry_cursor_open(session, NULL, &cursor, &old_error);
    }
    while (status == WAL_OK) {
        status = wal_entry_cursor_next(cursor, &entry, &old_error);
    }
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    return status;
}

/* A process reads a copy that is then completed, and gets shadow segments of the next backup, which
 * do not count. */
TEST(loop_backup__of_a_copy_that_is_read_as_completed)
{
    const struct sim_fault before_renames = {
        .call = SIM_RENAME, .path = ".next", .effect = SIM_KILL_BEFORE};
    const struct sim_fault before_commit = {
        .call = SIM_RENAME, .path = "MANIFEST", .effect = SIM_KILL_BEFORE};
    struct scene scene = begin_erased(1);
    struct old_process reader;

    assert_true(cut_short(&scene, &before_renames));
    assert_true(has_shadows(&scene));
    old_process_start(&reader, scene.disk);
    reader.store = copied_open(&reader, COPY, WAL_OPEN_READ_ONLY);
    complete(&scene);
    copied_compact(scene.disk);
    assert_true(cut_short(&scene, &before_commit));
    assert_false(has_shadows(&scene));
    assert_int_equal(read_session(reader.store), WAL_EBUSY);
    assert_non_null(strstr(old_error.text, "open it again"));
    old_close(&reader);
    reader.store = copied_open(&reader, COPY, WAL_OPEN_READ_ONLY);
    assert_int_equal(copied_count_in(reader.store, "s"), scene.copied);
    old_close(&reader);
    old_process_stop(&reader);
    sim_disk_destroy(scene.disk);
}

/* --- memory, and an older format ----------------------------------------- */

static bool fail_allocation(const struct scene *base, uint64_t nth)
{
    struct scene scene = *base;
    struct old_process machine;
    enum wal_status status;
    bool struck;

    ledger_set_context("allocation %llu", (unsigned long long)nth);
    scene.disk = sim_disk_clone(base->disk);
    old_process_start(&machine, scene.disk);
    machine.store = copied_open(&machine, OLD_ROOT, 0);
    faulty_heap_fail(&machine.heap, nth, false);
    status = back_up(&scene, &machine);
    struck = machine.heap.failures > 0;
    assert_true(status == WAL_OK || (struck && status == WAL_ENOMEM));
    faulty_heap_fail(&machine.heap, 0, false);
    old_close(&machine);
    old_process_stop(&machine);
    expect_one_or_other(&scene, scene.entries);
    complete(&scene);
    sim_disk_destroy(scene.disk);
    return struck;
}

TEST(loop_backup__every_allocation_fails)
{
    struct scene scene = begin(14);
    uint64_t nth = 1;

    complete(&scene);
    copied_compact(scene.disk);
    copied_add(scene.disk, &scene.entries, 14);
    while (fail_allocation(&scene, nth)) {
        nth++;
    }
    assert_true(nth > 10);
    print_message("%llu allocations\n", (unsigned long long)nth);
    sim_disk_destroy(scene.disk);
}

/* The version and the number of sessions of the copy. */
static void expect_copy(struct sim_disk *disk, uint32_t version)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct old_process machine;

    old_process_start(&machine, disk);
    machine.store = copied_open(&machine, COPY, WAL_OPEN_STRICT | WAL_OPEN_READ_ONLY);
    assert_ok(wal_store_get_info(machine.store, &info, NULL));
    assert_int_equal(info.format_version, version);
    assert_int_equal(old_count_listed(machine.store), OLD_SESSIONS);
    old_close(&machine);
    old_process_stop(&machine);
}

static void back_up_old(struct sim_disk *disk)
{
    struct scene scene = {.disk = disk};
    struct old_process machine;

    old_process_start(&machine, disk);
    machine.store = copied_open(&machine, OLD_ROOT, WAL_OPEN_READ_ONLY);
    if (back_up(&scene, &machine) != WAL_OK) {
        fail_msg("the backup fails: %s", old_error.text);
    }
    old_close(&machine);
    old_process_stop(&machine);
}

TEST_WITH(loop_backup__follows_a_migration, old_set_up, old_tear_down)
{
    struct wal_migrate_result result;
    struct old_process machine;

    back_up_old(*state);
    expect_copy(*state, 0);
    old_process_start(&machine, *state);
    assert_ok(old_migrate(&machine, &result));
    old_process_stop(&machine);
    back_up_old(*state);
    expect_copy(*state, 1);
}
