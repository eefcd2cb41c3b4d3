/*
 * test_loop_view_roots.c - adding a root to a store's list of roots of views, the first one and a
 * second one, cut short at its Nth call to the system for every N: the process dies, or the call
 * fails once or from then on; then the power goes, or not. Also with the Nth allocation failing.
 * What was added is there, what was there stays, no entry is damaged, and the next process adds
 * what is missing (SPEC.md 10.7).
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session/view_roots.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/sim.h"

static const struct sim_fault ways[] = {
    {.call = SIM_ANY, .effect = SIM_KILL_BEFORE},
    {.call = SIM_ANY, .effect = SIM_KILL_AFTER},
    {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 10},
    {.call = SIM_ANY, .sys_errno = EIO},
    {.call = SIM_ANY, .sys_errno = EIO, .sticky = true},
    {.call = SIM_ANY, .sys_errno = ENOSPC, .sticky = true},
};

static const char *const paths[] = {"/the/first", "/the/second"};

enum { WAYS = sizeof(ways) / sizeof(ways[0]), PATHS = sizeof(paths) / sizeof(paths[0]) };

struct machine {
    struct sim_disk *disk;
    struct sim_process *process;
    struct arena_heap arena; /* a process that dies leaves nothing */
    struct faulty_heap heap;
    struct wal__env env;
    jmp_buf death;
};

static void start(struct machine *machine)
{
    machine->process = sim_process_create(machine->disk);
    arena_heap_init(&machine->arena);
    faulty_heap_init(&machine->heap, &machine->arena.heap);
    machine->env = (struct wal__env){
        .heap = &machine->heap.heap, .io = sim_process_io(machine->process), .root = "/store"};
}

static void stop(struct machine *machine)
{
    if (!sim_process_is_dead(machine->process)) {
        assert_int_equal(arena_heap_count(&machine->arena), 0);
    }
    sim_process_destroy(machine->process);
    arena_heap_deinit(&machine->arena);
}

static enum wal_status add(struct machine *machine, unsigned which)
{
    const struct wal__view_root root = {
        .dialect = {(const uint8_t *)"claude", 6},
        .path = {(const uint8_t *)paths[which], strlen(paths[which])}};
    bool is_new;

    return wal__view_roots_add(&machine->env, &root, true, &is_new, NULL);
}

struct found {
    unsigned entries; /* valid ones */
    bool has[PATHS];
    unsigned names;     /* of entries */
    unsigned leftovers; /* other names */
};

static enum wal_status count_entry(void *ctx, const struct wal__view_root *root)
{
    struct found *found = ctx;

    found->entries++;
    assert_int_equal(root->dialect.size, 6);
    for (unsigned i = 0; i < PATHS; i++) {
        if (root->path.size == strlen(paths[i]) &&
            memcmp(root->path.data, paths[i], root->path.size) == 0) {
            found->has[i] = true;
        }
    }
    return WAL_OK;
}

static enum wal_status count_name(void *ctx, const char *name)
{
    struct found *found = ctx;

    if (wal__view_root_is_name(name)) {
        found->names++;
    } else {
        found->leftovers++;
    }
    return WAL_OK;
}

/* What a process finds that looks now. */
static struct found look(struct sim_disk *disk)
{
    struct machine machine = {.disk = disk};
    struct found found = {.entries = 0};
    int err;

    start(&machine);
    assert_ok(wal__view_roots_list(&machine.env, count_entry, &found, NULL));
    (void)!machine.env.io->list(machine.env.io->ctx, "/store/views", count_name, &found, &err);
    stop(&machine);
    return found;
}

/* A disk with a store that has as many entries. */
static struct sim_disk *prepare(unsigned entries)
{
    struct machine machine = {.disk = sim_disk_create(11)};

    sim_disk_write_file(machine.disk, "/store/MANIFEST", "x", 1);
    start(&machine);
    for (unsigned i = 0; i < entries; i++) {
        assert_ok(add(&machine, i));
    }
    stop(&machine);
    return machine.disk;
}

/* *status: what the call answered; *died: it did not. True: the fault
 * struck. */
static bool cut_short(struct machine *machine, unsigned which, const struct sim_fault *fault,
                      enum wal_status *status, bool *died)
{
    bool struck;

    start(machine);
    *died = false;
    sim_process_add_fault(machine->process, fault);
    sim_process_on_death(machine->process, sim_jump, &machine->death);
    if (setjmp(machine->death) != 0) {
        *died = true;
        stop(machine);
        return true;
    }
    *status = add(machine, which);
    sim_process_on_death(machine->process, NULL, NULL);
    struck = sim_process_counts(machine->process)->faults > 0;
    sim_process_clear_faults(machine->process);
    stop(machine);
    return struck;
}

