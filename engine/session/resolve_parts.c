/*
 * resolve_parts.c - deciding what a batch holds beside entries: documents,
 * heads, and the session's record (SPEC.md 5.2). Under the lease.
 *
 * Each part is decided in the same order: what is there already is left out;
 * then the condition; then its place.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/batch.h"

static enum wal_status refuse_version(struct wal__decision *decision,
                                      const char *what, struct wal__span name,
                                      uint64_t expected, uint64_t present)
{
    struct wal_error *error = &decision->op->error;
    char actual[24];
    int size = snprintf(actual, sizeof(actual), "%" PRIu64, present);

    wal__fail(error, WAL_ESTALE, 0, NULL, 0,
              "%s \"%.*s\" has version %s, not %" PRIu64, what, (int)name.size,
              (const char *)name.data, actual, expected);
    wal__error_actual(error, actual, (size_t)size);
    return WAL_ESTALE;
}

/* --- documents ---------------------------------------------------------- */

/* The newest version of a document, as it stands. */
static enum wal_status read_doc(struct wal__decision *decision,
                                const struct wal__doc_version *version,
                                struct wal__buf *scratch,
                                struct wal__doc_record *record)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&decision->core->log, version->position, scratch, &frame,
                      &payload, &decision->op->error);

    if (status == WAL_OK &&
        (frame.sequence != version->sequence ||
         wal__doc_record_decode(payload, record) != WAL__FMT_OK)) {
        status = WAL_ECORRUPT;
    }
    return status;
}

