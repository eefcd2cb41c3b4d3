/*
 * script.c - what a process of a schedule does: a few steps by the seed
 * on sessions that all share, and at the end an append that must succeed
 * (sched.h). Each call is taken note of in the ledger.
 */
#include "tests/sim/sched/internal.h"

#include <stdio.h>
#include <string.h>

#include "engine/session/session.h"
#include "engine/session/store.h"

enum {
    LARGE = 12000,      /* payloads that fill a short segment */
    READ_ONLY_ODDS = 5, /* one opening in N, after the first one */
    COMPACT_ODDS = 4,   /* one step in N, where processes do */
    REPLACE_ODDS = 3,   /* the same */
    INCREMENTS = 80 /* of the hundred ways of a step: the first that does so */
};

static uint64_t random_below(struct sched_process *process, uint64_t sides)
{
    return sched__random(&process->rng_state, sides);
}

static void begin_activity(struct sched_process *process,
                           enum sched_activity place)
{
    process->activity_bits |= 1u << place;
}

static void end_activity(struct sched_process *process,
                         enum sched_activity place)
{
    process->activity_bits &= ~(1u << place);
}

/* ------------------------------------------------- opening and closing --- */

bool sched__open(struct sched_process *process)
{
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .flags = WAL_OPEN_CREATE};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    if (process->store != NULL) {
        return true;
    }
    if (process->may_read_only &&
        sched__random(&process->read_random, READ_ONLY_ODDS) == 0) {
        options.flags = WAL_OPEN_READ_ONLY;
    }
    if (process->sched->options.compacts &&
        sched__random(&process->read_random, 3) == 0) {
        options.flags |= WAL_OPEN_PREAD;
    }
    options.lock_timeout_ms = random_below(process, 8) == 0 ? 500 : 50;
    process->timeout_ms = options.lock_timeout_ms;
    process->blocked_byte = 0;
    process->open_started_ns = sched__now(process->sched);
    begin_activity(process, SCHED_OPENING);
    status = wal__store_open(SCHED_ROOT, &options, &process->arena.heap,
                             &process->io, &process->store, &error);
    end_activity(process, SCHED_OPENING);
    process->handle = ++process->sched->handles;
    process->poisoned = false;
    if (!sched__check_status(process, status, &error, "opening")) {
        if (arena_heap_count(&process->arena) != 0) {
            sched__fail(process->sched, "an opening that failed leaves memory");
        }
        return false;
    }
    process->read_only = process->store->core.env.read_only;
    memset(process->seen, 0, sizeof(process->seen));
    return true;
}

bool sched__close(struct sched_process *process)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_store *store = process->store;
    enum wal_status status;
    bool whole;

    if (store == NULL) {
        return true;
    }
    for (uint32_t i = 0; i < SCHED_SESSIONS; i++) {
        wal_session_close(process->sessions[i]);
        process->sessions[i] = NULL;
    }
    process->store = NULL;
    process->prealloc_requested = false;
    process->blocked_byte = 0;
    begin_activity(process, SCHED_CLOSING);
    status = wal_close(store, &error);
    end_activity(process, SCHED_CLOSING);
    whole = sched__check_status(process, status, &error, "closing");
    if (whole && !process->read_only) {
        sched__mark_durable(process);
    }
    if (arena_heap_count(&process->arena) != 0) {
        sched__fail(process->sched, "closing leaves memory");
    }
    process->handle = 0;
    return whole;
}

/* ---------------------------------------------------------- sessions --- */

