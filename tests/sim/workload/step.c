/*
 * step.c - the script: what a step does, and how its batches are
 * handed in (workload.h).
 */
#include <stdlib.h>
#include <string.h>

#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/sim/workload/internal.h"

enum {
    SESSION_LIMIT = 8, /* that the script makes */
    STEP_FORK = 9,     /* of 100 */
    STEP_DELETE = 25
};

/* ------------------------------------------------------------- calls --- */

/* What the status of a batch means. */
void workload__record_answer(struct workload *workload, uint32_t number,
                             uint32_t durability, enum wal_status status,
                             const struct wal_error *error)
{
    struct ledger_batch *batch = &workload->ledger->batches[number];

    workload__record_status(workload, status);
    if (batch->state == LEDGER_REFUSED &&
        (status == WAL_OK || status == WAL_EIO || status == WAL_EPOISONED)) {
        batch->state = LEDGER_OPEN; /* it was sent again */
    }
    switch ((int)status) {
    case WAL_OK:
        if (durability == WAL_DURABLE) {
            batch->state = LEDGER_DURABLE;
            if (workload->on_durable != NULL) {
                workload->on_durable(workload->on_durable_arg);
            }
        } else if (durability == WAL_WRITTEN &&
                   batch->state != LEDGER_DURABLE) {
            batch->state = LEDGER_WRITTEN;
        }
        return;
    case WAL_EIO:
    case WAL_EPOISONED:
        if (durability != WAL_QUEUED) {
            return; /* it may be there */
        }
        break;
    case WAL_ENOSPACE:
    case WAL_ENOMEM:
    case WAL_EREADONLY:
    case WAL_ELOCKED:
        break;
    default:
        ledger_fail("step %u: batch %u answers %d: %s (%s)", workload->step,
                    number, status, error->text, error->file);
    }
    if (durability == WAL_QUEUED) {
        workload__mark_uncertain(
            workload->ledger, batch->actor); /* it speaks of an earlier one */
    }
    if (batch->state == LEDGER_OPEN && !batch->again) {
        batch->state = LEDGER_REFUSED;
    }
}

/* The handle of a session, opened when it is needed; null when it cannot. */
struct wal_session *workload__session(struct workload *workload,
                                      uint32_t session)
{
    struct workload_actor *actor = &workload->actors[workload->actor];
    const struct ledger *ledger = workload->ledger;
    struct wal_error error = {.struct_size = sizeof(error)};
    enum ledger_state state =
        ledger->batches[ledger->sessions[session].batch].state;
    char id[LEDGER_TEXT];
    enum wal_status status;

    if (actor->sessions[session] != NULL) {
        return actor->sessions[session];
    }
    ledger_session_id(session, id);
    status = wal_session_open(actor->store, ledger_slice(id),
                              &actor->sessions[session], &error);
    if (status == WAL_ENOTFOUND &&
        (state < LEDGER_WRITTEN || ledger_may_be_deleted(ledger, session))) {
        return NULL;
    }
    workload__record_status(workload, status);
    if (status != WAL_OK && !workload__is_documented(status)) {
        ledger_fail("step %u: opening session %u answers %d: %s",
                    workload->step, session, status, error.text);
    }
    return actor->sessions[session];
}

/* The id of the head as the store has it; false when it cannot tell. */
bool workload__head(struct workload *workload, struct wal_session *session,
                    char out[LEDGER_TEXT])
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = wal_session_get_info(session, &info, &error);

    workload__record_status(workload, status);
    if (status != WAL_OK) {
        if (!workload__is_documented(status)) {
            ledger_fail("step %u: a session's status answers %d: %s",
                        workload->step, status, error.text);
        }
        return false;
    }
    WAL__ASSERT(info.head.size < LEDGER_TEXT);
    memset(out, 0, LEDGER_TEXT);
    if (info.head.size > 0) {
        memcpy(out, info.head.data, info.head.size);
    }
    return true;
}

void workload_free_call(struct workload *workload)
{
    for (uint32_t i = 0; i < WORKLOAD_TEXTS; i++) {
        ledger_free_text(&workload->texts[i]);
    }
    for (uint32_t i = 0; i < WORKLOAD_PARTS; i++) {
        ledger_free_text(&workload->part_texts[i]);
    }
    free(workload->blob);
    workload->blob = NULL;
}

