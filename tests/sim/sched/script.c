/*
 * script.c - what a process of a schedule does: a few steps by the seed on sessions that all share,
 * and at the end an append that must succeed (sched.h). Each call is taken note of in the ledger.
 */
#include <stdio.h>
#include <string.h>

#include "agentwal/admin.h"
#include "engine/log/control.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/sim/sched/internal.h"

enum {
    LARGE = 12000,      /* payloads that fill a short segment */
    READ_ONLY_ODDS = 5, /* one opening in N, after the first one */
    COMPACT_ODDS = 4,   /* one step in N, where processes do */
    REPLACE_ODDS = 3,   /* the same */
    INCREMENTS = 80     /* of the hundred ways of a step: the first that does so */
};

static uint64_t random_below(struct sched_process *process, uint64_t sides)
{
    return sched__random(&process->rng_state, sides);
}

static void begin_activity(struct sched_process *process, enum sched_activity place)
{
    process->activity_bits |= 1u << place;
}

static void end_activity(struct sched_process *process, enum sched_activity place)
{
    process->activity_bits &= ~(1u << place);
}

/* ------------------------------------------------- opening and closing --- */

bool sched__open(struct sched_process *process)
{
    struct wal_open_options options = {.struct_size = sizeof(options), .flags = WAL_OPEN_CREATE};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    if (process->store != NULL) {
        return true;
    }
    if (process->may_read_only && sched__random(&process->read_random, READ_ONLY_ODDS) == 0) {
        options.flags = WAL_OPEN_READ_ONLY;
    }
    if (process->sched->options.compacts && sched__random(&process->read_random, 3) == 0) {
        options.flags |= WAL_OPEN_PREAD;
    }
    options.lock_timeout_ms = random_below(process, 8) == 0 ? 500 : 50;
    process->timeout_ms = options.lock_timeout_ms;
    process->blocked_byte = 0;
    process->open_started_ns = sched__now(process->sched);
    begin_activity(process, SCHED_OPENING);
    status = wal__store_open(SCHED_ROOT, &options, &process->arena.heap, &process->io,
                             &process->store, &error);
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
    if (process->sched->options.folds) {
        process->store->core.fold.slots_min = 1;
        process->store->core.fold.loaded_max = 1;
    }
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
    status = wal_session_create(process->store, &options, &process->sessions[session], &error);
    if (status == WAL_OK && known) {
        sched__fail(sched, "session %u could be created twice", session);
    }
    if (status != WAL_EEXISTS || !possible) {
        (void)sched__check_status(process, status, &error, "creating a session");
    }
    sched__op_end(process, op, status);
}

static struct wal_session *sched__session(struct sched_process *process, uint32_t session)
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
    status =
        wal_session_open(process->store, ledger_slice(id), &process->sessions[session], &error);
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

static enum wal_status submit_append(struct sched_process *process, uint32_t number,
                                     struct wal_append_result *result, struct wal_error *error)
{
    const struct ledger *ledger = &process->sched->ledger;
    const struct ledger_batch *batch = &ledger->batches[number];
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = batch->durability};
    struct wal_entry entries[SCHED_BATCH_MAX];
    char tail[LEDGER_TEXT] = "";
    enum wal_status status;

    for (uint32_t i = 0; i < batch->count; i++) {
        ledger_fill_entry(ledger, batch->first + i, &entries[i], &process->texts[i]);
    }
    if (batch->expects) {
        if (batch->expected != SCHED_NONE) {
            ledger_entry_id(batch->expected, tail);
        }
        options.flags = WAL_APPEND_EXPECT;
        options.expected_tail = ledger_slice(tail);
    }
    process->blocked_byte = 0;
    status = wal_append(process->sessions[batch->session], entries, batch->count, &options, result,
                        error);
    sched__free_texts(process);
    return status;
}

