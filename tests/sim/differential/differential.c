/*
 * differential.c - a store's life, and how answers are compared (differential.h).
 */
#include "tests/sim/differential/differential.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agentwal/admin.h"
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
    print_error("seed %" PRIu64 ", step %" PRIu64 ", %s: %s\n", run->seed, run->step,
                run->operation, text);
    print_error("  the engine said last: %s\n", run->error.text);
    fail();
    abort();
}

/* Whether `actual` is promised to contain the present value. */
static bool reports_actual(enum wal_status status)
{
    return status == WAL_ECONFLICT || status == WAL_ESCHEMA || status == WAL_EEXISTS;
}

bool differential_compare_status(struct differential *run, enum wal_status engine,
                                 enum wal_status reference)
{
    if (engine != reference) {
        differential_fail(run, "the engine answers %d (%s), not %d (%s)", engine,
                          wal_status_text(engine), reference, wal_status_text(reference));
    }
    run->counts->statuses[WAL_END - (int)engine]++;
    if (reports_actual(engine) && strcmp(run->error.actual, run->expected.actual) != 0) {
        differential_fail(run, "status %d: actual is \"%s\", not \"%s\"", engine, run->error.actual,
                          run->expected.actual);
    }
    if (engine == WAL_ECONFLICT && run->error.expectation != run->expected.expectation) {
        differential_fail(run, "the expectation is %u, not %u", run->error.expectation,
                          run->expected.expectation);
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
        sim_disk_advance(run->disk, (uint64_t)differential_random(run, 3000000));
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
        status = wal__store_open(run->root, &options, &run->arena.heap, run->io, &run->store,
                                 &run->error);
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
    if (!run->is_unsettled && !reference_truncate(run->ref, info.last_sequence)) {
        differential_fail(run,
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

void differential_set_handle(struct differential *run, uint32_t number, struct wal_session *session)
{
    WAL__ASSERT(number < DIFFERENTIAL_SESSIONS);
    wal_session_close(run->handles[number]);
    run->handles[number] = session;
}

struct wal_session *differential_handle(struct differential *run, uint32_t number)
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
    status = wal_session_open(run->store, info.info.id, &run->handles[number], &run->error);
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

        if (reference_is_deleted(run->ref, number) || reference_is_trashed(run->ref, number)
                ? deleted && run->handles[number] != NULL
                : !deleted || i >= count / 2) {
            return number;
        }
    }
    return 0;
}

/* --- a batch that is given to both sides ---------------------------------- */

static const struct wal_slice nothing = {NULL, 0};

bool differential_request_init(struct differential *run, struct differential_request *given)
{
    return differential_request_begin(run, differential_session(run), given);
}

bool differential_request_begin(struct differential *run, uint32_t number,
                                struct differential_request *given)
{
    memset(given, 0, sizeof(*given));
    given->number = number;
    if (number == 0) {
        return false;
    }
    given->session = differential_handle(run, given->number);
    given->batch.struct_size = sizeof(given->batch);
    given->batch.entries = given->entries;
    given->batch.documents = given->docs;
    given->batch.heads = given->heads;
    given->options.struct_size = sizeof(given->options);
    given->options.durability = differential_one_in(run, 3) ? WAL_WRITTEN : WAL_DURABLE;
    return given->session != NULL;
}

void differential_fill_entries(struct differential *run, struct differential_request *given)
{
    uint32_t count = 1;

    if (differential_one_in(run, 3)) {
        count = 1 + differential_random(run, DIFFERENTIAL_BATCH);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct wal_entry *entry = &given->entries[i];

        differential_entry(run, given->number, entry);
        /* Under an entry of the same batch. */
        if (i > 0 && differential_one_in(run, 3)) {
            entry->stream = given->entries[0].stream;
            entry->parent_id = given->entries[i - 1].id;
            if (given->entries[i - 1].stream != entry->stream) {
                entry->parent_id = given->entries[0].id;
            }
            entry->flags &= ~(uint32_t)WAL_ENTRY_ROOT;
        }
    }
    given->batch.entry_count = count;
}

void differential_expect_tail(struct differential *run, struct differential_request *given)
{
    const struct wal_slice main = {NULL, 0};

    given->options.flags |= WAL_APPEND_EXPECT;
    given->options.expected_tail = nothing;
    (void)reference_head_get(run->ref, given->number, given->entries[0].stream, main,
                             &given->options.expected_tail);
}

enum wal_status differential_submit(struct differential *run, struct differential_request *given,
                                    struct wal_append_result *result)
{
    bool plain = given->batch.document_count == 0 && given->batch.head_count == 0 &&
                 given->batch.change == NULL;
    bool conditional =
        given->batch.change == NULL || (given->batch.change->fields & WAL_CHANGE_EXPECT) != 0;
    struct wal_ticket *ticket = NULL;
    enum wal_status status;

    if (plain && differential_one_in(run, 2)) {
        return wal_append(given->session, given->entries, given->batch.entry_count, &given->options,
                          result, &run->error);
    }
    if (!conditional || differential_one_in(run, 2)) {
        return wal_batch_commit(given->session, &given->batch, &given->options, result,
                                &run->error);
    }
    if (plain && differential_one_in(run, 2)) {
        status = wal_submit(given->session, given->entries, given->batch.entry_count,
                            &given->options, &ticket, &run->error);
    } else {
        status =
            wal_batch_submit(given->session, &given->batch, &given->options, &ticket, &run->error);
    }
    if (status == WAL_OK) {
        status = wal_ticket_wait(ticket, -1, result, &run->error);
        wal_ticket_destroy(ticket);
    }
    return status;
}

void differential_compare_result(struct differential *run, const struct wal_append_result *result,
                                 const struct wal_append_result *wanted)
{
    differential_check_number(run, "appended", result->appended, wanted->appended);
    differential_check_number(run, "duplicates", result->duplicates, wanted->duplicates);
    differential_check_number(run, "the result's sequence", result->sequence, wanted->sequence);
    differential_check_slice(run, "the last id", differential_slice(result->last_id),
                             differential_slice(wanted->last_id));
}

void differential_commit(struct differential *run, struct differential_request *given)
{
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_append_result wanted = result;
    enum wal_status status = differential_submit(run, given, &result);

    differential_enter_reference(run);
    if (status == WAL_OK && given->batch.entry_count > 0 &&
        given->entries[given->batch.entry_count - 1].id.size == 0) {
        given->entries[given->batch.entry_count - 1].id = differential_slice(result.last_id);
    }
    if (differential_compare_status(run, status,
                                    reference_batch(run->ref, given->number, &given->batch,
                                                    &given->options, &wanted, &run->expected))) {
        differential_compare_result(run, &result, &wanted);
    }
    differential_check_session(run, given->number);
}

/* --- crash ---------------------------------------------------------------- */

/*
 * Operations that end badly: the process crashes_in_submit at one of the calls of a commit, or the
 * power is lost after appends without a waiter for. What was under way is there as a whole or not
 * at all.
 */

enum {
    CALLS = 14,      /* among which the process crashes_in_submit, and a few more */
    SLACK_MS = 60000 /* that a commit takes, at most */
};

/* True: the process died before it answered. */
static bool crashes_in_submit(struct differential *run, struct differential_request *given)
{
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct sim_fault fault = {.call = SIM_ANY,
                              .effect =
                                  differential_one_in(run, 2) ? SIM_KILL_BEFORE : SIM_KILL_AFTER,
                              .after = differential_random(run, CALLS)};

    sim_process_add_fault(run->process, &fault);
    sim_process_on_death(run->process, sim_jump, &run->death);
    if (setjmp(run->death) != 0) {
        return true;
    }
    run->status = differential_submit(run, given, &result);
    sim_process_clear_faults(run->process);
    sim_process_on_death(run->process, NULL, NULL);
    return false;
}

void differential_crash_writing(struct differential *run)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY, .garbage = true};
    struct differential_request given;
    uint64_t before = reference_last_sequence(run->ref);
    uint64_t last;
    enum wal_status status;
    bool dead;

