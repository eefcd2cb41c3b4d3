/*
 * resolve.c - deciding an append under the lease, when everything that other
 * processes appended before it is known (SPEC.md 5.2): duplicates first, then
 * the expected tail, then parents and heads.
 *
 * Invariant: nothing but the operation itself is changed; a refusal leaves the
 * store as it was.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/map.h"
#include "engine/session/batch.h"
#include "format/crc32.h"

static struct wal__span parent_of(const struct wal__batch *batch, uint32_t item)
{
    return wal__batch_text(batch, batch->entries[item].parent_offset,
                           batch->entries[item].parent_size);
}

/* The head of a stream as it is within the batch. */
static uint64_t *head_of(struct wal__decision *decision, uint32_t stream)
{
    uint64_t bit = (uint64_t)1 << stream % 64;

    if ((decision->known[stream / 64] & bit) == 0) {
        decision->known[stream / 64] |= bit;
        decision->heads[stream] =
            wal__branch_head(&decision->slot->branch, stream);
    }
    return &decision->heads[stream];
}

uint32_t wal__decision_find(const struct wal__decision *decision,
                            struct wal__span id)
{
    uint64_t hash = wal__id_hash(id.data, id.size);
    uint32_t cursor = 0;
    uint32_t item;

    while (wal__map_find(&decision->in_batch, hash, &cursor, &item)) {
        struct wal__entry_record record;

        if (wal__entry_record_decode(wal__batch_payload(decision->op, item),
                                     &record) == WAL__FMT_OK &&
            wal__span_equal(record.id, id)) {
            return item;
        }
    }
    return WAL__NO_ENTRY;
}

static bool same_payload(const struct wal__entry_record *a,
                         const struct wal__entry_record *b)
{
    if (a->digest == NULL || b->digest == NULL) {
        return a->digest == b->digest &&
               wal__span_equal(a->payload, b->payload);
    }
    return a->payload_size == b->payload_size &&
           memcmp(a->digest, b->digest, WAL__DIGEST_SIZE) == 0;
}

/* Whether the caller gave what is there already. */
static bool same_content(const struct wal__batch_entry *item,
                         const struct wal__frame *ours,
                         struct wal__span our_payload,
                         const struct wal__frame *theirs,
                         struct wal__span their_payload)
{
    struct wal__entry_record a;
    struct wal__entry_record b;

    if (wal__entry_record_decode(our_payload, &a) != WAL__FMT_OK ||
        wal__entry_record_decode(their_payload, &b) != WAL__FMT_OK) {
        return false;
    }
    return ours->stream == theirs->stream && ours->kind == theirs->kind &&
           a.form == b.form && wal__span_equal(a.type, b.type) &&
           (!item->timed || wal__span_equal(a.time, b.time)) &&
           wal__span_equal(a.run, b.run) && wal__span_equal(a.meta, b.meta) &&
           same_payload(&a, &b);
}

static enum wal_status refuse_duplicate(struct wal__decision *decision,
                                        struct wal__span id)
{
    struct wal_error *error = &decision->op->error;

    wal__fail(error, WAL_EEXISTS, 0, NULL, 0,
              "the entry \"%.*s\" is there with other content", (int)id.size,
              (const char *)id.data);
    wal__error_actual(error, id.data, id.size);
    return WAL_EEXISTS;
}

enum wal_status wal__decision_entry(struct wal__decision *decision,
                                    struct wal__span id, uint32_t before,
                                    struct wal__found *found)
{
    uint32_t item = wal__decision_find(decision, id);

    /* One that was there before the batch may be another session's. */
    if (item >= before ||
        decision->sequences[item] < decision->op->next_sequence) {
        return wal__core_find_id(decision->core, decision->batch->session, id,
                                 found, &decision->op->error);
    }
    found->position = 0; /* it has none yet */
    found->sequence = decision->sequences[item];
    found->session = decision->batch->session;
    found->stream = decision->op->frames[item].frame.stream;
    return WAL_OK;
}

/* The sequence number of a parent that was named; it may be an entry earlier
 * in the batch. */
static enum wal_status find_parent(struct wal__decision *decision,
                                   uint32_t item, uint64_t *sequence)
{
    struct wal__span id = parent_of(decision->batch, item);
    struct wal__found found;
    enum wal_status status = wal__decision_entry(decision, id, item, &found);

    if (status == WAL_ENOTFOUND ||
        (status == WAL_OK &&
         found.stream != decision->op->frames[item].frame.stream)) {
        return wal__fail(&decision->op->error, WAL_ENOPARENT, 0, NULL, 0,
                         "the parent \"%.*s\" does not exist in this session "
                         "and stream",
                         (int)id.size, (const char *)id.data);
    }
    if (status == WAL_OK) {
        *sequence = found.sequence;
    }
    return status;
}

