/*
 * blob_store.c - the blob stream of an open store (blob_store.h; SPEC.md 5.12): opens and recovers
 * it, looks digests up, and appends records.
 *
 * The stream is a separate log, in pack/, of which this is the client. The index of a segment has
 * its digests, ascending (2.20): mapped from the segment's INDEX frame or from index/pack-ID.idx,
 * or kept in memory where neither could be written. The first search for a digest opens the
 * indexes, so that blobs cost nothing when a store is opened. The digests of the tail are in a
 * memtable, which is encoded as an index when the segment ends.
 *
 * Locks, in this order: write_mutex, which serialises the threads that append; the append lock of
 * the stream, which serialises the processes; index_lock, held for writing while records are
 * applied or indexes are loaded, and for reading while digests are looked up, but never while
 * content is read, hashed or compressed. Any thread, but for init and deinit.
 *
 * Invariants: records that the log names durable are never cut off as a torn tail; the indexes
 * contain exactly the records below the applied end, ascend by id, and are at most one for a
 * segment. A digest that is in the stream when the append lock is acquired is not written again; a
 * group is written whole or not at all.
 */
#include "engine/store/blob_store.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/log/group.h"
#include "engine/log/index_file.h"
#include "engine/log/locks.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/segment/frame.h"

/* --- digests of a segment in memory ------------------------------------- */

void wal__pack_memtable_init(struct wal__pack_memtable *memtable, const struct wal__heap *heap)
{
    memset(memtable, 0, sizeof(*memtable));
    wal__buf_init(&memtable->entries, heap);
    wal__hashmap_init(&memtable->map, heap);
}

void wal__pack_memtable_deinit(struct wal__pack_memtable *memtable)
{
    wal__buf_deinit(&memtable->entries);
    wal__hashmap_deinit(&memtable->map);
    memtable->count = 0;
}

/* Removes all entries and frees their memory. */
static void pack_memtable_reset(struct wal__pack_memtable *memtable)
{
    const struct wal__heap *heap = memtable->entries.heap;

    wal__pack_memtable_deinit(memtable);
    wal__pack_memtable_init(memtable, heap);
}

static const struct wal__pack_entry *entry_at(const struct wal__pack_memtable *memtable,
                                              uint32_t rank)
{
    const void *entries = memtable->entries.data;

    WAL__ASSERT(rank < memtable->count);
    return (const struct wal__pack_entry *)entries + rank;
}

enum wal_status wal__pack_memtable_add(struct wal__pack_memtable *memtable,
                                       const struct wal__digest *digest, uint32_t offset)
{
    struct wal__pack_entry entry = {*digest, offset};

    if (wal__hashmap_reserve(&memtable->map, 1) != WAL_OK ||
        wal__buf_append(&memtable->entries, &entry, sizeof(entry)) != WAL_OK ||
        wal__hashmap_add(&memtable->map, wal__digest_hash(digest), memtable->count) != WAL_OK) {
        return WAL_ENOMEM;
    }
    memtable->count++;
    WAL__ASSERT(memtable->map.count == memtable->count &&
                memtable->entries.size == memtable->count * sizeof(entry));
    return WAL_OK;
}

/* Adds all entries of an index. */
static enum wal_status pack_memtable_load(struct wal__pack_memtable *memtable,
                                          const struct wal__pack_index *index)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.posting_count && status == WAL_OK; i++) {
        struct wal__digest digest;

        memcpy(digest.bytes, index->digests + (size_t)i * WAL__DIGEST_SIZE, WAL__DIGEST_SIZE);
        status =
            wal__pack_memtable_add(memtable, &digest, wal__get32(index->offsets + (size_t)i * 4));
    }
    return status;
}

/* The offset of the newest record with the digest; false if there is none. */
static bool pack_memtable_find(const struct wal__pack_memtable *memtable,
                               const struct wal__digest *digest, uint32_t *offset)
{
    uint32_t cursor = 0;
    uint32_t rank;
    bool found = false;

    while (wal__hashmap_find(&memtable->map, wal__digest_hash(digest), &cursor, &rank)) {
        const struct wal__pack_entry *entry = entry_at(memtable, rank);

        if (memcmp(entry->digest.bytes, digest->bytes, WAL__DIGEST_SIZE) == 0 &&
            (!found || entry->offset > *offset)) {
            *offset = entry->offset;
            found = true;
        }
    }
    return found;
}

