/*
 * resolve_records.c - resolves the documents, heads and SESSION record of a
 * batch (SPEC.md 5.2). Called by the leader under the append lock, with the
 * state lock for writing.
 *
 * Each record is resolved in the same order: skipped if it changes nothing;
 * then its condition is checked; then its parent is set.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/write/write_batch.h"
#include "format/bytes/assert.h"

static enum wal_status reject_version(struct wal__resolver *resolver,
                                      enum wal_expectation expectation,
                                      const char *what, struct wal__span name,
                                      uint64_t expected, uint64_t current)
{
    char actual[24];

    (void)snprintf(actual, sizeof(actual), "%" PRIu64, current);
    return wal__conflict(&resolver->op->error, expectation, actual,
                         "%s \"%.*s\" has version %s, not %" PRIu64, what,
                         (int)name.size, (const char *)name.data, actual,
                         expected);
}

/* --- documents ---------------------------------------------------------- */

/* Reads the newest version of a document. */
static enum wal_status read_doc(struct wal__resolver *resolver,
                                const struct wal__doc_version *version,
                                struct wal__record_buf *scratch,
                                struct wal__doc_record *record)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&resolver->core->log, version->position, scratch, &frame,
                      &payload, &resolver->op->error);

    if (status == WAL_OK &&
        (frame.sequence != version->sequence ||
         wal__doc_record_decode(payload, record) != WAL__FMT_OK)) {
        status = WAL_ECORRUPT;
    }
    return status;
}

/* Resolves a put or a deletion of a document that has versions. */
static enum wal_status
resolve_existing_doc(struct wal__resolver *resolver, struct wal__batch_doc *doc,
                     const struct wal__doc_record *requested,
                     const struct wal__doc_version *newest,
                     const struct wal__doc_record *existing)
{
    struct wal__op_frame *frame = &resolver->op->frames[doc->frame];
    bool deletes = (doc->flags & WAL_DOC_DELETE) != 0;
    uint64_t current = newest->deleted ? 0 : newest->sequence;

    if (!wal__span_equal(requested->key, existing->key)) {
        return wal__invalid(
            &resolver->op->error,
            "the keys \"%.*s\" and \"%.*s\" have the same hash; choose "
            "another key",
            (int)requested->key.size, (const char *)requested->key.data,
            (int)existing->key.size, (const char *)existing->key.data);
    }
    if (!deletes && !newest->deleted &&
        wal__span_equal(requested->value, existing->value)) {
        frame->skipped = true;
        doc->version = newest->sequence;
        return WAL_OK;
    }
    if ((doc->flags & WAL_DOC_EXPECT) != 0 &&
        doc->expected_version != current) {
        return reject_version(resolver, WAL_EXPECTATION_DOCUMENT, "document",
                              requested->key, doc->expected_version, current);
    }
    if (deletes && newest->deleted) {
        return wal__fail(&resolver->op->error, WAL_ENOTFOUND,
                         "there is no document \"%.*s\"",
                         (int)requested->key.size,
                         (const char *)requested->key.data);
    }
    WAL__ASSERT(newest->sequence < resolver->next);
    frame->frame.parent = newest->sequence;
    return WAL_OK;
}

static enum wal_status resolve_new_doc(struct wal__resolver *resolver,
                                       const struct wal__batch_doc *doc,
                                       const struct wal__doc_record *requested)
{
    if ((doc->flags & WAL_DOC_EXPECT) != 0 && doc->expected_version != 0) {
        return reject_version(resolver, WAL_EXPECTATION_DOCUMENT, "document",
                              requested->key, doc->expected_version, 0);
    }
    if ((doc->flags & WAL_DOC_DELETE) != 0) {
        return wal__fail(&resolver->op->error, WAL_ENOTFOUND,
                         "there is no document \"%.*s\"",
                         (int)requested->key.size,
                         (const char *)requested->key.data);
    }
    resolver->op->frames[doc->frame].frame.parent = 0;
    return WAL_OK;
}

/* Checks that the damage of the store's documents was accepted, if there was
 * any. */
