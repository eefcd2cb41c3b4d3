/*
 * write.c - what a batch, an entry, a document, a head or a change of a session must do to the
 * reference (reference.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/reference/internal.h"

enum {
    ID_MAX = 255,
    TIME_MAX = 64,
    STREAM_MAX = 255,
    META_MAX = 1024 * 1024,
    PAYLOAD_MAX = 16 * 1024 * 1024
};

static const struct wal_slice nothing = {NULL, 0};

/* The member of a payload that names something; no id is empty. */
static bool names_id(const struct wal_entry *entry, const char *name, struct wal_slice *id)
{
    if (!reference_member(entry->payload, name, id)) {
        return false;
    }
    if (id->size > 0 && id->size <= ID_MAX) {
        return true;
    }
    reference_free(*id);
    return false;
}

/* A redaction says what it hides. */
static bool names_target(const struct wal_entry *entry)
{
    struct wal_slice redaction = ref_text(WAL_TYPE_REDACTION);
    struct wal_slice id;

    if (!reference_is_equal(entry->type, redaction)) {
        return true;
    }
    if (!names_id(entry, "targetEntryId", &id)) {
        return false;
    }
    reference_free(id);
    return true;
}

/* An imported line of the type is no delta. */
static bool is_delta(const struct wal_entry *entry)
{
    return (entry->flags & WAL_ENTRY_LINE) == 0 &&
           reference_is_equal(entry->type, ref_text(WAL_TYPE_MESSAGE_DELTA_BATCH));
}

/* Checks of an entry that do not need the store. */
static enum wal_status ref_check_entry(const struct wal_entry *entry)
{
    const uint32_t keep_or_move = WAL_ENTRY_HEAD_KEEP | WAL_ENTRY_HEAD_MOVE;
    const uint32_t known = WAL_ENTRY_ROOT | WAL_ENTRY_LINE | keep_or_move;
    const struct wal_slice ids[] = {entry->id, entry->type, entry->run_id, entry->parent_id};
    enum wal_status status = ref_check_text(entry->timestamp, TIME_MAX);

    if ((entry->flags & ~known) != 0 || (entry->flags & keep_or_move) == keep_or_move ||
        entry->stream > STREAM_MAX || entry->type.size == 0 ||
        (entry->parent_id.size > 0 && (entry->flags & WAL_ENTRY_ROOT) != 0)) {
        return WAL_EINVAL;
    }
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        if (status == WAL_OK) {
            status = ref_check_text(ids[i], ID_MAX);
        }
    }
    if (status == WAL_OK && entry->meta.size > 0) {
        status = ref_check_json(entry->meta, META_MAX, true);
    }
    if (status == WAL_OK && (entry->flags & WAL_ENTRY_LINE) == 0) {
        status = ref_check_json(entry->payload, PAYLOAD_MAX, false);
        if (status == WAL_OK && (!names_target(entry) ||
                                 (is_delta(entry) && (entry->flags & WAL_ENTRY_HEAD_MOVE) != 0))) {
            status = WAL_EINVAL;
        }
    }
    return status;
}

/* Whether two entries of an id are the same, but for their parents; a time counts when it is
 * given. */
static bool ref_same_content(const struct wal_entry *entry, const struct wal_entry *old)
{
    return entry->stream == old->stream &&
           (entry->flags & WAL_ENTRY_LINE) == (old->flags & WAL_ENTRY_LINE) &&
           (entry->timestamp.size == 0 || reference_is_equal(entry->timestamp, old->timestamp)) &&
           reference_is_equal(entry->type, old->type) &&
           reference_is_equal(entry->run_id, old->run_id) &&
           reference_is_equal(entry->meta, old->meta) &&
           reference_is_equal(entry->payload, old->payload);
}

/* Whether this is what the caller gives again: parent and time count when they are given. */
static bool ref_matches(const struct reference *ref, uint32_t number, const struct wal_entry *entry,
                        uint64_t sequence)
{
    const struct ref_record *there = ref_at(ref, sequence);

    if (entry->parent_id.size > 0 &&
        (there->target == 0 || ref_find_entry(ref, number, entry->parent_id) != there->target)) {
        return false;
    }
    if ((entry->flags & WAL_ENTRY_ROOT) != 0 && there->target != 0) {
        return false;
    }
    return ref_same_content(entry, there->entry);
}

/* ------------------------------------------------- what an entry names --- */

/* A compaction names the first entry it keeps, on its way to the root. */
static enum wal_status check_compaction(const struct reference *ref, uint32_t number,
                                        const struct ref_record *record)
{
    struct wal_slice id;
    uint64_t kept;

    if (!names_id(record->entry, "firstKeptEntryId", &id)) {
        return WAL_EINVAL;
    }
    kept = ref_find_entry(ref, number, id);
    reference_free(id);
    return ref_is_ancestor(ref, kept, record->target) ? WAL_OK : WAL_ENOTFOUND;
}

