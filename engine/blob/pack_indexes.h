/*
 * pack_indexes.h - the indexes of the pack segments before the tail (SPEC.md
 * 3.6). For engine/blob alone. The caller holds the index lock of blob_store.h
 * for writing.
 */
#ifndef AGENTWAL_ENGINE_BLOB_PACK_INDEXES_H
#define AGENTWAL_ENGINE_BLOB_PACK_INDEXES_H

#include "engine/blob/blob.h"
#include "engine/log/index_file.h"
#include "format/index/pack_index.h"

/* The index of one segment. Its bytes are in the segment's map, in a mapped
 * index file, or in `buffer`. */
struct wal__pack_segment_index {
    uint64_t id;
    struct wal__pack_index index;
    struct wal__mapped_file mapped;
    uint8_t *buffer; /* heap */
};

/* Loads the indexes of all segments before the tail, and rebuilds missing ones
 * from their segments. Does nothing if they are loaded. */
enum wal_status wal__pack_indexes_load(struct wal__blob_store *blobs,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__pack_indexes_discard(struct wal__blob_store *blobs);
/* Adds a copy of an encoded index, for a segment that has none in the set.
 * WAL_ECORRUPT when it does not decode. */
enum wal_status wal__pack_indexes_add_copy(struct wal__blob_store *blobs,
                                           uint64_t id,
                                           struct wal__span bytes) WAL_MUST_USE;
/* Opens index/pack-ID.idx; WAL_ENOTFOUND when it is missing or invalid. The
 * index is not added to the set. It may be deinited after a failure too. */
enum wal_status wal__pack_index_file_open(
    const struct wal__blob_store *blobs, uint64_t id,
    struct wal__pack_segment_index *segment_index) WAL_MUST_USE;
void wal__pack_segment_index_deinit(
    const struct wal__env *env, struct wal__pack_segment_index *segment_index);

#endif
