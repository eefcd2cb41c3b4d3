/*
 * differential.c - a store's life, and how answers are compared
 * (differential.h).
 */
#include "tests/sim/differential/differential.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/test.h"

#define ROOT "/store"

/* ----------------------------------------------------------- comparing --- */

void differential_fail(const struct differential *run, const char *format, ...)
{
    va_list list;
    char text[1024];

    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (run->fails != NULL) {
        run->fails(run, text);
    }
    print_error("seed %" PRIu64 ", step %" PRIu64 ", %s: %s\n", run->seed,
                run->step, run->operation, text);
    print_error("  the engine said last: %s\n", run->error.text);
    fail();
    abort();
}

/* Whether `actual` is promised to contain the present value. */
static bool reports_actual(enum wal_status status)
{
    return status == WAL_ECONFLICT || status == WAL_ESCHEMA ||
           status == WAL_EEXISTS;
}

bool differential_compare_status(struct differential *run,
                                 enum wal_status engine,
                                 enum wal_status reference)
{
    if (engine != reference) {
        differential_fail(run, "the engine answers %d (%s), not %d (%s)",
                          engine, wal_status_text(engine), reference,
                          wal_status_text(reference));
    }
    run->counts->statuses[WAL_END - (int)engine]++;
    if (reports_actual(engine) &&
        strcmp(run->error.actual, run->expected.actual) != 0) {
        differential_fail(run, "status %d: actual is \"%s\", not \"%s\"",
                          engine, run->error.actual, run->expected.actual);
    }
    if (engine == WAL_ECONFLICT &&
        run->error.expectation != run->expected.expectation) {
        differential_fail(run, "the expectation is %u, not %u",
                          run->error.expectation, run->expected.expectation);
    }
    return engine == WAL_OK;
}

/* --------------------------------------------------------------- a life --- */

static int64_t now_ms(const struct differential *run)
{
    struct timespec now;

    if (run->is_memory) {
        (void)clock_gettime(CLOCK_REALTIME, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    }
    return run->io->now_ms(run->io->ctx);
}

void differential_begin(struct differential *run, const char *operation)
{
    run->operation = operation;
    run->error = (struct wal_error){.struct_size = sizeof(run->error)};
    run->expected = run->error;
    if (run->io != NULL || run->is_memory) {
        run->earliest_ms = now_ms(run);
    }
}

void differential_enter_reference(struct differential *run)
{
    reference_set_clock(run->ref, run->earliest_ms, now_ms(run));
}

void differential_end(struct differential *run)
{
    differential_free_texts(run);
    if (run->disk != NULL) {
        sim_disk_advance(run->disk,
                         (uint64_t)differential_random(run, 3000000));
    }
}

void differential_open(struct differential *run, uint32_t flags)
{
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .flags = flags | run->open_flags,
                                       .group_align = run->group_align,
                                       .schema_version = run->schema_version};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    enum wal_status status;

    if (run->process == NULL && run->disk != NULL) {
        run->process = sim_process_create(run->disk);
        run->io = sim_process_io(run->process);
        run->root = ROOT;
        arena_heap_init(&run->arena);
    }
    run->earliest_ms = now_ms(run);
    if (run->is_memory) {
        options.flags = WAL_OPEN_MEMORY;
        status = wal_open(NULL, &options, &run->store, &run->error);
    } else {
        status = wal__store_open(run->root, &options, &run->arena.heap, run->io,
                                 &run->store, &run->error);
    }
    if (status == WAL_OK) {
        status = wal_store_get_info(run->store, &info, &run->error);
    }
    if (status != WAL_OK) {
        differential_fail(run, "opening answers %d", status);
    }
    if (info.tail == WAL_TAIL_DAMAGED) {
        differential_fail(run, "a crash is taken for damage");
    }
    if (!run->is_unsettled &&
        !reference_truncate(run->ref, info.last_sequence)) {
        differential_fail(
            run,
            "record %" PRIu64 " is the last one; %" PRIu64 " of %" PRIu64
            " are durable, and operations stay whole",
            info.last_sequence, reference_durable_sequence(run->ref),
            reference_last_sequence(run->ref));
    }
    reference_set_schema(run->ref, run->schema_version);
}