    if (run->is_memory || !differential_request_init(run, &given)) {
        return;
    }
    differential_fill_entries(run, &given);
    dead = crashes_in_submit(run, &given);
    reference_set_clock(run->ref, run->earliest_ms, run->earliest_ms + SLACK_MS);
    if (dead) {
        given.options.durability = WAL_WRITTEN; /* nothing was promised */
    }
    status =
        reference_batch(run->ref, given.number, &given.batch, &given.options, NULL, &run->expected);
    last = reference_last_sequence(run->ref);
    if (!dead) {
        (void)differential_compare_status(run, run->status, status);
        return;
    }
    differential_kill(run);
    if (differential_one_in(run, 3)) {
        sim_disk_power_loss(run->disk, &loss, run->rng_state);
        run->has_failed = false;
    }
    differential_open(run, 0);
    reference_sync(run->ref);
    run->counts->deaths++;
    run->counts->survived +=
        status == WAL_OK && reference_last_sequence(run->ref) == last && last > before;
    differential_check_all(run);
}

void differential_lose_unsynced(struct differential *run)
{
    uint32_t count = 3 + differential_random(run, 20);
    struct differential_request given;

    if (run->is_memory) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (differential_request_init(run, &given)) {
            differential_fill_entries(run, &given);
            given.options.durability = WAL_WRITTEN;
            differential_commit(run, &given);
        }
    }
    differential_lose_power(run);
}

