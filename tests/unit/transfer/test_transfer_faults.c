/*
 * test_transfer_faults.c - merges into a store on the simulated disk while the disk is full, the
 * Nth call or the Nth allocation fails, or the power is cut after it: the next merge completes what
 * was begun. Merges while others write to what they make: whatever was acknowledged is there
 * afterwards (agentwal/transfer.h).
 */
#include <errno.h>
#include <time.h>

#include "agentwal/checkpoint.h"
#include "agentwal/transfer.h"
#include "engine/session/store.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/kit/describe_kit.h"
#include "tests/lib/kit/parts_kit.h"
#include "tests/sim/disk/sim.h"

enum {
    LARGE = 300 * 1024,
    STEP = 3,              /* of the calls that fail in turn */
    SIM_START = 1700000000 /* the clock of a new disk, at most */
};

static void put(struct wal_session *session, const char *key, const char *value)
{
    const struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = kit_text(key), .value = kit_text(value)};

    assert_ok(wal_doc_put(NULL, session, &doc, NULL, NULL));
}

/* The store "from": s, which is deleted, with the fork f, which has a large payload, and g; u,
 * which is deleted, with the fork m, which is deleted, with the fork v; t with documents. */
static void make_from(void)
{
    struct wal_store *store = kit_open("from", WAL_OPEN_CREATE);
    struct wal_session *s = kit_create(store, "s");
    struct wal_session *t = kit_create(store, "t");
    struct kit_content content = kit_content(3, LARGE, true);
    struct wal_entry entry = kit_entry("large", NULL, "");
    struct wal_session *f;
    struct wal_session *g;
    struct wal_session *u = kit_create(store, "u");
    struct wal_session *m;
    struct wal_session *v;

    kit_append_all(s, "a b c");
    put(s, "notes", "1");
    f = kit_fork(s, "b", "f");
    put(s, "notes", "2");
    g = kit_fork(s, "c", "g");
    kit_append_all(u, "a b");
    m = kit_fork(u, "b", "m");
    kit_append_all(m, "c");
    v = kit_fork(m, "c", "v");
    entry.flags = WAL_ENTRY_LINE;
    entry.payload = kit_slice(&content);
    assert_ok(wal_append(f, &entry, 1, NULL, NULL, NULL));
    kit_append_all(g, "x y");
    kit_append_all(t, "p q r");
    put(t, "notes", "3");
    put(t, "notes", "4");
    assert_ok(wal_session_redact(t, WAL_STR("q"), WAL_STR(""), NULL, NULL));
    assert_ok(wal_session_delete(s, NULL));
    assert_ok(wal_session_delete(m, NULL));
    assert_ok(wal_session_delete(u, NULL));
    kit_content_free(&content);
    wal_session_close(s);
    wal_session_close(t);
    wal_session_close(f);
    wal_session_close(u);
    wal_session_close(m);
    wal_session_close(v);
    wal_session_close(g);
    kit_close(store);
}

struct machine {
    struct sim_disk *disk;
    struct sim_process *process;
    struct faulty_heap heap;
    struct wal_store *from;
    struct wal_store *base; /* an older copy of it, from which `to` went on */
    struct wal_store *to;   /* on the disk */
};

static void open_to(struct machine *machine)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE};

    machine->process = sim_process_create(machine->disk);
    faulty_heap_init(&machine->heap, &wal__heap_libc);
    assert_done(wal__store_open("/to", &options, &machine->heap.heap,
                                sim_process_io(machine->process), &machine->to, kit_error()));
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

/* `from` and `to` go on with t and its documents. */
static void begin_parted(struct machine *machine)
{
    struct wal_session *t;

    make_from();
    assert_int_equal(system("rm -rf base && cp -r from base"), 0);
    *machine = (struct machine){.from = kit_open("from", 0), .base = kit_open("base", 0)};
    t = kit_session(machine->from, "t");
    kit_append_all(t, "x y");
    put(t, "notes", "5");
    put(t, "here", "1");
    wal_session_close(t);
}

