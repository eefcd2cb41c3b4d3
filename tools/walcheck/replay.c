/*
 * replay.c - applies the records of the log to the model, the state of
 * sessions, records and documents, and checks that they are consistent (SPEC.md
 * 2.5 to 2.8, 2.14 to 2.16); compares a summary of an index or of the catalogue
 * field by field with the session in the log (2.12).
 *
 * Two fields of summaries are not compared, because they depend on where the summary is stored: the
 * previous segment, and the damage flag, which only recovery sets. The summaries of a rewritten
 * segment count what was left out of it, and have times and texts of records that are gone (3.9):
 * they are compared as far as the log still says, and the rest is adopted, so that later summaries
 * can be compared exactly.
 *
 * Invariant: sessions ascend by number, records and versions by sequence. The store itself, which
 * has documents too, is the last session, under WAL__STORE_NUMBER and without a SESSION record.
 * Records are applied once, ascending by sequence. Where records may be lost, an inconsistency is
 * not reported: the loss may explain it. Nor is one of a deleted session where compaction left out
 * records: they may be of it (3.9).
 *
 * Threads: the main thread.
 */
#include "engine/base/containers.h"
#include "tools/walcheck/walcheck.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/payload/first_text.h"
#include "format/payload/timestamp.h"

/* --- the model ---------------------------------------------------------- */

/* The id in the store's summary; a session may have the same id. */
static const struct wal__span store_id = {(const uint8_t *)"store", 5};

