/*
 * pack_rewrite.c - replaces segments of the pack by one that holds what of them
 * stays (pack_job.h): records as they are, but deltas whose base goes, which
 * are encoded anew without one.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/chunk.h"
#include "engine/blob/pack_memtable.h"
#include "engine/compact/pack/pack_job.h"
#include "engine/compact/segment_run.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

enum {
    BLOCK_SIZE = 64 * 1024 /* chunks are compressed; several share a header */
};

/* A record of the new segment. */
struct placed {
    uint32_t item; /* rank in the live set */
    uint64_t position;
    uint32_t offset; /* in the new segment */
};

struct pack_rewrite {
    struct pack_job *job;
    const struct pack_segment *segments; /* of the run */
    uint32_t segment_count;
    struct placed *records; /* in the order of the new segment */
    uint32_t count;
    uint32_t checked; /* of them, when the file is read back */
    struct wal__record_buf scratch;
    struct wal__buf content;
    struct wal__pack_memtable index;
    struct wal__buf encoded_index;
};

static const struct wal__live_blob *item_of(const struct pack_rewrite *rewrite,
                                            uint32_t rank)
{
    return &rewrite->job->live.items[rewrite->records[rank].item];
}

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a;
    const struct placed *y = b;

    return x->position < y->position ? -1 : x->position > y->position;
}

/* Finds what stays of the run. */
static enum wal_status collect(struct pack_rewrite *rewrite, uint64_t first_id,
                               uint64_t last_id)
{
    const struct wal__pack_live *live = &rewrite->job->live;
    const struct wal__heap *heap = live->heap;
    uint32_t capacity = 0;

    for (uint32_t i = 0; i < live->count; i++) {
        const struct wal__live_blob *blob = &live->items[i];
        uint64_t id = wal__position_segment(blob->position);
        struct placed *records;

        if (id < first_id || id > last_id || !wal__live_blob_stays(blob)) {
            continue;
        }
        records = wal__heap_grow_array(heap, rewrite->records, rewrite->count,
                                       &capacity, sizeof(*records));
        if (records == NULL) {
            return WAL_ENOMEM;
        }
        rewrite->records = records;
        records[rewrite->count++] = (struct placed){i, blob->position, 0};
    }
    if (rewrite->count > 0) {
        qsort(rewrite->records, rewrite->count, sizeof(*rewrite->records),
              compare_placed);
    }
    return WAL_OK;
}

/* --- records ------------------------------------------------------------ */

/* Encodes a chunk anew, without its base, which goes. */
static enum wal_status encode_anew(struct pack_rewrite *rewrite,
                                   const struct wal__live_blob *blob,
                                   struct wal__frame *frame,
                                   struct wal__blob_prepared *prepared,
                                   struct wal_error *error)
{
    struct wal__blob_store *blobs = rewrite->job->blobs;
    struct wal__span content;
    enum wal_status status =
        wal__chunk_load(blobs, &blob->digest, &rewrite->content, NULL, error);

    if (status != WAL_OK) {
        return status;
    }
    content.data = rewrite->content.data;
    content.size = rewrite->content.size;
    prepared->digest = blob->digest;
    prepared->frame.size = 0;
    status = wal__chunk_encode_plain(blobs, content,
                                     wal__blob_frame_owner(frame), prepared);
    if (status != WAL_OK) {
        return wal__no_memory(error);
    }
    frame->stored_size = prepared->header.stored_size;
    frame->raw_size = prepared->header.raw_size;
    frame->data_crc = prepared->header.data_crc;
    return WAL_OK;
}

static bool base_goes(const struct pack_rewrite *rewrite,
                      const struct wal__live_blob *blob)
{
    return blob->base != 0 &&
           !wal__live_blob_stays(&rewrite->job->live.items[blob->base - 1]);
}

static enum wal_status copy_record(struct pack_rewrite *rewrite, uint32_t rank,
                                   struct wal__segment_writer *writer,
                                   struct wal_error *error)
{
    const struct wal__live_blob *blob = item_of(rewrite, rank);
    struct wal__log *log = &rewrite->job->blobs->log;
    struct wal__blob_prepared prepared = {.size = 0};
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = wal__log_read(
        log, blob->position, &rewrite->scratch, &frame, &payload, error);