/* A branch summary names an entry of a session. */
static enum wal_status check_summary(const struct reference *ref, const struct ref_record *record)
{
    struct wal_slice session;
    struct wal_slice entry;
    uint32_t number;
    uint64_t found = 0;

    if (!names_id(record->entry, "sourceSessionId", &session)) {
        return WAL_EINVAL;
    }
    number = ref_find_session(ref, session);
    reference_free(session);
    if (!names_id(record->entry, "sourceEntryId", &entry)) {
        return WAL_EINVAL;
    }
    if (number != 0) {
        found = ref_find_named(ref, number, entry);
    }
    reference_free(entry);
    return found != 0 ? WAL_OK : WAL_ENOTFOUND;
}

/* Entries that native entries name must exist. */
static enum wal_status check_names(const struct reference *ref, uint32_t number,
                                   const struct ref_record *record)
{
    if ((record->entry->flags & WAL_ENTRY_LINE) != 0) {
        return WAL_OK;
    }
    if (ref_is_type(record, WAL_TYPE_COMPACTION_SUMMARY)) {
        return check_compaction(ref, number, record);
    }
    if (ref_is_type(record, WAL_TYPE_BRANCH_SUMMARY)) {
        return check_summary(ref, record);
    }
    return WAL_OK;
}

/* The target's content is hidden: a record of the session that owns it. A line that was imported
 * and names no existing entry hides nothing. */
static enum wal_status ref_redact(struct reference *ref, uint64_t redaction,
                                  struct wal_error *error)
{
    const struct ref_record *record = ref_at(ref, redaction);
    bool is_line = (record->entry->flags & WAL_ENTRY_LINE) != 0;
    struct wal_slice id;
    struct wal_slice reason = {NULL, 0};
    struct ref_record *redact;
    uint64_t target;

    if (!names_id(record->entry, "targetEntryId", &id)) {
        return WAL_OK;
    }
    target = ref_find_entry(ref, record->session, id);
    reference_free(id);
    if (target == 0) {
        return is_line ? WAL_OK : ref_fail(error, WAL_ENOTFOUND, nothing);
    }
    (void)reference_member(record->entry->payload, "reason", &reason);
    redact = ref_add(ref, REF_REDACT, ref_at(ref, target)->session);
    redact->stream = ref_at(ref, target)->stream;
    redact->target = target;
    redact->by = redaction;
    redact->reason = reason;
    redact->known = ref_at(ref, target)->known;
    ref->records[target - 1].known = ref->count;
    return WAL_OK;
}

/* ------------------------------------------------------------ appending --- */

/* Under the parent that is named, at the root, or under the head. */
static enum wal_status find_parent(const struct reference *ref, uint32_t number,
                                   const struct wal_entry *entry, uint64_t *parent)
{
    if (entry->parent_id.size > 0) {
        *parent = ref_find_named(ref, number, entry->parent_id);
        if (*parent == 0 || ref_at(ref, *parent)->stream != entry->stream) {
            return WAL_ENOPARENT;
        }
    } else if ((entry->flags & WAL_ENTRY_ROOT) != 0) {
        *parent = 0;
    } else {
        *parent = ref_head(ref, number, entry->stream, nothing, ref->count);
    }
    return WAL_OK;
}

static struct wal_entry *copy_entry(const struct wal_entry *entry)
{
    struct wal_entry *copy = common_alloc(1, sizeof(*copy));

    WAL__ASSERT(copy != NULL);
    copy->struct_size = sizeof(*copy);
    copy->flags = entry->flags & WAL_ENTRY_LINE;
    copy->stream = entry->stream;
    copy->id = ref_copy(entry->id);
    copy->type = ref_copy(entry->type);
    copy->timestamp = ref_copy(entry->timestamp);
    copy->run_id = ref_copy(entry->run_id);
    copy->payload = ref_copy(entry->payload);
    copy->meta = ref_copy(entry->meta);
    return copy;
}

/* Adds an entry under its parent, and moves the head. */
static enum wal_status ref_append(struct reference *ref, uint32_t number,
                                  const struct wal_entry *entry, struct wal_error *error)
{
    uint64_t head = ref_head(ref, number, entry->stream, nothing, ref->count);
    uint64_t parent = 0;
    enum wal_status status = find_parent(ref, number, entry, &parent);
    struct ref_record *record;
    char text[160];

    if (status != WAL_OK) {
        return ref_fail(error, status, nothing);
    }
    record = ref_add(ref, REF_ENTRY, number);
    record->stream = entry->stream;
    record->target = parent;
    record->entry = copy_entry(entry);
    record->user_text = ref_copy((struct wal_slice){text, ref_user_text(entry, text)});
    record->is_delta = is_delta(entry);
    record->moves_head = (parent == head || (entry->flags & WAL_ENTRY_HEAD_MOVE) != 0) &&
                         (entry->flags & WAL_ENTRY_HEAD_KEEP) == 0 && !record->is_delta;
    status = check_names(ref, number, record);
    return status == WAL_OK ? WAL_OK : ref_fail(error, status, nothing);
}