/* The rank of the first session whose number is at least `number`. */
static size_t session_rank(const struct check_model *model, uint32_t number)
{
    size_t low = 0;
    size_t high = model->session_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (model->sessions[middle]->number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct check_session *check_model_find(const struct check_model *model, uint32_t number)
{
    size_t rank = session_rank(model, number);

    if (rank < model->session_count && model->sessions[rank]->number == number) {
        return model->sessions[rank];
    }
    return NULL;
}

/* As check_model_find, but adds the session if it is missing. */
static struct check_session *model_get_or_add(struct check_model *model, uint32_t number)
{
    size_t rank = session_rank(model, number);
    struct check_session *session;

    if (rank < model->session_count && model->sessions[rank]->number == number) {
        return model->sessions[rank];
    }
    model->sessions = cli_reserve(model->sessions, model->session_count, &model->session_capacity,
                                  sizeof(*model->sessions));
    memmove(model->sessions + rank + 1, model->sessions + rank,
            (model->session_count - rank) * sizeof(*model->sessions));
    session = cli_alloc(sizeof(*session));
    *session = (struct check_session){.number = number, .state.number = number};
    if (number == WAL__STORE_NUMBER) {
        session->has_record = true;
        session->record.id = store_id;
        session->state.id_hash = wal__id_hash(store_id.data, store_id.size);
    }
    model->sessions[rank] = session;
    model->session_count++;
    return session;
}

bool check_session_is_deleted(const struct check_session *session)
{
    return (session->state.flags & WAL__SUMMARY_DELETED) != 0;
}

size_t check_model_count_sessions(const struct check_model *model, bool deleted)
{
    size_t count = 0;

    for (size_t i = 0; i < model->session_count; i++) {
        count += model->sessions[i]->number != WAL__STORE_NUMBER &&
                 check_session_is_deleted(model->sessions[i]) == deleted;
    }
    return count;
}

static const struct check_replayed *model_find_replayed(const struct check_model *model,
                                                        uint64_t sequence)
{
    size_t rank =
        wal__lower_bound(model->replayed, model->replayed_count, sizeof(model->replayed[0]),
                         offsetof(struct check_replayed, sequence), sequence);

    return rank < model->replayed_count && model->replayed[rank].sequence == sequence
               ? &model->replayed[rank]
               : NULL;
}

/* Whether a session inherits or owns that record. */
static bool model_can_see(const struct check_model *model, uint32_t number,
                          const struct check_replayed *replayed)
{
    uint64_t highest = UINT64_MAX;

    for (unsigned depth = 0; depth <= WAL__LINEAGE_MAX; depth++) {
        const struct check_session *session = check_model_find(model, number);

        if (session == NULL || replayed->sequence > highest) {
            return false;
        }
        if (replayed->session == number) {
            return true;
        }
        if ((session->state.flags & WAL__SUMMARY_FORK) == 0) {
            return false;
        }
        if (session->state.fork_sequence < highest) {
            highest = session->state.fork_sequence;
        }
        number = session->state.fork_source;
    }
    return false;
}

/* model.c: marks the sessions that lost records in this segment. */
static void model_mark_damaged(struct check_store *store, const struct check_segment *segment)
{
    for (size_t i = 0; i < segment->damages.count; i++) {
        const struct check_damage *damage = &segment->damages.items[i];

        for (size_t k = 0; k < damage->session_count; k++) {
            model_get_or_add(&store->model, damage->sessions[k])->damaged = true;
        }
    }
    store->records_lost = store->records_lost || segment->has_lost_records;
}

/* The hash of an id; 0 of none. */
static uint64_t hash_of(struct wal__span id)
{
    return id.size == 0 ? 0 : wal__id_hash(id.data, id.size);
}

/* --- documents ------------------------------------------------------------ */

enum {
    DOC_NAME_SIZE = 12 /* session number and key hash */
};

static struct wal_slice doc_name(uint32_t session, uint64_t key_hash, uint8_t out[DOC_NAME_SIZE])
{
    wal__put32(out, session);
    wal__put64(out + sizeof(session), key_hash);
    return (struct wal_slice){out, DOC_NAME_SIZE};
}

/* The sequence of the newest version of a document that a session sees: in the session itself, or
 * inherited as of its fork; 0: none. */
static uint64_t model_doc(const struct check_model *model, uint32_t number, uint64_t key_hash)
{
    uint64_t highest = UINT64_MAX;
    uint8_t name[DOC_NAME_SIZE];

    for (unsigned depth = 0; depth <= WAL__LINEAGE_MAX; depth++) {
        const struct check_session *session = check_model_find(model, number);
        const uint32_t *newest = cli_ids_find(&model->doc_names, doc_name(number, key_hash, name));
        uint32_t rank = newest == NULL ? 0 : *newest;

        while (rank != 0 && model->docs[rank - 1].sequence > highest) {
            rank = model->docs[rank - 1].previous;
        }
        if (rank != 0) {
            return model->docs[rank - 1].sequence;
        }
        if (session == NULL || session->state.fork_source == 0) {
            return 0;
        }
        if (session->state.fork_record < highest) {
            highest = session->state.fork_record;
        }
        number = session->state.fork_source;
    }
    return 0;
}

static void model_add_doc(struct check_model *model, uint32_t session, uint64_t key_hash,
                          uint64_t sequence)
{
    uint8_t name[DOC_NAME_SIZE];
    uint32_t *newest = cli_ids_get_or_add(&model->doc_names, doc_name(session, key_hash, name));

    *CLI_PUSH(model->docs, model->doc_count, model->doc_capacity) =
        (struct check_doc){sequence, *newest};
    *newest = (uint32_t)model->doc_count;
}

/* --- sessions whose SESSION record is lost -------------------------------- */

static void copy_session_record(struct check_model *model, struct check_session *session,
                                const struct wal__session_record *record)
{
    struct wal__span payload;

    free(session->payload);
    payload.size = wal__session_record_size(record);
    session->payload = cli_alloc(payload.size);
    payload.data = session->payload;
    wal__session_record_encode(record, session->payload);
    session->has_record =
        wal__session_record_decode(payload, WAL__FORMAT_VERSION, &session->record) == WAL__FMT_OK;
    if (session->has_record && !check_session_is_deleted(session)) {
        *cli_ids_get_or_add(&model->ids,
                            (struct wal_slice){session->record.id.data, session->record.id.size}) =
            session->number;
    }
}

void check_model_add_from_index(struct check_model *model, const struct wal__summary *summary)
{
    struct check_session *session = model_get_or_add(model, summary->number);
    const struct wal__session_record record = {
        .created_ms = summary->created_ms,
        .schema_version = summary->schema_version == 0 ? 1 : summary->schema_version,
        .flags =
            ((summary->flags & WAL__SUMMARY_FORK) != 0 ? (uint32_t)WAL__SESSION_RECORD_FORK : 0) |
            ((summary->flags & WAL__SUMMARY_TRASHED) != 0 ? (uint32_t)WAL__SESSION_RECORD_TRASHED
                                                          : 0) |
            ((summary->flags & WAL__SUMMARY_MOVED) != 0 ? (uint32_t)WAL__SESSION_RECORD_MOVED : 0),
        .id = summary->id,
        .cwd = summary->cwd,
        .project = summary->project,
        .title = summary->title,
        .parent_id = summary->parent_id,
        .source = summary->source,
    };

    session->damaged = true;
    session->state.flags |= summary->flags & WAL__SUMMARY_DELETED;
    if (!session->has_record) {
        copy_session_record(model, session, &record);
    }
}

/* --- summaries ---------------------------------------------------------- */

/* Whether the message whose beginning a summary has was erased since: the index of another segment,
 * which is not rewritten before it is erased too, may have it still. */
static bool is_first_erased(const struct check_store *store, const struct wal__summary *summary)
{
    const struct check_replayed *first =
        model_find_replayed(&store->model, summary->first_sequence);

    return first != NULL && first->is_erased;
}

/* Compares the texts; without the first text, if the message was erased, or if the summary has none
 * and is of a rewritten segment. */
static bool texts_differ(const struct check_store *store, const struct check_session *session,
                         const struct wal__summary *summary, bool is_rewritten)
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
        {{(const uint8_t *)session->first_text, session->first_size}, summary->first_text},
    };

    bool has_no_first =
        is_first_erased(store, summary) || (is_rewritten && summary->first_text.size == 0);
    const size_t count = sizeof(pairs) / sizeof(pairs[0]) - (has_no_first ? 1 : 0);

    for (size_t i = 0; i < count; i++) {
        if (!wal__span_equal(pairs[i].a, pairs[i].b)) {
            return true;
        }
    }
    return false;
}

