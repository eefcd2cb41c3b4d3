/*
 * batch_resolve.c - resolves an operation under the append lock, when all records appended before
 * it are applied (SPEC.md 5.2). Everything that depends on the state of the store is decided here;
 * the frames were encoded before, in the caller's thread (write_batch.c), and get their parents and
 * sessions, or are skipped.
 *
 *   resolve
 *     begin: may the session be written to? (trash, damage, schema, moved)
 *     entries: find duplicates
 *              compare the expected head, if an entry is new
 *              set parents; find the entries that a compaction, a branch
 *              summary or a redaction names
 *     redactions, documents, heads, the SESSION record
 *     compare the expected sequence
 *     set the flags of the first and the last frame
 *
 * Duplicates. An entry whose id the session has already is skipped if its content is the same, and
 * refuses the batch if not. A repeat within the batch is treated in the same way. An operation that
 * is repeated as a whole appends nothing, whatever it expects: it succeeded the first time.
 *
 * Documents, heads and the SESSION record are resolved in one order: skipped if the record changes
 * nothing; then its condition is checked; then its parent is set.
 *
 * A session that has moved. Its newest SESSION record has the flag (SPEC.md
 * 5.10). The document (moved_document.h) says where to, and remains when it is
 * back. A fork sees that of its source, which names the source.
 *
 * Invariant: resolving changes the operation only; a rejected operation leaves the store unchanged.
 * Called by the leader, with the state lock for writing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/base/moved_document.h"
#include "engine/session/write_batch.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

#define NO_ENTRY UINT32_MAX

/* The state of resolving one batch. */
struct resolver {
    struct wal__core *core;
    struct wal__op *op;
    struct wal__batch *batch;
    struct wal__branch_slot *slot;
    struct wal__hashmap batch_ids; /* id hash -> entry rank, if needed */
    uint64_t *sequences;           /* of each entry, new or existing */
    uint64_t sequence;             /* storage for a batch of one entry */
    uint64_t next;                 /* sequence of the next frame that is not skipped */
    uint32_t heads_created;        /* without `main` */
    uint32_t heads_removed;
    /* a bit per stream: heads[] is valid */
    uint64_t heads_loaded[WAL__BATCH_STREAMS / 64];
    uint64_t heads[WAL__BATCH_STREAMS]; /* `main` within the batch */
};

/* Returns an id stored in `texts`. */
static struct wal__span batch_text(const struct wal__batch *batch, uint32_t offset, size_t size)
{
    struct wal__span span = {size == 0 ? NULL : batch->texts.data + offset, size};

    return span;
}

/* --- entries of the operation, and those before it ------------------------ */

struct wal__span wal__batch_payload(const struct wal__op *op, uint32_t frame)
{
    const struct wal__op_frame *at = &op->frames[frame];
    struct wal__span span = {op->bytes.data + at->offset + WAL__FRAME_SIZE, at->frame.stored_size};

    WAL__ASSERT(frame < op->frame_count);
    WAL__ASSERT(at->offset + WAL__FRAME_SIZE + span.size <= op->bytes.size);
    return span;
}

/* Returns the rank of the batch's earlier entry with this id, or NO_ENTRY. */
static uint32_t find_in_batch(const struct resolver *resolver, struct wal__span id)
{
    uint64_t hash = wal__id_hash(id.data, id.size);
    uint32_t cursor = 0;
    uint32_t item;

    while (wal__hashmap_find(&resolver->batch_ids, hash, &cursor, &item)) {
        struct wal__entry_record record;

        WAL__ASSERT(item < resolver->batch->entry_count);
        if (wal__entry_record_decode(wal__batch_payload(resolver->op, item), &record) ==
                WAL__FMT_OK &&
            wal__span_equal(record.id, id)) {
            return item;
        }
    }
    return NO_ENTRY;
}

/* Finds an entry by id among those of the batch with a rank below `before`, and in the session and
 * its ancestors. Position 0: it is in the batch. WAL_ENOTFOUND. */
static enum wal_status find_entry(struct resolver *resolver, struct wal__span id, uint32_t before,
                                  struct wal__entry_location *found)
{
    uint32_t item = find_in_batch(resolver, id);

    /* An entry that existed before the batch may belong to another session. */
    if (item >= before || resolver->sequences[item] < resolver->op->next_sequence) {
        return wal__core_find_id(resolver->core, resolver->batch->session, id, found,
                                 &resolver->op->error);
    }
    found->position = 0; /* not written yet */
    found->sequence = resolver->sequences[item];
    found->session = resolver->batch->session;
    found->stream = resolver->op->frames[item].frame.stream;
    if ((resolver->op->frames[item].frame.flags & WAL__FRAME_PROVISIONAL) != 0) {
        found->stream = WAL__DELTAS_OF(found->stream);
    }
    return WAL_OK;
}

/* Writes the id of the entry with this sequence, terminated by NUL; empty for 0 and for a lost
 * entry. */
static enum wal_status read_entry_id(struct resolver *resolver, uint32_t stream, uint64_t sequence,
                                     char out[256])
{
    struct wal__core *core = resolver->core;
    struct wal__entry_record record;
    struct wal__entry_location found;
    struct wal__frame frame;
    struct wal__span payload;
    struct wal__record_buf scratch;
    enum wal_status status;

    out[0] = '\0';
    if (sequence == 0) {
        return WAL_OK;
    }
    wal__record_buf_init(&scratch, core->env.heap);
    status = wal__core_find_sequence(core, resolver->batch->session, stream, sequence, &found,
                                     &resolver->op->error);
    if (status == WAL_OK) {
        status = wal__log_read(&core->log, found.position, &scratch, &frame, &payload,
                               &resolver->op->error);
    }
    if (status == WAL_OK && wal__entry_record_decode(payload, &record) != WAL__FMT_OK) {
        status = WAL_ECORRUPT;
    }
    if (status == WAL_OK) {
        WAL__ASSERT(record.id.size <= WAL__ID_MAX);
        memcpy(out, record.id.data, record.id.size);
        out[record.id.size] = '\0';
    }
    wal__record_buf_deinit(&scratch);
    /* What seems damaged may be a file that another process replaced. */
    return status == WAL_ENOTFOUND || (status == WAL_ECORRUPT && core->rebuild_from_log) ? WAL_OK
                                                                                         : status;
}

