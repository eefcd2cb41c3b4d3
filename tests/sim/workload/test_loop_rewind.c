/*
 * test_loop_rewind.c - a rewind whose Nth call to the system fails, kills the process before or
 * after it, or is the last before the power goes; whose Nth allocation fails; whose disk is full.
 * Once the next call has run, the files are all as they were or all as the checkpoint has them, and
 * nothing else is there; and what an answer said is true, at once and after a loss of power.
 *
 * Another program makes a file where the rewind was: it is left, and what the rewind took away is
 * in its undo.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/checkpoint.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/tree.h"
#include "tests/sim/workload/workload.h"

#define STORE "/store"
#define TREE  "/tree"

enum { PATHS = 9, NAMED = PATHS + 3 };

/* Those that the checkpoint names. The last three lie below a file, a link and a directory of it,
 * which are a directory, a directory and a file when it is rewound to. */
static const char *const paths[NAMED] = {"a", "d/b", "d/link", "m",     "n/e/c", "z",
                                         "k", "l",   "t",      "k/e/q", "l/q",   "t/u"};

/* As the checkpoint has the files, and as they are when it is rewound to. */
static const struct sim_tree_entry after[] = {
    {"a", WAL__WORKTREE_REGULAR, 0644, "a of the checkpoint\n"},
    {"d/b", WAL__WORKTREE_REGULAR, 0600, "b of the checkpoint\n"},
    {"d/link", WAL__WORKTREE_SYMLINK, 0, "../a"},
    {"m", WAL__WORKTREE_REGULAR, 0755, "mode\n"},
    {"n/e/c", WAL__WORKTREE_REGULAR, 0644, "c of the checkpoint\n"},
    {"z", WAL__WORKTREE_ABSENT, 0, NULL},
    {"k", WAL__WORKTREE_REGULAR, 0644, "k of the checkpoint\n"},
    {"l", WAL__WORKTREE_SYMLINK, 0, "d"},
    {"t", WAL__WORKTREE_DIRECTORY, 0, NULL},
    {"n", WAL__WORKTREE_DIRECTORY, 0, NULL},
    {"n/e", WAL__WORKTREE_DIRECTORY, 0, NULL},
    {"other", WAL__WORKTREE_REGULAR, 0644, "not named\n"},
    {"t/u", WAL__WORKTREE_REGULAR, 0644, "u of the checkpoint\n"},
    {"d", WAL__WORKTREE_DIRECTORY, 0, NULL},
};

static const struct sim_tree_entry before[] = {
    {"a", WAL__WORKTREE_REGULAR, 0644, "a before the rewind\n"},
    {"d/b", WAL__WORKTREE_REGULAR, 0644, "b before\n"},
    {"d/link", WAL__WORKTREE_REGULAR, 0644, "no link\n"},
    {"m", WAL__WORKTREE_REGULAR, 0644, "mode\n"},
    {"n/e/c", WAL__WORKTREE_ABSENT, 0, NULL},
    {"z", WAL__WORKTREE_REGULAR, 0644, "z before the rewind\n"},
    {"k", WAL__WORKTREE_DIRECTORY, 0, NULL},
    {"l", WAL__WORKTREE_DIRECTORY, 0, NULL},
    {"t", WAL__WORKTREE_REGULAR, 0644, "t before\n"},
    {"n", WAL__WORKTREE_ABSENT, 0, NULL},
    {"n/e", WAL__WORKTREE_ABSENT, 0, NULL},
    {"other", WAL__WORKTREE_REGULAR, 0644, "not named\n"},
    {"k/e/q", WAL__WORKTREE_REGULAR, 0600, "q before\n"},
    {"l/q", WAL__WORKTREE_SYMLINK, 0, "../a"},
};

/* The directory that was made is no file, and stays. */
static const struct sim_tree_entry undone[] = {
    {"a", WAL__WORKTREE_REGULAR, 0644, "a before the rewind\n"},
    {"d/b", WAL__WORKTREE_REGULAR, 0644, "b before\n"},
    {"d/link", WAL__WORKTREE_REGULAR, 0644, "no link\n"},
    {"m", WAL__WORKTREE_REGULAR, 0644, "mode\n"},
    {"n/e/c", WAL__WORKTREE_ABSENT, 0, NULL},
    {"z", WAL__WORKTREE_REGULAR, 0644, "z before the rewind\n"},
    {"k", WAL__WORKTREE_DIRECTORY, 0, NULL},
    {"l", WAL__WORKTREE_DIRECTORY, 0, NULL},
    {"t", WAL__WORKTREE_REGULAR, 0644, "t before\n"},
    {"n", WAL__WORKTREE_DIRECTORY, 0, NULL},
    {"n/e", WAL__WORKTREE_DIRECTORY, 0, NULL},
    {"other", WAL__WORKTREE_REGULAR, 0644, "not named\n"},
    {"k/e/q", WAL__WORKTREE_REGULAR, 0600, "q before\n"},
    {"l/q", WAL__WORKTREE_SYMLINK, 0, "../a"},
};