/* How a batch is handed in. */
struct submit_mode {
    uint32_t durability;
    const char *expected; /* tail, or null */
    bool by_ticket;
    bool other; /* with other content under the same ids */
};

/* Hands a batch to the store. The ledger is never changed by the submit_mode: a
 * copy of it may be taken during the call. */
static enum wal_status submit(struct workload *workload, uint32_t number,
                              struct wal_session *session,
                              const struct submit_mode *submit_mode,
                              struct wal_error *error)
{
    const struct ledger_batch *batch = &workload->ledger->batches[number];
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = submit_mode->durability};
    struct wal_entry entries[WORKLOAD_TEXTS];
    struct wal_ticket *ticket = NULL;
    enum wal_status status;

    if (submit_mode->expected != NULL) {
        options.flags = WAL_APPEND_EXPECT;
        options.expected_tail = ledger_slice(submit_mode->expected);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        ledger_fill_entry(workload->ledger, batch->first + i, &entries[i],
                          &workload->texts[i]);
    }
    if (submit_mode->other) {
        workload->texts[0].payload[entries[0].payload.size - 4] ^= 1;
    }
    if (submit_mode->by_ticket && submit_mode->durability != WAL_QUEUED) {
        status = wal_submit(session, entries, batch->count, &options, &ticket,
                            error);
        if (status == WAL_OK) {
            status = wal_ticket_wait(ticket, -1, NULL, error);
            wal_ticket_destroy(ticket);
        }
    } else {
        status =
            wal_append(session, entries, batch->count, &options, NULL, error);
    }
    workload_free_call(workload);
    return status;
}

/* ------------------------------------------------------------- steps --- */

/* A batch of new entries in the ledger. */
static uint32_t make_batch(struct workload *workload, uint32_t session,
                           struct rng *rng)
{
    struct ledger *ledger = workload->ledger;
    uint32_t count = workload__random(rng, 3) == 0
                         ? 1 + workload__random(rng, WORKLOAD_BATCH)
                         : 1;
    uint32_t batch = ledger_add_batch(ledger, session, workload->actor);
    uint32_t durability = workload__random(rng, 5);

    ledger->batches[batch].durability =
        durability < 2 ? WAL_DURABLE
                       : (durability < 4 ? WAL_WRITTEN : WAL_QUEUED);
    workload__add_entries(workload, batch, count, rng);
    return batch;
}

bool workload__sync(struct workload *workload)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status =
        wal_sync(workload->actors[workload->actor].store, &error);

    workload__record_status(workload, status);
    if (status != WAL_OK) {
        workload__mark_uncertain(workload->ledger, workload->actor);
    }
    return status == WAL_OK;
}

/* Reads the head that a batch is to expect; false, and the batch is recorded as
 * refused, when it cannot be read. */
static bool read_expected_head(struct workload *workload,
                               struct wal_session *session, uint32_t batch,
                               char head[LEDGER_TEXT])
{
    struct ledger_batch *recorded = &workload->ledger->batches[batch];

    recorded->durability = WAL_DURABLE;
    if (workload__sync(workload) && workload__head(workload, session, head)) {
        return true;
    }
    recorded->state = LEDGER_REFUSED;
    return false;
}

static void step_append(struct workload *workload, struct wal_session *session,
                        uint32_t number, struct rng *rng)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t batch = make_batch(workload, number, rng);
    const struct ledger_batch *recorded = &workload->ledger->batches[batch];
    bool expects = workload__random(rng, 10) == 0 &&
                   workload->ledger->entries[recorded->first].stream == 0;
    struct submit_mode submit_mode = {.by_ticket =
                                          workload__random(rng, 3) == 0};
    char head[LEDGER_TEXT];
    enum wal_status status;

    status = WAL_ECONFLICT;
    /* A builder that died may have left a whole group, which is not seen until
     * the next one takes it: then the head has moved, once. */
    for (int tries = 0; status == WAL_ECONFLICT && tries < 2; tries++) {
        if (expects && !read_expected_head(workload, session, batch, head)) {
            return;
        }
        submit_mode.expected = expects ? head : NULL;
        submit_mode.durability = workload->ledger->batches[batch].durability;
        status = submit(workload, batch, session, &submit_mode, &error);
        if (!expects) {
            break;
        }
    }
    workload__record_answer(workload, batch, submit_mode.durability, status,
                            &error);
}