/* --- one atomic operation on a session: all of it or nothing -------------- */

enum {
    NAME_MAX_SIZE = 255,
    NOTE_MAX = 4096,
    KEY_MAX = 1024,
    VALUE_MAX = 16 * 1024 * 1024,
    HEADS_MAX = 4096
};

/* ------------------------------------------ what can be said beforehand --- */

static bool is_same_head(const struct wal_head *a, const struct wal_head *b)
{
    struct wal_slice main = ref_text("main");

    return a->stream == b->stream && reference_is_equal(a->name.size == 0 ? main : a->name,
                                                        b->name.size == 0 ? main : b->name);
}

static enum wal_status check_heads(const struct wal_batch *batch)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < batch->head_count && status == WAL_OK; i++) {
        const struct wal_head *head = &batch->heads[i];

        if ((head->flags & ~(uint32_t)WAL_HEAD_EXPECT) != 0 || head->stream > 255) {
            return WAL_EINVAL;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (is_same_head(head, &batch->heads[j])) {
                return WAL_EINVAL;
            }
        }
        status = ref_check_text(head->name, NAME_MAX_SIZE);
        if (status == WAL_OK) {
            status = ref_check_text(head->note, NOTE_MAX);
        }
    }
    return status;
}

static enum wal_status check_docs(const struct wal_batch *batch)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < batch->document_count && status == WAL_OK; i++) {
        const struct wal_doc *doc = &batch->documents[i];

        if (doc->key.size == 0) {
            return WAL_EINVAL;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (((doc->flags ^ batch->documents[j].flags) & WAL_DOC_STORE) == 0 &&
                reference_is_equal(doc->key, batch->documents[j].key)) {
                return WAL_EINVAL;
            }
        }
        status = ref_check_text(doc->key, KEY_MAX);
        if (status == WAL_OK && (doc->flags & WAL_DOC_DELETE) == 0) {
            status = ref_check_json(doc->value, VALUE_MAX, false);
        }
    }
    return status;
}

static enum wal_status check_call(const struct wal_batch *batch)
{
    enum wal_status status = WAL_OK;

    if (batch->entry_count == 0 && batch->document_count == 0 && batch->head_count == 0 &&
        batch->change == NULL) {
        return WAL_EINVAL;
    }
    for (uint32_t i = 0; i < batch->entry_count && status == WAL_OK; i++) {
        status = ref_check_entry(&batch->entries[i]);
    }
    if (status == WAL_OK) {
        status = check_docs(batch);
    }
    if (status == WAL_OK) {
        status = check_heads(batch);
    }
    return status;
}

/* ----------------------------------------------------------- conditions --- */

/* The first entry of the batch with this id. */
static const struct wal_entry *first_of(const struct wal_batch *batch, struct wal_slice id)
{
    const struct wal_entry *entry = batch->entries;

    while (!reference_is_equal(entry->id, id)) {
        entry++;
    }
    return entry;
}

/* Entries that are there already, or earlier in the batch, must be the same. The tail counts when
 * one is new, or when there are none: *news. */
static enum wal_status check_duplicates(const struct reference *ref, uint32_t number,
                                        const struct wal_batch *batch, bool *news,
                                        struct wal_error *error)
{
    *news = batch->entry_count == 0;
    for (uint32_t i = 0; i < batch->entry_count; i++) {
        const struct wal_entry *entry = &batch->entries[i];
        uint64_t there = ref_find_entry(ref, number, entry->id);
        bool same = there != 0 ? ref_matches(ref, number, entry, there)
                               : ref_same_content(entry, first_of(batch, entry->id));

        if (!same) {
            return ref_fail(error, WAL_EEXISTS, entry->id);
        }
        *news |= there == 0;
    }
    return WAL_OK;
}

static enum wal_status check_tail(const struct reference *ref, uint32_t number,
                                  const struct wal_batch *batch,
                                  const struct wal_append_options *options, struct wal_error *error)
{
    uint32_t stream = batch->entry_count > 0 ? batch->entries[0].stream : 0;
    struct wal_slice tail = ref_entry_id(ref, ref_head(ref, number, stream, nothing, ref->count));

    if (options == NULL || (options->flags & WAL_APPEND_EXPECT) == 0 ||
        reference_is_equal(tail, options->expected_tail)) {
        return WAL_OK;
    }
    return ref_conflict(error, WAL_EXPECTATION_TAIL, tail);
}

static uint32_t owner_of(const struct wal_doc *doc, uint32_t number)
{
    return (doc->flags & WAL_DOC_STORE) != 0 ? REFERENCE_STORE : number;
}

