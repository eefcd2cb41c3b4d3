/*
 * compact.c - rewrites the segments that choose.c has chosen (compact.h).
 *
 * The index of a segment lists the records of each session by sequence, so that walking the indexes
 * of the run together gives the order in which the records are written: session by session. The
 * index of the new segment (SPEC.md 2.12) is built meanwhile, in twice its memory, and compared
 * with the records when they are read back: each is named once, and each name is true.
 *
 * Invariant: runs are rewritten by ascending id, so that a TOMBSTONE goes after everything it ends.
 * When a segment turns out to be damaged, what is live is found anew: the TOMBSTONE of a session
 * stays as long as that segment has records of it.
 */
#include "engine/care/compact.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/care/segment_run.h"
#include "engine/log/locks.h"
#include "engine/log/log.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "engine/store/keys_file.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

/* --- the index ------------------------------------------------------------ */

struct index_builder {
    struct wal__buf summaries;
    struct wal__buf postings;
    struct wal__buf texts;
    uint32_t session_count;
    uint32_t posting_count;
    uint32_t first_posting; /* of the next summary */
    struct wal__buf encoded;
};

static void index_builder_init(struct index_builder *builder, const struct wal__heap *heap)
{
    memset(builder, 0, sizeof(*builder));
    wal__buf_init(&builder->summaries, heap);
    wal__buf_init(&builder->postings, heap);
    wal__buf_init(&builder->texts, heap);
    wal__buf_init(&builder->encoded, heap);
}

static void index_builder_deinit(struct index_builder *builder)
{
    wal__buf_deinit(&builder->summaries);
    wal__buf_deinit(&builder->postings);
    wal__buf_deinit(&builder->texts);
    wal__buf_deinit(&builder->encoded);
}

/* Adds the posting of a record; those of a session one after another, by sequence. */
static enum wal_status index_builder_add_posting(struct index_builder *builder,
                                                 const struct wal__posting *posting,
                                                 struct wal_error *error)
{
    uint8_t bytes[WAL__POSTING_SIZE];

    wal__posting_encode(posting, bytes);
    builder->posting_count++;
    return wal__buf_append(&builder->postings, bytes, sizeof(bytes)) == WAL_OK
               ? WAL_OK
               : wal__no_memory(error);
}

/* Adds the summary of the session whose postings were added since the last summary; sessions
 * ascend. */
static enum wal_status index_builder_add_summary(struct index_builder *builder,
                                                 const struct wal__summary *summary,
                                                 struct wal_error *error)
{
    struct wal__summary copy = *summary;
    size_t text_size = wal__summary_text_size(summary);
    uint8_t *row;
    uint8_t *text;

    if (wal__buf_reserve(&builder->summaries, WAL__SUMMARY_SIZE, &row) != WAL_OK ||
        wal__buf_reserve(&builder->texts, text_size, &text) != WAL_OK) {
        return wal__no_memory(error);
    }
    copy.first_posting = builder->first_posting;
    copy.posting_count = builder->posting_count - copy.first_posting;
    builder->first_posting = builder->posting_count;
    wal__summary_encode(&copy, (uint32_t)builder->texts.size, row, text);
    builder->summaries.size += WAL__SUMMARY_SIZE;
    builder->texts.size += text_size;
    builder->session_count++;
    return WAL_OK;
}

/* Encodes the index with this header, whose counts are set. *index is the writer's, valid until
 * deinit. */
static enum wal_status index_builder_encode(struct index_builder *builder,
                                            struct wal__index_header *header,
                                            struct wal__span *index, struct wal_error *error)
{
    const struct wal__buf *sections[] = {&builder->summaries, &builder->postings, &builder->texts};
    uint64_t size;
    uint8_t *out;
    uint8_t *to;

    header->session_count = builder->session_count;
    header->posting_count = builder->posting_count;
    header->text_size = (uint32_t)builder->texts.size;
    size = wal__index_size(header->session_count, header->posting_count, header->text_size);
    builder->encoded.size = 0;
    if (wal__buf_reserve(&builder->encoded, size, &out) != WAL_OK) {
        return wal__no_memory(error);
    }
    builder->encoded.size = size;
    memset(out, 0, size);
    to = out + WAL__INDEX_HEADER_SIZE;
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (sections[i]->size > 0) {
            memcpy(to, sections[i]->data, sections[i]->size);
        }
        to += sections[i]->size;
    }
    wal__index_finish(header, out);
    *index = (struct wal__span){out, size};
    return WAL_OK;
}

/* --- records and their index ---------------------------------------------- */

struct index_check {
    struct wal__index index;
    uint32_t posting; /* the next one that a record must match */
    uint32_t rank;    /* of the next summary */
    struct wal__summary summary;
};

/* Returns whether the record is the next one that the index names. */
static bool index_check_record(struct index_check *check, const struct wal__frame *frame,
                               uint64_t offset)
{
    struct wal__posting posting;

    if (check->posting == check->index.header.posting_count) {
        return false;
    }
    while (check->posting == check->summary.first_posting + check->summary.posting_count) {
        if (wal__index_summary(&check->index, check->rank, &check->summary) != WAL__FMT_OK) {
            return false;
        }
        check->rank++;
    }
    wal__index_posting(&check->index, check->posting, &posting);
    check->posting++;
    return posting.offset == offset && posting.sequence == frame->sequence &&
           posting.parent == frame->parent && posting.id_hash == frame->id_hash &&
           posting.type == frame->type && posting.flags == frame->flags &&
           posting.kind == frame->kind && posting.stream == frame->stream &&
           check->summary.number == frame->session;
}

/* --- a new segment -------------------------------------------------------- */

/* The index of an input while it is walked. */
struct part {
    const struct wal__compact_input *input;
    uint32_t rank; /* of the next summary */
    bool is_present;
    struct wal__summary summary; /* of the present session */
};

