/*
 * test_loop_fault.c - failing the Nth call to the system, for every N: once and from then on; EIO,
 * ENOSPC, a write that stops short, a sync that marks pages clean. Each step of the script is run
 * from a copy of the disk, opening included.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session/store.h"
#include "tests/lib/test.h"
#include "tests/sim/workload/workload.h"

static const struct sim_fault ways[] = {
    {.call = SIM_ANY, .sys_errno = EIO},
    {.call = SIM_ANY, .sys_errno = EIO, .sticky = true},
    {.call = SIM_ANY, .sys_errno = ENOSPC},
    {.call = SIM_ANY, .sys_errno = ENOSPC, .sticky = true},
    {.call = SIM_PWRITEV, .sys_errno = 0, .put = 100},
    {.call = SIM_PWRITEV, .sys_errno = EIO, .put = 100},
    {.call = SIM_PWRITEV, .sys_errno = ENOSPC, .put = 5000, .sticky = true},
    {.call = SIM_PWRITEV, .sys_errno = EIO, .put = 1u << 30},
    {.call = SIM_SYNC, .sys_errno = EIO},
    {.call = SIM_SYNC, .sys_errno = EIO, .partial = true},
    {.call = SIM_SYNC_DIRECTORY, .sys_errno = EIO},
    {.call = SIM_ALLOCATE, .sys_errno = ENOSPC},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* After the step the same process continues, all continue, or power is lost. */
static void continue_workload(struct workload *copy, uint64_t seed)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY, .garbage = seed % 2 == 0};

    for (uint32_t i = 0; i < LEDGER_ACTORS; i++) {
        (void)workload_check(copy, i);
    }
    if (seed % 3 == 0 && !copy->names_unsynced) {
        workload_crash(copy, &loss, seed);
        (void)workload_recover(copy, LEDGER_POWER_LOSS, WORKLOAD_KILL);
    } else {
        workload_run(copy, copy->step + (uint32_t)(seed % 3) * 2);
    }
    workload_check_after_fault(copy, seed);
}

/* Runs the next step of a copy with the nth such call failing; false when there were fewer. */
static bool fail_nth(const struct workload *base, uint32_t way, uint64_t nth)
{
    struct workload *copy = workload_clone(base);
    struct workload_actor *actor = workload_start(copy, workload_next_actor(copy));
    struct sim_fault fault = ways[way];
    bool struck;

    ledger_set_context("seed %llu, step %u, way %u, call %llu",
                       (unsigned long long)base->options.seed, base->step, way,
                       (unsigned long long)nth);
    fault.after = nth;
    sim_process_add_fault(actor->process, &fault);
    if (copy->options.actors > 1) {
        (void)workload_open(copy, 0);
        (void)workload_open(copy, 1);
    }
    workload_step(copy);
    struck = sim_process_counts(actor->process)->faults > 0;
    sim_process_clear_faults(actor->process);
    if (struck) {
        continue_workload(copy, nth + way + base->step);
    }
    workload_destroy(copy);
    return struck;
}

static void run(const struct workload_options *options, uint32_t steps, uint32_t every)
{
    struct workload *base = workload_create(options);
    uint64_t runs = 0;

    for (uint32_t i = 0; i < steps; i++) {
        for (uint32_t way = 0; way < WAYS; way++) {
            uint32_t stride = ways[way].call == SIM_ANY ? every : (every + 1) / 2;
            uint64_t nth = (i + way) % stride;

            while (fail_nth(base, way, nth)) {
                nth += stride;
                runs++;
            }
        }
        ledger_set_context("seed %llu, step %u", (unsigned long long)options->seed, base->step);
        workload_step(base);
    }
    assert_true(runs > 0);
    print_message("%llu failures\n", (unsigned long long)runs);
    workload_destroy(base);
}

TEST(loop_fault__every_call)
{
    run(&(struct workload_options){.seed = 21, .actors = 1, .large_every = 4},
        workload_is_long() ? 150 : 24, workload_sample(9));
}

TEST(loop_fault__every_call_of_two_processes)
{
    run(&(struct workload_options){.seed = 22, .actors = 2, .large_every = 4},
        workload_is_long() ? 150 : 24, workload_sample(9));
}

TEST(loop_fault__every_call_reading_by_pread)
{
    run(
        &(struct workload_options){
            .seed = 23, .actors = 1, .large_every = 4, .open_flags = WAL_OPEN_PREAD},
        workload_is_long() ? 80 : 12, workload_sample(7));
}

/* With content, steps and checks are expensive, and more so with every step before them: several
 * short scripts try more calls than a long one. */
TEST(loop_fault__every_call_with_content)
{
    const uint32_t scripts = workload_is_long() ? 4 : 2;

    for (uint32_t script = 1; script <= scripts; script++) {
        run(
            &(struct workload_options){
                .seed = 23 + script, .actors = 2 - script % 2, .large_every = 6, .blobs_every = 1},
            workload_is_long() ? 20 : 10, workload_sample(9));
    }
}

