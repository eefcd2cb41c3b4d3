/*
 * append.c - one entry of a batch: what it must be, whether it is
 * there already, where it goes (reference.h).
 */
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
static bool names_id(const struct wal_entry *entry, const char *name,
                     struct wal_slice *id)
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
           reference_is_equal(entry->type,
                              ref_text(WAL_TYPE_MESSAGE_DELTA_BATCH));
}

/* Checks of an entry that do not need the store. */
enum wal_status ref_check_entry(const struct wal_entry *entry)
{
    const uint32_t keep_or_move = WAL_ENTRY_HEAD_KEEP | WAL_ENTRY_HEAD_MOVE;
    const uint32_t known = WAL_ENTRY_ROOT | WAL_ENTRY_LINE | keep_or_move;
    const struct wal_slice ids[] = {entry->id, entry->type, entry->run_id,
                                    entry->parent_id};
    enum wal_status status = ref_check_text(entry->timestamp, TIME_MAX);

    if ((entry->flags & ~known) != 0 ||
        (entry->flags & keep_or_move) == keep_or_move ||
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
        if (status == WAL_OK &&
            (!names_target(entry) ||
             (is_delta(entry) && (entry->flags & WAL_ENTRY_HEAD_MOVE) != 0))) {
            status = WAL_EINVAL;
        }
    }
    return status;
}

bool ref_same_content(const struct wal_entry *entry,
                      const struct wal_entry *old)
{
    return entry->stream == old->stream &&
           (entry->flags & WAL_ENTRY_LINE) == (old->flags & WAL_ENTRY_LINE) &&
           (entry->timestamp.size == 0 ||
            reference_is_equal(entry->timestamp, old->timestamp)) &&
           reference_is_equal(entry->type, old->type) &&
           reference_is_equal(entry->run_id, old->run_id) &&
           reference_is_equal(entry->meta, old->meta) &&
           reference_is_equal(entry->payload, old->payload);
}

bool ref_matches(const struct reference *ref, uint32_t number,
                 const struct wal_entry *entry, uint64_t sequence)
{
    const struct ref_record *there = ref_at(ref, sequence);

    if (entry->parent_id.size > 0 &&
        (there->target == 0 ||
         ref_find_entry(ref, number, entry->parent_id) != there->target)) {
        return false;
    }
    if ((entry->flags & WAL_ENTRY_ROOT) != 0 && there->target != 0) {
        return false;
    }
    return ref_same_content(entry, there->entry);
}

/* ------------------------------------------------- what an entry names --- */

/* A compaction names the first entry it keeps, on its way to the root. */
static enum wal_status check_compaction(const struct reference *ref,
                                        uint32_t number,
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
static enum wal_status check_summary(const struct reference *ref,
                                     const struct ref_record *record)
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

/* The target's content is hidden: a record of the session that owns it. A line
 * that was imported and names no existing entry hides nothing. */
enum wal_status ref_redact(struct reference *ref, uint64_t redaction,
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
    if (ref_at(ref, target)->known == 0) {
        ref->records[target - 1].known = ref->count;
    }
    return WAL_OK;
}

/* ------------------------------------------------------------ appending --- */

/* Under the parent that is named, at the root, or under the head. */
static enum wal_status find_parent(const struct reference *ref, uint32_t number,
                                   const struct wal_entry *entry,
                                   uint64_t *parent)
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

enum wal_status ref_append(struct reference *ref, uint32_t number,
                           const struct wal_entry *entry,
                           struct wal_error *error)
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
    record->user_text =
        ref_copy((struct wal_slice){text, ref_user_text(entry, text)});
    record->is_delta = is_delta(entry);
    record->moves_head =
        (parent == head || (entry->flags & WAL_ENTRY_HEAD_MOVE) != 0) &&
        (entry->flags & WAL_ENTRY_HEAD_KEEP) == 0 && !record->is_delta;
    status = check_names(ref, number, record);
    return status == WAL_OK ? WAL_OK : ref_fail(error, status, nothing);
}