/* -------------------------------------------------------------- writing --- */

/* The entries; then what their redactions hide. */
static enum wal_status write_entries(struct reference *ref, uint32_t number,
                                     const struct wal_batch *batch,
                                     struct wal_append_result *result, struct wal_error *error)
{
    uint64_t first = ref->count + 1;
    uint64_t last;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < batch->entry_count && status == WAL_OK; i++) {
        const struct wal_entry *entry = &batch->entries[i];
        uint64_t there = ref_find_entry(ref, number, entry->id);

        if (there == 0) {
            status = ref_append(ref, number, entry, error);
            result->appended++;
            result->sequence = ref->count;
        } else if (ref_matches(ref, number, entry, there)) {
            result->duplicates++;
        } else {
            status = ref_fail(error, WAL_EEXISTS, entry->id);
        }
        memset(result->last_id, 0, sizeof(result->last_id));
        if (entry->id.size > 0) {
            memcpy(result->last_id, entry->id.data, entry->id.size);
        }
    }
    last = ref->count;
    for (uint64_t i = first; i <= last && status == WAL_OK; i++) {
        if (ref_is_type(ref_at(ref, i), WAL_TYPE_REDACTION)) {
            status = ref_redact(ref, i, error);
        }
    }
    return status;
}

static enum wal_status ref_move_head(struct reference *ref, uint32_t number,
                                     const struct wal_head *head, uint64_t before,
                                     struct wal_error *error);

static enum wal_status ref_put_doc(struct reference *ref, uint32_t number,
                                   const struct wal_doc *doc, struct wal_error *error);

static enum wal_status write_all(struct reference *ref, uint32_t number,
                                 const struct wal_batch *batch, struct wal_append_result *result,
                                 struct wal_error *error)
{
    uint64_t before = ref->count;
    enum wal_status status = write_entries(ref, number, batch, result, error);

    for (uint32_t i = 0; i < batch->document_count && status == WAL_OK; i++) {
        const struct wal_doc *doc = &batch->documents[i];

        status = ref_put_doc(ref, owner_of(doc, number), doc, error);
    }
    for (uint32_t i = 0; i < batch->head_count && status == WAL_OK; i++) {
        status = ref_move_head(ref, number, &batch->heads[i], before, error);
    }
    if (status == WAL_OK && batch->change != NULL) {
        ref_change(ref, number, batch->change);
    }
    return status;
}

enum wal_status reference_batch(struct reference *ref, uint32_t number,
                                const struct wal_batch *batch,
                                const struct wal_append_options *options,
                                struct wal_append_result *result, struct wal_error *error)
{
    struct wal_append_result written = {.struct_size = sizeof(written)};
    uint64_t before = ref->count;
    bool durable = options == NULL || options->durability == WAL_DURABLE;
    enum wal_status status = check_call(batch);
    bool news = false;

    if (status == WAL_OK && number != REFERENCE_STORE && reference_is_deleted(ref, number)) {
        status = WAL_ENOTFOUND;
    }
    if (status == WAL_OK && batch->change != NULL) {
        status = ref_check_change(ref, number, batch->change, error);
    }
    if (status == WAL_OK) {
        status = ref_check_writable(ref, number, error);
    }
    if (status == WAL_OK) {
        status = check_duplicates(ref, number, batch, &news, error);
    }
    if (status == WAL_OK && news) {
        status = check_tail(ref, number, batch, options, error);
    }
    if (status == WAL_OK) {
        status = write_all(ref, number, batch, &written, error);
    }
    status = ref_end_operation(ref, before, durable, status);
    if (status == WAL_OK && result != NULL) {
        *result = written;
    }
    return status;
}

/* ----------------------------------- batches that the library makes up --- */

enum wal_status reference_redact(struct reference *ref, uint32_t number, struct wal_slice target,
                                 struct wal_slice reason, const struct wal_entry *made,
                                 struct wal_append_result *result, struct wal_error *error)
{
    struct wal_batch batch = {.struct_size = sizeof(batch), .entry_count = 1, .entries = made};
    enum wal_status status = ref_check_text(reason, NOTE_MAX);

    if (status == WAL_OK) {
        status = ref_check_writable(ref, number, error);
    }
    if (status == WAL_OK && ref_find_entry(ref, number, target) == 0) {
        status = WAL_ENOTFOUND;
    }
    if (status != WAL_OK) {
        return status;
    }
    return reference_batch(ref, number, &batch, NULL, result, error);
}

enum wal_status reference_unredact(struct reference *ref, uint32_t number, struct wal_slice id,
                                   struct wal_error *error)
{
    uint64_t before = ref->count;
    struct ref_record *restore;
    uint64_t target;
    enum wal_status status = ref_check_writable(ref, number, error);

