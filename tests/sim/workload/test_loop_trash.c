/*
 * test_loop_trash.c - putting the first session of a store in the trash, taking it out, and
 * emptying the trash, each cut short at its Nth call to the system for every N: the process dies,
 * or the call fails once or from then on; then the power goes, or not. Also with the Nth allocation
 * failing. What was acknowledged is there; the session is in one place; MANIFEST has the feature
 * wherever the session is in the trash.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "engine/session/store.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/sim.h"

enum where { LISTED, TRASHED, DELETED };

/* What is done to the session. */
enum act { TRASH, UNDELETE, EMPTY, ACTS };

static const struct {
    enum where from;
    enum where to;
} moves[ACTS] = {{LISTED, TRASHED}, {TRASHED, LISTED}, {TRASHED, DELETED}};

static const struct sim_fault ways[] = {
    {.call = SIM_ANY, .effect = SIM_KILL_BEFORE},
    {.call = SIM_ANY, .effect = SIM_KILL_AFTER},
    {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 100},
    {.call = SIM_ANY, .sys_errno = EIO},
    {.call = SIM_ANY, .sys_errno = EIO, .sticky = true},
    {.call = SIM_ANY, .sys_errno = ENOSPC, .sticky = true},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

struct machine {
    struct sim_disk *disk;
    struct sim_process *process;
    struct arena_heap arena; /* a process that dies leaves nothing */
    struct faulty_heap heap;
    struct wal_store *store;
    struct wal_session *session; /* NULL: it is not opened */
    jmp_buf death;
};

static struct wal_slice text(const char *from)
{
    return (struct wal_slice){from, strlen(from)};
}

static enum wal_status start(struct machine *machine, bool creates)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = creates ? WAL_OPEN_CREATE : 0};

    machine->process = sim_process_create(machine->disk);
    arena_heap_init(&machine->arena);
    faulty_heap_init(&machine->heap, &machine->arena.heap);
    machine->store = NULL;
    machine->session = NULL;
    return wal__store_open("/store", &options, &machine->heap.heap,
                           sim_process_io(machine->process), &machine->store, NULL);
}

static void stop(struct machine *machine)
{
    if (!sim_process_is_dead(machine->process)) {
        wal_session_close(machine->session);
        if (machine->store != NULL) {
            (void)!wal_close(machine->store, NULL);
        }
        assert_int_equal(arena_heap_count(&machine->arena), 0);
    }
    sim_process_destroy(machine->process);
    arena_heap_deinit(&machine->arena);
}

static enum wal_status act(struct machine *machine, enum act what)
{
    const struct wal_store_compact_options erase = {.struct_size = sizeof(erase),
                                                    .flags = WAL_STORE_COMPACT_ERASE |
                                                             WAL_STORE_COMPACT_EMPTY_TRASH};

    switch (what) {
    case TRASH:
        return wal_session_trash(machine->session, NULL);
    case UNDELETE:
        return wal_session_undelete(machine->store, text("s"), NULL);
    case EMPTY:
    case ACTS:
    default:
        return wal_store_compact(machine->store, &erase, NULL, NULL);
    }
}

/* A disk with a store whose session is where the act needs it. */
static struct sim_disk *prepare(enum act what)
{
    struct wal_session_options options = {
        .struct_size = sizeof(options), .id = text("s"), .title = text("title")};
    struct machine machine = {.disk = sim_disk_create(7)};

    assert_ok(start(&machine, true));
    assert_ok(wal_session_create(machine.store, &options, &machine.session, NULL));
    assert_ok(wal_append_one(machine.session, "message", text("{}"), NULL, NULL));
    if (moves[what].from == TRASHED) {
        assert_ok(act(&machine, TRASH));
    }
    stop(&machine);
    return machine.disk;
}

static bool has_feature(struct sim_disk *disk)
{
    struct wal__manifest manifest;
    uint8_t *bytes;
    size_t size;

    sim_disk_read_file(disk, "/store/MANIFEST", &bytes, &size);
    assert_int_equal(size, WAL__MANIFEST_SIZE);
    assert_int_equal(wal__manifest_decode(bytes, &manifest), WAL__FMT_OK);
    free(bytes);
    return (manifest.features.incompat & WAL__INCOMPAT_TRASH) != 0;
}

static bool is_in_list(struct wal_store *store, uint32_t flags)
{
    const struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                       .flags = flags};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status;

    assert_ok(wal_session_cursor_open(store, &options, &list, NULL));
    status = wal_session_cursor_next(list, &info, NULL);
    if (status == WAL_OK) {
        assert_int_equal(info.title.size, 5);
        assert_int_equal(info.entries, 1);
    }
    wal_session_cursor_close(list);
    return status == WAL_OK;
}

/* Where the session is, for a process that opens the store now. */
static enum where find(struct sim_disk *disk)
{
    struct machine machine = {.disk = disk};
    bool is_listed;
    bool is_trashed;
    enum wal_status status;

