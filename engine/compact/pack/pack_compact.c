/*
 * pack_compact.c - compacts the pack (pack_compact.h): ends the tail, condemns
 * what is below it, finds what is live, and has segments replaced.
 *
 * Invariant: what is found live after the segments were condemned stays live as
 * far as they are concerned: no record comes to name what only they hold.
 */
#include "engine/compact/pack/pack_compact.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/compact/compact_job.h"
#include "engine/compact/pack/pack_job.h"
#include "engine/compact/pack/pack_names.h"
#include "engine/log/locks.h"
#include "format/bytes/assert.h"
#include "format/index/pack_index.h"

/* --- the segments ------------------------------------------------------- */

/* Whether compaction rewrites the segment at all. `next` comes after it. */
static bool is_suitable(struct pack_job *job, struct pack_segment *segment,
                        const struct wal__segment *next)
{
    struct wal_error error = {.struct_size = sizeof(error)};

    if (segment->segment->has_open && next->has_open &&
        next->open.damage_count == 0) {
        return true;
    }
    segment->is_refused = true;
    wal__fail_at(&error, WAL_EDAMAGED, 0, segment->segment->path, 0,
                 "the segment is damaged");
    wal__compact_count_refusal(job->options, job->result, &error);
    return false;
}

/* Lists the segments below the tail. */
static enum wal_status open_segments(struct pack_job *job,
                                     struct wal_error *error)
{
    struct wal__log *log = &job->blobs->log;
    enum wal_status status = wal__blob_store_read_lock(job->blobs, error);
    uint32_t count;

    if (status != WAL_OK) {
        return status;
    }
    count = wal__log_segment_count(log);
    job->generation = wal__log_generation(log);
    job->segments =
        wal__heap_zalloc(job->live.heap, (count + 1) * sizeof(*job->segments));
    if (job->segments == NULL) {
        wal__blob_store_unlock(job->blobs);
        return wal__no_memory(error);
    }
    job->count = count > 0 ? count - 1 : 0;
    for (uint32_t i = 0; i < job->count; i++) {
        struct pack_segment *segment = &job->segments[i];

        segment->segment = wal__log_segment_at(log, i);
        segment->is_suitable =
            is_suitable(job, segment, wal__log_segment_at(log, i + 1));
    }
    wal__blob_store_unlock(job->blobs);
    job->result->segments += job->count;
    return WAL_OK;
}

/* --- what is live ------------------------------------------------------- */

/* Names a content that a caller put; of a segment that is not condemned, also
 * larger content, whose chunks may be, and what a delta there is based on. */
static enum wal_status name_place(struct pack_job *job,
                                  const struct wal__pack_place *place,
                                  bool is_condemned,
                                  struct wal__record_buf *scratch,
                                  struct wal_error *error)
{
    const struct wal__live_blob *blob =
        wal__pack_live_find(&job->live, &place->digest);
    struct wal__chunk_record chunk;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status;

    if (is_condemned && blob != NULL && blob->is_named) {
        return WAL_OK;
    }
    status =
        wal__log_peek(&job->blobs->log, place->position, WAL__FRAME_PAYLOAD_MAX,
                      scratch, &frame, &payload, error);
    if (status == WAL_ECORRUPT) { /* its owner is not known */
        return wal__pack_live_name(&job->live, &place->digest, false);
    }
    if (status == WAL_OK &&
        (wal__blob_frame_owner(&frame) == WAL__BLOB_OF_CALLER ||
         (!is_condemned && frame.type == WAL__FRAME_BLOB))) {
        status = wal__pack_live_name(&job->live, &place->digest, false);
    }
    if (status == WAL_OK && !is_condemned && frame.type == WAL__FRAME_CHUNK &&
        wal__chunk_record_decode(payload, &chunk) == WAL__FMT_OK &&
        chunk.encoding == WAL__CHUNK_DELTA) {
        status = wal__pack_live_name(&job->live, &chunk.base, false);
    }
    return status;
}