/* The parent that a batch names went with the power: it is sent again. */
static bool is_parent_lost(const struct ledger *ledger, const struct ledger_batch *batch)
{
    const struct ledger_entry *entry = &ledger->entries[batch->first];

    return batch->again && entry->parent_kind == LEDGER_PARENT_ENTRY &&
           ledger->batches[ledger->entries[entry->parent].batch].state < LEDGER_WRITTEN;
}

/* Answers that need no fault: the tail had moved on. */
static bool is_conflict(struct sched_process *process, uint32_t number, enum wal_status status,
                        const struct wal_error *error)
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

        if (missing != 0 &&
            (!again || missing != batch->count || result.duplicates != batch->count)) {
            sched__fail(sched, "batch %u: %u of %u were written", number, result.appended,
                        batch->count);
        }
        sched->counts->outcomes[SCHED_HEALED] += poisoned;
        process->poisoned = false;
    }
    sched__op_end(process, number, status);
}

/* The tail as this process saw it last, perhaps long ago, or sees it now; false: it cannot tell. */
static bool find_head(struct sched_process *process, struct wal_session *session, uint32_t number,
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
static void add_entry(struct ledger *ledger, uint32_t batch, uint32_t size, uint32_t parent)
{
    const struct ledger_entry entry = {.kind = LEDGER_PLAIN,
                                       .parent_kind = parent == SCHED_NONE ? LEDGER_PARENT_HEAD
                                                                           : LEDGER_PARENT_ENTRY,
                                       .parent = parent,
                                       .size = size,
                                       .seed = ledger->entry_count};

    (void)ledger_add_entry(ledger, batch, &entry);
}

void sched__append(struct sched_process *process, uint32_t session, uint32_t durability,
                   uint32_t size)
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
        const struct ledger_batch *batch = &ledger->batches[ledger->entries[number].batch];

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
    return random_below(process, 4) == 0 ? (uint32_t)(2000 + random_below(process, LARGE))
                                         : (uint32_t)(60 + random_below(process, 400));
}

/* A batch: under the head, or on a branch; or where the tail is expected. */
static void step_append(struct sched_process *process, uint32_t session, bool expects)
{
    struct ledger *ledger = &process->sched->ledger;
    struct wal_session *handle = sched__session(process, session);
    uint32_t count = 1 + (uint32_t)random_below(process, SCHED_BATCH_MAX);
    uint32_t parent = SCHED_NONE;
    uint32_t head = SCHED_NONE;
    uint32_t op;

    if (handle == NULL || (expects && !find_head(process, handle, session, &head))) {
        return;
    }
    if (!expects && random_below(process, 6) == 0) {
        parent = some_entry(process, session);
    }
    op = sched__op_begin(process, session);
    ledger->batches[op].durability = random_below(process, 2) == 0 ? WAL_DURABLE : WAL_WRITTEN;
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
    struct wal__prealloc_job job = {process->prealloc_id, process->prealloc_capacity};
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
    status =
        wal__prealloc_create(&core->log, &job, random_below(process, 2) == 0 ? 1000 : 0, &error);
    (void)sched__check_status(process, status, &error, "preallocating a segment");
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
    status =
        marks ? wal__store_commit_mark(process->store, &error) : wal_sync(process->store, &error);
    if (sched__check_status(process, status, &error, marks ? "marking" : "syncing") && !marks) {
        sched__mark_durable(process);
    }
}

/* Whether another process is about to change a session's metadata: two changes at the same time are
 * what may lose one. */
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

static void sched__step_put(struct sched_process *process, uint32_t session);

static void sched__step_head(struct sched_process *process, uint32_t session);

static void sched__step_fork(struct sched_process *process, uint32_t session);

static void sched__step_increment(struct sched_process *process, uint32_t session);

static void sched__step_compact(struct sched_process *process);

static void sched__step_replace(struct sched_process *process);