/* What makes room for what is there before. */
static const struct sim_tree_entry gone[] = {
    {"k", WAL__WORKTREE_ABSENT, 0, NULL},
    {"l", WAL__WORKTREE_ABSENT, 0, NULL},
    {"t/u", WAL__WORKTREE_ABSENT, 0, NULL},
};

enum { ENTRIES = sizeof(after) / sizeof(after[0]) };

/* The outcome of a rewind, as known to its caller. */
enum outcome {
    DIED,
    FAILED,  /* an error: anything may be */
    REFUSED, /* nothing was touched */
    DONE
};

/* A machine, and at most one process on it. */
struct world {
    struct sim_disk *disk;
    struct sim_process *process;
    struct arena_heap arena;
    struct faulty_heap heap;
    struct wal_store *store;
    struct wal_session *session;
    jmp_buf death;
};

static char what[256];    /* is tried now */
static bool rewinds_head; /* with WAL_REWIND_HEAD: from "e2" to "e1" */
static bool unsynced;     /* a directory could not be synced: SPEC.md 5.15 */

static void fail_now(const char *text)
{
    fail_msg("%s: %s", what, text);
}

static void note_sync(void *arg, const struct sim_event *event)
{
    (void)arg;
    unsynced = unsynced || (event->call == SIM_SYNC_DIRECTORY && event->sys_errno != 0);
}

/* --- processes ----------------------------------------------------------- */

static void start(struct world *world)
{
    world->process = sim_process_create(world->disk);
    sim_process_on_death(world->process, sim_jump, &world->death);
    arena_heap_init(&world->arena);
    faulty_heap_init(&world->heap, &world->arena.heap);
    world->store = NULL;
    world->session = NULL;
}

/* As if killed. */
static void stop(struct world *world)
{
    sim_process_destroy(world->process);
    arena_heap_deinit(&world->arena);
    world->process = NULL;
}

static void open_store(struct world *world)
{
    struct wal_open_options options = {.struct_size = sizeof(options), .flags = WAL_OPEN_CREATE};
    struct wal_error error = {.struct_size = sizeof(error)};

    if (wal__store_open(STORE, &options, &world->heap.heap, sim_process_io(world->process),
                        &world->store, &error) != WAL_OK) {
        fail_now(error.text);
    }
}

static void open_session(struct world *world)
{
    static const struct wal_slice id = {"s", 1};

    start(world);
    open_store(world);
    if (wal_session_open(world->store, id, &world->session, NULL) != WAL_OK) {
        fail_now("the session is gone");
    }
}

static void checkpoint(struct world *world)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options), .id = {"c", 1}};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_slice slices[NAMED];

    for (int i = 0; i < NAMED; i++) {
        slices[i] = (struct wal_slice){paths[i], strlen(paths[i])};
    }
    if (wal_checkpoint_create(world->session, slices, NAMED, &options, NULL, &error) != WAL_OK) {
        fail_now(error.text);
    }
}

static void append(struct world *world, const char *id)
{
    const struct wal_entry entry = {.struct_size = sizeof(entry),
                                    .id = {id, strlen(id)},
                                    .type = {"message", 7},
                                    .payload = {"1", 1}};

    assert_ok(wal_append(world->session, &entry, 1, NULL, NULL, NULL));
}

/* Directories go as files do not: by a process. */
static void remove_directory(struct world *world, const char *path)
{
    const struct wal__worktree_io *io = sim_process_io(world->process)->worktree;
    struct wal__worktree *tree;
    int err;

    assert_ok(io->open_root(io->ctx, TREE, &tree, &err));
    assert_ok(io->remove_directory(io->ctx, tree, path, &err));
    assert_ok(io->sync_directories(io->ctx, tree, "", 1, &err));
    io->close_root(io->ctx, tree);
}

/* A disk with the store, the checkpoint, and the files changed since. */
static struct sim_disk *make_base(void)
{
    struct wal_session_options options = {
        .struct_size = sizeof(options), .id = {"s", 1}, .cwd = {TREE, strlen(TREE)}};
    struct world world = {.disk = sim_disk_create(7)};

    (void)snprintf(what, sizeof(what), "making the store");
    sim_tree_make(world.disk, TREE, after, ENTRIES);
    sim_disk_advance(world.disk, 5000000000u);
    start(&world);
    open_store(&world);
    assert_ok(wal_session_create(world.store, &options, &world.session, NULL));
    append(&world, "e1");
    checkpoint(&world);
    append(&world, "e2");
    wal_session_close(world.session);
    assert_ok(wal_close(world.store, NULL));
    sim_tree_make(world.disk, TREE, gone, sizeof(gone) / sizeof(gone[0]));
    remove_directory(&world, "t");
    sim_tree_make(world.disk, TREE, before, ENTRIES);
    remove_directory(&world, "n/e");
    remove_directory(&world, "n");
    stop(&world);
    sim_disk_advance(world.disk, 5000000000u);
    return world.disk;
}

