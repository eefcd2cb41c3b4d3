/*
 * resolve.c - what a comparison comes to: batches are whole or not there,
 * what was promised is there, and what was found is settled (ledger.h).
 */
#include "tests/sim/ledger/internal.h"

/* --- redactions --------------------------------------------------------- */

/* The first redaction of an entry that can be seen. */
static uint32_t first_redaction(const struct ledger_checker *checker,
                                uint32_t target)
{
    const struct ledger *ledger = checker->ledger;
    const struct ledger_view *view = checker->view;
    uint32_t first = LEDGER_NONE;

    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        if (ledger->entries[i].kind == LEDGER_REDACTION &&
            ledger->entries[i].target_entry == target && view->entries[i] &&
            (first == LEDGER_NONE ||
             view->sequences[i] < view->sequences[first])) {
            first = i;
        }
    }
    return first;
}

void ledger_check_redactions(const struct ledger_checker *checker)
{
    const struct ledger *ledger = checker->ledger;
    const struct ledger_view *view = checker->view;

    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        uint32_t by = view->redactions[i];
        uint32_t first;

        if (!view->entries[i]) {
            continue;
        }
        first = first_redaction(checker, i);
        if (by == LEDGER_NONE && first != LEDGER_NONE) {
            ledger_fail("entry %u is shown, though entry %u redacts it", i,
                        first);
        }
        if (by == LEDGER_NONE || by == first) {
            continue;
        }
        if (view->entries[by] ||
            !ledger_may_be_deleted(ledger, ledger->entries[by].session)) {
            ledger_fail("entry %u is redacted by entry %u, not by %d", i, by,
                        (int)first);
        }
    }
}

/* --- batches ------------------------------------------------------------ */

static enum ledger_visibility session_visibility(const struct ledger *ledger,
                                                 const struct ledger_view *view,
                                                 uint32_t session)
{
    if (view->sessions[session]) {
        return LEDGER_VISIBLE;
    }
    return ledger_may_be_deleted(ledger, session) ? LEDGER_UNKNOWN
                                                  : LEDGER_ABSENT;
}

static enum ledger_visibility part_visibility(const struct ledger *ledger,
                                              const struct ledger_view *view,
                                              uint32_t number)
{
    const struct ledger_part *part = &ledger->parts[number];

    if (part->kind == LEDGER_MOVE_MAIN) {
        return LEDGER_UNKNOWN; /* the parents of entries show it */
    }
    if (part->kind == LEDGER_DELETE_SESSION) {
        return view->sessions[part->session] ? LEDGER_ABSENT : LEDGER_UNKNOWN;
    }
    if (part->session != LEDGER_NONE && !view->sessions[part->session]) {
        return session_visibility(ledger, view, part->session);
    }
    return view->parts[number];
}

/* The parts of a batch, counted by enum ledger_visibility. */
static void count_visible(const struct ledger *ledger,
                          const struct ledger_view *view,
                          const struct ledger_batch *batch, uint32_t sights[3])
{
    enum ledger_visibility session =
        session_visibility(ledger, view, batch->session);

    sights[LEDGER_UNKNOWN] = 0;
    sights[LEDGER_VISIBLE] = 0;
    sights[LEDGER_ABSENT] = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        enum ledger_visibility sight =
            view->entries[batch->first + i] ? LEDGER_VISIBLE : LEDGER_ABSENT;

        sights[session == LEDGER_UNKNOWN ? LEDGER_UNKNOWN : sight]++;
    }
    for (uint32_t i = 0; i < batch->part_count; i++) {
        sights[part_visibility(ledger, view, batch->first_part + i)]++;
    }
    if (batch == &ledger->batches[ledger->sessions[batch->session].batch]) {
        sights[session]++;
    }
}

bool ledger_is_visible(const struct ledger *ledger,
                       const struct ledger_view *view, uint32_t batch)
{
    uint32_t sights[3];

    count_visible(ledger, view, &ledger->batches[batch], sights);
    return sights[LEDGER_VISIBLE] != 0;
}