static void sched__step_restore(struct sched_process *process);

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
    if (sched->options.compacts && sched__random(&process->read_random, COMPACT_ODDS) == 0) {
        sched__step_compact(process);
    } else if (sched->options.restores && sched__random(&process->read_random, 2) == 0) {
        sched__step_restore(process);
    } else if (sched->options.replaces && sched__random(&process->read_random, REPLACE_ODDS) == 0) {
        sched__step_replace(process);
    } else if (!is_updated && process->again != SCHED_NONE && random_below(process, 2) == 0) {
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
    if (process->store != NULL && (way >= 90 || random_below(process, 3) == 0)) {
        step_prealloc(process);
    }
}

/* Of a handle that only reads: it remains open while others write, close and recover. */
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
    step_read(process, (uint32_t)sched__random(random, sched->ledger.session_count));
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
    return process->sessions[session] != NULL && !process->poisoned && process->again == SCHED_NONE;
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
    process->sched->counts->outcomes[SCHED_HEALED] += poisoned && process->probed;
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

/* --- script compact ------------------------------------------------------- */

/*
 * The step of a process that compacts the store while the others go on. What it replaces is live or
 * superseded: no answer of any process changes by it.
 */

/* Whether it waited for a process that is about to name content, or may be, as it is stopped, or
 * for one that writes the catalogue: for up to 10 s, whatever the timeout. */
static bool is_kept_waiting(const struct sched_process *process)
{
    return process->blocked_by_fold || process->blocked_byte == WAL__LOCK_CONTENT ||
           process->blocked_byte == WAL__LOCK_CONTENT + 1;
}

/* A segment is refused where reading it failed, and where the sync of a directory has failed since
 * the machine started; nowhere else. */
static void check_refusals(struct sched_process *process,
                           const struct wal_store_compact_result *result)
{
    if (result->refused != 0 && !process->failed && !process->sched->directory_failed) {
        sched__fail(process->sched, "compaction refuses %u segments: %s", (unsigned)result->refused,
                    result->refusal.text);
    }
}

static void sched__step_compact(struct sched_process *process)
{
    struct sched *sched = process->sched;
    struct wal_store_compact_options options = {.struct_size = sizeof(options), .rate = UINT64_MAX};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    options.flags = sched__random(&process->read_random, 2) == 0 ? WAL_STORE_COMPACT_ERASE : 0;
    process->blocked_byte = 0;
    process->blocked_by_fold = false;
    status = wal_store_compact(process->store, &options, &result, &error);
    if (status == WAL_ELOCKED && is_kept_waiting(process)) {
        return;
    }
    if (status == WAL_ELOCKED && process->blocked_byte == WAL__LOCK_COMPACT) {
        /* Another one compacts, or had just begun: refused at once. */
        sched->counts->outcomes[SCHED_COMPACTING]++;
        return;
    }
    if (sched__check_status(process, status, &error, "compacting")) {
        check_refusals(process, &result);
    }
    sched->counts->outcomes[SCHED_COMPACTED] += result.rewritten;
}

/* --- script restore ------------------------------------------------------- */

/*
 * The step of a process that redacts an entry, or undoes that, while others do and one erases. The
 * session is not of the ledger.
 *
 * Invariant: an entry that is shown has its content.
 */

enum { HIDDEN_ENTRIES = 6 };

static const char hidden_text[] = "{\"text\":\"which is hidden and shown\"}";

/* Undoes the redaction of an entry, which may not be redacted, or be erased. */
static void undo(struct sched_process *process, struct wal_session *session, struct wal_slice id)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct sched_counts *counts = process->sched->counts;
    enum wal_status status;

    process->blocked_byte = 0;
    status = wal_session_unredact(session, id, &error);
    if (status == WAL_EREDACTED) {
        counts->outcomes[SCHED_GONE]++;
    } else if (status != WAL_ENOTFOUND &&
               (status != WAL_ELOCKED || process->blocked_byte != WAL__LOCK_COMPACT) &&
               sched__check_status(process, status, &error, "undoing a redaction")) {
        counts->outcomes[SCHED_RESTORED]++;
    }
}

