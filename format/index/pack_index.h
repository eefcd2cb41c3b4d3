/*
 * pack_index.h - the index of a pack segment: the offset of each digest's
 * record (SPEC.md 2.20). Searches work on the mapped bytes.
 *
 * Invariant: every count is checked against the bytes before it is used, so a
 * search never reads outside them, whether or not the checksums match.
 * Threads: any.
 */
#ifndef AGENTWAL_FORMAT_INDEX_PACK_INDEX_H
#define AGENTWAL_FORMAT_INDEX_PACK_INDEX_H

#include "format/index/index_fmt.h"
#include "format/segment/record_blob.h"

enum {
    WAL__PACK_FAN_OUT = 256
};

/* A decoded index. header.posting_count is the number of digests; the header's
 * fields about sessions and texts are 0. */
struct wal__pack_index {
    struct wal__index_header header;
    const uint8_t *fan_out;
    const uint8_t *digests; /* ascending; of equal ones, the newest is last */
    const uint8_t *offsets;
};

/* Returns the bytes of an index of `count` digests. */
uint64_t wal__pack_index_size(uint32_t count);

/* Writes the entry of a rank, below `count`, into the body of the index at
 * `out`. Digests must ascend with ranks. */
void wal__pack_index_put(uint8_t *out, uint32_t count, uint32_t rank,
                         const struct wal__digest *digest, uint32_t offset);
/* Writes the fan-out and the header. All entries must be in place. */
void wal__pack_index_finish(const struct wal__index_header *header,
                            uint8_t *out);

/* Checks header, sizes, both CRCs and the fan-out. */
enum wal__fmt wal__pack_index_decode(struct wal__span bytes,
                                     struct wal__pack_index *index);

/* Finds the offset of the newest record of a digest; false: there is none. */
bool wal__pack_index_find(const struct wal__pack_index *index,
                          const struct wal__digest *digest, uint32_t *offset);

#endif