static int compare_entries(const void *a, const void *b)
{
    const struct wal__pack_entry *x = a;
    const struct wal__pack_entry *y = b;
    int order = memcmp(x->digest.bytes, y->digest.bytes, WAL__DIGEST_SIZE);

    if (order != 0) {
        return order;
    }
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

enum wal_status wal__pack_memtable_encode(const struct wal__pack_memtable *memtable,
                                          struct wal__index_header *header, struct wal__buf *out)
{
    size_t size = (size_t)wal__pack_index_size(memtable->count);
    const struct wal__pack_entry *entries;
    struct wal__buf sorted;
    enum wal_status status;
    uint8_t *frame;

    wal__buf_init(&sorted, out->heap);
    status = wal__buf_append(&sorted, memtable->entries.data, memtable->entries.size);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__buf_reserve(out, WAL__FRAME_SIZE + size, &frame);
    if (status != WAL_OK) {
        goto done;
    }
    entries = (void *)sorted.data;
    WAL__ASSERT(sorted.size == memtable->count * sizeof(*entries));
    if (memtable->count > 0) {
        qsort(sorted.data, memtable->count, sizeof(*entries), compare_entries);
    }
    memset(frame, 0, WAL__FRAME_SIZE);
    for (uint32_t i = 0; i < memtable->count; i++) {
        wal__pack_index_put(frame + WAL__FRAME_SIZE, memtable->count, i, &entries[i].digest,
                            entries[i].offset);
    }
    header->posting_count = memtable->count;
    wal__pack_index_finish(header, frame + WAL__FRAME_SIZE);
    out->size += WAL__FRAME_SIZE + size;
done:
    wal__buf_deinit(&sorted);
    return status;
}

/* --- indexes of the segments before the tail ---------------------------- */

/* The index of one segment. Its bytes are in the segment's map, in a mapped index file, or in
 * `buffer`. */
struct wal__pack_segment_index {
    uint64_t id;
    struct wal__pack_index index;
    struct wal__mapped_file mapped;
    void *buffer; /* heap */
};

static void pack_segment_index_deinit(const struct wal__env *env,
                                      struct wal__pack_segment_index *segment_index)
{
    wal__mapped_file_close(env, &segment_index->mapped);
    wal__heap_free(env->heap, segment_index->buffer);
    memset(segment_index, 0, sizeof(*segment_index));
}

static void pack_indexes_discard(struct wal__blob_store *blobs)
{
    for (uint32_t i = 0; i < blobs->index_count; i++) {
        pack_segment_index_deinit(blobs->env, &blobs->indexes[i]);
    }
    wal__heap_free(blobs->env->heap, blobs->indexes);
    blobs->indexes = NULL;
    blobs->index_count = 0;
    blobs->index_capacity = 0;
    blobs->indexes_loaded = false;
}

static uint32_t lower_bound(const struct wal__blob_store *blobs, uint64_t id)
{
    return (uint32_t)wal__lower_bound(blobs->indexes, blobs->index_count, sizeof(blobs->indexes[0]),
                                      offsetof(struct wal__pack_segment_index, id), id);
}

static bool has_index(const struct wal__blob_store *blobs, uint64_t id)
{
    uint32_t rank = lower_bound(blobs, id);

    return rank < blobs->index_count && blobs->indexes[rank].id == id;
}

/* Moves the index into the set, which has none of its id. */
static enum wal_status insert(struct wal__blob_store *blobs,
                              const struct wal__pack_segment_index *segment_index)
{
    uint32_t rank = lower_bound(blobs, segment_index->id);
    struct wal__pack_segment_index *indexes;

    if (!WAL__HEAP_GROW(blobs->env->heap, blobs->indexes, blobs->index_count,
                        blobs->index_capacity)) {
        return WAL_ENOMEM;
    }
    indexes = blobs->indexes;
    WAL__ASSERT(rank == 0 || indexes[rank - 1].id < segment_index->id);
    memmove(&indexes[rank + 1], &indexes[rank],
            (blobs->index_count - rank) * sizeof(*segment_index));
    indexes[rank] = *segment_index;
    blobs->index_count++;
    WAL__ASSERT(rank + 1 == blobs->index_count || indexes[rank].id < indexes[rank + 1].id);
    return WAL_OK;
}

/* Adds a copy of an encoded index, for a segment that has none in the set. WAL_ECORRUPT when it
 * does not decode. */
static enum wal_status pack_indexes_add_copy(struct wal__blob_store *blobs, uint64_t id,
                                             struct wal__span bytes)
{
    struct wal__pack_segment_index segment_index = {.id = id};
    struct wal__span copy;
    enum wal_status status = WAL_ENOMEM;

    segment_index.buffer = wal__heap_alloc(blobs->env->heap, bytes.size);
    if (segment_index.buffer != NULL) {
        memcpy(segment_index.buffer, bytes.data, bytes.size);
        copy.data = segment_index.buffer;
        copy.size = bytes.size;
        status = wal__pack_index_decode(copy, &segment_index.index) == WAL__FMT_OK
                     ? insert(blobs, &segment_index)
                     : WAL_ECORRUPT;
    }
    if (status != WAL_OK) {
        pack_segment_index_deinit(blobs->env, &segment_index);
    }
    return status;
}

/* Decodes the INDEX frame of a sealed segment in its map. */
static enum wal_status open_sealed(struct wal__segment *segment,
                                   struct wal__pack_segment_index *segment_index)
{
    struct wal__span bytes;
    enum wal_status status = wal__index_read_sealed(segment, &bytes, &segment_index->buffer);

    WAL__ASSERT(segment->sealed);
    if (status != WAL_OK) {
        return status;
    }
    return wal__pack_index_decode(bytes, &segment_index->index) == WAL__FMT_OK ? WAL_OK
                                                                               : WAL_ENOTFOUND;
}

/* Opens index/pack-ID.idx; WAL_ENOTFOUND when it is missing or invalid. The index is not added to
 * the set. It may be deinited after a failure too. */
static enum wal_status pack_index_file_open(const struct wal__blob_store *blobs, uint64_t id,
                                            struct wal__pack_segment_index *segment_index)
{
    char path[WAL__PATH_MAX];
    struct wal__span bytes;
    enum wal_status status;

    memset(segment_index, 0, sizeof(*segment_index));
    segment_index->id = id;
    wal__index_path(blobs->env, WAL__LOG_ID_PACK, id, path);
    status = wal__index_file_open(blobs->env, path, &segment_index->mapped, NULL);
    if (status == WAL_ENOMEM || status == WAL_EIO) {
        return status;
    }
    if (status != WAL_OK) {
        return WAL_ENOTFOUND;
    }
    bytes.data = segment_index->mapped.at;
    bytes.size = segment_index->mapped.size;
    if (wal__pack_index_decode(bytes, &segment_index->index) != WAL__FMT_OK ||
        segment_index->index.header.id != id ||
        memcmp(segment_index->index.header.uuid, blobs->log.uuid, 16) != 0) {
        pack_segment_index_deinit(blobs->env, segment_index);
        return WAL_ENOTFOUND;
    }
    return WAL_OK;
}

/* Adds the index of a segment from its INDEX frame or its index file; WAL_ENOTFOUND if neither is
 * valid. */
static enum wal_status open_index(struct wal__blob_store *blobs, struct wal__segment *segment)
{
    struct wal__pack_segment_index segment_index = {.id = segment->id};
    enum wal_status status = wal__segment_refresh(segment);

    if (status == WAL_OK) {
        status = segment->sealed ? open_sealed(segment, &segment_index) : WAL_ENOTFOUND;
    }
    if (status == WAL_ENOTFOUND) {
        pack_segment_index_deinit(blobs->env, &segment_index);
        status = pack_index_file_open(blobs, segment->id, &segment_index);
    }
    if (status == WAL_OK && atomic_load(&segment->end) == WAL__SEGMENT_HEADER_SIZE) {
        /* The OPEN frame of the next segment, which has the end, was lost. */
        atomic_store(&segment->end, segment_index.index.header.end);
    }
    if (status == WAL_OK && (segment_index.index.header.id != segment->id ||
                             segment_index.index.header.end != atomic_load(&segment->end))) {
        status = WAL_ENOTFOUND;
    }
    if (status == WAL_OK) {
        status = insert(blobs, &segment_index);
    }
    if (status != WAL_OK) {
        pack_segment_index_deinit(blobs->env, &segment_index);
    }
    return status;
}

/* Scans the segment and adds an index: an index file, or one in memory. */
static enum wal_status rebuild_index(struct wal__blob_store *blobs, struct wal__segment *segment,
                                     struct wal_error *error)
{
    struct wal__pack_memtable found;
    enum wal_status status;

    WAL__ASSERT(blobs->apply_target == &blobs->tail);
    wal__pack_memtable_init(&found, blobs->env->heap);
    blobs->apply_target = &found;
    status = wal__log_rebuild_index(&blobs->log, segment, error);
    blobs->apply_target = &blobs->tail;
    wal__pack_memtable_deinit(&found);
    return status == WAL_OK && !has_index(blobs, segment->id) ? open_index(blobs, segment) : status;
}

/* Loads the indexes of all segments before the tail, and rebuilds missing ones from their segments.
 * Does nothing if they are loaded. */
static enum wal_status pack_indexes_load(struct wal__blob_store *blobs, struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    const struct wal__segment *tail = log->tail_segment;
    uint32_t count = wal__log_segment_count(log);
    enum wal_status status = WAL_OK;

    if (blobs->indexes_loaded) {
        return WAL_OK;
    }
    /* A part of the tail may have been applied before another process sealed it: then the rest
     * still comes. */
    if (count > 0 && !(tail->sealed && atomic_load(&tail->end) == tail->trailer.end)) {
        count--;
    }
    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__segment *segment = wal__log_segment_at(log, i);

        if (has_index(blobs, segment->id)) {
            continue;
        }
        status = open_index(blobs, segment);
        if (status == WAL_ENOTFOUND) {
            status = rebuild_index(blobs, segment, error);
        }
        if (status != WAL_OK) {
            return wal__fail_at(error, status, 0, segment->path, 0,
                                "cannot read the index of a pack segment");
        }
        WAL__ASSERT(has_index(blobs, segment->id));
    }
    blobs->indexes_loaded = true;
    return WAL_OK;
}