    if (status != WAL_OK) {
        return status;
    }
    target = ref_find_entry(ref, number, id);
    if (target == 0 || !reference_is_redacted(ref, target)) {
        return WAL_ENOTFOUND;
    }
    restore = ref_add(ref, REF_RESTORE, ref_at(ref, target)->session);
    restore->stream = ref_at(ref, target)->stream;
    restore->target = target;
    restore->known = ref_at(ref, target)->known;
    ref->records[target - 1].known = ref->count;
    return ref_end_operation(ref, before, true, WAL_OK);
}

enum wal_status reference_compact(struct reference *ref, uint32_t number,
                                  const struct wal_compact_options *options,
                                  const struct wal_entry *made, uint32_t *fork,
                                  struct wal_append_result *result, struct wal_error *error)
{
    struct wal_batch batch = {.struct_size = sizeof(batch), .entry_count = 1, .entries = made};
    struct wal_append_result written = {.struct_size = sizeof(written)};
    uint64_t before = ref->count;
    uint32_t into = number;
    enum wal_status status = WAL_OK;
    uint64_t kept;

    if (options->into != NULL) {
        status = ref_fork(ref, number, nothing, options->into, &into, error);
    } else {
        status = ref_check_writable(ref, number, error);
    }
    if (status == WAL_OK) {
        kept = ref_find_entry(ref, into, options->first_kept);
        status = ref_is_ancestor(ref, kept, ref_head(ref, into, 0, nothing, ref->count))
                     ? WAL_OK
                     : WAL_ENOTFOUND;
    }
    if (status == WAL_OK) {
        status = write_all(ref, into, &batch, &written, error);
    }
    status = ref_end_operation(ref, before, true, status);
    if (status == WAL_OK) {
        *result = written;
        if (options->into != NULL) {
            *fork = into;
        }
    }
    return status;
}

/* --- change --------------------------------------------------------------- */

/*
 * Changing what a session says about itself by a function of what that is, and bringing it to a
 * schema version.
 */

enum { ROUNDS = 1000 };

/* Calls the function once and writes its change, unless another one changed the session meanwhile.
 * `to` is the version of a step of a migration, or 0. */
static enum wal_status call_update_once(struct reference *ref, uint32_t number, wal_update_fn *fn,
                                        void *ctx, uint32_t to, struct wal_error *error)
{
    struct wal_session_change change = {.struct_size = sizeof(change)};
    struct reference_info now;
    enum wal_status status = reference_session_status(ref, number, &now);
    int32_t answer = 0;
    uint64_t before;

    if (status == WAL_OK && fn != NULL) {
        answer = fn(ctx, &now.info, &change);
    }
    if (answer != 0) {
        if (error != NULL) {
            error->status = WAL_ECALLBACK;
            error->sys_errno = answer;
        }
        return WAL_ECALLBACK;
    }
    change.fields |= WAL_CHANGE_EXPECT;
    change.expected_version = now.info.metadata_version;
    if (to != 0) {
        change.fields |= WAL_CHANGE_SCHEMA;
        change.schema_version = to;
    }
    if (status == WAL_OK) {
        status = ref_check_change(ref, number, &change, error);
    }
    if (status == WAL_OK && to == 0) {
        status = ref_check_writable(ref, number, error);
    }
    before = ref->count;
    if (status == WAL_OK) {
        ref_change(ref, number, &change);
    }
    return ref_end_operation(ref, before, true, status);
}

static enum wal_status call_update(struct reference *ref, uint32_t number, wal_update_fn *fn,
                                   void *ctx, uint32_t to, struct wal_error *error)
{
    enum wal_status status = WAL_ECONFLICT;

    for (uint32_t i = 0; i < ROUNDS && status == WAL_ECONFLICT; i++) {
        status = call_update_once(ref, number, fn, ctx, to, error);
    }
    return status;
}

enum wal_status reference_session_update(struct reference *ref, uint32_t number, wal_update_fn *fn,
                                         void *ctx, struct wal_error *error)
{
    return call_update(ref, number, fn, ctx, 0, error);
}

static uint32_t schema_of(const struct reference *ref, uint32_t number)
{
    return ref_session_current(ref, number)->session_state->stored_options.schema_version;
}

