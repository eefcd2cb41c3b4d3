/*
 * batch.c - one atomic operation on a session: all of it or nothing
 * (reference.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/reference/internal.h"

enum {
    NAME_MAX_SIZE = 255,
    NOTE_MAX = 4096,
    KEY_MAX = 1024,
    VALUE_MAX = 16 * 1024 * 1024,
    HEADS_MAX = 4096
};

static const struct wal_slice nothing = {NULL, 0};

/* ------------------------------------------ what can be said beforehand --- */

static bool is_same_head(const struct wal_head *a, const struct wal_head *b)
{
    struct wal_slice main = ref_text("main");

    return a->stream == b->stream &&
           reference_is_equal(a->name.size == 0 ? main : a->name,
                              b->name.size == 0 ? main : b->name);
}

static enum wal_status check_heads(const struct wal_batch *batch)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < batch->head_count && status == WAL_OK; i++) {
        const struct wal_head *head = &batch->heads[i];

        if ((head->flags & ~(uint32_t)WAL_HEAD_EXPECT) != 0 ||
            head->stream > 255) {
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
            if (((doc->flags ^ batch->documents[j].flags) & WAL_DOC_STORE) ==
                    0 &&
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

    if (batch->entry_count == 0 && batch->document_count == 0 &&
        batch->head_count == 0 && batch->change == NULL) {
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
static const struct wal_entry *first_of(const struct wal_batch *batch,
                                        struct wal_slice id)
{
    const struct wal_entry *entry = batch->entries;

    while (!reference_is_equal(entry->id, id)) {
        entry++;
    }
    return entry;
}

/* Entries that are there already, or earlier in the batch, must be the same.
 * The tail counts when one is new, or when there are none: *news. */
static enum wal_status check_duplicates(const struct reference *ref,
                                        uint32_t number,
                                        const struct wal_batch *batch,
                                        bool *news, struct wal_error *error)
{
    *news = batch->entry_count == 0;
    for (uint32_t i = 0; i < batch->entry_count; i++) {
        const struct wal_entry *entry = &batch->entries[i];
        uint64_t there = ref_find_entry(ref, number, entry->id);
        bool same = there != 0
                        ? ref_matches(ref, number, entry, there)
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
                                  const struct wal_append_options *options,
                                  struct wal_error *error)
{
    uint32_t stream = batch->entry_count > 0 ? batch->entries[0].stream : 0;
    struct wal_slice tail =
        ref_entry_id(ref, ref_head(ref, number, stream, nothing, ref->count));

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
                                     struct wal_append_result *result,
                                     struct wal_error *error)
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

static enum wal_status write_all(struct reference *ref, uint32_t number,
                                 const struct wal_batch *batch,
                                 struct wal_append_result *result,
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
                                struct wal_append_result *result,
                                struct wal_error *error)
{
    struct wal_append_result written = {.struct_size = sizeof(written)};
    uint64_t before = ref->count;
    bool durable = options == NULL || options->durability == WAL_DURABLE;
    enum wal_status status = check_call(batch);
    bool news = false;

    if (status == WAL_OK && number != REFERENCE_STORE &&
        reference_is_deleted(ref, number)) {
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

enum wal_status reference_redact(struct reference *ref, uint32_t number,
                                 struct wal_slice target,
                                 struct wal_slice reason,
                                 const struct wal_entry *made,
                                 struct wal_append_result *result,
                                 struct wal_error *error)
{
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .entry_count = 1, .entries = made};
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

enum wal_status reference_compact(struct reference *ref, uint32_t number,
                                  const struct wal_compact_options *options,
                                  const struct wal_entry *made, uint32_t *fork,
                                  struct wal_append_result *result,
                                  struct wal_error *error)
{
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .entry_count = 1, .entries = made};
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
        status = ref_is_ancestor(ref, kept,
                                 ref_head(ref, into, 0, nothing, ref->count))
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
