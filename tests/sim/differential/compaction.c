/*
 * compaction.c - operations that rewrite the log (differential.h): what is live
 * stays as it was, for the handle that compacts, for a process that had the
 * store open before, and after opening again, with what is derived removed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "format/bytes/assert.h"
#include "tests/sim/differential/differential.h"

enum {
    CALLS = 400 /* that a compaction makes, and a few more */
};

struct wal_store_compact_options
differential_compaction(struct differential *run)
{
    struct wal_store_compact_options options = {
        .struct_size = sizeof(options),
        .flags = differential_one_in(run, 2)
                     ? WAL_STORE_COMPACT_ERASE | WAL_STORE_COMPACT_EMPTY_TRASH
                     : 0u,
        .dead_percent = 1 + differential_random(run, 40)};

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
    if (status == WAL_OK &&
        (options->flags & WAL_STORE_COMPACT_EMPTY_TRASH) != 0) {
        differential_enter_reference(run);
        reference_empty_trash(run->ref);
    }
    return status;
}

/* The session's handle, when it can be read; NULL: it is in the trash. */
static struct wal_session *find_reader(struct differential *run,
                                       uint32_t number)
{
    if (reference_is_deleted(run->ref, number) ||
        (reference_is_trashed(run->ref, number) &&
         run->handles[number] == NULL)) {
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
        enum wal_status status = session == NULL
                                     ? WAL_END
                                     : wal_entry_get(session, id, &entry, NULL);

        /* Its id may be that of a later one. */
        if (status == WAL_END || is_doubtful) {
            reference_doubt(run->ref, sequence);
        }
        if (status == WAL_ENOTFOUND ||
            (status == WAL_OK && entry.sequence != sequence)) {
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

/* A reader of a session that was deleted gives what compaction left, or says
 * that it was deleted (SPEC.md 5.5). */
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
        held->doc_number != REFERENCE_STORE &&
        reference_is_deleted(run->ref, held->doc_number)) {
        while (status == WAL_OK) {
            status = wal_doc_cursor_next(held->docs, &doc, &run->error);
        }
        if (status != WAL_END && status != WAL_ENOTFOUND) {
            differential_fail(run, "documents of a deleted session: %d",
                              status);
        }
        differential_close_docs(run);
    }
}

static void step_readers(struct differential *run)
{
    differential_step_iter(run);
    differential_step_docs(run);
}

/* Only erasing up to a limit of bytes may leave segments (struct
 * wal_store_compact_result). */
bool differential_may_refuse(const struct wal_store_compact_options *options)
{
    return (options->flags & WAL_STORE_COMPACT_ERASE) != 0 &&
           options->max_bytes != 0;
}

static void check_result(struct differential *run,
                         const struct wal_store_compact_options *options,
                         const struct wal_store_compact_result *result)
{
    if (result->refused != 0 && !differential_may_refuse(options)) {
        differential_fail(run, "a segment is refused: %s",
                          result->refusal.text);
    }
    if (result->rewritten > result->segments) {
        differential_fail(run, "%" PRIu64 " of %" PRIu64 " segments",
                          result->rewritten, result->segments);
    }
    run->counts->rewritten += result->rewritten;
    run->counts->dropped += result->dropped_records;
    run->counts->erased += result->erased_records;
}

void differential_compact_once(struct differential *run,
                               const struct wal_store_compact_options *options)
{
    struct wal_store_compact_result result;

    (void)differential_compare_status(run, compact(run, options, &result),
                                      WAL_OK);
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

static void on_death(void *arg)
{
    struct differential *run = arg;

    longjmp(run->death, 1);
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
    static const enum sim_effect effects[] = {SIM_KILL_BEFORE, SIM_KILL_AFTER,
                                              SIM_FAIL, SIM_FAIL};
    static const enum sim_call calls[] = {SIM_ANY,
                                          SIM_ANY,
                                          SIM_ANY,
                                          SIM_PWRITEV,
                                          SIM_RENAME,
                                          SIM_UNLINK,
                                          SIM_SYNC_DIRECTORY,
                                          SIM_SYNC};
    struct sim_fault fault = {.call = calls[differential_random(run, 8)],
                              .effect = effects[differential_random(run, 4)],
                              .sys_errno =
                                  differential_one_in(run, 2) ? EIO : ENOSPC,
                              .sticky = differential_one_in(run, 2)};

    fault.after = differential_random(run, fault.call == SIM_ANY ? CALLS : 8);
    return fault;
}

/* True: the process died before it answered. */
static bool fails_to_compact(struct differential *run)
{
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    struct wal_store_compact_options options;
    struct sim_fault fault = choose_fault(run);

    sim_process_add_fault(run->process, &fault);
    sim_process_on_death(run->process, on_death, run);
    if (setjmp(run->death) != 0) {
        return true;
    }
    options = differential_compaction(run);
    if (has_trash(run)) {
        /* It is not known how much of it a failed compaction deletes. */
        options.flags &= ~(uint32_t)(WAL_STORE_COMPACT_ERASE |
                                     WAL_STORE_COMPACT_EMPTY_TRASH);
    }
    run->status = wal_store_compact(run->store, &options, &result, &run->error);
    sim_process_clear_faults(run->process);
    sim_process_on_death(run->process, NULL, NULL);
    run->counts->failed += run->status != WAL_OK;
    return false;
}

/* Afterwards everything is as before, in every process. */
void differential_fail_compaction(struct differential *run)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY,
                                  .garbage = differential_one_in(run, 2)};
    struct differential *other = NULL;
    uint64_t last = reference_last_sequence(run->ref);
    bool loses_names;
    bool dead;

    if (run->is_memory || !differential_compare_status(
                              run, wal_sync(run->store, &run->error), WAL_OK)) {
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
    if (loses_names || differential_one_in(run, 2)) {
        sim_disk_power_loss(run->disk, &loss, run->rng_state);
    }
    differential_open(run, 0);
    differential_check_number(run, "the last sequence after a compaction",
                              reference_last_sequence(run->ref), last);
    reference_sync(run->ref);
    differential_learn_dropped(run, false);
    differential_check_all(run);
}
