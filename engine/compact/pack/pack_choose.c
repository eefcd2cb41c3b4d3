/*
 * pack_choose.c - chooses the segments of the pack to rewrite (pack_job.h).
 *
 * Invariant: a chunk that goes is the base of no chunk that stays as it is. One
 * that is encoded anew has its base in the same new segment's originals, or in
 * an earlier one: runs are replaced from the last to the first, so that at no
 * time a delta is without its base.
 */
#include "engine/base/error.h"
#include "engine/compact/compact_job.h"
#include "engine/compact/pack/pack_job.h"
#include "format/bytes/assert.h"
#include "format/index/pack_index.h"

enum {
    PERCENT = 100
};

struct pack_segment *wal__pack_job_find(const struct pack_job *job,
                                        uint64_t position)
{
    uint64_t id = wal__position_segment(position);
    uint32_t low = 0;
    uint32_t high = job->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (job->segments[middle].segment->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < job->count && job->segments[low].segment->id == id
               ? &job->segments[low]
               : NULL;
}

/* Whether a record is copied to a new segment, if it stays. */
static bool is_rewritten(const struct pack_job *job,
                         const struct wal__live_blob *blob)
{
    const struct pack_segment *segment =
        wal__pack_job_find(job, blob->position);

    return segment != NULL && segment->is_chosen;
}

/* Keeps the bases of deltas that stay as they are: in segments that are not
 * rewritten, and of those whose base comes later, which is replaced before. */
static void keep_bases(struct pack_job *job)
{
    struct wal__pack_live *live = &job->live;

    for (uint32_t i = 0; i < live->count; i++) {
        const struct wal__live_blob *blob = &live->items[i];

        if (blob->base != 0 && blob->is_named &&
            (!is_rewritten(job, blob) ||
             live->items[blob->base - 1].position > blob->position)) {
            wal__pack_live_keep_bases(live, i);
        }
    }
}

void wal__pack_job_refuse(struct pack_job *job, struct pack_segment *segment,
                          const struct wal_error *error)
{
    segment->is_chosen = false;
    if (!segment->is_refused) {
        segment->is_refused = true;
        wal__compact_count_refusal(job->options, job->result, error);
    }
    keep_bases(job);
}

/* Leaves a segment as it is from the start. */
static void refuse_damaged(struct pack_job *job, struct pack_segment *segment,
                           uint64_t position)
{
    struct wal_error error = {.struct_size = sizeof(error)};

    if (segment->is_refused) {
        return;
    }
    segment->is_refused = true;
    wal__fail_at(&error, WAL_ECORRUPT, 0, segment->segment->path,
                 wal__position_offset(position), "a record is damaged");
    wal__compact_count_refusal(job->options, job->result, &error);
}

/* Sums the live bytes of each segment. One with a record whose header cannot be
 * read is refused: who owns the content, and what it is based on, is not known.
 */
static void weigh(struct pack_job *job)
{
    for (uint32_t i = 0; i < job->live.count; i++) {
        const struct wal__live_blob *blob = &job->live.items[i];
        struct pack_segment *segment = wal__pack_job_find(job, blob->position);

        if (segment != NULL && blob->is_named) {
            segment->live_bytes += blob->size;
        }
        if (segment != NULL && blob->is_named && blob->size == 0) {
            refuse_damaged(job, segment, blob->position);
        }
    }
}

/* Bytes of the file that would take its place. */
static uint64_t new_size(const struct pack_segment *segment)
{
    return WAL__SEGMENT_HEADER_SIZE + segment->live_bytes +
           wal__pack_index_size(segment->header.posting_count) +
           WAL__SEGMENT_HEADER_SIZE;
}

/* Whether anything of the segment is dead: a record, a base that nothing else
 * names, or bytes beyond the end. */
static bool has_dead(const struct pack_segment *segment)
{
    const struct wal__segment_header *header = &segment->segment->header;

    return !wal__segment_is_rewritten(header) ||
           header->rewrite.raw_size != segment->live_bytes;
}

static bool is_worth_it(const struct pack_job *job,
                        const struct pack_segment *segment)
{
    const uint64_t capacity = segment->segment->header.capacity;
    const uint64_t size = new_size(segment);

    return job->options->erase
               ? has_dead(segment) ||
                     wal__segment_run_may_lose_names(&job->blobs->log)
               : size < capacity && (capacity - size) * PERCENT >
                                        capacity * job->options->dead_percent;
}

/* Chooses segments before chosen ones that are at most twice as large as what
 * follows, so that small ones are merged. */
static void choose_neighbours(struct pack_job *job, uint64_t *bytes)
{
    const uint64_t most = job->options->max_bytes;
    uint64_t run = 0;

    for (uint32_t i = job->count; i > 0; i--) {
        struct pack_segment *segment = &job->segments[i - 1];
        uint64_t capacity = segment->segment->header.capacity;
        uint64_t size = new_size(segment);

        if (!segment->is_chosen && segment->is_suitable &&
            !segment->is_refused && size <= 2 * run &&
            size + run <= WAL__COMPACT_RUN_MAX &&
            (most == 0 || *bytes + capacity <= most)) {
            segment->is_chosen = true;
            *bytes += capacity;
        }
        run = segment->is_chosen ? run + size : 0;
    }
}

/* Erasing reports what the limit of bytes has left. */
static void report_left(const struct pack_job *job)
{
    const struct wal__compact_options *options = job->options;

    for (uint32_t i = 0; i < job->count; i++) {
        const struct pack_segment *segment = &job->segments[i];

        if (options->erase && !options->dry_run && segment->is_suitable &&
            !segment->is_refused && !segment->is_chosen && has_dead(segment)) {
            wal__compact_report_left(options, job->result, segment->segment);
        }
    }
}

void wal__pack_choose(struct pack_job *job)
{
    const uint64_t most = job->options->max_bytes;
    /* What the log's segments took of it. */
    uint64_t bytes = job->result->bytes_before;

    weigh(job);
    for (uint32_t i = 0; i < job->count; i++) {
        struct pack_segment *segment = &job->segments[i];
        uint64_t capacity = segment->segment->header.capacity;

        segment->is_chosen = segment->is_suitable && !segment->is_refused &&
                             is_worth_it(job, segment) &&
                             (most == 0 || bytes + capacity <= most);
        bytes += segment->is_chosen ? capacity : 0;
    }
    choose_neighbours(job, &bytes);
    report_left(job);
    job->total = bytes - job->result->bytes_before;
    keep_bases(job);
}
