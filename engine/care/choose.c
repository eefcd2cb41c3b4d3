/*
 * choose.c - chooses the segments to rewrite (compact.h): opens them and their indexes, finds what
 * is live, and weighs each by it.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/care/compact.h"
#include "engine/log/segment.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"

/* --- input ---------------------------------------------------------------- */

/* Copies the index that the store made of a segment whose own is lost. */
static enum wal_status copy_loaded(struct wal__core *core, uint64_t id,
                                   struct wal__index_slot *slot)
{
    const struct wal__index *index;
    struct wal__span bytes = {NULL, 0};
    enum wal_status status = wal__index_set_get(&core->indexes, id, &index);

    if (status != WAL_OK) {
        return status;
    }
    bytes.size = wal__index_size(index->header.session_count, index->header.posting_count,
                                 index->header.text_size);
    slot->id = id;
    slot->owned = wal__heap_alloc(core->env.heap, bytes.size);
    if (slot->owned == NULL) {
        return WAL_ENOMEM;
    }
    memcpy(slot->owned, index->summaries - WAL__INDEX_HEADER_SIZE, bytes.size);
    bytes.data = slot->owned;
    return wal__index_decode(bytes, &slot->index) == WAL__FMT_OK ? WAL_OK : WAL_ENOTFOUND;
}

/* Opens the index of a segment before the tail, for the caller to close. WAL_ENOTFOUND: it has
 * none. */
static enum wal_status compact_input_open(struct wal__core *core, struct wal__segment *segment,
                                          struct wal__compact_input *input)
{
    struct wal__span bytes;
    enum wal_status status = WAL_ENOTFOUND;

    memset(input, 0, sizeof(*input));
    input->segment = segment;
    if (segment->sealed) {
        status = wal__index_read_sealed(segment, &bytes, &input->slot.owned);
        if (status == WAL_OK && wal__index_decode(bytes, &input->slot.index) != WAL__FMT_OK) {
            status = WAL_ENOTFOUND;
        }
    }
    if (status == WAL_ENOTFOUND) {
        wal__index_slot_deinit(&core->env, &input->slot);
        status = wal__index_slot_open(&core->env, segment->id, core->log.uuid, &input->slot);
    }
    if (status == WAL_ENOTFOUND) {
        status = copy_loaded(core, segment->id, &input->slot);
    }
    if (status == WAL_OK && (!wal__index_slot_is_current(&input->slot) ||
                             input->slot.index.header.end != atomic_load(&segment->end))) {
        status = WAL_ENOTFOUND;
    }
    if (status != WAL_OK) {
        wal__index_slot_deinit(&core->env, &input->slot);
    }
    return status;
}

/* --- choosing ------------------------------------------------------------- */

enum {
    ENTRY_HEADER_SIZE = 16,
    ENTRY_SIZES_AT = 8, /* meta_size, payload_size in an ENTRY */
    DOC_HEADER_SIZE = 16,
    DOC_SIZE_AT = 12, /* value_size in a DOC */
    PERCENT = 100
};

/* --- candidates --------------------------------------------------------- */

void wal__compact_count_refusal(const struct wal__compact_options *options,
                                struct wal_store_compact_result *result,
                                const struct wal_error *error)
{
    if (result->refused == 0) {
        result->refusal = *error;
    }
    result->refused++;
    if (options->refused != NULL) {
        options->refused(options->ctx, error);
    }
}

void wal__compact_refuse(struct compaction *compaction, struct candidate *candidate,
                         const struct wal_error *error)
{
    if (candidate->is_refused) {
        return;
    }
    candidate->is_refused = true;
    wal__compact_count_refusal(compaction->options, compaction->result, error);
}

void wal__compact_report_left(const struct wal__compact_options *options,
                              struct wal_store_compact_result *result,
                              const struct wal__segment *segment)
{
    struct wal_error error = {.struct_size = sizeof(error)};

    (void)!wal__fail_at(&error, WAL_ETOOBIG, 0, segment->path, 0,
                        "it may hold what is to be erased, and is beyond the "
                        "limit of bytes to rewrite: erase again");
    wal__compact_count_refusal(options, result, &error);
}

enum wal_status wal__compact_check_rest(struct wal__segment *segment,
                                        const struct wal__index_header *header,
                                        struct wal_error *error)
{
    if (header->commit_offset != 0 ||
        !wal__segment_has_rest(segment, wal__segment_open_end(segment))) {
        return WAL_OK;
    }
    return wal__fail_at(error, WAL_EDAMAGED, 0, segment->path, 0,
                        "a torn write left it without a group, and it may hold what is to be "
                        "erased");
}

