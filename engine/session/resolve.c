/*
 * resolve.c - deciding an append under the lease, when everything that other
 * processes appended before it is known (SPEC.md 5.2): duplicates first, then
 * the expected tail, then parents and heads.
 *
 * Invariant: nothing but the operation itself is changed; a refusal leaves the
 * store as it was.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/map.h"
#include "engine/session/session.h"
#include "format/crc32.h"

enum {
    STREAMS = 256
};

#define NO_ENTRY UINT32_MAX

/* The batch as it is decided. */
struct decision {
    struct wal__core *core;
    struct wal__op *op;
    struct wal__append *append;
    struct wal__branch_slot *slot;
    struct wal__map in_batch; /* id hash -> item; of larger batches */
    uint64_t *sequences;      /* of each item, new or found */
    uint64_t sequence;        /* the room for that of a batch of one */
    uint64_t next;
    uint64_t known[STREAMS / 64]; /* a bit for each head that is set */
    uint64_t heads[STREAMS];
};

static struct wal__span payload_of(const struct wal__op *op, uint32_t item)
{
    const struct wal__op_frame *frame = &op->frames[item];
    struct wal__span span = {op->bytes.data + frame->offset + WAL__FRAME_SIZE,
                             frame->frame.stored_size};

    return span;
}

static bool spans_equal(struct wal__span a, struct wal__span b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static struct wal__span parent_of(const struct wal__append *append,
                                  uint32_t item)
{
    struct wal__span span = {append->parents.data +
                                 append->items[item].parent_offset,
                             append->items[item].parent_size};

    return span;
}

/* The head of a stream as it is within the batch. */
static uint64_t *head_of(struct decision *decision, uint32_t stream)
{
    uint64_t bit = (uint64_t)1 << stream % 64;

    if ((decision->known[stream / 64] & bit) == 0) {
        decision->known[stream / 64] |= bit;
        decision->heads[stream] =
            wal__branch_head(&decision->slot->branch, stream);
    }
    return &decision->heads[stream];
}

/* An earlier item of the batch with this id, or NO_ENTRY. */
static uint32_t find_in_batch(const struct decision *decision,
                              struct wal__span id, uint64_t hash)
{
    uint32_t cursor = 0;
    uint32_t item;

    while (wal__map_find(&decision->in_batch, hash, &cursor, &item)) {
        struct wal__entry_record record;

        if (wal__entry_record_decode(payload_of(decision->op, item), &record) ==
                WAL__FMT_OK &&
            spans_equal(record.id, id)) {
            return item;
        }
    }
    return NO_ENTRY;
}

/* Whether the caller gave what is there already. */
static bool same_content(const struct wal__append_item *item,
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
           a.form == b.form && spans_equal(a.type, b.type) &&
           (!item->timed || spans_equal(a.time, b.time)) &&
           spans_equal(a.run, b.run) && spans_equal(a.meta, b.meta) &&
           spans_equal(a.payload, b.payload);
}

static enum wal_status refuse_duplicate(struct decision *decision,
                                        struct wal__span id)
{
    return wal__fail(&decision->op->error, WAL_EEXISTS, 0, NULL, 0,
                     "the entry \"%.*s\" is there with other content",
                     (int)id.size, (const char *)id.data);
}

/* The sequence number of a parent that was named; 0 in *sequence for none. */
static enum wal_status find_parent(struct decision *decision, uint32_t item,
                                   uint64_t *sequence)
{
    struct wal__span id = parent_of(decision->append, item);
    struct wal__found found;
    enum wal_status status;
    uint32_t earlier =
        find_in_batch(decision, id, wal__id_hash(id.data, id.size));

    if (earlier != NO_ENTRY && earlier < item) {
        status = WAL_OK;
        found.sequence = decision->sequences[earlier];
        found.stream = decision->op->frames[earlier].frame.stream;
    } else {
        status = wal__core_find_id(decision->core, decision->append->session,
                                   id, &found, &decision->op->error);
    }
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
static enum wal_status compare(struct decision *decision, uint32_t item,
                               struct wal__span id,
                               const struct wal__found *found)
{
    struct wal__op_frame *frame = &decision->op->frames[item];
    const struct wal__append_item *wanted = &decision->append->items[item];
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
        !same_content(wanted, &frame->frame, payload_of(decision->op, item),
                      &theirs, payload)) {
        status = refuse_duplicate(decision, id);
    }
    wal__buf_deinit(&scratch);
    if (status == WAL_OK) {
        frame->skipped = true;
        decision->sequences[item] = found->sequence;
    }
    return status;
}

/* Whether the item is new; duplicates are compared and skipped. */
static enum wal_status check_item(struct decision *decision, uint32_t item)
{
    struct wal__append *append = decision->append;
    uint64_t hash = append->items[item].id_hash;
    struct wal__entry_record record;
    struct wal__found found;
    enum wal_status status;
    uint32_t earlier;

    if (wal__entry_record_decode(payload_of(decision->op, item), &record) !=
        WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    decision->op->frames[item].skipped = false;
    earlier = find_in_batch(decision, record.id, hash);
    if (earlier != NO_ENTRY && !decision->op->frames[earlier].skipped) {
        if (!same_content(&append->items[item],
                          &decision->op->frames[item].frame,
                          payload_of(decision->op, item),
                          &decision->op->frames[earlier].frame,
                          payload_of(decision->op, earlier))) {
            return refuse_duplicate(decision, record.id);
        }
        decision->op->frames[item].skipped = true;
        decision->sequences[item] = decision->sequences[earlier];
        return WAL_OK;
    }
    status = wal__core_find_id(decision->core, append->session, record.id,
                               &found, NULL);
    if (status == WAL_OK) {
        status = compare(decision, item, record.id, &found);
    } else if (status == WAL_ENOTFOUND) {
        decision->sequences[item] = decision->next;
        decision->next++;
        status = WAL_OK;
    }
    if (status == WAL_OK && decision->op->frame_count > 1) {
        status = wal__map_add(&decision->in_batch, hash, item);
    }
    return status;
}

/* The id of the entry with this sequence, into the answer. */
static void tell_tail(struct decision *decision, uint64_t sequence)
{
    char *out = decision->op->result.actual_tail;
    struct wal__entry_record record;
    struct wal__found found;
    struct wal__frame frame;
    struct wal__span payload;
    struct wal__buf scratch;

    out[0] = '\0';
    if (sequence == 0 ||
        wal__core_find_sequence(decision->core, decision->append->session,
                                decision->op->frames[0].frame.stream, sequence,
                                &found, NULL) != WAL_OK) {
        return;
    }
    wal__buf_init(&scratch, decision->core->env.heap);
    if (wal__log_read(&decision->core->log, found.position, &scratch, &frame,
                      &payload, NULL) == WAL_OK &&
        wal__entry_record_decode(payload, &record) == WAL__FMT_OK) {
        memcpy(out, record.id.data, record.id.size);
        out[record.id.size] = '\0';
    }
    wal__buf_deinit(&scratch);
}

static enum wal_status check_tail(struct decision *decision)
{
    const struct wal__append *append = decision->append;
    struct wal__span expected = {append->expected, append->expected_size};
    uint64_t head = *head_of(decision, decision->op->frames[0].frame.stream);
    uint64_t sequence = 0;
    struct wal__found found;
    enum wal_status status = WAL_OK;

    if (!append->expect) {
        return WAL_OK;
    }
    if (expected.size > 0) {
        status = wal__core_find_id(decision->core, append->session, expected,
                                   &found, &decision->op->error);
        sequence = status == WAL_OK ? found.sequence : UINT64_MAX;
    }
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return status;
    }
    if (sequence == head) {
        return WAL_OK;
    }
    tell_tail(decision, head);
    return wal__fail(&decision->op->error, WAL_ECONFLICT, 0, NULL, 0,
                     "the tail is \"%s\", not \"%.*s\"",
                     decision->op->result.actual_tail, (int)expected.size,
                     (const char *)expected.data);
}

/* Gives a new item its parent, and moves the head where it must. */
static enum wal_status place_item(struct decision *decision, uint32_t item)
{
    const struct wal__append_item *wanted = &decision->append->items[item];
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
static enum wal_status check_twin(struct decision *decision, uint32_t item)
{
    const struct wal__append_item *wanted = &decision->append->items[item];
    struct wal__entry_record record;
    enum wal_status status = WAL_OK;
    uint64_t parent = 0;
    uint32_t first;

    if (wanted->parent_size == 0 && (wanted->flags & WAL_ENTRY_ROOT) == 0) {
        return WAL_OK;
    }
    if (wal__entry_record_decode(payload_of(decision->op, item), &record) !=
        WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    first = find_in_batch(decision, record.id, wanted->id_hash);
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
static void mark_batch(struct wal__op *op)
{
    struct wal__frame *last = NULL;

    for (uint32_t i = 0; i < op->frame_count; i++) {
        if (op->frames[i].skipped) {
            op->result.duplicates++;
            continue;
        }
        if (last == NULL) {
            op->frames[i].frame.flags |= WAL__FRAME_FIRST;
        }
        last = &op->frames[i].frame;
        op->result.appended++;
    }
    if (last != NULL) {
        last->flags |= WAL__FRAME_LAST;
    }
}

static enum wal_status begin(struct decision *decision)
{
    struct wal__core *core = decision->core;
    struct wal__op *op = decision->op;
    struct wal__summary summary;
    enum wal_status status;

    status = wal__catalogue_get(&core->catalogue, decision->append->session,
                                &summary);
    if (status != WAL_OK) {
        return status;
    }
    if ((summary.flags & WAL__SUMMARY_DAMAGED) != 0) {
        return wal__fail(&op->error, WAL_EDAMAGED, 0, NULL, 0,
                         "session \"%.*s\" lost entries to damage; accept "
                         "that before appending",
                         (int)summary.id.size, (const char *)summary.id.data);
    }
    status = wal__core_branch(core, decision->append->session, &decision->slot,
                              &op->error);
    if (status != WAL_OK) {
        return status;
    }
    decision->slot->pins++; /* looking through ancestors drops others */
    decision->next = op->next_sequence;
    decision->sequences = &decision->sequence;
    if (op->frame_count > 1) {
        decision->sequences =
            wal__heap_alloc(core->env.heap, op->frame_count * sizeof(uint64_t));
    }
    return decision->sequences == NULL ? WAL_ENOMEM : WAL_OK;
}

static void end(struct decision *decision)
{
    if (decision->slot != NULL) {
        decision->slot->pins--;
    }
    if (decision->sequences != &decision->sequence) {
        wal__heap_free(decision->op->heap, decision->sequences);
    }
    wal__map_deinit(&decision->in_batch);
}

enum wal_status wal__append_resolve(void *ctx, struct wal__op *op)
{
    struct decision decision;
    enum wal_status status;
    bool news = false;

    memset(&decision, 0, offsetof(struct decision, heads));
    decision.core = ctx;
    decision.op = op;
    decision.append = op->subject;
    wal__map_init(&decision.in_batch, op->heap);
    op->result.appended = 0;
    op->result.duplicates = 0;
    status = begin(&decision);
    for (uint32_t i = 0; i < op->frame_count && status == WAL_OK; i++) {
        status = check_item(&decision, i);
        news |= !op->frames[i].skipped;
    }
    if (status == WAL_OK && news) {
        status = check_tail(&decision);
    }
    for (uint32_t i = 0; i < op->frame_count && status == WAL_OK; i++) {
        if (!op->frames[i].skipped) {
            status = place_item(&decision, i);
        } else if (decision.sequences[i] >= op->next_sequence) {
            status = check_twin(&decision, i);
        }
    }
    if (status == WAL_OK) {
        mark_batch(op);
    } else if (op->error.status != (int32_t)status) {
        wal__fail(&op->error, status, 0, NULL, 0, "%s",
                  wal_status_text(status));
    }
    end(&decision);
    return status;
}
