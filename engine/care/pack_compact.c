/*
 * pack_compact.c - gives back the space of content in the pack that nothing names (SPEC.md 3.9):
 * ends the tail, condemns what is below it, finds what is live, and has segments replaced.
 *
 * Live are contents that records or callers name, the chunks of larger ones, and the chunks that
 * deltas are based on. The log names payloads that are blobs, and the lists of files in the
 * engine's own documents; each record that segments have counts, dead or live. Records are read in
 * the order of the indexes, session by session, which is that of the blocks of rewritten segments.
 * A new segment holds records as they are, but deltas whose base goes, which are encoded anew
 * without one. Memory: 80 bytes for each live content and chunk. One thread.
 *
 * Invariant: what is found live after the segments were condemned stays live as far as they are
 * concerned: no record comes to name what only they hold. An item that is named has only named
 * chunks; an item before `followed` has its position, size and base.
 *
 * A chunk that goes is the base of no chunk that stays as it is. One that is encoded anew has its
 * base in the same new segment's originals, or in an earlier one: runs are replaced from the last
 * to the first, so that at no time a delta is without its base.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/care/compact.h"
#include "engine/care/segment_run.h"
#include "engine/files/file_set.h"
#include "engine/log/locks.h"
#include "engine/store/blob_store.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/index/index_fmt.h"

struct wal__live_blob {
    struct wal__digest digest;
    uint64_t position; /* of its newest record; 0: it is not stored */
    uint32_t size;     /* bytes of that; 0: its header cannot be read */
    uint32_t base;     /* rank + 1 of the chunk that it is based on; 0: none */
    bool is_named;     /* else it is only a base */
    bool is_list;      /* of files, which are named too */
    bool is_kept;      /* a base of what is not encoded anew */
};

struct wal__pack_live {
    struct wal__blob_store *blobs;
    const struct wal__heap *heap;
    struct wal__hashmap map; /* hash of the digest -> rank */
    struct wal__live_blob *items;
    uint32_t count;
    uint32_t capacity;
    uint32_t followed; /* items before it are complete */
};

static inline bool wal__live_blob_stays(const struct wal__live_blob *blob)
{
    return blob->is_named || blob->is_kept;
}

/* A segment that was below the tail when the compaction began. */
struct pack_segment {
    struct wal__segment *segment;
    struct wal__index_header header; /* of its index */
    uint64_t live_bytes;             /* of records */
    bool is_suitable;                /* not damaged, of this version */
    bool is_refused;
    bool is_chosen;
};

struct pack_job {
    struct wal__core *core;
    struct wal__blob_store *blobs;
    const struct wal__compact_options *options;
    struct wal_store_compact_result *result;
    struct wal__throttle *throttle;
    struct pack_segment *segments; /* ascending by id */
    uint32_t count;
    struct wal__pack_live live;
    uint32_t generation; /* of the last new segment */
    uint64_t done;       /* bytes of segments that were replaced */
    uint64_t total;      /* of those that are chosen */
};

/* --- what is live --------------------------------------------------------- */

/* The rank of the digest + 1, or 0. */
static uint32_t find(const struct wal__pack_live *live, const struct wal__digest *digest)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&live->map, wal__digest_hash(digest), &cursor, &rank)) {
        if (wal__digest_equal(&live->items[rank].digest, digest)) {
            return rank + 1;
        }
    }
    return 0;
}

/* Returns NULL when the digest was not added. */
static const struct wal__live_blob *pack_live_find(const struct wal__pack_live *live,
                                                   const struct wal__digest *digest)
{
    uint32_t rank = find(live, digest);

    return rank == 0 ? NULL : &live->items[rank - 1];
}

/* Adds the digest unless it is there; *rank is its rank + 1. */
static enum wal_status add(struct wal__pack_live *live, const struct wal__digest *digest,
                           uint32_t *rank)
{
    enum wal_status status;

    *rank = find(live, digest);
    if (*rank != 0) {
        return WAL_OK;
    }
    if (!WAL__HEAP_GROW(live->heap, live->items, live->count, live->capacity)) {
        return WAL_ENOMEM;
    }
    live->items[live->count] = (struct wal__live_blob){.digest = *digest};
    status = wal__hashmap_add(&live->map, wal__digest_hash(digest), live->count);
    if (status == WAL_OK) {
        live->count++;
        *rank = live->count;
    }
    return status;
}

static enum wal_status pack_live_name(struct wal__pack_live *live, const struct wal__digest *digest,
                                      bool is_list);

