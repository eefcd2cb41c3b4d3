/*
 * readers.c - operations on readers that stay open while others
 * write: they give what was there when they were opened, but for what was
 * redacted since (differential.h).
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/differential/differential.h"

void differential_close_iter(struct differential *run)
{
    struct differential_readers *held = &run->readers;

    wal_entry_cursor_close(held->cursor);
    common_free(held->entries);
    held->cursor = NULL;
    held->entries = NULL;
    held->at = 0;
}

void differential_close_docs(struct differential *run)
{
    struct differential_readers *held = &run->readers;

    wal_doc_cursor_close(held->docs);
    common_free(held->expected);
    held->docs = NULL;
    held->expected = NULL;
    held->doc_at = 0;
}

void differential_close_readers(struct differential *run, bool dead)
{
    if (dead) {
        run->readers.cursor = NULL;
        run->readers.docs = NULL;
    }
    differential_close_iter(run);
    differential_close_docs(run);
}

static void open_iter(struct differential *run)
{
    struct differential_readers *held = &run->readers;
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);

    if (number == 0 || differential_handle(run, number) == NULL) {
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
    held->opened_at = run->compactions;
    held->limit = reference_last_sequence(run->ref);
    (void)differential_open_read(run, number, &options, &held->cursor,
                                 &held->entries, &held->count);
    reference_hide_dropped(run->ref);
}

/* The entries that the reader is at when these redactions count for it, of its
 * parent others; false: it is at the end. Deltas that were dropped may be there
 * still. */
static bool find_next(struct differential *run, const struct wal_entry *got,
                      uint64_t limit, uint64_t parent_limit,
                      struct reference_entry *out)
{
    struct differential_readers *held = &run->readers;

    for (held->next = held->at; held->next < held->count; held->next++) {
        uint64_t sequence = held->entries[held->next].entry.sequence;
        bool is_doubtful;
        bool is_dropped =
            reference_is_dropped(run->ref, sequence, &is_doubtful);
        bool is_here = got != NULL && got->sequence == sequence;

        if ((is_dropped || is_doubtful) &&
            (!is_here || differential_was_gone(run, sequence))) {
            continue;
        }
        if (reference_refresh(run->ref, sequence, held->flags, limit,
                              parent_limit, out)) {
            held->next++;
            return true;
        }
    }
    return false;
}

static bool is_at(const struct wal_entry *got, bool more,
                  const struct reference_entry *wanted)
{
    if (got == NULL || !more) {
        return (got == NULL) == !more;
    }
    return got->sequence == wanted->entry.sequence &&
           (got->flags & WAL_ENTRY_REDACTED) ==
               (wanted->entry.flags & WAL_ENTRY_REDACTED) &&
           reference_is_equal(got->parent_id, wanted->entry.parent_id);
}

/* The next entry that the reader may give; false: the end. Redactions of this
 * process count at once, those of another one with the next block of entries,
 * or before; then those that were before it do too (SPEC.md 5.7). A parent is
 * looked up when its entry is read. */
static bool next_expected(struct differential *run, const struct wal_entry *got,
                          struct reference_entry *wanted)
{
    struct differential_readers *held = &run->readers;
    uint64_t last = reference_last_sequence(run->ref);
    uint64_t known = run->is_shared ? run->written : last;
    uint64_t limit;

    held->limit = held->limit > known ? held->limit : known;
    limit = held->limit;
    do {
        uint64_t parent_limit = limit;

        do {
            bool more = find_next(run, got, limit, parent_limit, wanted);

            if (is_at(got, more, wanted)) {
                held->limit = limit;
                return more;
            }
        } while (reference_next_redaction(run->ref, &parent_limit));
    } while (reference_next_redaction(run->ref, &limit));
    return find_next(run, got, last, last, wanted);
}

/* Those that the reader went past and did not give. */
static void pass(struct differential *run)
{
    struct differential_readers *held = &run->readers;

    for (; held->at < held->next; held->at++) {
        bool is_last = held->at + 1 == held->next;

        if (!is_last) {
            differential_learn_gone(run,
                                    held->entries[held->at].entry.sequence);
        }
    }
}

void differential_step_iter(struct differential *run)
{
    uint32_t steps = 1 + differential_random(run, 8);

    differential_close_deleted(run);
    if (run->readers.cursor == NULL) {
        open_iter(run);
    }
    for (uint32_t i = 0; i < steps && run->readers.cursor != NULL; i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct reference_entry wanted;
        enum wal_status status =
            wal_entry_cursor_next(run->readers.cursor, &entry, &run->error);
        bool more =
            next_expected(run, status == WAL_OK ? &entry : NULL, &wanted);

        if (differential_compare_status(run, status, more ? WAL_OK : WAL_END)) {
            differential_check_entry(run, &entry, &wanted);
            pass(run);
        } else {
            differential_close_iter(run);
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
    held->docs_opened_at = run->compactions;
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

    differential_close_deleted(run);
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
            differential_close_docs(run);
        }
    }
}