/* Decides a put or a deletion of a document that has versions. */
static enum wal_status decide_known(struct wal__decision *decision,
                                    struct wal__batch_doc *doc,
                                    const struct wal__doc_record *given,
                                    const struct wal__doc_version *newest,
                                    const struct wal__doc_record *there)
{
    struct wal__op_frame *frame = &decision->op->frames[doc->frame];
    bool deletes = (doc->flags & WAL_DOC_DELETE) != 0;
    uint64_t present = newest->deleted ? 0 : newest->sequence;

    if (!wal__span_equal(given->key, there->key)) {
        return wal__fail(&decision->op->error, WAL_EINVAL, 0, NULL, 0,
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
    if ((doc->flags & WAL_DOC_EXPECT) != 0 && doc->expected != present) {
        return refuse_version(decision, "document", given->key, doc->expected,
                              present);
    }
    if (deletes && newest->deleted) {
        return wal__fail(&decision->op->error, WAL_ENOTFOUND, 0, NULL, 0,
                         "there is no document \"%.*s\"", (int)given->key.size,
                         (const char *)given->key.data);
    }
    frame->frame.parent = newest->sequence;
    return WAL_OK;
}

static enum wal_status decide_new(struct wal__decision *decision,
                                  const struct wal__batch_doc *doc,
                                  const struct wal__doc_record *given)
{
    if ((doc->flags & WAL_DOC_EXPECT) != 0 && doc->expected != 0) {
        return refuse_version(decision, "document", given->key, doc->expected,
                              0);
    }
    if ((doc->flags & WAL_DOC_DELETE) != 0) {
        return wal__fail(&decision->op->error, WAL_ENOTFOUND, 0, NULL, 0,
                         "there is no document \"%.*s\"", (int)given->key.size,
                         (const char *)given->key.data);
    }
    decision->op->frames[doc->frame].frame.parent = 0;
    return WAL_OK;
}

/* The store's own documents may have been damaged, as sessions may. */
static enum wal_status check_store(struct wal__decision *decision)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(&decision->core->catalogue,
                                                WAL__STORE_NUMBER, &summary);

    if (status == WAL_OK && (summary.flags & WAL__SUMMARY_DAMAGED) != 0) {
        return wal__fail(&decision->op->error, WAL_EDAMAGED, 0, NULL, 0,
                         "documents of the store were lost to damage; accept "
                         "that first");
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

static enum wal_status resolve_doc(struct wal__decision *decision,
                                   struct wal__batch_doc *doc)
{
    struct wal__op *op = decision->op;
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
        status = check_store(decision);
    }
    if (status == WAL_OK) {
        status =
            wal__core_documents(decision->core, doc->number, &slot, &op->error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (slot != NULL) {
        document = wal__documents_find(&slot->documents, frame->frame.id_hash);
    }
    if (document == NULL) {
        status = decide_new(decision, doc, &given);
    } else {
        newest = wal__documents_newest(&slot->documents, document);
        wal__buf_init(&scratch, op->heap);
        status = read_doc(decision, newest, &scratch, &there);
        if (status == WAL_ECORRUPT && decision->core->distrust) {
            there = (struct wal__doc_record){.key = given.key};
            status = WAL_OK; /* a damaged version may be replaced */
        }
        if (status == WAL_OK) {
            status = decide_known(decision, doc, &given, newest, &there);
        }
        wal__buf_deinit(&scratch);
    }
    if (status == WAL_OK && !frame->skipped) {
        doc->version = decision->next;
        decision->next++;
    }
    return status;
}

enum wal_status wal__resolve_docs(struct wal__decision *decision)
{
    struct wal__batch *batch = decision->batch;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < batch->doc_count && status == WAL_OK; i++) {
        status = resolve_doc(decision, &batch->docs[i]);
    }
    return status;
}

/* --- heads -------------------------------------------------------------- */

/* A head as it is: its entry before the batch and, of `main`, after the
 * entries of the batch; and the note of the record that set it. */
struct present_head {
    uint64_t before;
    uint64_t now;
    struct wal__head_record record;
    bool recorded; /* the record says where it is now */
};

static bool is_main(const struct wal__head_record *record)
{
    return record->name.size == 4 && memcmp(record->name.data, "main", 4) == 0;
}

static enum wal_status find_head(struct wal__decision *decision,
                                 const struct wal__frame *frame,
                                 const struct wal__head_record *given,
                                 struct wal__buf *scratch,
                                 struct present_head *present)
{
    const struct wal__named_head *named =
        wal__marks_head(&decision->slot->marks, frame->stream, frame->id_hash);
    uint64_t bit = (uint64_t)1 << frame->stream % 64;
    struct wal__frame read;
    struct wal__span payload;
    enum wal_status status = WAL_OK;

    memset(present, 0, sizeof(*present));
    if (named != NULL) {
        status = wal__log_read(&decision->core->log, named->position, scratch,
                               &read, &payload, &decision->op->error);
        if (status == WAL_OK &&
            wal__head_record_decode(payload, &present->record) != WAL__FMT_OK) {
            status = WAL_ECORRUPT;
        }
        present->before = named->target;
        present->now = named->target;
        present->recorded = status == WAL_OK;
        if (status == WAL_ECORRUPT && decision->core->distrust) {
            status = WAL_OK; /* where it points is known; its note is lost */
        }
    }
    if (status == WAL_OK && present->recorded &&
        !wal__span_equal(present->record.name, given->name)) {
        status = wal__fail(&decision->op->error, WAL_EINVAL, 0, NULL, 0,
                           "the head's name cannot be told from another's; "
                           "take another");
    }
    if (status == WAL_OK && is_main(given)) {
        present->before =
            wal__branch_head(&decision->slot->branch, frame->stream);
        present->now = (decision->known[frame->stream / 64] & bit) != 0
                           ? decision->heads[frame->stream]
                           : present->before;
        present->recorded = present->recorded &&
                            named->target == present->now &&
                            named->version > present->now;
    }
    return status;
}

static enum wal_status refuse_head(struct wal__decision *decision,
                                   uint32_t stream,
                                   const struct wal__head_record *given,
                                   uint64_t present, struct wal__span expected)
{
    struct wal_error *error = &decision->op->error;
    char actual[256];
    enum wal_status status =
        wal__decision_name(decision, stream, present, actual);

    if (status != WAL_OK) {
        return status;
    }
    wal__fail(error, WAL_EHEAD, 0, NULL, 0,
              "the head \"%.*s\" is at \"%s\", not at \"%.*s\"",
              (int)given->name.size, (const char *)given->name.data, actual,
              (int)expected.size, (const char *)expected.data);
    wal__error_actual(error, actual, strlen(actual));
    return WAL_EHEAD;
}

/* Whether the head was where the caller expects it. */
static enum wal_status check_expected(struct wal__decision *decision,
                                      const struct wal__batch_head *head,
                                      const struct wal__head_record *given,
                                      uint64_t before)
{
    uint32_t stream = decision->op->frames[head->frame].frame.stream;
    struct wal__span expected = wal__batch_text(
        decision->batch, head->expected_offset, head->expected_size);
    struct wal__found found = {0};
    enum wal_status status = WAL_OK;

    if ((head->flags & WAL_HEAD_EXPECT) == 0) {
        return WAL_OK;
    }
    if (expected.size > 0) {
        status = wal__core_find_id(decision->core, decision->batch->session,
                                   expected, &found, &decision->op->error);
    }
    if (status == WAL_OK && found.sequence == before) {
        return WAL_OK;
    }
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return status;
    }
    return refuse_head(decision, stream, given, before, expected);
}

/* The entry that the head is to point to; 0: none. */
static enum wal_status find_target(struct wal__decision *decision,
                                   const struct wal__head_record *given,
                                   uint32_t stream, uint64_t *target)
{
    struct wal__found found = {0};
    enum wal_status status = WAL_OK;

    if (given->entry_id.size > 0) {
        status = wal__decision_entry(decision, given->entry_id,
                                     decision->batch->entry_count, &found);
        if (status == WAL_OK && found.stream != stream) {
            status = wal__fail(&decision->op->error, WAL_ENOTFOUND, 0, NULL, 0,
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
static bool is_there(const struct wal__head_record *given, uint64_t target,
                     const struct present_head *present)
{
    if (present->now != target) {
        return false;
    }
    return given->note.size == 0 || (target == 0 && !is_main(given)) ||
           (present->recorded &&
            wal__span_equal(given->note, present->record.note));
}

/* Counts a head that is made or removed; `main` is there always. */
static void count_head(struct wal__decision *decision,
                       const struct wal__head_record *given,
                       const struct present_head *present)
{
    if (!is_main(given)) {
        decision->heads_made += present->before == 0;
        decision->heads_removed += given->entry_id.size == 0;
    }
}

static enum wal_status resolve_head(struct wal__decision *decision,
                                    const struct wal__batch_head *head)
{
    struct wal__op_frame *frame = &decision->op->frames[head->frame];
    struct wal__head_record given;
    struct present_head present;
    struct wal__buf scratch;
    enum wal_status status;
    uint64_t target = 0;

    frame->skipped = false;
    frame->frame.flags = 0;
    if (wal__head_record_decode(wal__batch_payload(decision->op, head->frame),
                                &given) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    wal__buf_init(&scratch, decision->op->heap);
    status = find_head(decision, &frame->frame, &given, &scratch, &present);
    if (status == WAL_OK) {
        status = find_target(decision, &given, frame->frame.stream, &target);
    }
    if (status == WAL_OK) {
        status =
            wal__decision_name(decision, frame->frame.stream, present.before,
                               decision->batch->previous_head);
    }
    if (status == WAL_OK) {
        frame->skipped = is_there(&given, target, &present);
    }
    if (status == WAL_OK && !frame->skipped) {
        status = check_expected(decision, head, &given, present.before);
    }
    wal__buf_deinit(&scratch);
    if (status == WAL_OK && !frame->skipped) {
        frame->frame.parent = target;
        decision->next++;
        count_head(decision, &given, &present);
    }
    return status;
}

enum wal_status wal__resolve_heads(struct wal__decision *decision)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < decision->batch->head_count && status == WAL_OK;
         i++) {
        status = resolve_head(decision, &decision->batch->heads[i]);
    }
    if (status == WAL_OK && decision->heads_made > decision->heads_removed &&
        decision->slot->marks.head_count + decision->heads_made -
                decision->heads_removed >
            WAL__HEADS_MAX) {
        status = wal__fail(&decision->op->error, WAL_ETOOBIG, 0, NULL, 0,
                           "the session would have more than %d heads",
                           WAL__HEADS_MAX);
    }
    return status;
}

/* --- the session's record ------------------------------------------------ */

enum wal_status wal__resolve_change(struct wal__decision *decision)
{
    struct wal__batch *batch = decision->batch;
    struct wal__summary summary;
    struct wal__frame frame = {0};
    struct wal__span payload;
    struct wal__buf scratch;
    enum wal_status status;

    batch->outrun = false;
    if (!batch->compared) {
        return WAL_OK;
    }
    if (batch->changes) {
        decision->op->frames[batch->change_frame].frame.flags = 0;
    }
    status = wal__catalogue_get(&decision->core->catalogue, batch->session,
                                &summary);
    if (status != WAL_OK ||
        summary.session_position == batch->change_position) {
        decision->next += status == WAL_OK && batch->changes;
        return status;
    }
    batch->outrun = true;
    wal__buf_init(&scratch, decision->op->heap);
    (void)!wal__log_read(&decision->core->log, summary.session_position,
                         &scratch, &frame, &payload, NULL);
    wal__buf_deinit(&scratch);
    return refuse_version(decision, "the metadata of session", summary.id,
                          batch->expected_version, frame.sequence);
}
