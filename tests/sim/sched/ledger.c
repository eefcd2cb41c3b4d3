/*
 * ledger.c - the results that calls returned to the processes, and what
 * follows for what may be seen (sched.h). Unlike that of model.h this ledger
 * knows operations that go on at the same time: an answer, or being seen,
 * holds from the step of that on.
 *
 * Invariant: what is known of an operation only rises, but for a loss of
 * power, which takes back what was written and not durable.
 */
#include "tests/sim/sched/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"

struct wal_slice sched__slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

void sched__session_id(uint32_t session, char out[SCHED_TEXT])
{
    (void)snprintf(out, SCHED_TEXT, "s%03u", session);
}

void sched__entry_id(uint32_t entry, char out[SCHED_TEXT])
{
    (void)snprintf(out, SCHED_TEXT, "e%03u", entry);
}

uint32_t sched__parse_number(struct wal_slice text, char letter)
{
    const char *bytes = text.data;
    uint32_t number = 0;

    if (text.size != 4 || bytes[0] != letter) {
        return SCHED_NONE;
    }
    for (size_t i = 1; i < 4; i++) {
        if (bytes[i] < '0' || bytes[i] > '9') {
            return SCHED_NONE;
        }
        number = number * 10 + (uint32_t)(bytes[i] - '0');
    }
    return number;
}

/* {"e":NNN,"pad":"xxx..."} */
void sched__fill_payload(const struct sched *sched, uint32_t entry,
                         uint8_t *out)
{
    const struct sched_entry *recorded = &sched->ledger.entries[entry];
    char before[SCHED_TEXT];
    int size = snprintf(before, sizeof(before), "{\"e\":%u,\"pad\":\"", entry);

    WAL__ASSERT(size > 0 && recorded->size > (uint32_t)size + 2);
    memset(out, 'a' + (int)(entry % 26), recorded->size);
    memcpy(out, before, (size_t)size);
    memcpy(out + recorded->size - 2, "\"}", 2);
}

/* ------------------------------------------------------------ adding --- */

uint32_t sched__op_begin(struct sched_process *process, enum sched_op_kind kind,
                         uint32_t session)
{
    struct sched *sched = process->sched;
    struct sched_ledger *ledger = &sched->ledger;
    uint32_t number = ledger->op_count;

    WAL__ASSERT(number < SCHED_OPS);
    ledger->op_count++;
    ledger->ops[number] = (struct sched_op){.kind = kind,
                                            .session = session,
                                            .begin = sched->steps,
                                            .end = UINT64_MAX,
                                            .known = UINT64_MAX,
                                            .durable_since = UINT64_MAX,
                                            .first = ledger->entry_count,
                                            .expected = SCHED_NONE,
                                            .target = SCHED_NONE};
    process->op = number;
    return number;
}

uint32_t sched__add_entry(struct sched *sched, uint32_t op, uint32_t size,
                          uint32_t parent)
{
    struct sched_ledger *ledger = &sched->ledger;
    uint32_t number = ledger->entry_count;

    WAL__ASSERT(number < SCHED_ENTRIES && size <= SCHED_PAYLOAD);
    ledger->entry_count++;
    ledger->entries[number] =
        (struct sched_entry){.op = op,
                             .session = ledger->ops[op].session,
                             .size = size,
                             .parent = parent};
    ledger->ops[op].count++;
    return number;
}

/* ----------------------------------------------------------- answers --- */

static void raise_to(struct sched *sched, struct sched_op *op,
                     enum sched_state state)
{
    if (op->state == SCHED_REFUSED) {
        sched__fail(sched, "operation %u was refused, and is there",
                    (uint32_t)(op - sched->ledger.ops));
        return;
    }
    if (state == SCHED_DURABLE && op->state != SCHED_DURABLE) {
        op->durable_since = sched->steps;
    }
    op->state = op->state > state ? op->state : state;
    op->known = op->known < sched->steps ? op->known : sched->steps;
}

