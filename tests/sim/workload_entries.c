/*
 * workload_entries.c - the numbers behind a step of the script, and the entries
 * that it makes of them (workload.h).
 */
#include "tests/sim/workload_notes.h"

uint32_t workload__roll(struct dice *dice, uint32_t sides)
{
    uint64_t x;

    dice->state += 0x9e3779b97f4a7c15u;
    x = dice->state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((x ^ (x >> 31)) % sides);
}

uint32_t workload__size(const struct workload *workload, struct dice *dice)
{
    const struct workload_options *options = &workload->options;

    if (options->huge_every != 0 &&
        workload__roll(dice, options->huge_every) == 0) {
        return 1000000 + workload__roll(dice, 2500000);
    }
    if (options->large_every != 0 &&
        workload__roll(dice, options->large_every) == 0) {
        return 100 * 1024 + workload__roll(dice, 200 * 1024);
    }
    if (workload__roll(dice, 12) == 0) {
        return 2000 + workload__roll(dice, 30000);
    }
    return 100 + workload__roll(dice, 900);
}

/* An entry that was promised in this session and stream, or LEDGER_NONE. */
uint32_t workload__some_entry(const struct workload *workload, uint32_t session,
                              uint32_t stream, struct dice *dice)
{
    const struct ledger *ledger = workload->ledger;
    uint32_t start = workload__roll(dice, ledger->entry_count + 1);

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
                          struct dice *dice)
{
    const struct ledger *ledger = workload->ledger;
    const struct ledger_batch *told = &ledger->batches[batch];
    uint32_t at = ledger->sessions[told->session].at;

    entry->parent = LEDGER_NONE;
    if (way == 0) {
        entry->parent =
            workload__some_entry(workload, told->session, entry->stream, dice);
    } else if (way == 1) {
        entry->parent_kind = LEDGER_ROOT;
    } else if (way == 2 && told->count > 0) {
        entry->parent = told->first;
    } else if (way == 3) {
        entry->parent = at;
    }
    if (entry->parent != LEDGER_NONE) {
        if (ledger->entries[entry->parent].stream != entry->stream) {
            entry->parent = LEDGER_NONE;
            return;
        }
        entry->parent_kind = LEDGER_NAMED;
    }
}

/* What an entry is beside a payload. A line and one that cannot refer to
 * anything are plain. */
static void choose_kind(const struct workload *workload, uint32_t session,
                        struct ledger_entry *entry, struct dice *dice)
{
    static const enum ledger_kind kinds[] = {
        LEDGER_PLAIN,      LEDGER_PLAIN,  LEDGER_USER,      LEDGER_DELTA,
        LEDGER_COMPACTION, LEDGER_BRANCH, LEDGER_REDACTION, LEDGER_REDACTION};
    const struct ledger *ledger = workload->ledger;
    enum ledger_kind kind = kinds[workload__roll(dice, 8)];
    uint32_t other = workload__roll(dice, ledger->session_count);
    uint32_t at = ledger->sessions[session].at;
    bool shared = workload__roll(dice, 3) == 0;

    entry->refers = LEDGER_NONE;
    if ((entry->flags & WAL_ENTRY_LINE) != 0) {
        return;
    }
    if (kind == LEDGER_COMPACTION || kind == LEDGER_REDACTION) {
        entry->refers =
            workload__some_entry(workload, session, entry->stream, dice);
        if (entry->refers == LEDGER_NONE || shared) {
            entry->refers = at;
        }
    } else if (kind == LEDGER_BRANCH && !ledger_may_be_gone(ledger, other)) {
        entry->refers = workload__some_entry(workload, other, 0, dice);
    }
    if (kind >= LEDGER_COMPACTION && entry->refers == LEDGER_NONE) {
        return;
    }
    if (kind == LEDGER_COMPACTION &&
        ledger->entries[entry->refers].stream != entry->stream) {
        return;
    }
    entry->kind = kind;
    if (kind == LEDGER_REDACTION && entry->size > LEDGER_REASON) {
        entry->size = LEDGER_REASON;
    }
}

void workload__add_entries(struct workload *workload, uint32_t batch,
                           uint32_t count, struct dice *dice)
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
        struct ledger_entry entry = {.stream = workload__roll(dice, 8) == 0,
                                     .flags = flags[workload__roll(dice, 8)],
                                     .size = workload__size(workload, dice),
                                     .seed = workload__roll(dice, 1u << 30)};

        choose_parent(workload, batch, &entry, workload__roll(dice, 8), dice);
        choose_kind(workload, ledger->batches[batch].session, &entry, dice);
        if (entry.kind == LEDGER_COMPACTION) {
            /* What it keeps must be on its way. */
            entry.parent_kind = LEDGER_NAMED;
            entry.parent = entry.refers;
        }
        ledger_add_entry(ledger, batch, &entry);
    }
}
