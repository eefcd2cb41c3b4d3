/*
 * catalogue_model.c - a naive catalogue, and the records that are applied to both
 * (catalogue_model.h). One thread.
 */
#include "tests/lib/catalogue_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"

#define DAY_MS INT64_C(86400000)

static uint64_t random_state;

static uint64_t random_u64(void)
{
    return rng_next(&random_state);
}

uint32_t model_random_below(uint32_t limit)
{
    return (uint32_t)(random_u64() % limit);
}

int model_set_up(void **state)
{
    (void)state;
    random_state = rng_seed(1);
    return 0;
}

struct wal__span model_span(const char *text)
{
    return (struct wal__span){(const uint8_t *)text, strlen(text)};
}

/* ---------------------------------------------------------------- model --- */

static void finish(struct model_record *record, const struct model_session *session, uint8_t type,
                   size_t size)
{
    record->frame.type = type;
    record->frame.session = session->numbers.number;
    record->frame.stored_size = (uint32_t)size;
    record->applied.frame = &record->frame;
    record->applied.version = WAL__FORMAT_VERSION;
    record->applied.payload = (struct wal__span){record->payload, size};
}

/* A time of the last seconds before the record's, or one that is not believed. Sets
 * session->time_ms to the time that counts. */
static int64_t random_time(const struct model_record *record, struct model_session *session)
{
    int64_t clock_ms = record->applied.clock_ms;

    session->time_ms = clock_ms;
    switch (model_random_below(6)) {
    case 0:
        return -1 - (int64_t)model_random_below(1000);
    case 1:
        return clock_ms + DAY_MS + 1;
    case 2:
        session->time_ms = clock_ms + DAY_MS;
        break;
    default:
        session->time_ms = clock_ms > 20000 ? clock_ms - 20000 : 0;
        session->time_ms += model_random_below(20) * INT64_C(1000);
        break;
    }
    return session->time_ms;
}

static void make_session(struct model_record *record, struct model_session *session)
{
    static const char *const sources[] = {"", "claude:1", "codex:2"};
    static const char *const parents[] = {"", "parent-1", "parent-2"};
    bool is_fork = model_random_below(3) == 0;
    int64_t created_ms = random_time(record, session);
    struct wal__session_record made;

    session->numbers.flags &= ~(uint32_t)WAL__SUMMARY_FORK;
    session->numbers.flags |= is_fork ? WAL__SUMMARY_FORK : 0;
    if (session->numbers.session_position == 0) {
        session->numbers.created_ms = session->time_ms;
        session->numbers.updated_ms = session->time_ms;
        strcpy(session->source, sources[model_random_below(3)]);
    } else if (session->numbers.created_ms > session->time_ms) {
        session->numbers.created_ms = session->time_ms;
    }
    session->numbers.session_position = record->applied.position;
    session->numbers.schema_version = 1 + model_random_below(3);
    sprintf(session->cwd, "/home/%u", model_random_below(6));
    sprintf(session->project, "project %u", model_random_below(5));
    sprintf(session->title, "%.*s", (int)model_random_below(30), "a title of any length, or none");
    strcpy(session->parent_id, parents[model_random_below(3)]);
    made = (struct wal__session_record){
        .created_ms = created_ms,
        .schema_version = session->numbers.schema_version,
        .flags = is_fork ? WAL__SESSION_RECORD_FORK : 0,
        .id = model_span(session->id),
        .cwd = model_span(session->cwd),
        .project = model_span(session->project),
        .title = model_span(session->title),
        .parent_id = model_span(session->parent_id),
        .source = model_span(session->source),
        .metadata = model_span("{}"),
    };
    wal__session_record_encode(&made, record->payload);
    finish(record, session, WAL__FRAME_SESSION, wal__session_record_size(&made));
}

/* One entry in three is a user's message. */
static void make_payload(const struct model_record *record, struct model_session *session,
                         char *payload)
{
    struct wal__summary *numbers = &session->numbers;
    char text[MODEL_TEXT_SIZE];

    if (model_random_below(3) > 0) {
        strcpy(payload, "{\"role\":\"assistant\",\"content\":\"hello\"}");
        return;
    }
    sprintf(text, "message %llu", (unsigned long long)record->frame.sequence);
    sprintf(payload, "{\"role\":\"user\",\"content\":\"%s\"}", text);
    if (record->frame.stream == 0 && numbers->first_sequence == 0 && numbers->entries < 64 &&
        record->frame.flags != WAL__FRAME_PROVISIONAL) {
        numbers->first_sequence = record->frame.sequence;
        numbers->first_owner = numbers->number;
        strcpy(session->first_text, text);
    }
}