/* An entry with this id is there: the same, or another one. */
static enum wal_status compare(struct wal__decision *decision, uint32_t item,
                               struct wal__span id,
                               const struct wal__found *found)
{
    struct wal__op_frame *frame = &decision->op->frames[item];
    const struct wal__batch_entry *wanted = &decision->batch->entries[item];
    struct wal__frame theirs;
    struct wal__span payload;
    struct wal__buf scratch;
    enum wal_status status;
    uint64_t parent = 0;

    wal__buf_init(&scratch, decision->core->env.heap);
    status = wal__log_read(&decision->core->log, found->position, &scratch,
                           &theirs, &payload, &decision->op->error);
    if (status == WAL_OK && wanted->parent_size > 0) {
        status = find_parent(decision, item, &parent);
        if (status == WAL_ENOPARENT ||
            (status == WAL_OK && parent != theirs.parent)) {
            status = refuse_duplicate(decision, id);
        }
    } else if (status == WAL_OK && (wanted->flags & WAL_ENTRY_ROOT) != 0 &&
               theirs.parent != 0) {
        status = refuse_duplicate(decision, id);
    }
    if (status == WAL_OK &&
        !same_content(wanted, &frame->frame,
                      wal__batch_payload(decision->op, item), &theirs,
                      payload)) {
        status = refuse_duplicate(decision, id);
    }
    wal__buf_deinit(&scratch);
    if (status == WAL_OK) {
        frame->skipped = true;
        decision->sequences[item] = found->sequence;
    }
    return status;
}

/* Whether an item may be named within the batch: by another entry, by itself,
 * or by a head. */
static bool may_be_named(const struct wal__decision *decision, uint32_t item)
{
    const struct wal__batch *batch = decision->batch;

    return batch->entry_count > 1 || batch->head_count > 0 ||
           batch->redact_count > 0 ||
           decision->op->frames[item].frame.kind == WAL__KIND_BRANCH_SUMMARY;
}

/* Whether the item is new; duplicates are compared and skipped. */
static enum wal_status check_item(struct wal__decision *decision, uint32_t item)
{
    struct wal__batch *batch = decision->batch;
    uint64_t hash = batch->entries[item].id_hash;
    struct wal__entry_record record;
    struct wal__found found;
    enum wal_status status;
    uint32_t earlier;

    if (wal__entry_record_decode(wal__batch_payload(decision->op, item),
                                 &record) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    decision->op->frames[item].skipped = false;
    earlier = wal__decision_find(decision, record.id);
    if (earlier != WAL__NO_ENTRY && !decision->op->frames[earlier].skipped) {
        if (!same_content(&batch->entries[item],
                          &decision->op->frames[item].frame,
                          wal__batch_payload(decision->op, item),
                          &decision->op->frames[earlier].frame,
                          wal__batch_payload(decision->op, earlier))) {
            return refuse_duplicate(decision, record.id);
        }
        decision->op->frames[item].skipped = true;
        decision->sequences[item] = decision->sequences[earlier];
        return WAL_OK;
    }
    status = wal__core_find_id(decision->core, batch->session, record.id,
                               &found, NULL);
    if (status == WAL_OK) {
        status = compare(decision, item, record.id, &found);
    } else if (status == WAL_ENOTFOUND) {
        decision->sequences[item] = decision->next;
        decision->next++;
        status = WAL_OK;
    }
    if (status == WAL_OK && may_be_named(decision, item)) {
        status = wal__map_add(&decision->in_batch, hash, item);
    }
    return status;
}

enum wal_status wal__decision_name(struct wal__decision *decision,
                                   uint32_t stream, uint64_t sequence,
                                   char out[256])
{
    struct wal__core *core = decision->core;
    struct wal__entry_record record;
    struct wal__found found;
    struct wal__frame frame;
    struct wal__span payload;
    struct wal__buf scratch;
    enum wal_status status;

    out[0] = '\0';
    if (sequence == 0) {
        return WAL_OK;
    }
    wal__buf_init(&scratch, core->env.heap);
    status = wal__core_find_sequence(core, decision->batch->session, stream,
                                     sequence, &found, &decision->op->error);
    if (status == WAL_OK) {
        status = wal__log_read(&core->log, found.position, &scratch, &frame,
                               &payload, &decision->op->error);
    }
    if (status == WAL_OK &&
        wal__entry_record_decode(payload, &record) == WAL__FMT_OK) {
        memcpy(out, record.id.data, record.id.size);
        out[record.id.size] = '\0';
    }
    wal__buf_deinit(&scratch);
    return status == WAL_ENOTFOUND || status == WAL_ECORRUPT ? WAL_OK : status;
}

static enum wal_status check_tail(struct wal__decision *decision)
{
    const struct wal__batch *batch = decision->batch;
    struct wal__span expected = {batch->expected, batch->expected_size};
    struct wal_error *error = &decision->op->error;
    char *actual = decision->op->result.actual_tail;
    uint32_t stream =
        batch->entry_count == 0 ? 0 : decision->op->frames[0].frame.stream;
    uint64_t sequence = 0;
    struct wal__found found;
    enum wal_status status = WAL_OK;
    uint64_t head;