/* --- looking ------------------------------------------------------------- */

static bool is_state(struct sim_disk *disk, const struct sim_tree_entry entries[ENTRIES],
                     char why[256])
{
    return sim_tree_equals(disk, TREE, entries, ENTRIES, why, 256);
}

static void expect_state(struct sim_disk *disk, const struct sim_tree_entry entries[ENTRIES],
                         const char *when)
{
    char why[256] = "";

    if (!is_state(disk, entries, why)) {
        fail_msg("%s: %s the files are not as %s: %s", what, when,
                 entries == after ? "in the checkpoint" : "before", why);
    }
}

/* The files, whatever else was left. */
static void expect_files(struct sim_disk *disk, const struct sim_tree_entry entries[ENTRIES])
{
    for (int i = 0; i < PATHS; i++) {
        struct wal__worktree_stat stat;
        char path[64];
        bool is_there = entries[i].kind != WAL__WORKTREE_ABSENT;

        (void)snprintf(path, sizeof(path), TREE "/%s", paths[i]);
        if (sim_tree_stat(disk, path, &stat) != is_there ||
            (is_there && stat.kind != entries[i].kind)) {
            fail_msg("%s: %s was touched", what, paths[i]);
        }
    }
}

/* The head is where the files belong. */
static void expect_head(struct world *world, bool is_rewound, const char *when)
{
    const struct wal_slice main_head = {NULL, 0};
    char id[WAL_ID_SIZE] = "";

    if (wal_head_get(world->session, 0, main_head, id, NULL) != WAL_OK ||
        strcmp(id, rewinds_head && is_rewound ? "e1" : "e2") != 0) {
        fail_msg("%s: %s the head is at \"%s\"", what, when, id);
    }
}

/* --- rewinding ----------------------------------------------------------- */

static char said[1100]; /* by the last rewind that was not done */

static enum outcome rewind_to(struct world *world, const char *id, int32_t *status)
{
    const struct wal_rewind_options options = {.struct_size = sizeof(options),
                                               .flags = rewinds_head ? WAL_REWIND_HEAD : 0U};
    struct wal_rewind_result info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    const struct wal_slice slice = {id, strlen(id)};
    enum wal_status result = wal_rewind(world->session, slice, &options, &info, NULL, &error);

    *status = result;
    if (result != WAL_OK) {
        (void)snprintf(said, sizeof(said), "%s", error.text);
        return FAILED;
    }
    *status = info.status;
    (void)snprintf(said, sizeof(said), "%s", info.error);
    return info.can_rewind != 0 ? DONE : REFUSED;
}

static enum outcome rewind_or_die(struct world *world, int32_t *status)
{
    return setjmp(world->death) == 0 ? rewind_to(world, "c", status) : DIED;
}

/* A rewind with no target: it only completes an interrupted one. */
static void settle(struct world *world)
{
    int32_t status = 0;
    enum outcome outcome = rewind_to(world, "none such", &status);

    if (outcome != REFUSED || status != WAL_ENOTFOUND) {
        fail_msg("%s: the next call answers %d, %d: %s", what, outcome, status, said);
    }
}

/* The checkpoint other than "c"; false when there is none. */
static bool find_undo(struct world *world, char id[256])
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoint_cursor *list = NULL;
    bool found = false;

    assert_ok(wal_checkpoint_cursor_open(world->session, &list, NULL));
    while (wal_checkpoint_cursor_next(list, &info, NULL) == WAL_OK) {
        if (info.id.size != 1) {
            assert_false(found);
            memcpy(id, info.id.data, info.id.size);
            id[info.id.size] = '\0';
            found = true;
        }
    }
    wal_checkpoint_cursor_close(list);
    return found;
}

/* The state that the next call must come to, or null: either. */
static const struct sim_tree_entry *promised(enum outcome outcome)
{
    if (outcome == DONE) {
        return after;
    }
    return outcome == REFUSED ? before : NULL;
}