/* --- compaction ----------------------------------------------------------- */

/*
 * Operations that rewrite the log: what is live stays as it was, for the handle that compacts, for
 * a process that had the store open before, and after opening again, with what is derived removed.
 */

enum {
    COMPACTION_CALLS = 400 /* that a compaction makes, and a few more */
};

struct wal_store_compact_options differential_compaction(struct differential *run)
{
    struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                .flags = differential_one_in(run, 2)
                                                             ? WAL_STORE_COMPACT_ERASE |
                                                                   WAL_STORE_COMPACT_EMPTY_TRASH
                                                             : 0u,
                                                .dead_percent = 1 + differential_random(run, 40)};

    run->has_erased |= options.flags != 0;
    if (options.flags == 0 && differential_one_in(run, 3)) {
        options.flags = WAL_STORE_COMPACT_KEEP_DELTAS;
    }

    if (differential_one_in(run, 4)) {
        options.max_bytes = (uint64_t)(1 + differential_random(run, 8)) << 19;
    }
    return options;
}

/* Erasing empties the trash. */
static enum wal_status compact(struct differential *run,
                               const struct wal_store_compact_options *options,
                               struct wal_store_compact_result *result)
{
    enum wal_status status;

    *result = (struct wal_store_compact_result){.struct_size = sizeof(*result)};
    run->compactions += !run->is_shared;
    status = wal_store_compact(run->store, options, result, &run->error);
    if (status == WAL_OK && (options->flags & WAL_STORE_COMPACT_EMPTY_TRASH) != 0) {
        differential_enter_reference(run);
        reference_empty_trash(run->ref);
    }
    return status;
}

/* The session's handle, when it can be read; NULL: it is in the trash. */
static struct wal_session *find_reader(struct differential *run, uint32_t number)
{
    if (reference_is_deleted(run->ref, number) ||
        (reference_is_trashed(run->ref, number) && run->handles[number] == NULL)) {
        return NULL;
    }
    return differential_handle(run, number);
}

void differential_learn_dropped(struct differential *run, bool is_doubtful)
{
    uint64_t sequence = 0;
    struct wal_slice id;
    uint32_t number = 0;

    while (reference_next_droppable(run->ref, &sequence, &id, &number)) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_session *session = find_reader(run, number);
        enum wal_status status =
            session == NULL ? WAL_END : wal_entry_get(session, id, &entry, NULL);

        /* Its id may be that of a later one. */
        if (status == WAL_END || is_doubtful) {
            reference_doubt(run->ref, sequence);
        }
        if (status == WAL_ENOTFOUND || (status == WAL_OK && entry.sequence != sequence)) {
            reference_drop(run->ref, sequence);
            run->counts->dropped_deltas++;
        }
    }
}

static bool has_trash(const struct differential *run)
{
    uint32_t count = reference_session_count(run->ref);
    bool found = false;

    for (uint32_t number = 1; number <= count; number++) {
        found |= reference_is_trashed(run->ref, number);
    }
    return found;
}

/* Another process opens the store, and has its indexes loaded. */
static struct differential *open_other(struct differential *run)
{
    struct differential *other = calloc(1, sizeof(*other));

