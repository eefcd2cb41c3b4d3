/*
 * summary.c - compares a summary of an index or of the catalogue field by
 * field with the session in the log (SPEC.md 2.12).
 *
 * Two fields are not compared, because they depend on where the summary is
 * stored: the previous segment, and the damage flag, which only recovery sets.
 *
 * The summaries of a rewritten segment count what was left out of it, and have
 * times and texts of records that are gone (3.9): they are compared as far as
 * the log still says, and the rest is adopted, so that later summaries can be
 * compared exactly.
 *
 * Threads: any.
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/crc32.h"
#include "tools/walcheck/walcheck.h"

/* Whether the message whose beginning a summary has was erased since: the index
 * of another segment, which is not rewritten before it is erased too, may have
 * it still. */
static bool is_first_erased(const struct check_store *store,
                            const struct wal__summary *summary)
{
    const struct check_replayed *first =
        check_model_find_replayed(&store->model, summary->first_sequence);

    return first != NULL && first->is_erased;
}

static bool texts_differ(const struct check_store *store,
                         const struct check_session *session,
                         const struct wal__summary *summary)
{
    const struct wal__session_record *record = &session->record;
    const struct {
        struct wal__span a;
        struct wal__span b;
    } pairs[] = {
        {record->id, summary->id},
        {record->cwd, summary->cwd},
        {record->project, summary->project},
        {record->title, summary->title},
        {record->source, summary->source},
        {record->parent_id, summary->parent_id},
        {{(const uint8_t *)session->first_text, session->first_size},
         summary->first_text},
    };

    const size_t count = sizeof(pairs) / sizeof(pairs[0]) -
                         (is_first_erased(store, summary) ? 1 : 0);

    for (size_t i = 0; i < count; i++) {
        if (pairs[i].a.size != pairs[i].b.size ||
            (pairs[i].a.size > 0 &&
             memcmp(pairs[i].a.data, pairs[i].b.data, pairs[i].a.size) != 0)) {
            return true;
        }
    }
    return false;
}

/* A position in the index of a segment counts where it leads into that segment:
 * another one may have been rewritten since, or in a replica not yet. Of the
 * catalogue, `of` being null, it counts unless it leads to what was rewritten.
 */
static bool positions_differ(const struct check_store *store, uint64_t found,
                             uint64_t expected, const struct check_segment *of,
                             bool is_loose)
{
    uint64_t id = wal__position_segment(found);

    if (found == expected) {
        return false;
    }
    if (found == 0) {
        return !is_loose;
    }
    return of != NULL ? id == of->head->id
                      : check_chain_find_rewritten(&store->log, id) == NULL;
}

struct field {
    const char *name;
    uint64_t found;
    uint64_t expected;
};

static const char *find_difference(const struct field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fields[i].found != fields[i].expected) {
            return fields[i].name;
        }
    }
    return NULL;
}

/* What every summary says as the log does. */
static const char *compare_identity(const struct wal__summary *state,
                                    const struct wal__summary *summary)
{
    const struct field fields[] = {
        {"id", summary->id_hash, state->id_hash},
        {"fork point", summary->fork_sequence, state->fork_sequence},
        {"fork owner", summary->fork_owner, state->fork_owner},
        {"depth", summary->depth, state->depth},
        {"inherited entries", summary->inherited, state->inherited},
        {"fork flag", summary->flags & WAL__SUMMARY_FORK,
         state->flags & WAL__SUMMARY_FORK},
        {"deletion", summary->flags & WAL__SUMMARY_DELETED,
         state->flags & WAL__SUMMARY_DELETED},
        {"fork source", summary->fork_source, state->fork_source},
        {"FORK record", summary->fork_record, state->fork_record},
    };

    return find_difference(fields, sizeof(fields) / sizeof(fields[0]));
}

static const char *compare_counts(const struct wal__summary *state,
                                  const struct wal__summary *summary)
{
    const struct field fields[] = {
        {"entry count", summary->entries, state->entries},
        {"document count", summary->documents, state->documents},
        {"activity flag", summary->flags & WAL__SUMMARY_ACTIVE,
         state->flags & WAL__SUMMARY_ACTIVE},
    };

    return find_difference(fields, sizeof(fields) / sizeof(fields[0]));
}

/* What changes with each record, and is exact where none was left out. */
static const char *compare_exactly(const struct check_session *session,
                                   const struct wal__summary *summary)
{
    const struct wal__summary *state = &session->state;
    const struct field fields[] = {
        {"creation time", (uint64_t)summary->created_ms,
         (uint64_t)state->created_ms},
        {"update time", (uint64_t)summary->updated_ms,
         (uint64_t)state->updated_ms},
        {"last sequence", summary->last_sequence, state->last_sequence},
        {"bytes", summary->bytes, state->bytes},
        {"head", summary->head_sequence, state->head_sequence},
        {"head's id", check_hash_of(summary->head_id), session->head_hash},
        {"trash flag", summary->flags & WAL__SUMMARY_TRASHED,
         state->flags & WAL__SUMMARY_TRASHED},
        {"moved flag", summary->flags & WAL__SUMMARY_MOVED,
         state->flags & WAL__SUMMARY_MOVED},
        {"straight flag", summary->flags & WAL__SUMMARY_STRAIGHT,
         summary->flags & WAL__SUMMARY_STRAIGHT & state->flags},
        {"first message", summary->first_sequence, state->first_sequence},
        {"first message's owner", summary->first_owner, state->first_owner},
    };

    return find_difference(fields, sizeof(fields) / sizeof(fields[0]));
}