struct rewrite {
    struct wal__core *core;
    const struct wal__live_set *set;
    struct wal__segment_writer *writer; /* while records are copied */
    struct index_builder index;
    struct index_check check;
    bool drops_damaged; /* to erase: records that go need not be readable */
    struct wal__record_buf scratch;
    struct wal__buf erased;  /* a record in another form */
    struct wal__buf remains; /* of its payload */
    struct part *parts;
    uint32_t count;
    uint64_t first_id;         /* of the run, as merged before */
    uint64_t id;               /* of the new segment */
    uint64_t session_position; /* of the present session's newest SESSION */
    struct wal__rewrite_result *result;
};

/* --- records ------------------------------------------------------------ */

/* Encodes what is left of an erased ENTRY: id, type, time and run, and where a compaction
 * begins. */
static enum wal_status encode_erased(struct rewrite *rewrite, uint8_t kind,
                                     struct wal__span payload)
{
    struct wal__entry_record entry;
    enum wal_status status;
    uint8_t *at;
    size_t size;

    if (wal__entry_record_decode(payload, &entry) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    rewrite->result->erased += !entry.is_erased;
    rewrite->remains.size = 0;
    status = wal__payload_append_remains(entry.payload, kind, &rewrite->remains);
    if (status != WAL_OK) {
        return status;
    }
    wal__entry_record_erase(&entry);
    entry.payload.data = rewrite->remains.data;
    entry.payload.size = rewrite->remains.size;
    size = wal__entry_record_size(&entry);
    status = wal__buf_reserve(&rewrite->erased, size, &at);
    if (status == WAL_OK) {
        wal__entry_record_encode(&entry, at);
        rewrite->erased.size = size;
    }
    return status;
}

/* Encodes a SESSION of a segment of any version as one of this version; to erase, only its id,
 * times and flags. */
static enum wal_status encode_session(struct rewrite *rewrite, uint32_t version, bool erases,
                                      struct wal__span payload)
{
    struct wal__session_record session;
    struct wal__span *texts[] = {&session.cwd,       &session.project, &session.title,
                                 &session.parent_id, &session.source,  &session.metadata};
    enum wal_status status;
    uint8_t *at;
    size_t size;

    if (wal__session_record_decode(payload, version, &session) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    for (size_t i = 0; erases && i < sizeof(texts) / sizeof(texts[0]); i++) {
        texts[i]->size = 0;
    }
    /* Version 0 has none; migrating wrote one that replaces this record, unless the session was
     * deleted. */
    session.schema_version = session.schema_version == 0 ? 1 : session.schema_version;
    size = wal__session_record_size(&session);
    status = wal__buf_reserve(&rewrite->erased, size, &at);
    if (status == WAL_OK) {
        wal__session_record_encode(&session, at);
        rewrite->erased.size = size;
    }
    return status;
}

/* Encodes what is left of a version of a document: that it is no more. */
static enum wal_status encode_deletion(struct rewrite *rewrite, struct wal__frame *frame,
                                       struct wal__span payload)
{
    struct wal__doc_record doc;
    enum wal_status status;
    uint8_t *at;
    size_t size;

    if (wal__doc_record_decode(payload, &doc) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    frame->type = WAL__FRAME_DOC_DELETE;
    doc.value.size = 0;
    size = wal__doc_record_size(&doc);
    status = wal__buf_reserve(&rewrite->erased, size, &at);
    if (status == WAL_OK) {
        wal__doc_record_encode(&doc, at);
        rewrite->erased.size = size;
    }
    return status;
}

/* Replaces the payload by what stays of it, in this version's form. */
static enum wal_status change_payload(struct rewrite *rewrite, uint32_t version,
                                      enum wal__fate fate, struct wal__frame *frame,
                                      struct wal__span *payload, struct wal_error *error)
{
    bool erases = fate == WAL__FATE_ERASE;
    enum wal_status status;

    if (!erases && (version == WAL__FORMAT_VERSION || frame->type != WAL__FRAME_SESSION)) {
        return WAL_OK;
    }
    rewrite->erased.size = 0;
    status = frame->type == WAL__FRAME_SESSION ? encode_session(rewrite, version, erases, *payload)
             : frame->type == WAL__FRAME_DOC   ? encode_deletion(rewrite, frame, *payload)
                                               : encode_erased(rewrite, frame->kind, *payload);
    if (status != WAL_OK) {
        return wal__fail(error, status, "cannot change a record");
    }
    payload->data = rewrite->erased.data;
    payload->size = rewrite->erased.size;
    frame->data_crc = wal__crc32(0, payload->data, payload->size);
    return WAL_OK;
}

static enum wal_status read_record(struct rewrite *rewrite, const struct part *part,
                                   const struct wal__posting *posting, struct wal__frame *frame,
                                   struct wal__span *payload, struct wal_error *error)
{
    const struct wal__segment *segment = part->input->segment;
    enum wal_status status =
        wal__log_read(&rewrite->core->log, wal__position(segment->id, posting->offset),
                      &rewrite->scratch, frame, payload, error);

    if (status == WAL_OK &&
        (frame->type != posting->type || frame->sequence != posting->sequence)) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, segment->path, posting->offset,
                              "the index names another record here");
    }
    return status;
}

/* Leaves the record out. Unless that is to erase it, one that is damaged keeps its segment from
 * being rewritten: no damage disappears unreported. */
static enum wal_status drop_record(struct rewrite *rewrite, const struct part *part,
                                   const struct wal__posting *posting, struct wal_error *error)
{
    struct wal__span payload;
    struct wal__frame frame;

    rewrite->result->dropped++;
    return rewrite->drops_damaged ? WAL_OK
                                  : read_record(rewrite, part, posting, &frame, &payload, error);
}

static enum wal_status copy_record(struct rewrite *rewrite, const struct part *part,
                                   const struct wal__posting *posting, enum wal__fate fate,
                                   struct wal_error *error)
{
    struct wal__posting copy = *posting;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = read_record(rewrite, part, posting, &frame, &payload, error);