/* Writes the time of an entry, or none: some of 1970, to the millisecond. */
static void make_time(const struct model_record *record, struct model_session *session, char *text)
{
    struct wal__summary *numbers = &session->numbers;
    int64_t time_ms = random_time(record, session);
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm tm;

    if (model_random_below(5) == 0) {
        strcpy(text, model_random_below(2) == 0 ? "" : "1970-01-01 noon");
        session->time_ms = record->applied.clock_ms;
    } else if (time_ms < 0) {
        strcpy(text, "1969-12-31T23:59:59.999Z");
    } else {
        gmtime_r(&seconds, &tm);
        strftime(text, MODEL_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
        sprintf(text + strlen(text), ".%03dZ", (int)(time_ms % 1000));
    }
    if (record->frame.flags == WAL__FRAME_PROVISIONAL) {
        return; /* its time does not count */
    }
    if ((numbers->flags & WAL__SUMMARY_ACTIVE) == 0 || numbers->updated_ms < session->time_ms) {
        numbers->updated_ms = session->time_ms;
    }
    if (numbers->created_ms > session->time_ms) {
        numbers->created_ms = session->time_ms;
    }
    numbers->flags |= WAL__SUMMARY_ACTIVE;
}

/* The first entry is under the head that the session began with, and each one is under the head and
 * moves it. */
static void note_straight(const struct model_record *record, struct wal__summary *numbers)
{
    bool is_first = numbers->entries == 0 && numbers->head_sequence == numbers->fork_sequence;
    bool is_straight = is_first || (numbers->flags & WAL__SUMMARY_STRAIGHT) != 0;

    numbers->flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
    if (is_straight && record->frame.flags == WAL__FRAME_MOVES_HEAD &&
        record->frame.parent == numbers->head_sequence) {
        numbers->flags |= WAL__SUMMARY_STRAIGHT;
    }
}

static void make_entry(struct model_record *record, struct model_session *session)
{
    char id[MODEL_TEXT_SIZE];
    char time[MODEL_TEXT_SIZE];
    char payload[2 * MODEL_TEXT_SIZE];
    struct wal__entry_record entry;

    memset(&entry, 0, sizeof(entry));
    sprintf(id, "entry-%0*llu", (int)model_random_below(45),
            (unsigned long long)record->frame.sequence);
    record->frame.kind = WAL__KIND_MESSAGE;
    record->frame.stream = (uint8_t)model_random_below(2);
    record->frame.flags = model_random_below(9) > 0 ? WAL__FRAME_MOVES_HEAD : 0;
    if (model_random_below(9) == 0) {
        record->frame.kind = WAL__KIND_MESSAGE_DELTA_BATCH;
        record->frame.flags = WAL__FRAME_PROVISIONAL;
    }
    make_time(record, session, time);
    entry.id = model_span(id);
    entry.time = model_span(time);
    if (model_random_below(9) > 0) {
        record->frame.parent = session->numbers.head_sequence;
    }
    make_payload(record, session, payload);
    entry.payload = model_span(payload);
    wal__entry_record_encode(&entry, record->payload);
    finish(record, session, WAL__FRAME_ENTRY, wal__entry_record_size(&entry));
    if (record->frame.stream != 0 || record->frame.flags == WAL__FRAME_PROVISIONAL) {
        return;
    }
    note_straight(record, &session->numbers);
    session->numbers.entries++;
    if (record->frame.flags != 0) {
        session->numbers.head_sequence = record->frame.sequence;
        strcpy(session->head_id, id);
    }
}

static void inherit(struct model_session *session, const struct model_session *source)
{
    uint64_t first = source->numbers.first_sequence;

    if (first != 0 && first <= session->numbers.fork_sequence) {
        session->numbers.first_sequence = first;
        session->numbers.first_owner = source->numbers.first_owner;
        session->first_text[0] = '\0';
    }
}

/* Any session that the catalogue has, or null. */
static struct model_session *pick(struct model *model)
{
    for (int i = 0; model->count > 0 && i < 200; i++) {
        struct model_session *session = &model->sessions[model_random_below(model->count)];

        if (!session->is_omitted) {
            return session;
        }
    }
    return NULL;
}

static void make_fork(struct model *model, struct model_record *record,
                      struct model_session *session)
{
    const struct model_session *owner = pick(model);
    const struct model_session *source = pick(model);
    struct wal__fork_record fork;

    if (owner == session || source == session) {
        make_entry(record, session);
        return;
    }
    record->frame.parent = 1 + model_random_below((uint32_t)model->sequence);
    fork = (struct wal__fork_record){
        .inherited = model_random_below(100),
        .depth = model_random_below(9),
        .source = source->numbers.number,
        .owner = owner->numbers.number,
        .stream = (uint8_t)model_random_below(2),
        .source_id = model_span("any"),
        .owner_id = model_span("some"),
        .entry_id = model_span("fork-point"),
    };
    wal__fork_record_encode(&fork, record->payload);
    finish(record, session, WAL__FRAME_FORK, wal__fork_record_size(&fork));
    session->numbers.flags |= WAL__SUMMARY_FORK;
    session->numbers.flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
    session->numbers.fork_sequence = record->frame.parent;
    session->numbers.fork_record = record->frame.sequence;
    session->numbers.fork_owner = owner->numbers.number;
    session->numbers.fork_source = source->numbers.number;
    session->numbers.inherited = fork.inherited;
    session->numbers.depth = fork.depth;
    if (fork.stream == 0) {
        session->numbers.head_sequence = record->frame.parent;
        strcpy(session->head_id, "fork-point");
        inherit(session, source);
    }
}

static void make_head(struct model_record *record, struct model_session *session)
{
    bool is_main = model_random_below(2) == 0;
    bool is_removed = model_random_below(4) == 0;
    const char *entry_id = is_removed ? "" : "a target";
    struct wal__head_record head = {
        .name = model_span(is_main ? "main" : "mains"),
        .entry_id = model_span(entry_id),
        .note = model_span("note"),
    };

    record->frame.stream = (uint8_t)model_random_below(2);
    record->frame.parent = is_removed ? 0 : record->frame.sequence - 1;
    wal__head_record_encode(&head, record->payload);
    finish(record, session, WAL__FRAME_HEAD, wal__head_record_size(&head));
    if (is_main && record->frame.stream == 0) {
        session->numbers.head_sequence = record->frame.parent;
        session->numbers.flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
        strcpy(session->head_id, entry_id);
    }
}

/* A document of the session, or of the store. */
static void make_doc(struct model *model, struct model_record *record,
                     struct model_session *session)
{
    bool is_deletion = model_random_below(3) == 0;
    struct wal__doc_record doc = {
        .key = model_span("key"),
        .value = is_deletion ? (struct wal__span){NULL, 0} : model_span("{}"),
    };

    if (session == &model->store && session->numbers.number == 0) {
        strcpy(session->id, "store");
        session->numbers.number = WAL__STORE_NUMBER;
        session->numbers.created_ms = record->applied.clock_ms;
    }
    wal__doc_record_encode(&doc, record->payload);
    finish(record, session, is_deletion ? WAL__FRAME_DOC_DELETE : WAL__FRAME_DOC,
           wal__doc_record_size(&doc));
    session->numbers.documents++;
}

/* Of the first user message, or of another entry. */
static void make_redaction(struct model_record *record, struct model_session *session)
{
    const struct wal__summary *numbers = &session->numbers;
    bool is_first = model_random_below(2) == 0 && numbers->first_sequence != 0;
    struct wal__redact_record redact = {
        .session = numbers->number,
        .entry_id = model_span("redaction"),
        .target_id = model_span("target"),
    };

    record->frame.parent = is_first ? numbers->first_sequence : record->frame.sequence - 1;
    wal__redact_record_encode(&redact, record->payload);
    finish(record, session, WAL__FRAME_REDACT, wal__redact_record_size(&redact));
    if (numbers->first_owner == numbers->number &&
        numbers->first_sequence == record->frame.parent) {
        session->first_text[0] = '\0';
    }
}

static void make_change(struct model *model, struct model_record *record,
                        struct model_session *session)
{
    switch (model_random_below(21)) {
    case 0:
    case 1:
        make_session(record, session);
        break;
    case 2:
    case 3:
        make_fork(model, record, session);
        break;
    case 4:
        make_head(record, session);
        break;
    case 5:
        finish(record, session, WAL__FRAME_ACCEPT, 0);
        session->numbers.flags &= ~(uint32_t)WAL__SUMMARY_DAMAGED;
        break;
    case 6:
        make_doc(model, record, session);
        break;
    case 7:
        make_redaction(record, session);
        break;
    case 9:
        record->frame.parent = session->numbers.first_sequence;
        finish(record, session, WAL__FRAME_RESTORE, 0);
        break;
    case 8:
        finish(record, session, WAL__FRAME_TOMBSTONE, 0);
        session->numbers.flags |= WAL__SUMMARY_DELETED;
        break;
    default:
        make_entry(record, session);
        break;
    }
}

bool model_is_deleted(const struct model_session *session)
{
    return (session->numbers.flags & WAL__SUMMARY_DELETED) != 0;
}

static bool refers_to(const struct model_session *session, uint32_t number)
{
    const struct wal__summary *numbers = &session->numbers;

    return numbers->number != number &&
           (numbers->fork_owner == number || numbers->fork_source == number ||
            numbers->first_owner == number);
}

static bool is_kept(const struct model *model, const bool *kept, uint32_t i)
{
    const struct model_session *session = &model->sessions[i];
    bool keep = !session->is_omitted && !model_is_deleted(session);

    for (uint32_t k = 0; k < model->count && !session->is_omitted; k++) {
        keep = keep || (kept[k] && refers_to(&model->sessions[k], session->numbers.number));
    }
    return keep;
}

void model_omit(struct model *model)
{
    bool kept[MODEL_SESSIONS] = {false};
    bool changed = true;

    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < model->count; i++) {
            bool keep = is_kept(model, kept, i);

            changed = changed || keep != kept[i];
            kept[i] = keep;
        }
    }
    for (uint32_t i = 0; i < model->count; i++) {
        model->sessions[i].is_omitted = !kept[i];
    }
}