static enum wal_status add_files(struct wal__pack_live *live, const struct wal__digest *list,
                                 struct wal_error *error)
{
    struct wal__files files;
    enum wal_status status;

    wal__files_init(&files, live->heap);
    status = wal__files_load(&files, live->blobs, list, error);
    for (uint32_t i = 0; i < files.count && status == WAL_OK; i++) {
        if (files.items[i].kind != WAL__FILE_ABSENT) {
            status = pack_live_name(live, &files.items[i].digest, false);
        }
    }
    wal__files_deinit(&files);
    return status;
}

/* Adds content that something names; `is_list`: a list of files. Content that is not stored does no
 * harm. WAL_ENOMEM. */
static enum wal_status pack_live_name(struct wal__pack_live *live, const struct wal__digest *digest,
                                      bool is_list)
{
    uint32_t rank;
    enum wal_status status = add(live, digest, &rank);

    if (status == WAL_OK) {
        live->items[rank - 1].is_named = true;
        if (is_list && !live->items[rank - 1].is_list) {
            live->items[rank - 1].is_list = true;
            live->followed = rank - 1 < live->followed ? rank - 1 : live->followed;
        }
    }
    return status;
}

/* Names the chunks of larger content. */
static enum wal_status add_chunks(struct wal__pack_live *live, const struct wal__digest *digest,
                                  struct wal_error *error)
{
    struct wal__digest chunk;
    struct wal__buf chunks;
    enum wal_status status;
    uint64_t size;

    wal__buf_init(&chunks, live->heap);
    status = wal__blob_list_chunks(live->blobs, digest, &chunks, &size, error);
    for (size_t at = 0; at < chunks.size && status == WAL_OK; at += WAL__DIGEST_SIZE) {
        memcpy(chunk.bytes, chunks.data + at, WAL__DIGEST_SIZE);
        status = pack_live_name(live, &chunk, false);
    }
    wal__buf_deinit(&chunks);
    return status;
}

static enum wal_status add_base(struct wal__pack_live *live, uint32_t rank,
                                struct wal__span payload)
{
    struct wal__chunk_record chunk;
    uint32_t base;
    enum wal_status status;

    if (wal__chunk_record_decode(payload, &chunk) != WAL__FMT_OK ||
        chunk.encoding != WAL__CHUNK_DELTA) {
        return WAL_OK; /* of one that is not valid nothing can be read */
    }
    status = add(live, &chunk.base, &base);
    if (status == WAL_OK) {
        live->items[rank].base = base;
    }
    return status;
}

/* Finds the record of an item, and adds what it consists of. */
static enum wal_status follow(struct wal__pack_live *live, uint32_t rank,
                              struct wal__record_buf *scratch, struct wal_error *error)
{
    const struct wal__digest digest = live->items[rank].digest;
    uint64_t position = 0;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = wal__blob_find(live->blobs, &digest, &position, error);

    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    live->items[rank].position = position;
    /* All of a chunk's payload: its decoder checks the size. */
    status = wal__log_peek(&live->blobs->log, position, WAL__FRAME_PAYLOAD_MAX, scratch, &frame,
                           &payload, error);
    if (status == WAL_ECORRUPT) {
        return WAL_OK; /* the segment is refused */
    }
    if (status != WAL_OK) {
        return status;
    }
    live->items[rank].size = (uint32_t)wal__frame_total_size(frame.stored_size);
    if (frame.type == WAL__FRAME_CHUNK) {
        return add_base(live, rank, payload);
    }
    return add_chunks(live, &digest, error);
}

/* Adds what the contents consist of: files of lists, chunks, bases. Again after more were named.
 * WAL_ECORRUPT: what a content consists of cannot be read. */
static enum wal_status pack_live_follow(struct wal__pack_live *live, struct wal_error *error)
{
    struct wal__record_buf scratch;
    enum wal_status status = WAL_OK;

