/*
 * resolve_references.c - resolves entries that name others: the first kept
 * entry of a compaction, the source of a branch summary, the target of a
 * redaction (SPEC.md 5.2). Called by the leader under the append lock, with the
 * state lock for writing.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "engine/write/write_batch.h"
#include "format/bytes/assert.h"

/* Reads a member of the payload as an id, which must not be empty. */
static bool read_member(struct wal__span payload, const char *name,
                        uint8_t out[WAL__ID_MAX], struct wal__span *id)
{
    return wal__text_member(payload, name, out, WAL__ID_MAX, id) &&
           id->size > 0;
}

static enum wal_status reject_member(struct wal__resolver *resolver,
                                     const char *type, const char *name)
{
    return wal__invalid(&resolver->op->error,
                        "the payload of a %s needs the text %s, an id", type,
                        name);
}

/* Walks up from an entry of the batch to its first ancestor outside the batch,
 * or 0; sets *target_seen when `target` was on the way. */
static uint64_t find_stored_ancestor(const struct wal__resolver *resolver,
                                     uint32_t entry, uint64_t target,
                                     bool *target_seen)
{
    uint64_t sequence = resolver->op->frames[entry].frame.parent;

    while (entry > 0 && sequence >= resolver->op->next_sequence) {
        *target_seen |= sequence == target;
        do {
            entry--;
        } while (entry > 0 && (resolver->sequences[entry] != sequence ||
                               resolver->op->frames[entry].skipped));
        sequence = resolver->op->frames[entry].frame.parent;
    }
    *target_seen |= sequence == target;
    return sequence;
}

static enum wal_status check_compaction(struct wal__resolver *resolver,
                                        uint32_t entry,
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
        return reject_member(resolver, "compaction_summary",
                             "firstKeptEntryId");
    }
    status = wal__resolver_find_entry(resolver, id, entry, &found);
    if (status == WAL_OK) {
        ancestor =
            find_stored_ancestor(resolver, entry, found.sequence, &on_path);
        WAL__ASSERT(ancestor < resolver->op->next_sequence);
        if (!on_path && ancestor != 0) {
            status = wal__core_is_on_path(
                resolver->core, resolver->batch->session, stream, ancestor,
                found.sequence, &on_path, &resolver->op->error);
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

static enum wal_status check_branch_summary(struct wal__resolver *resolver,
                                            uint32_t summary,
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
        status = wal__resolver_find_entry(resolver, entry, summary + 1, &found);
    } else if (status == WAL_OK) {
        status = wal__core_find_id(core, source.number, entry, &found,
                                   &resolver->op->error);
    }
    if (status == WAL_OK && found.stream >= WAL__STREAM_COUNT) {
        return wal__core_fail_delta(WAL_ENOTFOUND, entry, &resolver->op->error);
    }
    if (status == WAL_ENOTFOUND) {
        status = wal__fail(&resolver->op->error, WAL_ENOTFOUND,
                           "the source of the branch summary, entry \"%.*s\" "
                           "of session \"%.*s\", does not exist",
                           (int)entry.size, (const char *)entry.data,
                           (int)session.size, (const char *)session.data);
    }
    return status;
}

enum wal_status wal__resolve_reference(struct wal__resolver *resolver,
                                       uint32_t entry)
{
    uint8_t kind = resolver->op->frames[entry].frame.kind;
    struct wal__entry_record record;

    if ((kind != WAL__KIND_COMPACTION_SUMMARY &&
         kind != WAL__KIND_BRANCH_SUMMARY) ||
        resolver->batch->is_copy) {
        return WAL_OK;
    }
    if (wal__entry_record_decode(wal__batch_payload(resolver->op, entry),
                                 &record) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    if (record.form == WAL__ENTRY_LINE) {
        return WAL_OK; /* imported lines are not checked */
    }
    return kind == WAL__KIND_COMPACTION_SUMMARY
               ? check_compaction(resolver, entry, record.payload)
               : check_branch_summary(resolver, entry, record.payload);
}

enum wal_status wal__resolve_redacts(struct wal__resolver *resolver)
{
    struct wal__batch *batch = resolver->batch;
    struct wal__op *op = resolver->op;

    for (uint32_t i = 0; i < batch->redact_count; i++) {
        const struct wal__batch_redact *redact = &batch->redacts[i];
        struct wal__op_frame *frame = &op->frames[redact->frame];
        struct wal__redact_record record;
        struct wal__entry_location found;
        enum wal_status status;

        WAL__ASSERT(redact->entry < batch->entry_count &&
                    redact->frame < op->frame_count);
        frame->skipped = op->frames[redact->entry].skipped;
        if (frame->skipped) {
            continue;
        }
        if (wal__redact_record_decode(wal__batch_payload(op, redact->frame),
                                      &record) != WAL__FMT_OK) {
            return WAL_EINVAL;
        }
        status = wal__resolver_find_entry(resolver, record.target_id,
                                          batch->entry_count, &found);
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