/* --- loop memory --------------------------------------------------------- */

/*
 * Failing the Nth allocation, for every N: once, and from then on. Each step of the script is run
 * from a copy of the disk, opening included, so that N stays small. A refusal must leave everything
 * as it was, in memory and in the log alike.
 */

/* What the handle reads is what the next opening will find: nothing was refused, or taken, in
 * memory alone. */
static void compare_with_log(struct workload *workload, uint32_t number)
{
    struct ledger_view *seen;
    struct ledger_view *found;
    struct workload *copy;

    if (workload->actors[number].store == NULL) {
        return;
    }
    seen = malloc(sizeof(*seen));
    found = malloc(sizeof(*found));
    copy = workload_clone(workload);
    assert_non_null(seen);
    assert_non_null(found);
    ledger_check(workload->ledger, workload->actors[number].store, LEDGER_NO_LOSS, seen);
    if (workload_open(copy, 0) != WAL_OK) {
        ledger_fail("the log cannot be opened next to its writer");
    }
    ledger_check(workload->ledger, copy->actors[0].store, LEDGER_NO_LOSS, found);
    if (seen->digest != found->digest) {
        ledger_fail("the process and the log differ");
    }
    workload_destroy(copy);
    free(seen);
    free(found);
}

/* Runs the next step of a copy with the nth allocation failing; false when there were fewer. */
static bool fail_allocation(const struct workload *base, uint64_t nth, bool sticky)
{
    struct workload *copy = workload_clone(base);
    uint32_t number = workload_next_actor(copy);
    struct workload_actor *actor = workload_start(copy, number);
    bool struck;

    ledger_set_context("seed %llu, step %u, allocation %llu%s",
                       (unsigned long long)base->options.seed, base->step, (unsigned long long)nth,
                       sticky ? " and all after" : "");
    faulty_heap_fail(&actor->heap, nth, sticky);
    workload_step(copy);
    struck = actor->heap.failures > 0;
    faulty_heap_fail(&actor->heap, 0, false);
    if (struck && nth % 2 == 0) {
        compare_with_log(copy, number);
    }
    if (struck) {
        workload_run(copy, copy->step + 2);
        compare_with_log(copy, number);
    }
    if (struck) {
        workload_check_after_fault(copy, nth);
    }
    workload_destroy(copy);
    return struck;
}

static void run_starved(const struct workload_options *options, uint32_t steps)
{
    struct workload *base = workload_create(options);
    uint64_t runs = 0;

    for (uint32_t i = 0; i < steps; i++) {
        for (uint32_t sticky = 0; sticky < 2; sticky++) {
            /* The sample: each allocation fails in one of the two ways. */
            uint64_t stride = workload_sample(2);
            uint64_t nth = 1 + (i + sticky) % stride;

            while (fail_allocation(base, nth, sticky != 0)) {
                nth += stride;
                runs++;
            }
        }
        ledger_set_context("seed %llu, step %u", (unsigned long long)options->seed, base->step);
        workload_step(base);
    }
    assert_true(runs > 0);
    print_message("%llu failures\n", (unsigned long long)runs);
    workload_destroy(base);
}

TEST(loop_memory__every_allocation)
{
    run_starved(&(struct workload_options){.seed = 11, .actors = 1, .large_every = 4},
                workload_is_long() ? 120 : 24);
}

TEST(loop_memory__two_processes)
{
    run_starved(&(struct workload_options){.seed = 12, .actors = 2, .large_every = 4},
                workload_is_long() ? 120 : 24);
}

TEST(loop_memory__reading_by_pread)
{
    run_starved(
        &(struct workload_options){
            .seed = 13, .actors = 1, .large_every = 4, .open_flags = WAL_OPEN_PREAD},
        workload_is_long() ? 60 : 16);
}

TEST(loop_memory__with_content)
{
    run_starved(
        &(struct workload_options){.seed = 14, .actors = 2, .large_every = 6, .blobs_every = 1},
        workload_is_long() ? 60 : 8);
}

/* --- loop sync ----------------------------------------------------------- */

/*
 * Accounting for syncs: what a call reports as durable is durable, every byte of it and every name
 * on its path; and no group costs more than one sync, rotations, marks and the directory of indexes
 * apart.
 */

enum { WRITES_MAX = 4096, PATH_SIZE = 64 };

struct write {
    char path[PATH_SIZE];
    uint64_t offset;
    uint64_t size;
};

/* Written to segments and not yet known to be durable. */
struct books {
    struct workload *workload;
    struct write writes[WRITES_MAX];
    uint32_t write_count;
    uint64_t syncs; /* of segments */
    uint64_t checked;
};