/* One version at a time; without a function the steps up to 1 are known. */
enum wal_status reference_session_migrate(struct reference *ref, uint32_t number, uint32_t to,
                                          wal_update_fn *fn, void *ctx,
                                          struct wal_migrate_result *result,
                                          struct wal_error *error)
{
    uint32_t from;

    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    if (reference_is_trashed(ref, number)) {
        return WAL_ETRASHED;
    }
    from = schema_of(ref, number);
    if (from > to) {
        return ref_fail_number(error, WAL_ESCHEMA, from);
    }
    while (schema_of(ref, number) < to) {
        uint32_t version = schema_of(ref, number);
        enum wal_status status;

        if (fn == NULL && version >= 1) {
            return ref_fail_number(error, WAL_ESCHEMA, version);
        }
        status = call_update(ref, number, fn, ctx, version + 1, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (result != NULL) {
        result->from = from;
        result->to = to;
        result->sessions = from < to;
    }
    return WAL_OK;
}

/* --- documents of a session, as of a moment, and of the store ------------- */

/* Goes from a session to the one it was forked from, as that was then, or at the limit if that is
 * earlier; false: there is none. */
static bool step_to_source(const struct reference *ref, uint32_t *number, uint64_t *limit)
{
    const struct ref_record *fork = *number == REFERENCE_STORE ? NULL : ref_fork_of(ref, *number);

    if (fork == NULL) {
        return false;
    }
    *number = fork->other;
    if (ref_sequence(ref, fork) < *limit) {
        *limit = ref_sequence(ref, fork);
    }
    return true;
}

/* The newest record of a document among the first `limit` records, as the session sees it; null:
 * there never was one. */
static const struct ref_record *ref_document(const struct reference *ref, uint32_t number,
                                             struct wal_slice key, uint64_t limit)
{
    do {
        REF_EACH_BACK (i, ref, number) {
            const struct ref_record *record = ref_at(ref, i);

            if (i <= limit && record->kind == REF_DOC &&
                reference_is_equal(record->doc->key, key)) {
                return record;
            }
        }
    } while (step_to_source(ref, &number, &limit));
    return NULL;
}

static bool is_deletion(const struct ref_record *record)
{
    return (record->doc->flags & WAL_DOC_DELETE) != 0;
}

/* ------------------------------------------------------------- writing --- */

/* 0 says that there is no document: there never was one, or it was deleted. */
static uint64_t version_now(const struct reference *ref, const struct ref_record *newest)
{
    return newest == NULL || is_deletion(newest) ? 0 : ref_sequence(ref, newest);
}

/* A value that is there already is left, whatever version is expected. */
static enum wal_status ref_put_doc(struct reference *ref, uint32_t number,
                                   const struct wal_doc *doc, struct wal_error *error)
{
    const struct wal_slice none = {NULL, 0};
    const struct ref_record *newest = ref_document(ref, number, doc->key, ref->count);
    bool deletes = (doc->flags & WAL_DOC_DELETE) != 0;
    uint64_t version = version_now(ref, newest);
    struct ref_record *record;

    if (!deletes && version != 0 && reference_is_equal(newest->doc->value, doc->value)) {
        return WAL_OK;
    }
    if ((doc->flags & WAL_DOC_EXPECT) != 0 && doc->version != version) {
        return ref_conflict_number(error, WAL_EXPECTATION_DOCUMENT, version);
    }
    if (deletes && version == 0) {
        return ref_fail(error, WAL_ENOTFOUND, none);
    }
    record = ref_add(ref, REF_DOC, number);
    record->doc = common_alloc(1, sizeof(*record->doc));
    WAL__ASSERT(record->doc != NULL);
    record->doc->flags = doc->flags & WAL_DOC_DELETE;
    record->doc->key = ref_copy(doc->key);
    if (!deletes) {
        record->doc->value = ref_copy(doc->value);
    }
    return WAL_OK;
}

/* Of a session, as a batch with nothing else; of the store alike. */
static enum wal_status put(struct reference *ref, uint32_t number, const struct wal_doc *doc,
                           uint32_t flags, uint64_t *version, struct wal_error *error)
{
    struct wal_doc given = *doc;
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .document_count = 1, .documents = &given};
    enum wal_status status;

    if ((doc->flags & ~(uint32_t)WAL_DOC_EXPECT) != 0) {
        return WAL_EINVAL;
    }
    given.flags |= flags;
    given.flags |= number == REFERENCE_STORE ? WAL_DOC_STORE : 0;
    status = reference_batch(ref, number, &batch, NULL, NULL, error);
    if (status == WAL_OK && version != NULL) {
        *version = ref_sequence(ref, ref_document(ref, number, doc->key, ref->count));
    }
    return status;
}

enum wal_status reference_doc_put(struct reference *ref, uint32_t number, const struct wal_doc *doc,
                                  uint64_t *version, struct wal_error *error)
{
    return put(ref, number, doc, 0, version, error);
}

enum wal_status reference_doc_delete(struct reference *ref, uint32_t number,
                                     const struct wal_doc *doc, uint64_t *version,
                                     struct wal_error *error)
{
    return put(ref, number, doc, WAL_DOC_DELETE, version, error);
}

/* ------------------------------------------------------------- reading --- */

static void fill_doc(const struct reference *ref, const struct ref_record *record,
                     struct reference_doc *out)
{
    memset(out, 0, sizeof(*out));
    out->doc = *record->doc;
    out->doc.struct_size = sizeof(out->doc);
    out->doc.version = ref_sequence(ref, record);
    out->doc.modified_ms = record->earliest_ms;
    out->latest_ms = record->latest_ms;
}

/* By the bytes of the keys, a shorter one before those that begin with it; versions of one key
 * newest first. */
static int compare(const void *left, const void *right)
{
    const struct wal_doc *a = &((const struct reference_doc *)left)->doc;
    const struct wal_doc *b = &((const struct reference_doc *)right)->doc;
    uint64_t size = a->key.size < b->key.size ? a->key.size : b->key.size;
    int order = memcmp(a->key.data, b->key.data, size);

    if (order != 0) {
        return order;
    }
    if (a->key.size != b->key.size) {
        return a->key.size < b->key.size ? -1 : 1;
    }
    return a->version > b->version ? -1 : a->version < b->version;
}

enum wal_status reference_docs(const struct reference *ref, uint32_t number,
                               const struct wal_doc_cursor_options *options,
                               struct reference_doc **docs, uint32_t *count)
{
    bool history = (options->flags & WAL_DOC_CURSOR_HISTORY) != 0;
    struct reference_doc *list;
    uint32_t owner = number;
    uint64_t limit = ref->count;
    uint64_t most = 0;