static void change_hidden(struct sched_process *process, struct wal_session *session)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry),
                              .type = ledger_slice("message"),
                              .payload = ledger_slice(hidden_text)};
    struct wal_entry found = {.struct_size = sizeof(found)};
    enum wal_status status;
    char id[16];

    (void)snprintf(id, sizeof(id), "u%u",
                   (unsigned)sched__random(&process->read_random, HIDDEN_ENTRIES));
    entry.id = ledger_slice(id);
    status = wal_append(session, &entry, 1, NULL, NULL, &error);
    if (!sched__check_status(process, status, &error, "appending")) {
        return;
    }
    if (sched__random(&process->read_random, 2) == 0) {
        status = wal_session_redact(session, entry.id, ledger_slice(""), NULL, &error);
        if (!sched__check_status(process, status, &error, "redacting")) {
            return;
        }
    }
    if (sched__random(&process->read_random, 2) == 0) {
        undo(process, session, entry.id);
    }
    status = wal_entry_get(session, entry.id, &found, &error);
    if (status != WAL_EREDACTED && sched__check_status(process, status, &error, "reading") &&
        (found.payload.size != sizeof(hidden_text) - 1 ||
         memcmp(found.payload.data, hidden_text, sizeof(hidden_text) - 1) != 0)) {
        sched__fail(process->sched, "an entry is shown as %.*s", (int)found.payload.size,
                    (const char *)found.payload.data);
    }
}

static void sched__step_restore(struct sched_process *process)
{
    const struct wal_session_options options = {.struct_size = sizeof(options),
                                                .id = ledger_slice("hidden")};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *session = NULL;
    enum wal_status status;

    process->blocked_byte = 0;
    status = wal_session_open_or_create(process->store, &options, &session, NULL, &error);
    if (sched__check_status(process, status, &error, "opening a session")) {
        change_hidden(process, session);
    }
    wal_session_close(session);
}

/* --- script docs ---------------------------------------------------------- */

/*
 * The steps of a process that append no entries: documents, heads, forks, and a number in the
 * metadata that is counted up.
 */

enum {
    DOCUMENT_SIZE = 48,
    UPDATE_STEPS = 3 /* turns that a change of metadata waits for */
};

static const char *const mark = "head-0"; /* as the ledger names it */

/* --------------------------------------------------------- documents --- */

/* The version of a document as this process sees it; 0: there is none. */
static bool find_version(struct sched_process *process, struct wal_session *session,
                         const char *key, uint64_t *version)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status = wal_doc_cursor_open(process->store, session, NULL, &docs, &error);

    if (!sched__check_status(process, status, &error, "opening documents")) {
        return false;
    }
    status = wal_doc_cursor_get(docs, ledger_slice(key), 0, &doc, &error);
    *version = status == WAL_OK ? doc.version : 0;
    wal_doc_cursor_close(docs);
    return status == WAL_ENOTFOUND ||
           sched__check_status(process, status, &error, "reading a document");
}

static struct ledger_part *add_part(struct sched_process *process, uint32_t batch,
                                    enum ledger_part_kind kind, uint32_t session, uint32_t key)
{
    struct ledger *ledger = &process->sched->ledger;
    const struct ledger_part part = {
        .kind = kind, .session = session, .key = key, .target = SCHED_NONE};

    return &ledger->parts[ledger_add_part(ledger, batch, &part)];
}

