/*
 * rewrite.c - what a rewritten segment of the log holds (rewrite.h).
 *
 * The index of a segment lists the records of each session by sequence, so that
 * walking the indexes of the run together gives the order in which the records
 * are written: session by session.
 */
#include "engine/compact/rewrite.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/compact/index_builder.h"
#include "engine/compact/index_check.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

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
    struct wal__index_builder index;
    struct wal__index_check check;
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

/* Encodes what is left of an erased ENTRY: id, type, time and run, and where a
 * compaction begins. */
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
    status =
        wal__payload_append_remains(entry.payload, kind, &rewrite->remains);
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

/* Encodes a SESSION of a segment of any version as one of this version; to
 * erase, only its id, times and flags. */
static enum wal_status encode_session(struct rewrite *rewrite, uint32_t version,
                                      bool erases, struct wal__span payload)
{
    struct wal__session_record session;
    struct wal__span *texts[] = {&session.cwd,    &session.project,
                                 &session.title,  &session.parent_id,
                                 &session.source, &session.metadata};
    enum wal_status status;
    uint8_t *at;
    size_t size;

    if (wal__session_record_decode(payload, version, &session) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    for (size_t i = 0; erases && i < sizeof(texts) / sizeof(texts[0]); i++) {
        texts[i]->size = 0;
    }
    /* Version 0 has none; migrating wrote one that replaces this record, unless
     * the session was deleted. */
    session.schema_version =
        session.schema_version == 0 ? 1 : session.schema_version;
    size = wal__session_record_size(&session);
    status = wal__buf_reserve(&rewrite->erased, size, &at);
    if (status == WAL_OK) {
        wal__session_record_encode(&session, at);
        rewrite->erased.size = size;
    }
    return status;
}

/* Encodes what is left of a version of a document: that it is no more. */
static enum wal_status encode_deletion(struct rewrite *rewrite,
                                       struct wal__frame *frame,
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
                                      enum wal__fate fate,
                                      struct wal__frame *frame,
                                      struct wal__span *payload,
                                      struct wal_error *error)
{
    bool erases = fate == WAL__FATE_ERASE;
    enum wal_status status;

    if (!erases &&
        (version == WAL__FORMAT_VERSION || frame->type != WAL__FRAME_SESSION)) {
        return WAL_OK;
    }
    rewrite->erased.size = 0;
    status = frame->type == WAL__FRAME_SESSION
                 ? encode_session(rewrite, version, erases, *payload)
             : frame->type == WAL__FRAME_DOC
                 ? encode_deletion(rewrite, frame, *payload)
                 : encode_erased(rewrite, frame->kind, *payload);
    if (status != WAL_OK) {
        return wal__fail(error, status, "cannot change a record");
    }
    payload->data = rewrite->erased.data;
    payload->size = rewrite->erased.size;
    frame->data_crc = wal__crc32(0, payload->data, payload->size);
    return WAL_OK;
}

static enum wal_status
read_record(struct rewrite *rewrite, const struct part *part,
            const struct wal__posting *posting, struct wal__frame *frame,
            struct wal__span *payload, struct wal_error *error)
{
    const struct wal__segment *segment = part->input->segment;
    enum wal_status status = wal__log_read(
        &rewrite->core->log, wal__position(segment->id, posting->offset),
        &rewrite->scratch, frame, payload, error);

    if (status == WAL_OK && (frame->type != posting->type ||
                             frame->sequence != posting->sequence)) {
        status =
            wal__fail_at(error, WAL_ECORRUPT, 0, segment->path, posting->offset,
                         "the index names another record here");
    }
    return status;
}

/* Leaves the record out. Unless that is to erase it, one that is damaged keeps
 * its segment from being rewritten: no damage disappears unreported. */
static enum wal_status drop_record(struct rewrite *rewrite,
                                   const struct part *part,
                                   const struct wal__posting *posting,
                                   struct wal_error *error)
{
    struct wal__span payload;
    struct wal__frame frame;

    rewrite->result->dropped++;
    return rewrite->drops_damaged
               ? WAL_OK
               : read_record(rewrite, part, posting, &frame, &payload, error);
}

static enum wal_status copy_record(struct rewrite *rewrite,
                                   const struct part *part,
                                   const struct wal__posting *posting,
                                   enum wal__fate fate, struct wal_error *error)
{
    struct wal__posting copy = *posting;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status =
        read_record(rewrite, part, posting, &frame, &payload, error);

    if (status == WAL_OK) {
        status = change_payload(rewrite, part->input->segment->header.version,
                                fate, &frame, &payload, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_writer_add(rewrite->writer, &frame, payload,
                                         &copy.offset, error);
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
    return wal__index_builder_add_posting(&rewrite->index, &copy, error);
}

static enum wal_status copy_part(struct rewrite *rewrite,
                                 const struct part *part,
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
        status = fate == WAL__FATE_DROP
                     ? drop_record(rewrite, part, &posting, error)
                     : copy_record(rewrite, part, &posting, fate, error);
    }
    return status;
}

/* Adds the summary that the last part has, as of the whole run. */
static enum wal_status add_summary(struct rewrite *rewrite,
                                   const struct part *first,
                                   const struct part *last,
                                   struct wal_error *error)
{
    struct wal__summary summary = last->summary;
    uint64_t segment = wal__position_segment(summary.session_position);

    summary.segment = first->summary.segment;
    if (segment >= rewrite->first_id && segment <= rewrite->id) {
        summary.session_position = rewrite->session_position;
    }
    wal__live_set_strip(rewrite->set, &summary);
    return wal__index_builder_add_summary(&rewrite->index, &summary, error);
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
    return status == WAL_OK && !is_purged
               ? add_summary(rewrite, first, last, error)
               : status;
}

/* Moves to the next summary. */
static enum wal_status step(struct part *part, struct wal_error *error)
{
    const struct wal__index *index = &part->input->slot.index;

    part->is_present = part->rank < index->header.session_count;
    if (part->is_present &&
        wal__index_summary(index, part->rank, &part->summary) != WAL__FMT_OK) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, part->input->segment->path,
                            0, "the index of the segment is damaged");
    }
    part->rank++;
    return WAL_OK;
}