    if (number != REFERENCE_STORE && reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    do {
        most += ref_places_of(ref, owner).count;
    } while (step_to_source(ref, &owner, &limit));
    owner = number;
    limit = ref->count;
    list = common_alloc(most + 1, sizeof(*list));
    WAL__ASSERT(list != NULL);
    *count = 0;
    do {
        REF_EACH (i, ref, owner) {
            const struct ref_record *record = ref_at(ref, i);

            if (i <= limit && record->kind == REF_DOC &&
                ref_begins_with(record->doc->key, options->prefix) &&
                (history || (!is_deletion(record) &&
                             ref_document(ref, number, record->doc->key, ref->count) == record))) {
                fill_doc(ref, record, &list[*count]);
                *count += 1;
            }
        }
    } while (step_to_source(ref, &owner, &limit));
    qsort(list, *count, sizeof(*list), compare);
    *docs = list;
    return WAL_OK;
}

enum wal_status reference_doc_get(const struct reference *ref, uint32_t number,
                                  struct wal_slice key, uint64_t version, struct reference_doc *doc)
{
    const struct ref_record *found;
    uint64_t limit = version == 0 ? ref->count : version;

    if (number != REFERENCE_STORE && reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    if (limit > ref->count) {
        return WAL_ENOTFOUND;
    }
    found = ref_document(ref, number, key, limit);
    if (found == NULL || is_deletion(found) ||
        (version != 0 && ref_sequence(ref, found) != version)) {
        return WAL_ENOTFOUND;
    }
    fill_doc(ref, found, doc);
    return WAL_OK;
}

/* --- heads: who set one last, and moving one ------------------------------ */

static struct wal_slice name_of(struct wal_slice name)
{
    return name.size == 0 ? ref_text("main") : name;
}

static bool is_main(struct wal_slice name)
{
    return reference_is_equal(name_of(name), ref_text("main"));
}

/* The record that set a head last, of the first `limit` ones; 0: none. Empty name: main. */
static uint64_t ref_head_setter(const struct reference *ref, uint32_t number, uint32_t stream,
                                struct wal_slice name, uint64_t limit)
{
    bool main = is_main(name);

    REF_EACH_BACK (i, ref, number) {
        const struct ref_record *record = ref_at(ref, i);

        if (i > limit || record->stream != stream) {
            continue;
        }
        if (record->kind == REF_HEAD && reference_is_equal(record->head->name, name_of(name))) {
            return i;
        }
        /* An append moves `main` only, and a fork has only that. */
        if (main &&
            ((record->kind == REF_ENTRY && record->moves_head) || record->kind == REF_FORK)) {
            return i;
        }
    }
    return 0;
}

uint64_t ref_head(const struct reference *ref, uint32_t number, uint32_t stream,
                  struct wal_slice name, uint64_t limit)
{
    uint64_t setter = ref_head_setter(ref, number, stream, name, limit);

    if (setter == 0) {
        return 0;
    }
    return ref_at(ref, setter)->kind == REF_ENTRY ? setter : ref_at(ref, setter)->target;
}

/* Whether the head is there already, with this note if one is given. A head that is removed keeps
 * no note, but for `main`. */
static bool is_there(const struct reference *ref, uint32_t number, const struct wal_head *head,
                     uint64_t target)
{
    uint64_t setter = ref_head_setter(ref, number, head->stream, head->name, ref->count);

    if (ref_head(ref, number, head->stream, head->name, ref->count) != target) {
        return false;
    }
    return head->note.size == 0 || (target == 0 && !is_main(head->name)) ||
           (setter != 0 && ref_at(ref, setter)->kind == REF_HEAD &&
            reference_is_equal(ref_at(ref, setter)->head->note, head->note));
}

/* The entry must be one that the session sees, of the head's stream. What is expected is the head
 * before the batch, of which there were `before` records; a head that is there already is left,
 * whatever is expected. */
static enum wal_status ref_move_head(struct reference *ref, uint32_t number,
                                     const struct wal_head *head, uint64_t before,
                                     struct wal_error *error)
{
    const struct wal_slice none = {NULL, 0};
    struct wal_slice old =
        ref_entry_id(ref, ref_head(ref, number, head->stream, head->name, before));
    uint64_t target = 0;
    struct ref_record *record;