    wal__record_buf_init(&scratch, live->heap);
    while (live->followed < live->count && status == WAL_OK) {
        uint32_t rank = live->followed++;
        struct wal__live_blob *item = &live->items[rank];

        if (item->position == 0) {
            status = follow(live, rank, &scratch, error);
            item = &live->items[rank];
        }
        if (status == WAL_OK && item->is_list && item->position != 0) {
            const struct wal__digest list = item->digest;

            status = add_files(live, &list, error);
        }
    }
    wal__record_buf_deinit(&scratch);
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

/* Keeps the chunks that this one is based on, as it is not encoded anew. */
static void pack_live_keep_bases(struct wal__pack_live *live, uint32_t rank)
{
    uint32_t base = live->items[rank].base;

    while (base != 0 && !live->items[base - 1].is_kept) {
        live->items[base - 1].is_kept = true;
        base = live->items[base - 1].base;
    }
}

/* --- what the log names --------------------------------------------------- */

struct names {
    struct wal__log *log;
    struct wal__pack_live *live;
    struct wal__record_buf scratch;
};

/* Names each list in one of the engine's documents: each JSON text that is a digest. */
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
        if (text.size == 2 * sizeof(digest.bytes) &&
            wal__hex_read(text.data, sizeof(digest.bytes), digest.bytes)) {
            status = pack_live_name(names->live, &digest, true);
        }
        text.data = value.data + at + 1;
        text.size = 0;
    }
    return status;
}

/* Adds what the payload of an ENTRY or a DOC names. */
static enum wal_status add_names(struct names *names, const struct wal__frame *frame,
                                 struct wal__span payload)
{
    struct wal__entry_record entry;
    struct wal__doc_record doc;
    struct wal__digest digest;

    if (frame->type == WAL__FRAME_DOC) {
        return wal__doc_record_decode(payload, &doc) == WAL__FMT_OK ? add_lists(names, doc.value)
                                                                    : WAL_ECORRUPT;
    }
    if (wal__entry_record_decode(payload, &entry) != WAL__FMT_OK || entry.digest == NULL) {
        return WAL_ECORRUPT;
    }
    memcpy(digest.bytes, entry.digest, sizeof(digest.bytes));
    return pack_live_name(names->live, &digest, false);
}

/* Returns whether a record of this type can name content, judged by its beginning. */
static bool may_name(const struct wal__frame *frame, struct wal__span first)
{
    struct wal__span key;

    if (frame->type == WAL__FRAME_DOC) {
        return !wal__doc_record_key(first, &key) || key.size == 0 || key.data[0] == '\0';
    }
    return wal__entry_record_is_blob(first);
}

static enum wal_status read_record(struct names *names, const struct wal__segment *segment,
                                   const struct wal__posting *posting, struct wal_error *error)
{
    const uint64_t position = wal__position(segment->id, posting->offset);
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status;

    if (posting->type != WAL__FRAME_ENTRY && posting->type != WAL__FRAME_DOC) {
        return WAL_OK;
    }
    status = wal__log_peek(names->log, position,
                           posting->type == WAL__FRAME_ENTRY ? 1 : WAL__DOC_KEY_END,
                           &names->scratch, &frame, &payload, error);
    if (status == WAL_OK && !may_name(&frame, payload)) {
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__log_read(names->log, position, &names->scratch, &frame, &payload, error);
    }
    if (status == WAL_OK) {
        status = add_names(names, &frame, payload);
    }
    return status == WAL_ECORRUPT
               ? wal__fail_at(error, WAL_EDAMAGED, 0, segment->path, posting->offset,
                              "the record is damaged: which content it names "
                              "is not known, and none is dropped")
               : status;
}

static enum wal_status read_segment(struct names *names, const struct candidate *candidate,
                                    struct wal_error *error)
{
    const struct wal__index *index = &candidate->input.slot.index;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.posting_count && status == WAL_OK; i++) {
        struct wal__posting posting;

        wal__index_posting(index, i, &posting);
        status = read_record(names, candidate->input.segment, &posting, error);
    }
    return status;
}

static enum wal_status read_segments(struct names *names, const struct compaction *compaction,
                                     struct wal__throttle *throttle, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < compaction->count && status == WAL_OK; i++) {
        const struct candidate *candidate = &compaction->candidates[i];

        status = read_segment(names, candidate, error);
        if (status == WAL_OK) {
            status =
                wal__throttle_spend(throttle, candidate->input.segment->header.capacity, error);
        }
    }
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

/* Adds what the log names at present. WAL_EDAMAGED: a record is damaged or lost, so that what it
 * names is not known; error->file names its segment. WAL_ENOMEM, WAL_EIO. */
static enum wal_status pack_names_read(struct wal__core *core, struct wal__throttle *throttle,
                                       struct wal__pack_live *live, struct wal_error *error)
{
    struct wal_store_compact_result result;
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

/* --- choosing ------------------------------------------------------------- */

enum { PERCENT = 100 };

/* Returns the segment of the job that holds a position, or NULL. */
static struct pack_segment *pack_job_find(const struct pack_job *job, uint64_t position)
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
    return low < job->count && job->segments[low].segment->id == id ? &job->segments[low] : NULL;
}