void wal__compact_report_all_left(struct compaction *compaction)
{
    for (uint32_t i = 0; i < compaction->count; i++) {
        struct candidate *candidate = &compaction->candidates[i];
        struct wal_error error = {.struct_size = sizeof(error)};

        if (candidate->has_index &&
            wal__compact_check_rest(candidate->input.segment, &candidate->input.slot.index.header,
                                    &error) != WAL_OK) {
            wal__compact_refuse(compaction, candidate, &error);
        }
        if (candidate->has_index && candidate->is_suitable && !candidate->is_refused &&
            !candidate->is_done && candidate->dead_bytes > 0) {
            wal__compact_report_left(compaction->options, compaction->result,
                                     candidate->input.segment);
        }
    }
}

/* `next` is after the segment; NULL: it is the tail. The OPEN of `next` says what is damaged before
 * it; where a torn write left none, a segment with SEAL was whole. */
static bool is_damaged(const struct wal__segment *segment, const struct wal__segment *next)
{
    if (!segment->has_open || next == NULL) {
        return !segment->has_open;
    }
    return next->has_open ? next->open.damage_count > 0 : !segment->sealed;
}

/* Returns whether compaction rewrites such a segment at all. `next` as above.
 */
static bool is_suitable(struct compaction *compaction, struct candidate *candidate,
                        const struct wal__segment *next)
{
    const struct wal__segment *segment = candidate->input.segment;
    struct wal_error error = {.struct_size = sizeof(error)};

    if (candidate->input.slot.index.header.commit_offset == 0) {
        return false; /* a torn write left an OPEN without its COMMIT */
    }
    if (is_damaged(segment, next)) {
        wal__fail_at(&error, WAL_EDAMAGED, 0, segment->path, 0, "the segment is damaged");
        wal__compact_refuse(compaction, candidate, &error);
        return false;
    }
    return true;
}

/* Opens a segment before the tail, or a tail that is sealed. */
static void open_candidate(struct compaction *compaction, uint32_t rank)
{
    struct wal__log *log = &compaction->core->log;
    struct candidate *candidate = &compaction->candidates[rank];
    struct wal_error refusal = {.struct_size = sizeof(refusal)};
    enum wal_status status;

    candidate->input.segment = wal__log_segment_at(log, rank);
    status = compact_input_open(compaction->core, candidate->input.segment, &candidate->input);
    candidate->has_index = status == WAL_OK;
    if (candidate->has_index) {
        candidate->is_suitable = is_suitable(
            compaction, candidate,
            rank + 1 < wal__log_segment_count(log) ? wal__log_segment_at(log, rank + 1) : NULL);
        return;
    }
    wal__fail_at(&refusal, status, 0, candidate->input.segment->path, 0,
                 "the segment has no index that can be read");
    wal__compact_refuse(compaction, candidate, &refusal);
}

/* Opens a tail that is not sealed. When a compaction that changes something chooses, it is no
 * longer the tail. */
static enum wal_status open_tail(struct compaction *compaction, uint32_t rank)
{
    struct wal__core *core = compaction->core;
    struct candidate *candidate = &compaction->candidates[rank];
    struct wal__segment *tail = wal__log_segment_at(&core->log, rank);
    struct wal__index_header header = {.id = tail->id,
                                       .end = atomic_load(&tail->end),
                                       .commit_offset = (uint32_t)core->log.commit_offset};
    struct wal__span bytes;
    enum wal_status status = wal__core_encode_tail_index(core, &header, &compaction->tail_index);

