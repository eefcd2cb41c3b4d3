/*
 * reference.c - entries that name others: a compaction what it kept, a branch
 * summary where it comes from, a redaction what it hides (SPEC.md 5.2). Under
 * the lease.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/batch.h"
#include "engine/session/text.h"

/* The text of a member of the payload, as an id. */
static bool read_member(struct wal__span payload, const char *name,
                        uint8_t out[WAL__ID_MAX], struct wal__span *id)
{
    return wal__text_member(payload, name, out, WAL__ID_MAX, id) &&
           id->size > 0;
}

static enum wal_status refuse_member(struct wal__decision *decision,
                                     const char *type, const char *name)
{
    return wal__fail(&decision->op->error, WAL_EINVAL, 0, NULL, 0,
                     "the payload of a %s needs the text %s, an id", type,
                     name);
}

/* Goes up from an entry of the batch to the first one that is not in it;
 * *met: `wanted` was on the way. */
static uint64_t leave_batch(const struct wal__decision *decision,
                            uint32_t entry, uint64_t wanted, bool *met)
{
    uint64_t sequence = decision->op->frames[entry].frame.parent;

    while (entry > 0 && sequence >= decision->op->next_sequence) {
        *met |= sequence == wanted;
        do {
            entry--;
        } while (entry > 0 && (decision->sequences[entry] != sequence ||
                               decision->op->frames[entry].skipped));
        sequence = decision->op->frames[entry].frame.parent;
    }
    *met |= sequence == wanted;
    return sequence;
}

static enum wal_status check_compaction(struct wal__decision *decision,
                                        uint32_t entry,
                                        struct wal__span payload)
{
    uint32_t stream = decision->op->frames[entry].frame.stream;
    struct wal__found found;
    uint8_t text[WAL__ID_MAX];
    struct wal__span id;
    enum wal_status status;
    uint64_t above;
    bool on = false;

    if (!read_member(payload, "firstKeptEntryId", text, &id)) {
        return refuse_member(decision, "compaction_summary",
                             "firstKeptEntryId");
    }
    status = wal__decision_entry(decision, id, entry, &found);
    if (status == WAL_OK) {
        above = leave_batch(decision, entry, found.sequence, &on);
        if (!on && above != 0) {
            status = wal__core_is_on_path(
                decision->core, decision->batch->session, stream, above,
                found.sequence, &on, &decision->op->error);
        }
    }
    if (status == WAL_ENOTFOUND || (status == WAL_OK && !on)) {
        status = wal__fail(&decision->op->error, WAL_ENOTFOUND, 0, NULL, 0,
                           "firstKeptEntryId \"%.*s\" is not on the way from "
                           "the compaction to its root",
                           (int)id.size, (const char *)id.data);
    }
    return status;
}

static enum wal_status check_branch_summary(struct wal__decision *decision,
                                            uint32_t summary,
                                            struct wal__span payload)
{
    struct wal__core *core = decision->core;
    struct wal__summary source;
    struct wal__found found;
    uint8_t session_text[WAL__ID_MAX];
    uint8_t entry_text[WAL__ID_MAX];
    struct wal__span session;
    struct wal__span entry;
    enum wal_status status;

    if (!read_member(payload, "sourceSessionId", session_text, &session)) {
        return refuse_member(decision, "branch_summary", "sourceSessionId");
    }
    if (!read_member(payload, "sourceEntryId", entry_text, &entry)) {
        return refuse_member(decision, "branch_summary", "sourceEntryId");
    }
    status = wal__catalogue_find(&core->catalogue, session, &source);
    if (status == WAL_OK && source.number == decision->batch->session) {
        status = wal__decision_entry(decision, entry, summary + 1, &found);
    } else if (status == WAL_OK) {
        status = wal__core_find_id(core, source.number, entry, &found,
                                   &decision->op->error);
    }
    if (status == WAL_ENOTFOUND) {
        status = wal__fail(&decision->op->error, WAL_ENOTFOUND, 0, NULL, 0,
                           "the source of the branch summary, entry \"%.*s\" "
                           "of session \"%.*s\", does not exist",
                           (int)entry.size, (const char *)entry.data,
                           (int)session.size, (const char *)session.data);
    }
    return status;
}

enum wal_status wal__resolve_reference(struct wal__decision *decision,
                                       uint32_t entry)
{
    uint8_t kind = decision->op->frames[entry].frame.kind;
    struct wal__entry_record record;

    if (kind != WAL__KIND_COMPACTION_SUMMARY &&
        kind != WAL__KIND_BRANCH_SUMMARY) {
        return WAL_OK;
    }
    if (wal__entry_record_decode(wal__batch_payload(decision->op, entry),
                                 &record) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    if (record.form == WAL__ENTRY_LINE) {
        return WAL_OK; /* as it came in */
    }
    return kind == WAL__KIND_COMPACTION_SUMMARY
               ? check_compaction(decision, entry, record.payload)
               : check_branch_summary(decision, entry, record.payload);
}

enum wal_status wal__resolve_redacts(struct wal__decision *decision)
{
    struct wal__batch *batch = decision->batch;
    struct wal__op *op = decision->op;

    for (uint32_t i = 0; i < batch->redact_count; i++) {
        const struct wal__batch_redact *redact = &batch->redacts[i];
        struct wal__op_frame *frame = &op->frames[redact->frame];
        struct wal__redact_record record;
        struct wal__found found;
        enum wal_status status;

        frame->skipped = op->frames[redact->entry].skipped;
        if (frame->skipped) {
            continue;
        }
        if (wal__redact_record_decode(wal__batch_payload(op, redact->frame),
                                      &record) != WAL__FMT_OK) {
            return WAL_EINVAL;
        }
        status = wal__decision_entry(decision, record.target_id,
                                     batch->entry_count, &found);
        if (status == WAL_ENOTFOUND && !redact->required) {
            frame->skipped = true;
            continue;
        }
        if (status != WAL_OK) {
            return status;
        }
        frame->frame.session = found.session;
        frame->frame.stream = (uint8_t)found.stream;
        frame->frame.parent = found.sequence;
        frame->frame.flags = 0;
        decision->next++;
    }
    return WAL_OK;
}