const struct model_session *model_find(const struct model *model, const char *id)
{
    for (uint32_t i = 0; i < model->count; i++) {
        if (!model_is_deleted(&model->sessions[i]) && strcmp(model->sessions[i].id, id) == 0) {
            return &model->sessions[i];
        }
    }
    return NULL;
}

/* A new id, or that of a session that was deleted. */
static void choose_id(const struct model *model, char *id)
{
    const char *old = model->sessions[model_random_below(model->count)].id;

    if (model_find(model, old) == NULL && old[0] != '\0') {
        strcpy(id, old);
    } else {
        sprintf(id, "%x-session", model->last_session * 2654435761u);
    }
}

/* Room for a session: an omitted one's is used again. */
static struct model_session *new_session(struct model *model)
{
    for (uint32_t i = 0; i < model->count; i++) {
        if (model->sessions[i].is_omitted) {
            return &model->sessions[i];
        }
    }
    return model->count < MODEL_SESSIONS ? &model->sessions[model->count++] : NULL;
}

void model_make_record(struct model *model, struct model_record *record)
{
    struct model_session *picked = pick(model);
    struct model_session *session =
        picked == NULL || model_random_below(6) == 0 ? new_session(model) : NULL;

    memset(record, 0, sizeof(*record));
    model->sequence += 1 + model_random_below(3);
    record->frame.sequence = model->sequence;
    record->applied.position = wal__position(1 + model->sequence / 100, 4096 + model->sequence);
    record->applied.clock_ms = (int64_t)model->sequence * 1000;
    if (session != NULL) {
        memset(session, 0, sizeof(*session));
        model->last_session += 1 + model_random_below(5) / 4;
        session->numbers.number = model->last_session;
        choose_id(model, session->id);
        make_session(record, session);
    } else if (model_random_below(20) == 0) {
        session = &model->store;
        make_doc(model, record, session);
    } else {
        session = picked;
        make_change(model, record, session);
    }
    if (session == &model->store) {
        session->numbers.updated_ms = record->applied.clock_ms;
    }
    session->numbers.last_sequence = record->frame.sequence;
    session->numbers.bytes += wal__frame_total_size(record->frame.stored_size);
}

void model_step(struct model *model, struct wal__catalogue *catalogue)
{
    struct model_record record;

    struct model_session *session = pick(model);

    if (session != NULL && model_random_below(20) == 0) {
        session->numbers.flags |= WAL__SUMMARY_DAMAGED;
        assert_ok(wal__catalogue_mark_damaged(catalogue, session->numbers.number));
        return;
    }
    model_make_record(model, &record);
    assert_ok(wal__catalogue_apply(catalogue, &record.applied));
}

enum wal_status model_put(struct wal__catalogue *catalogue, uint32_t number, const char *id)
{
    struct wal__summary summary = {
        .number = number,
        .last_sequence = 1000000 + number,
        .first_posting = 5,
        .posting_count = 6,
        .id = model_span(id),
    };

    return wal__catalogue_put(catalogue, &summary);
}

void model_begin(struct model *model, struct wal__catalogue *catalogue,
                 const struct wal__heap *heap, int steps)
{
    memset(model, 0, sizeof(*model));
    wal__catalogue_init(catalogue, heap);
    while (steps-- > 0) {
        model_step(model, catalogue);
    }
}