/* --- a session that has moved --------------------------------------------- */

/* Reads the document of the session under the state lock; false: it is not there. */
static bool read_move(struct wal__core *core, uint32_t number, struct wal__span id,
                      struct wal__record_buf *scratch, struct wal_session_move *move)
{
    const struct wal__span key = wal__moved_key();
    struct wal__branch_slot *slot = NULL;
    const struct wal__document *document;
    struct wal__doc_record record;
    struct wal__frame frame;
    struct wal__span payload;

    if (wal__core_load_documents(core, number, &slot, NULL) != WAL_OK || slot == NULL) {
        return false;
    }
    document = wal__documents_find(&slot->documents, wal__id_hash(key.data, key.size));
    return document != NULL &&
           wal__log_read(&core->log, wal__documents_newest(&slot->documents, document)->position,
                         scratch, &frame, &payload, NULL) == WAL_OK &&
           frame.type == WAL__FRAME_DOC &&
           wal__doc_record_decode(payload, &record) == WAL__FMT_OK &&
           wal__moved_decode(record.value, id, move);
}

/* Fills *error for a session that has moved; returns WAL_ECLAIMED. State lock for writing. */
static enum wal_status fail_moved(struct wal__core *core, const struct wal__summary *summary,
                                  struct wal_error *error)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);
    const uint32_t number = summary->number;
    const size_t size = summary->id.size;
    char id[WAL_ID_SIZE];
    struct wal__record_buf scratch;

    /* Loading documents may move the texts of the summary. */
    WAL__ASSERT(size < sizeof(id));
    memcpy(id, summary->id.data, size);
    id[size] = '\0';
    wal__record_buf_init(&scratch, core->env.heap);
    if (!read_move(core, number, (struct wal__span){(const uint8_t *)id, size}, &scratch, &move) ||
        move.host[0] == '\0') {
        (void)snprintf(move.host, sizeof(move.host), "another machine");
    }
    wal__record_buf_deinit(&scratch);
    return wal__fail(error, WAL_ECLAIMED,
                     "the session has moved to %s; go on with it there, fork "
                     "it, or take it back with: agentwal resume --take-back %s",
                     move.host, id);
}

/* --- entries that name others --------------------------------------------- */

/* Reads a member of the payload as an id, which must not be empty. */
static bool read_member(struct wal__span payload, const char *name, uint8_t out[WAL__ID_MAX],
                        struct wal__span *id)
{
    return wal__text_member(payload, name, out, WAL__ID_MAX, id) && id->size > 0;
}

static enum wal_status reject_member(struct resolver *resolver, const char *type, const char *name)
{
    return wal__invalid(&resolver->op->error, "the payload of a %s needs the text %s, an id", type,
                        name);
}

/* Walks up from an entry of the batch to its first ancestor outside the batch, or 0; sets
 * *target_seen when `target` was on the way. */
static uint64_t find_stored_ancestor(const struct resolver *resolver, uint32_t entry,
                                     uint64_t target, bool *target_seen)
{
    uint64_t sequence = resolver->op->frames[entry].frame.parent;

    while (entry > 0 && sequence >= resolver->op->next_sequence) {
        *target_seen |= sequence == target;
        do {
            entry--;
        } while (entry > 0 &&
                 (resolver->sequences[entry] != sequence || resolver->op->frames[entry].skipped));
        sequence = resolver->op->frames[entry].frame.parent;
    }
    *target_seen |= sequence == target;
    return sequence;
}

static enum wal_status check_compaction(struct resolver *resolver, uint32_t entry,
                                        struct wal__span payload)
{
    uint32_t stream = resolver->op->frames[entry].frame.stream;
    struct wal__entry_location found;
    uint8_t text[WAL__ID_MAX];
    struct wal__span id;
    enum wal_status status;
    uint64_t ancestor;
    bool on_path = false;

    if (!read_member(payload, "firstKeptEntryId", text, &id)) {
        return reject_member(resolver, "compaction_summary", "firstKeptEntryId");
    }
    status = find_entry(resolver, id, entry, &found);
    if (status == WAL_OK) {
        ancestor = find_stored_ancestor(resolver, entry, found.sequence, &on_path);
        WAL__ASSERT(ancestor < resolver->op->next_sequence);
        if (!on_path && ancestor != 0) {
            status = wal__core_is_on_path(resolver->core, resolver->batch->session, stream,
                                          ancestor, found.sequence, &on_path, &resolver->op->error);
        }
    }
    if (status == WAL_ENOTFOUND || (status == WAL_OK && !on_path)) {
        status = wal__fail(&resolver->op->error, WAL_ENOTFOUND,
                           "firstKeptEntryId \"%.*s\" is not on the path from "
                           "the compaction to its root",
                           (int)id.size, (const char *)id.data);
    }
    return status;
}

static enum wal_status check_branch_summary(struct resolver *resolver, uint32_t summary,
                                            struct wal__span payload)
{
    struct wal__core *core = resolver->core;
    struct wal__summary source;
    struct wal__entry_location found;
    uint8_t session_text[WAL__ID_MAX];
    uint8_t entry_text[WAL__ID_MAX];
    struct wal__span session;
    struct wal__span entry;
    enum wal_status status;

