/*
 * reference.c - the list of records, and texts (reference.h).
 */
#include "tests/sim/reference/reference.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool ref_begins_with(struct wal_slice text, struct wal_slice prefix)
{
    return text.size >= prefix.size &&
           (prefix.size == 0 || memcmp(text.data, prefix.data, prefix.size) == 0);
}

static json_t *parse(struct wal_slice text)
{
    return json_loadb(text.size > 0 ? text.data : "", text.size, JSON_DECODE_ANY | JSON_ALLOW_NUL,
                      NULL);
}

/* Whether a text is valid JSON, and an object if one is required. */
static bool reference_is_json(struct wal_slice text, bool object)
{
    json_t *json = parse(text);
    bool is_json = json != NULL && (!object || json_is_object(json));

    json_decref(json);
    return is_json;
}

bool reference_member(struct wal_slice text, const char *name, struct wal_slice *out)
{
    json_t *json = parse(text);
    const json_t *member = json_object_get(json, name);
    bool is_there = json_is_string(member);

    if (is_there) {
        struct wal_slice found = {json_string_value(member), json_string_length(member)};

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

enum wal_status ref_check_json(struct wal_slice text, uint64_t limit, bool object)
{
    if (text.size > limit) {
        return WAL_ETOOBIG;
    }
    return reference_is_json(text, object) ? WAL_OK : WAL_EBADJSON;
}

enum wal_status ref_fail(struct wal_error *error, enum wal_status status, struct wal_slice actual)
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

enum wal_status ref_fail_number(struct wal_error *error, enum wal_status status, uint64_t actual)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu64, actual);
    return ref_fail(error, status, ref_text(text));
}

enum wal_status ref_conflict(struct wal_error *error, enum wal_expectation expectation,
                             struct wal_slice actual)
{
    if (error != NULL) {
        error->expectation = expectation;
    }
    return ref_fail(error, WAL_ECONFLICT, actual);
}

