/*
 * erased.c - what a compaction that erases leaves of no record (reference.h).
 */
#include "tests/sim/reference/internal.h"

/* Whether a session that is not deleted is this one, or descends from it. */
static bool has_live_descendant(const struct reference *ref, uint32_t number)
{
    uint32_t count = reference_session_count(ref);

    for (uint32_t i = 1; i <= count; i++) {
        uint32_t at = i;

        if (reference_is_deleted(ref, i)) {
            continue;
        }
        while (at != number) {
            const struct ref_record *fork = ref_fork_of(ref, at);

            if (fork == NULL) {
                break;
            }
            at = fork->other;
        }
        if (at == number) {
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

bool reference_is_erased(const struct reference *ref, uint64_t sequence,
                         struct wal_slice texts[2])
{
    const struct ref_record *record = ref_at(ref, sequence);

    texts[0] = (struct wal_slice){NULL, 0};
    texts[1] = texts[0];
    switch (record->kind) {
    case REF_ENTRY:
        texts[0] = record->entry->payload;
        return ref_redaction(ref, sequence) != NULL || !is_seen(ref, sequence);
    case REF_DOC:
        texts[0] = record->doc->value;
        return record->session != REFERENCE_STORE &&
               !has_live_descendant(ref, record->session);
    case REF_SESSION:
        texts[0] = record->session_state->stored_options.title;
        texts[1] = record->session_state->stored_options.metadata;
        return !has_live_descendant(ref, record->session);
    case REF_FORK:
    case REF_HEAD:
    case REF_REDACT:
    case REF_TOMBSTONE:
        break;
    }
    return false;
}
