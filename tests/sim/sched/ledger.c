/*
 * ledger.c - the results that calls returned to the processes, and what
 * follows for what may be seen (sched.h, tests/sim/ledger). Calls go on at the
 * same time: an answer, or being seen, holds from the step of that on.
 *
 * Invariant: what is known of a batch only rises, but for a loss of power,
 * which takes back what was written and not durable.
 */
#include "tests/sim/sched/internal.h"

#include "format/bytes/assert.h"

/* ------------------------------------------------------------ adding --- */

static void begin_op(struct sched_process *process, uint32_t number)
{
    struct sched *sched = process->sched;
    struct ledger_batch *batch = &sched->ledger.batches[number];

    WAL__ASSERT(number < SCHED_OPS);
    batch->begin = sched->steps;
    batch->end = UINT64_MAX;
    batch->known_since = UINT64_MAX;
    batch->durable_since = UINT64_MAX;
    sched->ops[number] = (struct sched_op){0};
    process->op = number;
}

uint32_t sched__op_begin(struct sched_process *process, uint32_t session)
{
    uint32_t number =
        ledger_add_batch(&process->sched->ledger, session, process->slot);

    begin_op(process, number);
    return number;
}

uint32_t sched__op_begin_fork(struct sched_process *process, uint32_t source,
                              uint32_t at)
{
    struct ledger *ledger = &process->sched->ledger;
    uint32_t session = ledger_add_session(ledger, process->slot, source, at);
    uint32_t number = ledger->sessions[session].batch;

    begin_op(process, number);
    process->sched->ops[number].creates = true;
    return session;
}

/* ----------------------------------------------------------- answers --- */

static void raise_to(struct sched *sched, uint32_t number,
                     enum ledger_state state)
{
    struct ledger_batch *batch = &sched->ledger.batches[number];

    if (batch->state == LEDGER_REFUSED) {
        sched__fail(sched, "batch %u was refused, and is there", number);
        return;
    }
    if (state == LEDGER_DURABLE && batch->state != LEDGER_DURABLE) {
        batch->durable_since = sched->steps;
    }
    batch->state = batch->state > state ? batch->state : state;
    batch->known_since =
        batch->known_since < sched->steps ? batch->known_since : sched->steps;
}

/* Two appends that expected the same tail cannot both have found it. */
static void check_expected(struct sched *sched, uint32_t number)
{
    const struct ledger *ledger = &sched->ledger;
    const struct ledger_batch *batch = &ledger->batches[number];

    if (!batch->expects || sched->moves_main) {
        return;
    }
    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        const struct ledger_batch *other = &ledger->batches[i];

        if (i != number && other->expects && other->session == batch->session &&
            other->state >= LEDGER_WRITTEN &&
            other->expected == batch->expected) {
            sched__fail(sched,
                        "batches %u and %u were acknowledged, and both "
                        "expected the tail %d",
                        i, number, (int)batch->expected);
        }
    }
}

static bool is_unknown(enum wal_status status)
{
    return status == WAL_EIO || status == WAL_EPOISONED;
}

void sched__op_end(struct sched_process *process, uint32_t number,
                   enum wal_status status)
{
    struct sched *sched = process->sched;
    struct ledger_batch *batch = &sched->ledger.batches[number];

    batch->end = sched->steps;
    process->op = SCHED_NONE;
    process->again = SCHED_NONE;
    if (status == WAL_OK) {
        sched->ops[number].handle = process->handle;
        raise_to(sched, number,
                 batch->durability == WAL_DURABLE ? LEDGER_DURABLE
                                                  : LEDGER_WRITTEN);
        check_expected(sched, number);
        sched->counts->outcomes[SCHED_ACKNOWLEDGED]++;
        return;
    }
    if (is_unknown(status)) {
        process->again = number;
        sched->counts->outcomes[SCHED_UNKNOWN]++;
        return;
    }
    if (batch->again) {
        return; /* it speaks of this attempt alone */
    }
    if (batch->state >= LEDGER_WRITTEN) {
        sched__fail(sched, "batch %u answers %d, and was seen", number, status);
    }
    batch->state = LEDGER_REFUSED;
}

void sched__mark_visible(struct sched *sched, uint32_t number, bool durable)
{
    raise_to(sched, number, durable ? LEDGER_DURABLE : LEDGER_WRITTEN);
}

void sched__mark_durable(struct sched_process *process)
{
    struct sched *sched = process->sched;

    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        struct ledger_batch *batch = &sched->ledger.batches[i];

        if (sched->ops[i].handle == process->handle &&
            batch->state == LEDGER_WRITTEN) {
            batch->state = LEDGER_DURABLE;
            batch->durable_since = sched->steps;
        }
    }
}

void sched__mark_power_loss(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        struct ledger_batch *batch = &sched->ledger.batches[i];

        sched->ops[i].handle = 0;
        if (batch->state == LEDGER_WRITTEN) {
            batch->state = LEDGER_OPEN;
            batch->known_since = UINT64_MAX;
        }
    }
    sched__replaced_power_loss(sched);
}

/* --------------------------------------------------------- sessions --- */

bool sched__may_exist(const struct sched *sched, uint32_t session)
{
    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        const struct ledger_batch *batch = &sched->ledger.batches[i];

        if (sched->ops[i].creates && batch->session == session &&
            batch->state != LEDGER_REFUSED) {
            return true;
        }
    }
    return false;
}

bool sched__must_exist(const struct sched *sched, uint32_t session,
                       uint64_t since)
{
    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        const struct ledger_batch *batch = &sched->ledger.batches[i];

        if (sched->ops[i].creates && batch->session == session &&
            batch->state >= LEDGER_WRITTEN && batch->known_since <= since) {
            return true;
        }
    }
    return false;
}