    WAL__ASSERT(other != NULL);
    other->seed = run->seed;
    other->step = run->step;
    other->rng_state = run->rng_state;
    other->counts = run->counts;
    other->disk = run->disk;
    other->is_shared = true;
    other->ref = run->ref;
    other->schema_version = run->schema_version;
    other->group_align = run->group_align;
    other->open_flags = differential_one_in(run, 2) ? WAL_OPEN_PREAD : 0;
    differential_begin(other, "open while compacting");
    differential_open(other, 0);
    other->operation = "another process";
    if (differential_one_in(run, 2)) {
        differential_check_all(other);
    }
    differential_step_iter(other);
    differential_step_docs(other);
    return other;
}

static void close_other(struct differential *run, struct differential *other)
{
    bool kill = differential_one_in(run, 3);

    if (!kill) {
        differential_close(other);
    }
    differential_kill(other);
    differential_free_texts(other);
    free(other);
}

/* A reader of a session that was deleted gives what compaction left, or says that it was deleted
 * (SPEC.md 5.5). */
void differential_close_deleted(struct differential *run)
{
    struct differential_readers *held = &run->readers;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    enum wal_status status = WAL_OK;

    if (held->cursor != NULL && held->opened_at != run->compactions &&
        reference_is_deleted(run->ref, held->number)) {
        while (status == WAL_OK) {
            status = wal_entry_cursor_next(held->cursor, &entry, &run->error);
        }
        if (status != WAL_END && status != WAL_ENOTFOUND) {
            differential_fail(run, "a reader of a deleted session: %d", status);
        }
        differential_close_iter(run);
    }
    status = WAL_OK;
    if (held->docs != NULL && held->docs_opened_at != run->compactions &&
        held->doc_number != REFERENCE_STORE && reference_is_deleted(run->ref, held->doc_number)) {
        while (status == WAL_OK) {
            status = wal_doc_cursor_next(held->docs, &doc, &run->error);
        }
        if (status != WAL_END && status != WAL_ENOTFOUND) {
            differential_fail(run, "documents of a deleted session: %d", status);
        }
        differential_close_docs(run);
    }
}

static void step_readers(struct differential *run)
{
    differential_step_iter(run);
    differential_step_docs(run);
}

/* Only erasing up to a limit of bytes may leave segments (struct wal_store_compact_result). */
bool differential_may_refuse(const struct wal_store_compact_options *options)
{
    return (options->flags & WAL_STORE_COMPACT_ERASE) != 0 && options->max_bytes != 0;
}

static void check_result(struct differential *run, const struct wal_store_compact_options *options,
                         const struct wal_store_compact_result *result)
{
    bool has_failed = run->has_failed && (options->flags & WAL_STORE_COMPACT_ERASE) != 0;

    if (result->refused != 0 && !differential_may_refuse(options) && !has_failed) {
        differential_fail(run, "a segment is refused: %s", result->refusal.text);
    }
    if (result->rewritten > result->segments) {
        differential_fail(run, "%" PRIu64 " of %" PRIu64 " segments", result->rewritten,
                          result->segments);
    }
    run->counts->rewritten += result->rewritten;
    run->counts->dropped += result->dropped_records;
    run->counts->erased += result->erased_records;
}

void differential_compact_once(struct differential *run,
                               const struct wal_store_compact_options *options)
{
    struct wal_store_compact_result result;

    (void)differential_compare_status(run, compact(run, options, &result), WAL_OK);
    check_result(run, options, &result);
    differential_learn_dropped(run, false);
}

void differential_compact_store(struct differential *run)
{
    struct wal_store_compact_options options;
    struct differential *other = NULL;

    if (run->is_memory) {
        return;
    }
    if (differential_one_in(run, 2)) {
        other = open_other(run);
    }
    options = differential_compaction(run);
    differential_compact_once(run, &options);
    if (other != NULL) {
        other->compactions++;
        differential_check_all(other);
        step_readers(other);
        if (differential_one_in(run, 2)) {
            options = differential_compaction(other);
            differential_compact_once(other, &options);
            run->compactions++;
            differential_check_all(other);
        }
        close_other(run, other);
    }
    step_readers(run);
    differential_check_all(run);
}

/* ----------------------------------------------------------------- ends --- */

static enum wal_status remove_one(void *arg, const char *name)
{
    struct differential *run = arg;
    const struct wal__io *io = sim_process_io(run->process);
    char path[256];
    int err = 0;