/* Returns whether a record is copied to a new segment, if it stays. */
static bool is_rewritten(const struct pack_job *job, const struct wal__live_blob *blob)
{
    const struct pack_segment *segment = pack_job_find(job, blob->position);

    return segment != NULL && segment->is_chosen;
}

/* Keeps the bases of deltas that stay as they are: in segments that are not rewritten, and of those
 * whose base comes later, which is replaced before. */
static void keep_bases(struct pack_job *job)
{
    struct wal__pack_live *live = &job->live;

    for (uint32_t i = 0; i < live->count; i++) {
        const struct wal__live_blob *blob = &live->items[i];

        if (blob->base != 0 && blob->is_named &&
            (!is_rewritten(job, blob) || live->items[blob->base - 1].position > blob->position)) {
            pack_live_keep_bases(live, i);
        }
    }
}

/* Leaves a segment as it is, and reports it once. What is in it keeps what it is based on. */
static void pack_job_refuse(struct pack_job *job, struct pack_segment *segment,
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
static void refuse_damaged(struct pack_job *job, struct pack_segment *segment, uint64_t position)
{
    struct wal_error error = {.struct_size = sizeof(error)};

    if (segment->is_refused) {
        return;
    }
    segment->is_refused = true;
    wal__fail_at(&error, WAL_ECORRUPT, 0, segment->segment->path, wal__position_offset(position),
                 "a record is damaged");
    wal__compact_count_refusal(job->options, job->result, &error);
}

/* Sums the live bytes of each segment. One with a record whose header cannot be read is refused:
 * who owns the content, and what it is based on, is not known.
 */
static void weigh(struct pack_job *job)
{
    for (uint32_t i = 0; i < job->live.count; i++) {
        const struct wal__live_blob *blob = &job->live.items[i];
        struct pack_segment *segment = pack_job_find(job, blob->position);

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
           wal__pack_index_size(segment->header.posting_count) + WAL__SEGMENT_HEADER_SIZE;
}

/* Returns whether anything of the segment is dead: a record, a base that nothing else names, or
 * bytes beyond the end. */
static bool has_dead(const struct pack_segment *segment)
{
    const struct wal__segment_header *header = &segment->segment->header;

    return !wal__segment_is_rewritten(header) || header->rewrite.raw_size != segment->live_bytes;
}

static bool is_worth_it(const struct pack_job *job, const struct pack_segment *segment)
{
    const uint64_t capacity = segment->segment->header.capacity;
    const uint64_t size = new_size(segment);

    if (!wal__encrypt_is_current(job->core->env.keyring, &segment->segment->header)) {
        return true;
    }
    return job->options->erase
               ? has_dead(segment) || wal__segment_run_may_lose_names(&job->blobs->log)
               : size < capacity &&
                     (capacity - size) * PERCENT > capacity * job->options->dead_percent;
}

/* Chooses segments before chosen ones that are at most twice as large as what follows, so that
 * small ones are merged. */
static void choose_neighbours(struct pack_job *job, uint64_t *bytes)
{
    const uint64_t most = job->options->max_bytes;
    uint64_t run = 0;

    for (uint32_t i = job->count; i > 0; i--) {
        struct pack_segment *segment = &job->segments[i - 1];
        uint64_t capacity = segment->segment->header.capacity;
        uint64_t size = new_size(segment);

        if (!segment->is_chosen && segment->is_suitable && !segment->is_refused &&
            size <= 2 * run && size + run <= WAL__COMPACT_RUN_MAX &&
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

        if (options->erase && !options->dry_run && segment->is_suitable && !segment->is_refused &&
            !segment->is_chosen && has_dead(segment)) {
            wal__compact_report_left(options, job->result, segment->segment);
        }
    }
}

/* Leaves segments that have no group: a torn write left an OPEN without its COMMIT. */
static void leave_without_group(struct pack_job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct pack_segment *segment = &job->segments[i];
        struct wal_error error = {.struct_size = sizeof(error)};

        if (segment->header.commit_offset == 0) {
            segment->is_suitable = false;
            if (job->options->erase &&
                wal__compact_check_rest(segment->segment, &segment->header, &error) != WAL_OK) {
                pack_job_refuse(job, segment, &error);
            }
        }
    }
}

/* Chooses segments: by what would come back, and for erasing by what is dead at all. Keeps the
 * bases of what is not encoded anew. */
static void pack_choose(struct pack_job *job)
{
    const uint64_t most = job->options->max_bytes;
    /* What the log's segments took of it. */
    uint64_t bytes = job->result->bytes_before;

    leave_without_group(job);
    weigh(job);
    for (uint32_t i = 0; i < job->count; i++) {
        struct pack_segment *segment = &job->segments[i];
        uint64_t capacity = segment->segment->header.capacity;

        segment->is_chosen = segment->is_suitable && !segment->is_refused &&
                             is_worth_it(job, segment) && (most == 0 || bytes + capacity <= most);
        bytes += segment->is_chosen ? capacity : 0;
    }
    choose_neighbours(job, &bytes);
    report_left(job);
    job->total = bytes - job->result->bytes_before;
    keep_bases(job);
}

/* --- a new segment -------------------------------------------------------- */

enum {
    BLOCK_SIZE = 64 * 1024 /* chunks are compressed; several share a header */
};

/* A record of the new segment. */
struct placed {
    uint64_t position; /* first, to sort by it */
    uint32_t item;     /* rank in the live set */
    uint32_t offset;   /* in the new segment */
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

static const struct wal__live_blob *item_of(const struct pack_rewrite *rewrite, uint32_t rank)
{
    return &rewrite->job->live.items[rewrite->records[rank].item];
}

/* Finds what stays of the run. */
static enum wal_status collect(struct pack_rewrite *rewrite, uint64_t first_id, uint64_t last_id)
{
    const struct wal__pack_live *live = &rewrite->job->live;
    const struct wal__heap *heap = live->heap;
    uint32_t capacity = 0;

    for (uint32_t i = 0; i < live->count; i++) {
        const struct wal__live_blob *blob = &live->items[i];
        uint64_t id = wal__position_segment(blob->position);

        if (id < first_id || id > last_id || !wal__live_blob_stays(blob)) {
            continue;
        }
        if (!WAL__HEAP_GROW(heap, rewrite->records, rewrite->count, capacity)) {
            return WAL_ENOMEM;
        }
        rewrite->records[rewrite->count++] = (struct placed){blob->position, i, 0};
    }
    if (rewrite->count > 0) {
        qsort(rewrite->records, rewrite->count, sizeof(*rewrite->records), wal__compare_u64);
    }
    return WAL_OK;
}

/* --- records ------------------------------------------------------------ */

/* Encodes a chunk anew, without its base, which goes. */
static enum wal_status encode_anew(struct pack_rewrite *rewrite, const struct wal__live_blob *blob,
                                   struct wal__frame *frame, struct wal__blob_prepared *prepared,
                                   struct wal_error *error)
{
    struct wal__blob_store *blobs = rewrite->job->blobs;
    struct wal__span content;
    enum wal_status status = wal__chunk_load(blobs, &blob->digest, &rewrite->content, NULL, error);

    if (status != WAL_OK) {
        return status;
    }
    content.data = rewrite->content.data;
    content.size = rewrite->content.size;
    prepared->digest = blob->digest;
    prepared->frame.size = 0;
    status = wal__chunk_encode_plain(blobs, content, wal__blob_frame_owner(frame), prepared);
    if (status != WAL_OK) {
        return wal__no_memory(error);
    }
    frame->stored_size = prepared->header.stored_size;
    frame->raw_size = prepared->header.raw_size;
    frame->data_crc = prepared->header.data_crc;
    return WAL_OK;
}

static enum wal_status copy_record(struct pack_rewrite *rewrite, uint32_t rank,
                                   struct wal__segment_writer *writer, struct wal_error *error)
{
    const struct wal__live_blob *blob = item_of(rewrite, rank);
    struct wal__log *log = &rewrite->job->blobs->log;
    struct wal__blob_prepared prepared = {.size = 0};
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status =
        wal__log_read(log, blob->position, &rewrite->scratch, &frame, &payload, error);

    if (status == WAL_OK && (payload.size < WAL__DIGEST_SIZE ||
                             memcmp(payload.data, blob->digest.bytes, WAL__DIGEST_SIZE) != 0)) {
        status = wal__fail_at(
            error, WAL_ECORRUPT, 0, pack_job_find(rewrite->job, blob->position)->segment->path,
            wal__position_offset(blob->position), "the index names another content here");
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&prepared.frame, log->env->heap);
    if (blob->base != 0 && !wal__live_blob_stays(&rewrite->job->live.items[blob->base - 1])) {
        status = encode_anew(rewrite, blob, &frame, &prepared, error);
        payload.data = prepared.frame.data + WAL__FRAME_SIZE;
        payload.size = frame.stored_size;
    }
    if (status == WAL_OK) {
        status =
            wal__segment_writer_add(writer, &frame, payload, &rewrite->records[rank].offset, error);
    }
    wal__blob_prepared_deinit(&prepared);
    return status;
}

static bool is_copied(const struct pack_rewrite *rewrite, uint64_t position)
{
    const struct placed key = {.position = position};

    return rewrite->count > 0 && bsearch(&key, rewrite->records, rewrite->count,
                                         sizeof(*rewrite->records), wal__compare_u64) != NULL;
}

/* Reads the records of a segment that go: one that is damaged keeps the segment from being
 * rewritten. */
static enum wal_status read_dropped_of(struct pack_rewrite *rewrite,
                                       const struct wal__segment *segment, struct wal__buf *places,
                                       struct wal_error *error)
{
    struct wal__blob_store *blobs = rewrite->job->blobs;
    struct wal__index_header header;
    enum wal_status status = wal__pack_list(blobs, segment->id, &header, places, error);

    for (size_t at = 0; at < places->size && status == WAL_OK;
         at += sizeof(struct wal__pack_place)) {
        const struct wal__pack_place *place = (void *)(places->data + at);
        struct wal__span payload;
        struct wal__frame frame;

        if (is_copied(rewrite, place->position)) {
            continue;
        }
        status =
            wal__log_read(&blobs->log, place->position, &rewrite->scratch, &frame, &payload, error);
        if (status == WAL_OK && frame.id_hash != wal__digest_hash(&place->digest)) {
            status = wal__fail_at(error, WAL_ECORRUPT, 0, segment->path,
                                  wal__position_offset(place->position),
                                  "the index names another content here");
        }
    }
    return status;
}

static enum wal_status read_dropped(struct pack_rewrite *rewrite, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    struct wal__buf places;

    wal__buf_init(&places, rewrite->job->live.heap);
    for (uint32_t i = 0; i < rewrite->segment_count && status == WAL_OK; i++) {
        status = read_dropped_of(rewrite, rewrite->segments[i].segment, &places, error);
    }
    wal__buf_deinit(&places);
    return status;
}

static enum wal_status copy_records(void *ctx, struct wal__segment_writer *writer,
                                    struct wal_error *error)
{
    struct pack_rewrite *rewrite = ctx;
    enum wal_status status = rewrite->job->options->erase ? WAL_OK : read_dropped(rewrite, error);

    for (uint32_t i = 0; i < rewrite->count && status == WAL_OK; i++) {
        status = copy_record(rewrite, i, writer, error);
        if (status == WAL_OK &&
            wal__pack_memtable_add(&rewrite->index, &item_of(rewrite, i)->digest,
                                   rewrite->records[i].offset) != WAL_OK) {
            status = wal__no_memory(error);
        }
    }
    return status;
}

static enum wal_status encode_index(void *ctx, struct wal__index_header *header,
                                    struct wal__span *index, struct wal_error *error)
{
    struct pack_rewrite *rewrite = ctx;

    rewrite->encoded_index.size = 0;
    if (wal__pack_memtable_encode(&rewrite->index, header, &rewrite->encoded_index) != WAL_OK) {
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

        if (!wal__pack_index_find(&index, &item_of(rewrite, i)->digest, &offset) ||
            offset != rewrite->records[i].offset) {
            return false;
        }
    }
    return true;
}

static bool check_record(void *ctx, const struct wal__frame *frame, uint64_t offset,
                         struct wal__span payload)
{
    struct pack_rewrite *rewrite = ctx;
    uint32_t rank = rewrite->checked;

    if (rank == rewrite->count) {
        return false;
    }
    rewrite->checked++;
    return rewrite->records[rank].offset == offset &&
           frame->id_hash == wal__digest_hash(&item_of(rewrite, rank)->digest) &&
           payload.size >= WAL__DIGEST_SIZE &&
           memcmp(payload.data, item_of(rewrite, rank)->digest.bytes, WAL__DIGEST_SIZE) == 0;
}

static bool check_end(void *ctx)
{
    const struct pack_rewrite *rewrite = ctx;

    return rewrite->checked == rewrite->count;
}

/* --- the whole ---------------------------------------------------------- */

static enum wal_status rewrite_run(struct pack_rewrite *rewrite, uint32_t from, uint32_t count,
                                   bool *is_replaced, struct wal_error *error)
{
    const struct wal__segment_run_client client = {rewrite,     copy_records, encode_index,
                                                   check_index, check_record, check_end};
    struct pack_job *job = rewrite->job;
    const struct wal__segment_run_options options = {
        .block_size = BLOCK_SIZE, .generation = ++job->generation, .throttle = job->throttle};
    struct wal__segment **segments =
        wal__heap_alloc(job->live.heap, count * sizeof(struct wal__segment *));
    struct wal__segment_run run = {.log = &job->blobs->log,
                                   .segments = segments,
                                   .count = count,
                                   .last_index = &job->segments[from + count - 1].header,
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
        job->result->rewritten += count;
        job->result->bytes_before += result.bytes_read;
        job->result->bytes_after += result.bytes_written;
        for (uint32_t i = 0; i < count; i++) {
            job->result->dropped_contents += job->segments[from + i].header.posting_count;
        }
        job->result->dropped_contents -= rewrite->count;
    }
    wal__heap_free(job->live.heap, segments);
    return status;
}

/* Replaces `count` chosen neighbours from the rank `from` on by one segment. WAL_ECORRUPT: a record
 * that stays is damaged, error->file names the segment; nothing was replaced unless
 * *is_replaced. */
static enum wal_status rewrite_pack_run(struct pack_job *job, uint32_t from, uint32_t count,
                                        bool *is_replaced, struct wal_error *error)
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

/* --- the segments ------------------------------------------------------- */

/* Returns whether compaction rewrites the segment at all. `next` comes after it. */
static bool is_suitable(struct pack_job *job, struct pack_segment *segment,
                        const struct wal__segment *next)
{
    struct wal_error error = {.struct_size = sizeof(error)};

    if (segment->segment->has_open && next->has_open && next->open.damage_count == 0) {
        return true;
    }
    segment->is_refused = true;
    wal__fail_at(&error, WAL_EDAMAGED, 0, segment->segment->path, 0, "the segment is damaged");
    wal__compact_count_refusal(job->options, job->result, &error);
    return false;
}

/* Lists the segments below the tail. */
static enum wal_status open_segments(struct pack_job *job, struct wal_error *error)
{
    struct wal__log *log = &job->blobs->log;
    enum wal_status status = wal__blob_store_read_lock(job->blobs, error);
    uint32_t count;

    if (status != WAL_OK) {
        return status;
    }
    count = wal__log_segment_count(log);
    job->generation = wal__log_generation(log);
    job->segments = wal__heap_zalloc(job->live.heap, (count + 1) * sizeof(*job->segments));
    if (job->segments == NULL) {
        wal__blob_store_unlock(job->blobs);
        return wal__no_memory(error);
    }
    job->count = count > 0 ? count - 1 : 0;
    for (uint32_t i = 0; i < job->count; i++) {
        struct pack_segment *segment = &job->segments[i];

        segment->segment = wal__log_segment_at(log, i);
        segment->is_suitable = is_suitable(job, segment, wal__log_segment_at(log, i + 1));
    }
    wal__blob_store_unlock(job->blobs);
    job->result->segments += job->count;
    return WAL_OK;
}

/* --- what is live ------------------------------------------------------- */

/* Names a content that a caller put; of a segment that is not condemned, also larger content, whose
 * chunks may be, and what a delta there is based on. */
static enum wal_status name_place(struct pack_job *job, const struct wal__pack_place *place,
                                  bool is_condemned, struct wal__record_buf *scratch,
                                  struct wal_error *error)
{
    const struct wal__live_blob *blob = pack_live_find(&job->live, &place->digest);
    struct wal__chunk_record chunk;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status;

    if (is_condemned && blob != NULL && blob->is_named) {
        return WAL_OK;
    }
    status = wal__log_peek(&job->blobs->log, place->position, WAL__FRAME_PAYLOAD_MAX, scratch,
                           &frame, &payload, error);
    if (status == WAL_ECORRUPT) { /* its owner is not known */
        return pack_live_name(&job->live, &place->digest, false);
    }
    if (status == WAL_OK && (wal__blob_frame_owner(&frame) == WAL__BLOB_OF_CALLER ||
                             (!is_condemned && frame.type == WAL__FRAME_BLOB))) {
        status = pack_live_name(&job->live, &place->digest, false);
    }
    if (status == WAL_OK && !is_condemned && frame.type == WAL__FRAME_CHUNK &&
        wal__chunk_record_decode(payload, &chunk) == WAL__FMT_OK &&
        chunk.encoding == WAL__CHUNK_DELTA) {
        status = pack_live_name(&job->live, &chunk.base, false);
    }
    return status;
}

static enum wal_status name_places(struct pack_job *job, uint64_t id,
                                   struct wal__index_header *header, bool is_condemned,
                                   struct wal_error *error)
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

/* Names what callers have put, and what records that are not condemned are based on. */
static enum wal_status name_contents(struct pack_job *job, struct wal_error *error)
{
    const struct wal__log *log = &job->blobs->log;
    uint32_t count = wal__log_segment_count(log);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__index_header header;

        status =
            name_places(job, wal__log_segment_at(log, i)->id,
                        i < job->count ? &job->segments[i].header : &header, i < job->count, error);
    }
    return status;
}

/* Finds what is live. Unless that is known, nothing is dropped. */
static enum wal_status find_live(struct pack_job *job, bool *is_known, struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status = pack_names_read(job->core, job->throttle, &job->live, &own);

    if (status == WAL_OK) {
        status = name_contents(job, &own);
    }
    if (status == WAL_OK) {
        status = pack_live_follow(&job->live, &own);
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
            pack_job_refuse(job, &job->segments[i], error);
            return;
        }
    }
    for (uint32_t i = from; i < from + count; i++) {
        pack_job_refuse(job, &job->segments[i], error);
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

static enum wal_status replace_chosen(struct pack_job *job, struct wal_error *error)
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
        status = rewrite_pack_run(job, end - count, count, &is_replaced, &own);
        if (!is_replaced &&
            (status == WAL_ECORRUPT || status == WAL_EIO || status == WAL_ETOOBIG)) {
            refuse_run(job, end - count, count, &own);
            continue;
        }
        if (status != WAL_OK) {
            wal__error_copy(error, &own);
            return status;
        }
        end -= count;
        status =
            wal__throttle_report(job->throttle, before + job->done, before + job->total, error);
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
            job->result->rewritten++;
            job->result->bytes_before += capacity;
            job->result->bytes_after += most < capacity ? most : capacity;
        }
    }
}

