/*
 * erased.c - what a compaction that erases leaves of no record, and which texts
 * a search finds (reference.h).
 */
#include "tests/sim/reference/internal.h"

/* Whether a session that is not deleted has the version of a document: its own,
 * or that of one it was forked from, as that was then. */
static bool has_document(const struct reference *ref, uint32_t owner,
                         uint64_t sequence)
{
    uint32_t count = reference_session_count(ref);

    for (uint32_t i = 1; i <= count; i++) {
        uint64_t limit = ref->count;
        uint32_t at = i;

        if (reference_is_deleted(ref, i)) {
            continue;
        }
        while (at != owner) {
            const struct ref_record *fork = ref_fork_of(ref, at);

            if (fork == NULL) {
                break;
            }
            at = fork->other;
            if (ref_sequence(ref, fork) < limit) {
                limit = ref_sequence(ref, fork);
            }
        }
        if (at == owner && sequence <= limit) {
            return true;
        }
    }
    return false;
}

static bool is_seen(const struct reference *ref, uint64_t sequence)
{
    uint32_t count = reference_session_count(ref);

    for (uint32_t number = 1; number <= count; number++) {
        if (reference_can_see(ref, number, sequence)) {
            return true;
        }
    }
    return false;
}

bool reference_is_redacted(const struct reference *ref, uint64_t sequence)
{
    return ref_at(ref, sequence)->kind == REF_ENTRY &&
           ref_redaction(ref, sequence) != NULL;
}

bool reference_is_erased(const struct reference *ref, uint64_t sequence,
                         struct wal_slice texts[2])
{
    const struct ref_record *record = ref_at(ref, sequence);

    texts[0] = (struct wal_slice){NULL, 0};
    texts[1] = texts[0];
    switch (record->kind) {
    case REF_ENTRY:
        texts[0] = record->entry->payload;
        texts[1] = record->entry->meta;
        return ref_redaction(ref, sequence) != NULL || !is_seen(ref, sequence);
    case REF_DOC:
        texts[0] = record->doc->value;
        return record->session != REFERENCE_STORE &&
               !has_document(ref, record->session, sequence);
    case REF_SESSION:
        texts[0] = record->session_state->stored_options.title;
        texts[1] = record->session_state->stored_options.metadata;
        /* Of a deleted session its id is enough. */
        return reference_is_deleted(ref, record->session) ||
               ref_session_current(ref, record->session) != record;
    case REF_FORK:
    case REF_HEAD:
    case REF_REDACT:
    case REF_TOMBSTONE:
        break;
    }
    return false;
}

static bool is_listed(const struct reference *ref, uint32_t number)
{
    return !reference_is_deleted(ref, number) &&
           !reference_is_trashed(ref, number);
}

bool reference_is_found(const struct reference *ref, uint64_t sequence,
                        uint32_t number, struct wal_slice *text,
                        struct wal_slice *id)
{
    const struct ref_record *record = ref_at(ref, sequence);
    uint32_t count = reference_session_count(ref);

    *text = (struct wal_slice){NULL, 0};
    *id = *text;
    if (record->kind == REF_SESSION) {
        *text = record->session_state->stored_options.title;
        return (number == 0 || number == record->session) &&
               is_listed(ref, record->session) &&
               ref_session_current(ref, record->session) == record;
    }
    if (record->kind != REF_ENTRY) {
        return false;
    }
    *text = record->entry->payload;
    *id = record->entry->id;
    if (ref_is_type(record, WAL_TYPE_MESSAGE_DELTA_BATCH) ||
        ref_redaction(ref, sequence) != NULL) {
        return false;
    }
    for (uint32_t i = 1; i <= count; i++) {
        if ((number == 0 || i == number) && is_listed(ref, i) &&
            ref_can_see(ref, i, sequence)) {
            return true;
        }
    }
    return false;
}