    if (status == WAL_OK) {
        status = change_payload(rewrite, part->input->segment->header.version, fate, &frame,
                                &payload, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_writer_add(rewrite->writer, &frame, payload, &copy.offset, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    copy.type = frame.type;
    copy.flags |= WAL__FRAME_REWRITTEN;
    if (copy.type == WAL__FRAME_SESSION) {
        rewrite->session_position = wal__position(rewrite->id, copy.offset);
    }
    rewrite->result->kept++;
    return index_builder_add_posting(&rewrite->index, &copy, error);
}

static enum wal_status copy_part(struct rewrite *rewrite, const struct part *part,
                                 struct wal_error *error)
{
    const struct wal__index *index = &part->input->slot.index;
    const struct wal__summary *summary = &part->summary;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < summary->posting_count && status == WAL_OK; i++) {
        struct wal__posting posting;
        enum wal__fate fate;

        wal__index_posting(index, summary->first_posting + i, &posting);
        fate = wal__live_set_fate(rewrite->set, summary->number, &posting,
                                  i == 0 && summary->segment == 0);
        status = fate == WAL__FATE_DROP ? drop_record(rewrite, part, &posting, error)
                                        : copy_record(rewrite, part, &posting, fate, error);
    }
    return status;
}

/* Adds the summary that the last part has, as of the whole run. */
static enum wal_status add_summary(struct rewrite *rewrite, const struct part *first,
                                   const struct part *last, struct wal_error *error)
{
    struct wal__summary summary = last->summary;
    uint64_t segment = wal__position_segment(summary.session_position);

    summary.segment = first->summary.segment;
    if (segment >= rewrite->first_id && segment <= rewrite->id) {
        summary.session_position = rewrite->session_position;
    }
    wal__live_set_strip(rewrite->set, &summary);
    return index_builder_add_summary(&rewrite->index, &summary, error);
}

/* Copies what the run has of one session. */
static enum wal_status copy_session(struct rewrite *rewrite, uint32_t number,
                                    struct wal_error *error)
{
    const struct part *first = NULL;
    const struct part *last = NULL;
    bool is_purged = wal__live_set_is_purged(rewrite->set, number);
    enum wal_status status = WAL_OK;

    rewrite->session_position = 0;
    for (uint32_t i = 0; i < rewrite->count && status == WAL_OK; i++) {
        struct part *part = &rewrite->parts[i];

        if (!part->is_present || part->summary.number != number) {
            continue;
        }
        first = first == NULL ? part : first;
        last = part;
        status = copy_part(rewrite, part, error);
    }
    WAL__ASSERT(first != NULL);
    return status == WAL_OK && !is_purged ? add_summary(rewrite, first, last, error) : status;
}

/* Moves to the next summary. */
static enum wal_status step(struct part *part, struct wal_error *error)
{
    const struct wal__index *index = &part->input->slot.index;

    part->is_present = part->rank < index->header.session_count;
    if (part->is_present && wal__index_summary(index, part->rank, &part->summary) != WAL__FMT_OK) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, part->input->segment->path, 0,
                            "the index of the segment is damaged");
    }
    part->rank++;
    return WAL_OK;
}

static enum wal_status copy_sessions(void *ctx, struct wal__segment_writer *writer,
                                     struct wal_error *error)
{
    struct rewrite *rewrite = ctx;
    enum wal_status status = WAL_OK;

    rewrite->writer = writer;
    for (uint32_t i = 0; i < rewrite->count && status == WAL_OK; i++) {
        status = step(&rewrite->parts[i], error);
    }
    while (status == WAL_OK) {
        bool found = false;
        uint32_t number = 0;

        for (uint32_t i = 0; i < rewrite->count; i++) {
            const struct part *part = &rewrite->parts[i];

            if (part->is_present && (!found || part->summary.number < number)) {
                number = part->summary.number;
                found = true;
            }
        }
        if (!found) {
            break;
        }
        status = copy_session(rewrite, number, error);
        for (uint32_t i = 0; i < rewrite->count && status == WAL_OK; i++) {
            struct part *part = &rewrite->parts[i];

            if (part->is_present && part->summary.number == number) {
                status = step(part, error);
            }
        }
    }
    return status;
}

static enum wal_status encode_index(void *ctx, struct wal__index_header *header,
                                    struct wal__span *index, struct wal_error *error)
{
    struct rewrite *rewrite = ctx;

    header->last_session = rewrite->parts[rewrite->count - 1].input->slot.index.header.last_session;
    return index_builder_encode(&rewrite->index, header, index, error);
}

/* --- reading back ------------------------------------------------------- */

static bool check_index(void *ctx, struct wal__span index)
{
    struct rewrite *rewrite = ctx;

    memset(&rewrite->check, 0, sizeof(rewrite->check));
    return wal__index_decode(index, &rewrite->check.index) == WAL__FMT_OK;
}

static bool check_record(void *ctx, const struct wal__frame *frame, uint64_t offset,
                         struct wal__span payload)
{
    struct rewrite *rewrite = ctx;

