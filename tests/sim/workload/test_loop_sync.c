/*
 * test_loop_sync.c - accounting for syncs: what a call reports as durable is
 * durable, every byte of it and every name on its path; and no group
 * costs more than one sync, rotations, marks and the directory of indexes
 * apart.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session/store.h"
#include "tests/lib/test.h"
#include "tests/sim/workload/workload.h"

enum {
    WRITES_MAX = 4096,
    PATH_SIZE = 64
};

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

        if (!sim_file_is_durable(books->workload->disk, write->path,
                                 write->offset, write->size)) {
            ledger_fail("step %u: %llu bytes at %llu of %s are promised and "
                        "not durable",
                        books->workload->step, (unsigned long long)write->size,
                        (unsigned long long)write->offset, write->path);
        }
        books->checked++;
    }
    books->write_count = 0;
}

static void books_init(struct books *books,
                       const struct workload_options *options)
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
        books_init(&books, &(struct workload_options){
                               .seed = seed,
                               .actors = 1 + seed % 2,
                               .large_every = seed % 3 == 0 ? 5 : 0,
                               .huge_every = seed % 7 == 0 ? 20 : 0});
        workload_run(books.workload, 200);
        assert_true(books.checked > 50);
        workload_destroy(books.workload);
    }
}

/* An append of one small entry; its cost in syncs of segments. */
static uint64_t cost_of(struct books *books, struct wal_session *session,
                        uint32_t durability)
{
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = durability};
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
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = WAL_QUEUED};
    struct wal_entry entry = {.struct_size = sizeof(entry),
                              .type = ledger_slice("message"),
                              .payload = ledger_slice("{}")};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *session = NULL;

    books_init(&books, &(struct workload_options){.seed = 1, .actors = 1});
    assert_ok(workload_open(books.workload, 0));
    assert_ok(wal_session_create(books.workload->actors[0].store, NULL,
                                 &session, &error));
    for (int i = 0; i < 200; i++) {
        assert_ok(wal_append(session, &entry, 1, &options, NULL, &error));
    }
    assert_int_equal(cost_of(&books, session, WAL_DURABLE), 1);
    wal_session_close(session);
    workload_destroy(books.workload);
}
