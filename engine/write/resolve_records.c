/*
 * resolve_records.c - deciding what a batch holds beside entries: documents,
 * heads, and the session's record (SPEC.md 5.2). Under the lease.
 *
 * Each part is decided in the same order: what is there already is left out;
 * then the condition; then its place.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/write/write_batch.h"

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

/* The newest version of a document, as it stands. */
static enum wal_status read_doc(struct wal__resolver *resolver,
                                const struct wal__doc_version *version,
                                struct wal__buf *scratch,
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

/* Decides a put or a deletion of a document that has versions. */
static enum wal_status
resolve_existing_doc(struct wal__resolver *resolver, struct wal__batch_doc *doc,
                     const struct wal__doc_record *given,
                     const struct wal__doc_version *newest,
                     const struct wal__doc_record *there)
{
    struct wal__op_frame *frame = &resolver->op->frames[doc->frame];
    bool deletes = (doc->flags & WAL_DOC_DELETE) != 0;
    uint64_t current = newest->deleted ? 0 : newest->sequence;

    if (!wal__span_equal(given->key, there->key)) {
        return wal__invalid(
            &resolver->op->error,
            "the key \"%.*s\" cannot be told from \"%.*s\"; take "
            "another",
            (int)given->key.size, (const char *)given->key.data,
            (int)there->key.size, (const char *)there->key.data);
    }
    if (!deletes && !newest->deleted &&
        wal__span_equal(given->value, there->value)) {
        frame->skipped = true;
        doc->version = newest->sequence;
        return WAL_OK;
    }
    if ((doc->flags & WAL_DOC_EXPECT) != 0 && doc->expected != current) {
        return reject_version(resolver, WAL_EXPECTATION_DOCUMENT, "document",
                              given->key, doc->expected, current);
    }
    if (deletes && newest->deleted) {
        return wal__fail(&resolver->op->error, WAL_ENOTFOUND,
                         "there is no document \"%.*s\"", (int)given->key.size,
                         (const char *)given->key.data);
    }
    frame->frame.parent = newest->sequence;
    return WAL_OK;
}

static enum wal_status resolve_new_doc(struct wal__resolver *resolver,
                                       const struct wal__batch_doc *doc,
                                       const struct wal__doc_record *given)
{
    if ((doc->flags & WAL_DOC_EXPECT) != 0 && doc->expected != 0) {
        return reject_version(resolver, WAL_EXPECTATION_DOCUMENT, "document",
                              given->key, doc->expected, 0);
    }
    if ((doc->flags & WAL_DOC_DELETE) != 0) {
        return wal__fail(&resolver->op->error, WAL_ENOTFOUND,
                         "there is no document \"%.*s\"", (int)given->key.size,
                         (const char *)given->key.data);
    }
    resolver->op->frames[doc->frame].frame.parent = 0;
    return WAL_OK;
}

/* The store's own documents may have been damaged, as sessions may. */
static enum wal_status check_store_documents(struct wal__resolver *resolver)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(&resolver->core->catalogue,
                                                WAL__STORE_NUMBER, &summary);

    if (status == WAL_OK && (summary.flags & WAL__SUMMARY_DAMAGED) != 0) {
        return wal__fail(&resolver->op->error, WAL_EDAMAGED,
                         "documents of the store were lost to damage; accept "
                         "that first");
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

static enum wal_status resolve_doc(struct wal__resolver *resolver,
                                   struct wal__batch_doc *doc)
{
    struct wal__op *op = resolver->op;
    struct wal__op_frame *frame = &op->frames[doc->frame];
    const struct wal__document *document = NULL;
    const struct wal__doc_version *newest;
    struct wal__doc_record given;
    struct wal__doc_record there;
    struct wal__branch_slot *slot;
    struct wal__buf scratch;
    enum wal_status status = WAL_OK;

    frame->skipped = false;
    frame->frame.flags = 0;
    if (wal__doc_record_decode(wal__batch_payload(op, doc->frame), &given) !=
        WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    if (doc->number == WAL__STORE_NUMBER) {
        status = check_store_documents(resolver);
    }
    if (status == WAL_OK) {
        status = wal__core_load_documents(resolver->core, doc->number, &slot,
                                          &op->error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (slot != NULL) {
        document = wal__documents_find(&slot->documents, frame->frame.id_hash);
    }
    if (document == NULL) {
        status = resolve_new_doc(resolver, doc, &given);
    } else {
        newest = wal__documents_newest(&slot->documents, document);
        wal__buf_init(&scratch, op->heap);
        status = read_doc(resolver, newest, &scratch, &there);
        if (status == WAL_ECORRUPT && resolver->core->rebuild_from_log) {
            there = (struct wal__doc_record){.key = given.key};
            status = WAL_OK; /* a damaged version may be replaced */
        }
        if (status == WAL_OK) {
            status =
                resolve_existing_doc(resolver, doc, &given, newest, &there);
        }
        wal__buf_deinit(&scratch);
    }
    if (status == WAL_OK && !frame->skipped) {
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

/* A head as it is: its entry before the batch and, of `main`, after the
 * entries of the batch; and the note of the record that set it. */
struct current_head {
    uint64_t before;
    uint64_t now;
    struct wal__head_record record;
    bool record_is_current; /* the record says where it is now */
};

static bool is_main(const struct wal__head_record *record)
{
    return record->name.size == 4 && memcmp(record->name.data, "main", 4) == 0;
}

static enum wal_status find_head(struct wal__resolver *resolver,
                                 const struct wal__frame *frame,
                                 const struct wal__head_record *given,
                                 struct wal__buf *scratch,
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
        current->before = named->target;
        current->now = named->target;
        current->record_is_current = status == WAL_OK;
        if (status == WAL_ECORRUPT && resolver->core->rebuild_from_log) {
            status = WAL_OK; /* where it points is known; its note is lost */
        }
    }
    if (status == WAL_OK && current->record_is_current &&
        !wal__span_equal(current->record.name, given->name)) {
        status = wal__invalid(&resolver->op->error,
                              "the head's name cannot be told from another's; "
                              "take another");
    }
    if (status == WAL_OK && is_main(given)) {
        current->before =
            wal__branch_head(&resolver->slot->branch, frame->stream);
        current->now = (resolver->heads_loaded[frame->stream / 64] & bit) != 0
                           ? resolver->heads[frame->stream]
                           : current->before;
        current->record_is_current = current->record_is_current &&
                                     named->target == current->now &&
                                     named->version > current->now;
    }
    return status;
}

static enum wal_status reject_head(struct wal__resolver *resolver,
                                   uint32_t stream,
                                   const struct wal__head_record *given,
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
                         (int)given->name.size, (const char *)given->name.data,
                         actual, (int)expected.size,
                         (const char *)expected.data);
}

/* Whether the head was where the caller expects it. */
static enum wal_status check_expected(struct wal__resolver *resolver,
                                      const struct wal__batch_head *head,
                                      const struct wal__head_record *given,
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
    }
    if (status == WAL_OK && found.sequence == before) {
        return WAL_OK;
    }
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return status;
    }
    return reject_head(resolver, stream, given, before, expected);
}

/* The entry that the head is to point to; 0: none. */
static enum wal_status find_target(struct wal__resolver *resolver,
                                   const struct wal__head_record *given,
                                   uint32_t stream, uint64_t *target)
{
    struct wal__entry_location found = {0};
    enum wal_status status = WAL_OK;

    if (given->entry_id.size > 0) {
        status = wal__resolver_find_entry(resolver, given->entry_id,
                                          resolver->batch->entry_count, &found);
        if (status == WAL_OK && found.stream != stream) {
            status = wal__fail(&resolver->op->error, WAL_ENOTFOUND,
                               "the entry is in stream %u, not %u",
                               found.stream, stream);
        }
    }
    if (status == WAL_OK) {
        *target = found.sequence;
    }
    return status;
}

/* Whether the head is there already, with this note if one is given. A head
 * that is removed keeps no note. */
static bool is_unchanged(const struct wal__head_record *given, uint64_t target,
                         const struct current_head *current)
{
    if (current->now != target) {
        return false;
    }
    return given->note.size == 0 || (target == 0 && !is_main(given)) ||
           (current->record_is_current &&
            wal__span_equal(given->note, current->record.note));
}

/* Counts a head that is made or removed; `main` is there always. */
static void count_head(struct wal__resolver *resolver,
                       const struct wal__head_record *given,
                       const struct current_head *current)
{
    if (!is_main(given)) {
        resolver->heads_created += current->before == 0;
        resolver->heads_removed += given->entry_id.size == 0;
    }
}

static enum wal_status resolve_head(struct wal__resolver *resolver,
                                    const struct wal__batch_head *head)
{
    struct wal__op_frame *frame = &resolver->op->frames[head->frame];
    struct wal__head_record given;
    struct current_head current;
    struct wal__buf scratch;
    enum wal_status status;
    uint64_t target = 0;

    frame->skipped = false;
    frame->frame.flags = 0;
    if (wal__head_record_decode(wal__batch_payload(resolver->op, head->frame),
                                &given) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    wal__buf_init(&scratch, resolver->op->heap);
    status = find_head(resolver, &frame->frame, &given, &scratch, &current);
    if (status == WAL_OK) {
        status = find_target(resolver, &given, frame->frame.stream, &target);
    }
    if (status == WAL_OK) {
        status =
            wal__resolver_read_id(resolver, frame->frame.stream, current.before,
                                  resolver->batch->previous_head);
    }
    if (status == WAL_OK) {
        frame->skipped = is_unchanged(&given, target, &current);
    }
    if (status == WAL_OK && !frame->skipped) {
        status = check_expected(resolver, head, &given, current.before);
    }
    wal__buf_deinit(&scratch);
    if (status == WAL_OK && !frame->skipped) {
        frame->frame.parent = target;
        resolver->next++;
        count_head(resolver, &given, &current);
    }
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

/* --- the session's record ------------------------------------------------ */

enum wal_status wal__resolve_change(struct wal__resolver *resolver)
{
    struct wal__batch *batch = resolver->batch;
    struct wal__summary summary;
    struct wal__frame frame = {0};
    struct wal__span payload;
    struct wal__buf scratch;
    enum wal_status status;

    batch->stale_read = false;
    if (!batch->change_prepared) {
        return WAL_OK;
    }
    if (batch->has_change) {
        resolver->op->frames[batch->change_frame].frame.flags = 0;
    }
    status = wal__catalogue_get(&resolver->core->catalogue, batch->session,
                                &summary);
    if (status != WAL_OK || summary.session_position == batch->change_base) {
        resolver->next += status == WAL_OK && batch->has_change;
        return status;
    }
    batch->stale_read = true;
    wal__buf_init(&scratch, resolver->op->heap);
    (void)!wal__log_read(&resolver->core->log, summary.session_position,
                         &scratch, &frame, &payload, NULL);
    wal__buf_deinit(&scratch);
    return reject_version(resolver, WAL_EXPECTATION_METADATA,
                          "the metadata of session", summary.id,
                          batch->expected_version, frame.sequence);
}