static enum wal_status copy_sessions(void *ctx,
                                     struct wal__segment_writer *writer,
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
                                    struct wal__span *index,
                                    struct wal_error *error)
{
    struct rewrite *rewrite = ctx;

    header->last_session = rewrite->parts[rewrite->count - 1]
                               .input->slot.index.header.last_session;
    return wal__index_builder_encode(&rewrite->index, header, index, error);
}

/* --- reading back ------------------------------------------------------- */

static bool check_index(void *ctx, struct wal__span index)
{
    struct rewrite *rewrite = ctx;

    return wal__index_check_begin(&rewrite->check, index);
}

static bool check_record(void *ctx, const struct wal__frame *frame,
                         uint64_t offset, struct wal__span payload)
{
    struct rewrite *rewrite = ctx;

    (void)payload; /* its checksum was verified */
    return wal__index_check_record(&rewrite->check, frame, offset);
}

static bool check_end(void *ctx)
{
    const struct rewrite *rewrite = ctx;

    return wal__index_check_end(&rewrite->check);
}

/* --- the whole ---------------------------------------------------------- */

static enum wal_status
rewrite_run(struct rewrite *rewrite,
            const struct wal__segment_run_options *options,
            struct wal_error *error)
{
    const struct wal__segment_run_client client = {rewrite,      copy_sessions,
                                                   encode_index, check_index,
                                                   check_record, check_end};
    const struct wal__heap *heap = rewrite->core->env.heap;
    const struct wal__compact_input *last =
        rewrite->parts[rewrite->count - 1].input;
    struct wal__segment **segments =
        wal__heap_alloc(heap, rewrite->count * sizeof(*segments));
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
    status =
        wal__segment_run_rewrite(&run, &client, &rewrite->result->run, error);
    wal__heap_free(heap, segments);
    return status;
}

enum wal_status
wal__rewrite_segments(struct wal__core *core, const struct wal__live_set *set,
                      const struct wal__compact_input *inputs, uint32_t count,
                      const struct wal__segment_run_options *options,
                      struct wal__rewrite_result *result,
                      struct wal_error *error)
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
    wal__index_builder_init(&rewrite.index, heap);
    for (uint32_t i = 0; i < count; i++) {
        rewrite.parts[i].input = &inputs[i];
    }
    status = rewrite_run(&rewrite, options, error);
    wal__index_builder_deinit(&rewrite.index);
    wal__buf_deinit(&rewrite.erased);
    wal__buf_deinit(&rewrite.remains);
    wal__record_buf_deinit(&rewrite.scratch);
    wal__heap_free(heap, rewrite.parts);
    return status;
}