    if (status != WAL_OK) {
        return status;
    }
    bytes.data = compaction->tail_index.data + WAL__FRAME_SIZE;
    bytes.size = compaction->tail_index.size - WAL__FRAME_SIZE;
    if (wal__index_decode(bytes, &candidate->input.slot.index) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    if (candidate->input.slot.index.header.posting_count > 0) {
        candidate->input.segment = tail;
        candidate->has_index = true;
        candidate->is_suitable = is_suitable(compaction, candidate, NULL);
        compaction->count++;
    }
    return WAL_OK;
}

enum wal_status wal__compact_open(struct compaction *compaction, struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    enum wal_status status = wal__core_write_lock(core, error);
    bool has_tail;
    uint32_t count;

    if (status != WAL_OK) {
        return status;
    }
    count = wal__log_segment_count(&core->log);
    has_tail = count > 0 && compaction->options->dry_run;
    compaction->candidates =
        wal__heap_zalloc(core->env.heap, (count + 1) * sizeof(*compaction->candidates));
    if (compaction->candidates == NULL) {
        wal__core_unlock(core);
        return wal__no_memory(error);
    }
    compaction->count = count > 0 ? count - 1 : 0;
    if (has_tail && core->log.tail_segment->sealed) {
        compaction->count = count;
        has_tail = false;
    }
    compaction->generation = wal__log_generation(&core->log);
    for (uint32_t i = 0; i < compaction->count; i++) {
        open_candidate(compaction, i);
    }
    if (has_tail) {
        status = open_tail(compaction, count - 1);
    }
    wal__core_unlock(core);
    compaction->result->segments = compaction->count;
    return status == WAL_OK ? WAL_OK : wal__fail(error, status, "cannot make an index of the tail");
}

enum wal_status wal__compact_open_indexes(struct compaction *compaction, struct wal__core *core,
                                          struct wal_store_compact_result *result,
                                          struct wal_error *error)
{
    static const struct wal__compact_options options = {.dry_run = true};

    *result =
        (struct wal_store_compact_result){.refusal = {.struct_size = sizeof(result->refusal)}};
    *compaction = (struct compaction){.core = core, .options = &options, .result = result};
    wal__buf_init(&compaction->tail_index, core->env.heap);
    return wal__compact_open(compaction, error);
}

void wal__compact_close(struct compaction *compaction)
{
    for (uint32_t i = 0; i < compaction->count; i++) {
        if (compaction->candidates[i].has_index) {
            wal__index_slot_deinit(&compaction->core->env, &compaction->candidates[i].input.slot);
        }
    }
    wal__heap_free(compaction->core->env.heap, compaction->candidates);
    wal__buf_deinit(&compaction->tail_index);
}

/* --- what is live ------------------------------------------------------- */

static enum wal_status build_live_set(struct compaction *compaction, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    wal__live_set_deinit(&compaction->set);
    wal__live_set_init(&compaction->set, compaction->core->env.heap);
    compaction->set.keeps_deltas = compaction->options->keep_deltas;
    compaction->set.erases = compaction->options->erase;
    for (uint32_t i = 0; i < compaction->count && status == WAL_OK; i++) {
        const struct candidate *candidate = &compaction->candidates[i];

        if (candidate->has_index) {
            status = wal__live_set_add(&compaction->set, &candidate->input.slot.index);
        }
        if (status != WAL_OK) {
            wal__fail_at(error, status, 0, candidate->input.segment->path, 0,
                         "cannot read the index of the segment");
        }
    }
    wal__live_set_complete(&compaction->set);
    for (uint32_t i = 0; i < compaction->count; i++) {
        if (!compaction->candidates[i].has_index) {
            wal__live_set_retain_all(&compaction->set); /* not known */
            compaction->knows_dead_documents = true;    /* none */
        }
    }
    /* Once: those that were rewritten since are not read again. */
    if (status == WAL_OK && !compaction->knows_dead_documents) {
        status = wal__dead_documents_find(compaction, &compaction->dead_documents);
        compaction->knows_dead_documents = status == WAL_OK;
    }
    compaction->set.dead_documents = &compaction->dead_documents;
    return status;
}

/* The bytes that erasing takes from a record of a segment of this version, whose payload begins
 * with `first`, or is it: 0 once it is erased. */
static uint64_t erasable_size(const struct wal__frame *frame, struct wal__span first,
                              uint32_t version)
{
    struct wal__session_record session;

    if (frame->type == WAL__FRAME_ENTRY) {
        return first.size < ENTRY_HEADER_SIZE || wal__entry_record_is_erased(first)
                   ? 0
                   : (uint64_t)wal__get32(first.data + ENTRY_SIZES_AT) +
                         wal__get32(first.data + ENTRY_SIZES_AT + 4);
    }
    if (frame->type == WAL__FRAME_DOC) {
        return first.size < DOC_HEADER_SIZE ? 0 : wal__get32(first.data + DOC_SIZE_AT);
    }
    return wal__session_record_decode(first, version, &session) != WAL__FMT_OK
               ? 0
               : (uint64_t)session.cwd.size + session.project.size + session.title.size +
                     session.parent_id.size + session.source.size + session.metadata.size;
}

/* Reads by a record's header how many bytes of it stay and go; both 0: it cannot be read. *scratch
 * holds what is decompressed for it. */
static void weigh_record(struct compaction *compaction, struct wal__record_buf *scratch,
                         const struct candidate *candidate, const struct wal__posting *posting,
                         enum wal__fate fate, uint64_t *kept, uint64_t *dead)
{
    uint32_t peeked = fate != WAL__FATE_ERASE             ? 0
                      : posting->type == WAL__FRAME_ENTRY ? ENTRY_HEADER_SIZE
                      : posting->type == WAL__FRAME_DOC   ? DOC_HEADER_SIZE
                                                          : WAL__FRAME_PAYLOAD_MAX;
    uint64_t erasable = 0;
    struct wal__span first;
    struct wal__frame frame;
    uint64_t size;