void sched__create(struct sched_process *process, uint32_t session)
{
    struct wal_session_options options = {.struct_size = sizeof(options)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct sched *sched = process->sched;
    struct ledger *ledger = &sched->ledger;
    uint32_t op = sched__op_begin(process, session);
    bool known = sched__must_exist(sched, session, sched->steps);
    bool possible;
    enum wal_status status;
    char id[LEDGER_TEXT];

    sched->ops[op].creates = true;
    possible = sched__may_exist(sched, session);
    /* Several processes may make it: its own batch is of no promise. */
    ledger->batches[ledger->sessions[session].batch].state = LEDGER_OPEN;
    ledger_session_id(session, id);
    options.id = ledger_slice(id);
    options.metadata = ledger_slice("{\"n\":1000}");
    process->blocked_byte = 0;
    status = wal_session_create(process->store, &options,
                                &process->sessions[session], &error);
    if (status == WAL_OK && known) {
        sched__fail(sched, "session %u could be created twice", session);
    }
    if (status != WAL_EEXISTS || !possible) {
        (void)sched__check_status(process, status, &error,
                                  "creating a session");
    }
    sched__op_end(process, op, status);
}

struct wal_session *sched__session(struct sched_process *process,
                                   uint32_t session)
{
    struct sched *sched = process->sched;
    struct wal_error error = {.struct_size = sizeof(error)};
    uint64_t since = sched->steps;
    enum wal_status status;
    char id[LEDGER_TEXT];

    if (process->sessions[session] != NULL) {
        return process->sessions[session];
    }
    ledger_session_id(session, id);
    process->blocked_byte = 0;
    status = wal_session_open(process->store, ledger_slice(id),
                              &process->sessions[session], &error);
    if (status == WAL_ENOTFOUND && process->read_only) {
        return NULL;
    }
    if (status == WAL_ENOTFOUND && !sched__must_exist(sched, session, since)) {
        if (session < SCHED_SHARED_SESSIONS) {
            sched__create(process, session);
        }
        return process->sessions[session];
    }
    if (status == WAL_OK && !sched__may_exist(sched, session)) {
        sched__fail(sched, "session %u is there, and was never made", session);
    }
    (void)sched__check_status(process, status, &error, "opening a session");
    return process->sessions[session];
}

/* ----------------------------------------------------------- appends --- */

void sched__free_texts(struct sched_process *process)
{
    for (uint32_t i = 0; i < SCHED_BATCH_MAX; i++) {
        ledger_free_text(&process->texts[i]);
    }
}

static enum wal_status submit_append(struct sched_process *process,
                                     uint32_t number,
                                     struct wal_append_result *result,
                                     struct wal_error *error)
{
    const struct ledger *ledger = &process->sched->ledger;
    const struct ledger_batch *batch = &ledger->batches[number];
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = batch->durability};
    struct wal_entry entries[SCHED_BATCH_MAX];
    char tail[LEDGER_TEXT] = "";
    enum wal_status status;

    for (uint32_t i = 0; i < batch->count; i++) {
        ledger_fill_entry(ledger, batch->first + i, &entries[i],
                          &process->texts[i]);
    }
    if (batch->expects) {
        if (batch->expected != SCHED_NONE) {
            ledger_entry_id(batch->expected, tail);
        }
        options.flags = WAL_APPEND_EXPECT;
        options.expected_tail = ledger_slice(tail);
    }
    process->blocked_byte = 0;
    status = wal_append(process->sessions[batch->session], entries,
                        batch->count, &options, result, error);
    sched__free_texts(process);
    return status;
}

/* The parent that a batch names went with the power: it is sent again. */
static bool is_parent_lost(const struct ledger *ledger,
                           const struct ledger_batch *batch)
{
    const struct ledger_entry *entry = &ledger->entries[batch->first];

    return batch->again && entry->parent_kind == LEDGER_PARENT_ENTRY &&
           ledger->batches[ledger->entries[entry->parent].batch].state <
               LEDGER_WRITTEN;
}

/* Answers that need no fault: the tail had moved on. */
static bool is_conflict(struct sched_process *process, uint32_t number,
                        enum wal_status status, const struct wal_error *error)
{
    struct sched *sched = process->sched;
    const struct ledger_batch *batch = &sched->ledger.batches[number];
    uint32_t actual;

