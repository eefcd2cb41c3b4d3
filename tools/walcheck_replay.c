/*
 * walcheck_replay - what the records of the log come to, session by session,
 * and whether they fit together (SPEC.md 2.5 to 2.8).
 *
 * Invariant: records are taken once, ascending by sequence; a session that
 * lost something is not held against anything afterwards.
 *
 * Threads: one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/crc32.h"
#include "tools/walcheck.h"

static const struct wal__span main_head = {(const uint8_t *)"main", 4};

/* Rank of the first session whose number is not below. */
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

struct check_session *check_model_find(const struct check_model *model,
                                       uint32_t number)
{
    size_t rank = session_rank(model, number);

    if (rank < model->session_count &&
        model->sessions[rank]->number == number) {
        return model->sessions[rank];
    }
    return NULL;
}

static struct check_session *obtain(struct check_model *model, uint32_t number)
{
    size_t rank = session_rank(model, number);
    struct check_session *session;

    if (rank < model->session_count &&
        model->sessions[rank]->number == number) {
        return model->sessions[rank];
    }
    model->sessions =
        cli_room(model->sessions, model->session_count,
                 &model->session_capacity, sizeof(*model->sessions));
    memmove(model->sessions + rank + 1, model->sessions + rank,
            (model->session_count - rank) * sizeof(*model->sessions));
    session = cli_alloc(sizeof(*session));
    *session = (struct check_session){.number = number, .state.number = number};
    model->sessions[rank] = session;
    model->session_count++;
    if (number > model->last_session) {
        model->last_session = number;
    }
    return session;
}

