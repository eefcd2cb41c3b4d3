/*
 * test_killed_compaction.c - a process is killed at each name that its compaction changes, before
 * the others know of it: what those read, and what they erase, is as if nothing had happened
 * (SPEC.md 3.9, SPEC.md).
 */
#include <stddef.h>
#include <stdint.h>

#include "agentwal/admin.h"
#include "agentwal/transfer.h"
#include "engine/session/store.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/kit/parts_kit.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/sim.h"

enum {
    ROUNDS = 3, /* all but the last one end a segment */
    NAMES_MAX = 64
};

static jmp_buf death;

static struct wal_store *open_store(struct sim_process *process, const struct wal__heap *heap,
                                    uint32_t flags)
{
    const struct wal_open_options options = {.struct_size = sizeof(options), .flags = flags};
    struct wal_error error = KIT_ERROR;
    struct wal_store *store = NULL;

    if (wal__store_open("/store", &options, heap, sim_process_io(process), &store, &error) !=
        WAL_OK) {
        fail_msg("%s", error.text);
    }
    return store;
}

static enum wal_status compact(struct wal_store *store)
{
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .rate = UINT64_MAX};

    return wal_store_compact(store, &options, NULL, NULL);
}

/* A session with a title that an entry gave, its fork, documents and heads; in segments of which
 * each has something to be erased. */
static void fill(struct wal_store *store)
{
    struct wal_session *session = kit_create_titled(store, "s", "secret");
    struct wal_session *forked;
    struct wal_entry entry = kit_entry("t", NULL, "{\"role\":\"user\",\"content\":\"secret\"}");

    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    kit_append_all(session, "a b c");
    forked = kit_fork(session, "b", "f");
    for (int i = 0; i < ROUNDS; i++) {
        struct wal_session *deleted = kit_create(store, NULL);
        char id[2][8];

        (void)snprintf(id[0], sizeof(id[0]), "s%d", i);
        (void)snprintf(id[1], sizeof(id[1]), "f%d", i);
        kit_append(session, id[0], NULL);
        kit_append(forked, id[1], NULL);
        kit_move_head(session, "h", "a");
        (void)kit_put(store, session, "k", id[0] + 1);
        kit_append_all(deleted, "x y z");
        assert_ok(wal_session_delete(deleted, NULL));
        wal_session_close(deleted);
        if (i < ROUNDS - 1) {
            assert_ok(compact(store));
        }
    }
    wal_session_close(forked);
    wal_session_close(session);
}

/* --- what others do ----------------------------------------------------- */

/* A process that has had the store open all the time, and has read nothing yet but what opening
 * these takes. */
struct other {
    struct sim_process *process;
    struct wal_store *store;
    struct wal_session *session;
    struct wal_session *forked;
    struct wal_entry_cursor *cursor;
};

static void join(struct other *other, struct sim_disk *disk, uint32_t flags)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};

    other->process = sim_process_create(disk);
    other->store = open_store(other->process, &wal__heap_libc, flags);
    other->session = kit_session(other->store, "s");
    other->forked = kit_session(other->store, "f");
    assert_ok(wal_entry_cursor_open(other->forked, &options, &other->cursor, NULL));
}

static void leave(struct other *other)
{
    wal_entry_cursor_close(other->cursor);
    wal_session_close(other->forked);
    wal_session_close(other->session);
    kit_close(other->store);
    sim_process_destroy(other->process);
}

static void get_by_cursor(struct other *other)
{
    static const char *const ids[] = {"a", "b", "f0", "f1", "f2"};
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_error error = KIT_ERROR;

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        if (wal_entry_cursor_get(other->cursor, kit_text(ids[i]), &entry, &error) != WAL_OK) {
            fail_msg("%s: %s", ids[i], error.text);
        }
    }
}

static void get_by_session(struct other *other)
{
    struct wal_entry entry = WAL_INIT(wal_entry);

    assert_ok(wal_entry_get(other->forked, kit_text("f0"), &entry, NULL));
}

static void iterate(struct other *other)
{
    assert_branch(other->session, "t a b c s0 s1 s2");
    assert_branch(other->forked, "t a b f0 f1 f2");
}

static void list_parts(struct other *other)
{
    assert_string_equal(kit_docs(NULL, other->session, 0, ""), "k=2");
    assert_string_equal(kit_heads(other->session), "main=s2 h=a");
}

