/*
 * reference.c - the list of records, and texts (reference.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "format/bytes/assert.h"
#include "tests/sim/reference/internal.h"

/* --------------------------------------------------------------- texts --- */

struct wal_slice ref_copy(struct wal_slice text)
{
    struct wal_slice copy = {NULL, text.size};

    if (text.size > 0) {
        void *room = common_alloc(1, text.size);

        WAL__ASSERT(room != NULL);
        memcpy(room, text.data, text.size);
        copy.data = room;
    }
    return copy;
}

void reference_free(struct wal_slice text)
{
    common_free((void *)(uintptr_t)text.data);
}

struct wal_slice ref_text(const char *text)
{
    struct wal_slice slice = {text, strlen(text)};

    return slice;
}

bool reference_is_equal(struct wal_slice a, struct wal_slice b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool ref_begins_with(struct wal_slice text, struct wal_slice prefix)
{
    return text.size >= prefix.size &&
           (prefix.size == 0 ||
            memcmp(text.data, prefix.data, prefix.size) == 0);
}

static json_t *parse(struct wal_slice text)
{
    return json_loadb(text.size > 0 ? text.data : "", text.size,
                      JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

bool reference_is_json(struct wal_slice text, bool object)
{
    json_t *json = parse(text);
    bool is_json = json != NULL && (!object || json_is_object(json));

    json_decref(json);
    return is_json;
}

bool reference_member(struct wal_slice text, const char *name,
                      struct wal_slice *out)
{
    json_t *json = parse(text);
    const json_t *member = json_object_get(json, name);
    bool is_there = json_is_string(member);

    if (is_there) {
        struct wal_slice found = {json_string_value(member),
                                  json_string_length(member)};

        *out = ref_copy(found);
    }
    json_decref(json);
    return is_there;
}

/* An overlong text is too big, one that is not UTF-8 is wrong use. */
enum wal_status ref_check_text(struct wal_slice text, uint64_t limit)
{
    json_t *string;

    if (text.size > limit) {
        return WAL_ETOOBIG;
    }
    string = json_stringn(text.size > 0 ? text.data : "", text.size);
    if (string == NULL) {
        return WAL_EINVAL;
    }
    json_decref(string);
    return WAL_OK;
}

enum wal_status ref_check_json(struct wal_slice text, uint64_t limit,
                               bool object)
{
    if (text.size > limit) {
        return WAL_ETOOBIG;
    }
    return reference_is_json(text, object) ? WAL_OK : WAL_EBADJSON;
}

enum wal_status ref_fail(struct wal_error *error, enum wal_status status,
                         struct wal_slice actual)
{
    if (error != NULL) {
        WAL__ASSERT(actual.size < sizeof(error->actual));
        error->status = status;
        memset(error->actual, 0, sizeof(error->actual));
        if (actual.size > 0) {
            memcpy(error->actual, actual.data, actual.size);
        }
    }
    return status;
}

enum wal_status ref_fail_number(struct wal_error *error, enum wal_status status,
                                uint64_t actual)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu64, actual);
    return ref_fail(error, status, ref_text(text));
}

enum wal_status ref_conflict(struct wal_error *error,
                             enum wal_expectation expectation,
                             struct wal_slice actual)
{
    if (error != NULL) {
        error->expectation = expectation;
    }
    return ref_fail(error, WAL_ECONFLICT, actual);
}

enum wal_status ref_conflict_number(struct wal_error *error,
                                    enum wal_expectation expectation,
                                    uint64_t actual)
{
    if (error != NULL) {
        error->expectation = expectation;
    }
    return ref_fail_number(error, WAL_ECONFLICT, actual);
}

/* ------------------------------------------------------------- records --- */

struct reference *reference_create(void)
{
    struct reference *ref = common_alloc(1, sizeof(*ref));

    WAL__ASSERT(ref != NULL);
    return ref;
}

static void free_session(struct ref_session *session)
{
    reference_free(session->stored_options.id);
    reference_free(session->stored_options.cwd);
    reference_free(session->stored_options.project);
    reference_free(session->stored_options.title);
    reference_free(session->stored_options.parent_id);
    reference_free(session->stored_options.metadata);
    reference_free(session->stored_options.source);
    common_free(session);
}

static void free_entry(struct wal_entry *entry)
{
    reference_free(entry->id);
    reference_free(entry->type);
    reference_free(entry->timestamp);
    reference_free(entry->run_id);
    reference_free(entry->payload);
    reference_free(entry->meta);
    common_free(entry);
}

static void free_record(struct ref_record *record)
{
    switch (record->kind) {
    case REF_SESSION:
        free_session(record->session_state);
        break;
    case REF_ENTRY:
        free_entry(record->entry);
        reference_free(record->user_text);
        break;
    case REF_HEAD:
        reference_free(record->head->name);
        reference_free(record->head->note);
        common_free(record->head);
        break;
    case REF_DOC:
        reference_free(record->doc->key);
        reference_free(record->doc->value);
        common_free(record->doc);
        break;
    case REF_REDACT:
        reference_free(record->reason);
        break;
    case REF_FORK:
    case REF_TOMBSTONE:
        break;
    }
}

static struct ref_places *make_places(struct reference *ref, uint32_t number)
{
    number = number == REFERENCE_STORE ? 0 : number;
    if (number >= ref->places_count) {
        uint32_t count = number + 64;

        ref->places = common_resize(ref->places, count * sizeof(*ref->places));
        WAL__ASSERT(ref->places != NULL);
        memset(ref->places + ref->places_count, 0,
               (count - ref->places_count) * sizeof(*ref->places));
        ref->places_count = count;
    }
    return &ref->places[number];
}

/* The last record was added. */
static void note_places(struct reference *ref, struct ref_record *record)
{
    struct ref_places *of = make_places(ref, record->session);

    record->previous = of->newest;
    if (of->newest != 0) {
        ref->records[of->newest - 1].next = ref->count;
    } else {
        of->oldest = ref->count;
    }
    of->newest = ref->count;
    of->count++;
    if (record->kind == REF_SESSION) {
        record->known = of->current;
        of->current = ref->count;
        if (record->known == 0) {
            of->first = ref->count;
            ref->session_count = record->session;
        }
    } else if (record->kind == REF_TOMBSTONE) {
        of->tombstone = ref->count;
    }
}

/* The last record is to go. */
static void forget_places(struct reference *ref,
                          const struct ref_record *record)
{
    struct ref_places *of = make_places(ref, record->session);

    of->newest = record->previous;
    of->count--;
    if (of->newest != 0) {
        ref->records[of->newest - 1].next = 0;
    } else {
        of->oldest = 0;
    }
    if (record->kind == REF_SESSION) {
        of->current = record->known;
        if (record->known == 0) {
            of->first = 0;
            ref->session_count = record->session - 1;
        }
    } else if (record->kind == REF_TOMBSTONE) {
        of->tombstone = 0;
    } else if (record->kind == REF_REDACT &&
               ref_at(ref, record->target)->known == ref->count) {
        ref->records[record->target - 1].known = 0;
    }
}

/* Leaves the first `count` records. */
static void truncate_records(struct reference *ref, uint64_t count)
{
    while (ref->count > count) {
        forget_places(ref, &ref->records[ref->count - 1]);
        ref->count--;
        free_record(&ref->records[ref->count]);
    }
}

void reference_destroy(struct reference *ref)
{
    if (ref != NULL) {
        truncate_records(ref, 0);
        common_free(ref->records);
        common_free(ref->places);
        common_free(ref->learned);
        common_free(ref);
    }
}

struct ref_record *ref_add(struct reference *ref, enum ref_kind kind,
                           uint32_t session)
{
    struct ref_record *record;

    if (ref->count == ref->capacity) {
        ref->capacity = ref->capacity * 2 + 64;
        ref->records = common_resize(ref->records,
                                     ref->capacity * sizeof(ref->records[0]));
        WAL__ASSERT(ref->records != NULL);
    }
    record = &ref->records[ref->count++];
    memset(record, 0, sizeof(*record));
    record->kind = kind;
    record->session = session;
    record->earliest_ms = ref->earliest_ms;
    record->latest_ms = ref->latest_ms;
    note_places(ref, record);
    return record;
}

enum wal_status ref_end_operation(struct reference *ref, uint64_t before,
                                  bool durable, enum wal_status status)
{
    if (status != WAL_OK) {
        truncate_records(ref, before);
        return status;
    }
    if (ref->count > before) {
        ref->records[ref->count - 1].ends = true;
    }
    if (durable && !ref->is_in_doubt) {
        ref->durable = ref->count;
    }
    return WAL_OK;
}

void reference_set_schema(struct reference *ref, uint32_t version)
{
    ref->schema_version = version;
}

void reference_set_clock(struct reference *ref, int64_t earliest_ms,
                         int64_t latest_ms)
{
    ref->earliest_ms = earliest_ms;
    ref->latest_ms = latest_ms;
}

uint64_t reference_last_sequence(const struct reference *ref)
{
    return ref->count;
}

void reference_set_doubt(struct reference *ref, bool is_in_doubt)
{
    ref->is_in_doubt = is_in_doubt;
}

void reference_sync(struct reference *ref)
{
    ref->durable = ref->count;
}

uint64_t reference_durable_sequence(const struct reference *ref)
{
    return ref->durable;
}

bool reference_truncate(struct reference *ref, uint64_t last_sequence)
{
    if (last_sequence < ref->durable || last_sequence > ref->count ||
        (last_sequence > 0 && !ref_at(ref, last_sequence)->ends)) {
        return false;
    }
    truncate_records(ref, last_sequence);
    return true;
}