    if (status == WAL_ENOPARENT) {
        return is_parent_lost(&sched->ledger, batch);
    }
    if (status != WAL_ECONFLICT || !batch->expects) {
        return false;
    }
    actual = ledger_find_entry(&sched->ledger, ledger_slice(error->actual));
    if (actual == batch->expected) {
        sched__fail(sched,
                    "batch %u: the tail is as expected, and that is "
                    "a conflict",
                    number);
    }
    sched->counts->outcomes[SCHED_CONFLICTS]++;
    return true;
}

static void append_op(struct sched_process *process, uint32_t number)
{
    struct sched *sched = process->sched;
    const struct ledger_batch *batch = &sched->ledger.batches[number];
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_error error = {.struct_size = sizeof(error)};
    bool poisoned = process->poisoned;
    bool again = batch->again;
    enum wal_status status;

    process->op = number;
    status = submit_append(process, number, &result, &error);
    if (!is_conflict(process, number, status, &error) &&
        sched__check_status(process, status, &error, "appending")) {
        uint32_t missing = batch->count - result.appended;

        if (missing != 0 && (!again || missing != batch->count ||
                             result.duplicates != batch->count)) {
            sched__fail(sched, "batch %u: %u of %u were written", number,
                        result.appended, batch->count);
        }
        sched->counts->outcomes[SCHED_HEALED] += poisoned;
        process->poisoned = false;
    }
    sched__op_end(process, number, status);
}

/* The tail as this process saw it last, perhaps long ago, or sees it now;
 * false: it cannot tell. */
static bool find_head(struct sched_process *process,
                      struct wal_session *session, uint32_t number,
                      uint32_t *head)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    if (process->has_tail_seen[number] && random_below(process, 2) == 0) {
        *head = process->tails[number];
        return true;
    }
    status = wal_session_get_info(session, &info, &error);
    if (!sched__check_status(process, status, &error, "a session's status")) {
        return false;
    }
    *head = ledger_find_entry(&process->sched->ledger, info.head);
    process->has_tail_seen[number] = true;
    process->tails[number] = *head;
    return true;
}

/* An entry of a batch, under the parent that it names, or the head. */
static void add_entry(struct ledger *ledger, uint32_t batch, uint32_t size,
                      uint32_t parent)
{
    const struct ledger_entry entry = {.kind = LEDGER_PLAIN,
                                       .parent_kind = parent == SCHED_NONE
                                                          ? LEDGER_PARENT_HEAD
                                                          : LEDGER_PARENT_ENTRY,
                                       .parent = parent,
                                       .size = size,
                                       .seed = ledger->entry_count};

    (void)ledger_add_entry(ledger, batch, &entry);
}

void sched__append(struct sched_process *process, uint32_t session,
                   uint32_t durability, uint32_t size)
{
    struct ledger *ledger = &process->sched->ledger;
    uint32_t op;

    if (sched__session(process, session) == NULL) {
        return;
    }
    op = sched__op_begin(process, session);
    ledger->batches[op].durability = durability;
    add_entry(ledger, op, size, SCHED_NONE);
    append_op(process, op);
}

/* Any entry that is in the session, or SCHED_NONE. */
static uint32_t some_entry(struct sched_process *process, uint32_t session)
{
    const struct ledger *ledger = &process->sched->ledger;
    uint64_t start = random_below(process, ledger->entry_count + 1);

    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        uint32_t number = (uint32_t)((start + i) % ledger->entry_count);
        const struct ledger_batch *batch =
            &ledger->batches[ledger->entries[number].batch];

        if (batch->session == session && batch->state >= LEDGER_WRITTEN) {
            return number;
        }
    }
    return SCHED_NONE;
}

static uint32_t draw_size(struct sched_process *process)
{
    if (process->sched->options.with_blobs && random_below(process, 3) == 0) {
        return SCHED_INLINE + 1 + (uint32_t)random_below(process, 4000);
    }
    return random_below(process, 4) == 0
               ? (uint32_t)(2000 + random_below(process, LARGE))
               : (uint32_t)(60 + random_below(process, 400));
}