/* A position in the index of a segment counts where it leads into that segment: another one may
 * have been rewritten since, or in a replica not yet. Of the catalogue, `of` being null, it counts
 * unless it leads to what was rewritten.
 */
static bool positions_differ(const struct check_store *store, uint64_t found, uint64_t expected,
                             const struct check_segment *of, bool is_loose)
{
    uint64_t id = wal__position_segment(found);

    if (found == expected) {
        return false;
    }
    if (found == 0) {
        return !is_loose;
    }
    return of != NULL ? id == of->head->id : check_chain_find_rewritten(&store->log, id) == NULL;
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
        {"fork flag", summary->flags & WAL__SUMMARY_FORK, state->flags & WAL__SUMMARY_FORK},
        {"deletion", summary->flags & WAL__SUMMARY_DELETED, state->flags & WAL__SUMMARY_DELETED},
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
        {"activity flag", summary->flags & WAL__SUMMARY_ACTIVE, state->flags & WAL__SUMMARY_ACTIVE},
    };

    return find_difference(fields, sizeof(fields) / sizeof(fields[0]));
}

/* What changes with each record, and is exact where none was left out. */
static const char *compare_exactly(const struct check_session *session,
                                   const struct wal__summary *summary)
{
    const struct wal__summary *state = &session->state;
    const struct field fields[] = {
        {"creation time", (uint64_t)summary->created_ms, (uint64_t)state->created_ms},
        {"update time", (uint64_t)summary->updated_ms, (uint64_t)state->updated_ms},
        {"last sequence", summary->last_sequence, state->last_sequence},
        {"bytes", summary->bytes, state->bytes},
        {"head", summary->head_sequence, state->head_sequence},
        {"head's id", hash_of(summary->head_id), session->head_hash},
        {"trash flag", summary->flags & WAL__SUMMARY_TRASHED, state->flags & WAL__SUMMARY_TRASHED},
        {"moved flag", summary->flags & WAL__SUMMARY_MOVED, state->flags & WAL__SUMMARY_MOVED},
        {"straight flag", summary->flags & WAL__SUMMARY_STRAIGHT,
         summary->flags & WAL__SUMMARY_STRAIGHT & state->flags},
        {"first message", summary->first_sequence, state->first_sequence},
        {"first message's owner", summary->first_owner, state->first_owner},
    };

    return find_difference(fields, sizeof(fields) / sizeof(fields[0]));
}

/* A record that the session sees, or null. */
static const struct check_replayed *find_seen(const struct check_store *store, uint32_t session,
                                              uint64_t sequence)
{
    const struct check_replayed *replayed = model_find_replayed(&store->model, sequence);

    return replayed != NULL && replayed->type == WAL__FRAME_ENTRY &&
                   model_can_see(&store->model, session, replayed)
               ? replayed
               : NULL;
}

/* What a rewritten segment's summary of a session that is not deleted says beyond the records that
 * were kept. */
static const char *compare_loosely(const struct check_store *store,
                                   const struct check_session *session,
                                   const struct wal__summary *summary,
                                   const struct check_segment *rewritten)
{
    const struct wal__summary *state = &session->state;
    const struct check_replayed *head = find_seen(store, session->number, summary->head_sequence);
    const struct check_replayed *first = find_seen(store, session->number, summary->first_sequence);
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
    if (summary->head_sequence != state->head_sequence && summary->head_sequence != 0 &&
        (head == NULL || head->id_hash != hash_of(summary->head_id))) {
        return "head";
    }
    if (summary->first_sequence != state->first_sequence &&
        (first == NULL || !first->is_erased || first->session != summary->first_owner)) {
        return "first message";
    }
    return NULL;
}

/* Whether a summary has another SESSION record than the log before it. */
static bool record_differs(const struct check_store *store, const struct check_session *session,
                           const struct wal__summary *summary,
                           const struct check_segment *rewritten)
{
    return positions_differ(store, summary->session_position, session->state.session_position,
                            rewritten, true) ||
           summary->schema_version != session->state.schema_version ||
           texts_differ(store, session, summary, true);
}

