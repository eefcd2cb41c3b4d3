/*
 * readers.c - operations on readers that stay open while others
 * write: they give what was there when they were opened, but for what was
 * redacted since (differential.h).
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/differential/differential.h"

void differential_close_readers(struct differential *run, bool dead)
{
    if (!dead) {
        wal_entry_cursor_close(run->readers.cursor);
        wal_doc_cursor_close(run->readers.docs);
    }
    common_free(run->readers.entries);
    common_free(run->readers.expected);
    memset(&run->readers, 0, sizeof(run->readers));
}

static void open_iter(struct differential *run)
{
    struct differential_readers *held = &run->readers;
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);
    struct wal_session *session;

    session = number == 0 ? NULL : differential_handle(run, number);
    if (session == NULL) {
        return;
    }
    options.flags = differential_one_in(run, 2) ? WAL_ENTRY_CURSOR_REDACTED : 0;
    options.flags |= differential_one_in(run, 2) ? WAL_ENTRY_CURSOR_DELTAS : 0;
    options.mode = differential_one_in(run, 2) ? WAL_ENTRY_CURSOR_ALL
                                               : WAL_ENTRY_CURSOR_BRANCH;
    options.last =
        differential_one_in(run, 2) ? differential_random(run, 12) : 0;
    held->number = number;
    held->flags = options.flags;
    (void)differential_compare_status(
        run,
        wal_entry_cursor_open(session, &options, &held->cursor, &run->error),
        reference_read(run->ref, number, &options, &held->entries,
                       &held->count));
}

/* The next entry that is not hidden now; false: the end. */
static bool next_expected(struct differential *run, struct reference_entry *out)
{
    struct differential_readers *held = &run->readers;

    while (held->at < held->count) {
        uint64_t sequence = held->entries[held->at++].entry.sequence;

        if (reference_refresh(run->ref, sequence, held->flags, out)) {
            return true;
        }
    }
    return false;
}

void differential_step_iter(struct differential *run)
{
    uint32_t steps = 1 + differential_random(run, 8);

    if (run->readers.cursor == NULL) {
        open_iter(run);
    }
    for (uint32_t i = 0; i < steps && run->readers.cursor != NULL; i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct reference_entry wanted;
        bool more = next_expected(run, &wanted);

        if (differential_compare_status(
                run,
                wal_entry_cursor_next(run->readers.cursor, &entry, &run->error),
                more ? WAL_OK : WAL_END)) {
            differential_check_entry(run, &entry, &wanted);
        } else {
            wal_entry_cursor_close(run->readers.cursor);
            common_free(run->readers.entries);
            run->readers.cursor = NULL;
            run->readers.entries = NULL;
            run->readers.at = 0;
        }
    }
}

static void open_docs(struct differential *run)
{
    struct differential_readers *held = &run->readers;
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);
    struct wal_session *session = NULL;

    if (number == 0 || differential_one_in(run, 3)) {
        number = REFERENCE_STORE;
    } else {
        session = differential_handle(run, number);
        if (session == NULL) {
            return;
        }
    }
    held->doc_number = number;
    options.flags = differential_one_in(run, 2) ? WAL_DOC_CURSOR_HISTORY : 0;
    (void)differential_compare_status(
        run,
        wal_doc_cursor_open(run->store, session, &options, &held->docs,
                            &run->error),
        reference_docs(run->ref, number, &options, &held->expected,
                       &held->doc_count));
}

void differential_step_docs(struct differential *run)
{
    struct differential_readers *held = &run->readers;
    uint32_t steps = 1 + differential_random(run, 4);

    if (held->docs == NULL) {
        open_docs(run);
    }
    for (uint32_t i = 0; i < steps && held->docs != NULL; i++) {
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        bool more = held->doc_at < held->doc_count;

        if (differential_compare_status(
                run, wal_doc_cursor_next(held->docs, &doc, &run->error),
                more ? WAL_OK : WAL_END)) {
            differential_check_doc(run, &doc, &held->expected[held->doc_at++],
                                   false);
        } else {
            wal_doc_cursor_close(held->docs);
            common_free(held->expected);
            held->docs = NULL;
            held->expected = NULL;
            held->doc_at = 0;
        }
    }
}