static void end_machine(struct machine *machine)
{
    kit_close(machine->from);
    if (machine->base != NULL) {
        kit_close(machine->base);
    }
}

/* Gives `to` what the older copy has, and goes on with it. */
static void go_on(struct machine *machine)
{
    const struct wal_slice id = WAL_STR("t");
    const struct wal_transfer_options options = {
        .struct_size = sizeof(options), .sessions = &id, .session_count = 1};
    struct wal_session *t;

    assert_ok(wal_store_merge(machine->base, machine->to, &options, NULL, NULL));
    t = kit_session(machine->to, "t");
    kit_append_all(t, "z");
    put(t, "notes", "9");
    put(t, "there", "9");
    wal_session_close(t);
}

static void make_disk(struct machine *machine, uint64_t seed)
{
    machine->disk = sim_disk_create(seed);
    /* Times that are over a day ahead are not taken. */
    sim_disk_step_clock(machine->disk, ((int64_t)time(NULL) - SIM_START) * 1000);
    open_to(machine);
    if (machine->base != NULL) {
        go_on(machine);
    }
}

static int32_t keep_branch(void *ctx, const struct wal_transfer_report *report)
{
    snprintf(ctx, WAL_ID_SIZE, "%.*s", WAL_ARG(report->branch_id));
    return 0;
}

static enum wal_status merge_into(struct machine *machine, char branch[WAL_ID_SIZE])
{
    const struct wal_slice id = WAL_STR("t");
    struct wal_transfer_result result = WAL_INIT(wal_transfer_result);
    struct wal_transfer_options options = WAL_INIT(wal_transfer_options);
    struct wal_error error = KIT_ERROR;
    enum wal_status status;

    options.report = keep_branch;
    options.ctx = branch;
    if (machine->base != NULL) {
        options.flags = WAL_TRANSFER_KEEP_BOTH;
        options.sessions = &id;
        options.session_count = 1;
        options.branch_name = WAL_STR("host");
    }
    status = wal_store_merge(machine->from, machine->to, &options, &result, &error);
    return status == WAL_OK && result.refused > 0 ? WAL_ECONFLICT : status;
}

static enum wal_status merge(struct machine *machine)
{
    char branch[WAL_ID_SIZE];

    return merge_into(machine, branch);
}

static void assert_document(struct wal_session *session, const char *key, const char *value)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    enum wal_status status = wal_doc_get(NULL, session, kit_text(key), 0, &doc, NULL);

    assert_int_equal(status, value == NULL ? WAL_ENOTFOUND : WAL_OK);
    assert_true(value == NULL || kit_slice_is(doc.value, value));
}

static void assert_entry(struct wal_session *session, const char *id, bool is_there)
{
    struct wal_entry entry = WAL_INIT(wal_entry);

    assert_int_equal(wal_entry_get(session, kit_text(id), &entry, NULL),
                     is_there ? WAL_OK : WAL_ENOTFOUND);
}

static void check_branch(struct machine *machine, const char *id)
{
    struct wal_session *branch;
    struct wal_session *t = kit_session(machine->to, "t");

    assert_entry(t, "z", true);
    assert_entry(t, "x", false);
    assert_document(t, "notes", "9");
    wal_session_close(t);
    assert_string_equal(id, "t@host");
    branch = kit_session(machine->to, id);
    assert_entry(branch, "r", true);
    assert_entry(branch, "x", true);
    assert_entry(branch, "y", true);
    assert_entry(branch, "z", false);
    assert_document(branch, "notes", "5");
    assert_document(branch, "here", "1");
    assert_document(branch, "there", NULL);
    wal_session_close(branch);
}

/* The next merge, without faults, completes it. */
static void complete(struct machine *machine)
{
    char branch[WAL_ID_SIZE] = "";
    uint64_t before;

    assert_ok(merge_into(machine, branch));
    if (machine->base != NULL) {
        check_branch(machine, branch);
    } else {
        assert_same_stores(machine->from, machine->to);
    }
    before = kit_store_info(machine->to).last_sequence;
    assert_ok(merge(machine));
    assert_int_equal(kit_store_info(machine->to).last_sequence, before);
}