/* --- the log's client --------------------------------------------------- */

static enum wal_status apply(void *ctx, const struct wal__log_record *record)
{
    struct wal__blob_store *blobs = ctx;
    uint32_t offset = (uint32_t)wal__position_offset(record->position);
    struct wal__chunk_record chunk;
    struct wal__blob_record blob;

    switch (record->frame->type) {
    case WAL__FRAME_CHUNK:
        if (wal__chunk_record_decode(record->payload, &chunk) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        return wal__pack_memtable_add(blobs->apply_target, &chunk.digest, offset);
    case WAL__FRAME_BLOB:
        if (wal__blob_record_decode(record->payload, &blob) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        return wal__pack_memtable_add(blobs->apply_target, &blob.digest, offset);
    default:
        return WAL_OK; /* an ignorable type of a newer library */
    }
}

/* Readers of lost content get an error when they look it up. */
static enum wal_status ignore_lost(void *ctx, uint32_t session)
{
    (void)ctx;
    (void)session;
    return WAL_OK;
}

static enum wal_status ignore_orphan(void *ctx, const struct wal__log_record *record)
{
    (void)ctx;
    (void)record;
    return WAL_OK;
}

static enum wal_status encode(void *ctx, struct wal__index_header *header, struct wal__buf *out)
{
    struct wal__blob_store *blobs = ctx;

    return wal__pack_memtable_encode(blobs->apply_target, header, out);
}

static uint64_t index_bound(void *ctx, uint32_t postings, uint32_t sessions, uint64_t texts)
{
    struct wal__blob_store *blobs = ctx;

    (void)sessions;
    (void)texts;
    return wal__pack_index_size(blobs->tail.count + postings);
}

/* Encodes the index of a segment that another process ended without one. */
static enum wal_status build_memory_index(struct wal__blob_store *blobs,
                                          const struct wal__segment *segment)
{
    struct wal__index_header header;
    struct wal__pack_segment_index segment_index;
    struct wal__buf bytes;
    struct wal__span span;
    enum wal_status status = pack_index_file_open(blobs, segment->id, &segment_index);

    if (status != WAL_ENOTFOUND) {
        pack_segment_index_deinit(blobs->env, &segment_index);
        return status;
    }
    wal__log_index_header(&blobs->log, segment, &header);
    wal__buf_init(&bytes, blobs->env->heap);
    status = encode(blobs, &header, &bytes);
    if (status == WAL_OK) {
        WAL__ASSERT(bytes.size > WAL__FRAME_SIZE);
        span.data = bytes.data + WAL__FRAME_SIZE;
        span.size = bytes.size - WAL__FRAME_SIZE;
        status = pack_indexes_add_copy(blobs, segment->id, span);
    }
    wal__buf_deinit(&bytes);
    return status;
}

static enum wal_status on_segment_end(void *ctx, const struct wal__segment *segment,
                                      const struct wal__buf *index)
{
    struct wal__blob_store *blobs = ctx;
    enum wal_status status = WAL_OK;

    if (index != NULL) {
        struct wal__span bytes = {index->data + WAL__FRAME_SIZE, index->size - WAL__FRAME_SIZE};

        /* The index is derived data: if the file cannot be written, it is kept in memory. */
        if (wal__index_file_write(&blobs->log, segment->id, bytes, NULL) != WAL_OK) {
            status = pack_indexes_add_copy(blobs, segment->id, bytes);
        }
    } else if (!segment->sealed) {
        status = build_memory_index(blobs, segment);
    }
    if (status != WAL_OK) {
        return status;
    }
    pack_memtable_reset(blobs->apply_target);
    WAL__ASSERT(blobs->apply_target->count == 0);
    blobs->indexes_loaded = false;
    return WAL_OK;
}

/* --- loading ------------------------------------------------------------ */

/* Loads the index file of the tail segment: the records that it covers need no scan. */
static enum wal_status load_tail_index(struct wal__blob_store *blobs, struct wal__tail_state *state)
{
    struct wal__log *log = &blobs->log;
    const struct wal__index_header *header;
    struct wal__pack_segment_index segment_index;
    enum wal_status status;

    if (log->tail_segment == NULL || log->tail_segment->sealed ||
        (!log->control->is_first_opener &&
         atomic_load(&log->shared->indexed_tail_id) != log->tail_segment->id)) {
        return WAL_OK;
    }
    status = pack_index_file_open(blobs, log->tail_segment->id, &segment_index);
    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    header = &segment_index.index.header;
    if (wal__index_matches_tail(log, header, &state->pack_durable)) {
        WAL__ASSERT(blobs->tail.count == 0);
        status = pack_memtable_load(&blobs->tail, &segment_index.index);
        state->end = header->end;
        state->commit_offset = header->commit_offset;
        state->last_sequence = header->last_sequence;
        state->epoch = header->epoch;
        state->chain = header->chain;
        if (header->end > state->known_end) {
            state->known_end = header->end;
        }
    }
    pack_segment_index_deinit(blobs->env, &segment_index);
    return status;
}

/* Reloads everything. known_end is the offset in the tail segment that the log names durable. */
static enum wal_status load(struct wal__blob_store *blobs, uint64_t known_end, bool strict,
                            struct wal_error *error)
{
    struct wal__tail_state state = {.known_end = known_end};
    enum wal_status status;

    blobs->generation++;
    pack_indexes_discard(blobs);
    pack_memtable_reset(&blobs->tail);
    WAL__ASSERT(blobs->apply_target == &blobs->tail && !blobs->indexes_loaded);
    status = load_tail_index(blobs, &state);
    return status == WAL_OK ? wal__log_recover(&blobs->log, &state, strict, error) : status;
}

/* Whether no other process replaces segments. */
static bool is_alone(const struct wal__log *log)
{
    return log->control->is_first_opener && !log->env->read_only;
}

static enum wal_status reload(void *ctx, struct wal_error *error)
{
    struct wal__blob_store *blobs = ctx;
    struct wal__log *log = &blobs->log;
    enum wal_status status;
    int loads = 0;

    do {
        loads++;
        log->needs_reload = false;
        status = is_alone(log) ? WAL_OK : wal__log_refresh_segments(log, error);
        if (status == WAL_OK) {
            status = load(blobs, 0, false, error);
        }
        /* Repeat if another process healed the stream during the load, or replaced segments. */
    } while (status == WAL_OK ? log->needs_reload
                              : wal__log_find_replaced(log) && loads < WAL__LOADS_MAX);
    if (status != WAL_OK) {
        log->needs_reload = true;
    }
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

static void lock_state(void *ctx)
{
    struct wal__blob_store *blobs = ctx;

    pthread_rwlock_wrlock(&blobs->index_lock);
}

static void unlock_state(void *ctx)
{
    struct wal__blob_store *blobs = ctx;

    pthread_rwlock_unlock(&blobs->index_lock);
}

/* --- opening ------------------------------------------------------------ */

static void init_fields(struct wal__blob_store *blobs, const struct wal__env *env)
{
    memset(blobs, 0, sizeof(*blobs));
    blobs->env = env;
    blobs->leader_client = (struct wal__leader_client){blobs, lock_state, unlock_state, reload};
    pthread_mutex_init(&blobs->write_mutex, NULL);
    pthread_rwlock_init(&blobs->index_lock, NULL);
    wal__sha256_alg_init(&blobs->sha256_alg);
    wal__pack_memtable_init(&blobs->tail, env->heap);
    blobs->apply_target = &blobs->tail;
    blobs->is_open = true;
}

/* If the stream ends before the end that the log refers to, no position that was used is reused,
 * and nothing is appended to the remaining tail segment. */
static void skip_lost_positions(struct wal__blob_store *blobs, uint64_t referenced_end)
{
    struct wal__log *log = &blobs->log;
    uint64_t newest = log->tail_segment == NULL ? 0 : log->tail_segment->id;

    if (wal__position_segment(referenced_end) > newest) {
        log->newest_segment_lost = true;
        if (wal__position_segment(referenced_end) > log->highest_id) {
            log->highest_id = wal__position_segment(referenced_end);
        }
        WAL__ASSERT(log->highest_id > newest);
    }
}

static enum wal_status check_loss(const struct wal__blob_store *blobs, bool strict,
                                  struct wal_error *error)
{
    const struct wal__log *log = &blobs->log;

    if (!strict || (log->lost_segment_count == 0 && !log->newest_segment_lost)) {
        return WAL_OK;
    }
    return wal__fail_at(error, WAL_ECORRUPT, 0, blobs->env->root, 0,
                        "pack segments are missing or damaged; open the store without strict "
                        "to continue without them");
}

static void force_rotation(struct wal__log *log)
{
    if (log->tail_segment != NULL && !log->env->read_only &&
        (log->newest_segment_lost ||
         wal__encrypt_may_be_plain(log->env->keyring, &log->tail_segment->header))) {
        log->must_rotate = true;
        atomic_store(&log->shared->closed_segment_id, log->tail_segment->id);
    }
}

enum wal_status wal__blob_store_init(struct wal__blob_store *blobs, const struct wal__env *env,
                                     struct wal__control *control, const uint8_t uuid[16],
                                     uint32_t group_align, uint64_t referenced_end, bool strict,
                                     struct wal_error *error)
{
    const struct wal__log_client client = {blobs,  apply,       ignore_lost,   ignore_orphan,
                                           encode, index_bound, on_segment_end};
    struct wal__log *log = &blobs->log;
    uint64_t known_end = 0;
    enum wal_status status;

    init_fields(blobs, env);
    wal__log_init(log, env, control, WAL__LOG_ID_PACK, uuid, group_align, &client);
    status = wal__log_attach(log, error);
    if (status == WAL_OK) {
        status = wal__log_discard_uninitialised_tail(log, error);
    }
    if (status == WAL_OK && control->is_first_opener) {
        skip_lost_positions(blobs, referenced_end);
        status = check_loss(blobs, strict, error);
    }
    if (status == WAL_OK) {
        if (control->is_first_opener && log->tail_segment != NULL &&
            wal__position_segment(referenced_end) == log->tail_segment->id) {
            known_end = wal__position_offset(referenced_end);
        }
        status = load(blobs, known_end, strict, error);
    }
    /* Another process healed the stream during the load, or replaced segments. */
    if (status == WAL_OK ? log->needs_reload : !is_alone(log) && wal__log_find_replaced(log)) {
        status = reload(blobs, error);
    }
    if (status == WAL_OK && control->is_first_opener) {
        force_rotation(log);
    }
    WAL__ASSERT(status != WAL_OK || !log->needs_reload);
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

enum wal_status wal__blob_store_rejoin(struct wal__blob_store *blobs, struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    enum wal_status status;

    pthread_rwlock_wrlock(&blobs->index_lock);
    log->shared = &log->control->page->logs[log->log_id];
    status = reload(blobs, error);
    pthread_rwlock_unlock(&blobs->index_lock);
    return status;
}

enum wal_status wal__blob_store_finish(struct wal__blob_store *blobs, struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    enum wal_status status;

    if (atomic_load(&log->shared->written) == 0) {
        return WAL_OK; /* the stream is empty */
    }
    pthread_mutex_lock(&blobs->write_mutex);
    status = wal__leader_sync(log, &blobs->leader_client, atomic_load(&log->end), error);
    if (status == WAL_OK) {
        status = wal__leader_write_mark(log, &blobs->leader_client, true, error);
    }
    pthread_mutex_unlock(&blobs->write_mutex);
    return status;
}

enum wal_status wal__blob_store_rotate(struct wal__blob_store *blobs, struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&blobs->write_mutex);
    status = wal__leader_rotate(&blobs->log, &blobs->leader_client, error);
    pthread_mutex_unlock(&blobs->write_mutex);
    return status;
}

void wal__blob_store_invalidate(struct wal__blob_store *blobs)
{
    if (blobs->is_open) {
        pthread_rwlock_wrlock(&blobs->index_lock);
        blobs->log.needs_reload = true;
        pthread_rwlock_unlock(&blobs->index_lock);
    }
}

enum wal_status wal__blob_store_publish(struct wal__blob_store *blobs, struct wal_error *error)
{
    enum wal_status status;

    atomic_fetch_add(&blobs->log.shared->rewrites, 1);
    status = wal__blob_store_read_lock(blobs, error);
    if (status == WAL_OK) {
        wal__blob_store_unlock(blobs);
    }
    return status;
}

enum wal_status wal__blob_store_write_index(struct wal__blob_store *blobs, struct wal_error *error)
{
    return wal__index_file_can_write_tail(&blobs->log)
               ? wal__index_file_write_tail(&blobs->log, error)
               : WAL_OK;
}

void wal__blob_store_deinit(struct wal__blob_store *blobs)
{
    if (!blobs->is_open) {
        return;
    }
    pack_indexes_discard(blobs);
    wal__pack_memtable_deinit(&blobs->tail);
    wal__log_close(&blobs->log);
    wal__sha256_alg_deinit(&blobs->sha256_alg);
    pthread_mutex_destroy(&blobs->write_mutex);
    pthread_rwlock_destroy(&blobs->index_lock);
    blobs->is_open = false;
}

/* --- looking up --------------------------------------------------------- */

/* The position of the newest record with the digest that this process has applied, or 0. The caller
 * holds index_lock, and the indexes are loaded. */
static uint64_t blob_find_locked(const struct wal__blob_store *blobs,
                                 const struct wal__digest *digest)
{
    uint32_t offset;

    if (pack_memtable_find(&blobs->tail, digest, &offset)) {
        WAL__ASSERT(blobs->log.tail_segment != NULL);
        return wal__position(blobs->log.tail_segment->id, offset);
    }
    for (uint32_t i = blobs->index_count; i > 0; i--) {
        const struct wal__pack_segment_index *segment_index = &blobs->indexes[i - 1];

        WAL__ASSERT(i < 2 || blobs->indexes[i - 2].id < segment_index->id);
        if (wal__pack_index_find(&segment_index->index, digest, &offset)) {
            return wal__position(segment_index->id, offset);
        }
    }
    return 0;
}

uint64_t wal__blob_condemned_end(const struct wal__blob_store *blobs)
{
    uint64_t id = wal__content_condemned(blobs->log.control);

    return id == 0 ? 0 : wal__position(id + 1, 0) - 1;
}

uint64_t wal__blob_sync_end(uint64_t position)
{
    return position + WAL__FRAME_SIZE;
}

static enum wal_status catch_up(struct wal__blob_store *blobs, struct wal_error *error)
{
    return wal__leader_apply_published(&blobs->log, &blobs->leader_client, error);
}

bool wal__blob_store_look_again(struct wal__blob_store *blobs, uint64_t *looked)
{
    const uint64_t before = *looked;

    pthread_rwlock_wrlock(&blobs->index_lock);
    if (wal__log_find_replaced(&blobs->log)) {
        blobs->log.needs_reload = true;
    }
    *looked = catch_up(blobs, NULL) == WAL_OK ? blobs->generation : UINT64_MAX;
    pthread_rwlock_unlock(&blobs->index_lock);
    return *looked != before;
}

enum wal_status wal__blob_store_read_lock(struct wal__blob_store *blobs, struct wal_error *error)
{
    pthread_rwlock_rdlock(&blobs->index_lock);
    if (!wal__log_needs_catch_up(&blobs->log)) {
        return WAL_OK;
    }
    pthread_rwlock_unlock(&blobs->index_lock);
    return wal__blob_store_write_lock(blobs, error);
}

enum wal_status wal__blob_store_write_lock(struct wal__blob_store *blobs, struct wal_error *error)
{
    enum wal_status status;

    pthread_rwlock_wrlock(&blobs->index_lock);
    status = catch_up(blobs, error);
    if (status != WAL_OK) {
        pthread_rwlock_unlock(&blobs->index_lock);
        return status;
    }
    WAL__ASSERT(!blobs->log.needs_reload);
    return WAL_OK;
}

void wal__blob_store_unlock(struct wal__blob_store *blobs)
{
    pthread_rwlock_unlock(&blobs->index_lock);
}

void wal__blob_store_close_replaced(struct wal__blob_store *blobs)
{
    struct wal__log *log = &blobs->log;
    bool must;

    pthread_rwlock_rdlock(&blobs->index_lock);
    must = atomic_load(&log->has_retired) || wal__log_is_outdated(log);
    pthread_rwlock_unlock(&blobs->index_lock);
    if (!must) {
        return;
    }
    pthread_mutex_lock(&blobs->write_mutex);
    pthread_rwlock_wrlock(&blobs->index_lock);
    if (catch_up(blobs, NULL) == WAL_OK) {
        wal__log_close_retired(log);
    }
    pthread_rwlock_unlock(&blobs->index_lock);
    pthread_mutex_unlock(&blobs->write_mutex);
}

/* Catches up and loads the indexes before the look-up. */
static enum wal_status catch_up_and_find(struct wal__blob_store *blobs,
                                         const struct wal__digest *digest, uint64_t *position,
                                         struct wal_error *error)
{
    enum wal_status status;

    pthread_rwlock_wrlock(&blobs->index_lock);
    for (int attempt = 1;; attempt++) {
        status = catch_up(blobs, error);
        if (status == WAL_OK) {
            status = pack_indexes_load(blobs, error);
        }
        if (status == WAL_OK || attempt == WAL__LOADS_MAX || !wal__log_find_replaced(&blobs->log)) {
            break;
        }
        blobs->log.needs_reload = true; /* a compaction was faster */
    }
    if (status == WAL_OK) {
        WAL__ASSERT(blobs->indexes_loaded);
        *position = blob_find_locked(blobs, digest);
    }
    pthread_rwlock_unlock(&blobs->index_lock);
    return status;
}

/* Sets *position to 0 if the digest is not found. */
static enum wal_status find(struct wal__blob_store *blobs, const struct wal__digest *digest,
                            uint64_t *position, struct wal_error *error)
{
    bool current;

    *position = 0;
    pthread_rwlock_rdlock(&blobs->index_lock);
    current = blobs->indexes_loaded && !wal__log_needs_catch_up(&blobs->log);
    if (current) {
        *position = blob_find_locked(blobs, digest);
    }
    pthread_rwlock_unlock(&blobs->index_lock);
    return current ? WAL_OK : catch_up_and_find(blobs, digest, position, error);
}

enum wal_status wal__blob_find(struct wal__blob_store *blobs, const struct wal__digest *digest,
                               uint64_t *position, struct wal_error *error)
{
    char text[WAL__DIGEST_HEX_SIZE];
    uint64_t found;
    enum wal_status status = find(blobs, digest, &found, error);

    if (status != WAL_OK) {
        return status;
    }
    if (found == 0) {
        wal__hex_write(digest->bytes, WAL__DIGEST_SIZE, text);
        return wal__fail(error, WAL_ENOTFOUND, "the store has no content with SHA-256 %s", text);
    }
    *position = found;
    return WAL_OK;
}

/* --- appending ---------------------------------------------------------- */

enum { GROUP_SIZE = 4 * 1024 * 1024 };

/* Creates the pack directory for the first blob of the store. */
static enum wal_status make_directory(struct wal__blob_store *blobs, struct wal_error *error)
{
    const struct wal__io *io = blobs->env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    if (blobs->log.tail_segment != NULL) {
        return WAL_OK;
    }
    wal__segment_path(blobs->env, blobs->log.directory, 0, path);
    *strrchr(path, '/') = '\0';
    status = io->make_directory(io->ctx, path, &err);
    if (status == WAL_OK || status == WAL_EEXISTS) {
        /* A process that created it may have died before the name was durable. */
        status = io->sync_directory(io->ctx, blobs->env->root, &err);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, path, 0, "cannot create the pack directory");
    }
    return WAL_OK;
}

static uint64_t frame_span(const struct wal__blob_prepared *prepared)
{
    return wal__frame_total_size(prepared->header.stored_size);
}

/* Whether content that another thread stored meanwhile is kept as long as the owner of this one
 * needs it. */
static bool is_kept(struct wal__blob_store *blobs, const struct wal__blob_prepared *prepared,
                    uint64_t position)
{
    struct wal__record_buf scratch;
    struct wal__frame frame;
    struct wal__span ignored;
    bool is_kept;

    if (wal__blob_frame_owner(&prepared->header) == WAL__BLOB_OF_RECORDS) {
        return true;
    }
    wal__record_buf_init(&scratch, blobs->env->heap);
    is_kept = wal__log_peek(&blobs->log, position, 0, &scratch, &frame, &ignored, NULL) == WAL_OK &&
              wal__blob_frame_owner(&frame) == WAL__BLOB_OF_CALLER;
    wal__record_buf_deinit(&scratch);
    return is_kept;
}

/* The position that must be durable for content that is stored and can be relied on, or 0. */
static uint64_t find_existing_end(struct wal__blob_store *blobs,
                                  const struct wal__blob_prepared *prepared)
{
    uint64_t position = blob_find_locked(blobs, &prepared->digest);

    return position <= blobs->condemned_end || position == prepared->unusable_position ||
                   !is_kept(blobs, prepared, position)
               ? 0
               : wal__blob_sync_end(position);
}

/* Plans a group from `first` on: sets the end of contents that other processes have written, and
 * sums the others in *reservation. Returns the end of the group. */
static uint32_t plan_group(struct wal__blob_store *blobs, struct wal__blob_prepared *prepared,
                           uint32_t first, uint32_t count, struct wal__log_reservation *reservation)
{
    WAL__ASSERT(first < count);
    memset(reservation, 0, sizeof(*reservation));
    while (first < count) {
        struct wal__blob_prepared *next = &prepared[first];

        if (next->end == 0) {
            next->end = find_existing_end(blobs, next);
        }
        if (next->end == 0) {
            if (reservation->frames > 0 && reservation->size + frame_span(next) > GROUP_SIZE) {
                break;
            }
            reservation->size += frame_span(next);
            reservation->frames++;
        }
        first++;
    }
    return first;
}

static enum wal_status add_record(struct wal__blob_store *blobs, struct wal__group *group,
                                  struct wal__blob_prepared *prepared)
{
    struct wal__log *log = &blobs->log;
    uint64_t offset = wal__group_offset(group, log);
    enum wal_status status;

    WAL__ASSERT(prepared->end == 0 && prepared->frame.size == frame_span(prepared));
    WAL__ASSERT(offset <= UINT32_MAX);
    status = wal__group_add(group, log, &prepared->header, prepared->frame.data);
    return status == WAL_OK
               ? wal__pack_memtable_add(&blobs->tail, &prepared->digest, (uint32_t)offset)
               : status;
}

/* Sets the end of the contents of a group that was written. */
static void set_ends(struct wal__blob_prepared *prepared, uint32_t first, uint32_t end,
                     uint64_t written_end)
{
    WAL__ASSERT(written_end != 0);
    for (uint32_t i = first; i < end; i++) {
        if (prepared[i].end == 0) {
            prepared[i].end = written_end;
        }
    }
}

/* Writes the contents of [first, end) that have no end yet. The range may contain a content twice:
 * the look-up finds the first one's record. */
static enum wal_status write_group(struct wal__blob_store *blobs,
                                   struct wal__blob_prepared *prepared, uint32_t first,
                                   uint32_t end, struct wal__blob_put_result *result,
                                   struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    struct wal__blob_put_result added = {0};
    enum wal_status status = WAL_OK;
    struct wal__group group;

    WAL__ASSERT(first < end && blobs->apply_target == &blobs->tail);
    wal__group_init(&group, log);
    group.is_synced = true; /* before a record names the contents */
    for (uint32_t i = first; i < end && status == WAL_OK; i++) {
        if (prepared[i].end != 0 || find_existing_end(blobs, &prepared[i]) != 0) {
            continue;
        }
        status = add_record(blobs, &group, &prepared[i]);
        added.new_blobs++;
        added.new_bytes += frame_span(&prepared[i]);
    }
    if (status != WAL_OK) {
        /* The memtable contains records that are not in the stream. */
        log->needs_reload = true;
        wal__fail(error, status, "no memory");
        goto done;
    }
    status = wal__group_write(&group, log, error);
    if (status != WAL_OK) {
        goto done;
    }
    set_ends(prepared, first, end, atomic_load(&log->end));
    result->new_blobs += added.new_blobs;
    result->new_bytes += added.new_bytes;
done:
    wal__group_deinit(&group);
    return status;
}

/* Plans, reserves and writes one group from *first on, and advances *first. */
static enum wal_status append_group(struct wal__blob_store *blobs,
                                    struct wal__blob_prepared *prepared, uint32_t *first,
                                    uint32_t count, struct wal__blob_put_result *result,
                                    struct wal_error *error)
{
    struct wal__log_reservation reservation;
    uint32_t begin = *first;
    enum wal_status status;

    *first = plan_group(blobs, prepared, begin, count, &reservation);
    WAL__ASSERT(*first > begin && *first <= count);
    if (reservation.frames == 0) {
        return WAL_OK;
    }
    status = make_directory(blobs, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__leader_reserve(&blobs->log, &reservation, error);
    if (status != WAL_OK) {
        return status;
    }
    return write_group(blobs, prepared, begin, *first, result, error);
}

/* Between wal__leader_begin and wal__leader_end. */
static enum wal_status append_all(struct wal__blob_store *blobs,
                                  struct wal__blob_prepared *prepared, uint32_t count,
                                  struct wal__blob_put_result *result, struct wal_error *error)
{
    enum wal_status status = pack_indexes_load(blobs, error);
    uint32_t first = 0;

    while (status == WAL_OK && first < count) {
        status = append_group(blobs, prepared, &first, count, result, error);
    }
    return status;
}

/* One attempt. WAL_EPOISONED: the next one heals the stream first. */
static enum wal_status try_append(struct wal__blob_store *blobs,
                                  struct wal__blob_prepared *prepared, uint32_t count,
                                  struct wal__blob_put_result *result, struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(wal__content_guard_is_held(blobs->log.control));
    blobs->condemned_end = wal__blob_condemned_end(blobs);
    status = wal__leader_begin(&blobs->log, &blobs->leader_client, true, error);
    if (status == WAL_OK) {
        status = append_all(blobs, prepared, count, result, error);
        wal__leader_end(&blobs->log, &blobs->leader_client);
    }
    return status;
}

enum wal_status wal__pack_append(struct wal__blob_store *blobs, struct wal__blob_prepared *prepared,
                                 uint32_t count, struct wal__blob_put_result *result,
                                 struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool all_stored = true;

    for (uint32_t i = 0; i < count; i++) {
        all_stored = all_stored && prepared[i].end != 0;
    }
    if (!all_stored) {
        pthread_mutex_lock(&blobs->write_mutex);
        status = try_append(blobs, prepared, count, result, error);
        for (int i = 0; status == WAL_EPOISONED && i < WAL__HEAL_ATTEMPTS; i++) {
            status = try_append(blobs, prepared, count, result, error);
        }
        pthread_mutex_unlock(&blobs->write_mutex);
    }
    for (uint32_t i = 0; i < count; i++) {
        WAL__ASSERT(status != WAL_OK || prepared[i].end != 0);
        if (prepared[i].end > result->end) {
            result->end = prepared[i].end;
        }
    }
    return status;
}

enum wal_status wal__blob_store_sync(struct wal__blob_store *blobs, uint64_t end,
                                     struct wal_error *error)
{
    enum wal_status status;

    if (end == 0 || blobs->env->io->forgets) {
        return WAL_OK;
    }
    status = wal__log_sync(&blobs->log, end, NULL);
    if (status != WAL_OK) {
        pthread_mutex_lock(&blobs->write_mutex);
        status = wal__leader_sync(&blobs->log, &blobs->leader_client, end, error);
        pthread_mutex_unlock(&blobs->write_mutex);
    }
    return status;
}

uint64_t wal__blob_store_durable_end(const struct wal__blob_store *blobs)
{
    return atomic_load(&blobs->log.shared->durable);
}

/* --- the records of a segment ------------------------------------------- */

static enum wal_status list_index(const struct wal__pack_index *index, uint64_t id,
                                  struct wal__buf *places)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.posting_count && status == WAL_OK; i++) {
        struct wal__pack_place place;

        memcpy(place.digest.bytes, index->digests + (size_t)i * WAL__DIGEST_SIZE, WAL__DIGEST_SIZE);
        place.position = wal__position(id, wal__get32(index->offsets + (size_t)i * 4));
        status = wal__buf_append(places, &place, sizeof(place));
    }
    return status;
}

static enum wal_status list_tail(const struct wal__blob_store *blobs, uint64_t id,
                                 struct wal__buf *places)
{
    const struct wal__pack_entry *entries = (const void *)blobs->tail.entries.data;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < blobs->tail.count && status == WAL_OK; i++) {
        const struct wal__pack_place place = {entries[i].digest,
                                              wal__position(id, entries[i].offset)};

        status = wal__buf_append(places, &place, sizeof(place));
    }
    return status;
}

