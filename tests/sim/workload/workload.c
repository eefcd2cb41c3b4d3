/*
 * workload.c - see workload.h.
 */
#include "tests/sim/workload/workload.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/blob.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/put_unsynced.h"
#include "tests/lib/rng.h"
#include "tests/lib/sanitizers.h"
#include "tests/lib/test.h"
#include "tests/sim/workload/internal.h"

/* ------------------------------------------------------------ making --- */

/* What a directory that could not be synced holds after a loss of power is not promised: only the
 * store's own names are not given anew when that fails. */
static void mark_names_unsynced(void *arg, const struct sim_event *event)
{
    struct workload *workload = arg;
    bool own = event->call == SIM_SYNC_DIRECTORY && strchr(event->path + 1, '/') == NULL;
    bool segment = event->call == SIM_UNLINK && event->sys_errno != ENOENT &&
                   strstr(event->path, ".seg") != NULL;

    if (event->sys_errno != 0 && (own || segment)) {
        workload->names_unsynced = true;
    }
}

bool workload_is_long(void)
{
    return sample_is_whole() != 0;
}

uint32_t workload_sample(uint32_t stride)
{
    return workload_is_long() ? 1 : stride * sample_stride();
}

uint32_t workload_stride(enum sim_call call, uint32_t every)
{
    if (call == SIM_ANY) {
        return every;
    }
    return WITH_ADDRESS_SANITIZER && !workload_is_long() ? 4 : 1;
}

uint32_t workload_count(uint32_t long_count, uint32_t count)
{
    if (workload_is_long()) {
        return long_count;
    }
    return count > sample_stride() ? count / sample_stride() : 1;
}

struct workload *workload_create(const struct workload_options *options)
{
    struct workload *workload = calloc(1, sizeof(*workload));

    WAL__ASSERT(workload != NULL);
    workload->options = *options;
    workload->disk = sim_disk_create(options->seed);
    workload->ledger = calloc(1, sizeof(*workload->ledger));
    WAL__ASSERT(workload->ledger != NULL);
    return workload;
}

/* The memory of an engine that is not called any more. */
static void free_engine(struct workload_actor *actor)
{
    if (actor->process == NULL) {
        return;
    }
    sim_process_destroy(actor->process);
    arena_heap_deinit(&actor->arena);
    memset(actor, 0, sizeof(*actor));
}

/* A failure was reported, or the process died: which queued batches it concerns is not known. */
static void workload__mark_uncertain(struct ledger *ledger, uint32_t actor)
{
    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        struct ledger_batch *batch = &ledger->batches[i];

        if (batch->actor == actor && batch->state == LEDGER_OPEN) {
            batch->is_uncertain = true;
        }
    }
}

struct workload *workload_clone(const struct workload *workload)
{
    struct workload *copy = calloc(1, sizeof(*copy));

    WAL__ASSERT(copy != NULL);
    copy->options = workload->options;
    copy->step = workload->step;
    copy->has_damage = workload->has_damage;
    copy->disk = sim_disk_clone(workload->disk);
    sim_disk_on_call(copy->disk, mark_names_unsynced, copy);
    copy->ledger = malloc(sizeof(*copy->ledger));
    WAL__ASSERT(copy->ledger != NULL);
    ledger_copy(copy->ledger, workload->ledger);
    for (uint32_t i = 0; i < LEDGER_ACTORS; i++) {
        workload__mark_uncertain(copy->ledger, i);
    }
    return copy;
}

void workload_kill(struct workload *workload, uint32_t actor)
{
    free_engine(&workload->actors[actor]);
    workload__mark_uncertain(workload->ledger, actor);
}

void workload_crash(struct workload *workload, const struct sim_power_loss *loss, uint64_t seed)
{
    for (uint32_t i = 0; i < LEDGER_ACTORS; i++) {
        workload_kill(workload, i);
    }
    if (loss != NULL) {
        sim_disk_power_loss(workload->disk, loss, seed);
    }
}

void workload_destroy(struct workload *workload)
{
    if (workload == NULL) {
        return;
    }
    workload_crash(workload, NULL, 0);
    sim_disk_destroy(workload->disk);
    free(workload->ledger);
    free(workload);
}