/* A batch that must be refused, with this answer. */
static void step_refused(struct workload *workload, struct wal_session *session,
                         uint32_t number, struct rng *rng)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t batch = make_batch(workload, number, rng);
    struct ledger_batch *recorded = &workload->ledger->batches[batch];
    struct ledger_entry *last =
        &workload->ledger->entries[recorded->first + recorded->count - 1];
    bool conflict = workload__random(rng, 2) == 0;
    struct submit_mode submit_mode = {.expected = conflict ? "nobody" : NULL};
    enum wal_status status;

    recorded->durability = WAL_DURABLE;
    recorded->state = LEDGER_REFUSED;
    last->kind = LEDGER_PLAIN;
    if (!conflict) {
        last->parent_kind = LEDGER_PARENT_ENTRY;
        last->parent = 99999; /* unknown */
    }
    status = submit(workload, batch, session, &submit_mode, &error);
    if (status == (conflict ? WAL_ECONFLICT : WAL_ENOPARENT)) {
        return;
    }
    workload__record_status(workload, status);
    if (!workload__is_documented(status)) {
        ledger_fail("step %u: a batch with %s answers %d: %s", workload->step,
                    conflict ? "another tail" : "an unknown parent", status,
                    error.text);
    }
}

/* Sends an earlier batch again; or its ids with other content. */
static void step_resend(struct workload *workload, struct wal_session *session,
                        uint32_t number, struct rng *rng)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct ledger *ledger = workload->ledger;
    uint32_t entry = workload__random_entry(workload, number, 0, rng);
    struct submit_mode submit_mode = {
        .durability = workload__random(rng, 2) == 0 ? WAL_DURABLE : WAL_WRITTEN,
        .other = workload__random(rng, 3) == 0};
    enum wal_status status;
    uint32_t batch;

    if (entry == LEDGER_NONE) {
        return;
    }
    batch = ledger->entries[entry].batch;
    if (ledger->batches[batch].part_count > 0) {
        return; /* what came since would be written over */
    }
    status = submit(workload, batch, session, &submit_mode, &error);
    if (!submit_mode.other) {
        workload__record_answer(workload, batch, submit_mode.durability, status,
                                &error);
    } else if (status != WAL_EEXISTS) {
        workload__record_status(workload, status);
        if (!workload__is_documented(status)) {
            ledger_fail("step %u: another entry under a known id answers %d",
                        workload->step, status);
        }
    }
}

static void step_create(struct workload *workload)
{
    struct workload_actor *actor = &workload->actors[workload->actor];
    struct wal_session_options options = {.struct_size = sizeof(options)};
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t number = ledger_add_session(workload->ledger, workload->actor,
                                         LEDGER_NONE, LEDGER_NONE);
    enum wal_status status;
    char id[LEDGER_TEXT];

    ledger_session_id(number, id);
    options.id = ledger_slice(id);
    options.cwd = ledger_slice(number % 2 == 0 ? "/work/a" : "/work/b");
    options.title = ledger_slice("a title");
    options.metadata = ledger_slice("{\"made\":\"by hand\"}");
    status = wal_session_create(actor->store, &options,
                                &actor->sessions[number], &error);
    workload__record_answer(workload, workload->ledger->sessions[number].batch,
                            WAL_DURABLE, status, &error);
}