    if (status == WAL_OK &&
        (payload.size < WAL__DIGEST_SIZE ||
         memcmp(payload.data, blob->digest.bytes, WAL__DIGEST_SIZE) != 0)) {
        status = wal__fail_at(
            error, WAL_ECORRUPT, 0,
            wal__pack_job_find(rewrite->job, blob->position)->segment->path,
            wal__position_offset(blob->position),
            "the index names another content here");
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&prepared.frame, log->env->heap);
    if (base_goes(rewrite, blob)) {
        status = encode_anew(rewrite, blob, &frame, &prepared, error);
        payload.data = prepared.frame.data + WAL__FRAME_SIZE;
        payload.size = frame.stored_size;
    }
    if (status == WAL_OK) {
        status = wal__segment_writer_add(writer, &frame, payload,
                                         &rewrite->records[rank].offset, error);
    }
    wal__blob_prepared_deinit(&prepared);
    return status;
}

static bool is_copied(const struct pack_rewrite *rewrite, uint64_t position)
{
    const struct placed key = {.position = position};

    return rewrite->count > 0 &&
           bsearch(&key, rewrite->records, rewrite->count,
                   sizeof(*rewrite->records), compare_placed) != NULL;
}

/* Reads the records of a segment that go: one that is damaged keeps the segment
 * from being rewritten. */
static enum wal_status read_dropped_of(struct pack_rewrite *rewrite,
                                       const struct wal__segment *segment,
                                       struct wal__buf *places,
                                       struct wal_error *error)
{
    struct wal__blob_store *blobs = rewrite->job->blobs;
    struct wal__index_header header;
    enum wal_status status =
        wal__pack_list(blobs, segment->id, &header, places, error);

    for (size_t at = 0; at < places->size && status == WAL_OK;
         at += sizeof(struct wal__pack_place)) {
        const struct wal__pack_place *place = (void *)(places->data + at);
        struct wal__span payload;
        struct wal__frame frame;

        if (is_copied(rewrite, place->position)) {
            continue;
        }
        status = wal__log_read(&blobs->log, place->position, &rewrite->scratch,
                               &frame, &payload, error);
        if (status == WAL_OK &&
            frame.id_hash != wal__digest_hash(&place->digest)) {
            status = wal__fail_at(error, WAL_ECORRUPT, 0, segment->path,
                                  wal__position_offset(place->position),
                                  "the index names another content here");
        }
    }
    return status;
}

static enum wal_status read_dropped(struct pack_rewrite *rewrite,
                                    struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    struct wal__buf places;

    wal__buf_init(&places, rewrite->job->live.heap);
    for (uint32_t i = 0; i < rewrite->segment_count && status == WAL_OK; i++) {
        status = read_dropped_of(rewrite, rewrite->segments[i].segment, &places,
                                 error);
    }
    wal__buf_deinit(&places);
    return status;
}

static enum wal_status copy_records(void *ctx,
                                    struct wal__segment_writer *writer,
                                    struct wal_error *error)
{
    struct pack_rewrite *rewrite = ctx;
    enum wal_status status =
        rewrite->job->options->erase ? WAL_OK : read_dropped(rewrite, error);

    for (uint32_t i = 0; i < rewrite->count && status == WAL_OK; i++) {
        status = copy_record(rewrite, i, writer, error);
        if (status == WAL_OK &&
            wal__pack_memtable_add(&rewrite->index,
                                   &item_of(rewrite, i)->digest,
                                   rewrite->records[i].offset) != WAL_OK) {
            status = wal__no_memory(error);
        }
    }
    return status;
}

static enum wal_status encode_index(void *ctx, struct wal__index_header *header,
                                    struct wal__span *index,
                                    struct wal_error *error)
{
    struct pack_rewrite *rewrite = ctx;

    rewrite->encoded_index.size = 0;
    if (wal__pack_memtable_encode(&rewrite->index, header,
                                  &rewrite->encoded_index) != WAL_OK) {
        return wal__no_memory(error);
    }
    index->data = rewrite->encoded_index.data + WAL__FRAME_SIZE;
    index->size = rewrite->encoded_index.size - WAL__FRAME_SIZE;
    return WAL_OK;
}

/* --- reading back ------------------------------------------------------- */