/* --------------------------------------------------------- processes --- */

static void on_death(void *arg)
{
    struct workload *workload = arg;

    workload->died = true;
    longjmp(workload->death, 1);
}

struct workload_actor *workload_start(struct workload *workload, uint32_t number)
{
    struct workload_actor *actor = &workload->actors[number];

    if (actor->process != NULL) {
        return actor;
    }
    actor->process = sim_process_create(workload->disk);
    sim_process_on_death(actor->process, on_death, workload);
    arena_heap_init(&actor->arena);
    faulty_heap_init(&actor->heap, &actor->arena.heap);
    return actor;
}

/* Failures that any call may answer with when something was made to fail. */
bool workload__is_documented(enum wal_status status)
{
    return status == WAL_ENOSPACE || status == WAL_EIO || status == WAL_ENOMEM ||
           status == WAL_EPOISONED || status == WAL_ELOCKED || status == WAL_EREADONLY;
}

void workload__record_status(struct workload *workload, enum wal_status status)
{
    if (status == WAL_OK) {
        return;
    }
    if (workload->status == WAL_OK || status == WAL_EPOISONED) {
        workload->status = status;
    }
    if (status == WAL_EPOISONED) {
        workload->actors[workload->actor].poisoned = true;
    }
}

enum wal_status workload_open_raw(struct workload *workload, uint32_t number, uint32_t flags,
                                  struct wal_error *error)
{
    struct workload_actor *actor = workload_start(workload, number);
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .flags = flags | workload->options.open_flags,
                                       .group_align = workload->options.group_align};
    enum wal_status status;

    if (actor->store != NULL) {
        return WAL_OK;
    }
    status = wal__store_open(WORKLOAD_ROOT, &options, &actor->heap.heap,
                             sim_process_io(actor->process), &actor->store, error);
    if (status == WAL_OK) {
        /* Every segment that ends has its sessions folded, with more syncs than one. */
        actor->store->core.fold.slots_min = 1;
        actor->store->core.fold.loaded_max = 1;
        actor->store->core.fold.sync_step = 1;
    }
    if (status != WAL_OK && arena_heap_count(&actor->arena) != 0) {
        ledger_fail("step %u: an opening that failed (%d) leaves %zu blocks", workload->step,
                    status, arena_heap_count(&actor->arena));
    }
    return status;
}

enum wal_status workload_open(struct workload *workload, uint32_t number)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = workload_open_raw(workload, number, WAL_OPEN_CREATE, &error);

    if (status != WAL_OK && !workload__is_documented(status)) {
        ledger_fail("step %u: opening answers %d: %s (%s)", workload->step, status, error.text,
                    error.file);
    }
    return status;
}

static void close_sessions(struct workload_actor *actor)
{
    for (uint32_t i = 0; i < LEDGER_SESSIONS; i++) {
        wal_session_close(actor->sessions[i]);
        actor->sessions[i] = NULL;
    }
}

/* Marks every batch that was acknowledged to this actor as durable. */
static void workload__mark_synced(struct workload *workload, uint32_t number)
{
    struct ledger *ledger = workload->ledger;

    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        struct ledger_batch *batch = &ledger->batches[i];
        bool queued =
            batch->state == LEDGER_OPEN && batch->durability == WAL_QUEUED && !batch->is_uncertain;

        if (batch->actor == number && (queued || batch->state == LEDGER_WRITTEN)) {
            batch->state = LEDGER_DURABLE;
        }
    }
    if (workload->on_durable != NULL) {
        workload->on_durable(workload->on_durable_arg);
    }
}

enum wal_status workload_close(struct workload *workload, uint32_t number)
{
    struct workload_actor *actor = &workload->actors[number];
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_store *store = actor->store;
    enum wal_status status;

    if (store == NULL) {
        return WAL_OK;
    }
    close_sessions(actor);
    actor->store = NULL;
    actor->poisoned = false;
    status = wal_close(store, &error);
    if (status == WAL_OK) {
        workload__mark_synced(workload, number);
    } else {
        workload__mark_uncertain(workload->ledger, number);
        if (!workload__is_documented(status)) {
            ledger_fail("step %u: closing answers %d: %s", workload->step, status, error.text);
        }
    }
    if (arena_heap_count(&actor->arena) != 0) {
        ledger_fail("step %u: closing (%d) leaves %zu blocks of memory", workload->step, status,
                    arena_heap_count(&actor->arena));
    }
    return status;
}