enum wal_status ref_conflict_number(struct wal_error *error, enum wal_expectation expectation,
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
    case REF_RESTORE:
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
static void forget_places(struct reference *ref, const struct ref_record *record)
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
    } else if (record->kind == REF_REDACT || record->kind == REF_RESTORE) {
        ref->records[record->target - 1].known = record->known;
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

struct ref_record *ref_add(struct reference *ref, enum ref_kind kind, uint32_t session)
{
    struct ref_record *record;

    if (ref->count == ref->capacity) {
        ref->capacity = ref->capacity * 2 + 64;
        ref->records = common_resize(ref->records, ref->capacity * sizeof(ref->records[0]));
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

enum wal_status ref_end_operation(struct reference *ref, uint64_t before, bool durable,
                                  enum wal_status status)
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

void reference_set_clock(struct reference *ref, int64_t earliest_ms, int64_t latest_ms)
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

/* --- session -------------------------------------------------------------- */

/*
 * Sessions: what they add_session_record about themselves, making, forking and deleting them.
 */

enum { ID_MAX = 255, TEXT_MAX = 4096, METADATA_MAX = 1024 * 1024 };

static const struct wal_slice nothing = {NULL, 0};

/* ----------------------------------------------------------- what it is --- */

struct ref_places ref_places_of(const struct reference *ref, uint32_t number)
{
    const struct ref_places none = {0};

    number = number == REFERENCE_STORE ? 0 : number;
    return number < ref->places_count ? ref->places[number] : none;
}

const struct ref_record *ref_session_current(const struct reference *ref, uint32_t number)
{
    return ref_at(ref, ref_places_of(ref, number).current);
}

static const struct ref_record *ref_session_first(const struct reference *ref, uint32_t number)
{
    return ref_at(ref, ref_places_of(ref, number).first);
}

const struct ref_record *ref_fork_of(const struct reference *ref, uint32_t number)
{
    const struct ref_record *first = ref_session_first(ref, number);
    uint64_t fork_sequence = ref_sequence(ref, first) + 1;

    return first->session_state->is_fork ? ref_at(ref, fork_sequence) : NULL;
}

uint32_t reference_session_count(const struct reference *ref)
{
    return ref->session_count;
}

bool reference_is_deleted(const struct reference *ref, uint32_t number)
{
    return ref_places_of(ref, number).tombstone != 0;
}

bool reference_is_trashed(const struct reference *ref, uint32_t number)
{
    return !reference_is_deleted(ref, number) &&
           ref_session_current(ref, number)->session_state->is_trashed;
}

uint32_t ref_find_session(const struct reference *ref, struct wal_slice id)
{
    for (uint64_t i = 1; i <= ref->count; i++) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_SESSION &&
            reference_is_equal(record->session_state->stored_options.id, id) &&
            !reference_is_deleted(ref, record->session)) {
            return record->session;
        }
    }
    return 0;
}

/* Its newest record. */
static uint64_t ref_last_record(const struct reference *ref, uint32_t number)
{
    return ref_places_of(ref, number).newest;
}

/* Whether the store was opened to write sessions of this version. */
static bool writes_schema(const struct reference *ref, uint32_t version)
{
    return ref->schema_version == 0 || ref->schema_version == version;
}

enum wal_status ref_check_writable(const struct reference *ref, uint32_t number,
                                   struct wal_error *error)
{
    uint32_t version;

    if (number == REFERENCE_STORE) {
        return WAL_OK;
    }
    if (reference_is_deleted(ref, number)) {
        return ref_fail(error, WAL_ENOTFOUND, nothing);
    }
    if (reference_is_trashed(ref, number)) {
        return ref_fail(error, WAL_ETRASHED, nothing);
    }
    version = ref_session_current(ref, number)->session_state->stored_options.schema_version;
    if (!writes_schema(ref, version)) {
        return ref_fail_number(error, WAL_ESCHEMA, version);
    }
    return WAL_OK;
}

enum wal_status reference_session_open(const struct reference *ref, struct wal_slice id,
                                       uint32_t *number)
{
    uint32_t found = ref_find_session(ref, id);

    if (found == 0) {
        return WAL_ENOTFOUND;
    }
    if (reference_is_trashed(ref, found)) {
        return WAL_ETRASHED;
    }
    *number = found;
    return WAL_OK;
}

/* --------------------------------------------------------------- making --- */

static enum wal_status check_options(const struct wal_session_options *options)
{
    const struct wal_slice texts[] = {options->cwd, options->project, options->title,
                                      options->source};
    enum wal_status status = WAL_OK;

    if (options->id.size > ID_MAX || ref_check_text(options->id, ID_MAX) != WAL_OK) {
        return WAL_EINVAL;
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (status == WAL_OK) {
            status = ref_check_text(texts[i], TEXT_MAX);
        }
    }
    if (status == WAL_OK) {
        status = ref_check_text(options->parent_id, ID_MAX);
    }
    if (status == WAL_OK && options->metadata.size > 0) {
        status = ref_check_json(options->metadata, METADATA_MAX, true);
    }
    return status;
}

/* A record of what a session says from now on. */
static void add_session_record(struct reference *ref, uint32_t number,
                               const struct wal_session_options *says, bool is_fork,
                               bool is_trashed)
{
    struct ref_record *record = ref_add(ref, REF_SESSION, number);
    struct ref_session *copy = common_alloc(1, sizeof(*copy));

    WAL__ASSERT(copy != NULL);
    copy->stored_options = *says;
    copy->stored_options.id = ref_copy(says->id);
    copy->stored_options.cwd = ref_copy(says->cwd);
    copy->stored_options.project = ref_copy(says->project);
    copy->stored_options.title = ref_copy(says->title);
    copy->stored_options.parent_id = ref_copy(says->parent_id);
    copy->stored_options.metadata = ref_copy(says->metadata);
    copy->stored_options.source = ref_copy(says->source);
    copy->is_fork = is_fork;
    copy->is_trashed = is_trashed;
    record->session_state = copy;
}

/* Whether no session has the id, also none in the trash. */
static enum wal_status check_free(const struct reference *ref, struct wal_slice id,
                                  struct wal_error *error)
{
    uint32_t found = ref_find_session(ref, id);

    if (found == 0) {
        return WAL_OK;
    }
    return ref_fail(error, reference_is_trashed(ref, found) ? WAL_ETRASHED : WAL_EEXISTS, id);
}

enum wal_status reference_session_create(struct reference *ref,
                                         const struct wal_session_options *options,
                                         uint32_t *number, struct wal_error *error)
{
    struct wal_session_options says = *options;
    enum wal_status status = check_options(options);
    uint64_t before = ref->count;
    uint32_t made = reference_session_count(ref) + 1;

    if (status != WAL_OK) {
        return status;
    }
    if (says.schema_version == 0) {
        says.schema_version = ref->schema_version != 0 ? ref->schema_version : 1;
    }
    if (!writes_schema(ref, says.schema_version)) {
        return ref_fail_number(error, WAL_ESCHEMA, says.schema_version);
    }
    status = check_free(ref, options->id, error);
    if (status != WAL_OK) {
        return status;
    }
    add_session_record(ref, made, &says, false, false);
    *number = made;
    return ref_end_operation(ref, before, true, WAL_OK);
}

/* The fork point: the entry that is named, else the head; 0: nothing. */
static enum wal_status find_point(const struct reference *ref, uint32_t number, struct wal_slice at,
                                  uint64_t *point)
{
    *point = at.size > 0 ? ref_find_named(ref, number, at)
                         : ref_head(ref, number, 0, nothing, ref->count);
    return at.size > 0 && *point == 0 ? WAL_ENOTFOUND : WAL_OK;
}

static void inherit(struct wal_slice *text, struct wal_slice from)
{
    if (text->size == 0) {
        *text = from;
    }
}

/* Empty options are inherited from the source, except `source`. */
enum wal_status ref_fork(struct reference *ref, uint32_t number, struct wal_slice at,
                         const struct wal_session_options *options, uint32_t *fork,
                         struct wal_error *error)
{
    struct wal_session_options says = *options;
    const struct wal_session_options *source;
    enum wal_status status = check_options(options);
    uint32_t made = reference_session_count(ref) + 1;
    struct ref_record *record;
    uint64_t point = 0;

    if (status == WAL_OK && reference_is_deleted(ref, number)) {
        status = WAL_ENOTFOUND;
    }
    if (status != WAL_OK) {
        return status;
    }
    source = &ref_session_current(ref, number)->session_state->stored_options;
    if (says.schema_version == 0) {
        says.schema_version = source->schema_version;
    }
    if (!writes_schema(ref, says.schema_version)) {
        return ref_fail_number(error, WAL_ESCHEMA, says.schema_version);
    }
    if (reference_is_trashed(ref, number)) {
        return ref_fail(error, WAL_ETRASHED, nothing);
    }
    status = check_free(ref, options->id, error);
    if (status != WAL_OK) {
        return status;
    }
    status = find_point(ref, number, at, &point);
    if (status != WAL_OK) {
        return status;
    }
    inherit(&says.cwd, source->cwd);
    inherit(&says.project, source->project);
    inherit(&says.title, source->title);
    inherit(&says.metadata, source->metadata);
    says.parent_id = source->id;
    add_session_record(ref, made, &says, true, false);
    record = ref_add(ref, REF_FORK, made);
    record->other = number;
    record->target = point;
    record->stream = point == 0 ? 0 : ref_at(ref, point)->stream;
    *fork = made;
    return WAL_OK;
}

enum wal_status reference_session_fork(struct reference *ref, uint32_t number, struct wal_slice at,
                                       const struct wal_session_options *options, uint32_t *fork,
                                       struct wal_error *error)
{
    uint64_t before = ref->count;
    enum wal_status status = ref_fork(ref, number, at, options, fork, error);

    return ref_end_operation(ref, before, true, status);
}

enum wal_status reference_session_delete(struct reference *ref, uint32_t number,
                                         struct wal_error *error)
{
    uint64_t before = ref->count;
    enum wal_status status = ref_check_writable(ref, number, error);

    if (status == WAL_OK || status == WAL_ETRASHED) {
        (void)ref_add(ref, REF_TOMBSTONE, number);
        status = WAL_OK;
    }
    return ref_end_operation(ref, before, true, status);
}

/* What it says stays as it is. */
static enum wal_status set_trashed(struct reference *ref, uint32_t number, bool is_trashed)
{
    const struct ref_session *now = ref_session_current(ref, number)->session_state;
    uint64_t before = ref->count;

    add_session_record(ref, number, &now->stored_options, now->is_fork, is_trashed);
    return ref_end_operation(ref, before, true, WAL_OK);
}

enum wal_status reference_session_trash(struct reference *ref, uint32_t number,
                                        struct wal_error *error)
{
    if (reference_is_deleted(ref, number)) {
        return ref_fail(error, WAL_ENOTFOUND, nothing);
    }
    if (reference_is_trashed(ref, number)) {
        return ref_fail(error, WAL_ETRASHED, nothing);
    }
    return set_trashed(ref, number, true);
}

enum wal_status reference_session_undelete(struct reference *ref, struct wal_slice id,
                                           struct wal_error *error)
{
    uint32_t number = ref_find_session(ref, id);

    if (number == 0 || !reference_is_trashed(ref, number)) {
        return ref_fail(error, WAL_ENOTFOUND, nothing);
    }
    return set_trashed(ref, number, false);
}

void reference_empty_trash(struct reference *ref)
{
    uint32_t count = reference_session_count(ref);

    for (uint32_t number = 1; number <= count; number++) {
        uint64_t before = ref->count;

        if (reference_is_trashed(ref, number)) {
            (void)ref_add(ref, REF_TOMBSTONE, number);
            (void)!ref_end_operation(ref, before, true, WAL_OK);
        }
    }
}

enum wal_status reference_session_open_or_create(struct reference *ref,
                                                 const struct wal_session_options *options,
                                                 struct wal_slice made_id, uint32_t *number,
                                                 int32_t *created, struct wal_error *error)
{
    struct wal_session_options made = *options;
    enum wal_status status = options->id.size > 0
                                 ? reference_session_open(ref, options->id, number)
                                 : reference_session_latest(ref, options->cwd, number);

    *created = status == WAL_ENOTFOUND;
    if (status != WAL_ENOTFOUND) {
        return status;
    }
    inherit(&made.id, made_id);
    return reference_session_create(ref, &made, number, error);
}

/* -------------------------------------------------------------- changes --- */

static enum wal_status check_fields(const struct wal_session_change *change)
{
    const uint32_t known = WAL_CHANGE_METADATA | WAL_CHANGE_TITLE | WAL_CHANGE_CWD |
                           WAL_CHANGE_PROJECT | WAL_CHANGE_SCHEMA | WAL_CHANGE_EXPECT;
    enum wal_status status = WAL_OK;

    if ((change->fields & ~known) != 0 ||
        ((change->fields & WAL_CHANGE_SCHEMA) != 0 && change->schema_version == 0)) {
        return WAL_EINVAL;
    }
    if ((change->fields & WAL_CHANGE_METADATA) != 0 && change->metadata.size > 0) {
        status = ref_check_json(change->metadata, METADATA_MAX, true);
    }
    if (status == WAL_OK && (change->fields & WAL_CHANGE_TITLE) != 0) {
        status = ref_check_text(change->title, TEXT_MAX);
    }
    if (status == WAL_OK && (change->fields & WAL_CHANGE_CWD) != 0) {
        status = ref_check_text(change->cwd, TEXT_MAX);
    }
    if (status == WAL_OK && (change->fields & WAL_CHANGE_PROJECT) != 0) {
        status = ref_check_text(change->project, TEXT_MAX);
    }
    return status;
}

/* The session's fields with the change applied. */
static struct wal_session_options apply_change(const struct reference *ref, uint32_t number,
                                               const struct wal_session_change *change)
{
    struct wal_session_options says =
        ref_session_current(ref, number)->session_state->stored_options;

    if ((change->fields & WAL_CHANGE_METADATA) != 0) {
        says.metadata = change->metadata;
    }
    if ((change->fields & WAL_CHANGE_TITLE) != 0) {
        says.title = change->title;
    }
    if ((change->fields & WAL_CHANGE_CWD) != 0) {
        says.cwd = change->cwd;
    }
    if ((change->fields & WAL_CHANGE_PROJECT) != 0) {
        says.project = change->project;
    }
    if ((change->fields & WAL_CHANGE_SCHEMA) != 0) {
        says.schema_version = change->schema_version;
    }
    return says;
}

/* Whether a change would leave the session as it is. */
static bool changes_nothing(const struct reference *ref, uint32_t number,
                            const struct wal_session_change *change)
{
    const struct wal_session_options *now =
        &ref_session_current(ref, number)->session_state->stored_options;
    struct wal_session_options says = apply_change(ref, number, change);

    return reference_is_equal(says.metadata, now->metadata) &&
           reference_is_equal(says.title, now->title) && reference_is_equal(says.cwd, now->cwd) &&
           reference_is_equal(says.project, now->project) &&
           says.schema_version == now->schema_version;
}

/* A change that changes nothing is right, whatever version is expected. */
enum wal_status ref_check_change(const struct reference *ref, uint32_t number,
                                 const struct wal_session_change *change, struct wal_error *error)
{
    uint64_t version = ref_sequence(ref, ref_session_current(ref, number));
    enum wal_status status = check_fields(change);

    if (status == WAL_OK && (change->fields & WAL_CHANGE_EXPECT) != 0 &&
        change->expected_version != version && !changes_nothing(ref, number, change)) {
        return ref_conflict_number(error, WAL_EXPECTATION_METADATA, version);
    }
    return status;
}

void ref_change(struct reference *ref, uint32_t number, const struct wal_session_change *change)
{
    struct wal_session_options says = apply_change(ref, number, change);

    if (!changes_nothing(ref, number, change)) {
        add_session_record(ref, number, &says,
                           ref_session_current(ref, number)->session_state->is_fork, false);
    }
}

/* --- the information on sessions, and lists of them ----------------------- */

/* Own entries of the conversation; those that reading leaves out count, but for deltas. */
static uint64_t own_entries(const struct reference *ref, uint32_t number)
{
    uint64_t count = 0;

    REF_EACH (i, ref, number) {
        const struct ref_record *record = ref_at(ref, i);

        count += record->kind == REF_ENTRY && record->stream == 0 && !record->is_delta;
    }
    return count;
}

/* The entries on the branch that a fork was made from, in the stream of the fork point. */
static uint64_t inherited(const struct reference *ref, uint32_t number)
{
    const struct ref_record *fork = ref_fork_of(ref, number);

    return fork == NULL || fork->target == 0 ? 0 : ref_depth(ref, fork->target) + 1;
}

static uint64_t own_documents(const struct reference *ref, uint32_t number)
{
    uint64_t count = 0;

    REF_EACH (i, ref, number) {
        count += ref_at(ref, i)->kind == REF_DOC;
    }
    return count;
}

/* ---------------------------------------------------------------- times --- */

/* A time is one of these milliseconds. */
struct span_ms {
    int64_t earliest;
    int64_t latest;
};

void reference_forget_times(struct reference *ref)
{
    ref->learned_at = ref->count;
    for (uint32_t i = 0; i < ref->learned_count; i++) {
        ref->learned[i] = INT64_MIN;
    }
}

void reference_learn_time(struct reference *ref, uint32_t number, int64_t updated_ms)
{
    if (number >= ref->learned_count) {
        uint32_t count = number + 64;

        ref->learned = common_resize(ref->learned, count * sizeof(ref->learned[0]));
        WAL__ASSERT(ref->learned != NULL);
        while (ref->learned_count < count) {
            ref->learned[ref->learned_count++] = INT64_MIN;
        }
    }
    ref->learned[number] = updated_ms;
}

/* The time of a text as the workload writes it: to the second, in UTC. */
static bool read_time(struct wal_slice text, int64_t *ms)
{
    static const int days[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    char copy[32] = "";
    int year;
    int month;
    int day;
    int hour;
    int minute;
    int second;
    int end = 0;

    if (text.size != strlen("0000-00-00T00:00:00Z")) {
        return false;
    }
    memcpy(copy, text.data, text.size);
    if (sscanf(copy, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day, &hour, &minute, &second,
               &end) != 6 ||
        end != (int)text.size || month < 1 || month > 12) {
        return false;
    }
    *ms = 365 * (int64_t)(year - 1970) + days[month - 1] + day - 1;
    /* The leap days before this year, and that of this year. */
    *ms += (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 - 477;
    *ms += month > 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    *ms = (((*ms * 24 + hour) * 60 + minute) * 60 + second) * 1000;
    return true;
}

/* The time that a record claims, if that is believed, else when it was stored. The workload claims
 * none that is close to a day from now. */
static struct span_ms believed(const struct ref_record *record, int64_t ms)
{
    if (ms < 0 || ms > record->latest_ms + 86400000) {
        return (struct span_ms){record->earliest_ms, record->latest_ms};
    }
    return (struct span_ms){ms, ms};
}

static struct span_ms entry_time(const struct ref_record *record)
{
    int64_t ms;

    return read_time(record->entry->timestamp, &ms)
               ? believed(record, ms)
               : (struct span_ms){record->earliest_ms, record->latest_ms};
}

static int64_t min_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_ms(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When the session was created, and when it was last active: the times of its entries, or that of
 * its creation. */
static void find_times(const struct reference *ref, uint32_t number, struct span_ms *created,
                       struct span_ms *updated)
{
    const struct ref_record *first = ref_session_first(ref, number);
    int64_t given = first->session_state->stored_options.created_ms;
    bool is_active = false;

    *created = given == 0 ? (struct span_ms){first->earliest_ms, first->latest_ms}
                          : believed(first, given);
    *updated = *created;
    REF_EACH (i, ref, number) {
        const struct ref_record *record = ref_at(ref, i);
        struct span_ms at;

        if (record->kind != REF_ENTRY || record->is_delta) {
            continue;
        }
        at = entry_time(record);
        created->earliest = min_ms(created->earliest, at.earliest);
        created->latest = min_ms(created->latest, at.latest);
        if (!is_active) {
            *updated = at;
        }
        is_active = true;
        updated->earliest = max_ms(updated->earliest, at.earliest);
        updated->latest = max_ms(updated->latest, at.latest);
    }
    if (ref->learned_at == ref->count && number < ref->learned_count &&
        ref->learned[number] >= updated->earliest && ref->learned[number] <= updated->latest) {
        updated->earliest = ref->learned[number];
        updated->latest = ref->learned[number];
    }
}

/* ------------------------------------------------------------- sessions --- */

/* Also of a session that is deleted. */
static void describe(const struct reference *ref, uint32_t number, struct reference_info *out)
{
    const struct ref_record *now = ref_session_current(ref, number);
    const struct wal_session_options *says = &now->session_state->stored_options;
    struct span_ms created;
    struct span_ms updated;
    const struct wal_slice main = {NULL, 0};

    memset(out, 0, sizeof(*out));
    out->info.struct_size = sizeof(out->info);
    out->info.schema_version = says->schema_version;
    out->info.number = number;
    out->info.flags = now->session_state->is_fork ? WAL_SESSION_FORK : 0;
    if (reference_is_deleted(ref, number)) {
        out->info.flags |= WAL_SESSION_DELETED;
    } else if (now->session_state->is_trashed) {
        out->info.flags |= WAL_SESSION_TRASHED;
    }
    out->info.id = says->id;
    out->info.cwd = says->cwd;
    out->info.project = says->project;
    out->info.title = says->title;
    out->info.parent_id = says->parent_id;
    out->info.source = says->source;
    out->info.metadata = says->metadata;
    out->info.head = ref_entry_id(ref, ref_head(ref, number, 0, main, ref->count));
    find_times(ref, number, &created, &updated);
    out->info.created_ms = created.earliest;
    out->created_latest_ms = created.latest;
    out->info.updated_ms = updated.earliest;
    out->updated_latest_ms = updated.latest;
    out->info.last_sequence = ref_last_record(ref, number);
    out->info.inherited = inherited(ref, number);
    out->info.entries = own_entries(ref, number) + out->info.inherited;
    out->info.metadata_version = ref_sequence(ref, now);
    out->info.documents = own_documents(ref, number);
    out->first_text_size = ref_first_text(ref, number, out->first_text, &out->info.flags);
}

enum wal_status reference_session_status(const struct reference *ref, uint32_t number,
                                         struct reference_info *out)
{
    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    describe(ref, number, out);
    return WAL_OK;
}

static bool matches(struct wal_slice wanted, struct wal_slice text)
{
    return wanted.size == 0 || reference_is_equal(wanted, text);
}

/* ---------------------------------------------------------------- lists --- */

/* What a session comes from: the one it was forked from, else the one that its parent id names; 0:
 * none. */
static uint32_t ancestor(const struct reference *ref, uint32_t number)
{
    const struct ref_record *fork = ref_fork_of(ref, number);

    if (fork != NULL) {
        return fork->other;
    }
    return ref_find_session(
        ref, ref_session_current(ref, number)->session_state->stored_options.parent_id);
}

static bool is_listed(const struct reference_info *list, uint32_t count, uint32_t number)
{
    bool found = false;

    for (uint32_t i = 0; i < count; i++) {
        found |= list[i].info.number == number;
    }
    return found;
}

/* Parent ids may lead round in a circle: it ends where it closes. */
static enum wal_status list_lineage(const struct reference *ref, struct wal_slice of,
                                    struct reference_info *list, uint32_t *count)
{
    uint32_t first = ref_find_session(ref, of);
    uint32_t number;

    if (first == 0) {
        return WAL_ENOTFOUND;
    }
    for (number = ancestor(ref, first);
         number != 0 && number != first && !is_listed(list, *count, number);
         number = ancestor(ref, number)) {
        describe(ref, number, &list[*count]);
        *count += 1;
    }
    return WAL_OK;
}

static int compare(const void *left, const void *right)
{
    const struct reference_info *a = left;
    const struct reference_info *b = right;

    if (a->info.updated_ms != b->info.updated_ms) {
        return a->info.updated_ms > b->info.updated_ms ? -1 : 1;
    }
    return a->info.last_sequence > b->info.last_sequence ? -1 : 1;
}

static void list_all(const struct reference *ref, const struct wal_session_cursor_options *options,
                     struct reference_info *list, uint32_t *count)
{
    bool is_trash = (options->flags & WAL_SESSION_CURSOR_TRASH) != 0;
    uint32_t sessions = reference_session_count(ref);

    for (uint32_t number = 1; number <= sessions; number++) {
        struct reference_info *at = &list[*count];

        if (reference_is_deleted(ref, number) || reference_is_trashed(ref, number) != is_trash) {
            continue;
        }
        describe(ref, number, at);
        if (matches(options->cwd, at->info.cwd) && matches(options->project, at->info.project) &&
            matches(options->source, at->info.source) &&
            matches(options->parent, at->info.parent_id) &&
            ref_begins_with(at->info.id, options->prefix) &&
            (options->changed_after == 0 || at->info.updated_ms > options->changed_after) &&
            (options->recorded_after == 0 || at->info.last_sequence > options->recorded_after)) {
            *count += 1;
        }
    }
    qsort(list, *count, sizeof(*list), compare);
}

enum wal_status reference_list(const struct reference *ref,
                               const struct wal_session_cursor_options *options,
                               struct reference_info **infos, uint32_t *count)
{
    struct reference_info *list = common_alloc(reference_session_count(ref) + 1, sizeof(*list));
    enum wal_status status = WAL_OK;
    uint32_t found = 0;

    WAL__ASSERT(list != NULL);
    if (options->after.size > 0) {
        status = WAL_EINVAL; /* the reference has no cursors */
    } else if ((options->flags & WAL_SESSION_CURSOR_LINEAGE) != 0) {
        status = list_lineage(ref, options->lineage_of, list, &found);
    } else {
        list_all(ref, options, list, &found);
    }
    if (status != WAL_OK) {
        common_free(list);
        return status;
    }
    *infos = list;
    *count = found;
    return WAL_OK;
}

enum wal_status reference_session_latest(const struct reference *ref, struct wal_slice cwd,
                                         uint32_t *number)
{
    const struct wal_session_cursor_options options = {.struct_size = sizeof(options), .cwd = cwd};
    struct reference_info *infos = NULL;
    uint32_t count = 0;
    enum wal_status status = reference_list(ref, &options, &infos, &count);

    if (status == WAL_OK && count > 0) {
        *number = infos[0].info.number;
    }
    common_free(infos);
    return status == WAL_OK && count == 0 ? WAL_ENOTFOUND : status;
}