/* Whether nothing but the id is left of the session's newest SESSION record. So erasing leaves one
 * that a later record replaces. */
static bool is_emptied(const struct check_store *store, const struct check_session *session)
{
    const struct wal__session_record *record = &session->record;
    uint64_t position = session->state.session_position;

    return check_chain_find_rewritten(&store->log, wal__position_segment(position)) != NULL &&
           record->cwd.size + record->project.size + record->title.size + record->source.size +
                   record->parent_id.size ==
               0;
}

/* Takes what a summary says of the first message, if that is a message: another version of the
 * library knows other forms of them (SPEC.md 5.4). Of the message that the log says the text is
 * compared. */
static void adopt_first_message(const struct check_store *store, struct check_session *session,
                                const struct wal__summary *summary)
{
    const struct check_replayed *first = find_seen(store, session->number, summary->first_sequence);

    if (summary->first_sequence == session->state.first_sequence ||
        (summary->first_sequence != 0 &&
         (first == NULL || first->session != summary->first_owner || first->stream != 0))) {
        return;
    }
    session->state.first_sequence = summary->first_sequence;
    session->state.first_owner = summary->first_owner;
    free(session->first_text);
    session->first_text =
        cli_copy_text((const char *)summary->first_text.data, summary->first_text.size);
    session->first_size = summary->first_text.size;
}

const char *check_summary(const struct check_store *store, struct check_session *session,
                          const struct wal__summary *summary, const struct check_segment *of,
                          bool is_loose)
{
    const struct wal__summary *state = &session->state;
    bool is_record_known = session->outdated_in == NULL && !is_loose;
    const char *field;

    if (store->has_rewritten && (!session->has_record || check_session_is_deleted(session))) {
        return NULL; /* most of it may be gone */
    }
    adopt_first_message(store, session, summary);
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
        field =
            positions_differ(store, summary->session_position, state->session_position, of, false)
                ? "SESSION position"
            : summary->schema_version != state->schema_version ? "schema version"
                                                               : NULL;
    }
    if (field == NULL && is_record_known && texts_differ(store, session, summary, false)) {
        if (of == NULL || !is_emptied(store, session)) {
            return "texts";
        }
        session->outdated_in = of; /* it is not rewritten yet */
    }
    return field;
}

void check_summary_adopt(const struct check_store *store, struct check_session *session,
                         const struct wal__summary *summary, struct check_segment *rewritten)
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
    session->head_hash = hash_of(summary->head_id);
    state->first_sequence = summary->first_sequence;
    state->first_owner = summary->first_owner;
    state->flags &= ~(uint32_t)(WAL__SUMMARY_STRAIGHT | WAL__SUMMARY_ACTIVE);
    state->flags |= summary->flags & (WAL__SUMMARY_STRAIGHT | WAL__SUMMARY_ACTIVE);
    /* The newest SESSION record is never left out: a later one must come. */
    if (session->outdated_in == NULL && session->has_record &&
        record_differs(store, session, summary, rewritten)) {
        session->outdated_in = rewritten;
    }
    if (session->first_size > 0 && summary->first_text.size == 0 &&
        !is_first_erased(store, summary)) {
        session->stripped_in = rewritten;
    }
}

/* --- the replay --------------------------------------------------------- */

enum {
    FIRST_ENTRIES = 64 /* of a session: one of them has its first text */
};

static const struct wal__span main_head = {(const uint8_t *)"main", 4};

struct replay {
    struct check_store *store;
    struct check_segment *segment;
    const struct check_record *record;
    struct check_session *session;
    struct check_payloads payloads;
};

static void report_damage(const struct replay *replay, const char *what)
{
    const struct check_record *record = replay->record;
    bool in_block = wal__segment_is_rewritten(&replay->segment->head->header);
    struct check_damage *damage = check_damage_add(
        &replay->segment->damages, CHECK_LOSS, replay->segment->head->name,
        in_block ? wal__block_offset(record->posting.offset) : record->posting.offset,
        in_block ? 0 : wal__frame_total_size(record->stored_size),
        "the %s of sequence %" PRIu64 " %s", wal__frame_type_name(record->posting.type),
        record->posting.sequence, what);

    check_damage_session(damage, record->session);
    damage->if_live = replay->store->has_rewritten ? record->session : 0;
    replay->session->damaged = true;
}

/* Whether lost records may explain an inconsistency. */
static bool may_be_lost(const struct replay *replay)
{
    return replay->store->records_lost || replay->segment->has_lost_records ||
           replay->session->damaged;
}

/* Whether an id belongs to another session. If that session's tombstone may be lost, the id counts
 * as free. */
static bool is_id_in_use(const struct replay *replay, uint32_t number)
{
    const struct check_session *holder;

    if (number == 0 || number == replay->session->number) {
        return false;
    }
    holder = check_model_find(&replay->store->model, number);
    return holder != NULL && !holder->damaged && !may_be_lost(replay);
}