    (void)payload; /* its checksum was verified */
    return index_check_record(&rewrite->check, frame, offset);
}

static bool check_end(void *ctx)
{
    const struct rewrite *rewrite = ctx;

    return rewrite->check.posting == rewrite->check.index.header.posting_count;
}

/* --- the whole ---------------------------------------------------------- */

static enum wal_status write_run(struct rewrite *rewrite,
                                 const struct wal__segment_run_options *options,
                                 struct wal_error *error)
{
    const struct wal__segment_run_client client = {rewrite,     copy_sessions, encode_index,
                                                   check_index, check_record,  check_end};
    const struct wal__heap *heap = rewrite->core->env.heap;
    const struct wal__compact_input *last = rewrite->parts[rewrite->count - 1].input;
    struct wal__segment **segments = wal__heap_alloc(heap, rewrite->count * sizeof(*segments));
    struct wal__segment_run run = {
        .log = &rewrite->core->log,
        .segments = segments,
        .count = rewrite->count,
        .last_index = &last->slot.index.header,
        .options = options,
    };
    enum wal_status status;

    if (segments == NULL) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; i < rewrite->count; i++) {
        segments[i] = rewrite->parts[i].input->segment;
    }
    rewrite->first_id = wal__segment_run_first_id(&run);
    rewrite->id = last->segment->id;
    status = wal__segment_run_rewrite(&run, &client, &rewrite->result->run, error);
    wal__heap_free(heap, segments);
    return status;
}

/* Rewrites `count` neighbours, ascending. WAL_ECORRUPT: a record is damaged, error->file names the
 * segment; WAL_ETOOBIG; WAL_ENOSPACE, WAL_EIO, WAL_ENOMEM. On failure the segments are as they
 * were, unless result->run.is_replaced. */
static enum wal_status rewrite_segments(struct wal__core *core, const struct wal__live_set *set,
                                        const struct wal__compact_input *inputs, uint32_t count,
                                        const struct wal__segment_run_options *options,
                                        struct wal__rewrite_result *result, struct wal_error *error)
{
    const struct wal__heap *heap = core->env.heap;
    struct rewrite rewrite = {
        .core = core,
        .set = set,
        .parts = wal__heap_zalloc(heap, count * sizeof(struct part)),
        .count = count,
        .drops_damaged = options->drops_damaged,
        .result = result,
    };
    enum wal_status status;

    memset(result, 0, sizeof(*result));
    if (rewrite.parts == NULL) {
        return wal__no_memory(error);
    }
    wal__record_buf_init(&rewrite.scratch, heap);
    wal__buf_init(&rewrite.erased, heap);
    wal__buf_init(&rewrite.remains, heap);
    index_builder_init(&rewrite.index, heap);
    for (uint32_t i = 0; i < count; i++) {
        rewrite.parts[i].input = &inputs[i];
    }
    status = write_run(&rewrite, options, error);
    index_builder_deinit(&rewrite.index);
    wal__buf_deinit(&rewrite.erased);
    wal__buf_deinit(&rewrite.remains);
    wal__record_buf_deinit(&rewrite.scratch);
    wal__heap_free(heap, rewrite.parts);
    return status;
}

/* --- the compaction ------------------------------------------------------- */

enum { PUBLISH_ATTEMPTS = 3, READER_POLL_NS = 50000000 };

static const uint64_t reader_wait_ns = UINT64_C(3000000000);

/* --- rewriting ---------------------------------------------------------- */

/* The length of the run of chosen neighbours that begins at a rank. */
static uint32_t run_length(const struct compaction *compaction, uint32_t from)
{
    uint64_t bytes = 0;
    uint32_t count = 0;

    while (from + count < compaction->count) {
        const struct candidate *candidate = &compaction->candidates[from + count];

        if (!candidate->is_chosen || candidate->is_done ||
            (count > 0 && bytes + candidate->live_bytes > WAL__COMPACT_RUN_MAX)) {
            break;
        }
        bytes += candidate->live_bytes;
        count++;
    }
    return count;
}

static enum wal_status rewrite_run(struct compaction *compaction, uint32_t from, uint32_t count,
                                   struct wal_error *error)
{
    struct wal_store_compact_result *result = compaction->result;
    struct wal__core *core = compaction->core;
    struct wal__segment_run_options options = compaction->options->rewrite;
    struct wal__rewrite_result rewritten;
    struct wal__compact_input *inputs = wal__heap_alloc(core->env.heap, count * sizeof(*inputs));
    enum wal_status status;

    if (inputs == NULL) {
        return wal__no_memory(error);
    }
    options.generation = ++compaction->generation;
    for (uint32_t i = 0; i < count; i++) {
        inputs[i] = compaction->candidates[from + i].input;
    }
    options.drops_damaged = compaction->options->erase;
    options.throttle = &compaction->throttle;
    status = rewrite_segments(core, &compaction->set, inputs, count, &options, &rewritten, error);
    wal__heap_free(core->env.heap, inputs);
    if (!rewritten.run.is_replaced) {
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        compaction->candidates[from + i].is_done = true;
    }
    result->rewritten += count;
    result->bytes_before += rewritten.run.bytes_read;
    result->bytes_after += rewritten.run.bytes_written;
    result->kept_records += rewritten.kept;
    result->dropped_records += rewritten.dropped;
    result->erased_records += rewritten.erased;
    compaction->done += rewritten.run.bytes_read;
    return status;
}

/* Returns whether a run failed for what is in one of its segments, which it did not replace: then
 * this one is left out. */
static bool refuse_damaged(struct compaction *compaction, uint32_t from, uint32_t count,
                           enum wal_status status, const struct wal_error *error)
{
    if (status != WAL_ECORRUPT && status != WAL_EIO && status != WAL_ETOOBIG) {
        return false;
    }
    for (uint32_t i = from; i < from + count; i++) {
        struct candidate *candidate = &compaction->candidates[i];

        if (candidate->is_done) {
            return false;
        }
        if (count == 1 || strcmp(error->file, candidate->input.segment->path) == 0) {
            wal__compact_refuse(compaction, candidate, error);
            return true;
        }
    }
    return false;
}