/* Notes when there is no rewritten segment whose name may be lost: those that are chosen were
 * replaced. */
static void settle_names(struct pack_job *job)
{
    bool all = true;

    for (uint32_t i = 0; i < job->count; i++) {
        const struct pack_segment *segment = &job->segments[i];

        all = all && (segment->is_chosen || !wal__segment_is_rewritten(&segment->segment->header));
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
    pack_choose(job);
    if (job->options->dry_run) {
        count_planned(job);
        return WAL_OK;
    }
    status = replace_chosen(job, error);
    if (status == WAL_OK) {
        settle_names(job);
    }
    if (job->done > 0) {
        published = wal__blob_store_publish(job->blobs, status == WAL_OK ? error : NULL);
    }
    return status == WAL_OK ? published : status;
}

static enum wal_status do_nothing(void *ctx, struct wal_error *error)
{
    (void)ctx;
    (void)error;
    return WAL_OK;
}

/* Ends the tail and condemns what is below it, meanwhile. */
static enum wal_status compact_condemned(struct pack_job *job, struct wal_error *error)
{
    struct wal__control *control = &job->core->control;
    enum wal_status status = wal__blob_store_rotate(job->blobs, error);

    if (status == WAL_OK) {
        /* What a compaction replaced that was killed is known to nobody, and nobody may find
         * content there once this one has ended. */
        status = wal__blob_store_publish(job->blobs, error);
    }
    if (status == WAL_OK) {
        status = open_segments(job, error);
    }
    if (status != WAL_OK || job->count == 0) {
        return status;
    }
    status = wal__content_condemn(control, job->segments[job->count - 1].segment->id, error);
    if (status != WAL_OK) {
        return status;
    }
    /* A writer that was killed holds no guard, and may have left a group that names content and was
     * not published: who leads decides whether it counts. */
    status = wal__committer_call(&job->core->committer, do_nothing, NULL, error);
    if (status == WAL_OK) {
        status = compact(job, error);
    }
    wal__content_absolve(control);
    return status;
}

enum wal_status wal__pack_compact(struct wal__core *core,
                                  const struct wal__compact_options *options,
                                  struct wal__throttle *throttle,
                                  struct wal_store_compact_result *result, struct wal_error *error)
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
    job.live = (struct wal__pack_live){.blobs = &core->blobs, .heap = core->env.heap};
    wal__hashmap_init(&job.live.map, core->env.heap);
    if (!options->dry_run) {
        status = compact_condemned(&job, error);
    } else {
        status = open_segments(&job, error);
        if (status == WAL_OK && job.count > 0) {
            status = compact(&job, error);
        }
    }
    wal__hashmap_deinit(&job.live.map);
    wal__heap_free(core->env.heap, job.live.items);
    wal__heap_free(core->env.heap, job.segments);
    return status;
}