    (void)snprintf(path, sizeof(path), "/store/index/%s", name);
    if (run->keeps_none || differential_one_in(run, 2)) {
        (void)!io->unlink(io->ctx, path, &err);
    }
    return WAL_OK;
}

/* Removes what is derived: all of it, or some. */
void differential_lose_indexes(struct differential *run)
{
    const struct wal__io *io;
    int err = 0;

    if (run->is_memory) {
        return;
    }
    differential_close(run);
    reference_sync(run->ref);
    run->keeps_none = differential_one_in(run, 2);
    io = sim_process_io(run->process);
    (void)!io->list(io->ctx, "/store/index", remove_one, run, &err);
    differential_open(run, 0);
    reference_sync(run->ref);
    differential_check_all(run);
}

/* A compaction that failed may have dropped any delta that it may drop. */
static void doubt_all(struct differential *run)
{
    uint64_t sequence = 0;
    struct wal_slice id;
    uint32_t number;

    while (reference_next_droppable(run->ref, &sequence, &id, &number)) {
        reference_doubt(run->ref, sequence);
    }
}

/* The process dies at one of the calls, or a call fails. */
static struct sim_fault choose_fault(struct differential *run)
{
    static const enum sim_effect effects[] = {SIM_KILL_BEFORE, SIM_KILL_AFTER, SIM_FAIL, SIM_FAIL};
    static const enum sim_call calls[] = {
        SIM_ANY, SIM_ANY, SIM_ANY, SIM_PWRITEV, SIM_RENAME, SIM_UNLINK, SIM_SYNC_DIRECTORY,
        SIM_SYNC};
    struct sim_fault fault = {.call = calls[differential_random(run, 8)],
                              .effect = effects[differential_random(run, 4)],
                              .sys_errno = differential_one_in(run, 2) ? EIO : ENOSPC,
                              .sticky = differential_one_in(run, 2)};

    fault.after = differential_random(run, fault.call == SIM_ANY ? COMPACTION_CALLS : 8);
    return fault;
}

/* True: the process died before it answered. */
static bool fails_to_compact(struct differential *run)
{
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    struct wal_store_compact_options options;
    struct sim_fault fault = choose_fault(run);

    sim_process_add_fault(run->process, &fault);
    sim_process_on_death(run->process, sim_jump, &run->death);
    if (setjmp(run->death) != 0) {
        return true;
    }
    options = differential_compaction(run);
    if (has_trash(run)) {
        /* It is not known how much of it a failed compaction deletes. */
        options.flags &= ~(uint32_t)(WAL_STORE_COMPACT_ERASE | WAL_STORE_COMPACT_EMPTY_TRASH);
    }
    run->status = wal_store_compact(run->store, &options, &result, &run->error);
    sim_process_clear_faults(run->process);
    sim_process_on_death(run->process, NULL, NULL);
    run->counts->failed += run->status != WAL_OK;
    return false;
}

/* Afterwards everything is as before, in every process, but for what the machine remembers of a
 * failed sync. */
void differential_fail_compaction(struct differential *run)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY,
                                  .garbage = differential_one_in(run, 2)};
    struct differential *other = NULL;
    uint64_t last = reference_last_sequence(run->ref);
    bool loses_names;
    bool dead;

    if (run->is_memory ||
        !differential_compare_status(run, wal_sync(run->store, &run->error), WAL_OK)) {
        return;
    }
    reference_sync(run->ref);
    if (differential_one_in(run, 3)) {
        other = open_other(run);
    }
    dead = fails_to_compact(run);
    /* A name that is lost with the power brings back what was dropped. */
    loses_names = sim_disk_has_lost_names(run->disk);
    if (other != NULL) {
        if (!loses_names) {
            other->compactions++;
            doubt_all(other);
            differential_check_all(other);
        }
        close_other(run, other);
    }
    run->counts->deaths_compacting += dead;
    differential_kill(run);
    run->has_failed = !loses_names && !differential_one_in(run, 2);
    if (!run->has_failed) {
        sim_disk_power_loss(run->disk, &loss, run->rng_state);
    }
    differential_open(run, 0);
    differential_check_number(run, "the last sequence after a compaction",
                              reference_last_sequence(run->ref), last);
    reference_sync(run->ref);
    differential_learn_dropped(run, false);
    differential_check_all(run);
}