/* ---------------------------------------------------------- checking --- */

/* Whether the store could be opened to read only. */
static bool workload__is_read_only(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};

    return wal_store_get_info(store, &info, &error) == WAL_OK && info.status == WAL_EREADONLY;
}

bool workload_check(struct workload *workload, uint32_t number)
{
    struct wal_store *store = workload->actors[number].store;

    if (store == NULL || workload__is_read_only(store)) {
        return false;
    }
    ledger_check(workload->ledger, store, LEDGER_NO_LOSS, NULL);
    return true;
}

static uint32_t tail_of(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};

    if (wal_store_get_info(store, &info, &error) != WAL_OK) {
        ledger_fail("the store has no status: %s", error.text);
    }
    return info.tail;
}

static bool workload__blobs_are_damaged(const struct wal_store *store);

uint64_t workload_recover(struct workload *workload, enum ledger_loss loss,
                          enum workload_finish end)
{
    struct workload_actor *actor = &workload->actors[0];
    struct ledger_view *view = malloc(sizeof(*view));
    enum wal_status status;
    uint64_t digest;

    WAL__ASSERT(view != NULL);
    for (uint32_t i = 0; i < LEDGER_ACTORS; i++) {
        WAL__ASSERT(workload->actors[i].store == NULL);
    }
    status = workload_open(workload, 0);
    if (status != WAL_OK) {
        ledger_fail("recovery answers %d", status);
    }
    if (!workload->has_damage && tail_of(actor->store) == WAL_TAIL_DAMAGED) {
        ledger_fail("a crash is taken for damage");
    }
    if (!workload->has_damage && workload__blobs_are_damaged(actor->store)) {
        ledger_fail("a crash is taken for a loss of content");
    }
    ledger_check(workload->ledger, actor->store, loss, view);
    if (!workload->has_damage) {
        ledger_check_counts(actor->store);
    }
    ledger_resolve(workload->ledger, view);
    digest = view->digest;
    free(view);
    if (end == WORKLOAD_KILL) {
        workload_kill(workload, 0);
    } else if (end == WORKLOAD_CLOSE) {
        status = workload_close(workload, 0);
        if (status != WAL_OK) {
            ledger_fail("closing after recovery answers %d", status);
        }
    }
    return digest;
}

void workload_check_after_fault(struct workload *workload, uint64_t seed)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY, .garbage = seed % 2 == 0};
    uint32_t alive = LEDGER_ACTORS;

    for (uint32_t i = 0; i < workload->options.actors; i++) {
        if (workload_check(workload, i)) {
            alive = i;
        }
    }
    if (alive == LEDGER_ACTORS || workload_probe(workload, alive) != WAL_OK) {
        for (uint32_t i = 0; i < workload->options.actors; i++) {
            workload->actor = i;
            (void)workload_close(workload, i);
        }
        (void)workload_recover(workload, LEDGER_NO_LOSS, WORKLOAD_KEEP_OPEN);
        if (workload_probe(workload, 0) != WAL_OK) {
            ledger_fail("the store is poisoned though all had closed it");
        }
        alive = 0;
    }
    for (uint32_t i = 0; i < workload->options.actors; i++) {
        enum wal_status status = workload_open(workload, i);

        if (status != WAL_OK) {
            ledger_fail("process %u cannot join: %d", i, status);
        }
        (void)workload_check(workload, i);
    }
    workload_crash(workload, workload->names_unsynced ? NULL : &loss, seed);
    (void)workload_recover(workload, LEDGER_POWER_LOSS, WORKLOAD_CLOSE);
}

/* --- the script: what a step does, and how its batches are handed in ------ */

enum {
    SESSION_LIMIT = 8, /* that the script makes */
    STEP_FORK = 9,     /* of 100 */
    STEP_DELETE = 25
};

/* ------------------------------------------------------------- calls --- */