static void step_fork(struct workload *workload, struct wal_session *session,
                      uint32_t source)
{
    struct workload_actor *actor = &workload->actors[workload->actor];
    struct wal_session_options options = {.struct_size = sizeof(options)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct ledger *ledger = workload->ledger;
    char head[LEDGER_TEXT];
    char id[LEDGER_TEXT];
    enum wal_status status;
    uint32_t number;

    if (!workload__head(workload, session, head) || head[0] == '\0') {
        return;
    }
    number = ledger_add_session(ledger, workload->actor, source,
                                ledger_find_entry(ledger, ledger_slice(head)));
    ledger_session_id(number, id);
    options.id = ledger_slice(id);
    status = wal_session_fork(session, ledger_slice(head), &options,
                              &actor->sessions[number], &error);
    workload__record_answer(workload, ledger->sessions[number].batch,
                            WAL_DURABLE, status, &error);
}

static void step_store(struct workload *workload, uint32_t submit_mode)
{
    struct workload_actor *actor = &workload->actors[workload->actor];
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    switch (submit_mode) {
    case 0:
        status = wal__store_commit_mark(actor->store, &error);
        break;
    case 1:
        workload__record_status(workload,
                                workload_close(workload, workload->actor));
        return;
    default:
        status = wal_sync(actor->store, &error);
        if (status == WAL_OK) {
            workload__mark_synced(workload, workload->actor);
        } else {
            workload__mark_uncertain(workload->ledger, workload->actor);
        }
        break;
    }
    workload__record_status(workload, status);
    if (status != WAL_OK && !workload__is_documented(status)) {
        ledger_fail("step %u: a sync or mark answers %d: %s", workload->step,
                    status, error.text);
    }
}

/* A deleted session accepts no append, in any process that has it open. */
static void step_deleted(struct workload *workload, uint32_t number)
{
    const struct ledger *ledger = workload->ledger;
    struct wal_session *session =
        workload->actors[workload->actor].sessions[number];
    uint32_t drop = ledger->sessions[number].drop;
    struct wal_entry entry = {.struct_size = sizeof(entry),
                              .type = ledger_slice("message"),
                              .payload = ledger_slice("{}")};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    if (session == NULL ||
        ledger->batches[ledger->parts[drop].batch].state != LEDGER_DURABLE) {
        return;
    }
    status = wal_append(session, &entry, 1, NULL, NULL, &error);
    if (status == WAL_ENOTFOUND) {
        return;
    }
    workload__record_status(workload, status);
    if (!workload__is_documented(status)) {
        ledger_fail("step %u: a deleted session answers %d: %s", workload->step,
                    status, error.text);
    }
}

/* What few rolls come to, at fixed steps, so that short lives have it too: a
 * fork, and the deletion of what was forked. */
static uint32_t pick_step(const struct workload *workload, struct rng *rng)
{
    uint32_t submit_mode = workload__random(rng, 100);

    if (workload->step % 12 == 5) {
        return STEP_FORK;
    }
    return workload->step % 24 == 9 ? STEP_DELETE : submit_mode;
}

/* The next one that is not deleted, or the same when all are. */
static uint32_t live_session(const struct workload *workload, uint32_t number)
{
    uint32_t count = workload->ledger->session_count;

    for (uint32_t i = 0; i < count; i++) {
        if (!ledger_may_be_deleted(workload->ledger, (number + i) % count)) {
            return (number + i) % count;
        }
    }
    return number;
}

/* Two are left in any case. */
static bool may_delete(const struct workload *workload)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < workload->ledger->session_count; i++) {
        left += !ledger_may_be_deleted(workload->ledger, i);
    }
    return left > 2;
}

static void run_step(struct workload *workload, struct rng *rng)
{
    uint32_t sessions = workload->ledger->session_count;
    uint32_t number = workload__random(rng, sessions == 0 ? 1 : sessions);
    uint32_t submit_mode = pick_step(workload, rng);
    struct wal_session *session;

    if (sessions < 2 || (submit_mode < 4 && sessions < SESSION_LIMIT)) {
        step_create(workload);
        return;
    }
    if (submit_mode >= 84) {
        step_store(workload, submit_mode < 88 ? 0 : (submit_mode < 92 ? 1 : 2));
        return;
    }
    if (ledger_may_be_deleted(workload->ledger, number)) {
        step_deleted(workload, number);
        number = live_session(workload, number);
    }
    session = workload__session(workload, number);
    if (session == NULL) {
        return;
    }
    if (submit_mode < 10 && sessions < SESSION_LIMIT) {
        step_fork(workload, session, number);
    } else if (submit_mode < 13) {
        workload__step_stale(workload, session, number, rng);
    } else if (submit_mode < 16) {
        step_refused(workload, session, number, rng);
    } else if (submit_mode < 24) {
        step_resend(workload, session, number, rng);
    } else if (submit_mode <= STEP_DELETE && may_delete(workload)) {
        workload__step_delete(workload, number);
    } else if (submit_mode < 55) {
        workload__step_parts(workload, session, number, rng);
    } else {
        step_append(workload, session, number, rng);
    }
}