/* The next call, in a process that is there; then a rewind that works. */
static void check_next_call(struct world *world, enum outcome outcome)
{
    char ignored[256];
    char undo[256];
    int32_t status;

    settle(world);
    if (promised(outcome) != NULL) {
        expect_state(world->disk, promised(outcome), "after the next call");
    } else if (!is_state(world->disk, after, ignored)) {
        expect_state(world->disk, before, "after the next call");
    }
    expect_head(world, is_state(world->disk, after, ignored), "after the next call");
    if (is_state(world->disk, after, ignored)) {
        if (!find_undo(world, undo)) {
            fail_now("there is no undo");
        }
        if (rewind_to(world, undo, &status) != DONE) {
            fail_msg("%s: it cannot be undone: %d, %s", what, status, said);
        }
        expect_state(world->disk, undone, "undone");
        expect_head(world, false, "undone");
    } else {
        if (rewind_to(world, "c", &status) != DONE) {
            fail_msg("%s: it cannot be done: %d, %s", what, status, said);
        }
        expect_state(world->disk, after, "done again");
        expect_head(world, true, "done again");
    }
}

/* --- what may happen ------------------------------------------------------ */

static const struct sim_fault ways[] = {
    {.call = SIM_ANY, .effect = SIM_KILL_BEFORE},
    {.call = SIM_ANY, .effect = SIM_KILL_AFTER},
    {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 7},
    {.call = SIM_ANY, .sys_errno = EIO},
    {.call = SIM_ANY, .sys_errno = EIO, .sticky = true},
    {.call = SIM_ANY, .sys_errno = ENOSPC},
    {.call = SIM_ANY, .sys_errno = ENOSPC, .sticky = true},
    {.call = SIM_ANY, .sys_errno = EACCES, .sticky = true},
    {.call = SIM_PWRITEV, .sys_errno = 0, .put = 3},
    {.call = SIM_SYNC_ALL, .sys_errno = EIO, .partial = true},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* And then: the same process goes on, another does, or the power goes. */
enum aftermath {
    SAME,
    ANOTHER,
    POWER, /* and the values after it: power losses of another landing */
    AFTERMATHS = POWER + SIM_PERSISTENCES
};

/* Kills the next call at its nth call, then the one after it finishes. */
static void kill_next(const struct world *from, enum outcome outcome, uint64_t nth, bool *died)
{
    const struct sim_fault fault = {.call = SIM_ANY,
                                    .effect = nth % 2 == 0 ? SIM_KILL_AFTER : SIM_KILL_BEFORE,
                                    .after = nth / 2};
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};
    struct world copy = {.disk = sim_disk_clone(from->disk)};

    open_session(&copy);
    sim_process_add_fault(copy.process, &fault);
    *died = true;
    if (setjmp(copy.death) == 0) {
        settle(&copy);
        *died = false;
    }
    stop(&copy);
    if (nth % 3 == 0 && !unsynced) {
        sim_disk_power_loss(copy.disk, &loss, nth);
    }
    open_session(&copy);
    check_next_call(&copy, outcome);
    stop(&copy);
    sim_disk_destroy(copy.disk);
}

static enum wal_status drop_name(void *arg, const char *name)
{
    const struct wal__io *io = arg;
    char path[256];
    int err;

    (void)snprintf(path, sizeof(path), TREE "/%s", name);
    return strncmp(name, ".agentwal-", 10) == 0 ? io->unlink(io->ctx, path, &err) : WAL_OK;
}

/* A loss of power may give back a temporary file that was moved into a directory that could not be
 * synced (SPEC.md 5.15), and that was removed with that directory. */
static void drop_given_back(struct world *world)
{
    const struct wal__io *io;
    int err;

    start(world);
    io = sim_process_io(world->process);
    assert_ok(io->list(io->ctx, TREE, drop_name, (void *)(uintptr_t)io, &err));
    stop(world);
}

static void recover_and_check(struct world *world, enum outcome outcome, int aftermath,
                              uint64_t seed)
{
    const struct sim_power_loss loss = {.landing = (enum sim_persistence)(aftermath - POWER),
                                        .garbage = true};

    if (aftermath != SAME || outcome == DIED) {
        stop(world);
        if (aftermath >= POWER) {
            sim_disk_power_loss(world->disk, &loss, seed);
        }
        if (aftermath >= POWER && outcome == REFUSED && unsynced) {
            drop_given_back(world);
        }
        if (seed % (workload_is_long() ? 3 : workload_sample(19)) == 0) {
            bool died = true;

            for (uint64_t nth = 0; died; nth++) {
                kill_next(world, outcome, nth, &died);
            }
        }
        open_session(world);
        if (outcome == DONE) {
            expect_head(world, true, "before the next call");
        }
    }
    check_next_call(world, outcome);
}