    if (!batch->expect) {
        return WAL_OK;
    }
    head = *head_of(decision, stream);
    if (expected.size > 0) {
        status = wal__core_find_id(decision->core, batch->session, expected,
                                   &found, error);
        sequence = status == WAL_OK ? found.sequence : UINT64_MAX;
    }
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return status;
    }
    if (sequence == head) {
        return WAL_OK;
    }
    status = wal__decision_name(decision, stream, head, actual);
    if (status != WAL_OK) {
        return status; /* an empty tail would be another answer */
    }
    wal__fail(error, WAL_ECONFLICT, 0, NULL, 0,
              "the tail is \"%s\", not \"%.*s\"", actual, (int)expected.size,
              (const char *)expected.data);
    wal__error_actual(error, actual, strlen(actual));
    return WAL_ECONFLICT;
}

/* Gives a new item its parent, and moves the head where it must. */
static enum wal_status place_item(struct wal__decision *decision, uint32_t item)
{
    const struct wal__batch_entry *wanted = &decision->batch->entries[item];
    struct wal__frame *frame = &decision->op->frames[item].frame;
    uint64_t *head = head_of(decision, frame->stream);
    enum wal_status status = WAL_OK;
    bool moves;

    frame->parent = 0;
    if (wanted->parent_size > 0) {
        status = find_parent(decision, item, &frame->parent);
    } else if ((wanted->flags & WAL_ENTRY_ROOT) == 0) {
        frame->parent = *head;
    }
    if (status != WAL_OK) {
        return status;
    }
    moves = frame->parent == *head;
    moves = (moves || (wanted->flags & WAL_ENTRY_HEAD_MOVE) != 0) &&
            (wanted->flags & WAL_ENTRY_HEAD_KEEP) == 0;
    frame->flags = moves ? WAL__FRAME_MOVES_HEAD : 0;
    if (moves) {
        *head = decision->sequences[item];
    }
    return WAL_OK;
}

/* An item that is a second time in the batch: the parent that it names is the
 * one that the first has got. */
static enum wal_status check_twin(struct wal__decision *decision, uint32_t item)
{
    const struct wal__batch_entry *wanted = &decision->batch->entries[item];
    struct wal__entry_record record;
    enum wal_status status = WAL_OK;
    uint64_t parent = 0;
    uint32_t first;

