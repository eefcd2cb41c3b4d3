/*
 * pack_names.c - which content the log names (pack_names.h).
 *
 * The records are read in the order of the indexes, session by session, which
 * is that of the blocks of rewritten segments.
 */
#include "engine/compact/pack/pack_names.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/compact/compact_job.h"

struct names {
    struct wal__log *log;
    struct wal__pack_live *live;
    struct wal__record_buf scratch;
};

/* Names each list in one of the engine's documents: each JSON text that is a
 * digest. */
static enum wal_status add_lists(struct names *names, struct wal__span value)
{
    enum wal_status status = WAL_OK;
    struct wal__span text = {value.data, 0};

    for (size_t at = 0; at < value.size && status == WAL_OK; at++) {
        struct wal__digest digest;

        if (value.data[at] != '"') {
            text.size++;
            continue;
        }
        if (wal__digest_from_hex(text, &digest)) {
            status = wal__pack_live_name(names->live, &digest, true);
        }
        text.data = value.data + at + 1;
        text.size = 0;
    }
    return status;
}

/* Adds what the payload of an ENTRY or a DOC names. */
static enum wal_status add_names(struct names *names,
                                 const struct wal__frame *frame,
                                 struct wal__span payload)
{
    struct wal__entry_record entry;
    struct wal__doc_record doc;
    struct wal__digest digest;

    if (frame->type == WAL__FRAME_DOC) {
        return wal__doc_record_decode(payload, &doc) == WAL__FMT_OK
                   ? add_lists(names, doc.value)
                   : WAL_ECORRUPT;
    }
    if (wal__entry_record_decode(payload, &entry) != WAL__FMT_OK ||
        entry.digest == NULL) {
        return WAL_ECORRUPT;
    }
    memcpy(digest.bytes, entry.digest, sizeof(digest.bytes));
    return wal__pack_live_name(names->live, &digest, false);
}

/* Whether a record of this type can name content, judged by its beginning. */
static bool may_name(const struct wal__frame *frame, struct wal__span first)
{
    struct wal__span key;

    if (frame->type == WAL__FRAME_DOC) {
        return !wal__doc_record_key(first, &key) || key.size == 0 ||
               key.data[0] == '\0';
    }
    return wal__entry_record_is_blob(first);
}

static enum wal_status read_record(struct names *names,
                                   const struct wal__segment *segment,
                                   const struct wal__posting *posting,
                                   struct wal_error *error)
{
    const uint64_t position = wal__position(segment->id, posting->offset);
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status;

    if (posting->type != WAL__FRAME_ENTRY && posting->type != WAL__FRAME_DOC) {
        return WAL_OK;
    }
    status =
        wal__log_peek(names->log, position,
                      posting->type == WAL__FRAME_ENTRY ? 1 : WAL__DOC_KEY_END,
                      &names->scratch, &frame, &payload, error);
    if (status == WAL_OK && !may_name(&frame, payload)) {
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__log_read(names->log, position, &names->scratch, &frame,
                               &payload, error);
    }
    if (status == WAL_OK) {
        status = add_names(names, &frame, payload);
    }
    return status == WAL_ECORRUPT
               ? wal__fail_at(error, WAL_EDAMAGED, 0, segment->path,
                              posting->offset,
                              "the record is damaged: which content it names "
                              "is not known, and none is dropped")
               : status;
}

static enum wal_status read_segment(struct names *names,
                                    const struct candidate *candidate,
                                    struct wal_error *error)
{
    const struct wal__index *index = &candidate->input.slot.index;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.posting_count && status == WAL_OK;
         i++) {
        struct wal__posting posting;

        wal__index_posting(index, i, &posting);
        status = read_record(names, candidate->input.segment, &posting, error);
    }
    return status;
}

static enum wal_status read_segments(struct names *names,
                                     const struct compaction *compaction,
                                     struct wal__throttle *throttle,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < compaction->count && status == WAL_OK; i++) {
        const struct candidate *candidate = &compaction->candidates[i];

        status = read_segment(names, candidate, error);
        if (status == WAL_OK) {
            status = wal__throttle_spend(
                throttle, candidate->input.segment->header.capacity, error);
        }
    }
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

enum wal_status wal__pack_names_read(struct wal__core *core,
                                     struct wal__throttle *throttle,
                                     struct wal__pack_live *live,
                                     struct wal_error *error)
{
    struct wal__compact_result result;
    struct compaction compaction;
    struct names names = {.log = &core->log, .live = live};
    enum wal_status status;

    wal__record_buf_init(&names.scratch, core->env.heap);
    status = wal__compact_open_indexes(&compaction, core, &result, error);
    if (status == WAL_OK && result.refused > 0) {
        status = WAL_EDAMAGED;
        wal__error_copy(error, &result.refusal);
    }
    if (status == WAL_OK) {
        status = read_segments(&names, &compaction, throttle, error);
    }
    wal__compact_close(&compaction);
    wal__record_buf_deinit(&names.scratch);
    return status;
}
