/*
 * workload.c - see workload.h.
 */
#include "tests/sim/workload/internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session/session.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/sanitizers.h"
#include "tests/lib/test.h"

/* ------------------------------------------------------------ making --- */

/* What a directory that could not be synced holds after a loss of power is not
 * promised: only the store's own names are not given anew when that fails. */
static void mark_names_unsynced(void *arg, const struct sim_event *event)
{
    struct workload *workload = arg;
    bool own = event->call == SIM_SYNC_DIRECTORY &&
               strchr(event->path + 1, '/') == NULL;
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

/* A failure was reported, or the process died: which queued batches it
 * concerns is not known. */
void workload__mark_uncertain(struct ledger *ledger, uint32_t actor)
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

void workload_crash(struct workload *workload,
                    const struct sim_power_loss *loss, uint64_t seed)
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

struct workload_actor *workload_start(struct workload *workload,
                                      uint32_t number)
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
    return status == WAL_ENOSPACE || status == WAL_EIO ||
           status == WAL_ENOMEM || status == WAL_EPOISONED ||
           status == WAL_ELOCKED || status == WAL_EREADONLY;
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

enum wal_status workload_open_raw(struct workload *workload, uint32_t number,
                                  uint32_t flags, struct wal_error *error)
{
    struct workload_actor *actor = workload_start(workload, number);
    struct wal_open_options options = {
        .struct_size = sizeof(options),
        .flags = flags | workload->options.open_flags,
        .group_align = workload->options.group_align};
    enum wal_status status;

    if (actor->store != NULL) {
        return WAL_OK;
    }
    status =
        wal__store_open(WORKLOAD_ROOT, &options, &actor->heap.heap,
                        sim_process_io(actor->process), &actor->store, error);
    if (status == WAL_OK) {
        /* Every segment that ends has its sessions folded, with more syncs
         * than one. */
        actor->store->core.fold.slots_min = 1;
        actor->store->core.fold.loaded_max = 1;
        actor->store->core.fold.sync_step = 1;
    }
    if (status != WAL_OK && arena_heap_count(&actor->arena) != 0) {
        ledger_fail("step %u: an opening that failed (%d) leaves %zu blocks",
                    workload->step, status, arena_heap_count(&actor->arena));
    }
    return status;
}

enum wal_status workload_open(struct workload *workload, uint32_t number)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status =
        workload_open_raw(workload, number, WAL_OPEN_CREATE, &error);

    if (status != WAL_OK && !workload__is_documented(status)) {
        ledger_fail("step %u: opening answers %d: %s (%s)", workload->step,
                    status, error.text, error.file);
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
void workload__mark_synced(struct workload *workload, uint32_t number)
{
    struct ledger *ledger = workload->ledger;

    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        struct ledger_batch *batch = &ledger->batches[i];
        bool queued = batch->state == LEDGER_OPEN &&
                      batch->durability == WAL_QUEUED && !batch->is_uncertain;

        if (batch->actor == number &&
            (queued || batch->state == LEDGER_WRITTEN)) {
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
            ledger_fail("step %u: closing answers %d: %s", workload->step,
                        status, error.text);
        }
    }
    if (arena_heap_count(&actor->arena) != 0) {
        ledger_fail("step %u: closing (%d) leaves %zu blocks of memory",
                    workload->step, status, arena_heap_count(&actor->arena));
    }
    return status;
}

/* ---------------------------------------------------------- checking --- */

/* Whether the store could be opened to read only. */
bool workload__is_read_only(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};

    return wal_store_get_info(store, &info, &error) == WAL_OK &&
           info.status == WAL_EREADONLY;
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
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY,
                                  .garbage = seed % 2 == 0};
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