/* The nth such call of a rewind; false when there were fewer. */
static bool inject(const struct sim_disk *base, int way, int aftermath, uint64_t nth)
{
    struct world world = {.disk = sim_disk_clone((struct sim_disk *)base)};
    struct sim_fault fault = ways[way];
    enum outcome outcome;
    int32_t status = 0;
    bool struck;

    (void)snprintf(what, sizeof(what), "way %d, call %" PRIu64 ", aftermath %d", way, nth,
                   aftermath);
    open_session(&world);
    fault.after = nth;
    sim_process_add_fault(world.process, &fault);
    unsynced = false;
    /* Each call with and without, over the ways and what comes after. */
    rewinds_head = (nth + (uint64_t)aftermath) % 2 == 0;
    sim_disk_on_call(world.disk, note_sync, NULL);
    outcome = rewind_or_die(&world, &status);
    sim_disk_on_call(world.disk, NULL, NULL);
    struck = outcome == DIED || sim_process_counts(world.process)->faults > 0;
    if (outcome != DIED) {
        sim_process_clear_faults(world.process);
    }
    if (outcome == DONE) {
        expect_state(world.disk, after, "at once");
        expect_head(&world, true, "at once");
    } else if (outcome == REFUSED) {
        expect_files(world.disk, before);
        if (!fault.sticky) {
            expect_state(world.disk, before, "at once");
        }
    }
    if (struck) {
        recover_and_check(&world, outcome, aftermath,
                          nth * 31 + (uint64_t)(way * AFTERMATHS + aftermath));
    }
    stop(&world);
    sim_disk_destroy(world.disk);
    return struck;
}

static void inject_all(int first, int last)
{
    struct sim_disk *base = make_base();
    uint64_t runs = 0;

    for (int way = first; way <= last; way++) {
        for (int aftermath = 0; aftermath < AFTERMATHS; aftermath++) {
            /* The sample: each call, with some of what may come after. */
            uint64_t stride = workload_sample(3);
            uint64_t nth = (uint64_t)(way + aftermath) % stride;

            while (inject(base, way, aftermath, nth)) {
                nth += stride;
                runs++;
            }
        }
    }
    assert_true(runs > 0);
    print_message("%" PRIu64 " rewinds\n", runs);
    sim_disk_destroy(base);
}

TEST(loop_rewind__killed_at_every_call)
{
    inject_all(0, 2);
}

TEST(loop_rewind__every_call_fails)
{
    inject_all(3, WAYS - 1);
}

/* Space comes to an end wherever it may. */
TEST(loop_rewind__full_disk)
{
    struct sim_disk *base = make_base();
    uint64_t used = sim_disk_used_bytes(base);
    uint64_t refused = 0;
    uint64_t done = 0;

    rewinds_head = true;
    for (uint64_t more = 0; done < 3; more += 512) {
        struct world world = {.disk = sim_disk_clone(base)};
        enum outcome outcome;
        int32_t status;

        (void)snprintf(what, sizeof(what), "%" PRIu64 " bytes left", more);
        sim_disk_set_limit(world.disk, used + more);
        open_session(&world);
        outcome = rewind_to(&world, "c", &status);
        if (outcome == DONE) {
            expect_state(world.disk, after, "at once");
            done++;
        } else {
            assert_int_equal(outcome, REFUSED);
            assert_int_equal(status, WAL_ENOSPACE);
            expect_state(world.disk, before, "at once");
            refused++;
        }
        sim_disk_set_limit(world.disk, 0);
        check_next_call(&world, outcome);
        stop(&world);
        sim_disk_destroy(world.disk);
        WAL__ASSERT(more < 64u << 20);
    }
    assert_true(refused > 0);
    sim_disk_destroy(base);
}

static bool fail_allocation(const struct sim_disk *base, uint64_t nth, bool sticky)
{
    struct world world = {.disk = sim_disk_clone((struct sim_disk *)base)};
    enum outcome outcome;
    int32_t status = 0;
    bool struck;

    (void)snprintf(what, sizeof(what), "allocation %" PRIu64 "%s", nth,
                   sticky ? " and all after" : "");
    rewinds_head = nth % 2 == 0;
    open_session(&world);
    faulty_heap_fail(&world.heap, nth, sticky);
    outcome = rewind_to(&world, "c", &status);
    struck = world.heap.failures > 0;
    faulty_heap_fail(&world.heap, 0, false);
    if (outcome == DONE) {
        expect_state(world.disk, after, "at once");
    } else if (status != WAL_ENOMEM) {
        fail_msg("%s: answers %d, %d", what, outcome, status);
    }
    check_next_call(&world, outcome);
    stop(&world);
    sim_disk_destroy(world.disk);
    return struck;
}

TEST(loop_rewind__every_allocation_fails)
{
    struct sim_disk *base = make_base();
    uint64_t runs = 0;

    for (int sticky = 0; sticky < 2; sticky++) {
        uint64_t nth = 1;

        while (fail_allocation(base, nth, sticky != 0)) {
            nth += workload_sample(1);
            runs++;
        }
    }
    assert_true(runs > 0);
    print_message("%" PRIu64 " allocations\n", runs);
    sim_disk_destroy(base);
}