/* A batch: under the head, or on a branch; or where the tail is expected. */
static void step_append(struct sched_process *process, uint32_t session,
                        bool expects)
{
    struct ledger *ledger = &process->sched->ledger;
    struct wal_session *handle = sched__session(process, session);
    uint32_t count = 1 + (uint32_t)random_below(process, SCHED_BATCH_MAX);
    uint32_t parent = SCHED_NONE;
    uint32_t head = SCHED_NONE;
    uint32_t op;

    if (handle == NULL ||
        (expects && !find_head(process, handle, session, &head))) {
        return;
    }
    if (!expects && random_below(process, 6) == 0) {
        parent = some_entry(process, session);
    }
    op = sched__op_begin(process, session);
    ledger->batches[op].durability =
        random_below(process, 2) == 0 ? WAL_DURABLE : WAL_WRITTEN;
    ledger->batches[op].expects = expects;
    ledger->batches[op].expected = head;
    for (uint32_t i = 0; i < count; i++) {
        add_entry(ledger, op, draw_size(process), i == 0 ? parent : SCHED_NONE);
    }
    append_op(process, op);
}

/* Sends a batch again whose result was not returned. */
static void step_resend(struct sched_process *process)
{
    struct sched *sched = process->sched;
    uint32_t number = process->again;
    struct ledger_batch *batch = &sched->ledger.batches[number];

    process->again = SCHED_NONE;
    if (batch->count == 0 || sched__session(process, batch->session) == NULL) {
        return;
    }
    batch->again = true;
    batch->end = UINT64_MAX;
    sched->counts->outcomes[SCHED_RESENT]++;
    append_op(process, number);
}

/* ------------------------------------------------------------- steps --- */

static void step_read(struct sched_process *process, uint32_t session)
{
    struct sched *sched = process->sched;
    uint64_t since = sched->steps;
    struct wal_session *handle = sched__session(process, session);

    if (handle == NULL) {
        return;
    }
    begin_activity(process, SCHED_READING);
    sched__read(process, handle, session, random_below(process, 3) == 0, since);
    end_activity(process, SCHED_READING);
}

/* As the preallocation thread does: serves a request that may be long past. */
static void step_prealloc(struct sched_process *process)
{
    struct sched *sched = process->sched;
    struct wal__core *core = &process->store->core;
    struct wal__prealloc_job job = {process->prealloc_id,
                                    process->prealloc_capacity};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    if (process->read_only) {
        return;
    }
    if (!process->prealloc_requested) {
        process->prealloc_requested = core->committer.prealloc_requested;
        process->prealloc_id = core->committer.prealloc_job.id;
        process->prealloc_capacity = core->committer.prealloc_job.capacity;
        return;
    }
    process->prealloc_requested = false;
    core->committer.prealloc_requested = false;
    process->blocked_byte = 0;
    status = wal__prealloc_create(
        &core->log, &job, random_below(process, 2) == 0 ? 1000 : 0, &error);
    (void)sched__check_status(process, status, &error,
                              "preallocating a segment");
    sched->counts->outcomes[SCHED_PREALLOCATIONS] += status == WAL_OK;
}

static void step_sync(struct sched_process *process)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    bool marks = random_below(process, 2) == 0;
    enum wal_status status;

    if (process->read_only) {
        return;
    }
    process->blocked_byte = 0;
    status = marks ? wal__store_commit_mark(process->store, &error)
                   : wal_sync(process->store, &error);
    if (sched__check_status(process, status, &error,
                            marks ? "marking" : "syncing") &&
        !marks) {
        sched__mark_durable(process);
    }
}

/* Whether another process is about to change a session's metadata: two changes
 * at the same time are what may lose one. */
static bool find_updated(struct sched_process *process, uint32_t *session)
{
    const struct sched *sched = process->sched;

    for (uint32_t i = 0; i < sched->options.processes; i++) {
        const struct sched_process *other = &sched->processes[i];

        if (other != process && other->runs && other->updates != 0) {
            *session = other->updates - 1;
            return sched__random(&process->read_random, 2) == 0;
        }
    }
    return false;
}