    if (head->entry_id.size > 0) {
        target = ref_find_named(ref, number, head->entry_id);
        if (target == 0 || ref_at(ref, target)->stream != head->stream) {
            return ref_fail(error, WAL_ENOTFOUND, none);
        }
    }
    if (is_there(ref, number, head, target)) {
        return WAL_OK;
    }
    if ((head->flags & WAL_HEAD_EXPECT) != 0 && !reference_is_equal(old, head->expected)) {
        return ref_conflict(error, WAL_EXPECTATION_HEAD, old);
    }
    record = ref_add(ref, REF_HEAD, number);
    record->stream = head->stream;
    record->target = target;
    record->head = common_alloc(1, sizeof(*record->head));
    WAL__ASSERT(record->head != NULL);
    record->head->name = ref_copy(name_of(head->name));
    record->head->note = ref_copy(head->note);
    return WAL_OK;
}

enum wal_status reference_head_move(struct reference *ref, uint32_t number,
                                    const struct wal_head *head, char previous[256],
                                    struct wal_error *error)
{
    struct wal_batch batch = {.struct_size = sizeof(batch), .head_count = 1, .heads = head};
    struct wal_slice before =
        ref_entry_id(ref, ref_head(ref, number, head->stream, head->name, ref->count));
    enum wal_status status = reference_batch(ref, number, &batch, NULL, NULL, error);

    if (status == WAL_OK && previous != NULL) {
        memset(previous, 0, 256);
        if (before.size > 0) {
            memcpy(previous, before.data, before.size);
        }
    }
    return status;
}

enum wal_status reference_head_get(const struct reference *ref, uint32_t number, uint32_t stream,
                                   struct wal_slice name, struct wal_slice *entry_id)
{
    uint64_t target;

    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    target = ref_head(ref, number, stream, name, ref->count);
    if (target == 0) {
        return WAL_ENOTFOUND;
    }
    *entry_id = ref_entry_id(ref, target);
    return WAL_OK;
}

/* ------------------------------------------------------------- listing --- */

/* `main` before all others, then by stream, then by the bytes of the name. */
static int head_compare(const void *left, const void *right)
{
    const struct wal_head *a = left;
    const struct wal_head *b = right;
    bool a_main = reference_is_equal(a->name, ref_text("main"));
    bool b_main = reference_is_equal(b->name, ref_text("main"));
    uint64_t size = a->name.size < b->name.size ? a->name.size : b->name.size;
    int order;

    if (a_main != b_main) {
        return a_main ? -1 : 1;
    }
    if (a->stream != b->stream) {
        return a->stream < b->stream ? -1 : 1;
    }
    order = memcmp(a->name.data, b->name.data, size);
    if (order != 0) {
        return order;
    }
    return a->name.size < b->name.size ? -1 : a->name.size > b->name.size;
}

/* Whether a record may have set a head, and which. */
static bool head_of(const struct ref_record *record, uint32_t number, struct wal_head *head)
{
    if (record->session != number || (record->kind != REF_HEAD && record->kind != REF_FORK &&
                                      !(record->kind == REF_ENTRY && record->moves_head))) {
        return false;
    }
    memset(head, 0, sizeof(*head));
    head->struct_size = sizeof(*head);
    head->stream = record->stream;
    head->name = ref_text("main");
    if (record->kind == REF_HEAD) {
        head->name = record->head->name;
        head->note = record->head->note;
    }
    return true;
}

enum wal_status reference_heads(const struct reference *ref, uint32_t number,
                                struct wal_head **heads, uint32_t *count)
{
    struct wal_head *list;

    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    list = common_alloc(ref_places_of(ref, number).count + 1, sizeof(*list));
    WAL__ASSERT(list != NULL);
    *count = 0;
    REF_EACH (i, ref, number) {
        struct wal_head *head = &list[*count];
        uint64_t target;

        /* It counts where it is the last that set its head. */
        if (!head_of(ref_at(ref, i), number, head) ||
            ref_head_setter(ref, number, head->stream, head->name, ref->count) != i) {
            continue;
        }
        target = ref_head(ref, number, head->stream, head->name, ref->count);
        if (target != 0) {
            head->entry_id = ref_entry_id(ref, target);
            head->version = i;
            *count += 1;
        }
    }
    qsort(list, *count, sizeof(*list), head_compare);
    *heads = list;
    return WAL_OK;
}