    *kept = 0;
    *dead = 0;
    if (wal__log_peek(&compaction->core->log,
                      wal__position(candidate->input.segment->id, posting->offset), peeked, scratch,
                      &frame, &first, NULL) != WAL_OK) {
        return;
    }
    size = wal__frame_total_size(frame.stored_size);
    if (peeked > 0) {
        erasable = erasable_size(&frame, first, candidate->input.segment->header.version);
        erasable = erasable < size ? erasable : size;
    }
    *dead = fate == WAL__FATE_DROP ? size : erasable;
    *kept = size - *dead;
}

/* Sums the sizes of what a candidate has of a session. */
static void weigh_session(struct compaction *compaction, struct wal__record_buf *scratch,
                          struct candidate *candidate, const struct wal__summary *summary)
{
    const struct wal__index *index = &candidate->input.slot.index;

    for (uint32_t k = 0; k < summary->posting_count; k++) {
        struct wal__posting posting;
        enum wal__fate fate;
        uint64_t kept;
        uint64_t dead;

        wal__index_posting(index, summary->first_posting + k, &posting);
        fate = wal__live_set_fate(&compaction->set, summary->number, &posting,
                                  k == 0 && summary->segment == 0);
        if (fate == WAL__FATE_KEEP && compaction->options->session == NULL) {
            continue; /* its size is that of all less that of the dead ones */
        }
        weigh_record(compaction, scratch, candidate, &posting, fate, &kept, &dead);
        candidate->dead_bytes += dead;
        candidate->names_dead_content |= fate == WAL__FATE_ERASE && posting.type == WAL__FRAME_DOC;
        if (compaction->options->session != NULL) {
            wal__space_add_record(&compaction->space, summary->number, &posting, kept, dead);
        }
    }
}

/* Bytes of all records of a segment. */
static uint64_t all_bytes(const struct wal__segment *segment)
{
    return wal__segment_is_rewritten(&segment->header)
               ? segment->header.rewrite.raw_size
               : atomic_load(&segment->end) - WAL__SEGMENT_HEADER_SIZE;
}

/* Sums the sizes of a candidate's live and dead records, and of texts in its index that are
 * dead. */
static enum wal_status weigh(struct compaction *compaction, struct candidate *candidate)
{
    const struct wal__index *index = &candidate->input.slot.index;
    uint64_t all = all_bytes(candidate->input.segment);
    enum wal_status status = WAL_OK;
    struct wal__record_buf scratch;
    uint64_t texts = 0;

    candidate->dead_bytes = 0;
    candidate->names_dead_content = false;
    wal__record_buf_init(&scratch, compaction->core->env.heap);
    for (uint32_t i = 0; i < index->header.session_count && status == WAL_OK; i++) {
        struct wal__summary summary;

        if (wal__index_summary(index, i, &summary) == WAL__FMT_OK) {
            weigh_session(compaction, &scratch, candidate, &summary);
            texts += wal__summary_text_size(&summary);
            wal__live_set_strip(&compaction->set, &summary);
            texts -= wal__summary_text_size(&summary);
        } else {
            status = WAL_ECORRUPT;
        }
    }
    wal__record_buf_deinit(&scratch);
    candidate->live_bytes = all > candidate->dead_bytes ? all - candidate->dead_bytes : 0;
    candidate->dead_bytes += texts;
    return status;
}

static bool is_worth_it(const struct compaction *compaction, const struct candidate *candidate)
{
    const struct wal__compact_options *options = compaction->options;
    uint64_t all = candidate->live_bytes + candidate->dead_bytes;

    if (!wal__segment_is_rewritten(&candidate->input.segment->header) ||
        !wal__encrypt_is_current(compaction->core->env.keyring,
                                 &candidate->input.segment->header)) {
        return true; /* it is compressed, or encrypted by the newest key */
    }
    return options->erase ? candidate->dead_bytes > 0 ||
                                wal__segment_run_may_lose_names(&compaction->core->log)
                          : candidate->names_dead_content ||
                                candidate->dead_bytes * PERCENT > all * options->dead_percent;
}

/* Keeps the SESSION and TOMBSTONE records of deleted sessions that have records in a segment which
 * is not rewritten. */
static enum wal_status retain(struct compaction *compaction, const struct candidate *candidate)
{
    const struct wal__index *index = &candidate->input.slot.index;

