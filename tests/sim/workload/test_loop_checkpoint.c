/*
 * test_loop_checkpoint.c - losing power after, failing, and dying at the Nth call that making
 * checkpoints needs, of the store and of the work tree alike, for every N. Afterwards the
 * checkpoints are those before the step that was cut short or those after it, every one complete
 * and byte for byte as it was made; what was acknowledged is there.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/blob.h"
#include "agentwal/checkpoint.h"
#include "engine/session/store.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/sanitizers.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/tree.h"
#include "tests/sim/workload/workload.h"

/* --- the script ---------------------------------------------------------- */

enum { LARGE = 1100000, MEDIUM = 30000, STEPS = 6, TEXT_MAX = 512 };

static char medium[MEDIUM + 1];
static char medium_next[MEDIUM + 1];
static char large[LARGE + 1];

/* The tree before each step; the step's paths; and what the checkpoints then are: a line each, its
 * files "path=" with the content, "@" with the mode and content, ">" with a link's target or "-"
 * for an absent one. */
struct step {
    struct sim_tree_entry tree[8];
    size_t tree_count;
    const char *id;
    const char *paths[8];
    bool deletes;
    const char *after;
};

static struct step steps[STEPS] = {
    {.tree = {{"a", WAL__WORKTREE_REGULAR, 0644, "1"},
              {"d/m", WAL__WORKTREE_REGULAR, 0644, medium},
              {"run", WAL__WORKTREE_REGULAR, 0755, "#!"},
              {"link", WAL__WORKTREE_SYMLINK, 0, "a"},
              {"empty", WAL__WORKTREE_REGULAR, 0600, ""}},
     .tree_count = 5,
     .id = "one",
     .paths = {"a", "d/m", "run", "link", "empty", "gone"},
     .after = "one: a 1, d/m M, empty 600 , gone -, link > a, run 755 #!\n"},
    {.tree = {{"a", WAL__WORKTREE_REGULAR, 0644, "22"},
              {"d/m", WAL__WORKTREE_REGULAR, 0644, medium_next},
              {"gone", WAL__WORKTREE_REGULAR, 0644, "now"},
              {"empty", WAL__WORKTREE_ABSENT, 0, NULL}},
     .tree_count = 4,
     .id = "two",
     .paths = {"a", "d/m", "run", "link", "empty", "gone"},
     .after = "one: a 1, d/m M, empty 600 , gone -, link > a, run 755 #!\n"
              "two: a 22, d/m N, empty -, gone now, link > a, run 755 #!\n"},
    {.tree = {{"late", WAL__WORKTREE_REGULAR, 0644, "L"}},
     .tree_count = 1,
     .id = "one",
     .paths = {"late", "a"},
     .after = "one: a 1, d/m M, empty 600 , gone -, late L, link > a, run 755 #!\n"
              "two: a 22, d/m N, empty -, gone now, link > a, run 755 #!\n"},
    {.id = "three",
     .paths = {"a", "run"},
     .after = "one: a 1, d/m M, empty 600 , gone -, late L, link > a, run 755 #!\n"
              "two: a 22, d/m N, empty -, gone now, link > a, run 755 #!\n"
              "three: a 22, run 755 #!\n"},
    {.id = "two",
     .deletes = true,
     .after = "one: a 1, d/m M, empty 600 , gone -, late L, link > a, run 755 #!\n"
              "three: a 22, run 755 #!\n"},
    {.tree = {{"large", WAL__WORKTREE_REGULAR, 0644, large}},
     .tree_count = 1,
     .id = "four",
     .paths = {"large", "a"},
     .after = "one: a 1, d/m M, empty 600 , gone -, late L, link > a, run 755 #!\n"
              "three: a 22, run 755 #!\n"
              "four: a 22, large B\n"},
};

/* Bytes that LZ4 makes a little shorter. */
static void fill(char *out, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        out[i] = (char)('a' + (seed >> 60));
    }
}

static int set_up(void **state)
{
    (void)state;
    fill(medium, MEDIUM, 1);
    memcpy(medium_next, medium, MEDIUM);
    memcpy(medium_next + 10000, "changed here", 12);
    fill(large, LARGE, 2);
    return 0;
}

/* --- a store on a machine ------------------------------------------------ */

struct machine {
    struct sim_disk *disk;
    struct sim_process *process;
    struct arena_heap arena; /* a process that dies leaves nothing */
    struct faulty_heap heap;
    struct wal_store *store;
    struct wal_session *session;
};

static struct wal_slice text(const char *from)
{
    return (struct wal_slice){from, strlen(from)};
}

