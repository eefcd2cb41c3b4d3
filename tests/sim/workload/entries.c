/*
 * entries.c - the random numbers of a step of the script, and the entries
 * that it makes of them (workload.h).
 */
#include "tests/lib/rng.h"
#include "tests/sim/workload/internal.h"

uint32_t workload__random(struct rng *rng, uint32_t sides)
{
    return (uint32_t)rng_below(&rng->state, sides);
}

uint32_t workload__size(const struct workload *workload, struct rng *rng)
{
    const struct workload_options *options = &workload->options;

    if (options->huge_every != 0 &&
        workload__random(rng, options->huge_every) == 0) {
        return 1000000 + workload__random(rng, 2500000);
    }
    if (options->large_every != 0 &&
        workload__random(rng, options->large_every) == 0) {
        return 100 * 1024 + workload__random(rng, 200 * 1024);
    }
    if (workload__random(rng, 12) == 0) {
        return 2000 + workload__random(rng, 30000);
    }
    return 100 + workload__random(rng, 900);
}

/* An entry that was promised in this session and stream, or LEDGER_NONE. */
uint32_t workload__random_entry(const struct workload *workload,
                                uint32_t session, uint32_t stream,
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

/* A root, under an earlier entry, under one of the same batch, under the fork
 * point, or under the head. */
static void choose_parent(const struct workload *workload, uint32_t batch,
                          struct ledger_entry *entry, uint32_t way,
                          struct rng *rng)
{
    const struct ledger *ledger = workload->ledger;
    const struct ledger_batch *recorded = &ledger->batches[batch];
    uint32_t at = ledger->sessions[recorded->session].at;

    entry->parent = LEDGER_NONE;
    if (way == 0) {
        entry->parent = workload__random_entry(workload, recorded->session,
                                               entry->stream, rng);
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

/* Sets the kind of an entry. A line and an entry that cannot refer to anything
 * are plain. */
static void choose_kind(const struct workload *workload, uint32_t session,
                        struct ledger_entry *entry, struct rng *rng)
{
    static const enum ledger_kind kinds[] = {
        LEDGER_PLAIN,      LEDGER_PLAIN,  LEDGER_USER,      LEDGER_DELTA,
        LEDGER_COMPACTION, LEDGER_BRANCH, LEDGER_REDACTION, LEDGER_REDACTION};
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
        entry->target_entry =
            workload__random_entry(workload, session, entry->stream, rng);
        if (entry->target_entry == LEDGER_NONE || shared) {
            entry->target_entry = at;
        }
    } else if (kind == LEDGER_BRANCH && !ledger_may_be_deleted(ledger, other)) {
        entry->target_entry = workload__random_entry(workload, other, 0, rng);
    }
    if (kind >= LEDGER_COMPACTION && entry->target_entry == LEDGER_NONE) {
        return;
    }
    if (kind == LEDGER_COMPACTION &&
        ledger->entries[entry->target_entry].stream != entry->stream) {
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

void workload__add_entries(struct workload *workload, uint32_t batch,
                           uint32_t count, struct rng *rng)
{
    static const uint32_t flags[] = {0,
                                     0,
                                     0,
                                     0,
                                     0,
                                     WAL_ENTRY_HEAD_KEEP,
                                     WAL_ENTRY_HEAD_MOVE,
                                     WAL_ENTRY_LINE};
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