/* --- another program -------------------------------------------------------- */

/* What another program makes. */
static const struct sim_tree_entry others[] = {
    {"z", WAL__WORKTREE_REGULAR, 0644, "somebody's z\n"},
    {"z", WAL__WORKTREE_REGULAR, 0600, "z before the rewind\n"},
    {"z", WAL__WORKTREE_SYMLINK, 0, "a"},
    {"z", WAL__WORKTREE_DIRECTORY, 0, NULL},
    {"z", WAL__WORKTREE_OTHER, 0, NULL},
    {"a", WAL__WORKTREE_REGULAR, 0644, "somebody's a\n"},
    {"a", WAL__WORKTREE_ABSENT, 0, NULL},
    {"d/b", WAL__WORKTREE_REGULAR, 0640, "b before\n"},
    {"n", WAL__WORKTREE_REGULAR, 0644, "somebody's n\n"},
    {"n/e/c", WAL__WORKTREE_REGULAR, 0644, "somebody's c\n"},
    {"k", WAL__WORKTREE_REGULAR, 0644, "somebody's k\n"},
    {"k/e/q", WAL__WORKTREE_REGULAR, 0644, "somebody's q\n"},
    {"k/more", WAL__WORKTREE_REGULAR, 0644, "somebody's\n"},
    {"l/q", WAL__WORKTREE_REGULAR, 0644, "somebody's q\n"},
    {"t", WAL__WORKTREE_SYMLINK, 0, "d"},
    {"t/u", WAL__WORKTREE_REGULAR, 0644, "somebody's u\n"},
};

/* The entry with the path, which is absent when the table does not have it. */
static struct sim_tree_entry entry_of(const struct sim_tree_entry table[ENTRIES], const char *path)
{
    for (int i = 0; i < ENTRIES; i++) {
        if (strcmp(table[i].path, path) == 0) {
            return table[i];
        }
    }
    return (struct sim_tree_entry){.path = path, .kind = WAL__WORKTREE_ABSENT};
}

static enum wal__worktree_kind kind_at(struct sim_disk *disk, const char *path, size_t size)
{
    struct wal__worktree_stat stat = {.kind = WAL__WORKTREE_ABSENT};
    char whole[64];

    (void)snprintf(whole, sizeof(whole), TREE "/%.*s", (int)size, path);
    (void)sim_tree_stat(disk, whole, &stat);
    return stat.kind;
}

/* What other programs made. */
struct made {
    struct sim_tree_entry entries[ENTRIES];
    bool was_before[ENTRIES]; /* what is replaced was as before the rewind */
    int count;
};

/* Makes the file, unless its directory is none or a directory is in its place. */
static void make_file(struct sim_disk *disk, const struct sim_tree_entry *entry, struct made *made)
{
    const struct sim_tree_entry was = entry_of(before, entry->path);
    const struct sim_tree_entry absent = {.path = entry->path, .kind = WAL__WORKTREE_ABSENT};
    size_t size = strlen(entry->path);

    for (size_t i = 0; i < size; i++) {
        enum wal__worktree_kind kind = kind_at(disk, entry->path, i);

        if (entry->path[i] == '/' && kind != WAL__WORKTREE_ABSENT &&
            kind != WAL__WORKTREE_DIRECTORY) {
            return;
        }
    }
    if (kind_at(disk, entry->path, size) == WAL__WORKTREE_DIRECTORY) {
        return;
    }
    WAL__ASSERT(made->count < ENTRIES);
    made->was_before[made->count] = sim_tree_has(disk, TREE, &was);
    if (entry->kind == WAL__WORKTREE_DIRECTORY) {
        sim_tree_make(disk, TREE, &absent, 1);
    }
    sim_tree_make(disk, TREE, entry, 1);
    made->entries[made->count++] = *entry;
}

static bool is_file(const struct sim_tree_entry *entry)
{
    return entry->kind == WAL__WORKTREE_REGULAR || entry->kind == WAL__WORKTREE_SYMLINK;
}

/* Makes a file in the place of each that was moved. */
static void make_all_moved(struct sim_disk *disk, struct made *made)
{
    for (int i = 0; i < ENTRIES; i++) {
        const struct sim_tree_entry file = {before[i].path, WAL__WORKTREE_REGULAR, 0640,
                                            "somebody's\n"};
        const struct sim_tree_entry other = entry_of(after, file.path);

        if ((is_file(&before[i]) || is_file(&other)) && !sim_tree_has(disk, TREE, &before[i])) {
            make_file(disk, &file, made);
        }
    }
}

/* The place of the path in what was made, or -1. */
static int find_made(const struct made *made, const char *path)
{
    for (int i = 0; i < made->count; i++) {
        if (strcmp(made->entries[i].path, path) == 0) {
            return i;
        }
    }
    return -1;
}