/* A process that opens the store; WAL_OK or why it could not. */
static enum wal_status start(struct machine *machine, bool creates)
{
    struct wal_session_options session = {
        .struct_size = sizeof(session), .id = text("s"), .cwd = text("/work")};
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = creates ? WAL_OPEN_CREATE : 0};
    enum wal_status status;

    machine->store = NULL;
    machine->session = NULL;
    status = wal__store_open("/store", &options, &machine->heap.heap,
                             sim_process_io(machine->process), &machine->store, NULL);
    if (status != WAL_OK) {
        return status;
    }
    return creates ? wal_session_create(machine->store, &session, &machine->session, NULL)
                   : wal_session_open(machine->store, text("s"), &machine->session, NULL);
}

static void boot(struct machine *machine)
{
    machine->process = sim_process_create(machine->disk);
    arena_heap_init(&machine->arena);
    faulty_heap_init(&machine->heap, &machine->arena.heap);
}

static enum wal_status stop(struct machine *machine)
{
    enum wal_status status = WAL_OK;

    if (!sim_process_is_dead(machine->process)) {
        wal_session_close(machine->session);
        if (machine->store != NULL) {
            status = wal_close(machine->store, NULL);
        }
        assert_int_equal(arena_heap_count(&machine->arena), 0);
    }
    sim_process_destroy(machine->process);
    arena_heap_deinit(&machine->arena);
    machine->process = NULL;
    return status;
}

static enum wal_status act(struct machine *machine, const struct step *step)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options), .id = text(step->id)};
    struct wal_slice paths[8];
    uint64_t count = 0;

    if (step->deletes) {
        return wal_checkpoint_delete(machine->session, text(step->id), NULL);
    }
    while (count < 8 && step->paths[count] != NULL) {
        paths[count] = text(step->paths[count]);
        count++;
    }
    return wal_checkpoint_create(machine->session, paths, count, &options, NULL, NULL);
}

static void prepare(struct sim_disk *disk, const struct step *step)
{
    sim_tree_make(disk, "/work", step->tree, step->tree_count);
    sim_disk_advance(disk, 100000000); /* times tell what changes later */
}

/* --- what is there ------------------------------------------------------- */

static const char *name_of(const char *data, uint64_t size)
{
    static char name[64];

    if (size == MEDIUM) {
        return memcmp(data, medium, MEDIUM) == 0        ? "M"
               : memcmp(data, medium_next, MEDIUM) == 0 ? "N"
                                                        : "damaged";
    }
    if (size == LARGE) {
        return memcmp(data, large, LARGE) == 0 ? "B" : "damaged";
    }
    snprintf(name, sizeof(name), "%.*s", (int)size, data);
    return name;
}

static void add_file(struct wal_store *store, const struct wal_file *file, char *out, size_t room)
{
    static char data[LARGE + 1];
    struct wal_blob *blob;
    uint64_t got = 0;
    size_t size;

    size =
        (size_t)snprintf(out, room, "%.*s ", (int)file->path.size, (const char *)file->path.data);
    if (file->kind == WAL_FILE_ABSENT) {
        snprintf(out + size, room - size, "-");
        return;
    }
    if (file->kind == WAL_FILE_SYMLINK) {
        size += (size_t)snprintf(out + size, room - size, "> ");
    } else if (file->mode != 0644) {
        size += (size_t)snprintf(out + size, room - size, "%o ", file->mode);
    }
    assert_ok(wal_blob_open(store, file->digest, &blob, NULL));
    assert_int_equal(wal_blob_size(blob), file->size);
    assert_ok(wal_blob_read(blob, 0, data, sizeof(data), &got, NULL));
    assert_int_equal(got, file->size);
    wal_blob_close(blob);
    snprintf(out + size, room - size, "%s", name_of(data, got));
}

static void add_checkpoint(struct machine *machine, struct wal_slice id, char *out)
{
    struct wal_file file = {.struct_size = sizeof(file)};
    struct wal_file_cursor *checkpoint;
    const char *comma = ": ";
    enum wal_status status;

    sprintf(out + strlen(out), "%.*s", (int)id.size, (const char *)id.data);
    assert_ok(wal_file_cursor_open(machine->session, id, &checkpoint, NULL));
    while ((status = wal_file_cursor_next(checkpoint, &file, NULL)) == WAL_OK) {
        strcat(out, comma);
        comma = ", ";
        add_file(machine->store, &file, out + strlen(out), TEXT_MAX - strlen(out));
    }
    assert_int_equal(status, WAL_END);
    wal_file_cursor_close(checkpoint);
    strcat(out, "\n");
}