    assert_ok(start(&machine, false));
    is_listed = is_in_list(machine.store, 0);
    is_trashed = is_in_list(machine.store, WAL_SESSION_CURSOR_TRASH);
    status = wal_session_open(machine.store, text("s"), &machine.session, NULL);
    stop(&machine);
    assert_false(is_listed && is_trashed);
    assert_int_equal(status, is_listed ? WAL_OK : is_trashed ? WAL_ETRASHED : WAL_ENOTFOUND);
    assert_true(!is_trashed || has_feature(disk));
    return is_listed ? LISTED : is_trashed ? TRASHED : DELETED;
}

/* Runs the act with the fault. *status: what it answered; *died: it did not. True: the fault
 * struck. */
static bool cut_short(struct machine *machine, enum act what, const struct sim_fault *fault,
                      enum wal_status *status, bool *died)
{
    bool struck;

    assert_ok(start(machine, false));
    if (what == TRASH) {
        assert_ok(wal_session_open(machine->store, text("s"), &machine->session, NULL));
    }
    *died = false;
    memset(sim_process_counts(machine->process), 0, sizeof(struct sim_counts));
    sim_process_add_fault(machine->process, fault);
    sim_process_on_death(machine->process, sim_jump, &machine->death);
    if (setjmp(machine->death) != 0) {
        *died = true;
        stop(machine);
        return true;
    }
    *status = act(machine, what);
    sim_process_on_death(machine->process, NULL, NULL);
    struck = sim_process_counts(machine->process)->faults > 0;
    sim_process_clear_faults(machine->process);
    stop(machine);
    return struck;
}

/* False: the act makes fewer calls. */
static bool try_fault(const struct sim_disk *before, enum act what, const struct sim_fault *way,
                      uint64_t nth, bool has_loss)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY, .garbage = true};
    struct sim_fault fault = *way;
    struct machine machine = {.disk = sim_disk_clone((struct sim_disk *)(uintptr_t)before)};
    enum wal_status status = WAL_OK;
    enum where found;
    bool died;
    bool struck;

    fault.after = nth;
    struck = cut_short(&machine, what, &fault, &status, &died);
    if (has_loss) {
        sim_disk_power_loss(machine.disk, &loss, nth);
    }
    found = find(machine.disk);
    assert_true(found == moves[what].from || found == moves[what].to);
    if (!died && status == WAL_OK) {
        assert_int_equal(found, moves[what].to);
    }
    /* The next one does it. */
    if (found == moves[what].from) {
        assert_ok(start(&machine, false));
        if (what == TRASH) {
            assert_ok(wal_session_open(machine.store, text("s"), &machine.session, NULL));
        }
        assert_ok(act(&machine, what));
        stop(&machine);
        assert_int_equal(find(machine.disk), moves[what].to);
    }
    sim_disk_destroy(machine.disk);
    return struck;
}

static void try_all(enum act what, bool has_loss)
{
    struct sim_disk *before = prepare(what);
    uint64_t tried = 0;

    for (size_t way = 0; way < WAYS; way++) {
        uint64_t nth = 0;

        while (try_fault(before, what, &ways[way], nth, has_loss)) {
            nth++;
        }
        tried += nth;
        assert_true(nth > 0);
    }
    sim_disk_destroy(before);
    print_message("%llu faults\n", (unsigned long long)tried);
}

TEST(trash__first_one_is_cut_short)
{
    try_all(TRASH, false);
    try_all(TRASH, true);
}

TEST(trash__undelete_is_cut_short)
{
    try_all(UNDELETE, false);
    try_all(UNDELETE, true);
}

TEST(trash__emptying_is_cut_short)
{
    try_all(EMPTY, false);
    try_all(EMPTY, true);
}

/* Without memory nothing has changed, and the next attempt does it. */
TEST(trash__without_memory_nothing_changes)
{
    for (int what = 0; what < EMPTY; what++) {
        struct sim_disk *disk = prepare((enum act)what);
        struct machine machine = {.disk = disk};
        enum wal_status status = WAL_ENOMEM;
        uint64_t nth = 0;

        assert_ok(start(&machine, false));
        if (what == TRASH) {
            assert_ok(wal_session_open(machine.store, text("s"), &machine.session, NULL));
        }
        while (status == WAL_ENOMEM) {
            assert_true(nth < 1000);
            faulty_heap_fail(&machine.heap, ++nth, false);
            status = act(&machine, (enum act)what);
            faulty_heap_fail(&machine.heap, 0, false);
            if (status == WAL_ENOMEM) {
                assert_true(is_in_list(machine.store, 0) == (what == TRASH));
            }
        }
        assert_ok(status);
        assert_true(nth > 1);
        stop(&machine);
        assert_int_equal(find(disk), moves[what].to);
        sim_disk_destroy(disk);
    }
}