/* The next process adds it, and removes what was left. */
static void add_again(struct sim_disk *disk, unsigned which, bool is_durable)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_NONE};
    struct machine machine = {.disk = disk};
    struct found found;

    start(&machine);
    assert_ok(add(&machine, which));
    stop(&machine);
    found = look(disk);
    assert_int_equal(found.entries, which + 1);
    assert_int_equal(found.leftovers, 0);
    if (is_durable) {
        sim_disk_power_loss(disk, &loss, 1);
        assert_int_equal(look(disk).entries, which + 1);
    }
}

/* False: the call makes fewer calls. */
static bool try_fault(const struct sim_disk *before, unsigned which, const struct sim_fault *way,
                      uint64_t nth, bool has_loss)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY, .garbage = true};
    struct sim_fault fault = *way;
    struct machine machine = {.disk = sim_disk_clone((struct sim_disk *)(uintptr_t)before)};
    enum wal_status status = WAL_OK;
    struct found found;
    bool died;
    bool struck;

    fault.after = nth;
    struck = cut_short(&machine, which, &fault, &status, &died);
    if (has_loss) {
        sim_disk_power_loss(machine.disk, &loss, nth);
    }
    found = look(machine.disk);
    assert_int_equal(found.names, found.entries); /* none is damaged */
    for (unsigned i = 0; i < which; i++) {
        assert_true(found.has[i]);
    }
    if (!died && status == WAL_OK) {
        assert_true(found.has[which]);
    }
    /* Names of a directory whose sync failed are durable when they are made again, and of a disk
     * that goes on to fail they cannot be removed. */
    add_again(machine.disk, which, !way->sticky);
    sim_disk_destroy(machine.disk);
    return struck;
}

TEST(view_roots__adding_is_cut_short)
{
    for (unsigned which = 0; which < PATHS; which++) {
        struct sim_disk *before = prepare(which);
        uint64_t tried = 0;

        for (size_t way = 0; way < 2 * (size_t)WAYS; way++) {
            uint64_t nth = 0;

            while (try_fault(before, which, &ways[way / 2], nth, way % 2 == 1)) {
                nth++;
            }
            tried += nth;
            assert_true(nth > 0);
        }
        sim_disk_destroy(before);
        print_message("%llu faults\n", (unsigned long long)tried);
    }
}

TEST(view_roots__without_memory_fails)
{
    struct machine machine = {.disk = prepare(1)};
    struct found found = {.entries = 0};
    enum wal_status status = WAL_ENOMEM;
    uint64_t nth = 0;

    start(&machine);
    while (status == WAL_ENOMEM) {
        assert_true(nth < 100);
        faulty_heap_fail(&machine.heap, ++nth, false);
        status = add(&machine, 1);
    }
    assert_ok(status);
    assert_true(nth > 1);
    faulty_heap_fail(&machine.heap, 1, false);
    assert_int_equal(wal__view_roots_list(&machine.env, count_entry, &found, NULL), WAL_ENOMEM);
    stop(&machine);
    assert_int_equal(look(machine.disk).entries, 2);
    sim_disk_destroy(machine.disk);
}

static enum wal_status count_any(void *ctx, const struct wal__view_root *root)
{
    struct found *found = ctx;

    (void)root;
    found->entries++;
    return WAL_OK;
}

/* One more is refused, and those that are there are listed. */
TEST(view_roots__when_full_takes_no_more)
{
    struct machine machine = {.disk = prepare(0)};
    struct found found = {.entries = 0};
    char path[16];
    struct wal__view_root root = {.dialect = {(const uint8_t *)"pi", 2}};
    bool is_new = false;

    start(&machine);
    for (unsigned i = 0; i <= WAL__VIEW_ROOTS_MAX; i++) {
        (void)snprintf(path, sizeof(path), "/%u", i);
        root.path = (struct wal__span){(const uint8_t *)path, strlen(path)};
        /* Names alone count. */
        if (i + 2 < WAL__VIEW_ROOTS_MAX) {
            char name[64] = "/store/views/";

            wal__view_root_name(&root, name + strlen(name));
            sim_disk_write_file(machine.disk, name, "x", 1);
            continue;
        }
        assert_int_equal(wal__view_roots_add(&machine.env, &root, true, &is_new, NULL),
                         i < WAL__VIEW_ROOTS_MAX ? WAL_OK : WAL_ELIMIT);
        assert_int_equal(is_new, i < WAL__VIEW_ROOTS_MAX);
    }
    assert_ok(wal__view_roots_list(&machine.env, count_any, &found, NULL));
    assert_int_equal(found.entries, 2);
    stop(&machine);
    sim_disk_destroy(machine.disk);
}
