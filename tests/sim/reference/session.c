/*
 * session.c - sessions: what they add_session_record about themselves, making,
 * forking and deleting them (reference.h).
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/reference/internal.h"

enum {
    ID_MAX = 255,
    TEXT_MAX = 4096,
    METADATA_MAX = 1024 * 1024
};

static const struct wal_slice nothing = {NULL, 0};

/* ----------------------------------------------------------- what it is --- */

struct ref_places ref_places_of(const struct reference *ref, uint32_t number)
{
    const struct ref_places none = {0};

    number = number == REFERENCE_STORE ? 0 : number;
    return number < ref->places_count ? ref->places[number] : none;
}

const struct ref_record *ref_session_current(const struct reference *ref,
                                             uint32_t number)
{
    return ref_at(ref, ref_places_of(ref, number).current);
}

const struct ref_record *ref_session_first(const struct reference *ref,
                                           uint32_t number)
{
    return ref_at(ref, ref_places_of(ref, number).first);
}

const struct ref_record *ref_fork_of(const struct reference *ref,
                                     uint32_t number)
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

uint64_t ref_last_record(const struct reference *ref, uint32_t number)
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
    version = ref_session_current(ref, number)
                  ->session_state->stored_options.schema_version;
    if (!writes_schema(ref, version)) {
        return ref_fail_number(error, WAL_ESCHEMA, version);
    }
    return WAL_OK;
}

enum wal_status reference_session_open(const struct reference *ref,
                                       struct wal_slice id, uint32_t *number)
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
    const struct wal_slice texts[] = {options->cwd, options->project,
                                      options->title, options->source};
    enum wal_status status = WAL_OK;

    if (options->id.size > ID_MAX ||
        ref_check_text(options->id, ID_MAX) != WAL_OK) {
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
                               const struct wal_session_options *says,
                               bool is_fork, bool is_trashed)
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
static enum wal_status check_free(const struct reference *ref,
                                  struct wal_slice id, struct wal_error *error)
{
    uint32_t found = ref_find_session(ref, id);

    if (found == 0) {
        return WAL_OK;
    }
    return ref_fail(
        error, reference_is_trashed(ref, found) ? WAL_ETRASHED : WAL_EEXISTS,
        id);
}

enum wal_status
reference_session_create(struct reference *ref,
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
        says.schema_version =
            ref->schema_version != 0 ? ref->schema_version : 1;
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
static enum wal_status find_point(const struct reference *ref, uint32_t number,
                                  struct wal_slice at, uint64_t *point)
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
enum wal_status ref_fork(struct reference *ref, uint32_t number,
                         struct wal_slice at,
                         const struct wal_session_options *options,
                         uint32_t *fork, struct wal_error *error)
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

enum wal_status
reference_session_fork(struct reference *ref, uint32_t number,
                       struct wal_slice at,
                       const struct wal_session_options *options,
                       uint32_t *fork, struct wal_error *error)
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
static enum wal_status set_trashed(struct reference *ref, uint32_t number,
                                   bool is_trashed)
{
    const struct ref_session *now =
        ref_session_current(ref, number)->session_state;
    uint64_t before = ref->count;

    add_session_record(ref, number, &now->stored_options, now->is_fork,
                       is_trashed);
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

enum wal_status reference_session_undelete(struct reference *ref,
                                           struct wal_slice id,
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

enum wal_status
reference_session_open_or_create(struct reference *ref,
                                 const struct wal_session_options *options,
                                 struct wal_slice made_id, uint32_t *number,
                                 int32_t *created, struct wal_error *error)
{
    struct wal_session_options made = *options;
    enum wal_status status =
        options->id.size > 0
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
    const uint32_t known = WAL_CHANGE_METADATA | WAL_CHANGE_TITLE |
                           WAL_CHANGE_CWD | WAL_CHANGE_PROJECT |
                           WAL_CHANGE_SCHEMA | WAL_CHANGE_EXPECT;
    enum wal_status status = WAL_OK;

    if ((change->fields & ~known) != 0 ||
        ((change->fields & WAL_CHANGE_SCHEMA) != 0 &&
         change->schema_version == 0)) {
        return WAL_EINVAL;
    }
    if ((change->fields & WAL_CHANGE_METADATA) != 0 &&
        change->metadata.size > 0) {
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
static struct wal_session_options
apply_change(const struct reference *ref, uint32_t number,
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
           reference_is_equal(says.title, now->title) &&
           reference_is_equal(says.cwd, now->cwd) &&
           reference_is_equal(says.project, now->project) &&
           says.schema_version == now->schema_version;
}

/* A change that changes nothing is right, whatever version is expected. */
enum wal_status ref_check_change(const struct reference *ref, uint32_t number,
                                 const struct wal_session_change *change,
                                 struct wal_error *error)
{
    uint64_t version = ref_sequence(ref, ref_session_current(ref, number));
    enum wal_status status = check_fields(change);

    if (status == WAL_OK && (change->fields & WAL_CHANGE_EXPECT) != 0 &&
        change->expected_version != version &&
        !changes_nothing(ref, number, change)) {
        return ref_conflict_number(error, WAL_EXPECTATION_METADATA, version);
    }
    return status;
}

void ref_change(struct reference *ref, uint32_t number,
                const struct wal_session_change *change)
{
    struct wal_session_options says = apply_change(ref, number, change);

    if (!changes_nothing(ref, number, change)) {
        add_session_record(
            ref, number, &says,
            ref_session_current(ref, number)->session_state->is_fork, false);
    }
}
