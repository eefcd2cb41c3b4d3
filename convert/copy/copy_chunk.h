/*
 * copy_chunk.h - the payloads of a copy's chunks (SPEC.md 5.17): encoding and
 * decoding with compression.
 *
 * Invariant: any bytes may be decoded; inconsistent ones are refused.
 *
 * Threads: no shared state.
 */
#ifndef AGENTWAL_CONVERT_COPY_COPY_CHUNK_H
#define AGENTWAL_CONVERT_COPY_COPY_CHUNK_H

#include "agentwal.h"
#include "convert/copy/line_delta.h"

struct wal__heap;

enum {
    WAL__COPY_CHUNK_MAX = WAL__DELTA_HEADER_SIZE + 4 * WAL__DELTA_PART_MAX +
                          WAL__DELTA_UUIDS_MAX * WAL__DELTA_UUID_SIZE +
                          WAL__DELTA_LINES_MAX
};

/* A decoded chunk. Zeroed: none. */
struct wal__copy_chunk {
    uint32_t number;                 /* index of the chunk, from 0 */
    bool is_last;                    /* the last chunk of the copy */
    struct wal__delta_reader reader; /* borrows the payload and `memory` */
    uint8_t *memory;
    const struct wal__heap *heap; /* NULL: the C library's */
};

/* Decodes a payload, which must outlive the chunk. WAL_ECORRUPT, WAL_ENOMEM. */
enum wal_status wal__copy_chunk_decode(struct wal__copy_chunk *chunk,
                                       struct wal_slice payload);
void wal__copy_chunk_deinit(struct wal__copy_chunk *chunk);

/* Whether all operations of a chunk are valid, as far as that can be checked
 * without the original. */
bool wal__copy_chunk_is_valid(struct wal_slice payload);

/* Encodes a chunk in at most WAL__COPY_CHUNK_MAX bytes. */
enum wal_status wal__copy_chunk_encode(const struct wal__delta_chunk *chunk,
                                       uint32_t number, bool is_last,
                                       uint8_t *bytes, size_t *size);

#endif