    if (!read_member(payload, "sourceSessionId", session_text, &session)) {
        return reject_member(resolver, "branch_summary", "sourceSessionId");
    }
    if (!read_member(payload, "sourceEntryId", entry_text, &entry)) {
        return reject_member(resolver, "branch_summary", "sourceEntryId");
    }
    status = wal__catalogue_find(&core->catalogue, session, &source);
    if (status == WAL_OK && source.number == resolver->batch->session) {
        status = find_entry(resolver, entry, summary + 1, &found);
    } else if (status == WAL_OK) {
        status = wal__core_find_id(core, source.number, entry, &found, &resolver->op->error);
    }
    if (status == WAL_OK && found.stream >= WAL__STREAM_COUNT) {
        return wal__core_fail_delta(WAL_ENOTFOUND, entry, &resolver->op->error);
    }
    if (status == WAL_ENOTFOUND) {
        status = wal__fail(&resolver->op->error, WAL_ENOTFOUND,
                           "the source of the branch summary, entry \"%.*s\" "
                           "of session \"%.*s\", does not exist",
                           (int)entry.size, (const char *)entry.data, (int)session.size,
                           (const char *)session.data);
    }
    return status;
}

/* Checks that the entries exist which an entry's payload names, once its parent is known. */
static enum wal_status resolve_reference(struct resolver *resolver, uint32_t entry)
{
    uint8_t kind = resolver->op->frames[entry].frame.kind;
    struct wal__entry_record record;

    if ((kind != WAL__KIND_COMPACTION_SUMMARY && kind != WAL__KIND_BRANCH_SUMMARY) ||
        resolver->batch->is_copy) {
        return WAL_OK;
    }
    if (wal__entry_record_decode(wal__batch_payload(resolver->op, entry), &record) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    if (record.form == WAL__ENTRY_LINE) {
        return WAL_OK; /* imported lines are not checked */
    }
    return kind == WAL__KIND_COMPACTION_SUMMARY
               ? check_compaction(resolver, entry, record.payload)
               : check_branch_summary(resolver, entry, record.payload);
}

/* Finds the session that owns each redaction's target. */
static enum wal_status resolve_redacts(struct resolver *resolver)
{
    struct wal__batch *batch = resolver->batch;
    struct wal__op *op = resolver->op;

    for (uint32_t i = 0; i < batch->redact_count; i++) {
        const struct wal__batch_redact *redact = &batch->redacts[i];
        struct wal__op_frame *frame = &op->frames[redact->frame];
        struct wal__redact_record record;
        struct wal__entry_location found;
        enum wal_status status;

        WAL__ASSERT(redact->entry < batch->entry_count && redact->frame < op->frame_count);
        frame->skipped = op->frames[redact->entry].skipped;
        if (frame->skipped) {
            continue;
        }
        if (wal__redact_record_decode(wal__batch_payload(op, redact->frame), &record) !=
            WAL__FMT_OK) {
            return WAL_EINVAL;
        }
        status = find_entry(resolver, record.target_id, batch->entry_count, &found);
        if (status == WAL_ENOTFOUND && !redact->required) {
            frame->skipped = true;
            continue;
        }
        if (status != WAL_OK) {
            return status;
        }
        WAL__ASSERT(found.sequence < resolver->next);
        frame->frame.session = found.session;
        frame->frame.stream = (uint8_t)WAL__STREAM_BASE(found.stream);
        frame->frame.parent = found.sequence;
        frame->frame.flags = 0;
        resolver->next++;
    }
    return WAL_OK;
}

static enum wal_status reject_version(struct resolver *resolver, enum wal_expectation expectation,
                                      const char *what, struct wal__span name, uint64_t expected,
                                      uint64_t current)
{
    char actual[24];

    (void)snprintf(actual, sizeof(actual), "%" PRIu64, current);
    return wal__conflict(&resolver->op->error, expectation, actual,
                         "%s \"%.*s\" has version %s, not %" PRIu64, what, (int)name.size,
                         (const char *)name.data, actual, expected);
}

/* --- documents ------------------------------------------------------------ */

/* Reads the newest version of a document. */
static enum wal_status read_doc(struct resolver *resolver, const struct wal__doc_version *version,
                                struct wal__record_buf *scratch, struct wal__doc_record *record)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status = wal__log_read(&resolver->core->log, version->position, scratch, &frame,
                                           &payload, &resolver->op->error);

    if (status == WAL_OK && (frame.sequence != version->sequence ||
                             wal__doc_record_decode(payload, record) != WAL__FMT_OK)) {
        status = WAL_ECORRUPT;
    }
    return status;
}

/* Resolves a put or a deletion of a document that has versions. */
static enum wal_status resolve_existing_doc(struct resolver *resolver, struct wal__batch_doc *doc,
                                            const struct wal__doc_record *requested,
                                            const struct wal__doc_version *newest,
                                            const struct wal__doc_record *existing)
{
    struct wal__op_frame *frame = &resolver->op->frames[doc->frame];
    bool deletes = (doc->flags & WAL_DOC_DELETE) != 0;
    uint64_t current = newest->deleted ? 0 : newest->sequence;

    if (!wal__span_equal(requested->key, existing->key)) {
        return wal__invalid(&resolver->op->error,
                            "the keys \"%.*s\" and \"%.*s\" have the same hash; choose "
                            "another key",
                            (int)requested->key.size, (const char *)requested->key.data,
                            (int)existing->key.size, (const char *)existing->key.data);
    }
    if (!deletes && !newest->deleted && wal__span_equal(requested->value, existing->value)) {
        frame->skipped = true;
        doc->version = newest->sequence;
        return WAL_OK;
    }
    if ((doc->flags & WAL_DOC_EXPECT) != 0 && doc->expected_version != current) {
        return reject_version(resolver, WAL_EXPECTATION_DOCUMENT, "document", requested->key,
                              doc->expected_version, current);
    }
    if (deletes && newest->deleted) {
        return wal__fail(&resolver->op->error, WAL_ENOTFOUND, "there is no document \"%.*s\"",
                         (int)requested->key.size, (const char *)requested->key.data);
    }
    WAL__ASSERT(newest->sequence < resolver->next);
    frame->frame.parent = newest->sequence;
    return WAL_OK;
}