static void run_step(struct sched_process *process)
{
    const struct sched *sched = process->sched;
    uint32_t session = (uint32_t)random_below(process, SCHED_SHARED_SESSIONS);
    uint64_t way = random_below(process, 100);
    bool is_updated;

    if (random_below(process, 5) == 0) {
        session = (uint32_t)random_below(process, sched->ledger.session_count);
    }
    is_updated = find_updated(process, &session);
    if (is_updated) {
        way = INCREMENTS;
    }
    if (sched->options.compacts &&
        sched__random(&process->read_random, COMPACT_ODDS) == 0) {
        sched__step_compact(process);
    } else if (sched->options.replaces &&
               sched__random(&process->read_random, REPLACE_ODDS) == 0) {
        sched__step_replace(process);
    } else if (!is_updated && process->again != SCHED_NONE &&
               random_below(process, 2) == 0) {
        step_resend(process);
    } else if (way < 28) {
        step_append(process, session, false);
    } else if (way < 48) {
        step_append(process, session, true);
    } else if (way < 62) {
        step_read(process, session);
    } else if (way < 70) {
        sched__step_put(process, session);
    } else if (way < 76) {
        sched__step_head(process, session);
    } else if (way < INCREMENTS) {
        sched__step_fork(process, session);
    } else if (way < 87) {
        sched__step_increment(process, session);
    } else if (way < 92) {
        (void)sched__close(process);
    } else if (way < 95) {
        step_sync(process);
    }
    if (process->store != NULL &&
        (way >= 90 || random_below(process, 3) == 0)) {
        step_prealloc(process);
    }
}

/* Of a handle that only reads: it remains open while others write, close and
 * recover. */
static void run_read_step(struct sched_process *process)
{
    struct sched *sched = process->sched;
    uint64_t *random = &process->read_random;

    if (sched__random(random, 4) == 0) {
        (void)sched__close(process);
        return;
    }
    /* Reading takes no turn from writing. */
    process->steps_left += sched__random(random, 2) == 0;
    step_read(process,
              (uint32_t)sched__random(random, sched->ledger.session_count));
    sched->counts->outcomes[SCHED_READ_ONLY]++;
}

void sched__script(struct sched_process *process)
{
    while (process->steps_left > 0) {
        process->steps_left--;
        if (!sched__open(process)) {
            continue;
        }
        process->may_read_only = true; /* there is a store */
        if (process->read_only) {
            run_read_step(process);
            continue;
        }
        if (process->poisoned && random_below(process, 2) == 0) {
            (void)sched__close(process);
            continue;
        }
        run_step(process);
    }
    if (random_below(process, 4) == 0) {
        (void)sched__close(process);
    }
}

/* Whether an append is acknowledged. */
static bool probe_append(struct sched_process *process, uint32_t session)
{
    process->again = SCHED_NONE;
    sched__append(process, session, WAL_DURABLE, 100);
    if (process->sessions[session] == NULL && !process->poisoned) {
        /* Another process made the session that this one was about to make. */
        sched__append(process, session, WAL_DURABLE, 100);
    }
    return process->sessions[session] != NULL && !process->poisoned &&
           process->again == SCHED_NONE;
}

void sched__quiesce(struct sched_process *process)
{
    uint32_t session = (uint32_t)random_below(process, SCHED_SHARED_SESSIONS);
    uint64_t since = process->sched->steps;
    bool heals = process->sched->options.append_heals;
    bool poisoned = process->poisoned;

    process->probed = false;
    process->may_read_only = false;
    process->poisoned = false; /* reported before */
    if (process->read_only || process->failed_unlock) {
        (void)sched__close(process);
    }
    if (!sched__open(process)) {
        return;
    }
    process->probed = probe_append(process, session);
    process->sched->counts->outcomes[SCHED_HEALED] +=
        poisoned && process->probed;
    if (heals && process->poisoned) {
        sched__fail(process->sched, "an append does not heal the store");
    }
    if (process->sessions[session] != NULL) {
        sched__read(process, process->sessions[session], session, false, since);
    }
}

void sched__close_all(struct sched_process *process)
{
    (void)sched__close(process);
}