static void sched__step_put(struct sched_process *process, uint32_t session)
{
    struct sched *sched = process->sched;
    bool of_store = session >= SCHED_SHARED_SESSIONS || random_below(process, 3) == 0;
    struct wal_session *handle = of_store ? NULL : sched__session(process, session);
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct ledger_text *text = &process->texts[0];
    enum wal_status status;
    struct ledger_part *part;
    uint32_t number;

    if (!of_store && handle == NULL) {
        return;
    }
    number = sched__op_begin(process, session);
    part = add_part(process, number, LEDGER_PUT_DOC, of_store ? SCHED_NONE : session,
                    (uint32_t)random_below(process, SCHED_KEYS));
    part->size = DOCUMENT_SIZE;
    part->expects = random_below(process, 3) != 0;
    ledger_fill_document(&sched->ledger, (uint32_t)(part - sched->ledger.parts), &doc, text);
    if (of_store && part->expects && process->knows_version && process->known_key == part->key &&
        random_below(process, 2) == 0) {
        part->version = process->known_version;
    } else if (part->expects && !find_version(process, handle, text->id, &part->version)) {
        sched__free_texts(process);
        sched__op_end(process, number, WAL_ENOTFOUND);
        return;
    }
    if (of_store && part->expects) {
        process->knows_version = true;
        process->known_key = part->key;
        process->known_version = part->version;
    }
    doc.flags = part->expects ? WAL_DOC_EXPECT : 0;
    doc.version = part->version;
    process->blocked_byte = 0;
    status = wal_doc_put(process->store, handle, &doc, NULL, &error);
    sched__free_texts(process);
    if (status == WAL_ECONFLICT && part->expects) {
        sched->counts->outcomes[SCHED_STALE]++;
    } else {
        (void)sched__check_status(process, status, &error, "putting a document");
    }
    sched__op_end(process, number, status);
}

/* ------------------------------------------------------------- heads --- */

/* Where a head is; empty: there is none. */
static bool script_docs_find_head(struct sched_process *process, struct wal_session *session,
                                  const char *name, char out[256])
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = wal_head_get(session, 0, ledger_slice(name), out, &error);

    if (status == WAL_ENOTFOUND) {
        out[0] = '\0';
        return true;
    }
    return sched__check_status(process, status, &error, "asking for a head");
}

/* Moves a head to the tail, or `main` to where the mark is. */
static void sched__step_head(struct sched_process *process, uint32_t session)
{
    struct sched *sched = process->sched;
    struct wal_session *handle = sched__session(process, session);
    bool main = sched->moves_main && random_below(process, 2) == 0;
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_error error = {.struct_size = sizeof(error)};
    char expected[256];
    char target[256];
    struct ledger_part *part;
    enum wal_status status;
    uint32_t number;

    if (handle == NULL || !script_docs_find_head(process, handle, main ? mark : "main", target) ||
        !script_docs_find_head(process, handle, main ? "main" : mark, expected) ||
        target[0] == '\0') {
        return;
    }
    number = sched__op_begin(process, session);
    part = add_part(process, number, main ? LEDGER_MOVE_MAIN : LEDGER_MOVE_HEAD, session, 0);
    part->target = ledger_find_entry(&sched->ledger, ledger_slice(target));
    ledger_fill_head(&sched->ledger, (uint32_t)(part - sched->ledger.parts), &head,
                     &process->texts[0]);
    if (random_below(process, 2) == 0) {
        head.flags = WAL_HEAD_EXPECT;
        head.expected = ledger_slice(expected);
    }
    process->blocked_byte = 0;
    status = wal_head_move(handle, &head, NULL, &error);
    if (status == WAL_ECONFLICT && (head.flags & WAL_HEAD_EXPECT) != 0) {
        sched->counts->outcomes[SCHED_STALE]++;
    } else {
        (void)sched__check_status(process, status, &error, "moving a head");
    }
    sched__op_end(process, number, status);
}

/* ------------------------------------------------------------- forks --- */