static void describe(struct machine *machine, char out[TEXT_MAX])
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoint_cursor *checkpoints;
    enum wal_status status;

    out[0] = '\0';
    assert_ok(wal_checkpoint_cursor_open(machine->session, &checkpoints, NULL));
    while ((status = wal_checkpoint_cursor_next(checkpoints, &info, NULL)) == WAL_OK) {
        add_checkpoint(machine, info.id, out);
    }
    assert_int_equal(status, WAL_END);
    wal_checkpoint_cursor_close(checkpoints);
}

/* After `done` acknowledged steps the disk, in a process that begins now, has what they made, and
 * maybe what the next one makes: how many steps it has. */
static uint32_t check(struct sim_disk *disk, uint32_t done, const char *what)
{
    struct machine machine = {.disk = disk};
    const char *before = done == 0 ? "" : steps[done - 1].after;
    char found[TEXT_MAX];
    uint32_t has = done;

    boot(&machine);
    assert_ok(start(&machine, false));
    describe(&machine, found);
    if (strcmp(found, before) != 0) {
        has = done + 1;
        if (done == STEPS || strcmp(found, steps[done].after) != 0) {
            print_error("%s, after %u steps:\n%s", what, done, found);
            fail();
        }
    }
    if (has < STEPS) {
        prepare(disk, &steps[has]);
        assert_ok(act(&machine, &steps[has]));
        describe(&machine, found);
        assert_string_equal(found, steps[has].after);
    }
    assert_ok(stop(&machine));
    return has;
}

static struct sim_disk *make_base(void)
{
    struct machine machine = {.disk = sim_disk_create(7)};

    boot(&machine);
    assert_ok(start(&machine, true));
    assert_ok(stop(&machine));
    return machine.disk;
}

/* --- power --------------------------------------------------------------- */

struct cuts {
    struct sim_disk *disk;
    uint32_t done;
    uint64_t calls;
    uint64_t losses;
};

static void on_call(void *arg, const struct sim_event *event)
{
    struct cuts *cuts = arg;

    cuts->calls++;
    if (event->call >= SIM_CLOSE || cuts->calls % workload_sample(1) != 0) {
        return;
    }
    for (int landing = SIM_PERSIST_NONE; landing < SIM_PERSISTENCES; landing++) {
        const struct sim_power_loss loss = {.landing = (enum sim_persistence)landing,
                                            .garbage = cuts->calls / workload_sample(1) % 2 == 0};
        struct sim_disk *copy = sim_disk_clone(cuts->disk);
        char what[64];

        snprintf(what, sizeof(what), "power lost at call %llu, landing %d",
                 (unsigned long long)cuts->calls, landing);
        sim_disk_on_call(copy, NULL, NULL);
        sim_disk_power_loss(copy, &loss, cuts->calls * 16 + (uint64_t)landing);
        check(copy, cuts->done, what);
        sim_disk_destroy(copy);
        cuts->losses++;
    }
}

TEST(loop_checkpoint__power_is_lost_at_every_call)
{
    struct machine machine = {.disk = make_base()};
    struct cuts cuts = {.disk = machine.disk};

    boot(&machine);
    assert_ok(start(&machine, false));
    for (uint32_t i = 0; i < STEPS; i++) {
        prepare(machine.disk, &steps[i]);
        sim_disk_on_call(machine.disk, on_call, &cuts);
        assert_ok(act(&machine, &steps[i]));
        sim_disk_on_call(machine.disk, NULL, NULL);
        cuts.done = i + 1;
    }
    assert_ok(stop(&machine));
    assert_int_equal(check(machine.disk, STEPS, "at the end"), STEPS);
    sim_disk_destroy(machine.disk);
    assert_true(cuts.losses > 0);
    print_message("%llu calls, %llu losses\n", (unsigned long long)cuts.calls,
                  (unsigned long long)cuts.losses);
}

/* --- failures and deaths ------------------------------------------------- */