static enum wal_status resolve_new_doc(struct resolver *resolver, const struct wal__batch_doc *doc,
                                       const struct wal__doc_record *requested)
{
    if ((doc->flags & WAL_DOC_EXPECT) != 0 && doc->expected_version != 0) {
        return reject_version(resolver, WAL_EXPECTATION_DOCUMENT, "document", requested->key,
                              doc->expected_version, 0);
    }
    if ((doc->flags & WAL_DOC_DELETE) != 0) {
        return wal__fail(&resolver->op->error, WAL_ENOTFOUND, "there is no document \"%.*s\"",
                         (int)requested->key.size, (const char *)requested->key.data);
    }
    resolver->op->frames[doc->frame].frame.parent = 0;
    return WAL_OK;
}

/* Checks that the damage of the store's documents was accepted, if there was any. */
static enum wal_status check_store_documents(struct resolver *resolver)
{
    struct wal__summary summary;
    enum wal_status status =
        wal__catalogue_get(&resolver->core->catalogue, WAL__STORE_NUMBER, &summary);

    if (status == WAL_OK && (summary.flags & WAL__SUMMARY_DAMAGED) != 0) {
        return wal__fail(&resolver->op->error, WAL_EDAMAGED,
                         "documents of the store were lost to damage; accept "
                         "the damage first");
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Reads the newest version and resolves the document against it. */
static enum wal_status replace_doc(struct resolver *resolver, struct wal__batch_doc *doc,
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
        status = resolve_existing_doc(resolver, doc, requested, newest, &existing);
    }
    wal__record_buf_deinit(&scratch);
    return status;
}

static enum wal_status resolve_doc(struct resolver *resolver, struct wal__batch_doc *doc)
{
    struct wal__op *op = resolver->op;
    struct wal__op_frame *frame = &op->frames[doc->frame];
    const struct wal__document *document = NULL;
    struct wal__doc_record requested;
    struct wal__branch_slot *slot;
    enum wal_status status;

    frame->skipped = false;
    frame->frame.flags = 0;
    if (wal__doc_record_decode(wal__batch_payload(op, doc->frame), &requested) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    if (doc->number == WAL__STORE_NUMBER) {
        status = check_store_documents(resolver);
        if (status != WAL_OK) {
            return status;
        }
    }
    status = wal__core_load_documents(resolver->core, doc->number, &slot, &op->error);
    if (status != WAL_OK) {
        return status;
    }
    if (slot != NULL) {
        document = wal__documents_find(&slot->documents, frame->frame.id_hash);
    }
    status = document == NULL ? resolve_new_doc(resolver, doc, &requested)
                              : replace_doc(resolver, doc, &requested,
                                            wal__documents_newest(&slot->documents, document));
    if (status == WAL_OK && !frame->skipped) {
        WAL__ASSERT(resolver->next >= op->next_sequence);
        doc->version = resolver->next;
        resolver->next++;
    }
    return status;
}

static enum wal_status resolve_docs(struct resolver *resolver)
{
    struct wal__batch *batch = resolver->batch;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < batch->doc_count && status == WAL_OK; i++) {
        status = resolve_doc(resolver, &batch->docs[i]);
    }
    return status;
}

/* --- heads ---------------------------------------------------------------- */

/* The current state of a head: its target before the batch, its target within the batch (`main`
 * moves with the entries), and the record that set it. */
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

static enum wal_status find_head(struct resolver *resolver, const struct wal__frame *frame,
                                 const struct wal__head_record *requested,
                                 struct wal__record_buf *scratch, struct current_head *current)
{
    const struct wal__named_head *named =
        wal__annotations_find_head(&resolver->slot->annotations, frame->stream, frame->id_hash);
    uint64_t bit = (uint64_t)1 << frame->stream % 64;
    struct wal__frame read;
    struct wal__span payload;
    enum wal_status status = WAL_OK;