/* Redacts the entry that gave the title. */
static void redact(struct other *other)
{
    struct wal_error error = KIT_ERROR;

    if (wal_session_redact(other->session, kit_text("t"), kit_text(""), NULL, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(kit_info(other->session).title.size, 0);
    assert_int_equal(kit_info(other->forked).title.size, 0);
}

/* Merges all into a store in memory. */
static void merge(struct other *other)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE | WAL_OPEN_MEMORY};
    struct wal_store *target = NULL;
    struct wal_session *session;
    struct wal_error error = KIT_ERROR;

    assert_ok(wal_open("merged", &options, &target, NULL));
    if (wal_store_merge(other->store, target, NULL, NULL, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
    session = kit_session(target, "f");
    assert_branch(session, "t a b f0 f1 f2");
    wal_session_close(session);
    kit_close(target);
}

/* --- the compaction ----------------------------------------------------- */

/* False: it did not come to that name. */
static bool kill_at(struct sim_process *process, struct wal_store *store, enum sim_call call,
                    uint64_t nth)
{
    const struct sim_fault fault = {.call = call, .effect = SIM_KILL_AFTER, .after = nth};

    sim_process_add_fault(process, &fault);
    sim_process_on_death(process, sim_jump, &death);
    if (setjmp(death) != 0) {
        return true;
    }
    assert_ok(compact(store));
    sim_process_on_death(process, NULL, NULL);
    sim_process_clear_faults(process);
    return false;
}

static bool try_at(uint32_t flags, enum sim_call call, uint64_t nth,
                   void (*act)(struct other *other))
{
    struct sim_disk *disk = sim_disk_create(1);
    struct sim_process *process = sim_process_create(disk);
    struct arena_heap arena;
    struct wal_store *store;
    struct other other;
    bool struck;

    arena_heap_init(&arena);
    store = open_store(process, &arena.heap, WAL_OPEN_CREATE);
    fill(store);
    join(&other, disk, flags);
    struck = kill_at(process, store, call, nth);
    if (struck) {
        sim_process_kill(process);
    }
    act(&other);
    leave(&other);
    if (!struck) {
        kit_close(store);
    }
    arena_heap_deinit(&arena);
    sim_process_destroy(process);
    sim_disk_destroy(disk);
    return struck;
}

static void try_all(uint32_t flags, void (*act)(struct other *other))
{
    static const enum sim_call calls[] = {SIM_RENAME, SIM_UNLINK};
    uint64_t count = 0;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (uint64_t nth = 0; try_at(flags, calls[i], nth, act); nth++) {
            count++;
        }
    }
    assert_in_range(count, 2, NAMES_MAX);
}

static void try_reading(void (*act)(struct other *other))
{
    try_all(0, act);
    try_all(WAL_OPEN_PREAD, act);
    try_all(WAL_OPEN_READ_ONLY, act);
}

TEST(killed_compaction__cursor_gets_each_entry)
{
    try_reading(get_by_cursor);
}

TEST(killed_compaction__session_gets_each_entry)
{
    try_reading(get_by_session);
}

TEST(killed_compaction__branches_are_whole)
{
    try_reading(iterate);
}

TEST(killed_compaction__heads_and_documents_are_whole)
{
    try_reading(list_parts);
}

TEST(killed_compaction__title_goes_with_the_entry)
{
    try_all(0, redact);
}

TEST(killed_compaction__all_is_merged)
{
    try_reading(merge);
}

/* --- redact kill --------------------------------------------------------- */

/*
 * A process is killed at each call to the system while it redacts the entry
 * that gave the session's title: the session has both, or neither (SPEC.md
 * 5.7).
 */

static jmp_buf death;

static struct wal_store *open_redacted(struct sim_process *process, const struct wal__heap *heap)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE};
    struct wal_error error = KIT_ERROR;
    struct wal_store *store = NULL;

    if (wal__store_open("/store", &options, heap, sim_process_io(process), &store, &error) !=
        WAL_OK) {
        fail_msg("%s", error.text);
    }
    return store;
}

static enum wal_status redact_entry(struct wal_session *session)
{
    return wal_session_redact(session, kit_text("a"), kit_text(""), NULL, NULL);
}

static enum wal_status restore_entry(struct wal_session *session)
{
    return wal_session_unredact(session, kit_text("a"), NULL);
}

/* False: it did not come to that call. */
static bool kill_redaction_at(struct sim_process *process, struct wal_session *session,
                              enum wal_status (*call)(struct wal_session *session), uint64_t nth)
{
    const struct sim_fault fault = {.call = SIM_ANY, .effect = SIM_KILL_BEFORE, .after = nth};