    if (wanted->parent_size == 0 && (wanted->flags & WAL_ENTRY_ROOT) == 0) {
        return WAL_OK;
    }
    if (wal__entry_record_decode(wal__batch_payload(decision->op, item),
                                 &record) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    first = wal__decision_find(decision, record.id);
    if (wanted->parent_size > 0) {
        status = find_parent(decision, item, &parent);
    }
    if (status == WAL_ENOPARENT ||
        (status == WAL_OK &&
         parent != decision->op->frames[first].frame.parent)) {
        status = refuse_duplicate(decision, record.id);
    }
    return status;
}

/* The first and last frames that are written bound the batch. */
static void mark_batch(struct wal__decision *decision)
{
    struct wal__op *op = decision->op;
    struct wal__frame *last = NULL;

    for (uint32_t i = 0; i < op->frame_count; i++) {
        bool is_entry = i < decision->batch->entry_count;

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

/* The version that the caller writes, and that of the session. */
static enum wal_status refuse_schema(const struct wal__core *core,
                                     const struct wal__summary *summary,
                                     struct wal_error *error)
{
    char actual[16];
    int size =
        snprintf(actual, sizeof(actual), "%" PRIu32, summary->schema_version);

    wal__fail(
        error, WAL_ESCHEMA, 0, NULL, 0,
        "session \"%.*s\" has schema version %s; %" PRIu32 " is written here%s",
        (int)summary->id.size, (const char *)summary->id.data, actual,
        core->schema_version,
        summary->schema_version < core->schema_version ? ": migrate it first"
                                                       : "");
    wal__error_actual(error, actual, (size_t)size);
    return WAL_ESCHEMA;
}

enum wal_status wal__session_check(struct wal__core *core, uint32_t number,
                                   bool migrates, struct wal__summary *summary,
                                   struct wal_error *error)
{
    enum wal_status status = wal__session_find(core, number, summary, error);

    if (status != WAL_OK) {
        return status;
    }
    if ((summary->flags & WAL__SUMMARY_DAMAGED) != 0 && !migrates) {
        return wal__fail(error, WAL_EDAMAGED, 0, NULL, 0,
                         "session \"%.*s\" lost entries to damage; accept "
                         "that before appending",
                         (int)summary->id.size, (const char *)summary->id.data);
    }
    if (core->schema_version != 0 && !migrates &&
        summary->schema_version != core->schema_version) {
        return refuse_schema(core, summary, error);
    }
    return WAL_OK;
}

static enum wal_status begin(struct wal__decision *decision)
{
    struct wal__core *core = decision->core;
    struct wal__batch *batch = decision->batch;
    struct wal__op *op = decision->op;
    struct wal__summary summary;
    enum wal_status status;

    decision->next = op->next_sequence;
    decision->sequences = &decision->sequence;
    if (batch->session == WAL__STORE_NUMBER) {
        return WAL_OK; /* documents alone */
    }
    status = wal__session_check(core, batch->session, batch->migrates, &summary,
                                &op->error);
    if (status == WAL_OK) {
        status =
            wal__core_branch(core, batch->session, &decision->slot, &op->error);
    }
    if (status != WAL_OK) {
        return status;
    }
    decision->slot->pins++; /* looking through ancestors drops others */
    if (batch->entry_count > 1) {
        decision->sequences = wal__heap_alloc(
            core->env.heap, batch->entry_count * sizeof(uint64_t));
    }
    return decision->sequences == NULL ? WAL_ENOMEM : WAL_OK;
}

static void end(struct wal__decision *decision)
{
    if (decision->slot != NULL) {
        decision->slot->pins--;
    }
    if (decision->sequences != &decision->sequence) {
        wal__heap_free(decision->op->heap, decision->sequences);
    }
    wal__map_deinit(&decision->in_batch);
}

/* Which entries are new, under the expected tail, and where they go. */
static enum wal_status resolve_entries(struct wal__decision *decision)
{
    struct wal__op *op = decision->op;
    uint32_t count = decision->batch->entry_count;
    enum wal_status status = WAL_OK;
    bool news = count == 0;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        status = check_item(decision, i);
        news |= !op->frames[i].skipped;
    }
    if (status == WAL_OK && news) {
        status = check_tail(decision);
    }
    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        if (!op->frames[i].skipped) {
            status = place_item(decision, i);
        } else if (decision->sequences[i] >= op->next_sequence) {
            status = check_twin(decision, i);
        }
        if (status == WAL_OK && !op->frames[i].skipped) {
            status = wal__resolve_reference(decision, i);
        }
    }
    return status;
}

enum wal_status wal__batch_resolve(void *ctx, struct wal__op *op)
{
    struct wal__decision decision;
    enum wal_status status;

    memset(&decision, 0, offsetof(struct wal__decision, heads));
    decision.core = ctx;
    decision.op = op;
    decision.batch = op->subject;
    wal__map_init(&decision.in_batch, op->heap);
    op->result.appended = 0;
    op->result.duplicates = 0;
    status = begin(&decision);
    if (status == WAL_OK) {
        status = resolve_entries(&decision);
    }
    if (status == WAL_OK) {
        status = wal__resolve_redacts(&decision);
    }
    if (status == WAL_OK) {
        status = wal__resolve_docs(&decision);
    }
    if (status == WAL_OK) {
        status = wal__resolve_heads(&decision);
    }
    if (status == WAL_OK) {
        status = wal__resolve_change(&decision);
    }
    if (status == WAL_OK) {
        mark_batch(&decision);
    } else if (op->error.status != (int32_t)status) {
        wal__fail(&op->error, status, 0, NULL, 0, "%s",
                  wal_status_text(status));
    }
    end(&decision);
    return status;
}