static struct rng rng_of_step(const struct workload *workload)
{
    return (struct rng){workload->options.seed * 0x100000001b3u +
                        workload->step};
}

uint32_t workload_next_actor(const struct workload *workload)
{
    struct rng rng = rng_of_step(workload);

    return workload__random(&rng, workload->options.actors);
}

static bool is_blob_step(const struct workload *workload)
{
    uint32_t every = workload->options.blobs_every;

    return every != 0 && workload->step % every == every - 1;
}

void workload_step(struct workload *workload)
{
    struct rng rng = rng_of_step(workload);
    struct workload_actor *actor;

    workload->actor = workload__random(&rng, workload->options.actors);
    workload->status = WAL_OK;
    workload->died = false;
    actor = &workload->actors[workload->actor];
    if (setjmp(workload->death) != 0) {
        workload_kill(workload, workload->actor);
        workload_free_call(workload);
        workload->step++;
        return;
    }
    if (actor->poisoned) {
        workload__record_status(workload,
                                workload_close(workload, workload->actor));
    }
    if (actor->store == NULL) {
        workload__record_status(workload,
                                workload_open(workload, workload->actor));
    }
    if (actor->store != NULL) {
        actor->poisoned = workload__is_read_only(actor->store);
    }
    if (actor->store != NULL && !actor->poisoned) {
        run_step(workload, &rng);
    }
    if (is_blob_step(workload) && actor->store != NULL && !actor->poisoned) {
        workload__step_blob(workload);
    }
    workload->step++;
}

void workload_run(struct workload *workload, uint32_t until)
{
    while (workload->step < until) {
        workload_step(workload);
    }
}

/* ----------------------------------------------------------- by hand --- */

enum wal_status workload_add_session(struct workload *workload, uint32_t actor)
{
    workload->actor = actor;
    workload->status = WAL_OK;
    step_create(workload);
    return workload->status;
}

enum wal_status workload_append(struct workload *workload, uint32_t actor,
                                uint32_t session, uint32_t durability,
                                uint32_t size)
{
    struct ledger *ledger = workload->ledger;
    struct ledger_entry entry = {.parent_kind = LEDGER_PARENT_HEAD,
                                 .parent = LEDGER_NONE};
    struct submit_mode submit_mode = {.durability = durability};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *handle;
    enum wal_status status;
    uint32_t batch;

    workload->actor = actor;
    if (ledger_may_be_deleted(ledger, session)) {
        return WAL_ENOTFOUND;
    }
    handle = workload__session(workload, session);
    if (handle == NULL) {
        return WAL_ENOTFOUND;
    }
    batch = ledger_add_batch(ledger, session, actor);
    ledger->batches[batch].durability = durability;
    for (uint32_t left = size; left > 0; left -= entry.size) {
        entry.size = left < WORKLOAD_INLINE ? left : WORKLOAD_INLINE;
        entry.seed = ledger->entry_count;
        ledger_add_entry(ledger, batch, &entry);
    }
    status = submit(workload, batch, handle, &submit_mode, &error);
    if (status == WAL_EDAMAGED) {
        ledger->batches[batch].state = LEDGER_REFUSED;
        return status;
    }
    workload__record_answer(workload, batch, durability, status, &error);
    return status;
}

enum wal_status workload_probe(struct workload *workload, uint32_t number)
{
    uint32_t sessions = workload->ledger->session_count;

    for (uint32_t i = 0; i < sessions; i++) {
        enum wal_status status =
            workload_append(workload, number, i, WAL_DURABLE, 120);

        if (status == WAL_EPOISONED || status == WAL_EREADONLY ||
            status == WAL_ELOCKED) {
            return status;
        }
        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            ledger_fail("an append after all is well answers %d", status);
        }
    }
    if (sessions == 0) {
        enum wal_status status = workload_add_session(workload, number);

        if (status != WAL_OK) {
            return status;
        }
    }
    return workload__probe_blob(workload, number);
}