/* Two appends that expected the same tail cannot both have found it. */
static void check_expected(struct sched *sched, uint32_t number)
{
    const struct sched_ledger *ledger = &sched->ledger;
    const struct sched_op *op = &ledger->ops[number];

    if (op->kind != SCHED_APPEND || !op->expects || sched->moves_main) {
        return;
    }
    for (uint32_t i = 0; i < ledger->op_count; i++) {
        const struct sched_op *other = &ledger->ops[i];

        if (i != number && other->kind == SCHED_APPEND && other->expects &&
            other->session == op->session && other->state >= SCHED_WRITTEN &&
            other->expected == op->expected) {
            sched__fail(sched,
                        "operations %u and %u were acknowledged, and both "
                        "expected the tail %d",
                        i, number, (int)op->expected);
        }
    }
}

static bool is_unknown(enum wal_status status)
{
    return status == WAL_EIO || status == WAL_EPOISONED ||
           status == WAL_ELOCKED;
}

void sched__op_end(struct sched_process *process, uint32_t number,
                   enum wal_status status)
{
    struct sched *sched = process->sched;
    struct sched_op *op = &sched->ledger.ops[number];

    op->end = sched->steps;
    process->op = SCHED_NONE;
    process->again = SCHED_NONE;
    if (status == WAL_OK) {
        op->handle = process->handle;
        raise_to(sched, op,
                 op->durability == WAL_DURABLE ? SCHED_DURABLE : SCHED_WRITTEN);
        check_expected(sched, number);
        sched->counts->outcomes[SCHED_ACKNOWLEDGED]++;
        return;
    }
    if (is_unknown(status)) {
        process->again = number;
        sched->counts->outcomes[SCHED_UNKNOWN]++;
        return;
    }
    if (op->resent) {
        return; /* it speaks of this attempt alone */
    }
    if (op->state >= SCHED_WRITTEN) {
        sched__fail(sched, "operation %u answers %d, and was seen", number,
                    status);
    }
    op->state = SCHED_REFUSED;
}

void sched__mark_visible(struct sched *sched, uint32_t op, bool durable)
{
    raise_to(sched, &sched->ledger.ops[op],
             durable ? SCHED_DURABLE : SCHED_WRITTEN);
}

void sched__mark_durable(struct sched_process *process)
{
    struct sched_ledger *ledger = &process->sched->ledger;

    for (uint32_t i = 0; i < ledger->op_count; i++) {
        struct sched_op *op = &ledger->ops[i];

        if (op->handle == process->handle && op->state == SCHED_WRITTEN) {
            op->state = SCHED_DURABLE;
            op->durable_since = process->sched->steps;
        }
    }
}

void sched__mark_power_loss(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->ledger.op_count; i++) {
        struct sched_op *op = &sched->ledger.ops[i];

        op->handle = 0;
        if (op->state == SCHED_WRITTEN) {
            op->state = SCHED_OPEN;
            op->known = UINT64_MAX;
        }
    }
}

/* --------------------------------------------------------- sessions --- */

bool sched__may_exist(const struct sched *sched, uint32_t session)
{
    for (uint32_t i = 0; i < sched->ledger.op_count; i++) {
        const struct sched_op *op = &sched->ledger.ops[i];

        if (op->kind == SCHED_CREATE && op->session == session &&
            op->state != SCHED_REFUSED) {
            return true;
        }
    }
    return false;
}

bool sched__must_exist(const struct sched *sched, uint32_t session,
                       uint64_t since)
{
    for (uint32_t i = 0; i < sched->ledger.op_count; i++) {
        const struct sched_op *op = &sched->ledger.ops[i];

        if (op->kind == SCHED_CREATE && op->session == session &&
            op->state >= SCHED_WRITTEN && op->known <= since) {
            return true;
        }
    }
    return false;
}