/* Rewrites the chosen segments. *again: one was left out, and what is live must be found anew. */
static enum wal_status rewrite_chosen(struct compaction *compaction, bool *again,
                                      struct wal_error *error)
{
    /* The caller's error may be NULL, or not have the field `file`. */
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status = WAL_OK;
    uint32_t at = 0;

    *again = false;
    wal__throttle_expect(&compaction->throttle, compaction->done, compaction->total);
    while (at < compaction->count && status == WAL_OK && !*again) {
        uint32_t count = run_length(compaction, at);

        if (count == 0) {
            at++;
            continue;
        }
        status = rewrite_run(compaction, at, count, &own);
        if (status != WAL_OK) {
            *again = refuse_damaged(compaction, at, count, status, &own);
            if (!*again) {
                wal__error_copy(error, &own);
                return status;
            }
            status = WAL_OK;
            continue;
        }
        at += count;
        status =
            wal__throttle_report(&compaction->throttle, compaction->done, compaction->total, error);
    }
    return status;
}

/* Notes when there is no rewritten segment whose name may be lost. */
static void settle_names(const struct compaction *compaction)
{
    bool all = true;

    for (uint32_t i = 0; i < compaction->count; i++) {
        const struct candidate *candidate = &compaction->candidates[i];

        all = all &&
              (candidate->is_done || !wal__segment_is_rewritten(&candidate->input.segment->header));
    }
    if (all) {
        wal__segment_run_names_renewed(&compaction->core->log);
    }
}

/* Opens the new segments, writes the catalogue that goes with them, and makes other processes do
 * the former. Erasing removes the old catalogue first. */
static enum wal_status publish_once(struct compaction *compaction, bool *is_written,
                                    struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    bool erases = compaction->options->erase;
    enum wal_status status = WAL_OK;

    if (compaction->result->rewritten == 0 && !erases) {
        return WAL_OK;
    }
    if (erases) {
        status = wal__core_drop_catalogue(core, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    pthread_rwlock_wrlock(&core->state);
    core->log.needs_reload = true;
    core->writes_catalogue = true;
    pthread_rwlock_unlock(&core->state);
    status = wal__core_write_lock(core, error);
    if (status == WAL_OK) {
        core->writes_catalogue = false;
        *is_written = core->catalogue.snapshot != NULL;
        /* This process has them. */
        core->log.rewrites = atomic_fetch_add(&core->log.shared->rewrites, 1) + 1;
        wal__core_unlock(core);
    }
    return status;
}

/* The catalogue of a process that began to write one before, which may have what was erased, does
 * not stay: after erasing there is that of this compaction, which no older one replaces, or
 * none. */
static enum wal_status publish(struct compaction *compaction, struct wal_error *error)
{
    bool erases = compaction->options->erase;
    bool is_written = false;
    enum wal_status status = WAL_OK;

    for (int i = 0; i < PUBLISH_ATTEMPTS && status == WAL_OK && (i == 0 || erases) && !is_written;
         i++) {
        status = publish_once(compaction, &is_written, error);
    }
    return status == WAL_OK && erases && !is_written
               ? wal__core_drop_catalogue(compaction->core, error)
               : status;
}

/* --- a dry run ---------------------------------------------------------- */

/* Lists what each session has. */
static enum wal_status list_sessions(struct compaction *compaction, struct wal_error *error)
{
    const struct wal__compact_options *options = compaction->options;
    struct wal__space *space = &compaction->space;
    enum wal_status status = WAL_OK;

    wal__space_finish(space, &compaction->set);
    for (uint32_t i = 0; i < space->limit && status == WAL_OK; i++) {
        const struct wal__session_space *slot = &space->slots[i];
        struct wal__summary summary;

        if (slot->index == 0 || (slot->own | slot->seen | slot->reclaimable) == 0) {
            continue;
        }
        if (wal__index_summary(&compaction->candidates[slot->index - 1].input.slot.index,
                               slot->rank, &summary) != WAL__FMT_OK) {
            status = wal__fail(error, WAL_ECORRUPT, "cannot read the index of a segment");
        } else if (!options->session(options->ctx, &summary, slot)) {
            status = wal__fail(error, WAL_ECALLBACK, "stopped by the caller");
        }
    }
    return status;
}

static enum wal_status begin_sessions(struct compaction *compaction, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < compaction->count && status == WAL_OK; i++) {
        const struct candidate *candidate = &compaction->candidates[i];

        if (candidate->has_index) {
            status = wal__space_add_index(&compaction->space, &candidate->input.slot.index, i);
        }
    }
    wal__space_begin_records(&compaction->space);
    return status == WAL_OK ? WAL_OK : wal__fail(error, status, "cannot list the sessions");
}

static enum wal_status plan(struct compaction *compaction, struct wal_error *error)
{
    bool lists = compaction->options->session != NULL;
    enum wal_status status = wal__compact_open(compaction, error);

    if (status == WAL_OK && lists) {
        status = begin_sessions(compaction, error);
    }
    if (status == WAL_OK) {
        status = wal__compact_choose(compaction, error);
    }
    if (status == WAL_OK && lists) {
        status = list_sessions(compaction, error);
    }
    return status == WAL_OK ? wal__pack_compact(compaction->core, compaction->options,
                                                &compaction->throttle, compaction->result, error)
                            : status;
}

/* Returns whether the tail has no record: ending it would add an empty segment to the chain.
 * Erasing ends it nevertheless, for what is beyond its end. */
static enum wal_status needs_rotation(struct compaction *compaction, bool *needed,
                                      struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    const struct wal__log *log = &core->log;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status == WAL_OK) {
        *needed = compaction->options->erase || log->must_rotate ||
                  (log->tail_segment != NULL &&
                   (!log->tail_segment->has_open ||
                    log->tail_segment->open.last_sequence != log->last_sequence ||
                    !wal__encrypt_is_current(core->env.keyring, &log->tail_segment->header)));
        wal__core_unlock(core);
    }
    return status;
}