/* A session without entries was last active when it was created. */
static void set_created(const struct replay *replay, int64_t created_ms)
{
    struct wal__summary *state = &replay->session->state;
    int64_t time_ms = wal__session_time_believed(created_ms, replay->record->clock_ms);

    if (state->session_position == 0) {
        state->created_ms = time_ms;
        state->updated_ms = time_ms;
    } else if (time_ms < state->created_ms) {
        state->created_ms = time_ms;
    }
}

static void replay_session(const struct replay *replay)
{
    const struct check_record *record = replay->record;
    struct check_session *session = replay->session;
    struct wal__session_record decoded;
    struct wal__span payload = {record->payload, record->stored_size};
    struct wal_slice id;
    uint32_t *number;

    if (check_session_decode(replay->segment, payload, &decoded) != WAL__FMT_OK ||
        wal__id_hash(decoded.id.data, decoded.id.size) != record->posting.id_hash) {
        report_damage(replay, "is not well-formed");
        return;
    }
    id = (struct wal_slice){decoded.id.data, decoded.id.size};
    number = cli_ids_get_or_add(&replay->store->model.ids, id);
    if (is_id_in_use(replay, *number) ||
        (session->has_record &&
         (session->record.id.size != decoded.id.size ||
          memcmp(session->record.id.data, decoded.id.data, decoded.id.size) != 0))) {
        report_damage(replay, "names a session that has another number or id");
        return;
    }
    *number = session->number;
    free(session->payload);
    session->payload = cli_alloc(record->stored_size);
    memcpy(session->payload, record->payload, record->stored_size);
    payload.data = session->payload;
    session->has_record =
        check_session_decode(replay->segment, payload, &session->record) == WAL__FMT_OK;
    session->outdated_in = NULL;
    session->state.id_hash = record->posting.id_hash;
    set_created(replay, decoded.created_ms);
    session->state.schema_version = decoded.schema_version;
    session->state.session_position =
        wal__position(replay->segment->head->id, record->posting.offset);
    session->state.flags &= ~check_session_flags(UINT32_MAX);
    session->state.flags |= check_session_flags(decoded.flags);
    if ((decoded.flags & WAL__SESSION_RECORD_TRASHED) != 0) {
        check_feature(replay->store, replay->segment, record, WAL__INCOMPAT_TRASH,
                      "puts a session in the trash");
    }
    if ((decoded.flags & WAL__SESSION_RECORD_MOVED) != 0) {
        check_feature(replay->store, replay->segment, record, WAL__INCOMPAT_MOVED,
                      "marks a session as moved");
    }
}

/* Whether the target is an entry that the record's session sees. */
static bool is_valid_target(const struct replay *replay, uint64_t target, uint8_t stream)
{
    const struct check_model *model = &replay->store->model;
    const struct check_replayed *replayed = model_find_replayed(model, target);

    return replayed != NULL && replayed->type == WAL__FRAME_ENTRY && !replayed->is_provisional &&
           replayed->stream == stream && model_can_see(model, replay->session->number, replayed);
}

/* Whether the entry of that sequence has that id; sequence 0 has no id. */
static bool entry_has_id(const struct replay *replay, uint64_t sequence, struct wal__span id)
{
    const struct check_replayed *replayed = model_find_replayed(&replay->store->model, sequence);

    return replayed == NULL ? sequence == 0 && id.size == 0 : replayed->id_hash == hash_of(id);
}

/* The session with that number and id; null if it is missing or the record's own. */
static const struct check_session *other_session(const struct replay *replay, uint32_t number,
                                                 struct wal__span id)
{
    const struct check_session *other = check_model_find(&replay->store->model, number);

    return other != NULL && other != replay->session && other->has_record &&
                   number != WAL__STORE_NUMBER && other->state.id_hash == hash_of(id)
               ? other
               : NULL;
}

/* A fork inherits the first text of its source if it is before the fork point. */
static void copy_first_text(struct wal__summary *state, const struct wal__summary *source)
{
    if (source->first_sequence != 0 && source->first_sequence <= state->fork_sequence) {
        state->first_sequence = source->first_sequence;
        state->first_owner = source->first_owner;
    }
}