/* A record that the session sees, or null. */
static const struct check_replayed *
find_seen(const struct check_store *store, uint32_t session, uint64_t sequence)
{
    const struct check_replayed *replayed =
        check_model_find_replayed(&store->model, sequence);

    return replayed != NULL && replayed->type == WAL__FRAME_ENTRY &&
                   check_model_can_see(&store->model, session, replayed)
               ? replayed
               : NULL;
}

/* What a rewritten segment's summary of a session that is not deleted says
 * beyond the records that were kept. */
static const char *compare_loosely(const struct check_store *store,
                                   const struct check_session *session,
                                   const struct wal__summary *summary,
                                   const struct check_segment *rewritten)
{
    const struct wal__summary *state = &session->state;
    const struct check_replayed *head =
        find_seen(store, session->number, summary->head_sequence);
    const struct check_replayed *first =
        find_seen(store, session->number, summary->first_sequence);
    const char *field = compare_counts(state, summary);

    if (field != NULL) {
        return field;
    }
    if (summary->last_sequence < state->last_sequence ||
        summary->last_sequence > check_segment_last_sequence(rewritten)) {
        return "last sequence";
    }
    if (summary->bytes < state->bytes) {
        return "bytes";
    }
    if (summary->head_sequence != state->head_sequence &&
        summary->head_sequence != 0 &&
        (head == NULL || head->id_hash != check_hash_of(summary->head_id))) {
        return "head";
    }
    if (summary->first_sequence != state->first_sequence &&
        (first == NULL || !first->is_erased ||
         first->session != summary->first_owner)) {
        return "first message";
    }
    return NULL;
}

/* Whether a summary has another SESSION record than the log before it. */
static bool record_differs(const struct check_store *store,
                           const struct check_session *session,
                           const struct wal__summary *summary,
                           const struct check_segment *rewritten)
{
    return positions_differ(store, summary->session_position,
                            session->state.session_position, rewritten, true) ||
           summary->schema_version != session->state.schema_version ||
           texts_differ(store, session, summary);
}

/* Whether nothing but the id is left of the session's newest SESSION record. So
 * erasing leaves one that a later record replaces. */
static bool is_emptied(const struct check_store *store,
                       const struct check_session *session)
{
    const struct wal__session_record *record = &session->record;
    uint64_t position = session->state.session_position;

    return check_chain_find_rewritten(
               &store->log, wal__position_segment(position)) != NULL &&
           record->cwd.size + record->project.size + record->title.size +
                   record->source.size + record->parent_id.size ==
               0;
}

const char *check_summary(const struct check_store *store,
                          struct check_session *session,
                          const struct wal__summary *summary,
                          const struct check_segment *of, bool is_loose)
{
    const struct wal__summary *state = &session->state;
    bool is_record_known = session->outdated_in == NULL && !is_loose;
    const char *field;

    if (store->has_rewritten &&
        (!session->has_record || check_session_is_deleted(session))) {
        return NULL; /* most of it may be gone */
    }
    field = compare_identity(state, summary);
    if (field == NULL && is_loose) {
        return compare_loosely(store, session, summary, of);
    }
    if (field == NULL) {
        field = compare_exactly(session, summary);
    }
    if (field == NULL) {
        field = compare_counts(state, summary);
    }
    if (field == NULL && is_record_known) {
        field = positions_differ(store, summary->session_position,
                                 state->session_position, of, false)
                    ? "SESSION position"
                : summary->schema_version != state->schema_version
                    ? "schema version"
                    : NULL;
    }
    if (field == NULL && is_record_known &&
        texts_differ(store, session, summary)) {
        if (of == NULL || !is_emptied(store, session)) {
            return "texts";
        }
        session->outdated_in = of; /* it is not rewritten yet */
    }
    return field;
}

void check_summary_adopt(const struct check_store *store,
                         struct check_session *session,
                         const struct wal__summary *summary,
                         struct check_segment *rewritten)
{
    struct wal__summary *state = &session->state;

    if (summary->first_sequence != state->first_sequence) {
        free(session->first_text);
        session->first_text = NULL;
        session->first_size = 0;
    }
    state->created_ms = summary->created_ms;
    state->updated_ms = summary->updated_ms;
    state->last_sequence = summary->last_sequence;
    state->entries = summary->entries;
    state->documents = summary->documents;
    state->bytes = summary->bytes;
    state->head_sequence = summary->head_sequence;
    session->head_hash = check_hash_of(summary->head_id);
    state->first_sequence = summary->first_sequence;
    state->first_owner = summary->first_owner;
    state->flags &= ~(uint32_t)(WAL__SUMMARY_STRAIGHT | WAL__SUMMARY_ACTIVE);
    state->flags |=
        summary->flags & (WAL__SUMMARY_STRAIGHT | WAL__SUMMARY_ACTIVE);
    /* The newest SESSION record is never left out: a later one must come. */
    if (session->outdated_in == NULL && session->has_record &&
        record_differs(store, session, summary, rewritten)) {
        session->outdated_in = rewritten;
    }
}
