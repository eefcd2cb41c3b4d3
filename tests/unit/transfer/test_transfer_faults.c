/*
 * test_transfer_faults.c - merges into a store on the simulated disk while the
 * disk is full, the Nth call or the Nth allocation fails, or the power is cut
 * after it: the next merge completes what was begun.
 */
#include <errno.h>
#include <time.h>

#include "agentwal/checkpoint.h"
#include "agentwal/transfer.h"
#include "engine/api/api_store.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/kit/describe_kit.h"
#include "tests/sim/disk/sim.h"

enum {
    LARGE = 300 * 1024,
    STEP = 3,              /* of the calls that fail in turn */
    SIM_START = 1700000000 /* the clock of a new disk, at most */
};

static void put(struct wal_session *session, const char *key, const char *value)
{
    const struct wal_doc doc = {.struct_size = sizeof(doc),
                                .key = kit_text(key),
                                .value = kit_text(value)};

    assert_int_equal(wal_doc_put(NULL, session, &doc, NULL, NULL), WAL_OK);
}

/* The store "from": s, which is deleted, with the forks f, which has a large
 * payload, and g; t with documents. */
static void make_from(void)
{
    struct wal_store *store = kit_open("from", WAL_OPEN_CREATE);
    struct wal_session *s = kit_create(store, "s");
    struct wal_session *t = kit_create(store, "t");
    struct kit_content content = kit_content(3, LARGE, true);
    struct wal_entry entry = kit_entry("large", NULL, "");
    struct wal_session *f;
    struct wal_session *g;

    kit_append_all(s, "a b c");
    put(s, "notes", "1");
    f = kit_fork(s, "b", "f");
    put(s, "notes", "2");
    g = kit_fork(s, "c", "g");
    entry.flags = WAL_ENTRY_LINE;
    entry.payload = kit_slice(&content);
    assert_int_equal(wal_append(f, &entry, 1, NULL, NULL, NULL), WAL_OK);
    kit_append_all(g, "x y");
    kit_append_all(t, "p q r");
    put(t, "notes", "3");
    put(t, "notes", "4");
    assert_int_equal(
        wal_session_redact(t, WAL_STR("q"), WAL_STR(""), NULL, NULL), WAL_OK);
    assert_int_equal(wal_session_delete(s, NULL), WAL_OK);
    kit_content_free(&content);
    wal_session_close(s);
    wal_session_close(t);
    wal_session_close(f);
    wal_session_close(g);
    kit_close(store);
}

struct machine {
    struct sim_disk *disk;
    struct sim_process *process;
    struct faulty_heap heap;
    struct wal_store *from;
    struct wal_store *to; /* on the disk */
};

static void open_to(struct machine *machine)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE};
    struct wal_error error = KIT_ERROR;

    machine->process = sim_process_create(machine->disk);
    faulty_heap_init(&machine->heap, &wal__heap_libc);
    if (wal__store_open("/to", &options, &machine->heap.heap,
                        sim_process_io(machine->process), &machine->to,
                        &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
}

static void close_to(struct machine *machine)
{
    sim_process_clear_faults(machine->process);
    faulty_heap_fail(&machine->heap, 0, false);
    (void)wal_close(machine->to, NULL);
    sim_process_destroy(machine->process);
}

static void begin(struct machine *machine)
{
    make_from();
    *machine = (struct machine){.from = kit_open("from", 0)};
}

static void make_disk(struct machine *machine, uint64_t seed)
{
    machine->disk = sim_disk_create(seed);
    /* Times that are over a day ahead are not taken. */
    sim_disk_step_clock(machine->disk,
                        ((int64_t)time(NULL) - SIM_START) * 1000);
    open_to(machine);
}

static enum wal_status merge(struct machine *machine)
{
    struct wal_transfer_result result = WAL_INIT(wal_transfer_result);
    struct wal_error error = KIT_ERROR;
    enum wal_status status =
        wal_store_merge(machine->from, machine->to, NULL, &result, &error);

    if (status == WAL_OK && result.refused > 0) {
        return WAL_ECONFLICT;
    }
    return status;
}

/* The next merge, without faults, completes it. */
static void complete(struct machine *machine)
{
    uint64_t before;

    assert_int_equal(merge(machine), WAL_OK);
    assert_same_stores(machine->from, machine->to);
    before = kit_store_info(machine->to).last_sequence;
    assert_int_equal(merge(machine), WAL_OK);
    assert_int_equal(kit_store_info(machine->to).last_sequence, before);
}

static void test_transfer_faults__full_disk(void **state)
{
    struct machine machine;
    enum wal_status status = WAL_ENOSPACE;

    (void)state;
    begin(&machine);
    for (uint64_t space = 64 * 1024; status == WAL_ENOSPACE;
         space += 64 * 1024) {
        make_disk(&machine, 1);
        sim_disk_set_limit(machine.disk,
                           sim_disk_used_bytes(machine.disk) + space);
        status = merge(&machine);
        assert_true(status == WAL_OK || status == WAL_ENOSPACE);
        sim_disk_set_limit(machine.disk, 0);
        complete(&machine);
        close_to(&machine);
        sim_disk_destroy(machine.disk);
    }
    kit_close(machine.from);
}

/* Fails the Nth call for each N; `sticky`: and every one after it, and then the
 * power is cut. */
static void fail_calls(bool sticky)
{
    struct machine machine;
    bool struck = true;

    begin(&machine);
    for (uint64_t after = 0; struck; after += STEP) {
        const struct sim_fault fault = {.call = SIM_ANY,
                                        .after = after,
                                        .sticky = sticky,
                                        .sys_errno = EIO};

        make_disk(&machine, after + 1);
        sim_process_add_fault(machine.process, &fault);
        (void)!merge(&machine);
        struck = sim_process_counts(machine.process)->faults > 0;
        if (sticky) {
            const struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};

            close_to(&machine);
            sim_disk_power_loss(machine.disk, &loss, after + 1);
            open_to(&machine);
        }
        sim_process_clear_faults(machine.process);
        complete(&machine);
        close_to(&machine);
        sim_disk_destroy(machine.disk);
    }
    kit_close(machine.from);
}

static void test_transfer_faults__nth_call_fails(void **state)
{
    (void)state;
    fail_calls(false);
}

static void test_transfer_faults__power_cut_after_the_nth_call(void **state)
{
    (void)state;
    fail_calls(true);
}

static void test_transfer_faults__nth_allocation_fails(void **state)
{
    struct machine machine;
    bool failed = true;

    (void)state;
    begin(&machine);
    for (uint64_t nth = 1; failed; nth += STEP) {
        enum wal_status status;

        make_disk(&machine, nth);
        faulty_heap_fail(&machine.heap, nth, false);
        status = merge(&machine);
        failed = machine.heap.failures > 0;
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
        faulty_heap_fail(&machine.heap, 0, false);
        complete(&machine);
        close_to(&machine);
        sim_disk_destroy(machine.disk);
        assert_int_equal(machine.heap.live, 0);
    }
    kit_close(machine.from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_transfer_faults__full_disk),
        KIT_TEST(test_transfer_faults__nth_call_fails),
        KIT_TEST(test_transfer_faults__power_cut_after_the_nth_call),
        KIT_TEST(test_transfer_faults__nth_allocation_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