static void replay_fork(const struct replay *replay)
{
    const struct check_record *record = replay->record;
    struct check_session *session = replay->session;
    struct wal__summary *state = &session->state;
    const struct check_session *source;
    const struct check_session *owner;
    const struct check_replayed *replayed;
    struct wal__fork_record fork;

    if (wal__fork_record_decode((struct wal__span){record->payload, record->stored_size}, &fork) !=
        WAL__FMT_OK) {
        report_damage(replay, "is not well-formed");
        return;
    }
    state->flags |= WAL__SUMMARY_FORK;
    state->fork_sequence = record->posting.parent;
    state->fork_record = record->posting.sequence;
    state->fork_source = fork.source;
    state->fork_owner = fork.owner;
    state->inherited = fork.inherited;
    state->depth = fork.depth;
    if (fork.stream == 0) {
        state->head_sequence = record->posting.parent;
        session->head_hash = hash_of(fork.entry_id);
    }
    source = other_session(replay, fork.source, fork.source_id);
    owner = other_session(replay, fork.owner, fork.owner_id);
    if (source == NULL || owner == NULL) {
        if (!may_be_lost(replay)) {
            report_damage(replay, "names a source that does not exist");
        }
        return;
    }
    if (fork.stream == 0) {
        copy_first_text(state, &source->state);
    }
    replayed = model_find_replayed(&replay->store->model, record->posting.parent);
    if (record->posting.parent != 0 && !may_be_lost(replay) &&
        (replayed == NULL || replayed->type != WAL__FRAME_ENTRY || replayed->is_provisional ||
         replayed->session != fork.owner || replayed->stream != fork.stream ||
         replayed->id_hash != hash_of(fork.entry_id) ||
         !model_can_see(&replay->store->model, fork.source, replayed))) {
        report_damage(replay, "names a fork point that does not exist");
    }
}

/* --- entries -------------------------------------------------------------- */

/* Sets the session's first text from the first user message. */
static void replay_first_text(struct replay *replay)
{
    struct check_session *session = replay->session;
    struct wal__entry_record entry;
    uint8_t text[WAL__FIRST_TEXT_MAX];
    size_t size;
    const uint8_t *payload;

    if (session->state.first_sequence != 0 || session->state.entries >= FIRST_ENTRIES) {
        return;
    }
    payload = check_payload_read(&replay->payloads, replay->segment, replay->record->posting.offset,
                                 replay->record->stored_size);
    if (payload == NULL ||
        wal__entry_record_decode((struct wal__span){payload, replay->record->stored_size},
                                 &entry) != WAL__FMT_OK ||
        !wal__first_text(entry.payload, text, &size)) {
        return;
    }
    session->state.first_sequence = replay->record->posting.sequence;
    session->state.first_owner = session->number;
    free(session->first_text);
    session->first_text = cli_copy_text(text, size);
    session->first_size = size;
}

/* Unset where the log does not prove it: an index may leave it out. */
static void replay_straight(struct wal__summary *state, const struct wal__posting *posting)
{
    bool is_under_head =
        posting->parent == state->head_sequence && (posting->flags & WAL__FRAME_MOVES_HEAD) != 0;

    if (!is_under_head) {
        state->flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
    } else if (state->entries == 0 && state->head_sequence == state->fork_sequence) {
        state->flags |= WAL__SUMMARY_STRAIGHT;
    }
}

/* Only a delta is provisional, and it moves no head. */
static void check_provisional(const struct replay *replay)
{
    const struct wal__posting *posting = &replay->record->posting;

    if ((posting->flags & WAL__FRAME_PROVISIONAL) == 0) {
        return;
    }
    check_feature(replay->store, replay->segment, replay->record, WAL__INCOMPAT_PROVISIONAL,
                  "is provisional");
    if (posting->type != WAL__FRAME_ENTRY || posting->kind != WAL__KIND_MESSAGE_DELTA_BATCH ||
        (posting->flags & WAL__FRAME_MOVES_HEAD) != 0) {
        report_damage(replay, "is provisional, and is no delta");
    }
}

static void replay_entry(struct replay *replay)
{
    const struct wal__posting *posting = &replay->record->posting;
    struct wal__summary *state = &replay->session->state;

    if (posting->parent != 0 && !may_be_lost(replay) &&
        !is_valid_target(replay, posting->parent, posting->stream)) {
        report_damage(replay, "names a parent that is not in its lineage");
    }
    if ((posting->flags & WAL__FRAME_PROVISIONAL) != 0) {
        return;
    }
    if ((state->flags & WAL__SUMMARY_ACTIVE) == 0 || state->updated_ms < replay->record->time_ms) {
        state->updated_ms = replay->record->time_ms;
    }
    if (state->created_ms > replay->record->time_ms) {
        state->created_ms = replay->record->time_ms;
    }
    state->flags |= WAL__SUMMARY_ACTIVE;
    if (posting->stream != 0) {
        return;
    }
    replay_first_text(replay);
    replay_straight(state, posting);
    state->entries++;
    if ((posting->flags & WAL__FRAME_MOVES_HEAD) != 0) {
        state->head_sequence = posting->sequence;
        replay->session->head_hash = posting->id_hash;
    }
}

