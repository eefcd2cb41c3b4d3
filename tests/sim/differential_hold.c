/*
 * differential_hold.c - operations on readers that stay open while others
 * write: they give what was there when they were opened, but for what was
 * redacted since (differential.h).
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/differential.h"

void differential_let_go(struct differential *run, bool dead)
{
    if (!dead) {
        wal_iter_close(run->held.iter);
        wal_docs_close(run->held.docs);
    }
    free(run->held.entries);
    free(run->held.wanted);
    memset(&run->held, 0, sizeof(run->held));
}

static void open_iter(struct differential *run)
{
    struct differential_held *held = &run->held;
    struct wal_iter_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);
    struct wal_session *session;

    session = number == 0 ? NULL : differential_handle(run, number);
    if (session == NULL) {
        return;
    }
    options.flags = differential_chance(run, 2) ? WAL_ITER_REDACTED : 0;
    options.flags |= differential_chance(run, 2) ? WAL_ITER_DELTAS : 0;
    options.mode = differential_chance(run, 2) ? WAL_ITER_ALL : WAL_ITER_BRANCH;
    held->number = number;
    held->flags = options.flags;
    (void)differential_agree(
        run, wal_iter_open(session, &options, &held->iter, &run->error),
        reference_read(run->ref, number, &options, &held->entries,
                       &held->count));
}

/* The next entry that is not hidden now; false: the end. */
static bool next_wanted(struct differential *run, struct reference_entry *out)
{
    struct differential_held *held = &run->held;

    while (held->at < held->count) {
        uint64_t sequence = held->entries[held->at++].entry.sequence;

        if (reference_still(run->ref, sequence, held->flags, out)) {
            return true;
        }
    }
    return false;
}

void differential_hold_iter(struct differential *run)
{
    uint32_t steps = 1 + differential_roll(run, 8);

    if (run->held.iter == NULL) {
        open_iter(run);
    }
    for (uint32_t i = 0; i < steps && run->held.iter != NULL; i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct reference_entry wanted;
        bool more = next_wanted(run, &wanted);

        if (differential_agree(
                run, wal_iter_next(run->held.iter, &entry, &run->error),
                more ? WAL_OK : WAL_END)) {
            differential_check_entry(run, &entry, &wanted);
        } else {
            wal_iter_close(run->held.iter);
            free(run->held.entries);
            run->held.iter = NULL;
            run->held.entries = NULL;
            run->held.at = 0;
        }
    }
}

static void open_docs(struct differential *run)
{
    struct differential_held *held = &run->held;
    struct wal_docs_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);
    struct wal_session *session = NULL;

    if (number == 0 || differential_chance(run, 3)) {
        number = REFERENCE_STORE;
    } else {
        session = differential_handle(run, number);
        if (session == NULL) {
            return;
        }
    }
    options.flags = differential_chance(run, 2) ? WAL_DOCS_HISTORY : 0;
    (void)differential_agree(
        run,
        wal_docs_open(run->store, session, &options, &held->docs, &run->error),
        reference_docs(run->ref, number, &options, &held->wanted,
                       &held->doc_count));
}

void differential_hold_docs(struct differential *run)
{
    struct differential_held *held = &run->held;
    uint32_t steps = 1 + differential_roll(run, 4);

    if (held->docs == NULL) {
        open_docs(run);
    }
    for (uint32_t i = 0; i < steps && held->docs != NULL; i++) {
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        bool more = held->doc_at < held->doc_count;

        if (differential_agree(run,
                               wal_docs_next(held->docs, &doc, &run->error),
                               more ? WAL_OK : WAL_END)) {
            differential_check_doc(run, &doc, &held->wanted[held->doc_at++],
                                   false);
        } else {
            wal_docs_close(held->docs);
            free(held->wanted);
            held->docs = NULL;
            held->wanted = NULL;
            held->doc_at = 0;
        }
    }
}