/* Reports a segment that is not in the log and cannot be removed. */
struct unlinked {
    struct compaction *compaction;
    const struct wal__log *log;
};

static void report_unlinked(void *ctx, uint64_t id)
{
    const struct unlinked *unlinked = ctx;
    struct wal_error error = {.struct_size = sizeof(error)};
    char path[WAL__PATH_MAX];

    wal__segment_path(unlinked->log->env, unlinked->log->directory, id, path);
    (void)!wal__fail_at(&error, WAL_EDAMAGED, 0, path, 0,
                        "it is not in the log, and may hold what is to be "
                        "erased");
    wal__compact_count_refusal(unlinked->compaction->options, unlinked->compaction->result, &error);
}

/* Removes the segments of attempts that failed, before their successors, of which they have copies,
 * are rewritten; of both streams. */
static enum wal_status remove_unlinked(struct compaction *compaction, struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    struct unlinked of_log = {compaction, &core->log};
    struct unlinked of_pack = {compaction, &core->blobs.log};
    enum wal_status status = wal__core_write_lock(core, error);

    if (status == WAL_OK) {
        status = core->log.tail_segment == NULL
                     ? WAL_OK
                     : wal__log_remove_unlinked(&core->log, report_unlinked, &of_log, error);
        wal__core_unlock(core);
    }
    if (status == WAL_OK) {
        status = wal__blob_store_write_lock(&core->blobs, error);
    }
    if (status == WAL_OK) {
        status = core->blobs.log.tail_segment == NULL
                     ? WAL_OK
                     : wal__log_remove_unlinked(&core->blobs.log, report_unlinked, &of_pack, error);
        wal__blob_store_unlock(&core->blobs);
    }
    return status;
}

/* Removes what compactions left that were cut short, of both streams. */
static enum wal_status remove_leftovers(struct wal__core *core, struct wal_error *error)
{
    enum wal_status status = wal__core_write_lock(core, error);

    if (status == WAL_OK) {
        status = wal__log_remove_compacted(&core->log, error);
        wal__core_unlock(core);
    }
    if (status != WAL_OK || core->blobs.log.tail_segment == NULL) {
        return status;
    }
    status = wal__blob_store_write_lock(&core->blobs, error);
    if (status == WAL_OK) {
        status = wal__log_remove_compacted(&core->blobs.log, error);
        wal__blob_store_unlock(&core->blobs);
    }
    return status;
}

/* --- titles -------------------------------------------------------------- */

static enum wal_status forget_titles_of(struct wal__core *core, const struct wal__index *index,
                                        struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.session_count && status == WAL_OK; i++) {
        struct wal__summary summary;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            continue; /* its segment is refused */
        }
        for (uint32_t k = 0; k < summary.posting_count && status == WAL_OK; k++) {
            struct wal__posting posting;

            wal__index_posting(index, summary.first_posting + k, &posting);
            if (posting.type == WAL__FRAME_REDACT) {
                status = wal__session_forget_titles(core, summary.number, posting.stream,
                                                    posting.parent, error);
            }
        }
    }
    return status;
}

/* Takes the titles that redacted entries gave, as long as it is known which:
 * a redaction may have been cut short, or older than this rule, and a title
 * may have been given again since. */
static enum wal_status forget_titles(struct wal__core *core, struct wal_error *error)
{
    struct wal_store_compact_result result;
    struct compaction compaction;
    enum wal_status status = wal__compact_open_indexes(&compaction, core, &result, error);

    for (uint32_t i = 0; i < compaction.count && status == WAL_OK; i++) {
        if (compaction.candidates[i].has_index) {
            status = forget_titles_of(core, &compaction.candidates[i].input.slot.index, error);
        }
    }
    wal__compact_close(&compaction);
    return status;
}

/* --- keys ---------------------------------------------------------------- */

struct retirement {
    struct wal__keyring *keyring;
    struct wal__keys_in_use in_use;
    bool erases;
};

static void note_keys(struct retirement *retirement, const struct wal__log *log, uint32_t stream)
{
    for (uint32_t i = 0; i < wal__log_segment_count(log); i++) {
        wal__keys_note_use(&retirement->in_use, stream, &wal__log_segment_at(log, i)->header);
    }
}

static enum wal_status retire(void *ctx, struct wal_error *error)
{
    const struct retirement *retirement = ctx;

    return wal__keys_retire(retirement->keyring, &retirement->in_use, retirement->erases, error);
}

/* Removes what KEYS need not have any more. */
static enum wal_status retire_keys(struct wal__core *core, bool erases, struct wal_error *error)
{
    struct retirement retirement = {.keyring = core->env.keyring, .erases = erases};
    enum wal_status status;

    if (core->env.keyring == NULL) {
        return WAL_OK;
    }
    retirement.in_use.newest = wal__encrypt_newest_id(core->env.keyring);
    status = wal__core_read_lock(core, error);
    if (status == WAL_OK) {
        note_keys(&retirement, &core->log, 0);
        wal__core_unlock(core);
        status = wal__blob_store_read_lock(&core->blobs, error);
    }
    if (status == WAL_OK) {
        note_keys(&retirement, &core->blobs.log, 1);
        wal__blob_store_unlock(&core->blobs);
        status = wal__committer_call(&core->committer, retire, &retirement, error);
    }
    return status;
}

/* --- the whole ---------------------------------------------------------- */