/* What the status of a batch means. */
void workload__record_answer(struct workload *workload, uint32_t number, uint32_t durability,
                             enum wal_status status, const struct wal_error *error)
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
        } else if (durability == WAL_WRITTEN && batch->state != LEDGER_DURABLE) {
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
        ledger_fail("step %u: batch %u answers %d: %s (%s)", workload->step, number, status,
                    error->text, error->file);
    }
    if (durability == WAL_QUEUED) {
        workload__mark_uncertain(workload->ledger, batch->actor); /* it speaks of an earlier one */
    }
    if (batch->state == LEDGER_OPEN && !batch->again) {
        batch->state = LEDGER_REFUSED;
    }
}

/* The handle of a session, opened when it is needed; null when it cannot. */
struct wal_session *workload__session(struct workload *workload, uint32_t session)
{
    struct workload_actor *actor = &workload->actors[workload->actor];
    const struct ledger *ledger = workload->ledger;
    struct wal_error error = {.struct_size = sizeof(error)};
    enum ledger_state state = ledger->batches[ledger->sessions[session].batch].state;
    char id[LEDGER_TEXT];
    enum wal_status status;

    if (actor->sessions[session] != NULL) {
        return actor->sessions[session];
    }
    ledger_session_id(session, id);
    status = wal_session_open(actor->store, ledger_slice(id), &actor->sessions[session], &error);
    if (status == WAL_ENOTFOUND &&
        (state < LEDGER_WRITTEN || ledger_may_be_deleted(ledger, session))) {
        return NULL;
    }
    workload__record_status(workload, status);
    if (status != WAL_OK && !workload__is_documented(status)) {
        ledger_fail("step %u: opening session %u answers %d: %s", workload->step, session, status,
                    error.text);
    }
    return actor->sessions[session];
}

/* The id of the head as the store has it; false when it cannot tell. */
static bool workload__head(struct workload *workload, struct wal_session *session,
                           char out[LEDGER_TEXT])
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = wal_session_get_info(session, &info, &error);

    workload__record_status(workload, status);
    if (status != WAL_OK) {
        if (!workload__is_documented(status)) {
            ledger_fail("step %u: a session's status answers %d: %s", workload->step, status,
                        error.text);
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

/* Hands a batch to the store. The ledger is never changed by the mode: a copy of it may be
 * taken during the call. */
static enum wal_status submit(struct workload *workload, uint32_t number,
                              struct wal_session *session, const struct submit_mode *submit_mode,
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
        ledger_fill_entry(workload->ledger, batch->first + i, &entries[i], &workload->texts[i]);
    }
    if (submit_mode->other) {
        workload->texts[0].payload[entries[0].payload.size - 4] ^= 1;
    }
    if (submit_mode->by_ticket && submit_mode->durability != WAL_QUEUED) {
        status = wal_submit(session, entries, batch->count, &options, &ticket, error);
        if (status == WAL_OK) {
            status = wal_ticket_wait(ticket, -1, NULL, error);
            wal_ticket_destroy(ticket);
        }
    } else {
        status = wal_append(session, entries, batch->count, &options, NULL, error);
    }
    workload_free_call(workload);
    return status;
}

/* ------------------------------------------------------------- steps --- */

/* A batch of new entries in the ledger. */
static uint32_t make_batch(struct workload *workload, uint32_t session, struct rng *rng)
{
    struct ledger *ledger = workload->ledger;
    uint32_t count = workload__random(rng, 3) == 0 ? 1 + workload__random(rng, WORKLOAD_BATCH) : 1;
    uint32_t batch = ledger_add_batch(ledger, session, workload->actor);
    uint32_t durability = workload__random(rng, 5);

    ledger->batches[batch].durability =
        durability < 2 ? WAL_DURABLE : (durability < 4 ? WAL_WRITTEN : WAL_QUEUED);
    workload__add_entries(workload, batch, count, rng);
    return batch;
}

bool workload__sync(struct workload *workload)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = wal_sync(workload->actors[workload->actor].store, &error);

    workload__record_status(workload, status);
    if (status != WAL_OK) {
        workload__mark_uncertain(workload->ledger, workload->actor);
    }
    return status == WAL_OK;
}