static void sched__step_fork(struct sched_process *process, uint32_t session)
{
    struct sched *sched = process->sched;
    const struct ledger *ledger = &sched->ledger;
    struct wal_session *handle = sched__session(process, session);
    struct wal_session_options options = {.struct_size = sizeof(options)};
    struct wal_error error = {.struct_size = sizeof(error)};
    char at[256];
    char id[LEDGER_TEXT];
    enum wal_status status;
    uint32_t number;
    uint32_t op;

    if (handle == NULL || ledger->session_count == SCHED_SESSIONS ||
        !script_docs_find_head(process, handle, "main", at) || at[0] == '\0') {
        return;
    }
    if (ledger->session_count == SCHED_SESSIONS) {
        return; /* others may have forked in the meantime */
    }
    number = sched__op_begin_fork(process, session, ledger_find_entry(ledger, ledger_slice(at)));
    op = process->op;
    ledger_session_id(number, id);
    options.id = ledger_slice(id);
    process->blocked_byte = 0;
    status =
        wal_session_fork(handle, ledger_slice(at), &options, &process->sessions[number], &error);
    (void)sched__check_status(process, status, &error, "forking");
    sched__op_end(process, op, status);
    sched->counts->outcomes[SCHED_FORKS] += status == WAL_OK;
}

/* ---------------------------------------------------------- metadata --- */

struct counter_update {
    struct sched_process *process;
    uint32_t session;
    uint64_t since;
    char text[SCHED_TEXT];
};

/* Called by wal_session_update: one more than there is. */
static int32_t increment(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    struct counter_update *counter_update = ctx;
    struct sched_process *process = counter_update->process;
    uint32_t count = sched__check_counter(process->sched, counter_update->session, now->metadata,
                                          counter_update->since);

    /* It takes its time, in which others may count too. */
    process->call = SIM_ANY;
    process->updates = counter_update->session + 1;
    for (int i = 0; i < UPDATE_STEPS; i++) {
        sched__step(process, false);
    }
    process->updates = 0;
    (void)snprintf(counter_update->text, sizeof(counter_update->text), "{\"n\":1%03u}", count + 1);
    change->fields = WAL_CHANGE_METADATA;
    change->metadata = ledger_slice(counter_update->text);
    return 0;
}

static void sched__step_increment(struct sched_process *process, uint32_t session)
{
    struct sched *sched = process->sched;
    struct counter_update counter_update = {.process = process, .session = session};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *handle;
    enum wal_status status;
    uint32_t op;

    if (session >= SCHED_SHARED_SESSIONS) {
        return; /* a fork begins with the number of its source */
    }
    handle = sched__session(process, session);
    if (handle == NULL) {
        return;
    }
    op = sched__op_begin(process, session);
    sched->ops[op].increments = true;
    counter_update.since = sched->steps;
    process->blocked_byte = 0;
    status = wal_session_update(handle, increment, &counter_update, &error);
    (void)sched__check_status(process, status, &error, "updating a session");
    sched__op_end(process, op, status);
}

/* --- script replace ------------------------------------------------------- */

/*
 * The steps of processes that look at a session and then remove it, while others append to it: an
 * agent, an importer that deletes the session and creates it again, and a retainer that moves it to
 * the trash, and deletes it there or takes it back.
 *
 * The session is not of the ledger. Of each of its entries is known whether it was acknowledged,
 * and whether a removal that had seen it was, or may have been, written.
 *
 * Invariant: an entry that was acknowledged, and that no removal had seen, is there.
 */

enum {
    SEEN_STEPS = 3, /* turns between a look and what follows from it */
    ID_SIZE = 16
};

static const char *const name = "replaced";

static uint64_t script_replace_random_below(struct sched_process *process, uint64_t sides)
{
    return sched__random(&process->read_random, sides);
}

static const char *entry_id(uint32_t number, char id[ID_SIZE])
{
    (void)snprintf(id, ID_SIZE, "r%u", number);
    return id;
}

/* Answers of a session that others remove and create. */
static bool is_expected(enum wal_status status)
{
    return status == WAL_ENOTFOUND || status == WAL_ETRASHED || status == WAL_EEXISTS ||
           status == WAL_ECONFLICT;
}

