/*
 * model_judge.c - what a comparison comes to: batches are whole or not there,
 * what was promised is there, and what was found is settled (model.h).
 */
#include "tests/sim/model_reading.h"

/* --- redactions --------------------------------------------------------- */

/* The first redaction of an entry that can be seen. */
static uint32_t first_redaction(const struct reading *reading, uint32_t target)
{
    const struct ledger *ledger = reading->ledger;
    const struct ledger_view *view = reading->view;
    uint32_t first = LEDGER_NONE;

    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        if (ledger->entries[i].kind == LEDGER_REDACTION &&
            ledger->entries[i].refers == target && view->entries[i] &&
            (first == LEDGER_NONE ||
             view->sequences[i] < view->sequences[first])) {
            first = i;
        }
    }
    return first;
}

void reading_judge_redactions(const struct reading *reading)
{
    const struct ledger *ledger = reading->ledger;
    const struct ledger_view *view = reading->view;

    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        uint32_t by = view->redactions[i];
        uint32_t first;

        if (!view->entries[i]) {
            continue;
        }
        first = first_redaction(reading, i);
        if (by == LEDGER_NONE && first != LEDGER_NONE) {
            ledger_fail("entry %u is shown, though entry %u redacts it", i,
                        first);
        }
        if (by == LEDGER_NONE || by == first) {
            continue;
        }
        if (view->entries[by] ||
            !ledger_may_be_gone(ledger, ledger->entries[by].session)) {
            ledger_fail("entry %u is redacted by entry %u, not by %d", i, by,
                        (int)first);
        }
    }
}

/* --- batches ------------------------------------------------------------ */

static enum ledger_sight sight_of_session(const struct ledger *ledger,
                                          const struct ledger_view *view,
                                          uint32_t session)
{
    if (view->sessions[session]) {
        return LEDGER_THERE;
    }
    return ledger_may_be_gone(ledger, session) ? LEDGER_UNKNOWN : LEDGER_ABSENT;
}

static enum ledger_sight sight_of_part(const struct ledger *ledger,
                                       const struct ledger_view *view,
                                       uint32_t number)
{
    const struct ledger_part *part = &ledger->parts[number];

    if (part->kind == LEDGER_MAIN) {
        return LEDGER_UNKNOWN; /* where entries hang tells it */
    }
    if (part->kind == LEDGER_DROP) {
        return view->sessions[part->session] ? LEDGER_ABSENT : LEDGER_UNKNOWN;
    }
    if (part->session != LEDGER_NONE && !view->sessions[part->session]) {
        return sight_of_session(ledger, view, part->session);
    }
    return view->parts[number];
}

/* What can be seen of a batch, counted by enum ledger_sight. */
static void count_sights(const struct ledger *ledger,
                         const struct ledger_view *view,
                         const struct ledger_batch *batch, uint32_t sights[3])
{
    enum ledger_sight session = sight_of_session(ledger, view, batch->session);

    sights[LEDGER_UNKNOWN] = 0;
    sights[LEDGER_THERE] = 0;
    sights[LEDGER_ABSENT] = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        enum ledger_sight sight =
            view->entries[batch->first + i] ? LEDGER_THERE : LEDGER_ABSENT;

        sights[session == LEDGER_UNKNOWN ? LEDGER_UNKNOWN : sight]++;
    }
    for (uint32_t i = 0; i < batch->part_count; i++) {
        sights[sight_of_part(ledger, view, batch->first_part + i)]++;
    }
    if (batch == &ledger->batches[ledger->sessions[batch->session].batch]) {
        sights[session]++;
    }
}

void reading_judge_batches(const struct reading *reading, enum ledger_loss loss)
{
    const struct ledger *ledger = reading->ledger;
    enum ledger_state needed =
        loss == LEDGER_POWER ? LEDGER_DURABLE : LEDGER_WRITTEN;

    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        const struct ledger_batch *batch = &ledger->batches[i];
        uint32_t sights[3];

        count_sights(ledger, reading->view, batch, sights);
        if (sights[LEDGER_THERE] != 0 && sights[LEDGER_ABSENT] != 0) {
            ledger_fail("batch %u (session %u, %u entries from %u, %u parts "
                        "from %u): %u are there, %u are not",
                        i, batch->session, batch->count, batch->first,
                        batch->part_count, batch->first_part,
                        sights[LEDGER_THERE], sights[LEDGER_ABSENT]);
        }
        if (sights[LEDGER_ABSENT] != 0 && batch->state >= needed) {
            ledger_fail("batch %u (session %u, %u entries from %u, %u parts "
                        "from %u) was promised (state %d, durability %u) and "
                        "is lost",
                        i, batch->session, batch->count, batch->first,
                        batch->part_count, batch->first_part, batch->state,
                        batch->durability);
        }
        if (sights[LEDGER_THERE] != 0 && batch->state == LEDGER_REFUSED) {
            ledger_fail("batch %u (session %u, %u entries from %u, %u parts "
                        "from %u) was refused or dropped, and is there",
                        i, batch->session, batch->count, batch->first,
                        batch->part_count, batch->first_part);
        }
    }
}

/* A session that is not found, and may have been deleted, never comes back. */
static void settle_session(struct ledger *ledger, uint32_t session,
                           const struct ledger_view *view)
{
    struct ledger_session *told = &ledger->sessions[session];
    struct ledger_batch *drop;

    if (told->drop == LEDGER_NONE) {
        return;
    }
    drop = &ledger->batches[ledger->parts[told->drop].batch];
    if (view->sessions[session]) {
        drop->state = LEDGER_REFUSED;
    } else if (ledger_may_be_gone(ledger, session)) {
        told->gone = true;
        drop->state = LEDGER_DURABLE;
    }
}

void ledger_settle(struct ledger *ledger, const struct ledger_view *view)
{
    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        struct ledger_batch *batch = &ledger->batches[i];
        uint32_t sights[3];

        count_sights(ledger, view, batch, sights);
        if (sights[LEDGER_THERE] != 0) {
            batch->state = LEDGER_DURABLE;
        } else if (sights[LEDGER_ABSENT] != 0) {
            batch->state = LEDGER_REFUSED;
        }
    }
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        settle_session(ledger, i, view);
    }
    for (uint32_t i = 0; i < ledger->blob_count; i++) {
        ledger->blobs[i].state =
            view->blobs[i] ? LEDGER_DURABLE : LEDGER_REFUSED;
    }
}