/* Reads the head that a batch is to expect; false, and the batch is recorded as refused, when it
 * cannot be read. */
static bool read_expected_head(struct workload *workload, struct wal_session *session,
                               uint32_t batch, char head[LEDGER_TEXT])
{
    struct ledger_batch *recorded = &workload->ledger->batches[batch];

    recorded->durability = WAL_DURABLE;
    if (workload__sync(workload) && workload__head(workload, session, head)) {
        return true;
    }
    recorded->state = LEDGER_REFUSED;
    return false;
}

static void step_append(struct workload *workload, struct wal_session *session, uint32_t number,
                        struct rng *rng)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t batch = make_batch(workload, number, rng);
    const struct ledger_batch *recorded = &workload->ledger->batches[batch];
    bool expects =
        workload__random(rng, 10) == 0 && workload->ledger->entries[recorded->first].stream == 0;
    struct submit_mode submit_mode = {.by_ticket = workload__random(rng, 3) == 0};
    char head[LEDGER_TEXT];
    enum wal_status status;

    status = WAL_ECONFLICT;
    /* A builder that died may have left a whole group, which is not seen until the next one takes
     * it: then the head has moved, once. */
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
    workload__record_answer(workload, batch, submit_mode.durability, status, &error);
}

/* A batch that must be refused, with this answer. */
static void step_refused(struct workload *workload, struct wal_session *session, uint32_t number,
                         struct rng *rng)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t batch = make_batch(workload, number, rng);
    struct ledger_batch *recorded = &workload->ledger->batches[batch];
    struct ledger_entry *last = &workload->ledger->entries[recorded->first + recorded->count - 1];
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
                    conflict ? "another tail" : "an unknown parent", status, error.text);
    }
}

/* Sends an earlier batch again; or its ids with other content. */
static void step_resend(struct workload *workload, struct wal_session *session, uint32_t number,
                        struct rng *rng)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct ledger *ledger = workload->ledger;
    uint32_t entry = workload__random_entry(workload, number, 0, rng);
    struct submit_mode submit_mode = {.durability =
                                          workload__random(rng, 2) == 0 ? WAL_DURABLE : WAL_WRITTEN,
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
        workload__record_answer(workload, batch, submit_mode.durability, status, &error);
    } else if (status != WAL_EEXISTS) {
        workload__record_status(workload, status);
        if (!workload__is_documented(status)) {
            ledger_fail("step %u: another entry under a known id answers %d", workload->step,
                        status);
        }
    }
}

static void step_create(struct workload *workload)
{
    struct workload_actor *actor = &workload->actors[workload->actor];
    struct wal_session_options options = {.struct_size = sizeof(options)};
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t number =
        ledger_add_session(workload->ledger, workload->actor, LEDGER_NONE, LEDGER_NONE);
    enum wal_status status;
    char id[LEDGER_TEXT];

    ledger_session_id(number, id);
    options.id = ledger_slice(id);
    options.cwd = ledger_slice(number % 2 == 0 ? "/work/a" : "/work/b");
    options.title = ledger_slice("a title");
    options.metadata = ledger_slice("{\"made\":\"by hand\"}");
    status = wal_session_create(actor->store, &options, &actor->sessions[number], &error);
    workload__record_answer(workload, workload->ledger->sessions[number].batch, WAL_DURABLE, status,
                            &error);
}

static void step_fork(struct workload *workload, struct wal_session *session, uint32_t source)
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
    status =
        wal_session_fork(session, ledger_slice(head), &options, &actor->sessions[number], &error);
    workload__record_answer(workload, ledger->sessions[number].batch, WAL_DURABLE, status, &error);
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
        workload__record_status(workload, workload_close(workload, workload->actor));
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
        ledger_fail("step %u: a sync or mark answers %d: %s", workload->step, status, error.text);
    }
}