static void replay_head(const struct replay *replay)
{
    const struct check_record *record = replay->record;
    struct wal__head_record head;

    if (wal__head_record_decode((struct wal__span){record->payload, record->stored_size}, &head) !=
            WAL__FMT_OK ||
        wal__id_hash(head.name.data, head.name.size) != record->posting.id_hash) {
        report_damage(replay, "is not well-formed");
        return;
    }
    if (!may_be_lost(replay) &&
        (!entry_has_id(replay, record->posting.parent, head.entry_id) ||
         (record->posting.parent != 0 &&
          !is_valid_target(replay, record->posting.parent, record->posting.stream)))) {
        report_damage(replay, "names a target that is not in its lineage");
    }
    if (record->posting.stream == 0 && head.name.size == main_head.size &&
        memcmp(head.name.data, main_head.data, main_head.size) == 0) {
        replay->session->state.head_sequence = record->posting.parent;
        replay->session->state.flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
        replay->session->head_hash = hash_of(head.entry_id);
    }
}

/* --- documents, redactions, deletions ------------------------------------- */

static void replay_doc(const struct replay *replay)
{
    const struct wal__posting *posting = &replay->record->posting;
    struct check_session *session = replay->session;
    struct check_model *model = &replay->store->model;
    uint64_t previous = model_doc(model, session->number, posting->id_hash);

    if (posting->parent != previous && !may_be_lost(replay)) {
        report_damage(replay, "does not name its previous version");
    }
    model_add_doc(model, session->number, posting->id_hash, posting->sequence);
    session->state.documents++;
}

/* Whether the session that holds a redaction saw the target. It may have been deleted, and have
 * left nothing. */
static bool could_see(const struct replay *replay, uint32_t number,
                      const struct check_replayed *target)
{
    const struct check_model *model = &replay->store->model;
    const struct check_session *session = check_model_find(model, number);

    return model_can_see(model, number, target) ||
           (replay->store->has_rewritten &&
            (session == NULL || !session->has_record || check_session_is_deleted(session)));
}

/* Whether a missing target of a redaction may be a delta that compaction dropped while it was
 * redacted. */
static bool may_be_dropped(const struct replay *replay, const struct check_replayed *target)
{
    return target == NULL && replay->store->has_rewritten &&
           (replay->store->incompat & WAL__INCOMPAT_PROVISIONAL) != 0;
}

/* A RESTORE: of an entry of the session that has its content. */
static void replay_restore(const struct replay *replay)
{
    const struct wal__posting *posting = &replay->record->posting;
    const struct check_replayed *target =
        model_find_replayed(&replay->store->model, posting->parent);

    if (may_be_lost(replay) || may_be_dropped(replay, target)) {
        return;
    }
    if (target == NULL || target->type != WAL__FRAME_ENTRY || target->stream != posting->stream ||
        target->session != replay->session->number) {
        report_damage(replay, "names a target that does not exist");
    }
}

static void replay_redact(const struct replay *replay)
{
    const struct check_record *record = replay->record;
    const struct check_model *model = &replay->store->model;
    struct check_session *session = replay->session;
    const struct check_replayed *replayed = model_find_replayed(model, record->posting.parent);
    struct wal__redact_record redact;

    if (wal__redact_record_decode((struct wal__span){record->payload, record->stored_size},
                                  &redact) != WAL__FMT_OK ||
        hash_of(redact.entry_id) != record->posting.id_hash) {
        report_damage(replay, "is not well-formed");
        return;
    }
    if (!may_be_lost(replay) && !may_be_dropped(replay, replayed) &&
        (!entry_has_id(replay, record->posting.parent, redact.target_id) || replayed == NULL ||
         replayed->type != WAL__FRAME_ENTRY || replayed->session != session->number ||
         replayed->stream != record->posting.stream ||
         !could_see(replay, redact.session, replayed))) {
        report_damage(replay, "names a target that does not exist");
    }
    if (session->state.first_owner == session->number &&
        session->state.first_sequence == record->posting.parent) {
        free(session->first_text);
        session->first_text = NULL;
        session->first_size = 0;
        session->stripped_in = NULL;
    }
}

static void replay_tombstone(const struct replay *replay)
{
    struct check_session *session = replay->session;
    const struct wal_slice id = {session->record.id.data, session->record.id.size};
    uint32_t *number = cli_ids_find(&replay->store->model.ids, id);

    session->state.flags |= WAL__SUMMARY_DELETED;
    if (number != NULL && *number == session->number) {
        *number = 0;
    }
}

/* A fork may write these to the session that owns its entry, whatever became of that one. */
static bool hides_or_restores(uint8_t type)
{
    return type == WAL__FRAME_REDACT || type == WAL__FRAME_RESTORE;
}