/* The acknowledgements before the read. */
static bool is_promised(const struct ledger_checker *checker,
                        const struct ledger_batch *batch, enum ledger_loss loss)
{
    const struct ledger_look *look = checker->look;
    enum ledger_state needed =
        loss == LEDGER_POWER_LOSS ? LEDGER_DURABLE : LEDGER_WRITTEN;

    if (look == NULL) {
        return batch->state >= needed;
    }
    if (look->lags) {
        return look->seen != NULL && !look->durable &&
               look->seen[batch - checker->ledger->batches];
    }
    if (look->durable && batch->count > 0) {
        return batch->state == LEDGER_DURABLE &&
               batch->durable_since <= look->since;
    }
    return batch->state >= LEDGER_WRITTEN && batch->known_since <= look->since;
}

/* The entries of a batch are there one after the other. */
static void check_adjacent(const struct ledger_view *view,
                           const struct ledger_batch *batch)
{
    for (uint32_t i = batch->first + 1; i < batch->first + batch->count; i++) {
        if (view->entries[i - 1] && view->entries[i] &&
            view->sequences[i] != view->sequences[i - 1] + 1) {
            ledger_fail("entry %u does not follow the entry before it in its "
                        "batch",
                        i);
        }
    }
}

void ledger_check_batches(const struct ledger_checker *checker,
                          enum ledger_loss loss)
{
    const struct ledger *ledger = checker->ledger;

    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        const struct ledger_batch *batch = &ledger->batches[i];
        uint32_t sights[3];

        if (checker->look != NULL && batch->session != checker->look->session) {
            continue;
        }
        check_adjacent(checker->view, batch);
        count_visible(ledger, checker->view, batch, sights);
        if (sights[LEDGER_VISIBLE] != 0 && sights[LEDGER_ABSENT] != 0) {
            ledger_fail("batch %u (session %u, %u entries from %u, %u parts "
                        "from %u): %u are there, %u are not",
                        i, batch->session, batch->count, batch->first,
                        batch->part_count, batch->first_part,
                        sights[LEDGER_VISIBLE], sights[LEDGER_ABSENT]);
        }
        if (sights[LEDGER_ABSENT] != 0 && is_promised(checker, batch, loss)) {
            ledger_fail("batch %u (session %u, %u entries from %u, %u parts "
                        "from %u) was promised (state %d, durability %u) and "
                        "is lost",
                        i, batch->session, batch->count, batch->first,
                        batch->part_count, batch->first_part, batch->state,
                        batch->durability);
        }
        if (sights[LEDGER_VISIBLE] != 0 && batch->state == LEDGER_REFUSED) {
            ledger_fail("batch %u (session %u, %u entries from %u, %u parts "
                        "from %u) was refused or dropped, and is there",
                        i, batch->session, batch->count, batch->first,
                        batch->part_count, batch->first_part);
        }
    }
}

/* A session that is not found, and may be deleted, must not reappear. */
static void resolve_session(struct ledger *ledger, uint32_t session,
                            const struct ledger_view *view)
{
    struct ledger_session *recorded = &ledger->sessions[session];
    struct ledger_batch *drop;

    if (recorded->drop == LEDGER_NONE) {
        return;
    }
    drop = &ledger->batches[ledger->parts[recorded->drop].batch];
    if (view->sessions[session]) {
        drop->state = LEDGER_REFUSED;
    } else if (ledger_may_be_deleted(ledger, session)) {
        recorded->gone = true;
        drop->state = LEDGER_DURABLE;
    }
}

void ledger_resolve(struct ledger *ledger, const struct ledger_view *view)
{
    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        struct ledger_batch *batch = &ledger->batches[i];
        uint32_t sights[3];

        count_visible(ledger, view, batch, sights);
        if (sights[LEDGER_VISIBLE] != 0) {
            batch->state = LEDGER_DURABLE;
        } else if (sights[LEDGER_ABSENT] != 0) {
            batch->state = LEDGER_REFUSED;
        }
    }
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        resolve_session(ledger, i, view);
    }
    for (uint32_t i = 0; i < ledger->blob_count; i++) {
        ledger->blobs[i].state =
            view->blobs[i] ? LEDGER_DURABLE : LEDGER_REFUSED;
    }
}
