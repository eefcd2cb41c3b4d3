/*
 * pack_list.h - which records a segment of the blob stream has, for compaction
 * (SPEC.md 3.9). Any thread.
 */
#ifndef AGENTWAL_ENGINE_BLOB_PACK_LIST_H
#define AGENTWAL_ENGINE_BLOB_PACK_LIST_H

#include "engine/blob/blob.h"
#include "format/index/index_fmt.h"

/* A record, by its index. */
struct wal__pack_place {
    struct wal__digest digest;
    uint64_t position;
};

/* Replaces the contents of *places, of struct wal__pack_place, by the records
 * of a segment; also of the tail, whose header is zeros. *header is that of its
 * index. WAL_ENOTFOUND: there is no such segment. */
enum wal_status wal__pack_list(struct wal__blob_store *blobs, uint64_t id,
                               struct wal__index_header *header,
                               struct wal__buf *places,
                               struct wal_error *error) WAL_MUST_USE;

#endif