/* What was made is there; each other file is in one of its states; nothing is lost. */
static void check_files(struct world *world, const struct made *made, bool has_undo)
{
    for (int i = 0; i < made->count; i++) {
        if (!sim_tree_has(world->disk, TREE, &made->entries[i])) {
            fail_msg("%s: the other program's %s was touched", what, made->entries[i].path);
        }
    }
    for (int i = 0; i < ENTRIES; i++) {
        const struct sim_tree_entry other = entry_of(after, before[i].path);
        bool is_before = sim_tree_has(world->disk, TREE, &before[i]);
        int place = find_made(made, before[i].path);

        if (is_file(&before[i]) && !is_before && !has_undo &&
            (place < 0 || !made->was_before[place])) {
            fail_msg("%s: the content of %s is lost", what, before[i].path);
        }
        if (!is_before && place < 0 && !sim_tree_has(world->disk, TREE, &other)) {
            fail_msg("%s: %s is in neither state", what, before[i].path);
        }
    }
}

/* Once what was made is gone. */
static void check_undo(struct world *world, const struct made *made, const char *undo)
{
    int32_t status = 0;

    for (int i = 0; i < made->count; i++) {
        const struct sim_tree_entry absent = {.path = made->entries[i].path,
                                              .kind = WAL__WORKTREE_ABSENT};

        if (made->entries[i].kind == WAL__WORKTREE_DIRECTORY) {
            remove_directory(world, absent.path);
        } else {
            sim_tree_make(world->disk, TREE, &absent, 1);
        }
    }
    if (rewind_to(world, undo, &status) != DONE) {
        fail_msg("%s: it cannot be undone: %d, %s", what, status, said);
    }
    for (int i = 0; i < ENTRIES; i++) {
        if (is_file(&before[i]) && !sim_tree_has(world->disk, TREE, &before[i])) {
            fail_msg("%s: the undo does not have %s", what, before[i].path);
        }
    }
}

static void check_made(struct world *world, const struct made *made)
{
    char undo[256];
    bool has_undo;

    settle(world);
    has_undo = find_undo(world, undo);
    check_files(world, made, has_undo);
    if (has_undo) {
        check_undo(world, made, undo);
    }
}

/* Kills the process that opens the session at its nth call; it may be done before. */
static void settle_or_die(struct sim_disk *disk, uint64_t nth)
{
    const struct sim_fault fault = {.call = SIM_ANY, .effect = SIM_KILL_BEFORE, .after = nth};
    struct world world = {.disk = disk};

    open_session(&world);
    sim_process_add_fault(world.process, &fault);
    if (setjmp(world.death) == 0) {
        settle(&world);
    }
    stop(&world);
}

/* A rewind is killed at its nth call, and then files are made: one, or all; false when it was done
 * before. */
static bool kill_for(const struct sim_disk *base, const struct sim_tree_entry *one, uint64_t nth)
{
    const struct sim_fault fault = {.call = SIM_ANY,
                                    .effect = nth % 2 == 0 ? SIM_KILL_AFTER : SIM_KILL_BEFORE,
                                    .after = nth / 2};
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};
    struct world world = {.disk = sim_disk_clone((struct sim_disk *)base)};
    struct made made = {.count = 0};
    int32_t status = 0;
    bool died;

    (void)snprintf(what, sizeof(what), "killed at call %" PRIu64 ", then %s is made", nth,
                   one == NULL ? "each moved file" : one->path);
    open_session(&world);
    sim_process_add_fault(world.process, &fault);
    died = rewind_or_die(&world, &status) == DIED;
    stop(&world);
    if (nth % 3 == 0) {
        sim_disk_power_loss(world.disk, &loss, nth);
    }
    if (one == NULL) {
        make_all_moved(world.disk, &made);
    } else {
        make_file(world.disk, one, &made);
    }
    if (died && nth % 5 == 0) {
        settle_or_die(world.disk, nth * 7 % 200);
    }
    if (died) {
        open_session(&world);
        check_made(&world, &made);
        stop(&world);
    }
    sim_disk_destroy(world.disk);
    return died;
}

static uint64_t kill_all_for(const struct sim_disk *base, const struct sim_tree_entry *one,
                             uint64_t first, uint64_t stride)
{
    uint64_t runs = 0;

    for (uint64_t nth = first; kill_for(base, one, nth); nth += stride) {
        runs++;
    }
    return runs;
}

TEST(loop_rewind__another_program_makes_a_file_before_the_next_call)
{
    struct sim_disk *base = make_base();
    uint64_t stride = workload_sample(11);
    uint64_t runs = 0;

    rewinds_head = false;
    for (uint64_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        runs += kill_all_for(base, &others[i], i % stride, stride);
    }
    runs += kill_all_for(base, NULL, 0, workload_sample(1));
    assert_true(runs > 0);
    print_message("%" PRIu64 " rewinds\n", runs);
    sim_disk_destroy(base);
}