static enum wal_status check_store_documents(struct wal__resolver *resolver)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(&resolver->core->catalogue,
                                                WAL__STORE_NUMBER, &summary);

    if (status == WAL_OK && (summary.flags & WAL__SUMMARY_DAMAGED) != 0) {
        return wal__fail(&resolver->op->error, WAL_EDAMAGED,
                         "documents of the store were lost to damage; accept "
                         "the damage first");
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Reads the newest version and resolves the document against it. */
static enum wal_status replace_doc(struct wal__resolver *resolver,
                                   struct wal__batch_doc *doc,
                                   const struct wal__doc_record *requested,
                                   const struct wal__doc_version *newest)
{
    struct wal__doc_record existing;
    struct wal__record_buf scratch;
    enum wal_status status;

    wal__record_buf_init(&scratch, resolver->op->heap);
    status = read_doc(resolver, newest, &scratch, &existing);
    if (status == WAL_ECORRUPT && resolver->core->rebuild_from_log) {
        /* A damaged version may be replaced. */
        existing = (struct wal__doc_record){.key = requested->key};
        status = WAL_OK;
    }
    if (status == WAL_OK) {
        status =
            resolve_existing_doc(resolver, doc, requested, newest, &existing);
    }
    wal__record_buf_deinit(&scratch);
    return status;
}

static enum wal_status resolve_doc(struct wal__resolver *resolver,
                                   struct wal__batch_doc *doc)
{
    struct wal__op *op = resolver->op;
    struct wal__op_frame *frame = &op->frames[doc->frame];
    const struct wal__document *document = NULL;
    struct wal__doc_record requested;
    struct wal__branch_slot *slot;
    enum wal_status status;

    frame->skipped = false;
    frame->frame.flags = 0;
    if (wal__doc_record_decode(wal__batch_payload(op, doc->frame),
                               &requested) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    if (doc->number == WAL__STORE_NUMBER) {
        status = check_store_documents(resolver);
        if (status != WAL_OK) {
            return status;
        }
    }
    status = wal__core_load_documents(resolver->core, doc->number, &slot,
                                      &op->error);
    if (status != WAL_OK) {
        return status;
    }
    if (slot != NULL) {
        document = wal__documents_find(&slot->documents, frame->frame.id_hash);
    }
    status =
        document == NULL
            ? resolve_new_doc(resolver, doc, &requested)
            : replace_doc(resolver, doc, &requested,
                          wal__documents_newest(&slot->documents, document));
    if (status == WAL_OK && !frame->skipped) {
        WAL__ASSERT(resolver->next >= op->next_sequence);
        doc->version = resolver->next;
        resolver->next++;
    }
    return status;
}

enum wal_status wal__resolve_docs(struct wal__resolver *resolver)
{
    struct wal__batch *batch = resolver->batch;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < batch->doc_count && status == WAL_OK; i++) {
        status = resolve_doc(resolver, &batch->docs[i]);
    }
    return status;
}

/* --- heads -------------------------------------------------------------- */

/* The current state of a head: its target before the batch, its target within
 * the batch (`main` moves with the entries), and the record that set it. */
struct current_head {
    uint64_t before_batch;
    uint64_t in_batch;
    struct wal__head_record record;
    bool record_is_current; /* the record names in_batch */
};

static bool is_main(const struct wal__head_record *record)
{
    return record->name.size == 4 && memcmp(record->name.data, "main", 4) == 0;
}

static enum wal_status find_head(struct wal__resolver *resolver,
                                 const struct wal__frame *frame,
                                 const struct wal__head_record *requested,
                                 struct wal__record_buf *scratch,
                                 struct current_head *current)
{
    const struct wal__named_head *named = wal__annotations_find_head(
        &resolver->slot->annotations, frame->stream, frame->id_hash);
    uint64_t bit = (uint64_t)1 << frame->stream % 64;
    struct wal__frame read;
    struct wal__span payload;
    enum wal_status status = WAL_OK;

    memset(current, 0, sizeof(*current));
    if (named != NULL) {
        status = wal__log_read(&resolver->core->log, named->position, scratch,
                               &read, &payload, &resolver->op->error);
        if (status == WAL_OK &&
            wal__head_record_decode(payload, &current->record) != WAL__FMT_OK) {
            status = WAL_ECORRUPT;
        }
        current->before_batch = named->target;
        current->in_batch = named->target;
        current->record_is_current = status == WAL_OK;
        if (status == WAL_ECORRUPT && resolver->core->rebuild_from_log) {
            status = WAL_OK; /* its target is known, its note is lost */
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    if (current->record_is_current &&
        !wal__span_equal(current->record.name, requested->name)) {
        return wal__invalid(&resolver->op->error,
                            "the head names \"%.*s\" and \"%.*s\" have the "
                            "same hash; choose another name",
                            (int)requested->name.size,
                            (const char *)requested->name.data,
                            (int)current->record.name.size,
                            (const char *)current->record.name.data);
    }
    if (is_main(requested)) {
        current->before_batch =
            wal__branch_head(&resolver->slot->branch, frame->stream);
        current->in_batch =
            (resolver->heads_loaded[frame->stream / 64] & bit) != 0
                ? resolver->heads[frame->stream]
                : current->before_batch;
        current->record_is_current = current->record_is_current &&
                                     named->target == current->in_batch &&
                                     named->version > current->in_batch;
    }
    return WAL_OK;
}

static enum wal_status reject_head(struct wal__resolver *resolver,
                                   uint32_t stream,
                                   const struct wal__head_record *requested,
                                   uint64_t current, struct wal__span expected)
{
    char actual[WAL_ID_SIZE];
    enum wal_status status =
        wal__resolver_read_id(resolver, stream, current, actual);

    if (status != WAL_OK) {
        return status;
    }
    return wal__conflict(&resolver->op->error, WAL_EXPECTATION_HEAD, actual,
                         "the head \"%.*s\" is at \"%s\", not at \"%.*s\"",
                         (int)requested->name.size,
                         (const char *)requested->name.data, actual,
                         (int)expected.size, (const char *)expected.data);
}

/* Checks that the head pointed to the entry that the caller expects. */
static enum wal_status check_expected(struct wal__resolver *resolver,
                                      const struct wal__batch_head *head,
                                      const struct wal__head_record *requested,
                                      uint64_t before)
{
    uint32_t stream = resolver->op->frames[head->frame].frame.stream;
    struct wal__span expected = wal__batch_text(
        resolver->batch, head->expected_offset, head->expected_size);
    struct wal__entry_location found = {0};
    enum wal_status status = WAL_OK;

    if ((head->flags & WAL_HEAD_EXPECT) == 0) {
        return WAL_OK;
    }
    if (expected.size > 0) {
        status = wal__core_find_id(resolver->core, resolver->batch->session,
                                   expected, &found, &resolver->op->error);
        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            return status;
        }
    }
    if (status == WAL_OK && found.sequence == before) {
        return WAL_OK;
    }
    return reject_head(resolver, stream, requested, before, expected);
}

/* The new target of the head; 0: none. */
static enum wal_status find_target(struct wal__resolver *resolver,
                                   const struct wal__head_record *requested,
                                   uint32_t stream, uint64_t *target)
{
    struct wal__entry_location found = {0};
    enum wal_status status;

    *target = 0;
    if (requested->entry_id.size == 0) {
        return WAL_OK;
    }
    status = wal__resolver_find_entry(resolver, requested->entry_id,
                                      resolver->batch->entry_count, &found);
    if (status != WAL_OK) {
        return status;
    }
    if (found.stream >= WAL__STREAM_COUNT) {
        return wal__core_fail_delta(WAL_ENOTFOUND, requested->entry_id,
                                    &resolver->op->error);
    }
    if (found.stream != stream) {
        return wal__fail(&resolver->op->error, WAL_ENOTFOUND,
                         "the entry is in stream %u, not %u", found.stream,
                         stream);
    }
    *target = found.sequence;
    return WAL_OK;
}

/* Whether the head already has this target and, if a note was passed or it is
 * that of a copy, this note. A removed head has no note. */
static bool is_unchanged(const struct wal__head_record *requested,
                         uint64_t target, const struct current_head *current,
                         bool is_copy)
{
    if (current->in_batch != target) {
        return false;
    }
    if (requested->note.size == 0 && is_copy && current->record_is_current) {
        return current->record.note.size == 0;
    }
    return requested->note.size == 0 || (target == 0 && !is_main(requested)) ||
           (current->record_is_current &&
            wal__span_equal(requested->note, current->record.note));
}

/* Counts a head that is created or removed; `main` always exists. */
static void count_head(struct wal__resolver *resolver,
                       const struct wal__head_record *requested,
                       const struct current_head *current)
{
    if (!is_main(requested)) {
        resolver->heads_created += current->before_batch == 0;
        resolver->heads_removed += requested->entry_id.size == 0;
    }
}

static enum wal_status resolve_head(struct wal__resolver *resolver,
                                    const struct wal__batch_head *head)
{
    struct wal__op_frame *frame = &resolver->op->frames[head->frame];
    struct wal__head_record requested;
    struct current_head current;
    struct wal__record_buf scratch;
    enum wal_status status;
    uint64_t target = 0;

    frame->skipped = false;
    frame->frame.flags = 0;
    if (wal__head_record_decode(wal__batch_payload(resolver->op, head->frame),
                                &requested) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    wal__record_buf_init(&scratch, resolver->op->heap);
    status = find_head(resolver, &frame->frame, &requested, &scratch, &current);
    if (status != WAL_OK) {
        goto done;
    }
    status = find_target(resolver, &requested, frame->frame.stream, &target);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__resolver_read_id(resolver, frame->frame.stream,
                                   current.before_batch,
                                   resolver->batch->previous_head);
    if (status != WAL_OK) {
        goto done;
    }
    if (is_unchanged(&requested, target, &current, resolver->batch->is_copy)) {
        frame->skipped = true;
        goto done;
    }
    status = check_expected(resolver, head, &requested, current.before_batch);
    if (status != WAL_OK) {
        goto done;
    }
    WAL__ASSERT(target < resolver->next);
    frame->frame.parent = target;
    resolver->next++;
    count_head(resolver, &requested, &current);
done:
    wal__record_buf_deinit(&scratch);
    return status;
}

enum wal_status wal__resolve_heads(struct wal__resolver *resolver)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < resolver->batch->head_count && status == WAL_OK;
         i++) {
        status = resolve_head(resolver, &resolver->batch->heads[i]);
    }
    if (status == WAL_OK && resolver->heads_created > resolver->heads_removed &&
        resolver->slot->annotations.head_count + resolver->heads_created -
                resolver->heads_removed >
            WAL__HEADS_MAX) {
        status = wal__fail(&resolver->op->error, WAL_ETOOBIG,
                           "the session would have more than %d heads",
                           WAL__HEADS_MAX);
    }
    return status;
}

/* --- the SESSION record ------------------------------------------------ */

enum wal_status wal__resolve_change(struct wal__resolver *resolver)
{
    struct wal__batch *batch = resolver->batch;
    struct wal__summary summary;
    struct wal__frame frame = {0};
    struct wal__span payload;
    struct wal__record_buf scratch;
    enum wal_status status;

    batch->stale_read = false;
    if (!batch->change_prepared) {
        return WAL_OK;
    }
    if (batch->has_change) {
        WAL__ASSERT(batch->change_frame < resolver->op->frame_count);
        resolver->op->frames[batch->change_frame].frame.flags = 0;
    }
    status = wal__catalogue_get(&resolver->core->catalogue, batch->session,
                                &summary);
    if (status != WAL_OK || summary.session_position == batch->change_base) {
        resolver->next += status == WAL_OK && batch->has_change;
        return status;
    }
    batch->stale_read = true;
    wal__record_buf_init(&scratch, resolver->op->heap);
    status = wal__log_read(&resolver->core->log, summary.session_position,
                           &scratch, &frame, &payload, &resolver->op->error);
    wal__record_buf_deinit(&scratch);
    if (status != WAL_OK) {
        return status;
    }
    if (frame.sequence == batch->expected_version) {
        /* The same record: a compaction moved it. */
        batch->stale_read = false;
        batch->change_base = summary.session_position;
        resolver->next += batch->has_change;
        return WAL_OK;
    }
    return reject_version(resolver, WAL_EXPECTATION_METADATA,
                          "the metadata of session", summary.id,
                          batch->expected_version, frame.sequence);
}