static enum wal_status name_places(struct pack_job *job, uint64_t id,
                                   struct wal__index_header *header,
                                   bool is_condemned, struct wal_error *error)
{
    struct wal__record_buf scratch;
    struct wal__buf places;
    enum wal_status status;

    wal__record_buf_init(&scratch, job->live.heap);
    wal__buf_init(&places, job->live.heap);
    status = wal__pack_list(job->blobs, id, header, &places, error);
    for (size_t at = 0; at < places.size && status == WAL_OK;
         at += sizeof(struct wal__pack_place)) {
        struct wal__pack_place place;

        memcpy(&place, places.data + at, sizeof(place));
        status = name_place(job, &place, is_condemned, &scratch, error);
    }
    wal__buf_deinit(&places);
    wal__record_buf_deinit(&scratch);
    return status;
}

/* Names what callers have put, and what records that are not condemned are
 * based on. */
static enum wal_status name_contents(struct pack_job *job,
                                     struct wal_error *error)
{
    const struct wal__log *log = &job->blobs->log;
    uint32_t count = wal__log_segment_count(log);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__index_header header;

        status =
            name_places(job, wal__log_segment_at(log, i)->id,
                        i < job->count ? &job->segments[i].header : &header,
                        i < job->count, error);
    }
    return status;
}

