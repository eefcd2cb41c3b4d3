/*
 * pack_tail.h - the digests of a pack segment that has no index yet, in memory
 * (SPEC.md 3.6). Caller's lock.
 */
#ifndef WAL_BLOB_PACK_TAIL_H
#define WAL_BLOB_PACK_TAIL_H

#include "engine/base/buf.h"
#include "engine/base/map.h"
#include "format/pack_index.h"

struct wal__pack_entry {
    struct wal__digest digest;
    uint32_t offset; /* of the frame in the segment */
};

struct wal__pack_tail {
    struct wal__buf entries; /* of struct wal__pack_entry, as they came */
    struct wal__map map;     /* hash of the digest -> its rank */
    uint32_t count;
};

void wal__pack_tail_init(struct wal__pack_tail *tail,
                         const struct wal__heap *heap);
void wal__pack_tail_deinit(struct wal__pack_tail *tail);
/* Forgets all. */
void wal__pack_tail_reset(struct wal__pack_tail *tail);

enum wal_status wal__pack_tail_add(struct wal__pack_tail *tail,
                                   const struct wal__digest *digest,
                                   uint32_t offset) WAL_MUST_USE;
/* Takes all that an index holds. */
enum wal_status
wal__pack_tail_take(struct wal__pack_tail *tail,
                    const struct wal__pack_index *index) WAL_MUST_USE;
/* Offset of the newest record with the digest. */
bool wal__pack_tail_find(const struct wal__pack_tail *tail,
                         const struct wal__digest *digest, uint32_t *offset);

/* The index of the segment, behind room for a frame's header, appended to
 * out. header->posting_count is set. */
enum wal_status wal__pack_tail_encode(const struct wal__pack_tail *tail,
                                      struct wal__index_header *header,
                                      struct wal__buf *out) WAL_MUST_USE;

#endif
