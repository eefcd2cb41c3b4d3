/*
 * pack_memtable.h - the digests of a pack segment that has no index yet, in
 * memory (SPEC.md 3.6). The caller's lock: one writer, or any readers.
 */
#ifndef AGENTWAL_ENGINE_BLOB_PACK_MEMTABLE_H
#define AGENTWAL_ENGINE_BLOB_PACK_MEMTABLE_H

#include "engine/base/buf.h"
#include "engine/base/containers.h"
#include "format/index/pack_index.h"

struct wal__pack_entry {
    struct wal__digest digest;
    uint32_t offset; /* of the frame in the segment */
};

struct wal__pack_memtable {
    struct wal__buf entries; /* of struct wal__pack_entry, in log order */
    struct wal__hashmap map; /* hash of the digest -> rank in entries */
    uint32_t count;
};

void wal__pack_memtable_init(struct wal__pack_memtable *memtable,
                             const struct wal__heap *heap);
void wal__pack_memtable_deinit(struct wal__pack_memtable *memtable);
/* Removes all entries and frees their memory. */
void wal__pack_memtable_reset(struct wal__pack_memtable *memtable);

/* Adds the next record. WAL_ENOMEM leaves the memtable unchanged. */
enum wal_status wal__pack_memtable_add(struct wal__pack_memtable *memtable,
                                       const struct wal__digest *digest,
                                       uint32_t offset) WAL_MUST_USE;
/* Adds all entries of an index. */
enum wal_status
wal__pack_memtable_load(struct wal__pack_memtable *memtable,
                        const struct wal__pack_index *index) WAL_MUST_USE;
/* The offset of the newest record with the digest; false if there is none. */
bool wal__pack_memtable_find(const struct wal__pack_memtable *memtable,
                             const struct wal__digest *digest,
                             uint32_t *offset);

/* Appends the index of the segment to out, after room for a frame's header.
 * Sets header->posting_count. */
enum wal_status
wal__pack_memtable_encode(const struct wal__pack_memtable *memtable,
                          struct wal__index_header *header,
                          struct wal__buf *out) WAL_MUST_USE;

#endif