KIT_TEST(transfer_faults__full_disk)
{
    struct machine machine;
    enum wal_status status = WAL_ENOSPACE;

    begin(&machine);
    for (uint64_t space = 64 * 1024; status == WAL_ENOSPACE; space += 64 * 1024) {
        make_disk(&machine, 1);
        sim_disk_set_limit(machine.disk, sim_disk_used_bytes(machine.disk) + space);
        status = merge(&machine);
        assert_true(status == WAL_OK || status == WAL_ENOSPACE);
        sim_disk_set_limit(machine.disk, 0);
        complete(&machine);
        close_to(&machine);
        sim_disk_destroy(machine.disk);
    }
    end_machine(&machine);
}

/* Fails the Nth call for each N; `sticky`: and every one after it, and then the power is cut. */
static void fail_calls(void (*begin_with)(struct machine *machine), bool sticky)
{
    struct machine machine;
    bool struck = true;

    begin_with(&machine);
    for (uint64_t after = 0; struck; after += STEP) {
        const struct sim_fault fault = {
            .call = SIM_ANY, .after = after, .sticky = sticky, .sys_errno = EIO};

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
    end_machine(&machine);
}

KIT_TEST(transfer_faults__nth_call_fails)
{
    fail_calls(begin, false);
}

KIT_TEST(transfer_faults__power_cut_after_the_nth_call)
{
    fail_calls(begin, true);
}

static void fail_allocations(void (*begin_with)(struct machine *machine))
{
    struct machine machine;
    bool failed = true;

    begin_with(&machine);
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
    end_machine(&machine);
}

KIT_TEST(transfer_faults__nth_allocation_fails)
{
    fail_allocations(begin);
}

KIT_TEST(transfer_faults__nth_call_for_a_branch_fails)
{
    fail_calls(begin_parted, false);
}

KIT_TEST(transfer_faults__power_cut_in_a_branch)
{
    fail_calls(begin_parted, true);
}

KIT_TEST(transfer_faults__nth_allocation_for_a_branch_fails)
{
    fail_allocations(begin_parted);
}

/* What another handle does at a step of the merge. */
struct writer {
    struct wal_store *store;
    uint64_t at; /* number of the call of progress, from 1 */
    uint64_t calls;
    bool is_written;
};

static int32_t write_at_step(void *ctx, uint64_t done, uint64_t total)
{
    struct writer *writer = ctx;
    struct wal_entry entry = kit_entry("agent", NULL, "{}");
    struct wal_session *session = NULL;

    (void)done;
    (void)total;
    writer->calls++;
    if (writer->calls == writer->at &&
        wal_session_open(writer->store, WAL_STR("gone"), &session, NULL) == WAL_OK) {
        writer->is_written = wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK;
        wal_session_close(session);
    }
    return 0;
}

/* A session that is deleted, and its fork, which needs it. */
static struct wal_store *make_source(void)
{
    struct wal_store *store = kit_open("from", WAL_OPEN_CREATE);
    struct wal_session *gone = kit_create_filled(store, "gone", "a b c");
    struct wal_session *fork;

    fork = kit_fork(gone, "b", "fork");
    kit_append_all(fork, "d e f");
    assert_ok(wal_session_delete(gone, NULL));
    wal_session_close(fork);
    wal_session_close(gone);
    return store;
}

static void merge_while_written(struct wal_store *from, struct wal_store *to, struct writer *writer)
{
    struct wal_transfer_options options = WAL_INIT(wal_transfer_options);

    options.progress = write_at_step;
    options.ctx = writer;
    assert_done(wal_store_merge(from, to, &options, NULL, kit_error()));
}

KIT_TEST(merge__source_of_a_fork_that_others_write_to)
{
    struct wal_store *from = make_source();
    unsigned written = 0;

    for (uint64_t at = 1;; at++) {
        struct wal_store *to = kit_store();
        struct writer writer = {.store = kit_store(), .at = at};
        struct wal_session *session = NULL;
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        enum wal_status status;

        merge_while_written(from, to, &writer);
        session = kit_session(to, "fork");
        assert_branch(session, "a b d e f");
        wal_session_close(session);
        session = NULL;
        status = wal_session_open(to, kit_text("gone"), &session, NULL);
        assert_int_equal(status, writer.is_written ? WAL_OK : WAL_ENOTFOUND);
        if (writer.is_written) {
            assert_ok(wal_entry_get(session, kit_text("agent"), &entry, NULL));
            written++;
        }
        wal_session_close(session);
        kit_close(writer.store);
        kit_close(to);
        assert_int_equal(system("rm -rf store"), 0);
        if (writer.calls < at) {
            break;
        }
    }
    assert_true(written > 0);
}

/* --- the store that is read ----------------------------------------------- */

/* Appends to the session "s" of the store that is read, which has a to c with the head main at b,
 * and none in the session "empty". */
static int32_t append_at_step(void *ctx, uint64_t done, uint64_t total)
{
    struct writer *writer = ctx;

    (void)done;
    (void)total;
    writer->calls++;
    if (writer->calls == writer->at) {
        struct wal_session *session = kit_session(writer->store, "s");
        struct wal_session *empty = kit_session(writer->store, "empty");

        kit_append(session, "d", "b");
        kit_append(session, "e", "d");
        kit_move_head(session, "old", "a");
        kit_move_head(session, "new", "e");
        kit_move_head(session, "try", "d");
        kit_append(empty, "f", "");
        wal_session_close(empty);
        wal_session_close(session);
        writer->is_written = true;
    }
    return 0;
}

static struct wal_store *make_store_in_use(void)
{
    struct wal_store *store = kit_open("from", WAL_OPEN_CREATE);
    struct wal_session *empty = kit_create(store, "empty");
    struct wal_session *session = kit_create_filled(store, "s", "a b c");

    kit_move_head(session, "main", "b");
    kit_move_head(session, "try", "c");
    wal_session_close(session);
    wal_session_close(empty);
    return store;
}

static void assert_heads(struct wal_store *store, const char *id, const char *heads)
{
    struct wal_session *session = kit_session(store, id);

    assert_string_equal(kit_heads(session), heads);
    wal_session_close(session);
}

static void merge_all(struct wal_store *from, struct wal_store *to, struct writer *writer)
{
    struct wal_transfer_options options = WAL_INIT(wal_transfer_options);
    struct wal_transfer_result result = WAL_INIT(wal_transfer_result);

    options.progress = append_at_step;
    options.ctx = writer;
    assert_ok(wal_store_merge(from, to, &options, &result, kit_error()));
    assert_int_equal(result.refused, 0);
}

KIT_TEST(merge__of_a_store_that_others_write_to)
{
    unsigned written = 0;

    for (uint64_t at = 1;; at++) {
        struct wal_store *from = make_store_in_use();
        struct wal_store *to = kit_store();
        struct writer writer = {.store = kit_open("from", 0), .at = at};
        struct writer none = {.at = 0};

        merge_all(from, to, &writer);
        if (at == 1) {
            assert_heads(to, "s", "main=b new=b old=a try=b");
            assert_heads(to, "empty", "");
        }
        merge_all(from, to, &none);
        assert_heads(to, "s", writer.is_written ? "main=e new=e old=a try=d" : "main=b try=c");
        assert_heads(to, "empty", writer.is_written ? "main=f" : "");
        written += writer.is_written;
        kit_close(writer.store);
        kit_close(to);
        kit_close(from);
        assert_int_equal(system("rm -rf store from"), 0);
        if (!writer.is_written) {
            break;
        }
    }
    assert_true(written > 1);
}
