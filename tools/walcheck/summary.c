/*
 * summary.c - compares a summary of an index or of the catalogue field by
 * field with the session in the log (SPEC.md 2.12).
 *
 * Two fields are not compared, because they depend on where the summary is
 * stored: the previous segment, and the damage flag, which only recovery sets.
 *
 * Threads: any.
 */
#include <string.h>

#include "format/bytes/crc32.h"
#include "tools/walcheck/walcheck.h"

static uint64_t hash_of(struct wal__span id)
{
    return id.size == 0 ? 0 : wal__id_hash(id.data, id.size);
}

static bool texts_differ(const struct check_session *session,
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

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (pairs[i].a.size != pairs[i].b.size ||
            (pairs[i].a.size > 0 &&
             memcmp(pairs[i].a.data, pairs[i].b.data, pairs[i].a.size) != 0)) {
            return true;
        }
    }
    return false;
}

const char *check_summary(const struct check_session *session,
                          const struct wal__summary *summary)
{
    const struct wal__summary *state = &session->state;
    const struct {
        const char *name;
        uint64_t found;
        uint64_t expected;
    } fields[] = {
        {"id", summary->id_hash, state->id_hash},
        {"SESSION position", summary->session_position,
         state->session_position},
        {"fork point", summary->fork_sequence, state->fork_sequence},
        {"fork owner", summary->fork_owner, state->fork_owner},
        {"depth", summary->depth, state->depth},
        {"creation time", (uint64_t)summary->created_ms,
         (uint64_t)state->created_ms},
        {"update time", (uint64_t)summary->updated_ms,
         (uint64_t)state->updated_ms},
        {"last sequence", summary->last_sequence, state->last_sequence},
        {"entry count", summary->entries, state->entries},
        {"inherited entries", summary->inherited, state->inherited},
        {"bytes", summary->bytes, state->bytes},
        {"head", summary->head_sequence, state->head_sequence},
        {"head's id", hash_of(summary->head_id), session->head_hash},
        {"fork flag", summary->flags & WAL__SUMMARY_FORK,
         state->flags & WAL__SUMMARY_FORK},
        {"activity flag", summary->flags & WAL__SUMMARY_ACTIVE,
         state->flags & WAL__SUMMARY_ACTIVE},
        {"straight flag", summary->flags & WAL__SUMMARY_STRAIGHT,
         summary->flags & WAL__SUMMARY_STRAIGHT & state->flags},
        {"deletion", summary->flags & WAL__SUMMARY_DELETED,
         state->flags & WAL__SUMMARY_DELETED},
        {"fork source", summary->fork_source, state->fork_source},
        {"FORK record", summary->fork_record, state->fork_record},
        {"first message", summary->first_sequence, state->first_sequence},
        {"first message's owner", summary->first_owner, state->first_owner},
        {"document count", summary->documents, state->documents},
        {"schema version", summary->schema_version, state->schema_version},
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (fields[i].found != fields[i].expected) {
            return fields[i].name;
        }
    }
    return texts_differ(session, summary) ? "texts" : NULL;
}