/* Makes a file when a call fails. */
struct visit {
    struct sim_disk *disk;
    const struct sim_tree_entry *entry;
    struct made made;
    bool failed;
};

static void make_on_failure(void *arg, const struct sim_event *event)
{
    struct visit *visit = arg;

    if (event->sys_errno == EIO && !visit->failed) {
        visit->failed = true;
        make_file(visit->disk, visit->entry, &visit->made);
    }
}

/* The nth call of a rewind fails, and then the file is made; false when there were fewer. */
static bool fail_for(const struct sim_disk *base, const struct sim_tree_entry *entry, uint64_t nth)
{
    const struct sim_fault fault = {.call = SIM_ANY, .sys_errno = EIO, .after = nth};
    struct world world = {.disk = sim_disk_clone((struct sim_disk *)base)};
    struct visit visit = {.disk = world.disk, .entry = entry};
    enum outcome outcome;
    int32_t status = 0;

    (void)snprintf(what, sizeof(what), "call %" PRIu64 " fails, then %s is made", nth, entry->path);
    open_session(&world);
    sim_process_add_fault(world.process, &fault);
    sim_disk_on_call(world.disk, make_on_failure, &visit);
    outcome = rewind_or_die(&world, &status);
    sim_disk_on_call(world.disk, NULL, NULL);
    sim_process_clear_faults(world.process);
    /* One that goes on may replace what was made after it looked. */
    if (outcome != DONE) {
        check_made(&world, &visit.made);
    }
    stop(&world);
    sim_disk_destroy(world.disk);
    return visit.failed;
}

TEST(loop_rewind__another_program_makes_a_file_when_a_call_fails)
{
    struct sim_disk *base = make_base();
    uint64_t stride = workload_sample(3);
    uint64_t runs = 0;

    rewinds_head = false;
    for (uint64_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        for (uint64_t nth = i % stride; fail_for(base, &others[i], nth); nth += stride) {
            runs++;
        }
    }
    assert_true(runs > 0);
    print_message("%" PRIu64 " rewinds\n", runs);
    sim_disk_destroy(base);
}

/* Another program's write without a sync, of the same size. */
static void write_over(struct world *world, const struct sim_tree_entry *entry)
{
    const struct wal__io *io = sim_process_io(world->process);
    const struct iovec iov = {(void *)(uintptr_t)entry->content, strlen(entry->content)};
    struct wal__file *file;
    char path[64];
    int err = 0;

    (void)snprintf(path, sizeof(path), TREE "/%s", entry->path);
    assert_ok(io->open(io->ctx, path, WAL__IO_WRITE, &file, &err));
    assert_ok(wal__io_write_full(io, file, &iov, 1, 0, &err));
    io->close(io->ctx, file);
}

/* Returns 1 where bytes were lost. They are in the undo, whatever the times of the file say. */
static int lose_bytes(const struct sim_disk *base, uint64_t seed)
{
    static const struct sim_tree_entry z = {"z", WAL__WORKTREE_REGULAR, 0644,
                                            "Z BEFORE THE REWIND\n"};
    const struct sim_fault fault = {.call = SIM_SYNC_ALL, .effect = SIM_KILL_BEFORE};
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};
    struct world world = {.disk = sim_disk_clone((struct sim_disk *)base)};
    char undo[256];
    int32_t status = 0;
    int lost = 0;

    (void)snprintf(what, sizeof(what), "seed %" PRIu64, seed);
    open_session(&world);
    /* Not at a whole second: such times are not trusted. */
    sim_disk_advance(world.disk, 1234000000);
    write_over(&world, &z);
    sim_disk_advance(world.disk, 100000000);
    sim_process_add_fault(world.process, &fault);
    assert_int_equal(rewind_or_die(&world, &status), DIED);
    stop(&world);
    sim_disk_power_loss(world.disk, &loss, seed);
    open_session(&world);
    settle(&world);
    if (!sim_tree_has(world.disk, TREE, &z)) {
        lost = 1;
        if (!find_undo(&world, undo) || rewind_to(&world, undo, &status) != DONE ||
            !sim_tree_has(world.disk, TREE, &z)) {
            fail_now("the content of z is lost");
        }
    }
    stop(&world);
    sim_disk_destroy(world.disk);
    return lost;
}

TEST(loop_rewind__power_takes_bytes_of_a_file_that_was_not_moved)
{
    struct sim_disk *base = make_base();
    int lost = 0;

    rewinds_head = false;
    for (uint64_t seed = 0; seed < 64; seed++) {
        lost += lose_bytes(base, seed);
    }
    assert_true(lost > 0);
    sim_disk_destroy(base);
}
