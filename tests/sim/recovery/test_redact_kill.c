/*
 * test_redact_kill.c - a process is killed at each call to the system while it
 * redacts the entry that gave the session's title: the session has both, or
 * neither (SPEC.md 5.7).
 */
#include <stddef.h>
#include <stdint.h>

#include "engine/session/store.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/sim.h"

static jmp_buf death;

static struct wal_store *open_store(struct sim_process *process,
                                    const struct wal__heap *heap)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE};
    struct wal_error error = KIT_ERROR;
    struct wal_store *store = NULL;

    if (wal__store_open("/store", &options, heap, sim_process_io(process),
                        &store, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
    return store;
}

static void on_death(void *arg)
{
    (void)arg;
    longjmp(death, 1);
}

static enum wal_status redact(struct wal_session *session)
{
    return wal_session_redact(session, kit_text("a"), kit_text(""), NULL, NULL);
}

/* False: it did not come to that call. */
static bool kill_at(struct sim_process *process, struct wal_session *session,
                    uint64_t nth)
{
    const struct sim_fault fault = {
        .call = SIM_ANY, .effect = SIM_KILL_BEFORE, .after = nth};

    sim_process_add_fault(process, &fault);
    sim_process_on_death(process, on_death, NULL);
    if (setjmp(death) != 0) {
        return true;
    }
    assert_ok(redact(session));
    sim_process_on_death(process, NULL, NULL);
    sim_process_clear_faults(process);
    return false;
}

/* Whether the session is redacted; its title is there exactly when not. */
static bool check(struct sim_disk *disk)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process, &wal__heap_libc);
    struct wal_session *session = kit_session(store, "s");
    struct wal_entry entry = WAL_INIT(wal_entry);
    const bool is_redacted =
        wal_entry_get(session, kit_text("a"), &entry, NULL) == WAL_EREDACTED;

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
        struct sim_disk *disk = sim_disk_create(1);
        struct sim_process *process = sim_process_create(disk);
        struct arena_heap arena;
        struct wal_store *store;
        struct wal_session *session;
        struct wal_entry entry =
            kit_entry("a", NULL, "{\"role\":\"user\",\"content\":\"secret\"}");

        arena_heap_init(&arena);
        store = open_store(process, &arena.heap);
        session = kit_create_titled(store, "s", "secret");
        assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
        struck = kill_at(process, session, nth);
        if (struck) {
            sim_process_kill(process);
        } else {
            wal_session_close(session);
            kit_close(store);
        }
        arena_heap_deinit(&arena);
        was_redacted[check(disk)] = true;
        sim_process_destroy(process);
        sim_disk_destroy(disk);
    }
    assert_true(was_redacted[0] && was_redacted[1]);
}
