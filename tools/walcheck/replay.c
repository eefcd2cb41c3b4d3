/*
 * replay.c - applies the records of the log to the model and checks that they
 * are consistent (SPEC.md 2.5 to 2.8, 2.14 to 2.16).
 *
 * Invariant: records are applied once, ascending by sequence. Where records
 * may be lost, an inconsistency is not reported: the loss may explain it. Nor
 * is one of a deleted session where compaction left out records: they may be of
 * it (3.9).
 *
 * Threads: the main thread.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/crc32.h"
#include "format/payload/first_text.h"
#include "format/payload/timestamp.h"
#include "tools/walcheck/walcheck.h"

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
        &replay->segment->damages, replay->segment->head->name,
        in_block ? wal__block_offset(record->posting.offset)
                 : record->posting.offset,
        in_block ? 0 : wal__frame_total_size(record->stored_size),
        "the %s of sequence %" PRIu64 " %s",
        wal__frame_type_name(record->posting.type), record->posting.sequence,
        what);

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

/* Whether an id belongs to another session. If that session's tombstone may be
 * lost, the id counts as free. */
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
    int64_t time_ms =
        wal__session_time_believed(created_ms, replay->record->clock_ms);

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

    if (check_session_decode(replay->segment, payload, &decoded) !=
            WAL__FMT_OK ||
        wal__id_hash(decoded.id.data, decoded.id.size) !=
            record->posting.id_hash) {
        report_damage(replay, "is not well-formed");
        return;
    }
    id = (struct wal_slice){decoded.id.data, decoded.id.size};
    number = cli_ids_get_or_add(&replay->store->model.ids, id);
    if (is_id_in_use(replay, *number) ||
        (session->has_record &&
         (session->record.id.size != decoded.id.size ||
          memcmp(session->record.id.data, decoded.id.data, decoded.id.size) !=
              0))) {
        report_damage(replay, "names a session that has another number or id");
        return;
    }
    *number = session->number;
    free(session->payload);
    session->payload = cli_alloc(record->stored_size);
    memcpy(session->payload, record->payload, record->stored_size);
    payload.data = session->payload;
    session->has_record = check_session_decode(replay->segment, payload,
                                               &session->record) == WAL__FMT_OK;
    session->outdated_in = NULL;
    session->state.id_hash = record->posting.id_hash;
    set_created(replay, decoded.created_ms);
    session->state.schema_version = decoded.schema_version;
    session->state.session_position =
        wal__position(replay->segment->head->id, record->posting.offset);
    session->state.flags &= ~check_session_flags(UINT32_MAX);
    session->state.flags |= check_session_flags(decoded.flags);
    if ((decoded.flags & WAL__SESSION_RECORD_TRASHED) != 0) {
        check_feature(replay->store, replay->segment, record,
                      WAL__INCOMPAT_TRASH, "puts a session in the trash");
    }
    if ((decoded.flags & WAL__SESSION_RECORD_MOVED) != 0) {
        check_feature(replay->store, replay->segment, record,
                      WAL__INCOMPAT_MOVED, "marks a session as moved");
    }
}

/* Whether the target is an entry that the record's session sees. */
static bool is_valid_target(const struct replay *replay, uint64_t target,
                            uint8_t stream)
{
    const struct check_model *model = &replay->store->model;
    const struct check_replayed *replayed =
        check_model_find_replayed(model, target);

    return replayed != NULL && replayed->type == WAL__FRAME_ENTRY &&
           !replayed->is_provisional && replayed->stream == stream &&
           check_model_can_see(model, replay->session->number, replayed);
}

/* Whether the entry of that sequence has that id; sequence 0 has no id. */
static bool entry_has_id(const struct replay *replay, uint64_t sequence,
                         struct wal__span id)
{
    const struct check_replayed *replayed =
        check_model_find_replayed(&replay->store->model, sequence);

    return replayed == NULL ? sequence == 0 && id.size == 0
                            : replayed->id_hash == check_hash_of(id);
}

/* The session with that number and id; null if it is missing or the record's
 * own. */
static const struct check_session *
other_session(const struct replay *replay, uint32_t number, struct wal__span id)
{
    const struct check_session *other =
        check_model_find(&replay->store->model, number);

    return other != NULL && other != replay->session && other->has_record &&
                   number != WAL__STORE_NUMBER &&
                   other->state.id_hash == check_hash_of(id)
               ? other
               : NULL;
}