static enum wal_status compact(struct compaction *compaction, struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    bool again = true;
    enum wal_status published;
    bool needed = false;
    enum wal_status status = compaction->options->erase ? forget_titles(core, error) : WAL_OK;

    if (status == WAL_OK) {
        status = wal__keyring_reload(core->env.keyring, error);
    }
    if (status == WAL_OK) {
        status = needs_rotation(compaction, &needed, error);
    }
    if (status == WAL_OK && needed) {
        status = wal__committer_rotate(&core->committer, error);
    }
    if (status == WAL_OK) {
        /* Of one that was killed, other processes do not know what it replaced, and no other one
         * replaces anything now. */
        pthread_rwlock_wrlock(&core->state);
        core->log.needs_reload = true;
        pthread_rwlock_unlock(&core->state);
        status = compaction->options->erase ? remove_unlinked(compaction, error) : WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__compact_open(compaction, error);
    }
    if (status == WAL_OK) {
        status = wal__core_require_feature(core, WAL__INCOMPAT_REWRITTEN, error);
    }
    if (status == WAL_OK) {
        settle_names(compaction); /* nothing may have been rewritten yet */
    }
    while (status == WAL_OK && again) {
        status = wal__compact_choose(compaction, error);
        again = false;
        if (status == WAL_OK) {
            status = rewrite_chosen(compaction, &again, error);
        }
    }
    if (status == WAL_OK) {
        settle_names(compaction);
    }
    if (status == WAL_OK && compaction->options->erase) {
        wal__compact_report_all_left(compaction);
    }
    published = publish(compaction, status == WAL_OK ? error : NULL);
    status = status == WAL_OK ? published : status;
    if (status == WAL_OK) {
        status = wal__pack_compact(core, compaction->options, &compaction->throttle,
                                   compaction->result, error);
    }
    if (status == WAL_OK) {
        status = remove_leftovers(core, error);
    }
    return status == WAL_OK ? retire_keys(core, compaction->options->erase, error) : status;
}

/* Removes the indexes of search that may have what was erased; also after a failure, since segments
 * may have been replaced before it. */
static enum wal_status sweep_search_files(const struct compaction *compaction,
                                          enum wal_status status, struct wal_error *error)
{
    bool must = status == WAL_OK && compaction->options->erase;
    struct wal__core *core = compaction->core;
    enum wal_status swept =
        wal__search_files_sweep(&core->env, &core->control, must ? error : NULL);

    return must ? swept : status;
}

/* Names the store when the sync of a directory of it failed in this boot: of what was removed, the
 * next run finds nothing that it could remove again. */
static void report_lost_names(const struct compaction *compaction)
{
    struct wal__core *core = compaction->core;
    struct wal_error error = {.struct_size = sizeof(error)};

    if (atomic_load(&core->control.page->has_lost_names) == 0) {
        return;
    }
    (void)!wal__fail_at(&error, WAL_EIO, 0, core->env.root, 0,
                        "the sync of a directory failed since the machine "
                        "started, so that what was erased may be back after a "
                        "loss of power: restart it, then erase again");
    wal__compact_count_refusal(compaction->options, compaction->result, &error);
}

static void note_reader(void *ctx, uint32_t process, uint64_t bytes)
{
    bool *has_readers = ctx;

    (void)process;
    (void)bytes;
    *has_readers = true;
}

/* Closes the files that were replaced, and reports who still has any.
 * Other processes look once a second: after erasing they are waited for. */
static void list_readers(const struct compaction *compaction)
{
    const struct wal__compact_options *options = compaction->options;
    struct wal__core *core = compaction->core;
    const struct wal__io *io = core->env.io;
    const uint32_t never_woken = 0;
    uint64_t deadline = io->monotonic_ns(io->ctx) + reader_wait_ns;
    bool has_readers = options->erase;

    wal__core_close_replaced(core);
    if (options->reader == NULL || io->list_mappers == NULL) {
        return;
    }
    while (has_readers) {
        has_readers = false;
        io->list_mappers(io->ctx, core->env.root, note_reader, &has_readers);
        if (!has_readers || io->monotonic_ns(io->ctx) >= deadline) {
            break;
        }
        io->futex_wait(io->ctx, &never_woken, 0, READER_POLL_NS);
        wal__core_close_replaced(core);
    }
    io->list_mappers(io->ctx, core->env.root, options->reader, options->ctx);
}

/* Compacts, as the only thread of the only process that does. */
static enum wal_status compact_locked(struct compaction *compaction, struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    enum wal_status status = wal__core_compact_lock(core, error);

    if (status == WAL_OK) {
        status = compact(compaction, error);
        status = sweep_search_files(compaction, status, error);
        if (status == WAL_OK && compaction->options->erase) {
            report_lost_names(compaction);
        }
        wal__core_compact_unlock(core);
    }
    return status;
}

/* Compacts the log of the store, then the pack. WAL_ELOCKED: another compaction runs, in the
 * process error->holder or 0, or content is being stored all the time; WAL_EREADONLY; WAL_ENOSPACE:
 * there is no room for a new segment; WAL_EIO, WAL_ENOMEM, WAL_ECALLBACK. What was replaced until
 * then stays replaced. Any thread. */
static enum wal_status compact_store(struct wal__core *core,
                                     const struct wal__compact_options *options,
                                     struct wal_store_compact_result *result,
                                     struct wal_error *error)
{
    const struct wal__heap *heap = core->env.heap;
    struct compaction compaction = {.core = core, .options = options, .result = result};
    enum wal_status status;

