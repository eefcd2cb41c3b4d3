/*
 * batch_resolve.c - resolves an append under the append lock, when all records
 * appended before it are applied (SPEC.md 5.2): duplicates first, then the
 * expected head, then parents and heads.
 *
 * Invariant: resolving changes the operation only; a rejected operation leaves
 * the store unchanged. Called by the leader, with the state lock for writing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/write/moved.h"
#include "engine/write/write_batch.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

static struct wal__span parent_id(const struct wal__batch *batch, uint32_t item)
{
    return wal__batch_text(batch, batch->entries[item].parent_offset,
                           batch->entries[item].parent_size);
}

/* The head of a stream after the entries resolved so far. */
static uint64_t *stream_head(struct wal__resolver *resolver, uint32_t stream)
{
    uint64_t bit = (uint64_t)1 << stream % 64;

    WAL__ASSERT(stream < WAL__BATCH_STREAMS);
    if ((resolver->heads_loaded[stream / 64] & bit) == 0) {
        resolver->heads_loaded[stream / 64] |= bit;
        resolver->heads[stream] =
            wal__branch_head(&resolver->slot->branch, stream);
    }
    return &resolver->heads[stream];
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

/* Whether the entry equals the existing one, or what compaction left of it; a
 * time counts only if the caller set it. */
static bool same_content(const struct wal__batch_entry *item,
                         const struct wal__frame *frame,
                         struct wal__span payload,
                         const struct wal__frame *existing,
                         struct wal__span existing_payload)
{
    struct wal__entry_record a;
    struct wal__entry_record b;

    if (wal__entry_record_decode(payload, &a) != WAL__FMT_OK ||
        wal__entry_record_decode(existing_payload, &b) != WAL__FMT_OK) {
        return false;
    }
    return frame->stream == existing->stream && frame->kind == existing->kind &&
           a.form == b.form && wal__span_equal(a.type, b.type) &&
           (!item->has_time || wal__span_equal(a.time, b.time)) &&
           wal__span_equal(a.run, b.run) &&
           (b.is_erased ||
            (wal__span_equal(a.meta, b.meta) && same_payload(&a, &b)));
}

static enum wal_status reject_duplicate(struct wal__resolver *resolver,
                                        struct wal__span id)
{
    struct wal_error *error = &resolver->op->error;

    wal__fail(error, WAL_EEXISTS,
              "the entry \"%.*s\" already exists with other content",
              (int)id.size, (const char *)id.data);
    wal__error_set_actual(error, id.data, id.size);
    return WAL_EEXISTS;
}

/* The sequence number of the parent that the entry names; it may be an earlier
 * entry of the batch. */
static enum wal_status find_parent(struct wal__resolver *resolver,
                                   uint32_t item, uint64_t *sequence)
{
    struct wal__span id = parent_id(resolver->batch, item);
    struct wal__entry_location found;
    enum wal_status status =
        wal__resolver_find_entry(resolver, id, item, &found);

    if (status == WAL_OK && found.stream >= WAL__STREAM_COUNT) {
        return wal__core_fail_delta(WAL_ENOPARENT, id, &resolver->op->error);
    }
    if (status == WAL_ENOTFOUND ||
        (status == WAL_OK &&
         found.stream != resolver->op->frames[item].frame.stream)) {
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

/* Compares with the existing entry of the same id: skips an equal one, rejects
 * another. */
static enum wal_status compare_existing(struct wal__resolver *resolver,
                                        uint32_t item, struct wal__span id,
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
    status = wal__log_read(&resolver->core->log, found->position, &scratch,
                           &existing, &payload, &resolver->op->error);
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
    same = same && same_content(entry, &frame->frame,
                                wal__batch_payload(resolver->op, item),
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

/* Whether the entry may be named within the batch: by another entry, by itself,
 * or by a head. */
static bool needs_in_batch_lookup(const struct wal__resolver *resolver,
                                  uint32_t item)
{
    const struct wal__batch *batch = resolver->batch;

    return batch->entry_count > 1 || batch->head_count > 0 ||
           batch->redact_count > 0 ||
           resolver->op->frames[item].frame.kind == WAL__KIND_BRANCH_SUMMARY;
}

/* Assigns a sequence number to a new entry; compares and skips a duplicate. */
static enum wal_status check_duplicate(struct wal__resolver *resolver,
                                       uint32_t item)
{
    struct wal__batch *batch = resolver->batch;
    uint64_t hash = batch->entries[item].id_hash;
    struct wal__entry_record record;
    struct wal__entry_location found;
    enum wal_status status;
    uint32_t earlier;

    WAL__ASSERT(resolver->next >= resolver->op->next_sequence);
    if (wal__entry_record_decode(wal__batch_payload(resolver->op, item),
                                 &record) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    resolver->op->frames[item].skipped = false;
    earlier = wal__resolver_find_in_batch(resolver, record.id);
    if (earlier != WAL__NO_ENTRY && !resolver->op->frames[earlier].skipped) {
        if (!same_content(&batch->entries[item],
                          &resolver->op->frames[item].frame,
                          wal__batch_payload(resolver->op, item),
                          &resolver->op->frames[earlier].frame,
                          wal__batch_payload(resolver->op, earlier))) {
            return reject_duplicate(resolver, record.id);
        }
        resolver->op->frames[item].skipped = true;
        resolver->sequences[item] = resolver->sequences[earlier];
        return WAL_OK;
    }
    status = wal__core_find_id(resolver->core, batch->session, record.id,
                               &found, NULL);
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

static enum wal_status check_expected_head(struct wal__resolver *resolver)
{
    const struct wal__batch *batch = resolver->batch;
    struct wal__span expected = {batch->expected_head,
                                 batch->expected_head_size};
    struct wal_error *error = &resolver->op->error;
    char actual[WAL_ID_SIZE];
    uint32_t stream =
        batch->entry_count == 0 ? 0 : resolver->op->frames[0].frame.stream;
    uint64_t sequence = 0;
    struct wal__entry_location found;
    enum wal_status status = WAL_OK;
    uint64_t head;

    if (!batch->expects_head) {
        return WAL_OK;
    }
    head = *stream_head(resolver, stream);
    if (expected.size > 0) {
        status = wal__core_find_id(resolver->core, batch->session, expected,
                                   &found, error);
        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            return status;
        }
        sequence = status == WAL_OK ? found.sequence : UINT64_MAX;
    }
    if (sequence == head) {
        return WAL_OK;
    }
    status = wal__resolver_read_id(resolver, stream, head, actual);
    if (status != WAL_OK) {
        return status; /* an empty `actual` would mean that there is no tail */
    }
    return wal__conflict(error, WAL_EXPECTATION_TAIL, actual,
                         "the tail is \"%s\", not \"%.*s\"", actual,
                         (int)expected.size, (const char *)expected.data);
}

/* Sets the parent of a new entry, and moves the head unless it is to be
 * kept. */
static enum wal_status assign_parent(struct wal__resolver *resolver,
                                     uint32_t item)
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

/* Checks an entry that repeats an earlier one of the batch: it must name the
 * parent that the first one got. */
static enum wal_status check_repeat_in_batch(struct wal__resolver *resolver,
                                             uint32_t item)
{
    const struct wal__batch_entry *entry = &resolver->batch->entries[item];
    struct wal__entry_record record;
    enum wal_status status = WAL_OK;
    uint64_t parent = 0;
    uint32_t first;

    if (entry->parent_size == 0 && (entry->flags & WAL_ENTRY_ROOT) == 0) {
        return WAL_OK;
    }
    if (wal__entry_record_decode(wal__batch_payload(resolver->op, item),
                                 &record) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    first = wal__resolver_find_in_batch(resolver, record.id);
    WAL__ASSERT(first != WAL__NO_ENTRY && first < item);
    if (entry->parent_size > 0) {
        status = find_parent(resolver, item, &parent);
    }
    if (status == WAL_ENOPARENT ||
        (status == WAL_OK &&
         parent != resolver->op->frames[first].frame.parent)) {
        status = reject_duplicate(resolver, record.id);
    }
    return status;
}

/* Flags the first and the last frame that are written, and counts new entries
 * and duplicates. */
static void set_batch_flags(struct wal__resolver *resolver)
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
                                     const struct wal__summary *summary,
                                     struct wal_error *error)
{
    char actual[16];
    int size =
        snprintf(actual, sizeof(actual), "%" PRIu32, summary->schema_version);

    WAL__ASSERT(size > 0 && (size_t)size < sizeof(actual));
    wal__fail(
        error, WAL_ESCHEMA,
        "session \"%.*s\" has schema version %s; this store was opened for "
        "version %" PRIu32 "%s",
        (int)summary->id.size, (const char *)summary->id.data, actual,
        core->schema_version,
        summary->schema_version < core->schema_version ? ": migrate it first"
                                                       : "");
    wal__error_set_actual(error, actual, (size_t)size);
    return WAL_ESCHEMA;
}

enum wal_status wal__session_check_writable(struct wal__core *core,
                                            uint32_t number, bool is_migration,
                                            struct wal__summary *summary,
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

static enum wal_status begin(struct wal__resolver *resolver)
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
    status = wal__session_check_writable(
        core, batch->session, batch->is_migration, &summary, &op->error);
    if (status == WAL_OK && (summary.flags & WAL__SUMMARY_MOVED) != 0 &&
        !batch->is_copy && !batch->is_migration) {
        status = wal__moved_fail(core, &summary, &op->error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status =
        wal__core_get_branch(core, batch->session, &resolver->slot, &op->error);
    if (status != WAL_OK) {
        return status;
    }
    resolver->slot->pin_count++; /* a lookup in ancestors may evict slots */
    if (batch->entry_count > 1) {
        resolver->sequences = wal__heap_alloc(
            core->env.heap, batch->entry_count * sizeof(uint64_t));
    }
    return resolver->sequences == NULL ? WAL_ENOMEM : WAL_OK;
}

static void end(struct wal__resolver *resolver)
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

/* Resolves the entries: finds duplicates, checks the expected head if any entry
 * is new, then sets parents. */
static enum wal_status resolve_entries(struct wal__resolver *resolver)
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
            status = wal__resolve_reference(resolver, i);
        }
    }
    return status;
}

/* Checks the expected sequence when anything of the batch is new. */
static enum wal_status check_expected_sequence(struct wal__resolver *resolver)
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
    status = wal__catalogue_get(&resolver->core->catalogue, batch->session,
                                &summary);
    return status == WAL_OK
               ? wal__session_check_sequence(&summary, batch->expected_sequence,
                                             &resolver->op->error)
               : status;
}

static enum wal_status resolve_batch(struct wal__resolver *resolver)
{
    enum wal_status status = begin(resolver);

    if (status != WAL_OK) {
        return status;
    }
    status = resolve_entries(resolver);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__resolve_redacts(resolver);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__resolve_docs(resolver);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__resolve_heads(resolver);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__resolve_change(resolver);
    return status == WAL_OK ? check_expected_sequence(resolver) : status;
}

/* Of a store that forgets: accepts the batch, and writes nothing of it. */
static enum wal_status skip_batch(const struct wal__resolver *resolver)
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
    struct wal__resolver resolver;
    enum wal_status status;

    memset(&resolver, 0, offsetof(struct wal__resolver, heads));
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
        WAL__ASSERT(op->result.appended + op->result.duplicates ==
                    resolver.batch->entry_count);
    } else if (op->error.status != (int32_t)status) {
        wal__fail(&op->error, status, "%s", wal_status_text(status));
    }
    end(&resolver);
    return status;
}