/* A fork inherits the first text of its source if it is before the fork
 * point. */
static void copy_first_text(struct wal__summary *state,
                            const struct wal__summary *source)
{
    if (source->first_sequence != 0 &&
        source->first_sequence <= state->fork_sequence) {
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

    if (wal__fork_record_decode(
            (struct wal__span){record->payload, record->stored_size}, &fork) !=
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
        session->head_hash = check_hash_of(fork.entry_id);
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
    replayed = check_model_find_replayed(&replay->store->model,
                                         record->posting.parent);
    if (record->posting.parent != 0 && !may_be_lost(replay) &&
        (replayed == NULL || replayed->type != WAL__FRAME_ENTRY ||
         replayed->is_provisional || replayed->session != fork.owner ||
         replayed->stream != fork.stream ||
         replayed->id_hash != check_hash_of(fork.entry_id) ||
         !check_model_can_see(&replay->store->model, fork.source, replayed))) {
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

    if (session->state.first_sequence != 0 ||
        session->state.entries >= FIRST_ENTRIES) {
        return;
    }
    payload = check_payload_read(&replay->payloads, replay->segment,
                                 replay->record->posting.offset,
                                 replay->record->stored_size);
    if (payload == NULL ||
        wal__entry_record_decode(
            (struct wal__span){payload, replay->record->stored_size}, &entry) !=
            WAL__FMT_OK ||
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
static void replay_straight(struct wal__summary *state,
                            const struct wal__posting *posting)
{
    bool is_under_head = posting->parent == state->head_sequence &&
                         (posting->flags & WAL__FRAME_MOVES_HEAD) != 0;

    if (!is_under_head) {
        state->flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
    } else if (state->entries == 0 &&
               state->head_sequence == state->fork_sequence) {
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
    check_feature(replay->store, replay->segment, replay->record,
                  WAL__INCOMPAT_PROVISIONAL, "is provisional");
    if (posting->type != WAL__FRAME_ENTRY ||
        posting->kind != WAL__KIND_MESSAGE_DELTA_BATCH ||
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
    if ((state->flags & WAL__SUMMARY_ACTIVE) == 0 ||
        state->updated_ms < replay->record->time_ms) {
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

    if (wal__head_record_decode(
            (struct wal__span){record->payload, record->stored_size}, &head) !=
            WAL__FMT_OK ||
        wal__id_hash(head.name.data, head.name.size) !=
            record->posting.id_hash) {
        report_damage(replay, "is not well-formed");
        return;
    }
    if (!may_be_lost(replay) &&
        (!entry_has_id(replay, record->posting.parent, head.entry_id) ||
         (record->posting.parent != 0 &&
          !is_valid_target(replay, record->posting.parent,
                           record->posting.stream)))) {
        report_damage(replay, "names a target that is not in its lineage");
    }
    if (record->posting.stream == 0 && head.name.size == main_head.size &&
        memcmp(head.name.data, main_head.data, main_head.size) == 0) {
        replay->session->state.head_sequence = record->posting.parent;
        replay->session->state.flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
        replay->session->head_hash = check_hash_of(head.entry_id);
    }
}

/* --- documents, redactions, deletions ------------------------------------- */

static void replay_doc(const struct replay *replay)
{
    const struct wal__posting *posting = &replay->record->posting;
    struct check_session *session = replay->session;
    struct check_model *model = &replay->store->model;
    uint64_t previous =
        check_model_doc(model, session->number, posting->id_hash);

    if (posting->parent != previous && !may_be_lost(replay)) {
        report_damage(replay, "does not name its previous version");
    }
    check_model_add_doc(model, session->number, posting->id_hash,
                        posting->sequence);
    session->state.documents++;
}

/* Whether the session that holds a redaction saw the target. It may have been
 * deleted, and have left nothing. */
static bool could_see(const struct replay *replay, uint32_t number,
                      const struct check_replayed *target)
{
    const struct check_model *model = &replay->store->model;
    const struct check_session *session = check_model_find(model, number);

    return check_model_can_see(model, number, target) ||
           (replay->store->has_rewritten &&
            (session == NULL || !session->has_record ||
             check_session_is_deleted(session)));
}

/* Whether a missing target of a redaction may be a delta that compaction
 * dropped while it was redacted. */
static bool may_be_dropped(const struct replay *replay,
                           const struct check_replayed *target)
{
    return target == NULL && replay->store->has_rewritten &&
           (replay->store->incompat & WAL__INCOMPAT_PROVISIONAL) != 0;
}

static void replay_redact(const struct replay *replay)
{
    const struct check_record *record = replay->record;
    const struct check_model *model = &replay->store->model;
    struct check_session *session = replay->session;
    const struct check_replayed *replayed =
        check_model_find_replayed(model, record->posting.parent);
    struct wal__redact_record redact;

    if (wal__redact_record_decode(
            (struct wal__span){record->payload, record->stored_size},
            &redact) != WAL__FMT_OK ||
        check_hash_of(redact.entry_id) != record->posting.id_hash) {
        report_damage(replay, "is not well-formed");
        return;
    }
    if (!may_be_lost(replay) && !may_be_dropped(replay, replayed) &&
        (!entry_has_id(replay, record->posting.parent, redact.target_id) ||
         replayed == NULL || replayed->type != WAL__FRAME_ENTRY ||
         replayed->session != session->number ||
         replayed->stream != record->posting.stream ||
         !could_see(replay, redact.session, replayed))) {
        report_damage(replay, "names a target that does not exist");
    }
    if (session->state.first_owner == session->number &&
        session->state.first_sequence == record->posting.parent) {
        free(session->first_text);
        session->first_text = NULL;
        session->first_size = 0;
    }
}

static void replay_tombstone(const struct replay *replay)
{
    struct check_session *session = replay->session;
    const struct wal_slice id = {session->record.id.data,
                                 session->record.id.size};
    uint32_t *number = cli_ids_find(&replay->store->model.ids, id);

    session->state.flags |= WAL__SUMMARY_DELETED;
    if (number != NULL && *number == session->number) {
        *number = 0;
    }
}

/* Whether the session's state allows a record of that type. */
static bool is_type_allowed(const struct replay *replay)
{
    const struct check_session *session = replay->session;
    uint8_t type = replay->record->posting.type;

    if (session->number == WAL__STORE_NUMBER) {
        return type == WAL__FRAME_DOC || type == WAL__FRAME_DOC_DELETE ||
               type == WAL__FRAME_ACCEPT;
    }
    return !check_session_is_deleted(session) || type == WAL__FRAME_REDACT;
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
        (record->posting.type != WAL__FRAME_REDACT ||
         !replay->store->has_rewritten)) {
        report_damage(replay, "belongs to a session that was never created");
    } else if (!is_type_allowed(replay) && !may_be_lost(replay)) {
        report_damage(replay,
                      session->number == WAL__STORE_NUMBER
                          ? "belongs to the store, which allows no such record"
                          : "belongs to a session that is deleted");
    }
    if (session->number == WAL__STORE_NUMBER &&
        session->state.last_sequence == 0) {
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

static void add_replayed(struct check_store *store,
                         const struct check_segment *segment,
                         const struct check_record *record)
{
    struct check_model *model = &store->model;

    model->replayed =
        cli_reserve(model->replayed, model->replayed_count,
                    &model->replayed_capacity, sizeof(*model->replayed));
    model->replayed[model->replayed_count++] = (struct check_replayed){
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
        model->replayed[model->replayed_count - 1].sequence >=
            record->posting.sequence) {
        check_damage_add(&replay->segment->damages, replay->segment->head->name,
                         record->posting.offset, 0,
                         "sequence %" PRIu64 " is a repeat",
                         record->posting.sequence);
        replay->store->records_lost = true;
        return false;
    }
    if (record->session != 0) {
        replay->session = check_model_get_or_add(model, record->session);
        apply_record(replay);
    }
    add_replayed(replay->store, replay->segment, record);
    return true;
}

void check_replay(struct check_store *store, struct check_segment *segment)
{
    struct replay replay = {.store = store, .segment = segment};

    check_chain_continuity(segment);
    check_model_mark_damaged(store, segment);
    for (size_t i = 0; i < segment->record_count; i++) {
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

        if (session->outdated_in != NULL && !session->damaged &&
            !store->records_lost && !check_session_is_deleted(session)) {
            check_damage_add_redundant(
                &store->damages, session->outdated_in->head->name, 0, 0,
                "the index has other texts of session %" PRIu32
                " than the log; it is derived: no record is lost",
                session->number);
        }
    }
}