    sim_process_add_fault(process, &fault);
    sim_process_on_death(process, sim_jump, &death);
    if (setjmp(death) != 0) {
        return true;
    }
    assert_ok(call(session));
    sim_process_on_death(process, NULL, NULL);
    sim_process_clear_faults(process);
    return false;
}

/* A process with the entry "a" of a session, in memory that goes with it. */
struct machine {
    struct sim_disk *disk;
    struct sim_process *process;
    struct arena_heap arena;
    struct wal_store *store;
    struct wal_session *session;
};

static void begin_machine(struct machine *machine)
{
    const struct wal_entry entry =
        kit_entry("a", NULL, "{\"role\":\"user\",\"content\":\"secret\"}");

    machine->disk = sim_disk_create(1);
    machine->process = sim_process_create(machine->disk);
    arena_heap_init(&machine->arena);
    machine->store = open_redacted(machine->process, &machine->arena.heap);
    machine->session = kit_create_titled(machine->store, "s", "secret");
    assert_ok(wal_append(machine->session, &entry, 1, NULL, NULL, NULL));
}

/* As kill_redaction_at; the process is at its end in any case. */
static bool end_machine_at(struct machine *machine,
                           enum wal_status (*call)(struct wal_session *session), uint64_t nth)
{
    const bool struck = kill_redaction_at(machine->process, machine->session, call, nth);

    if (struck) {
        sim_process_kill(machine->process);
        (void)test_forget(machine->session);
    } else {
        wal_session_close(machine->session);
        kit_close(machine->store);
    }
    arena_heap_deinit(&machine->arena);
    return struck;
}

static void free_machine(struct machine *machine)
{
    sim_process_destroy(machine->process);
    sim_disk_destroy(machine->disk);
}

/* Whether the session is redacted; its title is there exactly when not. */
static bool check(struct sim_disk *disk)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_redacted(process, &wal__heap_libc);
    struct wal_session *session = kit_session(store, "s");
    struct wal_entry entry = WAL_INIT(wal_entry);
    const bool is_redacted = wal_entry_get(session, kit_text("a"), &entry, NULL) == WAL_EREDACTED;

    assert_int_equal(kit_info(session).title.size, is_redacted ? 0 : 6);
    wal_session_close(session);
    kit_close(store);
    sim_process_destroy(process);
    return is_redacted;
}

TEST(redact__title_goes_with_the_entry_at_every_kill)
{
    bool struck = true;
    bool was_redacted[2] = {false, false};

    for (uint64_t nth = 0; struck; nth++) {
        struct machine machine;

        begin_machine(&machine);
        struck = end_machine_at(&machine, redact_entry, nth);
        was_redacted[check(machine.disk)] = true;
        free_machine(&machine);
    }
    assert_true(was_redacted[0] && was_redacted[1]);
}

/* Whether the entry is shown after a loss of power or without one; then it is undone again, unless
 * it was, and erasing keeps the entry. */
static bool check_restored(struct sim_disk *disk)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = WAL_STORE_COMPACT_ERASE, .rate = UINT64_MAX};
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_redacted(process, &wal__heap_libc);
    struct wal_session *session = kit_session(store, "s");
    struct wal_entry entry = WAL_INIT(wal_entry);
    const bool is_shown = wal_entry_get(session, kit_text("a"), &entry, NULL) == WAL_OK;

    assert_int_equal(restore_entry(session), is_shown ? WAL_ENOTFOUND : WAL_OK);
    assert_ok(wal_store_compact(store, &options, NULL, NULL));
    assert_ok(wal_entry_get(session, kit_text("a"), &entry, NULL));
    wal_session_close(session);
    kit_close(store);
    sim_process_destroy(process);
    return is_shown;
}

TEST(redact__undone_or_not_at_every_kill)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_BY_SECTOR};

    for (int power = 0; power < 2; power++) {
        bool was_shown[2] = {false, false};
        bool struck = true;

        for (uint64_t nth = 0; struck; nth++) {
            struct machine machine;

            begin_machine(&machine);
            assert_ok(redact_entry(machine.session));
            struck = end_machine_at(&machine, restore_entry, nth);
            if (power == 1) {
                sim_disk_power_loss(machine.disk, &loss, nth);
            }
            was_shown[check_restored(machine.disk)] = true;
            free_machine(&machine);
        }
        assert_true(was_shown[0] && was_shown[1]);
    }
}
