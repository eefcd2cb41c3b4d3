/*
 * counts.c - what summaries count of a session, against its records: that of each segment's index,
 * and of the catalogue, has those of the index before it and the records since. A rewritten segment
 * lacks records that its summaries count.
 */
#include "engine/session/session.h"
#include "tests/sim/ledger/ledger.h"

struct counts {
    struct wal__core *core;
    struct wal__record_buf scratch;
    uint64_t entries;
    uint64_t documents;
    uint64_t bytes;
    uint64_t last_sequence;
};

static enum wal_status add_record(void *ctx, const struct wal__posting *posting, uint64_t position)
{
    struct counts *counts = ctx;
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status =
        wal__log_peek(&counts->core->log, position, 0, &counts->scratch, &frame, &payload, NULL);

    if (status == WAL_OK) {
        counts->entries += posting->type == WAL__FRAME_ENTRY && posting->stream == 0 &&
                           (posting->flags & WAL__FRAME_PROVISIONAL) == 0;
        counts->documents +=
            posting->type == WAL__FRAME_DOC || posting->type == WAL__FRAME_DOC_DELETE;
        counts->bytes += wal__frame_total_size(frame.stored_size);
        counts->last_sequence = posting->sequence;
    }
    return status;
}

/* `segment`: whose index has the summary; 0: the catalogue has it. */
static void compare(const struct counts *counts, const struct wal__summary *summary,
                    uint64_t segment)
{
    if (summary->entries != counts->entries || summary->documents != counts->documents ||
        summary->bytes != counts->bytes || summary->last_sequence != counts->last_sequence) {
        ledger_fail("session number %u has %llu entries, %llu documents and %llu bytes up to %llu; "
                    "its summary (segment %llu) says %llu, %u, %llu and %llu",
                    summary->number, (unsigned long long)counts->entries,
                    (unsigned long long)counts->documents, (unsigned long long)counts->bytes,
                    (unsigned long long)counts->last_sequence, (unsigned long long)segment,
                    (unsigned long long)summary->entries, summary->documents,
                    (unsigned long long)summary->bytes, (unsigned long long)summary->last_sequence);
    }
}

static enum wal_status add_segment(struct counts *counts, const struct wal__segment *segment,
                                   uint32_t number)
{
    const struct wal__index *index;
    struct wal__summary part;
    enum wal_status status = wal__index_set_get(&counts->core->indexes, segment->id, &index);

    if (status != WAL_OK || wal__index_find(index, number, &part) != WAL__FMT_OK) {
        return status;
    }
    if (wal__segment_is_rewritten(&segment->header)) {
        counts->entries = part.entries;
        counts->documents = part.documents;
        counts->bytes = part.bytes;
        counts->last_sequence = part.last_sequence;
        return WAL_OK;
    }
    status = wal__postings_visit(index->postings + (size_t)part.first_posting * WAL__POSTING_SIZE,
                                 part.posting_count, segment->id, add_record, counts);
    if (status == WAL_OK) {
        compare(counts, &part, segment->id);
    }
    return status;
}

static enum wal_status check_session(struct counts *counts, const struct wal__summary *summary)
{
    const struct wal__log *log = &counts->core->log;
    uint32_t count = wal__log_segment_count(log);
    enum wal_status status = WAL_OK;

    counts->entries = 0;
    counts->documents = 0;
    counts->bytes = 0;
    counts->last_sequence = 0;
    count -= count > 0 && !log->tail_segment->sealed;
    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        status = add_segment(counts, wal__log_segment_at(log, i), summary->number);
    }
    if (status == WAL_OK) {
        status = wal__core_visit_tail(counts->core, summary->number, add_record, counts);
    }
    if (status == WAL_OK) {
        compare(counts, summary, 0);
    }
    return status;
}

void ledger_check_counts(struct wal_store *store)
{
    struct wal__core *core = &store->core;
    struct counts counts = {.core = core};
    enum wal_status status = wal__core_write_lock(core, NULL);

    wal__record_buf_init(&counts.scratch, core->env.heap);
    for (uint64_t i = 1; i <= core->catalogue.last_session && status == WAL_OK; i++) {
        struct wal__summary summary;

        status = wal__catalogue_get(&core->catalogue, (uint32_t)i, &summary);
        if (status == WAL_OK && (summary.flags & WAL__SUMMARY_DELETED) == 0) {
            status = check_session(&counts, &summary);
        }
        status = status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    wal__record_buf_deinit(&counts.scratch);
    if (status != WAL_OK) {
        ledger_fail("counting the records of sessions fails: %d", (int)status);
    }
    wal__core_unlock(core);
}