static bool check_index(void *ctx, struct wal__span bytes)
{
    struct pack_rewrite *rewrite = ctx;
    struct wal__pack_index index;

    rewrite->checked = 0;
    if (wal__pack_index_decode(bytes, &index) != WAL__FMT_OK ||
        index.header.posting_count != rewrite->count) {
        return false;
    }
    for (uint32_t i = 0; i < rewrite->count; i++) {
        uint32_t offset;

        if (!wal__pack_index_find(&index, &item_of(rewrite, i)->digest,
                                  &offset) ||
            offset != rewrite->records[i].offset) {
            return false;
        }
    }
    return true;
}

static bool check_record(void *ctx, const struct wal__frame *frame,
                         uint64_t offset, struct wal__span payload)
{
    struct pack_rewrite *rewrite = ctx;
    uint32_t rank = rewrite->checked;

    if (rank == rewrite->count) {
        return false;
    }
    rewrite->checked++;
    return rewrite->records[rank].offset == offset &&
           frame->id_hash ==
               wal__digest_hash(&item_of(rewrite, rank)->digest) &&
           payload.size >= WAL__DIGEST_SIZE &&
           memcmp(payload.data, item_of(rewrite, rank)->digest.bytes,
                  WAL__DIGEST_SIZE) == 0;
}

static bool check_end(void *ctx)
{
    const struct pack_rewrite *rewrite = ctx;

    return rewrite->checked == rewrite->count;
}

/* --- the whole ---------------------------------------------------------- */

static enum wal_status rewrite_run(struct pack_rewrite *rewrite, uint32_t from,
                                   uint32_t count, bool *is_replaced,
                                   struct wal_error *error)
{
    const struct wal__segment_run_client client = {rewrite,      copy_records,
                                                   encode_index, check_index,
                                                   check_record, check_end};
    struct pack_job *job = rewrite->job;
    const struct wal__segment_run_options options = {.block_size = BLOCK_SIZE,
                                                     .generation =
                                                         ++job->generation,
                                                     .throttle = job->throttle};
    struct wal__segment **segments =
        wal__heap_alloc(job->live.heap, count * sizeof(struct wal__segment *));
    struct wal__segment_run run = {.log = &job->blobs->log,
                                   .segments = segments,
                                   .count = count,
                                   .last_index =
                                       &job->segments[from + count - 1].header,
                                   .options = &options};
    struct wal__segment_run_result result;
    enum wal_status status;

    if (segments == NULL) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; i < count; i++) {
        segments[i] = job->segments[from + i].segment;
    }
    status = wal__segment_run_rewrite(&run, &client, &result, error);
    *is_replaced = result.is_replaced;
    if (result.is_replaced) {
        job->done += result.bytes_read;
        job->result->chosen += count;
        job->result->bytes_before += result.bytes_read;
        job->result->bytes_after += result.bytes_written;
        for (uint32_t i = 0; i < count; i++) {
            job->result->dropped_contents +=
                job->segments[from + i].header.posting_count;
        }
        job->result->dropped_contents -= rewrite->count;
    }
    wal__heap_free(job->live.heap, segments);
    return status;
}

enum wal_status wal__pack_rewrite(struct pack_job *job, uint32_t from,
                                  uint32_t count, bool *is_replaced,
                                  struct wal_error *error)
{
    const struct wal__heap *heap = job->live.heap;
    struct pack_rewrite rewrite = {
        .job = job, .segments = &job->segments[from], .segment_count = count};
    enum wal_status status;

    *is_replaced = false;
    wal__record_buf_init(&rewrite.scratch, heap);
    wal__buf_init(&rewrite.content, heap);
    wal__buf_init(&rewrite.encoded_index, heap);
    wal__pack_memtable_init(&rewrite.index, heap);
    status = collect(&rewrite, job->segments[from].segment->id,
                     job->segments[from + count - 1].segment->id);
    if (status == WAL_OK) {
        status = rewrite_run(&rewrite, from, count, is_replaced, error);
    } else {
        wal__no_memory(error);
    }
    wal__pack_memtable_deinit(&rewrite.index);
    wal__buf_deinit(&rewrite.encoded_index);
    wal__buf_deinit(&rewrite.content);
    wal__record_buf_deinit(&rewrite.scratch);
    wal__heap_free(heap, rewrite.records);
    return status;
}
