/*
 * blobs.c - a step's content: new, a version of what is there, or the
 * same again; durable, or only written (workload.h).
 */
#include <stdlib.h>
#include <string.h>

#include "agentwal/blob.h"
#include "engine/session/session.h"
#include "tests/lib/put_unsynced.h"
#include "tests/sim/workload/internal.h"

/* Which content the step puts. */
static uint32_t choose_blob(struct workload *workload, struct rng *rng,
                            const struct ledger_blob **base)
{
    struct ledger *ledger = workload->ledger;
    uint32_t way = workload__random(rng, 6);
    uint32_t size = workload__random(rng, 8) == 0
                        ? 20000 + workload__random(rng, 180000)
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

static enum wal_status put_by_base(struct wal_store *store,
                                   struct wal__span content,
                                   const struct ledger_blob *base,
                                   struct wal_error *error)
{
    struct wal__blob_put_result result = {0};
    struct wal__digest digest;
    struct wal__digest known;

    if (base != NULL) {
        memcpy(known.bytes, base->digest, sizeof(known.bytes));
    }
    return put_unsynced(store, content, base == NULL ? NULL : &known,
                        WAL__BLOB_OF_CALLER, &digest, &result, error);
}

/* Records what the status means for the content. */
static void record_blob(struct workload *workload, struct ledger_blob *blob,
                        bool durable, enum wal_status status,
                        const struct wal_error *error)
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
        ledger_fail("step %u: putting %u bytes answers %d: %s (%s)",
                    workload->step, blob->size, status, error->text,
                    error->file);
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
            wal_blob_put(store, (struct wal_slice){workload->blob, blob->size},
                         digest, &error);
    } else {
        status =
            put_by_base(store, (struct wal__span){workload->blob, blob->size},
                        base, &error);
    }
    record_blob(workload, blob, durable, status, &error);
    free(workload->blob);
    workload->blob = NULL;
    return status;
}

void workload__step_blob(struct workload *workload)
{
    struct rng rng = {workload->options.seed * 0x9e3779b97f4a7c15u +
                      workload->step};
    const struct ledger_blob *base = NULL;
    uint32_t number = choose_blob(workload, &rng, &base);
    bool durable = workload__random(&rng, 3) != 0;

    (void)put(workload, number, base, durable);
}

enum wal_status workload__probe_blob(struct workload *workload, uint32_t actor)
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
    if (status != WAL_OK && status != WAL_EPOISONED &&
        status != WAL_EREADONLY && status != WAL_ELOCKED) {
        ledger_fail("putting content after all is well answers %d", status);
    }
    return status;
}

bool workload__blobs_are_damaged(const struct wal_store *store)
{
    const struct wal__log *log = &store->core.blobs.log;

    return log->facts.verdict == WAL__VERDICT_DAMAGED ||
           log->lost_segment_count > 0 || log->newest_segment_lost;
}