/* A deleted session accepts no append, in any process that has it open. */
static void step_deleted(struct workload *workload, uint32_t number)
{
    const struct ledger *ledger = workload->ledger;
    struct wal_session *session = workload->actors[workload->actor].sessions[number];
    uint32_t drop = ledger->sessions[number].drop;
    struct wal_entry entry = {.struct_size = sizeof(entry),
                              .type = ledger_slice("message"),
                              .payload = ledger_slice("{}")};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    if (session == NULL || ledger->batches[ledger->parts[drop].batch].state != LEDGER_DURABLE) {
        return;
    }
    status = wal_append(session, &entry, 1, NULL, NULL, &error);
    if (status == WAL_ENOTFOUND) {
        return;
    }
    workload__record_status(workload, status);
    if (!workload__is_documented(status)) {
        ledger_fail("step %u: a deleted session answers %d: %s", workload->step, status,
                    error.text);
    }
}

/* What few rolls come to, at fixed steps, so that short lives have it too: a fork, and the deletion
 * of what was forked. */
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
    return (struct rng){workload->options.seed * 0x100000001b3u + workload->step};
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

static void workload__step_blob(struct workload *workload);

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
        workload__record_status(workload, workload_close(workload, workload->actor));
    }
    if (actor->store == NULL) {
        workload__record_status(workload, workload_open(workload, workload->actor));
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

enum wal_status workload_append(struct workload *workload, uint32_t actor, uint32_t session,
                                uint32_t durability, uint32_t size)
{
    struct ledger *ledger = workload->ledger;
    struct ledger_entry entry = {.parent_kind = LEDGER_PARENT_HEAD, .parent = LEDGER_NONE};
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

static enum wal_status workload__probe_blob(struct workload *workload, uint32_t actor);

enum wal_status workload_probe(struct workload *workload, uint32_t number)
{
    uint32_t sessions = workload->ledger->session_count;

    for (uint32_t i = 0; i < sessions; i++) {
        enum wal_status status = workload_append(workload, number, i, WAL_DURABLE, 120);

        if (status == WAL_EPOISONED || status == WAL_EREADONLY || status == WAL_ELOCKED) {
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

/* --- entries -------------------------------------------------------------- */

/*
 * The random numbers of a step of the script, and the entries that it makes of them.
 */

uint32_t workload__random(struct rng *rng, uint32_t sides)
{
    return (uint32_t)rng_below(&rng->state, sides);
}

uint32_t workload__size(const struct workload *workload, struct rng *rng)
{
    const struct workload_options *options = &workload->options;

    if (options->huge_every != 0 && workload__random(rng, options->huge_every) == 0) {
        return 1000000 + workload__random(rng, 2500000);
    }
    if (options->large_every != 0 && workload__random(rng, options->large_every) == 0) {
        return 100 * 1024 + workload__random(rng, 200 * 1024);
    }
    if (workload__random(rng, 12) == 0) {
        return 2000 + workload__random(rng, 30000);
    }
    return 100 + workload__random(rng, 900);
}

/* An entry that was promised in this session and stream, or LEDGER_NONE. */
uint32_t workload__random_entry(const struct workload *workload, uint32_t session, uint32_t stream,
                                struct rng *rng)
{
    const struct ledger *ledger = workload->ledger;
    uint32_t start = workload__random(rng, ledger->entry_count + 1);

    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        uint32_t number = (start + i) % ledger->entry_count;
        const struct ledger_entry *entry = &ledger->entries[number];

        if (entry->session == session && entry->stream == stream &&
            ledger->batches[entry->batch].state >= LEDGER_WRITTEN) {
            return number;
        }
    }
    return LEDGER_NONE;
}

/* A root, under an earlier entry, under one of the same batch, under the fork point, or under the
 * head. */
static void choose_parent(const struct workload *workload, uint32_t batch,
                          struct ledger_entry *entry, uint32_t way, struct rng *rng)
{
    const struct ledger *ledger = workload->ledger;
    const struct ledger_batch *recorded = &ledger->batches[batch];
    uint32_t at = ledger->sessions[recorded->session].at;

    entry->parent = LEDGER_NONE;
    if (way == 0) {
        entry->parent = workload__random_entry(workload, recorded->session, entry->stream, rng);
    } else if (way == 1) {
        entry->parent_kind = LEDGER_PARENT_NONE;
    } else if (way == 2 && recorded->count > 0) {
        entry->parent = recorded->first;
    } else if (way == 3) {
        entry->parent = at;
    }
    if (entry->parent != LEDGER_NONE) {
        if (ledger->entries[entry->parent].stream != entry->stream) {
            entry->parent = LEDGER_NONE;
            return;
        }
        entry->parent_kind = LEDGER_PARENT_ENTRY;
    }
}

/* Sets the kind of an entry. A line and an entry that cannot refer to anything are plain. */
static void choose_kind(const struct workload *workload, uint32_t session,
                        struct ledger_entry *entry, struct rng *rng)
{
    static const enum ledger_kind kinds[] = {LEDGER_PLAIN,     LEDGER_PLAIN,      LEDGER_USER,
                                             LEDGER_DELTA,     LEDGER_COMPACTION, LEDGER_BRANCH,
                                             LEDGER_REDACTION, LEDGER_REDACTION};
    const struct ledger *ledger = workload->ledger;
    enum ledger_kind kind = kinds[workload__random(rng, 8)];
    uint32_t other = workload__random(rng, ledger->session_count);
    uint32_t at = ledger->sessions[session].at;
    bool shared = workload__random(rng, 3) == 0;

    entry->target_entry = LEDGER_NONE;
    if ((entry->flags & WAL_ENTRY_LINE) != 0) {
        return;
    }
    if (kind == LEDGER_COMPACTION || kind == LEDGER_REDACTION) {
        entry->target_entry = workload__random_entry(workload, session, entry->stream, rng);
        if (entry->target_entry == LEDGER_NONE || shared) {
            entry->target_entry = at;
        }
    } else if (kind == LEDGER_BRANCH && !ledger_may_be_deleted(ledger, other)) {
        entry->target_entry = workload__random_entry(workload, other, 0, rng);
    }
    if (kind >= LEDGER_COMPACTION && entry->target_entry == LEDGER_NONE) {
        return;
    }
    if (kind == LEDGER_COMPACTION && ledger->entries[entry->target_entry].stream != entry->stream) {
        return;
    }
    entry->kind = kind;
    if (kind == LEDGER_DELTA) {
        entry->flags |= WAL_ENTRY_LINE; /* it is on the branch, and stays */
    }
    if (kind == LEDGER_REDACTION && entry->size > LEDGER_REASON) {
        entry->size = LEDGER_REASON;
    }
}

void workload__add_entries(struct workload *workload, uint32_t batch, uint32_t count,
                           struct rng *rng)
{
    static const uint32_t flags[] = {
        0, 0, 0, 0, 0, WAL_ENTRY_HEAD_KEEP, WAL_ENTRY_HEAD_MOVE, WAL_ENTRY_LINE};
    struct ledger *ledger = workload->ledger;

    for (uint32_t i = 0; i < count; i++) {
        struct ledger_entry entry = {.stream = workload__random(rng, 8) == 0,
                                     .flags = flags[workload__random(rng, 8)],
                                     .size = workload__size(workload, rng),
                                     .seed = workload__random(rng, 1u << 30)};

        choose_parent(workload, batch, &entry, workload__random(rng, 8), rng);
        choose_kind(workload, ledger->batches[batch].session, &entry, rng);
        if (entry.kind == LEDGER_COMPACTION) {
            /* The first kept entry must be an ancestor. */
            entry.parent_kind = LEDGER_PARENT_ENTRY;
            entry.parent = entry.target_entry;
        }
        ledger_add_entry(ledger, batch, &entry);
    }
}

/* --- blobs ---------------------------------------------------------------- */

/*
 * A step's content: new, a version of what is there, or the same again; durable, or only written.
 */

/* Which content the step puts. */
static uint32_t choose_blob(struct workload *workload, struct rng *rng,
                            const struct ledger_blob **base)
{
    struct ledger *ledger = workload->ledger;
    uint32_t way = workload__random(rng, 6);
    uint32_t size = workload__random(rng, 8) == 0 ? 20000 + workload__random(rng, 180000)
                                                  : workload__random(rng, 4000);
    const struct ledger_blob *old;

    if (workload->options.large_every != 0 && workload__random(rng, 16) == 0) {
        size = 1024 * 1024 + workload__random(rng, 300000);
    }
    if (way < 3 || ledger->blob_count == 0) {
        return ledger_add_blob(ledger, ledger->blob_count, size, 0);
    }
    old = &ledger->blobs[workload__random(rng, ledger->blob_count)];
    if (way == 3) {
        return (uint32_t)(old - ledger->blobs);
    }
    *base = old;
    return ledger_add_blob(ledger, old->seed, old->size, workload->step + 1);
}

static enum wal_status put_by_base(struct wal_store *store, struct wal__span content,
                                   const struct ledger_blob *base, struct wal_error *error)
{
    struct wal__blob_put_result result = {0};
    struct wal__digest digest;
    struct wal__digest known;

    if (base != NULL) {
        memcpy(known.bytes, base->digest, sizeof(known.bytes));
    }
    return put_unsynced(store, content, base == NULL ? NULL : &known, WAL__BLOB_OF_CALLER, &digest,
                        &result, error);
}

/* Records what the status means for the content. */
static void record_blob(struct workload *workload, struct ledger_blob *blob, bool durable,
                        enum wal_status status, const struct wal_error *error)
{
    enum ledger_state state = durable ? LEDGER_DURABLE : LEDGER_WRITTEN;

    if (status == WAL_OK) {
        blob->state = blob->state > state ? blob->state : state;
        return;
    }
    if (blob->state == LEDGER_REFUSED) {
        blob->state = LEDGER_OPEN; /* it may be there now */
    }
    if (!workload__is_documented(status)) {
        ledger_fail("step %u: putting %u bytes answers %d: %s (%s)", workload->step, blob->size,
                    status, error->text, error->file);
    }
    /* The next put may heal it; or the store is closed for that. */
    if (status != WAL_EPOISONED || workload->step % 2 == 0) {
        workload__record_status(workload, status);
    }
}

static enum wal_status put(struct workload *workload, uint32_t number,
                           const struct ledger_blob *base, bool durable)
{
    struct wal_store *store = workload->actors[workload->actor].store;
    struct ledger_blob *blob = &workload->ledger->blobs[number];
    struct wal_error error = {.struct_size = sizeof(error)};
    uint8_t digest[WAL_DIGEST_SIZE];
    enum wal_status status;

    workload->blob = ledger_blob_bytes(blob);
    if (blob->state == LEDGER_REFUSED) {
        blob->state = LEDGER_OPEN; /* a death leaves it open */
    }
    if (durable) {
        status =
            wal_blob_put(store, (struct wal_slice){workload->blob, blob->size}, digest, &error);
    } else {
        status = put_by_base(store, (struct wal__span){workload->blob, blob->size}, base, &error);
    }
    record_blob(workload, blob, durable, status, &error);
    free(workload->blob);
    workload->blob = NULL;
    return status;
}

/* Puts some content; content after all is well, of a script that puts any; and
 * whether opening found content to be lost. */
static void workload__step_blob(struct workload *workload)
{
    struct rng rng = {workload->options.seed * 0x9e3779b97f4a7c15u + workload->step};
    const struct ledger_blob *base = NULL;
    uint32_t number = choose_blob(workload, &rng, &base);
    bool durable = workload__random(&rng, 3) != 0;

    (void)put(workload, number, base, durable);
}

static enum wal_status workload__probe_blob(struct workload *workload, uint32_t actor)
{
    struct ledger *ledger = workload->ledger;
    uint32_t number;
    enum wal_status status;

    if (workload->options.blobs_every == 0) {
        return WAL_OK;
    }
    workload->actor = actor;
    number = ledger_add_blob(ledger, ledger->blob_count, 500, 77);
    status = put(workload, number, NULL, true);
    if (status != WAL_OK && status != WAL_EPOISONED && status != WAL_EREADONLY &&
        status != WAL_ELOCKED) {
        ledger_fail("putting content after all is well answers %d", status);
    }
    return status;
}

static bool workload__blobs_are_damaged(const struct wal_store *store)
{
    const struct wal__log *log = &store->core.blobs.log;

    return log->facts.verdict == WAL__VERDICT_DAMAGED || log->lost_segment_count > 0 ||
           log->newest_segment_lost;
}