/* Whether the call succeeded. */
static bool check(struct sched_process *process, enum wal_status status,
                  const struct wal_error *error, const char *what)
{
    return !is_expected(status) && sched__check_status(process, status, error, what);
}

/* --- what was seen -------------------------------------------------------- */

/* A look at the session. */
struct sched_look {
    struct wal_session *session;
    uint64_t sequence; /* last_sequence, from before the entries were read */
    bool has[SCHED_REPLACED];
};

static bool open_session(struct sched_process *process, struct wal_session **session)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    process->blocked_byte = 0;
    status = wal_session_open(process->store, ledger_slice(name), session, &error);
    if (status == WAL_ETRASHED) {
        status = wal_session_undelete(process->store, ledger_slice(name), &error);
        (void)check(process, status, &error, "undeleting a session");
        return false;
    }
    return check(process, status, &error, "opening a session");
}

static void create_session(struct sched_process *process, struct wal_session **session)
{
    const struct wal_session_options options = {.struct_size = sizeof(options),
                                                .id = ledger_slice(name)};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    process->blocked_byte = 0;
    status = wal_session_create(process->store, &options, session, &error);
    (void)check(process, status, &error, "creating a session");
}

/* Reads which entries there are. False: it cannot be read now. */
static bool look(struct sched_process *process, struct sched_look *look)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_session_get_info(look->session, &info, &error);

    look->sequence = info.last_sequence;
    if (status == WAL_OK) {
        status = wal_entry_cursor_open(look->session, &options, &cursor, &error);
    }
    while (status == WAL_OK) {
        unsigned number = 0;

        status = wal_entry_cursor_next(cursor, &entry, &error);
        if (status == WAL_OK && sscanf((const char *)entry.payload.data, "%u", &number) == 1 &&
            number < SCHED_REPLACED) {
            look->has[number] = true;
        }
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END || check(process, status, &error, "looking at a session");
}

/* Others go on. */
static void wait_after_look(struct sched_process *process)
{
    process->call = SIM_ANY;
    for (int i = 0; i < SEEN_STEPS; i++) {
        sched__step(process, false);
    }
}

/* --- removing ------------------------------------------------------------- */

static void add_doubts(struct sched *sched, const struct sched_look *look, bool adds)
{
    for (uint32_t i = 0; i < sched->replaced_count; i++) {
        if (look->has[i]) {
            sched->replaced[i].doubts += adds ? 1u : UINT32_MAX;
        }
    }
}

/* Removes the session as it was seen. Until it is refused, what was seen may be gone. */
static enum wal_status remove_seen(struct sched_process *process, const struct sched_look *seen,
                                   uint32_t flags)
{
    struct sched *sched = process->sched;
    const struct wal_session_remove_options options = {.struct_size = sizeof(options),
                                                       .flags = flags | WAL_SESSION_REMOVE_EXPECT,
                                                       .expected_sequence = seen->sequence};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    add_doubts(sched, seen, true);
    process->blocked_byte = 0;
    status = wal_session_remove(seen->session, &options, &error);
    if (status == WAL_ECONFLICT) {
        if (error.expectation != WAL_EXPECTATION_SEQUENCE) {
            sched__fail(sched, "a removal conflicts: %s", error.text);
        }
        sched->counts->outcomes[SCHED_REMOVAL_CONFLICTS]++;
    }
    (void)check(process, status, &error, "removing a session");
    if (is_expected(status)) {
        add_doubts(sched, seen, false);
    }
    return status;
}

/* --- the three ------------------------------------------------------------ */