    wal__throttle_init(&compaction.throttle, core->env.io, options->rate);
    wal__throttle_set_progress(&compaction.throttle, options->progress, options->ctx);
    wal__live_set_init(&compaction.set, heap);
    wal__space_init(&compaction.space, heap);
    wal__buf_init(&compaction.tail_index, heap);
    wal__buf_init(&compaction.dead_documents, heap);
    /* Its segments stay open, whatever other threads load meanwhile. */
    wal__log_hold(&core->log);
    wal__log_hold(&core->blobs.log);
    status = options->dry_run ? plan(&compaction, error) : compact_locked(&compaction, error);
    wal__compact_close(&compaction);
    wal__log_drop_hold(&core->log);
    wal__log_drop_hold(&core->blobs.log);
    if (status == WAL_OK && !options->dry_run) {
        list_readers(&compaction);
    }
    wal__space_deinit(&compaction.space);
    wal__live_set_deinit(&compaction.set);
    wal__buf_deinit(&compaction.dead_documents);
    return status;
}

/* --- the interface -------------------------------------------------------- */

enum {
    DEAD_PERCENT = 20,
    BLOCK_SIZE = 16 * 1024,
    LEVEL = 6, /* of LZ4 HC */
    RATE = 64 * 1024 * 1024
};

/* The caller of a compaction, whose callbacks are called. */
struct caller {
    const struct wal_store_compact_options *options;
    int32_t stopped; /* what a callback returned last */
};

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct caller *caller = ctx;

    caller->stopped = caller->options->progress(caller->options->ctx, done, total);
    return caller->stopped == 0;
}

static void on_refused(void *ctx, const struct wal_error *refusal)
{
    const struct caller *caller = ctx;

    caller->options->refused(caller->options->ctx, refusal);
}

static bool on_session(void *ctx, const struct wal__summary *summary,
                       const struct wal__session_space *space)
{
    struct caller *caller = ctx;
    bool is_session = wal__space_slot(summary->number) != 0;
    const struct wal_session_space session = {
        .struct_size = sizeof(session),
        .flags = space->is_deleted ? WAL_SESSION_SPACE_DELETED : 0,
        .session_number = wal__space_slot(summary->number),
        .session_id = {summary->id.data, is_session ? summary->id.size : 0},
        .own_bytes = space->own,
        .shared_bytes = space->seen + space->inherited,
        .reclaimable_bytes = space->reclaimable,
    };

    caller->stopped = caller->options->session(caller->options->ctx, &session);
    return caller->stopped == 0;
}

static void on_reader(void *ctx, uint32_t process, uint64_t bytes)
{
    const struct caller *caller = ctx;

    caller->options->reader(caller->options->ctx, (int32_t)process, bytes);
}

static enum wal_status check_options(const struct wal_store_compact_options *options,
                                     struct wal_error *error)
{
    const uint32_t known = WAL_STORE_COMPACT_ERASE | WAL_STORE_COMPACT_DRY_RUN |
                           WAL_STORE_COMPACT_EMPTY_TRASH | WAL_STORE_COMPACT_KEEP_DELTAS;
    const uint32_t both = WAL_STORE_COMPACT_ERASE | WAL_STORE_COMPACT_KEEP_DELTAS;

    if ((options->flags & both) == both) {
        return wal__invalid(error, "WAL_STORE_COMPACT_ERASE and "
                                   "WAL_STORE_COMPACT_KEEP_DELTAS exclude each "
                                   "other: deltas have what a redacted message "
                                   "had");
    }
    return (options->flags & ~known) == 0 && options->dead_percent <= 100 && options->reserved == 0
               ? WAL_OK
               : wal__invalid(error, "the options for compacting are not "
                                     "valid");
}

static enum wal_status run_checked(struct wal__core *core,
                                   const struct wal_store_compact_options *options,
                                   struct wal_store_compact_result *result, struct wal_error *error)
{
    struct caller caller = {options, 0};
    bool dry_run = (options->flags & WAL_STORE_COMPACT_DRY_RUN) != 0;
    struct wal__compact_options compact = {
        .erase = (options->flags & WAL_STORE_COMPACT_ERASE) != 0,
        .keep_deltas = (options->flags & WAL_STORE_COMPACT_KEEP_DELTAS) != 0,
        .dry_run = dry_run,
        .dead_percent = options->dead_percent == 0 ? DEAD_PERCENT : options->dead_percent,
        .max_bytes = options->max_bytes,
        .rate = options->rate == 0 ? RATE : options->rate,
        .rewrite = {.block_size = BLOCK_SIZE, .level = LEVEL},
        .progress = options->progress == NULL ? NULL : on_progress,
        .refused = options->refused == NULL ? NULL : on_refused,
        .session = dry_run && options->session != NULL ? on_session : NULL,
        .reader = options->reader == NULL ? NULL : on_reader,
        .ctx = &caller,
    };
    uint64_t deleted = 0;
    bool empties = (options->flags & WAL_STORE_COMPACT_EMPTY_TRASH) != 0;
    enum wal_status status = empties && !dry_run ? wal__trash_empty(core, &deleted, error) : WAL_OK;

    if (status == WAL_OK) {
        status = compact_store(core, &compact, result, error);
    }
    if (caller.stopped != 0 && error != NULL) {
        error->sys_errno = caller.stopped;
    }
    return status;
}

enum wal_status wal_store_compact(struct wal_store *store,
                                  const struct wal_store_compact_options *options,
                                  struct wal_store_compact_result *result, struct wal_error *error)
{
    struct wal_store_compact_options own;
    struct wal_store_compact_result done = {.struct_size = sizeof(done)};
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_store_compact_options), &own, options, error);

    if (status == WAL_OK && (own.flags & WAL_STORE_COMPACT_DRY_RUN) != 0) {
        status = wal__check_core(store == NULL ? NULL : &store->core, error);
    } else if (status == WAL_OK) {
        status = wal__check_writable(store == NULL ? NULL : &store->core, error);
    }
    if (status == WAL_OK) {
        status = check_options(&own, error);
    }
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_store_compact_result), result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = run_checked(&store->core, &own, &done, error);
    wal__struct_store(WAL__STRUCT(wal_store_compact_result), result, &done);
    return status;
}