/* Whether the session's state allows a record of that type. */
static bool is_type_allowed(const struct replay *replay)
{
    const struct check_session *session = replay->session;
    uint8_t type = replay->record->posting.type;

    if (session->number == WAL__STORE_NUMBER) {
        return type == WAL__FRAME_DOC || type == WAL__FRAME_DOC_DELETE || type == WAL__FRAME_ACCEPT;
    }
    return !check_session_is_deleted(session) || hides_or_restores(type);
}

static void replay_by_type(struct replay *replay)
{
    switch (replay->record->posting.type) {
    case WAL__FRAME_SESSION:
        replay_session(replay);
        break;
    case WAL__FRAME_FORK:
        replay_fork(replay);
        break;
    case WAL__FRAME_ENTRY:
        replay_entry(replay);
        break;
    case WAL__FRAME_HEAD:
        replay_head(replay);
        break;
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        replay_doc(replay);
        break;
    case WAL__FRAME_REDACT:
        replay_redact(replay);
        break;
    case WAL__FRAME_RESTORE:
        replay_restore(replay);
        break;
    case WAL__FRAME_TOMBSTONE:
        replay_tombstone(replay);
        break;
    default:
        break;
    }
}

static void apply_record(struct replay *replay)
{
    const struct check_record *record = replay->record;
    struct check_session *session = replay->session;

    if (record->posting.type != WAL__FRAME_SESSION && !session->has_record &&
        !may_be_lost(replay) &&
        !(hides_or_restores(record->posting.type) && replay->store->has_rewritten)) {
        report_damage(replay, "belongs to a session that was never created");
    } else if (!is_type_allowed(replay) && !may_be_lost(replay)) {
        report_damage(replay, session->number == WAL__STORE_NUMBER
                                  ? "belongs to the store, which allows no such record"
                                  : "belongs to a session that is deleted");
    }
    if (session->number == WAL__STORE_NUMBER && session->state.last_sequence == 0) {
        session->state.created_ms = record->clock_ms;
    }
    check_provisional(replay);
    if ((record->posting.flags & WAL__FRAME_LZ4) != 0) {
        session->damaged = true; /* the tool cannot decode it */
    } else {
        replay_by_type(replay);
    }
    if (session->number == WAL__STORE_NUMBER) {
        session->state.updated_ms = record->clock_ms;
    }
    session->state.last_sequence = record->posting.sequence;
    session->state.bytes += wal__frame_total_size(record->stored_size);
}

static void add_replayed(struct check_store *store, const struct check_segment *segment,
                         const struct check_record *record)
{
    struct check_model *model = &store->model;

    *CLI_PUSH(model->replayed, model->replayed_count, model->replayed_capacity) =
        (struct check_replayed){
            .sequence = record->posting.sequence,
            .position = wal__position(segment->head->id, record->posting.offset),
            .id_hash = record->posting.id_hash,
            .session = record->session,
            .type = record->posting.type,
            .stream = record->posting.stream,
            .is_erased = record->is_erased,
            .is_provisional = (record->posting.flags & WAL__FRAME_PROVISIONAL) != 0,
        };
}

/* Applies the current record; false if the replay cannot continue. */
static bool replay_record(struct replay *replay)
{
    struct check_model *model = &replay->store->model;
    const struct check_record *record = replay->record;

    if (model->replayed_count > 0 &&
        model->replayed[model->replayed_count - 1].sequence >= record->posting.sequence) {
        check_damage_add(&replay->segment->damages, CHECK_LOSS, replay->segment->head->name,
                         record->posting.offset, 0, "sequence %" PRIu64 " is a repeat",
                         record->posting.sequence);
        replay->store->records_lost = true;
        return false;
    }
    if (record->session != 0) {
        replay->session = model_get_or_add(model, record->session);
        apply_record(replay);
    }
    add_replayed(replay->store, replay->segment, record);
    return true;
}

void check_replay(struct check_store *store, struct check_segment *segment)
{
    struct replay replay = {.store = store, .segment = segment};

    check_chain_continuity(segment);
    model_mark_damaged(store, segment);
    for (size_t i = 0; i < segment->record_count && !store->is_locked; i++) {
        replay.record = &segment->records[i];
        if (!replay_record(&replay)) {
            break;
        }
    }
    check_payload_close(&replay.payloads);
}

void check_replay_finish(struct check_store *store)
{
    for (size_t i = 0; i < store->model.session_count; i++) {
        const struct check_session *session = store->model.sessions[i];
        const struct check_segment *segment =
            session->outdated_in != NULL ? session->outdated_in : session->stripped_in;

        if (segment != NULL && !session->damaged && !store->records_lost &&
            !check_session_is_deleted(session)) {
            check_damage_add(&store->damages, CHECK_REDUNDANT, segment->head->name, 0, 0,
                             "the index has other texts of session %" PRIu32
                             " than the log; it is derived: no record is lost",
                             session->number);
        }
    }
}