    for (uint32_t i = 0; i < index->header.session_count; i++) {
        struct wal__summary summary;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        /* Even a summary without records would bring the session back. */
        wal__live_set_retain(&compaction->set, summary.number);
    }
    return WAL_OK;
}

/* Counts a chosen segment of a dry run. What is in place of it is smaller than its live records and
 * its index, since blocks are compressed. */
static void count_planned(struct compaction *compaction, const struct candidate *candidate)
{
    const struct wal__index_header *header = &candidate->input.slot.index.header;
    struct wal_store_compact_result *result = compaction->result;
    uint64_t capacity = candidate->input.segment->header.capacity;
    uint64_t most =
        candidate->live_bytes +
        wal__index_size(header->session_count, header->posting_count, header->text_size);

    if (!compaction->options->dry_run) {
        return;
    }
    result->rewritten++;
    result->bytes_before += capacity;
    result->bytes_after += most < capacity ? most : capacity;
}

/* Chooses rewritten segments before chosen ones, as long as they are at most twice as large as what
 * follows: each compaction of little makes a small segment, and the chain would grow with their
 * number. A record is copied a logarithmic number of times. */
static void choose_neighbours(struct compaction *compaction, uint64_t *bytes)
{
    uint64_t most = compaction->options->max_bytes;
    uint64_t run = 0; /* size of what is chosen after */

    for (uint32_t i = compaction->count; i > 0; i--) {
        struct candidate *candidate = &compaction->candidates[i - 1];
        uint64_t size = candidate->live_bytes + WAL__SEGMENT_MIN;
        uint64_t capacity = candidate->input.segment->header.capacity;

        if (!candidate->is_chosen && candidate->is_suitable && !candidate->is_refused &&
            !candidate->is_done && size <= 2 * run && size + run <= WAL__COMPACT_RUN_MAX &&
            (most == 0 || *bytes + capacity <= most)) {
            candidate->is_chosen = true;
            *bytes += capacity;
        }
        run = candidate->is_chosen && !candidate->is_done ? run + size : 0;
    }
}

/* Weighs each segment and chooses by it. *bytes: of the chosen ones' files. */
static enum wal_status choose_by_weight(struct compaction *compaction, uint64_t *bytes)
{
    const struct wal__compact_options *options = compaction->options;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < compaction->count && status == WAL_OK; i++) {
        struct candidate *candidate = &compaction->candidates[i];
        uint64_t capacity = candidate->input.segment->header.capacity;

        if (!candidate->has_index || candidate->is_done) {
            continue;
        }
        status = weigh(compaction, candidate);
        candidate->is_chosen = candidate->is_suitable && !candidate->is_refused &&
                               is_worth_it(compaction, candidate) &&
                               (options->max_bytes == 0 || *bytes + capacity <= options->max_bytes);
        compaction->result->dead_bytes += candidate->dead_bytes;
        *bytes += candidate->is_chosen ? capacity : 0;
    }
    return status;
}

enum wal_status wal__compact_choose(struct compaction *compaction, struct wal_error *error)
{
    enum wal_status status = build_live_set(compaction, error);
    uint64_t bytes = 0;

    compaction->result->dead_bytes = 0;
    if (status == WAL_OK) {
        status = wal__live_set_settle(&compaction->set); /* as if all went */
    }
    if (status == WAL_OK) {
        status = choose_by_weight(compaction, &bytes);
    }
    if (status == WAL_OK) {
        choose_neighbours(compaction, &bytes);
    }
    for (uint32_t i = 0; i < compaction->count && status == WAL_OK; i++) {
        struct candidate *candidate = &compaction->candidates[i];

        if (candidate->is_chosen && !candidate->is_done) {
            count_planned(compaction, candidate);
        } else if (candidate->has_index && !candidate->is_done) {
            status = retain(compaction, candidate);
        }
    }
    compaction->total = compaction->done + bytes;
    if (status == WAL_OK) {
        status = wal__live_set_settle(&compaction->set);
    }
    return status == WAL_OK || status == WAL_EIO
               ? status
               : wal__fail(error, status, "cannot choose segments to rewrite");
}