static void append(struct sched_process *process, struct wal_session *session)
{
    struct sched *sched = process->sched;
    uint32_t number = sched->replaced_count;
    const struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = script_replace_random_below(process, 2) == 0 ? WAL_DURABLE : WAL_WRITTEN};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry), .type = WAL_STR(WAL_TYPE_MESSAGE)};
    enum wal_status status;
    char payload[ID_SIZE];
    char id[ID_SIZE];

    if (session == NULL || number == SCHED_REPLACED) {
        return;
    }
    sched->replaced[number] = (struct sched_replaced){.doubts = 0};
    sched->replaced_count++;
    (void)snprintf(payload, sizeof(payload), "%u    ", number);
    entry.id = ledger_slice(entry_id(number, id));
    entry.payload = ledger_slice(payload);
    process->blocked_byte = 0;
    status = wal_append(session, &entry, 1, &options, NULL, &error);
    if (check(process, status, &error, "appending")) {
        sched->replaced[number].is_acknowledged = true;
        sched->replaced[number].is_durable = options.durability == WAL_DURABLE;
        process->poisoned = false;
    }
}

static void run_importer(struct sched_process *process, struct sched_look *seen)
{
    if (!look(process, seen)) {
        return;
    }
    wait_after_look(process);
    if (remove_seen(process, seen, 0) == WAL_OK) {
        process->sched->counts->outcomes[SCHED_REPLACEMENTS]++;
        wal_session_close(seen->session);
        seen->session = NULL;
        create_session(process, &seen->session);
        append(process, seen->session);
    }
}

static void run_retainer(struct sched_process *process, struct sched_look *seen)
{
    struct sched *sched = process->sched;
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    if (!look(process, seen)) {
        return;
    }
    wait_after_look(process);
    if (remove_seen(process, seen, WAL_SESSION_REMOVE_TRASH) != WAL_OK) {
        return;
    }
    sched->counts->outcomes[SCHED_RETENTIONS]++;
    if (script_replace_random_below(process, 2) == 0) {
        /* An erasing compaction may have emptied the trash. */
        status = wal_session_undelete(process->store, ledger_slice(name), &error);
        if (check(process, status, &error, "undeleting a session") && !sched->options.compacts) {
            add_doubts(sched, seen, false);
        }
        return;
    }
    memset(seen->has, 0, sizeof(seen->has));
    if (look(process, seen)) {
        wait_after_look(process);
        (void)remove_seen(process, seen, 0);
    }
}

static void sched__step_replace(struct sched_process *process)
{
    struct sched_look seen = {.session = NULL};
    uint64_t way = script_replace_random_below(process, 4);

    if (!open_session(process, &seen.session)) {
        if (process->store != NULL && !process->poisoned) {
            create_session(process, &seen.session);
        }
        way = 0;
    }
    if (seen.session == NULL) {
        return;
    }
    if (way < 2) {
        append(process, seen.session);
    } else if (way == 2) {
        run_importer(process, &seen);
    } else {
        run_retainer(process, &seen);
    }
    wal_session_close(seen.session);
}

/* --- what must be there --------------------------------------------------- */

void sched__replaced_power_loss(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->replaced_count; i++) {
        sched->replaced[i].is_acknowledged &= sched->replaced[i].is_durable;
    }
}

void sched__check_replaced(struct sched_process *process)
{
    struct sched *sched = process->sched;
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(process->store, ledger_slice(name), &session, NULL);
    char id[ID_SIZE];

    if (status == WAL_ETRASHED) {
        (void)!wal_session_undelete(process->store, ledger_slice(name), NULL);
        status = wal_session_open(process->store, ledger_slice(name), &session, NULL);
    }
    for (uint32_t i = 0; i < sched->replaced_count && !sched->failed; i++) {
        const struct sched_replaced *entry = &sched->replaced[i];
        struct wal_entry found = {.struct_size = sizeof(found)};

        if (!entry->is_acknowledged || entry->doubts > 0) {
            continue;
        }
        if (status != WAL_OK ||
            wal_entry_get(session, ledger_slice(entry_id(i, id)), &found, NULL) != WAL_OK) {
            sched__fail(sched,
                        "the entry %s was acknowledged, and no removal had "
                        "seen it: it is gone",
                        id);
        }
        sched->counts->outcomes[SCHED_KEPT]++;
    }
    wal_session_close(session);
}