/* With the index lock for writing, and the indexes loaded. */
static enum wal_status list_locked(struct wal__blob_store *blobs, uint64_t id,
                                   struct wal__index_header *header, struct wal__buf *places)
{
    const struct wal__segment *tail = blobs->log.tail_segment;

    for (uint32_t i = 0; i < blobs->index_count; i++) {
        const struct wal__pack_index *index = &blobs->indexes[i].index;

        if (blobs->indexes[i].id == id) {
            *header = index->header;
            return list_index(index, id, places);
        }
    }
    return tail != NULL && tail->id == id ? list_tail(blobs, id, places) : WAL_ENOTFOUND;
}

enum wal_status wal__pack_list(struct wal__blob_store *blobs, uint64_t id,
                               struct wal__index_header *header, struct wal__buf *places,
                               struct wal_error *error)
{
    enum wal_status status = wal__blob_store_read_lock(blobs, error);

    places->size = 0;
    memset(header, 0, sizeof(*header));
    if (status != WAL_OK) {
        return status;
    }
    wal__blob_store_unlock(blobs);
    pthread_rwlock_wrlock(&blobs->index_lock);
    status = pack_indexes_load(blobs, error);
    if (status == WAL_OK) {
        status = list_locked(blobs, id, header, places);
        if (status != WAL_OK) {
            wal__fail(error, status, "cannot list a segment of the pack");
        }
    }
    pthread_rwlock_unlock(&blobs->index_lock);
    return status;
}
