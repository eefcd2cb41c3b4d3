/*
 * pack_index.h - the index of a pack segment: where each digest's record lies
 * in it (SPEC.md 2.20). Searched in the mapped bytes as they are.
 *
 * Invariant: every count is checked against the bytes before it is used, so
 * that a search never leaves them, whatever the checksums said.
 */
#ifndef AGENTWAL_FORMAT_INDEX_PACK_INDEX_H
#define AGENTWAL_FORMAT_INDEX_PACK_INDEX_H

#include "format/index/index_fmt.h"
#include "format/segment/record_blob.h"

enum {
    WAL__PACK_FAN_OUT = 256
};

/* A decoded index. Of the header posting_count counts the digests; what tells
 * of sessions and texts is 0. */
struct wal__pack_index {
    struct wal__index_header header;
    const uint8_t *fan_out;
    const uint8_t *digests; /* ascending; of equal ones the newest is last */
    const uint8_t *offsets;
};

/* Bytes of a whole index of so many digests. */
uint64_t wal__pack_index_size(uint32_t count);

/* Places an entry into the body behind the header at `out`, ranks ascending;
 * the index has `count`. */
void wal__pack_index_put(uint8_t *out, uint32_t count, uint32_t rank,
                         const struct wal__digest *digest, uint32_t offset);
/* Fills the fan-out and the header, all entries being in place. */
void wal__pack_index_finish(const struct wal__index_header *header,
                            uint8_t *out);

/* Header, sizes, both CRCs, and the fan-out. */
enum wal__fmt wal__pack_index_decode(struct wal__span bytes,
                                     struct wal__pack_index *index);

/* Offset of the newest record with the digest; false: there is none. */
bool wal__pack_index_find(const struct wal__pack_index *index,
                          const struct wal__digest *digest, uint32_t *offset);

#endif