static void close_sessions(struct differential *run)
{
    for (uint32_t i = 0; i < DIFFERENTIAL_SESSIONS; i++) {
        wal_session_close(run->handles[i]);
        run->handles[i] = NULL;
    }
}

void differential_close(struct differential *run)
{
    enum wal_status status;

    differential_close_readers(run, false);
    close_sessions(run);
    status = wal_close(run->store, &run->error);
    run->store = NULL;
    if (status != WAL_OK) {
        differential_fail(run, "closing answers %d", status);
    }
    if (arena_heap_count(&run->arena) != 0) {
        differential_fail(run, "closing leaves %zu blocks of memory",
                          arena_heap_count(&run->arena));
    }
}

void differential_kill(struct differential *run)
{
    differential_close_readers(run, true);
    sim_process_destroy(run->process);
    run->process = NULL;
    run->io = NULL;
    arena_heap_deinit(&run->arena);
    run->store = NULL;
    memset(run->handles, 0, sizeof(run->handles));
}

void differential_init(struct differential *run, uint64_t seed, bool is_memory,
                       struct differential_counts *counts)
{
    memset(run, 0, sizeof(*run));
    run->seed = seed;
    run->is_memory = is_memory;
    run->rng_state = seed * 2654435761u;
    run->counts = counts;
    run->disk = sim_disk_create(seed);
    run->ref = reference_create();
    if (differential_one_in(run, 4)) {
        run->group_align = differential_one_in(run, 2) ? 512 : 4096;
    }
    differential_begin(run, "create the store");
    differential_open(run, WAL_OPEN_CREATE);
    differential_end(run);
}

void differential_deinit(struct differential *run)
{
    differential_begin(run, "the end");
    differential_check_all(run);
    differential_close(run);
    if (!run->is_memory) {
        differential_open(run, 0);
        differential_check_all(run);
        differential_close(run);
    }
    run->counts->records += reference_last_sequence(run->ref);
    differential_free_texts(run);
    differential_kill(run);
    sim_disk_destroy(run->disk);
    reference_destroy(run->ref);
}

/* ------------------------------------------------------------- sessions --- */

void differential_set_handle(struct differential *run, uint32_t number,
                             struct wal_session *session)
{
    WAL__ASSERT(number < DIFFERENTIAL_SESSIONS);
    wal_session_close(run->handles[number]);
    run->handles[number] = session;
}

struct wal_session *differential_handle(struct differential *run,
                                        uint32_t number)
{
    struct reference_info info;
    enum wal_status status;

    WAL__ASSERT(number < DIFFERENTIAL_SESSIONS);
    if (run->handles[number] != NULL) {
        return run->handles[number];
    }
    if (reference_session_status(run->ref, number, &info) != WAL_OK ||
        reference_is_trashed(run->ref, number)) {
        return NULL;
    }
    status = wal_session_open(run->store, info.info.id, &run->handles[number],
                              &run->error);
    if (status != WAL_OK) {
        differential_fail(run, "opening session %u answers %d", number, status);
    }
    return run->handles[number];
}

uint32_t differential_session(struct differential *run)
{
    uint32_t count = reference_session_count(run->ref);
    bool deleted = differential_one_in(run, 20);
    uint32_t start = differential_random(run, count + 1);

    /* Later ones more often than others: forks of forks come of it. */
    if (count > 8 && differential_one_in(run, 3)) {
        start = count - differential_random(run, 8);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = (start + i) % count + 1;

        if (reference_is_deleted(run->ref, number) ||
                    reference_is_trashed(run->ref, number)
                ? deleted && run->handles[number] != NULL
                : !deleted || i >= count / 2) {
            return number;
        }
    }
    return 0;
}