    memset(current, 0, sizeof(*current));
    if (named != NULL) {
        status = wal__log_read(&resolver->core->log, named->position, scratch, &read, &payload,
                               &resolver->op->error);
        if (status == WAL_OK && wal__head_record_decode(payload, &current->record) != WAL__FMT_OK) {
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
    if (current->record_is_current && !wal__span_equal(current->record.name, requested->name)) {
        return wal__invalid(&resolver->op->error,
                            "the head names \"%.*s\" and \"%.*s\" have the "
                            "same hash; choose another name",
                            (int)requested->name.size, (const char *)requested->name.data,
                            (int)current->record.name.size,
                            (const char *)current->record.name.data);
    }
    if (is_main(requested)) {
        current->before_batch = wal__branch_head(&resolver->slot->branch, frame->stream);
        current->in_batch = (resolver->heads_loaded[frame->stream / 64] & bit) != 0
                                ? resolver->heads[frame->stream]
                                : current->before_batch;
        current->record_is_current = current->record_is_current &&
                                     named->target == current->in_batch &&
                                     named->version > current->in_batch;
    }
    return WAL_OK;
}

static enum wal_status reject_head(struct resolver *resolver, uint32_t stream,
                                   const struct wal__head_record *requested, uint64_t current,
                                   struct wal__span expected)
{
    char actual[WAL_ID_SIZE];
    enum wal_status status = read_entry_id(resolver, stream, current, actual);

    if (status != WAL_OK) {
        return status;
    }
    return wal__conflict(&resolver->op->error, WAL_EXPECTATION_HEAD, actual,
                         "the head \"%.*s\" is at \"%s\", not at \"%.*s\"",
                         (int)requested->name.size, (const char *)requested->name.data, actual,
                         (int)expected.size, (const char *)expected.data);
}

/* Checks that the head pointed to the entry that the caller expects. */
static enum wal_status check_expected(struct resolver *resolver, const struct wal__batch_head *head,
                                      const struct wal__head_record *requested, uint64_t before)
{
    uint32_t stream = resolver->op->frames[head->frame].frame.stream;
    struct wal__span expected =
        batch_text(resolver->batch, head->expected_offset, head->expected_size);
    struct wal__entry_location found = {0};
    enum wal_status status = WAL_OK;

    if ((head->flags & WAL_HEAD_EXPECT) == 0) {
        return WAL_OK;
    }
    if (expected.size > 0) {
        status = wal__core_find_id(resolver->core, resolver->batch->session, expected, &found,
                                   &resolver->op->error);
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
static enum wal_status find_target(struct resolver *resolver,
                                   const struct wal__head_record *requested, uint32_t stream,
                                   uint64_t *target)
{
    struct wal__entry_location found = {0};
    enum wal_status status;

    *target = 0;
    if (requested->entry_id.size == 0) {
        return WAL_OK;
    }
    status = find_entry(resolver, requested->entry_id, resolver->batch->entry_count, &found);
    if (status != WAL_OK) {
        return status;
    }
    if (found.stream >= WAL__STREAM_COUNT) {
        return wal__core_fail_delta(WAL_ENOTFOUND, requested->entry_id, &resolver->op->error);
    }
    if (found.stream != stream) {
        return wal__fail(&resolver->op->error, WAL_ENOTFOUND, "the entry is in stream %u, not %u",
                         found.stream, stream);
    }
    *target = found.sequence;
    return WAL_OK;
}

/* Whether the head already has this target and, if a note was passed or it is that of a copy, this
 * note. A removed head has no note. */
static bool is_unchanged(const struct wal__head_record *requested, uint64_t target,
                         const struct current_head *current, bool is_copy)
{
    if (current->in_batch != target) {
        return false;
    }
    if (requested->note.size == 0 && is_copy && current->record_is_current) {
        return current->record.note.size == 0;
    }
    return requested->note.size == 0 || (target == 0 && !is_main(requested)) ||
           (current->record_is_current && wal__span_equal(requested->note, current->record.note));
}

/* Counts a head that is created or removed; `main` always exists. */
static void count_head(struct resolver *resolver, const struct wal__head_record *requested,
                       const struct current_head *current)
{
    if (!is_main(requested)) {
        resolver->heads_created += current->before_batch == 0;
        resolver->heads_removed += requested->entry_id.size == 0;
    }
}

static enum wal_status resolve_head(struct resolver *resolver, const struct wal__batch_head *head)
{
    struct wal__op_frame *frame = &resolver->op->frames[head->frame];
    struct wal__head_record requested;
    struct current_head current;
    struct wal__record_buf scratch;
    enum wal_status status;
    uint64_t target = 0;

    frame->skipped = false;
    frame->frame.flags = 0;
    if (wal__head_record_decode(wal__batch_payload(resolver->op, head->frame), &requested) !=
        WAL__FMT_OK) {
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
    status = read_entry_id(resolver, frame->frame.stream, current.before_batch,
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

static enum wal_status resolve_heads(struct resolver *resolver)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < resolver->batch->head_count && status == WAL_OK; i++) {
        status = resolve_head(resolver, &resolver->batch->heads[i]);
    }
    if (status == WAL_OK && resolver->heads_created > resolver->heads_removed &&
        resolver->slot->annotations.head_count + resolver->heads_created - resolver->heads_removed >
            WAL__HEADS_MAX) {
        status = wal__fail(&resolver->op->error, WAL_ETOOBIG,
                           "the session would have more than %d heads", WAL__HEADS_MAX);
    }
    return status;
}

/* --- the SESSION record --------------------------------------------------- */

static enum wal_status resolve_change(struct resolver *resolver)
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
    status = wal__catalogue_get(&resolver->core->catalogue, batch->session, &summary);
    if (status != WAL_OK || summary.session_position == batch->change_base) {
        resolver->next += status == WAL_OK && batch->has_change;
        return status;
    }
    batch->stale_read = true;
    wal__record_buf_init(&scratch, resolver->op->heap);
    status = wal__log_read(&resolver->core->log, summary.session_position, &scratch, &frame,
                           &payload, &resolver->op->error);
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
    return reject_version(resolver, WAL_EXPECTATION_METADATA, "the metadata of session", summary.id,
                          batch->expected_version, frame.sequence);
}

/* --- entries, and the whole ----------------------------------------------- */

/* The head of a stream after the entries resolved so far. */
static uint64_t *stream_head(struct resolver *resolver, uint32_t stream)
{
    uint64_t bit = (uint64_t)1 << stream % 64;

    WAL__ASSERT(stream < WAL__BATCH_STREAMS);
    if ((resolver->heads_loaded[stream / 64] & bit) == 0) {
        resolver->heads_loaded[stream / 64] |= bit;
        resolver->heads[stream] = wal__branch_head(&resolver->slot->branch, stream);
    }
    return &resolver->heads[stream];
}

/* Whether the entry equals the existing one, or what compaction left of it; a time counts only if
 * the caller set it. */
static bool same_content(const struct wal__batch_entry *item, const struct wal__frame *frame,
                         struct wal__span payload, const struct wal__frame *existing,
                         struct wal__span existing_payload)
{
    struct wal__entry_record a;
    struct wal__entry_record b;

    if (wal__entry_record_decode(payload, &a) != WAL__FMT_OK ||
        wal__entry_record_decode(existing_payload, &b) != WAL__FMT_OK) {
        return false;
    }
    return frame->stream == existing->stream && frame->kind == existing->kind && a.form == b.form &&
           wal__span_equal(a.type, b.type) &&
           (!item->has_time || wal__span_equal(a.time, b.time)) && wal__span_equal(a.run, b.run) &&
           (b.is_erased ||
            (wal__span_equal(a.meta, b.meta) && wal__entry_record_same_payload(&a, &b)));
}

static enum wal_status reject_duplicate(struct resolver *resolver, struct wal__span id)
{
    struct wal_error *error = &resolver->op->error;

    wal__fail(error, WAL_EEXISTS, "the entry \"%.*s\" already exists with other content",
              (int)id.size, (const char *)id.data);
    wal__error_set_actual(error, id.data, id.size);
    return WAL_EEXISTS;
}

/* The sequence number of the parent that the entry names; it may be an earlier entry of the
 * batch. */
static enum wal_status find_parent(struct resolver *resolver, uint32_t item, uint64_t *sequence)
{
    struct wal__span id = batch_text(resolver->batch, resolver->batch->entries[item].parent_offset,
                                     resolver->batch->entries[item].parent_size);
    struct wal__entry_location found;
    enum wal_status status = find_entry(resolver, id, item, &found);

    if (status == WAL_OK && found.stream >= WAL__STREAM_COUNT) {
        return wal__core_fail_delta(WAL_ENOPARENT, id, &resolver->op->error);
    }
    if (status == WAL_ENOTFOUND ||
        (status == WAL_OK && found.stream != resolver->op->frames[item].frame.stream)) {
        return wal__fail(&resolver->op->error, WAL_ENOPARENT,
                         "the parent \"%.*s\" does not exist in this session "
                         "and stream",
                         (int)id.size, (const char *)id.data);
    }
    if (status == WAL_OK) {
        *sequence = found.sequence;
    }
    return status;
}

/* Compares with the existing entry of the same id: skips an equal one, rejects another. */
static enum wal_status compare_existing(struct resolver *resolver, uint32_t item,
                                        struct wal__span id,
                                        const struct wal__entry_location *found)
{
    struct wal__op_frame *frame = &resolver->op->frames[item];
    const struct wal__batch_entry *entry = &resolver->batch->entries[item];
    struct wal__frame existing;
    struct wal__span payload;
    struct wal__record_buf scratch;
    enum wal_status status;
    uint64_t parent = 0;
    bool same;

    wal__record_buf_init(&scratch, resolver->core->env.heap);
    status = wal__log_read(&resolver->core->log, found->position, &scratch, &existing, &payload,
                           &resolver->op->error);
    if (status != WAL_OK) {
        goto done;
    }
    same = (entry->flags & WAL_ENTRY_ROOT) == 0 || existing.parent == 0;
    if (entry->parent_size > 0) {
        status = find_parent(resolver, item, &parent);
        if (status != WAL_OK && status != WAL_ENOPARENT) {
            goto done;
        }
        same = status == WAL_OK && parent == existing.parent;
    }
    same = same && same_content(entry, &frame->frame, wal__batch_payload(resolver->op, item),
                                &existing, payload);
    if (!same) {
        status = reject_duplicate(resolver, id);
        goto done;
    }
    WAL__ASSERT(found->sequence < resolver->op->next_sequence);
    frame->skipped = true;
    resolver->sequences[item] = found->sequence;
done:
    wal__record_buf_deinit(&scratch);
    return status;
}

/* Whether the entry may be named within the batch: by another entry, by itself, or by a head. */
static bool needs_in_batch_lookup(const struct resolver *resolver, uint32_t item)
{
    const struct wal__batch *batch = resolver->batch;

    return batch->entry_count > 1 || batch->head_count > 0 || batch->redact_count > 0 ||
           resolver->op->frames[item].frame.kind == WAL__KIND_BRANCH_SUMMARY;
}

/* Assigns a sequence number to a new entry; compares and skips a duplicate. */
static enum wal_status check_duplicate(struct resolver *resolver, uint32_t item)
{
    struct wal__batch *batch = resolver->batch;
    uint64_t hash = batch->entries[item].id_hash;
    struct wal__entry_record record;
    struct wal__entry_location found;
    enum wal_status status;
    uint32_t earlier;

    WAL__ASSERT(resolver->next >= resolver->op->next_sequence);
    if (wal__entry_record_decode(wal__batch_payload(resolver->op, item), &record) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    resolver->op->frames[item].skipped = false;
    earlier = find_in_batch(resolver, record.id);
    if (earlier != NO_ENTRY && !resolver->op->frames[earlier].skipped) {
        if (!same_content(&batch->entries[item], &resolver->op->frames[item].frame,
                          wal__batch_payload(resolver->op, item),
                          &resolver->op->frames[earlier].frame,
                          wal__batch_payload(resolver->op, earlier))) {
            return reject_duplicate(resolver, record.id);
        }
        resolver->op->frames[item].skipped = true;
        resolver->sequences[item] = resolver->sequences[earlier];
        return WAL_OK;
    }
    status = wal__core_find_id(resolver->core, batch->session, record.id, &found, NULL);
    if (status == WAL_OK) {
        status = compare_existing(resolver, item, record.id, &found);
    } else if (status == WAL_ENOTFOUND) {
        resolver->sequences[item] = resolver->next;
        resolver->next++;
        status = WAL_OK;
    }
    if (status == WAL_OK && needs_in_batch_lookup(resolver, item)) {
        status = wal__hashmap_add(&resolver->batch_ids, hash, item);
    }
    return status;
}

static enum wal_status check_expected_head(struct resolver *resolver)
{
    const struct wal__batch *batch = resolver->batch;
    struct wal__span expected = {batch->expected_head, batch->expected_head_size};
    struct wal_error *error = &resolver->op->error;
    char actual[WAL_ID_SIZE];
    uint32_t stream = batch->entry_count == 0 ? 0 : resolver->op->frames[0].frame.stream;
    uint64_t sequence = 0;
    struct wal__entry_location found;
    enum wal_status status = WAL_OK;
    uint64_t head;

    if (!batch->expects_head) {
        return WAL_OK;
    }
    head = *stream_head(resolver, stream);
    if (expected.size > 0) {
        status = wal__core_find_id(resolver->core, batch->session, expected, &found, error);
        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            return status;
        }
        sequence = status == WAL_OK ? found.sequence : UINT64_MAX;
    }
    if (sequence == head) {
        return WAL_OK;
    }
    status = read_entry_id(resolver, stream, head, actual);
    if (status != WAL_OK) {
        return status; /* an empty `actual` would mean that there is no tail */
    }
    return wal__conflict(error, WAL_EXPECTATION_TAIL, actual, "the tail is \"%s\", not \"%.*s\"",
                         actual, (int)expected.size, (const char *)expected.data);
}

/* Sets the parent of a new entry, and moves the head unless it is to be kept. */
static enum wal_status assign_parent(struct resolver *resolver, uint32_t item)
{
    const struct wal__batch_entry *entry = &resolver->batch->entries[item];
    struct wal__frame *frame = &resolver->op->frames[item].frame;
    uint64_t *head = stream_head(resolver, frame->stream);
    uint8_t provisional = frame->flags & WAL__FRAME_PROVISIONAL;
    enum wal_status status = WAL_OK;
    bool moves;

    WAL__ASSERT(!resolver->op->frames[item].skipped);
    frame->parent = 0;
    if (entry->parent_size > 0) {
        status = find_parent(resolver, item, &frame->parent);
    } else if ((entry->flags & WAL_ENTRY_ROOT) == 0) {
        frame->parent = *head;
    }
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(frame->parent < resolver->sequences[item]);
    moves = frame->parent == *head;
    moves = (moves || (entry->flags & WAL_ENTRY_HEAD_MOVE) != 0) &&
            (entry->flags & WAL_ENTRY_HEAD_KEEP) == 0 && provisional == 0;
    frame->flags = moves ? WAL__FRAME_MOVES_HEAD : provisional;
    if (moves) {
        *head = resolver->sequences[item];
    }
    return WAL_OK;
}

/* Checks an entry that repeats an earlier one of the batch: it must name the parent that the first
 * one got. */
static enum wal_status check_repeat_in_batch(struct resolver *resolver, uint32_t item)
{
    const struct wal__batch_entry *entry = &resolver->batch->entries[item];
    struct wal__entry_record record;
    enum wal_status status = WAL_OK;
    uint64_t parent = 0;
    uint32_t first;

    if (entry->parent_size == 0 && (entry->flags & WAL_ENTRY_ROOT) == 0) {
        return WAL_OK;
    }
    if (wal__entry_record_decode(wal__batch_payload(resolver->op, item), &record) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    first = find_in_batch(resolver, record.id);
    WAL__ASSERT(first != NO_ENTRY && first < item);
    if (entry->parent_size > 0) {
        status = find_parent(resolver, item, &parent);
    }
    if (status == WAL_ENOPARENT ||
        (status == WAL_OK && parent != resolver->op->frames[first].frame.parent)) {
        status = reject_duplicate(resolver, record.id);
    }
    return status;
}

/* Flags the first and the last frame that are written, and counts new entries and duplicates. */
static void set_batch_flags(struct resolver *resolver)
{
    struct wal__op *op = resolver->op;
    struct wal__frame *last = NULL;

    for (uint32_t i = 0; i < op->frame_count; i++) {
        bool is_entry = i < resolver->batch->entry_count;

        if (op->frames[i].skipped) {
            op->result.duplicates += is_entry;
            continue;
        }
        if (last == NULL) {
            op->frames[i].frame.flags |= WAL__FRAME_FIRST;
        }
        last = &op->frames[i].frame;
        op->result.appended += is_entry;
    }
    if (last != NULL) {
        last->flags |= WAL__FRAME_LAST;
    }
}

/* Reports the schema versions of the session and of the caller. */
static enum wal_status reject_schema(const struct wal__core *core,
                                     const struct wal__summary *summary, struct wal_error *error)
{
    char actual[16];
    int size = snprintf(actual, sizeof(actual), "%" PRIu32, summary->schema_version);

    WAL__ASSERT(size > 0 && (size_t)size < sizeof(actual));
    wal__fail(error, WAL_ESCHEMA,
              "session \"%.*s\" has schema version %s; this store was opened for "
              "version %" PRIu32 "%s",
              (int)summary->id.size, (const char *)summary->id.data, actual, core->schema_version,
              summary->schema_version < core->schema_version ? ": migrate it first" : "");
    wal__error_set_actual(error, actual, (size_t)size);
    return WAL_ESCHEMA;
}

enum wal_status wal__session_check_writable(struct wal__core *core, uint32_t number,
                                            bool is_migration, struct wal__summary *summary,
                                            struct wal_error *error)
{
    enum wal_status status = wal__session_find(core, number, summary, error);

    if (status != WAL_OK) {
        return status;
    }
    if ((summary->flags & WAL__SUMMARY_TRASHED) != 0) {
        return wal__session_fail_trashed(summary->id, error);
    }
    if ((summary->flags & WAL__SUMMARY_DAMAGED) != 0 && !is_migration) {
        return wal__fail(error, WAL_EDAMAGED,
                         "session \"%.*s\" lost entries to damage; accept the "
                         "damage before appending",
                         (int)summary->id.size, (const char *)summary->id.data);
    }
    if (core->schema_version != 0 && !is_migration &&
        summary->schema_version != core->schema_version) {
        return reject_schema(core, summary, error);
    }
    return WAL_OK;
}

enum wal_status wal__session_check_present(struct wal__core *core, uint32_t number,
                                           struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status = wal__session_check_writable(core, number, false, &summary, error);

    return status == WAL_OK && (summary.flags & WAL__SUMMARY_MOVED) != 0
               ? fail_moved(core, &summary, error)
               : status;
}

static enum wal_status begin(struct resolver *resolver)
{
    struct wal__core *core = resolver->core;
    struct wal__batch *batch = resolver->batch;
    struct wal__op *op = resolver->op;
    struct wal__summary summary;
    enum wal_status status;

    resolver->next = op->next_sequence;
    resolver->sequences = &resolver->sequence;
    if (batch->session == WAL__STORE_NUMBER) {
        return WAL_OK; /* documents only */
    }
    status = batch->is_copy || batch->is_migration
                 ? wal__session_check_writable(core, batch->session, batch->is_migration, &summary,
                                               &op->error)
                 : wal__session_check_present(core, batch->session, &op->error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_get_branch(core, batch->session, &resolver->slot, &op->error);
    if (status != WAL_OK) {
        return status;
    }
    resolver->slot->pin_count++; /* a lookup in ancestors may evict slots */
    if (batch->entry_count > 1) {
        resolver->sequences =
            wal__heap_alloc(core->env.heap, batch->entry_count * sizeof(uint64_t));
    }
    return resolver->sequences == NULL ? WAL_ENOMEM : WAL_OK;
}

static void end(struct resolver *resolver)
{
    if (resolver->slot != NULL) {
        WAL__ASSERT(resolver->slot->pin_count > 0);
        resolver->slot->pin_count--;
    }
    if (resolver->sequences != &resolver->sequence) {
        wal__heap_free(resolver->op->heap, resolver->sequences);
    }
    wal__hashmap_deinit(&resolver->batch_ids);
}

/* Resolves the entries: finds duplicates, checks the expected head if any entry is new, then sets
 * parents. */
static enum wal_status resolve_entries(struct resolver *resolver)
{
    struct wal__op *op = resolver->op;
    uint32_t count = resolver->batch->entry_count;
    enum wal_status status = WAL_OK;
    bool has_new_entry = count == 0;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        status = check_duplicate(resolver, i);
        has_new_entry |= !op->frames[i].skipped;
    }
    if (status == WAL_OK && has_new_entry) {
        status = check_expected_head(resolver);
    }
    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        if (!op->frames[i].skipped) {
            status = assign_parent(resolver, i);
        } else if (resolver->sequences[i] >= op->next_sequence) {
            status = check_repeat_in_batch(resolver, i);
        }
        if (status == WAL_OK && !op->frames[i].skipped) {
            status = resolve_reference(resolver, i);
        }
    }
    return status;
}

/* Checks the expected sequence when anything of the batch is new. */
static enum wal_status check_expected_sequence(struct resolver *resolver)
{
    const struct wal__batch *batch = resolver->batch;
    struct wal__summary summary;
    enum wal_status status;
    bool has_new = false;

    for (uint32_t i = 0; i < resolver->op->frame_count && !has_new; i++) {
        has_new = !resolver->op->frames[i].skipped;
    }
    if (!batch->expects_sequence || !has_new) {
        return WAL_OK;
    }
    status = wal__catalogue_get(&resolver->core->catalogue, batch->session, &summary);
    return status == WAL_OK ? wal__session_check_sequence(&summary, batch->expected_sequence,
                                                          &resolver->op->error)
                            : status;
}

static enum wal_status resolve_batch(struct resolver *resolver)
{
    enum wal_status status = begin(resolver);

    if (status != WAL_OK) {
        return status;
    }
    status = resolve_entries(resolver);
    if (status != WAL_OK) {
        return status;
    }
    status = resolve_redacts(resolver);
    if (status != WAL_OK) {
        return status;
    }
    status = resolve_docs(resolver);
    if (status != WAL_OK) {
        return status;
    }
    status = resolve_heads(resolver);
    if (status != WAL_OK) {
        return status;
    }
    status = resolve_change(resolver);
    return status == WAL_OK ? check_expected_sequence(resolver) : status;
}

/* Of a store that forgets: accepts the batch, and writes nothing of it. */
static enum wal_status skip_batch(const struct resolver *resolver)
{
    struct wal__op *op = resolver->op;

    for (uint32_t i = 0; i < op->frame_count; i++) {
        op->frames[i].skipped = true;
    }
    op->result.appended = resolver->batch->entry_count;
    return WAL_OK;
}

enum wal_status wal__batch_resolve(void *ctx, struct wal__op *op)
{
    struct resolver resolver;
    enum wal_status status;

    memset(&resolver, 0, offsetof(struct resolver, heads));
    resolver.core = ctx;
    resolver.op = op;
    resolver.batch = op->request;
    wal__hashmap_init(&resolver.batch_ids, op->heap);
    op->result.appended = 0;
    op->result.duplicates = 0;
    if (resolver.core->env.io->forgets) {
        return skip_batch(&resolver);
    }
    status = resolve_batch(&resolver);
    if (status == WAL_OK) {
        set_batch_flags(&resolver);
        WAL__ASSERT(op->result.appended + op->result.duplicates == resolver.batch->entry_count);
    } else if (op->error.status != (int32_t)status) {
        wal__fail(&op->error, status, "%s", wal_status_text(status));
    }
    end(&resolver);
    return status;
}