const struct check_seen *check_model_seen(const struct check_model *model,
                                          uint64_t sequence)
{
    size_t low = 0;
    size_t high = model->seen_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (model->seen[middle].sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < model->seen_count && model->seen[low].sequence == sequence
               ? &model->seen[low]
               : NULL;
}

bool check_model_reaches(const struct check_model *model, uint32_t number,
                         const struct check_seen *seen)
{
    uint64_t highest = UINT64_MAX;

    for (unsigned depth = 0; depth <= WAL__LINEAGE_MAX; depth++) {
        const struct check_session *session = check_model_find(model, number);

        if (session == NULL || seen->sequence > highest) {
            return false;
        }
        if (seen->session == number) {
            return true;
        }
        if ((session->state.flags & WAL__SUMMARY_FORK) == 0) {
            return false;
        }
        if (session->state.fork_sequence < highest) {
            highest = session->state.fork_sequence;
        }
        number = session->source;
    }
    return false;
}

/* --- records -------------------------------------------------------------- */

struct replay {
    struct check_store *store;
    struct check_segment *segment;
    const struct check_record *record;
    struct check_session *session;
};

static void complain(const struct replay *replay, const char *what)
{
    const struct check_record *record = replay->record;
    struct check_damage *damage = check_damage_add(
        &replay->segment->damages, replay->segment->name,
        record->posting.offset, wal__frame_span(record->stored_size),
        "the %s of sequence %" PRIu64 " %s",
        wal__frame_type_name(record->posting.type), record->posting.sequence,
        what);

    check_damage_session(damage, record->session);
    replay->session->damaged = true;
}

/* Whether lost records may explain what does not fit. */
static bool may_be_lost(const struct replay *replay)
{
    return replay->store->lossy || replay->segment->log_damaged ||
           replay->session->damaged;
}

static void take_session(const struct replay *replay)
{
    const struct check_record *record = replay->record;
    struct check_session *session = replay->session;
    struct wal__session_record decoded;
    struct wal__span payload = {record->payload, record->stored_size};
    struct wal_slice id;
    uint32_t *number;

    if (wal__session_record_decode(payload, &decoded) != WAL__FMT_OK ||
        wal__id_hash(decoded.id.data, decoded.id.size) !=
            record->posting.id_hash) {
        complain(replay, "is not well-formed");
        return;
    }
    id = (struct wal_slice){decoded.id.data, decoded.id.size};
    number = cli_ids_put(&replay->store->model.ids, id);
    if ((*number != 0 && *number != session->number) ||
        (session->has_record &&
         (session->record.id.size != decoded.id.size ||
          memcmp(session->record.id.data, decoded.id.data, decoded.id.size) !=
              0))) {
        complain(replay, "names a session that has another number or id");
        return;
    }
    *number = session->number;
    free(session->payload);
    session->payload = cli_alloc(record->stored_size);
    memcpy(session->payload, record->payload, record->stored_size);
    session->payload_size = record->stored_size;
    payload.data = session->payload;
    session->has_record =
        wal__session_record_decode(payload, &session->record) == WAL__FMT_OK;
    session->state.id_hash = record->posting.id_hash;
    session->state.created_ms = decoded.created_ms;
    session->state.session_position =
        wal__position(replay->segment->id, record->posting.offset);
    session->state.flags &= ~(uint32_t)WAL__SUMMARY_FORK;
    if ((decoded.flags & WAL__SESSION_RECORD_FORK) != 0) {
        session->state.flags |= WAL__SUMMARY_FORK;
    }
}

/* Whether the record points at one that is there and that its session sees. */
static bool points_well(const struct replay *replay, uint64_t target,
                        uint8_t stream)
{
    const struct check_model *model = &replay->store->model;
    const struct check_seen *seen = check_model_seen(model, target);

    return seen != NULL && seen->type == WAL__FRAME_ENTRY &&
           seen->stream == stream &&
           check_model_reaches(model, replay->session->number, seen);
}

static void take_fork(const struct replay *replay)
{
    const struct check_record *record = replay->record;
    struct check_model *model = &replay->store->model;
    struct check_session *session = replay->session;
    struct wal__fork_record fork;
    const struct check_seen *seen;
    const uint32_t *source;
    const uint32_t *owner;

    if (wal__fork_record_decode(
            (struct wal__span){record->payload, record->stored_size}, &fork) !=
        WAL__FMT_OK) {
        complain(replay, "is not well-formed");
        return;
    }
    source = cli_ids_find(&model->ids, (struct wal_slice){fork.source_id.data,
                                                          fork.source_id.size});
    owner = cli_ids_find(&model->ids, (struct wal_slice){fork.owner_id.data,
                                                         fork.owner_id.size});
    session->state.flags |= WAL__SUMMARY_FORK;
    session->state.fork_sequence = record->posting.parent;
    session->state.fork_owner = owner == NULL ? 0 : *owner;
    session->state.inherited = fork.inherited;
    session->state.depth = fork.depth;
    session->source = source == NULL ? 0 : *source;
    if (fork.stream == 0) {
        session->state.head_sequence = record->posting.parent;
        session->head_hash =
            fork.entry_id.size == 0
                ? 0
                : wal__id_hash(fork.entry_id.data, fork.entry_id.size);
    }
    if (source == NULL || owner == NULL || *source == session->number ||
        *owner == session->number) {
        if (!may_be_lost(replay)) {
            complain(replay, "names a source that is not there");
        }
        return;
    }
    seen = check_model_seen(model, record->posting.parent);
    if (record->posting.parent != 0 && !may_be_lost(replay) &&
        (seen == NULL || seen->type != WAL__FRAME_ENTRY ||
         seen->session != *owner)) {
        complain(replay, "names a fork point that is not there");
    }
}

static void take_entry(const struct replay *replay)
{
    const struct wal__posting *posting = &replay->record->posting;
    struct wal__summary *state = &replay->session->state;

    if (posting->parent != 0 && !may_be_lost(replay) &&
        !points_well(replay, posting->parent, posting->stream)) {
        complain(replay, "names a parent that is not in its lineage");
    }
    if (posting->stream != 0) {
        return;
    }
    state->entries++;
    if ((posting->flags & WAL__FRAME_MOVES_HEAD) != 0) {
        state->head_sequence = posting->sequence;
        replay->session->head_hash = posting->id_hash;
    }
}

static void take_head(const struct replay *replay)
{
    const struct check_record *record = replay->record;
    struct wal__head_record head;

    if (wal__head_record_decode(
            (struct wal__span){record->payload, record->stored_size}, &head) !=
            WAL__FMT_OK ||
        wal__id_hash(head.name.data, head.name.size) !=
            record->posting.id_hash) {
        complain(replay, "is not well-formed");
        return;
    }
    if (record->posting.parent != 0 && !may_be_lost(replay) &&
        !points_well(replay, record->posting.parent, record->posting.stream)) {
        complain(replay, "names a target that is not in its lineage");
    }
    if (record->posting.stream == 0 && head.name.size == main_head.size &&
        memcmp(head.name.data, main_head.data, main_head.size) == 0) {
        replay->session->state.head_sequence = record->posting.parent;
        replay->session->head_hash =
            head.entry_id.size == 0
                ? 0
                : wal__id_hash(head.entry_id.data, head.entry_id.size);
    }
}

static void take(const struct replay *replay)
{
    const struct check_record *record = replay->record;
    struct check_session *session = replay->session;

    if (record->posting.type != WAL__FRAME_SESSION && !session->has_record &&
        !may_be_lost(replay)) {
        complain(replay, "is of a session that was never made");
    }
    if ((record->posting.flags & WAL__FRAME_LZ4) != 0) {
        session->damaged = true; /* not decoded here */
    } else if (record->posting.type == WAL__FRAME_SESSION) {
        take_session(replay);
    } else if (record->posting.type == WAL__FRAME_FORK) {
        take_fork(replay);
    } else if (record->posting.type == WAL__FRAME_ENTRY) {
        take_entry(replay);
    } else if (record->posting.type == WAL__FRAME_HEAD) {
        take_head(replay);
    }
    session->state.updated_ms = record->clock_ms;
    session->state.last_sequence = record->posting.sequence;
    session->state.bytes += wal__frame_span(record->stored_size);
}

static void remember(struct check_store *store,
                     const struct check_segment *segment,
                     const struct check_record *record)
{
    struct check_model *model = &store->model;

    model->seen = cli_room(model->seen, model->seen_count,
                           &model->seen_capacity, sizeof(*model->seen));
    model->seen[model->seen_count++] = (struct check_seen){
        .sequence = record->posting.sequence,
        .position = wal__position(segment->id, record->posting.offset),
        .session = record->session,
        .type = record->posting.type,
        .stream = record->posting.stream,
    };
}

/* Whether a segment goes on where the one before it ended. */
static void check_follows(struct check_segment *segment)
{
    const struct check_segment *previous = segment->previous;
    const struct wal__open_record *open = &segment->open;

    if (!segment->linked) {
        return;
    }
    if (open->previous_id == 0) {
        if (open->last_sequence != 0 || open->chain != 0) {
            check_damage_add(&segment->damages, segment->name,
                             WAL__SEGMENT_HEADER_SIZE, 0,
                             "the first segment goes on after sequence "
                             "%" PRIu64,
                             open->last_sequence);
        }
        return;
    }
    if (previous == NULL || previous->id != open->previous_id ||
        previous->log_damaged) {
        return;
    }
    if (open->last_sequence != previous->facts->last_sequence ||
        open->chain != previous->facts->chain) {
        check_damage_add(&segment->damages, segment->name,
                         WAL__SEGMENT_HEADER_SIZE, 0,
                         "does not follow the segment before it, which ends "
                         "with sequence %" PRIu64 " and not %" PRIu64
                         ", or with another chain",
                         previous->facts->last_sequence, open->last_sequence);
    }
}

/* Sessions that damage in this segment took something from. */
static void spoil(struct check_store *store,
                  const struct check_segment *segment)
{
    for (size_t i = 0; i < segment->damages.count; i++) {
        const struct check_damage *damage = &segment->damages.items[i];

        for (size_t k = 0; k < damage->session_count; k++) {
            obtain(&store->model, damage->sessions[k])->damaged = true;
        }
    }
    store->lossy = store->lossy || segment->log_damaged;
}

void check_replay(struct check_store *store, struct check_segment *segment)
{
    struct check_model *model = &store->model;

    check_follows(segment);
    spoil(store, segment);
    for (size_t i = 0; i < segment->record_count; i++) {
        struct replay replay = {store, segment, &segment->records[i], NULL};

        if (model->seen_count > 0 &&
            model->seen[model->seen_count - 1].sequence >=
                replay.record->posting.sequence) {
            check_damage_add(&segment->damages, segment->name,
                             replay.record->posting.offset, 0,
                             "sequence %" PRIu64 " was there before",
                             replay.record->posting.sequence);
            store->lossy = true;
            return;
        }
        if (replay.record->session != 0) {
            replay.session = obtain(model, replay.record->session);
            take(&replay);
        }
        remember(store, segment, replay.record);
    }
}

void check_model_adopt(struct check_model *model,
                       const struct wal__summary *summary)
{
    struct check_session *session = obtain(model, summary->number);
    const struct wal__session_record record = {
        .created_ms = summary->created_ms,
        .schema_version = 1,
        .flags = (summary->flags & WAL__SUMMARY_FORK) != 0
                     ? (uint32_t)WAL__SESSION_RECORD_FORK
                     : 0,
        .id = summary->id,
        .cwd = summary->cwd,
        .project = summary->project,
        .title = summary->title,
        .parent_id = summary->parent_id,
        .source = summary->source,
    };
    struct wal__span payload;

    session->damaged = true;
    if (session->has_record) {
        return;
    }
    free(session->payload);
    payload.size = wal__session_record_size(&record);
    session->payload = cli_alloc(payload.size);
    session->payload_size = (uint32_t)payload.size;
    payload.data = session->payload;
    wal__session_record_encode(&record, session->payload);
    session->has_record =
        wal__session_record_decode(payload, &session->record) == WAL__FMT_OK;
    session->from_index = session->has_record;
    if (session->has_record) {
        *cli_ids_put(&model->ids, (struct wal_slice){session->record.id.data,
                                                     session->record.id.size}) =
            session->number;
    }
}

void check_model_deinit(struct check_model *model)
{
    for (size_t i = 0; i < model->session_count; i++) {
        free(model->sessions[i]->payload);
        free(model->sessions[i]);
    }
    free(model->sessions);
    free(model->seen);
    cli_ids_deinit(&model->ids);
    *model = (struct check_model){.sessions = NULL};
}