/* Finds what is live. Unless that is known, nothing is dropped. */
static enum wal_status find_live(struct pack_job *job, bool *is_known,
                                 struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status =
        wal__pack_names_read(job->core, job->throttle, &job->live, &own);

    if (status == WAL_OK) {
        status = name_contents(job, &own);
    }
    if (status == WAL_OK) {
        status = wal__pack_live_follow(&job->live, &own);
    }
    *is_known = status == WAL_OK;
    if (status == WAL_EDAMAGED || status == WAL_ECORRUPT) {
        wal__compact_count_refusal(job->options, job->result, &own);
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

/* --- replacing ---------------------------------------------------------- */

/* Leaves the segment that the error names, or without one all of the run. */
static void refuse_run(struct pack_job *job, uint32_t from, uint32_t count,
                       const struct wal_error *error)
{
    for (uint32_t i = from; i < from + count; i++) {
        if (strcmp(error->file, job->segments[i].segment->path) == 0) {
            wal__pack_job_refuse(job, &job->segments[i], error);
            return;
        }
    }
    for (uint32_t i = from; i < from + count; i++) {
        wal__pack_job_refuse(job, &job->segments[i], error);
    }
}

/* The number of chosen neighbours up to a rank that become one segment. */
static uint32_t run_length(const struct pack_job *job, uint32_t end)
{
    uint64_t bytes = 0;
    uint32_t count = 0;

    while (count < end && job->segments[end - 1 - count].is_chosen) {
        uint64_t more = job->segments[end - 1 - count].live_bytes;

        if (count > 0 && bytes + more > WAL__COMPACT_RUN_MAX) {
            break;
        }
        bytes += more;
        count++;
    }
    return count;
}

static enum wal_status replace_chosen(struct pack_job *job,
                                      struct wal_error *error)
{
    const uint64_t before = job->result->bytes_before;
    /* The caller's error may be NULL, or not have the field `file`. */
    struct wal_error own = {.struct_size = sizeof(own)};
    uint32_t end = job->count;

    wal__throttle_expect(job->throttle, before, before + job->total);
    while (end > 0) {
        uint32_t count = run_length(job, end);
        bool is_replaced = false;
        enum wal_status status;

        if (count == 0) {
            end--;
            continue;
        }
        status = wal__pack_rewrite(job, end - count, count, &is_replaced, &own);
        if (!is_replaced && (status == WAL_ECORRUPT || status == WAL_EIO ||
                             status == WAL_ETOOBIG)) {
            refuse_run(job, end - count, count, &own);
            continue;
        }
        if (status != WAL_OK) {
            wal__error_copy(error, &own);
            return status;
        }
        end -= count;
        status = wal__throttle_report(job->throttle, before + job->done,
                                      before + job->total, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

/* --- the whole ---------------------------------------------------------- */

static void count_planned(struct pack_job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        const struct pack_segment *segment = &job->segments[i];
        uint64_t capacity = segment->segment->header.capacity;
        uint64_t most = 2 * WAL__SEGMENT_HEADER_SIZE + segment->live_bytes +
                        wal__pack_index_size(segment->header.posting_count);

        if (segment->is_chosen) {
            job->result->chosen++;
            job->result->bytes_before += capacity;
            job->result->bytes_after += most < capacity ? most : capacity;
        }
    }
}

/* Notes when there is no rewritten segment whose name may be lost: those that
 * are chosen were replaced. */
static void settle_names(struct pack_job *job)
{
    bool all = true;

    for (uint32_t i = 0; i < job->count; i++) {
        const struct pack_segment *segment = &job->segments[i];

        all = all && (segment->is_chosen ||
                      !wal__segment_is_rewritten(&segment->segment->header));
    }
    if (all) {
        wal__segment_run_names_renewed(&job->blobs->log);
    }
}

/* With what is below the tail condemned, or in a dry run. */
static enum wal_status compact(struct pack_job *job, struct wal_error *error)
{
    bool is_known = false;
    enum wal_status status = find_live(job, &is_known, error);
    enum wal_status published = WAL_OK;

    if (status != WAL_OK || !is_known) {
        return status;
    }
    if (!job->options->dry_run) {
        settle_names(job); /* nothing may have been rewritten yet */
    }
    wal__pack_choose(job);
    if (job->options->dry_run) {
        count_planned(job);
        return WAL_OK;
    }
    status = replace_chosen(job, error);
    if (status == WAL_OK) {
        settle_names(job);
    }
    if (job->done > 0) {
        published = wal__blob_store_publish(job->blobs,
                                            status == WAL_OK ? error : NULL);
    }
    return status == WAL_OK ? published : status;
}

/* Ends the tail and condemns what is below it, meanwhile. */
static enum wal_status compact_condemned(struct pack_job *job,
                                         struct wal_error *error)
{
    struct wal__control *control = &job->core->control;
    enum wal_status status = wal__blob_store_rotate(job->blobs, error);

    if (status == WAL_OK) {
        /* What a compaction replaced that was killed is known to nobody, and
         * nobody may find content there once this one has ended. */
        status = wal__blob_store_publish(job->blobs, error);
    }
    if (status == WAL_OK) {
        status = open_segments(job, error);
    }
    if (status != WAL_OK || job->count == 0) {
        return status;
    }
    status = wal__content_condemn(
        control, job->segments[job->count - 1].segment->id, error);
    if (status == WAL_OK) {
        status = compact(job, error);
        wal__content_absolve(control);
    }
    return status;
}

static enum wal_status plan(struct pack_job *job, struct wal_error *error)
{
    enum wal_status status = open_segments(job, error);

    return status == WAL_OK && job->count > 0 ? compact(job, error) : status;
}

enum wal_status wal__pack_compact(struct wal__core *core,
                                  const struct wal__compact_options *options,
                                  struct wal__throttle *throttle,
                                  struct wal__compact_result *result,
                                  struct wal_error *error)
{
    struct pack_job job = {.core = core,
                           .blobs = &core->blobs,
                           .options = options,
                           .result = result,
                           .throttle = throttle};
    /* Another process may have stored the first content. */
    enum wal_status status = wal__blob_store_read_lock(job.blobs, error);
    bool is_empty;

    if (status != WAL_OK) {
        return status;
    }
    is_empty = job.blobs->log.tail_segment == NULL;
    wal__blob_store_unlock(job.blobs);
    if (is_empty) {
        return WAL_OK; /* no content was ever stored */
    }
    wal__pack_live_init(&job.live, &core->blobs);
    status =
        options->dry_run ? plan(&job, error) : compact_condemned(&job, error);
    wal__pack_live_deinit(&job.live);
    wal__heap_free(core->env.heap, job.segments);
    return status;
}