static void on_call(void *arg, const struct sim_event *event)
{
    struct books *books = arg;

    if (event->path == NULL || event->sys_errno != 0) {
        return;
    }

    size_t size = strlen(event->path);

    if (size < 4 || strcmp(event->path + size - 4, ".seg") != 0) {
        return;
    }
    if (event->call == SIM_SYNC) {
        books->syncs++;
    }
    if (event->call == SIM_PWRITEV) {
        struct write *write = &books->writes[books->write_count];

        assert_true(books->write_count < WRITES_MAX && size < PATH_SIZE);
        memcpy(write->path, event->path, size + 1);
        write->offset = event->offset;
        write->size = event->done;
        books->write_count++;
    }
}

/* All that was written before a durable promise is durable. */
static void on_durable(void *arg)
{
    struct books *books = arg;

    for (uint32_t i = 0; i < books->write_count; i++) {
        const struct write *write = &books->writes[i];

        if (!sim_file_is_durable(books->workload->disk, write->path, write->offset, write->size)) {
            ledger_fail("step %u: %llu bytes at %llu of %s are promised and "
                        "not durable",
                        books->workload->step, (unsigned long long)write->size,
                        (unsigned long long)write->offset, write->path);
        }
        books->checked++;
    }
    books->write_count = 0;
}

static void books_init(struct books *books, const struct workload_options *options)
{
    memset(books, 0, sizeof(*books));
    books->workload = workload_create(options);
    books->workload->on_durable = on_durable;
    books->workload->on_durable_arg = books;
    sim_disk_on_call(books->workload->disk, on_call, books);
    ledger_set_context("seed %llu", (unsigned long long)options->seed);
}

TEST(loop_sync__every_promise_is_durable)
{
    static struct books books;

    for (uint64_t seed = 41; seed < 61; seed++) {
        books_init(&books, &(struct workload_options){.seed = seed,
                                                      .actors = 1 + seed % 2,
                                                      .large_every = seed % 3 == 0 ? 5 : 0,
                                                      .huge_every = seed % 7 == 0 ? 20 : 0});
        workload_run(books.workload, 200);
        assert_true(books.checked > 50);
        workload_destroy(books.workload);
    }
}

/* An append of one small entry; its cost in syncs of segments. */
static uint64_t cost_of(struct books *books, struct wal_session *session, uint32_t durability)
{
    struct wal_append_options options = {.struct_size = sizeof(options), .durability = durability};
    struct wal_entry entry = {.struct_size = sizeof(entry),
                              .type = ledger_slice("message"),
                              .payload = ledger_slice("{}")};
    struct wal_error error = {.struct_size = sizeof(error)};
    uint64_t before = books->syncs;

    if (wal_append(session, &entry, 1, &options, NULL, &error) != WAL_OK) {
        ledger_fail("an append fails: %s", error.text);
    }
    return books->syncs - before;
}

TEST(loop_sync__one_sync_for_a_group)
{
    static struct books books;
    struct wal_session *session = NULL;
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_store *store;

    books_init(&books, &(struct workload_options){.seed = 1, .actors = 1});
    assert_ok(workload_open(books.workload, 0));
    store = books.workload->actors[0].store;
    assert_ok(wal_session_create(store, NULL, &session, &error));
    for (int i = 0; i < 100; i++) {
        assert_int_equal(cost_of(&books, session, WAL_DURABLE), 1);
        assert_int_equal(cost_of(&books, session, WAL_WRITTEN), 0);
        assert_int_equal(cost_of(&books, session, WAL_QUEUED), 0);
    }
    books.syncs = 0;
    assert_ok(wal_sync(store, &error));
    assert_int_equal(books.syncs, 1);
    assert_ok(wal_sync(store, &error));
    assert_int_equal(books.syncs, 1);
    assert_ok(wal__store_commit_mark(store, &error));
    assert_int_equal(books.syncs, 2); /* its COMMIT; all before it was */
    assert_ok(wal__store_commit_mark(store, &error));
    assert_int_equal(books.syncs, 2);
    assert_ok(wal_store_get_info(store, &info, &error));
    assert_int_equal(info.acknowledged, 101); /* one is the session */
    wal_session_close(session);
    assert_ok(workload_close(books.workload, 0));
    assert_int_equal(books.syncs, 2);
    workload_destroy(books.workload);
}

TEST(loop_sync__batches_and_tickets_share_one)
{
    static struct books books;
    struct wal_append_options options = {.struct_size = sizeof(options), .durability = WAL_QUEUED};
    struct wal_entry entry = {.struct_size = sizeof(entry),
                              .type = ledger_slice("message"),
                              .payload = ledger_slice("{}")};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *session = NULL;

    books_init(&books, &(struct workload_options){.seed = 1, .actors = 1});
    assert_ok(workload_open(books.workload, 0));
    assert_ok(wal_session_create(books.workload->actors[0].store, NULL, &session, &error));
    for (int i = 0; i < 200; i++) {
        assert_ok(wal_append(session, &entry, 1, &options, NULL, &error));
    }
    assert_int_equal(cost_of(&books, session, WAL_DURABLE), 1);
    wal_session_close(session);
    workload_destroy(books.workload);
}
