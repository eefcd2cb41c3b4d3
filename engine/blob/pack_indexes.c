/*
 * pack_indexes.c - the indexes of the pack segments before the tail
 * (pack_indexes.h; SPEC.md 3.6): mapped from the segment's INDEX frame or from
 * index/pack-ID.idx, or kept in memory. They are opened by the first look-up of
 * a digest, so that blobs cost nothing when a store is opened.
 *
 * Invariant: the set ascends by id and has at most one index per segment. The
 * caller holds index_lock for writing.
 */
#include "engine/blob/pack_indexes.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blob_store.h"
#include "format/bytes/assert.h"

void wal__pack_segment_index_deinit(
    const struct wal__env *env, struct wal__pack_segment_index *segment_index)
{
    wal__mapped_file_close(env, &segment_index->mapped);
    wal__heap_free(env->heap, segment_index->buffer);
    memset(segment_index, 0, sizeof(*segment_index));
}

void wal__pack_indexes_discard(struct wal__blob_store *blobs)
{
    for (uint32_t i = 0; i < blobs->index_count; i++) {
        wal__pack_segment_index_deinit(blobs->env, &blobs->indexes[i]);
    }
    wal__heap_free(blobs->env->heap, blobs->indexes);
    blobs->indexes = NULL;
    blobs->index_count = 0;
    blobs->index_capacity = 0;
    blobs->indexes_loaded = false;
}

static uint32_t lower_bound(const struct wal__blob_store *blobs, uint64_t id)
{
    uint32_t low = 0;
    uint32_t high = blobs->index_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (blobs->indexes[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool has_index(const struct wal__blob_store *blobs, uint64_t id)
{
    uint32_t rank = lower_bound(blobs, id);

    return rank < blobs->index_count && blobs->indexes[rank].id == id;
}

/* Moves the index into the set, which has none of its id. */
static enum wal_status
insert(struct wal__blob_store *blobs,
       const struct wal__pack_segment_index *segment_index)
{
    uint32_t rank = lower_bound(blobs, segment_index->id);
    struct wal__pack_segment_index *indexes = wal__heap_grow_array(
        blobs->env->heap, blobs->indexes, blobs->index_count,
        &blobs->index_capacity, sizeof(*indexes));

    if (indexes == NULL) {
        return WAL_ENOMEM;
    }
    blobs->indexes = indexes;
    WAL__ASSERT(blobs->index_count < blobs->index_capacity);
    WAL__ASSERT(rank == 0 || indexes[rank - 1].id < segment_index->id);
    memmove(&indexes[rank + 1], &indexes[rank],
            (blobs->index_count - rank) * sizeof(*segment_index));
    indexes[rank] = *segment_index;
    blobs->index_count++;
    WAL__ASSERT(rank + 1 == blobs->index_count ||
                indexes[rank].id < indexes[rank + 1].id);
    return WAL_OK;
}

enum wal_status wal__pack_indexes_add_copy(struct wal__blob_store *blobs,
                                           uint64_t id, struct wal__span bytes)
{
    struct wal__pack_segment_index segment_index = {.id = id};
    struct wal__span copy;
    enum wal_status status = WAL_ENOMEM;

    segment_index.buffer = wal__heap_alloc(blobs->env->heap, bytes.size);
    if (segment_index.buffer != NULL) {
        memcpy(segment_index.buffer, bytes.data, bytes.size);
        copy.data = segment_index.buffer;
        copy.size = bytes.size;
        status =
            wal__pack_index_decode(copy, &segment_index.index) == WAL__FMT_OK
                ? insert(blobs, &segment_index)
                : WAL_ECORRUPT;
    }
    if (status != WAL_OK) {
        wal__pack_segment_index_deinit(blobs->env, &segment_index);
    }
    return status;
}

/* Decodes the INDEX frame of a sealed segment in its map. */
static enum wal_status
open_sealed(struct wal__segment *segment,
            struct wal__pack_segment_index *segment_index)
{
    struct wal__span bytes;
    enum wal_status status = wal__index_read_sealed(segment, &bytes);

    WAL__ASSERT(segment->sealed);
    if (status != WAL_OK) {
        return status;
    }
    return wal__pack_index_decode(bytes, &segment_index->index) == WAL__FMT_OK
               ? WAL_OK
               : WAL_ENOTFOUND;
}

enum wal_status
wal__pack_index_file_open(const struct wal__blob_store *blobs, uint64_t id,
                          struct wal__pack_segment_index *segment_index)
{
    char path[WAL__PATH_MAX];
    struct wal__span bytes;
    enum wal_status status;

    memset(segment_index, 0, sizeof(*segment_index));
    segment_index->id = id;
    wal__index_path(blobs->env, WAL__LOG_ID_PACK, id, path);
    status =
        wal__mapped_file_open(blobs->env, path, &segment_index->mapped, NULL);
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
        wal__pack_segment_index_deinit(blobs->env, segment_index);
        return WAL_ENOTFOUND;
    }
    return WAL_OK;
}

/* Adds the index of a segment from its INDEX frame or its index file;
 * WAL_ENOTFOUND if neither is valid. */
static enum wal_status open_index(struct wal__blob_store *blobs,
                                  struct wal__segment *segment)
{
    struct wal__pack_segment_index segment_index = {.id = segment->id};
    enum wal_status status = wal__segment_refresh(segment);

    if (status == WAL_OK) {
        status = segment->sealed ? open_sealed(segment, &segment_index)
                                 : WAL_ENOTFOUND;
    }
    if (status == WAL_ENOTFOUND) {
        status = wal__pack_index_file_open(blobs, segment->id, &segment_index);
    }
    if (status == WAL_OK &&
        atomic_load(&segment->end) == WAL__SEGMENT_HEADER_SIZE) {
        /* The OPEN frame of the next segment, which has the end, was lost. */
        atomic_store(&segment->end, segment_index.index.header.end);
    }
    if (status == WAL_OK &&
        (segment_index.index.header.id != segment->id ||
         segment_index.index.header.end != atomic_load(&segment->end))) {
        status = WAL_ENOTFOUND;
    }
    if (status == WAL_OK) {
        status = insert(blobs, &segment_index);
    }
    if (status != WAL_OK) {
        wal__pack_segment_index_deinit(blobs->env, &segment_index);
    }
    return status;
}

/* Scans the segment and adds an index: an index file, or one in memory. */
static enum wal_status rebuild_index(struct wal__blob_store *blobs,
                                     struct wal__segment *segment,
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
    return status == WAL_OK && !has_index(blobs, segment->id)
               ? open_index(blobs, segment)
               : status;
}

enum wal_status wal__pack_indexes_load(struct wal__blob_store *blobs,
                                       struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    uint32_t count = wal__log_segment_count(log);
    enum wal_status status = WAL_OK;

    if (blobs->indexes_loaded) {
        return WAL_OK;
    }
    if (count > 0 && !log->tail_segment->sealed) {
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