static const struct sim_fault ways[] = {
    {.call = SIM_ANY, .sys_errno = EIO},
    {.call = SIM_ANY, .sys_errno = ENOSPC, .sticky = true},
    {.call = SIM_ANY, .sys_errno = EACCES},
    {.call = SIM_PWRITEV, .sys_errno = 0, .put = 100},
    {.call = SIM_PWRITEV, .sys_errno = ENOSPC, .put = 3000},
    {.call = SIM_SYNC, .sys_errno = EIO},
    {.call = SIM_ANY, .effect = SIM_KILL_BEFORE},
    {.call = SIM_ANY, .effect = SIM_KILL_AFTER},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static jmp_buf died;

/* Of the leak checker, where there is one: what libcrypto holds for a process that dies is in no
 * heap that is dropped with it. */
extern void __lsan_disable(void);
extern void __lsan_enable(void);

static void ignore_leaks(enum sim_effect effect, bool begins)
{
#if WITH_ADDRESS_SANITIZER
    if (effect != SIM_FAIL) {
        (begins ? __lsan_disable : __lsan_enable)();
    }
#else
    (void)effect;
    (void)begins;
#endif
}

/* One step with its nth call struck; false when there were fewer calls. */
static bool inject(struct sim_disk *disk, uint32_t rank, uint32_t way, uint64_t nth)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};
    struct machine machine = {.disk = disk};
    struct sim_fault fault = ways[way];
    volatile enum wal_status status = WAL_EIO;
    char what[96];
    bool struck;

    snprintf(what, sizeof(what), "step %u, way %u, call %llu", rank, way, (unsigned long long)nth);
    boot(&machine);
    assert_ok(start(&machine, false));
    prepare(disk, &steps[rank]);
    fault.after = nth;
    sim_process_on_death(machine.process, sim_jump, &died);
    sim_process_add_fault(machine.process, &fault);
    ignore_leaks(fault.effect, true);
    if (setjmp(died) == 0) {
        status = act(&machine, &steps[rank]);
    }
    ignore_leaks(ways[way].effect, false);
    struck = sim_process_counts(machine.process)->faults > 0;
    sim_process_clear_faults(machine.process);
    if (!struck) {
        assert_ok(status);
    }
    (void)!stop(&machine);
    if (nth % 2 == 1) {
        sim_disk_power_loss(disk, &loss, nth);
    }
    check(disk, rank + (status == WAL_OK), what);
    return struck;
}

TEST(loop_checkpoint__every_call_fails_or_kills)
{
    struct sim_disk *base = make_base();
    uint64_t stride = workload_sample(1);
    uint64_t strikes = 0;

    for (uint32_t rank = 0; rank < STEPS; rank++) {
        struct machine machine = {.disk = base};

        for (uint32_t way = 0; way < WAYS; way++) {
            bool struck = true;

            for (uint64_t nth = (rank + way) % stride; struck; nth += stride) {
                struct sim_disk *copy = sim_disk_clone(base);

                struck = inject(copy, rank, way, nth);
                sim_disk_destroy(copy);
                strikes++;
            }
        }
        boot(&machine);
        assert_ok(start(&machine, false));
        prepare(base, &steps[rank]);
        assert_ok(act(&machine, &steps[rank]));
        assert_ok(stop(&machine));
    }
    sim_disk_destroy(base);
    assert_true(strikes > STEPS * WAYS);
    print_message("%llu runs\n", (unsigned long long)strikes);
}

/* --- memory -------------------------------------------------------------- */

/* One step with its Nth allocation failing; false when there were fewer. */
static bool fail_allocation(struct sim_disk *disk, uint32_t rank, uint64_t nth)
{
    struct machine machine = {.disk = disk};
    enum wal_status status;
    char what[64];
    bool starved;

    snprintf(what, sizeof(what), "step %u, allocation %llu", rank, (unsigned long long)nth);
    boot(&machine);
    assert_ok(start(&machine, false));
    prepare(disk, &steps[rank]);
    faulty_heap_fail(&machine.heap, nth, nth % 2 == 0);
    status = act(&machine, &steps[rank]);
    starved = atomic_load(&machine.heap.failures) > 0;
    faulty_heap_fail(&machine.heap, 0, false);
    assert_true(status == WAL_ENOMEM || status == WAL_OK);
    assert_true(starved || status == WAL_OK);
    (void)!stop(&machine);
    check(disk, rank + (status == WAL_OK), what);
    return starved;
}

TEST(loop_checkpoint__every_allocation_fails)
{
    struct sim_disk *base = make_base();
    uint64_t stride = workload_sample(1);
    uint64_t runs = 0;

    for (uint32_t rank = 0; rank < STEPS; rank++) {
        struct machine machine = {.disk = base};
        bool starved = true;

        for (uint64_t nth = 1 + rank % stride; starved; nth += stride) {
            struct sim_disk *copy = sim_disk_clone(base);

            starved = fail_allocation(copy, rank, nth);
            sim_disk_destroy(copy);
            runs++;
        }
        boot(&machine);
        assert_ok(start(&machine, false));
        prepare(base, &steps[rank]);
        assert_ok(act(&machine, &steps[rank]));
        assert_ok(stop(&machine));
    }
    sim_disk_destroy(base);
    assert_true(runs > STEPS);
    print_message("%llu runs\n", (unsigned long long)runs);
}

TEST_FILE(set_up, NULL, NULL);
